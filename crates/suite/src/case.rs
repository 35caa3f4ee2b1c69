//! A case: a model, its inputs, and the outputs that are expected.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use tfrt::compiler::legalize::Context;
use tfrt::compiler::onnx::{self as passes, NoEvaluator};
use tfrt::compiler::pipeline::Pipeline;
use tfrt::compiler::{CompileOptions, compile};
use tfrt::import::onnx::data::{Data, Kind};
use tfrt::import::onnx::{ElementType, Tensor as Read, TensorData};
use tfrt::input::Input;
use tfrt::ir::{Diagnostics, Module};
use tfrt::model::{Datum, ValueInfo, ValueType};
use tfrt::tensor::{
    DType, DenseHostTensor, Optional, Sequence, StringHostTensor, Tensor, TensorMetadata,
    TensorShape,
};
use tfrt::{Error, HostAllocator, Model, OpenError, OpenOptions, Runtime, Warnings};

use crate::output_hash::OutputHash;
use crate::verdict::{CaseEnd, Stage, Verdict};
use crate::{checks, compare, eager};

/// The cases whose outputs are random by their definition: type and shape are compared.
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

/// A runner of cases, one after the other.
pub struct Runner {
    runtime: Runtime,
    mode: RunMode,
    #[cfg(feature = "gpu")]
    gpu: Option<tfrt::gpu::driver::sim::Sim>,
    /// The number of findings of earlier cases.
    #[cfg(feature = "gpu")]
    n_found: std::cell::Cell<usize>,
}

/// The way in which a case is run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RunMode {
    /// By [`Model::open`], as users do.
    Whole,
    /// Without the passes that make programs faster: what fails otherwise alone fails by these.
    Bare,
    /// By an eager call, if the case is one row.
    Eager,
    /// By the checks that a text of StableHLO has.
    Checks,
    /// On a simulated GPU, as far as it has kernels.
    #[cfg(feature = "gpu")]
    Gpu,
}

type StageError = (Stage, String);

impl Runner {
    /// Makes a runtime with all kernels.
    pub fn new(mode: RunMode) -> Runner {
        #[cfg(feature = "gpu")]
        if mode == RunMode::Gpu {
            return Runner::on_gpu();
        }
        let runtime = Runtime::new();
        Runner {
            runtime,
            mode,
            #[cfg(feature = "gpu")]
            gpu: None,
            #[cfg(feature = "gpu")]
            n_found: std::cell::Cell::default(),
        }
    }

    /// Makes a runtime with a simulated GPU.
    #[cfg(feature = "gpu")]
    fn on_gpu() -> Runner {
        use tfrt::gpu::driver::sim::{Sim, SimOptions};
        let sim = Sim::new(SimOptions::default());
        let runtime = Runtime::builder().op_kernels(tfrt::gpu::KERNELS).build();
        let added = tfrt::gpu::add(runtime.host(), std::sync::Arc::new(sim.clone()), 0);
        added.expect("a simulated GPU is there");
        Runner {
            runtime,
            mode: RunMode::Gpu,
            gpu: Some(sim),
            n_found: std::cell::Cell::default(),
        }
    }

    /// Returns what the simulated GPU has found in a case.
    #[cfg(feature = "gpu")]
    fn expect_no_findings(&self) -> Result<(), StageError> {
        let findings = self.gpu.as_ref().map(|sim| sim.findings());
        let findings = findings.unwrap_or_default();
        let n_before = self.n_found.replace(findings.len());
        match findings.get(n_before) {
            Some(finding) => Err((Stage::Call, format!("found on the GPU: {finding}"))),
            None => Ok(()),
        }
    }

    /// Opens a model for the GPU.
    #[cfg(feature = "gpu")]
    fn open_for_gpu(
        &self,
        path: &Path,
        options: OpenOptions,
        verdict: &mut Verdict,
    ) -> Result<Model, OpenError> {
        let placements = tfrt::Placements::default();
        let options = options.device("GPU:0").placements(placements.clone());
        let model = self.runtime.open_model_with(path, &options)?;
        let reports = placements.take();
        verdict.placed = Some((
            reports.iter().map(|report| report.n_placed).sum(),
            reports.iter().map(|report| report.n_on_host()).sum(),
        ));
        let on_host = reports.iter().flat_map(|report| &report.on_host);
        let without: BTreeSet<String> = on_host.map(|nodes| nodes.operation.clone()).collect();
        verdict.without = without.into_iter().collect();
        Ok(model)
    }

    /// Runs the case in a folder.
    pub fn run(&self, folder: &Path, name: &str) -> Verdict {
        if let (RunMode::Checks, Some(folder)) = (self.mode, folder.parent()) {
            return checks::run(&self.runtime, folder, name);
        }
        let mut verdict = Verdict::of(name, CaseEnd::Passed);
        if let Err((stage, reason)) = self.try_run(folder, &mut verdict) {
            verdict.ending = CaseEnd::Failed(stage, reason);
        }
        verdict
    }

