//! Control flow: kernels that make the executor run functions.
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

use tfrt_host::kernel::{
    Arguments, Attr, Call, Callee, Callees, Forward, Function, KernelRegistry, Loop, Rest, Step,
    Turn, Turns,
};
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
fn call(arguments: Arguments, callee: Callee) -> Forward {
    Call::forward(callee, arguments)
}

/// `%r = tfrt.if %c, %x : (i32) -> i32 { .. } else { .. }`, and
/// `%r = tfrt.cond %c @yes @no (%x) : (i32) -> (i32)`
fn choose(condition: bool, arguments: Arguments, yes: Callee, no: Callee) -> Forward {
    Call::forward(if condition { yes } else { no }, arguments)
}

/// `%r = tfrt.case %i [@b0, @b1] (%x) : (i32) -> (i32)`
fn case(index: i32, arguments: Arguments, branches: Callees) -> Result<Forward, Error> {
    let n_branches = branches.0.len();
    let branch = usize::try_from(index)
        .ok()
        .and_then(|index| branches.0.into_iter().nth(index));
    match branch {
        Some(branch) => Ok(Call::forward(branch, arguments)),
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
    body: Callee,
) -> Result<Loop<While>, Error> {
    let n_values = values.len();
    if n_values == 0 {
        return Err(Error::invalid_argument(
            "tfrt.while needs at least one loop value",
        ));
    }
    expect_shape(body, n_values, n_values + 1)?;
    let turns = While {
        body,
        is_spawned: *parallel_iterations > 1,
        first: Some(condition),
        failure: None,
        operands: held(&values),
    };
    Ok(Loop::new(turns, values.0))
}

/// The state of a `tfrt.while` between two turns.
struct While {
    body: Callee,
    /// Whether turns are tasks.
    is_spawned: bool,
    /// The condition of the first turn, before it begins.
    first: Option<bool>,
    /// The error of the condition, if it has failed: the loop ends when the values that are pending are there.
    failure: Option<Error>,
    /// Operands that are held until the kernel returns, as those of every kernel are.
    operands: Vec<AnyAsyncValue>,
}

impl Turns for While {
    fn next(&mut self, values: &mut Vec<AnyAsyncValue>) -> Turn {
        if let Some(condition) = self.first.take() {
            return self.decide(condition);
        }
        if let Some(failure) = &self.failure {
            if let Some(running) = values.iter().position(|value| !value.is_settled()) {
                return Turn::WaitInline(running);
            }
            values.fill_with(|| AnyAsyncValue::from_error(failure.clone()));
            return Turn::Done;
        }
        let Some(condition) = values.last() else {
            return Turn::Fail(Error::internal("the body has a result at least"));
        };
        // Mostly it lies in place.
        if let Some(condition) = condition.get_in_place::<bool>() {
            values.pop();
            return self.decide(condition);
        }
        if !condition.is_settled() {
            self.operands.clear();
            return Turn::Wait(values.len() - 1);
        }
        if let Some(error) = condition.error() {
            self.failure = Some(error.clone());
            values.pop();
            return self.next(values);
        }
        let Some(condition) = condition.get::<bool>().copied() else {
            return Turn::Fail(Error::invalid_argument(format!(
                "expected i1 as the last result of the loop's body, found {}",
                condition.type_name().unwrap_or("another type"),
            )));
        };
        values.pop();
        self.decide(condition)
    }
}

impl While {
    fn decide(&self, condition: bool) -> Turn {
        match (condition, self.is_spawned) {
            (false, _) => Turn::Done,
            (true, false) => Turn::Call(self.body),
            (true, true) => Turn::Spawn(self.body),
        }
    }
}

/// The number of turns of a `tfrt.repeat.i32` that are launched without a wait.
const BLOCK: u32 = 32;

/// `%x1 = tfrt.repeat.i32 %n, %x : i32 { .. }`
fn repeat(count: i32, values: Rest, body: Callee) -> Result<Loop<Repeat>, Error> {
    let Ok(n_left) = u32::try_from(count) else {
        return Err(Error::invalid_argument(format!(
            "expected a repeat count that is not negative, found {count}"
        )));
    };
    expect_shape(body, values.len(), values.len())?;
    let turns = Repeat {
        body,
        n_left,
        n_left_in_block: BLOCK,
        operands: held(&values),
    };
    Ok(Loop::new(turns, values.0))
}

/// The state of a `tfrt.repeat.i32` between two turns.
struct Repeat {
    body: Callee,
    n_left: u32,
    n_left_in_block: u32,
    /// Operands that are held until the kernel returns, as those of every kernel are.
    operands: Vec<AnyAsyncValue>,
}

impl Turns for Repeat {
    fn next(&mut self, values: &mut Vec<AnyAsyncValue>) -> Turn {
        if self.n_left == 0 {
            return Turn::Done;
        }
        if self.n_left_in_block == 0 {
            self.n_left_in_block = BLOCK;
            if values.first().is_some_and(|first| !first.is_settled()) {
                self.operands.clear();
                return Turn::WaitInline(0);
            }
        }
        self.n_left -= 1;
        self.n_left_in_block -= 1;
        Turn::Call(self.body)
    }
}

/// Returns copies of operands whose destruction is observable.
fn held(values: &[AnyAsyncValue]) -> Vec<AnyAsyncValue> {
    let counted = values.iter().filter(|value| value.is_counted());
    counted.cloned().collect()
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

/// The shared state of all executions of one `tfrt.once`.
struct Once {
    first: Mutex<Option<FirstExecution>>,
    results: Vec<AnyAsyncValue>,
}

/// The promises of the results, which the first execution keeps.
struct FirstExecution(Vec<AnyPromise>);

impl Once {
    fn new(function: &Function) -> Self {
        let (promises, results) = (0..function.n_results())
            .map(|_| AnyAsyncValue::pending())
            .unzip();
        Once {
            first: Mutex::new(Some(FirstExecution(promises))),
            results,
        }
    }

    fn begin(&self) -> Option<FirstExecution> {
        self.first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl FirstExecution {
    fn end(mut self, results: Vec<AnyAsyncValue>) {
        for (promise, result) in self.0.drain(..).zip(results) {
            promise.forward(result);
        }
    }
}

/// Fails the results if the first execution is cancelled before its function runs.
impl Drop for FirstExecution {
    fn drop(&mut self) {
        for promise in self.0.drain(..) {
            promise.fail(Error::cancelled("Cancelled").with_kernel(""));
        }
    }
}

/// Compares a body with the loop that runs it.
fn expect_shape(body: Callee, n_arguments: usize, n_results: usize) -> Result<(), Error> {
    let (arguments, results) = (body.n_arguments(), body.n_results());
    if (arguments, results) == (n_arguments, n_results) {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "expected a body of {n_arguments} arguments and {n_results} results, \
         found {arguments} and {results}"
    )))
}
