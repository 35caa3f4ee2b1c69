//! Recordings: calls that are recorded, and calls that are refused.

use tfrt::eager::Eager;
use tfrt::tensor::{CooHostTensor, DenseHostTensor, ScalarHostTensor, TensorShape};
use tfrt::{ErrorCode, Runtime};

use super::eager;

#[test]
fn variables_are_not_changed_in_a_recording() {
    let eager = eager();
    let w = eager.variable(eager.tensor(&[1], &[1.0_f32]).unwrap());
    let x = eager.tensor(&[1], &[2.0_f32]).unwrap();
    let mut kept = None;
    let recorded = eager.record(&[("x", &x)], |_, inputs| {
        let gradient = inputs[0].square()?;
        for error in [w.descend(&gradient, 0.5), w.assign(&gradient)] {
            let error = error.unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument);
            assert!(error.message().contains("in a recording"), "{error}");
        }
        kept = Some(gradient);
        Ok(vec![inputs[0].times(&w.read())?])
    });
    recorded.unwrap();
    // After it they are: nothing is recorded any more.
    w.descend(&kept.unwrap(), 0.25).unwrap();
    assert_eq!(w.read().item::<f32>().unwrap(), 0.0);
}

#[test]
fn constants_are_waited_for_and_written_once() {
    let eager = eager();
    let x = eager.fill::<f32>(&[300, 300], 0.5).unwrap();
    let recorded = eager
        .record(&[("x", &x)], |_, inputs| {
            let later = x.matmul(&x)?;
            // Its result is not used.
            inputs[0].plus(&later)?;
            Ok(vec![inputs[0].matmul(&x)?.matmul(&x)?])
        })
        .unwrap();
    let text = recorded.to_string();
    assert_eq!(text.matches("corert.const_dense_tensor").count(), 2);
}

#[test]
fn constants_keep_the_format_that_they_have() {
    let runtime = Runtime::new();
    let eager = Eager::new(&runtime);
    let allocator = runtime.host().allocator();
    let dense = DenseHostTensor::from_slice(allocator, &[3], &[0.0_f32, 5.0, 0.0]).unwrap();
    let sparse = eager.of(CooHostTensor::from_dense(allocator, &dense).unwrap());
    let shape = TensorShape::new(&[3]).unwrap();
    let halves = eager.of(ScalarHostTensor::new(shape, 0.5_f32));
    let x = eager.tensor(&[3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let recorded = eager
        .record(&[("x", &x)], |_, inputs| {
            Ok(vec![inputs[0].plus(&sparse)?.times(&halves)?])
        })
        .unwrap();
    let text = recorded.to_string();
    assert_eq!(text.matches("cpu.stored.value").count(), 2);
    let model = recorded.compile(&runtime).unwrap();
    let given = [("x", x.to_host().unwrap())];
    let outputs = model.call(&runtime.context(), given).wait().unwrap();
    let y = outputs.tensor("output0").unwrap();
    let y = y.as_dense().unwrap();
    assert_eq!(
        y.read().unwrap().elements::<f32>().unwrap(),
        [0.5, 3.5, 1.5]
    );
}
