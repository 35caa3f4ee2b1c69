//! Rows of pointwise operations: each element of the result follows from one element of each operand.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, Cost, ElementFamily, OpDef, PointwiseFn, Traits, ValueDef};
use crate::dim::Dim;
use crate::fact::{Fact, MOST_VALUES};
use crate::infer::{Infer, InferCall, InferError};

const Z: ValueDef = ValueDef::var("z", "T");
const TRUTH: ValueDef = ValueDef::set("y", &[DType::I1]);
const TWO: &[ValueDef] = &[ValueDef::var("x", "T"), ValueDef::var("y", "T")];

/// Makes the row of a pointwise operation of one operand.
const fn unary(name: &'static str, summary: &'static str) -> OpDef {
    OpDef::new(name, summary).pointwise(PointwiseFn::OfRow)
}

/// Makes the row of a pointwise operation of two operands, which are broadcast.
const fn binary(name: &'static str, summary: &'static str) -> OpDef {
    unary(name, summary)
        .inputs(TWO)
        .results(&[Z])
        .infer(Infer::Broadcast)
}

/// Makes the row of a pointwise operation of two operands that may be exchanged.
const fn commutative(name: &'static str, summary: &'static str) -> OpDef {
    binary(name, summary).traits(Traits::COMMUTATIVE)
}

/// Makes a binary operation follow integers of shapes one by one.
const fn arithmetic(op: OpDef) -> OpDef {
    op.infer(Infer::By(calculated))
}

/// Makes the row of a pointwise operation of two operands that returns truth values.
const fn comparison(name: &'static str, summary: &'static str) -> OpDef {
    binary(name, summary)
        .results(&[TRUTH])
        .infer(Infer::BroadcastBool)
}

/// Makes the row of a pointwise operation of one operand that returns truth values.
const fn test(name: &'static str, summary: &'static str) -> OpDef {
    unary(name, summary)
        .results(&[TRUTH])
        .infer(Infer::By(truth))
}

