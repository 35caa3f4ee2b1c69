//! The tests of the corpus's own checker, which has no test harness where it is used.

#[path = "../corpus/filecheck.rs"]
mod filecheck;
