//! Operations on the bits of numbers.

use tfrt_ir::types::FloatKind;
use tfrt_ir::{Attribute, OpId, Type, ValueId};

use super::build::{is_bool, unsigned, width};
use super::reduce::Kind;
use super::sizes::Size;
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.bitcast_convert", bitcast),
    ("stablehlo.count_leading_zeros", leading_zeros),
    ("stablehlo.popcnt", |l, op| {
        let x = l.operand(op, 0)?;
        Ok(vec![Bound::Tensor(l.ones(x))])
    }),
    ("stablehlo.reduce_precision", reduce_precision),
    ("stablehlo.shift_left", |l, op| {
        l.shift(op, "shift_left", false)
    }),
    ("stablehlo.shift_right_arithmetic", |l, op| {
        l.shift(op, "shift_right", true)
    }),
    ("stablehlo.shift_right_logical", |l, op| {
        l.shift(op, "shift_right", false)
    }),
];

impl Lowering<'_> {
    /// Shifts bits. All are moved out by an amount that is none of the type's, of which there are no signs.
    fn shift(&mut self, op: OpId, row: &str, arithmetic: bool) -> Lowered {
        let (x, y) = (self.operand(op, 0)?, self.operand(op, 1)?);
        Ok(vec![Bound::Tensor(self.shifted(row, arithmetic, x, y))])
    }

    pub(super) fn shifted(
        &mut self,
        row: &str,
        arithmetic: bool,
        x: ValueId,
        y: ValueId,
    ) -> ValueId {
        let element = self.element(x);
        let bits = unsigned(width(&element));
        let (plain, amount) = (self.bits(x, &bits), self.bits(y, &bits));
        let n_bits = self.number(&bits, f64::from(width(&element)));
        let fits = self.compare("lt", amount, n_bits);
        if !arithmetic {
            let zero = self.number(&bits, 0.0);
            let within = self.select(fits, amount, zero);
            let moved = self.binary(row, plain, within);
            let moved = self.select(fits, moved, zero);
            return self.bits(moved, &element);
        }
        let last = self.number(&bits, f64::from(width(&element) - 1));
        let within = self.select(fits, amount, last);
        let moved = self.binary(row, plain, within);
        // Negative numbers are moved as their complements, whose upper bits are 0.
        let complement = self.unary("bit_not", plain);
        let other = self.binary(row, complement, within);
        let other = self.unary("bit_not", other);
        let top = self.number(&bits, f64::powi(2.0, width(&element).cast_signed() - 1));
        let is_negative = self.compare("ge", plain, top);
        let moved = self.select(is_negative, other, moved);
        self.bits(moved, &element)
    }

    /// Counts the bits of each integer that are set.
    fn ones(&mut self, x: ValueId) -> ValueId {
        let element = self.element(x);
        let n = width(&element);
        let bits = unsigned(n);
        let mut value = self.bits(x, &bits);
        let mut size = 1;
        while size < n {
            // Neighbouring counts are added: those of `size` bits in each second group.
            let mask: u64 = (0..n / (2 * size)).fold(0, |mask, group| {
                mask | ((1_u64 << size) - 1) << (group * 2 * size)
            });
            let bytes = mask.to_le_bytes()[..(n / 8) as usize].to_vec();
            let mask = self.elements(&[], &bits, bytes);
            let amount = self.number(&bits, f64::from(size));
            let upper = self.binary("shift_right", value, amount);
            let upper = self.binary("bit_and", upper, mask);
            let lower = self.binary("bit_and", value, mask);
            value = self.binary("add", upper, lower);
            size *= 2;
        }
        self.bits(value, &element)
    }

    /// Returns integers in the total order of floats: -NaN, numbers with -0 before 0, NaN.
    pub(super) fn ordered(&mut self, x: ValueId) -> ValueId {
        let x = match width(&self.element(x)) {
            // No integers have so many bits.
            6 => self.cast(x, &Type::F32),
            _ => x,
        };
        let n_bits = width(&self.element(x));
        let bits = unsigned(n_bits);
        let value = self.bits(x, &bits);
        let top = self.number(&bits, f64::powi(2.0, n_bits.cast_signed() - 1));
        let is_negative = self.compare("ge", value, top);
        let flipped = self.unary("bit_not", value);
        let raised = self.binary("bit_or", value, top);
        self.select(is_negative, flipped, raised)
    }
}

