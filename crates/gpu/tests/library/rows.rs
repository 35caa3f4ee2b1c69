//! The kernels of rows on a GPU, beside those of the processor.

use std::slice::from_ref;
use std::sync::Arc;

use tfrt_corert::{CoreRuntime, OpAttrs, TensorHandle};
use tfrt_gpu::driver::Driver;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{DType, DeviceRef, Error, HostContext};
use tfrt_tensor::{Tensor, TensorFormat};

/// A call of an operation on random operands.
struct Case {
    op: &'static str,
    shapes: &'static [&'static [usize]],
    attributes: &'static [(&'static str, Value)],
    /// Operands lie between these.
    range: (f32, f32),
    /// The most that a result may differ, as a part of the larger of itself and 1.
    tolerance: f32,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Int(i64),
    Float(f32),
    Ints(&'static [i64]),
    Text(&'static str),
}

const fn case(
    op: &'static str,
    shapes: &'static [&'static [usize]],
    range: (f32, f32),
    tolerance: f32,
) -> Case {
    Case {
        op,
        shapes,
        attributes: &[],
        range,
        tolerance,
    }
}

impl Case {
    const fn with(self, attributes: &'static [(&'static str, Value)]) -> Case {
        Case { attributes, ..self }
    }
}

const ONE: &[&[usize]] = &[&[3, 337]];
const TWO: &[&[usize]] = &[&[3, 337], &[3, 337]];
const WIDE: (f32, f32) = (-8.0, 8.0);

