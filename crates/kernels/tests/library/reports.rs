//! Tests that every error of an asynchronous kernel is reported once, whenever it comes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AsyncValue, Error, ExecutionContext, HostContext, KernelPromise, Program, RequestContext,
};

const N_CALLS: usize = 50_000;

/// Tests with a thread that fails promises as fast as they are made, so that some fail while the executor is between
/// two looks at the value.
#[test]
fn an_error_that_comes_while_the_kernel_returns_is_reported() {
    let (promises, received) = channel::<KernelPromise<i32>>();
    let resolver = std::thread::spawn(move || {
        let late = || Error::unknown("late");
        loop {
            // Spinning keeps the two threads close.
            match received.try_recv() {
                Ok(promise) => promise.fail(late()),
                Err(std::sync::mpsc::TryRecvError::Empty) => std::hint::spin_loop(),
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
            }
        }
    });
    let promises = Arc::new(Mutex::new(promises));
    let mut registry = KernelRegistry::new();
    let sender = promises.clone();
    registry.add(
        "test.late",
        move |context: &ExecutionContext| -> AsyncValue<i32> {
            let (promise, value) = context.promise();
            let sender: &Sender<_> = &sender.lock().unwrap();
            sender.send(promise).unwrap();
            value
        },
    );
    let n_heard = Arc::new(AtomicUsize::new(0));
    let heard = n_heard.clone();
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .diagnostics(move |error| {
            assert_eq!(error.kernel(), Some("test.late"));
            heard.fetch_add(1, Ordering::Relaxed);
        })
        .build();
    let text = "func.func @main() -> i32 {\n  %x = \"test.late\"() : () -> i32\n  tfrt.return %x : i32\n}\n";
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("main.mlir", text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
    let main = program.function("main").unwrap();
    let context = ExecutionContext::new(&RequestContext::new(&host));
    for call in 1..=N_CALLS {
        let results = main.execute(&context, Vec::new());
        host.queue().await_all(&results).unwrap();
        let error = results[0].error().expect("the promise is failed");
        assert_eq!(error.kernel(), Some("test.late"), "call {call}");
    }
    assert_eq!(n_heard.load(Ordering::Relaxed), N_CALLS);
    drop((main, program, context, host, promises));
    resolver.join().unwrap();
}
