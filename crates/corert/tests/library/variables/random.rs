//! Random programs of calls on a few variables: each reads what it would if the calls ran one after the other.

use std::sync::Arc;

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_corert::{OpAttrs, TensorHandle};

use super::Caller;

/// A small generator of numbers: xorshift.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n) as usize
    }

    fn number(&mut self) -> f32 {
        self.below(17) as f32 - 8.0
    }
}

/// The sequential evaluator: the values of the variables after the calls so far, each as one number in all places but those of rows.
struct Model {
    variables: Vec<Vec<f32>>,
    rows: usize,
}

#[test]
fn random_programs_read_what_one_call_after_the_other_would() {
    let queues: [fn() -> Arc<dyn ConcurrentWorkQueue>; 2] = [
        || Arc::new(SingleThreadedWorkQueue::new()),
        || Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()),
    ];
    for queue in queues {
        for seed in 1..60 {
            program(&Caller::on(queue()), seed);
        }
    }
}

/// Makes calls, and compares each read with what the model says.
fn program(caller: &Caller, seed: u64) {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // Small ones, and such as are left to workers.
    let len = if seed.is_multiple_of(4) { 1 << 15 } else { 4 };
    let rows = 4;
    let n_variables = 3;
    let mut model = Model {
        variables: vec![vec![0.0; rows]; n_variables],
        rows,
    };
    let extents = [rows, len / rows];
    let constant = |value: f32| caller.tensor(&extents, &vec![value; len]);
    let variables: Vec<TensorHandle> = (0..n_variables)
        .map(|_| caller.with(&extents, &vec![0.0_f32; len]))
        .collect();
    let mut reads: Vec<(TensorHandle, Vec<f32>)> = Vec::new();
    for _ in 0..40 {
        let at = draw.below(n_variables as u64);
        let (of, own) = (&variables[at], at);
        let value = draw.number();
        // A value that may come later: made of a long sum.
        let given = match draw.below(2) {
            0 => constant(value),
            _ => caller.one("tf.AddV2", &[&constant(value), &constant(0.0)]),
        };
        match draw.below(7) {
            0 => {
                caller.run("tf.AssignVariableOp", &[of, &given]);
                model.variables[own] = vec![value; model.rows];
            }
            1 => {
                caller.run("tf.AssignAddVariableOp", &[of, &given]);
                model.variables[own].iter_mut().for_each(|x| *x += value);
            }
            2 => {
                caller.run("tf.AssignSubVariableOp", &[of, &given]);
                model.variables[own].iter_mut().for_each(|x| *x -= value);
            }
            3 => {
                let other = (own + 1) % n_variables;
                let number = |value: f32| caller.tensor(&[], &[value]);
                let (rate, momentum) = (number(1.0), number(0.0));
                let inputs = [of, &variables[other], &rate, &given, &momentum];
                caller.run("tf.ResourceApplyMomentum", &inputs);
                model.variables[other] = vec![value; model.rows];
                model.variables[own].iter_mut().for_each(|x| *x -= value);
            }
            4 => {
                let row = draw.below(rows as u64);
                let at = caller.tensor(&[1], &[i32::try_from(row).unwrap()]);
                let by = caller.tensor(&[1, len / rows], &vec![value; len / rows]);
                caller.run("tf.ResourceScatterAdd", &[of, &at, &by]);
                model.variables[own][row] += value;
            }
            5 => {
                // One variable's value becomes another's.
                let other = (own + 1) % n_variables;
                let read = caller.one("tf.ReadVariableOp", &[of]);
                caller
                    .call(
                        "tf.AssignVariableOp",
                        &[&variables[other], &read],
                        &OpAttrs::new(),
                    )
                    .unwrap();
                model.variables[other] = model.variables[own].clone();
            }
            _ => reads.push((
                caller.one("tf.ReadVariableOp", &[of]),
                model.variables[own].clone(),
            )),
        }
    }
    for (variable, expected) in variables.iter().zip(&model.variables) {
        reads.push((
            caller.one("tf.ReadVariableOp", &[variable]),
            expected.clone(),
        ));
    }
    for (index, (read, expected)) in reads.iter().enumerate() {
        let found = caller.elements::<f32>(read);
        for (row, expected) in found.chunks_exact(len / rows).zip(expected) {
            assert!(
                row.iter().all(|x| x == expected),
                "seed {seed}, read {index}: {:?}, expected {expected}",
                &row[..2.min(row.len())]
            );
        }
    }
    caller.finish().unwrap();
}
