//! [`value`]: the value of one instruction in one lane.

use super::super::ptx::{Comparison, Instruction, Kind, Op, Part, Round, ToInteger};

/// Returns the value of an instruction; `None` if it is not known for its type.
pub(super) fn value(instruction: &Instruction, [a, b, c, d]: [u64; 4]) -> Option<u64> {
    let kind = instruction.kind;
    let mask = kind.mask();
    Some(match (instruction.op, kind) {
        (Op::Move, _) => a,
        (Op::Join, _) => a & mask | b << (4 * kind.len()),
        (Op::Select, _) => {
            if c & 1 == 1 {
                a
            } else {
                b
            }
        }
        (Op::Compare(comparison), _) => u64::from(compare(comparison, kind, a, b)),
        (Op::Convert { round, saturates }, _) => {
            convert(instruction.from, kind, round, saturates, a)?
        }
        (Op::And, Kind::Bits(_) | Kind::Predicate) => a & b,
        (Op::Or, Kind::Bits(_) | Kind::Predicate) => a | b,
        (Op::Xor, Kind::Bits(_) | Kind::Predicate) => a ^ b,
        (Op::Not, Kind::Predicate) => a ^ 1,
        (Op::Not, Kind::Bits(_)) => !a & mask,
        (Op::ShiftLeft, _) => {
            if b >= 8 * kind.len() as u64 {
                0
            } else {
                a << b & mask
            }
        }
        (Op::ShiftRight, Kind::Signed(_)) => (signed(kind, a) >> b.min(63)) as u64 & mask,
        (Op::ShiftRight, _) => {
            if b >= 8 * kind.len() as u64 {
                0
            } else {
                a >> b
            }
        }
        (Op::InsertField, Kind::Bits(32)) => {
            let (at, len) = (c & 0xff, d & 0xff);
            let field = if len >= 32 {
                u64::from(u32::MAX)
            } else {
                (1 << len) - 1
            };
            if at >= 32 {
                b
            } else {
                (b & !(field << at) | (a & field) << at) & mask
            }
        }
        (op, Kind::F32) => {
            u64::from(single(op, [a, b, c].map(|x| f32::from_bits(x as u32)))?.to_bits())
        }
        (op, Kind::F64) => double(op, [a, b, c].map(f64::from_bits))?.to_bits(),
        (op, Kind::Signed(_)) => integer(op, kind, [a, b, c].map(|x| i128::from(signed(kind, x))))?,
        (op, Kind::Unsigned(_)) => integer(op, kind, [a, b, c].map(i128::from))?,
        _ => return None,
    })
}

/// Returns the bits as an integer with a sign.
fn signed(kind: Kind, bits: u64) -> i64 {
    let shift = 64 - 8 * kind.len();
    ((bits << shift) as i64) >> shift
}

fn integer(op: Op, kind: Kind, [a, b, c]: [i128; 3]) -> Option<u64> {
    let n_bits = 8 * kind.len();
    let part = |product: i128, part: Part| match part {
        Part::Low => product,
        Part::High => product >> n_bits,
        Part::Wide => product,
    };
    let exact = match op {
        Op::Add(_) => a + b,
        Op::Subtract(_) => a - b,
        Op::Multiply(which, _) => part(a * b, which),
        // What is added to a wide product has its whole width, which `operands` of a signed type would narrow.
        Op::MultiplyAdd(Part::Low) => a * b + c,
        // On a GPU a division by 0 gives all bits.
        Op::Divide if b == 0 => -1,
        Op::Remainder if b == 0 => a,
        Op::Divide => a / b,
        Op::Remainder => a % b,
        Op::Minimum => a.min(b),
        Op::Maximum => a.max(b),
        Op::Negate => -a,
        Op::Absolute => a.abs(),
        _ => return None,
    };
    let is_wide = matches!(op, Op::Multiply(Part::Wide, _));
    let mask = match is_wide {
        true if n_bits < 32 => u64::from(u32::MAX),
        true => u64::MAX,
        false => kind.mask(),
    };
    Some(exact as u64 & mask)
}

