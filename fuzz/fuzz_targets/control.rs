//! `tfrt_fuzz::control::messages` under libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tfrt_fuzz::control::messages(data));
