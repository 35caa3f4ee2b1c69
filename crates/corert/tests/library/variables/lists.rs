//! Lists of tensors: values, whose changes nobody sees who holds an older one.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::ErrorCode;
use tfrt_tensor::DType;

use super::{Caller, attrs, typed};

impl Caller {
    /// Calls an operation with `element_dtype`, and returns its first result.
    fn listed(&self, name: &str, inputs: &[&TensorHandle], dtype: DType) -> TensorHandle {
        let results = self.call(name, inputs, &typed("element_dtype", dtype));
        results.unwrap().remove(0)
    }

    fn any_shape(&self) -> TensorHandle {
        self.tensor(&[], &[-1])
    }

    fn reserved(&self, n: i32, extents: &[i32]) -> TensorHandle {
        let shape = self.tensor(&[extents.len()], extents);
        self.listed(
            "tf.TensorListReserve",
            &[&shape, &self.tensor(&[], &[n])],
            DType::F32,
        )
    }

    fn stacked(&self, list: &TensorHandle) -> (String, Vec<f32>) {
        let all = self.listed("tf.TensorListStack", &[list, &self.any_shape()], DType::F32);
        (all.metadata().unwrap().to_string(), self.elements(&all))
    }

    fn n_tensors(&self, list: &TensorHandle) -> i32 {
        self.elements(&self.one("tf.TensorListLength", &[list]))[0]
    }

    fn told(&self, name: &str, inputs: &[&TensorHandle], attrs: &OpAttrs) -> String {
        let (code, message) = self.fails(name, inputs, attrs);
        assert_eq!(code, ErrorCode::InvalidArgument, "{message}");
        message
    }
}

#[test]
fn lists_are_values() {
    let caller = Caller::new();
    let (shape, most) = (caller.tensor(&[1], &[2]), caller.tensor(&[], &[-1]));
    let empty = caller.listed("tf.EmptyTensorList", &[&shape, &most], DType::F32);
    assert_eq!(empty.metadata().unwrap().to_string(), "variant []");
    let one = caller.one(
        "tf.TensorListPushBack",
        &[&empty, &caller.tensor(&[2], &[1.0_f32, 2.0])],
    );
    let two = caller.one(
        "tf.TensorListPushBack",
        &[&one, &caller.tensor(&[2], &[3.0_f32, 4.0])],
    );
    let sizes = [&empty, &one, &two].map(|list| caller.n_tensors(list));
    assert_eq!(sizes, [0, 1, 2]);
    assert_eq!(
        caller.stacked(&two),
        ("f32 [2, 2]".into(), vec![1.0, 2.0, 3.0, 4.0])
    );
    let mut popped = caller
        .call(
            "tf.TensorListPopBack",
            &[&two, &caller.any_shape()],
            &OpAttrs::new(),
        )
        .unwrap();
    let (last, rest) = (popped.pop().unwrap(), popped.pop().unwrap());
    assert_eq!(
        (caller.elements::<f32>(&last), caller.n_tensors(&rest)),
        (vec![3.0, 4.0], 1)
    );
    let zero = caller.tensor(&[], &[0]);
    let set = caller.one(
        "tf.TensorListSetItem",
        &[&two, &zero, &caller.tensor(&[2], &[9.0_f32, 9.0])],
    );
    assert_eq!(caller.stacked(&set).1, [9.0, 9.0, 3.0, 4.0]);
    assert_eq!(caller.stacked(&two).1, [1.0, 2.0, 3.0, 4.0]);
    let all = caller.one("tf.TensorListConcatLists", &[&two, &set]);
    assert_eq!(caller.n_tensors(&all), 4);
    let at = caller.tensor(&[2], &[3, 0]);
    let chosen = caller.one("tf.TensorListGather", &[&all, &at, &caller.any_shape()]);
    assert_eq!(caller.elements::<f32>(&chosen), [3.0, 4.0, 1.0, 2.0]);
    let shape = caller.one("tf.TensorListElementShape", &[&two]);
    assert_eq!(caller.elements::<i32>(&shape), [2]);
}

