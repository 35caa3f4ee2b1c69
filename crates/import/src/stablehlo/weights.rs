//! Arguments of a model that become constants: its weights, which JAX's texts take as arguments.
//!
//! `as_text(debug_info=True)` states in an argument's location what the function calls it, such as
//! `p['params']['Dense_0']['kernel']`; files of weights have names such as `params.Dense_0.kernel` or `Dense_0/kernel`. Both
//! are words one after the other. A tensor is the argument whose words end with those of its name.

use std::sync::Arc;

use tfrt_ir::attributes::{Bytes, DenseAttribute, DenseElements};
use tfrt_ir::{Attribute, Diagnostic, Diagnostics, Module, OpId, OpState, Type};

use super::argument_names;
use crate::codes;

/// A tensor that takes the place of an argument.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Its name in the file.
    pub name: String,
    /// Its type, a tensor of known extents.
    pub ty: Type,
    /// Its elements, the last dimension first, little-endian.
    pub bytes: Bytes,
}

/// Makes constants of the arguments of a model that weights are for, and leaves the others: the model becomes a function of
/// these, which calls the one of the text. Weights that are for no argument are not needed: JAX drops what it does not use.
///
/// # Errors
///
/// If the module is no model of StableHLO, if no weight is for an argument, if one may be for several or several are for one,
/// and if one has another type than its argument.
pub fn bind(module: &mut Module, weights: Vec<Weight>) -> Result<(), Diagnostics> {
    let refused = |message: String| Err(Diagnostic::error(codes::MODEL_TENSOR, message).into());
    let is_model = |op: &OpId| module.op(*op).attribute("model.input_names").is_some();
    let main = module.children(module.top()).find(is_model);
    let region = main.and_then(|main| module.op(main).regions().first().copied());
    let block = region.and_then(|region| module.entry_block(region));
    let (Some(main), Some(block)) = (main, block) else {
        return refused("expected a model to bind weights to".to_owned());
    };
    let names = argument_names(module, block);
    let words: Vec<Vec<&str>> = names.iter().map(|name| words(name)).collect();
    let mut bound: Vec<Option<Weight>> = vec![None; names.len()];
    for weight in weights {
        let index = match place(&names, &words, &weight.name) {
            Place::None => continue,
            Place::One(index) => index,
            Place::Several(one, other) => {
                return refused(format!(
                    "the weights '{}' may be the argument '{}' or '{}'",
                    weight.name, names[one], names[other]
                ));
            }
        };
        let argument = module.block(block).arguments()[index];
        let stated = module.value_type(argument);
        if !is_of(stated, &weight.ty) {
            return refused(format!(
                "the weights '{}' are {}, expected {stated} of the argument '{}'",
                weight.name, weight.ty, names[index]
            ));
        }
        if let Some(other) = &bound[index] {
            return refused(format!(
                "the weights '{}' and '{}' are both the argument '{}'",
                other.name, weight.name, names[index]
            ));
        }
        bound[index] = Some(weight);
    }
    if bound.iter().all(Option::is_none) {
        let listed = names.iter().take(4).map(|name| format!("'{name}'"));
        let listed = listed.collect::<Vec<_>>().join(", ");
        return refused(format!(
            "none of the weights is for an argument: these are {listed} (`as_text(debug_info=True)` keeps their names)"
        ));
    }
    wrap(module, main, bound);
    Ok(())
}

/// Returns the words of a name: what is between dots, slashes, brackets and quotation marks.
fn words(name: &str) -> Vec<&str> {
    let parts = name.split(['.', '/', '[', ']', '\'', '"']);
    parts.filter(|word| !word.is_empty()).collect()
}

/// The arguments that a name may mean.
enum Place {
    None,
    One(usize),
    Several(usize, usize),
}

fn place(names: &[String], words_of: &[Vec<&str>], name: &str) -> Place {
    if let Some(index) = names.iter().position(|own| own == name) {
        return Place::One(index);
    }
    let own = words(name);
    if own.is_empty() {
        return Place::None;
    }
    // The first word is what the function calls the argument that has all weights.
    let exact = words_of
        .iter()
        .position(|words| words.get(1..) == Some(&own[..]));
    if let Some(index) = exact {
        return Place::One(index);
    }
    let mut ends = (0..words_of.len()).filter(|index| words_of[*index].ends_with(&own));
    match (ends.next(), ends.next()) {
        (None, _) => Place::None,
        (Some(index), None) => Place::One(index),
        (Some(one), Some(other)) => Place::Several(one, other),
    }
}

