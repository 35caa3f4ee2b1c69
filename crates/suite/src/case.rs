//! A case: a model, its inputs, and the outputs that are expected.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tfrt_bef::BefFile;
use tfrt_compiler::onnx::{NoEvaluator, pipeline};
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AnyAsyncValue, DType, ExecutionContext, HostAllocator, HostContext, Program, RequestContext,
};
use tfrt_import::onnx::data::{Data, Kind};
use tfrt_import::onnx::{ElementType, Options, Tensor as Read, TensorData, import};
use tfrt_tensor::{
    DenseHostTensor, Optional, Sequence, StringHostTensor, Tensor, TensorMetadata, TensorShape,
};

use crate::compare::{self, Value};
use crate::verdict::{Ending, Stage, Verdict};

/// Cases whose outputs are random by their definition: type and shape are compared.
const RANDOM: &[&str] = &[
    "test_bernoulli",
    "test_bernoulli_double",
    "test_bernoulli_double_expanded",
    "test_bernoulli_expanded",
    "test_bernoulli_seed",
    "test_bernoulli_seed_expanded",
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
];

/// Runs cases, one after the other.
pub struct Runner {
    host: HostContext,
}

type Stopped = (Stage, String);

impl Runner {
    /// Makes a host with all kernels.
    pub fn new() -> Runner {
        let mut registry = KernelRegistry::new();
        tfrt_kernels::register_all(&mut registry);
        let host = HostContext::builder(registry).queue(tfrt_host::default_queue());
        Runner { host: host.build() }
    }

    /// Runs the case in a folder.
    pub fn run(&self, folder: &Path, name: &str) -> Verdict {
        let mut verdict = Verdict::of(name, Ending::Passed);
        if let Err((stage, reason)) = self.try_run(folder, &mut verdict) {
            verdict.ending = Ending::Failed(stage, reason);
        }
        verdict
    }

    fn try_run(&self, folder: &Path, verdict: &mut Verdict) -> Result<(), Stopped> {
        let opening = |reason: String| (Stage::Open, reason);
        let path = folder.join("model.onnx");
        let bytes = fs::read(&path).map_err(|error| opening(error.to_string()))?;
        let mut module =
            import(bytes, &Options::at_path(&path)).map_err(|errors| opening(first(&errors)))?;
        let text = module.to_string();
        verdict.operations = operations(&text).into_iter().collect();
        pipeline(
            &mut module,
            &tfrt_compiler::onnx::Options::default(),
            &NoEvaluator,
        )
        .map_err(|errors| opening(first(&errors)))?;
        let bytes = compile(&module, &CompileOptions::default())
            .map_err(|errors| opening(first(&errors)))?;
        let file = BefFile::open(bytes).map_err(|error| opening(error.to_string()))?;
        let model = file
            .model()
            .cloned()
            .ok_or_else(|| opening("the file has no model".to_owned()))?;
        let program = Program::load(file, &self.host).map_err(|error| {
            let messages: BTreeSet<&str> = error
                .problems()
                .iter()
                .map(|problem| &*problem.message)
                .collect();
            opening(messages.into_iter().collect::<Vec<_>>().join("; "))
        })?;
        let values = model.inputs.iter().chain(&model.outputs);
        let types: BTreeSet<String> = values.map(|value| element(&value.ty)).collect();
        verdict.types = types.into_iter().collect();
        let is_random = RANDOM.contains(&verdict.name.as_str());
        for number in 0.. {
            let set = folder.join(format!("test_data_set_{number}"));
            if !set.exists() {
                return match number {
                    0 => Err((Stage::Read, "there are no inputs".to_owned())),
                    _ => Ok(()),
                };
            }
            self.try_set(&set, &program, &model, is_random)?;
        }
        Ok(())
    }

