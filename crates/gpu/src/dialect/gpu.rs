//! The kernels of `tfrt_gpu`.

use std::sync::Arc;

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Operands};
use tfrt_host::memory::HostBuffer;
use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext, HostContext};
use tfrt_tensor::{DType, Tensor, TensorShape};

use super::buffers::{self, tensor_text};
use super::exchange::{Group, Rank};
use super::launch::{Given, launch};
use super::linear::Fourier;
use super::networks::{Convolution, Plan, Pooling};
use super::transfer::Place;
use super::{objects, transfer};
use crate::driver::library::Extents;

mod libraries;
mod networks;
mod ranks;

named! {
    Device(objects::Device) = "!tfrt_gpu.device";
    Context(objects::Context) = "!tfrt_gpu.context";
    Stream(objects::Stream) = "!tfrt_gpu.stream";
    Event(objects::Event) = "!tfrt_gpu.event";
    Memory(objects::MemoryOf) = "!tfrt_gpu.allocator";
    Buffer(buffers::Buffer) = "!tfrt_gpu.buffer";
    Module(Arc<objects::Loaded>) = "!tfrt_gpu.module";
    Function(objects::Function) = "!tfrt_gpu.function";
    Blas(objects::Context) = "!tfrt_gpu.blas.handle";
    GemmAlgorithm(i32) = "!tfrt_gpu.blas.gemm.algo";
    Solver(objects::Context) = "!tfrt_gpu.solver.handle";
    Fft((objects::Context, Fourier)) = "!tfrt_gpu.fft.handle";
    Dnn(objects::Context) = "!tfrt_gpu.dnn.handle";
    PlanOf(Plan) = "!tfrt_gpu.dnn.convolution.plan";
    ConvolutionAlgorithm(u64) = "!tfrt_gpu.dnn.convolution.algorithm";
    ConvolutionOf(Convolution) = "!tfrt_gpu.dnn.convolution.descriptor";
    FilterOf(Extents) = "!tfrt_gpu.dnn.filter.descriptor";
    PoolingOf(Pooling) = "!tfrt_gpu.dnn.pooling.descriptor";
    TensorOf(Extents) = "!tfrt_gpu.dnn.tensor.descriptor";
    CclId(Group) = "!tfrt_gpu.ccl.id";
    Ccl(Rank) = "!tfrt_gpu.ccl.handle";
}

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_gpu.device.get", device)
        .add("tfrt_gpu.context.primary", |device: &Device| {
            device.primary().map(Context)
        })
        .add("tfrt_gpu.context.create", |device: &Device| {
            device.own().map(Context)
        })
        .add("tfrt_gpu.stream.create", |context: &Context| {
            context.stream().map(Stream)
        })
        .add("tfrt_gpu.stream.get_context", |stream: &Stream| {
            Context(stream.context.clone())
        })
        .add(
            "tfrt_gpu.stream.wait",
            |stream: &Stream, event: &Event, _: Chain| stream.wait(event),
        )
        .add("tfrt_gpu.stream.synchronize", synchronize)
        .add("tfrt_gpu.event.create", |context: &Context| {
            context.event().map(Event)
        })
        .add(
            "tfrt_gpu.event.record",
            |event: &Event, stream: &Stream, _: Chain| event.record(stream),
        )
        .add("tfrt_gpu.event.synchronize", synchronize_event)
        .add("tfrt_gpu.alias", |value: AnyAsyncValue, _: Chain| value)
        .add("tfrt_gpu.allocator.create", |context: &Context| {
            Memory(context.allocator())
        })
        .add("tfrt_gpu.mem.allocate", allocate)
        .add("tfrt_gpu.mem.allocate_host", allocate_host)
        .add("tfrt_gpu.mem.deallocate", deallocate)
        .add("tfrt_gpu.mem.copy", copy)
        .add("tfrt_gpu.mem.set", set)
        .add("tfrt_gpu.mem.register", register_host)
        .add("tfrt_gpu.mem.view", view)
        .add("tfrt_gpu.mem.load", load)
        .add("tfrt_gpu.mem.print_metadata", print)
        .add("tfrt_gpu.tensor.print_metadata", print_tensor)
        .add("tfrt_gpu.module.load", load_module)
        .add("tfrt_gpu.module.get_global", global)
        .add("tfrt_gpu.module.get_function", function)
        .add("tfrt_gpu.function.launch", launch_function);
    add_make(registry, "tfrt_gpu.tensor.make.i8", DType::I8);
    add_make(registry, "tfrt_gpu.tensor.make.i32", DType::I32);
    add_make(registry, "tfrt_gpu.tensor.make.i64", DType::I64);
    add_make(registry, "tfrt_gpu.tensor.make.f32", DType::F32);
    add_make(registry, "tfrt_gpu.tensor.make.f64", DType::F64);
    libraries::register(registry);
    networks::register(registry);
    ranks::register(registry);
}

