//! `fold`: evaluates operations on scalar constants.
//!
//! A pure operation whose operands are all constants becomes a constant, provided
//! that the constant can be written as an operation and that the kernel would not
//! fail: a division by zero stays. Integers wrap, floats follow IEEE 754, minima
//! take the first operand unless the second is less, and casts saturate, exactly
//! as in the kernels of the same names; a test runs both. Each folded operation is
//! replaced in its place, so that later ones can fold in the same pass. Ops that are
//! constants, too, become operations that are: [`ops`].

mod ops;

use std::collections::{HashMap, HashSet};

use tfrt_ir::{
    Attribute, Diagnostics, Integer, Module, OpId, OpState, Type, ValueId,
    attributes::FloatAttribute, types::FloatKind,
};

use super::scope;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "fold",
    summary: "Calculates pure operations on constants; leaves divisions by zero alone",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::Plain(run),
};

/// A constant scalar.
#[derive(Clone, Copy, Debug)]
enum Scalar {
    Bool(bool),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
}

pub(super) fn run(module: &mut Module, _: &mut Diagnostics) {
    for block in scope::blocks(module) {
        let mut known: HashMap<ValueId, Scalar> = HashMap::new();
        let mut gone: HashSet<OpId> = HashSet::new();
        let mut operations = Vec::new();
        for op in module.block(block).operations().to_vec() {
            if let Some(tensor) = ops::constant(module, op) {
                gone.insert(op);
                let (old, new) = (module.op(op).results()[0], module.op(tensor).results()[0]);
                module.replace_all_uses(old, new);
                operations.push(tensor);
            } else if let Some(scalar) = constant(module, op) {
                known.insert(module.op(op).results()[0], scalar);
            } else if let Some(scalars) = evaluate(module, op, &known) {
                gone.insert(op);
                for (index, scalar) in scalars.into_iter().enumerate() {
                    let folded = create(module, op, scalar);
                    let (old, new) = (
                        module.op(op).results()[index],
                        module.op(folded).results()[0],
                    );
                    module.replace_all_uses(old, new);
                    known.insert(new, scalar);
                    operations.push(folded);
                }
            }
            operations.push(op);
        }
        if !gone.is_empty() {
            module.set_operations(block, operations);
            scope::retain(module, block, |op| !gone.contains(&op));
        }
    }
}

/// Reads a constant operation.
fn constant(module: &Module, op: OpId) -> Option<Scalar> {
    let data = module.op(op);
    let value = || data.attribute("value");
    let &[result] = data.results() else {
        return None;
    };
    let scalar = match data.name().as_str() {
        "tfrt.constant.i1" => Scalar::Bool(value()?.as_bool()?),
        "tfrt.constant.i32" => Scalar::I32(i32::try_from(value()?.as_i64()?).ok()?),
        "tfrt.constant.i64" => Scalar::I64(value()?.as_i64()?),
        "tfrt.constant.f32" => Scalar::F32(f32::from_bits(
            u32::try_from(bits(value()?, FloatKind::F32)?).ok()?,
        )),
        "tfrt.constant.f64" => Scalar::F64(f64::from_bits(bits(value()?, FloatKind::F64)?)),
        _ => return None,
    };
    (*module.value_type(result) == scalar.ty()).then_some(scalar)
}

fn bits(attribute: &Attribute, kind: FloatKind) -> Option<u64> {
    match attribute {
        Attribute::Float(float) if float.kind == kind => Some(float.bits),
        _ => None,
    }
}