fn bitcast(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (_, to) = l.stated(op, 0)?;
    let x = match l.bound(op, 0)? {
        Bound::Complex(real, imaginary) => l.joined(real, imaginary),
        Bound::Quantized(stored, _) => stored,
        _ => l.operand(op, 0)?,
    };
    let from = l.element(x);
    if is_bool(&from) != is_bool(&to) {
        let value = match is_bool(&from) {
            true => l.of_bits(x, &to)?,
            false => l.truths(x)?,
        };
        return Ok(vec![Bound::Tensor(value)]);
    }
    let dims = cast_dims(l.dims(x), &from, &to)?;
    // Elements of 2 or 4 bits have a byte each: others are made of their bits.
    let is_packed = [&from, &to].iter().any(|ty| matches!(width(ty), 2 | 4));
    let value = if is_packed && width(&from) != width(&to) {
        l.regrouped(x, &to)?
    } else {
        let attributes = [("type", Attribute::Type(to.clone()))];
        l.add("tf.Bitcast", &[x], &attributes, &dims, &to)
    };
    Ok(vec![match (&to, l.quantization(op, 0)?) {
        (Type::Complex(_), _) => l.parts(value),
        (_, Some(quantization)) => Bound::Quantized(value, quantization),
        _ => Bound::Tensor(value),
    }])
}

/// Returns the extents of a tensor whose bits are cast: smaller elements are a new last dimension, larger ones take it up.
fn cast_dims(mut dims: Vec<i64>, from: &Type, to: &Type) -> Result<Vec<i64>, String> {
    let n_bits = |ty: &Type| match ty {
        Type::Complex(part) => 2 * i64::from(width(part)),
        ty => i64::from(width(ty)),
    };
    let (own, other) = (n_bits(from), n_bits(to));
    let is_whole = |a: i64, b: i64| b > 0 && a % b == 0;
    let takes_up = |last: &i64| *last < 0 || *last == other / own;
    if own == other {
        return Ok(dims);
    }
    if is_whole(own, other) {
        dims.push(own / other);
        return Ok(dims);
    }
    if is_whole(other, own) && dims.last().is_some_and(takes_up) {
        dims.pop();
        return Ok(dims);
    }
    Err(format!(
        "casts elements of {from}, {own} bits each, with extents {dims:?}, to {to}, of {other} bits"
    ))
}

impl Lowering<'_> {
    /// Returns the bits of numbers as truth values along a last dimension of their own, the lowest first.
    fn truths(&mut self, x: ValueId) -> Result<ValueId, String> {
        let element = self.element(x);
        let by = whole_bits(&element)?;
        let bits = self.bits(x, &unsigned(width(&element)));
        let bits = self.cast(bits, &by);
        let mut sizes = self.sizes(bits);
        sizes.push(Size::Known(1));
        let bits = self.resized(bits, &sizes);
        let places = self.count(i64::from(width(&element)), &by);
        let moved = self.binary("shift_right", bits, places);
        let last = self.with_number("bit_and", moved, 1.0);
        let zero = self.number(&by, 0.0);
        Ok(self.compare("ne", last, zero))
    }

    /// Returns the bits of numbers as numbers of another width.
    fn regrouped(&mut self, x: ValueId, to: &Type) -> Result<ValueId, String> {
        let (own, other) = (width(&self.element(x)), width(to));
        let bits = self.truths(x)?;
        let mut sizes = self.sizes(bits);
        sizes.pop();
        match own > other {
            true => sizes.push(Size::Known(i64::from(own / other))),
            false => drop(sizes.pop()),
        }
        sizes.push(Size::Known(i64::from(other)));
        let bits = self.resized(bits, &sizes);
        self.of_bits(bits, to)
    }

    /// Returns the numbers whose bits truth values along the last dimension are, the lowest first.
    fn of_bits(&mut self, x: ValueId, to: &Type) -> Result<ValueId, String> {
        let by = whole_bits(to)?;
        let (dims, n_bits) = (self.dims(x), i64::from(width(to)));
        if dims.last().is_none_or(|last| *last >= 0 && *last != n_bits) {
            return Err(format!(
                "expected a last dimension of {n_bits}, as i1 are to be {to}, found extents {dims:?}"
            ));
        }
        let places = self.count(n_bits, &by);
        let bits = self.cast(x, &by);
        let moved = self.binary("shift_left", bits, places);
        let sum = self.reduced(Kind::Sum, moved, &[dims.len() - 1]);
        let sum = sum.ok_or("has no sum")?;
        let bits = self.cast(sum, &unsigned(width(to)));
        Ok(self.bits(bits, to))
    }
}

