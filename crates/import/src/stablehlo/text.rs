//! Recognises text of StableHLO, and refuses StableHLO in other forms.

use memchr::{memmem, memrchr};
use tfrt_ir::Diagnostic;

use crate::{Source, codes};

/// The first bytes of MLIR's bytecode.
const BYTECODE: &[u8] = b"ML\xefR";

/// Number of first bytes of a file that are looked at.
const HEAD: usize = 64 << 10;

/// Beginnings of words that no other text of MLIR has; JAX puts attributes of the last two on modules and arguments.
const PREFIXES: [&[u8]; 4] = [b"stablehlo.", b"chlo.", b"mhlo.", b"jax."];

/// Returns whether a file's first bytes are those of a module with operations of StableHLO, or of its bytecode.
pub(super) fn looks_like_model(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD)];
    let is_word = |prefix: &[u8]| memmem::find_iter(head, prefix).any(|at| is_code(&head[..at]));
    head.starts_with(BYTECODE) || PREFIXES.into_iter().any(is_word)
}

/// Returns whether a word of code may begin behind some text: a program of kernels may speak of StableHLO in comments.
fn is_code(before: &[u8]) -> bool {
    let begins = |last: &u8| last.is_ascii_whitespace() || b"\"(<=#{,".contains(last);
    let line = || memrchr(b'\n', before).map_or(before, |at| &before[at + 1..]);
    before.last().is_none_or(begins) && memmem::find(line(), b"//").is_none()
}

/// Returns the error on bytes that are StableHLO in another form than text.
pub(super) fn other_form(source: &Source<'_>) -> Option<Diagnostic> {
    if !source.bytes.as_ref().starts_with(BYTECODE) {
        return None;
    }
    let message = format!(
        "{}: expected the text of a module, found MLIR's bytecode",
        source.name
    );
    let help = "print it as text, in Python: from jaxlib.mlir import ir; from jaxlib.mlir.dialects import stablehlo; \
                print(stablehlo.deserialize_portable_artifact(ir.Context(), open('module.mlir', 'rb').read()))";
    Some(Diagnostic::error(codes::NOT_A_MODEL, message).help(help))
}