    /// Calls the model with the inputs of a folder, and compares its outputs with those there.
    fn try_set(
        &self,
        set: &Path,
        program: &Program,
        model: &tfrt_bef::Model,
        is_random: bool,
    ) -> Result<(), Stopped> {
        let allocator = self.host.allocator();
        let read = |name: String, ty: &str| {
            let value = read(&set.join(&name), ty, allocator);
            value.map_err(|reason| (Stage::Read, format!("{name}: {reason}")))
        };
        let mut arguments = Vec::new();
        for (index, input) in model.inputs.iter().enumerate() {
            arguments.push(read(format!("input_{index}.pb"), &input.ty)?.into_any());
        }
        let outputs = self
            .call(program, model, arguments)
            .map_err(|reason| (Stage::Call, reason))?;
        for (index, (output, found)) in model.outputs.iter().zip(outputs).enumerate() {
            let wanted = read(format!("output_{index}.pb"), &output.ty)?;
            let found = Value::of(&found).ok_or_else(|| {
                let found = found.type_name().unwrap_or("nothing");
                (Stage::Compare, format!("output {index} is {found}"))
            })?;
            compare::compare(&wanted, &found, is_random)
                .map_err(|reason| (Stage::Compare, format!("output {index}: {reason}")))?;
        }
        Ok(())
    }

    fn call(
        &self,
        program: &Program,
        model: &tfrt_bef::Model,
        mut arguments: Vec<AnyAsyncValue>,
    ) -> Result<Vec<AnyAsyncValue>, String> {
        let name = program.file().function(model.function).name().to_owned();
        let request = RequestContext::new(&self.host);
        let run = |name: &str, arguments| -> Result<Vec<AnyAsyncValue>, String> {
            let function = program.function(name).ok_or("there is no such function")?;
            let results = function.execute(&ExecutionContext::new(&request), arguments);
            self.host
                .queue()
                .await_all(&results)
                .map_err(|error| error.to_string())?;
            let results: Vec<AnyAsyncValue> =
                results.into_iter().map(AnyAsyncValue::settled).collect();
            match results.iter().find_map(AnyAsyncValue::error) {
                Some(error) => Err(error.message().to_owned()),
                None => Ok(results),
            }
        };
        let constants = tfrt_bef::Model::constants_of(&name);
        if program.function(&constants).is_some() {
            arguments.extend(run(&constants, Vec::new())?);
        }
        run(&name, arguments)
    }
}

fn first(errors: &tfrt_ir::Diagnostics) -> String {
    errors
        .iter()
        .next()
        .map_or_else(String::new, |error| error.message().to_owned())
}

/// The operations of a module in the dialect `onnx`, each once.
fn operations(text: &str) -> BTreeSet<String> {
    let names = text
        .split("\"onnx.")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    names
        .filter(|name| !matches!(*name, "Yield" | "NoValue"))
        .map(str::to_owned)
        .collect()
}

/// The type of the elements of what a type describes.
fn element(ty: &str) -> String {
    let start = ty
        .rfind("tensor<")
        .map_or(0, |start| start + "tensor<".len());
    let mut rest = &ty[start..];
    // Extents stand before the type, each with an `x` behind it.
    while let Some((extent, behind)) = rest.split_once('x') {
        let is_extent =
            extent == "?" || extent == "*" || extent.bytes().all(|byte| byte.is_ascii_digit());
        if !is_extent {
            break;
        }
        rest = behind;
    }
    let mut depth = 0_i32;
    let end = rest.find(|letter| {
        depth += i32::from(letter == '<') - i32::from(letter == '>');
        depth < 0
    });
    rest[..end.unwrap_or(rest.len())].to_owned()
}

fn read(path: &Path, ty: &str, allocator: &Arc<dyn HostAllocator>) -> Result<Value, String> {
    let kind = match ty {
        _ if ty.starts_with("!onnx.sequence") => Kind::Sequence,
        _ if ty.starts_with("!onnx.optional") => Kind::Optional,
        _ => Kind::Tensor,
    };
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let data = Data::decode(bytes, kind, &path.display().to_string());
    value(data.map_err(|errors| first(&errors))?, allocator)
}