/// Returns the type of integers without sign that hold the bits of a number and can be shifted.
fn whole_bits(element: &Type) -> Result<Type, String> {
    match width(element) {
        2 | 4 | 8 => Ok(Type::UI8),
        n @ (16 | 32 | 64) => Ok(unsigned(n)),
        _ => Err(format!(
            "casts between the bits of {element} and truth values, expected 2 to 64 bits"
        )),
    }
}

fn leading_zeros(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let x = l.operand(op, 0)?;
    let element = l.element(x);
    let bits = unsigned(width(&element));
    let mut value = l.bits(x, &bits);
    // All bits below the first one are set; those that are not are counted.
    let mut size = 1;
    while size < width(&element) {
        let amount = l.number(&bits, f64::from(size));
        let moved = l.binary("shift_right", value, amount);
        value = l.binary("bit_or", value, moved);
        size *= 2;
    }
    let above = l.unary("bit_not", value);
    let count = l.ones(above);
    Ok(vec![Bound::Tensor(l.bits(count, &element))])
}

/// Rounds floats to a format of fewer bits, as XLA does: to the nearest with an even last digit, what is too large to
/// infinity, what is too small to 0.
fn reduce_precision(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let x = l.operand(op, 0)?;
    let element = l.element(x);
    let (own_exponent, own_mantissa) = match element {
        Type::Float(FloatKind::F16) => (5, 10),
        Type::Float(FloatKind::BF16) => (8, 7),
        Type::Float(FloatKind::F32) => (8, 23),
        Type::Float(FloatKind::F64) => (11, 52),
        other => return Err(format!("takes {other}, expected floats of 16 to 64 bits")),
    };
    let (exponent, mantissa) = (l.int(op, "exponent_bits")?, l.int(op, "mantissa_bits")?);
    if !(1..=64).contains(&exponent) || !(0..=64).contains(&mantissa) {
        return Err(format!(
            "rounds to a format e{exponent}m{mantissa}, which is none"
        ));
    }
    let n_bits = width(&element);
    let bits = unsigned(n_bits);
    let word = |l: &mut Lowering<'_>, value: u64| {
        l.elements(
            &[],
            &bits,
            value.to_le_bytes()[..(n_bits / 8) as usize].to_vec(),
        )
    };
    let mut value = l.bits(x, &bits);
    if mantissa < own_mantissa {
        let dropped = u32::try_from(own_mantissa - mantissa).unwrap_or(0);
        let last = word(l, 1 << dropped);
        let masked = l.binary("bit_and", value, last);
        let amount = word(l, u64::from(dropped));
        let odd = l.binary("shift_right", masked, amount);
        let base = word(l, (1 << (dropped - 1)) - 1);
        let bias = l.binary("add", odd, base);
        value = l.binary("add", value, bias);
        let kept = word(l, !((1 << dropped) - 1));
        value = l.binary("bit_and", value, kept);
    }
    if exponent < own_exponent {
        let sign = 1_u64 << (n_bits - 1);
        let exponents = ((1_u64 << own_exponent) - 1) << own_mantissa;
        let bias = (1_u64 << (own_exponent - 1)) - 1;
        let reduced = (1_u64 << (exponent - 1)) - 1;
        let (most, least) = (bias + reduced, bias - reduced);
        let mask = word(l, exponents);
        let own = l.binary("bit_and", value, mask);
        let sign = word(l, sign);
        let signs = l.binary("bit_and", value, sign);
        let most = word(l, most << own_mantissa);
        let least = word(l, least << own_mantissa);
        let too_large = l.compare("gt", own, most);
        let too_small = l.compare("le", own, least);
        let infinite = l.binary("bit_or", signs, mask);
        value = l.select(too_large, infinite, value);
        value = l.select(too_small, signs, value);
    }
    let rounded = l.bits(value, &element);
    let is_none = l.pointwise("is_nan", &[x], &[], &Type::I1);
    let otherwise = match mantissa {
        // A format without a mantissa has no bits that tell NaN from infinity.
        0 => {
            let plain = l.bits(x, &bits);
            let mask = word(l, !((1 << own_mantissa) - 1));
            let infinite = l.binary("bit_and", plain, mask);
            l.bits(infinite, &element)
        }
        _ => x,
    };
    Ok(vec![Bound::Tensor(l.select(is_none, otherwise, rounded))])
}
