//! Evaluation of constants, arithmetic, comparisons, casts.

use tfrt_ir::Attribute;

use super::{FamilyResult, Machine, plan::Operation};
use crate::value::Datum::{self, *};

impl Machine<'_> {
    pub(super) fn number_operation(
        &mut self,
        operation: &Operation,
        operands: &[Datum],
    ) -> FamilyResult {
        let name = operation.name.as_str();
        if operands.is_empty() {
            return Some(vec![Ok(self.constant(operation)?)]);
        }
        if let Some(results) = division(name, operands) {
            return Some(match results {
                Some(results) => results.into_iter().map(Ok).collect(),
                None => {
                    let failure = self.fail(operation.op, "InvalidArgument", "Divide by zero");
                    vec![Err(failure); operation.results.len()]
                }
            });
        }
        let results = binary(name, operands)
            .map(|result| vec![result])
            .or_else(|| unary(name, operands))
            .or_else(|| sums(name, operands).map(|sum| vec![sum]))?;
        Some(results.into_iter().map(Ok).collect())
    }

    fn constant(&self, operation: &Operation) -> Option<Datum> {
        let op = self.plan.module.op(operation.op);
        let name = operation.name.as_str();
        if name == "tfrt_test.sync_sum_attributes" {
            let numbers = op
                .attributes()
                .iter()
                .map(|(_, attribute)| attribute.as_i64());
            let sum = numbers.sum::<Option<i64>>()?;
            return Some(I32(i32::try_from(sum).ok()?));
        }
        let number = |key| op.attribute(key);
        match name {
            "tfrt.constant.complex64" => {
                let part = |key| Some(f32::from_bits(u32::try_from(bits(number(key)?)?).ok()?));
                return Some(Complex64(part("real")?, part("imaginary")?));
            }
            "tfrt.constant.complex128" => {
                let part = |key| Some(f64::from_bits(bits(number(key)?)?));
                return Some(Complex128(part("real")?, part("imaginary")?));
            }
            _ => {}
        }
        let value = op.attribute("value")?;
        Some(match name {
            "tfrt.constant.i1" | "tfrt_test.async_constant.i1" => I1(value.as_bool()?),
            "tfrt.constant.i32" | "tfrt.constant_s.i32" | "tfrt_test.async_constant.i32" => {
                I32(i32::try_from(value.as_i64()?).ok()?)
            }
            "tfrt.constant.i64" | "tfrt.constant_s.i64" => I64(value.as_i64()?),
            "tfrt.constant.ui32" => U32(u32::try_from(bits(value)?).ok()?),
            "tfrt.constant.ui64" => U64(bits(value)?),
            "tfrt.constant.f16" | "tfrt.constant_s.f16" => F16(u16::try_from(bits(value)?).ok()?),
            "tfrt.constant.bf16" | "tfrt.constant_s.bf16" => {
                BF16(u16::try_from(bits(value)?).ok()?)
            }
            "tfrt.constant.f32" | "tfrt.constant_s.f32" => {
                F32(f32::from_bits(u32::try_from(bits(value)?).ok()?))
            }
            "tfrt.constant.f64" | "tfrt.constant_s.f64" => F64(f64::from_bits(bits(value)?)),
            _ => return None,
        })
    }
}

/// Returns the encoding of a float, or an unsigned integer.
fn bits(attribute: &Attribute) -> Option<u64> {
    match attribute {
        Attribute::Float(float) => Some(float.bits),
        Attribute::Integer(integer) => integer.value.as_u64(),
        _ => None,
    }
}

/// Divides: `None` if this is no division, `Some(None)` if it is one by zero.
fn division(name: &str, operands: &[Datum]) -> Option<Option<Vec<Datum>>> {
    Some(match (name, operands) {
        ("tfrt.div.i32", [I32(n), I32(d)]) => {
            (*d != 0).then(|| vec![I32(n.wrapping_div(*d)), I32(n.wrapping_rem(*d))])
        }
        ("tfrt.div.i64", [I64(n), I64(d)]) => {
            (*d != 0).then(|| vec![I64(n.wrapping_div(*d)), I64(n.wrapping_rem(*d))])
        }
        ("tfrt.div.f32", [F32(n), F32(d)]) => (*d != 0.0).then(|| vec![F32(n / d)]),
        ("tfrt.div.f64", [F64(n), F64(d)]) => (*d != 0.0).then(|| vec![F64(n / d)]),
        _ => return None,
    })
}

