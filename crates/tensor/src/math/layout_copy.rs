//! Elements that are moved, not calculated with: transposed, sliced, padded, repeated, joined, gathered,
//! scattered.
//!
//! | To | Look at |
//! | --- | --- |
//! | exchange dimensions, take every third, turn around, repeat | [`LayoutCopy::transpose`], [`LayoutCopy::slice`], [`LayoutCopy::reverse`], [`LayoutCopy::tile`], [`LayoutCopy::broadcast`] |
//! | put something around, or cut off | [`LayoutCopy::pad`] |
//! | take what a list of positions names | [`LayoutCopy::gather`], [`gather_elements`], [`gather_nd`] |
//! | cut in parts | [`LayoutCopy::split`] |
//! | join | [`concat()`], [`stack`] |
//! | write to what a list of positions names | [`scatter_elements`], [`scatter_nd`] |
//! | mark a position | [`one_hot()`] |
//! | keep a triangle of matrices | [`triangle_into`] |
//! | turn sequences around, write behind them | [`reverse_sequences_into`], [`append_sequences`], [`write_sequences`] |
//!
//! A [`LayoutCopy`] is a description: it is made from shapes alone, may be kept, and runs on elements of any type.
//! Copies move words of the elements' size: there is one loop for all types of a size, and no bit of a
//! float changes.

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::parallel;
use crate::{
    DenseHostTensor, Dims, Element, TensorMetadata, TensorShape, TensorView, TensorViewMut,
    to_bytes, to_bytes_mut,
};

mod axis;
mod concat;
mod engine;
mod gather;
mod one_hot;
mod pad;
mod scatter;
mod sequences;
mod shuffle;
mod slice;
mod triangle;
mod update;
pub(crate) mod words;

pub use concat::{concat, concat_extents, concat_into, stack, stack_extents, stack_into};
pub use gather::gather_nd_extents;
pub use gather::{Position, gather_elements, gather_elements_into, gather_nd, gather_nd_into};
pub use one_hot::{one_hot, one_hot_extents, one_hot_into};
pub use pad::Edge;
pub use scatter::{Combine, scatter_elements, scatter_elements_into, scatter_nd, scatter_nd_into};
pub use sequences::{
    EndPolicy, append_sequences, centered, reverse_sequences_into, write_sequences,
};
pub use shuffle::shuffle_into;
pub use slice::Slice;
pub use triangle::{Triangle, triangle_into};
pub use update::update_slice;

pub(crate) use axis::Axis;
use engine::Engine;

/// A strided copy: for each element of a result its place in one input.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::layout_copy::LayoutCopy;
/// use tfrt_tensor::{TensorView, TensorViewMut};
///
/// let x = TensorView::new(&[1, 2, 3, 4, 5, 6], &[2, 3])?;
/// let turned = LayoutCopy::transpose(x.extents(), &[1, 0])?;
/// assert_eq!(turned.extents(), [3, 2]);
/// let mut out = [0; 6];
/// turned.run(&x, &mut TensorViewMut::new(&mut out, turned.extents())?)?;
/// assert_eq!(out, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LayoutCopy {
    input: Dims,
    output: Dims,
    /// Source of each dimension of the result; the product of their extents is the result's number of elements.
    ///
    /// Invariant: unless the result is empty, each position that an axis leads to is one of its dimension in
    /// the input.
    sources: SmallVec<[SourceAxis; 6]>,
}

/// Dimension of the input that a dimension of the result walks, with the walked positions; without a dimension it
/// repeats.
#[derive(Clone, Debug)]
struct SourceAxis {
    dimension: Option<usize>,
    axis: Axis,
}

impl LayoutCopy {
    /// Exchanges dimensions: dimension `i` of the result is `order[i]` of the input.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `order` does not name each dimension once.
    pub fn transpose(input: &[usize], order: &[usize]) -> Result<LayoutCopy, Error> {
        let mut seen = Dims::from_elem(0, input.len());
        for dimension in order {
            if let Some(count) = seen.get_mut(*dimension) {
                *count += 1;
            }
        }
        if order.len() != input.len() || seen.iter().any(|count| *count != 1) {
            let rank = input.len();
            let message = format!("{order:?} does not name each of {rank} dimensions once");
            return Err(Error::invalid_argument(message));
        }
        Ok(LayoutCopy {
            input: Dims::from_slice(input),
            output: order.iter().map(|dimension| input[*dimension]).collect(),
            sources: order
                .iter()
                .map(|dimension| whole(*dimension, input[*dimension]))
                .collect(),
        })
    }

