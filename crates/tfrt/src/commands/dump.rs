//! `tfrt dump`: every byte of a file with its meaning.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use tfrt::bef::BefFile;
use tfrt::bef::listing::{self, Piece, PieceKind};
use tfrt::input::Input;
use tfrt::ir::visible;

use crate::console::json;
use crate::failure::{ExitStatus, Failure};
use crate::options::DumpOptions;

/// The name of the report's JSON schema.
pub const SCHEMA: &str = "tfrt.dump/1";

/// The number of bytes of a piece that are shown.
const SHOWN_BYTES: usize = 8;

/// Lists the pieces of a file.
pub fn dump(options: &DumpOptions) -> Result<ExitStatus, Failure> {
    let input = Input::read(&options.file)?;
    let file = input.open()?;
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let document = Document {
            schema: SCHEMA,
            file: input.name(),
            len_bytes: file.buffer().as_bytes().len(),
            pieces: Pieces(&file),
        };
        json::write(&mut out, &document)?;
        out.write_all(b"\n")?;
    } else {
        let mut done = Ok(());
        listing::list(&file, &mut |piece| {
            if done.is_ok() {
                done = write_piece(&mut out, file.buffer().as_bytes(), &piece);
            }
        });
        done?;
    }
    out.flush()?;
    Ok(ExitStatus::Fine)
}

/// Writes a line: offset, the first bytes, what they mean.
fn write_piece(out: &mut impl Write, bytes: &[u8], piece: &Piece) -> io::Result<()> {
    let bytes = &bytes[piece.start..piece.end];
    let mut shown = String::new();
    for byte in bytes.iter().take(SHOWN_BYTES) {
        write!(shown, "{byte:02x} ").expect("a String takes all text");
    }
    if bytes.len() > SHOWN_BYTES {
        shown.push_str("..");
    }
    if piece.kind == PieceKind::Head && piece.section.is_some() {
        writeln!(out)?;
    }
    let text = visible::name(&piece.text);
    writeln!(out, "{:08x}  {shown:<26}  {text}", piece.start)
}

#[derive(Serialize)]
struct Document<'d> {
    schema: &'static str,
    file: &'d str,
    len_bytes: usize,
    pieces: Pieces<'d>,
}

/// The pieces of a file as a JSON list, made while they are written.
struct Pieces<'d>(&'d BefFile);

#[derive(Serialize)]
struct Shown<'p> {
    start: usize,
    end: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    section: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    section_name: Option<&'static str>,
    kind: &'static str,
    text: &'p str,
}

impl Serialize for Pieces<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let mut done = Ok(());
        listing::list(self.0, &mut |piece| {
            if done.is_ok() {
                done = list.serialize_element(&Shown {
                    start: piece.start,
                    end: piece.end,
                    section: piece.section,
                    section_name: piece.section.map(listing::section_name),
                    kind: piece.kind.name(),
                    text: piece.text.trim_start(),
                });
            }
        });
        done?;
        list.end()
    }
}
