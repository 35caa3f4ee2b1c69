use proptest::prelude::*;
use tfrt_host::{HostContext, kernel::KernelRegistry};

use super::*;
use crate::Complex;

fn allocator() -> Arc<dyn HostAllocator> {
    let host = HostContext::builder(KernelRegistry::new()).build();
    host.allocator().clone()
}

/// Returns a file with a header of ours and these elements.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let len = u16::try_from(header.len()).unwrap().to_le_bytes();
    [MAGIC, &[1, 0], &len, header.as_bytes(), data].concat()
}

#[track_caller]
fn reads(header: &str, data: &[u8], values: &str) {
    let tensor = read(&file(header, data), &allocator()).unwrap();
    let text = tensor.to_text().unwrap();
    assert_eq!(text.split_once("shape = ").unwrap().1, values);
}

#[track_caller]
fn refuses(bytes: &[u8], message: &str) {
    let error = read(bytes, &allocator()).unwrap_err();
    assert_eq!(
        error.message(),
        format!("not a readable .npy file: {message}")
    );
}

#[test]
fn arrays_of_every_kind_are_read() {
    let shape = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }   \n";
    reads(shape, &[1, 0, 2, 1], "[2], values = [1, 258]");
    reads(
        &shape.replace('<', ">"),
        &[1, 0, 2, 1],
        "[2], values = [256, 513]",
    );
    let scalar = "{\"shape\":(),\"fortran_order\":False,\"descr\":\"|b1\"}";
    reads(scalar, &[1], "[], values = [1]");
    let turned = "{'descr': '|u1', 'fortran_order': True, 'shape': (2L, 3L)}";
    reads(
        turned,
        &[1, 2, 3, 4, 5, 6],
        "[2, 3], values = [1, 3, 5, 2, 4, 6]",
    );
    let strings = "{'descr': '|S3', 'fortran_order': True, 'shape': (2, 2)}";
    reads(
        strings,
        b"a\0\0bc\0\0\0\0\0d\0",
        "[2, 2], values = [\"a\", \"\", \"bc\", \"\0d\"]",
    );
    let text = "{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}";
    reads(text, &[0xe4, 0, 0, 0, 0, 0, 0, 0], "[1], values = [\"ä\"]");
    let complex = "{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}";
    reads(
        complex,
        &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0],
        "[1], values = [(1.000000e+00,2.000000e+00)]",
    );
    reads(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7)}",
        &[],
        "[0, 7], values = []",
    );
    for descr in ["|S1", "<f4"] {
        let large = "9223372036854775807, 9223372036854775807, 0";
        let header = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': ({large})}}");
        reads(&header, &[], &format!("[{large}], values = []"));
    }
}

#[test]
fn what_is_no_array_is_refused() {
    refuses(b"", "it does not begin as one");
    refuses(
        b"\x93NUMPY\x04\0\0\0",
        "it is of version 4: expected 1 to 3",
    );
    refuses(b"\x93NUMPY\x01\0\xff\xff{", "it ends within the header");
    let with = |descr: &str, shape: &str| {
        file(
            &format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"),
            &[0; 4],
        )
    };
    refuses(
        &with("'<i4'", "(2,)"),
        "expected the elements of an array of <i4 of shape [2], found 4 bytes",
    );
    refuses(
        &with("[('a', '<i4')]", "(1,)"),
        "at byte 10 of the header: expected a string; structured arrays can't be read, found `[('a', '<i4')], 'for`",
    );
    refuses(
        &with("'|O'", "(1,)"),
        "elements of type '|O' are no tensor's; expected numbers or strings",
    );
    refuses(
        &with("'<i4'", "(-1,)"),
        "at byte 51 of the header: expected an extent, found `-1,)}`",
    );
    refuses(
        &with("'<i4'", "(9223372036854775807, 4)"),
        "an array of shape [9223372036854775807, 4] does not fit any memory",
    );
    refuses(
        &file("{'descr': '<i4'}", &[]),
        "the header has no 'fortran_order'",
    );
    refuses(
        &with("'<U1'", "(1,)")
            .iter()
            .rev()
            .copied()
            .collect::<Vec<u8>>(),
        "it does not begin as one",
    );
}

#[test]
fn what_arrays_can_not_hold_is_told() {
    let tensor = DenseHostTensor::scalar(&allocator(), crate::BF16(1))
        .unwrap()
        .into();
    let error = write(&tensor).unwrap_err();
    assert_eq!(
        error.message(),
        "NumPy has no type of elements for bf16: convert the tensor first"
    );
    let strings = StringHostTensor::new(TensorShape::SCALAR, vec![b"a\0".to_vec()]).unwrap();
    assert!(write(&strings.into()).is_err());
}

#[test]
fn files_are_those_of_numpy() {
    let tensor = DenseHostTensor::from_slice(&allocator(), &[3], &[1_i32, 2, 3])
        .unwrap()
        .into();
    let bytes = write(&tensor).unwrap();
    let header = b"\x93NUMPY\x01\0v\0{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }";
    assert_eq!(bytes[..header.len()], header[..]);
    assert_eq!(bytes.len(), 128 + 12);
    assert_eq!(bytes[127], b'\n');
}

fn same(tensor: &Tensor) {
    let bytes = write(tensor).unwrap();
    assert_eq!((bytes.len() - tensor_bytes(tensor)) % ALIGNMENT_BYTES, 0);
    let again = read(&bytes, &allocator()).unwrap();
    assert_eq!(again.metadata(), tensor.metadata());
    assert_eq!(write(&again).unwrap(), bytes);
}

fn tensor_bytes(tensor: &Tensor) -> usize {
    tensor
        .as_dense()
        .map_or(0, |dense| dense.buffer().len_bytes())
}

proptest! {
    #[test]
    fn arrays_come_back(extents in prop::collection::vec(0..5_usize, 0..5), values in prop::collection::vec(any::<u8>(), 625 * 16)) {
        let n: usize = extents.iter().product();
        let allocator = allocator();
        for (_, dtype) in NUMBERS {
            let metadata = TensorMetadata::new(dtype, TensorShape::new(&extents).unwrap());
            let bytes = &values[..n * dtype.size_bytes().unwrap()];
            same(&DenseHostTensor::from_bytes(&allocator, metadata, bytes).unwrap().into());
        }
    }

    #[test]
    fn damaged_files_are_errors_or_arrays(at in 0..200_usize, bit in 0..8_u8, cut in 0..200_usize) {
        let elements = [Complex { real: 1.0_f32, imaginary: 2.0 }; 6];
        let tensor = DenseHostTensor::from_slice(&allocator(), &[2, 3], &elements).unwrap().into();
        let mut bytes = write(&tensor).unwrap();
        prop_assert!(read(&bytes[..cut.min(bytes.len() - 1)], &allocator()).is_err());
        let at = at % bytes.len();
        bytes[at] ^= 1_u8 << bit;
        let _ = read(&bytes, &allocator());
    }
}
