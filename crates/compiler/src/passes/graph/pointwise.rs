//! Pointwise operations, and the steps of fused programs that they become.
//!
//! A row with the trait is one step of a program (`cpu.fused.elementwise`): the function of its name, with its numbers as
//! parameters, for the types that the row says; or what its [`PointwiseFn`] says. Three are something else: [`Form`]. The passes
//! that fuse and lay out ask here.

use tfrt_ir::{Attribute, Module, OpId, Type, ValueId};
use tfrt_ops::{Arity, AttrDef, AttrDefault, AttrKind, ElementFamily, OpDef, PointwiseFn, Traits};

use super::{attrs, node, place};

/// A pointwise operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::passes) struct Pointwise {
    row: &'static OpDef,
    pub(in crate::passes) operands: Operands,
    form: Form,
}

/// The operands of a pointwise operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::passes) enum Operands {
    /// One operand; further ones, which `Clip` alone has, are of one element.
    One,
    /// Two operands, which are broadcast to each other.
    Two,
    /// Two operands, of which the second is broadcast to the first.
    Onto,
    /// One or more operands, which are broadcast to each other.
    Many,
    /// A condition, and two operands to choose from.
    Three,
}

/// The way in which an operation becomes steps.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// By the function of its row.
    OfRow,
    /// As `Clip`.
    Clip,
    /// As `pow`.
    Power,
    /// As `cast`.
    Cast,
}

impl Form {
    fn of(row: &OpDef) -> Form {
        match row.name {
            "cast" => Form::Cast,
            "pow" => Form::Power,
            "onnx.Clip" => Form::Clip,
            _ => Form::OfRow,
        }
    }
}

/// Returns the pointwise operation of a row's name.
pub(in crate::passes) fn of_name(name: &str) -> Option<Pointwise> {
    let row = tfrt_ops::find(name).filter(|row| row.is(Traits::POINTWISE))?;
    let has_rest = matches!(row.inputs.first()?.arity, Arity::Rest(_));
    let operands = match (row.inputs.len(), row.name) {
        _ if has_rest => Operands::Many,
        (_, "onnx.Clip") => Operands::One,
        (_, "onnx.PRelu") => Operands::Onto,
        (1, _) => Operands::One,
        (2, _) => Operands::Two,
        (3, _) => Operands::Three,
        _ => return None,
    };
    Some(Pointwise {
        row,
        operands,
        form: Form::of(row),
    })
}

/// A step of a fused program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) function: &'static str,
    pub(super) operands: Vec<Operand>,
    /// The text behind the operands.
    pub(super) parameters: String,
}

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    Value(ValueId),
    /// The result of the step before, which is of the same operation.
    Before,
    Number(f64),
}

impl Step {
    fn new(function: &'static str, operands: Vec<Operand>) -> Step {
        Step {
            function,
            operands,
            parameters: String::new(),
        }
    }

    fn number(mut self, number: f64) -> Step {
        self.parameters.push_str(&format!(" {number:e}"));
        self
    }
}

/// Returns the steps of a pointwise operation on the host, if its types are known and supported, and it fails for no shapes
/// but those that don't broadcast.
pub(super) fn steps(module: &Module, op: OpId) -> Option<Vec<Step>> {
    match place::is_placed(module, op) {
        true => None,
        false => steps_anywhere(module, op),
    }
}

