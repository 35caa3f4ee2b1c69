//! [`Format`] and [`Formats`]: the formats of models that can be read, with their operations.

use std::path::Path;
use std::sync::Arc;

use tfrt_compiler::legalize::{self, Dialects, ExpandFn, Legalize};
use tfrt_host::kernel::KernelRegistry;
use tfrt_import::{FRONT_ENDS, FileHead, FrontEnd, ImportFn};
use tfrt_ops::names::Name;
use tfrt_ops::{AddedRows, OpDef, Table};

/// A format of models: how its files become modules, and which rows and kernels the operations in these stand for.
///
/// `docs/models.md` says how one is written; `examples/calc` is one.
///
/// # Examples
///
/// ```
/// use tfrt::ops::names::Name;
/// use tfrt::{Format, Formats};
///
/// const WORDS: Format = Format::new("words", |source, limits| import(source, limits))
///     .suffixes(&["words"])
///     .names(&[Name::new("plus", "add")]);
/// # fn import(
/// #     _: &tfrt::import::Source<'_>,
/// #     limits: &tfrt::import::ReadLimits,
/// # ) -> Result<tfrt::import::Imported, tfrt::ir::Diagnostics> {
/// #     Ok(tfrt::import::GraphBuilder::new(limits).finish())
/// # }
///
/// assert_eq!(Formats::builtin().with(WORDS).names(), "ONNX, SavedModel, StableHLO, words");
/// ```
#[derive(Clone, Copy)]
pub struct Format {
    /// Makes a module in the format's dialect of a file.
    pub front_end: FrontEnd,
    /// The rows that the operations of the dialect stand for.
    pub legalize: Legalize,
    /// Operations that are the format's own. One called `calc.wave` is run by the kernel `cpu.calc.wave`.
    pub rows: &'static [OpDef],
    /// Adds the kernels of these to a runtime that reads the format.
    pub kernels: fn(&mut KernelRegistry),
}

impl Format {
    /// Makes a format of this name, which is that of its dialect, too. No file is recognised as one of it yet, and it
    /// has no operations.
    pub const fn new(name: &'static str, import: ImportFn) -> Format {
        Format {
            front_end: FrontEnd::new(name, import),
            legalize: Legalize::new(name),
            rows: &[],
            kernels: |_| {},
        }
    }

    /// Sets the endings of the names of its files, without the point.
    pub const fn suffixes(mut self, suffixes: &'static [&'static str]) -> Format {
        self.front_end.suffixes = suffixes;
        self
    }

    /// Sets what tells a folder, or a file whose name says nothing: enough to tell kinds of files apart, not to trust them.
    pub const fn recognises(mut self, recognises: fn(&FileHead<'_>) -> bool) -> Format {
        self.front_end.recognises = recognises;
        self
    }

    /// Sets which operations are rows.
    pub const fn names(mut self, names: &'static [Name]) -> Format {
        self.legalize.names = names;
        self
    }

    /// Sets which operations stand for several, and what puts these there.
    pub const fn expand(mut self, expand: &'static [(&'static str, ExpandFn)]) -> Format {
        self.legalize.expand = expand;
        self
    }

    /// Sets the operations that are the format's own.
    pub const fn rows(mut self, rows: &'static [OpDef]) -> Format {
        self.rows = rows;
        self
    }

    /// Sets what adds the kernels of these to a runtime that reads the format.
    pub const fn kernels(mut self, kernels: fn(&mut KernelRegistry)) -> Format {
        self.kernels = kernels;
        self
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Format").field(&self.front_end.name).finish()
    }
}

/// The rules by which operations of each of the [`FRONT_ENDS`] become rows, in their order.
const LEGALIZE: &[Legalize] = &[legalize::ONNX, legalize::TF, legalize::STABLEHLO];

/// The formats that files are read by: the built-in ones, and others. Clones have the same rows.
///
/// # Examples
///
/// ```
/// use tfrt::Formats;
///
/// assert_eq!(Formats::builtin().names(), "ONNX, SavedModel, StableHLO");
/// ```
#[derive(Clone, Debug)]
pub struct Formats {
    formats: Vec<Format>,
    dialects: Dialects,
    /// Rows that are there as long as the format is.
    rows: Vec<Arc<AddedRows>>,
}

