//! The pointwise operations: those that make each element of their result of the elements at the same place.
//!
//! [`TABLE`] has a row for each: which steps of a program (`cpu.fused.elementwise`) it is, and for which types. The passes that
//! fuse and lay out ask it.

use tfrt_ir::{
    Attribute, Module, OpId, Type, ValueId,
    types::{FloatKind, IntegerType, Signedness},
};

use self::Choice::{Integer as Number, Text};
use self::Parameter::{Float as Attr, Integer as Flag};
use self::Types::{Any, Float, Integer, Real, RealOrTruth, Truth, Unsigned};
use super::node;

/// A pointwise operation: the name of its row, its operands and their types, and the steps that it becomes.
#[derive(Debug)]
pub(super) struct Pointwise {
    /// The name of its row.
    name: &'static str,
    pub(super) operands: Operands,
    /// The types of its operands; of `Where` those that it chooses from, of `Pow` the base.
    types: Types,
    form: Form,
}

/// Which operands an operation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// One of elements; others, which `Clip` alone has, are of one element.
    One,
    /// Two, which are broadcast to each other.
    Two,
    /// Two, of which the second is broadcast to the first.
    Onto,
    /// One or more, which are broadcast to each other.
    Many,
    /// A condition, and two to choose from.
    Three,
}

/// The types that an operation has steps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Types {
    /// Numbers and truth values.
    Any,
    Real,
    Float,
    Integer,
    Unsigned,
    Truth,
    RealOrTruth,
}

