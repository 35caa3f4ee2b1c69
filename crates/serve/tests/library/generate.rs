//! Triton's generate extension: members of JSON for inputs and outputs, and answers as events.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tfrt_host::{AnyAsyncValue, Error, RequestContext};
use tfrt_serve::{Description, Dim, Limits, Place, Servable, TensorInfo};
use tfrt_tensor::{DType, Tensor};

use crate::support::{Client, Control, Same, double, post, start};

/// The floats `[N, 2]` of two rows, as the member of input `x`.
const ROWS: &str = r#"{"id": "a", "x": [1, 2, 3, 4.5]}"#;

/// A model that gives what it is given, with these inputs.
fn same(inputs: &[(&str, DType, &[Option<usize>])]) -> Arc<Same> {
    let dim = |extent: &Option<usize>| extent.map_or(Dim::Unknown, Dim::Fixed);
    let tensors: Vec<TensorInfo> = inputs
        .iter()
        .map(|(name, dtype, extents)| TensorInfo {
            name: (*name).to_owned(),
            dtype: *dtype,
            dims: Some(extents.iter().map(dim).collect()),
        })
        .collect();
    Arc::new(Same(Description {
        platform: "test".to_owned(),
        inputs: tensors.clone(),
        outputs: tensors,
    }))
}

/// A model whose calls fail with the shape that they are given.
struct Shape(Arc<Same>);

impl Shape {
    fn new(extents: &[Option<usize>]) -> Shape {
        Shape(same(&[("x", DType::F32, extents)]))
    }
}

impl Servable for Shape {
    fn description(&self) -> &Description {
        self.0.description()
    }

    fn call(
        &self,
        _: &Arc<RequestContext>,
        inputs: Vec<(String, Tensor)>,
        _: Place,
    ) -> Vec<AnyAsyncValue> {
        let extents: Vec<usize> = inputs[0].1.metadata().shape.extents().collect();
        let error = Error::invalid_argument(format!("{extents:?}"));
        vec![AnyAsyncValue::from_error(error)]
    }
}

