//! CHLO: functions that JAX leaves as they are, and operations that are broadcast.

use tfrt_ir::{Attribute, OpId, Type, ValueId};

use super::attributes::check_axes;
use super::build::{encoded, int, is_float, is_unsigned, unsigned, width};
use super::elements::Pair;
use super::sizes::Size;
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("chlo.acos", |l, op| {
        l.floats(op, "acos", Lowering::complex_acos)
    }),
    ("chlo.acosh", |l, op| {
        l.floats(op, "acosh", Lowering::complex_acosh)
    }),
    ("chlo.asin", |l, op| {
        l.floats(op, "asin", Lowering::complex_asin)
    }),
    ("chlo.asinh", |l, op| {
        l.floats(op, "asinh", Lowering::complex_asinh)
    }),
    ("chlo.atan", |l, op| {
        l.floats(op, "atan", Lowering::complex_atan)
    }),
    ("chlo.atanh", |l, op| {
        l.floats(op, "atanh", Lowering::complex_atanh)
    }),
    ("chlo.broadcast_add", |l, op| {
        l.broadcast_arithmetic(op, "add", Some("or"))
    }),
    ("chlo.broadcast_divide", |l, op| {
        l.broadcast_arithmetic(op, "div", None)
    }),
    ("chlo.broadcast_maximum", |l, op| {
        l.broadcast_arithmetic(op, "max", Some("or"))
    }),
    ("chlo.broadcast_minimum", |l, op| {
        l.broadcast_arithmetic(op, "min", Some("and"))
    }),
    ("chlo.broadcast_multiply", |l, op| {
        l.broadcast_arithmetic(op, "mul", Some("and"))
    }),
    ("chlo.broadcast_subtract", |l, op| {
        l.broadcast_arithmetic(op, "sub", None)
    }),
    ("chlo.conj", conj),
    ("chlo.constant", |l, op| {
        let value = match l.attribute(op, "value") {
            Some(Attribute::Dense(dense)) => dense.clone(),
            _ => return Err("requires attribute 'value', dense elements".to_owned()),
        };
        Ok(vec![Bound::Tensor(l.constant(&value))])
    }),
    ("chlo.cosh", |l, op| {
        l.floats(op, "cosh", Lowering::complex_cosh)
    }),
    ("chlo.digamma", digamma),
    ("chlo.erf", |l, op| l.float(op, "erf")),
    ("chlo.erf_inv", |l, op| {
        let x = l.operand(op, 0)?;
        Ok(vec![Bound::Tensor(l.inverse_erf(x))])
    }),
    ("chlo.erfc", |l, op| l.float(op, "erfc")),
    ("chlo.is_inf", |l, op| l.infinite(op, true, true)),
    ("chlo.is_neg_inf", |l, op| l.infinite(op, false, true)),
    ("chlo.is_pos_inf", |l, op| l.infinite(op, true, false)),
    ("chlo.lgamma", |l, op| l.float(op, "lgamma")),
    ("chlo.next_after", next_after),
    ("chlo.sinh", |l, op| {
        l.floats(op, "sinh", Lowering::complex_sinh)
    }),
    ("chlo.square", |l, op| {
        l.floats(op, "square", |l, x| l.product(x, x))
    }),
    ("chlo.tan", |l, op| {
        l.floats(op, "tan", Lowering::complex_tan)
    }),
    ("chlo.top_k", top_k),
];

pub(super) const CALLS: &[(&str, LowerFn)] = &[("stablehlo.dynamic_top_k", dynamic_top_k)];

