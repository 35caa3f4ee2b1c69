//! Products of matrices of integers, in the forms that exporters write them in.
//!
//! | Written | Becomes |
//! | --- | --- |
//! | `quantize` of a product of two `dequantize`, with a bias and an activation between them | `graph.quantized_dot` |
//! | `onnx.QLinearMatMul` | `graph.quantized_dot` |
//! | `onnx.MatMulInteger`, plus a bias in its steps, as `f32`, times scales, quantised | `graph.quantized_dot` |
//! | a product of two `dequantize`, plus a bias | `graph.integer_dot` |
//! | `onnx.MatMulInteger` as `f32`, times scales, plus a bias | `graph.integer_dot` |
//!
//! The right side is a constant matrix with a scale for all columns or one for each, or another tensor with one scale.

use tfrt_bef::DType;
use tfrt_ir::{Module, OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::{self, Rewrite, list};
use super::{
    Bias, Scaled, Weights, below_activations, bias, bytes_of, dequantize, is_scale, replace,
    zero_of,
};

/// The greatest depth of a product whose sums are integers of 32 bits.
const MOST_DEPTH: i64 = i32::MAX as i64 / (255 * 255);

/// A scale: a value, or the number 1.
#[derive(Clone, Copy)]
enum Scale {
    Value(ValueId),
    One,
}

/// A product of two tensors of bytes.
struct Product {
    a: ValueId,
    a_scale: Scale,
    a_zero: Option<ValueId>,
    b: Right,
    b_scale: Scale,
    b_zero: Option<ValueId>,
    /// Integers that are added to the sums.
    steps: Option<ValueId>,
}

/// The right side of a product.
enum Right {
    /// A constant matrix, `[depth, columns]`, or turned.
    Matrix {
        bytes: ValueId,
        extents: [i64; 2],
        is_turned: bool,
    },
    /// A tensor of matrices that a call makes.
    Tensor(ValueId),
}

impl Right {
    fn value(&self) -> ValueId {
        match self {
            Right::Matrix { bytes, .. } | Right::Tensor(bytes) => *bytes,
        }
    }

    /// Returns the number of columns of a constant matrix.
    fn columns(&self) -> Option<i64> {
        match self {
            Right::Matrix { extents, .. } => Some(extents[1]),
            Right::Tensor(_) => None,
        }
    }
}

/// Makes a product whose result is bytes, at the operation that gives them.
pub(super) fn to_bytes(rewrite: &mut Rewrite<'_>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    let (product, added, y_scale, y_zero) = match node::name(module, op) {
        "onnx.QLinearMatMul" => {
            let [y_scale, y_zero] = [6, 7].map(|index| node::operand(module, op, index));
            (written(module, op)?, None, y_scale?, y_zero)
        }
        "quantize" => {
            let to = Scaled::of(module, op, module.op(op).results()[0])?;
            let made = below_activations(module, node::operand(module, op, 0)?, &to)?;
            let (own, added) = without_bias(module, made)?;
            (Product::of(module, own)?, added, to.scale, to.zero)
        }
        _ => return None,
    };
    let [x, y] = [product.a_scale, Scale::Value(y_scale)].map(|scale| number(module, scale));
    let (x, y) = (x?, y?);
    let scales = product.scales(module)?;
    for zero in [product.a_zero, product.b_zero, y_zero]
        .into_iter()
        .flatten()
    {
        node::constant(module, zero)?;
    }
    let units: Vec<f64> = scales.iter().map(|scale| scale * x).collect();
    let steps = match (product.steps, added) {
        (Some(steps), None) => Bias::Integers(steps),
        (None, added) => bias(module, added, &units, y)?,
        _ => return None,
    };
    let most = match &steps {
        Bias::Nothing => Some(0),
        Bias::Integers(steps) => {
            product.expect_bias(module, *steps)?;
            let steps = node::constant_ints(module, *steps)?;
            steps.iter().map(|one| one.abs()).max()
        }
        Bias::Rounded(steps) => {
            product.expect_bias(module, added?)?;
            steps.iter().map(|one| i64::from(*one).abs()).max()
        }
    };
    if let Right::Matrix { extents, .. } = product.b {
        let sums = extents[0].checked_mul(255 * 255)?;
        (sums.checked_add(most?)? <= i64::from(i32::MAX)).then_some(())?;
    }
    let result = module.op(op).results()[0];
    let steps = match steps {
        Bias::Nothing => None,
        Bias::Integers(steps) => Some(rewrite.mapped(steps)),
        Bias::Rounded(steps) => {
            let steps: Vec<i64> = steps.into_iter().map(i64::from).collect();
            Some(rewrite.constant(rewrite::integers_of(DType::I32, &steps), op))
        }
    };
    let [left, right] = product.operands(rewrite, op);
    let y_zero = zero(rewrite, y_zero, result, op);
    let y_scale = rewrite.mapped(y_scale);
    let all = left.into_iter().chain(right).chain([y_scale, y_zero]);
    let state = OpState::new("graph.quantized_dot").operands(all.chain(steps));
    replace(rewrite, op, state);
    Some(())
}

