//! Prints what programs ought to print: `evaluate FILE.mlir...`

use std::process::ExitCode;

use tfrt_ir::{Source, parse};
use tfrt_oracle::{
    evaluate::{Limits, run},
    ordered,
};

fn main() -> ExitCode {
    for path in std::env::args().skip(1) {
        let module = match Source::read(&path).and_then(|source| parse(&source)) {
            Ok(module) => module,
            Err(diagnostics) => {
                eprint!("{}", diagnostics.render(false));
                return ExitCode::FAILURE;
            }
        };
        if let Ok(Err(pair)) = ordered::check(&module) {
            let place = module.op(pair.second).location();
            eprintln!("{path}: {pair}, the second at {place}");
        }
        match run(&module, Limits::default()) {
            Ok(report) => {
                print!("{}", report.stdout);
                for error in &report.errors {
                    eprintln!("{}: error: {}", error.location, error.message);
                }
            }
            Err(refusal) => {
                eprintln!("{path}: {refusal}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
