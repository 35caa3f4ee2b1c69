//! Describes a model's inputs and outputs, as attributes of its function.
//!
//! The importer states names and dimensions in lists of their own; a lowered function, whose types say
//! nothing, has them in one list each, which becomes the Model section of a file.

use tfrt_ir::{Attribute, Module, Name, OpId, Type};

use crate::model::{INPUTS, OUTPUTS, PROPERTIES};

/// Returns the attributes of the lowered function.
pub(super) fn attributes(module: &Module, function: OpId) -> Vec<(Name, Attribute)> {
    let data = module.op(function);
    let signature = data.attribute("function_type");
    let signature = signature.and_then(|ty| ty.as_type()?.as_function().cloned());
    let Some(signature) = signature else {
        return Vec::new();
    };
    let list = |name: &str| data.attribute(name).and_then(Attribute::as_array);
    let inputs = values(
        "input",
        &signature.inputs,
        list("model.input_names"),
        list("model.input_dims"),
    );
    let outputs = values(
        "output",
        &signature.results,
        list("model.output_names"),
        list("model.output_dims"),
    );
    let mut found = vec![(INPUTS.into(), inputs), (OUTPUTS.into(), outputs)];
    let top = module.op(module.top());
    for owner in [data, top] {
        let properties = owner.attribute("model.properties");
        if let Some(properties) = properties.filter(|value| value.as_array().is_some()) {
            found.push((PROPERTIES.into(), properties.clone()));
            break;
        }
    }
    found
}

/// Returns a list of names, types and dimensions.
fn values(
    what: &str,
    types: &[Type],
    names: Option<&[Attribute]>,
    dimensions: Option<&[Attribute]>,
) -> Attribute {
    let entry = |(position, ty): (usize, &Type)| {
        let name = names.and_then(|names| names.get(position)?.as_str().map(str::to_owned));
        let name = name.unwrap_or_else(|| format!("{what}{position}"));
        let stated = dimensions.and_then(|all| all.get(position)).cloned();
        let dimensions = match stated {
            Some(stated) => with_known(&stated, ty),
            None => of_type(ty),
        };
        Attribute::array(vec![
            Attribute::string(name),
            Attribute::Type(ty.clone()),
            dimensions,
        ])
    };
    Attribute::array(types.iter().enumerate().map(entry).collect())
}

/// Returns the dimensions that a model states, with the numbers of the inferred types for those that follow from
/// others.
fn with_known(stated: &Attribute, ty: &Type) -> Attribute {
    let (Some(dimensions), Some((shape, _))) = (stated.as_array(), ty.as_shaped()) else {
        return stated.clone();
    };
    if dimensions.len() != shape.len() {
        return stated.clone();
    }
    let one = |(dimension, size): (&Attribute, i64)| match (dimension, size) {
        (Attribute::String(_), 0..) => Attribute::integer(size, Type::I64),
        _ => dimension.clone(),
    };
    Attribute::array(dimensions.iter().zip(shape).map(one).collect())
}

/// Returns the dimensions that a type states.
fn of_type(ty: &Type) -> Attribute {
    let Some((shape, _)) = ty.as_shaped() else {
        return Attribute::Unit;
    };
    let dimension = |size: i64| match size {
        0.. => Attribute::integer(size, Type::I64),
        _ => Attribute::string(""),
    };
    Attribute::array(shape.into_iter().map(dimension).collect())
}
