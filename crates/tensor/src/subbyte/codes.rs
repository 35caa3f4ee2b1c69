//! Encoding and decoding of small numbers.

use super::{Overflow, SubbyteType};

/// Bit layout of a float's code.
#[derive(Clone, Copy)]
struct FloatFormat {
    n_bits: u32,
    n_mantissa: u32,
    bias: i32,
    /// The code of the largest number.
    largest: u8,
    special: Special,
}

/// Codes that are no finite numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// No codes: all are finite.
    None,
    /// The code above the largest number, which is no number.
    Above,
    /// The code above the largest number, which is infinity; those behind it are no numbers.
    Infinity,
    /// The code of -0, which is no number.
    NegativeZero,
}

/// Returns the bit layout of a float type; `None` for integers and for powers of two.
fn float(dtype: SubbyteType) -> Option<FloatFormat> {
    let (n_bits, n_mantissa, bias, largest, special) = match dtype {
        SubbyteType::F8E4M3FN => (8, 3, 7, 0x7e, Special::Above),
        SubbyteType::F8E4M3FNUZ => (8, 3, 8, 0x7f, Special::NegativeZero),
        SubbyteType::F8E5M2 => (8, 2, 15, 0x7b, Special::Infinity),
        SubbyteType::F8E5M2FNUZ => (8, 2, 16, 0x7f, Special::NegativeZero),
        SubbyteType::F4E2M1 => (4, 1, 1, 0x7, Special::None),
        SubbyteType::F8E3M4 => (8, 4, 3, 0x6f, Special::Infinity),
        SubbyteType::F8E4M3 => (8, 3, 7, 0x77, Special::Infinity),
        SubbyteType::F8E4M3B11FNUZ => (8, 3, 11, 0x7f, Special::NegativeZero),
        SubbyteType::F6E2M3 => (6, 3, 1, 0x1f, Special::None),
        SubbyteType::F6E3M2 => (6, 2, 3, 0x1f, Special::None),
        SubbyteType::I4
        | SubbyteType::Ui4
        | SubbyteType::I2
        | SubbyteType::Ui2
        | SubbyteType::F8E8M0 => return None,
    };
    Some(FloatFormat {
        n_bits,
        n_mantissa,
        bias,
        largest,
        special,
    })
}

/// The code of a power of two that is no number.
const NO_POWER: u8 = 0xff;

