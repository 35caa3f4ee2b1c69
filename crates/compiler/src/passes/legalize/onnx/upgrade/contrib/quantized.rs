//! Operators on numbers as small integers with a scale and a zero point.
//!
//! | Operator | Becomes |
//! | --- | --- |
//! | `QLinearAdd`, `QLinearSoftmax`, .. | the operator on floats, between `DequantizeLinear` and `QuantizeLinear` |
//! | `QLinearAveragePool`, `QLinearReduceMean`, .. | the mean of whole numbers as floats, and `QuantizeLinear` by the quotient of the scales |
//! | `MatMulIntegerToFloat`, `QGemm` | `MatMulInteger`, times the scales |
//! | `DynamicQuantizeMatMul` | `DynamicQuantizeLinear` and that |
//! | `QuantizeLinear`, `DequantizeLinear` | those of the standard |

use tfrt_ir::ValueId;

use super::super::integers;
use super::expansion::integer;
use super::pointwise::float;
use super::{Expansion, F32, Made, Refusal, wrong};

/// Numbers as integers: operands that begin at an index.
struct Quantized {
    scale: ValueId,
    zero: Option<ValueId>,
}

impl Quantized {
    /// Returns the scale at an index, and the zero point behind it.
    fn at(here: &Expansion<'_>, index: usize) -> Result<Quantized, Refusal> {
        Ok(Quantized {
            scale: here.needed(index, "scale")?,
            zero: here.input(index + 1),
        })
    }

    /// Appends the numbers as floats.
    fn taken(&self, here: &mut Expansion<'_>, x: ValueId) -> ValueId {
        let operands: Vec<ValueId> = [x, self.scale].into_iter().chain(self.zero).collect();
        here.add("DequantizeLinear", &operands, &[])
    }

    /// Appends floats as such numbers, of the type of `like` if no zero point says it.
    fn given(&self, here: &mut Expansion<'_>, x: ValueId, like: ValueId) -> ValueId {
        let zero = match self.zero {
            Some(zero) => zero,
            None => {
                let zero = here.constant(integers(Vec::new(), &[0]));
                here.add("CastLike", &[zero, like], &[])
            }
        };
        here.add("QuantizeLinear", &[x, self.scale, zero], &[])
    }
}

/// Appends the operand at an index as floats; its scale and zero point follow.
fn float_at(here: &mut Expansion<'_>, index: usize, name: &str) -> Result<ValueId, Refusal> {
    let (x, form) = (here.needed(index, name)?, Quantized::at(here, index + 1)?);
    Ok(form.taken(here, x))
}

/// A tensor as numbers that are integers as floats: the scale is left out.
pub(super) struct Unscaled {
    pub(super) numbers: ValueId,
    scale: ValueId,
}

impl Unscaled {
    /// Takes the operand at an index; its scale and zero point follow.
    pub(super) fn at(
        here: &mut Expansion<'_>,
        index: usize,
        name: &str,
    ) -> Result<Unscaled, Refusal> {
        let (x, form) = (here.needed(index, name)?, Quantized::at(here, index + 1)?);
        let scale = here.floats(Vec::new(), &[1.0]);
        let zero = form.zero;
        let numbers = Quantized { scale, zero }.taken(here, x);
        Ok(Unscaled {
            numbers,
            scale: form.scale,
        })
    }

    /// Appends a mean of the numbers as the result, whose scale is the operand at an index.
    ///
    /// Means of few integers lie in the middle between two often, above all with equal scales: they are rounded as the exact
    /// mean is, since the scale comes in by a quotient that is 1 then.
    pub(super) fn mean(&self, here: &mut Expansion<'_>, y: ValueId, index: usize) -> Made {
        let (form, like) = (Quantized::at(here, index)?, here.needed(0, "X")?);
        let scale = here.add("Div", &[form.scale, self.scale], &[]);
        let zero = form.zero;
        Ok(vec![Some(Quantized { scale, zero }.given(here, y, like))])
    }
}

