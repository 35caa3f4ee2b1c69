//! Programs of elementwise functions.
//!
//! A program is a list of steps, one text each: a function, and what it takes: `a0` is the first operand of
//! the kernel, `s0` the result of the first step, anything else a number. `["Multiply a0 2.0", "Add s0 a1",
//! "Relu s1"]` is `relu(a * 2 + b)`.

use smallvec::SmallVec;
use tfrt_host::kernel::{Attr, AttributeView, Operands};
use tfrt_host::{AsyncValue, Error, ExecutionContext, Heap, Record, Value};
use tfrt_tensor::math::elementwise::broadcast_extents;
use tfrt_tensor::math::pointwise::{self, BinaryFunction, Operand, Step, UnaryFunction};
use tfrt_tensor::{DenseHostTensor, TensorShape};

use super::{Made, dense, made, memory};

/// A program, ready to run.
#[derive(Clone, Debug)]
pub(super) struct Program(pointwise::Program);

impl Value for Program {
    const NAME: &'static str = "!cpu.graph.program";
    type Storage = Heap;
    const RECORD: &'static Record<Self> = {
        static RECORD: Record<Program> = Record::new();
        &RECORD
    };
}

/// `%p = "cpu.pack.program"() {inputs = 2 : i64, steps = ["Add a0 a1", "Relu s0"]}`
pub(super) fn pack(n_inputs: Attr<i64>, steps: Attr<AttributeView<'_>>) -> Result<Program, Error> {
    let wrong = || Error::invalid_argument("expected a list of steps, each a text");
    let list = steps.aggregate().ok_or_else(wrong)?;
    let mut all = Vec::with_capacity(list.len());
    for index in 0..list.len() {
        let text = list.get(index).and_then(|step| step.as_bytes());
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        all.push(step(text.ok_or_else(wrong)?)?);
    }
    let n_inputs = usize::try_from(*n_inputs).unwrap_or(0);
    Ok(Program(pointwise::Program::new(n_inputs, &all)?))
}

/// Reads a step.
fn step(text: &str) -> Result<Step, Error> {
    let mut words = text.split(' ');
    let name = words.next().unwrap_or_default();
    let operands: Option<Vec<Operand>> = words.map(operand).collect();
    let operands = operands.unwrap_or_default();
    let found = match operands[..] {
        [x] => {
            let mut all = UnaryFunction::ALL.iter();
            let function = all.find(|function| format!("{function:?}") == name);
            function.map(|function| Step::Unary(*function, x))
        }
        [x, y] => {
            let mut all = BinaryFunction::ALL.iter();
            let function = all.find(|function| format!("{function:?}") == name);
            function.map(|function| Step::Binary(*function, [x, y]))
        }
        [condition, x, y] => (name == "Select").then_some(Step::Select([condition, x, y])),
        _ => None,
    };
    found.ok_or_else(|| {
        let text = text.escape_debug();
        let message = format!("expected a function and its operands, found '{text}'");
        Error::invalid_argument(message)
    })
}

fn operand(word: &str) -> Option<Operand> {
    let index = |digits: &str| digits.parse::<usize>().ok();
    match (word.strip_prefix('a'), word.strip_prefix('s')) {
        (Some(digits), _) => index(digits).map(Operand::Input),
        (_, Some(digits)) => index(digits).map(Operand::Step),
        _ => word.parse::<f64>().ok().map(Operand::Number),
    }
}

/// `%y = "cpu.graph.elementwise"(%p, %a, %b)`
///
/// # Shapes
///
/// The result is of the shape that the inputs are broadcast to.
pub(super) fn run(operands: Operands<'_>, execution: &ExecutionContext) -> Made {
    let program = operands.first().and_then(|value| value.get::<Program>());
    let program =
        program.ok_or_else(|| Error::invalid_argument("operand 0: expected a program"))?;
    let mut inputs: SmallVec<[&DenseHostTensor; 4]> = SmallVec::new();
    for index in 1..operands.len() {
        inputs.push(dense(&operands, index)?);
    }
    let mut out = match spread(&inputs) {
        Some(shape) => memory::output_of(execution, shape.clone())?,
        None => {
            let shapes: Vec<_> = inputs.iter().map(|input| input.shape().to_dims()).collect();
            let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
            memory::output(execution, &broadcast_extents(&shapes)?)?
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
