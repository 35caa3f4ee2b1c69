//! Regions and blocks.
//!
//! ```text
//! region ::= `{` operation* block* `}`
//! block  ::= `^name` (`(` (`%name` `:` type location?),* `)`)? `:` operation*
//! ```

use std::collections::HashMap;

use super::{Parsed, Parser, scope::Operand};
use crate::{
    codes,
    index::{NameTarget, Role},
    lexer::{Kind, Mark},
    location::Location,
    module::{BlockId, RegionId},
    name::TextHash,
    similar,
    source::Span,
    types::Type,
};

/// An argument of a region that the operation around it names.
pub(crate) struct Argument<'a> {
    pub name: Operand<'a>,
    pub ty: Type,
    pub location: Location,
}

/// The blocks of a region that is open, by name.
pub(super) struct Labels<'a> {
    region: RegionId,
    blocks: HashMap<&'a str, Label, TextHash>,
}

#[derive(Clone, Copy)]
struct Label {
    block: BlockId,
    span: Span,
    is_defined: bool,
}

impl<'a> Parser<'a> {
    /// Parses a region whose blocks show their arguments themselves.
    pub(crate) fn region(&mut self, isolated: bool) -> Parsed<RegionId> {
        self.region_in_scope(isolated, None)
    }

    /// Parses a region with arguments that were written before it, or are the
    /// operands of its operation by the same names. It is isolated.
    pub(crate) fn region_with(&mut self, arguments: Vec<Argument<'a>>) -> Parsed<RegionId> {
        self.region_in_scope(true, Some(arguments))
    }

    /// Parses a region with arguments that were written before it, and which sees what is around it.
    pub(crate) fn region_around(&mut self, arguments: Vec<Argument<'a>>) -> Parsed<RegionId> {
        self.region_in_scope(false, Some(arguments))
    }

    fn region_in_scope(
        &mut self,
        isolated: bool,
        arguments: Option<Vec<Argument<'a>>>,
    ) -> Parsed<RegionId> {
        if !self.at(Mark::LeftBrace) {
            return self.expected(codes::UNEXPECTED_TOKEN, "'{' to begin a region");
        }
        self.enter_level()?;
        self.bump();
        let region = self.module.create_region();
        match isolated {
            true => self.enter_isolated(),
            false => self.scopes.enter_shared(),
        }
        self.labels.push(Labels {
            region,
            blocks: HashMap::default(),
        });
        let result = self.region_body(region, arguments);
        self.leave_labels();
        match isolated {
            true => self.leave_isolated(),
            false => self.scopes.leave_shared(),
        }
        self.depth -= 1;
        result?;
        Ok(region)
    }

    /// Parses all behind the opening brace, with the closing one.
    fn region_body(
        &mut self,
        region: RegionId,
        arguments: Option<Vec<Argument<'a>>>,
    ) -> Parsed<()> {
        let opening = Span::new(self.last_end - 1, self.last_end);
        if let Some(block) = self.first_block(region, arguments)? {
            self.operations(block);
        }
        while self.token.kind == Kind::Caret {
            let block = self.label()?;
            self.operations(block);
        }
        if self.eat(Mark::RightBrace) {
            return Ok(());
        }
        self.unclosed(opening)
    }

    /// Makes the block that needs no label, unless the region is empty or
    /// starts with a label.
    fn first_block(
        &mut self,
        region: RegionId,
        arguments: Option<Vec<Argument<'a>>>,
    ) -> Parsed<Option<BlockId>> {
        let arguments = arguments.unwrap_or_default();
        if self.at(Mark::RightBrace) {
            return Ok(None);
        }
        if self.token.kind == Kind::Caret {
            if !arguments.is_empty() {
                let message = "invalid block name in region with named arguments";
                let span = self.token.span();
                let error = self.error(codes::LABEL_BEFORE_ARGUMENTS, span, message);
                let help = "the arguments are those of the first block, which has no label then";
                self.push(error.help(help));
                return Err(super::ParseFailed);
            }
            return Ok(None);
        }
        let block = self.module.create_block(region);
        for argument in arguments {
            self.argument(block, argument)?;
        }
        Ok(Some(block))
    }

    fn unclosed(&mut self, opening: Span) -> Parsed<()> {
        if self.token.kind != Kind::End {
            return self.expected(codes::EXPECTED_OPERATION, "operation, block or '}'");
        }
        let error = self.error(
            codes::UNEXPECTED_END,
            self.last_char(),
            "expected '}' to end a region, found the end of the text",
        );
        let error = error.note_at("the region begins here", Some(self.source), opening);
        self.push(error);
        Err(super::ParseFailed)
    }

