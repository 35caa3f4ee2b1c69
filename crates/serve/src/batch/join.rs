//! Rows of several requests as one tensor, and back: along the first dimension of all inputs and outputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tfrt_host::{Error, ErrorCode, HostAllocator};
use tfrt_tensor::{DenseHostTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape};

use super::Inputs;
use crate::servable::{Description, Dim, TensorInfo};

/// The inputs of a request that can be joined with those of others.
pub(crate) struct Joinable {
    /// One for each input of the model, in the model's order.
    pub inputs: Inputs,
    /// The first extent of all inputs.
    pub n_rows: usize,
    /// The other extents.
    pub extents: Vec<usize>,
}

/// Checks that all inputs and outputs of a model have a dimension in front that may have any extent, the same one as far
/// as the model has names.
///
/// # Errors
///
/// The reason why requests can't be joined.
pub(super) fn check(description: &Description) -> Result<(), String> {
    let inputs = description.inputs.iter().map(|info| ("input", info));
    let outputs = description.outputs.iter().map(|info| ("output", info));
    let mut front: Option<&str> = None;
    for (kind, info) in inputs.chain(outputs) {
        let name = &info.name;
        let dims = info.dims.as_deref();
        let dims = dims.ok_or_else(|| format!("{kind} '{name}' has any number of dimensions"))?;
        match dims.first() {
            None => return Err(format!("{kind} '{name}' has no dimensions")),
            Some(Dim::Fixed(extent)) => {
                return Err(format!(
                    "{kind} '{name}' has {extent} rows, whatever is asked"
                ));
            }
            Some(Dim::Unknown) => {}
            Some(Dim::Symbol(symbol)) => match front {
                Some(other) if other != symbol => {
                    return Err(format!(
                        "{kind} '{name}' has '{symbol}' rows, others '{other}'"
                    ));
                }
                _ => front = Some(symbol),
            },
        }
    }
    let infos = description.inputs.iter().chain(&description.outputs);
    for info in infos {
        let mut behind = info.dims.iter().flat_map(|dims| &dims[1..]);
        let is_front =
            |dim: &Dim| matches!((dim, front), (Dim::Symbol(own), Some(front)) if own == front);
        if behind.any(is_front) {
            let (name, front) = (&info.name, front.unwrap_or_default());
            return Err(format!(
                "'{name}' has '{front}' behind its first dimension, too"
            ));
        }
    }
    match description.inputs.is_empty() {
        true => Err("it has no inputs".to_owned()),
        false => Ok(()),
    }
}

impl Joinable {
    /// Returns the inputs of a request as such, or as they are if the model has to see them alone: those that it refuses,
    /// and those without rows.
    pub fn of(description: &Description, inputs: Inputs) -> Result<Joinable, Inputs> {
        match shape_of(description, &inputs) {
            None => Err(inputs),
            Some((n_rows, extents)) => {
                let place = |name: &str| description.inputs.iter().position(|own| own.name == name);
                let mut inputs = inputs;
                inputs.sort_by_key(|(name, _)| place(name));
                Ok(Joinable {
                    inputs,
                    n_rows,
                    extents,
                })
            }
        }
    }
}

/// Returns the rows and the other extents of inputs that fit a model, each there once.
fn shape_of(description: &Description, inputs: &[(String, Tensor)]) -> Option<(usize, Vec<usize>)> {
    let (mut n_rows, mut all) = (None, Vec::new());
    let mut symbols = BTreeMap::new();
    if inputs.len() != description.inputs.len() {
        return None;
    }
    for info in &description.inputs {
        let mut own = inputs.iter().filter(|(name, _)| *name == info.name);
        let (_, tensor) = own.next()?;
        let extents = fitting(info, tensor, &mut symbols)?;
        let (first, rest) = extents.split_first()?;
        if *n_rows.get_or_insert(*first) != *first {
            return None;
        }
        all.extend_from_slice(rest);
    }
    Some((n_rows.filter(|n_rows| *n_rows > 0)?, all))
}

