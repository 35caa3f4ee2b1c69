//! [`PyRuntime`], the class `tfrt.Runtime`: the threads, the limits, the plugins and the variables that models share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tfrt::eager::Eager;
use tfrt::profile::{About, Profile, Recorder, Report};
use tfrt::{Error, Limits, Plugin, PluginOps, Program, Runtime};

use crate::call::expect_threads;
use crate::error::{invalid_argument, raise};

/// The threads and the limits that models share. Models that are given none share one for the process.
#[pyclass(frozen, name = "Runtime", module = "tfrt")]
#[derive(Clone)]
pub struct PyRuntime {
    pub runtime: Runtime,
    extras: Arc<Extras>,
}

/// The parts of a runtime that Python alone asks for.
#[derive(Default)]
struct Extras {
    /// The names of the operations of plugins, as `tf.MatMul`.
    plugin_ops: Vec<String>,
    recorded: Option<Recorded>,
}

/// A recorder, and the programs that its events speak of.
struct Recorded {
    recorder: Arc<Recorder>,
    programs: Mutex<Vec<Program>>,
}

impl PyRuntime {
    /// Returns the runtime that the process shares.
    pub fn of_process() -> PyRuntime {
        PyRuntime {
            runtime: Runtime::shared().clone(),
            extras: Arc::default(),
        }
    }

    /// Returns a new context in which operations are called one by one.
    pub fn eager(&self) -> Eager {
        Eager::new(&self.runtime)
    }

    /// Returns the names of the operations of plugins, as `tf.MatMul`.
    pub fn plugin_ops(&self) -> &[String] {
        &self.extras.plugin_ops
    }

    /// Notes a program that profiles are to tell of.
    pub fn note(&self, program: &Program) {
        if let Some(recorded) = &self.extras.recorded {
            let mut programs = recorded
                .programs
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            programs.push(program.clone());
        }
    }
}

#[pymethods]
impl PyRuntime {
    /// Makes a runtime of its own: with so many threads, one for each processor if none are given, and so many bytes for all
    /// its calls together. `plugins` are paths of libraries that are built on TensorFlow's C headers; their code is run, and
    /// they stay loaded. With `record=True` it records what its kernels do, for `profile`.
    #[new]
    #[pyo3(signature = (*, threads=None, memory=None, max_steps=None, plugins=None, record=false))]
    fn new(
        py: Python<'_>,
        threads: Option<usize>,
        memory: Option<usize>,
        max_steps: Option<u64>,
        plugins: Option<Vec<PathBuf>>,
        record: bool,
    ) -> PyResult<PyRuntime> {
        expect_threads(py)?;
        if threads == Some(0) || threads.is_some_and(|threads| threads > 4096) {
            return Err(invalid_argument(
                py,
                "threads: expected a number from 1 to 4096",
            ));
        }
        let limits = Limits {
            max_memory: memory,
            max_steps,
            ..Limits::default()
        };
        let build = move || {
            let mut builder = Runtime::builder().limits(limits);
            if let Some(threads) = threads {
                builder = builder.threads(threads);
            }
            let mut extras = Extras::default();
            if let Some(paths) = plugins.filter(|paths| !paths.is_empty()) {
                let loaded: Vec<Plugin> = paths.iter().map(load).collect::<Result<_, _>>()?;
                let ops = PluginOps::new(&loaded).first();
                extras.plugin_ops = ops.names();
                builder = builder.plugins(ops);
            }
            if record {
                let recorder = Arc::new(Recorder::new());
                builder = builder.recorder(recorder.clone());
                extras.recorded = Some(Recorded {
                    recorder,
                    programs: Mutex::default(),
                });
            }
            Ok(PyRuntime {
                runtime: builder.build(),
                extras: Arc::new(extras),
            })
        };
        let built: Result<PyRuntime, Error> = py.detach(build);
        built.map_err(|error| raise(py, error))
    }

    /// Returns the runtime that the process shares.
    #[staticmethod]
    fn shared() -> PyRuntime {
        PyRuntime::of_process()
    }

    /// The number of threads.
    #[getter]
    fn threads(&self) -> usize {
        self.runtime.host().queue().parallelism()
    }

    /// Returns what kernels did since the runtime was made, as a page of HTML and as a document of JSON.
    fn _profile(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let Some(recorded) = &self.extras.recorded else {
            let error = Error::failed_precondition("the runtime does not record");
            let error = error.with_note("make it with `tfrt.Runtime(record=True)`");
            return Err(raise(py, error));
        };
        let programs = recorded
            .programs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        py.detach(|| {
            let recording = recorded.recorder.recording();
            let profile = Profile::new(&recording, &programs);
            let queue = self.runtime.host().queue();
            let about = About {
                name: "models of a runtime".to_owned(),
                queue: queue.name(),
                n_threads: queue.parallelism(),
                ..About::default()
            };
            let report = Report::new(&profile, &recording, &programs, &about, &|_| None);
            let mut page = Vec::new();
            let written = report.write_page(&mut page);
            written.map_err(|error| Error::internal(error.to_string()))?;
            let page = String::from_utf8_lossy(&page).into_owned();
            Ok((page, report.document().to_owned()))
        })
        .map_err(|error: Error| raise(py, error))
    }

    /// Writes the variables that have names to bytes of a file of safetensors, or of an archive of NumPy.
    fn _save(&self, py: Python<'_>, as_npz: bool) -> PyResult<Vec<u8>> {
        let eager = self.eager();
        let saved = py.detach(|| match as_npz {
            true => eager.resources().save_npz(),
            false => eager.resources().save_safetensors(),
        });
        saved.map_err(|error| raise(py, error))
    }

    /// Assigns the tensors of such bytes to the variables of their names, and returns their number.
    fn _load(&self, py: Python<'_>, content: Vec<u8>, as_npz: bool) -> PyResult<usize> {
        let eager = self.eager();
        let allocator = self.runtime.host().allocator();
        let loaded = py.detach(|| match as_npz {
            true => eager.resources().load_npz(&content, allocator),
            false => eager.resources().load_safetensors(&content, allocator),
        });
        loaded.map_err(|error| raise(py, error))
    }

    fn __repr__(&self) -> String {
        format!("Runtime(threads={})", self.threads())
    }
}

/// Loads a plugin.
fn load(path: &PathBuf) -> Result<Plugin, Error> {
    // SAFETY: who makes the runtime has named the library, and trusts it.
    let loaded = unsafe { Plugin::load(path) };
    loaded.map_err(|refused| {
        let error = Error::invalid_argument(refused.message);
        let notes = refused.notes.into_iter();
        notes.fold(error, |error, note| error.with_note(note))
    })
}