    fn argument(&mut self, block: BlockId, argument: Argument<'a>) -> Parsed<()> {
        let location = argument.location.clone();
        let value = self
            .module
            .add_argument(block, argument.ty, argument.location);
        self.defer_argument_location(value, &location);
        self.define(argument.name, value)
    }

    /// Parses operations until the block or the region ends; reports those
    /// that are wrong and goes on.
    fn operations(&mut self, block: BlockId) {
        let braces = self.braces;
        loop {
            match self.token.kind {
                Kind::End | Kind::Caret | Kind::Mark(Mark::RightBrace) => return,
                _ if self.diagnostics.is_full() => return,
                _ => {}
            }
            let before = self.token.start;
            match self.operation() {
                Ok(op) => self.module.append(block, op),
                Err(_) => self.recover(before, braces),
            }
        }
    }

    /// Parses the label of a block and its arguments.
    fn label(&mut self) -> Parsed<BlockId> {
        let (name, span) = (self.token_text(), self.token.span());
        self.bump();
        let labels = self.labels.last_mut().expect("a region is open");
        let region = labels.region;
        let block = match labels.blocks.get(name).copied() {
            Some(label) if label.is_defined => {
                let error = self.error(
                    codes::REDEFINED_BLOCK,
                    span,
                    format!("redefinition of block '{name}'"),
                );
                let error = error.note_at("previously defined here", Some(self.source), label.span);
                self.push(error);
                self.module.create_unlisted_block(region)
            }
            Some(label) => label.block,
            None => self.module.create_unlisted_block(region),
        };
        let label = Label {
            block,
            span,
            is_defined: true,
        };
        self.labels
            .last_mut()
            .expect("a region is open")
            .blocks
            .insert(name, label);
        self.module.list_block(block);
        self.module.set_block_span(block, span);
        self.mention(span, Role::Definition, NameTarget::Block(block));
        if self.eat(Mark::LeftParen) {
            self.list_until(Mark::RightParen, |parser| {
                let argument = parser.block_argument()?;
                parser.argument(block, argument)
            })?;
        }
        self.expect(Mark::Colon)?;
        Ok(block)
    }

    /// Parses `%name` `:` type location?.
    pub(crate) fn block_argument(&mut self) -> Parsed<Argument<'a>> {
        let name = self.operand()?;
        self.expect(Mark::Colon)?;
        let ty = self.ty()?;
        let location = match self.at_word("loc") {
            true => self.trailing_location()?,
            false => Location::Unknown,
        };
        Ok(Argument { name, ty, location })
    }

    /// Parses the name of a block, which may be defined later.
    pub(super) fn successor(&mut self) -> Parsed<BlockId> {
        if self.token.kind != Kind::Caret {
            return self.expected(codes::UNEXPECTED_TOKEN, "block name");
        }
        let (name, span) = (self.token_text(), self.token.span());
        self.bump();
        let Some(labels) = self.labels.last() else {
            return self.fail(
                codes::BLOCK_OUTSIDE_REGION,
                span,
                "reference to a block outside of any region",
            );
        };
        if let Some(&Label { block, .. }) = labels.blocks.get(name) {
            self.mention(span, Role::Use, NameTarget::Block(block));
            return Ok(block);
        }
        let block = self.module.create_unlisted_block(labels.region);
        self.mention(span, Role::Use, NameTarget::Block(block));
        let label = Label {
            block,
            span,
            is_defined: false,
        };
        self.labels
            .last_mut()
            .expect("a region is open")
            .blocks
            .insert(name, label);
        Ok(block)
    }

    fn leave_labels(&mut self) {
        let labels = self.labels.pop().expect("entered before");
        let undefined = labels.blocks.values().filter(|label| !label.is_defined);
        let mut spans: Vec<Span> = undefined.map(|label| label.span).collect();
        spans.sort();
        for span in spans {
            let name = &self.text[span.range()];
            let defined = labels.blocks.iter().filter(|(_, label)| label.is_defined);
            let close = match self.diagnostics.is_full() {
                true => None,
                false => similar::nearest(name, defined.map(|(name, _)| *name)),
            };
            let message = "reference to an undefined block";
            let error = self.error(codes::UNDEFINED_BLOCK, span, message);
            self.push(match close {
                Some(close) => error.help(format!("there is a block {close} in this region")),
                None => error.help(format!("nothing in this region is labelled {name}")),
            });
        }
    }
}
