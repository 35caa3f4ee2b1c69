//! [`Function`]: a function of a loaded program, to be called.

use std::fmt;
use std::sync::Arc;

use tfrt_async::queue::Task;
use tfrt_async::{AnyAsyncValue, Error, run_when_settled};
use tfrt_bef::FunctionKind;

use crate::bound::BoundCall;
use crate::executor::frame::Frame;
use crate::executor::inline::stack::RemainingCall;
use crate::executor::plan::function::FunctionPlan;
use crate::executor::route::{self, Route};
use crate::executor::{self, inline};
use crate::program::ProgramRef;
use crate::request::{ExecutionContext, RequestContext};
use crate::trace::{TraceLevel, TraceSpan};

/// A function of a program. A counted handle.
#[derive(Clone)]
pub struct Function {
    program: ProgramRef,
    index: u32,
}

impl Function {
    pub(crate) fn new(program: ProgramRef, index: u32) -> Self {
        Function { program, index }
    }

    pub(crate) fn topology(&self) -> &FunctionPlan {
        self.program.topology(self.index)
    }

    /// Returns the name; empty for the function of a region.
    pub fn name(&self) -> &str {
        self.program.function_name(self.index)
    }

    /// Returns the kind of the function.
    pub fn kind(&self) -> FunctionKind {
        self.topology().kind()
    }

    /// Returns the number of arguments.
    pub fn n_arguments(&self) -> usize {
        self.topology().n_arguments()
    }

    /// Returns the number of results.
    pub fn n_results(&self) -> usize {
        self.topology().n_results()
    }

    /// Returns the MLIR names of the arguments' types.
    pub fn argument_types(&self) -> impl ExactSizeIterator<Item = &str> {
        let file = self.program.file();
        self.program
            .view(self.index)
            .argument_types()
            .map(|index| file.type_name(index))
    }

    /// Returns the MLIR names of the results' types.
    pub fn result_types(&self) -> impl ExactSizeIterator<Item = &str> {
        let file = self.program.file();
        self.program
            .view(self.index)
            .result_types()
            .map(|index| file.type_name(index))
    }

    /// Runs on the calling thread as far as the function goes without waiting, and gives its
    /// results: values, errors, or values to come.
    ///
    /// A synchronous function runs to its end; see also [`Function::run_synchronously`].
    pub fn execute(
        &self,
        context: &ExecutionContext,
        arguments: Vec<AnyAsyncValue>,
    ) -> Vec<AnyAsyncValue> {
        let mut values = arguments;
        self.call(context, &mut values);
        values
    }

    /// Binds the function: gives it as what is called often, with lists that are used again.
    pub fn bind(&self) -> BoundCall {
        BoundCall::new(self.clone())
    }

    /// Runs as [`execute`](Self::execute) does. The values are the arguments, and then the results.
    #[inline]
    pub(crate) fn call(&self, context: &ExecutionContext, values: &mut Vec<AnyAsyncValue>) {
        let scope = self.scope(context.request());
        if let Err(error) = executor::call(self, context.request(), values) {
            *values = self.all_failed(&context.report(error));
        }
        drop(scope);
    }

    /// Hands the call to the work queue and returns at once; the results are values to come.
    pub fn spawn(
        &self,
        context: &ExecutionContext,
        arguments: Vec<AnyAsyncValue>,
    ) -> Vec<AnyAsyncValue> {
        let results = self
            .check_arguments(&arguments)
            .and_then(|()| match self.is_synchronous() {
                true => Ok(self.run_later(context.request(), 0, arguments)),
                false => self.spawn_at(context.request(), 0, arguments),
            });
        results.unwrap_or_else(|error| self.all_failed(&context.report(error)))
    }

    /// Runs a function marked synchronous to its end.
    ///
    /// # Errors
    ///
    /// The first error of a kernel; `InvalidArgument` if the function is not marked synchronous, if
    /// the number of arguments is wrong, or if an argument is still to come.
    pub fn run_synchronously(
        &self,
        context: &ExecutionContext,
        arguments: &[AnyAsyncValue],
    ) -> Result<Vec<AnyAsyncValue>, Error> {
        let _scope = self.scope(context.request());
        if !self.is_synchronous() {
            return Err(Error::invalid_argument(format!(
                "'{}' is not a synchronous function",
                self.name()
            )));
        }
        self.check_arguments(arguments)?;
        if arguments.iter().any(|argument| !argument.is_settled()) {
            return Err(Error::invalid_argument(format!(
                "an argument of the synchronous function '{}' is still to come",
                self.name()
            )));
        }
        let mut values = arguments.to_vec();
        inline::run(&self.program, self.index, context.request(), 0, &mut values)?;
        Ok(values)
    }

