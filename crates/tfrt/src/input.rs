//! Programs and models as they come in: text, compiled bytes or a format of models, told apart by name and first bytes.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use tfrt_bef::{BefBuffer, BefFile, layout};
use tfrt_compiler::CompileOptions;
use tfrt_compiler::graph::refuse_outside_models;
use tfrt_compiler::legalize::Context;
use tfrt_compiler::onnx;
use tfrt_import::onnx as importer;
use tfrt_import::{FileHead, Imported, ModelBytes, Part, ReadLimits};
use tfrt_ir::verifier::Chains;
use tfrt_ir::{Diagnostics, Module, Source};
use tfrt_tensor::math::packed_gemm::InstructionSet;

use crate::error::OpenError;
use crate::evaluator::HostEvaluator;
use crate::formats::{Format, Formats};
use crate::model::ModelValues;
use crate::open_options::OpenOptions;

mod arguments;
mod dims;
#[allow(unsafe_code, reason = "a listed module")]
mod weights;

pub use weights::ExternalWeights;
pub(crate) use weights::RetainedWeights;

/// The path that stands for standard input, and the name that its text then has.
pub const STANDARD_INPUT: &str = "-";

/// The size of the largest text that is read.
const MAX_TEXT_BYTES: u64 = 1 << 29;

/// The size of the largest BEF file, whose offsets have 32 bits.
const MAX_BEF_BYTES: u64 = 1 << 32;

/// The size of the largest ONNX file: lengths in protocol buffers have 31 bits.
const MAX_MODEL_BYTES: u64 = 1 << 31;

/// A program that was read, but not yet looked at.
#[derive(Clone, Debug)]
pub enum Input {
    /// MLIR.
    Text(Source),
    /// A BEF file.
    Bytes {
        /// The name in messages.
        name: String,
        /// The place of weights that have files of their own.
        outside: importer::ExternalData,
        /// The bytes.
        bytes: BefBuffer,
    },
    /// A model, in a format that was told by its name or its first bytes.
    Model(Box<ModelInput>),
}

/// A model that was read, but not yet looked at.
#[derive(Clone, Debug)]
pub struct ModelInput {
    name: String,
    path: Option<PathBuf>,
    outside: importer::ExternalData,
    bytes: ModelBytes,
    format: Format,
    /// The formats that the model was read by: its own is one of them.
    formats: Formats,
    limits: ReadLimits,
}

impl Input {
    /// Maps a compiled file that the caller vouches for: nothing is read before it is needed, and
    /// weights are used where they lie. Another kind of file is read, by these formats.
    ///
    /// # Safety
    ///
    /// As long as anything that was made of the input lives, nobody may change or truncate the file:
    /// changed bytes undo what was checked when it was opened, and a truncated file ends the process.
    ///
    /// # Errors
    ///
    /// See [`read`](Self::read).
    #[allow(unsafe_code, reason = "a listed module")]
    pub unsafe fn map_trusted(
        path: impl AsRef<Path>,
        formats: &Formats,
    ) -> Result<Input, OpenError> {
        let path = path.as_ref();
        let read = || Input::read_with(path, formats, &ReadLimits::default());
        let unreadable = |reason| OpenError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        if path == Path::new(STANDARD_INPUT) {
            return read();
        }
        let mut first = [0; layout::MAGIC.len()];
        let mut file = File::open(path).map_err(unreadable)?;
        if file.read_exact(&mut first).is_err() || first != layout::MAGIC {
            return read();
        }
        // SAFETY: the caller promises what this demands.
        let bytes = unsafe { BefBuffer::map_trusted(path) };
        Ok(Input::Bytes {
            name: path.to_string_lossy().into_owned(),
            outside: beside(path),
            bytes: bytes.map_err(unreadable)?,
        })
    }

