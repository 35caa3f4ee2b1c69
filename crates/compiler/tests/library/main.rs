//! Tests at the crate's border, text to bytes and back, in one program.

mod decompile;
mod errors;
mod golden;
mod graph_text;
mod minimal;
