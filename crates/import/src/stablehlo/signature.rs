//! The names and extents of a function's arguments and results.

use std::collections::HashSet;

use tfrt_ir::types::DYNAMIC;
use tfrt_ir::{Attribute, BlockId, Diagnostics, Location, Module, OpId, Type};

use crate::codes;

/// Returns the names of the arguments of a model's function: what locations call them, in JAX's texts with
/// `debug_info=True`; else `arg0` and so on.
pub fn argument_names(module: &Module, block: BlockId) -> Vec<String> {
    let n = module.block(block).arguments().len();
    let named = (0..n).map(|index| match module.block(block).argument_location(index) {
        Location::Name(named) => Some(named.name.as_str().to_owned()),
        _ => None,
    });
    unique(named, "arg")
}

/// Makes names unique; those that are missing or there already are numbered.
fn unique(names: impl Iterator<Item = Option<String>>, word: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let names = names.enumerate().map(|(index, name)| {
        let name = name.filter(|name| !name.is_empty() && !seen.contains(name));
        let mut name = name.unwrap_or_else(|| format!("{word}{index}"));
        while !seen.insert(name.clone()) {
            name.push('_');
        }
        name
    });
    names.collect()
}

/// Returns the texts of an attribute that each argument or result may have.
fn stated(module: &Module, function: OpId, list: &str, name: &str) -> Vec<Option<String>> {
    let all = module
        .op(function)
        .attribute(list)
        .and_then(Attribute::as_array);
    let of = |entries: &Attribute| match entries {
        Attribute::Dictionary(entries) => {
            let text = entries.get(name).and_then(Attribute::as_str);
            text.map(str::to_owned)
        }
        _ => None,
    };
    all.unwrap_or(&[]).iter().map(of).collect()
}

/// Gives a function the attributes by which it is a model.
pub(super) fn name(module: &mut Module, function: OpId) -> Result<(), Diagnostics> {
    let region = module.op(function).regions().first().copied();
    let block = region.and_then(|region| module.entry_block(region));
    let signature = module.op(function).attribute("function_type").cloned();
    let signature = signature
        .as_ref()
        .and_then(Attribute::as_type)
        .and_then(Type::as_function);
    let (Some(block), Some(signature)) = (block, signature) else {
        let message = "expected a function with a body";
        return Err(module
            .error_at(codes::NOT_A_MODEL, function, message)
            .into());
    };
    for ty in signature.inputs.iter().chain(&signature.results) {
        if ty.as_shaped().is_none() {
            let message = format!(
                "expected arguments and results that are tensors of known rank, found {ty}"
            );
            return Err(module.error_at(codes::MODEL_TYPE, function, message).into());
        }
    }
    let inputs = argument_names(module, block);
    let results = stated(module, function, "res_attrs", "jax.result_info");
    let n = signature.results.len();
    let results = results.into_iter().chain(std::iter::repeat(None)).take(n);
    let results = results.map(|name| name.map(|name| plain(&name)));
    let outputs = unique(results, "result");
    // Text does not say what unknown dimensions are called: those of inputs have the input's name, and their place.
    let dims = |ty: &Type, name: Option<&String>| {
        let (shape, _) = ty.as_shaped().unwrap_or((Vec::new(), &Type::None));
        let of = |(axis, size): (usize, &i64)| match (*size, name) {
            (DYNAMIC, Some(name)) => Attribute::string(format!("{name}.{axis}")),
            (DYNAMIC, None) => Attribute::string(""),
            (size, _) => Attribute::integer(size, Type::I64),
        };
        Attribute::array(shape.iter().enumerate().map(of).collect())
    };
    let texts = |names: &[String]| Attribute::array(names.iter().map(Attribute::string).collect());
    let input_dims = signature.inputs.iter().zip(&inputs);
    let input_dims = input_dims.map(|(ty, name)| dims(ty, Some(name)));
    let output_dims = signature.results.iter().map(|ty| dims(ty, None));
    let attributes = [
        ("model.input_names", texts(&inputs)),
        ("model.input_dims", Attribute::array(input_dims.collect())),
        ("model.output_names", texts(&outputs)),
        ("model.output_dims", Attribute::array(output_dims.collect())),
    ];
    for (name, value) in attributes {
        module.set_attribute(function, name, value);
    }
    // Attributes of values are names, and shardings of several devices.
    for name in ["arg_attrs", "res_attrs", "sym_visibility"] {
        module.remove_attribute(function, name);
    }
    if module.symbol_name(function) != Some("main") {
        module.set_attribute(function, "sym_name", Attribute::string("main"));
    }
    if let Some(last) = module.block(block).last()
        && *module.op(last).name() == "func.return"
    {
        module.set_name(last, "tfrt.return");
    }
    Ok(())
}

/// Returns what JAX calls a result without what all names begin with: `result['logits']` is `logits`.
fn plain(name: &str) -> String {
    let inner = name.strip_prefix("result").unwrap_or(name);
    let inner = inner
        .strip_prefix("['")
        .and_then(|inner| inner.strip_suffix("']"));
    match inner {
        Some(inner) if !inner.contains(['[', '\'']) => inner.to_owned(),
        _ => name.to_owned(),
    }
}
