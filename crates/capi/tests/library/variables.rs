//! Functions of variables: copies, locks, references, variants, and resources of a plugin.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tfrt_capi::rows::PluginOps;
use tfrt_corert::{Context, OpAttrs, TensorHandle};
use tfrt_host::{AsyncValue, Chain, DType, Error, ErrorCode};
use tfrt_tensor::resource::{Resources, Slot, TensorList, Variable};
use tfrt_tensor::{Element, PartialTensorShape, Tensor};

use crate::plugins::{Bed, variables};

/// Variables of a test: made, read, and changed.
pub trait Variables {
    fn variable(&self, name: &str) -> TensorHandle;
    fn variable_with(&self, value: TensorHandle) -> TensorHandle;
    fn read<T: Element>(&self, variable: &TensorHandle) -> Vec<T>;
    /// Calls an operation without results, and waits for its effects.
    fn run(&self, op: &str, inputs: Vec<TensorHandle>, attrs: &OpAttrs) -> Result<(), Error>;
}

impl Variables for Bed {
    fn variable(&self, name: &str) -> TensorHandle {
        let mut attrs = OpAttrs::new();
        attrs.set("shared_name", name).unwrap();
        self.call("tf.VarHandleOp", vec![], &attrs)
            .unwrap()
            .remove(0)
    }

    fn variable_with(&self, value: TensorHandle) -> TensorHandle {
        let variable = self.variable("");
        let inputs = vec![variable.clone(), value];
        self.run("tf.AssignVariableOp", inputs, &OpAttrs::new())
            .unwrap();
        variable
    }

    fn read<T: Element>(&self, variable: &TensorHandle) -> Vec<T> {
        elements(
            &self
                .call("tf.ReadVariableOp", vec![variable.clone()], &OpAttrs::new())
                .unwrap()[0],
        )
    }

    fn run(&self, op: &str, inputs: Vec<TensorHandle>, attrs: &OpAttrs) -> Result<(), Error> {
        let context = self.runtime.context();
        let op = self.runtime.op(op, &self.runtime.cpu())?;
        op.call(&context, inputs, attrs)?;
        wait(self, &context)
    }
}

fn wait(bed: &Bed, context: &Context) -> Result<(), Error> {
    let effects: AsyncValue<Chain> = context.effects();
    let queue = bed.runtime.host().queue();
    queue.await_all(&[effects.as_any().clone()]).unwrap();
    effects.error().map_or(Ok(()), |error| Err(error.clone()))
}

pub fn elements<T: Element>(handle: &TensorHandle) -> Vec<T> {
    let tensor = handle.tensor().expect("it is settled").unwrap();
    let dense = tensor.as_dense().unwrap();
    dense.read().unwrap().elements::<T>().unwrap().to_vec()
}

/// Returns a runtime with the plugin, which counts for the process: tests of it run one after the other.
fn bed() -> Option<(Bed, MutexGuard<'static, ()>)> {
    static ONE: Mutex<()> = Mutex::new(());
    let plugin = variables()?;
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bed = Bed::new(PluginOps::new([&plugin]));
    bed.number("tf.TestCopies", vec![], &OpAttrs::new())
        .unwrap();
    Some((bed, one))
}

