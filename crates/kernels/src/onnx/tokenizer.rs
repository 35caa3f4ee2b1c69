//! `com.microsoft.Tokenizer`: splits texts into words or characters.
//!
//! Patterns are compiled once, when a model is opened ([`PREPARE`]).

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::TensorShape;
use tfrt_tensor::op::PreparedState;

use super::patterns::Pattern;
use super::prepare::{PrepareRow, PreparedKernel, erase};
use super::{NodeCall, Outputs};

pub(super) const PREPARE: &[PrepareRow] = &[PrepareRow {
    op: "onnx.microsoft.Tokenizer",
    inputs: &[],
    types: &[],
    takes_attributes: true,
    make: tokenizer,
    restore: None,
}];

/// The tokens that stand before and behind those of a text, if they are asked for.
const MARKS: [&str; 2] = ["\u{2}", "\u{3}"];

/// `microsoft.Tokenizer(x)`, attributes `mark`, `mincharnum`, `pad_value`, and `separators` or `tokenexp`: the tokens of
/// each text, padded to the most that any has.
#[derive(Debug)]
struct Tokenizer {
    rule: Rule,
    is_marked: bool,
    least_chars: usize,
    padding: Vec<u8>,
}

/// The way to find tokens in a text.
#[derive(Debug)]
enum Rule {
    /// Each character is one.
    Characters,
    /// They are what is between matches of the first pattern, cut by the second, and so on.
    Between(Vec<Pattern>),
    /// They are the matches of a pattern.
    Matches(Pattern),
}

fn tokenizer(node: &NodeCall<'_>) -> Result<Option<Arc<dyn PreparedState>>, Error> {
    let attributes = &node.attributes;
    let least_chars = match attributes.size_or("mincharnum", 1)? {
        0 => return Err(attributes.error("mincharnum", "is expected to be at least 1, found 0")),
        least => least,
    };
    let rule = rule(node)?;
    if matches!(rule, Rule::Characters) && least_chars > 1 {
        let message = format_args!(
            "is expected to be 1 where each character is a token, found {least_chars}"
        );
        return Err(attributes.error("mincharnum", message));
    }
    Ok(Some(erase(Tokenizer {
        rule,
        is_marked: attributes.flag("mark", false)?,
        least_chars,
        padding: attributes.string_or("pad_value", "")?.as_bytes().to_vec(),
    })))
}

fn rule(node: &NodeCall<'_>) -> Result<Rule, Error> {
    let attributes = &node.attributes;
    let compiled = |name: &str, pattern: &str| {
        let message = |reason| format!("has '{pattern}', which is no pattern: {reason}");
        Pattern::new(pattern).map_err(|reason| attributes.error(name, message(reason)))
    };
    let separators = attributes.strings("separators")?.unwrap_or_default();
    match (&separators[..], attributes.string("tokenexp")?) {
        ([b""], _) | ([], Some(".")) => Ok(Rule::Characters),
        ([], None | Some("")) => {
            let message = "or 'separators' is expected to have a pattern";
            Err(attributes.error("tokenexp", message))
        }
        ([], Some(pattern)) => Ok(Rule::Matches(compiled("tokenexp", pattern)?)),
        (patterns, _) => {
            let patterns = patterns.iter().map(|pattern| {
                let message = "is expected to have patterns in UTF-8";
                let pattern = std::str::from_utf8(pattern);
                compiled(
                    "separators",
                    pattern.map_err(|_| attributes.error("separators", message))?,
                )
            });
            Ok(Rule::Between(patterns.collect::<Result<_, Error>>()?))
        }
    }
}