#[test]
fn members_are_inputs_and_outputs_are_members() {
    let server = double();
    let mut client = Client::new(&server);
    let answer = client.post("/v2/models/double/generate", ROWS);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let expected = r#"{"id":"a","model_name":"double","model_version":"1","y":[2.0,4.0,6.0,9.0]}"#;
    assert_eq!(answer.text(), expected);
    let answer = client.post("/v2/models/double/versions/1/generate_stream", ROWS);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/event-stream; charset=utf-8"));
    assert_eq!(answer.text(), format!("data: {expected}\n\n"));
    // Without an `id`, or with an empty one, none comes back.
    for body in [
        r#"{"x": [1, NaN]}"#,
        r#"{"x": [1, NaN], "id": "", "parameters": {}}"#,
    ] {
        let answer = client.post("/v2/models/double/generate", body);
        let expected = r#"{"model_name":"double","model_version":"1","y":[2.0,NaN]}"#;
        assert_eq!(answer.text(), expected);
    }
    let metrics = client.get("/metrics");
    let line = "\nnv_inference_count{model=\"double\",version=\"1\"} 6\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

#[test]
fn values_take_the_shape_of_their_input() {
    let model = same(&[
        ("scalar", DType::I64, &[]),
        ("one", DType::String, &[None, None]),
        ("pairs", DType::F16, &[None, None, Some(2)]),
        ("fixed", DType::I1, &[Some(1), Some(3)]),
        ("none", DType::F32, &[None, Some(4)]),
    ]);
    let server = start(vec![("same", model)], Limits::default());
    let body = r#"{"scalar": -7, "one": "a\u00e9\n", "pairs": [1, 0.5, 65504, -2], "none": [], "stream": false,
        "parameters": {"fixed": [true, false, true], "temperature": 0.5, "stop": "x"}}"#;
    let mut client = Client::new(&server);
    let answer = client.post("/v2/models/same/generate", body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let expected = json!({
        "model_name": "same", "model_version": "1", "scalar": -7, "one": "a\u{e9}\n",
        "pairs": [1.0, 0.5, 65504.0, -2.0], "fixed": [true, false, true], "none": []
    });
    assert_eq!(answer.json(), expected);
}

#[test]
fn shapes_are_those_that_triton_makes() {
    let open = &[None, Some(2), None][..];
    for (extents, json, shape) in [
        (open, "[1, 2, 3, 4, 5, 6]", "[1, 2, 3]"),
        (open, "[]", "[1, 2, 0]"),
        (&[None, None], "5", "[1, 1]"),
        (&[None], "[5, 6]", "[2]"),
        (&[], "[5]", "[]"),
        (&[Some(1), Some(1)], "5", "[1, 1]"),
        (&[Some(0), Some(2)], "[]", "[0, 2]"),
    ] {
        let server = start(
            vec![("m", Arc::new(Shape::new(extents)))],
            Limits::default(),
        );
        let body = format!("{{\"x\": {json}}}");
        let answer = Client::new(&server).post("/v2/models/m/generate", body);
        assert_eq!(answer.error(), shape, "{extents:?} {json}");
    }
}

#[test]
fn mistakes_are_told() {
    let server = double();
    let mut client = Client::new(&server);
    for (body, message) in [
        ("", "expected one input, found 0"),
        ("{}", "expected one input, found 0"),
        (
            "[1]",
            "failed to parse the request JSON: invalid type: sequence, expected an object at line 1 column 0",
        ),
        (
            r#"{"x": [1, 2}"#,
            "failed to parse the request JSON: expected `,` or `]` at line 1 column 12",
        ),
        (
            r#"{"x": [1, "a"]}"#,
            "input 'x': element 1: expected a number, found a string",
        ),
        (
            r#"{"x": true}"#,
            "input 'x': element 0: expected a number, found true",
        ),
        (
            r#"{"x": {"a": 1}}"#,
            "input 'x': element 0: expected a number, found an object",
        ),
        (
            r#"{"x": [[1, 2]]}"#,
            "input 'x': element 0: expected a number, found a list",
        ),
        (
            r#"{"x": [1, 2, 3]}"#,
            "input 'x': the number of its elements is 3, which no tensor of shape [-1, 2] has",
        ),
        (
            r#"{"x": 1}"#,
            "input 'x': the number of its elements is 1, which no tensor of shape [-1, 2] has",
        ),
        (r#"{"x": [1, 2], "x": [1, 2]}"#, "input 'x' is given twice"),
        (
            r#"{"x": [1, 2], "parameters": {"x": [1, 2]}}"#,
            "input 'x' is given twice",
        ),
        (
            r#"{"x": [1, 2], "timeout": 1, "parameters": {"timeout": 1}}"#,
            "'timeout' is given twice",
        ),
        (
            r#"{"x": [1, 2], "z": [1, 2]}"#,
            "'z' is no input of model 'double', and no parameter: these are strings, numbers, true or false",
        ),
        (
            r#"{"x": [1, 2], "parameters": {"nested": {"twice": 1}}}"#,
            "'nested' is no input of model 'double', and no parameter: these are strings, numbers, true or false",
        ),
        (
            r#"{"x": [1, 2], "parameters": 1}"#,
            "expected an object as `parameters`",
        ),
        (r#"{"x": [1, 2], "id": 7}"#, "expected a string as `id`"),
        (
            r#"{"x": [1, 2], "timeout": "soon"}"#,
            "parameter `timeout` was expected to be a number of microseconds",
        ),
    ] {
        for way in ["generate", "generate_stream"] {
            let answer = client.post(&format!("/v2/models/double/{way}"), body);
            assert_eq!(answer.status, 400, "{body}: {}", answer.text());
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.error(), message, "{body}");
        }
    }
    for way in ["generate", "generate_stream"] {
        let answer = client.post(&format!("/v2/models/none/{way}"), ROWS);
        assert_eq!(answer.status, 404, "{}", answer.text());
        assert_eq!(client.get(&format!("/v2/models/double/{way}")).status, 405);
    }
    let answer = client.post(
        "/v2/models/double/generate",
        format!("{{\"x\": {}", "[".repeat(1000)),
    );
    assert_eq!(answer.status, 400, "{}", answer.text());
}

#[test]
fn requests_end_as_those_of_infer_do() {
    for way in ["generate", "generate_stream"] {
        let path = format!("/v2/models/slow/{way}");
        let control = Control::new();
        let limits = Limits {
            max_in_flight: 1,
            deadline: Duration::from_secs(600),
            ..Limits::default()
        };
        let server = start(vec![("slow", control.model.clone())], limits);
        let mut client = Client::new(&server);
        client.send(post(&path, "", ROWS));
        control.wait_for_call();
        let answer = Client::new(&server).post(&path, ROWS);
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        drop(client);
        assert_eq!(control.wait_for_cancellation(), "the client has gone");
        let mut client = Client::new(&server);
        // The place of the client that has gone is free a little later.
        let asked = ROWS.replace("\"id\"", "\"timeout\": 30000, \"id\"");
        let answer = loop {
            let answer = client.post(&path, &asked);
            if answer.status != 503 {
                break answer;
            }
        };
        control.wait_for_call();
        assert_eq!(answer.status, 504, "{}", answer.text());
        let (kind, prefix) = match way {
            "generate" => ("application/json", "{\"error\":\"Deadline exceeded"),
            _ => (
                "text/event-stream; charset=utf-8",
                "data: {\"error\":\"Deadline exceeded",
            ),
        };
        assert_eq!(answer.header("content-type"), Some(kind));
        assert!(answer.text().starts_with(prefix), "{}", answer.text());
    }
}
