//! Plugins in C and C++, built when the tests run, loaded and called.

mod beside;
mod check;
mod crashes;
mod environment;
mod headers;
mod kernels;
mod nodes;
mod optimizers;
mod plugins;
mod variables;
mod wrong_uses;
