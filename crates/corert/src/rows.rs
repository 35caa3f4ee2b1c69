//! [`RowOpHandler`]: every row of the table of operations, called by its own name, by TensorFlow's, or by that of tests.
//!
//! What the results will be follows by the row's rule, from types and shapes and, where inputs are there, from small
//! lists of integers. What runs a row comes from a crate of kernels ([`Runs`]); pointwise functions are those of
//! [`tfrt_tensor::math::pointwise`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use smallvec::SmallVec;
use tfrt_host::{AnyAsyncValue, DType, DeviceId, DeviceKind, Error};
use tfrt_ops::names::{self, Name, NameAttr, NameOperand};
use tfrt_ops::{Arity, AttrSource, Attrs, Cost, Dim, Fact, Infer, OpDef, Traits, Types, infer};
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::op::{OpCall as RowCall, Runs, TensorCall, made, unsupported};
use tfrt_tensor::{DenseHostTensor, NoValue, Tensor, TensorMetadata, TensorShape};

use crate::call::Call;
use crate::definition::{
    AttrKind, Formats, MetadataCall, OpDefinition, Output, Outputs, ResultMetadata,
};
use crate::dispatch::RegisteredOp;
use crate::handler::OpHandler;
use crate::op::Op;

mod attributes;
mod operands;
mod pointwise;

use attributes::{RowAttrs, Stated, counts_results, held_kind, kind};
use operands::Given;
pub(crate) use pointwise::Function;

/// The product of two tensors of fewer elements takes no long time.
const SMALL: u64 = 1 << 9;

/// Finds what runs a row, if anything does.
pub type FindKernel = fn(&'static OpDef) -> Option<Runs>;

/// Finds operations by the names of rows, `gelu`, `onnx.NonMaxSuppression`, and by those of TensorFlow and of tests that
/// are rows, `tf.LeakyRelu`, `tfrt_test.matmul`; what is none the next handler is asked for. A definition is made when it
/// is first asked for, and kept.
pub struct RowOpHandler {
    find: FindKernel,
    device: DeviceId,
    next: Option<Arc<dyn OpHandler>>,
    found: RwLock<HashMap<String, Arc<OpDefinition>>>,
}

impl RowOpHandler {
    /// Returns a handler whose results are on `device`, in the memory of the host.
    pub fn new(
        find: FindKernel,
        device: DeviceId,
        next: Option<Arc<dyn OpHandler>>,
    ) -> RowOpHandler {
        RowOpHandler {
            find,
            device,
            next,
            found: RwLock::default(),
        }
    }

    /// Returns the definition of an operation, if it is a row that something runs.
    pub fn definition(&self, op: &str) -> Option<Arc<OpDefinition>> {
        let found = self.found.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(definition) = found.get(op) {
            return Some(definition.clone());
        }
        drop(found);
        let definition = Arc::new(Row::of(op)?.definition(self.find)?);
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        found.insert(op.to_owned(), definition.clone());
        Some(definition)
    }
}

/// Returns all names of operations that are rows, whether something runs them or not.
pub fn names() -> impl Iterator<Item = String> {
    let of = |dialect: &'static str, names: &'static [Name]| {
        names
            .iter()
            .map(move |name| format!("{dialect}.{}", name.name))
    };
    let own = tfrt_ops::all().map(|row| row.name);
    let own = own.filter(|name| Row::of(name).is_some_and(|row| row.name.is_none()));
    of("tf", names::tf::NAMES)
        .chain(of("tfrt_test", names::test::NAMES))
        .chain(own.map(str::to_owned))
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
        DeviceKind::CPU.name()
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        match (self.definition(op), &self.next) {
            (Some(definition), _) => Ok(Arc::new(RegisteredOp {
                definition,
                device: self.device,
            })),
            (None, Some(next)) => next.find(op),
            (None, None) => {
                let op = op.escape_debug();
                Err(Error::not_found(format!("op '{op}' is not supported")))
            }
        }
    }
}

/// A row under a name.
#[derive(Clone, Copy)]
struct Row {
    /// The dialect of the name that is called.
    dialect: &'static str,
    name: Option<&'static Name>,
    op: &'static OpDef,
    /// Whether some attribute must be stated.
    asks: bool,
    /// How many results a call gives, if that is always the same.
    n_results: Option<usize>,
}

