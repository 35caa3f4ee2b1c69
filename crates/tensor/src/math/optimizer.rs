//! [`Optimizer`]: steps of weights by their gradients, as TensorFlow's training operations take them.
//!
//! Each step is one function of an element: of the weight, the numbers that are kept beside it, and its gradient. Every
//! operation is rounded for itself, in the order that is written, so that results are those of TensorFlow to the bit;
//! where it takes an approximate reciprocal root, an exponential or a power, they differ by a unit in the last place,
//! of Ftrl by up to 13. Rows are changed in the order of TensorFlow's kernels for rows (`rows.rs`).

use std::ops::{Add, Div, Mul, Sub};

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::number::Floating;
use super::{Family, parallel, vectorized_for};
use crate::{DenseHostTensor, from_bytes_mut, with_floating};

mod rows;
#[cfg(test)]
mod tests;

/// A method by which weights are changed. The states are the weights and, of the same shape, the numbers kept beside
/// them; the numbers are the scalars in the order of TensorFlow's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptimizerKind {
    /// State: weights. Numbers: alpha.
    GradientDescent,
    /// States: weights, accumulator. Numbers: rate, momentum. The flag is Nesterov's momentum.
    Momentum,
    /// States: weights, accumulator. Numbers: rate, momentum. The flag is Nesterov's momentum.
    KerasMomentum,
    /// States: weights, first and second moment. Numbers: powers of beta 1 and beta 2, rate, beta 1, beta 2, epsilon. The
    /// flag is Nesterov's momentum.
    Adam,
    /// States: weights, first and second moment, the greatest second moment so far. Numbers as of `Adam`.
    AdamWithAmsgrad,
    /// States: weights, first moment, infinity norm. Numbers: power of beta 1, rate, beta 1, beta 2, epsilon.
    AdaMax,
    /// States: weights, accumulator. Numbers: rate. The flag says that the accumulator changes.
    Adagrad,
    /// States: weights, accumulator. Numbers: rate, epsilon. The flag says that the accumulator changes.
    AdagradV2,
    /// States: weights, accumulated gradients and their squares. Numbers: rate, l1, l2, number of the step.
    AdagradDa,
    /// States: weights, accumulator, accumulated updates. Numbers: rate, rho, epsilon.
    Adadelta,
    /// States: weights, mean square, momentum. Numbers: rate, rho, momentum, epsilon.
    RmsProp,
    /// States: weights, mean gradient, mean square, momentum. Numbers: rate, rho, momentum, epsilon.
    CenteredRmsProp,
    /// States: weights, accumulator, linear. Numbers: rate, l1, l2, power of the rate. The flag says that the linear
    /// state is multiplied by the rate.
    Ftrl,
    /// States: weights, accumulator, linear. Numbers: rate, l1, l2, shrinkage of l2, power of the rate. The flag as of
    /// `Ftrl`.
    FtrlV2,
    /// States: weights, mean gradient. Numbers: rate, alpha, sign decay, beta.
    AddSign,
    /// States: weights, mean gradient. Numbers: rate, logarithm of the base, sign decay, beta.
    PowerSign,
    /// State: weights. Numbers: alpha, l1, l2.
    ProximalGradientDescent,
    /// States: weights, accumulator. Numbers: rate, l1, l2.
    ProximalAdagrad,
}

impl OptimizerKind {
    /// Returns the number of states: the weights, and what is kept beside them.
    pub fn n_states(self) -> usize {
        match self {
            OptimizerKind::GradientDescent | OptimizerKind::ProximalGradientDescent => 1,
            OptimizerKind::Momentum
            | OptimizerKind::KerasMomentum
            | OptimizerKind::Adagrad
            | OptimizerKind::AdagradV2
            | OptimizerKind::AddSign
            | OptimizerKind::PowerSign
            | OptimizerKind::ProximalAdagrad => 2,
            OptimizerKind::Adam
            | OptimizerKind::AdaMax
            | OptimizerKind::AdagradDa
            | OptimizerKind::Adadelta
            | OptimizerKind::RmsProp
            | OptimizerKind::Ftrl
            | OptimizerKind::FtrlV2 => 3,
            OptimizerKind::AdamWithAmsgrad | OptimizerKind::CenteredRmsProp => 4,
        }
    }

