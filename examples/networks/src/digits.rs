//! Digits, learnt: a perceptron and a small convolutional network, trained by programs that the runtime runs.
//!
//! | Part | Does |
//! | --- | --- |
//! | `programs/mlp.mlir`, `programs/cnn.mlir` | the networks: a step of training, and what class an image has |
//! | [`data`] | images, in a stratified split, shifted a little each time they are seen |
//! | [`Training`] | weights; shuffles, hands images to the program, counts what it gets right |
//!
//! A seed gives the same bits on any number of threads.

use std::sync::Arc;

use tfrt::bef::BefFile;
use tfrt::compiler::pipeline::Pipeline;
use tfrt::compiler::{CompileOptions, compile};
use tfrt::ir::{Source, parse};
use tfrt::{
    AnyAsyncValue, AnyError, Argument, Error, Function, HostAllocator, OpenError, Program, Runtime,
};
use tfrt_tensor::{DenseHostTensor, Tensor};

use crate::random::Random;

pub mod adam;
pub mod data;
pub mod eager;
pub mod parallel;

use data::{Digit, N_CLASSES, N_PIXELS};

/// The images that a program takes at a time.
pub const BATCH: usize = 32;
/// Label smoothing: the part of a target that is spread evenly over all classes (Szegedy and others, "Rethinking the
/// Inception Architecture for Computer Vision", 2016).
const SMOOTHING: f32 = 0.1;

/// The network to train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// 256 hidden numbers.
    Mlp,
    /// A convolutional network: two convolutions, 128 hidden numbers.
    Cnn,
}

impl Model {
    /// Returns the text of its program.
    pub fn text(self) -> &'static str {
        match self {
            Model::Mlp => include_str!("../programs/mlp.mlir"),
            Model::Cnn => include_str!("../programs/cnn.mlir"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Model::Mlp => "mlp.mlir",
            Model::Cnn => "cnn.mlir",
        }
    }

    /// Returns the default number of epochs.
    pub fn epochs(self) -> usize {
        match self {
            Model::Mlp => 60,
            Model::Cnn => 40,
        }
    }

    /// Returns the rate of the first step; that of the last is near 0.
    fn rate(self) -> f32 {
        match self {
            Model::Mlp => 0.05,
            Model::Cnn => 0.05,
        }
    }

    /// Returns the extents of its weights, in the order of its functions' arguments: of products and convolutions,
    /// and of what is added.
    fn weights(self) -> &'static [&'static [usize]] {
        match self {
            Model::Mlp => &[&[N_PIXELS, 256], &[256], &[256, N_CLASSES], &[N_CLASSES]],
            Model::Cnn => &[
                &[3, 3, 1, 16],
                &[16],
                &[3, 3, 16, 32],
                &[32],
                &[512, 128],
                &[128],
                &[128, N_CLASSES],
                &[N_CLASSES],
            ],
        }
    }

    /// Returns the extents of the images that it takes.
    fn images(self) -> &'static [usize] {
        match self {
            Model::Mlp => &[BATCH, N_PIXELS],
            Model::Cnn => &[BATCH, 8, 8, 1],
        }
    }

    /// Compiles the program, with the chains that its text leaves to a pass.
    ///
    /// # Errors
    ///
    /// Mistakes of the text, of which there are none.
    pub fn open(self, runtime: &Runtime) -> Result<Program, OpenError> {
        let source = Source::new(self.name(), self.text());
        let mut module = parse(&source).map_err(OpenError::Text)?;
        let pipeline = Pipeline::parse("sequence-effects").expect("there is such a pass");
        pipeline.run(&mut module).map_err(OpenError::Text)?;
        let bytes = compile(&module, &CompileOptions::default()).map_err(OpenError::Text)?;
        let file = BefFile::open(bytes).map_err(|reason| OpenError::Bytes {
            name: self.name().to_owned(),
            reason,
        })?;
        Program::from_file(file, runtime)
    }
}

