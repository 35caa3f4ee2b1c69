//! Launches of kernels that move elements, choose among them, or change their type.

use tfrt_host::Error;
use tfrt_host::device::DeviceSlice;

use super::{Launch, Part, address, count, linear, shared};
use crate::driver::{Argument, DevicePointer};

/// Places along six dimensions: an offset, and the steps, which may be below 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub(crate) offset: usize,
    pub(crate) steps: [isize; 6],
}

impl Places {
    /// Returns the number of elements up to the last place, or an error if a place lies before the first element.
    fn reach(&self, dims: [usize; 6]) -> Result<usize, Error> {
        let (mut first, mut last) = (self.offset, self.offset);
        for (dim, step) in dims.iter().zip(&self.steps) {
            let way = (dim - 1).saturating_mul(step.unsigned_abs());
            match *step < 0 {
                false => last = last.saturating_add(way),
                true => {
                    first = first
                        .checked_sub(way)
                        .ok_or_else(|| Error::internal("places before the first element"))?;
                }
            }
        }
        let _is_in = first;
        Ok(last.saturating_add(1))
    }

    /// Returns the steps as a kernel takes them: those below 0 wrap.
    fn words(&self) -> Result<[u32; 6], Error> {
        let mut words = [0; 6];
        for (word, step) in words.iter_mut().zip(self.steps) {
            let small = i32::try_from(step);
            let small = small.map_err(|_| Error::invalid_argument("elements are too far apart"))?;
            *word = u32::from_ne_bytes(small.to_ne_bytes());
        }
        Ok(words)
    }
}

fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

fn inner(dims: [usize; 6]) -> [u32; 5] {
    let [_, d1, d2, d3, d4, d5] = dims.map(count);
    [d1, d2, d3, d4, d5]
}

fn pointer(at: DevicePointer) -> Argument<'static> {
    Argument::Pointer(Some(at))
}

/// Returns the name of a kernel for elements of so many bytes.
fn of_size(kernel: &str, size: usize) -> Result<String, Error> {
    match size {
        1 | 2 | 4 | 8 => Ok(format!("{kernel}_{size}")),
        _ => Err(Error::invalid_argument(format!(
            "no kernel moves elements of {size} bytes"
        ))),
    }
}

/// Copies elements of `size` bytes from places of `x` to places of `y`.
pub(crate) fn copy(
    (y, y_places): (&DeviceSlice, Places),
    (x, x_places): (&DeviceSlice, Places),
    size: usize,
    dims: [usize; 6],
) -> Result<(), Error> {
    let n: usize = dims.iter().product();
    if n == 0 {
        return Ok(());
    }
    let name = of_size("copy", size)?;
    let y_at = address(y, y_places.reach(dims)?, size)?;
    let x_at = address(x, x_places.reach(dims)?, size)?;
    let head = [n, x_places.offset, y_places.offset].map(count);
    let layout = bytes(
        head.into_iter()
            .chain(inner(dims))
            .chain(x_places.words()?)
            .chain(y_places.words()?),
    );
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Moves,
        name: &name,
        grid: linear(n),
    };
    // SAFETY: the kernel reads and writes at places from indexes below `dims`, all of which are there.
    unsafe { launch.run(&[pointer(y_at), pointer(x_at), Argument::Bytes(&layout)]) }
}

/// How a tensor is padded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pad {
    /// 0 a constant, 1 the outermost element, 2 reflected, 3 from the other end.
    pub(crate) mode: u32,
    pub(crate) from: [usize; 6],
    pub(crate) to: [usize; 6],
    /// Elements in front; fewer are taken where it is below 0.
    pub(crate) front: [i32; 6],
}

/// Pads elements of `size` bytes, with a constant of the device, or with 0.
pub(crate) fn pad(
    size: usize,
    y: &DeviceSlice,
    x: &DeviceSlice,
    value: Option<&DeviceSlice>,
    pad: Pad,
) -> Result<(), Error> {
    let n: usize = pad.to.iter().product();
    if n == 0 {
        return Ok(());
    }
    let n_from: usize = pad.from.iter().product();
    if n_from == 0 && pad.mode != 0 {
        return Err(Error::invalid_argument(
            "a tensor without elements has none to pad it with",
        ));
    }
    let name = of_size("pad", size)?;
    let (y_at, x_at) = (address(y, n, size)?, address(x, n_from, size)?);
    let value = match value {
        Some(value) => Some(address(value, 1, size)?),
        None => None,
    };
    let front = pad
        .front
        .map(|front| u32::from_ne_bytes(front.to_ne_bytes()));
    let head = [count(n), pad.mode].into_iter().chain(inner(pad.to));
    let layout = bytes(head.chain(pad.from.map(count)).chain(front));
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Moves,
        name: &name,
        grid: linear(n),
    };
    let arguments = [
        pointer(y_at),
        pointer(x_at),
        Argument::Pointer(value),
        Argument::Bytes(&layout),
    ];
    // SAFETY: the kernel writes `n` elements, and reads those of `x` whose places lie within its extents, and one of the
    // value, all of which are there.
    unsafe { launch.run(&arguments) }
}

