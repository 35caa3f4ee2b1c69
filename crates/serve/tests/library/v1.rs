//! TensorFlow Serving's protocol over HTTP.

use std::sync::Arc;

use serde_json::json;
use tfrt_serve::{Limits, Servable};
use tfrt_tensor::DType;

use crate::support::{Client, Same, double, start};

#[test]
fn models_tell_their_status_and_their_signature() {
    let server = double();
    let mut client = Client::new(&server);
    let status = json!({"model_version_status": [
        {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    ]});
    assert_eq!(client.get("/v1/models/double").json(), status);
    assert_eq!(client.get("/v1/models/double/versions/1").json(), status);
    assert_eq!(client.get("/v1/models/double/versions/2").status, 404);
    let metadata = client.get("/v1/models/double/metadata").json();
    let signature = &metadata["metadata"]["signature_def"]["signature_def"]["serving_default"];
    let x = json!({"dtype": "DT_FLOAT", "name": "x", "tensor_shape": {
        "dim": [{"size": "-1", "name": "N"}, {"size": "2", "name": ""}], "unknown_rank": false
    }});
    assert_eq!(signature["inputs"]["x"], x);
    assert_eq!(client.post("/v1/models/double:classify", "{}").status, 501);
}

#[test]
fn rows_are_answered_by_rows_and_columns_by_columns() {
    let server = double();
    let mut client = Client::new(&server);
    for (request, answer) in [
        (
            r#"{"instances": [[1, 2], [3, 4.5]]}"#,
            r#"{"predictions":[[2.0,4.0],[6.0,9.0]]}"#,
        ),
        (
            r#"{"instances": [{"x": [1, 2]}, {"x": [3, 4]}]}"#,
            r#"{"predictions":[[2.0,4.0],[6.0,8.0]]}"#,
        ),
        (
            r#"{"signature_name": "serving_default", "inputs": {"x": [[1, 2]]}}"#,
            r#"{"outputs":[[2.0,4.0]]}"#,
        ),
        (r#"{"inputs": [[1, NaN]]}"#, r#"{"outputs":[[2.0,NaN]]}"#),
    ] {
        let found = client.post("/v1/models/double:predict", request);
        assert_eq!((found.status, found.text()), (200, answer), "{request}");
    }
}

#[test]
fn several_inputs_are_objects_and_bytes_are_base_64() {
    let same = Same::new(&[("n", DType::I64), ("s_bytes", DType::String)]);
    let server = start(vec![("same", Arc::new(same))], Limits::default());
    let mut client = Client::new(&server);
    let rows = r#"{"instances": [{"n": 1, "s_bytes": {"b64": "/w=="}}, {"s_bytes": "b", "n": 2}]}"#;
    let found = client.post("/v1/models/same/versions/1:predict", rows);
    let expected =
        r#"{"predictions":[{"n":1,"s_bytes":{"b64":"/w=="}},{"n":2,"s_bytes":{"b64":"Yg=="}}]}"#;
    assert_eq!(found.text(), expected);
    let columns = r#"{"inputs": {"n": [[1], [2], [3]], "s_bytes": "b"}}"#;
    let found = client.post("/v1/models/same:predict", columns);
    assert_eq!(
        found.text(),
        r#"{"outputs":{"n":[[1],[2],[3]],"s_bytes":{"b64":"Yg=="}}}"#
    );
}

#[test]
fn halves_are_numbers_that_are_rounded_once() {
    let same = Same::new(&[("h", DType::F16), ("b", DType::Bf16)]);
    let server = start(vec![("same", Arc::new(same))], Limits::default());
    let mut client = Client::new(&server);
    // As numpy and ml_dtypes round them. 1.00048828125 lies between two halves, and what is a bit more in an `f64` is
    // nearer to the upper one; rounded to an `f32` before, it would go down.
    let columns = r#"{"inputs": {"h": [0.1, 1.0004882812500002, 65504, 1e5, 7, NaN], "b": [0.1, -3e38, Infinity]}}"#;
    let found = client.post("/v1/models/same:predict", columns);
    let expected = r#"{"outputs":{"h":[0.099975586,1.0009766,65504.0,Infinity,7.0,NaN],"b":[0.100097656,-3.0040553e+38,Infinity]}}"#;
    assert_eq!(found.text(), expected);
    let wrong = client.post(
        "/v1/models/same:predict",
        r#"{"instances": [{"h": "x", "b": 1}]}"#,
    );
    assert_eq!(
        (wrong.status, &*wrong.error()),
        (400, "input 'h': expected a number, found a string")
    );
}

#[test]
fn mistakes_are_told() {
    let same = Same::new(&[("n", DType::I64), ("s", DType::String)]);
    let truth = Same::new(&[("b", DType::I1)]);
    let models: Vec<(_, Arc<dyn Servable>)> =
        vec![("same", Arc::new(same)), ("truth", Arc::new(truth))];
    let server = start(models, Limits::default());
    let mut client = Client::new(&server);
    let found = client.post("/v1/models/truth:predict", r#"{"instances": [true, 1]}"#);
    assert_eq!(
        (found.status, &*found.error()),
        (400, "input 'b': expected true or false, found 1")
    );
    for (request, message) in [
        (
            "{}",
            "expected `instances`, which are rows, or `inputs`, which are columns, found neither",
        ),
        (
            r#"{"instances": [1], "inputs": 1}"#,
            "expected `instances` or `inputs`, found both",
        ),
        (r#"{"instances": []}"#, "`instances` has no rows"),
        (
            r#"{"instances": 5}"#,
            "invalid type: integer `5`, expected a list of rows in `instances`",
        ),
        (
            r#"{"instances": [5]}"#,
            "expected an object with a value for each of 2 inputs",
        ),
        (
            r#"{"instances": [{"n": 1, "q": 1}]}"#,
            "unexpected input 'q': the model takes 'n', 's'",
        ),
        (
            r#"{"instances": [{"n": 1, "s": "a"}, {"n": 1}]}"#,
            "rows have the same inputs, but row 1 or one before it has no 's'",
        ),
        (
            r#"{"inputs": {"n": [[1, 2], [3]], "s": "a"}}"#,
            "input 'n': lists of one depth have the same length, but at depth 1 there are 2 and 1",
        ),
        (
            r#"{"inputs": {"n": [1, [2]], "s": "a"}}"#,
            "input 'n': elements are as deep in lists as the others, but are 1 and 2 deep",
        ),
        (
            r#"{"inputs": {"n": 1.5, "s": "a"}}"#,
            "input 'n': expected an INT64, found 1.5",
        ),
        (
            r#"{"inputs": {"n": 1, "s": {"b64": "?"}}}"#,
            "input 's': `b64` is no base 64",
        ),
        (
            r#"{"inputs": {"n": 1, "s": {"b65": "?"}}}"#,
            "input 's': expected an element, found an object without `b64`",
        ),
        (
            r#"{"inputs": {"n": 1, "n": 2}}"#,
            "input 'n' is given twice",
        ),
        (
            r#"{"signature_name": "other", "inputs": 1}"#,
            "there is no signature 'other': the model has 'serving_default'",
        ),
    ] {
        let found = client.post("/v1/models/same:predict", request);
        assert_eq!(found.status, 400, "{request}: {}", found.text());
        assert!(
            found.error().starts_with(message),
            "{request}: {}",
            found.error()
        );
    }
    let deep = format!("{{\"inputs\": {}", "[".repeat(100_000));
    assert_eq!(client.post("/v1/models/same:predict", deep).status, 400);
}
