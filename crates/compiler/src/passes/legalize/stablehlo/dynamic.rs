//! Operations whose extents are operands.
//!
//! Most extents are numbers after all: of functions that are called with tensors of known extents. Where they are not, rows
//! take extents as operands, too.

use tfrt_ir::{OpId, Type, ValueId};

use super::attributes::check_axes;
use super::build::int;
use super::sizes::{Size, known_sizes};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.custom_call", custom_call),
    ("stablehlo.dynamic_broadcast_in_dim", broadcast_in_dim),
    ("stablehlo.dynamic_iota", iota),
    ("stablehlo.dynamic_reshape", reshape),
    ("stablehlo.get_dimension_size", dimension_size),
    ("stablehlo.real_dynamic_slice", slice),
    ("stablehlo.set_dimension_size", set_dimension_size),
];

/// Calls that say something of several devices, or of layouts, which is nothing on one; and a check that the extents of
/// arguments are as they were declared.
pub(super) const CALLS: &[(&str, LowerFn)] = &[
    ("LayoutConstraint", |l, op| l.operands(op)),
    ("SPMDFullToShardShape", |l, op| l.operands(op)),
    ("SPMDShardToFullShape", |l, op| l.operands(op)),
    ("Sharding", |l, op| l.operands(op)),
    ("annotate_device_placement", |l, op| l.operands(op)),
    ("mhlo.sharding", |l, op| l.operands(op)),
    ("shape_assertion", |l, op| {
        l.operands(op)?;
        Ok(Vec::new())
    }),
];

impl Lowering<'_> {
    /// Returns the extents that an operand states: those that are known, -1 for others.
    fn extents(&self, op: OpId, index: usize, stated: &[i64]) -> Result<Vec<i64>, String> {
        let operand = self.operand(op, index)?;
        let known = self.known(operand);
        let known = known.filter(|known| known.len() == stated.len());
        let dims = known.unwrap_or_else(|| stated.to_vec());
        match dims.iter().any(|size| *size < -1 || *size >= 1 << 40) {
            true => Err(format!("gives a tensor the extents {dims:?}")),
            false => Ok(dims),
        }
    }

    /// Returns the `n` integers of an operand.
    pub(super) fn sizes_of(
        &mut self,
        op: OpId,
        index: usize,
        n: usize,
    ) -> Result<Vec<Size>, String> {
        let operand = self.operand(op, index)?;
        let count: i64 = self.dims(operand).iter().product();
        if i64::try_from(n) != Ok(count) {
            return Err(format!(
                "expected {n} integers as operand {index}, found {count}"
            ));
        }
        if let Some(known) = self.known(operand) {
            return Ok(known_sizes(&known));
        }
        let list = self.cast(operand, &Type::I64);
        let list = self.reshaped(list, &[count]);
        Ok((0..count)
            .map(|at| Size::At(self.part(list, 0, at, at + 1, 1)))
            .collect())
    }

    /// Returns integers that have to be known.
    fn certain(&self, op: OpId, index: usize) -> Result<Vec<i64>, String> {
        let operand = self.operand(op, index)?;
        let known = self.known(operand);
        known.ok_or_else(|| format!("has an operand {index} that is known only when it runs"))
    }

    /// Returns extents as integers of 64 bits.
    fn extents_value(&mut self, op: OpId, index: usize) -> Result<ValueId, String> {
        let value = self.operand(op, index)?;
        Ok(self.cast(value, &Type::I64))
    }
}

fn dimension_size(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let value = match l.bound(op, 0)? {
        Bound::Tensor(value) | Bound::Complex(value, _) => value,
        _ => return Err("expected a tensor".to_owned()),
    };
    let dims = l.dims(value);
    let axis = l.int(op, "dimension")?;
    let index = check_axes(&[axis], dims.len())?[0];
    if dims[index] >= 0 {
        let size = l.integers_of(&[], &[dims[index]]);
        return Ok(vec![Bound::Tensor(l.cast(size, &Type::I32))]);
    }
    let attributes = [("start", int(axis)), ("end", int(axis + 1))];
    let size = l.add("shape", &[value], &attributes, &[1], &Type::I64);
    let size = l.reshaped(size, &[]);
    Ok(vec![Bound::Tensor(l.cast(size, &Type::I32))])
}

fn set_dimension_size(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let size = l.certain(op, 1)?;
    let value = l.bound(op, 0)?;
    let axis = l.int(op, "dimension")?;
    l.each(value, |l, x| {
        let dims = l.dims(x);
        let index = check_axes(&[axis], dims.len())?[0];
        let size = size.first().copied().unwrap_or(0);
        match (0..=dims[index]).contains(&size) {
            true => Ok(l.part(x, index, 0, size, 1)),
            false => Err(format!(
                "sets a dimension of {} elements to {size}",
                dims[index]
            )),
        }
    })
}

