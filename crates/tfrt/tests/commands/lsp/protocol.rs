//! The session: its beginning, its end, and messages that are none.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::client::{Client, Encoding, URI};

#[test]
fn session_begins_and_ends_as_agreed() {
    let mut client = Client::start();
    // Too early: a request is refused, a notification is passed over.
    let (code, _) = client.ask_in_vain("textDocument/hover", json!({}));
    assert_eq!(code, -32002);
    let (code, _) = client.ask_in_vain("shutdown", Value::Null);
    assert_eq!(code, -32002);
    client.set_text("oops");
    let result = client.ask("initialize", json!({"capabilities": {}}));
    assert_eq!(result["serverInfo"]["name"], "tfrt");
    let offered = &result["capabilities"];
    assert_eq!(offered["positionEncoding"], "utf-16");
    for provider in ["hover", "definition", "references", "documentSymbol"] {
        assert_eq!(offered[format!("{provider}Provider")], true);
    }
    assert_eq!(offered["documentFormattingProvider"], Value::Null);
    // Once is enough.
    let (code, _) = client.ask_in_vain("initialize", json!({"capabilities": {}}));
    assert_eq!(code, -32600);
    assert_eq!(client.ask("shutdown", Value::Null), Value::Null);
    // Too late.
    let (code, _) = client.ask_in_vain("shutdown", Value::Null);
    assert_eq!(code, -32600);
    client.tell("exit", Value::Null);
    assert_eq!(client.wait(), 0);
}

#[test]
fn session_may_end_unannounced() {
    let mut client = Client::new(Encoding::Utf16);
    client.tell("exit", Value::Null);
    assert_eq!(client.wait(), 1);
    let mut client = Client::start();
    client.tell("exit", Value::Null);
    assert_eq!(client.wait(), 1);
    assert_eq!(Client::start().hang_up(), 1);
    assert_eq!(Client::new(Encoding::Utf8).hang_up(), 1);
    let mut client = Client::new(Encoding::Utf16);
    client.ask("shutdown", Value::Null);
    assert_eq!(client.hang_up(), 0);
}

