//! [`HostEvaluator`]: kernels for the compiler, which knows none.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_bef::BefFile;
use tfrt_compiler::CompileOptions;
use tfrt_compiler::onnx::{EvaluatedValue, Evaluator, Placement, PlacementReport, PrepareRule};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, DeviceKind};
use tfrt_import::onnx::ExternalData;
use tfrt_ir::{Attribute, Module};
use tfrt_kernels::graph::stored::{KERNEL, store};
use tfrt_kernels::onnx::{kernel_of, prepare_of};
use tfrt_ops::KernelQuery;
use tfrt_tensor::Tensor;
use tfrt_tensor::math::packed_gemm::InstructionSet;
use tfrt_tensor::op::{OpKernel, Prepare, select};

use crate::error::OpenError;
use crate::input::RetainedWeights;
use crate::open_options::OpenOptions;
use crate::program::Program;
use crate::runtime::Runtime;
use crate::stored;

/// The function that is called.
const MAIN: &str = "main";

/// An evaluator that runs kernels on constants while a model is compiled, on the thread that compiles.
///
/// Memory and time are bounded: what takes more is not evaluated, and left to run time.
///
/// # Examples
///
/// ```
/// use tfrt::HostEvaluator;
/// use tfrt::compiler::legalize::Context;
/// use tfrt::compiler::pipeline::Pipeline;
/// use tfrt::ir::{Source, parse};
///
/// let text = r#"module attributes {onnx.opset = 13 : i64} {
///   func.func @main() -> tensor<2xi64> {
///     %0 = "onnx.Constant"() {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
///     %1 = "onnx.Add"(%0, %0) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
///     tfrt.return %1 : tensor<2xi64>
///   }
/// }"#;
/// let mut module = parse(&Source::new("main.mlir", text))?;
/// let passes = Pipeline::parse("onnx-to-graph,graph-fold").unwrap();
/// passes.run_with(&mut module, &Context::new(&HostEvaluator::default()), &mut |_, _| {})?;
/// assert!(module.to_string().contains("dense<[2, 4]>"));
/// # Ok::<(), tfrt::ir::Diagnostics>(())
/// ```
pub struct HostEvaluator {
    /// The most bytes that may be held at once.
    memory_bytes: usize,
    /// The longest that a program may run.
    time: Duration,
    /// The time after which nothing is evaluated any more.
    end: Option<Instant>,
    /// The instruction set that packed weights are laid out for.
    set: InstructionSet,
    /// The device that nodes are placed on, and kernels of devices.
    device: Option<(Placement, DeviceKind, Arc<[OpKernel]>)>,
    /// Whether the device has a kernel for sections of nodes.
    replays: bool,
    /// Which nodes were placed, of the model that was compiled last.
    report: RefCell<Option<PlacementReport>>,
    /// The runtime, made when there is something to evaluate.
    runtime: OnceCell<Runtime>,
}

impl Default for HostEvaluator {
    /// Returns an evaluator that takes at most a GiB and half a minute at a time.
    fn default() -> HostEvaluator {
        HostEvaluator::new(1 << 30, Duration::from_secs(30))
    }
}

impl HostEvaluator {
    /// Makes an evaluator that takes at most so much memory at once, and so much time for a program, but for the kernel
    /// that is running then.
    pub fn new(memory_bytes: usize, time: Duration) -> HostEvaluator {
        HostEvaluator {
            memory_bytes,
            time,
            end: None,
            set: InstructionSet::best(),
            device: None,
            replays: false,
            report: RefCell::default(),
            runtime: OnceCell::new(),
        }
    }

    /// Leaves everything to run time that is not evaluated by `end`.
    pub fn until(mut self, end: Instant) -> HostEvaluator {
        self.end = Some(end);
        self
    }

    /// Has packed weights laid out for an instruction set, which this processor need not have. Default: its
    /// best one.
    pub fn for_instruction_set(mut self, set: InstructionSet) -> HostEvaluator {
        self.set = set;
        self
    }

    /// Places nodes on a device, by its name and kind, where there are kernels for them. The device need not be there while
    /// a model is compiled.
    pub fn on_device(
        mut self,
        name: &str,
        kind: DeviceKind,
        kernels: Arc<[OpKernel]>,
    ) -> HostEvaluator {
        let placement = Placement {
            name: name.to_owned(),
            kind: kind.name().to_owned(),
        };
        self.device = Some((placement, kind, kernels));
        self
    }

