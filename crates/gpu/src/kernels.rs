//! [`Kernels`]: the kernels that are compiled into this crate, and their launches.
//!
//! They are CUDA C (`kernels/*.cu`), compiled ahead to PTX that drivers from 525 on take. A module is loaded when the first
//! of its kernels is launched. Each launch here checks that the memory that it is given is as large as the kernel
//! touches; nothing else in the crate launches kernels on memory of tensors.

#![expect(unsafe_code, reason = "launches, whose arguments are checked here")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tfrt_host::device::DeviceSlice;
use tfrt_host::{DType, Error};

use crate::context::{Context, Module};
use crate::device::{Shared, memory_of};
use crate::driver::{Argument, DevicePointer, GpuResult, Grid, RawFunction};

pub(crate) mod moves;
pub(crate) mod programs;
pub(crate) mod windows;

/// The texts of modules, and their names.
const MODULES: [(&str, &str); 7] = [
    ("pointwise", include_str!("../kernels/pointwise.ptx")),
    ("matrix", include_str!("../kernels/matrix.ptx")),
    ("rows", include_str!("../kernels/rows.ptx")),
    ("windows", include_str!("../kernels/windows.ptx")),
    ("moves", include_str!("../kernels/moves.ptx")),
    ("casts", include_str!("../kernels/casts.ptx")),
    ("numbers", include_str!("../kernels/numbers.ptx")),
];

/// Threads in a block of most kernels.
const N_THREADS: u32 = 256;

/// The most elements that a kernel counts.
const MOST: usize = 1 << 31;

/// The kernels of a context, loaded when they are needed.
pub(crate) struct Kernels {
    context: Arc<Context>,
    modules: [OnceLock<GpuResult<Module>>; MODULES.len()],
    functions: Mutex<HashMap<String, RawFunction>>,
    pub(crate) programs: programs::Programs,
}

/// A module of [`MODULES`].
#[derive(Clone, Copy)]
enum Part {
    Pointwise,
    Matrix,
    Rows,
    Windows,
    Moves,
    Casts,
    Numbers,
}

/// Where the elements of an operand lie: the steps along four dimensions.
pub(crate) type Steps = [u32; 4];

impl Kernels {
    pub(crate) fn new(context: Arc<Context>) -> Kernels {
        Kernels {
            programs: programs::Programs::new(context.clone()),
            context,
            modules: Default::default(),
            functions: Mutex::default(),
        }
    }

    fn function(&self, part: Part, name: &str) -> GpuResult<RawFunction> {
        let mut functions = self
            .functions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(name) {
            return Ok(*function);
        }
        let text = MODULES[part as usize].1;
        let load = || Module::load(self.context.clone(), text.as_bytes());
        let module = self.modules[part as usize]
            .get_or_init(load)
            .as_ref()
            .map_err(Clone::clone)?;
        let function = module.function(name)?;
        functions.insert(name.to_owned(), function);
        Ok(function)
    }
}

/// A launch that is being put together.
struct Launch<'l> {
    shared: &'l Shared,
    part: Part,
    name: &'l str,
    grid: Grid,
}

impl Launch<'_> {
    /// Queues the launch on the device's stream.
    ///
    /// # Safety
    ///
    /// The arguments fit the kernel, and the kernel writes only into their memory: see
    /// [`Driver::launch`](crate::Driver::launch).
    unsafe fn run(self, arguments: &[Argument<'_>]) -> Result<(), Error> {
        let function = self.shared.common.kernels.function(self.part, self.name)?;
        // SAFETY: the caller's.
        Ok(unsafe { self.shared.stream.launch(function, &self.grid, arguments) }?)
    }
}

/// Returns the address of memory that has so many bytes at least.
fn address(slice: &DeviceSlice, n: usize, size: usize) -> Result<DevicePointer, Error> {
    let memory = memory_of(slice)?;
    let needed = n.checked_mul(size).filter(|_| n < MOST);
    match needed {
        Some(needed) if needed <= slice.len_bytes() => {
            Ok(memory.pointer().offset(slice.range().start))
        }
        Some(needed) => {
            let found = slice.len_bytes();
            Err(Error::internal(format!(
                "a kernel needs {needed} bytes, and was given {found}"
            )))
        }
        None => Err(Error::invalid_argument(format!(
            "{n} elements are more than a kernel counts"
        ))),
    }
}

