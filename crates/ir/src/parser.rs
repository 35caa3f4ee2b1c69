//! The parser: a hand-written descent, one method per rule of the grammar.
//!
//! There is no syntax tree; the module is built as the text is read. After an
//! error the rule gives up with [`ParseFailed`], having said what is wrong, until
//! the list of operations around it finds the next operation and goes on. So
//! several errors are found at once, and values that a failed operation was
//! to define count as defined.
//!
//! Nesting of every kind is counted together and ends at [`MAX_DEPTH`].

mod advice;
mod aliases;
mod attributes;
mod blocks;
mod dense;
mod locations;
mod memref;
mod numbers;
mod operation;
mod scope;
mod stablehlo;
mod types;

use std::collections::HashMap;

use crate::{
    codes,
    diagnostic::{Diagnostic, Diagnostics},
    dialect::{self, Dialects, OpDef},
    index::{Index, IndexedParse, NameTarget, Role},
    lexer::{self, Kind, Mark, Token},
    location::Location,
    module::{Module, OpState},
    name::{Interner, Name, TextHash},
    source::{Source, Span},
    types::Type,
};

use aliases::Aliases;
pub(crate) use blocks::Argument;
use blocks::Labels;
use locations::DeferredLocations;
pub(crate) use operation::ParsedOp;

pub(crate) use scope::ExpectedType;
use scope::Scopes;

/// The most levels to which regions, types, attributes and locations may nest, together.
pub(crate) const MAX_DEPTH: usize = 256;

/// The error of a rule that gave up; the diagnostic has been reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParseFailed;

pub(crate) type Parsed<T> = Result<T, ParseFailed>;

/// Parses a program.
///
/// A text that is one `module` is that module; any other list of operations is
/// put into a module.
///
/// # Errors
///
/// Every error that was found, sorted by place, at most
/// [`Diagnostics::MAX_KEPT`] of them.
pub fn parse(source: &Source) -> Result<Module, Diagnostics> {
    parse_in(source, &Dialects::default())
}

/// Parses a program whose author may mean operations of these dialects, which errors then tell of.
///
/// # Errors
///
/// See [`parse`].
pub fn parse_in(source: &Source, dialects: &Dialects) -> Result<Module, Diagnostics> {
    if u32::try_from(source.text().len()).is_err() {
        return Err(too_long().into());
    }
    let mut parser = Parser::new(source);
    parser.dialects = dialects.clone();
    parser.program();
    parser.diagnostics.into_result()?;
    Ok(parser.module)
}

/// Parses a program and indexes its names; keeps what could be parsed of one that is wrong.
pub fn parse_with_index(source: &Source, dialects: &Dialects) -> IndexedParse {
    if u32::try_from(source.text().len()).is_err() {
        return IndexedParse {
            module: Module::new(),
            index: Index::default(),
            diagnostics: too_long().into(),
        };
    }
    let mut parser = Parser::new(source);
    parser.dialects = dialects.clone();
    parser.index = Some(Box::default());
    parser.program();
    parser.diagnostics.sort();
    IndexedParse {
        module: parser.module,
        index: parser
            .index
            .map_or_else(Index::default, |index| index.finish()),
        diagnostics: parser.diagnostics,
    }
}

fn too_long() -> Diagnostic {
    Diagnostic::error(codes::TOO_LARGE, "cannot read text of 4 GiB or more")
}

/// Parses a type, as programs and files spell it.
///
/// Returns `None` if the text is anything else.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{Type, parse_type};
///
/// assert_eq!(parse_type("i32"), Some(Type::I32));
/// assert_eq!(parse_type("i32, i32"), None);
/// ```
pub fn parse_type(text: &str) -> Option<Type> {
    u32::try_from(text.len()).ok()?;
    let source = Source::new("", text);
    let mut parser = Parser::new(&source);
    let ty = parser.ty().ok()?;
    let is_all = parser.token.kind == Kind::End && parser.diagnostics.is_empty();
    is_all.then_some(ty)
}

/// Parses the type that a text begins with; returns its length in bytes, too.
///
/// Aliases are unknown here.
pub fn parse_type_at(text: &str) -> Option<(Type, usize)> {
    u32::try_from(text.len()).ok()?;
    let source = Source::new("", text);
    let mut parser = Parser::new(&source);
    let ty = parser.non_function_type().ok()?;
    Some((ty, parser.last_end))
}