fn single(op: Op, [a, b, c]: [f32; 3]) -> Option<f32> {
    let [x, y] = [a, b].map(f64::from);
    Some(match op {
        Op::Add(Round::Nearest) => a + b,
        Op::Add(round) => rounded(x, y, round),
        Op::Subtract(Round::Nearest) => a - b,
        Op::Subtract(round) => rounded(x, -y, round),
        Op::Multiply(_, Round::Nearest) => a * b,
        Op::Multiply(_, round) => rounded(x * y, 0.0, round),
        Op::Fused(Round::Nearest) => a.mul_add(b, c),
        // The product of two singles is exact.
        Op::Fused(round) => rounded(x * y, f64::from(c), round),
        Op::Divide => a / b,
        Op::Minimum => a.min(b),
        Op::Maximum => a.max(b),
        Op::Negate => -a,
        Op::Absolute => a.abs(),
        Op::SquareRoot => a.sqrt(),
        Op::PowerOfTwo { flushes } => flushed(flushed(a, flushes).exp2(), flushes),
        Op::LogarithmOfTwo { flushes } => flushed(a, flushes).log2(),
        Op::Reciprocal { flushes } => flushed(1.0 / flushed(a, flushes), flushes),
        _ => return None,
    })
}

fn double(op: Op, [a, b, c]: [f64; 3]) -> Option<f64> {
    Some(match op {
        Op::Add(Round::Nearest) => a + b,
        Op::Subtract(Round::Nearest) => a - b,
        Op::Multiply(_, Round::Nearest) => a * b,
        Op::Fused(Round::Nearest) => a.mul_add(b, c),
        Op::Divide => a / b,
        Op::Minimum => a.min(b),
        Op::Maximum => a.max(b),
        Op::Negate => -a,
        Op::Absolute => a.abs(),
        Op::SquareRoot => a.sqrt(),
        Op::Reciprocal { .. } => 1.0 / a,
        _ => return None,
    })
}

/// Returns a sum, rounded in a direction.
fn rounded(x: f64, y: f64, round: Round) -> f32 {
    let sum = x + y;
    let nearest = sum as f32;
    if !nearest.is_finite() {
        return nearest;
    }
    // What the sum lacks, exactly.
    let part = sum - x;
    let lack = (x - (sum - part)) + (y - part);
    let beyond = match f64::from(nearest).total_cmp(&sum) {
        std::cmp::Ordering::Equal => 0.0_f64.total_cmp(&lack),
        order => order,
    };
    let is_above = beyond.is_gt() && (lack != 0.0 || f64::from(nearest) != sum);
    let is_below = beyond.is_lt() && (lack != 0.0 || f64::from(nearest) != sum);
    match round {
        Round::Down if is_above => nearest.next_down(),
        Round::Up if is_below => nearest.next_up(),
        Round::Zero if nearest > 0.0 && is_above => nearest.next_down(),
        Round::Zero if nearest < 0.0 && is_below => nearest.next_up(),
        _ => nearest,
    }
}

fn flushed(x: f32, flushes: bool) -> f32 {
    if flushes && x.is_subnormal() {
        0.0_f32.copysign(x)
    } else {
        x
    }
}

fn compare(comparison: Comparison, kind: Kind, a: u64, b: u64) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match kind {
        Kind::F32 => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        Kind::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        Kind::Signed(_) => Some(signed(kind, a).cmp(&signed(kind, b))),
        _ => Some(a.cmp(&b)),
    };
    let Some(order) = order else {
        return matches!(
            comparison,
            Comparison::EqualOrNan
                | Comparison::NotEqualOrNan
                | Comparison::LessOrNan
                | Comparison::LessEqualOrNan
                | Comparison::GreaterOrNan
                | Comparison::GreaterEqualOrNan
                | Comparison::Nan
        );
    };
    match comparison {
        Comparison::Equal | Comparison::EqualOrNan => order == Equal,
        Comparison::NotEqual | Comparison::NotEqualOrNan => order != Equal,
        Comparison::Less | Comparison::LessOrNan => order == Less,
        Comparison::LessEqual | Comparison::LessEqualOrNan => order != Greater,
        Comparison::Greater | Comparison::GreaterOrNan => order == Greater,
        Comparison::GreaterEqual | Comparison::GreaterEqualOrNan => order != Less,
        Comparison::Numbers => true,
        Comparison::Nan => false,
    }
}

