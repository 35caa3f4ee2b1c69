//! Programs of pointwise steps on a GPU, beside the processor's: random ones to the bit, and each function alone.

use std::sync::Arc;

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_gpu::driver::Driver;
use tfrt_host::{DType, Error};
use tfrt_tensor::TensorFormat;
use tfrt_tensor::math::pointwise::{Operand, PointwiseProgram, Step};

use super::rows::Bed;

/// Functions of numbers that are those of the processor to the bit, by their operands.
const EXACT: &[(&str, usize)] = &[
    ("neg", 1),
    ("abs", 1),
    ("sign", 1),
    ("square", 1),
    ("sqrt", 1),
    ("reciprocal", 1),
    ("relu", 1),
    ("relu6", 1),
    ("floor", 1),
    ("ceil", 1),
    ("round", 1),
    ("trunc", 1),
    ("identity", 1),
    ("leaky_relu", 1),
    ("hard_swish", 1),
    ("softsign", 1),
    ("thresholded_relu", 1),
    ("divided_by", 1),
    ("add", 2),
    ("sub", 2),
    ("mul", 2),
    ("div", 2),
    ("min", 2),
    ("max", 2),
    ("squared_difference", 2),
    ("prelu", 2),
];

/// Questions about numbers, by their operands.
const QUESTIONS: &[(&str, usize)] = &[
    ("eq", 2),
    ("ne", 2),
    ("lt", 2),
    ("le", 2),
    ("gt", 2),
    ("ge", 2),
    ("is_nan", 1),
    ("is_finite", 1),
];

/// Functions of truth values.
const LOGIC: &[(&str, usize)] = &[("not", 1), ("and", 2), ("or", 2), ("xor", 2), ("eq", 2)];

/// Functions that differ from the processor's in the last places, and the most that they do, as a part of the larger of the
/// result and 1.
const NEAR: &[(&str, f32)] = &[
    ("rsqrt a0", 3e-7),
    ("exp a0", 3e-7),
    ("expm1 a0", 3e-7),
    ("log a0", 3e-7),
    ("log1p a0", 3e-7),
    ("tanh a0", 3e-7),
    ("erf a0", 3e-7),
    ("sigmoid a0", 3e-7),
    ("silu a0", 3e-7),
    ("softplus a0", 3e-7),
    ("gelu a0", 5e-7),
    ("gelu_tanh a0", 6e-7),
    ("sin a0", 3e-7),
    ("cos a0", 3e-7),
    ("tan a0", 1e-6),
    ("asin a0", 3e-7),
    ("acos a0", 3e-7),
    ("atan a0", 3e-7),
    ("sinh a0", 3e-7),
    ("cosh a0", 3e-7),
    ("asinh a0", 3e-7),
    ("acosh a0", 3e-7),
    ("atanh a0", 2e-6),
    ("elu a0", 3e-7),
    ("elu a0 0.5", 3e-7),
    ("celu a0 2", 3e-7),
    ("selu a0 1.5 1.25", 3e-7),
    ("mish a0", 5e-7),
    ("swish a0 1.5", 3e-7),
    ("hard_sigmoid a0 0.2 0.5", 3e-7),
    ("shrink a0 0.5 0.25", 3e-7),
    ("power_of a0 3", 5e-7),
    ("is_inf a0 1 0", 0.0),
    ("pow a0 a1", 5e-7),
];

/// A source of numbers that are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % n
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn number(&mut self) -> f32 {
        const ODD: [f32; 6] = [0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        match self.below(16) {
            0 => *self.of(&ODD),
            _ => (self.below(1 << 16) as f32 - 32768.0) / 4096.0,
        }
    }
}

/// A program that was drawn: its steps, and the types and shapes of its inputs.
struct Drawn {
    steps: Vec<String>,
    inputs: Vec<(DType, Vec<usize>)>,
}