    fn try_run(&self, folder: &Path, verdict: &mut Verdict) -> Result<(), StageError> {
        let path = folder.join("model.onnx");
        let opening = |error: OpenError| (Stage::Open, first(&error));
        let input = Input::read(&path).map_err(opening)?;
        let module = input.module().map_err(OpenError::Text).map_err(opening)?;
        let module = module.ok_or_else(|| (Stage::Open, "it is no ONNX model".to_owned()))?;
        verdict.operations = operations(&module.to_string()).into_iter().collect();
        let warnings = Warnings::default();
        let options = OpenOptions::new().warnings(warnings.clone());
        let model = match self.mode {
            RunMode::Whole | RunMode::Checks => self.runtime.open_model_with(&path, &options),
            RunMode::Bare => self.open_bare(module),
            RunMode::Eager => return self.call_eagerly(folder, module, verdict),
            #[cfg(feature = "gpu")]
            RunMode::Gpu => self.open_for_gpu(&path, options, verdict),
        };
        let model = model.map_err(opening)?;
        let values = model.inputs().iter().chain(model.outputs());
        let types: BTreeSet<String> = values.map(element).collect();
        verdict.types = types.into_iter().collect();
        let is_random = RANDOM.contains(&verdict.name.as_str());
        let mut bits = OutputHash::new();
        let mut different = None;
        for number in 0.. {
            let set = folder.join(format!("test_data_set_{number}"));
            if !set.exists() {
                if number == 0 {
                    return Err((Stage::Read, "there are no inputs".to_owned()));
                }
                break;
            }
            let found = self.call(&set, &model)?;
            let hashed = found.iter().try_for_each(|output| bits.add(output));
            hashed.map_err(|reason| (Stage::Compare, reason))?;
            // What is wrong has bits, too.
            let compared = self.compare(&set, &model, &found, is_random);
            different = different.or(compared.err());
        }
        verdict.bits = Some(bits.finish()).filter(|_| !is_random);
        different.map_or(Ok(()), Err)?;
        #[cfg(feature = "gpu")]
        self.expect_no_findings()?;
        // A rule that refuses what runs is wrong.
        match warnings.take().iter().next() {
            Some(warning) => Err((Stage::Open, format!("warned: {}", warning.message()))),
            None => Ok(()),
        }
    }

    /// Calls the only row of a case.
    fn call_eagerly(
        &self,
        folder: &Path,
        mut module: Module,
        verdict: &mut Verdict,
    ) -> Result<(), StageError> {
        let no_row = || (Stage::Open, eager::NO_ROW.to_owned());
        let passes = Pipeline::parse("onnx-upgrade,onnx-to-graph").expect("they are passes");
        passes
            .run(&mut module)
            .map_err(|errors| (Stage::Open, first_of(&errors)))?;
        let call = eager::Call::of(&self.runtime, &module).ok_or_else(no_row)?;
        // Types of inputs and outputs are a model's.
        let path = folder.join("model.onnx");
        let model = self
            .runtime
            .open_model(&path)
            .map_err(|error| (Stage::Open, first(&error)))?;
        let set = folder.join("test_data_set_0");
        let mut inputs = Vec::new();
        for (index, input) in model.inputs().iter().enumerate() {
            inputs.push(self.read(&set, &format!("input_{index}.pb"), &input.kind)?);
        }
        let found = call
            .run(&self.runtime, &inputs)
            .map_err(|error| (Stage::Call, told(error)))?;
        let is_random = RANDOM.contains(&verdict.name.as_str());
        let mut bits = OutputHash::new();
        let hashed = found.iter().try_for_each(|output| bits.add(output));
        hashed.map_err(|reason| (Stage::Compare, reason))?;
        verdict.bits = Some(bits.finish()).filter(|_| !is_random);
        self.compare(&set, &model, &found, is_random)
    }

    fn open_bare(&self, mut module: Module) -> Result<Model, OpenError> {
        let options = passes::Options {
            optimize: false,
            ..passes::Options::default()
        };
        passes::pipeline(&mut module, &options, &Context::new(&NoEvaluator))
            .map_err(OpenError::Text)?;
        let bytes = compile(&module, &CompileOptions::default()).map_err(OpenError::Text)?;
        self.runtime.load_model(&Input::Bytes {
            name: "model.onnx".to_owned(),
            outside: tfrt::import::onnx::ExternalData::Unknown,
            bytes,
        })
    }

    /// Calls the model with the inputs of a folder.
    fn call(&self, set: &Path, model: &Model) -> Result<Vec<Datum>, StageError> {
        let mut inputs = Vec::new();
        for (index, input) in model.inputs().iter().enumerate() {
            inputs.push(self.read(set, &format!("input_{index}.pb"), &input.kind)?);
        }
        let outputs = model.call(&self.runtime.context(), inputs).wait();
        let outputs = outputs.map_err(|error| (Stage::Call, told(error)))?;
        Ok(outputs.into_data())
    }

