//! Hostile inputs, made to cost more than they weigh, in any size.
//!
//! Each maker takes a size and returns an input whose length grows with it. What
//! reads them must take time and memory in proportion to that length.

mod files;
pub mod pictures;
mod texts;

/// A kind of hostile input.
#[derive(Clone, Copy, Debug)]
pub struct Hostile {
    /// The name, which says what is wrong with the input.
    pub name: &'static str,
    /// The function that makes an input of a size.
    pub make: fn(usize) -> Vec<u8>,
}

/// Hostile files: they lie, share, nest and go round in circles.
pub const FILES: &[Hostile] = files::ALL;

/// Hostile texts: they nest, repeat and are wrong all over.
pub const TEXTS: &[Hostile] = texts::ALL;
