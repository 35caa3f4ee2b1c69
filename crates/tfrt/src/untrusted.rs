//! [`Untrusted`]: the limits of programs that nobody vouches for, and the kernels that they must not have.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use tfrt_bef::BefFile;
use tfrt_host::Limits;
use tfrt_import::ReadLimits;

use crate::error::OpenError;
use crate::evaluator::HostEvaluator;
use crate::formats::Formats;
use crate::input::Input;
use crate::open_options::OpenOptions;

/// The limits of a program, or of a model, that nobody vouches for; `docs/limits.md` has the others.
///
/// Beyond that, such a program has no kernels that look at files (dialect `btf`), reach other tasks (`tfrt_dist`) or run
/// code of the program's own on GPUs (`tfrt_cuda`, `tfrt_gpu`) or open devices, and none that are there for tests (`tfrt_test`, `vt`,
/// `tfrt_tutorial`, native functions): they wait, hang, leak, and take memory that nobody counts. Elements of a model in
/// files beside it are refused.
///
/// A kernel that is running when the deadline passes runs to its end: who must be sure of the time ends the
/// process, as `tfrt run --untrusted` does.
///
/// # Examples
///
/// ```
/// use tfrt::{ErrorCode, Runtime, Untrusted};
///
/// let mut untrusted = Untrusted::default();
/// untrusted.limits.max_steps = Some(1_000);
/// let runtime = Runtime::builder().untrusted(untrusted).build();
/// let program = runtime.compile("forever.mlir", "func.func @forever(%x: i32) -> i32 {
///   %y = tfrt.call @forever(%x) : (i32) -> i32
///   tfrt.return %y : i32
/// }")?;
/// let error = program.function("forever").unwrap().call(&runtime.context(), (1,)).wait().unwrap_err();
/// assert_eq!(error.code(), ErrorCode::ResourceExhausted);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untrusted {
    /// The most bytes of a file.
    pub max_file_bytes: u64,
    /// Depth, steps and memory of requests.
    pub limits: Limits,
    /// The longest time of a request, unless its context is given another deadline; and how long constants of a model
    /// may be folded while it is opened.
    pub max_time: Duration,
}

impl Untrusted {
    /// Dialects of which a program that nobody vouches for has no kernels.
    pub const REFUSED: &[&str] = &[
        "btf",
        "cuda",
        "tfrt_cuda",
        "tfrt_cuda_test",
        "tfrt_dist",
        "tfrt_gpu",
        "tfrt_test",
        "tfrt_test_sync",
        "tfrt_tutorial",
        "vt",
    ];

    const MAX_FILE_BYTES: u64 = 64 << 20;
    const MAX_DEPTH: u32 = 10_000;
    const MAX_STEPS: u64 = 10_000_000;
    const MAX_MEMORY_BYTES: usize = 256 << 20;
    const MAX_TIME: Duration = Duration::from_secs(10);

    /// Reads a file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// See [`Input::read_with`].
    pub fn read(&self, path: impl AsRef<Path>, formats: &Formats) -> Result<Input, OpenError> {
        let limits = ReadLimits {
            bytes: self.max_file_bytes,
            ..ReadLimits::default()
        };
        Ok(Input::read_with(path, formats, &limits)?.alone())
    }

    /// Returns the program that an input is, compiled if it is text or a model, accepted by the gate. The formats are
    /// those whose dialects a text may have; the options are of a model; `with` makes the evaluator of constants out of
    /// the one for untrusted programs.
    ///
    /// # Errors
    ///
    /// See [`Input::open_with`]; `Unreadable` for an input that is too long.
    pub(crate) fn open(
        &self,
        input: &Input,
        formats: &Formats,
        options: &OpenOptions,
        with: impl FnOnce(HostEvaluator) -> HostEvaluator,
    ) -> Result<BefFile, OpenError> {
        if input.len_bytes() as u64 > self.max_file_bytes {
            let message = format!(
                "it is larger than the limit of {} bytes",
                self.max_file_bytes
            );
            return Err(OpenError::Unreadable {
                path: input.name().into(),
                reason: io::Error::new(io::ErrorKind::FileTooLarge, message),
            });
        }
        let input = input.clone().alone();
        input.open_with(formats, &with(self.evaluator()), options)
    }

    /// Returns an evaluator for the constants of one model.
    fn evaluator(&self) -> HostEvaluator {
        let max_memory = self.limits.max_memory.unwrap_or(usize::MAX);
        let evaluator = HostEvaluator::new(max_memory, self.max_time);
        match Instant::now().checked_add(self.max_time) {
            Some(end) => evaluator.until(end),
            None => evaluator,
        }
    }
}

impl Default for Untrusted {
    /// Returns limits that are enough for programs and models of some megabytes.
    fn default() -> Untrusted {
        Untrusted {
            max_file_bytes: Untrusted::MAX_FILE_BYTES,
            limits: Limits {
                max_depth: Untrusted::MAX_DEPTH,
                max_steps: Some(Untrusted::MAX_STEPS),
                max_memory: Some(Untrusted::MAX_MEMORY_BYTES),
            },
            max_time: Untrusted::MAX_TIME,
        }
    }
}

/// Returns whether a kernel of this name is refused to programs that nobody vouches for. Native functions, whose names
/// have no dialect, are for tests.
pub(crate) fn is_refused(name: &str) -> bool {
    name.split_once('.')
        .is_none_or(|(dialect, _)| Untrusted::REFUSED.contains(&dialect))
        || REFUSED_KERNELS.contains(&name)
}

/// Kernels of other dialects that open devices.
const REFUSED_KERNELS: &[&str] = &["corert.create_gpu_op_handler"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    /// The dialects of which each kernel takes time and memory that a limit counts, and looks at nothing outside.
    const GRANTED: &[&str] = &[
        "coo",
        "corert",
        "corert_sync",
        "cpu",
        "eigen",
        "nn",
        "tf_sync",
        "tfrt",
        "tfrt_dht",
        "tfrt_dht_sync",
        "tfrt_sht",
        "tfrt_sht_sync",
        "ts",
        "ts_sync",
    ];

    #[test]
    fn every_dialect_was_decided_on() {
        let runtime = Runtime::new();
        for kernel in runtime.host().registry().kernels() {
            let dialect = kernel.name().split('.').next().unwrap();
            let is_granted =
                GRANTED.contains(&dialect) && !REFUSED_KERNELS.contains(&kernel.name());
            assert_ne!(is_granted, is_refused(kernel.name()), "{}", kernel.name());
        }
    }
}
