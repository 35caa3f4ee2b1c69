//! Sorts by any comparator.
//!
//! A comparator that compares keys, each calculated of one element alone (`keys`), is that of the row `top_k`, whose order
//! is applied to all operands; of several keys the last one comes first, as equal elements stay in their order. Any other
//! comparator is applied in a network that exchanges elements which are a power of two apart, to all pairs at once; the
//! places of elements decide between equal ones, so that these stay in their order.

use tfrt_ir::{BlockId, OpId, Type, ValueId};

use super::attributes::check_axes;
use super::build::{int, is_float};
use super::control::{flattened, unflattened};
use super::keys::Key;
use super::sizes::Size;
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[("stablehlo.sort", sort)];

fn sort(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let values = l.operands(op)?;
    let comparator = l.body(op, 0)?;
    let tensors = flattened(&values);
    let dims = l.dims(*tensors.first().ok_or("expected a tensor")?);
    if tensors.iter().any(|value| l.dims(*value) != dims) {
        return Err("sorts tensors of different extents".to_owned());
    }
    let rank = i64::try_from(dims.len()).unwrap_or(0);
    let axis = l.int(op, "dimension").unwrap_or(-1);
    let axis = if axis < 0 { axis + rank } else { axis };
    if rank == 0 {
        return Ok(values);
    }
    let axis = check_axes(&[axis], dims.len())?[0];
    if matches!(dims[axis], 0 | 1) || dims.contains(&0) {
        return Ok(values);
    }
    match l.keys(comparator, &values)? {
        Some(keys) => l.sorted(&values, &keys, axis),
        None => l.sorted_by(&values, comparator, axis),
    }
}

