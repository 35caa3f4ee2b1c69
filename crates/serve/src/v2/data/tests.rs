use super::*;
use tfrt_tensor::TensorShape;

fn read(dtype: DType, extents: &[usize], json: &str) -> Result<Tensor, String> {
    let shape = TensorShape::new(extents).unwrap();
    let n_elements = shape.n_elements().unwrap();
    let metadata = TensorMetadata::new(dtype, shape);
    parse("x", metadata, n_elements, json).map_err(|refusal| refusal.message())
}

#[test]
fn lists_are_read_flat_and_nested() {
    for json in [
        "[1, 2.5, -3, 1e2]",
        "[[1, 2.5], [-3, 100]]",
        "[[[1], [2.5, -3.0]], 100]",
    ] {
        let tensor = read(DType::F32, &[2, 2], json).unwrap();
        let reading = tensor.as_dense().unwrap().read().unwrap();
        assert_eq!(reading.elements::<f32>().unwrap(), [1.0, 2.5, -3.0, 100.0]);
    }
}

#[test]
fn elements_of_other_types_are_refused_with_their_number() {
    for (dtype, json, message) in [
        (
            DType::I8,
            "[1, 300]",
            "input 'x': element 1 of `data`: expected an INT8, found 300",
        ),
        (
            DType::Ui8,
            "[1, -1]",
            "input 'x': element 1 of `data`: expected a UINT8, found -1",
        ),
        (
            DType::I64,
            "[1, 2.5]",
            "input 'x': element 1 of `data`: expected an INT64, found 2.5",
        ),
        (
            DType::F32,
            "[\"a\", 1]",
            "input 'x': element 0 of `data`: expected a number, found a string",
        ),
        (
            DType::F32,
            "[1, null]",
            "input 'x': element 1 of `data`: expected a number, found null",
        ),
        (
            DType::F32,
            "[1, {}]",
            "input 'x': element 1 of `data`: expected a number, found an object",
        ),
        (
            DType::I1,
            "[true, 1]",
            "input 'x': element 1 of `data`: expected true or false, found 1",
        ),
        (
            DType::String,
            "[\"a\", 2]",
            "input 'x': element 1 of `data`: expected a string, found 2",
        ),
        (
            DType::F32,
            "[1]",
            "input 'x': expected 2 elements by its shape, found 1 in `data`",
        ),
        (
            DType::F32,
            "[1, 2, 3]",
            "input 'x': expected 2 elements by its shape, found more in `data`",
        ),
        (
            DType::F16,
            "[1, 2]",
            "input 'x': elements of FP16 have no form in JSON; send them as binary",
        ),
    ] {
        assert_eq!(read(dtype, &[2], json).unwrap_err(), message, "{json}");
    }
}

#[test]
fn numbers_that_json_lacks_are_read_as_python_writes_them() {
    let json = br#"{"N\"aN": [NaN, -Infinity, Infinity, "NaN"]}"#;
    let repaired = with_non_finite_as_strings(json).unwrap();
    let expected = r#"{"N\"aN": ["NaN", "-Infinity", "Infinity", "NaN"]}"#;
    assert_eq!(String::from_utf8(repaired).unwrap(), expected);
    assert_eq!(with_non_finite_as_strings(br#"["NaN \" Infinity"]"#), None);
    assert_eq!(with_non_finite_as_strings(br#"["#), None);
    assert_eq!(with_non_finite_as_strings(br#"N\"#), None);
    let tensor = read(DType::F64, &[2], r#"["NaN", "-Infinity"]"#).unwrap();
    let reading = tensor.as_dense().unwrap().read().unwrap();
    let elements = reading.elements::<f64>().unwrap();
    assert!(elements[0].is_nan() && elements[1] == f64::NEG_INFINITY);
}
