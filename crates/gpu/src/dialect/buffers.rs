//! [`Buffer`]: memory of a device or of the host, as programs hold it, whole or in parts.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_host::device::{DeviceBuffer, DeviceSlice};
use tfrt_host::memory::HostBuffer;
use tfrt_host::{AsyncValue, Chain, DeviceId, Error, HostContext};
use tfrt_tensor::{DType, DeviceTensor, Tensor, TensorMetadata, TensorShape};

use super::objects::{Context, Loaded, MemoryOf, Stream};
use crate::context;
use crate::driver::{DevicePointer, GpuResult, Platform, RawPinned};
use crate::memory::Block;

/// A part of memory that commands of a device use. Clones share it.
#[derive(Clone)]
pub(super) struct Buffer {
    memory: Memory,
    offset: usize,
    len_bytes: usize,
}

#[derive(Clone)]
enum Memory {
    Device(Arc<Owned>),
    Host(Arc<Registered>),
    // A variable, which its module keeps.
    Variable(Arc<Loaded>, DevicePointer),
}

/// A block of a device's memory, which is given back to its stream behind all uses.
struct Owned {
    stream: Arc<context::Stream>,
    block: Mutex<Option<Block>>,
    // Other streams whose commands have used it.
    users: Mutex<Vec<Arc<context::Stream>>>,
}

impl Owned {
    fn lock(&self) -> MutexGuard<'_, Option<Block>> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the block back behind what streams were given so far.
    fn give_back(&self) -> Result<(), Error> {
        let block = self.lock().take();
        let Some(block) = block else {
            return Err(given_back());
        };
        let users = std::mem::take(&mut *self.users.lock().unwrap_or_else(PoisonError::into_inner));
        for user in users {
            self.stream.wait(&user.record()?)?;
        }
        drop(block);
        Ok(())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have been given back before; of a lost context nothing is.
        let _given = self.give_back();
    }
}

fn given_back() -> Error {
    Error::failed_precondition("the buffer was given back")
}

/// A pinned buffer of the host that kernels reach by its address. While they may, the host has no right to it.
pub(super) struct Registered {
    context: Arc<context::Context>,
    raw: RawPinned,
    buffer: HostBuffer,
    lent: Mutex<Lent>,
}

#[derive(Default)]
struct Lent {
    at: Option<DevicePointer>,
    n_uses: usize,
}

