//! Padding: elements put around a tensor, or cut off.

use tfrt_host::Error;

use super::{Axis, LayoutCopy, SourceAxis, too_large};

/// Padding mode of a tensor's borders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The value that [`LayoutCopy::run_around`] is given.
    Constant,
    /// The outermost element, over and over.
    Repeat,
    /// The elements mirrored at the outermost, which is not repeated: `c b | a b c | b a`.
    Reflect,
    /// The elements over and over: `b c | a b c | a b`.
    Wrap,
}

impl LayoutCopy {
    /// Adds elements before and behind each dimension; negative numbers cut off.
    ///
    /// Elements are cut off first: the rest is repeated, mirrored or wrapped, as often as it takes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is not a pair for each dimension, if more is cut off than there is, if there
    /// is nothing to repeat, or if an extent of the result is too large.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::math::layout_copy::{Edge, LayoutCopy};
    /// use tfrt_tensor::{TensorView, TensorViewMut};
    ///
    /// let x = TensorView::new(&[1, 2, 3], &[3])?;
    /// let pad = LayoutCopy::pad(&[3], &[(2, 1)], Edge::Reflect)?;
    /// let mut out = [0; 6];
    /// pad.run(&x, &mut TensorViewMut::new(&mut out, pad.extents())?)?;
    /// assert_eq!(out, [3, 2, 1, 2, 3, 2]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn pad(input: &[usize], pads: &[(i64, i64)], edge: Edge) -> Result<LayoutCopy, Error> {
        if pads.len() != input.len() {
            let message = format!(
                "expected what to put before and behind each of {} dimensions, found {pads:?}",
                input.len()
            );
            return Err(Error::invalid_argument(message));
        }
        let mut copy = LayoutCopy::all_of(input);
        for (dimension, (pads, extent)) in pads.iter().zip(input).enumerate() {
            let axis = axis(dimension, *extent, *pads, edge)?;
            copy.output[dimension] = axis.extent();
            copy.sources[dimension] = SourceAxis {
                dimension: Some(dimension),
                axis,
            };
        }
        Ok(copy)
    }
}

fn axis(
    dimension: usize,
    extent: usize,
    (before, behind): (i64, i64),
    edge: Edge,
) -> Result<Axis, Error> {
    let size = |pad: i64| usize::try_from(pad.unsigned_abs()).unwrap_or(usize::MAX);
    let cut = |pad: i64| if pad < 0 { size(pad) } else { 0 };
    let added = |pad: i64| if pad > 0 { size(pad) } else { 0 };
    let middle = extent
        .checked_sub(cut(before))
        .and_then(|rest| rest.checked_sub(cut(behind)));
    let Some(middle) = middle else {
        return Err(Error::invalid_argument(format!(
            "{before} before and {behind} behind cut off more of dimension {dimension} than its extent, \
             {extent}"
        )));
    };
    let (start, n_before, n_behind) = (cut(before), added(before), added(behind));
    if middle == 0 && (n_before > 0 || n_behind > 0) && edge != Edge::Constant {
        return Err(Error::invalid_argument(format!(
            "dimension {dimension} has no elements that could be put around it"
        )));
    }
    middle
        .checked_add(n_before)
        .and_then(|sum| sum.checked_add(n_behind))
        .ok_or_else(|| too_large(dimension))?;
    if n_before == 0 && n_behind == 0 {
        return Ok(Axis::Regular {
            extent: middle,
            start,
            step: 1,
        });
    }
    Ok(Axis::Padded {
        before: n_before,
        start,
        middle,
        behind: n_behind,
        edge,
    })
}
