//! Wrong uses of operations, each with its message: the rows of `docs/wrong-uses.md`. `cargo xtask bless` rewrites
//! the page.

use std::fmt::Write;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use expect_test::expect_file;
use tfrt_corert::{
    Context, CoreRuntime, CoreRuntimeOp, Formats, Handles, IntoInputs, OpAttrs, OpDefinition,
    Output, TensorHandle, same_metadata,
};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, DType, Error, ErrorCode, HostContext, Promise};
use tfrt_tensor::{Element, StringHostTensor, Tensor, TensorShape};

#[path = "wrong_uses/attributes.rs"]
mod attributes;
#[path = "wrong_uses/calls.rs"]
mod calls;
#[path = "wrong_uses/images.rs"]
mod images;
#[path = "wrong_uses/late.rs"]
mod late;
#[path = "wrong_uses/surroundings.rs"]
mod surroundings;
#[path = "wrong_uses/tensors.rs"]
mod tensors;

/// Returns the runtime of a host, with all kernels.
fn runtime_of(host: &HostContext) -> CoreRuntime {
    let runtime = CoreRuntime::new(host);
    runtime.set_kernels(tfrt_kernels::rows::find);
    runtime
}

/// A wrong use and the resulting message.
struct Row {
    what: &'static str,
    error: Error,
}

fn row(what: &'static str, error: Error) -> Row {
    Row { what, error }
}

/// A runtime, context and operations to misuse.
struct User {
    runtime: CoreRuntime,
    context: Context,
    /// An operation whose result is of the input's type and shape, and comes when a promise is kept.
    later: CoreRuntimeOp,
    promises: Arc<Mutex<Vec<Promise<Tensor>>>>,
}

impl Drop for User {
    /// Breaks promises, since calls that wait for them hold the operation that made them, which holds them.
    fn drop(&mut self) {
        let promises = std::mem::take(&mut *self.promises.lock().unwrap());
        drop(promises);
    }
}

impl User {
    fn new() -> User {
        let runtime = runtime_of(&HostContext::builder(KernelRegistry::new()).build());
        let context = runtime.context();
        let promises = Arc::new(Mutex::new(Vec::new()));
        let made = promises.clone();
        let later = OpDefinition::new("later", move |_| {
            let (promise, tensor) = AsyncValue::pending();
            made.lock().unwrap().push(promise);
            Ok([Output::Later(tensor)].into())
        });
        let later = later
            .inputs(1)
            .formats(Formats::ALL)
            .metadata(same_metadata);
        let later = late::op_of(&runtime, later.cost(|_, _| 1).pure());
        User {
            runtime,
            context,
            later,
            promises,
        }
    }

    /// Returns a pending tensor of which type and shape are known.
    fn later(&self, like: &TensorHandle) -> TensorHandle {
        let later = self.later.call_one(&self.context, [like], &none());
        // A handle of another runtime, say.
        later.unwrap_or_else(|_| like.clone())
    }

    fn dense<T: Element>(&self, extents: &[usize], elements: &[T]) -> TensorHandle {
        self.runtime.dense(extents, elements).unwrap()
    }

    /// Returns a tensor of ones.
    fn ones(&self, extents: &[usize]) -> TensorHandle {
        self.dense(extents, &vec![1.0_f32; extents.iter().product()])
    }

    fn strings(&self, strings: &[&str]) -> TensorHandle {
        let shape = TensorShape::new(&[strings.len()]).unwrap();
        let strings = strings.iter().map(|text| text.as_bytes().to_vec());
        let tensor = StringHostTensor::new(shape, strings.collect()).unwrap();
        self.runtime.handle(tensor)
    }

    /// Returns the error of a call that can't be made: with inputs that are there, and with pending ones if types and
    /// shapes are enough to know it.
    #[track_caller]
    fn refusal(&self, op: &str, inputs: impl IntoInputs, attrs: &OpAttrs) -> Error {
        let given: Vec<TensorHandle> = inputs.with(|inputs| inputs.iter().cloned().collect());
        let error = self.failure_of(op, &given, attrs);
        if !given.is_empty() && error.code() == ErrorCode::InvalidArgument {
            let to_come = self.to_come(&given);
            let op = self.runtime.op(op, &self.runtime.cpu()).unwrap();
            match op.call(&self.context, &to_come, attrs) {
                Err(early) => assert_eq!(early.message(), error.message(), "{}", op.name()),
                Ok(_) => panic!("{} finds too late: {error}", op.name()),
            }
        }
        error
    }

