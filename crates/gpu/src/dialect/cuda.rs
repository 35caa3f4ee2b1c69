//! The kernels of `tfrt_cuda`, and of `tfrt_cuda_test`.

#![expect(
    clippy::too_many_arguments,
    reason = "the operands of the original's operations"
)]

use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Operands};
use tfrt_host::memory::HostBuffer;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext, HostContext};
use tfrt_tensor::{DType, Tensor, TensorShape};

use super::buffers::{self, tensor_text};
use super::launch::{Given, TABLES, Tables, launch, strings};
use super::linear::{self, Product};
use super::networks::{self, Pooling, list};
use super::{objects, transfer};
use crate::driver::library::Extents;

named! {
    Device(objects::Device) = "!tfrt_cuda.device";
    Context(objects::Context) = "!tfrt_cuda.context";
    Stream(objects::Stream) = "!tfrt_cuda.stream";
    Event(objects::Event) = "!tfrt_cuda.event";
    Memory(objects::MemoryOf) = "!tfrt_cuda.allocator";
    Buffer(buffers::Buffer) = "!tfrt_cuda.buffer";
    Blas(Arc<Handle>) = "!tfrt_cuda.blas_handle";
    Dnn(Arc<Handle>) = "!tfrt_cuda.dnn_handle";
    PoolingOf(Pooling) = "!tfrt_cuda.dnn_pooling_descriptor";
    TensorOf(Extents) = "!tfrt_cuda.dnn_tensor_descriptor";
}

/// A handle of a library, whose work goes to the stream that was set.
pub(super) struct Handle {
    context: objects::Context,
    stream: Mutex<Option<objects::Stream>>,
}

impl Handle {
    fn new(context: &objects::Context) -> Arc<Handle> {
        Arc::new(Handle {
            context: context.clone(),
            stream: Mutex::default(),
        })
    }

    fn set(&self, stream: &objects::Stream) -> Result<Chain, Error> {
        self.context.expect("a stream", stream.context.inner())?;
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream.clone());
        Ok(Chain)
    }

    fn stream(&self) -> Result<objects::Stream, Error> {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream
            .clone()
            .ok_or_else(|| Error::failed_precondition("expected a handle whose stream was set"))
    }

    /// Returns the stream for work in a context.
    fn stream_in(&self, context: &objects::Context) -> Result<objects::Stream, Error> {
        context.expect("a handle", self.context.inner())?;
        self.stream()
    }
}

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_cuda.init", init)
        .add("tfrt_cuda.device.get", device)
        .add("tfrt_cuda.stream.create", stream)
        .add("tfrt_cuda.stream.synchronize", synchronize)
        .add("tfrt_cuda.event.create", event)
        .add("tfrt_cuda.event.record", record)
        .add("tfrt_cuda.event.poll", poll)
        .add("tfrt_cuda.allocator.create", allocator)
        .add("tfrt_cuda.allocator.destroy", |_: &Memory, _: Chain| Chain)
        .add("tfrt_cuda.mem.allocate", allocate)
        .add("tfrt_cuda.mem.print_metadata", print)
        .add("tfrt_cuda.mem.copy_host_to_device", up)
        .add("tfrt_cuda.mem.copy_device_to_host", down)
        .add("tfrt_cuda.tensor.print_metadata", print_tensor)
        .add("tfrt_cuda.module.load_static", load)
        .add("tfrt_cuda.launch", launch_kernel)
        .add("tfrt_cuda.blas.create", |context: &Context| {
            Blas(Handle::new(context))
        })
        .add(
            "tfrt_cuda.blas.set_stream",
            |blas: &Blas, stream: &Stream, _: Chain| blas.set(stream),
        )
        .add("tfrt_cuda.blas.axpy.f32", axpy)
        .add("tfrt_cuda.blas.gemm.f32", gemm)
        .add("tfrt_cuda.blas.gemm.ex", gemm_ex)
        .add("tfrt_cuda.blas.gemm.strided.batched.ex", gemm_batched)
        .add("tfrt_cuda.dnn.create", |context: &Context, _: Chain| {
            (Dnn(Handle::new(context)), Chain)
        })
        .add("tfrt_cuda.dnn.destroy", |_: &Dnn, _: Chain| Chain)
        .add(
            "tfrt_cuda.dnn.set_stream",
            |dnn: &Dnn, stream: &Stream, _: Chain| dnn.set(stream),
        )
        .add("tfrt_cuda.dnn.get_stream", |dnn: &Dnn, _: Chain| {
            dnn.stream().map(|stream| (Stream(stream), Chain))
        })
        .add("tfrt_cuda.dnn.create_pooling_descriptor", pooling)
        .add(
            "tfrt_cuda.dnn.destroy_pooling_descriptor",
            |_: &PoolingOf, _: Chain| Chain,
        )
        .add("tfrt_cuda.dnn.create_tensor_descriptor", tensor_descriptor)
        .add(
            "tfrt_cuda.dnn.destroy_tensor_descriptor",
            |_: &TensorOf, _: Chain| Chain,
        )
        .add("tfrt_cuda.dnn.pooling_forward", pool)
        .add("tfrt_cuda.dnn.pooling_backward", pool_gradient);
    add_make(registry, "tfrt_cuda.tensor.make.i8", DType::I8);
    add_make(registry, "tfrt_cuda.tensor.make.i32", DType::I32);
    add_make(registry, "tfrt_cuda.tensor.make.i64", DType::I64);
    add_make(registry, "tfrt_cuda.tensor.make.f32", DType::F32);
    add_make(registry, "tfrt_cuda.tensor.make.f64", DType::F64);
}

