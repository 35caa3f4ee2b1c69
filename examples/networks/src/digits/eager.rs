//! The perceptron again, one operation at a time.

use tfrt::eager::{Eager, Handle, Variable};
use tfrt::{Error, Runtime};

use super::data::{Digit, N_CLASSES, N_PIXELS};
use super::{BATCH, rate};
use crate::random::Random;

const N_HIDDEN: usize = 256;
const RATE: f32 = 0.05;
const MOMENTUM: f32 = 0.9;

/// A perceptron of one hidden layer, `[.., 64]` to `[.., 10]`, that learns by operations that are called one at a time.
pub struct Perceptron {
    eager: Eager,
    layers: [Layer; 2],
    random: Random,
    n_steps_done: usize,
}

/// Weights, what is added to their product, and how fast both change.
struct Layer {
    weights: Variable,
    bias: Variable,
    speed_of_weights: Variable,
    speed_of_bias: Variable,
}

impl Layer {
    fn new(
        eager: &Eager,
        n_inputs: usize,
        n_outputs: usize,
        random: &mut Random,
    ) -> Result<Layer, Error> {
        let bound = (6.0 / n_inputs as f32).sqrt();
        let drawn: Vec<f32> = (0..n_inputs * n_outputs)
            .map(|_| random.within(bound))
            .collect();
        let zeros =
            |extents: &[usize]| Ok::<_, Error>(eager.variable(eager.zeros::<f32>(extents)?));
        Ok(Layer {
            weights: eager.variable(eager.tensor(&[n_inputs, n_outputs], &drawn)?),
            bias: zeros(&[n_outputs])?,
            speed_of_weights: zeros(&[n_inputs, n_outputs])?,
            speed_of_bias: zeros(&[n_outputs])?,
        })
    }

    fn apply(&self, x: &Handle) -> Result<Handle, Error> {
        x.matmul(&self.weights.read())?.bias_add(&self.bias.read())
    }

    /// Changes the layer, given what it was applied to and the gradient by its result.
    fn learn(&self, x: &Handle, gradient: &Handle, rate: f32) -> Result<(), Error> {
        let by_weights = x.matmul_transposed(gradient, [true, false])?;
        let by_bias = gradient.bias_add_gradient()?;
        self.weights
            .descend_with(&self.speed_of_weights, &by_weights, [rate, MOMENTUM])?;
        self.bias
            .descend_with(&self.speed_of_bias, &by_bias, [rate, MOMENTUM])
    }
}

impl Perceptron {
    /// Returns a network that knows nothing: its weights are drawn.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn new(seed: u64, runtime: &Runtime) -> Result<Perceptron, Error> {
        let (eager, mut random) = (Eager::new(runtime), Random::new(seed));
        let layers = [
            Layer::new(&eager, N_PIXELS, N_HIDDEN, &mut random)?,
            Layer::new(&eager, N_HIDDEN, N_CLASSES, &mut random)?,
        ];
        Ok(Perceptron {
            eager,
            layers,
            random,
            n_steps_done: 0,
        })
    }

    /// Returns where its operations are called.
    pub fn eager(&self) -> &Eager {
        &self.eager
    }

    /// Returns the numbers of each class for images, `[.., 64]`.
    ///
    /// # Errors
    ///
    /// If the images are of another shape.
    pub fn logits(&self, images: &Handle) -> Result<Handle, Error> {
        let hidden = self.layers[0].apply(images)?.relu()?;
        self.layers[1].apply(&hidden)
    }

    /// Goes once through the digits, in another order each time, and returns the mean loss. `n_steps` is how many steps
    /// there will be, over all calls: the rate falls to 0 by then.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn epoch(&mut self, digits: &[Digit], n_steps: usize) -> Result<f32, Error> {
        let mut order: Vec<&Digit> = digits.iter().collect();
        self.random.shuffle(&mut order);
        let mut losses = Vec::new();
        for batch in order.chunks_exact(BATCH) {
            losses.push(self.step(batch, n_steps)?);
        }
        // The steps are on their way; this waits for them.
        let mut sum = 0.0;
        for loss in &losses {
            sum += loss.item::<f32>()?;
        }
        Ok(sum / losses.len().max(1) as f32)
    }

    /// Learns from a batch; the loss may be still to come.
    fn step(&mut self, batch: &[&Digit], n_steps: usize) -> Result<Handle, Error> {
        let images: Vec<f32> = batch
            .iter()
            .flat_map(|digit| digit.moved(&mut self.random))
            .collect();
        let classes: Vec<i32> = batch.iter().map(|digit| digit.class as i32).collect();
        let rate = rate(RATE, self.n_steps_done, n_steps);
        self.n_steps_done += 1;

        let images = self.eager.tensor(&[batch.len(), N_PIXELS], &images)?;
        let classes = self.eager.tensor(&[batch.len()], &classes)?;
        let [first, second] = &self.layers;
        let hidden = first.apply(&images)?.relu()?;
        let (losses, by_logits) = second.apply(&hidden)?.softmax_cross_entropy(&classes)?;
        let by_logits = (&by_logits * &self.eager.scalar(1.0 / batch.len() as f32)?)?;
        let by_hidden = by_logits
            .matmul_transposed(&second.weights.read(), [false, true])?
            .relu_gradient(&hidden)?;
        second.learn(&hidden, &by_logits, rate)?;
        first.learn(&images, &by_hidden, rate)?;
        losses.mean(&[0])
    }

    /// Counts the digits that are taken for what they are.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn n_right(&self, digits: &[Digit]) -> Result<usize, Error> {
        let images: Vec<f32> = digits.iter().flat_map(Digit::unmoved).collect();
        let images = self.eager.tensor(&[digits.len(), N_PIXELS], &images)?;
        let found = self.logits(&images)?.argmax(-1)?.to_vec::<i64>()?;
        let right = |(digit, found): &(&Digit, i64)| usize::try_from(*found) == Ok(digit.class);
        Ok(digits.iter().zip(found).filter(right).count())
    }
}
