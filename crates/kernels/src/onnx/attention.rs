//! Attention and its companions: rotary embeddings, linear attention, causal convolutions with a state.

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::attention::{
    self, ScoreOptions, ScoreStage, TensorMask, attention_into, attention_over_cache_into,
    scored_into, scores_into,
};
use tfrt_tensor::math::layout_copy::{LayoutCopy, concat_extents, concat_into};
use tfrt_tensor::{DType, DenseHostTensor, Dims, Tensor, TensorShape};

use super::outputs::IntoValue;
use super::{NodeCall, Operations, Outputs};

mod linear;
mod rotary;

pub(super) const OPERATIONS: &Operations = &[
    ("attention", attention),
    ("onnx.CausalConvWithState", linear::causal_convolution),
    ("onnx.LinearAttention", linear::linear),
    ("onnx.RotaryEmbedding", rotary::rotary),
    ("onnx.preview.FlexAttention", attention),
];

/// A tensor, and the chain that is there when its elements are.
type PendingTensor = (Tensor, AsyncValue<Chain>);

/// Splits heads into a dimension of their own: `[batch, length, heads * width]` to `[batch, heads, length, width]`.
fn by_heads(node: &NodeCall<'_>, index: usize, heads: &str) -> Result<PendingTensor, Error> {
    let ready = AsyncValue::available(Chain);
    if let growing @ Tensor::Growable(cache) = node.inputs.tensor(index)?
        && cache.metadata().shape.rank() == 4
    {
        return Ok((growing.clone(), ready));
    }
    let x = node.inputs.dense(index)?;
    let extents = x.shape().to_dims();
    let &[batch, length, hidden] = &extents[..] else {
        if extents.len() == 4 {
            return Ok((x.clone().into(), ready));
        }
        let message = format_args!("is expected to have 3 or 4 dimensions, found {extents:?}");
        return Err(node.inputs.error(index, message));
    };
    let n_heads = node.attributes.size_or(heads, 0)?;
    if n_heads == 0 || hidden % n_heads != 0 {
        let message = format_args!("is expected to divide {hidden}, found {n_heads}");
        return Err(node.attributes.error(heads, message));
    }
    let apart = [batch, length, n_heads, hidden / n_heads];
    let movement = LayoutCopy::transpose(&apart, &[0, 2, 1, 3])?;
    let out = node.output(x.dtype(), movement.extents())?;
    let chain = movement.run_into(node.execution, &x.reshape(TensorShape::new(&apart)?)?, &out)?;
    Ok((out.into(), chain))
}

/// Appends keys or values to those of earlier calls: in place, if these grow along the dimension of the length.
fn continued(
    node: &NodeCall<'_>,
    past: usize,
    (now, chain): PendingTensor,
) -> Result<PendingTensor, Error> {
    let Some(before) = node.inputs.optional_tensor(past)? else {
        return Ok((now, chain));
    };
    let [first, more] = [before, &now].map(|tensor| tensor.metadata().shape.to_dims());
    let extents = concat_extents(&[&first, &more], 2).map_err(|error| node.with_name(&error))?;
    let execution = node.execution.clone();
    if let Tensor::Growable(cache) = before
        && cache.axis() == 2
        && cache.metadata().dtype == now.metadata().dtype
    {
        let (place, n_new) = (first[2], extents[2] - first[2]);
        let grown = cache.extended(execution.host().allocator(), n_new);
        let grown = grown.map_err(|error| node.with_name(&error))?;
        let written = grown.clone();
        let chain = chain.and_then_value(move |_| {
            let done = now.as_dense().and_then(|now| written.write(place, now));
            done.map(|()| AsyncValue::available(Chain)).into_value()
        });
        return Ok((grown.into(), chain));
    }
    let past = node.inputs.dense(past)?;
    let out = node.output(now.metadata().dtype, &extents)?;
    let (past, written) = (past.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        let now = now.as_dense();
        now.and_then(|now| concat_into(&execution, &[&past, now], 2, &written))
            .into_value()
    });
    Ok((out.into(), chain))
}

