//! Launches, and the tables of modules that `tfrt_cuda` has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::kernel::{AggregateView, AttributeView};
use tfrt_host::{AnyAsyncValue, Chain, Error};

use super::buffers::Buffer;
use super::objects::{Context, Function, Stream};
use crate::driver::{Argument, Grid};

/// An argument of a launch.
pub(super) enum Given {
    Buffer(Buffer),
    U32(u32),
    F32(f32),
    F64(f64),
}

impl Given {
    /// Returns a number of a type that launches take.
    pub(super) fn number(value: &AnyAsyncValue) -> Option<Given> {
        None.or_else(|| value.get_in_place::<i32>().map(i32::cast_unsigned))
            .or_else(|| value.get_in_place::<u32>())
            .map(Given::U32)
            .or_else(|| value.get_in_place::<f32>().map(Given::F32))
            .or_else(|| value.get_in_place::<f64>().map(Given::F64))
    }
}

/// Queues a launch, of whose arguments number and size are checked, and of whose grid the sizes.
#[expect(unsafe_code, reason = "a kernel of the program's own")]
pub(super) fn launch(
    stream: &Stream,
    function: &Function,
    [blocks, threads]: [[u64; 3]; 2],
    shared_bytes: u32,
    arguments: &[Given],
) -> Result<Chain, Error> {
    stream
        .context
        .expect("a kernel", function.module.context())?;
    let grid = grid(stream, function, blocks, threads, shared_bytes)?;
    let name = &function.name;
    if let Some(sizes) = &function.info.parameters {
        if sizes.len() != arguments.len() {
            return Err(Error::invalid_argument(format!(
                "kernel {name} takes {} arguments, found {}",
                sizes.len(),
                arguments.len()
            )));
        }
        for (index, (size, argument)) in sizes.iter().zip(arguments).enumerate() {
            let len = match argument {
                Given::Buffer(_) | Given::F64(_) => 8,
                Given::U32(_) | Given::F32(_) => 4,
            };
            if *size != len {
                return Err(Error::invalid_argument(format!(
                    "argument {index} of kernel {name} has {size} bytes, found {len}"
                )));
            }
        }
    }
    let buffers: Vec<&Buffer> = arguments
        .iter()
        .filter_map(|argument| match argument {
            Given::Buffer(buffer) => Some(buffer),
            _ => None,
        })
        .collect();
    stream.queue(&buffers, |pointers| {
        let mut pointers = pointers.iter();
        let arguments: Vec<Argument<'_>> = arguments
            .iter()
            .map(|argument| match argument {
                Given::Buffer(_) => Argument::Pointer(pointers.next().copied()),
                Given::U32(value) => Argument::U32(*value),
                Given::F32(value) => Argument::F32(*value),
                Given::F64(value) => Argument::F64(*value),
            })
            .collect();
        // SAFETY: number and size of the arguments are those that the kernel takes, as far as the driver tells. What the
        // kernel does with its buffers is the program's: whoever runs a program that brings kernels of its own trusts it.
        unsafe { stream.stream.launch(function.raw, &grid, &arguments) }
    })?;
    function.module.used_by(&stream.stream);
    Ok(Chain)
}

