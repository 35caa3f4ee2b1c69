//! Operations that put elements in another order, beside each other, or around each other.

use smallvec::{SmallVec, smallvec};
use tfrt_host::{DType, Error};
use tfrt_tensor::math::movement::{
    Edge, Movement, Slice, concat_extents, concat_into, one_hot_extents, one_hot_into,
};
use tfrt_tensor::{
    DenseHostTensor, Dims, StringHostTensor, Tensor, TensorMetadata, TensorShape, TensorView,
};

use super::integers::{dimension, named_axis};
use super::shapes::reshaped;
use super::strings;
use crate::attributes::OpAttrsRef;
use crate::call::{Call, made};
use crate::definition::{
    AttrKind, Formats, MetadataCall, OpDefinition, OpRegistry, Outputs, ResultMetadata,
};

pub(super) fn register(registry: &mut OpRegistry) {
    registry
        .add(
            moving("tf.ConcatV2", concat)
                .summary("Tensors behind each other along the axis in the last input; numbers become a vector.")
                .inputs_from(2..=usize::MAX)
                .attribute("N", AttrKind::Integer, "how many tensors there are")
                .attribute("Tidx", AttrKind::Type, "the type of the axis")
                .metadata(concat_metadata)
                .formats(Formats::STRING),
        )
        .add(
            moving("tf.Pack", pack)
                .summary("Tensors of one shape behind each other along a new dimension.")
                .inputs_from(1..=usize::MAX)
                .attribute("axis", AttrKind::Integer, "which dimension of the result: 0, if it is not stated")
                .attribute("N", AttrKind::Integer, "how many tensors there are")
                .formats(Formats::STRING),
        )
        .add(
            moving("tf.Unpack", unpack)
                .summary("The parts of a tensor along a dimension, which goes.")
                .inputs(1)
                .results_by("num")
                .attribute("num", AttrKind::Integer, "the extent of the dimension")
                .attribute("axis", AttrKind::Integer, "which dimension: 0, if it is not stated")
                .metadata(unpack_metadata)
                .formats(Formats::STRING),
        )
        .add(
            moving("tf.Tile", tile)
                .summary("A tensor, repeated along each dimension as often as the second input says.")
                .inputs(2)
                .attribute("Tmultiples", AttrKind::Type, "the type of the multiples")
                .formats(Formats::STRING),
        )
        .add(
            moving("tf.Pad", pad)
                .summary("A tensor with zeros around it: as many before and behind each dimension as a row of the second input says.")
                .inputs(2)
                .attribute("Tpaddings", AttrKind::Type, "the type of the paddings"),
        )
        .add(
            moving("tf.PadV2", pad)
                .summary("As `tf.Pad`, with the number in the third input in place of zeros.")
                .inputs(3)
                .attribute("Tpaddings", AttrKind::Type, "the type of the paddings"),
        )
        .add(
            moving("tf.Transpose", transpose)
                .summary("The dimensions in the order that the second input says.")
                .inputs(2)
                .attribute("Tperm", AttrKind::Type, "the type of the order")
                .metadata(transpose_metadata)
                .formats(Formats::STRING),
        )
        .add(
            moving("tf.Slice", slice)
                .summary("A part of a tensor: from where the second input says, of the extents in the third; -1 is all that is left.")
                .inputs(3)
                .attribute("Index", AttrKind::Type, "the type of places and extents")
                .formats(Formats::STRING),
        )
        .add(
            moving("tf.GatherV2", gather)
                .summary("The parts of a tensor that the second input names along the axis in the third.")
                .inputs(3)
                .attribute("Tparams", AttrKind::Type, "the type of the tensor")
                .attribute("Tindices", AttrKind::Type, "the type of the names")
                .attribute("Taxis", AttrKind::Type, "the type of the axis")
                .attribute("batch_dims", AttrKind::Integer, "0")
                .formats(Formats::STRING),
        )
        .add(
            moving("tf.OneHot", one_hot)
                .summary("Positions as rows of the extent in the second input, with the third input at the position and the fourth elsewhere.")
                .inputs(4)
                .attribute("axis", AttrKind::Integer, "which dimension of the result a row is: the last, if it is -1 or not stated")
                .attribute("TI", AttrKind::Type, "the type of the positions"),
        );
}

