//! The section `Model`: the function that is a model, and the names of its inputs and outputs.
//!
//! The gate reads it into a [`Model`], whose memory is proportional to the section.

use crate::{
    codes,
    cursor::{Cursor, reserve},
    error::BefError,
    layout::{FunctionIndex, SectionId},
    verify::Gate,
    writer::Payload,
};

/// The description of a model: a function of the file, with named inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The function; it has a body.
    pub function: FunctionIndex,
    /// The first arguments of the function. Those behind them are results of the function that
    /// makes the constants.
    pub inputs: Vec<ModelValue>,
    /// The results of the function, all of them.
    pub outputs: Vec<ModelValue>,
    /// Properties by name: who made the model, and what a compiler has noted of it.
    pub properties: Vec<(String, String)>,
}

/// An input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelValue {
    /// The name by which callers give or take the value.
    pub name: String,
    /// The type as programs spell it, such as `tensor<?x3xf32>`; never empty.
    pub ty: String,
    /// The extents, if it is a tensor of known rank.
    pub dimensions: Option<Vec<Dimension>>,
}

/// The extent of a dimension, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// An extent of which nothing is known.
    Unknown,
    /// A fixed extent.
    Fixed(u64),
    /// A symbolic extent: in one call all that have this name are equal.
    Symbol(String),
}

const UNKNOWN: u8 = 0;
const FIXED: u8 = 1;
const SYMBOL: u8 = 2;

impl Model {
    /// Returns the name of the function that makes what the function `name` takes behind its inputs.
    pub fn constants_of(name: &str) -> String {
        format!("{name}.constants")
    }

    /// Returns the name of the function that makes the initial state of another one: the last of its inputs, in their order. Its
    /// last outputs are the state behind a call.
    pub fn initial_of(name: &str) -> String {
        format!("{name}.initial")
    }

    /// Returns the property of this name.
    pub fn property(&self, name: &str) -> Option<&str> {
        let mut all = self.properties.iter();
        all.find(|(key, _)| key == name)
            .map(|(_, text)| text.as_str())
    }

    /// Writes the section.
    pub(crate) fn payload(&self) -> Payload {
        let mut payload = Payload::default();
        payload.varint(self.function.0);
        for values in [&self.inputs, &self.outputs] {
            payload.count(values.len());
            for value in values {
                write_value(&mut payload, value);
            }
        }
        payload.count(self.properties.len());
        for (name, value) in &self.properties {
            write_text(&mut payload, name);
            write_text(&mut payload, value);
        }
        payload
    }
}

fn write_text(payload: &mut Payload, text: &str) {
    payload.count(text.len());
    payload.bytes(text.as_bytes());
}

fn write_value(payload: &mut Payload, value: &ModelValue) {
    write_text(payload, &value.name);
    write_text(payload, &value.ty);
    let Some(dimensions) = &value.dimensions else {
        return payload.count(0);
    };
    payload.count(dimensions.len() + 1);
    for dimension in dimensions {
        match dimension {
            Dimension::Unknown => payload.byte(UNKNOWN),
            Dimension::Fixed(size) => {
                payload.byte(FIXED);
                payload.varint(*size);
            }
            Dimension::Symbol(name) => {
                payload.byte(SYMBOL);
                write_text(payload, name);
            }
        }
    }
}

