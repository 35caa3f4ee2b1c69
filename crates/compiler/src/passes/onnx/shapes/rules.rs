//! What each operation's results are.

use tfrt_ir::{Attribute, Module, OpId, Type};

use super::{Extent, Inference, Known, Shape, node, spatial, values};

/// Operations whose result is like their first operand.
const LIKE_FIRST: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BatchNormalization",
    "BitwiseNot",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "CumSum",
    "Dropout",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "LRN",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "MeanVarianceNormalization",
    "Mish",
    "Neg",
    "Not",
    "PRelu",
    "RMSNormalization",
    "Reciprocal",
    "Relu",
    "Round",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Trilu",
];

/// Operations whose result is the broadcast of their operands, with elements of the first's type.
const BROADCAST: &[&str] = &[
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Sum",
    "Xor",
];

/// The same with truth values.
const COMPARISONS: &[&str] = &["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"];

/// Operations that reduce over `axes`.
const REDUCTIONS: &[&str] = &[
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
];

/// Returns what is known of an operation's results, as far as something is.
pub(super) fn results(module: &Module, facts: &Inference, op: OpId) -> Vec<Known> {
    let name = node::name(module, op);
    let of = |index: usize| match node::operand(module, op, index) {
        Some(value) => facts.of(module, value),
        None => Known::default(),
    };
    let first = of(0);
    if LIKE_FIRST.contains(&name) {
        let mut values = None;
        if name == "Identity" {
            values.clone_from(&first.values);
        }
        let mask = Known {
            element: Some(Type::I1),
            shape: first.shape.clone(),
            values: None,
        };
        let like = Known { values, ..first };
        return match name {
            "Dropout" => vec![like, mask],
            _ => vec![like],
        };
    }
    let n_operands = module.op(op).operands().len();
    let all = || (0..n_operands).map(of).collect::<Vec<Known>>();
    if BROADCAST.contains(&name) {
        let operands = all();
        let result = tensor(first.element, broadcast(&operands));
        return vec![Known {
            values: values::calculated(name, &operands),
            ..result
        }];
    }
    if COMPARISONS.contains(&name) {
        return vec![tensor(Some(Type::I1), broadcast(&all()))];
    }
    if REDUCTIONS.contains(&name) {
        let shape = reduced(module, op, &first);
        return vec![tensor(first.element, shape)];
    }
    match name {
        "IsNaN" | "IsInf" => vec![tensor(Some(Type::I1), first.shape)],
        "Where" => {
            let operands = all();
            let shape = broadcast(&operands);
            vec![tensor(
                operands.get(1).and_then(|known| known.element.clone()),
                shape,
            )]
        }
        "ArgMax" | "ArgMin" => {
            let axis = node::int(module, op, "axis", 0);
            let keeps = node::int(module, op, "keepdims", 1) != 0;
            let shape = first.shape.and_then(|shape| without(shape, &[axis], keeps));
            vec![tensor(Some(Type::I64), shape)]
        }
        "Constant" => vec![values::constant(module, op)],
        "Shape" => vec![values::shape_of(module, op, &first)],
        "Size" => vec![values::size_of(&first)],
        "Range" => vec![values::range([&first, &of(1), &of(2)])],
        "Cast" => {
            let element = node::element_type(node::int(module, op, "to", 0));
            let is_integer = matches!(element, Some(Type::Integer(ty)) if ty.width >= 32);
            vec![Known {
                element,
                shape: first.shape,
                values: first.values.filter(|_| is_integer),
            }]
        }
        "CastLike" => vec![tensor(of(1).element, first.shape)],
        "MatMul" => {
            let shape = product(first.shape.as_ref(), of(1).shape.as_ref());
            vec![tensor(first.element, shape)]
        }
        "Gemm" => {
            let flipped = |name| node::int(module, op, name, 0) != 0;
            let pick = |shape: Option<Shape>, index: usize| {
                shape.and_then(|shape| (shape.len() == 2).then(|| shape[index].clone()))?
            };
            let rows = pick(first.shape.clone(), usize::from(flipped("transA")));
            let columns = pick(of(1).shape, usize::from(!flipped("transB")));
            vec![tensor(first.element, Some(vec![rows, columns]))]
        }
        "Transpose" => {
            let order = node::ints(module, op, "perm");
            let shape = first.shape.and_then(|shape| {
                let order = order.unwrap_or_else(|| (0..shape.len() as i64).rev().collect());
                let pick = |at: &i64| shape.get(usize::try_from(*at).ok()?).cloned();
                order.iter().map(pick).collect::<Option<Shape>>()
            });
            vec![tensor(first.element, shape)]
        }
        "Concat" => vec![values::joined(module, op, &all())],
        "Gather" => vec![values::gathered(module, op, &first, &of(1))],
        "Slice" => vec![values::sliced(&first, &all())],
        "Squeeze" => vec![values::squeezed(module, op, first, &of(1))],
        "Unsqueeze" => vec![values::unsqueezed(module, op, first, &of(1))],
        "Reshape" => vec![values::reshaped(module, op, &first, &of(1))],
        "Expand" => {
            let wanted = Known {
                shape: of(1).values,
                ..Known::default()
            };
            vec![tensor(first.element.clone(), broadcast(&[first, wanted]))]
        }
        "ConstantOfShape" => {
            let element = match module.op(op).attribute("value") {
                Some(Attribute::Dense(dense)) => dense.element_type().clone(),
                _ => Type::F32,
            };
            vec![tensor(Some(element), first.values)]
        }
        "Flatten" => {
            let axis = node::int(module, op, "axis", 1);
            let shape = first.shape.and_then(|shape| {
                // Counted from the end it is a dimension; from the start it may be behind all.
                let at = position(axis, shape.len() + usize::from(axis >= 0))?;
                Some(vec![total(&shape[..at]), total(&shape[at..])])
            });
            vec![tensor(first.element, shape)]
        }
        "Split" => values::split(module, op, &first, &of(1)),
        "GatherElements" => vec![tensor(first.element, of(1).shape)],
        "OneHot" => vec![tensor(of(2).element, None)],
        "TopK" => {
            let axis = node::int(module, op, "axis", -1);
            let count = of(1).values.and_then(|values| values.first().cloned()?);
            let shape = first.shape.and_then(|mut shape| {
                let at = position(axis, shape.len())?;
                shape[at] = count;
                Some(shape)
            });
            vec![
                tensor(first.element, shape.clone()),
                tensor(Some(Type::I64), shape),
            ]
        }
        "NonZero" => {
            let rank = first.shape.map(|shape| Extent::known(shape.len() as i64));
            vec![tensor(Some(Type::I64), Some(vec![rank, None]))]
        }
        "Conv" => vec![tensor(
            first.element.clone(),
            spatial::convolved(module, op, &first, &of(1)),
        )],
        "MaxPool" => {
            let shape = spatial::pooled(module, op, &first);
            vec![
                tensor(first.element, shape.clone()),
                tensor(Some(Type::I64), shape),
            ]
        }
        "AveragePool" | "LpPool" => {
            let shape = spatial::pooled(module, op, &first);
            vec![tensor(first.element, shape)]
        }
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => {
            let shape = first.shape.map(|shape| {
                let one = |(at, extent)| match at {
                    0 | 1 => extent,
                    _ => Some(Extent::known(1)),
                };
                shape.into_iter().enumerate().map(one).collect()
            });
            vec![tensor(first.element, shape)]
        }
        "Pad" => vec![tensor(
            first.element.clone(),
            spatial::padded(
                first.shape.as_ref(),
                &of(1),
                node::operand(module, op, 3).is_some(),
            ),
        )],
        _ => Vec::new(),
    }
}

