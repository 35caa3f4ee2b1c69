//! Results of modules, beside those of JAX, of the reference interpreter, and of the formulas of the specification.

use std::fs;
use std::path::Path;

use tfrt::Runtime;
use tfrt::model::Datum;
use tfrt::tensor::math::number::Real;
use tfrt::tensor::{DenseHostTensor, Tensor};

use super::{call, open, run};

/// Returns the elements as numbers; complex ones as two.
fn numbers(tensor: &Tensor) -> Vec<f64> {
    use tfrt::tensor::DType;
    fn all<T: tfrt::tensor::Element>(
        tensor: &DenseHostTensor,
        of: impl Fn(&T) -> Vec<f64>,
    ) -> Vec<f64> {
        let reading = tensor.read().unwrap();
        reading
            .elements::<T>()
            .unwrap()
            .iter()
            .flat_map(of)
            .collect()
    }
    let dense = tensor.as_dense().unwrap();
    match dense.dtype() {
        DType::F64 => all(dense, |x: &f64| vec![*x]),
        DType::F32 => all(dense, |x: &f32| vec![f64::from(*x)]),
        DType::F16 => all(dense, |x: &tfrt::tensor::F16| vec![x.to_f64()]),
        DType::Bf16 => all(dense, |x: &tfrt::tensor::BF16| vec![x.to_f64()]),
        DType::I64 => all(dense, |x: &i64| vec![*x as f64]),
        DType::Ui64 => all(dense, |x: &u64| vec![*x as f64]),
        DType::I32 => all(dense, |x: &i32| vec![f64::from(*x)]),
        DType::Ui32 => all(dense, |x: &u32| vec![f64::from(*x)]),
        DType::I16 => all(dense, |x: &i16| vec![f64::from(*x)]),
        DType::Ui16 => all(dense, |x: &u16| vec![f64::from(*x)]),
        DType::I8 => all(dense, |x: &i8| vec![f64::from(*x)]),
        DType::Ui8 => all(dense, |x: &u8| vec![f64::from(*x)]),
        DType::I1 => all(dense, |x: &tfrt::tensor::Bool| {
            vec![f64::from(u8::from(bool::from(*x)))]
        }),
        DType::Complex64 => all(dense, |x: &tfrt::tensor::Complex<f32>| {
            vec![f64::from(x.real), f64::from(x.imaginary)]
        }),
        DType::Complex128 => all(dense, |x: &tfrt::tensor::Complex<f64>| {
            vec![x.real, x.imaginary]
        }),
        other => panic!("no number is read of {other}"),
    }
}

fn compare(found: &Tensor, wanted: &Tensor) -> Result<(), String> {
    if found.metadata() != wanted.metadata() {
        return Err(format!(
            "found {}, expected {}",
            found.metadata(),
            wanted.metadata()
        ));
    }
    let (found, wanted) = (numbers(found), numbers(wanted));
    let largest = wanted
        .iter()
        .filter(|x| x.is_finite())
        .fold(0.0, |most: f64, x| most.max(x.abs()));
    for (found, wanted) in found.iter().zip(&wanted) {
        let same = found == wanted || (found.is_nan() && wanted.is_nan());
        if !same && (found - wanted).abs() > 2e-5 * largest.max(1e-3) {
            return Err(format!("found {found}, expected {wanted}"));
        }
    }
    Ok(())
}

/// Returns the text of a file of modules.
fn modules(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stablehlo");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Runs the modules of a file, each of which returns its results and, behind them, those that are expected.
fn all_give_what_is_expected(name: &str, at_least: usize) {
    let text = modules(name);
    let runtime = Runtime::new();
    let (mut failed, mut n) = (Vec::new(), 0);
    for chunk in text.split("// -----\n") {
        n += 1;
        let name = chunk.lines().next().unwrap_or_default();
        let compared = run(&runtime, chunk).and_then(|outputs| {
            let (found, wanted) = outputs.split_at(outputs.len() / 2);
            found
                .iter()
                .zip(wanted)
                .try_for_each(|(found, wanted)| compare(found, wanted))
        });
        if let Err(reason) = compared {
            failed.push(format!("{name}: {reason}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {n}:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(n >= at_least, "{n} modules");
}

#[test]
fn modules_give_what_jax_gives() {
    all_give_what_is_expected("modules.stablehlo", 100);
}

#[test]
fn small_floats_truth_values_and_quantised_numbers_are_those_of_the_specification() {
    all_give_what_is_expected("interpreted.stablehlo", 60);
}

#[test]
fn modules_of_unknown_extents_give_what_jax_gives_of_each_extent() {
    let text = modules("dynamic.stablehlo");
    let runtime = Runtime::new();
    let (mut failed, mut n) = (Vec::new(), 0);
    for case in text.split("// =====\n") {
        n += 1;
        let name = case.lines().next().unwrap_or_default();
        let mut modules = case.split("// -----\n");
        let model = match open(&runtime, modules.next().unwrap()) {
            Ok(model) => model,
            Err(reason) => {
                failed.push(format!("{name}: {reason}"));
                continue;
            }
        };
        // The same program takes all of them.
        for values in modules {
            let values = run(&runtime, values).unwrap();
            let (inputs, wanted) = values.split_at(model.inputs().len());
            let inputs = inputs.iter().cloned().map(Datum::Tensor).collect();
            let compared = call(&runtime, &model, inputs).and_then(|found| {
                assert_eq!(found.len(), wanted.len(), "{name}");
                let mut pairs = found.iter().zip(wanted);
                pairs.try_for_each(|(found, wanted)| compare(found, wanted))
            });
            if let Err(reason) = compared {
                let shape = values[0].metadata();
                failed.push(format!("{name} of {shape}: {reason}"));
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {n}:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(n >= 30, "{n} modules");
}