/// Refuses platforms that there is no driver for.
fn platform(platform: i32) -> Result<(), Error> {
    match platform {
        1 => Ok(()),
        2 => Err(Error::unavailable("no driver of platform ROCm")),
        _ => Err(Error::invalid_argument(format!(
            "Invalid platform value: {platform}"
        ))),
    }
}

/// `%device = tfrt_gpu.device.get CUDA, %ordinal`
fn device(ordinal: i32, kind: Attr<i32>, host: &HostContext) -> Result<Device, Error> {
    platform(*kind)?;
    objects::Device::get(super::driver_of(host)?, ordinal).map(Device)
}

/// `%c1 = tfrt_gpu.stream.synchronize %stream, %c0`
fn synchronize(stream: &Stream, _: Chain, context: &ExecutionContext) -> AsyncValue<Chain> {
    let stream = stream.0.clone();
    context.enqueue_blocking(move || stream.synchronize())
}

/// `%c1 = tfrt_gpu.event.synchronize %event, %c0`
fn synchronize_event(event: &Event, _: Chain, context: &ExecutionContext) -> AsyncValue<Chain> {
    let event = event.0.clone();
    context.enqueue_blocking(move || event.synchronize())
}

/// `%buffer = tfrt_gpu.mem.allocate %allocator, %stream, %size, %c0`
fn allocate(memory: &Memory, stream: &Stream, size: i64, _: Chain) -> Result<Buffer, Error> {
    buffers::Buffer::allocate(memory, stream, size).map(Buffer)
}

/// `%buffer = tfrt_gpu.mem.allocate_host %context, %size, %c0`
fn allocate_host(
    context: &Context,
    size: i64,
    _: Chain,
    execution: &ExecutionContext,
) -> Result<Buffer, Error> {
    let len_bytes = super::count("a number of bytes to allocate", size)?;
    let buffer = HostBuffer::zeroed(execution.allocator(), len_bytes, 64);
    let buffer = buffer.ok_or_else(|| {
        Error::resource_exhausted(format!("there are no {len_bytes} bytes to pin"))
    })?;
    buffers::Buffer::register(context, buffer).map(Buffer)
}

/// `%c1 = tfrt_gpu.mem.deallocate %buffer, %stream, %c0`
fn deallocate(buffer: &Buffer, stream: &Stream, _: Chain) -> Result<Chain, Error> {
    buffer.give_back(stream).map(|()| Chain)
}

/// `%c1 = tfrt_gpu.mem.copy %dst, %src, %stream, %c0 : !tfrt_gpu.buffer, !ht.host_buffer`
fn copy(
    to: AnyAsyncValue,
    from: AnyAsyncValue,
    stream: &Stream,
    _: Chain,
    context: &ExecutionContext,
) -> Result<AsyncValue<Chain>, Error> {
    transfer::between(place(&to)?, place(&from)?, stream, context)
}

fn place(value: &AnyAsyncValue) -> Result<Place<'_>, Error> {
    let device = value.get::<Buffer>().map(|buffer| Place::Device(&buffer.0));
    let place = device.or(value.get::<HostBuffer>().map(Place::Host));
    place.ok_or_else(|| {
        let found = value.type_name().unwrap_or("a value of unknown type");
        Error::invalid_argument(format!(
            "expected !tfrt_gpu.buffer or !ht.host_buffer, found {found}"
        ))
    })
}

