//! Values for people: a line with type and shape, and as many elements as are easily read; the
//! largest elements with their labels.

use tfrt::Error;
use tfrt::ir::visible;
use tfrt::model::Datum;
use tfrt::tensor::{Optional, Tensor};

use super::json;
use super::scalars::{Scalar, scalars};

/// The most elements of a tensor that is shown as a whole.
const MAX_SHOWN: usize = 60;
/// The number of elements of larger ones that are shown at the beginning and at the end of each dimension.
const EDGE: usize = 3;
/// The number of dimensions from which on elements are shown in a row.
const MAX_NESTED: usize = 8;
/// The number of elements of a sequence that are shown.
const MAX_OF_SEQUENCE: usize = 8;
/// The number of rows of which the largest elements are shown.
const MAX_ROWS: usize = 16;
/// The number of digits of floats.
const DIGITS: usize = 6;

/// Returns lines that show a value under a name.
///
/// # Errors
///
/// If somebody writes a tensor of it.
pub fn text(name: &str, datum: &Datum) -> Result<String, Error> {
    let name = &*visible::name(name);
    match datum {
        Datum::Tensor(tensor) => tensor_text(name, tensor),
        Datum::Optional(Optional::Nothing) => Ok(format!("{name}: nothing\n")),
        Datum::Optional(Optional::Tensor(tensor)) => tensor_text(name, tensor),
        Datum::Sequence(sequence) | Datum::Optional(Optional::Sequence(sequence)) => {
            let tensors = sequence.tensors();
            let mut lines = format!("{name}: {} of {} elements\n", datum.kind(), tensors.len());
            for (index, tensor) in tensors.iter().take(MAX_OF_SEQUENCE).enumerate() {
                lines.push_str(&tensor_text(&format!("{name}[{index}]"), tensor)?);
            }
            if tensors.len() > MAX_OF_SEQUENCE {
                let n_more = tensors.len() - MAX_OF_SEQUENCE;
                lines.push_str(&format!("{name}[..]: {n_more} more\n"));
            }
            Ok(lines)
        }
        Datum::Map(map) => {
            let shown = map_text(&json::texts(map.keys())?, map.values(), 0)?;
            Ok(format!("{name}: {} = {shown}\n", datum.kind()))
        }
        Datum::Maps(maps) => {
            let keys = json::texts(maps.keys())?;
            let mut lines = format!("{name}: {} of {} elements\n", datum.kind(), maps.len());
            for index in 0..maps.len().min(MAX_OF_SEQUENCE) {
                let shown = map_text(&keys, maps.values(), index * keys.len())?;
                lines.push_str(&format!("{name}[{index}]: {shown}\n"));
            }
            if maps.len() > MAX_OF_SEQUENCE {
                let n_more = maps.len() - MAX_OF_SEQUENCE;
                lines.push_str(&format!("{name}[..]: {n_more} more\n"));
            }
            Ok(lines)
        }
    }
}

/// Returns a value under a name in one line: elements of large tensors in one row, at their ends.
///
/// # Errors
///
/// If somebody writes a tensor of it.
pub fn line(name: &str, datum: &Datum) -> Result<String, Error> {
    let is_large = |tensor: &&Tensor| tensor.metadata().shape.n_elements().unwrap_or(0) > MAX_SHOWN;
    if let Some(tensor) = datum.as_tensor().ok().filter(is_large) {
        let n_elements = tensor.metadata().shape.n_elements().unwrap_or(0);
        let shown = Shown {
            tensor,
            extents: vec![n_elements],
            is_part: true,
        };
        let mut elements = String::new();
        shown.list(0, 0, &mut elements)?;
        let name = visible::name(name);
        return Ok(format!("{name}: {} = {elements}", tensor.metadata()));
    }
    let text = text(name, datum)?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    Ok(lines.join(" "))
}

/// Returns a map whose values begin with element `first`, the first of its keys if there are many.
fn map_text(keys: &[String], values: &Tensor, first: usize) -> Result<String, Error> {
    let n_shown = keys.len().min(MAX_OF_SEQUENCE);
    let scalars = scalars(values, first..first + n_shown)?;
    let pairs = keys.iter().zip(&scalars);
    let mut parts: Vec<String> = pairs
        .map(|(key, cell)| format!("{key}: {}", short(cell)))
        .collect();
    if keys.len() > n_shown {
        parts.push("...".to_owned());
    }
    Ok(format!("{{{}}}", parts.join(", ")))
}

