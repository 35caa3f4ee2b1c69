//! Scatter in its general form, by rows as `gather` does.
//!
//! A body of one operation is a reduction that `scatter_nd` has. Any other is applied in a loop, an update at a time.

use tfrt_ir::{Attribute, BlockId, OpId, Type, ValueId};

use super::build::{is_bool, is_float, is_small_float, is_unsigned, width};
use super::control::{flattened, unflattened};
use super::gather::Rows;
use super::reduce::Kind;
use super::sizes::{Size, dims_of};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[("stablehlo.scatter", scatter)];

fn scatter(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let operands = l.operands(op)?;
    let n = operands.len().saturating_sub(1) / 2;
    if n == 0 || operands.len() != 2 * n + 1 {
        return Err(format!(
            "expected tensors, places and as many updates, found {} operands",
            operands.len()
        ));
    }
    let indices = l.operand(op, n)?;
    let body = l.body(op, 0)?;
    let both = [&operands[..n], &operands[n + 1..]].concat();
    let both = l.promoted(body, both)?;
    let (values, updates) = both.split_at(n);
    let first = |values: &[Bound]| flattened(values).first().copied();
    let (value, update) = first(values)
        .zip(first(updates))
        .ok_or("expected tensors")?;
    let (dims, update_dims) = (l.dims(value), l.dims(update));
    let names = [
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    ];
    let ranks = [dims.len(), l.rank(indices), update_dims.len()];
    let places = l.places(op, "scatter_dimension_numbers", names, ranks)?;
    let mut sizes = vec![Size::Known(1); dims.len()];
    for (axis, offset) in places.window(dims.len()).into_iter().zip(&places.offsets) {
        sizes[axis] = l.size_along(update, *offset);
    }
    let is_outside = |(size, dim): (&Size, &i64)| *dim >= 0 && size.dim() > *dim;
    if sizes.iter().zip(&dims).any(is_outside) {
        let sizes = dims_of(&sizes);
        return Err(format!(
            "puts slices of extents {sizes:?} into a tensor of extents {dims:?}"
        ));
    }
    if update_dims.contains(&0) || dims.contains(&0) {
        return Ok(values.to_vec());
    }
    let index_dims = l.dims(indices);
    let is_known = ![&dims, &index_dims, &update_dims]
        .iter()
        .any(|dims| dims.contains(&-1));
    let rows = if is_known {
        let sizes = dims_of(&sizes);
        l.rows(&dims, indices, &places, &sizes, &update_dims, false)?
    } else {
        l.rows_when_run(value, indices, &places, &sizes, update_dims.len(), false)?
    };
    l.scattered(body, values, updates, &rows)
}

