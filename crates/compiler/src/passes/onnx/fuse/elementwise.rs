//! Chains and trees of elementwise functions of `f32` as programs of one kernel.
//!
//! A function joins those that use its result, if they are all of one program and of the same shape. So
//! nothing is calculated twice, and no program waits for what it makes itself.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::Rewrite;

/// The most steps of a program.
const MOST_STEPS: usize = 4096;

/// Functions of one operand, and what kernels call them.
const UNARY: &[(&str, &str)] = &[
    ("Abs", "abs"),
    ("Ceil", "ceil"),
    ("Cos", "cos"),
    ("Erf", "erf"),
    ("Exp", "exp"),
    ("Floor", "floor"),
    ("Log", "log"),
    ("Neg", "neg"),
    ("Reciprocal", "reciprocal"),
    ("Relu", "relu"),
    ("Round", "round"),
    ("Sigmoid", "sigmoid"),
    ("Sign", "sign"),
    ("Sin", "sin"),
    ("Softplus", "softplus"),
    ("Sqrt", "sqrt"),
    ("Tan", "tan"),
    ("Tanh", "tanh"),
];

/// Functions of two.
const BINARY: &[(&str, &str)] = &[
    ("Add", "add"),
    ("Div", "div"),
    ("Max", "max"),
    ("Min", "min"),
    ("Mul", "mul"),
    ("Pow", "pow"),
    ("Sub", "sub"),
    ("Sum", "add"),
];

fn function(name: &str, n_operands: usize) -> Option<&'static str> {
    let table = match n_operands {
        1 => UNARY,
        2 => BINARY,
        _ => return None,
    };
    let mut found = table.iter().filter(|(onnx, _)| *onnx == name);
    found.next().map(|(_, kernel)| *kernel)
}

/// Returns the function that an operation is, if it can be a step.
fn step(module: &Module, op: OpId) -> Option<&'static str> {
    let data = module.op(op);
    let &[result] = data.results() else {
        return None;
    };
    let function = match (node::name(module, op), data.operands().len()) {
        ("Gelu", 1) if node::text(module, op, "approximate") == "tanh" => "gelu_tanh",
        ("Gelu", 1) => "gelu",
        (name, n_operands) => function(name, n_operands)?,
    };
    // Before version 7 operands were broadcast in another way.
    let own = node::int(module, op, "onnx.opset", 7);
    let is_f32 = |value: &ValueId| node::is_f32(module, *value);
    let fits = own >= 7 && is_f32(&result) && data.operands().iter().all(is_f32);
    let broadcast = data.attribute("broadcast").is_none() && data.attribute("axis").is_none();
    (fits && broadcast).then_some(function)
}

/// Fuses what can be in a block.
pub(super) fn fuse(module: &mut Module, block: BlockId) {
    let operations = module.block(block).operations().to_vec();
    // The program of each step, named by its last one.
    let mut programs: HashMap<OpId, OpId> = HashMap::new();
    let mut sizes: HashMap<OpId, usize> = HashMap::new();
    for &op in operations.iter().rev() {
        if step(module, op).is_none() {
            continue;
        }
        let result = module.op(op).results()[0];
        let mut users = module
            .users(result)
            .map(|user| programs.get(&user.op).copied());
        let first = users.next().flatten();
        let joined = first.filter(|root| {
            let ty = |op: OpId| module.value_type(module.op(op).results()[0]);
            users.all(|other| other == Some(*root))
                && ty(*root) == ty(op)
                && sizes.get(root).is_none_or(|size| *size < MOST_STEPS)
        });
        let root = joined.unwrap_or(op);
        programs.insert(op, root);
        *sizes.entry(root).or_default() += 1;
    }
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

/// Appends the program of steps, of which the last gives the result.
fn program(rewrite: &mut Rewrite<'_>, steps: &[OpId]) {
    let mut numbers: HashMap<ValueId, usize> = HashMap::new();
    let mut inputs: Vec<ValueId> = Vec::new();
    let mut texts = Vec::with_capacity(steps.len());
    let module = &*rewrite.module;
    let last = steps[steps.len() - 1];
    let rank_of = |value: ValueId| node::shape(module, value).map(|shape| shape.len());
    let rank = rank_of(module.op(last).results()[0]);
    let has_shape = has_shape(module, steps);
    for (number, &op) in steps.iter().enumerate() {
        let Some(function) = step(module, op) else {
            return;
        };
        let mut text = function.to_owned();
        for &operand in module.op(op).operands() {
            if let Some(number) = numbers.get(&operand) {
                text.push_str(&format!(" s{number}"));
                continue;
            }
            // A number has no dimensions to broadcast others to.
            let is_small = match (rank_of(operand), rank) {
                (Some(0), _) => true,
                (Some(own), Some(rank)) => own <= rank && module.op(op).operands().len() == 2,
                _ => false,
            };
            let constant = node::constant_number(module, operand)
                .filter(|number| is_small && number.is_finite() && has_one(module, operand));
            if let Some(constant) = constant.filter(|_| has_shape) {
                text.push_str(&format!(" {constant:e}"));
                continue;
            }
            let index = inputs.iter().position(|input| *input == operand);
            let index = index.unwrap_or_else(|| {
                inputs.push(operand);
                inputs.len() - 1
            });
            text.push_str(&format!(" a{index}"));
        }
        numbers.insert(module.op(op).results()[0], number);
        texts.push(Attribute::string(text));
    }
    let n_inputs = i64::try_from(inputs.len()).unwrap_or(i64::MAX);
    let pack = OpState::new("cpu.pack.program")
        .attribute("inputs", Attribute::integer(n_inputs, Type::I64))
        .attribute("steps", Attribute::array(texts))
        .result(Type::dialect("!cpu.graph.program"));
    let packed = rewrite.add(pack, last);
    let result = rewrite.module.op(last).results()[0];
    let inputs: Vec<ValueId> = inputs.into_iter().map(|value| rewrite.now(value)).collect();
    let mut state = OpState::new("cpu.graph.elementwise")
        .operand(packed)
        .operands(inputs)
        .result(rewrite.module.value_type(result).clone());
    if let Some(shapes) = rewrite.module.op(last).attribute("onnx.shapes") {
        state = state.attribute("onnx.shapes", shapes.clone());
    }
    let made = rewrite.add(state, last);
    rewrite.values.insert(result, made);
}

/// Returns whether a constant has one element alone.
fn has_one(module: &Module, value: ValueId) -> bool {
    node::constant(module, value).is_some_and(|dense| dense.n_elements() == Some(1))
}

/// Returns whether a program takes anything but constants of one element, which gives it its shape.
fn has_shape(module: &Module, steps: &[OpId]) -> bool {
    let own: HashSet<OpId> = steps.iter().copied().collect();
    let mut operands = steps.iter().flat_map(|op| module.op(*op).operands());
    operands.any(|value| {
        let maker = module.defining_op(*value);
        !maker.is_some_and(|maker| own.contains(&maker)) && !has_one(module, *value)
    })
}
