//! The perceptron once more: its weights are resource variables, which Adam changes, and which are saved and loaded.
//!
//! All that a step reads is in variables or follows from the seed and the number of the step. So a training that was
//! saved, loaded and goes on has the bits of one that was never stopped.

use tfrt::corert::OpAttrs;
use tfrt::eager::{Eager, Handle, Variable};
use tfrt::{Error, Runtime};

use super::BATCH;
use super::data::{Digit, N_CLASSES, N_PIXELS};
use crate::random::Random;

const N_HIDDEN: usize = 64;
const RATE: f32 = 0.004;
const BETAS: [f32; 2] = [0.9, 0.999];
const EPSILON: f32 = 1e-7;

/// A perceptron of one hidden layer, `[.., 64]` to `[.., 10]`, that learns by Adam. Its variables have names, so that a
/// runtime has one such perceptron.
pub struct AdamPerceptron {
    eager: Eager,
    layers: [Layer; 2],
    /// The number of steps, as a variable, when the perceptron is saved.
    steps: Variable,
    n_steps_done: usize,
    seed: u64,
}

/// Weights, and what is added to their product.
struct Layer {
    weights: Moments,
    bias: Moments,
}

/// A variable with the running means of its gradients and of their squares.
struct Moments {
    value: Variable,
    first: Variable,
    second: Variable,
}

impl Moments {
    fn new(eager: &Eager, name: &str, value: Handle, extents: &[usize]) -> Result<Moments, Error> {
        let zeros = |moment: &str| {
            let name = format!("{name}/{moment}");
            Ok::<_, Error>(eager.named_variable(&name, eager.zeros::<f32>(extents)?))
        };
        Ok(Moments {
            first: zeros("m")?,
            second: zeros("v")?,
            value: eager.named_variable(name, value),
        })
    }

    /// Takes a step of Adam.
    fn step(&self, eager: &Eager, gradient: &Handle, n_steps_done: usize) -> Result<(), Error> {
        let n = i32::try_from(n_steps_done + 1).unwrap_or(i32::MAX);
        let power = |beta: f32| eager.scalar(f64::from(beta).powi(n) as f32);
        let inputs = [
            &self.value.handle(),
            &self.first.handle(),
            &self.second.handle(),
            &power(BETAS[0])?,
            &power(BETAS[1])?,
            &eager.scalar(RATE)?,
            &eager.scalar(BETAS[0])?,
            &eager.scalar(BETAS[1])?,
            &eager.scalar(EPSILON)?,
            gradient,
        ];
        eager.op("tf.ResourceApplyAdam", &inputs, &OpAttrs::new())?;
        Ok(())
    }
}

impl Layer {
    fn new(
        eager: &Eager,
        name: &str,
        [n_inputs, n_outputs]: [usize; 2],
        random: &mut Random,
    ) -> Result<Layer, Error> {
        let bound = (6.0 / n_inputs as f32).sqrt();
        let drawn: Vec<f32> = (0..n_inputs * n_outputs)
            .map(|_| random.within(bound))
            .collect();
        let extents = [n_inputs, n_outputs];
        let (weights, bias) = (
            eager.tensor(&extents, &drawn)?,
            eager.zeros::<f32>(&[n_outputs])?,
        );
        Ok(Layer {
            weights: Moments::new(eager, &format!("{name}/weights"), weights, &extents)?,
            bias: Moments::new(eager, &format!("{name}/bias"), bias, &[n_outputs])?,
        })
    }

    fn apply(&self, x: &Handle) -> Result<Handle, Error> {
        x.matmul(&self.weights.value.read())?
            .bias_add(&self.bias.value.read())
    }

    /// Returns the gradients of the weights and the bias, given what a layer was applied to and the gradient by its result.
    fn gradients(x: &Handle, gradient: &Handle) -> Result<[Handle; 2], Error> {
        let by_weights = x.matmul_transposed(gradient, [true, false])?;
        Ok([by_weights, gradient.bias_add_gradient()?])
    }
}

/// A file format of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Safetensors.
    Safetensors,
    /// An archive of NumPy.
    Npz,
}

