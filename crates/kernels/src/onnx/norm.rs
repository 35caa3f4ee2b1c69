//! Normalisation: batch, layer, group, local response, norms; and dropout, which is the identity but in training.

use tfrt_host::Error;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::groups::{Groups, groups_into};
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::math::lrn::{Lrn, lp_norm_into, lrn_into};
use tfrt_tensor::math::normalize::{
    RowNorm, channel_affine_into, channel_moments, row_moments, rows_into,
};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::{Bool, DType, DenseHostTensor};

use super::{NodeCall, Operations, Outputs, with_floating};

mod twister;

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.Dropout", dropout),
    ("lrn", neighbours),
    ("onnx.LpNormalization", norm),
    ("onnx.MeanVarianceNormalization", mean_variance),
    ("norm", normalize),
];

/// `norm`: normalises by the statistics that `kind` names.
fn normalize(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    match node.kind()? {
        "batch" => batch(node),
        "instance" => instance(node),
        "group" => group(node),
        "layer" => rows(node, RowNorm::Variance),
        "rms" => rows(node, RowNorm::RootMeanSquare),
        other => Err(node.unknown_kind(other, "batch, instance, group, layer or rms")),
    }
}

/// `batch`: normalises by given statistics, or in training by those of the batch.
fn batch(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    let epsilon = f64::from(node.attributes.float_or("epsilon", 1e-5)?);
    let momentum = f64::from(node.attributes.float_or("momentum", 0.9)?);
    let is_training = node.attributes.flag("training", false)?;
    let lists = [1, 2, 3, 4].map(|index| node.inputs.numbers(index));
    let [scale, shift, mean, variance] = lists;
    let (scale, shift, mean, variance) = (scale?, shift?, mean?, variance?);
    let channels = x.shape().extent(1).unwrap_or(1);
    for (index, list) in [&scale, &shift, &mean, &variance].into_iter().enumerate() {
        if list.len() != channels {
            let found = list.len();
            let message = format_args!("is expected to have {channels} elements, found {found}");
            return Err(node.inputs.error(index + 1, message));
        }
    }
    let extents = x.shape().to_dims();
    // Beside the four lists: means and variances, factors and summands, wide and as elements.
    node.workspace.reserve(channels, 6 * size_of::<f64>())?;
    node.inputs.expect(0, Family::Floats)?;
    let out = node.output(dtype, &extents)?;
    let (own_mean, own_variance) = match is_training {
        true => channel_moments(x)?,
        false => (mean.clone(), variance.clone()),
    };
    let pairs = scale.iter().zip(&own_variance);
    let factors: Vec<f64> = pairs
        .map(|(scale, variance)| scale / (variance + epsilon).sqrt())
        .collect();
    let summands = shift.iter().zip(own_mean.iter().zip(&factors));
    let summands: Vec<f64> = summands
        .map(|(shift, (mean, factor))| shift - mean * factor)
        .collect();
    let chain = channel_affine_into(node.execution, x, factors, summands, &out)
        .map_err(|error| node.with_name(&error))?;
    let outputs = Outputs::later(out, chain);
    if !is_training {
        return Ok(outputs);
    }
    let moved = |old: &[f64], new: &[f64], index: usize| -> Result<DenseHostTensor, Error> {
        let wanted = node.inputs.dense(index)?.dtype();
        let moved = old
            .iter()
            .zip(new)
            .map(|(old, new)| old * momentum + new * (1.0 - momentum));
        with_floating!(wanted, U => {
            let moved: Vec<U> = moved.map(U::from_f64).collect();
            node.tensor_of(&[moved.len()], &moved)
        }, else Err(node.inputs.unsupported(index, wanted)))
    };
    let (mean, variance) = (
        moved(&mean, &own_mean, 3)?,
        moved(&variance, &own_variance, 4)?,
    );
    Ok(outputs.and_tensor(mean).and_tensor(variance))
}

