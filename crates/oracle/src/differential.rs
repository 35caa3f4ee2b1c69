//! Compares what random programs print with what they ought to.
//!
//! The caller runs a program and says what came of it; here programs are made,
//! evaluated and, when the two differ, shrunk to the smallest one that still
//! makes a difference.

use std::fmt;

use tfrt_ir::{Diagnostics, Location, Module, Source, parse, verify};

use crate::{
    evaluate::{self, Ending, Limits, Refusal, Report},
    generate::{Options, generate},
    ordered,
    program::Program,
    shrink::shrink,
};

/// The name of the file that programs are said to be in.
pub const FILE: &str = "random.mlir";

/// Evaluations asked for when a program is shrunk.
const N_TRIES: usize = 4_000;

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How it was run, for people.
    pub way: String,
    /// What was printed.
    pub stdout: String,
    /// Each error that was reported, as `LINE:COLUMN: MESSAGE`, in any order.
    pub errors: Vec<String>,
    /// How it ended.
    pub ending: Ending,
    /// What must never happen: a leak, a hang, a panic.
    pub complaint: Option<String>,
}

/// A program that is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'s> {
    /// What it was made from; none if it is a smaller form of one that made a difference.
    pub seed: Option<u64>,
    /// It as text.
    pub text: &'s str,
    /// It parsed and verified.
    pub module: &'s Module,
}

/// A program whose run is not what it ought to be.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What it was made from: a seed, mostly.
    pub origin: String,
    /// The smallest program found.
    pub program: String,
    /// What the evaluator says on it.
    pub expected: Outcome,
    /// What came of its run.
    pub found: Outcome,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            origin,
            program,
            expected,
            found,
        } = self;
        writeln!(f, "{origin}:\n{program}")?;
        if let Some(complaint) = &found.complaint {
            return write!(f, "{}: {complaint}", found.way);
        }
        writeln!(f, "expected, {:?}:\n{}", expected.ending, expected.stdout)?;
        writeln!(
            f,
            "found, {:?}, {}:\n{}",
            found.ending, found.way, found.stdout
        )?;
        writeln!(f, "errors expected: {:#?}", expected.errors)?;
        write!(f, "errors found: {:#?}", found.errors)
    }
}

impl std::error::Error for Difference {}

/// Runs the program of each seed and compares; returns how many there were.
///
/// `run` is given the program and runs it in one way or more, each of which must
/// give what the evaluator says. It is called again for smaller programs when one
/// makes a difference.
///
/// # Errors
///
/// The first difference.
///
/// # Panics
///
/// When a program was made that is none: the generator is wrong then.
pub fn campaign(
    seeds: impl IntoIterator<Item = u64>,
    options: &dyn Fn(u64) -> Options,
    run: &mut dyn FnMut(Subject<'_>) -> Vec<Outcome>,
) -> Result<u64, Box<Difference>> {
    let mut n_compared = 0;
    for seed in seeds {
        let options = options(seed);
        let program = generate(seed, options);
        let text = program.to_string();
        let judge = match Judge::new(&text, options.ordered) {
            Ok(judge) => judge,
            // Some few programs run for too long.
            Err(Unfit::Refused(Refusal::Exhausted(_))) => continue,
            Err(unfit) => panic!("the program of seed {seed} {unfit}:\n{text}"),
        };
        n_compared += 1;
        if let Some(found) = judge.rejected(run(judge.subject(&text, Some(seed)))) {
            let expected = judge.expected;
            let difference = Difference {
                origin: format!("seed {seed}"),
                program: text,
                expected,
                found,
            };
            return Err(Box::new(smallest(difference, &program, options, run)));
        }
    }
    Ok(n_compared)
}

/// Shrinks a program while it makes a difference.
fn smallest(
    difference: Difference,
    program: &Program,
    options: Options,
    run: &mut dyn FnMut(Subject<'_>) -> Vec<Outcome>,
) -> Difference {
    let origin = format!("{}, shrunk", difference.origin);
    let mut smallest = difference;
    let mut differs = |program: &Program, n_runs: usize| {
        let text = program.to_string();
        let Ok(judge) = Judge::new(&text, options.ordered) else {
            return false;
        };
        let Some(found) = (0..n_runs).find_map(|_| judge.rejected(run(judge.subject(&text, None))))
        else {
            return false;
        };
        let expected = judge.expected;
        smallest = Difference {
            origin: origin.clone(),
            program: text,
            expected,
            found,
        };
        true
    };
    // A difference that depends on time may come once in many runs, and is
    // told as it came if it does not come again.
    let n_runs = if differs(program, 3) {
        3
    } else if differs(program, 300) {
        100
    } else {
        return smallest;
    };
    shrink(program, N_TRIES / n_runs * 3, &mut |program| {
        differs(program, n_runs)
    });
    smallest
}

/// Why a text is no program to compare.
#[derive(Clone, Debug)]
pub enum Unfit {
    /// It does not parse, or does not verify.
    Rejected(Diagnostics),
    /// The evaluator has no report on it.
    Refused(Refusal),
    /// An effect that may come before or after another one.
    Unordered(Location),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Rejected(errors) => write!(f, "is rejected: {}", errors.render(false)),
            Unfit::Refused(refusal) => write!(f, "is refused: {refusal}"),
            Unfit::Unordered(place) => write!(f, "has effects in no order, one at {place}"),
        }
    }
}

