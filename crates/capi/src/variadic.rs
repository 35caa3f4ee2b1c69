//! Functions of the C API with any number of arguments: [`Arguments`], and the entries that collect them.
//!
//! Rust has no such functions. A few instructions of assembly store the registers in which arguments come, make the
//! `va_list` of the C library of them, and call the host's function with its address.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

use crate::fault;
use crate::raw::Text;

/// The arguments behind the named ones: `...` in C, a `va_list` here.
#[repr(transparent)]
pub struct Arguments(Option<NonNull<List>>);

/// The `va_list` of the C library on x86-64.
#[repr(C)]
#[derive(Clone, Copy)]
struct List {
    offsets: [u32; 2],
    areas: [usize; 2],
}

const _: () = assert!(size_of::<List>() == 24);

unsafe extern "C" {
    fn vsnprintf(to: *mut c_char, room: usize, format: *const c_char, list: *mut c_void) -> c_int;
}

/// Room for a line at first.
const ROOM: usize = 512;
/// The most bytes of a line.
const MAX_LINE: usize = 1 << 20;

impl Arguments {
    /// Returns the arguments as a format of the C library wants them. Records a fault for a format that is a null pointer
    /// or wrong.
    pub fn formatted(&self, format: &Text) -> Option<Vec<u8>> {
        let bytes = format.bytes("fmt")?;
        let Some(list) = self.0 else {
            return Some(bytes.to_vec());
        };
        let mut line = vec![0; ROOM];
        loop {
            // Each pass goes through a list of its own.
            // SAFETY: the entry has made the list for the time of the call.
            let mut own = unsafe { list.read() };
            let (to, room) = (line.as_mut_ptr().cast(), line.len());
            // SAFETY: there is so much room; format and arguments fit each other by the plugin's promise, and the list is
            // one of this machine's C library.
            let len = unsafe {
                vsnprintf(
                    to,
                    room,
                    bytes.as_ptr().cast(),
                    (&raw mut own).cast::<c_void>(),
                )
            };
            let Ok(len) = usize::try_from(len) else {
                fault::argument("fmt", "the C library can't format it");
                return None;
            };
            let len = len.min(MAX_LINE);
            if len < room {
                line.truncate(len);
                return Some(line);
            }
            line.resize(len + 1, 0);
        }
    }
}

/// `entries! { "tfrt_capi_log", log => path; }` makes the entry `log`, of this symbol, which calls the function at `path`
/// with two named arguments and the list of the others.
macro_rules! entries {
    ($($symbol:literal, $entry:ident => $function:path;)*) => {$(
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        std::arch::global_asm!(
            concat!(".pushsection .text.", $symbol, ",\"ax\",@progbits"),
            concat!(".hidden ", $symbol),
            concat!(".globl ", $symbol),
            concat!(".type ", $symbol, ",@function"),
            concat!($symbol, ":"),
            ".cfi_startproc",
            "sub rsp, 216",
            ".cfi_adjust_cfa_offset 216",
            // The registers of arguments, in the order that the C library expects.
            "mov [rsp + 32], rdi",
            "mov [rsp + 40], rsi",
            "mov [rsp + 48], rdx",
            "mov [rsp + 56], rcx",
            "mov [rsp + 64], r8",
            "mov [rsp + 72], r9",
            // The caller says in al whether there are any floating-point numbers.
            "test al, al",
            "je 2f",
            "movaps [rsp + 80], xmm0",
            "movaps [rsp + 96], xmm1",
            "movaps [rsp + 112], xmm2",
            "movaps [rsp + 128], xmm3",
            "movaps [rsp + 144], xmm4",
            "movaps [rsp + 160], xmm5",
            "movaps [rsp + 176], xmm6",
            "movaps [rsp + 192], xmm7",
            "2:",
            // The list: two registers are taken by named arguments; others than registers lie above the return address.
            "mov dword ptr [rsp], 16",
            "mov dword ptr [rsp + 4], 48",
            "lea rax, [rsp + 224]",
            "mov [rsp + 8], rax",
            "lea rax, [rsp + 32]",
            "mov [rsp + 16], rax",
            "mov rdx, rsp",
            "call {function}",
            "add rsp, 216",
            ".cfi_adjust_cfa_offset -216",
            "ret",
            ".cfi_endproc",
            concat!(".size ", $symbol, ", .-", $symbol),
            ".popsection",
            function = sym $function,
        );

        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        unsafe extern "C" {
            #[link_name = $symbol]
            pub(crate) fn $entry();
        }

        /// Elsewhere libraries are not loaded.
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        pub(crate) extern "C" fn $entry() {}
    )*};
}

entries! {
    "tfrt_capi_log", log => crate::functions::TF_Log;
    "tfrt_capi_vlog", vlog => crate::functions::TF_VLog;
    "tfrt_capi_dvlog", dvlog => crate::functions::TF_DVLog;
}
