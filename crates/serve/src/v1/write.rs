//! Outputs as lists of lists: by rows, or by columns.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tfrt_tensor::{Tensor, TensorShape};

use crate::refusal::Refusal;
use crate::servable::Description;
use crate::v2::response::{element_texts, text_of};

/// The elements of an output as text of JSON, and where they lie.
struct Written<'o> {
    name: &'o str,
    extents: Vec<usize>,
    /// Each element, behind the one before it.
    text: Vec<u8>,
    /// Where each element ends.
    ends: Vec<usize>,
}

/// Writes `{"predictions": [..]}`: rows, as objects if there are several outputs.
pub(super) fn rows(description: &Description, outputs: &[Tensor]) -> Result<Vec<u8>, Refusal> {
    let written = written(description, outputs)?;
    let n_rows = written
        .first()
        .and_then(|output| output.extents.first())
        .copied();
    for output in &written {
        if output.extents.first().copied() != n_rows || n_rows.is_none() {
            return Err(Refusal::invalid(format!(
                "output '{}' has no row for each instance; ask with `inputs`, by columns",
                output.name
            )));
        }
    }
    let mut json = b"{\"predictions\":[".to_vec();
    for row in 0..n_rows.unwrap_or(0) {
        if row > 0 {
            json.push(b',');
        }
        match &written[..] {
            [only] => only.row(&mut json, row),
            several => {
                for (place, output) in several.iter().enumerate() {
                    json.push(if place == 0 { b'{' } else { b',' });
                    json.extend_from_slice(&text_of(output.name));
                    json.push(b':');
                    output.row(&mut json, row);
                }
                json.push(b'}');
            }
        }
    }
    json.extend_from_slice(b"]}");
    Ok(json)
}

/// Writes `{"outputs": ..}`: tensors, as members of an object if there are several.
pub(super) fn columns(description: &Description, outputs: &[Tensor]) -> Result<Vec<u8>, Refusal> {
    let written = written(description, outputs)?;
    let mut json = b"{\"outputs\":".to_vec();
    match &written[..] {
        [only] => only.whole(&mut json),
        several => {
            json.push(b'{');
            for (place, output) in several.iter().enumerate() {
                if place > 0 {
                    json.push(b',');
                }
                json.extend_from_slice(&text_of(output.name));
                json.push(b':');
                output.whole(&mut json);
            }
            json.push(b'}');
        }
    }
    json.push(b'}');
    Ok(json)
}

fn written<'o>(
    description: &'o Description,
    outputs: &[Tensor],
) -> Result<Vec<Written<'o>>, Refusal> {
    let each = description.outputs.iter().zip(outputs);
    each.map(|(info, tensor)| {
        let name = &*info.name;
        let (text, ends) = match tensor {
            Tensor::String(strings) if name.ends_with("_bytes") => bytes(strings.strings()),
            Tensor::String(strings)
                if strings
                    .strings()
                    .iter()
                    .any(|own| std::str::from_utf8(own).is_err()) =>
            {
                bytes(strings.strings())
            }
            other => element_texts(name, other)?,
        };
        let shape: &TensorShape = &tensor.metadata().shape;
        Ok(Written {
            name,
            extents: shape.extents().collect(),
            text,
            ends,
        })
    })
    .collect()
}

/// Writes strings as objects with base 64.
fn bytes(strings: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
    let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(strings.len()));
    for string in strings {
        text.extend_from_slice(b"{\"b64\":\"");
        text.extend_from_slice(STANDARD.encode(string).as_bytes());
        text.extend_from_slice(b"\"}");
        ends.push(text.len());
    }
    (text, ends)
}

impl Written<'_> {
    fn whole(&self, json: &mut Vec<u8>) {
        self.lists(json, &self.extents, 0);
    }

    fn row(&self, json: &mut Vec<u8>, row: usize) {
        let extents = &self.extents[1..];
        let n_elements: usize = extents.iter().product();
        self.lists(json, extents, row * n_elements);
    }

    /// Writes elements from the one of a number on, as lists of these extents.
    fn lists(&self, json: &mut Vec<u8>, extents: &[usize], first: usize) {
        let Some((extent, inner)) = extents.split_first() else {
            let begin = first.checked_sub(1).map_or(0, |before| self.ends[before]);
            json.extend_from_slice(&self.text[begin..self.ends[first]]);
            return;
        };
        let n_inner: usize = inner.iter().product();
        json.push(b'[');
        for index in 0..*extent {
            if index > 0 {
                json.push(b',');
            }
            self.lists(json, inner, first + index * n_inner);
        }
        json.push(b']');
    }
}
