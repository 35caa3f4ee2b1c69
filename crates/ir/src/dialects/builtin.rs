//! `builtin`: modules.

use super::checks;
use crate::dialect::{AttributeKind, OpDef, Traits};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("builtin.module")
            .summary("Holds functions and other modules")
            .unchecked("sym_name", AttributeKind::String)
            .unchecked("sym_visibility", AttributeKind::String)
            .regions(1)
            .traits(&[
                Traits::ISOLATED,
                Traits::SYMBOL,
                Traits::SYMBOL_TABLE,
                Traits::GRAPH,
                Traits::SINGLE_BLOCK,
            ])
            .format("module")
            .verify(checks::module),
    ]
}