    /// Returns the number of scalars.
    pub fn n_numbers(self) -> usize {
        match self {
            OptimizerKind::GradientDescent | OptimizerKind::Adagrad => 1,
            OptimizerKind::Momentum | OptimizerKind::KerasMomentum | OptimizerKind::AdagradV2 => 2,
            OptimizerKind::Adadelta
            | OptimizerKind::ProximalGradientDescent
            | OptimizerKind::ProximalAdagrad => 3,
            OptimizerKind::AdagradDa
            | OptimizerKind::RmsProp
            | OptimizerKind::CenteredRmsProp
            | OptimizerKind::Ftrl
            | OptimizerKind::AddSign
            | OptimizerKind::PowerSign => 4,
            OptimizerKind::AdaMax | OptimizerKind::FtrlV2 => 5,
            OptimizerKind::Adam | OptimizerKind::AdamWithAmsgrad => 6,
        }
    }
}

/// The greatest number of scalars of an optimizer.
pub const MAX_NUMBERS: usize = 6;

/// One step of an optimizer: its method and its scalars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    /// The method.
    pub kind: OptimizerKind,
    /// The scalars, in the order of the kind; the rest is not looked at. A number of the weights' type is rounded to
    /// itself.
    pub numbers: [f64; MAX_NUMBERS],
    /// A choice of the method that has one: see the kinds.
    pub flag: bool,
}

/// A number with operators that round each for itself.
#[derive(Clone, Copy)]
struct V<T>(T);

/// `operators!(Add add plus)` lets `a + b` be `a.plus(b)`.
macro_rules! operators {
    ($($trait:ident $method:ident $number:ident),*) => {$(
        impl<T: Floating> $trait for V<T> {
            type Output = V<T>;

            #[inline(always)]
            fn $method(self, other: V<T>) -> V<T> {
                V(self.0.$number(other.0))
            }
        }
    )*};
}

operators!(Add add plus, Sub sub minus, Mul mul times, Div div over);

impl<T: Floating> V<T> {
    #[inline(always)]
    fn of(value: f64) -> V<T> {
        V(T::from_f64(value))
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        self.0.to_f64()
    }

    #[inline(always)]
    fn sqrt(self) -> V<T> {
        V(self.0.map(f32::sqrt, f64::sqrt))
    }

    #[inline(always)]
    fn rsqrt(self) -> V<T> {
        V(self.0.map(|x| 1.0 / x.sqrt(), |x| 1.0 / x.sqrt()))
    }

    #[inline(always)]
    fn exp(self) -> V<T> {
        V(self.0.map(f32::exp, f64::exp))
    }

    /// Returns a power; square roots, which Ftrl mostly asks for, for themselves.
    #[inline(always)]
    fn pow(self, exponent: V<T>) -> V<T> {
        match exponent.0.to_f64() == 0.5 {
            true => self.sqrt(),
            false => V(self.0.map2(exponent.0, f32::powf, f64::powf)),
        }
    }

    #[inline(always)]
    fn abs(self) -> V<T> {
        V(self.0.magnitude())
    }

    /// Returns -1, 0 or 1.
    #[inline(always)]
    fn sign(self) -> V<T> {
        let zero = T::ZERO;
        match (zero.less(self.0), self.0.less(zero)) {
            (true, _) => V::of(1.0),
            (_, true) => V::of(-1.0),
            _ => V(zero),
        }
    }

    #[inline(always)]
    fn max(self, other: V<T>) -> V<T> {
        match self.0.less(other.0) {
            true => other,
            false => self,
        }
    }

    #[inline(always)]
    fn exceeds(self, other: V<T>) -> bool {
        other.0.less(self.0)
    }
}

