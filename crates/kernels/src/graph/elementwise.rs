//! Fused programs of pointwise functions, on tensors of any type.
//!
//! A program is a list of steps, one text each, as [`Step`] reads it: a function, and what it takes: `a0` is the first
//! operand of the kernel, `s0` the result of the first step, anything else a number. `["mul a0 2.0", "add s0 a1",
//! "relu s1"]` is `relu(a * 2 + b)`.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::kernel::Operands;
use tfrt_host::{AsyncValue, Error, ExecutionContext};
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::pointwise::{self, Step};
use tfrt_tensor::op::PreparedState;
use tfrt_tensor::{DType, DenseHostTensor, TensorShape};

use crate::onnx::{NodeCall, PrepareRow, state};

use super::{TensorResult, dense, made, memory};

/// A program that was parsed when the model was opened.
#[derive(Clone, Debug)]
struct Program(pointwise::PointwiseProgram);

impl PreparedState for Program {}

/// The nodes whose programs are parsed once.
pub(super) const PREPARE: [PrepareRow; 1] = [PrepareRow {
    op: "fused.elementwise",
    inputs: &[],
    types: &[],
    takes_attributes: true,
    make: |node| Ok(Some(Arc::new(read(node)?))),
    restore: None,
}];

/// Parses the `steps` of a program of so many `inputs`.
fn read(node: &NodeCall<'_>) -> Result<Program, Error> {
    let texts = node.attributes.strings("steps")?;
    let texts = texts.ok_or_else(|| node.attributes.missing("steps"))?;
    let mut all = Vec::with_capacity(texts.len());
    for text in texts {
        let step = std::str::from_utf8(text)
            .map_err(|_| {
                node.attributes
                    .error("steps", "is expected to have texts alone")
            })?
            .parse::<Step>();
        all.push(step.map_err(|error| {
            error.with_note(
                "a compiled file may be older than this version: compile the model again",
            )
        })?);
    }
    let n_inputs = node.attributes.size_or("inputs", 0)?;
    Ok(Program(pointwise::PointwiseProgram::new(n_inputs, &all)?))
}

/// `%y = "cpu.fused.elementwise"(%a, %b, %p)`
///
/// # Shapes
///
/// The result is of the shape that the inputs are broadcast to, and of the type that the program makes of theirs.
pub(super) fn run(operands: Operands<'_>, execution: &ExecutionContext) -> TensorResult {
    let (program, operands) = state::<Program>(&operands)?;
    let mut inputs: SmallVec<[&DenseHostTensor; 4]> = SmallVec::new();
    for index in 0..operands.len() {
        inputs.push(dense(operands, index)?);
    }
    let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|input| input.dtype()).collect();
    let dtype = program.0.result(&dtypes)?;
    let mut out = match spread(&inputs) {
        Some(shape) => memory::output_of(execution, dtype, shape.clone())?,
        None => {
            let shapes: Vec<_> = inputs.iter().map(|input| input.shape().to_dims()).collect();
            let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
            memory::output_of(
                execution,
                dtype,
                TensorShape::new(&broadcast_extents(&shapes)?)?,
            )?
        }
    };
    if program.0.run_if_small(&inputs, &mut out)? {
        return Ok(AsyncValue::available(out.into()));
    }
    let chain = program.0.run_into(execution, &inputs, &out)?;
    Ok(made(out, chain))
}

/// Returns the shape to which all inputs are broadcast, if each of them has it or one element.
fn spread<'a>(inputs: &[&'a DenseHostTensor]) -> Option<&'a TensorShape> {
    let first = inputs.first()?.shape();
    if inputs.iter().all(|input| input.shape() == first) {
        return Some(first);
    }
    let size = |input: &&&DenseHostTensor| (input.n_elements(), input.shape().rank());
    let shape = inputs.iter().max_by_key(size)?.shape();
    let is_spread = |input: &&DenseHostTensor| {
        input.shape() == shape || (input.n_elements() == 1 && input.shape().rank() <= shape.rank())
    };
    inputs.iter().all(is_spread).then_some(shape)
}
