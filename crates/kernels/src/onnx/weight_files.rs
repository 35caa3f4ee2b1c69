//! [`WeightFiles`]: files beside a program with constants of it; `cpu.onnx.External`, the kernel of such a constant.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::memory::HostBuffer;
use tfrt_host::{DType, Error, ExecutionContext};
use tfrt_tensor::{DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use super::constant::{HeldAttributes, integers};

/// The first bytes of a file of weights that was made with a program, before the [id](WeightFiles::header) of its
/// content.
const MAGIC: &[u8; 8] = b"tfrtdata";

/// The bytes of the header of such a file: weights lie at multiples of it.
const HEADER_BYTES: usize = 64;

/// The files with constants of a program. They are mapped: nothing of them is read before it is needed. A counted
/// handle, which the request that makes the constants holds.
#[derive(Clone)]
pub struct WeightFiles(Arc<Files>);

/// The function that opens files, and the files that are open.
struct Files {
    open: Box<OpenFile>,
    /// The files that are open, by name.
    opened: Mutex<HashMap<String, HostBuffer>>,
}

type OpenFile = dyn Fn(&str) -> Result<HostBuffer, Error> + Send + Sync;

impl WeightFiles {
    /// Makes a handle of a function that opens a file by its name in the program. Each file is opened once.
    pub fn new(open: impl Fn(&str) -> Result<HostBuffer, Error> + Send + Sync + 'static) -> Self {
        WeightFiles(Arc::new(Files {
            open: Box::new(open),
            opened: Mutex::default(),
        }))
    }

    /// Returns the bytes of a file.
    ///
    /// # Errors
    ///
    /// Why they can't be had.
    pub fn file(&self, name: &str) -> Result<HostBuffer, Error> {
        let mut opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = opened.get(name) {
            return Ok(file.clone());
        }
        let file = (self.0.open)(name)?;
        opened.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    /// Returns the first bytes of a file of weights that is made with a program; the id identifies its content.
    pub fn header(id: &str) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let text = MAGIC.iter().chain(id.as_bytes());
        for (to, byte) in header.iter_mut().zip(text) {
            *to = *byte;
        }
        header
    }

    /// Returns the id of a file of so many bytes, whose content has this hash.
    pub fn id(len_bytes: u64, hash: u64) -> String {
        format!("{len_bytes}-{hash:016x}")
    }
}

impl fmt::Debug for WeightFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(opened.keys()).finish()
    }
}

/// `%y = "cpu.onnx.External"() {dims = [2 : i64], element = "f32", file = "weights.bin", id = "", offset = 0 : i64}`: a
/// constant that stays in a file, which has the id, if one is stated.
///
/// Elements are not copied, but where they begin as no tensor's may.
pub(super) fn external(
    attributes: HeldAttributes,
    execution: &ExecutionContext,
) -> Result<Tensor, Error> {
    let wrong = || Error::invalid_argument("External: expected dims, element, file, id and offset");
    let [dims, element, file, id, offset] = &attributes.0[..] else {
        return Err(wrong());
    };
    let text = |held: &tfrt_host::kernel::param::HeldAttribute| {
        held.view().as_str().map(str::to_owned).ok_or_else(wrong)
    };
    let shape = TensorShape::from_i64(integers(dims.view()).ok_or_else(wrong)?)?;
    let (element, file, id) = (text(element)?, text(file)?, text(id)?);
    let offset = offset.view().as_i64().ok_or_else(wrong)?;
    let dtype = DType::from_mlir_name(&element).ok_or_else(|| {
        Error::invalid_argument(format!("External: unknown element type '{element}'"))
    })?;
    let files = execution.request().data::<WeightFiles>().ok_or_else(|| {
        let message = format!("the constant lies in the file '{file}', which was not opened");
        Error::failed_precondition(message).with_note("open the program as a model")
    })?;
    let bytes = files.file(&file)?;
    check(&bytes, &file, &id)?;
    let metadata = TensorMetadata::new(dtype, shape);
    let len_bytes = metadata.len_bytes()?;
    let start = usize::try_from(offset).ok();
    let range = start.and_then(|start| Some(start..start.checked_add(len_bytes)?));
    let elements = range.and_then(|range| bytes.slice(range)).ok_or_else(|| {
        Error::data_loss(format!(
            "a constant takes {len_bytes} bytes from byte {offset} of '{file}', which has {}",
            bytes.len_bytes()
        ))
    })?;
    let alignment = dtype.alignment_bytes().unwrap_or(1);
    if !elements.address().is_multiple_of(alignment) {
        let allocator = execution.host().allocator();
        let copy = DenseHostTensor::from_bytes(allocator, metadata, &elements.read()?)?;
        return Ok(copy.into());
    }
    Ok(DenseHostTensor::new(metadata, elements)?.into())
}

/// Checks that a file is the one that was made with the program.
fn check(bytes: &HostBuffer, file: &str, id: &str) -> Result<(), Error> {
    if id.is_empty() {
        return Ok(());
    }
    let found = bytes.read()?;
    let head = &found[..HEADER_BYTES.min(found.len())];
    let is_ours = *head == WeightFiles::header(id);
    let wanted: Option<usize> = id.split('-').next().and_then(|len| len.parse().ok());
    match wanted {
        Some(wanted) if is_ours && wanted == found.len() => Ok(()),
        Some(wanted) if is_ours => Err(Error::data_loss(format!(
            "the file of weights '{file}' has {} bytes, expected {wanted}",
            found.len()
        ))),
        _ => Err(Error::failed_precondition(format!(
            "the file of weights '{file}' does not belong to the program: expected id {id}"
        ))
        .with_note("`tfrt compile` makes both together: compile the model again")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_program_or_length_are_refused() {
        let id = WeightFiles::id(72, 7);
        let mut file = WeightFiles::header(&id).to_vec();
        file.resize(72, 1);
        let said = |bytes: &[u8]| {
            let buffer = HostBuffer::from_owner(bytes.to_vec());
            check(&buffer, "w", &id)
                .err()
                .map(|error| error.message().to_owned())
        };
        assert_eq!(said(&file), None);
        assert_eq!(
            said(&file[..70]).unwrap(),
            "the file of weights 'w' has 70 bytes, expected 72"
        );
        let expected = "the file of weights 'w' does not belong to the program: expected id \
                        72-0000000000000007";
        assert_eq!(said(&file[..40]).unwrap(), expected);
        file[20] ^= 1;
        assert_eq!(said(&file).unwrap(), expected);
    }

    #[test]
    fn file_is_opened_once() {
        let n_opened = Arc::new(Mutex::new(0));
        let files = WeightFiles::new({
            let n_opened = n_opened.clone();
            move |_| {
                *n_opened.lock().unwrap() += 1;
                Ok(HostBuffer::from_owner(vec![1_u8, 2]))
            }
        });
        assert_eq!(*files.file("w").unwrap().read().unwrap(), [1, 2]);
        assert_eq!(*files.clone().file("w").unwrap().read().unwrap(), [1, 2]);
        assert_eq!(*n_opened.lock().unwrap(), 1);
    }
}
