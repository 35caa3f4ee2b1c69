//! What a program weighs that does nothing: the part of `tfrt-run` that is the standard library and
//! the unwinder. `cargo xtask size` shows it beside the others.

fn main() {
    println!("nothing");
}
