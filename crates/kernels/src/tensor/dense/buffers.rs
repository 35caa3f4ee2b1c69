//! Kernels on buffers, on tensors that share them, and printing both.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;
use tfrt_host::{AnyAsyncValue, Chain, Error, HostContext};
use tfrt_tensor::{
    BF16, Bool, Complex, DType, DenseHostTensor, Element, F16, Tensor, TensorMetadata, TensorShape,
};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_dht.print_tensor", print)
        .add("tfrt_dht.print_tensor_shape", print_shape)
        .add("tfrt_dht.get_tensor_shape", shape)
        .add("tfrt_dht.no_op_ht", |_: &Tensor| Chain)
        .add("tfrt_dht.allocate_buffer", allocate)
        .add("tfrt_dht.get_buffer", buffer)
        .add("tfrt_dht.get_buffer_slice", slice)
        .add("tfrt_dht.print_buffer", print_buffer);
    type Make = fn(&HostBuffer, &TensorShape) -> Result<(Tensor, Chain), Error>;
    add_all! { registry, Make,
        "tfrt_dht.make_tensor.ui8" => make::<u8>;
        "tfrt_dht.make_tensor.ui16" => make::<u16>;
        "tfrt_dht.make_tensor.ui32" => make::<u32>;
        "tfrt_dht.make_tensor.ui64" => make::<u64>;
        "tfrt_dht.make_tensor.i8" => make::<i8>;
        "tfrt_dht.make_tensor.i32" => make::<i32>;
        "tfrt_dht.make_tensor.i64" => make::<i64>;
        "tfrt_dht.make_tensor.f16" => make::<F16>;
        "tfrt_dht.make_tensor.bf16" => make::<BF16>;
        "tfrt_dht.make_tensor.f32" => make::<f32>;
        "tfrt_dht.make_tensor.f64" => make::<f64>;
        "tfrt_dht.make_tensor.bool" => make::<Bool>;
        "tfrt_dht.make_tensor.complex64" => make::<Complex<f32>>;
        "tfrt_dht.make_tensor.complex128" => make::<Complex<f64>>;
    }
}

pub(super) fn register_synchronous(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_dht_sync.print_tensor", print_synchronously)
        .add("tfrt_dht_sync.get_tensor_shape", shape)
        .add("tfrt_dht_sync.allocate_buffer", allocate)
        .add("tfrt_dht_sync.get_buffer_slice", slice);
    type Make = fn(&HostBuffer, &TensorShape) -> Result<Tensor, Error>;
    add_all! { registry, Make,
        "tfrt_dht_sync.make_tensor.ui8" => make_synchronously::<u8>;
        "tfrt_dht_sync.make_tensor.ui16" => make_synchronously::<u16>;
        "tfrt_dht_sync.make_tensor.ui32" => make_synchronously::<u32>;
        "tfrt_dht_sync.make_tensor.ui64" => make_synchronously::<u64>;
        "tfrt_dht_sync.make_tensor.i8" => make_synchronously::<i8>;
        "tfrt_dht_sync.make_tensor.i32" => make_synchronously::<i32>;
        "tfrt_dht_sync.make_tensor.i64" => make_synchronously::<i64>;
        "tfrt_dht_sync.make_tensor.f16" => make_synchronously::<F16>;
        "tfrt_dht_sync.make_tensor.bf16" => make_synchronously::<BF16>;
        "tfrt_dht_sync.make_tensor.f32" => make_synchronously::<f32>;
        "tfrt_dht_sync.make_tensor.f64" => make_synchronously::<f64>;
        "tfrt_dht_sync.make_tensor.bool" => make_synchronously::<Bool>;
        "tfrt_dht_sync.make_tensor.complex64" => make_synchronously::<Complex<f32>>;
        "tfrt_dht_sync.make_tensor.complex128" => make_synchronously::<Complex<f64>>;
    }
}

/// `%c1 = tfrt_dht.print_tensor %t, %c0`
fn print(tensor: &Tensor, host: &HostContext) -> Result<Chain, Error> {
    host.output().print(tensor.to_text()?);
    Ok(Chain)
}

/// `tfrt_dht_sync.print_tensor %t`
fn print_synchronously(tensor: &Tensor, host: &HostContext) -> Result<(), Error> {
    print(tensor, host).map(|_| ())
}