/// `layer` and `rms`: normalise rows, which are all dimensions from `axis` on.
fn rows(node: &NodeCall<'_>, norm: RowNorm) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    let axis = node.axis(node.attributes.integer_or("axis", -1)?, extents.len())?;
    let epsilon = f64::from(node.attributes.float_or("epsilon", 1e-5)?);
    let row_extents = &extents[axis..];
    let row = row_extents
        .iter()
        .fold(1_usize, |n, extent| n.saturating_mul(*extent));
    // Scales may have fewer dimensions than rows.
    let whole = |index: usize| -> Result<Option<DenseHostTensor>, Error> {
        let Some(list) = node.inputs.optional_dense(index)? else {
            return Ok(None);
        };
        if list.shape().to_dims()[..] == *row_extents {
            return Ok(Some(list.clone()));
        }
        let movement = LayoutCopy::broadcast(&list.shape().to_dims(), row_extents)
            .map_err(|error| node.inputs.error(index, error.message()))?;
        let out = node.output(list.dtype(), row_extents)?;
        let chain = movement.run_into(node.execution, list, &out)?;
        match chain.is_settled() {
            true => Ok(Some(out)),
            false => Err(node.inputs.error(index, "is too large to be repeated")),
        }
    };
    let (scale, shift) = (whole(1)?, whole(2)?);
    let out = node.output(dtype, &extents)?;
    node.inputs.expect(0, Family::Floats)?;
    let lists = [scale.as_ref(), shift.as_ref()];
    let chain = rows_into(node.execution, (norm, row, epsilon), x, lists, &out)
        .map_err(|error| node.with_name(&error))?;
    let outputs = Outputs::later(out, chain);
    if node.n_results < 2 || norm != RowNorm::Variance {
        return Ok(outputs);
    }
    let (means, inverses) = row_moments(x, row, epsilon)?;
    let mut kept = extents;
    kept[axis..].fill(1);
    let (means, inverses) = (
        node.tensor_of(&kept, &means)?,
        node.tensor_of(&kept, &inverses)?,
    );
    Ok(outputs.and_tensor(means).and_tensor(inverses))
}

fn in_groups(
    node: &NodeCall<'_>,
    n_groups: usize,
    [scale, shift]: [&DenseHostTensor; 2],
) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    let epsilon = f64::from(node.attributes.float_or("epsilon", 1e-5)?);
    let out = node.output(dtype, &x.shape().to_dims())?;
    node.inputs.expect(0, Family::Floats)?;
    let groups = Groups {
        dimension: 1,
        n_groups,
        epsilon,
    };
    let chain = groups_into(node.execution, x, &groups, [Some(scale), Some(shift)], &out)
        .map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

fn instance(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let channels = node.inputs.dense(0)?.shape().extent(1).unwrap_or(1);
    in_groups(
        node,
        channels,
        [node.inputs.dense(1)?, node.inputs.dense(2)?],
    )
}

/// `group`: normalises groups of channels. Before version 21 scales are those of groups, since then those of
/// channels.
fn group(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    if x.n_elements() == 0 {
        // Its channels may be any number, and scales of groups are not to be repeated as often.
        return Ok(x.clone().into());
    }
    let n_groups = node.attributes.size_or("groups", 0)?;
    let channels = x.shape().extent(1).unwrap_or(1);
    let repeated = |index: usize| -> Result<DenseHostTensor, Error> {
        let list = node.inputs.dense(index)?;
        if list.n_elements() == channels || list.n_elements() != n_groups || n_groups == 0 {
            return Ok(list.clone());
        }
        let (times, dtype) = (channels / n_groups, list.dtype());
        with_floating!(dtype, T => {
            let reading = list.read()?;
            let each = reading.elements::<T>()?.iter().flat_map(|one| std::iter::repeat_n(*one, times));
            let each: Vec<T> = each.collect();
            node.tensor_of(&[each.len()], &each)
        }, else Err(node.inputs.unsupported(index, dtype)))
    };
    let (scale, shift) = (repeated(1)?, repeated(2)?);
    in_groups(node, n_groups, [&scale, &shift])
}

fn neighbours(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    let size = node.attributes.size_or("size", 0)?;
    if size == 0 {
        return Err(node
            .attributes
            .error("size", "is expected to be stated, and above 0"));
    }
    let neighbours = Lrn {
        size,
        alpha: node.attributes.float_or("alpha", 0.0001)?.into(),
        beta: node.attributes.float_or("beta", 0.75)?.into(),
        bias: node.attributes.float_or("bias", 1.0)?.into(),
    };
    let out = node.output(dtype, &x.shape().to_dims())?;
    node.inputs.expect(0, Family::Floats)?;
    let chain =
        lrn_into(node.execution, neighbours, x, &out).map_err(|error| node.with_name(&error))?;
    Ok(Outputs::later(out, chain))
}

