//! Activations, by themselves, behind a bias, or behind a product.
//!
//! | Operator | Becomes |
//! | --- | --- |
//! | `Gelu`, `BiasGelu` | `Gelu`, of `A + B` |
//! | `FastGelu` | `Gelu` by the hyperbolic tangent, of `X + bias` |
//! | `QuickGelu` | `Swish`: `x * sigmoid(alpha * x)` |

use tfrt_ir::types::FloatKind;
use tfrt_ir::{Attribute, ValueId, attributes::FloatAttribute};

use super::{Expansion, Made, Refusal, wrong};

pub(super) fn gelu(here: &mut Expansion<'_>) -> Made {
    let x = here.needed(0, "X")?;
    Ok(vec![Some(here.add("Gelu", &[x], &[]))])
}

pub(super) fn bias_gelu(here: &mut Expansion<'_>) -> Made {
    let (x, bias) = (here.needed(0, "A")?, here.needed(1, "B")?);
    let x = here.add("Add", &[x, bias], &[]);
    Ok(vec![Some(here.add("Gelu", &[x], &[]))])
}

pub(super) fn fast_gelu(here: &mut Expansion<'_>) -> Made {
    let (x, bias) = (here.needed(0, "X")?, here.input(1));
    let sum = match bias {
        // Halves are rounded once.
        Some(bias) => {
            let (x, bias) = (here.wide(x), here.wide(bias));
            here.add("Add", &[x, bias], &[])
        }
        None => x,
    };
    let tanh = [("approximate", Attribute::string("tanh"))];
    let y = here.add("Gelu", &[sum], &tanh);
    let y = if bias.is_some() { here.narrow(y, x) } else { y };
    Ok(vec![Some(y)])
}

pub(super) fn quick_gelu(here: &mut Expansion<'_>) -> Made {
    let x = here.needed(0, "X")?;
    let alpha = here.float("alpha", 1.702);
    Ok(vec![Some(here.add(
        "Swish",
        &[x],
        &[("alpha", float(alpha))],
    ))])
}

/// Appends the activation of a fused operator: `numbers` are its parameters, in the order in which ONNX Runtime has them.
pub(super) fn activated(
    here: &mut Expansion<'_>,
    x: ValueId,
    activation: &str,
    numbers: &[Option<f64>],
) -> Result<ValueId, Refusal> {
    let number = |index: usize, default: f64| {
        float(numbers.get(index).copied().flatten().unwrap_or(default))
    };
    let attributes = match activation {
        "" => return Ok(x),
        "Relu" | "Tanh" | "Sigmoid" | "Softplus" | "Softsign" | "HardSwish" => Vec::new(),
        "LeakyRelu" => vec![("alpha", number(0, 0.01))],
        "Elu" | "Celu" | "ThresholdedRelu" => vec![("alpha", number(0, 1.0))],
        "Selu" => vec![
            ("alpha", number(0, 1.673_263_2)),
            ("gamma", number(1, 1.050_701)),
        ],
        "HardSigmoid" => vec![("alpha", number(0, 0.2)), ("beta", number(1, 0.5))],
        "Clip" => {
            let bound = |index: usize, default: f64| {
                numbers.get(index).copied().flatten().unwrap_or(default)
            };
            let (least, most) = (bound(0, f64::from(f32::MIN)), bound(1, f64::from(f32::MAX)));
            let (least, most) = (here.number(least, x), here.number(most, x));
            return Ok(here.add("Clip", &[x, least, most], &[]));
        }
        other => {
            return Err(wrong(format!(
                "attribute 'activation' is no known one, found '{other}'"
            )));
        }
    };
    Ok(here.add(activation, &[x], &attributes))
}

/// Returns a number as an attribute of 32 bits.
pub(super) fn float(value: f64) -> Attribute {
    #[expect(clippy::cast_possible_truncation, reason = "attributes are of 32 bits")]
    let value = value as f32;
    Attribute::Float(FloatAttribute {
        bits: value.to_bits().into(),
        kind: FloatKind::F32,
    })
}
