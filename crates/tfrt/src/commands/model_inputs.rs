//! The inputs of a model, from the files and options of a command line: of one call, or of a batch of calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tfrt::model::{Datum, Dim, Model, ValueInfo, ValueType};
use tfrt::{AnyAsyncValue, Error, HostAllocator, error_message};

use super::{pattern, refuse_second_stdin};
use crate::data::random;
use crate::data::read::{self, Conversion, InputFile};
use crate::data::text::{self, Along, Tokenizer, Tokens};
use crate::failure::Failure;
use crate::options::InputOptions;

/// The inputs of one call, in the order of the model; `None` for optional ones that are not given.
pub struct Inputs {
    pub data: Vec<Option<Datum>>,
    /// The files that the inputs were read from.
    pub files: Vec<PathBuf>,
}

/// The sources of the inputs of a model, before they are read.
pub struct InputPlan<'a> {
    options: &'a InputOptions,
    inputs: &'a [ValueInfo],
    given: Vec<GivenInput>,
    conversion: Conversion,
    tokenizer: Option<Tokenizer>,
    max_file_bytes: u64,
    /// The number of calls of a batch; `None` if it is one call.
    n_calls: Option<usize>,
    /// Whether each input is state, which need not be given.
    is_state: Vec<bool>,
}

/// An input that is given.
struct GivenInput {
    index: usize,
    /// One source for all calls, or one for each call of a batch.
    sources: Vec<Source>,
    /// Whether there is one for each call.
    is_batch: bool,
}

/// A source of one input of one call.
#[derive(Clone)]
enum Source {
    File(InputFile),
    /// A text on the command line.
    Text(String),
}

impl Source {
    /// Returns what the command line has.
    fn name(&self) -> &str {
        match self {
            Source::File(file) => &file.file,
            Source::Text(text) => text,
        }
    }

    /// Returns the path of the file.
    fn path(&self) -> Option<PathBuf> {
        match self {
            Source::File(file) => Some(file.path()),
            Source::Text(_) => None,
        }
    }
}