    /// Compares outputs with those of a folder.
    fn compare(
        &self,
        set: &Path,
        model: &Model,
        found: &[Datum],
        is_random: bool,
    ) -> Result<(), StageError> {
        for (index, (output, found)) in model.outputs().iter().zip(found).enumerate() {
            let wanted = self.read(set, &format!("output_{index}.pb"), &output.kind)?;
            compare::compare(&wanted, found, is_random)
                .map_err(|reason| (Stage::Compare, format!("output {index}: {reason}")))?;
        }
        Ok(())
    }

    fn read(&self, set: &Path, name: &str, kind: &ValueType) -> Result<Datum, StageError> {
        let value = read(&set.join(name), kind, self.runtime.host().allocator());
        value.map_err(|reason| (Stage::Read, format!("{name}: {reason}")))
    }
}

/// Returns the reason why a model can't be opened, without places: of several reasons the first,
/// but all kernels that are missing.
pub(crate) fn first(error: &OpenError) -> String {
    match error {
        OpenError::Text(diagnostics) => first_of(diagnostics),
        OpenError::Load(error) => {
            let messages = error.problems().iter().map(|problem| &*problem.message);
            let messages: BTreeSet<&str> = messages.collect();
            messages.into_iter().collect::<Vec<_>>().join("; ")
        }
        other => other.message(),
    }
}

pub(crate) fn first_of(errors: &Diagnostics) -> String {
    let first = errors.iter().next();
    first.map_or_else(String::new, |error| error.message().to_owned())
}

fn told(error: Error) -> String {
    error.message().to_owned()
}

/// Returns the operations of a module in the dialect `onnx`, each once.
pub(crate) fn operations(text: &str) -> BTreeSet<String> {
    let names = text
        .split("\"onnx.")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    names.map(str::to_owned).collect()
}

/// Returns the element type of a model's input or output.
fn element(value: &ValueInfo) -> String {
    let mut kind = &value.kind;
    loop {
        kind = match kind {
            ValueType::Sequence(inner) | ValueType::Optional(inner) | ValueType::Map(_, inner) => {
                inner
            }
            ValueType::Tensor(tensor) => {
                let element = tensor.element;
                return element.map_or_else(|| "unknown".to_owned(), |dtype| dtype.to_string());
            }
        };
    }
}

fn read(
    path: &Path,
    kind: &ValueType,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Datum, String> {
    let kind = match kind {
        ValueType::Sequence(_) => Kind::Sequence,
        ValueType::Optional(_) => Kind::Optional,
        _ => Kind::Tensor,
    };
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let data = Data::decode(bytes, kind, &path.display().to_string());
    value(data.map_err(|errors| first_of(&errors))?, allocator)
}

fn value(data: Data, allocator: &Arc<dyn HostAllocator>) -> Result<Datum, String> {
    match data {
        Data::Tensor(read) => tensor(read, allocator).map(Datum::Tensor),
        Data::Sequence(items) => {
            let tensor = |item| match value(item, allocator)? {
                Datum::Tensor(tensor) => Ok(tensor),
                _ => Err("a sequence of something else than tensors".to_owned()),
            };
            let tensors: Result<Vec<Tensor>, String> = items.into_iter().map(tensor).collect();
            Ok(Datum::Sequence(Sequence::from(tensors?)))
        }
        Data::Optional(None) => Ok(Datum::Optional(Optional::Nothing)),
        Data::Optional(Some(inner)) => match value(*inner, allocator)? {
            Datum::Tensor(tensor) => Ok(Datum::Optional(Optional::Tensor(tensor))),
            Datum::Sequence(sequence) => Ok(Datum::Optional(Optional::Sequence(sequence))),
            _ => Err("an optional value of neither".to_owned()),
        },
        Data::Map(..) => Err("a map".to_owned()),
    }
}

fn tensor(read: Read, allocator: &Arc<dyn HostAllocator>) -> Result<Tensor, String> {
    let shape = TensorShape::new(&read.dims).map_err(told)?;
    let dtype = dtype(read.element);
    match read.data {
        TensorData::Strings(strings) => {
            let strings = strings.iter().map(|string| string.to_vec()).collect();
            let tensor = StringHostTensor::new(shape, strings);
            tensor.map(Tensor::from).map_err(told)
        }
        TensorData::Bytes(bytes) => {
            let metadata = TensorMetadata::new(dtype, shape);
            let tensor = DenseHostTensor::from_bytes(allocator, metadata, &bytes);
            tensor.map(Tensor::from).map_err(told)
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
    fn operations_are_named_once() {
        let text =
            r#"%0 = "onnx.Add"(..) %1 = "onnx.Add"(..) "graph.yield"() "onnx.ml.Scaler"(..)"#;
        let names: Vec<String> = operations(text).into_iter().collect();
        assert_eq!(names, ["Add", "ml.Scaler"]);
    }

    #[test]
    fn folders_without_a_model_fail_to_open() {
        let verdict = Runner::new(RunMode::Whole).run(Path::new("nowhere"), "nowhere");
        assert!(
            verdict
                .reason()
                .is_some_and(|reason| reason.starts_with("open: "))
        );
    }
}
