//! The operations of `tfrt_test`, as tests of the original call them.

use tfrt_corert::OpAttrs;
use tfrt_host::{DType, ErrorCode};
use tfrt_tensor::{Bool, F16, StringHostTensor, TensorFormat, TensorShape};

use super::{TestBed, address, attrs, elements, extents, none};

/// Returns a shape, and something else.
fn shaped<V: tfrt_corert::IntoAttr>(shape: &[i64], name: &'static str, value: V) -> OpAttrs {
    let mut set = attrs([("shape", shape)]);
    set.set(name, value).unwrap();
    set
}

#[test]
fn tensors_are_made_of_attributes() {
    let bed = TestBed::new();
    let dense = |set: &OpAttrs| {
        bed.one("tfrt_test.create_dense_tensor", (), set)
            .unwrap()
            .to_string()
    };
    assert_eq!(
        dense(&shaped(&[2, 3], "values", [2_i32])),
        "DenseHostTensor dtype = i32, shape = [2, 3], values = [2, 2, 2, 2, 2, 2]"
    );
    assert_eq!(
        dense(&shaped(&[1, 3], "values", [1.0_f32, 2.0, 3.0])),
        "DenseHostTensor dtype = f32, shape = [1, 3], values = [1.000000e+00, 2.000000e+00, 3.000000e+00]"
    );
    assert_eq!(
        dense(&shaped(&[1], "values", [Bool::from(true)])),
        "DenseHostTensor dtype = i1, shape = [1], values = [1]"
    );
    assert_eq!(
        dense(&shaped(&[0], "values", [1_u8])),
        "DenseHostTensor dtype = u8, shape = [0], values = []"
    );
    let refused = |set: &OpAttrs| bed.refusal("tfrt_test.create_dense_tensor", (), set);
    assert_eq!(
        refused(&none()),
        "tfrt_test.create_dense_tensor must have 'shape' attribute"
    );
    assert_eq!(
        refused(&attrs([("shape", [2_i64])])),
        "tfrt_test.create_dense_tensor must have 'values' attribute"
    );
    assert!(
        refused(&shaped(&[3], "values", [1_i32, 2]))
            .starts_with("size of 'values' must either be 1 or match num of elements.")
    );
    assert!(
        refused(&shaped(&[3], "values", 1_i32))
            .starts_with("'values' attribute should be an array of values")
    );
    assert!(refused(&shaped(&[-1], "values", [1_i32])).contains("the extent of dimension 0 is -1"));
    assert!(
        refused(&shaped(&[1 << 40, 1 << 40], "values", [1_i32]))
            .contains("does not fit any memory")
    );

    let scalar = bed
        .one(
            "tfrt_test.create_from_scalar",
            (),
            &shaped(&[2, 3], "value", 1_i32),
        )
        .unwrap();
    assert_eq!(
        scalar.to_string(),
        "ScalarHostTensor dtype = i32, shape = [2, 3], value = 1"
    );
    let refused = |set: &OpAttrs| bed.refusal("tfrt_test.create_from_scalar", (), set);
    assert_eq!(
        refused(&attrs([("shape", [2_i64, 3])])),
        "tfrt_test.create_from_scalar must have 'value' attribute"
    );
    assert_eq!(
        refused(&shaped(&[1], "value", [1_i32])),
        "tfrt_test.create_from_scalar must have 'value' attribute"
    );
    assert_eq!(
        refused(&attrs([("value", 1_i32)])),
        "tfrt_test.create_from_scalar must have 'shape' attribute"
    );
    assert_eq!(
        refused(&shaped(&[1], "value", "text")),
        "tfrt_test.create_from_scalar unsupported dtype"
    );
}

