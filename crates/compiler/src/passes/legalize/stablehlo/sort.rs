//! Sorts by any comparator.
//!
//! A comparator of one pair of arguments is that of the row `sort`, or of its order, `top_k`. Any other is applied in a network
//! that exchanges elements which are a power of two apart, to all pairs at once; the places of elements decide between equal
//! ones, so that these stay in their order.

use tfrt_ir::{BlockId, OpId, Type, ValueId};

use super::attributes::check_axes;
use super::build::{int, is_float};
use super::control::{flattened, unflattened};
use super::shapes::known_dims;
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[("stablehlo.sort", sort)];

/// The order of a comparator of one pair.
struct Order {
    /// The operand that is compared.
    key: usize,
    descending: bool,
    /// Whether -0 is below 0, and -NaN the least.
    is_total: bool,
}

fn sort(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let values = l.operands(op)?;
    let comparator = l.body(op, 0)?;
    let tensors = flattened(&values);
    let dims = l.dims(*tensors.first().ok_or("expected a tensor")?);
    known_dims(&dims)?;
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
    if dims[axis] < 2 || dims.contains(&0) {
        return Ok(values);
    }
    match l.order(comparator, values.len()) {
        Some(order) => l.sorted(&values, &order, axis),
        None => l.sorted_by(&values, comparator, axis),
    }
}

impl Lowering<'_> {
    /// Returns the order of a comparator that compares two arguments with one another.
    fn order(&self, block: BlockId, n: usize) -> Option<Order> {
        let data = self.module.block(block);
        let arguments = data.arguments();
        let (last, before) = data.operations().split_last()?;
        let returned = *self.module.op(*last).operands().first()?;
        let [compare] = before else {
            return None;
        };
        let compare_data = self.module.op(*compare);
        if compare_data.name().as_str() != "stablehlo.compare"
            || compare_data.results() != [returned]
        {
            return None;
        }
        let place = |value: ValueId| arguments.iter().position(|own| *own == value);
        let [left, right] = compare_data.operands() else {
            return None;
        };
        let (left, right) = (place(*left)?, place(*right)?);
        let key = left / 2;
        if left == right || right / 2 != key || key >= n {
            return None;
        }
        // Equal elements stay in their order: a comparator that takes them as smaller is none.
        let descending = match self.word(*compare, "comparison_direction") {
            "LT" => left > right,
            "GT" => left < right,
            _ => return None,
        };
        Some(Order {
            key,
            descending,
            is_total: self.word(*compare, "compare_type") == "TOTALORDER",
        })
    }

    /// Sorts by one key.
    fn sorted(&mut self, values: &[Bound], order: &Order, axis: usize) -> Lowered {
        let Bound::Tensor(key) = values[order.key] else {
            return Err("compares complex numbers, which have no order".to_owned());
        };
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
        let k = self.shape(&[dims[axis]]);
        let axis_attribute = ("axis", int(i64::try_from(axis).unwrap_or(0)));
        let attributes = [
            axis_attribute.clone(),
            ("largest", int(i64::from(order.descending))),
        ];
        let types = vec![
            Type::tensor(dims.clone(), self.element(key)),
            Type::tensor(dims.clone(), Type::I64),
        ];
        let places = self.add_all("top_k", &[key, k], &attributes, types)[1];
        self.all(values, |l, x| {
            let element = l.element(x);
            Ok(l.add(
                "gather_elements",
                &[x, places],
                std::slice::from_ref(&axis_attribute),
                &dims,
                &element,
            ))
        })
    }

    /// Sorts by a network of comparisons.
    fn sorted_by(&mut self, values: &[Bound], comparator: BlockId, axis: usize) -> Lowered {
        let tensors = flattened(values);
        let dims = self.dims(tensors[0]);
        let n = dims[axis];
        let n_whole = u64::try_from(n)
            .unwrap_or(1)
            .next_power_of_two()
            .cast_signed();
        // Each element with its place. Elements that fill up the last power have the last ones.
        let counts = self.count(n_whole, &Type::I64);
        let mut line = vec![1; dims.len() - axis];
        line[0] = n_whole;
        let counts = self.reshaped(counts, &line);
        let mut wide = dims.clone();
        wide[axis] = n_whole;
        let counts = self.broadcast_to(counts, &wide);
        let mut state = vec![counts];
        for value in tensors {
            let zero = self.number(&self.element(value), 0.0);
            let mut high = vec![0; dims.len()];
            high[axis] = n_whole - n;
            let none = vec![0; dims.len()];
            state.push(self.padded(value, zero, &none, &high, &none)?);
        }
        let mut size = 2;
        while size <= n_whole {
            let mut distance = size / 2;
            while distance > 0 {
                state = self.exchanged(values, comparator, state, axis, [n, size, distance])?;
                distance /= 2;
            }
            size *= 2;
        }
        let results = state[1..]
            .iter()
            .map(|value| self.part(*value, axis, 0, n, 1))
            .collect();
        unflattened(values, results)
    }

    /// Exchanges elements that are some distance apart where they are in the wrong order: ascending in each second run of
    /// `size`, descending in the others.
    fn exchanged(
        &mut self,
        values: &[Bound],
        comparator: BlockId,
        state: Vec<ValueId>,
        axis: usize,
        [n, size, distance]: [i64; 3],
    ) -> Result<Vec<ValueId>, String> {
        let dims = self.dims(state[0]);
        let mut apart = dims.clone();
        apart.splice(axis..=axis, [dims[axis] / (2 * distance), 2, distance]);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for value in &state {
            let value = self.reshaped(*value, &apart);
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
        let end = self.integers_of(&[], &[n]);
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
        let runs = dims[axis] / (2 * distance);
        let directions: Vec<u8> = (0..runs)
            .map(|run| u8::from((run * 2 * distance / size) % 2 == 0))
            .collect();
        let mut line = vec![1; apart.len() - axis];
        line[0] = runs;
        let ascending = self.elements(&[runs], &Type::I1, directions);
        let ascending = self.reshaped(ascending, &line);
        let keeps = self.compare("eq", first, ascending);
        let mut made = Vec::with_capacity(state.len());
        for (left, right) in left.into_iter().zip(right) {
            let (one, other) = (
                self.select(keeps, left, right),
                self.select(keeps, right, left),
            );
            let both = self.concatenated(&[one, other], axis + 1);
            made.push(self.reshaped(both, &dims));
        }
        Ok(made)
    }
}
