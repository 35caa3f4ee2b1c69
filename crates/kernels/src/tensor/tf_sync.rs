//! `tf_sync`: operations of TensorFlow for functions marked synchronous. Results go to tensors that the program has
//! made, on the calling thread.

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Operands};
use tfrt_host::{AnyAsyncValue, Error};
use tfrt_tensor::math::elementwise::{
    self, Add, Binary, Divide, Expm1, Log, Log1p, Multiply, Relu, Relu6, Rsqrt, Sigmoid, Subtract,
    Unary,
};
use tfrt_tensor::math::matmul::{self, MatmulElement, Scale};
use tfrt_tensor::math::movement::{self, Movement};
use tfrt_tensor::math::number::{Floating, Number};
use tfrt_tensor::math::softmax::{self, Kind};
use tfrt_tensor::{DenseReading, Element, Tensor, TensorMetadata, TensorShape, TensorView};

pub(super) fn register(registry: &mut KernelRegistry) {
    type OfOne = fn(&Tensor, &Tensor) -> Result<(), Error>;
    type OfTwo = fn(&Tensor, &Tensor, &Tensor) -> Result<(), Error>;
    type OfList = fn(i32, Operands<'_>) -> Result<(), Error>;
    registry
        .add("tf_sync.Const", constant)
        .add("tf_sync._FusedMatMul.f32", fused_product::<f32>)
        .add("tf_sync._FusedMatMul.f64", fused_product::<f64>);
    add_all! { registry, OfTwo,
        "tf_sync.AddV2.ui8" => binary::<Add, u8>;
        "tf_sync.AddV2.ui16" => binary::<Add, u16>;
        "tf_sync.AddV2.ui32" => binary::<Add, u32>;
        "tf_sync.AddV2.ui64" => binary::<Add, u64>;
        "tf_sync.AddV2.i8" => binary::<Add, i8>;
        "tf_sync.AddV2.i16" => binary::<Add, i16>;
        "tf_sync.AddV2.i32" => binary::<Add, i32>;
        "tf_sync.AddV2.i64" => binary::<Add, i64>;
        "tf_sync.AddV2.f32" => binary::<Add, f32>;
        "tf_sync.AddV2.f64" => binary::<Add, f64>;
        "tf_sync.Sub.ui8" => binary::<Subtract, u8>;
        "tf_sync.Sub.ui16" => binary::<Subtract, u16>;
        "tf_sync.Sub.ui32" => binary::<Subtract, u32>;
        "tf_sync.Sub.ui64" => binary::<Subtract, u64>;
        "tf_sync.Sub.i8" => binary::<Subtract, i8>;
        "tf_sync.Sub.i16" => binary::<Subtract, i16>;
        "tf_sync.Sub.i32" => binary::<Subtract, i32>;
        "tf_sync.Sub.i64" => binary::<Subtract, i64>;
        "tf_sync.Sub.f32" => binary::<Subtract, f32>;
        "tf_sync.Sub.f64" => binary::<Subtract, f64>;
        "tf_sync.Mul.ui8" => binary::<Multiply, u8>;
        "tf_sync.Mul.ui16" => binary::<Multiply, u16>;
        "tf_sync.Mul.ui32" => binary::<Multiply, u32>;
        "tf_sync.Mul.ui64" => binary::<Multiply, u64>;
        "tf_sync.Mul.i8" => binary::<Multiply, i8>;
        "tf_sync.Mul.i16" => binary::<Multiply, i16>;
        "tf_sync.Mul.i32" => binary::<Multiply, i32>;
        "tf_sync.Mul.i64" => binary::<Multiply, i64>;
        "tf_sync.Mul.f32" => binary::<Multiply, f32>;
        "tf_sync.Mul.f64" => binary::<Multiply, f64>;
        "tf_sync.RealDiv.ui8" => binary::<Divide, u8>;
        "tf_sync.RealDiv.ui16" => binary::<Divide, u16>;
        "tf_sync.RealDiv.ui32" => binary::<Divide, u32>;
        "tf_sync.RealDiv.ui64" => binary::<Divide, u64>;
        "tf_sync.RealDiv.i8" => binary::<Divide, i8>;
        "tf_sync.RealDiv.i16" => binary::<Divide, i16>;
        "tf_sync.RealDiv.i32" => binary::<Divide, i32>;
        "tf_sync.RealDiv.i64" => binary::<Divide, i64>;
        "tf_sync.RealDiv.f32" => binary::<Divide, f32>;
        "tf_sync.RealDiv.f64" => binary::<Divide, f64>;
        "tf_sync.Tile.ui8" => tile::<u8>;
        "tf_sync.Tile.ui16" => tile::<u16>;
        "tf_sync.Tile.ui32" => tile::<u32>;
        "tf_sync.Tile.ui64" => tile::<u64>;
        "tf_sync.Tile.i8" => tile::<i8>;
        "tf_sync.Tile.i16" => tile::<i16>;
        "tf_sync.Tile.i32" => tile::<i32>;
        "tf_sync.Tile.i64" => tile::<i64>;
        "tf_sync.Tile.f32" => tile::<f32>;
        "tf_sync.Tile.f64" => tile::<f64>;
    }
    add_all! { registry, OfOne,
        "tf_sync.Log.f32" => unary::<Log, f32>;
        "tf_sync.Log.f64" => unary::<Log, f64>;
        "tf_sync.Log1p.f32" => unary::<Log1p, f32>;
        "tf_sync.Log1p.f64" => unary::<Log1p, f64>;
        "tf_sync.Rsqrt.f32" => unary::<Rsqrt, f32>;
        "tf_sync.Rsqrt.f64" => unary::<Rsqrt, f64>;
        "tf_sync.Sigmoid.f32" => unary::<Sigmoid, f32>;
        "tf_sync.Sigmoid.f64" => unary::<Sigmoid, f64>;
        "tf_sync.Softmax.f32" => softmax::<f32, false>;
        "tf_sync.LogSoftmax.f32" => softmax::<f32, true>;
        "tf_sync.Softmax.f64" => softmax::<f64, false>;
        "tf_sync.LogSoftmax.f64" => softmax::<f64, true>;
    }
    add_all! { registry, OfList,
        "tf_sync.ConcatV2.ui8" => concat::<u8>;
        "tf_sync.ConcatV2.ui16" => concat::<u16>;
        "tf_sync.ConcatV2.ui32" => concat::<u32>;
        "tf_sync.ConcatV2.ui64" => concat::<u64>;
        "tf_sync.ConcatV2.i8" => concat::<i8>;
        "tf_sync.ConcatV2.i16" => concat::<i16>;
        "tf_sync.ConcatV2.i32" => concat::<i32>;
        "tf_sync.ConcatV2.i64" => concat::<i64>;
        "tf_sync.ConcatV2.f32" => concat::<f32>;
        "tf_sync.ConcatV2.f64" => concat::<f64>;
    }
}

/// A dense tensor, or one whose elements are all the same, to be read.
enum Input<'t, T> {
    Dense(DenseReading<'t>),
    Scalar(T, &'t TensorShape),
}

impl<'t, T: Element> Input<'t, T> {
    fn new(tensor: &'t Tensor) -> Result<Self, Error> {
        match tensor {
            Tensor::Scalar(scalar) => {
                let shape = &scalar.metadata().shape;
                Ok(Input::Scalar(scalar.value()?, shape))
            }
            tensor => Ok(Input::Dense(tensor.as_dense()?.read()?)),
        }
    }

    fn view(&self) -> Result<TensorView<'_, T>, Error> {
        match self {
            Input::Dense(reading) => reading.view(),
            Input::Scalar(value, shape) => {
                let one = TensorView::new(std::slice::from_ref(value), &[])?;
                one.broadcast(&shape.to_dims())
            }
        }
    }
}

/// `"tf_sync.Const"(%out) {value = dense<1> : tensor<2xi32>}`
fn constant(out: &Tensor, value: Attr<AttributeView<'_>>) -> Result<(), Error> {
    let dense = value.dense().ok_or_else(|| {
        let message = "error creating DenseHostTensor: attribute 'value' is no dense elements";
        Error::invalid_argument(message)
    })?;
    let metadata = TensorMetadata::new(dense.dtype, TensorShape::from_i64(dense.shape)?);
    let out = out.as_dense()?;
    if *out.metadata() != metadata {
        let own = out.metadata();
        let message = format!("a tensor of {own} can't take the elements of one of {metadata}");
        return Err(Error::invalid_argument(message));
    }
    out.write()?.bytes_mut().copy_from_slice(dense.bytes);
    Ok(())
}

/// `"tf_sync.AddV2.<t>"(%x, %y, %out)`: out = f(x, y), where x and y are broadcast
fn binary<F: Binary<T, Output = T>, T: Number>(
    x: &Tensor,
    y: &Tensor,
    out: &Tensor,
) -> Result<(), Error> {
    let (x, y) = (Input::new(x)?, Input::new(y)?);
    let mut out = out.as_dense()?.write()?;
    elementwise::binary::<F, T>(&x.view()?, &y.view()?, &mut out.view_mut()?)
}

/// `"tf_sync.Log.<t>"(%x, %out)`: out = f(x)
fn unary<F: Unary<T, Output = T>, T: Element>(x: &Tensor, out: &Tensor) -> Result<(), Error> {
    let x = Input::new(x)?;
    let mut out = out.as_dense()?.write()?;
    elementwise::unary::<F, T>(&x.view()?, &mut out.view_mut()?)
}

/// `"tf_sync.Softmax.<t>"(%x, %out)`, along the last dimension
fn softmax<T: Floating, const LOG: bool>(x: &Tensor, out: &Tensor) -> Result<(), Error> {
    let kind = match LOG {
        true => Kind::LogSoftmax,
        false => Kind::Softmax,
    };
    let x = Input::<T>::new(x)?;
    let mut out = out.as_dense()?.write()?;
    softmax::softmax(kind, &x.view()?, &mut out.view_mut()?)
}

/// `"tf_sync.ConcatV2.<t>"(%axis, %x, .., %out)`; a negative axis counts from the last, and scalars are vectors
fn concat<T: Element>(axis: i32, tensors: Operands<'_>) -> Result<(), Error> {
    let tensor = |(index, value): (usize, &AnyAsyncValue)| {
        let found = value.type_name().unwrap_or("a value of unknown type");
        let message = format!("variadic operand {index}: expected !t.tensor, found {found}");
        value
            .get::<Tensor>()
            .cloned()
            .ok_or_else(|| Error::invalid_argument(message))
    };
    let tensors: Result<Vec<Tensor>, Error> = tensors.iter().enumerate().map(tensor).collect();
    let tensors = tensors?;
    let Some((out, parts)) = tensors.split_last() else {
        return Err(Error::invalid_argument("there is nothing to join"));
    };
    let parts: Result<Vec<Input<'_, T>>, Error> = parts.iter().map(Input::new).collect();
    let parts = parts?;
    let mut views = Vec::with_capacity(parts.len());
    for part in &parts {
        let view = part.view()?;
        views.push(match view.rank() {
            0 => view.broadcast(&[1])?,
            _ => view,
        });
    }
    let rank = views.first().map_or(0, TensorView::rank);
    let dimension = usize::try_from(axis).ok();
    let from_behind = usize::try_from(axis.unsigned_abs())
        .ok()
        .and_then(|n| rank.checked_sub(n));
    let dimension = dimension
        .or(from_behind)
        .filter(|dimension| *dimension < rank);
    let Some(dimension) = dimension else {
        let message = format!("there is no dimension {axis} in tensors of {rank} dimensions");
        return Err(Error::invalid_argument(message));
    };
    let mut out = out.as_dense()?.write()?;
    movement::concat(&views, dimension, &mut out.view_mut()?)
}

/// `"tf_sync.Tile.<t>"(%x, %multiples, %out)`
fn tile<T: Element>(x: &Tensor, multiples: &Tensor, out: &Tensor) -> Result<(), Error> {
    let x = Input::<T>::new(x)?;
    let x = x.view()?;
    let movement = Movement::tile(x.extents(), &counts(multiples)?)?;
    let mut out = out.as_dense()?.write()?;
    movement.run(&x, &mut out.view_mut()?)
}

/// How often to repeat each dimension: a vector of numbers of 0 or more.
fn counts(multiples: &Tensor) -> Result<Vec<usize>, Error> {
    let multiples = multiples.as_dense()?;
    let reading = multiples.read()?;
    let numbers: Vec<i64> = match reading.elements::<i32>() {
        Ok(numbers) => numbers.iter().map(|number| i64::from(*number)).collect(),
        Err(_) => reading.elements::<i64>()?.to_vec(),
    };
    let counts = numbers.iter().map(|number| usize::try_from(*number));
    counts.collect::<Result<_, _>>().map_err(|_| {
        let message = format!("expected how often to repeat each dimension, found {numbers:?}");
        Error::invalid_argument(message)
    })
}

/// `"tf_sync._FusedMatMul.<t>"(%a, %b, %out, %bias) {fused_ops = ["BiasAdd"], transpose_a = false, ..}`
///
/// # Shapes
///
/// `a: [m, k]`, `b: [k, n]`, `out: [m, n]`, `bias: [n]`.
fn fused_product<T: MatmulElement + Floating>(
    a: &Tensor,
    b: &Tensor,
    out: &Tensor,
    bias: &Tensor,
    fused: Attr<AttributeView<'_>>,
    transpose_a: Attr<bool>,
    transpose_b: Attr<bool>,
) -> Result<(), Error> {
    let activation = activation::<T>(*fused)?;
    let (a, b, bias) = (Input::<T>::new(a)?, Input::<T>::new(b)?, bias.as_dense()?);
    let mut out = out.as_dense()?.write()?;
    let mut out = out.view_mut::<T>()?;
    let columns = out.extents().last().copied().unwrap_or(0);
    if bias.shape().rank() != 1 || bias.n_elements() != columns {
        let shape = bias.shape();
        let message = format!("Bias tensor must be a vector of {columns} elements, found {shape}");
        return Err(Error::invalid_argument(message));
    }
    matmul::matmul(
        Scale::default(),
        &turned(&a.view()?, *transpose_a)?,
        &turned(&b.view()?, *transpose_b)?,
        &mut out,
    )?;
    let bias = bias.read()?;
    let bias = bias.elements::<T>()?;
    for row in out.as_mut_slice().chunks_exact_mut(columns.max(1)) {
        for (element, bias) in row.iter_mut().zip(bias) {
            *element = activation(element.plus(*bias));
        }
    }
    Ok(())
}

/// A matrix, or with its rows and columns exchanged.
fn turned<'a, T: Element>(
    matrix: &TensorView<'a, T>,
    turns: bool,
) -> Result<TensorView<'a, T>, Error> {
    match turns {
        true => matrix.permute(&[1, 0]),
        false => matrix.permute(&[0, 1]),
    }
}

/// Reads what follows the product: a bias, and maybe a function.
fn activation<T: Floating>(fused: AttributeView<'_>) -> Result<fn(T) -> T, Error> {
    let list = fused.aggregate().filter(|list| !list.is_empty());
    let list =
        list.ok_or_else(|| Error::invalid_argument("FusedMatMul must specify fused operations"))?;
    let names = (0..list.len()).map(|index| list.get(index).and_then(|name| name.as_bytes()));
    let names: Vec<&[u8]> = names.map(Option::unwrap_or_default).collect();
    match names[..] {
        [b"BiasAdd"] => Ok(|x| x),
        [b"BiasAdd", b"Relu"] => Ok(Relu::apply),
        [b"BiasAdd", b"Relu6"] => Ok(Relu6::apply),
        [b"BiasAdd", b"Elu"] => Ok(|x| match x.less(T::ZERO) {
            true => Expm1::apply(x),
            false => x,
        }),
        _ => {
            let names: Vec<_> = names
                .iter()
                .map(|name| name.escape_ascii().to_string())
                .collect();
            let message = format!("Unsupported fusion type: {}", names.join(", "));
            Err(Error::invalid_argument(message))
        }
    }
}