fn shared(slice: &DeviceSlice) -> Result<&Shared, Error> {
    Ok(memory_of(slice)?.shared())
}

fn count(n: usize) -> u32 {
    // Invariant: `address` has refused more than `MOST`.
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn linear(n: usize) -> Grid {
    Grid::linear(count(n.div_ceil(N_THREADS as usize)), N_THREADS)
}

/// A type of elements that pointwise kernels calculate with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    F32,
    F64,
    I32,
    I64,
    I1,
}

impl Number {
    /// Returns the number of bytes of an element.
    pub(crate) fn size(self) -> usize {
        match self {
            Number::F32 | Number::I32 => 4,
            Number::F64 | Number::I64 => 8,
            Number::I1 => 1,
        }
    }

    /// Returns the name of the kernel of a function: `add_f64`.
    fn kernel(self, function: &str) -> String {
        let suffix = match self {
            Number::F32 => "f32",
            Number::F64 => "f64",
            Number::I32 => "i32",
            Number::I64 => "i64",
            Number::I1 => "i1",
        };
        format!("{function}_{suffix}")
    }

    fn part(self) -> Part {
        match self {
            Number::F32 => Part::Pointwise,
            _ => Part::Numbers,
        }
    }
}

/// The last bits of floats that another type lacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    size: usize,
    n_bits: u32,
}

impl Cut {
    /// Returns what one type has and another lacks, if both are floats and it is wider.
    pub(crate) fn between(from: DType, to: DType) -> Option<Cut> {
        let n_digits = |dtype| match dtype {
            DType::Bf16 => Some(7),
            DType::F16 => Some(10),
            DType::F32 => Some(23),
            DType::F64 => Some(52),
            _ => None,
        };
        let size = match from {
            DType::F32 => 4,
            DType::F64 => 8,
            _ => return None,
        };
        let n_bits = u32::checked_sub(n_digits(from)?, n_digits(to)?);
        let n_bits = n_bits.filter(|n_bits| *n_bits > 0)?;
        Some(Cut { size, n_bits })
    }
}

/// Sets the last bits of `n` floats to 0.
pub(crate) fn cut(y: &DeviceSlice, x: &DeviceSlice, n: usize, cut: Cut) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    let pointers = [address(y, n, cut.size)?, address(x, n, cut.size)?];
    let [y_at, x_at] = pointers.map(|at| Argument::Pointer(Some(at)));
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Casts,
        name: if cut.size == 4 { "cut_f32" } else { "cut_f64" },
        grid: linear(n),
    };
    let numbers = [count(n), cut.n_bits].map(Argument::U32);
    // SAFETY: the kernel touches the first `n` elements of both, which are there.
    unsafe { launch.run(&[y_at, x_at, numbers[0], numbers[1]]) }
}

/// Returns the number of threads for a row of `n` elements: a warp for short ones.
fn threads_for(n: usize) -> u32 {
    if n <= 128 { 32 } else { N_THREADS }
}

/// Calculates a function of `n` numbers, whose kernel takes no attributes, or two.
pub(crate) fn unary(
    (function, number): (&str, Number),
    y: &DeviceSlice,
    x: &DeviceSlice,
    n: usize,
    attributes: Option<[f32; 2]>,
) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    let pointers = [y, x].map(|slice| address(slice, n, number.size()));
    let [y_at, x_at] = pointers;
    let pointers = [y_at?, x_at?].map(|at| Argument::Pointer(Some(at)));
    let mut arguments = vec![pointers[0], pointers[1], Argument::U32(count(n))];
    arguments.extend(attributes.into_iter().flatten().map(Argument::F32));
    let launch = Launch {
        shared: shared(y)?,
        part: number.part(),
        name: &number.kernel(function),
        grid: linear(n),
    };
    // SAFETY: the kernel touches the first `n` elements of both, which are there.
    unsafe { launch.run(&arguments) }
}

