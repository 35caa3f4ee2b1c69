//! Checks of streams and events: what runs before what, and what is waited for.

use std::thread;
use std::time::{Duration, Instant};

use super::{Bed, numbers, refused};
use crate::driver::{Fill, Grid, RawContext, RawStream};

pub(super) fn order_of_a_stream(bed: &Bed) {
    const LEN: usize = 1 << 14;
    let (one, two) = (bed.allocate(LEN), bed.allocate(LEN));
    for value in 0..20_u8 {
        bed.driver
            .fill(bed.context, bed.stream, one, Fill::Byte(value), LEN)
            .expect("it is queued");
        bed.within(bed.stream, one, two, LEN);
    }
    assert!(bed.content(two, LEN).iter().all(|byte| *byte == 19));
    bed.free(one);
    bed.free(two);
}

pub(super) fn waiting(bed: &Bed) {
    const LEN: usize = 1 << 14;
    let other = bed
        .driver
        .create_stream(bed.context)
        .expect("it has streams");
    let event = bed
        .driver
        .create_event(bed.context, false)
        .expect("it has events");
    let (one, two) = (bed.allocate(LEN), bed.allocate(LEN));
    let meet = |first: RawStream, second: RawStream| {
        bed.driver
            .record_event(bed.context, event, first)
            .expect("it is queued");
        bed.driver
            .wait_event(bed.context, second, event)
            .expect("it is queued");
    };
    for value in 0..20_u8 {
        bed.driver
            .fill(bed.context, bed.stream, one, Fill::Byte(value), LEN)
            .expect("it is queued");
        meet(bed.stream, other);
        bed.within(other, one, two, LEN);
        meet(other, bed.stream);
    }
    assert!(bed.content(two, LEN).iter().all(|byte| *byte == 19));
    bed.wait(other);
    bed.driver
        .destroy_event(bed.context, event)
        .expect("it is there");
    bed.driver
        .destroy_stream(bed.context, other)
        .expect("it is there");
    bed.free(one);
    bed.free(two);
}

pub(super) fn events(bed: &Bed) {
    let event = || {
        bed.driver
            .create_event(bed.context, false)
            .expect("it has events")
    };
    let (one, two) = (event(), event());
    let is_reached = |event| {
        bed.driver
            .query_event(bed.context, event)
            .expect("nothing is lost")
    };
    assert!(is_reached(one), "without a record");
    let block = bed.allocate(1 << 18);
    let record = |event| {
        bed.driver
            .record_event(bed.context, event, bed.stream)
            .expect("it is queued")
    };
    bed.driver
        .fill(bed.context, bed.stream, block, Fill::Byte(1), 1 << 18)
        .expect("it is queued");
    record(one);
    bed.driver
        .fill(bed.context, bed.stream, block, Fill::Byte(2), 1 << 18)
        .expect("it is queued");
    record(two);
    let begin = Instant::now();
    while !is_reached(two) {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "it is never reached"
        );
        thread::yield_now();
    }
    assert!(is_reached(one), "it comes before");
    assert!(
        bed.driver
            .query_stream(bed.context, bed.stream)
            .expect("nothing is lost")
    );
    for event in [one, two] {
        bed.driver
            .destroy_event(bed.context, event)
            .expect("it is there");
    }
    bed.free(block);
}

pub(super) fn times(bed: &Bed) {
    let event = |is_timing| {
        bed.driver
            .create_event(bed.context, is_timing)
            .expect("it has events")
    };
    let (one, two, mute) = (event(true), event(true), event(false));
    let block = bed.allocate(1 << 18);
    for event in [one, two, mute] {
        bed.driver
            .record_event(bed.context, event, bed.stream)
            .expect("it is queued");
        bed.driver
            .fill(bed.context, bed.stream, block, Fill::Byte(1), 1 << 18)
            .expect("it is queued");
    }
    bed.wait(bed.stream);
    let time = bed
        .driver
        .elapsed(bed.context, one, two)
        .expect("both are reached");
    assert!(
        time > Duration::ZERO && time < Duration::from_secs(1),
        "{time:?}"
    );
    refused(
        bed.driver.elapsed(bed.context, one, mute),
        "CUDA_ERROR_INVALID_HANDLE",
    );
    for event in [one, two, mute] {
        bed.driver
            .destroy_event(bed.context, event)
            .expect("it is there");
    }
    bed.free(block);
}

