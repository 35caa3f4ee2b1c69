//! The table of operations: its rows, and the page that is made of them, in one program of tests.

mod reference;
mod table;
