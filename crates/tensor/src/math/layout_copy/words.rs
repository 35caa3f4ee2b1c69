//! Words: elements of which a copy knows the size and not the type.

use tfrt_host::{DType, Error};

/// Expands `body` for the Rust type of words of the size and alignment of a [`DType`]'s elements: `with_word!(dtype,
/// W => body)`, where `body` is a `Result` of this crate's errors. Six word types stand for all types of elements.
macro_rules! with_word {
    ($dtype:expr, $W:ident => $body:expr) => {{
        // Expands to `match .. { (Some(1), _) => { type W = u8; body } .. }`.
        macro_rules! arm {
            ($type:ty) => {{
                type $W = $type;
                $body
            }};
        }
        let dtype: tfrt_host::DType = $dtype;
        match (dtype.size_bytes(), dtype.alignment_bytes()) {
            (Some(1), _) => arm!(u8),
            (Some(2), _) => arm!(u16),
            (Some(4), _) => arm!(u32),
            (Some(8), Some(8)) => arm!(u64),
            (Some(8), _) => arm!($crate::Complex<f32>),
            (Some(16), _) => arm!($crate::Complex<f64>),
            _ => Err($crate::math::layout_copy::words::no_size(dtype)),
        }
    }};
}

pub(crate) use with_word;

#[cold]
pub(crate) fn no_size(dtype: DType) -> Error {
    Error::invalid_argument(format!("elements of type {dtype} are not of one size"))
}

/// Returns the only element of a list, as a word of the size of `W`.
///
/// # Errors
///
/// `InvalidArgument` if there is another number of elements.
pub(super) fn only<W: crate::Element>(bytes: &[u8]) -> Result<W, Error> {
    let mut word = [W::ZERO];
    let to = crate::to_bytes_mut(&mut word);
    if to.len() != bytes.len() {
        let n = bytes.len() / to.len();
        return Err(Error::invalid_argument(format!(
            "expected one element, found {n}"
        )));
    }
    // The bytes may lie anywhere.
    to.copy_from_slice(bytes);
    Ok(word[0])
}
