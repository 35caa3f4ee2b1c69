//! The perceptron of [`adam`](super::adam) on many tasks, here threads: each has all weights, and gradients of a part of
//! the images.
//!
//! A step has eight leaves, four images each. A rank calculates the gradients of its leaves, the mean over all leaves is
//! an all-reduce, and each rank takes the same step of Adam. Since leaves are reduced in the order of one tree, any number
//! of ranks up to eight gives the same bits.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tfrt::dist::collective::local::{self, Communicator};
use tfrt::dist::collective::{Function, Operation, Order};
use tfrt::dist::reduction::ReductionTree;
use tfrt::eager::Handle;
use tfrt::{Error, Runtime, SingleThreadedWorkQueue};

use super::adam::AdamPerceptron;
use super::data::Digit;
use super::{BATCH, data};
use crate::random::Random;

/// The parts of a step whose gradients are calculated by themselves.
pub const N_LEAVES: usize = 8;
/// The time that a rank waits for the others.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The outcome of training on a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// A hash of the bits of weights and state.
    pub hash: u64,
    /// The losses of the steps.
    pub losses: Vec<f32>,
    /// The test images that are taken for what they are.
    pub n_right: usize,
}

/// Trains on so many ranks, a thread each, and returns what each has learnt.
///
/// # Errors
///
/// The first rank's error: where one fails, all do.
pub fn train(n_ranks: usize, n_steps: usize, seed: u64) -> Result<Vec<Learnt>, Error> {
    let (for_training, for_testing) = data::split(data::all()?, seed);
    let members = local::group::<f32>(n_ranks, TIMEOUT);
    thread::scope(|scope| {
        let ranks = members.into_iter().map(|member| {
            let digits = (&for_training[..], &for_testing[..]);
            scope.spawn(move || train_rank(member, digits, n_steps, seed))
        });
        let ranks: Vec<_> = ranks.collect();
        let learnt = ranks.into_iter().map(|rank| {
            let lost = |_| Err(Error::internal("a rank has panicked"));
            rank.join().unwrap_or_else(lost)
        });
        learnt.collect()
    })
}

fn train_rank(
    mut member: Communicator<f32>,
    (for_training, for_testing): (&[Digit], &[Digit]),
    n_steps: usize,
    seed: u64,
) -> Result<Learnt, Error> {
    let queue = Arc::new(SingleThreadedWorkQueue::new());
    let runtime = Runtime::builder().queue(queue).build();
    let mut perceptron = AdamPerceptron::new(seed, &runtime)?;
    let leaves = ReductionTree::new(N_LEAVES).leaves_of(member.rank(), member.n_members());
    let mut losses = Vec::new();
    for step in 0..n_steps {
        let gradients = leaves.clone().map(|leaf| {
            let mut random = Random::new(seed ^ (step * N_LEAVES + leaf) as u64);
            perceptron.gradients(for_training, BATCH / N_LEAVES, &mut random)
        });
        let gradients: Vec<Vec<f32>> = gradients.collect::<Result<_, Error>>()?;
        let mean = reduced(&mut member, gradients, perceptron.n_gradients() + 1)?;
        let (loss, gradients) = mean.split_last().expect("the loss is behind the gradients");
        losses.push(*loss);
        perceptron.step_by(gradients)?;
    }
    Ok(Learnt {
        hash: perceptron.hash()?,
        losses,
        n_right: perceptron.n_right(for_testing)?,
    })
}

/// Returns the mean of the leaves of all ranks.
fn reduced(
    member: &mut Communicator<f32>,
    leaves: Vec<Vec<f32>>,
    len: usize,
) -> Result<Vec<f32>, Error> {
    let operation = Operation::AllReduce {
        function: Function::Mean,
        leaves: N_LEAVES,
        order: Order::Tree,
    };
    let (mean, _) = member.call(operation, &[len], leaves, vec![0.0; len])?;
    Ok(mean)
}

impl AdamPerceptron {
    /// Returns the number of weights.
    pub fn n_gradients(&self) -> usize {
        self.extents()
            .iter()
            .map(|it| it.iter().product::<usize>())
            .sum()
    }

    /// Returns the gradients of all weights by the mean loss of some images that are drawn, one behind the other, and
    /// behind them the loss.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn gradients(
        &self,
        digits: &[Digit],
        n_images: usize,
        random: &mut Random,
    ) -> Result<Vec<f32>, Error> {
        let (gradients, loss) = self.gradients_of_drawn(digits, n_images, random)?;
        let mut all = Vec::with_capacity(self.n_gradients() + 1);
        for gradient in &gradients {
            all.extend(gradient.to_vec::<f32>()?);
        }
        all.push(loss.item::<f32>()?);
        Ok(all)
    }

    /// Takes a step of Adam by gradients of all weights, one behind the other.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn step_by(&mut self, gradients: &[f32]) -> Result<(), Error> {
        let mut rest = gradients;
        let handles = self.extents().into_iter().map(|extents| {
            let (own, others) = rest.split_at(extents.iter().product());
            rest = others;
            self.tensor(&extents, own)
        });
        let handles: Vec<Handle> = handles.collect::<Result<_, Error>>()?;
        self.apply(&handles)
    }
}
