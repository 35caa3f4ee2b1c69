//! [`Room`]: the dimension along which a state grows in place, and how far.

use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, Error, HostAllocator};
use tfrt_tensor::{GrowableTensor, Tensor};

use crate::model::types::{Dim, ValueInfo, ValueType};

/// The room of a state: its most elements along one dimension.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// The name of the input.
    input: Arc<str>,
    pub(super) axis: usize,
    pub(super) extent: usize,
}

impl Room {
    pub(super) fn new(input: &ValueInfo, axis: usize, extent: usize) -> Room {
        let input = Arc::from(&*input.name);
        Room {
            input,
            axis,
            extent,
        }
    }

    fn name(&self) -> String {
        format!("state '{}'", self.input)
    }

    /// Returns a value with room behind it: a copy, unless it has as much already.
    pub(super) fn widen(
        self,
        value: AnyAsyncValue,
        allocator: &Arc<dyn HostAllocator>,
    ) -> AnyAsyncValue {
        let allocator = allocator.clone();
        let widened = move |value: AnyAsyncValue| {
            let tensor = match value.get::<Tensor>() {
                Some(tensor) => self.widened(tensor, &allocator),
                None => return value,
            };
            match tensor {
                Ok(tensor) => AnyAsyncValue::new(tensor),
                Err(error) => AnyAsyncValue::from_error(error),
            }
        };
        then(value, widened)
    }

    fn widened(
        &self,
        tensor: &Tensor,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Tensor, Error> {
        match tensor {
            Tensor::Growable(own) if (own.axis(), own.room()) == (self.axis, self.extent) => {
                Ok(tensor.clone())
            }
            _ => {
                let dense = tensor.as_dense()?;
                let (axis, extent, name) = (self.axis, self.extent, self.name());
                GrowableTensor::new(allocator, dense, axis, extent, name).map(Tensor::from)
            }
        }
    }

    /// Checks what a step makes of the state: it may be no longer than the room.
    pub(super) fn check(self, value: AnyAsyncValue, output: &str) -> AnyAsyncValue {
        let output: Arc<str> = Arc::from(output);
        let checked = move |value: AnyAsyncValue| {
            let Some(tensor) = value.get::<Tensor>() else {
                return value;
            };
            let metadata = tensor.metadata();
            let (name, axis, room) = (self.name(), self.axis, self.extent);
            match metadata.shape.extent(axis) {
                Some(found) if found > room => {
                    AnyAsyncValue::from_error(Error::invalid_argument(format!(
                        "{name} has room for {room} along dimension {axis}, and {found} are needed: output '{output}' \
                         is {metadata}"
                    )))
                }
                _ => value,
            }
        };
        then(value, checked)
    }
}

/// Returns what a function makes of a value, now or when it is there.
fn then(
    value: AnyAsyncValue,
    function: impl FnOnce(AnyAsyncValue) -> AnyAsyncValue + Send + 'static,
) -> AnyAsyncValue {
    let value = value.settled();
    if value.is_settled() {
        return function(value);
    }
    let (promise, made) = AnyAsyncValue::pending();
    value.when_settled(move |value| promise.forward(function(value)));
    made
}

/// Returns the dimension along which a state grows: the one that has another name in the output, or, if nothing is
/// known of names, the one of which nothing is known. `None` if there is none, or more than one.
pub(super) fn growing_axis(input: &ValueInfo, output: &ValueInfo) -> Option<usize> {
    let (ValueType::Tensor(_), ValueType::Tensor(_)) = (&input.kind, &output.kind) else {
        return None;
    };
    let pairs = || input.kind.dims().iter().zip(output.kind.dims()).enumerate();
    let only = |fits: fn(&Dim, &Dim) -> bool| {
        let mut found = pairs().filter(|(_, (own, next))| fits(own, next));
        match (found.next(), found.next()) {
            (Some((axis, _)), None) => Ok(axis),
            (first, _) => Err(first.is_some()),
        }
    };
    let is_renamed = |own: &Dim, next: &Dim| match (own, next) {
        (Dim::Symbol(own), Dim::Symbol(next)) => own != next,
        (Dim::Symbol(_), Dim::Unknown) | (Dim::Unknown, Dim::Symbol(_)) => true,
        _ => false,
    };
    let is_unknown = |own: &Dim, next: &Dim| matches!((own, next), (Dim::Unknown, Dim::Unknown));
    match only(is_renamed) {
        Ok(axis) => Some(axis),
        Err(true) => None,
        Err(false) => only(is_unknown).ok(),
    }
}
