//! [`RowOpHandler`]: every row of the table of operations, called by its own name or by TensorFlow's.
//!
//! What the results will be follows by the row's rule, from types and shapes and, where inputs are there, from small
//! lists of integers. What runs a row comes from a crate of kernels ([`OpKernel`]); pointwise functions are those of
//! [`tfrt_tensor::math::pointwise`].

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{AnyAsyncValue, DType, DeviceId, Error};
use tfrt_ops::names::{self, Name, NameAttr, tf};
use tfrt_ops::{
    Arity, AttrSource, AttrValue as RowValue, Attrs, Dim, Fact, MOST_VALUES, OpDef, Traits, Types,
    infer,
};
use tfrt_tensor::math::pointwise::{BinaryFunction, Order, UnaryFunction};
use tfrt_tensor::op::{OpCall as RowCall, OpKernel};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use crate::attributes::{AttrValue, OpAttrsRef};
use crate::call::Call;
use crate::definition::{
    AttrKind, Formats, MetadataCall, OpDefinition, Output, Outputs, ResultMetadata,
};
use crate::dispatch::RegisteredOp;
use crate::handler::OpHandler;
use crate::op::Op;

/// Finds what runs a row, if anything does.
pub type FindKernel = fn(&'static OpDef) -> Option<OpKernel>;

/// Finds operations by the names of rows, `gelu`, `onnx.NonMaxSuppression`, and by those of TensorFlow that are rows,
/// `tf.LeakyRelu`. A definition is made when it is first asked for.
pub struct RowOpHandler {
    find: FindKernel,
    device: DeviceId,
}

impl RowOpHandler {
    /// Returns a handler whose results are on `device`, in the memory of the host.
    pub fn new(find: FindKernel, device: DeviceId) -> RowOpHandler {
        RowOpHandler { find, device }
    }
}

impl std::fmt::Debug for RowOpHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowOpHandler")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl OpHandler for RowOpHandler {
    fn name(&self) -> &str {
        "rows"
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        let definition = Row::of(op).and_then(|row| row.definition(self.find));
        match definition {
            Some(definition) => Ok(Arc::new(RegisteredOp {
                definition: Arc::new(definition),
                device: self.device,
            })),
            None => {
                let op = op.escape_debug();
                Err(Error::not_found(format!("op '{op}' is not supported")))
            }
        }
    }
}

/// A row under a name.
#[derive(Clone, Copy)]
struct Row {
    name: Option<&'static Name>,
    op: &'static OpDef,
}

impl Row {
    fn of(name: &str) -> Option<Row> {
        match name.strip_prefix("tf.") {
            Some(name) => {
                let name = tf::name(name)?;
                let op = tfrt_ops::find(name.row)?;
                Some(Row {
                    name: Some(name),
                    op,
                })
            }
            None => tfrt_ops::find(name).map(|op| Row { name: None, op }),
        }
    }