/// Appends floats as the result, whose scale is the operand at an index.
fn result(here: &mut Expansion<'_>, y: ValueId, index: usize, like: usize) -> Made {
    let (form, like) = (Quantized::at(here, index)?, here.needed(like, "X")?);
    Ok(vec![Some(form.given(here, y, like))])
}

pub(super) fn add(here: &mut Expansion<'_>) -> Made {
    binary(here, "Add")
}

pub(super) fn mul(here: &mut Expansion<'_>) -> Made {
    binary(here, "Mul")
}

fn binary(here: &mut Expansion<'_>, name: &str) -> Made {
    let (a, b) = (float_at(here, 0, "A")?, float_at(here, 3, "B")?);
    let y = here.add(name, &[a, b], &[]);
    result(here, y, 6, 0)
}

pub(super) fn sigmoid(here: &mut Expansion<'_>) -> Made {
    let x = float_at(here, 0, "X")?;
    let y = here.add("Sigmoid", &[x], &[]);
    result(here, y, 3, 0)
}

pub(super) fn leaky_relu(here: &mut Expansion<'_>) -> Made {
    let x = float_at(here, 0, "X")?;
    let alpha = float(here.float("alpha", 0.01));
    let y = here.add("LeakyRelu", &[x], &[("alpha", alpha)]);
    result(here, y, 3, 0)
}

pub(super) fn concat(here: &mut Expansion<'_>) -> Made {
    let n = here.module.op(here.like).operands().len();
    if n < 5 || !(n - 2).is_multiple_of(3) {
        return Err(wrong(format!(
            "expected a scale, a zero point, and three operands for each tensor, found {n} operands"
        )));
    }
    let parts = (2..n).step_by(3).map(|index| float_at(here, index, "X"));
    let parts: Vec<ValueId> = parts.collect::<Result<_, Refusal>>()?;
    let axis = here.int("axis", 0);
    let y = here.add("Concat", &parts, &[("axis", integer(axis))]);
    result(here, y, 0, 2)
}

pub(super) fn select(here: &mut Expansion<'_>) -> Made {
    let condition = here.needed(0, "condition")?;
    let (x, y) = (float_at(here, 1, "X")?, float_at(here, 4, "Y")?);
    let z = here.add("Where", &[condition, x, y], &[]);
    result(here, z, 7, 1)
}

pub(super) fn softmax(here: &mut Expansion<'_>) -> Made {
    let x = float_at(here, 0, "X")?;
    let own = here.needed(0, "X")?;
    let version = here.int("opset", 1);
    let axis = here.int("axis", if version < 13 { 1 } else { -1 });
    let y = if version < 13 {
        // All dimensions from the axis on are one.
        let rows = here.add("Flatten", &[x], &[("axis", integer(axis))]);
        let rows = here.add("Softmax", &[rows], &[("axis", integer(-1))]);
        let extents = here.add("Shape", &[own], &[]);
        here.add("Reshape", &[rows, extents], &[])
    } else {
        here.add("Softmax", &[x], &[("axis", integer(axis))])
    };
    result(here, y, 3, 0)
}

pub(super) fn reduce_mean(here: &mut Expansion<'_>) -> Made {
    let x = Unscaled::at(here, 0, "data")?;
    let axes = super::super::node::ints(here.module, here.like, "axes").unwrap_or_default();
    let mut operands = vec![x.numbers];
    if !axes.is_empty() {
        operands.push(here.integers(&axes));
    }
    let keeps = here.int("keepdims", 1);
    let y = here.add("ReduceMean", &operands, &[("keepdims", integer(keeps))]);
    x.mean(here, y, 3)
}

pub(super) fn quantize(here: &mut Expansion<'_>) -> Made {
    linear(here, "QuantizeLinear")
}

pub(super) fn dequantize(here: &mut Expansion<'_>) -> Made {
    linear(here, "DequantizeLinear")
}

