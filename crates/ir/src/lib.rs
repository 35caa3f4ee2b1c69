//! MLIR text: parse, look around, print, parse again.
//!
//! ```
//! use tfrt_ir::{parse, verify, Source};
//!
//! let source = Source::new(
//!     "answer.mlir",
//!     "func.func @main() -> i32 {
//!        %x = tfrt.constant.i32 41
//!        %y = tfrt.add.i32 %x, %x
//!        tfrt.return %y : i32
//!      }",
//! );
//! let module = parse(&source)?;
//! verify(&module)?;
//!
//! let main = module.lookup_symbol("main").expect("it is in the text");
//! let body = module.entry_block(module.op(main).regions()[0]).expect("it has a body");
//! let first = module.op(module.block(body).operations()[0]);
//! assert_eq!(first.attribute("value").and_then(|value| value.as_i64()), Some(41));
//!
//! let text = module.to_string();
//! assert_eq!(parse(&Source::new("again.mlir", text.clone()))?.to_string(), text);
//! # Ok::<(), tfrt_ir::Diagnostics>(())
//! ```
//!
//! | To know                                     | Read           |
//! |---------------------------------------------|----------------|
//! | what a program is in memory                 | [`module`]     |
//! | what an operation is                        | [`dialect`]    |
//! | how text becomes a program                  | `parser.rs`    |
//! | what makes a program acceptable             | [`verifier`]   |
//! | how a program becomes text                  | [`printer`]    |
//! | what is told to people                      | [`diagnostic`] |
//! | what editors ask for                        | [`index`]      |
//! | how strangers' names are shown              | [`visible`]    |
//!
//! Kernels are unknown here: an operation without an entry in the dialect tables
//! is accepted in generic form, whatever its name. So are operations of models, unless
//! somebody who knows them adds their dialects ([`Dialects`]).

#![forbid(unsafe_code)]

pub mod attributes;
pub mod codes;
pub mod diagnostic;
pub mod dialect;
mod dialects;
pub mod expected;
mod float;
pub mod index;
pub mod integer;
mod lexer;
pub mod location;
pub mod module;
pub mod name;
pub mod op_spans;
mod parser;
pub mod printer;
pub mod similar;
pub mod source;
pub mod split;
pub mod tokens;
pub mod types;
pub mod verifier;
pub mod visible;

pub use attributes::Attribute;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use dialect::{Dialects, OpDef};
pub use integer::Integer;
pub use lexer::tokens;
pub use location::Location;
pub use module::{
    Block, BlockId, Def, Module, OpId, OpState, Operation, Region, RegionId, ValueId, ValueUse,
};
pub use name::Name;
pub use parser::{parse, parse_in, parse_type, parse_type_at};
pub use printer::{PrintOptions, print, print_op};
pub use source::{Source, Span};
pub use types::Type;
pub use verifier::{verify, verify_in};
