//! Stored values, which a file keeps: `cpu.stored.value`, and the encoding of packed weights.
//!
//! A compiler that runs a pack kernel asks [`store`] for the bytes of what it made, by the codec of its type, and
//! keeps them in the attributes of a kernel without operands that makes the same value again:
//!
//! | Attribute | Says |
//! | --- | --- |
//! | `head` | what the codec wrote itself |
//! | `part000`, `part001`, .. | large runs of bytes, used where they lie |
//! | `type` | the name of the value's type |
//! | `version` | the version of the codec |
//!
//! Packed weights tell the instruction set that they are laid out for. On a processor whose best one is another,
//! elements are laid out again when the model is opened: the panels are of another width, but hold the same
//! numbers, so that products are bit for bit those of a model that was packed here. So a file needs no second copy
//! of its weights.
//!
//! Attributes may be anything: all of them are checked before a value is made.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tfrt_host::codec::{DecodeContext, Decoder, EncodedValue, Encoder, ValueCodec};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, Error, HostContext};
use tfrt_tensor::codec::{read_tensor, write_tensor};
use tfrt_tensor::math::packed_gemm::InstructionSet;
use tfrt_tensor::op::Prepared;
use tfrt_tensor::{DenseHostTensor, Tensor};

use crate::onnx::{HeldAttributes, NodeCall};

/// The kernel that restores a stored value.
pub const KERNEL: &str = "cpu.stored.value";

/// The most parts of a stored value. Their names have three digits, so that sorting by name keeps their order.
pub const MAX_PARTS: usize = 1000;

/// The codecs of packed weights.
pub(crate) const CODECS: &[ValueCodec] = &[crate::onnx::CODEC];

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add(KERNEL, restore);
}

/// Encodes a value that a kernel made, for an instruction set that this processor need not have; `None` for a value
/// that files do not store: tensors are attributes of a program anyway.
///
/// # Errors
///
/// Those of the value's codec.
pub fn store(
    value: &AnyAsyncValue,
    host: &HostContext,
    set: InstructionSet,
) -> Option<Result<EncodedValue, Error>> {
    let codecs = host.codecs();
    codecs.newest(value.type_name()?)?;
    let is_storable = match value.get::<Prepared>() {
        Some(prepared) => crate::onnx::is_storable(prepared),
        None => !value.is::<Tensor>(),
    };
    if !is_storable {
        return None;
    }
    let encoder = Encoder::new(host.allocator()).for_target(set.name());
    let encoded = codecs.encode_with(value, encoder);
    let has_few_parts = |encoded: &EncodedValue| encoded.parts().len() <= MAX_PARTS;
    match encoded {
        Ok(encoded) => has_few_parts(&encoded).then_some(Ok(encoded)),
        Err(error) => Some(Err(error)),
    }
}

/// `%f = "cpu.stored.value"() {head = dense<..>, part000 = dense<..>, type = "!graph.prepared", version = 1}`
fn restore(attributes: HeldAttributes, host: &HostContext) -> Result<AnyAsyncValue, Error> {
    let mut list = attributes.0;
    let n_found = list.len();
    let (version, type_name) = (list.pop(), list.pop());
    let (Some(version), Some(type_name), false) = (version, type_name, list.is_empty()) else {
        return Err(wrong(format_args!("4 attributes or 3, found {n_found}")));
    };
    let type_name = type_name.view().as_str().map(str::to_owned);
    let version = version.view().as_i64();
    let version = version.and_then(|version| u32::try_from(version).ok());
    let (Some(type_name), Some(version)) = (type_name, version) else {
        return Err(wrong(format_args!("a type, and a version of its codec")));
    };
    let buffers = list.into_iter().map(|attribute| {
        let elements = crate::onnx::in_place(attribute, host.allocator())?;
        Ok(elements.into_buffer())
    });
    let mut parts = buffers.collect::<Result<Vec<_>, Error>>()?;
    let head = parts.remove(0).read()?.to_vec();
    let encoded = EncodedValue::new(&type_name, version, head, parts);
    let decoded = host.codecs().decode(&encoded, &DecodeContext::new(host));
    decoded.map_err(|error| {
        error.with_note("the value is one that a file keeps: compile the model again")
    })
}

#[cold]
fn wrong(expected: std::fmt::Arguments<'_>) -> Error {
    Error::invalid_argument(format!("a stored value: expected {expected}"))
}

/// Returns the instruction set that the weights of a node are packed for, by its precision.
///
/// # Errors
///
/// `InvalidArgument` if there is no such precision.
pub(super) fn precision(node: &NodeCall<'_>) -> Result<InstructionSet, Error> {
    let precise = InstructionSet::best();
    match node.attributes.string_or("precision", "f32")? {
        "f32" => Ok(precise),
        "bf16" if InstructionSet::AmxBf16.is_available() => Ok(InstructionSet::AmxBf16),
        "bf16" => Ok(precise),
        found => {
            let found = found.escape_debug();
            let message = format!("is expected to be f32 or bf16, found '{found}'");
            Err(node.attributes.error("precision", message))
        }
    }
}

