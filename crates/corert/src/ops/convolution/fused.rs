//! What follows a convolution, done with it: a bias or a normalisation, a summand, an activation.

use tfrt_host::Error;
use tfrt_tensor::math::normalize::ChannelTensors;
use tfrt_tensor::math::panel::{Activation, AddedTensor, TensorAfter};
use tfrt_tensor::{DType, DenseHostTensor, TensorMetadata};

use super::super::windows::Attributes;
use crate::call::Call;

/// What follows a convolution.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fused {
    pub bias: Bias,
    adds: bool,
    activation: Activation,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Bias {
    #[default]
    Nothing,
    Summands,
    Normalisation,
}

impl Bias {
    fn n_inputs(self) -> usize {
        match self {
            Bias::Nothing => 0,
            Bias::Summands => 1,
            Bias::Normalisation => 4,
        }
    }
}

impl Fused {
    /// Reads the attribute `fused_ops`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is something that nobody fuses.
    pub(super) fn of(attributes: Attributes<'_>) -> Result<Fused, Error> {
        let names = attributes.attrs.texts("fused_ops")?.unwrap_or_default();
        let mut rest = names.iter().copied().peekable();
        let mut take = |wanted: &[&str]| rest.next_if(|name| wanted.contains(name));
        let bias = match take(&["BiasAdd", "FusedBatchNorm"]) {
            None => Bias::Nothing,
            Some("BiasAdd") => Bias::Summands,
            Some(_) => Bias::Normalisation,
        };
        let adds = take(&["Add"]).is_some();
        let activation = match take(&["Relu", "Relu6"]) {
            None => Activation::None,
            Some("Relu") => Activation::Relu,
            Some(_) => Activation::Relu6,
        };
        match rest.next() {
            None => Ok(Fused { bias, adds, activation }),
            Some(_) => Err(attributes.error(format_args!(
                "Unsupported fusion type: expected BiasAdd or FusedBatchNorm, then Add, then Relu or Relu6, found \
                 {names:?}"
            ))),
        }
    }

    fn n_inputs(self) -> usize {
        self.bias.n_inputs() + usize::from(self.adds)
    }

    /// Tells whether the inputs, of which images and filter are the first, are what follows a convolution with this
    /// result.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are more or less, or if they are of other types or shapes.
    pub(super) fn expect_inputs(
        self,
        attributes: Attributes<'_>,
        inputs: &[&TensorMetadata],
        result: &TensorMetadata,
    ) -> Result<(), Error> {
        let (found, expected) = (inputs.len(), 2 + self.n_inputs());
        if found != expected {
            return Err(attributes.error(format_args!(
                "expected {expected} inputs by attribute 'fused_ops', found {found}"
            )));
        }
        if self.bias == Bias::Normalisation {
            attributes.epsilon()?;
        }
        let (lists, summands) = inputs[2..].split_at(self.bias.n_inputs());
        expect_lists(attributes, lists, result.shape.extents().last())?;
        match summands.iter().find(|summand| **summand != result) {
            None => Ok(()),
            Some(found) => Err(attributes.error(format_args!(
                "expected to add a tensor of {result}, found {found}"
            ))),
        }
    }

    /// What is done with each sum, and the tensor that the result goes to: what is added, if nobody else holds it. The
    /// inputs are [as expected](Self::expect_inputs).
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an input is not there.
    pub(super) fn take(self, call: &mut Call<'_>) -> Result<(TensorAfter, DenseHostTensor), Error> {
        let (scale, shift) = match self.bias {
            Bias::Nothing => (None, None),
            Bias::Summands => (None, Some(call.dense(2)?.clone())),
            Bias::Normalisation => {
                let (factors, summands) = normalisation(call)?;
                (Some(factors), Some(summands))
            }
        };
        let mut after = TensorAfter {
            scale,
            shift,
            added: AddedTensor::Nothing,
            activation: self.activation,
            then: None,
        };
        if !self.adds {
            return Ok((after, call.output(0)?));
        }
        let (index, result) = (1 + self.n_inputs(), call.result(0)?);
        if let Some(out) = call.take_like(index, result) {
            after.added = AddedTensor::Result;
            return Ok((after, out));
        }
        after.added = AddedTensor::Tensor(call.dense(index)?.clone());
        Ok((after, call.output(0)?))
    }
}

/// Tells whether biases, or scale, offset, mean and variance, have an element for each of `n` filters.
///
/// # Errors
///
/// `InvalidArgument` if one has not, or is not of `f32`.
pub(super) fn expect_lists(
    attributes: Attributes<'_>,
    lists: &[&TensorMetadata],
    n: Option<usize>,
) -> Result<(), Error> {
    let fits = |list: &TensorMetadata| list.dtype == DType::F32 && list.shape.n_elements() == n;
    match lists.iter().find(|list| !fits(list)) {
        None => Ok(()),
        Some(found) => Err(attributes.error(format_args!(
            "expected an element of f32 for each of {} filters, found {found}",
            n.unwrap_or(0)
        ))),
    }
}

/// Factors and summands of the normalisation in the inputs from the third on.
fn normalisation(call: &Call<'_>) -> Result<(DenseHostTensor, DenseHostTensor), Error> {
    let (factors, summands) = folded(call, [2, 3, 4, 5])?;
    let allocator = call.execution().host().allocator();
    let of = |list: &[f32]| DenseHostTensor::from_slice(allocator, &[list.len()], list);
    Ok((of(&factors)?, of(&summands)?))
}

/// The same of the inputs with these numbers: scale, offset, mean and variance.
///
/// # Errors
///
/// `InvalidArgument` if they are not of one length, or no `f32`s.
pub(super) fn folded(
    call: &Call<'_>,
    [scale, offset, mean, variance]: [usize; 4],
) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let attributes = Attributes::from(call);
    let channels = ChannelTensors {
        mean: call.dense(mean)?,
        variance: call.dense(variance)?,
        scale: call.dense(scale)?,
        shift: call.dense(offset)?,
    };
    attributes.named(channels.folded(attributes.epsilon()?))
}
