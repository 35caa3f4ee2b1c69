//! Requests that are called together: who waits for whom, and that each ends for itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tfrt_host::{AnyAsyncValue, Error, RequestContext};
use tfrt_serve::{Batching, Description, Dim, Place, Servable, Server, Source, VersionPolicy};
use tfrt_tensor::{DType, Tensor};

use crate::support::{
    Client, Control, Folder, PATIENCE, Same, Slow, Times, batched, post, repository,
};

/// Batches of eight rows, without a wait.
const EIGHT: Batching = Batching {
    max_rows: 8,
    max_delay: Duration::ZERO,
};

/// Starts a server of a model `slow`, and a client whose call it is busy with.
fn busy() -> (Server, Control, Client) {
    let control = Control::new();
    let server = batched("slow", control.model.clone(), EIGHT);
    let first = ask(&server, "slow", &[0.0, 0.0]);
    control.wait_for_call();
    (server, control, first)
}

/// Sends a request of rows of two.
fn ask(server: &Server, model: &str, elements: &[f32]) -> Client {
    ask_with(server, model, elements, "")
}

fn ask_with(server: &Server, model: &str, elements: &[f32], more: &str) -> Client {
    let n_rows = elements.len() / 2;
    let body = format!(
        r#"{{{more} "inputs": [{{"name": "x", "shape": [{n_rows}, 2], "datatype": "FP32", "data": {elements:?}}}]}}"#
    );
    let mut client = Client::new(server);
    client.send(post(&format!("/v2/models/{model}/infer"), "", body));
    client
}

/// Waits until so many requests wait for the model.
fn wait_for_depth(server: &Server, n_waiting: usize) {
    let mut client = Client::new(server);
    let line = format!("tfrt_queue_depth{{model=\"slow\",version=\"1\"}} {n_waiting}\n");
    let until = Instant::now() + PATIENCE;
    while !client.get("/metrics").text().contains(&line) {
        assert!(Instant::now() < until, "{n_waiting} requests never waited");
        std::thread::yield_now();
    }
}

/// Reads the elements of an answer's only output.
fn elements(client: &mut Client) -> serde_json::Value {
    let answer = client.answer();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["outputs"][0]["data"].clone()
}

#[test]
fn requests_that_wait_for_a_model_are_called_together() {
    let (server, control, mut first) = busy();
    let mut waiting =
        [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]].map(|x| ask(&server, "slow", &x));
    let mut one = ask(&server, "slow", &[9.0, 10.0]);
    wait_for_depth(&server, 3);
    control.finish();
    assert_eq!(elements(&mut first), json!([0.0, 0.0]));
    control.wait_for_call();
    control.finish();
    assert_eq!(elements(&mut waiting[0]), json!([1.0, 2.0, 3.0, 4.0]));
    assert_eq!(elements(&mut waiting[1]), json!([5.0, 6.0, 7.0, 8.0]));
    assert_eq!(elements(&mut one), json!([9.0, 10.0]));
    let statistics = first.get("/v2/models/slow/stats").json();
    let own = &statistics["model_stats"][0];
    assert_eq!(
        (&own["inference_count"], &own["execution_count"]),
        (&json!(6), &json!(2))
    );
    let batches = own["batch_stats"].as_array().unwrap();
    let sizes: Vec<_> = batches.iter().map(|own| &own["batch_size"]).collect();
    assert_eq!(sizes, [&json!(1), &json!(5)]);
    assert_eq!(batches[1]["compute_infer"]["count"], 1);
    let metrics = first.get("/metrics");
    let labels = "{model=\"slow\",version=\"1\"";
    for line in [
        format!("tfrt_batch_rows_bucket{labels},le=\"4\"}} 1"),
        format!("tfrt_batch_rows_bucket{labels},le=\"8\"}} 2"),
        format!("tfrt_batch_rows_sum{labels}}} 6"),
        format!("tfrt_queue_duration_seconds_count{labels}}} 4"),
        format!("tfrt_queue_depth{labels}}} 0"),
    ] {
        assert!(
            metrics.text().contains(&line),
            "{line} in {}",
            metrics.text()
        );
    }
}

#[test]
fn batch_has_no_more_rows_than_it_may() {
    let (server, control, _first) = busy();
    let five = [0.5; 10];
    let mut waiting = [&five[..], &five[..], &five[..6]].map(|x| ask(&server, "slow", x));
    wait_for_depth(&server, 3);
    control.finish();
    // Eight rows, those of the first and of the last, and then the five of the second.
    control.wait_for_call();
    control.finish();
    control.wait_for_call();
    control.finish();
    for (client, n_elements) in waiting.iter_mut().zip([10, 10, 6]) {
        assert_eq!(elements(client).as_array().unwrap().len(), n_elements);
    }
    let mut client = ask(&server, "slow", &[0.0; 18]);
    let answer = client.answer();
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.error(),
        "a request of 9 rows is more than a batch of model 'slow', which has 8 at most"
    );
}

