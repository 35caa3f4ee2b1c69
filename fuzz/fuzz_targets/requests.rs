//! `tfrt_fuzz::serve::requests` under libFuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tfrt_fuzz::serve::requests(data));
