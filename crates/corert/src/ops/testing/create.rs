//! Tensors of every format, from attributes and from parts.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::{
    CooHostTensor, DenseHostTensor, ScalarHostTensor, TensorMetadata, TensorShape, with_element,
};

use super::test_op;
use crate::attributes::{AttrValue, Numbers, OpAttrsRef, missing};
use crate::call::Call;
use crate::definition::{AttrKind, MetadataCall, OpRegistry, Outputs, ResultMetadata};

pub(super) fn register(registry: &mut OpRegistry) {
    let shape = "the shape";
    registry
        .add(
            test_op(
                "tfrt_test.create_from_scalar",
                "A tensor whose elements are all the same.",
                0,
                scalar,
            )
            .elements("all but strings")
            .attribute("shape", AttrKind::Shape, shape)
            .attribute("value", AttrKind::Number, "the element")
            .metadata(scalar_metadata)
            .pure(),
        )
        .add(
            test_op("tfrt_test.create_dense_tensor", "A dense tensor.", 0, dense)
                .elements("all but strings")
                .attribute("shape", AttrKind::Shape, shape)
                .attribute("values", AttrKind::Numbers, "the elements, or one for all")
                .metadata(dense_metadata)
                .pure(),
        )
        .add(
            test_op(
                "tfrt_test.create_coo_tensor",
                "A sparse tensor, of coordinates and as many elements.",
                2,
                sparse,
            )
            .elements("all but strings; coordinates i64")
            .attribute("shape", AttrKind::Shape, shape)
            .metadata(sparse_metadata)
            .pure(),
        );
}

fn shape(op: &str, attrs: OpAttrsRef<'_>) -> Result<TensorShape, Error> {
    attrs.shape("shape")?.ok_or_else(|| missing(op, "shape"))
}

fn scalar_value<'a>(op: &str, attrs: OpAttrsRef<'a>) -> Result<&'a Numbers, Error> {
    match attrs.value("value") {
        Some(AttrValue::Scalar(value)) => Ok(value),
        Some(AttrValue::Text(_)) => Err(Error::invalid_argument(format!("{op} unsupported dtype"))),
        _ => Err(missing(op, "value")),
    }
}

fn scalar_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let shape = shape(call.op, call.attrs)?;
    let dtype = scalar_value(call.op, call.attrs)?.dtype();
    Ok(smallvec![TensorMetadata::new(dtype, shape)])
}

fn scalar(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let value = scalar_value(call.op(), call.attrs())?;
    let TensorMetadata { dtype, shape } = call.result(0)?;
    let tensor = with_element!(*dtype, T => {
        let value = value.as_slice::<T>().and_then(|list| list.first());
        value.map(|value| ScalarHostTensor::new(shape.clone(), *value))
    }, else None);
    let tensor = tensor.ok_or_else(|| missing(call.op(), "value"))?;
    Ok(smallvec![tensor.into()])
}

fn dense_values<'a>(op: &str, attrs: OpAttrsRef<'a>) -> Result<&'a Numbers, Error> {
    match attrs.value("values") {
        Some(AttrValue::List(values)) => Ok(values),
        Some(found) => Err(Error::invalid_argument(format!(
            "'values' attribute should be an array of values, found {found}"
        ))),
        None => Err(missing(op, "values")),
    }
}

fn dense_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let shape = shape(call.op, call.attrs)?;
    let values = dense_values(call.op, call.attrs)?;
    if values.len() != 1 && Some(values.len()) != shape.n_elements() {
        let found = values.len();
        return Err(Error::invalid_argument(format!(
            "size of 'values' must either be 1 or match num of elements. There are {found} for shape {shape}"
        )));
    }
    Ok(smallvec![TensorMetadata::new(values.dtype(), shape)])
}

fn dense(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let values = dense_values(call.op(), call.attrs())?;
    let mut tensor: DenseHostTensor = call.output(0)?;
    with_element!(values.dtype(), T => {
        match (values.as_slice::<T>(), tensor.elements_mut::<T>()?) {
            (Some(&[value]), Some(elements)) => elements.fill(value),
            (Some(values), Some(elements)) => elements.copy_from_slice(values),
            _ => return Err(missing(call.op(), "values")),
        }
    }, else return Err(missing(call.op(), "values")));
    Ok(smallvec![tensor.into()])
}

fn sparse_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let (op, [indices, values]) = (call.op, call.inputs) else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 2 inputs")));
    };
    for (input, rank, name) in [(indices, 2, "indices"), (values, 1, "values")] {
        if input.shape.rank() != rank {
            let found = &input.shape;
            return Err(Error::invalid_argument(format!(
                "{op} {name} input must be rank {rank}, found shape {found}"
            )));
        }
    }
    let shape = shape(op, call.attrs)?;
    if indices.shape.extent(1) != Some(shape.rank()) {
        let indices = &indices.shape;
        return Err(Error::invalid_argument(format!(
            "each test.create_coo_tensor index must have the same size as shape attribute: {indices} for {shape}"
        )));
    }
    if indices.dtype != DType::I64 {
        let dtype = indices.dtype;
        return Err(Error::invalid_argument(format!(
            "{op} indices input must be i64, found {dtype}"
        )));
    }
    Ok(smallvec![TensorMetadata::new(values.dtype, shape)])
}

fn sparse(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let (indices, values) = (call.dense(0)?.clone(), call.dense(1)?.clone());
    let shape = call.result(0)?.shape.clone();
    Ok(smallvec![
        CooHostTensor::new(shape, indices, values)?.into()
    ])
}
