//! [`Pick`]: a resize that takes one element for each place, as copies.

use tfrt_host::{AsyncValue, Chain, DType, Error, ExecutionContext};

use super::taps::room_for;
use super::walk::Walk;
use crate::math::layout_copy::words::with_word;
use crate::math::{parallel, vectorized};
use crate::{DenseHostTensor, Element, from_bytes, from_bytes_mut};

/// A resize by copies.
pub(super) struct Pick {
    walk: Walk,
    row: Row,
}

/// How a row of the result is taken from one of the input.
enum Row {
    /// All of it.
    Whole,
    /// Each element so often, one after the other.
    Repeated(usize),
    /// The elements of a list.
    Listed(Vec<usize>),
    /// Pieces, by their starts and lengths.
    Pieces(Vec<(usize, usize)>),
}

impl Pick {
    /// Finds the copies. Each place is made of one element. Fails if there is no memory for a number for each element
    /// of a row.
    pub(super) fn new(walk: Walk) -> Result<Pick, Error> {
        let inner = walk.inner();
        let row = match walk.along() {
            None => Row::Whole,
            Some(taps) => {
                let places = taps.all().iter().map(|(element, _)| *element);
                match walk.has_few_behind() {
                    true => {
                        let mut list = room_for(walk.row_len())?;
                        list.extend(
                            places.flat_map(|place| (0..inner).map(move |k| place * inner + k)),
                        );
                        match times(&list) {
                            Some(times) => Row::Repeated(times),
                            None => Row::Listed(list),
                        }
                    }
                    false => Row::Pieces(pieces(places, inner)),
                }
            }
        };
        Ok(Pick { walk, row })
    }

    /// Copies elements of any type, on the workers of the request's queue if they are many.
    pub(super) fn run_into(
        self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        let (x, dtype) = (x.clone(), x.dtype());
        let chunk = parallel::chunk_len(1, self.walk.row_len());
        parallel::fill_bytes(execution, out, chunk, move |first, part| {
            self.part(dtype, x.read()?.bytes(), first, part)
        })
    }

    fn part(&self, dtype: DType, x: &[u8], first: usize, out: &mut [u8]) -> Result<(), Error> {
        with_word!(dtype, W => {
            let (x, out) = (from_bytes(x)?, from_bytes_mut(out)?);
            vectorized(
                #[inline(always)]
                || self.words::<W>(x, first, out),
            );
            Ok(())
        })
    }

    /// Makes the results from the `first` on: whole rows.
    #[inline(always)]
    fn words<W: Element>(&self, x: &[W], first: usize, out: &mut [W]) {
        let row_len = self.walk.row_len();
        let mut rows = self.walk.rows_from(first / row_len);
        let mut before = None;
        for index in 0..out.len() / row_len {
            let (done, rest) = out.split_at_mut(index * row_len);
            let row = &mut rest[..row_len];
            let start = rows.current()[0].0;
            if before == Some(start) {
                row.copy_from_slice(&done[done.len() - row_len..]);
            } else {
                self.row.copy(&x[start..], row);
            }
            before = Some(start);
            rows.advance();
        }
    }
}

impl Row {
    #[inline(always)]
    fn copy<W: Element>(&self, x: &[W], out: &mut [W]) {
        match self {
            Row::Whole => out.copy_from_slice(&x[..out.len()]),
            Row::Repeated(2) => repeat::<W, 2>(x, out),
            Row::Repeated(3) => repeat::<W, 3>(x, out),
            Row::Repeated(4) => repeat::<W, 4>(x, out),
            Row::Repeated(times) => {
                let each = out.chunks_mut(*times).zip(x);
                each.for_each(|(out, x)| out.fill(*x));
            }
            Row::Listed(list) => {
                let each = out.iter_mut().zip(list);
                each.for_each(|(out, element)| *out = x[*element]);
            }
            Row::Pieces(pieces) => {
                let mut rest = out;
                for (start, len) in pieces {
                    let (piece, behind) = rest.split_at_mut(*len);
                    piece.copy_from_slice(&x[*start..][..*len]);
                    rest = behind;
                }
            }
        }
    }
}

/// Writes each element `N` times.
#[inline(always)]
fn repeat<W: Element, const N: usize>(x: &[W], out: &mut [W]) {
    for (out, x) in out.chunks_exact_mut(N).zip(x) {
        out.fill(*x);
    }
}

/// Returns how often a list names each element, if it names all of them as often, one after the other.
fn times(list: &[usize]) -> Option<usize> {
    let times = list.iter().position(|element| *element != list[0])?;
    let is_regular = list
        .iter()
        .enumerate()
        .all(|(index, element)| *element == index / times);
    (is_regular && list.len().is_multiple_of(times)).then_some(times)
}

/// Joins blocks that lie one behind the other.
fn pieces(places: impl Iterator<Item = usize>, block: usize) -> Vec<(usize, usize)> {
    let mut pieces: Vec<(usize, usize)> = Vec::new();
    for place in places {
        let start = place * block;
        match pieces.last_mut() {
            Some((first, len)) if *first + *len == start => *len += block,
            _ => pieces.push((start, block)),
        }
    }
    pieces
}
