//! The transport of messages: a header with the length, an empty line, JSON.
//!
//! A header that makes no sense is reported once, and everything up to the next header that does is
//! skipped, so that one wrong length does not end the session. Lengths are not believed: memory is
//! taken as bytes arrive.

use std::{
    io::{self, BufRead, Read, Write},
    sync::mpsc::{Receiver, sync_channel},
    thread,
};

use serde::Serialize;
use serde_json::Value;

use crate::message::Message;

/// The longest message that is read: an editor sends no longer ones.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// The longest line of a header.
const MAX_HEADER_BYTES: u64 = 4096;

/// The most messages that wait to be handled; the editor waits when there are more.
const MAX_WAITING: usize = 64;

/// Reads messages on a thread of its own until the stream ends, which closes the channel.
pub(crate) fn listen(input: impl BufRead + Send + 'static) -> Receiver<Message> {
    let (sender, receiver) = sync_channel(MAX_WAITING);
    // Without a thread there is nothing to hear, which is what a closed channel says.
    let _ = thread::Builder::new()
        .name("lsp-reader".to_owned())
        .spawn(move || {
            let mut frames = Frames {
                input,
                is_lost: false,
            };
            // An error of the stream is its end.
            while let Ok(Some(message)) = frames.next() {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
    receiver
}

/// Writes a message.
pub(crate) fn write(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    write!(output, "Content-Length: {}\r\n\r\n", body.len())?;
    output.write_all(&body)?;
    output.flush()
}

/// A reader of a stream's messages.
struct Frames<R> {
    input: R,
    /// Whether bytes are skipped until a header is found.
    is_lost: bool,
}

enum Header {
    LenBytes(usize),
    Wrong(String),
    End,
}

impl<R: BufRead> Frames<R> {
    /// Reads a message, or the error of bytes that are none; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Message>> {
        let len_bytes = match self.header()? {
            Header::End => return Ok(None),
            Header::Wrong(reason) => return Ok(Some(Message::unreadable(reason))),
            Header::LenBytes(len_bytes) => len_bytes,
        };
        let mut body = Vec::new();
        let input = self.input.by_ref();
        input.take(len_bytes as u64).read_to_end(&mut body)?;
        if body.len() < len_bytes {
            return Ok(None);
        }
        Ok(Some(match serde_json::from_slice::<Value>(&body) {
            Ok(value) => Message::from_json(value),
            Err(error) => {
                // Its length may have been wrong, and a part of the next header be gone.
                self.is_lost = true;
                Message::unreadable(format!("the content is not JSON: {error}"))
            }
        }))
    }

    /// Reads lines up to the empty one behind a `Content-Length`.
    fn header(&mut self) -> io::Result<Header> {
        let mut found = None;
        let mut other: Option<String> = None;
        let mut line = Vec::new();
        loop {
            line.clear();
            let input = self.input.by_ref();
            let len_bytes = input.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') && (len_bytes as u64) < MAX_HEADER_BYTES {
                return Ok(match other {
                    Some(other) if found.is_none() => self.without_length(&other),
                    _ => Header::End,
                });
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\r', '\n']);
            if let Some(value) = content_length(text) {
                match value.parse() {
                    Ok(len_bytes) if len_bytes <= MAX_MESSAGE_BYTES => found = Some(len_bytes),
                    _ => {
                        self.is_lost = true;
                        return Ok(Header::Wrong(format!(
                            "expected a Content-Length of at most {MAX_MESSAGE_BYTES}, found \
                             {value:?}"
                        )));
                    }
                }
                self.is_lost = false;
            } else if let (true, Some(len_bytes)) = (text.is_empty(), found) {
                return Ok(Header::LenBytes(len_bytes));
            } else if let (true, Some(other)) = (text.is_empty(), &other) {
                return Ok(self.without_length(other));
            } else if self.is_lost {
                continue;
            } else if !is_header(text) {
                return Ok(self.without_length(text));
            } else if !text.is_empty() && other.is_none() {
                other = Some(text.to_owned());
            }
        }
    }

    /// Skips what follows a header without its length.
    fn without_length(&mut self, found: &str) -> Header {
        self.is_lost = true;
        let shown: String = found.chars().take(40).collect();
        Header::Wrong(format!(
            "expected a header with Content-Length, found {shown:?}"
        ))
    }
}

/// Returns the value of `Content-Length`, wherever in the line it stands: a message that is longer
/// than it said leaves its rest before the next header.
fn content_length(line: &str) -> Option<&str> {
    const NAME: &str = "content-length:";
    let at = line.to_ascii_lowercase().rfind(NAME)?;
    Some(line[at + NAME.len()..].trim())
}

/// Returns whether a line is some other header, or the empty line between headers and content.
fn is_header(line: &str) -> bool {
    line.is_empty()
        || line.split_once(':').is_some_and(|(name, _)| {
            let in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !name.is_empty() && name.bytes().all(in_name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists what comes out of bytes: methods, and `!` for what can't be read.
    fn methods(bytes: &str) -> String {
        let mut frames = Frames {
            input: bytes.as_bytes(),
            is_lost: false,
        };
        let mut names = Vec::new();
        while let Ok(Some(message)) = frames.next() {
            names.push(match message {
                Message::Notification { method, .. } | Message::Request { method, .. } => method,
                Message::Response => "response".to_owned(),
                Message::Invalid { .. } => "!".to_owned(),
            });
        }
        names.join(" ")
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    const A: &str = r#"{"jsonrpc":"2.0","method":"a"}"#;
    const B: &str = r#"{"jsonrpc":"2.0","id":1,"method":"b"}"#;

    #[test]
    fn messages_follow_each_other() {
        let bytes = framed(A) + &framed(B) + &framed(r#"{"id":1,"result":null}"#);
        assert_eq!(methods(&bytes), "a b response");
        let other = "content-length:30 \r\nContent-Type: application/x\r\n\r\n";
        assert_eq!(methods(&format!("{other}{A}")), "a");
    }

    #[test]
    fn what_is_no_message_is_told_and_skipped() {
        let noise = [
            framed("{"),
            framed("[]"),
            framed("17"),
            framed("\u{fffd}"),
            "GET / HTTP/1.1\r\n\r\n".to_owned(),
            "Content-Type: x\r\n\r\n{}".to_owned(),
            "Content-Type: x\r\nOther: y\r\n\r\n{}\r\n\r\n".to_owned(),
            "Content-Length: x\r\n\r\n".to_owned(),
            "Content-Length: -1\r\n\r\n".to_owned(),
            "Content-Length: 99999999999999999999\r\n\r\n".to_owned(),
            "Content-Length: 9999999999\r\n\r\n{}".to_owned(),
            "x".repeat(100_000) + "\r\n",
            framed(&"[".repeat(100_000)),
        ];
        for noise in noise {
            let bytes = format!("{}{noise}{}", framed(A), framed(B));
            assert_eq!(
                methods(&bytes),
                "a ! b",
                "{}",
                &noise[..noise.len().min(40)]
            );
        }
    }

    #[test]
    fn wrong_length_costs_what_it_covers() {
        let short = format!("Content-Length: 10\r\n\r\n{A}");
        assert_eq!(methods(&(short + &framed(B))), "! b");
        let long = format!("Content-Length: 40\r\n\r\n{A}");
        assert_eq!(methods(&(long + &framed(B) + &framed(A))), "! a");
    }

    #[test]
    fn stream_may_end_anywhere() {
        let bytes = framed(A);
        for end in 0..bytes.len() {
            assert_eq!(methods(&bytes[..end]), "");
        }
        assert_eq!(methods("\r\n\r\n"), "");
        assert_eq!(methods("Content-Type: x\r\n"), "!");
        assert_eq!(methods("Content-Type: x\r\n\r\n{}"), "!");
    }
}