fn binary(name: &str, operands: &[Datum]) -> Option<Datum> {
    Some(match (name, operands) {
        ("tfrt.add.i32" | "tfrt.add_s.i32" | "tfrt_test.async_add.i32", [I32(a), I32(b)]) => {
            I32(a.wrapping_add(*b))
        }
        ("tfrt.add.i64" | "tfrt.add_s.i64", [I64(a), I64(b)]) => I64(a.wrapping_add(*b)),
        ("tfrt.add.f32", [F32(a), F32(b)]) => F32(a + b),
        ("tfrt.add.f64", [F64(a), F64(b)]) => F64(a + b),
        ("tfrt.minus.i32", [I32(a), I32(b)]) => I32(a.wrapping_sub(*b)),
        ("tfrt.minus.i64", [I64(a), I64(b)]) => I64(a.wrapping_sub(*b)),
        ("tfrt.mul.i32" | "tfrt.mul_s.i32", [I32(a), I32(b)]) => I32(a.wrapping_mul(*b)),
        ("tfrt.mul.i64" | "tfrt.mul_s.i64", [I64(a), I64(b)]) => I64(a.wrapping_mul(*b)),
        ("tfrt.multiply.f32", [F32(a), F32(b)]) => F32(a * b),
        ("tfrt.multiply.f64", [F64(a), F64(b)]) => F64(a * b),
        ("tfrt.minimum.f32", [F32(a), F32(b)]) => F32(if b < a { *b } else { *a }),
        ("tfrt.minimum.f64", [F64(a), F64(b)]) => F64(if b < a { *b } else { *a }),
        ("tfrt.equal.i32", [I32(a), I32(b)]) => I1(a == b),
        ("tfrt.equal.i64", [I64(a), I64(b)]) => I1(a == b),
        ("tfrt.lessequal.i32", [I32(a), I32(b)]) => I1(a <= b),
        ("tfrt.lessequal.i64", [I64(a), I64(b)]) => I1(a <= b),
        ("tfrt.and.i1", [I1(a), I1(b)]) => I1(*a && *b),
        _ => return None,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "casts of floats are what is evaluated"
)]
#[expect(
    clippy::cast_precision_loss,
    reason = "casts to floats are what is evaluated"
)]
fn unary(name: &str, operands: &[Datum]) -> Option<Vec<Datum>> {
    let result = match (name, operands) {
        ("tfrt_test.count3.i32", [I32(x)]) => {
            return Some((1..=3).map(|more| I32(x.wrapping_add(more))).collect());
        }
        ("tfrt_test.count3.i64", [I64(x)]) => {
            return Some((1..=3).map(|more| I64(x.wrapping_add(more))).collect());
        }
        (
            "tfrt_test.async_copy.i32"
            | "tfrt_test.async_copy_2.i32"
            | "tfrt_test.external"
            | "tfrt_test.async_copy.with_delay.i32"
            | "tfrt_test.copy.with_delay.i32",
            [I32(x)],
        ) => I32(*x),
        ("tfrt_test.async_copy.with_delay.i64" | "tfrt_test.copy.with_delay.i64", [I64(x)]) => {
            I64(*x)
        }
        ("tfrt.cast.i64_to_f32", [I64(x)]) => F32(*x as f32),
        ("tfrt.cast.i64_to_f64", [I64(x)]) => F64(*x as f64),
        ("tfrt.cast.f32_to_i64", [F32(x)]) => I64(*x as i64),
        ("tfrt.cast.f64_to_i64", [F64(x)]) => I64(*x as i64),
        _ => return None,
    };
    Some(vec![result])
}

fn sums(name: &str, operands: &[Datum]) -> Option<Datum> {
    let ("tfrt_test.sum" | "tfrt_test.sync_sum" | "tfrt_test.sync_sum2") = name else {
        return None;
    };
    let mut sum = 0_i32;
    for operand in operands {
        let I32(number) = operand else { return None };
        sum = sum.wrapping_add(*number);
    }
    Some(I32(sum))
}
