//! Tensors of the host by the library: where elements lie, who shares them, and what does not fit.

use std::sync::Arc;

use tfrt::model::Datum;
use tfrt::tensor::{CooHostTensor, DenseHostTensor, ScalarHostTensor, Tensor as Layered};
use tfrt::{DType, ErrorCode, Model, Runtime, Shape, SingleThreadedWorkQueue, Tensor};

fn runtime() -> Runtime {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    Runtime::builder().queue(queue).build()
}

fn twice(runtime: &Runtime) -> Model {
    let text = r#"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32>
        attributes {onnx.inputs = ["x"], onnx.outputs = ["y"]} {
      %y = "onnx.Add"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      tfrt.return %y : tensor<?xf32>
    }"#;
    let program = runtime.compile("twice.mlir", text).unwrap();
    Model::from_program(program, runtime).unwrap()
}

#[test]
fn vector_is_taken_over_where_it_lies_and_given_back_with_the_last_tensor() {
    struct Counted(
        #[expect(dead_code, reason = "it is dropped")] Arc<()>,
        Vec<u8>,
    );
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.1
        }
    }
    let elements = vec![7_i64; 1000];
    let address = elements.as_ptr();
    let tensor = Tensor::from(elements);
    assert_eq!(tensor.view::<i64>().unwrap().as_ptr(), address);
    let seen = tensor.reshape(&[10, 100]).unwrap();
    drop(tensor);
    assert_eq!(seen.view::<i64>().unwrap().as_ptr(), address);

    let owner = Arc::new(());
    let counted = Counted(owner.clone(), vec![1, 2]);
    let tensor = Tensor::from_owner(DType::Ui8, &[2], counted).unwrap();
    let other = tensor.clone();
    drop(tensor);
    assert_eq!(Arc::strong_count(&owner), 2);
    drop(other);
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
fn who_changes_a_tensor_changes_nobody_elses() {
    let mut vector = Tensor::from(vec![1_i32, 2, 3]);
    vector.make_mut::<i32>().unwrap()[1] = 9;
    let own = vector.view::<i32>().unwrap().as_ptr();
    // It has memory of its own now.
    vector.make_mut::<i32>().unwrap()[2] = 8;
    assert_eq!(vector.view::<i32>().unwrap().as_ptr(), own);
    let shared = vector.clone();
    vector.make_mut::<i32>().unwrap()[0] = 7;
    assert_eq!(vector.to_vec::<i32>().unwrap(), [7, 9, 8]);
    assert_eq!(shared.to_vec::<i32>().unwrap(), [1, 9, 8]);
}

#[test]
fn output_that_is_taken_is_changed_in_place() {
    let runtime = runtime();
    let x = Tensor::from(vec![1.0_f32, 2.0]);
    let call = twice(&runtime).call(&runtime.context(), (&x,));
    let mut outputs = call.wait().unwrap();
    let mut y = outputs.take("y").unwrap();
    let address = y.view::<f32>().unwrap().as_ptr();
    assert_eq!(y.make_mut::<f32>().unwrap().as_ptr(), address);
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(
        outputs.tensor("y").unwrap_err().code(),
        ErrorCode::InvalidArgument
    );
    assert_eq!(outputs.take("z").unwrap_err().code(), ErrorCode::NotFound);
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn tensors_of_other_formats_are_written_out() {
    let shape = Shape::new(&[3]).unwrap();
    let scalar = Layered::from(ScalarHostTensor::new(shape.clone(), 1.5_f64));
    let tensor = Tensor::try_from(scalar).unwrap();
    assert_eq!(tensor.to_vec::<f64>().unwrap(), [1.5; 3]);

    let allocator = runtime().host().allocator().clone();
    let indices = DenseHostTensor::from_slice(&allocator, &[1, 1], &[2_i64]).unwrap();
    let values = DenseHostTensor::from_slice(&allocator, &[1], &[4_i32]).unwrap();
    let coo = Layered::from(CooHostTensor::new(shape, indices, values).unwrap());
    let tensor = Tensor::try_from(coo).unwrap();
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [0, 0, 4]);
}

#[test]
fn what_is_none_or_has_no_numbers_is_empty_or_refused() {
    let empty = Tensor::from_vec::<f32>(&[0, 3], Vec::new()).unwrap();
    assert!(empty.view::<f32>().unwrap().is_empty());
    assert_eq!(Tensor::from(Vec::<u8>::new()).shape().to_string(), "[0]");
    assert_eq!(Tensor::scalar(7_i8).item::<i8>().unwrap(), 7);

    let message = |error: tfrt::Error| error.message().to_owned();
    assert_eq!(
        message(Tensor::from_vec(&[2, 2], vec![1.0_f32; 3]).unwrap_err()),
        "a tensor of f32 [2, 2] takes 16 bytes, the buffer has 12"
    );
    assert_eq!(
        message(Tensor::from(vec![1, 2]).item::<i32>().unwrap_err()),
        "expected a tensor of one element, found i32 [2]"
    );
    let words = Tensor::from_strings(&[1], ["to"]).unwrap();
    assert_eq!(
        message(words.view::<f32>().unwrap_err()),
        "expected a tensor of f32, found one of str [1]"
    );
    assert_eq!(
        message(empty.strings().unwrap_err()),
        "expected a tensor of strings, found one of f32 [0, 3]"
    );
    let nothing = Datum::Optional(tfrt::tensor::Optional::Nothing);
    assert!(Tensor::try_from(nothing).is_err());
}
