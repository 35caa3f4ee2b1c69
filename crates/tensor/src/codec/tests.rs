use tfrt_host::codec::EncodedValue;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::LimitedAllocator;
use tfrt_host::{ErrorCode, HostContext};

use super::*;

fn host() -> HostContext {
    let mut registry = KernelRegistry::new();
    registry.add_codecs(CODECS);
    HostContext::builder(registry).build()
}

fn shape(extents: &[usize]) -> TensorShape {
    TensorShape::new(extents).unwrap()
}

fn strings(list: &[&[u8]]) -> Tensor {
    let list: Vec<Vec<u8>> = list.iter().map(|string| string.to_vec()).collect();
    StringHostTensor::new(shape(&[list.len()]), list)
        .unwrap()
        .into()
}

/// Returns a value of each type and format.
fn values(host: &HostContext) -> Vec<AnyAsyncValue> {
    let allocator = host.allocator();
    let dense = |extents: &[usize], elements: &[f32]| {
        DenseHostTensor::from_slice(allocator, extents, elements).unwrap()
    };
    let matrix = dense(&[2, 2], &[0.0, 1.5, f32::NAN, -0.0]);
    let floats: Tensor = matrix.clone().into();
    let keys = strings(&[b"a", b"\xff\x00"]);
    let sequence = Sequence::from(vec![floats.clone(), keys.clone()]);
    let coo = CooHostTensor::from_dense(allocator, &matrix).unwrap();
    let scalar = |value| ScalarHostTensor::new(shape(&[1 << 40, 1 << 40]), value);
    vec![
        AnyAsyncValue::new(floats.clone()),
        AnyAsyncValue::new(Tensor::from(dense(&[3, 0], &[]))),
        AnyAsyncValue::new(Tensor::from(scalar(2.5_f64))),
        AnyAsyncValue::new(Tensor::from(coo)),
        AnyAsyncValue::new(keys.clone()),
        AnyAsyncValue::new(strings(&[])),
        AnyAsyncValue::new(sequence.clone()),
        AnyAsyncValue::new(Sequence::default()),
        AnyAsyncValue::new(Optional::Nothing),
        AnyAsyncValue::new(Optional::Tensor(floats.clone())),
        AnyAsyncValue::new(Optional::Sequence(sequence)),
        AnyAsyncValue::new(NoValue),
        AnyAsyncValue::new(Map::new(keys.clone(), dense(&[2], &[1.0, 2.0]).into()).unwrap()),
        AnyAsyncValue::new(Maps::new(keys, floats).unwrap()),
        AnyAsyncValue::new(shape(&[1, 2, 1 << 40])),
        AnyAsyncValue::new(PartialTensorShape::UNRANKED),
        AnyAsyncValue::new(PartialTensorShape::from_i64(&[-1, 7]).unwrap()),
        AnyAsyncValue::new(FixedRankShape::<0>::new(&shape(&[])).unwrap()),
        AnyAsyncValue::new(FixedRankShape::<1>::new(&shape(&[5])).unwrap()),
        AnyAsyncValue::new(FixedRankShape::<2>::new(&shape(&[5, 6])).unwrap()),
        AnyAsyncValue::new(FixedRankShape::<3>::new(&shape(&[5, 0, 7])).unwrap()),
    ]
}

#[test]
fn every_value_comes_back_and_gives_the_same_bytes() {
    let host = host();
    let (codecs, context) = (host.codecs(), DecodeContext::new(&host));
    let values = values(&host);
    for codec in CODECS {
        let name = Some(codec.type_name);
        assert!(
            values.iter().any(|value| value.type_name() == name),
            "{codec}"
        );
    }
    for value in values {
        let encode = |value: &AnyAsyncValue| {
            let encoded = codecs.encode(value, host.allocator()).unwrap();
            encoded.to_buffer(host.allocator()).unwrap()
        };
        let file = encode(&value);
        let again = codecs.decode_buffer(&file, &context).unwrap();
        assert_eq!(again.type_name(), value.type_name());
        assert_eq!(*encode(&again).read().unwrap(), *file.read().unwrap());
        if let (Some(tensor), Some(other)) = (value.get::<Tensor>(), again.get::<Tensor>()) {
            assert_eq!(tensor.format(), other.format());
            assert_eq!(tensor.to_text().unwrap(), other.to_text().unwrap());
        }
    }
}

