//! The entry of one operation, and what can be asked of it.

use std::{fmt, sync::Arc};

use super::{AttributeKind, Effects, Format, Traits, ValueKind};
use crate::{
    diagnostic::Diagnostics,
    module::{Module, OpId},
    verifier::{Mistake, VerifyContext},
};

/// Everything that is known about one operation.
#[derive(Clone, Debug)]
pub struct OpDef {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) details: &'static str,
    pub(super) operands: Vec<ValueDef>,
    pub(super) rest: Option<ValueDef>,
    pub(super) stand_in: Option<ValueKind>,
    pub(super) results: Results,
    pub(super) attributes: Vec<AttributeDef>,
    pub(super) more_attributes: Option<&'static str>,
    pub(super) regions: usize,
    /// What its regions are called; empty if they have no names.
    pub(super) region_names: &'static [&'static str],
    pub(super) traits: Traits,
    pub(super) effects: Effects,
    pub(super) execution: Execution,
    pub(super) errors: Vec<ErrorDef>,
    pub(super) format_text: Option<&'static str>,
    pub(super) format: Option<Format>,
    pub(super) verify: Option<VerifyOp>,
    pub(super) check: Option<CheckOp>,
    pub(super) example: Option<Example>,
    pub(super) generic: Option<String>,
}

/// A check of one operation beyond what its entry says as data.
pub type VerifyOp = fn(&VerifyContext<'_>, OpId, &mut Diagnostics);

/// What an entry that is made of other data asks of an operation, beyond what the entry says.
#[derive(Clone)]
pub(crate) struct CheckOp(pub(crate) Arc<CheckFn>);

/// Returns what is wrong with an operation.
pub type CheckFn = dyn Fn(&Module, OpId) -> Vec<Mistake> + Send + Sync;

impl fmt::Debug for CheckOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckOp")
    }
}

/// An operand or a result: its name, for messages and documentation, and what it
/// must be.
#[derive(Clone, Copy, Debug)]
pub struct ValueDef {
    /// What it is for.
    pub name: &'static str,
    /// What its type must be.
    pub kind: ValueKind,
    /// Whether it may be left out, with all that are declared behind it.
    pub optional: bool,
}

impl ValueDef {
    /// Makes one that is always there.
    pub const fn new(name: &'static str, kind: ValueKind) -> ValueDef {
        let optional = false;
        ValueDef {
            name,
            kind,
            optional,
        }
    }

    /// Says that it may be left out.
    #[must_use]
    pub const fn optional(self) -> ValueDef {
        let optional = true;
        ValueDef { optional, ..self }
    }

    /// Returns the name as it may stand behind a `%`.
    pub fn identifier(&self) -> String {
        self.name.replace(' ', "_")
    }
}

/// What the results of an operation are.
#[derive(Clone, Debug)]
pub enum Results {
    /// These, in this order.
    Exactly(Vec<ValueDef>),
    /// These, in this order, and any number more behind them.
    AtLeast(Vec<ValueDef>, ValueDef),
    /// One for each operand behind the declared ones, of the same type.
    LikeRest(ValueDef),
}

impl Results {
    /// Returns those that are always there, in front of all others.
    pub fn declared(&self) -> &[ValueDef] {
        match self {
            Results::Exactly(declared) | Results::AtLeast(declared, _) => declared,
            Results::LikeRest(_) => &[],
        }
    }
}

/// An attribute that an operation has.
#[derive(Clone, Copy, Debug)]
pub struct AttributeDef {
    /// Its name.
    pub name: &'static str,
    /// What it must be.
    pub kind: AttributeKind,
    /// Whether the generic verifier asks for it. Some operations have a text
    /// of their own for a missing attribute.
    pub required: bool,
    /// Whether it may be absent.
    pub optional: bool,
    /// Whether it is for the compiler alone: the kernel does not see it.
    pub compile_time: bool,
    /// What it is if it is absent, as text; empty if nothing stands for it.
    pub default: &'static str,
    /// Of a string: what it may be; empty if it may be anything.
    pub choices: &'static [&'static str],
    /// What it says, and in which unit.
    pub meaning: &'static str,
}

/// An error that a kernel reports.
#[derive(Clone, Copy, Debug)]
pub struct ErrorDef {
    /// The canonical code, as `Unknown`.
    pub code: &'static str,
    /// The message; what differs from case to case is in capitals.
    pub message: &'static str,
    /// When it is reported.
    pub when: &'static str,
}

/// Who runs an operation, and when its results are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// Nobody: it gives programs their structure.
    Structure,
    /// A kernel of a library that is not part of this runtime.
    Elsewhere,
    /// A kernel whose results are there when it returns.
    #[default]
    Synchronous,
    /// A kernel whose results may come later.
    Asynchronous,
    /// A kernel that has functions called, whose results are its own.
    Calls,
    /// Kernels that the compiler puts in its place.
    Compiled,
}

/// What an entry is made of, where somebody has it as data of another kind.
#[derive(Clone)]
pub struct OpParts {
    /// The full name.
    pub name: &'static str,
    /// One sentence on what it does, without its stop.
    pub summary: &'static str,
    /// What the summary leaves open, as Markdown; may be empty.
    pub details: &'static str,
    /// The operands; those that may be left out come last.
    pub operands: Vec<ValueDef>,
    /// What further operands are, if there may be any number of them.
    pub rest: Option<ValueDef>,
    /// The type of a last operand that stands for some of the others: how many there are is not checked then.
    pub stand_in: Option<ValueKind>,
    /// The results; those that may be left out come last.
    pub results: Results,
    /// The attributes.
    pub attributes: Vec<AttributeDef>,
    /// What its regions are called.
    pub regions: &'static [&'static str],
    /// Its properties.
    pub traits: Traits,
    /// What is asked of an operation beyond all that.
    pub check: Option<Arc<CheckFn>>,
}

