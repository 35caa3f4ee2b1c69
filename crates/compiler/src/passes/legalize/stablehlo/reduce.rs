//! Reductions by any body.
//!
//! A body of one operation is a kind that the row `reduce` has. Any other body is applied to halves of the elements at once,
//! and again to the halves of what it gives: the order of a reduction is free, but not that of its operands. Along a
//! dimension of unknown extent that is a loop, which begins with the first value.

use tfrt_ir::{BlockId, OpId, Type, ValueId};

use super::attributes::check_axes;
use super::build::{int, is_bool, is_float, is_small_float, list, width};
use super::control::{flattened, unflattened};
use super::sizes::{Size, TO_END};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] =
    &[("stablehlo.map", map), ("stablehlo.reduce", reduce)];

/// The function that a body of two operands calculates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sum,
    Product,
    Max,
    Min,
    And,
    Or,
    /// The second operand, whatever the first one is.
    Second,
}

impl Kind {
    /// The name of the kind in `reduce`; none if that has no such kind.
    fn reduction(self) -> Option<&'static str> {
        match self {
            Kind::Sum => Some("sum"),
            Kind::Product => Some("prod"),
            Kind::Max => Some("max"),
            Kind::Min => Some("min"),
            Kind::And | Kind::Or | Kind::Second => None,
        }
    }

    /// The rows of two operands: of numbers, of truth values.
    pub(super) fn rows(self) -> [&'static str; 2] {
        match self {
            Kind::Sum => ["add", "or"],
            Kind::Product => ["mul", "and"],
            Kind::Max => ["max", "or"],
            Kind::Min => ["min", "and"],
            Kind::And => ["bit_and", "and"],
            Kind::Or => ["bit_or", "or"],
            Kind::Second => ["identity", "identity"],
        }
    }

    /// Whether a number changes nothing as an operand.
    pub(super) fn is_neutral(self, number: f64, element: &Type) -> bool {
        let integer_ends = || {
            let bits = i32::try_from(width(element)).unwrap_or(0);
            match super::build::is_unsigned(element) {
                true => (0.0, f64::powi(2.0, bits) - 1.0),
                false => (-f64::powi(2.0, bits - 1), f64::powi(2.0, bits - 1) - 1.0),
            }
        };
        let (least, most) = match is_float(element) {
            true => (f64::NEG_INFINITY, f64::INFINITY),
            false => integer_ends(),
        };
        #[expect(clippy::float_cmp, reason = "the numbers are exact")]
        match self {
            Kind::Sum | Kind::Or => number == 0.0,
            Kind::Product => number == 1.0,
            Kind::Max => number == least,
            Kind::Min => number == most,
            Kind::And => number == if is_bool(element) { 1.0 } else { -1.0 },
            Kind::Second => false,
        }
    }
}

