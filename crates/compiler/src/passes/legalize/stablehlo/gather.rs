//! Gather, and slices at places that are calculated.
//!
//! A gather of any form is one of rows: the leading dimensions of the operand are one, whose places are calculated, and the
//! trailing ones, which are taken whole, are moved with it. Where extents are unknown, the places are calculated by a row
//! of their own, `stablehlo.places`.

use tfrt_ir::{OpId, Type, ValueId};

use super::attributes::check_axes;
use super::build::{int, is_unsigned};
use super::control::flattened;
use super::sizes::{Size, dims_of, known_sizes};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.dynamic_gather", gather),
    ("stablehlo.dynamic_slice", dynamic_slice),
    ("stablehlo.dynamic_update_slice", dynamic_update_slice),
    ("stablehlo.gather", gather),
    ("stablehlo.torch_index_select", index_select),
];

/// The dimensions of a gather or scatter: how places and slices lie in an operand.
pub(super) struct Places {
    /// The dimensions of the slices in the result, or in what is scattered.
    pub(super) offsets: Vec<usize>,
    /// The dimensions of the operand that slices do not have.
    pub(super) dropped: Vec<usize>,
    /// The dimensions of the operand along which each batch has its own, and those of the places.
    pub(super) batch: [Vec<usize>; 2],
    /// The dimensions of the operand that each number of a place is along.
    pub(super) starts: Vec<usize>,
    /// The dimension of the places that has the numbers of one place.
    pub(super) vector: usize,
}

impl Places {
    /// Returns the dimensions of the operand that slices have, in order.
    pub(super) fn window(&self, rank: usize) -> Vec<usize> {
        (0..rank)
            .filter(|axis| !self.dropped.contains(axis) && !self.batch[0].contains(axis))
            .collect()
    }
}

/// Places of rows in an operand whose leading dimensions are one.
pub(super) struct Rows {
    /// The number of the operand's leading dimensions.
    pub(super) n_leading: usize,
    /// For each row the place of it, in the order of the result's dimensions.
    pub(super) at: ValueId,
    /// Where all numbers of a place are within the operand; nothing if all are.
    pub(super) within: Option<ValueId>,
}