pub(super) fn register_test(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_cuda_test.context.get", context)
        .add("tfrt_cuda_test.copy_tensor_host_to_device", copy_tensor);
}

/// `%c1 = tfrt_cuda.init %c0`
fn init(_: Chain, host: &HostContext) -> Result<Chain, Error> {
    super::driver_of(host).map(|_| Chain)
}

/// `%device, %c1 = tfrt_cuda.device.get %index, %c0`
fn device(index: i32, _: Chain, host: &HostContext) -> Result<(Device, Chain), Error> {
    let device = objects::Device::get(super::driver_of(host)?, index)?;
    Ok((Device(device), Chain))
}

/// `%context, %c1 = tfrt_cuda_test.context.get %device, %c0`
fn context(device: &Device, _: Chain) -> Result<(Context, Chain), Error> {
    Ok((Context(device.primary()?), Chain))
}

/// `%stream, %c1 = tfrt_cuda.stream.create %context, %c0`
fn stream(context: &Context, _: Chain) -> Result<(Stream, Chain), Error> {
    Ok((Stream(context.stream()?), Chain))
}

/// `%c1 = tfrt_cuda.stream.synchronize %stream, %c0`
fn synchronize(stream: &Stream, _: Chain, context: &ExecutionContext) -> AsyncValue<Chain> {
    let stream = stream.0.clone();
    context.enqueue_blocking(move || stream.synchronize())
}

/// `%event = tfrt_cuda.event.create %context`
fn event(context: &Context) -> Result<Event, Error> {
    context.event().map(Event)
}

/// `%c1 = tfrt_cuda.event.record %event, %stream, %c0`
fn record(event: &Event, stream: &Stream, _: Chain) -> Result<Chain, Error> {
    event.record(stream)
}

/// `%c1 = tfrt_cuda.event.poll %event, %c0`
fn poll(event: &Event, _: Chain, context: &ExecutionContext) -> AsyncValue<Chain> {
    let event = event.0.clone();
    context.enqueue_blocking(move || event.synchronize())
}

/// `%allocator, %c1 = tfrt_cuda.allocator.create %context, %c0`
fn allocator(context: &Context, _: Chain) -> (Memory, Chain) {
    (Memory(context.allocator()), Chain)
}

/// `%buffer, %c1 = tfrt_cuda.mem.allocate %allocator, %stream, %size, %c0`
fn allocate(
    memory: &Memory,
    stream: &Stream,
    size: i64,
    _: Chain,
) -> Result<(Buffer, Chain), Error> {
    let buffer = buffers::Buffer::allocate(memory, stream, size)?;
    Ok((Buffer(buffer), Chain))
}

/// `%c1 = tfrt_cuda.mem.print_metadata %buffer, %c0`
fn print(buffer: &Buffer, _: Chain, host: &HostContext) -> Chain {
    host.output().print(format_args!("{}", buffer.0));
    Chain
}