/// Reads the section, if the file has it.
pub(crate) fn model(gate: &mut Gate<'_>) -> Result<(), BefError> {
    let id = SectionId::Model as u8;
    if !gate.index.sections.iter().any(|section| section.id == id) {
        return Ok(());
    }
    let mut cursor = gate.cursor(SectionId::Model, "invalid Model section in BEF file");
    let position = cursor.position();
    let function = cursor.varint32()?;
    let record = gate.index.functions.get(function as usize);
    let Some(record) = record.filter(|record| record.body.is_some()) else {
        let message = format!("function {function} has no body to be a model");
        return Err(cursor.error_at(codes::MODEL, position, &message));
    };
    let (n_arguments, n_results) = (record.arguments.len(), record.results.len());
    let position = cursor.position();
    let inputs = list(&mut cursor, MIN_VALUE_BYTES, read_value)?;
    if inputs.len() > n_arguments {
        let found = inputs.len();
        let message = format!("{found} inputs for a function of {n_arguments} arguments");
        return Err(cursor.error_at(codes::MODEL, position, &message));
    }
    let position = cursor.position();
    let outputs = list(&mut cursor, MIN_VALUE_BYTES, read_value)?;
    if outputs.len() != n_results {
        let found = outputs.len();
        let message = format!("{found} outputs for a function of {n_results} results");
        return Err(cursor.error_at(codes::MODEL, position, &message));
    }
    let properties = list(&mut cursor, 2, |cursor| Ok((text(cursor)?, text(cursor)?)))?;
    cursor.finish()?;
    gate.index.model = Some(Model {
        function: FunctionIndex(function),
        inputs,
        outputs,
        properties,
    });
    Ok(())
}

/// The least bytes of an input or output: two lengths, one byte of the type, and the rank.
const MIN_VALUE_BYTES: usize = 4;

fn list<T>(
    cursor: &mut Cursor<'_>,
    entry_bytes: usize,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<T, BefError>,
) -> Result<Vec<T>, BefError> {
    let mut entries = Vec::new();
    for _ in 0..cursor.count(entry_bytes)? {
        reserve(&mut entries, 1, cursor.position())?;
        entries.push(read(cursor)?);
    }
    Ok(entries)
}

fn text(cursor: &mut Cursor<'_>) -> Result<String, BefError> {
    let len = cursor.count(1)?;
    let position = cursor.position();
    let bytes = cursor.take(len)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let position = position + error.valid_up_to();
            Err(cursor.error_at(codes::STRING, position, "text is not UTF-8"))
        }
    }
}

fn read_value(cursor: &mut Cursor<'_>) -> Result<ModelValue, BefError> {
    let name = text(cursor)?;
    let position = cursor.position();
    let ty = text(cursor)?;
    if ty.is_empty() {
        return Err(cursor.error_at(codes::MODEL, position, "a value without a type"));
    }
    let dimensions = match cursor.varint()? {
        0 => None,
        // Each dimension takes a byte, so the loop ends when the bytes do.
        rank => {
            let mut dimensions = Vec::new();
            for _ in 1..rank {
                reserve(&mut dimensions, 1, cursor.position())?;
                dimensions.push(dimension(cursor)?);
            }
            Some(dimensions)
        }
    };
    Ok(ModelValue {
        name,
        ty,
        dimensions,
    })
}

