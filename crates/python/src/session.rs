//! [`PySession`], the class `tfrt.Session`: a model that keeps state from one step to the next.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tfrt::model::Session;
use tfrt::{Error, Model, Runtime};

use crate::call::{Bounds, Started, Wanted};
use crate::error::raise;
use crate::model::{Feed, infos};
use crate::{array, convert};

/// A model with state: outputs of one step that are inputs of the next. State that nobody gives begins with zeros.
#[pyclass(frozen, name = "Session", module = "tfrt")]
pub struct PySession {
    session: Mutex<Session>,
    runtime: Runtime,
}

impl PySession {
    pub fn new(
        py: Python<'_>,
        model: &Model,
        runtime: &Runtime,
        state: &Bound<'_, PyDict>,
        initial: Option<&Bound<'_, PyDict>>,
        dims: Option<&Bound<'_, PyDict>>,
        max_length: Option<usize>,
    ) -> PyResult<PySession> {
        let raised = |error: Error| raise(py, error);
        let mut session = model.session();
        for (input, output) in state.iter() {
            let (input, output): (String, String) = (input.extract()?, output.extract()?);
            session = session.state(&output, &input).map_err(raised)?;
        }
        for (name, size) in dims.iter().flat_map(|dims| dims.iter()) {
            let name: String = name.extract()?;
            session = session.dim(&name, size.extract()?).map_err(raised)?;
        }
        for (input, value) in initial.iter().flat_map(|initial| initial.iter()) {
            let input: String = input.extract()?;
            let tensor = convert::to_owned_tensor(&value, None)?;
            session = session.initial(&input, tensor).map_err(raised)?;
        }
        if let Some(max_length) = max_length {
            session = session.max_length(max_length).map_err(raised)?;
        }
        Ok(PySession {
            session: Mutex::new(session),
            runtime: runtime.clone(),
        })
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PySession {
    /// Takes a step with the inputs that are no state, in order, by keyword, or as a dictionary, and waits; returns the
    /// outputs that are no state.
    #[pyo3(signature = (*args, **kwargs))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (model, states) = {
            let session = self.session();
            let inputs = session.states().map(|(_, input)| input.name.clone());
            let outputs = session.states().map(|(output, _)| output.name.clone());
            (
                session.model().clone(),
                (inputs.collect::<Vec<_>>(), outputs.collect::<Vec<_>>()),
            )
        };
        let inputs = model
            .inputs()
            .iter()
            .filter(|input| !states.0.contains(&input.name));
        let inputs: Vec<_> = inputs.cloned().collect();
        let outputs = model
            .outputs()
            .iter()
            .filter(|output| !states.1.contains(&output.name));
        let outputs: Vec<_> = outputs.cloned().collect();
        let given = Feed::filled(py, |given| given.add_call(args, kwargs, &inputs))?;
        let loans = given.loans();
        let context = Bounds::default().context(py, &self.runtime)?;
        let call = self.session().spawn(&context.context, given).into_call();
        let values = Started { call, context }.wait(py)?;
        let dict = Wanted::All.dict(py, &outputs, values);
        array::settle_call(py, &loans);
        dict
    }

    /// Returns the state, by the names of inputs.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let context = Bounds::default().context(py, &self.runtime)?;
        let (call, inputs) = {
            let session = self.session();
            let inputs: Vec<_> = session.states().map(|(_, input)| input.clone()).collect();
            (session.read(&context.context).into_call(), inputs)
        };
        let values = Started { call, context }.wait(py)?;
        Wanted::All.dict(py, &inputs, values)
    }

    /// Puts an array in the place of a state, by the name of its input; it is copied.
    fn replace(&self, py: Python<'_>, input: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let tensor = convert::to_owned_tensor(value, None)?;
        let replaced = self.session().replace(input, tensor);
        replaced.map_err(|error| raise(py, error))
    }

    /// Goes back to the state before the first step.
    fn reset(&self) {
        self.session().reset();
    }

    /// The inputs that are state.
    #[getter]
    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let session = self.session();
        let inputs: Vec<_> = session.states().map(|(_, input)| input.clone()).collect();
        infos(py, &inputs)
    }
}
