//! `tfrt run --save`: writes a SavedModel whose variables are as a run has left them.

use std::collections::BTreeMap;
use std::path::Path;

use tfrt::import::saved_model::{SaveError, SavedValue, save};
use tfrt::model::{Datum, Model};
use tfrt::{AnyAsyncValue, Error};

use crate::failure::Failure;
use crate::options::RunOptions;

/// Refuses to save what can't be saved, before the model runs.
///
/// # Errors
///
/// `Usage` for a model without variables that change, one that is no directory, or a place that is taken.
pub(super) fn check(options: &RunOptions, model: &Model) -> Result<(), Failure> {
    let Some(to) = &options.state.save else {
        return Ok(());
    };
    let message = if model.n_variables() == 0 {
        "--save is for models that change variables: this signature changes none".to_owned()
    } else if !options.file.is_dir() {
        "--save is for directories of SavedModels: the variables of others have no checkpoint"
            .to_owned()
    } else if to.exists() {
        SaveError::Exists(to.clone()).to_string()
    } else {
        return Ok(());
    };
    Err(Failure::Usage(message))
}

/// Writes the model again with the variables that its last outputs are, in the order of its last inputs.
///
/// # Errors
///
/// `Write` and `Rejected` for files that can't be written, or read.
pub(super) fn variables(
    from: &Path,
    to: &Path,
    tags: Option<&str>,
    model: &Model,
    results: &[AnyAsyncValue],
) -> Result<(), Failure> {
    let n = model.n_variables();
    let names = model.inputs()[model.inputs().len() - n..].iter();
    let mut values = BTreeMap::new();
    for (input, result) in names.zip(&results[results.len() - n..]) {
        let value = value(result.clone()).map_err(|error| rejected(error.message()))?;
        values.insert(input.name.clone(), value);
    }
    save(from, to, tags, &values).map_err(|error| match error {
        SaveError::File(path, reason) => Failure::Write { path, reason },
        error => rejected(&error.to_string()),
    })
}

fn value(result: AnyAsyncValue) -> Result<SavedValue, Error> {
    let datum = Datum::try_from(result)?;
    let tensor = datum.as_tensor()?.as_dense()?;
    let reading = tensor.read()?;
    Ok(SavedValue {
        dims: tensor.shape().to_dims().to_vec(),
        bytes: reading.bytes().to_vec(),
    })
}

fn rejected(message: &str) -> Failure {
    Failure::Rejected {
        code: None,
        message: format!("the model is not saved: {message}"),
        help: None,
    }
}