fn attrs(list: &[(&'static str, i32)]) -> OpAttrs {
    let mut attrs = OpAttrs::new();
    for (name, value) in list {
        match *name {
            "use_locking" | "sparse" => drop(attrs.set(name, *value == 1).unwrap()),
            "add" => drop(attrs.set(name, *value as f32).unwrap()),
            name => drop(attrs.set(name, *value).unwrap()),
        }
    }
    attrs
}

impl Bed {
    fn three(&self) -> TensorHandle {
        self.variable_with(self.floats(&[3], &[1.0, 2.0, 3.0]))
    }

    fn number(&self, op: &str, inputs: Vec<TensorHandle>, attrs: &OpAttrs) -> Result<i32, Error> {
        Ok(elements::<i32>(&self.call(op, inputs, attrs)?[0])[0])
    }
}

#[test]
fn copies_are_made_where_somebody_else_holds_the_memory() {
    let Some((bed, _one)) = bed() else { return };
    let none = OpAttrs::new();
    let copies = || bed.number("tf.TestCopies", vec![], &none).unwrap();
    let run = |op: &str, inputs: &[&TensorHandle], list: &[(&'static str, i32)]| {
        let inputs = inputs.iter().map(|input| (*input).clone()).collect();
        bed.run(op, inputs, &attrs(list)).unwrap();
        copies()
    };
    let value = bed.floats(&[3], &[4.0, 5.0, 6.0]);
    let one = bed.floats(&[3], &[1.0; 3]);
    let taken = |var: &TensorHandle| {
        bed.call("tf.ReadVariableOp", vec![var.clone()], &none)
            .unwrap()
    };

    let var = bed.three();
    let held = taken(&var);
    assert_eq!(run("tf.TestAssign", &[&var, &value], &[]), 0);
    assert_eq!(elements::<f32>(&held[0]), [1.0, 2.0, 3.0]);
    assert_eq!(bed.read::<f32>(&var), [4.0, 5.0, 6.0]);
    // The value is the variable's memory.
    assert_eq!(run("tf.TestUpdate", &[&var, &one], &[]), 1);
    assert_eq!(elements::<f32>(&value), [4.0, 5.0, 6.0]);
    assert_eq!(run("tf.TestUpdate", &[&var, &one], &[("code", 1)]), 0);
    assert_eq!(run("tf.TestUpdate", &[&var, &one], &[]), 0);
    let held = taken(&var);
    assert_eq!(run("tf.TestUpdate", &[&var, &one], &[]), 1);
    assert_eq!(elements::<f32>(&held[0]), [5.0, 6.0, 7.0]);
    assert_eq!(bed.read::<f32>(&var), [6.0, 7.0, 8.0]);

    for locking in [0, 1] {
        let var = bed.three();
        let change = |list: &[(&'static str, i32)]| {
            let mut list = list.to_vec();
            list.push(("use_locking", locking));
            bed.number("tf.TestChange", vec![var.clone()], &attrs(&list))
                .unwrap();
            copies()
        };
        assert_eq!(change(&[]), 0);
        let held = taken(&var);
        assert_eq!(change(&[]), 1);
        assert_eq!(elements::<f32>(&held[0]), [2.0, 3.0, 4.0]);
        // Rows: from the first such change on, reads copy.
        assert_eq!(change(&[("sparse", 1)]), 0);
        let held = taken(&var);
        assert_eq!(change(&[("sparse", 1)]), 0);
        assert_eq!(elements::<f32>(&held[0]), [4.0, 5.0, 6.0]);
        assert_eq!(bed.read::<f32>(&var), [5.0, 6.0, 7.0]);
        assert_eq!(run("tf.TestAssign", &[&var, &value], &[]), 1);
        assert_eq!(change(&[]), 0);
        assert_eq!(elements::<f32>(&value), [4.0, 5.0, 6.0]);
    }

    let var = bed.three();
    let peeked = bed.call("tf.TestPeek", vec![var.clone()], &none).unwrap();
    assert_eq!(run("tf.TestUpdate", &[&var, &one], &[]), 1);
    assert_eq!(elements::<f32>(&peeked[0]), [1.0, 2.0, 3.0]);
    // Who asks for a variable twice gets the same memory.
    for locking in [0, 1] {
        let var = bed.three();
        let held = taken(&var);
        let twice = vec![var.clone(), var.clone()];
        bed.number("tf.TestChange", twice, &attrs(&[("use_locking", locking)]))
            .unwrap();
        assert_eq!(copies(), 1);
        assert_eq!(bed.read::<f32>(&var), [3.0, 4.0, 5.0]);
        drop(held);
    }
}

#[test]
fn failures_are_told_in_tensorflows_words_with_function_argument_and_kernel() {
    let Some((bed, _one)) = bed() else { return };
    let fails = |op: &str, inputs: Vec<TensorHandle>, list: &[(&'static str, i32)]| {
        let attrs = attrs(list);
        let error = match op {
            "tf.TestChange" | "tf.TestPeek" => bed.call(op, inputs, &attrs).map(drop),
            _ => bed.run(op, inputs, &attrs),
        };
        let error = error.unwrap_err();
        let text = |text: &str| text.to_owned();
        (error.code(), text(error.message()), text(&error.notes()[0]))
    };
    let told = |code: ErrorCode, message: &str, place: &str, kernel: &str| {
        let place = format!("{place}, in kernel '{kernel}' of libvariables.so");
        (code, message.to_owned(), place)
    };
    let one = || bed.floats(&[3], &[1.0; 3]);
    let missing = "Resource localhost/fresh/N10tensorflow3VarE does not exist.";
    let fresh = bed.variable("fresh");
    assert_eq!(
        fails("tf.TestPeek", vec![fresh.clone()], &[]),
        told(
            ErrorCode::NotFound,
            missing,
            "TF_GetInputTensorFromVariable: argument 'input'",
            "TestPeek"
        )
    );
    assert_eq!(
        fails("tf.TestUpdate", vec![fresh.clone(), one()], &[]),
        told(
            ErrorCode::NotFound,
            missing,
            "TF_AssignUpdateVariable: argument 'input_index'",
            "TestUpdate"
        )
    );
    let reference = "Invalid variable reference.";
    let place = "TF_MaybeLockVariableInputMutexesInOrder: argument 'inputs'";
    assert_eq!(
        fails("tf.TestChange", vec![bed.three(), fresh.clone()], &[]),
        told(ErrorCode::Internal, reference, place, "TestChange")
    );
    // An assignment makes it.
    bed.run("tf.TestAssign", vec![fresh.clone(), one()], &OpAttrs::new())
        .unwrap();
    assert_eq!(bed.read::<f32>(&fresh), [1.0; 3]);
    let short = || bed.floats(&[2], &[1.0; 2]);
    let place = "TF_AssignVariable: argument 'value_index'";
    assert_eq!(
        fails(
            "tf.TestAssign",
            vec![fresh.clone(), short()],
            &[("code", 1)]
        ),
        told(
            ErrorCode::InvalidArgument,
            "Trying to assign to variable with tensor with wrong shape. Expected [3] got [2]",
            place,
            "TestAssign"
        )
    );
    let integers = bed.runtime.dense(&[3], &[1_i32; 3]).unwrap();
    assert_eq!(
        fails("tf.TestAssign", vec![fresh.clone(), integers.clone()], &[]),
        told(
            ErrorCode::InvalidArgument,
            "Trying to assign variable with wrong dtype. Expected float got int32",
            place,
            "TestAssign"
        )
    );
    let place = "TF_AssignUpdateVariable: argument 'value_index'";
    assert_eq!(
        fails("tf.TestUpdate", vec![fresh.clone(), short()], &[]),
        told(
            ErrorCode::InvalidArgument,
            "Cannot update variable with shape [3] using a Tensor with shape [2], shapes must be equal.",
            place,
            "TestUpdate"
        )
    );
    assert_eq!(
        fails("tf.TestUpdate", vec![fresh.clone(), integers], &[]).1,
        "DType of variable handle and value does not match."
    );
    bed.run(
        "tf.TestAssign",
        vec![fresh.clone(), short()],
        &OpAttrs::new(),
    )
    .unwrap();
    assert_eq!(bed.read::<f32>(&fresh), [1.0; 2]);
    bed.run("tf.DestroyResourceOp", vec![fresh.clone()], &OpAttrs::new())
        .unwrap();
    assert_eq!(fails("tf.TestPeek", vec![fresh], &[]).1, missing);
}

#[test]
fn wrong_uses_fail_their_call() {
    let Some((bed, _one)) = bed() else { return };
    let get = "TF_GetInputTensorFromVariable: argument";
    let lock = "TF_MaybeLockVariableInputMutexesInOrder: argument";
    let expected = [
        format!("{get} 'input': expected one of 3 inputs, found 7"),
        format!("{get} 'input': expected one of 3 inputs, found -1"),
        format!("{get} 'input': expected a resource, found input 2, a tensor of float"),
        format!("{get} 'out': expected a place for a tensor, found a null pointer"),
        format!("{get} 'ctx': expected a TF_OpKernelContext, found a null pointer"),
        format!("{get} 'ctx': expected a TF_OpKernelContext, found a TF_Tensor"),
        "Trying to access a handle's resource using the wrong type. The handle points to a resource (name 'table') of \
         type 'HashTable' but you are trying to access the resource as type 'Variable'"
            .to_owned(),
        format!("{lock} 'inputs': expected one of 3 inputs, found 9"),
        format!("{lock} 'inputs': expected an array, found a null pointer"),
        format!("{lock} 'lockHolder': expected a place for the result, found a null pointer"),
        "Invalid variable reference.".to_owned(),
        format!("{lock} 'ctx': expected a TF_OpKernelContext, found a null pointer"),
        "TF_ReleaseVariableInputLockHolder: argument 'lockHolder': expected a TF_VariableInputLockHolder, found one that \
         was deleted"
            .to_owned(),
        "TF_ReleaseVariableInputLockHolder: argument 'lockHolder': expected a TF_VariableInputLockHolder, found a \
         TF_Tensor"
            .to_owned(),
        "TF_AssignVariable: argument 'value_index': expected one of 3 inputs, found 9".to_owned(),
        "TF_AssignVariable: argument 'input_index': expected a resource, found input 2, a tensor of float".to_owned(),
        "TF_AssignVariable: argument 'ctx': expected a TF_OpKernelContext, found 0x7fff12345670, which the host has not \
         given out"
            .to_owned(),
        "TF_AssignUpdateVariable: argument 'updateFunc': expected a function, found a null pointer".to_owned(),
        "TF_AssignUpdateVariable: argument 'value_index': expected one of 3 inputs, found -3".to_owned(),
        "Trying to access a handle's resource using the wrong type. The handle points to a resource (name 'table') of \
         type 'HashTable' but you are trying to access the resource as type 'Variable'"
            .to_owned(),
        "TF_AssignRefVariable: argument 'input_ref_index': expected a reference, found input 0, which is a resource"
            .to_owned(),
        "TF_AssignRefVariable: argument 'input_ref_index': expected a reference, found input 2, which is a float"
            .to_owned(),
        "TF_OpKernelContext_ForwardRefInputToRefOutput: argument 'input_ref_index': expected a reference, found input 2, \
         which is a float"
            .to_owned(),
        "TF_OpKernelContext_ForwardRefInputToRefOutput: argument 'input_ref_index': expected one of 3 inputs, found 8"
            .to_owned(),
        "TF_TemporaryVariable: argument 'var_name': expected a structure, found a null pointer".to_owned(),
        "TF_TemporaryVariable: argument 'dims': expected an array, found a null pointer".to_owned(),
        "TF_DestroyTemporaryVariable: argument 'index': expected a reference, found input 0, which is a resource"
            .to_owned(),
        "TF_AddNVariant: argument 'binary_add_func': expected a function, found a null pointer".to_owned(),
        "TF_ZerosLikeVariant: argument 'ctx': expected input 0 to be a scalar of type variant, found resource []"
            .to_owned(),
        "Trying to obtain resource handle from Input[2], which is not type DT_RESOURCE.".to_owned(),
        "TF_LockVariableInfos: argument 'vars': expected an array, found a null pointer".to_owned(),
        "TF_LockVariableInfos: argument 'vars': expected a TF_VariableInfo, found a null pointer".to_owned(),
        "TF_GetTensorFromVariableInfo: argument 'var_info': expected a TF_VariableInfo, found a null pointer".to_owned(),
        "TF_AllocateTempForVariableInfo: argument 'var_info': expected a TF_VariableInfo, found a null pointer"
            .to_owned(),
        "TF_DeleteVariableInfo: argument 'var_info': expected a TF_VariableInfo, found one that was deleted".to_owned(),
        "TF_CreatePluginResource: argument 'container_name': expected a text, found a null pointer".to_owned(),
        "TF_LookupOrCreatePluginResource: argument 'create_func': expected a function, found a null pointer".to_owned(),
        "TF_GetDevice: argument 'ctx': expected a TF_OpKernelContext, found a null pointer".to_owned(),
        "Trying to access a handle's resource using the wrong type. The handle points to a resource (name 'table') of \
         type 'HashTable' but you are trying to access the resource as type 'Variable'"
            .to_owned(),
        "no room for a copy".to_owned(),
        "TF_GetInputTensorFromVariable: argument 'input': expected a variable that is not being copied, found one that \
         is: this is called by the function that copies it"
            .to_owned(),
    ];
    let mut named = OpAttrs::new();
    named
        .set("shared_name", "table")
        .unwrap()
        .set("key_dtype", DType::I64)
        .unwrap()
        .set("value_dtype", DType::F32)
        .unwrap();
    let table = bed.call("tf.MutableHashTableV2", vec![], &named).unwrap();
    for (code, expected) in (0_i32..).zip(expected) {
        let var = bed.three();
        // Somebody holds the memory, so that it is copied.
        let held = bed
            .call("tf.ReadVariableOp", vec![var.clone()], &OpAttrs::new())
            .unwrap();
        let inputs = vec![var.clone(), table[0].clone(), bed.floats(&[1], &[1.0])];
        let error = bed
            .run("tf.TestWrongVariable", inputs, &attrs(&[("code", code)]))
            .unwrap_err();
        let kernel = "in kernel 'TestWrongVariable' of libvariables.so";
        let found = match error.message().strip_suffix(&format!(", {kernel}")) {
            Some(found) => found,
            None => {
                let place = error.notes().iter().find(|note| note.ends_with(kernel));
                let place = place.unwrap_or_else(|| panic!("{code}: {error}"));
                assert!(
                    place.starts_with("TF_") && place.contains(": argument '"),
                    "{code}: {place}"
                );
                error.message()
            }
        };
        assert_eq!(found, expected, "{code}");
        assert_eq!(bed.read::<f32>(&var), [1.0, 2.0, 3.0], "{code}");
        drop(held);
    }
    let inputs = vec![bed.three(), table[0].clone(), bed.floats(&[1], &[1.0])];
    bed.run("tf.TestWrongVariable", inputs, &attrs(&[("code", 1000)]))
        .unwrap();
}

/// Calls an operation on threads, each with a context of its own, and returns the outcomes.
fn on_threads<R: Send>(bed: &Bed, n: usize, run: impl Fn(usize, &Bed) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let start = |index: usize| {
            let (own, run) = (
                Bed {
                    runtime: bed.runtime.clone(),
                    context: bed.runtime.context(),
                },
                &run,
            );
            scope.spawn(move || run(index, &own))
        };
        let threads: Vec<_> = (0..n).map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

#[test]
fn kernels_without_use_locking_run_side_by_side_and_others_one_after_the_other() {
    let Some((bed, _one)) = bed() else { return };
    for (locking, met) in [(0, 1), (1, 0)] {
        let var = bed.three();
        let attrs = attrs(&[("use_locking", locking), ("meet", 2)]);
        let found = on_threads(&bed, 2, |_, own| {
            own.number("tf.TestChange", vec![var.clone()], &attrs)
        });
        let found: Result<Vec<i32>, _> = found.into_iter().collect();
        assert_eq!(found.unwrap(), [met; 2], "use_locking = {locking}");
        // Without a lock, one may overwrite what the other has written, but the memory is one.
        let after = bed.read::<f32>(&var);
        let is_whole = |after: &f32, before: f32, most: f32| {
            let added = after - before;
            (1.0..=most).contains(&added) && added.fract() == 0.0
        };
        let least = |locking: i32| if locking == 1 { 2.0 } else { 1.0 };
        for (after, before) in after.iter().zip([1.0, 2.0, 3.0]) {
            assert!(is_whole(after, before, 2.0) && after - before >= least(locking));
        }
    }
}

#[test]
fn two_variables_are_locked_in_one_order_by_eight_threads() {
    let Some((bed, _one)) = bed() else { return };
    for locking in [1, 0] {
        let zeros = || bed.variable_with(bed.floats(&[64], &[0.0; 64]));
        let (a, b) = (zeros(), zeros());
        let attrs = attrs(&[("use_locking", locking)]);
        on_threads(&bed, 8, |index, own| {
            for _ in 0..100 {
                let inputs = match index % 2 {
                    0 => vec![a.clone(), b.clone()],
                    _ => vec![b.clone(), a.clone()],
                };
                own.number("tf.TestChange", inputs, &attrs).unwrap();
            }
        });
        for var in [&a, &b] {
            for element in bed.read::<f32>(var) {
                match locking {
                    1 => assert_eq!(element, 800.0),
                    _ => assert!((1.0..=800.0).contains(&element) && element.fract() == 0.0),
                }
            }
        }
    }
}

#[test]
fn kernel_that_wants_more_than_its_node_says_waits_for_it() {
    let Some((bed, _one)) = bed() else { return };
    let var = bed.three();
    on_threads(&bed, 4, |_, own| {
        for _ in 0..50 {
            let inputs = vec![var.clone(), own.floats(&[3], &[1.0; 3])];
            own.run("tf.TestUpgrade", inputs, &OpAttrs::new()).unwrap();
        }
    });
    assert_eq!(bed.read::<f32>(&var), [201.0, 202.0, 203.0]);
}

#[test]
fn two_kernels_that_wait_for_each_other_are_told_so() {
    let Some((bed, _one)) = bed() else { return };
    let var = bed.three();
    let outcomes = on_threads(&bed, 2, |_, own| {
        let inputs = vec![var.clone(), own.floats(&[3], &[1.0; 3])];
        own.run("tf.TestUpgrade", inputs, &attrs(&[("code", 2)]))
    });
    let errors: Vec<&Error> = outcomes
        .iter()
        .filter_map(|one| one.as_ref().err())
        .collect();
    assert_eq!(errors.len(), 1, "{outcomes:?}");
    let kernel = "kernel 'TestUpgrade' of libvariables.so";
    assert_eq!(
        (errors[0].code(), errors[0].message().to_owned()),
        (
            ErrorCode::Aborted,
            format!(
                "{kernel} would wait for a variable that {kernel} holds, and that waits for a variable that {kernel} holds"
            )
        )
    );
    assert_eq!(
        errors[0].notes()[0],
        format!("TF_AssignUpdateVariable: argument 'input_index', in {kernel}")
    );
    // The other one has run.
    assert_eq!(bed.read::<f32>(&var), [2.0, 3.0, 4.0]);
}

#[test]
fn no_thread_waits_for_a_variable_that_others_hold() {
    let Some((bed, _one)) = bed() else { return };
    let var = bed.three();
    let tensor = var.tensor().unwrap().unwrap().clone();
    let slot = Slot::counted(&tensor).unwrap();
    for locking in [0, 1] {
        let held = slot.get::<Variable>().unwrap().lock().try_write().unwrap();
        let op = bed.runtime.op("tf.TestChange", &bed.runtime.cpu()).unwrap();
        let attrs = attrs(&[("use_locking", locking)]);
        let results = op.call(&bed.context, [var.clone()], &attrs).unwrap();
        assert!(results[0].tensor().is_none(), "it is to come");
        drop(held);
        let queue = bed.runtime.host().queue();
        queue
            .await_all(&[results[0].to_async().into_any()])
            .unwrap();
        assert_eq!(elements::<i32>(&results[0]), [0]);
    }
    assert_eq!(bed.read::<f32>(&var), [3.0, 4.0, 5.0]);
    // A call that is cancelled meanwhile does not start.
    let held = slot.get::<Variable>().unwrap().lock().try_write().unwrap();
    let context = bed.runtime.context();
    let op = bed.runtime.op("tf.TestChange", &bed.runtime.cpu()).unwrap();
    let results = op.call(&context, [var.clone()], &OpAttrs::new()).unwrap();
    context.cancel();
    drop(held);
    let queue = bed.runtime.host().queue();
    queue
        .await_all(&[results[0].to_async().into_any()])
        .unwrap();
    assert_eq!(results[0].error().unwrap().code(), ErrorCode::Cancelled);
    assert_eq!(bed.read::<f32>(&var), [3.0, 4.0, 5.0]);
}

#[test]
fn references_are_handles_of_variables() {
    let Some((bed, _one)) = bed() else { return };
    let none = OpAttrs::new();
    let var = bed.variable("");
    let value = |list: &[f32]| bed.floats(&[list.len()], list);
    let assign =
        |value: TensorHandle| bed.call("tf.TestRefAssign", vec![var.clone(), value], &none);
    assign(value(&[1.0, 2.0, 3.0])).unwrap();
    let out = assign(value(&[4.0, 5.0, 6.0])).unwrap();
    assert_eq!(bed.read::<f32>(&out[0]), [4.0, 5.0, 6.0]);
    let inputs = vec![out[0].clone(), value(&[-0.5; 3])];
    let out = bed.call("tf.TestRefAdd", inputs, &none).unwrap();
    assert_eq!(bed.read::<f32>(&out[0]), [3.5, 4.5, 5.5]);
    assert_eq!(bed.read::<f32>(&var), [3.5, 4.5, 5.5]);
    let error = assign(value(&[1.0; 2])).unwrap_err();
    assert_eq!(
        (error.message(), error.notes()[0].as_str()),
        (
            "Assign requires shapes of both tensors to match. lhs shape= [3] rhs shape= [2]",
            "TF_AssignRefVariable: argument 'value_index', in kernel 'TestRefAssign' of libvariables.so"
        )
    );
    let inputs = vec![value(&[1.0]), value(&[1.0])];
    let error = bed.call("tf.TestRefAdd", inputs, &none).unwrap_err();
    assert_eq!(
        error.message(),
        "TestRefAdd: input 'ref': expected elements of resource, found float"
    );
}

#[test]
fn variables_of_a_step_are_found_by_their_name() {
    let Some((bed, _one)) = bed() else { return };
    let none = OpAttrs::new();
    let made = bed.call("tf.TestTemporary", vec![], &none).unwrap();
    assert_eq!(bed.read::<f32>(&made[0]), [7.0, 8.0, 9.0]);
    let error = bed.call("tf.TestTemporary", vec![], &none).unwrap_err();
    assert_eq!(error.code(), ErrorCode::AlreadyExists);
    assert_eq!(
        error.notes()[0],
        "TF_TemporaryVariable: argument 'var_name', in kernel 'TestTemporary' of libvariables.so"
    );
    let destroy = || bed.call("tf.TestDestroyTemporary", vec![made[0].clone()], &none);
    assert_eq!(elements::<f32>(&destroy().unwrap()[0]), [7.0, 8.0, 9.0]);
    let error = destroy().unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (
            ErrorCode::NotFound,
            "TemporaryVariable temporary does not exist"
        )
    );
    bed.call("tf.TestTemporary", vec![], &none).unwrap();
}

#[test]
fn lists_of_tensors_are_added_and_zeroed_by_the_plugins_functions() {
    let Some((bed, _one)) = bed() else { return };
    let none = OpAttrs::new();
    let list_of = |elements: Vec<Option<Tensor>>, dtype: DType| {
        let mut list = TensorList::new(dtype, PartialTensorShape::UNRANKED);
        list.elements = elements;
        list.into_tensor()
    };
    let tensor = |list: &[f32]| {
        Some(
            bed.floats(&[list.len()], list)
                .tensor()
                .unwrap()
                .unwrap()
                .clone(),
        )
    };
    let list =
        |lists: &[&[f32]]| list_of(lists.iter().map(|one| tensor(one)).collect(), DType::F32);
    let given = |tensors: &[Tensor]| -> Vec<TensorHandle> {
        let tensors = tensors.iter().cloned();
        tensors.map(|tensor| bed.runtime.handle(tensor)).collect()
    };
    fn found(tensor: &Tensor) -> Vec<Option<Vec<f32>>> {
        let of = |one: &Tensor| {
            one.as_dense()
                .unwrap()
                .read()
                .unwrap()
                .elements::<f32>()
                .unwrap()
                .to_vec()
        };
        let list = TensorList::of(tensor).unwrap();
        list.elements
            .iter()
            .map(|one| one.as_ref().map(of))
            .collect()
    }
    let out = |handles: &[TensorHandle]| handles[0].tensor().unwrap().unwrap().clone();
    let n_called = || bed.number("tf.TestAdded", vec![], &none).unwrap();
    n_called();
    let (x, y) = (
        list(&[&[1.0, 2.0], &[3.0, 4.0]]),
        list(&[&[10.0, 20.0], &[30.0, 40.0]]),
    );
    let sum = bed
        .call("tf.AddN", given(&[x.clone(), y.clone()]), &none)
        .unwrap();
    assert_eq!(
        found(&out(&sum)),
        [Some(vec![11.0, 22.0]), Some(vec![33.0, 44.0])]
    );
    assert_eq!(n_called(), 2);
    let sum = bed
        .call("tf.AddN", given(&[x.clone(), y.clone(), x.clone()]), &none)
        .unwrap();
    assert_eq!(
        found(&out(&sum)),
        [Some(vec![12.0, 24.0]), Some(vec![36.0, 48.0])]
    );
    assert_eq!(n_called(), 4);
    let same = bed
        .call("tf.AddN", given(std::slice::from_ref(&x)), &none)
        .unwrap();
    assert_eq!((found(&out(&same)), n_called()), (found(&x), 0));
    // What is not set adds nothing, and stays so.
    let part = list_of(vec![None, tensor(&[1.0, 1.0])], DType::F32);
    let sum = bed
        .call("tf.AddN", given(&[x.clone(), part.clone()]), &none)
        .unwrap();
    assert_eq!(
        found(&out(&sum)),
        [Some(vec![1.0, 2.0]), Some(vec![4.0, 5.0])]
    );
    assert_eq!(n_called(), 1);
    let zeros = bed.call("tf.ZerosLike", given(&[part]), &none).unwrap();
    assert_eq!(
        (found(&out(&zeros)), n_called()),
        (vec![None, Some(vec![0.0; 2])], 1)
    );
    let nested = list_of(vec![Some(x.clone()), None], DType::Variant);
    let sum = bed
        .call("tf.AddN", given(&[nested.clone(), nested]), &none)
        .unwrap();
    let sum = out(&sum);
    let inner = TensorList::of(&sum).unwrap().elements[0].clone().unwrap();
    assert_eq!(found(&inner), [Some(vec![2.0, 4.0]), Some(vec![6.0, 8.0])]);
    let error = bed
        .call("tf.AddN", given(&[x, list(&[&[1.0]])]), &none)
        .unwrap_err();
    assert_eq!(
        error.message(),
        "Trying to add two lists of tensors with different lengths. One is 2 and the other is 1"
    );
    // Of numbers they are the runtime's own.
    let numbers = vec![bed.floats(&[1], &[1.0]), bed.floats(&[1], &[2.0])];
    let sum = bed.call("tf.AddN", numbers, &none).unwrap();
    assert_eq!(elements::<f32>(&sum[0]), [3.0]);
}

#[test]
fn objects_of_a_plugin_are_resources() {
    let Some((bed, _one)) = bed() else { return };
    let next = |code: i32| bed.number("tf.TestResource", vec![], &attrs(&[("code", code)]));
    assert_eq!(next(0).unwrap(), 41);
    assert_eq!(next(0).unwrap(), 42);
    let error = next(7).unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (
            ErrorCode::AlreadyExists,
            "Resource box/count/PluginResource already exists."
        )
    );
    assert_eq!(
        Resources::of(bed.runtime.host()).clear("box"),
        1,
        "it is deleted"
    );
    let n_deleted = next(7).unwrap();
    assert!(n_deleted >= 2, "the refused one and the first: {n_deleted}");
    assert_eq!(next(0).unwrap(), 8);
}

#[test]
fn variables_are_found_one_by_one() {
    let Some((bed, _one)) = bed() else { return };
    let (var, other) = (bed.three(), bed.three());
    let held = bed
        .call("tf.ReadVariableOp", vec![var.clone()], &OpAttrs::new())
        .unwrap();
    let both = || vec![var.clone(), other.clone()];
    bed.run("tf.TestInfos", both(), &OpAttrs::new()).unwrap();
    assert_eq!(bed.read::<f32>(&var), [2.0, 4.0, 6.0]);
    bed.run("tf.TestInfos", both(), &attrs(&[("code", 1)]))
        .unwrap();
    assert_eq!(bed.read::<f32>(&var), [1.0, 2.0, 3.0]);
    assert_eq!(elements::<f32>(&held[0]), [1.0, 2.0, 3.0]);
}

#[test]
fn handles_of_resources_pass_through() {
    let Some((bed, _one)) = bed() else { return };
    let var = bed.three();
    let same = bed.call("tf.TestSame", vec![var], &OpAttrs::new()).unwrap();
    assert_eq!(bed.read::<f32>(&same[0]), [1.0, 2.0, 3.0]);
}
