//! What programs ought to print, found without running them on the runtime.
#![forbid(unsafe_code)]
pub mod evaluate;
pub mod ordered;
mod plan;
pub mod value;
