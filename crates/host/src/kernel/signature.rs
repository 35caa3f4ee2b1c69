//! The signature of a kernel, read off its Rust types.
//!
//! Nobody writes a [`Signature`] down: [`KernelParam::PART`](super::KernelParam::PART) and
//! [`KernelReturn::PARTS`](super::KernelReturn::PARTS) are one [`Part`] per parameter and result,
//! constants of their types. Load compares it with every use of the kernel in a program, so that a
//! running kernel can rely on the counts.

use std::fmt;

/// One operand of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandSpec {
    /// The MLIR name of the type; `None` accepts any type.
    pub type_name: Option<&'static str>,
    /// Whether the kernel waits for the value (`true`), or takes the handle as it is.
    pub strict: bool,
}

/// One attribute of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct AttributeSpec {
    /// How the kernel reads it, in words: `i32`, `string`, `array of i64`.
    pub kind: &'static str,
    /// Tells whether the bytes at an attribute can be read this way.
    pub readable: fn(tfrt_bef::AttributeView<'_>) -> bool,
}

/// One result of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultSpec {
    /// The MLIR name of the type; `None` gives any type.
    pub type_name: Option<&'static str>,
}

/// When the results of a kernel are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Completion {
    /// When the kernel returns.
    #[default]
    Synchronous,
    /// At some time after the kernel has returned.
    Asynchronous,
    /// After calls of functions that the executor makes for the kernel.
    Calls,
}

/// The operands, attributes, functions and results of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// Operands with a parameter of their own, in order.
    pub operands: Vec<OperandSpec>,
    /// Whether further operands are accepted after them.
    pub more_operands: bool,
    /// Attributes with a parameter of their own, in the order of their names.
    pub attributes: Vec<AttributeSpec>,
    /// Whether further attributes are accepted after them.
    pub more_attributes: bool,
    /// How many functions (references and regions) have a parameter of their own.
    pub n_functions: usize,
    /// Whether further functions are accepted after them.
    pub more_functions: bool,
    /// Results, in order.
    pub results: Vec<ResultSpec>,
    /// Whether the number of results is the program's choice.
    pub any_results: bool,
    /// When the results are there.
    pub completion: Completion,
    /// Whether the kernel may go on after it has returned, as its [`Step`](super::Step)s do.
    pub detaches: bool,
    /// Whether a task of the work queue brings the result, of which [`Later`](super::Later) tells the executor.
    pub queues: bool,
    /// Whether the kernel gets at its host or its request.
    pub sees_surroundings: bool,
    /// Whether the kernel runs as soon as one operand is there, as an operation marked `bef.nonstrict` does.
    pub starts_early: bool,
    /// Whether the kernel may answer with an error of its own.
    pub fails: bool,
}

impl Signature {
    /// Tells whether the results are there, or called for, when the kernel returns.
    pub(crate) fn ends_when_it_returns(&self) -> bool {
        self.completion != Completion::Asynchronous && !self.detaches
    }

    /// Tells whether the executor has nothing to do for the kernel once it has returned, if its results are
    /// there then.
    pub(crate) fn only_returns(&self) -> bool {
        self.completion != Completion::Calls && !self.detaches && !self.queues
    }

    /// Tells whether nobody can see in which order this kernel and others run: it neither takes nor
    /// gives a chain, and can't print, since it does not get at its host.
    pub(crate) fn is_silent(&self) -> bool {
        let mut operands = self.operands.iter().map(|operand| operand.type_name);
        let mut results = self.results.iter().map(|result| result.type_name);
        !self.sees_surroundings
            && operands.all(|name| name != Some(CHAIN))
            && results.all(|name| name != Some(CHAIN))
    }

    /// Tells whether not even its errors show in which order this kernel and others run.
    pub(crate) fn leaves_no_trace(&self) -> bool {
        self.is_silent() && !self.fails && self.completion == Completion::Synchronous
    }

    /// Tells whether operand `index` delays the kernel until its value is settled.
    pub fn is_strict(&self, index: usize) -> bool {
        self.operands
            .get(index)
            .is_none_or(|operand| operand.strict)
    }

    /// Tells whether the last of `n_operands` operands only orders: the kernel declares one less,
    /// and none of those declared is a chain.
    pub fn has_trailing_chain(&self, n_operands: usize) -> bool {
        !self.more_operands
            && n_operands == self.operands.len() + 1
            && self
                .operands
                .iter()
                .all(|operand| operand.type_name != Some(CHAIN))
    }

