//! Dense and sparse elements.
//!
//! ```text
//! dense    ::= `dense` `<` literal? `>` `:` type
//! sparse   ::= `sparse` `<` (literal `,` literal)? `>` `:` type
//! literal  ::= element | `[` literal,* `]` | `"0x..."`
//! element  ::= number | `true` | `false` | string | `(` number `,` number `)`
//! ```
//!
//! The type comes last, so elements are remembered as places in the text and
//! read when it is known.

use std::sync::Arc;

use super::{ParseFailed, Parsed, Parser, numbers::Number};
use crate::{
    attributes::{
        Attribute, Bytes, DenseAttribute, DenseElements, SparseAttribute, element_count,
        element_size_bytes,
    },
    codes,
    lexer::{self, Kind, Mark},
    source::Span,
    types::{DYNAMIC, IntegerType, Signedness, Type},
};

/// A list of elements as written.
#[derive(Default)]
struct Literal {
    elements: Vec<Element>,
    /// Sizes of the nested lists.
    shape: Vec<i64>,
    span: Span,
}

#[derive(Clone, Copy)]
struct Element {
    span: Span,
    kind: ElementKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    Integer,
    Float,
    NegativeInteger,
    NegativeFloat,
    Bool(bool),
    String,
    /// A complex number, whose two parts are the elements that follow.
    Complex,
}

impl<'a> Parser<'a> {
    pub(super) fn dense(&mut self) -> Parsed<Attribute> {
        self.bump();
        self.expect(Mark::Less)?;
        let literal = match self.at(Mark::Greater) {
            true => None,
            false => Some(self.literal()?),
        };
        self.expect(Mark::Greater)?;
        self.expect(Mark::Colon)?;
        let span = self.token.span();
        let ty = self.ty()?;
        let span = span.to(Span::new(self.last_end, self.last_end));
        self.check_shaped(&ty, span)?;
        let dense = self.elements(literal.as_ref(), ty, span)?;
        Ok(Attribute::Dense(Arc::new(dense)))
    }

    pub(super) fn sparse(&mut self) -> Parsed<Attribute> {
        self.bump();
        self.expect(Mark::Less)?;
        let literals = match self.at(Mark::Greater) {
            true => None,
            false => {
                let indices = self.literal()?;
                self.expect(Mark::Comma)?;
                Some((indices, self.literal()?))
            }
        };
        self.expect(Mark::Greater)?;
        self.expect(Mark::Colon)?;
        let span = self.token.span();
        let ty = self.ty()?;
        let (shape, element) = self.check_shaped(&ty, span)?;
        let rank = i64::try_from(shape.len()).map_err(|_| ParseFailed)?;
        let (indices, values) = match literals {
            None => (None, None),
            Some((indices, values)) => (Some(indices), Some(values)),
        };
        let n_values = match &indices {
            None => 0,
            Some(literal) => literal.shape.first().copied().unwrap_or(1),
        };
        let index_shape = match &indices {
            Some(literal) if literal.shape.len() == 1 && rank == 1 => vec![n_values],
            _ => vec![n_values, rank],
        };
        let index_type = Type::tensor(index_shape, Type::I64);
        let indices = self.elements(indices.as_ref(), index_type, span)?;
        let values = self.elements(values.as_ref(), Type::tensor(vec![n_values], element), span)?;
        Ok(Attribute::Sparse(Arc::new(SparseAttribute {
            ty,
            indices,
            values,
        })))
    }

    /// Returns shape and element type of a type that may hold elements.
    fn check_shaped(&mut self, ty: &Type, span: Span) -> Parsed<(Vec<i64>, Type)> {
        let shaped = match ty {
            Type::Tensor(_) | Type::Vector(_) => ty.as_shaped(),
            _ => None,
        };
        let Some((shape, element)) = shaped else {
            return self.fail(
                codes::ELEMENTS_TYPE,
                span,
                "elements literal must be a ranked tensor or vector type",
            );
        };
        if element_count(&shape).is_none() {
            let message = "elements literal type must have static shape";
            let error = self.error(codes::ELEMENTS_TYPE, span, message);
            self.push(match shape.contains(&DYNAMIC) {
                true => error,
                false => error.note("its elements are more than can be counted"),
            });
            return Err(super::ParseFailed);
        }
        Ok((shape, element.clone()))
    }

