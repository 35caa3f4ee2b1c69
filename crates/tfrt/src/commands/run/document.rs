//! `--json`: the report on a run, for machines.

use serde::Serialize;
use serde_json::Value as Json;
use tfrt::report::value_text;
use tfrt::{AnyAsyncValue, Function};

use super::stats::Stats;
use crate::console::Problem;

/// The name of the report's JSON schema.
pub const SCHEMA: &str = "tfrt.run/1";

/// The report on a run.
#[derive(Serialize)]
pub struct Document {
    schema: &'static str,
    file: String,
    functions: Vec<FunctionReport>,
    /// The program's output.
    output: String,
    /// The report on time and memory, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Stats>,
    exit_status: u8,
}

#[derive(Serialize)]
struct FunctionReport {
    name: String,
    skipped: bool,
    results: Vec<ResultReport>,
    diagnostics: Vec<Problem>,
}

#[derive(Serialize)]
struct ResultReport {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    type_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorReport>,
}

#[derive(Serialize)]
struct ErrorReport {
    code: &'static str,
    message: String,
}

impl Document {
    /// Begins a report.
    pub fn new(file: &str) -> Document {
        Document {
            schema: SCHEMA,
            file: file.to_owned(),
            functions: Vec::new(),
            output: String::new(),
            stats: None,
            exit_status: 0,
        }
    }

    /// Records a function that was not run.
    pub fn skipped(&mut self, name: &str) {
        self.functions.push(FunctionReport {
            name: name.to_owned(),
            skipped: true,
            results: Vec::new(),
            diagnostics: Vec::new(),
        });
    }

    /// Records what a function returned, settled, and what its kernels reported.
    pub fn ran(
        &mut self,
        function: &Function,
        outcome: &[AnyAsyncValue],
        diagnostics: Vec<Problem>,
    ) {
        let mut types = function.result_types();
        let results = outcome
            .iter()
            .map(|result| ResultReport::new(types.next(), result));
        self.functions.push(FunctionReport {
            name: function.name().to_owned(),
            skipped: false,
            results: results.collect(),
            diagnostics,
        });
    }

    /// Completes the report.
    pub fn ended(self, output: String, stats: Option<Stats>, exit_status: u8) -> Document {
        Document {
            output,
            stats,
            exit_status,
            ..self
        }
    }
}

impl ResultReport {
    fn new(type_name: Option<&str>, result: &AnyAsyncValue) -> ResultReport {
        let error = result.error().map(|error| ErrorReport {
            code: error.code().name(),
            message: error.message().to_owned(),
        });
        ResultReport {
            value: match error {
                None => type_name.map(|name| json(name, result)),
                Some(_) => None,
            },
            type_name: type_name.map(str::to_owned),
            error,
        }
    }
}

/// Returns the value, as JSON where it has a form there, else in the words of the result line.
fn json(type_name: &str, value: &AnyAsyncValue) -> Json {
    let known = match type_name {
        "i1" => value.get::<bool>().map(|bit| Json::from(*bit)),
        "i8" => value.get::<i8>().map(|number| Json::from(*number)),
        "i16" => value.get::<i16>().map(|number| Json::from(*number)),
        "i32" => value.get::<i32>().map(|number| Json::from(*number)),
        "i64" => value.get::<i64>().map(|number| Json::from(*number)),
        "f32" => value.get::<f32>().map(|number| float(f64::from(*number))),
        "f64" => value.get::<f64>().map(|number| float(*number)),
        "!tfrt.string" => value.get::<String>().map(|text| Json::from(text.as_str())),
        _ => None,
    };
    known.unwrap_or_else(|| Json::from(value_text(type_name, value)))
}

/// Infinities and NaN are no numbers in JSON.
fn float(number: f64) -> Json {
    serde_json::Number::from_f64(number)
        .map_or_else(|| Json::from(number.to_string()), Json::Number)
}
