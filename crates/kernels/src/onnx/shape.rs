//! Operations on shapes: queries, and reshaping without copies.

use tfrt_host::Error;
use tfrt_tensor::{Dims, Tensor, transfer};

use super::opaque::{count, extents, reshaped};
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.Flatten", flatten),
    ("copy", copy),
    ("identity", identity),
    ("reshape", reshape),
    ("shape", shape),
    ("onnx.Size", size),
    ("onnx.Squeeze", squeeze),
    ("onnx.Unsqueeze", unsqueeze),
];

/// `copy(x)`, attribute `device`: copies a tensor to the memory of a device of this host.
fn copy(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let name = node.attributes.string("device")?;
    let name = name.ok_or_else(|| node.attributes.missing("device"))?;
    let device = node.execution.host().devices().get(name).ok_or_else(|| {
        let name = name.escape_debug();
        Error::not_found(format!("copy: this host has no device '{name}'"))
    })?;
    let mut outputs = Outputs::new();
    outputs.push(transfer(node.inputs.tensor(0)?, &device, node.execution)?.into_any());
    Ok(outputs)
}

/// `Identity(x)`: any value, as it is.
fn identity(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let mut outputs = Outputs::new();
    let value = node
        .inputs
        .any(0)
        .ok_or_else(|| node.error("operand 0 is left out"))?;
    outputs.push(value.clone());
    Ok(outputs)
}

/// `Reshape(x, shape)`, attribute `allow_zero`: 0 stands for the extent that the tensor has there, unless it is
/// allowed, and one -1 for the remaining elements.
fn reshape(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let wanted = node.inputs.integers(1)?;
    let found = extents(x);
    let allows_zero = node.attributes.flag("allow_zero", false)?;
    let mut shape = Dims::new();
    let mut inferred = None;
    for (dimension, extent) in wanted.iter().enumerate() {
        shape.push(match usize::try_from(*extent) {
            Ok(0) if !allows_zero => *found.get(dimension).ok_or_else(|| {
                node.error(format_args!(
                    "dimension {dimension} of {wanted:?} is to be that of a tensor of shape {found:?}, which has none"
                ))
            })?,
            Ok(extent) => extent,
            Err(_) if *extent == -1 && inferred.is_none() => {
                inferred = Some(dimension);
                1
            }
            Err(_) => {
                let message = "expected extents of 0 or more, and one -1 at most";
                return Err(node.error(format_args!("{message}, found {wanted:?}")));
            }
        });
    }
    if let Some(dimension) = inferred {
        let n_elements = count(&found);
        let n_known = shape
            .iter()
            .try_fold(1_usize, |product, extent| product.checked_mul(*extent));
        let extent = n_known.filter(|n| *n > 0 && n_elements.is_multiple_of(*n));
        let extent = extent.ok_or_else(|| {
            node.error(format_args!(
                "a tensor of shape {found:?} can't be seen as one of shape {wanted:?}"
            ))
        })?;
        shape[dimension] = n_elements / extent;
    }
    view(node, x, &shape)
}

/// `Flatten(x)`, attribute `axis`: merges the dimensions before it into one, and the others into one.
fn flatten(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let axis = node.attributes.integer_or("axis", 1)?;
    let axis = match usize::try_from(axis) {
        Ok(axis) if axis == found.len() => axis,
        _ => node.axis(axis, found.len())?,
    };
    let (outer, inner) = found.split_at(axis);
    view(node, x, &[count(outer), count(inner)])
}

/// `Squeeze(x, axes)`: drops dimensions of extent 1, all or the named ones.
fn squeeze(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let Some(axes) = node.axes(1, found.len())? else {
        let rest: Dims = found
            .iter()
            .copied()
            .filter(|extent| *extent != 1)
            .collect();
        return view(node, x, &rest);
    };
    if let Some(axis) = axes.iter().find(|axis| found[**axis] != 1) {
        let message =
            format_args!("dimension {axis} of a tensor of shape {found:?} has not the extent 1");
        return Err(node.error(message));
    }
    let kept = (0..found.len()).filter(|dimension| !axes.contains(dimension));
    let rest: Dims = kept.map(|dimension| found[dimension]).collect();
    view(node, x, &rest)
}

/// `Unsqueeze(x, axes)`: inserts dimensions of extent 1, at these axes of the result.
fn unsqueeze(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let n_axes = match node.inputs.optional_integers(1)? {
        Some(axes) => axes.len(),
        None => node
            .attributes
            .integers("axes")?
            .ok_or_else(|| node.attributes.missing("axes"))?
            .len(),
    };
    let rank = found.len() + n_axes;
    let axes = node.axes(1, rank)?.unwrap_or_default();
    let mut rest = found.iter();
    let extent = |dimension| match axes.contains(&dimension) {
        true => 1,
        false => *rest
            .next()
            .expect("there are as many as dimensions that are not named"),
    };
    let shape: Dims = (0..rank).map(extent).collect();
    view(node, x, &shape)
}

/// `Shape(x)`, attributes `start`, `end`: the extents from one dimension to another.
fn shape(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let found = extents(node.inputs.tensor(0)?);
    let rank = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let place = |name, default| -> Result<usize, Error> {
        let place = node.attributes.integer_or(name, default)?;
        let from_start = if place < 0 {
            place.saturating_add(rank)
        } else {
            place
        };
        Ok(usize::try_from(from_start.clamp(0, rank)).unwrap_or(0))
    };
    let (start, end) = (place("start", 0)?, place("end", rank)?);
    let part = found.get(start..end).unwrap_or(&[]);
    let part: Vec<i64> = part.iter().map(|extent| to_i64(*extent)).collect();
    Ok(node.tensor_of(&[part.len()], &part)?.into())
}

/// `Size(x)`: the number of elements.
fn size(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let n_elements = count(&extents(node.inputs.tensor(0)?));
    Ok(node.tensor_of(&[], &[to_i64(n_elements)])?.into())
}

fn view(node: &NodeCall<'_>, x: &Tensor, shape: &[usize]) -> Result<Outputs, Error> {
    let seen = reshaped(x, shape).map_err(|error| node.with_name(&error))?;
    Ok(seen.into())
}

/// Converts a number of elements or an extent to the type that models have.
pub(super) fn to_i64(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl NodeCall<'_> {
    /// Returns the axes that an operand, or else the attribute `axes`, names, counted from the end if they are below
    /// 0.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one is not there, or named twice.
    pub(super) fn axes(&self, index: usize, rank: usize) -> Result<Option<Vec<usize>>, Error> {
        let list = match self.inputs.optional_integers(index)? {
            Some(list) => list,
            None => match self.attributes.integers("axes")? {
                Some(list) => list.to_vec(),
                None => return Ok(None),
            },
        };
        self.dimensions(&list, rank).map(Some)
    }

    /// Returns the indices of axes, counted from the end if they are below 0.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one is not there, or named twice.
    pub(super) fn dimensions(&self, list: &[i64], rank: usize) -> Result<Vec<usize>, Error> {
        let mut axes = Vec::with_capacity(list.len());
        let mut is_named = vec![false; rank];
        for axis in list {
            let dimension = self.axis(*axis, rank)?;
            if std::mem::replace(&mut is_named[dimension], true) {
                return Err(self.error(format_args!("expected each axis once, found {axis} again")));
            }
            axes.push(dimension);
        }
        Ok(axes)
    }
}