fn convert(from: Kind, to: Kind, round: ToInteger, saturates: bool, bits: u64) -> Option<u64> {
    // Integers go from one width to another by their bits.
    let integer = match from {
        Kind::Signed(_) => Some(i128::from(signed(from, bits))),
        Kind::Unsigned(_) | Kind::Bits(_) => Some(i128::from(bits & from.mask())),
        _ => None,
    };
    if let Some(integer) = integer {
        return Some(match to {
            Kind::F32 => u64::from((integer as f32).to_bits()),
            Kind::F64 => (integer as f64).to_bits(),
            Kind::F16 | Kind::Predicate => return None,
            _ => integer as u64 & to.mask(),
        });
    }
    let number = match from {
        Kind::F16 => f64::from(half::f16::from_bits(bits as u16)),
        Kind::F32 => f64::from(f32::from_bits(bits as u32)),
        Kind::F64 => f64::from_bits(bits),
        _ => return None,
    };
    let number = match round {
        ToInteger::No => number,
        ToInteger::Nearest => number.round_ties_even(),
        ToInteger::Zero => number.trunc(),
        ToInteger::Down => number.floor(),
        ToInteger::Up => number.ceil(),
    };
    // No number becomes 0 there.
    let number = match saturates {
        true if number.is_nan() => 0.0,
        true => number.clamp(0.0, 1.0),
        false => number,
    };
    Some(match to {
        // Of what is wider a second rounding would be one too many.
        Kind::F16 if from == Kind::F32 && round == ToInteger::No => {
            u64::from(half::f16::from_f32(number as f32).to_bits())
        }
        Kind::F32 => u64::from((number as f32).to_bits()),
        Kind::F64 => number.to_bits(),
        Kind::Signed(32) => u64::from((number as i32) as u32),
        Kind::Signed(64) => (number as i64) as u64,
        Kind::Unsigned(32) => u64::from(number as u32),
        Kind::Unsigned(64) => number as u64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_rounded_in_their_direction() {
        let tiny = f64::from(f32::MIN_POSITIVE);
        assert_eq!(rounded(1.0, tiny, Round::Down), 1.0);
        assert_eq!(rounded(1.0, tiny, Round::Up), 1.0_f32.next_up());
        assert_eq!(rounded(1.0, -tiny, Round::Down), 1.0_f32.next_down());
        assert_eq!(rounded(1.0, -tiny, Round::Zero), 1.0_f32.next_down());
        assert_eq!(rounded(-1.0, tiny, Round::Zero), -(1.0_f32.next_down()));
        assert_eq!(rounded(-1.0, -tiny, Round::Zero), -1.0);
        assert_eq!(rounded(1.0, 2.0, Round::Down), 3.0);
        assert_eq!(
            rounded(0.1, 0.2, Round::Down),
            0.3_f32.next_down().max(rounded(0.1, 0.2, Round::Zero))
        );
    }

    #[test]
    fn integers_wrap_and_extend() {
        let make = |op, kind| Instruction {
            guard: None,
            op,
            kind,
            from: kind,
            to: vec![0],
            operands: Vec::new(),
            line: 0,
        };
        let run = |op, kind, a: u64, b: u64, c: u64| value(&make(op, kind), [a, b, c, 0]).unwrap();
        let (low, wide) = (
            Op::Multiply(Part::Low, Round::Nearest),
            Op::Multiply(Part::Wide, Round::Nearest),
        );
        let (s32, u32) = (Kind::Signed(32), Kind::Unsigned(32));
        assert_eq!(run(low, s32, 0xffff_ffff, 3, 0), 0xffff_fffd);
        assert_eq!(run(wide, s32, 0xffff_ffff, 4, 0), (-4_i64) as u64);
        assert_eq!(run(wide, u32, 0xffff_ffff, 4, 0), 0x3_ffff_fffc);
        assert_eq!(run(Op::ShiftRight, s32, 0x8000_0000, 31, 0), 0xffff_ffff);
        assert_eq!(run(Op::MultiplyAdd(Part::Low), s32, 0xffff_ffff, 2, 3), 1);
        assert_eq!(run(Op::Divide, u32, 7, 0, 0), 0xffff_ffff);
        assert_eq!(
            value(&make(Op::InsertField, Kind::Bits(32)), [0b11, 0, 6, 26]).unwrap(),
            0b1100_0000
        );
    }
}