/// The steps that an operation is.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// One step, with attributes as its parameters.
    Step(&'static str, &'static [Parameter]),
    /// A step that gives truth values.
    Question(&'static str, &'static [Parameter]),
    /// The step that stands beside the value of an attribute; the first if the model leaves it out.
    Choice(&'static str, &'static [(Choice, &'static str)]),
    /// Like `Choice`, for an attribute that must be stated.
    Stated(&'static str, &'static [(Choice, &'static str)]),
    /// A step for each operand but the first; the result divided by the number of operands, if asked for.
    Fold(&'static str, bool),
    /// `Clip`.
    Clip,
    /// `Pow`.
    Power,
    /// `Cast`.
    Cast,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Text(&'static str),
    Integer(i64),
}

/// An attribute that is a parameter of a step, and its default.
#[derive(Clone, Copy, Debug)]
enum Parameter {
    Float(&'static str, f32),
    Integer(&'static str, i64),
}

/// `one("Exp", "exp", Types::Float)`
const fn one(name: &'static str, step: &'static str, types: Types) -> Pointwise {
    with(name, step, types, &[])
}

const fn with(
    name: &'static str,
    step: &'static str,
    types: Types,
    parameters: &'static [Parameter],
) -> Pointwise {
    Pointwise {
        name,
        operands: Operands::One,
        types,
        form: Form::Step(step, parameters),
    }
}

const fn two(name: &'static str, step: &'static str, types: Types) -> Pointwise {
    Pointwise {
        name,
        operands: Operands::Two,
        types,
        form: Form::Step(step, &[]),
    }
}

const fn compared(name: &'static str, step: &'static str, types: Types) -> Pointwise {
    Pointwise {
        name,
        operands: Operands::Two,
        types,
        form: Form::Question(step, &[]),
    }
}

const fn many(name: &'static str, step: &'static str, types: Types, is_mean: bool) -> Pointwise {
    Pointwise {
        name,
        operands: Operands::Many,
        types,
        form: Form::Fold(step, is_mean),
    }
}

const fn of(name: &'static str, operands: Operands, types: Types, form: Form) -> Pointwise {
    Pointwise {
        name,
        operands,
        types,
        form,
    }
}

/// The operations, in the order of their names.
static TABLE: &[Pointwise] = &[
    one("abs", "abs", Real),
    one("acos", "acos", Float),
    one("acosh", "acosh", Float),
    two("add", "add", Real),
    two("and", "and", Truth),
    one("asin", "asin", Float),
    one("asinh", "asinh", Float),
    one("atan", "atan", Float),
    two("atan2", "atan2", Float),
    one("atanh", "atanh", Float),
    two("bit_and", "bit_and", Integer),
    one("bit_not", "bit_not", Integer),
    two("bit_or", "bit_or", Integer),
    two("bit_xor", "bit_xor", Integer),
    of("cast", Operands::One, Any, Form::Cast),
    one("ceil", "ceil", Float),
    one("cos", "cos", Float),
    one("cosh", "cosh", Float),
    two("div", "div", Real),
    with("elu", "elu", Float, &[Attr("alpha", 1.0)]),
    compared("eq", "eq", RealOrTruth),
    one("erf", "erf", Float),
    one("exp", "exp", Float),
    one("expm1", "expm1", Float),
    one("floor", "floor", Float),
    compared("ge", "ge", Real),
    of(
        "gelu",
        Operands::One,
        Float,
        Form::Choice(
            "approximate",
            &[(Text("none"), "gelu"), (Text("tanh"), "gelu_tanh")],
        ),
    ),
    compared("gt", "gt", Real),
    with(
        "hard_sigmoid",
        "hard_sigmoid",
        Float,
        &[Attr("alpha", 0.2), Attr("beta", 0.5)],
    ),
    one("identity", "identity", Any),
    of(
        "is_inf",
        Operands::One,
        Float,
        Form::Question("is_inf", &[Flag("positive", 1), Flag("negative", 1)]),
    ),
    of(
        "is_nan",
        Operands::One,
        Float,
        Form::Question("is_nan", &[]),
    ),
    compared("le", "le", Real),
    with("leaky_relu", "leaky_relu", Float, &[Attr("alpha", 0.01)]),
    one("log", "log", Float),
    one("log1p", "log1p", Float),
    compared("lt", "lt", Real),
    two("mul", "mul", Real),
    compared("ne", "ne", RealOrTruth),
    one("neg", "neg", Real),
    one("not", "not", Truth),
    of(
        "onnx.BitShift",
        Operands::Two,
        Unsigned,
        Form::Stated(
            "direction",
            &[(Text("LEFT"), "shift_left"), (Text("RIGHT"), "shift_right")],
        ),
    ),
    with("onnx.Celu", "celu", Float, &[Attr("alpha", 1.0)]),
    of("onnx.Clip", Operands::One, Real, Form::Clip),
    one("onnx.HardSwish", "hard_swish", Float),
    many("onnx.Max", "max", Real, false),
    many("onnx.Mean", "add", Float, true),
    many("onnx.Min", "min", Real, false),
    one("onnx.Mish", "mish", Float),
    of("onnx.PRelu", Operands::Onto, Real, Form::Step("prelu", &[])),
    with(
        "onnx.Selu",
        "selu",
        Float,
        &[Attr("alpha", 1.673_263_2), Attr("gamma", 1.050_701)],
    ),
    with(
        "onnx.Shrink",
        "shrink",
        Real,
        &[Attr("lambd", 0.5), Attr("bias", 0.0)],
    ),
    one("onnx.Softsign", "softsign", Float),
    many("onnx.Sum", "add", Real, false),
    with("onnx.Swish", "swish", Float, &[Attr("alpha", 1.0)]),
    with(
        "onnx.ThresholdedRelu",
        "thresholded_relu",
        Float,
        &[Attr("alpha", 1.0)],
    ),
    two("or", "or", Truth),
    of("pow", Operands::Two, Real, Form::Power),
    one("reciprocal", "reciprocal", Float),
    one("relu", "relu", Real),
    of(
        "rem",
        Operands::Two,
        Real,
        Form::Choice("truncated", &[(Number(0), "mod"), (Number(1), "rem")]),
    ),
    one("round", "round", Float),
    one("rsqrt", "rsqrt", Float),
    of("select", Operands::Three, Any, Form::Step("select", &[])),
    two("shift_left", "shift_left", Unsigned),
    two("shift_right", "shift_right", Unsigned),
    one("sigmoid", "sigmoid", Float),
    one("sign", "sign", Real),
    one("sin", "sin", Float),
    one("sinh", "sinh", Float),
    one("softplus", "softplus", Float),
    one("sqrt", "sqrt", Float),
    one("square", "square", Real),
    two("squared_difference", "squared_difference", Real),
    two("sub", "sub", Real),
    one("tan", "tan", Float),
    one("tanh", "tanh", Float),
    one("trunc", "trunc", Float),
    two("xor", "xor", Truth),
];

/// Returns what an operation of this row is, if it is pointwise.
pub(super) fn of_name(name: &str) -> Option<&'static Pointwise> {
    let index = TABLE.binary_search_by_key(&name, |row| row.name).ok()?;
    TABLE.get(index)
}

/// A step that an operation becomes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) function: &'static str,
    pub(super) operands: Vec<Operand>,
    /// What stands behind the operands.
    pub(super) parameters: String,
}

/// What a step takes.
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

/// Returns the steps that an operation is, if it is pointwise, its types are known and have these, and its attributes are
/// such that it can't fail but for shapes that don't broadcast.
pub(super) fn steps(module: &Module, op: OpId) -> Option<Vec<Step>> {
    let row = of_name(node::name(module, op))?;
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
    let gives = match row.form {
        Form::Question(..) => made == Type::I1,
        Form::Cast => is_of(Types::Any, &made),
        _ => made == own,
    };
    let is_typed = is_of(row.types, &own) && gives;
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
        Form::Step(function, parameters) | Form::Question(function, parameters) => {
            let step = Step::new(function, all());
            let with = |step: Step, parameter: &Parameter| {
                Some(step.number(value(module, op, *parameter)?))
            };
            Some(vec![parameters.iter().try_fold(step, with)?])
        }
        Form::Choice(attribute, choices) | Form::Stated(attribute, choices) => {
            let found = match data.attribute(attribute) {
                None => choices
                    .first()
                    .filter(|_| matches!(row.form, Form::Choice(..))),
                Some(stated) => choices.iter().find(|(choice, _)| match choice {
                    Choice::Text(text) => stated.as_str() == Some(text),
                    Choice::Integer(number) => stated.as_i64() == Some(*number),
                }),
            };
            Some(vec![Step::new(found?.1, all())])
        }
        Form::Fold(function, is_mean) => Some(folded(function, is_mean, &given)),
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

/// Returns the operands, all of which must be there; those of `Clip` behind the first are left to [`clip`].
fn operands(module: &Module, op: OpId) -> Option<Vec<ValueId>> {
    let n_operands = match node::name(module, op) {
        "onnx.Clip" => 1,
        _ => module.op(op).operands().len(),
    };
    (0..n_operands)
        .map(|index| node::operand(module, op, index))
        .collect()
}

/// Returns whether a type is one of these.
fn is_of(types: Types, ty: &Type) -> bool {
    let is_float = matches!(
        ty,
        Type::Float(FloatKind::F32 | FloatKind::F64 | FloatKind::F16 | FloatKind::BF16)
    );
    let (is_integer, is_unsigned) = match ty {
        Type::Integer(IntegerType {
            width: 8 | 16 | 32 | 64,
            signedness,
        }) => (true, *signedness == Signedness::Unsigned),
        _ => (false, false),
    };
    let is_truth = *ty == Type::I1;
    match types {
        Types::Any | Types::RealOrTruth => is_float || is_integer || is_truth,
        Types::Real => is_float || is_integer,
        Types::Float => is_float,
        Types::Integer => is_integer,
        Types::Unsigned => is_unsigned,
        Types::Truth => is_truth,
    }
}

/// Returns a parameter: what the attribute says, or the default.
fn value(module: &Module, op: OpId, parameter: Parameter) -> Option<f64> {
    let stated = |name: &str| module.op(op).attribute(name);
    match parameter {
        Parameter::Float(name, default) => match stated(name) {
            None => Some(default.into()),
            #[allow(
                clippy::cast_possible_truncation,
                reason = "attributes are numbers of 32 bits"
            )]
            Some(Attribute::Float(number)) => Some(f64::from(number.value() as f32)),
            Some(_) => None,
        },
        Parameter::Integer(name, default) => {
            let number = match stated(name) {
                None => default,
                Some(stated) => stated.as_i64()?,
            };
            Some(if number == 0 { 0.0 } else { 1.0 })
        }
    }
}

/// Returns whether the second of two values is broadcast to the first for sure.
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

/// Returns the steps of `Clip` within numbers that are known.
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

/// Returns the step of `Pow`, whose kernel calculates powers of one exponent in a way of their own.
fn power(module: &Module, given: &[ValueId], own: &Type) -> Option<Vec<Step>> {
    let &[x, exponent] = given else {
        return None;
    };
    let base = vec![Operand::Value(x)];
    let ranks = [x, exponent].map(|value| node::shape(module, value).map(|shape| shape.len()));
    let exponent_type = node::element(module.value_type(exponent))?;
    if exponent_type == Type::UI64 || !is_of(Types::Real, &exponent_type) {
        return None;
    }
    if let Some(number) = node::element_number(module, exponent) {
        let [x_rank, rank] = ranks;
        if !(rank == Some(0) || (rank? <= x_rank?)) {
            return None;
        }
        let whole = node::constant_ints(module, exponent).and_then(|list| list.first().copied());
        let is_integer = is_of(Types::Integer, own);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_name() {
        assert!(TABLE.is_sorted_by_key(|row| row.name));
        for row in TABLE {
            assert!(std::ptr::eq(of_name(row.name).unwrap(), row));
        }
        assert!(of_name("softmax").is_none() && of_name("").is_none());
    }
}
