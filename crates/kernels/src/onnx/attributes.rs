//! [`Attributes`]: the attributes of an operation, by name.

use std::sync::Arc;

use tfrt_host::kernel::{AggregateView, AttributeView};
use tfrt_host::{Error, HostAllocator};
use tfrt_tensor::{DenseHostTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape};

/// The attributes of an operation: only those that the model states.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    operation: &'static str,
    list: AggregateView<'a>,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(operation: &'static str, view: AttributeView<'a>) -> Result<Self, Error> {
        let list = view.aggregate().filter(|list| list.len() % 2 == 0);
        let list = list.ok_or_else(|| {
            let message = "attributes are expected to be names and values alternately";
            Error::invalid_argument(format!("{operation}: {message}"))
        })?;
        Ok(Attributes { operation, list })
    }

    /// The attribute, if the model states it.
    pub fn get(&self, name: &str) -> Option<AttributeView<'a>> {
        let mut names = (0..self.list.len()).step_by(2);
        let is_named = |index: &usize| {
            let found = self.list.get(*index).and_then(|view| view.as_str());
            found == Some(name)
        };
        names
            .find(is_named)
            .and_then(|index| self.list.get(index + 1))
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(AttributeView<'a>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(view) = self.get(name) else {
            return Ok(None);
        };
        match read(view) {
            Some(value) => Ok(Some(value)),
            None => Err(self.error(name, format_args!("is expected to be {expected}"))),
        }
    }

    /// An error about an attribute: "Conv: attribute 'group' ...".
    pub fn error(&self, name: &str, message: impl std::fmt::Display) -> Error {
        let operation = self.operation;
        Error::invalid_argument(format!("{operation}: attribute '{name}' {message}"))
    }

    /// The error for an attribute that must be stated, and is not.
    pub fn missing(&self, name: &str) -> Error {
        self.error(name, "is missing")
    }

    /// An integer.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Error> {
        self.read(name, "an integer", |view| view.as_i64())
    }

    /// An integer, or another if it is not stated.
    ///
    /// # Errors
    ///
    /// As of [`integer`](Self::integer).
    pub fn integer_or(&self, name: &str, default: i64) -> Result<i64, Error> {
        Ok(self.integer(name)?.unwrap_or(default))
    }

    /// Whether an integer is not 0.
    ///
    /// # Errors
    ///
    /// As of [`integer`](Self::integer).
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Error> {
        Ok(self.integer(name)?.map_or(default, |integer| integer != 0))
    }

    /// A size, or another if it is not stated.
    ///
    /// # Errors
    ///
    /// As of [`integer`](Self::integer), and `InvalidArgument` if it is below 0.
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

    /// A float.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn float(&self, name: &str) -> Result<Option<f32>, Error> {
        self.read(name, "a float", |view| view.as_f32())
    }

    /// A float, or another if it is not stated.
    ///
    /// # Errors
    ///
    /// As of [`float`](Self::float).
    pub fn float_or(&self, name: &str, default: f32) -> Result<f32, Error> {
        Ok(self.float(name)?.unwrap_or(default))
    }

    /// A string.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn string(&self, name: &str) -> Result<Option<&'a str>, Error> {
        self.read(name, "a string", |view| view.as_str())
    }

    /// A string, or another if it is not stated.
    ///
    /// # Errors
    ///
    /// As of [`string`](Self::string).
    pub fn string_or(&self, name: &str, default: &'a str) -> Result<&'a str, Error> {
        Ok(self.string(name)?.unwrap_or(default))
    }

    /// A list of integers.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn integers(&self, name: &str) -> Result<Option<&'a [i64]>, Error> {
        self.read(name, "a list of integers", |view| match is_empty(view) {
            true => Some(&[][..]),
            false => view.array(),
        })
    }

    /// A list of floats.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn floats(&self, name: &str) -> Result<Option<&'a [f32]>, Error> {
        self.read(name, "a list of floats", |view| match is_empty(view) {
            true => Some(&[][..]),
            false => view.array(),
        })
    }

    /// A list of strings, which need not be UTF-8.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else.
    pub fn strings(&self, name: &str) -> Result<Option<Vec<&'a [u8]>>, Error> {
        self.read(name, "a list of strings", |view| {
            let list = view.aggregate()?;
            (0..list.len())
                .map(|index| list.get(index)?.as_bytes())
                .collect()
        })
    }

    /// A tensor, copied; a list of strings is one of one dimension.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is stated as something else, `ResourceExhausted` if there is no memory for it.
    pub fn tensor(
        &self,
        name: &str,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Option<Tensor>, Error> {
        let Some(view) = self.get(name) else {
            return Ok(None);
        };
        if let Some(tensor) = dense(view, allocator)? {
            return Ok(Some(tensor.into()));
        }
        let strings = self.strings(name).ok().flatten();
        let strings = strings.ok_or_else(|| self.error(name, "is expected to be a tensor"))?;
        let strings: Vec<Vec<u8>> = strings.into_iter().map(<[u8]>::to_vec).collect();
        let shape = TensorShape::new(&[strings.len()])?;
        Ok(Some(StringHostTensor::new(shape, strings)?.into()))
    }
}

/// Whether it is a list without elements.
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
