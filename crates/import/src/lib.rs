//! Models of other systems as modules of MLIR text.
//!
//! | To know                                   | Read                  |
//! |-------------------------------------------|-----------------------|
//! | how an ONNX model becomes a module        | [`onnx`]              |
//! | tensors of ONNX files by themselves       | [`onnx::data`]        |
//! | what operators take and give              | [`onnx::schema`]      |
//! | what each kind of mistake is called       | [`codes`]             |
//!
//! What is imported is taken as it is written: no operation is rewritten, and nothing is
//! calculated. Passes of the compiler do that, where it can be seen.

#![forbid(unsafe_code)]

pub mod codes;
pub mod onnx;
