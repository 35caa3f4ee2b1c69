//! Rows on volumes whose channels come last, `[n, d, h, w, c]`: convolutions and pools.

use super::{dims_text, text};
use crate::Attrs;
use crate::def::{AttrDef, AttrKind, Cost, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");
const STRIDES: AttrDef = AttrDef::ints("strides");
const PADDING: AttrDef = AttrDef::new("padding", AttrKind::Text).required();
const FORMAT: AttrDef = AttrDef::text("data_format", "NDHWC");

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new(
        "tf.AvgPool3D",
        "The mean of each window of volumes `[n, d, h, w, c]`, without the padding.",
    )
    .inputs(&[X])
    .attrs(&[AttrDef::ints("ksize").required(), STRIDES, PADDING, FORMAT])
    .infer(Infer::By(pool)),
    OpDef::new(
        "tf.Conv3D",
        "The convolution of volumes `[n, d, h, w, c]` by a filter `[kd, kh, kw, c, f]`.",
    )
    .inputs(&[X, ValueDef::var("filter", "T")])
    .attrs(&[STRIDES, PADDING, FORMAT, AttrDef::ints("dilations")])
    .infer(Infer::By(convolution))
    .cost(Cost::PerElement(64)),
    OpDef::new(
        "tf.MaxPool3D",
        "The largest element of each window of volumes `[n, d, h, w, c]`.",
    )
    .inputs(&[X])
    .attrs(&[AttrDef::ints("ksize").required(), STRIDES, PADDING, FORMAT])
    .infer(Infer::By(pool)),
];

/// The windows of a convolution or a pool over volumes, as attributes state them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The distances of windows, in depth, height and width.
    pub strides: [usize; 3],
    /// The distances of elements of a window.
    pub dilations: [usize; 3],
    /// Whether there is a result for each stride; else for each window that fits.
    pub is_same: bool,
}

impl Windows {
    /// Reads the attributes of an operation.
    ///
    /// # Errors
    ///
    /// If one is wrong. What is said does not name the operation.
    pub fn of(attrs: &Attrs<'_>) -> Result<Windows, InferError> {
        let format = attrs.text("data_format");
        if !format.is_empty() && format != "NDHWC" {
            return Err(InferError::new(format!(
                "expected attribute 'data_format' to be NDHWC, found '{}'",
                format.escape_debug()
            )));
        }
        let is_same = match attrs.text("padding") {
            "SAME" => true,
            "VALID" => false,
            found => {
                let found = found.escape_debug();
                return Err(InferError::new(format!(
                    "expected attribute 'padding' to be SAME or VALID, found '{found}'"
                )));
            }
        };
        Ok(Windows {
            strides: per_dimension(attrs, "strides")?.unwrap_or([1; 3]),
            dilations: per_dimension(attrs, "dilations")?.unwrap_or([1; 3]),
            is_same,
        })
    }

    /// Returns the extent of the result in depth (0), height or width.
    fn output(&self, at: usize, extent: &Dim, input: &Dim) -> Result<Dim, InferError> {
        let (Some(extent), Some(input)) = (extent.value(), input.value()) else {
            return Ok(Dim::Unknown);
        };
        if extent < 1 {
            return Err(InferError::new(format!(
                "expected windows of 1 or more, found {extent}"
            )));
        }
        let of = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        let (stride, dilation) = (of(self.strides[at]), of(self.dilations[at]));
        if self.is_same {
            let rest = i64::from(input % stride != 0);
            return Ok(Dim::Known(input / stride + rest));
        }
        let covered = (extent - 1).saturating_mul(dilation).saturating_add(1);
        if input < covered {
            return Err(InferError::new(format!(
                "a window over {covered} elements is larger than an input of {input}"
            )));
        }
        Ok(Dim::Known((input - covered) / stride + 1))
    }
}

/// Returns the numbers of a list for depth, height and width; `None` if the list is empty.
///
/// # Errors
///
/// If it has another length, or numbers that are not above 0, or others than 1 for volumes and channels.
pub fn per_dimension(attrs: &Attrs<'_>, name: &str) -> Result<Option<[usize; 3]>, InferError> {
    let list = attrs.ints(name).unwrap_or_default();
    let three = match list[..] {
        [] => return Ok(None),
        [1, depth, height, width, 1] => [depth, height, width].map(usize::try_from),
        _ => [Ok(0); 3],
    };
    match three {
        [Ok(depth @ 1..), Ok(height @ 1..), Ok(width @ 1..)] => Ok(Some([depth, height, width])),
        _ => Err(InferError::new(format!(
            "expected attribute '{name}' to be a list of 5 numbers above 0, 1 for volumes and channels, found {:?}",
            &list[..]
        ))),
    }
}

/// Returns the extents of a tensor of five dimensions; unknown ones if its rank is unknown.
fn five(call: &InferCall<'_>, fact: &Fact, what: &str) -> Result<[Dim; 5], InferError> {
    match fact.dims.as_deref() {
        None => Ok([const { Dim::Unknown }; 5]),
        Some([a, b, c, d, e]) => Ok([a, b, c, d, e].map(Dim::clone)),
        Some(_) => {
            let found = text(fact);
            Err(call.error(format_args!("expected {what}, found {found}")))
        }
    }
}

/// Returns the extents of the result of windows of these extents over volumes, with so many channels.
fn window_dims(
    call: &InferCall<'_>,
    windows: &Windows,
    [n, depth, height, width, _]: &[Dim; 5],
    (extents, channels): ([Dim; 3], Dim),
) -> Result<Dims, InferError> {
    let mut dims = Dims::from_iter([n.clone()]);
    for (at, input) in [depth, height, width].into_iter().enumerate() {
        let output = windows.output(at, &extents[at], input);
        dims.push(output.map_err(|error| call.error(error))?);
    }
    dims.push(channels);
    Ok(dims)
}

fn convolution(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let windows = Windows::of(&call.attrs).map_err(|error| call.error(error))?;
    let (x, filter) = (call.input(0).clone(), call.input(1).clone());
    let volumes = five(call, &x, "volumes [batch, depth, height, width, channels]")?;
    let what = "a filter [depth, height, width, channels, filters]";
    let [depth, height, width, own, filters] = five(call, &filter, what)?;
    if let (Some(channels), Some(own)) = (volumes[4].value(), own.value())
        && channels != own
    {
        let found = dims_text(filter.dims.as_deref().unwrap_or_default());
        return Err(call.error(format_args!(
            "expected a filter of {channels} channels, found {found}"
        )));
    }
    let dims = window_dims(call, &windows, &volumes, ([depth, height, width], filters))?;
    call.give(0, x.dtype.or(filter.dtype), Some(dims));
    Ok(())
}

fn pool(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let windows = Windows::of(&call.attrs).map_err(|error| call.error(error))?;
    let sizes = per_dimension(&call.attrs, "ksize").map_err(|error| call.error(error))?;
    let sizes =
        sizes.ok_or_else(|| call.error("expected attribute 'ksize' to have extents, found []"))?;
    let x = call.input(0).clone();
    let volumes = five(call, &x, "volumes [batch, depth, height, width, channels]")?;
    let channels = volumes[4].clone();
    let dims = window_dims(call, &windows, &volumes, (sizes.map(Dim::from), channels))?;
    call.give(0, x.dtype, Some(dims));
    Ok(())
}
