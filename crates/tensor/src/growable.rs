//! [`GrowableTensor`]: a tensor with room to grow along one dimension, in a buffer that its shorter forms share.
//!
//! ```text
//! room 4, extent 2, one element more:   a0 a1 n0 ..   b0 b1 n1 ..   (a block for each place of the dimensions before)
//! ```
//!
//! It is what a slice that is appended to is in other languages. A handle has an extent, and looks at no element behind
//! it. The buffer knows up to where elements are taken. So a handle whose extent is all that is taken grows in place,
//! and nobody who holds a shorter one sees it; any other, of two that began from the same, is copied first. What a
//! handle shows never changes.
//!
//! There is nothing unsafe in this: elements behind the extents of all others are written under a right to their bytes
//! alone ([`HostBuffer::slice`]), and a block is read under a right to the bytes before the extent.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tfrt_host::memory::{BUFFER_ALIGNMENT, HostBuffer, OwnedReading};
use tfrt_host::{DType, Error, HostAllocator};

use crate::dense::no_memory;
use crate::{DenseHostTensor, TensorMetadata, TensorShape};

/// A tensor that grows in place along one dimension, up to its room: keys and values that a decoder has seen. Clones
/// share the elements, and so do longer tensors that were made of it.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::{DenseHostTensor, GrowableTensor};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let allocator = host.allocator();
/// let first = DenseHostTensor::from_slice(allocator, &[2, 1], &[1, 2])?;
/// let more = DenseHostTensor::from_slice(allocator, &[2, 1], &[3, 4])?;
/// let short = GrowableTensor::new(allocator, &first, 1, 10, "the cache")?;
/// let long = short.appended(allocator, &[&more])?;
/// assert_eq!(long.to_dense(allocator)?.read()?.elements::<i32>()?, [1, 3, 2, 4]);
/// assert_eq!(short.metadata().to_string(), "i32 [2, 1]");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct GrowableTensor(
    // Behind one address, so that tensors of any format are small.
    Arc<Handle>,
);

struct Handle {
    // Invariant: the shape is the room's but for the extent along its axis, which is at most the room.
    metadata: TensorMetadata,
    room: Arc<Room>,
    allocator: Arc<dyn HostAllocator>,
    /// The elements in a row, for those who can't read them from blocks.
    dense: OnceLock<DenseHostTensor>,
}

/// The buffer of all handles of one origin.
struct Room {
    /// The name of the tensor in messages.
    name: Arc<str>,
    axis: usize,
    /// The most elements along the axis.
    extent: usize,
    n_blocks: usize,
    /// The bytes of one element along the axis, of a block.
    row_bytes: usize,
    // Invariant: `n_blocks` blocks of `extent` rows.
    buffer: HostBuffer,
    /// The elements along the axis that are taken. Those behind belong to nobody.
    n_taken: Mutex<usize>,
}

impl GrowableTensor {
    /// Makes a tensor with the elements of `first`, and room for `room` along dimension `axis`. `name` is what messages
    /// call it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such dimension, or `first` is longer than the room; `ResourceExhausted` if
    /// there is no memory for it.
    pub fn new(
        allocator: &Arc<dyn HostAllocator>,
        first: &DenseHostTensor,
        axis: usize,
        room: usize,
        name: impl Into<Arc<str>>,
    ) -> Result<GrowableTensor, Error> {
        let metadata = first.metadata().clone();
        let Some(extent) = metadata.shape.extent(axis) else {
            let message = format!("a tensor of {metadata} has no dimension {axis} to grow along");
            return Err(Error::invalid_argument(message));
        };
        let name = name.into();
        if extent > room {
            return Err(too_long(&name, (axis, room), &metadata, None));
        }
        let room = Room::allocate(allocator, &metadata, (axis, room), name)?;
        room.take(0, extent);
        let grown = GrowableTensor::of(metadata, Arc::new(room), allocator);
        grown.write(0, first)?;
        Ok(grown)
    }

