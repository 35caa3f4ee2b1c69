//! Bad requests over HTTP: each gets one error that says what was expected and what was found.

use std::io::Read;
use std::time::Duration;

use tfrt_serve::Limits;

use crate::support::{Client, ROWS, Times, double, floats, post, start};

#[test]
fn mistakes_in_json_are_told() {
    let server = double();
    let mut client = Client::new(&server);
    let input = |text: &str| format!("{{\"inputs\": [{{{text}}}]}}");
    for (body, status, message) in [
        (
            "".to_owned(),
            400,
            "failed to parse the request JSON: EOF while parsing a value at line 1 column 0",
        ),
        (
            "{\"inputs\":\n [}".to_owned(),
            400,
            "failed to parse the request JSON: expected value at line 2 column 3",
        ),
        (
            "{}".to_owned(),
            400,
            "failed to parse the request JSON: missing field `inputs` at line 1 column 2",
        ),
        ("[".repeat(1000), 400, "failed to parse the request JSON: "),
        (
            input(r#""name": "x", "shape": [1, 2], "datatype": "FP32""#),
            400,
            "input 'x': expected `data`, or parameter `binary_data_size` and bytes behind the JSON, found neither",
        ),
        (
            input(r#""name": "z", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]"#),
            400,
            "unexpected input 'z': the model takes 'x'",
        ),
        (
            input(r#""name": "x", "shape": [1, 2], "datatype": "INT64", "data": [1, 2]"#),
            400,
            "input 'x': expected datatype FP32, found INT64",
        ),
        (
            input(r#""name": "x", "shape": [1, 2], "datatype": "FP33", "data": [1, 2]"#),
            400,
            "input 'x': there is no datatype 'FP33'",
        ),
        (
            input(r#""name": "x", "shape": [1, -2], "datatype": "FP32", "data": [1, 2]"#),
            400,
            "input 'x': expected a shape of extents from 0, found -2 in [1, -2]",
        ),
        (
            input(
                r#""name": "x", "shape": [4611686018427387904, 4], "datatype": "FP32", "data": [1]"#,
            ),
            400,
            "input 'x': ",
        ),
        (
            input(r#""name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1]"#),
            400,
            "input 'x': expected 2 elements by its shape, found 1 in `data`",
        ),
        (
            input(r#""name": "x", "shape": [1000000000, 2], "datatype": "FP32", "data": [1]"#),
            400,
            "input 'x': expected 2000000000 elements by its shape, found 1 in `data`",
        ),
        (
            input(r#""name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, "a"]"#),
            400,
            "input 'x': element 1 of `data`: expected a number, found a string",
        ),
        (
            input(r#""name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]"#),
            400,
            "input 'x' is f32 [N, 2], but was given f32 [1, 3]",
        ),
        (
            input(
                r#""name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}"#,
            ),
            400,
            "input 'x': unexpected size: 8 bytes were announced, but 0 are left in the body",
        ),
        (
            input(
                r#""name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"shared_memory_region": "r"}"#,
            ),
            501,
            "parameter `shared_memory_region`: this server takes no tensors from shared memory",
        ),
        (
            ROWS.replace("\"id\"", "\"outputs\": [{\"name\": \"q\"}], \"id\""),
            400,
            "unexpected inference output 'q' for model 'double'",
        ),
        (
            ROWS.replace("\"id\"", "\"parameters\": {\"timeout\": \"soon\"}, \"id\""),
            400,
            "parameter `timeout` was expected to be a number of microseconds",
        ),
        (
            ROWS.replace("\"id\": \"a\"", "\"id\": 7"),
            400,
            "failed to parse the request JSON: invalid type",
        ),
    ] {
        let answer = client.post("/v2/models/double/infer", &body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        assert!(
            answer.error().starts_with(message),
            "{body}: {}",
            answer.error()
        );
    }
    // The connection is as good as before.
    assert_eq!(client.post("/v2/models/double/infer", ROWS).status, 200);
}

#[test]
fn mistakes_in_binary_bodies_are_told() {
    let server = double();
    let mut client = Client::new(&server);
    let json = r#"{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}]}"#;
    let body = [json.as_bytes(), &floats(&[1.0, 2.0])].concat();
    let length = json.len().to_string();
    let (long, all) = (&[&body[..], &[0]].concat(), body.len());
    for (header, body, message) in [
        ("99999", &body, format!("inference header size should be in range (0, {all}), got: 99999")),
        ("-1", &body, "header `Inference-Header-Content-Length` was expected to be a number of bytes, found '-1'".to_owned()),
        ("x", &body, "header `Inference-Header-Content-Length` was expected to be a number of bytes, found 'x'".to_owned()),
        (&length, long, "unexpected additional input data: 1 bytes are left behind those of the inputs".to_owned()),
        (&length, &body[..all - 1].to_vec(), "input 'x': unexpected size: 8 bytes were announced, but 7 are left in the body".to_owned()),
    ] {
        let headers = format!("inference-header-content-length: {header}\r\n");
        let answer = client.send(post("/v2/models/double/infer", &headers, body)).answer();
        assert_eq!((answer.status, answer.error()), (400, message), "{header}");
    }
}

#[test]
fn addresses_of_nothing_are_not_found() {
    let server = double();
    let mut client = Client::new(&server);
    for (path, status) in [
        ("//", 404),
        ("/v2/models/nope", 404),
        ("/v2/models/double/versions/2", 404),
        ("/v2/models/%64ouble", 404),
        ("/v2/models/..%2f..", 404),
        ("/v2/models/double/infer", 405),
        ("/v2/models/double/nothing", 404),
    ] {
        let answer = client.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(!answer.error().is_empty());
    }
    let answer = client.post("/v2/models/nope/infer", ROWS);
    assert_eq!(
        (answer.status, &*answer.error()),
        (404, "Request for unknown model: 'nope' is not found")
    );
}

#[test]
fn bodies_over_the_limit_are_refused() {
    let limits = Limits {
        max_request_bytes: 1000,
        ..Limits::default()
    };
    let server = start(
        vec![("double", std::sync::Arc::new(Times::new(2.0)))],
        limits,
    );
    let long = ROWS.replace(
        "\"id\"",
        &format!("\"a\": \"{}\", \"id\"", "x".repeat(1000)),
    );
    let answer = Client::new(&server).post("/v2/models/double/infer", &long);
    assert_eq!(
        (answer.status, &*answer.error()),
        (
            413,
            "the body of a request may have 1000 bytes, but this one has more"
        )
    );
    // Of unknown length.
    let chunked = format!(
        "POST /v2/models/double/infer HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n",
        long.len()
    );
    assert_eq!(Client::new(&server).send(chunked).answer().status, 413);
    // Of more bytes than there are.
    let huge =
        "POST /v2/models/double/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999999\r\n\r\n";
    assert_eq!(Client::new(&server).send(huge).answer().status, 413);
    assert_eq!(
        Client::new(&server)
            .post("/v2/models/double/infer", ROWS)
            .status,
        200
    );
}

#[test]
fn encodings_and_heads_that_are_not_taken_are_told() {
    let server = double();
    let mut client = Client::new(&server);
    let answer = client
        .send(post(
            "/v2/models/double/infer",
            "content-encoding: br\r\n",
            ROWS,
        ))
        .answer();
    assert_eq!(answer.status, 415);
    let mut client = Client::new(&server);
    let long = format!(
        "GET /v2 HTTP/1.1\r\nhost: x\r\na: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    // It may be cut off before it is sent.
    let _ = std::io::Write::write_all(&mut client.stream, long.as_bytes());
    assert!(
        client
            .try_answer()
            .is_none_or(|answer| answer.status == 431)
    );
    assert_eq!(
        Client::new(&server)
            .send("nothing at all\r\n\r\n")
            .answer()
            .status,
        400
    );
}

#[test]
fn compressed_bodies_are_unpacked_within_limits() {
    let server = double();
    let mut client = Client::new(&server);
    let packed = |text: &[u8], is_gzip: bool| {
        let level = flate2::Compression::best();
        let mut bytes = Vec::new();
        match is_gzip {
            true => flate2::read::GzEncoder::new(text, level).read_to_end(&mut bytes),
            false => flate2::read::ZlibEncoder::new(text, level).read_to_end(&mut bytes),
        }
        .unwrap();
        bytes
    };
    let mut send = |encoding: &str, body: &[u8]| {
        let headers = format!("content-encoding: {encoding}\r\n");
        client
            .send(post("/v2/models/double/infer", &headers, body))
            .answer()
    };
    assert_eq!(send("gzip", &packed(ROWS.as_bytes(), true)).status, 200);
    assert_eq!(send("deflate", &packed(ROWS.as_bytes(), false)).status, 200);
    let answer = send("deflate", &packed(ROWS.as_bytes(), true));
    assert_eq!(answer.status, 400);
    assert!(
        answer
            .error()
            .starts_with("the body can't be unpacked behind 0 bytes"),
        "{}",
        answer.error()
    );
    let whole = packed(ROWS.as_bytes(), true);
    assert_eq!(send("gzip", &whole[..whole.len() / 2]).status, 400);
    // Members behind each other are one body; what is behind the end is none.
    let (front, back) = ROWS.as_bytes().split_at(ROWS.len() / 2);
    let two = [packed(front, true), packed(back, true)].concat();
    assert_eq!(send("gzip", &two).status, 200);
    // Lengths that are not guessed: of many members, and of one that becomes much longer.
    let many: Vec<_> = ROWS.bytes().map(|byte| packed(&[byte], true)).collect();
    assert_eq!(send("gzip", &many.concat()).status, 200);
    let spaces = vec![b' '; 500_000];
    let long = [ROWS.as_bytes(), &spaces].concat();
    assert_eq!(send("deflate", &packed(&long, false)).status, 200);
    let two = [packed(&long, true), packed(b" ", true)].concat();
    assert_eq!(send("gzip", &two).status, 200);
    // A length that is a lie.
    let mut liar = packed(ROWS.as_bytes(), true);
    let end = liar.len() - 4;
    liar[end..].fill(0);
    assert_eq!(send("gzip", &liar).status, 400);
    for is_gzip in [true, false] {
        let more = [packed(ROWS.as_bytes(), is_gzip), b"more".to_vec()].concat();
        let encoding = if is_gzip { "gzip" } else { "deflate" };
        let answer = send(encoding, &more);
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    let bomb = packed(&vec![b' '; 32 << 20], true);
    let answer = send("gzip", &bomb);
    assert_eq!(answer.status, 413, "{}", answer.text());
    assert!(
        answer
            .error()
            .ends_with("unpacks to more than 100 times as many"),
        "{}",
        answer.error()
    );
}

#[test]
fn senders_that_are_slow_are_told() {
    let limits = Limits {
        body_time: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = start(
        vec![("double", std::sync::Arc::new(Times::new(2.0)))],
        limits,
    );
    let mut client = Client::new(&server);
    let whole = post("/v2/models/double/infer", "", ROWS);
    let answer = client.send(&whole[..whole.len() - 10]).answer();
    assert_eq!(answer.status, 408);
    assert!(answer.error().contains("too slowly"), "{}", answer.error());
}

#[test]
fn connections_that_say_nothing_are_closed() {
    let limits = Limits {
        idle_time: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = start(
        vec![("double", std::sync::Arc::new(Times::new(2.0)))],
        limits,
    );
    // Nothing; the first letter of HTTP/2, and of HTTP/1; half a head; and a whole request before.
    for sent in [
        "",
        "P",
        "G",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /v2 HTTP/1.1\r\nhost",
    ] {
        let mut client = Client::new(&server);
        client.send(sent);
        let answer = client.try_answer();
        assert!(answer.is_none_or(|answer| answer.status == 408), "{sent}");
    }
    let mut client = Client::new(&server);
    assert_eq!(client.get("/v2").status, 200);
    assert!(client.try_answer().is_none());
}

#[test]
fn bodies_that_end_early_fail_alone() {
    let server = double();
    let whole = post("/v2/models/double/infer", "", ROWS);
    for cut in [whole.len() - 1, whole.len() - ROWS.len(), 30, 1] {
        let mut client = Client::new(&server);
        client.send(&whole[..cut]).end();
        let answer = client.try_answer();
        assert!(answer.is_none_or(|answer| answer.status == 400), "{cut}");
    }
    assert_eq!(
        Client::new(&server)
            .post("/v2/models/double/infer", ROWS)
            .status,
        200
    );
}

/// Lists that are short by what they mean are no longer than that, and parameters that mean nothing are as many as they are.
#[test]
fn long_lists_are_refused_and_unknown_parameters_are_not_kept() {
    let server = double();
    let mut client = Client::new(&server);
    let listed = |entry: &str| vec![entry; 5000].join(",");
    let outputs = format!("\"outputs\": [{}], \"id\"", listed(r#"{"name": "y"}"#));
    let shape = format!("\"shape\": [{}]", listed("1"));
    for body in [
        ROWS.replace("\"id\"", &outputs),
        ROWS.replace("\"shape\": [2, 2]", &shape),
    ] {
        let answer = client.post("/v2/models/double/infer", body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        let expected = "failed to parse the request JSON: invalid length 4097, expected a list of 4096 entries at most";
        assert!(answer.error().starts_with(expected), "{}", answer.error());
    }
    let mut names: Vec<String> = (0..5000)
        .map(|name| format!("\"{name}\": [{{}}]"))
        .collect();
    let parameters = |names: &[String]| {
        let parameters = format!("\"parameters\": {{{}}}, \"id\"", names.join(","));
        ROWS.replace("\"id\"", &parameters)
    };
    let answer = client.post("/v2/models/double/infer", parameters(&names));
    assert_eq!(answer.status, 200, "{}", answer.text());
    names.push("\"binary_data_output\": [1, 2]".to_owned());
    let answer = client.post("/v2/models/double/infer", parameters(&names));
    assert_eq!(
        (answer.status, &*answer.error()),
        (
            400,
            "parameter `binary_data_output` was expected to be true or false, found a list"
        )
    );
}