impl Lowering<'_> {
    /// Reads the dimensions of a gather or scatter from an attribute.
    pub(super) fn places(
        &self,
        op: OpId,
        attribute: &str,
        names: [&str; 5],
        ranks: [usize; 3],
    ) -> Result<Places, String> {
        let [operand, indices, result] = ranks;
        let [offsets, dropped, operand_batch, index_batch, starts] =
            self.lists(op, attribute, names)?;
        let vector = self.number_in(op, attribute, "index_vector_dim")?;
        let vector = usize::try_from(vector).ok().filter(|axis| *axis <= indices);
        Ok(Places {
            offsets: check_axes(&offsets, result)?,
            dropped: check_axes(&dropped, operand)?,
            batch: [
                check_axes(&operand_batch, operand)?,
                check_axes(&index_batch, indices)?,
            ],
            starts: check_axes(&starts, operand)?,
            vector: vector.ok_or("names an index_vector_dim that the indices do not have")?,
        })
    }

    /// Calculates the places of rows, where all extents are known. `sizes` are the extents of slices along each dimension of the operand, `result` those
    /// of the result; places outside are moved within by `clamps`, or told.
    pub(super) fn rows(
        &mut self,
        dims: &[i64],
        indices: ValueId,
        places: &Places,
        sizes: &[i64],
        result: &[i64],
        clamps: bool,
    ) -> Result<Rows, String> {
        let index_dims = self.dims(indices);
        let rank = dims.len();
        let window = places.window(rank);
        if window.len() != places.offsets.len() || sizes.len() != rank {
            return Err("has dimensions of slices that do not fit the operand".to_owned());
        }
        let n_numbers = index_dims.get(places.vector).copied().unwrap_or(1);
        if usize::try_from(n_numbers) != Ok(places.starts.len()) {
            return Err(format!(
                "has places of {n_numbers} numbers, expected {}",
                places.starts.len()
            ));
        }
        let outer: Vec<usize> = (0..result.len())
            .filter(|axis| !places.offsets.contains(axis))
            .collect();
        // Batch dimensions of the places, which the result has in their order.
        let batch: Vec<usize> = (0..index_dims.len())
            .filter(|axis| *axis != places.vector)
            .collect();
        if batch.len() != outer.len()
            || batch
                .iter()
                .zip(&outer)
                .any(|(own, other)| index_dims[*own] != result[*other])
        {
            return Err("has a result whose extents are not those of the places".to_owned());
        }
        // Trailing dimensions that are taken whole, in order and last in the result.
        let mut n_leading = rank;
        while n_leading > 0 {
            let axis = n_leading - 1;
            let at = window.iter().position(|own| *own == axis);
            let is_last = at.is_some_and(|at| places.offsets[at] == result.len() - (rank - axis));
            if sizes[axis] != dims[axis] || places.starts.contains(&axis) || !is_last {
                break;
            }
            n_leading -= 1;
        }
        let shown = result.len() - (rank - n_leading);
        let whole = &result[..shown];
        let by = if is_unsigned(&self.element(indices)) {
            Type::UI64
        } else {
            Type::I64
        };
        let numbers = self.cast(indices, &by);
        let numbers = self.cast(numbers, &Type::I64);
        let mut at: Option<ValueId> = None;
        let mut within: Option<ValueId> = None;
        let mut stride: i64 = 1;
        for axis in (0..n_leading).rev() {
            let mut parts: Vec<ValueId> = Vec::new();
            if let Some(number) = places.starts.iter().position(|own| *own == axis) {
                let number = i64::try_from(number).unwrap_or(0);
                let mut start = numbers;
                if places.vector < index_dims.len() {
                    start = self.part(start, places.vector, number, number + 1, 1);
                }
                let extents: Vec<i64> = batch.iter().map(|axis| index_dims[*axis]).collect();
                start = self.reshaped(start, &extents);
                let most = dims[axis] - sizes[axis];
                let (zero, last) = (self.integers_of(&[], &[0]), self.integers_of(&[], &[most]));
                if clamps {
                    start = self.binary("max", start, zero);
                    start = self.binary("min", start, last);
                } else {
                    let (below, above) = (
                        self.compare("ge", start, zero),
                        self.compare("le", start, last),
                    );
                    let both = self.binary("and", below, above);
                    let wide = self.spread(both, &outer, whole)?;
                    within = Some(match within {
                        Some(others) => self.binary("and", others, wide),
                        None => wide,
                    });
                    start = self.binary("max", start, zero);
                    start = self.binary("min", start, last);
                }
                parts.push(self.spread(start, &outer, whole)?);
            }
            if let Some(index) = places.batch[0].iter().position(|own| *own == axis) {
                let of_indices = places.batch[1]
                    .get(index)
                    .ok_or("has too few batch dimensions")?;
                let place = batch.iter().position(|own| own == of_indices);
                let place = outer[place.ok_or("has a batch dimension that has the places")?];
                parts.push(self.counted(whole, place, &Type::I64));
            }
            if let Some(index) = window.iter().position(|own| *own == axis) {
                let place = places.offsets[index];
                if result[place] != sizes[axis] {
                    return Err("has a result whose extents are not those of the slices".to_owned());
                }
                if sizes[axis] > 1 {
                    parts.push(self.counted(whole, place, &Type::I64));
                }
            }
            for part in parts {
                let scaled = match stride {
                    1 => part,
                    stride => {
                        let stride = self.integers_of(&[], &[stride]);
                        self.binary("mul", part, stride)
                    }
                };
                at = Some(match at {
                    Some(others) => self.binary("add", others, scaled),
                    None => scaled,
                });
            }
            stride =
                super::shapes::checked(stride, |stride| stride.checked_mul(dims[axis].max(1)))?;
        }
        let at = match at {
            Some(at) => at,
            None => self.integers_of(&[], &[0]),
        };
        let at = self.broadcast_to(at, whole);
        Ok(Rows {
            n_leading,
            at,
            within,
        })
    }

    /// Makes the leading dimensions of an operand one.
    pub(super) fn as_rows(&mut self, x: ValueId, n_leading: usize) -> Result<ValueId, String> {
        let sizes = self.sizes(x);
        let count = self.size_product(&sizes[..n_leading])?;
        let extents = [&[count][..], &sizes[n_leading..]].concat();
        Ok(self.resized(x, &extents))
    }

    /// Takes the rows of a tensor at given places.
    pub(super) fn taken_rows(&mut self, x: ValueId, at: ValueId) -> ValueId {
        let (x_dims, mut dims) = (self.dims(x), self.dims(at));
        dims.extend_from_slice(&x_dims[1..]);
        let element = self.element(x);
        self.add("gather", &[x, at], &[("axis", int(0))], &dims, &element)
    }
}

