//! Failures of results, and operations whose authors err.

use tfrt_corert::{CoreRuntime, CoreRuntimeOp, OpDefinition, OpRegistry, Outputs, same_metadata};
use tfrt_host::Error;

use super::{Row, User, failure, none, row, settled};
use crate::calls::gate;

/// Returns an operation of one's own.
pub(super) fn op_of(runtime: &CoreRuntime, definition: OpDefinition) -> CoreRuntimeOp {
    let (mut registry, name) = (OpRegistry::new(), definition.name().to_owned());
    registry.add(definition);
    runtime
        .op(&name, &runtime.handler_of("own", registry, None))
        .unwrap()
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = of_inputs();
    rows.extend(of_authors());
    rows
}

fn of_inputs() -> Vec<Row> {
    let user = User::new();
    let x = user.ones(&[2]);
    let failed = user.runtime.failed(Error::unavailable("the file is gone"));
    let (gate, promises) = gate(&user.runtime, false);
    let later = || gate.call_one(&user.context, [&x], &none()).unwrap();
    let add = user.runtime.op("tf.AddV2", &user.runtime.cpu()).unwrap();
    let relu = user.runtime.op("tf.Relu", &user.runtime.cpu()).unwrap();

    let sum = add.call(&user.context, [&later(), &x], &none());
    let three = user.ones(&[3]);
    let tensor = three.tensor().unwrap().unwrap().clone();
    promises.recv().unwrap().resolve(tensor);
    let unfit = failure(sum);

    let unkept = later();
    drop(promises.recv().unwrap());
    settled(&unkept);

    let strings = relu.call(&user.context, [&later()], &none());
    let text = user.strings(&["one"]).tensor().unwrap().unwrap().clone();
    promises.recv().unwrap().resolve(text);
    let strings = failure(strings);
    vec![
        row(
            "An input that has failed",
            user.refusal("tf.AddV2", [&x, &failed], &none()),
        ),
        row(
            "Two inputs that have failed: the last one counts",
            user.refusal(
                "tf.AddV2",
                [
                    &failed,
                    &user.runtime.failed(Error::data_loss("the disk is gone")),
                ],
                &none(),
            ),
        ),
        row("A shape that turns out not to fit", unfit),
        row("A format that turns out not to fit", strings),
        row(
            "A promise that nobody keeps",
            unkept.error().unwrap().clone(),
        ),
    ]
}

fn of_authors() -> Vec<Row> {
    let user = User::new();
    let x = user.ones(&[2]);
    let call = |definition: OpDefinition| {
        let op = op_of(&user.runtime, definition.inputs(1).pure());
        failure(op.call(&user.context, [&x], &none()))
    };
    vec![
        row(
            "An operation that panics",
            call(OpDefinition::new("my.panics", |_| {
                panic!("there is no such place")
            })),
        ),
        row(
            "A metadata function that panics",
            call(
                OpDefinition::new("my.guesses", |_| Ok(Outputs::new()))
                    .metadata(|call| panic!("what is {}?", call.op)),
            ),
        ),
        row(
            "A cost function that panics",
            call(
                OpDefinition::new("my.haggles", |_| Ok(Outputs::new()))
                    .metadata(same_metadata)
                    .cost(|_, _| panic!("it is priceless")),
            ),
        ),
        row(
            "An operation that gives another number of results than it says",
            call(OpDefinition::new("my.forgets", |_| Ok(Outputs::new()))),
        ),
        row(
            "A metadata function that says another number of results",
            call(
                OpDefinition::new("my.two", |call| {
                    let result = call.output(0)?;
                    Ok([result.into()].into_iter().collect())
                })
                .metadata(|call| {
                    let mut results = same_metadata(call)?;
                    results.extend(same_metadata(call)?);
                    Ok(results)
                }),
            ),
        ),
        row(
            "An operation that looks at an input that is not there",
            call(OpDefinition::new("my.reaches", |call| {
                let input = call.dense(1)?.clone();
                Ok([input.into()].into_iter().collect())
            })),
        ),
        row(
            "An operation that makes a result of which nothing is known",
            call(OpDefinition::new("my.hopes", |call| {
                let result = call.output(0)?;
                Ok([result.into()].into_iter().collect())
            })),
        ),
        row(
            "An operation that takes its inputs for others than they are",
            call(OpDefinition::new("my.reads", |call| {
                call.dense(0)?.read()?.elements::<i32>()?;
                Ok(Outputs::new())
            })),
        ),
    ]
}

#[test]
fn shapes_are_known_late_if_the_inputs_that_name_them_are() {
    let user = User::new();
    let (gate, promises) = gate(&user.runtime, false);
    let x = user.ones(&[2, 3]);
    for (name, numbers, wanted) in [
        ("tf.Mean", &[1_i64][..], &[2][..]),
        ("tf.Reshape", &[3, -1], &[3, 2]),
        ("tf.Transpose", &[1, 0], &[3, 2]),
    ] {
        let op = user.runtime.op(name, &user.runtime.cpu()).unwrap();
        let numbers = user.dense(&[numbers.len()], numbers);
        // Nothing is known of the numbers; then their type and shape.
        let of_nothing = gate.call_one(&user.context, [&x], &none()).unwrap();
        let results = [
            op.call_one(&user.context, [&x, &of_nothing], &none()),
            op.call_one(&user.context, [&x, &user.later(&numbers)], &none()),
        ];
        let tensor = || numbers.tensor().unwrap().unwrap().clone();
        promises.recv().unwrap().resolve(tensor());
        user.promises
            .lock()
            .unwrap()
            .pop()
            .unwrap()
            .resolve(tensor());
        for result in results {
            let result = result.unwrap();
            settled(&result);
            assert_eq!(result.shape().unwrap().to_dims()[..], *wanted, "{name}");
        }
    }
}
