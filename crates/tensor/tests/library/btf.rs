//! Files of tensors: what was written is read, and damaged files are refused within bounds.

use std::io::Cursor;
use std::sync::Arc;

use proptest::prelude::*;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::LimitedAllocator;
use tfrt_host::{Error, HostAllocator, HostContext};
use tfrt_tensor::btf::{self, BtfHeader, BtfLayout, BtfReader};
use tfrt_tensor::{
    CooHostTensor, DType, DenseHostTensor, Element, ScalarHostTensor, StringHostTensor, Tensor,
    TensorShape,
};

fn allocator() -> Arc<dyn HostAllocator> {
    let host = HostContext::builder(KernelRegistry::new()).build();
    host.allocator().clone()
}

fn dense<T: Element>(extents: &[usize], elements: &[T]) -> Tensor {
    let tensor = DenseHostTensor::from_slice(&allocator(), extents, elements);
    tensor.unwrap().into()
}

fn file_of(tensors: &[Tensor]) -> Vec<u8> {
    let mut bytes = Vec::new();
    btf::write(&mut bytes, tensors).unwrap();
    bytes
}

fn reader(bytes: &[u8]) -> Result<BtfReader<Cursor<&[u8]>>, Error> {
    BtfReader::new("t.btf", Cursor::new(bytes))
}

/// Reads all tensors of a file, each as it is printed.
fn read_all(bytes: &[u8], allocator: &Arc<dyn HostAllocator>) -> Result<Vec<String>, Error> {
    let mut reader = reader(bytes)?;
    (0..reader.n_tensors())
        .map(|index| reader.read(index, allocator)?.to_text())
        .collect()
}

/// Returns the file that the original's tests read: 152 bytes, three tensors of `i32`.
fn sample() -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let ints = |ints: &[i32]| ints.iter().flat_map(|int| int.to_le_bytes()).collect();
    let parts: [Vec<u8>; 7] = [
        words(&[3, 0x20, 0x50, 0x80, 2, 2, 2, 2]),
        ints(&[1, 2, 3, 4]),
        words(&[1, 2, 5]),
        ints(&[0, 1, 2, 3, 4]),
        vec![0; 4],
        words(&[1, 2, 0]),
        Vec::new(),
    ];
    parts.concat()
}

#[test]
fn a_file_of_the_original_is_read_and_written_as_it_was() {
    let bytes = sample();
    assert_eq!(bytes.len(), 152);
    let texts = read_all(&bytes, &allocator()).unwrap();
    let values: Vec<&str> = texts
        .iter()
        .map(|text| text.split_once("shape = ").unwrap().1)
        .collect();
    assert_eq!(
        values,
        [
            "[2, 2], values = [1, 2, 3, 4]",
            "[5], values = [0, 1, 2, 3, 4]",
            "[0], values = []"
        ]
    );
    let mut reader = reader(&bytes).unwrap();
    let tensors: Vec<Tensor> = (0..3)
        .map(|index| reader.read(index, &allocator()).unwrap())
        .collect();
    assert_eq!(file_of(&tensors), bytes);
}

#[test]
fn errors_come_in_the_order_of_the_file() {
    let bytes = sample();
    let allocator = allocator();
    let says = |bytes: &[u8], index: u64, dtype, rank, expected: &str| {
        let read = reader(bytes).and_then(|mut r| r.read_dense(index, dtype, rank, &allocator));
        let error = read.unwrap_err();
        assert_eq!(error.message(), expected);
        let names_the_file = |text: &str| text.contains("t.btf");
        let is_named = names_the_file(error.message())
            || error.notes().iter().any(|note| names_the_file(note));
        assert!(is_named, "{error}");
    };
    let cut = |len: usize| &bytes[..len];
    let missing = "failed to read tensor num_tensors from path t.btf";
    says(cut(7), 0, DType::I32, 2, missing);
    let no_such = "invalid tensor index 3 to read tensor from path t.btf which contains 3 tensors";
    says(&bytes, 3, DType::F32, 1, no_such);
    let negative = "invalid tensor index 18446744073709551615 to read tensor from path t.btf which \
                    contains 3 tensors";
    says(&bytes, u64::MAX, DType::F32, 1, negative);
    let offset = "failed to read tensor offset from t.btf for tensor index 1";
    says(cut(23), 1, DType::I32, 1, offset);
    let header = "failed to read tensor header from stream at offset 32";
    says(cut(47), 0, DType::F32, 1, header);
    let dtype = "unexpected tensor dtype i32. Expected dtype is f32";
    says(&bytes, 0, DType::F32, 1, dtype);
    let rank = "unexpected tensor rank 2. Expected rank is 1";
    says(&bytes, 0, DType::I32, 1, rank);
    let dims = "failed to read tensor dims at offset 32";
    says(cut(63), 0, DType::I32, 2, dims);
    let data = "failed to read tensor data from stream at offset 32";
    says(cut(79), 0, DType::I32, 2, data);

    let mut other = bytes.clone();
    other[41] = 1;
    let layout = "unexpected tensor layout COOrdinate list sparse tensor";
    says(&other, 0, DType::I32, 2, layout);
    other[41] = 2;
    says(&other, 0, DType::I32, 2, "unexpected tensor layout Unknown");
    other[40] = 200;
    let dtype = "unexpected tensor dtype BadDtype(200). Expected dtype is i32";
    says(&other, 0, DType::I32, 2, dtype);
}

