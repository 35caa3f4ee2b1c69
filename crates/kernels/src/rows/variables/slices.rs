//! The kernel that replaces a slice of a variable: every so many elements along each dimension.

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, Error, HostAllocator};
use tfrt_ops::tf::{StridedAxis, strided_axes};
use tfrt_ops::{AttrSource, AttrValue, Attrs};
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::resource::{Slot, Variable};
use tfrt_tensor::{StringHostTensor, Tensor, TensorShape};

use super::{change, extents, kernel, missing, slot};
use crate::rows::tensors::integers;

pub(in crate::rows) const KERNELS: &[TensorKernel] =
    &[kernel("tf.ResourceStridedSliceAssign", assign)];

/// The attributes that say which entries of the lists mean something else.
const MASKS: [&str; 5] = [
    "begin_mask",
    "end_mask",
    "ellipsis_mask",
    "new_axis_mask",
    "shrink_axis_mask",
];

/// The masks of a call, kept for later.
struct Masks([i64; 5]);

impl AttrSource for Masks {
    fn get(&self, name: &str) -> Option<AttrValue<'_>> {
        let index = MASKS.iter().position(|own| *own == name)?;
        Some(AttrValue::Int(self.0[index]))
    }
}

fn assign(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let lists = [integers(call, 1)?, integers(call, 2)?, integers(call, 3)?];
    let value = call.tensor(4)?.clone();
    let masks = Masks(MASKS.map(|name| call.attrs.int(name).unwrap_or(0)));
    let (name, defs) = (call.name.to_owned(), call.op.attrs);
    let slots = vec![slot(call, 0)?];
    let of = slots[0].clone();
    change(call, slots, move |execution| {
        let variable = of.get::<Variable>()?;
        let own = variable.metadata().ok_or_else(|| missing(&of))?;
        let (found, given) = (own.dtype, value.metadata().dtype);
        if found != given {
            return Err(Error::invalid_argument(format!(
                "l-value dtype {found} does not match r-value dtype {given}"
            )));
        }
        let signed: SmallVec<[i64; 6]> = own.shape.extents().map(|extent| extent as i64).collect();
        let [begin, end, steps] = &lists;
        let attrs = Attrs::new(&masks, defs);
        let axes = strided_axes(&signed, [begin, end, steps], &attrs)
            .map_err(|error| Error::invalid_argument(format!("{name}: {error}")))?;
        let Some(copy) = Copy::new(&own.shape, &axes, &value.metadata().shape)? else {
            return Ok(AsyncValue::available(Chain));
        };
        write((&of, variable), &copy, &value, execution.host().allocator())?;
        Ok(AsyncValue::available(Chain))
    })
}

fn write(
    (of, variable): (&Slot, &Variable),
    copy: &Copy,
    value: &Tensor,
    allocator: &std::sync::Arc<dyn HostAllocator>,
) -> Result<(), Error> {
    if let Tensor::String(value) = value {
        let before = variable.read(allocator)?.ok_or_else(|| missing(of))?;
        let mut strings = before.as_strings()?.strings().to_vec();
        copy.each_run(|to, from, n| {
            for index in 0..n {
                let from = from + index * copy.value_step();
                strings[to.at(index)].clone_from(&value.strings()[from]);
            }
        });
        let shape = before.metadata().shape.clone();
        return variable.assign(StringHostTensor::new(shape, strings)?.into(), allocator);
    }
    let value = value.as_dense()?;
    let size = value.dtype().size_bytes();
    let size = size.ok_or_else(|| unsupported("tf.ResourceStridedSliceAssign", value.dtype()))?;
    let target = variable.prepare_to_update(allocator)?;
    let target = target.ok_or_else(|| missing(of))?;
    let reading = value.read()?;
    let mut writing = target.write()?;
    let (given, own) = (reading.bytes(), writing.bytes_mut());
    copy.each_run(|to, from, n| {
        if to.step == 1 && copy.value_step() == 1 {
            let (to, from, n) = (to.start * size, from * size, n * size);
            own[to..to + n].copy_from_slice(&given[from..from + n]);
            return;
        }
        for index in 0..n {
            let (to, from) = (
                to.at(index) * size,
                (from + index * copy.value_step()) * size,
            );
            own[to..to + size].copy_from_slice(&given[from..from + size]);
        }
    });
    Ok(())
}

