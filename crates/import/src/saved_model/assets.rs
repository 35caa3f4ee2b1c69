//! Files of vocabularies beside a model, as tables.

use std::sync::Arc;

use super::proto::{Node, Value};
use super::resources::Table;
use crate::codes;
use crate::onnx::external::ExternalData;
use crate::onnx::problem::{Problem, shown};
use crate::onnx::{ElementType, Tensor, TensorData, attributes};

/// The folder of such files in a model's directory.
pub(super) const FOLDER: &str = "assets";

/// The column that stands for the whole line, and the one that stands for its number.
const WHOLE_LINE: i64 = -2;
const LINE_NUMBER: i64 = -1;

fn error(message: String) -> Problem {
    Problem::new(codes::EXTERNAL_DATA, message)
}

/// Reads a table from a text, a line for each key, as `InitializeTableFromTextFileV2` states it.
pub(super) fn table(
    external_data: &ExternalData,
    file: &str,
    node: &Node,
    max_bytes: u64,
) -> Result<Table, Problem> {
    let int =
        |name: &str, default: i64| match node.attr.get(name).and_then(|attr| attr.value.as_ref()) {
            Some(Value::Int(value)) => *value,
            _ => default,
        };
    let delimiter = match node
        .attr
        .get("delimiter")
        .and_then(|attr| attr.value.as_ref())
    {
        Some(Value::Text(text)) => text.first().copied().unwrap_or(b'\t'),
        _ => b'\t',
    };
    let path = format!("{FOLDER}/{file}");
    let bytes = external_data.read(&path, max_bytes).map_err(error)?;
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let skipped = usize::try_from(int("offset", 0)).unwrap_or(0);
    let most = usize::try_from(int("vocab_size", -1)).unwrap_or(usize::MAX);
    let lines: Vec<&[u8]> = lines.into_iter().skip(skipped).take(most).collect();
    let column = |index: i64| column(&lines, index, delimiter, &path);
    Ok(Table {
        keys: column(int("key_index", WHOLE_LINE))?,
        values: column(int("value_index", LINE_NUMBER))?,
    })
}

fn column(
    lines: &[&[u8]],
    index: i64,
    delimiter: u8,
    path: &str,
) -> Result<tfrt_ir::Attribute, Problem> {
    let (element, data) = match index {
        LINE_NUMBER => {
            let numbers = (0..lines.len() as u64).flat_map(u64::to_le_bytes);
            (ElementType::I64, TensorData::Bytes(numbers.collect()))
        }
        WHOLE_LINE => {
            let strings = lines.iter().map(|line| Arc::from(*line)).collect();
            (ElementType::String, TensorData::Strings(strings))
        }
        index => {
            let cut = |(number, line): (usize, &&[u8])| {
                let mut parts = line.split(|byte| *byte == delimiter);
                let part = usize::try_from(index)
                    .ok()
                    .and_then(|index| parts.nth(index));
                let part = part.ok_or_else(|| {
                    let file = shown(path);
                    error(format!(
                        "expected a column {index} in line {} of '{file}'",
                        number + 1
                    ))
                })?;
                Ok(Arc::from(part))
            };
            let strings = lines
                .iter()
                .enumerate()
                .map(cut)
                .collect::<Result<_, Problem>>()?;
            (ElementType::String, TensorData::Strings(strings))
        }
    };
    Ok(attributes::dense(&Tensor {
        name: String::new(),
        element,
        dims: vec![lines.len()],
        data,
    }))
}
