//! Plugins in C and C++, built when the tests run, loaded and called.

mod check;
mod headers;
mod kernels;
mod optimizers;
mod plugins;
mod variables;
mod wrong_uses;
