//! Reductions in windows, and their gradients.

use tfrt_ir::{OpId, Type, ValueId};

use super::build::{encoded, is_float, width};
use super::control::flattened;
use super::gather::Rows;
use super::reduce::Kind;
use super::sizes::{Size, TO_END};
use super::stated_windows::Windows;
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.reduce_window", reduce_window),
    ("stablehlo.select_and_scatter", select_and_scatter),
];

/// The most elements of windows that are put together one after the other, in their order: sums are rounded as elsewhere.
const MOST_IN_ORDER: i64 = 32;

fn reduce_window(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let operands = l.operands(op)?;
    if operands.is_empty() || operands.len() % 2 == 1 {
        return Err(format!(
            "expected operands and as many first values, found {}",
            operands.len()
        ));
    }
    let body = l.body(op, 0)?;
    let first = flattened(&operands).first().copied();
    let rank = l.rank(first.ok_or("expected a tensor")?);
    let windows = Windows::read(l, op, rank)?;
    l.reduced_in(&windows, body, operands)
}

impl Lowering<'_> {
    /// Reduces windows of tensors, behind which the first values stand.
    pub(super) fn reduced_in(
        &mut self,
        windows: &Windows,
        body: tfrt_ir::BlockId,
        operands: Vec<Bound>,
    ) -> Lowered {
        let operands = self.promoted(body, operands)?;
        let (values, inits) = operands.split_at(operands.len() / 2);
        let kind = self.kind(body).filter(|kind| *kind != Kind::Second);
        if let (Some(kind), [Bound::Tensor(x)], [Bound::Tensor(init)]) = (kind, values, inits)
            && let Some(pool) = self.pool(windows, kind, *x, *init)
        {
            if kind == Kind::Max {
                return Ok(vec![Bound::Tensor(self.pooled(&pool, "max", false)?)]);
            }
            let made = self.put_together(windows, body, Some(kind), values, inits)?;
            if let [Bound::Tensor(sum)] = made[..] {
                self.sums.insert(sum, pool);
            }
            return Ok(made);
        }
        self.put_together(windows, body, kind, values, inits)
    }

    /// Puts the elements of windows together by a body.
    fn put_together(
        &mut self,
        windows: &Windows,
        body: tfrt_ir::BlockId,
        kind: Option<Kind>,
        values: &[Bound],
        inits: &[Bound],
    ) -> Lowered {
        let first = *flattened(values).first().ok_or("expected a tensor")?;
        let dims = self.dims(first);
        let mut wide = self.padded_values(values, inits, |l, x, by| {
            l.padded(x, by, &windows.low, &windows.high, &windows.interior)
        })?;
        let mut counts = Vec::with_capacity(dims.len());
        for axis in 0..dims.len() {
            let size = self.dims(flattened(&wide)[0])[axis];
            counts.push(windows.count(axis, size));
        }
        if counts.contains(&0) {
            return self.all(inits, |l, init| Ok(l.broadcast_to(init, &counts)));
        }
        let n_elements = windows
            .sizes
            .iter()
            .try_fold(1_i64, |n, size| n.checked_mul(*size));
        if n_elements.is_some_and(|n| n <= MOST_IN_ORDER) {
            return self.in_order(body, kind, &wide, inits, windows, &counts);
        }
        for (axis, count) in counts.iter().enumerate() {
            wide = self.along(body, kind, wide, windows, axis, *count)?;
        }
        self.begun_with(body, kind, wide, inits)
    }

    /// Pads each tensor of values by a first value.
    pub(super) fn padded_values(
        &mut self,
        values: &[Bound],
        inits: &[Bound],
        pad: impl Fn(&mut Self, ValueId, ValueId) -> Result<ValueId, String>,
    ) -> Lowered {
        let mut wide = Vec::with_capacity(values.len());
        for (value, init) in values.iter().zip(inits) {
            wide.push(match (value, init) {
                (Bound::Tensor(x), Bound::Tensor(by)) => Bound::Tensor(pad(self, *x, *by)?),
                (Bound::Complex(a, b), Bound::Complex(c, d)) => {
                    Bound::Complex(pad(self, *a, *c)?, pad(self, *b, *d)?)
                }
                _ => return Err("begins with a value of another type".to_owned()),
            });
        }
        Ok(wide)
    }

    /// Puts together the first values, and what the body gives of the elements of each window.
    pub(super) fn begun_with(
        &mut self,
        body: tfrt_ir::BlockId,
        kind: Option<Kind>,
        values: Vec<Bound>,
        inits: &[Bound],
    ) -> Lowered {
        let like = flattened(&values)[0];
        let inits = self.all(inits, |l, init| Ok(l.widened_like(init, like)))?;
        if let (Some(kind), [Bound::Tensor(x)], [Bound::Tensor(init)]) =
            (kind, &values[..], &inits[..])
        {
            return Ok(vec![Bound::Tensor(self.begun(kind, *init, *x))]);
        }
        let arguments: Vec<Bound> = inits.into_iter().chain(values).collect();
        self.applied(body, &arguments)
    }

    /// Puts the elements of windows together one after the other, beginning with the first values.
    fn in_order(
        &mut self,
        body: tfrt_ir::BlockId,
        kind: Option<Kind>,
        wide: &[Bound],
        inits: &[Bound],
        windows: &Windows,
        counts: &[i64],
    ) -> Lowered {
        let rank = counts.len();
        let n: i64 = windows.sizes.iter().product();
        let mut sum = Vec::new();
        for step in 0..n {
            let mut rest = step;
            let mut starts = vec![0; rank];
            for axis in (0..rank).rev() {
                starts[axis] = rest % windows.sizes[axis] * windows.dilations[axis];
                rest /= windows.sizes[axis];
            }
            let limits: Vec<i64> = (0..rank)
                .map(|axis| windows.limit(axis, counts[axis], starts[axis], 1))
                .collect();
            let next = self.all(wide, |l, x| {
                Ok(l.sliced(x, &starts, &limits, &windows.strides))
            })?;
            if step == 0 {
                let like = flattened(&next)[0];
                sum = self.all(inits, |l, init| Ok(l.widened_like(init, like)))?;
            }
            sum = match (kind, &sum[..], &next[..]) {
                (Some(kind), [Bound::Tensor(init)], [Bound::Tensor(next)]) if step == 0 => {
                    vec![Bound::Tensor(self.begun(kind, *init, *next))]
                }
                _ => self.both(body, kind, sum, next)?,
            };
        }
        Ok(sum)
    }

    /// Puts the elements of windows along one dimension together: windows of a power of two of elements are those of half
    /// as many, twice.
    pub(super) fn along(
        &mut self,
        body: tfrt_ir::BlockId,
        kind: Option<Kind>,
        values: Vec<Bound>,
        windows: &Windows,
        axis: usize,
        count: i64,
    ) -> Lowered {
        let (size, stride, dilation) = (
            windows.sizes[axis],
            windows.strides[axis],
            windows.dilations[axis],
        );
        // The values at an offset of each window, of an operand whose elements are put together of so many.
        let at = |l: &mut Self, values: &[Bound], start: i64, reached: i64| {
            let limit = windows.limit(axis, count, start, reached);
            l.all(values, |l, x| Ok(l.part(x, axis, start, limit, stride)))
        };
        if size <= 16 {
            let mut sum = at(self, &values, 0, 1)?;
            for step in 1..size {
                let next = at(self, &values, step * dilation, 1)?;
                sum = self.both(body, kind, sum, next)?;
            }
            return Ok(sum);
        }
        let (mut power, mut reached) = (values, 1_i64);
        let (mut sum, mut done): (Option<Vec<Bound>>, i64) = (None, 0);
        loop {
            if size & reached != 0 {
                let next = at(self, &power, done * dilation, reached)?;
                sum = Some(match sum {
                    Some(sum) => self.both(body, kind, sum, next)?,
                    None => next,
                });
                done += reached;
            }
            if done == size {
                return sum.ok_or_else(|| "has windows without elements".to_owned());
            }
            let shift = reached * dilation;
            let n = self.dims(flattened(&power)[0])[axis];
            let (limit, end) = if n < 0 {
                (-shift, TO_END)
            } else {
                (n - shift, n)
            };
            let left = self.all(&power, |l, x| Ok(l.part(x, axis, 0, limit, 1)))?;
            let right = self.all(&power, |l, x| Ok(l.part(x, axis, shift, end, 1)))?;
            power = self.both(body, kind, left, right)?;
            reached *= 2;
        }
    }

    pub(super) fn both(
        &mut self,
        body: tfrt_ir::BlockId,
        kind: Option<Kind>,
        left: Vec<Bound>,
        right: Vec<Bound>,
    ) -> Lowered {
        if let (Some(kind), [Bound::Tensor(x)], [Bound::Tensor(y)]) = (kind, &left[..], &right[..])
        {
            let [row, truth] = kind.rows();
            let is_truth = super::build::is_bool(&self.element(*x));
            return Ok(vec![Bound::Tensor(self.binary(
                if is_truth { truth } else { row },
                *x,
                *y,
            ))]);
        }
        let arguments: Vec<Bound> = left.into_iter().chain(right).collect();
        self.applied(body, &arguments)
    }
}