/// Makes a product whose result stays `f32`, at the last operation that it takes the place of.
pub(super) fn to_floats(rewrite: &mut Rewrite<'_>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    if !["dot", "onnx.Gemm", "mul", "add"].contains(&node::name(module, op)) {
        return None;
    }
    let (own, added) = without_bias(module, op)?;
    let product = Product::of(module, own)?;
    product.scales(module)?;
    if product.steps.is_some() {
        return None;
    }
    match added {
        Some(added) => product.expect_bias(module, added)?,
        // A bias that follows is taken, too.
        None => {
            let result = module.op(op).results()[0];
            let follows = node::only_user(module, result).and_then(|user| {
                let (before, added) = without_bias(module, user)?;
                product.expect_bias(module, added?)?;
                (before == own).then_some(())
            });
            if follows.is_some() {
                return None;
            }
        }
    }
    if let Right::Tensor(b) = product.b {
        let shape = node::shape(module, b)?;
        let depth = shape.len().checked_sub(2).map(|at| shape[at])?;
        (0..=MOST_DEPTH).contains(&depth).then_some(())?;
    }
    let added = added.map(|added| rewrite.mapped(added));
    let [left, right] = product.operands(rewrite, op);
    let state =
        OpState::new("graph.integer_dot").operands(left.into_iter().chain(right).chain(added));
    replace(rewrite, op, state);
    Some(())
}

/// Returns the product below the addition of a constant bias, and the bias.
fn without_bias(module: &Module, op: OpId) -> Option<(OpId, Option<ValueId>)> {
    match node::name(module, op) {
        "add" => node::pairs(module, op)
            .into_iter()
            .flatten()
            .find_map(|(product, bias)| {
                let own = module.defining_op(product)?;
                let is_product = ["dot", "mul"].contains(&node::name(module, own));
                let fits = is_product
                    && node::only_user(module, product).is_some()
                    && is_fixed(module, bias);
                fits.then_some((own, Some(bias)))
            }),
        "onnx.Gemm" => Some((op, node::operand(module, op, 2))),
        _ => Some((op, None)),
    }
}

/// Returns whether a value is a constant of `f32`, or what is dequantised of a constant.
fn is_fixed(module: &Module, value: ValueId) -> bool {
    let bytes = dequantize(module, value).and_then(|op| node::operand(module, op, 0));
    node::is_f32(module, value) && node::constant(module, bytes.unwrap_or(value)).is_some()
}

/// Returns the number of a scale.
fn number(module: &Module, scale: Scale) -> Option<f64> {
    match scale {
        Scale::One => Some(1.0),
        Scale::Value(scale) => node::number(module, scale, 1).filter(|scale| is_scale(*scale)),
    }
}

/// Returns whether a value has one element.
fn is_one(module: &Module, value: ValueId) -> bool {
    let shape = node::shape(module, value);
    shape.is_some_and(|shape| shape.len() <= 1 && shape.iter().all(|extent| *extent == 1))
}

/// Returns the constant matrix of bytes that a value is, or that it is the transposition of.
fn matrix(module: &Module, value: ValueId) -> Option<(ValueId, bool)> {
    let turned = module.defining_op(value).filter(|op| {
        node::name(module, *op) == "transpose"
            && node::ints(module, *op, "perm").is_none_or(|perm| perm == [1, 0])
    });
    let bytes = match turned {
        Some(op) => node::operand(module, op, 0)?,
        None => value,
    };
    bytes_of(module, bytes)?;
    (node::constant(module, bytes)?.shape().len() == 2).then_some((bytes, turned.is_some()))
}

/// Returns a constant matrix as the right side of a product.
fn right(module: &Module, bytes: ValueId, is_turned: bool) -> Option<Right> {
    let mut extents: [i64; 2] = node::constant(module, bytes)?.shape().try_into().ok()?;
    if is_turned {
        extents.reverse();
    }
    let fits = (1..=MOST_DEPTH).contains(&extents[0]) && extents[1] > 0;
    fits.then_some(Right::Matrix {
        bytes,
        extents,
        is_turned,
    })
}