    fn names(self) -> &'static [NameAttr] {
        self.name.map_or(&[], |name| name.attrs)
    }

    /// Returns what makes the operation of an eager call, if something runs it.
    fn definition(self, find: FindKernel) -> Option<OpDefinition> {
        let op = self.op;
        let mut values = op.inputs.iter().chain(op.results);
        let has_object = values.any(|value| value.types == Types::Object);
        if op.is(Traits::CONTROL) || !op.regions.is_empty() || has_object {
            return None;
        }
        let name: Cow<'static, str> = match self.name {
            Some(name) => format!("tf.{}", name.name).into(),
            None => op.name.into(),
        };
        let kernel = find(op);
        let mut definition = match (
            kernel,
            UnaryFunction::from_name(op.name),
            BinaryFunction::from_name(op.name),
        ) {
            (Some(kernel), ..) => OpDefinition::new(name, move |call| self.run(call, kernel)),
            (None, Some(function), _) => OpDefinition::new(name, move |call| call.unary(function)),
            (None, _, Some(function)) => {
                OpDefinition::new(name, move |call| call.binary(function, Order::TargetFirst))
            }
            _ => return None,
        };
        let n_operands = self
            .names()
            .iter()
            .filter(|attr| matches!(attr, NameAttr::Operand(..)))
            .count();
        let n_required = op
            .inputs
            .iter()
            .filter(|input| input.arity == Arity::One)
            .count();
        let has_rest = op
            .inputs
            .iter()
            .any(|input| matches!(input.arity, Arity::Rest(_)));
        let most = if has_rest {
            usize::MAX
        } else {
            op.inputs.len() + n_operands
        };
        definition = definition
            .summary(op.summary)
            .inputs_from(n_required + n_operands..=most);
        for attr in op.attrs.iter().filter(|attr| attr.name != "n") {
            let own = self.names().iter().find(|own| own.row() == attr.name);
            let stated = match own {
                None => attr.name,
                Some(own) => match own.source() {
                    Some(name) => name,
                    None => continue,
                },
            };
            definition = definition.attribute(stated, kind(attr.kind), "");
        }
        // What TensorFlow's graphs carry says nothing that tensors don't.
        if self.name.is_some() {
            for name in [
                "T", "N", "Tidx", "Tindices", "Tparams", "SrcT", "Tshape", "Taxis", "Tperm",
            ] {
                definition = definition.attribute(name, AttrKind::Type, "");
            }
        }
        definition = match self.n_results() {
            Some(n) => definition.results(n),
            None => {
                let name = self.count();
                definition
                    .attribute(name, AttrKind::Integer, "how many results")
                    .results_by(name)
            }
        };
        if op.is(Traits::PURE) && !op.is(Traits::RANDOM) {
            definition = definition.pure();
        }
        let formats = Formats {
            string: true,
            ..Formats::DENSE
        };
        Some(
            definition
                .formats(formats)
                .metadata(move |call| self.metadata(call)),
        )
    }

    /// Returns how many results a call gives, if that is always the same: those that may not be left out; of a recurrent
    /// network, which may leave out any, all states and the last one.
    fn n_results(self) -> Option<usize> {
        let results = self.op.results;
        if results
            .iter()
            .any(|result| matches!(result.arity, Arity::Rest(_)))
        {
            return None;
        }
        let required = results
            .iter()
            .filter(|result| result.arity == Arity::One)
            .count();
        Some(if required == 0 {
            results.len().min(2)
        } else {
            required
        })
    }

    /// Returns the attribute that says how many results a call gives.
    fn count(self) -> &'static str {
        let named = self.names().iter().find(|attr| attr.row() == "n");
        named.and_then(NameAttr::source).unwrap_or("n")
    }

    /// Returns what the results will be, if that follows.
    fn metadata(self, call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
        let Some(n_results) = self.n_results() else {
            return Ok(ResultMetadata::new());
        };
        let facts = call.inputs.iter().enumerate().map(|(index, metadata)| {
            let tensor = call.handles.get(index).tensor().and_then(Result::ok);
            fact(metadata, tensor)
        });
        let facts: Vec<Fact> = facts.collect();
        let lists = self.operands(|index| facts.get(index)?.numbers());
        let Some(lists) = lists else {
            return Ok(ResultMetadata::new());
        };
        let source = RowAttrs {
            stated: Stated(call.attrs),
            names: self.name,
            lists: &lists,
        };
        let inputs: Vec<Option<Fact>> = facts
            .into_iter()
            .enumerate()
            .filter(|(index, _)| !self.is_taken(*index))
            .map(|(_, fact)| Some(fact))
            .collect();
        let attrs = Attrs::new(&source, self.op.attrs);
        let results = infer(self.op, &inputs, attrs, n_results, &mut |_, _| {
            Default::default()
        });
        let results = results.map_err(|error| Error::invalid_argument(error.to_string()))?;
        let known: Option<ResultMetadata> = results.iter().map(metadata).collect();
        Ok(known.unwrap_or_default())
    }

    fn run(self, call: &mut Call<'_>, kernel: OpKernel) -> Result<Outputs, Error> {
        let lists = self.operands(|index| integers(call.tensor(index).ok()?));
        let lists = lists.ok_or_else(|| {
            let op = call.op();
            Error::invalid_argument(format!(
                "{op}: expected integers where attributes are operands"
            ))
        })?;
        let mut inputs = Vec::with_capacity(call.n_inputs());
        for index in (0..call.n_inputs()).filter(|index| !self.is_taken(*index)) {
            inputs.push(AnyAsyncValue::new::<Tensor>(call.tensor(index)?.clone()));
        }
        let n_results = match self.n_results() {
            Some(n) => n,
            None => {
                let stated = call.attrs().integer(self.count())?;
                stated.and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
            }
        };
        let source = RowAttrs {
            stated: Stated(call.attrs()),
            names: self.name,
            lists: &lists,
        };
        let results = (kernel.run)(&RowCall {
            op: self.op,
            attrs: Attrs::new(&source, self.op.attrs),
            inputs: &inputs,
            n_results,
            prepared: None,
            execution: call.execution(),
        })?;
        results.into_iter().map(output).collect()
    }

    /// Returns whether an operand is an attribute of the row.
    fn is_taken(self, index: usize) -> bool {
        self.names()
            .iter()
            .any(|attr| matches!(attr, NameAttr::Operand(_, own) if *own == index))
    }

    /// Returns the integers of operands that are attributes of the row, if all are there.
    fn operands(
        self,
        of: impl Fn(usize) -> Option<Vec<i64>>,
    ) -> Option<Vec<(&'static str, Vec<i64>)>> {
        let operands = self.names().iter().filter_map(|attr| match attr {
            NameAttr::Operand(name, index) => Some((*name, *index)),
            _ => None,
        });
        operands
            .map(|(name, index)| Some((name, of(index)?)))
            .collect()
    }
}

fn output(value: AnyAsyncValue) -> Result<Output, Error> {
    if let Some(tensor) = value.get::<Tensor>() {
        return Ok(Output::Ready(tensor.clone()));
    }
    let later = value.downcast::<Tensor>();
    later.map(Output::Later).map_err(|other| {
        let found = other.type_name().unwrap_or("nothing");
        Error::invalid_argument(format!("expected a tensor for a result, found {found}"))
    })
}

