//! Helpers for the tests of all passes.

use expect_test::Expect;
use tfrt_bef::DType;
use tfrt_ir::{Module, Source, parse};
use tfrt_ops::KernelQuery;

use crate::legalize::Context;
use crate::onnx::{EvaluatedValue, Evaluator, Placement, PrepareRule};
use crate::pipeline::Pipeline;

/// An evaluator whose kernels prepare constants, of fused nodes and recurrent layers, but evaluate nothing.
pub(super) struct Kernels;

impl Evaluator for Kernels {
    fn evaluate(&self, _: Module) -> Vec<Option<EvaluatedValue>> {
        Vec::new()
    }

    fn device(&self) -> Option<Placement> {
        Some(Placement {
            name: "FAKE:0".to_owned(),
            kind: "fake".to_owned(),
        })
    }

    fn runs_on_device(&self, node: &KernelQuery<'_>) -> bool {
        let (is_known, types) = match node.op {
            "add" | "pointwise" | "toy.Wave" => (true, node.types),
            "reduce" => (node.attrs.text("kind") == "sum", node.types),
            "norm" => (node.n_results == Some(1), node.types),
            "reshape" => (true, &node.types[..1]),
            "cast" => return true,
            _ => return false,
        };
        is_known && types.iter().all(|dtype| *dtype == Some(DType::F32))
    }

    fn read_on_host(&self, node: &KernelQuery<'_>) -> &'static [usize] {
        match node.op {
            "reshape" => &[1],
            _ => &[],
        }
    }

    fn replays_sections(&self) -> bool {
        true
    }

    fn prepares_on_device(&self, _: &KernelQuery<'_>) -> Option<PrepareRule> {
        Some(PrepareRule {
            inputs: &[1],
            types: &[],
            takes_attributes: false,
        })
    }

    fn prepares(&self, row: &str) -> Option<PrepareRule> {
        let types: &[DType] = match row {
            "dot" => &[DType::F16],
            _ => &[],
        };
        let (inputs, takes_attributes): (&[usize], bool) = match row {
            "dot" => (&[1], false),
            "fused.conv" => (&[1, 2, 4, 5, 6, 7], false),
            "fused.joined" => (&[0, 1, 2, 3, 4, 5], false),
            "fused.qconv" => (&[1, 2, 3, 4, 5, 6, 7, 8], false),
            "fused.matmul" => (&[1, 2], false),
            "fused.elementwise" => (&[], true),
            "rnn" => (&[1, 2, 3, 7], false),
            _ => return None,
        };
        Some(PrepareRule {
            inputs,
            types,
            takes_attributes,
        })
    }
}

/// Runs passes over a text, with the verifier after each, and compares the result.
pub(super) fn check(passes: &str, text: &str, expected: Expect) {
    expected.assert_eq(&run(passes, text));
}

/// Returns the module after passes as text, or the errors.
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
    let context = Context::new(&Kernels);
    pipeline
        .run_with(&mut module, &context, &mut |_, _| {})
        .map_err(|wrong| wrong.render(false))?;
    Ok(module)
}

/// Returns the operations and the return of a module's functions after some passes, without the constants of the module: a
/// line for each.
pub(super) fn statements(passes: &str, text: &str) -> String {
    let module = transformed(passes, text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let text = module.to_string();
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| line.starts_with('%') || line.starts_with("tfrt.return"));
    lines.map(|line| format!("{line}\n")).collect()
}
