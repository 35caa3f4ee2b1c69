//! Calls into a plugin's code, which may throw C++ exceptions.
//!
//! An exception must not unwind through frames of Rust. Each call goes through a few instructions of assembly whose
//! frame has a personality routine, `personality`, that catches everything: the call returns the exception, which is
//! described and freed. Forced unwinding, by which threads are cancelled, passes.

use std::arch::global_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

use crate::fault;

/// An exception that a plugin has thrown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The exception's type, as C++ writes it, or what else is known of it.
    pub type_name: String,
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "threw {}", self.type_name)
    }
}

/// Result of a guarded call: its value, or the exception if that is not null.
#[repr(C)]
struct Returned {
    value: usize,
    exception: *mut UnwindException,
}

/// Header of every exception, by the ABI of unwinding.
#[repr(C)]
struct UnwindException {
    class: u64,
    cleanup: usize,
    private: [usize; 2],
}

// `tfrt_capi_guarded(function, a, b, c, d, e, f)` calls `function(a, b, c, d, e, f)`; `f` comes on the stack. The routine sends an exception to the
// landing pad, with its address in rax.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
global_asm!(
    ".pushsection .text.tfrt_capi_guarded,\"ax\",@progbits",
    ".p2align 4",
    ".hidden tfrt_capi_guarded",
    ".globl tfrt_capi_guarded",
    ".type tfrt_capi_guarded,@function",
    "tfrt_capi_guarded:",
    ".cfi_startproc",
    ".cfi_personality 0x1b, {personality}",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov rcx, r8",
    "mov r8, r9",
    "mov r9, [rbp + 16]",
    "call rax",
    "xor edx, edx",
    "pop rbp",
    ".cfi_remember_state",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_restore_state",
    ".hidden tfrt_capi_landing",
    ".globl tfrt_capi_landing",
    "tfrt_capi_landing:",
    "mov rdx, rax",
    "xor eax, eax",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size tfrt_capi_guarded, .-tfrt_capi_guarded",
    ".popsection",
    personality = sym personality,
);

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
unsafe extern "C" {
    fn tfrt_capi_guarded(
        function: *const c_void,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        e: usize,
        f: usize,
    ) -> Returned;
    /// Not a function: the place where a caught exception goes on.
    fn tfrt_capi_landing();
}

/// Elsewhere a call is not guarded; libraries are not loaded there either.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
unsafe fn tfrt_capi_guarded(
    _: *const c_void,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
) -> Returned {
    std::process::abort()
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
unsafe extern "C" {
    fn _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
    fn _Unwind_SetIP(context: *mut c_void, address: usize);
    fn _Unwind_DeleteException(exception: *mut UnwindException);
}

const SEARCH_PHASE: c_int = 1;
const HANDLER_FRAME: c_int = 4;
const FORCE_UNWIND: c_int = 8;
const HANDLER_FOUND: c_int = 6;
const INSTALL_CONTEXT: c_int = 7;
const CONTINUE_UNWIND: c_int = 8;

/// The unwinder's question what to do with an exception at the frame of a guarded call: it ends there.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
extern "C" fn personality(
    _version: c_int,
    actions: c_int,
    _class: u64,
    exception: *mut UnwindException,
    context: *mut c_void,
) -> c_int {
    if actions & FORCE_UNWIND != 0 {
        return CONTINUE_UNWIND;
    }
    if actions & SEARCH_PHASE != 0 {
        return HANDLER_FOUND;
    }
    if actions & HANDLER_FRAME == 0 {
        return CONTINUE_UNWIND;
    }
    let landing = tfrt_capi_landing as *const () as usize;
    // SAFETY: the unwinder has handed over its context; register 0 is rax, which the landing pad reads.
    unsafe { _Unwind_SetGR(context, 0, exception as usize) };
    // SAFETY: the landing pad is an instruction of the frame's function.
    unsafe { _Unwind_SetIP(context, landing) };
    INSTALL_CONTEXT
}

/// Class of exceptions of GCC's and of LLVM's C++ libraries, without the last byte, which tells a rethrown one.
const GNU_CPP: &[u8; 7] = b"GNUCC++";
const LLVM_CPP: &[u8; 7] = b"CLNGC++";

/// Offset of the exception's type before the unwinder's header, by both C++ libraries on x86-64.
const TYPE_BEFORE_HEADER: usize = 80;

/// Describes an exception, and frees it.
#[cold]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn caught(exception: *mut UnwindException) -> Exception {
    // SAFETY: the personality routine has caught this exception, which nobody has freed.
    let class = unsafe { (*exception).class }.to_be_bytes();
    let type_name = match class.first_chunk::<7>() {
        Some(GNU_CPP | LLVM_CPP) => {
            let type_info = exception
                .cast::<u8>()
                .wrapping_sub(TYPE_BEFORE_HEADER)
                .cast::<*const [*const c_char; 2]>();
            // SAFETY: an exception of this class has the address of its type's description there, which is a table of
            // functions and a name that lives as long as the library.
            let table = unsafe { type_info.read() };
            // SAFETY: as above.
            let [_, name] = unsafe { table.read() };
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(name) };
            readable(&name.to_string_lossy())
        }
        _ => format!(
            "an exception of class '{}'",
            String::from_utf8_lossy(&class)
        ),
    };
    // SAFETY: it was caught, and nobody uses it from here on.
    unsafe { _Unwind_DeleteException(exception) };
    Exception { type_name }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn caught(_: *mut UnwindException) -> Exception {
    Exception {
        type_name: "an exception".to_owned(),
    }
}

