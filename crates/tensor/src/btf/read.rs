//! [`BtfReader`]: reads tensors of a file, one at a time.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use tfrt_host::memory::HostBuffer;
use tfrt_host::{DType, Error, HostAllocator};

use super::{BtfDType, BtfHeader, BtfLayout, HEADER_BYTES, swap_to_native};
use crate::{CooHostTensor, DenseHostTensor, MAX_RANK, Tensor, TensorMetadata, TensorShape};

/// A reader of a file of tensors, or of its bytes.
///
/// Only the record of the tensor that is asked for is read.
///
/// # Examples
///
/// ```
/// use std::io::Cursor;
///
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::{DType, DenseHostTensor, btf};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let tensor = DenseHostTensor::from_slice(host.allocator(), &[2], &[1_i32, 2])?;
/// let mut bytes = Vec::new();
/// btf::write(&mut bytes, &[tensor.into()])?;
///
/// let mut reader = btf::BtfReader::new("two.btf", Cursor::new(bytes))?;
/// let tensor = reader.read_dense(0, DType::I32, 1, host.allocator())?;
/// assert_eq!(tensor.read()?.elements::<i32>()?, [1, 2]);
/// let error = reader.read_dense(0, DType::F32, 1, host.allocator()).unwrap_err();
/// assert_eq!(error.message(), "unexpected tensor dtype i32. Expected dtype is f32");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Debug)]
pub struct BtfReader<S> {
    source: S,
    name: String,
    len_bytes: u64,
    n_tensors: u64,
}

/// Offset at which a payload continues.
type Position = u64;

impl<S: Read + Seek> BtfReader<S> {
    /// Reads the number of tensors; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// `DataLoss` if the source does not have as much as that.
    pub fn new(name: impl Into<String>, source: S) -> Result<BtfReader<S>, Error> {
        let mut reader = BtfReader {
            source,
            name: name.into(),
            len_bytes: 0,
            n_tensors: 0,
        };
        match reader.measure() {
            Ok(()) => Ok(reader),
            Err(note) => {
                let name = reader.name;
                let message = format!("failed to read tensor num_tensors from path {name}");
                Err(Error::data_loss(message).with_note(note))
            }
        }
    }

    fn measure(&mut self) -> Result<(), String> {
        let end = self.source.seek(SeekFrom::End(0));
        self.len_bytes = end.map_err(|error| error.to_string())?;
        self.n_tensors = self.word(0)?;
        Ok(())
    }

    /// Returns the number of tensors that the file states.
    pub fn n_tensors(&self) -> u64 {
        self.n_tensors
    }

    /// Returns the error for an index that no tensor of the file has.
    #[cold]
    pub fn no_tensor(&self, index: impl std::fmt::Display) -> Error {
        let (name, n_tensors) = (&self.name, self.n_tensors);
        Error::invalid_argument(format!(
            "invalid tensor index {index} to read tensor from path {name} which contains {n_tensors} \
             tensors"
        ))
    }

    /// Reads the header of a record: rank, type and layout.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no tensor `index`, `DataLoss` if the file ends before its header
    /// does.
    pub fn header(&mut self, index: u64) -> Result<BtfHeader, Error> {
        let found = self.find(index);
        found
            .map(|(header, _)| header)
            .map_err(|error| self.named(index, error))
    }

    /// Adds the file's name and the tensor's index to an error.
    #[cold]
    fn named(&self, index: u64, error: Error) -> Error {
        let name = &self.name;
        if error.message().contains(name.as_str()) {
            return error;
        }
        error.with_note(format!("it is tensor {index} of {name}"))
    }