/// Calculates a function of two operands, broadcast to `dims`, whose kernel takes no factors, or two; elements of the
/// result have `size` bytes.
pub(crate) fn binary(
    (function, number): (&str, Number),
    (z, size): (&DeviceSlice, usize),
    [(x, x_steps), (y, y_steps)]: [(&DeviceSlice, Steps); 2],
    dims: [usize; 4],
    factors: Option<[f32; 2]>,
) -> Result<(), Error> {
    let n: usize = dims.iter().product();
    if n == 0 {
        return Ok(());
    }
    let z_at = address(z, n, size)?;
    let x_at = address(x, reach(dims, &x_steps), number.size())?;
    let y_at = address(y, reach(dims, &y_steps), number.size())?;
    let plain = plain_steps(dims);
    // Along a dimension of 1 no step is taken.
    let is_like = |steps: &Steps| {
        dims.iter()
            .zip(steps.iter().zip(&plain))
            .all(|(dim, (own, plain))| *dim == 1 || own == plain)
    };
    let is_plain = is_like(&x_steps) && is_like(&y_steps);
    let [_, d1, d2, d3] = dims.map(count);
    let head = [count(n), u32::from(is_plain), d1, d2, d3];
    let layout: Vec<u8> = head
        .iter()
        .chain(&x_steps)
        .chain(&y_steps)
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let pointers = [z_at, x_at, y_at].map(|at| Argument::Pointer(Some(at)));
    let launch = Launch {
        shared: shared(z)?,
        part: number.part(),
        name: &number.kernel(function),
        grid: linear(n),
    };
    let mut arguments = pointers.to_vec();
    arguments.push(Argument::Bytes(&layout));
    arguments.extend(factors.into_iter().flatten().map(Argument::F32));
    // SAFETY: the kernel writes `n` elements, and reads those that the steps reach from indexes below `dims`, all of which
    // are there.
    unsafe { launch.run(&arguments) }
}

/// Limits `n` elements to what lies between two numbers of the device, as far as there are such.
pub(crate) fn clip(
    y: &DeviceSlice,
    x: &DeviceSlice,
    bounds: [Option<&DeviceSlice>; 2],
    n: usize,
) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    let mut arguments = Vec::with_capacity(5);
    for slice in [y, x] {
        arguments.push(Argument::Pointer(Some(address(slice, n, 4)?)));
    }
    for bound in bounds {
        let at = bound.map(|slice| address(slice, 1, 4)).transpose()?;
        arguments.push(Argument::Pointer(at));
    }
    arguments.push(Argument::U32(count(n)));
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Pointwise,
        name: "clip_f32",
        grid: linear(n),
    };
    // SAFETY: the kernel touches the first `n` elements of both, and the first one of each bound, which are there.
    unsafe { launch.run(&arguments) }
}

/// Returns how many elements lie up to the last one that steps reach.
fn reach(dims: [usize; 4], steps: &Steps) -> usize {
    let last = dims
        .iter()
        .zip(steps)
        .map(|(dim, step)| (dim - 1).saturating_mul(*step as usize));
    last.fold(1, usize::saturating_add)
}

/// Returns the steps of elements that lie one after the other.
pub(crate) fn plain_steps(dims: [usize; 4]) -> Steps {
    let [_, b, c, d] = dims;
    [
        b.saturating_mul(c).saturating_mul(d),
        c.saturating_mul(d),
        d,
        1,
    ]
    .map(count)
}

