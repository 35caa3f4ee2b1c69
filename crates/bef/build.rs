//! Tells the crate whether it is compiled for size: with `opt-level` `"s"` or `"z"`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(tfrt_for_size)");
    if matches!(std::env::var("OPT_LEVEL").as_deref(), Ok("s" | "z")) {
        println!("cargo::rustc-cfg=tfrt_for_size");
    }
}