#[test]
fn elements_are_copied_on_neither_side() {
    let host = host();
    let tensor = DenseHostTensor::from_slice(host.allocator(), &[3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let value = AnyAsyncValue::new(Tensor::from(tensor.clone()));
    let encoded = host.codecs().encode(&value, host.allocator()).unwrap();
    assert!(encoded.parts()[0].overlaps(tensor.buffer()));
    let file = encoded.to_buffer(host.allocator()).unwrap();
    let again = host
        .codecs()
        .decode_buffer(&file, &DecodeContext::new(&host))
        .unwrap();
    let again = again.get::<Tensor>().unwrap().as_dense().unwrap();
    assert!(again.buffer().overlaps(&file));
    assert_eq!(
        again.read().unwrap().elements::<f32>().unwrap(),
        [1.0, 2.0, 3.0]
    );
}

#[test]
fn what_tells_nonsense_is_refused() {
    let host = host();
    let part = |bytes: &[u8]| HostBuffer::copy_of(host.allocator(), bytes).unwrap();
    let extent = |n: u64| n.to_le_bytes().to_vec();
    let (f32, string) = (DType::F32.byte(), DType::String.byte());
    let cases: &[(Vec<u8>, Vec<HostBuffer>, &str)] = &[
        (
            vec![DENSE, 200, 0],
            vec![],
            "expected a type of elements, found 200",
        ),
        (
            vec![9, f32, 0],
            vec![],
            "expected a format of tensors of f32, found 9",
        ),
        (vec![DENSE, f32, 0], vec![], "expected one more part"),
        (
            vec![DENSE, f32, 0],
            vec![part(&[0; 5])],
            "takes 4 bytes, the buffer has 5",
        ),
        (
            [vec![DENSE, f32, 1], extent(u64::MAX)].concat(),
            vec![part(&[])],
            "an extent exceeds",
        ),
        (vec![DENSE, string, 0], vec![part(&[])], "elements"),
        (
            [vec![COO, f32, 1], extent(4), extent(1)].concat(),
            vec![part(&4_i64.to_le_bytes()), part(&[0; 4])],
            "value 0 is at index 4 of dimension 0, whose extent is 4",
        ),
        (
            [vec![COO, f32, 1], extent(4), extent(u64::MAX)].concat(),
            vec![part(&[]), part(&[])],
            "an extent exceeds",
        ),
        (
            [vec![STRING, string, 1], extent(1)].concat(),
            vec![part(&u64::MAX.to_le_bytes()), part(&[1])],
            "expected as many bytes of strings as the lengths say, found 1",
        ),
        (
            [vec![STRING, string, 1], extent(2)].concat(),
            vec![part(&[0; 8]), part(&[])],
            "expected a length for each string of shape [2], found 1",
        ),
    ];
    for (head, parts, expected) in cases {
        let encoded = EncodedValue::new(Tensor::NAME, 1, head.clone(), parts.clone());
        let decoded = host.codecs().decode(&encoded, &DecodeContext::new(&host));
        let error = decoded.unwrap_err();
        assert!(error.message().contains(expected), "{error:?} {expected}");
    }
}

#[test]
fn tensors_of_a_sequence_count_for_the_limit_on_memory() {
    let host = host();
    let tensor = Tensor::from(ScalarHostTensor::new(TensorShape::SCALAR, 1_u8));
    let value = AnyAsyncValue::new(Sequence::from(vec![tensor; 1000]));
    let encoded = host.codecs().encode(&value, host.allocator()).unwrap();
    let limited: Arc<dyn HostAllocator> = Arc::new(LimitedAllocator::new(
        host.allocator().clone(),
        100 * Sequence::BYTES_PER_TENSOR,
    ));
    let context = DecodeContext::new(&host).with_allocator(limited);
    let error = host.codecs().decode(&encoded, &context).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
}