/// Draws a program; each step takes what is of one type.
fn draw(random: &mut Random) -> Drawn {
    let dims: Vec<usize> = (0..1 + random.below(5))
        .map(|_| 1 + random.below(5))
        .collect();
    let n_inputs = 1 + random.below(4);
    let mut inputs = Vec::new();
    let mut values: Vec<(String, DType)> = Vec::new();
    for index in 0..n_inputs {
        let types = [DType::F32, DType::F32, DType::F16, DType::Bf16, DType::I1];
        let dtype = *random.of(&types);
        // The first has all extents; of others some are repeated, and the outermost may be left out.
        let skipped = if index == 0 {
            0
        } else {
            random.below(dims.len() + 1)
        };
        let kept = dims[skipped..].iter();
        let shape = kept.map(|dim| {
            if index > 0 && random.below(3) == 0 {
                1
            } else {
                *dim
            }
        });
        inputs.push((dtype, shape.collect()));
        values.push((format!("a{index}"), dtype));
    }
    let mut steps = Vec::new();
    for number in 0..1 + random.below(12) {
        let (operand, dtype) = random.of(&values).clone();
        let alike: Vec<String> = values
            .iter()
            .filter(|(_, other)| *other == dtype)
            .map(|(operand, _)| operand.clone())
            .collect();
        let other = |random: &mut Random| match random.below(4) {
            0 if dtype != DType::I1 => format!("{}", random.below(64) as f64 / 8.0 - 4.0),
            _ => random.of(&alike).clone(),
        };
        let (text, gives) = match random.below(8) {
            0 => {
                let to = *random.of(&[DType::F32, DType::F16, DType::Bf16, DType::I1]);
                (format!("cast {operand} {}", to.mlir_name()), to)
            }
            1 | 2 if dtype != DType::I1 => {
                let (name, n) = *random.of(QUESTIONS);
                let mut text = format!("{name} {operand}");
                if n == 2 {
                    text = format!("{text} {}", other(random));
                }
                (text, DType::I1)
            }
            3 if values.iter().any(|(_, dtype)| *dtype == DType::I1) => {
                let truth: Vec<&String> = values
                    .iter()
                    .filter(|(_, dtype)| *dtype == DType::I1)
                    .map(|(operand, _)| operand)
                    .collect();
                let condition = (*random.of(&truth)).clone();
                (
                    format!("select {condition} {operand} {}", other(random)),
                    dtype,
                )
            }
            _ => {
                let (name, n) = *random.of(if dtype == DType::I1 { LOGIC } else { EXACT });
                let mut text = format!("{name} {operand}");
                if n == 2 {
                    text = format!("{text} {}", other(random));
                }
                if ["leaky_relu", "thresholded_relu", "divided_by"].contains(&name) {
                    text = format!("{text} 0.375");
                }
                (text, dtype)
            }
        };
        values.push((format!("s{number}"), gives));
        steps.push(text);
    }
    Drawn { steps, inputs }
}

/// Runs a program on the GPU and on the processor; returns the type and the elements that both give.
pub fn run(
    bed: &Bed,
    steps: &[String],
    operands: &[TensorHandle],
) -> Result<[(DType, Vec<f32>); 2], Error> {
    let text = steps.join("; ");
    let program = PointwiseProgram::parse(operands.len(), &text)?;
    let types = operands
        .iter()
        .map(|operand| Ok(bed.wait(operand)?.metadata().dtype));
    let types: Vec<DType> = types.collect::<Result<_, Error>>()?;
    let gives = program.result(&types)?;
    let mut attributes = OpAttrs::new();
    attributes.set("program", text.as_str())?;
    attributes.set("type", gives)?;
    let context = bed.core.context();
    let on_gpu = bed.core.on(&bed.device)?;
    let made = bed
        .core
        .op("pointwise", &on_gpu)?
        .call(&context, operands, &attributes)?;
    let back = context.transfer(&made[0], &bed.core.device(), TensorFormat::DenseHost)?;
    let here =
        bed.core
            .op("pointwise", &bed.core.cpu())?
            .call_one(&context, operands, &attributes)?;
    let elements = |handle: &TensorHandle| -> Result<(DType, Vec<f32>), Error> {
        let dtype = bed.wait(handle)?.metadata().dtype;
        let tensor = bed.wait(&bed.cast(handle, DType::F32)?)?;
        Ok((
            dtype,
            tensor.as_dense()?.read()?.elements::<f32>()?.to_vec(),
        ))
    };
    Ok([elements(&back)?, elements(&here)?])
}

