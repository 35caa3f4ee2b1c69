//! Rows on images: convolutions, pools, normalisation. Channels come last, or right behind the batch if `data_format`
//! is NCHW; then lists of a number for each dimension have that order, too.

use smallvec::SmallVec;
use tfrt_bef::DType;

use super::{text, texts};
use crate::Attrs;
use crate::def::{AttrDef, AttrKind, Cost, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError};

const X: ValueDef = ValueDef::var("x", "T");
const SINGLE: &[DType] = &[DType::F32];
const NORMALISED: &[DType] = &[DType::F32, DType::F64];
const INDEX: &[DType] = &[DType::I32, DType::I64];
const STRIDES: AttrDef = AttrDef::ints("strides");
const PADDING: AttrDef = AttrDef::new("padding", AttrKind::Text).required();
const EXPLICIT: AttrDef = AttrDef::ints("explicit_paddings");
const FORMAT: AttrDef = AttrDef::text("data_format", "NHWC");
const DILATIONS: AttrDef = AttrDef::ints("dilations");
const FUSED: AttrDef = AttrDef::new("fused_ops", AttrKind::Texts);
const EPSILON: AttrDef = AttrDef::float("epsilon", 1e-4);

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("tf.AvgPool", "The mean of each window of images `[n, h, w, c]`, without the padding.")
        .attrs(&[AttrDef::ints("ksize").required(), STRIDES, PADDING, EXPLICIT, FORMAT])
        .infer(Infer::By(pool)),
    OpDef::new("tf.Conv2D", "The convolution of images `[n, h, w, c]` by a filter `[kh, kw, c, f]`; one of `[kh, kw, c / g, f]` is for `g` groups of channels that don't mix.")
        .inputs(&[X, ValueDef::var("filter", "T")])
        .attrs(&[STRIDES, PADDING, EXPLICIT, FORMAT, DILATIONS])
        .infer(Infer::By(convolution))
        .cost(Cost::Fn(convolution_cost)),
    OpDef::new("tf.Conv2DBackpropFilter", "The gradient of a convolution's filter: of images, the filter's extents, and the gradient of the result.")
        .inputs(&[ValueDef::set("x", SINGLE), ValueDef::set("filter_sizes", INDEX), ValueDef::set("gradient", SINGLE)])
        .results(&[ValueDef::set("y", SINGLE).by_values()])
        .attrs(&[STRIDES, PADDING, EXPLICIT, FORMAT, DILATIONS])
        .infer(Infer::By(filter_gradient))
        .cost(Cost::PerElement(64)),
    OpDef::new("tf.Conv2DBackpropInput", "The gradient of a convolution's images, of these extents: of the filter and the gradient of the result. A transposed convolution.")
        .inputs(&[ValueDef::set("input_sizes", INDEX), ValueDef::set("filter", SINGLE), ValueDef::set("gradient", SINGLE)])
        .results(&[ValueDef::set("y", SINGLE).by_values()])
        .attrs(&[STRIDES, PADDING, EXPLICIT, FORMAT, DILATIONS])
        .infer(Infer::By(input_gradient))
        .cost(Cost::PerElement(64)),
    OpDef::new("tf.DepthwiseConv2dNative", "The convolution of each channel of images `[n, h, w, c]` by its own filters, `[kh, kw, c, m]`; the result has `c * m` channels.")
        .inputs(&[X, ValueDef::var("filter", "T")])
        .attrs(&[STRIDES, PADDING, EXPLICIT, FORMAT, DILATIONS])
        .infer(Infer::By(convolution))
        .cost(Cost::Fn(convolution_cost)),
    OpDef::new("tf.FusedBatchNormV3", "Each channel of `[.., c]` by scale, offset, mean and variance. Behind the result come mean and variance, twice, and a tensor without elements, in place of what training would need.")
        .inputs(&[
            ValueDef::set("x", NORMALISED),
            ValueDef::set("scale", NORMALISED),
            ValueDef::set("offset", NORMALISED),
            ValueDef::set("mean", NORMALISED),
            ValueDef::set("variance", NORMALISED),
        ])
        .results(&[
            ValueDef::set("y", NORMALISED),
            ValueDef::set("batch_mean", NORMALISED),
            ValueDef::set("batch_variance", NORMALISED),
            ValueDef::set("reserve_1", NORMALISED),
            ValueDef::set("reserve_2", NORMALISED),
            ValueDef::set("reserve_3", NORMALISED),
        ])
        .attrs(&[EPSILON, FORMAT, AttrDef::int("is_training", 0)])
        .infer(Infer::By(norm)),
    OpDef::new("tf.MaxPool", "The largest element of each window of images `[n, h, w, c]`.")
        .attrs(&[AttrDef::ints("ksize").required(), STRIDES, PADDING, EXPLICIT, FORMAT])
        .infer(Infer::By(pool)),
    OpDef::new("tf.ResizeBilinear", "Images `[n, h, w, c]` of another height and width, interpolated between the nearest elements.")
        .inputs(&[ValueDef::set("x", SINGLE), ValueDef::set("size", INDEX)])
        .results(&[ValueDef::set("y", SINGLE).by_values()])
        .attrs(&[AttrDef::int("align_corners", 0), AttrDef::int("half_pixel_centers", 0)])
        .infer(Infer::By(resized))
        .cost(Cost::PerElement(8)),
    OpDef::new("tf.ResizeNearestNeighbor", "Images `[n, h, w, c]` of another height and width, of the nearest elements.")
        .inputs(&[X, ValueDef::set("size", INDEX)])
        .results(&[ValueDef::var("y", "T").by_values()])
        .attrs(&[AttrDef::int("align_corners", 0), AttrDef::int("half_pixel_centers", 0)])
        .infer(Infer::By(resized)),
    OpDef::new("tf._FusedConv2D", "As `tf.Conv2D`, with what follows it: BiasAdd or FusedBatchNorm, then Add, then Relu or Relu6, as far as there are such. A bias, or scale, offset, mean and variance of a normalisation, then a summand of the result's shape, are operands behind the filter.")
        .inputs(&[ValueDef::set("x", SINGLE), ValueDef::set("filter", SINGLE), ValueDef::set("args", SINGLE).rest(0)])
        .results(&[ValueDef::set("y", SINGLE)])
        .attrs(&[STRIDES, PADDING, EXPLICIT, FORMAT, DILATIONS, FUSED, EPSILON])
        .infer(Infer::By(convolution))
        .cost(Cost::Fn(convolution_cost)),
    OpDef::new("tfrt.conv2d", "The convolution of images `[n, h, w, c]` by a filter that `tfrt.pack_conv2d` has packed, whose extents `[kh, kw, c / groups, f]` are the attribute `filter`, and what follows it: a bias, then a summand of the result's shape, are operands behind the filter.")
        .inputs(&[ValueDef::set("x", SINGLE), ValueDef::set("packed", SINGLE), ValueDef::set("args", SINGLE).rest(0)])
        .results(&[ValueDef::set("y", SINGLE)])
        .attrs(&[
            AttrDef::ints("filter").required(),
            AttrDef::int("groups", 1),
            STRIDES,
            PADDING,
            EXPLICIT,
            FORMAT,
            DILATIONS,
            FUSED,
        ])
        .infer(Infer::By(convolution))
        .cost(Cost::Fn(convolution_cost)),
    OpDef::new("tfrt.fold_batch_norm", "A filter `[.., f]` and a bias `[f]` that take in the normalisation that follows a convolution: of the filter, scale, offset, mean and variance.")
        .inputs(&[
            ValueDef::set("filter", SINGLE),
            ValueDef::set("scale", SINGLE),
            ValueDef::set("offset", SINGLE),
            ValueDef::set("mean", SINGLE),
            ValueDef::set("variance", SINGLE),
        ])
        .results(&[ValueDef::set("folded", SINGLE), ValueDef::set("bias", SINGLE)])
        .attrs(&[EPSILON])
        .infer(Infer::By(fold)),
    OpDef::new("tfrt.pack_conv2d", "A filter `[kh, kw, c / groups, f]` as `tfrt.conv2d` takes it, for convolutions with these strides and dilations, on this processor.")
        .inputs(&[ValueDef::set("filter", SINGLE)])
        .results(&[ValueDef::set("packed", SINGLE).by_values()])
        .attrs(&[STRIDES, DILATIONS, AttrDef::int("groups", 1)])
        .infer(Infer::By(packed)),
];

