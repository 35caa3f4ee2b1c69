//! A crate of kernels: a type of its own, kernels at once and later, and control flow of its own.
//!
//! Whoever wants them adds one line: `Runtime::builder().kernels(tfrt_example_kernels::register)`.

use tfrt_host::kernel::{Attr, Call, Function, KernelRegistry, Step};
use tfrt_host::{AnyAsyncValue, AsyncValue, Error, ExecutionContext, Heap, Value};

/// A word, and how often it was said. Programs call it `!greet.word`.
#[derive(Clone, Debug)]
pub struct Word {
    text: String,
    n_said: u32,
}

impl Value for Word {
    const NAME: &'static str = "!greet.word";
    type Storage = Heap;
}

/// Adds all kernels of this crate.
pub fn register(registry: &mut KernelRegistry) {
    registry
        .add("greet.word", word)
        .add("greet.length", length)
        .add("greet.say", say)
        .add("greet.later", later)
        .add("greet.twice", twice);
}

/// `%w = greet.word {text = "hello"}`
///
/// # Errors
///
/// `InvalidArgument` if the text is empty.
fn word(text: Attr<&str>) -> Result<Word, Error> {
    if text.is_empty() {
        return Err(Error::invalid_argument("a word has letters"));
    }
    Ok(Word {
        text: (*text).to_owned(),
        n_said: 0,
    })
}

/// `%n = greet.length %w`
fn length(word: &Word) -> i32 {
    i32::try_from(word.text.chars().count()).unwrap_or(i32::MAX)
}

/// `%w1 = greet.say %w`: prints the word where the host's kernels print.
fn say(word: &Word, context: &ExecutionContext) -> Word {
    let n_said = word.n_said + 1;
    let output = context.host().output();
    output.print(format_args!("{} ({n_said})", word.text));
    Word {
        text: word.text.clone(),
        n_said,
    }
}

/// `%y = greet.later %x`: the same number, when a task of the work queue has got round to it.
fn later(x: i32, context: &ExecutionContext) -> AsyncValue<i32> {
    context.enqueue(move || Ok(x))
}

/// `%y = greet.twice %x @function`: the function of the function of a value.
fn twice(x: AnyAsyncValue, function: Function) -> Step {
    let again = function.clone();
    Step::call(Call::new(function, vec![x]), move |results| {
        Step::call(Call::new(again, results), Step::done)
    })
}
