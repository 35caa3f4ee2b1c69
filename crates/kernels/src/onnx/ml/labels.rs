//! [`Labels`]: the labels of classes.

use std::sync::Arc;

use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, HostAllocator};
use tfrt_tensor::{DenseHostTensor, StringHostTensor, Tensor, TensorShape};

use super::super::{NodeCall, Outputs};

/// The labels of classes, strings or integers.
#[derive(Clone, Debug)]
pub(super) enum Labels {
    Integers(Vec<i64>),
    Strings(Vec<Vec<u8>>),
}

impl Labels {
    /// Reads labels from two attributes: the strings if they are not empty.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if neither is stated.
    pub(super) fn of(node: &NodeCall<'_>, strings: &str, integers: &str) -> Result<Labels, Error> {
        let of_strings = node.attributes.strings(strings)?.unwrap_or_default();
        if !of_strings.is_empty() {
            let list = of_strings.into_iter().map(<[u8]>::to_vec);
            return Ok(Labels::Strings(list.collect()));
        }
        match node.attributes.integers(integers)? {
            Some(list) if !list.is_empty() => Ok(Labels::Integers(list.to_vec())),
            _ => Err(node.error(format_args!(
                "expected labels in '{strings}' or '{integers}', found none"
            ))),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Labels::Integers(list) => list.len(),
            Labels::Strings(list) => list.len(),
        }
    }

    /// Returns the labels as a tensor of one dimension.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for them.
    pub(super) fn to_tensor(&self, node: &NodeCall<'_>) -> Result<Tensor, Error> {
        match self {
            Labels::Integers(list) => Ok(node.tensor_of(&[list.len()], list)?.into()),
            Labels::Strings(list) => {
                let shape = TensorShape::new(&[list.len()])?;
                Ok(node.strings_of(shape, list.iter().cloned())?.into())
            }
        }
    }

    /// Returns the token of a class: the label itself if it is an integer, of strings the index.
    pub(super) fn token(&self, class: usize) -> i64 {
        match self {
            Labels::Integers(list) => list.get(class).copied().unwrap_or(0),
            Labels::Strings(_) => i64::try_from(class).unwrap_or(0),
        }
    }

    /// Appends a result: the labels of tokens, which are there when the chain is.
    pub(super) fn push(
        &self,
        node: &NodeCall<'_>,
        outputs: &mut Outputs,
        tokens: DenseHostTensor,
        chain: &AsyncValue<Chain>,
    ) -> Result<(), Error> {
        let Labels::Strings(strings) = self else {
            *outputs = std::mem::take(outputs).and_later(tokens, chain.clone());
            return Ok(());
        };
        let allocator = node.execution.host().allocator();
        outputs.push(match chain.get() {
            Some(Ok(_)) => AnyAsyncValue::new(named(strings, &tokens, allocator)?),
            _ => {
                let (strings, allocator) = (strings.clone(), allocator.clone());
                let named = move |_: &Chain| named(&strings, &tokens, &allocator);
                let named = chain.clone().try_map(named);
                named.into_any()
            }
        });
        Ok(())
    }
}

fn named(
    strings: &[Vec<u8>],
    tokens: &DenseHostTensor,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    let reading = tokens.read()?;
    let string = |token: &i64| {
        let class = usize::try_from(*token).ok();
        let string = class.and_then(|class| strings.get(class));
        string.or(strings.last()).cloned().unwrap_or_default()
    };
    let tokens = reading.elements::<i64>()?;
    let shape = TensorShape::new(&[tokens.len()])?;
    Ok(StringHostTensor::collect(allocator, shape, tokens.iter().map(string))?.into())
}