/// Returns the results of an operation, if they are known and can be written.
fn evaluate(module: &Module, op: OpId, known: &HashMap<ValueId, Scalar>) -> Option<Vec<Scalar>> {
    use Scalar::{Bool, F32, F64, I32, I64};
    let data = module.op(op);
    if data.operands().is_empty() || !scope::is_pure(module, op) {
        return None;
    }
    let operands: Option<Vec<Scalar>> = data
        .operands()
        .iter()
        .map(|operand| known.get(operand).copied())
        .collect();
    let name = data.name().as_str();
    let results = match (name, operands?.as_slice()) {
        ("tfrt.and.i1", &[Bool(a), Bool(b)]) => vec![Bool(a && b)],
        ("tfrt.add.i32", &[I32(a), I32(b)]) => vec![I32(a.wrapping_add(b))],
        ("tfrt.add.i64", &[I64(a), I64(b)]) => vec![I64(a.wrapping_add(b))],
        ("tfrt.add.f32", &[F32(a), F32(b)]) => vec![F32(a + b)],
        ("tfrt.add.f64", &[F64(a), F64(b)]) => vec![F64(a + b)],
        ("tfrt.minus.i32", &[I32(a), I32(b)]) => vec![I32(a.wrapping_sub(b))],
        ("tfrt.minus.i64", &[I64(a), I64(b)]) => vec![I64(a.wrapping_sub(b))],
        ("tfrt.mul.i32", &[I32(a), I32(b)]) => vec![I32(a.wrapping_mul(b))],
        ("tfrt.mul.i64", &[I64(a), I64(b)]) => vec![I64(a.wrapping_mul(b))],
        ("tfrt.multiply.f32", &[F32(a), F32(b)]) => vec![F32(a * b)],
        ("tfrt.multiply.f64", &[F64(a), F64(b)]) => vec![F64(a * b)],
        ("tfrt.div.i32", &[I32(a), I32(b)]) if b != 0 => {
            vec![I32(a.wrapping_div(b)), I32(a.wrapping_rem(b))]
        }
        ("tfrt.div.i64", &[I64(a), I64(b)]) if b != 0 => {
            vec![I64(a.wrapping_div(b)), I64(a.wrapping_rem(b))]
        }
        ("tfrt.div.f32", &[F32(a), F32(b)]) if b != 0.0 => vec![F32(a / b)],
        ("tfrt.div.f64", &[F64(a), F64(b)]) if b != 0.0 => vec![F64(a / b)],
        ("tfrt.minimum.f32", &[F32(a), F32(b)]) => vec![F32(if b < a { b } else { a })],
        ("tfrt.minimum.f64", &[F64(a), F64(b)]) => vec![F64(if b < a { b } else { a })],
        ("tfrt.equal.i32", &[I32(a), I32(b)]) => vec![Bool(a == b)],
        ("tfrt.equal.i64", &[I64(a), I64(b)]) => vec![Bool(a == b)],
        ("tfrt.lessequal.i32", &[I32(a), I32(b)]) => vec![Bool(a <= b)],
        ("tfrt.lessequal.i64", &[I64(a), I64(b)]) => vec![Bool(a <= b)],
        ("tfrt.cast.i64_to_f32", &[I64(a)]) => vec![F32(a as f32)],
        ("tfrt.cast.i64_to_f64", &[I64(a)]) => vec![F64(a as f64)],
        ("tfrt.cast.f32_to_i64", &[F32(a)]) => vec![I64(a as i64)],
        ("tfrt.cast.f64_to_i64", &[F64(a)]) => vec![I64(a as i64)],
        ("tfrt_test.count3.i32", &[I32(a)]) => [1, 2, 3].map(|n| I32(a.wrapping_add(n))).into(),
        ("tfrt_test.count3.i64", &[I64(a)]) => [1, 2, 3].map(|n| I64(a.wrapping_add(n))).into(),
        _ => return None,
    };
    let types = results.iter().map(|scalar| scalar.ty());
    let declared = data.results().iter();
    let fits = declared
        .map(|&result| module.value_type(result).clone())
        .eq(types);
    (fits && results.iter().all(|scalar| scalar.is_exact())).then_some(results)
}

/// Replaces an operation by the constant of a scalar.
fn create(module: &mut Module, place: OpId, scalar: Scalar) -> OpId {
    let (name, value) = match scalar {
        Scalar::Bool(value) => ("tfrt.constant.i1", Attribute::bool(value)),
        Scalar::I32(value) => (
            "tfrt.constant.i32",
            Attribute::integer(Integer::from(value), Type::I32),
        ),
        Scalar::I64(value) => ("tfrt.constant.i64", Attribute::integer(value, Type::I64)),
        Scalar::F32(value) => (
            "tfrt.constant.f32",
            float(u64::from(value.to_bits()), FloatKind::F32),
        ),
        Scalar::F64(value) => ("tfrt.constant.f64", float(value.to_bits(), FloatKind::F64)),
    };
    let state = OpState::new(name)
        .attribute("value", value)
        .result(scalar.ty())
        .location(module.op(place).location().clone());
    module.create(state)
}

fn float(bits: u64, kind: FloatKind) -> Attribute {
    Attribute::Float(FloatAttribute { bits, kind })
}

