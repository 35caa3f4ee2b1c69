//! Pools of images: `tf.MaxPool`, `tf.AvgPool`.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::pool::{Pooling, output_extents, pool_f32_into, pool_into};
use tfrt_tensor::math::window::Window;
use tfrt_tensor::{TensorMetadata, TensorShape};

use super::elements::Elements;
use super::windows::{Attributes, windowed};
use crate::attributes::missing;
use crate::call::Call;
use crate::definition::{
    AttrKind, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata, expect_family,
};

pub(super) fn register(registry: &mut OpRegistry) {
    let pooling = |name, pooling| {
        windowed(OpDefinition::new(name, move |call| pool(call, pooling)))
            .inputs(1)
            .attribute(
                "ksize",
                AttrKind::Integers,
                "extents of windows, as strides",
            )
            .attribute("T", AttrKind::Type, "the type of the elements")
            .elements(Elements::Reals.text())
            .metadata(pool_metadata)
            .pure()
    };
    registry
        .add(
            pooling("tf.MaxPool", Pooling::Maximum)
                .summary("The largest element of each window of images `[n, h, w, c]`."),
        )
        .add(
            pooling("tf.AvgPool", Pooling::Mean)
                .summary("The mean of each window of images `[n, h, w, c]`, without the padding."),
        );
}

fn windows(attributes: Attributes<'_>) -> Result<[Window; 2], Error> {
    match attributes.per_dimension("ksize")? {
        Some(extents) => attributes.windows(extents),
        None => Err(missing(attributes.op, "ksize")),
    }
}

fn pool_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let attributes = Attributes::from(call);
    let [x] = call.inputs else {
        return Err(attributes.error(format_args!("expected 1 input")));
    };
    Elements::Reals.expect(call.op, x.dtype)?;
    let input = attributes.four(x, "images [batch, height, width, channels]")?;
    let extents = attributes.named(output_extents(&input, &windows(attributes)?))?;
    Ok(smallvec![TensorMetadata::new(
        x.dtype,
        TensorShape::new(&extents)?
    )])
}

fn pool(call: &mut Call<'_>, pooling: Pooling) -> Result<Outputs, Error> {
    let (x, windows) = (call.dense(0)?, windows(Attributes::from(&*call))?);
    let (execution, out) = (call.execution(), call.output(0)?);
    let chain = match x.dtype() {
        DType::F32 => pool_f32_into(execution, pooling, x, &windows, &out)?,
        dtype => {
            expect_family(call.op(), Family::Reals, dtype)?;
            pool_into(execution, pooling, x, &windows, &out)?
        }
    };
    call.made(out, chain)
}
