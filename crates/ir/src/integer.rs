//! Integers of any size, as literals and attributes need them.
//!
//! Held in two's complement without superfluous words, so that `1 : i16777215`
//! takes no more memory than `1 : i32`. There is no arithmetic here, only
//! reading, cutting to a width, and writing.

use std::{fmt, sync::Arc};

/// An integer of any size. Small ones are held in place.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Integer(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(i64),
    /// Two's complement, least significant word first.
    ///
    /// Invariant: does not fit in fewer words, and not in an `i64`.
    Big(Arc<[u64]>),
}

/// The most digits of a decimal literal. Reading decimals takes time in the square of their length;
/// longer numbers are written in hexadecimal.
pub(crate) const MAX_DECIMAL_DIGITS: usize = 10_000;

const SIGN: u64 = 1 << 63;

impl Integer {
    /// Reads digits, which the caller has checked, of an unsigned number.
    ///
    /// Returns `None` if a decimal has more than [`MAX_DECIMAL_DIGITS`].
    pub(crate) fn from_digits(digits: &str, radix: u32) -> Option<Integer> {
        if let Ok(small) = i64::from_str_radix(digits, radix) {
            return Some(Integer(Repr::Small(small)));
        }
        let digits = digits.trim_start_matches('0').as_bytes();
        let value = |digit: u8| u64::from(char::from(digit).to_digit(radix).unwrap_or(0));
        let mut words = Vec::new();
        if radix == 16 {
            for chunk in digits.rchunks(16) {
                words.push(
                    chunk
                        .iter()
                        .fold(0, |word, &digit| word << 4 | value(digit)),
                );
            }
        } else {
            if digits.len() > MAX_DECIMAL_DIGITS {
                return None;
            }
            for chunk in digits.chunks(19) {
                let low = chunk
                    .iter()
                    .fold(0, |word, &digit| word * 10 + value(digit));
                let scale = chunk.iter().fold(1, |scale, _| scale * 10);
                multiply_add(&mut words, scale, low);
            }
        }
        words.push(0);
        Some(Integer::from_words(words))
    }

    /// Makes an integer of two's complement words, least significant first.
    pub fn from_words(mut words: Vec<u64>) -> Integer {
        while let [.., before, last] = words[..]
            && ((last == 0 && before & SIGN == 0) || (last == u64::MAX && before & SIGN != 0))
        {
            words.pop();
        }
        match words[..] {
            [] => Integer(Repr::Small(0)),
            [word] => Integer(Repr::Small(word.cast_signed())),
            _ => Integer(Repr::Big(words.into())),
        }
    }

    /// Returns the value if it fits.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Small(value) => Some(*value),
            Repr::Big(_) => None,
        }
    }

    /// Returns the value if it fits.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            Repr::Small(value) => u64::try_from(*value).ok(),
            Repr::Big(words) => match words[..] {
                [word, 0] => Some(word),
                _ => None,
            },
        }
    }

    /// Returns the value if it fits.
    pub fn as_i128(&self) -> Option<i128> {
        match &self.0 {
            Repr::Small(value) => Some(i128::from(*value)),
            Repr::Big(words) => match words[..] {
                [low, high] => Some(i128::from(high.cast_signed()) << 64 | i128::from(low)),
                _ => None,
            },
        }
    }

    /// Returns the low 64 bits in two's complement.
    pub fn low_u64(&self) -> u64 {
        self.word(0)
    }

    /// Returns the two's complement of `n_bytes` bytes, least significant
    /// first, sign-extended or cut.
    pub fn to_le_bytes(&self, n_bytes: usize) -> Vec<u8> {
        let words = (0..n_bytes.div_ceil(8)).map(|index| self.word(index).to_le_bytes());
        let mut bytes: Vec<u8> = words.flatten().collect();
        bytes.truncate(n_bytes);
        bytes
    }

    /// Returns whether this is 0.
    pub fn is_zero(&self) -> bool {
        self.0 == Repr::Small(0)
    }

    /// Returns whether this is below 0.
    pub fn is_negative(&self) -> bool {
        self.word(self.n_words() - 1) & SIGN != 0
    }

    /// Returns the negated value.
    #[must_use]
    pub fn negate(&self) -> Integer {
        if let Repr::Small(value) = self.0
            && let Some(negated) = value.checked_neg()
        {
            return Integer(Repr::Small(negated));
        }
        let mut carry = true;
        let negate = |index| {
            let (word, overflow) = (!self.word(index)).overflowing_add(u64::from(carry));
            carry = overflow;
            word
        };
        Integer::from_words((0..=self.n_words()).map(negate).collect())
    }

    /// Returns the number of bits without sign that a value not below 0 takes.
    pub fn bits_unsigned(&self) -> u64 {
        let mut index = self.n_words();
        while index > 0 {
            index -= 1;
            if self.word(index) != 0 {
                return index as u64 * 64 + u64::from(64 - self.word(index).leading_zeros());
            }
        }
        0
    }

    /// Returns whether the value fits in a two's complement of `width` bits.
    pub fn fits_signed(&self, width: u32) -> bool {
        self.wrap_signed(width) == *self
    }

    /// Returns whether the value fits in `width` bits without sign.
    pub fn fits_unsigned(&self, width: u32) -> bool {
        !self.is_negative() && self.bits_unsigned() <= u64::from(width)
    }

    /// Returns the low `width` bits read as a two's complement.
    #[must_use]
    pub fn wrap_signed(&self, width: u32) -> Integer {
        self.wrap(width, true)
    }

    /// Returns the low `width` bits read without sign.
    #[must_use]
    pub fn wrap_unsigned(&self, width: u32) -> Integer {
        self.wrap(width, false)
    }

    fn wrap(&self, width: u32, signed: bool) -> Integer {
        if width == 0 {
            return Integer::from(0);
        }
        let top = (width - 1) / 64;
        let n_words = self.n_words();
        let top_index = top as usize;
        if top_index >= n_words {
            // Wider than the value: only a sign that must become bits matters.
            if signed || !self.is_negative() {
                return self.clone();
            }
        }
        let shift = 63 - (width - 1) % 64;
        let mut words: Vec<u64> = (0..=top_index).map(|index| self.word(index)).collect();
        let last = words[top_index] << shift;
        words[top_index] = if signed {
            (last.cast_signed() >> shift).cast_unsigned()
        } else {
            last >> shift
        };
        if !signed {
            words.push(0);
        }
        Integer::from_words(words)
    }

    fn n_words(&self) -> usize {
        match &self.0 {
            Repr::Small(_) => 1,
            Repr::Big(words) => words.len(),
        }
    }

    /// Returns a word of the infinite two's complement.
    fn word(&self, index: usize) -> u64 {
        let (words, single);
        match &self.0 {
            Repr::Small(value) => {
                single = [value.cast_unsigned()];
                words = &single[..];
            }
            Repr::Big(big) => words = big,
        }
        let sign = words[words.len() - 1].cast_signed() >> 63;
        words.get(index).copied().unwrap_or(sign.cast_unsigned())
    }
}

