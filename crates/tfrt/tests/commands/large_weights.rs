//! Models whose weights stay in files: six gibibytes of them in two hundred mebibytes of memory, and files that are not
//! what they were.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tfrt::input::Input;
use tfrt::{AnyError, Error, ErrorCode, Model, OpenError, Runtime, Tensor, Untrusted};

const ROWS: i64 = 3 << 19;
const COLUMNS: i64 = 1 << 10;
const LEN_BYTES: u64 = 6 << 30;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tfrt-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A message of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: i64) -> Message {
        self.varint(field << 3);
        self.varint(value.cast_unsigned());
        self
    }

    fn bytes(mut self, field: u64, bytes: impl AsRef<[u8]>) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.as_ref().len() as u64);
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    fn message(self, field: u64, message: Message) -> Message {
        self.bytes(field, message.0)
    }
}

fn value(name: &str, element: i64, dims: &[Option<i64>]) -> Message {
    let dims = dims.iter().map(|dim| match dim {
        Some(extent) => Message::default().number(1, *extent),
        None => Message::default().bytes(2, "N"),
    });
    let shape = dims.fold(Message::default(), |shape, dim| shape.message(1, dim));
    let tensor = Message::default().number(1, element).message(2, shape);
    let ty = Message::default().message(1, tensor);
    Message::default().bytes(1, name).message(2, ty)
}

/// `rows = Gather(w, ids)`, where `w` lies in `weights.bin`.
fn model(n_rows: i64) -> Vec<u8> {
    let entry = |key: &str, value: &str| Message::default().bytes(1, key).bytes(2, value);
    let weights = Message::default()
        .number(1, n_rows)
        .number(1, COLUMNS)
        .number(2, 1)
        .bytes(8, "w")
        .message(13, entry("location", "weights.bin"))
        .message(13, entry("offset", "0"))
        .number(14, 1);
    let node = Message::default()
        .bytes(1, "w")
        .bytes(1, "ids")
        .bytes(2, "rows")
        .bytes(3, "embedding/look_up")
        .bytes(4, "Gather");
    let graph = Message::default()
        .message(1, node)
        .bytes(2, "g")
        .message(5, weights)
        .message(11, value("ids", 7, &[None]))
        .message(12, value("rows", 1, &[None, Some(COLUMNS)]));
    let opset = Message::default().number(2, 17);
    let model = Message::default().number(1, 8).message(7, graph);
    model.message(8, opset).0
}

/// Writes the first number of a row.
fn write_row(mut file: &File, row: i64, first: f32) {
    let offset = (row * COLUMNS * 4).unsigned_abs();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(&first.to_le_bytes()).unwrap();
}

/// Looks up rows, and returns their first numbers.
fn look_up(model: &Model, runtime: &Runtime, ids: &[i64]) -> Result<Vec<f32>, Error> {
    let ids = Tensor::from_slice(&[ids.len()], ids)?;
    let outputs = model.call(&runtime.context(), [("ids", ids)]).wait()?;
    let rows = outputs.tensor("rows")?;
    let view = rows.view::<f32>()?;
    Ok((0..view.shape().extent(0).unwrap())
        .map(|row| view[[row, 0]])
        .collect())
}

/// Returns the most memory, in bytes, that the process has had.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

fn compile(model: &Path, to: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    let status = command.arg("compile").arg(model).arg("-o").arg(to).status();
    assert!(status.unwrap().success());
}