fn add_make(registry: &mut KernelRegistry, name: &'static str, dtype: DType) {
    let make = move |buffer: &Buffer, shape: &TensorShape, _: Chain, host: &HostContext| {
        let tensor = buffer.tensor(name, dtype, shape, host)?;
        Ok::<(Tensor, Chain), Error>((tensor, Chain))
    };
    registry.add(name, make);
}

/// `%c1 = tfrt_cuda.tensor.print_metadata %tensor, %c0`
fn print_tensor(tensor: &Tensor, _: Chain, host: &HostContext) -> Result<Chain, Error> {
    let text = tensor_text(tensor, true)?;
    host.output().print(text);
    Ok(Chain)
}

/// Checks that as many bytes as are to be copied are in both buffers.
fn sizes(kernel: &str, to: usize, from: usize, size: i64) -> Result<usize, Error> {
    let size = super::count("a number of bytes to copy", size)?;
    for (what, found) in [("destination", to), ("source", from)] {
        if found < size {
            return Err(Error::invalid_argument(format!(
                "{kernel} failed: {what} buffer size ({found}) is less than number of bytes to copy ({size})"
            )));
        }
    }
    Ok(size)
}

/// `%c1 = tfrt_cuda.mem.copy_host_to_device %context, %dst, %src, %size, %stream, %c0`
fn up(
    context: &Context,
    to: &Buffer,
    from: &HostBuffer,
    size: i64,
    stream: &Stream,
    _: Chain,
    execution: &ExecutionContext,
) -> Result<Chain, Error> {
    context.expect("a context", stream.context.inner())?;
    let kernel = "tfrt_cuda.mem.copy_host_to_device";
    let size = sizes(kernel, to.len_bytes(), from.len_bytes(), size)?;
    transfer::up(to, from, size, stream, execution)
}

/// `%c1 = tfrt_cuda.mem.copy_device_to_host %context, %dst, %src, %size, %stream, %c0`
fn down(
    context: &Context,
    to: &HostBuffer,
    from: &Buffer,
    size: i64,
    stream: &Stream,
    _: Chain,
    execution: &ExecutionContext,
) -> Result<AsyncValue<Chain>, Error> {
    context.expect("a context", stream.context.inner())?;
    let kernel = "tfrt_cuda.mem.copy_device_to_host";
    let size = sizes(kernel, to.len_bytes(), from.len_bytes(), size)?;
    transfer::down(to, from, size, stream, execution)
}

/// `%buffer, %c1 = tfrt_cuda_test.copy_tensor_host_to_device %context, %allocator, %stream, %tensor, %c0`
fn copy_tensor(
    context: &Context,
    memory: &Memory,
    stream: &Stream,
    tensor: &Tensor,
    _: Chain,
    execution: &ExecutionContext,
) -> Result<(Buffer, Chain), Error> {
    context.expect("a context", stream.context.inner())?;
    let from = tensor.as_dense()?.buffer();
    let size = i64::try_from(from.len_bytes()).unwrap_or(i64::MAX);
    let buffer = buffers::Buffer::allocate(memory, stream, size)?;
    transfer::up(&buffer, from, from.len_bytes(), stream, execution)?;
    Ok((Buffer(buffer), Chain))
}

fn tables(context: &ExecutionContext) -> Result<Arc<Tables>, Error> {
    let resources = context.request().resources();
    let resources =
        resources.ok_or_else(|| Error::failed_precondition("expected a request with resources"))?;
    resources.get_or_create(TABLES, Tables::default)
}

/// `%c1 = tfrt_cuda.module.load_static %context, %c0 {funcs_per_module = [..], functions = [..], modules = [..]}`
fn load(
    context: &Context,
    _: Chain,
    n_each: Attr<&[i32]>,
    functions: Attr<AttributeView<'_>>,
    modules: Attr<AttributeView<'_>>,
    execution: &ExecutionContext,
) -> Result<Chain, Error> {
    let functions = strings("functions", *functions)?;
    let modules = strings("modules", *modules)?;
    tables(execution)?.load(context, &modules, &n_each, &functions)?;
    Ok(Chain)
}

