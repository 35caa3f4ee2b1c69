//! [`Zeros`]: the state before the first step, where nobody gives one.

use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, DType, Error, HostAllocator};
use tfrt_kernels::tensor::strings::MAX_STRINGS;
use tfrt_tensor::{
    DenseHostTensor, Optional, Sequence, StringHostTensor, Tensor, TensorMetadata, TensorShape,
};

use super::room::{Room, growing_axis};
use crate::model::types::{Dim, TensorType, ValueInfo, ValueType};

/// The extents of a state that begins with zeros.
pub(super) struct Zeros {
    input: String,
    output: String,
    extents: Vec<usize>,
    /// The dimensions that are 1 for want of anything that says more.
    guessed: Vec<usize>,
    /// The room along the dimension that grows.
    room: Option<Room>,
    /// The room of a state that is all room: the dimension that nothing else gives a size is the longest length.
    pub(super) filled: Option<Room>,
}

impl Zeros {
    /// Finds the extents of the state of an input, which an output gives in the next step; `size_of` knows the sizes of
    /// dimensions that have names. With a longest length the state has room for it, in the dimension along which it
    /// grows, or else in the only one that nothing gives a size.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the number of dimensions is not known.
    pub(super) fn new(
        input: &ValueInfo,
        output: &ValueInfo,
        size_of: &dyn Fn(&str) -> Option<usize>,
        max_length: Option<usize>,
    ) -> Result<Zeros, Error> {
        let mut zeros = Zeros {
            input: input.name.clone(),
            output: output.name.clone(),
            extents: Vec::new(),
            guessed: Vec::new(),
            room: None,
            filled: None,
        };
        let ValueType::Tensor(tensor) = &input.kind else {
            return Ok(zeros);
        };
        let Some(dims) = &tensor.dims else {
            return Err(zeros.impossible(&input.kind, "has no known number of dimensions"));
        };
        for (index, dim) in dims.iter().enumerate() {
            let next = output.kind.dims().get(index).unwrap_or(&Dim::Unknown);
            let extent = extent_of(dim, next, size_of);
            if extent.is_none() {
                zeros.guessed.push(index);
            }
            zeros.extents.push(extent.unwrap_or(1));
        }
        if let Some(longest) = max_length {
            zeros.make_room(input, output, longest);
        }
        Ok(zeros)
    }

    fn make_room(&mut self, input: &ValueInfo, output: &ValueInfo, longest: usize) {
        if let Some(axis) = growing_axis(input, output) {
            if self.guessed.contains(&axis) {
                self.extents[axis] = 0;
                self.guessed.retain(|guessed| *guessed != axis);
            }
            self.room = Some(Room::new(input, axis, longest));
        } else if let [axis] = self.guessed[..] {
            self.extents[axis] = longest;
            self.guessed.clear();
            self.filled = Some(Room::new(input, axis, longest));
        }
    }

    /// Makes the value that the input is given.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a type that has no zeros, `ResourceExhausted` if there is no memory.
    pub(super) fn make(
        &self,
        input: &ValueInfo,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<AnyAsyncValue, Error> {
        match &input.kind {
            ValueType::Tensor(tensor) => {
                let tensor = self.tensor(&input.kind, tensor, allocator)?;
                let value = AnyAsyncValue::new(tensor);
                Ok(match self.room.clone() {
                    Some(room) => room.widen(value, allocator),
                    None => value,
                })
            }
            ValueType::Sequence(_) => Ok(AnyAsyncValue::new(Sequence::default())),
            ValueType::Optional(_) => Ok(AnyAsyncValue::new(Optional::Nothing)),
            ValueType::Map(..) => Err(self.impossible(&input.kind, "has no zeros")),
        }
    }

    fn tensor(
        &self,
        kind: &ValueType,
        tensor: &TensorType,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Tensor, Error> {
        let shape = TensorShape::new(&self.extents)?;
        match tensor.element {
            None => Err(self.impossible(kind, "has no known type of elements")),
            Some(DType::String) => {
                let n_strings = shape.n_elements().filter(|n| *n <= MAX_STRINGS);
                let Some(n_strings) = n_strings else {
                    return Err(self.impossible(kind, "has more strings than there may be"));
                };
                let empty = std::iter::repeat_n(Vec::new(), n_strings);
                StringHostTensor::collect(allocator, shape, empty).map(Tensor::from)
            }
            Some(element) => {
                let metadata = TensorMetadata::new(element, shape);
                DenseHostTensor::zeroed(allocator, metadata).map(Tensor::from)
            }
        }
    }

    fn impossible(&self, kind: &ValueType, why: &str) -> Error {
        let message = format!(
            "the state of input '{}' can't begin with zeros: {kind} {why}",
            self.input
        );
        Error::invalid_argument(message).with_note("give a value to begin with")
    }

    /// Checks what the first step makes of the state: extents that were guessed must be what they were, or else the
    /// state should have begun with others.
    pub(super) fn check(&self, value: AnyAsyncValue) -> AnyAsyncValue {
        if self.guessed.is_empty() {
            return value;
        }
        let Zeros {
            input,
            output,
            extents,
            guessed,
            ..
        } = self;
        let (input, output) = (input.clone(), output.clone());
        let (extents, guessed) = (extents.clone(), guessed.clone());
        let check = move |value: &AnyAsyncValue| {
            let shape = &value.get::<Tensor>()?.metadata().shape;
            let found: Vec<usize> = shape.extents().collect();
            let has_changed = |index: &&usize| found.get(**index) != Some(&extents[**index]);
            let index = guessed.iter().find(has_changed)?;
            let message = format!(
                "the state of input '{input}' began with zeros of shape {extents:?}, but output '{output}' is \
                 {found:?}: nothing says how large dimension {index} is in the beginning"
            );
            Some(
                Error::invalid_argument(message)
                    .with_note("give a value to begin with, or its size"),
            )
        };
        let value = value.settled();
        if value.is_settled() {
            return check(&value).map_or(value, AnyAsyncValue::from_error);
        }
        let (promise, checked) = AnyAsyncValue::pending();
        value.when_settled(move |value| match check(&value) {
            Some(error) => promise.fail(error),
            None => promise.forward(value),
        });
        checked
    }
}

/// Returns the extent that a dimension of an input has in the beginning; `None` if nothing says it. `next` is the same
/// dimension of the output.
fn extent_of(dim: &Dim, next: &Dim, size_of: &dyn Fn(&str) -> Option<usize>) -> Option<usize> {
    match (dim, next) {
        (Dim::Fixed(extent), _) => Some(*extent),
        (Dim::Symbol(name), next) => size_of(name).or(match next {
            Dim::Fixed(extent) => Some(*extent),
            Dim::Symbol(other) if other != name => Some(0),
            _ => None,
        }),
        (Dim::Unknown, Dim::Fixed(extent)) => Some(*extent),
        (Dim::Unknown, Dim::Symbol(name)) => size_of(name),
        (Dim::Unknown, Dim::Unknown) => None,
    }
}
