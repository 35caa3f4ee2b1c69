//! Control flow: kernels that ask the executor to run functions.
//!
//! None of them runs a function on its own stack, so a loop of any number of turns and a recursion
//! of any depth take the stack of one call. Between two turns nothing is kept but the loop's
//! values.
//!
//! | Operation | Goes on |
//! | --- | --- |
//! | `call`, `if`, `cond`, `case` | their results are those of one call |
//! | `while`, `parallel_iterations <= 1` | when a turn has returned and its condition is there |
//! | `while`, `parallel_iterations > 1` | when a turn's condition is there; turns are tasks |
//! | `repeat.i32` | when a turn has returned; after each 32, when the first value is there |
//! | `once` | the first execution calls; all others share its results |

use std::sync::{Mutex, PoisonError};

use tfrt_host::kernel::{Attr, Call, Function, KernelRegistry, Rest, RestFunctions, Step};
use tfrt_host::{AnyAsyncValue, AnyPromise, Error, ExecutionContext};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt.call", call)
        .add("tfrt.if", choose)
        .add("tfrt.cond", choose)
        .add("tfrt.case", case)
        .add("tfrt.while", while_loop)
        .add("tfrt.repeat.i32", repeat)
        .add("tfrt.once", once);
}

/// `%r = tfrt.call @f(%a) : (i32) -> i32`
fn call(arguments: Rest, callee: Function) -> Call {
    Call::new(callee, arguments.0)
}

/// `%r = tfrt.if %c, %x : (i32) -> i32 { .. } else { .. }`, and
/// `%r = tfrt.cond %c @yes @no (%x) : (i32) -> (i32)`
fn choose(condition: bool, arguments: Rest, yes: Function, no: Function) -> Call {
    Call::new(if condition { yes } else { no }, arguments.0)
}

/// `%r = tfrt.case %i [@b0, @b1] (%x) : (i32) -> (i32)`
fn case(index: i32, arguments: Rest, branches: RestFunctions) -> Result<Call, Error> {
    let n_branches = branches.0.len();
    let branch = usize::try_from(index)
        .ok()
        .and_then(|index| branches.0.into_iter().nth(index));
    match branch {
        Some(branch) => Ok(Call::new(branch, arguments.0)),
        None => Err(Error::invalid_argument(format!(
            "branch_index invalid. branch index: {index} # branches: {n_branches}"
        ))),
    }
}

/// `%n = tfrt.while %c @body(%a) parallel_iterations(1) : (i32) -> (i32)`
///
/// The body takes the loop's values, and gives the next ones and, last, the next condition.
fn while_loop(
    condition: bool,
    values: Rest,
    parallel_iterations: Attr<i64>,
    body: Function,
) -> Result<Step, Error> {
    let n_values = values.len();
    if n_values == 0 {
        return Err(Error::invalid_argument(
            "tfrt.while needs at least one loop value",
        ));
    }
    expect_shape(&body, n_values, n_values + 1)?;
    let turns = if *parallel_iterations > 1 {
        Turns::Spawned
    } else {
        Turns::Inline
    };
    let turns = While {
        operands: values.0.clone(),
        body,
        turns,
    };
    Ok(turns.decide(&AnyAsyncValue::new(condition), values.0))
}

/// How the turns of a `tfrt.while` run.
#[derive(Clone, Copy)]
enum Turns {
    /// One after the other on the current thread.
    Inline,
    /// Each as a task.
    Spawned,
}

struct While {
    /// Held until the kernel returns, as those of every kernel are.
    operands: Vec<AnyAsyncValue>,
    body: Function,
    turns: Turns,
}

impl While {
    /// Goes on with the next turn, or ends the loop.
    fn decide(self, condition: &AnyAsyncValue, values: Vec<AnyAsyncValue>) -> Step {
        if let Some(error) = condition.error() {
            // What is still running must not outlive the loop.
            let error = AnyAsyncValue::from_error(error.clone());
            let n_values = values.len();
            return Step::when_settled(values, move |_| Step::done(vec![error; n_values]));
        }
        match condition.get::<bool>() {
            Some(true) => self.turn(values),
            Some(false) => Step::done(values),
            None => Step::fail(Error::invalid_argument(format!(
                "expected i1 as the last result of '{}', found {}",
                self.body.name(),
                condition.type_name().unwrap_or("another type"),
            ))),
        }
    }

