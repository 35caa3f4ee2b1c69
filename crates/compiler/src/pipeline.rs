//! Pipelines of passes, which transform a module in the order asked for.
//!
//! A [`Pass`] is data: a name, what it needs of a module, what it breaks, and a
//! function. A [`Pipeline`] is a list of passes whose needs were checked against
//! each other before anything runs.
//!
//! | Property | Means | Given by | Broken by |
//! | --- | --- | --- | --- |
//! | [`Property::Sequenced`] | chains order all effects that conflict | `sequence-effects`, and every program that passes the verifier | none |
//! | [`Property::Streams`] | each operation has the stream that it will run in | `assign-streams` | whatever adds, removes or moves operations |

use std::{
    fmt,
    time::{Duration, Instant},
};

use tfrt_ir::{Diagnostics, Dialects, Module, similar, verifier::Chains, verify_in};

use crate::graph;
use crate::legalize::Context;
use crate::onnx::NoEvaluator;
use crate::passes;

/// A pass: a transformation of modules, or a report on them.
pub struct Pass {
    /// The name in `--passes`.
    pub name: &'static str,
    /// One sentence on what the pass does.
    pub summary: &'static str,
    /// The properties that a module must have before the pass.
    pub needs: &'static [Property],
    /// The properties that a module has after the pass.
    pub gives: &'static [Property],
    /// The properties that the pass may destroy; all others stay.
    pub breaks: &'static [Property],
    /// The function that runs the pass.
    pub run: PassFn,
}

/// The function of a pass. It takes any module that the verifier accepts; errors and remarks go into the diagnostics.
#[derive(Clone, Copy)]
pub enum PassFn {
    /// A function of the module alone.
    Plain(fn(&mut Module, &mut Diagnostics)),
    /// A function of the module and the context.
    WithContext(fn(&mut Module, &Context<'_>, &mut Diagnostics)),
}

/// A property that a module may have beyond being valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Chains order all effects that conflict. A module whose pipeline contains
    /// `sequence-effects` does not have it until then, and is verified without
    /// asking for chains.
    Sequenced,
    /// Operations carry the number of their stream.
    Streams,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Property::Sequenced => "sequenced",
            Property::Streams => "streams",
        })
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A list of passes that run one after the other.
///
/// # Examples
///
/// ```
/// use tfrt_compiler::pipeline::Pipeline;
/// use tfrt_ir::{Source, parse};
///
/// let text = "func.func @f() -> i32 {
///   %a = tfrt.constant.i32 1
///   %b = tfrt.constant.i32 2
///   tfrt.return %b : i32
/// }";
/// let mut module = parse(&Source::new("f.mlir", text))?;
/// Pipeline::parse("dce").unwrap().run(&mut module)?;
/// assert!(!module.to_string().contains("constant.i32 1"));
/// # Ok::<(), tfrt_ir::Diagnostics>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    passes: Vec<&'static Pass>,
    /// Whether the verifier runs after each pass.
    pub verify_each: bool,
}

/// The reason why a list of passes is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PipelineError {
    /// No pass has this name.
    UnknownPass {
        /// The unknown name.
        name: String,
        /// The closest name, if one is close.
        similar: Option<&'static str>,
    },
    /// A pass comes after one that destroys a property that it needs, or before the one that establishes it.
    Unmet {
        /// The pass.
        pass: &'static str,
        /// The property.
        need: Property,
    },
    /// A pass destroys a property that an earlier one established and that no pass used.
    Undone {
        /// The pass that destroys it.
        pass: &'static str,
        /// The pass that established it.
        giver: &'static str,
    },
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipelineError::UnknownPass { name, similar } => {
                write!(f, "expected a pass, found '{name}'")?;
                match similar {
                    Some(similar) => write!(f, "; did you mean '{similar}'?"),
                    None => f.write_str("; `tfrt opt --list` names them all"),
                }
            }
            PipelineError::Unmet { pass, need } => write!(
                f,
                "pass '{pass}' needs '{need}', which a module does not have there"
            ),
            PipelineError::Undone { pass, giver } => {
                write!(f, "pass '{pass}' undoes what '{giver}' did before it")
            }
        }
    }
}

impl std::error::Error for PipelineError {}

/// The time that one pass took.
#[derive(Clone, Copy, Debug)]
pub struct PassTiming {
    /// The pass.
    pub pass: &'static Pass,
    /// The time of the pass.
    pub time: Duration,
    /// The time of the verifier after it.
    pub verify_time: Duration,
}

impl Pipeline {
    /// Parses a list of names, separated by commas.
    ///
    /// # Errors
    ///
    /// Names that are no pass; passes that do not go together in that order.
    pub fn parse(names: &str) -> Result<Pipeline, PipelineError> {
        let names = names.split(',').map(str::trim);
        let passes: Result<_, _> = names
            .filter(|name| !name.is_empty())
            .map(|name| find(name).ok_or_else(|| unknown(name)))
            .collect();
        Pipeline::new(passes?)
    }

