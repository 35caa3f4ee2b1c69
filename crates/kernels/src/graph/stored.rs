//! What pack kernels make, kept in a file: `cpu.stored`.
//!
//! A compiler that runs a pack kernel asks [`store`] for a record of what it made: a kernel without operands,
//! and its attributes, that makes the same value again. All such kernels have these attributes:
//!
//! | Attribute | Says |
//! | --- | --- |
//! | `kind` | how it is packed |
//! | `numbers` | extents, and whatever else the kind asks for |
//! | `panel` | columns of a panel, and of a narrow last one: the sizes of blocks |
//! | `set` | the instruction set that it is laid out for |
//! | `tensor0`, `tensor1`, .. | elements, used where they lie |
//! | `version` | of this form |
//!
//! On a processor whose best instruction set is another one, elements are laid out again when the model is
//! opened: the panels are of another width, but hold the same numbers, so that products are bit for bit those
//! of a model that was packed here. So a file needs no second copy of its weights.
//!
//! Attributes may be anything: all of them are checked before a value is made.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, Error, HostAllocator, HostContext, Value};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::panel::InstructionSet;

use super::{convolution, product};
use crate::onnx::HeldAttributes;

/// The version of the form.
const VERSION: i64 = 2;

/// A value as a file keeps it.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The kernel that makes it again.
    pub kernel: &'static str,
    /// How it is packed.
    pub kind: &'static str,
    /// Columns of a panel, and of a narrow last one.
    pub panel: Vec<i64>,
    /// Extents, and whatever else the kind asks for.
    pub numbers: Vec<i64>,
    /// The instruction set that it is laid out for.
    pub set: &'static str,
    /// Elements.
    pub tensors: Vec<DenseHostTensor>,
    /// The version of this form.
    pub version: i64,
}

/// A value that files can keep.
pub(super) trait Storable: Value + Sized {
    /// The kernel that makes it again.
    const KERNEL: &'static str;

    /// Takes it apart, laid out for an instruction set that this processor need not have.
    fn take_apart(
        &self,
        allocator: &Arc<dyn HostAllocator>,
        set: InstructionSet,
    ) -> Result<Parts, Error>;

    /// Puts it together from parts that may be anything, laid out for the first of the instruction sets, to be
    /// used by the second.
    fn put_together(
        parts: Parts,
        sets: [InstructionSet; 2],
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Self, Error>;
}

/// What a value is made of.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) kind: String,
    pub(super) numbers: Vec<i64>,
    pub(super) tensors: Vec<DenseHostTensor>,
}

impl Parts {
    /// The first numbers, as extents.
    pub(super) fn extents<const N: usize>(&self) -> Result<[usize; N], Error> {
        let found = self.numbers.iter().map(|number| usize::try_from(*number));
        let found: Option<Vec<usize>> = found.map(Result::ok).collect();
        let extents = found.and_then(|list| list.try_into().ok());
        extents.ok_or_else(|| {
            let found = &self.numbers;
            wrong(format_args!("{N} numbers, none negative, found {found:?}"))
        })
    }

    /// The first tensor, and the second one if there is one.
    pub(super) fn one_or_two(self) -> Result<(DenseHostTensor, Option<DenseHostTensor>), Error> {
        let n_tensors = self.tensors.len();
        let mut tensors = self.tensors.into_iter();
        match (tensors.next(), tensors.next(), tensors.next()) {
            (Some(first), second, None) => Ok((first, second)),
            _ => Err(wrong(format_args!("one tensor or two, found {n_tensors}"))),
        }
    }
}

/// Refuses what is no list of summands for each column.
pub(super) fn expect_list(list: Option<&DenseHostTensor>, n: usize) -> Result<(), Error> {
    let Some(list) = list else {
        return Ok(());
    };
    let found = list.read()?.elements::<f32>()?.len();
    match found == n {
        true => Ok(()),
        false => Err(wrong(format_args!(
            "a summand for each of {n} columns, found {found}"
        ))),
    }
}

/// What is expected of a record.
pub(super) fn wrong(expected: std::fmt::Arguments<'_>) -> Error {
    Error::invalid_argument(format!("packed weights of a file: expected {expected}"))
}

type Store =
    fn(&AnyAsyncValue, &Arc<dyn HostAllocator>, InstructionSet) -> Option<Result<Stored, Error>>;