/// Returns whether channels come right behind the batch, by the attribute `data_format`.
///
/// # Errors
///
/// If it is neither NHWC nor NCHW. What is said does not name the operation.
pub fn has_channels_first(attrs: &Attrs<'_>) -> Result<bool, InferError> {
    match attrs.text("data_format") {
        "" => Ok(false),
        format if format.eq_ignore_ascii_case("nhwc") => Ok(false),
        format if format.eq_ignore_ascii_case("nchw") => Ok(true),
        found => Err(InferError::new(format!(
            "expected attribute 'data_format' to be NHWC or NCHW, found '{}'",
            found.escape_debug()
        ))),
    }
}

/// Brings the extents of images whose channels come last into the order of `data_format`.
fn in_order(is_first: bool, [n, height, width, channels]: [Dim; 4]) -> Dims {
    match is_first {
        true => [n, channels, height, width].into_iter().collect(),
        false => [n, height, width, channels].into_iter().collect(),
    }
}

/// The padding of images, in height and in width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// No padding.
    Valid,
    /// As much as gives a result for each stride.
    Same,
    /// So many elements before and behind, for each dimension.
    Explicit([[usize; 2]; 2]),
}

/// The windows of a convolution or a pool over images, as attributes state them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The distances of windows, in height and in width.
    pub strides: [usize; 2],
    /// The distances of elements of a window.
    pub dilations: [usize; 2],
    /// The padding of the images.
    pub padding: Padding,
}

