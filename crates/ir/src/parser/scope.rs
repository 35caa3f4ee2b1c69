//! Scopes of names: the value that each name stands for.
//!
//! A name is looked up in the scope of the nearest region that is isolated
//! from above. Regions that are not isolated add to that scope and take back
//! what they added. A name used before its definition stands for a forward
//! value, which its definition fills in.

use std::{
    collections::HashMap,
    hash::{Hash, Hasher},
};

use smallvec::SmallVec;

use super::{Parsed, Parser};
use crate::{
    codes,
    dialect::ValueKind,
    index::{NameTarget, Role},
    lexer::Kind,
    module::{OpId, OpState, ValueId},
    name::TextHash,
    similar,
    source::Span,
    types::Type,
};

/// `%name` or `%name#number` as written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand<'a> {
    pub name: &'a str,
    pub number: u32,
    pub span: Span,
}

/// The type that an operand must have.
#[derive(Clone, Copy)]
pub(crate) enum ExpectedType<'t> {
    /// Just this type.
    Type(&'t Type),
    /// A type of the declared kind; nothing is known if that allows several.
    Kind(ValueKind),
}

impl ExpectedType<'_> {
    fn accepts(self, ty: &Type) -> bool {
        match self {
            ExpectedType::Type(wanted) => wanted == ty,
            ExpectedType::Kind(ValueKind::Any) => *ty == Type::None,
            ExpectedType::Kind(kind) => kind.accepts(ty),
        }
    }

    fn ty(self) -> Type {
        match self {
            ExpectedType::Type(wanted) => wanted.clone(),
            ExpectedType::Kind(kind) => kind.ty().unwrap_or(Type::None),
        }
    }
}

/// The key of a value: `%name`, or `%name#number`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key<'a> {
    name: &'a str,
    number: u32,
}

impl<'a> Key<'a> {
    fn new(name: &'a str, number: u32) -> Key<'a> {
        Key { name, number }
    }
}

/// Hashes in as few steps as tell keys apart: every operand is looked up.
impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write(self.name.as_bytes());
        if self.number > 0 {
            hasher.write_u32(self.number);
        }
    }
}

struct Entry {
    value: ValueId,
    span: Span,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Defined,
    /// The name was used, and is not defined yet.
    Forward,
    /// The name was meant to be defined by text that could not be read.
    Lost,
}

#[derive(Default)]
struct Scope<'a> {
    values: HashMap<Key<'a>, Entry, TextHash>,
    /// The names that regions within, which are not isolated, have defined.
    inner: Vec<Vec<Key<'a>>>,
    /// Whether definitions may be missing because of errors.
    damaged: bool,
    n_forward: usize,
}

impl<'a> Scope<'a> {
    /// Returns the value whose name is closest to one that is not there, and
    /// where it is defined.
    fn nearest(&self, name: &str) -> Option<(&'a str, Span)> {
        const MAX_COMPARED: usize = 10_000;
        if self.values.len() > MAX_COMPARED {
            return None;
        }
        let defined = self.values.iter();
        let defined = defined.filter(|(_, entry)| entry.state == State::Defined);
        let close = similar::nearest(name, defined.map(|(key, _)| key.name))?;
        let (close, entry) = self.values.get_key_value(&Key::new(close, 0))?;
        Some((close.name, entry.span))
    }
}

/// All scopes that are open.
#[derive(Default)]
pub(super) struct Scopes<'a> {
    open: Vec<Scope<'a>>,
    /// Cleared scopes, to be used again.
    spare: Vec<Scope<'a>>,
}

impl<'a> Scopes<'a> {
    pub fn enter_isolated(&mut self) {
        let scope = self.spare.pop().unwrap_or_default();
        self.open.push(scope);
    }

    pub fn enter_shared(&mut self) {
        self.top().inner.push(Vec::new());
    }

    pub fn leave_shared(&mut self) {
        let scope = self.top();
        for key in scope.inner.pop().unwrap_or_default() {
            scope.values.remove(&key);
        }
    }

    /// Notes that definitions may be missing.
    pub fn damage(&mut self) {
        self.top().damaged = true;
    }

    fn top(&mut self) -> &mut Scope<'a> {
        self.open.last_mut().expect("the program opens a scope")
    }
}

impl<'a> Parser<'a> {
    pub(super) fn enter_isolated(&mut self) {
        self.scopes.enter_isolated();
    }

