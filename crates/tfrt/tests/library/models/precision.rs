//! Models whose factors are rounded to `bf16`.

use std::sync::Arc;

use tfrt::bef::{BefBuffer, BefFile};
use tfrt::compiler::CompileOptions;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{Model, MultiThreadedWorkQueue, OpenOptions, Precision, Runtime, Warnings};

use super::stored::{call, input, open};

fn rounded() -> OpenOptions {
    OpenOptions::new().precision(Precision::Bf16)
}

/// Returns the result of a call of the model, on some threads.
fn result(options: &OpenOptions, n_threads: usize) -> Vec<f32> {
    let queue = MultiThreadedWorkQueue::new(n_threads, 1).unwrap();
    let runtime = Runtime::builder().queue(Arc::new(queue)).build();
    let model = runtime.load_model_with(&input(), options).unwrap();
    call(&runtime, &model)
}

#[test]
fn rounded_factors_change_results_little_where_the_processor_can() {
    let warnings = Warnings::default();
    let expected = result(&OpenOptions::new(), 1);
    let found = result(&rounded().warnings(warnings.clone()), 1);
    let told = warnings.take();
    if !InstructionSet::AmxBf16.is_available() {
        assert_eq!(found, expected);
        assert_eq!(told.iter().next().unwrap().code(), Some("TF0519"));
        return;
    }
    assert!(told.is_empty());
    assert_ne!(found, expected);
    let largest = expected.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    for (found, expected) in found.iter().zip(&expected) {
        assert!(
            (found - expected).abs() <= largest / 128.0,
            "{found}, {expected}"
        );
    }
    assert_eq!(result(&rounded(), 3), found);
}

#[test]
fn rounded_weights_of_a_file_give_the_same_bits() {
    let compiled = |options: &OpenOptions| -> BefBuffer {
        let (how, set) = (CompileOptions::default(), InstructionSet::best());
        input().compile_for(&how, set, options).unwrap()
    };
    let [precise, small] = [OpenOptions::new(), rounded()].map(|options| compiled(&options));
    let runtime = Runtime::new();
    let model: Model = open(&runtime, small.clone()).unwrap();
    assert_eq!(call(&runtime, &model), result(&rounded(), 1));
    if InstructionSet::AmxBf16.is_available() {
        assert!(small.as_bytes().len() < precise.as_bytes().len());
        assert!(BefFile::open(small).is_ok());
    }
}

#[test]
fn a_precision_that_there_is_not_is_refused() {
    use std::process::Command;

    let told = Command::new(env!("CARGO_BIN_EXE_tfrt"))
        .args(["run", "--random", "--precision", "f64", "layer.onnx"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(text.contains("expected f32 or bf16, found 'f64'"), "{text}");
}
