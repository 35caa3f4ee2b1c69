//! Facts about a tensor that plugins ask for often: written by [`Tensor::facts`](super::Tensor::facts), read from a handle
//! without taking the tensor's place.

use tfrt_tensor::TensorShape;

use super::{Storage, Tensor};
use crate::dtype;
use crate::handle::{Facts, Handle, Words};
use crate::raw::Memory;

/// Place of the type of the elements.
const CODE: usize = 0;
/// Place of the number of dimensions, below the first three extents.
const SHAPE: usize = 1;
/// Place of the other four extents.
const MORE: usize = 2;
const N_ELEMENTS: usize = 3;
const ADDRESS: usize = 4;
const LEN_BYTES: usize = 5;

/// Bits of an extent.
const EXTENT: usize = 16;

/// The number of dimensions of a shape whose extents are not told.
const UNTOLD: u8 = u8::MAX;

/// Puts the facts of a tensor together.
#[inline(always)]
pub(super) fn words(tensor: &Tensor) -> Words {
    let [shape, more] = packed(&tensor.shape).unwrap_or([UNTOLD.into(), 0]);
    let len_bytes = tensor.len_bytes();
    // Elements of one size fill the memory.
    let n_elements = match (&tensor.storage, dtype::size_log2(tensor.code)) {
        (Storage::Buffer(_), Some(log2)) => len_bytes >> log2,
        _ => tensor.n_elements(),
    };
    [
        u64::from(tensor.code.cast_unsigned()),
        shape,
        more,
        n_elements as u64,
        tensor.memory().expose() as u64,
        len_bytes as u64,
    ]
}

/// Puts the facts of a dense tensor together, of few and small extents, whose elements are of one size.
#[inline(always)]
pub fn small(code: i32, [shape, more]: [u64; 2], memory: Memory, len_bytes: usize) -> Words {
    let log2 = dtype::size_log2(code).unwrap_or(0);
    [
        u64::from(code.cast_unsigned()),
        shape,
        more,
        (len_bytes >> log2) as u64,
        memory.expose() as u64,
        len_bytes as u64,
    ]
}

/// Returns rank and extents side by side, in two words, if they are few and small, as nearly always.
#[inline(always)]
pub fn packed(shape: &TensorShape) -> Option<[u64; 2]> {
    let (rank, [a, b, c, d, e, f, g]) = shape.as_small()?;
    let word = |parts: [u16; 4]| {
        let [a, b, c, d] = parts.map(u64::from);
        a | b << EXTENT | c << (2 * EXTENT) | d << (3 * EXTENT)
    };
    Some([word([rank.into(), a, b, c]), word([d, e, f, g])])
}

/// Returns rank and extents that were [packed].
pub fn unpacked([shape, more]: [u64; 2]) -> (u8, [u16; 7]) {
    let extents = [
        shape >> EXTENT,
        shape >> (2 * EXTENT),
        shape >> (3 * EXTENT),
        more,
        more >> EXTENT,
        more >> (2 * EXTENT),
        more >> (3 * EXTENT),
    ];
    (shape as u8, extents.map(|extent| extent as u16))
}

#[inline(always)]
fn told_rank(facts: &Facts) -> Option<usize> {
    let rank = facts.word::<SHAPE>() as u8;
    (rank != UNTOLD).then_some(rank.into())
}

/// Returns the type of the elements.
#[inline(always)]
pub fn code(tensor: Handle<Tensor>) -> Option<i32> {
    let found = tensor.look(|facts| facts.word::<CODE>() as u32)?;
    Some(found.cast_signed())
}

/// Returns the number of dimensions.
#[inline(always)]
pub fn rank(tensor: Handle<Tensor>) -> Option<usize> {
    tensor.look(told_rank).flatten()
}

/// Returns the extent of a dimension, if there is such a dimension.
#[inline(always)]
pub fn extent(tensor: Handle<Tensor>, dimension: i32) -> Option<usize> {
    let dimension = usize::try_from(dimension).ok()?;
    let found = tensor.look(|facts| {
        if dimension >= told_rank(facts)? {
            return None;
        }
        let (word, at) = match dimension.checked_sub(3) {
            None => (facts.word::<SHAPE>(), dimension + 1),
            Some(at) => (facts.word::<MORE>(), at),
        };
        Some(usize::from((word >> (at * EXTENT)) as u16))
    });
    found.flatten()
}

/// Returns the number of elements.
#[inline(always)]
pub fn n_elements(tensor: Handle<Tensor>) -> Option<usize> {
    let found = tensor.look(|facts| facts.word::<N_ELEMENTS>());
    usize::try_from(found?).ok()
}

/// Returns the memory of the elements.
#[inline(always)]
pub fn memory(tensor: Handle<Tensor>) -> Option<Memory> {
    let found = tensor.look(|facts| facts.word::<ADDRESS>());
    usize::try_from(found?).ok().map(Memory::of_exposed)
}

/// Returns the number of bytes of the memory.
#[inline(always)]
pub fn len_bytes(tensor: Handle<Tensor>) -> Option<usize> {
    let found = tensor.look(|facts| facts.word::<LEN_BYTES>());
    usize::try_from(found?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_packed_and_unpacked() {
        for extents in [&[][..], &[4], &[1, 2, 3], &[1, 2, 3, 65_535, 5, 6, 7]] {
            let shape = TensorShape::new(extents).unwrap();
            let small = packed(&shape).map(unpacked);
            assert_eq!(small, shape.as_small(), "{shape}");
        }
        assert_eq!(packed(&TensorShape::new(&[65_536]).unwrap()), None);
    }
}
