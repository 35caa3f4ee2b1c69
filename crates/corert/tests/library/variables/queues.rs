//! Queues: who puts in and who takes out, when, and what is said of what is wrong. The messages are TensorFlow's.

use std::sync::Arc;

use tfrt_async::queue::MultiThreadedWorkQueue;
use tfrt_corert::{Context, OpAttrs, TensorHandle};
use tfrt_host::ErrorCode;
use tfrt_tensor::resource::Slot;
use tfrt_tensor::resource::queue::FifoQueue;
use tfrt_tensor::{Bool, DType, Tensor, TensorShape};

use super::{Caller, attrs, typed};

/// Attributes of a queue of numbers.
fn of_numbers(name: &str, capacity: i64) -> OpAttrs {
    let mut attrs = OpAttrs::new();
    attrs.set("component_types", [DType::F32]).unwrap();
    attrs.set("shapes", [&TensorShape::SCALAR]).unwrap();
    attrs.set("capacity", capacity).unwrap();
    attrs.set("shared_name", name).unwrap();
    attrs
}

fn f32s() -> OpAttrs {
    let mut attrs = OpAttrs::new();
    attrs.set("component_types", [DType::F32]).unwrap();
    attrs
}

impl Caller {
    fn queue(&self, name: &str, capacity: i64) -> TensorHandle {
        let attrs = of_numbers(name, capacity);
        self.call("tf.FIFOQueueV2", &[], &attrs).unwrap().remove(0)
    }

    fn put(&self, queue: &TensorHandle, number: f32) {
        self.run("tf.QueueEnqueueV2", &[queue, &self.tensor(&[], &[number])]);
    }

    fn put_many(&self, queue: &TensorHandle, numbers: &[f32]) {
        let numbers = self.tensor(&[numbers.len()], numbers);
        self.run("tf.QueueEnqueueManyV2", &[queue, &numbers]);
    }

    fn take(&self, queue: &TensorHandle) -> TensorHandle {
        let taken = self.call("tf.QueueDequeueV2", &[queue], &f32s());
        taken.unwrap().remove(0)
    }

    fn take_n(&self, op: &str, queue: &TensorHandle, n: i32) -> TensorHandle {
        let n = self.tensor(&[], &[n]);
        self.call(op, &[queue, &n], &f32s()).unwrap().remove(0)
    }

    fn take_many(&self, queue: &TensorHandle, n: i32) -> TensorHandle {
        self.take_n("tf.QueueDequeueManyV2", queue, n)
    }

    fn size(&self, queue: &TensorHandle) -> i32 {
        self.elements(&self.one("tf.QueueSizeV2", &[queue]))[0]
    }

    fn is_closed(&self, queue: &TensorHandle) -> bool {
        let found = self.one("tf.QueueIsClosedV2", &[queue]);
        self.elements::<Bool>(&found)[0].into()
    }

    fn close(&self, queue: &TensorHandle) {
        self.run("tf.QueueCloseV2", &[queue]);
    }

    /// Returns how a handle has failed, once it is settled.
    fn failure(&self, handle: &TensorHandle) -> (ErrorCode, String) {
        let queue = self.runtime.host().queue();
        queue.await_all(&[handle.to_async().into_any()]).unwrap();
        let error = handle.error().expect("it has failed");
        (error.code(), error.message().to_owned())
    }
}

fn is_there(handle: &TensorHandle) -> bool {
    handle.tensor().is_some()
}

fn n_waiting(queue: &TensorHandle) -> usize {
    let Some(Ok(tensor)) = queue.tensor() else {
        panic!("it is there");
    };
    let slot = Slot::of(tensor).unwrap();
    slot.get::<FifoQueue>().unwrap().n_waiting()
}

fn too_few(name: &str, n: usize, found: usize) -> (ErrorCode, String) {
    let message = format!(
        "FIFOQueue '{name}' is closed and has insufficient elements (requested {n}, current size {found})"
    );
    (ErrorCode::OutOfRange, message)
}