/// `Attention`: softmax(q kᵀ scale + mask) v, with keys and values of earlier calls, and scores as a result.
fn attention(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let is_flat = node.inputs.dense(0)?.shape().rank() == 3;
    let (queries, q_chain) = by_heads(node, 0, "q_num_heads")?;
    let keys = continued(node, 4, by_heads(node, 1, "kv_num_heads")?)?;
    let values = continued(node, 5, by_heads(node, 2, "kv_num_heads")?)?;
    let ((keys, k_chain), (values, v_chain)) = (keys, values);
    let queries = queries.as_dense()?.clone();
    let dtype = queries.dtype();
    let (q, k, v) = (
        queries.shape().to_dims(),
        keys.metadata().shape.to_dims(),
        values.metadata().shape.to_dims(),
    );
    if k.len() != 4 || v.len() != 4 || q.len() != 4 {
        return Err(node.error(format_args!(
            "queries {q:?}, keys {k:?} and values {v:?} don't fit together"
        )));
    }
    let past = node
        .inputs
        .optional_tensor(4)?
        .and_then(|past| past.metadata().shape.extent(2))
        .unwrap_or(0);
    let is_causal = node.attributes.flag("is_causal", false)?;
    let depth = u32::try_from(q[3]).map_or(f64::INFINITY, f64::from);
    let scale = node
        .attributes
        .float("scale")?
        .map_or(1.0 / depth.sqrt(), f64::from);
    let scoring = ScoreOptions {
        scale,
        softcap: node.attributes.float_or("softcap", 0.0)?.into(),
        causal: is_causal.then_some(past),
        lens: lens(node, k[2])?,
    };
    let mask = node.inputs.optional_dense(3)?;
    let is_whole = mask.is_none_or(|mask| {
        mask.shape().extents().next_back() == Some(k[2]) && mask.shape().rank() <= 4
    });
    let is_plain = scoring.softcap == 0.0 && is_whole;
    let mut product = q.clone();
    product[3] = v[3];
    let out = node.output(dtype, &product)?;
    let ready = q_chain.and_then_value({
        let k_chain = k_chain.clone();
        let v_chain = v_chain.clone();
        move |_| k_chain.and_then_value(move |_| v_chain)
    });
    node.inputs.expect(0, Family::Floats)?;
    let (execution, written, mask) = (node.execution.clone(), out.clone(), mask.cloned());
    let (own, scores_mask) = (scoring.clone(), mask.clone());
    let (queries_again, keys_again, values_again) = (queries.clone(), keys.clone(), values.clone());
    let chain = ready.clone().and_then_value(move |_| {
        if !is_plain {
            let scored = dense_inputs(&queries, [&keys, &values])
                .and_then(|inputs| scored_into(&execution, own, inputs, mask.as_ref(), &written));
            return scored.into_value();
        }
        let options = attention::Attention {
            scale: Some(own.scale),
            causal: own.causal,
            lens: own.lens,
        };
        let mask = match mask {
            None => TensorMask::None,
            Some(mask) if mask.dtype() == DType::I1 => TensorMask::Boolean(mask),
            Some(mask) => TensorMask::Additive(mask),
        };
        if let [Tensor::Growable(keys), Tensor::Growable(values)] = [&keys, &values]
            && (keys.axis(), values.axis()) == (2, 2)
        {
            let cache = [keys, values];
            return attention_over_cache_into(
                &execution, &options, &queries, cache, mask, &written,
            )
            .into_value();
        }
        dense_inputs(&queries, [&keys, &values])
            .and_then(|inputs| attention_into(&execution, &options, inputs, mask, &written))
            .into_value()
    });
    let mut outputs = match is_flat {
        true => flattened(node, out, chain, &product)?,
        false => Outputs::later(out, chain),
    };
    if node.n_results > 1 {
        outputs = outputs
            .and_later(keys_again.clone(), k_chain)
            .and_later(values_again, v_chain);
    }
    if node.n_results > 3 {
        let mut extents: Dims = q;
        extents[3] = k[2];
        let scores = node.output(dtype, &extents)?;
        let stage = match node.attributes.integer_or("scores_mode", 0)? {
            0 => ScoreStage::Product,
            1 => ScoreStage::Capped,
            2 => ScoreStage::Masked,
            3 => ScoreStage::Softmax,
            mode => {
                let message = format_args!("is expected to be 0 to 3, found {mode}");
                return Err(node.attributes.error("scores_mode", message));
            }
        };
        let (execution, written) = (node.execution.clone(), scores.clone());
        let chain = ready.and_then_value(move |_| {
            let keys = keys_again.as_dense();
            let made = keys.and_then(|keys| {
                let inputs = [&queries_again, keys];
                let mask = scores_mask.as_ref();
                scores_into(&execution, (scoring, stage), inputs, mask, &written)
            });
            made.into_value()
        });
        outputs = outputs.and_later(scores, chain);
    }
    Ok(outputs)
}

/// Returns queries, keys and values as dense tensors.
fn dense_inputs<'a>(
    queries: &'a DenseHostTensor,
    [keys, values]: [&'a Tensor; 2],
) -> Result<[&'a DenseHostTensor; 3], Error> {
    Ok([queries, keys.as_dense()?, values.as_dense()?])
}

/// Returns the number of keys of each member of the batch.
fn lens(node: &NodeCall<'_>, n_keys: usize) -> Result<Option<Vec<usize>>, Error> {
    let Some(list) = node.inputs.optional_integers(6)? else {
        return Ok(None);
    };
    let lens = list.iter().map(|len| {
        let len = usize::try_from(*len).ok().filter(|len| *len <= n_keys);
        len.ok_or_else(|| {
            node.inputs.error(
                6,
                format_args!("has a length that is not within {n_keys}: {list:?}"),
            )
        })
    });
    lens.collect::<Result<Vec<usize>, Error>>().map(Some)
}

/// Joins heads again: `[batch, heads, length, width]` to `[batch, length, heads * width]`.
fn flattened(
    node: &NodeCall<'_>,
    x: DenseHostTensor,
    chain: AsyncValue<Chain>,
    extents: &[usize],
) -> Result<Outputs, Error> {
    let movement = LayoutCopy::transpose(extents, &[0, 2, 1, 3])?;
    let out = node.output(x.dtype(), movement.extents())?;
    let (execution, written) = (node.execution.clone(), out.clone());
    let chain =
        chain.and_then_value(move |_| movement.run_into(&execution, &x, &written).into_value());
    let hidden = extents[1].checked_mul(extents[3]);
    let hidden = hidden.ok_or_else(|| node.error("the result exceeds the largest integer"))?;
    let out = out.reshape(TensorShape::new(&[extents[0], extents[2], hidden])?)?;
    Ok(Outputs::later(out, chain))
}