fn moving(
    name: &'static str,
    dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
) -> OpDefinition {
    OpDefinition::new(name, dispatch)
        .attribute("T", AttrKind::Type, "the type of the elements")
        .elements("all")
        .pure()
}

/// A tensor whose elements are moved.
fn moved(call: &Call<'_>, x: &Tensor, movement: &Movement) -> Result<Outputs, Error> {
    if let Tensor::String(x) = x {
        let allocator = call.execution().host().allocator();
        return Ok(smallvec![strings::moved(x, movement, allocator)?.into()]);
    }
    let x = x.as_dense()?;
    let out = call.allocate(movement.metadata(x.metadata())?)?;
    let chain = movement.run_into(call.execution(), x, &out)?;
    call.made(out, chain)
}

/// The error of a function that does not know for whom it calculates.
fn named<T>(op: &str, result: Result<T, Error>) -> Result<T, Error> {
    result.map_err(|error| Error::invalid_argument(format!("{op}: {}", error.message())))
}

/// The axis along which tensors lie behind each other.
///
/// # Errors
///
/// `InvalidArgument` if there is none, or if they differ elsewhere.
fn joint(op: &str, parts: &[&TensorMetadata], axis: i64) -> Result<usize, Error> {
    expect_alike(op, parts)?;
    let rank = parts.first().map_or(0, |part| part.shape.rank());
    let axis = named_axis(op, axis, rank.max(1))?;
    for (number, part) in parts.iter().enumerate() {
        for dimension in (0..rank).filter(|dimension| *dimension != axis) {
            let extent = |part: &TensorMetadata| part.shape.extent(dimension);
            if let (Some(wanted), Some(found)) = (extent(parts[0]), extent(part))
                && wanted != found
            {
                return Err(Error::invalid_argument(format!(
                    "{op}: Wrong non-concatenating dimension. Dimension {dimension} for argument {number} doesn't match \
                     that of argument 0: {found} vs. {wanted}"
                )));
            }
        }
    }
    Ok(axis)
}

/// Tells whether tensors are of one type and rank.
fn expect_alike(op: &str, parts: &[&TensorMetadata]) -> Result<(), Error> {
    for pair in parts.windows(2) {
        let (first, other) = (pair[0], pair[1]);
        if other.dtype != first.dtype {
            let (first, other) = (first.dtype, other.dtype);
            return Err(Error::invalid_argument(format!(
                "{op}: Input dtypes do not match: {first} and {other}"
            )));
        }
        if other.shape.rank() != first.shape.rank() {
            let (first, other) = (&first.shape, &other.shape);
            return Err(Error::invalid_argument(format!(
                "{op}: Input ranks do not match: shapes {first} and {other}"
            )));
        }
    }
    Ok(())
}

fn concat_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [parts @ .., _] = call.inputs else {
        return Err(Error::invalid_argument(
            "tf.ConcatV2 expects 2 or more inputs",
        ));
    };
    let Some(first) = parts.first() else {
        return Err(Error::invalid_argument(
            "tf.ConcatV2 expects 2 or more inputs",
        ));
    };
    expect_alike(call.op, parts)?;
    let Some(axis) = call.integer(parts.len(), "an axis")? else {
        return Ok(ResultMetadata::new());
    };
    let axis = joint(call.op, parts, axis)?;
    let extents = |part: &&TensorMetadata| match part.shape.rank() {
        0 => Dims::from_slice(&[1]),
        _ => part.shape.to_dims(),
    };
    let shapes: Vec<Dims> = parts.iter().map(extents).collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let extents = named(call.op, concat_extents(&shapes, axis))?;
    Ok(smallvec![TensorMetadata::new(
        first.dtype,
        TensorShape::new(&extents)?
    )])
}

