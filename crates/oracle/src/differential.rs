//! Differential testing: compares runs of random programs with the evaluator's results.
//!
//! The caller runs a program and says what came of it; here programs are made,
//! evaluated and, when the two differ, shrunk to the smallest one that still
//! makes a difference.

use std::fmt;
use std::time::{Duration, Instant};

use tfrt_ir::{Diagnostics, Location, Module, Source, parse, verify};

use crate::{
    evaluate::{self, Ending, Limits, Refusal, Report},
    generate::{Options, generate},
    ordered,
    plan::Plan,
    program::Program,
    shrink::shrink,
};

/// The file name in the locations of random programs.
pub const FILE: &str = "random.mlir";

/// The most evaluations when a program is shrunk.
const N_TRIES: usize = 4_000;

/// The longest time of shrinking: a run that leaves something behind takes seconds.
const SHRINKING: Duration = Duration::from_secs(60);

/// The observed outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The way in which the program was run, for people.
    pub way: String,
    /// The printed text.
    pub stdout: String,
    /// Each error that was reported, as `LINE:COLUMN: MESSAGE`, in any order.
    pub errors: Vec<String>,
    /// The way in which the run ended.
    pub ending: Ending,
    /// A failure that must never happen: a leak, a hang, a panic.
    pub complaint: Option<String>,
}

/// A program that is to be run.
#[derive(Clone, Copy, Debug)]
pub struct TestProgram<'s> {
    /// The seed of the program; `None` if it is a smaller form of one that made a difference.
    pub seed: Option<u64>,
    /// The text of the program.
    pub text: &'s str,
    /// The parsed and verified module.
    pub module: &'s Module,
}

/// A difference that was found: a program whose run is not what the evaluator says.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The origin of the program: a seed, mostly.
    pub origin: String,
    /// The smallest program found.
    pub program: String,
    /// The evaluator's outcome.
    pub expected: Outcome,
    /// The outcome of the run.
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

/// A function that runs programs in one way or more, and returns the outcomes of each.
pub type Runner<'r> = dyn FnMut(&[TestProgram<'_>]) -> Vec<Vec<Outcome>> + 'r;

/// Runs the program of each seed and compares; returns how many there were.
///
/// `run` is given up to `n_together` programs at a time, and runs each in one way or more, each of
/// which must give what the evaluator says. It is called again for smaller programs, one at a time,
/// when one makes a difference.
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
    n_together: usize,
    run: &mut Runner<'_>,
) -> Result<u64, Box<Difference>> {
    let mut seeds = seeds.into_iter();
    let mut n_compared = 0;
    loop {
        let made = seeds
            .by_ref()
            .map(|seed| SeedProgram::new(seed, options(seed)));
        let made: Vec<SeedProgram> = made.take(n_together.max(1)).collect();
        if made.is_empty() {
            return Ok(n_compared);
        }
        let texts: Vec<String> = made.iter().map(|made| made.program.to_string()).collect();
        let programs = texts.iter().zip(&made);
        let programs = programs.map(|(text, made)| (text.as_str(), made.options.ordered));
        let judges = Judge::of_each(programs.collect());
        let cases = made.iter().zip(&texts).zip(judges);
        let cases = cases.filter_map(|((made, text), judge)| match judge {
            Ok(judge) => Some((made, text, judge)),
            // Some few programs run for too long.
            Err(UnfitProgram::Refused(Refusal::Exhausted(_))) => None,
            Err(unfit) => panic!("the program of seed {} {unfit}:\n{text}", made.seed),
        });
        let cases: Vec<(&SeedProgram, &String, Judge)> = cases.collect();
        n_compared += cases.len() as u64;
        let programs = cases.iter();
        let programs = programs.map(|(made, text, judge)| judge.program(text, Some(made.seed)));
        let outcomes = run(&programs.collect::<Vec<_>>());
        for ((made, text, judge), found) in cases.iter().zip(outcomes) {
            if let Some(found) = judge.rejected(found) {
                let difference = Difference {
                    origin: format!("seed {}", made.seed),
                    program: (*text).clone(),
                    expected: judge.expected.clone(),
                    found,
                };
                let smallest = smallest(difference, &made.program, made.options, run);
                return Err(Box::new(smallest));
            }
        }
    }
}

/// The program made from a seed.
struct SeedProgram {
    seed: u64,
    options: Options,
    program: Program,
}

impl SeedProgram {
    fn new(seed: u64, options: Options) -> SeedProgram {
        let program = generate(seed, options);
        SeedProgram {
            seed,
            options,
            program,
        }
    }
}

/// Shrinks a program while it makes a difference.
fn smallest(
    difference: Difference,
    program: &Program,
    options: Options,
    run: &mut Runner<'_>,
) -> Difference {
    let origin = format!("{}, shrunk", difference.origin);
    let mut smallest = difference;
    let begin = Instant::now();
    let mut differs = |program: &Program, n_runs: usize| {
        let text = program.to_string();
        let Ok(judge) = Judge::new(&text, options.ordered) else {
            return false;
        };
        let program = [judge.program(&text, None)];
        let mut once = || {
            run(&program)
                .into_iter()
                .find_map(|found| judge.rejected(found))
        };
        let mut runs = (0..n_runs).take_while(|_| begin.elapsed() < SHRINKING);
        let Some(found) = runs.find_map(|_| once()) else {
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

/// The reason why a text is no program to compare.
#[derive(Clone, Debug)]
pub enum UnfitProgram {
    /// The text does not parse, or does not verify.
    Rejected(Diagnostics),
    /// The evaluator has no report on the program.
    Refused(Refusal),
    /// An effect that may come before or after another one.
    Unordered(Location),
}

impl fmt::Display for UnfitProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitProgram::Rejected(errors) => write!(f, "is rejected: {}", errors.render(false)),
            UnfitProgram::Refused(refusal) => write!(f, "is refused: {refusal}"),
            UnfitProgram::Unordered(place) => write!(f, "has effects in no order, one at {place}"),
        }
    }
}