/// The scalars of a step, in the type of the weights.
#[derive(Clone, Copy)]
struct Scalars<T> {
    numbers: [V<T>; MAX_NUMBERS],
    flag: bool,
    one: V<T>,
    two: V<T>,
    zero: V<T>,
}

/// A loop over elements: of the scalars, of slices of all states, and of the gradient.
type Loop<T> = fn(&Scalars<T>, &mut [&mut [T]], &[T]);

/// Number of elements that are calculated side by side, so that no state may be where another is.
const LANES: usize = 16;

/// Applies a function of one element to all.
#[inline(always)]
fn each<T: Floating, const N: usize>(
    scalars: &Scalars<T>,
    states: &mut [&mut [T]],
    gradient: &[T],
    step: impl Fn(&Scalars<T>, [V<T>; N], V<T>) -> [V<T>; N],
) {
    let states: &mut [&mut [T]; N] = states.try_into().expect("as many as the kind has");
    let scalars = *scalars;
    // The loop owns scalars and function, so that no state can be where they are and what follows from them alone is
    // calculated once.
    let block = move |lanes: [[T; LANES]; N], slope: &[T; LANES]| {
        let mut after = lanes;
        for lane in 0..LANES {
            let before = std::array::from_fn(|index| V(lanes[index][lane]));
            let one = step(&scalars, before, V(slope[lane]));
            for index in 0..N {
                after[index][lane] = one[index].0;
            }
        }
        after
    };
    vectorized_for::<T, _>(
        #[inline(always)]
        move || {
            let (slopes, slope) = gradient.as_chunks::<LANES>();
            let parts = states.each_mut();
            let mut parts = parts.map(|state| state.as_chunks_mut::<LANES>());
            for (index, slope) in slopes.iter().enumerate() {
                let after = block(parts.each_ref().map(|(blocks, _)| blocks[index]), slope);
                for ((blocks, _), after) in parts.iter_mut().zip(after) {
                    blocks[index] = after;
                }
            }
            let padded = |part: &[T]| {
                let mut lanes = [T::ZERO; LANES];
                lanes[..part.len()].copy_from_slice(part);
                lanes
            };
            if !slope.is_empty() {
                let before = parts.each_ref().map(|(_, rest)| padded(rest));
                for ((_, rest), after) in parts.iter_mut().zip(block(before, &padded(slope))) {
                    rest.copy_from_slice(&after[..rest.len()]);
                }
            }
        },
    );
}

