//! Parsing of types.
//!
//! ```text
//! type     ::= builtin | `!dialect.name` (`<` balanced `>`)? | `!alias` | function-type
//! function ::= `(` type,* `)` `->` (type | `(` type,* `)`)
//! ```

use std::sync::Arc;

use super::{Parsed, Parser};
use crate::{
    codes,
    lexer::{Kind, Mark},
    name::Name,
    source::Span,
    types::{
        DYNAMIC, FloatKind, FunctionType, IntegerType, Signedness, TensorType, Type, VectorType,
    },
};

impl<'a> Parser<'a> {
    /// Parses any type.
    pub(crate) fn ty(&mut self) -> Parsed<Type> {
        match self.token.kind {
            Kind::Mark(Mark::LeftParen) => {
                let function = self.nested(Self::function_type_inner)?;
                Ok(Type::Function(Arc::new(function)))
            }
            _ => self.non_function_type(),
        }
    }

    /// Parses a type other than a function type.
    pub(super) fn non_function_type(&mut self) -> Parsed<Type> {
        match self.token.kind {
            Kind::Word => self.builtin_type(),
            Kind::Exclaim => self.dialect_type(),
            _ => self.expected(codes::EXPECTED_TYPE, "type"),
        }
    }

    /// Parses the types of operands and results, a function type that is not kept.
    pub(crate) fn signature(
        &mut self,
        inputs: &mut impl Extend<Type>,
        results: &mut impl Extend<Type>,
    ) -> Parsed<()> {
        if !self.at(Mark::LeftParen) {
            return self.expected(codes::EXPECTED_TYPE, "function type");
        }
        self.nested(|parser| parser.signature_inner(inputs, results))
    }

    /// Parses the types of operands and results, or results alone in parentheses, with which inputs
    /// of types that are `known` go.
    pub(crate) fn signature_or_results(
        &mut self,
        known: Vec<Type>,
        inputs: &mut impl Extend<Type>,
        results: &mut impl Extend<Type>,
    ) -> Parsed<()> {
        if !self.at(Mark::LeftParen) {
            return self.expected(codes::EXPECTED_TYPE, "function type");
        }
        self.nested(|parser| {
            let mut first = Vec::new();
            parser.type_list(&mut first)?;
            if !parser.at(Mark::Arrow) {
                inputs.extend(known);
                results.extend(first);
                return Ok(());
            }
            inputs.extend(first);
            parser.results(results)
        })
    }

    fn signature_inner(
        &mut self,
        inputs: &mut impl Extend<Type>,
        results: &mut impl Extend<Type>,
    ) -> Parsed<()> {
        self.type_list(inputs)?;
        self.results(results)
    }

    /// Parses an arrow, and the types behind it: one, or several in parentheses.
    fn results(&mut self, results: &mut impl Extend<Type>) -> Parsed<()> {
        self.expect(Mark::Arrow)?;
        match self.at(Mark::LeftParen) {
            true => self.type_list(results),
            false => {
                results.extend([self.non_function_type()?]);
                Ok(())
            }
        }
    }

    fn function_type_inner(&mut self) -> Parsed<FunctionType> {
        let (mut inputs, mut results) = (Vec::new(), Vec::new());
        self.signature_inner(&mut inputs, &mut results)?;
        Ok(FunctionType { inputs, results })
    }

    /// Parses types in parentheses.
    fn type_list(&mut self, types: &mut impl Extend<Type>) -> Parsed<()> {
        self.expect(Mark::LeftParen)?;
        self.list_until(Mark::RightParen, |parser| {
            types.extend([parser.ty()?]);
            Ok(())
        })
    }

    /// Parses types with commas between, at least one.
    pub(crate) fn bare_type_list(&mut self) -> Parsed<Vec<Type>> {
        let mut types = vec![self.ty()?];
        while self.eat(Mark::Comma) {
            types.push(self.ty()?);
        }
        Ok(types)
    }

