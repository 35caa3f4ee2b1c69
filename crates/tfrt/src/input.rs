//! Programs and models as they come in: text, compiled bytes or ONNX, told apart by their first bytes.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tfrt_bef::{BefBuffer, BefFile, layout};
use tfrt_compiler::CompileOptions;
use tfrt_compiler::legalize::Context;
use tfrt_compiler::onnx;
use tfrt_import::onnx as importer;
use tfrt_ir::{Diagnostics, Module, Source};
use tfrt_tensor::math::panel::InstructionSet;

use crate::error::OpenError;
use crate::evaluator::HostEvaluator;

#[allow(unsafe_code, reason = "a listed module")]
mod weights;

pub use weights::ApartWeights;

/// The path that stands for standard input, and the name that its text then has.
pub const STANDARD_INPUT: &str = "-";

/// A text larger than this is none that anybody has written.
const MAX_TEXT_BYTES: u64 = 1 << 29;

/// The offsets in a BEF file have 32 bits.
const MAX_BEF_BYTES: u64 = 1 << 32;

/// Lengths in protocol buffers have 31 bits.
const MAX_MODEL_BYTES: u64 = 1 << 31;

/// A program that was read, but not yet looked at.
#[derive(Clone, Debug)]
pub enum Input {
    /// MLIR.
    Text(Source),
    /// A BEF file.
    Bytes {
        /// What to call it in messages.
        name: String,
        /// Where weights may lie that have files of their own.
        outside: importer::Outside,
        /// The bytes.
        bytes: BefBuffer,
    },
    /// An ONNX model.
    Model {
        /// What to call it in messages.
        name: String,
        /// Where elements may lie that have files of their own.
        outside: importer::Outside,
        /// The bytes.
        bytes: ModelBytes,
    },
}

/// The bytes of a model. A counted handle.
#[derive(Clone)]
pub struct ModelBytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for ModelBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ModelBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Input {
    /// Maps a compiled file that the caller vouches for: nothing is read before it is needed, and
    /// weights are used where they lie. Another kind of file is read.
    ///
    /// # Safety
    ///
    /// As long as anything that was made of the input lives, nobody may change or truncate the file:
    /// changed bytes undo what was checked when it was opened, and a truncated file ends the process.
    ///
    /// # Errors
    ///
    /// As of [`read`](Self::read).
    #[allow(unsafe_code, reason = "a listed module")]
    pub unsafe fn map_trusted(path: impl AsRef<Path>) -> Result<Input, OpenError> {
        let path = path.as_ref();
        let unreadable = |reason| OpenError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        if path == Path::new(STANDARD_INPUT) {
            return Input::read(path);
        }
        let mut first = [0; layout::MAGIC.len()];
        let mut file = File::open(path).map_err(unreadable)?;
        if file.read_exact(&mut first).is_err() || first != layout::MAGIC {
            return Input::read(path);
        }
        // SAFETY: the caller promises what this demands.
        let bytes = unsafe { BefBuffer::map_trusted(path) };
        Ok(Input::Bytes {
            name: path.to_string_lossy().into_owned(),
            outside: beside(path),
            bytes: bytes.map_err(unreadable)?,
        })
    }

    /// Reads a file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// `Unreadable`; `Text` if the bytes begin like text and are not UTF-8.
    pub fn read(path: impl AsRef<Path>) -> Result<Input, OpenError> {
        Input::read_within(path, u64::MAX)
    }

    /// As [`read`](Self::read), of no more than so many bytes.
    ///
    /// # Errors
    ///
    /// As of [`read`](Self::read); `Unreadable` for a longer file.
    pub fn read_within(path: impl AsRef<Path>, max_bytes: u64) -> Result<Input, OpenError> {
        let path = path.as_ref();
        let unreadable = |reason| OpenError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        let name = path.to_string_lossy();
        if let Some(bytes) = read_compiled(path, max_bytes).map_err(unreadable)? {
            return Ok(Input::Bytes {
                name: name.into_owned(),
                outside: beside(path),
                bytes,
            });
        }
        let bytes = read_bytes(path, max_bytes).map_err(unreadable)?;
        let has_name = path
            .extension()
            .is_some_and(|extension| extension == "onnx");
        if lost_its_magic(path, &bytes) {
            return Ok(Input::Bytes {
                name: name.into_owned(),
                outside: beside(path),
                bytes: BefBuffer::from_vec(bytes),
            });
        }
        if !has_name && !is_model(&bytes) {
            return Input::from_bytes(&name, bytes);
        }
        Ok(Input::Model {
            name: name.into_owned(),
            outside: beside(path),
            bytes: ModelBytes(Arc::new(bytes)),
        })
    }

