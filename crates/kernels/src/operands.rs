//! Reads untyped operands.

use tfrt_host::{AnyAsyncValue, Error, Value};

/// Reads all operands as `T`, or tells which one is not.
pub(crate) fn copies<T: Value + Copy>(operands: &[AnyAsyncValue]) -> Result<Vec<T>, Error> {
    operands
        .iter()
        .enumerate()
        .map(|(index, operand)| {
            operand.get::<T>().copied().ok_or_else(|| {
                let found = operand.type_name().unwrap_or("a value of unknown type");
                let expected = T::NAME;
                Error::invalid_argument(format!(
                    "variadic operand {index}: expected {expected}, found {found}"
                ))
            })
        })
        .collect()
}