pub(super) fn handles_given_back(bed: &Bed) {
    let stream = bed
        .driver
        .create_stream(bed.context)
        .expect("it has streams");
    let event = bed
        .driver
        .create_event(bed.context, false)
        .expect("it has events");
    let module = bed.module();
    let function = bed.function(module, "nothing");
    bed.driver
        .destroy_stream(bed.context, stream)
        .expect("it is there");
    bed.driver
        .destroy_event(bed.context, event)
        .expect("it is there");
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    let code = "CUDA_ERROR_INVALID_HANDLE";
    refused(bed.driver.synchronize_stream(bed.context, stream), code);
    refused(bed.driver.destroy_stream(bed.context, stream), code);
    refused(bed.driver.query_event(bed.context, event), code);
    refused(
        bed.driver.record_event(bed.context, event, bed.stream),
        code,
    );
    refused(bed.driver.unload_module(bed.context, module), code);
    refused(bed.driver.function(bed.context, module, "nothing"), code);
    refused(bed.try_launch(function, Grid::linear(1, 1), &[]), code);
    let block = bed.allocate(256);
    bed.free(block);
    refused(
        bed.driver.free(bed.context, block),
        "CUDA_ERROR_INVALID_VALUE",
    );
    refused(
        bed.driver.create_stream(RawContext(999)),
        "CUDA_ERROR_INVALID_CONTEXT",
    );
}

pub(super) fn synchronising(bed: &Bed) {
    let block = bed.allocate(1 << 18);
    bed.driver
        .fill(bed.context, bed.stream, block, Fill::Byte(1), 1 << 18)
        .expect("it is queued");
    bed.driver
        .synchronize_context(bed.context)
        .expect("nothing is lost");
    assert!(
        bed.driver
            .query_stream(bed.context, bed.stream)
            .expect("nothing is lost")
    );
    bed.free(block);
}

pub(super) fn many_threads(bed: &Bed) {
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let stream = bed
                    .driver
                    .create_stream(bed.context)
                    .expect("it has streams");
                let block = bed.allocate(5000);
                for turn in 0..10 {
                    let bytes = numbers(5000, seed * 10 + turn);
                    let (from, to) = (bed.buffer(&bytes), bed.buffer(&[0; 5000]));
                    bed.up(stream, &from, block);
                    bed.down(stream, block, &to);
                    bed.wait(stream);
                    assert_eq!(*to.read().expect("the copy is over"), *bytes);
                }
                bed.driver
                    .destroy_stream(bed.context, stream)
                    .expect("it is there");
                bed.free(block);
            });
        }
    });
}

pub(super) fn own_contexts(bed: &Bed) {
    let driver = &bed.driver;
    let own = driver.create_context(bed.device).expect("there is room");
    let stream = driver.create_stream(own).expect("it has streams");
    let block = driver.allocate(own, 64).expect("it has memory");
    assert!(
        driver.synchronize_stream(bed.context, bed.stream).is_ok(),
        "the other context goes on"
    );
    driver
        .fill(own, stream, block, Fill::Byte(1), 64)
        .expect("it is queued");
    driver.synchronize_context(own).expect("it runs");
    driver.free(own, block).expect("it is there");
    driver.destroy_stream(own, stream).expect("it is there");
    driver.destroy_context(own).expect("it is there");
    assert!(driver.create_stream(own).is_err(), "it was given back");
}
