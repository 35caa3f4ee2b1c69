//! Text as tensors: the numbers of its tokens, by a file `tokenizer.json`, and what goes with them.
//!
//! With the feature `tokenizer`, which brings the crate `tokenizers`; without it, whoever asks for text is told so.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use tfrt::HostAllocator;
use tfrt::model::{Dim, ValueInfo};
use tfrt::tensor::{DType, Tensor, TensorShape};

use super::numbers::{self, Kind};
use super::read::read_bytes;
use super::scalars::Scalar;
use crate::failure::Failure;

/// The largest file that a tokenizer is read from.
#[cfg(feature = "tokenizer")]
const MAX_BYTES: u64 = 1 << 28;

/// The largest file of text.
const MAX_TEXT_BYTES: u64 = 1 << 26;

/// The most tokens that a tokenizer fills a text to.
#[cfg(feature = "tokenizer")]
const MAX_FILLED: usize = 1 << 20;

/// The extensions of files that hold tensors: what ends so is no text.
const EXTENSIONS: [&str; 6] = ["npy", "npz", "pb", "json", "txt", "safetensors"];

/// The tokens of a text.
pub struct Tokens {
    ids: Vec<u32>,
    /// For each token, 1, or 0 if it only fills the rest.
    attention: Vec<u32>,
    /// For each token, which of the texts it is of.
    types: Vec<u32>,
    filler: Filler,
}

/// The padding token, added where a model takes more tokens than a text has.
#[derive(Clone, Copy, Debug, Default)]
struct Filler {
    id: u32,
    type_id: u32,
    is_left: bool,
}

impl Filler {
    /// Returns a list with so many numbers, filled with one.
    fn filled(
        self,
        list: &[u32],
        n_all: usize,
        number: u32,
    ) -> impl Iterator<Item = u32> + use<'_> {
        let n_more = n_all.saturating_sub(list.len());
        let n_left = if self.is_left { n_more } else { 0 };
        let fill = |n| std::iter::repeat_n(number, n);
        let list = list.iter().copied();
        fill(n_left).chain(list).chain(fill(n_more - n_left))
    }
}

/// A list that goes along with tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    Ids,
    Attention,
    Types,
}

impl Along {
    /// Returns the list that an input is for, by the names that exporters give.
    pub fn of_name(name: &str) -> Option<Along> {
        match name {
            "attention_mask" | "input_mask" => Some(Along::Attention),
            "token_type_ids" | "segment_ids" => Some(Along::Types),
            _ => None,
        }
    }
}

/// Returns whether an input can be the numbers of tokens.
pub fn takes_tokens(input: &ValueInfo) -> bool {
    let element = input.kind.as_tensor().and_then(|tensor| tensor.element);
    element.is_some_and(|element| numbers::kind(element) == Kind::Integer)
}

/// Returns whether a word of the command line is text rather than the name of a file.
pub fn is_text(word: &str) -> bool {
    let has_extension = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
    };
    let is_name = !word.contains(char::is_whitespace)
        && (has_extension(Path::new(word))
            || word.contains(".npz:")
            || word.contains(".safetensors:"));
    word != tfrt::input::STANDARD_INPUT && !is_name && !Path::new(word).exists()
}

/// Returns whether a file holds text, by its name.
pub fn is_text_file(file: &str) -> bool {
    let extension = Path::new(file).extension();
    file == tfrt::input::STANDARD_INPUT || extension.is_some_and(|extension| extension == "txt")
}

/// Reads a file of text, without the end of its last line.
///
/// # Errors
///
/// If it can't be read, or is no UTF-8.
pub fn read_text(file: &str, max_bytes: u64) -> Result<String, String> {
    let bytes = read_bytes(Path::new(file), max_bytes.min(MAX_TEXT_BYTES));
    let bytes = bytes.map_err(|reason| tfrt::error_message(&reason))?;
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        format!("expected text in UTF-8, found another byte at {place}")
    })?;
    if text.ends_with('\n') {
        text.pop();
    }
    if text.ends_with('\r') {
        text.pop();
    }
    Ok(text)
}