    fn literal(&mut self) -> Parsed<Literal> {
        let mut literal = Literal {
            span: self.token.span(),
            ..Literal::default()
        };
        literal.shape = match self.at(Mark::LeftSquare) {
            true => self.nested(|parser| parser.element_list(&mut literal.elements))?,
            false => {
                self.element(&mut literal.elements)?;
                Vec::new()
            }
        };
        literal.span = literal.span.to(Span::new(self.last_end, self.last_end));
        Ok(literal)
    }

    /// Parses a list and returns its sizes, the outer one first.
    fn element_list(&mut self, elements: &mut Vec<Element>) -> Parsed<Vec<i64>> {
        let start = self.token.span();
        self.bump();
        let mut size = 0;
        let mut inner: Option<Vec<i64>> = None;
        self.list_until(Mark::RightSquare, |parser| {
            let shape = match parser.at(Mark::LeftSquare) {
                true => parser.nested(|parser| parser.element_list(elements))?,
                false => {
                    parser.element(elements)?;
                    Vec::new()
                }
            };
            size += 1;
            match &inner {
                None => inner = Some(shape),
                Some(first) if *first != shape => {
                    let message = "tensor literal is invalid; ranks are not consistent \
                                   between elements";
                    return parser.fail(codes::ELEMENTS_RANK, start, message);
                }
                Some(_) => {}
            }
            Ok(())
        })?;
        let mut shape = vec![size];
        shape.extend(inner.unwrap_or_default());
        Ok(shape)
    }

    fn element(&mut self, elements: &mut Vec<Element>) -> Parsed<()> {
        let start = self.token.span();
        let kind = match self.token.kind {
            Kind::Integer | Kind::Float | Kind::Mark(Mark::Minus) => {
                let number = self.number()?;
                match (number.is_float, number.negative) {
                    (false, false) => ElementKind::Integer,
                    (false, true) => ElementKind::NegativeInteger,
                    (true, false) => ElementKind::Float,
                    (true, true) => ElementKind::NegativeFloat,
                }
            }
            Kind::Word if self.at_word("true") => self.single(ElementKind::Bool(true)),
            Kind::Word if self.at_word("false") => self.single(ElementKind::Bool(false)),
            Kind::String => self.single(ElementKind::String),
            Kind::Mark(Mark::LeftParen) => {
                self.bump();
                elements.push(Element {
                    span: start,
                    kind: ElementKind::Complex,
                });
                self.element_number(elements)?;
                self.expect(Mark::Comma)?;
                self.element_number(elements)?;
                return self.expect(Mark::RightParen);
            }
            _ => {
                return self.expected(
                    codes::EXPECTED_ATTRIBUTE,
                    "element literal of primitive type",
                );
            }
        };
        let span = start.to(Span::new(self.last_end, self.last_end));
        elements.push(Element { span, kind });
        Ok(())
    }

    fn single(&mut self, kind: ElementKind) -> ElementKind {
        self.bump();
        kind
    }

    fn element_number(&mut self, elements: &mut Vec<Element>) -> Parsed<()> {
        match self.token.kind {
            Kind::Integer | Kind::Float | Kind::Mark(Mark::Minus) => self.element(elements),
            _ => self.expected(codes::EXPECTED_ATTRIBUTE, "number"),
        }
    }

    /// Encodes elements as a type asks.
    fn elements(
        &mut self,
        literal: Option<&Literal>,
        ty: Type,
        type_span: Span,
    ) -> Parsed<DenseAttribute> {
        let (shape, element) = self.check_shaped(&ty, type_span)?;
        let count = element_count(&shape).ok_or(ParseFailed)?;
        let Some(literal) = literal else {
            if count > 0 {
                let message =
                    format!("parsed zero elements, but type ('{ty}') expected at least 1");
                return self.fail(codes::ELEMENTS_SHAPE, type_span, message);
            }
            let elements = DenseElements::Bytes(Bytes::new());
            return Ok(DenseAttribute {
                ty,
                elements,
                splat: false,
            });
        };
        let size = element_size_bytes(&element);
        if let (
            Some(size),
            [
                Element {
                    span,
                    kind: ElementKind::String,
                },
            ],
            [],
        ) = (size, &literal.elements[..], &literal.shape[..])
        {
            return self.hex_elements(*span, ty, size, count);
        }
        if !literal.shape.is_empty() && literal.shape != shape {
            let message = format!(
                "inferred shape of elements literal ({:?}) does not match type ({shape:?})",
                literal.shape
            );
            return self.fail(codes::ELEMENTS_SHAPE, literal.span, message);
        }
        match size {
            Some(size) => self.number_elements(literal, ty, &element, size),
            None => self.string_elements(literal, ty),
        }
    }

