//! Each function of pointwise programs on a GPU, held against a formula in double precision: of all numbers of f16, and of
//! numbers of f32 that are drawn, half of them of any size.

use std::sync::Arc;

use half::f16;
use tfrt_gpu::driver::Driver;
use tfrt_host::{DType, Error};

use super::programs::run;
use super::rows::Bed;

/// The text of the functions, which says by what instructions they are calculated.
const FUNCTIONS: &str = include_str!("../../kernels/functions.ptx");

/// A function of one number or two, what it is, and its bounds.
pub struct Function {
    /// The step of a program.
    pub step: &'static str,
    exact: fn(f64, f64) -> f64,
    /// The largest operands that it is meant for.
    most: f32,
    /// The units in the last place that f32 and f16 may be wrong by.
    bounds: [f64; 2],
}

const fn function(step: &'static str, exact: fn(f64, f64) -> f64, bounds: [f64; 2]) -> Function {
    Function {
        step,
        exact,
        most: f32::INFINITY,
        bounds,
    }
}

impl Function {
    const fn up_to(self, most: f32) -> Function {
        Function { most, ..self }
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.step.split(' ').next().unwrap_or_default()
    }

    /// Returns the instructions that a GPU calculates by approximation, whose last bits a simulated one does not know.
    pub fn approximations(&self) -> Vec<&'static str> {
        let head = format!(") f_{}(", self.name());
        let body = FUNCTIONS.split_once(&head).map_or("", |(_, body)| body);
        let body = body.split_once("\n}").map_or("", |(body, _)| body);
        let words = body.split_whitespace();
        let mut all: Vec<&str> = words.filter(|word| word.contains(".approx")).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The worst result of a function in one type.
pub struct Worst {
    /// The most units in the last place that a result is wrong by, and of which operands.
    pub ulps: f64,
    pub at: [f32; 2],
    /// The most that a result is wrong, as a part of the larger of itself and 1.
    pub part: f64,
}

/// Returns the distance of numbers of a type beside `exact`.
fn spacing(exact: f64, dtype: DType) -> f64 {
    let (n_bits, least) = match dtype {
        DType::F16 => (10, -14),
        _ => (23, -126),
    };
    let (_, exponent) = libm::frexp(exact);
    libm::ldexp(1.0, (exponent - 1).max(least) - n_bits)
}

/// Returns how far a result is from `exact`, in units in the last place. What is no number, or not finite, is right or
/// infinitely wrong.
fn error_ulps(found: f32, exact: f64, dtype: DType) -> f64 {
    let most = match dtype {
        DType::F16 => 65504.0,
        _ => f64::from(f32::MAX),
    };
    let is_same = f64::from(found) == exact || found.is_nan() && exact.is_nan();
    let is_beyond =
        exact.abs() > most && found.is_infinite() && exact.signum() == f64::from(found.signum());
    match is_same || is_beyond {
        true => 0.0,
        false if found.is_finite() && exact.is_finite() => {
            let exact_here = exact.clamp(-most, most);
            (f64::from(found) - exact).abs() / spacing(exact_here, dtype)
        }
        false => f64::INFINITY,
    }
}

/// Compares a function of these numbers in a type with double precision.
///
/// # Errors
///
/// What the program fails with.
fn compare_one(
    bed: &Bed,
    function: &Function,
    numbers: &[f32],
    dtype: DType,
) -> Result<Worst, Error> {
    let kept = numbers
        .iter()
        .copied()
        .filter(|x| x.is_nan() || x.abs() <= function.most);
    let numbers: Vec<f32> = kept.collect();
    // The second operand goes through them in another order.
    let step = (numbers.len() * 618 / 1000) | 1;
    let others: Vec<f32> = (0..numbers.len())
        .map(|at| numbers[at * step % numbers.len()])
        .collect();
    let n_operands = 1 + usize::from(function.step.contains("a1"));
    let all = [&numbers, &others];
    let operands = all[..n_operands]
        .iter()
        .map(|all| bed.operand(&[all.len()], all, dtype));
    let operands = operands.collect::<Result<Vec<_>, _>>()?;
    let [(_, found), _] = run(bed, &[function.step.to_owned()], &operands)?;
    let mut worst = Worst {
        ulps: 0.0,
        at: [0.0; 2],
        part: 0.0,
    };
    for ((x, y), found) in numbers.iter().zip(&others).zip(found) {
        let exact = (function.exact)(f64::from(*x), f64::from(*y));
        let ulps = error_ulps(found, exact, dtype);
        let part = (f64::from(found) - exact).abs() / exact.abs().max(1.0);
        if ulps > 0.0 && part.is_finite() {
            worst.part = worst.part.max(part);
        }
        if ulps > worst.ulps {
            worst = Worst {
                ulps,
                at: [*x, *y],
                ..worst
            };
        }
    }
    Ok(worst)
}

/// Returns so many numbers of f32: half of them of any bits, half between -16 and 16.
fn numbers(n: usize) -> Vec<f32> {
    let mut state = 1_u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 32) as u32
    };
    (0..n)
        .map(|at| match at % 2 {
            0 => f32::from_bits(draw()),
            _ => (f64::from(draw()) / f64::from(u32::MAX) * 32.0 - 16.0) as f32,
        })
        .collect()
}

