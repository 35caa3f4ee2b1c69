//! [`TaskTrace`]: `--trace` of a task that serves.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tfrt::profile::{Profile, Recorder, TracedProcess, write_perfetto};
use tfrt_dist::context::ContextRef;
use tfrt_dist::functions::{Compiled, CompilerPass, CompilerPasses, DEFAULT_PASS};
use tfrt_dist::probe;
use tfrt_dist::security::Trust;
use tfrt_host::{Error, HostContext, Program};

use crate::commands::cluster;
use crate::commands::member::{file_of, number_of};
use crate::commands::output::{Delivery, WrittenFile};
use crate::console::Console;
use crate::failure::Failure;

/// The number of events that are kept of each thread: 2 MiB of them.
const CAPACITY: usize = 1 << 16;

/// The recording of a task, from its start to the lead's bye.
pub struct TaskTrace {
    path: PathBuf,
    recorder: Arc<Recorder>,
    programs: Arc<Mutex<Vec<Program>>>,
    begun: RefCell<Option<Begun>>,
}

/// The identity of the task, which it knows when it has joined.
struct Begun {
    path: PathBuf,
    name: String,
    number: Option<u32>,
    /// The time at which the recorder was made, by the lead's clock.
    begin_ns: u64,
}

impl TaskTrace {
    /// Returns a trace that goes to a file.
    pub fn new(path: &Path) -> TaskTrace {
        TaskTrace {
            path: path.to_owned(),
            recorder: Arc::new(Recorder::with_capacity(CAPACITY)),
            programs: Arc::default(),
            begun: RefCell::default(),
        }
    }

    /// Returns the recorder, which is the queue's and the runtime's.
    pub fn recorder(&self) -> Arc<Recorder> {
        self.recorder.clone()
    }

    /// Remembers the programs that others have a host load, whose kernels have names.
    pub fn attach(&self, host: &HostContext) {
        let passes = CompilerPasses::of(host);
        let Some(inner) = passes.get(DEFAULT_PASS) else {
            return;
        };
        let programs = self.programs.clone();
        passes.register(DEFAULT_PASS, Arc::new(Remembering { inner, programs }));
    }

    /// Learns which task this is, and compares its clock with the lead's.
    pub fn begin(&self, context: &ContextRef) {
        let config = context.config();
        let own_ns = probe::now_ns().saturating_sub(self.recorder.now_ns());
        // Where the lead does not answer, which ends this task soon, its clock is taken for the same.
        let probed = cluster::probe(context, &config.task, config.cluster.lead(), 0);
        let offset_ns = probed.map_or(0, |probed| probed.clock_offset_ns);
        *self.begun.borrow_mut() = Some(Begun {
            path: file_of(&self.path, &config.task),
            name: config.task.to_string(),
            number: number_of(config),
            begin_ns: own_ns.saturating_add_signed(offset_ns),
        });
    }

    /// Writes the file, of a task that has joined.
    ///
    /// # Errors
    ///
    /// The file's name if it can't be written.
    pub fn write(self, console: &Console) -> Result<(), Failure> {
        let Some(begun) = self.begun.into_inner() else {
            return Ok(());
        };
        let programs = std::mem::take(&mut *lock(&self.programs)).into_iter();
        let programs: Vec<_> = programs.map(tfrt::Program::of_host).collect();
        let profile = Profile::new(&self.recorder.recording(), &programs);
        let process = TracedProcess {
            name: &begun.name,
            number: begun.number,
            begin_ns: begun.begin_ns,
        };
        let mut delivery = Delivery::default();
        let len_bytes = delivery.add(&begun.path, |out| {
            write_perfetto(&profile, &[], &process, out)
        })?;
        let open_with = "https://ui.perfetto.dev";
        delivery.tell_of(WrittenFile::new(&begun.path, len_bytes, open_with));
        for written in delivery.finish()? {
            written.tell(console);
        }
        Ok(())
    }
}

/// A compiler pass that keeps what another has loaded.
struct Remembering {
    inner: Arc<dyn CompilerPass>,
    programs: Arc<Mutex<Vec<Program>>>,
}

impl CompilerPass for Remembering {
    fn load(
        &self,
        name: &str,
        program: &str,
        trust: Trust,
        host: &HostContext,
    ) -> Result<Program, Error> {
        let loaded = self.inner.load(name, program, trust, host)?;
        lock(&self.programs).push(loaded.clone());
        Ok(loaded)
    }

    fn compile(&self, name: &str, program: &str) -> Result<Compiled, Error> {
        self.inner.compile(name, program)
    }
}

fn lock(programs: &Mutex<Vec<Program>>) -> std::sync::MutexGuard<'_, Vec<Program>> {
    programs.lock().unwrap_or_else(PoisonError::into_inner)
}