fn tensor_text(name: &str, tensor: &Tensor) -> Result<String, Error> {
    let head = format!("{name}: {}", tensor.metadata());
    let elements = elements(tensor)?;
    Ok(match elements.lines().count() {
        0 => format!("{head}\n"),
        1 if head.len() + elements.len() < 120 => format!("{head} = {elements}\n"),
        _ => format!("{head} =\n{}\n", indented(&elements)),
    })
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

fn elements(tensor: &Tensor) -> Result<String, Error> {
    let shape = &tensor.metadata().shape;
    let n_elements = shape.n_elements().unwrap_or(0);
    let mut extents = shape.to_dims().to_vec();
    if n_elements == 0 {
        return Ok(String::new());
    }
    if extents.len() > MAX_NESTED {
        extents = vec![n_elements];
    }
    let shown = Shown {
        tensor,
        extents,
        is_part: n_elements > MAX_SHOWN,
    };
    let mut text = String::new();
    shown.list(0, 0, &mut text)?;
    Ok(text)
}

struct Shown<'t> {
    tensor: &'t Tensor,
    extents: Vec<usize>,
    is_part: bool,
}

impl Shown<'_> {
    /// Writes the part of the tensor that begins with element `first`, from a dimension on.
    fn list(&self, dimension: usize, first: usize, text: &mut String) -> Result<(), Error> {
        let Some(extent) = self.extents.get(dimension) else {
            let scalars = scalars(self.tensor, first..first + 1)?;
            text.push_str(&scalars.first().map(short).unwrap_or_default());
            return Ok(());
        };
        let stride: usize = self.extents[dimension + 1..].iter().product();
        let is_last = dimension + 1 == self.extents.len();
        let between = match is_last {
            true => ", ".to_owned(),
            false => format!(",\n{}", " ".repeat(dimension + 1)),
        };
        text.push('[');
        let skips = self.is_part && *extent > 2 * EDGE;
        for index in 0..*extent {
            if skips && index == EDGE {
                text.push_str(&between);
                text.push_str("...");
            }
            if skips && (EDGE..extent - EDGE).contains(&index) {
                continue;
            }
            if index > 0 {
                text.push_str(&between);
            }
            self.list(dimension + 1, first + index * stride, text)?;
        }
        text.push(']');
        Ok(())
    }
}

/// Returns an element with as many digits as are easily read.
pub fn short(cell: &Scalar) -> String {
    let float = |number: f64| {
        let size = number.abs();
        match size {
            _ if !number.is_finite() => Scalar::Double(number).to_string(),
            0.0 => "0".to_owned(),
            1e-4..1e6 => {
                let before = size.log10().floor().max(-4.0) as i32 + 1;
                let decimals = usize::try_from(DIGITS as i32 - before).unwrap_or(0);
                let text = format!("{number:.decimals$}");
                match text.contains('.') {
                    true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                    false => text,
                }
            }
            _ => format!("{number:.*e}", DIGITS - 1),
        }
    };
    match cell {
        Scalar::Single(number) => float(f64::from(*number)),
        Scalar::Double(number) => float(*number),
        Scalar::Complex(real, imaginary) => format!("({}, {})", float(*real), float(*imaginary)),
        other => other.to_string(),
    }
}

/// One of the largest elements of a row.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TopElement {
    pub index: usize,
    pub score: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip)]
    shown: String,
}

