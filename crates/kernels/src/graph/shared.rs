//! Shared weights: models of one host with equal weights hold one copy of them.
//!
//! They are compared with what live models of the host hold, so that two sessions of one model, or two models with the
//! same layers, keep one copy. Weights that nobody else could have cost little: only the extent and some samples are
//! looked at first.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tfrt_host::HostContext;
use tfrt_host::memory::{HostBuffer, OwnedReading};
use tfrt_tensor::DenseHostTensor;

/// The least size of weights that are shared, in bytes.
const LEAST_BYTES: usize = 64 << 10;

/// The number of samples that are hashed before all bytes are compared.
const N_SAMPLES: usize = 64;

/// The key of weights: their size in bytes, and a hash of samples.
type Key = (usize, u64);

/// The weights of live models.
type WeightIndex = HashMap<Key, Vec<Weak<OwnedReading>>>;

/// The weights that live models of a host hold.
#[derive(Default)]
struct SharedWeights(Mutex<WeightIndex>);

/// The owner of bytes that tensors share.
struct Owner(Arc<OwnedReading>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Returns a tensor with equal elements, shared with a live model of the host if one has it.
pub(crate) fn share(host: &HostContext, tensor: DenseHostTensor) -> DenseHostTensor {
    let bytes = share_bytes(host, tensor.buffer().clone());
    DenseHostTensor::new(tensor.metadata().clone(), bytes).unwrap_or(tensor)
}

/// Returns equal bytes, shared with a live model of the host if one has them.
pub fn share_bytes(host: &HostContext, bytes: HostBuffer) -> HostBuffer {
    if bytes.len_bytes() < LEAST_BYTES {
        return bytes;
    }
    let Ok(reading) = bytes.clone().read_owned() else {
        return bytes;
    };
    let weights = host.shared(|_| SharedWeights::default());
    HostBuffer::from_owner(Owner(weights.find_or_insert(Arc::new(reading))))
}

impl SharedWeights {
    /// Returns the equal bytes of another model, or inserts these and returns them.
    fn find_or_insert(&self, own: Arc<OwnedReading>) -> Arc<OwnedReading> {
        let key = (own.len(), samples(&own));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, held| {
            held.retain(|held| held.strong_count() > 0);
            !held.is_empty()
        });
        let alike = all.entry(key).or_default();
        let found = alike
            .iter()
            .filter_map(Weak::upgrade)
            .find(|held| held[..] == own[..]);
        found.unwrap_or_else(|| {
            alike.push(Arc::downgrade(&own));
            own
        })
    }
}

fn samples(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for index in 0..N_SAMPLES {
        let at = bytes.len() / N_SAMPLES * index;
        bytes.get(at..at + 16).hash(&mut hasher);
    }
    hasher.finish()
}