/// A function, what was found of it in f32 and f16, and whether that is within its bounds.
pub type Line = (&'static Function, Result<[Worst; 2], Error>, bool);

/// Compares each function of so many numbers of f32, and of each `stride`th of f16.
pub fn compare(driver: &Arc<dyn Driver>, n_numbers: usize, stride: usize) -> Vec<Line> {
    let bed = Bed::new(driver.clone());
    let of_f32 = numbers(n_numbers);
    let of_f16: Vec<f32> = (0..=u16::MAX)
        .step_by(stride)
        .map(|bits| f16::from_bits(bits).to_f32())
        .collect();
    let compare = |function: &'static Function| {
        let found = compare_one(&bed, function, &of_f32, DType::F32).and_then(|of_f32| {
            let of_f16 = compare_one(&bed, function, &of_f16, DType::F16)?;
            Ok([of_f32, of_f16])
        });
        let is_within = found.as_ref().is_ok_and(|both| {
            let mut pairs = both.iter().zip(function.bounds);
            both[0].part <= MOST_PART && pairs.all(|(worst, bound)| worst.ulps <= bound)
        });
        (function, found, is_within)
    };
    ALL.iter().map(compare).collect()
}

/// Returns a table of what was found.
pub fn table(lines: &[Line]) -> String {
    let mut text = String::from(
        "| Step | f32: worst ulp | at | part | f16: worst ulp | at | By approximation |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (function, found, _) in lines {
        let cells = match found {
            Err(error) => error.to_string(),
            Ok([of_f32, of_f16]) => {
                let at = |worst: &Worst| match worst.at {
                    _ if worst.ulps == 0.0 => String::new(),
                    [x, y] if function.step.contains("a1") => format!("{x:e}, {y:e}"),
                    [x, _] => format!("{x:e}"),
                };
                let [here, half] = [at(of_f32), at(of_f16)];
                format!(
                    "{:.2} | {here} | {:.1e} | {:.3} | {half}",
                    of_f32.ulps, of_f32.part, of_f16.ulps
                )
            }
        };
        let approximations = function.approximations().join(", ");
        text += &format!("| `{}` | {cells} | {approximations} |\n", function.step);
    }
    text
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Returns the inverse of the hyperbolic cosine, which no number below 1 has.
fn acosh(x: f64) -> f64 {
    match x < 1.0 {
        true => f64::NAN,
        false => libm::acosh(x),
    }
}

/// Returns the normal distribution's part below `x`.
fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn within(x: f64, most: f64) -> f64 {
    match x.is_nan() {
        true => x,
        false => x.clamp(0.0, most),
    }
}

/// Returns the smaller one, or what is no number.
fn least(x: f64, y: f64) -> f64 {
    match (x.is_nan(), y.is_nan()) {
        (true, _) => x,
        (_, true) => y,
        _ => x.min(y),
    }
}

/// The functions, but those that answer by a truth value.
const ALL: &[Function] = &[
    function("neg a0", |x, _| -x, EXACT),
    function("abs a0", |x, _| x.abs(), EXACT),
    function(
        "sign a0",
        |x, _| if x == 0.0 { x } else { x.signum() },
        EXACT,
    ),
    function("square a0", |x, _| x * x, ROUNDED),
    function("sqrt a0", |x, _| x.sqrt(), ROUNDED),
    function("reciprocal a0", |x, _| 1.0 / x, ROUNDED),
    function("rsqrt a0", |x, _| 1.0 / x.sqrt(), NEAR),
    function("floor a0", |x, _| x.floor(), EXACT),
    function("ceil a0", |x, _| x.ceil(), EXACT),
    function("round a0", |x, _| x.round_ties_even(), EXACT),
    function("trunc a0", |x, _| x.trunc(), EXACT),
    function("exp a0", |x, _| x.exp(), NEAR),
    function("expm1 a0", |x, _| x.exp_m1(), NEAR),
    function("log a0", |x, _| x.ln(), NEAR),
    function("log1p a0", |x, _| x.ln_1p(), NEAR),
    function("sin a0", |x, _| x.sin(), NEAR).up_to(1e7),
    function("cos a0", |x, _| x.cos(), NEAR).up_to(1e7),
    function("tan a0", |x, _| x.tan(), NEAR).up_to(1e7),
    function("asin a0", |x, _| x.asin(), NEAR),
    function("acos a0", |x, _| x.acos(), NEAR),
    function("atan a0", |x, _| x.atan(), NEAR),
    function("sinh a0", |x, _| x.sinh(), NEAR),
    function("cosh a0", |x, _| x.cosh(), NEAR),
    function("tanh a0", |x, _| x.tanh(), NEAR),
    function("asinh a0", |x, _| libm::asinh(x), NEAR),
    function("acosh a0", |x, _| acosh(x), NEAR),
    function("atanh a0", |x, _| libm::atanh(x), NEAR),
    function("erf a0", |x, _| libm::erf(x), NEAR),
    function("sigmoid a0", |x, _| sigmoid(x), SUMS),
    function("silu a0", |x, _| x * sigmoid(x), SUMS),
    function("swish a0 1.5", |x, _| x * sigmoid(1.5 * x), SUMS),
    function("softplus a0", |x, _| softplus(x), NEAR),
    function("softsign a0", |x, _| x / (1.0 + x.abs()), NEAR),
    function("mish a0", |x, _| x * softplus(x).tanh(), SUMS),
    function("gelu a0", |x, _| x * normal(x), SUMS),
    function(
        "gelu_tanh a0",
        |x, _| x * sigmoid(1.595_769_121_605_730_7 * (x + 0.044_715 * x * x * x)),
        SUMS,
    ),
    function("relu a0", |x, _| if x < 0.0 { 0.0 } else { x }, EXACT),
    function("relu6 a0", |x, _| within(x, 6.0), EXACT),
    function(
        "leaky_relu a0 0.375",
        |x, _| if x < 0.0 { 0.375 * x } else { x },
        ROUNDED,
    ),
    function("hard_swish a0", |x, _| x * within(x / 6.0 + 0.5, 1.0), SUMS),
    function(
        "hard_sigmoid a0 0.25 0.5",
        |x, _| within(0.25 * x + 0.5, 1.0),
        NEAR,
    ),
    function(
        "elu a0 0.5",
        |x, _| if x < 0.0 { 0.5 * x.exp_m1() } else { x },
        NEAR,
    ),
    function(
        "selu a0 1.5 1.25",
        |x, _| {
            if x < 0.0 {
                1.875 * x.exp_m1()
            } else {
                1.25 * x
            }
        },
        NEAR,
    ),
    function(
        "celu a0 2",
        |x, _| if x < 0.0 { 2.0 * (x / 2.0).exp_m1() } else { x },
        NEAR,
    ),
    function(
        "thresholded_relu a0 0.375",
        |x, _| if x > 0.375 { x } else { 0.0 },
        EXACT,
    ),
    function(
        "shrink a0 0.5 0.25",
        |x, _| {
            if x < -0.5 {
                x + 0.25
            } else if x > 0.5 {
                x - 0.25
            } else {
                0.0
            }
        },
        ROUNDED,
    ),
    function("divided_by a0 0.375", |x, _| x / 0.375, ROUNDED),
    function("power_of a0 3", |x, _| x * x * x, NEAR),
    function("add a0 a1", |x, y| x + y, ROUNDED),
    function("sub a0 a1", |x, y| x - y, ROUNDED),
    function("mul a0 a1", |x, y| x * y, ROUNDED),
    function("div a0 a1", |x, y| x / y, ROUNDED),
    function("min a0 a1", least, EXACT),
    function("max a0 a1", |x, y| -least(-x, -y), EXACT),
    function("squared_difference a0 a1", |x, y| (x - y) * (x - y), NEAR),
    function(
        "prelu a0 a1",
        |x, y| if x < 0.0 { x * y } else { x },
        ROUNDED,
    ),
    function("pow a0 a1", f64::powf, NEAR),
];

/// Bounds of functions without rounding.
const EXACT: [f64; 2] = [0.0, 0.0];
/// Bounds of functions that are rounded once; to f16 from f32, so that half a place of f32 is added.
const ROUNDED: [f64; 2] = [0.5, 0.501];
/// Bounds of others.
const NEAR: [f64; 2] = [2.5, 0.51];
/// Bounds of formulas that add what nearly cancels, or whose middle is beyond f32, so that small results have few right
/// places: these are within [`MOST_PART`].
const SUMS: [f64; 2] = [f64::INFINITY, 2.0];
/// The most that a result of f32 may be wrong, as a part of the larger of itself and 1.
const MOST_PART: f64 = 3e-7;

#[cfg(test)]
mod tests {
    use tfrt_gpu::driver::sim::{Sim, SimOptions};

    use super::*;

    #[test]
    fn functions_are_near_those_of_double_precision() {
        let sim = Sim::new(SimOptions::default());
        let driver: Arc<dyn Driver> = Arc::new(sim.clone());
        let lines = compare(&driver, 2048, 32);
        let beyond = lines.iter().filter(|(_, _, is_within)| !is_within);
        let beyond: Vec<_> = beyond.map(|(function, ..)| function.step).collect();
        assert!(beyond.is_empty(), "{beyond:?}\n{}", table(&lines));
        assert_eq!(sim.findings(), []);
    }

    #[test]
    fn each_function_is_compared_or_asks_something() {
        let asks = [
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "is_nan",
            "is_finite",
            "is_inf",
            "to_bf16",
        ];
        for head in FUNCTIONS.split(") f_").skip(1) {
            let name = head.split('(').next().unwrap();
            let is_compared = ALL.iter().any(|function| function.name() == name);
            assert!(is_compared || asks.contains(&name), "{name}");
        }
    }
}
