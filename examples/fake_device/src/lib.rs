//! A device of one's own: memory that only the device reads, and a thread that copies after a while.
//!
//! Nothing of the runtime knows it. Its memory is a list of bytes behind a lock, full of poison at first; its thread
//! does what it is asked for, copies and [kernels](KERNELS), one after the other, each some time after it was asked for, as
//! hardware would. A device for a test can be [paused](FakeDevice::pause): what is asked for then waits.

#![forbid(unsafe_code)]

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tfrt::host::device::{
    ByteBudget, ByteReservation, Device, DeviceBuffer, DeviceMemory, DeviceSlice, DeviceThread,
    MemoryKind, Source, Target,
};
use tfrt::host::{DeviceId, DeviceKind};
use tfrt::{AnyAsyncValue, AsyncValue, Chain, Error, Promise, RequestContext};

mod kernels;

pub use kernels::KERNELS;

/// The kind of such devices.
pub const KIND: DeviceKind = DeviceKind::new("fake");

/// Byte value of memory that nobody wrote to.
const POISON: u8 = 0xa5;

/// A device.
pub struct FakeDevice(Arc<Shared>);

/// State shared by a device and its memory.
struct Shared {
    id: DeviceId,
    name: String,
    budget: ByteBudget,
    thread: DeviceThread,
    progress: Arc<Progress>,
}

/// Progress of the device's thread.
struct Progress {
    delay: Duration,
    // A statistic.
    n_done: AtomicUsize,
    is_paused: Mutex<bool>,
    changed: Condvar,
}

/// Memory of a device.
struct FakeMemory {
    bytes: Mutex<Vec<u8>>,
    held: ByteReservation,
    shared: Arc<Shared>,
}

impl FakeDevice {
    /// Makes a device of so many bytes, each of whose copies takes so long at least.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no thread for it.
    pub fn new(
        id: DeviceId,
        name: &str,
        n_bytes: usize,
        delay: Duration,
    ) -> Result<FakeDevice, Error> {
        let progress = Progress {
            delay,
            n_done: AtomicUsize::new(0),
            is_paused: Mutex::new(false),
            changed: Condvar::new(),
        };
        Ok(FakeDevice(Arc::new(Shared {
            id,
            name: name.to_owned(),
            budget: ByteBudget::new(n_bytes),
            thread: DeviceThread::spawn(name)?,
            progress: Arc::new(progress),
        })))
    }

    /// Lets copies wait from now on.
    pub fn pause(&self) {
        *lock(&self.0.progress.is_paused) = true;
    }

    /// Makes copies again.
    pub fn resume(&self) {
        *lock(&self.0.progress.is_paused) = false;
        self.0.progress.changed.notify_all();
    }

    /// Returns the number of finished copies and kernels.
    pub fn n_done(&self) -> usize {
        // Ordering: a statistic.
        self.0.progress.n_done.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes of the device that are held.
    pub fn held_bytes(&self) -> usize {
        self.0.budget.held()
    }
}

impl Device for FakeDevice {
    fn kind(&self) -> DeviceKind {
        KIND
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn memory(&self) -> MemoryKind {
        MemoryKind::Device
    }

    fn allocate(&self, _: &RequestContext, n: usize, _: usize) -> Result<DeviceMemory, Error> {
        Ok(Arc::new(FakeMemory {
            held: self.0.budget.take(n, self.name())?,
            bytes: Mutex::new(vec![POISON; n]),
            shared: self.0.clone(),
        }))
    }

    fn copy(&self, from: Source, to: Target, after: &[AnyAsyncValue]) -> AsyncValue<Chain> {
        let (done, chain) = AsyncValue::pending();
        self.0.enqueue(after, done, move || copy(from, to));
        chain
    }
}

impl DeviceBuffer for FakeMemory {
    fn device(&self) -> DeviceId {
        self.shared.id
    }

    fn len_bytes(&self) -> usize {
        self.held.len()
    }

    fn describe(&self) -> String {
        let (n, name) = (self.held.len(), &self.shared.name);
        format!("FakeTensor<size={n}> on {name}")
    }
}

impl Shared {
    /// Asks the device for work when what it waits for is there.
    fn enqueue(
        &self,
        after: &[AnyAsyncValue],
        done: Promise<Chain>,
        work: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) {
        let progress = self.progress.clone();
        self.thread.enqueue(after, done, move || {
            thread::sleep(progress.delay);
            let paused = lock(&progress.is_paused);
            let going_on = progress.changed.wait_while(paused, |is_paused| *is_paused);
            drop(going_on);
            let worked = work();
            // Ordering: a statistic.
            progress.n_done.fetch_add(1, Ordering::Relaxed);
            worked
        });
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

fn memory_of(slice: &DeviceSlice) -> Result<&FakeMemory, Error> {
    slice.downcast().ok_or_else(|| {
        let found = slice.memory().describe();
        Error::invalid_argument(format!("expected memory of a fake device, found {found}"))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
