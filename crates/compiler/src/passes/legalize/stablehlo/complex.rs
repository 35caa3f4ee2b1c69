//! Functions of complex numbers, which are two tensors.

use tfrt_ir::{Type, ValueId};

use super::Lowering;
use super::elements::Pair;

impl Lowering<'_> {
    /// Adds, subtracts, multiplies or divides.
    pub(super) fn complex_arithmetic(
        &mut self,
        row: &str,
        (a, b): Pair,
        (c, d): Pair,
    ) -> Result<Pair, String> {
        match row {
            "add" | "sub" => Ok((self.binary(row, a, c), self.binary(row, b, d))),
            "mul" => Ok(self.product((a, b), (c, d))),
            "div" => Ok(self.quotient((a, b), (c, d))),
            // The order is that of the real parts, then of the imaginary ones.
            "max" | "min" => {
                let (strict, other) = if row == "max" {
                    ("gt", "ge")
                } else {
                    ("lt", "le")
                };
                let first = self.compare(strict, a, c);
                let same = self.compare("eq", a, c);
                let second = self.compare(other, b, d);
                let second = self.binary("and", same, second);
                let takes = self.binary("or", first, second);
                Ok((self.select(takes, a, c), self.select(takes, b, d)))
            }
            _ => Err("takes complex numbers, which it is not defined for".to_owned()),
        }
    }

    pub(super) fn product(&mut self, (a, b): Pair, (c, d): Pair) -> Pair {
        let (ac, bd) = (self.binary("mul", a, c), self.binary("mul", b, d));
        let (ad, bc) = (self.binary("mul", a, d), self.binary("mul", b, c));
        (self.binary("sub", ac, bd), self.binary("add", ad, bc))
    }

    /// Divides by Smith's method, which does not overflow where the quotient does not.
    pub(super) fn quotient(&mut self, (a, b): Pair, (c, d): Pair) -> Pair {
        let (size_c, size_d) = (self.unary("abs", c), self.unary("abs", d));
        let is_real = self.compare("ge", size_c, size_d);
        let large = self.select(is_real, c, d);
        let small = self.select(is_real, d, c);
        let ratio = self.binary("div", small, large);
        let scaled = self.binary("mul", small, ratio);
        let scale = self.binary("add", large, scaled);
        let (ar, br) = (self.binary("mul", a, ratio), self.binary("mul", b, ratio));
        // (a + b r) / s and (b - a r) / s, or (a r + b) / s and (b r - a) / s.
        let first = self.binary("add", a, br);
        let second = self.binary("add", ar, b);
        let real = self.select(is_real, first, second);
        let first = self.binary("sub", b, ar);
        let second = self.binary("sub", br, a);
        let imaginary = self.select(is_real, first, second);
        let real = self.binary("div", real, scale);
        let imaginary = self.binary("div", imaginary, scale);
        // By 0 each part is divided for itself.
        let zero = self.number(&self.element(a), 0.0);
        let is_zero = self.compare("eq", large, zero);
        let (plain_real, plain_imaginary) = (self.binary("div", a, c), self.binary("div", b, c));
        (
            self.select(is_zero, plain_real, real),
            self.select(is_zero, plain_imaginary, imaginary),
        )
    }

    /// The absolute value, without overflow on the way.
    pub(super) fn size(&mut self, (a, b): Pair) -> ValueId {
        let (a, b) = (self.unary("abs", a), self.unary("abs", b));
        let (most, least) = (self.binary("max", a, b), self.binary("min", a, b));
        let ratio = self.binary("div_no_nan", least, most);
        let square = self.binary("mul", ratio, ratio);
        let sum = self.with_number("add", square, 1.0);
        let root = self.unary("sqrt", sum);
        let size = self.binary("mul", most, root);
        let infinite = self.number(&self.element(a), f64::INFINITY);
        let is_infinite = self.compare("eq", most, infinite);
        self.select(is_infinite, infinite, size)
    }

    fn angle(&mut self, (a, b): Pair) -> ValueId {
        self.binary("atan2", b, a)
    }

    fn negated(&mut self, (a, b): Pair) -> Pair {
        (self.unary("neg", a), self.unary("neg", b))
    }

    fn complex_number(&mut self, like: ValueId, real: f64, imaginary: f64) -> Pair {
        let element = self.element(like);
        (
            self.number(&element, real),
            self.number(&element, imaginary),
        )
    }

    pub(super) fn complex_sum(&mut self, (a, b): Pair, (c, d): Pair) -> Pair {
        (self.binary("add", a, c), self.binary("add", b, d))
    }

    fn difference(&mut self, (a, b): Pair, (c, d): Pair) -> Pair {
        (self.binary("sub", a, c), self.binary("sub", b, d))
    }

    pub(super) fn complex_sign(&mut self, x: Pair) -> Pair {
        let size = self.size(x);
        (
            self.binary("div_no_nan", x.0, size),
            self.binary("div_no_nan", x.1, size),
        )
    }

    pub(super) fn complex_exp(&mut self, (a, b): Pair) -> Pair {
        let scale = self.unary("exp", a);
        let (cos, sin) = (self.unary("cos", b), self.unary("sin", b));
        let zero = self.number(&self.element(a), 0.0);
        let is_real = self.compare("eq", b, zero);
        let imaginary = self.binary("mul", scale, sin);
        (
            self.binary("mul", scale, cos),
            self.select(is_real, b, imaginary),
        )
    }

    /// exp(a) cos(b) - 1 = expm1(a) cos(b) - 2 sin(b / 2)².
    pub(super) fn complex_expm1(&mut self, (a, b): Pair) -> Pair {
        let less = self.unary("expm1", a);
        let cos = self.unary("cos", b);
        let half = self.with_number("mul", b, 0.5);
        let sin_half = self.unary("sin", half);
        let square = self.binary("mul", sin_half, sin_half);
        let twice = self.with_number("mul", square, 2.0);
        let first = self.binary("mul", less, cos);
        let real = self.binary("sub", first, twice);
        let (_, imaginary) = self.complex_exp((a, b));
        (real, imaginary)
    }

    pub(super) fn complex_log(&mut self, x: Pair) -> Pair {
        let size = self.size(x);
        (self.unary("log", size), self.angle(x))
    }

    /// log((1 + a)² + b²) / 2 = log1p(2 a + a² + b²) / 2 near 0.
    pub(super) fn complex_log1p(&mut self, (a, b): Pair) -> Pair {
        let more = self.with_number("add", a, 1.0);
        let size = self.size((more, b));
        let far = self.unary("log", size);
        let twice = self.with_number("mul", a, 2.0);
        let (aa, bb) = (self.binary("mul", a, a), self.binary("mul", b, b));
        let sum = self.binary("add", aa, bb);
        let sum = self.binary("add", twice, sum);
        let near = self.unary("log1p", sum);
        let near = self.with_number("mul", near, 0.5);
        let (size_a, size_b) = (self.unary("abs", a), self.unary("abs", b));
        let most = self.binary("max", size_a, size_b);
        let half = self.number(&self.element(a), 0.5);
        let is_near = self.compare("lt", most, half);
        (self.select(is_near, near, far), self.angle((more, b)))
    }

    /// The root with a real part that is not negative.
    pub(super) fn complex_sqrt(&mut self, (a, b): Pair) -> Pair {
        let size = self.size((a, b));
        let size_a = self.unary("abs", a);
        let sum = self.binary("add", size, size_a);
        let half = self.with_number("mul", sum, 0.5);
        let root = self.unary("sqrt", half);
        let twice = self.with_number("mul", root, 2.0);
        let size_b = self.unary("abs", b);
        let other = self.binary("div_no_nan", size_b, twice);
        let zero = self.number(&self.element(a), 0.0);
        let is_right = self.compare("ge", a, zero);
        let real = self.select(is_right, root, other);
        let imaginary = self.select(is_right, other, root);
        // The imaginary part has the sign of the operand's.
        let one = self.number(&self.element(a), 1.0);
        let angle = self.binary("atan2", b, one);
        let negative = self.unary("neg", imaginary);
        let is_below = self.compare("lt", angle, zero);
        (real, self.select(is_below, negative, imaginary))
    }

    pub(super) fn complex_rsqrt(&mut self, x: Pair) -> Pair {
        let root = self.complex_sqrt(x);
        let one = self.complex_number(x.0, 1.0, 0.0);
        self.quotient(one, root)
    }

    pub(super) fn complex_cbrt(&mut self, x: Pair) -> Pair {
        let third = self.complex_number(x.0, 1.0 / 3.0, 0.0);
        self.complex_power(x, third)
    }

    pub(super) fn complex_power(&mut self, x: Pair, y: Pair) -> Pair {
        let log = self.complex_log(x);
        let product = self.product(y, log);
        let power = self.complex_exp(product);
        let zero = self.number(&self.element(x.0), 0.0);
        let one = self.number(&self.element(x.0), 1.0);
        let both_zero = |l: &mut Self, (a, b): Pair| {
            let (a, b) = (l.compare("eq", a, zero), l.compare("eq", b, zero));
            l.binary("and", a, b)
        };
        let (base, exponent) = (both_zero(self, x), both_zero(self, y));
        let real = self.select(base, zero, power.0);
        let imaginary = self.select(base, zero, power.1);
        (
            self.select(exponent, one, real),
            self.select(exponent, zero, imaginary),
        )
    }

    pub(super) fn complex_logistic(&mut self, x: Pair) -> Pair {
        let minus = self.negated(x);
        let exp = self.complex_exp(minus);
        let one = self.complex_number(x.0, 1.0, 0.0);
        let sum = self.complex_sum(one, exp);
        self.quotient(one, sum)
    }

    pub(super) fn complex_sin(&mut self, (a, b): Pair) -> Pair {
        let (sin, cos) = (self.unary("sin", a), self.unary("cos", a));
        let (cosh, sinh) = (self.unary("cosh", b), self.unary("sinh", b));
        (self.binary("mul", sin, cosh), self.binary("mul", cos, sinh))
    }

    pub(super) fn complex_cos(&mut self, (a, b): Pair) -> Pair {
        let (sin, cos) = (self.unary("sin", a), self.unary("cos", a));
        let (cosh, sinh) = (self.unary("cosh", b), self.unary("sinh", b));
        let imaginary = self.binary("mul", sin, sinh);
        (self.binary("mul", cos, cosh), self.unary("neg", imaginary))
    }

    /// tan(x) = -i tanh(i x).
    pub(super) fn complex_tan(&mut self, (a, b): Pair) -> Pair {
        let minus = self.unary("neg", b);
        let (real, imaginary) = self.complex_tanh((minus, a));
        (imaginary, self.unary("neg", real))
    }

    /// tanh by t = tan(b), s = sinh(a), which stays finite for large parts.
    pub(super) fn complex_tanh(&mut self, (a, b): Pair) -> Pair {
        let tan = self.unary("tan", b);
        let sinh = self.unary("sinh", a);
        let beta = self.binary("mul", tan, tan);
        let beta = self.with_number("add", beta, 1.0);
        let squares = self.binary("mul", sinh, sinh);
        let rho = self.with_number("add", squares, 1.0);
        let rho = self.unary("sqrt", rho);
        let scaled = self.binary("mul", beta, squares);
        let scale = self.with_number("add", scaled, 1.0);
        let real = self.binary("mul", beta, rho);
        let real = self.binary("mul", real, sinh);
        let real = self.binary("div", real, scale);
        let imaginary = self.binary("div", tan, scale);
        // Far out it is 1 or -1.
        let size = self.unary("abs", a);
        let far = match self.element(a) == Type::F64 {
            true => 20.0,
            false => 10.0,
        };
        let far = self.number(&self.element(a), far);
        let is_far = self.compare("gt", size, far);
        let sign = self.unary("sign", a);
        let zero = self.number(&self.element(a), 0.0);
        (
            self.select(is_far, sign, real),
            self.select(is_far, zero, imaginary),
        )
    }

    /// atan2(y, x) = -i log((x + i y) / sqrt(x² + y²)).
    pub(super) fn complex_atan2(&mut self, y: Pair, x: Pair) -> Pair {
        let turned = (self.unary("neg", y.1), y.0);
        let sum = self.complex_sum(x, turned);
        let (xx, yy) = (self.product(x, x), self.product(y, y));
        let squares = self.complex_sum(xx, yy);
        let root = self.complex_sqrt(squares);
        let unit = self.quotient(sum, root);
        let (real, imaginary) = self.complex_log(unit);
        (imaginary, self.unary("neg", real))
    }

    /// x² - 1 or x² + 1 under a root, for inverse functions.
    pub(super) fn root_of_square(&mut self, x: Pair, plus: f64) -> Pair {
        let square = self.product(x, x);
        let one = self.complex_number(x.0, plus, 0.0);
        let sum = self.complex_sum(square, one);
        self.complex_sqrt(sum)
    }

    pub(super) fn complex_difference(&mut self, x: Pair, y: Pair) -> Pair {
        self.difference(x, y)
    }
}
