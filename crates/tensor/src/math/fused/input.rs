//! [`Input`]: how blocks of an input are read as it is broadcast.

use super::run::LEAST;
use crate::TensorShape;
use crate::math::broadcast::Broadcast;
use crate::math::number::Floating;

/// How an input lies by the result's elements.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// Element by element behind each other.
    Dense,
    /// One for all.
    One,
    /// Otherwise: copied, block by block. In front the result, so that its dimensions are all there.
    Spread(Box<Broadcast<2>>),
}

impl Input {
    /// Looks at an input that broadcasts to `out`.
    pub(super) fn new(extents: &[usize], strides: &[usize], out: &[usize]) -> Input {
        let all = Broadcast::new([(out, &row_major(out)), (extents, strides)])
            .expect("it was seen that they broadcast");
        match all.single() {
            Some([_, 1]) => Input::Dense,
            Some([_, 0]) => Input::One,
            _ => Input::Spread(Box::new(all)),
        }
    }

    /// The same for shapes, most of which are seen through at once.
    pub(super) fn of(own: &TensorShape, out: &TensorShape) -> Input {
        if own == out {
            return Input::Dense;
        }
        if own.n_elements() == Some(1) && own.rank() <= out.rank() {
            return Input::One;
        }
        Input::new(&own.to_dims(), &own.strides(), &out.to_dims())
    }

    /// Copies the elements for `n` of the result, from the `first` on, at least one and at most [`LEAST`]. The
    /// last stands for those that are not there.
    pub(super) fn few<T: Floating>(&self, x: &[T], first: usize, n: usize) -> [T; LEAST] {
        let mut copy = [T::ZERO; LEAST];
        match self {
            Input::Dense => copy[..n].copy_from_slice(&x[first..first + n]),
            Input::One => copy[..n].fill(x[0]),
            Input::Spread(walk) => Input::copy(walk, x, first, &mut copy[..n]),
        }
        let last = copy[n - 1];
        copy[n..].fill(last);
        copy
    }

    /// Copies the elements for those of the result from the `first` on.
    pub(super) fn copy<T: Copy>(walk: &Broadcast<2>, x: &[T], first: usize, out: &mut [T]) {
        let mut done = 0;
        walk.walk(first, out.len(), |run| {
            let out = &mut out[done..done + run.len];
            done += run.len;
            let x = &x[run.offsets[1]..];
            match run.strides[1] {
                0 => out.fill(x[0]),
                1 => out.copy_from_slice(&x[..run.len]),
                stride => {
                    let from = x.iter().step_by(stride);
                    out.iter_mut().zip(from).for_each(|(out, x)| *out = *x);
                }
            }
        });
    }
}

fn row_major(extents: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; extents.len()];
    for index in (1..extents.len()).rev() {
        strides[index - 1] = strides[index].saturating_mul(extents[index]);
    }
    strides
}
