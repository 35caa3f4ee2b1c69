//! Pooling: maxima, means and norms of windows; and unpooling.

use tfrt_host::Error;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::pool::{
    Pooling, WindowFunction, channels_first_extents, largest_positions_into, pool_by_into,
    pool_channels_first_into,
};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{DType, Dims};

use super::windows::SpatialAttributes;
use super::{NodeCall, Operations, Outputs, with_real};

pub(super) const OPERATIONS: &Operations = &[("onnx.MaxUnpool", unpool), ("pool", pool)];

/// `pool`: the largest element of each window, or the mean, or a norm, as `kind` says; `whole` for one window over an
/// image.
fn pool(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let is_whole = node.attributes.flag("whole", false)?;
    match (node.kind()?, is_whole) {
        ("max", false) => maximum(node),
        ("max", true) => global(node, Some(Pooling::Maximum)),
        ("mean", false) => average(node),
        ("mean", true) => global(node, Some(Pooling::Mean)),
        ("lp", false) => norm(node),
        ("lp", true) => global(node, None),
        (other, _) => Err(node.unknown_kind(other, "max, mean or lp")),
    }
}

/// Returns the extents of an image, which has at least one dimension behind those of batch and channels.
pub(super) fn image(node: &NodeCall<'_>) -> Result<Dims, Error> {
    let extents = node.inputs.dense(0)?.shape().to_dims();
    match extents.len() {
        0..=2 => Err(node.inputs.error(
            0,
            format_args!("is expected to be [batch, channels, spatial..], found {extents:?}"),
        )),
        _ => Ok(extents),
    }
}

/// Returns the windows of a pooling, the padding behind that counts, and the extents of the result.
fn laid(node: &NodeCall<'_>) -> Result<(Vec<Window>, Vec<usize>, Dims), Error> {
    let extents = image(node)?;
    let spatial = SpatialAttributes::of(node, extents.len() - 2, None)?;
    let (windows, behind) = spatial.pooled(node, &extents[2..])?;
    let output =
        channels_first_extents(&extents, &windows).map_err(|error| node.with_name(&error))?;
    Ok((windows, behind, output))
}

fn maximum(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    let (windows, _, output) = laid(node)?;
    let out = node.output(dtype, &output)?;
    let execution = node.execution;
    node.inputs.expect(0, Family::Reals)?;
    let chain = pool_channels_first_into(execution, Pooling::Maximum, x, &windows, &out)?;
    let outputs = Outputs::later(out, chain);
    if node.n_results < 2 {
        return Ok(outputs);
    }
    let by_columns = node.attributes.flag("storage_order", false)?;
    let indices = node.output(DType::I64, &output)?;
    let chain = largest_positions_into(execution, by_columns, x, &windows, &indices)?;
    Ok(outputs.and_later(indices, chain))
}

fn average(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    let (windows, behind, output) = laid(node)?;
    let counts_padding = node.attributes.flag("count_include_pad", false)?;
    let out = node.output(dtype, &output)?;
    let execution = node.execution;
    node.inputs.expect(0, Family::Floats)?;
    // What windows reach beyond the padding that is stated does not count.
    let rounds_up = node.attributes.flag("ceil_mode", false)?;
    let chain = match counts_padding {
        false => pool_channels_first_into(execution, Pooling::Mean, x, &windows, &out)?,
        true if !rounds_up => {
            pool_channels_first_into(execution, Pooling::MeanWithPadding, x, &windows, &out)?
        }
        true => pool_by_into(execution, WindowFunction::Mean, x, &windows, &behind, &out)?,
    };
    Ok(Outputs::later(out, chain))
}

fn exponent(node: &NodeCall<'_>) -> Result<f64, Error> {
    // It was a float once.
    let p = match node.attributes.float("p") {
        Ok(Some(p)) => f64::from(p),
        _ => {
            let p = node.attributes.integer_or("p", 2)?;
            f64::from(i32::try_from(p).unwrap_or(i32::MAX))
        }
    };
    if p > 0.0 {
        return Ok(p);
    }
    Err(node
        .attributes
        .error("p", format_args!("is expected to be above 0, found {p}")))
}

