//! [`Function`]: what callers call.

use std::fmt;
use std::sync::Arc;

use tfrt_async::queue::Task;
use tfrt_async::{AnyAsyncValue, Error, run_when_settled};
use tfrt_bef::FunctionKind;

use crate::executor::frame::Frame;
use crate::executor::{self, topology::Topology};
use crate::interpreter;
use crate::program::ProgramRef;
use crate::request::{ExecutionContext, RequestContext};
use crate::trace::{Level, Scope};

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

    fn topology(&self) -> &Topology {
        self.program.topology(self.index)
    }

    /// The name; empty for the function of a region.
    pub fn name(&self) -> &str {
        self.program.function_name(self.index)
    }

    /// How it runs.
    pub fn kind(&self) -> FunctionKind {
        self.topology().kind()
    }

    /// The number of arguments.
    pub fn n_arguments(&self) -> usize {
        self.topology().shape().n_arguments()
    }

    /// The number of results.
    pub fn n_results(&self) -> usize {
        self.topology().shape().result_registers().len()
    }

    /// The MLIR names of the arguments' types.
    pub fn argument_types(&self) -> impl ExactSizeIterator<Item = &str> {
        let file = self.program.file();
        self.program
            .view(self.index)
            .argument_types()
            .map(|index| file.type_name(index))
    }

    /// The MLIR names of the results' types.
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
        let _scope = self.scope(context.request());
        match self.frame(context.request().clone(), 0, &arguments) {
            Ok(Some(frame)) => {
                executor::execute(&frame, arguments);
                frame.take_results()
            }
            Ok(None) => self.in_order(context.request(), 0, &arguments),
            Err(error) => self.all_failed(context.report(error)),
        }
    }

    /// Hands the call to the work queue and returns at once; the results are values to come.
    pub fn spawn(
        &self,
        context: &ExecutionContext,
        arguments: Vec<AnyAsyncValue>,
    ) -> Vec<AnyAsyncValue> {
        match self.frame(context.request().clone(), 0, &arguments) {
            Ok(Some(frame)) => {
                executor::spawn(&frame, arguments);
                frame.take_results()
            }
            Ok(None) => self.in_order_later(context.request(), 0, arguments),
            Err(error) => self.all_failed(context.report(error)),
        }
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
        if self.kind() != FunctionKind::Sync {
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
        let frame = self.new_frame(context.request().clone(), 0)?;
        interpreter::run(&frame, arguments)
    }

    fn scope<'a>(&self, request: &'a RequestContext) -> Option<Scope<'a>> {
        let sink = request.host().trace()?;
        Some(Scope::new(sink, Level::Default, || {
            format!("Function: {}", self.name())
        }))
    }

    /// The frame for a call from inside another, or `None` if the function runs in order.
    pub(crate) fn frame_for_call(
        &self,
        caller: &Arc<Frame>,
        arguments: &[AnyAsyncValue],
    ) -> Result<Option<Arc<Frame>>, Error> {
        self.frame(caller.request().clone(), caller.depth() + 1, arguments)
    }

    fn frame(
        &self,
        request: Arc<RequestContext>,
        depth: u32,
        arguments: &[AnyAsyncValue],
    ) -> Result<Option<Arc<Frame>>, Error> {
        self.check_arguments(arguments)?;
        if self.kind() == FunctionKind::Sync {
            return Ok(None);
        }
        self.new_frame(request, depth).map(Some)
    }

    fn new_frame(&self, request: Arc<RequestContext>, depth: u32) -> Result<Arc<Frame>, Error> {
        let max_depth = request.host().limits().max_depth;
        if depth >= max_depth {
            return Err(Error::resource_exhausted(format!(
                "call depth exceeds the limit of {max_depth}"
            )));
        }
        Frame::new(self.program.clone(), self.index, request, depth)
    }

    fn check_arguments(&self, arguments: &[AnyAsyncValue]) -> Result<(), Error> {
        let (found, expected) = (arguments.len(), self.n_arguments());
        if found == expected {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "function '{}' takes {expected} arguments, but is given {found}",
            self.name()
        )))
    }

    /// Runs a synchronous function for a call from inside another.
    pub(crate) fn run_in_order(
        &self,
        caller: &Arc<Frame>,
        arguments: &[AnyAsyncValue],
    ) -> Vec<AnyAsyncValue> {
        self.in_order(caller.request(), caller.depth() + 1, arguments)
    }

    /// Runs a synchronous function now, or when its arguments are there.
    fn in_order(
        &self,
        request: &Arc<RequestContext>,
        depth: u32,
        arguments: &[AnyAsyncValue],
    ) -> Vec<AnyAsyncValue> {
        if arguments.iter().any(|argument| !argument.is_settled()) {
            return self.in_order_later(request, depth, arguments.to_vec());
        }
        self.new_frame(request.clone(), depth)
            .and_then(|frame| interpreter::run(&frame, arguments))
            .unwrap_or_else(|error| self.all_failed(error))
    }

    fn in_order_later(
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
                let results = function.in_order(&request, depth, &arguments);
                for (promise, result) in promises.into_iter().zip(results) {
                    promise.forward(result);
                }
            }));
        });
        handles
    }

    fn all_failed(&self, error: Error) -> Vec<AnyAsyncValue> {
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
