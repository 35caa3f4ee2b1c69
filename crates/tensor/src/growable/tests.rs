use std::sync::Arc;

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{ErrorCode, HostContext};

use super::*;
use crate::{Element, F16, Tensor};

fn allocator() -> Arc<dyn HostAllocator> {
    let host = HostContext::builder(KernelRegistry::new()).build();
    host.allocator().clone()
}

fn of<T: Element>(extents: &[usize], elements: &[T]) -> DenseHostTensor {
    DenseHostTensor::from_slice(&allocator(), extents, elements).unwrap()
}

fn elements<T: Element>(tensor: &GrowableTensor) -> Vec<T> {
    let dense = tensor.to_dense(&allocator()).unwrap();
    dense.read().unwrap().elements::<T>().unwrap().to_vec()
}

/// Returns a part of two rows for each of two blocks, of so many elements along the axis.
fn part(first: i32, extent: usize) -> DenseHostTensor {
    let n = i32::try_from(extent * 4).unwrap();
    of(&[2, extent, 2], &(first..first + n).collect::<Vec<_>>())
}

fn appended(tensor: &GrowableTensor, part: &DenseHostTensor) -> GrowableTensor {
    tensor.appended(&allocator(), &[part]).unwrap()
}

fn begun(room: usize) -> GrowableTensor {
    GrowableTensor::new(&allocator(), &part(0, 1), 1, room, "the cache").unwrap()
}

#[test]
fn what_is_appended_stands_behind_each_block_in_the_same_buffer() {
    let first = begun(4);
    let second = appended(&first, &part(10, 2));
    assert!(second.shares_buffer_with(&first));
    assert_eq!(
        elements::<i32>(&second),
        [0, 1, 10, 11, 12, 13, 2, 3, 14, 15, 16, 17]
    );
    assert_eq!(elements::<i32>(&first), [0, 1, 2, 3]);
    let (room, extent) = (second.room(), second.extent());
    assert_eq!((room, extent, second.n_blocks()), (4, 3, 2));
    let third = second
        .appended(&allocator(), &[&part(0, 0), &part(50, 1), &part(0, 0)])
        .unwrap();
    assert!(third.shares_buffer_with(&first));
    assert_eq!(
        elements::<i32>(&third)[8..],
        [2, 3, 14, 15, 16, 17, 52, 53][..]
    );
    assert_eq!(third.metadata().to_string(), "i32 [2, 4, 2]");
}

#[test]
fn second_of_two_that_append_to_one_is_copied_and_both_keep_their_own() {
    let first = begun(4);
    let one = appended(&first, &part(10, 1));
    let other = appended(&first, &part(20, 2));
    assert!(!other.shares_buffer_with(&first));
    let other = appended(&other, &part(30, 1));
    let one = appended(&one, &part(40, 1));
    assert!(one.shares_buffer_with(&first));
    assert_eq!(
        elements::<i32>(&one),
        [0, 1, 10, 11, 40, 41, 2, 3, 12, 13, 42, 43]
    );
    let expected = [0, 1, 20, 21, 22, 23, 30, 31];
    assert_eq!(elements::<i32>(&other)[..8], expected);
    assert_eq!(elements::<i32>(&first), [0, 1, 2, 3]);
}

#[test]
fn tensor_begins_empty_and_grows_whatever_its_elements_are() {
    let empty = of::<F16>(&[2, 0], &[]);
    let mut tensor = GrowableTensor::new(&allocator(), &empty, 1, 100, "the cache").unwrap();
    for step in 0..100_u16 {
        let more = of(&[2, 1], &[F16(step), F16(1000 + step)]);
        tensor = tensor.appended(&allocator(), &[&more]).unwrap();
    }
    let found = elements::<F16>(&tensor);
    let expected = (0..100).chain(1000..1100).map(F16);
    assert!(found.iter().copied().eq(expected));
    // Along the first dimension, and the last; nothing before, and nothing behind.
    let empty = of::<u8>(&[0, 0, 3], &[]);
    for (axis, extents) in [(0, [1, 0, 3]), (1, [0, 1, 3]), (2, [0, 0, 1])] {
        let tensor = GrowableTensor::new(&allocator(), &empty, axis, 5, "the cache").unwrap();
        let tensor = tensor
            .appended(&allocator(), &[&of::<u8>(&extents, &[])])
            .unwrap();
        assert!(elements::<u8>(&tensor).is_empty());
    }
}