/// Moves elements of `size` bytes: those of the result lie one after the other in `dims`, those of the operand by steps.
pub(crate) fn move_elements(
    y: &DeviceSlice,
    x: &DeviceSlice,
    size: usize,
    dims: [usize; 5],
    steps: [u32; 5],
) -> Result<(), Error> {
    let n: usize = dims.iter().product();
    if n == 0 {
        return Ok(());
    }
    let name = match size {
        1 => "move_1",
        2 => "move_2",
        4 => "move_4",
        8 => "move_8",
        _ => {
            return Err(Error::invalid_argument(format!(
                "no kernel moves elements of {size} bytes"
            )));
        }
    };
    let last = dims
        .iter()
        .zip(&steps)
        .map(|(dim, step)| (dim - 1).saturating_mul(*step as usize));
    let n_reached = last.fold(1, usize::saturating_add);
    let pointers =
        [address(y, n, size)?, address(x, n_reached, size)?].map(|at| Argument::Pointer(Some(at)));
    let [_, d1, d2, d3, d4] = dims.map(count);
    let words = [count(n), d1, d2, d3, d4];
    let layout: Vec<u8> = words
        .iter()
        .chain(&steps)
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Matrix,
        name,
        grid: linear(n),
    };
    // SAFETY: the kernel writes `n` elements, and reads those that the steps reach, all of which are there.
    unsafe { launch.run(&[pointers[0], pointers[1], Argument::Bytes(&layout)]) }
}

/// Exchanges rows and columns of `n_batches` matrices of elements of four bytes.
pub(crate) fn transpose(
    y: &DeviceSlice,
    x: &DeviceSlice,
    [n_batches, n_rows, n_columns]: [usize; 3],
) -> Result<(), Error> {
    let n = n_batches * n_rows * n_columns;
    if n == 0 {
        return Ok(());
    }
    let pointers = [address(y, n, 4)?, address(x, n, 4)?].map(|at| Argument::Pointer(Some(at)));
    let blocks = [n_columns.div_ceil(32), n_rows.div_ceil(32), n_batches].map(count);
    let grid = Grid {
        blocks,
        threads: [32, 8, 1],
        shared_bytes: 0,
    };
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Matrix,
        name: "transpose_4",
        grid,
    };
    let arguments = [
        pointers[0],
        pointers[1],
        Argument::U32(count(n_rows)),
        Argument::U32(count(n_columns)),
    ];
    // SAFETY: the kernel touches the `n` elements of both, which are there.
    unsafe { launch.run(&arguments) }
}

/// A product of matrices of a batch: `m` by `k`, and `k` by `n`. A batch step of 0 takes one matrix for all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    pub(crate) n_batches: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Whether the operands lie with rows and columns exchanged.
    pub(crate) transposed: [bool; 2],
    /// Whether each batch has its own operand.
    pub(crate) batched: [bool; 2],
}

/// Calculates a product of matrices of `f32` or `f64`.
pub(crate) fn dot(
    number: Number,
    c: &DeviceSlice,
    a: &DeviceSlice,
    b: &DeviceSlice,
    product: Product,
) -> Result<(), Error> {
    let Product {
        n_batches,
        m,
        n,
        k,
        transposed,
        batched,
    } = product;
    let n_all = n_batches.saturating_mul(m).saturating_mul(n);
    if n_all == 0 {
        return Ok(());
    }
    let size = number.size();
    let c_at = address(c, n_all, size)?;
    let place = |slice, rows: usize, columns: usize, which: usize| {
        let each = rows.saturating_mul(columns);
        let n_held = if batched[which] {
            each.saturating_mul(n_batches)
        } else {
            each
        };
        let steps = if transposed[which] {
            [1, rows]
        } else {
            [columns, 1]
        };
        let step = if batched[which] { each as u64 } else { 0 };
        address(slice, n_held, size).map(|at| (at, steps.map(count), step))
    };
    let (a_at, a_steps, a_step) = place(a, m, k, 0)?;
    let (b_at, b_steps, b_step) = place(b, k, n, 1)?;
    let words = [
        count(m),
        count(n),
        count(k),
        a_steps[0],
        a_steps[1],
        b_steps[0],
        b_steps[1],
        0,
    ];
    let mut layout: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    // Words of eight bytes begin at a multiple of eight.
    layout.extend([a_step, b_step].iter().flat_map(|step| step.to_ne_bytes()));
    let pointers = [c_at, a_at, b_at].map(|at| Argument::Pointer(Some(at)));
    // Large tiles where they keep all multiprocessors busy.
    let shared = shared(c)?;
    let n_large = m.div_ceil(128) * n.div_ceil(128) * n_batches;
    let is_large = n_large >= shared.stream.context().properties().n_multiprocessors as usize;
    let (tile, part, name) = match number {
        Number::F64 => (16, Part::Numbers, "dot_16_f64"),
        _ if is_large => (128, Part::Matrix, "dot_128_f32"),
        _ => (64, Part::Matrix, "dot_64_f32"),
    };
    let blocks = [n.div_ceil(tile), m.div_ceil(tile), n_batches].map(count);
    let grid = Grid {
        blocks,
        threads: [256, 1, 1],
        shared_bytes: 0,
    };
    let launch = Launch {
        shared,
        part,
        name,
        grid,
    };
    // SAFETY: the kernel writes `m` times `n` elements for each batch, and reads those of both operands whose row and
    // column are below `m`, `k` and `n`, all of which are there.
    unsafe {
        launch.run(&[
            pointers[0],
            pointers[1],
            pointers[2],
            Argument::Bytes(&layout),
        ])
    }
}