/// A copy of the elements of a value to a slice of a tensor. Along dimensions of one element the value is repeated.
struct Copy {
    /// The place of the slice's first element.
    start: usize,
    // Invariant: no extent is 0.
    axes: SmallVec<[CopyAxis; 6]>,
}

/// A dimension of a slice.
#[derive(Clone, Copy)]
struct CopyAxis {
    n: usize,
    /// The distance of elements in the tensor, which may be negative.
    to: isize,
    /// That in the value.
    from: usize,
}

/// Places at a distance from each other.
struct Run {
    start: usize,
    step: isize,
}

impl Run {
    fn at(&self, index: usize) -> usize {
        // Both are within a tensor.
        self.start.wrapping_add_signed(index as isize * self.step)
    }
}

impl Copy {
    /// Returns the copy of a value of this shape to a slice of a tensor; none if the slice is empty.
    fn new(
        tensor: &TensorShape,
        axes: &[StridedAxis],
        value: &TensorShape,
    ) -> Result<Option<Copy>, Error> {
        let own: SmallVec<[usize; 6]> = tensor.extents().collect();
        let (mut start, mut stride) = (0_isize, 1_isize);
        let mut all: SmallVec<[CopyAxis; 6]> = SmallVec::new();
        let mut at = own.len();
        for axis in axes.iter().rev() {
            let StridedAxis::Slice {
                start: first,
                step,
                n,
                shrinks,
            } = *axis
            else {
                let (n, to, from) = (1, 0, 0);
                all.push(CopyAxis { n, to, from });
                continue;
            };
            at -= 1;
            start += first as isize * stride;
            if !shrinks || n == 0 {
                let n = usize::try_from(n).unwrap_or(0);
                let (to, from) = (step as isize * stride, 0);
                all.push(CopyAxis { n, to, from });
            }
            stride *= own[at] as isize;
        }
        all.reverse();
        if all.iter().any(|axis| axis.n == 0) {
            return Ok(None);
        }
        let given: SmallVec<[usize; 6]> = value.extents().collect();
        let surplus = given.len().saturating_sub(all.len());
        let (rest, fitted) = given.split_at(surplus);
        let mut distance = 1;
        let offset = all.len() - fitted.len();
        let mut fits = rest.iter().all(|extent| *extent == 1);
        for (axis, extent) in all[offset..].iter_mut().zip(fitted).rev() {
            fits &= *extent == 1 || *extent == axis.n;
            axis.from = if *extent == 1 { 0 } else { distance };
            distance *= extent;
        }
        if !fits {
            let sizes: Vec<usize> = all.iter().map(|axis| axis.n).collect();
            let (given, slice) = (extents(value), extents(&TensorShape::new(&sizes)?));
            return Err(Error::invalid_argument(format!(
                "Cannot broadcast input shape {given} into final shape {slice}"
            )));
        }
        let start = usize::try_from(start).map_err(|_| Error::internal("a slice is within"))?;
        Ok(Some(Copy { start, axes: all }))
    }

    /// Returns the distance of elements of a run in the value.
    fn value_step(&self) -> usize {
        self.axes.last().map_or(1, |axis| axis.from)
    }

    /// Calls a function with each run of elements along the last dimension: places in the tensor, the first place in the
    /// value, and the number.
    fn each_run(&self, mut run: impl FnMut(Run, usize, usize)) {
        let Some((last, outer)) = self.axes.split_last() else {
            return run(
                Run {
                    start: self.start,
                    step: 1,
                },
                0,
                1,
            );
        };
        let n_runs: usize = outer.iter().map(|axis| axis.n).product();
        for mut index in 0..n_runs {
            let (mut start, mut from) = (self.start, 0);
            for axis in outer.iter().rev() {
                let own = index % axis.n;
                index /= axis.n;
                start = start.wrapping_add_signed(own as isize * axis.to);
                from += own * axis.from;
            }
            let step = last.to;
            run(Run { start, step }, from, last.n);
        }
    }
}
