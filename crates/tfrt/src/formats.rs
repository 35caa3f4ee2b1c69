//! [`Format`] and [`Formats`]: the formats of models that can be read, and what their operations are.

use std::path::Path;
use std::sync::Arc;

use tfrt_compiler::legalize::{self, Dialects, Legalize};
use tfrt_import::{FRONT_ENDS, FrontEnd, Head};
use tfrt_ops::{AddedRows, OpDef, Table};

/// A format of models: how its files become modules, and what the operations in these are.
///
/// `docs/models.md` says how one is written; `examples/calc` is one.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Makes a module in the format's dialect of a file.
    pub front_end: FrontEnd,
    /// Says what the operations of the dialect are.
    pub legalize: Legalize,
    /// Operations that are the format's own. One called `calc.wave` is run by the kernel `cpu.calc.wave`, which
    /// [`RuntimeBuilder::kernels`](crate::RuntimeBuilder::kernels) adds.
    pub rows: &'static [OpDef],
}

/// What each of the [`FRONT_ENDS`] is for the compiler, in their order.
const LEGALIZE: &[Legalize] = &[legalize::ONNX];

/// The formats that files are read by: the built-in ones, and others. Clones have the same rows.
///
/// # Examples
///
/// ```
/// use tfrt::Formats;
///
/// assert_eq!(Formats::builtin().names(), "ONNX");
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
            rows: &[],
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

    /// Returns what the compiler is told.
    pub fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// Returns the dialects of text: those of `tfrt_ir`, and those of rows.
    pub fn text_dialects(&self) -> tfrt_ir::Dialects {
        tfrt_compiler::graph::dialects(self.rows())
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
    pub(crate) fn recognise(&self, head: &Head<'_>) -> Option<&Format> {
        let mut formats = self.formats.iter();
        formats.find(|format| (format.front_end.recognises)(head))
    }
}

impl Default for Formats {
    /// The built-in ones.
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
    }
}