/// Returns the name of a C++ class or built-in type from its short form: `St13runtime_error` is `std::runtime_error`.
fn readable(mangled: &str) -> String {
    let name = mangled.trim_start_matches('*');
    let built_in = match name {
        "i" => Some("int"),
        "j" => Some("unsigned int"),
        "l" => Some("long"),
        "d" => Some("double"),
        "PKc" => Some("const char*"),
        _ => None,
    };
    if let Some(name) = built_in {
        return name.to_owned();
    }
    let nested = name
        .strip_prefix('N')
        .and_then(|name| name.strip_suffix('E'));
    let mut rest = nested.unwrap_or(name);
    let mut parts = Vec::new();
    if let Some(others) = rest.strip_prefix("St") {
        parts.push("std");
        rest = others;
    }
    while !rest.is_empty() {
        let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let part = rest[..n_digits]
            .parse()
            .ok()
            .and_then(|len: usize| rest.get(n_digits..n_digits.checked_add(len)?));
        let Some(part) = part else {
            return name.to_owned();
        };
        parts.push(part);
        rest = &rest[n_digits + part.len()..];
    }
    parts.join("::")
}

/// Calls a function with up to six arguments, which are integers or pointers.
///
/// # Safety
///
/// `function` is the address of a function of the C ABI that takes such arguments, and may be called with these.
#[inline]
unsafe fn call(function: *const c_void, arguments: [usize; 6]) -> Result<usize, Exception> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller says that the function may be called so; what it throws ends in the guarded frame.
    let returned = unsafe { tfrt_capi_guarded(function, a, b, c, d, e, f) };
    match returned.exception.is_null() {
        true => Ok(returned.value),
        false => Err(caught(returned.exception)),
    }
}

/// A function of a plugin that the host calls. A value of this type comes from the plugin alone, which promises that it
/// may be called as the C headers say.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Callback(*const c_void);

impl Default for Callback {
    fn default() -> Self {
        Callback::NONE
    }
}

// SAFETY: the address of a function, which the plugin lets any thread call.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    /// No function.
    pub const NONE: Callback = Callback(std::ptr::null());

    /// Returns a callback of a function that a library exports.
    ///
    /// # Safety
    ///
    /// See the type: the function takes integers and pointers as the host will give them.
    pub unsafe fn of(address: *const c_void) -> Callback {
        Callback(address)
    }

    /// Returns whether this is a null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Calls the function as the C headers say, with at most six handles and addresses of these values; missing arguments
    /// are 0. Returns its result, if it has one.
    ///
    /// # Errors
    ///
    /// The exception that it threw. A null pointer is not called and gives 0.
    #[inline]
    pub fn call<const N: usize>(self, arguments: &[usize; N]) -> Result<usize, Exception> {
        const { assert!(N <= 6) };
        if self.is_null() {
            return Ok(0);
        }
        let mut all = [0; 6];
        all[..N].copy_from_slice(arguments);
        fault::calling_back(|| {
            // SAFETY: by the type's promise the function may be called with what the host gives it.
            unsafe { call(self.0, all) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_types_are_readable() {
        for (mangled, name) in [
            ("St13runtime_error", "std::runtime_error"),
            ("N4itex9ExceptionE", "itex::Exception"),
            ("3Odd", "Odd"),
            ("i", "int"),
            ("PFvvE", "PFvvE"),
        ] {
            assert_eq!(readable(mangled), name);
        }
    }

    extern "C" fn sum(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> usize {
        a + 10 * b + 100 * c + 1000 * d + 10_000 * e + 100_000 * f
    }

    #[test]
    fn arguments_and_results_pass_through() {
        // SAFETY: `sum` takes any six numbers.
        let callback = unsafe { Callback::of(sum as *const c_void) };
        assert_eq!(callback.call(&[1, 2, 3, 4, 5, 6]), Ok(654_321));
        assert_eq!(Callback(std::ptr::null()).call(&[]), Ok(0));
    }
}