impl Tokens {
    /// Returns a list of them for an input of a model, with as many as it takes.
    ///
    /// # Errors
    ///
    /// If the input takes another form, or fewer.
    pub fn tensor(
        &self,
        along: Along,
        input: &ValueInfo,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Tensor, String> {
        let unknown = [Dim::Fixed(1), Dim::Unknown];
        let (element, dims) = match input.kind.as_tensor() {
            Some(tensor) => (
                tensor.element.unwrap_or(DType::I64),
                tensor.dims.as_deref().unwrap_or(&unknown),
            ),
            None => {
                return Err(format!(
                    "tokens are a tensor, but the model takes {}",
                    input.kind
                ));
            }
        };
        let (batch, length) = match dims {
            [length] => (None, length),
            [batch, length] => (Some(batch), length),
            _ => {
                let message = "tokens have 1 dimension, or 2 with a batch, but the model takes";
                return Err(format!("{message} {input}"));
            }
        };
        if let Some(Dim::Fixed(n)) = batch
            && *n != 1
        {
            return Err(format!("the model takes {n} texts at once, found one"));
        }
        let n_tokens = self.ids.len();
        let n_all = match length {
            Dim::Fixed(n) if *n < n_tokens => {
                return Err(format!(
                    "the text has {n_tokens} tokens, but the model takes {n}"
                ));
            }
            Dim::Fixed(n) => *n,
            _ => n_tokens,
        };
        let (list, filler) = match along {
            Along::Ids => (&self.ids, self.filler.id),
            Along::Attention => (&self.attention, 0),
            Along::Types => (&self.types, self.filler.type_id),
        };
        let mut bytes = Vec::new();
        for number in self.filler.filled(list, n_all, filler) {
            let cell = match element {
                DType::I1 => Scalar::Truth(number != 0),
                _ => Scalar::Integer(number.into()),
            };
            numbers::push(&mut bytes, element, &cell)?;
        }
        let extents = [&vec![1; usize::from(batch.is_some())][..], &[n_all]].concat();
        let shape = TensorShape::new(&extents).map_err(|error| error.message().to_owned())?;
        numbers::dense(element, shape, &bytes, allocator)
    }
}

thread_local! {
    /// Whether a library reads on this thread that may panic.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a panic of this thread becomes an error.
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// A tokenizer that was read from a file.
#[cfg(feature = "tokenizer")]
pub struct Tokenizer {
    inner: Box<tokenizers::Tokenizer>,
    /// The filling that the file asks for, which is done here: a few digits may ask for any number of tokens.
    padding: Option<tokenizers::PaddingParams>,
}

/// A tokenizer that this command was built without.
#[cfg(not(feature = "tokenizer"))]
pub enum Tokenizer {}

#[cfg(not(feature = "tokenizer"))]
impl Tokenizer {
    /// Refuses to read a file.
    ///
    /// # Errors
    ///
    /// `Usage`, always.
    pub fn open(_: &Path, _: u64) -> Result<Tokenizer, Failure> {
        Err(Failure::Usage(
            "this tfrt was built without --tokenizer: install it with `--features tokenizer`"
                .to_owned(),
        ))
    }

    /// Returns the tokens of a text, of which there are none.
    pub fn encode(&self, _: &str) -> Result<Tokens, String> {
        match *self {}
    }
}

#[cfg(feature = "tokenizer")]
impl Tokenizer {
    /// Reads a file `tokenizer.json` of no more than so many bytes.
    ///
    /// # Errors
    ///
    /// `Rejected` if it is none.
    pub fn open(path: &Path, max_bytes: u64) -> Result<Tokenizer, Failure> {
        let refused = |reason: String| Failure::Rejected {
            code: None,
            message: format!(
                "cannot read the tokenizer from '{}': {reason}",
                path.display()
            ),
            help: Some(
                "a tokenizer is a file tokenizer.json, as it lies beside the model".to_owned(),
            ),
        };
        let bytes = read_bytes(path, max_bytes.min(MAX_BYTES));
        let bytes = bytes.map_err(|reason| refused(tfrt::error_message(&reason)))?;
        let tokenizer = guarded(|| tokenizers::Tokenizer::from_bytes(&bytes));
        let mut inner = tokenizer.map_err(|reason| refused(format!("it is none: {reason}")))?;
        let padding = inner.get_padding().cloned();
        inner.with_padding(None);
        Ok(Tokenizer {
            inner: Box::new(inner),
            padding,
        })
    }

    /// Returns the tokens of a text, those that begin and end it included, cut and filled as the file says.
    ///
    /// # Errors
    ///
    /// If the tokenizer fails.
    pub fn encode(&self, text: &str) -> Result<Tokens, String> {
        let encoding = guarded(|| self.inner.encode_fast(text, true));
        let encoding = encoding.map_err(|reason| format!("the tokenizer fails: {reason}"))?;
        let filler = match &self.padding {
            Some(padding) => Filler {
                id: padding.pad_id,
                type_id: padding.pad_type_id,
                is_left: matches!(padding.direction, tokenizers::PaddingDirection::Left),
            },
            None => {
                let mut ids = ["[PAD]", "<pad>"].into_iter();
                let id = ids.find_map(|token| self.inner.token_to_id(token));
                Filler {
                    id: id.unwrap_or(0),
                    ..Filler::default()
                }
            }
        };
        let n_tokens = encoding.get_ids().len();
        let n_all = self.n_filled(n_tokens)?;
        let filled = |list: &[u32], number| filler.filled(list, n_all, number).collect();
        Ok(Tokens {
            ids: filled(encoding.get_ids(), filler.id),
            attention: filled(encoding.get_attention_mask(), 0),
            types: filled(encoding.get_type_ids(), filler.type_id),
            filler,
        })
    }

    /// Returns how many tokens the file makes of so many.
    fn n_filled(&self, n_tokens: usize) -> Result<usize, String> {
        let Some(padding) = &self.padding else {
            return Ok(n_tokens);
        };
        let n_wanted = match padding.strategy {
            tokenizers::PaddingStrategy::Fixed(n) => n.max(n_tokens),
            tokenizers::PaddingStrategy::BatchLongest => n_tokens,
        };
        let unit = padding.pad_to_multiple_of.unwrap_or(1).max(1);
        let n_wanted = n_wanted.checked_next_multiple_of(unit);
        match n_wanted {
            Some(n) if n == n_tokens || n <= MAX_FILLED => Ok(n),
            _ => Err(format!(
                "the tokenizer fills texts with more than {MAX_FILLED} tokens"
            )),
        }
    }
}

/// Returns what a function of the crate `tokenizers` returns; what it panics with is an error like any other.
#[cfg(feature = "tokenizer")]
fn guarded<T>(function: impl FnOnce() -> Result<T, tokenizers::Error>) -> Result<T, String> {
    IS_GUARDED.set(true);
    let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(function));
    IS_GUARDED.set(false);
    match called {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("the library panics: the file may be damaged".to_owned()),
    }
}
