//! How requests end before their time: clients that go, deadlines, a server that is full, and one that ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tfrt_serve::{Limits, Server, Source, VersionPolicy};

use crate::support::{
    Client, Control, Folder, PATIENCE, ROWS, Times, builder, post, repository, serve, start,
};

fn slow(limits: Limits) -> (Server, Control) {
    let control = Control::new();
    let server = start(vec![("slow", control.model.clone())], limits);
    (server, control)
}

#[test]
fn client_that_hangs_up_cancels_its_call() {
    let (server, control) = slow(Limits::default());
    let request = post("/v2/models/slow/infer", "", ROWS);
    let more = [&request[..], b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\nGET /v2"].concat();
    // With nothing behind the request, with more on the way, and with one half closed.
    for (sent, closes_half) in [(&request, false), (&more, false), (&request, true)] {
        let mut client = Client::new(&server);
        client.send(sent);
        control.wait_for_call();
        let left = Instant::now();
        match closes_half {
            true => drop(client.end()),
            false => drop(client),
        }
        assert_eq!(control.wait_for_cancellation(), "the client has gone");
        let ms = left.elapsed().as_millis();
        // The goal is 20 ms on a machine that is idle.
        assert!(ms < 2000, "it took {ms} ms");
    }
    let metrics = Client::new(&server).get("/metrics");
    assert!(
        metrics
            .text()
            .contains("tfrt_cancelled_total{model=\"slow\",version=\"1\"} 3"),
        "{}",
        metrics.text()
    );
    assert!(
        metrics.text().contains("tfrt_in_flight 0"),
        "{}",
        metrics.text()
    );
}

#[test]
fn deadline_ends_a_call() {
    let (server, control) = slow(Limits {
        deadline: Duration::from_secs(600),
        ..Limits::default()
    });
    let asked = ROWS.replace("\"id\"", "\"parameters\": {\"timeout\": 30000}, \"id\"");
    let mut client = Client::new(&server);
    client.send(post("/v2/models/slow/infer", "", asked));
    control.wait_for_call();
    assert!(
        control
            .wait_for_cancellation()
            .starts_with("Deadline exceeded")
    );
    let answer = client.answer();
    assert_eq!(answer.status, 504, "{}", answer.text());
    assert_eq!(
        answer.error(),
        "Deadline exceeded: the time allowed was 30ms"
    );
    // It has passed when the body was read.
    let asked = ROWS.replace("\"id\"", "\"parameters\": {\"timeout\": 1}, \"id\"");
    let answer = client.post("/v2/models/slow/infer", asked);
    assert_eq!(
        (answer.status, answer.error()),
        (
            504,
            "Deadline exceeded: the time allowed was 1\u{b5}s".to_owned()
        )
    );
    drop(client);
}

#[test]
fn request_over_the_capacity_is_refused_at_once() {
    let (server, control) = slow(Limits {
        max_in_flight: 1,
        ..Limits::default()
    });
    let mut first = Client::new(&server);
    first.send(post("/v2/models/slow/infer", "", ROWS));
    control.wait_for_call();
    let answer = Client::new(&server).post("/v2/models/slow/infer", ROWS);
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(
        answer.error(),
        "the server is at its limit of 1 requests at once: try again later"
    );
    control.finish();
    assert_eq!(first.answer().status, 200);
    let metrics = Client::new(&server).get("/metrics");
    assert!(
        metrics.text().contains("tfrt_rejected_total 1"),
        "{}",
        metrics.text()
    );
}

#[test]
fn requests_behind_each_other_are_answered_in_their_order() {
    let server = crate::support::double();
    let mut client = Client::new(&server);
    let one = post("/v2/models/double/infer", "", ROWS);
    let other = post(
        "/v2/models/double/infer",
        "",
        ROWS.replace("\"a\"", "\"b\""),
    );
    client.send([&one[..], &other, &one].concat());
    for id in ["a", "b", "a"] {
        assert_eq!(client.answer().json()["id"], id);
    }
}

#[test]
fn server_that_ends_answers_what_it_has() {
    let (server, control) = slow(Limits::default());
    let address = server.addresses()[0];
    let mut client = Client::new(&server);
    client.send(post("/v2/models/slow/infer", "", ROWS));
    control.wait_for_call();
    let stopper = server.stopper();
    stopper.refuse();
    let answer = Client::new(&server).get("/v2/health/ready");
    assert_eq!((answer.status, answer.text()), (503, r#"{"ready":false}"#));
    assert_eq!(Client::new(&server).get("/v2/health/live").status, 200);
    stopper.drain();
    let ending = std::thread::spawn(move || server.stop(PATIENCE));
    // It is the listener that goes first.
    while std::net::TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    control.finish();
    assert_eq!(client.answer().status, 200);
    assert!(client.try_answer().is_none());
    assert!(ending.join().unwrap());
}

#[test]
fn request_that_has_begun_when_a_server_ends_is_answered() {
    let repository = repository(Vec::new(), VersionPolicy::default());
    repository.add("double", Arc::new(Times::new(2.0))).unwrap();
    // On one thread, so that what has come first is read first.
    let builder = builder(repository).threads(1);
    let server = builder.listen("127.0.0.1:0").unwrap().start().unwrap();
    let request = post("/v2/models/double/infer", "", ROWS);
    let (begin, rest) = request.split_at(20);
    let mut client = Client::new(&server);
    client.send(begin);
    let mut other = Client::new(&server);
    for _ in 0..2 {
        assert_eq!(other.get("/v2").status, 200);
    }
    server.stopper().drain();
    let answer = client.send(rest).answer();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(client.try_answer().is_none());
    assert!(server.stop(PATIENCE));
}

#[test]
fn server_that_is_dropped_cancels_what_it_has() {
    let (server, control) = slow(Limits::default());
    let mut client = Client::new(&server);
    client.send(post("/v2/models/slow/infer", "", ROWS));
    control.wait_for_call();
    assert!(!server.stop(Duration::from_millis(10)));
    assert_eq!(control.wait_for_cancellation(), "the client has gone");
    assert!(client.try_answer().is_none());
}

#[test]
fn reloads_lose_no_request() {
    let folder = Folder::new("reloads");
    folder.write("m.number", "2");
    let repository = repository(
        vec![Source::Folder(folder.0.clone())],
        VersionPolicy::default(),
    );
    repository.load_all().unwrap();
    let server = serve(repository, Limits::default());
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..2)
        .map(|_| {
            let (mut client, is_over) = (Client::new(&server), is_over.clone());
            std::thread::spawn(move || {
                let mut n_answers = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let answer = client.post("/v2/models/m/infer", ROWS);
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    n_answers += 1;
                }
                n_answers
            })
        })
        .collect();
    let mut client = Client::new(&server);
    for number in 0..50 {
        folder.write("m.number", &number.to_string());
        assert_eq!(client.post("/v2/repository/models/m/load", "").status, 200);
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.join().unwrap() > 0);
    }
}