/// Rows of elements: `n_rows` of `n`, whose elements lie `inner` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) n_rows: usize,
    pub(crate) n: usize,
    pub(crate) inner: usize,
}

impl Rows {
    fn n_elements(self) -> usize {
        self.n_rows.saturating_mul(self.n)
    }
}

/// Makes one number of each row, by the kernel `reduce_KIND_f32`, times `scale`.
pub(crate) fn reduce(
    name: &'static str,
    y: &DeviceSlice,
    x: &DeviceSlice,
    rows: Rows,
    scale: f32,
) -> Result<(), Error> {
    if rows.n_rows == 0 {
        return Ok(());
    }
    let pointers = [
        address(y, rows.n_rows, 4)?,
        address(x, rows.n_elements(), 4)?,
    ]
    .map(|at| Argument::Pointer(Some(at)));
    let grid = Grid::linear(count(rows.n_rows), threads_for(rows.n));
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Rows,
        name,
        grid,
    };
    let numbers = [rows.n, rows.inner].map(|n| Argument::U32(count(n)));
    // SAFETY: the kernel writes an element for each row, and reads those of the rows, which are there.
    unsafe {
        launch.run(&[
            pointers[0],
            pointers[1],
            numbers[0],
            numbers[1],
            Argument::F32(scale),
        ])
    }
}

/// Calculates the softmax of each row, or its logarithm.
pub(crate) fn softmax(
    y: &DeviceSlice,
    x: &DeviceSlice,
    rows: Rows,
    is_log: bool,
) -> Result<(), Error> {
    let n_all = rows.n_elements();
    if n_all == 0 {
        return Ok(());
    }
    let pointers =
        [address(y, n_all, 4)?, address(x, n_all, 4)?].map(|at| Argument::Pointer(Some(at)));
    let grid = Grid::linear(count(rows.n_rows), threads_for(rows.n));
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Rows,
        name: "softmax_f32",
        grid,
    };
    let numbers = [rows.n, rows.inner, usize::from(is_log)].map(|n| Argument::U32(count(n)));
    // SAFETY: the kernel touches the elements of the rows in both, which are there.
    unsafe { launch.run(&[pointers[0], pointers[1], numbers[0], numbers[1], numbers[2]]) }
}

/// How rows are normalised. Row r belongs to group r % `n_groups`, which has `each` channels of `inner` elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    pub(crate) n_rows: usize,
    pub(crate) n: usize,
    pub(crate) n_groups: usize,
    pub(crate) each: usize,
    pub(crate) inner: usize,
    pub(crate) is_centred: bool,
    pub(crate) epsilon: f32,
}

