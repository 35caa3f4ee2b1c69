//! `tf.Softmax`, `tf.LogSoftmax`.

use tfrt_host::Error;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::softmax::{Kind, softmax_into};

use super::arithmetic::{same_as_first, typed};
use super::elements::Elements;
use crate::call::Call;
use crate::definition::{
    MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, expect_family,
};

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(
            softmax_op("tf.Softmax", Kind::Softmax)
                .summary("e^x / the sum of all e^x, of each row along the last dimension."),
        )
        .add(softmax_op("tf.LogSoftmax", Kind::LogSoftmax).summary(
            "x - the logarithm of the sum of all e^x, of each row along the last dimension.",
        ));
}

fn softmax_op(name: &'static str, kind: Kind) -> OpDefinition {
    typed(OpDefinition::new(name, move |call| softmax(call, kind)))
        .elements(Elements::Floats.text())
        .inputs(1)
        .metadata(metadata)
        .cost(|_, results| {
            let n = results.first().and_then(|result| result.shape.n_elements());
            n.unwrap_or(usize::MAX).saturating_mul(32) as u64
        })
        .pure()
}

fn metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let results = same_as_first(call, Elements::Floats)?;
    match results[0].shape.rank() {
        0 => Err(Error::invalid_argument(format!(
            "{} expects a dimension or more, found shape []",
            call.op
        ))),
        _ => Ok(results),
    }
}

fn softmax(call: &mut Call<'_>, kind: Kind) -> Result<Outputs, Error> {
    let (x, out) = (call.dense(0)?, call.output(0)?);
    expect_family(call.op(), Family::Floats, x.dtype())?;
    let chain = softmax_into(call.execution(), kind, x, &out)?;
    call.made(out, chain)
}
