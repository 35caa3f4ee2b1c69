//! [`PyModel`], the class `tfrt.Model`; [`PyValueInfo`], an input or an output of one.

use std::ffi::CString;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeWarning, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyMapping, PyString, PyTuple};
use tfrt::compiler::codes::NO_PRECISION;
use tfrt::input::Input;
use tfrt::model::{Datum, Dim, ModelInputs, Slots, ValueInfo, ValueType};
use tfrt::{AnyAsyncValue, Error, Formats, Model, OpenError, OpenOptions, Warnings};

use crate::call::{Bounds, OutputInfos, Started, Wanted, expect_threads};
use crate::cancel::PyCancellationToken;
use crate::error::{about, invalid_argument, raise};
use crate::pending::{Mailbox, PendingCall};
use crate::runtime::PyRuntime;
use crate::session::PySession;
use crate::{array, convert, dtype};

/// A call that takes less runs on the thread that makes it, where nothing hears of signals.
const SHORT: Duration = Duration::from_micros(1_000);

/// A model that can be called, from any number of threads at once.
///
/// `Model(path)` opens a file or a directory, `Model(content)` a model of which the bytes are there.
#[pyclass(frozen, name = "Model", module = "tfrt")]
pub struct PyModel {
    model: Model,
    runtime: PyRuntime,
    outputs: OutputInfos,
    short: Short,
}

/// The largest inputs with which a call was short: in bytes, and one more.
///
/// A long call is handed to the queue, so that this thread can hear of signals; a short one costs less here.
#[derive(Default)]
struct Short(AtomicUsize);

impl Short {
    // Ordering: a statistic, which only decides where a call runs.
    fn expects(&self, size: usize) -> bool {
        size < self.0.load(Ordering::Relaxed)
    }

    fn saw(&self, size: usize, taken: Duration) {
        if taken < SHORT {
            self.0.fetch_max(size + 1, Ordering::Relaxed);
        } else if taken > 2 * SHORT {
            self.0.fetch_min(size, Ordering::Relaxed);
        }
    }
}

/// The inputs of a call, by name.
pub struct Feed {
    named: Vec<(String, Datum)>,
    /// The bytes of all tensors.
    size: usize,
    /// The numbers of the loans of arrays that were lent for them, and perhaps of others.
    loans: Range<u64>,
}

impl ModelInputs for Feed {
    fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
        let mut named = self.named.into_iter();
        named.try_for_each(|(name, value)| slots.set(&name, value))
    }
}

impl Feed {
    /// Returns the inputs that `add` adds.
    ///
    /// # Errors
    ///
    /// Those of `add`; then what was lent is given back.
    pub fn filled(py: Python<'_>, add: impl FnOnce(&mut Feed) -> PyResult<()>) -> PyResult<Feed> {
        let first = array::next_loan();
        let mut feed = Feed {
            named: Vec::new(),
            size: 0,
            loans: first..first,
        };
        let added = add(&mut feed);
        feed.loans.end = array::next_loan();
        match added {
            Ok(()) => Ok(feed),
            Err(error) => {
                drop(feed);
                array::settle(py);
                Err(error)
            }
        }
    }

    /// Returns the numbers of the loans of the arrays.
    pub fn loans(&self) -> Range<u64> {
        self.loans.clone()
    }

    /// Adds the inputs of a dictionary, or of another mapping.
    pub fn add_all(&mut self, feed: &Bound<'_, PyAny>, inputs: &[ValueInfo]) -> PyResult<()> {
        if let Ok(dict) = feed.cast::<PyDict>() {
            return dict
                .iter()
                .try_for_each(|(name, value)| self.add(&name, &value, inputs));
        }
        let Ok(mapping) = feed.cast::<PyMapping>() else {
            let found = feed.get_type().name()?;
            let message =
                format!("expected a dictionary of inputs by name, found an object of type {found}");
            return Err(invalid_argument(feed.py(), message));
        };
        for item in mapping.items()?.iter() {
            let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            self.add(&name, &value, inputs)?;
        }
        Ok(())
    }

