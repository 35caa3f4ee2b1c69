//! Interleaving models of the queues, compiled only under `cfg(loom)`.