impl Row {
    fn of(name: &str) -> Option<Row> {
        let named = match name.split_once('.') {
            Some(("tf", name)) => names::tf::name(name),
            Some(("tfrt_test", name)) => names::test::name(name),
            _ => None,
        };
        let op = tfrt_ops::find(named.map_or(name, |name| name.row))?;
        Some(Row {
            dialect: match name.starts_with("tf.") {
                true => "tf",
                false => "tfrt_test",
            },
            name: named,
            op,
            asks: asks(named, op),
            n_results: n_results(op),
        })
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
            Some(name) => format!("{}.{}", self.dialect, name.name).into(),
            None => op.name.into(),
        };
        let (function, kernel) = (Function::of(op), find(op));
        let definition = match (function, kernel) {
            (Some(function), kernel) => self.pointwise(name, function, kernel),
            (None, Some(kernel)) => {
                let formats = match kernel {
                    Runs::Tensors(kernel) => kernel.formats,
                    Runs::Values(_) => Formats::STRING,
                };
                let last = LastResults::default();
                OpDefinition::new(name, move |call| self.run(call, kernel))
                    .formats(formats)
                    .metadata(move |call| last.of(call, || self.metadata(call, kernel)))
                    .cost(move |inputs, results| self.cost(inputs, results))
            }
            (None, None) => return None,
        };
        Some(self.described(definition))
    }

    /// Returns the definition of a function of elements. Strings are a kernel's business.
    fn pointwise(
        self,
        name: Cow<'static, str>,
        function: Function,
        kernel: Option<Runs>,
    ) -> OpDefinition {
        let kernel_of_strings = kernel.filter(|_| matches!(self.op.infer, Infer::BroadcastBool));
        let definition = OpDefinition::new(name, move |call| {
            match (call.tensor(0)?, kernel_of_strings) {
                (Tensor::String(_), Some(kernel)) => self.run(call, kernel),
                _ => function.run(call),
            }
        });
        let is_binary = matches!(function, Function::Binary(_));
        let formats = Formats {
            scalar: is_binary,
            string: kernel_of_strings.is_some(),
            coo: false,
        };
        definition
            .formats(formats)
            .metadata(move |call| {
                if !call.attrs.is_empty() {
                    self.check_attributes(call.op, call.attrs, call.inputs.len())?;
                }
                function.metadata(call, kernel_of_strings.is_some())
            })
            .cost(move |_, results| {
                let n = results.first().and_then(|result| result.shape.n_elements());
                n.unwrap_or(usize::MAX).saturating_mul(function.cost()) as u64
            })
            .short(function)
    }

    /// Says how an operation is called.
    fn described(self, mut definition: OpDefinition) -> OpDefinition {
        let op = self.op;
        let is_required = |input: &&tfrt_ops::ValueDef| match input.arity {
            Arity::One => true,
            Arity::Rest(least) => least > 0,
            Arity::Optional => false,
        };
        let has_rest = op
            .inputs
            .iter()
            .any(|input| matches!(input.arity, Arity::Rest(_)));
        let n_required = op.inputs.iter().filter(is_required).count();
        let (least, most) = match self.name.and_then(|name| name.operands) {
            Some(operands) => {
                let inputs = operands.iter().map(|operand| match operand {
                    NameOperand::At(index) | NameOperand::Pairs(index) => index + 1,
                    NameOperand::Ends(starts, sizes) => starts.max(sizes) + 1,
                    NameOperand::Attr(..) => 0,
                });
                let n = inputs.max().unwrap_or(0);
                (n, n)
            }
            None => {
                let n_attrs = |is_needed: bool| {
                    let attrs = self.names().iter();
                    attrs
                        .filter(|attr| match attr {
                            NameAttr::Operand(..) => true,
                            NameAttr::OperandOr(..) => !is_needed,
                            _ => false,
                        })
                        .count()
                };
                let most = if has_rest {
                    usize::MAX
                } else {
                    op.inputs.len() + n_attrs(false)
                };
                (n_required + n_attrs(true), most)
            }
        };
        definition = definition
            .summary(op.summary)
            .inputs_from(least..=most)
            .no_attributes();
        for attr in op
            .attrs
            .iter()
            .filter(|attr| attr.name != "n" || !counts_results(op))
        {
            for name in self.stated_names(attr.name) {
                definition = definition.attribute(name, kind(attr.kind), "");
            }
        }
        if let Some(name) = self.name {
            for (name, _) in name.only {
                definition = definition.attribute(name, AttrKind::Bool, "");
            }
            for operand in name.operands.unwrap_or_default() {
                if let NameOperand::Attr(name, held) = operand {
                    definition = definition.attribute(name, held_kind(*held), "");
                }
            }
            if let Some((name, _)) = name.result {
                definition = definition.attribute(name, AttrKind::Type, "");
            }
        }
        if self.dialect == "tf" {
            definition = definition.unread(names::tf::UNREAD);
        }
        definition = match self.n_results {
            Some(n) => definition.results(n),
            None => {
                let name = self.count();
                definition
                    .attribute(name, AttrKind::Integer, "")
                    .results_by(name)
            }
        };
        if op.is(Traits::PURE) && !op.is(Traits::RANDOM) {
            definition = definition.pure();
        }
        definition
    }

    /// Returns the attribute that says how many results a call gives.
    fn count(self) -> &'static str {
        let named = self.names().iter().find(|attr| attr.row() == "n");
        named.and_then(NameAttr::source).unwrap_or("n")
    }

    /// Returns how many results a call with these attributes gives.
    fn counted(self, attrs: crate::OpAttrsRef<'_>) -> Result<usize, Error> {
        match self.n_results {
            Some(n) => Ok(n),
            None => {
                let stated = attrs.integer(self.count())?;
                Ok(stated.and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
            }
        }
    }

    /// Returns what the results will be, if that follows.
    fn metadata(self, call: &MetadataCall<'_>, kernel: Runs) -> Result<ResultMetadata, Error> {
        let (op, n_inputs) = (call.op, call.inputs.len());
        if !call.attrs.is_empty() || self.asks {
            self.check_attributes(op, call.attrs, n_inputs)?;
        }
        let Some(lists) = self.lists(op, call.handles)? else {
            return Ok(ResultMetadata::new());
        };
        let mut inputs: SmallVec<[Option<Fact>; 3]> = SmallVec::new();
        for index in 0..self.n_operands(n_inputs) {
            inputs.push(self.fact(op, (call.handles, call.inputs), call.attrs, index)?);
        }
        while inputs.last().is_some_and(Option::is_none) {
            inputs.pop();
        }
        self.check_operands(op, &inputs)?;
        let dtype = inputs.first().and_then(|first| first.as_ref()?.dtype);
        if let (Runs::Tensors(kernel), Some(dtype)) = (kernel, dtype)
            && let Some(family) = kernel.family.filter(|family| !family.has(dtype))
        {
            return Err(unsupported_of(op, dtype, |dtype| family.has(dtype)));
        }
        let source = RowAttrs {
            stated: Stated(call.attrs),
            row: self,
            n_inputs,
            lists: &lists,
        };
        let attrs = Attrs::new(&source, self.op.attrs);
        let n_results = self.counted(call.attrs)?;
        let results = infer(self.op, &inputs, attrs, n_results, &mut |_, _| {
            std::default::Default::default()
        });
        let results = results.map_err(|error| self.named(op, &error))?;
        let known: Option<ResultMetadata> = results.iter().map(metadata).collect();
        let mut known = known.unwrap_or_default();
        if let Some(dtype) = self.result_type(op, call.attrs)? {
            known.iter_mut().for_each(|result| result.dtype = dtype);
        }
        Ok(known)
    }

    /// Says what a rule says, of the operation as it is called.
    fn named(self, op: &str, error: &tfrt_ops::InferError) -> Error {
        let text = error.to_string();
        let rest = text
            .strip_prefix(self.op.name)
            .filter(|rest| rest.starts_with([':', ' ']));
        Error::invalid_argument(match rest {
            Some(rest) => format!("{op}{rest}"),
            None => text,
        })
    }

    /// Says what a kernel says by the name that ONNX has for the row, of the operation as it is called.
    #[cold]
    fn renamed(self, op: &str, error: Error) -> Error {
        let is_own = |name: &str| {
            let own = names::onnx::name(name).map(|own| own.row == self.op.name);
            own.unwrap_or_else(|| self.op.name.strip_prefix("onnx.") == Some(name))
        };
        match error.message().split_once(": ") {
            Some((name, rest)) if is_own(name) => {
                let renamed = Error::new(error.code(), format!("{op}: {rest}"));
                error
                    .notes()
                    .iter()
                    .fold(renamed, |renamed, note| renamed.with_note(note))
            }
            _ => error,
        }
    }

    /// Tells whether operands that share a type have one, and whether those of a name have its numbers of dimensions.
    fn check_operands(self, op: &str, inputs: &[Option<Fact>]) -> Result<(), Error> {
        let mut shared: SmallVec<[(&str, usize, DType); 3]> = SmallVec::new();
        // Of ONNX some take what follows in several types.
        let rest = self
            .op
            .inputs
            .last()
            .filter(|last| matches!(last.arity, Arity::Rest(_)) && self.op.dialect() != "onnx");
        for (index, fact) in inputs.iter().enumerate() {
            let Some(def) = self.op.inputs.get(index).or(rest) else {
                continue;
            };
            let Some((fact, dtype)) = fact.as_ref().and_then(|fact| Some((fact, fact.dtype?)))
            else {
                continue;
            };
            let rank = self.name.and_then(|name| {
                let mut ranks = name.ranks.iter();
                ranks.find(|(own, _)| *own == index).map(|(_, rank)| *rank)
            });
            if let (Some(wanted), Some(found)) = (rank, fact.rank())
                && wanted != found
            {
                let name = def.name;
                return Err(Error::invalid_argument(format!(
                    "{op}: operand {index} ({name}): expected {wanted} dimensions, found {found}"
                )));
            }
            match def.types {
                Types::Var(name) => {
                    let other = shared.iter().find(|(own, ..)| *own == name);
                    match other {
                        Some((_, first, other)) if *other != dtype => {
                            let [x, y] = [*first, index].map(|index| described(&inputs[index]));
                            return Err(Error::invalid_argument(format!(
                                "{op}: incompatible dtypes: {x} and {y}"
                            )));
                        }
                        Some(_) => (),
                        None => shared.push((name, index, dtype)),
                    }
                }
                Types::Set(types) if is_integers(types) && !is_integers(&[dtype]) => {
                    let name = def.name;
                    return Err(Error::invalid_argument(format!(
                        "{op}: operand {index} ({name}): expected integers of 32 or 64 bits, found {dtype}"
                    )));
                }
                // Of integers both widths are taken where one is named.
                Types::Set(types) if !is_integers(types) && !types.contains(&dtype) => {
                    return Err(unsupported_of(op, dtype, |dtype| types.contains(&dtype)));
                }
                _ => (),
            }
        }
        Ok(())
    }

    /// Returns the type to which results are cast, if the name says so.
    fn result_type(self, op: &str, attrs: crate::OpAttrsRef<'_>) -> Result<Option<DType>, Error> {
        let Some((name, default)) = self.name.and_then(|name| name.result) else {
            return Ok(None);
        };
        match attrs.dtype(name)?.unwrap_or(default) {
            dtype @ (DType::I32 | DType::I64) => Ok(Some(dtype)),
            dtype => Err(Error::invalid_argument(format!(
                "{op}: attribute '{name}': expected i32 or i64, found {dtype}"
            ))),
        }
    }

    /// Returns about how many additions a call takes.
    fn cost(self, inputs: &[&TensorMetadata], results: &[TensorMetadata]) -> u64 {
        let size =
            |metadata: &TensorMetadata| metadata.shape.n_elements().unwrap_or(usize::MAX) as u64;
        let each = match self.op.cost {
            _ if self.op.is(Traits::VIEW) => return 1,
            Cost::PerElement(0) => return 1,
            Cost::PerElement(each) => u64::from(each),
            Cost::Fn(cost) => {
                // Products and their like take no more than all pairs of elements.
                let largest = inputs.iter().map(|metadata| size(metadata));
                let largest = largest.chain(results.iter().map(size)).max().unwrap_or(0);
                if largest < SMALL {
                    return largest;
                }
                let fact = |metadata: &TensorMetadata| {
                    let extents = metadata.shape.extents().map(Dim::from);
                    Fact::new(Some(metadata.dtype), Some(extents.collect()))
                };
                let inputs: SmallVec<[Option<Fact>; 3]> =
                    inputs.iter().map(|metadata| Some(fact(metadata))).collect();
                let results: SmallVec<[Fact; 2]> = results.iter().map(fact).collect();
                // Eight products and sums are one instruction.
                return cost(&inputs, &results).map_or(u64::MAX, |cost| cost / 8);
            }
        };
        let inputs = inputs.iter().map(|metadata| size(metadata));
        let all = inputs.chain(results.iter().map(size));
        all.fold(0, u64::saturating_add).saturating_mul(each)
    }

    fn run(self, call: &mut Call<'_>, kernel: Runs) -> Result<Outputs, Error> {
        let (op, attrs, n_inputs) = (call.op, call.attrs, call.inputs.len());
        let execution = call.execution;
        let lists = self.lists(op, &call.inputs)?.ok_or_else(|| {
            Error::invalid_argument(format!(
                "{op}: expected few integers where attributes are operands"
            ))
        })?;
        let n_operands = self.n_operands(n_inputs);
        let mut all_made = SmallVec::new();
        if self.name.is_some_and(|name| name.operands.is_some()) {
            let allocator = execution.host().allocator();
            for index in 0..n_operands {
                all_made.push(self.made(op, &call.inputs, attrs, allocator, index)?);
            }
        }
        let n_results = self.counted(attrs)?;
        let source = RowAttrs {
            stated: Stated(attrs),
            row: self,
            n_inputs,
            lists: &lists,
        };
        let is_plain = attrs.is_empty() && self.names().is_empty();
        let source: &dyn AttrSource = if is_plain { &() } else { &source };
        let row_attrs = Attrs::new(source, self.op.attrs);
        let mut given = Given {
            row: self,
            inputs: &mut call.inputs,
            made: all_made,
        };
        let outputs = match kernel {
            Runs::Tensors(kernel) => (kernel.run)(&mut TensorCall {
                op: self.op,
                name: op,
                attrs: row_attrs,
                operands: &mut given,
                results: call.metadata,
                n_results,
                execution,
            })?,
            Runs::Values(kernel) => {
                use tfrt_tensor::op::Operands;
                let inputs = (0..n_operands).map(|index| match given.get(index) {
                    Some(tensor) => AnyAsyncValue::new::<Tensor>(tensor.clone()),
                    None => AnyAsyncValue::new(NoValue),
                });
                let inputs: Vec<AnyAsyncValue> = inputs.collect();
                let results = (kernel.run)(&RowCall {
                    op: self.op,
                    attrs: row_attrs,
                    inputs: &inputs,
                    n_results,
                    execution,
                });
                let results = results.map_err(|error| self.renamed(op, error))?;
                results.into_iter().map(output).collect::<Result<_, _>>()?
            }
        };
        match self.result_type(op, attrs)? {
            Some(dtype) => outputs
                .into_iter()
                .map(|output| cast(call, output, dtype))
                .collect(),
            None => Ok(outputs),
        }
    }
}

