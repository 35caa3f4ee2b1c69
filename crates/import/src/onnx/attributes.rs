//! Attributes of nodes.

use tfrt_ir::{
    Attribute, Type,
    attributes::{Bytes, DenseAttribute, DenseElements},
};

use super::{
    element::ElementType,
    graph::Importer,
    problem::{Problem, shown},
    proto::{AttributeProto, Graph},
    sparse,
    tensor::{self, Tensor, TensorData},
    types,
};
use crate::codes;

/// An attribute, with the frame and the scope in which the names in it have a meaning.
#[derive(Clone, Copy)]
pub(super) struct BoundAttribute<'m> {
    pub attribute: &'m AttributeProto,
    pub frame: usize,
    pub scope: usize,
}

/// The value of an attribute, decoded but for graphs.
pub(super) enum AttributeData<'m> {
    Constant(Attribute),
    Tensor(Tensor),
    Graph(&'m Graph),
}

/// The numbers of kinds of attributes in files, with their names.
pub(super) mod kinds {
    pub const FLOAT: i32 = 1;
    pub const INT: i32 = 2;
    pub const STRING: i32 = 3;
    pub const TENSOR: i32 = 4;
    pub const GRAPH: i32 = 5;
    pub const FLOATS: i32 = 6;
    pub const INTS: i32 = 7;
    pub const STRINGS: i32 = 8;
    pub const TENSORS: i32 = 9;
    pub const GRAPHS: i32 = 10;
    pub const SPARSE_TENSOR: i32 = 11;
    pub const SPARSE_TENSORS: i32 = 12;
    pub const TYPE: i32 = 13;
    pub const TYPES: i32 = 14;

    pub fn name(kind: i32) -> &'static str {
        const NAMES: [&str; 15] = [
            "nothing",
            "float",
            "int",
            "string",
            "tensor",
            "graph",
            "floats",
            "ints",
            "strings",
            "tensors",
            "graphs",
            "sparse tensor",
            "sparse tensors",
            "type",
            "types",
        ];
        let name = usize::try_from(kind).ok().and_then(|kind| NAMES.get(kind));
        name.copied().unwrap_or("unknown")
    }
}

/// Returns the kind of an attribute: the one that it states, or that of the field that is set.
pub(super) fn kind(attribute: &AttributeProto) -> Result<i32, Problem> {
    let set = set_fields(attribute);
    let error = |message: String| Problem::new(codes::MODEL_ATTRIBUTE, message);
    match attribute.kind.unwrap_or(0) {
        0 => match set[..] {
            [kind] => Ok(kind),
            [] => Err(error("says neither its kind nor a value".to_owned())),
            _ => Err(error(format!(
                "holds {}, expected one of them",
                names(&set)
            ))),
        },
        kind @ kinds::FLOAT..=kinds::TYPES => {
            let others: Vec<i32> = set.iter().copied().filter(|&other| other != kind).collect();
            match others.is_empty() {
                true => Ok(kind),
                false => Err(error(format!(
                    "is of kind {}, but holds {}",
                    kinds::name(kind),
                    names(&others)
                ))),
            }
        }
        kind => Err(error(format!(
            "is of kind {kind}, expected {} to {}",
            kinds::FLOAT,
            kinds::TYPES
        ))),
    }
}

fn names(kinds: &[i32]) -> String {
    let names: Vec<&str> = kinds.iter().map(|&kind| kinds::name(kind)).collect();
    names.join(" and ")
}

fn set_fields(attribute: &AttributeProto) -> Vec<i32> {
    let fields = [
        (kinds::FLOAT, attribute.f.is_some()),
        (kinds::INT, attribute.i.is_some()),
        (kinds::STRING, attribute.s.is_some()),
        (kinds::TENSOR, attribute.t.is_some()),
        (kinds::GRAPH, attribute.g.is_some()),
        (kinds::FLOATS, !attribute.floats.is_empty()),
        (kinds::INTS, !attribute.ints.is_empty()),
        (kinds::STRINGS, !attribute.strings.is_empty()),
        (kinds::TENSORS, !attribute.tensors.is_empty()),
        (kinds::GRAPHS, !attribute.graphs.is_empty()),
        (kinds::SPARSE_TENSOR, attribute.sparse_tensor.is_some()),
        (kinds::SPARSE_TENSORS, !attribute.sparse_tensors.is_empty()),
        (kinds::TYPE, attribute.tp.is_some()),
        (kinds::TYPES, !attribute.type_protos.is_empty()),
    ];
    fields
        .iter()
        .filter(|field| field.1)
        .map(|field| field.0)
        .collect()
}