/// Returns the instruction set that weights, packed for `own`, are written for: the encoder's target, unless they are
/// rounded.
///
/// # Errors
///
/// `InvalidArgument` if there is none of the name of the encoder's target.
pub(crate) fn target(encoder: &Encoder, own: InstructionSet) -> Result<InstructionSet, Error> {
    let Some(name) = encoder.target().filter(|_| !own.is_bf16()) else {
        return Ok(own);
    };
    InstructionSet::from_name(name).ok_or_else(|| {
        let message = format!("packed weights: expected an instruction set, found '{name}'");
        Error::invalid_argument(message)
    })
}

/// Writes the kind of packed weights, and their instruction set.
pub(crate) fn write_layout(kind: &str, set: InstructionSet, encoder: &mut Encoder) {
    encoder.str(kind);
    encoder.str(set.name());
    encoder.usize(set.panel_columns().len());
    for columns in set.panel_columns() {
        encoder.usize(*columns);
    }
}

/// Reads the kind of packed weights, their instruction set, and the one that they are used by here, as [`write_layout`] wrote
/// them.
///
/// # Errors
///
/// `InvalidArgument` for bytes that are none, `FailedPrecondition` if panels of that instruction set have another
/// width by now.
pub(crate) fn read_layout<'b>(
    decoder: &mut Decoder<'b>,
    context: &DecodeContext<'_>,
) -> Result<(&'b str, [InstructionSet; 2]), Error> {
    let (kind, name) = (decoder.str()?, decoder.str()?);
    let set = InstructionSet::from_name(name).ok_or_else(|| {
        let name = name.escape_debug();
        decoder.wrong(format_args!("an instruction set, found '{name}'"))
    })?;
    let columns = (0..decoder.count(8)?).map(|_| decoder.usize());
    let columns = columns.collect::<Result<Vec<usize>, Error>>()?;
    if columns != set.panel_columns() {
        let wanted = set.panel_columns();
        return Err(Error::failed_precondition(format!(
            "packed weights of a file: expected panels of {wanted:?} columns for {name}, found {columns:?}"
        )));
    }
    let here = match set.is_bf16() && set.is_available() {
        true => set,
        false => InstructionSet::best(),
    };
    if set != here {
        let laid = context.host().shared(|_| RepackedSets::default());
        laid.add(set);
    }
    Ok((kind, [set, here]))
}

/// Writes packed elements, and the summands of columns.
///
/// # Errors
///
/// Those of the codec of tensors.
pub(super) fn write_packed(
    elements: DenseHostTensor,
    shift: Option<DenseHostTensor>,
    encoder: &mut Encoder,
) -> Result<(), Error> {
    write_tensor(&elements.into(), encoder)?;
    encoder.u8(shift.is_some().into());
    match shift {
        Some(shift) => write_tensor(&shift.into(), encoder),
        None => Ok(()),
    }
}

/// Reads packed elements, and the summands of so many columns.
///
/// # Errors
///
/// `InvalidArgument` if these are no dense tensors, or there are more or fewer summands.
pub(super) fn read_packed(
    n_columns: usize,
    decoder: &mut Decoder<'_>,
    context: &DecodeContext<'_>,
) -> Result<(DenseHostTensor, Option<DenseHostTensor>), Error> {
    let elements = read_tensor(decoder, context)?.as_dense()?.clone();
    match decoder.u8()? {
        0 => return Ok((elements, None)),
        1 => {}
        found => return Err(decoder.wrong(format_args!("0 or 1, found {found}"))),
    }
    let shift = read_tensor(decoder, context)?.as_dense()?.clone();
    let found = shift.read()?.elements::<f32>()?.len();
    match found == n_columns {
        true => Ok((elements, Some(shift))),
        false => Err(decoder.wrong(format_args!(
            "a summand for each of {n_columns} columns, found {found}"
        ))),
    }
}

/// The instruction sets of stored weights that were repacked for this processor.
#[derive(Default)]
struct RepackedSets(Mutex<BTreeSet<&'static str>>);

impl RepackedSets {
    fn add(&self, set: InstructionSet) {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sets.insert(set.name());
    }
}

/// Returns the instruction sets of stored weights that were repacked on this host so far.
pub fn repacked(host: &HostContext) -> Vec<&'static str> {
    let laid = host.shared(|_| RepackedSets::default());
    let sets = laid.0.lock().unwrap_or_else(PoisonError::into_inner);
    sets.iter().copied().collect()
}
