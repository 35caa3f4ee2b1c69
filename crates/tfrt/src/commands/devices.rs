//! `tfrt devices`: the devices that models run on, and why others are not there.

use serde::Serialize;
use tfrt::tensor::math::byte_gemm::ByteInstructions;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{HostEvaluator, PlacementReport, Runtime, RuntimeBuilder};

use super::print_line;
use crate::console::counted;
use crate::failure::{ExitStatus, Failure};

#[cfg(feature = "gpu")]
pub mod driver;
#[cfg_attr(feature = "gpu", path = "devices/gpu.rs")]
#[cfg_attr(not(feature = "gpu"), path = "devices/no_gpu.rs")]
mod gpus;

/// The graphs of GPUs that a runtime's models have captured, and launches of these.
#[derive(Clone, Copy, Serialize)]
pub struct GraphCounts {
    captured: u64,
    launched: u64,
}

impl GraphCounts {
    /// Returns those of a runtime so far; `None` if it has no GPU.
    pub fn of(runtime: &Runtime) -> Option<GraphCounts> {
        gpus::graphs(runtime)
    }

    /// Returns a line on them.
    pub fn line(&self) -> String {
        let graphs = counted(self.captured, "graph");
        let times = counted(self.launched, "time");
        format!("GPUs: {graphs} captured, launched {times}")
    }
}

/// Lists the devices.
pub fn devices() -> Result<ExitStatus, Failure> {
    print_line(&format!("CPU:0  the processor: {}", instructions()))?;
    match gpus::found() {
        Ok(lines) => lines.iter().try_for_each(|line| print_line(line))?,
        Err(reason) => print_line(&format!("GPU    none: {reason}"))?,
    }
    Ok(ExitStatus::Fine)
}

/// Returns the instructions that products run by in this process, for each type of factors.
fn instructions() -> String {
    let (floats, bytes) = (InstructionSet::best(), ByteInstructions::best());
    let rounded = match InstructionSet::AmxBf16.is_available() {
        true => "bf16 by amx",
        false => "no bf16",
    };
    format!(
        "f32 by {}, bytes by {}, {rounded}",
        floats.name(),
        bytes.name()
    )
}

/// The error of a program whose nodes can't be placed any more.
pub const UNPLACED: &str = "expected the graph of a model, found a program: where its kernels run was chosen when it was compiled";

/// Returns lines on how the nodes of a model were placed.
pub fn placement_text(report: &PlacementReport) -> String {
    let (n_placed, n_on_host) = (report.n_placed, report.n_on_host());
    let n_all = n_placed + n_on_host + report.n_kept;
    let tensors = |n: usize| if n == 1 { "tensor" } else { "tensors" };
    let (there, back) = (report.n_copies_there, report.n_copies_back);
    let device = &report.device;
    let mut text = format!(
        "{n_placed} of {n_all} nodes run on {device}; each call copies {there} {} there and {back} back\n",
        tensors(there)
    );
    if report.n_kept > 0 {
        let n = report.n_kept;
        text.push_str(&format!(
            "on the processor, as integers that are calculated there: {n}\n"
        ));
    }
    if n_on_host > 0 {
        text.push_str(&format!(
            "on the processor, for want of a kernel on {device}:\n"
        ));
    }
    for nodes in &report.on_host {
        text.push_str(&format!("  {nodes}\n"));
    }
    text
}

/// Returns the document of how the nodes of a model were placed.
pub fn placement_document(report: &PlacementReport) -> serde_json::Value {
    let on_host = report.on_host.iter().map(|nodes| {
        let types = nodes.types.iter();
        let types: Vec<Option<String>> = types.map(|ty| ty.map(|ty| ty.to_string())).collect();
        serde_json::json!({ "operation": nodes.operation, "types": types, "count": nodes.count })
    });
    serde_json::json!({
        "schema": "tfrt.placement/1",
        "device": report.device,
        "n_placed": report.n_placed,
        "n_on_host": report.n_on_host(),
        "n_kept": report.n_kept,
        "n_copies_there": report.n_copies_there,
        "n_copies_back": report.n_copies_back,
        "on_host": on_host.collect::<Vec<_>>(),
    })
}

/// A device that a command line names: `cpu:0`, `gpu:1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceOption {
    /// The processor.
    Processor,
    /// A GPU, by its ordinal.
    Gpu(i32),
}

impl DeviceOption {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<DeviceOption, String> {
        let lower = text.to_ascii_lowercase();
        let gpu = lower
            .strip_prefix("gpu:")
            .and_then(|ordinal| ordinal.parse().ok());
        match (&*lower, gpu) {
            ("cpu:0", _) => Ok(DeviceOption::Processor),
            (_, Some(ordinal)) if ordinal >= 0 => Ok(DeviceOption::Gpu(ordinal)),
            _ => Err("expected 'cpu:0', or 'gpu:' and a number".to_owned()),
        }
    }

    /// Returns the name that the device has in a runtime; `None` of the processor.
    pub fn name(&self) -> Option<String> {
        match self {
            DeviceOption::Processor => None,
            DeviceOption::Gpu(ordinal) => Some(format!("GPU:{ordinal}")),
        }
    }

    /// Gives a runtime the kernels of the device.
    pub fn kernels(&self, builder: RuntimeBuilder) -> RuntimeBuilder {
        match self {
            DeviceOption::Processor => builder,
            DeviceOption::Gpu(_) => gpus::kernels(builder),
        }
    }

    /// Has an evaluator place nodes on the device, which need not be there.
    pub fn placing(&self, evaluator: HostEvaluator) -> Result<HostEvaluator, Failure> {
        let Some(name) = self.name() else {
            return Ok(evaluator);
        };
        gpus::placing(&name, evaluator).map_err(|reason| Failure::Rejected {
            code: None,
            message: format!("can't tell what has kernels on {name}: {reason}"),
            help: None,
        })
    }

    /// Adds the device to a runtime, of which so many bytes are taken at most.
    pub fn add_to(&self, runtime: &Runtime, max_memory: Option<usize>) -> Result<(), Failure> {
        let DeviceOption::Gpu(ordinal) = self else {
            return Ok(());
        };
        gpus::add(runtime, *ordinal, max_memory).map_err(|reason| Failure::Rejected {
            code: None,
            message: format!("there is no device gpu:{ordinal}: {reason}"),
            help: Some("`tfrt devices` says what there is".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_are_parsed() {
        assert_eq!(DeviceOption::parse("cpu:0"), Ok(DeviceOption::Processor));
        assert_eq!(DeviceOption::parse("GPU:2"), Ok(DeviceOption::Gpu(2)));
        assert_eq!(DeviceOption::Gpu(2).name(), Some("GPU:2".to_owned()));
        for wrong in ["gpu", "gpu:", "gpu:-1", "cpu:1", "tpu:0", ""] {
            assert!(DeviceOption::parse(wrong).is_err(), "{wrong}");
        }
    }
}
