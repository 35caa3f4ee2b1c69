//! Tests of the depth of nested calls, in every way of running them.

use std::sync::{Arc, Mutex};

use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AnyAsyncValue, AsyncValue, Error, ErrorCode, ExecutionContext, Function, HostContext, Limits,
    RequestContext,
};

use super::main_of;

const MAX_DEPTH: usize = 4;

/// The way in which a function runs that only calls the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    InOrder,
    Counted,
    /// It runs its call as a task, and returns the result.
    Spawning,
}

const WAYS: [Way; 3] = [Way::InOrder, Way::Counted, Way::Spawning];

/// Returns functions that call each other, the last of which calls none.
fn text(ways: &[Way]) -> String {
    let function = |(index, way): (usize, &Way)| {
        let name = match index {
            0 => "main".to_owned(),
            _ => format!("f{index}"),
        };
        let next = index + 1;
        let call = match (next < ways.len(), way) {
            (false, _) => "%r = tfrt.add.i32 %x, %x".to_owned(),
            (true, Way::Spawning) => format!(
                "%r = tfrt_test.do.async %x : (i32) -> (i32) {{
                   %s = tfrt.call @f{next}(%x) : (i32) -> i32
                   tfrt.return %s : i32
                 }}"
            ),
            (true, _) => format!("%r = tfrt.call @f{next}(%x) : (i32) -> i32"),
        };
        let counted = match way {
            Way::InOrder => "",
            _ => "%y = \"tfrt_test.async_add.i32\"(%x, %x) : (i32, i32) -> i32",
        };
        format!(
            "func.func @{name}(%x: i32) -> i32 {{
               {counted}
               {call}
               tfrt.return %r : i32
             }}\n"
        )
    };
    ways.iter().enumerate().map(function).collect()
}

fn host(limits: Limits, always_counts: bool) -> HostContext {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .limits(limits)
        .dynamic_order(always_counts)
        .build()
}

fn call(host: &HostContext, main: &Function, argument: i32) -> Result<i32, Error> {
    let context = ExecutionContext::new(&RequestContext::new(host));
    let results = main.execute(&context, vec![AnyAsyncValue::new(argument)]);
    host.queue().await_all(&results).unwrap();
    host.queue().quiesce().unwrap();
    let result = results.into_iter().next().unwrap().settled();
    match result.error() {
        Some(error) => Err(error.clone()),
        None => Ok(*result.get::<i32>().unwrap()),
    }
}

#[test]
fn so_many_calls_are_in_progress_and_no_more_in_whatever_ways_they_run() {
    let limits = Limits {
        max_depth: MAX_DEPTH as u32,
        ..Limits::default()
    };
    let host = host(limits, false);
    for n_calls in MAX_DEPTH - 1..=MAX_DEPTH + 1 {
        for mut number in 0..WAYS.len().pow(n_calls as u32) {
            let mut ways = Vec::new();
            for _ in 0..n_calls {
                ways.push(WAYS[number % WAYS.len()]);
                number /= WAYS.len();
            }
            // The region that a task runs is a call of its own.
            let regions = ways[..n_calls - 1].iter();
            let n_regions = regions.filter(|way| **way == Way::Spawning).count();
            let result = call(&host, &main_of(&host, &text(&ways)), 5);
            if n_calls + n_regions <= MAX_DEPTH {
                assert_eq!(result.ok(), Some(10), "{ways:?}");
            } else {
                let error = result.unwrap_err();
                assert_eq!(error.code(), ErrorCode::ResourceExhausted, "{ways:?}");
                let message = "call depth exceeds the limit of 4";
                assert_eq!(error.message(), message, "{ways:?}");
            }
        }
    }
}

/// A function that its own kernels call.
type Own = Arc<Mutex<Option<Function>>>;

/// Calls `@main` from within its own kernel, so many times within each other.
fn nested(attributes: &str, n_calls: i32) -> Result<i32, Error> {
    let mut registry = KernelRegistry::new();
    let own = Own::default();
    let (synchronous, any) = (own.clone(), own.clone());
    registry
        .add(
            "t.run",
            move |n: i32, context: &ExecutionContext| -> Result<i32, Error> {
                if n == 0 {
                    return Ok(0);
                }
                let main = synchronous.lock().unwrap().clone().unwrap();
                let results = main.run_synchronously(context, &[AnyAsyncValue::new(n - 1)])?;
                Ok(*results[0].get::<i32>().unwrap() + 1)
            },
        )
        .add(
            "t.execute",
            move |n: i32, context: &ExecutionContext| -> AsyncValue<i32> {
                if n == 0 {
                    return AsyncValue::available(0);
                }
                let main = any.lock().unwrap().clone().unwrap();
                let results = main.execute(context, vec![AnyAsyncValue::new(n - 1)]);
                match results[0].error() {
                    Some(error) => AsyncValue::from_error(error.clone()),
                    None => AsyncValue::available(*results[0].get::<i32>().unwrap() + 1),
                }
            },
        );
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .build();
    let kernel = match attributes {
        "" => "t.execute",
        _ => "t.run",
    };
    let text = format!(
        "func.func @main(%n: i32) -> i32 attributes {{{attributes}}} {{
           %r = \"{kernel}\"(%n) : (i32) -> i32
           tfrt.return %r : i32
         }}"
    );
    let main = main_of(&host, &text);
    *own.lock().unwrap() = Some(main.clone());
    // As deep as they are allowed to be, they need some stack.
    let stack = std::thread::Builder::new().stack_size(64 << 20);
    let thread = stack.spawn(move || call(&host, &main, n_calls - 1));
    let result = thread.unwrap().join().unwrap();
    // It holds the host, which holds the kernel.
    own.lock().unwrap().take();
    result
}

#[test]
fn functions_that_kernels_run_on_the_threads_stack_nest_two_hundred_deep() {
    for _ in 0..2 {
        assert_eq!(nested("tfrt.sync", 200).ok(), Some(199));
        let error = nested("tfrt.sync", 201).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ResourceExhausted);
        let message = "synchronous functions are nested deeper than 200";
        assert_eq!(error.message(), message);
    }
}

#[test]
fn calls_that_are_deeper_on_the_threads_stack_are_counted() {
    for n_calls in [199, 200, 201, 202, 250] {
        assert_eq!(nested("", n_calls).ok(), Some(n_calls - 1));
    }
}

#[test]
fn every_call_and_every_kernel_is_a_step() {
    // A call and two kernels of the outermost; a call and two kernels more for each turn, the second for a call of one.
    let text = "func.func @f(%x: i32) -> i32 {
      %a = tfrt.add.i32 %x, %x
      tfrt.return %a : i32
    }
    func.func @main(%x: i32) -> i32 {
      %n = tfrt.constant.i32 5
      %r = tfrt.repeat.i32 %n, %x : i32 {
        %a = tfrt.call @f(%x) : (i32) -> i32
        tfrt.return %a : i32
      }
      tfrt.return %r : i32
    }";
    for always_counts in [false, true] {
        let n_steps = 3 + 5 * 4;
        for (max_steps, expected) in [(n_steps, Some(96)), (n_steps - 1, None)] {
            let limits = Limits {
                max_steps: Some(max_steps),
                ..Limits::default()
            };
            let host = host(limits, always_counts);
            let result = call(&host, &main_of(&host, text), 3);
            assert_eq!(result.ok(), expected, "{max_steps} {always_counts}");
        }
    }
}