fn concat(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let n = call.n_inputs() - 1;
    let parts = (0..n).map(|index| call.tensor(index));
    let parts: Vec<&Tensor> = parts.collect::<Result<_, _>>()?;
    let described: Vec<&TensorMetadata> = parts.iter().map(|part| part.metadata()).collect();
    let axis = joint(call.op(), &described, call.integer(n, "an axis")?)?;
    if described[0].shape.rank() == 0 {
        let vector = |part: &&Tensor| reshaped(part, TensorShape::new(&[1])?);
        let vectors = parts.iter().map(vector);
        return joined(call, vectors.collect::<Result<_, _>>()?, axis);
    }
    joined(call, parts.into_iter().cloned().collect(), axis)
}

fn pack(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let first = call.tensor(0)?.metadata().clone();
    let axis = call.attrs().integer("axis")?.unwrap_or(0);
    let rank = first.shape.rank() + 1;
    let axis = dimension(axis, rank).ok_or_else(|| {
        call.error(format_args!(
            "there is no axis {axis} in a result of rank {rank}"
        ))
    })?;
    let mut extents = first.shape.to_dims();
    extents.insert(axis, 1);
    let shape = TensorShape::new(&extents)?;
    let mut parts = Vec::with_capacity(call.n_inputs());
    for index in 0..call.n_inputs() {
        let part = call.tensor(index)?;
        let found = part.metadata();
        if *found != first {
            return Err(call.error(format_args!(
                "expected tensors of {first}, found one of {found} as argument {index}"
            )));
        }
        parts.push(reshaped(part, shape.clone())?);
    }
    joined(call, parts, axis)
}

/// The dimension along which a tensor is taken apart, and the number of its parts.
fn parted(op: &str, attrs: OpAttrsRef<'_>, extents: &[usize]) -> Result<(usize, usize), Error> {
    let (axis, rank) = (attrs.integer("axis")?.unwrap_or(0), extents.len());
    let axis = named_axis(op, axis, rank)?;
    let (n, found) = (attrs.integer("num")?.unwrap_or(0), extents[axis]);
    match usize::try_from(n) == Ok(found) {
        true => Ok((axis, found)),
        false => Err(Error::invalid_argument(format!(
            "{op}: expected attribute 'num' to be {found}, the extent of dimension {axis}, found {n}"
        ))),
    }
}

fn unpack_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [x] = call.inputs else {
        let op = call.op;
        return Err(Error::invalid_argument(format!("{op} expects 1 input")));
    };
    let mut extents = x.shape.to_dims();
    let (axis, n) = parted(call.op, call.attrs, &extents)?;
    extents.remove(axis);
    let part = TensorMetadata::new(x.dtype, TensorShape::new(&extents)?);
    Ok((0..n).map(|_| part.clone()).collect())
}

fn unpack(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let extents = x.metadata().shape.to_dims();
    let (axis, n) = parted(call.op(), call.attrs(), &extents)?;
    let mut part = extents.clone();
    part.remove(axis);
    let part = TensorShape::new(&part)?;
    let mut parts = Outputs::new();
    let mut slices: SmallVec<[Slice; 6]> = SmallVec::from_elem(Slice::ALL, extents.len());
    // An extent of a shape fits 63 bits.
    for index in 0..n as i64 {
        slices[axis] = Slice::new(index, index + 1, 1);
        let movement = named(call.op(), Movement::slice(&extents, &slices))?;
        match x {
            Tensor::String(x) => {
                let allocator = call.execution().host().allocator();
                let strings = strings::moved(x, &movement, allocator)?;
                parts.push(strings.reshape(part.clone())?.into());
            }
            x => {
                let x = x.as_dense()?;
                let out = call.allocate(movement.metadata(x.metadata())?)?;
                let chain = movement.run_into(call.execution(), x, &out)?;
                parts.push(made(out.reshape(part.clone())?, chain)?);
            }
        }
    }
    Ok(parts)
}