/// Knows what a program ought to do.
#[derive(Clone, Debug)]
pub struct Judge {
    module: Module,
    expected: Outcome,
    ordered: bool,
    cancels: bool,
}

impl Judge {
    /// Evaluates a program; `ordered` tells whether each of its lines has one place only.
    ///
    /// # Errors
    ///
    /// Why it is none, or not one to be compared.
    pub fn new(text: &str, ordered: bool) -> Result<Judge, Unfit> {
        let source = Source::new(FILE, text);
        let module = parse(&source).and_then(|module| verify(&module).map(|()| module));
        let module = module.map_err(Unfit::Rejected)?;
        let report = evaluate(&module).map_err(Unfit::Refused)?;
        let check = if ordered {
            ordered::check
        } else {
            ordered::check_lines
        };
        let pair = check(&module).map_err(Unfit::Refused)?;
        pair.map_err(|pair| Unfit::Unordered(module.op(pair.second).location().clone()))?;
        let cancels = text.contains("tfrt_test.cancel");
        Ok(Judge {
            module,
            expected: outcome(report),
            ordered,
            cancels,
        })
    }

    /// Returns what the evaluator says.
    pub fn expected(&self) -> &Outcome {
        &self.expected
    }

    fn subject<'s>(&'s self, text: &'s str, seed: Option<u64>) -> Subject<'s> {
        let module = &self.module;
        Subject { seed, text, module }
    }

    /// Returns the first outcome that is not what it ought to be.
    pub fn rejected(&self, found: Vec<Outcome>) -> Option<Outcome> {
        found.into_iter().find(|found| !self.accepts(found))
    }

    /// Returns whether an outcome prints the same and ends in the same way; what it
    /// reports is not looked at.
    pub fn accepts_unreported(&self, found: &Outcome) -> bool {
        let expected = &self.expected;
        let printed = match self.ordered {
            true => expected.stdout == found.stdout,
            false => sorted(expected.stdout.lines()) == sorted(found.stdout.lines()),
        };
        printed && expected.ending == found.ending && found.complaint.is_none()
    }

    fn accepts(&self, found: &Outcome) -> bool {
        let expected = &self.expected;
        // Who has not run when a request is cancelled has nothing to report.
        let reported = self.cancels
            || sorted(expected.errors.iter().map(String::as_str))
                == sorted(found.errors.iter().map(String::as_str));
        reported && self.accepts_unreported(found)
    }
}

fn evaluate(module: &Module) -> Result<Report, Refusal> {
    evaluate::run(
        module,
        Limits {
            steps: 1_000_000,
            ..Limits::default()
        },
    )
}

fn outcome(report: Report) -> Outcome {
    let errors = report.errors.iter().map(|error| match &error.location {
        Location::FileLineCol { line, column, .. } => format!("{line}:{column}: {}", error.message),
        other => format!("{other}: {}", error.message),
    });
    Outcome {
        errors: errors.collect(),
        stdout: report.stdout,
        ending: report.ending,
        ..Outcome::default()
    }
}

fn sorted<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A runtime with a fault: it adds where it should subtract.
    fn faulty(subject: Subject<'_>) -> Vec<Outcome> {
        let text = subject
            .text
            .replace("\"tfrt.minus.i32\"", "\"tfrt.add.i32\"");
        let module = parse(&Source::new(FILE, text)).expect("the change leaves a program");
        vec![match evaluate(&module) {
            Ok(report) => outcome(report),
            Err(refusal) => Outcome {
                complaint: Some(refusal.to_string()),
                ..Outcome::default()
            },
        }]
    }

    #[test]
    fn a_fault_is_found_and_shown_by_a_small_program() {
        let options = |_| Options::default();
        let difference = campaign(0..200, &options, &mut faulty).expect_err("it subtracts");
        let n_lines = difference.program.lines().count();
        assert!(n_lines <= 14, "{difference}");
        assert!(
            difference.program.contains("tfrt.minus.i32"),
            "{difference}"
        );
    }

    #[test]
    fn a_runtime_without_a_fault_is_accepted() {
        let mut run = |subject: Subject<'_>| {
            vec![outcome(
                evaluate(subject.module).expect("it was evaluated before"),
            )]
        };
        let options = |_| Options {
            size: 6,
            ..Options::default()
        };
        assert_eq!(
            campaign(0..30, &options, &mut run).map_err(|difference| difference.origin),
            Ok(30)
        );
    }
}