/// Returns the product that `QLinearMatMul` is.
fn written(module: &Module, op: OpId) -> Option<Product> {
    let operand = |index: usize| node::operand(module, op, index);
    let (a, b) = (operand(0)?, operand(3)?);
    let b = match matrix(module, b) {
        Some((bytes, is_turned)) => right(module, bytes, is_turned)?,
        None => Right::Tensor(b),
    };
    let product = Product {
        a,
        a_scale: Scale::Value(operand(1)?),
        a_zero: operand(2),
        b,
        b_scale: Scale::Value(operand(4)?),
        b_zero: operand(5),
        steps: None,
    };
    product.checked(module)
}

impl Product {
    /// Returns the product that an operation makes.
    fn of(module: &Module, op: OpId) -> Option<Product> {
        let product = match node::name(module, op) {
            "dot" => {
                let is_plain = ["transpose_a", "transpose_b"]
                    .iter()
                    .all(|name| node::int(module, op, name, 0) == 0);
                is_plain.then_some(())?;
                Product::of_floats(module, op, false)?
            }
            "onnx.Gemm" => {
                let is_plain = node::int(module, op, "transA", 0) == 0
                    && node::float(module, op, "alpha", 1.0) == 1.0
                    && node::float(module, op, "beta", 1.0) == 1.0;
                is_plain.then_some(())?;
                let is_turned = node::int(module, op, "transB", 0) != 0;
                Product::of_floats(module, op, is_turned)?
            }
            "mul" => Product::of_sums(module, op)?,
            _ => return None,
        };
        product.checked(module)
    }

    /// Returns the product of two tensors that are dequantised.
    fn of_floats(module: &Module, op: OpId, is_turned: bool) -> Option<Product> {
        let [a, b] = [0, 1].map(|index| node::operand(module, op, index));
        let (a, b) = (Scaled::read(module, a?)?, b?);
        let turned = module
            .defining_op(b)
            .filter(|op| node::name(module, *op) == "transpose" && !is_turned)
            .filter(|op| node::ints(module, *op, "perm").is_none_or(|perm| perm == [1, 0]));
        let (own, is_turned) = match turned {
            Some(op) => (node::operand(module, op, 0)?, true),
            None => (b, is_turned),
        };
        let axis = if is_turned { 0 } else { 1 };
        let (b, scale, zero) = match Weights::read(module, own, axis) {
            Some(weights) => {
                let right = right(module, weights.bytes, is_turned)?;
                (right, weights.scale, weights.zero)
            }
            None if is_turned => return None,
            None => {
                let b = Scaled::read(module, b)?;
                (Right::Tensor(b.bytes), b.scale, b.zero)
            }
        };
        Some(Product {
            a: a.bytes,
            a_scale: Scale::Value(a.scale),
            a_zero: a.zero,
            b,
            b_scale: Scale::Value(scale),
            b_zero: zero,
            steps: None,
        })
    }

    /// Returns the product whose sums are multiplied by scales.
    fn of_sums(module: &Module, op: OpId) -> Option<Product> {
        node::pairs(module, op)
            .into_iter()
            .flatten()
            .find_map(|(sums, scale)| {
                let cast = node::single_use_op(module, sums, "cast")
                    .filter(|_| node::is_f32(module, sums))?;
                let mut sums = node::operand(module, cast, 0)?;
                let mut steps = None;
                if let Some(add) = node::single_use_op(module, sums, "add") {
                    let mut pairs = node::pairs(module, add).into_iter().flatten();
                    let (own, bias) =
                        pairs.find(|(_, bias)| node::constant(module, *bias).is_some())?;
                    (sums, steps) = (own, Some(bias));
                }
                let own = node::single_use_op(module, sums, "onnx.MatMulInteger")?;
                let operand = |index: usize| node::operand(module, own, index);
                let (bytes, is_turned) = matrix(module, operand(1)?)?;
                let b = right(module, bytes, is_turned)?;
                let (a_scale, b_scale) = factors(module, scale, b.columns()?)?;
                Some(Product {
                    a: operand(0)?,
                    a_scale,
                    a_zero: operand(2),
                    b,
                    b_scale,
                    b_zero: operand(3),
                    steps,
                })
            })
    }

    /// Returns the product if its operands are of forms that its kernels take.
    fn checked(self, module: &Module) -> Option<Product> {
        bytes_of(module, self.a)?;
        bytes_of(module, self.b.value())?;
        (node::shape(module, self.a)?.len() >= 2).then_some(())?;
        let zeros = [(self.a_zero, self.a), (self.b_zero, self.b.value())];
        for (zero, bytes) in zeros {
            let is_alike = |zero| bytes_of(module, zero) == bytes_of(module, bytes);
            zero.is_none_or(is_alike).then_some(())?;
        }
        self.a_zero
            .is_none_or(|zero| is_one(module, zero))
            .then_some(())?;
        match &self.b {
            Right::Matrix { extents, .. } => {
                for value in [self.b_zero].into_iter().flatten() {
                    let n = i64::try_from(node::constant(module, value)?.n_elements()?).ok()?;
                    [1, extents[1]].contains(&n).then_some(())?;
                }
            }
            Right::Tensor(b) => {
                (node::shape(module, *b)?.len() >= 2).then_some(())?;
                self.b_zero
                    .is_none_or(|zero| is_one(module, zero))
                    .then_some(())?;
            }
        }
        Some(self)
    }

