//! Tests of kernels against the table of operations.

use tfrt_host::kernel::KernelRegistry;
use tfrt_ops::Traits;
use tfrt_tensor::DType;
use tfrt_tensor::math::pointwise::{BinaryFunction, ParametricFunction, UnaryFunction};

/// Kernels that are no operation of a model: constants in files, and operands that are left out.
const PARTS: &[&str] = &["External", "NoValue"];

/// Rows without a kernel.
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
    let without = rows.filter(|row| tfrt_kernels::rows::find(row).is_none());
    let without: Vec<&str> = without.map(|row| row.name).collect();
    assert_eq!(without, WITHOUT);
}

/// The types that programs calculate in; others are only copied.
const TYPES: &[DType] = &[
    DType::I1,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::Ui8,
    DType::Ui16,
    DType::Ui32,
    DType::Ui64,
    DType::F16,
    DType::Bf16,
    DType::F32,
    DType::F64,
];

#[test]
fn pointwise_rows_say_the_types_that_their_functions_take() {
    let mut n_compared = 0;
    for row in tfrt_ops::all().filter(|row| row.is(Traits::POINTWISE)) {
        let has_parameters = row.attrs.iter().any(|attr| attr.name != "approximate");
        let result = |dtype: DType| {
            if has_parameters {
                return Some(ParametricFunction::from_name(row.name)?.result(dtype));
            }
            let unary = UnaryFunction::from_name(row.name).map(|function| function.result(dtype));
            unary.or_else(|| BinaryFunction::from_name(row.name).map(|own| own.result(dtype)))
        };
        for dtype in TYPES {
            let Some(found) = result(*dtype) else {
                continue;
            };
            assert_eq!(
                row.elements.has(*dtype),
                found.is_some(),
                "{} {dtype}",
                row.name
            );
            n_compared += 1;
        }
    }
    assert!(n_compared > 60 * TYPES.len(), "{n_compared}");
}
