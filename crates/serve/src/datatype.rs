//! The types of elements as KServe's protocol names them, and strings in its binary form.

use tfrt_host::Error;
use tfrt_tensor::DType;

/// The names of the protocol, in the order of the numbers that configurations have for them, from 1. Other types of
/// elements have none.
const NAMES: [(&str, DType); 14] = [
    ("BOOL", DType::I1),
    ("UINT8", DType::Ui8),
    ("UINT16", DType::Ui16),
    ("UINT32", DType::Ui32),
    ("UINT64", DType::Ui64),
    ("INT8", DType::I8),
    ("INT16", DType::I16),
    ("INT32", DType::I32),
    ("INT64", DType::I64),
    ("FP16", DType::F16),
    ("FP32", DType::F32),
    ("FP64", DType::F64),
    ("BYTES", DType::String),
    ("BF16", DType::Bf16),
];

/// Returns the type of a name.
pub(crate) fn of_name(name: &str) -> Option<DType> {
    let mut names = NAMES.iter();
    names.find(|(own, _)| *own == name).map(|(_, dtype)| *dtype)
}

/// Returns the name of a type, if it has one.
pub(crate) fn name_of(dtype: DType) -> Option<&'static str> {
    let mut names = NAMES.iter();
    names.find(|(_, own)| *own == dtype).map(|(name, _)| *name)
}

/// Returns the number of a type in configurations: 0 if it has none.
pub(crate) fn number_of(dtype: DType) -> i32 {
    let place = NAMES.iter().position(|(_, own)| *own == dtype);
    place.map_or(0, |place| i32::try_from(place + 1).unwrap_or(0))
}

/// Returns the name of a type for messages and descriptions: its own where the protocol has none.
pub(crate) fn shown(dtype: DType) -> &'static str {
    name_of(dtype).unwrap_or(dtype.name())
}

/// Splits strings that stand one behind the other, each behind its length in four bytes, the lowest first.
///
/// # Errors
///
/// `InvalidArgument` if there are not `n_strings` of them, or if a length is more than what is left.
pub(crate) fn split_strings(bytes: &[u8], n_strings: usize) -> Result<Vec<Vec<u8>>, Error> {
    // Each takes four bytes at least, which bounds what is allocated.
    let mut strings = Vec::with_capacity(n_strings.min(bytes.len() / 4));
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let index = strings.len();
        if index == n_strings {
            break;
        }
        let length = u32::from_le_bytes(*length) as usize;
        let Some((string, behind)) = behind.split_at_checked(length) else {
            return Err(Error::invalid_argument(format!(
                "string {index} is said to have {length} bytes, but {} are left",
                behind.len()
            )));
        };
        strings.push(string.to_vec());
        rest = behind;
    }
    match (strings.len() == n_strings, rest.len()) {
        (true, 0) => Ok(strings),
        (true, n_left) => Err(Error::invalid_argument(format!(
            "{n_left} bytes are left behind the {n_strings} strings"
        ))),
        (false, _) => Err(Error::invalid_argument(format!(
            "expected {n_strings} strings, found {}",
            strings.len()
        ))),
    }
}

/// Writes strings one behind the other, each behind its length.
pub(crate) fn join_strings(strings: &[Vec<u8>]) -> Vec<u8> {
    let n_bytes = strings.iter().map(|string| 4 + string.len()).sum();
    let mut bytes = Vec::with_capacity(n_bytes);
    for string in strings {
        let length = u32::try_from(string.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&string[..length as usize]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_split_as_they_were_joined() {
        let strings = [b"a".to_vec(), Vec::new(), vec![0, 255]];
        let bytes = join_strings(&strings);
        assert_eq!(split_strings(&bytes, 3).unwrap(), strings);
        let error = |bytes: &[u8], n| split_strings(bytes, n).unwrap_err().message().to_owned();
        assert_eq!(error(&bytes, 2), "6 bytes are left behind the 2 strings");
        assert_eq!(error(&bytes, 4), "expected 4 strings, found 3");
        assert_eq!(
            error(&bytes, usize::MAX),
            format!("expected {} strings, found 3", usize::MAX)
        );
        assert_eq!(
            error(&[255, 255, 255, 255, 1], 1),
            "string 0 is said to have 4294967295 bytes, but 1 are left"
        );
    }
}
