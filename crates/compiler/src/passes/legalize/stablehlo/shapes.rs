//! Operations that move elements to places that are known when a model is opened.

use tfrt_ir::{OpId, Type, ValueId};

use super::attributes::check_axes;
use super::build::{int, list};
use super::sizes::{Size, TO_END, dims_of};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.broadcast", broadcast),
    ("stablehlo.broadcast_in_dim", broadcast_in_dim),
    ("stablehlo.concatenate", concatenate),
    ("stablehlo.iota", iota),
    ("stablehlo.reshape", reshape),
    ("stablehlo.reverse", reverse),
    ("stablehlo.slice", slice),
    ("stablehlo.transpose", transpose),
];

impl Lowering<'_> {
    /// Gives a value other extents of as many elements.
    pub(super) fn reshaped(&mut self, x: ValueId, dims: &[i64]) -> ValueId {
        if self.dims(x) == dims {
            return x;
        }
        let shape = self.shape(dims);
        let element = self.element(x);
        let value = self.add(
            "reshape",
            &[x, shape],
            &[("allow_zero", int(1))],
            dims,
            &element,
        );
        let known = self.known(x);
        self.note(value, known);
        // A number is one in any extents of 1.
        if let Some(&narrow) = self.narrow.get(&x)
            && self.rank(narrow) == 0
        {
            self.narrow.insert(value, narrow);
        }
        value
    }

    pub(super) fn transposed(&mut self, x: ValueId, permutation: &[usize]) -> ValueId {
        if permutation.iter().copied().eq(0..permutation.len()) {
            return x;
        }
        let dims = self.dims(x);
        let dims: Vec<i64> = permutation.iter().map(|axis| dims[*axis]).collect();
        let perm: Vec<i64> = permutation
            .iter()
            .map(|axis| i64::try_from(*axis).unwrap_or(0))
            .collect();
        let element = self.element(x);
        self.add("transpose", &[x], &[("perm", list(&perm))], &dims, &element)
    }

    /// Takes a slice along each dimension. Of a dimension of unknown extent a limit below 0 counts from the end, and
    /// [`TO_END`] is the end.
    pub(super) fn sliced(
        &mut self,
        x: ValueId,
        starts: &[i64],
        limits: &[i64],
        strides: &[i64],
    ) -> ValueId {
        let dims = self.dims(x);
        let is_whole = |axis: usize| {
            let limit = if dims[axis] < 0 { TO_END } else { dims[axis] };
            starts[axis] == 0 && limits[axis] == limit && (strides[axis] == 1 || dims[axis] == 1)
        };
        let extents: Vec<i64> = (0..dims.len())
            .map(|axis| {
                if dims[axis] < 0 && !(0..TO_END).contains(&limits[axis]) {
                    return -1;
                }
                let size = (limits[axis] - starts[axis]).max(0);
                (size + strides[axis] - 1) / strides[axis]
            })
            .collect();
        let changed: Vec<usize> = (0..dims.len()).filter(|axis| !is_whole(*axis)).collect();
        if changed.is_empty() {
            return x;
        }
        let known = self.known(x).filter(|_| dims.len() == 1);
        let axes: Vec<i64> = changed
            .iter()
            .filter_map(|axis| i64::try_from(*axis).ok())
            .collect();
        let of = |all: &[i64]| -> Vec<i64> { changed.iter().map(|axis| all[*axis]).collect() };
        let operands = [of(starts), of(limits), axes, of(strides)];
        let operands = operands.map(|values| self.shape(&values));
        let [starts_at, ends_at, axes, steps] = operands;
        let element = self.element(x);
        let operands = [x, starts_at, ends_at, axes, steps];
        let value = self.add("slice", &operands, &[], &extents, &element);
        if let Some(known) = known {
            let start = usize::try_from(starts[0]).unwrap_or(0);
            let end = usize::try_from(limits[0]).unwrap_or(0).min(known.len());
            let step = usize::try_from(strides[0]).unwrap_or(1);
            let part = known.get(start..end).unwrap_or(&[]);
            self.note(value, Some(part.iter().copied().step_by(step).collect()));
        }
        value
    }

    /// Takes a part along one dimension, as `sliced` does.
    pub(super) fn part(
        &mut self,
        x: ValueId,
        axis: usize,
        start: i64,
        limit: i64,
        stride: i64,
    ) -> ValueId {
        let dims = self.dims(x);
        let mut starts = vec![0; dims.len()];
        let mut limits = whole(&dims);
        let mut strides = vec![1; dims.len()];
        (starts[axis], limits[axis], strides[axis]) = (start, limit, stride);
        self.sliced(x, &starts, &limits, &strides)
    }

    pub(super) fn concatenated(&mut self, all: &[ValueId], axis: usize) -> ValueId {
        if let [only] = all {
            return *only;
        }
        let mut dims = self.dims(all[0]);
        let sizes: Vec<i64> = all.iter().map(|value| self.dims(*value)[axis]).collect();
        dims[axis] = match sizes.contains(&-1) {
            true => -1,
            false => sizes.iter().sum(),
        };
        let element = self.element(all[0]);
        let known: Option<Vec<Vec<i64>>> = all.iter().map(|value| self.known(*value)).collect();
        // Along the first dimension elements stay in their order.
        let known = known.filter(|_| axis == 0);
        let axis = i64::try_from(axis).unwrap_or(0);
        let value = self.add("concat", all, &[("axis", int(axis))], &dims, &element);
        self.note(value, known.map(|known| known.concat()));
        value
    }

    pub(super) fn reversed(&mut self, x: ValueId, axes: &[i64]) -> ValueId {
        let dims = self.dims(x);
        let element = self.element(x);
        if axes.is_empty() {
            return x;
        }
        self.add("reverse", &[x], &[("axes", list(axes))], &dims, &element)
    }

    /// Makes numbers from 0 on along a dimension, the same along the others: a broadcast.
    pub(super) fn counted(&mut self, dims: &[i64], axis: usize, element: &Type) -> ValueId {
        let n = dims[axis];
        let counts = self.count(n, element);
        let mut line = vec![1; dims.len() - axis];
        line[0] = n;
        let counts = self.reshaped(counts, &line);
        self.broadcast_to(counts, dims)
    }

    /// Makes the numbers from 0 on below `n`.
    pub(super) fn count(&mut self, n: i64, element: &Type) -> ValueId {
        const MOST_STORED: i64 = 4096;
        let by = if super::build::is_float(element) || n > MOST_STORED {
            &Type::I64
        } else {
            element
        };
        if n <= MOST_STORED {
            let all = (0..n).flat_map(|value| {
                #[expect(clippy::cast_precision_loss, reason = "it is below 4096")]
                super::build::encoded(by, value as f64)
            });
            let all = all.collect();
            let values = self.elements(&[n], by, all);
            return self.cast(values, element);
        }
        let ends = [0, n, 1].map(|value| self.integers_of(&[], &[value]));
        let values = self.add("iota", &ends, &[], &[n], &Type::I64);
        self.cast(values, element)
    }

    /// Gives each dimension of a value a place among those of another rank.
    pub(super) fn spread(
        &mut self,
        x: ValueId,
        places: &[usize],
        dims: &[i64],
    ) -> Result<ValueId, String> {
        let own = self.dims(x);
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|index| places[*index]);
        let sorted = self.transposed(x, &order);
        let mut apart = vec![1; dims.len()];
        for (index, place) in places.iter().enumerate() {
            apart[*place] = own[index];
        }
        for (index, (own, whole)) in apart.iter().zip(dims).enumerate() {
            if *own != 1 && *own != *whole && *own >= 0 && *whole >= 0 {
                return Err(format!(
                    "broadcasts {own} elements to {whole} along dimension {index}"
                ));
            }
        }
        // Dimensions of 1 in front are those of any broadcast.
        let first = places.iter().min().copied().unwrap_or(dims.len());
        let narrow = self.reshaped(sorted, &apart[first..]);
        Ok(self.broadcast_to(narrow, dims))
    }

    /// Gives each dimension of a value a place among those of a tensor of these sizes.
    pub(super) fn spread_over(
        &mut self,
        x: ValueId,
        places: &[usize],
        sizes: &[Size],
    ) -> Result<ValueId, String> {
        let (own, dims) = (self.dims(x), dims_of(sizes));
        if !own.contains(&-1) && !dims.contains(&-1) {
            return self.spread(x, places, &dims);
        }
        let narrow = self.apart(x, places, sizes.len());
        Ok(self.widened(narrow, sizes))
    }

    /// Gives each dimension of a value a place among those of another rank; the others are 1, or left out in front.
    pub(super) fn apart(&mut self, x: ValueId, places: &[usize], rank: usize) -> ValueId {
        let own = self.sizes(x);
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|index| places[*index]);
        let sorted = self.transposed(x, &order);
        let mut apart = vec![Size::Known(1); rank];
        for (index, place) in places.iter().enumerate() {
            apart[*place] = own[index];
        }
        let first = places.iter().min().copied().unwrap_or(rank);
        self.resized(sorted, &apart[first..])
    }
}

