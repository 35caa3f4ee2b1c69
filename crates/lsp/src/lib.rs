//! A language server: what an editor asks of a program's text, answered over the Language Server
//! Protocol.
//!
//! ```text
//! bytes ─ transport ─ message ─ server ─┬─ document ── positions
//!                                       ├─ diagnostics
//!                                       └─ analysis ─┬─ hover
//!                                          scope     ├─ navigation
//!                                                    ├─ rename
//!                                                    └─ completion
//! ```
//!
//! One thread reads, one does all the rest, in the order of the messages: an answer is on the text
//! as it was when the question was asked. What a cancelled question would have cost is saved,
//! since cancellations are seen ahead of their turn. Diagnostics wait until the editor has nothing
//! more to say.
//!
//! Nothing that an editor sends ends the server but `exit` and the end of the stream: what can't
//! be read is answered with an error.
//!
//! Which kernels there are, and what they take, is known to the [`Checker`] alone, and so are operations that are in no
//! table of text's own: those of models.

#![forbid(unsafe_code)]

mod analysis;
mod capabilities;
mod completion;
mod diagnostics;
mod document;
mod hover;
mod message;
mod navigation;
mod positions;
mod rename;
mod requests;
mod scope;
mod server;
mod transport;

use std::io::{BufRead, Write};

use tfrt_ir::{Diagnostics, Dialects, Module, Source};

/// A source of what the server can't know from text: kernels, and checks of loading.
pub trait Checker {
    /// Returns the diagnostics of a program that parses: all that keeps it from being loaded.
    fn problems(&self, source: &Source, module: &Module) -> Diagnostics;

    /// Returns the dialects that programs may be in.
    fn dialects(&self) -> &Dialects;

    /// Returns the signature of the kernel of a name, `(i32, i32) -> i32`, if there is one.
    fn kernel_signature(&self, name: &str) -> Option<String>;

    /// Returns the names of all kernels.
    fn kernel_names(&self) -> Vec<String>;
}

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The session ended as agreed: by `shutdown`, then `exit` or the end of the stream.
    Orderly,
    /// The session ended by `exit` or the end of the stream, unannounced.
    Abrupt,
    /// The stream ended, and its last bytes could not be read, for this reason.
    Unreadable(String),
}

/// Serves one editor until it leaves. `version` is told to it.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write,
    checker: &dyn Checker,
    version: &str,
) -> SessionEnd {
    server::Server::new(output, checker, version).run(&transport::listen(input))
}
