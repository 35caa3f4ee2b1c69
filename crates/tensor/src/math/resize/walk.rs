//! [`Walk`]: the rows of a resized tensor, one after the other, with the rows of the input that each is made of.

use smallvec::SmallVec;

use super::taps::Taps;

/// Blocks of fewer elements behind a place are taken element by element.
const FEW: usize = 8;

/// A dimension with its strides in the input.
#[derive(Clone, Debug)]
struct Dimension {
    output: usize,
    /// Elements of the input from one place to the next.
    stride: usize,
    /// Elements and weights of each place; `None` where each place is its own.
    taps: Option<Taps>,
}

/// How a tensor is walked in rows: a row is made along the last resized dimension, with all dimensions behind it.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Dimensions before the row. Neighbours that are not resized are one.
    before: Vec<Dimension>,
    /// The resized dimension of the row; `None` if the row is one of the input.
    along: Option<Taps>,
    /// Number of elements behind each place along the row.
    inner: usize,
    row_len: usize,
}

impl Walk {
    /// Lays out the rows for extents of the input and of the result, each at least 1.
    pub(super) fn new(input: &[usize], output: &[usize], mut taps: Vec<Option<Taps>>) -> Walk {
        let last = taps.iter().rposition(Option::is_some);
        let n_resized = taps.iter().flatten().count();
        let mut split = last.unwrap_or(0);
        let behind = |split: usize| -> usize { output.iter().skip(split + 1).product() };
        let mut along = taps.get_mut(split).and_then(Option::take);
        let mut inner = behind(split);
        let mut row_len = output.iter().skip(split).product();
        if n_resized == 1 && inner >= FEW {
            // Long blocks along one dimension: they are rows of the input.
            taps[split] = along.take();
            split += 1;
            (row_len, inner) = (inner, 1);
        }
        let mut before: Vec<Dimension> = Vec::new();
        for (dimension, taps) in taps.into_iter().enumerate().take(split) {
            let stride = input[dimension + 1..].iter().product();
            let output = output[dimension];
            match before.last_mut() {
                Some(last) if last.taps.is_none() && taps.is_none() => {
                    (last.output, last.stride) = (last.output * output, stride);
                }
                _ => before.push(Dimension {
                    output,
                    stride,
                    taps,
                }),
            }
        }
        Walk {
            before,
            along,
            inner,
            row_len,
        }
    }

    /// Returns the number of elements of a row of the result.
    pub(super) fn row_len(&self) -> usize {
        self.row_len
    }

    /// Returns the number of elements behind each place along a row: 1, or several that lie in one piece.
    pub(super) fn inner(&self) -> usize {
        self.inner
    }

    /// Returns the elements and weights of each place along a row; `None` if a row is one of the input.
    pub(super) fn along(&self) -> Option<&Taps> {
        self.along.as_ref()
    }

    /// Returns whether the elements behind a place are so few that they are taken one by one.
    pub(super) fn has_few_behind(&self) -> bool {
        self.inner < FEW
    }

    /// Returns the most rows of the input that a row of the result is made of.
    pub(super) fn most_rows(&self) -> usize {
        let lens = self.before.iter().filter_map(|dimension| {
            let taps = dimension.taps.as_ref()?;
            Some(taps.most().max(1))
        });
        lens.fold(1, usize::saturating_mul)
    }

    /// Begins at a row.
    pub(super) fn rows_from(&self, number: usize) -> Rows<'_> {
        let mut rows = Rows {
            before: &self.before,
            at: SmallVec::from_elem(0, self.before.len()),
            levels: vec![Vec::new(); self.before.len() + 1],
        };
        rows.levels[0].push((0, 1.0));
        let mut rest = number;
        for (at, dimension) in rows.at.iter_mut().zip(&self.before).rev() {
            *at = rest % dimension.output;
            rest /= dimension.output;
        }
        rows.find_from(0);
        rows
    }
}

/// A row of the result, with the rows of the input that it is made of.
pub(super) struct Rows<'a> {
    before: &'a [Dimension],
    /// Place along each dimension.
    at: SmallVec<[usize; 6]>,
    /// Starts and weights of what the first dimensions lead to: of none of them, of one, and so on.
    levels: Vec<Vec<(usize, f64)>>,
}

impl Rows<'_> {
    /// Returns the start in the input of each row that this row is made of, and its weight; none if it lies outside.
    pub(super) fn current(&self) -> &[(usize, f64)] {
        &self.levels[self.before.len()]
    }

    /// Goes to the next row; behind the last one to the first.
    pub(super) fn advance(&mut self) {
        for dimension in (0..self.before.len()).rev() {
            self.at[dimension] += 1;
            if self.at[dimension] < self.before[dimension].output {
                return self.find_from(dimension);
            }
            self.at[dimension] = 0;
        }
        self.find_from(0);
    }

    /// Finds the rows again, where the place along a dimension, or those behind it, has changed.
    fn find_from(&mut self, first: usize) {
        for (index, dimension) in self.before.iter().enumerate().skip(first) {
            let (done, rest) = self.levels.split_at_mut(index + 1);
            let (from, to) = (&done[index], &mut rest[0]);
            let (place, stride) = (self.at[index], dimension.stride);
            to.clear();
            match &dimension.taps {
                None => to.extend(
                    from.iter()
                        .map(|(start, weight)| (start + place * stride, *weight)),
                ),
                Some(taps) if from.len() == 1 => {
                    let (start, weight) = from[0];
                    let each = taps.of(place);
                    to.extend(each.map(|(element, own)| (start + element * stride, weight * own)));
                }
                Some(taps) => {
                    for (start, weight) in from {
                        let each = taps.of(place);
                        to.extend(
                            each.map(|(element, own)| (start + element * stride, weight * own)),
                        );
                    }
                }
            }
        }
    }
}
