//! Probes in loops: what one of them records in a turn becomes one more value that the loop carries.

use std::collections::HashMap;

use tfrt::ir::attributes::{Bytes, DenseAttribute, DenseElements};
use tfrt::ir::{Attribute, Location, Module, OpId, OpState, Operation, Type, ValueId};

/// A probe in the body of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    turns: OpId,
    value: ValueId,
}

/// Returns the name by which a probe and its check know each other.
pub fn name_of(op: &Operation) -> Option<String> {
    let name = op.attribute("probe_id").and_then(Attribute::as_str);
    name.map(str::to_owned)
}

/// Makes a probe an operation that hands on its operand, and returns its name and that operand.
pub fn take(module: &mut Module, op: OpId) -> Option<(String, ValueId)> {
    let data = module.op(op);
    let name = name_of(data).filter(|_| *data.name() == "interpreter.probe")?;
    let value = *data.operands().first()?;
    module.set_name(op, "stablehlo.optimization_barrier");
    module.remove_attribute(op, "probe_id");
    Some((name, value))
}

/// Takes the probes of a loop's body.
pub fn of_loop(module: &mut Module, turns: OpId, probes: &mut HashMap<String, Probe>) {
    let body = module.op(turns).regions().get(1).copied();
    let Some(block) = body.and_then(|region| module.entry_block(region)) else {
        return;
    };
    for op in module.block(block).operations().to_vec() {
        if let Some((name, value)) = take(module, op) {
            probes.insert(name, Probe { turns, value });
        }
    }
}

/// Returns what a probe records in a turn, and whether the loop comes to that turn; appends what these need to the
/// operations of the function, of which the loop is one.
pub fn recorded(
    module: &mut Module,
    kept: &mut Vec<OpId>,
    probe: Probe,
    turn: i64,
) -> Option<[ValueId; 2]> {
    let ty = module.value_type(probe.value).clone();
    let number = Type::tensor(Vec::new(), Type::I64);
    let before = kept.iter().position(|op| *op == probe.turns)?;
    let starts = [number.clone(), ty.clone()].map(|ty| zeros(module, ty));
    for (index, start) in starts.into_iter().enumerate() {
        kept.insert(before + index, start);
    }
    let mut operands = module.op(probe.turns).operands().to_vec();
    operands.extend(starts.map(|start| module.op(start).results()[0]));
    module.set_operands(probe.turns, &operands);
    let mut arguments = Vec::new();
    for region in module.op(probe.turns).regions().to_vec() {
        let block = module.entry_block(region)?;
        arguments = [number.clone(), ty.clone()]
            .into_iter()
            .map(|ty| module.add_argument(block, ty, Location::Unknown))
            .collect();
    }
    let [count, before] = arguments[..] else {
        return None;
    };
    let body = module.entry_block(*module.op(probe.turns).regions().get(1)?)?;
    let mut operations = module.block(body).operations().to_vec();
    let last = operations.pop()?;
    let mut add = |module: &mut Module, state: OpState| {
        let op = module.create(state);
        operations.push(op);
        module.op(op).results()[0]
    };
    let of_turn = add(module, whole(turn));
    let one = add(module, whole(1));
    let is_it = add(module, compared("EQ", count, of_turn));
    let select = OpState::new("stablehlo.select").operands([is_it, probe.value, before]);
    let record = add(module, select.result(ty.clone()));
    let next = OpState::new("stablehlo.add").operands([count, one]);
    let next = add(module, next.result(number.clone()));
    operations.push(last);
    let mut given = module.op(last).operands().to_vec();
    given.extend([next, record]);
    module.set_operands(last, &given);
    module.set_operations(body, operations);
    let n_results = module.op(probe.turns).results().len();
    let count = module.insert_result(probe.turns, n_results, number);
    let record = module.insert_result(probe.turns, n_results + 1, ty);
    let of_turn = module.create(whole(turn));
    let turn = module.op(of_turn).results()[0];
    let comes_there = module.create(compared("GT", count, turn));
    kept.extend([of_turn, comes_there]);
    Some([record, module.op(comes_there).results()[0]])
}

fn zeros(module: &mut Module, ty: Type) -> OpId {
    let mut value = DenseAttribute {
        ty: ty.clone(),
        elements: DenseElements::Bytes(Bytes::new()),
        splat: true,
    };
    value.elements = DenseElements::Bytes(vec![0; value.element_size_bytes()].into());
    module.create(constant(value))
}

/// Describes a constant of one integer.
fn whole(value: i64) -> OpState {
    constant(DenseAttribute {
        ty: Type::tensor(Vec::new(), Type::I64),
        elements: DenseElements::Bytes(value.to_le_bytes().to_vec().into()),
        splat: true,
    })
}

/// Describes the constant that is true.
pub fn truth() -> OpState {
    constant(DenseAttribute {
        ty: Type::tensor(Vec::new(), Type::I1),
        elements: DenseElements::Bytes(Bytes::from_static(&[1])),
        splat: true,
    })
}

/// Describes a constant.
fn constant(value: DenseAttribute) -> OpState {
    let ty = value.ty.clone();
    OpState::new("stablehlo.constant")
        .attribute("value", Attribute::Dense(value.into()))
        .result(ty)
}

fn compared(direction: &str, x: ValueId, y: ValueId) -> OpState {
    let direction = format!("#stablehlo<comparison_direction {direction}>");
    OpState::new("stablehlo.compare")
        .operands([x, y])
        .attribute(
            "comparison_direction",
            Attribute::Opaque(direction.as_str().into()),
        )
        .result(Type::tensor(Vec::new(), Type::I1))
}
