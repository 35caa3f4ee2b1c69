//! The tests that every device must pass.
//!
//! [`suite`] takes a function that makes a device for its number, and panics with the name of the promise that the
//! device does not keep.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tfrt_host::device::{HostDevice, conformance};
//!
//! conformance::suite(&|id| Arc::new(HostDevice::new(id, "CPU:1")));
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;

use tfrt_async::{AnyAsyncValue, AsyncValue, Chain, Error, ErrorCode};

use super::{Device, DeviceId, DeviceMemory, DeviceRef, DeviceSlice, Source, Target};
use crate::kernel::KernelRegistry;
use crate::memory::HostBuffer;
use crate::{HostContext, RequestContext};

/// A function that makes a device for its number.
pub type Make<'a> = dyn Fn(DeviceId) -> Arc<dyn Device> + 'a;

/// A named check of one promise of the contract.
type Check = (&'static str, fn(&Bed));

const CHECKS: &[Check] = &[
    ("a device has a name and a kind, which stay", name_and_kind),
    (
        "memory is of the length that was asked for, and of the device",
        memory,
    ),
    ("memory that there is not is an error", too_much_memory),
    ("what was copied to the device comes back", there_and_back),
    ("parts are copied, and nothing beside them", parts),
    (
        "the device copies from one of its places to another",
        within_the_device,
    ),
    ("a copy begins when all that it waits for is there", waiting),
    (
        "a copy that waits for what fails copies nothing and fails with that error",
        failing,
    ),
    (
        "rights are held until the chain settles, and given back then",
        rights,
    ),
    (
        "memory whose handles are dropped is kept until its copy is over",
        dropped_handles,
    ),
    (
        "a copy between places of different lengths is refused",
        different_lengths,
    ),
    ("trimming takes nothing that is in use", trimming),
    ("many threads copy at one time", many_threads),
];

/// Runs all checks on devices made by `make`.
///
/// # Panics
///
/// If one is not kept.
pub fn suite(make: &Make<'_>) {
    for (promise, check) in CHECKS {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let device = host.devices().add(make).expect("the name is new");
        let contract = host.devices().contract(&device).expect("it was added");
        let request = RequestContext::new(&host);
        let bed = Bed {
            device,
            contract,
            host,
            request,
        };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| check(&bed))) {
            eprintln!("'{}' breaks a promise: {promise}", bed.device.name());
            resume_unwind(payload);
        }
    }
}

/// The test bed: a device in a host.
struct Bed {
    host: HostContext,
    device: DeviceRef,
    contract: Arc<dyn Device>,
    request: Arc<RequestContext>,
}

impl Bed {
    fn buffer(&self, bytes: &[u8]) -> HostBuffer {
        HostBuffer::copy_of(self.host.allocator(), bytes).expect("there is memory")
    }

    fn memory(&self, len_bytes: usize) -> DeviceMemory {
        let memory = self.contract.allocate(&self.request, len_bytes, 64);
        memory.expect("there is memory")
    }

    fn whole(&self, memory: &DeviceMemory) -> DeviceSlice {
        DeviceSlice::new(memory.clone(), 0..memory.len_bytes()).expect("it is the whole")
    }

    /// Copies to the device.
    fn put(
        &self,
        bytes: &HostBuffer,
        to: DeviceSlice,
        after: &[AnyAsyncValue],
    ) -> AsyncValue<Chain> {
        let from = bytes.clone().read_owned().expect("nobody writes");
        let (from, to) = (Source::Host(from), Target::Device(to));
        self.contract.copy(from, to, after)
    }

    /// Copies from the device.
    fn get(
        &self,
        from: DeviceSlice,
        to: &HostBuffer,
        after: &[AnyAsyncValue],
    ) -> AsyncValue<Chain> {
        let to = to.clone().write_owned().expect("nobody uses it");
        let (from, to) = (Source::Device(from), Target::Host(to));
        self.contract.copy(from, to, after)
    }