#[test]
fn what_was_put_in_first_is_taken_out_first() {
    let caller = Caller::new();
    let queue = caller.queue("q", -1);
    caller.put(&queue, 1.0);
    caller.put_many(&queue, &[2.0, 3.0, 4.0]);
    caller.put_many(&queue, &[]);
    // Another handle, by the name.
    let again = caller.queue("q", -1);
    assert_eq!((caller.size(&again), caller.is_closed(&again)), (4, false));
    assert_eq!(caller.elements::<f32>(&caller.take(&again)), [1.0]);
    assert_eq!(
        caller.elements::<f32>(&caller.take_many(&again, 2)),
        [2.0, 3.0]
    );
    assert!(
        caller
            .elements::<f32>(&caller.take_many(&again, 0))
            .is_empty()
    );
    assert_eq!(caller.size(&queue), 1);
    caller.finish().unwrap();
}

#[test]
fn tuples_have_a_tensor_of_each_type() {
    let caller = Caller::new();
    let mut attrs = OpAttrs::new();
    let types = [DType::F32, DType::I32];
    attrs.set("component_types", types).unwrap();
    let queue = caller.call("tf.FIFOQueueV2", &[], &attrs).unwrap();
    let queue = &queue[0];
    let (x, y) = (
        caller.tensor(&[2], &[1.0_f32, 2.0]),
        caller.tensor(&[3], &[1, 2, 3]),
    );
    caller.run("tf.QueueEnqueueV2", &[queue, &x, &y]);
    let mut of_both = OpAttrs::new();
    of_both.set("component_types", types).unwrap();
    let taken = caller
        .call("tf.QueueDequeueV2", &[queue], &of_both)
        .unwrap();
    assert_eq!(caller.elements::<f32>(&taken[0]), [1.0, 2.0]);
    assert_eq!(caller.elements::<i32>(&taken[1]), [1, 2, 3]);
    // Without shapes they are not stacked.
    let bad = ErrorCode::InvalidArgument;
    let message =
        "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes.";
    for op in ["tf.QueueDequeueManyV2", "tf.QueueDequeueUpToV2"] {
        let one = caller.tensor(&[], &[1]);
        let found = caller.fails(op, &[queue, &one], &of_both);
        assert_eq!(found, (bad, message.to_owned()));
    }
    let message = "All input tensors must have the same size in the 0th dimension. Component 1 has 3, and should have 2";
    let found = caller.fails("tf.QueueEnqueueManyV2", &[queue, &x, &y], &OpAttrs::new());
    assert_eq!(found, (bad, message.to_owned()));
}

#[test]
fn who_takes_out_waits_without_a_thread_and_others_go_on() {
    // One thread has all the work.
    let caller = Caller::on(Arc::new(MultiThreadedWorkQueue::new(1, 1).unwrap()));
    let queue = caller.queue("", -1);
    let waiting: Vec<TensorHandle> = (0..1000).map(|_| caller.take(&queue)).collect();
    assert!(!waiting.iter().any(is_there));
    assert_eq!((n_waiting(&queue), caller.size(&queue)), (1000, 0));
    // Nobody waits for them but who asks for their tensors.
    caller.finish().unwrap();
    let sum = caller.one("tf.AddV2", &[&waiting[0], &waiting[999]]);
    for number in 0..1000_u16 {
        caller.put(&queue, f32::from(number));
    }
    assert_eq!(caller.elements::<f32>(&sum), [999.0]);
    for (number, taken) in (0..1000_u16).zip(&waiting) {
        assert_eq!(caller.elements::<f32>(taken), [f32::from(number)]);
    }
    assert_eq!(n_waiting(&queue), 0);
}

#[test]
fn who_puts_in_waits_for_room() {
    let caller = Caller::new();
    let queue = caller.queue("q", 2);
    caller.put_many(&queue, &[1.0, 2.0, 3.0, 4.0, 5.0]);
    caller.put(&queue, 6.0);
    assert_eq!((caller.size(&queue), n_waiting(&queue)), (2, 2));
    assert!(!caller.context.effects().is_settled());
    // More than there is room for: taken as they come.
    assert_eq!(
        caller.elements::<f32>(&caller.take_many(&queue, 4)),
        [1.0, 2.0, 3.0, 4.0]
    );
    assert_eq!((caller.size(&queue), n_waiting(&queue)), (2, 0));
    caller.finish().unwrap();
    assert_eq!(
        caller.elements::<f32>(&caller.take_many(&queue, 2)),
        [5.0, 6.0]
    );
}