/// Tensors of one type, which differ in the extent of this dimension alone, behind each other.
fn joined(call: &Call<'_>, parts: Vec<Tensor>, axis: usize) -> Result<Outputs, Error> {
    let shapes = parts.iter().map(|part| part.metadata().shape.to_dims());
    let shapes: Vec<Dims> = shapes.collect();
    let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
    let extents = named(call.op(), concat_extents(&shapes, axis))?;
    if let Some(Tensor::String(_)) = parts.first() {
        let strings = parts.iter().map(Tensor::as_strings);
        let strings: Vec<&StringHostTensor> = strings.collect::<Result<_, _>>()?;
        let allocator = call.execution().host().allocator();
        let joined = strings::joined(&strings, axis, &extents, allocator)?;
        return Ok(smallvec![joined.into()]);
    }
    let dense = parts.iter().map(Tensor::as_dense);
    let dense: Vec<&DenseHostTensor> = dense.collect::<Result<_, _>>()?;
    let dtype = dense.first().map_or(DType::F32, |first| first.dtype());
    let out = call.allocate(TensorMetadata::new(dtype, TensorShape::new(&extents)?))?;
    let chain = concat_into(call.execution(), &dense, axis, &out)?;
    call.made(out, chain)
}

fn tile(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let extents = x.metadata().shape.to_dims();
    let times = call.vector(1, "multiples")?;
    if times.len() != extents.len() {
        let (rank, found) = (extents.len(), times.len());
        return Err(call.error(format_args!(
            "expected {rank} multiples, one for each dimension, found {found}"
        )));
    }
    let times = sizes(call, &times, "multiples")?;
    moved(
        call,
        x,
        &named(call.op(), Movement::tile(&extents, &times))?,
    )
}

/// Numbers that are not negative.
fn sizes(call: &Call<'_>, numbers: &[i64], what: &str) -> Result<Dims, Error> {
    let size = |number: &i64| {
        usize::try_from(*number).map_err(|_| {
            call.error(format_args!(
                "expected no negative {what}, found {numbers:?}"
            ))
        })
    };
    numbers.iter().map(size).collect()
}

/// `tf.Pad`, and `tf.PadV2`, which has a third input.
fn pad(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let x = call.dense(0)?;
    let extents = x.shape().to_dims();
    let found = call.dense(1)?.shape();
    if found.to_dims()[..] != [extents.len(), 2] {
        let rank = extents.len();
        return Err(call.error(format_args!(
            "expected paddings of shape [{rank}, 2], a row for each dimension, found {found}"
        )));
    }
    let paddings = call.integers(1, "paddings")?;
    sizes(call, &paddings, "paddings")?;
    let pairs = paddings.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let pairs: SmallVec<[(i64, i64); 4]> = pairs.collect();
    let movement = named(call.op(), Movement::pad(&extents, &pairs, Edge::Constant))?;
    if call.n_inputs() < 3 {
        return moved(call, call.tensor(0)?, &movement);
    }
    let around = call.dense(2)?;
    expect_one(call, around, x.dtype(), "around the tensor")?;
    let out = call.allocate(movement.metadata(x.metadata())?)?;
    let chain = movement.run_around_into(call.execution(), x, around, &out)?;
    call.made(out, chain)
}

/// Fails unless a tensor has one element, of this type.
fn expect_one(
    call: &Call<'_>,
    tensor: &DenseHostTensor,
    dtype: DType,
    what: &str,
) -> Result<(), Error> {
    match tensor.dtype() == dtype && tensor.n_elements() == 1 {
        true => Ok(()),
        false => Err(call.error(format_args!(
            "expected one element of {dtype} {what}, found {}",
            tensor.metadata()
        ))),
    }
}

/// How elements move when the dimensions are put in this order.
fn turned(op: &str, extents: &[usize], order: &[i64]) -> Result<Movement, Error> {
    let places = order.iter().map(|axis| dimension(*axis, extents.len()));
    match places.collect::<Option<Dims>>() {
        Some(places) => named(op, Movement::transpose(extents, &places)),
        None => Err(Error::invalid_argument(format!(
            "{op}: expected an order of {} dimensions, found {order:?}",
            extents.len()
        ))),
    }
}

const ORDER: &str = "an order of dimensions";

fn transpose_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    let [x, _] = call.inputs else {
        return Err(Error::invalid_argument("tf.Transpose expects 2 inputs"));
    };
    match call.vector(1, ORDER)? {
        Some(order) => {
            let movement = turned(call.op, &x.shape.to_dims(), &order)?;
            Ok(smallvec![movement.metadata(x)?])
        }
        None => Ok(ResultMetadata::new()),
    }
}

