//! No backtraces.
//!
//! Rust's default panic hook prints a backtrace when asked, so the walk up the stack, the reader of
//! debug information, and the inflater of its sections are part of every program: 200 KB here. This
//! program has a hook of its own, which prints none, but nothing tells the linker. So the function
//! that walks is defined here, as one that finds a stack without frames: what is done for each frame
//! is then done for nothing, and link-time optimization removes it.
//!
//! Where the unwinder is linked statically, its own definition comes second, and the linker must be
//! told to take the first: `-z muldefs`, as `cargo xtask size` does. Unwinding does not use it.

use std::ffi::{c_int, c_void};

/// `_URC_END_OF_STACK`.
const END_OF_STACK: c_int = 5;

/// Walks up the stack, by the interface that all unwinders have in common, and finds no frames.
// SAFETY: it has the unwinder's signature, and does what that may do: never calls back.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(
    _visit: Option<extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
    _argument: *mut c_void,
) -> c_int {
    END_OF_STACK
}