/// Chooses an element of each window by one body, and adds what is scattered to it by another.
fn select_and_scatter(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (x, source, init) = (l.operand(op, 0)?, l.operand(op, 1)?, l.operand(op, 2)?);
    let (dims, element) = (l.dims(x), l.element(x));
    let sizes = l.sizes(x);
    let windows = Windows::read(l, op, dims.len())?;
    let (select, scatter) = (l.body(op, 0)?, l.body(op, 1)?);
    let padding = match is_float(&element) {
        true => f64::NEG_INFINITY,
        false => -f64::powi(2.0, width(&element).cast_signed() - 1),
    };
    let none = l.elements(&[], &element, encoded(&element, padding));
    let wide = l.padded(x, none, &windows.low, &windows.high, &windows.interior)?;
    let count = l.size_product(&sizes)?;
    let numbers = l.numbers_below(count, &Type::I64);
    let numbers = l.resized(numbers, &sizes);
    let outside = l.size_number(count);
    let numbers = l.padded(
        numbers,
        outside,
        &windows.low,
        &windows.high,
        &windows.interior,
    )?;
    let wide_dims = l.dims(wide);
    let counts: Vec<i64> = (0..dims.len())
        .map(|axis| windows.count(axis, wide_dims[axis]))
        .collect();
    let source_dims = l.dims(source);
    let fits = |(count, own): (&i64, &i64)| *count < 0 || *own < 0 || count == own;
    if counts.len() != source_dims.len() || !counts.iter().zip(&source_dims).all(fits) {
        return Err(format!(
            "scatters a tensor of extents {source_dims:?} to windows of {counts:?}"
        ));
    }
    const MOST: i64 = 4096;
    let n_steps = windows
        .sizes
        .iter()
        .try_fold(1_i64, |n, size| n.checked_mul(*size));
    let n_steps = n_steps.filter(|n| *n <= MOST);
    let n_steps = n_steps.ok_or_else(|| format!("has windows of more than {MOST} elements"))?;
    let mut chosen: Option<[ValueId; 2]> = None;
    for step in 0..n_steps {
        let mut rest = step;
        let mut starts = vec![0; dims.len()];
        for axis in (0..dims.len()).rev() {
            starts[axis] = rest % windows.sizes[axis];
            rest /= windows.sizes[axis];
        }
        let limits: Vec<i64> = (0..dims.len())
            .map(|axis| windows.limit(axis, counts[axis], starts[axis], 1))
            .collect();
        let next = [wide, numbers].map(|x| l.sliced(x, &starts, &limits, &windows.strides));
        chosen = Some(match chosen {
            None => next,
            Some(now) => {
                let arguments = [Bound::Tensor(now[0]), Bound::Tensor(next[0])];
                let Some(Bound::Tensor(keeps)) = l.block(select, &arguments)?.pop() else {
                    return Err("has a body that gives no truth value".to_owned());
                };
                // What is padded is chosen by nobody.
                let is_inside = l.compare("lt", now[1], outside);
                let is_next = l.compare("lt", next[1], outside);
                let is_outside = l.unary("not", is_next);
                let keeps = l.binary("and", keeps, is_inside);
                let keeps = l.binary("or", keeps, is_outside);
                [
                    l.select(keeps, now[0], next[0]),
                    l.select(keeps, now[1], next[1]),
                ]
            }
        });
    }
    let [_, at] = chosen.ok_or("has windows without elements")?;
    let within = l.compare("lt", at, outside);
    let last = l.size_difference(count, Size::Known(1))?;
    let last = l.size_number(last);
    let at = l.binary("min", at, last);
    let base = l.widened(init, &sizes);
    let rows = Rows {
        n_leading: dims.len(),
        at,
        within: Some(within),
    };
    l.scattered(
        scatter,
        &[Bound::Tensor(base)],
        &[Bound::Tensor(source)],
        &rows,
    )
}