fn gather(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let value = l.bound(op, 0)?;
    let indices = l.operand(op, 1)?;
    let (mut result, _) = l.stated(op, 0)?;
    let tensors = flattened(std::slice::from_ref(&value));
    let dims = l.dims(*tensors.first().ok_or("expected a tensor")?);
    let names = [
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
    ];
    let index_dims = l.dims(indices);
    let ranks = [dims.len(), index_dims.len(), result.len()];
    let places = l.places(op, "dimension_numbers", names, ranks)?;
    let sizes = match l.maybe_ints(op, "slice_sizes")? {
        Some(sizes) => known_sizes(&sizes),
        None => l.sizes_of(op, 2, dims.len())?,
    };
    let is_outside = |(size, dim): (&Size, &i64)| match size {
        Size::Known(size) => *size < 0 || (size > dim && *dim >= 0),
        Size::At(_) => false,
    };
    if sizes.len() != dims.len() || sizes.iter().zip(&dims).any(is_outside) {
        let sizes = dims_of(&sizes);
        return Err(format!(
            "takes slices of extents {sizes:?} of a tensor of extents {dims:?}"
        ));
    }
    // Extents that the text leaves open follow from the others.
    let batch = (0..index_dims.len()).filter(|axis| *axis != places.vector);
    let mut batch = batch.map(|axis| index_dims[axis]);
    let mut window = places
        .window(dims.len())
        .into_iter()
        .map(|axis| sizes[axis].dim());
    for (axis, size) in result.iter_mut().enumerate() {
        let own = match places.offsets.contains(&axis) {
            true => window.next(),
            false => batch.next(),
        };
        if *size < 0 {
            *size = own.unwrap_or(*size);
        }
    }
    let is_known = ![&dims, &index_dims, &result]
        .iter()
        .any(|dims| dims.contains(&-1));
    if result.contains(&0) && is_known {
        return l.each(value, |l, x| {
            let zero = l.number(&l.element(x), 0.0);
            Ok(l.broadcast_to(zero, &result))
        });
    }
    let rows = if is_known {
        l.rows(&dims, indices, &places, &dims_of(&sizes), &result, true)?
    } else {
        l.rows_when_run(tensors[0], indices, &places, &sizes, result.len(), true)?
    };
    l.each(value, |l, x| {
        let table = l.as_rows(x, rows.n_leading)?;
        Ok(l.taken_rows(table, rows.at))
    })
}

fn index_select(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (x, indices) = (l.operand(op, 0)?, l.operand(op, 1)?);
    let (dims, element) = l.stated(op, 0)?;
    let (axis, batch) = (l.int(op, "dim")?, l.int(op, "batch_dims")?);
    if batch != 0 {
        return Err("selects by batches, which is not supported".to_owned());
    }
    let indices = l.cast(indices, &Type::I64);
    Ok(vec![Bound::Tensor(l.add(
        "gather",
        &[x, indices],
        &[("axis", int(axis))],
        &dims,
        &element,
    ))])
}

