//! [`Cut`]: an input that is cut into those of the steps.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use tfrt::model::{Datum, Dim, ValueInfo};
use tfrt::tensor::Tensor;
use tfrt::{Error, HostAllocator};

use crate::commands::model_inputs::dims;
use crate::data::steps;
use crate::failure::Failure;

/// An input that is cut along a dimension, in pieces of a size.
pub(super) struct Cut {
    pub(super) input: usize,
    pub(super) dimension: usize,
    pub(super) size: usize,
    pub(super) form: Form,
}

/// The form of the pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The dimension is one more than the model takes, and gone.
    Element,
    /// They have the dimension.
    Range,
    /// They begin with so many elements from before the first step, and end with those of the step: all that a cache has
    /// seen by then.
    UpTo { n_before: usize },
    /// They begin with so many elements from before the step, which are zeros before the first, and the last is filled with
    /// zeros.
    Behind { n_before: usize },
}

impl Cut {
    /// Cuts an input that has the length of what a cache has seen, such as a mask: `grown` are the names of such lengths,
    /// and `taken` the elements of all steps and of one. Others are not cut.
    pub(super) fn up_to(
        (index, input): (usize, &ValueInfo),
        datum: &Datum,
        grown: &BTreeSet<String>,
        (n_taken, size): (usize, usize),
    ) -> Result<Option<Cut>, Failure> {
        let own = dims(input);
        let is_grown = |dim: &Dim| symbol(dim).is_some_and(|name| grown.contains(name));
        let (Some(dimension), Datum::Tensor(tensor)) = (own.iter().position(is_grown), datum)
        else {
            return Ok(None);
        };
        let extents = tensor.metadata().shape.to_dims();
        if extents.len() != own.len() {
            return Ok(None);
        }
        let Some(n_before) = extents[dimension].checked_sub(n_taken) else {
            return Err(Failure::Usage(format!(
                "input '{}' is for all that the steps have seen: dimension {dimension} has {} elements, expected at \
                 least {n_taken}",
                input.name, extents[dimension]
            )));
        };
        Ok(Some(Cut {
            input: index,
            dimension,
            size,
            form: Form::UpTo { n_before },
        }))
    }

    /// Returns how many steps an input has.
    pub(super) fn n_steps(&self, input: &ValueInfo, datum: &Datum) -> Result<usize, Failure> {
        let (dimension, size, name) = (self.dimension, self.size, &input.name);
        let extent = self.n_taken(datum);
        let is_fixed = matches!(dims(input).get(dimension), Some(Dim::Fixed(_)));
        if self.form == Form::Range && is_fixed && !extent.is_multiple_of(size) {
            return Err(Failure::Usage(format!(
                "input '{name}' can't be cut in pieces of {size}: dimension {dimension} has {extent} elements, which is \
                 no multiple"
            )));
        }
        match extent.div_ceil(size) {
            0 => Err(Failure::Usage(format!(
                "input '{name}' has no steps: dimension {dimension} has 0 elements"
            ))),
            n => Ok(n),
        }
    }

    /// Returns the elements of a step.
    pub(super) fn range(&self, step: usize, extent: usize) -> Range<usize> {
        let begin = step * self.size;
        match self.form {
            Form::Element | Form::Range => begin..extent.min(begin.saturating_add(self.size)),
            Form::UpTo { n_before } => {
                0..extent.min(n_before.saturating_add(begin).saturating_add(self.size))
            }
            Form::Behind { n_before } => begin..begin + n_before + self.size,
        }
    }

    /// Adds the zeros that pieces have before the first element and behind the last.
    pub(super) fn filled(
        &self,
        tensor: &Tensor,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Option<Tensor>, Error> {
        let Form::Behind { n_before } = self.form else {
            return Ok(None);
        };
        let extent = tensor.metadata().shape.to_dims()[self.dimension];
        let n_behind = extent.next_multiple_of(self.size) - extent;
        let filled = steps::fill(tensor, self.dimension, [n_before, n_behind], allocator)?;
        Ok(Some(filled))
    }

    pub(super) fn extent(&self, datum: &Datum) -> usize {
        match datum {
            Datum::Tensor(tensor) => tensor.metadata().shape.to_dims()[self.dimension],
            _ => 0,
        }
    }

    /// Returns how many elements the steps take.
    pub(super) fn n_taken(&self, datum: &Datum) -> usize {
        match self.form {
            Form::Behind { n_before } => self.extent(datum).saturating_sub(n_before),
            _ => self.extent(datum),
        }
    }
}

/// Returns the name of a dimension, if it has one.
pub(super) fn symbol(dim: &Dim) -> Option<&str> {
    match dim {
        Dim::Symbol(name) => Some(name),
        _ => None,
    }
}

/// Returns the index of the dimension of a name.
pub(super) fn position(input: &ValueInfo, name: &str) -> Option<usize> {
    let mut dims = dims(input).iter();
    dims.position(|dim| symbol(dim) == Some(name))
}
