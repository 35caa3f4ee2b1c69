//! From a trace to a module.
//!
//! ```mlir
//! func.func @main(%x: !t.tensor, %c: !corert.tensorhandle) -> !t.tensor attributes {model.inputs = ..} {
//!   %ch = tfrt.new.chain
//!   %cpu = corert.get_op_handler %ch "cpu"
//!   %h = "corert.ht_to_tensorhandle"(%x, %ch) : (!t.tensor, !tfrt.chain) -> !corert.tensorhandle
//!   %r = corert.executeop(%cpu) "tf.MatMul"(%h, %c) : 1
//!   %t = "corert.tensorhandle_to_ht"(%r, %ch) : (!corert.tensorhandle, !tfrt.chain) -> !t.tensor
//!   tfrt.return %t : !t.tensor
//! }
//! ```
//!
//! Constants are made once, when the model is opened, by `@main.constants`. Dense tensors and strings are attributes
//! that people can read; of all others the program keeps what their codec writes, in the format that they have.

use std::collections::BTreeMap;

use tfrt_corert::{TensorHandle, Trace, TracedCall};
use tfrt_host::{AnyAsyncValue, Chain, Error, HostContext, Value};
use tfrt_ir::{Attribute, BlockId, Location, Module, OpState, Type, ValueId, parse_type};
use tfrt_kernels::graph::stored::KERNEL;
use tfrt_tensor::{Tensor, TensorMetadata};

use super::attribute;
use crate::stored;

const MAIN: &str = "main";
const HANDLER: &str = "!corert.ophandler";

/// The types of values that occur.
struct Types {
    chain: Type,
    handler: Type,
    handle: Type,
    tensor: Type,
}

/// A function that is being written.
struct Writer<'m> {
    module: &'m mut Module,
    block: BlockId,
    types: &'m Types,
}

impl Writer<'_> {
    fn add(&mut self, state: OpState) -> Vec<ValueId> {
        let op = self.module.create(state);
        self.module.append(self.block, op);
        self.module.op(op).results().to_vec()
    }

    fn add_one(&mut self, state: OpState, ty: Type) -> ValueId {
        self.add(state.result(ty))[0]
    }

    /// Ends the function, which takes the block's arguments.
    fn finish(&mut self, results: Vec<ValueId>) -> Type {
        let ty = |value: &ValueId| self.module.value_type(*value).clone();
        let arguments: Vec<Type> = self
            .module
            .block(self.block)
            .arguments()
            .iter()
            .map(ty)
            .collect();
        let types: Vec<Type> = results.iter().map(ty).collect();
        self.add(OpState::new("tfrt.return").operands(results));
        Type::function(arguments, types)
    }
}

/// Makes the module of a trace. `names` are those of the inputs.
///
/// # Errors
///
/// `InvalidArgument` for what can't be written to a program.
pub(super) fn make(
    names: &[String],
    trace: &Trace,
    results: &[TensorHandle],
    host: &HostContext,
) -> Result<Module, Error> {
    let ty = |name: &str| {
        parse_type(name).ok_or_else(|| Error::internal(format!("{name} is no type of programs")))
    };
    let types = Types {
        chain: ty(Chain::NAME)?,
        handler: ty(HANDLER)?,
        handle: ty(TensorHandle::NAME)?,
        tensor: ty(Tensor::NAME)?,
    };
    let mut module = Module::new();
    main(&mut module, &types, names, trace, results)?;
    if !trace.constants.is_empty() {
        constants(&mut module, &types, trace, host)?;
    }
    Ok(module)
}

fn main(
    module: &mut Module,
    types: &Types,
    names: &[String],
    trace: &Trace,
    results: &[TensorHandle],
) -> Result<(), Error> {
    let region = module.create_region();
    let block = module.create_block(region);
    let mut values: BTreeMap<u32, ValueId> = BTreeMap::new();
    let mut given = Vec::new();
    for ((number, _), name) in trace.inputs.iter().zip(names) {
        let location = Location::named(name.as_str(), None);
        given.push((
            *number,
            module.add_argument(block, types.tensor.clone(), location),
        ));
    }
    for (number, _) in &trace.constants {
        let value = module.add_argument(block, types.handle.clone(), Location::Unknown);
        values.insert(*number, value);
    }
    let mut writer = Writer {
        module,
        block,
        types,
    };
    let mut chain = writer.add_one(OpState::new("tfrt.new.chain"), types.chain.clone());
    for (number, tensor) in given {
        let state = OpState::new("corert.ht_to_tensorhandle")
            .operand(tensor)
            .operand(chain);
        let handle = writer.add_one(state, types.handle.clone());
        values.insert(number, handle);
    }
    let mut handlers: BTreeMap<String, ValueId> = BTreeMap::new();
    let start = chain;
    for call in &trace.calls {
        let handler = call.op.handler();
        let handler = match handlers.get(handler) {
            Some(known) => *known,
            None => {
                let state = OpState::new("corert.get_op_handler")
                    .operand(start)
                    .attribute("op_handler_name", Attribute::string(handler));
                let value = writer.add_one(state, types.handler.clone());
                handlers.insert(handler.to_owned(), value);
                value
            }
        };
        chain = write_call(&mut writer, call, handler, chain, &mut values)?;
    }
    let mut outputs = Vec::new();
    for number in &trace.results {
        let state = OpState::new("corert.tensorhandle_to_ht")
            .operand(values[number])
            .operand(chain);
        outputs.push(writer.add_one(state, types.tensor.clone()));
    }
    let function_type = writer.finish(outputs);
    let input =
        |((_, handle), name): (&(u32, TensorHandle), &String)| described(name, handle.metadata());
    let inputs = trace
        .inputs
        .iter()
        .zip(names)
        .map(input)
        .collect::<Result<_, _>>()?;
    let output = |(index, result): (usize, &TensorHandle)| {
        described(&format!("output{index}"), result.metadata())
    };
    let outputs = results
        .iter()
        .enumerate()
        .map(output)
        .collect::<Result<_, _>>()?;
    let state = OpState::new("func.func")
        .attribute("sym_name", Attribute::string(MAIN))
        .attribute("function_type", Attribute::Type(function_type))
        .attribute("model.inputs", Attribute::array(inputs))
        .attribute("model.outputs", Attribute::array(outputs))
        .region(region);
    let main = module.create(state);
    module.append(module.body(), main);
    Ok(())
}

