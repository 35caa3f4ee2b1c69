//! Control kernels that have returned before their results were there.
//!
//! Their steps go on later: as tasks, or on the thread that settles what they wait for. Each set of
//! steps has promises for its results, which the kernel has returned.

use tfrt_async::queue::Task;
use tfrt_async::{AnyAsyncValue, AnyPromise, Error, run_when_settled};

use super::frame::{SharedFrame, Suspended};
use super::{
    Begun, Executor, Returns, TASKS_PER_TURN, begin_call, cancelled, continue_with, guarded,
    report, spawn_call,
};
use crate::kernel::control::{Begin, Resume, StepKind, Wake};
use crate::kernel::{Step, wrong_result_count};

/// The steps of a control kernel that has returned before its results were there.
pub(super) struct Detached {
    frame: SharedFrame,
    kernel: u32,
    results: Vec<AnyPromise>,
}

impl Executor {
    /// Goes on with a detached control step.
    pub(super) fn detached(&mut self, detached: Detached, mut step: Step) {
        loop {
            let (results, then) = match step.0 {
                StepKind::Done(results) => return detached.finish(results),
                StepKind::Fail(error) => return detached.fail(error),
                StepKind::Call(call, then) if self.n_handed >= TASKS_PER_TURN => {
                    let again = Box::new(move |_| Step(StepKind::Call(call, then)));
                    return detached.wait(Vec::new(), Wake::Task, again);
                }
                StepKind::Call(call, then) => {
                    let caller = detached.frame.local();
                    let begun = match cancelled(caller) {
                        Some(error) => Err(error),
                        None => begin_call(caller, call),
                    };
                    match begun {
                        Ok(Begun::Frame(frame, arguments)) => {
                            let held = arguments.clone();
                            let returns = Returns::Detached {
                                step: detached,
                                held,
                                then,
                            };
                            return self.enter(frame, arguments, returns);
                        }
                        Ok(Begun::Ended(results)) => (results, then),
                        Err(error) => return detached.fail(error),
                    }
                }
                StepKind::Spawn(call, then) => match cancelled(detached.frame.local()) {
                    Some(error) => return detached.fail(error),
                    None => (spawn_call(detached.frame.local(), call), then),
                },
                StepKind::Fork(begin, n_results, then) => {
                    let (step, results) = detached.sibling(n_results);
                    step.begin(begin);
                    (results, then)
                }
                StepKind::Await(values, wake, then) => {
                    if !values.iter().all(AnyAsyncValue::is_settled) {
                        return detached.wait(values, wake, then);
                    }
                    if let Some(error) = cancelled(detached.frame.local()) {
                        return detached.fail(error);
                    }
                    (values, then)
                }
            };
            step = match guarded(|| then(results)) {
                Ok(step) => step,
                Err(error) => return detached.fail(error),
            };
        }
    }
}

impl Detached {
    /// Makes steps with so many results to come.
    pub(super) fn new(kernel: &Suspended, n_results: usize) -> (Self, Vec<AnyAsyncValue>) {
        Self::of(kernel.frame().share(), kernel.kernel(), n_results)
    }

    /// Makes further steps of the same kernel.
    fn sibling(&self, n_results: usize) -> (Self, Vec<AnyAsyncValue>) {
        Self::of(self.frame.clone(), self.kernel, n_results)
    }

    fn of(frame: SharedFrame, kernel: u32, n_results: usize) -> (Self, Vec<AnyAsyncValue>) {
        let (results, handles) = (0..n_results).map(|_| AnyAsyncValue::pending()).unzip();
        let step = Detached {
            frame,
            kernel,
            results,
        };
        (step, handles)
    }

    /// Starts as a task.
    pub(super) fn begin(self, begin: Begin) {
        let queue = self.frame.local().request().queue().clone();
        queue.add_task(Task::new(move || self.go_on(begin)));
    }

    /// Goes on when all values are settled.
    pub(super) fn wait(self, values: Vec<AnyAsyncValue>, wake: Wake, then: Resume) {
        let queue = self.frame.local().request().queue().clone();
        let awaited = values.clone();
        run_when_settled(&awaited, move || match wake {
            Wake::Task => queue.add_task(Task::new(move || self.go_on(|| then(values)))),
            Wake::Inline => continue_with(self.frame.clone(), move |_| self.go_on(|| then(values))),
        });
    }

    /// Takes the next step, and those after it as far as they go on this thread.
    fn go_on(self, next: impl FnOnce() -> Step) {
        let mut executor = Executor::default();
        match guarded(next) {
            Ok(step) => executor.detached(self, step),
            Err(error) => self.fail(error),
        }
        executor.drive();
    }

    fn finish(self, results: Vec<AnyAsyncValue>) {
        if results.len() != self.results.len() {
            let error = wrong_result_count(results.len(), self.results.len());
            return self.fail(error);
        }
        for (promise, value) in self.results.into_iter().zip(results) {
            promise.forward(value);
        }
    }

    pub(super) fn fail(self, error: Error) {
        let error = report(self.frame.local(), self.kernel, error);
        for promise in self.results {
            promise.fail(error.clone());
        }
    }
}
