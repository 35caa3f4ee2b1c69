//! Operations that move elements, of which those of small integer tensors are followed one by one.

use tfrt_ir::{Attribute, Module, OpId, Type};

use super::rules::{position, tensor, total};
use super::{Extent, Known, Shape, node};

/// The most elements that are followed.
const MOST_VALUES: usize = 256;

/// Returns what a constant is.
pub(super) fn constant(module: &Module, op: OpId) -> Known {
    let data = module.op(op);
    let result = data.results().first().copied();
    let Some(Attribute::Dense(dense)) = data.attribute("value") else {
        return result.map_or_else(Known::default, |result| {
            Known::of_type(module.value_type(result))
        });
    };
    let values = result.and_then(|result| node::constant_ints(module, result));
    let values = values.filter(|values| values.len() <= MOST_VALUES);
    Known {
        values: values.map(|values| {
            let known = |value: i64| Some(Extent::known(value));
            values.into_iter().map(known).collect()
        }),
        ..Known::of_type(&dense.ty)
    }
}

/// Returns the number of values that a tensor of this shape has, if it is one that is followed.
fn n_values(shape: Option<&Shape>) -> Option<usize> {
    let n = usize::try_from(total(shape?)?.value()?).ok()?;
    (n <= MOST_VALUES).then_some(n)
}

pub(super) fn shape_of(module: &Module, op: OpId, of: &Known) -> Known {
    let shape = of.shape.as_ref().map(|shape| {
        let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
        let clamped = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank);
        let start = clamped(node::int(module, op, "start", 0)) as usize;
        let end = clamped(node::int(module, op, "end", rank)) as usize;
        shape.get(start..end).unwrap_or(&[]).to_vec()
    });
    let length = shape
        .as_ref()
        .map(|shape| Extent::known(shape.len() as i64));
    Known {
        element: Some(Type::I64),
        shape: Some(vec![length]),
        values: shape,
    }
}

/// `Range`: the numbers from the first operand on, below the second, as far apart as the third says.
pub(super) fn range([start, limit, step]: [&Known; 3]) -> Known {
    let one = |known: &Known| known.values.as_ref()?.first()?.clone();
    let extent = || {
        let n = one(limit)?.minus(&one(start)?)?;
        (one(step)?.value() == Some(1) && n.is_never_negative()).then_some(n)
    };
    Known {
        element: start.element.clone(),
        shape: Some(vec![extent()]),
        values: None,
    }
}

pub(super) fn size_of(of: &Known) -> Known {
    Known {
        element: Some(Type::I64),
        shape: Some(Vec::new()),
        values: of.shape.as_ref().map(|shape| vec![total(shape)]),
    }
}

/// Returns the elements of a sum, product or the like of integers.
pub(super) fn calculated(name: &str, operands: &[Known]) -> Option<Shape> {
    let [left, right] = operands else {
        return None;
    };
    let (a, b) = (left.values.as_ref()?, right.values.as_ref()?);
    let n = match (a.len(), b.len()) {
        (a, b) if a == b => a,
        (a, 1) => a,
        (1, b) => b,
        _ => return None,
    };
    let flat = |known: &Known| known.shape.as_ref().is_some_and(|shape| shape.len() < 2);
    if !flat(left) || !flat(right) {
        return None;
    }
    let one = |at: usize| {
        let pick = |list: &Shape| list[if list.len() == 1 { 0 } else { at }].clone();
        let (a, b) = (pick(a)?, pick(b)?);
        match name {
            "Add" => a.plus(&b),
            "Sub" => a.minus(&b),
            "Mul" => a.times(&b),
            "Div" => match (a.value(), b.value()) {
                // Integers are divided towards 0.
                (Some(a), Some(b)) => Some(Extent::known(a.checked_div(b)?)),
                _ => a.exactly_by(&b),
            },
            "Max" => Some(Extent::known(a.value()?.max(b.value()?))),
            "Min" => Some(Extent::known(a.value()?.min(b.value()?))),
            _ => None,
        }
    };
    Some((0..n).map(one).collect())
}

pub(super) fn joined(module: &Module, op: OpId, parts: &[Known]) -> Known {
    let element = parts.first().and_then(|part| part.element.clone());
    let shapes: Option<Vec<&Shape>> = parts.iter().map(|part| part.shape.as_ref()).collect();
    let joined = shapes.and_then(|shapes| {
        let mut shape = (*shapes.first()?).clone();
        let at = position(node::int(module, op, "axis", 0), shape.len())?;
        if shapes.iter().any(|other| other.len() != shape.len()) {
            return None;
        }
        let mut sum = Some(Extent::known(0));
        for other in &shapes {
            let extent = other[at].as_ref();
            sum = sum.and_then(|sum| sum.plus(extent?));
            for (own, other) in shape.iter_mut().zip(*other) {
                let is_better = other.as_ref().is_some_and(|other| other.value().is_some());
                if own.is_none() || is_better {
                    own.clone_from(other);
                }
            }
        }
        shape[at] = sum;
        Some(shape)
    });
    let is_flat = joined.as_ref().is_some_and(|shape| shape.len() == 1);
    let values: Option<Vec<Shape>> = parts.iter().map(|part| part.values.clone()).collect();
    let values = values.filter(|_| is_flat).map(|values| values.concat());
    Known {
        element,
        shape: joined,
        values: values.filter(|values| values.len() <= MOST_VALUES),
    }
}