    /// Has nodes that run on the device without the host in between called as a section, if its kernels are registered.
    pub(crate) fn with_sections_of(mut self, registry: &KernelRegistry) -> HostEvaluator {
        let name = self
            .device
            .as_ref()
            .map(|(_, kind, _)| format!("{kind}.graph.section"));
        self.replays = name.is_some_and(|name| registry.get(&name).is_some());
        self
    }

    /// Takes the report on the model that was compiled last: which nodes were placed on the device.
    pub(crate) fn take_report(&self) -> Option<PlacementReport> {
        self.report.take()
    }

    /// Checks that the device is there that options ask for.
    pub(crate) fn check_device(&self, options: &OpenOptions) -> Result<(), OpenError> {
        match options.device_name() {
            Some(name) if self.device.is_none() => Err(OpenError::Device(format!(
                "there is no device '{}' without a runtime: open the model by the runtime that has it",
                name.escape_debug()
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the constant that stands for a value in a file.
    fn evaluated(&self, value: &AnyAsyncValue) -> Option<EvaluatedValue> {
        if let Some(kept) = store(value, self.runtime().host(), self.set) {
            let attributes = stored::attributes(&kept.ok()?)?;
            let kernel = KERNEL.into();
            return Some(EvaluatedValue::StoredWeights { kernel, attributes });
        }
        let tensor = value.get::<Tensor>()?;
        let dense = stored::constant(tensor.as_dense().ok()?)?;
        Some(EvaluatedValue::Constant(Attribute::Dense(Arc::new(dense))))
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.get_or_init(|| {
            Runtime::builder()
                .queue(Arc::new(SingleThreadedWorkQueue::new()))
                .build()
        })
    }

    /// Calls a program; `None` if it is none, or if there is no time.
    fn call(&self, mut module: Module) -> Option<Vec<AnyAsyncValue>> {
        let left = self
            .end
            .map(|end| end.checked_duration_since(Instant::now()));
        let time = match left {
            Some(left) => left?.min(self.time),
            None => self.time,
        };
        let mut held = RetainedWeights::default();
        held.take(&mut module, &[]);
        let bytes = tfrt_compiler::compile(&module, &CompileOptions { strip: true }).ok()?;
        let runtime = self.runtime();
        let program = Program::from_file(BefFile::open(bytes).ok()?, runtime).ok()?;
        let context = runtime
            .context_builder()
            .deadline(time)
            .max_memory(self.memory_bytes)
            .data(held.into_files(ExternalData::Refused, runtime.host()))
            .build();
        let call = program.function(MAIN)?.call(&context, ());
        call.wait_each().ok()
    }
}

impl Evaluator for HostEvaluator {
    fn evaluate(&self, module: Module) -> Vec<Option<EvaluatedValue>> {
        let results = self.call(module).unwrap_or_default();
        results.iter().map(|value| self.evaluated(value)).collect()
    }

    fn has_kernel(&self, row: &str) -> bool {
        tfrt_ops::find(row).and_then(kernel_of).is_some()
    }

    fn device(&self) -> Option<Placement> {
        self.device
            .as_ref()
            .map(|(placement, ..)| placement.clone())
    }

    fn runs_on_device(&self, node: &KernelQuery<'_>) -> bool {
        let device = self.device.as_ref();
        device.is_some_and(|(_, kind, kernels)| select(kernels, *kind, node).is_some())
    }

    fn replays_sections(&self) -> bool {
        self.replays
    }

    fn placed(&self, report: PlacementReport) {
        self.report.replace(Some(report));
    }

    fn read_on_host(&self, node: &KernelQuery<'_>) -> &'static [usize] {
        let device = self.device.as_ref();
        let kernel = device.and_then(|(_, kind, kernels)| select(kernels, *kind, node));
        kernel.map_or(&[], |kernel| kernel.on_host)
    }

    fn prepares(&self, row: &str) -> Option<PrepareRule> {
        prepare_of(row).map(prepares)
    }

    fn prepares_on_device(&self, node: &KernelQuery<'_>) -> Option<PrepareRule> {
        let (_, kind, kernels) = self.device.as_ref()?;
        let kernel = select(kernels, *kind, node)?;
        kernel.prepare.map(prepares)
    }
}

fn prepares(prepare: Prepare) -> PrepareRule {
    PrepareRule {
        inputs: prepare.inputs,
        types: prepare.types,
        takes_attributes: prepare.takes_attributes,
    }
}

impl std::fmt::Debug for HostEvaluator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostEvaluator")
            .field("memory_bytes", &self.memory_bytes)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}
