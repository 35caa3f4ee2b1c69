//! Parsing of locations, and of the aliases in them.
//!
//! ```text
//! location ::= `loc` `(` inner `)`
//! inner    ::= `unknown` | string `:` line `:` column range? | string (`(` inner `)`)?
//!            | `callsite` `(` inner `at` inner `)`
//!            | `fused` (`<` attribute `>`)? `[` inner,* `]` | `#alias`
//! range    ::= `to` line? `:` column
//! ```
//!
//! Of a range the beginning is kept.
//!
//! An alias may be defined behind its uses. So each use is left as an opaque
//! location with the alias's text, and all are replaced at the end.

use std::collections::HashMap;

use super::{MAX_DEPTH, Parsed, Parser};
use crate::{
    attributes::Attribute,
    codes,
    index::{NameTarget, Role},
    lexer::{Kind, Mark},
    location::Location,
    module::{OpId, ValueId},
    name::{Name, TextHash},
    source::Span,
};

/// The operations and arguments whose locations have aliases, which may be defined later.
#[derive(Default)]
pub(super) struct DeferredLocations<'a> {
    ops: Vec<OpId>,
    arguments: Vec<ValueId>,
    /// The first use of each alias.
    uses: HashMap<&'a str, Span, TextHash>,
}

/// The location that an alias stands for, without aliases in it.
#[derive(Clone)]
struct ResolvedLocation {
    location: Location,
    depth: usize,
    weight: usize,
}

impl<'a> Parser<'a> {
    /// Parses `loc(...)`.
    pub(crate) fn trailing_location(&mut self) -> Parsed<Location> {
        self.expect_word("loc")?;
        self.expect(Mark::LeftParen)?;
        let location = self.location()?;
        self.expect(Mark::RightParen)?;
        Ok(location)
    }

    /// Parses `loc(...)` as a constant.
    pub(super) fn location_attribute(&mut self) -> Parsed<Attribute> {
        let span = self.token.span();
        let location = self.trailing_location()?;
        if has_alias(&location) {
            return self.fail(
                codes::ALIAS_IN_CONSTANT,
                span,
                "expected a location without aliases in an attribute",
            );
        }
        Ok(Attribute::Location(location.into()))
    }

    fn location(&mut self) -> Parsed<Location> {
        self.nested(|parser| match parser.token.kind {
            Kind::String => parser.named_location(),
            Kind::Hash => {
                let (text, span) = (parser.token_text(), parser.token.span());
                parser.bump();
                parser.mention(span, Role::Use, NameTarget::Alias);
                parser.deferred.uses.entry(text).or_insert(span);
                Ok(Location::Opaque(parser.name(text)))
            }
            Kind::Word => match parser.token_text() {
                "unknown" => {
                    parser.bump();
                    Ok(Location::Unknown)
                }
                "callsite" => parser.call_site(),
                "fused" => parser.fused(),
                _ => parser.expected(codes::EXPECTED_LOCATION, "location"),
            },
            _ => parser.expected(codes::EXPECTED_LOCATION, "location"),
        })
    }

    fn named_location(&mut self) -> Parsed<Location> {
        let span = self.token.span();
        let name: Name = match String::from_utf8(self.string_literal()?) {
            Ok(name) => name.into(),
            Err(_) => {
                return self.fail(
                    codes::EXPECTED_LOCATION,
                    span,
                    "expected UTF-8 text in a location",
                );
            }
        };
        if self.eat(Mark::Colon) {
            let line = self.position("line")?;
            self.expect(Mark::Colon)?;
            let column = self.position("column")?;
            if self.token.kind == Kind::Word && self.token_text() == "to" {
                self.bump();
                if !self.eat(Mark::Colon) {
                    self.position("line")?;
                    self.expect(Mark::Colon)?;
                }
                self.position("column")?;
            }
            return Ok(Location::FileLineCol {
                file: name,
                line,
                column,
            });
        }
        if !self.eat(Mark::LeftParen) {
            return Ok(Location::named(name, None));
        }
        let child = self.location()?;
        self.expect(Mark::RightParen)?;
        Ok(Location::named(name, Some(child)))
    }

    fn position(&mut self, what: &str) -> Parsed<u32> {
        let value = self.token_text().parse();
        match (self.token.kind, value) {
            (Kind::Integer, Ok(value)) => {
                self.bump();
                Ok(value)
            }
            _ => self.expected(
                codes::EXPECTED_LOCATION,
                &format!("integer {what} number in location"),
            ),
        }
    }

    fn call_site(&mut self) -> Parsed<Location> {
        self.bump();
        self.expect(Mark::LeftParen)?;
        let callee = self.location()?;
        self.expect_word("at")?;
        let caller = self.location()?;
        self.expect(Mark::RightParen)?;
        Ok(Location::call_site(callee, caller))
    }

