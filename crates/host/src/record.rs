//! Recording of kernels, and the kernels of a recording.
//!
//! The executor records each kernel that it has run, if the host has a [`Recorder`]
//! ([`HostContextBuilder::recorder`](crate::HostContextBuilder::recorder)); one that it has skipped,
//! since an operand has failed, too. Records hold numbers; [`Program::recorded_kernel`] knows what
//! they stand for.

use std::sync::Arc;

pub use tfrt_async::record::{
    Event, EventKind, FunctionId, Gauge, GaugeRecording, GaugeStep, Recorder, Recording,
    ThreadRecording, Track,
};
use tfrt_bef::LocationOffset;

use crate::SourceLocation;
use crate::function::Function;
use crate::program::Program;
use crate::trace::TraceSpan;

/// A kernel of a program, as a recording names it.
#[derive(Clone, Debug)]
pub struct RecordedKernel {
    /// The function that it stands in.
    pub function: Function,
    /// The kernel's number there, counted from 0 in the order of the file. The executor has another order.
    pub number: u32,
    /// The kernel's name.
    pub name: Arc<str>,
    /// The last attribute of the operation, if that is a text: of a call of an eager operation the name of that.
    pub text: Option<Arc<str>>,
    /// The location of the operation in the source, if the file has it.
    pub location: Option<SourceLocation>,
}

/// A guard of a running kernel: its end is traced and recorded when this is dropped.
pub(crate) struct KernelSpan<'a> {
    _scope: Option<TraceSpan<'a>>,
    recorder: Option<(&'a Arc<Recorder>, FunctionId)>,
    kernel: u32,
    call: u64,
}

impl<'a> KernelSpan<'a> {
    #[inline]
    pub(crate) fn new(
        scope: Option<TraceSpan<'a>>,
        recorder: Option<(&'a Arc<Recorder>, FunctionId)>,
        kernel: u32,
        call: u64,
    ) -> Self {
        KernelSpan {
            _scope: scope,
            recorder,
            kernel,
            call,
        }
    }
}

impl Drop for KernelSpan<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((recorder, function)) = self.recorder {
            recorder.kernel(function, self.kernel, self.call);
        }
    }
}

/// A recorder of work that is done for a kernel after it has returned, or on another thread: an event of the kernel, if
/// anything is recorded. A counted handle.
///
/// Loops and tasks that go through the [`ExecutionContext`](crate::ExecutionContext) do this by
/// themselves.
#[derive(Clone, Debug)]
pub struct KernelWork(Option<(Arc<Recorder>, FunctionId, u32)>);

impl KernelWork {
    pub(crate) fn new(
        recorder: Option<&Arc<Recorder>>,
        of: Option<(FunctionId, u32)>,
    ) -> KernelWork {
        let of = recorder.zip(of);
        KernelWork(of.map(|(recorder, (function, kernel))| (recorder.clone(), function, kernel)))
    }

    /// Runs `work`, and records it as an event that begins where the last event of this thread has ended.
    #[inline]
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> R {
        let done = work();
        if let Some((recorder, function, kernel)) = &self.0 {
            recorder.part(*function, *kernel);
        }
        done
    }
}

impl Program {
    /// Returns the number that recordings give the first function of the file; those behind it follow. `None` if the
    /// program's host has no recorder.
    pub fn first_recorded_function(&self) -> Option<FunctionId> {
        self.loaded().function_id(0)
    }

    /// Returns a kernel that was recorded; `None` if it is none of this program's.
    pub fn recorded_kernel(&self, function: FunctionId, kernel: u32) -> Option<RecordedKernel> {
        let loaded = self.loaded();
        let index = function.index_from(self.first_recorded_function()?)?;
        let found = self.all_functions().nth(usize::try_from(index).ok()?)?;
        let topology = loaded.topology(index);
        usize::try_from(kernel)
            .is_ok_and(|kernel| kernel < topology.n_kernels())
            .then(|| {
                let (location, name) = loaded.place(index, kernel);
                RecordedKernel {
                    function: found,
                    number: topology.number_in_file(kernel),
                    name: name.clone(),
                    text: loaded.last_text(index, kernel),
                    location: loaded.location(LocationOffset(location)),
                }
            })
    }
}
