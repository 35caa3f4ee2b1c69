//! `tfrt run` of a model: its inputs from files, one call, its outputs to files or to people.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value as Json;
use tfrt::host::memory::Block;
use tfrt::input::STANDARD_INPUT;
use tfrt::ir::visible;
use tfrt::model::{Datum, Model, ValueInfo};
use tfrt::{AnyAsyncValue, Context, Error, Function, error_message};
use tfrt_run::{FinishedCall, Session};

use super::batch::CallReport;
use super::expect::{Comparison, Expectation};
use super::steps::StepPlan;
use super::{Run, interrupt, save, stats::Stats};
use crate::commands::model_inputs::{self, InputPlan};
use crate::commands::output;
use crate::console::Problem;
use crate::data::show::{self, TopElement};
use crate::data::write::{self, Format};
use crate::data::{json, read};
use crate::failure::Failure;
use crate::options::{OutputOptions, RunOptions};

/// The largest file of labels that is read.
const MAX_LABELS_BYTES: u64 = 16 << 20;

/// The name of the report's JSON schema.
pub const SCHEMA: &str = "tfrt.run-model/1";

/// The report on a run.
#[derive(Serialize)]
pub struct Document {
    schema: &'static str,
    file: String,
    outputs: Vec<Output>,
    /// The calls of a batch, each with outputs of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) calls: Option<Vec<CallReport>>,
    /// The comparisons with what was expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expected: Vec<Comparison>,
    pub(super) diagnostics: Vec<Problem>,
    /// The model's output to standard output and standard error.
    output: String,
    /// The report on time and memory, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    exit_status: u8,
}

/// An output in the report: its file, its largest elements, or its value.
#[derive(Serialize)]
pub(super) struct Output {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top: Option<Vec<Vec<TopElement>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
}

/// The destinations of a model's outputs, in their order.
pub(super) struct OutputPlan {
    /// Whether each output is state, which is not shown.
    is_state: Vec<bool>,
    targets: Vec<Option<Target>>,
    pub(super) top: Option<usize>,
    labels: Option<Labels>,
}

/// The lines of a file with labels.
pub(super) struct Labels {
    path: PathBuf,
    lines: Vec<String>,
}

pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) format: Format,
}

impl Target {
    fn is_standard_output(&self) -> bool {
        self.path == Path::new(STANDARD_INPUT)
    }

    /// Refuses standard output as a destination where it is for something else.
    fn check_standard_output(&self, is_json: bool) -> Result<(), Failure> {
        let message = match self.format {
            _ if is_json => "with --json, standard output is for the document",
            Format::Json => return Ok(()),
            _ if !io::stdout().is_terminal() => return Ok(()),
            _ => "bytes are not written to a terminal: name a file with --output",
        };
        Err(Failure::Usage(message.to_owned()))
    }
}

impl OutputPlan {
    /// Finds the destinations of outputs before the model is called, and refuses files that were
    /// read.
    fn new(
        run: &RunOptions,
        outputs: &[ValueInfo],
        is_state: Vec<bool>,
        read: &[PathBuf],
    ) -> Result<OutputPlan, Failure> {
        let options = &run.output;
        OutputPlan::of_targets(run, targets(options, outputs)?, is_state, read)
    }

    /// Makes the plan for a batch, whose calls have files of their own.
    pub(super) fn of_batch(run: &RunOptions, read: &[PathBuf]) -> Result<OutputPlan, Failure> {
        OutputPlan::of_targets(run, Vec::new(), Vec::new(), read)
    }