#[test]
fn a_list_that_nobody_else_holds_grows_where_it_is() {
    let caller = Caller::new();
    let mut list = caller.reserved(0, &[]);
    let push = caller
        .runtime
        .op("tf.TensorListPushBack", &caller.runtime.cpu())
        .unwrap();
    // With a copy for each this would be some 10^10 clones of handles.
    for index in 0..50_000 {
        let item = caller.tensor(&[], &[index as f32]);
        list = push
            .call_one(&caller.context, [list, item], &OpAttrs::new())
            .unwrap();
    }
    assert_eq!(caller.n_tensors(&list), 50_000);
}

#[test]
fn what_is_not_set_is_zeros_of_the_extents_that_are_known() {
    let caller = Caller::new();
    let list = caller.reserved(3, &[-1, 2]);
    let at = |index: i32| caller.tensor(&[], &[index]);
    let told = caller.told(
        "tf.TensorListGetItem",
        &[&list, &at(0), &caller.any_shape()],
        &OpAttrs::new(),
    );
    assert!(
        told.starts_with(
            "Trying to read an uninitialized element but element_shape is not fully defined"
        ),
        "{told}"
    );
    let stated = caller.tensor(&[2], &[1, 2]);
    let zeros = caller.one("tf.TensorListGetItem", &[&list, &at(0), &stated]);
    assert_eq!(caller.elements::<f32>(&zeros), [0.0, 0.0]);
    let list = caller.one(
        "tf.TensorListSetItem",
        &[&list, &at(1), &caller.tensor(&[1, 2], &[5.0_f32, 6.0])],
    );
    assert_eq!(
        caller.stacked(&list),
        ("f32 [3, 1, 2]".into(), vec![0.0, 0.0, 5.0, 6.0, 0.0, 0.0])
    );
    let leading = caller.tensor(&[3], &[2_i64, 0, 0]);
    let mut all = caller
        .call(
            "tf.TensorListConcatV2",
            &[&list, &caller.any_shape(), &leading],
            &OpAttrs::new(),
        )
        .unwrap();
    let (lengths, all) = (all.pop().unwrap(), all.pop().unwrap());
    assert_eq!(caller.elements::<i64>(&lengths), [2, 1, 0]);
    assert_eq!(caller.elements::<f32>(&all), [0.0, 0.0, 0.0, 0.0, 5.0, 6.0]);
    let longer = caller.one("tf.TensorListResize", &[&list, &at(4)]);
    assert_eq!((caller.n_tensors(&longer), caller.n_tensors(&list)), (4, 3));
    let resizing = attrs(&[("resize_if_index_out_of_bounds", 1)]);
    let item = caller.tensor(&[1, 2], &[7.0_f32, 8.0]);
    let longer = caller
        .call("tf.TensorListSetItem", &[&list, &at(5), &item], &resizing)
        .unwrap();
    assert_eq!(caller.n_tensors(&longer[0]), 6);
}

