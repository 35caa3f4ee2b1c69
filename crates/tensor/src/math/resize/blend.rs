//! [`Blend`]: a resize by weighted sums, first along the rows, then of rows.
//!
//! Rows of the input that were resized along themselves are kept while rows of the result need them, so each is
//! resized once if the result goes from neighbour to neighbour.

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::taps::{Taps, room_for};
use super::walk::Walk;
use crate::DenseHostTensor;
use crate::math::number::Real;
use crate::math::{parallel, vectorized_for};

/// So many resized rows are kept at most.
const MOST_KEPT: usize = 16;
/// Sums of more products along a dimension are of `f64`.
const MOST_NARROW: usize = 8;

/// Most bytes beside operands and result for each element of a row: a list of four, the rows that are kept, sums.
pub(super) const BYTES_OF_ELEMENT: usize =
    size_of::<([usize; 4], [f64; 4])>() + (MOST_KEPT + 2) * size_of::<f64>();

/// A resize by sums of the type `S`.
pub(super) struct Blend<S> {
    walk: Walk,
    row: Row<S>,
    /// Elements of a row that lie outside.
    outside: Vec<std::ops::Range<usize>>,
    extrapolation: f64,
}

/// Elements that an element of a row is the sum of, and their weights.
type Sum<S, const N: usize> = ([usize; N], [S; N]);

/// How a row is resized along itself.
enum Row<S> {
    /// Not at all.
    Whole,
    /// Each element is the sum of two, or of four.
    Two(Vec<Sum<S, 2>>),
    Four(Vec<Sum<S, 4>>),
    /// Each place is a sum of blocks, by the walk's weights.
    Blocks,
}

/// Returns whether sums of half and single precision are exact enough.
pub(super) fn is_narrow(walk: &Walk) -> bool {
    let most = walk.along().map_or(1, Taps::most);
    most.max(walk.most_rows()) <= MOST_NARROW
}

impl<S: Real> Blend<S> {
    /// Prepares the weights. Fails if there is no memory for those of each element of a row.
    pub(super) fn new(walk: Walk, extrapolation: f64) -> Result<Blend<S>, Error> {
        let (inner, mut outside) = (walk.inner(), Vec::new());
        let row = match walk.along() {
            None => Row::Whole,
            Some(taps) => {
                let is_outside = |place: &usize| taps.of(*place).len() == 0;
                let ranges = (0..taps.len()).filter(is_outside);
                outside.extend(ranges.map(|place| place * inner..(place + 1) * inner));
                match taps.most() {
                    ..=2 if walk.has_few_behind() => Row::Two(elements(taps, inner)?),
                    ..=4 if walk.has_few_behind() => Row::Four(elements(taps, inner)?),
                    _ => Row::Blocks,
                }
            }
        };
        Ok(Blend {
            walk,
            row,
            outside,
            extrapolation,
        })
    }

    /// Resizes elements, on the workers of the request's queue if they are many.
    pub(super) fn run_into<T: Real>(
        self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        let x = x.clone();
        let along = self.walk.along().map_or(0, Taps::most);
        let cost = along.saturating_add(self.walk.most_rows());
        let chunk = parallel::chunk_len(cost, self.walk.row_len());
        parallel::fill(execution, out, chunk, move |first, part: &mut [T]| {
            self.part(x.read()?.elements()?, first, part)
        })
    }

