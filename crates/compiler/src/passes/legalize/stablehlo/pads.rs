//! Pads: elements around those of a tensor, and between them.

use tfrt_ir::{OpId, ValueId};

use super::shapes::checked;
use super::sizes::{Size, TO_END, dims_of};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.dynamic_pad", dynamic_pad),
    ("stablehlo.pad", pad),
];

impl Lowering<'_> {
    /// Adds elements around and between those of a tensor; fewer where a number is negative.
    pub(super) fn padded(
        &mut self,
        x: ValueId,
        value: ValueId,
        low: &[i64],
        high: &[i64],
        interior: &[i64],
    ) -> Result<ValueId, String> {
        let mut x = x;
        for axis in 0..low.len() {
            let dims = self.dims(x);
            let (n, between) = (dims[axis], interior[axis]);
            if between < 0 {
                return Err(format!("pads {between} elements between others"));
            }
            if between == 0 || n == 0 || n == 1 {
                continue;
            }
            x = self.pad_between(x, value, axis, Size::Known(between))?;
        }
        self.pad_outside(x, value, low, high)
    }

    /// Adds elements around and between those of a tensor, as many as sizes say.
    pub(super) fn padded_by(
        &mut self,
        x: ValueId,
        value: ValueId,
        [low, high, interior]: [&[Size]; 3],
    ) -> Result<ValueId, String> {
        let [low_dims, high_dims, interior_dims] = [low, high, interior].map(dims_of);
        let is_known = |sizes: &[Size]| sizes.iter().all(|size| matches!(size, Size::Known(_)));
        if is_known(low) && is_known(high) && is_known(interior) {
            return self.padded(x, value, &low_dims, &high_dims, &interior_dims);
        }
        let mut x = x;
        for (axis, between) in interior.iter().enumerate() {
            if *between != Size::Known(0) {
                x = self.pad_between(x, value, axis, *between)?;
            }
        }
        let pads = self.sizes_list(&[low, high].concat());
        let dims = self.dims(x);
        let extents: Vec<i64> = (0..dims.len())
            .map(|axis| match (dims[axis], low[axis], high[axis]) {
                (-1, ..) | (_, Size::At(_), _) | (.., Size::At(_)) => Ok(-1),
                (dim, Size::Known(low), Size::Known(high)) => {
                    checked(dim, |dim| dim.checked_add(low)?.checked_add(high))
                }
            })
            .collect::<Result<_, _>>()?;
        let element = self.element(x);
        Ok(self.add("pad", &[x, pads, value], &[], &extents, &element))
    }

    /// Adds elements between those along a dimension: each gets a dimension of its own, in which others follow it.
    fn pad_between(
        &mut self,
        x: ValueId,
        value: ValueId,
        axis: usize,
        between: Size,
    ) -> Result<ValueId, String> {
        let sizes = self.sizes(x);
        let mut apart = sizes.clone();
        apart.insert(axis + 1, Size::Known(1));
        let wide = self.resized(x, &apart);
        let mut ends = vec![Size::Known(0); apart.len()];
        let none = ends.clone();
        ends[axis + 1] = between;
        let wide = self.padded_by(wide, value, [&none, &ends, &none])?;
        let step = self.size_sum(between, Size::Known(1))?;
        let mut together = sizes.clone();
        together[axis] = self.size_product(&[sizes[axis], step])?;
        let wide = self.resized(wide, &together);
        // Nothing follows the last one.
        Ok(match (together[axis], between) {
            (Size::Known(n), Size::Known(between)) => self.part(wide, axis, 0, n - between, 1),
            (_, Size::Known(between)) => self.part(wide, axis, 0, -between, 1),
            (n, _) => {
                let end = self.size_difference(n, between)?;
                self.cut(wide, axis, Size::Known(0), end)
            }
        })
    }

    /// Takes the elements along a dimension from one place to another, which may be known only when the model runs.
    pub(super) fn cut(&mut self, x: ValueId, axis: usize, start: Size, end: Size) -> ValueId {
        let mut dims = self.dims(x);
        dims[axis] = match (start, end) {
            (Size::Known(start), Size::Known(end)) => (end - start).max(0),
            _ => -1,
        };
        let (starts, ends) = (self.size_list(start), self.size_list(end));
        let axes = self.shape(&[i64::try_from(axis).unwrap_or(0)]);
        let element = self.element(x);
        self.add("slice", &[x, starts, ends, axes], &[], &dims, &element)
    }

    fn pad_outside(
        &mut self,
        x: ValueId,
        value: ValueId,
        low: &[i64],
        high: &[i64],
    ) -> Result<ValueId, String> {
        let dims = self.dims(x);
        // What is added comes first: a negative number may take away what another one has added.
        let added = |sizes: &[i64]| {
            sizes
                .iter()
                .map(|size| (*size).max(0))
                .collect::<Vec<i64>>()
        };
        let (before, after) = (added(low), added(high));
        let mut wide = x;
        if before.iter().chain(&after).any(|size| *size > 0) {
            let extents = dims.iter().zip(before.iter().zip(&after));
            let extents: Vec<i64> = extents
                .map(|(dim, (before, after))| match dim {
                    -1 => Ok(-1),
                    dim => checked(*dim, |dim| dim.checked_add(*before)?.checked_add(*after)),
                })
                .collect::<Result<_, _>>()?;
            let pads: Vec<i64> = before.iter().chain(&after).copied().collect();
            let pads = self.shape(&pads);
            let element = self.element(x);
            wide = self.add("pad", &[x, pads, value], &[], &extents, &element);
        }
        let extents = self.dims(wide);
        let starts: Vec<i64> = low.iter().map(|size| (-size).max(0)).collect();
        let limits: Vec<i64> = extents
            .iter()
            .zip(high)
            .map(|(size, high)| match (size, high) {
                (-1, 0..) => TO_END,
                (-1, high) => *high,
                (size, high) => (size + high.min(&0)).max(0),
            })
            .collect();
        Ok(self.sliced(wide, &starts, &limits, &vec![1; extents.len()]))
    }
}

