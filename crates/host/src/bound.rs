//! [`BoundCall`]: a function that is called often.

use std::fmt;

use tfrt_async::AnyAsyncValue;

use crate::function::Function;
use crate::request::ExecutionContext;

/// A function that is called often, by [`Function::bind`]: a call takes its arguments from a list and leaves its results
/// there, so that the caller can use one list again and again. A call of small values, which makes no calls of its own,
/// asks for no memory.
///
/// It is a counted handle, as a [`Function`] is; threads can call it at the same time, each with a list of its own.
///
/// # Examples
///
/// ```
/// # use tfrt_host::{AnyAsyncValue, BoundCall, ExecutionContext};
/// /// Runs a function of one argument over and over, on its own results.
/// fn iterate(step: &BoundCall, context: &ExecutionContext, from: i32, n: usize) -> Option<i32> {
///     let mut values = vec![AnyAsyncValue::new(from)];
///     for _ in 0..n {
///         step.call(context, &mut values);
///     }
///     values.first()?.get::<i32>().copied()
/// }
/// ```
#[derive(Clone)]
pub struct BoundCall {
    function: Function,
}

impl BoundCall {
    pub(crate) fn new(function: Function) -> Self {
        BoundCall { function }
    }

    /// Returns the function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Runs on the calling thread as far as the function goes without waiting, as [`Function::execute`] does. The values
    /// are the arguments, and afterwards the results: values, errors, or values to come.
    ///
    /// A wrong number of arguments, or too little memory, fails all results.
    #[inline]
    pub fn call(&self, context: &ExecutionContext, values: &mut Vec<AnyAsyncValue>) {
        self.function.call(context, values);
    }
}

impl fmt::Debug for BoundCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoundCall({:?})", self.function.name())
    }
}