/// Every row, in the forms that differ.
const CASES: &[Case] = &[
    case("neg", ONE, WIDE, 0.0),
    case("abs", ONE, WIDE, 0.0),
    case("sign", ONE, WIDE, 0.0),
    case("reciprocal", ONE, WIDE, 0.0),
    case("square", ONE, WIDE, 0.0),
    case("sqrt", ONE, (0.0, 100.0), 0.0),
    case("rsqrt", ONE, (0.01, 100.0), 1e-6),
    case("exp", ONE, WIDE, 1e-6),
    case("expm1", ONE, WIDE, 1e-6),
    case("log", ONE, (0.0, 100.0), 1e-6),
    case("log1p", ONE, (-0.9, 100.0), 1e-6),
    case("tanh", ONE, WIDE, 1e-6),
    case("erf", ONE, WIDE, 1e-6),
    case("floor", ONE, WIDE, 0.0),
    case("ceil", ONE, WIDE, 0.0),
    case("round", ONE, WIDE, 0.0),
    case("trunc", ONE, WIDE, 0.0),
    case("sigmoid", ONE, WIDE, 1e-6),
    case("relu", ONE, WIDE, 0.0),
    case("relu6", ONE, WIDE, 0.0),
    case("gelu", ONE, WIDE, 2e-6),
    case("gelu", ONE, WIDE, 2e-6).with(&[("approximate", Value::Text("tanh"))]),
    case("softplus", ONE, WIDE, 1e-6),
    case("elu", ONE, WIDE, 1e-6).with(&[("alpha", Value::Float(0.5))]),
    case("leaky_relu", ONE, WIDE, 0.0).with(&[("alpha", Value::Float(0.1))]),
    case("hard_sigmoid", ONE, WIDE, 1e-6)
        .with(&[("alpha", Value::Float(0.3)), ("beta", Value::Float(0.4))]),
    case("add", TWO, WIDE, 0.0),
    case("add", &[&[4, 5, 6], &[6]], WIDE, 0.0),
    case("add", &[&[4, 1, 6], &[5, 1]], WIDE, 0.0),
    case("add", &[&[], &[7]], WIDE, 0.0),
    case("add", &[&[], &[]], WIDE, 0.0),
    case("add", &[&[0, 3], &[3]], WIDE, 0.0),
    case(
        "mul",
        &[&[2, 1, 2, 1, 2, 1], &[1, 3, 1, 3, 1, 3]],
        WIDE,
        0.0,
    ),
    case("sub", TWO, WIDE, 0.0),
    case("mul", TWO, WIDE, 0.0),
    case("div", TWO, WIDE, 0.0),
    case("pow", TWO, (0.1, 4.0), 1e-5),
    case("min", TWO, WIDE, 0.0),
    case("max", TWO, WIDE, 0.0),
    case("squared_difference", TWO, WIDE, 0.0),
    case("eq", &[&[3, 337], &[1]], (-1.0, 1.0), 0.0),
    case("ne", TWO, WIDE, 0.0),
    case("lt", TWO, WIDE, 0.0),
    case("le", TWO, WIDE, 0.0),
    case("gt", TWO, WIDE, 0.0),
    case("ge", TWO, WIDE, 0.0),
    case("dot", &[&[5, 7], &[7, 3]], WIDE, 1e-5),
    case("dot", &[&[65, 33], &[33, 70]], WIDE, 1e-4),
    case("dot", &[&[130, 20], &[20, 260]], WIDE, 1e-4),
    case("dot", &[&[20, 130], &[260, 20]], WIDE, 1e-4).with(&[
        ("transpose_a", Value::Int(1)),
        ("transpose_b", Value::Int(1)),
    ]),
    case("dot", &[&[7, 65], &[7, 66]], WIDE, 1e-4).with(&[("transpose_a", Value::Int(1))]),
    case("dot", &[&[65, 18], &[70, 18]], WIDE, 1e-4).with(&[("transpose_b", Value::Int(1))]),
    case("dot", &[&[3, 4, 5], &[5, 2]], WIDE, 1e-5),
    case("dot", &[&[2, 3, 4, 5], &[2, 3, 5, 6]], WIDE, 1e-5),
    case("dot", &[&[4, 5], &[3, 5, 6]], WIDE, 1e-5),
    case("dot", &[&[2, 1, 4, 5], &[3, 5, 6]], WIDE, 1e-5),
    case("dot", &[&[5], &[5]], WIDE, 1e-5),
    case("dot", &[&[3, 0], &[0, 2]], WIDE, 0.0),
    case("transpose", &[&[40, 33]], WIDE, 0.0),
    case("transpose", &[&[2, 3, 4, 5]], WIDE, 0.0).with(&[("perm", Value::Ints(&[2, 0, 3, 1]))]),
    case("transpose", &[&[2, 20, 3, 17]], WIDE, 0.0).with(&[("perm", Value::Ints(&[0, 2, 3, 1]))]),
    case("reduce", &[&[3, 700]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("sum")), ("axes", Value::Ints(&[1]))]),
    case("reduce", &[&[3, 5, 7]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("mean")), ("axes", Value::Ints(&[1]))]),
    case("reduce", &[&[3, 5, 7]], WIDE, 1e-5).with(&[
        ("kind", Value::Text("mean")),
        ("axes", Value::Ints(&[0, 2])),
        ("keep", Value::Int(0)),
    ]),
    case("reduce", &[&[3, 5, 7]], WIDE, 0.0).with(&[("kind", Value::Text("max"))]),
    case("reduce", &[&[3, 5, 7]], WIDE, 0.0)
        .with(&[("kind", Value::Text("min")), ("axes", Value::Ints(&[-1]))]),
    case("reduce", &[&[2, 5]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("prod")), ("axes", Value::Ints(&[-1]))]),
    case("reduce", &[&[3, 50]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("l2")), ("axes", Value::Ints(&[-1]))]),
    case("reduce", &[&[3, 50]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("l1")), ("axes", Value::Ints(&[-1]))]),
    case("softmax", &[&[5, 600]], WIDE, 1e-6),
    case("softmax", &[&[3, 5, 7]], WIDE, 1e-6).with(&[("axis", Value::Int(1))]),
    case("softmax", &[&[5, 60]], WIDE, 1e-5).with(&[("log", Value::Int(1))]),
    case("norm", &[&[5, 300], &[300], &[300]], WIDE, 1e-5).with(&[("kind", Value::Text("layer"))]),
    case("norm", &[&[5, 30], &[30]], WIDE, 1e-5).with(&[("kind", Value::Text("rms"))]),
    case("norm", &[&[2, 6, 5], &[6], &[6]], WIDE, 1e-5)
        .with(&[("kind", Value::Text("group")), ("groups", Value::Int(2))]),
    case("norm", &[&[2, 6, 5], &[6], &[6]], WIDE, 1e-5).with(&[("kind", Value::Text("instance"))]),
    case(
        "norm",
        &[&[2, 6, 5], &[6], &[6], &[6], &[6]],
        (0.5, 2.0),
        1e-5,
    )
    .with(&[("kind", Value::Text("batch"))]),
];

/// Cases that take a simulated GPU too long.
const LARGE: &[Case] = &[
    case("add", &[&[3, 1 << 20], &[1 << 20]], WIDE, 0.0),
    case("dot", &[&[1500, 700], &[700, 1501]], (-1.0, 1.0), 1e-4),
    case("dot", &[&[700, 1500], &[1501, 700]], (-1.0, 1.0), 1e-4).with(&[
        ("transpose_a", Value::Int(1)),
        ("transpose_b", Value::Int(1)),
    ]),
    case("softmax", &[&[1000, 3000]], WIDE, 1e-6),
    case("reduce", &[&[1000, 3000]], (-1.0, 1.0), 1e-4)
        .with(&[("kind", Value::Text("sum")), ("axes", Value::Ints(&[0]))]),
    case("transpose", &[&[1000, 3001]], WIDE, 0.0),
];

/// A host with a GPU.
pub struct Bed {
    core: CoreRuntime,
    device: DeviceRef,
}

impl Bed {
    /// Adds a driver's first device to a host.
    pub fn new(driver: Arc<dyn Driver>) -> Bed {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let device = tfrt_gpu::add(&host, driver, 0).unwrap();
        let core = CoreRuntime::new(&host);
        core.set_kernels(tfrt_kernels::rows::find);
        core.set_device_kernels(tfrt_gpu::KERNELS.into());
        Bed { core, device }
    }

