//! Plugins in C and C++, built when the tests run, loaded and called.

mod beside;
mod check;
mod headers;
mod kernels;
mod plugins;
mod wrong_uses;
