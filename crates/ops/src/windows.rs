//! Rows of windows over images: pools, normalisation over channels, resizing; and the windows of convolutions.

use smallvec::SmallVec;
use tfrt_bef::DType;

use crate::def::{AttrDef, Cost, ElementFamily, OpDef, ValueDef, When};
use crate::dim::{Dim, Dims};
use crate::fact::unknown_dims;
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");

/// The condition for attributes of windows: a pool of the whole image has none.
const WINDOWS: When = When::Unset("whole");

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("pool", "The `kind` (max, mean, lp) of each window of each channel, or of the whole image if `whole`.")
        .results(&[ValueDef::var("y", "T"), ValueDef::set("indices", &[DType::I64]).optional()])
        .attrs(&[
            AttrDef::kind(&["max", "mean", "lp"]),
            AttrDef::int("whole", 0),
            AttrDef::ints("kernel_shape").only(WINDOWS),
            AttrDef::ints("strides").only(WINDOWS),
            AttrDef::ints("dilations").only(WINDOWS),
            AttrDef::ints("pads").only(WINDOWS),
            AttrDef::text("auto_pad", "NOTSET").only(WINDOWS),
            AttrDef::int("ceil_mode", 0).only(WINDOWS),
            AttrDef::int("count_include_pad", 0).only(When::Kind(&["mean"])),
            AttrDef::int("storage_order", 0).only(When::Kind(&["max"])),
            AttrDef::int("p", 2).only(When::Kind(&["lp"])),
        ])
        .infer(Infer::By(pool)),
    OpDef::new("resize", "An image of other extents, its elements taken or interpolated from the nearest ones (`mode`).")
        .inputs(&[
            X,
            ValueDef::any("roi").optional(),
            ValueDef::set("scales", &[DType::F32]).optional(),
            ValueDef::set("sizes", &[DType::I64]).optional(),
        ])
        .results(&[ValueDef::var("y", "T").by_values()])
        .attrs(&[
            AttrDef::text("mode", "nearest"),
            AttrDef::text("coordinates", "half_pixel"),
            AttrDef::text("nearest_mode", "round_prefer_floor"),
            AttrDef::ints("axes"),
            AttrDef::int("antialias", 0),
            AttrDef::float("cubic_coeff_a", -0.75),
            AttrDef::int("exclude_outside", 0),
            AttrDef::float("extrapolation_value", 0.0),
            AttrDef::text("keep_aspect_ratio_policy", "stretch"),
        ])
        .infer(Infer::By(resize))
        .cost(Cost::PerElement(8)),
    OpDef::new("lrn", "Each element, divided by a power of the squares of `size` channels around it.")
        .attrs(&[
            AttrDef::float("alpha", 1e-4),
            AttrDef::float("beta", 0.75),
            AttrDef::float("bias", 1.0),
            AttrDef::int("size", 1).required(),
        ])
        .elements(ElementFamily::Float)
        .cost(Cost::PerElement(20)),
];

/// The windows over the spatial dimensions, by the attributes that convolutions and pools share.
pub(crate) struct Windows {
    kernel: SmallVec<[Dim; 3]>,
    strides: SmallVec<[i64; 3]>,
    dilations: SmallVec<[i64; 3]>,
    /// Elements of padding in front and behind.
    pads: SmallVec<[(i64, i64); 3]>,
    /// Whether padding gives the result the input's extents, divided by the stride.
    same: bool,
    rounds_up: bool,
}