/// The state of parsing one text.
pub(crate) struct Parser<'a> {
    source: &'a Source,
    text: &'a str,
    pub(crate) token: Token,
    /// The end of the previous token.
    last_end: usize,
    /// The number of braces that were opened and not closed, for recovery.
    braces: usize,
    depth: usize,
    /// The deepest nesting since it was last reset, for aliases.
    deepest: usize,
    pub(crate) module: Module,
    scopes: Scopes<'a>,
    aliases: Aliases<'a>,
    labels: Vec<Labels<'a>>,
    deferred: DeferredLocations<'a>,
    names: Interner<'a>,
    operations: HashMap<&'a str, (Name, Option<&'static OpDef>), TextHash>,
    types: HashMap<&'a str, Type, TextHash>,
    line: LineCursor,
    diagnostics: Diagnostics,
    /// The dialects that the author may mean.
    dialects: Dialects,
    /// The index of names, if one is asked for.
    index: Option<Box<Index>>,
}

/// A cursor that turns offsets which mostly grow into lines without searching.
#[derive(Default)]
struct LineCursor {
    offset: usize,
    line_start: usize,
    line: u32,
}

impl<'a> Parser<'a> {
    fn new(source: &'a Source) -> Parser<'a> {
        let text = source.text();
        let token = lexer::token(text, 0);
        let mut parser = Parser {
            source,
            text,
            token,
            last_end: 0,
            braces: 0,
            depth: 0,
            deepest: 0,
            module: Module::without_top(Some(source.clone())),
            scopes: Scopes::default(),
            aliases: Aliases::new(text.len()),
            labels: Vec::new(),
            deferred: DeferredLocations::default(),
            names: Interner::default(),
            operations: HashMap::default(),
            types: HashMap::default(),
            line: LineCursor::default(),
            diagnostics: Diagnostics::default(),
            dialects: Dialects::default(),
            index: None,
        };
        parser.check_token();
        parser
    }

    /// Parses a program: `program ::= (operation | alias-definition)*`.
    fn program(&mut self) {
        // An operation usually takes a line, and never less than a few bytes.
        const MIN_BYTES: usize = 16;
        let n_lines = memchr::memchr_iter(b'\n', self.text.as_bytes()).count();
        self.module
            .reserve(n_lines.min(self.text.len() / MIN_BYTES));
        let region = self.module.create_region();
        let block = self.module.create_block(region);
        self.scopes.enter_isolated();
        while self.token.kind != Kind::End && !self.diagnostics.is_full() {
            let before = self.token.start;
            if self.top_level_item(block).is_err() {
                self.recover(before, 0);
            }
        }
        self.leave_isolated();
        self.resolve_locations();
        let single = match self.module.block(block).operations() {
            &[only] if self.module.op(only).name() == "builtin.module" => Some(only),
            _ => None,
        };
        let top = single.unwrap_or_else(|| {
            let file = self.source.name().clone();
            let state =
                OpState::new("builtin.module")
                    .region(region)
                    .location(Location::FileLineCol {
                        file,
                        line: 0,
                        column: 0,
                    });
            self.module.create(state)
        });
        self.module.set_top(top);
    }

    fn top_level_item(&mut self, block: crate::module::BlockId) -> Parsed<()> {
        match self.token.kind {
            Kind::Hash | Kind::Exclaim => self.alias_definition(),
            Kind::Mark(Mark::MetadataBegin) => self.skip_metadata(),
            _ => {
                let op = self.operation()?;
                self.module.append(block, op);
                Ok(())
            }
        }
    }

    /// Skips `{-# ... #-}`, resources for other tools.
    fn skip_metadata(&mut self) -> Parsed<()> {
        while !self.token.is(Mark::MetadataEnd) {
            if self.token.kind == Kind::End {
                return self.expected(codes::UNEXPECTED_TOKEN, "'#-}'");
            }
            self.bump();
        }
        self.bump();
        Ok(())
    }
}

/// The token cursor.
impl<'a> Parser<'a> {
    /// Goes on to the next token.
    pub(crate) fn bump(&mut self) {
        match self.token.kind {
            Kind::Mark(Mark::LeftBrace) => self.braces += 1,
            Kind::Mark(Mark::RightBrace) => self.braces = self.braces.saturating_sub(1),
            _ => {}
        }
        self.last_end = self.token.end;
        self.token = lexer::token(self.text, self.token.end);
        self.check_token();
    }

    /// Goes on to the token at an offset, which may lie within the present one.
    fn jump(&mut self, offset: usize) {
        self.last_end = offset;
        self.token = lexer::token(self.text, offset);
        self.check_token();
    }

    #[inline]
    fn check_token(&mut self) {
        if let Kind::Bad(bad) = self.token.kind {
            self.bad_token(bad);
        }
    }