pub(super) fn tensor(element: Option<Type>, shape: Option<Shape>) -> Known {
    Known {
        element,
        shape,
        values: None,
    }
}

/// Returns where an axis that may count from the end is.
pub(super) fn position(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let at = if axis < 0 {
        axis.checked_add(rank)?
    } else {
        axis
    };
    usize::try_from(at).ok().filter(|_| at < rank)
}

/// Returns the number of elements of these dimensions.
pub(super) fn total(shape: &[Option<Extent>]) -> Option<Extent> {
    let mut product = Extent::known(1);
    for extent in shape {
        product = product.times(extent.as_ref()?)?;
    }
    Some(product)
}

/// Returns the shape that operands are broadcast to.
fn broadcast(operands: &[Known]) -> Option<Shape> {
    let shapes: Option<Vec<&Shape>> = operands.iter().map(|known| known.shape.as_ref()).collect();
    let shapes = shapes?;
    let rank = shapes.iter().map(|shape| shape.len()).max()?;
    let mut result = Vec::with_capacity(rank);
    for at in 0..rank {
        let own = shapes.iter().filter_map(|shape| {
            let missing = rank - shape.len();
            at.checked_sub(missing).map(|at| &shape[at])
        });
        result.push(common(own));
    }
    Some(result)
}