    /// Returns whether the present token starts a type.
    pub(crate) fn at_type(&self) -> bool {
        match self.token.kind {
            Kind::Exclaim | Kind::Mark(Mark::LeftParen) => true,
            Kind::Word => {
                let text = self.token_text();
                const SHAPED: [&str; 7] = [
                    "tensor", "vector", "memref", "complex", "tuple", "index", "none",
                ];
                SHAPED.contains(&text) || integer_type(text).is_some() || float_type(text).is_some()
            }
            _ => false,
        }
    }

    fn builtin_type(&mut self) -> Parsed<Type> {
        let (text, span) = (self.token_text(), self.token.span());
        if let Some(integer) = integer_type(text) {
            self.bump();
            return self.integer_type(integer, span);
        }
        if let Some(kind) = float_type(text) {
            self.bump();
            return Ok(Type::Float(kind));
        }
        match text {
            "index" => {
                self.bump();
                Ok(Type::Index)
            }
            "none" => {
                self.bump();
                Ok(Type::None)
            }
            "complex" => self.bracketed(Self::complex_type),
            "tuple" => self.bracketed(Self::tuple_type),
            "tensor" => self.bracketed(Self::tensor_type),
            "vector" => self.bracketed(Self::vector_type),
            "memref" => self.bracketed(Self::memref_type),
            _ => {
                let failed = self.expected(codes::EXPECTED_TYPE, "type");
                if let Some(help) = super::advice::type_of_other_languages(text) {
                    self.diagnostics.help_last(help.to_owned());
                }
                failed
            }
        }
    }

    fn integer_type(&mut self, integer: Option<IntegerType>, span: Span) -> Parsed<Type> {
        match integer {
            Some(integer) => Ok(Type::Integer(integer)),
            None => {
                let limit = IntegerType::MAX_WIDTH;
                self.fail(
                    codes::INTEGER_WIDTH,
                    span,
                    format!("integer bitwidth is limited to {limit} bits"),
                )
            }
        }
    }

    /// Parses `word<...>` one level deeper; the rule sees what is between.
    fn bracketed(&mut self, rule: fn(&mut Self) -> Parsed<Type>) -> Parsed<Type> {
        self.bump();
        if !self.at(Mark::Less) {
            return self.expected(codes::EXPECTED_TYPE, "'<' in type");
        }
        self.nested(|parser| {
            // The rules for shapes read characters, so the bracket is passed
            // without looking at a token behind it.
            let ty = rule(parser)?;
            parser.expect(Mark::Greater)?;
            Ok(ty)
        })
    }

    fn complex_type(&mut self) -> Parsed<Type> {
        self.bump();
        let span = self.token.span();
        let element = self.ty()?;
        if !matches!(element, Type::Integer(_) | Type::Float(_)) {
            return self.fail(
                codes::ELEMENT_TYPE,
                span,
                "invalid element type for complex",
            );
        }
        Ok(Type::complex(element))
    }

    fn tuple_type(&mut self) -> Parsed<Type> {
        self.bump();
        let elements = match self.at(Mark::Greater) {
            true => Vec::new(),
            false => self.bare_type_list()?,
        };
        Ok(Type::Tuple(elements.into()))
    }

    fn tensor_type(&mut self) -> Parsed<Type> {
        let shape = self.optional_shape()?;
        let element = self.element_type(is_tensor_element)?;
        let encoding = match self.eat(Mark::Comma) {
            true => Some(self.attribute()?),
            false => None,
        };
        Ok(Type::Tensor(Arc::new(TensorType {
            shape,
            element,
            encoding,
        })))
    }