/// Returns the loop of a kind.
fn loop_of<T: Floating>(kind: OptimizerKind) -> Loop<T> {
    match kind {
        OptimizerKind::GradientDescent => |s, states, g| {
            each(s, states, g, |s, [var], g| [var - g * s.numbers[0]]);
        },
        OptimizerKind::Momentum => |s, states, g| each(s, states, g, momentum),
        OptimizerKind::KerasMomentum => |s, states, g| each(s, states, g, keras_momentum),
        OptimizerKind::Adam => |s, states, g| each(s, states, g, adam),
        OptimizerKind::AdamWithAmsgrad => |s, states, g| each(s, states, g, amsgrad),
        OptimizerKind::AdaMax => |s, states, g| each(s, states, g, adamax),
        OptimizerKind::Adagrad => |s, states, g| {
            each(s, states, g, |s, [var, accum], g| {
                let accum = accumulated(s, accum, g);
                [var - g * s.numbers[0] * accum.rsqrt(), accum]
            });
        },
        OptimizerKind::AdagradV2 => |s, states, g| {
            each(s, states, g, |s, [var, accum], g| {
                let accum = accumulated(s, accum, g);
                [
                    var - g * s.numbers[0] / (accum.sqrt() + s.numbers[1]),
                    accum,
                ]
            });
        },
        OptimizerKind::AdagradDa => |s, states, g| each(s, states, g, adagrad_da),
        OptimizerKind::Adadelta => |s, states, g| each(s, states, g, adadelta),
        OptimizerKind::RmsProp => |s, states, g| each(s, states, g, rms_prop),
        OptimizerKind::CenteredRmsProp => |s, states, g| each(s, states, g, centered_rms_prop),
        OptimizerKind::Ftrl => |s, states, g| {
            let [lr, l1, l2, power, ..] = s.numbers;
            each(s, states, g, move |s, states, g| {
                ftrl(s, states, [lr, l1, l2, power], [g, g])
            });
        },
        OptimizerKind::FtrlV2 => |s, states, g| {
            let [lr, l1, l2, shrinkage, power, ..] = s.numbers;
            each(s, states, g, move |s, [var, accum, linear], g| {
                let shrunk = g + s.two * shrinkage * var;
                ftrl(s, [var, accum, linear], [lr, l1, l2, power], [g, shrunk])
            });
        },
        OptimizerKind::AddSign => |s, states, g| {
            each(s, states, g, |s, [var, m], g| {
                let [lr, alpha, decay, beta, ..] = s.numbers;
                let m = m * beta + g * (s.one - beta);
                let agrees = g.sign() * m.sign();
                [var - lr * (alpha + decay * agrees) * g, m]
            });
        },
        OptimizerKind::PowerSign => |s, states, g| {
            each(s, states, g, |s, [var, m], g| {
                let [lr, log_base, decay, beta, ..] = s.numbers;
                let m = m * beta + g * (s.one - beta);
                let agrees = g.sign() * m.sign();
                [var - lr * (log_base * decay * agrees).exp() * g, m]
            });
        },
        OptimizerKind::ProximalGradientDescent => |s, states, g| {
            each(s, states, g, |s, [var], g| {
                let [alpha, l1, l2, ..] = s.numbers;
                [proximal(s, var - g * alpha, alpha, [l1, l2])]
            });
        },
        OptimizerKind::ProximalAdagrad => |s, states, g| {
            each(s, states, g, |s, [var, accum], g| {
                let [lr, l1, l2, ..] = s.numbers;
                let accum = accum + g * g;
                let rate = lr * accum.rsqrt();
                [proximal(s, var - g * rate, rate, [l1, l2]), accum]
            });
        },
    }
}

#[inline(always)]
fn accumulated<T: Floating>(s: &Scalars<T>, accum: V<T>, g: V<T>) -> V<T> {
    match s.flag {
        true => accum + g * g,
        false => accum,
    }
}

#[inline(always)]
fn momentum<T: Floating>(s: &Scalars<T>, [var, accum]: [V<T>; 2], g: V<T>) -> [V<T>; 2] {
    let [lr, momentum, ..] = s.numbers;
    let accum = accum * momentum + g;
    let step = match s.flag {
        true => g * lr + accum * momentum * lr,
        false => accum * lr,
    };
    [var - step, accum]
}

#[inline(always)]
fn keras_momentum<T: Floating>(s: &Scalars<T>, [var, accum]: [V<T>; 2], g: V<T>) -> [V<T>; 2] {
    let [lr, momentum, ..] = s.numbers;
    let accum = accum * momentum - g * lr;
    let step = match s.flag {
        true => accum * momentum - g * lr,
        false => accum,
    };
    [var + step, accum]
}

/// Returns the rate of Adam without bias.
#[inline(always)]
fn unbiased<T: Floating>(s: &Scalars<T>) -> V<T> {
    let [beta1_power, beta2_power, lr, ..] = s.numbers;
    lr * (s.one - beta2_power).sqrt() / (s.one - beta1_power)
}

#[inline(always)]
fn adam<T: Floating>(s: &Scalars<T>, [var, m, v]: [V<T>; 3], g: V<T>) -> [V<T>; 3] {
    let [.., beta1, beta2, epsilon] = s.numbers;
    let rate = unbiased(s);
    let m = m + (g - m) * (s.one - beta1);
    let v = v + (g * g - v) * (s.one - beta2);
    let step = match s.flag {
        true => (g * (s.one - beta1) + beta1 * m) * rate,
        false => m * rate,
    };
    [var - step / (v.sqrt() + epsilon), m, v]
}