impl<'m> Importer<'m> {
    /// Decodes the value of an attribute.
    pub(super) fn held(
        &mut self,
        attribute: &'m AttributeProto,
    ) -> Result<AttributeData<'m>, Problem> {
        let kind = kind(attribute)?;
        let missing = || {
            let message = format!("is of kind {}, but holds none", kinds::name(kind));
            Problem::new(codes::MODEL_ATTRIBUTE, message)
        };
        // Some writers leave zeros and empty texts out.
        let constant = match kind {
            kinds::FLOAT => Attribute::f32(attribute.f.unwrap_or(0.0)),
            kinds::INT => Attribute::integer(attribute.i.unwrap_or(0), Type::I64),
            kinds::STRING => Attribute::string(attribute.s.as_deref().unwrap_or(b"")),
            kinds::FLOATS => list(&attribute.floats, |&value| Attribute::f32(value)),
            kinds::INTS => list(&attribute.ints, |&value| {
                Attribute::integer(value, Type::I64)
            }),
            kinds::STRINGS => list(&attribute.strings, |text| Attribute::string(text)),
            kinds::TENSOR => {
                let tensor = attribute.t.as_deref().ok_or_else(missing)?;
                return tensor::decode(tensor, &mut self.files).map(AttributeData::Tensor);
            }
            kinds::SPARSE_TENSOR => {
                let tensor = attribute.sparse_tensor.as_deref().ok_or_else(missing)?;
                let expanded = sparse::expand(tensor, &mut self.files, &mut self.budget);
                return expanded.map(AttributeData::Tensor);
            }
            kinds::GRAPH => {
                return attribute
                    .g
                    .as_deref()
                    .map(AttributeData::Graph)
                    .ok_or_else(missing);
            }
            kinds::TYPE => {
                let ty = attribute.tp.as_deref().ok_or_else(missing)?;
                Attribute::Type(types::read(ty)?)
            }
            kinds::TENSORS => {
                let read = |tensor| tensor::decode(tensor, &mut self.files).map(|it| dense(&it));
                let tensors = attribute.tensors.iter().map(read);
                Attribute::array(tensors.collect::<Result<_, _>>()?)
            }
            kinds::SPARSE_TENSORS => {
                let read = |tensor| {
                    sparse::expand(tensor, &mut self.files, &mut self.budget).map(|it| dense(&it))
                };
                let tensors = attribute.sparse_tensors.iter().map(read);
                Attribute::array(tensors.collect::<Result<_, _>>()?)
            }
            kinds::TYPES => {
                let read = |ty| types::read(ty).map(Attribute::Type);
                let types = attribute.type_protos.iter().map(read);
                Attribute::array(types.collect::<Result<_, _>>()?)
            }
            _ => {
                let message = "is a list of graphs, which no operator takes";
                return Err(Problem::new(codes::MODEL_ATTRIBUTE, message));
            }
        };
        Ok(AttributeData::Constant(constant))
    }
}

fn list<T>(values: &[T], make: impl Fn(&T) -> Attribute) -> Attribute {
    Attribute::array(values.iter().map(make).collect())
}

/// Returns the name of an attribute.
pub(super) fn name(attribute: &AttributeProto) -> Result<&str, Problem> {
    match attribute.name.as_deref() {
        None | Some("") => {
            let message = "has an attribute without a name";
            Err(Problem::new(codes::MODEL_ATTRIBUTE, message))
        }
        Some(name) => Ok(name),
    }
}

/// Adds the name of the attribute to a problem.
pub(super) fn of(problem: Problem, name: &str) -> Problem {
    problem.of(&format!("attribute '{}'", shown(name)))
}

/// Returns the type of a tensor of these extents.
pub(crate) fn tensor_type(dims: &[usize], element: ElementType) -> Type {
    Type::tensor(sizes(dims).collect(), element.ty())
}

/// Makes an attribute of extents.
pub(crate) fn extents(dims: &[usize]) -> Attribute {
    let list = sizes(dims).map(|size| Attribute::integer(size, Type::I64));
    Attribute::array(list.collect())
}

fn sizes(dims: &[usize]) -> impl Iterator<Item = i64> {
    dims.iter()
        .map(|&size| i64::try_from(size).unwrap_or(i64::MAX))
}

/// Makes an attribute of a tensor's elements, which are shared and not copied.
pub(crate) fn dense(tensor: &Tensor) -> Attribute {
    let (elements, splat) = match &tensor.data {
        TensorData::Bytes(bytes) => {
            let size = tensor.element.size_bytes();
            match is_repeated(bytes, size) {
                true => (
                    DenseElements::Bytes(Bytes::copy_from_slice(&bytes[..size])),
                    true,
                ),
                false => (DenseElements::Bytes(bytes.clone()), false),
            }
        }
        TensorData::Strings(strings) => match strings.split_first() {
            None => (DenseElements::Bytes(Bytes::new()), false),
            Some((first, rest)) if rest.iter().all(|other| other == first) => {
                (DenseElements::Strings([first.clone()].into()), true)
            }
            Some(_) => (DenseElements::Strings(strings.clone().into()), false),
        },
    };
    let ty = tensor_type(&tensor.dims, tensor.element);
    Attribute::Dense(std::sync::Arc::new(DenseAttribute {
        ty,
        elements,
        splat,
    }))
}

/// Returns whether all elements are equal; false if there are none.
fn is_repeated(bytes: &[u8], size: usize) -> bool {
    // Each byte is compared with that which is an element before it.
    !bytes.is_empty() && bytes[size..] == bytes[..bytes.len() - size]
}
