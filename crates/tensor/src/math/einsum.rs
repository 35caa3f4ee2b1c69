//! Einsum: sums of products of elements along labelled dimensions.
//!
//! Every result is a sum of its own, in the order of the labels. That is as fast as it is short: products of large
//! matrices are better made by [`matmul`](super::matmul).

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Number;
use super::parallel;
use crate::math::Family;
use crate::with_real;
use crate::{DenseHostTensor, Dims, Element};

/// Labelled dimensions of an einsum: the output's extents, the summed extents, and strides of each input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    output: Dims,
    /// The extents of what is summed over.
    summed: Dims,
    /// For each input the strides along the dimensions of the output, and along the summed ones.
    strides: Vec<[Dims; 2]>,
}

impl Labels {
    /// Returns the dimensions that labels describe: labels of the result, once each, are kept, and the others are
    /// summed over. A label that stands twice in an input is its diagonal, and an extent of 1 is repeated.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an input has not a label for each dimension, if extents of one label differ, or if the
    /// result has a label that no input has, or one twice.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::math::einsum::Labels;
    ///
    /// // ij,jk->ik
    /// let product = Labels::new(&[(&[1, 2], &[4, 5]), (&[2, 3], &[5, 6])], &[1, 3])?;
    /// assert_eq!(product.output(), [4, 6]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn new(inputs: &[(&[u32], &[usize])], result: &[u32]) -> Result<Labels, Error> {
        let mut known: Vec<(u32, usize)> = Vec::new();
        for (labels, extents) in inputs {
            if labels.len() != extents.len() {
                let (found, wanted) = (labels.len(), extents.len());
                let message =
                    format!("expected a label for each of {wanted} dimensions, found {found}");
                return Err(Error::invalid_argument(message));
            }
            for (label, extent) in labels.iter().zip(*extents) {
                match known.iter_mut().find(|(other, _)| other == label) {
                    None => known.push((*label, *extent)),
                    Some((_, other)) if *other == 1 => *other = *extent,
                    Some((_, other)) if *extent == 1 || extent == other => {}
                    Some((_, other)) => {
                        let message = format!("a label has extents {other} and {extent}");
                        return Err(Error::invalid_argument(message));
                    }
                }
            }
        }
        let mut output = Dims::new();
        for (index, label) in result.iter().enumerate() {
            let found = known.iter().find(|(other, _)| other == label);
            match found {
                Some((_, extent)) if !result[..index].contains(label) => output.push(*extent),
                _ => {
                    let message =
                        "a label of the result stands in no input, or twice in the result";
                    return Err(Error::invalid_argument(message));
                }
            }
        }
        let rest: Vec<(u32, usize)> = known
            .into_iter()
            .filter(|(label, _)| !result.contains(label))
            .collect();
        let strides = inputs.iter().map(|(labels, extents)| {
            let own = row_major(extents);
            let of = |wanted: u32| {
                let dimensions = (0..labels.len())
                    .filter(|index| labels[*index] == wanted && extents[*index] != 1);
                // Too large only where there is no element.
                dimensions.fold(0_usize, |sum, index| sum.saturating_add(own[index]))
            };
            [
                result.iter().map(|label| of(*label)).collect(),
                rest.iter().map(|(label, _)| of(*label)).collect(),
            ]
        });
        let strides = strides.collect();
        let summed = rest.iter().map(|(_, extent)| *extent).collect();
        Ok(Labels {
            output,
            summed,
            strides,
        })
    }

    /// Returns the extents of the result.
    pub fn output(&self) -> &[usize] {
        &self.output
    }
}

fn row_major(extents: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, extents.len());
    for dimension in (1..extents.len()).rev() {
        strides[dimension - 1] = strides[dimension].saturating_mul(extents[dimension]);
    }
    strides
}

