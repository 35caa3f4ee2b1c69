//! An editor, as far as a test needs one.

use std::{
    io::{BufRead, BufReader, Write},
    ops::Range,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// Longer than any answer takes, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub const URI: &str = "file:///dir/a.mlir";

/// The unit that columns count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16,
}

/// A running server and the editor's side of the conversation.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Notifications that came while an answer was waited for.
    told: Vec<Value>,
    next_id: i64,
    version: i64,
    encoding: Encoding,
}

impl Client {
    /// Starts a server and says nothing.
    pub fn start() -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tfrt"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("it is a pipe");
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Client {
            child,
            input,
            messages,
            told: Vec::new(),
            next_id: 0,
            version: 0,
            encoding: Encoding::Utf16,
        }
    }

    /// Starts a server and introduces an editor that can do everything.
    pub fn new(encoding: Encoding) -> Client {
        let mut client = Client::start();
        client.encoding = encoding;
        let encodings = match encoding {
            Encoding::Utf8 => json!(["utf-8", "utf-16"]),
            Encoding::Utf16 => json!(["utf-16"]),
        };
        let result = client.ask(
            "initialize",
            json!({"processId": null, "rootUri": null, "capabilities": {
                "general": {"positionEncodings": encodings},
                "textDocument": {
                    "hover": {"contentFormat": ["markdown", "plaintext"]},
                    "publishDiagnostics": {"relatedInformation": true, "versionSupport": true},
                    "rename": {"prepareSupport": true},
                    "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
                },
            }}),
        );
        let name = match encoding {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
        };
        assert_eq!(result["capabilities"]["positionEncoding"], name);
        client.tell("initialized", json!({}));
        client
    }

    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the stream is open");
        input.write_all(bytes).expect("the server reads");
        input.flush().expect("the server reads");
    }

    pub fn send(&mut self, message: &Value) {
        self.write(framed(message).as_bytes());
    }

    pub fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request without waiting; returns its id.
    pub fn begin(&mut self, method: &str, params: Value) -> i64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Returns the next message.
    pub fn receive(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE);
        message.expect("the server says something in time")
    }

    /// Returns the answer to what was no request.
    pub fn answer_to_nothing(&mut self) -> Value {
        self.answer_to(Value::Null)
    }

    /// Returns the answer to a request, with `result` or `error`.
    pub fn answer_to(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            let message = self.receive();
            if message.get("id") == Some(&id) {
                return message;
            }
            assert!(message["method"].is_string(), "{message}");
            self.told.push(message);
        }
    }

    /// Asks, and returns the result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.answer_to(id);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Asks what can't be answered, and returns the code and the message of the error.
    pub fn ask_in_vain(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.begin(method, params);
        let answer = self.answer_to(id);
        let code = answer["error"]["code"].as_i64();
        let message = answer["error"]["message"].as_str();
        (
            code.unwrap_or_else(|| panic!("expected an error, found {answer}")),
            message.expect("an error has a message").to_owned(),
        )
    }

    /// Opens a text, or puts it in the place of the one that is open.
    pub fn set_text(&mut self, text: &str) {
        if self.version > 0 {
            return self.change(json!([{"text": text}]));
        }
        self.version = 1;
        let item = json!({"uri": URI, "languageId": "mlir", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": item}));
    }

    /// Changes the text.
    pub fn change(&mut self, changes: Value) {
        self.change_at_once([changes].into_iter());
    }

    /// Changes the text several times in one breath.
    pub fn change_at_once(&mut self, all: impl Iterator<Item = Value>) {
        let mut bytes = String::new();
        for changes in all {
            self.version += 1;
            let id = json!({"uri": URI, "version": self.version});
            bytes += &framed(&json!({
                "jsonrpc": "2.0",
                "method": "textDocument/didChange",
                "params": {"textDocument": id, "contentChanges": changes},
            }));
        }
        self.write(bytes.as_bytes());
    }

    /// Returns the next diagnostics of a text.
    pub fn published(&mut self, uri: &str) -> Vec<Value> {
        loop {
            let message = self.receive();
            let params = &message["params"];
            if params["uri"] == uri {
                return params["diagnostics"]
                    .as_array()
                    .expect("it is a list")
                    .clone();
            }
        }
    }

    /// Returns the next diagnostics that are published, and for which version.
    pub fn diagnostics(&mut self) -> (Vec<Value>, Value) {
        let message = match self.told.is_empty() {
            true => self.receive(),
            false => self.told.remove(0),
        };
        assert_eq!(message["method"], "textDocument/publishDiagnostics");
        let params = &message["params"];
        assert_eq!(params["uri"], URI);
        let list = params["diagnostics"].as_array().expect("it is a list");
        (list.clone(), params["version"].clone())
    }

    /// Returns the next diagnostics as lines `LINE:COLUMN-LINE:COLUMN SEVERITY MESSAGE`, from 0.
    pub fn diagnostic_lines(&mut self) -> String {
        let (list, _) = self.diagnostics();
        let lines = list.iter().map(|diagnostic| {
            let range = show_range(&diagnostic["range"]);
            let message = diagnostic["message"].as_str().expect("it has a message");
            format!("{range} {} {message}\n", diagnostic["severity"])
        });
        lines.collect()
    }

    /// Ends the session as agreed; returns the exit status.
    pub fn shut_down(mut self) -> i32 {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.tell("exit", Value::Null);
        self.wait()
    }

    /// Closes the stream; returns the exit status.
    pub fn hang_up(mut self) -> i32 {
        self.input = None;
        self.wait()
    }

    /// Returns the exit status.
    pub fn wait(&mut self) -> i32 {
        let status = self.child.wait().expect("the server ends");
        status.code().expect("the server ends by itself")
    }

    /// Returns the parameters that name an offset.
    pub fn place(&self, text: &str, offset: usize) -> Value {
        json!({"textDocument": {"uri": URI}, "position": self.position(text, offset)})
    }

    pub fn position(&self, text: &str, offset: usize) -> Value {
        let before = &text[..offset];
        let line = before.matches('\n').count();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = match self.encoding {
            Encoding::Utf8 => offset - start,
            Encoding::Utf16 => text[start..offset].encode_utf16().count(),
        };
        json!({"line": line, "character": column})
    }

    pub fn range(&self, text: &str, range: &Range<usize>) -> Value {
        json!({"start": self.position(text, range.start), "end": self.position(text, range.end)})
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Of a test that failed; one that ended is not there any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn framed(message: &Value) -> String {
    let body = message.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

fn show_range(range: &Value) -> String {
    let [start, end] = ["start", "end"].map(|end| {
        let position = &range[end];
        format!("{}:{}", position["line"], position["character"])
    });
    format!("{start}-{end}")
}

/// Reads a message; `None` at the end of the stream.
fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut len_bytes = None;
    loop {
        let mut line = String::new();
        output.read_line(&mut line).ok()?;
        match line.strip_suffix("\r\n")? {
            "" => break,
            header => {
                let length = header.strip_prefix("Content-Length: ");
                len_bytes = length.and_then(|length| length.parse().ok()).or(len_bytes);
            }
        }
    }
    let mut body = vec![0; len_bytes.expect("each message has its length")];
    output.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("the server writes JSON"))
}

/// A text with `$0` where the cursor is, and pieces in `«»`.
pub struct Marked {
    pub text: String,
    pub cursor: usize,
    pub pieces: Vec<Range<usize>>,
}

impl Marked {
    pub fn new(marked: &str) -> Marked {
        let mut found = Marked {
            text: String::new(),
            cursor: usize::MAX,
            pieces: Vec::new(),
        };
        let mut rest = marked;
        let mut open = Vec::new();
        while let Some(first) = rest.chars().next() {
            let at = found.text.len();
            if let Some(behind) = rest.strip_prefix("$0") {
                found.cursor = at;
                rest = behind;
                continue;
            }
            match first {
                '«' => open.push(at),
                '»' => {
                    let start = open.pop().expect("marks come in pairs");
                    found.pieces.push(start..at);
                }
                _ => found.text.push(first),
            }
            rest = &rest[first.len_utf8()..];
        }
        assert_ne!(found.cursor, usize::MAX, "no cursor in {marked}");
        found.pieces.sort_by_key(|piece| piece.start);
        found
    }
}