/// `%c1 = tfrt_cuda.launch %c0 %context %gx %gy %gz %bx %by %bz %shared %stream {function_handle = 0 : ui64} (..) : (..)`
fn launch_kernel(
    (_, context): (Chain, &Context),
    (gx, gy, gz): (u32, u32, u32),
    (bx, by, bz): (u32, u32, u32),
    shared_bytes: u32,
    stream: &Stream,
    arguments: Operands<'_>,
    handle: Attr<u64>,
    execution: &ExecutionContext,
) -> Result<Chain, Error> {
    context.expect("a context", stream.context.inner())?;
    let function = tables(execution)?.function(context.ordinal(), *handle)?;
    let given = arguments.iter().map(|value| match value.get::<Buffer>() {
        Some(buffer) => Ok(Given::Buffer(buffer.0.clone())),
        None => Given::number(value).ok_or_else(|| {
            Error::invalid_argument("Unsupported argument type provided to tfrt_cuda.launch.")
        }),
    });
    let given = given.collect::<Result<Vec<Given>, Error>>()?;
    let sizes = [[gx, gy, gz], [bx, by, bz]].map(|size| size.map(u64::from));
    launch(stream, &function, sizes, shared_bytes, &given)
}

/// `%c1 = tfrt_cuda.blas.axpy.f32 %context, %handle, %n, %alpha, %x, %incx, %y, %incy, %c0`
fn axpy(
    context: &Context,
    blas: &Blas,
    n: i32,
    alpha: f32,
    (x, step_x): (&Buffer, i32),
    (y, step_y): (&Buffer, i32),
    _: Chain,
) -> Result<Chain, Error> {
    let stream = blas.stream_in(context)?;
    let number = linear::number(0)?;
    let y = Some((&y.0, step_y));
    linear::scale(&stream, n, f64::from(alpha), number, (&x.0, step_x), y)
}

/// `%c1 = tfrt_cuda.blas.gemm.f32 %context, %handle, %transa, %transb, %m, %n, %k, %alpha, %A, %lda, %B, %ldb, ..`
fn gemm(
    (context, blas): (&Context, &Blas),
    (trans_a, trans_b): (i32, i32),
    (m, n, k): (i32, i32, i32),
    alpha: f32,
    (a, height_a): (&Buffer, i32),
    (b, height_b): (&Buffer, i32),
    beta: f32,
    (c, height_c): (&Buffer, i32),
    _: Chain,
) -> Result<Chain, Error> {
    let number = linear::number(0)?;
    let product = Product {
        sizes: [m, n, k],
        transposed: [linear::transposed(trans_a)?, linear::transposed(trans_b)?],
        factors: [f64::from(alpha), f64::from(beta)],
        batch: 1,
    };
    let matrices = [
        (&a.0, number, height_a, 0),
        (&b.0, number, height_b, 0),
        (&c.0, number, height_c, 0),
    ];
    linear::product(&blas.stream_in(context)?, &product, matrices)
}

/// `%c1 = tfrt_cuda.blas.gemm.ex %context, %handle, .., %A, %Atype, %lda, .., %computeType, %algo, %c0`
fn gemm_ex(
    (context, blas): (&Context, &Blas),
    (trans_a, trans_b): (i32, i32),
    (m, n, k): (i32, i32, i32),
    alpha: f32,
    (a, type_a, height_a): (&Buffer, i32, i32),
    (b, type_b, height_b): (&Buffer, i32, i32),
    beta: f32,
    (c, type_c, height_c): (&Buffer, i32, i32),
    (compute_type, _algo): (i32, i32),
    _: Chain,
) -> Result<Chain, Error> {
    linear::number(compute_type)?;
    let product = Product {
        sizes: [m, n, k],
        transposed: [linear::transposed(trans_a)?, linear::transposed(trans_b)?],
        factors: [f64::from(alpha), f64::from(beta)],
        batch: 1,
    };
    let matrices = [
        (&a.0, linear::number(type_a)?, height_a, 0),
        (&b.0, linear::number(type_b)?, height_b, 0),
        (&c.0, linear::number(type_c)?, height_c, 0),
    ];
    linear::product(&blas.stream_in(context)?, &product, matrices)
}