fn pad(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let value = l.bound(op, 0)?;
    let rank = match &value {
        Bound::Tensor(x) | Bound::Complex(x, _) => l.rank(*x),
        _ => return Err("expected a tensor".to_owned()),
    };
    let [low, high, interior] = ["edge_padding_low", "edge_padding_high", "interior_padding"]
        .map(|name| l.ints_or(op, name, rank, 0));
    let (low, high, interior) = (low?, high?, interior?);
    Ok(vec![match (value, l.bound(op, 1)?) {
        (Bound::Tensor(x), Bound::Tensor(by)) => {
            Bound::Tensor(l.padded(x, by, &low, &high, &interior)?)
        }
        (Bound::Complex(a, b), Bound::Complex(c, d)) => Bound::Complex(
            l.padded(a, c, &low, &high, &interior)?,
            l.padded(b, d, &low, &high, &interior)?,
        ),
        _ => return Err("pads a tensor by a value of another type".to_owned()),
    }])
}

fn dynamic_pad(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let value = l.bound(op, 0)?;
    let rank = match &value {
        Bound::Tensor(x) | Bound::Complex(x, _) => l.rank(*x),
        _ => return Err("expected a tensor".to_owned()),
    };
    let mut lists = Vec::with_capacity(3);
    for index in 2..5 {
        lists.push(l.sizes_of(op, index, rank)?);
    }
    let lists = [&lists[0][..], &lists[1], &lists[2]];
    if lists[2]
        .iter()
        .any(|between| matches!(between, Size::Known(..0)))
    {
        return Err("pads fewer than 0 elements between others".to_owned());
    }
    Ok(vec![match (value, l.bound(op, 1)?) {
        (Bound::Tensor(x), Bound::Tensor(by)) => Bound::Tensor(l.padded_by(x, by, lists)?),
        (Bound::Complex(a, b), Bound::Complex(c, d)) => {
            Bound::Complex(l.padded_by(a, c, lists)?, l.padded_by(b, d, lists)?)
        }
        _ => return Err("pads a tensor by a value of another type".to_owned()),
    }])
}