fn reshape(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (stated, _) = l.stated(op, 0)?;
    let dims = l.extents(op, 1, &stated)?;
    let shape = l.extents_value(op, 1)?;
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| {
        if !dims.contains(&-1) {
            let (own, count) = (l.dims(x), dims.iter().product::<i64>());
            if !own.contains(&-1) && own.iter().product::<i64>() != count {
                return Err(format!(
                    "gives a tensor of extents {own:?} the extents {dims:?}"
                ));
            }
            return Ok(l.reshaped(x, &dims));
        }
        let element = l.element(x);
        Ok(l.add(
            "reshape",
            &[x, shape],
            &[("allow_zero", int(1))],
            &dims,
            &element,
        ))
    })
}

fn broadcast_in_dim(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (stated, _) = l.stated(op, 0)?;
    let dims = l.extents(op, 1, &stated)?;
    let shape = l.extents_value(op, 1)?;
    let places = check_axes(&l.ints(op, "broadcast_dimensions")?, dims.len())?;
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| {
        let own = l.dims(x);
        if places.len() != own.len() {
            return Err(format!(
                "has {} broadcast dimensions for a tensor of rank {}",
                places.len(),
                own.len()
            ));
        }
        if !dims.contains(&-1) && !own.contains(&-1) {
            return l.spread(x, &places, &dims);
        }
        let narrow = l.apart(x, &places, dims.len());
        Ok(l.widened_to(narrow, shape, &dims))
    })
}

fn iota(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (stated, element) = l.stated(op, 0)?;
    let dims = l.extents(op, 0, &stated)?;
    let axis = check_axes(&[l.int(op, "iota_dimension")?], dims.len())?[0];
    let part = match &element {
        Type::Complex(part) => (**part).clone(),
        other => other.clone(),
    };
    let counts = if dims.contains(&-1) {
        let shape = l.extents_value(op, 0)?;
        let place = i64::try_from(axis).unwrap_or(0);
        let limit = l.part(shape, 0, place, place + 1, 1);
        let limit = l.reshaped(limit, &[]);
        let (zero, one) = (l.integers_of(&[], &[0]), l.integers_of(&[], &[1]));
        let line = l.add("iota", &[zero, limit, one], &[], &[dims[axis]], &Type::I64);
        let line = l.cast(line, &part);
        let mut apart = vec![1; dims.len()];
        apart[axis] = dims[axis];
        let line = l.reshaped(line, &apart);
        l.add("broadcast", &[line, shape], &[], &dims, &part)
    } else {
        l.counted(&dims, axis, &part)
    };
    Ok(vec![match element {
        Type::Complex(_) => {
            let zero = l.number(&part, 0.0);
            Bound::Complex(counts, l.widened_like(zero, counts))
        }
        _ => Bound::Tensor(counts),
    }])
}

fn slice(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (stated, _) = l.stated(op, 0)?;
    let lists = [1, 2, 3].map(|index| l.operand(op, index));
    let [starts, limits, strides] = lists;
    let operands = [starts?, limits?, strides?];
    let known = operands.map(|operand| l.known(operand));
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| {
        let dims = l.dims(x);
        if let [Some(starts), Some(limits), Some(strides)] = &known
            && !dims.contains(&-1)
        {
            let fits = (0..dims.len()).all(|axis| {
                let (start, limit) = (starts.get(axis), limits.get(axis));
                let is_within = start.zip(limit).is_some_and(|(start, limit)| {
                    *start >= 0 && start <= limit && *limit <= dims[axis]
                });
                is_within && strides.get(axis).is_some_and(|stride| *stride > 0)
            });
            return match fits {
                true => Ok(l.sliced(x, starts, limits, strides)),
                false => Err(format!(
                    "takes the slice {starts:?} to {limits:?} of extents {dims:?}"
                )),
            };
        }
        let [starts, limits, strides] = operands.map(|operand| l.cast(operand, &Type::I64));
        let axes: Vec<i64> = (0..i64::try_from(dims.len()).unwrap_or(0)).collect();
        let axes = l.shape(&axes);
        let element = l.element(x);
        Ok(l.add(
            "slice",
            &[x, starts, limits, axes, strides],
            &[],
            &stated,
            &element,
        ))
    })
}

/// Replaces a call of a name from outside.
fn custom_call(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let name = l
        .attribute(op, "call_target_name")
        .and_then(tfrt_ir::Attribute::as_str);
    let name = name.unwrap_or_default().to_owned();
    let mut calls = super::CALLS.iter().copied().flatten();
    let Some((_, lower)) = calls.find(|(own, _)| *own == name) else {
        return Err(format!("calls '{name}', which nothing here is called"));
    };
    // Operands that state extents of results, which follow from the others.
    let shapes = l.maybe_ints(op, "indices_of_shape_operands")?;
    for index in shapes.unwrap_or_default() {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        l.bound(op, index)?;
    }
    lower(l, op)
}
