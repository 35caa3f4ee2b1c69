//! A plugin of operations that tell what the functions of the C API answered, here and in TensorFlow: the texts are
//! compared line by line.
//!
//! `plugins/beside/tensorflow.txt` has TensorFlow's, as `benches/peers/capi_beside.py` prints it; `differences.txt` has
//! the lines that differ, with the reason. `cargo xtask capi` asks TensorFlow again.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use tfrt_capi::rows::PluginOps;
use tfrt_corert::{AttrValue, IntoAttr, OpAttrs, TensorHandle};
use tfrt_host::{DType, ErrorCode};
use tfrt_tensor::{
    Bool, DenseHostTensor, PartialTensorShape, StringHostTensor, Tensor, TensorShape,
};

use crate::plugins::{Bed, folder, header_folder, load, unpacked};

const CASES: &str = include_str!("plugins/beside/cases.json");
const TENSORFLOW: &str = include_str!("plugins/beside/tensorflow.txt");
const DIFFERENCES: &str = include_str!("plugins/beside/differences.txt");

/// Codes of errors by their number in the C API.
const CODES: [ErrorCode; 17] = {
    use ErrorCode::*;
    [
        Ok,
        Cancelled,
        Unknown,
        InvalidArgument,
        DeadlineExceeded,
        NotFound,
        AlreadyExists,
        PermissionDenied,
        ResourceExhausted,
        FailedPrecondition,
        Aborted,
        OutOfRange,
        Unimplemented,
        Internal,
        Unavailable,
        DataLoss,
        Unauthenticated,
    ]
};

