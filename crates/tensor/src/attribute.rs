//! [`Values`]: a kernel parameter that lists elements of tensors, from an attribute.

use crate::{BF16, Bool, Complex, Element, F16, from_bytes, to_bytes};
use tfrt_host::Error;
use tfrt_host::kernel::param::{HeldAttribute, kinds};
use tfrt_host::kernel::{
    AttributeSpec, AttributeView, KernelFrame, KernelParam, Mismatch, Part, ScalarAttr,
};

/// A type of elements that attributes can list.
pub trait AttrElement: Element {
    /// Type of the numbers in the list: the elements, or their real and imaginary parts in turn. Its bytes are those
    /// of the elements.
    type Part: ScalarAttr + Element;
    /// Name of the list in signatures.
    const KIND: &'static str;
    /// Number of parts of an element.
    const N_PARTS: usize = size_of::<Self>() / size_of::<Self::Part>();
}

/// `listed!(Bool: u8 "array of i1")` says that a list of truth values is bytes.
macro_rules! listed {
    ($($type:ty: $part:ty, $kind:literal;)*) => {$(
        impl AttrElement for $type {
            type Part = $part;
            const KIND: &'static str = $kind;
        }
    )*};
}

listed! {
    u8: u8, "array of ui8";
    u16: u16, "array of ui16";
    u32: u32, "array of ui32";
    u64: u64, "array of ui64";
    i8: i8, "array of i8";
    i16: i16, "array of i16";
    i32: i32, "array of i32";
    i64: i64, "array of i64";
    F16: u16, "array of f16";
    BF16: u16, "array of bf16";
    f32: f32, "array of f32";
    f64: f64, "array of f64";
    Bool: u8, "array of i1";
    Complex<f32>: f32, "array of f32";
    Complex<f64>: f64, "array of f64";
}

/// A kernel parameter: a list of elements.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a, T: AttrElement>(&'a [T::Part]);

impl<'a, T: AttrElement> Values<'a, T> {
    /// Returns the elements, of which there are `n`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are more or fewer.
    pub fn expect(self, n: usize) -> Result<&'a [T], Error> {
        let (found, wanted) = (self.0.len(), n.saturating_mul(T::N_PARTS));
        if found != wanted {
            return Err(wrong_count(found, wanted, T::N_PARTS > 1));
        }
        self.elements()
    }

    /// Returns the one element that this is, if it is one.
    pub fn single(self) -> Result<Option<T>, Error> {
        match self.0.len() == T::N_PARTS {
            true => Ok(self.elements()?.first().copied()),
            false => Ok(None),
        }
    }

    /// Returns the number of parts.
    pub fn n_parts(self) -> usize {
        self.0.len()
    }

    fn elements(self) -> Result<&'a [T], Error> {
        from_bytes(to_bytes(self.0))
    }
}

/// Returns the error for a list with more or fewer numbers than a tensor has elements.
#[cold]
pub fn wrong_count(found: usize, wanted: usize, is_complex: bool) -> Error {
    let (values, tensor) = match is_complex {
        true => ("real and imaginary values", "complex tensor"),
        false => ("values", "tensor"),
    };
    Error::invalid_argument(format!(
        "Incorrect number of {values} for the {tensor}: {found}, but expected {wanted}"
    ))
}

impl<T: AttrElement> KernelParam<kinds::Itself> for Values<'_, T> {
    type Guard<'f> = HeldAttribute;
    type Item<'a> = Values<'a, T>;

    const PART: &'static Part = &Part::Attribute(AttributeSpec {
        kind: T::KIND,
        readable: |view| read::<T>(view).is_some(),
    });

    fn take(frame: &mut KernelFrame<'_, '_>) -> Result<HeldAttribute, Mismatch> {
        frame.hold_attribute(T::KIND, |view| read::<T>(view).is_some())
    }

    fn item<'a>(guard: &'a mut HeldAttribute) -> Values<'a, T> {
        Values(read::<T>(guard.view()).expect("take() read it"))
    }
}

fn read<T: AttrElement>(view: AttributeView<'_>) -> Option<&[T::Part]> {
    T::Part::read_array(view)
}
