//! `builtin`: modules.

use super::checks;
use crate::dialect::{AttributeKind, OpDef, Traits};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("builtin.module")
            .summary("Holds functions and other modules")
            .details(
                "A file is a module, whether it says so or not. A module inside it that is marked \
                 `tfrt.compiled` is text for a kernel that compiles it: it may hold any \
                 operations, and becomes an attribute of the binary file. Attributes of the \
                 module that begin with `tfrt.` set how streams are assigned.",
            )
            .structure()
            .no_effects()
            .optional("sym_name", AttributeKind::String, "its name")
            .optional(
                "sym_visibility",
                AttributeKind::String,
                "`public`, `private` or `nested`; `public` if absent",
            )
            .regions(1)
            .traits(&[
                Traits::ISOLATED,
                Traits::SYMBOL,
                Traits::SYMBOL_TABLE,
                Traits::GRAPH,
                Traits::SINGLE_BLOCK,
            ])
            .format("module")
            .verify(checks::module)
            .example(
                "module {
  func.func @main() {
    tfrt.return
  }
  module @m attributes {tfrt.compiled} {
    func.func @code(%x: f32) -> f32 {
      func.return %x : f32
    }
  }
}
",
            )
            .generic("\"builtin.module\"() ({\n^bb0:\n}) : () -> ()"),
    ]
}
