//! Steps: operations that make new states of old ones, which are not lost.

use tfrt_corert::{CallSite, Inputs};
use tfrt_host::Error;

use super::*;

fn rates() -> OpAttrs {
    let mut attrs = OpAttrs::new();
    attrs.set("learning_rate", 0.5_f32).unwrap();
    attrs.set("momentum", 0.5_f32).unwrap();
    attrs
}

fn address(handle: &TensorHandle) -> usize {
    let tensor = handle.tensor().unwrap().unwrap();
    tensor.as_dense().unwrap().buffer().address()
}

#[test]
fn a_step_that_is_refused_has_taken_nothing() {
    let runtime = super::runtime_of(&host());
    let context = runtime.context();
    let op = runtime.op("tfrt.momentum", &runtime.cpu()).unwrap();
    for n in [2, 1 << 17] {
        // Others hold the memory of each, ...
        let ones = || {
            let allocator = runtime.host().allocator();
            let held = DenseHostTensor::from_slice(allocator, &[n], &vec![1.0_f32; n]).unwrap();
            (runtime.handle(held.clone()), held)
        };
        let three = || {
            let all = [ones(), ones(), ones()];
            (
                all.each_ref().map(|(handle, _)| handle.clone()),
                all.map(|(_, held)| held),
            )
        };
        // ... and write to one that the step has to read, or to copy.
        for locked in [1, 2] {
            let (mut inputs, held) = three();
            let writing = held[locked].write().unwrap();
            let given = Inputs::owned(&mut inputs);
            let result = op.call(&context, given, &rates());
            let results = result.inspect(|results| results.iter().for_each(wait));
            drop(writing);
            match results {
                Ok(results) => assert!(results.iter().all(|result| result.error().is_some())),
                // At once: the inputs are there.
                Err(_) => assert!(inputs.iter().all(|input| values(input) == vec![1.0; n])),
            }

            let (mut inputs, held) = three();
            let writing = held[locked].write().unwrap();
            let states = context.step(&op, &mut inputs, (&rates()).into(), CallSite::here());
            let states = states.inspect(|states| states.iter().for_each(wait));
            drop(writing);
            let states = states.unwrap_or_else(|_| inputs[..2].iter().cloned().collect());
            assert!(states.iter().all(|state| values(state) == vec![1.0; n]));
        }
    }
}

#[test]
fn a_step_without_a_gradient_gives_the_states_back() {
    let (runtime, told) = listening();
    let context = runtime.context();
    let steps = context.apart();
    let op = runtime.op("tfrt.sgd", &runtime.cpu()).unwrap();
    let mut attrs = OpAttrs::new();
    attrs.set("learning_rate", 0.5_f32).unwrap();
    let step = |weights: TensorHandle, gradient: &TensorHandle| {
        let mut inputs = [weights, gradient.clone()];
        let states = steps.step(&op, &mut inputs, (&attrs).into(), CallSite::here());
        states.map(|mut states| states.pop().unwrap())
    };
    let weights = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let before = address(&weights);
    let (gate, promises) = gate(&runtime, false);
    let later = || gate.call_one(&context, [&weights], &none()).unwrap();
    let (fails, unfit, never) = (later(), later(), later());
    let mut stepped = weights.clone();
    for gradient in [&fails, &unfit, &never] {
        stepped = step(stepped, gradient).unwrap();
    }
    drop(weights.clone());
    assert!(!stepped.is_settled());
    promises.recv().unwrap().fail(Error::data_loss("gone"));
    promises
        .recv()
        .unwrap()
        .resolve(tensor(&runtime, &[1.0, 1.0]));
    assert!(!stepped.is_settled());
    context.cancel();
    assert_eq!(values(&stepped), [1.0]);
    assert_eq!(address(&stepped), before);
    // The failure, and the gradient that does not fit.
    assert_eq!(told.lock().unwrap().len(), 2);
    assert!(step(stepped, &never).is_err());
}
