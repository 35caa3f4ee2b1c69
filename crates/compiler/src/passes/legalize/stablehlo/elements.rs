//! Elementwise operations.

use tfrt_ir::{Attribute, OpId, Type, ValueId};

use super::build::{is_bool, is_float, is_unsigned, unsigned, width};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.abs", abs),
    ("stablehlo.add", |l, op| l.arithmetic(op, "add", Some("or"))),
    ("stablehlo.and", |l, op| l.logic(op, "and", "bit_and")),
    ("stablehlo.atan2", |l, op| {
        l.binary_floats(op, "atan2", Lowering::complex_atan2)
    }),
    ("stablehlo.cbrt", |l, op| {
        l.floats(op, "cbrt", Lowering::complex_cbrt)
    }),
    ("stablehlo.ceil", |l, op| l.real(op, "ceil")),
    ("stablehlo.clamp", clamp),
    ("stablehlo.compare", compare),
    ("stablehlo.complex", complex),
    ("stablehlo.constant", constant),
    ("stablehlo.convert", convert),
    ("stablehlo.cosine", |l, op| {
        l.floats(op, "cos", Lowering::complex_cos)
    }),
    ("stablehlo.divide", |l, op| l.arithmetic(op, "div", None)),
    ("stablehlo.exponential", |l, op| {
        l.floats(op, "exp", Lowering::complex_exp)
    }),
    ("stablehlo.exponential_minus_one", |l, op| {
        l.floats(op, "expm1", Lowering::complex_expm1)
    }),
    ("stablehlo.floor", |l, op| l.real(op, "floor")),
    ("stablehlo.imag", imag),
    ("stablehlo.is_finite", |l, op| {
        let x = l.operand(op, 0)?;
        Ok(vec![Bound::Tensor(l.pointwise(
            "is_finite",
            &[x],
            &[],
            &Type::I1,
        ))])
    }),
    ("stablehlo.log", |l, op| {
        l.floats(op, "log", Lowering::complex_log)
    }),
    ("stablehlo.log_plus_one", |l, op| {
        l.floats(op, "log1p", Lowering::complex_log1p)
    }),
    ("stablehlo.logistic", |l, op| {
        l.floats(op, "sigmoid", Lowering::complex_logistic)
    }),
    ("stablehlo.maximum", |l, op| {
        l.arithmetic(op, "max", Some("or"))
    }),
    ("stablehlo.minimum", |l, op| {
        l.arithmetic(op, "min", Some("and"))
    }),
    ("stablehlo.multiply", |l, op| {
        l.arithmetic(op, "mul", Some("and"))
    }),
    ("stablehlo.negate", |l, op| {
        let x = l.bound(op, 0)?;
        l.each(x, |l, x| Ok(l.unary("neg", x)))
    }),
    ("stablehlo.not", not),
    ("stablehlo.or", |l, op| l.logic(op, "or", "bit_or")),
    ("stablehlo.power", power),
    ("stablehlo.real", real),
    ("stablehlo.remainder", |l, op| l.arithmetic(op, "rem", None)),
    ("stablehlo.round_nearest_afz", round_away),
    ("stablehlo.round_nearest_even", |l, op| l.real(op, "round")),
    ("stablehlo.rsqrt", |l, op| {
        l.floats(op, "rsqrt", Lowering::complex_rsqrt)
    }),
    ("stablehlo.select", select),
    ("stablehlo.sign", sign),
    ("stablehlo.sine", |l, op| {
        l.floats(op, "sin", Lowering::complex_sin)
    }),
    ("stablehlo.sqrt", |l, op| {
        l.floats(op, "sqrt", Lowering::complex_sqrt)
    }),
    ("stablehlo.subtract", |l, op| {
        l.arithmetic(op, "sub", Some("xor"))
    }),
    ("stablehlo.tan", |l, op| {
        l.floats(op, "tan", Lowering::complex_tan)
    }),
    ("stablehlo.tanh", |l, op| {
        l.floats(op, "tanh", Lowering::complex_tanh)
    }),
    ("stablehlo.xor", |l, op| l.logic(op, "xor", "bit_xor")),
];

