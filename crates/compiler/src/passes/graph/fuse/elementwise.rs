//! Fuses chains and trees of pointwise operations to programs of one kernel.
//!
//! An operation joins those that use its result, if they are all of one program and of the same shape. So
//! nothing is calculated twice, and no program waits for what it makes itself. An operation that nothing joins becomes a
//! program only if all it takes and gives is `f32`: else its own kernel says better what is wrong with its operands.
//!
//! Nodes that are placed on a device become programs of its kernel for the row `pointwise`, if it has one, and takes what
//! each of them takes. One that nothing joins becomes a program there if it takes or gives half precision, which kernels of
//! a device may widen and round apart.

use std::collections::{HashMap, HashSet};

use tfrt_bef::DType;
use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};
use tfrt_ops::{AttrSource, AttrValue, Attrs, KernelQuery};

use super::super::pointwise::{self, Operand};
use super::super::rewrite::Rewrite;
use super::super::{GRAPH, attrs, fused, node, place};
use crate::onnx::Evaluator;

/// The most operations of a program.
const MOST_STEPS: usize = 4096;

/// The most operations of a program of a device, which has each step in its code.
const MOST_PLACED: usize = 64;

/// The most inputs of a program of a device, whose kernels have an argument for each.
const MOST_PLACED_INPUTS: usize = 64;

/// The row of programs of devices.
const ROW: &str = "pointwise";

/// Fuses the pointwise operations of a block.
pub(super) fn fuse(module: &mut Module, block: BlockId, evaluator: &dyn Evaluator) {
    let operations = module.block(block).operations().to_vec();
    // The program of each step, named by its last one.
    let mut programs: HashMap<OpId, OpId> = HashMap::new();
    let mut sizes: HashMap<OpId, usize> = HashMap::new();
    for &op in operations.iter().rev() {
        if !joins(module, op, evaluator) {
            continue;
        }
        let result = module.op(op).results()[0];
        let mut users = module
            .users(result)
            .map(|user| programs.get(&user.op).copied());
        let first = users.next().flatten();
        let joined = first.filter(|root| {
            let shape = |op: OpId| node::shape(module, module.op(op).results()[0]);
            let device = |op: OpId| module.op(op).attribute(place::DEVICE);
            let most = device(op).map_or(MOST_STEPS, |_| MOST_PLACED);
            users.all(|other| other == Some(*root))
                && shape(*root) == shape(op)
                && device(*root) == device(op)
                && sizes.get(root).is_none_or(|size| *size < most)
        });
        let root = joined.unwrap_or(op);
        programs.insert(op, root);
        *sizes.entry(root).or_default() += 1;
    }
    programs.retain(|op, root| {
        op != root || sizes.get(op).is_some_and(|size| *size > 1) || is_alone(module, *op)
    });
    if programs.is_empty() {
        return;
    }
    let mut steps: HashMap<OpId, Vec<OpId>> = HashMap::new();
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        let Some(&root) = programs.get(&op) else {
            rewrite.keep(op);
            continue;
        };
        steps.entry(root).or_default().push(op);
        if root == op {
            let all = steps.remove(&root).unwrap_or_default();
            program(&mut rewrite, &all);
        }
    }
    rewrite.finish(&old);
}

/// Returns whether an operation is one that may join others: it has steps, and its device runs such programs.
fn joins(module: &Module, op: OpId, evaluator: &dyn Evaluator) -> bool {
    if !place::is_placed(module, op) {
        return pointwise::steps(module, op).is_some();
    }
    let result = module.op(op).results().first();
    let gives = result.and_then(|result| dtype(module, *result));
    let (Some(_), Some(gives)) = (pointwise::steps_anywhere(module, op), gives) else {
        return false;
    };
    let row = tfrt_ops::find(ROW);
    row.is_some_and(|row| {
        evaluator.runs_on_device(&KernelQuery {
            op: row.name,
            attrs: Attrs::new(&Given(gives), row.attrs),
            types: &place::types(module, op),
            n_results: Some(1),
        })
    })
}

/// The attributes by which a device is asked whether it runs programs: the type of the result.
struct Given(DType);

impl AttrSource for Given {
    fn get(&self, name: &str) -> Option<AttrValue<'_>> {
        (name == "type").then_some(AttrValue::Type(self.0))
    }
}

fn dtype(module: &Module, value: ValueId) -> Option<DType> {
    attrs::dtype(&node::element(module.value_type(value))?)
}

/// Returns whether an operation becomes a program even without others.
fn is_alone(module: &Module, op: OpId) -> bool {
    let data = module.op(op);
    let mut values = data.operands().iter().chain(data.results());
    if place::is_placed(module, op) {
        let is_half =
            |value: &ValueId| matches!(dtype(module, *value), Some(DType::F16 | DType::Bf16));
        return !["identity", "cast"].contains(&node::name_anywhere(module, op))
            && values.any(is_half);
    }
    node::name(module, op) != "identity" && values.all(|value| node::is_f32(module, *value))
}