impl Windows {
    pub(crate) fn new(call: &InferCall<'_>, kernel: &[Dim]) -> Result<Windows, InferError> {
        let n = kernel.len();
        let list = |name: &str, length: usize, default: i64| {
            let list: SmallVec<[i64; 3]> = match call.attrs.ints(name) {
                Some(list) if !list.is_empty() => list.iter().copied().collect(),
                _ => SmallVec::from_elem(default, length),
            };
            match list.len() == length {
                true => Ok(list),
                false => Err(call.error(format_args!(
                    "expected {length} {name}, found {}",
                    list.len()
                ))),
            }
        };
        let strides = list("strides", n, 1)?;
        let dilations = list("dilations", n, 1)?;
        if strides.iter().chain(&dilations).any(|step| *step <= 0) {
            return Err(call.error("expected strides and dilations above 0"));
        }
        let auto = call.attrs.text("auto_pad");
        let pads = match auto {
            "" | "NOTSET" => list("pads", 2 * n, 0)?,
            _ => SmallVec::from_elem(0, 2 * n),
        };
        Ok(Windows {
            kernel: kernel.iter().cloned().collect(),
            strides,
            dilations,
            pads: (0..n).map(|at| (pads[at], pads[at + n])).collect(),
            same: auto.starts_with("SAME"),
            rounds_up: call.attrs.flag("ceil_mode"),
        })
    }

    fn output(&self, at: usize, input: &Dim) -> Dim {
        let stride = self.strides[at];
        if self.same {
            return (input + &Dim::Known(stride - 1)).floor_div(stride);
        }
        let (front, behind) = self.pads[at];
        let reach = &(&self.kernel[at] - &Dim::Known(1)) * &Dim::Known(self.dilations[at]);
        let around = &(&Dim::Known(front) + &Dim::Known(behind)) - &(&reach + &Dim::Known(1));
        let first = input + &around;
        if !self.rounds_up {
            return &first.floor_div(stride) + &Dim::Known(1);
        }
        // The last window may not begin behind the input, which depends on more than a rounding.
        let steps = || {
            let size = input.value()?;
            let steps = first.value()?.checked_add(stride - 1)?.div_euclid(stride);
            let is_behind = steps.checked_mul(stride)? >= size.checked_add(front)?;
            Some(steps - i64::from(is_behind) + 1)
        };
        steps().map_or(Dim::Unknown, Dim::Known)
    }

    /// Expects each window to lie within the input and its padding.
    pub(crate) fn expect_within(
        &self,
        call: &InferCall<'_>,
        spatial: &[Dim],
    ) -> Result<(), InferError> {
        for (at, size) in spatial.iter().enumerate().filter(|_| !self.same) {
            let (Some(size), Some(kernel)) = (size.value(), self.kernel[at].value()) else {
                continue;
            };
            let (front, behind) = self.pads[at];
            let reach = (i128::from(kernel) - 1) * i128::from(self.dilations[at]) + 1;
            if reach > i128::from(size) + i128::from(front) + i128::from(behind) {
                return Err(call.error(format_args!(
                    "expected a window within an input of {size} with {front} and {behind} around it, found one over \
                     {reach}"
                )));
            }
        }
        Ok(())
    }

    /// Returns the extents of the result, by those of the input.
    pub(crate) fn outputs(&self, spatial: &[Dim]) -> Dims {
        spatial
            .iter()
            .enumerate()
            .map(|(at, dim)| self.output(at, dim))
            .collect()
    }

    /// Returns the extents of a transposed convolution's result.
    pub(crate) fn transposed(&self, spatial: &[Dim], added: &[i64]) -> Dims {
        let one = |(at, input): (usize, &Dim)| {
            let stride = Dim::Known(self.strides[at]);
            if self.same {
                return input * &stride;
            }
            let reach = &(&self.kernel[at] - &Dim::Known(1)) * &Dim::Known(self.dilations[at]);
            let (front, behind) = self.pads[at];
            let steps = &(input - &Dim::Known(1)) * &stride;
            let all = &(&(&steps + &reach) + &Dim::Known(1))
                + &Dim::Known(added.get(at).copied().unwrap_or(0));
            &(&all - &Dim::Known(front)) - &Dim::Known(behind)
        };
        spatial.iter().enumerate().map(one).collect()
    }
}

