//! Checks of inferred types and shapes against the outputs that cases expect: `tfrt-suite FOLDER --shapes`.
//!
//! Types and shapes that a model states of what it calculates are taken away, so that all that is known afterwards
//! follows from the rules. Each case is looked at twice: with its inputs unknown but for their types, and with small
//! inputs as constants, since extents, axes and scales are such.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tfrt::compiler::pipeline::Pipeline;
use tfrt::import::onnx::data::{Data, Kind};
use tfrt::import::onnx::{ElementType, TensorData};
use tfrt::input::Input;
use tfrt::ir::attributes::{DenseAttribute, DenseElements};
use tfrt::ir::types::TensorType;
use tfrt::ir::{Attribute, BlockId, Module, OpId, OpState, Type};

/// The inferred knowledge of an output, compared with the expected one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum InferenceQuality {
    /// A wrong type or shape.
    Wrong,
    /// Nothing, or the type of the elements alone.
    Nothing,
    /// The number of dimensions.
    Rank,
    /// Type and extents.
    All,
}

/// Compares all cases, and prints the results; returns whether nothing is wrong.
pub fn run(folder: &Path, names: impl Iterator<Item = String>) -> bool {
    let mut counts: BTreeMap<(bool, InferenceQuality), usize> = BTreeMap::new();
    let mut vague: BTreeSet<String> = BTreeSet::new();
    let mut is_right = true;
    for name in names {
        for with_values in [false, true] {
            let outputs = match case(&folder.join(&name), with_values) {
                Ok(outputs) => outputs,
                Err(reason) => {
                    println!("{name}: {reason}");
                    is_right = false;
                    continue;
                }
            };
            for (index, (known, found, operations)) in outputs.into_iter().enumerate() {
                *counts.entry((with_values, known)).or_default() += 1;
                if known == InferenceQuality::Wrong {
                    println!("{name}: output {index}: {found}");
                    is_right = false;
                }
                if with_values && known < InferenceQuality::All {
                    vague.insert(format!("{known:?}: {operations} ({found})"));
                }
            }
        }
    }
    for line in vague {
        println!("{line}");
    }
    for with_values in [false, true] {
        let count = |known| counts.get(&(with_values, known)).copied().unwrap_or(0);
        println!(
            "{}: {} outputs known, {} by rank, {} not, {} wrong",
            if with_values {
                "small inputs known"
            } else {
                "inputs unknown"
            },
            count(InferenceQuality::All),
            count(InferenceQuality::Rank),
            count(InferenceQuality::Nothing),
            count(InferenceQuality::Wrong),
        );
    }
    is_right
}

/// Returns the knowledge of each output of a case that is a tensor, in words, and its operations.
fn case(
    folder: &Path,
    with_values: bool,
) -> Result<Vec<(InferenceQuality, String, String)>, String> {
    let input = Input::read(folder.join("model.onnx")).map_err(|error| error.message())?;
    let module = input
        .module()
        .map_err(|errors| crate::case::first_of(&errors))?;
    let mut module = module.ok_or("it is no ONNX model")?;
    let operations = crate::case::operations(&module.to_string());
    let operations = operations.into_iter().collect::<Vec<_>>().join(" ");
    let (function, block) = main(&module).ok_or("it has no graph")?;
    let set = folder.join("test_data_set_0");
    if with_values {
        constants(&mut module, block, &set);
    }
    forget(&mut module, block);
    signature(&mut module, function, block);
    let passes = Pipeline::parse("onnx-upgrade,graph-infer").map_err(|error| error.to_string())?;
    passes
        .run(&mut module)
        .map_err(|errors| crate::case::first_of(&errors))?;
    let last = module.block(block).last().ok_or("it is empty")?;
    let values = module.op(last).operands().to_vec();
    let mut outputs = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        let path = set.join(format!("output_{index}.pb"));
        let ty = module.value_type(value);
        let Some((element, dims)) = read(&path) else {
            continue;
        };
        let found = format!("{ty}, expected {dims:?} of {element:?}");
        outputs.push((judge(ty, element, &dims), found, operations.clone()));
    }
    Ok(outputs)
}

/// Reads type and shape of a case's file, if it is a tensor.
fn read(path: &Path) -> Option<(ElementType, Vec<usize>)> {
    let data = Data::decode(fs::read(path).ok()?, Kind::Tensor, "case").ok()?;
    match data {
        Data::Tensor(tensor) => Some((tensor.element, tensor.dims.to_vec())),
        _ => None,
    }
}

