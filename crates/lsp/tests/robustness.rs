//! Tests that every request is answered, whatever the text, and none by a fault of the server.

use std::{
    io::{self, BufReader, Read, Write},
    sync::{Arc, Condvar, Mutex},
};

use serde_json::{Value, json};
use tfrt_ir::{Diagnostics, Dialects, Module, Source, verify};
use tfrt_lsp::{Checker, SessionEnd, serve};

/// A text with something of everything.
const TEXT: &str = r#"!t = tuple<i32, !tfrt.chain>
#a = [1 : i32, "é🦀"] // comment
module @m attributes {x.y = #a} {
  func.func private @n(i32 {a.b}, i64) -> (i32, !t) attributes {tfrt.native}
  func.func @f(%n: i32, %x: i32 loc(#l)) -> i32 {
    %p:2, %q = "t.é🦀"(%x, %p#1) ({
    ^b(%v: f32):
      "t.br"(%v)[^b] : (f32) -> ()
    }) {a = @m::@"o d", b = dense<[1, 2]> : tensor<2xi32>} : (i32, i32) -> (i32, i32, f64)
    %y = tfrt.repeat.i32 %n, %x : i32 {
      %z = tfrt.add.i32 %x, %x
      tfrt.return %z : i32
    }
    %w = tfrt.call @f(%y, %x) : (i32, i32) -> i32
    tfrt.return %w : i32
  }
}
#l = loc(fused["x":1:2, #k])
#k = loc("y")
"#;

const QUESTIONS: [&str; 7] = [
    "hover",
    "definition",
    "references",
    "documentHighlight",
    "completion",
    "rename",
    "prepareRename",
];

#[derive(Default)]
struct Verifier(Dialects);

impl Checker for Verifier {
    fn problems(&self, _: &Source, module: &Module) -> Diagnostics {
        verify(module).err().unwrap_or_default()
    }

    fn dialects(&self) -> &Dialects {
        &self.0
    }

    fn kernel_signature(&self, _: &str) -> Option<String> {
        None
    }

    fn kernel_names(&self) -> Vec<String> {
        vec!["tfrt.add.i32".to_owned(), "a \"b\"".to_owned()]
    }
}

/// Both ends of a conversation: what is to be said, text by text, and what was heard.
#[derive(Default)]
struct Talk {
    said: Vec<Vec<u8>>,
    heard: Vec<u8>,
}

#[derive(Clone, Default)]
struct Editor(Arc<(Mutex<Talk>, Condvar)>);

const PUBLISH: &[u8] = b"publishDiagnostics";

impl Read for Editor {
    /// Says what there is on the next text once diagnostics of the last have been heard.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (talk, changed) = &*self.0;
        let mut talk = talk.lock().unwrap();
        loop {
            match talk.said.last_mut() {
                None => return Ok(0),
                Some(said) if said.is_empty() => {
                    if !talk
                        .heard
                        .windows(PUBLISH.len())
                        .any(|part| part == PUBLISH)
                    {
                        talk = changed.wait(talk).unwrap();
                        continue;
                    }
                    talk.said.pop();
                    talk.heard.clear();
                }
                Some(said) => {
                    let len = said.len().min(buffer.len());
                    buffer[..len].copy_from_slice(&said[..len]);
                    said.drain(..len);
                    return Ok(len);
                }
            }
        }
    }
}

impl Write for Editor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains("-32603"), "{text}");
        assert!(!text.contains("a fault of"), "{text}");
        let (talk, changed) = &*self.0;
        talk.lock().unwrap().heard.extend(bytes);
        changed.notify_one();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn framed(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Opens a text and asks everything at some places.
fn conversation(text: &str, columns: &[usize]) -> Vec<u8> {
    let uri = "file:///a.mlir";
    let item = json!({"uri": uri, "languageId": "mlir", "version": 1, "text": text});
    let mut bytes = framed(&json!({
        "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item},
    }));
    for &offset in columns {
        let before = &text[..text.floor_char_boundary(offset)];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let position = json!({
            "line": before.matches('\n').count(),
            "character": before[start..].encode_utf16().count(),
        });
        for question in QUESTIONS {
            bytes.extend(framed(&json!({
                "jsonrpc": "2.0", "id": 1, "method": format!("textDocument/{question}"),
                "params": {
                    "textDocument": {"uri": uri}, "position": position, "newName": "w",
                    "context": {"includeDeclaration": true},
                },
            })));
        }
    }
    bytes.extend(framed(&json!({
        "jsonrpc": "2.0", "id": 2, "method": "textDocument/documentSymbol",
        "params": {"textDocument": {"uri": uri}},
    })));
    bytes
}

/// Talks about each text in turn.
fn check(texts: impl DoubleEndedIterator<Item = (String, Vec<usize>)>) {
    let mut said: Vec<Vec<u8>> = texts
        .rev()
        .map(|(text, columns)| conversation(&text, &columns))
        .collect();
    let begin = framed(&json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}},
    }));
    if let Some(first) = said.last_mut() {
        first.splice(..0, begin);
    }
    let editor = Editor::default();
    editor.0.0.lock().unwrap().said = said;
    let end = serve(
        BufReader::new(editor.clone()),
        editor,
        &Verifier::default(),
        "0",
    );
    assert_eq!(end, SessionEnd::Abrupt);
}

#[test]
fn every_place_of_a_text_can_be_asked_of() {
    check([(TEXT.to_owned(), (0..TEXT.len()).collect())].into_iter());
}

#[test]
fn every_prefix_is_a_text() {
    let ends: Vec<usize> = TEXT.char_indices().map(|(at, _)| at).collect();
    check(ends.into_iter().map(|end| {
        let last = [end, end.saturating_sub(1), end / 2];
        (TEXT[..end].to_owned(), last.to_vec())
    }));
}

#[test]
fn every_text_without_a_piece_is_a_text() {
    let places: Vec<usize> = TEXT.char_indices().map(|(at, _)| at).collect();
    check(places.into_iter().enumerate().map(|(number, start)| {
        let end = TEXT.ceil_char_boundary((start + number % 7).min(TEXT.len()));
        let text = [&TEXT[..start], &TEXT[end..]].concat();
        let columns = vec![start, start + 1, text.len() / 2, text.len()];
        (text, columns)
    }));
}
