//! Functions of short tensors, at once on the calling thread.
//!
//! For a few elements it matters what is done around the loop: nothing here is counted, shared or put on a list. Where
//! a function has no loop for a type, as for most halves, or where operands are broadcast by dimensions, the caller takes
//! a [`PointwiseProgram`](super::PointwiseProgram).

use std::sync::Arc;

use tfrt_host::{Error, HostAllocator};

use super::formulas::{BinaryFunction, UnaryFunction};
use super::table::{BinaryLoop, repeat};
use crate::math::pointwise::OperandOrder;
use crate::{DType, DenseHostTensor, to_bytes_mut};

/// Bytes from which on tensors are worth cutting.
const SHORT: usize = 1 << 14;
/// Bytes up to which tensors are too short for vectors.
const FEW: usize = 64;
/// Number of words of scratch memory on the stack.
const BLOCK: usize = 64;

/// Pairing of two tensors' elements without broadcasting by dimensions.
#[derive(Clone, Copy)]
enum ElementPairing {
    /// Each element with the other's at the same place.
    Pairs,
    /// Each element of the first tensor with the only one of the second.
    WithOne,
    /// The only element of the first with each of the second.
    OfOne,
}

impl ElementPairing {
    /// Returns the pairing of two tensors, or `None` if they need broadcasting by dimensions.
    #[inline(always)]
    fn of(x: &DenseHostTensor, y: &DenseHostTensor) -> Option<ElementPairing> {
        if x.shape() == y.shape() {
            Some(ElementPairing::Pairs)
        } else if y.n_elements() == 1 && y.shape().rank() <= x.shape().rank() {
            Some(ElementPairing::WithOne)
        } else if x.n_elements() == 1 && x.shape().rank() <= y.shape().rank() {
            Some(ElementPairing::OfOne)
        } else {
            None
        }
    }
}

#[inline(always)]
fn is_short(x: &DenseHostTensor) -> bool {
    x.buffer().len_bytes() <= SHORT
}

/// Returns the type of a function's results, and the number of bytes that they take.
#[inline(always)]
fn result(x: &DenseHostTensor, is_predicate: bool) -> (DType, usize) {
    let len_bytes = x.buffer().len_bytes();
    match is_predicate {
        true => (DType::I1, len_bytes / size_of_element(x)),
        false => (x.dtype(), len_bytes),
    }
}

fn size_of_element(x: &DenseHostTensor) -> usize {
    x.dtype().size_bytes().unwrap_or(1)
}

impl UnaryFunction {
    /// Calculates the function of each element of a short tensor. Returns nothing if it is long, or if its type has no
    /// loop.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory, `FailedPrecondition` if somebody is writing the tensor.
    pub fn apply_small(
        self,
        allocator: &Arc<dyn HostAllocator>,
        x: &DenseHostTensor,
    ) -> Result<Option<DenseHostTensor>, Error> {
        let run = match x.buffer().len_bytes() {
            0..=FEW => self.find_for_few(x.dtype()),
            n if n <= SHORT => self.find(x.dtype()),
            _ => None,
        };
        let Some(run) = run else {
            return Ok(None);
        };
        let (reading, result) = (x.read()?, result(x, self.is_predicate()));
        let write = |bytes: &mut [u8]| run(reading.bytes(), bytes);
        x.written_like(allocator, result, write).map(Some)
    }

    /// Replaces each element of a short tensor by the function of it. Returns whether it did: if the tensor is short,
    /// and nobody else holds it.
    pub fn apply_small_in_place(self, x: &mut DenseHostTensor) -> bool {
        let found = self.find(x.dtype()).filter(|_| !self.is_predicate());
        let (Some(run), true) = (found, is_short(x)) else {
            return false;
        };
        let Some(bytes) = x.bytes_mut() else {
            return false;
        };
        let mut words = [0_u64; BLOCK];
        let block = to_bytes_mut(&mut words);
        for part in bytes.chunks_mut(size_of::<[u64; BLOCK]>()) {
            let own = &mut block[..part.len()];
            own.copy_from_slice(part);
            run(own, part);
        }
        true
    }
}