impl Windows {
    /// Reads the attributes of an operation.
    ///
    /// # Errors
    ///
    /// If one is wrong. What is said does not name the operation.
    pub fn of(attrs: &Attrs<'_>) -> Result<Windows, InferError> {
        Ok(Windows {
            strides: per_dimension(attrs, "strides")?.unwrap_or([1, 1]),
            dilations: per_dimension(attrs, "dilations")?.unwrap_or([1, 1]),
            padding: padding(attrs)?,
        })
    }

    /// Returns the extent of the result, in height (0) or in width (1).
    fn output(&self, at: usize, extent: &Dim, input: &Dim) -> Result<Dim, InferError> {
        let (Some(extent), Some(input)) = (extent.value(), input.value()) else {
            return Ok(Dim::Unknown);
        };
        if extent < 1 {
            return Err(InferError::new(format!(
                "expected windows of 1 or more, found {extent}"
            )));
        }
        let too_large = || InferError::new("a window exceeds the largest integer");
        let of = |size: usize| i64::try_from(size).map_err(|_| too_large());
        let (stride, dilation) = (of(self.strides[at])?, of(self.dilations[at])?);
        let covered = (extent - 1)
            .checked_mul(dilation)
            .and_then(|span| span.checked_add(1));
        let covered = covered.ok_or_else(too_large)?;
        let (before, behind) = match self.padding {
            // As many results as strides.
            Padding::Same => {
                let rest = i64::from(input % stride != 0);
                return Ok(Dim::Known(input / stride + rest));
            }
            Padding::Valid => (0, 0),
            Padding::Explicit(sizes) => (of(sizes[at][0])?, of(sizes[at][1])?),
        };
        let around = || format!("an input of {input} with {before} and {behind} around it");
        let padded = input
            .checked_add(before)
            .and_then(|sum| sum.checked_add(behind));
        let padded = padded
            .ok_or_else(|| InferError::new(format!("{} exceeds the largest integer", around())))?;
        if padded < covered {
            return Err(InferError::new(format!(
                "a window over {covered} elements is larger than {}",
                around()
            )));
        }
        Ok(Dim::Known((padded - covered) / stride + 1))
    }
}

/// Returns the numbers of a list for height and width; `None` if the list is empty.
///
/// # Errors
///
/// If it has another length, or numbers that are not above 0, or others than 1 for images and channels.
pub fn per_dimension(attrs: &Attrs<'_>, name: &str) -> Result<Option<[usize; 2]>, InferError> {
    let is_first = has_channels_first(attrs)?;
    let list = attrs.ints(name).unwrap_or_default();
    let wrong = |expected: &str| {
        InferError::new(format!(
            "expected attribute '{name}' to be {expected}, found {:?}",
            &list[..]
        ))
    };
    let [height, width] = match list[..] {
        [] => return Ok(None),
        [both] => [both, both],
        [height, width] => [height, width],
        [1, height, width, 1] if !is_first => [height, width],
        [1, 1, height, width] if is_first => [height, width],
        [_, _, _, _] => return Err(wrong("1 for images and channels")),
        _ => return Err(wrong("a list of 1, 2 or 4 numbers")),
    };
    match (usize::try_from(height), usize::try_from(width)) {
        (Ok(height @ 1..), Ok(width @ 1..)) => Ok(Some([height, width])),
        _ => Err(wrong("above 0")),
    }
}