impl Lowering<'_> {
    fn float(&mut self, op: OpId, row: &str) -> Lowered {
        let x = self.operand(op, 0)?;
        Ok(vec![Bound::Tensor(self.unary(row, x))])
    }

    fn infinite(&mut self, op: OpId, positive: bool, negative: bool) -> Lowered {
        let x = self.operand(op, 0)?;
        let attributes = [
            ("positive", int(i64::from(positive))),
            ("negative", int(i64::from(negative))),
        ];
        Ok(vec![Bound::Tensor(self.pointwise(
            "is_inf",
            &[x],
            &attributes,
            &Type::I1,
        ))])
    }

    fn broadcast_arithmetic(&mut self, op: OpId, row: &str, truth: Option<&str>) -> Lowered {
        let mut operands = Vec::with_capacity(2);
        let places = self.maybe_ints(op, "broadcast_dimensions")?;
        let values = [self.operand(op, 0)?, self.operand(op, 1)?];
        let rank = values
            .iter()
            .map(|value| self.rank(*value))
            .max()
            .unwrap_or(0);
        for value in values {
            let own = self.rank(value);
            operands.push(match &places {
                Some(places) if own < rank => {
                    let places = check_axes(places, rank)?;
                    if places.len() != own {
                        return Err(format!(
                            "has {} broadcast dimensions for a tensor of rank {own}",
                            places.len()
                        ));
                    }
                    let dims = self.dims(value);
                    let mut apart = vec![1; rank];
                    for (place, size) in places.iter().zip(dims) {
                        apart[*place] = size;
                    }
                    Bound::Tensor(self.reshaped(value, &apart))
                }
                _ => Bound::Tensor(value),
            });
        }
        let operands = [operands[0].clone(), operands[1].clone()];
        Ok(vec![self.calculated(row, truth, operands)?])
    }

    fn polynomial(&mut self, x: ValueId, coefficients: &[f64]) -> ValueId {
        let element = self.element(x);
        let mut value = self.number(&element, coefficients[0]);
        for coefficient in &coefficients[1..] {
            let product = self.binary("mul", value, x);
            value = self.with_number("add", product, *coefficient);
        }
        value
    }

    /// The inverse of the error function, by Giles' polynomials ("Approximating the erfinv function", 2010), and for f64 two
    /// of Newton's steps.
    fn inverse_erf(&mut self, x: ValueId) -> ValueId {
        let element = self.element(x);
        let by = if element == Type::F64 {
            Type::F64
        } else {
            Type::F32
        };
        let x = self.cast(x, &by);
        let minus = self.unary("neg", x);
        let square = self.binary("mul", x, minus);
        let log = self.unary("log1p", square);
        let w = self.unary("neg", log);
        let near = self.with_number("sub", w, 2.5);
        let near = self.polynomial(
            near,
            &[
                2.810_226_36e-8,
                3.432_739_39e-7,
                -3.523_387_7e-6,
                -4.391_506_54e-6,
                0.000_218_580_87,
                -0.001_253_725_03,
                -0.004_177_681_64,
                0.246_640_727,
                1.501_409_41,
            ],
        );
        let root = self.unary("sqrt", w);
        let far = self.with_number("sub", root, 3.0);
        let far = self.polynomial(
            far,
            &[
                -0.000_200_214_257,
                0.000_100_950_558,
                0.001_349_343_22,
                -0.003_673_428_44,
                0.005_739_507_73,
                -0.007_622_461_3,
                0.009_438_870_47,
                1.001_674_06,
                2.832_976_82,
            ],
        );
        let five = self.number(&by, 5.0);
        let is_near = self.compare("lt", w, five);
        let factor = self.select(is_near, near, far);
        let mut value = self.binary("mul", factor, x);
        if by == Type::F64 {
            for _ in 0..3 {
                // erf(y) - x, over 2 / √π exp(-y²), with the second derivative.
                let erf = self.unary("erf", value);
                let less = self.binary("sub", erf, x);
                let square = self.binary("mul", value, value);
                let minus = self.unary("neg", square);
                let slope = self.unary("exp", minus);
                let slope = self.with_number("mul", slope, std::f64::consts::FRAC_2_SQRT_PI);
                let step = self.binary("div", less, slope);
                let bend = self.binary("mul", value, step);
                let bend = self.with_number("add", bend, 1.0);
                let step = self.binary("div", step, bend);
                value = self.binary("sub", value, step);
            }
        }
        // The ends are infinite.
        let size = self.unary("abs", x);
        let one = self.number(&by, 1.0);
        let is_end = self.compare("eq", size, one);
        let infinite = self.elements(&[], &by, encoded(&by, f64::INFINITY));
        let end = self.binary("mul", x, infinite);
        let value = self.select(is_end, end, value);
        self.cast(value, &element)
    }

    fn complex_cosh(&mut self, (a, b): Pair) -> Pair {
        let minus = self.unary("neg", b);
        self.complex_cos((minus, a))
    }

    fn complex_sinh(&mut self, (a, b): Pair) -> Pair {
        let minus = self.unary("neg", b);
        let (real, imaginary) = self.complex_sin((minus, a));
        (imaginary, self.unary("neg", real))
    }

    /// asin(x) = -i log(i x + √(1 - x²)), by asinh: -i asinh(i x).
    fn complex_asin(&mut self, (a, b): Pair) -> Pair {
        let minus = self.unary("neg", b);
        let (real, imaginary) = self.complex_asinh((minus, a));
        (imaginary, self.unary("neg", real))
    }

    fn complex_acos(&mut self, x: Pair) -> Pair {
        let (real, imaginary) = self.complex_asin(x);
        let minus = self.unary("neg", real);
        let real = self.with_number("add", minus, std::f64::consts::FRAC_PI_2);
        (real, self.unary("neg", imaginary))
    }

    /// asinh(x) = log(x + √(x² + 1)), of the half plane where nothing is lost.
    fn complex_asinh(&mut self, x: Pair) -> Pair {
        let zero = self.number(&self.element(x.0), 0.0);
        let is_left = self.compare("lt", x.0, zero);
        let minus = (self.unary("neg", x.0), self.unary("neg", x.1));
        let turned = (
            self.select(is_left, minus.0, x.0),
            self.select(is_left, minus.1, x.1),
        );
        let root = self.root_of_square(turned, 1.0);
        let sum = self.complex_sum(turned, root);
        let (real, imaginary) = self.complex_log(sum);
        let back = (self.unary("neg", real), self.unary("neg", imaginary));
        (
            self.select(is_left, back.0, real),
            self.select(is_left, back.1, imaginary),
        )
    }

    /// acosh(x) = log(x + √(x + 1) √(x - 1)).
    fn complex_acosh(&mut self, (a, b): Pair) -> Pair {
        let (more, less) = (
            self.with_number("add", a, 1.0),
            self.with_number("sub", a, 1.0),
        );
        let (first, second) = (self.complex_sqrt((more, b)), self.complex_sqrt((less, b)));
        let product = self.product(first, second);
        let sum = self.complex_sum((a, b), product);
        self.complex_log(sum)
    }

    /// atanh(x) = (log(1 + x) - log(1 - x)) / 2.
    fn complex_atanh(&mut self, (a, b): Pair) -> Pair {
        let (minus_a, minus_b) = (self.unary("neg", a), self.unary("neg", b));
        let (first, second) = (
            self.complex_log1p((a, b)),
            self.complex_log1p((minus_a, minus_b)),
        );
        let (real, imaginary) = self.complex_difference(first, second);
        (
            self.with_number("mul", real, 0.5),
            self.with_number("mul", imaginary, 0.5),
        )
    }

    /// atan(x) = -i atanh(i x).
    fn complex_atan(&mut self, (a, b): Pair) -> Pair {
        let minus = self.unary("neg", b);
        let (real, imaginary) = self.complex_atanh((minus, a));
        (imaginary, self.unary("neg", real))
    }
}