#[test]
fn tensor_longer_than_its_room_is_refused_and_nothing_is_taken() {
    let first = begun(3);
    let refused = |tensor: &GrowableTensor, part: &DenseHostTensor| {
        let error = tensor.appended(&allocator(), &[part]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        error.message().to_owned()
    };
    assert_eq!(
        refused(&first, &part(0, 3)),
        "the cache has room for 3 along dimension 1, and 4 are needed: for i32 [2, 1, 2] and 3 more"
    );
    let error = GrowableTensor::new(&allocator(), &part(0, 4), 1, 3, "the cache").unwrap_err();
    assert_eq!(
        error.message(),
        "the cache has room for 3 along dimension 1, and 4 are needed: for i32 [2, 4, 2]"
    );
    assert_eq!(
        refused(&first, &of(&[2, 1, 3], &[0; 6])),
        "a tensor of i32 [2, 1, 3] can't be put behind one of i32 [2, 1, 2] along dimension 1"
    );
    refused(&first, &of(&[2, 1], &[0; 2]));
    refused(&first, &of(&[2, 1, 2], &[0.0_f32; 4]));
    let full = appended(&first, &part(0, 2));
    assert!(full.shares_buffer_with(&first));
    refused(&full, &part(0, 1));
    // Nothing more is no change, also of a shorter one.
    assert!(appended(&first, &part(0, 0)).shares_buffer_with(&first));
    assert!(full.write(2, &part(0, 2)).is_err() && full.block(2).is_err());
    assert!(GrowableTensor::new(&allocator(), &part(0, 1), 3, 9, "the cache").is_err());
}

#[test]
fn first_elements_of_a_dense_tensor_are_seen_where_they_lie() {
    let dense = part(0, 3);
    let seen = GrowableTensor::first_of(&allocator(), &dense, 1, 2).unwrap();
    assert_eq!(elements::<i32>(&seen), [0, 1, 2, 3, 6, 7, 8, 9]);
    let address = seen.block(1).unwrap().buffer().address();
    assert_eq!(address, dense.buffer().address() + 6 * 4);
    // The tensor is somebody's, who sees no more in it.
    let longer = appended(&seen, &part(90, 1));
    assert_eq!(elements::<i32>(&longer)[4..6], [90, 91]);
    assert_eq!(dense.read().unwrap().elements::<i32>().unwrap()[4], 4);
    assert!(GrowableTensor::first_of(&allocator(), &dense, 1, 4).is_err());
    assert!(GrowableTensor::first_of(&allocator(), &dense, 3, 0).is_err());
}

#[test]
fn tensor_that_grows_is_a_dense_one_for_those_who_want_that() {
    let tensor = Tensor::from(appended(&begun(3), &part(10, 1)));
    let dense = tensor.as_dense().unwrap();
    assert_eq!(dense.shape().to_string(), "[2, 2, 2]");
    assert!(std::ptr::eq(dense, tensor.as_dense().unwrap()));
    assert!(
        tensor
            .to_text()
            .unwrap()
            .ends_with("[0, 1, 10, 11, 2, 3, 12, 13]")
    );
    assert_eq!(tensor.format().name(), "GrowableHost");
}

#[test]
fn threads_read_a_tensor_while_others_append_to_it() {
    let mut tensor = GrowableTensor::new(&allocator(), &part(0, 0), 1, 65, "the cache").unwrap();
    std::thread::scope(|scope| {
        for step in 0..64 {
            tensor = appended(&tensor, &part(step * 4, 1));
            let seen = tensor.clone();
            scope.spawn(move || {
                let found = elements::<i32>(&seen);
                let own = (0..=step).flat_map(|step| [step * 4, step * 4 + 1]);
                assert!(found[..found.len() / 2].iter().copied().eq(own));
                // All but one of these are copies.
                appended(&seen, &part(-1, 1));
            });
        }
    });
}
