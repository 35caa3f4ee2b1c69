//! Optimizers of a plugin, on resource variables: the bits of the runtime's own, and those that TensorFlow 2.18.1 has
//! recorded; and the variables that the plugin inside TensorFlow has trained.

use tfrt_capi::rows::PluginOps;
use tfrt_corert::{AddedOps, OpAttrs, TensorHandle};
use tfrt_host::DType;
use tfrt_ops::{Types, ValueDef};
use tfrt_tensor::resource::{Slot, Variable};

use crate::plugins::{Bed, optimizers};
use crate::variables::{Variables, elements};

/// Steps as TensorFlow takes them; the tests of the core runtime say what the lines are.
const RECORDED: &str = include_str!("../../../corert/tests/library/recorded/optimizers.txt");
/// Steps of rows.
const RECORDED_ROWS: &str =
    include_str!("../../../corert/tests/library/recorded/sparse_optimizers.txt");

/// A recorded step.
#[derive(Default)]
struct Step {
    op: String,
    attrs: OpAttrs,
    is_wide: bool,
    states: Vec<Vec<u64>>,
    gradient: Vec<u64>,
    scalars: Vec<u64>,
    /// Extents of the variables, and the rows that change; empty if all elements do.
    extents: Vec<usize>,
    indices: Vec<i64>,
    after: Vec<Vec<u64>>,
}

fn recorded(lines: &'static str) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    for line in lines.lines().filter(|line| !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap();
        let bits = || -> Vec<u64> {
            let words = rest.split_whitespace();
            words
                .map(|word| u64::from_str_radix(word, 16).unwrap())
                .collect()
        };
        let list = || rest.split_whitespace().map(|word| word.parse().unwrap());
        match word {
            "extents" => {
                let extents = list().map(|one: i64| one as usize);
                all.last_mut().unwrap().extents = extents.collect();
            }
            "indices" => all.last_mut().unwrap().indices = list().collect(),
            "state" => all.last_mut().unwrap().states.push(bits()),
            "gradient" => all.last_mut().unwrap().gradient = bits(),
            "scalars" => all.last_mut().unwrap().scalars = bits(),
            "=" => all.last_mut().unwrap().after.push(bits()),
            op => {
                let (flags, dtype) = rest.split_once(' ').unwrap();
                let mut attrs = OpAttrs::new();
                for (name, value) in flags.split(',').filter_map(|flag| flag.split_once('=')) {
                    attrs.set(name, value == "1").unwrap();
                }
                all.push(Step {
                    op: format!("tf.{op}"),
                    attrs,
                    is_wide: dtype == "f64",
                    ..Step::default()
                });
            }
        }
    }
    all
}

impl Step {
    fn tensor(&self, bed: &Bed, extents: &[usize], bits: &[u64]) -> TensorHandle {
        let bits = bits.iter();
        match self.is_wide {
            true => {
                let list: Vec<f64> = bits.map(|one| f64::from_bits(*one)).collect();
                bed.runtime.dense(extents, &list).unwrap()
            }
            false => {
                let list: Vec<f32> = bits.map(|one| f32::from_bits(*one as u32)).collect();
                bed.runtime.dense(extents, &list).unwrap()
            }
        }
    }

    /// Takes the step, and returns the bits of all states after it.
    fn take(&self, bed: &Bed) -> Vec<Vec<u64>> {
        let mut extents = self.extents.clone();
        if extents.is_empty() {
            extents.push(self.gradient.len());
        }
        let states: Vec<TensorHandle> = self
            .states
            .iter()
            .map(|bits| bed.variable_with(self.tensor(bed, &extents, bits)))
            .collect();
        if !self.indices.is_empty() {
            extents[0] = self.indices.len();
        }
        let mut inputs = states.clone();
        let mut scalars = self.scalars.iter();
        let row = tfrt_ops::find(&self.op).unwrap();
        for input in row.inputs.iter().skip(states.len()) {
            inputs.push(match input.name {
                "grad" | "delta" => self.tensor(bed, &extents, &self.gradient),
                "indices" => bed.runtime.dense(&[extents[0]], &self.indices).unwrap(),
                "global_step" => {
                    let step = [*scalars.next().unwrap() as i64];
                    bed.runtime.dense(&[], &step).unwrap()
                }
                _ => self.tensor(bed, &[], &[*scalars.next().unwrap()]),
            });
        }
        bed.run(&self.op, inputs, &self.attrs).unwrap();
        let read = |state: &TensorHandle| -> Vec<u64> {
            match self.is_wide {
                true => {
                    let list = bed.read::<f64>(state);
                    list.iter().map(|one| one.to_bits()).collect()
                }
                false => {
                    let list = bed.read::<f32>(state);
                    list.iter().map(|one| u64::from(one.to_bits())).collect()
                }
            }
        };
        states.iter().map(read).collect()
    }

    /// Returns how many numbers lie between two.
    fn distance(&self, a: u64, b: u64) -> u64 {
        let sign = if self.is_wide { 1 << 63 } else { 1 << 31 };
        let order = |bits: u64| match bits & sign {
            0 => bits | sign,
            _ => sign - (bits & !sign),
        };
        order(a).abs_diff(order(b))
    }
}