    /// Turns dimensions around: their last element comes first.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if a dimension is missing or named twice.
    pub fn reverse(input: &[usize], dimensions: &[usize]) -> Result<LayoutCopy, Error> {
        let mut copy = LayoutCopy::all_of(input);
        let mut seen = Dims::from_elem(0, input.len());
        for dimension in dimensions {
            expect_dimension(input, *dimension)?;
            if std::mem::replace(&mut seen[*dimension], 1) == 1 {
                let message = format!("dimension {dimension} is named twice");
                return Err(Error::invalid_argument(message));
            }
            copy.sources[*dimension].axis = Axis::Regular {
                extent: input[*dimension],
                start: input[*dimension].saturating_sub(1),
                step: -1,
            };
        }
        Ok(copy)
    }

    /// Repeats the tensor along each dimension, `times` each.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is not a number for each dimension, or if an extent of the result is too
    /// large.
    pub fn tile(input: &[usize], times: &[usize]) -> Result<LayoutCopy, Error> {
        if times.len() != input.len() {
            let message = format!(
                "expected how often to repeat each of {} dimensions, found {times:?}",
                input.len()
            );
            return Err(Error::invalid_argument(message));
        }
        let mut copy = LayoutCopy::all_of(input);
        copy.sources.clear();
        for (dimension, times) in times.iter().enumerate() {
            let extent = input[dimension];
            copy.output[dimension] = extent
                .checked_mul(*times)
                .ok_or_else(|| too_large(dimension))?;
            copy.sources.push(SourceAxis {
                dimension: None,
                axis: Axis::first_repeated(*times),
            });
            copy.sources.push(whole(dimension, extent));
        }
        Ok(copy)
    }

    /// Broadcasts the tensor: dimensions of extent 1, and missing ones in front, are repeated to get the given shape.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if another extent differs, or if `output` has fewer.
    pub fn broadcast(input: &[usize], output: &[usize]) -> Result<LayoutCopy, Error> {
        let n_new = output.len().checked_sub(input.len());
        let fits = |n_new: usize| {
            let mut pairs = input.iter().zip(&output[n_new..]);
            pairs.all(|(own, wanted)| own == wanted || *own == 1)
        };
        let Some(n_new) = n_new.filter(|n_new| fits(*n_new)) else {
            let message = format!("{input:?} does not broadcast to {output:?}");
            return Err(Error::invalid_argument(message));
        };
        let source = |(index, extent): (usize, &usize)| match index.checked_sub(n_new) {
            Some(dimension) if input[dimension] == *extent => whole(dimension, *extent),
            _ => SourceAxis {
                dimension: None,
                axis: Axis::first_repeated(*extent),
            },
        };
        Ok(LayoutCopy {
            input: Dims::from_slice(input),
            output: Dims::from_slice(output),
            sources: output.iter().enumerate().map(source).collect(),
        })
    }

    /// Picks positions along each dimension by a list, as long as the result's extent. All positions are in the
    /// input, unless the result is empty. Fails if a list fails.
    pub(crate) fn by_lists(
        input: &[usize],
        output: &[usize],
        list: impl Fn(usize) -> Result<Vec<usize>, Error>,
    ) -> Result<LayoutCopy, Error> {
        let mut copy = LayoutCopy::all_of(input);
        copy.output = Dims::from_slice(output);
        let is_empty = output.contains(&0);
        for (dimension, source) in copy.sources.iter_mut().enumerate() {
            if input[dimension] == output[dimension] {
                continue;
            }
            // Of an empty result the other extents may be of any size.
            source.axis = match is_empty {
                true => Axis::first_repeated(output[dimension]),
                false => Axis::Listed(list(dimension)?.into()),
            };
        }
        Ok(copy)
    }

    /// Returns the extents of the result.
    pub fn extents(&self) -> &[usize] {
        &self.output
    }

    /// Returns the extents of the input.
    pub fn input_extents(&self) -> &[usize] {
        &self.input
    }

    /// Moves elements. What [`pad`](Self::pad) adds is 0.
    ///
    /// # Shapes
    ///
    /// `x` of the shape that the copy was made for, `out` of [`extents`](Self::extents).
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the shapes are not that.
    pub fn run<T: Element>(
        &self,
        x: &TensorView<'_, T>,
        out: &mut TensorViewMut<'_, T>,
    ) -> Result<(), Error> {
        self.run_around(x, T::ZERO, out)
    }

