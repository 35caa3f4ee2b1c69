//! Good requests over HTTP, and what is answered.

use std::sync::Arc;

use serde_json::json;
use tfrt_serve::{Limits, Source, VersionPolicy};
use tfrt_tensor::DType;

use crate::support::{Client, Folder, ROWS, Same, double, floats, post, repository, serve, start};

#[test]
fn server_and_models_describe_themselves() {
    let server = double();
    let mut client = Client::new(&server);
    for what in ["live", "ready"] {
        let answer = client.get(&format!("/v2/health/{what}"));
        assert_eq!((answer.status, answer.json()), (200, json!({what: true})));
    }
    for path in ["/metrics", "/monitoring/prometheus/metrics"] {
        let answer = client.get(path);
        assert!(
            answer
                .text()
                .contains("\nnv_inference_count{model=\"double\",version=\"1\"} 0\n"),
            "{path}"
        );
    }
    let about = client.get("/v2").json();
    assert_eq!(about["name"], "tfrt");
    assert!(
        about["extensions"]
            .as_array()
            .unwrap()
            .contains(&json!("binary_tensor_data"))
    );
    assert_eq!(
        client.get("/v2/models/double/ready").json(),
        json!({"name": "double", "ready": true})
    );
    let tensor = |name| json!({"name": name, "datatype": "FP32", "shape": [-1, 2]});
    let model = json!({
        "name": "double", "versions": ["1"], "platform": "test", "inputs": [tensor("x")], "outputs": [tensor("y")]
    });
    assert_eq!(client.get("/v2/models/double").json(), model);
    assert_eq!(client.get("/v2/models/double/versions/1").json(), model);
    let config = client.get("/v2/models/double/config").json();
    assert_eq!(
        config["input"],
        json!([{"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 2]}])
    );
}

#[test]
fn rows_in_json_are_answered_in_json() {
    let server = double();
    let mut client = Client::new(&server);
    let answer = client.post("/v2/models/double/infer", ROWS);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let expected = r#"{"id":"a","model_name":"double","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[2,2],"data":[2.0,4.0,6.0,9.0]}]}"#;
    assert_eq!(answer.text(), expected);
    let flat = r#"{"inputs": [{"data": [1, NaN], "name": "x", "shape": [1, 2], "datatype": "FP32"}],
        "outputs": [{"name": "y"}], "unknown": {"a": [1]}}"#;
    let answer = client.post("/v2/models/double/versions/1/infer", flat);
    assert!(
        answer.text().contains(r#""data":[2.0,NaN]"#),
        "{}",
        answer.text()
    );
}

#[test]
fn elements_go_both_ways_as_bytes() {
    let server = double();
    let mut client = Client::new(&server);
    // Texts of all lengths, so that elements begin at all places.
    for n_spaces in 0..8 {
        let json = format!(
            r#"{{"inputs": [{{"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {{"binary_data_size": 8}}}}],
            "parameters": {{"binary_data_output": true}}}}{}"#,
            " ".repeat(n_spaces)
        );
        let headers = format!("inference-header-content-length: {}\r\n", json.len());
        let body = [json.as_bytes(), &floats(&[1.5, -2.0])].concat();
        let answer = client
            .send(post("/v2/models/double/infer", &headers, body))
            .answer();
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        let length: usize = answer
            .header("inference-header-content-length")
            .unwrap()
            .parse()
            .unwrap();
        let (json, bytes) = answer.body.split_at(length);
        let json: serde_json::Value = serde_json::from_slice(json).unwrap();
        assert_eq!(
            json["outputs"][0]["parameters"],
            json!({"binary_data_size": 8})
        );
        assert_eq!(bytes, floats(&[3.0, -4.0]));
    }
}

#[test]
fn body_without_json_is_the_only_input() {
    let server = double();
    let mut client = Client::new(&server);
    let raw = |elements: &[f32]| {
        post(
            "/v2/models/double/infer",
            "inference-header-content-length: 0\r\n",
            floats(elements),
        )
    };
    let answer = client.send(raw(&[1.0, 2.0, 3.0, 4.0])).answer();
    assert!(answer.body.ends_with(&floats(&[2.0, 4.0, 6.0, 8.0])));
    let answer = client.send(raw(&[1.0, 2.0, 3.0])).answer();
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.error(),
        "input 'x': FP32 of shape [1, 2] has 8 bytes, found 12"
    );
}

