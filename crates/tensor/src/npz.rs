//! Archives of NumPy, `.npz`: named arrays, each a file of [`npy`] in a ZIP archive, stored or
//! deflated.

use std::io::{Cursor, Read, Write};
use std::sync::Arc;

use tfrt_host::memory::Block;
use tfrt_host::{Error, HostAllocator};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::{Tensor, npy};

/// Suffix of each name in the archive.
const SUFFIX: &str = ".npy";
/// Approximate maximum factor by which a deflated file expands.
const MAX_EXPANSION: u64 = 1_100;

/// Reads all arrays, in the order of the archive. Other files are left out.
///
/// # Errors
///
/// `InvalidArgument` if the bytes are no such archive, or an array is not readable, which the message names;
/// `ResourceExhausted` if there is no memory for it.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::{DenseHostTensor, npz};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let weights = DenseHostTensor::from_slice(host.allocator(), &[2], &[1.5_f32, 2.0])?.into();
/// let bytes = npz::write([("weights", &weights)])?;
/// let arrays = npz::read(&bytes, host.allocator())?;
/// assert_eq!(arrays[0].0, "weights");
/// assert_eq!(arrays[0].1.to_text()?, weights.to_text()?);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn read(
    bytes: &[u8],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Vec<(String, Tensor)>, Error> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| invalid(None, &error))?;
    let mut arrays = Vec::new();
    let mut n_compressed = 0_u64;
    for index in 0..archive.len() {
        let file = archive
            .by_index(index)
            .map_err(|error| invalid(None, &error))?;
        let name = file.name().map_err(|error| invalid(None, &error))?;
        let Some(name) = name.strip_suffix(SUFFIX).map(str::to_owned) else {
            continue;
        };
        let n_bytes = file.size();
        // Files that lie in each other would take much more memory than the archive.
        n_compressed = n_compressed.saturating_add(file.compressed_size());
        if n_compressed > bytes.len() as u64 {
            let message = "the files before it and this one have more than the archive's bytes";
            return Err(invalid(Some(&name), &message));
        }
        // What an archive says of its files is believed as far as it could be so.
        let most = file.compressed_size().saturating_mul(MAX_EXPANSION);
        if n_bytes > most.saturating_add(MAX_EXPANSION) {
            let message = format!("it says that it has {n_bytes} bytes, which it can't");
            return Err(invalid(Some(&name), &message));
        }
        // It is told before it is there, and counts as memory of the allocator while it is read.
        let len = usize::try_from(n_bytes).ok();
        let Some(_aside) = len.and_then(|len| Block::reserve(allocator, len)) else {
            let message = format!("no memory for {n_bytes} bytes");
            return Err(in_array(&name, &Error::resource_exhausted(message)));
        };
        let mut array = Vec::new();
        file.take(n_bytes.saturating_add(1))
            .read_to_end(&mut array)
            .map_err(|error| invalid(Some(&name), &error))?;
        let tensor = npy::read(&array, allocator);
        arrays.push((
            name.clone(),
            tensor.map_err(|error| in_array(&name, &error))?,
        ));
    }
    Ok(arrays)
}

fn invalid(name: Option<&str>, reason: &dyn std::fmt::Display) -> Error {
    Error::invalid_argument(match name {
        Some(name) => format!("not a readable .npz file: array '{name}': {reason}"),
        None => format!("not a readable .npz file: {reason}"),
    })
}

fn in_array(name: &str, error: &Error) -> Error {
    Error::new(error.code(), format!("array '{name}': {}", error.message()))
}

