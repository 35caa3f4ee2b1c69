//! Resource variables: what reads and changes give, in which order, and what is said of what is wrong.

use std::sync::{Arc, Mutex};

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_corert::{Context, CoreRuntime, Handles, OpAttrs, TensorHandle};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Error, ErrorCode, HostContext};
use tfrt_tensor::resource::{Resources, Slot, Variable};
use tfrt_tensor::{DType, Element, Tensor};

#[path = "variables/arrays.rs"]
mod arrays;
#[path = "variables/lists.rs"]
mod lists;
#[path = "variables/optimizers.rs"]
mod optimizers;
#[path = "variables/queues.rs"]
mod queues;
#[path = "variables/random.rs"]
mod random;
#[path = "variables/slices.rs"]
mod slices;
#[path = "variables/tables.rs"]
mod tables;

/// A runtime with a context: calls operations by name.
pub(crate) struct Caller {
    pub runtime: CoreRuntime,
    pub context: Context,
}

impl Caller {
    fn new() -> Caller {
        Caller::on(Arc::new(SingleThreadedWorkQueue::new()))
    }

    fn on(queue: Arc<dyn ConcurrentWorkQueue>) -> Caller {
        let host = HostContext::builder(KernelRegistry::new())
            .queue(queue)
            .build();
        let runtime = CoreRuntime::new(&host);
        runtime.set_kernels(tfrt_kernels::rows::find);
        let context = runtime.context();
        Caller { runtime, context }
    }

    fn call(
        &self,
        name: &str,
        inputs: &[&TensorHandle],
        attrs: &OpAttrs,
    ) -> Result<Handles, Error> {
        let op = self.runtime.op(name, &self.runtime.cpu())?;
        op.call(&self.context, inputs, attrs)
    }

    fn one(&self, name: &str, inputs: &[&TensorHandle]) -> TensorHandle {
        let mut results = self.call(name, inputs, &OpAttrs::new()).unwrap();
        results.pop().unwrap()
    }

    fn run(&self, name: &str, inputs: &[&TensorHandle]) {
        let results = self.call(name, inputs, &OpAttrs::new()).unwrap();
        assert!(results.is_empty());
    }

    fn fails(&self, name: &str, inputs: &[&TensorHandle], attrs: &OpAttrs) -> (ErrorCode, String) {
        let error = self.call(name, inputs, attrs).unwrap_err();
        (error.code(), error.message().to_owned())
    }

    fn tensor<T: Element>(&self, extents: &[usize], list: &[T]) -> TensorHandle {
        self.runtime.dense(extents, list).unwrap()
    }

    /// Returns the handle of a variable of this name.
    fn variable(&self, name: &str) -> TensorHandle {
        let mut attrs = OpAttrs::new();
        attrs.set("shared_name", name).unwrap();
        self.call("tf.VarHandleOp", &[], &attrs).unwrap().remove(0)
    }

    /// Returns the handle of a new variable that holds a value.
    fn with<T: Element>(&self, extents: &[usize], list: &[T]) -> TensorHandle {
        let variable = self.variable("");
        self.run(
            "tf.AssignVariableOp",
            &[&variable, &self.tensor(extents, list)],
        );
        variable
    }

    fn read<T: Element>(&self, variable: &TensorHandle) -> Vec<T> {
        self.elements(&self.one("tf.ReadVariableOp", &[variable]))
    }

    fn elements<T: Element>(&self, handle: &TensorHandle) -> Vec<T> {
        let queue = self.runtime.host().queue();
        queue.await_all(&[handle.to_async().into_any()]).unwrap();
        let tensor = handle.tensor().expect("it is settled").unwrap();
        let dense = tensor.as_dense().unwrap();
        dense.read().unwrap().elements::<T>().unwrap().to_vec()
    }

    fn finish(&self) -> Result<(), Error> {
        let effects = self.context.effects();
        let queue = self.runtime.host().queue();
        queue.await_all(&[effects.as_any().clone()]).unwrap();
        effects.error().map_or(Ok(()), |error| Err(error.clone()))
    }
}

