//! [`Chain`]: the value without content that orders effects.

use crate::storage::{InPlace, Record, Value};

/// Orders effects: an operation that takes a chain runs after the one that gave it.
///
/// ```
/// use tfrt_async::{AsyncValue, Chain};
/// let ready = AsyncValue::available(Chain);
/// assert!(ready.is_settled());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Chain;

impl Value for Chain {
    const NAME: &'static str = "!tfrt.chain";
    type Storage = InPlace;
    const RECORD: &'static Record<Chain> = {
        static RECORD: Record<Chain> = Record::new();
        &RECORD
    };
}
