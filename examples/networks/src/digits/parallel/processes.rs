//! Ranks that are processes, the tasks of a cluster.

use std::time::Duration;

use tfrt::dist::collective::{self, Function, Key};
use tfrt::dist::context::{ContextConfig, ContextRef};
use tfrt::dist::join::{DEFAULT_TIMEOUT, JoinOptions, Joining, Membership};
use tfrt::dist::source::{self, Choice};
use tfrt::{Error, Runtime};
use tfrt_tensor::{DType, DenseHostTensor, TensorMetadata, TensorShape};

use super::{Learnt, N_LEAVES, Rank, Training};

/// The time that a rank waits for the others in a step.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The time that a rank which is done waits for the others.
const PATIENCE: Duration = Duration::from_secs(10);

/// A task of a cluster as a rank.
struct Task {
    context: ContextRef,
    rank: usize,
    n_ranks: usize,
    n_calls: u64,
}

/// Joins a cluster, as `tfrt run --cluster` does, and trains with all its tasks. Returns the rank, the number of ranks, and
/// what was learnt.
///
/// # Errors
///
/// If tasks do not meet, or one is lost.
pub fn train(cluster: &str, training: &Training) -> Result<(usize, usize, Learnt), Error> {
    let look_up = |name: &str| std::env::var(name).ok();
    let found = source::find(&Choice::parse(cluster), &look_up)?;
    let found = found.ok_or_else(|| Error::not_found("no cluster was found"))?;
    let config = ContextConfig {
        task: found.role(None, None, true)?,
        cluster: found.cluster,
    };
    let options = JoinOptions {
        config: Some(config),
        timeout: Some(DEFAULT_TIMEOUT),
        ..JoinOptions::default()
    };
    let runtime = Runtime::builder().threads(1).build();
    let membership = Joining::listen(runtime.host(), &options)?.join()?;
    let mut task = Task::new(&membership);
    let learnt = training.of_rank(&mut task);
    // Also if it has failed: all have, and for the same reason, if nobody leaves before.
    membership.finish(PATIENCE);
    Ok((task.rank, task.n_ranks, learnt?))
}

impl Task {
    fn new(membership: &Membership) -> Task {
        let context = membership.context().clone();
        let ContextConfig { cluster, task } = context.config();
        let rank = cluster.tasks().position(|(other, _)| other == *task);
        Task {
            rank: rank.expect("a task is one of its cluster"),
            n_ranks: cluster.n_tasks(),
            n_calls: 0,
            context,
        }
    }
}

impl Rank for Task {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    fn mean(&mut self, leaves: Vec<Vec<f32>>, len: usize) -> Result<Vec<f32>, Error> {
        let host = self.context.host();
        let metadata = TensorMetadata::new(DType::F32, TensorShape::new(&[len])?);
        let result = DenseHostTensor::zeroed(host.allocator(), metadata)?;
        let tensor = |leaf: &Vec<f32>| DenseHostTensor::from_slice(host.allocator(), &[len], leaf);
        let leaves = leaves
            .iter()
            .map(tensor)
            .collect::<Result<Vec<_>, Error>>()?;
        let key = Key {
            group: "all".to_owned(),
            instance: self.n_calls.to_string(),
        };
        self.n_calls += 1;
        let deadline = Some(host.now() + TIMEOUT);
        let function = Function::Mean;
        let mean = collective::all_reduce(
            &self.context,
            key,
            function,
            N_LEAVES,
            &leaves,
            &result,
            deadline,
        );
        let waited = host.queue().await_all(&[mean.as_any().clone()]);
        waited.map_err(|error| Error::internal(error.to_string()))?;
        match mean.error() {
            Some(error) => Err(error.clone()),
            None => Ok(result.read()?.elements::<f32>()?.to_vec()),
        }
    }
}