fn judge(ty: &Type, element: ElementType, dims: &[usize]) -> InferenceQuality {
    let Type::Tensor(tensor) = ty else {
        return InferenceQuality::Nothing;
    };
    let own = tensor.element.to_string();
    let is_known = !own.contains("unknown");
    if is_known && own != element.ty().to_string() {
        return InferenceQuality::Wrong;
    }
    let Some(shape) = &tensor.shape else {
        return InferenceQuality::Nothing;
    };
    let is_it = |(own, dim): (&i64, &usize)| *own < 0 || usize::try_from(*own) == Ok(*dim);
    if shape.len() != dims.len() || !shape.iter().zip(dims).all(is_it) {
        return InferenceQuality::Wrong;
    }
    match (is_known, shape.iter().all(|extent| *extent >= 0)) {
        (true, true) => InferenceQuality::All,
        (true, false) => InferenceQuality::Rank,
        (false, _) => InferenceQuality::Nothing,
    }
}

/// Returns the function of a graph, and its block.
pub fn main(module: &Module) -> Option<(OpId, BlockId)> {
    let operations = module.block(module.body()).operations().iter();
    let mut functions =
        operations.filter(|op| module.op(**op).attribute("model.input_names").is_some());
    let function = *functions.next()?;
    let region = *module.op(function).regions().first()?;
    Some((function, *module.region(region).blocks().first()?))
}

/// Makes constants of small inputs.
fn constants(module: &mut Module, block: BlockId, set: &Path) {
    let mut made = Vec::new();
    for (index, argument) in module
        .block(block)
        .arguments()
        .to_vec()
        .into_iter()
        .enumerate()
    {
        let file = fs::read(set.join(format!("input_{index}.pb"))).ok();
        let data = file.and_then(|bytes| Data::decode(bytes, Kind::Tensor, "case").ok());
        let Some(Data::Tensor(tensor)) = data else {
            continue;
        };
        // Integers may be extents or axes, a few floating-point numbers scales.
        let most = match tensor.element {
            ElementType::I64 | ElementType::I32 => 256,
            ElementType::F32 => 8,
            _ => continue,
        };
        let n_elements: usize = tensor.dims.iter().product();
        let TensorData::Bytes(bytes) = &tensor.data else {
            continue;
        };
        if n_elements > most {
            continue;
        }
        let ty = module.value_type(argument).clone();
        let dense = DenseAttribute {
            ty: ty.clone(),
            elements: DenseElements::Bytes(bytes.to_vec().into()),
            splat: false,
        };
        let state =
            OpState::new("onnx.Constant").attribute("value", Attribute::Dense(Arc::new(dense)));
        let op = module.create(state.result(ty));
        let result = module.op(op).results()[0];
        module.replace_all_uses(argument, result);
        made.push(op);
    }
    made.extend_from_slice(module.block(block).operations());
    module.set_operations(block, made);
}

/// Removes the stated types of results that are tensors, constants aside.
fn forget(module: &mut Module, block: BlockId) {
    let unknown = Type::Tensor(Arc::new(TensorType {
        shape: None,
        element: Type::dialect("!onnx.unknown"),
        encoding: None,
    }));
    for op in module.block(block).operations().to_vec() {
        for region in module.op(op).regions().to_vec() {
            for inner in module.region(region).blocks().to_vec() {
                forget(module, inner);
            }
        }
        if *module.op(op).name() == "onnx.Constant" {
            continue;
        }
        for result in module.op(op).results().to_vec() {
            if matches!(module.value_type(result), Type::Tensor(_)) {
                module.set_value_type(result, unknown.clone());
            }
        }
    }
}

/// Sets the function's type to the types that its block returns.
fn signature(module: &mut Module, function: OpId, block: BlockId) {
    let types = |values: &[tfrt::ir::ValueId]| -> Vec<Type> {
        values
            .iter()
            .map(|value| module.value_type(*value).clone())
            .collect()
    };
    let last = module
        .block(block)
        .last()
        .map(|op| module.op(op).operands());
    let ty = Type::function(
        types(module.block(block).arguments()),
        types(last.unwrap_or_default()),
    );
    module.set_attribute(function, "function_type", Attribute::Type(ty));
}
