//! Tests of control kernels that fail after a wait: their results, and the calls of the diagnostic handler.

use std::sync::{Arc, Mutex};

use tfrt_async::AsyncValue;
use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::{Call, Callee, KernelRegistry, Step};
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext, HostContext, Program, RequestContext};

fn number() -> AnyAsyncValue {
    AnyAsyncValue::new(1)
}

fn fails() -> Step {
    Step::fail(Error::not_found("no such step"))
}

fn panics() -> Step {
    panic!("in a step")
}

fn forks() -> Step {
    Step::fork(1, fails, |values| Step::wait_for(values, Step::done))
}

fn waits() -> Step {
    let (promise, value) = AsyncValue::<i32>::pending();
    promise.fail(Error::aborted("it was not to be"));
    Step::wait_for(vec![value.into_any()], Step::done)
}

fn brings_two() -> Step {
    Step::done(vec![number(), number()])
}

/// The actions of a kernel after its wait.
const STEPS: [fn() -> Step; 5] = [fails, panics, forks, waits, brings_two];

fn step(index: i32, context: &ExecutionContext) -> Step {
    let value = context.enqueue(|| Ok(1_i32)).into_any();
    let then = STEPS[usize::try_from(index).unwrap()];
    Step::when_settled(vec![value], move |_| then())
}

fn calls_with_nothing(_: i32, body: Callee, context: &ExecutionContext) -> Step {
    let value = context.enqueue(|| Ok(1_i32)).into_any();
    Step::wait_for(vec![value], move |_| {
        Step::call(Call::new(body, Vec::new()), Step::done)
    })
}

/// Cancels its request, at once or after a wait, and goes on as if nothing had happened.
fn gives_up(index: i32, body: Callee, context: &ExecutionContext) -> Step {
    let request = context.request().clone();
    let next = move |values: Vec<AnyAsyncValue>| {
        request.cancel();
        match index % 3 {
            0 => Step::call(Call::new(body, values), Step::done),
            1 => Step::spawn(Call::new(body, values), Step::done),
            _ => Step::wait_for(values, Step::done),
        }
    };
    match index {
        0..3 => next(vec![number()]),
        _ => Step::wait_for(vec![context.enqueue(|| Ok(1_i32)).into_any()], next),
    }
}

/// Calls a kernel with a number, and checks its error, which comes later.
fn check(kernel: &str, argument: i32, expected: &str, n_told: usize) {
    check_whenever(kernel, argument, false, expected, n_told);
}

/// Calls a kernel with a number, and checks its error, and whether it is there at once.
fn check_whenever(kernel: &str, argument: i32, is_at_once: bool, expected: &str, n_told: usize) {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    registry.add("t.step", step);
    registry.add("t.calls_with_nothing", calls_with_nothing);
    registry.add("t.gives_up", gives_up);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .diagnostics(move |error| heard.lock().unwrap().push(error.message().to_owned()))
        .build();
    let text = format!(
        "func.func @body(%x: i32) -> i32 {{
           tfrt.return %x : i32
         }}
         func.func @main(%x: i32) -> i32 {{
           %y = {kernel} : (i32) -> i32
           tfrt.return %y : i32
         }}"
    );
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", &text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
    let main = program.function("main").unwrap();
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let results = main.execute(&context, vec![AnyAsyncValue::new(argument)]);
    assert_eq!(results[0].is_settled(), is_at_once);
    host.queue().await_all(&results).unwrap();
    let result = results.into_iter().next().unwrap().settled();
    let error = result.error().unwrap();
    assert_eq!(format!("{:?}: {}", error.code(), error.message()), expected);
    let told = told.lock().unwrap();
    assert_eq!(*told, vec![error.message(); n_told]);
}

#[test]
fn steps_that_fail_are_told_once() {
    let step = "\"t.step\"(%x)";
    check(step, 0, "NotFound: no such step", 1);
    check(step, 1, "Internal: the kernel panicked: in a step", 1);
    check(step, 2, "NotFound: no such step", 1);
    check(step, 3, "Aborted: it was not to be", 1);
    check(
        step,
        4,
        "Internal: the kernel gave 2 results where 1 are expected",
        1,
    );
    let call = "\"t.calls_with_nothing\"(%x) {body = @body}";
    let nothing = "InvalidArgument: function 'body' takes 1 arguments, but is given 0";
    check(call, 0, nothing, 1);
}

#[test]
fn steps_of_a_request_that_was_given_up_end_with_that() {
    let kernel = "\"t.gives_up\"(%x) {body = @body}";
    for index in 0..6 {
        check_whenever(kernel, index, index < 3, "Cancelled: Cancelled", 0);
    }
}
