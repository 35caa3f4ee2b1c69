//! [`InputAccess`]: how blocks of an input are read as it is broadcast.

use super::table::{repeat, seen, seen_mut, with_size};
use crate::math::broadcast::Broadcast;
use crate::{Element, TensorShape};

/// The way in which blocks of an input are read, as it is broadcast.
#[derive(Clone, Debug)]
pub(super) enum InputAccess {
    /// Element by element behind each other.
    Dense,
    /// One element for all.
    One,
    /// From the result itself: copied block by block before the block is written.
    Result,
    /// Copied block by block, by a walk over the result's dimensions, which come first.
    Spread(Box<Broadcast<2>>),
}

impl InputAccess {
    /// Looks at an input that broadcasts to `out`.
    pub(super) fn new(extents: &[usize], strides: &[usize], out: &[usize]) -> InputAccess {
        let all = Broadcast::new([(out, &row_major(out)), (extents, strides)])
            .expect("it was seen that they broadcast");
        match all.single() {
            Some([_, 1]) => InputAccess::Dense,
            Some([_, 0]) => InputAccess::One,
            _ => InputAccess::Spread(Box::new(all)),
        }
    }

    /// Finds the access of an input by its shape, at once for most.
    pub(super) fn of(own: &TensorShape, out: &TensorShape) -> InputAccess {
        if own == out {
            return InputAccess::Dense;
        }
        if own.n_elements() == Some(1) && own.rank() <= out.rank() {
            return InputAccess::One;
        }
        InputAccess::new(&own.to_dims(), &own.strides(), &out.to_dims())
    }

    /// Copies the elements that stand beside those of the result from the `first` on, of `size` bytes each. `result`
    /// has the result's bytes.
    pub(super) fn copy(&self, size: usize, x: &[u8], first: usize, result: &[u8], out: &mut [u8]) {
        match self {
            InputAccess::Dense => out.copy_from_slice(&x[first * size..][..out.len()]),
            InputAccess::One => repeat(&x[..size], out),
            InputAccess::Result => out.copy_from_slice(&result[..out.len()]),
            InputAccess::Spread(walk) => with_size!(Some(size), T =>
                spread::<T>(walk, seen(x), first, seen_mut(out)), else
                unreachable!("elements have 1, 2, 4, 8 or 16 bytes")),
        }
    }
}

/// Copies the elements for those of the result from the `first` on.
fn spread<T: Element>(walk: &Broadcast<2>, x: &[T], first: usize, out: &mut [T]) {
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

fn row_major(extents: &[usize]) -> Vec<usize> {
    let mut strides = vec![1_usize; extents.len()];
    for index in (1..extents.len()).rev() {
        strides[index - 1] = strides[index].saturating_mul(extents[index]);
    }
    strides
}