    fn wait(&self, handle: &TensorHandle) -> Result<Tensor, Error> {
        let value = handle.to_async().into_any();
        let _waited = self.core.host().queue().await_all(from_ref(&value));
        let value = value.settled();
        let tensor = value.get::<Tensor>().cloned();
        tensor.ok_or_else(|| value.error().expect("it is settled").clone())
    }

    fn run(&self, case: &Case, seed: u32, is_on_gpu: bool) -> Result<(DType, Vec<f32>), Error> {
        let handler = match is_on_gpu {
            true => self.core.on(&self.device)?,
            false => self.core.cpu(),
        };
        let mut random = seed.wrapping_mul(2_654_435_761) | 1;
        let mut draw = || {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            case.range.0 + (case.range.1 - case.range.0) * (random >> 8) as f32 / (1 << 24) as f32
        };
        let operands: Vec<TensorHandle> = case
            .shapes
            .iter()
            .map(|shape| {
                let values: Vec<f32> = (0..shape.iter().product()).map(|_| draw()).collect();
                self.core.dense(shape, &values)
            })
            .collect::<Result<_, _>>()?;
        let mut attributes = OpAttrs::new();
        for (name, value) in case.attributes {
            match *value {
                Value::Int(value) => attributes.set(name, value)?,
                Value::Float(value) => attributes.set(name, value)?,
                Value::Text(value) => attributes.set(name, value)?,
                Value::Ints(value) => attributes.set(name, value)?,
            };
        }
        let context = self.core.context();
        let made = self
            .core
            .op(case.op, &handler)?
            .call(&context, &operands, &attributes)?;
        let back = context.transfer(&made[0], &self.core.device(), TensorFormat::DenseHost)?;
        let tensor = self.wait(&back)?;
        let dense = tensor.as_dense()?;
        let dtype = dense.metadata().dtype;
        let reading = dense.read()?;
        let values = match dtype {
            DType::F32 => reading.elements::<f32>()?.to_vec(),
            _ => reading
                .bytes()
                .iter()
                .map(|byte| f32::from(*byte))
                .collect(),
        };
        Ok((dtype, values))
    }
}

/// Runs each case, on a real GPU large ones too, on the GPU and on the processor; returns a line for each, and whether it passed.
pub fn compare(driver: &Arc<dyn Driver>, seed: u32, is_real: bool) -> Vec<(bool, String)> {
    let bed = Bed::new(driver.clone());
    let compare_one = |case: &Case| {
        let what = format!("{} {:?} {:?}", case.op, case.shapes, case.attributes);
        let (gpu, cpu) = match (bed.run(case, seed, true), bed.run(case, seed, false)) {
            (Ok(gpu), Ok(cpu)) => (gpu, cpu),
            (gpu, cpu) => {
                let (gpu, cpu) = (
                    gpu.err().map(|error| error.to_string()),
                    cpu.err().map(|error| error.to_string()),
                );
                return (false, format!("{what}: GPU {gpu:?}, processor {cpu:?}"));
            }
        };
        if gpu.0 != cpu.0 || gpu.1.len() != cpu.1.len() {
            return (
                false,
                format!(
                    "{what}: {} {} and {} {}",
                    gpu.0,
                    gpu.1.len(),
                    cpu.0,
                    cpu.1.len()
                ),
            );
        }
        let difference = |(gpu, cpu): (&f32, &f32)| match gpu.to_bits() == cpu.to_bits() {
            true => 0.0,
            // What is no number is never near.
            false => ((gpu - cpu).abs() / cpu.abs().max(1.0)).max(f32::MIN_POSITIVE),
        };
        let worst = gpu
            .1
            .iter()
            .zip(&cpu.1)
            .map(difference)
            .fold(0.0, |worst: f32, one| {
                if one > worst || one.is_nan() {
                    one
                } else {
                    worst
                }
            });
        (
            worst <= case.tolerance,
            format!("{what}: {worst:e} of {:e}", case.tolerance),
        )
    };
    let large = if is_real { LARGE } else { &[] };
    CASES.iter().chain(large).map(compare_one).collect()
}

#[cfg(test)]
mod tests {
    use tfrt_gpu::driver::sim::{Policy, Sim, SimOptions};

    use super::*;

    #[test]
    fn kernels_give_what_those_of_the_processor_give() {
        for (policy, seed) in [(Policy::Eager, 1), (Policy::Lazy, 2), (Policy::Random, 3)] {
            let sim = Sim::new(SimOptions {
                policy,
                seed,
                ..SimOptions::default()
            });
            let driver: Arc<dyn Driver> = Arc::new(sim.clone());
            let lines = compare(&driver, seed as u32, false);
            let failed: Vec<_> = lines.iter().filter(|(passed, _)| !passed).collect();
            assert!(failed.is_empty(), "{policy:?}: {failed:#?}");
            assert_eq!(sim.findings(), []);
        }
    }

    #[test]
    fn each_kernel_has_a_case() {
        for kernel in tfrt_gpu::KERNELS {
            assert!(
                CASES.iter().any(|case| case.op == kernel.op),
                "{}",
                kernel.op
            );
        }
    }
}
