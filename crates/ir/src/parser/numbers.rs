//! Number literals, read as the type beside them asks.

use super::{Parsed, Parser};
use crate::{
    attributes::{Attribute, FloatAttribute, IntegerAttribute},
    codes, float,
    integer::{Integer, MAX_DECIMAL_DIGITS},
    lexer::{Kind, Mark},
    source::Span,
    types::{FloatKind, IntegerType, Signedness, Type},
};

/// A number as written: digits, with or without a dot, and maybe a minus.
#[derive(Clone, Copy)]
pub(super) struct Number<'a> {
    pub text: &'a str,
    pub is_float: bool,
    pub negative: bool,
    pub span: Span,
}

impl<'a> Parser<'a> {
    /// Parses `-`? (integer | float).
    pub(super) fn number(&mut self) -> Parsed<Number<'a>> {
        let start = self.token.span();
        let negative = self.eat(Mark::Minus);
        let is_float = match self.token.kind {
            Kind::Integer => false,
            Kind::Float => true,
            _ => return self.expected(codes::EXPECTED_ATTRIBUTE, "number"),
        };
        let (text, span) = (self.token_text(), start.to(self.token.span()));
        self.bump();
        Ok(Number {
            text,
            is_float,
            negative,
            span,
        })
    }

    /// Parses a number and, unless its type is known, the type behind it.
    pub(super) fn number_attribute(&mut self, known: Option<&Type>) -> Parsed<Attribute> {
        let number = self.number()?;
        if let Some(ty) = known {
            return self.typed_number(number, ty);
        }
        let ty = match self.eat(Mark::Colon) {
            true => self.ty()?,
            false if number.is_float => Type::F64,
            false => Type::I64,
        };
        self.typed_number(number, &ty)
    }

    /// Reads a number as a type.
    pub(super) fn typed_number(&mut self, number: Number<'a>, ty: &Type) -> Parsed<Attribute> {
        match ty {
            Type::Integer(integer) if !number.is_float => {
                let value = self.integer(number, *integer)?;
                Ok(Attribute::Integer(IntegerAttribute::wrapping(
                    value,
                    ty.clone(),
                )))
            }
            Type::Index if !number.is_float => {
                let index = IntegerType {
                    width: 64,
                    signedness: Signedness::Signed,
                };
                let value = self.integer(number, index)?;
                Ok(Attribute::Integer(IntegerAttribute::wrapping(
                    value,
                    ty.clone(),
                )))
            }
            Type::Float(kind) => {
                let bits = self.float(number, *kind)?;
                Ok(Attribute::Float(FloatAttribute { bits, kind: *kind }))
            }
            _ if number.is_float => self.fail(
                codes::LITERAL_TYPE,
                number.span,
                format!("floating point value not valid for type '{ty}'"),
            ),
            _ => {
                let message = format!("integer literal not valid for type '{ty}'");
                let error = self.error(codes::LITERAL_TYPE, number.span, message);
                let is_tensor = matches!(ty, Type::Tensor(_) | Type::Vector(_));
                let written = &self.text[number.span.range()];
                self.push(match is_tensor {
                    true => {
                        error.help(format!("for all elements at once: dense<{written}> : {ty}"))
                    }
                    false => error,
                });
                Err(super::ParseFailed)
            }
        }
    }

    fn integer(&mut self, number: Number<'a>, ty: IntegerType) -> Parsed<Integer> {
        let IntegerType { width, signedness } = ty;
        let digits = number.text.strip_prefix("0x");
        let magnitude = match digits {
            Some(digits) => Integer::from_digits(digits, 16),
            None => Integer::from_digits(number.text, 10),
        };
        let Some(magnitude) = magnitude else {
            let message = format!(
                "decimal integer has more than {MAX_DECIMAL_DIGITS} digits; write it in hexadecimal"
            );
            return self.fail(codes::INTEGER_TOO_LONG, number.span, message);
        };
        if number.negative && signedness == Signedness::Unsigned {
            let message = "negative integer literal not valid for unsigned integer type";
            return self.fail(codes::NEGATIVE_UNSIGNED, number.span, message);
        }
        let value = if number.negative {
            magnitude.negate()
        } else {
            magnitude
        };
        let fits = match signedness {
            _ if number.negative => value.is_zero() || (width > 0 && value.fits_signed(width)),
            Signedness::Signed => value.is_zero() || (width > 0 && value.fits_signed(width)),
            Signedness::Signless | Signedness::Unsigned => value.fits_unsigned(width),
        };
        if !fits {
            let message = format!("integer constant out of range for type '{ty}'");
            let error = self.error(codes::INTEGER_RANGE, number.span, message);
            self.push(match range(ty) {
                Some((least, most)) => error.help(format!("'{ty}' holds {least} to {most}")),
                None => error,
            });
            return Err(super::ParseFailed);
        }
        Ok(value)
    }

    fn float(&mut self, number: Number<'a>, kind: FloatKind) -> Parsed<u64> {
        if !float::is_supported(kind) {
            let message = format!("constants of type '{}' are not supported", kind.name());
            return self.fail(codes::UNSUPPORTED_FLOAT, number.span, message);
        }
        if number.is_float {
            let bits = float::parse(number.text, kind);
            if kind == FloatKind::F64 && f64::from_bits(bits).is_infinite() {
                return self.fail(
                    codes::FLOAT_RANGE,
                    number.span,
                    "floating point value too large",
                );
            }
            let signed = match number.negative {
                true => float::negate(bits, kind),
                false => Some(bits),
            };
            let Some(bits) = signed else {
                let message = format!("'{}' holds no numbers below 0", kind.name());
                return self.fail(codes::FLOAT_RANGE, number.span, message);
            };
            return Ok(bits);
        }
        let Some(digits) = number.text.strip_prefix("0x") else {
            let message = "unexpected decimal integer literal for a floating point value";
            let error = self.error(codes::INTEGER_FOR_FLOAT, number.span, message);
            // What follows is the exponent of a number without a dot.
            let behind = &self.text[number.span.range().end..];
            let exponent = behind.strip_prefix(['e', 'E']).unwrap_or_default();
            let exponent = exponent.trim_start_matches(['+', '-']);
            self.push(match exponent.starts_with(|c: char| c.is_ascii_digit()) {
                true => error.help("a float has a dot before its exponent: 1.0e-3"),
                false => error.help("add a trailing dot to make the literal a float"),
            });
            return Err(super::ParseFailed);
        };
        if number.negative {
            let message = "hexadecimal float literal should not have a leading minus";
            return self.fail(codes::NEGATIVE_HEX_FLOAT, number.span, message);
        }
        let bits = Integer::from_digits(digits, 16).filter(|bits| bits.fits_unsigned(kind.width()));
        match bits {
            Some(bits) => Ok(bits.low_u64()),
            None => self.fail(
                codes::FLOAT_RANGE,
                number.span,
                "hexadecimal float constant out of range for type",
            ),
        }
    }
}

/// Returns the least and the greatest number of a type, if they are short. Types without a sign
/// hold those of both kinds.
fn range(ty: IntegerType) -> Option<(i128, i128)> {
    const MAX_WIDTH: u32 = 64;
    let half = 1i128 << ty.width.checked_sub(1).filter(|&bits| bits < MAX_WIDTH)?;
    Some(match ty.signedness {
        Signedness::Signed => (-half, half - 1),
        Signedness::Unsigned => (0, 2 * half - 1),
        Signedness::Signless => (-half, 2 * half - 1),
    })
}