    /// Adds an input.
    fn add(
        &mut self,
        name: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        inputs: &[ValueInfo],
    ) -> PyResult<()> {
        let py = value.py();
        let Ok(text) = name.cast::<PyString>() else {
            let found = name.get_type().name()?;
            let message = format!("expected names of inputs, found an object of type {found}");
            return Err(invalid_argument(py, message));
        };
        let text = text.to_str()?;
        let datum = match inputs.iter().find(|input| input.name == text) {
            Some(input) => convert::to_datum(value, &input.kind)
                .map_err(|error| about(py, error, &format!("input '{text}': ")))?,
            // The model tells which names it has.
            None => Datum::from(tfrt::Tensor::scalar(0_u8)),
        };
        if let Ok(tensor) = datum.as_tensor() {
            let bytes = tensor.metadata().len_bytes().unwrap_or(0);
            self.size = self.size.saturating_add(bytes);
        }
        self.named.push((text.to_owned(), datum));
        Ok(())
    }

    /// Adds inputs in the order of the model, and those by keyword.
    pub fn add_call(
        &mut self,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        inputs: &[ValueInfo],
    ) -> PyResult<()> {
        let py = args.py();
        if args.len() == 1 && args.get_item(0)?.is_instance_of::<PyDict>() {
            self.add_all(&args.get_item(0)?, inputs)?;
        } else {
            if args.len() > inputs.len() {
                let (given, taken) = (args.len(), inputs.len());
                let message =
                    format!("{given} inputs are given in order, but the model takes {taken}");
                return Err(invalid_argument(py, message));
            }
            for (value, input) in args.iter().zip(inputs) {
                self.add(PyString::new(py, &input.name).as_any(), &value, inputs)?;
            }
        }
        match kwargs {
            Some(kwargs) => self.add_all(kwargs.as_any(), inputs),
            None => Ok(()),
        }
    }
}

impl PyModel {
    /// Checks the inputs of a call.
    fn arguments(&self, py: Python<'_>, feed: Feed) -> PyResult<Vec<AnyAsyncValue>> {
        self.model.arguments(feed).map_err(|error| {
            array::settle(py);
            raise(py, error)
        })
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        feed: Feed,
        wanted: &Wanted,
        bounds: &Bounds<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let context = bounds.context(py, &self.runtime.runtime)?;
        let (size, loans) = (feed.size, feed.loans());
        let arguments = self.arguments(py, feed)?;
        let begun = Instant::now();
        let main = self.model.function();
        let call = match self.short.expects(size) {
            true => py.detach(|| main.call(&context.context, arguments)),
            false => main.spawn(&context.context, arguments),
        };
        let values = Started { call, context }.wait(py)?;
        self.short.saw(size, begun.elapsed());
        let dict = wanted.dict(py, &self.outputs, values);
        array::settle_call(py, &loans);
        dict
    }
}

