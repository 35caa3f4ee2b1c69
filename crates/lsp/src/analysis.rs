//! The analysis of a text, as far as the parser parsed it; names it skipped are looked up by
//! tokens.

use std::{borrow::Cow, cell::OnceCell, collections::HashMap};

use tfrt_ir::{
    Diagnostics, Dialects, Module, OpId, Source, Span, ValueId,
    index::{Index, IndexedParse, Mention, NameTarget, Role, parse_with_index},
    tokens::{Token, TokenKind, tokens},
};

use crate::scope::Scopes;

/// The analysis of one version of a text: its module, its index of names.
pub(crate) struct Analysis {
    pub source: Source,
    pub module: Module,
    pub index: Index,
    pub diagnostics: Diagnostics,
    scopes: OnceCell<Scopes>,
    /// The range of each value's name where it is defined.
    value_names: OnceCell<HashMap<ValueId, Span>>,
}

/// A name in a text, and the object that it refers to, if that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameAt {
    pub span: Span,
    pub kind: TokenKind,
    pub target: Option<NameTarget>,
}

/// The definitions of a symbol, by the module that has them; `None` is text around which there is
/// no module.
type SymbolSites = HashMap<Option<OpId>, Vec<Span>>;

impl Analysis {
    pub fn new(name: &str, text: &str, dialects: &Dialects) -> Analysis {
        let source = Source::new(name, text);
        let IndexedParse {
            module,
            index,
            diagnostics,
        } = parse_with_index(&source, dialects);
        Analysis {
            source,
            module,
            index,
            diagnostics,
            scopes: OnceCell::new(),
            value_names: OnceCell::new(),
        }
    }

    /// Returns the text of a span.
    pub fn text(&self, span: Span) -> &str {
        self.source.text().get(span.range()).unwrap_or_default()
    }

    /// Returns the token that an offset touches; of two the one that is a name.
    pub fn token_at(&self, offset: usize) -> Option<Token> {
        let text = self.source.text();
        let line = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let touching = tokens(text, line)
            .take_while(|token| token.span.range().start <= offset)
            .filter(|token| offset <= token.span.range().end);
        let is_name = |token: &Token| !matches!(token.kind, TokenKind::Mark(_) | TokenKind::Bad);
        touching.max_by_key(|token| (is_name(token), token.span.start))
    }

    /// Returns the name that an offset touches.
    pub fn named_at(&self, offset: usize) -> Option<NameAt> {
        let token = self.token_at(offset)?;
        let mention = self.mention_at(offset);
        match (mention, token.kind) {
            (Some(mention), _) => Some(NameAt {
                span: mention.span,
                // Of `%x#1` the first token tells.
                kind: tokens(self.text(mention.span), 0).next()?.kind,
                target: Some(mention.target),
            }),
            (
                None,
                kind @ (TokenKind::Value
                | TokenKind::Block
                | TokenKind::Symbol
                | TokenKind::Hash
                | TokenKind::Exclaim),
            ) => Some(NameAt {
                span: token.span,
                kind,
                target: self.target_by_token(token),
            }),
            _ => None,
        }
    }

    /// Returns the name that the parser saw where an offset is.
    fn mention_at(&self, offset: usize) -> Option<Mention> {
        // Adjacent names share an offset: the one that begins there counts. At one place the use
        // counts, which stands first.
        let mut found: Option<Mention> = None;
        for mention in self.index.at(offset) {
            if found.is_none_or(|found| found.span != mention.span) {
                found = Some(*mention);
            }
        }
        found
    }

    /// Returns the object that a token which the parser skipped would refer to.
    fn target_by_token(&self, token: Token) -> Option<NameTarget> {
        match token.kind {
            TokenKind::Symbol => Some(NameTarget::Symbol),
            TokenKind::Hash | TokenKind::Exclaim => Some(NameTarget::Alias),
            _ => {
                let definition = self.definition_by_token(token.span)?;
                let mut mentions = self.index.at(definition.range().start);
                let given = mentions.find(|mention| mention.span.start == definition.start);
                given.map(|mention| mention.target)
            }
        }
    }

    fn definition_by_token(&self, span: Span) -> Option<Span> {
        let place = span.range().start;
        let text = self.source.text();
        self.scopes().find(text, self.text(span), place)
    }

    /// Returns the names that the tokens give.
    pub fn scopes(&self) -> &Scopes {
        self.scopes.get_or_init(|| Scopes::of(self.source.text()))
    }

    /// Returns the definitions of a name's object: several if it is defined twice.
    pub fn definitions(&self, named: NameAt) -> Vec<Span> {
        let spans: Vec<Span> = match named.target {
            Some(NameTarget::Symbol) => self.symbol_definitions(named.span),
            Some(_) => self.mentions(named, Some(Role::Definition)),
            None => Vec::new(),
        };
        match (spans.is_empty(), named.kind) {
            (true, TokenKind::Value | TokenKind::Block) => {
                self.definition_by_token(named.span).into_iter().collect()
            }
            _ => spans,
        }
    }