impl Registered {
    fn lock(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pointer(&self) -> Result<DevicePointer, Error> {
        let mut lent = self.lock();
        if let Some(at) = lent.at {
            return Ok(at);
        }
        let right = self.buffer.clone().write_owned()?;
        let at = self
            .context
            .driver()
            .lend(self.context.raw(), self.raw, right)?;
        lent.at = Some(at);
        Ok(at)
    }

    /// Notes a use that was queued.
    pub(super) fn begin(&self) {
        self.lock().n_uses += 1;
    }

    /// Notes that a use is over; the host gets the buffer back behind the last one.
    pub(super) fn used(&self) -> GpuResult<()> {
        let mut lent = self.lock();
        lent.n_uses = lent.n_uses.saturating_sub(1);
        match lent.n_uses {
            0 => self.take_back(&mut lent),
            _ => Ok(()),
        }
    }

    fn take_back(&self, lent: &mut Lent) -> GpuResult<()> {
        match lent.at.take() {
            Some(_) => self
                .context
                .driver()
                .take_back(self.context.raw(), self.raw),
            None => Ok(()),
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // What fails here is told by the next call.
        let _taken = self.take_back(&mut self.lock());
        let driver = self.context.driver();
        let _unpinned = driver.unregister(self.context.raw(), self.raw);
    }
}

impl Buffer {
    /// Takes a buffer for work of a stream.
    pub(super) fn allocate(memory: &MemoryOf, stream: &Stream, size: i64) -> Result<Buffer, Error> {
        let len_bytes = super::count("a number of bytes to allocate", size)?;
        stream
            .context
            .expect("an allocator", memory.context.inner())?;
        let block = memory.allocator.take(&stream.stream, len_bytes)?;
        let owned = Owned {
            stream: stream.stream.clone(),
            block: Mutex::new(Some(block)),
            users: Mutex::default(),
        };
        Ok(Buffer {
            memory: Memory::Device(Arc::new(owned)),
            offset: 0,
            len_bytes,
        })
    }

    /// Pins a buffer of the host.
    pub(super) fn register(context: &Context, buffer: HostBuffer) -> Result<Buffer, Error> {
        let (inner, len_bytes) = (context.inner().clone(), buffer.len_bytes());
        let raw = inner.driver().register(inner.raw(), buffer.clone())?;
        let registered = Registered {
            context: inner,
            raw,
            buffer,
            lent: Mutex::default(),
        };
        Ok(Buffer {
            memory: Memory::Host(Arc::new(registered)),
            offset: 0,
            len_bytes,
        })
    }

    /// Returns a variable of a module.
    pub(super) fn variable(module: &Arc<Loaded>, name: &str) -> Result<Buffer, Error> {
        let (at, len_bytes) = module.global(name.trim_end_matches('\0'))?;
        Ok(Buffer {
            memory: Memory::Variable(module.clone(), at),
            offset: 0,
            len_bytes,
        })
    }

    /// Returns a part.
    pub(super) fn view(&self, offset: u64, size: u64) -> Result<Buffer, Error> {
        let len = self.len_bytes;
        let end = offset.checked_add(size).filter(|end| *end <= len as u64);
        if end.is_none() {
            return Err(Error::invalid_argument(format!(
                "buffer size ({len}) is smaller than offset ({offset}) plus size ({size})"
            )));
        }
        Ok(Buffer {
            memory: self.memory.clone(),
            offset: self.offset + offset as usize,
            len_bytes: size as usize,
        })
    }

    /// Gives the memory back, behind what a stream was given.
    pub(super) fn give_back(&self, stream: &Stream) -> Result<(), Error> {
        stream.context.expect("a buffer", self.context())?;
        match &self.memory {
            Memory::Device(owned) => {
                self.used_by(&stream.stream);
                owned.give_back()
            }
            Memory::Host(_) | Memory::Variable(..) => Err(Error::invalid_argument(
                "expected a buffer of an allocator, found one that belongs to the host or to a module",
            )),
        }
    }

    pub(super) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Checks that there are so many bytes.
    pub(super) fn expect_len(&self, what: &str, needed: Option<usize>) -> Result<(), Error> {
        if needed.is_some_and(|needed| needed <= self.len_bytes) {
            return Ok(());
        }
        let needed = needed.map_or("too many".to_owned(), |needed| needed.to_string());
        let message = format!(
            "{what} takes {needed} bytes, the buffer has {}",
            self.len_bytes
        );
        Err(Error::invalid_argument(message))
    }

    pub(super) fn context(&self) -> &context::Context {
        match &self.memory {
            Memory::Device(owned) => owned.stream.context(),
            Memory::Host(registered) => &registered.context,
            Memory::Variable(module, _) => module.context(),
        }
    }

    /// Returns the address, where pinned memory of the host is lent to the device.
    pub(super) fn pointer(&self) -> Result<DevicePointer, Error> {
        let begin = match &self.memory {
            Memory::Device(owned) => owned.lock().as_ref().ok_or_else(given_back)?.pointer(),
            Memory::Host(registered) => registered.pointer()?,
            Memory::Variable(_, at) => *at,
        };
        Ok(begin.offset(self.offset))
    }

    /// Remembers that commands of a stream use it.
    pub(super) fn used_by(&self, stream: &Arc<context::Stream>) {
        if let Memory::Variable(module, _) = &self.memory {
            module.used_by(stream);
        }
        if let Memory::Device(owned) = &self.memory
            && !Arc::ptr_eq(&owned.stream, stream)
        {
            let mut users = owned.users.lock().unwrap_or_else(PoisonError::into_inner);
            if !users.iter().any(|user| Arc::ptr_eq(user, stream)) {
                users.push(stream.clone());
            }
        }
    }

    pub(super) fn registered(&self) -> Option<&Arc<Registered>> {
        match &self.memory {
            Memory::Host(registered) => Some(registered),
            Memory::Device(_) | Memory::Variable(..) => None,
        }
    }

    /// Reads so many bytes of pinned memory of the host.
    pub(super) fn load(&self, n_bytes: usize) -> Result<Vec<u8>, Error> {
        let Some(registered) = self.registered() else {
            return Err(Error::invalid_argument(
                "expected memory that the host reads, found memory of a device",
            ));
        };
        self.expect_len("the value", Some(n_bytes))?;
        let bytes = registered.buffer.read()?;
        Ok(bytes[self.offset..][..n_bytes].to_vec())
    }

    fn place(&self) -> String {
        let at = match &self.memory {
            Memory::Device(owned) => owned.lock().as_ref().map(|block| block.pointer()),
            Memory::Host(registered) => {
                return format!("{:#x}", registered.buffer.address() + self.offset);
            }
            Memory::Variable(_, at) => Some(*at),
        };
        at.map_or("0x0".to_owned(), |at| at.offset(self.offset).to_string())
    }

    fn platform(&self) -> Platform {
        self.context().driver().platform()
    }

    /// Returns a tensor of the elements.
    pub(super) fn tensor(
        &self,
        kernel: &str,
        dtype: DType,
        shape: &TensorShape,
        host: &HostContext,
    ) -> Result<Tensor, Error> {
        let metadata = TensorMetadata::new(dtype, shape.clone());
        if metadata.len_bytes()? != self.len_bytes {
            // The type stands behind the kernel's name; the message has its size.
            let kernel = kernel.rsplit_once('.').map_or(kernel, |(kernel, _)| kernel);
            let (len, size) = (self.len_bytes, dtype.size_bytes().unwrap_or(0));
            return Err(Error::invalid_argument(format!(
                "{kernel} failed: buffer_size ({len}) is not equal to the number of elements in shape ({shape}) times element size ({size})"
            )));
        }
        let ordinal = self.context().ordinal();
        let name = format!("GPU:{ordinal}");
        let device = match host.devices().get(&name) {
            Some(device) => device,
            None => {
                let added = crate::add(host, super::driver_of(host)?, ordinal);
                // Somebody else may just have done so.
                added.or_else(|error| host.devices().get(&name).ok_or(error))?
            }
        };
        let elements = TensorMemory {
            device: device.id(),
            buffer: self.clone(),
        };
        let elements: Arc<dyn DeviceBuffer> = Arc::new(elements);
        let elements = DeviceSlice::new(elements, 0..self.len_bytes);
        let elements = elements.ok_or_else(|| Error::internal("the whole is a part"))?;
        let ready = AsyncValue::available(Chain);
        Ok(DeviceTensor::new(device, metadata, elements, ready)?.into())
    }
}

/// `GpuBuffer<pointer=0x7f.. (CUDA), size=64>`
impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, platform, len) = (self.place(), self.platform(), self.len_bytes);
        write!(f, "GpuBuffer<pointer={at} ({platform}), size={len}>")
    }
}