/// A complex number as its parts.
pub(super) type Pair = (ValueId, ValueId);

impl Lowering<'_> {
    /// A function of real numbers.
    fn real(&mut self, op: OpId, row: &str) -> Lowered {
        let x = self.operand(op, 0)?;
        Ok(vec![Bound::Tensor(self.unary(row, x))])
    }

    /// A function of floats, or of complex numbers.
    pub(super) fn floats(
        &mut self,
        op: OpId,
        row: &str,
        complex: fn(&mut Self, Pair) -> Pair,
    ) -> Lowered {
        Ok(vec![match self.bound(op, 0)? {
            Bound::Complex(real, imaginary) => {
                // Differences of almost equal numbers are many here: twice the digits leave enough.
                let part = self.element(real);
                let wide = [real, imaginary].map(|part| self.cast(part, &Type::F64));
                let (real, imaginary) = complex(self, (wide[0], wide[1]));
                Bound::Complex(self.cast(real, &part), self.cast(imaginary, &part))
            }
            _ => Bound::Tensor({
                let x = self.operand(op, 0)?;
                self.unary(row, x)
            }),
        }])
    }

    fn binary_floats(
        &mut self,
        op: OpId,
        row: &str,
        complex: fn(&mut Self, Pair, Pair) -> Pair,
    ) -> Lowered {
        Ok(vec![match (self.bound(op, 0)?, self.bound(op, 1)?) {
            (Bound::Complex(a, b), Bound::Complex(c, d)) => {
                let (real, imaginary) = complex(self, (a, b), (c, d));
                Bound::Complex(real, imaginary)
            }
            _ => {
                let (x, y) = (self.operand(op, 0)?, self.operand(op, 1)?);
                Bound::Tensor(self.binary(row, x, y))
            }
        }])
    }

    /// Arithmetic of two operands; `truth` is the row on truth values.
    fn arithmetic(&mut self, op: OpId, row: &str, truth: Option<&str>) -> Lowered {
        let operands = [self.bound(op, 0)?, self.bound(op, 1)?];
        Ok(vec![self.calculated(row, truth, operands)?])
    }

    /// Calculates a row of arithmetic on real or complex numbers, or truth values.
    pub(super) fn calculated(
        &mut self,
        row: &str,
        truth: Option<&str>,
        operands: [Bound; 2],
    ) -> Result<Bound, String> {
        match operands {
            [Bound::Complex(a, b), Bound::Complex(c, d)] => {
                let (real, imaginary) = self.complex_arithmetic(row, (a, b), (c, d))?;
                Ok(Bound::Complex(real, imaginary))
            }
            [Bound::Tensor(x), Bound::Tensor(y)] => {
                Ok(Bound::Tensor(self.number_of(row, truth, x, y)?))
            }
            _ => Err("expected two tensors of the same type".to_owned()),
        }
    }

    fn number_of(
        &mut self,
        row: &str,
        truth: Option<&str>,
        x: ValueId,
        y: ValueId,
    ) -> Result<ValueId, String> {
        let element = self.element(x);
        if element != self.element(y) {
            let other = self.element(y);
            return Err(format!(
                "takes operands of {element} and {other}, expected one type"
            ));
        }
        if is_bool(&element) {
            let row = truth.ok_or("takes truth values, expected numbers")?;
            return Ok(self.binary(row, x, y));
        }
        let known = match (self.known(x), self.known(y)) {
            (Some(x), Some(y)) if x.len() == y.len() => integers(row, &x, &y),
            _ => None,
        };
        let value = match row {
            "rem" => {
                let truncated = [("truncated", super::build::int(1))];
                match is_float(&element) {
                    true => self.pointwise(row, &[x, y], &truncated, &element),
                    false => self.divided(row, &truncated, x, y),
                }
            }
            "div" if !is_float(&element) => self.divided(row, &[], x, y),
            "div" => match self.mean_of_windows(x, y)? {
                Some(mean) => mean,
                None => self.binary(row, x, y),
            },
            _ => self.binary(row, x, y),
        };
        self.note(value, known);
        Ok(value)
    }

    /// Divides integers: by 0 the quotient has all bits set, and the remainder is the dividend.
    fn divided(
        &mut self,
        row: &str,
        attributes: &[(&str, Attribute)],
        x: ValueId,
        y: ValueId,
    ) -> ValueId {
        let element = self.element(x);
        if self.known_number(y).is_some_and(|y| y != 0.0 && y != -1.0) {
            return self.pointwise(row, &[x, y], attributes, &element);
        }
        let none = self.number(&element, 0.0);
        let one = self.number(&element, 1.0);
        let is_zero = self.compare("eq", y, none);
        let mut divisor = self.select(is_zero, one, y);
        if is_unsigned(&element) {
            let value = self.pointwise(row, &[x, divisor], attributes, &element);
            let all = self.unary("bit_not", none);
            let otherwise = if row == "div" { all } else { x };
            return self.select(is_zero, otherwise, value);
        }
        // The least number divided by -1 is no number: it wraps around.
        let minus = self.number(&element, -1.0);
        let is_minus = self.compare("eq", y, minus);
        divisor = self.select(is_minus, one, divisor);
        let value = self.pointwise(row, &[x, divisor], attributes, &element);
        let (by_zero, by_minus) = match row {
            "div" => (minus, self.unary("neg", x)),
            _ => (x, none),
        };
        let value = self.select(is_minus, by_minus, value);
        self.select(is_zero, by_zero, value)
    }

    fn logic(&mut self, op: OpId, truth: &str, bits: &str) -> Lowered {
        let (x, y) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let row = if is_bool(&self.element(x)) {
            truth
        } else {
            bits
        };
        Ok(vec![Bound::Tensor(self.binary(row, x, y))])
    }
}

