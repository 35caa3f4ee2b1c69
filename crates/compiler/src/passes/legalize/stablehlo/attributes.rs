//! Attributes of StableHLO as numbers and words.

use tfrt_ir::{Attribute, OpId};

use super::Lowering;
use super::build::decoded;

/// Returns the list `name = [1, 2]` of an attribute's text, empty if it is left out.
fn listed(text: &str, name: &str) -> Result<Vec<i64>, String> {
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back();
        let after = rest[at + name.len()..].trim_start();
        rest = &rest[at + name.len()..];
        let is_word = before.is_none_or(|before| !before.is_alphanumeric() && before != '_');
        let Some(after) = after.strip_prefix('=').filter(|_| is_word) else {
            continue;
        };
        let inner = after
            .trim_start()
            .strip_prefix('[')
            .and_then(|after| after.split_once(']'));
        let Some((inner, _)) = inner else {
            return Err(format!("expected a list of integers as '{name}'"));
        };
        let numbers = inner
            .split(',')
            .map(str::trim)
            .filter(|number| !number.is_empty());
        let one = |number: &str| {
            number
                .parse()
                .map_err(|_| format!("expected an integer in '{name}', found '{number}'"))
        };
        return numbers.map(one).collect();
    }
    Ok(Vec::new())
}

impl Lowering<'_> {
    pub(super) fn attribute(&self, op: OpId, name: &str) -> Option<&Attribute> {
        self.module.op(op).attribute(name)
    }

    /// Returns an attribute that is a list of integers, in any form; `None` if it is left out.
    pub(super) fn maybe_ints(&self, op: OpId, name: &str) -> Result<Option<Vec<i64>>, String> {
        let Some(attribute) = self.attribute(op, name) else {
            return Ok(None);
        };
        let wrong = || format!("attribute '{name}': expected integers, found {attribute}");
        let list: Option<Vec<i64>> = match attribute {
            Attribute::DenseArray(array) => {
                let size = super::build::width(&array.element).div_ceil(8) as usize;
                let all = array.bytes.chunks_exact(size.max(1));
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "they are integers of few digits"
                )]
                all.map(|bytes| decoded(&array.element, bytes).map(|number| number as i64))
                    .collect()
            }
            Attribute::Dense(dense) => {
                let n = dense.n_elements().and_then(|n| usize::try_from(n).ok());
                let n = n.filter(|n| *n <= 1 << 16).ok_or_else(wrong)?;
                let all = dense
                    .bytes()
                    .chunks_exact(dense.element_size_bytes().max(1));
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "they are integers of few digits"
                )]
                let one = |bytes| decoded(dense.element_type(), bytes).map(|number| number as i64);
                all.cycle().take(n).map(one).collect()
            }
            Attribute::Array(list) => list.iter().map(Attribute::as_i64).collect(),
            _ => None,
        };
        list.map(Some).ok_or_else(wrong)
    }

    /// Returns an attribute that is a list of integers.
    pub(super) fn ints(&self, op: OpId, name: &str) -> Result<Vec<i64>, String> {
        let found = self.maybe_ints(op, name)?;
        found.ok_or_else(|| format!("requires attribute '{name}'"))
    }

    /// Returns an attribute that is a list of `n` integers; each is the default if it is left out.
    pub(super) fn ints_or(
        &self,
        op: OpId,
        name: &str,
        n: usize,
        default: i64,
    ) -> Result<Vec<i64>, String> {
        let found = self
            .maybe_ints(op, name)?
            .unwrap_or_else(|| vec![default; n]);
        match found.len() == n {
            true => Ok(found),
            false => Err(format!(
                "attribute '{name}': expected {n} integers, found {}",
                found.len()
            )),
        }
    }

    /// Returns an attribute that is an integer.
    pub(super) fn int(&self, op: OpId, name: &str) -> Result<i64, String> {
        let attribute = self.attribute(op, name);
        let attribute = attribute.ok_or_else(|| format!("requires attribute '{name}'"))?;
        let value = match attribute {
            Attribute::Integer(_) => attribute.as_i64(),
            _ => None,
        };
        value.ok_or_else(|| format!("attribute '{name}': expected an integer, found {attribute}"))
    }

    /// Returns whether an attribute is true.
    pub(super) fn flag(&self, op: OpId, name: &str) -> bool {
        self.attribute(op, name)
            .and_then(Attribute::as_bool)
            .unwrap_or(false)
    }

    /// Returns the last word of an attribute such as `#stablehlo<fft_type RFFT>`; empty if it is left out.
    pub(super) fn word(&self, op: OpId, name: &str) -> &str {
        match self.attribute(op, name) {
            Some(Attribute::Opaque(text)) => {
                let text = text.as_str().trim_end_matches('>');
                let start = text.rfind([' ', '<']).map_or(0, |at| at + 1);
                &text[start..]
            }
            Some(Attribute::String(text)) => text.as_str().unwrap_or(""),
            _ => "",
        }
    }

    /// Returns lists of integers in an attribute such as `#stablehlo.dot<..>`.
    pub(super) fn lists<const N: usize>(
        &self,
        op: OpId,
        name: &str,
        names: [&str; N],
    ) -> Result<[Vec<i64>; N], String> {
        let text = self.opaque(op, name)?;
        let mut lists = [const { Vec::new() }; N];
        for (list, name) in lists.iter_mut().zip(names) {
            *list = listed(text, name)?;
        }
        Ok(lists)
    }

    /// Returns the integer `name = 1` of an attribute's text.
    pub(super) fn number_in(&self, op: OpId, attribute: &str, name: &str) -> Result<i64, String> {
        let text = self.opaque(op, attribute)?;
        let found = text.split_once(name).map(|(_, after)| after.trim_start());
        let digits = found
            .and_then(|after| after.strip_prefix('='))
            .map(str::trim_start);
        let digits = digits.map(|text| {
            let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '-');
            &text[..end.unwrap_or(text.len())]
        });
        // What is left out is 0.
        match digits {
            None => Ok(0),
            Some(digits) => digits
                .parse()
                .map_err(|_| format!("attribute '{attribute}': expected an integer as '{name}'")),
        }
    }

    /// Returns the text of an attribute of the dialect.
    pub(super) fn opaque(&self, op: OpId, name: &str) -> Result<&str, String> {
        match self.attribute(op, name) {
            Some(Attribute::Opaque(text)) => Ok(text.as_str()),
            Some(other) => Err(format!(
                "attribute '{name}': expected one of StableHLO, found {other}"
            )),
            None => Err(format!("requires attribute '{name}'")),
        }
    }
}

/// Checks that axes are those of a tensor, each at most once.
pub(super) fn check_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, String> {
    let mut seen = vec![false; rank];
    axes.iter()
        .map(|axis| {
            let index = usize::try_from(*axis).ok().filter(|index| *index < rank);
            match index {
                Some(index) if !std::mem::replace(&mut seen[index], true) => Ok(index),
                Some(_) => Err(format!("names the dimension {axis} twice")),
                None => Err(format!(
                    "names the dimension {axis} of a tensor of rank {rank}"
                )),
            }
        })
        .collect()
}