    fn number_elements(
        &mut self,
        literal: &Literal,
        ty: Type,
        element: &Type,
        size: usize,
    ) -> Parsed<DenseAttribute> {
        let mut bytes = Vec::new();
        let mut rest = literal.elements.iter();
        while let Some(item) = rest.next() {
            match (item.kind, element) {
                (ElementKind::Complex, Type::Complex(part)) => {
                    for item in rest.by_ref().take(2) {
                        self.encode(*item, part, size / 2, &mut bytes)?;
                    }
                }
                (_, Type::Complex(_)) => {
                    return self.fail(
                        codes::ELEMENT_KIND,
                        item.span,
                        "expected complex element, '(' real ',' imaginary ')'",
                    );
                }
                _ => self.encode(*item, element, size, &mut bytes)?,
            }
        }
        let is_empty = bytes.is_empty();
        let (first, _) = bytes.split_at(size.min(bytes.len()));
        let splat = !is_empty && bytes.chunks_exact(size).all(|chunk| chunk == first);
        if splat {
            bytes.truncate(size);
        }
        // A single element outside of a list stands for none, too.
        let elements = DenseElements::Bytes(bytes.into());
        Ok(DenseAttribute {
            ty,
            elements,
            splat,
        })
    }

    /// Appends the encoding of one number.
    fn encode(&mut self, item: Element, ty: &Type, size: usize, bytes: &mut Vec<u8>) -> Parsed<()> {
        let (is_float, negative) = match item.kind {
            ElementKind::Integer => (false, false),
            ElementKind::NegativeInteger => (false, true),
            ElementKind::Float => (true, false),
            ElementKind::NegativeFloat => (true, true),
            ElementKind::Bool(value) if *ty == Type::I1 => {
                bytes.push(u8::from(value));
                return Ok(());
            }
            ElementKind::Bool(_) => {
                return self.fail(
                    codes::ELEMENT_KIND,
                    item.span,
                    format!("expected element of type '{ty}', found i1"),
                );
            }
            ElementKind::String => {
                return self.fail(
                    codes::ELEMENT_KIND,
                    item.span,
                    format!("expected element of type '{ty}', found a string"),
                );
            }
            ElementKind::Complex => {
                return self.fail(
                    codes::ELEMENT_KIND,
                    item.span,
                    format!("expected element of type '{ty}', found a pair"),
                );
            }
        };
        let written = &self.text[item.span.range()];
        let text = written
            .strip_prefix('-')
            .map_or(written, |digits| digits.trim_start());
        if text.starts_with('/') {
            return self.fail(
                codes::ELEMENT_KIND,
                item.span,
                "expected a number directly behind '-'",
            );
        }
        if let Some(value) = small_integer(text, negative, ty).filter(|_| !is_float) {
            bytes.extend_from_slice(&value.to_le_bytes()[..size]);
            return Ok(());
        }
        let number = Number {
            text,
            is_float,
            negative,
            span: item.span,
        };
        match self.typed_number(number, ty)? {
            Attribute::Integer(integer) => bytes.extend(integer.value.to_le_bytes(size)),
            Attribute::Float(float) => bytes.extend_from_slice(&float.bits.to_le_bytes()[..size]),
            _ => return Err(ParseFailed),
        }
        Ok(())
    }

