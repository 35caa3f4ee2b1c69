//! Contents and order of a recording.

use tfrt_corert::Recording;
use tfrt_tensor::TensorFormat;

use super::*;

#[test]
fn a_tensor_from_outside_is_one_constant() {
    let runtime = super::runtime_of(&host());
    let recording = Recording::begin(&runtime.context());
    let context = recording.context();
    let x = recording.input(runtime.dense(&[2], &[1.0_f32, 2.0]).unwrap());
    let w = runtime.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let once = add(&runtime).call_one(context, [&x, &w], &none()).unwrap();
    let twice = add(&runtime)
        .call_one(context, [once, w.clone()], &none())
        .unwrap();
    // Of another shape in the same memory it is another.
    let view = tensor_with(&w, &[1, 2]);
    let view = runtime.handle(view);
    let last = add(&runtime).call_one(context, [twice, view], &none());
    let trace = recording.finish(&[last.unwrap()]).unwrap();
    assert_eq!((trace.constants.len(), trace.calls.len()), (2, 3));
    assert_eq!(trace.calls[0].inputs[1], trace.calls[1].inputs[1]);
}

fn tensor_with(handle: &TensorHandle, extents: &[usize]) -> DenseHostTensor {
    let dense = handle.tensor().unwrap().unwrap().as_dense().unwrap();
    dense.reshape(TensorShape::new(extents).unwrap()).unwrap()
}

#[test]
fn calls_are_kept_in_the_order_of_their_effects() {
    let runtime = super::runtime_of(&host());
    let recording = Recording::begin(&runtime.context());
    let op_of = |definition: OpDefinition| {
        let (mut registry, name) = (OpRegistry::new(), definition.name().to_owned());
        registry.add(definition.inputs(0).results(0));
        runtime
            .op(&name, &runtime.handler_of("own", registry, None))
            .unwrap()
    };
    let inner = op_of(OpDefinition::new("inner", |_| Ok([].into_iter().collect())));
    let context = recording.context().clone();
    let outer = op_of(OpDefinition::new("outer", move |_| {
        // As another thread would during this call: it comes after it.
        inner.call(&context, (), &none())?;
        Ok([].into_iter().collect())
    }));
    outer.call(recording.context(), (), &none()).unwrap();
    let context = recording.context().clone();
    let trace = recording.finish(&[]).unwrap();
    let names: Vec<&str> = trace.calls.iter().map(|call| call.op.name()).collect();
    assert_eq!(names, ["outer", "inner"]);
    // Under its own name, by which a program finds it.
    assert_eq!(trace.calls[0].op.handler(), "own");
    // After the end nothing is kept.
    assert!(!context.is_recording());
    outer.call(&context, (), &none()).unwrap();
}

#[test]
fn a_transfer_that_changes_nothing_keeps_the_value() {
    let runtime = super::runtime_of(&host());
    let recording = Recording::begin(&runtime.context());
    let context = recording.context();
    let x = recording.input(runtime.dense(&[1], &[1.0_f32]).unwrap());
    let to = |format| context.transfer(&x, &runtime.device(), format);
    let same = to(TensorFormat::DenseHost).unwrap();
    let error = to(TensorFormat::CooHost).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    let sum = add(&runtime).call_one(context, [&same, &same], &none());
    let trace = recording.finish(&[sum.unwrap()]).unwrap();
    assert!(trace.constants.is_empty());
}