/// Returns the extent that these are broadcast to.
fn common<'a>(extents: impl Iterator<Item = &'a Option<Extent>>) -> Option<Extent> {
    let (mut found, mut number): (Option<&Extent>, Option<&Extent>) = (None, None);
    let mut is_sure = true;
    for extent in extents {
        match extent {
            Some(extent) if extent.value() == Some(1) => {}
            Some(extent) if extent.value().is_some() => {
                // Numbers that don't fit are an error that the kernel tells of.
                if number.is_some_and(|other| other != extent) {
                    return None;
                }
                number = Some(extent);
            }
            Some(extent) => {
                is_sure &= found.is_none_or(|other| other == extent);
                found = Some(extent);
            }
            None => is_sure = false,
        }
    }
    // What is more than 1 wins, whatever the others are.
    if let Some(number) = number {
        return Some(number.clone());
    }
    match (is_sure, found) {
        (false, _) => None,
        (true, Some(extent)) => Some(extent.clone()),
        (true, None) => Some(Extent::known(1)),
    }
}

fn product(left: Option<&Shape>, right: Option<&Shape>) -> Option<Shape> {
    let (left, right) = (left?, right?);
    let (rows, columns) = match (left.len(), right.len()) {
        (0, _) | (_, 0) => return None,
        (l, r) => (
            (l > 1).then(|| left[l - 2].clone()),
            (r > 1).then(|| right[r - 1].clone()),
        ),
    };
    let batch = |shape: &Shape| {
        let n_batch = shape.len().saturating_sub(2);
        tensor(None, Some(shape[..n_batch].to_vec()))
    };
    let mut shape = broadcast(&[batch(left), batch(right)])?;
    shape.extend(rows);
    shape.extend(columns);
    Some(shape)
}

/// Returns a shape after a reduction over the axes that an operation states.
fn reduced(module: &Module, op: OpId, first: &Known) -> Option<Shape> {
    let shape = first.shape.clone()?;
    let keeps = node::int(module, op, "keepdims", 1) != 0;
    let stated = match node::operand(module, op, 1) {
        Some(value) => Some(node::constant_ints(module, value)?),
        None => node::ints(module, op, "axes"),
    };
    let nothing = node::int(module, op, "noop_with_empty_axes", 0) != 0;
    match stated {
        Some(axes) if !axes.is_empty() => without(shape, &axes, keeps),
        _ if nothing => Some(shape),
        _ => {
            let axes: Vec<i64> = (0..shape.len() as i64).collect();
            without(shape, &axes, keeps)
        }
    }
}

/// Returns a shape with axes of extent 1 in the place of some, or without them.
fn without(mut shape: Shape, axes: &[i64], keeps: bool) -> Option<Shape> {
    let rank = shape.len();
    let positions = axes.iter().map(|axis| position(*axis, rank));
    let mut positions = positions.collect::<Option<Vec<usize>>>()?;
    positions.sort_unstable();
    positions.dedup();
    for at in positions.into_iter().rev() {
        match keeps {
            true => shape[at] = Some(Extent::known(1)),
            false => drop(shape.remove(at)),
        }
    }
    Some(shape)
}