/// Returns the extents of a tensor if it is one that an input takes.
fn fitting<'d>(
    info: &'d TensorInfo,
    tensor: &Tensor,
    symbols: &mut BTreeMap<&'d str, usize>,
) -> Option<Vec<usize>> {
    let metadata = tensor.metadata();
    let dims = info.dims.as_ref()?;
    if metadata.dtype != info.dtype || metadata.shape.rank() != dims.len() {
        return None;
    }
    let extents: Vec<usize> = metadata.shape.extents().collect();
    let fits = |(dim, extent): (&'d Dim, &usize)| match dim {
        Dim::Fixed(fixed) => fixed == extent,
        Dim::Symbol(name) => symbols.entry(name).or_insert(*extent) == extent,
        Dim::Unknown => true,
    };
    dims.iter().zip(&extents).all(fits).then_some(extents)
}

/// Joins the inputs of requests, which have so many rows and all other extents in common.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory for them.
pub(super) fn join(
    requests: &[&Inputs],
    rows: &[usize],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Inputs, Error> {
    let n_rows = rows.iter().sum();
    let first = requests.first().map_or(&[][..], |inputs| inputs);
    let joined = first.iter().enumerate().map(|(place, (name, like))| {
        let parts = requests.iter().map(|inputs| &inputs[place].1);
        Ok((name.clone(), joined(like, parts, n_rows, allocator)?))
    });
    joined.collect()
}

fn joined<'t>(
    like: &Tensor,
    parts: impl Iterator<Item = &'t Tensor>,
    n_rows: usize,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    let shape = with_rows(&like.metadata().shape, n_rows)?;
    if let Tensor::String(_) = like {
        let mut strings = Vec::new();
        for part in parts {
            strings.extend_from_slice(part.as_strings()?.strings());
        }
        return Ok(StringHostTensor::new(shape, strings)?.into());
    }
    let metadata = TensorMetadata::new(like.metadata().dtype, shape);
    let mut whole = DenseHostTensor::unspecified(allocator, metadata)?;
    let mut rest = whole.bytes_mut().expect("nobody else holds it");
    for part in parts {
        let part = part.as_dense()?.read()?;
        let (own, behind) = rest.split_at_mut(part.bytes().len());
        own.copy_from_slice(part.bytes());
        rest = behind;
    }
    debug_assert!(rest.is_empty(), "rows add up to the whole");
    Ok(whole.into())
}

/// Splits the outputs of a batch into those of its requests, which share the memory.
///
/// # Errors
///
/// `Internal` if an output has another number of rows than the inputs.
pub(super) fn split(outputs: &[Tensor], rows: &[usize]) -> Result<Vec<Vec<Tensor>>, Error> {
    let n_rows: usize = rows.iter().sum();
    if let Some(other) = outputs
        .iter()
        .find(|output| output.metadata().shape.extent(0) != Some(n_rows))
    {
        let found = other.metadata();
        let message = format!("expected {n_rows} rows in an output of a batch, found {found}");
        return Err(Error::new(ErrorCode::Internal, message));
    }
    let mut begin = 0;
    let each = rows.iter().map(|own| {
        let part = |output| part(output, begin, *own, n_rows);
        let parts = outputs.iter().map(part).collect();
        begin += own;
        parts
    });
    each.collect()
}

fn part(output: &Tensor, begin: usize, n_own: usize, n_rows: usize) -> Result<Tensor, Error> {
    let shape = with_rows(&output.metadata().shape, n_own)?;
    let range = |len: usize| begin * (len / n_rows)..(begin + n_own) * (len / n_rows);
    if let Tensor::String(strings) = output {
        let strings = strings.strings();
        let own = strings[range(strings.len())].to_vec();
        return Ok(StringHostTensor::new(shape, own)?.into());
    }
    let buffer = output.as_dense()?.buffer();
    let own = buffer.slice(range(buffer.len_bytes()));
    let own =
        own.ok_or_else(|| Error::new(ErrorCode::Internal, "an output is shorter than its shape"))?;
    let metadata = TensorMetadata::new(output.metadata().dtype, shape);
    Ok(DenseHostTensor::new(metadata, own)?.into())
}

/// Returns a shape with another first extent.
fn with_rows(shape: &TensorShape, n_rows: usize) -> Result<TensorShape, Error> {
    let mut extents: Vec<usize> = shape.extents().collect();
    if let Some(first) = extents.first_mut() {
        *first = n_rows;
    }
    TensorShape::new(&extents)
}