impl<'a> InputPlan<'a> {
    /// Finds the sources of the inputs that are given to the model of a file, which are files of no more than so many
    /// bytes: folders and patterns name several, and make a batch, as an input does that is given several times.
    ///
    /// # Errors
    ///
    /// `Usage` for names that the model does not have, for inputs that are missing, for standard input that is given
    /// twice, and for inputs of a batch that are not as many; `Rejected` for folders and tokenizers that can't be read.
    pub fn new(
        options: &'a InputOptions,
        file: &Path,
        model: &'a Model,
        max_file_bytes: u64,
        is_state: &dyn Fn(usize) -> bool,
    ) -> Result<InputPlan<'a>, Failure> {
        let inputs = model.inputs();
        let mut plan = InputPlan {
            options,
            inputs,
            given: Vec::new(),
            conversion: options.conversion(),
            tokenizer: None,
            max_file_bytes,
            n_calls: None,
            is_state: (0..inputs.len()).map(is_state).collect(),
        };
        // All names first: a file may take its time.
        for text in &options.inputs {
            plan.give(InputFile::new(text, inputs)?)?;
        }
        let all = plan.given.iter().flat_map(|given| &given.sources);
        let paths: Vec<PathBuf> = all.filter_map(Source::path).collect();
        refuse_second_stdin(std::iter::once(file).chain(paths.iter().map(PathBuf::as_path)))?;
        plan.n_calls = plan.count_calls()?;
        if let Some(path) = &options.tokenizer {
            if !plan.given.iter().any(|given| plan.has_text(given)) {
                return Err(Failure::Usage(
                    "--tokenizer is for text: give an input of integers as --input NAME='some text', NAME=FILE.txt \
                     or NAME=-"
                        .to_owned(),
                ));
            }
            plan.tokenizer = Some(Tokenizer::open(path, max_file_bytes)?);
        }
        plan.refuse_missing()?;
        Ok(plan)
    }

    /// Adds the sources that one `--input` names.
    fn give(&mut self, file: InputFile) -> Result<(), Failure> {
        let index = file.index;
        let (sources, is_several) = match self.is_text(&file) {
            true => (vec![Source::Text(file.file)], false),
            false => {
                let (files, is_several) = expanded(&file.file)?;
                let file = |file| Source::File(InputFile { index, file });
                (files.into_iter().map(file).collect(), is_several)
            }
        };
        match self.given.iter_mut().find(|given| given.index == index) {
            Some(given) => {
                given.sources.extend(sources);
                given.is_batch = true;
            }
            None => self.given.push(GivenInput {
                index,
                sources,
                is_batch: is_several,
            }),
        }
        Ok(())
    }

    fn is_text(&self, file: &InputFile) -> bool {
        self.options.tokenizer.is_some()
            && text::takes_tokens(&self.inputs[file.index])
            && text::is_text(&file.file)
    }

    /// Returns whether a tokenizer has something to do.
    fn has_text(&self, given: &GivenInput) -> bool {
        text::takes_tokens(&self.inputs[given.index])
            && given.sources.iter().any(|source| match source {
                Source::File(file) => text::is_text_file(&file.file),
                Source::Text(_) => true,
            })
    }

    fn count_calls(&self) -> Result<Option<usize>, Failure> {
        let mut batches = self.given.iter().filter(|given| given.is_batch);
        let Some(first) = batches.next() else {
            return Ok(None);
        };
        let n_calls = first.sources.len();
        match batches.find(|other| other.sources.len() != n_calls) {
            None => Ok(Some(n_calls)),
            Some(other) => Err(Failure::Usage(format!(
                "inputs of a batch have as many files: expected {n_calls} for '{}', as for '{}', found {}",
                self.inputs[other.index].name,
                self.inputs[first.index].name,
                other.sources.len()
            ))),
        }
    }

    /// Refuses inputs that nothing gives.
    fn refuse_missing(&self) -> Result<(), Failure> {
        if self.options.random {
            return Ok(());
        }
        let is_there = |index: usize, input: &ValueInfo| {
            self.given.iter().any(|given| given.index == index)
                || matches!(input.kind, ValueType::Optional(_))
                || self.is_state[index]
                || self.tokenizer.is_some() && Along::of_name(&input.name).is_some()
        };
        let all = self.inputs.iter().enumerate();
        let missing = all.filter(|(index, input)| !is_there(*index, input));
        let missing: Vec<ValueInfo> = missing.map(|(_, input)| input.clone()).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Failure::Usage(format!(
                "the model takes {}: give {} with --input NAME=FILE, or let --random generate {}",
                read::listed("input", &missing),
                if missing.len() == 1 { "it" } else { "them" },
                if missing.len() == 1 { "it" } else { "them" },
            ))),
        }
    }

    /// Returns the number of calls of a batch; `None` if it is one call.
    pub fn n_calls(&self) -> Option<usize> {
        self.n_calls
    }

    /// Returns the name of a call of a batch: the file of the input that the batch is of.
    pub fn name(&self, call: usize) -> &str {
        let batch = self.given.iter().find(|given| given.is_batch);
        batch.map_or("", |given| given.sources[call].name())
    }

    /// Returns the names of the sources of a call of a batch, by inputs.
    pub fn sources(&self, call: usize) -> BTreeMap<&str, &str> {
        let batches = self.given.iter().filter(|given| given.is_batch);
        let named = batches.map(|given| {
            let name = self.inputs[given.index].name.as_str();
            (name, given.sources[call].name())
        });
        named.collect()
    }

    /// Returns the files that all inputs of all calls are read from.
    pub fn files(&self) -> Vec<PathBuf> {
        let all = self.given.iter().flat_map(|given| &given.sources);
        let tokenizer = self.options.tokenizer.iter().cloned();
        all.filter_map(Source::path).chain(tokenizer).collect()
    }

    /// Reads the inputs of a call, in the order of the model, and generates the others if that is asked for; `None` is an
    /// optional one that is not given.
    ///
    /// # Errors
    ///
    /// `Rejected` for files that don't hold what the model takes.
    pub fn read(
        &self,
        call: usize,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Vec<Option<Datum>>, Failure> {
        let mut data: Vec<Option<Datum>> = vec![None; self.inputs.len()];
        let mut tokens = None;
        for given in &self.given {
            let source = match given.is_batch {
                true => &given.sources[call],
                false => &given.sources[0],
            };
            let input = &self.inputs[given.index];
            data[given.index] = Some(match self.tokens(source, input)? {
                Some(found) => {
                    let tensor = found.tensor(Along::Ids, input, allocator);
                    tokens.get_or_insert(found);
                    tensor
                        .map_err(|reason| misfit(input, source, &reason))?
                        .into()
                }
                None => {
                    let (file, max) = (source.name(), self.max_file_bytes);
                    read::read(file, input, &self.conversion, max, allocator)?
                }
            });
        }
        if let Some(tokens) = &tokens {
            self.add_along(tokens, &mut data, allocator)?;
        }
        let known = extents(self.inputs, &data);
        let extent_of = |name: &str| known.get(name).copied();
        for ((input, datum), is_state) in self.inputs.iter().zip(&mut data).zip(&self.is_state) {
            if datum.is_none() && self.options.random && !is_state {
                let generated = random::generate(input, self.options.seed, &extent_of, allocator);
                let name = &input.name;
                *datum = Some(generated.map_err(|reason| {
                    Failure::Usage(format!("input '{name}' can't be generated: {reason}"))
                })?);
            }
        }
        Ok(data)
    }

    /// Returns what to do where a model fails on inputs of `--random`, if their sizes were guessed: which dimensions
    /// were taken as 1.
    pub fn advice(&self) -> Option<String> {
        let is_given = |index: usize| self.given.iter().any(|given| given.index == index);
        let is_along = |name: &str| self.tokenizer.is_some() && Along::of_name(name).is_some();
        let all = self.inputs.iter().enumerate();
        let (given, others): (Vec<_>, Vec<_>) = all
            .filter(|(index, _)| !self.is_state[*index])
            .partition(|(index, input)| is_given(*index) || is_along(&input.name));
        let known: BTreeSet<&str> = given.iter().flat_map(|(_, input)| names(input)).collect();
        let (mut named, mut nameless) = (Vec::new(), Vec::new());
        for (_, input) in others.iter().filter(|_| self.options.random) {
            for name in names(input).filter(|name| !known.contains(name)) {
                let name = format!("'{name}'");
                if !named.contains(&name) {
                    named.push(name);
                }
            }
            if dims(input).contains(&Dim::Unknown) {
                nameless.push(format!("'{}'", input.name));
            }
        }
        let named = (!named.is_empty()).then(|| {
            let all = some_of(&named);
            format!("--random took 1 for the size of {all}: say another with --dim NAME=SIZE")
        });
        let nameless = (!nameless.is_empty()).then(|| {
            let all = some_of(&nameless);
            format!(
                "--random took 1 for sizes without a name, of {all}: give what has others with --input NAME=FILE"
            )
        });
        let advice: Vec<String> = named.into_iter().chain(nameless).collect();
        (!advice.is_empty()).then(|| advice.join("; "))
    }

    /// Returns the tokens of a source, if it is text.
    fn tokens(&self, source: &Source, input: &ValueInfo) -> Result<Option<Tokens>, Failure> {
        let Some(tokenizer) = self
            .tokenizer
            .as_ref()
            .filter(|_| text::takes_tokens(input))
        else {
            return Ok(None);
        };
        let told = |reason: String| misfit(input, source, &reason);
        let tokens = match source {
            Source::Text(text) => tokenizer.encode(text),
            Source::File(file) if text::is_text_file(&file.file) => {
                let text = text::read_text(&file.file, self.max_file_bytes).map_err(told)?;
                tokenizer.encode(&text)
            }
            Source::File(_) => return Ok(None),
        };
        tokens.map(Some).map_err(told)
    }

    /// Adds the inputs that go along with tokens, unless they are given.
    fn add_along(
        &self,
        tokens: &Tokens,
        data: &mut [Option<Datum>],
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<(), Failure> {
        for (input, datum) in self.inputs.iter().zip(data) {
            if let (Some(along), None) = (Along::of_name(&input.name), &datum) {
                let tensor = tokens.tensor(along, input, allocator);
                let tensor = tensor.map_err(|reason| Failure::Rejected {
                    code: None,
                    message: format!("cannot make input '{}' of the text: {reason}", input.name),
                    help: Some(format!("the model takes {input}")),
                })?;
                *datum = Some(tensor.into());
            }
        }
        Ok(())
    }
}

/// Returns the failure of a text that does not fit an input.
fn misfit(input: &ValueInfo, source: &Source, reason: &str) -> Failure {
    const SHOWN: usize = 40;
    let name = source.name();
    let more = if name.chars().count() > SHOWN {
        ".."
    } else {
        ""
    };
    let name: String = name.chars().take(SHOWN).collect();
    Failure::Rejected {
        code: None,
        message: format!(
            "cannot read input '{}' from '{name}{more}': {reason}",
            input.name
        ),
        help: Some(format!("the model takes {input}")),
    }
}

/// Returns the files that a word of the command line names, sorted, and whether it may name several: those of a folder,
/// or those that match `*` and `?` in the last part of a path.
fn expanded(word: &str) -> Result<(Vec<String>, bool), Failure> {
    let path = Path::new(word);
    if path.is_dir() {
        return Ok((files_in(path, |_| true)?, true));
    }
    let last = path.file_name().and_then(|name| name.to_str());
    let last = last.filter(|last| last.contains(['*', '?']) && !path.exists());
    let (Some(last), Some(folder)) = (last, path.parent()) else {
        return Ok((vec![word.to_owned()], false));
    };
    Ok((files_in(folder, |name| pattern::matches(last, name))?, true))
}

/// Returns the files of a folder whose names are wanted, sorted. Hidden ones are left out.
fn files_in(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, Failure> {
    let refused = |reason: String| Failure::Rejected {
        code: None,
        message: format!("cannot read the folder '{}': {reason}", folder.display()),
        help: None,
    };
    let here = match folder == Path::new("") {
        true => Path::new("."),
        false => folder,
    };
    let entries = fs::read_dir(here).map_err(|reason| refused(error_message(&reason)))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|reason| refused(error_message(&reason)))?;
        let name = entry.file_name();
        let is_file = || fs::metadata(entry.path()).is_ok_and(|found| found.is_file());
        let Some(name) = name.to_str() else {
            if is_file() {
                let message = format!("the name {name:?} is no UTF-8");
                return Err(refused(message));
            }
            continue;
        };
        if !name.starts_with('.') && is_wanted(name) && is_file() {
            files.push(folder.join(name).to_string_lossy().into_owned());
        }
    }
    if files.is_empty() {
        return Err(refused("it has no such files".to_owned()));
    }
    files.sort();
    Ok(files)
}