/// Writes tensors as an archive, stored as they are, so that other programs can map them.
///
/// # Errors
///
/// Those of [`npy::write`]; `InvalidArgument` if two have one name.
pub fn write<'t>(
    tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
) -> Result<Vec<u8>, Error> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, tensor) in tensors {
        let bytes = npy::write(tensor).map_err(|error| in_array(name, &error))?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(u32::try_from(bytes.len()).is_err());
        let failed = |reason: &dyn std::fmt::Display| {
            Error::invalid_argument(format!("can't write array '{name}': {reason}"))
        };
        archive
            .start_file(format!("{name}{SUFFIX}"), options)
            .map_err(|error| failed(&error))?;
        archive.write_all(&bytes).map_err(|error| failed(&error))?;
    }
    let bytes = archive.finish();
    Ok(bytes.map_err(|error| invalid(None, &error))?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, DenseHostTensor, TensorMetadata, TensorShape};
    use proptest::prelude::*;
    use tfrt_host::memory::LimitedAllocator;
    use tfrt_host::{ErrorCode, HostContext, kernel::KernelRegistry};

    fn allocator() -> Arc<dyn HostAllocator> {
        let host = HostContext::builder(KernelRegistry::new()).build();
        host.allocator().clone()
    }

    fn archive() -> Vec<u8> {
        let of = |extents: &[usize], elements: &[i32]| {
            Tensor::from(DenseHostTensor::from_slice(&allocator(), extents, elements).unwrap())
        };
        let (a, b) = (of(&[2], &[1, 2]), of(&[0], &[]));
        write([("a", &a), ("layer/b", &b)]).unwrap()
    }

    #[test]
    fn archives_come_back() {
        let names: Vec<String> = read(&archive(), &allocator())
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["a", "layer/b"]);
        assert!(read(b"PK", &allocator()).is_err());
        let tensor = DenseHostTensor::scalar(&allocator(), 1).unwrap().into();
        assert!(write([("a", &tensor), ("a", &tensor)]).is_err());
    }

    #[test]
    fn archives_whose_arrays_lie_in_each_other_are_refused() {
        let bytes = archive();
        // The entry in the directory of the second array, said again for the first.
        let directory: Vec<usize> = bytes
            .windows(4)
            .enumerate()
            .filter(|(_, word)| *word == b"PK\x01\x02")
            .map(|(at, _)| at)
            .collect();
        let [first, second] = directory[..] else {
            panic!("there are two entries")
        };
        let end = bytes.windows(4).rposition(|word| word == b"PK\x05\x06");
        let mut end = bytes[end.unwrap()..].to_vec();
        let mut twice = bytes[..second].to_vec();
        for number in 0..8_u8 {
            let mut entry = bytes[first..second].to_vec();
            let name = entry.windows(5).position(|word| word == b"a.npy").unwrap();
            entry[name] = b'b' + number;
            twice.extend_from_slice(&entry);
        }
        let len = u32::try_from(twice.len() - first).unwrap();
        end[8..10].copy_from_slice(&9_u16.to_le_bytes());
        end[10..12].copy_from_slice(&9_u16.to_le_bytes());
        end[12..16].copy_from_slice(&len.to_le_bytes());
        twice.extend_from_slice(&end);
        let error = read(&twice, &allocator()).unwrap_err();
        assert!(
            error.message().contains("than the archive's bytes"),
            "{error}"
        );
    }

    #[test]
    fn arrays_count_while_they_are_read() {
        let zeros = DenseHostTensor::zeroed(
            &allocator(),
            TensorMetadata::new(DType::Ui8, TensorShape::new(&[100_000]).unwrap()),
        );
        let bytes = write([("zeros", &zeros.unwrap().into())]).unwrap();
        let limited = |bytes| -> Arc<dyn HostAllocator> {
            Arc::new(LimitedAllocator::new(allocator(), bytes))
        };
        // The file, and the tensor that is made of it.
        assert!(read(&bytes, &limited(201_000)).is_ok());
        let error = read(&bytes, &limited(99_000)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ResourceExhausted);
        assert_eq!(error.message(), "array 'zeros': no memory for 100128 bytes");
    }

    proptest! {
        #[test]
        fn damaged_archives_are_errors_or_arrays(at in 0..600_usize, bit in 0..8_u8, cut in 0..600_usize) {
            let mut bytes = archive();
            let _ = read(&bytes[..cut.min(bytes.len())], &allocator());
            let at = at % bytes.len();
            bytes[at] ^= 1_u8 << bit;
            let _ = read(&bytes, &allocator());
        }
    }
}