/// Calculates integers that are extents.
fn integers(row: &str, x: &[i64], y: &[i64]) -> Option<Vec<i64>> {
    let pairs = x.iter().zip(y);
    let one = |(x, y): (&i64, &i64)| match row {
        "add" => x.checked_add(*y),
        "sub" => x.checked_sub(*y),
        "mul" => x.checked_mul(*y),
        "div" => x.checked_div(*y),
        "rem" => x.checked_rem(*y),
        "max" => Some(*x.max(y)),
        "min" => Some(*x.min(y)),
        _ => None,
    };
    pairs.map(one).collect()
}

fn abs(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    Ok(vec![Bound::Tensor(match l.bound(op, 0)? {
        Bound::Complex(real, imaginary) => l.size((real, imaginary)),
        _ => {
            let x = l.operand(op, 0)?;
            l.unary("abs", x)
        }
    })])
}

fn sign(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    Ok(vec![match l.bound(op, 0)? {
        Bound::Complex(real, imaginary) => {
            let (real, imaginary) = l.complex_sign((real, imaginary));
            Bound::Complex(real, imaginary)
        }
        _ => {
            let x = l.operand(op, 0)?;
            let sign = l.unary("sign", x);
            match is_float(&l.element(x)) {
                // The sign of -0 is -0.
                true => {
                    let zero = l.number(&l.element(x), 0.0);
                    let is_zero = l.compare("eq", x, zero);
                    Bound::Tensor(l.select(is_zero, x, sign))
                }
                false => Bound::Tensor(sign),
            }
        }
    }])
}

fn real(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    Ok(vec![match l.bound(op, 0)? {
        Bound::Complex(real, _) => Bound::Tensor(real),
        other => other,
    }])
}

fn imag(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    Ok(vec![Bound::Tensor(match l.bound(op, 0)? {
        Bound::Complex(_, imaginary) => imaginary,
        _ => {
            let x = l.operand(op, 0)?;
            let zero = l.number(&l.element(x), 0.0);
            l.widened_like(zero, x)
        }
    })])
}

fn complex(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    Ok(vec![Bound::Complex(l.operand(op, 0)?, l.operand(op, 1)?)])
}