impl From<OpParts> for OpDef {
    fn from(parts: OpParts) -> OpDef {
        let mut definition = OpDef::new(parts.name)
            .summary(parts.summary)
            .details(parts.details)
            .execution(Execution::Compiled)
            .regions(parts.regions.len())
            .traits(&[parts.traits]);
        definition.operands = parts.operands;
        definition.rest = parts.rest;
        definition.stand_in = parts.stand_in;
        definition.region_names = parts.regions;
        definition.results = parts.results;
        definition.attributes = parts.attributes;
        definition.check = parts.check.map(CheckOp);
        definition
    }
}

impl fmt::Debug for OpParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpParts")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A program that shows an operation.
#[derive(Clone, Debug)]
pub struct Example {
    pub(super) text: String,
    pub(super) output: &'static str,
}

impl OpDef {
    /// Returns the full name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the part of the name before the first point.
    pub fn dialect(&self) -> &'static str {
        self.name
            .split_once('.')
            .map_or(self.name, |(dialect, _)| dialect)
    }

    /// Returns one sentence on what it does.
    pub fn summary_text(&self) -> &'static str {
        self.summary
    }

    /// Returns what the summary leaves open, as Markdown; often nothing.
    pub fn details_text(&self) -> &'static str {
        self.details
    }

    /// Returns the operands that it always has.
    pub fn operand_defs(&self) -> &[ValueDef] {
        &self.operands
    }

    /// Returns what further operands are, if it takes any number of them.
    pub fn rest_def(&self) -> Option<&ValueDef> {
        self.rest.as_ref()
    }

    /// Returns the type of a last operand that stands for some of the others, as a pass may put it there.
    pub fn stand_in(&self) -> Option<ValueKind> {
        self.stand_in
    }

    /// Returns what its results are.
    pub fn result_defs(&self) -> &Results {
        &self.results
    }

    /// Returns its attributes.
    pub fn attribute_defs(&self) -> &[AttributeDef] {
        &self.attributes
    }

    /// Returns what further attributes mean, if it takes any number of them.
    pub fn more_attributes_meaning(&self) -> Option<&'static str> {
        self.more_attributes
    }

    /// Returns the number of its regions.
    pub fn n_regions(&self) -> usize {
        self.regions
    }

    /// Returns its properties.
    pub fn trait_set(&self) -> Traits {
        self.traits
    }

    /// Returns whether it has all these properties.
    pub fn is(&self, traits: Traits) -> bool {
        self.traits.contains(traits)
    }

    /// Returns who runs it, and when its results are there.
    pub fn execution_kind(&self) -> Execution {
        self.execution
    }

    /// Returns the errors that its kernel reports, besides those of operands.
    pub fn error_defs(&self) -> &[ErrorDef] {
        &self.errors
    }

    /// Returns the description of its own textual form, if it has one.
    pub fn format_text(&self) -> Option<&'static str> {
        self.format_text
    }

    pub(crate) fn assembly(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    pub(crate) fn check(&self) -> Option<&CheckFn> {
        self.check.as_ref().map(|check| &*check.0)
    }

    pub(crate) fn verifier(&self) -> Option<VerifyOp> {
        self.verify
    }

    /// Returns a program that shows it, if there is one.
    pub fn example_program(&self) -> Option<&Example> {
        self.example.as_ref()
    }

    /// Returns how many functions its kernel takes, regions included, and
    /// whether it takes further ones.
    pub fn n_functions(&self) -> (usize, bool) {
        let of_kind = |kind: AttributeKind| {
            let attributes = self.attributes.iter();
            attributes
                .filter(|attribute| attribute.kind == kind)
                .count()
        };
        let n_functions = self.regions + of_kind(AttributeKind::FlatSymbol);
        (n_functions, of_kind(AttributeKind::FlatSymbols) > 0)
    }

    /// Returns the position of the chain that it declares to take, if it does.
    pub fn chain_operand(&self) -> Option<usize> {
        let is_chain = |operand: &ValueDef| operand.kind == ValueKind::Chain;
        self.operands.iter().position(is_chain)
    }

    /// Returns the position of the chain that it declares to give, if it does.
    pub fn chain_result(&self) -> Option<usize> {
        let is_chain = |result: &ValueDef| result.kind == ValueKind::Chain;
        self.results.declared().iter().position(is_chain)
    }

    /// Returns the position of the operand that each argument of its regions
    /// takes the place of, for a given number of operands.
    pub fn shadowed_operands(&self, n_operands: usize) -> Vec<usize> {
        let rest = self.operands.len()..n_operands;
        if self.is(Traits::SHADOWS_RANGE) {
            return (0..2).chain(rest).collect();
        }
        rest.collect()
    }
}

impl Example {
    /// Returns what is shown: a program, or the body of a function `@main`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the whole program.
    pub fn program(&self) -> String {
        if self.text.contains("func.func") || self.text.contains("module") {
            return self.text.clone();
        }
        let mut program = "func.func @main() {\n".to_owned();
        for line in self.text.lines() {
            program.push_str(&format!("  {line}\n"));
        }
        program.push_str("  tfrt.return\n}\n");
        program
    }

    /// Returns what `@main` prints, a line each without the last line's end.
    pub fn output(&self) -> &'static str {
        self.output
    }
}
