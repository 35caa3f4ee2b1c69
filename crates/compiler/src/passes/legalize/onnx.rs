//! Models in the dialect `onnx`: operations of every version are upgraded to the newest form, then become operations
//! of graphs.

pub(in crate::passes) mod to_graph;
pub(in crate::passes) mod upgrade;