impl Scalar {
    fn ty(self) -> Type {
        match self {
            Scalar::Bool(_) => Type::I1,
            Scalar::I32(_) => Type::I32,
            Scalar::I64(_) => Type::I64,
            Scalar::F32(_) => Type::F32,
            Scalar::F64(_) => Type::F64,
        }
    }

    /// Returns whether every machine calculates these bits: a NaN may have any payload.
    fn is_exact(self) -> bool {
        match self {
            Scalar::F32(value) => !value.is_nan(),
            Scalar::F64(value) => !value.is_nan(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::passes::testing::check;

    #[test]
    fn integers_wrap_and_conditions_are_decided() {
        check(
            "fold,dce",
            r#"func.func @f() -> (i32, i1, i64, f32) {
                 %a = tfrt.constant.i32 2147483647
                 %b = tfrt.constant.i32 1
                 %c = tfrt.add.i32 %a, %b
                 %d = tfrt.equal.i32 %c, %a
                 %e = tfrt.constant.f64 -1.0e300
                 %f = "tfrt.cast.f64_to_i64"(%e) : (f64) -> i64
                 %g = tfrt.constant.i64 16777217
                 %h = "tfrt.cast.i64_to_f32"(%g) : (i64) -> f32
                 tfrt.return %c, %d, %f, %h : i32, i1, i64, f32
               }"#,
            expect![[r#"
                func.func @f() -> (i32, i1, i64, f32) {
                  %0 = tfrt.constant.i32 -2147483648
                  %1 = tfrt.constant.i1 false
                  %2 = tfrt.constant.i64 -9223372036854775808
                  %3 = tfrt.constant.f32 0x4B800000
                  tfrt.return %0, %1, %2, %3 : i32, i1, i64, f32
                }
            "#]],
        );
    }

    #[test]
    fn quotients_and_remainders_are_rounded_as_kernels_do() {
        check(
            "fold,dce",
            r#"func.func @f() -> (i32, i32, i32, i32) {
                 %a = tfrt.constant.i32 -7
                 %b = tfrt.constant.i32 2
                 %q, %r = tfrt.div.i32 %a, %b
                 %c = tfrt.constant.i32 -2147483648
                 %d = tfrt.constant.i32 -1
                 %s, %t = tfrt.div.i32 %c, %d
                 tfrt.return %q, %r, %s, %t : i32, i32, i32, i32
               }"#,
            expect![[r#"
                func.func @f() -> (i32, i32, i32, i32) {
                  %0 = tfrt.constant.i32 -3
                  %1 = tfrt.constant.i32 -1
                  %2 = tfrt.constant.i32 -2147483648
                  %3 = tfrt.constant.i32 0
                  tfrt.return %0, %1, %2, %3 : i32, i32, i32, i32
                }
            "#]],
        );
    }

    #[test]
    fn division_by_zero_and_what_is_no_number_stay() {
        check(
            "fold",
            r#"func.func @f() -> (i32, i32, f32, f64) {
                 %a = tfrt.constant.i32 1
                 %b = tfrt.constant.i32 0
                 %q, %r = tfrt.div.i32 %a, %b
                 %c = tfrt.constant.f32 -0.0
                 %d = "tfrt.div.f32"(%c, %c) : (f32, f32) -> f32
                 %i = tfrt.constant.f64 0x7FF0000000000000
                 %j = tfrt.constant.f64 0xFFF0000000000000
                 %k = tfrt.add.f64 %i, %j
                 tfrt.return %q, %r, %d, %k : i32, i32, f32, f64
               }"#,
            expect![[r#"
                func.func @f() -> (i32, i32, f32, f64) {
                  %0 = tfrt.constant.i32 1
                  %1 = tfrt.constant.i32 0
                  %2:2 = tfrt.div.i32 %0, %1
                  %3 = tfrt.constant.f32 -0.000000e+00
                  %4 = "tfrt.div.f32"(%3, %3) : (f32, f32) -> f32
                  %5 = tfrt.constant.f64 0x7FF0000000000000
                  %6 = tfrt.constant.f64 0xFFF0000000000000
                  %7 = tfrt.add.f64 %5, %6
                  tfrt.return %2#0, %2#1, %4, %7 : i32, i32, f32, f64
                }
            "#]],
        );
    }
}