impl Lowering<'_> {
    /// Returns what a body of two arguments calculates, if it is one operation on them.
    pub(super) fn kind(&self, block: BlockId) -> Option<Kind> {
        let block = self.module.block(block);
        let [first, second] = block.arguments() else {
            return None;
        };
        let (operations, last) = match block.operations() {
            [last] => (None, last),
            [only, last] => (Some(*only), last),
            _ => return None,
        };
        let returned = self.module.op(*last).operands();
        let Some(only) = operations else {
            return (returned == [*second]).then_some(Kind::Second);
        };
        let data = self.module.op(only);
        let operands = data.operands();
        let takes = operands == [*first, *second] || operands == [*second, *first];
        if returned != data.results() || !takes {
            return None;
        }
        Some(match data.name().as_str() {
            "stablehlo.add" => Kind::Sum,
            "stablehlo.multiply" => Kind::Product,
            "stablehlo.maximum" => Kind::Max,
            "stablehlo.minimum" => Kind::Min,
            "stablehlo.and" => Kind::And,
            "stablehlo.or" => Kind::Or,
            _ => return None,
        })
    }

    /// Applies a body of numbers to tensors of them.
    pub(super) fn applied(&mut self, block: BlockId, arguments: &[Bound]) -> Lowered {
        let element = |l: &Self, value: &Bound| match value {
            Bound::Tensor(value) => Some(l.element(*value)),
            _ => None,
        };
        let tensors = flattened(arguments);
        let dims: Vec<Vec<i64>> = tensors.iter().map(|value| self.dims(*value)).collect();
        let broadcast = super::build::broadcast(&dims);
        let like = dims.iter().position(|own| *own == broadcast);
        let like = tensors[like.ok_or("has a body of tensors of different extents")?];
        let results = self.block(block, arguments)?;
        // What a body gives whatever its operands are is one number.
        let mut wide = Vec::with_capacity(results.len());
        for (result, argument) in results
            .into_iter()
            .zip(arguments.iter().map(Some).chain(std::iter::repeat(None)))
        {
            let own = argument.and_then(|argument| element(self, argument));
            wide.push(match result {
                Bound::Tensor(value) => {
                    let found = self.element(value);
                    if own.is_some_and(|own| own != found)
                        && argument.is_some()
                        && arguments.len() > 2
                    {
                        return Err(format!(
                            "has a body that gives {found} in place of its operand"
                        ));
                    }
                    Bound::Tensor(self.made_like(value, like))
                }
                Bound::Complex(real, imaginary) => {
                    Bound::Complex(self.made_like(real, like), self.made_like(imaginary, like))
                }
                _ => return Err("has a body that gives no tensor".to_owned()),
            });
        }
        Ok(wide)
    }

    /// Broadcasts a value to the extents of another one, if it does not have them.
    fn made_like(&mut self, value: ValueId, like: ValueId) -> ValueId {
        match self.dims(value) == self.dims(like) {
            true => value,
            false => self.widened_like(value, like),
        }
    }

    /// Applies a function to each tensor of values.
    pub(super) fn all(
        &mut self,
        values: &[Bound],
        function: impl Fn(&mut Self, ValueId) -> Result<ValueId, String>,
    ) -> Lowered {
        let mut made = Vec::with_capacity(values.len());
        for value in values {
            made.extend(self.each(value.clone(), &function)?);
        }
        Ok(made)
    }

    /// Reduces values along one dimension by a body, which is left with 1 element.
    pub(super) fn halved(&mut self, block: BlockId, values: Vec<Bound>, axis: usize) -> Lowered {
        let mut values = values;
        loop {
            let tensors = flattened(&values);
            let first = tensors.first().ok_or("reduces nothing")?;
            let n = self.dims(*first)[axis];
            if n <= 1 {
                return Ok(values);
            }
            // Neighbours are put together, so that operands stay in their order.
            let half = n / 2;
            let left = self.all(&values, |l, x| Ok(l.part(x, axis, 0, 2 * half, 2)))?;
            let right = self.all(&values, |l, x| Ok(l.part(x, axis, 1, 2 * half, 2)))?;
            let arguments: Vec<Bound> = left.into_iter().chain(right).collect();
            let mut made = self.applied(block, &arguments)?;
            if n % 2 == 1 {
                let rest = self.all(&values, |l, x| Ok(l.part(x, axis, n - 1, n, 1)))?;
                for (made, rest) in made.iter_mut().zip(rest) {
                    *made = match (&made, rest) {
                        (Bound::Tensor(made), Bound::Tensor(rest)) => {
                            Bound::Tensor(self.concatenated(&[*made, rest], axis))
                        }
                        (Bound::Complex(a, b), Bound::Complex(c, d)) => Bound::Complex(
                            self.concatenated(&[*a, c], axis),
                            self.concatenated(&[*b, d], axis),
                        ),
                        _ => return Err("has a body that gives values of other types".to_owned()),
                    };
                }
            }
            values = made;
        }
    }

    /// Reduces values along a dimension of unknown extent by a body, beginning with the first values; it is left with 1
    /// element.
    fn halved_in_turns(
        &mut self,
        block: BlockId,
        values: Vec<Bound>,
        inits: &[Bound],
        axis: usize,
    ) -> Lowered {
        // The first values stand in front, so that there is an element.
        let (tensors, first) = (flattened(&values), flattened(inits));
        if tensors.len() != first.len() {
            return Err("begins with values of other types".to_owned());
        }
        let mut state = Vec::with_capacity(tensors.len());
        for (x, init) in tensors.into_iter().zip(first) {
            let mut sizes = self.sizes(x);
            sizes[axis] = Size::Known(1);
            let init = self.widened(init, &sizes);
            state.push(self.concatenated(&[init, x], axis));
        }
        let types = self.types_of(&state);
        let (condition, ()) = self.region(&types, |l, arguments| {
            let n = l.size_along(arguments[0], axis);
            let (n, one) = (l.size_number(n), l.integers_of(&[], &[1]));
            Ok((vec![l.compare("gt", n, one)], ()))
        })?;
        let (body, ()) = self.region(&types, |l, arguments| {
            let n = l.size_along(arguments[0], axis);
            let half = l.size_quotient(n, Size::Known(2))?;
            let even = l.size_product(&[half, Size::Known(2)])?;
            let arguments = unflattened(&values, arguments)?;
            let start = Size::Known(0);
            let pairs = l.all(&arguments, |l, x| Ok(l.cut(x, axis, start, even)))?;
            let left = l.all(&pairs, |l, x| Ok(l.part(x, axis, 0, TO_END, 2)))?;
            let right = l.all(&pairs, |l, x| Ok(l.part(x, axis, 1, TO_END, 2)))?;
            let rest = l.all(&arguments, |l, x| {
                Ok(l.cut(x, axis, even, Size::Known(TO_END)))
            })?;
            let both: Vec<Bound> = left.into_iter().chain(right).collect();
            let made = flattened(&l.applied(block, &both)?);
            let rest = flattened(&rest);
            if made.len() != rest.len() {
                return Err("has a body that gives values of other types".to_owned());
            }
            let next = made.into_iter().zip(rest);
            let next = next.map(|(made, rest)| l.concatenated(&[made, rest], axis));
            Ok((next.collect(), ()))
        })?;
        let results = self.looped(&state, condition, body);
        let results = results
            .into_iter()
            .map(|x| self.part(x, axis, 0, 1, 1))
            .collect();
        unflattened(&values, results)
    }

    /// Reduces a tensor along dimensions by a kind, without the first value.
    pub(super) fn reduced(&mut self, kind: Kind, x: ValueId, axes: &[usize]) -> Option<ValueId> {
        let element = self.element(x);
        let dims = self.dims(x);
        if axes.is_empty() {
            return Some(x);
        }
        let rest: Vec<i64> = (0..dims.len())
            .filter(|axis| !axes.contains(axis))
            .map(|axis| dims[axis])
            .collect();
        let axes: Vec<i64> = axes
            .iter()
            .filter_map(|axis| i64::try_from(*axis).ok())
            .collect();
        if is_bool(&element) {
            let name = match kind.rows()[1] {
                "or" => "max",
                _ => "min",
            };
            let numbers = self.cast(x, &Type::I32);
            let attributes = [
                ("kind", tfrt_ir::Attribute::string(name)),
                ("axes", list(&axes)),
                ("keep", int(0)),
            ];
            let value = self.add("reduce", &[numbers], &attributes, &rest, &Type::I32);
            return Some(self.cast(value, &Type::I1));
        }
        let name = kind.reduction()?;
        // Sums of small integers are those of large ones, cut off; those of small floats are rounded once.
        let by = match &element {
            small if is_small_float(small) => Type::F32,
            Type::Float(_) => element.clone(),
            integer if width(integer) >= 32 => integer.clone(),
            integer if super::build::is_unsigned(integer) => Type::UI32,
            _ => Type::I32,
        };
        let wide = self.cast(x, &by);
        let attributes = [
            ("kind", tfrt_ir::Attribute::string(name)),
            ("axes", list(&axes)),
            ("keep", int(0)),
        ];
        let value = self.add("reduce", &[wide], &attributes, &rest, &by);
        Some(self.cast(value, &element))
    }

    /// Puts together the first value of a reduction and what it is of the elements.
    pub(super) fn begun(&mut self, kind: Kind, init: ValueId, value: ValueId) -> ValueId {
        let element = self.element(value);
        let number = self.known_number(init);
        if number.is_some_and(|number| kind.is_neutral(number, &element)) {
            return value;
        }
        let [row, truth] = kind.rows();
        self.binary(if is_bool(&element) { truth } else { row }, init, value)
    }
}