fn attrs(list: &[(&'static str, i64)]) -> OpAttrs {
    let mut attrs = OpAttrs::new();
    for (name, value) in list {
        attrs.set(name, *value).unwrap();
    }
    attrs
}

fn typed(name: &'static str, dtype: DType) -> OpAttrs {
    let mut attrs = OpAttrs::new();
    attrs.set(name, dtype).unwrap();
    attrs
}

/// Returns the address of a tensor's elements.
fn address(handle: &TensorHandle) -> usize {
    let Some(Ok(Tensor::Dense(dense))) = handle.tensor() else {
        panic!("it is dense");
    };
    dense.buffer().address()
}

#[test]
fn handles_of_one_name_are_one_variable() {
    let caller = Caller::new();
    let (a, b, c) = (
        caller.variable("w"),
        caller.variable("w"),
        caller.variable("v"),
    );
    caller.run("tf.AssignVariableOp", &[&a, &caller.tensor(&[2], &[1, 2])]);
    assert_eq!(caller.read::<i32>(&b), [1, 2]);
    let is_there = |handle| {
        let found = caller.one("tf.VarIsInitializedOp", &[handle]);
        bool::from(caller.elements::<tfrt_tensor::Bool>(&found)[0])
    };
    assert!(is_there(&a) && is_there(&b) && !is_there(&c));
    let anonymous = caller.variable("");
    assert!(!is_there(&anonymous));
    assert_eq!(a.metadata().unwrap().to_string(), "resource []");
    assert_eq!(
        a.to_string(),
        "ObjectTensor dtype = resource, shape = [], values = [Var(w)]"
    );
    let shape = caller.one("tf.VariableShape", &[&a]);
    assert_eq!(caller.elements::<i32>(&shape), [2]);
}

#[test]
fn who_has_read_keeps_what_he_read() {
    let caller = Caller::new();
    let w = caller.with(&[2], &[1.0_f32, 2.0]);
    let before = caller.one("tf.ReadVariableOp", &[&w]);
    let again = caller.one("tf.ReadVariableOp", &[&w]);
    assert_eq!(address(&before), address(&again), "nothing is copied");
    let one = caller.tensor(&[2], &[1.0_f32, 1.0]);
    caller.run("tf.AssignAddVariableOp", &[&w, &one]);
    assert_eq!(caller.elements::<f32>(&before), [1.0, 2.0]);
    assert_eq!(caller.read::<f32>(&w), [2.0, 3.0]);
    // What nobody else has is changed where it is.
    let place = address(&caller.one("tf.ReadVariableOp", &[&w]));
    caller.run("tf.AssignSubVariableOp", &[&w, &one]);
    let after = caller.one("tf.ReadVariableOp", &[&w]);
    assert_eq!(
        (address(&after), caller.elements::<f32>(&after)),
        (place, vec![1.0, 2.0])
    );
    // Its own value, too.
    caller.run("tf.AssignAddVariableOp", &[&w, &after]);
    assert_eq!(caller.read::<f32>(&w), [2.0, 4.0]);
    assert_eq!(caller.elements::<f32>(&after), [1.0, 2.0]);
}

#[test]
fn values_given_for_good_become_the_variables_own() {
    let caller = Caller::new();
    let w = caller.variable("");
    let value = caller.tensor(&[2], &[1.0_f32, 2.0]);
    let place = address(&value);
    let op = caller
        .runtime
        .op("tf.AssignVariableOp", &caller.runtime.cpu())
        .unwrap();
    op.call(&caller.context, [w.clone(), value], &OpAttrs::new())
        .unwrap();
    let one = caller.tensor(&[2], &[1.0_f32, 1.0]);
    caller.run("tf.AssignAddVariableOp", &[&w, &one]);
    let read = caller.one("tf.ReadVariableOp", &[&w]);
    assert_eq!(address(&read), place);
    assert_eq!(caller.elements::<f32>(&read), [2.0, 3.0]);
}

#[test]
fn reads_after_changes_of_rows_are_copies_until_that_is_disabled() {
    let caller = Caller::new();
    let w = caller.with(&[3, 1], &[1.0_f32, 2.0, 3.0]);
    let before = caller.one("tf.ReadVariableOp", &[&w]);
    let (at, by) = (
        caller.tensor(&[2], &[0, 2]),
        caller.tensor(&[2, 1], &[1.0_f32, 1.0]),
    );
    caller.run("tf.ResourceScatterAdd", &[&w, &at, &by]);
    let (one, other) = (
        caller.one("tf.ReadVariableOp", &[&w]),
        caller.one("tf.ReadVariableOp", &[&w]),
    );
    assert_ne!(address(&one), address(&other));
    caller.run("tf.ResourceScatterAdd", &[&w, &at, &by]);
    assert_eq!(caller.elements::<f32>(&before), [1.0, 2.0, 3.0]);
    assert_eq!(caller.elements::<f32>(&one), [2.0, 2.0, 4.0]);
    assert_eq!(caller.read::<f32>(&w), [3.0, 2.0, 5.0]);
    caller.run("tf.DisableCopyOnRead", &[&w]);
    let (one, other) = (
        caller.one("tf.ReadVariableOp", &[&w]),
        caller.one("tf.ReadVariableOp", &[&w]),
    );
    assert_eq!(address(&one), address(&other));
}

#[test]
fn rows_and_slices_are_gathered_and_scattered() {
    let caller = Caller::new();
    let w = caller.with(&[3, 2], &[1, 2, 3, 4, 5, 6]);
    let at = caller.tensor(&[2, 1], &[2, 0]);
    let gathered = caller.one("tf.ResourceGather", &[&w, &at]);
    assert_eq!(gathered.metadata().unwrap().to_string(), "i32 [2, 1, 2]");
    assert_eq!(caller.elements::<i32>(&gathered), [5, 6, 1, 2]);
    let batched = caller.with(&[2, 3], &[1, 2, 3, 4, 5, 6]);
    let at = caller.tensor(&[2, 2], &[2_i64, 0, 1, 1]);
    let found = caller.call(
        "tf.ResourceGather",
        &[&batched, &at],
        &attrs(&[("batch_dims", 1)]),
    );
    assert_eq!(caller.elements::<i32>(&found.unwrap()[0]), [3, 1, 5, 5]);
    let at = caller.tensor(&[2, 2], &[0, 1, 2, 0]);
    assert_eq!(
        caller.elements::<i32>(&caller.one("tf.ResourceGatherNd", &[&w, &at])),
        [2, 5]
    );
    let at = caller.tensor(&[1, 1], &[1]);
    assert_eq!(
        caller.elements::<i32>(&caller.one("tf.ResourceGatherNd", &[&w, &at])),
        [3, 4]
    );
    for (name, expected) in [
        ("Add", [12, 22, 3, 4, 5, 6]),
        ("Sub", [-10, -18, 3, 4, 5, 6]),
        ("Mul", [10, 200, 3, 4, 5, 6]),
        ("Div", [0, 0, 3, 4, 5, 6]),
        ("Max", [10, 10, 3, 4, 5, 6]),
        ("Min", [1, 2, 3, 4, 5, 6]),
        ("Update", [1, 10, 3, 4, 5, 6]),
    ] {
        let w = caller.with(&[3, 2], &[1, 2, 3, 4, 5, 6]);
        let at = caller.tensor(&[2], &[0, 0]);
        let by = caller.tensor(&[2, 2], &[10, 10, 1, 10]);
        caller.run(&format!("tf.ResourceScatter{name}"), &[&w, &at, &by]);
        assert_eq!(caller.read::<i32>(&w), expected, "{name}");
    }
    let all = caller.tensor(&[2], &[1, 2]);
    caller.run(
        "tf.ResourceScatterUpdate",
        &[&w, &all, &caller.tensor(&[], &[9])],
    );
    assert_eq!(caller.read::<i32>(&w), [1, 2, 9, 9, 9, 9]);
    for (name, expected) in [
        ("Add", [1, 5, 3]),
        ("Sub", [1, -1, 3]),
        ("Max", [1, 3, 3]),
        ("Min", [1, 2, 3]),
        ("Update", [1, 3, 3]),
    ] {
        let w = caller.with(&[3], &[1, 2, 3]);
        let at = caller.tensor(&[2, 1], &[1, 7]);
        let by = caller.tensor(&[2], &[3, 100]);
        let mut ignoring = OpAttrs::new();
        ignoring.set("bad_indices_policy", "IGNORE").unwrap();
        caller
            .call(
                &format!("tf.ResourceScatterNd{name}"),
                &[&w, &at, &by],
                &ignoring,
            )
            .unwrap();
        assert_eq!(caller.read::<i32>(&w), expected, "{name}");
    }
}

#[test]
fn extents_whose_product_is_no_number_are_taken() {
    let caller = Caller::new();
    let none = OpAttrs::new();
    let huge = 1 << 40;
    let hollow = caller.with::<f32>(&[0, huge, huge], &[]);
    let nowhere = caller.tensor::<i32>(&[0], &[]);
    let gathered = caller.one("tf.ResourceGather", &[&hollow, &nowhere]);
    assert_eq!(gathered.shape().unwrap().rank(), 3);
    let updates = caller.tensor::<f32>(&[0, huge, huge], &[]);
    caller.run("tf.ResourceScatterAdd", &[&hollow, &nowhere, &updates]);
    let flat = caller.with::<f32>(&[huge, huge, 0], &[]);
    let last = (1_i64 << 40) - 1;
    let at = caller.tensor(&[1, 2], &[last, last]);
    let gathered = caller.one("tf.ResourceGatherNd", &[&flat, &at]);
    assert_eq!(gathered.metadata().unwrap().to_string(), "f32 [1, 0]");
    let many = caller.tensor::<i32>(&[huge, 0], &[]);
    let (code, _) = caller.fails("tf.ResourceGatherNd", &[&flat, &many], &none);
    assert_eq!(code, ErrorCode::ResourceExhausted);
    let any = caller.tensor(&[], &[-1]);
    for (n, extents) in [(2, vec![2, 0, huge, huge]), (0, vec![0, huge, huge])] {
        let x = caller.tensor::<f32>(&extents, &[]);
        let list = caller.one("tf.TensorListFromTensor", &[&x, &any]);
        assert_eq!(
            caller.elements::<i32>(&caller.one("tf.TensorListLength", &[&list])),
            [n]
        );
    }
}

#[test]
fn counters_count_up_to_their_limit() {
    let caller = Caller::new();
    let n = caller.with(&[], &[2_i64]);
    let count = || caller.call("tf.ResourceCountUpTo", &[&n], &attrs(&[("limit", 4)]));
    assert_eq!(caller.elements::<i64>(&count().unwrap()[0]), [2]);
    assert_eq!(caller.elements::<i64>(&count().unwrap()[0]), [3]);
    let error = count().unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutOfRange);
    assert_eq!(error.message(), "Reached limit of 4");
    assert_eq!(caller.read::<i64>(&n), [4]);
}

#[test]
fn wrong_uses_are_told_in_tensorflows_words() {
    let caller = Caller::new();
    let invalid = ErrorCode::InvalidArgument;
    let none = OpAttrs::new();
    let (w, missing) = (
        caller.with(&[3], &[1.0_f32, 2.0, 3.0]),
        caller.variable("v1"),
    );
    let (x, y) = (
        caller.tensor(&[3], &[1.0_f32; 3]),
        caller.tensor(&[2], &[1.0_f32; 2]),
    );
    let whole = caller.tensor(&[3], &[1, 2, 3]);

    let (code, message) = caller.fails("tf.ReadVariableOp", &[&missing], &none);
    assert_eq!(code, ErrorCode::FailedPrecondition);
    assert!(
        message.starts_with("Could not find variable v1. "),
        "{message}"
    );
    let found = caller.fails("tf.AssignAddVariableOp", &[&missing, &x], &none);
    assert_eq!(
        found,
        (
            ErrorCode::NotFound,
            "Resource localhost/v1/Var does not exist.".into()
        )
    );
    assert_eq!(
        caller.fails("tf.VariableShape", &[&missing], &none).0,
        ErrorCode::NotFound
    );
    assert_eq!(
        caller.fails("tf.DisableCopyOnRead", &[&missing], &none).0,
        ErrorCode::NotFound
    );
    let rate = caller.tensor(&[], &[0.1_f32]);
    let found = caller.fails(
        "tf.ResourceApplyGradientDescent",
        &[&missing, &rate, &x],
        &none,
    );
    assert_eq!(
        found,
        (ErrorCode::Internal, "Invalid variable reference.".into())
    );

    let found = caller.fails("tf.ReadVariableOp", &[&w], &typed("dtype", DType::I32));
    let text = "Trying to read variable with wrong dtype. Expected i32 got f32";
    assert_eq!(found, (invalid, text.into()));
    let found = caller.fails("tf.AssignVariableOp", &[&w, &whole], &none);
    let text = "Trying to assign variable with wrong dtype. Expected f32 got i32";
    assert_eq!(found, (invalid, text.into()));
    let found = caller.fails(
        "tf.AssignVariableOp",
        &[&w, &y],
        &attrs(&[("validate_shape", 1)]),
    );
    let text = "Trying to assign to variable with tensor with wrong shape. Expected [3] got [2]";
    assert_eq!(found, (invalid, text.into()));
    let found = caller.fails("tf.AssignSubVariableOp", &[&w, &y], &none);
    let text = "Cannot update variable with shape [3] using a Tensor with shape [2], shapes must be equal.";
    assert_eq!(found, (invalid, text.into()));
    let found = caller.fails("tf.AssignAddVariableOp", &[&w, &whole], &none);
    assert_eq!(
        found,
        (
            invalid,
            "DType of variable handle and value does not match.".into()
        )
    );

    let found = caller.fails("tf.ResourceApplyGradientDescent", &[&w, &rate, &y], &none);
    assert_eq!(
        found,
        (
            invalid,
            "var and delta do not have the same shape[3] [2]".into()
        )
    );
    let accum = caller.with(&[2], &[1.0_f32; 2]);
    let found = caller.fails("tf.ResourceApplyAdagrad", &[&w, &accum, &rate, &x], &none);
    assert_eq!(
        found,
        (
            invalid,
            "var and accum do not have the same shape[3] [2]".into()
        )
    );
    let found = caller.fails("tf.ResourceApplyGradientDescent", &[&w, &y, &x], &none);
    assert!(
        found.1.ends_with("alpha is not a scalar: [2]"),
        "{}",
        found.1
    );
    let found = caller.fails("tf.ResourceApplyAdagrad", &[&w, &w, &rate, &x], &none);
    assert!(
        found
            .1
            .ends_with("found the same one for 'var' and 'accum'"),
        "{}",
        found.1
    );
    let found = caller.fails("tf.ResourceApplyGradientDescent", &[&x, &rate, &x], &none);
    assert_eq!(found.0, invalid, "{}", found.1);

    let bad = caller.tensor(&[2, 1], &[0, 3]);
    let found = caller.fails("tf.ResourceGather", &[&w, &bad], &none);
    assert_eq!(found, (invalid, "indices[1,0] = 3 is not in [0, 3)".into()));
    let scalar = caller.with(&[], &[1.0_f32]);
    let found = caller.fails("tf.ResourceGather", &[&scalar, &bad], &none);
    assert_eq!(
        found,
        (invalid, "params must be at least 1 dimensional".into())
    );
    let bad = caller.tensor(&[1, 1], &[5]);
    let one = caller.tensor(&[1], &[1.0_f32]);
    let found = caller.fails("tf.ResourceScatterNdAdd", &[&w, &bad, &one], &none);
    assert_eq!(
        found,
        (
            invalid,
            "indices[0] = [5] does not index into shape [3]".into()
        )
    );
    let square = caller.with(&[3, 4], &[0.0_f32; 12]);
    let bad = caller.tensor(&[1, 2], &[3, 1]);
    let found = caller.fails("tf.ResourceGatherNd", &[&square, &bad], &none);
    assert_eq!(
        found,
        (
            invalid,
            "indices[0] = [3, 1] does not index into param shape [3,4]".into()
        )
    );
    let numbers = caller.with(&[2], &[4, 8]);
    let (at, zeros) = (caller.tensor(&[2], &[0, 1]), caller.tensor(&[2], &[2, 0]));
    let found = caller.fails("tf.ResourceScatterDiv", &[&numbers, &at, &zeros], &none);
    assert_eq!(found, (invalid, "updates must not contain 0".into()));
    // Nothing was changed by any of it.
    assert_eq!(caller.read::<f32>(&w), [1.0, 2.0, 3.0]);
    assert_eq!(caller.read::<i32>(&numbers), [4, 8]);
    assert_eq!(caller.read::<f32>(&accum), [1.0, 1.0]);
}

#[test]
fn other_operations_refuse_handles() {
    let caller = Caller::new();
    let w = caller.with(&[2], &[1.0_f32, 2.0]);
    for (name, n) in [
        ("tf.Relu", 1),
        ("tf.AddV2", 2),
        ("tf.MatMul", 2),
        ("tf.Pack", 1),
    ] {
        let error = caller
            .call(name, &vec![&w; n], &OpAttrs::new())
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{name}: {error}");
    }
}

#[test]
fn destroyed_variables_are_gone_for_all_handles_and_may_come_again() {
    let caller = Caller::new();
    let (a, b) = (caller.variable("w"), caller.variable("w"));
    let x = caller.tensor(&[1], &[1.0_f32]);
    caller.run("tf.AssignVariableOp", &[&a, &x]);
    let kept = caller.one("tf.ReadVariableOp", &[&a]);
    caller.run("tf.DestroyResourceOp", &[&b]);
    let found = caller.fails("tf.ReadVariableOp", &[&a], &OpAttrs::new());
    assert_eq!(found.0, ErrorCode::FailedPrecondition);
    caller.run("tf.DestroyResourceOp", &[&b]);
    let strict = attrs(&[("ignore_lookup_error", 0)]);
    let found = caller.fails("tf.DestroyResourceOp", &[&a], &strict);
    assert_eq!(
        found,
        (
            ErrorCode::NotFound,
            "Resource localhost/w/Var does not exist.".into()
        )
    );
    assert_eq!(caller.elements::<f32>(&kept), [1.0]);
    // Of another type now.
    caller.run("tf.AssignVariableOp", &[&b, &caller.tensor(&[1], &[7])]);
    assert_eq!(caller.read::<i32>(&a), [7]);
}

#[test]
fn resources_of_another_type_are_refused() {
    #[derive(Debug)]
    struct Table;
    impl tfrt_tensor::resource::Resource for Table {
        fn type_name(&self) -> &str {
            "Table"
        }
        fn destroy(&self) -> bool {
            true
        }
    }
    let caller = Caller::new();
    let table = Resources::of(caller.runtime.host()).slot("", "t", || Table);
    let handle = caller.runtime.handle(table.handle());
    let (code, message) = caller.fails("tf.ReadVariableOp", &[&handle], &OpAttrs::new());
    assert_eq!(code, ErrorCode::InvalidArgument);
    assert_eq!(
        message,
        "Trying to access a handle's resource using the wrong type. The handle points to a resource (name 't') of type \
         'Table' but you are trying to access the resource as type 'Variable'"
    );
    caller.run("tf.DestroyResourceOp", &[&handle]);
}

#[test]
fn kernels_go_on_when_a_lock_is_theirs() {
    let caller = Caller::new();
    let w = caller.with(&[2], &[1.0_f32, 2.0]);
    let Some(Ok(tensor)) = w.tensor() else {
        panic!("it is there");
    };
    let slot = Slot::counted(tensor).unwrap();
    let variable = slot.get::<Variable>().unwrap();
    let held = variable.lock().try_write().unwrap();
    let one = caller.tensor(&[2], &[1.0_f32, 1.0]);
    let read = caller.one("tf.ReadVariableOp", &[&w]);
    caller.run("tf.AssignAddVariableOp", &[&w, &one]);
    let after = caller.one("tf.ReadVariableOp", &[&w]);
    assert!(!read.is_settled() && !after.is_settled());
    assert!(!caller.context.effects().is_settled());
    // What goes wrong later is told where effects are awaited, and fails nothing else.
    let wrong = caller.tensor(&[3], &[1.0_f32; 3]);
    caller.run("tf.AssignAddVariableOp", &[&w, &wrong]);
    drop(held);
    assert_eq!(caller.elements::<f32>(&read), [1.0, 2.0]);
    assert_eq!(caller.elements::<f32>(&after), [2.0, 3.0]);
    let error = caller.finish().unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    caller.run("tf.AssignAddVariableOp", &[&w, &one]);
    assert_eq!(caller.read::<f32>(&w), [3.0, 4.0]);
}

#[test]
fn threads_lose_no_update() {
    let n_threads = 8;
    for locks in [0, 1] {
        let queue = Arc::new(MultiThreadedWorkQueue::new(2, 1).unwrap());
        let caller = Caller::on(queue);
        for n in [4, 1 << 17] {
            let (w, m) = (
                caller.with(&[n], &vec![0.0_f32; n]),
                caller.with(&[n], &vec![0.0_f32; n]),
            );
            let one = caller.tensor(&[n], &vec![1.0_f32; n]);
            let number = |value: f32| caller.tensor(&[], &[value]);
            let (rate, momentum) = (number(-1.0), number(0.0));
            let n_times = if n > 4 { 10 } else { 100 };
            let torn = Mutex::new(0);
            std::thread::scope(|scope| {
                for thread in 0..n_threads {
                    let (caller, w, m) = (&caller, &w, &m);
                    let (one, rate, momentum, torn) = (&one, &rate, &momentum, &torn);
                    scope.spawn(move || {
                        let own = Caller {
                            runtime: caller.runtime.clone(),
                            context: caller.runtime.context(),
                        };
                        for _ in 0..n_times {
                            // Half of them the other way round: who waits for two can't wait for each other.
                            let (a, b) = if thread % 2 == 0 { (w, m) } else { (m, w) };
                            let locking = attrs(&[("use_locking", locks)]);
                            own.call(
                                "tf.ResourceApplyMomentum",
                                &[a, b, rate, one, momentum],
                                &locking,
                            )
                            .unwrap();
                            let all = own.read::<f32>(a);
                            *torn.lock().unwrap() += usize::from(all.iter().any(|x| *x != all[0]));
                        }
                        own.finish().unwrap();
                    });
                }
            });
            assert_eq!(*torn.lock().unwrap(), 0, "no read saw half of a step");
            // As the accumulator of a step is 1, and the rate -1, each one adds 1 to its weights, and sets the other to 1.
            let (w, m) = (caller.read::<f32>(&w), caller.read::<f32>(&m));
            assert!(w.iter().chain(&m).all(|x| *x >= 1.0));
            let counter = caller.with(&[n], &vec![0.0_f32; n]);
            std::thread::scope(|scope| {
                for _ in 0..n_threads {
                    scope.spawn(|| {
                        let own = Caller {
                            runtime: caller.runtime.clone(),
                            context: caller.runtime.context(),
                        };
                        for _ in 0..n_times {
                            own.run("tf.AssignAddVariableOp", &[&counter, &one]);
                        }
                        own.finish().unwrap();
                    });
                }
            });
            let expected = (n_threads * n_times) as f32;
            assert!(caller.read::<f32>(&counter).iter().all(|x| *x == expected));
        }
    }
}

#[test]
fn variables_are_stored_and_loaded() {
    let caller = Caller::new();
    let (w, b) = (caller.variable("w"), caller.variable("b"));
    caller.run(
        "tf.AssignVariableOp",
        &[&w, &caller.tensor(&[2, 1], &[1.5_f32, 2.5])],
    );
    caller.run(
        "tf.AssignVariableOp",
        &[&b, &caller.tensor(&[2], &[3_i64, 4])],
    );
    let _not_initialized = caller.variable("c");
    let resources = Resources::of(caller.runtime.host());
    let allocator = caller.runtime.host().allocator();
    for is_npz in [false, true] {
        let stored = match is_npz {
            true => resources.save_npz().unwrap(),
            false => resources.save_safetensors().unwrap(),
        };
        caller.run(
            "tf.AssignVariableOp",
            &[&w, &caller.tensor(&[1], &[0.0_f32])],
        );
        caller.run("tf.DestroyResourceOp", &[&b]);
        let n = match is_npz {
            true => resources.load_npz(&stored, allocator).unwrap(),
            false => resources.load_safetensors(&stored, allocator).unwrap(),
        };
        assert_eq!(n, 2);
        assert_eq!(caller.read::<f32>(&w), [1.5, 2.5]);
        assert_eq!(caller.read::<i64>(&b), [3, 4]);
        // They are changed as any other.
        caller.run(
            "tf.AssignAddVariableOp",
            &[&b, &caller.tensor(&[2], &[1_i64, 1])],
        );
        assert_eq!(caller.read::<i64>(&b), [4, 5]);
        caller.run(
            "tf.AssignSubVariableOp",
            &[&b, &caller.tensor(&[2], &[1_i64, 1])],
        );
    }
    assert!(resources.load_npz(b"no archive", allocator).is_err());
    assert!(resources.load_safetensors(b"nothing", allocator).is_err());
}

const TRAIN: &str = "
func.func @train(%c0: !tfrt.chain, %x: !corert.tensorhandle, %rate: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c0 \"cpu\"
  %c1, %w = corert.executeop.seq(%cpu, %c0) \"tf.VarHandleOp\"() {shared_name = \"in_program\", dtype = f32} : 1
  %c2 = corert.executeop.seq(%cpu, %c1) \"tf.AssignVariableOp\"(%w, %x)
  %c3 = corert.executeop.seq(%cpu, %c2) \"tf.ResourceApplyGradientDescent\"(%w, %rate, %x)
  %c4, %y = corert.executeop.seq(%cpu, %c3) \"tf.ReadVariableOp\"(%w) {dtype = f32} : 1
  tfrt.return %c4, %y : !tfrt.chain, !corert.tensorhandle
}
";

#[test]
fn programs_change_variables_in_the_order_of_their_chains() {
    let mut registry = KernelRegistry::new();
    tfrt_corert::kernels::register(&mut registry);
    let host = HostContext::builder(registry).build();
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("train.mlir", TRAIN)).unwrap();
    let bytes = tfrt_compiler::compile(&module, &tfrt_compiler::CompileOptions::default()).unwrap();
    let program = tfrt_bef::BefFile::open(bytes).unwrap();
    let program = tfrt_host::Program::load(program, &host).unwrap();
    let runtime = CoreRuntime::new(&host);
    runtime.set_kernels(tfrt_kernels::rows::find);
    let train = runtime
        .composite(program.function("train").unwrap())
        .unwrap();
    let context = runtime.context();
    let caller = Caller { runtime, context };
    let x = caller.tensor(&[2], &[1.0_f32, 2.0]);
    let rate = caller.tensor(&[], &[0.5_f32]);
    for _ in 0..2 {
        let y = train
            .call_one(&caller.context, [&x, &rate], &OpAttrs::new())
            .unwrap();
        assert_eq!(caller.elements::<f32>(&y), [0.5, 1.0]);
    }
    // The variable is the host's.
    assert_eq!(
        caller.read::<f32>(&caller.variable("in_program")),
        [0.5, 1.0]
    );
}