#[test]
fn client_that_hangs_up_leaves_the_others_of_its_batch_alone() {
    let (server, control, mut first) = busy();
    let gone_before = ask(&server, "slow", &[1.0, 1.0]);
    let gone_within = ask(&server, "slow", &[2.0, 2.0]);
    let mut stays = ask(&server, "slow", &[3.0, 3.0]);
    wait_for_depth(&server, 3);
    drop(gone_before);
    wait_for_depth(&server, 2);
    control.finish();
    control.wait_for_call();
    drop(gone_within);
    let line = "tfrt_cancelled_total{model=\"slow\",version=\"1\"} 2\n";
    let until = Instant::now() + PATIENCE;
    elements(&mut first);
    while !first.get("/metrics").text().contains(line) {
        assert!(Instant::now() < until, "nobody has seen the clients go");
    }
    control.finish();
    assert_eq!(elements(&mut stays), json!([3.0, 3.0]));
    let statistics = first.get("/v2/models/slow/stats").json();
    let batches = &statistics["model_stats"][0]["batch_stats"];
    assert_eq!(batches[1]["batch_size"], 2, "{batches}");
}

#[test]
fn batch_ends_when_all_of_its_clients_have_gone() {
    let (server, control, first) = busy();
    let gone = [1.0, 2.0].map(|x| ask(&server, "slow", &[x, x]));
    wait_for_depth(&server, 2);
    drop(first);
    assert_eq!(control.wait_for_cancellation(), "the client has gone");
    control.wait_for_call();
    drop(gone);
    assert_eq!(
        control.wait_for_cancellation(),
        "all requests of the batch have ended"
    );
    // The model is free again.
    let mut next = ask(&server, "slow", &[5.0, 5.0]);
    control.wait_for_call();
    control.finish();
    assert_eq!(elements(&mut next), json!([5.0, 5.0]));
}

#[test]
fn deadline_holds_for_each_request_of_a_batch() {
    let (server, control, mut first) = busy();
    let soon = r#""parameters": {"timeout": 30000},"#;
    // One ends while it waits,
    let mut waits = ask_with(&server, "slow", &[1.0, 1.0], soon);
    let answer = waits.answer();
    assert_eq!(answer.status, 504, "{}", answer.text());
    wait_for_depth(&server, 0);
    // another within a batch, whose other request goes on.
    let mut stays = ask(&server, "slow", &[3.0, 3.0]);
    let later = r#""parameters": {"timeout": 700000},"#;
    let mut runs = ask_with(&server, "slow", &[2.0, 2.0], later);
    wait_for_depth(&server, 2);
    control.finish();
    elements(&mut first);
    control.wait_for_call();
    let answer = runs.answer();
    assert_eq!(answer.status, 504, "{}", answer.text());
    control.finish();
    assert_eq!(elements(&mut stays), json!([3.0, 3.0]));
}

#[test]
fn shapes_that_differ_are_not_joined_and_do_not_wait_for_each_other() {
    let mut description = Times::new(1.0).description().clone();
    description.inputs[0].dims.as_mut().unwrap()[1] = Dim::Unknown;
    description.outputs = description.inputs.clone();
    let long = Batching {
        max_rows: 2,
        max_delay: Duration::from_secs(600),
    };
    let server = batched("same", Arc::new(Same(description)), long);
    let ask = |width: usize| {
        let body = format!(
            r#"{{"inputs": [{{"name": "x", "shape": [1, {width}], "datatype": "FP32", "data": {:?}}}]}}"#,
            vec![width; width]
        );
        let mut client = Client::new(&server);
        client.send(post("/v2/models/same/infer", "", body));
        client
    };
    // The first has no company of its shape; the other two fill a batch, which ends their wait.
    let _waits = ask(3);
    let mut two = [ask(1), ask(1)];
    for client in &mut two {
        assert_eq!(elements(client), json!([1.0]));
    }
}

#[test]
fn request_waits_for_others_as_long_as_it_is_told() {
    let soon = Batching {
        max_rows: 100,
        max_delay: Duration::from_millis(50),
    };
    let server = batched("double", Arc::new(Times::new(2.0)), soon);
    let began = Instant::now();
    let mut alone = ask(&server, "double", &[1.0, 2.0]);
    assert_eq!(elements(&mut alone), json!([2.0, 4.0]));
    assert!(began.elapsed() >= Duration::from_millis(50));
}

