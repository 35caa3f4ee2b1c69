//! A format with rows of its own, in one program of tests.

mod calc;
mod effects;
mod runtime_rows;
