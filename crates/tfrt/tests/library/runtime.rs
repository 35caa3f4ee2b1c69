//! Parts of which a service makes a runtime and its requests: memory of a request, devices, codecs.

use std::sync::Arc;

use tfrt::host::codec::{DecodeContext, Decoder, Encoder, ValueCodec, expect};
use tfrt::host::device::HostDevice;
use tfrt::tensor::Tensor as Layered;
use tfrt::{
    AnyAsyncValue, AnyError, AsyncValue, Context, Error, ErrorCode, Heap, Model, Runtime,
    RuntimeBuilder, SingleThreadedWorkQueue, Tensor, Value,
};

use super::twice::twice;

#[path = "runtime/weights.rs"]
mod weights;

const MIB: usize = 1 << 20;

fn builder() -> RuntimeBuilder {
    Runtime::builder().queue(Arc::new(SingleThreadedWorkQueue::new()))
}

/// Returns a tensor of a MiB, as is what `twice` makes of it.
fn mib() -> Tensor {
    Tensor::from(vec![1.5_f32; MIB / size_of::<f32>()])
}

fn call(model: &Model, context: &Context, x: &Tensor) -> Result<Tensor, Error> {
    model.call(context, (x,)).wait()?.take("y")
}

#[test]
fn request_above_its_limit_of_memory_fails_while_one_beside_it_goes_on() {
    let runtime = builder().build();
    let (model, x) = (twice(&runtime), mib());
    // It waits for its input when the other fails.
    let (promise, later) = AsyncValue::<Layered>::pending();
    let beside = model.call(&runtime.context(), (later,));

    let limited = runtime.context_builder().max_memory(64 << 10).build();
    let error = call(&model, &limited, &x).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    let note = "the request is limited to 65536 bytes at once, and 1048640 more were asked for";
    assert_eq!(error.notes(), [note]);
    let shown = AnyError::from(error).to_string();
    assert!(shown.ends_with(&format!(" ({note})")), "{shown}");
    assert_eq!(limited.request().memory_refusals(), 1);
    // It is the call that fails, not the request: a smaller one has room.
    let small = call(&model, &limited, &Tensor::from([1.0_f32])).unwrap();
    assert_eq!(small.to_vec::<f32>().unwrap(), [2.0]);

    promise.resolve(Layered::from(x));
    let y = beside.wait().unwrap().take("y").unwrap();
    assert!(y.view::<f32>().unwrap().iter().all(|&y| y == 3.0));
}

#[test]
fn outputs_count_against_the_limit_of_their_request_until_they_are_dropped() {
    let runtime = builder().build();
    let (model, x) = (twice(&runtime), mib());
    // Two outputs, and something for calls.
    let context = runtime
        .context_builder()
        .max_memory(2 * MIB + (64 << 10))
        .build();
    for _ in 0..10 {
        call(&model, &context, &x).unwrap();
    }
    let kept = call(&model, &context, &x).unwrap();
    let reading = call(&model, &context, &x).unwrap().read_owned().unwrap();
    let error = call(&model, &context, &x).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    drop(reading);
    let more = call(&model, &context, &x).unwrap();
    drop((kept, more));
}

#[test]
fn device_that_a_runtime_is_made_with_is_found_by_its_name() {
    let runtime = builder()
        .device(|id| Arc::new(HostDevice::new(id, "CPU:1")))
        .device(|id| Arc::new(HostDevice::new(id, "CPU:2")))
        .build();
    let devices = runtime.host().devices();
    let names: Vec<String> = devices
        .list()
        .iter()
        .map(|device| device.name().to_owned())
        .collect();
    assert_eq!(names, ["CPU:0", "CPU:1", "CPU:2"]);
    let device = devices.get("CPU:2").unwrap();
    assert_eq!(devices.contract(&device).unwrap().name(), "CPU:2");
}

struct Celsius(i8);

impl Value for Celsius {
    const NAME: &'static str = "!my.celsius";
    type Storage = Heap;
}

fn encode(value: &AnyAsyncValue, encoder: &mut Encoder) -> Result<(), Error> {
    encoder.bytes(&expect::<Celsius>(value)?.0.to_le_bytes());
    Ok(())
}

fn decode(decoder: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<AnyAsyncValue, Error> {
    let degrees = i8::from_le_bytes(decoder.array()?);
    Ok(AnyAsyncValue::new(Celsius(degrees)))
}

const CODECS: &[ValueCodec] = &[ValueCodec {
    type_name: Celsius::NAME,
    version: 1,
    encode,
    decode,
}];

#[test]
fn codec_that_a_runtime_is_made_with_brings_values_to_bytes_and_back() {
    let runtime = builder().codecs(CODECS).build();
    let (host, codecs) = (runtime.host(), runtime.host().codecs());
    let value = AnyAsyncValue::new(Celsius(-4));
    let encoded = codecs.encode(&value, host.allocator()).unwrap();
    let bytes = encoded.to_buffer(host.allocator()).unwrap();
    let again = codecs.decode_buffer(&bytes, &DecodeContext::new(host));
    assert_eq!(again.unwrap().get::<Celsius>().unwrap().0, -4);
    // Those that come with the library are there, too.
    assert!(codecs.newest(Layered::NAME).is_some());
    assert!(
        builder()
            .build()
            .host()
            .codecs()
            .newest(Celsius::NAME)
            .is_none()
    );
}