#[test]
fn request_that_the_model_refuses_gets_its_own_error() {
    let server = batched("double", Arc::new(Times::new(2.0)), EIGHT);
    let body =
        r#"{"inputs": [{"name": "x", "shape": [2, 1], "datatype": "FP32", "data": [1, 2]}]}"#;
    let answer = Client::new(&server).post("/v2/models/double/infer", body);
    assert_eq!(answer.status, 400);
    assert!(
        answer.error().starts_with("input 'x' is f32 [N, 2], but"),
        "{}",
        answer.error()
    );
    // Without rows there is nothing to join.
    assert_eq!(elements(&mut ask(&server, "double", &[])), json!([]));
}

/// A model that doubles `x`, is slow if the first element is 0, and fails if one is negative.
struct Picky(Times, Arc<Slow>);

impl Servable for Picky {
    fn description(&self) -> &Description {
        self.0.description()
    }

    fn call(
        &self,
        request: &Arc<RequestContext>,
        inputs: Vec<(String, Tensor)>,
        place: Place,
    ) -> Vec<AnyAsyncValue> {
        let first = inputs[0].1.as_dense().unwrap().read().unwrap();
        let elements = first.elements::<f32>().unwrap().to_vec();
        drop(first);
        if elements.iter().any(|element| *element < 0.0) {
            let message = format!("{elements:?} has negative elements");
            return vec![AnyAsyncValue::from_error(Error::invalid_argument(message))];
        }
        match elements[0] == 0.0 {
            true => self.1.call(request, inputs, place),
            false => self.0.call(request, inputs, place),
        }
    }
}

#[test]
fn mistake_of_one_request_is_no_matter_of_the_others() {
    let control = Control::new();
    let model = Picky(Times::new(2.0), control.model.clone());
    let server = batched("slow", Arc::new(model), EIGHT);
    let _first = ask(&server, "slow", &[0.0, 0.0]);
    control.wait_for_call();
    let mut good = ask(&server, "slow", &[1.0, 2.0]);
    let mut bad = ask(&server, "slow", &[-1.0, 2.0]);
    wait_for_depth(&server, 2);
    control.finish();
    assert_eq!(elements(&mut good), json!([2.0, 4.0]));
    let answer = bad.answer();
    assert_eq!(answer.status, 400);
    assert_eq!(answer.error(), "[-1.0, 2.0] has negative elements");
    let metrics = bad.get("/metrics");
    let line = "tfrt_batches_split_total{model=\"slow\",version=\"1\"} 1\n";
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

#[test]
fn configuration_tells_of_batches() {
    let soon = Batching {
        max_rows: 16,
        max_delay: Duration::from_micros(250),
    };
    let server = batched("double", Arc::new(Times::new(2.0)), soon);
    let config = Client::new(&server).get("/v2/models/double/config").json();
    assert_eq!(config["max_batch_size"], 16);
    assert_eq!(
        config["dynamic_batching"]["max_queue_delay_microseconds"],
        250
    );
    // The dimension of the batch is not among the extents.
    let input = json!([{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}]);
    assert_eq!(config["input"], input);
    let model = Client::new(&server).get("/v2/models/double").json();
    assert_eq!(model["inputs"][0]["shape"], json!([-1, 2]));
}

#[test]
fn model_that_is_named_and_cannot_be_batched_is_refused() {
    let folder = Folder::new("batches");
    folder.write("three.number", "3");
    let source = || vec![Source::Folder(folder.0.clone())];
    let named = repository(source(), VersionPolicy::default()).batching(Some("four"), EIGHT);
    let error = named.load_all().unwrap_err();
    assert_eq!(
        error.message(),
        "requests of 'four' are to be joined, but there is no such model"
    );
    let nowhere = vec![Source::Folder("/nowhere".into())];
    let error = repository(nowhere, VersionPolicy::default())
        .load_all()
        .unwrap_err();
    assert_eq!(
        error.message(),
        "cannot read '/nowhere': No such file or directory"
    );
    let same = || Arc::new(Same::new(&[("x", DType::F32)]));
    let named = repository(source(), VersionPolicy::default()).batching(Some("same"), EIGHT);
    let error = named.add("same", same()).unwrap_err();
    assert_eq!(
        error.message(),
        "its requests can't be joined: input 'x' has any number of dimensions"
    );
    let all = repository(source(), VersionPolicy::default()).batching(None, EIGHT);
    all.add("same", same()).unwrap();
}
