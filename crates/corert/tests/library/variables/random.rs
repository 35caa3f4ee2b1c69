//! Random programs of calls on a few variables and lists: each reads what it would if the calls ran one after the other;
//! and threads that change variables together, of which no change is lost and none is seen by half.

use std::sync::Arc;

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_corert::{Context, OpAttrs, TensorHandle};
use tfrt_tensor::DType;

use super::{Caller, typed};

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
    list: Vec<Vec<f32>>,
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
        list: Vec::new(),
        rows,
    };
    let extents = [rows, len / rows];
    let constant = |value: f32| caller.tensor(&extents, &vec![value; len]);
    let variables: Vec<TensorHandle> = (0..n_variables)
        .map(|_| caller.with(&extents, &vec![0.0_f32; len]))
        .collect();
    let mut reads: Vec<(TensorHandle, Vec<f32>)> = Vec::new();
    let (of_f32, any_shape) = (
        typed("element_dtype", DType::F32),
        caller.tensor(&[], &[-1]),
    );
    let of_list = |op: &str, inputs: &[&TensorHandle]| {
        let mut results = caller.call(op, inputs, &of_f32).unwrap();
        (results.remove(0), results.pop())
    };
    let mut list = of_list("tf.EmptyTensorList", &[&any_shape, &any_shape]).0;
    for _ in 0..40 {
        let at = draw.below(n_variables as u64);
        let (of, own) = (&variables[at], at);
        let value = draw.number();
        // A value that may come later: made of a long sum.
        let given = match draw.below(2) {
            0 => constant(value),
            _ => caller.one("tf.AddV2", &[&constant(value), &constant(0.0)]),
        };
        match draw.below(11) {
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
            6 => {
                // Some rows, one of them twice.
                let [x, y] = [draw.below(rows as u64), draw.below(rows as u64)];
                let at = [x, y, x].map(|row| i32::try_from(row).unwrap());
                let gathered = typed("dtype", DType::F32);
                let inputs = [of, &caller.tensor(&[3], &at)];
                let mut found = caller.call("tf.ResourceGather", &inputs, &gathered);
                let found = found.as_mut().unwrap().remove(0);
                let row = |row: usize| model.variables[own][row];
                reads.push((found, vec![row(x), row(y), row(x)]));
            }
            7 => {
                // A list keeps what was read, whatever becomes of the variable.
                let read = caller.one("tf.ReadVariableOp", &[of]);
                list = of_list("tf.TensorListPushBack", &[&list, &read]).0;
                model.list.push(model.variables[own].clone());
            }
            8 if !model.list.is_empty() => {
                let index = draw.below(model.list.len() as u64);
                let at = caller.tensor(&[], &[i32::try_from(index).unwrap()]);
                let found = of_list("tf.TensorListGetItem", &[&list, &at, &any_shape]).0;
                reads.push((found, model.list[index].clone()));
                list = of_list("tf.TensorListSetItem", &[&list, &at, &given]).0;
                model.list[index] = vec![value; model.rows];
            }
            9 if !model.list.is_empty() => {
                let (rest, last) = of_list("tf.TensorListPopBack", &[&list, &any_shape]);
                list = rest;
                let last = last.unwrap();
                caller.run("tf.AssignVariableOp", &[of, &last]);
                model.variables[own] = model.list.pop().unwrap();
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

/// Calls operations in a context of its own.
struct Thread<'c> {
    caller: &'c Caller,
    context: Context,
}

impl Thread<'_> {
    fn call(&self, name: &str, inputs: &[&TensorHandle]) -> Option<TensorHandle> {
        let op = self.caller.runtime.op(name, &self.caller.runtime.cpu());
        let results = op.unwrap().call(&self.context, inputs, &OpAttrs::new());
        results.unwrap().pop()
    }
}

#[test]
fn threads_lose_no_change_and_see_none_by_half() {
    const N_THREADS: u64 = 4;
    const N_VARIABLES: u64 = 3;
    for seed in 1..8 {
        let caller = Caller::on(Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()));
        let len = if seed % 2 == 0 { 1 << 15 } else { 4 };
        let variables: Vec<TensorHandle> = (0..N_VARIABLES)
            .map(|_| caller.with(&[len], &vec![0.0_f32; len]))
            .collect();
        let sums: Vec<Vec<f32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..N_THREADS)
                .map(|index| {
                    let thread = Thread {
                        caller: &caller,
                        context: caller.context.apart(),
                    };
                    let (variables, seed) = (&variables, seed * N_THREADS + index + 1);
                    scope.spawn(move || add_and_look(&thread, variables, len, seed))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        for (index, variable) in variables.iter().enumerate() {
            let expected: f32 = sums.iter().map(|own| own[index]).sum();
            let found = caller.read::<f32>(variable);
            assert!(
                found.iter().all(|x| *x == expected),
                "seed {seed}: {:?}, expected {expected}",
                &found[..2]
            );
        }
    }
}

/// Adds numbers above 0 to variables that others add to, too; returns how much to each.
fn add_and_look(
    thread: &Thread<'_>,
    variables: &[TensorHandle],
    len: usize,
    seed: u64,
) -> Vec<f32> {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut sums = vec![0.0; variables.len()];
    let mut reads: Vec<(usize, TensorHandle, f32)> = Vec::new();
    for _ in 0..30 {
        let at = draw.below(variables.len() as u64);
        let of = &variables[at];
        if draw.below(3) == 0 {
            let read = thread.call("tf.ReadVariableOp", &[of]).unwrap();
            reads.push((at, read, sums[at]));
            continue;
        }
        let value = 1.0 + draw.below(3) as f32;
        let value_of_all = thread.caller.tensor(&[len], &vec![value; len]);
        match draw.below(2) {
            0 => {
                thread.call("tf.AssignAddVariableOp", &[of, &value_of_all]);
            }
            _ => {
                // It takes the locks of both, and changes neither.
                let other = &variables[(at + 1) % variables.len()];
                let number = |value: f32| thread.caller.tensor(&[], &[value]);
                let zero = number(0.0);
                let zeros = thread.caller.tensor(&[len], &vec![0.0_f32; len]);
                thread.call(
                    "tf.ResourceApplyMomentum",
                    &[of, other, &zero, &zeros, &number(1.0)],
                );
                thread.call("tf.AssignAddVariableOp", &[of, &value_of_all]);
            }
        }
        sums[at] += value;
    }
    let mut before = vec![0.0; variables.len()];
    for (at, read, own) in reads {
        let found = thread.caller.elements::<f32>(&read);
        assert!(found.iter().all(|x| *x == found[0]), "seen by half");
        // Its own changes are there, and what was there before.
        assert!(found[0] >= own && found[0] >= before[at], "seed {seed}");
        before[at] = found[0];
    }
    let done = thread.context.effects();
    let queue = thread.caller.runtime.host().queue();
    queue.await_all(&[done.as_any().clone()]).unwrap();
    assert!(done.error().is_none());
    sums
}
