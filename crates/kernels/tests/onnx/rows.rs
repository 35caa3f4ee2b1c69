//! Kernels and the table of operations.

use tfrt_host::kernel::KernelRegistry;

/// Kernels that stand for no operation of a model: where the bytes of a constant are, and an operand that is left out.
const PARTS: &[&str] = &["External", "NoValue"];

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
