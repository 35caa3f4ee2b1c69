//! [`AttrValue`]: the value of an attribute.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::DType;
use tfrt_host::kernel::{BF16, Complex, F16};
use tfrt_tensor::{Bool, DenseHostTensor, PartialTensorShape, TensorShape};

use super::Numbers;

/// Number of bytes of a text that are held in place.
const INLINE_BYTES: usize = 24;

/// The value of an attribute.
#[derive(Clone)]
pub enum AttrValue {
    /// A number.
    // Invariant: one.
    Scalar(Numbers),
    /// Numbers of one type.
    List(Numbers),
    /// A type of elements.
    DType(DType),
    /// A text.
    Text(Text),
    /// The name of a function.
    Function(Text),
    /// A shape, parts of which may be unknown.
    Shape(PartialTensorShape),
    /// A tensor.
    Dense(DenseHostTensor),
    /// Values that are not all numbers of one type.
    Aggregate(Arc<[AttrValue]>),
}

impl AttrValue {
    /// Returns whether both values are equal, bit for bit. Tensors and lists of several kinds never are.
    pub(crate) fn is(&self, other: &AttrValue) -> bool {
        match (self, other) {
            (AttrValue::Scalar(own), AttrValue::Scalar(other))
            | (AttrValue::List(own), AttrValue::List(other)) => own == other,
            (AttrValue::DType(own), AttrValue::DType(other)) => own == other,
            (AttrValue::Text(own), AttrValue::Text(other))
            | (AttrValue::Function(own), AttrValue::Function(other)) => own == other,
            (AttrValue::Shape(own), AttrValue::Shape(other)) => own == other,
            _ => false,
        }
    }
}

/// A text that takes no memory if it is short.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(
    // Invariant: UTF-8.
    SmallVec<[u8; INLINE_BYTES]>,
);

impl Text {
    /// Copies a text.
    pub fn new(text: &str) -> Text {
        Text(SmallVec::from_slice(text.as_bytes()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a text was put in")
    }
}

/// Conversion to the value of an attribute, from numbers, arrays and slices of numbers, texts, types, shapes and
/// tensors.
pub trait IntoAttr {
    /// Returns the value.
    fn into_attr(self) -> AttrValue;
}

/// `numbers!(i32)` implements [`IntoAttr`] for `i32`, and for arrays and slices of `i32`.
macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl IntoAttr for $type {
            #[inline]
            fn into_attr(self) -> AttrValue {
                AttrValue::Scalar(Numbers::new(&[self]))
            }
        }

        impl<const N: usize> IntoAttr for [$type; N] {
            #[inline]
            fn into_attr(self) -> AttrValue {
                AttrValue::List(Numbers::new(&self))
            }
        }

        impl IntoAttr for &[$type] {
            #[inline]
            fn into_attr(self) -> AttrValue {
                AttrValue::List(Numbers::new(self))
            }
        }
    )*};
}

numbers!(Bool u8 u16 u32 u64 i8 i16 i32 i64 F16 BF16 f32 f64 Complex<f32> Complex<f64>);

impl IntoAttr for bool {
    #[inline]
    fn into_attr(self) -> AttrValue {
        Bool::from(self).into_attr()
    }
}

impl IntoAttr for &str {
    #[inline]
    fn into_attr(self) -> AttrValue {
        AttrValue::Text(Text::new(self))
    }
}

impl<const N: usize> IntoAttr for [&str; N] {
    fn into_attr(self) -> AttrValue {
        AttrValue::Aggregate(self.map(IntoAttr::into_attr).into())
    }
}

impl IntoAttr for DType {
    #[inline]
    fn into_attr(self) -> AttrValue {
        AttrValue::DType(self)
    }
}

impl<const N: usize> IntoAttr for [DType; N] {
    fn into_attr(self) -> AttrValue {
        AttrValue::Aggregate(self.map(IntoAttr::into_attr).into())
    }
}

impl<const N: usize> IntoAttr for [&TensorShape; N] {
    fn into_attr(self) -> AttrValue {
        AttrValue::Aggregate(self.map(IntoAttr::into_attr).into())
    }
}

impl IntoAttr for &TensorShape {
    fn into_attr(self) -> AttrValue {
        AttrValue::Shape(self.into())
    }
}

impl IntoAttr for PartialTensorShape {
    fn into_attr(self) -> AttrValue {
        AttrValue::Shape(self)
    }
}

impl IntoAttr for DenseHostTensor {
    fn into_attr(self) -> AttrValue {
        AttrValue::Dense(self)
    }
}

impl IntoAttr for AttrValue {
    fn into_attr(self) -> AttrValue {
        self
    }
}

/// Prints the value as messages have it: `i32 1`, `a list of i64 [2, 3]`, `the text 'f32'`.
impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::Scalar(number) => {
                write!(f, "{} ", number.dtype())?;
                number.print_one(0, f)
            }
            AttrValue::List(numbers) => {
                write!(f, "a list of {} ", numbers.dtype())?;
                numbers.print(f)
            }
            AttrValue::DType(dtype) => write!(f, "the type {dtype}"),
            AttrValue::Text(text) => write!(f, "the text '{}'", text.as_str().escape_debug()),
            AttrValue::Function(name) => {
                write!(f, "the function '{}'", name.as_str().escape_debug())
            }
            AttrValue::Shape(shape) => write!(f, "the shape {shape}"),
            AttrValue::Dense(tensor) => write!(f, "a dense tensor of {}", tensor.metadata()),
            AttrValue::Aggregate(children) => write!(f, "a list of {} values", children.len()),
        }
    }
}

impl fmt::Debug for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