impl Formats {
    /// Returns the formats that come with this crate.
    pub fn builtin() -> Formats {
        let all = FRONT_ENDS.iter().zip(LEGALIZE);
        let formats = all.map(|(front_end, legalize)| Format {
            front_end: *front_end,
            legalize: *legalize,
            ..Format::new(front_end.name, front_end.import)
        });
        Formats {
            formats: formats.collect(),
            dialects: Dialects {
                formats: LEGALIZE.to_vec(),
                rows: Table::default(),
            },
            rows: Vec::new(),
        }
    }

    /// Returns the files that folders of models have, with the formats: `'saved_model.pb' (SavedModel)`.
    pub(crate) fn folder_files(&self) -> String {
        let all = self.formats.iter().map(|format| format.front_end);
        let named = all.filter_map(|front_end| {
            let file = front_end.folder_file?;
            Some(format!("'{file}' ({})", front_end.name))
        });
        let named: Vec<String> = named.collect();
        named.join(" or ")
    }

    /// Adds a format. It is asked whether a file is one of its own after those that are there.
    ///
    /// # Panics
    ///
    /// If there is a format of the same dialect already, or a row of the same name, or if a row's name is not
    /// `DIALECT.NAME`.
    #[must_use]
    pub fn with(mut self, format: Format) -> Formats {
        let dialect = format.legalize.dialect;
        let is_there = |other: &Legalize| other.dialect == dialect;
        assert!(
            !self.dialects.formats.iter().any(is_there),
            "there is a format of dialect '{dialect}' already"
        );
        match self.dialects.rows.add(format.rows) {
            Ok(added) => self.rows.push(Arc::new(added)),
            Err(error) => panic!("{error}"),
        }
        self.dialects.formats.push(format.legalize);
        self.formats.push(format);
        self
    }

    /// Returns the table of operations, to which rows can be added that no format has, at any time.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Formats;
    /// use tfrt::ops::{OpDef, intern};
    ///
    /// let formats = Formats::builtin();
    /// let name = intern(&format!("my.{}", "wave"));
    /// let added = formats.rows().add(&[OpDef::new(name, "A wave.")])?;
    /// assert!(formats.rows().find("my.wave").is_some());
    /// # drop(added);
    /// # Ok::<(), tfrt::ops::AddError>(())
    /// ```
    pub fn rows(&self) -> &Table {
        &self.dialects.rows
    }

    /// Returns the dialects of the formats, for the compiler.
    pub fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// Returns the dialects of text: those of `tfrt_ir`, and those of rows.
    pub fn text_dialects(&self) -> tfrt_ir::Dialects {
        tfrt_compiler::graph::dialects(self.rows())
    }

    /// Adds the kernels of the formats' own operations.
    pub(crate) fn add_kernels(&self, registry: &mut KernelRegistry) {
        for format in &self.formats {
            (format.kernels)(registry);
        }
    }

    /// Returns the names of all formats, with commas between.
    pub fn names(&self) -> String {
        let names = self.formats.iter().map(|format| format.front_end.name);
        names.collect::<Vec<_>>().join(", ")
    }

    /// Returns the format that the name of a file says it is of.
    pub(crate) fn of_name(&self, path: &Path) -> Option<&Format> {
        let mut formats = self.formats.iter();
        formats.find(|format| format.front_end.has_suffix(path))
    }

    /// Returns the format that a file looks like.
    pub(crate) fn recognise(&self, head: &FileHead<'_>) -> Option<&Format> {
        let mut formats = self.formats.iter();
        formats.find(|format| (format.front_end.recognises)(head))
    }
}

impl Default for Formats {
    /// Returns the built-in formats.
    fn default() -> Formats {
        Formats::builtin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_built_in_format_has_a_dialect() {
        assert_eq!(FRONT_ENDS.len(), LEGALIZE.len());
        assert_eq!(Formats::builtin().formats[0].front_end.name, "ONNX");
        assert_eq!(LEGALIZE[0].dialect, "onnx");
        assert_eq!(Formats::builtin().formats[1].front_end.name, "SavedModel");
        assert_eq!(LEGALIZE[1].dialect, "tf");
    }
}
