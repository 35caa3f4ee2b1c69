//! Copies and fills.

use tfrt_host::memory::HostBuffer;
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext};

use super::buffers::Buffer;
use super::objects::Stream;
use crate::driver::{Fill, Transfer};

/// Queues a copy of so many bytes from the host. They are read now, as by CUDA from memory that is not pinned, so that the
/// host may write them again.
pub(super) fn up(
    to: &Buffer,
    from: &HostBuffer,
    len_bytes: usize,
    stream: &Stream,
    context: &ExecutionContext,
) -> Result<Chain, Error> {
    if len_bytes == 0 {
        return Ok(Chain);
    }
    let staged = HostBuffer::copy_of(context.allocator(), &from.read()?[..len_bytes]);
    let staged = staged.ok_or_else(|| {
        Error::resource_exhausted(format!("there are no {len_bytes} bytes for a copy"))
    })?;
    let from = staged.read_owned()?;
    stream.queue(&[to], |at| {
        let transfer = Transfer::Up { from, to: at[0] };
        copy(stream, transfer)
    })?;
    Ok(Chain)
}

/// Queues a copy of so many bytes to the host, which are there when the chain is.
pub(super) fn down(
    to: &HostBuffer,
    from: &Buffer,
    len_bytes: usize,
    stream: &Stream,
    context: &ExecutionContext,
) -> Result<AsyncValue<Chain>, Error> {
    if len_bytes == 0 {
        return Ok(AsyncValue::available(Chain));
    }
    let part = to.slice(0..len_bytes);
    let part = part.ok_or_else(|| Error::internal("sizes were compared"))?;
    let to = part.write_owned()?;
    stream.queue(&[from], |at| {
        let transfer = Transfer::Down { from: at[0], to };
        copy(stream, transfer)
    })?;
    let (event, stream) = (stream.stream.record()?, stream.clone());
    Ok(context.enqueue_blocking(move || {
        event.synchronize()?;
        stream.context.retire()?;
        Ok(Chain)
    }))
}

fn copy(stream: &Stream, transfer: Transfer) -> crate::GpuResult<()> {
    let raw = stream.context.inner().raw();
    let driver = stream.context.driver();
    driver.copy(raw, stream.stream.raw(), transfer)
}

/// Queues a copy between buffers of any kind, of equal size.
pub(super) fn between(
    to: Place<'_>,
    from: Place<'_>,
    stream: &Stream,
    context: &ExecutionContext,
) -> Result<AsyncValue<Chain>, Error> {
    let (len_to, len_from) = (to.len_bytes(), from.len_bytes());
    if len_to != len_from {
        return Err(Error::invalid_argument(format!(
            "Buffer sizes don't match: {len_to} (dst size) vs {len_from} (src size)"
        )));
    }
    let done = match (to, from) {
        (Place::Device(to), Place::Host(from)) => up(to, from, len_to, stream, context)?,
        (Place::Host(to), Place::Device(from)) => return down(to, from, len_to, stream, context),
        (Place::Device(to), Place::Device(from)) => {
            stream.queue(&[to, from], |at| match at[0] == at[1] {
                // Of what is copied onto itself, nothing is.
                true => Ok(()),
                false => copy(
                    stream,
                    Transfer::Within {
                        from: at[1],
                        to: at[0],
                        len_bytes: len_to,
                    },
                ),
            })?;
            Chain
        }
        (Place::Host(to), Place::Host(from)) => {
            if !to.overlaps(from) {
                to.write()?.copy_from_slice(&from.read()?);
            }
            Chain
        }
    };
    Ok(AsyncValue::available(done))
}

/// One side of a copy.
#[derive(Clone, Copy)]
pub(super) enum Place<'b> {
    Device(&'b Buffer),
    Host(&'b HostBuffer),
}

impl Place<'_> {
    fn len_bytes(self) -> usize {
        match self {
            Place::Device(buffer) => buffer.len_bytes(),
            Place::Host(buffer) => buffer.len_bytes(),
        }
    }
}

/// Queues the filling of a buffer with a value of four bytes.
pub(super) fn fill(to: &Buffer, value: &AnyAsyncValue, stream: &Stream) -> Result<Chain, Error> {
    let word = None
        .or_else(|| value.get_in_place::<i32>().map(i32::cast_unsigned))
        .or_else(|| value.get_in_place::<u32>())
        .or_else(|| value.get_in_place::<f32>().map(f32::to_bits));
    let word = word.ok_or_else(|| Error::invalid_argument("Expected 32 bit value."))?;
    let n = to.len_bytes() / 4;
    stream.queue(&[to], |at| {
        let raw = stream.context.inner().raw();
        let driver = stream.context.driver();
        driver.fill(raw, stream.stream.raw(), at[0], Fill::Word(word), n)
    })?;
    Ok(Chain)
}
