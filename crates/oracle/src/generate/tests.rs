use tfrt_ir::{Source, parse, verify};

use super::{Options, generate};
use crate::{
    evaluate::{Limits, run},
    ordered,
};

#[track_caller]
fn is_fine(seed: u64, options: Options) {
    let text = generate(seed, options).to_string();
    let module = parse(&Source::new("random.mlir", text.clone()))
        .and_then(|module| verify(&module).map(|()| module))
        .unwrap_or_else(|errors| panic!("seed {seed}: {}\n{text}", errors.render(false)));
    if let Err(refusal) = run(&module, Limits::default()) {
        panic!("seed {seed}: {refusal}\n{text}");
    }
    let check = if options.ordered {
        ordered::check
    } else {
        ordered::check_lines
    };
    if let Err(pair) = check(&module).expect("it ran") {
        let place = module.op(pair.second).location();
        panic!("seed {seed}: {pair} at {place}\n{text}");
    }
}

#[test]
fn random_programs_are_accepted_and_end_and_are_ordered() {
    for seed in 0..60 {
        is_fine(seed, Options::default());
        is_fine(
            seed,
            Options {
                ordered: false,
                ..Options::default()
            },
        );
        is_fine(
            seed,
            Options {
                size: 60,
                delays: true,
                faults: true,
                ..Options::default()
            },
        );
    }
}
