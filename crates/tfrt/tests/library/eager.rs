//! Tensors with methods: what they give, what they say, and programs made of calls.

#[path = "eager/rows.rs"]
mod rows;

use std::sync::Arc;

use tfrt::corert::OpAttrs;
use tfrt::eager::{Eager, Handle};
use tfrt::{ErrorCode, Model, MultiThreadedWorkQueue, Output, Runtime, SourceLocation};

fn eager() -> Eager {
    Eager::new(&Runtime::new())
}

fn address(tensor: &Handle) -> usize {
    tensor.to_host().unwrap().buffer().address()
}

#[test]
fn methods_and_operators_calculate() {
    let eager = eager();
    let x = eager.tensor(&[2, 2], &[1.0_f32, -2.0, 3.0, -4.0]).unwrap();
    let two = eager.scalar(2.0_f32).unwrap();
    let sum = (&(&x * &two).unwrap() + &x).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [3.0, -6.0, 9.0, -12.0]);
    assert_eq!(
        x.relu()
            .unwrap()
            .sum(&[0])
            .unwrap()
            .to_vec::<f32>()
            .unwrap(),
        [4.0, 0.0]
    );
    assert_eq!(
        x.mean(&[-1]).unwrap().to_vec::<f32>().unwrap(),
        [-0.5, -0.5]
    );
    assert_eq!(x.argmax(1).unwrap().to_vec::<i64>().unwrap(), [0, 0]);
    assert_eq!(
        x.reshape(&[-1]).unwrap().shape().map(ToString::to_string),
        Some("[4]".to_owned())
    );
    assert_eq!(
        (-&x).unwrap().to_vec::<f32>().unwrap(),
        [-1.0, 2.0, -3.0, 4.0]
    );
    let transposed = x.transpose(&[1, 0]).unwrap();
    assert_eq!(transposed.to_vec::<f32>().unwrap(), [1.0, 3.0, -2.0, -4.0]);
    let joined = Handle::concat(&[&x, &transposed], 1).unwrap();
    assert_eq!(
        joined.to_vec::<f32>().unwrap(),
        [1.0, -2.0, 1.0, 3.0, 3.0, -4.0, -2.0, -4.0]
    );
    let product = x.matmul_transposed(&x, [true, false]).unwrap();
    assert_eq!(product.to_vec::<f32>().unwrap(), [10.0, -14.0, -14.0, 20.0]);
}

#[test]
fn operations_write_over_tensors_that_are_given_for_good_alone() {
    let eager = eager();
    let x = eager.tensor(&[2], &[1.0_f32, 2.0]).unwrap();
    let place = address(&x);
    let lent = eager.op("tf.Neg", &[&x], &OpAttrs::new()).unwrap();
    assert_ne!(address(&lent[0]), place);
    let shared = eager.op("tf.Neg", [x.clone()], &OpAttrs::new()).unwrap();
    assert_ne!(address(&shared[0]), place);
    let given = eager.op("tf.Neg", vec![x], &OpAttrs::new()).unwrap();
    assert_eq!(address(&given[0]), place);
    assert_eq!(given[0].to_vec::<f32>().unwrap(), [-1.0, -2.0]);
}