/// Slices of `inner` elements that are taken from `size` along an axis, for each of `outer`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gather {
    pub(crate) outer: usize,
    pub(crate) size: usize,
    pub(crate) inner: usize,
    pub(crate) n_picked: usize,
    /// Bytes of an element, and of an index.
    pub(crate) bytes: [usize; 2],
}

/// Gathers slices by indices.
pub(crate) fn gather(
    y: &DeviceSlice,
    x: &DeviceSlice,
    indices: &DeviceSlice,
    gather: Gather,
) -> Result<(), Error> {
    let Gather {
        outer,
        size,
        inner,
        n_picked,
        bytes: [bytes, index_bytes],
    } = gather;
    let n = outer.saturating_mul(n_picked).saturating_mul(inner);
    if n == 0 {
        return Ok(());
    }
    let name = of_size("gather", bytes)? + if index_bytes == 4 { "_i32" } else { "_i64" };
    let n_from = outer.saturating_mul(size).saturating_mul(inner);
    let pointers = [
        address(y, n, bytes)?,
        address(x, n_from, bytes)?,
        address(indices, n_picked, index_bytes)?,
    ]
    .map(pointer);
    let numbers = [n, n_picked, size, inner].map(|n| Argument::U32(count(n)));
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Moves,
        name: &name,
        grid: linear(n),
    };
    let arguments: Vec<Argument<'_>> = pointers.into_iter().chain(numbers).collect();
    // SAFETY: the kernel writes `n` elements, and reads `n_picked` indices and slices whose index is below `size`, all of
    // which are there.
    unsafe { launch.run(&arguments) }
}

/// Takes elements of `size` bytes of `x` where the condition is true, of `y` elsewhere; steps are those of the three.
pub(crate) fn select(
    (z, size): (&DeviceSlice, usize),
    operands: [&DeviceSlice; 3],
    dims: [usize; 6],
    steps: [[u32; 6]; 3],
) -> Result<(), Error> {
    let n: usize = dims.iter().product();
    if n == 0 {
        return Ok(());
    }
    let mut arguments = vec![pointer(address(z, n, size)?)];
    for (at, (operand, steps)) in operands.into_iter().zip(&steps).enumerate() {
        let way = |(dim, step): (&usize, &u32)| (dim - 1).saturating_mul(*step as usize);
        let reach = dims.iter().zip(steps).map(way);
        let reach = reach.fold(1, usize::saturating_add);
        let size = if at == 0 { 1 } else { size };
        arguments.push(pointer(address(operand, reach, size)?));
    }
    let layout = bytes(
        [count(n)]
            .into_iter()
            .chain(inner(dims))
            .chain(steps.into_iter().flatten()),
    );
    arguments.push(Argument::Bytes(&layout));
    let launch = Launch {
        shared: shared(z)?,
        part: Part::Moves,
        name: &of_size("select", size)?,
        grid: linear(n),
    };
    // SAFETY: the kernel writes `n` elements, and reads those that the steps reach, all of which are there.
    unsafe { launch.run(&arguments) }
}

/// Matrices of which a triangle is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Triangle {
    pub(crate) n: usize,
    pub(crate) n_rows: usize,
    pub(crate) n_columns: usize,
    /// The diagonal that the triangle begins or ends with.
    pub(crate) diagonal: i64,
    pub(crate) is_upper: bool,
}

/// Keeps the elements of triangles, of `size` bytes, and sets the others to 0.
pub(crate) fn triangle(
    size: usize,
    y: &DeviceSlice,
    x: &DeviceSlice,
    triangle: Triangle,
) -> Result<(), Error> {
    if triangle.n == 0 {
        return Ok(());
    }
    let pointers = [address(y, triangle.n, size)?, address(x, triangle.n, size)?].map(pointer);
    let [n, n_rows, n_columns] = [triangle.n, triangle.n_rows, triangle.n_columns].map(count);
    // Further away than that no diagonal meets a matrix.
    let diagonal = triangle.diagonal.clamp(-(1 << 40), 1 << 40);
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Moves,
        name: &of_size("triangle", size)?,
        grid: linear(triangle.n),
    };
    let arguments = [
        pointers[0],
        pointers[1],
        Argument::U32(n),
        Argument::U32(n_rows),
        Argument::U32(n_columns),
        Argument::Bytes(&diagonal.to_ne_bytes()),
        Argument::U32(u32::from(triangle.is_upper)),
    ];
    // SAFETY: the kernel touches the first `n` elements of both, which are there.
    unsafe { launch.run(&arguments) }
}

/// Changes the type of `n` elements, by the kernel `cast_FROM_TO`; sizes are those of elements of the result and of the
/// operand.
pub(crate) fn cast(
    name: &str,
    y: &DeviceSlice,
    x: &DeviceSlice,
    n: usize,
    sizes: [usize; 2],
) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    let pointers = [address(y, n, sizes[0])?, address(x, n, sizes[1])?].map(pointer);
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Casts,
        name,
        grid: linear(n),
    };
    // SAFETY: the kernel touches the first `n` elements of both, which are there.
    unsafe { launch.run(&[pointers[0], pointers[1], Argument::U32(count(n))]) }
}
