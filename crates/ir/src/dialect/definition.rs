//! [`OpDef`]: the definition of one operation.

use std::{fmt, sync::Arc};

use super::{AttributeKind, Effects, Format, Traits, ValueKind};
use crate::{
    diagnostic::Diagnostics,
    module::{Module, OpId},
    verifier::{Mistake, VerifyContext},
};

/// The definition of an operation: operands, results, attributes, regions, traits, effects, text form, documentation.
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
    /// The names of the regions; empty if they have none.
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

/// A check by which an entry that is made of other data goes beyond what entries say.
#[derive(Clone)]
pub(crate) struct CheckOp(pub(crate) Arc<CheckFn>);

/// A function that returns the mistakes of an operation.
pub type CheckFn = dyn Fn(&Module, OpId) -> Vec<Mistake> + Send + Sync;

impl fmt::Debug for CheckOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckOp")
    }
}

/// The declaration of an operand or result: its name, for messages and documentation, and its type's kind.
#[derive(Clone, Copy, Debug)]
pub struct ValueDef {
    /// The name, which says what the value is for.
    pub name: &'static str,
    /// The kind of types that are allowed.
    pub kind: ValueKind,
    /// Whether the value may be left out, with all that are declared behind it.
    pub optional: bool,
}

impl ValueDef {
    /// Declares a value that is always there.
    pub const fn new(name: &'static str, kind: ValueKind) -> ValueDef {
        let optional = false;
        ValueDef {
            name,
            kind,
            optional,
        }
    }

    /// Makes the value one that may be left out.
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

/// The declared results of an operation.
#[derive(Clone, Debug)]
pub enum Results {
    /// Just these results, in this order.
    Exactly(Vec<ValueDef>),
    /// These results, in this order, and any number more behind them.
    AtLeast(Vec<ValueDef>, ValueDef),
    /// One result for each operand behind the declared ones, of the operand's type.
    LikeRest(ValueDef),
}

impl Results {
    /// Returns the results that are always there, in front of all others.
    pub fn declared(&self) -> &[ValueDef] {
        match self {
            Results::Exactly(declared) | Results::AtLeast(declared, _) => declared,
            Results::LikeRest(_) => &[],
        }
    }
}

/// The declaration of an operation's attribute.
#[derive(Clone, Copy, Debug)]
pub struct AttributeDef {
    /// The name.
    pub name: &'static str,
    /// The kind of attributes that are allowed.
    pub kind: AttributeKind,
    /// Whether the generic verifier reports it when the attribute is missing. Some operations have a text of their own
    /// for a missing attribute.
    pub required: bool,
    /// Whether the attribute may be absent.
    pub optional: bool,
    /// Whether the attribute is for the compiler alone: the kernel does not see it.
    pub compile_time: bool,
    /// The default, as text; empty if there is none.
    pub default: &'static str,
    /// The values that a string may have; empty if any will do.
    pub choices: &'static [&'static str],
    /// The meaning of the attribute, with its unit.
    pub meaning: &'static str,
}

/// An error that a kernel reports.
#[derive(Clone, Copy, Debug)]
pub struct ErrorDef {
    /// The canonical code, as `Unknown`.
    pub code: &'static str,
    /// The message; what differs from case to case is in capitals.
    pub message: &'static str,
    /// The condition under which the error is reported.
    pub when: &'static str,
}

/// The way an operation is executed, which says when its results are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// Not executed: the operation gives programs their structure.
    Structure,
    /// Executed by a kernel of a library that is not part of this runtime.
    Elsewhere,
    /// Executed by a kernel whose results are there when it returns.
    #[default]
    Synchronous,
    /// Executed by a kernel whose results may come later.
    Asynchronous,
    /// Executed by a kernel that has functions called, whose results are its own.
    Calls,
    /// Compiled to other kernels, which the compiler puts in its place.
    Compiled,
}

/// The parts of an entry, for callers that have them as data of another kind.
#[derive(Clone)]
pub struct OpParts {
    /// The full name.
    pub name: &'static str,
    /// The summary: one sentence, without its stop.
    pub summary: &'static str,
    /// The details that the summary leaves open, as Markdown; may be empty.
    pub details: &'static str,
    /// The operands; those that may be left out come last.
    pub operands: Vec<ValueDef>,
    /// The declaration of further operands, if there may be any number of them.
    pub rest: Option<ValueDef>,
    /// The type of a last operand that stands for some of the others: how many there are is not checked then.
    pub stand_in: Option<ValueKind>,
    /// The results; those that may be left out come last.
    pub results: Results,
    /// The attributes.
    pub attributes: Vec<AttributeDef>,
    /// The names of the regions.
    pub regions: &'static [&'static str],
    /// The traits.
    pub traits: Traits,
    /// The check of an operation beyond all that.
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

    /// Returns the summary, one sentence.
    pub fn summary_text(&self) -> &'static str {
        self.summary
    }

    /// Returns the details that the summary leaves open, as Markdown; often nothing.
    pub fn details_text(&self) -> &'static str {
        self.details
    }

    /// Returns the declared operands.
    pub fn operand_defs(&self) -> &[ValueDef] {
        &self.operands
    }

    /// Returns the declaration of further operands, if the operation takes any number of them.
    pub fn rest_def(&self) -> Option<&ValueDef> {
        self.rest.as_ref()
    }

    /// Returns the type of a last operand that stands for some of the others, as a pass may put it there.
    pub fn stand_in(&self) -> Option<ValueKind> {
        self.stand_in
    }

    /// Returns the declared results.
    pub fn result_defs(&self) -> &Results {
        &self.results
    }

    /// Returns the declared attributes.
    pub fn attribute_defs(&self) -> &[AttributeDef] {
        &self.attributes
    }

    /// Returns the meaning of further attributes, if the operation takes any number of them.
    pub fn more_attributes_meaning(&self) -> Option<&'static str> {
        self.more_attributes
    }

    /// Returns the number of regions.
    pub fn n_regions(&self) -> usize {
        self.regions
    }

    /// Returns the traits.
    pub fn trait_set(&self) -> Traits {
        self.traits
    }

    /// Returns whether the operation has all these traits.
    pub fn is(&self, traits: Traits) -> bool {
        self.traits.contains(traits)
    }

    /// Returns the way the operation is executed, which says when its results are there.
    pub fn execution_kind(&self) -> Execution {
        self.execution
    }

    /// Returns the errors that the kernel reports, besides those of operands.
    pub fn error_defs(&self) -> &[ErrorDef] {
        &self.errors
    }

    /// Returns the description of the operation's own textual form, if it has one.
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

    /// Returns the example program, if there is one.
    pub fn example_program(&self) -> Option<&Example> {
        self.example.as_ref()
    }

    /// Returns how many functions the kernel takes, regions included, and whether it takes further ones.
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

    /// Returns the position of the declared chain operand, if there is one.
    pub fn chain_operand(&self) -> Option<usize> {
        let is_chain = |operand: &ValueDef| operand.kind == ValueKind::Chain;
        self.operands.iter().position(is_chain)
    }

    /// Returns the position of the declared chain result, if there is one.
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
    /// Returns the text that is shown: a program, or the body of a function `@main`.
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

    /// Returns the output of `@main`, a line each without the last line's end.
    pub fn output(&self) -> &'static str {
        self.output
    }
}