    /// Closes an isolated scope; reports names that were never defined.
    pub(super) fn leave_isolated(&mut self) {
        let mut scope = self.scopes.open.pop().expect("entered before");
        if scope.n_forward > 0 && !scope.damaged {
            let values = scope.values.values();
            let mut spans: Vec<Span> = values
                .filter(|entry| entry.state == State::Forward)
                .map(|entry| entry.span)
                .collect();
            spans.sort();
            for span in spans {
                let name = &self.text[span.range()];
                let is_number = name[1..].bytes().all(|byte| byte.is_ascii_digit());
                let help = match is_number {
                    true => format!("results have the names before '=', here {name}, or none"),
                    false => format!("nothing in this region defines {name}"),
                };
                let outer = self.scopes.open.iter().rev();
                let outer = outer.filter_map(|scope| scope.values.get(&Key::new(name, 0)));
                let outside = outer
                    .filter(|entry| entry.state == State::Defined)
                    .map(|entry| entry.span)
                    .next();
                let error = self
                    .error(
                        codes::UNDEFINED_VALUE,
                        span,
                        "use of undeclared SSA value name",
                    )
                    .help(help);
                let close = match self.diagnostics.is_full() {
                    true => None,
                    false => scope.nearest(name),
                };
                self.push(match (outside, close) {
                    (Some(defined), _) => error
                        .note_at("it is defined outside", Some(self.source), defined)
                        .help("regions see their arguments only; pass it in as an operand"),
                    (None, Some((close, defined))) => {
                        error.note_at(format!("there is {close}"), Some(self.source), defined)
                    }
                    (None, None) => error,
                });
            }
        }
        // Clearing takes time in the capacity: a large table is not kept.
        const MAX_KEPT: usize = 1 << 10;
        if scope.values.capacity() > MAX_KEPT {
            return;
        }
        scope.values.clear();
        scope.inner.clear();
        scope.damaged = false;
        scope.n_forward = 0;
        self.scopes.spare.push(scope);
    }

