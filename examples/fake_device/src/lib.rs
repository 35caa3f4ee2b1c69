//! A device of one's own: memory that only the device reads, and a thread that copies after a while.
//!
//! Nothing of the runtime knows it. Its memory is a list of bytes behind a lock, full of poison at first; its thread
//! makes copies one after the other, each some time after it was asked for, as hardware would. A device for a test can
//! be [paused](FakeDevice::pause): copies that are asked for then wait.

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
use tfrt::host::{DeviceId, DeviceKind, when_all};
use tfrt::{AnyAsyncValue, AsyncValue, Chain, Error, Promise, RequestContext};

/// The kind of such devices.
pub const KIND: DeviceKind = DeviceKind::new("fake");

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
    is_paused: Mutex<bool>,
    changed: Condvar,
}

/// Memory of a device.
struct FakeMemory {
    device: DeviceId,
    name: String,
    bytes: Mutex<Vec<u8>>,
    shared: Arc<Shared>,
}

/// A copy that was asked for.
struct Job {
    from: Source,
    to: Target,
    done: Promise<Chain>,
}

impl FakeDevice {
    /// Makes a device of so many bytes, each of whose copies takes so long at least.
    pub fn new(id: DeviceId, name: &str, n_bytes: usize, delay: Duration) -> FakeDevice {
        let shared = Arc::new(Shared {
            n_bytes,
            held_bytes: AtomicUsize::new(0),
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
        }))
    }

    fn copy(&self, from: Source, to: Target, after: &[AnyAsyncValue]) -> AsyncValue<Chain> {
        let (done, chain) = AsyncValue::pending();
        let (job, jobs) = (Job { from, to, done }, self.jobs.clone());
        when_all(after).when_settled(move |all| match all.error() {
            Some(error) => job.end(Err(error.clone())),
            None => {
                // A job that nobody does any more fails its promise.
                let _ended = jobs.send(job);
            }
        });
        chain
    }
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
        self.shared
            .held_bytes
            .fetch_sub(len_bytes, Ordering::Relaxed);
    }
}

/// What the device's thread does.
fn work(jobs: &Receiver<Job>, shared: &Shared, delay: Duration) {
    for job in jobs {
        thread::sleep(delay);
        let paused = lock(&shared.is_paused);
        let going_on = shared.changed.wait_while(paused, |is_paused| *is_paused);
        drop(going_on);
        let copied = job.copy();
        job.end(copied);
    }
}

impl Job {
    fn copy(&self) -> Result<Vec<u8>, Error> {
        self.from.expect_len_of(&self.to)?;
        match &self.from {
            Source::Host(reading) => Ok(reading.deref().to_vec()),
            Source::Device(slice) => {
                let memory = memory_of(slice)?;
                Ok(lock(&memory.bytes)[slice.range()].to_vec())
            }
        }
    }

    /// Writes what was read, gives the rights back, then says that it is done.
    fn end(self, copied: Result<Vec<u8>, Error>) {
        let Job { from, to, done } = self;
        let written = copied.and_then(|bytes| match to {
            Target::Host(mut writing) => {
                writing.copy_from_slice(&bytes);
                Ok(())
            }
            Target::Device(slice) => {
                let memory = memory_of(&slice)?;
                lock(&memory.bytes)[slice.range()].copy_from_slice(&bytes);
                Ok(())
            }
        });
        drop(from);
        done.complete(written.map(|()| Chain));
    }
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
