//! Setters by which the entries of operations are written down.
//!
//! ```text
//! OpDef::new("my.div")
//!     .summary("The quotient and the remainder")
//!     .operand("dividend", I32)
//!     .operand("divisor", I32)
//!     .result("quotient", I32)
//!     .result("remainder", I32)
//!     .fails("Unknown", "Divide by zero", "the divisor is 0")
//!     .pure()
//!     .format("operands attr-dict")
//! ```
//!
//! What an entry says on effects is in `effects.rs`.

use super::{
    AttributeDef, AttributeKind, Effects, ErrorDef, Example, Execution, Format, OpDef, Results,
    Traits, ValueDef, ValueKind, VerifyOp,
};

impl OpDef {
    /// Starts the entry of an operation without operands, results and form.
    pub(crate) fn new(name: &'static str) -> OpDef {
        OpDef {
            name,
            summary: "",
            details: "",
            operands: Vec::new(),
            rest: None,
            stand_in: None,
            results: Results::Exactly(Vec::new()),
            attributes: Vec::new(),
            more_attributes: None,
            regions: 0,
            region_names: &[],
            traits: Traits::default(),
            effects: Effects::default(),
            execution: Execution::default(),
            errors: Vec::new(),
            format_text: None,
            format: None,
            verify: None,
            check: None,
            example: None,
            generic: None,
        }
    }

    /// Sets the summary: one sentence without its stop.
    pub(crate) fn summary(mut self, summary: &'static str) -> OpDef {
        self.summary = summary;
        self
    }

    /// Sets the details that the summary leaves open, in whole sentences of Markdown.
    pub(crate) fn details(mut self, details: &'static str) -> OpDef {
        self.details = details;
        self
    }

    pub(crate) fn operand(mut self, name: &'static str, kind: ValueKind) -> OpDef {
        self.operands.push(ValueDef::new(name, kind));
        self
    }

    /// Adds any number of further operands of any type.
    pub(crate) fn rest(self, name: &'static str) -> OpDef {
        self.rest_of(name, ValueKind::Any)
    }

    /// Adds any number of further operands of a kind.
    pub(crate) fn rest_of(mut self, name: &'static str, kind: ValueKind) -> OpDef {
        self.rest = Some(ValueDef::new(name, kind));
        self
    }

    /// Adds a result.
    pub(crate) fn result(mut self, name: &'static str, kind: ValueKind) -> OpDef {
        let result = ValueDef::new(name, kind);
        match &mut self.results {
            Results::Exactly(results) => results.push(result),
            other => *other = Results::Exactly(vec![result]),
        }
        self
    }

    /// Adds any number of further results of any type.
    pub(crate) fn any_results(self, name: &'static str) -> OpDef {
        self.any_results_of(name, ValueKind::Any)
    }

    /// Adds any number of further results of a kind.
    pub(crate) fn any_results_of(mut self, name: &'static str, kind: ValueKind) -> OpDef {
        let declared = self.results.declared().to_vec();
        self.results = Results::AtLeast(declared, ValueDef::new(name, kind));
        self
    }

    pub(crate) fn results_like_rest(mut self, name: &'static str) -> OpDef {
        let kind = ValueKind::Any;
        self.results = Results::LikeRest(ValueDef::new(name, kind));
        self
    }

    pub(crate) fn attribute(
        self,
        name: &'static str,
        kind: AttributeKind,
        meaning: &'static str,
    ) -> OpDef {
        self.any_attribute(name, kind, meaning, |attribute| attribute.required = true)
    }

    /// Adds an attribute whose absence the operation's own check, or load, reports.
    pub(crate) fn unchecked(
        self,
        name: &'static str,
        kind: AttributeKind,
        meaning: &'static str,
    ) -> OpDef {
        self.any_attribute(name, kind, meaning, |_| ())
    }

    /// Adds an attribute that may be absent.
    pub(crate) fn optional(
        self,
        name: &'static str,
        kind: AttributeKind,
        meaning: &'static str,
    ) -> OpDef {
        self.any_attribute(name, kind, meaning, |attribute| attribute.optional = true)
    }

    /// Adds an attribute whose absence the operation's own check reports, and which the kernel does
    /// not see.
    pub(crate) fn compile_time(
        self,
        name: &'static str,
        kind: AttributeKind,
        meaning: &'static str,
    ) -> OpDef {
        let compile_time = |attribute: &mut AttributeDef| attribute.compile_time = true;
        self.any_attribute(name, kind, meaning, compile_time)
    }

    fn any_attribute(
        mut self,
        name: &'static str,
        kind: AttributeKind,
        meaning: &'static str,
        change: impl FnOnce(&mut AttributeDef),
    ) -> OpDef {
        let mut attribute = AttributeDef {
            name,
            kind,
            required: false,
            optional: false,
            compile_time: false,
            default: "",
            choices: &[],
            meaning,
        };
        change(&mut attribute);
        self.attributes.push(attribute);
        self
    }

    /// Allows any number of further attributes.
    pub(crate) fn more_attributes(mut self, meaning: &'static str) -> OpDef {
        self.more_attributes = Some(meaning);
        self
    }

    pub(crate) fn regions(mut self, regions: usize) -> OpDef {
        self.regions = regions;
        self
    }

    pub(crate) fn traits(mut self, traits: &[Traits]) -> OpDef {
        for &one in traits {
            self.traits = self.traits.with(one);
        }
        self
    }

    pub(crate) fn pure(self) -> OpDef {
        self.traits(&[Traits::PURE])
    }

    pub(crate) fn execution(mut self, execution: Execution) -> OpDef {
        self.execution = execution;
        self
    }

    /// States that the results may come after the kernel has returned.
    pub(crate) fn asynchronous(self) -> OpDef {
        self.execution(Execution::Asynchronous)
    }

    /// States that the kernel has functions called.
    pub(crate) fn calls(self) -> OpDef {
        self.execution(Execution::Calls)
    }

    /// States that the operation has no kernel.
    pub(crate) fn structure(self) -> OpDef {
        self.execution(Execution::Structure)
    }

    /// Adds an error that the kernel reports.
    pub(crate) fn fails(
        mut self,
        code: &'static str,
        message: &'static str,
        when: &'static str,
    ) -> OpDef {
        self.errors.push(ErrorDef {
            code,
            message,
            when,
        });
        self
    }

    pub(crate) fn format(mut self, format: &'static str) -> OpDef {
        self.format_text = Some(format);
        self.format = Some(Format::parse(format));
        self
    }

    pub(crate) fn verify(mut self, verify: VerifyOp) -> OpDef {
        self.verify = Some(verify);
        self
    }

    /// Sets the example: a program, or what stands between the braces of a function `@main` without
    /// arguments, but for its return.
    pub(crate) fn example(mut self, text: impl Into<String>) -> OpDef {
        let (text, output) = (text.into(), "");
        self.example = Some(Example { text, output });
        self
    }

    /// Sets what `@main` of the example prints.
    pub(crate) fn prints(mut self, output: &'static str) -> OpDef {
        if let Some(example) = &mut self.example {
            example.output = output;
        }
        self
    }

    /// Sets the generic form, where names and types do not tell it.
    pub(crate) fn generic(mut self, text: impl Into<String>) -> OpDef {
        self.generic = Some(text.into());
        self
    }
}
