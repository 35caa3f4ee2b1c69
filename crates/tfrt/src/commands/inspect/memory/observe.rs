//! The tensors that a call of a model makes, observed in a call that returns them all.
//!
//! Extents depend on what a model is given, and are known to its kernels alone. So the program is compiled once
//! more with all tensors among its results, and called: what they are can be read from them, and what lies in
//! the memory of another value is seen by its address, since none of them is gone when the call is over.

use std::collections::HashMap;
use std::ops::Range;

use tfrt::bef::BefFile;
use tfrt::compiler::{self, CompileOptions};
use tfrt::input::{self, Input};
use tfrt::ir::module::{BlockId, OpId, ValueId};
use tfrt::ir::{Attribute, Module, Type};
use tfrt::tensor::Tensor;
use tfrt::{AnyAsyncValue, Model, OpenOptions, Program, Runtime};

use crate::commands::check::place;
use crate::failure::Failure;

/// The MLIR type of tensors.
const TENSOR: &str = "!t.tensor";

/// A tensor that a call makes.
#[derive(Debug)]
pub(super) struct CallTensor {
    /// The kernel, and its path in the graph.
    pub(super) operation: String,
    pub(super) place: String,
    pub(super) kind: String,
    /// The addresses of its elements.
    pub(super) memory: Range<usize>,
    /// The numbers of the operation that makes it and of the last one that uses it.
    pub(super) life: [usize; 2],
    /// The operands of its operation, as indexes of tensors.
    pub(super) operands: Vec<usize>,
}

/// All tensors that a call makes, and where the arguments lie in memory.
pub(super) struct CallTensors {
    pub(super) n_operations: usize,
    pub(super) tensors: Vec<CallTensor>,
    pub(super) arguments: Vec<Range<usize>>,
}

/// Calls a model so that all its tensors are returned.
pub(super) fn observe(
    input: &Input,
    opening: &OpenOptions,
    model: &Model,
    runtime: &Runtime,
    arguments: &[AnyAsyncValue],
) -> Result<CallTensors, Failure> {
    let module = match input.module_with(opening)? {
        Some(module) => input::lower_as(module, opening)?,
        None => compiler::decompile(&input.open()?)?.module,
    };
    let Some(all) = TensorProgram::new(module, model.function().name()) else {
        return Err(failure("the program has no function in one piece"));
    };
    let bytes = compiler::compile(&all.module, &CompileOptions::default())?;
    let file = BefFile::open(bytes).map_err(|error| failure(&error.to_string()))?;
    let program = Program::from_file(file, runtime)?;
    let function = program.function(model.function().name());
    let function = function.ok_or_else(|| failure("the function is gone"))?;
    let call = function.call(&runtime.context(), arguments.to_vec());
    let values = call.wait().map_err(|error| failure(error.message()))?;
    Ok(all.read(&values.into_inner(), arguments))
}

fn failure(message: &str) -> Failure {
    Failure::Rejected {
        code: None,
        message: format!("the model's values can't be seen: {message}"),
        help: None,
    }
}

/// A program whose function returns all its tensors.
struct TensorProgram {
    module: Module,
    operations: Vec<OpId>,
    /// The tensors that are returned in addition, behind the results of the function.
    values: Vec<ValueId>,
    n_before: usize,
    before: Vec<ValueId>,
}

impl TensorProgram {
    fn new(mut module: Module, name: &str) -> Option<TensorProgram> {
        let mut functions = module.children(module.top());
        let function = functions.find(|op| module.symbol_name(*op) == Some(name))?;
        drop(functions);
        let block = only_block(&module, function)?;
        let (last, operations) = module.block(block).operations().split_last()?;
        let (last, operations) = (*last, operations.to_vec());
        let results = operations.iter().flat_map(|op| module.op(*op).results());
        let is_tensor = |value: &&ValueId| module.value_type(**value).to_string() == TENSOR;
        let values: Vec<ValueId> = results.filter(is_tensor).copied().collect();
        let before = module.op(last).operands().to_vec();
        let all: Vec<ValueId> = before.iter().chain(&values).copied().collect();
        module.set_operands(last, &all);
        let types = |list: &[ValueId]| {
            let types = list.iter().map(|value| module.value_type(*value).clone());
            types.collect::<Vec<_>>()
        };
        let inputs = types(module.block(block).arguments());
        let signature = Attribute::Type(Type::function(inputs, types(&all)));
        module.set_attribute(function, "function_type", signature);
        for name in ["model.inputs", "model.outputs", "model.properties"] {
            module.remove_attribute(function, name);
        }
        Some(TensorProgram {
            module,
            operations,
            values,
            n_before: before.len(),
            before,
        })
    }

    fn read(&self, results: &[AnyAsyncValue], arguments: &[AnyAsyncValue]) -> CallTensors {
        let module = &self.module;
        let numbers: HashMap<OpId, usize> = self.operations.iter().copied().zip(0..).collect();
        let end = self.operations.len();
        let by_value: HashMap<ValueId, usize> = self.values.iter().copied().zip(0..).collect();
        let tensors = self.values.iter().zip(&results[self.n_before..]);
        let tensors = tensors.map(|(value, result)| {
            let op = module.defining_op(*value).expect("an operation made it");
            let first = numbers[&op];
            let users = module.users(*value);
            let last = users
                .filter_map(|user| numbers.get(&user.op).copied())
                .max();
            let last = match self.before.contains(value) {
                true => end,
                false => last.unwrap_or(first),
            };
            let data = module.op(op);
            let operands = data.operands().iter();
            CallTensor {
                operation: data.name().to_string(),
                place: place(data.location()),
                kind: kind(result),
                memory: memory(result).unwrap_or(0..0),
                life: [first, last],
                operands: operands
                    .filter_map(|value| by_value.get(value).copied())
                    .collect(),
            }
        });
        CallTensors {
            n_operations: end,
            tensors: tensors.collect(),
            arguments: arguments.iter().filter_map(memory).collect(),
        }
    }
}

fn only_block(module: &Module, function: OpId) -> Option<BlockId> {
    let region = module.op(function).regions().first()?;
    match module.region(*region).blocks() {
        [block] => Some(*block),
        _ => None,
    }
}

/// Returns the addresses of the elements of a tensor.
fn memory(value: &AnyAsyncValue) -> Option<Range<usize>> {
    let buffer = value.get::<Tensor>()?.as_dense().ok()?.buffer();
    let first = buffer.address();
    Some(first..first + buffer.len_bytes())
}

fn kind(value: &AnyAsyncValue) -> String {
    let tensor = value.get::<Tensor>();
    tensor.map_or_else(String::new, |tensor| tensor.metadata().to_string())
}
