//! Variable-length integers: groups of seven bits, the most significant first.
//!
//! Every byte but the last has its top bit set. Values have 64 bits; only the
//! shortest form is accepted, so that a value has one spelling.

/// Longest encoding of a 64-bit value.
pub const MAX_BYTES: usize = 10;

/// The reason why bytes are not a variable-length integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarintError {
    /// The bytes ended inside the integer.
    Truncated,
    /// The value needs more than 64 bits.
    TooLarge,
    /// The first byte carries no bits.
    NotMinimal,
}

impl VarintError {
    /// Returns the reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            VarintError::Truncated => "integer runs past the end",
            VarintError::TooLarge => "integer exceeds 64 bits",
            VarintError::NotMinimal => "integer is not in its shortest form",
        }
    }
}

/// Reads an integer from the start of `bytes`; returns it and its length in bytes.
///
/// # Errors
///
/// Says why the bytes are not an integer.
pub fn read(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
    let mut value: u64 = 0;
    for (position, byte) in bytes.iter().enumerate() {
        if position == 0 && *byte == 0x80 {
            return Err(VarintError::NotMinimal);
        }
        if value >> 57 != 0 {
            return Err(VarintError::TooLarge);
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok((value, position + 1));
        }
    }
    Err(VarintError::Truncated)
}

/// Appends `value` to `out`.
pub fn write(out: &mut Vec<u8>, value: u64) {
    for group in (1..len_bytes(value)).rev() {
        out.push((value >> (7 * group)) as u8 | 0x80);
    }
    out.push(value as u8 & 0x7f);
}

/// Returns how many bytes `value` takes.
pub fn len_bytes(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(value: u64, bytes: &[u8]) {
        let mut out = Vec::new();
        write(&mut out, value);
        assert_eq!(out, bytes);
        assert_eq!(len_bytes(value), bytes.len());
        assert_eq!(read(bytes), Ok((value, bytes.len())));
    }

    #[test]
    fn known_values() {
        check(0, &[0]);
        check(1, &[1]);
        check(127, &[0x7f]);
        check(128, &[0x81, 0]);
        check(130, &[0x81, 2]);
        check(16383, &[0xff, 0x7f]);
        check(16384, &[0x81, 0x80, 0]);
        check(16643, &[0x81, 0x82, 3]);
        check(
            u64::MAX,
            &[0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        );
    }

    #[test]
    fn bad_forms_are_refused() {
        assert_eq!(read(&[]), Err(VarintError::Truncated));
        assert_eq!(read(&[0x81]), Err(VarintError::Truncated));
        assert_eq!(read(&[0x80, 1]), Err(VarintError::NotMinimal));
        let mut over = [0xff; 11];
        over[10] = 0;
        assert_eq!(read(&over), Err(VarintError::TooLarge));
        assert_eq!(
            read(&[0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]),
            Err(VarintError::TooLarge)
        );
    }

    proptest! {
        #[test]
        fn every_value_survives(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut out = Vec::new();
            write(&mut out, value);
            prop_assert!(out.len() <= MAX_BYTES);
            prop_assert_eq!(read(&out), Ok((value, out.len())));
        }

        #[test]
        fn every_accepted_form_is_the_written_one(bytes: Vec<u8>) {
            if let Ok((value, len)) = read(&bytes) {
                let mut out = Vec::new();
                write(&mut out, value);
                prop_assert_eq!(&bytes[..len], &out[..]);
            }
        }
    }
}
