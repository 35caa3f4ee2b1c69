//! [`RowOpHandler`]: finds every row of the table of operations, by its own name, by TensorFlow's, or by that of
//! tests.
//!
//! Types and shapes of results follow by the row's rule, from types and shapes and, where inputs are there, from small
//! lists of integers. What runs a row comes from a crate of kernels ([`Runs`]); pointwise functions are those of
//! [`tfrt_tensor::math::pointwise`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tfrt_host::{DeviceId, DeviceKind, Error};
use tfrt_ops::names::{self, AllowedAttr, Name, NameAttr, NameOperand};
use tfrt_ops::{Arity, Infer, OpDef, Traits, Types};
use tfrt_tensor::Tensor;
use tfrt_tensor::op::RowKernel;

use crate::added::AddedSources;
use crate::attributes::{OpAttrsRef, missing};
use crate::definition::{AttrKind, Formats, OpDefinition};
use crate::dispatch::RegisteredOp;
use crate::handler::{OpHandler, unsupported};
use crate::op::Op;

mod attributes;
mod device;
mod last_results;
mod operands;
mod pointwise;
mod results;
mod run;

use attributes::{counts_results, gives_as_inputs, held_kind, kind, types_of_results};
pub use device::DeviceOpHandler;
use last_results::LastResults;
pub(crate) use pointwise::Function;
pub use pointwise::Pointwise;

/// Number of elements below which the product of two tensors takes no long time.
const SMALL: u64 = 1 << 9;

/// Function that finds the kernel of a row, if there is one.
pub type FindKernel = fn(&'static OpDef) -> Option<RowKernel>;

/// A handler of rows: finds operations by the names of rows (`relu`, `onnx.NonMaxSuppression`), and by those of
/// TensorFlow and of tests that are rows (`tf.LeakyRelu`, `tfrt_test.matmul`), and asks the next handler for others.
/// A definition is made when it is first asked for, and kept.
pub struct RowOpHandler {
    find: FindKernel,
    device: DeviceId,
    next: Option<Arc<dyn OpHandler>>,
    added: AddedSources,
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
            added: AddedSources::default(),
            found: RwLock::default(),
        }
    }

    /// Finds operations of libraries, too.
    pub(crate) fn with_added(mut self, added: AddedSources) -> RowOpHandler {
        self.added = added;
        self
    }

    /// Returns the definition of an operation, if it is a row that has a kernel.
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

/// Returns all names of operations that are rows, whether they have kernels or not.
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
        let built_in = || -> Result<Arc<dyn Op>, Error> {
            match (self.definition(op), &self.next) {
                (Some(definition), _) => Ok(Arc::new(RegisteredOp {
                    definition,
                    device: self.device,
                })),
                (None, Some(next)) => next.find(op),
                (None, None) => Err(unsupported(op)),
            }
        };
        self.added.op(op, self.device, built_in)
    }
}

/// A row of the table under one of its names.
#[derive(Clone, Copy)]
struct Row {
    /// Dialect of the name, if the name has a dialect of its own.
    dialect: &'static str,
    name: Option<&'static Name>,
    op: &'static OpDef,
    /// Whether some attribute is required.
    asks: bool,
    /// Number of results, if all calls have as many.
    n_results: Option<usize>,
}

impl Row {
    fn of(name: &str) -> Option<Row> {
        let (dialect, named) = match name.split_once('.') {
            Some(("tf", name)) => ("tf", names::tf::name(name)),
            Some(("tfrt_test", name)) => ("tfrt_test", names::test::name(name)),
            _ => ("", None),
        };
        let op = tfrt_ops::find(named.map_or(name, |name| name.row))?;
        Some(Row {
            dialect,
            name: named,
            op,
            asks: asks(named, op),
            n_results: n_results(op),
        })
    }

    fn names(self) -> &'static [NameAttr] {
        self.name.map_or(&[], |name| name.attrs)
    }

    /// Returns whether operands and results are tensors alone, and the row has no regions.
    fn is_callable(self) -> bool {
        let op = self.op;
        let mut values = op.inputs.iter().chain(op.results);
        let has_object = values.any(|value| value.types == Types::Object);
        !op.is(Traits::CONTROL) && op.regions.is_empty() && !has_object
    }

    /// Returns the name by which the operation is called.
    fn called(self) -> Cow<'static, str> {
        match self.name {
            Some(name) => format!("{}.{}", self.dialect, name.name).into(),
            None => self.op.name.into(),
        }
    }

    /// Returns the definition of the operation, if the row has a kernel.
    fn definition(self, find: FindKernel) -> Option<OpDefinition> {
        if !self.is_callable() {
            return None;
        }
        let (op, name) = (self.op, self.called());
        let (function, kernel) = (Function::of(op), find(op));
        let definition = match (function, kernel) {
            (Some(function), kernel) => self.pointwise(name, function, kernel),
            (None, Some(kernel)) => {
                let (formats, family) = match kernel {
                    RowKernel::Tensors(kernel) => (kernel.formats, kernel.family),
                    RowKernel::Values(_) => (Formats::STRING, None),
                };
                let last = LastResults::default();
                OpDefinition::new(name, move |call| self.run(call, kernel))
                    .formats(formats)
                    .metadata(move |call| last.of(call, || self.metadata(call, family)))
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
        kernel: Option<RowKernel>,
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
            object: false,
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
            .fast_path(function)
    }

    /// Adds inputs, results, attributes and documentation of the row to a definition.
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
            .kept_by_nodes()
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
            for (name, only) in name.only {
                let kind = match only {
                    AllowedAttr::Int(_) => AttrKind::Bool,
                    AllowedAttr::Texts(_) => AttrKind::Text,
                    AllowedAttr::TypeOf(_) => AttrKind::Type,
                };
                definition = definition.attribute(name, kind, "");
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
            None if gives_as_inputs(op) => definition.results_as_inputs(),
            None if types_of_results(op).is_some() => {
                definition.results_computed(move |attrs, n_inputs| self.counted(attrs, n_inputs))
            }
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
        let writes = op.is(Traits::WRITES);
        if writes || op.is(Traits::READS) {
            definition = match op.is(Traits::WAITS) {
                true => definition.waits_in_resources(writes),
                false => definition.effects_on_resources(writes),
            };
        }
        definition
    }

    /// Returns the attribute that states the number of results.
    fn count(self) -> &'static str {
        let named = self.names().iter().find(|attr| attr.row() == "n");
        named.and_then(NameAttr::source).unwrap_or("n")
    }

    /// Returns the number of results of a call with these attributes and `n_inputs` inputs.
    fn counted(self, attrs: OpAttrsRef<'_>, n_inputs: usize) -> Result<usize, Error> {
        match self.n_results {
            Some(n) => Ok(n),
            None if gives_as_inputs(self.op) => Ok(n_inputs),
            None if let Some(name) = types_of_results(self.op) => {
                let stated = attrs.dtypes(name)?;
                stated.map_or_else(|| Err(missing(&self.called(), name)), |list| Ok(list.len()))
            }
            None => {
                let stated = attrs.integer(self.count())?;
                Ok(stated.and_then(|n| usize::try_from(n).ok()).unwrap_or(0))
            }
        }
    }
}

/// Returns the number of results, if all calls have as many: the required ones. A recurrent network, whose results
/// are all optional, gives all states and the last one.
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

/// Returns whether some attribute must be stated, or else an operand in its place.
fn asks(name: Option<&Name>, op: &OpDef) -> bool {
    let is_required = |attr: &tfrt_ops::AttrDef| attr.default == tfrt_ops::AttrDefault::Required;
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
