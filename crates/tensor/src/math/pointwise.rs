//! Functions of single elements: arithmetic, comparisons, logic, selection; and chains of them in one pass.
//!
//! A function is a variant of [`UnaryFunction`], [`ParametricFunction`] or [`BinaryFunction`], and a [`PointwiseProgram`] is a list
//! of steps, each a function and what it takes. `y = tanh(x * s + b) + r`, step by step, reads and writes memory four
//! times; as a program it reads what goes in and writes what comes out, once. Each result is rounded as by the same steps
//! one after the other, so that taking them together changes no bit.
//!
//! Types are found when a program is run: [`DType`](crate::DType) outside, and inside a table of innermost loops. All
//! around these is compiled once: inputs of different shapes are broadcast as NumPy does
//! ([`broadcast_extents`](super::elementwise::broadcast_extents)), chunks go to a queue's workers, and memory is lent.
//!
//! | Module | Has |
//! | --- | --- |
//! | `formulas` | functions: names, types, costs, formulas |
//! | `parametric` | functions with parameters |
//! | `table` | loops over the formulas, for each type |
//! | `halves`, `f16c` | `f16` and `bf16` as `f32`, and back |
//! | `program` | steps, and what is given to them |
//! | `plan` | types and loops of steps, for inputs of known types |
//! | `input` | how inputs are read as they are broadcast |
//! | `run` | blocks, which a program makes step by step |
//! | `tensors` | single functions of tensors |
//! | `small` | functions of few elements, at once |
//! | `text` | steps as text, by the names of their functions |

#[allow(unsafe_code, reason = "a listed module")]
mod f16c;
pub mod formulas;
pub(in crate::math) mod halves;
mod input;
mod parametric;
mod plan;
mod program;
mod run;
mod small;
mod table;
mod tensors;
mod text;
mod view;

pub use formulas::{BinaryFunction, UnaryFunction};
pub use parametric::{ParametricFunction, whole};
pub use program::{Operand, PointwiseProgram, Step, StepTypes};
pub use tensors::{
    OperandOrder, binary, binary_in_place, binary_into, binary_metadata, folded, parametric_into,
    select_into, unary, unary_in_place, unary_into,
};
pub use view::{Elements, ElementsMut};

#[cfg(test)]
mod tests;
