//! The crate's border, operations by their names, in one program of tests.

mod arithmetic;
mod calls;
mod handlers;
mod ops;
mod reference;
mod tensorflow;
mod variables;
mod wrong_uses;
