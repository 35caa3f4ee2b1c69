//! [`Loaded`]: a version of a model that is ready for requests.

use std::sync::Arc;
use std::time::Instant;

use tfrt_host::{AnyAsyncValue, Error, HostAllocator, RequestContext};
use tfrt_tensor::Tensor;

use crate::batch::{Batcher, Batching};
use crate::inference::settle;
use crate::pace::Pace;
use crate::servable::{Description, Place, Servable};
use crate::statistics::Statistics;

/// Inputs of more bytes than these make a call a large one, whatever others took.
const SMALL_INPUT_BYTES: usize = 256 << 10;

/// A version of a model, loaded. Requests hold it, so that it lives until the last of them ends.
pub(crate) struct Loaded {
    pub name: Arc<str>,
    pub version: u64,
    pub servable: Arc<dyn Servable>,
    pub statistics: Statistics,
    /// Joins requests, if they are to be joined.
    pub batcher: Option<Batcher>,
    pace: Pace,
}

impl Loaded {
    pub fn new(
        name: Arc<str>,
        version: u64,
        servable: Arc<dyn Servable>,
        batcher: Option<Batcher>,
    ) -> Loaded {
        Loaded {
            name,
            version,
            servable,
            statistics: Statistics::default(),
            batcher,
            pace: Pace::default(),
        }
    }

    pub fn description(&self) -> &Description {
        self.servable.description()
    }

    /// Returns how requests are joined, if they are.
    pub fn batching(&self) -> Option<&Batching> {
        self.batcher.as_ref().map(|batcher| &batcher.batching)
    }

    /// Begins a call: on this thread if calls are short, else on a worker of the queue.
    pub fn begin(&self, request: &Arc<RequestContext>, inputs: Vec<(String, Tensor)>) -> Begun<'_> {
        let n_bytes: usize = inputs.iter().map(|(_, tensor)| bytes_of(tensor)).sum();
        let place = match n_bytes <= SMALL_INPUT_BYTES {
            true => self.pace.place(),
            false => Place::Queue,
        };
        let began = Instant::now();
        let values = self.servable.call(request, inputs, place);
        if place == Place::Here {
            self.pace.took_here(began.elapsed());
        }
        Begun {
            model: self,
            values,
            queued: (place == Place::Queue).then_some(began),
        }
    }
}

/// A call that has begun.
pub(crate) struct Begun<'m> {
    model: &'m Loaded,
    values: Vec<AnyAsyncValue>,
    /// When it was given to the queue, if it was.
    queued: Option<Instant>,
}

impl Begun<'_> {
    /// Waits for the outputs.
    pub async fn settle(self, allocator: &Arc<dyn HostAllocator>) -> Result<Vec<Tensor>, Error> {
        let settled = settle(self.values, allocator).await;
        if let Some(queued) = self.queued {
            self.model.pace.took_on_queue(queued.elapsed());
        }
        if settled.is_ok() {
            self.model.statistics.count_execution();
        }
        settled
    }
}

/// Returns the memory that the elements of a tensor take.
pub(crate) fn bytes_of(tensor: &Tensor) -> usize {
    match tensor {
        Tensor::String(strings) => strings
            .strings()
            .iter()
            .map(|string| string.len() + 24)
            .sum(),
        other => other.metadata().len_bytes().unwrap_or(usize::MAX / 1024),
    }
}