impl PreparedKernel for Tokenizer {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let x = node.inputs.strings(0)?;
        let mut shape = x.metadata().shape.to_dims();
        if !matches!(shape.len(), 1 | 2) {
            let message = format_args!("is expected to have one dimension or two, found {shape:?}");
            return Err(node.inputs.error(0, message));
        }
        let n_bytes: usize = x.strings().iter().map(Vec::len).sum();
        let most_tokens = n_bytes / self.least_chars;
        node.workspace.reserve(most_tokens, size_of::<&str>())?;
        node.workspace
            .reserve(x.strings().len(), size_of::<Vec<&str>>())?;
        let mut rows: Vec<Vec<&str>> = Vec::with_capacity(x.strings().len());
        for (index, text) in x.strings().iter().enumerate() {
            let text = std::str::from_utf8(text).map_err(|error| {
                let (element, byte) = (index, error.valid_up_to());
                let message = format_args!(
                    "is expected to have texts in UTF-8, found others in element {element}, at byte {byte}"
                );
                node.inputs.error(0, message)
            })?;
            rows.push(self.tokens(text));
        }
        let n_most = rows.iter().map(Vec::len).max().unwrap_or(0);
        // Where no text has a token, there are no marks either.
        let marks = if self.is_marked && n_most > 0 {
            &MARKS[..]
        } else {
            &[]
        };
        let n_most = n_most + marks.len();
        shape.push(n_most);
        let shape = TensorShape::new(&shape)?;
        if shape.n_elements().is_none() {
            let message = format_args!("there is no memory for {shape} strings");
            return Err(Error::resource_exhausted(format!("Tokenizer: {message}")));
        }
        let (before, behind) = marks.split_at(marks.len() / 2);
        let padding = || std::iter::repeat(&self.padding[..]);
        let strings = rows.iter().flat_map(|row| {
            let all = before.iter().chain(row).chain(behind);
            all.map(|token| token.as_bytes())
                .chain(padding())
                .take(n_most)
        });
        Ok(node.strings_of(shape, strings.map(<[u8]>::to_vec))?.into())
    }
}

impl Tokenizer {
    fn tokens<'t>(&self, text: &'t str) -> Vec<&'t str> {
        match &self.rule {
            Rule::Characters => {
                let starts = text.char_indices();
                starts
                    .map(|(start, letter)| &text[start..start + letter.len_utf8()])
                    .collect()
            }
            Rule::Matches(pattern) => self.matches(pattern, text),
            Rule::Between(patterns) => {
                let cut = |parts: Vec<&'t str>, pattern| -> Vec<&'t str> {
                    let parts = parts.into_iter();
                    parts.flat_map(|part| self.between(pattern, part)).collect()
                };
                patterns.iter().fold(vec![text], cut)
            }
        }
    }

    /// Returns the matches that are long enough. Behind one that is not the search goes on at its second character.
    fn matches<'t>(&self, pattern: &Pattern, text: &'t str) -> Vec<&'t str> {
        let (mut tokens, mut start) = (Vec::new(), 0);
        while start <= text.len()
            && let Some(found) = pattern.find(text, start)
        {
            let token = &text[found.clone()];
            start = match self.is_token(token) {
                true => found.end,
                false => next_char(text, found.start),
            };
            if self.is_token(token) {
                tokens.push(token);
            }
        }
        tokens
    }

    /// Returns what is between the matches, if it is long enough. A match of nothing takes the character behind it.
    fn between<'t>(&self, pattern: &Pattern, text: &'t str) -> Vec<&'t str> {
        let (mut tokens, mut start) = (Vec::new(), 0);
        while start <= text.len() {
            let found = pattern.find(text, start).unwrap_or(text.len()..usize::MAX);
            tokens.extend(Some(&text[start..found.start]).filter(|token| self.is_token(token)));
            start = match found.is_empty() {
                true => next_char(text, found.start),
                false => found.end,
            };
        }
        tokens
    }

    fn is_token(&self, token: &str) -> bool {
        token.chars().nth(self.least_chars - 1).is_some()
    }
}

/// Returns the place of the character behind that at a place; behind the text, one further.
fn next_char(text: &str, start: usize) -> usize {
    start + text[start..].chars().next().map_or(1, char::len_utf8)
}
