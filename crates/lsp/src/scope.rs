//! Scopes by tokens alone: the names that a place can see in text that does not parse.
//!
//! A value or a block is seen in the braces that it is defined in, an argument in front of braces
//! within these. That is coarser than the parser's rules: regions that see nothing from outside are
//! told by the word `func` only, and operands that name arguments are not known.

use std::collections::HashMap;

use tfrt_ir::{
    Span,
    dialect::lookup,
    tokens::{Token, TokenKind, tokens},
};

/// The most levels of braces around a place that are looked at: the parser takes no more.
const MAX_DEPTH: usize = 256;

/// A definition of `%name` or `^name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameDefinition {
    /// The range of the name.
    pub span: Span,
    /// The braces in which the name is visible, by their number.
    braces: usize,
}

/// All definitions of a text, and its braces.
pub(crate) struct Scopes {
    given: Vec<NameDefinition>,
    braces: Vec<Braces>,
}

struct Braces {
    start: usize,
    end: usize,
    around: usize,
    /// Whether names from outside are hidden within.
    is_isolated: bool,
}

impl Scopes {
    /// Reads a text.
    pub fn of(text: &str) -> Scopes {
        let tokens: Vec<Token> = tokens(text, 0).collect();
        let whole = Braces {
            start: 0,
            end: text.len(),
            around: 0,
            is_isolated: true,
        };
        let mut reader = Reader {
            text,
            tokens: &tokens,
            scopes: Scopes {
                given: Vec::new(),
                braces: vec![whole],
            },
            open: vec![0],
            dictionaries: 0,
            parentheses: 0,
            is_of_block: false,
            arguments: Vec::new(),
            is_function: false,
        };
        let mut at = 0;
        while at < tokens.len() {
            at = reader.token(at);
        }
        reader.scopes
    }

    /// Returns the definition of a name that a place sees: in the innermost braces, and there the
    /// last before the place, else the first behind it.
    pub fn find(&self, text: &str, name: &str, place: usize) -> Option<Span> {
        let of_name = |given: &&NameDefinition| &text[given.span.range()] == name;
        self.visible(place).find_map(|braces| {
            let given = self.given.iter().filter(of_name);
            let here: Vec<Span> = given
                .filter(|given| given.braces == braces)
                .map(|given| given.span)
                .collect();
            let before = here.iter().rfind(|span| span.range().start <= place);
            before.or(here.first()).copied()
        })
    }

    /// Returns all definitions that a place sees and that stand before it, each name once.
    pub fn all_before(&self, text: &str, place: usize) -> Vec<Span> {
        let mut seen = HashMap::new();
        for (depth, braces) in self.visible(place).enumerate() {
            let here = self.given.iter().filter(|given| {
                let is_block = text[given.span.range()].starts_with('^');
                given.braces == braces && (is_block || given.span.range().end < place)
            });
            for given in here {
                let entry = seen
                    .entry(&text[given.span.range()])
                    .or_insert((depth, given.span));
                // Of those in the same braces the last counts.
                if entry.0 == depth {
                    entry.1 = given.span;
                }
            }
        }
        let mut spans: Vec<Span> = seen.into_values().map(|(_, span)| span).collect();
        spans.sort();
        spans
    }

    /// Iterates over the braces whose names a place sees, the innermost first.
    fn visible(&self, place: usize) -> impl Iterator<Item = usize> {
        let begun = self.braces.partition_point(|braces| braces.start < place);
        let mut at = Some(begun.saturating_sub(1));
        while let Some(braces) = at.map(|at| &self.braces[at])
            && braces.end < place
        {
            at = Some(braces.around);
        }
        std::iter::successors(at, |&at| {
            let braces = &self.braces[at];
            (!braces.is_isolated).then_some(braces.around)
        })
        .take(MAX_DEPTH)
    }
}

struct Reader<'t> {
    text: &'t str,
    tokens: &'t [Token],
    scopes: Scopes,
    open: Vec<usize>,
    /// The number of open braces that belong to attributes.
    dictionaries: usize,
    parentheses: usize,
    /// Whether the parentheses are those of a block's arguments.
    is_of_block: bool,
    /// The arguments whose braces are still to come.
    arguments: Vec<Span>,
    /// Whether the next braces are those of a function.
    is_function: bool,
}