    fn string_elements(&mut self, literal: &Literal, ty: Type) -> Parsed<DenseAttribute> {
        let mut strings: Vec<Arc<[u8]>> = Vec::with_capacity(literal.elements.len());
        for item in &literal.elements {
            if item.kind != ElementKind::String {
                let message = format!("expected string element for type '{ty}'");
                return self.fail(codes::ELEMENT_KIND, item.span, message);
            }
            strings.push(lexer::unescape(&self.text[item.span.range()]).into());
        }
        let splat = strings
            .first()
            .is_some_and(|first| strings.iter().all(|one| one == first));
        if splat {
            strings.truncate(1);
        }
        Ok(DenseAttribute {
            ty,
            elements: DenseElements::Strings(strings.into()),
            splat,
        })
    }

    /// Reads `"0x..."`: all elements, or one that stands for all.
    fn hex_elements(
        &mut self,
        span: Span,
        ty: Type,
        size: usize,
        count: u64,
    ) -> Parsed<DenseAttribute> {
        let text = &self.text[span.range()];
        let digits = text[1..text.len() - 1].strip_prefix("0x");
        let is_hex = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let Some(digits) = digits.filter(|digits| is_hex(digits) && digits.len() % 2 == 0) else {
            return self.fail(
                codes::ELEMENTS_BYTES,
                span,
                "expected string containing hex digits starting with `0x`",
            );
        };
        let digit = |digit: u8| {
            char::from(digit)
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
                .unwrap_or(0)
        };
        let (pairs, _) = digits.as_bytes().as_chunks::<2>();
        let data: Vec<u8> = pairs
            .iter()
            .map(|&[a, b]| digit(a) << 4 | digit(b))
            .collect();
        let is_bits = ty
            .as_shaped()
            .is_some_and(|(_, element)| *element == Type::I1);
        let len = data.len() as u64;
        let (bytes, splat) = if is_bits {
            match data[..] {
                [0] => (vec![0], true),
                [0xFF] => (vec![1], true),
                _ if len == count.div_ceil(8) => {
                    let bit = |index: usize| data[index / 8] >> (index % 8) & 1;
                    let count = usize::try_from(count).map_err(|_| ParseFailed)?;
                    let bits: Vec<u8> = (0..count).map(bit).collect();
                    match bits.split_first() {
                        Some((&first, rest)) if rest.iter().all(|&bit| bit == first) => {
                            (vec![first], true)
                        }
                        _ => (bits, false),
                    }
                }
                // Since version 23 LLVM prints a byte for each.
                _ if len == count => {
                    let bits: Vec<u8> = data.iter().map(|&byte| u8::from(byte != 0)).collect();
                    let splat = bits.iter().all(|&bit| bit == bits[0]);
                    (if splat { vec![bits[0]] } else { bits }, splat)
                }
                [1] => (vec![1], true),
                _ => return self.hex_size(span, &ty),
            }
        } else if Some(len) == count.checked_mul(size as u64) {
            let first = &data[..size.min(data.len())];
            let splat = !data.is_empty() && data.chunks_exact(size).all(|chunk| chunk == first);
            (if splat { first.to_vec() } else { data }, splat)
        } else if data.len() == size {
            (data, true)
        } else {
            return self.hex_size(span, &ty);
        };
        Ok(DenseAttribute {
            ty,
            elements: DenseElements::Bytes(bytes.into()),
            splat,
        })
    }

    fn hex_size<T>(&mut self, span: Span, ty: &Type) -> Parsed<T> {
        self.fail(
            codes::ELEMENTS_BYTES,
            span,
            format!("elements hex data size is invalid for provided type: '{ty}'"),
        )
    }
}

/// Returns the value of decimal digits that plainly fit an integer type, as most do; others take
/// the way that can say what is wrong with them.
fn small_integer(digits: &str, negative: bool, ty: &Type) -> Option<i64> {
    // Any number of so many digits fits in 63 bits.
    const MAX_DIGITS: usize = 18;
    let IntegerType { width, signedness } = ty.as_integer()?;
    let is_unsigned = signedness == Signedness::Unsigned;
    if digits.len() > MAX_DIGITS || !(2..=64).contains(&width) || (negative && is_unsigned) {
        return None;
    }
    let mut value: i64 = 0;
    for digit in digits.bytes() {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        value = value * 10 + i64::from(digit);
    }
    let fits = value >> (width - 1) == 0;
    fits.then_some(if negative { -value } else { value })
}