    /// Reads a tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such tensor, or if its type, layout or extents are none that we
    /// have; `DataLoss` if the file ends before the tensor does, or if the coordinates of a sparse one
    /// don't fit; `ResourceExhausted` if there is no memory for it.
    pub fn read(
        &mut self,
        index: u64,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Tensor, Error> {
        let tensor = self.read_any(index, allocator);
        tensor.map_err(|error| self.named(index, error))
    }

    fn read_any(
        &mut self,
        index: u64,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Tensor, Error> {
        let (header, offset) = self.find(index)?;
        let Some(dtype) = header.dtype.dtype() else {
            let found = header.dtype;
            return Err(Error::invalid_argument(format!(
                "unexpected tensor dtype {found}"
            )));
        };
        match header.layout {
            BtfLayout::DENSE => Ok(self.dense(offset, header.rank, dtype, allocator)?.0.into()),
            BtfLayout::COO => Ok(self.coo(offset, header.rank, dtype, allocator)?.into()),
            layout => Err(unexpected_layout(layout)),
        }
    }

    /// Reads a dense tensor, and checks that it is of this type and rank.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is another, and those of [`read`](Self::read).
    pub fn read_dense(
        &mut self,
        index: u64,
        dtype: DType,
        rank: usize,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<DenseHostTensor, Error> {
        let found = self.expect(index, dtype, rank, BtfLayout::DENSE);
        let tensor =
            found.and_then(|(rank, offset)| Ok(self.dense(offset, rank, dtype, allocator)?.0));
        tensor.map_err(|error| self.named(index, error))
    }

    /// Reads a sparse tensor, and checks that it is of this type and rank.
    ///
    /// # Errors
    ///
    /// See [`read_dense`](Self::read_dense).
    pub fn read_coo(
        &mut self,
        index: u64,
        dtype: DType,
        rank: usize,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<CooHostTensor, Error> {
        let found = self.expect(index, dtype, rank, BtfLayout::COO);
        let tensor = found.and_then(|(rank, offset)| self.coo(offset, rank, dtype, allocator));
        tensor.map_err(|error| self.named(index, error))
    }

    /// Reads the header of a record, and returns it with the record's position.
    fn find(&mut self, index: u64) -> Result<(BtfHeader, Position), Error> {
        if index >= self.n_tensors {
            return Err(self.no_tensor(index));
        }
        let offset = index
            .checked_add(1)
            .and_then(|words| words.checked_mul(8))
            .ok_or_else(|| "the file is too short".to_owned())
            .and_then(|position| self.word(position))
            .map_err(|note| {
                let name = &self.name;
                let message =
                    format!("failed to read tensor offset from {name} for tensor index {index}");
                Error::data_loss(message).with_note(note)
            })?;
        let mut header = [0; HEADER_BYTES as usize];
        self.fill(offset, &mut header).map_err(|note| {
            let message = format!("failed to read tensor header from stream at offset {offset}");
            Error::data_loss(message).with_note(note)
        })?;
        let [rank @ .., dtype, layout, _, _, _, _, _, _] = header;
        let header = BtfHeader {
            rank: u64::from_le_bytes(rank),
            dtype: BtfDType(dtype),
            layout: BtfLayout(layout),
        };
        Ok((header, offset))
    }

    /// Finds a record, and checks its header.
    fn expect(
        &mut self,
        index: u64,
        dtype: DType,
        rank: usize,
        layout: BtfLayout,
    ) -> Result<(u64, Position), Error> {
        let (header, offset) = self.find(index)?;
        if header.dtype.dtype() != Some(dtype) {
            let (found, dtype) = (header.dtype, dtype.mlir_name());
            return Err(Error::invalid_argument(format!(
                "unexpected tensor dtype {found}. Expected dtype is {dtype}"
            )));
        }
        if header.rank != rank as u64 {
            let found = header.rank;
            return Err(Error::invalid_argument(format!(
                "unexpected tensor rank {found}. Expected rank is {rank}"
            )));
        }
        if header.layout != layout {
            return Err(unexpected_layout(header.layout));
        }
        Ok((header.rank, offset))
    }

    /// Reads a dense payload; `record` is the position of its record, for messages.
    fn dense(
        &mut self,
        record: Position,
        rank: u64,
        dtype: DType,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<(DenseHostTensor, Position), Error> {
        self.dense_at(
            record,
            record.saturating_add(HEADER_BYTES),
            rank,
            dtype,
            allocator,
        )
    }

    fn dense_at(
        &mut self,
        record: Position,
        position: Position,
        rank: u64,
        dtype: DType,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<(DenseHostTensor, Position), Error> {
        let (shape, position) = self.extents(record, position, rank)?;
        let metadata = TensorMetadata::new(dtype, shape);
        let no_data = |note: String| {
            let message = format!("failed to read tensor data from stream at offset {record}");
            Error::data_loss(message).with_note(note)
        };
        let len_bytes = metadata
            .len_bytes()
            .map_err(|error| no_data(error.message().to_owned()))?;
        self.check_there(position, len_bytes as u64)
            .map_err(no_data)?;
        let mut buffer = HostBuffer::zeroed(allocator, len_bytes, 1).ok_or_else(|| {
            Error::resource_exhausted(format!("cannot allocate result tensor of {metadata}"))
        })?;
        let bytes = buffer
            .as_bytes_mut()
            .expect("nobody else holds the new buffer");
        self.fill(position, bytes).map_err(no_data)?;
        swap_to_native(bytes, dtype);
        let tensor = DenseHostTensor::new(metadata, buffer)?;
        Ok((tensor, position + len_bytes as u64))
    }

    fn coo(
        &mut self,
        record: Position,
        rank: u64,
        dtype: DType,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<CooHostTensor, Error> {
        let start = record.saturating_add(HEADER_BYTES);
        let (shape, position) = self.extents(record, start, rank)?;
        let (indices, position) = self.dense_at(record, position, 2, DType::I64, allocator)?;
        let (values, _) = self.dense_at(record, position, 1, dtype, allocator)?;
        CooHostTensor::new(shape, indices, values).map_err(|error| {
            let message = format!("the tensor is not correctly formatted: {}", error.message());
            Error::data_loss(message)
        })
    }

    /// Reads extents, and returns them with the position behind them.
    fn extents(
        &mut self,
        record: Position,
        position: Position,
        rank: u64,
    ) -> Result<(TensorShape, Position), Error> {
        let failed = |note: String| {
            let message = format!("failed to read tensor dims at offset {record}");
            Error::data_loss(message).with_note(note)
        };
        let len = usize::try_from(rank).ok().filter(|rank| *rank <= MAX_RANK);
        let len = len.ok_or_else(|| failed(format!("there are at most {MAX_RANK} dimensions")))?;
        let mut bytes = [0; 8 * MAX_RANK];
        let bytes = &mut bytes[..8 * len];
        self.fill(position, bytes).map_err(failed)?;
        let (words, _) = bytes.as_chunks::<8>();
        let extents: Result<Vec<i64>, _> = words
            .iter()
            .map(|word| i64::try_from(u64::from_le_bytes(*word)))
            .collect();
        let extents = extents
            .map_err(|_| failed("an extent exceeds the largest 64-bit integer".to_owned()))?;
        let shape = TensorShape::from_i64(&extents)?;
        Ok((shape, position + bytes.len() as u64))
    }

    /// Reads a number.
    fn word(&mut self, position: Position) -> Result<u64, String> {
        let mut word = [0; 8];
        self.fill(position, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Fills `bytes` from the file, or returns the reason of failure.
    fn fill(&mut self, position: Position, bytes: &mut [u8]) -> Result<(), String> {
        self.check_there(position, bytes.len() as u64)?;
        self.source
            .seek(SeekFrom::Start(position))
            .and_then(|_| self.source.read_exact(bytes))
            .map_err(|error| error.to_string())
    }

    fn check_there(&self, position: Position, len_bytes: u64) -> Result<(), String> {
        let end = position.checked_add(len_bytes);
        if end.is_some_and(|end| end <= self.len_bytes) {
            return Ok(());
        }
        let file = self.len_bytes;
        Err(format!(
            "the file has {file} bytes, {len_bytes} are wanted from {position} on"
        ))
    }
}

fn unexpected_layout(layout: BtfLayout) -> Error {
    let number = layout.0;
    Error::invalid_argument(format!("unexpected tensor layout {layout}"))
        .with_note(format!("the file says {number}; 0 is dense, 1 is sparse"))
}
