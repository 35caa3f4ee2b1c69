//! Properties that must hold for any input, as functions of bytes.
//!
//! | Target | Bytes are | What must hold |
//! | --- | --- | --- |
//! | [`text::parse`] | text | an answer; what compiles is accepted by the gate |
//! | [`text::round_trip`] | text | what is printed parses to the same |
//! | [`bytes::open`] | a file | refused with a place, or safe to read, load and run |
//! | [`bytes::reopen`] | a file | what is compiled from its text comes back to the byte |
//! | [`models::import`] | a file | refused with a reason, or a module whose text is read as the same |
//! | [`values::decode`] | an encoded value | refused, or written and read again to the same bytes |
//! | [`execute::execute`] | choices | programs do what the oracle says, after passes too |
//! | [`wire::frames`] | what a peer sends | refused, or written and read again to the same bytes; a link holds no more than it admits |
//! | [`control::messages`] | what tasks of a cluster say | refused, or written and read again to the same bytes |
//! | [`serve::requests`] | what clients of the model server send | refused, or tensors that are written and read again to the same |
//! | [`plugin::capi`] | a kernel's calls | each is done, or a fault that names the function; nothing is left |
//!
//! Each function panics if its property is broken, and returns otherwise; programs
//! that nobody vouches for run under [`LIMITS`](tfrt_differential::test_runtime::LIMITS). `cargo xtask fuzz` calls them
//! with what a fuzzer thinks of, tests with the inputs that `tests/fuzz/seeds.txt` lists
//! ([`seeds::Corpus`]), with cut and flipped programs, and with files made to be hard ([`hostile`]).

#![deny(unsafe_code)]

pub mod bytes;
pub mod control;
#[allow(
    unsafe_code,
    reason = "an allocator of the whole process is unsafe to write"
)]
pub mod counting;
pub mod execute;
pub mod hostile;
pub mod models;
pub mod mutate;
#[allow(
    unsafe_code,
    reason = "a plugin's calls of functions that are found by name"
)]
pub mod plugin;
pub mod seeds;
pub mod serve;
pub mod text;
pub mod values;
pub mod walk;
pub mod wire;

/// A fuzzing target: a property and its name.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name on the command line.
    pub name: &'static str,
    /// The function that checks the property for some bytes.
    pub check: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 11] = [
    Target {
        name: "parse",
        check: text::parse,
    },
    Target {
        name: "round_trip",
        check: text::round_trip,
    },
    Target {
        name: "open",
        check: bytes::open,
    },
    Target {
        name: "reopen",
        check: bytes::reopen,
    },
    Target {
        name: "import",
        check: models::import,
    },
    Target {
        name: "decode",
        check: values::decode,
    },
    Target {
        name: "execute",
        check: execute::execute,
    },
    Target {
        name: "wire",
        check: wire::frames,
    },
    Target {
        name: "control",
        check: control::messages,
    },
    Target {
        name: "requests",
        check: serve::requests,
    },
    Target {
        name: "capi",
        check: plugin::capi,
    },
];
