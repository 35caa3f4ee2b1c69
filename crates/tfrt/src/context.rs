//! [`Context`]: the state that the calls of one request share, and by which they are cancelled together.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_async::queue::ConcurrentWorkQueue;
use tfrt_host::{Error, ExecutionContext, HostContext, RequestContext, ResourceContext};

/// One request. Calls made with it share its data and resources, and are cancelled together.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tfrt::{ErrorCode, Runtime};
///
/// let runtime = Runtime::new();
/// let program = runtime.compile("forever.mlir", "func.func @forever(%x: i32) -> i32 {
///   %y = tfrt.call @forever(%x) : (i32) -> i32
///   tfrt.return %y : i32
/// }")?;
/// let context = runtime.context_builder().deadline(Duration::from_millis(20)).build();
/// let error = program.function("forever").unwrap().call(&context, (1,)).wait().unwrap_err();
/// # if error.code() != ErrorCode::ResourceExhausted { // A fast machine gets to the depth limit.
/// assert_eq!(error.code(), ErrorCode::DeadlineExceeded);
/// # }
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    execution: ExecutionContext,
}

impl Context {
    /// Stops the request: kernels that have not started fail with code `Cancelled`, and so does
    /// everything that is awaited.
    pub fn cancel(&self) {
        self.request().cancel();
    }

    /// Stops the request with an error of one's own. The first reason is final.
    pub fn cancel_with(&self, reason: Error) {
        self.request().cancel_with(reason);
    }

    /// Returns whether the request was stopped.
    pub fn is_cancelled(&self) -> bool {
        self.request().is_cancelled()
    }

    /// Returns the request of the host runtime.
    pub fn request(&self) -> &Arc<RequestContext> {
        self.execution.request()
    }

    /// Returns the context that the host runtime takes.
    pub fn execution(&self) -> &ExecutionContext {
        &self.execution
    }
}

/// Makes calls a part of a request that was made by the host runtime.
impl From<Arc<RequestContext>> for Context {
    fn from(request: Arc<RequestContext>) -> Context {
        Context {
            execution: request.into(),
        }
    }
}

/// A builder of a [`Context`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tfrt::Runtime;
///
/// let runtime = Runtime::new();
/// let context = runtime
///     .context_builder()
///     .id(17)
///     .deadline(Duration::from_secs(2))
///     .max_memory(64 << 20)
///     .build();
/// assert_eq!(context.request().id(), 17);
/// context.cancel();
/// assert!(context.is_cancelled());
/// ```
pub struct ContextBuilder {
    builder: tfrt_host::RequestContextBuilder,
}

impl ContextBuilder {
    pub(crate) fn new(host: &HostContext) -> Self {
        let builder = RequestContext::builder(host).own_resources();
        ContextBuilder { builder }
    }

    /// Cancels the request after a time, with code `DeadlineExceeded`.
    pub fn deadline(mut self, after: Duration) -> Self {
        self.builder = self.builder.deadline_after(after);
        self
    }

    /// Cancels the request at a time, with code `DeadlineExceeded`.
    pub fn deadline_at(mut self, at: Instant) -> Self {
        self.builder = self.builder.deadline(at);
        self
    }

    /// Limits the bytes that the calls of the request, and the tensors that they make, hold at once, beside what the
    /// [runtime](crate::RuntimeBuilder::limits) allows all requests together. A call that needs more fails with code
    /// `ResourceExhausted`; the request goes on, and others hear nothing of it. What the caller gives does not count, and
    /// what is given back may be taken again.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::{ErrorCode, Model, Runtime};
    ///
    /// let runtime = Runtime::new();
    /// let model = Model::from_program(
    ///     runtime.compile("twice.mlir", r#"func.func @main(%x: tensor<?xf32>) -> tensor<?xf32>
    ///         attributes {model.input_names = ["x"], model.output_names = ["y"]} {
    ///       %y = "onnx.Add"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    ///       tfrt.return %y : tensor<?xf32>
    ///     }"#)?,
    ///     &runtime,
    /// )?;
    /// let limited = runtime.context_builder().max_memory(64 << 10).build();
    /// let error = model.call(&limited, (vec![1.0_f32; 100_000],)).wait().unwrap_err();
    /// assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    /// assert_eq!(error.notes(), ["the request is limited to 65536 bytes at once, and 400064 more were asked for"]);
    /// assert!(model.call(&limited, (vec![1.0_f32; 100],)).wait().is_ok());
    /// # Ok::<(), tfrt::AnyError>(())
    /// ```
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.builder = self.builder.max_memory(bytes);
        self
    }

    /// Gives kernels a value, found by its type.
    pub fn data<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.builder = self.builder.data(value);
        self
    }

    /// Gives kernels named resources that outlive the request. Default: new ones.
    pub fn resources(mut self, resources: Arc<ResourceContext>) -> Self {
        self.builder = self.builder.resources(resources);
        self
    }

    /// Runs this request's tasks on a queue of its own.
    pub fn queue(mut self, queue: Arc<dyn ConcurrentWorkQueue>) -> Self {
        self.builder = self.builder.queue(queue);
        self
    }

    /// Sets a number that tells requests apart. Default: 0.
    pub fn id(mut self, id: i64) -> Self {
        self.builder = self.builder.id(id);
        self
    }

    /// Makes the context.
    pub fn build(self) -> Context {
        Context {
            execution: self.builder.build().into(),
        }
    }
}

impl fmt::Debug for ContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextBuilder").finish_non_exhaustive()
    }
}