/// Computes `words * factor + addend` on a number without sign.
fn multiply_add(words: &mut Vec<u64>, factor: u64, addend: u64) {
    let mut carry = addend;
    for word in words.iter_mut() {
        let product = u128::from(*word) * u128::from(factor) + u128::from(carry);
        *word = low_half(product);
        carry = low_half(product >> 64);
    }
    if carry != 0 {
        words.push(carry);
    }
}

/// Divides a number without sign in place and returns the remainder.
fn divide(words: &mut [u64], divisor: u64) -> u64 {
    let mut remainder = 0_u64;
    for word in words.iter_mut().rev() {
        let dividend = u128::from(remainder) << 64 | u128::from(*word);
        *word = low_half(dividend / u128::from(divisor));
        remainder = low_half(dividend % u128::from(divisor));
    }
    remainder
}

fn low_half(value: u128) -> u64 {
    u64::try_from(value & u128::from(u64::MAX)).expect("masked to 64 bits")
}

impl From<i64> for Integer {
    fn from(value: i64) -> Integer {
        Integer(Repr::Small(value))
    }
}

impl From<i32> for Integer {
    fn from(value: i32) -> Integer {
        Integer::from(i64::from(value))
    }
}

impl From<u64> for Integer {
    fn from(value: u64) -> Integer {
        Integer::from_words(vec![value, 0])
    }
}

impl From<i128> for Integer {
    fn from(value: i128) -> Integer {
        let high = low_half((value >> 64).cast_unsigned() & u128::from(u64::MAX));
        Integer::from_words(vec![low_half(value.cast_unsigned()), high])
    }
}

impl fmt::Display for Integer {
    /// Writes decimals, or hexadecimals if decimals could not be read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Repr::Small(value) = self.0 {
            return write!(f, "{value}");
        }
        let negative = self.is_negative();
        let magnitude = if negative {
            self.negate()
        } else {
            self.clone()
        };
        let mut words: Vec<u64> = (0..magnitude.n_words())
            .map(|index| magnitude.word(index))
            .collect();
        if negative {
            f.write_str("-")?;
        }
        // 2^33,000 has 9,934 digits.
        if magnitude.bits_unsigned() > 33_000 {
            f.write_str("0x")?;
            while words.last() == Some(&0) {
                words.pop();
            }
            for (index, word) in words.iter().rev().enumerate() {
                match index {
                    0 => write!(f, "{word:X}")?,
                    _ => write!(f, "{word:016X}")?,
                }
            }
            return Ok(());
        }
        const CHUNK: u64 = 10_u64.pow(19);
        let mut chunks = Vec::new();
        while words.iter().any(|&word| word != 0) {
            chunks.push(divide(&mut words, CHUNK));
            while words.last() == Some(&0) {
                words.pop();
            }
        }
        for (index, chunk) in chunks.iter().rev().enumerate() {
            match index {
                0 => write!(f, "{chunk}")?,
                _ => write!(f, "{chunk:019}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
