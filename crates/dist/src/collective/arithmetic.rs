//! The arithmetic of reductions: many values of one shape, element by element, in the order of a tree.
//!
//! All terms are read once and the result is written once, a few kilobytes at a time, so that what lies between is in the
//! nearest cache. The loops are compiled for several instruction sets; which one runs does not change a bit, since each
//! element is calculated by itself.

use tfrt_tensor::math::number::Real;

use crate::reduction::Step;

/// A function that reduces two values to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// The sum; integers wrap around.
    Sum,
    /// The smallest; NaN if one is NaN.
    Min,
    /// The largest; NaN if one is NaN.
    Max,
    /// The sum, divided in the end by the number of leaves; of integers, the wrapped sum, rounded towards zero.
    Mean,
}

impl Function {
    /// Returns the function that programs call so.
    pub fn named(name: &str) -> Option<Function> {
        match name {
            "sum" => Some(Function::Sum),
            "min" => Some(Function::Min),
            "max" => Some(Function::Max),
            "mean" => Some(Function::Mean),
            _ => None,
        }
    }

    /// Returns the name in programs.
    pub fn name(self) -> &'static str {
        match self {
            Function::Sum => "sum",
            Function::Min => "min",
            Function::Max => "max",
            Function::Mean => "mean",
        }
    }
}

/// A value to be reduced.
#[derive(Clone, Copy, Debug)]
pub enum Value<'v, T> {
    /// Elements that lie elsewhere.
    Elements(&'v [T]),
    /// The elements that the result is written over.
    Result,
}

/// The bytes that are reduced at a time.
const BLOCK_BYTES: usize = 4096;

/// Reduces values in the order of `steps`, and writes the result to `result`.
///
/// `n_terms` is given with the last reduction of a collective: a mean is divided by it, and whatever is NaN becomes the
/// canonical NaN, since which NaN comes out of a sum depends on the processor.
///
/// # Panics
///
/// If a value is not as long as the result, or if the steps do not reduce the values to one.
pub fn reduce<T: Real>(
    function: Function,
    steps: &[Step],
    values: &[Value<'_, T>],
    result: &mut [T],
    n_terms: Option<usize>,
) {
    for value in values {
        if let Value::Elements(elements) = value {
            assert_eq!(elements.len(), result.len(), "values are of one length");
        }
    }
    let mut walk = Walk {
        steps,
        values,
        scratch: Vec::new(),
        stack: Vec::new(),
    };
    let block_len = (BLOCK_BYTES / size_of::<T>()).max(1);
    for (index, block) in result.chunks_mut(block_len).enumerate() {
        let begin = index * block_len;
        match function {
            Function::Sum | Function::Mean => walk.block(begin, block, T::plus),
            Function::Min => walk.block(begin, block, T::least),
            Function::Max => walk.block(begin, block, T::greatest),
        }
        let Some(n_terms) = n_terms else { continue };
        match function {
            Function::Mean => finish(block, |x| T::mean(x.widened(), n_terms)),
            _ => finish(block, |x| x),
        }
    }
}

/// A reduction, block by block.
struct Walk<'v, T> {
    steps: &'v [Step],
    values: &'v [Value<'v, T>],
    /// Blocks of what lies between, in the order of the stack: one for each entry that is no term.
    scratch: Vec<Vec<T>>,
    stack: Vec<Entry>,
}

/// An entry of the stack of a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Term(usize),
    Scratch(usize),
}