impl AdamPerceptron {
    /// Returns a network that knows nothing: its weights are drawn.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn new(seed: u64, runtime: &Runtime) -> Result<AdamPerceptron, Error> {
        let (eager, mut random) = (Eager::new(runtime), Random::new(seed));
        let layers = [
            Layer::new(&eager, "hidden", [N_PIXELS, N_HIDDEN], &mut random)?,
            Layer::new(&eager, "classes", [N_HIDDEN, N_CLASSES], &mut random)?,
        ];
        Ok(AdamPerceptron {
            steps: eager.named_variable("steps", eager.scalar(0_i64)?),
            eager,
            layers,
            n_steps_done: 0,
            seed,
        })
    }

    /// Returns the number of steps that it has learnt for.
    pub fn n_steps_done(&self) -> usize {
        self.n_steps_done
    }

    /// Takes steps until there are so many, and returns the losses of these. The images of a step follow from its number.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn learn(&mut self, digits: &[Digit], n_steps: usize) -> Result<Vec<f32>, Error> {
        let mut losses = Vec::new();
        while self.n_steps_done < n_steps {
            losses.push(self.step(digits)?);
            self.n_steps_done += 1;
        }
        // The steps are on their way; this waits for them.
        losses.iter().map(Handle::item::<f32>).collect()
    }

    fn step(&self, digits: &[Digit]) -> Result<Handle, Error> {
        let mut random = Random::new(self.seed.wrapping_add(1_000_003 * self.n_steps_done as u64));
        let (gradients, loss) = self.gradients_of_drawn(digits, BATCH, &mut random)?;
        self.change(&gradients)?;
        Ok(loss)
    }

    /// Returns the gradients of the weights and biases of both layers, by the mean loss of images that are drawn; and the
    /// loss.
    pub(super) fn gradients_of_drawn(
        &self,
        digits: &[Digit],
        n_images: usize,
        random: &mut Random,
    ) -> Result<([Handle; 4], Handle), Error> {
        let batch: Vec<&Digit> = (0..n_images)
            .map(|_| &digits[random.below(digits.len())])
            .collect();
        let images: Vec<f32> = batch.iter().flat_map(|digit| digit.moved(random)).collect();
        let classes: Vec<i32> = batch.iter().map(|digit| digit.class as i32).collect();
        let eager = &self.eager;
        let images = eager.tensor(&[n_images, N_PIXELS], &images)?;
        let classes = eager.tensor(&[n_images], &classes)?;
        let [first, second] = &self.layers;
        let hidden = first.apply(&images)?.relu()?;
        let (losses, by_logits) = second.apply(&hidden)?.softmax_cross_entropy(&classes)?;
        let by_logits = (&by_logits * &eager.scalar(1.0 / n_images as f32)?)?;
        let by_hidden = by_logits
            .matmul_transposed(&second.weights.value.read(), [false, true])?
            .relu_gradient(&hidden)?;
        let [by_weights, by_bias] = Layer::gradients(&images, &by_hidden)?;
        let [by_second, by_second_bias] = Layer::gradients(&hidden, &by_logits)?;
        let gradients = [by_weights, by_bias, by_second, by_second_bias];
        Ok((gradients, losses.mean(&[0])?))
    }

    /// Changes all weights by their gradients.
    fn change(&self, gradients: &[Handle]) -> Result<(), Error> {
        let moments = self.layers.iter().flat_map(|it| [&it.weights, &it.bias]);
        for (moments, gradient) in moments.zip(gradients) {
            moments.step(&self.eager, gradient, self.n_steps_done)?;
        }
        Ok(())
    }

    /// Takes a step by gradients that are given.
    pub(super) fn apply(&mut self, gradients: &[Handle]) -> Result<(), Error> {
        self.change(gradients)?;
        self.n_steps_done += 1;
        Ok(())
    }

    /// Returns the extents of weights and biases, in the order of gradients.
    pub(super) fn extents(&self) -> [Vec<usize>; 4] {
        [
            vec![N_PIXELS, N_HIDDEN],
            vec![N_HIDDEN],
            vec![N_HIDDEN, N_CLASSES],
            vec![N_CLASSES],
        ]
    }

    pub(super) fn tensor(&self, extents: &[usize], values: &[f32]) -> Result<Handle, Error> {
        self.eager.tensor(extents, values)
    }

    /// Returns all variables as a file: weights, the state of Adam, and the number of steps.
    ///
    /// # Errors
    ///
    /// If a step has failed, or there is no memory.
    pub fn save(&self, format: Format) -> Result<Vec<u8>, Error> {
        let n = i64::try_from(self.n_steps_done).unwrap_or(i64::MAX);
        self.steps.assign(&self.eager.scalar(n)?)?;
        self.finish()?;
        let resources = self.eager.resources();
        match format {
            Format::Safetensors => resources.save_safetensors(),
            Format::Npz => resources.save_npz(),
        }
    }

    /// Goes on from where a perceptron was saved.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the bytes are no such file.
    pub fn load(&mut self, bytes: &[u8], format: Format) -> Result<(), Error> {
        self.finish()?;
        let (resources, host) = (self.eager.resources(), self.eager.core().host());
        match format {
            Format::Safetensors => resources.load_safetensors(bytes, host.allocator())?,
            Format::Npz => resources.load_npz(bytes, host.allocator())?,
        };
        let n = self.steps.read().item::<i64>()?;
        let n = usize::try_from(n);
        self.n_steps_done =
            n.map_err(|_| Error::invalid_argument("the number of steps is below 0"))?;
        Ok(())
    }

    /// Waits for all steps.
    fn finish(&self) -> Result<(), Error> {
        let done = self.eager.context().effects();
        let queue = self.eager.core().host().queue();
        let waited = queue.await_all(&[done.as_any().clone()]);
        waited.map_err(|error| Error::internal(error.to_string()))?;
        done.error().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Returns a hash of the bits of all variables of the layers, so that trainings can be compared.
    ///
    /// # Errors
    ///
    /// If a step has failed.
    pub fn hash(&self) -> Result<u64, Error> {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for layer in &self.layers {
            for moments in [&layer.weights, &layer.bias] {
                for variable in [&moments.value, &moments.first, &moments.second] {
                    for number in variable.read().to_vec::<f32>()? {
                        for byte in number.to_bits().to_le_bytes() {
                            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
                        }
                    }
                }
            }
        }
        Ok(hash)
    }

    /// Counts the digits that are taken for what they are.
    ///
    /// # Errors
    ///
    /// If the runtime's allocator has no room.
    pub fn n_right(&self, digits: &[Digit]) -> Result<usize, Error> {
        let images: Vec<f32> = digits.iter().flat_map(Digit::unmoved).collect();
        let images = self.eager.tensor(&[digits.len(), N_PIXELS], &images)?;
        let [first, second] = &self.layers;
        let found = second.apply(&first.apply(&images)?.relu()?)?.argmax(-1)?;
        let found = found.to_vec::<i64>()?;
        let right = |(digit, found): &(&Digit, i64)| usize::try_from(*found) == Ok(digit.class);
        Ok(digits.iter().zip(found).filter(right).count())
    }
}