/// Normalises rows, with `scale` and `bias` for each channel.
pub(crate) fn norm(
    y: &DeviceSlice,
    x: &DeviceSlice,
    [scale, bias]: [Option<&DeviceSlice>; 2],
    norm: Norm,
) -> Result<(), Error> {
    let n_all = norm.n_rows.saturating_mul(norm.n);
    if n_all == 0 {
        return Ok(());
    }
    if norm.each.checked_mul(norm.inner) != Some(norm.n) {
        return Err(Error::internal(format!(
            "rows of {} elements are not so many channels",
            norm.n
        )));
    }
    let n_channels = norm.n_groups * norm.each;
    let of_channels = |slice: Option<&DeviceSlice>| match slice {
        Some(slice) => address(slice, n_channels, 4).map(|at| Argument::Pointer(Some(at))),
        None => Ok(Argument::Pointer(None)),
    };
    let pointers =
        [address(y, n_all, 4)?, address(x, n_all, 4)?].map(|at| Argument::Pointer(Some(at)));
    let words = [
        norm.n,
        usize::from(norm.is_centred),
        norm.n_groups,
        norm.each,
        norm.inner,
    ]
    .map(count);
    let mut layout: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    layout.extend(norm.epsilon.to_ne_bytes());
    let grid = Grid::linear(count(norm.n_rows), threads_for(norm.n));
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Rows,
        name: "norm_f32",
        grid,
    };
    let arguments = [
        pointers[0],
        pointers[1],
        of_channels(scale)?,
        of_channels(bias)?,
        Argument::Bytes(&layout),
    ];
    // SAFETY: the kernel touches the elements of the rows in `y` and `x`, and of the other two those of channels below
    // `n_channels`, all of which are there.
    unsafe { launch.run(&arguments) }
}

/// Normalises elements by given moments of their channels: scale, bias, mean and variance.
pub(crate) fn batch_norm(
    y: &DeviceSlice,
    x: &DeviceSlice,
    channels: [&DeviceSlice; 4],
    [n, n_channels, inner]: [usize; 3],
    epsilon: f32,
) -> Result<(), Error> {
    if n == 0 {
        return Ok(());
    }
    let mut arguments = Vec::with_capacity(10);
    arguments.extend([address(y, n, 4)?, address(x, n, 4)?]);
    for slice in channels {
        arguments.push(address(slice, n_channels, 4)?);
    }
    let mut arguments: Vec<Argument<'_>> = arguments
        .into_iter()
        .map(|at| Argument::Pointer(Some(at)))
        .collect();
    arguments.extend([n, n_channels.max(1), inner.max(1)].map(|n| Argument::U32(count(n))));
    arguments.push(Argument::F32(epsilon));
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Rows,
        name: "batch_norm_f32",
        grid: linear(n),
    };
    // SAFETY: the kernel touches `n` elements of `y` and `x`, and of the others those of channels, all of which are there.
    unsafe { launch.run(&arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash by which a text of PTX names the source that it was made from.
    fn fnv(bytes: &[u8]) -> u64 {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
    }

    /// Returns a source, with the file that it includes.
    fn whole(source: &str) -> String {
        let formulas = include_str!("../kernels/formulas.cuh");
        source.replace("#include \"formulas.cuh\"\n", formulas)
    }

    #[test]
    fn ptx_is_made_from_the_source_beside_it() {
        let sources = [
            ("pointwise", include_str!("../kernels/pointwise.cu")),
            ("matrix", include_str!("../kernels/matrix.cu")),
            ("rows", include_str!("../kernels/rows.cu")),
            ("windows", include_str!("../kernels/windows.cu")),
            ("moves", include_str!("../kernels/moves.cu")),
            ("casts", include_str!("../kernels/casts.cu")),
            ("numbers", include_str!("../kernels/numbers.cu")),
            ("functions", include_str!("../kernels/functions.cu")),
            ("conformance", include_str!("../kernels/conformance.cu")),
        ];
        let others = [
            ("functions", crate::programs::FUNCTIONS),
            ("conformance", include_str!("../kernels/conformance.ptx")),
        ];
        for ((name, ptx), (of, source)) in MODULES.iter().chain(&others).zip(sources) {
            assert_eq!(*name, of);
            let expected = format!(
                "// {:016x} {name}.cu\n.version 8.0\n.target sm_75\n",
                fnv(whole(source).as_bytes())
            );
            assert!(
                ptx.starts_with(&expected),
                "{name}.ptx is old: run `cargo xtask gpu-kernels`"
            );
        }
    }
}