/// Builds the plugin: on TensorFlow's headers and for its libraries where these are there, else on ours.
fn build() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/plugins/beside");
    let files = [
        "beside.c",
        "values.c",
        "attributes.c",
        "contexts.c",
        "shapes.c",
    ];
    let library = folder().join("libbeside.so");
    let mut cc = Command::new("cc");
    // Constants in TensorFlow's headers are defined again in each file.
    cc.args([
        "-std=gnu11",
        "-shared",
        "-fPIC",
        "-O1",
        "-Wall",
        "-Werror",
        "-Wl,-z,muldefs",
    ]);
    cc.args(files.map(|file| sources.join(file)))
        .arg("-o")
        .arg(&library);
    match unpacked("tensorflow/tensorflow") {
        Some(tensorflow) => {
            cc.arg("-DTENSORFLOW")
                .arg("-I")
                .arg(tensorflow.join("include"));
            cc.arg("-L").arg(&tensorflow).arg("-Wl,--no-as-needed");
            cc.args([
                "-l:libtensorflow_framework.so.2",
                "-l:libtensorflow_cc.so.2",
            ]);
        }
        None => {
            cc.arg("-I").arg(header_folder());
        }
    }
    let built = match cc.output() {
        Ok(built) => built,
        Err(error) => {
            eprintln!("SKIPPED: there is no cc: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{text}");
    Some(library)
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn dtype(name: &Json) -> DType {
    if name == "string" {
        return DType::String;
    }
    let mut all = DType::ALL.into_iter();
    all.find(|dtype| Some(dtype.name()) == name.as_str())
        .unwrap()
}

/// Makes a tensor of type, extents and elements; one element stands for all.
fn tensor(bed: &Bed, json: &Json) -> Tensor {
    let extents: Vec<usize> = list(&json[1])
        .iter()
        .map(|extent| extent.as_u64().unwrap() as usize)
        .collect();
    let n: usize = extents.iter().product();
    let elements = list(&json[2]);
    let element = |index: usize| elements.get(index).unwrap_or(&elements[0]);
    let allocator = bed.runtime.host().allocator();
    /// `dense!(element => value)` makes a tensor of numbers.
    macro_rules! dense {
        ($element:ident => $value:expr) => {{
            let read = |$element: &Json| $value;
            let all: Vec<_> = (0..n).map(|index| read(element(index))).collect();
            DenseHostTensor::from_slice(allocator, &extents, &all)
                .unwrap()
                .into()
        }};
    }
    match dtype(&json[0]) {
        DType::F32 => dense!(one => one.as_f64().unwrap() as f32),
        DType::F64 => dense!(one => one.as_f64().unwrap()),
        DType::I32 => dense!(one => one.as_i64().unwrap() as i32),
        DType::I64 => dense!(one => one.as_i64().unwrap()),
        DType::I1 => dense!(one => Bool::from(one.as_bool().unwrap())),
        DType::String => {
            let shape = TensorShape::new(&extents).unwrap();
            let strings = elements.iter().map(|one| one.as_str().unwrap().into());
            StringHostTensor::new(shape, strings.collect())
                .unwrap()
                .into()
        }
        other => panic!("{other}"),
    }
}

fn attr(bed: &Bed, kind: &str, json: &Json) -> AttrValue {
    if let Some(kind) = kind.strip_prefix("list(") {
        let kind = kind.trim_end_matches(')');
        let all = list(json).iter().map(|one| attr(bed, kind, one));
        return AttrValue::Aggregate(all.collect());
    }
    match kind {
        "string" | "func" => json.as_str().unwrap().into_attr(),
        "int" => json.as_i64().unwrap().into_attr(),
        "float" => (json.as_f64().unwrap() as f32).into_attr(),
        "bool" => json.as_bool().unwrap().into_attr(),
        "type" => dtype(json).into_attr(),
        "shape" => {
            let extents: Vec<i64> = list(json).iter().map(|one| one.as_i64().unwrap()).collect();
            PartialTensorShape::from_i64(&extents).unwrap().into_attr()
        }
        "tensor" => match tensor(bed, json) {
            Tensor::Dense(tensor) => tensor.into_attr(),
            _ => panic!("{json}"),
        },
        other => panic!("{other}"),
    }
}

/// Writes a result in the words of Python, as the script does.
fn result_text(handle: &TensorHandle) -> String {
    let tensor = handle.tensor().unwrap().unwrap();
    let extents: Vec<usize> = tensor.metadata().shape.extents().collect();
    if let Tensor::String(strings) = tensor {
        let all: Vec<String> = strings
            .strings()
            .iter()
            .map(|one| format!("'{}'", String::from_utf8_lossy(one)))
            .collect();
        return format!("string {extents:?} [{}]", all.join(", "));
    }
    let read = tensor.as_dense().unwrap().read().unwrap();
    format!("float32 {extents:?} {:?}", read.elements::<f32>().unwrap())
}

/// Runs a case: the text that the operation gives, and its other results; or its error.
fn run(bed: &Bed, case: &Json) -> String {
    let inputs: Vec<TensorHandle> = list(&case["inputs"])
        .iter()
        .map(|json| bed.runtime.handle(tensor(bed, json)))
        .collect();
    let kept = (case["given"] != Json::Bool(true)).then(|| inputs.clone());
    let mut attrs = OpAttrs::new();
    for (name, value) in case["attrs"].as_object().into_iter().flatten() {
        let value = attr(bed, value[0].as_str().unwrap(), &value[1]);
        attrs.set_named(name, value).unwrap();
    }
    let op = format!("tf.{}", case["op"].as_str().unwrap());
    let results = bed.call(&op, inputs, &attrs);
    drop(kept);
    match results {
        Ok(results) => {
            let text = results[0].tensor().unwrap().unwrap();
            let text = text.as_strings().unwrap().strings()[0].clone();
            let mut text = String::from_utf8_lossy(&text).into_owned();
            for (index, result) in results.iter().enumerate().skip(1) {
                writeln!(text, "result {index}: {}", result_text(result)).unwrap();
            }
            text
        }
        Err(error) => {
            let code = CODES.iter().position(|code| *code == error.code()).unwrap();
            let mut text = format!("error: {code} {}\n", error.message());
            for payload in error
                .notes()
                .iter()
                .filter(|note| note.starts_with("beside"))
            {
                writeln!(text, "payload {payload}").unwrap();
            }
            text
        }
    }
}

/// Reads the list of differences: pairs of lines, TensorFlow's behind `<`, ours behind `>`.
fn differences() -> Vec<(&'static str, &'static str)> {
    let lines = DIFFERENCES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    let pair = |pair: &[&'static str]| {
        let theirs = pair[0].strip_prefix("< ").expect("a line of TensorFlow's");
        (theirs, pair[1].strip_prefix("> ").expect("a line of ours"))
    };
    lines.chunks_exact(2).map(pair).collect()
}

/// Returns whether a line is as a line of the list says, where `*` stands for any text.
fn fits(line: &str, pattern: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else {
        return line == pattern;
    };
    let Some(rest) = line.strip_prefix(before) else {
        return false;
    };
    (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits(&rest[at..], behind))
}

#[test]
fn functions_answer_what_tensorflows_answer() {
    let Some(library) = build() else { return };
    let plugin = load(&library).unwrap();
    let bed = Bed::new(PluginOps::new([&plugin]));
    let cases: Json = serde_json::from_str(CASES).unwrap();
    let mut ours = String::new();
    for (index, case) in list(&cases).iter().enumerate() {
        writeln!(ours, "== {index} {}", case["op"].as_str().unwrap()).unwrap();
        ours += &run(&bed, case);
    }
    std::fs::write(folder().join("beside.txt"), &ours).unwrap();
    let known = differences();
    let (mut seen, mut wrong, mut n_differ) = (BTreeSet::new(), String::new(), 0);
    for (theirs, ours) in TENSORFLOW.lines().zip(ours.lines()) {
        if theirs == ours {
            continue;
        }
        n_differ += 1;
        let is_known = |(left, right): &(&str, &str)| fits(theirs, left) && fits(ours, right);
        match known.iter().position(is_known) {
            Some(index) => drop(seen.insert(index)),
            None => writeln!(wrong, "< {theirs}\n> {ours}").unwrap(),
        }
    }
    assert!(wrong.is_empty(), "lines differ:\n{wrong}");
    assert_eq!(TENSORFLOW.lines().count(), ours.lines().count());
    let gone: Vec<_> = (0..known.len())
        .filter(|index| !seen.contains(index))
        .collect();
    let gone: Vec<_> = gone.into_iter().map(|index| known[index]).collect();
    assert!(gone.is_empty(), "lines that no longer differ: {gone:?}");
    let n = TENSORFLOW.lines().count();
    println!("{n} lines of TensorFlow's, of which {n_differ} differ");
}
