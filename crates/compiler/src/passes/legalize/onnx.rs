//! Models in dialect `onnx`: every version of their operations in the newest form, then as operations of graphs.

pub(in crate::passes) mod to_graph;
pub(in crate::passes) mod upgrade;
