//! [`Sampler`]: a thread that measures now and then what no recorder has: how many tasks there are,
//! and how much memory is in use.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tfrt::ConcurrentWorkQueue;
use tfrt::asynchronous::memory_stats;
use tfrt::profile::{Recorder, Sample};

/// The time between two samples, to begin with.
const INTERVAL: Duration = Duration::from_micros(200);
/// The number of samples that are kept. When there are more, every second is dropped, and the
/// interval is doubled.
const MAX_SAMPLES: usize = 1 << 15;

/// A thread that takes samples until it is stopped.
pub struct Sampler {
    look: Box<dyn Fn() -> Sample>,
    first: Sample,
    /// The thread ends when this is dropped. Nothing is sent.
    stop: Sender<()>,
    thread: Option<JoinHandle<Vec<Sample>>>,
}

impl Sampler {
    /// Begins to take samples. Where no thread can be made, there are two: the first and the last.
    pub fn start(recorder: Arc<Recorder>, queue: Arc<dyn ConcurrentWorkQueue>) -> Sampler {
        let look = move || Sample {
            at_ns: recorder.now_ns(),
            tasks: queue.activity().in_flight as u64,
            live_bytes: memory_stats().live_bytes,
        };
        let (stop, stopped) = mpsc::channel::<()>();
        let body = {
            let look = look.clone();
            move || {
                let (mut samples, mut interval) = (Vec::new(), INTERVAL);
                while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    samples.push(look());
                    if samples.len() >= MAX_SAMPLES {
                        let mut is_kept = false;
                        samples.retain(|_| {
                            is_kept = !is_kept;
                            is_kept
                        });
                        interval *= 2;
                    }
                }
                samples
            }
        };
        let thread = thread::Builder::new().name("tfrt-sampler".to_owned());
        Sampler {
            first: look(),
            look: Box::new(look),
            stop,
            thread: thread.spawn(body).ok(),
        }
    }

    /// Takes a last sample, and returns all of them, in order.
    pub fn stop(self) -> Vec<Sample> {
        drop(self.stop);
        let seen = self.thread.map(JoinHandle::join).and_then(Result::ok);
        let mut samples = vec![self.first];
        samples.extend(seen.unwrap_or_default());
        samples.push((self.look)());
        samples
    }
}
