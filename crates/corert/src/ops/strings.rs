//! Strings that are moved: their numbers are moved in their place.

use std::sync::Arc;

use tfrt_host::{Error, HostAllocator};
use tfrt_tensor::math::movement::{self, Movement};
use tfrt_tensor::{
    DType, Dims, StringHostTensor, TensorMetadata, TensorShape, TensorView, TensorViewMut,
};

/// Strings in another order. There is nothing around them: what a movement adds is empty.
///
/// # Errors
///
/// `InvalidArgument` if the movement is for tensors of another shape; `ResourceExhausted` if its result does not fit
/// any memory.
pub(super) fn moved(
    x: &StringHostTensor,
    movement: &Movement,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<StringHostTensor, Error> {
    let extents = movement.extents();
    let mut places = places_for(extents)?;
    let (own, numbers) = (x.metadata().shape.to_dims(), numbers(0, x));
    let view = TensorView::new(&numbers, &own)?;
    movement.run(&view, &mut TensorViewMut::new(&mut places, extents)?)?;
    picked(&[x], extents, &places, allocator)
}

/// Strings behind each other along a dimension, in a tensor of these extents.
///
/// # Errors
///
/// As of [`movement::concat`].
pub(super) fn joined(
    parts: &[&StringHostTensor],
    dimension: usize,
    extents: &[usize],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<StringHostTensor, Error> {
    let mut places = places_for(extents)?;
    let mut n = 0;
    let mut all: Vec<(Vec<u64>, Dims)> = Vec::new();
    for part in parts {
        all.push((numbers(n, part), part.metadata().shape.to_dims()));
        n += part.strings().len();
    }
    let views = all
        .iter()
        .map(|(numbers, extents)| TensorView::new(numbers, extents));
    let views: Vec<TensorView<'_, u64>> = views.collect::<Result<_, _>>()?;
    let mut out = TensorViewMut::new(&mut places, extents)?;
    movement::concat(&views, dimension, &mut out)?;
    picked(parts, extents, &places, allocator)
}

/// The numbers of strings, of which there are `before` before the first; from 1 on, since what is moved from nowhere
/// is 0.
fn numbers(before: usize, strings: &StringHostTensor) -> Vec<u64> {
    let first = before + 1;
    (first..first + strings.strings().len())
        .map(|number| number as u64)
        .collect()
}

/// Room for the numbers of a result.
fn places_for(extents: &[usize]) -> Result<Vec<u64>, Error> {
    let shape = TensorShape::new(extents)?;
    let n = TensorMetadata::new(DType::String, shape).n_elements()?;
    let mut places = Vec::new();
    places
        .try_reserve_exact(n)
        .map_err(|_| Error::resource_exhausted(format!("there is no memory for {n} strings")))?;
    places.resize(n, 0);
    Ok(places)
}

/// The strings of these numbers.
fn picked(
    parts: &[&StringHostTensor],
    extents: &[usize],
    places: &[u64],
    allocator: &Arc<dyn HostAllocator>,
) -> Result<StringHostTensor, Error> {
    let all: Vec<&Vec<u8>> = parts.iter().flat_map(|part| part.strings()).collect();
    let string = |number: &u64| {
        let place = usize::try_from(*number).ok()?.checked_sub(1)?;
        all.get(place).copied().cloned()
    };
    let strings = places
        .iter()
        .map(|number| string(number).unwrap_or_default());
    StringHostTensor::collect(allocator, TensorShape::new(extents)?, strings)
}
