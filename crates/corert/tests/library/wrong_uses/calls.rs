//! Operations that are not there, inputs that are too few, too many or elsewhere, contexts that take no more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_corert::{NullOpHandler, OpHandler};
use tfrt_host::{DeviceId, Error};

use super::{Row, User, attrs, failure, none, row, settled};
use crate::calls::gate;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = finding();
    rows.extend(inputs());
    rows.extend(places());
    rows.extend(contexts());
    rows
}

fn finding() -> Vec<Row> {
    let user = User::new();
    let (runtime, cpu) = (&user.runtime, user.runtime.cpu());
    let null: Arc<dyn OpHandler> = Arc::new(NullOpHandler::new(DeviceId::HOST));
    vec![
        row(
            "Looking for an operation that nobody knows",
            runtime.op("tf.Rely", &cpu).unwrap_err(),
        ),
        row(
            "Looking for one whose name is no text for terminals",
            runtime.op("tf.\u{1b}[31m\n", &cpu).unwrap_err(),
        ),
        row(
            "Looking for one without a name",
            runtime.op("", &cpu).unwrap_err(),
        ),
        row(
            "Looking for one where the row of handlers ends",
            runtime.op("tf.MatMul", &null).unwrap_err(),
        ),
    ]
}

fn inputs() -> Vec<Row> {
    let user = User::new();
    let x = user.ones(&[2]);
    let relu = user.runtime.op("tf.Relu", &user.runtime.cpu()).unwrap();
    let print = user.runtime.op("tfrt_test.print", &user.runtime.cpu());
    let print = print.unwrap();
    vec![
        row("Too few inputs", user.refusal("tf.AddV2", [&x], &none())),
        row("Too many", user.refusal("tf.Relu", [&x, &x], &none())),
        row(
            "None where one is needed",
            failure(relu.call(&user.context, (), &none())),
        ),
        row(
            "Too few of any number",
            user.refusal("tf.ConcatV2", [&x], &none()),
        ),
        row(
            "Too many of some",
            user.refusal("tf._FusedConv2D", vec![x.clone(); 8], &none()),
        ),
        row(
            "The only result of an operation that has none",
            print.call_one(&user.context, [&x], &none()).unwrap_err(),
        ),
        row("The only result of an operation that has two", {
            let loss = user.runtime.op(
                "tf.SparseSoftmaxCrossEntropyWithLogits",
                &user.runtime.cpu(),
            );
            let inputs = [user.ones(&[1, 2]), user.dense(&[1], &[0_i32])];
            let loss = loss.unwrap().call_one(&user.context, inputs, &none());
            loss.unwrap_err()
        }),
        row(
            "A tensor of another format that can't be converted",
            user.refusal("tf.Relu", [&user.strings(&["one"])], &none()),
        ),
    ]
}

fn places() -> Vec<Row> {
    let (user, other) = (User::new(), User::new());
    let (x, foreign) = (user.ones(&[2]), other.ones(&[2]));
    let add = user.runtime.op("tf.AddV2", &user.runtime.cpu()).unwrap();
    let device = user.runtime.host().devices().add_host("CPU:7").unwrap();
    let elsewhere = user.runtime.rows(device.id(), None);
    let relu = user.runtime.op("tf.Relu", &elsewhere).unwrap();
    vec![
        row(
            "A handle of another runtime",
            user.refusal("tf.AddV2", [&x, &foreign], &none()),
        ),
        row(
            "An operation of another runtime than the context",
            failure(add.call(&other.context, [&foreign, &foreign], &none())),
        ),
        row(
            "A tensor on another device than the operation",
            failure(relu.call(&user.context, [&x], &none())),
        ),
    ]
}

fn contexts() -> Vec<Row> {
    let mut rows = Vec::new();
    let user = User::new();
    let x = user.ones(&[2]);
    user.context.cancel();
    rows.push(row(
        "A call with a context that was cancelled",
        user.refusal("tf.Relu", [&x], &none()),
    ));

    let user = User::new();
    let x = user.ones(&[2]);
    let reason = Error::aborted("the user went away");
    user.context.cancel_with(reason);
    rows.push(row(
        "The same, with a reason of one's own",
        user.refusal("tf.Sum", [&x], &attrs!["axes" => [0_i64]]),
    ));

    let user = User::new();
    let (x, (slow, _promises)) = (user.ones(&[2]), gate(&user.runtime, false));
    let later = slow.call_one(&user.context, [&x], &none()).unwrap();
    let soon = Instant::now() + Duration::from_millis(20);
    user.context.set_deadline(soon);
    settled(&later);
    rows.push(row(
        "A call behind the deadline",
        user.refusal("tf.Relu", [&x], &none()),
    ));

    let user = User::new();
    let (x, (slow, _promises)) = (user.ones(&[2]), gate(&user.runtime, false));
    let context = user.runtime.context().with_max_in_flight(2);
    let relu = user.runtime.op("tf.Relu", &user.runtime.cpu()).unwrap();
    let later = slow.call_one(&context, [&x], &none()).unwrap();
    let calls = (0..3).map(|_| relu.call(&context, [&later], &none()));
    let refused = calls.filter_map(Result::err).next();
    rows.push(row("Too many calls in flight", refused.unwrap()));
    rows
}
