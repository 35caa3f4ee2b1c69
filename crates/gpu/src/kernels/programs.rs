//! Launches of programs of pointwise steps, whose kernels are put together here and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use tfrt_host::device::DeviceSlice;
use tfrt_host::{DType, Error};

use super::{address, count, linear, shared};
use crate::context::{Context, Module};
use crate::device::Shared;
use crate::driver::{Argument, RawFunction};
use crate::programs::{Access, Layout, NAME, Typed};

/// The most kernels that are kept. When there are more, all are given back.
const MOST_KEPT: usize = 4096;

/// The programs that ran on a device, and their kernels.
pub(crate) struct Programs {
    typed: Mutex<HashMap<Key, Arc<Typed>>>,
    kernels: Mutex<HashMap<(Key, Layout), Kernel>>,
    context: Arc<Context>,
}

/// The text of a program, and the types of its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    inputs: SmallVec<[DType; 4]>,
}

impl Key {
    fn new(text: &str, inputs: &[DType]) -> Key {
        Key {
            text: text.to_owned(),
            inputs: inputs.into(),
        }
    }
}

/// A loaded kernel.
struct Kernel {
    function: RawFunction,
    // Holds what the function is of.
    _module: Module,
}

/// An input of a program: its elements, and the steps along the dimensions of the result, 0 where it is repeated.
pub(crate) struct Input {
    pub(crate) elements: DeviceSlice,
    pub(crate) steps: Vec<usize>,
}

impl Programs {
    pub(super) fn new(context: Arc<Context>) -> Programs {
        Programs {
            typed: Mutex::default(),
            kernels: Mutex::default(),
            context,
        }
    }

    /// Returns the program of a text for inputs of these types.
    ///
    /// # Errors
    ///
    /// See [`Typed::new`].
    pub(crate) fn typed(&self, text: &str, inputs: &[DType]) -> Result<Arc<Typed>, Error> {
        let key = Key::new(text, inputs);
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = typed.get(&key) {
            return Ok(found.clone());
        }
        let made = Arc::new(Typed::new(text, inputs)?);
        if typed.len() == MOST_KEPT {
            typed.clear();
        }
        typed.insert(key, made.clone());
        Ok(made)
    }
}

/// Runs a program for each place of `dims`, into elements that lie one after the other.
pub(crate) fn run(
    typed: &Typed,
    text: &str,
    out: &DeviceSlice,
    inputs: &[Input],
    dims: &[usize],
) -> Result<(), Error> {
    let n: usize = dims.iter().product();
    if n == 0 {
        return Ok(());
    }
    let size = |dtype: DType| dtype.size_bytes().unwrap_or(4);
    let mut arguments = vec![Argument::Pointer(Some(address(
        out,
        n,
        size(typed.gives()),
    )?))];
    let plain = super::super::rows::row_major(dims);
    let mut accesses: SmallVec<[Access; 4]> = SmallVec::new();
    for (input, dtype) in inputs.iter().zip(typed.inputs()) {
        let last = dims.iter().zip(&input.steps);
        let last = last.map(|(dim, step)| (dim - 1).saturating_mul(*step));
        let n_reached = last.fold(1, usize::saturating_add);
        let at = address(&input.elements, n_reached, size(*dtype))?;
        arguments.push(Argument::Pointer(Some(at)));
        accesses.push(match input.steps == plain {
            true => Access::Plain,
            false => by_steps(&input.steps)?,
        });
    }
    let layout = Layout {
        rank: dims.len(),
        inputs: accesses,
    };
    arguments.push(Argument::U32(count(n)));
    if layout.has_steps() {
        let inner = dims.iter().skip(1);
        arguments.extend(inner.map(|dim| Argument::U32(count(*dim))));
    }
    for (input, access) in inputs.iter().zip(&layout.inputs) {
        if *access != Access::Plain {
            let steps = input.steps.iter().filter(|step| **step != 0);
            arguments.extend(steps.map(|step| Argument::U32(count(*step))));
        }
    }
    // SAFETY: the kernel writes `n` elements, and reads those of each input that its steps reach from places below `dims`;
    // all of them are there, as `address` has seen, and are of the types that the program is for.
    unsafe { launch(shared(out)?, (typed, text, layout), n, &arguments) }
}

/// Returns how an input is read by steps.
fn by_steps(steps: &[usize]) -> Result<Access, Error> {
    if steps.len() > 32 {
        let n = steps.len();
        return Err(Error::invalid_argument(format!(
            "{n} dimensions are more than a program on GPUs counts"
        )));
    }
    let bits = steps.iter().enumerate();
    let bits = bits.map(|(dim, step)| u32::from(*step != 0) << dim);
    Ok(Access::Steps(bits.fold(0, |all, bit| all | bit)))
}

/// Queues the launch of a program's kernel for a layout, which is loaded if it was not.
///
/// # Safety
///
/// The arguments fit the kernel, and the kernel writes only into their memory: see
/// [`Driver::launch`](crate::Driver::launch).
unsafe fn launch(
    shared: &Shared,
    (typed, text, layout): (&Typed, &str, Layout),
    n: usize,
    arguments: &[Argument<'_>],
) -> Result<(), Error> {
    let programs = &shared.common.kernels.programs;
    // Held until the launch is queued: a kernel that somebody else gives back is used no more.
    let kernels = programs.kernels.lock();
    let mut kernels = kernels.unwrap_or_else(PoisonError::into_inner);
    let key = (Key::new(text, typed.inputs()), layout);
    if !kernels.contains_key(&key) && kernels.len() == MOST_KEPT {
        shared.stream.synchronize()?;
        kernels.clear();
    }
    let kernel = match kernels.entry(key) {
        std::collections::hash_map::Entry::Occupied(found) => found.into_mut(),
        std::collections::hash_map::Entry::Vacant(place) => {
            let text = typed.ptx(&place.key().1);
            let module = Module::load(programs.context.clone(), text.as_bytes())?;
            place.insert(Kernel {
                function: module.function(NAME)?,
                _module: module,
            })
        }
    };
    // SAFETY: the caller's.
    Ok(unsafe {
        let function = kernel.function;
        shared.stream.launch(function, &linear(n), arguments)
    }?)
}