fn map(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let operands = l.operands(op)?;
    let body = l.body(op, 0)?;
    l.applied(body, &operands)
}

fn reduce(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let operands = l.operands(op)?;
    let n = operands.len() / 2;
    if operands.is_empty() || operands.len() % 2 == 1 {
        return Err(format!(
            "expected operands and as many first values, found {}",
            operands.len()
        ));
    }
    let body = l.body(op, 0)?;
    let operands = l.promoted(body, operands)?;
    let (values, inits) = operands.split_at(n);
    let tensors = flattened(values);
    let dims = l.dims(tensors[0]);
    if tensors.iter().any(|value| l.rank(*value) != dims.len()) {
        return Err("reduces tensors of different ranks".to_owned());
    }
    let axes = check_axes(&l.ints(op, "dimensions")?, dims.len())?;
    if let ([Bound::Tensor(x)], [Bound::Tensor(init)], Some(kind)) = (values, inits, l.kind(body))
        && kind != Kind::Second
        && !axes.iter().any(|axis| dims[*axis] == 0)
        && let Some(value) = l.reduced(kind, *x, &axes)
    {
        return Ok(vec![Bound::Tensor(l.begun(kind, *init, value))]);
    }
    let sizes = l.sizes(tensors[0]);
    let rest: Vec<Size> = (0..dims.len())
        .filter(|axis| !axes.contains(axis))
        .map(|axis| sizes[axis])
        .collect();
    if axes.iter().any(|axis| dims[*axis] == 0) {
        return l.all(inits, |l, init| Ok(l.widened(init, &rest)));
    }
    let mut values = values.to_vec();
    for axis in &axes {
        values = match dims[*axis] {
            -1 => l.halved_in_turns(body, values, inits, *axis)?,
            _ => l.halved(body, values, *axis)?,
        };
    }
    let values = l.all(&values, |l, x| Ok(l.resized(x, &rest)))?;
    let inits = l.all(inits, |l, init| Ok(l.widened(init, &rest)))?;
    let arguments: Vec<Bound> = inits.into_iter().chain(values).collect();
    l.applied(body, &arguments)
}