fn linear(here: &mut Expansion<'_>, name: &str) -> Made {
    let (x, scale) = (here.needed(0, "x")?, here.needed(1, "scale")?);
    let operands: Vec<ValueId> = [x, scale].into_iter().chain(here.input(2)).collect();
    let attributes = here.stated(&["axis"]);
    Ok(vec![Some(here.add(name, &operands, &attributes))])
}

/// A product of integers that becomes one of floats.
pub(super) struct Product {
    pub(super) a: ValueId,
    pub(super) b: ValueId,
    pub(super) a_zero: Option<ValueId>,
    pub(super) b_zero: Option<ValueId>,
    pub(super) scale: ValueId,
    pub(super) bias: Option<ValueId>,
}

impl Product {
    /// Appends the product: sums in 32 bits, times the scale, plus the bias.
    pub(super) fn make(&self, here: &mut Expansion<'_>) -> ValueId {
        let y = self.sums(here);
        let y = here.add("Cast", &[y], &[("to", integer(F32))]);
        let y = here.add("Mul", &[y, self.scale], &[]);
        here.sum(y, &[self.bias])
    }

    fn sums(&self, here: &mut Expansion<'_>) -> ValueId {
        let mut operands = vec![self.a, self.b];
        match (self.a_zero, self.b_zero) {
            (None, None) => {}
            (Some(zero), other) => operands.extend([zero].into_iter().chain(other)),
            (None, Some(zero)) => {
                let none = here.none();
                operands.extend([none, zero]);
            }
        }
        here.add("MatMulInteger", &operands, &[])
    }
}

pub(super) fn to_float(here: &mut Expansion<'_>) -> Made {
    let (a, b) = (here.needed(0, "A")?, here.needed(1, "B")?);
    let (one, other) = (here.needed(2, "a_scale")?, here.needed(3, "b_scale")?);
    let scale = here.add("Mul", &[one, other], &[]);
    let [a_zero, b_zero, bias] = [here.input(4), here.input(5), here.input(6)];
    let product = Product {
        a,
        b,
        a_zero,
        b_zero,
        scale,
        bias,
    };
    Ok(vec![Some(product.make(here))])
}

pub(super) fn dynamic(here: &mut Expansion<'_>) -> Made {
    let (a, b, own) = (
        here.needed(0, "A")?,
        here.needed(1, "B")?,
        here.needed(2, "b_scale")?,
    );
    let made = here.library("DynamicQuantizeLinear", &[a], &[], 3);
    let scale = here.add("Mul", &[made[1], own], &[]);
    let [b_zero, bias] = [here.input(3), here.input(4)];
    let product = Product {
        a: made[0],
        b,
        a_zero: Some(made[2]),
        b_zero,
        scale,
        bias,
    };
    Ok(vec![Some(product.make(here))])
}

pub(super) fn gemm(here: &mut Expansion<'_>) -> Made {
    let (a, one) = (here.needed(0, "A")?, Quantized::at(here, 1)?);
    let (b, other) = (here.needed(3, "B")?, Quantized::at(here, 4)?);
    let mut turned = |value: ValueId, name: &str| match here.int(name, 0) {
        0 => value,
        _ => here.transposed(value, &[1, 0]),
    };
    let (rows, columns) = (turned(a, "transA"), turned(b, "transB"));
    let mut scale = here.add("Mul", &[one.scale, other.scale], &[]);
    let alpha = here.float("alpha", 1.0);
    if alpha != 1.0 {
        let alpha = here.number(alpha, scale);
        scale = here.add("Mul", &[scale, alpha], &[]);
    }
    let product = Product {
        a: rows,
        b: columns,
        a_zero: one.zero,
        b_zero: other.zero,
        scale,
        bias: None,
    };
    // The bias is of the sums' scale.
    let sums = product.sums(here);
    let sums = here.sum(sums, &[here.input(6)]);
    let y = here.add("Cast", &[sums], &[("to", integer(F32))]);
    let y = here.add("Mul", &[y, scale], &[]);
    match here.input(7) {
        Some(_) => result(here, y, 7, 0),
        None => Ok(vec![Some(y)]),
    }
}
