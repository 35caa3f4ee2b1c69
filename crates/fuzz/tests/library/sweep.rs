//! Tests with every prefix and every single-bit flip of small files, through the gate and beyond.
//!
//! What is cut or flipped is refused with an offset in the file, or is safe to read, load and run.
//!
//! | Variable | Means | If unset |
//! | --- | --- | --- |
//! | `TFRT_SWEEP_STRIDE` | one cut, and one flip, of so many is tried | 251 |
//!
//! `TFRT_SWEEP_STRIDE=1 cargo test --release -p tfrt-fuzz --test library sweep` tries them all.

use std::time::Instant;

use tfrt_fuzz::{bytes, seeds};

use crate::own_process::in_own_process;

/// The largest file that is tried; larger ones are left to fuzzing.
const MAX_BYTES: usize = 4_096;

/// A guard that prints which input was tried if that ends in a panic.
struct InputGuard<'n>(&'n str, &'static str, usize);

impl Drop for InputGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}, {} {}", self.0, self.1, self.2);
        }
    }
}

#[test]
fn cut_and_flipped_files_are_refused_with_a_place_or_run_safely() {
    // It counts the values of the process.
    in_own_process(
        "sweep::cut_and_flipped_files_are_refused_with_a_place_or_run_safely",
        cut_and_flip,
    );
}

fn cut_and_flip() {
    let stride = std::env::var("TFRT_SWEEP_STRIDE").ok();
    let stride = stride.and_then(|text| text.parse().ok()).unwrap_or(251);
    let begin = Instant::now();
    let (mut n_files, mut n_cuts, mut n_flips) = (0, 0, 0);
    // Counted over all files, so that each has other places tried.
    let mut turn = 0;
    let mut is_tried = || {
        turn += 1;
        turn % stride == 0
    };
    for (name, file) in seeds::files() {
        if file.len() > MAX_BYTES {
            continue;
        }
        n_files += 1;
        bytes::open(&file);
        bytes::reopen(&file);
        for len in (0..file.len()).filter(|_| is_tried()) {
            let _blame = InputGuard(&name, "cut at byte", len);
            bytes::open(&file[..len]);
            n_cuts += 1;
        }
        let mut flipped = file.clone();
        for bit in (0..file.len() * 8).filter(|_| is_tried()) {
            let _blame = InputGuard(&name, "flipped bit", bit);
            flipped[bit / 8] ^= 1 << (bit % 8);
            bytes::open(&flipped);
            flipped[bit / 8] ^= 1 << (bit % 8);
            n_flips += 1;
        }
    }
    assert!(n_files > 80, "only {n_files} files");
    println!(
        "{n_files} files, {n_cuts} cuts, {n_flips} flips in {:?}",
        begin.elapsed()
    );
}