    /// Tells whether `n_operands` is a number of operands that the kernel takes.
    pub fn accepts_operands(&self, n_operands: usize) -> bool {
        n_operands == self.operands.len()
            || (self.more_operands && n_operands > self.operands.len())
            || self.has_trailing_chain(n_operands)
    }

    fn add(&mut self, part: Part) {
        let completion = match part {
            Part::Several(parts) => return parts.iter().for_each(|part| self.add(**part)),
            Part::Operand(operand) => return self.operands.push(operand),
            Part::MoreOperands => return self.more_operands = true,
            Part::Attribute(attribute) => return self.attributes.push(attribute),
            Part::MoreAttributes => return self.more_attributes = true,
            Part::Function => return self.n_functions += 1,
            Part::MoreFunctions => return self.more_functions = true,
            Part::Surroundings => return self.sees_surroundings = true,
            Part::Detaches => return self.detaches = true,
            Part::StartsEarly => return self.starts_early = true,
            Part::Queues => {
                // The closure sees no more than the body that makes it.
                self.queues = true;
                Completion::Asynchronous
            }
            Part::Result(result, completion) => {
                self.results.push(result);
                completion
            }
            Part::AnyResults(completion) => {
                self.any_results = true;
                completion
            }
        };
        self.completion = self.completion.max(completion);
    }
}

/// The part of a [`Signature`] that one parameter or result adds.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Those of several parameters.
    Several(&'static [&'static Part]),
    /// An operand.
    Operand(OperandSpec),
    /// All operands that are left.
    MoreOperands,
    /// An attribute.
    Attribute(AttributeSpec),
    /// All attributes that are left.
    MoreAttributes,
    /// A function.
    Function,
    /// All functions that are left.
    MoreFunctions,
    /// The host or the request.
    Surroundings,
    /// A result, and when it is there.
    Result(ResultSpec, Completion),
    /// As many results as the program asks for, and when they are there.
    AnyResults(Completion),
    /// The kernel may go on after it has returned.
    Detaches,
    /// A task of the work queue brings the result.
    Queues,
    /// The kernel runs as soon as one operand is there.
    StartsEarly,
}

impl Part {
    pub(super) const fn operand(type_name: Option<&'static str>, strict: bool) -> Part {
        Part::Operand(OperandSpec { type_name, strict })
    }

    pub(super) const fn result(type_name: Option<&'static str>, completion: Completion) -> Part {
        Part::Result(ResultSpec { type_name }, completion)
    }
}

/// A signature as a constant: the parts of the parameters, those of the results, and whether it fails.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Parts(
    pub(super) &'static [&'static Part],
    pub(super) &'static [&'static Part],
    pub(super) bool,
);

impl Parts {
    /// Puts the signature together.
    pub(super) fn signature(&self) -> Signature {
        let mut signature = Signature::default();
        for part in self.0.iter().chain(self.1) {
            signature.add(**part);
        }
        signature.fails = self.2;
        signature
    }
}

/// The MLIR name of the chain type.
pub(crate) const CHAIN: &str = "!tfrt.chain";

/// `(i32, !tfrt.chain) {i32} -> i32`
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut operands: Vec<String> = self
            .operands
            .iter()
            .map(|operand| {
                let name = operand.type_name.unwrap_or("any");
                if operand.strict {
                    name.to_owned()
                } else {
                    format!("async {name}")
                }
            })
            .collect();
        if self.more_operands {
            operands.push("any...".to_owned());
        }
        write!(f, "({})", operands.join(", "))?;
        let mut attributes: Vec<&str> = self.attributes.iter().map(|spec| spec.kind).collect();
        if self.more_attributes {
            attributes.push("any...");
        }
        if !attributes.is_empty() {
            write!(f, " {{{}}}", attributes.join(", "))?;
        }
        let mut functions = vec!["function"; self.n_functions];
        if self.more_functions {
            functions.push("function...");
        }
        if !functions.is_empty() {
            write!(f, " [{}]", functions.join(", "))?;
        }
        let results: Vec<&str> = self
            .results
            .iter()
            .map(|spec| spec.type_name.unwrap_or("any"))
            .collect();
        match (self.any_results, results.as_slice()) {
            (true, _) => write!(f, " -> any..."),
            (false, [one]) => write!(f, " -> {one}"),
            (false, many) => write!(f, " -> ({})", many.join(", ")),
        }
    }
}