/// Checks the sizes of a launch.
fn grid(
    stream: &Stream,
    function: &Function,
    blocks: [u64; 3],
    threads: [u64; 3],
    shared_bytes: u32,
) -> Result<Grid, Error> {
    let device = stream.context.inner().properties();
    let within = |found: [u64; 3], most: [u32; 3], what: &str| {
        let mut sizes = [0; 3];
        for axis in 0..3 {
            let size = u32::try_from(found[axis]).ok();
            let size = size.filter(|size| (1..=most[axis]).contains(size));
            sizes[axis] = size.ok_or_else(|| {
                let ([x, y, z], [mx, my, mz]) = (found, most);
                Error::invalid_argument(format!(
                    "expected at least one and at most {mx} x {my} x {mz} {what}, found {x} x {y} x {z}"
                ))
            })?;
        }
        Ok::<_, Error>(sizes)
    };
    let blocks = within(blocks, device.max_grid, "blocks")?;
    let threads = within(threads, device.max_block, "threads in a block")?;
    let n_threads: u64 = threads.iter().map(|n| u64::from(*n)).product();
    let most = function.info.max_threads.min(device.max_threads);
    let name = &function.name;
    if n_threads > u64::from(most) {
        return Err(Error::invalid_argument(format!(
            "kernel {name} takes at most {most} threads in a block, found {n_threads}"
        )));
    }
    let needed = u64::from(shared_bytes) + u64::from(function.info.shared_bytes);
    if needed > u64::from(device.max_shared_bytes) {
        return Err(Error::invalid_argument(format!(
            "kernel {name} would use {needed} bytes of shared memory, a block has at most {}",
            device.max_shared_bytes
        )));
    }
    Ok(Grid {
        blocks,
        threads,
        shared_bytes,
    })
}

/// The kernels of a request's modules, by device; their number is their place.
#[derive(Default)]
pub(super) struct Tables(Mutex<HashMap<i32, Arc<Vec<Function>>>>);

/// The name that the tables have among a request's resources.
pub(super) const TABLES: &str = "cuda_module_table_resource";

impl Tables {
    /// Loads modules for a device, once.
    pub(super) fn load(
        &self,
        context: &Context,
        modules: &[&str],
        n_each: &[i32],
        functions: &[&str],
    ) -> Result<(), Error> {
        let malformed = |what: String| {
            Error::invalid_argument(format!("CUDA module table spec is malformed; {what}"))
        };
        if modules.is_empty() {
            return Err(malformed("No module data specified".to_owned()));
        }
        if n_each.len() != modules.len() {
            let (found, wanted) = (n_each.len(), modules.len());
            return Err(malformed(format!(
                "Number of entries in function count list doesn't match number of modules; {found} vs {wanted}"
            )));
        }
        let mut names = functions.iter();
        let mut table = Vec::new();
        for (index, (image, n)) in modules.iter().zip(n_each).enumerate() {
            let n = usize::try_from(*n).map_err(|_| {
                malformed(format!(
                    "Invalid function count ({n}) specified for module {index}"
                ))
            })?;
            let module = context.load(image.as_bytes())?;
            for _ in 0..n {
                let name = names.next().ok_or_else(|| {
                    let n = functions.len();
                    malformed(format!(
                        "expected a name for each function, found {n} names"
                    ))
                })?;
                table.push(Function::of(&module, name)?);
            }
        }
        if names.next().is_some() {
            let (found, wanted) = (functions.len(), table.len());
            return Err(malformed(format!(
                "expected {wanted} names of functions, found {found}"
            )));
        }
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ordinal = context.ordinal();
        if tables.contains_key(&ordinal) {
            return Err(Error::already_exists(format!(
                "Unable to load CUDA module table. Table has already been created for device {ordinal}"
            )));
        }
        tables.insert(ordinal, Arc::new(table));
        Ok(())
    }

    /// Returns the kernel of a number.
    pub(super) fn function(&self, ordinal: i32, handle: u64) -> Result<Function, Error> {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.get(&ordinal).ok_or_else(|| {
            Error::failed_precondition(format!(
                "CUDA module table has not been initialized for device {ordinal}"
            ))
        })?;
        let found = usize::try_from(handle).ok().and_then(|at| table.get(at));
        found.cloned().ok_or_else(|| {
            let n = table.len();
            Error::invalid_argument(format!("expected a kernel below {n}, found {handle}"))
        })
    }
}

/// Returns the strings of an array attribute.
pub(super) fn strings<'a>(what: &str, view: AttributeView<'a>) -> Result<Vec<&'a str>, Error> {
    let wrong = || Error::invalid_argument(format!("expected an array of strings as {what}"));
    let list: AggregateView<'a> = view.aggregate().ok_or_else(wrong)?;
    let each = (0..list.len()).map(|index| list.get(index)?.as_str());
    each.collect::<Option<Vec<&str>>>().ok_or_else(wrong)
}
