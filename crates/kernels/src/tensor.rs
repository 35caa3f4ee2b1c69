//! The dialects of tensors: `ts`, `tfrt_dht`, `tfrt_sht`, `coo`, `btf`, `eigen`, `nn`, `tf_sync`, with the twins of some for functions
//! marked synchronous, and what tests have beside them.
//!
//! Kernels look at chains for their order only, so most do not declare theirs: the executor waits for it.

use tfrt_host::kernel::KernelRegistry;

/// Adds kernels as pointers to functions of one type: `add_all! { registry, Make, "a.b" => f; }` becomes
/// `registry.add("a.b", f as Make);`, with `f` coerced.
macro_rules! add_all {
    ($registry:ident, $type:ty, $($name:literal => $kernel:expr;)*) => {$(
        let kernel: $type = $kernel;
        $registry.add($name, kernel);
    )*};
}

mod arithmetic;
mod btf;
mod coo;
mod dense;
mod images;
mod shape;
pub mod strings;
mod testing;
mod tf_sync;

/// Adds the kernels of the dialects.
pub fn register(registry: &mut KernelRegistry) {
    registry
        .add_codecs(tfrt_tensor::codec::CODECS)
        .add_codecs(crate::graph::stored::CODECS)
        .add_dialect("ts", shape::register)
        .add_dialect("ts_sync", shape::register_synchronous)
        .add_dialect("tfrt_dht", dense::register)
        .add_dialect("tfrt_dht_sync", dense::register_synchronous)
        .add_dialect("tfrt_sht", strings::register)
        .add_dialect("tfrt_sht_sync", strings::register_synchronous)
        .add_dialect("coo", coo::register)
        .add_dialect("btf", btf::register)
        .add_dialect("cpu", arithmetic::register_cpu)
        .add_dialect("eigen", arithmetic::register_eigen)
        .add_dialect("nn", arithmetic::register_training)
        .add_dialect("tf_sync", tf_sync::register)
        .add_dialect("tfrt_test_sync", arithmetic::register_synchronous);
    arithmetic::register(registry);
    testing::register(registry);
    images::register(registry);
}
