//! Tensors of the host by the library: where elements lie, who shares them, and what does not fit.

use std::sync::Arc;

use tfrt::model::Datum;
use tfrt::tensor::{CooHostTensor, DenseHostTensor, ScalarHostTensor, Tensor as Layered};
use tfrt::{BF16, Bool, DType, ErrorCode, F16, Runtime, Shape, SingleThreadedWorkQueue, Tensor};

use super::twice::twice;

fn runtime() -> Runtime {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    Runtime::builder().queue(queue).build()
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

fn is_static_and_sent<T: Send + Sync + 'static>(_: &T) {}

#[test]
fn owned_reading_keeps_elements_where_they_are_and_unchanged() {
    let runtime = runtime();
    let x = Tensor::from(vec![1.0_f32, 2.0]);
    let call = twice(&runtime).call(&runtime.context(), (&x,));
    let mut y = call.wait().unwrap().take("y").unwrap();
    let address = y.view::<f32>().unwrap().as_ptr();
    let reading = y.read_owned().unwrap();
    let view = y.view_owned::<f32>().unwrap();
    is_static_and_sent(&reading);
    is_static_and_sent(&view);
    // Who changes the tensor changes a copy.
    assert!(y.get_mut::<f32>().unwrap().is_none());
    y.make_mut::<f32>().unwrap()[0] = 9.0;
    y.copy_from(&x).unwrap();
    drop((y, runtime));

    assert_eq!((view.as_ptr(), &view[..]), (address, &[2.0, 4.0][..]));
    assert_eq!(reading.as_ptr(), address.cast());
    assert_eq!(&reading[..4], 2.0_f32.to_ne_bytes());
    assert_eq!(
        (reading.dtype(), reading.shape().to_string()),
        (DType::F32, "[2]".to_owned())
    );
    assert_eq!(
        reading.elements::<i32>().unwrap_err().message(),
        "expected a tensor of i32, found one of f32 [2]"
    );
    drop(view);
    // The last one to have them may write them where they are.
    let mut last = reading.into_tensor();
    let elements = last.get_mut::<f32>().unwrap().expect("nobody shares it");
    assert_eq!(elements.as_ptr(), address);
}

#[test]
fn owned_reading_of_foreign_memory_keeps_its_owner() {
    let elements = vec![3_i64, 4];
    let address = elements.as_ptr();
    let reading = Tensor::from(elements).read_owned().unwrap();
    let view = reading.into_tensor().view_owned::<i64>().unwrap();
    assert_eq!((view.as_ptr(), &view[..]), (address, &[3, 4][..]));
    assert_eq!(view.into_tensor().to_vec::<i64>().unwrap(), [3, 4]);

    let empty = Tensor::from(Vec::<f32>::new());
    assert!(empty.view_owned::<f32>().unwrap().is_empty());
    assert!(empty.read_owned().unwrap().is_empty());
}

#[test]
fn output_is_written_in_place_by_who_owns_the_right() {
    let runtime = runtime();
    let call = twice(&runtime).call(&runtime.context(), (vec![1.0_f32, 2.0],));
    let y = call.wait().unwrap().take("y").unwrap();
    let address = y.view::<f32>().unwrap().as_ptr();
    let mut writing = y.write_owned().unwrap();
    is_static_and_sent(&writing);
    assert_eq!(writing.as_ptr(), address.cast());
    writing.elements_mut::<f32>().unwrap()[1] = 7.0;
    assert!(writing.elements_mut::<i32>().is_err());
    writing[..4].copy_from_slice(&0.5_f32.to_ne_bytes());
    let y = writing.into_tensor();
    assert_eq!(y.view::<f32>().unwrap().as_ptr(), address);
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.5, 7.0]);

    // What others share is copied, and so is what is for reading only.
    let shared = y.clone();
    let mut copy = y.write_owned().unwrap();
    copy.fill(0);
    assert_eq!(shared.to_vec::<f32>().unwrap(), [0.5, 7.0]);
    let vector = Tensor::from(vec![1_i32]);
    let mut copy = vector.clone().write_owned().unwrap();
    copy.fill(0);
    assert_eq!(vector.to_vec::<i32>().unwrap(), [1]);
}

#[test]
fn tensors_of_strings_have_no_bytes_to_own() {
    let words = || Tensor::from_strings(&[1], ["to"]).unwrap();
    let message = "expected a tensor of numbers, found one of str [1]";
    assert_eq!(words().read_owned().unwrap_err().message(), message);
    assert_eq!(words().write_owned().unwrap_err().message(), message);
    assert!(words().view_owned::<u8>().is_err());
    assert!(words().get_mut::<u8>().is_err());
}

#[test]
fn elements_are_copied_to_slices_of_as_many() {
    let tensor = Tensor::from([1_i32, 2, 3]);
    let mut room = [0; 3];
    tensor.copy_to_slice(&mut room).unwrap();
    assert_eq!(room, [1, 2, 3]);
    assert_eq!(
        tensor.copy_to_slice(&mut room[1..]).unwrap_err().message(),
        "a tensor of i32 [3] can't be copied to 2 elements"
    );
    assert!(tensor.copy_to_slice(&mut [0.0_f32; 3]).is_err());
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
fn debug_shows_type_shape_and_the_first_elements() {
    let cases = [
        (
            Tensor::from([1.0_f32, 0.1, -2e-9]),
            "Tensor(f32 [3], [1.0, 0.1, -2e-9])",
        ),
        (Tensor::scalar(7_i64), "Tensor(i64 [], [7])"),
        (
            Tensor::from([F16(0x3e00), F16(0x7c00)]),
            "Tensor(f16 [2], [1.5, inf])",
        ),
        (Tensor::from([BF16(0x3fc0)]), "Tensor(bf16 [1], [1.5])"),
        (Tensor::from(Vec::<f64>::new()), "Tensor(f64 [0], [])"),
        (Tensor::from([Bool::from(true)]), "Tensor(i1 [1], [1])"),
        (
            Tensor::from((0..100_u8).collect::<Vec<_>>())
                .reshape(&[10, 10])
                .unwrap(),
            "Tensor(u8 [10, 10], [0, 1, 2, 3, 4, 5, ...])",
        ),
        (
            Tensor::from_strings(&[1], ["a \"word\""]).unwrap(),
            r#"Tensor(str [1], ["a \"word\""])"#,
        ),
    ];
    for (tensor, expected) in cases {
        assert_eq!(format!("{tensor:?}"), expected);
    }
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
        "a tensor of f32 [2, 2] has 4 elements, found 3"
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