/// Returns how many results a call gives, if that is always the same: those that may not be left out; of a recurrent
/// network, which may leave out any, all states and the last one.
fn n_results(op: &OpDef) -> Option<usize> {
    if counts_results(op) {
        return None;
    }
    let required = op
        .results
        .iter()
        .filter(|result| result.arity == Arity::One)
        .count();
    Some(if required == 0 {
        op.results.len().min(2)
    } else {
        required
    })
}

/// Returns whether some attribute must be stated, or else an operand be there that says it.
fn asks(name: Option<&Name>, op: &OpDef) -> bool {
    let is_required = |attr: &tfrt_ops::AttrDef| attr.default == tfrt_ops::Default::Required;
    let is_operand = |name: &Name| {
        let mut attrs = name.attrs.iter();
        let operands = name.operands.unwrap_or_default();
        attrs.any(|attr| matches!(attr, NameAttr::OperandOr(..)))
            || operands
                .iter()
                .any(|operand| matches!(operand, NameOperand::Attr(..)))
    };
    op.attrs.iter().any(is_required) || name.is_some_and(is_operand)
}

/// What the results of the last call without attributes were: most calls are of the same types and shapes again.
#[derive(Default)]
struct LastResults(Mutex<Option<(SmallVec<[TensorMetadata; 2]>, ResultMetadata)>>);

