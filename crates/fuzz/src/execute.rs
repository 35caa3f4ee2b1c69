//! Properties of random programs that are correct: they do what the oracle says.
//!
//! Bytes are the choices of the generators of `tfrt-oracle`, so that a search that is
//! guided by coverage changes the structure of programs. The first byte chooses what
//! is looked at.

use tfrt::bef::BefFile;
use tfrt_bef::BefBuffer;
use tfrt_compiler::pipeline::{Pass, Pipeline};
use tfrt_compiler::{CompileOptions, compile, decompile, pipeline};
use tfrt_differential::test_runtime::TestRuntime;
use tfrt_ir::{Module, Source, verify};
use tfrt_oracle::differential::{Difference, FILE, Judge, Outcome, UnfitProgram};
use tfrt_oracle::effects;
use tfrt_oracle::evaluate::Refusal;
use tfrt_oracle::generate::{Options, generate_from};
use tfrt_oracle::random::Random;

use crate::bytes::same;

/// The most passes in a row.
const MAX_PASSES: usize = 4;

thread_local! {
    /// Runtimes on this thread, and one with threads of its own, which end with this one.
    static RUNTIMES: Vec<TestRuntime> = TestRuntime::on_queues(&[2]);
}

/// Makes a program of choices, and checks that it does what the oracle says.
///
/// # Panics
///
/// If it does not on some queue, after some passes, or after the way to bytes, text and bytes; if
/// the generator makes a program that is none.
pub fn execute(choices: &[u8]) {
    let mut random = Random::of_choices(choices);
    match random.below(4) {
        0 | 1 => {
            let options = options(&mut random);
            let text = generate_from(random, options).to_string();
            if let Some(judge) = judged(&text, options.ordered) {
                comes_back(&bytes_of(&parsed(&text)));
                runs(&text, &judge);
            }
        }
        2 => {
            let passes = passes(&mut random);
            let options = Options {
                ordered: true,
                // What passes may do to failures is up to each of them.
                failures: false,
                ..options(&mut random)
            };
            let text = generate_from(random, options).to_string();
            if let Some(judge) = judged(&text, true) {
                passes_keep(&text, &judge, &passes);
            }
        }
        _ => {
            let passes = passes(&mut random);
            let program = effects::program_from(random, 12);
            sequencing_keeps(&program, &passes);
        }
    }
}

fn options(random: &mut Random) -> Options {
    Options {
        size: *random.pick(&[5, 12, 24, 3]),
        ordered: !random.chance(12),
        ..Options::default()
    }
}

/// Draws passes that can stand in any order, one at least.
fn passes(random: &mut Random) -> Vec<&'static Pass> {
    let mut plain: Vec<&Pass> = pipeline::all()
        .iter()
        .copied()
        .filter(|pass| pass.gives.is_empty() && pass.needs.is_empty())
        .collect();
    let mut passes: Vec<&Pass> = (0..1 + random.below(MAX_PASSES))
        .map(|_| *random.pick(&plain))
        .collect();
    plain = pipeline::all().to_vec();
    if random.chance(30) {
        let last = plain.into_iter().find(|pass| pass.name == "assign-streams");
        passes.extend(last);
    }
    passes
}

/// Asks the oracle about a program; some few run for too long.
fn judged(text: &str, ordered: bool) -> Option<Judge> {
    match Judge::new(text, ordered) {
        Ok(judge) => Some(judge),
        Err(UnfitProgram::Refused(Refusal::Exhausted(_))) => None,
        Err(unfit) => panic!("a program was made that {unfit}:\n{text}"),
    }
}

fn parsed(text: &str) -> Module {
    match tfrt_ir::parse(&Source::new(FILE, text)) {
        Ok(module) => module,
        Err(diagnostics) => panic!("{diagnostics}\n{text}"),
    }
}

fn bytes_of(module: &Module) -> BefBuffer {
    match compile(module, &CompileOptions::default()) {
        Ok(bytes) => bytes,
        Err(diagnostics) => panic!("{diagnostics}\n{module}"),
    }
}

fn opened(bytes: &BefBuffer) -> BefFile {
    match BefFile::open(bytes.clone()) {
        Ok(file) => file,
        Err(error) => panic!("the gate refuses what was compiled: {error}"),
    }
}

/// Checks that bytes are those of the text that they stand for.
fn comes_back(bytes: &BefBuffer) {
    let restored = match decompile(&opened(bytes)) {
        Ok(restored) => restored,
        Err(diagnostics) => panic!("{diagnostics}"),
    };
    assert!(restored.warnings.is_empty(), "{}", restored.warnings);
    if let Err(diagnostics) = verify(&restored.module) {
        panic!("what was decompiled does not verify: {diagnostics}");
    }
    same(bytes, &bytes_of(&restored.module));
}

/// Runs a program on each queue.
fn outcomes(file: &BefFile) -> Vec<Outcome> {
    RUNTIMES.with(|runtimes| runtimes.iter().map(|runtime| runtime.run(file)).collect())
}

/// Checks that a program does on each queue what the oracle says.
fn runs(text: &str, judge: &Judge) {
    let file = opened(&bytes_of(&parsed(text)));
    if let Some(found) = judge.rejected(outcomes(&file)) {
        let difference = Difference {
            origin: "choices".to_owned(),
            program: text.to_owned(),
            expected: judge.expected().clone(),
            found,
        };
        panic!("{difference}");
    }
}

/// Puts a program through passes; the oracle must expect what it expected before, and the runtime
/// do that.
fn passes_keep(text: &str, judge: &Judge, passes: &[&'static Pass]) {
    let module = transformed(text, passes.to_vec());
    let after = module.to_string();
    let Some(new) = judged(&after, true) else {
        return;
    };
    if !judge.accepts_unreported(new.expected()) {
        let difference = Difference {
            origin: format!("passes {passes:?} on\n{text}"),
            program: after,
            expected: judge.expected().clone(),
            found: new.expected().clone(),
        };
        panic!("{difference}");
    }
    // The text, not the module: lists of users have the order in which operands were set, which
    // the text does not tell.
    comes_back(&bytes_of(&parsed(&after)));
    runs(&after, &new);
}

fn transformed(text: &str, passes: Vec<&'static Pass>) -> Module {
    let mut pipeline = match Pipeline::new(passes) {
        Ok(pipeline) => pipeline,
        Err(error) => panic!("{error}"),
    };
    pipeline.verify_each = true;
    let mut module = parsed(text);
    if let Err(diagnostics) = pipeline.run(&mut module) {
        panic!("{:?}: {diagnostics}\n{text}", pipeline.passes());
    }
    module
}

/// Puts chains into a program that has none; it must print what it prints from top to bottom.
fn sequencing_keeps(program: &effects::Program, after: &[&'static Pass]) {
    let sequence = pipeline::find("sequence-effects").expect("there is such a pass");
    let passes = [&[sequence], after].concat();
    let module = transformed(&program.text, passes);
    let bytes = bytes_of(&parsed(&module.to_string()));
    comes_back(&bytes);
    let file = opened(&bytes);
    for outcome in outcomes(&file) {
        let printed: String = outcome
            .stdout
            .lines()
            .filter(|line| line.starts_with("int32 = "))
            .map(|line| format!("{line}\n"))
            .collect();
        let is_same = printed == program.printed && outcome.complaint.is_none();
        assert!(
            is_same,
            "{}, {:?}:\n{}\nsequenced, {after:?}:\n{module}\nexpected:\n{}found:\n{printed}",
            outcome.way, outcome.complaint, program.text, program.printed
        );
    }
}
