//! `corert`: of the core runtime, so far what passes are tested with.

use crate::dialect::{AttributeKind, OpDef, ValueKind};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("corert.const_dense_tensor")
            .summary("A tensor of the elements of a dense attribute")
            .attribute("value", AttributeKind::Any)
            .results(&[ValueKind::Dialect("!corert.tensorhandle")])
            .pure()
            .format("$value attr-dict"),
    ]
}
