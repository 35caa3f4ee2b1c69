//! Text to module.

use crate::{
    diagnostic::{Diagnostic, Diagnostics},
    module::Module,
    source::Source,
};

/// Parses a program.
///
/// # Errors
///
/// Every error that was found, sorted by place.
pub fn parse(source: &Source) -> Result<Module, Diagnostics> {
    Err(Diagnostic::error(format!("cannot read '{}' yet", source.name())).into())
}