    /// Makes the results from the `first` on: whole rows.
    fn part<T: Real>(&self, x: &[T], first: usize, out: &mut [T]) -> Result<(), Error> {
        let row_len = self.walk.row_len();
        let mut rows = self.walk.rows_from(first / row_len);
        let mut kept = Kept::new(self.walk.most_rows(), row_len);
        let mut sums = Vec::new();
        for out in out.chunks_exact_mut(row_len) {
            let sources = rows.current();
            if sources.is_empty() {
                out.fill(T::from_f64(self.extrapolation));
                rows.advance();
                continue;
            }
            match (&self.row, sources) {
                (Row::Whole, _) => {
                    let of = |(start, weight): &(usize, f64)| (&x[*start..][..row_len], *weight);
                    sum_rows(sources, of, &mut sums, out);
                }
                (_, [(start, 1.0)]) => self.resize_row(&x[*start..], &mut sums, out),
                _ => {
                    // More rows than are kept are added in groups.
                    let is_one_group = sources.len() <= MOST_KEPT;
                    if !is_one_group {
                        sums.clear();
                        sums.resize(row_len, S::ZERO);
                    }
                    for group in sources.chunks(MOST_KEPT) {
                        kept.hold(group, |start, row, sums| {
                            self.resize_row(&x[start..], sums, row);
                        })?;
                        let of = |(start, weight): &(usize, f64)| (kept.row(*start), *weight);
                        match is_one_group {
                            true => sum_rows(group, of, &mut sums, out),
                            false => {
                                let rows = group.iter().map(of);
                                rows.for_each(|(row, weight)| add(row, weight, &mut sums));
                            }
                        }
                    }
                    if !is_one_group {
                        narrow(&sums, out);
                    }
                }
            }
            for range in &self.outside {
                out[range.clone()].fill(T::from_f64(self.extrapolation));
            }
            rows.advance();
        }
        Ok(())
    }

    /// Resizes a row of the input along itself.
    fn resize_row<T: Real, D: Real>(&self, x: &[T], sums: &mut Vec<S>, out: &mut [D]) {
        match &self.row {
            Row::Whole => {}
            Row::Two(list) => vectorized_for::<T, _>(
                #[inline(always)]
                || {
                    for (out, (at, weights)) in out.iter_mut().zip(list) {
                        let [a, b] = at.map(|at| to::<T, S>(x[at]));
                        *out = to(a.times(weights[0]).plus(b.times(weights[1])));
                    }
                },
            ),
            Row::Four(list) => vectorized_for::<T, _>(
                #[inline(always)]
                || {
                    for (out, (at, weights)) in out.iter_mut().zip(list) {
                        let [a, b, c, d] = at.map(|at| to::<T, S>(x[at]));
                        let first = a.times(weights[0]).plus(b.times(weights[1]));
                        let second = c.times(weights[2]).plus(d.times(weights[3]));
                        *out = to(first.plus(second));
                    }
                },
            ),
            Row::Blocks => {
                let inner = self.walk.inner();
                let Some(taps) = self.walk.along() else {
                    return;
                };
                for (place, out) in out.chunks_exact_mut(inner).enumerate() {
                    if let [out] = out {
                        let products = taps
                            .of(place)
                            .map(|(at, weight)| to::<T, S>(x[at]).times(S::from_f64(weight)));
                        *out = to(products.fold(S::ZERO, S::plus));
                        continue;
                    }
                    let of = |(at, weight): &(usize, f64)| (&x[at * inner..][..inner], *weight);
                    sum_rows(taps.slice(place), of, sums, out);
                }
            }
        }
    }
}

/// Rows of the input that were resized along themselves.
struct Kept<S> {
    /// Start of each in the input, the number of the group that has used it last, and its elements.
    rows: Vec<(usize, usize, Vec<S>)>,
    most: usize,
    row_len: usize,
    group: usize,
    sums: Vec<S>,
}

impl<S: Real> Kept<S> {
    fn new(most: usize, row_len: usize) -> Kept<S> {
        Kept {
            rows: Vec::new(),
            most: most.clamp(1, MOST_KEPT),
            row_len,
            group: 0,
            sums: Vec::new(),
        }
    }

    /// Makes the rows of a group that are not here, in place of those that were used longest ago.
    fn hold(
        &mut self,
        group: &[(usize, f64)],
        mut make: impl FnMut(usize, &mut [S], &mut Vec<S>),
    ) -> Result<(), Error> {
        self.group += 1;
        for (start, _) in group {
            if let Some(row) = self.rows.iter_mut().find(|row| row.0 == *start) {
                row.1 = self.group;
            }
        }
        for (start, _) in group {
            if self.rows.iter().any(|row| row.0 == *start) {
                continue;
            }
            if self.rows.len() < self.most {
                let mut row = room_for(self.row_len)?;
                row.resize(self.row_len, S::ZERO);
                self.rows.push((usize::MAX, 0, row));
            }
            if let Some(row) = self.rows.iter_mut().min_by_key(|row| row.1) {
                make(*start, &mut row.2, &mut self.sums);
                (row.0, row.1) = (*start, self.group);
            }
        }
        Ok(())
    }

