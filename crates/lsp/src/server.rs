//! The session: which requests are allowed when, in which order they are answered, and when
//! diagnostics are sent.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Instant,
};

use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    PublishDiagnosticsParams, Uri,
    notification::{
        DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _,
        PublishDiagnostics,
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Checker, SessionEnd,
    capabilities::{Editor, offer},
    diagnostics::{self, DiagnosedText},
    document::Document,
    message::{Failure, Id, Message, Notification, Outcome, Response, Version, code},
    requests, transport,
};

/// The stage of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Not initialized: nothing but `initialize` is allowed.
    New,
    Running,
    /// Shut down: nothing but `exit` is allowed.
    ShutDown,
}

/// One editor's session.
pub(crate) struct Server<'c, W> {
    output: W,
    pub checker: &'c dyn Checker,
    version: &'c str,
    stage: Stage,
    pub editor: Editor,
    documents: HashMap<String, Document>,
    /// The messages that were received and not handled.
    inbox: VecDeque<Message>,
    /// The requests in the inbox that were cancelled.
    cancelled: HashSet<Id>,
    /// The reason why the last bytes could not be read.
    unreadable: Option<String>,
}

/// The most messages in the inbox; more wait in the channel.
const MAX_INBOX: usize = 256;

impl<'c, W: Write> Server<'c, W> {
    pub fn new(output: W, checker: &'c dyn Checker, version: &'c str) -> Server<'c, W> {
        Server {
            output,
            checker,
            version,
            stage: Stage::New,
            editor: Editor::default(),
            documents: HashMap::new(),
            inbox: VecDeque::new(),
            cancelled: HashSet::new(),
            unreadable: None,
        }
    }

    /// Serves until the editor leaves.
    pub fn run(&mut self, messages: &Receiver<Message>) -> SessionEnd {
        // An editor that does not listen any more has left.
        match self.try_run(messages) {
            Ok(end) => end,
            Err(_) => self.end(),
        }
    }

    fn try_run(&mut self, messages: &Receiver<Message>) -> io::Result<SessionEnd> {
        loop {
            self.receive(messages);
            let next = match self.inbox.pop_front() {
                Some(message) => Some(message),
                None => match self.wait(messages) {
                    Ok(message) => message,
                    Err(Closed) => return Ok(self.end()),
                },
            };
            match next {
                Some(Message::Notification { method, .. }) if method == "exit" => {
                    return Ok(self.end());
                }
                Some(message) => self.take(message)?,
                None => self.diagnose(messages)?,
            }
        }
    }

    fn end(&mut self) -> SessionEnd {
        match (self.stage, self.unreadable.take()) {
            (Stage::ShutDown, _) => SessionEnd::Orderly,
            (Stage::New | Stage::Running, Some(reason)) => SessionEnd::Unreadable(reason),
            (Stage::New | Stage::Running, None) => SessionEnd::Abrupt,
        }
    }

    /// Takes all that has arrived, and heeds cancellations at once.
    fn receive(&mut self, messages: &Receiver<Message>) {
        while self.inbox.len() < MAX_INBOX
            && let Ok(message) = messages.try_recv()
        {
            self.queue(message);
        }
    }

    fn queue(&mut self, message: Message) {
        match message {
            Message::Notification { method, params } if method == "$/cancelRequest" => {
                let id = params.get("id").and_then(Id::from_json);
                let waits = |id: &Id| {
                    let mut inbox = self.inbox.iter();
                    inbox.any(
                        |other| matches!(other, Message::Request { id: other, .. } if other == id),
                    )
                };
                self.cancelled.extend(id.filter(waits));
            }
            message => self.inbox.push_back(message),
        }
    }

    /// Waits for a message; `None` if a document is due before one comes.
    fn wait(&mut self, messages: &Receiver<Message>) -> Result<Option<Message>, Closed> {
        // Cancellations of what is done leave the inbox empty.
        while self.inbox.is_empty() {
            let message = match self.due() {
                None => messages.recv().map_err(|_| Closed)?,
                Some((when, _)) => {
                    let left = when.saturating_duration_since(Instant::now());
                    match messages.recv_timeout(left) {
                        Ok(message) => message,
                        Err(RecvTimeoutError::Timeout) => return Ok(None),
                        Err(RecvTimeoutError::Disconnected) => return Err(Closed),
                    }
                }
            };
            self.queue(message);
        }
        Ok(self.inbox.pop_front())
    }

    /// Returns which document is due next, and when.
    fn due(&self) -> Option<(Instant, String)> {
        let due = self
            .documents
            .iter()
            .filter_map(|(key, document)| Some((document.due?, key)));
        due.min().map(|(when, key)| (when, key.clone()))
    }

    fn take(&mut self, message: Message) -> io::Result<()> {
        self.unreadable = match &message {
            Message::Invalid { error, .. } if error.code == code::PARSE_ERROR => {
                Some(error.message.clone())
            }
            _ => None,
        };
        match message {
            Message::Request { id, method, params } => {
                let outcome = match self.cancelled.remove(&id) {
                    true => Err(Failure::new(code::REQUEST_CANCELLED, "cancelled")),
                    false => self.request(&method, params),
                };
                self.respond(&id, outcome)
            }
            Message::Notification { method, params } => self.notification(&method, params),
            Message::Response => Ok(()),
            Message::Invalid { id, error } => self.respond(&id, Err(error)),
        }
    }

    fn respond(&mut self, id: &Id, outcome: Result<Value, Failure>) -> io::Result<()> {
        let outcome = match outcome {
            Ok(value) => Outcome::Result(value),
            Err(failure) => Outcome::Error(failure),
        };
        let jsonrpc = Version::Two;
        transport::write(
            &mut self.output,
            &Response {
                jsonrpc,
                id,
                outcome,
            },
        )
    }

    fn notify(&mut self, method: &'static str, params: impl Serialize) -> io::Result<()> {
        let jsonrpc = Version::Two;
        transport::write(
            &mut self.output,
            &Notification {
                jsonrpc,
                method,
                params,
            },
        )
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        match (self.stage, method) {
            (Stage::New, "initialize") => Ok(self.initialize(&params)),
            (Stage::New, _) => Err(Failure::new(
                code::SERVER_NOT_INITIALIZED,
                "expected 'initialize' first",
            )),
            (Stage::ShutDown, _) => Err(Failure::new(
                code::INVALID_REQUEST,
                "the session is shut down",
            )),
            (Stage::Running, "initialize") => Err(Failure::new(
                code::INVALID_REQUEST,
                "the session is initialized already",
            )),
            (Stage::Running, "shutdown") => {
                self.stage = Stage::ShutDown;
                self.documents.clear();
                Ok(Value::Null)
            }
            (Stage::Running, _) => {
                // A fault of ours costs one answer, not the session.
                let answer = AssertUnwindSafe(|| requests::answer(self, method, params));
                catch_unwind(answer).unwrap_or_else(|_| {
                    let message = format!("'{method}' met a fault of the server");
                    Err(Failure::new(code::INTERNAL_ERROR, message))
                })
            }
        }
    }

    fn initialize(&mut self, params: &Value) -> Value {
        self.stage = Stage::Running;
        self.editor = Editor::new(params);
        offer(&self.editor, self.version)
    }

    /// Handles a notification. Nobody waits for an answer, so invalid ones are ignored.
    fn notification(&mut self, method: &str, params: Value) -> io::Result<()> {
        if self.stage != Stage::Running {
            return Ok(());
        }
        match method {
            DidOpenTextDocument::METHOD => {
                if let Some(params) = read(params) {
                    self.open(params);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(params) = read(params) {
                    self.change(params);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(params) = read(params) {
                    self.close(params)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, params: DidOpenTextDocumentParams) {
        let item = params.text_document;
        let key = item.uri.as_str().to_owned();
        let encoding = self.editor.encoding;
        let document = Document::new(item.uri, item.version, item.text, encoding);
        self.documents.insert(key, document);
    }

    fn change(&mut self, params: DidChangeTextDocumentParams) {
        let id = params.text_document;
        if let Some(document) = self.documents.get_mut(id.uri.as_str()) {
            document.change(id.version, params.content_changes);
        }
    }

    fn close(&mut self, params: DidCloseTextDocumentParams) -> io::Result<()> {
        let uri = params.text_document.uri;
        match self.documents.remove(uri.as_str()) {
            Some(_) => self.publish(uri, Vec::new(), None),
            None => Ok(()),
        }
    }

    /// Returns an open document.
    pub fn document(&mut self, uri: &Uri) -> Result<&mut Document, Failure> {
        let message = || format!("'{}' is not open", uri.as_str());
        self.documents
            .get_mut(uri.as_str())
            .ok_or_else(|| Failure::new(code::INVALID_PARAMS, message()))
    }

    /// Sends the diagnostics of the document that is due, unless its text changes meanwhile.
    fn diagnose(&mut self, messages: &Receiver<Message>) -> io::Result<()> {
        let begun = Instant::now();
        let Some((_, key)) = self.due() else {
            return Ok(());
        };
        let Some(document) = self.documents.get_mut(&key) else {
            return Ok(());
        };
        let dialects = self.checker.dialects();
        let parsed = catch_unwind(AssertUnwindSafe(|| document.analysis(dialects)));
        // It stays due: what has come meanwhile is heard first, and may change the text.
        self.receive(messages);
        if !self.inbox.is_empty() {
            return Ok(());
        }
        let Some(document) = self.documents.get_mut(&key) else {
            return Ok(());
        };
        let found = match parsed {
            Ok(None) => vec![diagnostics::too_large()],
            Ok(Some(analysis)) => {
                let place = DiagnosedText {
                    uri: &document.uri,
                    text: &document.text,
                    analysis: &analysis,
                    takes_related: self.editor.takes_related,
                };
                let found = catch_unwind(AssertUnwindSafe(|| place.diagnostics(self.checker)));
                found.unwrap_or_else(|_| vec![diagnostics::fault()])
            }
            Err(_) => vec![diagnostics::fault()],
        };
        document.due = None;
        document.cost = begun.elapsed();
        let (uri, version) = (document.uri.clone(), document.version);
        self.publish(uri, found, Some(version))
    }

    fn publish(
        &mut self,
        uri: Uri,
        diagnostics: Vec<lsp_types::Diagnostic>,
        version: Option<i32>,
    ) -> io::Result<()> {
        let version = version.filter(|_| self.editor.takes_versions);
        let params = PublishDiagnosticsParams::new(uri, diagnostics, version);
        self.notify(PublishDiagnostics::METHOD, params)
    }
}

/// The error of a stream that the editor has closed.
struct Closed;

fn read<P: DeserializeOwned>(params: Value) -> Option<P> {
    serde_json::from_value(params).ok()
}
