//! Kernels and the table of operations.

use tfrt_host::kernel::KernelRegistry;
use tfrt_kernels::onnx::kernel_of;
use tfrt_ops::Traits;

/// Kernels that stand for no operation of a model: where the bytes of a constant are, and an operand that is left out.
const PARTS: &[&str] = &["External", "NoValue"];

/// Rows that nothing runs.
const WITHOUT: &[&str] = &[
    // It is a kernel with the elements in an attribute.
    "constant",
    // Other operations take their place.
    "onnx.ml.FeatureVectorizer",
    "onnx.ml.Imputer",
    "onnx.ml.LinearRegressor",
    "onnx.ml.Normalizer",
    "onnx.ml.Scaler",
    // A gradient of a part of the model is no kernel.
    "onnx.training.Gradient",
];

#[test]
fn each_kernel_of_onnx_has_a_row() {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::onnx::register(&mut registry);
    let without: Vec<&str> = registry
        .kernels()
        .filter_map(|kernel| kernel.name().strip_prefix("cpu.onnx."))
        .filter(|name| !PARTS.contains(name) && tfrt_ops::names::onnx::row(name).is_none())
        .collect();
    assert!(without.is_empty(), "{without:?}");
    assert!(registry.kernels().count() > 200);
}

#[test]
fn each_row_has_a_kernel() {
    let rows = tfrt_ops::all().filter(|row| !row.is(Traits::CONTROL));
    let without = rows.filter(|row| kernel_of(row).is_none());
    let without: Vec<&str> = without.map(|row| row.name).collect();
    assert_eq!(without, WITHOUT);
}
