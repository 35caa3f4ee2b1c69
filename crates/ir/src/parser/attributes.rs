//! Attributes and dictionaries of them.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{ParseFailed, Parsed, Parser};
use crate::{
    attributes::{
        Attribute, DenseArrayAttribute, Dictionary, FloatAttribute, ShapeAttribute,
        StringAttribute, SymbolRef, element_size_bytes,
    },
    codes,
    index::{NameTarget, Role},
    lexer::{self, Kind, Mark},
    name::Name,
    source::Span,
    types::{DYNAMIC, Type},
};

/// The entries of a dictionary, and the range of each key.
type WrittenEntries = (Vec<(Name, Attribute)>, SmallVec<[Span; 4]>);

impl<'a> Parser<'a> {
    /// Parses any attribute.
    pub(crate) fn attribute(&mut self) -> Parsed<Attribute> {
        match self.token.kind {
            Kind::Integer | Kind::Float | Kind::Mark(Mark::Minus) => self.number_attribute(None),
            Kind::String => self.string_attribute(),
            Kind::At => Ok(Attribute::Symbol(self.symbol_ref()?)),
            Kind::Mark(Mark::LeftSquare) => self.nested(Self::array),
            Kind::Mark(Mark::LeftBrace) => {
                let entries = self.dictionary_entries()?;
                Ok(Attribute::Dictionary(self.sorted(entries)?))
            }
            Kind::Hash => self.dialect_attribute(),
            Kind::Word => self.word_attribute(),
            Kind::Exclaim | Kind::Mark(Mark::LeftParen) => Ok(Attribute::Type(self.ty()?)),
            _ => self.expected(codes::EXPECTED_ATTRIBUTE, "attribute value"),
        }
    }

    /// Parses an attribute whose type stands elsewhere.
    pub(crate) fn attribute_of_type(&mut self, ty: &Type) -> Parsed<Attribute> {
        match self.token.kind {
            Kind::Integer | Kind::Float | Kind::Mark(Mark::Minus) => {
                self.number_attribute(Some(ty))
            }
            Kind::Word if *ty == Type::I1 && (self.at_word("true") || self.at_word("false")) => {
                self.word_attribute()
            }
            _ => self.expected(
                codes::EXPECTED_ATTRIBUTE,
                &format!("constant of type '{ty}'"),
            ),
        }
    }

    fn word_attribute(&mut self) -> Parsed<Attribute> {
        match self.token_text() {
            "true" => {
                self.bump();
                Ok(Attribute::bool(true))
            }
            "false" => {
                self.bump();
                Ok(Attribute::bool(false))
            }
            "unit" => {
                self.bump();
                Ok(Attribute::Unit)
            }
            "dense" => self.dense(),
            "sparse" => self.sparse(),
            "array" => self.dense_array(),
            "loc" => self.location_attribute(),
            "affine_map" | "affine_set" | "strided" => Ok(Attribute::Opaque(self.opaque_text()?)),
            "dense_resource" => self.dense_resource(),
            _ if self.at_type() => Ok(Attribute::Type(self.ty()?)),
            _ => self.expected(codes::EXPECTED_ATTRIBUTE, "attribute value"),
        }
    }

    fn string_attribute(&mut self) -> Parsed<Attribute> {
        let bytes = lexer::unescape(self.token_text()).into();
        self.bump();
        let ty = match self.eat(Mark::Colon) {
            true => self.ty()?,
            false => Type::None,
        };
        Ok(Attribute::String(StringAttribute { bytes, ty }))
    }

    fn array(&mut self) -> Parsed<Attribute> {
        self.bump();
        let mut elements = Vec::new();
        self.list_until(Mark::RightSquare, |parser| {
            elements.push(parser.attribute()?);
            Ok(())
        })?;
        Ok(Attribute::array(elements))
    }

    /// Parses `{` ((name | string) (`=` attribute)?),* `}`; returns the entries sorted.
    ///
    /// Returns the entries sorted by name.
    pub(crate) fn dictionary_entries(&mut self) -> Parsed<Vec<(Name, Attribute)>> {
        let (entries, spans) = self.written_entries()?;
        self.sort_entries(entries, spans)
    }

