//! The binary tensor format.