/// Returns the steps of a pointwise operation, on whichever device it is.
pub(super) fn steps_anywhere(module: &Module, op: OpId) -> Option<Vec<Step>> {
    let row = of_name(node::name_anywhere(module, op))?;
    let data = module.op(op);
    let &[result] = data.results() else {
        return None;
    };
    let given = operands(module, op)?;
    let fits = match row.operands {
        Operands::One => given.len() == 1 || matches!(row.form, Form::Clip),
        Operands::Two | Operands::Onto => given.len() == 2,
        Operands::Many => true,
        Operands::Three => given.len() == 3,
    };
    if !fits || (row.operands == Operands::Onto && !is_onto(module, &given)) {
        return None;
    }
    let element = |value: ValueId| node::element(module.value_type(value));
    let (mut typed, made) = (&given[..], element(result)?);
    if row.operands == Operands::Three {
        let is_truth = element(given[0]) == Some(Type::I1);
        typed = given.get(1..).filter(|_| is_truth)?;
    }
    let own = element(*typed.first()?)?;
    let are_alike = typed
        .iter()
        .all(|value| element(*value).as_ref() == Some(&own));
    let is_question = matches!(row.row.results, [result] if is_truth(result));
    let gives = match row.form {
        Form::Cast => is_of(ElementFamily::Any, &made),
        _ if is_question => made == Type::I1,
        _ => made == own,
    };
    let is_typed = is_of(row.row.elements, &own) && gives;
    if !is_typed || !(are_alike || matches!(row.form, Form::Power)) {
        return None;
    }
    let all = || {
        given
            .iter()
            .map(|value| Operand::Value(*value))
            .collect::<Vec<_>>()
    };
    match row.form {
        Form::OfRow => match row.row.function {
            PointwiseFn::Fold(function) => Some(folded(function, false, &given)),
            PointwiseFn::Mean => Some(folded("add", true, &given)),
            PointwiseFn::OfRow => with_parameters(module, op, row.row, row.row.name, all()),
            PointwiseFn::Is(function) => with_parameters(module, op, row.row, function, all()),
            PointwiseFn::ByText(attribute, choices) => {
                let stated = match data.attribute(attribute) {
                    Some(stated) => Some(stated.as_str()?),
                    None => None,
                };
                let attr = row.row.attr(attribute)?;
                let function = PointwiseFn::chosen(attr, choices, stated)?;
                Some(vec![Step::new(function, all())])
            }
            PointwiseFn::ByInt(attribute, choices) => {
                let stated = match data.attribute(attribute) {
                    Some(stated) => Some(stated.as_i64()?),
                    None => None,
                };
                let attr = row.row.attr(attribute)?;
                let function = PointwiseFn::chosen(attr, choices, stated)?;
                Some(vec![Step::new(function, all())])
            }
        },
        Form::Clip => clip(module, op),
        Form::Power => power(module, &given, &own),
        Form::Cast => {
            let to = node::ty(module, op, "to")?;
            let mut step = Step::new("cast", all());
            step.parameters = format!(" {to}");
            (*to == made).then_some(vec![step])
        }
    }
}

/// Returns the step of a function whose parameters are the numbers of the row.
fn with_parameters(
    module: &Module,
    op: OpId,
    row: &OpDef,
    function: &'static str,
    operands: Vec<Operand>,
) -> Option<Vec<Step>> {
    let step = Step::new(function, operands);
    let with = |step: Step, parameter: &AttrDef| Some(step.number(value(module, op, parameter)?));
    Some(vec![row.attrs.iter().try_fold(step, with)?])
}

/// Returns the operands, none of which may be left out; those of `Clip` behind the first are read by [`clip`].
fn operands(module: &Module, op: OpId) -> Option<Vec<ValueId>> {
    let n_operands = match node::name_anywhere(module, op) {
        "onnx.Clip" => 1,
        _ => module.op(op).operands().len(),
    };
    (0..n_operands)
        .map(|index| node::operand(module, op, index))
        .collect()
}

/// Returns whether a type belongs to a family.
fn is_of(elements: ElementFamily, ty: &Type) -> bool {
    attrs::dtype(ty).is_some_and(|dtype| elements.has(dtype))
}

fn is_truth(result: &tfrt_ops::ValueDef) -> bool {
    matches!(result.types, tfrt_ops::Types::Set(&[tfrt_bef::DType::I1]))
}

/// Returns a parameter: the attribute, or the default of the row. An integer is a truth value.
fn value(module: &Module, op: OpId, attr: &AttrDef) -> Option<f64> {
    match (module.op(op).attribute(attr.name), attr.kind, attr.default) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "attributes are numbers of 32 bits"
        )]
        (Some(Attribute::Float(number)), AttrKind::Float, _) => {
            Some(f64::from(number.value() as f32))
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "attributes are numbers of 32 bits"
        )]
        (None, AttrKind::Float, AttrDefault::Float(number)) => Some(f64::from(number as f32)),
        (Some(stated), AttrKind::Int, _) => Some(f64::from(u8::from(stated.as_i64()? != 0))),
        (None, AttrKind::Int, AttrDefault::Int(number)) => Some(f64::from(u8::from(number != 0))),
        _ => None,
    }
}