#[test]
fn a_queue_that_is_closed_takes_no_more_and_gives_what_is_left() {
    let caller = Caller::new();
    let queue = caller.queue("q", -1);
    caller.put_many(&queue, &[1.0, 2.0]);
    // It takes both, and waits for a third.
    let three = caller.take_many(&queue, 3);
    assert_eq!(caller.size(&queue), 0);
    caller.close(&queue);
    assert_eq!(caller.failure(&three), too_few("q", 3, 2));
    // They are back.
    assert_eq!((caller.size(&queue), caller.is_closed(&queue)), (2, true));
    let cancelled = |message: &str| (ErrorCode::Cancelled, message.to_owned());
    let one = caller.tensor(&[], &[1.0_f32]);
    let none = OpAttrs::new();
    let found = caller.fails("tf.QueueEnqueueV2", &[&queue, &one], &none);
    assert_eq!(found, cancelled("FIFOQueue 'q' is closed."));
    let found = caller.fails("tf.QueueCloseV2", &[&queue], &none);
    assert_eq!(found, cancelled("Queue 'q' is already closed."));
    let again = attrs(&[("cancel_pending_enqueues", 1)]);
    caller.call("tf.QueueCloseV2", &[&queue], &again).unwrap();
    caller.put_many(&queue, &[]);
    let up_to = |n| caller.take_n("tf.QueueDequeueUpToV2", &queue, n);
    assert_eq!(caller.elements::<f32>(&up_to(5)), [1.0, 2.0]);
    let n = caller.tensor(&[], &[5]);
    let found = caller.fails("tf.QueueDequeueUpToV2", &[&queue, &n], &f32s());
    assert_eq!(found, too_few("q", 5, 0));
    let found = caller.fails("tf.QueueDequeueV2", &[&queue], &f32s());
    assert_eq!(found, too_few("q", 1, 0));
}

#[test]
fn closing_waits_for_those_who_put_in_or_refuses_them() {
    let caller = Caller::new();
    let queue = caller.queue("", 1);
    caller.put_many(&queue, &[1.0, 2.0]);
    caller.close(&queue);
    let up_to = caller.take_n("tf.QueueDequeueUpToV2", &queue, 5);
    assert_eq!(caller.elements::<f32>(&up_to), [1.0, 2.0]);
    assert!(caller.is_closed(&queue));
    caller.finish().unwrap();

    let queue = caller.queue("", 1);
    caller.put(&queue, 1.0);
    caller.put(&queue, 2.0);
    caller.close(&queue);
    assert!(!caller.is_closed(&queue));
    let now = attrs(&[("cancel_pending_enqueues", 1)]);
    caller.call("tf.QueueCloseV2", &[&queue], &now).unwrap();
    assert_eq!((caller.size(&queue), n_waiting(&queue)), (1, 0));
    let error = caller.finish().unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (ErrorCode::Cancelled, "Enqueue operation was cancelled")
    );
}

#[test]
fn a_cancelled_context_takes_nothing() {
    let caller = Caller::new();
    let (mut other, context) = (caller.context.apart(), &caller.context);
    let queue = caller.queue("", 1);
    let in_other = |context: &Context, op: &str, inputs: &[&TensorHandle], attrs: &OpAttrs| {
        let op = caller.runtime.op(op, &caller.runtime.cpu()).unwrap();
        op.call(context, inputs, attrs).unwrap()
    };
    let two = caller.tensor(&[], &[2]);
    let taken = in_other(&other, "tf.QueueDequeueManyV2", &[&queue, &two], &f32s());
    caller.put(&queue, 1.0);
    assert_eq!((caller.size(&queue), n_waiting(&queue)), (0, 1));
    let later = caller.take(&queue);
    other.cancel();
    assert_eq!(taken[0].error().unwrap().code(), ErrorCode::Cancelled);
    // What it had taken is there for others.
    assert_eq!(caller.elements::<f32>(&later), [1.0]);
    assert_eq!(n_waiting(&queue), 0);
    other.reset();
    let one = caller.tensor(&[], &[1.0_f32]);
    for _ in 0..2 {
        in_other(
            &other,
            "tf.QueueEnqueueV2",
            &[&queue, &one],
            &OpAttrs::new(),
        );
    }
    assert_eq!(n_waiting(&queue), 1);
    other.cancel();
    assert_eq!((caller.size(&queue), n_waiting(&queue)), (1, 0));
    assert!(!context.is_cancelled());
    caller.finish().unwrap();
}