#[test]
fn steps_have_the_bits_of_the_runtimes_own_and_of_tensorflow() {
    let Some(plugin) = optimizers() else { return };
    let (bed, own) = (
        Bed::new(PluginOps::new([&plugin])),
        Bed::new(PluginOps::new([])),
    );
    let (mut n_exact, mut n_own) = (0, 0);
    let all = recorded(RECORDED);
    for step in &all {
        let (found, built_in) = (step.take(&bed), step.take(&own));
        // There TensorFlow takes an approximate root, an exponential or a power.
        let most = match step.op.as_str() {
            "tf.ResourceApplyFtrl" | "tf.ResourceApplyFtrlV2" => 13,
            "tf.ResourceApplyAdagrad"
            | "tf.ResourceApplyAdadelta"
            | "tf.ResourceApplyPowerSign"
            | "tf.ResourceApplyProximalAdagrad" => 1,
            _ => 0,
        };
        for (found, expected) in found.iter().zip(&step.after) {
            let distances = found
                .iter()
                .zip(expected)
                .map(|(found, expected)| step.distance(*found, *expected));
            let distance = distances.max();
            assert!(distance <= Some(most), "{}: {distance:?}", step.op);
        }
        n_exact += usize::from(found == step.after);
        n_own += usize::from(found == built_in);
    }
    println!(
        "{n_exact} of {} to TensorFlow's bits, {n_own} to the runtime's own",
        all.len()
    );
    assert!(n_exact >= 64, "{n_exact}");
    assert_eq!(n_own, all.len());
}

#[test]
fn steps_of_rows_have_the_bits_of_the_runtimes_own_and_of_tensorflow() {
    let Some(plugin) = optimizers() else { return };
    let (bed, own) = (
        Bed::new(PluginOps::new([&plugin])),
        Bed::new(PluginOps::new([])),
    );
    let all = recorded(RECORDED_ROWS);
    assert_eq!(all.len(), 72);
    for step in &all {
        let (op, extents) = (&step.op, &step.extents);
        assert_eq!(step.take(&bed), step.after, "{op} {extents:?}");
        assert_eq!(step.take(&own), step.after, "{op} {extents:?}, built-in");
    }
}

#[test]
fn rows_that_are_none_are_told_by_the_plugin() {
    let Some(plugin) = optimizers() else { return };
    let bed = Bed::new(PluginOps::new([&plugin]));
    let (weights, accum) = (
        bed.variable_with(bed.floats(&[3, 2], &[1.0; 6])),
        bed.variable_with(bed.floats(&[3, 2], &[0.5; 6])),
    );
    let gradient = bed.floats(&[2, 2], &[1.0; 4]);
    let step = |rows: TensorHandle| {
        let number = || bed.floats(&[], &[0.5]);
        let inputs = vec![
            weights.clone(),
            accum.clone(),
            number(),
            gradient.clone(),
            rows,
            number(),
        ];
        bed.run("tf.ResourceSparseApplyMomentum", inputs, &OpAttrs::new())
    };
    let error = step(bed.runtime.dense(&[2], &[0_i32, 3]).unwrap()).unwrap_err();
    assert_eq!(
        error.message(),
        "Index 3 at offset 1 in indices is out of range"
    );
    // The rows before it have changed, as inside TensorFlow.
    assert_eq!(bed.read::<f32>(&accum), [1.25, 1.25, 0.5, 0.5, 0.5, 0.5]);
    let error = step(bed.runtime.dense(&[1], &[0_i64]).unwrap()).unwrap_err();
    assert!(error.message().starts_with("grad must be"), "{error}");
    step(bed.runtime.dense(&[2], &[2_i64, 2]).unwrap()).unwrap();
    assert_eq!(
        bed.read::<f32>(&accum)[4..],
        [1.625, 1.625],
        "two steps of one row"
    );
}