fn value(data: Data, allocator: &Arc<dyn HostAllocator>) -> Result<Value, String> {
    match data {
        Data::Tensor(read) => tensor(read, allocator).map(Value::Tensor),
        Data::Sequence(items) => {
            let tensor = |item| match value(item, allocator)? {
                Value::Tensor(tensor) => Ok(tensor),
                _ => Err("a sequence of something else than tensors".to_owned()),
            };
            let tensors: Result<Vec<Tensor>, String> = items.into_iter().map(tensor).collect();
            Ok(Value::Sequence(Sequence::from(tensors?)))
        }
        Data::Optional(None) => Ok(Value::Optional(Optional::Nothing)),
        Data::Optional(Some(inner)) => match value(*inner, allocator)? {
            Value::Tensor(tensor) => Ok(Value::Optional(Optional::Tensor(tensor))),
            Value::Sequence(sequence) => Ok(Value::Optional(Optional::Sequence(sequence))),
            Value::Optional(_) => Err("an optional optional value".to_owned()),
        },
        Data::Map(..) => Err("a map".to_owned()),
    }
}

fn tensor(read: Read, allocator: &Arc<dyn HostAllocator>) -> Result<Tensor, String> {
    let told = |error: tfrt_host::Error| error.message().to_owned();
    let shape = TensorShape::new(&read.dims).map_err(told)?;
    let dtype = dtype(read.element);
    match read.data {
        TensorData::Strings(strings) => {
            let strings = strings.iter().map(|string| string.to_vec()).collect();
            StringHostTensor::new(shape, strings)
                .map(Tensor::from)
                .map_err(told)
        }
        TensorData::Bytes(bytes) => {
            let metadata = TensorMetadata::new(dtype, shape);
            DenseHostTensor::from_bytes(allocator, metadata, &bytes)
                .map(Tensor::from)
                .map_err(told)
        }
    }
}

fn dtype(element: ElementType) -> DType {
    match element {
        ElementType::F32 => DType::F32,
        ElementType::U8 => DType::Ui8,
        ElementType::I8 => DType::I8,
        ElementType::U16 => DType::Ui16,
        ElementType::I16 => DType::I16,
        ElementType::I32 => DType::I32,
        ElementType::I64 => DType::I64,
        ElementType::String => DType::String,
        ElementType::Bool => DType::I1,
        ElementType::F16 => DType::F16,
        ElementType::F64 => DType::F64,
        ElementType::U32 => DType::Ui32,
        ElementType::U64 => DType::Ui64,
        ElementType::C64 => DType::Complex64,
        ElementType::C128 => DType::Complex128,
        ElementType::BF16 => DType::Bf16,
        ElementType::F8E4M3FN => DType::F8E4M3FN,
        ElementType::F8E4M3FNUZ => DType::F8E4M3FNUZ,
        ElementType::F8E5M2 => DType::F8E5M2,
        ElementType::F8E5M2FNUZ => DType::F8E5M2FNUZ,
        ElementType::U4 => DType::Ui4,
        ElementType::I4 => DType::I4,
        ElementType::F4E2M1 => DType::F4E2M1,
        ElementType::F8E8M0 => DType::F8E8M0,
        ElementType::U2 => DType::Ui2,
        ElementType::I2 => DType::I2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_elements_are_told() {
        assert_eq!(element("tensor<?x3xf32>"), "f32");
        assert_eq!(element("tensor<ui8>"), "ui8");
        assert_eq!(element("tensor<2x!onnx.string>"), "!onnx.string");
        assert_eq!(element("!onnx.sequence<tensor<*xi64>>"), "i64");
        assert_eq!(element("tensor<2xcomplex<f32>>"), "complex<f32>");
    }

    #[test]
    fn operations_are_named_once() {
        let text = r#"%0 = "onnx.Add"(..) %1 = "onnx.Add"(..) "onnx.Yield"() "onnx.ml.Scaler"(..)"#;
        let names: Vec<String> = operations(text).into_iter().collect();
        assert_eq!(names, ["Add", "ml.Scaler"]);
    }

    #[test]
    fn folders_without_a_model_fail_to_open() {
        let verdict = Runner::new().run(Path::new("nowhere"), "nowhere");
        assert!(
            verdict
                .reason()
                .is_some_and(|reason| reason.starts_with("open: "))
        );
    }
}