#[test]
fn tensors_become_lists_and_lists_tensors() {
    let caller = Caller::new();
    let x = caller.tensor(&[3, 2], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let list = caller.one("tf.TensorListFromTensor", &[&x, &caller.tensor(&[1], &[2])]);
    assert_eq!(
        caller.stacked(&list),
        ("f32 [3, 2]".into(), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    );
    let lengths = caller.tensor(&[2], &[1_i64, 2]);
    let split = caller.one("tf.TensorListSplit", &[&x, &caller.any_shape(), &lengths]);
    let mut joined = caller
        .call(
            "tf.TensorListConcat",
            &[&split],
            &typed("element_dtype", DType::F32),
        )
        .unwrap();
    assert_eq!(caller.elements::<i64>(&joined.pop().unwrap()), [1, 2]);
    assert_eq!(
        caller.elements::<f32>(&joined.pop().unwrap()),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    let at = caller.tensor(&[3], &[2, 0, 3]);
    let scattered = caller.one(
        "tf.TensorListScatterV2",
        &[&x, &at, &caller.any_shape(), &caller.tensor(&[], &[-1])],
    );
    assert_eq!(
        caller.stacked(&scattered).1,
        [3.0, 4.0, 0.0, 0.0, 1.0, 2.0, 5.0, 6.0]
    );
    let at = caller.tensor(&[3], &[0, 0, 4]);
    let into = caller.one("tf.TensorListScatterIntoExistingList", &[&list, &x, &at]);
    assert_eq!(
        caller.stacked(&into).1,
        [3.0, 4.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0, 5.0, 6.0]
    );
    let same = caller.one(
        "tf.TensorListScatter",
        &[&x, &caller.tensor(&[3], &[0, 1, 2]), &caller.any_shape()],
    );
    assert_eq!(caller.stacked(&same).1, caller.stacked(&list).1);
    let sum = caller.one("tf.AddN", &[&list, &list, &same]);
    assert_eq!(caller.stacked(&sum).1, [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]);
    assert_eq!(
        caller.elements::<f32>(&caller.one("tf.AddN", &[&x, &x, &x])),
        caller.stacked(&sum).1
    );
    let zeros = caller.one("tf.ZerosLike", &[&list]);
    assert_eq!(caller.stacked(&zeros).1, [0.0; 6]);
}

#[test]
fn wrong_uses_of_lists_are_told() {
    let caller = Caller::new();
    let none = OpAttrs::new();
    let list = caller.reserved(2, &[2]);
    let x = caller.tensor(&[2], &[1.0_f32, 2.0]);
    let at = |index: i32| caller.tensor(&[], &[index]);
    let any = caller.any_shape();
    let told = caller.told("tf.TensorListGetItem", &[&list, &at(2), &any], &none);
    assert_eq!(
        told,
        "Trying to access element 2 in a list with 2 elements."
    );
    let told = caller.told("tf.TensorListSetItem", &[&list, &at(-1), &x], &none);
    assert_eq!(
        told,
        "Trying to modify element -1 in a list with 2 elements."
    );
    let told = caller.told(
        "tf.TensorListPushBack",
        &[&list, &caller.tensor(&[3], &[0.0_f32; 3])],
        &none,
    );
    assert_eq!(
        told,
        "Tried to append a tensor with incompatible shape to a list. Op element shape: [3] list shape: [2]"
    );
    let told = caller.told(
        "tf.TensorListPushBack",
        &[&list, &caller.tensor(&[2], &[1, 2])],
        &none,
    );
    assert_eq!(
        told,
        "Invalid data types; op elements i32 but list elements f32"
    );
    let told = caller.told(
        "tf.TensorListStack",
        &[&list, &any],
        &attrs(&[("num_elements", 3)]),
    );
    assert_eq!(
        told,
        "Operation expected a list with 3 elements but got a list with 2 elements."
    );
    let empty = caller.reserved(0, &[2]);
    let told = caller.told("tf.TensorListPopBack", &[&empty, &any], &none);
    assert_eq!(told, "Trying to pop from an empty list.");
    let full = caller.listed("tf.EmptyTensorList", &[&any, &at(1)], DType::F32);
    let full = caller.one("tf.TensorListPushBack", &[&full, &x]);
    let told = caller.told("tf.TensorListPushBack", &[&full, &x], &none);
    assert_eq!(
        told,
        "Tried to push item into a full list list size: 1 max_num_elements: 1"
    );
    let told = caller.told(
        "tf.TensorListReserve",
        &[&any, &at(-1)],
        &typed("element_dtype", DType::F32),
    );
    assert!(told.ends_with("found -1"), "{told}");
    let told = caller.told(
        "tf.TensorListSplit",
        &[&x, &any, &caller.tensor(&[1], &[3_i64])],
        &none,
    );
    assert!(
        told.starts_with(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is 3"
        ),
        "{told}"
    );
    let w = caller.with(&[1], &[1.0_f32]);
    assert_eq!(
        caller.fails("tf.TensorListLength", &[&w], &none).0,
        ErrorCode::InvalidArgument
    );
    assert_eq!(
        caller.fails("tf.TensorListLength", &[&x], &none).0,
        ErrorCode::InvalidArgument
    );
}
