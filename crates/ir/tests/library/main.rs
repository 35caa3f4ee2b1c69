//! The crate's border, text to text and text to messages, in one program of tests.

mod errors;
mod forms;
mod index;
mod model;
mod reference;
mod robustness;