#[pymethods]
impl PyModel {
    /// Opens a model: the file or the directory at a path, or bytes. `dims` fixes sizes of symbolic dimensions, `name` is
    /// what messages call a model of bytes.
    #[new]
    #[pyo3(signature = (source, *, runtime=None, dims=None, optimize=true, precision="f32", device=None, name=None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keywords of Python are parameters"
    )]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        runtime: Option<&Bound<'_, PyRuntime>>,
        dims: Option<&Bound<'_, PyDict>>,
        optimize: bool,
        precision: &str,
        device: Option<String>,
        name: Option<String>,
    ) -> PyResult<PyModel> {
        expect_threads(py)?;
        let shared = match runtime {
            Some(runtime) => runtime.get().clone(),
            None => PyRuntime::of_process(),
        };
        let runtime = &shared.runtime;
        let precision = precision
            .parse()
            .map_err(|message: String| PyValueError::new_err(format!("precision: {message}")))?;
        let warnings = Warnings::default();
        let mut options = fixed(py, dims)?
            .optimize(optimize)
            .precision(precision)
            .warnings(warnings.clone());
        if let Some(device) = device {
            options = options.device(device);
        }
        let model = match Source::of(source)? {
            Source::Path(path) => py.detach(|| runtime.open_model_with(path, &options)),
            bytes @ Source::Bytes(_) => py.detach(|| {
                let input = bytes.input(name, runtime.formats())?;
                runtime.load_model_with(&input, &options)
            }),
        };
        let model = model.map_err(|error| raise(py, error))?;
        for told in warnings
            .take()
            .iter()
            .filter(|told| told.code() == Some(NO_PRECISION))
        {
            let message = CString::new(told.message())?;
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)?;
        }
        let outputs = model.outputs().into();
        shared.note(model.program());
        Ok(PyModel {
            model,
            runtime: shared,
            outputs,
            short: Short::default(),
        })
    }

    /// The inputs, in order.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        infos(py, self.model.inputs())
    }

    /// The outputs, in order.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        infos(py, self.model.outputs())
    }

    /// The properties that the file has, such as its producer.
    #[getter]
    fn properties<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.model.properties() {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// The runtime that the model runs on.
    #[getter]
    fn runtime(&self) -> PyRuntime {
        self.runtime.clone()
    }

    /// Calls the model with inputs by name, and waits; returns its outputs by name, or those that are wanted.
    #[pyo3(signature = (feed, *, outputs=None, deadline=None, memory=None, cancel=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        feed: &Bound<'py, PyAny>,
        outputs: Option<&Bound<'py, PyAny>>,
        deadline: Option<Bound<'py, PyAny>>,
        memory: Option<usize>,
        cancel: Option<Bound<'py, PyCancellationToken>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let wanted = Wanted::find(outputs, &self.outputs)?;
        let given = Feed::filled(py, |given| given.add_all(feed, self.model.inputs()))?;
        let bounds = Bounds {
            deadline,
            memory,
            cancel,
        };
        self.call(py, given, &wanted, &bounds)
    }

    /// Calls the model with inputs in order, by keyword, or as a dictionary, and waits; returns its outputs by name.
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let given = Feed::filled(py, |given| {
            given.add_call(args, kwargs, self.model.inputs())
        })?;
        self.call(py, given, &Wanted::All, &Bounds::default())
    }

    /// Begins a call, whose end the mailbox hears of; `tfrt._async` awaits it.
    #[expect(clippy::too_many_arguments, reason = "most of them go by keyword")]
    #[pyo3(signature = (feed, mailbox, number, *, outputs=None, deadline=None, memory=None, cancel=None))]
    fn _start<'py>(
        &self,
        py: Python<'py>,
        feed: &Bound<'py, PyAny>,
        mailbox: &Bound<'py, Mailbox>,
        number: u64,
        outputs: Option<&Bound<'py, PyAny>>,
        deadline: Option<Bound<'py, PyAny>>,
        memory: Option<usize>,
        cancel: Option<Bound<'py, PyCancellationToken>>,
    ) -> PyResult<PendingCall> {
        let wanted = Wanted::find(outputs, &self.outputs)?;
        let given = Feed::filled(py, |given| given.add_all(feed, self.model.inputs()))?;
        let bounds = Bounds {
            deadline,
            memory,
            cancel,
        };
        let context = bounds.context(py, &self.runtime.runtime)?;
        let is_short = self.short.expects(given.size);
        let size = given.size;
        let arguments = self.arguments(py, given)?;
        let begun = Instant::now();
        let main = self.model.function();
        let call = match is_short {
            true => py.detach(|| main.call(&context.context, arguments)),
            false => main.spawn(&context.context, arguments),
        };
        if is_short {
            self.short.saw(size, begun.elapsed());
        }
        let started = Started { call, context };
        Ok(PendingCall::new(
            started,
            wanted,
            self.outputs.clone(),
            mailbox.get(),
            number,
        ))
    }

    /// Returns a session, which keeps outputs of one step as inputs of the next: `state` has an output for each input, as
    /// `{"state": "stateN"}`, or `{"past_key_values.{i}.key": "present.{i}.key"}`.
    #[pyo3(signature = (state, *, initial=None, dims=None, max_length=None))]
    fn session(
        &self,
        py: Python<'_>,
        state: &Bound<'_, PyDict>,
        initial: Option<&Bound<'_, PyDict>>,
        dims: Option<&Bound<'_, PyDict>>,
        max_length: Option<usize>,
    ) -> PyResult<PySession> {
        PySession::new(
            py,
            &self.model,
            &self.runtime.runtime,
            state,
            initial,
            dims,
            max_length,
        )
    }

    fn __repr__(&self) -> String {
        let list = |values: &[ValueInfo]| {
            let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
            texts.join("; ")
        };
        let (inputs, outputs) = (list(self.model.inputs()), list(self.model.outputs()));
        format!("Model({inputs} -> {outputs})")
    }
}

