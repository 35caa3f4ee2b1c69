//! [`Keywords`]: names of an integer's values, as operations of GPUs write constants of vendors' libraries.

use crate::{
    attributes::Attribute,
    types::{IntegerType, Signedness, Type},
};

/// A list of names for values of an integer attribute: `CUBLAS_OP_N` for 0.
///
/// The attribute is an `si32`, or where so stated a `ui64`; in compiled files the former is an `i32`, which is taken too.
#[derive(Debug, PartialEq, Eq)]
pub struct Keywords {
    /// The name of such values, for messages.
    pub what: &'static str,
    /// Each name with its value.
    pub words: &'static [(&'static str, i64)],
    /// Whether the attribute is a `ui64`.
    pub is_wide: bool,
}

impl Keywords {
    /// Returns the attribute that a name stands for.
    pub(crate) fn attribute(&self, word: &str) -> Option<Attribute> {
        let (_, value) = self.words.iter().find(|(name, _)| *name == word)?;
        Some(Attribute::integer(*value, self.ty()))
    }

    /// Returns the name of an attribute's value.
    pub(crate) fn word_of(&self, attribute: &Attribute) -> Option<&'static str> {
        let value = attribute.as_i64().filter(|_| self.is_number(attribute))?;
        let mut words = self.words.iter();
        words
            .find(|(_, other)| *other == value)
            .map(|(name, _)| *name)
    }

    /// Returns whether an attribute is an integer of the type, be it one without a name.
    pub(super) fn is_number(&self, attribute: &Attribute) -> bool {
        match attribute {
            Attribute::Integer(integer) => {
                integer.ty == self.ty() || !self.is_wide && integer.ty == Type::I32
            }
            _ => false,
        }
    }

    /// Returns the type of the attribute.
    fn ty(&self) -> Type {
        match self.is_wide {
            true => Type::UI64,
            false => Type::Integer(IntegerType {
                width: 32,
                signedness: Signedness::Signed,
            }),
        }
    }

    /// Returns the name of the type that a kernel reads.
    pub(super) fn type_name(&self) -> &'static str {
        if self.is_wide { "ui64" } else { "i32" }
    }

    /// Returns the names, with commas between.
    pub(crate) fn list(&self) -> String {
        let names: Vec<&str> = self.words.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}