fn padding(attrs: &Attrs<'_>) -> Result<Padding, InferError> {
    let name = "explicit_paddings";
    let is_first = has_channels_first(attrs)?;
    let list = attrs.ints(name).unwrap_or_default();
    let padding = attrs.text("padding");
    let both = match padding {
        _ if padding.eq_ignore_ascii_case("same") => Padding::Same,
        _ if padding.eq_ignore_ascii_case("valid") => Padding::Valid,
        _ if padding.eq_ignore_ascii_case("explicit") => {
            let sizes = list.iter().map(|size| usize::try_from(*size).ok());
            let sizes: Option<SmallVec<[usize; 8]>> = sizes.collect();
            let around = match sizes.as_deref() {
                Some(&[top, bottom, left, right]) => Some([[top, bottom], [left, right]]),
                Some(&[0, 0, top, bottom, left, right, 0, 0]) if !is_first => {
                    Some([[top, bottom], [left, right]])
                }
                Some(&[0, 0, 0, 0, top, bottom, left, right]) if is_first => {
                    Some([[top, bottom], [left, right]])
                }
                _ => None,
            };
            return match around {
                Some(around) => Ok(Padding::Explicit(around)),
                None => Err(InferError::new(format!(
                    "expected attribute '{name}' to have numbers before and behind height and width, 0 or more, and 0 \
                     for images and channels, found {:?}",
                    &list[..]
                ))),
            };
        }
        _ => {
            let padding = padding.escape_debug();
            return Err(InferError::new(format!(
                "Unknown padding type '{padding}': expected SAME, VALID or EXPLICIT"
            )));
        }
    };
    match list.is_empty() {
        true => Ok(both),
        false => Err(InferError::new(format!(
            "attribute '{name}' is for the padding EXPLICIT, found '{}'",
            padding.escape_debug()
        ))),
    }
}

/// The step that comes first behind a convolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bias {
    /// No step.
    #[default]
    Nothing,
    /// A bias: a summand for each filter.
    Summands,
    /// A normalisation of each filter's results.
    Normalisation,
}

/// The steps that are fused behind a convolution, by the attribute `fused_ops`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FusedOps<'a> {
    /// The first step.
    pub bias: Bias,
    /// Whether a tensor is added next.
    pub adds: bool,
    /// The function that comes last: `Relu`, `Relu6` or none.
    pub function: Option<&'a str>,
}

