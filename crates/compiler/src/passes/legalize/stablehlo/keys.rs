//! The keys that a comparator of a sort compares.
//!
//! JAX sorts by comparators such as `key(a) < key(b)`, whose two sides are the same operations on one element each, and by
//! several keys: `key(a) < key(b) or (key(a) == key(b) and ..)`. Each key is calculated for all elements at once.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{BlockId, OpId, ValueId};

use super::{Bound, Lowering};

/// The most operations of a comparator that is looked at.
const MOST_OPERATIONS: usize = 256;

/// A key of a sort.
pub(super) struct Key {
    /// The key of each element.
    pub(super) value: ValueId,
    pub(super) descending: bool,
    /// Whether -0 is below 0, and -NaN the least.
    pub(super) is_total: bool,
}

/// A comparison of a comparator's text: of a value of the first element.
struct Comparison {
    first: ValueId,
    descending: bool,
    is_total: bool,
}

/// The text of a comparator, and which of its values are the same of a first and a second element.
struct Sides {
    arguments: Vec<ValueId>,
    operations: HashSet<OpId>,
    /// Pairs that were compared.
    same: HashMap<(ValueId, ValueId), bool>,
}

impl Lowering<'_> {
    /// Returns the keys that a comparator compares, the first one first; nothing if it does anything else.
    pub(super) fn keys(
        &mut self,
        comparator: BlockId,
        values: &[Bound],
    ) -> Result<Option<Vec<Key>>, String> {
        let data = self.module.block(comparator);
        let operations = data.operations().to_vec();
        let arguments = data.arguments().to_vec();
        let Some((last, operations)) = operations.split_last() else {
            return Ok(None);
        };
        if operations.len() > MOST_OPERATIONS || arguments.len() != 2 * values.len() {
            return Ok(None);
        }
        let mut sides = Sides {
            arguments,
            operations: operations.iter().copied().collect(),
            same: HashMap::new(),
        };
        let Some(comparisons) = self.comparisons(*last, &mut sides) else {
            return Ok(None);
        };
        // Operations of first elements alone.
        let mut needed = HashSet::new();
        let mut rest: Vec<ValueId> = comparisons.iter().map(|one| one.first).collect();
        while let Some(value) = rest.pop() {
            if let Some(op) = self.module.defining_op(value)
                && sides.operations.contains(&op)
                && needed.insert(op)
            {
                rest.extend(self.module.op(op).operands());
            }
        }
        for (index, value) in values.iter().enumerate() {
            self.values
                .insert(sides.arguments[2 * index], value.clone());
        }
        // Bodies of numbers are calculated for many.
        self.depth += 1;
        for op in operations.iter().filter(|op| needed.contains(op)) {
            self.operation(*op)?;
        }
        self.depth -= 1;
        let mut keys = Vec::with_capacity(comparisons.len());
        for one in comparisons {
            let Bound::Tensor(value) = self.value(one.first)? else {
                return Ok(None);
            };
            let like = super::control::flattened(values)[0];
            let value = match self.dims(value) == self.dims(like) {
                true => value,
                false => self.widened_like(value, like),
            };
            keys.push(Key {
                value,
                descending: one.descending,
                is_total: one.is_total,
            });
        }
        Ok(Some(keys))
    }

    /// Returns the comparisons of a comparator whose last operation this is.
    fn comparisons(&self, last: OpId, sides: &mut Sides) -> Option<Vec<Comparison>> {
        let [returned] = self.module.op(last).operands() else {
            return None;
        };
        let mut comparisons = Vec::new();
        let mut returned = *returned;
        loop {
            let op = self.module.defining_op(returned)?;
            let operands = self.module.op(op).operands();
            match (self.module.op(op).name().as_str(), operands) {
                ("stablehlo.compare", [..]) => {
                    comparisons.push(self.comparison(op, sides)?);
                    return Some(comparisons);
                }
                ("stablehlo.or", [one, other]) => {
                    let is_named = |value: &ValueId, name: &str| {
                        let op = self.module.defining_op(*value);
                        op.is_some_and(|op| *self.module.op(op).name() == name)
                    };
                    let (below, and) = match is_named(one, "stablehlo.compare") {
                        true => (one, other),
                        false => (other, one),
                    };
                    let below = self.module.defining_op(*below)?;
                    let comparison = self.comparison(below, sides)?;
                    let and = self.module.defining_op(*and)?;
                    let [one, other] = self.module.op(and).operands() else {
                        return None;
                    };
                    if *self.module.op(and).name() != "stablehlo.and" {
                        return None;
                    }
                    let is_equality = |value: &ValueId| {
                        let op = self.module.defining_op(*value)?;
                        let found = self.module.op(op).operands();
                        let own = self.module.op(below).operands();
                        let agrees = found == own || found.iter().rev().eq(own.iter());
                        let is_compare = *self.module.op(op).name() == "stablehlo.compare";
                        let is_it = is_compare
                            && self.word(op, "comparison_direction") == "EQ"
                            && self.word(op, "compare_type") == self.word(below, "compare_type");
                        Some(agrees && is_it)
                    };
                    let next = match (is_equality(one), is_equality(other)) {
                        (Some(true), _) => *other,
                        (_, Some(true)) => *one,
                        _ => return None,
                    };
                    comparisons.push(comparison);
                    if comparisons.len() > MOST_OPERATIONS {
                        return None;
                    }
                    returned = next;
                }
                _ => return None,
            }
        }
    }

    /// Returns what an operation compares, if its operands are the same of a first and a second element.
    fn comparison(&self, op: OpId, sides: &mut Sides) -> Option<Comparison> {
        if *self.module.op(op).name() != "stablehlo.compare" {
            return None;
        }
        let [left, right] = self.module.op(op).operands() else {
            return None;
        };
        let is_less = match self.word(op, "comparison_direction") {
            "LT" => true,
            "GT" => false,
            // Equal elements stay in their order: a comparator that takes them as smaller is none.
            _ => return None,
        };
        let is_total = self.word(op, "compare_type") == "TOTALORDER";
        let of = |first: ValueId, descending: bool| Comparison {
            first,
            descending,
            is_total,
        };
        if self.mirrored(*left, *right, sides) {
            return Some(of(*left, !is_less));
        }
        self.mirrored(*right, *left, sides)
            .then(|| of(*right, is_less))
    }

    /// Returns whether one value is of first elements what the other is of second ones.
    fn mirrored(&self, first: ValueId, second: ValueId, sides: &mut Sides) -> bool {
        if let Some(known) = sides.same.get(&(first, second)) {
            return *known;
        }
        let place = |value| sides.arguments.iter().position(|own| *own == value);
        let found = match (place(first), place(second)) {
            (Some(first), Some(second)) => first % 2 == 0 && second == first + 1,
            (None, None) => self.same_operation(first, second, sides),
            _ => false,
        };
        sides.same.insert((first, second), found);
        found
    }

    fn same_operation(&self, first: ValueId, second: ValueId, sides: &mut Sides) -> bool {
        let ops = [first, second].map(|value| self.module.defining_op(value));
        let is_inside = |op: Option<OpId>| op.filter(|op| sides.operations.contains(op));
        let [Some(one), Some(other)] = ops.map(is_inside) else {
            return first == second;
        };
        let (one_data, other_data) = (self.module.op(one), self.module.op(other));
        let place =
            |data: &tfrt_ir::Operation, value| data.results().iter().position(|own| *own == value);
        let is_same = one_data.name() == other_data.name()
            && one_data.regions().is_empty()
            && other_data.regions().is_empty()
            && one_data.attributes() == other_data.attributes()
            && place(one_data, first) == place(other_data, second)
            && self.module.value_type(first) == self.module.value_type(second)
            && one_data.operands().len() == other_data.operands().len();
        let pairs = one_data.operands().iter().zip(other_data.operands());
        is_same
            && pairs
                .into_iter()
                .all(|(one, other)| self.mirrored(*one, *other, sides))
    }
}