    fn vector_type(&mut self) -> Parsed<Type> {
        let start = self.token.end;
        let mut cursor = Dimensions {
            text: self.text,
            at: start,
        };
        let mut shape = Vec::new();
        while let Some(dimension) = cursor.next(true) {
            match dimension {
                Ok((size, scalable)) if size > 0 => shape.push((size, scalable)),
                Ok(_) => {
                    let span = Span::new(start, cursor.at);
                    return self.fail(
                        codes::DIMENSION,
                        span,
                        "vector types must have positive constant sizes",
                    );
                }
                Err(()) => return self.too_large(Span::new(start, cursor.at)),
            }
        }
        self.jump(cursor.at);
        let element = self.element_type(is_number)?;
        Ok(Type::Vector(Arc::new(VectorType { shape, element })))
    }

    /// Parses the type of elements; `accepts` says which may be.
    pub(super) fn element_type(&mut self, accepts: fn(&Type) -> bool) -> Parsed<Type> {
        let span = self.token.span();
        let element = self.ty()?;
        if accepts(&element) {
            return Ok(element);
        }
        self.fail(
            codes::ELEMENT_TYPE,
            span,
            format!("invalid element type '{element}'"),
        )
    }

    /// Parses `*x` or dimensions behind the present token, `<`.
    pub(super) fn optional_shape(&mut self) -> Parsed<Option<Vec<i64>>> {
        let start = self.token.end;
        if let Some(at) = unranked(self.text, start) {
            self.jump(at);
            return Ok(None);
        }
        let mut cursor = Dimensions {
            text: self.text,
            at: start,
        };
        let mut shape = Vec::new();
        while let Some(dimension) = cursor.next(false) {
            match dimension {
                Ok((size, _)) => shape.push(size),
                Err(()) => return self.too_large(Span::new(start, cursor.at)),
            }
        }
        self.jump(cursor.at);
        Ok(Some(shape))
    }

    fn too_large<T>(&mut self, span: Span) -> Parsed<T> {
        self.fail(
            codes::DIMENSION,
            span,
            "invalid dimension: it must fit in 63 bits",
        )
    }

    /// Parses `!dialect.name`, maybe with a body, or an alias.
    fn dialect_type(&mut self) -> Parsed<Type> {
        let (text, start) = (self.token_text(), self.token.start);
        let has_body = self.text[self.token.end..].starts_with('<');
        if !has_body && let Some(ty) = self.types.get(text) {
            let ty = ty.clone();
            self.bump();
            return Ok(ty);
        }
        if !has_body && !text.contains('.') {
            return self.type_alias(&text[1..]);
        }
        self.bump();
        if has_body {
            self.balanced()?;
        }
        let whole = &self.text[start..self.last_end];
        if let Some(ty) = self.types.get(whole) {
            return Ok(ty.clone());
        }
        let ty = Type::dialect(whole);
        self.types.insert(whole, ty.clone());
        Ok(ty)
    }

    /// Takes `word<...>` as it is written.
    pub(super) fn opaque_text(&mut self) -> Parsed<Name> {
        let start = self.token.start;
        self.bump();
        if !self.at(Mark::Less) {
            return self.expected(codes::UNEXPECTED_TOKEN, "'<'");
        }
        self.balanced()?;
        let whole = &self.text[start..self.last_end];
        Ok(self.name(whole))
    }

