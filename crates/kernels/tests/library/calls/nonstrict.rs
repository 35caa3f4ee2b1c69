//! Tests of kernels that any one operand starts (`bef.nonstrict`), in each way in which they end.

use std::sync::{Arc, Mutex};

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_async::{AsyncValue, Promise};
use tfrt_host::kernel::{
    Arguments, Call, Callee, Early, Forward, KernelRegistry, Later, Rest, Step,
};
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext, HostContext, RequestContext};

use super::main_of;

fn forwards(arguments: Arguments, body: Callee) -> Forward {
    Call::forward(body, arguments)
}

fn counts(values: Rest) -> (i32, i32) {
    let n_settled = values.iter().filter(|value| value.is_settled()).count();
    (values.len() as i32, n_settled as i32)
}

fn counts_later(values: Rest) -> Later<impl FnOnce() -> i32 + Send> {
    Later(move || counts(values).0)
}

fn fails_in_part(_: Rest) -> (Result<i32, Error>, i32) {
    (Err(Error::not_found("the first")), 7)
}

fn fails(_: Rest) -> Result<(i32, i32), Error> {
    Err(Error::not_found("both"))
}

fn panics(_: Rest) -> (i32, i32) {
    panic!("with handles")
}

fn waits(values: Rest) -> Step {
    Step::wait_for(values.0, |values| {
        let last = values.last().cloned();
        Step::done(values.into_iter().chain(last).collect())
    })
}

/// Returns kernels, one of which returns a promised value, with their promises.
fn promising() -> (KernelRegistry, Arc<Mutex<Vec<Promise<i32>>>>) {
    let promises = Arc::<Mutex<Vec<Promise<i32>>>>::default();
    let kept = promises.clone();
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    registry.add("t.to_come", move |_: i32| -> AsyncValue<i32> {
        let (promise, value) = AsyncValue::pending();
        kept.lock().unwrap().push(promise);
        value
    });
    (registry, promises)
}

/// Runs a kernel on a number and on one that is resolved after the kernel has returned, in any case and if it waits.
fn check(kernel: &str, results: &str, expected: &[&str], n_told: usize) {
    let (mut registry, promises) = promising();
    registry
        .add("t.forwards", forwards)
        .add("t.counts", counts)
        .add("t.counts_later", counts_later)
        .add("t.fails_in_part", fails_in_part)
        .add("t.fails", fails)
        .add("t.panics", panics)
        .add("t.waits", waits);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .diagnostics(move |error| heard.lock().unwrap().push(error.message().to_owned()))
        .build();
    let n_results = results.split(',').count();
    let types = vec!["i32"; n_results].join(", ");
    let text = format!(
        "func.func @both(%x: i32, %y: i32) -> (i32, i32, i32) {{
           %s = tfrt.add.i32 %x, %y
           tfrt.return %s, %x, %y : i32, i32, i32
         }}
         func.func @main(%x: i32) -> ({types}, i32, i32, i32) {{
           %p = \"t.to_come\"(%x) : (i32) -> i32
           {results} = \"{kernel}\"(%x, %p) {{bef.nonstrict, body = @both}} : (i32, i32) -> ({types})
           tfrt.return {results}, %p, %x, %p : {types}, i32, i32, i32
         }}"
    );
    let text = match kernel {
        "t.forwards" => text,
        _ => text.replace(", body = @both", ""),
    };
    let main = main_of(&host, &text);
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let values = main.execute(&context, vec![AnyAsyncValue::new(3)]);
    promises.lock().unwrap().pop().unwrap().resolve(4);
    host.queue().await_all(&values).unwrap();
    let shown = values.into_iter().map(AnyAsyncValue::settled).map(|value| {
        let number = value.get::<i32>().map(ToString::to_string);
        number.unwrap_or_else(|| value.error().unwrap().message().to_owned())
    });
    let operands = ["4", "3", "4"];
    let expected: Vec<&str> = expected.iter().copied().chain(operands).collect();
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{kernel}");
    assert_eq!(told.lock().unwrap().len(), n_told, "{kernel}");
}

