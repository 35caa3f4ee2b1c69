//! A batch: a call of a model for each file, and a line for each call.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tfrt::ir::visible;
use tfrt::model::{Datum, Model};
use tfrt::{AnyAsyncValue, Error};

use super::model::{Document, Output, OutputPlan, Target, refused};
use super::{Run, interrupt};
use crate::commands::model_inputs::{self, InputPlan};
use crate::console::Problem;
use crate::data::json;
use crate::data::show;
use crate::data::write::{self, Format};
use crate::failure::{ExitStatus, Failure};

/// The report on a call of a batch.
#[derive(Serialize)]
pub struct CallReport {
    /// The files of the batch that the call was given, by the names of inputs.
    inputs: BTreeMap<String, String>,
    outputs: Vec<Output>,
    /// The reason why there are no outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    diagnostics: Vec<Problem>,
}

/// A batch, and what becomes of its outputs.
struct Batch<'b> {
    inputs: &'b InputPlan<'b>,
    plan: OutputPlan,
    files: Option<BatchFiles>,
    /// The number of elements that were told as JSON.
    n_told: usize,
}

/// The names of the files that outputs of a batch are written to.
struct BatchFiles {
    folder: PathBuf,
    format: Format,
    /// The part of the name that is the call's.
    calls: Vec<String>,
    /// The part that is the output's.
    outputs: Vec<String>,
    /// The files that were read, without links.
    read: HashSet<PathBuf>,
}

impl BatchFiles {
    fn new(run: &Run<'_>, model: &Model, inputs: &InputPlan<'_>, n_calls: usize) -> Option<Self> {
        let options = &run.options.output;
        let stem = |call| {
            let path = Path::new(inputs.name(call));
            let stem = path.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        };
        let stems: Vec<String> = (0..n_calls).map(stem).collect();
        let outputs = model.outputs().iter().map(|output| output.name.as_str());
        let read = run.files_read.iter();
        Some(BatchFiles {
            folder: options.output_dir.clone()?,
            format: options.output_format.unwrap_or(Format::Npy),
            calls: write::safe_names(stems.iter().map(String::as_str)),
            outputs: write::safe_names(outputs),
            read: read
                .filter_map(|path| fs::canonicalize(path).ok())
                .collect(),
        })
    }

    /// Returns where an output of a call is written to.
    fn target(&self, call: usize, output: usize) -> Result<Target, Failure> {
        let (call, output) = (&self.calls[call], &self.outputs[output]);
        let name = format!("{call}.{output}.{}", self.format.extension());
        let path = self.folder.join(name);
        match fs::canonicalize(&path).is_ok_and(|place| self.read.contains(&place)) {
            true => Err(Failure::Usage(format!(
                "'{}' is an input, which would be lost; name another folder with --output-dir",
                path.display()
            ))),
            false => Ok(Target {
                path,
                format: self.format,
            }),
        }
    }
}

