//! The operations as methods of [`Handle`].

use std::fmt::Write;
use std::ops::{Add, Div, Mul, Neg, Sub};

use tfrt_corert::{CallSite, Inputs, OpAttrs, TensorHandle};
use tfrt_host::{DType, Error};

use super::names::Name;
use super::{Eager, Handle, make_room};

/// Returns no attributes.
fn none() -> OpAttrs {
    OpAttrs::new()
}

/// `unary!(/// The larger of each element and 0\n relu: Relu;)` declares methods without arguments.
macro_rules! unary {
    ($($(#[$doc:meta])* $method:ident: $name:ident;)*) => {
        impl Handle {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// `InvalidArgument` if the operation has no such type, and those of [`Eager::op`].
                #[track_caller]
                pub fn $method(&self) -> Result<Handle, Error> {
                    call(stringify!($method), Name::$name, &[self], &none(), CallSite::here())
                }
            )*
        }
    };
}

unary! {
    /// Returns the larger of each element and 0.
    relu: Relu;
    /// Returns 1 / (1 + e^-x) of each element.
    sigmoid: Sigmoid;
    /// Returns the hyperbolic tangent of each element.
    tanh: Tanh;
    /// Returns e to the power of each element.
    exp: Exp;
    /// Returns the natural logarithm of each element.
    log: Log;
    /// Returns the square root of each element.
    sqrt: Sqrt;
    /// Returns 1 / the square root of each element.
    rsqrt: Rsqrt;
    /// Returns the square of each element.
    square: Square;
    /// Returns e^x of each element, divided by their sum along the last dimension.
    softmax: Softmax;
    /// Returns the logarithm of [`softmax`](Self::softmax).
    log_softmax: LogSoftmax;
    /// Returns the sum over all dimensions but the last: the gradient of what [`bias_add`](Self::bias_add) has added.
    bias_add_gradient: BiasAddGradient;
}

/// `binary!(/// The sum\n add: Add;)` declares methods with another tensor.
macro_rules! binary {
    ($($(#[$doc:meta])* $method:ident: $name:ident;)*) => {
        impl Handle {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// `InvalidArgument` if types or shapes don't fit, and those of [`Eager::op`].
                #[track_caller]
                pub fn $method(&self, other: &Handle) -> Result<Handle, Error> {
                    call(stringify!($method), Name::$name, &[self, other], &none(), CallSite::here())
                }
            )*
        }
    };
}

binary! {
    /// Returns the sums of elements; shapes are broadcast.
    plus: Add;
    /// Returns the differences of elements; shapes are broadcast.
    minus: Subtract;
    /// Returns the products of elements; shapes are broadcast.
    times: Multiply;
    /// Returns the quotients of elements; shapes are broadcast.
    over: Divide;
    /// Returns the larger of two elements; shapes are broadcast.
    maximum: Maximum;
    /// Returns the smaller of two elements; shapes are broadcast.
    minimum: Minimum;
    /// Returns whether elements are less than the others; shapes are broadcast.
    less: Less;
    /// Returns whether elements are greater than the others; shapes are broadcast.
    greater: Greater;
    /// Returns whether elements are equal; shapes are broadcast.
    equal: Equal;
    /// Returns the product of two matrices: `[m, k]` and `[k, n]` give `[m, n]`.
    matmul: MatMul;
    /// Returns the elements plus those of a vector along the last dimension.
    bias_add: BiasAdd;
    /// Returns this gradient where the other tensor is above 0, else 0.
    relu_gradient: ReluGradient;
}

impl Handle {
    /// Returns the product of two matrices, of which either may be transposed first.
    ///
    /// # Errors
    ///
    /// See [`matmul`](Self::matmul).
    #[track_caller]
    pub fn matmul_transposed(&self, other: &Handle, [a, b]: [bool; 2]) -> Result<Handle, Error> {
        let mut attrs = none();
        attrs.set("transpose_a", a)?.set("transpose_b", b)?;
        call(
            "matmul",
            Name::MatMul,
            &[self, other],
            &attrs,
            CallSite::here(),
        )
    }

    /// Returns the elements as another type.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such conversion.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Handle, Error> {
        let mut attrs = none();
        attrs.set("DstT", dtype)?;
        call("cast", Name::Cast, &[self], &attrs, CallSite::here())
    }

    /// Returns the indexes of the largest elements along a dimension, which goes; counted from the end if it is
    /// negative.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such dimension.
    #[track_caller]
    pub fn argmax(&self, axis: i64) -> Result<Handle, Error> {
        let mut attrs = none();
        attrs.set("axis", axis)?;
        call("argmax", Name::ArgMax, &[self], &attrs, CallSite::here())
    }

    /// Returns the sum over some dimensions, which go; counted from the end if they are negative.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such dimension.
    #[track_caller]
    pub fn sum(&self, axes: &[i32]) -> Result<Handle, Error> {
        let mut attrs = none();
        attrs.set("axes", axes)?;
        call("sum", Name::Sum, &[self], &attrs, CallSite::here())
    }

    /// Returns the mean over some dimensions, which go; counted from the end if they are negative.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such dimension.
    #[track_caller]
    pub fn mean(&self, axes: &[i32]) -> Result<Handle, Error> {
        self.reduce("mean", Name::Mean, axes, CallSite::here())
    }

    /// Returns the largest over some dimensions, which go; counted from the end if they are negative.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no such dimension.
    #[track_caller]
    pub fn max(&self, axes: &[i32]) -> Result<Handle, Error> {
        self.reduce("max", Name::Max, axes, CallSite::here())
    }

    fn reduce(
        &self,
        method: &str,
        name: Name,
        axes: &[i32],
        caller: CallSite,
    ) -> Result<Handle, Error> {
        let axes = self.eager().tensor(&[axes.len()], axes)?;
        call(method, name, &[self, &axes], &none(), caller)
    }

    /// Returns the elements with other extents, of which one may be -1: as many as are left.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many elements.
    #[track_caller]
    pub fn reshape(&self, extents: &[i64]) -> Result<Handle, Error> {
        let extents = self.eager().tensor(&[extents.len()], extents)?;
        call(
            "reshape",
            Name::Reshape,
            &[self, &extents],
            &none(),
            CallSite::here(),
        )
    }

    /// Returns the dimensions in another order.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no order of all dimensions.
    #[track_caller]
    pub fn transpose(&self, order: &[i32]) -> Result<Handle, Error> {
        let order = self.eager().tensor(&[order.len()], order)?;
        call(
            "transpose",
            Name::Transpose,
            &[self, &order],
            &none(),
            CallSite::here(),
        )
    }

    /// Concatenates tensors along a dimension.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they differ in type or in another dimension, or if there is none.
    #[track_caller]
    pub fn concat(tensors: &[&Handle], axis: i32) -> Result<Handle, Error> {
        let caller = CallSite::here();
        let Some(first) = tensors.first() else {
            return Err(Error::invalid_argument("concat of no tensors"));
        };
        let axis = first.eager().scalar(axis)?;
        let mut inputs = tensors.to_vec();
        inputs.push(&axis);
        call("concat", Name::Concat, &inputs, &none(), caller)
    }

    /// Returns the cross entropies of the softmax of each row, `[rows, classes]`, with a class for each, `[rows]`, and
    /// their gradients by the row's elements.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if types or shapes don't fit. A class that there is not fails the results.
    #[track_caller]
    pub fn softmax_cross_entropy(&self, classes: &Handle) -> Result<(Handle, Handle), Error> {
        let caller = CallSite::here();
        let eager = self.eager().or_recording(classes.eager()).latest();
        let inputs = [self.handle(), classes.handle()];
        let op = eager.op_of(Name::CrossEntropy)?;
        let inputs = Inputs::borrowed_each(&inputs);
        let results = eager.run(op, inputs, (&none()).into(), caller);
        let describe = |error| described("softmax_cross_entropy", &[self, classes], error);
        let mut results = results
            .map_err(describe)?
            .into_iter()
            .map(|handle| eager.wrap(handle));
        match (results.next(), results.next()) {
            (Some(losses), Some(gradients)) => Ok((losses, gradients)),
            _ => Err(Error::internal("a cross entropy without a gradient")),
        }
    }
}

/// `operators!(Add add plus)` makes `&a + &b` the method.
macro_rules! operators {
    ($($trait:ident $function:ident $method:ident,)*) => {$(
        impl $trait<&Handle> for &Handle {
            type Output = Result<Handle, Error>;

            #[track_caller]
            fn $function(self, other: &Handle) -> Result<Handle, Error> {
                self.$method(other)
            }
        }
    )*};
}

operators! {
    Add add plus,
    Sub sub minus,
    Mul mul times,
    Div div over,
}

impl Neg for &Handle {
    type Output = Result<Handle, Error>;

    #[track_caller]
    fn neg(self) -> Result<Handle, Error> {
        call("neg", Name::Negate, &[self], &none(), CallSite::here())
    }
}

/// Calls an operation with one result.
fn call(
    method: &str,
    name: Name,
    inputs: &[&Handle],
    attrs: &OpAttrs,
    caller: CallSite,
) -> Result<Handle, Error> {
    let first = inputs[0].eager();
    let eager = inputs.iter().fold(first, |eager: &Eager, input| {
        eager.or_recording(input.eager())
    });
    let eager = eager.latest();
    let (one, two, more);
    let handles: &[&TensorHandle] = match inputs {
        [x] => {
            one = [x.handle()];
            &one
        }
        [x, y] => {
            two = [x.handle(), y.handle()];
            &two
        }
        inputs => {
            more = inputs
                .iter()
                .map(|input| input.handle())
                .collect::<Vec<_>>();
            &more
        }
    };
    make_room(eager.context());
    let result = eager.op_of(name).and_then(|op| {
        let inputs = Inputs::borrowed_each(handles);
        eager.context().call_one(op, inputs, attrs.into(), caller)
    });
    match result {
        Ok(handle) => Ok(eager.wrap(handle)),
        Err(error) => Err(described(method, inputs, error)),
    }
}

/// Adds to an error what the method was called with: `matmul of f32 [2, 3] and f32 [4, 5]: ...`.
#[cold]
pub(super) fn described(method: &str, inputs: &[&Handle], error: Error) -> Error {
    let mut message = format!("{method} of ");
    for (index, input) in inputs.iter().enumerate() {
        let between = match index {
            0 => "",
            index if index + 1 == inputs.len() => " and ",
            _ => ", ",
        };
        message.push_str(between);
        let _infallible = match input.metadata() {
            Some(metadata) => write!(message, "{metadata}"),
            None => write!(message, "a tensor to come"),
        };
    }
    let _infallible = write!(message, ": {}", error.message());
    let mut described = Error::new(error.code(), message);
    if let Some(location) = error.location() {
        described = described.with_location(location.clone());
    }
    if let Some(kernel) = error.kernel() {
        described = described.with_kernel(kernel);
    }
    error.notes().iter().fold(described, |described, note| {
        described.with_note(note.clone())
    })
}
