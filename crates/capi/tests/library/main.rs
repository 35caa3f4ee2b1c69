//! Plugins in C and C++, built when the tests run, loaded and called.

mod beside;
mod check;
mod crashes;
mod environment;
mod headers;
mod kernels;
mod nodes;
mod plugins;
mod wrong_uses;
