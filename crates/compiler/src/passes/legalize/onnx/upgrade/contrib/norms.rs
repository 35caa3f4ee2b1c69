//! Normalisation of the last dimensions, of a sum of what is given and what skips a layer.
//!
//! | Operator | Becomes |
//! | --- | --- |
//! | `SimplifiedLayerNormalization` | `RMSNormalization` |
//! | `SkipLayerNormalization` | `LayerNormalization` of the sum of input, skip and bias |
//! | `SkipSimplifiedLayerNormalization` | `RMSNormalization` of that sum |

use tfrt_ir::{Attribute, ValueId};

use super::expansion::integer;
use super::pointwise::float;
use super::{Expansion, Made, wrong};

pub(super) fn simplified(here: &mut Expansion<'_>) -> Made {
    let (x, scale) = (here.needed(0, "X")?, here.needed(1, "scale")?);
    let epsilon = here.float("epsilon", 1e-5);
    let axis = here.int("axis", -1);
    let attributes = [
        ("axis", integer(axis)),
        ("epsilon", float(epsilon)),
        ("kind", Attribute::string("rms")),
    ];
    let y = here.row("norm", &[x, scale], &attributes);
    if !here.wants(1) {
        return Ok(vec![Some(y)]);
    }
    let axes: Vec<i64> = match axis {
        -1 => vec![-1],
        _ => {
            let rank = i64::try_from(here.known_rank(x, "X")?).unwrap_or(i64::MAX);
            (if axis < 0 { axis + rank } else { axis }.max(0)..rank).collect()
        }
    };
    let x = here.wide(x);
    let deviation = inverse_deviation(here, x, &axes, epsilon);
    Ok(vec![Some(y), Some(deviation)])
}

/// Appends one over the root of the mean of squares along axes.
fn inverse_deviation(here: &mut Expansion<'_>, x: ValueId, axes: &[i64], epsilon: f64) -> ValueId {
    let square = here.add("Mul", &[x, x], &[]);
    let axes = here.integers(axes);
    let mean = here.add("ReduceMean", &[square, axes], &[]);
    let epsilon = here.number(epsilon, x);
    let moved = here.add("Add", &[mean, epsilon], &[]);
    let root = here.add("Sqrt", &[moved], &[]);
    here.add("Reciprocal", &[root], &[])
}

pub(super) fn skip(here: &mut Expansion<'_>) -> Made {
    let (gamma, beta, bias) = (here.needed(2, "gamma")?, here.input(3), here.input(4));
    skipping(here, "layer", [Some(gamma), beta, bias])
}

pub(super) fn skip_simplified(here: &mut Expansion<'_>) -> Made {
    let (gamma, bias) = (here.needed(2, "gamma")?, here.input(3));
    skipping(here, "rms", [Some(gamma), None, bias])
}

/// Appends the sum and its normalisation; gives result, mean, inverse deviation and sum.
fn skipping(
    here: &mut Expansion<'_>,
    kind: &str,
    [gamma, beta, bias]: [Option<ValueId>; 3],
) -> Made {
    let (x, skip) = (here.needed(0, "input")?, here.needed(1, "skip")?);
    if let (Some(own), Some(width)) = (here.last_extent(skip), here.last_extent(x))
        && own != width
    {
        return Err(wrong(format!(
            "expected a skip as wide as the input {}, found {}",
            here.shown(x),
            here.shown(skip)
        )));
    }
    let epsilon = here.float("epsilon", 1e-12);
    let wide = here.wide(x);
    let others = [Some(skip), bias].map(|value| value.map(|value| here.wide(value)));
    let sum = here.sum(wide, &others);
    let operands: Vec<ValueId> = [gamma, beta].into_iter().flatten().collect();
    let operands: Vec<ValueId> = operands.into_iter().map(|value| here.wide(value)).collect();
    let operands: Vec<ValueId> = [sum].into_iter().chain(operands).collect();
    let attributes = [
        ("epsilon", float(epsilon)),
        ("kind", Attribute::string(kind)),
    ];
    let is_whole = kind == "layer" && (here.wants(1) || here.wants(2));
    let made = here.rows("norm", &operands, &attributes, if is_whole { 3 } else { 1 });
    let y = here.narrow(made[0], x);
    let deviation =
        (kind == "rms" && here.wants(2)).then(|| inverse_deviation(here, sum, &[-1], epsilon));
    let sum = here.wants(3).then(|| here.narrow(sum, x));
    let deviation = deviation.or(made.get(2).copied());
    Ok(vec![Some(y), made.get(1).copied(), deviation, sum])
}