/// Appends the program of some operations, of which the last makes the result.
fn program(rewrite: &mut Rewrite<'_>, operations: &[OpId]) {
    let mut texts = Texts {
        has_shape: has_shape(rewrite.module, operations),
        ..Texts::default()
    };
    for &op in operations {
        texts.operation(rewrite.module, op);
    }
    let Texts { inputs, steps, .. } = texts;
    let last = operations[operations.len() - 1];
    let placed = [place::DEVICE, place::KIND].map(|name| rewrite.module.op(last).attribute(name));
    let placed = placed.map(Option::<&Attribute>::cloned);
    if placed[0].is_some() && inputs.len() > MOST_PLACED_INPUTS {
        operations.iter().for_each(|op| rewrite.keep(*op));
        return;
    }
    let n_inputs = i64::try_from(inputs.len()).unwrap_or(i64::MAX);
    let result = rewrite.module.op(last).results()[0];
    let inputs: Vec<ValueId> = inputs
        .into_iter()
        .map(|value| rewrite.mapped(value))
        .collect();
    let ty = rewrite.module.value_type(result).clone();
    let state = match placed {
        [Some(device), Some(kind)] => OpState::new(format!("{GRAPH}{ROW}"))
            .attribute(place::DEVICE, device)
            .attribute(place::KIND, kind)
            .attribute("program", Attribute::string(steps.join("; ")))
            .attribute(
                "type",
                node::element(&ty).map_or(Attribute::Unit, Attribute::Type),
            ),
        _ => OpState::new(fused::ELEMENTWISE)
            .attribute("inputs", Attribute::integer(n_inputs, Type::I64))
            .attribute(
                "steps",
                Attribute::array(steps.into_iter().map(Attribute::string).collect()),
            ),
    };
    let mut state = state.operands(inputs).result(ty);
    if let Some(shapes) = rewrite.module.op(last).attribute("model.shapes") {
        state = state.attribute("model.shapes", shapes.clone());
    }
    let made = rewrite.add(state, last);
    rewrite.values.insert(result, made);
}

/// The steps of a program, as text, and its inputs.
#[derive(Default)]
struct Texts {
    /// Whether the inputs determine the shape without those of one element.
    has_shape: bool,
    inputs: Vec<ValueId>,
    steps: Vec<String>,
    /// The index of the step that makes each value.
    made: HashMap<ValueId, usize>,
}

impl Texts {
    /// Appends the steps of an operation.
    fn operation(&mut self, module: &Module, op: OpId) {
        for step in pointwise::steps_anywhere(module, op).unwrap_or_default() {
            let mut text = step.function.to_string();
            for index in 0..step.operands.len() {
                text.push(' ');
                text.push_str(&self.operand(module, &step.operands, index));
            }
            text.push_str(&step.parameters);
            self.steps.push(text);
        }
        let result = module.op(op).results()[0];
        self.made.insert(result, self.steps.len().saturating_sub(1));
    }

    fn operand(&mut self, module: &Module, all: &[Operand], index: usize) -> String {
        let value = match all[index] {
            Operand::Before => return format!("s{}", self.steps.len().saturating_sub(1)),
            Operand::Number(number) => return format!("{number:e}"),
            Operand::Value(value) => value,
        };
        if let Some(step) = self.made.get(&value) {
            return format!("s{step}");
        }
        if self.has_shape
            && let Some(number) = number(module, all, index, value)
        {
            return format!("{number:e}");
        }
        let found = self.inputs.iter().position(|input| *input == value);
        let found = found.unwrap_or_else(|| {
            self.inputs.push(value);
            self.inputs.len() - 1
        });
        format!("a{found}")
    }
}

/// Returns the number that replaces an operand of a step, if another operand has its type and as many dimensions.
fn number(module: &Module, all: &[Operand], index: usize, value: ValueId) -> Option<f64> {
    let number = node::element_number(module, value)?;
    let rank = node::shape(module, value)?.len();
    // Of a selection, whose condition is of another type, the two others.
    let first = usize::from(all.len() == 3);
    let others = all
        .iter()
        .enumerate()
        .skip(first)
        .filter(|(other, _)| *other != index);
    let mut is_typed = false;
    let mut has_rank = rank == 0;
    for (other, operand) in others {
        let is_number = match operand {
            Operand::Value(value) => {
                let own = node::shape(module, *value);
                let is_number = node::element_number(module, *value).is_some();
                has_rank |= !is_number && own.is_some_and(|own| own.len() >= rank);
                is_number
            }
            Operand::Before => false,
            Operand::Number(_) => true,
        };
        // Of two numbers the first stays an operand.
        is_typed |= !is_number || other < index;
    }
    (index >= first && is_typed && has_rank).then_some(number)
}

/// Returns whether a value is a constant of one element.
fn has_one(module: &Module, value: ValueId) -> bool {
    node::constant(module, value).is_some_and(|dense| dense.n_elements() == Some(1))
}

/// Returns whether a program has an input other than constants of one element, which determines the shape.
fn has_shape(module: &Module, steps: &[OpId]) -> bool {
    let own: HashSet<OpId> = steps.iter().copied().collect();
    let mut operands = steps.iter().flat_map(|op| module.op(*op).operands());
    operands.any(|value| {
        let maker = module.defining_op(*value);
        !maker.is_some_and(|maker| own.contains(&maker)) && !has_one(module, *value)
    })
}
