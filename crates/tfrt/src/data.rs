//! What models are given and what they give, as files, as text, and out of nothing.

pub mod cells;
pub mod image;
pub mod json;
pub mod numbers;
pub mod protobuf;
pub mod random;
pub mod read;
pub mod show;
pub mod write;