#[test]
fn who_puts_back_what_is_to_come_does_not_stop_others() {
    let caller = Caller::new();
    let queue = caller.queue("", -1);
    // It goes round: what is taken is put in again.
    let taken = caller.take(&queue);
    caller.run("tf.QueueEnqueueV2", &[&queue, &taken]);
    let one = caller.tensor(&[], &[1.0_f32]);
    let put = caller
        .runtime
        .op("tf.QueueEnqueueV2", &caller.runtime.cpu());
    let other = caller.context.apart();
    put.unwrap()
        .call(&other, [&queue, &one], &OpAttrs::new())
        .unwrap();
    caller.finish().unwrap();
    assert_eq!(caller.elements::<f32>(&taken), [1.0]);
    assert_eq!(caller.elements::<f32>(&caller.take(&queue)), [1.0]);
}

#[test]
fn queues_that_nobody_holds_end_those_who_wait() {
    let caller = Caller::new();
    let queue = caller.queue("", -1);
    let taken = caller.take(&queue);
    drop(queue);
    let message = "Dequeue operation was cancelled".to_owned();
    assert_eq!(caller.failure(&taken), (ErrorCode::Cancelled, message));
    let queue = caller.queue("q", -1);
    caller.put(&queue, 1.0);
    let two = caller.take_many(&queue, 2);
    caller.run("tf.DestroyResourceOp", &[&queue]);
    assert_eq!(caller.failure(&two).0, ErrorCode::Cancelled);
    let found = caller.fails("tf.QueueSizeV2", &[&queue], &OpAttrs::new());
    assert_eq!(found.0, ErrorCode::NotFound);
    let queue = caller.queue("q", -1);
    assert_eq!((caller.size(&queue), caller.is_closed(&queue)), (0, false));
}

