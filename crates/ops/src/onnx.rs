//! Library operations of ONNX: those that no other format has, and no pass looks at. Names and attributes are ONNX's.

pub(crate) mod axes;
pub(crate) mod elements;
pub(crate) mod images;
pub(crate) mod losses;
pub(crate) mod microsoft;
pub(crate) mod ml;
pub(crate) mod products;
pub(crate) mod random;
pub(crate) mod sequences;
pub(crate) mod signals;
pub(crate) mod strings;
pub(crate) mod structure;
pub(crate) mod training;