    /// Takes bytes for what they are.
    ///
    /// # Errors
    ///
    /// `Text` if the bytes begin like text and are not UTF-8.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Input, OpenError> {
        if bytes.starts_with(&layout::MAGIC) {
            return Ok(Input::Bytes {
                name: name.to_owned(),
                outside: importer::Outside::Unknown,
                bytes: BefBuffer::from_vec(bytes),
            });
        }
        if is_model(&bytes) {
            return Ok(Input::Model {
                name: name.to_owned(),
                outside: importer::Outside::Unknown,
                bytes: ModelBytes(Arc::new(bytes)),
            });
        }
        let source = Source::from_bytes(name, bytes).map_err(OpenError::Text)?;
        Ok(Input::Text(source))
    }

    /// Returns the name that messages give it.
    pub fn name(&self) -> &str {
        match self {
            Input::Text(source) => source.name(),
            Input::Bytes { name, .. } | Input::Model { name, .. } => name,
        }
    }

    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
        match self {
            Input::Text(source) => source.text().len(),
            Input::Bytes { bytes, .. } => bytes.len_bytes(),
            Input::Model { bytes, .. } => bytes.0.len(),
        }
    }

    /// Returns the input without leave to read other files: a model whose elements lie in one is refused.
    pub fn alone(self) -> Input {
        self.with_outside(importer::Outside::Refused)
    }

    /// Returns the input with bytes for the files that it names, given by a function of their names, such as parts of an
    /// archive.
    pub fn with_files(
        self,
        give: impl Fn(&str) -> Option<importer::SharedBytes> + Send + Sync + 'static,
    ) -> Input {
        self.with_outside(importer::Outside::Given(importer::Given::new(give)))
    }

    fn with_outside(mut self, other: importer::Outside) -> Input {
        if let Input::Model { outside, .. } | Input::Bytes { outside, .. } = &mut self {
            *outside = other;
        }
        self
    }

    /// Where elements may lie that have files of their own.
    fn outside(&self) -> &importer::Outside {
        match self {
            Input::Text(_) => &importer::Outside::Unknown,
            Input::Model { outside, .. } | Input::Bytes { outside, .. } => outside,
        }
    }

    /// Returns the files beside a model, without links, that elements of it were found in so far: by what has made
    /// a module or a program of it. No other input reads files.
    pub fn files_beside(&self) -> Vec<PathBuf> {
        match self.outside() {
            importer::Outside::In(folder) => folder.files_read(),
            _ => Vec::new(),
        }
    }

    /// Returns the module that a text or a model is, verified; `None` of bytes, which were one.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    pub fn module(&self) -> Result<Option<Module>, Diagnostics> {
        match self {
            Input::Text(source) => parse(source).map(Some),
            Input::Bytes { .. } => Ok(None),
            Input::Model { bytes, .. } => {
                let module = importer::import(bytes.clone(), &self.importing())?;
                tfrt_ir::verify(&module)?;
                Ok(Some(module))
            }
        }
    }

    /// Says all there is to say of an ONNX model, also of one that can't be imported; `None` of what is none.
    pub fn survey(&self) -> Option<Result<importer::Survey, Diagnostics>> {
        match self {
            Input::Model { bytes, .. } => Some(importer::survey(bytes.clone(), &self.importing())),
            _ => None,
        }
    }

    fn importing(&self) -> importer::Options {
        let mut options = importer::Options::new(self.name());
        options.outside.clone_from(self.outside());
        options
    }

    /// Returns the bytes of the program, compiled if it is text, accepted by the gate.
    ///
    /// # Errors
    ///
    /// `Text` with all that is wrong with a text; `Bytes` with the first thing that is wrong with
    /// bytes.
    pub fn open(&self) -> Result<BefFile, OpenError> {
        self.open_with(&HostEvaluator::default())
    }

    /// As [`open`](Self::open), with an evaluator for the constants of models.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub fn open_with(&self, evaluator: &HostEvaluator) -> Result<BefFile, OpenError> {
        let bytes = self.compiled(&CompileOptions::default(), |module| {
            lower_with(module, &onnx::Options::default(), evaluator)
        });
        let bytes = bytes.map_err(OpenError::Text)?;
        BefFile::open(bytes).map_err(|reason| OpenError::Bytes {
            name: self.name().to_owned(),
            reason,
        })
    }

    /// Returns the bytes of the program, compiled if they are not yet.
    ///
    /// # Errors
    ///
    /// All that is wrong with a text or a model, as far as the first stage that refuses it can tell.
    pub fn compile(&self, options: &CompileOptions) -> Result<BefBuffer, Diagnostics> {
        self.compiled(options, lower)
    }

    /// As [`compile`](Self::compile), for a file that is opened often: weights of a model are packed now, and
    /// laid out for an instruction set. `tfrt compile` writes these bytes.
    ///
    /// # Errors
    ///
    /// As of [`compile`](Self::compile).
    ///
    /// # Examples
    ///
    /// A compiled model is saved, and opened again:
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    /// use tfrt::Model;
    /// use tfrt::compiler::CompileOptions;
    /// use tfrt::input::Input;
    /// use tfrt::tensor::math::panel::InstructionSet;
    ///
    /// let input = Input::read("examples/layer.onnx")?;
    /// let compiled = input.compile_for(&CompileOptions::default(), InstructionSet::best())?;
    /// let path = std::env::temp_dir().join(format!("layer-{}.bef", std::process::id()));
    /// std::fs::write(&path, compiled.as_bytes())?;
    /// assert_eq!(Model::open(&path)?.inputs()[0].to_string(), "x: f32 [N, 2]");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile_for(
        &self,
        options: &CompileOptions,
        set: InstructionSet,
    ) -> Result<BefBuffer, Diagnostics> {
        self.compiled(options, |module| lower_for(module, set))
    }

    /// As [`compile_for`](Self::compile_for), with the weights that stay in files, if there are any, copied to one file that
    /// belongs to the program: `write` puts them there by [`ApartWeights::write`], and returns the id. The program looks for
    /// it beside itself, by the name `file`.
    ///
    /// # Errors
    ///
    /// As of [`compile`](Self::compile), and those of `write`.
    pub fn compile_apart<E: From<Diagnostics>>(
        &self,
        options: &CompileOptions,
        set: InstructionSet,
        file: &str,
        write: impl FnOnce(&ApartWeights) -> Result<String, E>,
    ) -> Result<BefBuffer, E> {
        let Some(module) = self.module()? else {
            return Ok(self.compile(options)?);
        };
        let mut module = lower_for(module, set)?;
        if let Some(apart) = ApartWeights::of(&module, self.outside()) {
            let id = write(&apart)?;
            apart.place(&mut module, file, &id);
        }
        Ok(tfrt_compiler::compile(&module, options)?)
    }

    fn compiled(
        &self,
        options: &CompileOptions,
        lower: impl FnOnce(Module) -> Result<Module, Diagnostics>,
    ) -> Result<BefBuffer, Diagnostics> {
        if let Input::Bytes { bytes, .. } = self {
            return Ok(bytes.clone());
        }
        let module = self.module()?.expect("what is no bytes is a module");
        tfrt_compiler::compile(&lower(module)?, options)
    }
}