/// Returns whether the second of two values is certainly broadcast to the first.
fn is_onto(module: &Module, values: &[ValueId]) -> bool {
    let &[x, other] = values else {
        return false;
    };
    let [Some(own), Some(others)] = [x, other].map(|value| node::shape(module, value)) else {
        return false;
    };
    let are_alike =
        node::extents(module, x).is_some_and(|own| Some(own) == node::extents(module, other));
    let mut pairs = own.iter().rev().zip(others.iter().rev());
    let fits = |(own, other): (&i64, &i64)| *other == 1 || (other == own && *own >= 0);
    are_alike || (others.len() <= own.len() && pairs.all(fits))
}

fn folded(function: &'static str, is_mean: bool, given: &[ValueId]) -> Vec<Step> {
    let mut so_far = Operand::Value(given[0]);
    let mut steps = Vec::new();
    for value in &given[1..] {
        steps.push(Step::new(function, vec![so_far, Operand::Value(*value)]));
        so_far = Operand::Before;
    }
    if is_mean {
        #[allow(clippy::cast_precision_loss, reason = "they are no 2^53")]
        let n = given.len() as f64;
        steps.push(Step::new("divided_by", vec![so_far]).number(n));
    }
    if steps.is_empty() {
        steps.push(Step::new("identity", vec![so_far]));
    }
    steps
}

/// Returns the steps of `Clip` within constant bounds.
fn clip(module: &Module, op: OpId) -> Option<Vec<Step>> {
    let data = module.op(op);
    // Bounds were attributes before version 11.
    if ["min", "max"]
        .iter()
        .any(|name| data.attribute(name).is_some())
    {
        return None;
    }
    let x = node::operand(module, op, 0)?;
    let mut steps = Vec::new();
    let mut so_far = Operand::Value(x);
    for (index, function) in [(1, "max"), (2, "min")] {
        let Some(bound) = node::operand(module, op, index) else {
            continue;
        };
        let is_alike =
            node::element(module.value_type(bound)) == node::element(module.value_type(x));
        let number = node::element_number(module, bound).filter(|_| is_alike)?;
        steps.push(Step::new(function, vec![so_far, Operand::Number(number)]));
        so_far = Operand::Before;
    }
    if steps.is_empty() {
        steps.push(Step::new("identity", vec![so_far]));
    }
    Some(steps)
}

/// Returns the step of `Pow`, whose kernel has its own way to calculate powers of one exponent.
fn power(module: &Module, given: &[ValueId], own: &Type) -> Option<Vec<Step>> {
    let &[x, exponent] = given else {
        return None;
    };
    let base = vec![Operand::Value(x)];
    let ranks = [x, exponent].map(|value| node::shape(module, value).map(|shape| shape.len()));
    let exponent_type = node::element(module.value_type(exponent))?;
    if exponent_type == Type::UI64 || !is_of(ElementFamily::Real, &exponent_type) {
        return None;
    }
    if let Some(number) = node::element_number(module, exponent) {
        let [x_rank, rank] = ranks;
        if !(rank == Some(0) || (rank? <= x_rank?)) {
            return None;
        }
        let whole = node::constant_ints(module, exponent).and_then(|list| list.first().copied());
        let is_integer = is_of(ElementFamily::Integer, own);
        return Some(vec![match (number, whole) {
            (_, Some(whole)) if is_integer => {
                let [high, low] = [whole >> 32, whole & i64::from(u32::MAX)];
                #[allow(clippy::cast_precision_loss, reason = "they have 32 bits")]
                Step::new("whole_power_of", base)
                    .number(high as f64)
                    .number(low as f64)
            }
            (2.0, _) if !is_integer => Step::new("square", base),
            (0.5, _) if !is_integer => Step::new("sqrt", base),
            (number, _) => Step::new("power_of", base).number(number),
        }]);
    }
    let has_many = node::shape(module, exponent)?
        .iter()
        .any(|extent| *extent > 1);
    let all = vec![Operand::Value(x), Operand::Value(exponent)];
    (exponent_type == *own && has_many).then(|| vec![Step::new("pow", all)])
}