impl<T: Real> Walk<'_, T> {
    /// Reduces the elements from `begin` on, as many as there are in `block`.
    fn block(&mut self, begin: usize, block: &mut [T], function: impl Fn(T, T) -> T + Copy) {
        let (len, n_steps) = (block.len(), self.steps.len());
        self.stack.clear();
        for at in 0..n_steps {
            let term = match self.steps[at] {
                Step::Term(term) => Entry::Term(term),
                Step::Combine => {
                    let right = self.stack.pop().expect(INVARIANT);
                    let left = self.stack.pop().expect(INVARIANT);
                    if at + 1 == n_steps {
                        let left = self.elements(left, begin, len);
                        return combine(block, left, self.elements(right, begin, len), function);
                    }
                    self.combine_between((left, right), begin, block, function)
                }
            };
            self.stack.push(term);
        }
        // A single term is its own reduction.
        assert!(self.stack.len() == 1, "{INVARIANT}");
        if let Some(elements) = self.elements(self.stack[0], begin, len) {
            block.copy_from_slice(elements);
        }
    }

    /// Reduces two entries to one, which lies in scratch: in place of the lower one that does so, or behind all.
    fn combine_between(
        &mut self,
        (left, right): (Entry, Entry),
        begin: usize,
        block: &[T],
        function: impl Fn(T, T) -> T + Copy,
    ) -> Entry {
        let target = match (left, right) {
            (Entry::Scratch(target), _) | (_, Entry::Scratch(target)) => target,
            _ => {
                let in_use = self.stack.iter().rev();
                let mut in_use = in_use.filter_map(|entry| match entry {
                    Entry::Scratch(index) => Some(index + 1),
                    Entry::Term(_) => None,
                });
                in_use.next().unwrap_or(0)
            }
        };
        if target == self.scratch.len() {
            self.scratch.push(Vec::new());
        }
        let mut made = std::mem::take(&mut self.scratch[target]);
        made.resize(block.len(), T::ZERO);
        let elements = |entry| match entry == Entry::Scratch(target) {
            true => None,
            false => Some(self.elements(entry, begin, block.len()).unwrap_or(block)),
        };
        combine(&mut made, elements(left), elements(right), function);
        self.scratch[target] = made;
        Entry::Scratch(target)
    }

    /// Returns the elements of an entry; `None` where they are those of the result.
    fn elements(&self, entry: Entry, begin: usize, len: usize) -> Option<&[T]> {
        match entry {
            Entry::Scratch(index) => Some(&self.scratch[index][..len]),
            Entry::Term(term) => match self.values[term] {
                Value::Elements(elements) => Some(&elements[begin..begin + len]),
                Value::Result => None,
            },
        }
    }
}

const INVARIANT: &str = "the steps reduce to one value";

/// Reduces two values element by element; `None` stands for what lies in `result` before.
fn combine<T: Real>(
    result: &mut [T],
    left: Option<&[T]>,
    right: Option<&[T]>,
    function: impl Fn(T, T) -> T + Copy,
) {
    vectorized(
        #[inline(always)]
        || match (left, right) {
            (Some(left), Some(right)) => {
                for ((result, left), right) in result.iter_mut().zip(left).zip(right) {
                    *result = function(*left, *right);
                }
            }
            (None, Some(right)) => {
                for (result, right) in result.iter_mut().zip(right) {
                    *result = function(*result, *right);
                }
            }
            (Some(left), None) => {
                for (result, left) in result.iter_mut().zip(left) {
                    *result = function(*left, *result);
                }
            }
            (None, None) => {
                for result in result.iter_mut() {
                    *result = function(*result, *result);
                }
            }
        },
    );
}

/// Applies a function to each element, and writes the canonical NaN over others.
fn finish<T: Real>(block: &mut [T], function: impl Fn(T) -> T + Copy) {
    let nan = T::from_f64(f64::NAN);
    vectorized(
        #[inline(always)]
        || {
            for x in block.iter_mut() {
                let y = function(*x);
                *x = if y.same(y) { y } else { nan };
            }
        },
    );
}

/// Runs a loop compiled for the best instruction set that this processor has.
#[inline(always)]
fn vectorized<R>(body: impl FnOnce() -> R) -> R {
    struct Body<F>(F);
    impl<R, F: FnOnce() -> R> pulp::WithSimd for Body<F> {
        type Output = R;

        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    pulp::Arch::new().dispatch(Body(body))
}