    #[cold]
    fn bad_token(&mut self, bad: lexer::LexError) {
        let span = self.token.span();
        let text = &self.text[span.range()];
        let message = match bad {
            lexer::LexError::Character => format!("{} {text:?}", bad.message()),
            _ => bad.message().to_owned(),
        };
        let error = self.error(bad.code(), span, message);
        self.push(match bad.help(text) {
            Some(help) => error.help(help),
            None => error,
        });
    }

    /// Returns the token behind the present one.
    pub(crate) fn peek(&self) -> Token {
        lexer::token(self.text, self.token.end)
    }

    /// Returns the text of the present token.
    pub(crate) fn token_text(&self) -> &'a str {
        &self.text[self.token.start..self.token.end]
    }

    /// Returns whether the present token begins a line that `place` is not on.
    pub(crate) fn is_on_a_line_after(&self, place: Span) -> bool {
        let between = self.text.get(place.end as usize..self.token.start);
        between.is_some_and(|between| between.contains('\n'))
    }

    /// Returns whether the present token is a mark.
    pub(crate) fn at(&self, mark: Mark) -> bool {
        self.token.is(mark)
    }

    /// Returns whether the present token is a word.
    pub(crate) fn at_word(&self, word: &str) -> bool {
        self.token.kind == Kind::Word && self.token_text() == word
    }

    /// Consumes a mark if it is there.
    pub(crate) fn eat(&mut self, mark: Mark) -> bool {
        let is_there = self.at(mark);
        if is_there {
            self.bump();
        }
        is_there
    }

