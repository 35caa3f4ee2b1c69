//! Windows of which some extents are known only when a model runs.
//!
//! Operands are padded first. Along a dimension whose windows are known these are put together as elsewhere; along any other
//! one a loop takes an element of all windows in each turn.

use tfrt_ir::{BlockId, ValueId};

use super::control::{flattened, unflattened};
use super::reduce::Kind;
use super::sizes::Size;
use super::stated_windows::Windows;
use super::{Bound, Lowered, Lowering};

impl Lowering<'_> {
    /// Reduces windows of tensors, behind which the first values stand. The lists have the extents of windows, the distances
    /// of windows, of elements of the operands, and of elements of windows, and pads.
    pub(super) fn reduced_by_sizes(
        &mut self,
        lists: &[Vec<Size>],
        body: BlockId,
        operands: Vec<Bound>,
    ) -> Lowered {
        let [sizes, strides, apart, dilations, pads] = lists else {
            return Err(format!("has {} lists of integers", lists.len()));
        };
        let operands = self.promoted(body, operands)?;
        let (values, inits) = operands.split_at(operands.len() / 2);
        let kind = self.kind(body).filter(|kind| *kind != Kind::Second);
        let low: Vec<Size> = pads.iter().copied().step_by(2).collect();
        let high: Vec<Size> = pads.iter().copied().skip(1).step_by(2).collect();
        let mut between = Vec::with_capacity(apart.len());
        for distance in apart {
            between.push(self.size_difference(*distance, Size::Known(1))?);
        }
        if between
            .iter()
            .any(|size| size.known().is_some_and(|size| size < 0))
        {
            return Err("has base dilations below 1".to_owned());
        }
        let mut wide = self.padded_values(values, inits, |l, x, by| {
            l.padded_by(x, by, [&low, &high, &between])
        })?;
        let known = |list: &Vec<Size>| list.iter().copied().map(Size::known).collect();
        let known: [Option<Vec<i64>>; 3] = [sizes, strides, dilations].map(known);
        if let [Some(sizes), Some(strides), Some(dilations)] = known {
            let (ones, zeros) = (vec![1; sizes.len()], vec![0; 2 * sizes.len()]);
            let windows = Windows::of(vec![sizes, strides, ones, dilations, zeros])?;
            wide.extend_from_slice(inits);
            return self.reduced_in(&windows, body, wide);
        }
        for axis in 0..sizes.len() {
            let window = [sizes[axis], strides[axis], dilations[axis]];
            wide = match window.map(Size::known) {
                [Some(size), Some(stride), Some(dilation)] => {
                    let first = flattened(&wide)[0];
                    let windows = Windows::along(axis, sizes.len(), [size, stride, dilation])?;
                    match windows.count(axis, self.dims(first)[axis]) {
                        0 => self.all(&wide, |l, x| Ok(l.part(x, axis, 0, 0, 1)))?,
                        count => self.along(body, kind, wide, &windows, axis, count)?,
                    }
                }
                _ => self.in_turns(body, kind, &wide, axis, window)?,
            };
        }
        self.begun_with(body, kind, wide, inits)
    }

    /// Puts the elements of windows along one dimension together, one of each window in each turn of a loop.
    fn in_turns(
        &mut self,
        body: BlockId,
        kind: Option<Kind>,
        values: &[Bound],
        axis: usize,
        [size, stride, dilation]: [Size; 3],
    ) -> Lowered {
        let first = *flattened(values).first().ok_or("expected a tensor")?;
        let n = self.size_along(first, axis);
        let last = self.size_difference(size, Size::Known(1))?;
        let last = self.size_product(&[last, dilation])?;
        // The first elements of all windows are among so many.
        let reached = self.size_difference(n, last)?;
        let reached = self.size_max(reached, Size::Known(0))?;
        let begin = self.all(values, |l, x| {
            l.stretch(x, axis, Size::Known(0), reached, stride)
        })?;
        let turn = self.integers_of(&[], &[1]);
        let mut state = vec![turn];
        state.extend(flattened(&begin));
        let types = self.types_of(&state);
        let (condition, ()) = self.region(&types, |l, arguments| {
            let limit = l.size_number(size);
            Ok((vec![l.compare("lt", arguments[0], limit)], ()))
        })?;
        let (turns, ()) = self.region(&types, |l, arguments| {
            let turn = arguments[0];
            let sum = unflattened(values, arguments[1..].to_vec())?;
            let at = Size::At(l.reshaped(turn, &[1]));
            let start = l.size_product(&[at, dilation])?;
            let next = l.all(values, |l, x| l.stretch(x, axis, start, reached, stride))?;
            let one = l.integers_of(&[], &[1]);
            let mut made = vec![l.binary("add", turn, one)];
            made.extend(flattened(&l.both(body, kind, sum, next)?));
            Ok((made, ()))
        })?;
        let results = self.looped(&state, condition, turns);
        unflattened(values, results[1..].to_vec())
    }

    /// Takes every `stride`-th of `n` elements along a dimension, from `start` on.
    fn stretch(
        &mut self,
        x: ValueId,
        axis: usize,
        start: Size,
        n: Size,
        stride: Size,
    ) -> Result<ValueId, String> {
        let mut dims = self.dims(x);
        dims[axis] = -1;
        let end = self.size_sum(start, n)?;
        let [starts, ends, steps] = [start, end, stride].map(|size| self.size_list(size));
        let axes = self.shape(&[i64::try_from(axis).unwrap_or(0)]);
        let element = self.element(x);
        Ok(self.add(
            "slice",
            &[x, starts, ends, axes, steps],
            &[],
            &dims,
            &element,
        ))
    }
}