    /// Returns the error of a call that is only found when the inputs are there: by their elements, or since no
    /// memory holds the results.
    #[track_caller]
    fn late_refusal(&self, op: &str, inputs: impl IntoInputs, attrs: &OpAttrs) -> Error {
        self.failure_of(op, inputs, attrs)
    }

    #[track_caller]
    fn failure_of(&self, op: &str, inputs: impl IntoInputs, attrs: &OpAttrs) -> Error {
        let op = self.runtime.op(op, &self.runtime.cpu()).unwrap();
        failure(op.call(&self.context, inputs, attrs))
    }

    /// Returns pending tensors of the types and shapes of the inputs. Lists of integers behind the first input stay
    /// as they are, since the results may depend on them.
    fn to_come(&self, inputs: &[TensorHandle]) -> Vec<TensorHandle> {
        let to_come = |(index, input): (usize, &TensorHandle)| {
            let is_kept = index > 0 && input.dtype().is_some_and(DType::is_integer);
            match is_kept {
                true => input.clone(),
                false => self.later(input),
            }
        };
        inputs.iter().enumerate().map(to_come).collect()
    }
}

/// Returns the error of a call, or of the results when they are settled.
#[track_caller]
fn failure(results: Result<Handles, Error>) -> Error {
    match results {
        Err(error) => error,
        Ok(results) => {
            results.iter().for_each(settled);
            let error = results.iter().find_map(TensorHandle::error).cloned();
            error.unwrap_or_else(|| panic!("nothing is wrong with {results:?}"))
        }
    }
}

/// Waits until a handle is settled.
fn settled(handle: &TensorHandle) {
    let (sender, receiver) = mpsc::channel();
    handle
        .to_async()
        .when_settled(move |_| sender.send(()).unwrap());
    let wait = receiver.recv_timeout(Duration::from_secs(60));
    wait.expect("it settles");
}

fn none() -> OpAttrs {
    OpAttrs::new()
}

/// Attributes: `attrs!["axis" => 1_i64]`
macro_rules! attrs {
    ($($name:literal => $value:expr),*) => {{
        let mut attrs = tfrt_corert::OpAttrs::new();
        $(attrs.set($name, $value).unwrap();)*
        attrs
    }};
}
pub(crate) use attrs;

const START: &str = "\
<!-- Generated from crates/corert/tests/wrong_uses by `cargo xtask bless`. -->
# Wrong uses of the core runtime

What is said of them. *Of* is the operation that the error names (`Error::kernel`); errors of calls also have the \
place of the caller (`Error::location`). What is wrong with types and shapes that are known is the error of the call, \
which has done nothing then; what is known later fails the results, and is told to the diagnostic handler of the host, \
once.
";

#[test]
fn what_is_said_of_wrong_uses() {
    let sections = [
        ("Finding and calling operations", calls::rows()),
        ("Attributes", attributes::rows()),
        ("Types, shapes and elements", tensors::rows()),
        ("Images and windows", images::rows()),
        ("What is known late", late::rows()),
        (
            "Handlers, devices, functions, recordings, tensors",
            surroundings::rows(),
        ),
    ];
    let mut text = START.to_owned();
    let mut n = 0;
    for (heading, rows) in sections {
        let header = "| What is done | Code | Of | What is said |\n| --- | --- | --- | --- |";
        write!(text, "\n## {heading}\n\n{header}\n").unwrap();
        for Row { what, error } in rows {
            let op = error
                .kernel()
                .filter(|op| !op.is_empty())
                .map(|op| format!("`{op}`"));
            let notes = error.notes().iter().map(|note| format!("; note: {note}"));
            let (code, op, notes) = (
                error.code(),
                op.unwrap_or_default(),
                notes.collect::<String>(),
            );
            let message = format!("{}{notes}", error.message()).replace('|', "\\|");
            writeln!(text, "| {what} | {code} | {op} | {message} |").unwrap();
            n += 1;
        }
    }
    assert!(n >= 40, "{n}");
    expect_file!["../../../../docs/wrong-uses.md"].assert_eq(&text);
}

#[test]
fn errors_of_calls_have_the_place_of_the_caller() {
    let of_calls = [
        calls::rows(),
        attributes::rows(),
        tensors::rows(),
        images::rows(),
    ];
    for Row { what, error } in of_calls.into_iter().flatten() {
        let is_about_finding = error.kernel().is_none() && what.starts_with("Looking for");
        let has_place = error
            .location()
            .is_some_and(|place| place.to_string().contains("wrong_uses"));
        assert!(is_about_finding || has_place, "{what}: {error:?}");
    }
}
