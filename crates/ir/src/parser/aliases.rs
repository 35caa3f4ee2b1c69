//! Aliases for types, attributes and locations.
//!
//! ```text
//! alias-definition ::= `!name` `=` type | `#name` `=` attribute
//! ```
//!
//! An alias holds what it stands for, not text, so using one costs nothing;
//! but printing writes it out. What all uses stand for together is therefore
//! limited in proportion to the text.

use std::collections::{HashMap, HashSet};

use super::{Parsed, Parser};
use crate::{
    attributes::Attribute,
    codes,
    index::{AliasMeaning, NameTarget, Role},
    lexer::{self, Kind, Mark},
    location::Location,
    name::TextHash,
    similar,
    source::Span,
    types::Type,
};

/// The aliases that were defined so far.
pub(super) struct Aliases<'a> {
    types: HashMap<&'a str, Alias<Type>, TextHash>,
    attributes: HashMap<&'a str, Alias<Attribute>, TextHash>,
    /// Locations may be used before they are defined; see `locations.rs`.
    pub locations: HashMap<&'a str, Location, TextHash>,
    /// The location aliases that were used as constants, with nothing left to replace in them, and
    /// the bytes of text that each stands for.
    constants: HashMap<&'a str, (Location, usize), TextHash>,
    /// The bytes of text that all uses of aliases have stood for.
    expanded: usize,
    limit: usize,
    /// The aliases whose definitions could not be read, with their sigils.
    broken: HashSet<&'a str, TextHash>,
}

struct Alias<T> {
    meaning: T,
    depth: usize,
    /// The bytes of text that the alias stands for, about.
    weight: usize,
}

impl Aliases<'_> {
    pub fn new(text_len: usize) -> Self {
        const MAX_GROWTH: usize = 32;
        const FREE: usize = 1 << 20;
        Aliases {
            types: HashMap::default(),
            attributes: HashMap::default(),
            locations: HashMap::default(),
            constants: HashMap::default(),
            expanded: 0,
            limit: text_len.saturating_mul(MAX_GROWTH).saturating_add(FREE),
            broken: HashSet::default(),
        }
    }
}

impl<'a> Parser<'a> {
    /// Parses the definition of an alias.
    pub(super) fn alias_definition(&mut self) -> Parsed<()> {
        let (kind, text, span) = (self.token.kind, self.token_text(), self.token.span());
        let name = &text[1..];
        if name.contains('.') {
            let what = if kind == Kind::Hash {
                "attribute"
            } else {
                "type"
            };
            let message = format!("{what} names with a '.' are reserved for dialect-defined names");
            return self.fail(codes::RESERVED_ALIAS, span, message);
        }
        let is_known = match kind {
            Kind::Hash => {
                self.aliases.attributes.contains_key(name)
                    || self.aliases.locations.contains_key(name)
            }
            _ => self.aliases.types.contains_key(name),
        };
        if is_known {
            let message = format!("redefinition of alias id '{text}'");
            let error = self.error(codes::REDEFINED_ALIAS, span, message);
            let error = match self.alias_definition_of(text, self.token.start) {
                Some(first) => error.note_at("first defined here", Some(self.source), first),
                None => error,
            };
            self.push(error);
            return Err(super::ParseFailed);
        }
        self.bump();
        self.mention(span, Role::Definition, NameTarget::Alias);
        let defined = self.alias_meaning(kind, name, span);
        if defined.is_err() {
            self.aliases.broken.insert(text);
        }
        defined
    }

    /// Parses the definition behind the name of an alias.
    fn alias_meaning(&mut self, kind: Kind, name: &'a str, span: Span) -> Parsed<()> {
        self.expect(Mark::Equal)?;
        let (start, expanded) = (self.token.start, self.aliases.expanded);
        self.deepest = self.depth;
        if kind == Kind::Hash && self.at_word("loc") {
            let location = self.trailing_location()?;
            self.alias_means(span, || AliasMeaning::Location(location.clone()));
            self.aliases.locations.insert(name, location);
            return Ok(());
        }
        if kind == Kind::Hash {
            let meaning = self.attribute()?;
            self.alias_means(span, || AliasMeaning::Attribute(meaning.clone()));
            let alias = self.alias(meaning, start, expanded);
            self.aliases.attributes.insert(name, alias);
        } else {
            self.eat_word("type");
            let meaning = self.ty()?;
            self.alias_means(span, || AliasMeaning::Type(meaning.clone()));
            let alias = self.alias(meaning, start, expanded);
            self.aliases.types.insert(name, alias);
        }
        Ok(())
    }

    fn alias_means(&mut self, definition: Span, meaning: impl FnOnce() -> AliasMeaning) {
        if let Some(index) = &mut self.index {
            index.means(definition, meaning());
        }
    }