    fn of_targets(
        run: &RunOptions,
        targets: Vec<Option<Target>>,
        is_state: Vec<bool>,
        read: &[PathBuf],
    ) -> Result<OutputPlan, Failure> {
        let options = &run.output;
        let beside = [(&run.trace, "--trace"), (&run.profile, "--profile")];
        for (path, option) in beside {
            let Some(path) = path else { continue };
            // Inputs of the model were not known before.
            output::refuse_inputs(path, read, option)?;
            let mut all = targets.iter().flatten();
            if all.any(|target| output::is_same_file(path, &target.path)) {
                let path = path.display();
                return Err(Failure::Usage(format!(
                    "'{path}' is named for an output and with {option}, of which one would be lost"
                )));
            }
        }
        let all = || targets.iter().flatten();
        for (index, target) in all().enumerate() {
            let mut before = all().take(index);
            if before.any(|other| output::is_same_file(&other.path, &target.path)) {
                let path = target.path.display();
                let message =
                    format!("'{path}' is named for two outputs, of which one would be lost");
                return Err(Failure::Usage(message));
            }
            match target.is_standard_output() {
                true => target.check_standard_output(run.json)?,
                false => output::refuse_inputs(&target.path, read, "--output")?,
            }
        }
        let labels = options.labels.as_deref().map(read_labels).transpose()?;
        Ok(OutputPlan {
            is_state,
            targets,
            top: options.top.map(usize::from),
            labels,
        })
    }
}

/// Returns the destinations of outputs that are written to files, in the order of the outputs.
fn targets(options: &OutputOptions, outputs: &[ValueInfo]) -> Result<Vec<Option<Target>>, Failure> {
    let mut targets: Vec<Option<Target>> = outputs.iter().map(|_| None).collect();
    if let Some(folder) = &options.output_dir {
        let format = options.output_format.unwrap_or(Format::Npy);
        let names = write::safe_names(outputs.iter().map(|output| output.name.as_str()));
        for (target, name) in targets.iter_mut().zip(names) {
            let path = folder.join(format!("{name}.{}", format.extension()));
            *target = Some(Target { path, format });
        }
    }
    let mut named = vec![false; outputs.len()];
    for text in &options.outputs {
        let (index, path) = place(text, outputs)?;
        if std::mem::replace(&mut named[index], true) {
            let name = &outputs[index].name;
            return Err(Failure::Usage(format!("output '{name}' is given twice")));
        }
        let by_name = Format::of_path(&path);
        let format = options.output_format.or(by_name).unwrap_or(Format::Npy);
        targets[index] = Some(Target { path, format });
    }
    Ok(targets)
}

/// Returns the index of the output that `NAME=FILE` names, and the file. Of a model with one
/// output, the name may be left out.
fn place(text: &str, outputs: &[ValueInfo]) -> Result<(usize, PathBuf), Failure> {
    let parts = text
        .match_indices('=')
        .map(|(at, _)| (&text[..at], &text[at + 1..]));
    for (name, file) in parts {
        if let Some(index) = outputs.iter().position(|output| output.name == name) {
            return Ok((index, file.into()));
        }
    }
    if outputs.len() == 1 && !text.contains('=') {
        return Ok((0, text.into()));
    }
    let name = text.split_once('=').map(|(name, _)| name);
    let has_name = name.is_some();
    let name = name.unwrap_or(text);
    Err(read::unknown_name(
        "--output", "output", name, outputs, has_name,
    ))
}

/// Reads a file with a label on each line. Empty lines at its end are none.
fn read_labels(path: &Path) -> Result<Labels, Failure> {
    let refused = |reason: String| Failure::Rejected {
        code: None,
        message: format!("cannot read labels from '{}': {reason}", path.display()),
        help: None,
    };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| {
        let one_more = MAX_LABELS_BYTES + 1;
        file.take(one_more).read_to_string(&mut text)
    });
    read.map_err(|reason| refused(error_message(&reason)))?;
    if text.len() as u64 > MAX_LABELS_BYTES {
        return Err(refused(format!(
            "it is larger than the limit of {MAX_LABELS_BYTES} bytes"
        )));
    }
    let lines = text.trim_end().lines();
    Ok(Labels {
        path: path.to_owned(),
        lines: lines.map(|line| line.trim().to_owned()).collect(),
    })
}