/// Returns the limits of slices that are all there is along dimensions.
pub(super) fn whole(dims: &[i64]) -> Vec<i64> {
    dims.iter()
        .map(|size| if *size < 0 { TO_END } else { *size })
        .collect()
}

/// Returns a number that is calculated, or an error if it is none.
pub(super) fn checked(value: i64, calculate: impl Fn(i64) -> Option<i64>) -> Result<i64, String> {
    calculate(value)
        .filter(|size| *size < 1 << 40)
        .ok_or_else(|| "has a result with too many elements".to_owned())
}

/// Returns extents that are known, or says that they have to be.
pub(super) fn known_dims(dims: &[i64]) -> Result<(), String> {
    match dims.contains(&-1) {
        true => Err(
            "has extents that are known only when it runs, which is not supported here".to_owned(),
        ),
        false => Ok(()),
    }
}

fn reshape(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (dims, _) = l.stated(op, 0)?;
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| {
        let own = l.dims(x);
        if dims.is_empty() && own.iter().product::<i64>() != 1 {
            // A number of a body that is calculated for many.
            return Ok(x);
        }
        let count = |dims: &[i64]| dims.iter().product::<i64>();
        if !own.contains(&-1) && !dims.contains(&-1) && count(&own) != count(&dims) {
            return Err(format!(
                "gives a tensor of extents {own:?} the extents {dims:?}"
            ));
        }
        Ok(l.reshaped(x, &dims))
    })
}