fn dimension(cursor: &mut Cursor<'_>) -> Result<Dimension, BefError> {
    let position = cursor.position();
    match cursor.byte()? {
        UNKNOWN => Ok(Dimension::Unknown),
        FIXED => Ok(Dimension::Fixed(cursor.varint()?)),
        SYMBOL => Ok(Dimension::Symbol(text(cursor)?)),
        other => {
            let message = format!("{other} is no kind of dimension");
            Err(cursor.error_at(codes::MODEL, position, &message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BefBuffer, BefFile, BefWriter, FunctionKind, assemble,
        writer::{FunctionBody, FunctionEntry},
    };

    fn value(name: &str, dimensions: Option<Vec<Dimension>>) -> ModelValue {
        let (name, ty) = (name.to_owned(), "tensor<?x3xf32>".to_owned());
        ModelValue {
            name,
            ty,
            dimensions,
        }
    }

    fn writer(model: Option<Model>) -> BefWriter {
        let mut writer = BefWriter::new();
        let (name, ty) = (writer.strings.insert("main"), writer.strings.insert("i32"));
        writer.types = vec![ty];
        writer.functions.push(FunctionEntry {
            kind: FunctionKind::Async,
            name,
            arguments: vec![0, 0],
            results: vec![0],
            body: Some(FunctionBody::new(2, 2, vec![], vec![0]).into()),
        });
        writer.model = model;
        writer
    }

    fn model() -> Model {
        let dimensions = vec![
            Dimension::Symbol("N".into()),
            Dimension::Fixed(300),
            Dimension::Unknown,
        ];
        Model {
            function: FunctionIndex(0),
            inputs: vec![value("x", Some(dimensions))],
            outputs: vec![value("y", None)],
            properties: vec![("producer".into(), "a test".into())],
        }
    }

    /// Returns the gate's error if the section has other bytes.
    fn refused(bytes: Vec<u8>) -> String {
        let mut sections = writer(None).sections();
        sections.push((SectionId::Model as u8, Payload::from_bytes(bytes, 1)));
        let error = BefFile::open(BefBuffer::from_vec(assemble(&sections))).unwrap_err();
        error.to_string().split_once(": ").unwrap().1.to_owned()
    }

    #[test]
    fn what_is_written_is_read() {
        let file = BefFile::open(writer(Some(model())).finish()).unwrap();
        assert_eq!(file.model(), Some(&model()));
        assert_eq!(file.model().unwrap().property("producer"), Some("a test"));
        let none = BefFile::open(writer(None).finish()).unwrap();
        assert_eq!(none.model(), None);
    }

    #[test]
    fn what_is_written_is_listed() {
        let file = BefFile::open(writer(Some(model())).finish()).unwrap();
        let mut listed = Vec::new();
        crate::listing::list(&file, &mut |piece| {
            listed.push(piece.text.trim().to_owned())
        });
        let expected = [
            "'x': tensor<?x3xf32>, dimensions N x 300 x ?",
            "'y': tensor<?x3xf32>",
            "producer: a test",
        ];
        for text in expected {
            assert!(
                listed.iter().any(|line| line == text),
                "{text}: {listed:#?}"
            );
        }
    }

    #[test]
    fn wrong_sections_are_refused() {
        let whole = model().payload().as_bytes().to_vec();
        for len in 0..whole.len() {
            refused(whole[..len].to_vec());
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(refused(longer).contains("1 bytes are left over"));
        let mut other = model();
        other.function = FunctionIndex(7);
        assert!(refused(other.payload().as_bytes().to_vec()).contains("function 7 has no body"));
        let mut other = model();
        other.inputs = vec![value("x", None); 2];
        assert!(BefFile::open(writer(Some(other.clone())).finish()).is_ok());
        other.inputs = vec![value("x", None); 3];
        let wrong = refused(other.payload().as_bytes().to_vec());
        assert!(wrong.contains("3 inputs for a function of 2 arguments"));
        let mut other = model();
        other.outputs.clear();
        let wrong = refused(other.payload().as_bytes().to_vec());
        assert!(wrong.contains("0 outputs for a function of 1 results"));
        // A rank of 2^63 takes no memory.
        let mut huge = Payload::default();
        for byte in [0, 1, 1, b'x', 1, b'f'] {
            huge.byte(byte);
        }
        huge.varint(u64::MAX / 2);
        assert!(refused(huge.as_bytes().to_vec()).contains("no byte is left"));
    }

    #[test]
    fn error_says_where_text_is_not_utf8() {
        let mut named = model();
        named.inputs = vec![value("input", None)];
        let mut bytes = writer(Some(named)).finish().as_bytes().to_vec();
        let mut words = bytes.windows(5);
        let name = words.position(|word| word == b"input").unwrap();
        bytes[name + 2] = 0xff;
        let error = BefFile::open(BefBuffer::from_vec(bytes)).unwrap_err();
        assert_eq!((error.code(), error.offset()), (codes::STRING, name + 2));
    }

    #[test]
    fn constants_are_made_by_a_function_named_after_that_of_the_model() {
        assert_eq!(Model::constants_of("main"), "main.constants");
    }
}
