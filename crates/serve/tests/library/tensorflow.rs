//! TensorFlow Serving's calls of gRPC.

use std::collections::HashMap;
use std::sync::Arc;

use prost::Message;
use tfrt_serve::{Limits, Server};
use tfrt_tensor::DType;

use crate::grpc::{Client, Ended, framed};
use crate::support::{Same, double, start};

#[derive(Clone, PartialEq, Message)]
struct Spec {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    version: Option<Number>,
    #[prost(string, tag = "3")]
    signature: String,
    #[prost(string, tag = "4")]
    label: String,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(int64, tag = "1")]
    value: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Predict {
    #[prost(message, optional, tag = "1")]
    spec: Option<Spec>,
    #[prost(map = "string, message", tag = "2")]
    inputs: HashMap<String, Tensor>,
    #[prost(string, repeated, tag = "3")]
    filter: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Predicted {
    #[prost(map = "string, message", tag = "1")]
    outputs: HashMap<String, Tensor>,
    #[prost(message, optional, tag = "2")]
    spec: Option<Spec>,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
    #[prost(bytes = "vec", tag = "4")]
    content: Vec<u8>,
    #[prost(float, repeated, tag = "5")]
    floats: Vec<f32>,
    #[prost(int32, repeated, tag = "7")]
    ints: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    strings: Vec<Vec<u8>>,
    #[prost(int32, repeated, tag = "13")]
    halves: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Shape {
    #[prost(message, repeated, tag = "2")]
    dims: Vec<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct Asked {
    #[prost(message, optional, tag = "1")]
    spec: Option<Spec>,
    #[prost(string, repeated, tag = "2")]
    fields: Vec<String>,
}

const FLOAT: i32 = 1;
const INT8: i32 = 6;
const STRING: i32 = 7;
const HALF: i32 = 19;

fn spec(name: &str) -> Option<Spec> {
    let name = name.to_owned();
    Some(Spec {
        name,
        ..Spec::default()
    })
}

fn tensor(dtype: i32, extents: &[i64]) -> Tensor {
    let dims = extents.iter().map(|value| Number { value: *value });
    Tensor {
        dtype,
        shape: Some(Shape {
            dims: dims.collect(),
        }),
        ..Tensor::default()
    }
}

fn predict(x: Tensor) -> Predict {
    Predict {
        spec: spec("double"),
        inputs: HashMap::from([("x".to_owned(), x)]),
        filter: Vec::new(),
    }
}

fn rows() -> Tensor {
    Tensor {
        floats: vec![1.0, 2.0, 3.0, 4.5],
        ..tensor(FLOAT, &[2, 2])
    }
}

fn call(server: &Server, request: &Predict) -> Ended {
    let method = "tensorflow.serving.PredictionService/Predict";
    Client::new(server).call(method, framed(request), None)
}

#[test]
fn tensors_are_taken_as_lists_and_as_bytes() {
    let server = double();
    let bytes = Tensor {
        content: [1.0_f32, 2.0, 3.0, 4.5].map(f32::to_le_bytes).concat(),
        ..tensor(FLOAT, &[2, 2])
    };
    for x in [rows(), bytes] {
        let answer: Predicted = call(&server, &predict(x)).only();
        // Clients look for the elements in the list.
        assert_eq!(answer.outputs["y"].floats, [2.0, 4.0, 6.0, 9.0]);
        assert_eq!(answer.outputs["y"].shape, rows().shape);
        let spec = answer.spec.unwrap();
        assert_eq!(
            (&*spec.name, &*spec.signature),
            ("double", "serving_default")
        );
        assert_eq!(spec.version, Some(Number { value: 1 }));
    }
    // A list that is too short ends as its last element goes on.
    let filled = Tensor {
        floats: vec![1.0, 5.0],
        ..tensor(FLOAT, &[2, 2])
    };
    let answer: Predicted = call(&server, &predict(filled)).only();
    assert_eq!(answer.outputs["y"].floats, [2.0, 10.0, 10.0, 10.0]);
}

#[test]
fn elements_of_all_kinds_come_back_as_they_were() {
    let types = [("a", DType::I8), ("b", DType::F16), ("c", DType::String)];
    let server = start(
        vec![("same", Arc::new(Same::new(&types)))],
        Limits::default(),
    );
    let given = HashMap::from([
        (
            "a".to_owned(),
            Tensor {
                ints: vec![-128, 127],
                ..tensor(INT8, &[2])
            },
        ),
        (
            "b".to_owned(),
            Tensor {
                halves: vec![0x3c00, 0xfc00],
                ..tensor(HALF, &[1, 2])
            },
        ),
        (
            "c".to_owned(),
            Tensor {
                strings: vec![b"\xff".to_vec(), Vec::new()],
                ..tensor(STRING, &[2])
            },
        ),
    ]);
    let mut request = Predict {
        spec: spec("same"),
        inputs: given.clone(),
        filter: Vec::new(),
    };
    let answer: Predicted = call(&server, &request).only();
    assert_eq!(answer.outputs, given);
    request.filter = vec!["c".to_owned()];
    let answer: Predicted = call(&server, &request).only();
    assert_eq!(answer.outputs.keys().collect::<Vec<_>>(), ["c"]);
}

#[test]
fn mistakes_are_told() {
    let server = double();
    let mut none = predict(rows());
    none.spec = None;
    let mut other = predict(rows());
    other.spec = spec("other");
    let mut label = predict(rows());
    label.spec.as_mut().unwrap().label = "stable".to_owned();
    let mut signature = predict(rows());
    signature.spec.as_mut().unwrap().signature = "train".to_owned();
    let mut filter = predict(rows());
    filter.filter = vec!["z".to_owned()];
    let mut name = predict(rows());
    name.inputs = HashMap::from([("z".to_owned(), rows())]);
    let long = Tensor {
        floats: vec![0.0; 5],
        ..tensor(FLOAT, &[2, 2])
    };
    let (not_found, invalid) = (5, 3);
    for (request, code, expected) in [
        (none, invalid, "expected a `model_spec`"),
        (other, not_found, "'other' is not found"),
        (label, not_found, "label 'stable'"),
        (signature, invalid, "no signature 'train'"),
        (filter, invalid, "unexpected output 'z'"),
        (name, invalid, "unexpected input 'z'"),
        (
            predict(long),
            invalid,
            "expected 4 elements by its shape, found 5",
        ),
        (
            predict(tensor(INT8, &[2, 2])),
            invalid,
            "expected DT_FLOAT, found DT_INT8",
        ),
        (
            predict(tensor(99, &[2, 2])),
            invalid,
            "no type of the number 99",
        ),
        (predict(tensor(FLOAT, &[-1, 2])), invalid, "found -1"),
        // A few bytes that ask for a lot of memory.
        (
            predict(tensor(FLOAT, &[1 << 40, 2])),
            invalid,
            "more than the 67108864 bytes",
        ),
        (
            predict(tensor(FLOAT, &[1 << 62, 2])),
            invalid,
            "more than memory holds",
        ),
    ] {
        let ended = call(&server, &request);
        assert_eq!(ended.code, code, "{}", ended.message);
        assert!(ended.message.contains(expected), "{}", ended.message);
    }
}

#[test]
fn models_tell_their_signature_and_their_state() {
    let server = double();
    let asked = |fields: &[&str]| Asked {
        spec: spec("double"),
        fields: fields.iter().map(ToString::to_string).collect(),
    };
    let ask = |method: &str, asked: &Asked| {
        let method = format!("tensorflow.serving.{method}");
        Client::new(&server).call(&method, framed(asked), None)
    };
    let metadata = "PredictionService/GetModelMetadata";
    let ended = ask(metadata, &asked(&["signature_def"]));
    assert_eq!(ended.code, 0, "{}", ended.message);
    let text = String::from_utf8_lossy(&ended.messages[0]).into_owned();
    for part in [
        "type.googleapis.com/tensorflow.serving.SignatureDefMap",
        "serving_default",
        "tensorflow/serving/predict",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(ask(metadata, &asked(&["graph"])).code, 3);
    let ended = ask("ModelService/GetModelStatus", &asked(&[]));
    // Version 1, state 30, code 0.
    assert_eq!(&ended.messages[0][..], [10, 6, 8, 1, 16, 30, 26, 0]);
    for method in [
        "PredictionService/Classify",
        "PredictionService/Regress",
        "PredictionService/MultiInference",
        "ModelService/HandleReloadConfigRequest",
    ] {
        let ended = ask(method, &asked(&[]));
        assert_eq!(ended.code, 12, "{method}: {}", ended.message);
    }
}