#[test]
fn what_is_not_known_is_refused_or_passed_over() {
    let mut client = Client::new(Encoding::Utf16);
    let (code, message) = client.ask_in_vain("textDocument/formatting", json!({}));
    assert_eq!(code, -32601);
    assert!(message.contains("textDocument/formatting"), "{message}");
    let (code, _) = client.ask_in_vain("$/something", json!({}));
    assert_eq!(code, -32601);
    client.tell("$/setTrace", json!({"value": "off"}));
    client.tell(
        "workspace/didChangeConfiguration",
        json!({"settings": null}),
    );
    client.tell("textDocument/didOpen", json!(17));
    client.tell("textDocument/didChange", json!({"textDocument": {}}));
    client.tell(
        "textDocument/didClose",
        json!({"textDocument": {"uri": URI}}),
    );
    for params in [
        Value::Null,
        json!([]),
        json!({}),
        json!({"textDocument": {"uri": 1}, "position": {"line": 0, "character": 0}}),
        json!({"textDocument": {"uri": URI}, "position": {"line": -1, "character": 0}}),
        json!({"textDocument": {"uri": URI}, "position": {"line": 0.5, "character": 0}}),
        json!({"textDocument": {"uri": "not open"}, "position": {"line": 0, "character": 0}}),
    ] {
        let (code, _) = client.ask_in_vain("textDocument/definition", params);
        assert_eq!(code, -32602);
    }
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn messages_that_are_none_are_answered_and_survived() {
    let mut client = Client::new(Encoding::Utf16);
    let cases: &[(&[u8], i64)] = &[
        (b"Content-Length: 9\r\n\r\n{\"id\": 1,", -32700),
        (b"Content-Length: 2\r\n\r\n\xff\xff", -32700),
        (b"Content-Length: 2\r\n\r\n[]", -32600),
        (b"Content-Length: 4\r\n\r\nnull", -32600),
        (b"Content-Length: 13\r\n\r\n{\"method\": 1}", -32600),
        (b"Content-Length: 2\r\n\r\n{}", -32600),
        (b"hello, is anybody there?\r\n\r\n", -32700),
        (b"Content-Length: many\r\n\r\n", -32700),
        (b"Content-Length: 18446744073709551615\r\n\r\n", -32700),
        (b"Content-Length: 100000000000\r\n\r\n{}\r\n", -32700),
    ];
    for (bytes, code) in cases {
        client.write(bytes);
        let answer = client.receive();
        let sent = String::from_utf8_lossy(bytes);
        assert_eq!(answer["error"]["code"], *code, "{sent}\n{answer}");
        assert_eq!(answer["id"], Value::Null);
    }
    // An id that is none can't be given back; a method that is none can be told of.
    client.send(&json!({"jsonrpc": "2.0", "id": [1], "method": "shutdown"}));
    assert_eq!(client.receive()["id"], Value::Null);
    client.send(&json!({"jsonrpc": "2.0", "id": "seven", "method": 7}));
    let answer = client.receive();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("seven"), &json!(-32600))
    );
    // An answer to a question that was never asked.
    client.send(&json!({"jsonrpc": "2.0", "id": 99, "result": null}));
    client.set_text("oops");
    assert_eq!(client.diagnostics().0.len(), 1);
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn lengths_that_are_wrong_cost_no_more_than_they_cover() {
    let mut client = Client::new(Encoding::Utf16);
    let message = json!({"jsonrpc": "2.0", "id": 5, "method": "x"}).to_string();
    for wrong in [message.len() - 7, message.len() + 7] {
        client.write(format!("Content-Length: {wrong}\r\n\r\n{message}").as_bytes());
        // If it was too long, it takes of this one.
        client.tell("$/nothing", json!({}));
        assert_eq!(client.answer_to_nothing()["error"]["code"], -32700);
        client.set_text("oops");
        let params = json!({"textDocument": {"uri": URI}});
        client.ask("textDocument/documentSymbol", params);
    }
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn requests_can_be_cancelled() {
    let mut client = Client::new(Encoding::Utf16);
    // While this is parsed the others wait.
    let text = "%x = tfrt.constant.i32 1\n".repeat(20_000);
    client.set_text(&text);
    let params = json!({"textDocument": {"uri": URI}});
    let first = client.begin("textDocument/documentSymbol", params.clone());
    let ids: Vec<i64> = (0..5)
        .map(|_| client.begin("textDocument/documentSymbol", params.clone()))
        .collect();
    for id in &ids {
        client.tell("$/cancelRequest", json!({"id": id}));
    }
    for _ in 0..20_000 {
        client.tell("$/cancelRequest", json!({"id": "never asked"}));
    }
    client.tell("$/cancelRequest", json!({}));
    assert!(client.answer_to(first)["result"].is_array());
    for id in ids {
        // Each is answered, one way or the other.
        let answer = client.answer_to(id);
        let is_cancelled = answer["error"]["code"] == -32800;
        assert!(is_cancelled || answer["result"].is_array(), "{answer}");
    }
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn command_line_says_what_it_is_for() {
    let output = |arguments: &[&str]| {
        let command = std::process::Command::new(env!("CARGO_BIN_EXE_tfrt"))
            .args(arguments)
            .output()
            .expect("the command runs");
        String::from_utf8(command.stdout).expect("help is text")
    };
    assert!(output(&["--help"]).contains("lsp"));
    assert!(output(&["lsp", "--help"]).contains("Language Server Protocol"));
}

#[test]
fn what_is_no_session_is_told_to_people_too() {
    let cases = [
        ("Foo: 1\r\n\r\n{}", "found \"Foo: 1\""),
        ("Foo: 1\r\nBar: 2\r\n", "found \"Foo: 1\""),
        ("hello\n", "found \"hello\""),
        ("Content-Length: x\r\n\r\n", "found \"x\""),
    ];
    for (text, found) in cases {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tfrt"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut input = child.stdin.take().expect("it is a pipe");
        input.write_all(text.as_bytes()).expect("it is read");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text:?}: {said}");
        assert!(
            said.contains("Content-Length") && said.contains(found),
            "{text:?}: {said}"
        );
    }
}
