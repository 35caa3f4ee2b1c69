//! Random programs that are written without chains print what they print from top to bottom, once
//! `sequence-effects` has put the chains in, on four threads.
//!
//! | Variable | Means | If unset |
//! | --- | --- | --- |
//! | `TFRT_SEQUENCING_PROGRAMS` | number of programs | as many as take ten seconds, 4,000 at most |
//! | `TFRT_SEQUENCING_SEED` | the first seed | 0 |

use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt::bef::BefFile;
use tfrt::host::CapturedOutput;
use tfrt::{MultiThreadedWorkQueue, Output, Program, Runtime};
use tfrt_compiler::pipeline::Pipeline;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_ir::{Source, parse, verify};
use tfrt_oracle::effects;

/// The time that results may be to come. Programs take milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The duration of a run whose number of programs is not given.
const BUDGET: Duration = Duration::from_secs(10);

/// Pipelines of passes that programs are put through; chains must survive all of them.
const PIPELINES: [&str; 5] = [
    "sequence-effects",
    "sequence-effects,merge-chains,cse,dce",
    "sequence-effects,inline,canonicalize",
    "inline,cse,sequence-effects",
    "fold,sequence-effects,assign-streams",
];

#[test]
fn sequenced_programs_print_what_they_print_from_top_to_bottom() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("TFRT_SEQUENCING_SEED").unwrap_or(0);
    let wanted = number("TFRT_SEQUENCING_PROGRAMS");
    let mut bench = Bench::new();
    let begin = Instant::now();
    let mut n_programs = 0;
    for seed in first..first + wanted.unwrap_or(4_000) {
        if wanted.is_none() && begin.elapsed() > BUDGET {
            break;
        }
        if seed % 64 == 0 {
            // What was printed before is copied each time.
            bench = Bench::new();
        }
        let size = 4 + usize::try_from(seed % 5).expect("it is below 5") * 5;
        let program = effects::program(seed, size);
        for passes in PIPELINES {
            let (sequenced, printed) = bench.run(passes, &program.text);
            assert_eq!(
                printed, program.printed,
                "seed {seed}, passes {passes}:\n{}\nsequenced:\n{sequenced}",
                program.text
            );
        }
        n_programs += 1;
    }
    println!(
        "{n_programs} programs through {} pipelines",
        PIPELINES.len()
    );
}

struct Bench {
    runtime: Runtime,
    printed: CapturedOutput,
}

impl Bench {
    fn new() -> Bench {
        let (output, printed) = Output::captured();
        let queue = MultiThreadedWorkQueue::new(4, 4).expect("threads can be started");
        let runtime = Runtime::builder()
            .queue(Arc::new(queue))
            .output(output)
            .build();
        Bench { runtime, printed }
    }

    /// Returns the program after the passes, and what it printed.
    fn run(&self, passes: &str, text: &str) -> (String, String) {
        let mut pipeline = Pipeline::parse(passes).unwrap();
        pipeline.verify_each = true;
        let mut module = parse(&Source::new("random.mlir", text)).unwrap();
        if let Err(wrong) = pipeline.run(&mut module) {
            panic!("{wrong}\n{text}\n{module}");
        }
        verify(&module).unwrap();
        let bytes = compile(&module, &CompileOptions::default()).unwrap();
        let file = BefFile::open(bytes).unwrap();
        let program = Program::from_file(file, &self.runtime).unwrap();
        let main = program.function("main").unwrap();
        let before = self.printed.printed().len();
        let results = main.call(&self.runtime.context(), ()).into_results();
        let queue = self.runtime.host().queue();
        let deadline = Some(Instant::now() + PATIENCE);
        assert!(queue.await_until(&results, deadline).unwrap(), "{module}");
        self.runtime.quiesce().unwrap();
        let printed = self.printed.printed().split_off(before);
        (module.to_string(), printed)
    }
}
