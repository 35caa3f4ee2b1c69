//! Values of attributes in the text form of protocol buffers: `42`, `DT_INT64`, `{ dim { size: 2 } }`, `[1, 2]`.

use tfrt_tensor::TensorShape;

use crate::attrs::{Attr, Kind};
use crate::dtype;
use crate::functions::tensor::allocator;
use crate::value::Tensor;

/// Parses a whole value of a kind.
pub(super) fn parse(text: &str, kind: Kind, is_list: bool) -> Option<Attr> {
    let mut rest = text.trim();
    if !is_list {
        let value = one(&mut rest, kind)?;
        return rest.trim().is_empty().then_some(value);
    }
    rest = rest.strip_prefix('[')?.trim_start();
    let mut list = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix(']') {
            return after.trim().is_empty().then_some(Attr::List(kind, list));
        }
        list.push(one(&mut rest, kind)?);
        rest = rest.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
}

fn one(rest: &mut &str, kind: Kind) -> Option<Attr> {
    Some(match kind {
        Kind::String => Attr::Bytes(quoted(rest)?),
        Kind::Int => Attr::Int(word(rest).parse().ok()?),
        Kind::Float => {
            let text = word(rest);
            Attr::Float(text.strip_suffix('f').unwrap_or(text).parse().ok()?)
        }
        Kind::Bool => Attr::Bool(match word(rest) {
            "true" => true,
            "false" => false,
            _ => return None,
        }),
        Kind::Type => {
            let name = word(rest);
            Attr::Type(dtype::of_name(name).filter(|_| name.starts_with("DT_"))?)
        }
        Kind::Shape => Attr::Shape(shape(&fields(rest)?)?),
        Kind::Tensor => Attr::Tensor(tensor(&fields(rest)?)?),
        Kind::Function => {
            let fields = fields(rest)?;
            let name = fields.iter().find(|(name, _)| name == "name");
            match name {
                Some((_, Field::Text(text))) => Attr::Function(text.clone()),
                _ => return None,
            }
        }
    })
}

fn word<'t>(rest: &mut &'t str) -> &'t str {
    let text = rest.trim_start();
    let is_in = |c: char| c.is_ascii_alphanumeric() || "+-._".contains(c);
    let end = text.find(|c| !is_in(c)).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    *rest = after;
    word
}

/// Takes a text in single or double quotes.
pub(super) fn quoted(rest: &mut &str) -> Option<Vec<u8>> {
    let text = rest.trim_start();
    let quote = text.chars().next().filter(|c| "\"'".contains(*c))?;
    let mut bytes = Vec::new();
    let mut chars = text.char_indices().skip(1);
    loop {
        let (at, c) = chars.next()?;
        if c == quote {
            *rest = text[at + 1..].trim_start();
            return Some(bytes);
        }
        let c = match c {
            '\\' => match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            },
            c => c,
        };
        bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
    }
}

/// A field of a message.
enum Field {
    Text(String),
    Word(String),
    Message(Vec<(String, Field)>),
}

/// Most messages within messages.
const MAX_DEPTH: usize = 8;

/// Takes a message in braces.
fn fields(rest: &mut &str) -> Option<Vec<(String, Field)>> {
    message(rest, 0)
}

fn message(rest: &mut &str, depth: usize) -> Option<Vec<(String, Field)>> {
    if depth > MAX_DEPTH {
        return None;
    }
    *rest = rest.trim_start().strip_prefix('{')?.trim_start();
    let mut fields = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            *rest = after;
            return Some(fields);
        }
        let name = word(rest).to_owned();
        if name.is_empty() {
            return None;
        }
        *rest = rest.trim_start();
        let has_colon = rest.starts_with(':');
        *rest = rest.strip_prefix(':').unwrap_or(rest).trim_start();
        let field = if rest.starts_with('{') {
            Field::Message(message(rest, depth + 1)?)
        } else if rest.starts_with(['"', '\'']) {
            Field::Text(String::from_utf8_lossy(&quoted(rest)?).into_owned())
        } else {
            Field::Word(word(rest).to_owned()).filter(has_colon)?
        };
        fields.push((name, field));
        *rest = rest
            .trim_start()
            .trim_start_matches([',', ';'])
            .trim_start();
    }
}

impl Field {
    fn filter(self, is: bool) -> Option<Field> {
        is.then_some(self)
    }
}

/// Returns the extents of a shape's message; the inner value is `None` for an unknown rank.
fn shape(fields: &[(String, Field)]) -> Option<Option<Vec<i64>>> {
    let mut extents = Vec::new();
    for (name, field) in fields {
        match (name.as_str(), field) {
            ("unknown_rank", Field::Word(word)) if word == "true" => return Some(None),
            ("unknown_rank", Field::Word(word)) if word == "false" => (),
            ("dim", Field::Message(dim)) => {
                let size = dim.iter().find(|(name, _)| name == "size");
                extents.push(match size {
                    Some((_, Field::Word(word))) => word.parse().ok()?,
                    Some(_) => return None,
                    None => 0,
                });
            }
            _ => return None,
        }
    }
    Some(Some(extents))
}

/// The most bytes of a tensor in a definition.
const MAX_BYTES: usize = 1 << 24;

/// Returns the tensor of a message, whose elements are all the same, or as many as it has.
fn tensor(fields: &[(String, Field)]) -> Option<Tensor> {
    let (mut code, mut extents, mut elements) = (dtype::FLOAT, Vec::new(), Vec::new());
    for (name, field) in fields {
        match (name.as_str(), field) {
            ("dtype", Field::Word(word)) => code = dtype::of_name(word)?,
            ("tensor_shape", Field::Message(fields)) => extents = shape(fields)??,
            (name, Field::Word(word)) if name.ends_with("_val") => elements.push(word.clone()),
            _ => return None,
        }
    }
    let shape = TensorShape::from_i64(&extents).ok()?;
    let n = shape.n_elements()?;
    if elements.is_empty() {
        let zeros = match code {
            dtype::STRING => return Tensor::zeroed(&allocator(), code, shape).ok(),
            _ => n.checked_mul(dtype::size_bytes(code))?,
        };
        let zeros = Some(zeros).filter(|n_bytes| *n_bytes <= MAX_BYTES)?;
        return Tensor::constant(code, shape, &vec![0; zeros]).ok();
    }
    let mut bytes = Vec::new();
    for index in 0..n {
        // The last element stands for those that are left out.
        let text = elements.get(index).or(elements.last())?;
        match code {
            1 => bytes.extend(text.parse::<f32>().ok()?.to_ne_bytes()),
            2 => bytes.extend(text.parse::<f64>().ok()?.to_ne_bytes()),
            3 => bytes.extend(text.parse::<i32>().ok()?.to_ne_bytes()),
            9 => bytes.extend(text.parse::<i64>().ok()?.to_ne_bytes()),
            10 => bytes.push(u8::from(text == "true" || text == "1")),
            _ => return None,
        }
        if bytes.len() > MAX_BYTES {
            return None;
        }
    }
    Tensor::constant(code, shape, &bytes).ok()
}
