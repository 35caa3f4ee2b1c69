//! The header of an array: a dictionary in the syntax of Python.

use tfrt_host::Error;

use super::{ALIGNMENT_BYTES, ElementKind, MAGIC, NUMBERS, invalid};
use crate::TensorShape;

/// Header of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub descr: String,
    pub kind: ElementKind,
    /// Whether numbers are in the other byte order than the processor's.
    pub is_swapped: bool,
    /// The first dimension is the innermost.
    pub is_fortran: bool,
    pub shape: Vec<i64>,
}

impl Header {
    /// Reads the header, and returns it with the elements' bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<(Header, &[u8]), Error> {
        let rest = bytes.strip_prefix(MAGIC);
        let Some([major, _minor, rest @ ..]) = rest else {
            return Err(invalid("it does not begin as one"));
        };
        let (len, rest) = match (*major, rest) {
            (1, [a, b, rest @ ..]) => (usize::from(u16::from_le_bytes([*a, *b])), rest),
            (2 | 3, [a, b, c, d, rest @ ..]) => {
                let len = u32::from_le_bytes([*a, *b, *c, *d]);
                (usize::try_from(len).unwrap_or(usize::MAX), rest)
            }
            (1..=3, _) => return Err(invalid("it ends within the header")),
            (major, _) => {
                return Err(invalid(format!(
                    "it is of version {major}: expected 1 to 3"
                )));
            }
        };
        let Some((text, data)) = rest.split_at_checked(len) else {
            return Err(invalid("it ends within the header"));
        };
        let text = str::from_utf8(text).map_err(|_| invalid("the header is not UTF-8"))?;
        Ok((Parser { text, rest: text }.header()?, data))
    }
}

/// Reads the dictionary.
struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn header(mut self) -> Result<Header, Error> {
        let (mut descr, mut is_fortran, mut shape) = (None, None, None);
        self.expect("{")?;
        while !self.eat("}") {
            let key = self.string()?;
            self.expect(":")?;
            match key {
                "descr" => descr = Some(self.string()?),
                "fortran_order" => is_fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return Err(self.unexpected("'descr', 'fortran_order' or 'shape'")),
            }
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err(self.unexpected("the end of the header"));
        }
        let missing = |key: &str| invalid(format!("the header has no '{key}'"));
        let descr = descr.ok_or_else(|| missing("descr"))?;
        let (kind, is_swapped) = kind(descr)?;
        Ok(Header {
            kind,
            is_swapped,
            descr: descr.to_owned(),
            is_fortran: is_fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    fn eat(&mut self, wanted: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, wanted: &str) -> Result<(), Error> {
        match self.eat(wanted) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("'{wanted}'"))),
        }
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let at = self.text.len() - self.rest.trim_start().len();
        let shown = |c: char| if c.is_control() { '?' } else { c };
        let found: String = self.rest.trim_start().chars().take(20).map(shown).collect();
        invalid(format!(
            "at byte {at} of the header: expected {wanted}, found `{found}`"
        ))
    }

    fn string(&mut self) -> Result<&'a str, Error> {
        let text = self.rest.trim_start();
        let quote = text
            .chars()
            .next()
            .filter(|first| matches!(first, '\'' | '"'));
        let end = quote.and_then(|quote| text[1..].find(quote));
        let Some(end) = end else {
            return Err(self.unexpected("a string; structured arrays can't be read"));
        };
        self.rest = &text[end + 2..];
        Ok(&text[1..=end])
    }

    fn boolean(&mut self) -> Result<bool, Error> {
        if self.eat("True") {
            return Ok(true);
        }
        match self.eat("False") {
            true => Ok(false),
            false => Err(self.unexpected("True or False")),
        }
    }

    fn tuple(&mut self) -> Result<Vec<i64>, Error> {
        let mut extents = Vec::new();
        self.expect("(")?;
        while !self.eat(")") {
            let text = self.rest.trim_start();
            let end = text
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len());
            let extent = text[..end]
                .parse()
                .map_err(|_| self.unexpected("an extent"))?;
            extents.push(extent);
            // Files of Python 2 have long integers.
            self.rest = text[end..].strip_prefix('L').unwrap_or(&text[end..]);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(extents)
    }
}

/// Returns the kind that a `descr` names, and whether the bytes are in the other order.
fn kind(descr: &str) -> Result<(ElementKind, bool), Error> {
    let unknown = || {
        Error::invalid_argument(format!(
            "not a readable .npy file: elements of type '{}' are no tensor's; expected numbers or strings",
            descr.escape_debug()
        ))
    };
    let (order, name) = match descr.split_at_checked(1) {
        Some((order @ ("<" | ">" | "|" | "="), name)) => (order, name),
        _ => ("=", descr),
    };
    let is_swapped = match order {
        "<" => cfg!(target_endian = "big"),
        ">" => cfg!(target_endian = "little"),
        _ => false,
    };
    if let Some((_, dtype)) = NUMBERS.iter().find(|(known, _)| *known == name) {
        return Ok((ElementKind::Numbers(*dtype), is_swapped));
    }
    let (letter, len) = name.split_at_checked(1).ok_or_else(unknown)?;
    let len = len.parse::<u32>().map_err(|_| unknown())? as usize;
    match letter {
        "S" | "a" => Ok((ElementKind::Bytes(len), is_swapped)),
        "U" => Ok((ElementKind::Characters(len), is_swapped)),
        _ => Err(unknown()),
    }
}

/// Everything before the elements.
pub(super) fn write(descr: &str, shape: &TensorShape) -> Vec<u8> {
    use std::fmt::Write;
    let mut extents = String::new();
    for extent in shape.extents() {
        write!(extents, "{extent}, ").expect("a string takes all");
    }
    // As Python writes tuples: `()`, `(2,)`, `(2, 3)`.
    let extents = match shape.rank() {
        1 => extents.trim_end(),
        _ => extents.trim_end_matches(", "),
    };
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    // The header of the largest shape takes more than 16 bits can count.
    let is_short = text.len() + ALIGNMENT_BYTES < usize::from(u16::MAX);
    let before = MAGIC.len() + if is_short { 4 } else { 6 };
    let len = (before + text.len() + 1).next_multiple_of(ALIGNMENT_BYTES) - before;
    while text.len() + 1 < len {
        text.push(' ');
    }
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    match u16::try_from(len) {
        Ok(len) if is_short => {
            bytes.extend([1, 0]);
            bytes.extend(len.to_le_bytes());
        }
        _ => {
            bytes.extend([2, 0]);
            bytes.extend(u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
        }
    }
    bytes.extend(text.into_bytes());
    bytes
}
