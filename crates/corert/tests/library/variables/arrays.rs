//! Arrays of tensors: each is written once, read, and let go of.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::ErrorCode;
use tfrt_tensor::DType;

use super::{Caller, attrs, typed};

impl Caller {
    /// Returns the handle and the flow of a new array.
    fn array(&self, n: i32, options: &[(&'static str, i64)]) -> [TensorHandle; 2] {
        let mut attrs = attrs(options);
        attrs.set("dtype", DType::F32).unwrap();
        attrs.set("tensor_array_name", "a").unwrap();
        let mut all = self
            .call("tf.TensorArrayV3", &[&self.tensor(&[], &[n])], &attrs)
            .unwrap();
        let (flow, handle) = (all.pop().unwrap(), all.pop().unwrap());
        [handle, flow]
    }

    fn write(&self, [handle, flow]: &[TensorHandle; 2], index: i32, list: &[f32]) {
        let (index, value) = (self.tensor(&[], &[index]), self.tensor(&[list.len()], list));
        self.one("tf.TensorArrayWriteV3", &[handle, &index, &value, flow]);
    }

    fn read_at(&self, [handle, flow]: &[TensorHandle; 2], index: i32) -> Vec<f32> {
        let index = self.tensor(&[], &[index]);
        let read = self.call(
            "tf.TensorArrayReadV3",
            &[handle, &index, flow],
            &typed("dtype", DType::F32),
        );
        self.elements(&read.unwrap()[0])
    }

    fn refused(&self, name: &str, inputs: &[&TensorHandle]) -> String {
        let (code, message) = self.fails(name, inputs, &OpAttrs::new());
        assert_eq!(code, ErrorCode::InvalidArgument, "{message}");
        message
    }
}

#[test]
fn arrays_are_written_and_read() {
    let caller = Caller::new();
    let array = caller.array(2, &[]);
    caller.write(&array, 1, &[3.0, 4.0]);
    caller.write(&array, 0, &[1.0, 2.0]);
    assert_eq!(caller.read_at(&array, 1), [3.0, 4.0]);
    let [handle, flow] = &array;
    let (at, value) = (caller.tensor(&[], &[1]), caller.tensor(&[2], &[0.0_f32; 2]));
    let told = caller.refused("tf.TensorArrayReadV3", &[handle, &at, flow]);
    assert_eq!(
        told,
        "TensorArray a: Could not read index 1 twice because it was cleared after a previous read (perhaps try setting clear_after_read = false?)."
    );
    let zero = caller.tensor(&[], &[0]);
    let told = caller.refused("tf.TensorArrayWriteV3", &[handle, &zero, &value, flow]);
    assert_eq!(
        told,
        "TensorArray a: Could not write to TensorArray index 0 because it has already been written to."
    );
    let two = caller.tensor(&[], &[2]);
    let told = caller.refused("tf.TensorArrayWriteV3", &[handle, &two, &value, flow]);
    assert_eq!(
        told,
        "TensorArray a: Tried to write to index 2 but array is not resizeable and size is: 2"
    );
    let told = caller.refused("tf.TensorArrayReadV3", &[handle, &two, flow]);
    assert_eq!(
        told,
        "TensorArray a: Tried to read from index 2 but array size is: 2"
    );
    caller.run("tf.TensorArrayCloseV3", &[handle]);
    let told = caller.refused("tf.TensorArraySizeV3", &[handle, flow]);
    assert_eq!(told, "TensorArray a: TensorArray has already been closed.");
    // A variable is no array.
    let w = caller.with(&[1], &[1.0_f32]);
    let told = caller.refused("tf.TensorArraySizeV3", &[&w, flow]);
    assert!(told.contains("as type 'TensorArray'"), "{told}");
}

#[test]
fn arrays_are_gathered_scattered_joined_and_split() {
    let caller = Caller::new();
    let array = caller.array(0, &[("dynamic_size", 1), ("clear_after_read", 0)]);
    let [handle, flow] = &array;
    let x = caller.tensor(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
    caller.one(
        "tf.TensorArrayScatterV3",
        &[handle, &caller.tensor(&[2], &[2, 0]), &x, flow],
    );
    let size = caller.one("tf.TensorArraySizeV3", &[handle, flow]);
    assert_eq!(caller.elements::<i32>(&size), [3]);
    let gathered = caller.one(
        "tf.TensorArrayGatherV3",
        &[handle, &caller.tensor(&[2], &[0, 2]), flow],
    );
    assert_eq!(caller.elements::<f32>(&gathered), [3.0, 4.0, 1.0, 2.0]);
    caller.write(&array, 1, &[9.0]);
    let mut joined = caller
        .call("tf.TensorArrayConcatV3", &[handle, flow], &OpAttrs::new())
        .unwrap();
    assert_eq!(caller.elements::<i64>(&joined.pop().unwrap()), [2, 1, 2]);
    assert_eq!(
        caller.elements::<f32>(&joined.pop().unwrap()),
        [3.0, 4.0, 9.0, 1.0, 2.0]
    );
    let split = caller.array(2, &[]);
    let lengths = caller.tensor(&[2], &[1_i64, 1]);
    caller.one(
        "tf.TensorArraySplitV3",
        &[&split[0], &x, &lengths, &split[1]],
    );
    assert_eq!(caller.read_at(&split, 1), [3.0, 4.0]);
}

#[test]
fn gradients_that_are_written_at_one_index_are_added() {
    let caller = Caller::new();
    let array = caller.array(
        2,
        &[("clear_after_read", 0), ("identical_element_shapes", 1)],
    );
    caller.write(&array, 0, &[1.0, 2.0]);
    let mut source = OpAttrs::new();
    source.set("source", "loss").unwrap();
    let gradients = || {
        let mut all = caller
            .call("tf.TensorArrayGradV3", &[&array[0], &array[1]], &source)
            .unwrap();
        let (flow, handle) = (all.pop().unwrap(), all.pop().unwrap());
        [handle, flow]
    };
    caller.write(&gradients(), 0, &[0.5, 0.25]);
    caller.write(&gradients(), 0, &[0.5, 0.25]);
    assert_eq!(caller.read_at(&gradients(), 0), [1.0, 0.5]);
    // Where none was written it is zeros of the extents that all have.
    assert_eq!(caller.read_at(&gradients(), 1), [0.0, 0.0]);
    assert_eq!(caller.read_at(&array, 0), [1.0, 2.0]);
}
