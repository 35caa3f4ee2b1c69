//! [`Origin`]: the kernel that was to resolve a value, asked for the error of a dropped promise.
//!
//! A cell keeps its origin in one word, so an origin is one counted pointer. Names and locations
//! are computed when a promise has been dropped, never before.

use std::fmt;

use crate::{
    error::{Error, ErrorCode, SourceLocation},
    sync::Arc,
};

/// The message of the error of a promise without an origin.
const DROPPED_BY_NOBODY: &str = "a promise was dropped without being resolved";

/// A source of the names in a dropped promise's error: the kernel, and its location.
pub trait OriginSource: Send + Sync + 'static {
    /// Returns the name of the kernel that returned the value.
    fn kernel(&self) -> String;

    /// Returns where in the user's source that kernel is called.
    fn location(&self) -> Option<SourceLocation> {
        None
    }
}

impl OriginSource for &'static str {
    fn kernel(&self) -> String {
        (*self).to_owned()
    }
}

impl OriginSource for String {
    fn kernel(&self) -> String {
        self.clone()
    }
}

/// The name of the kernel that is to resolve a pending value; one counted pointer.
///
/// # Examples
///
/// ```
/// use tfrt_async::{AsyncValue, Origin};
/// let (promise, value) = AsyncValue::<i32>::pending();
/// value.as_any().set_origin(&Origin::new("my.kernel"));
/// drop(promise);
/// let error = value.error().expect("the promise was dropped");
/// assert_eq!(error.message(), "kernel 'my.kernel' dropped its promise without resolving it");
/// ```
#[derive(Clone)]
pub struct Origin(pub(crate) Arc<Source>);

/// The sized box that makes the pointer thin.
pub(crate) struct Source(Box<dyn OriginSource>);

impl Origin {
    /// Returns an origin that asks `source`.
    pub fn new(source: impl OriginSource) -> Origin {
        Origin(Arc::new(Source(Box::new(source))))
    }

    /// Returns `error` with this origin's name in it, if it is that of a promise that was dropped
    /// before anybody could say whose it is; every other error as it is.
    pub fn name(&self, error: Error) -> Error {
        if error.code() == ErrorCode::Internal && error.message() == DROPPED_BY_NOBODY {
            return Origin::dropped(Some(self));
        }
        error
    }

    /// Returns the error of a value whose promise was dropped.
    pub(crate) fn dropped(origin: Option<&Origin>) -> Error {
        let Some(Origin(source)) = origin else {
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

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Origin").field(&self.0.0.kernel()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_the_error_of_a_promise_without_a_name_gets_one() {
        let origin = Origin::new("k");
        let named = origin.name(Origin::dropped(None));
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
            Origin::dropped(Some(&Origin::new("another".to_owned()))),
        ] {
            assert!(origin.name(error.clone()).same(&error), "{error:?}");
        }
    }
}
