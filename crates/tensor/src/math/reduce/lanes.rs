//! Inner loops: contiguous elements reduced to one, in lanes or side by side.

use smallvec::SmallVec;

use super::{BLOCK, FEW_LANES, LANES, Reduce};
use crate::Element;
use crate::math::rows::{Row, SEGMENT};
use crate::math::vectorized_for;

/// Adds rows, one after the other, each element to its own partial result. All rows are of one length.
#[inline]
pub(super) fn take_rows<R: Reduce<T>, T: Element, const N: usize>(
    partials: &mut [R::Partial],
    rows: [&[T]; N],
) {
    vectorized_for::<T, _>(
        #[inline(always)]
        || {
            let n = partials.len();
            let rows = rows.map(
                #[inline(always)]
                |row| &row[..n],
            );
            for (index, partial) in partials.iter_mut().enumerate() {
                for row in rows {
                    *partial = R::take(*partial, row[index]);
                }
            }
        },
    );
}

/// Reduces contiguous elements to one partial result.
pub(crate) fn block<R: Reduce<T>, T: Element>(elements: &[T]) -> R::Partial {
    if elements.len() <= BLOCK {
        return block_of::<R, T>(elements);
    }
    let mut tree = Tree::<R, T>::new();
    for part in elements.chunks(BLOCK) {
        tree.push(block_of::<R, T>(part));
    }
    tree.finish()
}

/// Reduces a function of each element of a row, in the order of [`block`], within what is [`vectorized`](crate::math::vectorized). `results`
/// takes what the function gives, of a block or of the whole row, and stays in the cache, unless the row has memory that is as near, and
/// placed so that what is written there is not taken for what is read.
#[inline(always)]
pub(crate) fn block_by<R: Reduce<T>, T: Element>(
    row: &mut Row<'_, T>,
    results: &mut [T],
    function: impl Fn(T) -> T + Copy,
) -> R::Partial {
    let (elements, near, ahead) = row.parts();
    let results = near.unwrap_or(results);
    let mut tree = Tree::<R, T>::new();
    for part in elements.chunks(BLOCK) {
        let results = &mut results[..part.len()];
        for (results, part) in results.chunks_mut(SEGMENT).zip(part.chunks(SEGMENT)) {
            ahead.step();
            for (result, x) in results.iter_mut().zip(part) {
                *result = function(*x);
            }
        }
        let partial = block_of::<R, T>(results);
        if elements.len() <= BLOCK {
            return partial;
        }
        tree.push(partial);
    }
    tree.finish()
}

/// Reduces at most [`BLOCK`] neighbours in lanes.
#[inline]
pub(super) fn block_of<R: Reduce<T>, T: Element>(block: &[T]) -> R::Partial {
    if block.len() < FEW_LANES {
        return block.iter().copied().fold(R::empty(), R::take);
    }
    in_lanes::<R, T>(block)
}

/// Adds elements to as many lanes.
#[inline(always)]
fn take_lanes<R: Reduce<T>, T: Element>(
    lanes: &mut [R::Partial; FEW_LANES],
    elements: &[T; FEW_LANES],
) {
    for (lane, x) in lanes.iter_mut().zip(elements) {
        *lane = R::take(*lane, *x);
    }
}

/// Puts lanes together.
#[inline(always)]
fn combine_lanes<R: Reduce<T>, T>(
    mut lanes: [R::Partial; FEW_LANES],
    others: [R::Partial; FEW_LANES],
) -> [R::Partial; FEW_LANES] {
    for (lane, other) in lanes.iter_mut().zip(others) {
        *lane = R::combine(*lane, other);
    }
    lanes
}

/// Reduces a block in lanes. Not inlined: within a longer function, lanes are not kept in vectors.
#[inline(never)]
fn in_lanes<R: Reduce<T>, T: Element>(block: &[T]) -> R::Partial {
    let mut lanes = vectorized_for::<T, _>(
        #[inline(always)]
        || {
            // Each of these is a vector or two, whatever the type is.
            let [mut a, mut b, mut c, mut d] = [[R::empty(); FEW_LANES]; LANES / FEW_LANES];
            let (quarters, _) = block.as_chunks::<FEW_LANES>();
            let (whole, rest) = quarters.as_chunks::<{ LANES / FEW_LANES }>();
            for [i, j, k, l] in whole {
                take_lanes::<R, T>(&mut a, i);
                take_lanes::<R, T>(&mut b, j);
                take_lanes::<R, T>(&mut c, k);
                take_lanes::<R, T>(&mut d, l);
            }
            for quarter in rest {
                take_lanes::<R, T>(&mut a, quarter);
            }
            let (a, c) = (combine_lanes::<R, T>(a, b), combine_lanes::<R, T>(c, d));
            combine_lanes::<R, T>(a, c)
        },
    );
    let (_, rest) = block.as_chunks::<FEW_LANES>();
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = R::take(*lane, *x);
    }
    let mut n = FEW_LANES;
    while n > 1 {
        n /= 2;
        for index in 0..n {
            lanes[index] = R::combine(lanes[index], lanes[index + n]);
        }
    }
    lanes[0]
}

/// Partial results that are combined pair by pair as they come: place `i` holds that of 2^i blocks.
pub(super) struct Tree<R: Reduce<T>, T> {
    levels: SmallVec<[Option<R::Partial>; 8]>,
}

impl<R: Reduce<T>, T> Tree<R, T> {
    pub(super) fn new() -> Self {
        Tree {
            levels: SmallVec::new(),
        }
    }

    pub(super) fn push(&mut self, mut partial: R::Partial) {
        for level in &mut self.levels {
            match level.take() {
                Some(before) => partial = R::combine(before, partial),
                None => {
                    *level = Some(partial);
                    return;
                }
            }
        }
        self.levels.push(Some(partial));
    }

    pub(super) fn finish(self) -> R::Partial {
        let levels = self.levels.into_iter().flatten();
        let all = levels.reduce(|later, earlier| R::combine(earlier, later));
        all.unwrap_or_else(R::empty)
    }
}
