//! `tf_sync`: operations of TensorFlow for functions marked synchronous. Results go to tensors that the program has
//! made, on the calling thread.

use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Operands};
use tfrt_host::{AnyAsyncValue, Error};
use tfrt_tensor::math::layout_copy::{self, LayoutCopy};
use tfrt_tensor::math::matmul::{self, MatmulElement, Scale};
use tfrt_tensor::math::number::Floating;
use tfrt_tensor::math::pointwise::{
    self, BinaryFunction, Elements, ElementsMut, PointwiseProgram, Step, UnaryFunction,
};
use tfrt_tensor::math::softmax::{self, SoftmaxKind};
use tfrt_tensor::{
    DType, DenseReading, Element, ScalarHostTensor, Tensor, TensorMetadata, TensorShape, TensorView,
};

/// `one!(Log, F32)` is the kernel of a function of one operand.
macro_rules! one {
    ($function:ident, $dtype:ident) => {
        |x, out| unary(UnaryFunction::$function, DType::$dtype, x, out)
    };
}

/// `two!(Add, F32)` is the kernel of a function of two operands.
macro_rules! two {
    ($function:ident, $dtype:ident) => {
        |x, y, out| binary(BinaryFunction::$function, DType::$dtype, [x, y], out)
    };
}

pub(super) fn register(registry: &mut KernelRegistry) {
    type OfOne = fn(&Tensor, &Tensor) -> Result<(), Error>;
    type OfTwo = fn(&Tensor, &Tensor, &Tensor) -> Result<(), Error>;
    type OfList = fn(i32, Operands<'_>) -> Result<(), Error>;
    registry
        .add("tf_sync.Const", constant)
        .add("tf_sync._FusedMatMul.f32", fused_product::<f32>)
        .add("tf_sync._FusedMatMul.f64", fused_product::<f64>);
    add_all! { registry, OfTwo,
        "tf_sync.AddV2.ui8" => two!(Add, Ui8);
        "tf_sync.AddV2.ui16" => two!(Add, Ui16);
        "tf_sync.AddV2.ui32" => two!(Add, Ui32);
        "tf_sync.AddV2.ui64" => two!(Add, Ui64);
        "tf_sync.AddV2.i8" => two!(Add, I8);
        "tf_sync.AddV2.i16" => two!(Add, I16);
        "tf_sync.AddV2.i32" => two!(Add, I32);
        "tf_sync.AddV2.i64" => two!(Add, I64);
        "tf_sync.AddV2.f32" => two!(Add, F32);
        "tf_sync.AddV2.f64" => two!(Add, F64);
        "tf_sync.Sub.ui8" => two!(Subtract, Ui8);
        "tf_sync.Sub.ui16" => two!(Subtract, Ui16);
        "tf_sync.Sub.ui32" => two!(Subtract, Ui32);
        "tf_sync.Sub.ui64" => two!(Subtract, Ui64);
        "tf_sync.Sub.i8" => two!(Subtract, I8);
        "tf_sync.Sub.i16" => two!(Subtract, I16);
        "tf_sync.Sub.i32" => two!(Subtract, I32);
        "tf_sync.Sub.i64" => two!(Subtract, I64);
        "tf_sync.Sub.f32" => two!(Subtract, F32);
        "tf_sync.Sub.f64" => two!(Subtract, F64);
        "tf_sync.Mul.ui8" => two!(Multiply, Ui8);
        "tf_sync.Mul.ui16" => two!(Multiply, Ui16);
        "tf_sync.Mul.ui32" => two!(Multiply, Ui32);
        "tf_sync.Mul.ui64" => two!(Multiply, Ui64);
        "tf_sync.Mul.i8" => two!(Multiply, I8);
        "tf_sync.Mul.i16" => two!(Multiply, I16);
        "tf_sync.Mul.i32" => two!(Multiply, I32);
        "tf_sync.Mul.i64" => two!(Multiply, I64);
        "tf_sync.Mul.f32" => two!(Multiply, F32);
        "tf_sync.Mul.f64" => two!(Multiply, F64);
        "tf_sync.RealDiv.ui8" => two!(Divide, Ui8);
        "tf_sync.RealDiv.ui16" => two!(Divide, Ui16);
        "tf_sync.RealDiv.ui32" => two!(Divide, Ui32);
        "tf_sync.RealDiv.ui64" => two!(Divide, Ui64);
        "tf_sync.RealDiv.i8" => two!(Divide, I8);
        "tf_sync.RealDiv.i16" => two!(Divide, I16);
        "tf_sync.RealDiv.i32" => two!(Divide, I32);
        "tf_sync.RealDiv.i64" => two!(Divide, I64);
        "tf_sync.RealDiv.f32" => two!(Divide, F32);
        "tf_sync.RealDiv.f64" => two!(Divide, F64);
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
        "tf_sync.Log.f32" => one!(Log, F32);
        "tf_sync.Log.f64" => one!(Log, F64);
        "tf_sync.Log1p.f32" => one!(Log1p, F32);
        "tf_sync.Log1p.f64" => one!(Log1p, F64);
        "tf_sync.Rsqrt.f32" => one!(Rsqrt, F32);
        "tf_sync.Rsqrt.f64" => one!(Rsqrt, F64);
        "tf_sync.Sigmoid.f32" => one!(Sigmoid, F32);
        "tf_sync.Sigmoid.f64" => one!(Sigmoid, F64);
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

/// An operand to be read: a dense tensor, or one whose elements are all equal.
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

/// The elements of an operand of one type, dense or all equal.
enum Operand<'t> {
    Dense(DenseReading<'t>),
    Scalar(&'t ScalarHostTensor),
}

impl<'t> Operand<'t> {
    fn new(tensor: &'t Tensor, dtype: DType) -> Result<Self, Error> {
        match tensor {
            Tensor::Scalar(scalar) => {
                scalar.metadata().expect_dtype(dtype)?;
                Ok(Operand::Scalar(scalar))
            }
            tensor => {
                let dense = tensor.as_dense()?;
                dense.metadata().expect_dtype(dtype)?;
                Ok(Operand::Dense(dense.read()?))
            }
        }
    }

    fn elements(&self) -> Elements<'_> {
        match self {
            Operand::Dense(reading) => Elements::of_dense(reading),
            Operand::Scalar(scalar) => Elements::of_scalar(scalar),
        }
    }
}

/// `"tf_sync.AddV2.<t>"(%x, %y, %out)`: out = f(x, y), where x and y are broadcast
fn binary(
    function: BinaryFunction,
    dtype: DType,
    [x, y]: [&Tensor; 2],
    out: &Tensor,
) -> Result<(), Error> {
    let (x, y) = (Operand::new(x, dtype)?, Operand::new(y, dtype)?);
    let mut out = out.as_dense()?.write()?;
    let out = ElementsMut::of_dense(&mut out);
    pointwise::binary(function, &[x.elements(), y.elements()], out)
}

/// `"tf_sync.Log.<t>"(%x, %out)`: out = f(x)
fn unary(function: UnaryFunction, dtype: DType, x: &Tensor, out: &Tensor) -> Result<(), Error> {
    let x = Operand::new(x, dtype)?;
    let mut out = out.as_dense()?.write()?;
    pointwise::unary(function, &x.elements(), ElementsMut::of_dense(&mut out))
}

/// `"tf_sync.Softmax.<t>"(%x, %out)`, along the last dimension
fn softmax<T: Floating, const LOG: bool>(x: &Tensor, out: &Tensor) -> Result<(), Error> {
    let kind = match LOG {
        true => SoftmaxKind::LogSoftmax,
        false => SoftmaxKind::Softmax,
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
    layout_copy::concat(&views, dimension, &mut out.view_mut()?)
}

/// `"tf_sync.Tile.<t>"(%x, %multiples, %out)`
fn tile<T: Element>(x: &Tensor, multiples: &Tensor, out: &Tensor) -> Result<(), Error> {
    let x = Input::<T>::new(x)?;
    let x = x.view()?;
    let layout_copy = LayoutCopy::tile(x.extents(), &counts(multiples)?)?;
    let mut out = out.as_dense()?.write()?;
    layout_copy.run(&x, &mut out.view_mut()?)
}

/// Returns how often to repeat each dimension: a vector of numbers of 0 or more.
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
    let finish = finish(*fused)?;
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
    finish.run_over(out.into(), &[Elements::of_dense(&bias)])
}

/// Returns a matrix, transposed if it is to be.
fn turned<'a, T: Element>(
    matrix: &TensorView<'a, T>,
    turns: bool,
) -> Result<TensorView<'a, T>, Error> {
    match turns {
        true => matrix.permute(&[1, 0]),
        false => matrix.permute(&[0, 1]),
    }
}

/// Reads the operations behind a product: a bias, and maybe a function.
fn finish(fused: AttributeView<'_>) -> Result<PointwiseProgram, Error> {
    use pointwise::Operand::{Input, Step as Made};
    let list = fused.aggregate().filter(|list| !list.is_empty());
    let list =
        list.ok_or_else(|| Error::invalid_argument("FusedMatMul must specify fused operations"))?;
    let names = (0..list.len()).map(|index| list.get(index).and_then(|name| name.as_bytes()));
    let names: Vec<&[u8]> = names.map(Option::unwrap_or_default).collect();
    let add = Step::Binary(BinaryFunction::Add, [Input(0), Input(1)]);
    let then = |function| PointwiseProgram::new(2, &[add, Step::Unary(function, Made(0))]);
    match names[..] {
        [b"BiasAdd"] => PointwiseProgram::new(2, &[add]),
        [b"BiasAdd", b"Relu"] => then(UnaryFunction::Relu),
        [b"BiasAdd", b"Relu6"] => then(UnaryFunction::Relu6),
        [b"BiasAdd", b"Elu"] => then(UnaryFunction::Elu),
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
