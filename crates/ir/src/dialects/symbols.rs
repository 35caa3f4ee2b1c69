//! Checks of modules and functions as symbols, and of the attributes that they carry
//! for their dialects, in the words of MLIR.

use crate::{
    attributes::Attribute,
    codes,
    diagnostic::Diagnostics,
    dialect::Traits,
    module::{Module, OpId},
    op_spans,
    types::FunctionType,
    verifier::VerifyContext,
};

/// Checks where a symbol stands and who may see it.
pub(super) fn symbol(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let module = context.module;
    if module.symbol_name(op).is_none() {
        return;
    }
    let parent = module.parent_op(op).map(|parent| module.op(parent));
    // What nobody has defined might hold symbols.
    if let Some(definition) = parent.and_then(|parent| parent.definition())
        && !definition.is(Traits::SYMBOL_TABLE)
    {
        let message = "symbol's parent must have the SymbolTable trait";
        let error = module.op_error(codes::SYMBOL_PARENT, op, message);
        let help = "functions stand next to each other in the module, not within each other";
        diagnostics.push(error.help(help));
    }
    let visibility = module.op(op).attribute("sym_visibility");
    if let Some(visibility) = visibility.and_then(Attribute::as_str)
        && !matches!(visibility, "public" | "private" | "nested")
    {
        let message = format!(
            "visibility expected to be one of [\"public\", \"private\", \"nested\"], but got \
             \"{visibility}\""
        );
        diagnostics.push(module.op_error(codes::ATTRIBUTE_KIND, op, message));
    }
}

/// Checks that a module's attributes belong to dialects.
pub(super) fn module_attributes(module: &Module, op: OpId, diagnostics: &mut Diagnostics) {
    for (name, _) in module.op(op).attributes() {
        let is_own = matches!(name.as_str(), "sym_name" | "sym_visibility");
        if !is_own && !name.contains('.') {
            let message =
                format!("can only contain attributes with dialect-prefixed names, found: '{name}'");
            let error = module.op_error(codes::UNPREFIXED_ATTRIBUTE, op, message);
            let error = error.narrowed(module.source(), op_spans::attribute(module, op, name));
            diagnostics.push(error.help(prefix(name)));
            return;
        }
    }
}

/// Checks that the attributes of a function's arguments and results are as many as
/// those, and belong to dialects.
pub(super) fn argument_attributes(
    module: &Module,
    op: OpId,
    ty: &FunctionType,
    diagnostics: &mut Diagnostics,
) {
    let kinds = [
        ("arg_attrs", "argument", ty.inputs.len()),
        ("res_attrs", "result", ty.results.len()),
    ];
    for (name, what, wanted) in kinds {
        let Some(Attribute::Array(dictionaries)) = module.op(op).attribute(name) else {
            continue;
        };
        let found = dictionaries.len();
        if found != wanted && found != 0 {
            let message = format!(
                "expects {what} attribute array to have the same number of elements as the \
                 number of function {what}s, got {found}, but expected {wanted}"
            );
            diagnostics.push(module.op_error(codes::ATTRIBUTE_KIND, op, message));
            continue;
        }
        let without_dialect = |dictionary: &Attribute| match dictionary {
            Attribute::Dictionary(dictionary) => {
                let mut names = dictionary.entries().iter().map(|(name, _)| name);
                names.find(|name| !name.contains('.')).cloned()
            }
            _ => None,
        };
        if let Some(name) = dictionaries.iter().find_map(without_dialect) {
            let message = format!("{what}s may only have dialect attributes");
            let error = module.op_error(codes::UNPREFIXED_ATTRIBUTE, op, message);
            diagnostics.push(error.help(prefix(&name)));
        }
    }
}

/// Returns the advice on an attribute that lacks its dialect.
fn prefix(name: &str) -> String {
    format!("put a dialect before the name, such as 'my.{name}'")
}