    /// Returns the content of the device's memory, when `after` are there.
    fn content(&self, from: DeviceSlice, after: &[AnyAsyncValue]) -> Vec<u8> {
        let buffer = self.buffer(&vec![0xee; from.len_bytes()]);
        wait(&self.get(from, &buffer, after)).expect("it is copied");
        buffer.read().expect("the right was given back").to_vec()
    }
}

/// Waits for a chain on a thread that is no worker's.
fn wait(chain: &AsyncValue<Chain>) -> Result<(), Error> {
    let (sender, receiver) = channel();
    chain.clone().when_settled(move |chain| {
        let _receiver_waits = sender.send(match chain.get() {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("a settled chain is neither")),
        });
    });
    receiver.recv().expect("the chain settles")
}

fn name_and_kind(bed: &Bed) {
    assert!(!bed.contract.name().is_empty() && !bed.contract.kind().name().is_empty());
    assert_eq!(bed.contract.name(), bed.device.name());
    assert_eq!(bed.contract.kind(), bed.device.kind());
    assert_eq!(bed.contract.memory(), bed.contract.memory());
}

fn memory(bed: &Bed) {
    for len_bytes in [0, 1, 64, 1_000] {
        let memory = bed.memory(len_bytes);
        assert_eq!(memory.len_bytes(), len_bytes);
        assert_eq!(memory.device(), bed.device.id());
        assert!(!memory.describe().is_empty());
    }
}

fn too_much_memory(bed: &Bed) {
    let refused = bed.contract.allocate(&bed.request, usize::MAX / 4, 64);
    let error = refused.expect_err("nobody has so much");
    assert_eq!(error.code(), ErrorCode::ResourceExhausted, "{error}");
}

fn there_and_back(bed: &Bed) {
    for len in [0, 1, 100, 1 << 20] {
        let bytes: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
        let memory = bed.memory(len);
        let chain = bed.put(&bed.buffer(&bytes), bed.whole(&memory), &[]);
        assert!(bed.content(bed.whole(&memory), &[chain.into_any()]) == bytes);
    }
}

fn parts(bed: &Bed) {
    let memory = bed.memory(10);
    let part = |range| DeviceSlice::new(memory.clone(), range).expect("it is within");
    let first = bed.put(&bed.buffer(&[1; 10]), bed.whole(&memory), &[]);
    let second = bed.put(&bed.buffer(&[2; 4]), part(3..7), &[first.into_any()]);
    let after = [second.into_any()];
    assert_eq!(
        bed.content(bed.whole(&memory), &after),
        [1, 1, 1, 2, 2, 2, 2, 1, 1, 1]
    );
    assert_eq!(bed.content(part(6..8), &after), [2, 1]);
    assert!(DeviceSlice::new(memory.clone(), 5..11).is_none());
}

fn within_the_device(bed: &Bed) {
    let (from, to) = (bed.memory(4), bed.memory(8));
    let first = bed.put(&bed.buffer(&[1, 2, 3, 4]), bed.whole(&from), &[]);
    let second = bed.put(&bed.buffer(&[9; 8]), bed.whole(&to), &[]);
    let target = DeviceSlice::new(to.clone(), 2..6).expect("it is within");
    let chain = bed.contract.copy(
        Source::Device(bed.whole(&from)),
        Target::Device(target),
        &[first.into_any(), second.into_any()],
    );
    let content = bed.content(bed.whole(&to), &[chain.into_any()]);
    assert_eq!(content, [9, 9, 1, 2, 3, 4, 9, 9]);
}

fn waiting(bed: &Bed) {
    let memory = bed.memory(3);
    let (promise, start) = AsyncValue::<Chain>::pending();
    let first = bed.put(&bed.buffer(&[1; 3]), bed.whole(&memory), &[]);
    let after = [first.clone().into_any(), start.into_any()];
    let second = bed.put(&bed.buffer(&[2; 3]), bed.whole(&memory), &after);
    let before = bed.content(bed.whole(&memory), &[first.into_any()]);
    assert_eq!(before, [1; 3]);
    assert!(!second.is_settled());
    promise.resolve(Chain);
    assert_eq!(
        bed.content(bed.whole(&memory), &[second.into_any()]),
        [2; 3]
    );
}

