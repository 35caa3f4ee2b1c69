//! Weights that stay in files: how the files beside an input are mapped, and how a program gets one of its own.
//!
//! A file that is mapped must stay as it is: that is asked of whoever opens a model with more than
//! [`MAX_READ_BYTES`](tfrt_import::onnx::MAX_READ_BYTES) of elements in other files, since no way to hold them is left
//! but the file itself. Whoever replaces such a file does so by renaming a new one to its place, as `tfrt compile` does.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use tfrt_bef::BefBuffer;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{DType, Error, HostContext};
use tfrt_import::onnx::ExternalData;
use tfrt_ir::attributes::{Bytes, DenseAttribute, DenseElements};
use tfrt_ir::{Attribute, Module, OpId, Type};
use tfrt_kernels::graph::share_bytes;
use tfrt_kernels::onnx::WeightFiles;

use super::Input;

/// The kernel that makes a constant of bytes in a file.
const EXTERNAL: &str = "cpu.onnx.External";

/// The alignment of weights in a file of their own.
const ALIGNMENT: u64 = 64;

/// The number of bytes that are copied, and hashed, at once.
const CHUNK_BYTES: usize = 1 << 20;

/// The kernel that makes a constant of bytes in the program.
const CONSTANT: &str = "cpu.onnx.Constant";

/// The end of the names of kernels that pack constants, on the host and on devices.
const PREPARE: &str = ".graph.prepare";

/// The size from which on constants are taken out of a program.
const LEAST_BYTES: usize = 64 << 10;

/// The large constants of a model that is opened: elements that lie beside its program, each for itself, so that those
/// whose kernels have made something else of them are given back when the model is open.
#[derive(Default)]
pub(crate) struct RetainedWeights(HashMap<String, Retained>);

/// The elements of a large constant.
struct Retained {
    bytes: Bytes,
    /// Whether the open model has the constant as it is, and not only what kernels have packed.
    is_kept: bool,
    /// Whether they are a part of the model's file.
    is_in_file: bool,
}

impl Retained {
    /// Returns the elements as the file of a constant. They are shared, unless the model keeps them and they are a part
    /// of its file, which can be given back then.
    fn file(&self, host: &HostContext) -> Result<HostBuffer, Error> {
        if !self.is_kept {
            return Ok(HostBuffer::from_owner(self.bytes.clone()));
        }
        let own = match self.is_in_file {
            false => HostBuffer::from_owner(self.bytes.clone()),
            true => HostBuffer::copy_of(host.allocator(), &self.bytes).ok_or_else(|| {
                let len_bytes = self.bytes.len();
                Error::resource_exhausted(format!("no memory for a constant of {len_bytes} bytes"))
            })?,
        };
        Ok(share_bytes(host, own))
    }
}

impl RetainedWeights {
    /// Takes the large constants of a program out of it, which was made of a file of these bytes, or of none. Elements
    /// are not copied.
    pub(crate) fn take(&mut self, module: &mut Module, file: &[u8]) {
        let file = file.as_ptr_range();
        let mut found = Vec::new();
        module.walk_pre_order(module.top(), &mut |op| {
            let results = module.op(op).results().iter();
            let mut users = results.flat_map(|result| module.users(*result));
            let is_kept = !users.all(|user| module.op(user.op).name().ends_with(PREPARE));
            found.extend(large_constant(module, op).map(|dense| (op, dense, is_kept)));
        });
        let number = |value: i64| Attribute::integer(value, Type::I64);
        for (op, dense, is_kept) in found {
            let name = format!("constant {} of the model", self.0.len());
            let dims = dense.shape().into_iter().map(number).collect();
            module.remove_attribute(op, "value");
            module.set_name(op, EXTERNAL);
            module.set_attribute(op, "dims", Attribute::array(dims));
            let element = dense.element_type().to_string();
            module.set_attribute(op, "element", Attribute::string(element));
            module.set_attribute(op, "file", Attribute::string(name.clone()));
            module.set_attribute(op, "id", Attribute::string(""));
            module.set_attribute(op, "offset", number(0));
            if let DenseElements::Bytes(bytes) = &dense.elements {
                let retained = Retained {
                    bytes: bytes.clone(),
                    is_kept,
                    is_in_file: file.contains(&bytes.as_ptr()),
                };
                self.0.insert(name, retained);
            }
        }
    }

