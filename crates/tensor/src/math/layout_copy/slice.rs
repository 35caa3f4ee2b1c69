//! Slices: every `step`-th element of a range; parts of a tensor.

use tfrt_host::Error;

use super::{Axis, LayoutCopy, SourceAxis, expect_dimension};

/// Slice of a dimension: elements from `start` on, `step` apart, before `end`.
///
/// As in NumPy: a negative `start` or `end` counts from behind, one that lies outside is the outermost; with a
/// negative `step` elements are taken backwards, as far as they lie behind `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first element.
    pub start: i64,
    /// End, not included; [`i64::MAX`] or [`i64::MIN`] for no end.
    pub end: i64,
    /// Distance between elements.
    pub step: i64,
}

impl Slice {
    /// All elements.
    pub const ALL: Slice = Slice {
        start: 0,
        end: i64::MAX,
        step: 1,
    };

    /// Returns the slice of these elements.
    pub fn new(start: i64, end: i64, step: i64) -> Slice {
        Slice { start, end, step }
    }

    /// Returns the first position and the number of elements in a dimension of this extent.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the step is 0.
    pub fn positions(&self, extent: usize) -> Result<(usize, usize), Error> {
        let Slice { start, end, step } = *self;
        if step == 0 {
            let message = "a slice has a step below or above 0, found 0";
            return Err(Error::invalid_argument(message));
        }
        // Wide enough for all sums of these.
        let n = extent as i128;
        let (least, most) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let within = |position: i64| {
            let position = i128::from(position);
            let from_front = if position < 0 { position + n } else { position };
            from_front.clamp(least, most)
        };
        let (start, end, step) = (within(start), within(end), i128::from(step));
        let distance = if step > 0 { end - start } else { start - end };
        let len = (distance.max(0) + step.abs() - 1) / step.abs();
        let start = usize::try_from(start).unwrap_or(0);
        Ok((start, usize::try_from(len).unwrap_or(0)))
    }
}

impl LayoutCopy {
    /// Takes a slice of each dimension.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is not a slice for each dimension, or if a step is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::math::layout_copy::{LayoutCopy, Slice};
    /// use tfrt_tensor::{TensorView, TensorViewMut};
    ///
    /// let x = TensorView::new(&[0, 1, 2, 3, 4, 5, 6], &[7])?;
    /// let every_third_from_behind = LayoutCopy::slice(&[7], &[Slice::new(-1, i64::MIN, -3)])?;
    /// let mut out = [0; 3];
    /// every_third_from_behind.run(&x, &mut TensorViewMut::new(&mut out, &[3])?)?;
    /// assert_eq!(out, [6, 3, 0]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn slice(input: &[usize], slices: &[Slice]) -> Result<LayoutCopy, Error> {
        if slices.len() != input.len() {
            let message = format!(
                "expected a slice of each of {} dimensions, found {}",
                input.len(),
                slices.len()
            );
            return Err(Error::invalid_argument(message));
        }
        let mut copy = LayoutCopy::all_of(input);
        for (dimension, (slice, extent)) in slices.iter().zip(input).enumerate() {
            let (start, len) = slice.positions(*extent)?;
            // A step that is larger than any dimension is not taken.
            let step = if len > 1 { slice.step } else { 1 };
            copy.set_range(dimension, start, len, isize::try_from(step).unwrap_or(1));
        }
        Ok(copy)
    }

    /// Splits a dimension in parts of these extents, one by one: there may be as many as elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such dimension, or if the extents do not add up to its extent.
    pub fn split<'a>(
        input: &'a [usize],
        dimension: usize,
        extents: &'a [usize],
    ) -> Result<impl Iterator<Item = LayoutCopy> + use<'a>, Error> {
        expect_dimension(input, dimension)?;
        let extent = input[dimension];
        let sum = extents
            .iter()
            .try_fold(0_usize, |sum, part| sum.checked_add(*part));
        if sum != Some(extent) {
            return Err(Error::invalid_argument(format!(
                "parts of {extents:?} do not add up to the extent of dimension {dimension}, {extent}"
            )));
        }
        let mut start = 0;
        let part = move |len: &usize| {
            let mut copy = LayoutCopy::all_of(input);
            copy.set_range(dimension, start, *len, 1);
            start += len;
            copy
        };
        Ok(extents.iter().map(part))
    }

    fn set_range(&mut self, dimension: usize, start: usize, extent: usize, step: isize) {
        self.output[dimension] = extent;
        self.sources[dimension] = SourceAxis {
            dimension: Some(dimension),
            axis: Axis::Regular {
                extent,
                start,
                step,
            },
        };
    }
}
