use std::sync::Arc;

use tfrt_async::{AnyAsyncValue, AsyncValue, Chain, Error, ErrorCode, Value};

use super::*;
use crate::kernel::{BF16, Complex, F16, KernelRegistry};

fn host() -> HostContext {
    HostContext::builder(KernelRegistry::new()).build()
}

fn file(host: &HostContext, value: &AnyAsyncValue) -> HostBuffer {
    let encoded = host.codecs().encode(value, host.allocator()).unwrap();
    encoded.to_buffer(host.allocator()).unwrap()
}

fn message(result: Result<AnyAsyncValue, Error>) -> String {
    result.unwrap_err().message().to_owned()
}

#[test]
fn plain_values_come_back_and_give_the_same_bytes() {
    let host = host();
    let complex = Complex {
        real: 1.5_f32,
        imaginary: -0.0,
    };
    let buffer = HostBuffer::copy_of(host.allocator(), b"some bytes").unwrap();
    let values = [
        AnyAsyncValue::new(true),
        AnyAsyncValue::new(u64::MAX),
        AnyAsyncValue::new(-7_i16),
        AnyAsyncValue::new(f64::NAN),
        AnyAsyncValue::new(F16(3)),
        AnyAsyncValue::new(BF16(4)),
        AnyAsyncValue::new(complex),
        AnyAsyncValue::new(Chain),
        AnyAsyncValue::new("größer".to_owned()),
        AnyAsyncValue::new(buffer),
    ];
    for value in values {
        let bytes = file(&host, &value);
        let again = host
            .codecs()
            .decode_buffer(&bytes, &DecodeContext::new(&host))
            .unwrap();
        assert_eq!(again.type_name(), value.type_name());
        assert_eq!(
            *file(&host, &again).read().unwrap(),
            *bytes.read().unwrap(),
            "{:?}",
            value.type_name()
        );
    }
}

#[test]
fn parts_are_the_buffers_themselves_on_both_sides() {
    let host = host();
    let buffer = HostBuffer::copy_of(host.allocator(), &[7; 100]).unwrap();
    let value = AnyAsyncValue::new(buffer.clone());
    let encoded = host.codecs().encode(&value, host.allocator()).unwrap();
    assert_eq!(encoded.parts()[0].address(), buffer.address());
    let bytes = encoded.to_buffer(host.allocator()).unwrap();
    let again = host
        .codecs()
        .decode_buffer(&bytes, &DecodeContext::new(&host))
        .unwrap();
    let kept = again.get::<HostBuffer>().unwrap();
    assert!(kept.overlaps(&bytes) && kept.address().is_multiple_of(PART_ALIGNMENT));
}

#[test]
fn pieces_are_the_bytes_of_the_one_buffer() {
    let host = host();
    let part = |len| HostBuffer::copy_of(host.allocator(), &vec![1; len]).unwrap();
    let parts = vec![part(64), part(1), part(0), part(130)];
    let encoded = EncodedValue::new("!my.type", 3, b"head".to_vec(), parts);
    let mut written = Vec::new();
    let reading = encoded.read().unwrap();
    reading.write_to(&mut written).unwrap();
    assert_eq!(written.len(), reading.len_bytes());
    let buffer = encoded.to_buffer(host.allocator()).unwrap();
    assert_eq!(*buffer.read().unwrap(), written[..]);
    let found = EncodedValue::from_buffer(&buffer, &DecodeContext::new(&host)).unwrap();
    assert_eq!((found.type_name(), found.version()), ("!my.type", 3));
    assert_eq!(found.head(), b"head");
    let lengths: Vec<usize> = found.parts().iter().map(HostBuffer::len_bytes).collect();
    assert_eq!(lengths, [64, 1, 0, 130]);
}

#[test]
fn parts_of_a_buffer_that_begins_anywhere_are_copied_to_aligned_memory() {
    let host = host();
    let value = AnyAsyncValue::new(HostBuffer::copy_of(host.allocator(), &[7; 100]).unwrap());
    let bytes = file(&host, &value).read().unwrap().to_vec();
    let shifted = [&[0; 3][..], &bytes].concat();
    let shifted = HostBuffer::copy_of(host.allocator(), &shifted).unwrap();
    let shifted = shifted.slice(3..shifted.len_bytes()).unwrap();
    let again = host
        .codecs()
        .decode_buffer(&shifted, &DecodeContext::new(&host))
        .unwrap();
    let kept = again.get::<HostBuffer>().unwrap();
    assert!(!kept.overlaps(&shifted) && kept.address().is_multiple_of(PART_ALIGNMENT));
    assert_eq!(*kept.read().unwrap(), [7; 100]);
}