    fn turn(self, values: Vec<AnyAsyncValue>) -> Step {
        let call = Call::new(self.body.clone(), values);
        match self.turns {
            Turns::Inline => Step::call(call, move |results| self.after(results)),
            Turns::Spawned => Step::spawn(call, move |results| self.after(results)),
        }
    }

    fn after(mut self, mut values: Vec<AnyAsyncValue>) -> Step {
        let condition = values.pop().expect("the body has a result at least");
        if condition.is_settled() {
            return self.decide(&condition, values);
        }
        self.operands.clear();
        Step::wait_for(vec![condition], move |condition| {
            self.decide(&condition[0], values)
        })
    }
}

/// Turns of a `tfrt.repeat.i32` that are launched back to back.
const BLOCK: u32 = 32;

/// `%x1 = tfrt.repeat.i32 %n, %x : i32 { .. }`
fn repeat(count: i32, values: Rest, body: Function) -> Result<Step, Error> {
    let Ok(count) = u32::try_from(count) else {
        return Err(Error::invalid_argument(format!(
            "expected a repeat count that is not negative, found {count}"
        )));
    };
    expect_shape(&body, values.len(), values.len())?;
    let turns = Repeat {
        operands: values.0.clone(),
        body,
        left: count,
        left_in_block: BLOCK,
    };
    Ok(turns.turn(values.0))
}

struct Repeat {
    /// Held until the kernel returns, as those of every kernel are.
    operands: Vec<AnyAsyncValue>,
    body: Function,
    left: u32,
    left_in_block: u32,
}

impl Repeat {
    fn turn(mut self, values: Vec<AnyAsyncValue>) -> Step {
        if self.left == 0 {
            return Step::done(values);
        }
        if self.left_in_block == 0 {
            self.left_in_block = BLOCK;
            if let Some(first) = values.first().filter(|first| !first.is_settled()) {
                let first = first.clone();
                self.operands.clear();
                return Step::when_settled(vec![first], move |_| self.turn(values));
            }
        }
        self.left -= 1;
        self.left_in_block -= 1;
        let call = Call::new(self.body.clone(), values);
        Step::call(call, move |values| self.turn(values))
    }
}

/// `%r = tfrt.once @init(%x) : (i32) -> (i32)`
fn once(arguments: Rest, function: Function, context: &ExecutionContext) -> Result<Step, Error> {
    let Some(resources) = context.request().resources() else {
        // With a kernel's name an error counts as reported: this one is silent.
        let error = Error::unknown("tfrt.once requires resource context");
        return Err(error.with_kernel("tfrt.once"));
    };
    let name = format!("tfrt.once @{}", function.name());
    let once = resources.get_or_create(&name, || Once::new(&function))?;
    let Some(first) = once.begin() else {
        return Ok(Step::done(once.results.clone()));
    };
    Ok(Step::call(
        Call::new(function, arguments.0),
        move |results| {
            first.end(results);
            Step::done(once.results.clone())
        },
    ))
}

/// What all executions of one `tfrt.once` share.
struct Once {
    first: Mutex<Option<First>>,
    results: Vec<AnyAsyncValue>,
}

/// The right and the duty of the first execution.
struct First(Vec<AnyPromise>);

impl Once {
    fn new(function: &Function) -> Self {
        let (promises, results) = (0..function.n_results())
            .map(|_| AnyAsyncValue::pending())
            .unzip();
        Once {
            first: Mutex::new(Some(First(promises))),
            results,
        }
    }

    fn begin(&self) -> Option<First> {
        self.first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl First {
    fn end(mut self, results: Vec<AnyAsyncValue>) {
        for (promise, result) in self.0.drain(..).zip(results) {
            promise.forward(result);
        }
    }
}

/// The first execution was cancelled before its function ran.
impl Drop for First {
    fn drop(&mut self) {
        for promise in self.0.drain(..) {
            promise.fail(Error::cancelled("Cancelled").with_kernel(""));
        }
    }
}

/// Compares a body with the loop that runs it.
fn expect_shape(body: &Function, n_arguments: usize, n_results: usize) -> Result<(), Error> {
    let (arguments, results) = (body.n_arguments(), body.n_results());
    if (arguments, results) == (n_arguments, n_results) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "expected a body of {n_arguments} arguments and {n_results} results, \
         found {arguments} and {results}"
    )))
}