impl BinaryFunction {
    /// Calculates the function of each pair of elements of two short tensors, of which one is of the result's shape, and
    /// the other of that too, or of one element. Returns nothing if they are not.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory, `FailedPrecondition` if somebody is writing one of them.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_host::{HostContext, kernel::KernelRegistry};
    /// use tfrt_tensor::DenseHostTensor;
    /// use tfrt_tensor::math::pointwise::BinaryFunction;
    ///
    /// let host = HostContext::builder(KernelRegistry::new()).build();
    /// let x = DenseHostTensor::from_slice(host.allocator(), &[2], &[1_i32, 2])?;
    /// let y = DenseHostTensor::scalar(host.allocator(), 10_i32)?;
    /// let difference = BinaryFunction::Subtract.apply_small(host.allocator(), &y, &x)?.unwrap();
    /// assert_eq!(difference.read()?.elements::<i32>()?, [9, 8]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn apply_small(
        self,
        allocator: &Arc<dyn HostAllocator>,
        x: &DenseHostTensor,
        y: &DenseHostTensor,
    ) -> Result<Option<DenseHostTensor>, Error> {
        let Some((run, walk)) = self.walk(x, y) else {
            return Ok(None);
        };
        let of = if matches!(walk, ElementPairing::OfOne) {
            y
        } else {
            x
        };
        let (x_reading, y_reading) = (x.read()?, y.read()?);
        let (xs, ys) = (x_reading.bytes(), y_reading.bytes());
        let result = result(of, self.is_predicate());
        let write = |bytes: &mut [u8]| match walk {
            ElementPairing::Pairs => run(xs, ys, bytes),
            ElementPairing::WithOne => with_one(xs, ys, bytes, size_of_element(x), run),
            ElementPairing::OfOne => with_one(ys, xs, bytes, size_of_element(x), |ys, one, out| {
                run(one, ys, out);
            }),
        };
        of.written_like(allocator, result, write).map(Some)
    }

    /// Replaces each element of a short tensor by the function of it and another's: the element at the same place, or
    /// the only one. Returns whether that was done.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing the other one.
    pub fn apply_small_in_place(
        self,
        target: &mut DenseHostTensor,
        other: &DenseHostTensor,
        order: OperandOrder,
    ) -> Result<bool, Error> {
        let (run, walk) = match self.walk(target, other) {
            Some((run, walk @ (ElementPairing::Pairs | ElementPairing::WithOne)))
                if !self.is_predicate() =>
            {
                (run, walk)
            }
            _ => return Ok(false),
        };
        let size = target.dtype().size_bytes().unwrap_or(1);
        let reading = other.read()?;
        let others = reading.bytes();
        let Some(bytes) = target.bytes_mut() else {
            return Ok(false);
        };
        let step = |own: &[u8], other: &[u8], part: &mut [u8]| match order {
            OperandOrder::TargetFirst => run(own, other, part),
            OperandOrder::OtherFirst => run(other, own, part),
        };
        if bytes.len() <= FEW && matches!(walk, ElementPairing::Pairs) {
            let mut words = [0_u64; FEW / size_of::<u64>()];
            let own = &mut to_bytes_mut(&mut words)[..bytes.len()];
            own.copy_from_slice(bytes);
            step(own, others, bytes);
            return Ok(true);
        }
        let mut words = [0_u64; BLOCK];
        let block = to_bytes_mut(&mut words);
        let mut ones = [0_u64; BLOCK];
        let ones = to_bytes_mut(&mut ones);
        let len = size_of::<[u64; BLOCK]>() / size * size;
        if matches!(walk, ElementPairing::WithOne) {
            let n = bytes.len().min(len);
            repeat(others, &mut ones[..n]);
        }
        for (index, part) in bytes.chunks_mut(len).enumerate() {
            let own = &mut block[..part.len()];
            own.copy_from_slice(part);
            match walk {
                ElementPairing::Pairs => step(own, &others[index * len..][..part.len()], part),
                _ => step(own, &ones[..part.len()], part),
            }
        }
        Ok(true)
    }

    /// Returns the loop over two short tensors of one type, and how it goes.
    #[inline(always)]
    fn walk(
        self,
        x: &DenseHostTensor,
        y: &DenseHostTensor,
    ) -> Option<(BinaryLoop, ElementPairing)> {
        if x.dtype() != y.dtype() {
            return None;
        }
        let run = match x.buffer().len_bytes().max(y.buffer().len_bytes()) {
            0..=FEW => self.find_for_few(x.dtype()),
            n if n <= SHORT => self.find(x.dtype()),
            _ => None,
        };
        Some((run?, ElementPairing::of(x, y)?))
    }
}

