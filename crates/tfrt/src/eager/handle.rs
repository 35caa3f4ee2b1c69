//! [`Handle`]: a tensor whose methods are operations.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

use tfrt_async::AsyncValueFuture;
use tfrt_corert::TensorHandle;
use tfrt_host::{DType, Error};
use tfrt_tensor::{DenseHostTensor, Element, TensorFormat, TensorMetadata, TensorShape, convert};

use super::{Eager, wait_for};

/// A tensor that may be still to come. Clones lead to the same elements.
#[derive(Clone)]
pub struct Handle {
    eager: Eager,
    handle: TensorHandle,
}

impl Handle {
    pub(super) fn new(eager: Eager, handle: TensorHandle) -> Handle {
        Handle { eager, handle }
    }

    pub(super) fn eager(&self) -> &Eager {
        &self.eager
    }

    /// Returns the handle of the core runtime below.
    pub fn handle(&self) -> &TensorHandle {
        &self.handle
    }

    /// Returns the handle of the core runtime, for good.
    pub fn into_handle(self) -> TensorHandle {
        self.handle
    }

    /// Returns type and shape, if they are known already.
    pub fn metadata(&self) -> Option<&TensorMetadata> {
        self.handle.metadata()
    }

    /// Returns the type of elements, if it is known already.
    pub fn dtype(&self) -> Option<DType> {
        self.handle.dtype()
    }

    /// Returns the extents, if they are known already.
    pub fn shape(&self) -> Option<&TensorShape> {
        self.handle.shape()
    }

    /// Waits until the elements are there.
    ///
    /// # Errors
    ///
    /// Why there will be none; `FailedPrecondition` on a worker of the queue, which must not wait.
    pub fn wait(&self) -> Result<(), Error> {
        wait_for(self.eager.queue(), &self.handle)
    }

    /// Waits for the tensor, and returns it as a dense one of the host, which shares the elements if it is one. They are
    /// for reading then: [`DenseHostTensor::deep_copy`] has others.
    ///
    /// # Errors
    ///
    /// Those of [`wait`](Self::wait); `InvalidArgument` if it is no tensor of numbers.
    pub fn to_host(&self) -> Result<DenseHostTensor, Error> {
        self.wait()?;
        match self.handle.tensor() {
            Some(Ok(tfrt_tensor::Tensor::Dense(dense))) => Ok(dense.clone()),
            Some(Ok(other)) => {
                let dense =
                    convert::to_format(other, TensorFormat::DenseHost, self.eager.allocator())?;
                dense.as_dense().cloned()
            }
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("the tensor is not there after the wait")),
        }
    }

    /// Waits for the elements, and returns them in row-major order.
    ///
    /// # Errors
    ///
    /// Those of [`to_host`](Self::to_host); `InvalidArgument` if they are no `T`s.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        Ok(self.to_host()?.read()?.elements::<T>()?.to_vec())
    }

    /// Waits for the only element.
    ///
    /// # Errors
    ///
    /// Those of [`to_vec`](Self::to_vec); `InvalidArgument` if there is not one.
    pub fn item<T: Element>(&self) -> Result<T, Error> {
        match self.to_vec::<T>()?[..] {
            [only] => Ok(only),
            _ => {
                let found = self
                    .handle
                    .metadata()
                    .map_or_else(String::new, ToString::to_string);
                Err(Error::invalid_argument(format!(
                    "expected a tensor of one element, found {found}"
                )))
            }
        }
    }
}

/// The tensor as it is printed, or what is known of it.
impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.handle, f)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.handle, f)
    }
}

impl IntoFuture for Handle {
    type Output = Result<Handle, Error>;
    type IntoFuture = HandleFuture;

    fn into_future(self) -> HandleFuture {
        HandleFuture {
            awaited: self.handle.to_async().into_future(),
            tensor: Some(self),
        }
    }
}

/// The future of a [`Handle`]: itself when its elements are there, or why there will be none.
#[must_use = "futures do nothing unless polled"]
pub struct HandleFuture {
    awaited: AsyncValueFuture<tfrt_tensor::Tensor>,
    // Invariant: there until the future is ready.
    tensor: Option<Handle>,
}

impl Future for HandleFuture {
    type Output = Result<Handle, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.awaited).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(_)) => Poll::Ready(match self.tensor.take() {
                Some(tensor) => Ok(tensor),
                None => Err(Error::failed_precondition("the future was ready before")),
            }),
        }
    }
}

impl fmt::Debug for HandleFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HandleFuture").field(&self.tensor).finish()
    }
}
