//! `tfrt lsp` as editors meet it: a process that is spoken to over its pipes.

#[path = "lsp/asking.rs"]
mod asking;
#[path = "lsp/broken.rs"]
mod broken;
#[path = "lsp/client.rs"]
mod client;
#[path = "lsp/editing.rs"]
mod editing;
#[path = "lsp/protocol.rs"]
mod protocol;