/// Runs a loop over elements, all with one other element, block by block.
fn with_one(
    xs: &[u8],
    one: &[u8],
    out: &mut [u8],
    size: usize,
    run: impl Fn(&[u8], &[u8], &mut [u8]),
) {
    let mut words = [0_u64; BLOCK];
    let n = size_of::<[u64; BLOCK]>() / size;
    // Of a predicate they are smaller.
    let out_size = out.len() / (xs.len() / size).max(1);
    let ones = to_bytes_mut(&mut words);
    let ones = &mut ones[..(n * size).min(xs.len())];
    repeat(one, ones);
    for (xs, out) in xs
        .chunks(n * size)
        .zip(out.chunks_mut((n * out_size).max(1)))
    {
        run(xs, &ones[..xs.len()], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::elementwise::broadcast_extents;

    #[test]
    fn short_results_have_the_shape_that_both_are_broadcast_to() {
        use tfrt_host::{HostContext, kernel::KernelRegistry};

        let host = HostContext::builder(KernelRegistry::new()).build();
        let new = |extents: &[usize], offset: i32| {
            let n: usize = extents.iter().product();
            let list: Vec<i32> = (offset..).take(n).collect();
            DenseHostTensor::from_slice(host.allocator(), extents, &list).unwrap()
        };
        let shapes = [
            &[][..],
            &[1],
            &[1, 1],
            &[3],
            &[0],
            &[2, 3],
            &[0, 1],
            &[1, 0],
            &[2, 0],
            // Several blocks, the last of which is short.
            &[300],
        ];
        let read = |tensor: &DenseHostTensor| -> Vec<i32> {
            tensor.read().unwrap().elements::<i32>().unwrap().to_vec()
        };
        let (mut n_short, function) = (0, BinaryFunction::Subtract);
        for x_shape in shapes {
            for y_shape in shapes {
                let (mut x, y) = (new(x_shape, 5), new(y_shape, 1));
                let Some(found) = function.apply_small(host.allocator(), &x, &y).unwrap() else {
                    continue;
                };
                n_short += 1;
                let wanted = broadcast_extents(&[x_shape, y_shape]).unwrap();
                assert_eq!(found.shape().to_dims(), wanted, "{x_shape:?} {y_shape:?}");
                let at =
                    |list: Vec<i32>, index: usize| list[if list.len() == 1 { 0 } else { index }];
                let elements = read(&found);
                for (index, found) in elements.iter().enumerate() {
                    assert_eq!(*found, at(read(&x), index) - at(read(&y), index));
                }
                let swapped = function
                    .apply_small_in_place(&mut x, &y, OperandOrder::OtherFirst)
                    .unwrap();
                if swapped {
                    let negated: Vec<i32> = elements.iter().map(|element| -element).collect();
                    assert_eq!(read(&x), negated);
                    assert!(UnaryFunction::Negate.apply_small_in_place(&mut x));
                    assert_eq!(read(&x), elements);
                    let shared = x.clone();
                    assert!(!UnaryFunction::Negate.apply_small_in_place(&mut x));
                    drop(shared);
                }
            }
        }
        assert!(n_short > 30, "{n_short}");
    }
}
