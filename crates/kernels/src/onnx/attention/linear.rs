//! Linear attention, by a state that goes from position to position, and causal convolutions.

use tfrt_host::Error;
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::recurrent::{LinearAttention, linear_attention};

use crate::onnx::{NodeCall, Outputs, with_floating};

/// Makes a tensor of numbers, of the type of another tensor.
fn typed(
    node: &NodeCall<'_>,
    like: &DenseHostTensor,
    extents: &[usize],
    numbers: &[f64],
) -> Result<DenseHostTensor, Error> {
    let dtype = like.dtype();
    with_floating!(dtype, T => {
        let narrow: Vec<T> = numbers.iter().map(|one| T::from_f64(*one)).collect();
        node.tensor_of(extents, &narrow)
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// `LinearAttention`
pub(super) fn linear(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let query = node.inputs.dense(0)?;
    let shapes = [
        node.inputs.extents(0, 3)?,
        node.inputs.extents(1, 3)?,
        node.inputs.extents(2, 3)?,
    ];
    let (heads, key_heads) = (
        node.attributes.size_or("q_num_heads", 0)?,
        node.attributes.size_or("kv_num_heads", 0)?,
    );
    let (batch, length) = (shapes[0][0], shapes[0][1]);
    let fits = key_heads > 0
        && heads % key_heads.max(1) == 0
        && heads > 0
        && shapes.iter().all(|shape| shape[..2] == [batch, length])
        && shapes[0][2] % heads == 0
        && shapes[2][2] % key_heads == 0
        && shapes[1][2] == shapes[0][2] / heads * key_heads;
    if !fits {
        let [q, k, v] = &shapes;
        return Err(node.error(format_args!(
            "queries {q:?}, keys {k:?} and values {v:?} don't fit {heads} and {key_heads} heads"
        )));
    }
    let (depth, width) = (shapes[0][2] / heads, shapes[2][2] / key_heads);
    let (has_decay, has_correction) =
        match node.attributes.string_or("update_rule", "gated_delta")? {
            "linear" => (false, false),
            "gated" => (true, false),
            "delta" => (false, true),
            "gated_delta" => (true, true),
            other => {
                let message = format_args!("is not recognized: '{}'", other.escape_debug());
                return Err(node.attributes.error("update_rule", message));
            }
        };
    for (index, wanted) in [(4, has_decay), (5, has_correction)] {
        if node.inputs.has(index) != wanted {
            return Err(node
                .inputs
                .error(index, "does not fit the attribute 'update_rule'"));
        }
    }
    let scale = match node.attributes.float_or("scale", 0.0)? {
        0.0 => 1.0 / u32::try_from(depth).map_or(f64::INFINITY, f64::from).sqrt(),
        scale => f64::from(scale),
    };
    let places = batch.saturating_mul(length);
    let list = |index: usize, wanted: bool| {
        if wanted {
            node.inputs.numbers(index)
        } else {
            Ok(Vec::new())
        }
    };
    let (decay, beta) = (list(4, has_decay)?, list(5, has_correction)?);
    let per_place = |list: &[f64]| list.len().checked_div(places).unwrap_or(0);
    let fits = |list: &[f64], allowed: [usize; 2]| {
        list.is_empty()
            || (list.len().is_multiple_of(places.max(1)) && allowed.contains(&per_place(list)))
    };
    if !fits(&decay, [key_heads, key_heads * depth]) || !fits(&beta, [key_heads, 1]) {
        return Err(node.error("decay or beta has not an element for each place and head"));
    }
    let state_extents = [batch, key_heads, depth, width];
    let state_len = state_extents
        .iter()
        .fold(1_usize, |n, extent| n.saturating_mul(*extent));
    let past = node.inputs.optional_dense(3)?;
    let mut state = match past {
        None => {
            // As a tensor: what is too large for the memory is refused.
            node.output(tfrt_tensor::DType::F64, &state_extents)?;
            vec![0.0; state_len]
        }
        Some(past) if past.shape().to_dims()[..] == state_extents => node.inputs.numbers(3)?,
        Some(past) => {
            let message = format_args!(
                "is expected to have extents {state_extents:?}, found {}",
                past.shape()
            );
            return Err(node.inputs.error(3, message));
        }
    };
    let attention = LinearAttention {
        heads,
        key_heads,
        depth,
        width,
        scale,
    };
    let inputs = [
        &node.inputs.numbers(0)?[..],
        &node.inputs.numbers(1)?,
        &node.inputs.numbers(2)?,
    ];
    let request = node.execution.request();
    let stopped = || request.cancellation().cloned().map_or(Ok(()), Err);
    let out = linear_attention(
        &attention,
        [batch, length],
        inputs,
        [&decay, &beta],
        &mut state,
        stopped,
    )?;
    let hidden = heads.saturating_mul(width);
    let out = typed(node, query, &[batch, length, hidden], &out)?;
    let state = typed(node, past.unwrap_or(query), &state_extents, &state)?;
    Ok(Outputs::from(out).and_tensor(state))
}

/// `CausalConvWithState`: a filter for each channel, whose last element is that of the current position
pub(super) fn causal_convolution(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (extents, filter) = (node.inputs.extents(0, 3)?, node.inputs.extents(1, 3)?);
    let (batch, channels, length, taps) = (extents[0], extents[1], extents[2], filter[2]);
    if filter[..2] != [channels, 1] || taps == 0 {
        return Err(node.inputs.error(
            1,
            format_args!("of extents {filter:?} does not fit {extents:?}"),
        ));
    }
    let is_silu = match node.attributes.string_or("activation", "none")? {
        "none" | "" => false,
        "silu" | "swish" => true,
        other => {
            let message = format_args!("is not recognized: '{}'", other.escape_debug());
            return Err(node.attributes.error("activation", message));
        }
    };
    let (numbers, weights) = (node.inputs.numbers(0)?, node.inputs.numbers(1)?);
    let bias = if node.inputs.has(2) {
        node.inputs.numbers(2)?
    } else {
        vec![0.0; channels]
    };
    let state_extents = [batch, channels, taps - 1];
    let state_len = batch.saturating_mul(channels).saturating_mul(taps - 1);
    let past = match node.inputs.optional_dense(3)? {
        None => node
            .output(tfrt_tensor::DType::F64, &state_extents)
            .map(|_| vec![0.0; state_len])?,
        Some(_) => node.inputs.numbers(3)?,
    };
    if bias.len() != channels || past.len() != state_len {
        return Err(node.error("bias or state does not fit the channels"));
    }
    let (mut out, mut state) = (
        Vec::with_capacity(numbers.len()),
        Vec::with_capacity(state_len),
    );
    for row in 0..batch.saturating_mul(channels) {
        let channel = row % channels;
        let before = &past[row * (taps - 1)..][..taps - 1];
        let padded: Vec<f64> = before
            .iter()
            .chain(&numbers[row * length..][..length])
            .copied()
            .collect();
        let filter = &weights[channel * taps..][..taps];
        for window in padded.windows(taps) {
            let sum: f64 =
                window.iter().zip(filter).map(|(x, w)| x * w).sum::<f64>() + bias[channel];
            out.push(if is_silu {
                sum / (1.0 + (-sum).exp())
            } else {
                sum
            });
        }
        state.extend_from_slice(&padded[padded.len() - (taps - 1)..]);
    }
    let out = typed(node, x, &extents, &out)?;
    Ok(Outputs::from(out).and_tensor(typed(node, x, &state_extents, &state)?))
}