    /// Parses `%name` (`#number`)?.
    pub(crate) fn operand(&mut self) -> Parsed<Operand<'a>> {
        if self.token.kind != Kind::Percent {
            return self.expected(codes::EXPECTED_VALUE, "SSA operand");
        }
        let (name, mut span) = (self.token_text(), self.token.span());
        self.bump();
        let mut number = 0;
        let is_adjacent = self.token.start == span.range().end;
        if self.token.kind == Kind::Hash && is_adjacent {
            number = match self.token_text()[1..].parse() {
                Ok(number) => number,
                Err(_) => {
                    return self.fail(
                        codes::RESULT_NUMBER,
                        self.token.span(),
                        "invalid SSA value result number",
                    );
                }
            };
            span = span.to(self.token.span());
            self.bump();
        }
        Ok(Operand { name, number, span })
    }

    /// Returns the type of the value that an operand stands for, if that is defined above.
    pub(crate) fn type_above(&mut self, operand: Operand<'a>) -> Option<Type> {
        let key = Key::new(operand.name, operand.number);
        let entry = self.scopes.top().values.get(&key)?;
        match entry.state {
            State::Defined => Some(self.module.value_type(entry.value).clone()),
            State::Forward | State::Lost => None,
        }
    }

    /// Returns the value that an operand stands for, given its type.
    pub(crate) fn resolve(
        &mut self,
        operand: Operand<'a>,
        wanted: ExpectedType<'_>,
    ) -> Parsed<ValueId> {
        let key = Key::new(operand.name, operand.number);
        let scope = self.scopes.top();
        if let Some(entry) = scope.values.get(&key) {
            let (value, prior, state) = (entry.value, entry.span, entry.state);
            let found = self.module.value_type(value);
            if wanted.accepts(found) {
                return Ok(value);
            }
            let ty = wanted.ty();
            if state == State::Lost {
                return Ok(self.module.create_forward_value(ty));
            }
            let name = operand.name;
            let message = format!(
                "use of value '{name}' expects different type than prior uses: '{ty}' vs '{found}'"
            );
            if self.is_said(&message, operand.span) {
                return Err(super::ParseFailed);
            }
            let error = self.error(codes::TYPE_MISMATCH, operand.span, message);
            let note = match state {
                State::Forward => format!("prior use here, with the type '{found}'"),
                _ => format!("prior use here, which defines it with the type '{found}'"),
            };
            let error = error.note_at(note, Some(self.source), prior);
            let is_signature =
                matches!(ty, Type::Function(_)) && !matches!(found, Type::Function(_));
            self.push(match is_signature {
                true => error.help("write the types of the operands only, without '->'"),
                false => error,
            });
            return Err(super::ParseFailed);
        }
        if operand.number > 0
            && scope
                .values
                .get(&Key::new(operand.name, 0))
                .is_some_and(|entry| entry.state == State::Defined)
        {
            let results =
                (0..operand.number).map(|number| scope.values.get(&Key::new(operand.name, number)));
            let n_results = results.take_while(Option::is_some).count();
            let defined = scope.values.get(&Key::new(operand.name, 0));
            let defined = defined.map(|entry| entry.span).unwrap_or_default();
            let note = match n_results {
                1 => format!("'{}' stands for one result", operand.name),
                n => format!("'{}' stands for {n} results", operand.name),
            };
            let error = self.error(
                codes::NO_SUCH_RESULT,
                operand.span,
                "reference to invalid result number",
            );
            let error = error.note_at(note, Some(self.source), defined);
            self.push(error.help("results are numbered from 0"));
            return Err(super::ParseFailed);
        }
        scope.n_forward += 1;
        let value = self.module.create_forward_value(wanted.ty());
        let entry = Entry {
            value,
            span: operand.span,
            state: State::Forward,
        };
        self.scopes.top().values.insert(key, entry);
        Ok(value)
    }

    /// Adds the mention of an operand to the index.
    pub(super) fn mention_operand(&mut self, operand: Operand<'a>) {
        if self.index.is_none() {
            return;
        }
        let key = Key::new(operand.name, operand.number);
        if let Some(entry) = self.scopes.top().values.get(&key) {
            let target = NameTarget::Value(entry.value);
            self.mention(operand.span, Role::Use, target);
        }
    }

    /// Adds the definition of a name to the index, also for where it was used before.
    fn mention_definition(&mut self, operand: Operand<'a>, value: ValueId) {
        let Some(index) = &mut self.index else {
            return;
        };
        let key = Key::new(operand.name, operand.number);
        let prior = self.scopes.top().values.get(&key);
        if let Some(prior) = prior.filter(|entry| entry.state == State::Forward) {
            index.replace(prior.value, value);
        }
        index.mention(operand.span, Role::Definition, NameTarget::Value(value));
    }

    /// Makes a name stand for a value that exists, a block argument.
    pub(crate) fn define(&mut self, operand: Operand<'a>, value: ValueId) -> Parsed<()> {
        self.mention_definition(operand, value);
        let key = Key::new(operand.name, operand.number);
        let scope = self.scopes.top();
        let entry = Entry {
            value,
            span: operand.span,
            state: State::Defined,
        };
        let Some(old) = scope.values.insert(key, entry) else {
            if let Some(inner) = scope.inner.last_mut() {
                inner.push(key);
            }
            return Ok(());
        };
        match old.state {
            State::Lost => Ok(()),
            State::Forward => {
                scope.n_forward -= 1;
                if let Some(inner) = scope.inner.last_mut() {
                    inner.push(key);
                }
                self.check_forward_type(operand, &old, &self.module.value_type(value).clone())?;
                self.module.replace_all_uses(old.value, value);
                Ok(())
            }
            State::Defined => self.redefinition(operand, old.span),
        }
    }

    fn redefinition(&mut self, operand: Operand<'a>, prior: Span) -> Parsed<()> {
        let message = format!("redefinition of SSA value '{}'", operand.name);
        let error = self.error(codes::REDEFINED_VALUE, operand.span, message);
        let error = error.note_at("previously defined here", Some(self.source), prior);
        self.push(error);
        Err(super::ParseFailed)
    }

    fn check_forward_type(&mut self, operand: Operand<'a>, old: &Entry, ty: &Type) -> Parsed<()> {
        let used_as = self.module.value_type(old.value);
        if used_as == ty {
            return Ok(());
        }
        let name = operand.name;
        let message = format!(
            "definition of SSA value '{name}#{}' has type '{ty}', but a use expects '{used_as}'",
            operand.number
        );
        let error = self.error(codes::TYPE_MISMATCH, operand.span, message);
        let error = error.note_at("previously used here", Some(self.source), old.span);
        self.push(error);
        Err(super::ParseFailed)
    }

    /// Makes an operation and defines its results' names, each for a number of results.
    pub(super) fn create(&mut self, state: &mut OpState, names: &[ResultName<'a>]) -> Parsed<OpId> {
        if names.is_empty() {
            return Ok(self.module.create_with_results(state, &[]));
        }
        let wanted: u64 = names.iter().map(|name| u64::from(name.count)).sum();
        let n_results = state.result_types.len();
        if wanted != n_results as u64 {
            let span = names[0].span.to(names[names.len() - 1].span);
            let message = match n_results {
                0 => "cannot name an operation with no results".to_owned(),
                n => format!("operation defines {n} results but was provided {wanted} to bind"),
            };
            let error = self.error(codes::RESULT_NAME_COUNT, span, message);
            let names = match n_results {
                0 => "it begins with its name, without '='".to_owned(),
                1 => "one name stands for it: '%name = ...'".to_owned(),
                n => format!(
                    "a name for each, with commas between, or one for all: '%name:{n} = ...'"
                ),
            };
            self.push(error.help(names));
            return Err(super::ParseFailed);
        }
        // Names of results that were used before, and now get their definition.
        let mut forward: SmallVec<[Option<ValueId>; 2]> = SmallVec::new();
        let scope = self.scopes.top();
        if scope.n_forward > 0 {
            for name in names {
                for number in 0..name.count {
                    let entry = scope.values.get(&Key::new(name.name, number));
                    let entry = entry.filter(|entry| entry.state == State::Forward);
                    forward.push(entry.map(|entry| entry.value));
                }
            }
        }
        let mut index = 0;
        // The types that forward values are compared with.
        let types = match forward.is_empty() {
            true => SmallVec::new(),
            false => state.result_types.clone(),
        };
        let op = self.module.create_with_results(state, &forward);
        for name in names {
            for number in 0..name.count {
                let operand = Operand {
                    name: name.name,
                    number,
                    span: name.span,
                };
                let value = self.module.op(op).results()[index];
                match types.get(index) {
                    Some(ty) => self.define_result(operand, value, ty)?,
                    None => self.define(operand, value)?,
                }
                index += 1;
            }
        }
        Ok(op)
    }

    fn define_result(&mut self, operand: Operand<'a>, value: ValueId, ty: &Type) -> Parsed<()> {
        let key = Key::new(operand.name, operand.number);
        let scope = self.scopes.top();
        let is_forward = scope
            .values
            .get(&key)
            .is_some_and(|entry| entry.state == State::Forward);
        if !is_forward {
            return self.define(operand, value);
        }
        let entry = Entry {
            value,
            span: operand.span,
            state: State::Defined,
        };
        self.mention_definition(operand, value);
        let scope = self.scopes.top();
        let old = scope.values.insert(key, entry).expect("it is there");
        scope.n_forward -= 1;
        if let Some(inner) = scope.inner.last_mut() {
            inner.push(key);
        }
        self.check_forward_type(operand, &old, ty)
    }

    /// Lets the present token, the name of a value, count as defined.
    pub(super) fn lose_present(&mut self) {
        let name = ResultName {
            name: self.token_text(),
            count: 1,
            span: self.token.span(),
        };
        self.lose(&[name]);
    }

    /// Lets the results of an operation that could not be read count as
    /// defined, so that their uses are no errors.
    pub(super) fn lose(&mut self, names: &[ResultName<'a>]) {
        const MAX_LOST: u32 = 64;
        for name in names {
            for number in 0..name.count.min(MAX_LOST) {
                let key = Key::new(name.name, number);
                let value = self.module.create_forward_value(Type::None);
                let scope = self.scopes.top();
                let is_defined = scope
                    .values
                    .get(&key)
                    .is_some_and(|entry| entry.state == State::Defined);
                if is_defined {
                    continue;
                }
                let operand = Operand {
                    name: name.name,
                    number,
                    span: name.span,
                };
                self.mention_definition(operand, value);
                let scope = self.scopes.top();
                let entry = Entry {
                    value,
                    span: name.span,
                    state: State::Lost,
                };
                if let Some(old) = scope.values.insert(key, entry)
                    && old.state == State::Forward
                {
                    scope.n_forward -= 1;
                }
            }
        }
    }
}

/// `%name` or `%name:count` on the left of `=`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultName<'a> {
    pub name: &'a str,
    pub count: u32,
    pub span: Span,
}
