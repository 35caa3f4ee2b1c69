//! Symbolic dimensions of a module that is a model, fixed to sizes.
//!
//! A graph states names of dimensions in the attributes `model.input_dims` and `model.output_dims` of its function, beside the
//! types of arguments; a program that a graph has become, in the entries of `model.inputs` and `model.outputs`.

use std::sync::Arc;

use tfrt_ir::types::{DYNAMIC, TensorType};
use tfrt_ir::{Attribute, Module, OpId, OpState, Type, ValueId, ValueUse};

use crate::error::OpenError;
use crate::open_options::{OpenOptions, Symbol};

/// The attributes of a graph that name its inputs, and the dimensions of inputs and outputs.
const GRAPH_INPUTS: &str = "model.input_names";
const GRAPH_DIMS: [&str; 2] = ["model.input_dims", "model.output_dims"];

/// The attributes of a program that hold name, type and dimensions of each input, and of each output.
const PROGRAM_VALUES: [&str; 2] = ["model.inputs", "model.outputs"];

/// Fixes dimensions of all models in a module.
///
/// # Errors
///
/// `Dimension` for dimensions that no model in it can have, or if there is none.
pub(super) fn fix(module: &mut Module, options: &OpenOptions) -> Result<(), OpenError> {
    if options.dims().is_empty() {
        return Ok(());
    }
    let functions: Vec<OpId> = module.children(module.top()).collect();
    let has = |function: &OpId, name: &str| module.op(*function).attribute(name).is_some();
    let (graphs, rest): (Vec<OpId>, Vec<OpId>) = functions
        .iter()
        .partition(|function| has(function, GRAPH_INPUTS));
    let programs: Vec<OpId> = rest
        .into_iter()
        .filter(|function| has(function, PROGRAM_VALUES[0]))
        .collect();
    if graphs.is_empty() && programs.is_empty() {
        return options.check_without_model();
    }
    let symbols = graphs.iter().flat_map(|graph| of_graph(module, *graph));
    let symbols = symbols.chain(programs.iter().flat_map(|one| of_program(module, *one)));
    let symbols: Vec<Symbol<'_>> = symbols.collect();
    options.check_dims(&symbols)?;
    drop(symbols);
    for graph in graphs {
        fix_graph(module, graph, options);
    }
    for program in programs {
        fix_program(module, program, options);
    }
    Ok(())
}

fn list<'m>(module: &'m Module, op: OpId, name: &str) -> &'m [Attribute] {
    let list = module.op(op).attribute(name).and_then(Attribute::as_array);
    list.unwrap_or_default()
}

/// Returns the symbols among the dimensions of an input, whose type may say the same or another size.
fn symbols<'m>(
    input: &'m str,
    dims: &'m Attribute,
    ty: Option<&'m Type>,
) -> impl Iterator<Item = Symbol<'m>> {
    let shape = ty.and_then(|ty| match ty {
        Type::Tensor(tensor) => tensor.shape.as_deref(),
        _ => None,
    });
    let dims = dims.as_array().unwrap_or_default().iter().enumerate();
    dims.filter_map(move |(index, dim)| {
        let name = dim.as_str().filter(|name| !name.is_empty())?;
        let size = shape.and_then(|shape| usize::try_from(*shape.get(index)?).ok());
        Some(Symbol { name, input, size })
    })
}

fn of_graph(module: &Module, graph: OpId) -> Vec<Symbol<'_>> {
    let types = arguments(module, graph)
        .into_iter()
        .map(|value| module.value_type(value));
    let types: Vec<&Type> = types.collect();
    let names = list(module, graph, GRAPH_INPUTS);
    let dims = list(module, graph, GRAPH_DIMS[0]);
    let inputs = names.iter().zip(dims).enumerate();
    inputs
        .flat_map(|(index, (name, dims))| {
            let name = name.as_str().unwrap_or_default();
            symbols(name, dims, types.get(index).copied())
        })
        .collect()
}

fn of_program(module: &Module, program: OpId) -> Vec<Symbol<'_>> {
    let inputs = list(module, program, PROGRAM_VALUES[0]).iter();
    inputs
        .flat_map(|input| match input.as_array() {
            Some([name, _, dims]) => {
                symbols(name.as_str().unwrap_or_default(), dims, None).collect()
            }
            _ => Vec::new(),
        })
        .collect()
}