#[test]
fn kernels_with_handles_end_like_all_others() {
    check("t.forwards", "%a, %b, %c", &["7", "3", "4"], 0);
    check("t.counts", "%a, %b", &["2", "1"], 0);
    check("t.counts_later", "%a", &["2"], 0);
    check("t.fails_in_part", "%a, %b", &["the first", "7"], 1);
    check("t.fails", "%a, %b", &["both", "both"], 1);
    let panicked = "the kernel panicked: with handles";
    check("t.panics", "%a, %b", &[panicked, panicked], 1);
    check("t.waits", "%a, %b, %c", &["3", "4", "4"], 0);
    let misfit = "the kernel gave 3 results where 2 are expected";
    check("t.waits", "%a, %b", &[misfit, misfit], 1);
    check("t.forwards", "%a, %b", &[misfit, misfit], 1);
}

/// Runs a kernel that counts which of its operands, all of them pending, are there when it starts, and returns the
/// count.
fn n_settled(operands: &str, n_resolved_first: usize, queue: Arc<dyn ConcurrentWorkQueue>) -> i32 {
    let (mut registry, promises) = promising();
    registry.add("t.counts", counts);
    let host = HostContext::builder(registry).queue(queue).build();
    let types = vec!["i32"; operands.split(',').count()].join(", ");
    let text = format!(
        "func.func @main(%x: i32) -> (i32, i32) {{
           %p = \"t.to_come\"(%x) {{_tfrt_cost = 1000 : i64}} : (i32) -> i32
           %q = \"t.to_come\"(%x) {{_tfrt_cost = 1000 : i64}} : (i32) -> i32
           %a, %b = \"t.counts\"({operands}) {{bef.nonstrict}} : ({types}) -> (i32, i32)
           tfrt.return %a, %b : i32, i32
         }}"
    );
    let main = main_of(&host, &text);
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let values = main.execute(&context, vec![AnyAsyncValue::new(3)]);
    while promises.lock().unwrap().len() < 2 {
        std::thread::yield_now();
    }
    let mut promises = std::mem::take(&mut *promises.lock().unwrap());
    let rest = promises.split_off(n_resolved_first);
    promises.into_iter().for_each(|promise| promise.resolve(4));
    rest.into_iter().for_each(|promise| promise.resolve(5));
    host.queue().await_all(&values).unwrap();
    values[1].clone().settled().get::<i32>().copied().unwrap()
}

#[test]
fn a_kernel_starts_with_an_operand_that_is_there() {
    for operands in ["%p", "%q", "%p, %p", "%p, %q", "%q, %p, %p"] {
        for _ in 0..200 {
            let alone = Arc::new(SingleThreadedWorkQueue::new());
            let several = Arc::new(MultiThreadedWorkQueue::new(4, 1).unwrap());
            for queue in [alone as Arc<dyn ConcurrentWorkQueue>, several] {
                assert!(n_settled(operands, 1, queue) > 0, "{operands}");
            }
        }
    }
}

/// Tells which of its operands are there when it starts, without a mark in the program.
fn tells(a: AsyncValue<i32>, b: AsyncValue<i32>, _: Early) -> i32 {
    i32::from(a.is_settled()) + 2 * i32::from(b.is_settled())
}

#[test]
fn a_kernel_that_says_so_starts_before_what_its_operands_need_is_there() {
    let (mut registry, promises) = promising();
    registry.add("t.tells", tells);
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .build();
    let main = main_of(
        &host,
        "func.func @main(%x: i32) -> (i32, i32) {
           %p = \"t.to_come\"(%x) : (i32) -> i32
           %q = tfrt.add.i32 %p, %x
           %a = \"t.tells\"(%x, %q) : (i32, i32) -> i32
           tfrt.return %a, %q : i32, i32
         }",
    );
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let values = main.execute(&context, vec![AnyAsyncValue::new(3)]);
    host.queue().quiesce().unwrap();
    assert_eq!(values[0].get::<i32>(), Some(&1));
    promises.lock().unwrap().pop().unwrap().resolve(4);
    host.queue().await_all(&values).unwrap();
    assert_eq!(values[1].clone().settled().get::<i32>(), Some(&7));
}
