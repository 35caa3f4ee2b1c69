//! The inputs of a model, from the files and options of a command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tfrt::model::{Datum, Dim, Model, ValueInfo, ValueType};
use tfrt::{AnyAsyncValue, Error, HostAllocator};

use super::refuse_second_stdin;
use crate::data::random;
use crate::data::read::{self, InputFile};
use crate::failure::Failure;
use crate::options::InputOptions;

/// The inputs of one call, in the order of the model; `None` for optional ones that are not given.
pub struct Inputs {
    pub data: Vec<Option<Datum>>,
    /// The files that the inputs were read from.
    pub files: Vec<PathBuf>,
}

/// Reads the inputs that are given to the model of a file, of files of no more than so many bytes, and generates
/// the others if that is asked for. Inputs that are state need not be there.
///
/// # Errors
///
/// `Usage` for names that the model does not have, for inputs that are missing, and for standard input that is
/// given twice; `Rejected` for files that don't hold what the model takes.
pub fn from_options(
    options: &InputOptions,
    file: &Path,
    model: &Model,
    max_file_bytes: u64,
    allocator: &Arc<dyn HostAllocator>,
    is_state: &dyn Fn(usize) -> bool,
) -> Result<Inputs, Failure> {
    let inputs = model.inputs();
    let preparation = options.preparation();
    let mut data: Vec<Option<Datum>> = vec![None; inputs.len()];
    let mut files = Vec::new();
    // All names first: a file may take its time.
    let given: Vec<InputFile> = options
        .inputs
        .iter()
        .map(|text| InputFile::new(text, inputs))
        .collect::<Result<_, _>>()?;
    for (index, one) in given.iter().enumerate() {
        if given[..index].iter().any(|other| other.index == one.index) {
            let name = &inputs[one.index].name;
            return Err(Failure::Usage(format!("input '{name}' is given twice")));
        }
    }
    let of_inputs = given.iter().map(|one| Path::new(&one.file));
    refuse_second_stdin(std::iter::once(file).chain(of_inputs))?;
    for one in given {
        let (file, wanted, max) = (&one.file, &inputs[one.index], max_file_bytes);
        data[one.index] = Some(read::read(file, wanted, &preparation, max, allocator)?);
        files.push(one.path());
    }
    let known = extents(inputs, &data);
    let extent_of = |name: &str| known.get(name).copied();
    for (index, (input, datum)) in inputs.iter().zip(&mut data).enumerate() {
        if datum.is_none() && options.random && !is_state(index) {
            let generated = random::generate(input, options.seed, &extent_of, allocator);
            let name = &input.name;
            *datum = Some(generated.map_err(|reason| {
                Failure::Usage(format!("input '{name}' can't be generated: {reason}"))
            })?);
        }
    }
    let is_missing = |(index, (input, datum)): &(usize, (&ValueInfo, &Option<Datum>))| {
        datum.is_none() && !matches!(input.kind, ValueType::Optional(_)) && !is_state(*index)
    };
    let missing = inputs.iter().zip(&data).enumerate().filter(is_missing);
    let missing: Vec<ValueInfo> = missing.map(|(_, (input, _))| input.clone()).collect();
    if !missing.is_empty() {
        return Err(Failure::Usage(format!(
            "the model takes {}: give {} with --input NAME=FILE, or let --random generate {}",
            read::listed("input", &missing),
            if missing.len() == 1 { "it" } else { "them" },
            if missing.len() == 1 { "it" } else { "them" },
        )));
    }
    Ok(Inputs { data, files })
}

/// Returns the arguments of the function of a model: its inputs, checked, and its constants.
///
/// # Errors
///
/// `Rejected` for inputs that don't fit the model.
pub fn arguments(model: &Model, inputs: Inputs) -> Result<Vec<AnyAsyncValue>, Failure> {
    let named = model.inputs().iter().zip(inputs.data);
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
