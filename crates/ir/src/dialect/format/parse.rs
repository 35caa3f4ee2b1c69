//! Descriptions read by the parser.

pub(crate) fn parse() {}
