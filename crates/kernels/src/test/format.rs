//! `printf` with one integer: every format that C defines for it, and an error for all others.
//!
//! A conversion is `%`, flags (`-`, `+`, space, `#`, `0`), a width, a precision after a point, and
//! one of `d i u x X o c`. `%%` is a percent sign.

use std::iter::Peekable;
use std::str::Chars;

/// The reason why nothing was formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FormatError {
    /// The text would exceed the limit.
    TooLong,
    /// The format says something that C leaves undefined, or that needs other arguments.
    Malformed(String),
}

/// Formats `value` by `format`, into at most `max_bytes` bytes.
pub(super) fn integer(format: &str, value: i32, max_bytes: usize) -> Result<String, FormatError> {
    let mut text = String::new();
    let mut used = false;
    let mut rest = format.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '%' {
            text.push(character);
        } else if rest.next_if_eq(&'%').is_some() {
            text.push('%');
        } else {
            if std::mem::replace(&mut used, true) {
                return malformed("it has a second conversion");
            }
            let conversion = Conversion::parse(&mut rest)?;
            if conversion.width.max(conversion.precision.unwrap_or(0)) > max_bytes {
                return Err(FormatError::TooLong);
            }
            text.push_str(&conversion.apply(value)?);
        }
        if text.len() > max_bytes {
            return Err(FormatError::TooLong);
        }
    }
    Ok(text)
}

fn malformed<T>(reason: impl Into<String>) -> Result<T, FormatError> {
    Err(FormatError::Malformed(reason.into()))
}

/// One conversion, from the flags to its letter.
#[derive(Default)]
struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    letter: char,
}

impl Conversion {
    fn parse(rest: &mut Peekable<Chars<'_>>) -> Result<Self, FormatError> {
        let mut conversion = Conversion::default();
        loop {
            let flag = match rest.peek() {
                Some('-') => &mut conversion.left,
                Some('+') => &mut conversion.plus,
                Some(' ') => &mut conversion.space,
                Some('#') => &mut conversion.alternate,
                Some('0') => &mut conversion.zero,
                _ => break,
            };
            *flag = true;
            rest.next();
        }
        conversion.width = number(rest);
        if rest.next_if_eq(&'.').is_some() {
            conversion.precision = Some(number(rest));
        }
        match rest.next() {
            Some(letter @ ('d' | 'i' | 'u' | 'x' | 'X' | 'o' | 'c')) => conversion.letter = letter,
            Some(other) => {
                return malformed(format!("'{}' converts no integer", other.escape_debug()));
            }
            None => return malformed("it ends inside a conversion"),
        }
        Ok(conversion)
    }

    fn apply(&self, value: i32) -> Result<String, FormatError> {
        if self.letter == 'c' {
            // C converts to an unsigned char.
            let byte = value.cast_unsigned().to_le_bytes()[0];
            if !byte.is_ascii() {
                return malformed(format!("{value} is no ASCII character"));
            }
            return Ok(self.pad("", &char::from(byte).to_string(), false));
        }
        let signed = matches!(self.letter, 'd' | 'i');
        let sign = match value {
            _ if !signed => "",
            ..0 => "-",
            _ if self.plus => "+",
            _ if self.space => " ",
            _ => "",
        };
        let magnitude = if signed {
            value.unsigned_abs()
        } else {
            value.cast_unsigned()
        };
        let mut digits = match self.letter {
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            'o' => format!("{magnitude:o}"),
            _ => magnitude.to_string(),
        };
        if magnitude == 0 && self.precision == Some(0) {
            digits.clear();
        }
        let n_missing = self.precision.unwrap_or(0).saturating_sub(digits.len());
        digits.insert_str(0, &"0".repeat(n_missing));
        let prefix = match self.letter {
            'o' if self.alternate && !digits.starts_with('0') => "0",
            'x' if self.alternate && magnitude != 0 => "0x",
            'X' if self.alternate && magnitude != 0 => "0X",
            _ => sign,
        };
        Ok(self.pad(prefix, &digits, self.zero && self.precision.is_none()))
    }

    /// Fills up to the width.
    fn pad(&self, prefix: &str, digits: &str, zeros: bool) -> String {
        let n_missing = self.width.saturating_sub(prefix.len() + digits.len());
        match (self.left, zeros) {
            (true, _) => format!("{prefix}{digits}{}", " ".repeat(n_missing)),
            (false, true) => format!("{prefix}{}{digits}", "0".repeat(n_missing)),
            (false, false) => format!("{}{prefix}{digits}", " ".repeat(n_missing)),
        }
    }
}

/// Reads digits; no digits are 0, and a number that is too large becomes the largest.
fn number(rest: &mut Peekable<Chars<'_>>) -> usize {
    let mut number = 0usize;
    while let Some(digit) = rest.peek().and_then(|character| character.to_digit(10)) {
        number = number.saturating_mul(10).saturating_add(digit as usize);
        rest.next();
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases with the output of glibc.
    const CASES: &[(&str, i32, &str)] = &[
        ("plain", 7, "plain"),
        ("100%%", 7, "100%"),
        ("image_%d.jpg", 42, "image_42.jpg"),
        ("%5d|", 42, "   42|"),
        ("%-5d|", 42, "42   |"),
        ("%05d", -42, "-0042"),
        ("%-05d|", 42, "42   |"),
        ("%+d", 42, "+42"),
        ("% d", 42, " 42"),
        ("%+ d", 42, "+42"),
        ("%.3d", 7, "007"),
        ("%6.3d", -7, "  -007"),
        ("%06.3d", 7, "   007"),
        ("%.0d|", 0, "|"),
        ("%+.0d|", 0, "+|"),
        ("%.d|", 0, "|"),
        ("%i", i32::MIN, "-2147483648"),
        ("%u", -1, "4294967295"),
        ("%x", 255, "ff"),
        ("%#X", 255, "0XFF"),
        ("%#x", 0, "0"),
        ("%#08x", 255, "0x0000ff"),
        ("%#10x", 255, "      0xff"),
        ("%#o", 8, "010"),
        ("%#.4o", 8, "0010"),
        ("%#.0o", 0, "0"),
        ("%#o", 0, "0"),
        ("%+u", 3, "3"),
        ("%c", 65, "A"),
        ("%3c|", 65, "  A|"),
        ("%-3c|", 65, "A  |"),
        ("%c", 256 + 65, "A"),
    ];

    #[test]
    fn formats_as_c_does() {
        for (format, value, expected) in CASES {
            let text = integer(format, *value, 100);
            assert_eq!(text.as_deref(), Ok(*expected), "{format} of {value}");
        }
    }

    #[test]
    fn what_is_no_conversion_of_one_integer_is_refused() {
        for format in [
            "%", "%s", "%n", "%f", "%ld", "%*d", "%d %d", "%1$d", "%5%", "%.", "%-", "%é",
        ] {
            let refusal = integer(format, 1, 100);
            assert!(
                matches!(refusal, Err(FormatError::Malformed(_))),
                "{format}"
            );
        }
        assert!(matches!(
            integer("%c", 200, 100),
            Err(FormatError::Malformed(_))
        ));
    }

    #[test]
    fn long_texts_are_refused() {
        for format in ["%101d", "%.101d", "%99999999999999999999999d"] {
            assert_eq!(
                integer(format, 1, 100),
                Err(FormatError::TooLong),
                "{format}"
            );
        }
        assert_eq!(integer(&"x".repeat(101), 1, 100), Err(FormatError::TooLong));
        assert_eq!(integer("%100d", 1, 100).map(|text| text.len()), Ok(100));
    }
}
