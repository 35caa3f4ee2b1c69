//! Greedy decoding: the tokens that a decoder holds for the most likely, one after the other.
//!
//! `greedy MODEL IDS N_STEPS [OPTION..]` prints a number a line. The model takes `input_ids` and gives `logits`, as the
//! exporters of Hugging Face and ONNX Runtime write it; its keys and values are state of a session, so that each step
//! is given one token.
//!
//! | Option | Does |
//! | --- | --- |
//! | `--state OUTPUT=INPUT` | names what is kept, in place of `present.{i}.key=past_key_values.{i}.key` and `.value` |
//! | `--dim NAME=SIZE` | gives a dimension of the first state a size: the room of a buffer |
//! | `--max-length N` | gives keys and values room for N tokens, so that nothing is copied in a step |
//! | `--no-cache` | keeps nothing, and gives all tokens in each step: slow, to compare with |
//! | `--logits FILE` | writes the logits of each step as `f32` |

use std::io::Write;
use std::path::PathBuf;

use tfrt::model::{Session, ValueInfo};
use tfrt::{Error, Runtime, Tensor};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: greedy MODEL IDS N_STEPS [--state OUTPUT=INPUT] [--dim NAME=SIZE] [--max-length N] [--no-cache] [--logits FILE]";

/// Keys and values as the exporters name them.
const STATES: [(&str, &str); 2] = [
    ("present.{i}.key", "past_key_values.{i}.key"),
    ("present.{i}.value", "past_key_values.{i}.value"),
];

fn main() -> Result<(), Failure> {
    run(std::env::args().skip(1), &mut std::io::stdout().lock())
}

/// Decodes as the arguments say, and writes the tokens.
pub fn run(
    arguments: impl IntoIterator<Item = String>,
    output: &mut impl Write,
) -> Result<(), Failure> {
    let options = Options::parse(arguments)?;
    let runtime = Runtime::new();
    let model = runtime.open_model(&options.model)?;
    let context = runtime.context();
    let mut session = model.session();
    for (kept, input) in &options.states {
        session = session.state(kept, input)?;
    }
    for (name, size) in &options.dims {
        session = session.dim(name, *size)?;
    }
    if let Some(n) = options.max_length {
        session = session.max_length(n)?;
    }
    let mut logits_file = options.logits.map(std::fs::File::create).transpose()?;

    let mut tokens = options.tokens;
    let mut n_seen = 0;
    for _ in 0..options.n_steps {
        let inputs = inputs(&session, &tokens, n_seen)?;
        let results = session.step(&context, inputs).wait()?;
        let logits = results.tensor("logits")?;
        let n_words = logits.shape().extents().last().unwrap_or(0);
        let all = logits.to_vec::<f32>()?;
        let last = &all[all.len() - n_words..];
        if let Some(file) = &mut logits_file {
            let bytes: Vec<u8> = last.iter().flat_map(|logit| logit.to_le_bytes()).collect();
            file.write_all(&bytes)?;
        }
        let token = largest(last).ok_or_else(|| bad("the logits are empty"))?;
        writeln!(output, "{token}")?;
        output.flush()?;
        n_seen = tokens.len();
        tokens.push(i64::try_from(token)?);
        if options.no_cache {
            session.reset();
            n_seen = 0;
        }
    }
    Ok(())
}

/// Returns what a step is given behind the first `n_seen` tokens: those inputs of the model that are no state.
fn inputs(
    session: &Session,
    tokens: &[i64],
    n_seen: usize,
) -> Result<Vec<(String, Tensor)>, Failure> {
    let is_state = |info: &ValueInfo| session.states().any(|(_, input)| input.name == info.name);
    let open = session.model().inputs().iter();
    let open = open.filter(|info| !is_state(info));
    let value = |info: &ValueInfo| {
        let (n_all, n_new) = (tokens.len(), tokens.len() - n_seen);
        let (extents, elements) = match info.name.as_str() {
            "input_ids" => (vec![1, n_new], tokens[n_seen..].to_vec()),
            "attention_mask" => (vec![1, n_all], vec![1; n_all]),
            "position_ids" => (vec![1, n_new], numbers(n_seen..n_all)?),
            "cache_position" => (vec![n_new], numbers(n_seen..n_all)?),
            // Of buffers with room: where the new keys go, and how many there are then.
            "write_indices" => (vec![1], numbers(n_seen..n_seen + 1)?),
            "nonpad_kv_seqlen" => (vec![1], numbers(n_all..n_all + 1)?),
            other => {
                return Err(bad(&format!(
                    "the model has an input '{other}', which is none of a decoder"
                )));
            }
        };
        Ok((info.name.clone(), Tensor::from_vec(&extents, elements)?))
    };
    open.map(value).collect()
}

fn numbers(range: std::ops::Range<usize>) -> Result<Vec<i64>, Failure> {
    Ok(range.map(i64::try_from).collect::<Result<_, _>>()?)
}

/// Returns the index of the largest number: of several the first.
fn largest(logits: &[f32]) -> Option<usize> {
    let first = |a: &(usize, &f32), b: &(usize, &f32)| a.1.total_cmp(b.1).then(b.0.cmp(&a.0));
    logits
        .iter()
        .enumerate()
        .max_by(first)
        .map(|(index, _)| index)
}

struct Options {
    model: PathBuf,
    tokens: Vec<i64>,
    n_steps: usize,
    states: Vec<(String, String)>,
    dims: Vec<(String, usize)>,
    max_length: Option<usize>,
    no_cache: bool,
    logits: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, Failure> {
        let mut arguments = arguments.into_iter();
        let mut next = || arguments.next().ok_or_else(|| bad(USAGE));
        let (model, tokens, n_steps) = (next()?.into(), next()?, next()?.parse()?);
        let tokens: Vec<i64> = tokens
            .split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let mut options = Options {
            model,
            tokens,
            n_steps,
            states: Vec::new(),
            dims: Vec::new(),
            max_length: None,
            no_cache: false,
            logits: None,
        };
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| bad(USAGE));
            match option.as_str() {
                "--state" => options.states.push(pair(&value()?)?),
                "--dim" => {
                    let (name, size) = pair(&value()?)?;
                    options.dims.push((name, size.parse()?));
                }
                "--max-length" => options.max_length = Some(value()?.parse()?),
                "--no-cache" => options.no_cache = true,
                "--logits" => options.logits = Some(value()?.into()),
                _ => return Err(bad(USAGE)),
            }
        }
        if options.states.is_empty() {
            let states = STATES.iter();
            options.states = states
                .map(|(output, input)| (output.to_string(), input.to_string()))
                .collect();
        }
        Ok(options)
    }
}

fn pair(text: &str) -> Result<(String, String), Failure> {
    let (a, b) = text.split_once('=').ok_or_else(|| bad(USAGE))?;
    Ok((a.to_owned(), b.to_owned()))
}

fn bad(message: &str) -> Failure {
    Error::invalid_argument(message.to_owned()).into()
}