    /// Returns the first `extent` elements of a dense tensor along a dimension, where they lie.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it has not as many.
    pub fn first_of(
        allocator: &Arc<dyn HostAllocator>,
        dense: &DenseHostTensor,
        axis: usize,
        extent: usize,
    ) -> Result<GrowableTensor, Error> {
        let metadata = dense.metadata();
        let whole = metadata.shape.extent(axis).filter(|whole| extent <= *whole);
        let Some(whole) = whole else {
            return Err(Error::invalid_argument(format!(
                "a tensor of {metadata} has no first {extent} elements along dimension {axis}"
            )));
        };
        let (n_blocks, row_bytes) = layout(metadata, axis);
        let room = Room {
            name: Arc::from("a part of a tensor"),
            axis,
            extent: whole,
            n_blocks,
            row_bytes,
            buffer: dense.buffer().clone(),
            n_taken: Mutex::new(whole),
        };
        let metadata = with_extent(metadata, axis, extent)?;
        Ok(GrowableTensor::of(metadata, Arc::new(room), allocator))
    }

    fn of(
        metadata: TensorMetadata,
        room: Arc<Room>,
        allocator: &Arc<dyn HostAllocator>,
    ) -> GrowableTensor {
        GrowableTensor(Arc::new(Handle {
            metadata,
            room,
            allocator: allocator.clone(),
            dense: OnceLock::new(),
        }))
    }

    /// Type and shape.
    pub fn metadata(&self) -> &TensorMetadata {
        &self.0.metadata
    }

    /// Returns the dimension along which it grows.
    pub fn axis(&self) -> usize {
        self.0.room.axis
    }

    /// Returns the number of elements along the axis.
    pub fn extent(&self) -> usize {
        let extent = self.0.metadata.shape.extent(self.0.room.axis);
        extent.expect("the shape has the axis")
    }

    /// Returns the most elements that there can be along the axis.
    pub fn room(&self) -> usize {
        self.0.room.extent
    }

    /// Returns whether two tensors have a buffer in common.
    pub fn shares_buffer_with(&self, other: &GrowableTensor) -> bool {
        Arc::ptr_eq(&self.0.room, &other.0.room)
    }

    /// Returns the tensor with so many more elements behind its own, of unspecified contents: the caller
    /// [writes](Self::write) all of them before anybody reads them. It is in the same buffer if nobody else has taken
    /// what is behind this one, else in another one.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no room for them, `ResourceExhausted` if there is no memory for another buffer.
    pub fn extended(
        &self,
        allocator: &Arc<dyn HostAllocator>,
        n_more: usize,
    ) -> Result<GrowableTensor, Error> {
        let (room, extent) = (&self.0.room, self.extent());
        let total = extent.checked_add(n_more);
        let Some(total) = total.filter(|total| *total <= room.extent) else {
            let place = (room.axis, room.extent);
            return Err(too_long(&room.name, place, self.metadata(), Some(n_more)));
        };
        if n_more == 0 {
            return Ok(self.clone());
        }
        let metadata = with_extent(self.metadata(), room.axis, total)?;
        if room.take(extent, total) {
            return Ok(GrowableTensor::of(metadata, room.clone(), allocator));
        }
        let own = Room::allocate(
            allocator,
            &metadata,
            (room.axis, room.extent),
            room.name.clone(),
        )?;
        own.take(0, total);
        let grown = GrowableTensor::of(metadata, Arc::new(own), allocator);
        if extent * room.row_bytes > 0 {
            for block in 0..room.n_blocks {
                let to = grown.0.room.rows(block, 0..extent);
                to.write()?.copy_from_slice(&self.block(block)?);
            }
        }
        Ok(grown)
    }