fn norm(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    let axis = node.axis(node.attributes.integer_or("axis", -1)?, extents.len())?;
    let is_of_squares = match node.attributes.integer_or("p", 2)? {
        1 => false,
        2 => true,
        p => {
            return Err(node
                .attributes
                .error("p", format_args!("is expected to be 1 or 2, found {p}")));
        }
    };
    let out = node.output(dtype, &extents)?;
    node.inputs.expect(0, Family::Floats)?;
    let chain = lp_norm_into(node.execution, axis, is_of_squares, x, &out)?;
    Ok(Outputs::later(out, chain))
}

/// `MeanVarianceNormalization`: normalises over the dimensions `axes`; the root of the variance is at least 1e-9.
fn mean_variance(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    let mut is_reduced = vec![false; extents.len()];
    for axis in node.attributes.integers("axes")?.unwrap_or(&[0, 2, 3]) {
        is_reduced[node.axis(*axis, extents.len())?] = true;
    }
    // Which of the results an element belongs to.
    let mut n_kept = 1_usize;
    let mut strides = vec![0; extents.len()];
    for dimension in (0..extents.len()).rev() {
        if !is_reduced[dimension] {
            strides[dimension] = n_kept;
            n_kept = n_kept.saturating_mul(extents[dimension]);
        }
    }
    let belongs = |mut index: usize| {
        let mut place = 0;
        for dimension in (0..extents.len()).rev() {
            place += index % extents[dimension] * strides[dimension];
            index /= extents[dimension];
        }
        place
    };
    with_floating!(dtype, T => {
        let reading = x.read()?;
        let elements = reading.elements::<T>()?;
        if elements.is_empty() {
            return Ok(x.clone().into());
        }
        node.workspace.reserve(n_kept, 2 * size_of::<f64>())?;
        node.workspace.reserve(elements.len(), size_of::<T>())?;
        let (mut sums, mut squares) = (vec![0.0; n_kept], vec![0.0; n_kept]);
        #[allow(clippy::cast_precision_loss, reason = "of 2^53 numbers it is rounded")]
        let n = (elements.len() / n_kept) as f64;
        for (index, one) in elements.iter().enumerate() {
            sums[belongs(index)] += one.to_f64() / n;
        }
        for (index, one) in elements.iter().enumerate() {
            let place = belongs(index);
            squares[place] += (one.to_f64() - sums[place]).powi(2) / n;
        }
        let results = elements.iter().enumerate().map(|(index, one)| {
            let place = belongs(index);
            T::from_f64((one.to_f64() - sums[place]) / (squares[place].sqrt() + 1e-9))
        });
        let results: Vec<T> = results.collect();
        Ok(node.tensor_of(&extents, &results)?.into())
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// `Dropout`: in training sets some elements to 0, by the numbers that NumPy draws from the same seed.
fn dropout(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    let ratio = match (node.inputs.has(1), node.attributes.float("ratio")?) {
        (true, _) => node.inputs.number(1)?,
        (false, ratio) => f64::from(ratio.unwrap_or(0.5)),
    };
    let is_training = node.inputs.has(2) && node.inputs.truth(2)?;
    if !(0.0..1.0).contains(&ratio) {
        return Err(node.error(format_args!(
            "the ratio is expected to be at least 0 and below 1, found {ratio}"
        )));
    }
    if !is_training || ratio == 0.0 {
        let outputs = Outputs::from(x.clone());
        if node.n_results < 2 {
            return Ok(outputs);
        }
        let mask = node.output(DType::I1, &extents)?;
        mask.write()?.bytes_mut().fill(1);
        return Ok(outputs.and_tensor(mask));
    }
    let seed = node.attributes.integer_or("seed", 0)?;
    let mut numbers = twister::Twister::new(seed);
    let kept: Vec<Bool> = (0..x.n_elements())
        .map(|_| Bool::from(numbers.uniform() >= ratio))
        .collect();
    let mask = node.tensor_of(&extents, &kept)?;
    let out = node.output(dtype, &extents)?;
    let scale = 1.0 / (1.0 - ratio);
    with_floating!(dtype, T => {
        let reading = x.read()?;
        let mut writing = out.write()?;
        let results = writing.elements_mut::<T>()?.iter_mut();
        for ((out, x), kept) in results.zip(reading.elements::<T>()?).zip(&kept) {
            *out = if bool::from(*kept) { T::from_f64(x.to_f64() * scale) } else { T::from_f64(0.0) };
        }
        drop(writing);
        Ok(Outputs::from(out).and_tensor(mask))
    }, else Err(node.inputs.unsupported(0, dtype)))
}