fn norm(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    let p = exponent(node)?;
    let (windows, behind, output) = laid(node)?;
    let out = node.output(dtype, &output)?;
    node.inputs.expect(0, Family::Floats)?;
    let chain = pool_by_into(
        node.execution,
        WindowFunction::Norm(p),
        x,
        &windows,
        &behind,
        &out,
    )?;
    Ok(Outputs::later(out, chain))
}

/// Pools with one window over an image.
fn global(node: &NodeCall<'_>, pooling: Option<Pooling>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), image(node)?);
    let windows: Vec<Window> = extents[2..]
        .iter()
        .map(|extent| Window::new(*extent, 1, Padding::Valid))
        .collect();
    let output =
        channels_first_extents(&extents, &windows).map_err(|error| node.with_name(&error))?;
    let out = node.output(dtype, &output)?;
    let execution = node.execution;
    node.inputs.expect(0, Family::Floats)?;
    let chain = match pooling {
        Some(pooling) => pool_channels_first_into(execution, pooling, x, &windows, &out)?,
        None => {
            let (p, behind) = (exponent(node)?, vec![0; windows.len()]);
            pool_by_into(
                execution,
                WindowFunction::Norm(p),
                x,
                &windows,
                &behind,
                &out,
            )?
        }
    };
    Ok(Outputs::later(out, chain))
}

/// `MaxUnpool`: writes elements at the positions where `MaxPool` found them, and zeros elsewhere. The positions are
/// those in a tensor of the extents that the attributes give; the result may be larger.
fn unpool(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, positions) = (node.inputs.dense(0)?, node.inputs.integers(1)?);
    let (dtype, extents) = (x.dtype(), image(node)?);
    let rank = extents.len() - 2;
    let spatial = SpatialAttributes::of(node, rank, None)?;
    let mut inferred = Dims::from_slice(&extents[..2]);
    for index in 0..rank {
        let (before, behind) = spatial.stated(node, index)?;
        let own = extents[index + 2]
            .checked_sub(1)
            .and_then(|n| n.checked_mul(spatial.strides[index]));
        let extent = own.and_then(|n| {
            n.checked_add(spatial.kernel[index])?
                .checked_sub(before.checked_add(behind)?)
        });
        inferred.push(
            extent.ok_or_else(|| {
                node.error(format_args!("nothing is left of extents {extents:?}"))
            })?,
        );
    }
    let output = match node.inputs.optional_integers(2)? {
        None => inferred.clone(),
        Some(list) => {
            let list: Result<Dims, _> =
                list.iter().map(|extent| usize::try_from(*extent)).collect();
            let list = list.map_err(|_| node.inputs.error(2, "has a negative extent"))?;
            let is_smaller =
                list.len() != inferred.len() || list.iter().zip(&inferred).any(|(a, b)| a < b);
            if is_smaller {
                let message = format_args!("is smaller than extents {inferred:?}");
                return Err(node.inputs.error(2, message));
            }
            list
        }
    };
    if positions.len() != x.n_elements() {
        let (found, wanted) = (positions.len(), x.n_elements());
        return Err(node.inputs.error(
            1,
            format_args!("has {found} positions for {wanted} elements"),
        ));
    }
    let out = node.zeros(dtype, &output)?;
    let n_elements = inferred
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    let n_elements =
        n_elements.ok_or_else(|| node.error("the result exceeds the largest integer"))?;
    with_real!(dtype, T => {
        let reading = x.read()?;
        let mut writing = out.write()?;
        let elements = writing.elements_mut::<T>()?;
        for (x, position) in reading.elements::<T>()?.iter().zip(&positions) {
            let place = usize::try_from(*position).ok().filter(|place| *place < n_elements);
            let place = place.ok_or_else(|| node.inputs.error(1, format_args!("has no such position: {position}")))?;
            elements[moved(place, &inferred, &output)] = *x;
        }
        drop(writing);
        Ok(out.into())
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// Returns the position of an element in a tensor that is larger in some dimensions.
fn moved(mut place: usize, from: &[usize], to: &[usize]) -> usize {
    let (mut moved, mut stride) = (0, 1);
    for (own, other) in from.iter().zip(to).rev() {
        moved += place % own * stride;
        place /= own;
        stride *= other;
    }
    moved
}
