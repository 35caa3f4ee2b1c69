//! Recognises text of StableHLO, and refuses StableHLO in other forms.

use tfrt_ir::Diagnostic;

use crate::{Source, codes};

/// The first bytes of MLIR's bytecode.
const BYTECODE: &[u8] = b"ML\xefR";

/// Returns whether a file's first bytes are those of a module with operations of StableHLO, or of its bytecode.
pub(super) fn looks_like_model(bytes: &[u8]) -> bool {
    if bytes.starts_with(BYTECODE) {
        return true;
    }
    let Ok(text) = std::str::from_utf8(bytes).or_else(|error| {
        // The last letter may be cut.
        std::str::from_utf8(&bytes[..error.valid_up_to()])
    }) else {
        return false;
    };
    // A program of kernels may speak of StableHLO in comments.
    let code = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let mut words =
        code.flat_map(|line| line.split(|c: char| c.is_whitespace() || "\"(<=#{,".contains(c)));
    // JAX puts attributes of the last two on modules and arguments.
    let prefixes = ["stablehlo.", "chlo.", "mhlo.", "jax."];
    words.any(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)))
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
