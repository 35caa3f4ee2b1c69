//! Normalisation: `tf.FusedBatchNormV3`.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::normalize::{ChannelTensors, channels_in_place, channels_into};
use tfrt_tensor::{TensorMetadata, TensorShape};

use super::elements::Elements;
use super::windows::Attributes;
use crate::call::{Call, made};
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, unsupported,
};

pub(super) fn register(registry: &mut OpRegistry) {
    registry.add(
        OpDefinition::new("tf.FusedBatchNormV3", |call| match call.dense(0)?.dtype() {
            DType::F32 | DType::F64 => normalise(call),
            dtype => Err(unsupported(call.op(), dtype)),
        })
        .summary(
            "Each channel of `[.., c]` by scale, offset, mean and variance, which are the inputs behind the tensor, with \
             an element for each channel. Behind the result come mean and variance, twice, and a tensor without \
             elements, in place of what training would need.",
        )
        .inputs(5)
        .results(6)
        .attribute("epsilon", AttrKind::Float, "what is added to variances: 0.0001, if it is not stated")
        .attribute("data_format", AttrKind::Text, "`NHWC`")
        .attribute("is_training", AttrKind::Bool, "false")
        .attribute("exponential_avg_factor", AttrKind::Float, "not looked at")
        .attribute("T", AttrKind::Type, "the type of the tensor")
        .attribute("U", AttrKind::Type, "the type of all others")
        .elements(Elements::SingleOrDouble.text())
        .metadata(metadata)
        .pure(),
    );
}

fn metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let attributes = Attributes::from(call);
    let [x, others @ ..] = call.inputs else {
        return Err(attributes.error(format_args!("expected a tensor")));
    };
    let [_, _, mean, variance] = others else {
        return Err(attributes.error(format_args!(
            "expected a tensor, scale, offset, mean and variance"
        )));
    };
    Elements::SingleOrDouble.expect(call.op, x.dtype)?;
    attributes.expect_channels_last()?;
    attributes.epsilon()?;
    if attributes.attrs.bool("is_training")? == Some(true) {
        return Err(Error::invalid_argument(
            "BatchNorm training not currently supported",
        ));
    }
    let channels = x.shape.extents().last();
    for other in others {
        if other.dtype != x.dtype || channels.is_none() || other.shape.n_elements() != channels {
            return Err(attributes.error(format_args!(
                "parameter does not match the input channel number: expected scale, offset, mean and variance of {} \
                 with an element for each channel of {x}, found {other}",
                x.dtype
            )));
        }
    }
    let [x, mean, variance] = [x, mean, variance].map(|input| TensorMetadata::clone(input));
    let nothing = TensorMetadata::new(x.dtype, TensorShape::new(&[0])?);
    let again = (mean.clone(), variance.clone());
    Ok(smallvec![x, mean, variance, again.0, again.1, nothing])
}

fn normalise(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let epsilon = Attributes::from(&*call).epsilon()?.into();
    let sole = call.take_sole(0);
    let (mean, variance) = (call.dense(3)?, call.dense(4)?);
    let channels = ChannelTensors {
        mean,
        variance,
        scale: call.dense(1)?,
        shift: call.dense(2)?,
    };
    let execution = call.execution();
    let y = match sole {
        Some(y) => {
            let chain = channels_in_place(execution, &y, &channels, epsilon)?;
            made(y, chain)?
        }
        None => {
            let y = call.output(0)?;
            let chain = channels_into(execution, call.dense(0)?, &channels, epsilon, &y)?;
            made(y, chain)?
        }
    };
    let [mean, variance] = [mean, variance].map(|tensor| tensor.clone());
    Ok(smallvec![
        y,
        mean.clone().into(),
        variance.clone().into(),
        mean.into(),
        variance.into(),
        call.zeros(5)?.into()
    ])
}
