//! Optimizers: the bits that TensorFlow 2.18.1 has recorded, and rows as whole variables of their own.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_ops::{Types, find};
use tfrt_tensor::DType;

use super::{Caller, attrs};

const RECORDED: &str = include_str!("../recorded/optimizers.txt");
const RECORDED_ROWS: &str = include_str!("../recorded/sparse_optimizers.txt");

/// A recorded step: the bits of all that it is given, and of the states after it.
#[derive(Default)]
struct Step {
    op: String,
    attrs: Vec<(&'static str, i64)>,
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
    let bits = |text: &str| {
        let list = text.split_whitespace();
        list.map(|word| u64::from_str_radix(word, 16).unwrap())
            .collect::<Vec<_>>()
    };
    let list = |text: &str| -> Vec<i64> {
        let list = text.split_whitespace();
        list.map(|word| word.parse().unwrap()).collect()
    };
    for line in lines.lines().filter(|line| !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap();
        match word {
            "extents" => {
                let extents = list(rest).into_iter();
                all.last_mut().unwrap().extents = extents.map(|one| one as usize).collect();
            }
            "indices" => all.last_mut().unwrap().indices = list(rest),
            "state" => all.last_mut().unwrap().states.push(bits(rest)),
            "gradient" => all.last_mut().unwrap().gradient = bits(rest),
            "scalars" => all.last_mut().unwrap().scalars = bits(rest),
            "=" => all.last_mut().unwrap().after.push(bits(rest)),
            op => {
                let (flags, dtype) = rest.split_once(' ').unwrap();
                let flags = flags.split(',').filter_map(|flag| flag.split_once('='));
                all.push(Step {
                    op: format!("tf.{op}"),
                    attrs: flags
                        .map(|(name, value)| (name, value.parse().unwrap()))
                        .collect(),
                    is_wide: dtype == "f64",
                    ..Step::default()
                });
            }
        }
    }
    all
}

impl Step {
    fn tensor(&self, caller: &Caller, extents: &[usize], bits: &[u64]) -> TensorHandle {
        match self.is_wide {
            true => caller.tensor(
                extents,
                &bits
                    .iter()
                    .map(|one| f64::from_bits(*one))
                    .collect::<Vec<_>>(),
            ),
            false => {
                let list: Vec<f32> = bits.iter().map(|one| f32::from_bits(*one as u32)).collect();
                caller.tensor(extents, &list)
            }
        }
    }

    fn variable(&self, caller: &Caller, extents: &[usize], bits: &[u64]) -> TensorHandle {
        let variable = caller.variable("");
        caller.run(
            "tf.AssignVariableOp",
            &[&variable, &self.tensor(caller, extents, bits)],
        );
        variable
    }

    fn read(&self, caller: &Caller, variable: &TensorHandle) -> Vec<u64> {
        match self.is_wide {
            true => caller
                .read::<f64>(variable)
                .iter()
                .map(|one| one.to_bits())
                .collect(),
            false => caller
                .read::<f32>(variable)
                .iter()
                .map(|one| u64::from(one.to_bits()))
                .collect(),
        }
    }

    fn attrs(&self) -> OpAttrs {
        attrs(&self.attrs)
    }

