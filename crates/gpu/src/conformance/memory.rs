//! Checks of memory, copies and fills, and of the rights to host memory that copies hold.

use tfrt_host::memory::HostBuffer;

use super::{Bed, numbers, refused};
use crate::driver::{DevicePointer, Fill, GpuErrorKind};

pub(super) fn memory(bed: &Bed) {
    let info = |bed: &Bed| bed.driver.memory_info(bed.context).expect("it tells");
    let before = info(bed);
    let blocks: Vec<DevicePointer> = [1, 255, 256, 4 << 20].map(|len| bed.allocate(len)).to_vec();
    for block in &blocks {
        assert!(block.0.is_multiple_of(256), "{block}");
    }
    let held = info(bed);
    assert!(held.free_bytes < before.free_bytes && held.total_bytes == before.total_bytes);
    blocks.into_iter().for_each(|block| bed.free(block));
    refused(
        bed.driver.allocate(bed.context, 0),
        "CUDA_ERROR_INVALID_VALUE",
    );
}

pub(super) fn too_much_memory(bed: &Bed) {
    let total = bed
        .driver
        .memory_info(bed.context)
        .expect("it tells")
        .total_bytes;
    let error = bed
        .driver
        .allocate(bed.context, 2 * total)
        .expect_err("there is none");
    assert_eq!(
        (&*error.code, error.kind),
        ("CUDA_ERROR_OUT_OF_MEMORY", GpuErrorKind::Exhausted)
    );
    bed.free(bed.allocate(1024));
}

pub(super) fn there_and_back(bed: &Bed) {
    for len in [1, 3, 4096, 300_001] {
        let bytes = numbers(len, len);
        let block = bed.allocate(len);
        bed.up(bed.stream, &bed.buffer(&bytes), block);
        assert!(bed.content(block, len) == bytes, "{len} bytes");
        bed.free(block);
    }
}

pub(super) fn parts(bed: &Bed) {
    let block = bed.allocate(64);
    bed.up(bed.stream, &bed.buffer(&[7; 64]), block);
    bed.up(bed.stream, &bed.buffer(&[1, 2, 3]), block.offset(5));
    let mut expected = [7; 64];
    expected[5..8].copy_from_slice(&[1, 2, 3]);
    assert_eq!(bed.content(block, 64), expected);
    assert_eq!(bed.content(block.offset(4), 5), [7, 1, 2, 3, 7]);
    bed.free(block);
}

pub(super) fn within(bed: &Bed) {
    let bytes = numbers(1000, 3);
    let (one, two) = (bed.allocate(1000), bed.allocate(1000));
    bed.up(bed.stream, &bed.buffer(&bytes), one);
    bed.within(bed.stream, one, two, 1000);
    bed.within(bed.stream, one.offset(10), two.offset(500), 100);
    let mut expected = bytes.clone();
    expected[500..600].copy_from_slice(&bytes[10..110]);
    assert_eq!(bed.content(two, 1000), expected);
    bed.free(one);
    bed.free(two);
}

pub(super) fn fills(bed: &Bed) {
    let block = bed.allocate(16);
    let fill = |at, value, n| {
        bed.driver
            .fill(bed.context, bed.stream, at, value, n)
            .expect("it is queued")
    };
    fill(block, Fill::Word(0x0403_0201), 4);
    fill(block.offset(4), Fill::Half(0x0605), 2);
    fill(block.offset(9), Fill::Byte(9), 3);
    fill(block, Fill::Byte(0), 0);
    assert_eq!(
        bed.content(block, 16),
        [1, 2, 3, 4, 5, 6, 5, 6, 1, 9, 9, 9, 1, 2, 3, 4]
    );
    bed.free(block);
}

pub(super) fn rights(bed: &Bed) {
    let (block, bytes) = (bed.allocate(100), bed.buffer(&[1; 100]));
    bed.up(bed.stream, &bytes, block);
    assert!(bytes.write().is_err(), "the copy holds it");
    bed.wait(bed.stream);
    assert!(bytes.write().is_ok(), "the copy is over");
    let event = bed
        .driver
        .create_event(bed.context, false)
        .expect("it has events");
    bed.down(bed.stream, block, &bytes);
    bed.driver
        .record_event(bed.context, event, bed.stream)
        .expect("it is queued");
    // This one is behind the record.
    let later = bed.buffer(&[2; 100]);
    bed.up(bed.stream, &later, block);
    assert!(bytes.read().is_err(), "the copy holds it");
    bed.driver
        .synchronize_event(bed.context, event)
        .expect("it is reached");
    assert_eq!(*bytes.read().expect("the copy is over"), [1; 100]);
    assert!(
        later.write().is_err(),
        "nobody has heard that this one is over"
    );
    bed.driver
        .synchronize_context(bed.context)
        .expect("nothing is lost");
    assert!(later.write().is_ok());
    bed.driver
        .destroy_event(bed.context, event)
        .expect("it is there");
    bed.free(block);
}

pub(super) fn rights_of_destroyed_streams(bed: &Bed) {
    let stream = bed
        .driver
        .create_stream(bed.context)
        .expect("it has streams");
    let (block, bytes) = (bed.allocate(1 << 18), bed.buffer(&vec![5; 1 << 18]));
    bed.up(stream, &bytes, block);
    bed.driver
        .destroy_stream(bed.context, stream)
        .expect("it is there");
    assert!(bytes.write().is_ok());
    assert!(bed.content(block, 1 << 18).iter().all(|byte| *byte == 5));
    bed.free(block);
}

pub(super) fn pinned(bed: &Bed) {
    const LEN: usize = 1 << 16;
    let buffer = HostBuffer::zeroed(bed.host.allocator(), LEN, 4096).expect("there is memory");
    buffer
        .write()
        .expect("nobody uses it")
        .copy_from_slice(&numbers(LEN, 1));
    let pinned = bed
        .driver
        .register(bed.context, buffer.clone())
        .expect("it is memory of the host");
    let block = bed.allocate(LEN);
    bed.up(bed.stream, &buffer, block);
    bed.wait(bed.stream);
    buffer.write().expect("the copy is over").fill(0);
    bed.down(bed.stream, block, &buffer);
    bed.wait(bed.stream);
    assert!(*buffer.read().expect("the copy is over") == numbers(LEN, 1));
    bed.driver
        .unregister(bed.context, pinned)
        .expect("it is there");
    assert!(
        bed.driver.unregister(bed.context, pinned).is_err(),
        "it was given back"
    );
    bed.free(block);
}

pub(super) fn lent(bed: &Bed) {
    let buffer = HostBuffer::zeroed(bed.host.allocator(), 4096, 4096).expect("there is memory");
    let (driver, context) = (&bed.driver, bed.context);
    let pinned = driver.register(context, buffer.clone());
    let pinned = pinned.expect("it is memory of the host");
    let mut places = Vec::new();
    for word in [1, 2] {
        let right = buffer.clone().write_owned().expect("nobody uses it");
        let at = driver.lend(context, pinned, right).expect("it is pinned");
        places.push(at);
        assert!(buffer.read().is_err(), "the device has it");
        driver
            .fill(context, bed.stream, at, Fill::Word(word), 1024)
            .expect("it is queued");
        bed.wait(bed.stream);
        driver.take_back(context, pinned).expect("it was lent");
        assert_eq!(buffer.read().expect("it is back")[..4], word.to_le_bytes());
    }
    assert_eq!(places[0], places[1]);
    driver.unregister(context, pinned).expect("it is there");
}