#[inline(always)]
fn amsgrad<T: Floating>(s: &Scalars<T>, [var, m, v, most]: [V<T>; 4], g: V<T>) -> [V<T>; 4] {
    let [.., beta1, beta2, epsilon] = s.numbers;
    let rate = unbiased(s);
    let m = m + (g - m) * (s.one - beta1);
    let v = v + (g * g - v) * (s.one - beta2);
    let most = most.max(v);
    [var - m * rate / (most.sqrt() + epsilon), m, v, most]
}

#[inline(always)]
fn adamax<T: Floating>(s: &Scalars<T>, [var, m, v]: [V<T>; 3], g: V<T>) -> [V<T>; 3] {
    let [beta1_power, lr, beta1, beta2, epsilon, ..] = s.numbers;
    let m = m + (g - m) * (s.one - beta1);
    let v = (beta2 * v).max(g.abs());
    [var - lr / (s.one - beta1_power) * (m / (v + epsilon)), m, v]
}

#[inline(always)]
fn adagrad_da<T: Floating>(s: &Scalars<T>, [_, sum, squares]: [V<T>; 3], g: V<T>) -> [V<T>; 3] {
    let [lr, l1, l2, n_steps, ..] = s.numbers;
    let sum = sum + g;
    let squares = squares + g * g;
    let divisor = l2 * n_steps * lr + squares.sqrt();
    let var = match l1.exceeds(s.zero) {
        true => {
            let kept = (sum.abs() - n_steps * l1).max(s.zero);
            (s.zero - lr) * sum.sign() * kept / divisor
        }
        false => (s.zero - lr) * sum / divisor,
    };
    [var, sum, squares]
}

#[inline(always)]
fn adadelta<T: Floating>(s: &Scalars<T>, [var, accum, updates]: [V<T>; 3], g: V<T>) -> [V<T>; 3] {
    let [lr, rho, epsilon, ..] = s.numbers;
    let accum = accum * rho + g * g * (s.one - rho);
    let update = (updates + epsilon).sqrt() * (accum + epsilon).rsqrt() * g;
    let updates = updates * rho + update * update * (s.one - rho);
    [var - update * lr, accum, updates]
}

#[inline(always)]
fn rms_prop<T: Floating>(s: &Scalars<T>, [var, ms, mom]: [V<T>; 3], g: V<T>) -> [V<T>; 3] {
    let [lr, rho, momentum, epsilon, ..] = s.numbers;
    let ms = ms + (g * g - ms) * (s.one - rho);
    let mom = mom * momentum + g * lr / (ms + epsilon).sqrt();
    [var - mom, ms, mom]
}

#[inline(always)]
fn centered_rms_prop<T: Floating>(
    s: &Scalars<T>,
    [var, mg, ms, mom]: [V<T>; 4],
    g: V<T>,
) -> [V<T>; 4] {
    let [lr, rho, momentum, epsilon, ..] = s.numbers;
    let ms = ms + (g * g - ms) * (s.one - rho);
    let mg = mg + (g - mg) * (s.one - rho);
    let mom = mom * momentum + g * lr / (ms - mg * mg + epsilon).sqrt();
    [var - mom, mg, ms, mom]
}

/// Takes a step with a gradient, and the one that the linear state sees.
#[inline(always)]
fn ftrl<T: Floating>(
    s: &Scalars<T>,
    [var, accum, linear]: [V<T>; 3],
    [lr, l1, l2, power]: [V<T>; 4],
    [g, shrunk]: [V<T>; 2],
) -> [V<T>; 3] {
    let exponent = s.zero - power;
    let next = accum + g * g;
    let (root, before) = (next.pow(exponent), accum.pow(exponent));
    let (linear, divisor, threshold) = match s.flag {
        true => {
            let linear = linear + (shrunk * lr - (root - before) * var);
            (linear, root + s.two * l2 * lr, l1 * lr)
        }
        false => {
            let linear = linear + (shrunk - (root - before) / lr * var);
            (linear, root / lr + s.two * l2, l1)
        }
    };
    let var = match linear.abs().exceeds(threshold) {
        true => (threshold * linear.sign() - linear) / divisor,
        false => s.zero,
    };
    [var, next, linear]
}

