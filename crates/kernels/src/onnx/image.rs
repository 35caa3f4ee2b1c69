//! Operations that resize and resample pictures.

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::resize::{
    NearestMode, OnnxCoordinates, OnnxResize, OnnxResizeAxis, OnnxResizeKernel, OnnxResizeOptions,
};
use tfrt_tensor::math::sample::{GridSample, PaddingMode, Sampling, grid_sample_into};

use super::{NodeCall, Operations, Outputs, with_floating};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.AffineGrid", affine_grid),
    ("onnx.GridSample", grid_sample),
    ("resize", resize),
    ("onnx.Upsample", resize),
];

/// Returns whether an operation is of a version before 11, with factors only and one kind of coordinates.
fn is_old(node: &NodeCall<'_>) -> bool {
    node.name == "Upsample" || node.opset < 11
}

/// Returns the rounding of versions that had no choice: to the element below; where the first `Resize` makes a
/// picture smaller, to the one above.
fn old_rounding(node: &NodeCall<'_>) -> Result<&'static str, Error> {
    let is_nearest = node.attributes.string_or("mode", "nearest")? == "nearest";
    if node.name == "Upsample" || !is_nearest {
        return Ok("floor");
    }
    let scales = node.inputs.numbers(1)?;
    let all = |is: fn(&f64) -> bool| scales.iter().all(is);
    match (all(|scale| *scale >= 1.0), all(|scale| *scale <= 1.0)) {
        (true, _) => Ok("floor"),
        (_, true) => Ok("ceil"),
        _ => {
            let message = "makes a picture larger along one dimension and smaller along another: \
                           in version 10 that is not supported";
            Err(node.inputs.error(1, message))
        }
    }
}

fn scaling(node: &NodeCall<'_>) -> Result<OnnxResizeOptions, Error> {
    let (places, nearest) = match is_old(node) {
        true => ("asymmetric", old_rounding(node)?),
        false => (
            node.attributes.string_or("coordinates", "half_pixel")?,
            node.attributes
                .string_or("nearest_mode", "round_prefer_floor")?,
        ),
    };
    let unknown = |name: &str, found: &str| {
        node.attributes.error(
            name,
            format_args!("is not recognized: '{}'", found.escape_debug()),
        )
    };
    let places = match places {
        "half_pixel" => OnnxCoordinates::HalfPixel,
        "half_pixel_symmetric" => OnnxCoordinates::HalfPixelSymmetric,
        "pytorch_half_pixel" => OnnxCoordinates::PytorchHalfPixel,
        "align_corners" => OnnxCoordinates::AlignCorners,
        "asymmetric" => OnnxCoordinates::Asymmetric,
        "tf_half_pixel_for_nn" => OnnxCoordinates::HalfPixelForNearest,
        "tf_crop_and_resize" => OnnxCoordinates::CropAndResize,
        other => return Err(unknown("coordinates", other)),
    };
    let rounding = match nearest {
        "round_prefer_floor" => NearestMode::HalfDown,
        "round_prefer_ceil" => NearestMode::HalfUp,
        "floor" => NearestMode::Floor,
        "ceil" => NearestMode::Ceil,
        other => return Err(unknown("nearest_mode", other)),
    };
    let blend = match node.attributes.string_or("mode", "nearest")? {
        "nearest" => OnnxResizeKernel::Nearest(rounding),
        "linear" | "bilinear" => OnnxResizeKernel::Linear,
        "cubic" | "bicubic" => {
            OnnxResizeKernel::Cubic(node.attributes.float_or("cubic_coeff_a", -0.75)?.into())
        }
        other => return Err(unknown("mode", other)),
    };
    Ok(OnnxResizeOptions {
        blend,
        places,
        antialias: node.attributes.flag("antialias", false)?,
        exclude_outside: node.attributes.flag("exclude_outside", false)?,
        extrapolation: node.attributes.float_or("extrapolation_value", 0.0)?.into(),
    })
}

/// Returns how each dimension is resized, by factors or extents.
fn dimensions(node: &NodeCall<'_>, extents: &[usize]) -> Result<Vec<OnnxResizeAxis>, Error> {
    let axes = match node.attributes.integers("axes")? {
        None => (0..extents.len()).collect(),
        Some(axes) => axes
            .iter()
            .map(|axis| node.axis(*axis, extents.len()))
            .collect::<Result<Vec<_>, _>>()?,
    };
    let whole = |extent: &usize| OnnxResizeAxis {
        input: *extent,
        output: *extent,
        scale: 1.0,
        part: (0.0, 1.0),
    };
    let mut list: Vec<OnnxResizeAxis> = extents.iter().map(whole).collect();
    let (scales_at, sizes_at) = if is_old(node) {
        (1, usize::MAX)
    } else {
        (2, 3)
    };
    let wrong = |index: usize, found: usize| {
        let wanted = axes.len();
        node.inputs.error(
            index,
            format_args!("is expected to have {wanted} elements, found {found}"),
        )
    };
    if !is_old(node)
        && node
            .inputs
            .optional_dense(1)?
            .is_some_and(|roi| roi.n_elements() > 0)
    {
        let roi = node.inputs.numbers(1)?;
        if roi.len() != 2 * axes.len() {
            // It counts for one kind of coordinates only.
            let places = node.attributes.string_or("coordinates", "half_pixel")?;
            if places == "tf_crop_and_resize" {
                return Err(node.inputs.error(
                    1,
                    format_args!("is expected to have {} elements", 2 * axes.len()),
                ));
            }
        } else {
            for (index, axis) in axes.iter().enumerate() {
                list[*axis].part = (roi[index], roi[index + axes.len()]);
            }
        }
    }
    let stated = node.attributes.floats("scales")?;
    let given = match (stated, node.inputs.optional_dense(scales_at)?) {
        (Some(scales), _) => Some(scales.iter().map(|scale| f64::from(*scale)).collect()),
        (None, Some(scales)) if scales.n_elements() > 0 => Some(node.inputs.numbers(scales_at)?),
        _ => None,
    };
    if let Some(scales) = given {
        if scales.len() != axes.len() {
            return Err(wrong(scales_at, scales.len()));
        }
        for (axis, scale) in axes.iter().zip(scales) {
            let along = &mut list[*axis];
            along.scale = scale;
            along.output = scaled(node, along.input, scale)?;
        }
        return Ok(list);
    }
    let sizes = node.inputs.integers(sizes_at)?;
    if sizes.len() != axes.len() {
        return Err(wrong(sizes_at, sizes.len()));
    }
    let sizes: Option<Vec<usize>> = sizes
        .iter()
        .map(|size| usize::try_from(*size).ok())
        .collect();
    let sizes = sizes.ok_or_else(|| node.inputs.error(sizes_at, "has a negative extent"))?;
    #[allow(clippy::cast_precision_loss, reason = "extents of pictures are small")]
    let ratio = |axis: usize, size: usize| size as f64 / extents[axis].max(1) as f64;
    let ratios = axes
        .iter()
        .zip(&sizes)
        .map(|(axis, size)| ratio(*axis, *size));
    let common = match node
        .attributes
        .string_or("keep_aspect_ratio_policy", "stretch")?
    {
        "stretch" => None,
        "not_larger" => Some(ratios.fold(f64::INFINITY, f64::min)),
        "not_smaller" => Some(ratios.fold(0.0, f64::max)),
        other => {
            let message = format_args!("is not recognized: '{}'", other.escape_debug());
            return Err(node.attributes.error("keep_aspect_ratio_policy", message));
        }
    };
    for (axis, size) in axes.iter().zip(sizes) {
        let along = &mut list[*axis];
        match common {
            None => (along.scale, along.output) = (ratio(*axis, size), size),
            Some(scale) => {
                #[allow(clippy::cast_precision_loss, reason = "extents of pictures are small")]
                let wanted = (along.input as f64 * scale + 0.5).floor();
                (along.scale, along.output) = (scale, whole_extent(node, wanted)?);
            }
        }
        // Of nothing, nothing is made by any factor.
        if along.output == 0 {
            along.scale = 1.0;
        }
    }
    Ok(list)
}

/// Returns an extent times a factor, in the precision of factors.
fn scaled(node: &NodeCall<'_>, extent: usize, scale: f64) -> Result<usize, Error> {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "as factors are stated"
    )]
    let wanted = (extent as f32 * scale as f32).floor();
    whole_extent(node, wanted.into())
}