/// Returns the `k` largest elements along the last dimension, for each place of the others; `None` if
/// the tensor has no such rows of numbers.
///
/// # Errors
///
/// If somebody writes the tensor.
pub fn best(
    tensor: &Tensor,
    k: usize,
    labels: &[String],
) -> Result<Option<Vec<Vec<TopElement>>>, Error> {
    let shape = &tensor.metadata().shape;
    let (Some(n_elements), Some(extent)) = (shape.n_elements(), shape.to_dims().last().copied())
    else {
        return Ok(None);
    };
    let is_number = scalars(tensor, 0..1)?
        .first()
        .is_some_and(|cell| cell.number().is_some());
    if extent < 2 || !is_number {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for first in (0..n_elements).step_by(extent).take(MAX_ROWS) {
        let scalars = scalars(tensor, first..first + extent)?;
        let mut order: Vec<usize> = (0..extent).collect();
        // What is no number comes last; of equal ones the first.
        let key = |index: usize| match scalars[index].number() {
            Some(number) if !number.is_nan() => number,
            _ => f64::NEG_INFINITY,
        };
        order.sort_by(|a, b| key(*b).total_cmp(&key(*a)));
        let best = order.into_iter().take(k).map(|index| TopElement {
            index,
            score: scalars[index].to_json(),
            label: labels.get(index).cloned(),
            shown: short(&scalars[index]),
        });
        rows.push(best.collect());
    }
    Ok(Some(rows))
}

/// Returns lines that show the largest elements of a tensor.
pub fn best_text(name: &str, tensor: &Tensor, rows: &[Vec<TopElement>]) -> String {
    let metadata = tensor.metadata();
    let mut text = format!("{}: {metadata}\n", visible::name(name));
    let mut write = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    for (index, row) in rows.iter().enumerate() {
        if rows.len() > 1 {
            write(format!("  row {index}"));
        }
        let width = row.iter().map(|best| best.shown.len()).max().unwrap_or(0);
        let places = row.iter().map(|best| best.index).max().unwrap_or(0);
        let places = places.to_string().len();
        for best in row {
            let label = best.label.as_deref().unwrap_or_default();
            let line = format!("  {:<width$}  {:>places$}  {label}", best.shown, best.index);
            write(line.trim_end().to_owned());
        }
    }
    let extent = metadata.shape.to_dims().last().copied().unwrap_or(1);
    let n_rows = metadata.shape.n_elements().unwrap_or(0) / extent.max(1);
    if n_rows > rows.len() {
        write(format!("  and {} more rows", n_rows - rows.len()));
    }
    text
}

/// Returns the largest elements of a tensor in one line, rows behind each other.
pub fn best_line(name: &str, rows: &[Vec<TopElement>]) -> String {
    let element = |best: &TopElement| match &best.label {
        Some(label) => format!("{label} {}", best.shown),
        None => format!("{} {}", best.index, best.shown),
    };
    let row = |row: &Vec<TopElement>| row.iter().map(element).collect::<Vec<_>>().join(", ");
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("{}: {}", visible::name(name), rows.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfrt::Runtime;
    use tfrt::tensor::{DenseHostTensor, Element};

    fn tensor<T: Element>(extents: &[usize], elements: &[T]) -> Tensor {
        let runtime = Runtime::new();
        let dense = DenseHostTensor::from_slice(runtime.host().allocator(), extents, elements);
        dense.unwrap().into()
    }

    #[test]
    fn small_tensors_are_shown_in_full() {
        let two = Datum::from(tensor(&[2, 2], &[1.0_f32, 0.1, 1e-9, -2.5e7]));
        let expected = "x: f32 [2, 2] =\n  [[1, 0.1],\n   [1.00000e-9, -2.50000e7]]\n";
        assert_eq!(text("x", &two).unwrap(), expected);
        let one = Datum::from(tensor(&[], &[7_i64]));
        assert_eq!(text("n", &one).unwrap(), "n: i64 [] = 7\n");
        let none = Datum::from(tensor::<f32>(&[0], &[]));
        assert_eq!(text("e", &none).unwrap(), "e: f32 [0]\n");
    }

    #[test]
    fn large_tensors_are_shown_at_their_edges() {
        let row: Vec<i32> = (0..100).collect();
        let shown = text("x", &tensor(&[100], &row).into()).unwrap();
        assert_eq!(shown, "x: i32 [100] = [0, 1, 2, ..., 97, 98, 99]\n");
    }

    #[test]
    fn best_are_the_largest_and_of_equal_ones_the_first() {
        let scores = tensor(&[1, 4], &[0.5_f32, f32::NAN, 0.75, 0.5]);
        let labels = ["a", "b", "c", "d"].map(str::to_owned);
        let rows = best(&scores, 3, &labels).unwrap().unwrap();
        let expected = "p: f32 [1, 4]\n  0.75  2  c\n  0.5   0  a\n  0.5   3  d\n";
        assert_eq!(best_text("p", &scores, &rows), expected);
    }
}
