//! Windows as a module states them: in attributes, or as operands of a call.

use tfrt_ir::OpId;

use super::control::flattened;
use super::sizes::{Size, TO_END};
use super::{LowerFn, Lowered, Lowering};

/// Windows whose extents are operands, as JAX writes them for dimensions that are symbols.
pub(super) const CALLS: &[(&str, LowerFn)] =
    &[("stablehlo.dynamic_reduce_window", dynamic_reduce_window)];

/// The integers of windows: their names, how many there are for a dimension, and the one where nothing is stated.
const LISTS: [(&str, usize, i64); 5] = [
    ("window_dimensions", 1, 1),
    ("window_strides", 1, 1),
    ("base_dilations", 1, 1),
    ("window_dilations", 1, 1),
    ("padding", 2, 0),
];

/// The windows of a reduction, along each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    pub(super) low: Vec<i64>,
    pub(super) high: Vec<i64>,
    /// How far elements of the operand are apart, less one.
    pub(super) interior: Vec<i64>,
}

impl Windows {
    /// Reads windows from attributes.
    pub(super) fn read(l: &Lowering<'_>, op: OpId, rank: usize) -> Result<Windows, String> {
        let mut lists = Vec::with_capacity(LISTS.len());
        for (name, n_each, otherwise) in LISTS {
            lists.push(l.ints_or(op, name, n_each * rank, otherwise)?);
        }
        Windows::of(lists)
    }

    /// Makes windows along one dimension of an operand: their extent, and the distances of windows and of their elements.
    pub(super) fn along(
        axis: usize,
        rank: usize,
        [size, stride, dilation]: [i64; 3],
    ) -> Result<Windows, String> {
        let with = |at_axis: i64| {
            let mut all = vec![1; rank];
            all[axis] = at_axis;
            all
        };
        let lists = [with(size), with(stride), with(1), with(dilation)];
        Windows::of(lists.into_iter().chain([vec![0; 2 * rank]]).collect())
    }

    /// Makes windows of the integers that [`LISTS`] names. Numbers are small enough for the product of two.
    pub(super) fn of(lists: Vec<Vec<i64>>) -> Result<Windows, String> {
        const MOST: i64 = 1 << 30;
        let lists = <[Vec<i64>; 5]>::try_from(lists);
        let [sizes, strides, interior, dilations, pads] =
            lists.map_err(|lists| format!("has {} lists of integers", lists.len()))?;
        let all = sizes
            .iter()
            .chain(&strides)
            .chain(&dilations)
            .chain(&interior);
        if let Some(found) = all.clone().find(|size| !(1..=MOST).contains(*size)) {
            return Err(format!(
                "has windows, strides or dilations of {found}, expected 1 to {MOST}"
            ));
        }
        if pads.iter().any(|pad| !(-MOST..=MOST).contains(pad)) {
            return Err(format!("has pads of more than {MOST}"));
        }
        Ok(Windows {
            sizes,
            strides,
            dilations,
            low: pads.iter().copied().step_by(2).collect(),
            high: pads.iter().copied().skip(1).step_by(2).collect(),
            interior: interior.iter().map(|dilation| dilation - 1).collect(),
        })
    }

    /// Returns windows of more dimensions, which come first and have one element each.
    pub(super) fn behind(&self, n_more: usize) -> Windows {
        let with = |first: i64, all: &[i64]| [&vec![first; n_more], all].concat();
        Windows {
            sizes: with(1, &self.sizes),
            strides: with(1, &self.strides),
            dilations: with(1, &self.dilations),
            low: with(0, &self.low),
            high: with(0, &self.high),
            interior: with(0, &self.interior),
        }
    }

    /// Returns the number of windows along a dimension of a padded operand, -1 if its extent is unknown.
    pub(super) fn count(&self, axis: usize, size: i64) -> i64 {
        let reach = (self.sizes[axis] - 1) * self.dilations[axis] + 1;
        if size < 0 {
            -1
        } else if size < reach {
            0
        } else {
            (size - reach) / self.strides[axis] + 1
        }
    }

    /// Returns the limit of the slice that has an element of each window: the one at `start`, of an operand whose elements
    /// are put together of `reached` ones. There are `count` windows.
    pub(super) fn limit(&self, axis: usize, count: i64, start: i64, reached: i64) -> i64 {
        // Where the number of windows is unknown, it is told from the end.
        let behind = (self.sizes[axis] - reached) * self.dilations[axis] - start;
        match (count, behind) {
            (-1, 0) => TO_END,
            (-1, behind) => -behind,
            _ => start + (count - 1) * self.strides[axis] + 1,
        }
    }
}

/// Windows that a call states behind tensors and first values; the body is a function.
fn dynamic_reduce_window(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let mut operands = l.operands(op)?;
    let n = operands.len().saturating_sub(LISTS.len()) / 2;
    if n == 0 || operands.len() != 2 * n + LISTS.len() {
        return Err(format!(
            "expected tensors, as many first values and {} lists of integers, found {} operands",
            LISTS.len(),
            operands.len()
        ));
    }
    operands.truncate(2 * n);
    let first = flattened(&operands).first().copied();
    let rank = l.rank(first.ok_or("expected a tensor")?);
    let mut lists = Vec::with_capacity(LISTS.len());
    for (index, (name, n_each, _)) in LISTS.into_iter().enumerate() {
        let list = l.sizes_of(op, 2 * n + index, n_each * rank);
        lists.push(list.map_err(|message| format!("as {name} {message}"))?);
    }
    let called = l.attribute(op, "called_computations");
    let [body] = called
        .and_then(tfrt_ir::Attribute::as_array)
        .unwrap_or_default()
    else {
        return Err("requires attribute 'called_computations', a list of one function".to_owned());
    };
    let body = body.as_flat_symbol().map(|name| name.as_str().to_owned());
    let body = body.and_then(|name| l.functions.get(&name).copied());
    let (_, body) = body.ok_or("calls what is no function")?;
    let n_arguments = l.module.block(body).arguments().len();
    if n_arguments != 2 * n {
        return Err(format!(
            "calls a function of {n_arguments} arguments, expected {}",
            2 * n
        ));
    }
    let numbers = |list: &Vec<Size>| list.iter().copied().map(Size::known).collect();
    let known: Option<Vec<Vec<i64>>> = lists.iter().map(numbers).collect();
    match known {
        Some(known) => l.reduced_in(&Windows::of(known)?, body, operands),
        None => l.reduced_by_sizes(&lists, body, operands),
    }
}