fn transpose(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let order = call.vector(1, ORDER)?;
    moved(
        call,
        x,
        &turned(call.op(), &x.metadata().shape.to_dims(), &order)?,
    )
}

fn slice(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let x = call.tensor(0)?;
    let extents = x.metadata().shape.to_dims();
    let (starts, sizes) = (call.vector(1, "places")?, call.vector(2, "extents")?);
    let rank = extents.len();
    if starts.len() != rank || sizes.len() != rank {
        let (starts, sizes) = (starts.len(), sizes.len());
        return Err(call.error(format_args!(
            "expected a place and an extent for each of {rank} dimensions, found {starts} and {sizes}"
        )));
    }
    let mut slices: SmallVec<[Slice; 6]> = SmallVec::new();
    for (index, ((start, size), extent)) in starts.iter().zip(&sizes).zip(&extents).enumerate() {
        // An extent of a shape fits 63 bits.
        let extent = i64::try_from(*extent).unwrap_or(i64::MAX);
        let end = match size {
            -1 => Some(extent),
            size => start.checked_add(*size),
        };
        let end = end.filter(|end| *start >= 0 && start <= end && *end <= extent);
        let end = end.ok_or_else(|| {
            call.error(format_args!(
                "{size} elements from {start} on are not in dimension {index}, of extent {extent}"
            ))
        })?;
        slices.push(Slice::new(*start, end, 1));
    }
    moved(
        call,
        x,
        &named(call.op(), Movement::slice(&extents, &slices))?,
    )
}

fn gather(call: &mut Call<'_>) -> Result<Outputs, Error> {
    if let Some(n) = call.attrs().integer("batch_dims")?
        && n != 0
    {
        return Err(call.error(format_args!(
            "expected attribute 'batch_dims' to be 0, found {n}"
        )));
    }
    let x = call.tensor(0)?;
    let extents = x.metadata().shape.to_dims();
    let axis = call.axis(2, extents.len())?;
    let positions = call.integers(1, "positions")?;
    let extent = extents[axis];
    let is_there = |position: &i64| usize::try_from(*position).is_ok_and(|place| place < extent);
    if let Some(index) = positions.iter().position(|position| !is_there(position)) {
        let position = positions[index];
        return Err(call.error(format_args!(
            "position {index} is {position}, which is not in [0, {extent})"
        )));
    }
    let shape = call.dense(1)?.shape().to_dims();
    let positions = TensorView::new(&positions, &shape)?;
    moved(
        call,
        x,
        &named(call.op(), Movement::gather(&extents, axis, &positions))?,
    )
}

fn one_hot(call: &mut Call<'_>) -> Result<Outputs, Error> {
    let positions = call.dense(0)?;
    let rank = positions.shape().rank() + 1;
    let axis = call.attrs().integer("axis")?.unwrap_or(-1);
    let axis = dimension(axis, rank).ok_or_else(|| {
        call.error(format_args!(
            "there is no axis {axis} in a result of rank {rank}"
        ))
    })?;
    let depth = sizes(call, &[call.integer(1, "an extent")?], "extent")?[0];
    let (on, off) = (call.dense(2)?, call.dense(3)?);
    let dtype = on.dtype();
    expect_one(call, on, dtype, "at the position")?;
    expect_one(call, off, dtype, "elsewhere")?;
    let extents = named(
        call.op(),
        one_hot_extents(&positions.shape().to_dims(), depth, axis),
    )?;
    // A negative position is none; counted from behind it would be one.
    let list = call.integers(0, "positions")?.into_iter();
    let list: Vec<i64> = list
        .map(|place| if place < 0 { i64::MAX } else { place })
        .collect();
    let (execution, own) = (call.execution(), positions.shape().to_dims());
    let positions = DenseHostTensor::from_slice(execution.host().allocator(), &own, &list)?;
    let out = call.allocate(TensorMetadata::new(dtype, TensorShape::new(&extents)?))?;
    let chain = one_hot_into(execution, &positions, axis, [off, on], &out)?;
    call.made(out, chain)
}
