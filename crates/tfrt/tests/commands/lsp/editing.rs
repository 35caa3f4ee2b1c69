//! Diagnostics while a text is edited, and answers on texts that are large.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, Encoding, URI};

/// Opens each text; tells what is said of it.
fn check_diagnostics(cases: &[(&str, &str)]) {
    let mut client = Client::new(Encoding::Utf16);
    for (text, expected) in cases {
        client.set_text(text);
        assert_eq!(client.diagnostic_lines(), *expected, "{text}");
    }
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn each_stage_says_what_is_wrong() {
    check_diagnostics(&[
        ("func.func @f() {\n  tfrt.return\n}\n", ""),
        // Parse.
        (
            "func.func @f() {\n  tfrt.retrun\n  oops.a\n  tfrt.return\n}",
            "1:2-1:13 1 custom op 'tfrt.retrun' is unknown\n\
             help: there is an operation 'tfrt.return'\n\
             2:2-2:8 1 custom op 'oops.a' is unknown\n\
             help: a kernel of your own is written in generic form: \"oops.a\"(...) : (...) -> ...\n",
        ),
        // Verify.
        (
            "func.func @f() -> i32 {\n  %x = tfrt.constant.i64 1\n  tfrt.return %x : i64\n}",
            "2:14-2:16 1 type of return operand 0 ('i64') doesn't match function result type \
             ('i32')\n",
        ),
        // Load.
        (
            "func.func @f() {\n  %x = \"tfrt.minus.i33\"() : () -> i32\n  tfrt.return\n}",
            "1:7-1:23 1 unknown kernel name 'tfrt.minus.i33'\n\
             help: there is a kernel 'tfrt.minus.i32'\n",
        ),
        // Load, where the text says that it comes from elsewhere.
        (
            "func.func @f() {\n  \"nothing\"() : () -> () loc(\"model.py\":3:4)\n  tfrt.return\n}",
            "1:2-1:11 1 unknown kernel name 'nothing'\n",
        ),
        // Columns in units of two bytes.
        (
            "func.func @f() {\n  \"é🦀\"() {a = \"🦀\"} : () -> () oops\n  tfrt.return\n}",
            "1:32-1:36 1 custom op 'oops' is unknown\n\
             help: operations are named with their dialect, as 'tfrt.return' is\n",
        ),
        ("func.func @f() {\r\n  tfrt.return\r\n}\r\n", ""),
        ("\u{feff}func.func @f() {\n  tfrt.return\n}", ""),
        ("", ""),
    ]);
}

#[test]
fn notes_have_places_of_their_own() {
    let mut client = Client::new(Encoding::Utf16);
    client.set_text("%x = tfrt.constant.i32 1\n%x = tfrt.constant.i32 2");
    let (list, version) = client.diagnostics();
    assert_eq!(version, 1);
    let [diagnostic] = list.as_slice() else {
        panic!("expected one, found {list:?}");
    };
    assert_eq!(diagnostic["source"], "tfrt");
    let code = diagnostic["code"].as_str();
    assert!(code.is_some_and(|code| code.starts_with("TF")), "{code:?}");
    assert_eq!(
        diagnostic["relatedInformation"],
        json!([{
            "location": {
                "uri": URI,
                "range": {
                    "start": {"line": 0, "character": 0},
                    "end": {"line": 0, "character": 2},
                },
            },
            "message": "previously defined here",
        }])
    );
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn mending_a_text_takes_its_errors_back() {
    let mut client = Client::new(Encoding::Utf16);
    client.set_text("func.func @f() {\n  \"🦀\"() : () -> () tfrt.retrun\n}");
    let (list, _) = client.diagnostics();
    assert_eq!(list.len(), 1);
    // In units of two bytes the word begins at column 20.
    let range = json!({
        "start": {"line": 1, "character": 20},
        "end": {"line": 1, "character": 31},
    });
    assert_eq!(list[0]["range"], range);
    client.change(json!([
        {"range": range, "text": "tfrt.return"},
        {"range": {
            "start": {"line": 1, "character": 2},
            "end": {"line": 1, "character": 20},
        }, "text": ""},
    ]));
    let (list, version) = client.diagnostics();
    assert_eq!((list, version), (Vec::new(), json!(2)));
    let place = json!({
        "textDocument": {"uri": URI},
        "position": {"line": 1, "character": 4},
    });
    let hover = client.ask("textDocument/hover", place);
    assert!(
        hover["contents"]["value"]
            .to_string()
            .contains("tfrt.return")
    );
    // A text that is closed has no diagnostics, and there is nothing to ask of it.
    client.set_text("oops");
    client.tell(
        "textDocument/didClose",
        json!({"textDocument": {"uri": URI}}),
    );
    let mut last = client.diagnostics();
    if last.1 == json!(3) {
        last = client.diagnostics();
    }
    assert_eq!(last, (Vec::new(), Value::Null));
    let params = json!({"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}});
    let (code, message) = client.ask_in_vain("textDocument/hover", params);
    assert_eq!(code, -32602);
    assert!(message.contains("not open"), "{message}");
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn questions_are_answered_on_the_text_as_it_was() {
    let mut client = Client::new(Encoding::Utf16);
    let texts = ["%x = tfrt.constant.i32 1", "%y = tfrt.constant.i64 1"];
    let mut asked = Vec::new();
    for turn in 0..20 {
        client.set_text(texts[turn % 2]);
        let place = client.place(texts[turn % 2], 1);
        asked.push((turn, client.begin("textDocument/hover", place)));
    }
    for (turn, id) in asked {
        let answer = client.answer_to(id).to_string();
        assert!(
            answer.contains(["%x : i32", "%y : i64"][turn % 2]),
            "{answer}"
        );
    }
    assert_eq!(client.shut_down(), 0);
}

/// Returns a text of about so many bytes, of functions whose values all are used.
fn large_text(len_bytes: usize) -> String {
    let mut text = String::with_capacity(len_bytes + 1000);
    let mut function = 0;
    while text.len() < len_bytes {
        text.push_str(&format!("func.func @f{function}(%x0: i32) -> i32 {{\n"));
        for value in 1..50 {
            let before = value - 1;
            text.push_str(&format!("  %x{value} = tfrt.add.i32 %x{before}, %x0\n"));
        }
        text.push_str("  tfrt.return %x49 : i32\n}\n");
        function += 1;
    }
    text
}

#[test]
fn large_text_is_looked_at_while_it_is_edited() {
    let text = large_text(5_000_000);
    let lines = text.matches('\n').count();
    let begun = Instant::now();
    let mut client = Client::new(Encoding::Utf16);
    client.set_text(&text);
    // Somebody types, faster than the text can be checked.
    let end = json!({"line": lines, "character": 99});
    let letters = "tfrt.oops"
        .chars()
        .map(|letter| json!([{"range": {"start": end, "end": end}, "text": letter.to_string()}]));
    client.change_at_once(letters);
    let place = json!({"textDocument": {"uri": URI}, "position": {"line": 1, "character": 3}});
    let hover = client.ask("textDocument/hover", place);
    assert!(
        hover["contents"]["value"].to_string().contains("used once"),
        "{hover}"
    );
    let answered = begun.elapsed();
    // Of all versions the last alone is reported, or the first, too, if there was time for it.
    loop {
        let (list, version) = client.diagnostics();
        if version == json!(10) {
            assert_eq!(list.len(), 1);
            break;
        }
        assert_eq!(version, json!(1), "superseded versions are passed over");
    }
    let told = begun.elapsed();
    assert!(told < Duration::from_secs(30), "{answered:?} {told:?}");
    println!("answered after {answered:?}, told after {told:?}");
    assert_eq!(client.shut_down(), 0);
}