/// The folder of a file that is read, or none of standard input.
fn beside(path: &Path) -> importer::Outside {
    match path == Path::new(STANDARD_INPUT) {
        true => importer::Outside::Unknown,
        false => importer::Outside::In(importer::Folder::of(path)),
    }
}

/// Reads a compiled file, straight to where it is used from; `None` if it is none, or no file.
fn read_compiled(path: &Path, max_bytes: u64) -> io::Result<Option<BefBuffer>> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok(None);
    }
    // What is no file may not be opened twice.
    let about = std::fs::metadata(path)?;
    if !about.is_file() || about.len() > MAX_BEF_BYTES.min(max_bytes) {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let mut first = [0; layout::MAGIC.len()];
    if file.read_exact(&mut first).is_err() {
        return Ok(None);
    }
    if first != layout::MAGIC {
        return Ok(None);
    }
    file.rewind()?;
    BefBuffer::read_from(&mut file).map(Some)
}

fn read_bytes(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    if path == Path::new(STANDARD_INPUT) {
        return read_within_limits(io::stdin().lock(), max_bytes);
    }
    read_within_limits(File::open(path)?, max_bytes)
}

/// Reads all there is, unless it is more than any program has, or than `max_bytes`: a device may never end.
fn read_within_limits(mut from: impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let first = MAX_TEXT_BYTES.min(max_bytes);
    from.by_ref().take(first).read_to_end(&mut bytes)?;
    let of_kind = match bytes.starts_with(&layout::MAGIC) {
        true => MAX_BEF_BYTES,
        false if bytes.first() == Some(&FIRST_OF_MODEL) => MAX_MODEL_BYTES,
        false => MAX_TEXT_BYTES,
    };
    let max_bytes = max_bytes.min(of_kind);
    // Of what fits there is one byte more at most: that which does not.
    let left = max_bytes - bytes.len() as u64 + 1;
    from.take(left).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message = format!("it is larger than the limit of {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// What models begin with, and texts never do.
const FIRST_OF_MODEL: u8 = 0x08;

/// Tells whether bytes are to be taken for a model, even if they turn out to be a broken one.
fn is_model(bytes: &[u8]) -> bool {
    !bytes.starts_with(&layout::MAGIC) && importer::looks_like_model(bytes)
}

/// Tells whether these are the bytes of a file that its name says was compiled, and that lost even its first bytes:
/// an empty text would be a program.
fn lost_its_magic(path: &Path, bytes: &[u8]) -> bool {
    path.extension().is_some_and(|extension| extension == "bef") && layout::MAGIC.starts_with(bytes)
}

/// Parses and verifies a text.
///
/// # Errors
///
/// All that is wrong with it.
pub fn parse(source: &Source) -> Result<Module, Diagnostics> {
    let module = tfrt_ir::parse(source)?;
    tfrt_ir::verify(&module)?;
    Ok(module)
}

/// Parses, verifies and compiles a text.
///
/// # Errors
///
/// All that is wrong with it, as far as the first stage that refuses it can tell.
pub fn compile(source: &Source, options: &CompileOptions) -> Result<BefBuffer, Diagnostics> {
    tfrt_compiler::compile(&lower(parse(source)?)?, options)
}

/// Makes a program of a module, if it is a graph in dialect `onnx`.
///
/// # Errors
///
/// All that keeps it from becoming one.
pub fn lower(module: Module) -> Result<Module, Diagnostics> {
    lower_with(module, &onnx::Options::default(), &HostEvaluator::default())
}

/// Makes a program for a file, with weights that are packed for an instruction set.
fn lower_for(module: Module, set: InstructionSet) -> Result<Module, Diagnostics> {
    let passes = onnx::Options {
        store: true,
        ..onnx::Options::default()
    };
    let evaluator = HostEvaluator::default().for_instruction_set(set);
    lower_with(module, &passes, &evaluator)
}

/// As [`lower`], by passes with these options. With `store` the program is for a file: what packs weights is run
/// now, and not when the model is opened.
fn lower_with(
    mut module: Module,
    options: &onnx::Options,
    evaluator: &HostEvaluator,
) -> Result<Module, Diagnostics> {
    if is_graph(&module) {
        onnx::pipeline(&mut module, options, &Context::new(evaluator))?;
    }
    Ok(module)
}

/// Tells whether a module has a function that is a graph in dialect `onnx`, and not a program yet.
pub fn is_graph(module: &Module) -> bool {
    let mut functions = module.children(module.top());
    functions.any(|function| module.op(function).attribute("onnx.inputs").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_are_told_apart_by_the_first_bytes() {
        let text = Input::from_bytes("a", b"func.func".to_vec()).unwrap();
        assert!(matches!(text, Input::Text(_)));
        let bytes = Input::from_bytes("a", vec![0x0b, 0xef, 0, 1]).unwrap();
        assert!(matches!(bytes, Input::Bytes { .. }));
        assert!(matches!(
            Input::from_bytes("a", Vec::new()).unwrap(),
            Input::Text(_)
        ));
    }

    #[test]
    fn bytes_that_are_neither_are_refused_with_the_place() {
        let error = Input::from_bytes("a", vec![b'x', 0xff]).unwrap_err();
        assert!(error.to_string().starts_with("a:1:2: error: "), "{error}");
    }
}