impl<'a> FusedOps<'a> {
    /// Reads the attribute.
    ///
    /// # Errors
    ///
    /// If there is something that is not fused. What is said does not name the operation.
    pub fn of(attrs: &Attrs<'a>) -> Result<FusedOps<'a>, InferError> {
        let names = texts(attrs, "fused_ops");
        let mut rest = names.iter().copied().peekable();
        let mut take = |wanted: &[&str]| rest.next_if(|name| wanted.contains(name));
        let bias = match take(&["BiasAdd", "FusedBatchNorm"]) {
            None => Bias::Nothing,
            Some("BiasAdd") => Bias::Summands,
            Some(_) => Bias::Normalisation,
        };
        let adds = take(&["Add"]).is_some();
        let function = take(&["Relu", "Relu6"]);
        match rest.next() {
            None => Ok(FusedOps {
                bias,
                adds,
                function,
            }),
            Some(_) => Err(InferError::new(format!(
                "Unsupported fusion type: expected BiasAdd or FusedBatchNorm, then Add, then Relu or Relu6, found \
                 {:?}",
                &names[..]
            ))),
        }
    }

    /// Returns the number of operands that the first step takes.
    pub fn n_lists(&self) -> usize {
        match self.bias {
            Bias::Nothing => 0,
            Bias::Summands => 1,
            Bias::Normalisation => 4,
        }
    }
}

/// Returns the extents of a tensor of four dimensions; unknown ones if its rank is unknown.
fn four(call: &InferCall<'_>, fact: &Fact, what: &str) -> Result<[Dim; 4], InferError> {
    match fact.dims.as_deref() {
        None => Ok([const { Dim::Unknown }; 4]),
        Some([a, b, c, d]) => Ok([a, b, c, d].map(Dim::clone)),
        Some(_) => {
            let found = text(fact);
            Err(call.error(format_args!("expected {what}, found {found}")))
        }
    }
}

/// Returns batch, height, width and channels of images; unknown ones if their rank is unknown.
fn pixels(call: &InferCall<'_>, fact: &Fact, is_first: bool) -> Result<[Dim; 4], InferError> {
    if !is_first {
        return four(call, fact, "images [batch, height, width, channels]");
    }
    let [n, channels, height, width] = four(call, fact, "images [batch, channels, height, width]")?;
    Ok([n, height, width, channels])
}

/// Returns whether channels come first.
fn format_of(call: &InferCall<'_>) -> Result<bool, InferError> {
    has_channels_first(&call.attrs).map_err(|error| named(call, &error))
}

fn named(call: &InferCall<'_>, error: &InferError) -> InferError {
    call.error(error)
}

fn convolution(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let is_first = format_of(call)?;
    let (x, filter) = (call.input(0).clone(), call.input(1).clone());
    let (name, dtype) = (call.op.name, x.dtype.or(filter.dtype));
    let windows = Windows::of(&call.attrs).map_err(|error| named(call, &error))?;
    let [n, height, width, channels] = pixels(call, &x, is_first)?;
    let (extents, filters) = match name {
        "tfrt.conv2d" => packed_extents(call, &channels)?,
        "tf.DepthwiseConv2dNative" => {
            let what = "a filter [height, width, channels, filters of each]";
            let [height, width, own, each] = four(call, &filter, what)?;
            if let (Some(found), Some(own)) = (channels.value(), own.value())
                && found != own
            {
                return Err(call.error(format_args!(
                    "Dimensions does not match: input channels is {found} and kernel depth is {own}"
                )));
            }
            ([height, width], &own * &each)
        }
        _ => {
            let what = "a filter [height, width, channels, filters]";
            let [height, width, own, filters] = four(call, &filter, what)?;
            expect_depth(call, [&channels, &own, &filters], None)?;
            ([height, width], filters)
        }
    };
    let of = |at: usize, input: &Dim| {
        let output = windows.output(at, &extents[at], input);
        output.map_err(|error| named(call, &error))
    };
    let dims = in_order(is_first, [n, of(0, &height)?, of(1, &width)?, filters]);
    expect_followers(call, &Fact::new(dtype, Some(dims.clone())), is_first)?;
    call.give(0, dtype, Some(dims));
    Ok(())
}

/// Returns an error if a filter's depth does not fit the channels. The number of groups is stated, or follows.
fn expect_depth(
    call: &InferCall<'_>,
    [channels, own, filters]: [&Dim; 3],
    groups: Option<i64>,
) -> Result<(), InferError> {
    let (Some(channels), Some(own), Some(filters)) =
        (channels.value(), own.value(), filters.value())
    else {
        return Ok(());
    };
    // A filter for a part of the channels is one of a group.
    let groups = groups.unwrap_or_else(|| match channels.checked_div(own) {
        Some(groups @ 1..) if groups * own == channels => groups,
        _ => 1,
    });
    match own.checked_mul(groups) == Some(channels) && filters % groups == 0 {
        true => Ok(()),
        false => Err(call.error(format_args!(
            "Dimensions does not match: input channels is {channels} and kernel depth is {own}, with {filters} filters \
             in {groups} groups"
        ))),
    }
}

/// Returns height and width of a packed filter, and how many filters there are.
fn packed_extents(call: &InferCall<'_>, channels: &Dim) -> Result<([Dim; 2], Dim), InferError> {
    let list = call.attrs.ints("filter").unwrap_or_default();
    match list[..] {
        [height, width, own, filters] if list.iter().all(|extent| *extent >= 0) => {
            let groups = groups(call)?;
            let [height, width, own, filters] = [height, width, own, filters].map(Dim::Known);
            expect_depth(call, [channels, &own, &filters], Some(groups))?;
            Ok(([height, width], filters))
        }
        _ => Err(call.error(format_args!(
            "expected attribute 'filter' to have 4 extents, found {:?}",
            &list[..]
        ))),
    }
}

fn groups(call: &InferCall<'_>) -> Result<i64, InferError> {
    match call.attrs.int("groups") {
        Some(groups) if groups < 1 => Err(call.error(format_args!(
            "expected attribute 'groups' to be above 0, found {groups}"
        ))),
        groups => Ok(groups.unwrap_or(1)),
    }
}

/// Returns an error if the operands behind the filter do not fit the fused steps.
fn expect_followers(call: &InferCall<'_>, result: &Fact, is_first: bool) -> Result<(), InferError> {
    let fused = FusedOps::of(&call.attrs).map_err(|error| named(call, &error))?;
    if call.op.name == "tfrt.conv2d" && fused.bias == Bias::Normalisation {
        return Err(call.error(
            "Unsupported fusion type: a normalisation is folded into the filter by tfrt.fold_batch_norm before that is \
             packed",
        ));
    }
    let (found, expected) = (
        call.inputs.len(),
        2 + fused.n_lists() + usize::from(fused.adds),
    );
    if found != expected {
        return Err(call.error(format_args!(
            "expected {expected} inputs by attribute 'fused_ops', found {found}"
        )));
    }
    expect_lists(
        call,
        2..2 + fused.n_lists(),
        &result.dim(if is_first { 1 } else { 3 }),
    )?;
    if !fused.adds {
        return Ok(());
    }
    let summand = call.input(found - 1);
    match call.agree(summand, result) {
        Ok(_) => Ok(()),
        Err(_) => {
            let (wanted, found) = (text(result), text(summand));
            Err(call.error(format_args!(
                "expected to add a tensor of {wanted}, found {found}"
            )))
        }
    }
}

/// Returns an error if operands do not have an element for each of `n` filters.
fn expect_lists(
    call: &InferCall<'_>,
    mut operands: std::ops::Range<usize>,
    n: &Dim,
) -> Result<(), InferError> {
    let differs = |index: &usize| {
        let own = call.input(*index).n_elements().value();
        own.zip(n.value()).is_some_and(|(own, n)| own != n)
    };
    match operands.find(differs) {
        None => Ok(()),
        Some(index) => {
            let found = text(call.input(index));
            Err(call.error(format_args!(
                "expected an element of f32 for each of {n} filters, found {found}"
            )))
        }
    }
}

/// Returns the multiplications and additions of a convolution: the result's elements times those of one filter.
fn convolution_cost(inputs: &[Option<Fact>], results: &[Fact]) -> Option<u64> {
    let (filter, result) = (inputs.get(1)?.as_ref()?, results.first()?);
    let filters = result.dims.as_ref()?.last()?.value()?.max(1);
    let own = filter.n_elements().value()? / filters;
    u64::try_from(result.n_elements().value()?.checked_mul(own)?).ok()
}

/// Returns the four extents that an operand states.
fn stated(call: &InferCall<'_>, index: usize) -> Result<Option<Dims>, InferError> {
    let dims = crate::structure::dims_of(call.input(index));
    if let Some(dims) = dims.as_ref().filter(|dims| dims.len() != 4) {
        let found = dims.len();
        return Err(call.error(format_args!(
            "operand {index}: expected 4 extents, found {found}"
        )));
    }
    match dims
        .iter()
        .flatten()
        .find_map(|dim| dim.value().filter(|extent| *extent < 0))
    {
        Some(extent) => Err(call.error(format_args!(
            "operand {index}: expected extents of 0 or more, found {extent}"
        ))),
        None => Ok(dims),
    }
}

fn input_gradient(call: &mut InferCall<'_>) -> Result<(), InferError> {
    gradient(call, 0, 1)
}

fn filter_gradient(call: &mut InferCall<'_>) -> Result<(), InferError> {
    gradient(call, 1, 0)
}

/// Infers a gradient, whose extents an operand states.
fn gradient(call: &mut InferCall<'_>, sizes: usize, other: usize) -> Result<(), InferError> {
    Windows::of(&call.attrs).map_err(|error| named(call, &error))?;
    let dims = stated(call, sizes)?;
    call.expect_rank(other, 4)?;
    call.expect_rank(2, 4)?;
    call.give(0, Some(DType::F32), dims);
    Ok(())
}

fn resized(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    let [n, _, _, channels] = four(call, &x, "images [batch, height, width, channels]")?;
    if call.attrs.flag("align_corners") && call.attrs.flag("half_pixel_centers") {
        return Err(call.error("expected align_corners or half_pixel_centers, found both"));
    }
    let (height, width) = match call.input(1).numbers().as_deref() {
        Some(&[height, width]) if height > 0 && width > 0 => {
            (Dim::Known(height), Dim::Known(width))
        }
        Some(found) => {
            return Err(call.error(format_args!(
                "expected a height and a width above 0, found {found:?}"
            )));
        }
        None => (Dim::Unknown, Dim::Unknown),
    };
    let dims = [n, height, width, channels].into_iter().collect();
    call.give(0, x.dtype, Some(dims));
    Ok(())
}

fn pool(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let is_first = format_of(call)?;
    let x = call.input(0).clone();
    let sizes = per_dimension(&call.attrs, "ksize").map_err(|error| named(call, &error))?;
    let sizes =
        sizes.ok_or_else(|| call.error("expected attribute 'ksize' to have extents, found []"))?;
    let windows = Windows::of(&call.attrs).map_err(|error| named(call, &error))?;
    let [n, height, width, channels] = pixels(call, &x, is_first)?;
    let of = |at: usize, input: &Dim| {
        let output = windows.output(at, &Dim::from(sizes[at]), input);
        output.map_err(|error| named(call, &error))
    };
    let dims = in_order(is_first, [n, of(0, &height)?, of(1, &width)?, channels]);
    call.give(0, x.dtype, Some(dims));
    Ok(())
}

fn norm(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let is_first = format_of(call)?;
    if call.attrs.flag("is_training") {
        // The original runtime's words.
        return Err(InferError::new(
            "BatchNorm training not currently supported",
        ));
    }
    let x = call.input(0).clone();
    let channels = match x.dims.as_deref() {
        Some([]) => return Err(call.error("expected a dimension of channels, found shape []")),
        Some([_]) if is_first => {
            return Err(call.error("expected a dimension of channels behind the batch, found one"));
        }
        Some([_, channels, ..]) if is_first => channels.value(),
        Some([.., channels]) => channels.value(),
        None => None,
    };
    for index in 1..5 {
        let own = call.input(index).n_elements().value();
        if own
            .zip(channels)
            .is_some_and(|(own, channels)| own != channels)
        {
            let (x, found) = (text(&x), text(call.input(index)));
            return Err(call.error(format_args!(
                "parameter does not match the input channel number: expected scale, offset, mean and variance with an \
                 element for each channel of {x}, found {found}"
            )));
        }
    }
    let [mean, variance] = [3, 4].map(|index| call.input(index).clone());
    for (index, fact) in [&x, &mean, &variance, &mean, &variance]
        .into_iter()
        .enumerate()
    {
        call.give(index, fact.dtype.or(x.dtype), fact.dims.clone());
    }
    call.give(5, x.dtype, Some([Dim::Known(0)].into_iter().collect()));
    Ok(())
}

fn fold(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let filter = call.input(0).clone();
    let filters = match filter.dims.as_deref() {
        Some([]) => {
            return Err(call.error("expected a filter of one dimension or more, found shape []"));
        }
        Some([.., filters]) => filters.clone(),
        None => Dim::Unknown,
    };
    expect_lists(call, 1..5, &filters)?;
    call.give(0, filter.dtype, filter.dims);
    call.give(1, Some(DType::F32), Some([filters].into_iter().collect()));
    Ok(())
}

fn packed(call: &mut InferCall<'_>) -> Result<(), InferError> {
    four(
        call,
        call.input(0),
        "a filter [height, width, channels, filters]",
    )?;
    for name in ["strides", "dilations"] {
        per_dimension(&call.attrs, name).map_err(|error| named(call, &error))?;
    }
    groups(call)?;
    // How many elements it has is up to the processor.
    call.give(
        0,
        Some(DType::F32),
        Some([Dim::Unknown].into_iter().collect()),
    );
    Ok(())
}