fn whole_extent(node: &NodeCall<'_>, wanted: f64) -> Result<usize, Error> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and in range"
    )]
    match (0.0..MOST).contains(&wanted) {
        true => Ok(wanted as usize),
        false => Err(node.error(format_args!("{wanted} is no extent"))),
    }
}

fn resize(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, scaling) = (x.dtype(), scaling(node)?);
    let dimensions = dimensions(node, &x.shape().to_dims())?;
    let output: Vec<usize> = dimensions.iter().map(|along| along.output).collect();
    let out = node.output(dtype, &output)?;
    node.workspace
        .reserve(scaling.bytes_aside(&dimensions), 1)?;
    let scaled = OnnxResize::new(&scaling, &dimensions).map_err(|error| node.with_name(&error))?;
    let is_picked = matches!(scaling.blend, OnnxResizeKernel::Nearest(_))
        && scaling.places != OnnxCoordinates::CropAndResize;
    if !is_picked {
        node.inputs.expect(0, Family::Reals)?;
    }
    let chain = scaled.run_into(node.execution, x, &out)?;
    Ok(Outputs::later(out, chain))
}

fn grid_sample(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, grid) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    let (dtype, extents, places) = (x.dtype(), x.shape().to_dims(), grid.shape().to_dims());
    let unknown = |name: &str, found: &str| {
        node.attributes.error(
            name,
            format_args!("is not recognized: '{}'", found.escape_debug()),
        )
    };
    let options = GridSample {
        sampling: match node.attributes.string_or("mode", "linear")? {
            "nearest" => Sampling::Nearest,
            "linear" | "bilinear" => Sampling::Linear,
            "cubic" | "bicubic" => Sampling::Cubic,
            other => return Err(unknown("mode", other)),
        },
        outside: match node.attributes.string_or("padding_mode", "zeros")? {
            "zeros" => PaddingMode::Zeros,
            "border" => PaddingMode::Border,
            "reflection" => PaddingMode::Reflection,
            other => return Err(unknown("padding_mode", other)),
        },
        align_corners: node.attributes.flag("align_corners", false)?,
    };
    if extents.len() < 3 || places.len() != extents.len() {
        return Err(node.error(format_args!(
            "a grid of {places:?} does not fit a picture of {extents:?}"
        )));
    }
    let mut output = extents.clone();
    output.truncate(2);
    output.extend_from_slice(&places[1..places.len() - 1]);
    let out = node.output(dtype, &output)?;
    node.inputs.expect(0, Family::Reals)?;
    node.inputs.expect(1, Family::Floats)?;
    let chain = grid_sample_into(node.execution, options, x, grid, &out);
    Ok(Outputs::later(
        out,
        chain.map_err(|error| node.with_name(&error))?,
    ))
}

