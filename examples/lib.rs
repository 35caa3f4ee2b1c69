//! The package of the examples in Rust: `cargo run -p tfrt-examples --example custom_queue`.
