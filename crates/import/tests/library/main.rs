//! Models as the crate imports or refuses them, in one program of tests.

mod broken;
mod models;
mod saved_model;
mod wire;
