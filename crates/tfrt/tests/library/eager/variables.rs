//! Variables keep their tensors, whatever becomes of a step.

use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};

use tfrt::asynchronous::queue::Task;
use tfrt::eager::{Eager, Variable};
use tfrt::host::trace::{TraceLevel, TraceSink};
use tfrt::tensor::DenseHostTensor;
use tfrt::{ErrorCode, MultiThreadedWorkQueue, Runtime};

use super::eager;

/// As many elements as are left to a worker.
const LONG: usize = 1 << 17;

/// Returns a runtime whose only worker is busy until the sender is dropped.
fn busy() -> (Eager, mpsc::Sender<()>) {
    let queue = Arc::new(MultiThreadedWorkQueue::new(1, 1).unwrap());
    let runtime = Runtime::builder().queue(queue.clone()).build();
    let (sender, receiver) = mpsc::channel::<()>();
    runtime.host().queue().add_task(Task::new(move || {
        let _dropped = receiver.recv();
    }));
    (Eager::new(&runtime), sender)
}

fn first(variable: &Variable) -> f32 {
    variable.read().to_vec::<f32>().unwrap()[0]
}

#[test]
fn variables_go_on_after_a_reset() {
    let mut eager = eager();
    let w = eager.variable(eager.tensor(&[1], &[1.0_f32]).unwrap());
    let before = w.read();
    eager.cancel();
    let gradient = eager.tensor(&[1], &[1.0_f32]).unwrap();
    let error = w.descend(&gradient, 0.5).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cancelled);
    assert!(error.location().is_some());
    eager.reset();
    w.descend(&gradient, 0.5).unwrap();
    assert_eq!(w.read().relu().unwrap().item::<f32>().unwrap(), 0.5);
    assert_eq!(before.relu().unwrap().item::<f32>().unwrap(), 1.0);
}

#[test]
fn cancelled_steps_leave_weights_and_those_that_can_be_taken_are() {
    let (mut eager, busy) = busy();
    let w = eager.variable(eager.fill::<f32>(&[LONG], 1.0).unwrap());
    let v = eager.variable(eager.zeros::<f32>(&[LONG]).unwrap());
    let gradient = eager.fill::<f32>(&[LONG], 1.0).unwrap();
    // One that waits for the worker, one whose gradient will never be there, and one for the worker again.
    w.descend(&gradient, 0.25).unwrap();
    let late = gradient.plus(&gradient).unwrap();
    assert!(!late.handle().is_settled());
    w.descend_with(&v, &late, [0.5, 0.0]).unwrap();
    w.descend(&gradient, 0.25).unwrap();
    eager.cancel();
    assert!(late.handle().error().is_some());
    eager.reset();
    drop(busy);
    assert_eq!((first(&w), first(&v)), (0.5, 0.0));
    w.descend_with(&v, &gradient, [0.25, 0.0]).unwrap();
    assert_eq!((first(&w), first(&v)), (0.25, 1.0));
}

#[test]
fn refused_steps_leave_weights() {
    let eager = eager();
    let allocator = eager.core().host().allocator();
    let zeros = || DenseHostTensor::from_slice(allocator, &[2], &[0.0_f32; 2]).unwrap();
    // Others hold the memory, and write to it.
    let (velocity, slope) = (zeros(), zeros());
    let w = eager.variable(eager.tensor(&[2], &[1.0_f32, 2.0]).unwrap());
    let v = eager.variable(eager.of(velocity.clone()));
    let gradient = eager.of(slope.clone());
    for locked in [velocity, slope] {
        let writing = locked.write().unwrap();
        assert!(w.descend_with(&v, &gradient, [0.1, 0.9]).is_err());
        drop(writing);
        assert_eq!(w.read().to_vec::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(v.read().to_vec::<f32>().unwrap(), [0.0, 0.0]);
    }
}

#[test]
fn threads_change_variables_together() {
    let eager = eager();
    for n in [4, LONG] {
        let w = eager.variable(eager.zeros::<f32>(&[n]).unwrap());
        let v = eager.variable(eager.zeros::<f32>(&[n]).unwrap());
        let gradient = eager.fill::<f32>(&[n], 1.0).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        w.descend_with(&v, &gradient, [1.0, 0.0]).unwrap();
                        w.descend(&gradient, 1.0).unwrap();
                        v.read().wait().unwrap();
                        w.read().relu().unwrap();
                    }
                });
            }
        });
        assert_eq!((first(&w), first(&v)), (-300.0, 1.0));
    }
}

/// Reads a variable whenever it is told that a step runs.
#[derive(Default)]
struct Reader {
    // The runtime holds this, and the variable holds the runtime.
    variable: OnceLock<Weak<Variable>>,
    read: Mutex<Vec<String>>,
}

impl TraceSink for Reader {
    fn level(&self) -> TraceLevel {
        TraceLevel::Debug
    }

    fn begin(&self, name: &str) {
        // Reads are calls, too, of which it is told.
        if let Some(variable) = self.variable.get().and_then(Weak::upgrade)
            && name.contains("GradientDescent")
        {
            let read = variable.read().to_string();
            self.read.lock().unwrap().push(read);
        }
    }

    fn end(&self) {}
}

#[test]
fn who_is_called_during_a_step_may_read_the_variable() {
    let reader = Arc::new(Reader::default());
    let runtime = Runtime::builder().trace(reader.clone()).build();
    let eager = Eager::new(&runtime);
    let w = Arc::new(eager.variable(eager.tensor(&[2], &[1.0_f32, 2.0]).unwrap()));
    reader.variable.set(Arc::downgrade(&w)).unwrap();
    let gradient = eager.tensor(&[2], &[1.0_f32, 1.0]).unwrap();
    w.descend(&gradient, 0.5).unwrap();
    assert_eq!(w.read().to_vec::<f32>().unwrap(), [0.5, 1.5]);
    assert_eq!(reader.read.lock().unwrap()[0], "f32 [2], to come");
}