fn conj(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    Ok(vec![match l.bound(op, 0)? {
        Bound::Complex(real, imaginary) => Bound::Complex(real, l.unary("neg", imaginary)),
        other => other,
    }])
}

fn top_k(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let k = Size::Known(l.int(op, "k")?);
    largest(l, op, k)
}

/// A call that is given how many elements it takes, as JAX writes it for extents that are symbols.
fn dynamic_top_k(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let k = l.sizes_of(op, 1, 1)?[0];
    largest(l, op, k)
}

/// The largest elements along the last dimension, from the largest on, and their places.
fn largest(l: &mut Lowering<'_>, op: OpId, k: Size) -> Lowered {
    let x = l.operand(op, 0)?;
    let mut dims = l.dims(x);
    let last = dims.last_mut().ok_or("takes a number, expected a tensor")?;
    if let Size::Known(k) = k
        && (k < 0 || (*last >= 0 && k > *last))
    {
        return Err(format!("takes the {k} largest of {last} elements"));
    }
    *last = k.dim();
    let element = l.element(x);
    let k = l.size_list(k);
    // Of floats the total order counts: what is no number is the largest.
    let plain = is_float(&element) && l.dims(x).last().is_some_and(|size| *size > 1024);
    let key = match &element {
        _ if plain => x,
        element if is_float(element) => l.ordered(x),
        _ => x,
    };
    let key = match l.element(key) {
        own if !is_float(&own) && width(&own) < 32 => {
            let wide = if is_unsigned(&own) {
                Type::UI32
            } else {
                Type::I32
            };
            l.cast(key, &wide)
        }
        _ => key,
    };
    let types = vec![
        Type::tensor(dims.clone(), l.element(key)),
        Type::tensor(dims.clone(), Type::I64),
    ];
    let made = l.add_all("top_k", &[key, k], &[], types);
    let values = match key == x {
        true => made[0],
        false => {
            let attributes = [("axis", int(-1))];
            l.add(
                "gather_elements",
                &[x, made[1]],
                &attributes,
                &dims,
                &element,
            )
        }
    };
    let (_, index) = l.stated(op, 1)?;
    Ok(vec![
        Bound::Tensor(values),
        Bound::Tensor(l.cast(made[1], &index)),
    ])
}