impl Lowering<'_> {
    /// Sorts by keys.
    fn sorted(&mut self, values: &[Bound], keys: &[Key], axis: usize) -> Lowered {
        let n_values = values.len();
        let mut all = values.to_vec();
        all.extend(keys.iter().map(|key| Bound::Tensor(key.value)));
        for (index, key) in keys.iter().enumerate().rev() {
            let Bound::Tensor(value) = all[n_values + index] else {
                return Err("compares complex numbers, which have no order".to_owned());
            };
            let places = self.order(value, key, axis);
            all.truncate(n_values + index);
            let axis = ("axis", int(i64::try_from(axis).unwrap_or(0)));
            all = self.all(&all, |l, x| {
                let (dims, element) = (l.dims(x), l.element(x));
                let operands = [x, places];
                let axis = std::slice::from_ref(&axis);
                Ok(l.add("gather_elements", &operands, axis, &dims, &element))
            })?;
        }
        Ok(all)
    }

    /// Returns where the elements come from that are in order by a key.
    fn order(&mut self, key: ValueId, order: &Key, axis: usize) -> ValueId {
        let key = match is_float(&self.element(key)) {
            // Integers in the order of the floats: no number is among them.
            true if order.is_total => self.ordered(key),
            true => {
                let none = self.pointwise("is_nan", &[key], &[], &Type::I1);
                let zero = self.number(&self.element(key), 0.0);
                // The comparison finds -0 and 0 the same.
                let plain = self.binary("add", key, zero);
                let ordered = self.ordered(plain);
                let bits = self.element(ordered);
                let all = self.number(&bits, 0.0);
                let most = self.unary("bit_not", all);
                let last = if order.descending { all } else { most };
                self.select(none, last, ordered)
            }
            false => key,
        };
        let key = match self.element(key) {
            Type::I1 => self.cast(key, &Type::I32),
            element if super::build::width(&element) < 32 => {
                let wide = if super::build::is_unsigned(&element) {
                    Type::UI32
                } else {
                    Type::I32
                };
                self.cast(key, &wide)
            }
            _ => key,
        };
        let dims = self.dims(key);
        let n = self.size_along(key, axis);
        let k = self.size_list(n);
        let attributes = [
            ("axis", int(i64::try_from(axis).unwrap_or(0))),
            ("largest", int(i64::from(order.descending))),
        ];
        let types = vec![
            Type::tensor(dims.clone(), self.element(key)),
            Type::tensor(dims, Type::I64),
        ];
        self.add_all("top_k", &[key, k], &attributes, types)[1]
    }

    /// Sorts by a network of comparisons.
    fn sorted_by(&mut self, values: &[Bound], comparator: BlockId, axis: usize) -> Lowered {
        let tensors = flattened(values);
        let sizes = self.sizes(tensors[0]);
        let n = sizes[axis];
        let n_whole = match n {
            Size::Known(n) => {
                let n = u64::try_from(n).unwrap_or(1);
                Size::Known(n.next_power_of_two().cast_signed())
            }
            Size::At(list) => self.next_power_of_two(list)?,
        };
        // Each element with its place. Elements that fill up the last power have the last ones.
        let mut wide = sizes.clone();
        wide[axis] = n_whole;
        let mut state = vec![self.numbered(&wide, axis, &Type::I64)?];
        let none = vec![Size::Known(0); sizes.len()];
        let mut high = none.clone();
        high[axis] = self.size_difference(n_whole, n)?;
        for value in tensors {
            let zero = self.number(&self.element(value), 0.0);
            state.push(self.padded_by(value, zero, [&none, &high, &none])?);
        }
        if let Size::Known(n_whole) = n_whole {
            let mut size = 2;
            while size <= n_whole {
                let mut distance = size / 2;
                while distance > 0 {
                    let step = [n, Size::Known(size), Size::Known(distance)];
                    state = self.exchanged(values, comparator, state, axis, step)?;
                    distance /= 2;
                }
                size *= 2;
            }
        } else {
            state = self.exchanged_in_turns(values, comparator, state, axis, [n, n_whole])?;
        }
        let results = state[1..]
            .iter()
            .map(|value| match n {
                Size::Known(n) => self.part(*value, axis, 0, n, 1),
                n => self.cut(*value, axis, Size::Known(0), n),
            })
            .collect();
        unflattened(values, results)
    }

    /// Returns the least power of two that is not below a size, which is known when the model runs.
    fn next_power_of_two(&mut self, n: ValueId) -> Result<Size, String> {
        let state = [self.shape(&[1])];
        let types = self.types_of(&state);
        let (condition, ()) = self.region(&types, |l, arguments| {
            let is_below = l.compare("lt", arguments[0], n);
            Ok((vec![l.reshaped(is_below, &[])], ()))
        })?;
        let (body, ()) = self.region(&types, |l, arguments| {
            Ok((vec![l.with_number("mul", arguments[0], 2.0)], ()))
        })?;
        Ok(Size::At(self.looped(&state, condition, body)[0]))
    }

    /// Exchanges elements at all distances of the network, in a loop.
    fn exchanged_in_turns(
        &mut self,
        values: &[Bound],
        comparator: BlockId,
        state: Vec<ValueId>,
        axis: usize,
        [n, n_whole]: [Size; 2],
    ) -> Result<Vec<ValueId>, String> {
        let mut turns = vec![self.shape(&[2]), self.shape(&[1])];
        turns.extend(state);
        let types = self.types_of(&turns);
        let last = self.size_list(n_whole);
        let (condition, ()) = self.region(&types, |l, arguments| {
            let goes_on = l.compare("le", arguments[0], last);
            Ok((vec![l.reshaped(goes_on, &[])], ()))
        })?;
        let (body, ()) = self.region(&types, |l, arguments| {
            let (size, distance) = (arguments[0], arguments[1]);
            let step = [n, Size::At(size), Size::At(distance)];
            let state = l.exchanged(values, comparator, arguments[2..].to_vec(), axis, step)?;
            let half = l.with_number("div", distance, 2.0);
            let one = l.shape(&[1]);
            let is_last = l.compare("le", distance, one);
            // The next size begins at half its distance.
            let double = l.with_number("mul", size, 2.0);
            let mut next = vec![
                l.select(is_last, double, size),
                l.select(is_last, size, half),
            ];
            next.extend(state);
            Ok((next, ()))
        })?;
        Ok(self.looped(&turns, condition, body)[2..].to_vec())
    }

    /// Exchanges elements that are some distance apart where they are in the wrong order: ascending in each second run of
    /// `size`, descending in the others.
    fn exchanged(
        &mut self,
        values: &[Bound],
        comparator: BlockId,
        state: Vec<ValueId>,
        axis: usize,
        [n, size, distance]: [Size; 3],
    ) -> Result<Vec<ValueId>, String> {
        let sizes = self.sizes(state[0]);
        let pair = self.size_product(&[distance, Size::Known(2)])?;
        let runs = self.size_quotient(sizes[axis], pair)?;
        let mut apart = sizes.clone();
        apart.splice(axis..=axis, [runs, Size::Known(2), distance]);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for value in &state {
            let value = self.resized(*value, &apart);
            left.push(self.part(value, axis + 1, 0, 1, 1));
            right.push(self.part(value, axis + 1, 1, 2, 1));
        }
        let is_before =
            |l: &mut Self, one: &[ValueId], other: &[ValueId]| -> Result<ValueId, String> {
                let (a, b) = (
                    unflattened(values, one[1..].to_vec())?,
                    unflattened(values, other[1..].to_vec())?,
                );
                let pairs: Vec<Bound> = a.into_iter().zip(b).flat_map(|(a, b)| [a, b]).collect();
                match l.block(comparator, &pairs)?.pop() {
                    Some(Bound::Tensor(value)) => Ok(value),
                    _ => Err("has a comparator that gives no truth value".to_owned()),
                }
            };
        let below = is_before(self, &left, &right)?;
        let above = is_before(self, &right, &left)?;
        let same = self.unary("not", above);
        let earlier = self.compare("lt", left[0], right[0]);
        let same = self.binary("and", same, earlier);
        let first = self.binary("or", below, same);
        // What fills up is behind all else.
        let end = self.size_number(n);
        let (left_fills, right_fills) = (
            self.compare("ge", left[0], end),
            self.compare("ge", right[0], end),
        );
        let real = self.unary("not", left_fills);
        let first = self.binary("and", first, real);
        let fills = self.binary("and", left_fills, earlier);
        let right_only = self.binary("and", right_fills, real);
        let first = self.binary("or", first, right_only);
        let first = self.binary("or", first, fills);
        // The direction of each run.
        let mut line = vec![Size::Known(1); apart.len() - axis];
        line[0] = runs;
        let ascending = match (runs, pair, size) {
            (Size::Known(runs), Size::Known(pair), Size::Known(size)) => {
                let directions = (0..runs).map(|run| u8::from((run * pair / size) % 2 == 0));
                self.elements(&[runs], &Type::I1, directions.collect())
            }
            _ => {
                let run = self.numbers_below(runs, &Type::I64);
                let (pair, size) = (self.size_list(pair), self.size_list(size));
                let first = self.binary("mul", run, pair);
                let turn = self.binary("div", first, size);
                let half = self.with_number("div", turn, 2.0);
                let even = self.with_number("mul", half, 2.0);
                self.compare("eq", turn, even)
            }
        };
        let ascending = self.resized(ascending, &line);
        let keeps = self.compare("eq", first, ascending);
        let mut made = Vec::with_capacity(state.len());
        for (left, right) in left.into_iter().zip(right) {
            let (one, other) = (
                self.select(keeps, left, right),
                self.select(keeps, right, left),
            );
            let both = self.concatenated(&[one, other], axis + 1);
            made.push(self.resized(both, &sizes));
        }
        Ok(made)
    }
}