/// `%c1 = tfrt_cuda.blas.gemm.strided.batched.ex %context, %handle, .., %A, %Atype, %lda, %strideA, ..`
fn gemm_batched(
    (context, blas): (&Context, &Blas),
    (trans_a, trans_b): (i32, i32),
    (m, n, k): (i32, i32, i32),
    alpha: f32,
    (a, type_a, height_a, stride_a): (&Buffer, i32, i32, i64),
    (b, type_b, height_b, stride_b): (&Buffer, i32, i32, i64),
    beta: f32,
    (c, type_c, height_c, stride_c): (&Buffer, i32, i32, i64),
    (batch, compute_type, _algo): (i32, i32, i32),
    _: Chain,
) -> Result<Chain, Error> {
    linear::number(compute_type)?;
    let product = Product {
        sizes: [m, n, k],
        transposed: [linear::transposed(trans_a)?, linear::transposed(trans_b)?],
        factors: [f64::from(alpha), f64::from(beta)],
        batch,
    };
    let matrices = [
        (&a.0, linear::number(type_a)?, height_a, stride_a),
        (&b.0, linear::number(type_b)?, height_b, stride_b),
        (&c.0, linear::number(type_c)?, height_c, stride_c),
    ];
    linear::product(&blas.stream_in(context)?, &product, matrices)
}

/// `%desc, %c1 = tfrt_cuda.dnn.create_pooling_descriptor %context, %mode, %nan, %window, %paddings, %strides, %c0`
fn pooling(
    _: &Context,
    (mode, nan): (u32, u32),
    window: &Tensor,
    paddings: &Tensor,
    strides: &Tensor,
    _: Chain,
) -> Result<(PoolingOf, Chain), Error> {
    let window = list("the window", window)?;
    let paddings = list("paddings", paddings)?;
    let strides = list("strides", strides)?;
    let pooling = Pooling::new(mode, nan, &window, &paddings, &strides)?;
    Ok((PoolingOf(pooling), Chain))
}

/// `%desc, %c1 = tfrt_cuda.dnn.create_tensor_descriptor %context, %dtype, %dims, %strides, %c0`
fn tensor_descriptor(
    _: &Context,
    dtype: u32,
    dims: &Tensor,
    strides: &Tensor,
    _: Chain,
) -> Result<(TensorOf, Chain), Error> {
    let number = networks::number(i64::from(dtype))?;
    let (dims, strides) = (list("dimensions", dims)?, list("strides", strides)?);
    let extents = networks::extents(number, &dims, &strides)?;
    Ok((TensorOf(extents), Chain))
}

/// `%c1 = tfrt_cuda.dnn.pooling_forward %context, %handle, %pool, %alpha, %xdesc, %x, %beta, %ydesc, %y, %c0`
fn pool(
    (context, dnn): (&Context, &Dnn),
    pooling: &PoolingOf,
    alpha: f32,
    (x_desc, x): (&TensorOf, &Buffer),
    beta: f32,
    (y_desc, y): (&TensorOf, &Buffer),
    _: Chain,
) -> Result<Chain, Error> {
    let stream = dnn.stream_in(context)?;
    let (x, y) = ((&x_desc.0, &x.0), (&y_desc.0, &y.0));
    pooling.queue(&stream, [alpha, beta], x, y, None)
}

/// `%c1 = tfrt_cuda.dnn.pooling_backward %context, %handle, %pool, %alpha, %ydesc, %y, %dydesc, %dy, %xdesc, %x, ..`
fn pool_gradient(
    (context, dnn): (&Context, &Dnn),
    pooling: &PoolingOf,
    alpha: f32,
    (y_desc, y): (&TensorOf, &Buffer),
    (dy_desc, dy): (&TensorOf, &Buffer),
    (x_desc, x): (&TensorOf, &Buffer),
    beta: f32,
    (dx_desc, dx): (&TensorOf, &Buffer),
    _: Chain,
) -> Result<Chain, Error> {
    let stream = dnn.stream_in(context)?;
    let (x, y) = ((&x_desc.0, &x.0), (&y_desc.0, &y.0));
    let gradients = [(&dy_desc.0, &dy.0), (&dx_desc.0, &dx.0)];
    pooling.queue(&stream, [alpha, beta], x, y, Some(gradients))
}
