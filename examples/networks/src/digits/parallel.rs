//! The perceptron of [`adam`](super::adam) on many tasks, which are threads here and processes in [`processes`]: each has all weights, and gradients of a part of
//! the images.
//!
//! A step has eight leaves, four images each. A rank calculates the gradients of its leaves, the mean over all leaves is
//! an all-reduce, and each rank takes the same step of Adam. Since leaves are reduced in the order of one tree, any number
//! of ranks up to eight gives the same bits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io, thread};

use tfrt::dist::collective::local::{self, Communicator};
use tfrt::dist::collective::{Function, Operation, Order};
use tfrt::dist::reduction::ReductionTree;
use tfrt::eager::Handle;
use tfrt::{Error, Runtime, SingleThreadedWorkQueue};

use super::adam::{AdamPerceptron, Format};
use super::data::Digit;
use super::{BATCH, data};
use crate::random::Random;

pub mod processes;

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

/// A rank among others, which calculates the mean of the leaves of all.
pub trait Rank {
    /// Returns the number of this rank.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn n_ranks(&self) -> usize;

    /// Returns the mean of the leaves of all ranks, given this one's, all of one length.
    ///
    /// # Errors
    ///
    /// If a rank is lost, or comes too late: on all ranks, with its name.
    fn mean(&mut self, leaves: Vec<Vec<f32>>, len: usize) -> Result<Vec<f32>, Error>;
}

/// The training that all ranks do together.
#[derive(Clone, Debug)]
pub struct Training {
    /// The number of steps.
    pub n_steps: usize,
    /// Which split of the data, which weights to begin with, which images in which step.
    pub seed: u64,
    /// A file that all ranks see, in which the first of them saves what was learnt, and from which all go on if it is there.
    pub state: Option<PathBuf>,
    /// How often it is saved, in steps.
    pub save_every: usize,
}

/// Trains on so many ranks, a thread each, and returns what each has learnt.
///
/// # Errors
///
/// The first rank's error: where one fails, all do.
pub fn train(n_ranks: usize, n_steps: usize, seed: u64) -> Result<Vec<Learnt>, Error> {
    let training = &Training {
        n_steps,
        seed,
        state: None,
        save_every: usize::MAX,
    };
    let members = local::group::<f32>(n_ranks, TIMEOUT);
    thread::scope(|scope| {
        let ranks = members.into_iter();
        let ranks = ranks.map(|mut member| scope.spawn(move || training.of_rank(&mut member)));
        let ranks: Vec<_> = ranks.collect();
        let learnt = ranks.into_iter().map(|rank| {
            let lost = |_| Err(Error::internal("a rank has panicked"));
            rank.join().unwrap_or_else(lost)
        });
        learnt.collect()
    })
}

impl Training {
    /// Does one rank's part, and returns what it has learnt; losses are those since the state was saved that it went on from.
    ///
    /// # Errors
    ///
    /// Those of [`Rank::mean`]; if the state can't be read or written.
    pub fn of_rank(&self, rank: &mut impl Rank) -> Result<Learnt, Error> {
        let (for_training, for_testing) = data::split(data::all()?, self.seed);
        let queue = Arc::new(SingleThreadedWorkQueue::new());
        let runtime = Runtime::builder().queue(queue).build();
        let mut perceptron = AdamPerceptron::new(self.seed, &runtime)?;
        let saved = self.state.as_ref().filter(|state| state.exists());
        if let Some(state) = saved {
            let bytes = fs::read(state).map_err(|error| unusable(state, &error))?;
            perceptron.load(&bytes, Format::Safetensors)?;
        }
        let leaves = ReductionTree::new(N_LEAVES).leaves_of(rank.rank(), rank.n_ranks());
        let mut losses = Vec::new();
        for step in perceptron.n_steps_done()..self.n_steps {
            let gradients = leaves.clone().map(|leaf| {
                let mut random = Random::new(self.seed ^ (step * N_LEAVES + leaf) as u64);
                perceptron.gradients(&for_training, BATCH / N_LEAVES, &mut random)
            });
            let gradients: Vec<Vec<f32>> = gradients.collect::<Result<_, Error>>()?;
            let mean = rank.mean(gradients, perceptron.n_gradients() + 1)?;
            let (loss, gradients) = mean.split_last().expect("the loss is behind the gradients");
            losses.push(*loss);
            perceptron.step_by(gradients)?;
            if rank.rank() == 0 && (step + 1).is_multiple_of(self.save_every) {
                self.save(&perceptron)?;
            }
        }
        Ok(Learnt {
            hash: perceptron.hash()?,
            losses,
            n_right: perceptron.n_right(&for_testing)?,
        })
    }

    /// Saves what was learnt, as a file that is there as a whole or not at all.
    fn save(&self, perceptron: &AdamPerceptron) -> Result<(), Error> {
        let Some(state) = &self.state else {
            return Ok(());
        };
        let part = state.with_extension("part");
        let bytes = perceptron.save(Format::Safetensors)?;
        let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, state));
        written.map_err(|error| unusable(state, &error))
    }
}

fn unusable(state: &Path, error: &io::Error) -> Error {
    let state = state.display();
    Error::invalid_argument(format!("can't use the state '{state}': {error}"))
}

impl Rank for Communicator<f32> {
    fn rank(&self) -> usize {
        Communicator::rank(self)
    }

    fn n_ranks(&self) -> usize {
        self.n_members()
    }

    fn mean(&mut self, leaves: Vec<Vec<f32>>, len: usize) -> Result<Vec<f32>, Error> {
        let operation = Operation::AllReduce {
            function: Function::Mean,
            leaves: N_LEAVES,
            order: Order::Tree,
        };
        let (mean, _) = self.call(operation, &[len], leaves, vec![0.0; len])?;
        Ok(mean)
    }
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