fn sparse() -> Tensor {
    let tensor = DenseHostTensor::from_slice(&allocator(), &[2, 3], &[0_i8, 5, 0, 0, 0, 7]);
    CooHostTensor::from_dense(&allocator(), &tensor.unwrap())
        .unwrap()
        .into()
}

#[test]
fn coordinates_of_a_file_are_checked() {
    let bytes = file_of(&[sparse()]);
    // Count, offset, header, extents; extents of the indices; indices; extent and values.
    assert_eq!(bytes.len(), 8 + 8 + 16 + 16 + 16 + 32 + 8 + 8);
    let read = |bytes: &[u8]| {
        let mut reader = reader(bytes).unwrap();
        reader.read_coo(0, DType::I8, 2, &allocator())
    };
    assert_eq!(read(&bytes).unwrap().values().n_elements(), 2);
    let mut too_large = bytes.clone();
    too_large[72] = 3;
    let error = read(&too_large).unwrap_err();
    assert_eq!(
        error.message(),
        "the tensor is not correctly formatted: value 0 is at index 3 of dimension 1, whose extent \
         is 3"
    );
    let mut one_value = bytes.clone();
    one_value[96] = 1;
    let error = read(&one_value).unwrap_err();
    assert!(
        error.message().contains("indices and values do not match"),
        "{error}"
    );
    let dense = reader(&bytes)
        .unwrap()
        .read_dense(0, DType::I8, 2, &allocator());
    assert!(
        dense
            .unwrap_err()
            .message()
            .contains("unexpected tensor layout")
    );
}

#[test]
fn what_the_format_does_not_have_is_not_written() {
    let shape = TensorShape::new(&[1]).unwrap();
    let scalar = ScalarHostTensor::new(shape.clone(), 1_i32).into();
    let strings = StringHostTensor::new(shape, vec![b"x".to_vec()])
        .unwrap()
        .into();
    let mut out = Vec::new();
    for tensor in [scalar, strings] {
        let error = btf::write(&mut out, &[sample_tensor(), tensor]).unwrap_err();
        assert_eq!(error.message(), "unhandled tensor type when writing btf");
    }
    let error = btf::write(&mut out, &[dense(&[1], &[tfrt_tensor::F16(1)])]).unwrap_err();
    assert_eq!(error.message(), "failed to cast DType to TensorDType");
    assert!(out.is_empty());
}

fn sample_tensor() -> Tensor {
    dense(&[3], &[1_u16, 2, 3])
}

#[test]
fn damaged_files_are_refused_within_bounds() {
    let files = [
        sample(),
        file_of(&[sparse(), sample_tensor(), dense(&[], &[0.5_f64])]),
        file_of(&[]),
    ];
    for file in files {
        for len in 0..file.len() {
            check(&file[..len]);
        }
        for bit in 0..8 * file.len() {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            check(&flipped);
        }
    }
}

/// Reads each tensor of a file with no more memory than the file has, and what each is rounded up by.
fn check(bytes: &[u8]) {
    const ROUNDING: usize = 256;
    let limited = LimitedAllocator::new(allocator(), bytes.len() + ROUNDING);
    let limited: Arc<dyn HostAllocator> = Arc::new(limited);
    let Ok(mut reader) = reader(bytes) else {
        return;
    };
    for index in 0..reader.n_tensors().min(10) {
        match reader.read(index, &limited) {
            Ok(tensor) => assert!(!tensor.to_text().unwrap().is_empty()),
            Err(error) => {
                let wants_memory = error.message().contains("cannot allocate");
                assert!(!wants_memory, "{error}: {bytes:?}");
            }
        }
    }
}

fn any_tensor() -> impl Strategy<Value = Tensor> {
    let extents = prop::collection::vec(0_usize..4, 0..4);
    (extents, any::<u64>(), 0..10_u8).prop_map(|(extents, seed, dtype)| {
        let dtype = btf::BtfDType(dtype).dtype().unwrap();
        let shape = TensorShape::new(&extents).unwrap();
        let metadata = tfrt_tensor::TensorMetadata::new(dtype, shape);
        // Bytes of small numbers, many of them 0.
        let mut state = seed;
        let mut byte = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((state >> 33) % 3) as u8
        };
        let bytes: Vec<u8> = (0..metadata.len_bytes().unwrap()).map(|_| byte()).collect();
        let tensor = DenseHostTensor::from_bytes(&allocator(), metadata, &bytes).unwrap();
        match seed % 2 {
            0 => tensor.into(),
            _ => CooHostTensor::from_dense(&allocator(), &tensor)
                .unwrap()
                .into(),
        }
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(tensors in prop::collection::vec(any_tensor(), 0..5)) {
        let bytes = file_of(&tensors);
        prop_assert!(bytes.len().is_multiple_of(8));
        let texts: Vec<String> = tensors.iter().map(|tensor| tensor.to_text().unwrap()).collect();
        prop_assert_eq!(read_all(&bytes, &allocator()).unwrap(), texts);
        let mut reader = reader(&bytes).unwrap();
        let headers: Vec<BtfHeader> =
            (0..reader.n_tensors()).map(|index| reader.header(index).unwrap()).collect();
        for (header, tensor) in headers.iter().zip(&tensors) {
            prop_assert_eq!(header.dtype.dtype(), Some(tensor.metadata().dtype));
            let is_dense = matches!(tensor, Tensor::Dense(_));
            prop_assert_eq!(header.layout == BtfLayout::DENSE, is_dense);
        }
    }

    #[test]
    fn any_bytes_are_read_within_bounds(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }
}