    /// Parses a dictionary; returns the entries in the order of the text.
    pub(crate) fn dictionary_as_written(&mut self) -> Parsed<Vec<(Name, Attribute)>> {
        let (entries, spans) = self.written_entries()?;
        self.sort_entries(entries.clone(), spans)?;
        Ok(entries)
    }

    fn written_entries(&mut self) -> Parsed<WrittenEntries> {
        self.nested(|parser| {
            parser.expect(Mark::LeftBrace)?;
            // Most dictionaries have one entry, and a module keeps what is made here.
            let mut entries: Vec<(Name, Attribute)> = Vec::with_capacity(1);
            let mut spans: SmallVec<[Span; 4]> = SmallVec::new();
            parser.list_until(Mark::RightBrace, |parser| {
                spans.push(parser.token.span());
                entries.push(parser.dictionary_entry()?);
                Ok(())
            })?;
            Ok((entries, spans))
        })
    }

    /// Sorts entries by name; reports names that occur twice.
    fn sort_entries(
        &mut self,
        entries: Vec<(Name, Attribute)>,
        spans: SmallVec<[Span; 4]>,
    ) -> Parsed<Vec<(Name, Attribute)>> {
        if entries.is_sorted_by(|a, b| a.0 < b.0) {
            return Ok(entries);
        }
        let mut placed: Vec<_> = entries.into_iter().zip(spans).collect();
        placed.sort_by(|a, b| a.0.0.cmp(&b.0.0));
        for pair in placed.windows(2) {
            let [((first, _), first_span), ((second, _), span)] = pair else {
                break;
            };
            if first == second {
                let message = format!("duplicate key '{second}' found in dictionary attribute");
                let error = self.error(codes::DUPLICATE_ATTRIBUTE, *span, message);
                self.push(error.note_at("it is there first", Some(self.source), *first_span));
                return Err(ParseFailed);
            }
        }
        Ok(placed.into_iter().map(|(entry, _)| entry).collect())
    }

    fn dictionary_entry(&mut self) -> Parsed<(Name, Attribute)> {
        let name = match self.token.kind {
            Kind::Word => {
                let text = self.token_text();
                self.bump();
                self.name(text)
            }
            Kind::String => {
                let span = self.token.span();
                match String::from_utf8(self.string_literal()?) {
                    Ok(name) if !name.is_empty() => Name::from(name),
                    _ => {
                        return self.fail(
                            codes::EXPECTED_ATTRIBUTE_NAME,
                            span,
                            "expected valid attribute name",
                        );
                    }
                }
            }
            _ => return self.expected(codes::EXPECTED_ATTRIBUTE_NAME, "attribute name"),
        };
        let value = match self.eat(Mark::Equal) {
            true => self.attribute()?,
            false => Attribute::Unit,
        };
        Ok((name, value))
    }

    fn sorted(&mut self, entries: Vec<(Name, Attribute)>) -> Parsed<Dictionary> {
        // They are sorted, and each name is there once.
        Dictionary::new(entries).map_err(|_| ParseFailed)
    }

    /// Parses `@name` (`::` `@name`)*.
    pub(crate) fn symbol_ref(&mut self) -> Parsed<SymbolRef> {
        let root = self.symbol_name()?;
        let mut nested = Vec::new();
        while self.at(Mark::ColonColon) {
            self.bump();
            nested.push(self.symbol_name()?);
        }
        Ok(SymbolRef {
            root,
            nested: nested.into(),
        })
    }

    /// Parses `@name` or `@"any text"`.
    pub(crate) fn symbol_name(&mut self) -> Parsed<Name> {
        if self.token.kind != Kind::At {
            return self.expected(codes::EXPECTED_SYMBOL, "symbol name, '@' and an identifier");
        }
        let (text, span) = (&self.token_text()[1..], self.token.span());
        self.bump();
        self.mention(span, Role::Use, NameTarget::Symbol);
        if !text.starts_with('"') {
            return Ok(self.name(text));
        }
        match String::from_utf8(lexer::unescape(text)) {
            Ok(name) if !name.is_empty() => Ok(name.into()),
            _ => self.fail(
                codes::EXPECTED_SYMBOL,
                span,
                "expected a symbol name of UTF-8 text that is not empty",
            ),
        }
    }

