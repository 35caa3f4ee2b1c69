//! The entry of the process, as C has it.
//!
//! Rust's own sets the process up for what this program does without: a handler that tells of stacks
//! that overflow, which ours do not; a buffer of standard output, which is written in whole lines. It
//! is a tenth of the part of the standard library that is linked here.

use std::ffi::{CStr, c_char, c_int};
use std::slice;

/// The signal of a reader that has gone away, which is ignored as by Rust's entry: it is an error of writing then.
const SIGPIPE: c_int = 13;
const SIG_IGN: usize = 1;

unsafe extern "C" {
    fn signal(signal: c_int, handler: usize) -> usize;
}

// SAFETY: the program has no other function of this name, and C calls this one as it is declared.
#[unsafe(no_mangle)]
extern "C" fn main(n_words: c_int, words: *const *const c_char) -> c_int {
    // SAFETY: no thread was started yet, and nothing is called for the signal.
    unsafe { signal(SIGPIPE, SIG_IGN) };
    // SAFETY: C gives so many words, which stay.
    let words = unsafe { slice::from_raw_parts(words, usize::try_from(n_words).unwrap_or(0)) };
    let words = words.iter().skip(1).map(|word| {
        // SAFETY: each is a text that ends in a NUL.
        let word = unsafe { CStr::from_ptr(*word) };
        word.to_string_lossy().into_owned()
    });
    tfrt_run::command::main_of(words.collect(), tfrt_kernels::tfrt::register) as c_int
}
