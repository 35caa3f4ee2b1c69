//! Attributes of calls, as the C API has them.

use tfrt_corert::{AttrValue, Numbers, OpAttrsRef};
use tfrt_host::Error;
use tfrt_host::memory::HostBuffer;
use tfrt_tensor::{Bool, DenseHostTensor, Tensor};

use crate::attrs::{Attr, Kind, NodeAttrs};
use crate::dtype;
use crate::functions::tensor::allocator;

/// The owner of converted attributes, which decides whether their tensors may share memory with a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// The runtime.
    ByRuntime,
    /// A program, in which its tensors lie: these are copied, or they would keep the program.
    ByProgram,
}

/// Returns the attributes of a call as the C API has them.
///
/// # Errors
///
/// `InvalidArgument` for a value of a kind that the C API does not have.
pub(super) fn node_attrs(attrs: OpAttrsRef<'_>, kept: Kept) -> Result<NodeAttrs, Error> {
    let mut all = NodeAttrs::new();
    for (name, value) in attrs.iter() {
        let converted = attr(value, kept).ok_or_else(|| {
            let name = name.escape_debug();
            Error::invalid_argument(format!("attribute '{name}': plugins take no {value}"))
        })?;
        all.insert(name.to_owned(), converted);
    }
    Ok(all)
}

/// Returns an attribute as the C API has it, if it has such.
pub(super) fn attr(value: &AttrValue, kept: Kept) -> Option<Attr> {
    Some(match value {
        AttrValue::Scalar(numbers) => match numbers_of(numbers)? {
            Attr::List(_, list) => list.into_iter().next()?,
            one => one,
        },
        AttrValue::List(numbers) => numbers_of(numbers)?,
        AttrValue::DType(dtype) => Attr::Type(dtype::code(*dtype)?),
        AttrValue::Text(text) => Attr::Bytes(text.as_str().as_bytes().to_vec()),
        AttrValue::Function(name) => Attr::Function(name.as_str().to_owned()),
        AttrValue::Shape(shape) => Attr::Shape(match shape.extents() {
            None => None,
            Some(extents) => {
                let extent = |extent: Option<u64>| match extent {
                    Some(extent) => i64::try_from(extent).ok(),
                    None => Some(-1),
                };
                Some(extents.map(extent).collect::<Option<_>>()?)
            }
        }),
        AttrValue::Dense(tensor) => {
            let tensor = match kept {
                Kept::ByRuntime => Tensor::Dense(tensor.clone()),
                Kept::ByProgram => {
                    let copy = HostBuffer::copy_of(&allocator(), tensor.read().ok()?.bytes())?;
                    DenseHostTensor::new(tensor.metadata().clone(), copy)
                        .ok()?
                        .into()
                }
            };
            Attr::Tensor(crate::value::Tensor::of_host(&tensor, &allocator()).ok()?)
        }
        AttrValue::Aggregate(list) => {
            let list: Vec<Attr> = list
                .iter()
                .map(|one| attr(one, kept))
                .collect::<Option<_>>()?;
            let kind = list.first().map_or(Kind::Int, Attr::kind);
            Attr::List(kind, list)
        }
    })
}

fn numbers_of(numbers: &Numbers) -> Option<Attr> {
    let list = |kind, list: Vec<Attr>| Some(Attr::List(kind, list));
    if let Some(truths) = numbers.as_slice::<Bool>() {
        let truths = truths.iter().map(|truth| Attr::Bool((*truth).into()));
        return list(Kind::Bool, truths.collect());
    }
    if let Some(integers) = numbers.integers() {
        return list(Kind::Int, integers.into_iter().map(Attr::Int).collect());
    }
    if let Some(floats) = numbers.as_slice::<f64>() {
        let floats = floats.iter().map(|float| Attr::Float(*float as f32));
        return list(Kind::Float, floats.collect());
    }
    let floats = numbers.as_slice::<f32>()?.iter();
    list(
        Kind::Float,
        floats.map(|float| Attr::Float(*float)).collect(),
    )
}
