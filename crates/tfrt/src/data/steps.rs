//! Inputs of many steps cut into those of each, and the outputs of steps put together.

use std::ops::Range;
use std::sync::Arc;

use tfrt::tensor::{DType, DenseHostTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape};
use tfrt::{Error, HostAllocator};

/// Returns a range of a dimension of a tensor, without the dimension if it is not kept. What lies in one piece is not
/// copied.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory; `InvalidArgument` for a tensor that is not dense.
pub fn cut(
    tensor: &Tensor,
    dimension: usize,
    range: Range<usize>,
    is_kept: bool,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    let metadata = tensor.metadata();
    let extents = metadata.shape.to_dims();
    let mut shape = extents.to_vec();
    match is_kept {
        true => shape[dimension] = range.len(),
        false => drop(shape.remove(dimension)),
    }
    let shape = TensorShape::new(&shape)?;
    let rows = Rows::new(&extents, dimension);
    if metadata.dtype == DType::String {
        let strings = tensor.as_strings()?.strings();
        let taken = (0..rows.n_outer).flat_map(|outer| &strings[rows.range(outer, range.clone())]);
        let taken = StringHostTensor::collect(allocator, shape, taken.cloned())?;
        return Ok(taken.into());
    }
    let dense = tensor.as_dense()?;
    let metadata = TensorMetadata::new(metadata.dtype, shape);
    let size = size_of(metadata.dtype);
    let bytes = |outer| {
        let elements = rows.range(outer, range.clone());
        elements.start * size..elements.end * size
    };
    if rows.n_outer == 1
        && let Some(buffer) = dense.buffer().slice(bytes(0))
    {
        return Ok(DenseHostTensor::new(metadata, buffer)?.into());
    }
    let from = dense.read()?;
    let all = (0..rows.n_outer).map(|outer| &from.bytes()[bytes(outer)]);
    dense_of(metadata, all, allocator)
}

/// Adds so many zeros before and behind the elements of a dimension.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory; `InvalidArgument` for a tensor that is not dense, or too large.
pub fn fill(
    tensor: &Tensor,
    dimension: usize,
    [n_before, n_behind]: [usize; 2],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    let metadata = tensor.as_dense()?.metadata();
    let zeros = |n: usize| -> Result<Tensor, Error> {
        let mut extents = metadata.shape.to_dims();
        extents[dimension] = n;
        let metadata = TensorMetadata::new(metadata.dtype, TensorShape::new(&extents)?);
        Ok(DenseHostTensor::zeroed(allocator, metadata)?.into())
    };
    let (before, behind) = (zeros(n_before)?, zeros(n_behind)?);
    join(&[&before, tensor, &behind], Some(dimension), allocator).map_err(Error::invalid_argument)
}

