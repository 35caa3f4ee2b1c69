//! [`Argument`] and [`Arguments`]: the values that a function can be called with.

use tfrt_host::{AnyAsyncValue, AsyncValue, Chain, Value};

/// Something that can be one argument: a scalar, a string, a chain, or an async value of any type.
///
/// A value of a type of one's own is passed as `AsyncValue::available(value)`.
///
/// # Examples
///
/// A value to come is an argument like any other:
///
/// ```
/// use tfrt::{AsyncValue, Runtime};
///
/// let runtime = Runtime::new();
/// let program = runtime.compile("sum.mlir", "func.func @sum(%x: i32, %y: i32) -> i32 {
///   %z = tfrt.add.i32 %x, %y
///   tfrt.return %z : i32
/// }")?;
/// let (promise, y) = AsyncValue::<i32>::pending();
/// let call = program.function("sum").unwrap().call(&runtime.context(), (40, y));
/// promise.resolve(2);
/// assert_eq!(*call.wait()?.get::<i32>(0)?, 42);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be an argument as it is",
    note = "pass a value of a type of your own as `AsyncValue::available(value)`"
)]
pub trait Argument {
    /// Converts the argument to the value that the function reads.
    fn into_argument(self) -> AnyAsyncValue;
}

impl Argument for AnyAsyncValue {
    fn into_argument(self) -> AnyAsyncValue {
        self
    }
}

impl<T: Value> Argument for AsyncValue<T> {
    fn into_argument(self) -> AnyAsyncValue {
        self.into_any()
    }
}

impl Argument for &str {
    fn into_argument(self) -> AnyAsyncValue {
        AnyAsyncValue::new(self.to_owned())
    }
}

/// Repeats `impl Argument for i32 { .. AnyAsyncValue::new(self) .. }` over types of values.
macro_rules! scalar_arguments {
    ($($scalar:ty)*) => {$(
        impl Argument for $scalar {
            fn into_argument(self) -> AnyAsyncValue {
                AnyAsyncValue::new(self)
            }
        }
    )*};
}

scalar_arguments!(bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 String Chain);

/// The arguments of a call: a tuple of [`Argument`]s, or a vector.
///
/// # Examples
///
/// ```
/// use tfrt::{Arguments, AsyncValue};
///
/// let arguments = (1, 2.5f32, AsyncValue::available(true)).into_arguments();
/// assert_eq!(arguments.len(), 3);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the arguments of a call",
    note = "arguments are a tuple: `()`, `(x,)`, `(x, y)`"
)]
pub trait Arguments {
    /// Converts the arguments to the values that the function reads.
    fn into_arguments(self) -> Vec<AnyAsyncValue>;
}

impl Arguments for Vec<AnyAsyncValue> {
    fn into_arguments(self) -> Vec<AnyAsyncValue> {
        self
    }
}

/// Repeats `impl<A: Argument, B: Argument> Arguments for (A, B) { .. }` over lengths.
macro_rules! tuple_arguments {
    ($($name:ident)*) => {
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            fn into_arguments(self) -> Vec<AnyAsyncValue> {
                #[allow(non_snake_case, reason = "each variable is named after its type")]
                let ($($name,)*) = self;
                vec![$($name.into_argument()),*]
            }
        }
    };
}

tuple_arguments!();
tuple_arguments!(A);
tuple_arguments!(A B);
tuple_arguments!(A B C);
tuple_arguments!(A B C D);
tuple_arguments!(A B C D E);
tuple_arguments!(A B C D E F);
tuple_arguments!(A B C D E F G);
tuple_arguments!(A B C D E F G H);
