//! Kernels of the rows on the processor, for programs and for eager calls.

use std::collections::HashMap;
use std::sync::LazyLock;

use smallvec::SmallVec;
use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Rest, ResultCount, Results};
use tfrt_host::{AnyAsyncValue, DeviceKind, Error, ExecutionContext};
use tfrt_ops::names::{Name, onnx};
use tfrt_ops::{AttrDef, AttrKind, AttrValue, OpDef, PointwiseFn, Traits};
use tfrt_tensor::math::pointwise::{BinaryFunction, ParametricFunction, UnaryFunction};
use tfrt_tensor::op::{OpCall, OpKernel, OpResults, Prepare, Prepared};
use tfrt_tensor::{DenseHostTensor, NoValue, Tensor};

use super::attributes::CallerAttr;
use super::elementwise::{mean, of_all, of_one, of_two, with_parameters};
use super::prepare::{self, PrepareRow, PreparedForm};
use super::{Attributes, Inputs, NodeCall, OPERATIONS, Operation, Outputs, Workspace};

/// The implementation of a row.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// A function of the whole call.
    Own(Operation),
    Unary(UnaryFunction),
    Binary(BinaryFunction),
    /// A function whose parameters are the row's attributes, in their order.
    Parametric(ParametricFunction),
    /// A function that an attribute chooses, by its value.
    ByText(&'static AttrDef, &'static [(&'static str, &'static str)]),
    ByInt(&'static AttrDef, &'static [(i64, &'static str)]),
    /// A function of two, applied to all operands one after the other.
    Fold(BinaryFunction),
    /// The mean of all operands.
    Mean,
    /// A kernel that is prepared of the attributes first.
    Prepared(&'static PrepareRow),
}

/// A row with its implementation.
#[derive(Clone, Copy, Debug)]
struct Kernel {
    op: &'static OpDef,
    body: Body,
}

static KERNELS: LazyLock<HashMap<&'static str, Kernel>> = LazyLock::new(|| {
    let own: HashMap<&str, Body> = OPERATIONS
        .iter()
        .copied()
        .flatten()
        .map(|(name, operation)| (*name, Body::Own(*operation)))
        .collect();
    tfrt_ops::all()
        .filter_map(|op| {
            let prepared = || prepare::find(op.name).map(Body::Prepared);
            let body = own.get(op.name).copied().or_else(prepared);
            let body = body.or_else(|| pointwise(op))?;
            Some((op.name, Kernel { op, body }))
        })
        .collect()
});

/// Returns the implementation of a pointwise row, by the function that it names.
fn pointwise(op: &OpDef) -> Option<Body> {
    if !op.is(Traits::POINTWISE) {
        return None;
    }
    match op.function {
        PointwiseFn::OfRow => function(op, op.name),
        PointwiseFn::Is(name) => function(op, name),
        PointwiseFn::ByText(name, choices) => Some(Body::ByText(op.attr(name)?, choices)),
        PointwiseFn::ByInt(name, choices) => Some(Body::ByInt(op.attr(name)?, choices)),
        PointwiseFn::Fold(name) => BinaryFunction::from_name(name).map(Body::Fold),
        PointwiseFn::Mean => Some(Body::Mean),
    }
}

/// Returns the function of a name, with the numbers of the row as parameters.
fn function(op: &OpDef, name: &str) -> Option<Body> {
    let is_number = |attr: &AttrDef| matches!(attr.kind, AttrKind::Float | AttrKind::Int);
    let parametric = || ParametricFunction::from_name(name).map(Body::Parametric);
    match op.attrs.iter().any(is_number) {
        true => parametric(),
        false => plain(name).or_else(parametric),
    }
}

/// Returns the function of a name, if it has no parameters.
fn plain(name: &str) -> Option<Body> {
    let unary = UnaryFunction::from_name(name).map(Body::Unary);
    unary.or_else(|| BinaryFunction::from_name(name).map(Body::Binary))
}

/// Returns the function that an attribute of the node chooses, or an error with the choices.
fn chosen<V: Copy + PartialEq>(
    node: &NodeCall<'_>,
    attr: &AttrDef,
    choices: &[(V, &'static str)],
    stated: Option<V>,
    show: impl Fn(V) -> String,
) -> Result<&'static str, Error> {
    PointwiseFn::chosen(attr, choices, stated).ok_or_else(|| {
        let Some(stated) = stated else {
            return node.attributes.missing(attr.name);
        };
        let all: Vec<String> = choices.iter().map(|(choice, _)| show(*choice)).collect();
        let (all, found) = (all.join(" or "), show(stated));
        let message = format_args!("is expected to be {all}, found {found}");
        node.attributes.error(attr.name, message)
    })
}

/// Returns operand 0, if it is a dense tensor that nobody else holds, neither the value nor its elements.
fn own_target(operands: &mut Rest) -> Option<DenseHostTensor> {
    let first = operands.0.first_mut()?;
    // What was still to come when the call began is behind a handle.
    *first = std::mem::replace(first, AnyAsyncValue::new(NoValue)).settled();
    let Tensor::Dense(tensor) = first.get_mut::<Tensor>()? else {
        return None;
    };
    tensor.is_sole().then(|| tensor.clone())
}

impl Kernel {
    /// Returns whether the kernel is a function that may write its result over operand 0.
    fn writes_over(self) -> bool {
        matches!(self.body, Body::Own(_)) && self.op.is(Traits::IN_PLACE)
    }

    /// Runs a node, whose last operand is its prepared form, if there is one.
    fn run(self, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let prepared = node.inputs.last().and_then(|value| value.get::<Prepared>());
        match prepared {
            None => self.run_plain(node),
            Some(prepared) => {
                let taken = prepare::find(self.op.name).map_or(&[][..], |row| row.inputs);
                let inputs = node.inputs.without_last(taken);
                self.run_prepared(&NodeCall { inputs, ..*node }, prepared)
            }
        }
    }

    fn run_prepared(self, node: &NodeCall<'_>, prepared: &Prepared) -> Result<Outputs, Error> {
        let inputs = node.inputs;
        match prepare::prepared_form(self.op.name, prepared)? {
            PreparedForm::Kernel(state) => state.clone().run(node),
            PreparedForm::Constants(constants) => {
                let all = inputs.or(constants);
                let inputs = inputs.of(&all);
                self.run_plain(&NodeCall { inputs, ..*node })
            }
        }
    }

    fn run_call(self, node: &NodeCall<'_>, call: &OpCall<'_>) -> Result<OpResults, Error> {
        let outputs = match call.prepared {
            None => self.run_plain(node),
            Some(prepared) => self.run_prepared(node, prepared),
        };
        outputs?.into_requested(node)
    }

    fn run_plain_as(self, function: &str, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        match plain(function) {
            Some(body) => Kernel { body, ..self }.run_plain(node),
            None => Err(node.error(format_args!("there is no function '{function}'"))),
        }
    }

    fn run_plain(self, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        match self.body {
            Body::Prepared(row) => {
                let prepared = row.prepare(node)?;
                let prepared = prepared.ok_or_else(|| node.error("nothing was prepared"))?;
                self.run_prepared(node, &prepared)
            }
            Body::Own(operation) => operation(node),
            Body::Unary(function) => of_one(node, function),
            Body::Binary(function) => of_two(node, function),
            Body::Fold(function) => of_all(node, function),
            Body::Mean => mean(node),
            Body::ByText(attr, choices) => {
                let stated = node.attributes.string(attr.name)?;
                let show = |text: &str| format!("'{}'", text.escape_debug());
                self.run_plain_as(chosen(node, attr, choices, stated, show)?, node)
            }
            Body::ByInt(attr, choices) => {
                let stated = node.attributes.integer(attr.name)?;
                let show = |number: i64| number.to_string();
                self.run_plain_as(chosen(node, attr, choices, stated, show)?, node)
            }
            Body::Parametric(function) => {
                let mut parameters = [0.0; 2];
                let attrs = self.op.attrs.iter();
                for (parameter, attr) in parameters.iter_mut().zip(attrs) {
                    *parameter = node.attributes.number_of(attr)?;
                }
                with_parameters(node, function, parameters)
            }
        }
    }
}

/// Adds a kernel for each row: `cpu.graph.softmax`, `cpu.onnx.NonMaxSuppression`; and for each of ONNX's operations that is
/// a row in its newest form alone one for older forms: `cpu.onnx.Softmax`.
pub(super) fn register(registry: &mut KernelRegistry) {
    for kernel in KERNELS.values() {
        add(registry, *kernel);
    }
    for name in onnx::NAMES.iter().filter(|name| name.has_other_forms()) {
        if let Some(kernel) = KERNELS.get(name.row) {
            add_older(registry, *kernel, name);
        }
    }
}

/// Adds the kernel of a row, with attributes of the row, or of ONNX's newest version.
///
/// A library operation of ONNX states the version that it is of.
fn add(registry: &mut KernelRegistry, kernel: Kernel) {
    let name = kernel.op.name;
    if kernel.op.dialect() == "onnx" {
        return add_versioned(registry, kernel, format!("cpu.{name}"), name, &[]);
    }
    let writes_over = kernel.writes_over();
    let run = move |mut operands: Rest,
                    attributes: Attr<AttributeView<'_>>,
                    n_results: ResultCount,
                    execution: &ExecutionContext|
          -> Result<Results, Error> {
        let attributes = Attributes::new(name, *attributes)?;
        let workspace = Workspace::new(name, execution);
        let own = writes_over.then(|| own_target(&mut operands)).flatten();
        let node = NodeCall {
            name,
            inputs: Inputs::new(name, &operands, &workspace),
            own_target: own.as_ref(),
            attributes,
            opset: onnx::NEWEST,
            n_results: n_results.0,
            execution,
            workspace: &workspace,
        };
        kernel.run(&node)?.into_results(&node)
    };
    registry.add(&format!("cpu.graph.{name}"), run);
}

/// Adds the kernel of older forms of an operation of ONNX.
fn add_older(registry: &mut KernelRegistry, kernel: Kernel, name: &'static Name) {
    let kernel_name = format!("cpu.onnx.{}", name.name);
    add_versioned(registry, kernel, kernel_name, name.name, name.attrs);
}

fn add_versioned(
    registry: &mut KernelRegistry,
    kernel: Kernel,
    kernel_name: String,
    name: &'static str,
    names: &'static [tfrt_ops::names::NameAttr],
) {
    let name = short(name);
    let writes_over = kernel.writes_over();
    let run = move |mut operands: Rest,
                    attributes: Attr<AttributeView<'_>>,
                    opset: Attr<i64>,
                    n_results: ResultCount,
                    execution: &ExecutionContext|
          -> Result<Results, Error> {
        let attributes = Attributes::new(name, *attributes)?.named(names);
        let workspace = Workspace::new(name, execution);
        let own = writes_over.then(|| own_target(&mut operands)).flatten();
        let node = NodeCall {
            name,
            inputs: Inputs::new(name, &operands, &workspace),
            own_target: own.as_ref(),
            attributes,
            opset: *opset,
            n_results: n_results.0,
            execution,
            workspace: &workspace,
        };
        if *opset < 7 && kernel.op.is(Traits::POINTWISE) && kernel.op.inputs.len() == 2 {
            expect_aligned(&node)?;
        }
        kernel.run(&node)?.into_results(&node)
    };
    registry.add(&kernel_name, run);
}

/// Refuses operands of a version before 7 that are broadcast to another dimension than the last: `onnx-upgrade`
/// replaces them.
fn expect_aligned(node: &NodeCall<'_>) -> Result<(), Error> {
    let Some(axis) = node.attributes.integer("axis")? else {
        return Ok(());
    };
    let shape = |index| Ok::<_, Error>(&node.inputs.tensor(index)?.metadata().shape);
    match shape(0)? == shape(1)? {
        true => Ok(()),
        false => {
            let message = format_args!("of a version before 7 is not supported here, found {axis}");
            Err(node.attributes.error("axis", message))
        }
    }
}

/// Returns the preparation of the constants of a row, or of a fused kernel: `rnn`, `fused.conv`.
pub fn prepare_of(op: &str) -> Option<Prepare> {
    prepare::find(op).map(|row| Prepare {
        inputs: row.inputs,
        types: row.types,
        takes_attributes: row.takes_attributes,
        make: |call| with_node(call, |node| found(call)?.prepare(node)),
    })
}

/// Returns the kernel of a row on the processor, if there is one.
pub fn kernel_of(op: &'static OpDef) -> Option<OpKernel> {
    KERNELS.get(op.name).map(|kernel| OpKernel {
        op: kernel.op.name,
        prepare: prepare_of(op.name),
        ..OpKernel::new(op.name, DeviceKind::CPU, |call| {
            with_node(call, |node| kernel_for(call.op)?.run_call(node, call))
        })
    })
}

/// The kernels by the addresses of their rows, sorted: an eager call has the row itself.
static BY_ROW: LazyLock<Vec<(usize, Kernel)>> = LazyLock::new(|| {
    let by_row = KERNELS.values();
    let mut by_row: Vec<_> = by_row.map(|kernel| (address(kernel.op), *kernel)).collect();
    by_row.sort_unstable_by_key(|(row, _)| *row);
    by_row
});

fn address(op: &OpDef) -> usize {
    std::ptr::from_ref(op).addr()
}

fn kernel_for(op: &OpDef) -> Result<Kernel, Error> {
    let by_row = &*BY_ROW;
    match by_row.binary_search_by_key(&address(op), |(row, _)| *row) {
        Ok(index) => Ok(by_row[index].1),
        Err(_) => {
            let (name, kernel) = (op.name, KERNELS.get(op.name).copied());
            kernel.ok_or_else(|| Error::not_found(format!("{name}: no kernel runs it")))
        }
    }
}

fn found(call: &OpCall<'_>) -> Result<&'static PrepareRow, Error> {
    let name = call.op.name;
    prepare::find(name)
        .ok_or_else(|| Error::not_found(format!("{name}: nothing is prepared of it")))
}

/// Calls `then` with an eager call as a node's.
fn with_node<R>(
    call: &OpCall<'_>,
    then: impl FnOnce(&NodeCall<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let name = short(call.op.name);
    let mut list: SmallVec<[(&'static str, CallerAttr<'_>); 4]> = SmallVec::new();
    for def in call.op.attrs {
        if let Some(value) = call.attrs.stated(def.name) {
            let value = stated(value).ok_or_else(|| {
                let message = format!("{name}: attribute '{}' can't be stated here", def.name);
                Error::invalid_argument(message)
            })?;
            list.push((def.name, value));
        }
    }
    let workspace = Workspace::new(name, call.execution);
    then(&NodeCall {
        name,
        inputs: Inputs::new(name, call.inputs, &workspace),
        // They are the caller's.
        own_target: None,
        attributes: Attributes::stated(name, &list),
        opset: onnx::NEWEST,
        n_results: call.n_results,
        execution: call.execution,
        workspace: &workspace,
    })
}

/// Returns the name of a row in messages: without the dialect.
pub(super) fn short(name: &'static str) -> &'static str {
    name.strip_prefix("onnx.").unwrap_or(name)
}

fn stated(value: AttrValue<'_>) -> Option<CallerAttr<'_>> {
    Some(match value {
        AttrValue::Int(value) => CallerAttr::Integer(value),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "kernels take numbers of this type"
        )]
        AttrValue::Float(value) => CallerAttr::Float(value as f32),
        AttrValue::Bytes(bytes) => CallerAttr::Text(bytes),
        AttrValue::Type(dtype) => CallerAttr::Type(dtype),
        AttrValue::Ints(list) => CallerAttr::Integers(list),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "kernels take numbers of this type"
        )]
        AttrValue::Floats(list) => {
            CallerAttr::Floats(list.iter().map(|value| *value as f32).collect())
        }
        AttrValue::Strings(list) => CallerAttr::Texts(list),
        AttrValue::Types(_) | AttrValue::Shapes(_) | AttrValue::Tensor(_) | AttrValue::Other => {
            return None;
        }
    })
}