impl Lowering<'_> {
    /// Returns the starts of slices, moved so that slices of these sizes are within the operand.
    fn clamped_starts(
        &mut self,
        op: OpId,
        first: usize,
        x: ValueId,
        sizes: &[Size],
    ) -> Result<Vec<ValueId>, String> {
        let dims = self.dims(x);
        let n = self.module.op(op).operands().len() - first;
        if n != dims.len() || sizes.len() != dims.len() {
            return Err(format!(
                "has {n} starts and {} sizes for a tensor of rank {}",
                sizes.len(),
                dims.len()
            ));
        }
        let mut starts = Vec::with_capacity(n);
        for axis in 0..n {
            let start = self.operand(op, first + axis)?;
            if sizes[axis].dim() > dims[axis] && dims[axis] >= 0 {
                return Err(format!(
                    "takes {} elements of {} along dimension {axis}",
                    sizes[axis].dim(),
                    dims[axis]
                ));
            }
            let start = self.cast(start, &Type::I64);
            let zero = self.integers_of(&[], &[0]);
            let extent = self.size_along(x, axis);
            let most = self.size_difference(extent, sizes[axis])?;
            let most = self.size_number(most);
            let start = self.binary("max", start, zero);
            starts.push(self.binary("min", start, most));
        }
        Ok(starts)
    }
}

fn dynamic_slice(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let sizes = l.ints(op, "slice_sizes")?;
    let value = l.bound(op, 0)?;
    let tensors = flattened(std::slice::from_ref(&value));
    let first = *tensors.first().ok_or("expected a tensor")?;
    let dims = l.dims(first);
    if sizes.iter().any(|size| *size < 0) {
        return Err(format!("takes a slice of extents {sizes:?}"));
    }
    let starts = l.clamped_starts(op, 1, first, &known_sizes(&sizes))?;
    // Along other dimensions the slice is all there is.
    let axes: Vec<usize> = (0..dims.len())
        .filter(|axis| sizes[*axis] != dims[*axis])
        .collect();
    if axes.is_empty() {
        return Ok(vec![value]);
    }
    let mut lists = [Vec::new(), Vec::new()];
    for axis in &axes {
        let start = l.reshaped(starts[*axis], &[1]);
        let size = l.shape(&[sizes[*axis]]);
        lists[1].push(l.binary("add", start, size));
        lists[0].push(start);
    }
    let [starts, ends] = lists.map(|list| l.concatenated(&list, 0));
    let axes: Vec<i64> = axes
        .iter()
        .filter_map(|axis| i64::try_from(*axis).ok())
        .collect();
    let axes = l.shape(&axes);
    l.each(value, |l, x| {
        let element = l.element(x);
        Ok(l.add("slice", &[x, starts, ends, axes], &[], &sizes, &element))
    })
}

fn dynamic_update_slice(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (value, update) = (l.bound(op, 0)?, l.bound(op, 1)?);
    let (value, update) = match (value, update) {
        (Bound::Tensor(x), Bound::Tensor(y)) => (vec![x], vec![y]),
        (Bound::Complex(a, b), Bound::Complex(c, d)) => (vec![a, b], vec![c, d]),
        _ => return Err("puts a tensor into one of another type".to_owned()),
    };
    let (dims, sizes) = (l.dims(value[0]), l.sizes(update[0]));
    let starts = l.clamped_starts(op, 2, value[0], &sizes)?;
    let sizes = dims_of(&sizes);
    if sizes.contains(&0) {
        return Ok(vec![l.bound(op, 0)?]);
    }
    if dims.is_empty() {
        return Ok(vec![l.bound(op, 1)?]);
    }
    let starts: Vec<ValueId> = starts
        .iter()
        .map(|start| l.reshaped(*start, &[1]))
        .collect();
    let starts = l.concatenated(&starts, 0);
    let made: Vec<ValueId> = value
        .iter()
        .zip(&update)
        .map(|(x, y)| {
            let element = l.element(*x);
            l.add("update_slice", &[*x, *y, starts], &[], &dims, &element)
        })
        .collect();
    Ok(vec![match made[..] {
        [real, imaginary] => Bound::Complex(real, imaginary),
        _ => Bound::Tensor(made[0]),
    }])
}