    /// Makes a pipeline of passes.
    ///
    /// # Errors
    ///
    /// Passes that do not go together in that order.
    pub fn new(passes: Vec<&'static Pass>) -> Result<Pipeline, PipelineError> {
        let gives = |pass: &&'static Pass, property| pass.gives.contains(&property);
        let mut held: Vec<(Property, &'static str)> = Vec::new();
        if !passes.iter().any(|pass| gives(pass, Property::Sequenced)) {
            held.push((Property::Sequenced, ""));
        }
        for pass in &passes {
            let is_held = |need: &Property| held.iter().any(|(property, _)| property == need);
            if let Some(&need) = pass.needs.iter().find(|need| !is_held(need)) {
                return Err(PipelineError::Unmet {
                    pass: pass.name,
                    need,
                });
            }
            let broken = held
                .iter()
                .find(|(property, _)| pass.breaks.contains(property));
            if let Some(&(_, giver)) = broken {
                return Err(PipelineError::Undone {
                    pass: pass.name,
                    giver,
                });
            }
            for &property in pass.gives {
                held.push((property, pass.name));
            }
        }
        Ok(Pipeline {
            passes,
            verify_each: false,
        })
    }

    /// Returns the passes in order.
    pub fn passes(&self) -> &[&'static Pass] {
        &self.passes
    }

    /// Returns whether the pipeline adds chains, so that a module may come without them.
    pub fn sequences(&self) -> bool {
        self.passes
            .iter()
            .any(|pass| pass.gives.contains(&Property::Sequenced))
    }

    /// Verifies a module before the first pass.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn verify(&self, module: &Module, dialects: &Dialects) -> Result<(), Diagnostics> {
        verify_in(module, dialects, chains(!self.sequences()))
    }

    /// Runs all passes, without kernels, on the built-in dialects; returns their remarks.
    ///
    /// # Errors
    ///
    /// The errors of the first pass that had any, or of the verifier.
    pub fn run(&self, module: &mut Module) -> Result<Diagnostics, Diagnostics> {
        self.run_with(module, &Context::new(&NoEvaluator), &mut |_, _| {})
    }

    /// Runs all passes in a context, and reports each when it is done.
    ///
    /// # Errors
    ///
    /// As for [`Pipeline::run`].
    pub fn run_with(
        &self,
        module: &mut Module,
        context: &Context<'_>,
        tell: &mut dyn FnMut(PassTiming, &Module),
    ) -> Result<Diagnostics, Diagnostics> {
        let dialects = graph::dialects(&context.dialects.rows);
        self.verify(module, &dialects)?;
        let mut diagnostics = Diagnostics::default();
        let mut is_sequenced = !self.sequences();
        for &pass in &self.passes {
            let begin = Instant::now();
            match pass.run {
                PassFn::Plain(run) => run(module, &mut diagnostics),
                PassFn::WithContext(run) => run(module, context, &mut diagnostics),
            }
            let time = begin.elapsed();
            if diagnostics.has_errors() {
                diagnostics.sort();
                return Err(diagnostics);
            }
            is_sequenced |= pass.gives.contains(&Property::Sequenced);
            let begin = Instant::now();
            if self.verify_each {
                verify_in(module, &dialects, chains(is_sequenced))
                    .map_err(|wrong| blame(pass, wrong))?;
            }
            let verify_time = begin.elapsed();
            let ran = PassTiming {
                pass,
                time,
                verify_time,
            };
            tell(ran, module);
        }
        Ok(diagnostics)
    }
}

/// Returns the rule on chains for a module that is sequenced or not.
fn chains(is_sequenced: bool) -> Chains {
    match is_sequenced {
        true => Chains::Required,
        false => Chains::Optional,
    }
}

/// Adds to errors of the verifier that a pass has caused them.
fn blame(pass: &Pass, wrong: Diagnostics) -> Diagnostics {
    let note = format!("the module was correct before pass '{}'", pass.name);
    let mut blamed = Diagnostics::default();
    for diagnostic in wrong {
        blamed.push(diagnostic.note(&*note));
    }
    blamed
}

/// Returns all passes, sorted by name.
pub fn all() -> &'static [&'static Pass] {
    passes::ALL
}

/// Returns the pass of a name.
pub fn find(name: &str) -> Option<&'static Pass> {
    all().iter().copied().find(|pass| pass.name == name)
}

fn unknown(name: &str) -> PipelineError {
    let names = all().iter().map(|pass| pass.name);
    PipelineError::UnknownPass {
        name: name.to_owned(),
        similar: similar::nearest(name, names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(names: &str) -> String {
        Pipeline::parse(names).unwrap_err().to_string()
    }

    #[test]
    fn passes_are_listed_by_name_and_found() {
        let names: Vec<&str> = all().iter().map(|pass| pass.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert!(names.iter().all(|name| find(name).is_some()));
        assert!(Pipeline::parse(" dce , cse,").is_ok());
    }

    #[test]
    fn unknown_passes_are_refused_with_a_suggestion() {
        let message = "expected a pass, found 'inlin'; did you mean 'inline'?";
        assert_eq!(refused("dce,inlin"), message);
        let message = "expected a pass, found 'loop-unroll'; `tfrt opt --list` names them all";
        assert_eq!(refused("loop-unroll"), message);
    }

    #[test]
    fn orders_that_make_no_sense_are_refused() {
        let message = "pass 'cse' undoes what 'assign-streams' did before it";
        assert_eq!(refused("assign-streams,cse"), message);
        let message = "pass 'assign-streams' needs 'sequenced', which a module does not have there";
        assert_eq!(refused("assign-streams,sequence-effects"), message);
    }
}