    /// Calls an operation with the operands in the order of its row.
    fn take(
        &self,
        caller: &Caller,
        op: &str,
        states: &[TensorHandle],
        extents: &[usize],
        indices: Option<&TensorHandle>,
    ) {
        let (mut states, mut scalars) = (states.iter(), self.scalars.iter());
        let mut inputs = Vec::new();
        for input in find(op).unwrap().inputs {
            inputs.push(match input.name {
                _ if input.types == Types::Set(&[DType::Resource]) => {
                    states.next().unwrap().clone()
                }
                "grad" | "delta" => self.tensor(caller, extents, &self.gradient),
                "indices" => indices.unwrap().clone(),
                "global_step" => caller.tensor(&[], &[*scalars.next().unwrap() as i64]),
                _ => self.tensor(caller, &[], &[*scalars.next().unwrap()]),
            });
        }
        let inputs: Vec<&TensorHandle> = inputs.iter().collect();
        caller.call(op, &inputs, &self.attrs()).unwrap();
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
fn steps_have_the_bits_of_tensorflow() {
    let caller = Caller::new();
    let all = recorded(RECORDED);
    assert_eq!(all.len(), 88);
    let mut n_exact = 0;
    for step in &all {
        let n = [step.gradient.len()];
        let states: Vec<_> = step
            .states
            .iter()
            .map(|state| step.variable(&caller, &n, state))
            .collect();
        step.take(&caller, &step.op, &states, &n, None);
        // TensorFlow takes an approximate root, an exponential or a power there.
        let most = match step.op.as_str() {
            "tf.ResourceApplyFtrl" | "tf.ResourceApplyFtrlV2" => 13,
            "tf.ResourceApplyAdagrad"
            | "tf.ResourceApplyAdadelta"
            | "tf.ResourceApplyPowerSign"
            | "tf.ResourceApplyProximalAdagrad" => 1,
            _ => 0,
        };
        let mut is_exact = true;
        for (index, (state, expected)) in states.iter().zip(&step.after).enumerate() {
            let found = step.read(&caller, state);
            is_exact &= found == *expected;
            let distance = found
                .iter()
                .zip(expected)
                .map(|(found, expected)| step.distance(*found, *expected))
                .max();
            let (op, attrs) = (&step.op, &step.attrs);
            assert!(
                distance <= Some(most),
                "{op} {attrs:?} state {index}: {distance:?} units: {found:x?}, expected {expected:x?}"
            );
        }
        n_exact += usize::from(is_exact);
    }
    println!("{n_exact} of {} to the bit", all.len());
    assert!(n_exact >= 64, "{n_exact}");
}

#[test]
fn steps_of_rows_have_the_bits_of_tensorflow() {
    let caller = Caller::new();
    let all = recorded(RECORDED_ROWS);
    assert_eq!(all.len(), 72);
    for step in &all {
        let states: Vec<_> = step
            .states
            .iter()
            .map(|state| step.variable(&caller, &step.extents, state))
            .collect();
        let at = caller.tensor(&[step.indices.len()], &step.indices);
        let extents = [step.indices.len(), step.extents[1]];
        step.take(&caller, &step.op, &states, &extents, Some(&at));
        for (index, (state, expected)) in states.iter().zip(&step.after).enumerate() {
            let found = step.read(&caller, state);
            let distances = found
                .iter()
                .zip(expected)
                .map(|(found, expected)| step.distance(*found, *expected));
            let (op, attrs, distance) = (&step.op, &step.attrs, distances.max());
            assert_eq!(
                distance,
                Some(0),
                "{op} {attrs:?} {extents:?} state {index}"
            );
        }
    }
}

#[test]
fn steps_of_rows_are_those_of_whole_variables() {
    let caller = Caller::new();
    for step in recorded(RECORDED)
        .iter()
        .filter(|step| step.gradient.len() == 16)
    {
        let op = step.op.replace("ResourceApply", "ResourceSparseApply");
        // TensorFlow calculates these in another order for rows.
        let differs = ["Momentum", "RMSProp"].iter().any(|own| op.ends_with(own));
        if find(&op).is_none() || differs && !op.contains("Keras") {
            continue;
        }
        let variables = |extents: &[usize]| {
            let of = |state: &Vec<u64>| step.variable(&caller, extents, state);
            step.states.iter().map(of).collect::<Vec<_>>()
        };
        // The rows in another order, so that each is one step of its own.
        let whole = variables(&[16]);
        step.take(&caller, &step.op, &whole, &[16], None);
        let (rows, at) = (variables(&[4, 4]), caller.tensor(&[4], &[0_i64, 1, 2, 3]));
        step.take(&caller, &op, &rows, &[4, 4], Some(&at));
        for (whole, rows) in whole.iter().zip(&rows) {
            assert_eq!(step.read(&caller, whole), step.read(&caller, rows), "{op}");
        }
        let found = caller.read_shape(&rows[0]);
        assert_eq!(found, [4, 4]);
    }
}

impl Caller {
    fn read_shape(&self, variable: &TensorHandle) -> Vec<i32> {
        self.elements(&self.one("tf.VariableShape", &[variable]))
    }
}

#[test]
fn rows_named_twice_take_two_steps_and_wrong_ones_none() {
    let caller = Caller::new();
    let number = |value: f32| caller.tensor(&[], &[value]);
    let of_zeros = || caller.with(&[3, 2], &[0.0_f32; 6]);
    let (w, accum) = (of_zeros(), of_zeros());
    let gradient = caller.tensor(&[2, 2], &[1.0_f32, 2.0, 1.0, 2.0]);
    let at = caller.tensor(&[2], &[1, 1]);
    let (rate, momentum) = (number(1.0), number(0.5));
    caller.run(
        "tf.ResourceSparseApplyMomentum",
        &[&w, &accum, &rate, &gradient, &at, &momentum],
    );
    assert_eq!(caller.read::<f32>(&accum), [0.0, 0.0, 1.5, 3.0, 0.0, 0.0]);
    assert_eq!(caller.read::<f32>(&w), [0.0, 0.0, -2.5, -5.0, 0.0, 0.0]);
    let fails = |gradient: &TensorHandle, at: &TensorHandle| {
        let inputs = [&w, &accum, &rate, gradient, at, &momentum];
        caller
            .fails("tf.ResourceSparseApplyMomentum", &inputs, &OpAttrs::new())
            .1
    };
    let found = fails(&gradient, &caller.tensor(&[2], &[0_i64, 3]));
    assert_eq!(found, "Index 3 at offset 1 in indices is out of range");
    let found = fails(&gradient, &caller.tensor(&[2, 1], &[0, 1]));
    assert_eq!(found, "indices must be one-dimensional");
    let found = fails(&gradient, &caller.tensor(&[1], &[0]));
    assert_eq!(
        found,
        "grad must be the same size as indices in the first dimension."
    );
    let found = fails(&caller.tensor(&[2, 3], &[0.0_f32; 6]), &at);
    assert_eq!(found, "var and grad must match in dimension 1");
    assert_eq!(caller.read::<f32>(&w), [0.0, 0.0, -2.5, -5.0, 0.0, 0.0]);
}

#[test]
fn halves_take_steps() {
    use tfrt_tensor::{BF16, F16};
    let caller = Caller::new();
    let half = |value: f32| F16(half_bits(value));
    let w = caller.with(&[2], &[half(1.0), half(2.0)]);
    let (rate, gradient) = (
        caller.tensor(&[], &[half(0.5)]),
        caller.tensor(&[2], &[half(1.0), half(-1.0)]),
    );
    caller.run("tf.ResourceApplyGradientDescent", &[&w, &rate, &gradient]);
    assert_eq!(caller.read::<F16>(&w), [half(0.5), half(2.5)]);
    #[allow(clippy::cast_possible_truncation, reason = "the upper half")]
    let of = |value: f32| BF16((value.to_bits() >> 16) as u16);
    let w = caller.with(&[1], &[of(1.0)]);
    let (rate, gradient) = (
        caller.tensor(&[], &[of(0.5)]),
        caller.tensor(&[1], &[of(4.0)]),
    );
    caller.run("tf.ResourceApplyGradientDescent", &[&w, &rate, &gradient]);
    assert_eq!(caller.read::<BF16>(&w), [of(-1.0)]);
}

/// Returns the bits of a number that has few of them.
fn half_bits(value: f32) -> u16 {
    let bits = value.to_bits();
    let exponent = (bits >> 23 & 0xff) + 15 - 127;
    u16::try_from(bits >> 31 << 15 | exponent << 10 | bits >> 13 & 0x3ff).unwrap()
}