    /// Returns a row that is held.
    fn row(&self, start: usize) -> &[S] {
        let row = self.rows.iter().find(|row| row.0 == start);
        row.map_or(&[], |row| &row.2)
    }
}

/// Lists for each element of a row the `N` elements that it is made of. What is made of fewer has one of them several
/// times, with halves of its weight: that changes no sum, even of infinities.
fn elements<S: Real, const N: usize>(taps: &Taps, inner: usize) -> Result<Vec<Sum<S, N>>, Error> {
    let mut list = room_for(taps.len().saturating_mul(inner))?;
    for place in 0..taps.len() {
        let (mut at, mut weights, mut n) = ([0; N], [0.0; N], 0);
        for (element, weight) in taps.of(place) {
            (at[n], weights[n]) = (element * inner, weight);
            n += 1;
        }
        for n in n.max(1)..N {
            weights[n - 1] /= 2.0;
            (at[n], weights[n]) = (at[n - 1], weights[n - 1]);
        }
        let weights = weights.map(S::from_f64);
        list.extend((0..inner).map(|k| (at.map(|at| at + k), weights)));
    }
    Ok(list)
}

/// Converts between types of elements and sums.
#[inline(always)]
fn to<T: Real, U: Real>(value: T) -> U {
    U::from_f64(value.to_f64())
}

/// Adds rows by their weights; `of` gives those of a source.
fn sum_rows<'a, T: Real, S: Real, D: Real>(
    sources: &[(usize, f64)],
    of: impl Fn(&(usize, f64)) -> (&'a [T], f64),
    sums: &mut Vec<S>,
    out: &mut [D],
) {
    let of = |source| {
        let (row, weight) = of(source);
        (row, S::from_f64(weight))
    };
    match sources {
        [a, b] => {
            let ((a, f), (b, g)) = (of(a), of(b));
            vectorized_for::<T, _>(
                #[inline(always)]
                || {
                    let each = out.iter_mut().zip(a).zip(b);
                    each.for_each(
                        #[inline(always)]
                        |((out, a), b)| {
                            *out = to(to::<T, S>(*a).times(f).plus(to::<T, S>(*b).times(g)));
                        },
                    );
                },
            );
        }
        [a, b, c, d] => {
            let ((a, f), (b, g), (c, h), (d, i)) = (of(a), of(b), of(c), of(d));
            vectorized_for::<T, _>(
                #[inline(always)]
                || {
                    let each = out.iter_mut().zip(a).zip(b).zip(c.iter().zip(d));
                    each.for_each(
                        #[inline(always)]
                        |(((out, a), b), (c, d))| {
                            let first = to::<T, S>(*a).times(f).plus(to::<T, S>(*b).times(g));
                            let second = to::<T, S>(*c).times(h).plus(to::<T, S>(*d).times(i));
                            *out = to(first.plus(second));
                        },
                    );
                },
            );
        }
        _ => {
            sums.clear();
            sums.resize(out.len(), S::ZERO);
            for source in sources {
                let (row, weight) = of(source);
                add(row, weight.to_f64(), sums);
            }
            narrow(sums, out);
        }
    }
}

/// Adds a row times a weight.
fn add<T: Real, S: Real>(row: &[T], weight: f64, sums: &mut [S]) {
    let weight = S::from_f64(weight);
    vectorized_for::<T, _>(
        #[inline(always)]
        || {
            let each = sums.iter_mut().zip(row);
            each.for_each(
                #[inline(always)]
                |(sum, x)| *sum = sum.plus(to::<T, S>(*x).times(weight)),
            );
        },
    );
}

fn narrow<S: Real, D: Real>(sums: &[S], out: &mut [D]) {
    let each = out.iter_mut().zip(sums);
    each.for_each(|(out, sum)| *out = to(*sum));
}
