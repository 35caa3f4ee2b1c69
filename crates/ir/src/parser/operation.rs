//! Operations: results, the generic form, and the way to an operation's own.
//!
//! ```text
//! operation ::= (results `=`)? (generic | custom) location?
//! results   ::= `%name` (`:` count)? (`,` results)?
//! generic   ::= `"name"` `(` operands `)` successors? properties?
//!               (`(` regions `)`)? dictionary? `:` function-type
//! custom    ::= name what-its-description-says
//! ```

use smallvec::SmallVec;

use super::{
    ParseFailed, Parsed, Parser, advice,
    scope::{ExpectedType, Operand, ResultName},
    stablehlo,
};
use crate::{
    attributes::Attribute,
    codes,
    diagnostic::Diagnostic,
    dialect::{self, OpDef, Traits, format},
    lexer::{self, Kind, Mark},
    module::{OpId, OpState},
    name::Name,
    source::Span,
    types::Type,
};

/// An operation that is being parsed: operands have no types yet.
pub(crate) struct ParsedOp<'a> {
    pub state: OpState,
    pub operands: SmallVec<[Operand<'a>; 4]>,
    pub definition: Option<&'static OpDef>,
}

impl<'a> Parser<'a> {
    /// Parses an operation; it is in no block yet.
    pub(super) fn operation(&mut self) -> Parsed<OpId> {
        let start = self.token.start;
        let mut names: SmallVec<[ResultName<'a>; 4]> = SmallVec::new();
        if self.token.kind == Kind::Percent {
            let list = self.result_names(&mut names);
            if list.is_err() {
                self.scopes.damage();
            }
            list?;
        }
        let op = match self.named_operation(&names) {
            Ok(op) => op,
            Err(ParseFailed) => {
                self.lose(&names);
                if names.is_empty() && matches!(self.token.kind, Kind::Bad(_)) {
                    // It may have been a name.
                    self.scopes.damage();
                }
                return Err(ParseFailed);
            }
        };
        if self.at_word("loc") {
            let location = self.trailing_location()?;
            self.module.set_location(op, location.clone());
            self.defer_op_location(op, &location);
        }
        if let Some(index) = &mut self.index {
            index.extent(Span::new(start, self.last_end), op);
        }
        Ok(op)
    }

    fn result_names(&mut self, names: &mut SmallVec<[ResultName<'a>; 4]>) -> Parsed<()> {
        loop {
            if self.token.kind != Kind::Percent {
                return self.expected(codes::EXPECTED_VALUE, "SSA value name");
            }
            let mut name = ResultName {
                name: self.token_text(),
                count: 1,
                span: self.token.span(),
            };
            self.bump();
            if self.eat(Mark::Colon) {
                name.count = match (self.token.kind, self.token_text().parse()) {
                    (Kind::Integer, Ok(count)) if count > 0 => count,
                    _ => {
                        return self
                            .expected(codes::RESULT_NUMBER, "number of results, at least 1");
                    }
                };
                self.bump();
            }
            names.push(name);
            if !self.eat(Mark::Comma) {
                return self.expect(Mark::Equal);
            }
        }
    }

    fn named_operation(&mut self, names: &[ResultName<'a>]) -> Parsed<OpId> {
        // Before the operation's regions, so that lines are counted once.
        let (span, location) = (self.token.span(), self.location_here());
        let ((name, definition), is_generic) = match self.token.kind {
            Kind::String => (self.quoted_name()?, true),
            Kind::Word => (self.operation_name(full_name(self.token_text())), false),
            _ => {
                let what = "operation name in quotes or an operation";
                return self.expected(codes::EXPECTED_OPERATION, what);
            }
        };
        let mut parts = ParsedOp {
            state: OpState::with_definition(name, definition),
            operands: SmallVec::new(),
            definition,
        };
        parts.state.location = location;
        parts.state.span = span;
        match is_generic {
            true => self.generic_parts(&mut parts)?,
            false => self.custom_parts(&mut parts)?,
        }
        self.create(&mut parts.state, names)
    }

    fn quoted_name(&mut self) -> Parsed<(Name, Option<&'static OpDef>)> {
        let literal = self.token_text();
        let inner = &literal[1..literal.len() - 1];
        if !inner.is_empty() && !inner.contains(['\0', '\\']) {
            return Ok(self.operation_name(inner));
        }
        // An escape may stand for any byte but the one that ends names in files.
        match String::from_utf8(lexer::unescape(literal)) {
            Ok(name) if !name.is_empty() && !name.contains('\0') => {
                Ok((name.as_str().into(), dialect::lookup(&name)))
            }
            _ => self.fail(
                codes::EXPECTED_OPERATION,
                self.token.span(),
                "expected operation name in quotes",
            ),
        }
    }

    fn generic_parts(&mut self, parts: &mut ParsedOp<'a>) -> Parsed<()> {
        self.bump();
        self.expect(Mark::LeftParen)?;
        self.list_until(Mark::RightParen, |parser| {
            parts.operands.push(parser.operand()?);
            Ok(())
        })?;
        if self.eat(Mark::LeftSquare) {
            self.list_until(Mark::RightSquare, |parser| {
                parts.state.successors.push(parser.successor()?);
                Ok(())
            })?;
        }
        if self.eat(Mark::Less) {
            parts.state.attributes = self.dictionary_entries()?;
            self.expect(Mark::Greater)?;
        }
        if self.eat(Mark::LeftParen) {
            let isolated = parts
                .definition
                .is_some_and(|definition| definition.is(Traits::ISOLATED));
            self.list_until(Mark::RightParen, |parser| {
                parts.state.regions.push(parser.region(isolated)?);
                Ok(())
            })?;
        }
        if self.at(Mark::LeftBrace) {
            self.merge_dictionary(&mut parts.state)?;
        }
        self.expect(Mark::Colon)?;
        let mut inputs: SmallVec<[Type; 4]> = SmallVec::new();
        self.signature(&mut inputs, &mut parts.state.result_types)?;
        self.resolve_operands(parts, inputs.iter().map(ExpectedType::Type))
    }

    /// Parses a dictionary and adds what it holds to an operation's attributes.
    pub(crate) fn merge_dictionary(&mut self, state: &mut OpState) -> Parsed<()> {
        let span = self.token.span();
        let entries = self.dictionary_entries()?;
        if state.attributes.is_empty() {
            state.attributes = entries;
            return Ok(());
        }
        self.merge_entries(state, span, entries)
    }

    /// Adds entries, whose names must not be there yet.
    pub(crate) fn merge_entries(
        &mut self,
        state: &mut OpState,
        span: Span,
        entries: Vec<(Name, Attribute)>,
    ) -> Parsed<()> {
        let all = &mut state.attributes;
        all.extend(entries);
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let Some(pair) = all.windows(2).find(|pair| pair[0].0 == pair[1].0) else {
            return Ok(());
        };
        let name = pair[0].0.clone();
        self.repeated_attribute(span, &name)
    }

    /// Adds one attribute, whose name must not be there yet.
    pub(crate) fn add_attribute(
        &mut self,
        state: &mut OpState,
        span: Span,
        name: Name,
        value: Attribute,
    ) -> Parsed<()> {
        let all = &mut state.attributes;
        match all.binary_search_by(|(key, _)| key.cmp(&name)) {
            Ok(_) => self.repeated_attribute(span, &name),
            Err(index) => {
                if all.is_empty() {
                    all.reserve_exact(1);
                }
                all.insert(index, (name, value));
                Ok(())
            }
        }
    }

    fn repeated_attribute(&mut self, span: Span, name: &Name) -> Parsed<()> {
        let message = format!("attribute '{name}' occurs more than once in the attribute list");
        let place = self.key_span(span, name).unwrap_or(span);
        let error = self.error(codes::DUPLICATE_ATTRIBUTE, place, message);
        self.push(error.help("the operation's own form has a place for it, outside of the braces"));
        Err(ParseFailed)
    }

    /// Resolves operands with the types that were written or are declared.
    pub(crate) fn resolve_operands<'t>(
        &mut self,
        parts: &mut ParsedOp<'a>,
        types: impl ExactSizeIterator<Item = ExpectedType<'t>>,
    ) -> Parsed<()> {
        if parts.operands.len() != types.len() {
            let span = self.types_span(parts);
            let (n_operands, n_types) = (parts.operands.len(), types.len());
            return self.fail(
                codes::OPERAND_TYPE_COUNT,
                span,
                format!("expected {n_operands} operand types but had {n_types}"),
            );
        }
        // All of them, so that each wrong one is reported.
        let mut result = Ok(());
        for (operand, wanted) in parts.operands.iter().zip(types) {
            match self.resolve(*operand, wanted) {
                Ok(value) => parts.state.operands.push(value),
                Err(failed) => result = Err(failed),
            }
            self.mention_operand(*operand);
        }
        result
    }

    fn custom_parts(&mut self, parts: &mut ParsedOp<'a>) -> Parsed<()> {
        let (span, written) = (self.token.span(), self.token_text());
        self.bump();
        let is_cut = self.token.start == span.range().end;
        if is_cut && matches!(self.token.kind, Kind::Bad(_)) {
            // The character that ends the name has been reported.
            return Err(ParseFailed);
        }
        match parts
            .definition
            .map(|definition| (definition, definition.assembly()))
        {
            Some((definition, Some(format))) => {
                let n_before = self.diagnostics.len();
                let parsed = format::parse(self, parts, format);
                if parsed.is_err() && self.diagnostics.len() == n_before + 1 {
                    self.show_syntax(definition);
                }
                parsed
            }
            _ => match stablehlo::form(written) {
                Some(form) => self.formed(parts, form),
                None => self.unknown(span, written),
            },
        }
    }

    /// Adds the syntax of an operation to an error on its text.
    fn show_syntax(&mut self, definition: &OpDef) {
        const ON_SYNTAX: [&str; 9] = [
            codes::UNEXPECTED_TOKEN,
            codes::UNEXPECTED_END,
            codes::EXPECTED_VALUE,
            codes::EXPECTED_TYPE,
            codes::EXPECTED_ATTRIBUTE,
            codes::EXPECTED_SYMBOL,
            codes::MISSING_ELSE,
            codes::OPERAND_TYPE_COUNT,
            codes::WRITTEN_OPERAND_COUNT,
        ];
        let last = self.diagnostics.iter().next_back();
        let code = last.and_then(Diagnostic::code);
        let is_on_syntax = code.is_some_and(|code| ON_SYNTAX.contains(&code));
        let is_structure = matches!(definition.name(), "func.func" | "builtin.module");
        let is_fixed = definition.rest_def().is_none();
        if code == Some(codes::TYPE_MISMATCH) && is_fixed {
            let (name, signature) = (definition.name(), definition.signature());
            self.diagnostics
                .help_last(format!("it is {name}{signature}"));
        }
        if let Some(syntax) = advice::syntax(definition)
            && is_on_syntax
            && !is_structure
        {
            self.diagnostics
                .help_last(format!("it is written: {syntax}"));
        }
    }

    fn unknown(&mut self, span: Span, name: &str) -> Parsed<()> {
        let error = self.unknown_operation(span, name);
        self.push(error);
        Err(ParseFailed)
    }

    /// Returns the bytes of a string literal and goes on.
    pub(crate) fn string_literal(&mut self) -> Parsed<Vec<u8>> {
        if self.token.kind != Kind::String {
            return self.expected(codes::EXPECTED_ATTRIBUTE, "string literal");
        }
        let bytes = lexer::unescape(self.token_text());
        self.bump();
        Ok(bytes)
    }
}

/// Returns the full name of an operation that may leave its dialect out.
fn full_name(written: &str) -> &str {
    match written {
        "func" => "func.func",
        "return" => "func.return",
        "call" => "func.call",
        "module" => "builtin.module",
        name => name,
    }
}
