//! The crate's border, bytes and what readers make of them, in one program of tests.

mod attributes;
mod dump;
mod golden;
mod listing;
mod readers;
mod views;
