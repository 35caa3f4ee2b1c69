//! What programs ought to print, found without running them on the runtime.
#![forbid(unsafe_code)]
pub mod differential;
pub mod evaluate;
pub mod generate;
pub mod ordered;
mod plan;
pub mod program;
pub mod random;
pub mod shrink;
pub mod value;
