//! [`Attributes`]: the attributes of an operation, by name.

use std::borrow::Cow;
use std::sync::Arc;

use tfrt_host::kernel::{AggregateView, AttributeView};
use tfrt_host::{DType, Error, HostAllocator};
use tfrt_ops::names::{NameAttr, onnx};
use tfrt_ops::{AttrDef, AttrDefault, AttrValue};
use tfrt_tensor::{DenseHostTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape};

/// The attributes that a model, or an eager caller, states for an operation.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    operation: &'static str,
    source: Source<'a>,
    /// The names that the source has for attributes that are called otherwise here, and values that the operation's
    /// name implies.
    names: &'static [NameAttr],
}

/// The store of the attributes.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// A program: names and values alternately.
    Program(AggregateView<'a>),
    /// The memory of an eager caller.
    Caller(&'a [(&'static str, CallerAttr<'a>)]),
}

/// An attribute of an eager caller.
#[derive(Clone, Debug)]
pub(crate) enum CallerAttr<'a> {
    Integer(i64),
    Float(f32),
    Text(&'a [u8]),
    Integers(Cow<'a, [i64]>),
    Floats(Vec<f32>),
    Texts(Vec<&'a [u8]>),
    Type(DType),
}

/// The value of an attribute, in either store.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Program(AttributeView<'a>),
    Caller(&'a CallerAttr<'a>),
    /// An integer that the operation's name implies.
    Integer(i64),
    Text(&'static [u8]),
}

impl<'a> Value<'a> {
    fn integer(self) -> Option<i64> {
        match self {
            Value::Integer(value) => Some(value),
            Value::Program(view) => view.as_i64(),
            Value::Caller(CallerAttr::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    fn float(self) -> Option<f32> {
        match self {
            Value::Program(view) => view.as_f32(),
            Value::Caller(CallerAttr::Float(value)) => Some(*value),
            _ => None,
        }
    }

    fn text(self) -> Option<&'a str> {
        match self {
            Value::Program(view) => view.as_str(),
            Value::Caller(CallerAttr::Text(bytes)) => std::str::from_utf8(bytes).ok(),
            Value::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Returns an element type: a type, or ONNX's number for one.
    fn dtype(self) -> Option<DType> {
        match self {
            Value::Program(view) if view.as_dtype().is_some() => view.as_dtype(),
            Value::Caller(CallerAttr::Type(dtype)) => Some(*dtype),
            other => onnx::dtype(other.integer()?),
        }
    }

    fn integers(self) -> Option<&'a [i64]> {
        match self {
            Value::Program(view) if is_empty(view) => Some(&[]),
            Value::Program(view) => view.array(),
            Value::Caller(CallerAttr::Integers(list)) => Some(list),
            _ => None,
        }
    }

    fn floats(self) -> Option<&'a [f32]> {
        match self {
            Value::Program(view) if is_empty(view) => Some(&[]),
            Value::Program(view) => view.array(),
            Value::Caller(CallerAttr::Floats(list)) => Some(list),
            Value::Caller(CallerAttr::Integers(list)) if list.is_empty() => Some(&[]),
            _ => None,
        }
    }

    fn texts(self) -> Option<Vec<&'a [u8]>> {
        match self {
            Value::Program(view) => {
                let list = view.aggregate()?;
                (0..list.len())
                    .map(|index| list.get(index)?.as_bytes())
                    .collect()
            }
            Value::Caller(CallerAttr::Texts(list)) => Some(list.clone()),
            Value::Caller(CallerAttr::Integers(list)) if list.is_empty() => Some(Vec::new()),
            _ => None,
        }
    }
}

impl<'a> Attributes<'a> {
    pub(super) fn new(operation: &'static str, view: AttributeView<'a>) -> Result<Self, Error> {
        let list = view.aggregate().filter(|list| list.len() % 2 == 0);
        let list = list.ok_or_else(|| {
            let message = "attributes are expected to be names and values alternately";
            Error::invalid_argument(format!("{operation}: {message}"))
        })?;
        let source = Source::Program(list);
        Ok(Attributes {
            operation,
            source,
            names: &[],
        })
    }

    /// Makes attributes of an eager caller's list.
    pub(super) fn stated(
        operation: &'static str,
        list: &'a [(&'static str, CallerAttr<'a>)],
    ) -> Self {
        let source = Source::Caller(list);
        Attributes {
            operation,
            source,
            names: &[],
        }
    }

    /// Sets the names that the source has for attributes.
    pub(super) fn named(self, names: &'static [NameAttr]) -> Self {
        Attributes { names, ..self }
    }

    /// Returns whether an attribute is stated.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn get(&self, name: &str) -> Option<Value<'a>> {
        let Some(own) = self.names.iter().find(|own| own.row() == name) else {
            return self.of_source(name);
        };
        match own.fixed() {
            Some(AttrValue::Bytes(text)) => Some(Value::Text(text)),
            Some(AttrValue::Int(value)) => Some(Value::Integer(value)),
            _ => self.of_source(own.source()?),
        }
    }

    fn of_source(&self, name: &str) -> Option<Value<'a>> {
        match self.source {
            Source::Program(list) => {
                let mut names = (0..list.len()).step_by(2);
                let is_named = |index: &usize| {
                    let found = list.get(*index).and_then(|view| view.as_str());
                    found == Some(name)
                };
                let index = names.find(is_named)?;
                list.get(index + 1).map(Value::Program)
            }
            Source::Caller(list) => {
                let found = list.iter().find(|(own, _)| *own == name);
                found.map(|(_, value)| Value::Caller(value))
            }
        }
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(view) = self.get(name) else {
            return Ok(None);
        };
        match read(view) {
            Some(value) => Ok(Some(value)),
            None => Err(self.error(name, format_args!("is expected to be {expected}"))),
        }
    }

    /// Makes an error about an attribute: "Conv: attribute 'group' ...".
    pub fn error(&self, name: &str, message: impl std::fmt::Display) -> Error {
        let operation = self.operation;
        Error::invalid_argument(format!("{operation}: attribute '{name}' {message}"))
    }

    /// Makes the error for an attribute that must be stated, and is not.
    pub fn missing(&self, name: &str) -> Error {
        self.error(name, "is missing")
    }

    /// Returns an integer attribute.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Error> {
        self.read(name, "an integer", Value::integer)
    }

    /// Returns an integer attribute, or a default if it is not stated.
    ///
    /// # Errors
    ///
    /// See [`integer`](Self::integer).
    pub fn integer_or(&self, name: &str, default: i64) -> Result<i64, Error> {
        Ok(self.integer(name)?.unwrap_or(default))
    }

    /// Returns whether an integer attribute is not 0.
    ///
    /// # Errors
    ///
    /// See [`integer`](Self::integer).
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Error> {
        Ok(self.integer(name)?.map_or(default, |integer| integer != 0))
    }

    /// Returns an attribute that is a size, or a default if it is not stated.
    ///
    /// # Errors
    ///
    /// Those of [`integer`](Self::integer), and `InvalidArgument` if it is below 0.
    pub fn size_or(&self, name: &str, default: usize) -> Result<usize, Error> {
        let Some(found) = self.integer(name)? else {
            return Ok(default);
        };
        let size = usize::try_from(found);
        size.map_err(|_| {
            self.error(
                name,
                format_args!("is expected to be 0 or more, found {found}"),
            )
        })
    }

    /// Returns a float attribute.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn float(&self, name: &str) -> Result<Option<f32>, Error> {
        self.read(name, "a float", Value::float)
    }

    /// Returns a float attribute, or a default if it is not stated.
    ///
    /// # Errors
    ///
    /// See [`float`](Self::float).
    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, Error> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// Returns a number that the row defines, or its default; an integer is a truth value.
    ///
    /// # Errors
    ///
    /// See [`float`](Self::float).
    pub(super) fn number_of(&self, attr: &AttrDef) -> Result<f64, Error> {
        if let AttrDefault::Int(default) = attr.default {
            return Ok(u8::from(self.flag(attr.name, default != 0)?).into());
        }
        let default = || match attr.default {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "stated ones have 32 bits, too"
            )]
            AttrDefault::Float(value) => value as f32,
            _ => 0.0,
        };
        Ok(self.float(attr.name)?.unwrap_or_else(default).into())
    }

    /// Returns the attribute `kind`, which chooses what the operation does.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is missing, or no string.
    pub fn kind(&self) -> Result<&'a str, Error> {
        self.string("kind")?.ok_or_else(|| self.missing("kind"))
    }

    /// Returns a string attribute.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>, Error> {
        self.read(name, "a string", Value::text)
    }

    /// Returns a string attribute, or a default if it is not stated.
    ///
    /// # Errors
    ///
    /// See [`string`](Self::string).
    pub fn string_or(&self, name: &str, default: &'a str) -> Result<&'a str, Error> {
        Ok(self.string(name)?.unwrap_or(default))
    }

    /// Returns an attribute that is an element type, or ONNX's number for one.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn dtype(&self, name: &str) -> Result<Option<DType>, Error> {
        let read = self.read(name, "a type of elements", Value::dtype);
        read.map_err(|error| match self.get(name).and_then(Value::integer) {
            Some(found) => self.error(name, format_args!("is no known type: {found}")),
            None => error,
        })
    }

    /// Returns an attribute that is a list of integers.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn integers(&self, name: &str) -> Result<Option<&'a [i64]>, Error> {
        self.read(name, "a list of integers", Value::integers)
    }

    /// Returns an attribute that is a list of floats.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn floats(&self, name: &str) -> Result<Option<&'a [f32]>, Error> {
        self.read(name, "a list of floats", Value::floats)
    }

    /// Returns an attribute that is a list of strings, which need not be UTF-8.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn strings(&self, name: &str) -> Result<Option<Vec<&'a [u8]>>, Error> {
        self.read(name, "a list of strings", Value::texts)
    }

    /// Returns a copy of a tensor attribute; a list of strings is a tensor of one dimension.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else, `ResourceExhausted` if there is no memory for it.
    pub fn tensor(
        &self,
        name: &str,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Option<Tensor>, Error> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        if let Value::Program(view) = value
            && let Some(tensor) = dense(view, allocator)?
        {
            return Ok(Some(tensor.into()));
        }
        let strings = self.strings(name).ok().flatten();
        let strings = strings.ok_or_else(|| self.error(name, "is expected to be a tensor"))?;
        let strings: Vec<Vec<u8>> = strings.into_iter().map(<[u8]>::to_vec).collect();
        let shape = TensorShape::new(&[strings.len()])?;
        Ok(Some(StringHostTensor::new(shape, strings)?.into()))
    }
}

/// Returns whether an attribute is a list without elements.
fn is_empty(view: AttributeView<'_>) -> bool {
    view.aggregate().is_some_and(|list| list.is_empty())
}

/// Copies the elements of an attribute, if it is dense.
pub(super) fn dense(
    view: AttributeView<'_>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Option<DenseHostTensor>, Error> {
    let Some(dense) = view.dense() else {
        return Ok(None);
    };
    let metadata = TensorMetadata::new(dense.dtype, TensorShape::from_i64(dense.shape)?);
    DenseHostTensor::from_bytes(allocator, metadata, dense.bytes).map(Some)
}