fn constant(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let value = match l.attribute(op, "value") {
        Some(Attribute::Dense(dense)) => dense.clone(),
        Some(other) => {
            return Err(format!(
                "attribute 'value': expected dense elements, found {other}"
            ));
        }
        None => return Err("requires attribute 'value'".to_owned()),
    };
    if let Some(quantization) = l.quantization(op, 0)? {
        // It states the integers.
        let (_, storage) = l.stated(op, 0)?;
        if *value.element_type() != storage {
            let found = value.element_type();
            return Err(format!("states numbers of {found}, expected {storage}"));
        }
        return Ok(vec![Bound::Quantized(l.constant(&value), quantization)]);
    }
    let Type::Complex(part) = value.element_type() else {
        return Ok(vec![Bound::Tensor(l.constant(&value))]);
    };
    let size = width(part).div_ceil(8) as usize;
    let parts = [0, size].map(|start| {
        let all = value.bytes().chunks_exact(2 * size);
        let bytes: Vec<u8> = all
            .flat_map(|pair| pair[start..start + size].to_vec())
            .collect();
        tfrt_ir::attributes::DenseAttribute {
            ty: Type::tensor(value.shape(), (**part).clone()),
            elements: tfrt_ir::attributes::DenseElements::Bytes(bytes.into()),
            splat: value.splat,
        }
    });
    let [real, imaginary] = parts.map(|part| l.constant(&part));
    Ok(vec![Bound::Complex(real, imaginary)])
}

fn clamp(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let operands = l.tensors(op)?;
    let [least, x, most] = operands[..] else {
        return Err(format!("expected 3 operands, found {}", operands.len()));
    };
    let above = l.binary("max", x, least);
    let within = l.binary("min", above, most);
    // Bounds are scalars or have the extents of the operand.
    let known = l.known(x).zip(l.known(least)).zip(l.known(most));
    if let Some(((x, least), most)) = known
        && x.len() == 1
        && least.len() == 1
        && most.len() == 1
    {
        l.note(within, Some(vec![x[0].max(least[0]).min(most[0])]));
    }
    Ok(vec![Bound::Tensor(within)])
}

fn select(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let condition = l.operand(op, 0)?;
    Ok(vec![match (l.bound(op, 1)?, l.bound(op, 2)?) {
        (Bound::Complex(a, b), Bound::Complex(c, d)) => {
            Bound::Complex(l.select(condition, a, c), l.select(condition, b, d))
        }
        _ => {
            let (x, y) = (l.operand(op, 1)?, l.operand(op, 2)?);
            let known = match (l.known(condition), l.known(x), l.known(y)) {
                (Some(condition), Some(x), Some(y)) if condition.len() == 1 => {
                    Some(if condition[0] == 0 { y } else { x })
                }
                _ => None,
            };
            let value = l.select(condition, x, y);
            l.note(value, known);
            Bound::Tensor(value)
        }
    }])
}

fn not(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let x = l.operand(op, 0)?;
    let row = if is_bool(&l.element(x)) {
        "not"
    } else {
        "bit_not"
    };
    Ok(vec![Bound::Tensor(l.unary(row, x))])
}

fn compare(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let direction = l.word(op, "comparison_direction").to_owned();
    let row = match direction.as_str() {
        "EQ" => "eq",
        "NE" => "ne",
        "LT" => "lt",
        "LE" => "le",
        "GT" => "gt",
        "GE" => "ge",
        other => {
            return Err(format!(
                "attribute 'comparison_direction': expected EQ, NE, LT, LE, GT or GE, found '{other}'"
            ));
        }
    };
    let is_total = l.word(op, "compare_type") == "TOTALORDER";
    Ok(vec![Bound::Tensor(
        match (l.bound(op, 0)?, l.bound(op, 1)?) {
            (Bound::Complex(a, b), Bound::Complex(c, d)) => {
                let (real, imaginary) = (l.compare(row, a, c), l.compare(row, b, d));
                match row {
                    "eq" => l.binary("and", real, imaginary),
                    "ne" => l.binary("or", real, imaginary),
                    _ => return Err("compares complex numbers, which have no order".to_owned()),
                }
            }
            _ => {
                let (mut x, mut y) = (l.operand(op, 0)?, l.operand(op, 1)?);
                if l.element(x) != l.element(y) {
                    let (x, y) = (l.element(x), l.element(y));
                    return Err(format!("takes operands of {x} and {y}, expected one type"));
                }
                if is_total && is_float(&l.element(x)) {
                    (x, y) = (l.ordered(x), l.ordered(y));
                }
                if is_bool(&l.element(x)) && !matches!(row, "eq" | "ne") {
                    (x, y) = (l.cast(x, &Type::UI8), l.cast(y, &Type::UI8));
                }
                let known = match (l.known(x), l.known(y)) {
                    (Some(x), Some(y)) if x.len() == 1 && y.len() == 1 => {
                        Some(vec![i64::from(match row {
                            "eq" => x == y,
                            "ne" => x != y,
                            "lt" => x < y,
                            "le" => x <= y,
                            "gt" => x > y,
                            _ => x >= y,
                        })])
                    }
                    _ => None,
                };
                let value = l.compare(row, x, y);
                l.note(value, known);
                value
            }
        },
    )])
}