/// Runs so many random programs, which are to be the same to the bit, and each function of so many numbers; returns a line
/// for each, and whether it passed.
pub fn compare(
    driver: &Arc<dyn Driver>,
    seed: u64,
    n_programs: usize,
    n_numbers: usize,
) -> Vec<(bool, String)> {
    let bed = Bed::new(driver.clone());
    let mut lines = Vec::new();
    for number in 0..n_programs {
        let mut random = Random(seed << 32 | number as u64);
        let drawn = draw(&mut random);
        let made = drawn.inputs.iter().map(|(dtype, shape)| {
            let values: Vec<f32> = (0..shape.iter().product())
                .map(|_| random.number())
                .collect();
            bed.operand(shape, &values, *dtype)
        });
        let made = made.collect::<Result<Vec<_>, _>>();
        let both = made.and_then(|operands| run(&bed, &drawn.steps, &operands));
        let is_same = |[gpu, cpu]: &[(DType, Vec<f32>); 2]| {
            let mut pairs = gpu.1.iter().zip(&cpu.1);
            let same = |(gpu, cpu): (&f32, &f32)| {
                gpu.to_bits() == cpu.to_bits() || gpu.is_nan() && cpu.is_nan()
            };
            gpu.0 == cpu.0 && gpu.1.len() == cpu.1.len() && pairs.all(same)
        };
        let passed = both.as_ref().is_ok_and(is_same);
        let told = match &both {
            _ if passed => String::new(),
            other => format!(": {other:?}"),
        };
        let what = format!("{:?} of {:?}{told}", drawn.steps, drawn.inputs);
        lines.push((passed, what));
    }
    for (text, most) in NEAR {
        lines.push(near(&bed, text, *most, n_numbers));
    }
    lines
}

/// Compares a function of so many numbers.
fn near(bed: &Bed, text: &str, most: f32, n_numbers: usize) -> (bool, String) {
    let mut random = Random(7);
    let values: Vec<f32> = (0..n_numbers).map(|_| random.number()).collect();
    let step: Step = text.parse().unwrap();
    let n_inputs = step
        .operands()
        .iter()
        .filter(|one| matches!(one, Operand::Input(_)));
    let operands = (0..n_inputs.count()).map(|_| bed.core.dense(&[values.len()], &values));
    let operands = operands.collect::<Result<Vec<_>, _>>();
    let both = operands.and_then(|operands| run(bed, &[text.to_owned()], &operands));
    match both {
        Err(error) => (false, format!("{text}: {error}")),
        Ok([gpu, cpu]) => {
            let mut worst = (0.0_f32, 0);
            for (at, (gpu, cpu)) in gpu.1.iter().zip(&cpu.1).enumerate() {
                let is_same = gpu == cpu || gpu.is_nan() && cpu.is_nan();
                let difference = match is_same {
                    true => 0.0,
                    false => (gpu - cpu).abs() / cpu.abs().max(1.0),
                };
                // What is no number is never near.
                if difference.is_nan() || difference > worst.0 {
                    worst = (difference, at);
                }
            }
            let (x, y, z) = (values[worst.1], gpu.1[worst.1], cpu.1[worst.1]);
            let passed = worst.0 <= most;
            (
                passed,
                format!("{text}: {:e} of {most:e}, at {x}: {y}, {z}", worst.0),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use tfrt_gpu::driver::sim::{Policy, Sim, SimOptions};

    use super::*;

    #[test]
    fn programs_give_what_those_of_the_processor_give() {
        for (policy, seed, n_programs, n_numbers) in
            [(Policy::Lazy, 1, 200, 1024), (Policy::Random, 2, 25, 16)]
        {
            let sim = Sim::new(SimOptions {
                policy,
                seed,
                ..SimOptions::default()
            });
            let driver: Arc<dyn Driver> = Arc::new(sim.clone());
            let lines = compare(&driver, seed, n_programs, n_numbers);
            let failed: Vec<_> = lines.iter().filter(|(passed, _)| !passed).collect();
            assert!(failed.is_empty(), "{policy:?}: {failed:#?}");
            assert_eq!(sim.findings(), []);
        }
    }
}