/// The next float from one towards another.
fn next_after(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (x, y) = (l.operand(op, 0)?, l.operand(op, 1)?);
    let element = l.element(x);
    let n_bits = width(&element);
    let bits = unsigned(n_bits);
    let value = l.bits(x, &bits);
    let sign = l.number(&bits, f64::powi(2.0, n_bits.cast_signed() - 1));
    let zero = l.number(&element, 0.0);
    let (same, is_zero) = (l.compare("eq", x, y), l.compare("eq", x, zero));
    // Away from 0 bits grow by one, towards it they shrink.
    let (positive, below) = (l.compare("gt", x, zero), l.compare("lt", x, y));
    let grows = l.compare("eq", positive, below);
    let (more, less) = (
        l.with_number("add", value, 1.0),
        l.with_number("sub", value, 1.0),
    );
    let next = l.select(grows, more, less);
    let of_target = l.bits(y, &bits);
    let least = l.binary("bit_and", of_target, sign);
    let least = l.with_number("bit_or", least, 1.0);
    let next = l.select(is_zero, least, next);
    let next = l.bits(next, &element);
    let next = l.select(same, y, next);
    let [first, second] = [x, y].map(|value| l.pointwise("is_nan", &[value], &[], &Type::I1));
    let sum = l.binary("add", x, y);
    let none = l.binary("or", first, second);
    Ok(vec![Bound::Tensor(l.select(none, sum, next))])
}

/// The derivative of the logarithm of the gamma function: by its asymptotic series far from 0, to which a number is moved;
/// by reflection below 1/2. It is calculated in f64.
fn digamma(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let operand = l.operand(op, 0)?;
    let element = l.element(operand);
    let x = l.cast(operand, &Type::F64);
    let half = l.number(&Type::F64, 0.5);
    let reflects = l.compare("lt", x, half);
    let minus = l.unary("neg", x);
    let other = l.with_number("add", minus, 1.0);
    let mut z = l.select(reflects, other, x);
    let mut sum = l.number(&Type::F64, 0.0);
    let one = l.number(&Type::F64, 1.0);
    for _ in 0..10 {
        let part = l.binary("div", one, z);
        sum = l.binary("sub", sum, part);
        z = l.with_number("add", z, 1.0);
    }
    let inverse = l.binary("div", one, z);
    let square = l.binary("mul", inverse, inverse);
    let series = l.polynomial(
        square,
        &[
            -1.0 / 12.0,
            691.0 / 32_760.0,
            -1.0 / 132.0,
            1.0 / 240.0,
            -1.0 / 252.0,
            1.0 / 120.0,
            -1.0 / 12.0,
            0.0,
        ],
    );
    let log = l.unary("log", z);
    let half_inverse = l.with_number("mul", inverse, 0.5);
    let value = l.binary("sub", log, half_inverse);
    let value = l.binary("add", value, series);
    let value = l.binary("add", value, sum);
    // π cot(πx), by the part of x behind the point: it has poles at whole numbers.
    let whole = l.unary("floor", x);
    let part = l.binary("sub", x, whole);
    let turned = l.with_number("mul", part, std::f64::consts::PI);
    let tan = l.unary("tan", turned);
    let pi = l.number(&Type::F64, std::f64::consts::PI);
    let cot = l.binary("div", pi, tan);
    let reflected = l.binary("sub", value, cot);
    let value = l.select(reflects, reflected, value);
    let zero = l.number(&Type::F64, 0.0);
    let is_whole = l.compare("eq", part, zero);
    let is_left = l.compare("le", x, zero);
    let pole = l.binary("and", is_whole, is_left);
    let none = l.elements(&[], &Type::F64, encoded(&Type::F64, f64::NAN));
    let value = l.select(pole, none, value);
    Ok(vec![Bound::Tensor(l.cast(value, &element))])
}
