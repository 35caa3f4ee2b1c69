//! Programs of elementwise functions, of tensors of any type.
//!
//! A program is a list of steps, one text each, as [`Step`] reads it: a function, and what it takes: `a0` is the first
//! operand of the kernel, `s0` the result of the first step, anything else a number. `["mul a0 2.0", "add s0 a1",
//! "relu s1"]` is `relu(a * 2 + b)`.

use smallvec::SmallVec;
use tfrt_host::kernel::{Attr, AttributeView, Operands};
use tfrt_host::{AsyncValue, Error, ExecutionContext, Heap, Record, Value};
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::pointwise::{self, Step};
use tfrt_tensor::{DType, DenseHostTensor, TensorShape};

use super::{Made, dense, made, memory};

/// A program, ready to run.
#[derive(Clone, Debug)]
pub(super) struct Program(pointwise::Program);

impl Value for Program {
    const NAME: &'static str = "!cpu.fused.program";
    type Storage = Heap;
    const RECORD: &'static Record<Self> = {
        static RECORD: Record<Program> = Record::new();
        &RECORD
    };
}

/// `%p = "cpu.pack.program"() {inputs = 2 : i64, steps = ["add a0 a1", "relu s0"]}`
pub(super) fn pack(n_inputs: Attr<i64>, steps: Attr<AttributeView<'_>>) -> Result<Program, Error> {
    let wrong = || Error::invalid_argument("expected a list of steps, each a text");
    let list = steps.aggregate().ok_or_else(wrong)?;
    let mut all = Vec::with_capacity(list.len());
    for index in 0..list.len() {
        let text = list.get(index).and_then(|step| step.as_bytes());
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        let step = text.ok_or_else(wrong)?.parse::<Step>();
        all.push(step.map_err(|error| {
            error.with_note(
                "a compiled file may be older than this version: compile the model again",
            )
        })?);
    }
    let n_inputs = usize::try_from(*n_inputs).unwrap_or(0);
    Ok(Program(pointwise::Program::new(n_inputs, &all)?))
}

/// `%y = "cpu.fused.elementwise"(%p, %a, %b)`
///
/// # Shapes
///
/// The result is of the shape that the inputs are broadcast to, and of the type that the program makes of theirs.
pub(super) fn run(operands: Operands<'_>, execution: &ExecutionContext) -> Made {
    let program = operands.first().and_then(|value| value.get::<Program>());
    let program =
        program.ok_or_else(|| Error::invalid_argument("operand 0: expected a program"))?;
    let mut inputs: SmallVec<[&DenseHostTensor; 4]> = SmallVec::new();
    for index in 1..operands.len() {
        inputs.push(dense(&operands, index)?);
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

/// The shape that all are broadcast to, where they have it, or one element.
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
