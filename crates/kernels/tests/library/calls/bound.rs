//! Tests of functions that are bound: one list takes the arguments of a call and then has its results.

use std::sync::Arc;

use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, ErrorCode, ExecutionContext, HostContext, RequestContext};

use super::main_of;

fn host() -> HostContext {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .build()
}

fn numbers(values: &[AnyAsyncValue]) -> Vec<i32> {
    let number = |value: &AnyAsyncValue| *value.get::<i32>().expect("a number that is there");
    values.iter().map(number).collect()
}

#[test]
fn list_of_arguments_becomes_that_of_results_again_and_again() {
    let host = host();
    let swapped_sum = main_of(
        &host,
        "func.func @main(%a: i32, %b: i32) -> (i32, i32, i32) {
           %sum = tfrt.add.i32 %a, %b
           tfrt.return %b, %a, %sum : i32, i32, i32
         }",
    )
    .bind();
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let mut values = Vec::new();
    for n in 0..100 {
        values.clear();
        values.extend([n, 2 * n].map(AnyAsyncValue::new));
        swapped_sum.call(&context, &mut values);
        assert_eq!(numbers(&values), [2 * n, n, 3 * n]);
    }
    assert_eq!(swapped_sum.function().name(), "main");
    assert_eq!(format!("{swapped_sum:?}"), "BoundCall(\"main\")");
}

#[test]
fn wrong_number_of_arguments_fails_each_result() {
    let host = host();
    let call = main_of(
        &host,
        "func.func @main(%a: i32) -> (i32, i32) { tfrt.return %a, %a : i32, i32 }",
    )
    .bind();
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let mut values = vec![AnyAsyncValue::new(1), AnyAsyncValue::new(2)];
    call.call(&context, &mut values);
    let codes = values
        .iter()
        .map(|value| value.error().map(|error| error.code()));
    assert_eq!(
        codes.collect::<Vec<_>>(),
        [Some(ErrorCode::InvalidArgument); 2]
    );
}

#[test]
fn argument_to_come_gives_results_to_come() {
    let host = host();
    let next = main_of(
        &host,
        "func.func @main(%a: i32) -> i32 {
           %one = tfrt.constant.i32 1
           %next = tfrt.add.i32 %a, %one
           tfrt.return %next : i32
         }",
    )
    .bind();
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let (promise, value) = AnyAsyncValue::pending();
    let mut values = vec![value];
    next.call(&context, &mut values);
    assert!(values.len() == 1 && !values[0].is_settled());
    promise.forward(AnyAsyncValue::new(41));
    assert_eq!(numbers(&[values.remove(0).settled()]), [42]);
}

#[test]
fn function_that_calls_others_can_be_called_after_one_that_failed() {
    let host = host();
    let program = super::program(
        &host,
        "func.func @inner(%a: i32) -> i32 {
           %b = tfrt.add.i32 %a, %a
           tfrt.return %b : i32
         }
         func.func @main(%a: i32) -> i32 {
           %b = tfrt.call @inner(%a) : (i32) -> i32
           %c = tfrt.call @inner(%b) : (i32) -> i32
           tfrt.return %c : i32
         }",
    );
    let main = program.function("main").unwrap().bind();
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let stopped = ExecutionContext::new(&RequestContext::new(&host));
    stopped.request().cancel();
    for n in 0..10 {
        let mut values = vec![AnyAsyncValue::new(n)];
        main.call(&stopped, &mut values);
        assert_eq!(values[0].error().unwrap().code(), ErrorCode::Cancelled);
        let mut values = vec![AnyAsyncValue::new(n)];
        main.call(&context, &mut values);
        assert_eq!(numbers(&values), [4 * n]);
    }
}
