//! Products of matrices and convolutions with what ONNX Runtime fuses with them.
//!
//! | Operator | Becomes |
//! | --- | --- |
//! | `FusedMatMul`, `TransposeMatMul` | `dot` of what is transposed, times `alpha` |
//! | `FusedGemm` | `Gemm` and its activation |
//! | `FusedConv` | `Conv`, plus `Z`, and its activation |

use tfrt_ir::ValueId;

use super::expansion::integer;
use super::pointwise::activated;
use super::{Expansion, Made, Refusal};

pub(super) fn mat_mul(here: &mut Expansion<'_>) -> Made {
    let (a, b) = (here.needed(0, "A")?, here.needed(1, "B")?);
    let a = with_batch_first(here, a, "transBatchA")?;
    let b = with_batch_first(here, b, "transBatchB")?;
    let flips = [
        ("transpose_a", integer(here.int("transA", 0))),
        ("transpose_b", integer(here.int("transB", 0))),
    ];
    let mut y = here.row("dot", &[a, b], &flips);
    let alpha = here.float("alpha", 1.0);
    if alpha != 1.0 {
        let alpha = here.number(alpha, a);
        y = here.add("Mul", &[y, alpha], &[]);
    }
    Ok(vec![Some(y)])
}

/// Appends an operand whose rows, its first dimension, are brought behind those of the batch, if an attribute says so.
fn with_batch_first(
    here: &mut Expansion<'_>,
    value: ValueId,
    name: &str,
) -> Result<ValueId, Refusal> {
    if here.int(name, 0) == 0 {
        return Ok(value);
    }
    let rank = here.known_rank(value, name)?;
    if rank < 3 {
        return Ok(value);
    }
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let order: Vec<i64> = (1..rank - 1).chain([0, rank - 1]).collect();
    Ok(here.transposed(value, &order))
}

pub(super) fn gemm(here: &mut Expansion<'_>) -> Made {
    let mut operands = vec![here.needed(0, "A")?, here.needed(1, "B")?];
    operands.extend(here.input(2));
    let attributes = here.stated(&["alpha", "beta", "transA", "transB"]);
    let y = here.add("Gemm", &operands, &attributes);
    let numbers = ["activation_alpha", "activation_beta", "activation_gamma"];
    let numbers =
        numbers.map(|name| (!here.stated(&[name]).is_empty()).then(|| here.float(name, 0.0)));
    let activation = here.text("activation");
    Ok(vec![Some(activated(here, y, &activation, &numbers)?)])
}

pub(super) fn conv(here: &mut Expansion<'_>) -> Made {
    let (x, filter) = (here.needed(0, "X")?, here.needed(1, "W")?);
    let operands: Vec<ValueId> = [x, filter].into_iter().chain(here.input(2)).collect();
    let names = [
        "auto_pad",
        "dilations",
        "group",
        "kernel_shape",
        "pads",
        "strides",
    ];
    let attributes = here.stated(&names);
    let y = here.add("Conv", &operands, &attributes);
    let summand = here.input(3);
    let y = here.sum(y, &[summand]);
    let numbers: Vec<Option<f64>> = here
        .numbers("activation_params")
        .into_iter()
        .map(Some)
        .collect();
    let activation = here.text("activation");
    Ok(vec![Some(activated(here, y, &activation, &numbers)?)])
}