    /// Consumes a word if it is there.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let is_there = self.at_word(word);
        if is_there {
            self.bump();
        }
        is_there
    }

    /// Consumes a mark that must be there.
    pub(crate) fn expect(&mut self, mark: Mark) -> Parsed<()> {
        if self.eat(mark) {
            return Ok(());
        }
        self.expected(codes::UNEXPECTED_TOKEN, &format!("'{}'", mark.text()))
    }

    /// Consumes a word that must be there.
    pub(crate) fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) {
            return Ok(());
        }
        self.expected(codes::UNEXPECTED_TOKEN, &format!("'{word}'"))
    }

    /// Parses items with commas between, up to a closing mark, which it
    /// consumes. The opening one is consumed already.
    pub(crate) fn list_until(
        &mut self,
        close: Mark,
        mut item: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<()> {
        if self.eat(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.eat(close) {
                return Ok(());
            }
            if !self.eat(Mark::Comma) {
                return self.expected(
                    codes::UNEXPECTED_TOKEN,
                    &format!("',' or '{}'", close.text()),
                );
            }
        }
    }

    /// Runs a rule one level deeper.
    pub(crate) fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.enter_level()?;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// Counts one more level of nesting, which the caller takes back.
    fn enter_level(&mut self) -> Parsed<()> {
        if self.depth >= MAX_DEPTH {
            return self.fail(codes::TOO_DEEP, self.token.span(), too_deep());
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        Ok(())
    }

    /// Returns the name for a piece of the text.
    pub(crate) fn name(&mut self, text: &'a str) -> Name {
        self.names.name(text)
    }

    /// Returns the name and the definition of an operation.
    fn operation_name(&mut self, text: &'a str) -> (Name, Option<&'static OpDef>) {
        let entry = self.operations.entry(text);
        entry
            .or_insert_with(|| (text.into(), dialect::lookup(text)))
            .clone()
    }

    /// Adds a mention to the index, if there is one.
    fn mention(&mut self, span: Span, role: Role, target: NameTarget) {
        if let Some(index) = &mut self.index {
            index.mention(span, role, target);
        }
    }

    /// Turns the mention of the previous symbol into a definition.
    pub(crate) fn symbol_is_defined(&mut self) {
        if let Some(index) = &mut self.index {
            index.last_is_definition();
        }
    }

    /// Returns the location of the present token.
    pub(crate) fn location_here(&mut self) -> Location {
        self.location_at(self.token.start)
    }

    /// Returns the location of an offset.
    fn location_at(&mut self, offset: usize) -> Location {
        let cursor = &mut self.line;
        if offset < cursor.offset {
            *cursor = LineCursor::default();
        }
        let passed = &self.text.as_bytes()[cursor.offset..offset];
        for index in memchr::memchr_iter(b'\n', passed) {
            cursor.line += 1;
            cursor.line_start = cursor.offset + index + 1;
        }
        cursor.offset = offset;
        Location::FileLineCol {
            file: self.source.name().clone(),
            line: cursor.line + 1 + self.source.line_offset(),
            column: Span::new(offset - cursor.line_start + 1, 0).start,
        }
    }
}

fn too_deep() -> String {
    format!("nesting is deeper than {MAX_DEPTH} levels")
}

/// Error reporting.
impl Parser<'_> {
    /// Adds a diagnostic.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports an error at a place.
    pub(crate) fn report(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        let diagnostic = self.error(code, span, message);
        self.push(diagnostic);
    }

    /// Makes an error at a place, to be pushed.
    pub(crate) fn error(
        &self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(code, message).at(self.source, span)
    }

    /// Adds advice to the error that was just made; there is none at a token that is wrong itself.
    pub(crate) fn help_last(&mut self, help: &str) {
        if !matches!(self.token.kind, Kind::Bad(_)) {
            self.diagnostics.help_last(help.to_owned());
        }
    }

    /// Reports an error at a place, and gives up.
    pub(crate) fn fail<T>(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
    ) -> Parsed<T> {
        self.report(code, span, message);
        Err(ParseFailed)
    }

    /// Reports what was expected at the present token, and gives up.
    pub(crate) fn expected<T>(&mut self, code: &'static str, what: &str) -> Parsed<T> {
        let found = match self.token.kind {
            // It has been reported.
            Kind::Bad(_) => return Err(ParseFailed),
            Kind::End => {
                let message = format!("expected {what}, found the end of the text");
                return self.fail(codes::UNEXPECTED_END, self.last_char(), message);
            }
            _ => self.token_text(),
        };
        const MAX_SHOWN: usize = 40;
        let found = match found.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("{}...", &found[..end]),
            None => found.to_owned(),
        };
        let message = format!("expected {what}, found '{found}'");
        let error = self.error(code, self.token.span(), message);
        let error = self.point_behind(error);
        let advice = self.advice(code, what);
        self.push(advice.into_iter().fold(error, Diagnostic::help));
        Err(ParseFailed)
    }

    /// Adds a note at the end of the text before the present token, if that is on a line before:
    /// what is missing was meant to be there.
    pub(crate) fn point_behind(&self, error: Diagnostic) -> Diagnostic {
        let last = self.last_char();
        match self.last_end > 0 && self.is_on_a_line_after(last) {
            true => error.note_at("the text before ends here", Some(self.source), last),
            false => error,
        }
    }

    /// Returns where the last character before the present token is; an empty span if there is none.
    pub(crate) fn last_char(&self) -> Span {
        let start = self
            .text
            .floor_char_boundary(self.last_end.saturating_sub(1));
        Span::new(start, self.last_end)
    }

    /// Skips to what looks like the start of an operation on a line of its own,
    /// or the end of the region, behind the offset `start`; `braces` is their
    /// number around the operation that failed.
    fn recover(&mut self, start: usize, braces: usize) {
        let mut quiet = Diagnostics::default();
        std::mem::swap(&mut quiet, &mut self.diagnostics);
        loop {
            let is_deeper = self.braces > braces;
            match self.token.kind {
                Kind::End => break,
                // A string without an end hides the braces behind it.
                Kind::Bad(lexer::LexError::String) => {
                    self.braces = braces;
                    self.bump();
                }
                _ if self.token.start == start => self.bump(),
                Kind::Mark(Mark::RightBrace) if !is_deeper && braces > 0 => break,
                _ if !is_deeper && self.starts_line() && self.starts_operation() => break,
                // What is skipped defines it.
                Kind::Percent if self.peek().is(Mark::Equal) => {
                    self.lose_present();
                    self.bump();
                }
                _ => self.bump(),
            }
        }
        self.diagnostics = quiet;
    }

    /// Returns whether the present token is the first on its line.
    fn starts_line(&self) -> bool {
        let before = &self.text.as_bytes()[..self.token.start];
        let mut blanks = before.iter().rev();
        matches!(
            blanks.find(|byte| !matches!(byte, b' ' | b'\t')),
            None | Some(b'\n')
        )
    }

    fn starts_operation(&self) -> bool {
        let next = self.peek();
        match self.token.kind {
            Kind::Percent => next.is(Mark::Equal) || next.is(Mark::Comma) || next.is(Mark::Colon),
            Kind::String => next.is(Mark::LeftParen),
            Kind::Word => {
                let text = self.token_text();
                text.contains('.') || matches!(text, "func" | "module" | "return" | "call")
            }
            Kind::Caret => true,
            Kind::Hash | Kind::Exclaim => next.is(Mark::Equal),
            _ => false,
        }
    }
}
