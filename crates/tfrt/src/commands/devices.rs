//! `tfrt devices`: the devices that models run on, and why others are not there.

use tfrt::{Runtime, RuntimeBuilder};

use super::print_line;
use crate::failure::{ExitStatus, Failure};

#[cfg_attr(feature = "gpu", path = "devices/gpu.rs")]
#[cfg_attr(not(feature = "gpu"), path = "devices/no_gpu.rs")]
mod gpus;

/// Lists the devices.
pub fn devices() -> Result<ExitStatus, Failure> {
    print_line("CPU:0  the processor")?;
    match gpus::found() {
        Ok(lines) => lines.iter().try_for_each(|line| print_line(line))?,
        Err(reason) => print_line(&format!("GPU    none: {reason}"))?,
    }
    Ok(ExitStatus::Fine)
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

    /// Adds the device to a runtime.
    pub fn add_to(&self, runtime: &Runtime) -> Result<(), Failure> {
        let DeviceOption::Gpu(ordinal) = self else {
            return Ok(());
        };
        gpus::add(runtime, *ordinal).map_err(|reason| Failure::Rejected {
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