impl Reader<'_> {
    /// Reads what begins at a token; returns the number of the token behind.
    fn token(&mut self, at: usize) -> usize {
        let token = self.tokens[at];
        match token.kind {
            TokenKind::Mark("{") if self.is_dictionary(at) => self.dictionaries += 1,
            TokenKind::Mark("{") => self.open_braces(token.span),
            TokenKind::Mark("}") if self.dictionaries > 0 => self.dictionaries -= 1,
            TokenKind::Mark("}") => self.close_braces(token.span),
            TokenKind::Mark("(") => {
                if self.parentheses == 0 {
                    let is_label = |before: usize| self.tokens[before].kind == TokenKind::Block;
                    self.is_of_block = at.checked_sub(1).is_some_and(is_label);
                }
                self.parentheses += 1;
            }
            TokenKind::Mark(")") => self.parentheses = self.parentheses.saturating_sub(1),
            TokenKind::Word if matches!(&self.text[token.span.range()], "func.func" | "func") => {
                self.arguments.clear();
                self.is_function = true;
                self.parentheses = 0;
            }
            TokenKind::Block if self.is_label(at) => self.give(token.span),
            TokenKind::Value => return self.value(at),
            _ => {}
        }
        at + 1
    }

    /// Returns whether a brace begins attributes: `{name =`, `{name,`, `{name}`.
    fn is_dictionary(&self, at: usize) -> bool {
        let Some(name) = self.tokens.get(at + 1) else {
            return false;
        };
        let is_name = matches!(name.kind, TokenKind::Word | TokenKind::String);
        is_name
            && match self.kind(at + 2) {
                Some(TokenKind::Mark("=" | ",")) => true,
                // Or a region of one operation without operands.
                Some(TokenKind::Mark("}")) => lookup(&self.text[name.span.range()]).is_none(),
                _ => false,
            }
    }

    fn open_braces(&mut self, span: Span) {
        let number = self.scopes.braces.len();
        self.scopes.braces.push(Braces {
            start: span.range().start,
            end: self.text.len(),
            around: self.open.last().copied().unwrap_or(0),
            is_isolated: std::mem::take(&mut self.is_function),
        });
        self.open.push(number);
        self.parentheses = 0;
        for span in std::mem::take(&mut self.arguments) {
            self.give(span);
        }
    }

    fn close_braces(&mut self, span: Span) {
        if self.open.len() > 1
            && let Some(number) = self.open.pop()
        {
            self.scopes.braces[number].end = span.range().start;
        }
        self.parentheses = 0;
        self.arguments.clear();
    }

    /// Returns whether a token begins a label: `^name:` or `^name(`, on a line of its own.
    fn is_label(&self, at: usize) -> bool {
        let next = self.tokens.get(at + 1).map(|token| token.kind);
        let before = &self.text[..self.tokens[at].span.range().start];
        let line = before.trim_end_matches([' ', '\t']);
        matches!(next, Some(TokenKind::Mark(":" | "(")))
            && (line.is_empty() || line.ends_with('\n'))
    }

    /// Reads a list of results, an argument, or an operand; returns the number of the token behind.
    fn value(&mut self, at: usize) -> usize {
        let span = self.tokens[at].span;
        if self.kind(at + 1) == Some(TokenKind::Mark(":")) && self.parentheses > 0 {
            match self.is_of_block {
                true => self.give(span),
                false => self.arguments.push(span),
            }
            return at + 1;
        }
        let mut names = vec![span];
        let mut next = at + 1;
        loop {
            if self.kind(next) == Some(TokenKind::Mark(":"))
                && self.kind(next + 1) == Some(TokenKind::Number)
            {
                next += 2;
            }
            match self.kind(next) {
                Some(TokenKind::Mark("=")) => {
                    names.into_iter().for_each(|span| self.give(span));
                    return next;
                }
                Some(TokenKind::Mark(",")) if self.kind(next + 1) == Some(TokenKind::Value) => {
                    names.push(self.tokens[next + 1].span);
                    next += 2;
                }
                // Operands: none of them is the first of a list of results.
                _ => return next,
            }
        }
    }

    fn kind(&self, at: usize) -> Option<TokenKind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn give(&mut self, span: Span) {
        let braces = self.open.last().copied().unwrap_or(0);
        self.scopes.given.push(NameDefinition { span, braces });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks up the name at the mark `$0`; returns the line of its definition.
    fn line_of(marked: &str) -> Option<usize> {
        let at = marked.find("$0").expect("the text has a mark");
        let text = marked.replace("$0", "");
        let name = tokens(&text, 0).find(|token| token.span.range().end == at);
        let name = &text[name.expect("the mark is behind a name").span.range()];
        let span = Scopes::of(&text).find(&text, name, at)?;
        Some(text[..span.range().start].matches('\n').count() + 1)
    }

    #[test]
    fn names_are_found_in_the_nearest_braces() {
        let cases = [
            ("%x = a\n%x = b\nc %x$0", Some(2)),
            ("c %x$0\n%x = b", Some(2)),
            ("func @f(%x: i32 {\n %y = \n a %x$0", Some(1)),
            ("func @f(%x: i32) {\n b {a = 1}\n %y = a %x$0", Some(1)),
            ("func @f(%x: i32) {\n}\nfunc @g() {\n a %x$0", None),
            ("%x = 1\nfunc @g() {\n a %x$0", None),
            ("%x = 1\nif {\n a %x$0", Some(1)),
            ("if {\n %x = 1\n}\n a %x$0", None),
            ("%a, %b:2 = (\n %b$0", Some(1)),
            ("%z = a %p, %q$0", None),
            ("{\n^b(%v: i32):\n c %v$0", Some(2)),
            ("{\n br ^b$0\n^a:\n^b(%v: i32):", Some(4)),
            ("func @f(%x: i32 {a.b}) attributes {c} {\n a %x$0", Some(1)),
            ("func @f(%x: i32) { tfrt.return }\n a %x$0", None),
            ("}}}\n%x = 1\n a %x$0", Some(2)),
        ];
        for (text, line) in cases {
            assert_eq!(line_of(text), line, "{text}");
        }
    }

    #[test]
    fn all_that_is_seen_is_listed_once() {
        let text = "func @f(%x: i32) {\n %y = a\n %y = b\n if {\n  %z = c\n  ";
        let scopes = Scopes::of(text);
        let all = scopes.all_before(text, text.len());
        let names: Vec<&str> = all.iter().map(|span| &text[span.range()]).collect();
        assert_eq!(names, ["%x", "%y", "%z"]);
    }
}