impl LastResults {
    /// Returns what they are, or finds it. Integers, which may say what the results are, are looked at each time.
    fn of(
        &self,
        call: &MetadataCall<'_>,
        find: impl FnOnce() -> Result<ResultMetadata, Error>,
    ) -> Result<ResultMetadata, Error> {
        let is_kept =
            call.attrs.is_empty() && call.inputs.iter().all(|input| !is_integers(&[input.dtype]));
        if !is_kept {
            return find();
        }
        // Who finds it taken does not wait.
        let Ok(mut last) = self.0.try_lock() else {
            return find();
        };
        if let Some((inputs, results)) = &*last
            && inputs.len() == call.inputs.len()
            && inputs
                .iter()
                .zip(call.inputs)
                .all(|(own, other)| own == *other)
        {
            return Ok(results.clone());
        }
        let results = find()?;
        let inputs = call.inputs.iter().copied().cloned();
        *last = Some((inputs.collect(), results.clone()));
        Ok(results)
    }
}

/// Returns a result as one of another type.
fn cast(call: &Call<'_>, output: Output, dtype: DType) -> Result<Output, Error> {
    let execution = call.execution.clone();
    let op = call.op.to_owned();
    let cast = move |tensor: &Tensor| {
        let x = tensor.as_dense()?;
        // Of few, extents mostly, none may be lost.
        let lost = operands::integers(tensor).filter(|_| dtype == DType::I32);
        let lost = lost.and_then(|list| list.into_iter().find(|one| i32::try_from(*one).is_err()));
        if let Some(lost) = lost {
            let message = format!("{op}: {lost} exceeds the largest integer of i32");
            return Err(Error::invalid_argument(message));
        }
        let metadata = TensorMetadata::new(dtype, x.shape().clone());
        let out = DenseHostTensor::unspecified(execution.host().allocator(), metadata)?;
        let chain = cast_into(&execution, Casting::default(), x, &out)?;
        Ok::<_, Error>((out, chain))
    };
    match output {
        Output::Ready(tensor) if tensor.metadata().dtype == dtype => Ok(Output::Ready(tensor)),
        Output::Ready(tensor) => {
            let (out, chain) = cast(&tensor)?;
            made(out, chain)
        }
        Output::Later(later) => {
            let result = later.clone();
            Ok(Output::Later(later.and_then_value(move |tensor| {
                if tensor.metadata().dtype == dtype {
                    return result;
                }
                match cast(tensor) {
                    Ok((out, chain)) => chain.map(move |_| out.into()),
                    Err(error) => tfrt_host::AsyncValue::from_error(error),
                }
            })))
        }
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

/// Says that an operation does not calculate with elements of a type, and with which it does.
#[cold]
fn unsupported_of(op: &str, dtype: DType, takes: impl Fn(DType) -> bool) -> Error {
    let all = DType::ALL.into_iter().filter(|dtype| takes(*dtype));
    let all: Vec<String> = all.map(|dtype| dtype.to_string()).collect();
    unsupported(op, dtype).with_note(format!("it takes {}", all.join(", ")))
}

fn is_integers(types: &[DType]) -> bool {
    types
        .iter()
        .all(|dtype| matches!(dtype, DType::I32 | DType::I64))
}

/// Returns type and extents as text.
fn described(fact: &Option<Fact>) -> String {
    match fact.as_ref().and_then(metadata) {
        Some(metadata) => metadata.to_string(),
        None => fact
            .as_ref()
            .and_then(|fact| fact.dtype)
            .map_or_else(|| "nothing".to_owned(), |dtype| dtype.to_string()),
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
