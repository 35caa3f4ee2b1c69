//! Epilogues of products: scale, shift, addend and activation, applied while sums are still in registers.

use std::ops::Range;
use std::sync::Arc;

use tfrt_host::Error;

use super::{BlockEpilogue, Residual};
use crate::dense::expect_dtype;
use crate::math::pointwise::PointwiseProgram;
use crate::{DenseHostTensor, TensorViewMut};

/// An activation that is applied while sums are in registers, as bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// No activation.
    #[default]
    None,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
}

impl Activation {
    fn bounds(self) -> (f32, f32) {
        match self {
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::Relu6 => (0.0, 6.0),
            Activation::None => (f32::NEG_INFINITY, f32::INFINITY),
        }
    }
}

/// The addend of an [`Epilogue`], before the activation.
#[derive(Clone, Copy, Debug, Default)]
pub enum Addend<'a> {
    /// No addend.
    #[default]
    Nothing,
    /// The result's old elements, times a factor.
    Result(f32),
    /// As many elements as the result has.
    Elements(&'a [f32]),
}

/// Epilogue of a product, applied to each sum: `sum * scale + shift + added`, then the activation, then a program.
///
/// `scale` and `shift` have an element for each column of the result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// Factor of each column.
    pub scale: Option<&'a [f32]>,
    /// Summands: the bias.
    pub shift: Option<&'a [f32]>,
    /// Further addend.
    pub added: Addend<'a>,
    /// The function at the end.
    pub activation: Activation,
    /// Program that is run over the activated elements: of one input of `f32`, with a result of `f32`.
    pub then: Option<&'a PointwiseProgram>,
}

impl<'a> Epilogue<'a> {
    /// Checks that the epilogue fits a result of these columns and elements.
    pub(crate) fn check(&self, n_columns: usize, n_elements: usize) -> Result<(), Error> {
        for list in [self.scale, self.shift].into_iter().flatten() {
            expect_per_column(n_columns, list.len())?;
        }
        match self.added {
            Addend::Elements(elements) => expect_added(n_elements, elements.len()),
            _ => Ok(()),
        }
    }

    /// Returns the epilogue for the elements of the result from the `first` on.
    pub(crate) fn from(&self, first: usize) -> Epilogue<'a> {
        let added = match self.added {
            Addend::Elements(elements) => Addend::Elements(&elements[first..]),
            other => other,
        };
        Epilogue { added, ..*self }
    }

    /// Runs the program of `then` over a finished block, while a cache holds it.
    pub(crate) fn finish(&self, block: &mut [f32]) -> Result<(), Error> {
        let Some(program) = self.then else {
            return Ok(());
        };
        let extents = [block.len()];
        program.run_over(TensorViewMut::new(block, &extents)?.into(), &[])
    }

    /// Returns the epilogue for these columns of the result.
    pub(crate) fn for_block(&self, columns: Range<usize>, stride: usize) -> BlockEpilogue<'a> {
        let (least, greatest) = self.activation.bounds();
        BlockEpilogue {
            scale: self.scale.map(|list| &list[columns.clone()]),
            shift: self.shift.map(|list| &list[columns.clone()]),
            residual: match self.added {
                Addend::Nothing => Residual::None,
                Addend::Result(factor) => Residual::Result(factor),
                Addend::Elements(elements) => Residual::Rows(&elements[columns.start..], stride),
            },
            least,
            greatest,
        }
    }
}

fn expect_per_column(wanted: usize, found: usize) -> Result<(), Error> {
    if wanted == found {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "expected an element for each of {wanted} columns, found {found}"
    )))
}

fn expect_added(wanted: usize, found: usize) -> Result<(), Error> {
    if wanted == found {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "expected to add {wanted} elements, found {found}"
    )))
}

/// The addend of a [`TensorEpilogue`].
#[derive(Clone, Debug, Default)]
pub enum TensorAddend {
    /// No addend.
    #[default]
    Nothing,
    /// The result's old elements.
    Result,
    /// A tensor with as many elements as the result.
    Tensor(DenseHostTensor),
}

/// An [`Epilogue`] of dense tensors.
#[derive(Clone, Debug, Default)]
pub struct TensorEpilogue {
    /// Factor of each column.
    pub scale: Option<DenseHostTensor>,
    /// Summand of each column.
    pub shift: Option<DenseHostTensor>,
    /// Further addend.
    pub added: TensorAddend,
    /// The function at the end.
    pub activation: Activation,
    /// Program that is run over the activated elements, see [`Epilogue::then`].
    pub then: Option<Arc<PointwiseProgram>>,
}

impl TensorEpilogue {
    /// Checks that the epilogue fits a result of these columns and elements.
    pub(crate) fn check(&self, n_columns: usize, n_elements: usize) -> Result<(), Error> {
        for list in [&self.scale, &self.shift].into_iter().flatten() {
            expect_dtype::<f32>(list.metadata())?;
            expect_per_column(n_columns, list.n_elements())?;
        }
        match &self.added {
            TensorAddend::Tensor(tensor) => {
                expect_dtype::<f32>(tensor.metadata())?;
                expect_added(n_elements, tensor.n_elements())
            }
            _ => Ok(()),
        }
    }

    /// Locks the tensors for reading, and calls `body` with their elements.
    pub(super) fn lend<R>(
        &self,
        body: impl FnOnce(&Epilogue<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let scale = self.scale.as_ref().map(DenseHostTensor::read).transpose()?;
        let shift = self.shift.as_ref().map(DenseHostTensor::read).transpose()?;
        let added = match &self.added {
            TensorAddend::Tensor(tensor) => Some(tensor.read()?),
            _ => None,
        };
        body(&Epilogue {
            scale: scale.as_ref().map(|list| list.elements()).transpose()?,
            shift: shift.as_ref().map(|list| list.elements()).transpose()?,
            added: match (&added, &self.added) {
                (Some(added), _) => Addend::Elements(added.elements()?),
                (None, TensorAddend::Result) => Addend::Result(1.0),
                _ => Addend::Nothing,
            },
            activation: self.activation,
            then: self.then.as_deref(),
        })
    }
}
