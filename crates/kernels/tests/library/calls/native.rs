//! Tests of native functions of any number of arguments and results, called by programs and from outside, in every
//! way.

use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, ExecutionContext, HostContext, Limits, RequestContext};

use super::program;

const TEXT: &str = "
func.func private @none() attributes {tfrt.native}
func.func private @made() -> i32 attributes {tfrt.native}
func.func private @taken(i32) attributes {tfrt.native}
func.func private @swapped(i32, i32) -> (i32, i32) attributes {tfrt.native}
func.func private @native_async_add(i32, i32) -> i32 attributes {tfrt.native}
func.func @main(%x: i32, %y: i32) -> (i32, i32, i32) {
  tfrt.call @none() : () -> ()
  tfrt.call @taken(%x) : (i32) -> ()
  %made = tfrt.call @made() : () -> i32
  %a, %b = tfrt.call @swapped(%x, %made) : (i32, i32) -> (i32, i32)
  %sum = tfrt.call @native_async_add(%a, %y) : (i32, i32) -> i32
  tfrt.return %a, %b, %sum : i32, i32, i32
}
";

#[test]
fn native_functions_run_where_they_are_called() {
    for always_counts in [false, true] {
        let queues: [Arc<dyn ConcurrentWorkQueue>; 2] = [
            Arc::new(SingleThreadedWorkQueue::new()),
            Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()),
        ];
        for queue in queues {
            let threads = Arc::<Mutex<Vec<ThreadId>>>::default();
            let note = |threads: &Arc<Mutex<Vec<ThreadId>>>| {
                let threads = threads.clone();
                move || threads.lock().unwrap().push(thread::current().id())
            };
            let (none, taken, made, swapped) = (
                note(&threads),
                note(&threads),
                note(&threads),
                note(&threads),
            );
            let mut registry = KernelRegistry::new();
            tfrt_kernels::register_all(&mut registry);
            registry
                .add_native("none", none)
                .add_native("taken", move |_: i32| taken())
                .add_native("made", move || {
                    made();
                    7
                })
                .add_native("swapped", move |a: i32, b: i32| {
                    swapped();
                    (b, a)
                });
            let host = HostContext::builder(registry)
                .queue(queue.clone())
                .dynamic_order(always_counts)
                .build();
            let program = program(&host, TEXT);
            let call = |name: &str, arguments: &[i32]| -> Vec<i32> {
                let function = program.function(name).unwrap();
                assert_eq!(function.n_arguments(), arguments.len());
                let arguments = arguments.iter().copied().map(AnyAsyncValue::new).collect();
                let context = ExecutionContext::new(&RequestContext::new(&host));
                let results = function.execute(&context, arguments);
                assert_eq!(results.len(), function.n_results());
                queue.await_all(&results).unwrap();
                queue.quiesce().unwrap();
                let number = |value: AnyAsyncValue| *value.settled().get::<i32>().unwrap();
                results.into_iter().map(number).collect()
            };
            let here = |n_calls: usize| {
                let threads = std::mem::take(&mut *threads.lock().unwrap());
                assert_eq!(threads, vec![thread::current().id(); n_calls]);
            };
            for _ in 0..3 {
                assert_eq!(call("none", &[]), Vec::<i32>::new());
                assert_eq!(call("taken", &[3]), Vec::<i32>::new());
                assert_eq!(call("made", &[]), [7]);
                assert_eq!(call("swapped", &[1, 2]), [2, 1]);
                here(4);
                assert_eq!(call("native_async_add", &[1, 2]), [3]);
                assert_eq!(call("main", &[4, 5]), [7, 4, 12]);
                assert_eq!(std::mem::take(&mut *threads.lock().unwrap()).len(), 4);
            }
        }
    }
}

#[test]
fn native_functions_take_no_memory_of_their_host() {
    let queues: [Arc<dyn ConcurrentWorkQueue>; 2] = [
        Arc::new(SingleThreadedWorkQueue::new()),
        Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()),
    ];
    for queue in queues {
        let mut registry = KernelRegistry::new();
        registry.add_native("half", |x: i32| x / 2);
        let limits = Limits {
            max_memory: Some(0),
            ..Limits::default()
        };
        let host = HostContext::builder(registry)
            .queue(queue)
            .limits(limits)
            .build();
        let text = "func.func private @half(i32) -> i32 attributes {tfrt.native}";
        let half = program(&host, text).function("half").unwrap();
        let context = ExecutionContext::new(&RequestContext::new(&host));
        let results = half.execute(&context, vec![AnyAsyncValue::new(8)]);
        assert_eq!(results[0].get::<i32>(), Some(&4));
    }
}
