//! [`Producer`]: the kernel that was to resolve a value, asked for the error of a dropped promise.
//!
//! A cell keeps its producer in one word, so a producer is one counted pointer. Names and locations
//! are computed when a promise has been dropped, never before.

use std::fmt;

use crate::{
    error::{Error, ErrorCode, SourceLocation},
    sync::Arc,
};

/// The message of the error of a promise without a producer.
const DROPPED_BY_NOBODY: &str = "a promise was dropped without being resolved";

/// A source of the names in a dropped promise's error: the kernel, and its location.
pub trait ProducerInfo: Send + Sync + 'static {
    /// Returns the name of the kernel that returned the value.
    fn kernel(&self) -> String;

    /// Returns where in the user's source that kernel is called.
    fn location(&self) -> Option<SourceLocation> {
        None
    }
}

impl ProducerInfo for &'static str {
    fn kernel(&self) -> String {
        (*self).to_owned()
    }
}

impl ProducerInfo for String {
    fn kernel(&self) -> String {
        self.clone()
    }
}

/// The name of the kernel that is to resolve a pending value; one counted pointer.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AsyncValue, Producer};
/// let (promise, value) = AsyncValue::<i32>::pending();
/// value.as_any().set_producer(&Producer::new("my.kernel"));
/// drop(promise);
/// let error = value.error().expect("the promise was dropped");
/// assert_eq!(error.message(), "kernel 'my.kernel' dropped its promise without resolving it");
/// ```
#[derive(Clone)]
pub struct Producer(pub(crate) Arc<ProducerBox>);

/// The sized box that makes the pointer thin.
pub(crate) struct ProducerBox(Box<dyn ProducerInfo>);

impl Producer {
    /// Returns a producer that asks `source`.
    pub fn new(source: impl ProducerInfo) -> Producer {
        Producer(Arc::new(ProducerBox(Box::new(source))))
    }

    /// Returns `error` with this producer's name in it, if it is that of a promise that was dropped
    /// before anybody could say whose it is; every other error as it is.
    pub fn name(&self, error: Error) -> Error {
        if error.code() == ErrorCode::Internal && error.message() == DROPPED_BY_NOBODY {
            return Producer::dropped(Some(self));
        }
        error
    }

    /// Returns the error of a value whose promise was dropped.
    pub(crate) fn dropped(producer: Option<&Producer>) -> Error {
        let Some(Producer(source)) = producer else {
            return Error::internal(DROPPED_BY_NOBODY);
        };
        let kernel = source.0.kernel();
        // The error gets a kernel's name from whoever reports it, and only once.
        let error = Error::internal(format!(
            "kernel '{kernel}' dropped its promise without resolving it"
        ));
        match source.0.location() {
            Some(location) => error.with_location(location),
            None => error,
        }
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Producer").field(&self.0.0.kernel()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_error_of_a_promise_without_a_name_gets_one() {
        let producer = Producer::new("k");
        let named = producer.name(Producer::dropped(None));
        assert_eq!(
            (named.code(), named.message()),
            (
                ErrorCode::Internal,
                "kernel 'k' dropped its promise without resolving it"
            )
        );
        for error in [
            Error::unknown(DROPPED_BY_NOBODY),
            Error::internal("something else"),
            Error::unknown("something else"),
            Producer::dropped(Some(&Producer::new("another".to_owned()))),
        ] {
            assert!(producer.name(error.clone()).same(&error), "{error:?}");
        }
    }
}