fn kind(kind: tfrt_ops::AttrKind) -> AttrKind {
    use tfrt_ops::AttrKind as Row;
    match kind {
        Row::Int => AttrKind::Integer,
        Row::Float => AttrKind::Float,
        Row::Text | Row::Region => AttrKind::Text,
        Row::Ints => AttrKind::Integers,
        Row::Floats => AttrKind::Numbers,
        Row::Texts => AttrKind::Texts,
        Row::Type => AttrKind::Type,
        Row::Tensor => AttrKind::Dense,
    }
}

/// Returns what is known of an input.
fn fact(metadata: &TensorMetadata, tensor: Option<&Tensor>) -> Fact {
    let dims = metadata
        .shape
        .to_dims()
        .into_iter()
        .map(Dim::from)
        .collect();
    let values = tensor.and_then(integers);
    let values = values.map(|values| values.into_iter().map(Dim::Known).collect());
    Fact {
        values,
        ..Fact::new(Some(metadata.dtype), Some(dims))
    }
}

/// Returns the elements of a small tensor of integers.
fn integers(tensor: &Tensor) -> Option<Vec<i64>> {
    let dense: &DenseHostTensor = tensor.as_dense().ok()?;
    if dense.n_elements() > MOST_VALUES {
        return None;
    }
    let reading = dense.read().ok()?;
    match dense.dtype() {
        DType::I64 => Some(reading.elements::<i64>().ok()?.to_vec()),
        DType::I32 => Some(
            reading
                .elements::<i32>()
                .ok()?
                .iter()
                .map(|one| i64::from(*one))
                .collect(),
        ),
        _ => None,
    }
}

/// Returns type and shape, if all of both is known.
fn metadata(fact: &Fact) -> Option<TensorMetadata> {
    let extents = fact
        .dims
        .as_ref()?
        .iter()
        .map(|dim| usize::try_from(dim.value()?).ok());
    let extents: SmallVec<[usize; 6]> = extents.collect::<Option<_>>()?;
    Some(TensorMetadata::new(
        fact.dtype?,
        TensorShape::new(&extents).ok()?,
    ))
}

/// The attributes of a call, as those of a row.
struct RowAttrs<'a> {
    stated: Stated<'a>,
    names: Option<&'static Name>,
    /// What operands say.
    lists: &'a [(&'static str, Vec<i64>)],
}

impl AttrSource for RowAttrs<'_> {
    fn get(&self, name: &str) -> Option<RowValue<'_>> {
        if let Some((_, list)) = self.lists.iter().find(|(own, _)| *own == name) {
            // One integer may be a list of one, or a number.
            let is_list = matches!(name, "perm" | "axes");
            return Some(match list[..] {
                [one] if !is_list => RowValue::Int(one),
                _ => RowValue::Ints(Cow::Borrowed(list)),
            });
        }
        let names = self.names.map_or(&[][..], |name| name.attrs);
        names::value(names, name, &self.stated, |_| None)
    }
}

/// The attributes that a call states.
struct Stated<'a>(OpAttrsRef<'a>);

impl AttrSource for Stated<'_> {
    fn get(&self, name: &str) -> Option<RowValue<'_>> {
        Some(match self.0.value(name)? {
            AttrValue::Scalar(numbers) => {
                if let Some(list) = numbers.integers() {
                    RowValue::Int(*list.first()?)
                } else if let Some([truth]) = numbers.as_slice::<tfrt_tensor::Bool>() {
                    RowValue::Int(i64::from(bool::from(*truth)))
                } else {
                    RowValue::Float(*floats(numbers)?.first()?)
                }
            }
            AttrValue::List(numbers) => match numbers.integers() {
                Some(list) => RowValue::Ints(Cow::Owned(list.to_vec())),
                None => RowValue::Floats(Cow::Owned(floats(numbers)?)),
            },
            AttrValue::DType(dtype) => RowValue::Type(*dtype),
            AttrValue::Text(text) | AttrValue::Function(text) => {
                RowValue::Bytes(text.as_str().as_bytes())
            }
            AttrValue::Aggregate(list) if list.is_empty() => RowValue::Ints(Cow::Borrowed(&[])),
            AttrValue::Aggregate(list) => {
                let texts = list.iter().map(|value| match value {
                    AttrValue::Text(text) => Some(text.as_str().as_bytes()),
                    _ => None,
                });
                RowValue::Strings(texts.collect::<Option<_>>()?)
            }
            AttrValue::Shape(_) | AttrValue::Dense(_) => RowValue::Other,
        })
    }
}

fn floats(numbers: &crate::attributes::Numbers) -> Option<Vec<f64>> {
    if let Some(list) = numbers.as_slice::<f32>() {
        return Some(list.iter().map(|one| f64::from(*one)).collect());
    }
    numbers.as_slice::<f64>().map(<[f64]>::to_vec)
}
