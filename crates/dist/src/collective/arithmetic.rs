//! The arithmetic of reductions: many values of one shape, element by element, in the order of a tree.
//!
//! Up to eight values that are a whole part of the tree are reduced by one loop. Where there are more loops than one, they
//! run over a few kilobytes at a time, so that what lies between them is in the nearest cache. The loops are compiled for
//! several instruction sets; which one runs does not change a bit, since each element is calculated by itself.

use std::ops::Range;

use tfrt_tensor::DType;
use tfrt_tensor::math::number::Real;

use crate::reduction::Step;

mod passes;

use passes::{Entry, Pass};

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
    let walk = Walk {
        passes: passes::of_steps(steps),
        values,
    };
    match function {
        Function::Sum => walk.finished(result, T::plus, n_terms.map(|_| |x: T| x)),
        Function::Mean => {
            let mean = n_terms.map(|n_terms| move |x: T| T::mean(x.widened(), n_terms));
            walk.finished(result, T::plus, mean);
        }
        Function::Min => walk.finished(result, T::least, n_terms.map(|_| |x: T| x)),
        Function::Max => walk.finished(result, T::greatest, n_terms.map(|_| |x: T| x)),
    }
}

/// A reduction, block by block.
struct Walk<'v, T> {
    passes: Vec<Pass>,
    values: &'v [Value<'v, T>],
}

impl<T: Real> Walk<'_, T> {
    /// Reduces all elements; `last` is applied to each that is finished, and other NaN than the canonical one replaced.
    fn finished(
        &self,
        result: &mut [T],
        function: impl Fn(T, T) -> T + Copy,
        last: Option<impl Fn(T) -> T + Copy>,
    ) {
        let nan = T::from_f64(f64::NAN);
        match last {
            None => self.run(result, function, |x| x),
            Some(last) => self.run(result, function, move |x| {
                let y = last(x);
                if y.same(y) { y } else { nan }
            }),
        }
    }

    fn run(
        &self,
        result: &mut [T],
        function: impl Fn(T, T) -> T + Copy,
        last: impl Fn(T) -> T + Copy,
    ) {
        let (last_pass, passes) = self.passes.split_last().expect("there is a value");
        let mut scratch: Vec<Vec<T>> = Vec::new();
        let is_over = |value: &Value<'_, T>| matches!(value, Value::Result);
        let is_over = self.values.iter().any(is_over);
        let mut before = Vec::new();
        let block_len = (BLOCK_BYTES / size_of::<T>()).max(1);
        for (index, block) in result.chunks_mut(block_len).enumerate() {
            let (begin, len) = (index * block_len, block.len());
            if is_over {
                before.clear();
                before.extend_from_slice(block);
            }
            for pass in passes {
                if scratch.len() <= pass.target {
                    scratch.resize(pass.target + 1, Vec::new());
                }
                let mut target = std::mem::take(&mut scratch[pass.target]);
                target.resize(len, T::ZERO);
                let inputs = |entry| self.elements(entry, begin..begin + len, &scratch, &before);
                run_pass(pass, inputs, &mut target, function, |x| x);
                scratch[pass.target] = target;
            }
            let inputs = |entry| self.elements(entry, begin..begin + len, &scratch, &before);
            run_pass(last_pass, inputs, block, function, last);
        }
    }

    /// Returns the elements of an entry; `before` are those that the result is written over.
    fn elements<'s>(
        &'s self,
        entry: Entry,
        range: Range<usize>,
        scratch: &'s [Vec<T>],
        before: &'s [T],
    ) -> &'s [T] {
        match entry {
            Entry::Scratch(index) => &scratch[index][..range.len()],
            Entry::Term(term) => match self.values[term] {
                Value::Elements(elements) => &elements[range],
                Value::Result => before,
            },
        }
    }
}

/// Reduces the inputs of a pass to `target`, whose length they have.
fn run_pass<'i, T: Real>(
    pass: &Pass,
    inputs: impl Fn(Entry) -> &'i [T],
    target: &mut [T],
    function: impl Fn(T, T) -> T + Copy,
    last: impl Fn(T) -> T + Copy,
) {
    let f = function;
    let len = target.len();
    match pass.inputs[..] {
        [a] => {
            let [a] = [a].map(|it| &inputs(it)[..len]);
            vectorized::<T, _>(
                #[inline(always)]
                || (0..len).for_each(|i| target[i] = last(a[i])),
            );
        }
        [a, b] => {
            let [a, b] = [a, b].map(|it| &inputs(it)[..len]);
            vectorized::<T, _>(
                #[inline(always)]
                || (0..len).for_each(|i| target[i] = last(f(a[i], b[i]))),
            );
        }
        [a, b, c, d] => {
            let [a, b, c, d] = [a, b, c, d].map(|it| &inputs(it)[..len]);
            vectorized::<T, _>(
                #[inline(always)]
                || (0..len).for_each(|i| target[i] = last(f(f(a[i], b[i]), f(c[i], d[i])))),
            );
        }
        [a, b, c, d, e, g, h, j] => {
            let [a, b, c, d, e, g, h, j] = [a, b, c, d, e, g, h, j].map(|it| &inputs(it)[..len]);
            vectorized::<T, _>(
                #[inline(always)]
                || {
                    for i in 0..len {
                        let left = f(f(a[i], b[i]), f(c[i], d[i]));
                        let right = f(f(e[i], g[i]), f(h[i], j[i]));
                        target[i] = last(f(left, right));
                    }
                },
            );
        }
        _ => unreachable!("passes have 1, 2, 4 or 8 inputs"),
    }
}

/// Runs a loop compiled for the best instruction set that this processor has; of types whose speed matters less, for the
/// instructions that every processor has.
#[inline(always)]
fn vectorized<T: Real, R>(body: impl FnOnce() -> R) -> R {
    struct Body<F>(F);
    impl<R, F: FnOnce() -> R> pulp::WithSimd for Body<F> {
        type Output = R;

        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) -> R {
            (self.0)()
        }
    }
    match T::DTYPE {
        DType::F32 | DType::F64 | DType::I32 => pulp::Arch::new().dispatch(Body(body)),
        _ => body(),
    }
}