#[test]
fn all_optimizers_train_as_the_runtimes_own_and_as_inside_tensorflow() {
    let Some(plugin) = optimizers() else { return };
    let (bed, own) = (
        Bed::new(PluginOps::new([&plugin])),
        Bed::new(PluginOps::new([])),
    );
    let mut n = 0;
    let mut ops: Vec<String> = plugin
        .kernels()
        .map(|kernel| format!("tf.{}", kernel.op()))
        .collect();
    ops.sort();
    ops.dedup();
    for op in &ops {
        let row = tfrt_ops::find(op).unwrap();
        let is_sparse = row.inputs.iter().any(|input| input.name == "indices");
        let types: Vec<Option<DType>> = row.inputs.iter().map(type_of).collect();
        let is_taken = PluginOps::new([&plugin]).takes(op, &types, OpAttrs::new().as_ref());
        assert!(is_taken, "{op} goes to the runtime's own kernel");
        let train = |bed: &Bed| -> Vec<Vec<u32>> {
            let n_states = row
                .inputs
                .iter()
                .filter(|input| type_of(input) == Some(DType::Resource))
                .count();
            let start: Vec<f32> = (0..23).map(|at| at as f32 * 0.05 - 0.5).collect();
            let states: Vec<TensorHandle> = (0..n_states)
                .map(|state| {
                    let list: Vec<f32> = match state {
                        0 => start.clone(),
                        _ => start.iter().map(|one| one.abs() + 0.125).collect(),
                    };
                    bed.variable_with(bed.floats(&[23], &list))
                })
                .collect();
            let mut powers = [1.0_f32; 2];
            for step in 1..=50_i32 {
                let rows: Vec<i64> = match is_sparse {
                    true => (0..5)
                        .map(|at| (5 * i64::from(step) + 3 * at) % 23)
                        .collect(),
                    false => (0..23).collect(),
                };
                powers = [powers[0] * 0.9, powers[1] * 0.999];
                let mut inputs = states.clone();
                for input in row.inputs.iter().skip(n_states) {
                    let scalar = |value: f32| bed.floats(&[], &[value]);
                    inputs.push(match input.name {
                        "grad" | "delta" => {
                            let weights = bed.read::<f32>(&states[0]);
                            let of = |row: &i64| weights[*row as usize] - *row as f32 * 0.01;
                            let slope: Vec<f32> = rows.iter().map(of).collect();
                            bed.floats(&[rows.len()], &slope)
                        }
                        "indices" => bed.runtime.dense(&[rows.len()], &rows).unwrap(),
                        "global_step" => bed.runtime.dense(&[], &[i64::from(step)]).unwrap(),
                        "beta1_power" => scalar(powers[0]),
                        "beta2_power" => scalar(powers[1]),
                        "beta1" | "rho" | "momentum" => scalar(0.9),
                        "beta2" => scalar(0.999),
                        "lr_power" => scalar(-0.5),
                        "epsilon" => scalar(1e-3),
                        "l1" | "l2" | "l2_shrinkage" => scalar(0.01),
                        _ => scalar(0.05),
                    });
                }
                let mut attrs = OpAttrs::new();
                attrs.set("use_locking", step % 2 == 0).unwrap();
                bed.run(op, inputs, &attrs).unwrap();
            }
            let bits = |state: &TensorHandle| -> Vec<u32> {
                let list = bed.read::<f32>(state);
                list.iter().map(|one| one.to_bits()).collect()
            };
            states.iter().map(bits).collect()
        };
        let found = train(&bed);
        assert_eq!(found, train(&own), "{op}");
        assert_eq!(found, trained(op), "{op}, inside TensorFlow");
        n += 1;
    }
    assert_eq!(n, 30);
}

/// Returns the type of an operand in this test.
fn type_of(input: &ValueDef) -> Option<DType> {
    Some(match input.name {
        "indices" | "global_step" => DType::I64,
        _ if input.types == Types::Set(&[DType::Resource]) => DType::Resource,
        _ => DType::F32,
    })
}

/// Returns the bits of all variables after the steps, by the plugin inside TensorFlow 2.18.1.
fn trained(op: &str) -> Vec<Vec<u32>> {
    let lines = include_str!("recorded/trained.txt").lines();
    let own = lines.skip_while(|line| *line != op).skip(1);
    let states = own.map_while(|line| line.strip_prefix("= "));
    let bits = |line: &str| {
        let words = line.split_whitespace();
        words
            .map(|word| u32::from_str_radix(word, 16).unwrap())
            .collect()
    };
    states.map(bits).collect()
}

#[test]
fn steps_of_a_plugin_are_ordered_with_reads_of_their_variables() {
    let Some(plugin) = optimizers() else { return };
    let bed = Bed::new(PluginOps::new([&plugin]));
    let (weights, slope) = (
        bed.variable_with(bed.floats(&[2], &[1.0, 2.0])),
        bed.variable_with(bed.floats(&[2], &[1.0, -1.0])),
    );
    let call = |op: &str, inputs: Vec<TensorHandle>| {
        let op = bed.runtime.op(op, &bed.runtime.cpu()).unwrap();
        op.call(&bed.context, inputs, &OpAttrs::new()).unwrap()
    };
    // The gradient is to come, as somebody holds the variable that it is read from.
    let tensor = slope.tensor().unwrap().unwrap().clone();
    let slot = Slot::counted(&tensor).unwrap();
    let held = slot.get::<Variable>().unwrap().lock().try_write().unwrap();
    let gradient = call("tf.ReadVariableOp", vec![slope]).remove(0);
    let rate = bed.floats(&[], &[0.5]);
    call(
        "tf.ResourceApplyGradientDescent",
        vec![weights.clone(), rate, gradient],
    );
    let after = call("tf.ReadVariableOp", vec![weights]).remove(0);
    assert!(after.tensor().is_none(), "it waits for the step");
    drop(held);
    let queue = bed.runtime.host().queue();
    queue.await_all(&[after.to_async().into_any()]).unwrap();
    assert_eq!(elements::<f32>(&after), [0.5, 2.5]);
}
