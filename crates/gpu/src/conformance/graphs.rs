//! Checks of captures and graphs. A driver without graphs keeps these promises by saying so.

#![expect(
    unsafe_code,
    reason = "launches of graphs whose commands are written beside them"
)]

use super::{Bed, PTX, refused};
use crate::driver::{Argument, Fill, GpuErrorKind, Grid, RawGraph, RawStream};

const LEN: usize = 4 * 256;

const UNSUPPORTED: &str = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";

impl Bed {
    /// Begins a capture of the stream; returns whether the driver has graphs.
    fn begins(&self) -> bool {
        match self.driver.begin_capture(self.context, self.stream) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind, GpuErrorKind::Unavailable, "{error}");
                false
            }
        }
    }

    fn ends(&self) -> RawGraph {
        let ended = self.driver.end_capture(self.context, self.stream);
        ended.expect("nothing has spoiled it")
    }
}

pub(super) fn replayed(bed: &Bed) {
    let module = bed.driver.load_module(bed.context, PTX.as_bytes());
    let module = module.expect("it is PTX");
    let function = bed.function(module, "axpy");
    let [x, y, z] = [[0.5; 256], [1.0; 256], [7.0; 256]].map(|values| bed.put(&values));
    bed.wait(bed.stream);
    if !bed.begins() {
        return;
    }
    let arguments = [
        Argument::U32(256),
        Argument::F32(2.0),
        Argument::Pointer(Some(x)),
        Argument::Pointer(Some(y)),
    ];
    for _ in 0..10 {
        bed.launch(function, Grid::linear(2, 128), &arguments);
    }
    bed.within(bed.stream, y, z, LEN);
    let filled = bed
        .driver
        .fill(bed.context, bed.stream, y, Fill::Word(0), 256);
    filled.expect("it is recorded");
    let graph = bed.ends();
    assert_eq!(
        bed.floats(y, 256),
        [1.0; 256],
        "what is recorded does not run"
    );
    let made = bed.driver.instantiate(bed.context, graph);
    let made = made.expect("it is a graph");
    bed.driver
        .destroy_graph(bed.context, graph)
        .expect("it is there");
    for expected in [11.0, 10.0, 10.0] {
        // SAFETY: all that it uses is there, and the stream orders it.
        let launched = unsafe { bed.driver.launch_graph(bed.context, bed.stream, made) };
        launched.expect("it is queued");
        assert_eq!(bed.floats(z, 256), [expected; 256]);
        assert_eq!(bed.floats(y, 256), [0.0; 256]);
    }
    bed.driver
        .destroy_executable(bed.context, made)
        .expect("it is there");
    bed.driver
        .unload_module(bed.context, module)
        .expect("it is there");
    for block in [x, y, z] {
        bed.free(block);
    }
}

pub(super) fn one_after_the_other(bed: &Bed) {
    let other = bed.driver.create_stream(bed.context);
    let other = other.expect("it has streams");
    let (one, two) = (bed.put(&[1.0; 256]), bed.allocate(LEN));
    bed.wait(bed.stream);
    if bed.begins() {
        bed.within(bed.stream, one, two, LEN);
        let filled = bed
            .driver
            .fill(bed.context, bed.stream, one, Fill::Word(0), 256);
        filled.expect("it is recorded");
        let graph = bed.ends();
        let made = bed.driver.instantiate(bed.context, graph);
        let made = made.expect("it is a graph");
        let launch = |stream: RawStream| {
            // SAFETY: all that it uses is there, and launches of one graph are ordered.
            let launched = unsafe { bed.driver.launch_graph(bed.context, stream, made) };
            launched.expect("it is queued");
        };
        for _ in 0..5 {
            launch(bed.stream);
            launch(other);
        }
        // Launches that are queued still run.
        bed.driver
            .destroy_executable(bed.context, made)
            .expect("it is there");
        bed.driver
            .destroy_graph(bed.context, graph)
            .expect("it is there");
        bed.wait(bed.stream);
        bed.wait(other);
        assert_eq!(bed.floats(two, 256), [0.0; 256]);
    }
    bed.driver
        .destroy_stream(bed.context, other)
        .expect("it is there");
    bed.free(one);
    bed.free(two);
}

pub(super) fn spoiled(bed: &Bed) {
    let driver = &bed.driver;
    let event = driver.create_event(bed.context, false);
    let event = event.expect("it has events");
    driver
        .record_event(bed.context, event, bed.stream)
        .expect("it is queued");
    let (block, buffer) = (bed.put(&[1.0; 256]), bed.buffer(&[0; LEN]));
    bed.wait(bed.stream);
    type Call<'c> = &'c dyn Fn() -> crate::GpuResult<()>;
    let up = || {
        let from = buffer.clone().read_owned().expect("nobody writes");
        let transfer = crate::driver::Transfer::Up { from, to: block };
        driver.copy(bed.context, bed.stream, transfer)
    };
    let calls: [Call<'_>; 8] = [
        &|| driver.synchronize_stream(bed.context, bed.stream),
        &|| driver.query_stream(bed.context, bed.stream).map(drop),
        &|| driver.synchronize_context(bed.context),
        &|| driver.record_event(bed.context, event, bed.stream),
        &|| driver.wait_event(bed.context, bed.stream, event),
        &|| driver.destroy_stream(bed.context, bed.stream),
        &up,
        &|| {
            let down = bed.buffer(&[0; LEN]).write_owned().expect("it is new");
            let transfer = crate::driver::Transfer::Down {
                from: block,
                to: down,
            };
            driver.copy(bed.context, bed.stream, transfer)
        },
    ];
    for call in calls {
        if !bed.begins() {
            break;
        }
        refused(call(), UNSUPPORTED);
        let ended = driver.end_capture(bed.context, bed.stream);
        refused(ended, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
        assert_eq!(bed.floats(block, 256), [1.0; 256], "the stream goes on");
    }
    driver
        .destroy_event(bed.context, event)
        .expect("it is there");
    bed.free(block);
}

pub(super) fn handles(bed: &Bed) {
    if !bed.begins() {
        return;
    }
    let driver = &bed.driver;
    let again = driver.begin_capture(bed.context, bed.stream);
    refused(again, "CUDA_ERROR_ILLEGAL_STATE");
    let ended = || driver.end_capture(bed.context, bed.stream);
    refused(ended(), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    refused(ended(), "CUDA_ERROR_ILLEGAL_STATE");
    assert!(bed.begins());
    let graph = bed.ends();
    let made = driver.instantiate(bed.context, graph);
    let made = made.expect("a graph without commands is one");
    let launch = || {
        // SAFETY: it uses nothing.
        unsafe { driver.launch_graph(bed.context, bed.stream, made) }
    };
    launch().expect("it is there");
    driver
        .destroy_graph(bed.context, graph)
        .expect("it is there");
    launch().expect("it does not need the graph");
    driver
        .destroy_executable(bed.context, made)
        .expect("it is there");
    let code = "CUDA_ERROR_INVALID_HANDLE";
    refused(driver.destroy_graph(bed.context, graph), code);
    refused(driver.instantiate(bed.context, graph), code);
    refused(launch(), code);
    refused(driver.destroy_executable(bed.context, made), code);
    bed.wait(bed.stream);
}