/// Calculates sums of products, on the workers of the request's queue if there is much to do.
///
/// # Shapes
///
/// The inputs have the extents that the labels were made for, `out` those of [`Labels::output`].
///
/// # Errors
///
/// `InvalidArgument` if they have not as many elements, or are of other types, and those of [`parallel::fill`].
pub fn einsum_into(
    execution: &ExecutionContext,
    labels: Labels,
    inputs: &[&DenseHostTensor],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    let dtype = inputs
        .first()
        .map_or(crate::DType::F32, |first| first.dtype());
    with_real!(dtype, T => einsum_of::<T>(execution, labels, inputs, out), else Err(Family::Reals.lacks(dtype)))
}

fn einsum_of<T: Number>(
    execution: &ExecutionContext,
    labels: Labels,
    inputs: &[&DenseHostTensor],
    out: &DenseHostTensor,
) -> Result<AsyncValue<Chain>, Error> {
    for input in inputs {
        input.metadata().expect_dtype(T::DTYPE)?;
    }
    let n_summed = labels
        .summed
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    let fits = inputs.len() == labels.strides.len() && out.shape().to_dims() == labels.output;
    let (Some(n_summed), true) = (n_summed, fits) else {
        let message = "inputs and result of a sum of products are not those of its labels";
        return Err(Error::invalid_argument(message));
    };
    let inputs: Vec<DenseHostTensor> = inputs.iter().map(|input| (*input).clone()).collect();
    let chunk = parallel::chunk_len(n_summed.saturating_mul(4 * inputs.len()), 1);
    parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
        let readings: Result<Vec<_>, Error> = inputs.iter().map(DenseHostTensor::read).collect();
        let readings = readings?;
        let elements: Result<Vec<&[T]>, Error> =
            readings.iter().map(|one| one.elements()).collect();
        let elements = elements?;
        for (index, out) in part.iter_mut().enumerate() {
            *out = labels.sum(&elements, first + index, n_summed)?;
        }
        Ok(())
    })
}

impl Labels {
    fn sum<T: Number>(&self, inputs: &[&[T]], index: usize, n_summed: usize) -> Result<T, Error> {
        let starts: Vec<usize> = self
            .strides
            .iter()
            .map(|[kept, _]| offset(index, &self.output, kept))
            .collect();
        let mut sum = <T::Wide as Element>::ZERO;
        for number in 0..n_summed {
            let mut product = <T::Wide as Number>::ONE;
            for (input, (start, [_, strides])) in
                inputs.iter().zip(starts.iter().zip(&self.strides))
            {
                let position = start + offset(number, &self.summed, strides);
                let element = input.get(position).ok_or_else(|| {
                    Error::invalid_argument(
                        "an input of a sum of products has fewer elements than its labels say",
                    )
                })?;
                product = product.times(element.widened());
            }
            sum = sum.plus(product);
        }
        Ok(T::narrowed(sum))
    }
}

/// Returns the offset of an element by its number in row-major order.
fn offset(mut number: usize, extents: &[usize], strides: &[usize]) -> usize {
    let mut offset = 0;
    for (extent, stride) in extents.iter().zip(strides).rev() {
        offset += number % extent * stride;
        number /= extent;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_say_what_is_summed() {
        let (a, b) = ([1_i64, 2, 3, 4, 5, 6], [1_i64, 10, 100]);
        // ij,j->i
        let labels = Labels::new(&[(&[1, 2], &[2, 3]), (&[2], &[3])], &[1]).unwrap();
        let sum = |index| labels.sum(&[&a[..], &b[..]], index, 3).unwrap();
        assert_eq!([sum(0), sum(1)], [321, 654]);
        // ii->i, of a square
        let diagonal = Labels::new(&[(&[1, 1], &[2, 2])], &[1]).unwrap();
        assert_eq!(diagonal.sum(&[&a[..4]], 1, 1).unwrap(), 4);
        assert!(Labels::new(&[(&[1, 2], &[2, 3]), (&[2], &[4])], &[1]).is_err());
        assert!(Labels::new(&[(&[1], &[2])], &[3]).is_err());
        assert!(Labels::new(&[(&[1], &[2])], &[1, 1]).is_err());
    }
}