    /// Returns the scales of the right side, which are constants: one for all columns, or one for each.
    fn scales(&self, module: &Module) -> Option<Vec<f64>> {
        let Scale::Value(scale) = self.b_scale else {
            return Some(vec![1.0]);
        };
        node::is_f32(module, scale).then_some(())?;
        let scales = node::dense_floats(node::constant(module, scale)?)?;
        let n = i64::try_from(scales.len()).ok()?;
        let fits = n == 1 || self.b.columns() == Some(n);
        (fits && scales.iter().all(|scale| is_scale(*scale))).then_some(scales)
    }

    /// Returns something if a bias has an element for each column.
    fn expect_bias(&self, module: &Module, bias: ValueId) -> Option<()> {
        let shape = node::shape(module, bias)?;
        let (last, leading) = shape.split_last()?;
        let rank = node::shape(module, self.a)?.len();
        let fits = Some(*last) == self.b.columns()
            && shape.len() <= rank
            && leading.iter().all(|extent| *extent == 1);
        (fits && is_constant(module, bias)).then_some(())
    }

    /// Appends what the operands need, and returns tensor, scale and zero point of both sides.
    fn operands(&self, rewrite: &mut Rewrite<'_>, op: OpId) -> [[ValueId; 3]; 2] {
        let a_zero = zero(rewrite, self.a_zero, self.a, op);
        let b_zero = zero(rewrite, self.b_zero, self.b.value(), op);
        let [a_scale, b_scale] = [self.a_scale, self.b_scale].map(|scale| match scale {
            Scale::Value(scale) => rewrite.mapped(scale),
            Scale::One => {
                let one = tfrt_ir::attributes::DenseAttribute {
                    ty: Type::tensor(Vec::new(), Type::F32),
                    elements: tfrt_ir::attributes::DenseElements::Bytes(
                        1.0_f32.to_le_bytes().to_vec().into(),
                    ),
                    splat: true,
                };
                rewrite.constant(one, op)
            }
        });
        let mut b = rewrite.mapped(self.b.value());
        if let Right::Matrix {
            extents,
            is_turned: true,
            ..
        } = self.b
        {
            let element = node::element(rewrite.module.value_type(b));
            let ty = Type::tensor(extents.to_vec(), element.expect("it is one of bytes"));
            let state = OpState::new("graph.transpose")
                .operand(b)
                .attribute("perm", list(&[1, 0]));
            b = rewrite.add(state.result(ty), op);
        }
        [
            [rewrite.mapped(self.a), a_scale, a_zero],
            [b, b_scale, b_zero],
        ]
    }
}

/// Returns whether a value is a constant of `f32` or `i32`, or what is dequantised of a constant.
fn is_constant(module: &Module, value: ValueId) -> bool {
    is_fixed(module, value) || node::constant(module, value).is_some()
}

/// Takes the factor of sums apart: a number for all, and constants for columns.
fn factors(module: &Module, scale: ValueId, columns: i64) -> Option<(Scale, Scale)> {
    let is_of_columns = |value: ValueId| {
        let constant = node::constant(module, value);
        constant.is_some_and(|dense| [&[][..], &[1], &[columns]].contains(&&dense.shape()[..]))
    };
    let own = module
        .defining_op(scale)
        .filter(|op| node::name(module, *op) == "mul");
    let both = own.and_then(|op| {
        let mut pairs = node::pairs(module, op).into_iter().flatten();
        pairs.find(|(one, other)| is_one(module, *one) && is_of_columns(*other))
    });
    match both {
        Some((one, other)) => Some((Scale::Value(one), Scale::Value(other))),
        None if is_of_columns(scale) => Some((Scale::One, Scale::Value(scale))),
        None if is_one(module, scale) => Some((Scale::Value(scale), Scale::One)),
        None => None,
    }
}

/// Returns a zero point, which is made where it was left out.
fn zero(rewrite: &mut Rewrite<'_>, zero: Option<ValueId>, bytes: ValueId, op: OpId) -> ValueId {
    match zero {
        Some(zero) => rewrite.mapped(zero),
        None => zero_of(rewrite, bytes, op),
    }
}