    /// Reads a file, or standard input for `-`, by the built-in formats.
    ///
    /// # Errors
    ///
    /// `Unreadable`; `Text` if the bytes begin like text and are not UTF-8.
    pub fn read(path: impl AsRef<Path>) -> Result<Input, OpenError> {
        Input::read_with(path, &Formats::builtin(), &ReadLimits::default())
    }

    /// Reads a file as [`read`](Self::read) does, by any formats, within limits.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read); `Unreadable` for a file of more bytes than the limit.
    pub fn read_with(
        path: impl AsRef<Path>,
        formats: &Formats,
        limits: &ReadLimits,
    ) -> Result<Input, OpenError> {
        let path = path.as_ref();
        let unreadable = |reason| OpenError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        let name = path.to_string_lossy();
        let reader = Reader {
            path: Some(path).filter(|path| *path != Path::new(STANDARD_INPUT)),
            formats,
            limits,
        };
        if let Some(folder) = reader.folder().map_err(unreadable)? {
            return Ok(folder);
        }
        if let Some(bytes) = read_compiled(path, limits.bytes).map_err(unreadable)? {
            return Ok(Input::Bytes {
                name: name.into_owned(),
                outside: beside(path),
                bytes,
            });
        }
        let bytes = reader.read().map_err(unreadable)?;
        if lost_its_magic(path, &bytes) {
            return Ok(Input::Bytes {
                name: name.into_owned(),
                outside: beside(path),
                bytes: BefBuffer::from_vec(bytes),
            });
        }
        match reader.format(&bytes) {
            Some(format) => Ok(reader.model(&name, bytes, beside(path), format)),
            // Text without a function is a program, as empty as it is; a file that is named for another format was cut.
            None if bytes.is_empty() && path.extension().is_some_and(|name| name != "mlir") => {
                let reason = "the file is empty: copy it again";
                Err(unreadable(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    reason,
                )))
            }
            None => Input::from_bytes_with(&name, bytes, formats),
        }
    }

    /// Recognises bytes that are there, by the built-in formats.
    ///
    /// # Errors
    ///
    /// `Text` if the bytes begin like text and are not UTF-8.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Input, OpenError> {
        Input::from_bytes_with(name, bytes, &Formats::builtin())
    }

    /// Recognises bytes as [`from_bytes`](Self::from_bytes) does, by any formats.
    ///
    /// # Errors
    ///
    /// See [`from_bytes`](Self::from_bytes).
    pub fn from_bytes_with(
        name: &str,
        bytes: Vec<u8>,
        formats: &Formats,
    ) -> Result<Input, OpenError> {
        if bytes.starts_with(&layout::MAGIC) {
            return Ok(Input::Bytes {
                name: name.to_owned(),
                outside: importer::ExternalData::Unknown,
                bytes: BefBuffer::from_vec(bytes),
            });
        }
        let reader = Reader {
            path: None,
            formats,
            limits: &ReadLimits::default(),
        };
        if let Some(format) = reader.format(&bytes) {
            return Ok(reader.model(name, bytes, importer::ExternalData::Unknown, format));
        }
        let source = Source::from_bytes(name, bytes).map_err(OpenError::Text)?;
        Ok(Input::Text(source))
    }

    /// Returns the name in messages.
    pub fn name(&self) -> &str {
        match self {
            Input::Text(source) => source.name(),
            Input::Bytes { name, .. } => name,
            Input::Model(model) => &model.name,
        }
    }

    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
        match self {
            Input::Text(source) => source.text().len(),
            Input::Bytes { bytes, .. } => bytes.len_bytes(),
            Input::Model(model) => model.bytes.as_ref().len(),
        }
    }

    /// Returns the input without leave to read other files: a model whose elements lie in one is refused.
    pub fn alone(self) -> Input {
        self.with_outside(importer::ExternalData::Refused)
    }

    /// Returns the input with bytes for the files that it names, given by a function of their names, such as parts of an
    /// archive.
    pub fn with_files(
        self,
        give: impl Fn(&str) -> Option<importer::SharedBytes> + Send + Sync + 'static,
    ) -> Input {
        self.with_outside(importer::ExternalData::Provider(
            importer::FileProvider::new(give),
        ))
    }

    fn with_outside(mut self, other: importer::ExternalData) -> Input {
        match &mut self {
            Input::Text(_) => {}
            Input::Bytes { outside, .. } => *outside = other,
            Input::Model(model) => model.outside = other,
        }
        self
    }

    /// Returns the place of elements that have files of their own.
    fn outside(&self) -> &importer::ExternalData {
        match self {
            Input::Text(_) => &importer::ExternalData::Unknown,
            Input::Bytes { outside, .. } => outside,
            Input::Model(model) => &model.outside,
        }
    }

    /// Returns the files beside a model, without links, that elements of it were found in so far: by what has made
    /// a module or a program of it. No other input reads files.
    pub fn files_beside(&self) -> Vec<PathBuf> {
        match self.outside() {
            importer::ExternalData::Folder(folder) => folder.files_read(),
            _ => Vec::new(),
        }
    }

    /// Returns the module that a text or a model is, verified; `None` of bytes, which were one.
    ///
    /// # Errors
    ///
    /// All that is wrong with it.
    pub fn module(&self) -> Result<Option<Module>, Diagnostics> {
        Ok(self.imported()?.map(|imported| imported.module))
    }

    /// Returns the module as [`module`](Self::module) does, with the dimensions that options fix.
    ///
    /// # Errors
    ///
    /// `Text` with all that is wrong with it; `Dimension` for a dimension that it can't have.
    pub fn module_with(&self, options: &OpenOptions) -> Result<Option<Module>, OpenError> {
        let Some(imported) = self.imported_as(options.part()).map_err(OpenError::Text)? else {
            return Ok(None);
        };
        let Imported { mut module, notes } = imported;
        options.warn(notes);
        arguments::bind(&mut module, options)?;
        dims::fix(&mut module, options)?;
        Ok(Some(module))
    }

    /// Returns the module as [`module`](Self::module) does, with warnings and remarks.
    ///
    /// # Errors
    ///
    /// See [`module`](Self::module).
    pub fn imported(&self) -> Result<Option<Imported>, Diagnostics> {
        self.imported_as(Part::default())
    }

    fn imported_as(&self, part: Part<'_>) -> Result<Option<Imported>, Diagnostics> {
        match self {
            Input::Text(source) => Ok(Some(parse(source)?.into())),
            Input::Bytes { .. } => Ok(None),
            Input::Model(model) => {
                let imported = model.import(part)?;
                tfrt_ir::verify(&imported.module)?;
                Ok(Some(imported))
            }
        }
    }

    /// Returns the survey of a model, also of one that can't be imported; `None` of an input that is no model.
    pub fn survey(&self) -> Option<Result<importer::Survey, Diagnostics>> {
        match self {
            Input::Model(model) => Some(model.survey()),
            _ => None,
        }
    }

    /// Returns the formats whose dialects a module of the input may have: those that it was read by.
    fn formats(&self) -> Option<&Formats> {
        match self {
            Input::Model(model) => Some(&model.formats),
            _ => None,
        }
    }

    /// Returns the bytes of the program, compiled if it is text, accepted by the gate.
    ///
    /// # Errors
    ///
    /// `Text` with all that is wrong with a text; `Bytes` with the first thing that is wrong with
    /// bytes.
    pub fn open(&self) -> Result<BefFile, OpenError> {
        let evaluator = HostEvaluator::default();
        self.open_with(&Formats::builtin(), &evaluator, &OpenOptions::new())
    }

    /// Returns the bytes as [`open`](Self::open) does, with an evaluator for the constants of models, formats for the
    /// dialects of a text, and options of a model; a model is in one of the formats that it was read by. In bytes that
    /// were compiled before, symbolic dimensions stay: [`Model::from_program_with`](crate::Model::from_program_with)
    /// fixes them.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); `Dimension` for a dimension that the model can't have.
    pub fn open_with(
        &self,
        formats: &Formats,
        evaluator: &HostEvaluator,
        options: &OpenOptions,
    ) -> Result<BefFile, OpenError> {
        self.open_by(formats, evaluator, options, None)
    }

    /// Returns the bytes as [`open_with`](Self::open_with) does; large constants of a model are taken out of the
    /// program, if somebody holds them.
    pub(crate) fn open_by(
        &self,
        formats: &Formats,
        evaluator: &HostEvaluator,
        options: &OpenOptions,
        held: Option<&mut RetainedWeights>,
    ) -> Result<BefFile, OpenError> {
        evaluator.check_device(options)?;
        let formats = self.formats().unwrap_or(formats);
        let passes = options.passes(false);
        let bytes = self.compiled(&CompileOptions::default(), options, |module| {
            let mut module = lower_with(module, formats, &passes, evaluator, options)?;
            if let Some(held) = held {
                let file = match self {
                    Input::Model(model) => model.bytes.as_ref(),
                    _ => &[],
                };
                held.take(&mut module, file);
            }
            Ok(module)
        });
        let file = BefFile::open(bytes?).map_err(|reason| OpenError::Bytes {
            name: self.name().to_owned(),
            reason,
        })?;
        if let Input::Bytes { .. } = self {
            match file.model() {
                Some(model) => ModelValues::of(model).check_dims(options)?,
                None => options.check_without_model()?,
            }
        }
        Ok(file)
    }

    /// Returns the bytes of the program, compiled if they are not yet.
    ///
    /// # Errors
    ///
    /// All that is wrong with a text or a model, as far as the first stage that refuses it can tell.
    pub fn compile(&self, options: &CompileOptions) -> Result<BefBuffer, Diagnostics> {
        let formats = self.formats().cloned().unwrap_or_default();
        let (passes, evaluator) = (onnx::Options::default(), HostEvaluator::default());
        if let Input::Bytes { bytes, .. } = self {
            return Ok(bytes.clone());
        }
        let module = self.module()?.expect("what is no bytes is a module");
        let opening = OpenOptions::new();
        let module = lower_with(module, &formats, &passes, &evaluator, &opening)?;
        tfrt_compiler::compile(&module, options)
    }

    /// Compiles as [`compile`](Self::compile) does, for a file that is opened often: weights of a model are packed now,
    /// and laid out for an instruction set. `tfrt compile` writes these bytes. Of bytes that were compiled before,
    /// nothing changes.
    ///
    /// # Errors
    ///
    /// `Text` with the errors of [`compile`](Self::compile); `Dimension` for a dimension that the model can't have.
    ///
    /// # Examples
    ///
    /// A compiled model is saved, and opened again:
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    /// use tfrt::compiler::CompileOptions;
    /// use tfrt::input::Input;
    /// use tfrt::{Model, OpenOptions};
    /// use tfrt::tensor::math::packed_gemm::InstructionSet;
    ///
    /// let input = Input::read("examples/layer.onnx")?;
    /// let (how, set) = (CompileOptions::default(), InstructionSet::best());
    /// let compiled = input.compile_for(&how, set, &OpenOptions::new())?;
    /// let path = std::env::temp_dir().join(format!("layer-{}.bef", std::process::id()));
    /// std::fs::write(&path, compiled.as_bytes())?;
    /// assert_eq!(Model::open(&path)?.inputs()[0].to_string(), "x: f32 [N, 2]");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile_for(
        &self,
        how: &CompileOptions,
        set: InstructionSet,
        options: &OpenOptions,
    ) -> Result<BefBuffer, OpenError> {
        HostEvaluator::default().check_device(options)?;
        self.compiled(how, options, |module| self.lower_for(module, set, options))
    }

    /// Compiles as [`compile_for`](Self::compile_for) does, with the weights that stay in files, if there are any,
    /// copied to one file that belongs to the program: `write` puts them there by [`ExternalWeights::write`], and
    /// returns the id. The program looks for it beside itself, by the name `file`.
    ///
    /// # Errors
    ///
    /// Those of [`compile_for`](Self::compile_for), and those of `write`.
    pub fn compile_with_external_weights<E: From<OpenError>>(
        &self,
        how: &CompileOptions,
        set: InstructionSet,
        options: &OpenOptions,
        file: &str,
        write: impl FnOnce(&ExternalWeights) -> Result<String, E>,
    ) -> Result<BefBuffer, E> {
        HostEvaluator::default().check_device(options)?;
        let Some(module) = self.module_with(options)? else {
            return Ok(self.compile(how).map_err(OpenError::Text)?);
        };
        let mut module = self
            .lower_for(module, set, options)
            .map_err(OpenError::Text)?;
        if let Some(apart) = ExternalWeights::of(&module, self.outside()) {
            let id = write(&apart)?;
            apart.place(&mut module, file, &id);
        }
        Ok(tfrt_compiler::compile(&module, how).map_err(OpenError::Text)?)
    }

    /// Makes a program for a file, with weights that are packed for an instruction set.
    fn lower_for(
        &self,
        module: Module,
        set: InstructionSet,
        options: &OpenOptions,
    ) -> Result<Module, Diagnostics> {
        let formats = self.formats().cloned().unwrap_or_default();
        let passes = options.passes(true);
        let evaluator = HostEvaluator::default().for_instruction_set(set);
        lower_with(module, &formats, &passes, &evaluator, options)
    }

    fn compiled(
        &self,
        how: &CompileOptions,
        options: &OpenOptions,
        lower: impl FnOnce(Module) -> Result<Module, Diagnostics>,
    ) -> Result<BefBuffer, OpenError> {
        if let Input::Bytes { bytes, .. } = self {
            return Ok(bytes.clone());
        }
        let module = self.module_with(options)?;
        let lowered = lower(module.expect("what is no bytes is a module"));
        let bytes = lowered.and_then(|module| tfrt_compiler::compile(&module, how));
        bytes.map_err(OpenError::Text)
    }
}