impl Run<'_> {
    /// Calls the model for each file of a batch. A call that fails does not keep the others from being made.
    pub(super) fn run_batch(
        &mut self,
        model: &Model,
        inputs: &InputPlan<'_>,
        n_calls: usize,
        document: &mut Document,
    ) -> Result<(), Failure> {
        let options = &self.options.output;
        for (is_given, option) in [
            (!options.outputs.is_empty(), "--output"),
            (!options.expected.is_empty(), "--expect"),
        ] {
            if is_given {
                return Err(Failure::Usage(format!(
                    "{option} is for one call, but inputs are given for {n_calls}: \
                     --output-dir writes the outputs of all"
                )));
            }
        }
        let mut batch = Batch {
            inputs,
            plan: OutputPlan::of_batch(self.options, &self.files_read)?,
            files: BatchFiles::new(self, model, inputs, n_calls),
            n_told: 0,
        };
        if let Some(files) = &batch.files {
            self.delivery.make_folder(&files.folder)?;
        }
        let progress = self.console.count(!self.options.json);
        let (mut reports, mut failed) = (Vec::new(), Vec::new());
        interrupt::begin_calls();
        for call in 0..n_calls {
            if interrupt::is_interrupted() {
                self.status = self.status.max(ExitStatus::Cancelled);
                break;
            }
            progress.say(&format!("{call} of {n_calls} calls"));
            let mut report = CallReport {
                inputs: inputs.sources(call).into_iter().map(owned).collect(),
                outputs: Vec::new(),
                error: None,
                diagnostics: Vec::new(),
            };
            let line = self.run_call(model, &mut batch, call, &mut report);
            let line = match line {
                Ok(line) => line,
                Err(failure @ (Failure::Output(_) | Failure::Write { .. } | Failure::Usage(_))) => {
                    return Err(failure);
                }
                Err(failure) => {
                    let failure = self.exceeded().failure(failure);
                    self.status = self.status.max(failure.status());
                    self.console.failure(&failure);
                    report.error = failure.message();
                    String::new()
                }
            };
            let name = visible::name(inputs.name(call)).into_owned();
            match &report.error {
                None => self.print(&format!("{name}: {line}"))?,
                Some(error) => {
                    self.print(&format!("{name}: error: {}", visible::name(error)))?;
                    failed.push(name);
                }
            }
            if self.options.json {
                reports.push(report);
            }
        }
        interrupt::end_calls();
        drop(progress);
        if !failed.is_empty() {
            self.tell_failed(&failed, n_calls);
        }
        document.calls = Some(reports);
        Ok(())
    }

    /// Calls the model for one file, writes outputs to files, and returns the others as text.
    fn run_call(
        &mut self,
        model: &Model,
        batch: &mut Batch<'_>,
        call: usize,
        report: &mut CallReport,
    ) -> Result<String, Failure> {
        let inputs = batch.inputs;
        let allocator = self.runtime.host().allocator().clone();
        let data = inputs.read(call, &allocator)?;
        let arguments = model_inputs::arguments(model, data).map_err(|failure| {
            // It names the input, which all calls have.
            named(failure, inputs.name(call))
        })?;
        let called = self.call_model(model, arguments, interrupt::is_interrupted)?;
        let (results, problems) = called;
        report.diagnostics = problems;
        if let Some(error) = results.iter().find_map(AnyAsyncValue::error) {
            report.error = Some(error.message().to_owned());
            return Ok(String::new());
        }
        let told = |error: Error| refused(&error);
        let mut parts = Vec::new();
        for (index, (output, result)) in model.outputs().iter().zip(results).enumerate() {
            let datum = Datum::try_from(result).map_err(told)?;
            let name = &output.name;
            let target = batch.files.as_ref();
            let target = target.map(|files| files.target(call, index)).transpose()?;
            let is_told = match &target {
                Some(target) => target.format == Format::Json,
                None => self.options.json && batch.plan.top.is_none(),
            };
            if is_told {
                batch.n_told = batch.n_told.saturating_add(json::n_elements(&datum));
                self.check_room_for(batch.n_told, name)?;
            }
            if let Some(Target { path, format }) = &target {
                let encoded = format.encode(name, &datum);
                let encoded = encoded.map_err(|reason| write::misfit(path, name, &reason))?;
                self.delivery.add(path, |out| out.write_all(&encoded))?;
            }
            let best = self.best(&datum, &batch.plan).map_err(told)?;
            if call == 0 && best.is_some() {
                self.tell_misfit_of_labels(name, &datum, &batch.plan);
            }
            if self.options.json {
                let output = Output::new(name, &datum, target.as_ref(), best).map_err(told)?;
                report.outputs.push(output);
                continue;
            }
            parts.push(match (best, &target) {
                (Some(rows), _) => show::best_line(name, &rows),
                (None, Some(target)) => {
                    format!("{}: '{}'", visible::name(name), target.path.display())
                }
                (None, None) => show::line(name, &datum).map_err(told)?,
            });
        }
        Ok(parts.join("; "))
    }

    /// Tells how many calls have failed.
    fn tell_failed(&self, failed: &[String], n_calls: usize) {
        const SHOWN: usize = 8;
        let more = if failed.len() > SHOWN { ", ..." } else { "" };
        let names = failed[..failed.len().min(SHOWN)].join(", ");
        let message = format!("{} of {n_calls} calls failed: {names}{more}", failed.len());
        self.console.tell(&Problem::of_command(None, message));
    }
}

fn owned((name, file): (&str, &str)) -> (String, String) {
    (name.to_owned(), file.to_owned())
}

/// Returns a failure that names the file of its call.
fn named(failure: Failure, file: &str) -> Failure {
    match failure {
        Failure::Rejected {
            code,
            message,
            help,
        } => Failure::Rejected {
            code,
            message: format!("'{file}': {message}"),
            help,
        },
        other => other,
    }
}