#[test]
fn mistakes_are_named() {
    let caller = Caller::new();
    let mut of_rows = OpAttrs::new();
    of_rows.set("component_types", [DType::F32]).unwrap();
    let row = TensorShape::new(&[2]).unwrap();
    of_rows.set("shapes", [&row]).unwrap();
    of_rows.set("shared_name", "q").unwrap();
    let queue = caller.call("tf.FIFOQueueV2", &[], &of_rows).unwrap();
    let (queue, none) = (&queue[0], OpAttrs::new());
    let rows = caller.tensor(&[1, 3], &[1.0_f32, 2.0, 3.0]);
    let three = caller.tensor(&[3], &[1.0_f32, 2.0, 3.0]);
    let integers = caller.tensor(&[2], &[1, 2]);
    let (one, minus) = (caller.tensor(&[], &[1]), caller.tensor(&[], &[-1]));
    let put = "tf.QueueEnqueueV2";
    let cases = [
        (
            caller.fails(put, &[queue, &three, &three], &none),
            "Wrong number of components in tuple. Expected 1, got 2",
        ),
        (
            caller.fails(put, &[queue, &integers], &none),
            "Type mismatch in tuple component 0. Expected f32, got i32",
        ),
        (
            caller.fails(put, &[queue, &three], &none),
            "Shape mismatch in tuple component 0. Expected [2], got [3]",
        ),
        (
            caller.fails("tf.QueueEnqueueManyV2", &[queue, &rows], &none),
            "Shape mismatch in tuple component 0. Expected [1,2], got [1,3]",
        ),
        (
            caller.fails(put, &[queue, &three], &attrs(&[("timeout_ms", 5)])),
            "Timeout not supported yet.",
        ),
        (
            caller.fails("tf.QueueDequeueManyV2", &[queue, &minus], &f32s()),
            "DequeueManyOp requested -1 < 0 elements",
        ),
        (
            caller.fails("tf.QueueDequeueUpToV2", &[queue, &minus], &f32s()),
            "DequeueUpToOp requested -1 < 0 elements",
        ),
        (
            caller.fails("tf.FIFOQueueV2", &[], &of_numbers("q", -1)),
            "Shared queue 'q' has component shapes [[2]] but requested component shapes were [[]]",
        ),
        (
            caller.fails("tf.FIFOQueueV2", &[], &of_numbers("q", 4)),
            "Shared queue 'q' has capacity 2147483647 but requested capacity was 4",
        ),
    ];
    for ((code, found), expected) in cases {
        assert_eq!(code, ErrorCode::InvalidArgument);
        assert!(found.ends_with(expected), "{found}\n{expected}");
    }
    let integers = {
        let mut attrs = OpAttrs::new();
        attrs.set("component_types", [DType::I32]).unwrap();
        attrs
    };
    let (_, found) = caller.fails("tf.QueueDequeueV2", &[queue], &integers);
    assert_eq!(
        found,
        "Type mismatch in tuple component 0. Expected f32, got i32"
    );
    let (_, found) = caller.fails("tf.QueueDequeueV2", &[queue], &none);
    assert!(found.contains("component_types"), "{found}");
    let (_, found) = caller.fails(
        "tf.QueueDequeueV2",
        &[queue],
        &typed("component_types", DType::F32),
    );
    assert!(found.contains("a list of types"), "{found}");
    let variable = caller.with(&[], &[1.0_f32]);
    let (code, found) = caller.fails("tf.QueueSizeV2", &[&variable], &none);
    assert_eq!(code, ErrorCode::InvalidArgument);
    assert!(found.contains("using the wrong type"), "{found}");
    let (_, found) = caller.fails(
        "tf.QueueDequeueManyV2",
        &[queue, &one.clone(), &one],
        &f32s(),
    );
    assert!(found.contains("expects 2 inputs"), "{found}");
    assert!(matches!(queue.tensor(), Some(Ok(Tensor::Object(_)))));
}

#[test]
fn threads_hand_on_all_that_was_put_in() {
    let caller = Caller::on(Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap()));
    let queue = caller.queue("", 3);
    let taken: Vec<f32> = std::thread::scope(|scope| {
        for thread in 0..2_u16 {
            let (caller, queue, context) = (&caller, &queue, caller.context.apart());
            scope.spawn(move || {
                let put = caller
                    .runtime
                    .op("tf.QueueEnqueueV2", &caller.runtime.cpu());
                let put = put.unwrap();
                for number in 0..200 {
                    let number = caller.tensor(&[], &[f32::from(1000 * thread + number)]);
                    put.call(&context, [queue, &number], &OpAttrs::new())
                        .unwrap();
                }
            });
        }
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let (caller, queue, context) = (&caller, &queue, caller.context.apart());
                scope.spawn(move || {
                    let take = caller
                        .runtime
                        .op("tf.QueueDequeueV2", &caller.runtime.cpu());
                    let take = take.unwrap();
                    let taken: Vec<TensorHandle> = (0..200)
                        .map(|_| take.call(&context, [queue], &f32s()).unwrap().remove(0))
                        .collect();
                    let read = taken.iter().map(|one| caller.elements::<f32>(one)[0]);
                    read.collect::<Vec<f32>>()
                })
            })
            .collect();
        takers
            .into_iter()
            .flat_map(|taker| {
                let own = taker.join().unwrap();
                // Of each thread in its order.
                for thread in [0.0, 1000.0] {
                    let of: Vec<&f32> = own
                        .iter()
                        .filter(|one| (thread..thread + 1000.0).contains(*one))
                        .collect();
                    assert!(of.is_sorted(), "{of:?}");
                }
                own
            })
            .collect()
    });
    let mut sorted: Vec<f32> = taken;
    sorted.sort_by(f32::total_cmp);
    let expected: Vec<f32> = (0..200_u16).chain(1000..1200).map(f32::from).collect();
    assert_eq!(sorted, expected);
    assert_eq!(n_waiting(&queue), 0);
}
