//! Decompiling: from a file to a module that compiles to the same bytes.
//!
//! | In the file | In the module |
//! |---|---|
//! | function with a name | `func.func`, in the order of the file |
//! | function without a name | region of the kernel that holds it |
//! | kernel | operation, with the names and values of its attributes |
//! | function of a kernel | attribute; `references.rs` finds its name |
//! | register | value, with its type |
//! | location | location; it prints only on request |
//! | stream ids | nothing if analysis finds them again, else the attribute `_tfrt_streams` |
//! | text of a compilation unit | module at the start |
//!
//! The module is made in the order in which a compiler would walk it. What files say twice,
//! such as the order of the type table, then tells apart what they write alike.
//!
//! What files do not hold is gone: names of values, attributes of functions and modules, costs,
//! metadata of locations.

mod attributes;
mod functions;
mod locations;
mod names;
mod references;
mod types;
mod units;

use std::collections::HashMap;

use tfrt_bef::{BefFile, LocationOffset};
use tfrt_ir::{Diagnostic, Diagnostics, Location, Module, Name};

use crate::codes;

use attributes::Attributes;
use names::Names;
use references::References;
use types::Types;

/// A module that was decompiled, with warnings.
#[derive(Clone, Debug)]
pub struct Decompiled {
    /// The module.
    pub module: Module,
    /// Warnings of parts that are made up, because the file does not have them.
    pub warnings: Diagnostics,
}

/// Decompiles a file.
///
/// For a file that [`compile`](crate::compile) wrote with the optional sections, the module
/// compiles to the same bytes. Without these sections attributes are called `attr0` and so on,
/// have the value 0xdeadbeef, and results have the type `none`.
///
/// # Errors
///
/// The text of a compilation unit that cannot be parsed.
///
/// # Examples
///
/// ```
/// use tfrt_bef::BefFile;
/// use tfrt_compiler::{CompileOptions, compile, decompile};
/// use tfrt_ir::{Source, parse};
///
/// let text = "func.func @answer() -> i32 {\n  %a = tfrt.constant.i32 42\n  tfrt.return %a : i32\n}\n";
/// let bytes = compile(&parse(&Source::new("a.mlir", text))?, &CompileOptions::default())?;
/// let restored = decompile(&BefFile::open(bytes.clone()).unwrap())?;
/// assert!(restored.module.to_string().contains("tfrt.constant.i32 42"));
/// let again = compile(&restored.module, &CompileOptions::default())?;
/// assert_eq!(again.as_bytes(), bytes.as_bytes());
/// # Ok::<(), tfrt_ir::Diagnostics>(())
/// ```
pub fn decompile(file: &BefFile) -> Result<Decompiled, Diagnostics> {
    let mut decompiler = Decompiler::new(file);
    if !file.has_optional_sections() {
        decompiler.warn(
            codes::SECTIONS_MISSING,
            "Missing AttributeTypes, AttributeNames or RegisterTypes sections.",
        );
    }
    for function in file.functions() {
        if !function.name().is_empty() {
            decompiler.function(function);
        }
    }
    decompiler.finish()
}

/// The state of decompiling a file.
struct Decompiler<'f> {
    file: &'f BefFile,
    module: Module,
    warnings: Diagnostics,
    types: Types,
    attributes: Attributes,
    references: References,
    names: Names,
    /// Locations by the offsets of their records.
    locations: HashMap<LocationOffset, Location>,
    kernel_names: Vec<Name>,
    /// The number of functions without a name that became regions so far.
    n_regions: usize,
}

impl<'f> Decompiler<'f> {
    fn new(file: &'f BefFile) -> Decompiler<'f> {
        let mut names = Names::default();
        let kernel_names = file.kernel_names().map(|name| names.get(name)).collect();
        Decompiler {
            file,
            module: Module::new(),
            warnings: Diagnostics::default(),
            types: Types::new(file),
            attributes: Attributes::default(),
            references: References::new(file),
            names,
            locations: HashMap::new(),
            kernel_names,
            n_regions: 0,
        }
    }

    fn warn(&mut self, code: &'static str, message: impl Into<String>) {
        self.warnings.push(Diagnostic::warning(code, message));
    }

    fn finish(mut self) -> Result<Decompiled, Diagnostics> {
        for name in std::mem::take(&mut self.types.unknown) {
            self.warn(
                codes::TYPE_NOT_KNOWN,
                format!("the file lists {name:?} as a type, which it is not"),
            );
        }
        for (offset, kind) in std::mem::take(&mut self.attributes.unknown) {
            self.warn(
                codes::ATTRIBUTE_NOT_KNOWN,
                format!("no attribute of programs is like the {kind} at offset {offset}"),
            );
        }
        let functions = self.file.functions();
        let n_unnamed = functions.filter(|f| f.name().is_empty()).count();
        if n_unnamed > self.n_regions {
            let n_lost = n_unnamed - self.n_regions;
            self.warn(
                codes::LOST_FUNCTIONS,
                format!("{n_lost} functions have no name and belong to no kernel"),
            );
        }
        units::insert(self.file, &mut self.module, &mut self.warnings)?;
        Ok(Decompiled {
            module: self.module,
            warnings: self.warnings,
        })
    }
}