    /// Returns the range of an alias's definition, by reading the text again.
    fn alias_definition_of(&self, text: &str, end: usize) -> Option<Span> {
        const MAX_SEARCHED: usize = 1 << 18;
        if self.diagnostics.is_full() {
            return None;
        }
        let mut at = 0;
        while at < end.min(MAX_SEARCHED) {
            let token = lexer::token(self.text, at);
            at = token.end;
            let is_name = matches!(token.kind, Kind::Hash | Kind::Exclaim);
            if is_name
                && &self.text[token.span().range()] == text
                && lexer::token(self.text, at).is(Mark::Equal)
            {
                return Some(token.span());
            }
        }
        None
    }

    fn alias<T>(&self, meaning: T, start: usize, expanded_before: usize) -> Alias<T> {
        let written = self.last_end.saturating_sub(start);
        let weight = written + (self.aliases.expanded - expanded_before);
        Alias {
            meaning,
            depth: self.deepest - self.depth,
            weight,
        }
    }

    /// Returns the type of the alias `!name`, the present token.
    pub(super) fn type_alias(&mut self, name: &'a str) -> Parsed<Type> {
        let span = self.token.span();
        self.mention(span, Role::Use, NameTarget::Alias);
        let Some(alias) = self.aliases.types.get(name) else {
            self.known_alias()?;
            let error = self.error(
                codes::UNDEFINED_ALIAS,
                span,
                format!("undefined symbol alias id '{name}'"),
            );
            let error = match similar::nearest(name, self.aliases.types.keys().copied()) {
                Some(close) => error.help(format!("there is an alias '!{close}'")),
                None => match self.alias_definition_of(&self.text[span.range()], self.text.len()) {
                    Some(later) => error.note_at("it is defined later", Some(self.source), later),
                    None => error.help("types of dialects are written '!dialect.type'"),
                },
            };
            self.push(error);
            return Err(super::ParseFailed);
        };
        let (meaning, depth, weight) = (alias.meaning.clone(), alias.depth, alias.weight);
        self.use_alias(span, depth, weight)?;
        self.bump();
        Ok(meaning)
    }

    /// Returns the attribute of the alias `#name`, the present token.
    pub(super) fn attribute_alias(&mut self, name: &'a str) -> Parsed<Attribute> {
        let span = self.token.span();
        self.mention(span, Role::Use, NameTarget::Alias);
        if let Some(location) = self.aliases.locations.get(name).cloned() {
            let known = self.aliases.constants.get(name).cloned();
            let (location, weight) = match known {
                Some(known) => known,
                None => {
                    let resolved = self.location_constant(&location)?;
                    self.aliases.constants.insert(name, resolved.clone());
                    resolved
                }
            };
            self.expand(span, weight)?;
            self.bump();
            return Ok(Attribute::Location(location.into()));
        }
        let Some(alias) = self.aliases.attributes.get(name) else {
            self.known_alias()?;
            let message = format!("undefined symbol alias id '{name}'");
            let error = self.error(codes::UNDEFINED_ALIAS, span, message);
            let known = self.aliases.attributes.keys();
            let close = similar::nearest(name, known.chain(self.aliases.locations.keys()).copied());
            let error = match close {
                Some(close) => error.help(format!("there is an alias '#{close}'")),
                None => error.help("an alias is defined before its use: '#name = attribute'"),
            };
            self.push(error);
            return Err(super::ParseFailed);
        };
        let (meaning, depth, weight) = (alias.meaning.clone(), alias.depth, alias.weight);
        self.use_alias(span, depth, weight)?;
        self.bump();
        Ok(meaning)
    }

    /// Gives up without a word if the present token is an alias whose definition is wrong.
    fn known_alias(&self) -> Parsed<()> {
        match self.aliases.broken.contains(self.token_text()) {
            true => Err(super::ParseFailed),
            false => Ok(()),
        }
    }

    fn use_alias(&mut self, span: Span, depth: usize, weight: usize) -> Parsed<()> {
        if self.depth + depth > super::MAX_DEPTH {
            return self.fail(codes::TOO_DEEP, span, super::too_deep());
        }
        self.deepest = self.deepest.max(self.depth + depth);
        self.expand(span, weight)
    }

    /// Counts text that an alias stands for.
    pub(super) fn expand(&mut self, span: Span, weight: usize) -> Parsed<()> {
        self.aliases.expanded = self.aliases.expanded.saturating_add(weight);
        if self.aliases.expanded > self.aliases.limit {
            let limit = self.aliases.limit;
            return self.fail(
                codes::ALIASES_TOO_LARGE,
                span,
                format!("aliases stand for more than {limit} bytes of text"),
            );
        }
        Ok(())
    }
}
