//! [`Numbers`]: the value of an attribute that is a number, or a list of numbers of one type.

use std::fmt;

use smallvec::SmallVec;
use tfrt_host::DType;
use tfrt_tensor::{Element, from_bytes, to_bytes, to_bytes_mut, with_element};

/// Number of words that are held in place: two complex numbers, or eight `i32`.
const INLINE_WORDS: usize = 4;

/// Numbers of one type, which are equal if all their bits are.
#[derive(Clone, PartialEq, Eq)]
pub struct Numbers {
    dtype: DType,
    n: usize,
    // Invariant: begins with the bytes of `n` elements of `dtype`, and has zeros behind them.
    words: SmallVec<[u64; INLINE_WORDS]>,
}

impl Numbers {
    /// Copies these numbers.
    pub fn new<T: Element>(elements: &[T]) -> Numbers {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let bytes = to_bytes(elements);
        let mut words = SmallVec::from_elem(0, bytes.len().div_ceil(size_of::<u64>()));
        to_bytes_mut::<u64>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Numbers {
            dtype: T::DTYPE,
            n: elements.len(),
            words,
        }
    }

    /// Returns the type of the numbers.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Returns the numbers, if they are `T`s.
    #[inline]
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if self.dtype != T::DTYPE {
            return None;
        }
        let bytes = &to_bytes::<u64>(&self.words)[..self.n * size_of::<T>()];
        from_bytes::<T>(bytes).ok()
    }

    /// Returns the numbers, if they are integers that fit 64 bits with a sign.
    pub fn integers(&self) -> Option<SmallVec<[i64; 8]>> {
        /// `widen!(i8 u8)` tries one type after the other.
        macro_rules! widen {
            ($($type:ty)*) => {$(
                if let Some(numbers) = self.as_slice::<$type>() {
                    return numbers.iter().map(|number| i64::try_from(*number).ok()).collect();
                }
            )*};
        }
        widen!(i64 i32 u64 u32 i16 u16 i8 u8);
        None
    }

    /// Writes the number at `index` as tensors of its type are printed.
    pub(super) fn print_one(&self, index: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_element!(self.dtype, T => match self.as_slice::<T>().and_then(|all| all.get(index)) {
            Some(number) => number.print(f),
            None => Ok(()),
        }, else Ok(()))
    }
}

/// `i32 1`, `i64 [2, 3]`
impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.dtype)?;
        self.print(f)
    }
}

impl Numbers {
    /// `[2, 3]`
    pub(super) fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for index in 0..self.n {
            if index > 0 {
                f.write_str(", ")?;
            }
            self.print_one(index, f)?;
        }
        f.write_str("]")
    }
}