impl Lowering<'_> {
    /// Puts rows of updates into tensors, by a body.
    pub(super) fn scattered(
        &mut self,
        body: BlockId,
        values: &[Bound],
        updates: &[Bound],
        rows: &Rows,
    ) -> Lowered {
        let kind = self.kind(body);
        let simple = |l: &Self, value: &Bound| match (value, kind) {
            (_, None) => false,
            (Bound::Tensor(_), Some(Kind::Second))
            | (Bound::Complex(..), Some(Kind::Sum | Kind::Second)) => true,
            (Bound::Tensor(x), Some(Kind::And | Kind::Or)) => is_bool(&l.element(*x)),
            (Bound::Tensor(_), Some(_)) => true,
            _ => false,
        };
        let (Some(kind), [value], [update]) = (kind, values, updates) else {
            return self.scattered_in_turn(body, values, updates, rows);
        };
        if !simple(self, value) {
            return self.scattered_in_turn(body, values, updates, rows);
        }
        Ok(vec![match (value, update) {
            (Bound::Tensor(x), Bound::Tensor(y)) => {
                Bound::Tensor(self.scattered_by(kind, *x, *y, rows)?)
            }
            (Bound::Complex(a, b), Bound::Complex(c, d)) => Bound::Complex(
                self.scattered_by(kind, *a, *c, rows)?,
                self.scattered_by(kind, *b, *d, rows)?,
            ),
            _ => return Err("puts a tensor into one of another type".to_owned()),
        }])
    }

    /// Puts rows into a tensor by a reduction that `scatter_nd` has.
    fn scattered_by(
        &mut self,
        kind: Kind,
        x: ValueId,
        update: ValueId,
        rows: &Rows,
    ) -> Result<ValueId, String> {
        let (sizes, element) = (self.sizes(x), self.element(x));
        // Truth values are numbers meanwhile; small integers are larger ones.
        let by = match &element {
            _ if kind == Kind::Second => element.clone(),
            element if is_bool(element) => Type::I32,
            element if is_small_float(element) => Type::F32,
            element if is_float(element) || width(element) >= 32 => element.clone(),
            element if is_unsigned(element) => Type::UI32,
            _ => Type::I32,
        };
        let reduction = match kind {
            Kind::Second => "none",
            Kind::Sum if is_bool(&element) => "max",
            Kind::Product if is_bool(&element) => "min",
            Kind::Sum => "add",
            Kind::Product => "mul",
            Kind::Max | Kind::Or => "max",
            Kind::Min | Kind::And => "min",
        };
        let (wide, update) = (self.cast(x, &by), self.cast(update, &by));
        let table = self.as_rows(wide, rows.n_leading)?;
        let (mut table, mut at) = (table, rows.at);
        let n_rows = self.size_along(table, 0);
        // What is put outside goes to a row of its own, which is dropped.
        if let Some(within) = rows.within {
            let outside = self.size_number(n_rows);
            at = self.select(within, at, outside);
            let mut extents = self.sizes(table);
            extents[0] = Size::Known(1);
            let zero = self.number(&by, 0.0);
            let spare = self.widened(zero, &extents);
            table = self.concatenated(&[table, spare], 0);
        }
        let mut index_sizes = self.sizes(at);
        index_sizes.push(Size::Known(1));
        let at = self.resized(at, &index_sizes);
        let table_dims = self.dims(table);
        let attributes = [("reduction", Attribute::string(reduction))];
        let made = self.add(
            "scatter_nd",
            &[table, at, update],
            &attributes,
            &table_dims,
            &by,
        );
        let made = match (n_rows, rows.within) {
            (_, None) => made,
            (Size::Known(n_rows), _) => self.part(made, 0, 0, n_rows, 1),
            (Size::At(_), _) => self.part(made, 0, 0, -1, 1),
        };
        let made = self.resized(made, &sizes);
        Ok(self.cast(made, &element))
    }

    /// Puts rows into tensors one after the other.
    fn scattered_in_turn(
        &mut self,
        body: BlockId,
        values: &[Bound],
        updates: &[Bound],
        rows: &Rows,
    ) -> Lowered {
        let n = self.sizes(rows.at);
        let n = self.size_product(&n)?;
        let n_leading = rows.n_leading;
        let mut shapes = Vec::new();
        for value in flattened(values) {
            shapes.push(self.sizes(value));
        }
        let tables = self.all(values, |l, x| l.as_rows(x, n_leading))?;
        let updates = self.all(updates, |l, x| {
            let sizes = l.sizes(x);
            let n_whole = l.rank(rows.at);
            let extents = [&[n][..], &sizes[n_whole..]].concat();
            Ok(l.resized(x, &extents))
        })?;
        let at = self.resized(rows.at, &[n]);
        let within = rows.within.map(|within| self.resized(within, &[n]));
        let turn = self.integers_of(&[], &[0]);
        let last = self.size_number(n);
        let mut state = vec![turn];
        state.extend(flattened(&tables));
        let types = self.types_of(&state);
        let (condition, ()) = self.region(&types, |l, arguments| {
            Ok((vec![l.compare("lt", arguments[0], last)], ()))
        })?;
        let (turns, ()) = self.region(&types, |l, arguments| {
            let (turn, tables) = (arguments[0], unflattened(&tables, arguments[1..].to_vec())?);
            let one = |l: &mut Self, x: ValueId| {
                let turn = l.reshaped(turn, &[1]);
                l.taken_rows(x, turn)
            };
            let place = one(l, at);
            let old = l.all(&tables, |l, x| Ok(l.taken_rows(x, place)))?;
            let new = l.all(&updates, |l, x| Ok(one(l, x)))?;
            let arguments: Vec<Bound> = old.iter().cloned().chain(new).collect();
            let made = flattened(&l.applied(body, &arguments)?);
            let is_within = within.map(|within| one(l, within));
            let step = l.integers_of(&[], &[1]);
            let mut next = vec![l.binary("add", turn, step)];
            let index = l.reshaped(place, &[1, 1]);
            for ((table, old), made) in flattened(&tables)
                .into_iter()
                .zip(flattened(&old))
                .zip(made)
            {
                let made = match is_within {
                    Some(is_within) => {
                        let mut extents = vec![1; l.rank(made)];
                        extents[0] = 1;
                        let is_within = l.reshaped(is_within, &extents);
                        l.select(is_within, made, old)
                    }
                    None => made,
                };
                let (dims, element) = (l.dims(table), l.element(table));
                let attributes = [("reduction", Attribute::string("none"))];
                next.push(l.add(
                    "scatter_nd",
                    &[table, index, made],
                    &attributes,
                    &dims,
                    &element,
                ));
            }
            Ok((next, ()))
        })?;
        let results = self.looped(&state, condition, turns);
        let results: Vec<ValueId> = results[1..]
            .iter()
            .zip(&shapes)
            .map(|(value, sizes)| self.resized(*value, sizes))
            .collect();
        unflattened(values, results)
    }
}