fn arguments(module: &Module, function: OpId) -> Vec<ValueId> {
    let region = module.op(function).regions().first();
    let entry = region.and_then(|region| module.entry_block(*region));
    let arguments = entry.map(|entry| module.block(entry).arguments().to_vec());
    arguments.unwrap_or_default()
}

/// Returns the dimensions of a value with numbers in the place of symbols.
fn fixed(dims: &Attribute, options: &OpenOptions) -> Attribute {
    let Some(list) = dims.as_array() else {
        return dims.clone();
    };
    let one = |dim: &Attribute| match dim.as_str().and_then(|name| options.size_of(name)) {
        // What was checked fits.
        Some(size) => Attribute::integer(i64::try_from(size).unwrap_or(i64::MAX), Type::I64),
        None => dim.clone(),
    };
    Attribute::array(list.iter().map(one).collect())
}

/// Returns the type of an input whose dimensions are these.
fn fixed_type(ty: &Type, dims: &Attribute) -> Type {
    let (Type::Tensor(tensor), Some(dims)) = (ty, dims.as_array()) else {
        return ty.clone();
    };
    let unknown = || vec![DYNAMIC; dims.len()];
    let mut shape = tensor.shape.clone().unwrap_or_else(unknown);
    if shape.len() != dims.len() {
        return ty.clone();
    }
    for (size, dim) in shape.iter_mut().zip(dims) {
        if let (DYNAMIC, Some(stated)) = (*size, dim.as_i64()) {
            *size = stated;
        }
    }
    Type::Tensor(Arc::new(TensorType {
        shape: Some(shape),
        element: tensor.element.clone(),
        encoding: tensor.encoding.clone(),
    }))
}

/// Gives calls an argument as one of its old type, which is that of the functions they call.
fn widen_for_calls(module: &mut Module, argument: ValueId, old: Type) {
    let is_call = |op: OpId| *module.op(op).name() == "func.call";
    let calls: Vec<ValueUse> = module
        .users(argument)
        .filter(|user| is_call(user.op))
        .collect();
    let (Some(block), false) = (module.value_block(argument), calls.is_empty()) else {
        return;
    };
    let cast = OpState::new("builtin.unrealized_conversion_cast");
    let cast = module.create(cast.operand(argument).result(old));
    module.insert(block, 0, cast);
    let wide = module.op(cast).results()[0];
    for call in calls {
        module.set_operand(call.op, call.operand as usize, wide);
    }
}

fn fix_graph(module: &mut Module, graph: OpId, options: &OpenOptions) {
    for name in GRAPH_DIMS {
        let dims = list(module, graph, name);
        let dims: Vec<Attribute> = dims.iter().map(|dims| fixed(dims, options)).collect();
        if !dims.is_empty() {
            module.set_attribute(graph, name, Attribute::array(dims));
        }
    }
    let dims = list(module, graph, GRAPH_DIMS[0]).to_vec();
    let arguments = arguments(module, graph);
    for (argument, dims) in arguments.iter().zip(&dims) {
        let old = module.value_type(*argument).clone();
        let ty = fixed_type(&old, dims);
        if ty != old {
            module.set_value_type(*argument, ty);
            widen_for_calls(module, *argument, old);
        }
    }
    let ty = module.op(graph).attribute("function_type");
    let Some(ty) = ty.and_then(|ty| ty.as_type()?.as_function().cloned()) else {
        return;
    };
    let of = |value: &ValueId| module.value_type(*value).clone();
    let inputs: Vec<Type> = arguments.iter().map(of).collect();
    // An input that is an output, too, has another type there as well.
    let region = module.op(graph).regions().first();
    let entry = region.and_then(|region| module.entry_block(*region));
    let last = entry.and_then(|entry| module.block(entry).last());
    let returned = last.map(|last| module.op(last).operands());
    let results: Vec<Type> = returned.unwrap_or_default().iter().map(of).collect();
    if inputs.len() == ty.inputs.len() && results.len() == ty.results.len() {
        let ty = Attribute::Type(Type::function(inputs, results));
        module.set_attribute(graph, "function_type", ty);
    }
}

fn fix_program(module: &mut Module, program: OpId, options: &OpenOptions) {
    for name in PROGRAM_VALUES {
        let entries = list(module, program, name).iter();
        let entries = entries.map(|entry| match entry.as_array() {
            Some([name, ty, dims]) => {
                Attribute::array(vec![name.clone(), ty.clone(), fixed(dims, options)])
            }
            _ => entry.clone(),
        });
        let entries: Vec<Attribute> = entries.collect();
        module.set_attribute(program, name, Attribute::array(entries));
    }
}
