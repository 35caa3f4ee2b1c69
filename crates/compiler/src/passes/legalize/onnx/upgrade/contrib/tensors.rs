//! Operators that the standard has in another form, most of them older than that.
//!
//! | Operator | Becomes |
//! | --- | --- |
//! | `Trilu`, `Pad`, `Range`, `GatherND`, `ExpandDims`, `GridSample` | those of the standard, and `Unsqueeze` |
//! | `Rfft`, `Irfft` | `DFT`, of a spectrum whose other half is its mirror image |
//! | `CausalConvWithState`, `LinearAttention` | those of the standard, without what they have beyond it |

use tfrt_ir::{Attribute, ValueId};

use super::super::integers;
use super::embedding::as_i64;
use super::expansion::integer;
use super::{Expansion, Made, Refusal, wrong};

pub(super) fn trilu(here: &mut Expansion<'_>) -> Made {
    let operands: Vec<ValueId> = [here.needed(0, "X")?]
        .into_iter()
        .chain(here.input(1))
        .collect();
    let attributes = here.stated(&["upper"]);
    Ok(vec![Some(here.add("Trilu", &operands, &attributes))])
}

pub(super) fn range(here: &mut Expansion<'_>) -> Made {
    let (start, limit) = (here.needed(0, "start")?, here.needed(1, "limit")?);
    let step = match here.input(2) {
        Some(step) => step,
        None => {
            let one = here.constant(integers(Vec::new(), &[1]));
            here.add("CastLike", &[one, start], &[])
        }
    };
    let scalars = [start, limit, step].map(|value| here.reshaped(value, &[]));
    Ok(vec![Some(here.add("Range", &scalars, &[]))])
}

pub(super) fn pad(here: &mut Expansion<'_>) -> Made {
    let (x, pads) = (here.needed(0, "data")?, here.needed(1, "pads")?);
    let mut operands = vec![x, here.reshaped(pads, &[-1])];
    if let Some(value) = here.input(2) {
        operands.push(here.reshaped(value, &[]));
    }
    let attributes = here.stated(&["mode"]);
    Ok(vec![Some(here.add("Pad", &operands, &attributes))])
}

pub(super) fn expand_dims(here: &mut Expansion<'_>) -> Made {
    let (x, axis) = (here.needed(0, "X")?, here.needed(1, "axis")?);
    let axis = as_i64(here, axis);
    let axes = here.reshaped(axis, &[1]);
    Ok(vec![Some(here.add("Unsqueeze", &[x, axes], &[]))])
}

pub(super) fn gather_nd(here: &mut Expansion<'_>) -> Made {
    let (x, places) = (here.needed(0, "data")?, here.needed(1, "indices")?);
    let places = as_i64(here, places);
    Ok(vec![Some(here.add("GatherND", &[x, places], &[]))])
}

pub(super) fn grid_sample(here: &mut Expansion<'_>) -> Made {
    let (x, grid) = (here.needed(0, "X")?, here.needed(1, "Grid")?);
    // Modes have the names of that version.
    let attributes = here.stated(&["align_corners", "mode", "padding_mode"]);
    Ok(vec![Some(here.add("GridSample", &[x, grid], &attributes))])
}

pub(super) fn rfft(here: &mut Expansion<'_>) -> Made {
    here.refuse(&[], &["normalized"])?;
    let x = here.needed(0, "X")?;
    let n = dimensions(here, 3)?;
    let x = here.unsqueezed(x, &[-1]);
    let sides = here.int("onesided", 1);
    let last = [("axis", integer(-2)), ("onesided", integer(sides))];
    let mut y = here.add("DFT", &[x], &last);
    for axis in 1..n {
        y = here.add("DFT", &[y], &[("axis", integer(-2 - axis))]);
    }
    Ok(vec![Some(y)])
}

pub(super) fn irfft(here: &mut Expansion<'_>) -> Made {
    here.refuse(&[], &["normalized"])?;
    let x = here.needed(0, "X")?;
    dimensions(here, 1)?;
    let whole = match here.int("onesided", 1) {
        0 => x,
        _ => {
            // What is between the ends again, backwards and conjugated.
            let [start, end, axis, step] = [-2, 0, -2, -1].map(|number| here.integers(&[number]));
            let other = here.add("Slice", &[x, start, end, axis, step], &[]);
            let signs = here.floats(vec![2], &[1.0, -1.0]);
            let signs = here.like_f32(signs, x);
            let other = here.add("Mul", &[other, signs], &[]);
            here.add("Concat", &[x, other], &[("axis", integer(-2))])
        }
    };
    let inverse = [("axis", integer(-2)), ("inverse", integer(1))];
    let y = here.add("DFT", &[whole], &inverse);
    Ok(vec![Some(here.picked(y, -1, 0))])
}

/// Returns how many dimensions a signal has.
fn dimensions(here: &Expansion<'_>, most: i64) -> Result<i64, Refusal> {
    let n = here.int("signal_ndim", 1);
    match (1..=most).contains(&n) {
        true => Ok(n),
        false => Err(wrong(format!(
            "attribute 'signal_ndim' is expected to be 1 to {most}, found {n}"
        ))),
    }
}

pub(super) fn causal_conv(here: &mut Expansion<'_>) -> Made {
    let flags = [
        "channels_last",
        "input_channel_offset",
        "input_channels",
        "state_length",
        "state_update_capacity",
        "state_window",
    ];
    here.refuse(&[], &flags)?;
    for name in ["dilation", "ndim"] {
        let found = here.int(name, 1);
        if found != 1 {
            return Err(wrong(format!(
                "attribute '{name}' is expected to be 1, found {found}"
            )));
        }
    }
    let attributes = here.stated(&["activation"]);
    let made = all_as(here, "CausalConvWithState", &attributes);
    Ok(made)
}

pub(super) fn linear_attention(here: &mut Expansion<'_>) -> Made {
    here.refuse(&[], &["state_window"])?;
    let names = [
        "chunk_size",
        "kv_num_heads",
        "q_num_heads",
        "scale",
        "update_rule",
    ];
    let attributes = here.stated(&names);
    Ok(all_as(here, "LinearAttention", &attributes))
}

/// Appends an operation of the same operands and of two results.
fn all_as(
    here: &mut Expansion<'_>,
    name: &str,
    attributes: &[(&'static str, Attribute)],
) -> Vec<Option<ValueId>> {
    let operands = here.module.op(here.like).operands().to_vec();
    let made = here.library(name, &operands, attributes, 2);
    made.into_iter().map(Some).collect()
}