    /// Returns the opener of these constants, which the models of a host hold once, and of the files of a place.
    pub(crate) fn into_files(self, outside: ExternalData, host: &HostContext) -> WeightFiles {
        let host = host.clone();
        WeightFiles::new(move |name| match self.0.get(name) {
            Some(retained) => retained.file(&host),
            None => open(&outside, name),
        })
    }
}

/// Returns the value of a constant of a program, if it has many bytes, one element after the other.
fn large_constant(module: &Module, op: OpId) -> Option<Arc<DenseAttribute>> {
    let operation = module.op(op);
    let value = operation
        .attribute("value")
        .filter(|_| *operation.name() == CONSTANT);
    let Some(Attribute::Dense(dense)) = value else {
        return None;
    };
    let DenseElements::Bytes(bytes) = &dense.elements else {
        return None;
    };
    let size_bytes = DType::from_mlir_name(&dense.element_type().to_string())?.size_bytes()?;
    let n_elements = usize::try_from(dense.n_elements()?).ok()?;
    let is_whole = n_elements.checked_mul(size_bytes) == Some(bytes.len());
    (!dense.splat && bytes.len() >= LEAST_BYTES && is_whole).then(|| dense.clone())
}

impl Input {
    /// Returns the opener of the files beside the input that hold weights of it, and of constants that were taken from
    /// its program.
    pub(crate) fn weights_with(&self, held: RetainedWeights, host: &HostContext) -> WeightFiles {
        held.into_files(self.outside().clone(), host)
    }

    /// Returns the opener of the files beside the input that hold weights of it.
    ///
    /// Files are mapped: as long as anything that was made of the input lives, nobody may change or truncate them.
    pub fn weights(&self) -> WeightFiles {
        let outside = self.outside().clone();
        WeightFiles::new(move |name| open(&outside, name))
    }
}

fn open(outside: &ExternalData, name: &str) -> Result<HostBuffer, Error> {
    match outside {
        ExternalData::Folder(folder) => {
            let looked = || format!("looked in '{}'", folder.path().display());
            let path = folder.find(name).map_err(|why| {
                Error::not_found(format!("the file of weights can't be opened: {why}"))
                    .with_note(looked())
            })?;
            // SAFETY: the file stays as it is while anything that was made of it lives: `Input::weights` and those who
            // open models demand that.
            let bytes = unsafe { BefBuffer::map_trusted(&path) };
            let bytes = bytes.map_err(|cause| {
                let message = format!("the file of weights '{name}' can't be mapped: {cause}");
                Error::unavailable(message).with_note(looked())
            })?;
            Ok(HostBuffer::from_owner(bytes))
        }
        ExternalData::Provider(given) => match given.file(name) {
            Some(bytes) => Ok(HostBuffer::from_owner(GivenBytes(bytes))),
            None => Err(Error::not_found(format!(
                "nothing is given for the file of weights '{name}'"
            ))),
        },
        ExternalData::Refused => Err(Error::permission_denied(format!(
            "weights lie in the file '{name}', which is refused to programs of strangers"
        ))),
        ExternalData::Unknown => {
            let message =
                format!("weights lie in the file '{name}', but the program's folder is unknown");
            Err(Error::failed_precondition(message).with_note("open the program by its path"))
        }
    }
}

/// The bytes of a file that the caller has given instead.
struct GivenBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl AsRef<[u8]> for GivenBytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// The constants of a program that stay in files, to be copied to one that is delivered with the program.
pub struct ExternalWeights {
    outside: ExternalData,
    pieces: Vec<Piece>,
    /// The piece of each operation.
    operations: Vec<(OpId, usize)>,
    len_bytes: u64,
}

/// A range of bytes of a file, and its offset in the new file.
struct Piece {
    file: String,
    from: u64,
    len_bytes: u64,
    to: u64,
}