/// Puts tensors of one type behind each other along a dimension, or along a new one in front of the others.
///
/// # Errors
///
/// Two tensors that don't fit, by their indexes and what they are; or why there is no result.
pub fn join(
    parts: &[&Tensor],
    dimension: Option<usize>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, String> {
    let told = |error: Error| error.message().to_owned();
    let first = parts[0].metadata();
    let extents = first.shape.to_dims();
    let mut n_joined = 0_usize;
    for (index, part) in parts.iter().enumerate() {
        let metadata = part.metadata();
        let found = metadata.shape.to_dims();
        let is_alike = metadata.dtype == first.dtype
            && found.len() == extents.len()
            && (0..found.len()).all(|at| found[at] == extents[at] || Some(at) == dimension);
        if !is_alike {
            let step = index + 1;
            return Err(format!(
                "it is {first} in step 1, but {metadata} in step {step}"
            ));
        }
        let n = dimension.map_or(1, |dimension| found[dimension]);
        let sum = n_joined.checked_add(n);
        n_joined = sum.ok_or("it has more elements than can be counted")?;
    }
    let mut shape = extents.to_vec();
    match dimension {
        Some(dimension) => shape[dimension] = n_joined,
        None => shape.insert(0, n_joined),
    }
    let shape = TensorShape::new(&shape).map_err(told)?;
    let all_rows = parts.iter().map(|part| {
        let extents = part.metadata().shape.to_dims();
        match dimension {
            Some(dimension) => Rows::new(&extents, dimension),
            None => Rows::whole(&extents),
        }
    });
    let all_rows: Vec<Rows> = all_rows.collect();
    let n_outer = all_rows[0].n_outer;
    let places = (0..n_outer).flat_map(|outer| (0..parts.len()).map(move |part| (outer, part)));
    let elements = |(outer, part): (usize, usize)| {
        let rows = &all_rows[part];
        (part, rows.range(outer, 0..rows.extent))
    };
    if first.dtype == DType::String {
        let strings = parts.iter().map(|part| Ok(part.as_strings()?.strings()));
        let strings: Vec<&[Vec<u8>]> = strings.collect::<Result<_, Error>>().map_err(told)?;
        let all = places
            .map(elements)
            .flat_map(|(part, range)| &strings[part][range]);
        let joined = StringHostTensor::collect(allocator, shape, all.cloned());
        return Ok(joined.map_err(told)?.into());
    }
    let readings = parts.iter().map(|part| part.as_dense()?.read());
    let readings: Vec<_> = readings.collect::<Result<_, Error>>().map_err(told)?;
    let metadata = TensorMetadata::new(first.dtype, shape);
    let size = size_of(first.dtype);
    let all = places.map(elements);
    let all =
        all.map(|(part, range)| &readings[part].bytes()[range.start * size..range.end * size]);
    dense_of(metadata, all, allocator).map_err(told)
}

/// The elements of a tensor as rows: from a dimension on they lie in one piece.
struct Rows {
    n_outer: usize,
    extent: usize,
    n_inner: usize,
}

impl Rows {
    fn new(extents: &[usize], dimension: usize) -> Rows {
        Rows {
            n_outer: extents[..dimension].iter().product(),
            extent: extents[dimension],
            n_inner: extents[dimension + 1..].iter().product(),
        }
    }

    fn whole(extents: &[usize]) -> Rows {
        Rows {
            n_outer: 1,
            extent: 1,
            n_inner: extents.iter().product(),
        }
    }

    /// Returns the elements of a range of the dimension in one row.
    fn range(&self, outer: usize, range: Range<usize>) -> Range<usize> {
        let begin = outer * self.extent;
        (begin + range.start) * self.n_inner..(begin + range.end) * self.n_inner
    }
}

fn size_of(dtype: DType) -> usize {
    dtype.size_bytes().unwrap_or(1)
}

fn dense_of<'b>(
    metadata: TensorMetadata,
    pieces: impl Iterator<Item = &'b [u8]>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    let out = DenseHostTensor::unspecified(allocator, metadata)?;
    let mut writing = out.write()?;
    let mut rest = writing.bytes_mut();
    for piece in pieces {
        let (here, behind) = rest.split_at_mut(piece.len());
        here.copy_from_slice(piece);
        rest = behind;
    }
    drop(writing);
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use tfrt::Runtime;

    use super::*;

    fn elements(tensor: &Tensor) -> (Vec<usize>, Vec<u8>) {
        let dense = tensor.as_dense().unwrap();
        let elements = dense.read().unwrap().bytes().to_vec();
        (dense.shape().to_dims().to_vec(), elements)
    }

    #[test]
    fn what_is_cut_is_joined_again_along_each_dimension() {
        let runtime = Runtime::new();
        let allocator = runtime.host().allocator();
        let all: Vec<u8> = (0..24).collect();
        let x: Tensor = DenseHostTensor::from_slice(allocator, &[2, 3, 4], &all)
            .unwrap()
            .into();
        let names = all.iter().map(|n| vec![*n]).collect();
        let shape = TensorShape::new(&[2, 3, 4]).unwrap();
        let names: Tensor = StringHostTensor::new(shape, names).unwrap().into();
        for dimension in 0..3 {
            let extent = x.metadata().shape.to_dims()[dimension];
            for tensor in [&x, &names] {
                let cut = |range| cut(tensor, dimension, range, true, allocator).unwrap();
                let parts = [cut(0..1), cut(1..1), cut(1..extent)];
                let joined = join(&parts.each_ref(), Some(dimension), allocator).unwrap();
                match tensor.as_strings() {
                    Ok(names) => {
                        assert_eq!(joined.as_strings().unwrap().strings(), names.strings());
                    }
                    Err(_) => assert_eq!(elements(&joined), elements(tensor)),
                }
            }
        }
        let steps: Vec<Tensor> = (0..2)
            .map(|step| cut(&x, 0, step..step + 1, false, allocator).unwrap())
            .collect();
        assert_eq!(elements(&steps[1]), (vec![3, 4], all[12..].to_vec()));
        let steps: Vec<&Tensor> = steps.iter().collect();
        assert_eq!(
            elements(&join(&steps, None, allocator).unwrap()),
            elements(&x)
        );
    }

    #[test]
    fn parts_that_differ_are_told() {
        let runtime = Runtime::new();
        let allocator = runtime.host().allocator();
        let tensor = |extents: &[usize]| -> Tensor {
            let n = extents.iter().product();
            DenseHostTensor::from_slice(allocator, extents, &vec![0_u8; n])
                .unwrap()
                .into()
        };
        let parts = [&tensor(&[1, 2]), &tensor(&[1, 2]), &tensor(&[1, 3])];
        let expected = "it is u8 [1, 2] in step 1, but u8 [1, 3] in step 3";
        assert_eq!(join(&parts, None, allocator).unwrap_err(), expected);
        assert_eq!(join(&parts, Some(0), allocator).unwrap_err(), expected);
        join(&parts, Some(1), allocator).unwrap();
    }
}