    /// Moves elements, with `around` as the value that [`pad`](Self::pad) adds.
    ///
    /// # Errors
    ///
    /// See [`run`](Self::run).
    pub fn run_around<T: Element>(
        &self,
        x: &TensorView<'_, T>,
        around: T,
        out: &mut TensorViewMut<'_, T>,
    ) -> Result<(), Error> {
        self.expect_shapes(x.extents(), out.extents())?;
        let engine = self.bind(x.strides());
        let (x, out) = (to_bytes(x.elements()), to_bytes_mut(out.as_mut_slice()));
        engine.run_bytes(T::DTYPE, x, to_bytes(&[around]), 0, out)
    }

    /// Moves elements of dense tensors, on the workers of the request's queue if they are large.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), if the types differ, and those of [`parallel::fill_bytes`].
    pub fn run_into(
        &self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        self.run_bytes_into(execution, x, vec![0; size_of_elements(x)], out)
    }

    /// Moves elements of dense tensors, on the workers of the request's queue if they are large, with the only
    /// element of a tensor as the value that [`pad`](Self::pad) adds.
    ///
    /// # Errors
    ///
    /// Those of [`run_into`](Self::run_into), and `InvalidArgument` if there is another number of elements to add.
    pub fn run_around_into(
        &self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        around: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        around.metadata().expect_dtype(x.dtype())?;
        if around.n_elements() != 1 {
            let found = around.metadata();
            let message = format!("expected one element to put around, found {found}");
            return Err(Error::invalid_argument(message));
        }
        let around = around.read()?.bytes().to_vec();
        self.run_bytes_into(execution, x, around, out)
    }

    fn run_bytes_into(
        &self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        around: Vec<u8>,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        let dtype = x.dtype();
        out.metadata().expect_dtype(dtype)?;
        self.expect_shapes(&x.shape().to_dims(), &out.shape().to_dims())?;
        let engine = self.bind(&x.shape().strides());
        let x = x.clone();
        let chunk = parallel::chunk_len(1, engine.multiple());
        parallel::fill_bytes(execution, out, chunk, move |first, part| {
            engine.run_bytes(dtype, x.read()?.bytes(), &around, first, part)
        })
    }

    /// Returns the metadata of the result, for an input of some type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `input` is not of the shape that the copy was made for, or if the result has
    /// an extent that no shape has.
    pub fn metadata(&self, input: &TensorMetadata) -> Result<TensorMetadata, Error> {
        self.expect_shapes(&input.shape.to_dims(), &self.output)?;
        let shape = TensorShape::new(&self.output)?;
        Ok(TensorMetadata::new(input.dtype, shape))
    }

    /// Returns the identity, to be changed by each constructor.
    fn all_of(input: &[usize]) -> LayoutCopy {
        LayoutCopy {
            input: Dims::from_slice(input),
            output: Dims::from_slice(input),
            sources: input
                .iter()
                .enumerate()
                .map(|(dimension, extent)| whole(dimension, *extent))
                .collect(),
        }
    }

    fn expect_shapes(&self, input: &[usize], output: &[usize]) -> Result<(), Error> {
        if input == &self.input[..] && output == &self.output[..] {
            return Ok(());
        }
        let (own_input, own_output) = (&self.input[..], &self.output[..]);
        Err(Error::invalid_argument(format!(
            "what moves elements of a tensor of shape {own_input:?} to one of shape {own_output:?} was given \
             tensors of shapes {input:?} and {output:?}"
        )))
    }

    /// Binds the copy to elements with these strides.
    fn bind(&self, strides: &[usize]) -> Engine {
        let axes = self.sources.iter().map(|source| {
            let stride = source.dimension.map_or(0, |dimension| strides[dimension]);
            (source.axis.clone(), stride)
        });
        Engine::new(axes)
    }
}

fn whole(dimension: usize, extent: usize) -> SourceAxis {
    SourceAxis {
        dimension: Some(dimension),
        axis: Axis::whole(extent),
    }
}

fn size_of_elements(tensor: &DenseHostTensor) -> usize {
    tensor.dtype().size_bytes().unwrap_or(1)
}

fn expect_dimension(extents: &[usize], dimension: usize) -> Result<(), Error> {
    let rank = extents.len();
    match dimension < rank {
        true => Ok(()),
        false => Err(Error::invalid_argument(format!(
            "there is no dimension {dimension}: the tensor has {rank}"
        ))),
    }
}

#[cold]
fn too_large(dimension: usize) -> Error {
    Error::invalid_argument(format!(
        "the extent of dimension {dimension} of the result exceeds the largest integer"
    ))
}

fn expect_result(wanted: &[usize], found: &[usize]) -> Result<(), Error> {
    if wanted == found {
        return Ok(());
    }
    let message = format!("expected a result of shape {wanted:?}, found {found:?}");
    Err(Error::invalid_argument(message))
}

#[cfg(test)]
mod tests;