/// Shrinks a weight by l1 and l2.
#[inline(always)]
fn proximal<T: Floating>(s: &Scalars<T>, p: V<T>, rate: V<T>, [l1, l2]: [V<T>; 2]) -> V<T> {
    let divisor = s.one + l2 * rate;
    match l1.exceeds(s.zero) {
        true => p.sign() * (p.abs() - rate * l1).max(s.zero) / divisor,
        false => p / divisor,
    }
}

impl Optimizer {
    fn scalars<T: Floating>(&self) -> Scalars<T> {
        Scalars {
            numbers: self.numbers.map(V::of),
            flag: self.flag,
            one: V::of(1.0),
            two: V::of(2.0),
            zero: V(T::ZERO),
        }
    }

    /// Takes a step: changes all states, on the workers of the request's queue if they are large. The states must not
    /// share memory.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the tensors are not of one shape and floating-point type, or not as many states as the kind
    /// has; `FailedPrecondition` if somebody uses a state; the chain fails with these if they are found later.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_host::{HostContext, RequestContext, kernel::KernelRegistry};
    /// use tfrt_tensor::DenseHostTensor;
    /// use tfrt_tensor::math::optimizer::{Optimizer, OptimizerKind};
    ///
    /// let host = HostContext::builder(KernelRegistry::new()).build();
    /// let execution = RequestContext::new(&host).into();
    /// let of = |list: &[f32]| DenseHostTensor::from_slice(host.allocator(), &[list.len()], list);
    /// let (weights, gradient) = (of(&[1.0, 2.0])?, of(&[2.0, -2.0])?);
    /// let numbers = [0.5, 0.0, 0.0, 0.0, 0.0, 0.0];
    /// let descent = Optimizer { kind: OptimizerKind::GradientDescent, numbers, flag: false };
    /// descent.apply(&execution, &gradient, &[weights.clone()])?;
    /// assert_eq!(weights.read()?.elements::<f32>()?, [0.0, 3.0]);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn apply(
        &self,
        execution: &ExecutionContext,
        gradient: &DenseHostTensor,
        states: &[DenseHostTensor],
    ) -> Result<AsyncValue<Chain>, Error> {
        let (var, _) = self.check(states)?;
        if gradient.metadata() != var.metadata() {
            return Err(unlike("gradient", gradient, var));
        }
        let dtype = var.dtype();
        with_floating!(dtype, T => self.apply_of::<T>(execution, gradient, states), else Err(Family::Floats.lacks(dtype)))
    }

    fn apply_of<T: Floating>(
        &self,
        execution: &ExecutionContext,
        gradient: &DenseHostTensor,
        states: &[DenseHostTensor],
    ) -> Result<AsyncValue<Chain>, Error> {
        let (run, scalars) = (loop_of::<T>(self.kind), self.scalars::<T>());
        let (var, slots) = (&states[0], states[1..].to_vec());
        let gradient = gradient.clone();
        let chunk = parallel::chunk_len(2 * states.len(), LANES);
        parallel::fill(execution, var, chunk, move |first, part: &mut [T]| {
            let range = first..first + part.len();
            let reading = gradient.read()?;
            let gradient = &reading.elements::<T>()?[range.clone()];
            let bytes = range.start * size_of::<T>()..range.end * size_of::<T>();
            let slots: Vec<_> = slots
                .iter()
                .map(|slot| slot.buffer().slice(bytes.clone()).expect("of one shape"))
                .collect();
            let writing = slots.iter().map(|slot| slot.write());
            let mut writing = writing.collect::<Result<Vec<_>, _>>()?;
            let mut all: Vec<&mut [T]> = vec![part];
            for slot in &mut writing {
                all.push(from_bytes_mut(slot)?);
            }
            run(&scalars, &mut all, gradient);
            Ok(())
        })
    }

    /// Takes a step of some rows: row `indices[i]` by row `i` of the gradient, one after the other, so that a row that
    /// is named twice takes two steps. No row changes if an index is out of range.
    ///
    /// # Errors
    ///
    /// Those of [`apply`](Self::apply), and `InvalidArgument` for an index out of range.
    pub fn apply_rows(
        &self,
        gradient: &DenseHostTensor,
        indices: &[i64],
        states: &[DenseHostTensor],
    ) -> Result<(), Error> {
        let (var, n_rows) = self.check(states)?;
        let n_rows =
            n_rows.ok_or_else(|| Error::invalid_argument("var must be at least 1 dimensional"))?;
        let mut expected = var.metadata().clone();
        let extents = std::iter::once(indices.len()).chain(var.shape().extents().skip(1));
        expected.shape = crate::TensorShape::new(&extents.collect::<Vec<_>>())?;
        if gradient.metadata() != &expected {
            return Err(unlike("gradient", gradient, var));
        }
        let mut rows = Vec::with_capacity(indices.len());
        for (offset, index) in indices.iter().enumerate() {
            let row = usize::try_from(*index).ok().filter(|row| *row < n_rows);
            rows.push(row.ok_or_else(|| {
                Error::invalid_argument(format!(
                    "Index {index} at offset {offset} in indices is out of range"
                ))
            })?);
        }
        let dtype = var.dtype();
        with_floating!(dtype, T => self.apply_rows_of::<T>(gradient, &rows, states), else Err(Family::Floats.lacks(dtype)))
    }

    fn apply_rows_of<T: Floating>(
        &self,
        gradient: &DenseHostTensor,
        rows: &[usize],
        states: &[DenseHostTensor],
    ) -> Result<(), Error> {
        let len = gradient.n_elements().checked_div(rows.len()).unwrap_or(0);
        let (run, scalars) = (rows::loop_of_rows::<T>(self.kind, len), self.scalars::<T>());
        let reading = gradient.read()?;
        let gradient = reading.elements::<T>()?;
        let writing = states.iter().map(DenseHostTensor::write);
        let mut writing = writing.collect::<Result<Vec<_>, _>>()?;
        let mut all: Vec<&mut [T]> = Vec::with_capacity(states.len());
        for state in &mut writing {
            all.push(state.elements_mut()?);
        }
        for (row, gradient) in rows.iter().zip(gradient.chunks_exact(len.max(1))) {
            let range = row * len..(row + 1) * len;
            let mut of_row: Vec<&mut [T]> = all
                .iter_mut()
                .map(|state| &mut state[range.clone()])
                .collect();
            run(&scalars, &mut of_row, gradient);
        }
        Ok(())
    }

    /// Returns the weights and the number of their rows, if all states are like them.
    fn check<'s>(
        &self,
        states: &'s [DenseHostTensor],
    ) -> Result<(&'s DenseHostTensor, Option<usize>), Error> {
        let n_states = self.kind.n_states();
        let (var, slots) = match states {
            [var, slots @ ..] if states.len() == n_states => (var, slots),
            _ => {
                let (kind, found) = (self.kind, states.len());
                return Err(Error::invalid_argument(format!(
                    "{kind:?} has {n_states} states, found {found}"
                )));
            }
        };
        if let Some(slot) = slots.iter().find(|slot| slot.metadata() != var.metadata()) {
            return Err(unlike("state", slot, var));
        }
        Ok((var, var.shape().extents().next()))
    }
}

#[cold]
fn unlike(what: &str, found: &DenseHostTensor, var: &DenseHostTensor) -> Error {
    let (found, var) = (found.metadata(), var.metadata());
    Error::invalid_argument(format!("a {what} of {found} does not fit weights of {var}"))
}