pub(crate) const OPS: &[OpDef] = &[
    unary("neg", "The negative of each element.").infer(Infer::By(negated)).elements(ElementFamily::Real),
    unary("abs", "The absolute value of each element.").elements(ElementFamily::Real),
    unary("sign", "-1, 0 or 1, as each element is negative, 0 or positive.").elements(ElementFamily::Real),
    unary("reciprocal", "1 divided by each element.").cost(Cost::PerElement(4)).elements(ElementFamily::Float),
    unary("square", "The square of each element.").elements(ElementFamily::Real),
    unary("sqrt", "The square root of each element.").cost(Cost::PerElement(4)).elements(ElementFamily::Float),
    unary("rsqrt", "1 divided by the square root of each element.").cost(Cost::PerElement(5)).elements(ElementFamily::Float),
    unary("cbrt", "The cube root of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("exp", "e to the power of each element.").cost(Cost::PerElement(8)).elements(ElementFamily::Float),
    unary("expm1", "e to the power of each element, minus 1.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("log", "The natural logarithm of each element.").cost(Cost::PerElement(8)).elements(ElementFamily::Float),
    unary("log1p", "The natural logarithm of 1 plus each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("sin", "The sine of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("cos", "The cosine of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("tan", "The tangent of each element.").cost(Cost::PerElement(12)).elements(ElementFamily::Float),
    unary("asin", "The inverse sine of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("acos", "The inverse cosine of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("atan", "The inverse tangent of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("sinh", "The hyperbolic sine of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("cosh", "The hyperbolic cosine of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("tanh", "The hyperbolic tangent of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("asinh", "The inverse hyperbolic sine of each element.").cost(Cost::PerElement(12)).elements(ElementFamily::Float),
    unary("acosh", "The inverse hyperbolic cosine of each element.").cost(Cost::PerElement(12)).elements(ElementFamily::Float),
    unary("atanh", "The inverse hyperbolic tangent of each element.").cost(Cost::PerElement(12)).elements(ElementFamily::Float),
    unary("erf", "The error function of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("erfc", "1 minus the error function of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("lgamma", "The natural logarithm of the size of the gamma function of each element.").cost(Cost::PerElement(20)).elements(ElementFamily::Float),
    unary("floor", "The largest integer that is not above each element.").elements(ElementFamily::Float),
    unary("ceil", "The smallest integer that is not below each element.").elements(ElementFamily::Float),
    unary("round", "The nearest integer to each element; of two, the even one.").elements(ElementFamily::Float),
    unary("trunc", "Each element without what is behind the point.").elements(ElementFamily::Float),
    unary("sigmoid", "1 / (1 + exp(-x)) of each element.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("relu", "The larger of each element and 0.").elements(ElementFamily::Real),
    unary("relu6", "Each element, at least 0 and at most 6.").elements(ElementFamily::Real),
    unary("elu", "Each element, or `alpha` * (exp(x) - 1) below 0.").attrs(&[AttrDef::float("alpha", 1.0)]).cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    unary("gelu", "x * P(X <= x) of a standard normal X, exact or by a formula with tanh (`approximate`).").attrs(&[AttrDef::text("approximate", "none")]).pointwise(PointwiseFn::ByText("approximate", &[("none", "gelu"), ("tanh", "gelu_tanh")])).cost(Cost::PerElement(12)).elements(ElementFamily::Float),
    unary("softplus", "log(1 + exp(x)) of each element.").cost(Cost::PerElement(14)).elements(ElementFamily::Float),
    unary("leaky_relu", "Each element, or `alpha` times it below 0.").attrs(&[AttrDef::float("alpha", 0.01)]).elements(ElementFamily::Float),
    unary("hard_sigmoid", "`alpha` * x + `beta`, at least 0 and at most 1.").attrs(&[AttrDef::float("alpha", 0.2), AttrDef::float("beta", 0.5)]).elements(ElementFamily::Float),
    unary("not", "The opposite of each truth value.").inputs(&[ValueDef::set("x", &[DType::I1])]).results(&[ValueDef::set("y", &[DType::I1])]).elements(ElementFamily::Truth),
    unary("bit_not", "The complement of each integer's bits.").elements(ElementFamily::Integer),
    test("is_nan", "Whether each element is no number.").elements(ElementFamily::Float),
    test("is_finite", "Whether each element is a number, and not infinite.").elements(ElementFamily::Float),
    test("is_inf", "Whether each element is infinite.").attrs(&[AttrDef::int("positive", 1), AttrDef::int("negative", 1)]).elements(ElementFamily::Float),
    unary("identity", "Its operand.").traits(Traits::VIEW).infer(Infer::By(identity)),
    unary("cast", "Each element as the nearest one of another type (`to`).").attrs(&[
            AttrDef::new("to", AttrKind::Type).required(),
            AttrDef::int("saturate", 1),
            AttrDef::text("round_mode", "up"),
        ]).results(&[ValueDef::any("y")]).infer(Infer::By(cast)),
    arithmetic(commutative("add", "The sum of two elements.")).elements(ElementFamily::Real),
    arithmetic(binary("sub", "The first element minus the second.")).elements(ElementFamily::Real),
    arithmetic(commutative("mul", "The product of two elements.")).elements(ElementFamily::Real),
    arithmetic(binary("div", "The first element divided by the second; of integers rounded towards 0, and 0 where the second is 0.")).elements(ElementFamily::Real),
    arithmetic(binary("rem", "What is left of the first element divided by the second, with the sign of the second, or of the first (`truncated`).")).attrs(&[AttrDef::int("truncated", 0)]).pointwise(PointwiseFn::ByInt("truncated", &[(0, "mod"), (1, "rem")])).elements(ElementFamily::Real),
    binary("floor_div", "The first element divided by the second, rounded down.").elements(ElementFamily::Real),
    binary("div_no_nan", "The first element divided by the second; 0 where that is 0.").cost(Cost::PerElement(4)).elements(ElementFamily::Float),
    binary("mul_no_nan", "The product of two elements; 0 where the second is 0, whatever the first is.").elements(ElementFamily::Float),
    binary("xlogy", "The first element times the natural logarithm of the second; 0 where the first is 0.").cost(Cost::PerElement(10)).elements(ElementFamily::Float),
    binary("xlog1py", "The first element times the natural logarithm of 1 plus the second; 0 where the first is 0.").cost(Cost::PerElement(12)).elements(ElementFamily::Float),
    binary("xdivy", "The first element divided by the second; 0 where the first is 0.").cost(Cost::PerElement(4)).elements(ElementFamily::Float),
    binary("pow", "The first element to the power of the second, whose type may differ.").inputs(&[ValueDef::var("x", "T"), ValueDef::any("y")]).cost(Cost::PerElement(20)).elements(ElementFamily::Real),
    arithmetic(commutative("min", "The smaller of two elements.")).elements(ElementFamily::Real),
    arithmetic(commutative("max", "The larger of two elements.")).elements(ElementFamily::Real),
    binary("atan2", "The angle of the point whose ordinate is the first element and whose abscissa is the second.").cost(Cost::PerElement(14)).elements(ElementFamily::Float),
    commutative("squared_difference", "The square of the difference of two elements.").elements(ElementFamily::Real),
    commutative("and", "Whether both are true.").inputs(&[ValueDef::set("x", &[DType::I1]), ValueDef::set("y", &[DType::I1])]).results(&[ValueDef::set("z", &[DType::I1])]).elements(ElementFamily::Truth),
    commutative("or", "Whether one of both is true.").inputs(&[ValueDef::set("x", &[DType::I1]), ValueDef::set("y", &[DType::I1])]).results(&[ValueDef::set("z", &[DType::I1])]).elements(ElementFamily::Truth),
    commutative("xor", "Whether exactly one of both is true.").inputs(&[ValueDef::set("x", &[DType::I1]), ValueDef::set("y", &[DType::I1])]).results(&[ValueDef::set("z", &[DType::I1])]).elements(ElementFamily::Truth),
    commutative("bit_and", "The bits that both integers have.").elements(ElementFamily::Integer),
    commutative("bit_or", "The bits that one of both integers has.").elements(ElementFamily::Integer),
    commutative("bit_xor", "The bits that exactly one of both integers has.").elements(ElementFamily::Integer),
    binary("shift_left", "The bits of the first integer, moved up by the second.").elements(ElementFamily::Unsigned),
    binary("shift_right", "The bits of the first integer, moved down by the second.").elements(ElementFamily::Unsigned),
    comparison("eq", "Whether two elements are the same.").traits(Traits::COMMUTATIVE),
    comparison("ne", "Whether two elements differ.").traits(Traits::COMMUTATIVE),
    comparison("lt", "Whether the first element is below the second.").elements(ElementFamily::Real),
    comparison("le", "Whether the first element is not above the second.").elements(ElementFamily::Real),
    comparison("gt", "Whether the first element is above the second.").elements(ElementFamily::Real),
    comparison("ge", "Whether the first element is not below the second.").elements(ElementFamily::Real),
    unary("select", "An element of the second operand where the first is true, of the third elsewhere.")
        .inputs(&[ValueDef::set("condition", &[DType::I1]), ValueDef::var("x", "T"), ValueDef::var("y", "T")])
        .results(&[ValueDef::var("z", "T")])
        .infer(Infer::By(select)),
    OpDef::new("pointwise", "Each element of the operands, broadcast, taken through the steps of `program`, as passes write them for devices: `mul a0 2; add s0 a1`.")
        .inputs(&[ValueDef::any("inputs").rest(1)])
        .results(&[ValueDef::any("z")])
        .attrs(&[
            AttrDef::new("program", AttrKind::Text).required(),
            AttrDef::new("type", AttrKind::Type).required(),
        ])
        .infer(Infer::By(programmed))
        .cost(Cost::PerElement(16)),
];

fn negated(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0);
    let values = x
        .values
        .as_ref()
        .map(|values| values.iter().map(|value| &Dim::Known(0) - value).collect());
    let y = Fact {
        values,
        ..Fact::new(x.dtype, x.dims.clone())
    };
    call.set(0, y);
    Ok(())
}

/// Gives what operands are broadcast to, of the type that is stated.
fn programmed(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.broadcast()?;
    call.give(0, call.attrs.dtype("type"), dims);
    Ok(())
}

fn truth(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.input(0).dims.clone();
    call.give(0, Some(DType::I1), dims);
    Ok(())
}

pub(crate) fn identity(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let x = call.input(0).clone();
    call.set(0, x);
    Ok(())
}

fn cast(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let to = call.attrs.dtype("to");
    let y = cast_fact(call.input(0), to);
    call.set(0, y);
    Ok(())
}

/// Returns the fact of a tensor after a cast.
pub(crate) fn cast_fact(x: &Fact, to: Option<DType>) -> Fact {
    // Integers of less than 32 bits may wrap.
    let keeps = matches!(
        to,
        Some(DType::I32 | DType::I64 | DType::Ui32 | DType::Ui64)
    );
    let from_integers = !x.dtype.is_some_and(|dtype| crate::FLOATS.contains(&dtype));
    let values = x.values.clone().filter(|_| keeps && from_integers);
    Fact {
        values,
        ..Fact::new(to, x.dims.clone())
    }
}

fn select(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.broadcast()?;
    let (x, y) = (call.input(1), call.input(2));
    let values = call.input(0).numbers().and_then(|condition| {
        let n = dims
            .as_deref()
            .filter(|dims| dims.len() < 2)
            .map(crate::fact::product)?;
        let n = usize::try_from(n.value()?)
            .ok()
            .filter(|n| *n <= MOST_VALUES)?;
        (0..n)
            .map(|at| {
                let is_first = *condition.get(if condition.len() == 1 { 0 } else { at })? != 0;
                element(if is_first { x } else { y }, at)
            })
            .collect()
    });
    let dtype = x.dtype.or(y.dtype);
    call.set(
        0,
        Fact {
            values,
            ..Fact::new(dtype, dims)
        },
    );
    Ok(())
}

/// Returns an element of a tensor with one element, or of a list.
fn element(fact: &Fact, at: usize) -> Option<Dim> {
    let values = fact.values.as_deref()?;
    values.get(if values.len() == 1 { 0 } else { at }).cloned()
}

/// Infers sums, products and the like: integers of small tensors are followed one by one.
fn calculated(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = call.broadcast()?;
    let values = calculate(
        call.op.name,
        call.attrs.flag("truncated"),
        call.input(0),
        call.input(1),
    );
    let dtype = call.input(0).dtype;
    call.set(
        0,
        Fact {
            values,
            ..Fact::new(dtype, dims)
        },
    );
    Ok(())
}

/// Returns the elements of a sum, product or the like of two lists, or of a list and a number.
pub(crate) fn calculate(
    name: &str,
    truncated: bool,
    left: &Fact,
    right: &Fact,
) -> Option<Vec<Dim>> {
    let (a, b) = (left.values.as_deref()?, right.values.as_deref()?);
    let n = match (a.len(), b.len()) {
        (a, b) if a == b => a,
        (a, 1) => a,
        (1, b) => b,
        _ => return None,
    };
    let is_flat = |fact: &Fact| fact.rank().is_some_and(|rank| rank < 2);
    if !is_flat(left) || !is_flat(right) {
        return None;
    }
    let one = |at: usize| {
        Some(step(
            name,
            truncated,
            &element(left, at)?,
            &element(right, at)?,
        ))
    };
    (0..n).map(one).collect()
}

fn step(name: &str, truncated: bool, a: &Dim, b: &Dim) -> Dim {
    let numbers = a.value().zip(b.value());
    let of = |function: fn(i64, i64) -> Option<i64>| {
        let found = numbers.and_then(|(a, b)| function(a, b));
        found.map_or(Dim::Unknown, Dim::Known)
    };
    match name {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        // Integers are divided towards 0.
        "div" if numbers.is_some() => of(i64::checked_div),
        "div" => a.exact_div(b),
        "min" => of(|a, b| Some(a.min(b))),
        "max" => of(|a, b| Some(a.max(b))),
        "rem" if truncated => of(i64::checked_rem),
        "rem" => of(|a, b| {
            let left = a.checked_rem(b)?;
            Some(if left != 0 && (left < 0) != (b < 0) {
                left + b
            } else {
                left
            })
        }),
        _ => Dim::Unknown,
    }
}