/// Returns options that fix sizes of symbolic dimensions.
fn fixed(py: Python<'_>, dims: Option<&Bound<'_, PyDict>>) -> PyResult<OpenOptions> {
    let mut options = OpenOptions::new();
    for (dim, size) in dims.iter().flat_map(|dims| dims.iter()) {
        let pair = (dim.extract::<String>(), size.extract::<usize>());
        let (Ok(dim), Ok(size)) = pair else {
            let message = format!("dims: expected a name and its size, found {dim:?}: {size:?}");
            return Err(invalid_argument(py, message));
        };
        options = options.dim(dim, size);
    }
    Ok(options)
}

/// Returns the graph of a model as a page of HTML, and as the document of JSON that it shows.
#[pyfunction]
#[pyo3(signature = (source, *, dims=None, name=None))]
pub fn graph_page(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    dims: Option<&Bound<'_, PyDict>>,
    name: Option<String>,
) -> PyResult<(String, String)> {
    let options = fixed(py, dims)?;
    let source = Source::of(source)?;
    let page = py.detach(|| {
        let input = source.input(name, &Formats::builtin())?;
        tfrt::command::graph_page(&input, &options)
    });
    page.map_err(|error| raise(py, error))
}

/// A path or bytes, which a model is opened from.
enum Source {
    Path(PathBuf),
    Bytes(Vec<u8>),
}

impl Source {
    /// Reads the model; `name` is what messages call one of bytes.
    fn input(self, name: Option<String>, formats: &Formats) -> Result<Input, OpenError> {
        match self {
            Source::Path(path) => Input::read(path),
            Source::Bytes(bytes) => {
                let name = name.unwrap_or_else(|| "<bytes>".to_owned());
                Input::from_bytes_with(&name, bytes, formats)
            }
        }
    }

    fn of(source: &Bound<'_, PyAny>) -> PyResult<Source> {
        let py = source.py();
        let has_path =
            source.is_instance_of::<PyString>() || source.hasattr(intern!(py, "__fspath__"))?;
        if has_path {
            return source.extract::<PathBuf>().map(Source::Path);
        }
        match PyBuffer::<u8>::get(source) {
            Ok(buffer) => buffer.to_vec(py).map(Source::Bytes),
            Err(_) => {
                let found = source.get_type().name()?;
                let message = format!("expected a path or bytes, found an object of type {found}");
                Err(invalid_argument(py, message))
            }
        }
    }
}

/// An input or an output of a model: its name, its type and its shape.
#[pyclass(frozen, name = "ValueInfo", module = "tfrt")]
pub struct PyValueInfo(ValueInfo);

pub fn infos<'py>(py: Python<'py>, values: &[ValueInfo]) -> PyResult<Bound<'py, PyList>> {
    let infos = values
        .iter()
        .map(|value| Py::new(py, PyValueInfo(value.clone())));
    PyList::new(py, infos.collect::<PyResult<Vec<_>>>()?)
}

#[pymethods]
impl PyValueInfo {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The type of the elements, if it is known: NumPy's, or our name of one that NumPy lacks.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let element = self.0.kind.as_tensor().and_then(|kind| kind.element);
        element
            .map(|element| dtype::to_python(py, element))
            .transpose()
    }

    /// Our name of the type of the elements, if it is known, such as `f32`.
    #[getter]
    fn dtype_name(&self) -> Option<&'static str> {
        let element = self.0.kind.as_tensor().and_then(|kind| kind.element);
        element.map(tfrt::DType::name)
    }

    /// The extents, if their number is known: a number, the name of a symbolic one, or `None`.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(dims) = self.0.kind.as_tensor().and_then(|kind| kind.dims.as_ref()) else {
            return Ok(None);
        };
        let dims = dims.iter().map(|dim| {
            Ok(match dim {
                Dim::Fixed(extent) => extent.into_pyobject(py)?.into_any(),
                Dim::Symbol(name) => name.into_pyobject(py)?.into_any(),
                Dim::Unknown => py.None().into_bound(py),
            })
        });
        PyTuple::new(py, dims.collect::<PyResult<Vec<_>>>()?).map(Some)
    }

    /// The kind of value: `tensor`, `sequence`, `optional` or `map`.
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.0.kind {
            ValueType::Tensor(_) => "tensor",
            ValueType::Sequence(_) => "sequence",
            ValueType::Optional(_) => "optional",
            ValueType::Map(..) => "map",
        }
    }

    /// The type as messages write it, such as `f32 [N, 3]` and `sequence of f32`.
    #[getter]
    fn r#type(&self) -> String {
        self.0.kind.to_string()
    }

    fn __repr__(&self) -> String {
        format!("ValueInfo({})", self.0)
    }
}