    /// Returns the span of a call for those who trace the host.
    #[cfg_attr(not(tfrt_for_size), inline)]
    fn scope<'a>(&self, request: &'a RequestContext) -> Option<TraceSpan<'a>> {
        let sink = request.host().trace()?;
        Some(TraceSpan::new(sink, TraceLevel::Default, || {
            format!("Function: {}", self.name())
        }))
    }

    /// Returns whether the function is marked synchronous.
    pub(crate) fn is_synchronous(&self) -> bool {
        self.topology().is_synchronous()
    }

    /// Returns the function's number in `program`, if it is one of that.
    pub(crate) fn index_in(&self, program: &ProgramRef) -> Option<u32> {
        Arc::ptr_eq(&self.program, program).then_some(self.index)
    }

    /// Runs a call in order. The values are its arguments, which are settled, and then its results.
    #[cfg_attr(not(tfrt_for_size), inline(always))]
    pub(crate) fn run_inline(
        &self,
        request: &Arc<RequestContext>,
        depth: u32,
        values: &mut Vec<AnyAsyncValue>,
    ) {
        if let Err(error) = inline::run(&self.program, self.index, request, depth, values) {
            *values = self.all_failed(&error);
        }
    }

    /// Runs a call in order as long as all results are there. The values are its arguments, which are settled, and then
    /// its results; unless one is to come: then this gives what is left of the call, which is to be counted.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory, or the depth is beyond the limit.
    #[inline]
    pub(crate) fn attempt(
        &self,
        request: &Arc<RequestContext>,
        depth: u32,
        values: &mut Vec<AnyAsyncValue>,
    ) -> Result<Option<Box<RemainingCall>>, Error> {
        let left = inline::attempt(&self.program, self.index, request, depth, values)?;
        if left.is_some() {
            self.topology().has_tried();
        }
        Ok(left)
    }

    /// Runs a call in order, as a task, when its arguments are there.
    pub(crate) fn run_later(
        &self,
        request: &Arc<RequestContext>,
        depth: u32,
        arguments: Vec<AnyAsyncValue>,
    ) -> Vec<AnyAsyncValue> {
        let (promises, handles): (Vec<_>, Vec<_>) = (0..self.n_results())
            .map(|_| AnyAsyncValue::pending())
            .unzip();
        let (function, request) = (self.clone(), request.clone());
        let awaited = arguments.clone();
        run_when_settled(&awaited, move || {
            let queue = request.queue().clone();
            queue.add_task(Task::new(move || {
                let settled = arguments.into_iter().map(AnyAsyncValue::settled);
                let mut values = settled.collect();
                function.run_inline(&request, depth, &mut values);
                for (promise, result) in promises.into_iter().zip(values) {
                    promise.forward(result);
                }
            }));
        });
        handles
    }

    /// Hands a call to the work queue.
    pub(crate) fn spawn_at(
        &self,
        request: &Arc<RequestContext>,
        depth: u32,
        mut arguments: Vec<AnyAsyncValue>,
    ) -> Result<Vec<AnyAsyncValue>, Error> {
        self.check_arguments(&arguments)?;
        match route::of_spawned(self.topology(), request, depth, &arguments) {
            Route::InOrder => {
                self.run_inline(request, depth, &mut arguments);
                Ok(arguments)
            }
            Route::InOrderLater => Ok(self.run_later(request, depth, arguments)),
            Route::TryInOrder | Route::Counted => {
                let frame = self.frame(request, depth)?;
                executor::spawn(&frame, arguments);
                Ok(frame.take_results())
            }
        }
    }

    /// Returns a new frame for a call.
    pub(crate) fn frame(
        &self,
        request: &Arc<RequestContext>,
        depth: u32,
    ) -> Result<Arc<Frame>, Error> {
        self.numbered_frame(request, depth, None)
    }

    /// Returns a new frame for a call that has a number already: of [`next_call_number`]. See [`frame`](Self::frame).
    ///
    /// [`next_call_number`]: crate::executor::frame
    pub(crate) fn numbered_frame(
        &self,
        request: &Arc<RequestContext>,
        depth: u32,
        number: Option<u64>,
    ) -> Result<Arc<Frame>, Error> {
        request.check_depth(depth as usize)?;
        let program = self.program.clone();
        Frame::new(program, self.index, request.clone(), depth, number)
    }

    /// Compares the number of arguments with that of the function.
    #[inline]
    pub(crate) fn check_arguments(&self, arguments: &[AnyAsyncValue]) -> Result<(), Error> {
        if arguments.len() == self.n_arguments() {
            return Ok(());
        }
        Err(self
            .program
            .wrong_argument_count(self.index, arguments.len()))
    }

    /// Returns one error for all results.
    #[cold]
    pub(crate) fn all_failed(&self, error: &Error) -> Vec<AnyAsyncValue> {
        (0..self.n_results())
            .map(|_| AnyAsyncValue::from_error(error.clone()))
            .collect()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({:?})", self.name())
    }
}
