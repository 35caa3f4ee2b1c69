//! A device of one's own: memory that only the device reads, and a thread that copies after a while.
//!
//! Nothing of the runtime knows it. Its memory is a list of bytes behind a lock, full of poison at first; its thread
//! does what it is asked for, copies and [kernels](KERNELS), one after the other, each some time after it was asked for, as
//! hardware would. A device for a test can be [paused](FakeDevice::pause): what is asked for then waits.

#![forbid(unsafe_code)]

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tfrt::host::device::{
    Device, DeviceBuffer, DeviceMemory, DeviceSlice, MemoryKind, Source, Target,
};
use tfrt::host::{DType, DeviceId, DeviceKind, when_all};
use tfrt::tensor::op::{OpCall, OpKernel, OpResults};
use tfrt::tensor::{DeviceTensor, Tensor, allocate_on};
use tfrt::{AnyAsyncValue, AsyncValue, Chain, Error, Promise, RequestContext};

/// The kind of such devices.
pub const KIND: DeviceKind = DeviceKind::new("fake");

/// What the device can do: operations of `f32`, of operands of one shape.
pub const KERNELS: &[OpKernel] = &[
    kernel("add", |call| run(call, |x| x[0] + x[1])),
    kernel("mul", |call| run(call, |x| x[0] * x[1])),
    kernel("relu", |call| run(call, |x| x[0].max(0.0))),
];

const fn kernel(op: &'static str, run: fn(&OpCall<'_>) -> Result<OpResults, Error>) -> OpKernel {
    OpKernel::new(op, KIND, run).types(&[DType::F32])
}

/// What memory holds that nobody wrote to.
const POISON: u8 = 0xa5;

/// A device.
pub struct FakeDevice {
    id: DeviceId,
    name: String,
    jobs: Sender<Job>,
    shared: Arc<Shared>,
}

/// What a device, its thread and its memory share.
struct Shared {
    n_bytes: usize,
    // A statistic, and what the limit is asked of.
    held_bytes: AtomicUsize,
    // A statistic.
    n_done: AtomicUsize,
    is_paused: Mutex<bool>,
    changed: Condvar,
}

/// Memory of a device.
struct FakeMemory {
    device: DeviceId,
    name: String,
    bytes: Mutex<Vec<u8>>,
    shared: Arc<Shared>,
    jobs: Sender<Job>,
}

/// What was asked for: work, and who waits for it.
struct Job {
    work: Box<dyn FnOnce() -> Result<(), Error> + Send>,
    done: Promise<Chain>,
}

impl FakeDevice {
    /// Makes a device of so many bytes, each of whose copies takes so long at least.
    pub fn new(id: DeviceId, name: &str, n_bytes: usize, delay: Duration) -> FakeDevice {
        let shared = Arc::new(Shared {
            n_bytes,
            held_bytes: AtomicUsize::new(0),
            n_done: AtomicUsize::new(0),
            is_paused: Mutex::new(false),
            changed: Condvar::new(),
        });
        let (jobs, receiver) = channel();
        let others = shared.clone();
        // It ends when the device is dropped, and all that was asked for is done.
        thread::spawn(move || work(&receiver, &others, delay));
        FakeDevice {
            id,
            name: name.to_owned(),
            jobs,
            shared,
        }
    }

    /// Lets copies wait from now on.
    pub fn pause(&self) {
        *lock(&self.shared.is_paused) = true;
    }

    /// Makes copies again.
    pub fn resume(&self) {
        *lock(&self.shared.is_paused) = false;
        self.shared.changed.notify_all();
    }

    /// How many copies and kernels are done.
    pub fn n_done(&self) -> usize {
        // Ordering: a statistic.
        self.shared.n_done.load(Ordering::Relaxed)
    }

    /// How many bytes of the device are held.
    pub fn held_bytes(&self) -> usize {
        // Ordering: a statistic.
        self.shared.held_bytes.load(Ordering::Relaxed)
    }
}

impl Device for FakeDevice {
    fn kind(&self) -> DeviceKind {
        KIND
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn memory(&self) -> MemoryKind {
        MemoryKind::Device
    }

    fn allocate(
        &self,
        _: &RequestContext,
        len_bytes: usize,
        _: usize,
    ) -> Result<DeviceMemory, Error> {
        let held = &self.shared.held_bytes;
        let add = |held: usize| {
            let sum = held.checked_add(len_bytes)?;
            (sum <= self.shared.n_bytes).then_some(sum)
        };
        // Ordering: a statistic.
        let added = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        if added.is_err() {
            let name = &self.name;
            return Err(Error::resource_exhausted(format!(
                "there are no {len_bytes} bytes on {name}"
            )));
        }
        Ok(Arc::new(FakeMemory {
            device: self.id,
            name: self.name.clone(),
            bytes: Mutex::new(vec![POISON; len_bytes]),
            shared: self.shared.clone(),
            jobs: self.jobs.clone(),
        }))
    }

    fn copy(&self, from: Source, to: Target, after: &[AnyAsyncValue]) -> AsyncValue<Chain> {
        let (done, chain) = AsyncValue::pending();
        let work = Box::new(move || copy(from, to));
        enqueue(&self.jobs, Job { work, done }, after);
        chain
    }
}

/// Asks the device for work when what it waits for is there.
fn enqueue(jobs: &Sender<Job>, job: Job, after: &[AnyAsyncValue]) {
    let jobs = jobs.clone();
    when_all(after).when_settled(move |all| match all.error() {
        Some(error) => job.done.complete(Err(error.clone())),
        None => {
            // A job that nobody does any more fails its promise.
            let _ended = jobs.send(job);
        }
    });
}

impl DeviceBuffer for FakeMemory {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn len_bytes(&self) -> usize {
        lock(&self.bytes).len()
    }

