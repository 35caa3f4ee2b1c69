//! Importers of models of other systems, as modules of MLIR text.
//!
//! | To know                                   | Read                  |
//! |-------------------------------------------|-----------------------|
//! | how a format is added                     | [`FrontEnd`], [`GraphBuilder`] |
//! | how an ONNX model becomes a module        | [`onnx`]              |
//! | how text of StableHLO becomes a module    | [`stablehlo`]         |
//! | tensors of ONNX files by themselves       | [`onnx::data`]        |
//! | how a SavedModel is written again        | [`saved_model::save`] |
//! | what operators take and give              | [`onnx::schema`]      |
//! | what each kind of mistake is called       | [`codes`]             |
//!
//! What is imported is taken as it is written: no operation is rewritten, and nothing is
//! calculated. Passes of the compiler do that, where it can be seen.

#![forbid(unsafe_code)]

mod builder;
pub mod codes;
mod front_end;
pub mod onnx;
pub mod saved_model;
mod signature;
pub mod stablehlo;

pub use builder::GraphBuilder;
pub use front_end::{
    FRONT_ENDS, FileHead, FrontEnd, ImportFn, Imported, ModelBytes, Part, ReadLimits, Source,
    SurveyFn,
};
pub use onnx::{ExternalData, FileProvider, Folder, SharedBytes, Survey};
pub use signature::{Dim, Signature};
