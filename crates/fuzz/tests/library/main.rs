//! Properties that must hold for any input, on inputs made here: one program of tests, whose allocator counts.
//! Tests that look at the memory of the whole process run in one of their own.

use tfrt_fuzz::counting::Counting;

mod burst;
mod held;
mod hostile;
mod linear;
#[path = "../../../async/tests/library/own_process.rs"]
mod own_process;
mod sweep;
mod untrusted;
mod values;

#[global_allocator]
static COUNTING: Counting = Counting(|taken, given_back| {
    held::count(taken, given_back);
    linear::count(taken, given_back);
});