#[test]
fn errors_say_shapes_and_the_place_of_the_call() {
    let eager = eager();
    let x = eager.zeros::<f32>(&[2, 3]).unwrap();
    let y = eager.zeros::<f32>(&[2, 3]).unwrap();
    let line = line!() + 1;
    let error = x.matmul(&y).unwrap_err();
    assert!(
        error
            .message()
            .starts_with("matmul of f32 [2, 3] and f32 [2, 3]: "),
        "{error}"
    );
    match error.location() {
        Some(SourceLocation::FileLineCol {
            file, line: found, ..
        }) => {
            assert!(file.ends_with("eager.rs"));
            assert_eq!(*found, line);
        }
        other => panic!("{other:?}"),
    }
    let error = (&x + &eager.scalar(1_i32).unwrap()).unwrap_err();
    assert!(error.message().contains("f32 [2, 3] and i32 []"), "{error}");
    let error = eager.op("tf.NoSuch", &[&x], &OpAttrs::new()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
    assert_eq!(
        x.item::<f32>().unwrap_err().message(),
        "expected a tensor of one element, found f32 [2, 3]"
    );
}

#[test]
fn long_operations_are_left_to_workers_and_awaited() {
    let eager = eager();
    let x = eager.fill::<f32>(&[300, 300], 0.5).unwrap();
    let mut y = x.clone();
    for _ in 0..5 {
        y = (&y.matmul(&x).unwrap() * &eager.scalar(1.0_f32 / 75.0).unwrap()).unwrap();
    }
    assert_eq!(y.shape().unwrap().to_string(), "[300, 300]");
    let y = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(async { y.await })
        .unwrap();
    assert!(
        y.to_vec::<f32>()
            .unwrap()
            .iter()
            .all(|element| *element == 1.0 || *element > 0.4)
    );
}

#[test]
fn variables_change_in_place_unless_somebody_has_read_them() {
    let eager = eager();
    let w = eager.variable(eager.tensor(&[2], &[1.0_f32, 2.0]).unwrap());
    let gradient = eager.tensor(&[2], &[1.0_f32, -1.0]).unwrap();
    let before = address(&w.read());
    w.descend(&gradient, 0.5).unwrap();
    assert_eq!(address(&w.read()), before);
    let kept = w.read();
    w.descend(&gradient, 0.5).unwrap();
    assert_eq!(kept.to_vec::<f32>().unwrap(), [0.5, 2.5]);
    assert_eq!(w.read().to_vec::<f32>().unwrap(), [0.0, 3.0]);
    // A step that is refused changes nothing.
    let wrong = eager.zeros::<f32>(&[3]).unwrap();
    let error = w.descend(&wrong, 0.5).unwrap_err();
    assert!(
        error
            .message()
            .starts_with("descend of f32 [2] and f32 [3]: "),
        "{error}"
    );
    assert_eq!(w.read().to_vec::<f32>().unwrap(), [0.0, 3.0]);
    let speed = eager.variable(eager.zeros::<f32>(&[2]).unwrap());
    w.descend_with(&speed, &gradient, [1.0, 0.9]).unwrap();
    w.descend_with(&speed, &gradient, [1.0, 0.9]).unwrap();
    let moved = w.read().to_vec::<f32>().unwrap();
    assert!(
        (moved[0] + 2.9).abs() < 1e-6 && (moved[1] - 5.9).abs() < 1e-6,
        "{moved:?}"
    );
    assert!(w.descend_with(&w, &gradient, [1.0, 0.9]).is_err());
    assert!(w.assign(&wrong).is_err());
}

/// Returns a network of every kind of attribute that programs have to carry.
fn network(x: &Handle, w: &Handle, b: &Handle) -> Result<Vec<Handle>, tfrt::Error> {
    let hidden = x.matmul(w)?.bias_add(b)?.relu()?;
    let probabilities = hidden.softmax()?;
    let classes = probabilities.argmax(-1)?;
    let swapped = hidden.transpose(&[1, 0])?.reshape(&[-1, 2])?;
    Ok(vec![
        probabilities,
        classes,
        swapped.cast(tfrt::tensor::DType::I32)?.sum(&[0])?,
    ])
}

#[test]
fn recorded_calls_are_a_model_with_the_same_results() {
    for n_threads in [1, 3] {
        let queue = MultiThreadedWorkQueue::new(n_threads, 1).unwrap();
        let runtime = Runtime::builder().queue(Arc::new(queue)).build();
        let eager = Eager::new(&runtime);
        let numbers = |n: usize| {
            (0..n)
                .map(|i| (i as f32 * 0.37).sin())
                .collect::<Vec<f32>>()
        };
        let w = eager.tensor(&[3, 4], &numbers(12)).unwrap();
        let b = eager.tensor(&[4], &numbers(4)).unwrap();
        let x = eager.tensor(&[2, 3], &numbers(6)).unwrap();
        let recorded = eager
            .record(&[("x", &x)], |_, inputs| network(&inputs[0], &w, &b))
            .unwrap();
        let path =
            std::env::temp_dir().join(format!("tfrt-eager-{}-{n_threads}.bef", std::process::id()));
        recorded.save(&path).unwrap();
        let models: [Model; 2] = [
            recorded.compile(&runtime).unwrap(),
            runtime.open_model(&path).unwrap(),
        ];
        std::fs::remove_file(&path).unwrap();
        let other: Vec<f32> = numbers(6).iter().map(|x| 1.0 - x).collect();
        let x = eager.tensor(&[2, 3], &other).unwrap();
        let expected = network(&x, &w, &b).unwrap();
        for model in models {
            assert_eq!(model.inputs()[0].name, "x");
            let given = [("x", x.to_host().unwrap())];
            let outputs = model.call(&runtime.context(), given).wait().unwrap();
            for (index, expected) in expected.iter().enumerate() {
                let found = outputs.tensor(&format!("output{index}")).unwrap();
                let found = found.as_dense().unwrap();
                let expected = expected.to_host().unwrap();
                assert_eq!(found.metadata(), expected.metadata());
                assert_eq!(
                    found.read().unwrap().bytes(),
                    expected.read().unwrap().bytes()
                );
            }
            // Other shapes are refused by the signature.
            let wrong = [("x", eager.zeros::<f32>(&[5, 3]).unwrap().to_host().unwrap())];
            assert!(model.call(&runtime.context(), wrong).wait().is_err());
        }
        // As text it goes round.
        let text = recorded.to_string();
        let parsed =
            tfrt::ir::parse(&tfrt::ir::Source::new("recorded.mlir", text.clone())).unwrap();
        assert_eq!(parsed.to_string(), text);
        assert!(text.contains("\"tf.MatMul\""), "{text}");
    }
}

#[test]
fn recorded_side_effects_keep_their_order() {
    let (output, captured) = Output::captured();
    let runtime = Runtime::builder().output(output).build();
    let eager = Eager::new(&runtime);
    let x = eager.tensor(&[1], &[1_i32]).unwrap();
    let constant = eager.tensor(&[1], &[7_i32]).unwrap();
    let recorded = eager
        .record(&[("x", &x)], |eager, inputs| {
            let x = &inputs[0];
            eager.op("tfrt_test.print", &[x], &OpAttrs::new())?;
            // Of nothing that the program is given: it is a call of the program all the same.
            eager.op("tfrt_test.print", &[&constant], &OpAttrs::new())?;
            let y = (x + x)?;
            eager.op("tfrt_test.print", &[&y], &OpAttrs::new())?;
            Ok(vec![y])
        })
        .unwrap();
    let model = recorded.compile(&runtime).unwrap();
    let before = captured.printed();
    model
        .call(&runtime.context(), [("x", x.to_host().unwrap())])
        .wait()
        .unwrap();
    let printed = captured.printed();
    // What the recording printed, the program prints again.
    assert_eq!(printed[before.len()..], before);
    assert_eq!(before.lines().count(), 3);
}

#[test]
fn what_was_not_made_in_a_recording_is_no_result_of_it() {
    let eager = eager();
    let x = eager.tensor(&[1], &[1.0_f32]).unwrap();
    let error = eager
        .record(&[("x", &x)], |_, _| Ok(vec![x.clone()]))
        .unwrap_err();
    assert_eq!(
        error.message(),
        "result 0 is neither an input nor a result of a recorded call"
    );
}

#[test]
fn cancelled_calls_fail_until_reset() {
    let mut eager = eager();
    let x = eager.tensor(&[1], &[1.0_f32]).unwrap();
    eager.cancel();
    assert_eq!(x.relu().unwrap_err().code(), ErrorCode::Cancelled);
    eager.reset();
    let again = eager.of(x.to_host().unwrap());
    assert_eq!(again.relu().unwrap().item::<f32>().unwrap(), 1.0);
    // What was there goes on, whichever comes first.
    let y = eager.tensor(&[1], &[2.0_f32]).unwrap();
    assert_eq!(x.plus(&y).unwrap().item::<f32>().unwrap(), 3.0);
    assert_eq!(y.plus(&x).unwrap().item::<f32>().unwrap(), 3.0);
}

#[path = "eager/recordings.rs"]
mod recordings;
#[path = "eager/variables.rs"]
mod variables;
