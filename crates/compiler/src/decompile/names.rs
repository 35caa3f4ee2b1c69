//! [`Names`]: interns names, however often a file refers to them.

use std::collections::HashMap;

use tfrt_ir::{Attribute, Name};

/// Interned names, by their addresses in the file, which outlives this: comparing addresses takes no time for long
/// names.
#[derive(Default)]
pub(super) struct Names {
    names: HashMap<*const u8, Name>,
    strings: HashMap<*const u8, Attribute>,
    /// Names of texts that are not in the file.
    copied: HashMap<String, Name>,
}

impl Names {
    /// Returns the name of a string in the file.
    pub(super) fn get(&mut self, text: &str) -> Name {
        let entry = self.names.entry(text.as_ptr());
        entry.or_insert_with(|| text.into()).clone()
    }

    /// Returns a string of the file as an attribute.
    pub(super) fn string(&mut self, text: &str) -> Attribute {
        let entry = self.strings.entry(text.as_ptr());
        entry.or_insert_with(|| Attribute::string(text)).clone()
    }

    /// Returns the name of a text that is not in the file.
    pub(super) fn copied(&mut self, text: &str) -> Name {
        if let Some(name) = self.copied.get(text) {
            return name.clone();
        }
        let name = Name::from(text);
        self.copied.insert(text.to_owned(), name.clone());
        name
    }
}
