//! What the tests of all passes do.

use expect_test::Expect;
use tfrt_ir::{Module, Source, parse};

use crate::pipeline::Pipeline;

/// Runs passes over a text, with the verifier after each, and compares what is
/// printed.
pub(super) fn check(passes: &str, text: &str, expected: Expect) {
    expected.assert_eq(&run(passes, text));
}

/// Returns the module after passes as text, or what is wrong.
pub(super) fn run(passes: &str, text: &str) -> String {
    match transformed(passes, text) {
        Ok(module) => {
            let text = module.to_string();
            let again = parse(&Source::new("again.mlir", text.clone())).unwrap();
            assert_eq!(again.to_string(), text);
            let lines = text.lines();
            lines
                .filter(|line| !matches!(*line, "module {" | "}"))
                .map(|line| format!("{}\n", line.strip_prefix("  ").unwrap_or(line)))
                .collect()
        }
        Err(wrong) => wrong,
    }
}

/// Returns the module after passes.
pub(super) fn transformed(passes: &str, text: &str) -> Result<Module, String> {
    let mut pipeline = Pipeline::parse(passes).map_err(|error| error.to_string())?;
    pipeline.verify_each = true;
    let mut module = parse(&Source::new("test.mlir", text)).map_err(|wrong| wrong.render(false))?;
    pipeline
        .run(&mut module)
        .map_err(|wrong| wrong.render(false))?;
    Ok(module)
}