/// A buffer as memory of a tensor.
struct TensorMemory {
    device: DeviceId,
    buffer: Buffer,
}

impl DeviceBuffer for TensorMemory {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn len_bytes(&self) -> usize {
        self.buffer.len_bytes
    }

    fn describe(&self) -> String {
        self.buffer.to_string()
    }
}

/// Returns the text of a tensor that was made of a buffer: `DenseGpuTensor<dtype=f32, shape=[2], pointer=0x7f.. (CUDA)>`.
pub(super) fn tensor_text(tensor: &Tensor, is_upper: bool) -> Result<String, Error> {
    let metadata = tensor.metadata();
    let memory = match tensor {
        Tensor::Device(tensor) => tensor.elements().downcast::<TensorMemory>(),
        _ => None,
    };
    let Some(memory) = memory else {
        let message = format!("expected a tensor of a buffer of a GPU, found one of {metadata}");
        return Err(Error::invalid_argument(message));
    };
    let mut dtype = metadata.dtype.to_string();
    if is_upper {
        dtype = dtype.to_uppercase();
    }
    let (shape, at, platform) = (
        &metadata.shape,
        memory.buffer.place(),
        memory.buffer.platform(),
    );
    Ok(format!(
        "DenseGpuTensor<dtype={dtype}, shape={shape}, pointer={at} ({platform})>"
    ))
}