/// A network that learns.
pub struct Training<'r> {
    runtime: &'r Runtime,
    model: Model,
    step: Function,
    classify: Function,
    // Weights and velocities, which only the programs write.
    weights: Vec<Tensor>,
    velocities: Vec<Tensor>,
    random: Random,
    n_steps_done: usize,
}

impl<'r> Training<'r> {
    /// Returns a network that knows nothing: its weights are drawn.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn new(model: Model, seed: u64, runtime: &'r Runtime) -> Result<Training<'r>, AnyError> {
        let program = model.open(runtime)?;
        let function = |name: &str| program.function(name).expect("the program has it");
        let mut random = Random::new(seed);
        let allocator = runtime.host().allocator();
        let mut weights = Vec::new();
        let mut velocities = Vec::new();
        for extents in model.weights() {
            // What is added begins with 0; for the rest see `resnet`.
            let fan_in: usize = extents
                .split_last()
                .map_or(1, |(_, rest)| rest.iter().product());
            let bound = if extents.len() == 1 {
                0.0
            } else {
                (6.0 / fan_in as f32).sqrt()
            };
            let n: usize = extents.iter().product();
            let drawn: Vec<f32> = (0..n).map(|_| random.within(bound)).collect();
            weights.push(tensor(allocator, extents, &drawn)?);
            velocities.push(tensor(allocator, extents, &vec![0.0; n])?);
        }
        Ok(Training {
            runtime,
            model,
            step: function("step"),
            classify: function("classify"),
            weights,
            velocities,
            random,
            n_steps_done: 0,
        })
    }

    /// Goes once through the digits, in another order each time, and returns the mean loss. `n_steps` is how
    /// many steps there will be, over all calls: the rate falls to 0 by then. `on_step` hears how many of this
    /// call are done.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn epoch(
        &mut self,
        digits: &[Digit],
        n_steps: usize,
        mut on_step: impl FnMut(usize),
    ) -> Result<f32, Error> {
        let mut order: Vec<&Digit> = digits.iter().collect();
        self.random.shuffle(&mut order);
        let mut sum = 0.0;
        let batches = order.chunks_exact(BATCH);
        let n_batches = batches.len();
        for (index, batch) in batches.enumerate() {
            sum += self.step(batch, n_steps)?;
            on_step(index + 1);
        }
        Ok(sum / n_batches.max(1) as f32)
    }

    /// Returns the number of steps of an epoch.
    pub fn n_steps_of_epoch(digits: &[Digit]) -> usize {
        digits.len() / BATCH
    }

    fn step(&mut self, batch: &[&Digit], n_steps: usize) -> Result<f32, Error> {
        let mut images = Vec::with_capacity(BATCH * N_PIXELS);
        let mut targets = vec![SMOOTHING / N_CLASSES as f32; BATCH * N_CLASSES];
        for (digit, target) in batch.iter().zip(targets.chunks_exact_mut(N_CLASSES)) {
            images.extend(digit.moved(&mut self.random));
            target[digit.class] += 1.0 - SMOOTHING;
        }
        let rate = rate(self.model.rate(), self.n_steps_done, n_steps);
        self.n_steps_done += 1;
        let allocator = self.runtime.host().allocator();
        let mut arguments = vec![
            AnyAsyncValue::new(tensor(allocator, self.model.images(), &images)?),
            AnyAsyncValue::new(tensor(allocator, &[BATCH, N_CLASSES], &targets)?),
            rate.into_argument(),
        ];
        let state = self.weights.iter().chain(&self.velocities).cloned();
        arguments.extend(state.map(AnyAsyncValue::new));
        let results = self.step.call(&self.runtime.context(), arguments).wait()?;
        let loss = results.get::<Tensor>(0)?.as_dense()?.read()?;
        Ok(loss.elements::<f32>()?[0])
    }

    /// Counts the digits that are taken for what they are.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn n_right(&self, digits: &[Digit]) -> Result<usize, Error> {
        let found = self.classify(digits)?;
        let right = |(digit, class): &(&Digit, usize)| digit.class == *class;
        Ok(digits.iter().zip(found).filter(right).count())
    }

    /// Finds the class that each digit is taken for.
    fn classify(&self, digits: &[Digit]) -> Result<Vec<usize>, Error> {
        let allocator = self.runtime.host().allocator();
        let mut found = Vec::new();
        for batch in digits.chunks(BATCH) {
            let mut images: Vec<f32> = batch.iter().flat_map(Digit::unmoved).collect();
            images.resize(BATCH * N_PIXELS, 0.0);
            let images = tensor(allocator, self.model.images(), &images)?;
            let mut arguments = vec![AnyAsyncValue::new(images)];
            arguments.extend(self.weights.iter().cloned().map(AnyAsyncValue::new));
            let results = self
                .classify
                .call(&self.runtime.context(), arguments)
                .wait()?;
            let classes = results.get::<Tensor>(0)?.as_dense()?.read()?;
            let classes = classes.elements::<i32>()?.iter().take(batch.len());
            let class = |class: &i32| usize::try_from(*class).expect("it is a position");
            found.extend(classes.map(class));
        }
        Ok(found)
    }

    /// Returns the weights, 100 digits and their classes, and one that is taken for another and its target:
    /// what the programs `examples/mnist_*.mlir` read.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not 100, or none that is taken for another.
    pub fn sample(&self, digits: &[Digit]) -> Result<Vec<Tensor>, Error> {
        const N: usize = 100;
        let found = self.classify(digits)?;
        let wrong = digits
            .iter()
            .zip(found)
            .find(|(digit, class)| digit.class != *class);
        let (Some((wrong, _)), true) = (wrong, digits.len() >= N) else {
            let message = "expected 100 digits, of which one is taken for another";
            return Err(Error::invalid_argument(message));
        };
        // Of all classes, though digits stand in the order of theirs.
        let sample = || digits.iter().step_by(digits.len() / N).take(N);
        let images: Vec<f32> = sample().flat_map(Digit::unmoved).collect();
        let class = |digit: &Digit| i32::try_from(digit.class).expect("it is below ten");
        let labels: Vec<i32> = sample().map(class).collect();
        let mut target = [0.0; N_CLASSES];
        target[wrong.class] = 1.0;
        let allocator = self.runtime.host().allocator();
        let mut tensors = self.weights.clone();
        tensors.push(tensor(allocator, &[N, N_PIXELS], &images)?);
        tensors.push(DenseHostTensor::from_slice(allocator, &[N], &labels)?.into());
        tensors.push(tensor(allocator, &[1, N_PIXELS], &wrong.unmoved())?);
        tensors.push(tensor(allocator, &[1, N_CLASSES], &target)?);
        Ok(tensors)
    }

    /// Returns a number that tells weights apart, by their bits (FNV-1a).
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing them.
    pub fn hash(&self) -> Result<u64, Error> {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for tensor in &self.weights {
            for byte in tensor.as_dense()?.read()?.bytes() {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        Ok(hash)
    }
}

/// Returns the rate of a step: rises over the first twentieth, then falls to 0, both along lines.
fn rate(highest: f32, done: usize, of: usize) -> f32 {
    let (done, of) = (done as f32, of.max(1) as f32);
    let rise = of / 20.0;
    if done < rise {
        return highest * (done + 1.0) / (rise + 1.0);
    }
    highest * ((of - done) / (of - rise)).max(0.0)
}

fn tensor(
    allocator: &Arc<dyn HostAllocator>,
    extents: &[usize],
    elements: &[f32],
) -> Result<Tensor, Error> {
    Ok(DenseHostTensor::from_slice(allocator, extents, elements)?.into())
}