    /// Parses `#alias`, or `#dialect.name` and `#dialect` with what follows.
    fn dialect_attribute(&mut self) -> Parsed<Attribute> {
        let (text, start) = (self.token_text(), self.token.start);
        let has_body = self.text[self.token.end..].starts_with('<');
        if !has_body && !text.contains('.') {
            return self.attribute_alias(&text[1..]);
        }
        if text == "#corert.shape" && has_body {
            return self.shape();
        }
        self.bump();
        if has_body {
            self.balanced()?;
        }
        if self.at(Mark::Colon) {
            self.bump();
            self.ty()?;
        }
        let whole = &self.text[start..self.last_end];
        Ok(Attribute::Opaque(self.name(whole)))
    }

    /// Parses `<` `*` `>` | `<` (size (`x` size)*)? `>`.
    fn shape(&mut self) -> Parsed<Attribute> {
        let start = self.token.span();
        let body_start = self.token.end + 1;
        self.bump();
        self.balanced()?;
        let body = self.text[body_start..self.last_end - 1].trim();
        if body == "*" {
            return Ok(Attribute::Shape(ShapeAttribute(None)));
        }
        let size = |size: &str| match size.trim() {
            "?" => Some(DYNAMIC),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
            _ => None,
        };
        let sizes: Option<Vec<i64>> = match body {
            "" => Some(Vec::new()),
            body => body.split('x').map(size).collect(),
        };
        match sizes {
            Some(sizes) => Ok(Attribute::Shape(ShapeAttribute(Some(sizes.into())))),
            None => {
                let span = start.to(Span::new(body_start, self.last_end));
                self.fail(
                    codes::EXPECTED_ATTRIBUTE,
                    span,
                    "expected a shape: '*' or sizes with 'x' between, '?' if unknown",
                )
            }
        }
    }

    /// Parses `array` `<` type (`:` number,+)? `>`.
    fn dense_array(&mut self) -> Parsed<Attribute> {
        self.bump();
        self.expect(Mark::Less)?;
        let span = self.token.span();
        let element = self.ty()?;
        let is_allowed = match &element {
            Type::Integer(integer) => integer.width == 1 || integer.width % 8 == 0,
            Type::Float(kind) => crate::float::is_supported(*kind) && kind.width() % 8 == 0,
            _ => false,
        };
        let size = element_size_bytes(&element).filter(|&size| is_allowed && size > 0);
        let Some(size) = size else {
            return self.fail(
                codes::ELEMENT_TYPE,
                span,
                "expected integer or float type of whole bytes",
            );
        };
        let mut bytes = Vec::new();
        if self.eat(Mark::Colon) {
            loop {
                match self.attribute_of_type(&element)? {
                    Attribute::Integer(integer) => {
                        bytes.extend(integer.value.to_le_bytes(size));
                    }
                    Attribute::Float(FloatAttribute { bits, .. }) => {
                        bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
                    }
                    _ => return Err(ParseFailed),
                }
                if !self.eat(Mark::Comma) {
                    break;
                }
            }
        }
        self.expect(Mark::Greater)?;
        let bytes = bytes.into();
        Ok(Attribute::DenseArray(Arc::new(DenseArrayAttribute {
            element,
            bytes,
        })))
    }

    /// Parses `dense_resource<name> : type`, which is kept as text.
    fn dense_resource(&mut self) -> Parsed<Attribute> {
        let span = self.token.span();
        let text = self.opaque_text()?;
        let name = text.split_once('<').map_or("", |(_, name)| name);
        let name = name.trim_end_matches('>').trim();
        if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            return self.fail(
                codes::EXPECTED_ATTRIBUTE,
                span,
                "expected identifier key for 'resource' entry",
            );
        }
        self.expect(Mark::Colon)?;
        let ty = self.ty()?;
        let whole = format!("dense_resource<{name}> : {ty}");
        Ok(Attribute::Opaque(whole.as_str().into()))
    }
}