pub(super) fn decode(dtype: SubbyteType, code: u8) -> f32 {
    match (dtype, float(dtype)) {
        (_, Some(float)) => float.decode(code),
        // The sign of the four bits fills the others.
        (SubbyteType::I4, _) => f32::from((code << 4).cast_signed() >> 4),
        (SubbyteType::Ui4, _) => f32::from(code & 0xf),
        (SubbyteType::I2, _) => f32::from((code << 6).cast_signed() >> 6),
        (SubbyteType::Ui2, _) => f32::from(code & 0x3),
        _ if code == NO_POWER => f32::NAN,
        // The least is half of the least normal number.
        _ if code == 0 => f32::from_bits(1 << 22),
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

pub(super) fn encode(dtype: SubbyteType, value: f32, overflow: Overflow) -> u8 {
    match (dtype, float(dtype)) {
        (_, Some(float)) => float.encode(value, overflow),
        (SubbyteType::I4, _) => whole(value, -8.0, 7.0) & 0xf,
        (SubbyteType::I2, _) => whole(value, -2.0, 1.0) & 0x3,
        (SubbyteType::Ui4, _) => whole(value, 0.0, 15.0),
        (SubbyteType::Ui2, _) => whole(value, 0.0, 3.0),
        _ => power(value, overflow),
    }
}

/// Returns the nearest integer of a range, as a byte.
fn whole(value: f32, least: f32, largest: f32) -> u8 {
    #[allow(clippy::cast_possible_truncation, reason = "it is clamped")]
    let whole = value.round_ties_even().clamp(least, largest) as i8;
    whole.cast_unsigned()
}

/// Returns the code of the power of two that is as large as a number, or the next above.
fn power(value: f32, overflow: Overflow) -> u8 {
    let bits = value.to_bits();
    let (exponent, mantissa) = ((bits >> 23) & 0xff, bits & 0x7f_ffff);
    if value.is_nan() || value < 0.0 {
        return NO_POWER;
    }
    let code = match exponent {
        // Half of the least normal number is the least power, and one above it is next.
        0 => u32::from(mantissa > 1 << 22),
        exponent => exponent + u32::from(mantissa > 0),
    };
    let largest = NO_POWER - 1;
    match u8::try_from(code).ok().filter(|code| *code <= largest) {
        Some(code) => code,
        None if overflow == Overflow::Saturate => largest,
        None => NO_POWER,
    }
}

impl FloatFormat {
    fn sign(self) -> u8 {
        1 << (self.n_bits - 1)
    }

    fn decode(self, code: u8) -> f32 {
        let is_negative = code & self.sign() != 0;
        let size = code & (self.sign() - 1);
        let magnitude = match self.special {
            Special::NegativeZero if is_negative && size == 0 => return f32::NAN,
            Special::Above if size > self.largest => f32::NAN,
            Special::Infinity if size == self.largest + 1 => f32::INFINITY,
            Special::Infinity if size > self.largest => f32::NAN,
            _ => self.magnitude(size),
        };
        if is_negative { -magnitude } else { magnitude }
    }

    /// Returns the number of a code without sign.
    fn magnitude(self, size: u8) -> f32 {
        let (exponent, mantissa) = (
            i32::from(size >> self.n_mantissa),
            size & ((1 << self.n_mantissa) - 1),
        );
        let hidden = if exponent > 0 {
            1 << self.n_mantissa
        } else {
            0
        };
        let scale = exponent.max(1) - self.bias - self.n_mantissa.cast_signed();
        // Neither factor nor product is too small or too large for an `f32`.
        f32::from(mantissa | hidden) * 2_f32.powi(scale)
    }

    fn encode(self, value: f32, overflow: Overflow) -> u8 {
        let sign = if value.is_sign_negative() {
            self.sign()
        } else {
            0
        };
        if value.is_nan() {
            return match self.special {
                Special::None => self.largest,
                Special::NegativeZero => self.sign(),
                Special::Above => sign | (self.largest + 1),
                Special::Infinity => sign | (self.sign() - 1),
            };
        }
        let code = match self.nearest(value.abs()) {
            Some(code) => code,
            None => match (self.special, overflow) {
                (Special::NegativeZero, _) if value.is_infinite() => return self.sign(),
                (Special::None, _) | (_, Overflow::Saturate) => self.largest,
                (Special::NegativeZero, Overflow::Escape) => return self.sign(),
                (Special::Above | Special::Infinity, Overflow::Escape) => self.largest + 1,
            },
        };
        match (self.special, code) {
            // There is one zero.
            (Special::NegativeZero, 0) => 0,
            _ => sign | code,
        }
    }

    /// Returns the code of the nearest number to one that is not negative; `None` if it rounds to more than the
    /// largest number.
    fn nearest(self, value: f32) -> Option<u8> {
        if value.is_infinite() {
            return None;
        }
        let wide = f64::from(value);
        // All exponents of an `f32` are normal ones here; that of 0 is below all.
        let exponent = i32::try_from(wide.to_bits() >> 52).unwrap_or(0) - 1023;
        let exponent = exponent.max(1 - self.bias);
        let n_mantissa = self.n_mantissa.cast_signed();
        // In units of the last place, exactly, and rounded.
        let units = (wide * 2_f64.powi(n_mantissa - exponent)).round_ties_even();
        #[allow(
            clippy::cast_possible_truncation,
            reason = "no more than twice the mantissa's codes"
        )]
        let units = units as i32;
        // A carry into the exponent is a sum's.
        let code = ((exponent + self.bias - 1) << n_mantissa) + units;
        u8::try_from(code).ok().filter(|code| *code <= self.largest)
    }
}
