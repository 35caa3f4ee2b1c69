//! Networks as programs.
//!
//! | To | Look at |
//! | --- | --- |
//! | write ResNet-50 as a program, with weights | [`resnet`], `cargo run --release -p tfrt-networks --example resnet50` |
//! | learn digits | [`digits`], `cargo run --release -p tfrt-networks --example digits` |
//! | draw numbers that are the same everywhere | [`random`] |

#![forbid(unsafe_code)]

pub mod digits;
pub mod random;
pub mod resnet;
