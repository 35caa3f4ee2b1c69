//! The attributes of a function that is a model, and the section of a file that they become.

use tfrt_bef::FunctionIndex;
use tfrt_bef::model::{Dimension, Model, ModelValue};
use tfrt_ir::{Attribute, Type};

/// The attribute with name, type and dimensions of each input.
pub(crate) const INPUTS: &str = "model.inputs";

/// The attribute with name, type and dimensions of each output.
pub(crate) const OUTPUTS: &str = "model.outputs";

/// The attribute with metadata: keys and values in turn.
pub(crate) const PROPERTIES: &str = "model.properties";

/// Makes the section of a function's attributes.
///
/// # Errors
///
/// The name of the attribute that is not as it must be.
pub(crate) fn read<'a>(
    function: FunctionIndex,
    attribute: impl Fn(&str) -> Option<&'a Attribute>,
) -> Result<Model, &'static str> {
    let list = |name: &'static str| match attribute(name) {
        Some(list) => list.as_array().ok_or(name),
        None => Ok(&[][..]),
    };
    let values = |name: &'static str| {
        let values = list(name)?.iter().map(value);
        values.collect::<Option<Vec<_>>>().ok_or(name)
    };
    let texts = list(PROPERTIES)?.iter();
    let texts: Option<Vec<&str>> = texts.map(Attribute::as_str).collect();
    let texts = texts.filter(|texts| texts.len().is_multiple_of(2));
    let pairs = texts.ok_or(PROPERTIES)?;
    let pairs = pairs.chunks_exact(2);
    Ok(Model {
        function,
        inputs: values(INPUTS)?,
        outputs: values(OUTPUTS)?,
        properties: pairs
            .map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
            .collect(),
    })
}

fn value(entry: &Attribute) -> Option<ModelValue> {
    let [name, Attribute::Type(ty), dimensions] = entry.as_array()? else {
        return None;
    };
    let dimensions = match dimensions {
        Attribute::Unit => None,
        list => {
            let list = list.as_array()?.iter().map(dimension);
            Some(list.collect::<Option<_>>()?)
        }
    };
    Some(ModelValue {
        name: name.as_str()?.to_owned(),
        ty: ty.to_string(),
        dimensions,
    })
}

fn dimension(entry: &Attribute) -> Option<Dimension> {
    match entry {
        Attribute::String(_) => match entry.as_str()? {
            "" => Some(Dimension::Unknown),
            name => Some(Dimension::Symbol(name.to_owned())),
        },
        size => Some(Dimension::Fixed(size.as_i64()?.try_into().ok()?)),
    }
}

/// Makes the attributes of a section.
pub(crate) fn attributes(
    model: &Model,
    ty: impl Fn(&str) -> Type,
) -> Vec<(&'static str, Attribute)> {
    let values = |values: &[ModelValue]| {
        let entry = |value: &ModelValue| {
            Attribute::array(vec![
                Attribute::string(&value.name),
                Attribute::Type(ty(&value.ty)),
                dimensions(value.dimensions.as_deref()),
            ])
        };
        Attribute::array(values.iter().map(entry).collect())
    };
    let mut all = vec![
        (INPUTS, values(&model.inputs)),
        (OUTPUTS, values(&model.outputs)),
    ];
    if !model.properties.is_empty() {
        let texts = model.properties.iter();
        let texts = texts.flat_map(|(name, text)| [name, text]);
        let texts = texts.map(Attribute::string).collect();
        all.push((PROPERTIES, Attribute::array(texts)));
    }
    all
}

fn dimensions(list: Option<&[Dimension]>) -> Attribute {
    let Some(list) = list else {
        return Attribute::Unit;
    };
    let one = |dimension: &Dimension| match dimension {
        Dimension::Unknown => Attribute::string(""),
        // What came out of text fits; a larger one of another tool's is as good as unknown.
        Dimension::Fixed(size) => i64::try_from(*size).map_or(Attribute::string(""), |size| {
            Attribute::integer(size, Type::I64)
        }),
        Dimension::Symbol(name) => Attribute::string(name),
    };
    Attribute::array(list.iter().map(one).collect())
}
