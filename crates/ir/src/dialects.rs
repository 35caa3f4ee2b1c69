//! The built-in dialects: a file each, and a folder where the file would be long.
//!
//! The entries say everything that parser, printer, verifier, passes and the
//! reference in `docs/operations/` know of an operation. A test of the front crate
//! compares each with the registered kernel.

mod btf;
mod builtin;
mod checks;
mod coo;
mod corert;
mod corert_sync;
mod cpu;
mod eigen;
mod func;
mod native;
mod nn;
mod symbols;
mod tf_sync;
mod tfrt;
mod tfrt_cuda;
mod tfrt_dht;
mod tfrt_dht_sync;
mod tfrt_dist;
mod tfrt_gpu;
mod tfrt_sht;
mod tfrt_test;
mod tfrt_tutorial;
mod ts;
mod ts_sync;
mod vt;

use crate::dialect::{OpDef, Traits};

/// A function that makes the entries of a dialect.
type Make = fn() -> Vec<OpDef>;

/// The built-in dialects. All entries of one have names that begin with its own.
pub(crate) const ALL: &[(&str, Make)] = &[
    ("btf", btf::definitions),
    ("builtin", builtin::definitions),
    ("coo", coo::definitions),
    ("corert", corert::definitions),
    ("corert_sync", corert_sync::definitions),
    ("cpu", cpu::definitions),
    ("eigen", eigen::definitions),
    ("func", func::definitions),
    ("nn", nn::definitions),
    ("tf_sync", tf_sync::definitions),
    ("tfrt", tfrt::definitions),
    ("tfrt_cuda", tfrt_cuda::definitions),
    ("tfrt_cuda_test", tfrt_cuda::test_definitions),
    ("tfrt_dht", tfrt_dht::definitions),
    ("tfrt_dht_sync", tfrt_dht_sync::definitions),
    ("tfrt_dist", tfrt_dist::definitions),
    ("tfrt_gpu", tfrt_gpu::definitions),
    ("tfrt_sht", tfrt_sht::definitions),
    ("tfrt_sht_sync", tfrt_sht::synchronous_definitions),
    ("tfrt_test", tfrt_test::definitions),
    ("tfrt_test_sync", tfrt_test::synchronous_definitions),
    ("tfrt_tutorial", tfrt_tutorial::definitions),
    ("ts", ts::definitions),
    ("ts_sync", ts_sync::definitions),
    ("vt", vt::definitions),
];

/// Returns the entries of native functions.
pub(crate) fn natives() -> Vec<OpDef> {
    native::definitions()
}

/// Starts the entry of a kernel that the original has no operation for: only the
/// generic form can write it, and programs are not checked against it.
fn kernel(name: &'static str) -> OpDef {
    OpDef::new(name).traits(&[Traits::KERNEL_ONLY])
}

/// The form of most operations: operands, then attributes in braces.
const OPERANDS: &str = "operands attr-dict";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn entries_are_in_the_table_of_their_dialect_and_there_once() {
        let mut names = BTreeSet::new();
        for (dialect, make) in super::ALL {
            for entry in make() {
                assert_eq!(entry.dialect(), *dialect, "{}", entry.name());
                assert!(
                    names.insert(entry.name()),
                    "{} is there twice",
                    entry.name()
                );
            }
        }
        assert_eq!(names.len(), crate::dialect::definitions().len());
    }
}