/// `AffineGrid`: the coordinates of a picture's elements under an affine map, from -1 to 1.
fn affine_grid(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let theta = node.inputs.dense(0)?;
    let (dtype, maps) = (theta.dtype(), node.inputs.extents(0, 3)?);
    let size: Option<Vec<usize>> = node
        .inputs
        .integers(1)?
        .iter()
        .map(|one| usize::try_from(*one).ok())
        .collect();
    let size = size.unwrap_or_default();
    let rank = size.len().saturating_sub(2);
    if !(1..=3).contains(&rank) || maps[..] != [size[0], rank, rank + 1] {
        return Err(node.error(format_args!(
            "maps of extents {maps:?} don't fit a picture of {size:?}"
        )));
    }
    let align_corners = node.attributes.flag("align_corners", false)?;
    let mut extents = vec![size[0]];
    extents.extend_from_slice(&size[2..]);
    extents.push(rank);
    let out = node.zeros(DType::F64, &extents)?;
    let numbers = node.inputs.numbers(0)?;
    let mut writing = out.write()?;
    let spatial = &size[2..];
    let places: usize = spatial.iter().product();
    for (index, out) in writing.elements_mut::<f64>()?.chunks_mut(rank).enumerate() {
        let map = &numbers[index / places * rank * (rank + 1)..][..rank * (rank + 1)];
        // The last dimension first.
        let (mut rest, mut at) = (index % places, Vec::with_capacity(rank + 1));
        for extent in spatial.iter().rev() {
            #[allow(clippy::cast_precision_loss, reason = "extents of pictures are small")]
            let (place, n) = ((rest % extent) as f64, *extent as f64);
            rest /= extent;
            at.push(match align_corners {
                true if n > 1.0 => 2.0 * place / (n - 1.0) - 1.0,
                true => -1.0,
                false => (2.0 * place + 1.0) / n - 1.0,
            });
        }
        at.push(1.0);
        for (row, out) in out.iter_mut().enumerate() {
            let row = &map[row * (rank + 1)..][..=rank];
            *out = row.iter().zip(&at).map(|(factor, at)| factor * at).sum();
        }
    }
    drop(writing);
    with_floating!(dtype, T => {
        let reading = out.read()?;
        let narrow: Vec<T> = reading.elements::<f64>()?.iter().map(|one| T::from_f64(*one)).collect();
        Ok(node.tensor_of(&extents, &narrow)?.into())
    }, else Err(node.inputs.unsupported(0, dtype)))
}