    /// Returns the tensor with those of others behind its own elements, along its axis: in place, if nobody has appended
    /// anything to it before.
    ///
    /// # Errors
    ///
    /// Those of [`extended`](Self::extended) and [`write`](Self::write).
    pub fn appended(
        &self,
        allocator: &Arc<dyn HostAllocator>,
        parts: &[&DenseHostTensor],
    ) -> Result<GrowableTensor, Error> {
        let mut n_more = 0_usize;
        for part in parts {
            self.expect_fit(part)?;
            let n = part.shape().extent(self.axis()).unwrap_or(0);
            n_more = n_more.saturating_add(n);
        }
        let grown = self.extended(allocator, n_more)?;
        let mut place = self.extent();
        for part in parts {
            grown.write(place, part)?;
            place += part.shape().extent(self.axis()).unwrap_or(0);
        }
        Ok(grown)
    }

    /// Writes elements from a place along the axis on: into a tensor that was just [extended](Self::extended), before
    /// others see it.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if type or shape don't fit, or it would end behind the last element; `FailedPrecondition` if
    /// somebody reads what is to be written.
    pub fn write(&self, place: usize, part: &DenseHostTensor) -> Result<(), Error> {
        self.expect_fit(part)?;
        let room = &self.0.room;
        let n_rows = part.shape().extent(room.axis).unwrap_or(0);
        let end = place.checked_add(n_rows);
        let Some(end) = end.filter(|end| *end <= self.extent()) else {
            let (own, found) = (self.metadata(), part.shape());
            return Err(Error::invalid_argument(format!(
                "a tensor of shape {found} can't be written from {place} on along dimension {} of one of {own}",
                room.axis
            )));
        };
        let n_bytes = n_rows * room.row_bytes;
        if n_bytes == 0 {
            return Ok(());
        }
        let reading = part.read()?;
        for (block, from) in reading.bytes().chunks_exact(n_bytes).enumerate() {
            room.rows(block, place..end).write()?.copy_from_slice(from);
        }
        Ok(())
    }

    /// Returns the number of blocks in which the elements lie: the product of the extents before the axis.
    pub fn n_blocks(&self) -> usize {
        self.0.room.n_blocks
    }

    /// Lends the bytes of the elements of a block, which lie in a row.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such block, `FailedPrecondition` if somebody is writing it.
    pub fn block(&self, index: usize) -> Result<OwnedReading, Error> {
        let room = &self.0.room;
        if index >= room.n_blocks {
            let n = room.n_blocks;
            let message = format!("there is no block {index} of {n}");
            return Err(Error::invalid_argument(message));
        }
        room.rows(index, 0..self.extent()).read_owned()
    }

    /// Returns a copy of the elements in a row.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for it.
    pub fn to_dense(&self, allocator: &Arc<dyn HostAllocator>) -> Result<DenseHostTensor, Error> {
        let mut dense = DenseHostTensor::unspecified(allocator, self.metadata().clone())?;
        let n_bytes = self.extent() * self.0.room.row_bytes;
        if n_bytes > 0 {
            let bytes = dense.bytes_mut().expect("it is new");
            for (block, to) in bytes.chunks_exact_mut(n_bytes).enumerate() {
                to.copy_from_slice(&self.block(block)?);
            }
        }
        Ok(dense)
    }

    /// Returns the elements in a row: a copy that is kept as long as the handle, so that it is made once.
    ///
    /// # Errors
    ///
    /// Those of [`to_dense`](Self::to_dense).
    pub fn as_dense(&self) -> Result<&DenseHostTensor, Error> {
        if let Some(dense) = self.0.dense.get() {
            return Ok(dense);
        }
        let dense = self.to_dense(&self.0.allocator)?;
        Ok(self.0.dense.get_or_init(|| dense))
    }