/// Reads the inputs of one call that are given to the model of a file, of files of no more than so many bytes, and
/// generates the others if that is asked for.
///
/// # Errors
///
/// Those of [`InputPlan::new`] and [`InputPlan::read`]; `Usage` for a batch.
pub fn from_options(
    options: &InputOptions,
    file: &Path,
    model: &Model,
    max_file_bytes: u64,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Inputs, Failure> {
    let plan = InputPlan::new(options, file, model, max_file_bytes, &|_| false)?;
    if plan.n_calls().is_some() {
        let batch = plan.given.iter().find(|given| given.is_batch);
        let name = batch.map_or("", |given| &model.inputs()[given.index].name);
        let message = format!("input '{name}' is given several files: `tfrt run` takes a batch");
        return Err(Failure::Usage(message));
    }
    let (data, files) = (plan.read(0, allocator)?, plan.files());
    Ok(Inputs { data, files })
}

/// Returns the arguments of the function of a model: its inputs, checked, and its constants.
///
/// # Errors
///
/// `Rejected` for inputs that don't fit the model.
pub fn arguments(model: &Model, inputs: Vec<Option<Datum>>) -> Result<Vec<AnyAsyncValue>, Failure> {
    let named = model.inputs().iter().zip(inputs);
    let named = named.filter_map(|(input, datum)| Some((input.name.clone(), datum?)));
    let arguments = model.arguments(named.collect::<Vec<_>>());
    arguments.map_err(|error| rejected(&error))
}

/// Returns the failure of inputs that don't fit the model.
pub fn rejected(error: &Error) -> Failure {
    Failure::Rejected {
        code: None,
        message: error.message().to_owned(),
        help: error.notes().first().cloned(),
    }
}

/// Returns the dimensions of an input or output, if it is a tensor and they are known.
pub fn dims(input: &ValueInfo) -> &[Dim] {
    let tensor = input.kind.as_tensor();
    tensor
        .and_then(|tensor| tensor.dims.as_deref())
        .unwrap_or_default()
}

/// Returns the names of the dimensions of an input.
fn names(input: &ValueInfo) -> impl Iterator<Item = &str> {
    dims(input).iter().filter_map(|dim| match dim {
        Dim::Symbol(name) => Some(name.as_str()),
        _ => None,
    })
}

/// Returns a list as text, of which a long one is cut.
fn some_of(all: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = all[..all.len().min(SHOWN)].join(", ");
    match all.len() > SHOWN {
        true => format!("{shown} and {} more", all.len() - SHOWN),
        false => shown,
    }
}

/// Returns the sizes of symbolic dimensions that tensors have.
fn extents(inputs: &[ValueInfo], data: &[Option<Datum>]) -> BTreeMap<String, usize> {
    let mut known = BTreeMap::new();
    for (input, datum) in inputs.iter().zip(data) {
        let Some(Datum::Tensor(tensor)) = datum else {
            continue;
        };
        let (dims, shape) = (dims(input), &tensor.metadata().shape);
        // One dimension more is that of steps.
        let n_steps = usize::from(shape.rank() == dims.len() + 1);
        for (dim, extent) in dims.iter().zip(shape.extents().skip(n_steps)) {
            if let Dim::Symbol(name) = dim {
                known.entry(name.clone()).or_insert(extent);
            }
        }
    }
    known
}
