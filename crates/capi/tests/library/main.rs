//! Plugins in C and C++, built when the tests run, loaded and called.

mod check;
mod environment;
mod headers;
mod kernels;
mod plugins;
mod wrong_uses;