/// A judge of a program's runs: it knows the expected outcome.
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
    pub fn new(text: &str, ordered: bool) -> Result<Judge, UnfitProgram> {
        let mut judges = Judge::of_each(vec![(text, ordered)]);
        judges.pop().expect("one program has one judge")
    }

    /// Evaluates several programs, stage by stage: the data of a stage is in the caches then.
    fn of_each(programs: Vec<(&str, bool)>) -> Vec<Result<Judge, UnfitProgram>> {
        let parsed = |(text, _): &(&str, bool)| {
            parse(&Source::new(FILE, *text)).map_err(UnfitProgram::Rejected)
        };
        let modules: Vec<Result<Module, UnfitProgram>> = programs.iter().map(parsed).collect();
        let verified = |module: Result<Module, UnfitProgram>| {
            let module = module?;
            verify(&module).map_err(UnfitProgram::Rejected)?;
            Ok(module)
        };
        let modules: Vec<Result<Module, UnfitProgram>> =
            modules.into_iter().map(verified).collect();
        let plans: Vec<Result<Plan<'_>, UnfitProgram>> = modules.iter().map(plan_of).collect();
        let evaluated = |plan: &Result<Plan<'_>, UnfitProgram>| {
            let plan = plan.as_ref().map_err(UnfitProgram::clone)?;
            evaluate::run_plan(plan, LIMITS).map_err(UnfitProgram::Refused)
        };
        let reports: Vec<Result<Report, UnfitProgram>> = plans.iter().map(evaluated).collect();
        let checked = |(plan, (_, ordered)): (Result<Plan<'_>, UnfitProgram>, &(&str, bool))| {
            let plan = plan?;
            let pair = ordered::check_plan(&plan, *ordered);
            let place = |second| plan.module.op(second).location().clone();
            pair.map_err(|pair| UnfitProgram::Unordered(place(pair.second)))
        };
        let checks: Vec<Result<(), UnfitProgram>> =
            plans.into_iter().zip(&programs).map(checked).collect();
        let judge = |module: Result<Module, UnfitProgram>, report: Result<Report, UnfitProgram>| {
            Ok((module?, outcome(report?)))
        };
        let judged = modules.into_iter().zip(reports);
        let judged = judged.map(|(module, report)| judge(module, report));
        let judged = judged.zip(checks).zip(programs);
        let judges = judged.map(|((judged, check), (text, ordered))| {
            let (module, expected) = judged?;
            check?;
            Ok(Judge {
                module,
                expected,
                ordered,
                cancels: text.contains("tfrt_test.cancel"),
            })
        });
        judges.collect()
    }

    /// Returns the evaluator's outcome.
    pub fn expected(&self) -> &Outcome {
        &self.expected
    }

    fn program<'s>(&'s self, text: &'s str, seed: Option<u64>) -> TestProgram<'s> {
        let module = &self.module;
        TestProgram { seed, text, module }
    }

    /// Returns the first outcome that is not the expected one.
    pub fn rejected(&self, found: Vec<Outcome>) -> Option<Outcome> {
        found.into_iter().find(|found| !self.accepts(found))
    }

    /// Returns whether an outcome has the expected output and ending; reported errors are not
    /// looked at.
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

fn plan_of(module: &Result<Module, UnfitProgram>) -> Result<Plan<'_>, UnfitProgram> {
    let module = module.as_ref().map_err(UnfitProgram::clone)?;
    Plan::new(module).map_err(UnfitProgram::Refused)
}

/// The limits of a program's evaluation.
const LIMITS: Limits = Limits {
    steps: 1_000_000,
    depth: 1_000_000,
};

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

    /// Runs programs by a faulty runtime: it adds where it should subtract.
    fn faulty(programs: &[TestProgram<'_>]) -> Vec<Vec<Outcome>> {
        programs.iter().map(faulty_one).collect()
    }

    fn faulty_one(program: &TestProgram<'_>) -> Vec<Outcome> {
        let text = program
            .text
            .replace("\"tfrt.minus.i32\"", "\"tfrt.add.i32\"");
        let module = parse(&Source::new(FILE, text)).expect("the change leaves a program");
        vec![match evaluate::run(&module, LIMITS) {
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
        let difference = campaign(0..200, &options, 7, &mut faulty).expect_err("it subtracts");
        let n_lines = difference.program.lines().count();
        assert!(n_lines <= 14, "{difference}");
        assert!(
            difference.program.contains("tfrt.minus.i32"),
            "{difference}"
        );
    }

    #[test]
    fn a_runtime_without_a_fault_is_accepted() {
        let once = |program: &TestProgram<'_>| {
            vec![outcome(
                evaluate::run(program.module, LIMITS).expect("it was evaluated before"),
            )]
        };
        let mut run = |programs: &[TestProgram<'_>]| programs.iter().map(once).collect();
        let options = |_| Options {
            size: 6,
            ..Options::default()
        };
        assert_eq!(
            campaign(0..30, &options, 4, &mut run).map_err(|difference| difference.origin),
            Ok(30)
        );
    }
}