    /// Returns all mentions of a name's object, or those with one role.
    pub fn mentions(&self, named: NameAt, role: Option<Role>) -> Vec<Span> {
        let mut spans: Vec<Span> = self
            .mentions_with_roles(named)
            .filter(|mention| role.is_none_or(|role| mention.role == role))
            .map(|mention| mention.span)
            .collect();
        spans.dedup();
        spans
    }

    /// Iterates over all mentions of a name's object.
    pub fn mentions_with_roles(&self, named: NameAt) -> impl Iterator<Item = Mention> + '_ {
        let of_symbol = (named.target == Some(NameTarget::Symbol)).then(|| {
            let name = self.symbol(named.span).into_owned();
            let symbol_sites = self.symbol_sites(&name);
            let home = self.owning_module(named.span, &symbol_sites);
            (name, symbol_sites, home)
        });
        let mentions = self.index.mentions().iter().copied();
        mentions.filter(move |mention| {
            Some(mention.target) == named.target
                && match (mention.target, &of_symbol) {
                    (NameTarget::Alias, _) => self.text(mention.span) == self.text(named.span),
                    (NameTarget::Symbol, Some((name, symbol_sites, home))) => {
                        self.symbol(mention.span) == *name
                            && self.owning_module(mention.span, symbol_sites) == *home
                    }
                    _ => true,
                }
        })
    }

    /// Returns the name of a symbol without `@`, quotes and escapes.
    pub fn symbol(&self, span: Span) -> Cow<'_, str> {
        let text = self.text(span);
        let text = text.strip_prefix('@').unwrap_or(text);
        match text.starts_with('"') && text.len() >= 2 {
            true => Cow::Owned(tfrt_ir::tokens::unescape(text)),
            false => Cow::Borrowed(text),
        }
    }

    /// Returns the definitions of the symbol at a place.
    fn symbol_definitions(&self, span: Span) -> Vec<Span> {
        let mut symbol_sites = self.symbol_sites(&self.symbol(span));
        match self.owning_module(span, &symbol_sites) {
            Some(home) => symbol_sites.remove(&home).unwrap_or_default(),
            // Nobody can tell: all of them.
            None => {
                let mut all: Vec<Span> = symbol_sites.into_values().flatten().collect();
                all.sort();
                all
            }
        }
    }

    /// Returns the definitions of a symbol, for each module that has it.
    fn symbol_sites(&self, name: &str) -> SymbolSites {
        let table = |op: Option<OpId>| op.and_then(|op| self.module.nearest_symbol_table(op));
        let mut symbol_sites = SymbolSites::new();
        for mention in self.index.mentions() {
            let is_given = mention.target == NameTarget::Symbol && mention.role == Role::Definition;
            if is_given && self.symbol(mention.span) == name {
                let home = table(self.op_around(mention.span));
                symbol_sites.entry(home).or_default().push(mention.span);
            }
        }
        if !symbol_sites.is_empty() {
            return symbol_sites;
        }
        // In generic form the name is an attribute like any other.
        for extent in self.index.op_extents() {
            if self.module.symbol_name(extent.op) == Some(name) {
                let home = table(Some(extent.op));
                let span = self.module.op(extent.op).span();
                symbol_sites.entry(home).or_default().push(span);
            }
        }
        symbol_sites
    }

    /// Returns the module, of those that have a symbol, that is the nearest around a place.
    fn owning_module(&self, place: Span, symbol_sites: &SymbolSites) -> Option<Option<OpId>> {
        if symbol_sites.len() < 2 {
            return symbol_sites.keys().next().copied();
        }
        let table = |op: OpId| self.module.nearest_symbol_table(op);
        let nearest = self.op_around(place).and_then(table);
        let around = std::iter::successors(nearest, |&module| table(module));
        let mut around = around.map(Some).chain([None]);
        around.find(|home| symbol_sites.contains_key(home))
    }

    fn op_around(&self, span: Span) -> Option<OpId> {
        let mut around = self.index.enclosing(span.range().start);
        around.next().map(|extent| extent.op)
    }

    /// Returns the operation whose name is at a place.
    pub fn op_named_at(&self, span: Span) -> Option<OpId> {
        let mut around = self.index.enclosing(span.range().start);
        let extent = around.find(|extent| self.module.op(extent.op).span() == span)?;
        Some(extent.op)
    }

    /// Returns the name that a value has where it is defined, and the place.
    pub fn value_name(&self, value: ValueId) -> Option<(&str, Span)> {
        let names = self.value_names.get_or_init(|| {
            let mentions = self.index.mentions().iter();
            let given = mentions.filter(|mention| mention.role == Role::Definition);
            let of_values = given.filter_map(|mention| match mention.target {
                NameTarget::Value(value) => Some((value, mention.span)),
                _ => None,
            });
            of_values.collect()
        });
        let &span = names.get(&value)?;
        Some((self.text(span), span))
    }
}