fn failing(bed: &Bed) {
    let memory = bed.memory(3);
    let first = bed.put(&bed.buffer(&[1; 3]), bed.whole(&memory), &[]);
    wait(&first).expect("it is copied");
    let error = Error::aborted("what comes before");
    let failed = [AnyAsyncValue::from_error(error.clone())];
    let (promise, later) = AsyncValue::<Chain>::pending();
    for after in [&failed[..], &[later.into_any()]] {
        let buffer = bed.buffer(&[2; 3]);
        let second = bed.put(&buffer, bed.whole(&memory), after);
        let third = bed.get(
            bed.whole(&memory),
            &bed.buffer(&[3; 3]),
            &[second.clone().into_any()],
        );
        if after.iter().all(AnyAsyncValue::is_settled) {
            let found = wait(&second).expect_err("it waits for what failed");
            assert!(found.same(&error), "{found}");
            assert!(wait(&third).is_err());
        }
    }
    promise.fail(error);
    assert_eq!(bed.content(bed.whole(&memory), &[]), [1; 3]);
}

fn rights(bed: &Bed) {
    let memory = bed.memory(3);
    let (promise, start) = AsyncValue::<Chain>::pending();
    let after = [start.into_any()];
    let (from, to) = (bed.buffer(&[1; 3]), bed.buffer(&[0; 3]));
    let first = bed.put(&from, bed.whole(&memory), &after);
    let second = bed.get(bed.whole(&memory), &to, &[first.clone().into_any()]);
    assert!(from.read().is_ok() && from.write().is_err());
    assert!(to.read().is_err());
    let (sender, receiver) = channel();
    let buffers = (from.clone(), to.clone());
    second.clone().when_settled(move |_| {
        let (from, to) = buffers;
        let _receiver_waits = sender.send(from.write().is_ok() && to.write().is_ok());
    });
    promise.resolve(Chain);
    wait(&second).expect("it is copied");
    let are_back = receiver.recv().expect("the chain settled");
    assert!(are_back, "whoever goes on from the chain has the rights");
    assert_eq!(*to.read().expect("it was given back"), [1; 3]);
}

fn dropped_handles(bed: &Bed) {
    let (promise, start) = AsyncValue::<Chain>::pending();
    let to = bed.buffer(&[0; 3]);
    let chain = {
        let memory = bed.memory(3);
        let from = bed.buffer(&[5; 3]);
        let first = bed.put(&from, bed.whole(&memory), &[start.into_any()]);
        bed.get(bed.whole(&memory), &to, &[first.into_any()])
    };
    promise.resolve(Chain);
    wait(&chain).expect("it is copied");
    assert_eq!(*to.read().expect("it was given back"), [5; 3]);
}

fn different_lengths(bed: &Bed) {
    let memory = bed.memory(64);
    let bytes = bed.buffer(&[1; 63]);
    let copied = bed.put(&bytes, bed.whole(&memory), &[]);
    let error = wait(&copied).expect_err("63 bytes are not 64");
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
}

fn trimming(bed: &Bed) {
    drop(bed.memory(1_000));
    let memory = bed.memory(3);
    let chain = bed.put(&bed.buffer(&[5; 3]), bed.whole(&memory), &[]);
    bed.contract.trim();
    assert_eq!(bed.content(bed.whole(&memory), &[chain.into_any()]), [5; 3]);
}

fn many_threads(bed: &Bed) {
    std::thread::scope(|scope| {
        for number in 0..4_u8 {
            scope.spawn(move || {
                let memory = bed.memory(4_096);
                for round in 0..8_u8 {
                    let bytes = vec![number * 8 + round; 4_096];
                    let chain = bed.put(&bed.buffer(&bytes), bed.whole(&memory), &[]);
                    let found = bed.content(bed.whole(&memory), &[chain.into_any()]);
                    assert!(found == bytes);
                }
            });
        }
    });
}