impl ExternalWeights {
    /// Finds the constants of a program that stay in files; `None` if there are none.
    pub(super) fn of(module: &Module, outside: &ExternalData) -> Option<ExternalWeights> {
        let mut apart = ExternalWeights {
            outside: outside.clone(),
            pieces: Vec::new(),
            operations: Vec::new(),
            len_bytes: ALIGNMENT,
        };
        let mut known = HashMap::new();
        module.walk_pre_order(module.top(), &mut |op| {
            let Some((file, from, len_bytes)) = external(module, op) else {
                return;
            };
            let to = apart.len_bytes.next_multiple_of(ALIGNMENT);
            let piece = *known
                .entry((file.clone(), from, len_bytes))
                .or_insert_with(|| {
                    apart.pieces.push(Piece {
                        file,
                        from,
                        len_bytes,
                        to,
                    });
                    apart.len_bytes = to + len_bytes;
                    apart.pieces.len() - 1
                });
            apart.operations.push((op, piece));
        });
        (!apart.pieces.is_empty()).then_some(apart)
    }

    /// Writes all of them to an empty file; where they have holes, it has some. Returns its id.
    ///
    /// # Errors
    ///
    /// The error of the system on this file, or on those that the weights lie in.
    pub fn write(&self, mut to: &File) -> io::Result<String> {
        to.set_len(self.len_bytes)?;
        let mut hash = Hash::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut source = None;
        for piece in &self.pieces {
            let is_open = matches!(&source, Some((name, _)) if *name == piece.file);
            if !is_open {
                source = Some((
                    piece.file.clone(),
                    Source::open(&self.outside, &piece.file)?,
                ));
            }
            let (_, from) = source.as_mut().expect("it was opened above");
            let (mut at, end) = (piece.from, piece.from + piece.len_bytes);
            while at < end {
                at = from.next_data(at).min(end);
                let left = usize::try_from(end - at).unwrap_or(usize::MAX);
                let bytes = &mut chunk[..left.min(CHUNK_BYTES)];
                from.read(at, bytes)?;
                if bytes.iter().any(|byte| *byte != 0) {
                    let place = piece.to + (at - piece.from);
                    to.seek(SeekFrom::Start(place))?;
                    to.write_all(bytes)?;
                    hash.add(place, bytes);
                }
                at += bytes.len() as u64;
            }
        }
        let id = WeightFiles::id(self.len_bytes, hash.0);
        to.seek(SeekFrom::Start(0))?;
        to.write_all(&WeightFiles::header(&id))?;
        Ok(id)
    }

    /// Makes the program refer to the weights in that file.
    pub(super) fn place(&self, module: &mut Module, file: &str, id: &str) {
        for (op, piece) in &self.operations {
            let offset = i64::try_from(self.pieces[*piece].to).unwrap_or(i64::MAX);
            module.set_attribute(*op, "file", Attribute::string(file));
            module.set_attribute(*op, "id", Attribute::string(id));
            module.set_attribute(*op, "offset", Attribute::integer(offset, Type::I64));
        }
    }
}

/// Returns file, offset and length of the constant that an operation makes of a file.
fn external(module: &Module, op: OpId) -> Option<(String, u64, u64)> {
    let operation = module.op(op);
    if *operation.name() != EXTERNAL {
        return None;
    }
    let text = |name: &str| Some(operation.attribute(name)?.as_str()?.to_owned());
    let number = |value: &Attribute| u64::try_from(value.as_i64()?).ok();
    let element = DType::from_mlir_name(&text("element")?)?.size_bytes()? as u64;
    let dims = operation.attribute("dims")?.as_array()?.iter();
    let len_bytes = dims
        .map(number)
        .try_fold(element, |len, extent| len.checked_mul(extent?))?;
    let offset = number(operation.attribute("offset")?)?;
    Some((text("file")?, offset, len_bytes))
}