#[test]
fn every_byte_of_the_form_that_is_changed_or_missing_is_noticed_or_is_content() {
    let host = host();
    let context = DecodeContext::new(&host);
    let value = AnyAsyncValue::new(HostBuffer::copy_of(host.allocator(), &[7; 9]).unwrap());
    let bytes = file(&host, &value).read().unwrap().to_vec();
    for len in 0..bytes.len() {
        let short = HostBuffer::copy_of(host.allocator(), &bytes[..len]).unwrap();
        assert!(host.codecs().decode_buffer(&short, &context).is_err());
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        let changed = HostBuffer::copy_of(host.allocator(), &changed).unwrap();
        let is_content = at >= bytes.len() - 9;
        let decoded = host.codecs().decode_buffer(&changed, &context);
        assert_eq!(decoded.is_ok(), is_content, "byte {at}");
    }
}

#[test]
fn duplicates_are_refused_and_versions_are_told_apart() {
    struct Old;
    impl Value for Old {
        const NAME: &'static str = "!my.old";
        type Storage = tfrt_async::Heap;
    }
    let codec = |version| ValueCodec {
        type_name: Old::NAME,
        version,
        encode: |_, encoder| {
            encoder.u8(2);
            Ok(())
        },
        decode: |decoder, _| decoder.u8().map(|_| AnyAsyncValue::new(Old)),
    };
    let host = host();
    host.codecs().add(&[codec(2), codec(1)]).unwrap();
    let error = host.codecs().add(&[codec(3), codec(2)]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::AlreadyExists);
    assert_eq!(error.message(), "two codecs of !my.old, version 2");
    assert!(host.codecs().get(Old::NAME, 3).is_none(), "all or none");
    assert_eq!(host.codecs().newest(Old::NAME).unwrap().version, 2);
    let decode = |name, version, head: &[u8]| {
        let encoded = EncodedValue::new(name, version, head.to_vec(), Vec::new());
        host.codecs().decode(&encoded, &DecodeContext::new(&host))
    };
    assert!(decode(Old::NAME, 1, &[2]).is_ok());
    assert_eq!(
        message(decode(Old::NAME, 3, &[2])),
        "an encoded !my.old of version 3: expected version 2 or one before it that is known"
    );
    assert_eq!(
        message(decode("!your.own", 1, &[])),
        "an encoded !your.own: no codec of this type is known"
    );
    assert_eq!(
        message(decode(Old::NAME, 1, &[])),
        "an encoded !my.old: expected 1 more bytes, found 0"
    );
    assert_eq!(
        message(decode(Old::NAME, 1, &[2, 2])),
        "an encoded !my.old: expected an end, found 1 more bytes and 0 parts"
    );
}

#[test]
#[should_panic(expected = "two codecs of !t.mine, version 1")]
fn a_registry_refuses_two_codecs_of_one_type() {
    const MINE: &[ValueCodec] = &[ValueCodec {
        type_name: "!t.mine",
        version: 1,
        encode: |_, _| Ok(()),
        decode: |_, _| Ok(AnyAsyncValue::new(Chain)),
    }];
    let mut registry = KernelRegistry::new();
    registry.add_codecs(MINE).add_codecs(MINE);
}

#[test]
fn what_is_not_there_or_has_no_codec_is_not_encoded() {
    struct Local;
    impl Value for Local {
        const NAME: &'static str = "!my.local";
        type Storage = tfrt_async::Heap;
    }
    let host = host();
    let encode = |value: &AnyAsyncValue| host.codecs().encode(value, host.allocator());
    assert_eq!(
        encode(&AnyAsyncValue::new(Local)).unwrap_err().message(),
        "a !my.local can't be stored or sent: its type has no codec"
    );
    let (promise, pending) = AsyncValue::<i32>::pending();
    assert_eq!(
        encode(pending.as_any()).unwrap_err().code(),
        ErrorCode::FailedPrecondition
    );
    drop(promise);
    let failed = AnyAsyncValue::from_error(Error::not_found("gone"));
    assert_eq!(encode(&failed).unwrap_err().message(), "gone");
}

#[test]
fn limits_are_asked_before_memory_is() {
    let host = host();
    let limits = DecodeLimits {
        max_head_bytes: 10,
        max_parts: 1,
    };
    let context = DecodeContext::new(&host).with_limits(limits);
    let text = |len| file(&host, &AnyAsyncValue::new("x".repeat(len)));
    assert!(host.codecs().decode_buffer(&text(2), &context).is_ok());
    let error = host.codecs().decode_buffer(&text(3), &context).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    // A count of things that there is no room for.
    let head = [&u64::MAX.to_le_bytes()[..], b"x"].concat();
    let encoded = EncodedValue::new(String::NAME, 1, head, Vec::new());
    let decoded = host.codecs().decode(&encoded, &DecodeContext::new(&host));
    assert!(message(decoded).contains("expected at most 1 bytes"));
    let none: Arc<dyn tfrt_async::HostAllocator> = Arc::new(crate::memory::LimitedAllocator::new(
        host.allocator().clone(),
        8,
    ));
    let value = AnyAsyncValue::new(HostBuffer::copy_of(host.allocator(), &[7; 100]).unwrap());
    let encoded = host.codecs().encode(&value, host.allocator()).unwrap();
    assert_eq!(
        encoded.to_buffer(&none).unwrap_err().code(),
        ErrorCode::ResourceExhausted
    );
}
