//! A program that does nothing, whose size is the part of `tfrt-run` that is the standard library
//! and the unwinder. `cargo xtask size` shows it beside the others.

fn main() {
    println!("nothing");
}