fn refused(runtime: &Runtime, path: &Path) -> Error {
    match runtime.open_model(path) {
        Err(OpenError::Constants(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the model opens"),
    }
}

#[test]
fn model_of_six_gibibytes_opens_and_runs_in_two_hundred_mebibytes() {
    let folder = Folder::new("large");
    let weights = File::create(folder.path("weights.bin")).unwrap();
    weights.set_len(LEN_BYTES).unwrap();
    write_row(&weights, 1, 1.5);
    write_row(&weights, ROWS - 1, -2.5);
    fs::write(folder.path("model.onnx"), model(ROWS)).unwrap();

    let runtime = Runtime::builder().threads(2).build();
    let opened = runtime.open_model(folder.path("model.onnx")).unwrap();
    let rows = look_up(&opened, &runtime, &[0, 1, ROWS - 1]).unwrap();
    assert_eq!(rows, [0.0, 1.5, -2.5]);
    let error = AnyError::from(look_up(&opened, &runtime, &[ROWS]).unwrap_err());
    let problem = &error.problems()[0];
    assert_eq!(problem.node.as_deref(), Some("embedding/look_up"));
    assert_eq!(problem.kernel.as_deref(), Some("cpu.graph.gather"));
    drop(opened);

    let compiled = folder.path("model.bef");
    compile(&folder.path("model.onnx"), &compiled);
    fs::remove_file(folder.path("weights.bin")).unwrap();
    assert!(fs::metadata(&compiled).unwrap().len() < 1 << 20);
    let data = folder.path("model.bef.data");
    let about = fs::metadata(&data).unwrap();
    assert_eq!(about.len(), LEN_BYTES + 64);
    assert!(about.blocks() * 512 < 64 << 20, "holes stay holes");
    let opened = runtime.open_model(&compiled).unwrap();
    let rows = look_up(&opened, &runtime, &[ROWS - 1, 2, 1]).unwrap();
    assert_eq!(rows, [-2.5, 0.0, 1.5]);
    drop(opened);
    let peak = peak();
    assert!(peak < 200 << 20, "{peak} bytes");

    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    let shown = command
        .args(["inspect", "weights"])
        .arg(&compiled)
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("6.00 GiB") && shown.contains("model.bef.data"),
        "{shown}"
    );

    let strangers = Runtime::builder().untrusted(Untrusted::default()).build();
    assert_eq!(
        refused(&strangers, &compiled).code(),
        ErrorCode::PermissionDenied
    );
    let file = File::options().write(true).open(&data).unwrap();
    file.set_len(LEN_BYTES).unwrap();
    assert_eq!(
        refused(&runtime, &compiled).message(),
        format!(
            "the file of weights 'model.bef.data' has {LEN_BYTES} bytes, expected {}",
            LEN_BYTES + 64
        )
    );
    (&file).seek(SeekFrom::Start(20)).unwrap();
    (&file).write_all(b"x").unwrap();
    let error = refused(&runtime, &compiled);
    let expected = "the file of weights 'model.bef.data' does not belong to the program: ";
    assert!(error.message().starts_with(expected), "{error}");
    fs::remove_file(&data).unwrap();
    let error = refused(&runtime, &compiled);
    assert_eq!(error.code(), ErrorCode::NotFound);
    let expected = "the file of weights can't be opened: cannot read 'model.bef.data': ";
    assert!(error.message().starts_with(expected), "{error}");
    assert_eq!(
        error.notes(),
        [format!("looked in '{}'", folder.0.display())]
    );
}

#[test]
fn files_of_a_model_that_is_given_as_bytes_are_asked_for_by_name() {
    let runtime = Runtime::builder().threads(2).build();
    let bytes: Vec<u8> = (0..2 * 1024)
        .flat_map(|n| (n as f32).to_le_bytes())
        .collect();
    let bytes = Arc::new(bytes);
    let give = move |name: &str| (name == "weights.bin").then(|| bytes.clone() as _);
    let input = Input::from_bytes("m.onnx", model(2)).unwrap();
    let opened = runtime.load_model(&input.with_files(give)).unwrap();
    assert_eq!(look_up(&opened, &runtime, &[1]).unwrap(), [1024.0]);

    let said = |opened: Result<Model, OpenError>| {
        let problems = opened.unwrap_err().problems();
        (
            problems[0].code,
            problems[0].node.clone(),
            problems[0].message.clone(),
        )
    };
    let input = || Input::from_bytes("m.onnx", model(2)).unwrap();
    let nothing = input().with_files(|_| None);
    let (code, node, message) = said(runtime.load_model(&nothing));
    assert_eq!((code, node.as_deref()), (Some("TF1014"), Some("w")));
    assert!(
        message.ends_with("has its elements in 'weights.bin', which is not given"),
        "{message}"
    );
    let (code, _, message) = said(runtime.load_model(&input()));
    assert_eq!(code, Some("TF1014"));
    assert!(
        message.ends_with("but the model's folder is unknown"),
        "{message}"
    );
}

#[test]
fn outputs_go_to_tensors_of_the_caller_if_they_fit() {
    let runtime = Runtime::builder().threads(2).build();
    let bytes: Arc<Vec<u8>> = Arc::new(vec![0; 4 * 1024]);
    let give = move |_: &str| Some(bytes.clone() as _);
    let input = Input::from_bytes("m.onnx", model(1)).unwrap();
    let opened = runtime.load_model(&input.with_files(give)).unwrap();
    let call = || opened.call(&runtime.context(), [("ids", vec![0_i64])]);
    let mut rows = Tensor::from_slice(&[1, 1024], &[7.0_f32; 1024]).unwrap();
    let address = rows.view::<f32>().unwrap().as_ptr();
    call().wait_into([("rows", &mut rows)]).unwrap();
    assert_eq!(rows.view::<f32>().unwrap()[..], [0.0; 1024]);
    assert_eq!(rows.view::<f32>().unwrap().as_ptr(), address);

    let mut other = Tensor::from_slice(&[1, 2], &[7.0_f32; 2]).unwrap();
    let error = call().wait_into([("rows", &mut other)]).unwrap_err();
    assert_eq!(
        error.message(),
        "output 'rows' is f32 [1, 1024], but is to be written to a tensor of f32 [1, 2]"
    );
    assert_eq!(other.to_vec::<f32>().unwrap(), [7.0; 2]);
}