/// `%c1 = "tfrt_dht.print_tensor_shape"(%t, %c0)`, of a tensor or of a shape
fn print_shape(value: AnyAsyncValue, host: &HostContext) -> Result<Chain, Error> {
    let tensor = value.get::<Tensor>().map(|tensor| &tensor.metadata().shape);
    let shape = tensor.or(value.get::<TensorShape>()).ok_or_else(|| {
        let found = value.type_name().unwrap_or("a value of unknown type");
        Error::invalid_argument(format!("expected a tensor or a shape, found {found}"))
    })?;
    host.output().print(format_args!("{shape}"));
    Ok(Chain)
}

/// `%s = tfrt_dht.get_tensor_shape %t`
fn shape(tensor: &Tensor) -> TensorShape {
    tensor.metadata().shape.clone()
}

/// `%b = tfrt_dht.allocate_buffer %size, %alignment`
fn allocate(size: i64, alignment: i64, host: &HostContext) -> Result<HostBuffer, Error> {
    let is_possible = |alignment: &usize| alignment.is_power_of_two() && *alignment <= 1 << 30;
    let alignment_bytes = usize::try_from(alignment).ok().filter(is_possible);
    let (Ok(len_bytes), Some(alignment)) = (usize::try_from(size), alignment_bytes) else {
        let message = format!("Cannot allocate host buffer of {size} bytes aligned to {alignment}");
        return Err(Error::invalid_argument(message));
    };
    HostBuffer::zeroed(host.allocator(), len_bytes, alignment).ok_or_else(|| {
        Error::resource_exhausted(format!("Cannot allocate host buffer of {size} bytes"))
    })
}

/// `%b, %c1 = tfrt_dht.get_buffer %t, %c0`
fn buffer(tensor: &Tensor) -> Result<(HostBuffer, Chain), Error> {
    Ok((tensor.as_dense()?.buffer().clone(), Chain))
}

/// `%part = tfrt_dht.get_buffer_slice %b, %offset, %size`
fn slice(buffer: &HostBuffer, offset: i64, size: i64) -> Result<HostBuffer, Error> {
    let range = || {
        let start = usize::try_from(offset).ok()?;
        Some(start..start.checked_add(usize::try_from(size).ok()?)?)
    };
    let part = range().and_then(|range| buffer.slice(range));
    part.ok_or_else(|| {
        let len_bytes = buffer.len_bytes();
        Error::invalid_argument(format!(
            "a slice of {size} bytes from {offset} on is not in a buffer of {len_bytes} bytes"
        ))
    })
}

/// `%c1 = tfrt_dht.print_buffer %b, %c0`
fn print_buffer(buffer: &HostBuffer, host: &HostContext) -> Chain {
    host.output().print(format_args!("{buffer}"));
    Chain
}

/// `%t, %c1 = tfrt_dht.make_tensor.<t> %b, %s, %c0`
fn make<T: Element>(buffer: &HostBuffer, shape: &TensorShape) -> Result<(Tensor, Chain), Error> {
    Ok((seen_as(T::DTYPE, buffer, shape, "dht.make_tensor")?, Chain))
}

/// `%t = tfrt_dht_sync.make_tensor.<t> %b, %s`
fn make_synchronously<T: Element>(
    buffer: &HostBuffer,
    shape: &TensorShape,
) -> Result<Tensor, Error> {
    seen_as(T::DTYPE, buffer, shape, "tfrt_dht_sync.make_tensor")
}

fn seen_as(
    dtype: DType,
    buffer: &HostBuffer,
    shape: &TensorShape,
    kernel: &str,
) -> Result<Tensor, Error> {
    let metadata = TensorMetadata::new(dtype, shape.clone());
    let len_bytes = buffer.len_bytes();
    if metadata.len_bytes()? != len_bytes {
        let size = dtype.size_bytes().unwrap_or(0);
        return Err(Error::invalid_argument(format!(
            "{kernel} failed: buffer_size ({len_bytes}) is not equal to the number of elements in \
             shape ({shape}) times element size ({size})"
        )));
    }
    Ok(DenseHostTensor::new(metadata, buffer.clone())?.into())
}
