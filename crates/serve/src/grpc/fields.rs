//! [`check`]: the number of fields of a message, which is looked at before they are read. Each becomes a value of some hundred
//! bytes, also one of two bytes, so that a message of 64 MiB would become 10 GiB.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::refusal::Refusal;

/// The most fields of a message: inputs, outputs, parameters and contents together.
const MAX_FIELDS: usize = 16 << 10;

/// Checks that a message has few fields, with those within fields of the numbers `nested`. What is no message is left to its
/// reader.
///
/// # Errors
///
/// `InvalidArgument` if it has more.
pub(super) fn check(message: &[u8], nested: &[u32]) -> Result<(), Refusal> {
    match count(message, nested, MAX_FIELDS) {
        Some(_) => Ok(()),
        None => Err(Refusal::invalid(format!(
            "a message has {MAX_FIELDS} fields at most, which are inputs, outputs, parameters and contents, but this one has more"
        ))),
    }
}

/// Counts the fields of a message, up to the first that can't be read. Returns how many of `left` are left; `None` if there are
/// more.
fn count(mut message: &[u8], nested: &[u32], mut left: usize) -> Option<usize> {
    while !message.is_empty() {
        left = left.checked_sub(1)?;
        let Ok((tag, kind)) = decode_key(&mut message) else {
            break;
        };
        if kind == WireType::LengthDelimited && nested.contains(&tag) {
            let length = decode_varint(&mut message).unwrap_or(u64::MAX);
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let Some((field, rest)) = message.split_at_checked(length) else {
                break;
            };
            left = count(field, &[], left)?;
            message = rest;
        } else if skip_field(kind, tag, &mut message, DecodeContext::default()).is_err() {
            break;
        }
    }
    Some(left)
}
