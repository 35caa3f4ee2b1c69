//! [`Axis`]: positions of an input's dimension, in the order of the result.

use std::sync::Arc;

use super::Edge;

/// Positions along one dimension.
#[derive(Clone, Debug)]
pub(crate) enum Axis {
    /// Position `start + i * step`.
    Regular {
        extent: usize,
        start: usize,
        step: isize,
    },
    /// `middle` positions from `start` on, between others that follow from them.
    Padded {
        before: usize,
        start: usize,
        middle: usize,
        behind: usize,
        edge: Edge,
    },
    /// The positions themselves.
    Listed(Arc<[usize]>),
}

/// A run of positions: their number, the `start`, and the `step` between them. Without a start they lie outside the
/// input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub len: usize,
    pub start: Option<usize>,
    pub step: isize,
}

impl Axis {
    /// Returns all positions in their order.
    pub(crate) fn whole(extent: usize) -> Axis {
        Axis::Regular {
            extent,
            start: 0,
            step: 1,
        }
    }

    /// Returns position 0 over and over.
    pub(crate) fn first_repeated(extent: usize) -> Axis {
        Axis::Regular {
            extent,
            start: 0,
            step: 0,
        }
    }

    /// Returns the number of positions.
    pub(super) fn extent(&self) -> usize {
        match self {
            Axis::Regular { extent, .. } => *extent,
            Axis::Padded {
                before,
                middle,
                behind,
                ..
            } => before.saturating_add(*middle).saturating_add(*behind),
            Axis::Listed(list) => list.len(),
        }
    }

    /// Returns the longest piece that is found without a search, from one of the positions on.
    #[inline]
    pub(super) fn piece_at(&self, index: usize) -> Piece {
        match self {
            Axis::Regular {
                extent,
                start,
                step,
            } => Piece {
                len: extent - index,
                start: start.checked_add_signed(signed(index).wrapping_mul(*step)),
                step: *step,
            },
            Axis::Padded {
                before,
                start,
                middle,
                edge,
                ..
            } => {
                let mut piece = padded(index, *before, *middle, self.extent(), *edge);
                piece.start = piece.start.map(|position| position + start);
                piece
            }
            Axis::Listed(list) => listed(&list[index..]),
        }
    }
}

/// Converts to a signed number. Extents are at most half of all integers
/// ([`TensorShape::n_elements`](crate::TensorShape)), unless the tensor is empty.
pub(super) fn signed(value: usize) -> isize {
    isize::try_from(value).unwrap_or(isize::MAX)
}

/// Returns a piece of `middle` positions with others before and behind.
fn padded(index: usize, before: usize, middle: usize, extent: usize, edge: Edge) -> Piece {
    if let Some(position) = index.checked_sub(before).filter(|place| *place < middle) {
        return Piece {
            len: middle - position,
            start: Some(position),
            step: 1,
        };
    }
    // To the end of this side.
    let len = match index < before {
        true => before - index,
        false => extent - index,
    };
    let from_middle = signed(index) - signed(before);
    let piece = match edge {
        Edge::Constant => Piece {
            len,
            start: None,
            step: 0,
        },
        Edge::Repeat => Piece {
            len,
            start: Some(if index < before { 0 } else { middle - 1 }),
            step: 0,
        },
        Edge::Wrap => {
            let position = from_middle.rem_euclid(signed(middle)).unsigned_abs();
            Piece {
                len: middle - position,
                start: Some(position),
                step: 1,
            }
        }
        Edge::Reflect if middle == 1 => Piece {
            len,
            start: Some(0),
            step: 0,
        },
        Edge::Reflect => {
            // There and back again, both ends once.
            let period = 2 * (middle - 1);
            let phase = from_middle.rem_euclid(signed(period)).unsigned_abs();
            match phase < middle - 1 {
                true => Piece {
                    len: middle - 1 - phase,
                    start: Some(phase),
                    step: 1,
                },
                false => Piece {
                    len: period - phase,
                    start: Some(period - phase),
                    step: -1,
                },
            }
        }
    };
    Piece {
        len: piece.len.min(len),
        ..piece
    }
}

/// Returns the first of a list, and those that follow it one apart.
fn listed(list: &[usize]) -> Piece {
    let start = list.first().copied();
    let Some(first) = start else {
        return Piece {
            len: 0,
            start,
            step: 0,
        };
    };
    // No further than pays: a list may be one long piece, which is walked from its middle again and again.
    let follows = |(distance, position): &(usize, &usize)| first + distance == **position;
    let len = list.iter().enumerate().take(64).take_while(follows).count();
    Piece {
        len,
        start,
        step: 1,
    }
}