#[test]
fn strings_and_halves_come_back_as_they_were() {
    let same = Same::new(&[("s", DType::String), ("h", DType::F16), ("b", DType::I1)]);
    let server = start(vec![("same", Arc::new(same))], Limits::default());
    let mut client = Client::new(&server);
    let json = r#"{"inputs": [
        {"name": "s", "shape": [2], "datatype": "BYTES", "data": ["a\u00e9", ""]},
        {"name": "h", "shape": [1, 3], "datatype": "FP16", "parameters": {"binary_data_size": 6}},
        {"name": "b", "shape": [], "datatype": "BOOL", "data": [true]}
        ], "outputs": [{"name": "b"}, {"name": "s"}, {"name": "h", "parameters": {"binary_data": true}}]}"#;
    let headers = format!("inference-header-content-length: {}\r\n", json.len());
    let body = [json.as_bytes(), &[1, 2, 3, 4, 5, 6]].concat();
    let answer = client
        .send(post("/v2/models/same/infer", &headers, body))
        .answer();
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    let length: usize = answer
        .header("inference-header-content-length")
        .unwrap()
        .parse()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&answer.body[..length]).unwrap();
    assert_eq!(json["outputs"][0]["data"], json!([true]));
    assert_eq!(json["outputs"][1]["data"], json!(["a\u{e9}", ""]));
    assert_eq!(json["outputs"][2]["shape"], json!([1, 3]));
    assert_eq!(answer.body[length..], [1, 2, 3, 4, 5, 6]);
}

#[test]
fn versions_and_reloads_follow_the_files() {
    let folder = Folder::new("versions");
    folder.write("m/1/model.number", "2");
    folder.write("m/3/model.number", "3");
    folder.write("m/notes/readme.txt", "");
    folder.write("plain.number", "10");
    folder.write("bad/1/model.number", "x");
    let repository = repository(
        vec![Source::Folder(folder.0.clone())],
        VersionPolicy::Latest(1),
    );
    let verdicts = repository.load_all().unwrap();
    let told: Vec<_> = verdicts
        .iter()
        .map(|v| (&*v.name, v.version, v.reason.as_deref()))
        .collect();
    let expected = [
        ("bad", 1, Some("'x' is no number")),
        ("m", 3, None),
        ("plain", 1, None),
    ];
    assert_eq!(told, expected);

    let server = serve(repository, Limits::default());
    let mut client = Client::new(&server);
    let infer = |client: &mut Client, name: &str| -> f64 {
        let answer = client.post(&format!("/v2/models/{name}/infer"), ROWS);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["outputs"][0]["data"][0].as_f64().unwrap()
    };
    assert_eq!(
        (infer(&mut client, "m"), infer(&mut client, "plain")),
        (3.0, 10.0)
    );
    assert_eq!(client.get("/v2/models/m/versions/1").status, 404);

    folder.write("m/4/model.number", "4");
    assert_eq!(client.post("/v2/repository/models/m/load", "").status, 200);
    assert_eq!(infer(&mut client, "m"), 4.0);

    // What can't be opened leaves the old one in its place.
    folder.write("m/5/model.number", "five");
    let answer = client.post("/v2/repository/models/m/load", "");
    assert_eq!(
        (answer.status, &*answer.error()),
        (400, "failed to load 'm': 'five' is no number")
    );
    assert_eq!(infer(&mut client, "m"), 4.0);
    let index = client.post("/v2/repository/index", "").json();
    let of_m: Vec<_> = index
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line["name"] == "m")
        .collect();
    assert_eq!(of_m[0]["state"], "READY");
    // As Triton has it, one that is ready has no reason.
    assert!(of_m[0].get("reason").is_none(), "{index}");
    assert_eq!(
        (&of_m[1]["state"], &of_m[1]["reason"]),
        (&json!("UNAVAILABLE"), &json!("'five' is no number"))
    );

    assert_eq!(
        client.post("/v2/repository/models/m/unload", "{}").status,
        200
    );
    assert_eq!(client.get("/v2/models/m/ready").status, 400);
    assert_eq!(client.post("/v2/models/m/infer", ROWS).status, 404);
    let ready = client
        .post("/v2/repository/index", r#"{"ready": true}"#)
        .json();
    let names: Vec<_> = ready
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["plain"]);
    assert_eq!(
        client.post("/v2/repository/models/nope/load", "").status,
        404
    );
}

#[test]
fn requests_are_counted() {
    let server = double();
    let mut client = Client::new(&server);
    for _ in 0..3 {
        client.post("/v2/models/double/infer", ROWS);
    }
    client.post("/v2/models/double/infer", "{}");
    let statistics = client.get("/v2/models/double/stats").json();
    let own = &statistics["model_stats"][0];
    assert_eq!(own["inference_count"], 6);
    assert_eq!(own["execution_count"], 3);
    assert_eq!(own["inference_stats"]["success"]["count"], 3);
    assert_eq!(own["inference_stats"]["fail"]["count"], 1);
    assert_eq!(
        client.get("/v2/models/stats").json()["model_stats"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let metrics = client.get("/metrics");
    for line in [
        "nv_inference_request_success{model=\"double\",version=\"1\"} 3",
        "nv_inference_count{model=\"double\",version=\"1\"} 6",
        "tfrt_request_duration_seconds_count{model=\"double\",version=\"1\"} 4",
        "tfrt_in_flight 0",
    ] {
        assert!(
            metrics.text().lines().any(|own| own == line),
            "{line}\n{}",
            metrics.text()
        );
    }
}

#[test]
fn page_for_people_needs_nothing_from_elsewhere() {
    let server = double();
    let answer = Client::new(&server).get("/");
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type");
    assert_eq!(kind, Some("text/html; charset=utf-8"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!answer.text().contains(outside), "{outside}");
    }
}
