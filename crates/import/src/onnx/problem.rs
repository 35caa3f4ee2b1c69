//! What is wrong with a part of a model, told by somebody who does not know where it is.

use std::borrow::Cow;

use tfrt_ir::{Diagnostic, Location, visible};

/// A mistake without a place.
#[derive(Debug)]
pub(super) struct Problem {
    code: &'static str,
    message: String,
    help: Option<String>,
}

impl Problem {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Problem {
        Problem {
            code,
            message: message.into(),
            help: None,
        }
    }

    /// Adds advice.
    pub(super) fn help(mut self, text: impl Into<String>) -> Problem {
        self.help = Some(text.into());
        self
    }

    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the message and the advice.
    pub(super) fn into_text(self) -> (String, Option<String>) {
        (self.message, self.help)
    }

    /// Says of what part of the model it is, in front of the message.
    pub(super) fn of(mut self, what: &str) -> Problem {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Places it.
    pub(super) fn at(self, location: Location) -> Diagnostic {
        let error = Diagnostic::error(self.code, self.message).at_location(location);
        match self.help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}

/// A name as it is shown: cut if it is long, without what would move the cursor.
pub(super) fn shown(name: &str) -> Cow<'_, str> {
    const MAX_SHOWN: usize = 100;
    let cut = match name.len() {
        0..=MAX_SHOWN => name,
        _ => &name[..name.floor_char_boundary(MAX_SHOWN)],
    };
    visible::name(cut)
}