/// Returns whether a tensor's type is the one that is stated, whose extents may be unknown.
fn is_of(stated: &Type, found: &Type) -> bool {
    let (Some((stated, element)), Some((shape, own))) = (stated.as_shaped(), found.as_shaped())
    else {
        return false;
    };
    let fits = |(stated, own): (&i64, &i64)| *stated < 0 || stated == own;
    element == own && stated.len() == shape.len() && stated.iter().zip(&shape).all(fits)
}

/// Returns a tensor as an attribute: one element stands for all if they are equal.
fn dense(weight: &Weight) -> DenseAttribute {
    let mut value = DenseAttribute {
        ty: weight.ty.clone(),
        elements: DenseElements::Bytes(Bytes::new()),
        splat: false,
    };
    let size = value.element_size_bytes().max(1);
    let first = weight.bytes.get(..size).unwrap_or(&[]);
    value.splat = !first.is_empty() && weight.bytes.chunks(size).all(|one| one == first);
    value.elements = DenseElements::Bytes(match value.splat {
        true => Bytes::copy_from_slice(first),
        false => weight.bytes.clone(),
    });
    value
}

/// Puts a function in front of the model, which calls it with constants.
fn wrap(module: &mut Module, main: OpId, bound: Vec<Option<Weight>>) {
    let block = module.entry_block(module.op(main).regions()[0]);
    let block = block.expect("the model was found by its block");
    let own_name = module.symbol_name(main).unwrap_or("main").to_owned();
    let signature = module.op(main).attribute("function_type").cloned();
    let results = signature
        .as_ref()
        .and_then(Attribute::as_type)
        .and_then(Type::as_function)
        .map(|function| function.results.clone())
        .unwrap_or_default();
    let arguments = module.block(block).arguments().to_vec();
    let region = module.create_region();
    let outer = module.create_block(region);
    let (mut inputs, mut operands, mut operations) = (Vec::new(), Vec::new(), Vec::new());
    let kept: Vec<bool> = bound.iter().map(Option::is_none).collect();
    for (index, weight) in bound.into_iter().enumerate() {
        let ty = module.value_type(arguments[index]).clone();
        let location = module.block(block).argument_location(index);
        operands.push(match weight {
            None => {
                inputs.push(ty.clone());
                module.add_argument(outer, ty, location)
            }
            Some(weight) => {
                let value = dense(&weight);
                let constant = OpState::new("stablehlo.constant")
                    .attribute("value", Attribute::Dense(Arc::new(value)))
                    .result(weight.ty)
                    .location(location);
                let constant = module.create(constant);
                operations.push(constant);
                module.op(constant).results()[0]
            }
        });
    }
    let mut inner_name = format!("{own_name}.of_weights");
    while module.lookup_symbol(&inner_name).is_some() {
        inner_name.push('_');
    }
    let call = OpState::new("func.call")
        .operands(operands)
        .attribute("callee", Attribute::symbol(inner_name.as_str()))
        .results(results.iter().cloned());
    let call = module.create(call);
    let given = module.op(call).results().to_vec();
    let last = module.create(OpState::new("tfrt.return").operands(given));
    operations.extend([call, last]);
    module.set_operations(outer, operations);
    let function_type = Attribute::Type(Type::function(inputs, results));
    let mut function = OpState::new("func.func")
        .attribute("sym_name", Attribute::string(&own_name))
        .attribute("function_type", function_type)
        .region(region)
        .location(module.op(main).location().clone());
    for name in ["model.input_names", "model.input_dims"] {
        let list = module.remove_attribute(main, name);
        let list = list
            .as_ref()
            .and_then(Attribute::as_array)
            .unwrap_or_default();
        let rest = list.iter().zip(&kept).filter(|(_, kept)| **kept);
        let rest = rest.map(|(entry, _)| entry.clone()).collect();
        function = function.attribute(name, Attribute::array(rest));
    }
    for name in ["model.output_names", "model.output_dims"] {
        if let Some(list) = module.remove_attribute(main, name) {
            function = function.attribute(name, list);
        }
    }
    module.set_attribute(main, "sym_name", Attribute::string(&inner_name));
    module.set_attribute(main, "sym_visibility", Attribute::string("private"));
    if let Some(last) = module.block(block).last() {
        module.set_name(last, "func.return");
    }
    let function = module.create(function);
    let body = module.body();
    module.append(body, function);
}