#[test]
fn sparse_tensors_are_made_and_added() {
    let bed = TestBed::new();
    let (indices, values) = (
        bed.dense(&[2, 2], &[0_i64, 0, 1, 2]),
        bed.dense(&[2], &[1_i32, 1]),
    );
    let name = "tfrt_test.create_coo_tensor";
    let sparse = bed
        .one(name, [&indices, &values], &attrs([("shape", [2_i64, 3])]))
        .unwrap();
    assert_eq!(
        sparse.to_string().trim_end(),
        "CooHostTensor dtype = i32, shape = [2, 3], indices = [0, 0, 1, 2], values = [1, 1]"
    );
    let sum = bed
        .one("tfrt_test.add", [&sparse, &sparse], &none())
        .unwrap();
    assert_eq!(
        sum.to_string(),
        "DenseHostTensor dtype = i32, shape = [2, 3], values = [2, 0, 0, 0, 0, 2]"
    );
    let mixed = bed
        .one(
            "tfrt_test.add",
            [&sparse, &bed.scalar(&[2, 3], 1_i32)],
            &none(),
        )
        .unwrap();
    assert_eq!(elements::<i32>(&mixed), [2, 1, 1, 1, 1, 2]);
    let refused = |x, y, shape: &[i64]| bed.refusal(name, [x, y], &attrs([("shape", shape)]));
    assert!(
        refused(&values, &values, &[2, 3])
            .starts_with("tfrt_test.create_coo_tensor indices input must be rank 2")
    );
    assert!(
        refused(&indices, &indices, &[2, 3])
            .starts_with("tfrt_test.create_coo_tensor values input must be rank 1")
    );
    assert!(refused(&indices, &values, &[2]).starts_with(
        "each test.create_coo_tensor index must have the same size as shape attribute"
    ));
    assert!(refused(&indices, &values, &[1, 3]).contains("value 1 is at index 1 of dimension 0"));
    assert_eq!(
        bed.refusal(name, [&indices, &values], &none()),
        "tfrt_test.create_coo_tensor must have 'shape' attribute"
    );
}

#[test]
fn sums_are_made_of_values_and_dense_tensors() {
    let bed = TestBed::new();
    let (value, dense) = (bed.scalar(&[2, 3], 1_i32), bed.dense(&[2, 3], &[2_i32; 6]));
    let twice = bed.one("tfrt_test.add", [&value, &value], &none()).unwrap();
    assert_eq!(
        twice.to_string(),
        "ScalarHostTensor dtype = i32, shape = [2, 3], value = 2"
    );
    for name in [
        "tfrt_test.add",
        "tfrt_test.add.denseonly",
        "tfrt_test.add.denseonly2",
        "tfrt_test.add.denseonly3",
    ] {
        let sum = bed.one(name, [&value, &dense], &none()).unwrap();
        assert_eq!(
            sum.to_string(),
            "DenseHostTensor dtype = i32, shape = [2, 3], values = [3, 3, 3, 3, 3, 3]"
        );
        let other = bed.dense(&[3], &[1_i32; 3]);
        assert_eq!(
            bed.refusal(name, [&dense, &other], &none()),
            "arguments of test.add must have same shape: [2, 3] and [3]"
        );
        let other = bed.dense(&[2, 3], &[1_i64; 6]);
        assert!(
            bed.refusal(name, [&dense, &other], &none())
                .starts_with("incompatible dtypes for test.add")
        );
        let empty = bed.dense::<f32>(&[0], &[]);
        assert_eq!(
            extents(&bed.one(name, [&empty, &empty], &none()).unwrap()),
            [0]
        );
    }
    let twice = bed
        .one("tfrt_test.add.denseonly", [&value, &value], &none())
        .unwrap();
    assert_eq!(elements::<i32>(&twice), [2; 6]);
}