    /// Checks that a tensor differs in the extent along the axis alone.
    fn expect_fit(&self, part: &DenseHostTensor) -> Result<(), Error> {
        part.metadata().expect_dtype(self.metadata().dtype)?;
        let (own, axis) = (self.metadata().shape.to_dims(), self.axis());
        let mut found = part.shape().to_dims();
        if found.len() == own.len() {
            found[axis] = own[axis];
        }
        if found == own {
            return Ok(());
        }
        let (own, found) = (self.metadata(), part.metadata());
        Err(Error::invalid_argument(format!(
            "a tensor of {found} can't be put behind one of {own} along dimension {axis}"
        )))
    }
}

impl Room {
    /// Allocates room for a tensor of this type, and this shape but for the axis.
    fn allocate(
        allocator: &Arc<dyn HostAllocator>,
        metadata: &TensorMetadata,
        (axis, extent): (usize, usize),
        name: Arc<str>,
    ) -> Result<Room, Error> {
        if metadata.dtype == DType::String {
            let message = "a tensor of strings does not grow in place";
            return Err(Error::invalid_argument(message));
        }
        let whole = with_extent(metadata, axis, extent)?;
        let (n_blocks, row_bytes) = layout(metadata, axis);
        let buffer = HostBuffer::unspecified(allocator, whole.len_bytes()?, BUFFER_ALIGNMENT);
        Ok(Room {
            name,
            axis,
            extent,
            n_blocks,
            row_bytes,
            buffer: buffer.ok_or_else(|| no_memory(&whole))?,
            n_taken: Mutex::new(0),
        })
    }

    /// Takes the elements from `from` to `to`, if those before `from` are all that are taken.
    fn take(&self, from: usize, to: usize) -> bool {
        let mut n_taken = self.n_taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = *n_taken == from;
        if is_last {
            *n_taken = to;
        }
        is_last
    }

    /// Returns the bytes of some rows of a block.
    fn rows(&self, block: usize, rows: std::ops::Range<usize>) -> HostBuffer {
        let first = block * self.extent;
        let range = (first + rows.start) * self.row_bytes..(first + rows.end) * self.row_bytes;
        let part = self.buffer.slice(range);
        part.expect("block and rows are within the room")
    }
}

impl fmt::Debug for GrowableTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Room { name, extent, .. } = &*self.0.room;
        write!(f, "{} with room for {extent} ({name})", self.metadata())
    }
}

/// Returns the number of blocks, and the bytes of one element along the axis of a block.
fn layout(metadata: &TensorMetadata, axis: usize) -> (usize, usize) {
    let extents = metadata.shape.to_dims();
    let product = |extents: &[usize]| -> usize {
        let is_empty = extents.contains(&0);
        let all = extents
            .iter()
            .fold(1, |n: usize, extent| n.saturating_mul(*extent));
        if is_empty { 0 } else { all }
    };
    let (n_blocks, n_inner) = (product(&extents[..axis]), product(&extents[axis + 1..]));
    let size = metadata.dtype.size_bytes().unwrap_or(1);
    match n_blocks {
        0 => (0, 0),
        n => (n, n_inner.saturating_mul(size)),
    }
}

fn with_extent(
    metadata: &TensorMetadata,
    axis: usize,
    extent: usize,
) -> Result<TensorMetadata, Error> {
    let mut extents = metadata.shape.to_dims();
    extents[axis] = extent;
    Ok(TensorMetadata::new(
        metadata.dtype,
        TensorShape::new(&extents)?,
    ))
}

/// Returns the error for a tensor, with so many elements more, for which there is no room.
#[cold]
fn too_long(
    name: &str,
    (axis, room): (usize, usize),
    metadata: &TensorMetadata,
    n_more: Option<usize>,
) -> Error {
    let extent = metadata.shape.extent(axis).unwrap_or(0);
    let needed = extent.saturating_add(n_more.unwrap_or(0));
    let more = n_more.map(|n| format!(" and {n} more")).unwrap_or_default();
    Error::invalid_argument(format!(
        "{name} has room for {room} along dimension {axis}, and {needed} are needed: for {metadata}{more}"
    ))
}

#[cfg(test)]
mod tests;
