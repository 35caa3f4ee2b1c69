//! Facts about a tensor that plugins ask for often: written by [`Tensor::facts`](super::Tensor::facts), read from a handle
//! without taking the tensor's place.

use tfrt_tensor::{DenseHostTensor, TensorShape};

use super::{Storage, Tensor};
use crate::dtype;
use crate::handle::{Facts, Handle, Words};
use crate::raw::Memory;

/// Place of the type of the elements.
const CODE: usize = 0;
/// Place of the first four extents.
const SHAPE: usize = 1;
/// Place of the other three extents, below the number of dimensions.
const MORE: usize = 2;
const N_ELEMENTS: usize = 3;
const ADDRESS: usize = 4;
const LEN_BYTES: usize = 5;

/// Bits of an extent.
const EXTENT: usize = 16;

/// Extents in a word.
const PER_WORD: usize = 4;

/// Place of the number of dimensions in its word.
const RANK: usize = 3 * EXTENT;

/// The number of dimensions of a shape whose extents are not told.
const UNTOLD: u64 = u8::MAX as u64;

/// The words of a shape whose extents are not told.
const NO_SHAPE: [u64; 2] = [0, UNTOLD << RANK];

/// Puts the facts of a tensor together.
#[inline(always)]
pub(super) fn words(tensor: &Tensor) -> Words {
    let [shape, more] = packed(&tensor.shape).unwrap_or(NO_SHAPE);
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
pub fn small(code: i32, tensor: &DenseHostTensor, memory: Memory) -> Words {
    let [shape, more] = packed(tensor.shape()).unwrap_or(NO_SHAPE);
    let len_bytes = tensor.buffer().len_bytes();
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

/// Returns extents and rank side by side, in two words, if they are few and small, as nearly always. In the order in which
/// shapes have them, which makes it few instructions.
#[inline(always)]
fn packed(shape: &TensorShape) -> Option<[u64; 2]> {
    let (rank, [a, b, c, d, e, f, g]) = shape.as_small()?;
    let word = |parts: [u16; PER_WORD]| {
        let [a, b, c, d] = parts.map(u64::from);
        a | b << EXTENT | c << (2 * EXTENT) | d << (3 * EXTENT)
    };
    Some([word([a, b, c, d]), word([e, f, g, rank.into()])])
}

#[inline(always)]
fn told_rank(facts: &Facts) -> Option<usize> {
    let rank = facts.word::<MORE>() >> RANK;
    (rank != UNTOLD).then_some(rank as usize)
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
        let word = match dimension < PER_WORD {
            true => facts.word::<SHAPE>(),
            false => facts.word::<MORE>(),
        };
        let at = dimension % PER_WORD;
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
    use crate::functions::tensor::{known_extent, known_rank};
    use tfrt_async::SystemAllocator;
    use tfrt_host::HostAllocator;

    #[test]
    fn extents_of_small_shapes_are_told() {
        let allocator: std::sync::Arc<dyn HostAllocator> =
            std::sync::Arc::new(SystemAllocator::new());
        let told = |extents: &[usize]| {
            let shape = TensorShape::new(extents).unwrap();
            let tensor = Tensor::zeroed(&allocator, dtype::FLOAT, shape).unwrap();
            let handle = Handle::new(tensor);
            let rank = known_rank(handle);
            let extents = (0..8).map_while(|index| known_extent(handle, index));
            let told = (
                rank,
                extents.map(|extent| extent as usize).collect::<Vec<_>>(),
            );
            handle.delete("tensor");
            told
        };
        for extents in [&[][..], &[4], &[1, 2, 3], &[1, 2, 0, 65_535, 5, 6, 7]] {
            let rank = extents.len() as i32;
            assert_eq!(told(extents), (Some(rank), extents.to_vec()));
        }
        assert_eq!(told(&[65_536]), (None, Vec::new()));
    }
}