    fn fused(&mut self) -> Parsed<Location> {
        self.bump();
        let mut metadata = None;
        if self.eat(Mark::Less) {
            metadata = Some(self.attribute()?);
            self.expect(Mark::Greater)?;
        }
        self.expect(Mark::LeftSquare)?;
        let mut members = Vec::new();
        self.list_until(Mark::RightSquare, |parser| {
            members.push(parser.location()?);
            Ok(())
        })?;
        Ok(Location::fused(members, metadata))
    }

    pub(super) fn defer_op_location(&mut self, op: OpId, location: &Location) {
        if has_alias(location) {
            self.deferred.ops.push(op);
        }
    }

    pub(super) fn defer_argument_location(&mut self, value: ValueId, location: &Location) {
        if has_alias(location) {
            self.deferred.arguments.push(value);
        }
    }

    /// Replaces the aliases in a location that is used as a constant, and counts the bytes of text
    /// that this is, about.
    pub(super) fn location_constant(&mut self, location: &Location) -> Parsed<(Location, usize)> {
        let resolved = self.replace_aliases(location, self.depth, &mut HashMap::default())?;
        Ok((resolved.location, resolved.weight))
    }

    /// Replaces the aliases in all locations, now that all are defined.
    pub(super) fn resolve_locations(&mut self) {
        let mut known: HashMap<Name, Option<ResolvedLocation>, TextHash> = HashMap::default();
        for op in std::mem::take(&mut self.deferred.ops) {
            let location = self.module.op(op).location().clone();
            let Ok(resolved) = self.replace_aliases(&location, 0, &mut known) else {
                return;
            };
            self.module.set_location(op, resolved.location);
        }
        for argument in std::mem::take(&mut self.deferred.arguments) {
            let location = self.module.argument_location(argument);
            let Ok(resolved) = self.replace_aliases(&location, 0, &mut known) else {
                return;
            };
            self.module
                .set_argument_location(argument, resolved.location);
        }
    }

    fn replace_aliases(
        &mut self,
        location: &Location,
        depth: usize,
        known: &mut HashMap<Name, Option<ResolvedLocation>, TextHash>,
    ) -> Parsed<ResolvedLocation> {
        let leaf = |location: &Location| ResolvedLocation {
            location: location.clone(),
            depth: 0,
            weight: "\"\":1:1".len(),
        };
        let mut parts = Vec::new();
        let children: Vec<&Location> = match location {
            Location::Opaque(text) => return self.replace_alias(text, depth, known),
            Location::Unknown | Location::FileLineCol { .. } => return Ok(leaf(location)),
            Location::Name(inner) => vec![&inner.child],
            Location::CallSite(inner) => vec![&inner.callee, &inner.caller],
            Location::Fused(inner) => inner.locations.iter().collect(),
        };
        let mut found = leaf(location);
        for child in children {
            let part = self.replace_aliases(child, depth + 1, known)?;
            found.depth = found.depth.max(part.depth + 1);
            found.weight += part.weight;
            parts.push(part.location);
        }
        found.location = match location {
            Location::Name(inner) => Location::named(inner.name.clone(), parts.pop()),
            Location::Fused(inner) => Location::fused(parts, inner.metadata.clone()),
            _ => {
                let caller = parts.pop().unwrap_or_default();
                Location::call_site(parts.pop().unwrap_or_default(), caller)
            }
        };
        Ok(found)
    }

    fn replace_alias(
        &mut self,
        text: &Name,
        depth: usize,
        known: &mut HashMap<Name, Option<ResolvedLocation>, TextHash>,
    ) -> Parsed<ResolvedLocation> {
        let span = self
            .deferred
            .uses
            .get(text.as_str())
            .copied()
            .unwrap_or_default();
        if let Some(state) = known.get(text) {
            let Some(resolved) = state.clone() else {
                return self.fail(
                    codes::CIRCULAR_ALIAS,
                    span,
                    format!("location alias '{text}' stands for itself"),
                );
            };
            if depth + resolved.depth > MAX_DEPTH {
                return self.fail(codes::TOO_DEEP, span, super::too_deep());
            }
            self.expand(span, resolved.weight)?;
            return Ok(resolved);
        }
        if depth > MAX_DEPTH {
            return self.fail(codes::TOO_DEEP, span, super::too_deep());
        }
        let Some(meaning) = self.aliases.locations.get(&text[1..]).cloned() else {
            return self.fail(
                codes::UNDEFINED_ALIAS,
                span,
                format!("location alias '{text}' was never defined"),
            );
        };
        known.insert(text.clone(), None);
        let resolved = self.replace_aliases(&meaning, depth + 1, known)?;
        known.insert(text.clone(), Some(resolved.clone()));
        Ok(resolved)
    }
}

/// Returns whether aliases occur in a location.
fn has_alias(location: &Location) -> bool {
    match location {
        Location::Opaque(_) => true,
        Location::Unknown | Location::FileLineCol { .. } => false,
        Location::Name(inner) => has_alias(&inner.child),
        Location::CallSite(inner) => has_alias(&inner.callee) || has_alias(&inner.caller),
        Location::Fused(inner) => inner.locations.iter().any(has_alias),
    }
}