fn convert(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (_, to) = l.stated(op, 0)?;
    let value = l.bound(op, 0)?;
    Ok(vec![match (&to, value) {
        (Type::Complex(part), Bound::Complex(real, imaginary)) => {
            Bound::Complex(l.cast(real, part), l.cast(imaginary, part))
        }
        (Type::Complex(part), Bound::Tensor(x)) => {
            let real = l.cast(x, part);
            let zero = l.number(part, 0.0);
            Bound::Complex(real, l.widened_like(zero, real))
        }
        (to, Bound::Complex(real, _) | Bound::Tensor(real)) => Bound::Tensor(l.cast(real, to)),
        _ => return Err("expected a tensor".to_owned()),
    }])
}

fn power(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    Ok(vec![match (l.bound(op, 0)?, l.bound(op, 1)?) {
        (Bound::Complex(a, b), Bound::Complex(c, d)) => {
            let (real, imaginary) = l.complex_power((a, b), (c, d));
            Bound::Complex(real, imaginary)
        }
        _ => {
            let (x, y) = (l.operand(op, 0)?, l.operand(op, 1)?);
            let element = l.element(x);
            let value = match is_float(&element) {
                true => l.binary("pow", x, y),
                false => l.integer_power(x, y),
            };
            Bound::Tensor(value)
        }
    }])
}

impl Lowering<'_> {
    /// Powers of integers by squaring, which wrap around. Those to negative ones are 0 but of 1 and -1.
    fn integer_power(&mut self, x: ValueId, y: ValueId) -> ValueId {
        let element = self.element(x);
        let one = self.number(&element, 1.0);
        let zero = self.number(&element, 0.0);
        let bits = unsigned(width(&element));
        let (mut square, mut left) = (x, self.bits(y, &bits));
        let mut value = one;
        let n_bits = width(&element) - u32::from(!is_unsigned(&element));
        let (bit, amount) = (self.number(&bits, 1.0), self.number(&bits, 1.0));
        for _ in 0..n_bits {
            let last = self.binary("bit_and", left, bit);
            let is_set = self.compare("eq", last, bit);
            let more = self.binary("mul", value, square);
            value = self.select(is_set, more, value);
            square = self.binary("mul", square, square);
            left = self.binary("shift_right", left, amount);
        }
        if is_unsigned(&element) {
            return value;
        }
        let minus = self.number(&element, -1.0);
        let is_negative = self.compare("lt", y, zero);
        let is_one = self.compare("eq", x, one);
        let is_minus = self.compare("eq", x, minus);
        let odd = self.binary("bit_and", y, one);
        let is_odd = self.compare("eq", odd, one);
        let of_minus = self.select(is_odd, minus, one);
        let below = self.select(is_minus, of_minus, zero);
        let below = self.select(is_one, one, below);
        self.select(is_negative, below, value)
    }
}

fn round_away(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let x = l.operand(op, 0)?;
    let whole = l.unary("trunc", x);
    let rest = l.binary("sub", x, whole);
    let rest = l.unary("abs", rest);
    let half = l.number(&l.element(x), 0.5);
    let is_far = l.compare("ge", rest, half);
    let sign = l.unary("sign", x);
    let next = l.binary("add", whole, sign);
    Ok(vec![Bound::Tensor(l.select(is_far, next, whole))])
}