impl Run<'_> {
    /// Calls the model, and delivers its outputs.
    pub(super) fn run_model(&mut self, model: &Model) -> Result<Document, Failure> {
        let options = self.options;
        let allocator = self.runtime.host().allocator().clone();
        let max_file_bytes = self.limits.max_file_bytes();
        save::check(options, model)?;
        let steps = StepPlan::new(&options.state, model)?;
        let is_state = |index| steps.as_ref().is_some_and(|steps| steps.is_state(index));
        let inputs = InputPlan::new(
            &options.input,
            &options.file,
            model,
            max_file_bytes,
            &is_state,
        )?;
        self.files_read.extend(inputs.files());
        self.advice = inputs.advice();
        let mut document = Document {
            schema: SCHEMA,
            file: options.file.to_string_lossy().into_owned(),
            outputs: Vec::new(),
            calls: None,
            expected: Vec::new(),
            diagnostics: Vec::new(),
            output: String::new(),
            stats: None,
            exit_status: 0,
        };
        if let Some(n_calls) = inputs.n_calls() {
            if steps.is_some() {
                return Err(Failure::Usage(
                    "--state and --steps are for one sequence: give one file for each input"
                        .to_owned(),
                ));
            }
            self.run_batch(model, &inputs, n_calls, &mut document)?;
            return Ok(document);
        }
        let read = inputs.read(0, &allocator)?;
        drop(inputs);
        let expected = Expectation::all(options, model.outputs(), max_file_bytes)?;
        let files = expected.iter().map(|one| one.path().to_owned());
        self.files_read.extend(files);
        let no_state = || vec![false; model.outputs().len()];
        let is_state = steps
            .as_ref()
            .map_or_else(no_state, StepPlan::state_outputs);
        let plan = OutputPlan::new(options, model.outputs(), is_state, &self.files_read)?;
        let (results, problems) = match steps {
            None => {
                let arguments = model_inputs::arguments(model, read)?;
                interrupt::begin_calls();
                self.call_model(model, arguments, interrupt::end_calls)?
            }
            Some(steps) => {
                let context = self.limits.context(&self.runtime);
                let mut steps = steps.begin(read, &context)?;
                interrupt::begin_calls();
                let run = |session: &Session, context: &Context| {
                    Ok(session.call_by(|| steps.run(context)))
                };
                let (results, problems) =
                    self.call_by(model.function(), interrupt::end_calls, run)?;
                match results.iter().all(|result| result.error().is_none()) {
                    true => (steps.into_outputs()?, problems),
                    false => (results, problems),
                }
            }
        };
        document.diagnostics = problems;
        if results.iter().all(|result| result.error().is_none()) {
            if let Some(to) = &options.state.save {
                save::variables(
                    &options.file,
                    to,
                    options.dims.tags.as_deref(),
                    model,
                    &results,
                )?;
            }
            self.deliver(model, results, &plan, expected, &mut document)?;
        }
        Ok(document)
    }

    /// Calls the model's function, and tells of errors. `end` says whether there was a Ctrl-C until the call has ended.
    pub(super) fn call_model(
        &mut self,
        model: &Model,
        arguments: Vec<AnyAsyncValue>,
        end: fn() -> bool,
    ) -> Result<(Vec<AnyAsyncValue>, Vec<Problem>), Failure> {
        let function = model.function();
        let hosted = function.as_host_function();
        self.call_by(function, end, |session, context| {
            session.call(hosted, context.execution(), arguments, &mut |_| Ok(()))
        })
    }

    /// Makes a call of the model's function, or several, and tells of errors.
    fn call_by(
        &mut self,
        function: &Function,
        end: fn() -> bool,
        call: impl FnOnce(&Session, &Context) -> io::Result<FinishedCall>,
    ) -> Result<(Vec<AnyAsyncValue>, Vec<Problem>), Failure> {
        let limits = self.limits;
        let context = limits.context(&self.runtime);
        let watched = self.watchdog.watch_call(&context, limits.deadline);
        let timer = self.profiling.begin_call(function.name());
        let called = call(&self.session, &context).map_err(Failure::Output)?;
        let reason = context.request().cancellation().cloned();
        drop((watched, context));
        let outcome = self.session.end(called, reason, end());
        self.status = self.status.max(outcome.status);
        // What no kernel has reported, such as that the time is over, is told once.
        let failed = || outcome.results.iter().filter_map(AnyAsyncValue::error);
        let unheard = failed().take(usize::from(outcome.errors.is_empty()));
        let stopped = outcome.stopped.iter();
        let stopped = stopped.filter(|_| failed().next().is_none());
        let errors: Vec<&Error> = outcome
            .errors
            .iter()
            .chain(unheard)
            .chain(stopped)
            .collect();
        self.profiling
            .end_call(timer, outcome.status, errors.iter().copied());
        let problems = errors.into_iter().map(|error| self.problem(error));
        let problems = Problem::merged(problems);
        let told = problems.iter();
        told.for_each(|problem| self.console.tell(problem));
        Ok((outcome.results, problems))
    }

    /// Adds outputs to the delivery: some to files, the others to standard output.
    fn deliver(
        &mut self,
        model: &Model,
        results: Vec<AnyAsyncValue>,
        plan: &OutputPlan,
        mut expected: Vec<Expectation>,
        document: &mut Document,
    ) -> Result<(), Failure> {
        let (mut text, mut bytes) = (String::new(), None);
        if let Some(folder) = &self.options.output.output_dir {
            self.delivery.make_folder(folder)?;
        }
        let mut n_told = 0_usize;
        let (mut has_rows, mut kinds) = (false, Vec::new());
        let all = model.outputs().iter().zip(results).zip(&plan.targets);
        for (index, ((output, result), target)) in all.enumerate() {
            let is_compared = expected.iter().any(|one| one.is_of(index));
            if plan.is_state[index] && target.is_none() && !is_compared {
                continue;
            }
            let datum = Datum::try_from(result).map_err(|error| refused(&error))?;
            let name = &output.name;
            let is_told = match target {
                Some(target) => target.format == Format::Json,
                None => self.options.json && plan.top.is_none(),
            };
            if is_told {
                n_told = n_told.saturating_add(json::n_elements(&datum));
                self.check_room_for(n_told, name)?;
            }
            if let Some(target) = target {
                let encoded = target.format.encode(name, &datum);
                let encoded =
                    encoded.map_err(|reason| write::misfit(&target.path, name, &reason))?;
                match target.is_standard_output() {
                    true => bytes = Some(encoded),
                    false => {
                        self.delivery
                            .add(&target.path, |out| out.write_all(&encoded))?;
                    }
                }
            }
            let best = self.best(&datum, plan).map_err(|error| refused(&error))?;
            match &best {
                Some(_) => self.tell_misfit_of_labels(name, &datum, plan),
                None => kinds.push(format!("{name}: {}", kind_and_shape(&datum))),
            }
            has_rows |= best.is_some();
            let compared = match expected.iter().position(|one| one.is_of(index)) {
                Some(place) => Some(self.compare(expected.remove(place), name, &datum)?),
                None => None,
            };
            if let Some(line) = compared.as_ref().and_then(Comparison::line) {
                text.push_str(&line);
            }
            let is_compared = compared.is_some();
            document.expected.extend(compared);
            if self.options.json {
                let told = Output::new(name, &datum, target.as_ref(), best);
                document
                    .outputs
                    .push(told.map_err(|error| refused(&error))?);
                continue;
            }
            match (best, datum.as_matrix()) {
                (Some(rows), Some(tensor)) => text.push_str(&show::best_text(name, tensor, &rows)),
                _ if target.is_some() || is_compared => {}
                _ => {
                    let shown = show::text(name, &datum);
                    text.push_str(&shown.map_err(|error| refused(&error))?);
                }
            }
        }
        if let (Some(k), false) = (plan.top, has_rows) {
            self.tell_nothing_to_rank(k, &kinds);
        }
        match bytes {
            Some(bytes) => self.delivery.print(bytes),
            None if text.is_empty() => {}
            None => {
                let text = visible::text(text.trim_end());
                self.delivery.print(format!("{text}\n"));
            }
        }
        Ok(())
    }

    /// Tells that `--top` found no output that has largest elements.
    fn tell_nothing_to_rank(&self, k: usize, found: &[String]) {
        let document = serde_json::json!({
            "schema": "tfrt.nothing-ranked/1", "top": k, "outputs": found,
        });
        self.console.document(&document, || {
            format!(
                "note: --top {k} has no effect: expected an output of numbers with at least 2 elements along its \
                 last dimension, found {}\n",
                found.join(", ")
            )
        });
    }

    /// Tells that there are fewer or more labels than elements in a row.
    pub(super) fn tell_misfit_of_labels(&self, name: &str, datum: &Datum, plan: &OutputPlan) {
        let (Some(labels), Some(tensor)) = (&plan.labels, datum.as_matrix()) else {
            return;
        };
        let metadata = tensor.metadata();
        let expected = metadata.shape.to_dims().last().copied().unwrap_or(0);
        let found = labels.lines.len();
        if found == expected {
            return;
        }
        let file = labels.path.to_string_lossy();
        let document = serde_json::json!({
            "schema": "tfrt.labels-misfit/1", "file": file, "output": name,
            "expected": expected, "found": found,
        });
        self.console.document(&document, || {
            format!(
                "note: expected {expected} labels, one for each element along the last dimension of \
                 '{name}' ({metadata}), found {found} in '{file}'\n"
            )
        });
    }

    /// Refuses an output as JSON, which has memory of its own, if the limit on memory could not
    /// hold it.
    pub(super) fn check_room_for(&self, n_elements: usize, name: &str) -> Result<(), Failure> {
        if self.runtime.host().limits().max_memory.is_none() {
            return Ok(());
        }
        let n_bytes = n_elements.saturating_mul(json::BYTES_PER_ELEMENT);
        let aside = Block::reserve(self.runtime.host().allocator(), n_bytes);
        match aside {
            Some(_) => Ok(()),
            None => Err(Failure::Rejected {
                code: None,
                message: format!("there is no memory for output '{name}' as JSON: {n_bytes} bytes"),
                help: None,
            }),
        }
    }

    pub(super) fn best(
        &self,
        datum: &Datum,
        plan: &OutputPlan,
    ) -> Result<Option<Vec<Vec<TopElement>>>, Error> {
        match (plan.top, datum) {
            // Maps know the labels.
            (Some(k), Datum::Maps(maps)) if plan.labels.is_none() => {
                show::best(maps.values(), k, &json::texts(maps.keys())?)
            }
            (Some(k), datum) => match datum.as_matrix() {
                Some(tensor) => {
                    let labels = plan.labels.as_ref().map(|labels| &labels.lines[..]);
                    show::best(tensor, k, labels.unwrap_or_default())
                }
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

impl Document {
    /// Completes the report.
    pub(super) fn ended(self, output: String, stats: Option<Stats>, exit_status: u8) -> Document {
        Document {
            output,
            stats,
            exit_status,
            ..self
        }
    }
}

impl Output {
    pub(super) fn new(
        name: &str,
        datum: &Datum,
        target: Option<&Target>,
        top: Option<Vec<Vec<TopElement>>>,
    ) -> Result<Output, Error> {
        let metadata = datum.as_tensor().ok().map(tfrt::tensor::Tensor::metadata);
        let is_shown = target.is_none() && top.is_none();
        Ok(Output {
            name: name.to_owned(),
            kind: match metadata {
                Some(metadata) => metadata.dtype.to_string(),
                None => datum.kind().to_string(),
            },
            shape: metadata.map(|metadata| metadata.shape.to_dims().to_vec()),
            file: target.map(|target| target.path.display().to_string()),
            top,
            value: is_shown.then(|| json::write(datum)).transpose()?,
        })
    }
}

/// Returns a description of an output: the type and shape of a tensor, or of the matrix that maps
/// are.
fn kind_and_shape(datum: &Datum) -> String {
    match datum.as_matrix() {
        Some(tensor) => tensor.metadata().to_string(),
        None => datum.kind().to_string(),
    }
}

/// Returns the failure of a result that can't be shown.
pub(super) fn refused(error: &Error) -> Failure {
    Failure::Rejected {
        code: None,
        message: error.message().to_owned(),
        help: None,
    }
}
