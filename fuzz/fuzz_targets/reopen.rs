//! `tfrt_fuzz::bytes::reopen` under libFuzzer.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use tfrt_fuzz::mutate;

fuzz_target!(|data: &[u8]| tfrt_fuzz::bytes::reopen(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::in_place(mutate::file, &mut data[..max_size], size, seed, |data| {
        fuzzer_mutate(data, size, max_size)
    })
});