/// Returns the folder of a file that is read, in which external weights lie, or none of standard input.
fn beside(path: &Path) -> importer::ExternalData {
    match path == Path::new(STANDARD_INPUT) {
        true => importer::ExternalData::Unknown,
        false => importer::ExternalData::Folder(importer::Folder::of(path)),
    }
}

/// Reads a compiled file straight into the buffer of a program; `None` if the path is of another file, or of none.
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

/// The reader of one input, which recognises its format.
struct Reader<'a> {
    path: Option<&'a Path>,
    formats: &'a Formats,
    limits: &'a ReadLimits,
}

impl Reader<'_> {
    /// Returns the model that a folder is, if it is one.
    fn folder(&self) -> io::Result<Option<Input>> {
        let Some(path) = self.path.filter(|path| path.is_dir()) else {
            return Ok(None);
        };
        let format = self.formats.recognise(&FileHead {
            bytes: &[],
            path: self.path,
            is_folder: true,
        });
        let Some(format) = format else {
            let expected = self.formats.folder_files();
            let reason = format!("is a directory, expected one that has {expected}");
            return Err(io::Error::new(io::ErrorKind::IsADirectory, reason));
        };
        let outside = importer::ExternalData::Folder(importer::Folder::new(path));
        let name = path.to_string_lossy();
        Ok(Some(self.model(&name, Vec::new(), outside, format)))
    }

    /// Returns the format of a file that begins with these bytes, if it is a model.
    fn format(&self, bytes: &[u8]) -> Option<&Format> {
        let named = self.path.and_then(|path| self.formats.of_name(path));
        let head = FileHead {
            bytes,
            path: self.path,
            is_folder: false,
        };
        named.or_else(|| self.formats.recognise(&head))
    }

    fn model(
        &self,
        name: &str,
        bytes: Vec<u8>,
        outside: importer::ExternalData,
        format: &Format,
    ) -> Input {
        Input::Model(Box::new(ModelInput {
            name: name.to_owned(),
            path: self.path.map(Path::to_owned),
            outside,
            bytes: bytes.into(),
            format: *format,
            formats: self.formats.clone(),
            limits: *self.limits,
        }))
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        match self.path {
            Some(path) => self.read_from(File::open(path)?),
            None => self.read_from(io::stdin().lock()),
        }
    }

    /// Reads all there is, unless it is more than any program has, or than the limit: a device may never end.
    fn read_from(&self, mut from: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let max_bytes = self.limits.bytes;
        let first = MAX_TEXT_BYTES.min(max_bytes);
        from.by_ref().take(first).read_to_end(&mut bytes)?;
        let of_kind = match bytes.starts_with(&layout::MAGIC) {
            true => MAX_BEF_BYTES,
            // Of a shorter file it makes no difference.
            false if bytes.len() as u64 == first && self.format(&bytes).is_some() => {
                MAX_MODEL_BYTES
            }
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
}

impl ModelInput {
    /// Returns the format that the model is in.
    pub fn format(&self) -> &Format {
        &self.format
    }

    fn source<'s>(&'s self, part: Part<'s>) -> tfrt_import::Source<'s> {
        tfrt_import::Source {
            name: &self.name,
            bytes: self.bytes.clone(),
            path: self.path.as_deref(),
            part,
            external_data: &self.outside,
        }
    }

    fn import(&self, part: Part<'_>) -> Result<Imported, Diagnostics> {
        (self.format.front_end.import)(&self.source(part), &self.limits)
    }

    fn survey(&self) -> Result<importer::Survey, Diagnostics> {
        match self.format.front_end.survey {
            Some(survey) => survey(&self.source(Part::default()), &self.limits),
            None => Ok(importer::Survey {
                module: self.import(Part::default())?.module,
                problems: Diagnostics::default(),
                unknown: Vec::new(),
            }),
        }
    }
}

/// Returns whether these are the bytes of a file that its name says was compiled, and that lost even its first bytes:
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
    let dialects = Formats::builtin().text_dialects();
    let module = tfrt_ir::parse_in(source, &dialects)?;
    tfrt_ir::verify_in(&module, &dialects, Chains::Required)?;
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

/// Makes a program of a module, if it is a graph in the dialect of a built-in format.
///
/// # Errors
///
/// All that keeps it from becoming one.
pub fn lower(module: Module) -> Result<Module, Diagnostics> {
    lower_as(module, &OpenOptions::new())
}

/// Lowers a module as [`lower`] does, with the options of a model but its dimensions, which the module has already.
///
/// # Errors
///
/// See [`lower`].
pub fn lower_as(module: Module, options: &OpenOptions) -> Result<Module, Diagnostics> {
    let passes = options.passes(false);
    let evaluator = HostEvaluator::default();
    lower_with(module, &Formats::builtin(), &passes, &evaluator, options)
}

/// Lowers a module as [`lower`] does, by passes with these options. With `store` the program is for a file: what packs
/// weights is run now, and not when the model is opened.
fn lower_with(
    mut module: Module,
    formats: &Formats,
    passes: &onnx::Options,
    evaluator: &HostEvaluator,
    options: &OpenOptions,
) -> Result<Module, Diagnostics> {
    if is_graph(&module) {
        options.warn_of_precision();
        let context = Context::new(evaluator).dialects(formats.dialects());
        let told = onnx::pipeline(&mut module, passes, &context)?;
        options.warn(told);
        if let Some(report) = evaluator.take_report() {
            options.placed(&report)?;
        }
    } else {
        refuse_outside_models(&module)?;
    }
    Ok(module)
}

/// Returns whether a module has a function that is a graph of a model, and not a program yet.
pub fn is_graph(module: &Module) -> bool {
    let mut functions = module.children(module.top());
    functions.any(|function| module.op(function).attribute("model.input_names").is_some())
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