    fn describe(&self) -> String {
        format!("FakeTensor<size={}> on {}", self.len_bytes(), self.name)
    }
}

impl Drop for FakeMemory {
    fn drop(&mut self) {
        let len_bytes = self.len_bytes();
        // Ordering: a statistic.
        let held = &self.shared.held_bytes;
        held.fetch_sub(len_bytes, Ordering::Relaxed);
    }
}

/// What the device's thread does.
fn work(jobs: &Receiver<Job>, shared: &Shared, delay: Duration) {
    for job in jobs {
        thread::sleep(delay);
        let paused = lock(&shared.is_paused);
        let going_on = shared.changed.wait_while(paused, |is_paused| *is_paused);
        drop(going_on);
        let Job { work, done } = job;
        // Rights to what was used are given back before it is said that it is done.
        let worked = work();
        // Ordering: a statistic.
        shared.n_done.fetch_add(1, Ordering::Relaxed);
        done.complete(worked.map(|()| Chain));
    }
}

fn copy(from: Source, to: Target) -> Result<(), Error> {
    from.expect_len_of(&to)?;
    let bytes = match &from {
        Source::Host(reading) => reading.deref().to_vec(),
        Source::Device(slice) => lock(&memory_of(slice)?.bytes)[slice.range()].to_vec(),
    };
    match to {
        Target::Host(mut writing) => writing.copy_from_slice(&bytes),
        Target::Device(slice) => {
            lock(&memory_of(&slice)?.bytes)[slice.range()].copy_from_slice(&bytes);
        }
    }
    Ok(())
}

/// Runs a function of each element of the operands, which are on the device.
fn run(call: &OpCall<'_>, function: fn(&[f32]) -> f32) -> Result<OpResults, Error> {
    let wrong = |what: &str| Error::invalid_argument(format!("{}: expected {what}", call.op.name));
    let device = call.device.ok_or_else(|| wrong("a device"))?;
    let inputs = call.inputs.iter().map(|input| match input.get::<Tensor>() {
        Some(Tensor::Device(tensor)) => Ok(tensor.clone()),
        _ => Err(wrong("tensors on the device")),
    });
    let inputs: Vec<DeviceTensor> = inputs.collect::<Result<_, _>>()?;
    let first = inputs.first().ok_or_else(|| wrong("an operand"))?;
    let metadata = first.metadata().clone();
    if inputs.iter().any(|input| *input.metadata() != metadata) {
        return Err(wrong("operands of one type and shape"));
    }
    let (done, ready) = AsyncValue::pending();
    let out = allocate_on(device, metadata, ready, call.execution)?;
    let after = inputs.iter().map(|one| one.ready().as_any().clone());
    let after: Vec<AnyAsyncValue> = after.collect();
    let jobs = memory_of(out.elements())?.jobs.clone();
    let to = out.elements().clone();
    let work = Box::new(move || {
        let lists = inputs.iter().map(|input| floats(input.elements()));
        let lists: Vec<Vec<f32>> = lists.collect::<Result<_, _>>()?;
        let n = lists[0].len();
        let made = (0..n).flat_map(|index| {
            let elements: Vec<f32> = lists.iter().map(|list| list[index]).collect();
            function(&elements).to_le_bytes()
        });
        let made: Vec<u8> = made.collect();
        lock(&memory_of(&to)?.bytes)[to.range()].copy_from_slice(&made);
        Ok(())
    });
    enqueue(&jobs, Job { work, done }, &after);
    let out = AnyAsyncValue::new::<Tensor>(Tensor::Device(out));
    Ok([out].into_iter().collect())
}

fn floats(slice: &DeviceSlice) -> Result<Vec<f32>, Error> {
    let bytes = lock(&memory_of(slice)?.bytes);
    let (each, _) = bytes[slice.range()].as_chunks::<4>();
    Ok(each.iter().map(|four| f32::from_le_bytes(*four)).collect())
}

fn memory_of(slice: &DeviceSlice) -> Result<&FakeMemory, Error> {
    slice.downcast().ok_or_else(|| {
        let found = slice.memory().describe();
        Error::invalid_argument(format!("expected memory of a fake device, found {found}"))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