pub(super) fn gathered(module: &Module, op: OpId, from: &Known, places: &Known) -> Known {
    let axis = node::int(module, op, "axis", 0);
    let shape = from.shape.as_ref().and_then(|shape| {
        let at = position(axis, shape.len())?;
        let mut result = shape[..at].to_vec();
        result.extend(places.shape.as_ref()?.iter().cloned());
        result.extend_from_slice(&shape[at + 1..]);
        Some(result)
    });
    let is_list = from.shape.as_ref().is_some_and(|shape| shape.len() == 1);
    let values = from.values.as_ref().filter(|_| is_list).and_then(|values| {
        let pick = |place: &Option<Extent>| {
            let place = position(place.as_ref()?.value()?, values.len())?;
            values[place].clone()
        };
        Some(places.values.as_ref()?.iter().map(pick).collect::<Shape>())
    });
    Known {
        element: from.element.clone(),
        shape,
        values,
    }
}

pub(super) fn sliced(from: &Known, operands: &[Known]) -> Known {
    let numbers = |index: usize| -> Option<Vec<i64>> {
        let values = operands.get(index)?.values.as_ref()?.iter();
        values.map(|value| value.as_ref()?.value()).collect()
    };
    let mut result = tensor(from.element.clone(), None);
    let Some(shape) = &from.shape else {
        return result;
    };
    let mut sizes: Shape = shape.clone();
    let (Some(starts), Some(ends)) = (numbers(1), numbers(2)) else {
        result.shape = Some(vec![None; shape.len()]);
        return result;
    };
    let n = starts.len();
    let has = |index: usize| {
        operands
            .get(index)
            .is_some_and(|known| known.shape.is_some())
    };
    let axes = if has(3) {
        numbers(3)
    } else {
        Some((0..n as i64).collect())
    };
    let steps = if has(4) { numbers(4) } else { Some(vec![1; n]) };
    let lists = axes.zip(steps);
    let lists = lists.filter(|(axes, steps)| [axes.len(), steps.len(), ends.len()] == [n; 3]);
    let Some((axes, steps)) = lists else {
        result.shape = Some(vec![None; shape.len()]);
        return result;
    };
    let slices = starts.iter().zip(&ends).zip(axes.iter().zip(&steps));
    for ((start, end), (axis, step)) in slices {
        let Some(at) = position(*axis, shape.len()) else {
            return result;
        };
        let extent = shape[at].as_ref();
        sizes[at] = extent.and_then(|extent| slice_extent(extent, *start, *end, *step));
        if let (1, Some(values), Some(size)) = (shape.len(), &from.values, extent_value(&shape[at]))
            && n == 1
        {
            result.values = picked(values, size, *start, *end, *step);
        }
    }
    result.shape = Some(sizes);
    result
}

fn extent_value(extent: &Option<Extent>) -> Option<i64> {
    extent.as_ref()?.value()
}

/// Returns how many places a slice has.
fn slice_extent(extent: &Extent, start: i64, end: i64, step: i64) -> Option<Extent> {
    match extent.value() {
        Some(size) => Some(Extent::known(places(size, start, end, step)?.len() as i64)),
        // All of it, whatever its size is.
        None if start == 0 && step == 1 && end >= i64::from(i32::MAX) => Some(extent.clone()),
        None => None,
    }
}

/// Returns the places of a slice of so many elements.
fn places(size: i64, start: i64, end: i64, step: i64) -> Option<Vec<i64>> {
    let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
    let (mut at, end) = match step {
        1.. => (from_end(start).clamp(0, size), from_end(end).clamp(0, size)),
        0 => return None,
        _ => (
            from_end(start).clamp(-1, size - 1),
            from_end(end).clamp(-1, size - 1),
        ),
    };
    let n = match step > 0 {
        true => (end - at).max(0).checked_add(step - 1)? / step,
        false => (at - end).max(0).checked_add(-(step + 1))? / step.checked_neg()?,
    };
    if n > 1 << 20 {
        return None;
    }
    let mut list = Vec::new();
    for _ in 0..n {
        list.push(at);
        at = at.saturating_add(step);
    }
    Some(list)
}