/// `%c1 = tfrt_gpu.mem.set %buffer, %value, %stream, %c0 : i32`
fn set(buffer: &Buffer, value: AnyAsyncValue, stream: &Stream, _: Chain) -> Result<Chain, Error> {
    transfer::fill(buffer, &value, stream)
}

/// `%registered = tfrt_gpu.mem.register %context, %buffer`
fn register_host(context: &Context, buffer: &HostBuffer) -> Result<Buffer, Error> {
    buffers::Buffer::register(context, buffer.clone()).map(Buffer)
}

/// `%part = tfrt_gpu.mem.view %buffer, %offset, %size`
fn view(buffer: &Buffer, offset: u64, size: u64) -> Result<Buffer, Error> {
    buffer.view(offset, size).map(Buffer)
}

/// `%value = tfrt_gpu.mem.load %buffer, %c0 : i32`
fn load(buffer: &Buffer, _: Chain, kind: Attr<AttributeView<'_>>) -> Result<AnyAsyncValue, Error> {
    match kind.as_dtype().map(|dtype| dtype.to_string()).as_deref() {
        Some("i1") => Ok(AnyAsyncValue::new(buffer.load(1)?[0] != 0)),
        Some("i32") => {
            let bytes = buffer.load(4)?;
            let bytes = <[u8; 4]>::try_from(bytes);
            let bytes = bytes.map_err(|_| Error::internal("four bytes were read"))?;
            Ok(AnyAsyncValue::new(i32::from_ne_bytes(bytes)))
        }
        _ => Err(Error::invalid_argument("unsupported type")),
    }
}

/// `%c1 = tfrt_gpu.mem.print_metadata %buffer, %c0`
fn print(buffer: &Buffer, _: Chain, host: &HostContext) -> Chain {
    host.output().print(format_args!("{}", buffer.0));
    Chain
}

fn add_make(registry: &mut KernelRegistry, name: &'static str, dtype: DType) {
    let make = move |buffer: &Buffer, shape: &TensorShape, _: Chain, host: &HostContext| {
        buffer.tensor(name, dtype, shape, host)
    };
    registry.add(name, make);
}

/// `%c1 = tfrt_gpu.tensor.print_metadata %tensor, %c0`
fn print_tensor(tensor: &Tensor, _: Chain, host: &HostContext) -> Result<Chain, Error> {
    let text = tensor_text(tensor, false)?;
    host.output().print(text);
    Ok(Chain)
}

/// `%module = tfrt_gpu.module.load %context {data = ".."}`
fn load_module(context: &Context, data: Attr<&str>) -> Result<Module, Error> {
    let image = data.strip_suffix('\0');
    let image =
        image.ok_or_else(|| Error::invalid_argument("data attribute must be null-terminated"))?;
    context.load(image.as_bytes()).map(Module)
}

/// `%buffer = tfrt_gpu.module.get_global %module {name = ".."}`
fn global(module: &Module, name: Attr<&str>) -> Result<Buffer, Error> {
    buffers::Buffer::variable(module, &name).map(Buffer)
}

/// `%function = tfrt_gpu.module.get_function %module {name = ".."}`
fn function(module: &Module, name: Attr<&str>) -> Result<Function, Error> {
    objects::Function::of(module, &name).map(Function)
}

/// `%c1 = tfrt_gpu.function.launch %stream, %function, blocks in (..), threads in (..), %shared, %c0, args(..) : (..)`
fn launch_function(
    (stream, function): (&Stream, &Function),
    (gx, gy, gz): (u64, u64, u64),
    (bx, by, bz): (u64, u64, u64),
    shared_bytes: u32,
    _: Chain,
    arguments: Operands<'_>,
) -> Result<Chain, Error> {
    let given = arguments.iter().map(|value| match value.get::<Buffer>() {
        Some(buffer) => Ok(Given::Buffer(buffer.0.clone())),
        None => {
            Given::number(value).ok_or_else(|| Error::invalid_argument("Unsupported argument type"))
        }
    });
    let given = given.collect::<Result<Vec<Given>, Error>>()?;
    let sizes = [[gx, gy, gz], [bx, by, bz]];
    launch(stream, function, sizes, shared_bytes, &given)
}