/// One entry for each type that files can keep.
const TYPES: &[Store] = &[of::<convolution::Filter>, of::<product::Matrix>];

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add(convolution::Filter::KERNEL, restore::<convolution::Filter>)
        .add(product::Matrix::KERNEL, restore::<product::Matrix>);
}

/// Returns what a file keeps of a value that a pack kernel made, laid out for an instruction set that this
/// processor need not have; `None` if files keep no such values.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory.
pub fn store(
    value: &AnyAsyncValue,
    allocator: &Arc<dyn HostAllocator>,
    set: InstructionSet,
) -> Option<Result<Stored, Error>> {
    TYPES.iter().find_map(|of| of(value, allocator, set))
}

fn of<T: Storable>(
    value: &AnyAsyncValue,
    allocator: &Arc<dyn HostAllocator>,
    set: InstructionSet,
) -> Option<Result<Stored, Error>> {
    let value = value.get::<T>()?;
    let parts = match value.take_apart(allocator, set) {
        Ok(parts) => parts,
        Err(error) => return Some(Err(error)),
    };
    let kind = KINDS.iter().find(|kind| **kind == parts.kind)?;
    Some(Ok(Stored {
        kernel: T::KERNEL,
        kind,
        panel: panel(set),
        numbers: parts.numbers,
        set: set.name(),
        tensors: parts.tensors,
        version: VERSION,
    }))
}

/// All ways of packing.
const KINDS: &[&str] = &["depthwise", "direct", "matrix", "winograd2", "winograd4"];

fn panel(set: InstructionSet) -> Vec<i64> {
    let columns = set.panel_columns().iter();
    let columns = columns.map(|columns| i64::try_from(*columns));
    columns.filter_map(Result::ok).collect()
}

/// `%f = "cpu.stored.filter"() {kind = "direct", numbers = [..], panel = [32, 16, 8], set = "avx512", tensor0 = dense<..>, version = 2}`
fn restore<T: Storable>(attributes: HeldAttributes, host: &HostContext) -> Result<T, Error> {
    let mut list = attributes.0;
    let n_found = list.len();
    let version = list.pop();
    let tensors = list.split_off(list.len().min(4));
    let ([kind, numbers, panel_of, set], Some(version)) = (&list[..], version) else {
        let expected = format_args!("5 attributes and tensors, found {n_found}");
        return Err(wrong(expected));
    };
    let text = |view: tfrt_host::kernel::AttributeView<'_>| view.as_str().map(str::to_owned);
    let (kind, name) = (text(kind.view()), text(set.view()));
    let (Some(kind), Some(name)) = (kind, name) else {
        return Err(wrong(format_args!(
            "a kind and an instruction set, each a text"
        )));
    };
    let Some(set) = InstructionSet::from_name(&name) else {
        let name = name.escape_debug();
        return Err(wrong(format_args!("an instruction set, found '{name}'")));
    };
    let (found, panels) = (version.view().as_i64(), panel_of.view().array::<i64>());
    if found != Some(VERSION) || panels != Some(&panel(set)[..]) {
        return Err(Error::failed_precondition(format!(
            "packed weights of a file: expected version {VERSION} with panels of {:?} columns for {name}, found {found:?} \
             and {panels:?}: compile the model again",
            panel(set)
        )));
    }
    let numbers = numbers.view().array::<i64>().map(<[i64]>::to_vec);
    let numbers = numbers.ok_or_else(|| wrong(format_args!("a list of numbers")))?;
    let tensors = tensors.into_iter();
    let tensors = tensors.map(|tensor| crate::onnx::in_place(tensor, host.allocator()));
    let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    let best = InstructionSet::best();
    if set != best {
        host.shared(|_| LaidAgain::default()).add(set);
    }
    let parts = Parts {
        kind,
        numbers,
        tensors,
    };
    T::put_together(parts, [set, best], host.allocator())
}

/// The instruction sets that weights were laid out for which were laid out again.
#[derive(Default)]
struct LaidAgain(Mutex<BTreeSet<&'static str>>);

impl LaidAgain {
    fn add(&self, set: InstructionSet) {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sets.insert(set.name());
    }
}

/// Returns the instruction sets of stored weights that had to be laid out again on this host so far.
pub fn laid_again(host: &HostContext) -> Vec<&'static str> {
    let laid = host.shared(|_| LaidAgain::default());
    let sets = laid.0.lock().unwrap_or_else(PoisonError::into_inner);
    sets.iter().copied().collect()
}