fn picked(values: &Shape, size: i64, start: i64, end: i64, step: i64) -> Option<Shape> {
    let pick = |at: i64| values.get(usize::try_from(at).ok()?).cloned();
    places(size, start, end, step)?
        .into_iter()
        .map(pick)
        .collect()
}

/// Returns the axes that an operation states, by an attribute or an operand.
fn axes(module: &Module, op: OpId, operand: &Known) -> Option<Vec<i64>> {
    match &operand.values {
        Some(values) => values.iter().map(extent_value).collect(),
        None => node::ints(module, op, "axes"),
    }
}

pub(super) fn squeezed(module: &Module, op: OpId, from: Known, operand: &Known) -> Known {
    let stated = axes(module, op, operand);
    let has_operand = node::operand(module, op, 1).is_some();
    let shape = from.shape.and_then(|shape| {
        let rank = shape.len();
        let gone: Vec<usize> = match stated {
            Some(axes) => axes
                .iter()
                .map(|axis| position(*axis, rank))
                .collect::<Option<_>>()?,
            None if has_operand => return None,
            None => {
                let sizes = shape
                    .iter()
                    .map(extent_value)
                    .collect::<Option<Vec<i64>>>()?;
                (0..rank).filter(|at| sizes[*at] == 1).collect()
            }
        };
        let kept = shape.into_iter().enumerate();
        let kept = kept.filter(|(at, _)| !gone.contains(at));
        Some(kept.map(|(_, extent)| extent).collect())
    });
    Known { shape, ..from }
}

pub(super) fn unsqueezed(module: &Module, op: OpId, from: Known, operand: &Known) -> Known {
    let stated = axes(module, op, operand);
    let shape = from.shape.and_then(|shape| {
        let stated = stated?;
        let rank = shape.len() + stated.len();
        let new = stated.iter().map(|axis| position(*axis, rank));
        let new = new.collect::<Option<Vec<usize>>>()?;
        let mut old = shape.into_iter();
        let one = |at: usize| match new.contains(&at) {
            true => Some(Some(Extent::known(1))),
            false => old.next(),
        };
        (0..rank).map(one).collect::<Option<Shape>>()
    });
    Known { shape, ..from }
}

pub(super) fn reshaped(module: &Module, op: OpId, from: &Known, wanted: &Known) -> Known {
    let keeps_zero = node::int(module, op, "allowzero", 0) == 0;
    let mut result = tensor(from.element.clone(), None);
    let Some(values) = &wanted.values else {
        let rank = wanted
            .shape
            .as_ref()
            .and_then(|shape| extent_value(shape.first()?));
        let rank = rank.and_then(|rank| usize::try_from(rank).ok());
        result.shape = rank.filter(|rank| *rank <= 64).map(|rank| vec![None; rank]);
        return result;
    };
    let mut shape: Shape = Vec::with_capacity(values.len());
    let mut rest = None;
    for (at, value) in values.iter().enumerate() {
        match value.as_ref().and_then(Extent::value) {
            Some(0) if keeps_zero => {
                let own = from.shape.as_ref().and_then(|shape| shape.get(at).cloned());
                shape.push(own.flatten());
            }
            Some(-1) => {
                rest = Some(at);
                shape.push(None);
            }
            // A symbol could be -1 in a call only if somebody asked for a negative size.
            _ => shape.push(value.clone()),
        }
    }
    if let Some(at) = rest {
        let mut others = shape.clone();
        others.remove(at);
        let all = from.shape.as_ref().and_then(|shape| total(shape));
        shape[at] = all
            .zip(total(&others))
            .and_then(|(all, others)| all.exactly_by(&others));
    }
    let is_same = n_values(Some(&shape)).is_some();
    result.values = from.values.clone().filter(|_| is_same);
    result.shape = Some(shape);
    result
}

pub(super) fn split(module: &Module, op: OpId, from: &Known, sizes: &Known) -> Vec<Known> {
    let n = module.op(op).results().len();
    let Some(shape) = &from.shape else {
        return vec![tensor(from.element.clone(), None); n];
    };
    let axis = position(node::int(module, op, "axis", 0), shape.len());
    let stated = match &sizes.values {
        Some(values) => values.iter().map(extent_value).collect(),
        None => node::ints(module, op, "split"),
    };
    let has_operand = node::operand(module, op, 1).is_some();
    let extent = |index: usize, whole: &Option<Extent>| match &stated {
        Some(sizes) => Some(Extent::known(*sizes.get(index)?)),
        None if has_operand => None,
        // The last part may be smaller; where all are the same there is no doubt.
        None => whole
            .as_ref()?
            .exactly_by(&Extent::known(i64::try_from(n).ok()?)),
    };
    let part = |index: usize| {
        let mut shape = shape.clone();
        if let Some(at) = axis {
            shape[at] = extent(index, &shape[at]);
        }
        tensor(from.element.clone(), axis.map(|_| shape))
    };
    (0..n).map(part).collect()
}