#[test]
fn small_networks_are_made_of_them() {
    let bed = TestBed::new();
    let a = bed.dense(&[1, 4], &[1_i32, 0, 2, 0]);
    let twice = bed.one("tfrt_test.add", [&a, &a], &none()).unwrap();
    let same = bed.one("tfrt_test.equal", [&a, &twice], &none()).unwrap();
    assert_eq!(
        same.to_string(),
        "DenseHostTensor dtype = i32, shape = [1, 4], values = [0, 1, 0, 1]"
    );
    let largest = bed
        .one("tfrt_test.argmax", [&a], &attrs([("axis", 1_i32)]))
        .unwrap();
    assert_eq!(
        largest.to_string(),
        "DenseHostTensor dtype = i32, shape = [1], values = [2]"
    );
    let mean = bed
        .one(
            "tfrt_test.reduce_mean",
            [&largest],
            &attrs([("axis", 0_i32)]),
        )
        .unwrap();
    assert_eq!(
        mean.to_string(),
        "DenseHostTensor dtype = i32, shape = [], values = [2]"
    );
    let matrix = bed.one(
        "tfrt_test.broadcast",
        [&bed.dense(&[2], &[1_i32, 2])],
        &attrs([("shape", [2_i64, 2])]),
    );
    assert_eq!(elements::<i32>(&matrix.unwrap()), [1, 2, 1, 2]);

    let x = bed.dense(&[1, 1], &[-1.0_f32]);
    let half = bed
        .one("tfrt_test.cast", [&x], &attrs([("type", "f16")]))
        .unwrap();
    assert_eq!(half.dtype(), Some(DType::F16));
    let half = bed.one("tfrt_test.relu", [half], &none()).unwrap();
    assert_eq!(
        (half.to_string(), elements::<F16>(&half)),
        (
            "DenseHostTensor dtype = f16, shape = [1, 1], values = [fp16(0)]".to_owned(),
            vec![F16(0)]
        )
    );
    let wide = bed
        .one("tfrt_test.cast", [&half], &attrs([("type", "f32")]))
        .unwrap();
    assert_eq!(elements::<f32>(&wide), [0.0]);

    let odd = bed
        .one(
            "tfrt_test.odd_collector",
            [&bed.dense(&[5], &[1_i32, 2, 3, 4, -5])],
            &none(),
        )
        .unwrap();
    assert_eq!(
        odd.to_string(),
        "DenseHostTensor dtype = i32, shape = [3], values = [1, 3, -5]"
    );
}

#[test]
fn wrong_uses_are_told_as_the_original_tells_them() {
    let bed = TestBed::new();
    let (x, matrix) = (
        bed.dense(&[2], &[1_i32, 2]),
        bed.dense(&[2, 2], &[1_i32; 4]),
    );
    let axis = |axis: i32| attrs([("axis", axis)]);
    assert_eq!(
        bed.refusal("tfrt_test.argmax", [&matrix], &axis(2)),
        "axis must less than input rank: 2 of 2"
    );
    assert_eq!(
        bed.refusal("tfrt_test.argmax", [&matrix], &axis(0)),
        "unsupported axis for argmax: 0, expected 1"
    );
    assert_eq!(
        bed.refusal("tfrt_test.reduce_mean", [&matrix], &axis(1)),
        "unsupported axis for reduce_mean: 1, expected 0"
    );
    assert_eq!(
        bed.refusal("tfrt_test.reduce_mean", [&matrix], &none()),
        "tfrt_test.reduce_mean must have 'axis' attribute"
    );
    let shape = |shape: &[i64]| attrs([("shape", shape)]);
    assert_eq!(
        bed.refusal("tfrt_test.broadcast", [&x], &shape(&[2])),
        "result shape must be 2 dimensional (for now), found [2]"
    );
    assert_eq!(
        bed.refusal("tfrt_test.broadcast", [&x], &shape(&[2, 3])),
        "input dimension and target shape mismatch: [2] and [2, 3]"
    );
    assert_eq!(
        bed.refusal("tfrt_test.cast", [&x], &attrs([("type", "i8")])),
        "only casting to f32/f16 is supported, found 'i8'"
    );
    assert_eq!(
        bed.refusal("tfrt_test.odd_collector", [&matrix], &none()),
        "expected a 1D tensor input, found shape [2, 2]"
    );
    let wide = bed.dense(&[1], &[1_i64]);
    assert_eq!(
        bed.refusal("tfrt_test.odd_collector", [&wide], &none()),
        "expected a i32 element type, found i64"
    );
    assert!(
        bed.refusal("tfrt_test.equal", [&x, &wide], &none())
            .starts_with("incompatible dtypes for element-wise op")
    );
    assert!(
        bed.refusal("tfrt_test.equal", [&x, &matrix], &none())
            .starts_with("arguments to element-wise op must have identical shapes")
    );
    let strings =
        StringHostTensor::new(TensorShape::new(&[1]).unwrap(), vec![b"string".to_vec()]).unwrap();
    let strings = bed.runtime.handle(strings);
    assert_eq!(
        bed.refusal("tfrt_test.identity_dense_only", [&strings], &none()),
        "Cannot implictly convert StringHost to DenseHost: input 0 of tfrt_test.identity_dense_only"
    );
    let same = bed.one("tfrt_test.identity", [&strings], &none()).unwrap();
    assert_eq!(
        same.tensor().unwrap().unwrap().format(),
        TensorFormat::StringHost
    );
}

