//! [`Problem`]: a mistake in a part of a model, reported by code that does not know the part's location.

use std::borrow::Cow;

use tfrt_ir::{Diagnostic, Location, visible};

/// A mistake without a location.
#[derive(Debug)]
pub(crate) struct Problem {
    code: &'static str,
    message: String,
    help: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Problem {
        Problem {
            code,
            message: message.into(),
            help: None,
        }
    }

    /// Adds advice.
    pub(crate) fn help(mut self, text: impl Into<String>) -> Problem {
        self.help = Some(text.into());
        self
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the message and the advice.
    pub(crate) fn into_text(self) -> (String, Option<String>) {
        (self.message, self.help)
    }

    /// Adds the part of the model in front of the message.
    pub(crate) fn of(mut self, what: &str) -> Problem {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Makes a diagnostic at a location.
    pub(crate) fn at(self, location: Location) -> Diagnostic {
        let error = Diagnostic::error(self.code, self.message).at_location(location);
        match self.help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}

/// Returns a name for display: cut if it is long, without control characters.
pub(crate) fn shown(name: &str) -> Cow<'_, str> {
    const MAX_SHOWN: usize = 100;
    let cut = match name.len() {
        0..=MAX_SHOWN => name,
        _ => &name[..name.floor_char_boundary(MAX_SHOWN)],
    };
    visible::name(cut)
}
