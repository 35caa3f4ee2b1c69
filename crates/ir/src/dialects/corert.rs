//! `corert`: of the core runtime, so far what passes are tested with.

use crate::dialect::{AttributeKind, Execution, OpDef, ValueKind};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("corert.const_dense_tensor")
            .summary("A tensor of the elements of a dense attribute")
            .execution(Execution::Elsewhere)
            .attribute("value", AttributeKind::Any, "the elements, a `dense<...>`")
            .result("tensor", ValueKind::Dialect("!corert.tensorhandle"))
            .pure()
            .format("$value attr-dict")
            .example("%tensor = corert.const_dense_tensor dense<[1, 2]> : tensor<2xi32>")
            .generic(
                "%tensor = \"corert.const_dense_tensor\"() {value = dense<[1, 2]> : \
                 tensor<2xi32>} : () -> !corert.tensorhandle",
            ),
    ]
}