#[test]
fn tensors_are_printed() {
    let bed = TestBed::new();
    let (x, value) = (bed.dense(&[2], &[1_i32, 2]), bed.scalar(&[2], 1_i32));
    let strings =
        StringHostTensor::new(TensorShape::new(&[1]).unwrap(), vec![b"string".to_vec()]).unwrap();
    let strings = bed.runtime.handle(strings);
    for (name, tensor) in [
        ("tfrt_test.print", &x),
        ("tfrt_test.print", &value),
        ("tfrt_test.print", &strings),
        ("tfrt_test.print_address", &x),
        ("tfrt_test.print_address", &value),
    ] {
        assert!(bed.all(name, [tensor], &none()).unwrap().is_empty());
    }
    let place = address(&x);
    assert_eq!(
        bed.printed.printed(),
        format!(
            "DenseHostTensor dtype = i32, shape = [2], values = [1, 2]\n\
             ScalarHostTensor dtype = i32, shape = [2], value = 1\n\
             StringHostTensor shape = [1], values = [\"string\"]\n\
             DenseHostTensor: buffer={place:#x}\n\
             Unsupported tensor type\n"
        )
    );
}

#[test]
fn tensors_come_later_or_never() {
    let bed = TestBed::new();
    let value = bed.scalar(&[2, 2], 1_i32);
    for (name, knows_metadata) in [
        ("tfrt_test.async.noop", true),
        ("tfrt_test.async.noop_no_md", false),
    ] {
        let op = bed.runtime.op(name, &bed.runtime.cpu()).unwrap();
        let later = op.call_one(&bed.context, [&value], &none()).unwrap();
        assert!(!knows_metadata || later.metadata().is_some());
        let twice = bed.one("tfrt_test.add", [&later, &later], &none()).unwrap();
        assert_eq!(
            twice.to_string(),
            "ScalarHostTensor dtype = i32, shape = [2, 2], value = 2"
        );
    }
    let op = bed
        .runtime
        .op("tfrt_test.error.tensor", &bed.runtime.cpu())
        .unwrap();
    let failed = op.call_one(&bed.context, [&value], &none()).unwrap();
    assert_eq!(failed.metadata().unwrap().to_string(), "i32 [2, 2]");
    let error = failed.error().unwrap();
    assert_eq!(
        (error.message(), error.code()),
        (
            "error from test.error.tensor implementation",
            ErrorCode::Unknown
        )
    );
    let sum = bed.refusal("tfrt_test.add", [&failed, &failed], &none());
    assert_eq!(sum, "error from test.error.tensor implementation");

    let (x, y) = (bed.dense(&[1], &[1_i32]), bed.dense(&[2], &[1_i32, 2]));
    for name in ["tfrt_test.test_optional_arg", "tfrt_test.test_variadic_arg"] {
        assert_eq!(extents(&bed.one(name, [&x], &none()).unwrap()), [1]);
        assert_eq!(extents(&bed.one(name, [&x, &y], &none()).unwrap()), [2]);
    }
    assert_eq!(
        bed.refusal("tfrt_test.test_optional_arg", [&x, &y, &y], &none()),
        "tfrt_test.test_optional_arg expects 1 to 2 inputs, found 3"
    );
    assert_eq!(
        extents(
            &bed.one("tfrt_test.test_variadic_arg", [&x, &y, &x], &none())
                .unwrap()
        ),
        [2]
    );
}
