//! The importer of StableHLO: modules that JAX, PyTorch/XLA and StableHLO's own tools print as text.
//!
//! The text is MLIR, which [`tfrt_ir`] parses in its generic form and in the forms of these dialects. What is left to do is to
//! find the function that is the model, and to give its values names. Operations stay as they are written: the compiler's
//! pass `legalize` makes rows of them.

mod signature;
mod text;
mod weights;

use tfrt_ir::{Diagnostic, Diagnostics, Module, OpId};

use crate::{FileHead, FrontEnd, Imported, ReadLimits, Source, codes};

pub use signature::argument_names;
pub use weights::{Weight, bind};

/// StableHLO, as an entry in the table of formats.
pub(crate) const FRONT_END: FrontEnd = FrontEnd {
    name: "StableHLO",
    suffixes: &["stablehlo"],
    folder_file: None,
    recognises: |head: &FileHead<'_>| !head.is_folder && text::looks_like_model(head.bytes),
    import,
    survey: None,
};

fn import(source: &Source<'_>, limits: &ReadLimits) -> Result<Imported, Diagnostics> {
    if let Some(problem) = text::other_form(source) {
        return Err(problem.into());
    }
    let text = source.text()?;
    let mut module = tfrt_ir::parse(&text)?;
    // Calls are verified as the text has them.
    tfrt_ir::verify(&module)?;
    if module.n_ops() > limits.nodes {
        let message = format!(
            "expected at most {} operations, found {}",
            limits.nodes,
            module.n_ops()
        );
        return Err(Diagnostic::error(codes::MODEL_TOO_LARGE, message).into());
    }
    let main = main(&module)?;
    signature::name(&mut module, main)?;
    Ok(module.into())
}

/// Returns the function that is the model: `@main`, or the only one that is public.
fn main(module: &Module) -> Result<OpId, Diagnostics> {
    let functions = module
        .children(module.top())
        .filter(|op| *module.op(*op).name() == "func.func");
    let functions: Vec<OpId> = functions.collect();
    let named = functions
        .iter()
        .find(|op| module.symbol_name(**op) == Some("main"));
    let is_public = |op: &&OpId| {
        let visibility = module.op(**op).attribute("sym_visibility");
        visibility.and_then(tfrt_ir::Attribute::as_str) != Some("private")
    };
    let public: Vec<&OpId> = functions.iter().filter(is_public).collect();
    match (named, &public[..]) {
        (Some(main), _) => Ok(*main),
        (None, [only]) => Ok(**only),
        (None, all) => {
            let message = format!(
                "expected a function '@main', or one that is public, found {} of these",
                all.len()
            );
            Err(module
                .error_at(codes::NOT_A_MODEL, module.top(), message)
                .into())
        }
    }
}