fn broadcast_in_dim(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (dims, _) = l.stated(op, 0)?;
    let places = check_axes(&l.ints(op, "broadcast_dimensions")?, dims.len())?;
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| {
        if dims.is_empty() {
            return Ok(x);
        }
        if places.len() != l.rank(x) {
            let (n, rank) = (places.len(), l.rank(x));
            return Err(format!(
                "has {n} broadcast dimensions for a tensor of rank {rank}"
            ));
        }
        l.spread(x, &places, &dims)
    })
}

fn broadcast(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (dims, _) = l.stated(op, 0)?;
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| Ok(l.broadcast_to(x, &dims)))
}

fn transpose(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let permutation = l.ints(op, "permutation")?;
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| {
        let rank = l.rank(x);
        let axes = check_axes(&permutation, rank)?;
        match axes.len() == rank {
            true => Ok(l.transposed(x, &axes)),
            false => Err(format!("permutes {} dimensions of {rank}", axes.len())),
        }
    })
}

fn slice(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (starts, limits) = (l.ints(op, "start_indices")?, l.ints(op, "limit_indices")?);
    let strides = l.ints_or(op, "strides", starts.len(), 1)?;
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| {
        let dims = l.dims(x);
        if [starts.len(), limits.len()] != [dims.len(); 2] {
            return Err(format!("slices {} dimensions of {}", starts.len(), dims.len()));
        }
        for axis in 0..dims.len() {
            let (start, limit, stride) = (starts[axis], limits[axis], strides[axis]);
            let is_within = dims[axis] < 0 || limit <= dims[axis];
            if start < 0 || start > limit || !is_within || stride < 1 {
                return Err(format!(
                    "takes the slice {start}:{limit}:{stride} of {} elements along dimension {axis}",
                    dims[axis]
                ));
            }
        }
        Ok(l.sliced(x, &starts, &limits, &strides))
    })
}

fn concatenate(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (dims, _) = l.stated(op, 0)?;
    let axis = l.int(op, "dimension")?;
    let axis = check_axes(&[axis], dims.len())?[0];
    let operands = l.operands(op)?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for operand in &operands {
        match operand {
            Bound::Tensor(value) => first.push(*value),
            Bound::Complex(real, imaginary) => {
                first.push(*real);
                second.push(*imaginary);
            }
            _ => return Err("expected tensors".to_owned()),
        }
    }
    if first.is_empty() {
        return Err("expected an operand, found none".to_owned());
    }
    if first.iter().any(|value| l.rank(*value) != dims.len()) {
        return Err("puts together tensors of different ranks".to_owned());
    }
    let value = l.concatenated(&first, axis);
    Ok(vec![match second.len() {
        0 => Bound::Tensor(value),
        _ => Bound::Complex(value, l.concatenated(&second, axis)),
    }])
}

fn reverse(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let axes = l.ints(op, "dimensions")?;
    let value = l.bound(op, 0)?;
    l.each(value, |l, x| {
        check_axes(&axes, l.rank(x))?;
        Ok(l.reversed(x, &axes))
    })
}

fn iota(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (dims, element) = l.stated(op, 0)?;
    known_dims(&dims)?;
    let axis = check_axes(&[l.int(op, "iota_dimension")?], dims.len())?[0];
    Ok(vec![match element {
        Type::Complex(part) => {
            let real = l.counted(&dims, axis, &part);
            let zero = l.number(&part, 0.0);
            Bound::Complex(real, l.broadcast_to(zero, &dims))
        }
        element => Bound::Tensor(l.counted(&dims, axis, &element)),
    }])
}