    /// Skips from `<` to the matching `>`.
    ///
    /// Inside, quotes protect their content and each bracket ends with its own
    /// kind. Works on characters, since the content need not be tokens.
    pub(super) fn balanced(&mut self) -> Parsed<()> {
        let bytes = self.text.as_bytes();
        let mut open: Vec<(u8, usize)> = Vec::new();
        let mut at = self.token.start;
        while let Some(&byte) = bytes.get(at) {
            let next = bytes.get(at + 1).copied();
            match byte {
                // Arrows and comparisons are no brackets.
                b'-' if next == Some(b'>') => at += 1,
                b'<' | b'>' if next == Some(b'=') => at += 1,
                b'<' | b'(' | b'[' | b'{' => {
                    if self.depth + open.len() >= super::MAX_DEPTH {
                        return self.fail(
                            codes::TOO_DEEP,
                            Span::new(at, at + 1),
                            super::too_deep(),
                        );
                    }
                    open.push((closing(byte), at));
                }
                b'>' | b')' | b']' | b'}' => {
                    if open.last().map(|&(wanted, _)| wanted) != Some(byte) {
                        break;
                    }
                    open.pop();
                    if open.is_empty() {
                        self.deepest = self.deepest.max(self.depth + 1);
                        self.jump(at + 1);
                        return Ok(());
                    }
                }
                b'"' => at = string_end(bytes, at),
                _ => {}
            }
            at += 1;
        }
        let (wanted, start) = open.last().copied().unwrap_or((b'>', self.token.start));
        let wanted = char::from(wanted);
        let end = Span::new(at.min(bytes.len()), (at + 1).min(bytes.len()));
        let error = self.error(
            codes::UNBALANCED_BRACKETS,
            end,
            format!("unbalanced brackets: expected '{wanted}'"),
        );
        let opened = Span::new(start, start + 1);
        let error = error.note_at("to match this", Some(self.source), opened);
        self.push(error);
        Err(super::ParseFailed)
    }
}

/// Returns whether a word is the name of a number's type.
pub(super) fn is_type_name(text: &str) -> bool {
    integer_type(text).is_some() || float_type(text).is_some() || text == "index"
}

fn closing(open: u8) -> u8 {
    match open {
        b'<' => b'>',
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}

/// Returns the offset of the quote that ends a string, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the offset behind `*x`.
fn unranked(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..]
        .trim_start()
        .strip_prefix('*')?
        .trim_start()
        .strip_prefix('x')?;
    Some(text.len() - rest.len())
}

/// A reader of `2x?x`, by characters: `0xf32` is a dimension and a type.
struct Dimensions<'a> {
    text: &'a str,
    at: usize,
}

impl Dimensions<'_> {
    /// Returns the next size, and whether it is scalable; `None` if what
    /// follows is no dimension.
    fn next(&mut self, vector: bool) -> Option<Result<(i64, bool), ()>> {
        let rest = self.text[self.at..].trim_start();
        let (scalable, rest) = match rest.strip_prefix('[') {
            Some(inner) if vector => (true, inner),
            _ => (false, rest),
        };
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (size, rest) = match (digits, rest.strip_prefix('?')) {
            (0, Some(rest)) if !vector => (Ok(DYNAMIC), rest),
            (0, _) => return None,
            (n, _) => (rest[..n].parse().map_err(|_| ()), &rest[n..]),
        };
        let rest = match scalable {
            true => rest.strip_prefix(']')?,
            false => rest,
        };
        let rest = rest.trim_start().strip_prefix('x')?;
        self.at = self.text.len() - rest.len();
        Some(size.map(|size| (size, scalable)))
    }
}

/// Reads `i32`, `si8`, `ui64`; `Some(None)` if the width is out of range.
fn integer_type(text: &str) -> Option<Option<IntegerType>> {
    let (signedness, digits) = if let Some(digits) = text.strip_prefix("si") {
        (Signedness::Signed, digits)
    } else if let Some(digits) = text.strip_prefix("ui") {
        (Signedness::Unsigned, digits)
    } else {
        (Signedness::Signless, text.strip_prefix('i')?)
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || !is_number || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    let width = digits
        .parse()
        .ok()
        .filter(|&width: &u32| width <= IntegerType::MAX_WIDTH);
    Some(width.map(|width| IntegerType { width, signedness }))
}

fn float_type(text: &str) -> Option<FloatKind> {
    if !text.starts_with(['f', 'b', 't']) {
        return None;
    }
    FloatKind::ALL.into_iter().find(|kind| kind.name() == text)
}

fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Integer(_) | Type::Float(_) | Type::Index)
}

fn is_tensor_element(ty: &Type) -> bool {
    is_number(ty) || matches!(ty, Type::Complex(_) | Type::Vector(_) | Type::Dialect(_))
}
