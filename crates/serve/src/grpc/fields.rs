//! [`check`]: the number of fields of a message, which is looked at before they are read. Each becomes a value of some hundred
//! bytes, also one of two bytes, so that a message of 64 MiB would become 10 GiB.

use prost::encoding::{DecodeContext, decode_key, skip_field};

use crate::refusal::Refusal;

/// The most fields of a message: inputs, outputs, parameters and contents together.
const MAX_FIELDS: usize = 16 << 10;

/// Checks that a message has few fields, those within fields not counted. What is no message is left to its reader.
///
/// # Errors
///
/// `InvalidArgument` if it has more.
pub(super) fn check(mut message: &[u8]) -> Result<(), Refusal> {
    for _ in 0..MAX_FIELDS {
        let skipped = decode_key(&mut message)
            .and_then(|(tag, kind)| skip_field(kind, tag, &mut message, DecodeContext::default()));
        if skipped.is_err() || message.is_empty() {
            return Ok(());
        }
    }
    Err(Refusal::invalid(format!(
        "a message has {MAX_FIELDS} fields at most, which are inputs, outputs, parameters and contents, but this one has more"
    )))
}