/// A file, or the bytes that are given for it.
enum Source {
    File(File),
    Given(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl Source {
    fn open(outside: &ExternalData, name: &str) -> io::Result<Source> {
        let missing = |why: String| io::Error::new(io::ErrorKind::NotFound, why);
        match outside {
            ExternalData::Folder(folder) => Ok(Source::File(File::open(
                folder.find(name).map_err(missing)?,
            )?)),
            ExternalData::Provider(given) => {
                let bytes = given.file(name);
                bytes
                    .map(Source::Given)
                    .ok_or_else(|| missing(format!("nothing is given for '{name}'")))
            }
            ExternalData::Unknown | ExternalData::Refused => {
                Err(missing(format!("the folder of '{name}' is unknown")))
            }
        }
    }

    /// Returns where the next bytes may lie that are not 0: as far as the system knows of holes.
    fn next_data(&self, at: u64) -> u64 {
        let Source::File(file) = self else {
            return at;
        };
        let Ok(offset) = libc::off_t::try_from(at) else {
            return at;
        };
        // SAFETY: the descriptor is that of an open file, and no memory is handed over.
        let found = unsafe { libc::lseek(file.as_raw_fd(), offset, libc::SEEK_DATA) };
        match u64::try_from(found) {
            Ok(found) => found,
            // There is nothing but a hole behind, or the system can't tell.
            Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => u64::MAX,
            Err(_) => at,
        }
    }

    fn read(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Source::File(file) => {
                file.seek(SeekFrom::Start(at))?;
                file.read_exact(bytes)
            }
            Source::Given(given) => {
                let all = (**given).as_ref();
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                let found = all.get(start..).and_then(|rest| rest.get(..bytes.len()));
                bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

/// A hash that identifies contents of files: FNV-1a over words.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(23);
    }

    /// Adds words that are not 0, with their places: so it does not depend on where chunks end.
    fn add(&mut self, place: u64, bytes: &[u8]) {
        for (index, word) in bytes.chunks(8).enumerate() {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            let word = u64::from_le_bytes(padded);
            if word != 0 {
                self.word(place + 8 * index as u64);
                self.word(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tfrt_host::kernel::KernelRegistry;
    use tfrt_ir::{Source, parse_type};

    use super::*;

    #[test]
    fn constants_that_are_packed_lie_in_the_file_and_those_that_are_kept_do_not() {
        let text = r#"func.func @main() -> (!t.tensor, !graph.prepared) {
            %kept = "cpu.onnx.Constant"() {value = dense<1> : tensor<1xi8>} : () -> !t.tensor
            %packed = "cpu.onnx.Constant"() {value = dense<1> : tensor<1xi8>} : () -> !t.tensor
            %made = "cpu.graph.prepare"(%packed) {op = "x"} : (!t.tensor) -> !graph.prepared
            tfrt.return %kept, %made : !t.tensor, !graph.prepared
        }"#;
        let mut module = tfrt_ir::parse(&Source::new("main.mlir", text)).unwrap();
        let file: Vec<u8> = (0..2 * LEAST_BYTES).map(|at| (at % 251) as u8).collect();
        let file = Bytes::from(file);
        let mut constants = Vec::new();
        module.walk_pre_order(module.top(), &mut |op| {
            constants.extend((*module.op(op).name() == CONSTANT).then_some(op));
        });
        for (op, at) in constants.iter().zip([0, LEAST_BYTES]) {
            let dense = DenseAttribute {
                ty: Type::tensor(vec![LEAST_BYTES as i64], parse_type("i8").unwrap()),
                elements: DenseElements::Bytes(file.slice(at..at + LEAST_BYTES)),
                splat: false,
            };
            module.set_attribute(*op, "value", Attribute::Dense(Arc::new(dense)));
        }
        let mut held = RetainedWeights::default();
        held.take(&mut module, &file);
        let host = HostContext::builder(KernelRegistry::new()).build();
        let files = held.into_files(ExternalData::Refused, &host);
        for (op, (at, is_copied)) in constants.iter().zip([(0, true), (LEAST_BYTES, false)]) {
            let name = module.op(*op).attribute("file").and_then(Attribute::as_str);
            let bytes = files.file(name.unwrap()).unwrap();
            assert_eq!(*bytes.read().unwrap(), file[at..at + LEAST_BYTES]);
            let is_elsewhere = bytes.address() != file[at..].as_ptr().addr();
            assert_eq!(is_elsewhere, is_copied);
        }
    }
}
