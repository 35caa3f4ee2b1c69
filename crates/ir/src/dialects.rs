//! The dialects that have tables, a file each.

mod builtin;
mod checks;
mod corert;
mod func;
mod tfrt;
mod tfrt_test;

use crate::dialect::OpDef;

/// Returns every entry of every dialect.
pub(crate) fn all() -> Vec<OpDef> {
    let mut all = Vec::new();
    all.extend(builtin::definitions());
    all.extend(corert::definitions());
    all.extend(func::definitions());
    all.extend(tfrt::definitions());
    all.extend(tfrt_test::definitions());
    all
}