/// Writes a call, and returns the chain behind it.
fn write_call(
    writer: &mut Writer<'_>,
    call: &TracedCall,
    handler: ValueId,
    chain: ValueId,
    values: &mut BTreeMap<u32, ValueId>,
) -> Result<ValueId, Error> {
    let is_pure = call.op.is_pure();
    let (attributes, functions) = attribute::pairs(call.attrs.as_ref())?;
    let name = if is_pure {
        "corert.executeop"
    } else {
        "corert.executeop.seq"
    };
    let mut state = OpState::new(name).operand(handler);
    if !is_pure {
        state = state.operand(chain).result(writer.types.chain.clone());
    }
    let handle = writer.types.handle.clone();
    let state = state
        .operands(call.inputs.iter().map(|input| values[input]))
        .results(call.results.iter().map(|_| handle.clone()))
        .attribute("op_name", Attribute::string(call.op.name()))
        .attribute("op_attrs", attributes)
        .attribute("op_func_attrs", functions);
    let mut results = writer.add(state).into_iter();
    let chain = match is_pure {
        true => chain,
        false => results.next().unwrap_or(chain),
    };
    values.extend(call.results.iter().copied().zip(results));
    Ok(chain)
}

/// Returns the function that makes the constants.
fn constants(
    module: &mut Module,
    types: &Types,
    trace: &Trace,
    host: &HostContext,
) -> Result<(), Error> {
    let region = module.create_region();
    let block = module.create_block(region);
    let mut writer = Writer {
        module,
        block,
        types,
    };
    let mut made = Vec::new();
    for (_, handle) in &trace.constants {
        let tensor = match handle.tensor() {
            Some(Ok(tensor)) => tensor,
            Some(Err(error)) => return Err(error.clone()),
            None => {
                let message = "a constant of the recording is still to come: wait for it first";
                return Err(Error::failed_precondition(message));
            }
        };
        made.push(constant(&mut writer, tensor, host)?);
    }
    let function_type = writer.finish(made);
    let state = OpState::new("func.func")
        .attribute(
            "sym_name",
            Attribute::string(tfrt_bef::Model::constants_of(MAIN).as_str()),
        )
        .attribute("function_type", Attribute::Type(function_type))
        .region(region);
    let function = module.create(state);
    module.append(module.body(), function);
    Ok(())
}

/// Writes what makes a constant, and returns its handle.
fn constant(
    writer: &mut Writer<'_>,
    tensor: &Tensor,
    host: &HostContext,
) -> Result<ValueId, Error> {
    let handle = writer.types.handle.clone();
    if let Tensor::String(strings) = tensor {
        let text = |bytes: &Vec<u8>| Attribute::string(&**bytes);
        let extents = strings.metadata().shape.extents();
        let extents = extents.map(|extent| Attribute::integer(extent as i64, Type::I64));
        let state = OpState::new("corert.const_string_tensor")
            .attribute("shape", Attribute::array(extents.collect()))
            .attribute(
                "value",
                Attribute::array(strings.strings().iter().map(text).collect()),
            );
        return Ok(writer.add_one(state, handle));
    }
    if let Tensor::Dense(dense) = tensor
        && let Ok(value) = attribute::dense(dense)
    {
        let state = OpState::new("corert.const_dense_tensor").attribute("value", value);
        return Ok(writer.add_one(state, handle));
    }
    let encoded = AnyAsyncValue::new(tensor.clone());
    let encoded = host.codecs().encode(&encoded, host.allocator())?;
    let attributes = stored::attributes(&encoded).ok_or_else(|| {
        let metadata = tensor.metadata();
        Error::invalid_argument(format!("a program can't have a constant of {metadata}"))
    })?;
    let mut state = OpState::new(KERNEL);
    for (name, value) in attributes {
        state = state.attribute(name, value);
    }
    let made = writer.add_one(state, writer.types.tensor.clone());
    let chain = writer.add_one(OpState::new("tfrt.new.chain"), writer.types.chain.clone());
    let state = OpState::new("corert.ht_to_tensorhandle")
        .operand(made)
        .operand(chain);
    Ok(writer.add_one(state, handle))
}

/// Name, type and dimensions of an input or an output.
fn described(name: &str, metadata: Option<&TensorMetadata>) -> Result<Attribute, Error> {
    let Some(metadata) = metadata else {
        return Err(Error::internal(format!("nothing is known of '{name}'")));
    };
    let dimension = |extent: usize| {
        let extent = i64::try_from(extent).unwrap_or(i64::MAX);
        Attribute::integer(extent, Type::I64)
    };
    let dimensions = metadata.shape.extents().map(dimension);
    Ok(Attribute::array(vec![
        Attribute::string(name),
        Attribute::Type(attribute::tensor_type(metadata)?),
        Attribute::array(dimensions.collect()),
    ]))
}