fn pool(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let elements = match (call.attrs.text("kind"), call.attrs.flag("whole")) {
        ("max", false) => ElementFamily::Real,
        _ => ElementFamily::Float,
    };
    if let Some(dtype) = x.dtype.filter(|dtype| !elements.has(*dtype)) {
        return Err(call.error(format_args!("expected {elements}, found {dtype}")));
    }
    let dims = match &x.dims {
        None if call.attrs.flag("whole") => None,
        None => call.attrs.len("kernel_shape").map(|n| unknown_dims(n + 2)),
        Some(dims) if dims.len() < 2 => {
            let found = dims.len();
            return Err(call.error(format_args!(
                "expected at least 2 dimensions, found {found}"
            )));
        }
        Some(dims) => {
            let (outer, spatial) = dims.split_at(2);
            let inner = if call.attrs.flag("whole") {
                SmallVec::from_elem(Dim::Known(1), spatial.len())
            } else {
                let kernel = call.attrs.ints("kernel_shape");
                let kernel =
                    kernel.ok_or_else(|| call.error("expected an attribute 'kernel_shape'"))?;
                if kernel.len() != spatial.len() {
                    let (expected, found) = (spatial.len(), kernel.len());
                    return Err(call.error(format_args!(
                        "expected a window of {expected} dimensions, found {found}"
                    )));
                }
                let kernel: Dims = kernel.iter().map(|extent| Dim::Known(*extent)).collect();
                let windows = Windows::new(call, &kernel)?;
                windows.expect_within(call, spatial)?;
                windows.outputs(spatial)
            };
            Some(outer.iter().cloned().chain(inner).collect())
        }
    };
    call.give(0, x.dtype, dims.clone());
    call.give(1, Some(DType::I64), dims);
    Ok(())
}

fn resize(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let Some(dims) = &x.dims else {
        call.give(0, x.dtype, None);
        return Ok(());
    };
    let mut resized = unknown_dims(dims.len());
    let axes = match call.attrs.ints("axes") {
        Some(axes) => {
            let list = axes.iter().map(|axis| call.axis(*axis, dims.len()));
            list.collect::<Result<SmallVec<[usize; 6]>, _>>()?
        }
        None => (0..dims.len()).collect(),
    };
    for (at, dim) in resized.iter_mut().enumerate() {
        if !axes.contains(&at) {
            dim.clone_from(&dims[at]);
        }
    }
    // A policy other than to stretch makes extents smaller than asked for.
    let stretches = call.attrs.text("keep_aspect_ratio_policy") == "stretch";
    let (scales, sizes) = (&call.input(2).floats, &call.input(3).values);
    match (scales, sizes) {
        (_, Some(sizes)) if sizes.len() == axes.len() && stretches => {
            for (at, size) in axes.iter().zip(sizes) {
                resized[*at].clone_from(size);
            }
        }
        (Some(scales), _) if scales.len() == axes.len() && !call.has(3) => {
            for (at, scale) in axes.iter().zip(scales) {
                resized[*at] = scaled(&dims[*at], *scale);
            }
        }
        _ => {}
    }
    call.give(0, x.dtype, Some(resized));
    Ok(())
}

/// Returns an extent times a scale, rounded down.
pub(crate) fn scaled(dim: &Dim, scale: f64) -> Dim {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is compared with what it was"
    )]
    let whole = scale as i64;
    #[expect(
        clippy::cast_precision_loss,
        reason = "a number that is not equal is not taken"
    )]
    if whole as f64 == scale {
        return dim * &Dim::Known(whole);
    }
    let Some(extent) = dim.value().and_then(|extent| i32::try_from(extent).ok()) else {
        return Dim::Unknown;
    };
    // Scales are f32 in files, and kernels multiply in that type: beside a whole number nothing is sure.
    let product = f64::from(extent) * scale;
    let is_sure = (product - product.round()).abs() > 1e-4 || product.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, reason = "it lies within the range")]
    match is_sure && product.abs() < 1e9 {
        true => Dim::Known(product.floor() as i64),
        false => Dim::Unknown,
    }
}
