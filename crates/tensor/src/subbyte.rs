//! [`SubbyteTensor`]: integers of 4 bits and 2 and floats of 8, 6 and 4, as storage: nothing is calculated with them
//! but by way of `f32`.
//!
//! | Type | Sign, exponent, mantissa | Bias | Largest | Not a number | Infinity |
//! | --- | --- | --- | --- | --- | --- |
//! | [`F8E4M3FN`](SubbyteType::F8E4M3FN) | 1 4 3 | 7 | 448 | `S.1111.111` | none |
//! | [`F8E4M3FNUZ`](SubbyteType::F8E4M3FNUZ) | 1 4 3 | 8 | 240 | `1.0000.000`, so no -0 | none |
//! | [`F8E5M2`](SubbyteType::F8E5M2) | 1 5 2 | 15 | 57344 | `S.11111` and a mantissa | `S.11111.00` |
//! | [`F8E5M2FNUZ`](SubbyteType::F8E5M2FNUZ) | 1 5 2 | 16 | 57344 | `1.00000.00`, so no -0 | none |
//! | [`F8E8M0`](SubbyteType::F8E8M0) | 0 8 0 | 127 | 2^127 | `11111111` | none, and no 0 |
//! | [`F4E2M1`](SubbyteType::F4E2M1) | 1 2 1 | 1 | 6 | none | none |
//! | [`F8E3M4`](SubbyteType::F8E3M4) | 1 3 4 | 3 | 15.5 | `S.111` and a mantissa | `S.111.0000` |
//! | [`F8E4M3`](SubbyteType::F8E4M3) | 1 4 3 | 7 | 240 | `S.1111` and a mantissa | `S.1111.000` |
//! | [`F8E4M3B11FNUZ`](SubbyteType::F8E4M3B11FNUZ) | 1 4 3 | 11 | 30 | `1.0000.000`, so no -0 | none |
//! | [`F6E2M3`](SubbyteType::F6E2M3) | 1 2 3 | 1 | 7.5 | none | none |
//! | [`F6E3M2`](SubbyteType::F6E3M2) | 1 3 2 | 3 | 28 | none | none |
//! | [`I4`](SubbyteType::I4), [`Ui4`](SubbyteType::Ui4) | two's complement, or without sign | | 7, 15 | | |
//! | [`I2`](SubbyteType::I2), [`Ui2`](SubbyteType::Ui2) | the same | | 1, 3 | | |
//!
//! Of elements of 4 or 2 bits in a byte the first has the low ones; what is left of the last byte is 0.
//! In a [`DenseHostTensor`] each element has a byte of its own ([`Small`](crate::Small)).
//! This is ONNX's way, and that of [`safetensors`](crate::safetensors), which has those floats that machines multiply. Files of
//! NumPy have no name for any of these types.

use std::fmt::Write;
use std::sync::Arc;

use tfrt_host::memory::HostBuffer;
use tfrt_host::{DType, Error, HostAllocator};

use crate::text::{self, MAX_PRINTED};
use crate::{DenseHostTensor, TensorShape};

mod codes;

/// A type of which a [`SubbyteTensor`] is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubbyteType {
    /// -8 to 7.
    I4,
    /// 0 to 15.
    Ui4,
    /// 4 bits of exponent, finite except for one NaN of each sign.
    F8E4M3FN,
    /// 4 bits of exponent, finite, one zero.
    F8E4M3FNUZ,
    /// 5 bits of exponent, with infinities: half of an `f16`.
    F8E5M2,
    /// 5 bits of exponent, finite, one zero.
    F8E5M2FNUZ,
    /// Powers of two.
    F8E8M0,
    /// 0, 0.5, 1, 1.5, 2, 3, 4, 6, and their negatives.
    F4E2M1,
    /// -2 to 1.
    I2,
    /// 0 to 3.
    Ui2,
    /// 3 bits of exponent, with infinities.
    F8E3M4,
    /// 4 bits of exponent, with infinities.
    F8E4M3,
    /// 4 bits of exponent of bias 11, finite, one zero.
    F8E4M3B11FNUZ,
    /// 2 bits of exponent and 3 of mantissa, finite.
    F6E2M3,
    /// 3 bits of exponent and 2 of mantissa, finite.
    F6E3M2,
}

/// Treatment of numbers that are larger than the largest of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The largest number. In types without infinity and -0, an infinity becomes NaN.
    #[default]
    Saturate,
    /// Infinity if the type has it, else NaN, if the type has that.
    Escape,
}

impl SubbyteType {
    /// All types.
    pub const ALL: [SubbyteType; 15] = [
        SubbyteType::I4,
        SubbyteType::Ui4,
        SubbyteType::F8E4M3FN,
        SubbyteType::F8E4M3FNUZ,
        SubbyteType::F8E5M2,
        SubbyteType::F8E5M2FNUZ,
        SubbyteType::F8E8M0,
        SubbyteType::F4E2M1,
        SubbyteType::I2,
        SubbyteType::Ui2,
        SubbyteType::F8E3M4,
        SubbyteType::F8E4M3,
        SubbyteType::F8E4M3B11FNUZ,
        SubbyteType::F6E2M3,
        SubbyteType::F6E3M2,
    ];

    /// Returns the type of the elements of dense tensors of this type.
    pub const fn dtype(self) -> DType {
        match self {
            SubbyteType::I4 => DType::I4,
            SubbyteType::Ui4 => DType::Ui4,
            SubbyteType::F8E4M3FN => DType::F8E4M3FN,
            SubbyteType::F8E4M3FNUZ => DType::F8E4M3FNUZ,
            SubbyteType::F8E5M2 => DType::F8E5M2,
            SubbyteType::F8E5M2FNUZ => DType::F8E5M2FNUZ,
            SubbyteType::F8E8M0 => DType::F8E8M0,
            SubbyteType::F4E2M1 => DType::F4E2M1,
            SubbyteType::I2 => DType::I2,
            SubbyteType::Ui2 => DType::Ui2,
            SubbyteType::F8E3M4 => DType::F8E3M4,
            SubbyteType::F8E4M3 => DType::F8E4M3,
            SubbyteType::F8E4M3B11FNUZ => DType::F8E4M3B11FNUZ,
            SubbyteType::F6E2M3 => DType::F6E2M3,
            SubbyteType::F6E3M2 => DType::F6E3M2,
        }
    }

    /// Returns the type whose elements a dense tensor of `dtype` has, if they are small ones.
    pub fn of_dtype(dtype: DType) -> Option<SubbyteType> {
        SubbyteType::ALL
            .into_iter()
            .find(|one| one.dtype() == dtype)
    }

    /// Returns whether the numbers are integers.
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            SubbyteType::I4 | SubbyteType::Ui4 | SubbyteType::I2 | SubbyteType::Ui2
        )
    }

    /// Returns whether a code of the type is no number.
    pub fn has_nan(self) -> bool {
        let finite = [
            SubbyteType::F4E2M1,
            SubbyteType::F6E2M3,
            SubbyteType::F6E3M2,
        ];
        !self.is_integer() && !finite.contains(&self)
    }

    /// Returns the bits of an element.
    pub fn n_bits(self) -> usize {
        match self {
            SubbyteType::I4 | SubbyteType::Ui4 | SubbyteType::F4E2M1 => 4,
            SubbyteType::I2 | SubbyteType::Ui2 => 2,
            SubbyteType::F6E2M3 | SubbyteType::F6E3M2 => 6,
            _ => 8,
        }
    }

    /// Returns the name that tensors are printed with.
    pub fn name(self) -> &'static str {
        match self {
            SubbyteType::I4 => "i4",
            SubbyteType::Ui4 => "u4",
            SubbyteType::F8E4M3FN => "f8e4m3fn",
            SubbyteType::F8E4M3FNUZ => "f8e4m3fnuz",
            SubbyteType::F8E5M2 => "f8e5m2",
            SubbyteType::F8E5M2FNUZ => "f8e5m2fnuz",
            SubbyteType::F8E8M0 => "f8e8m0",
            SubbyteType::F4E2M1 => "f4e2m1",
            SubbyteType::I2 => "i2",
            SubbyteType::Ui2 => "u2",
            SubbyteType::F8E3M4 => "f8e3m4",
            SubbyteType::F8E4M3 => "f8e4m3",
            SubbyteType::F8E4M3B11FNUZ => "f8e4m3b11fnuz",
            SubbyteType::F6E2M3 => "f6e2m3",
            SubbyteType::F6E3M2 => "f6e3m2",
        }
    }

    /// Returns the number of bytes of `n_elements` elements.
    pub fn len_bytes(self, n_elements: usize) -> usize {
        n_elements.div_ceil(8 / self.n_bits())
    }

    /// Returns the number of a code; every such number is an `f32`. Of codes below 8 bits the upper bits are ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::subbyte::SubbyteType;
    ///
    /// assert_eq!(SubbyteType::F8E4M3FN.decode(0x7e), 448.0);
    /// assert_eq!(SubbyteType::I4.decode(0xf), -1.0);
    /// ```
    pub fn decode(self, code: u8) -> f32 {
        codes::decode(self, code)
    }

    /// Returns the code of the nearest number, of two as near that with an even code.
    ///
    /// NaN becomes NaN, or the largest (`F4E2M1`), or 0 (integers). Integers are rounded and
    /// saturate, as when numbers are quantised. Of `F8E8M0` the code is that of the next power of two above, as
    /// ONNX rounds unless told otherwise; numbers below the least get that, and negative ones are none.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::subbyte::{SubbyteType, Overflow};
    ///
    /// assert_eq!(SubbyteType::F8E5M2.encode(1e9, Overflow::Saturate), 0x7b);
    /// assert_eq!(SubbyteType::F8E5M2.encode(1e9, Overflow::Escape), 0x7c);
    /// ```
    pub fn encode(self, value: f32, overflow: Overflow) -> u8 {
        codes::encode(self, value, overflow)
    }

    /// Writes the numbers of elements from the `first` on; numbers beyond the bytes are left as they are.
    pub fn unpack(self, bytes: &[u8], first: usize, out: &mut [f32]) {
        let numbers: [f32; 256] = std::array::from_fn(|code| {
            self.decode(u8::try_from(code).expect("there are 256 codes"))
        });
        for (index, out) in out.iter_mut().enumerate() {
            let Some(code) = self.code(bytes, first.saturating_add(index)) else {
                return;
            };
            *out = numbers[usize::from(code)];
        }
    }

    /// Returns the bytes of elements.
    pub fn pack(self, values: &[f32], overflow: Overflow) -> Vec<u8> {
        let code = |value: &f32| self.encode(*value, overflow);
        let n_bits = self.n_bits();
        let byte = |part: &[f32]| {
            let codes = part.iter().enumerate();
            codes.fold(0, |byte, (index, value)| {
                byte | code(value) << (index * n_bits)
            })
        };
        values.chunks(8 / n_bits).map(byte).collect()
    }

    /// Returns the code of an element, if there are so many.
    fn code(self, bytes: &[u8], index: usize) -> Option<u8> {
        let (n_bits, n_in_byte) = (self.n_bits(), 8 / self.n_bits());
        let byte = bytes.get(index / n_in_byte)?;
        Some((byte >> (n_bits * (index % n_in_byte))) & (u8::MAX >> (8 - n_bits)))
    }
}

/// Elements of a [`SubbyteType`] in row-major order, in a buffer of the host. Clones share it.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::DenseHostTensor;
/// use tfrt_tensor::subbyte::{SubbyteTensor, SubbyteType, Overflow};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let numbers = DenseHostTensor::from_slice(host.allocator(), &[3], &[0.3_f32, -1.2, 100.0])?;
/// let dtype = SubbyteType::F4E2M1;
/// let small = SubbyteTensor::of(&numbers, dtype, Overflow::Saturate, host.allocator())?;
/// assert_eq!(small.buffer().len_bytes(), 2);
/// let back = small.to_dense(host.allocator())?;
/// assert_eq!(back.read()?.elements::<f32>()?, [0.5, -1.0, 6.0]);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SubbyteTensor {
    dtype: SubbyteType,
    shape: TensorShape,
    // Invariant: as many bytes as the elements take.
    buffer: HostBuffer,
}

impl SubbyteTensor {
    /// Wraps a buffer as a tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the buffer does not have as many bytes as the elements take.
    pub fn new(dtype: SubbyteType, shape: TensorShape, buffer: HostBuffer) -> Result<Self, Error> {
        let wanted = shape.n_elements().map(|n| dtype.len_bytes(n));
        if wanted != Some(buffer.len_bytes()) {
            let (name, found) = (dtype.name(), buffer.len_bytes());
            let wanted = wanted.map_or("more than any memory has".to_owned(), |n| n.to_string());
            return Err(Error::invalid_argument(format!(
                "a tensor of {name} {shape} takes {wanted} bytes, the buffer has {found}"
            )));
        }
        Ok(SubbyteTensor {
            dtype,
            shape,
            buffer,
        })
    }

    /// Converts a tensor of `f32`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another type, `FailedPrecondition` if somebody is writing it,
    /// `ResourceExhausted` if there is no memory for the result.
    pub fn of(
        tensor: &DenseHostTensor,
        dtype: SubbyteType,
        overflow: Overflow,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Self, Error> {
        let bytes = dtype.pack(tensor.read()?.elements::<f32>()?, overflow);
        Self::from_bytes(dtype, tensor.shape().clone(), &bytes, allocator)
    }

    /// Returns a tensor of these bytes.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and `ResourceExhausted` if there is no memory for them.
    pub fn from_bytes(
        dtype: SubbyteType,
        shape: TensorShape,
        bytes: &[u8],
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Self, Error> {
        let buffer = HostBuffer::copy_of(allocator, bytes).ok_or_else(|| {
            let name = dtype.name();
            Error::resource_exhausted(format!("Cannot allocate tensor of {name} {shape}"))
        })?;
        Self::new(dtype, shape, buffer)
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> SubbyteType {
        self.dtype
    }

    /// Returns the extents.
    pub fn shape(&self) -> &TensorShape {
        &self.shape
    }

    /// Returns the bytes behind the elements.
    pub fn buffer(&self) -> &HostBuffer {
        &self.buffer
    }

    /// Returns the number of elements.
    pub fn n_elements(&self) -> usize {
        self.shape.n_elements().unwrap_or(0)
    }

    /// Converts to `f32`, which has all numbers of all types.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing the bytes, `InvalidArgument` or `ResourceExhausted` if there
    /// is no memory for the result.
    pub fn to_dense(&self, allocator: &Arc<dyn HostAllocator>) -> Result<DenseHostTensor, Error> {
        let metadata = crate::TensorMetadata::new(DType::F32, self.shape.clone());
        let dense = DenseHostTensor::zeroed(allocator, metadata)?;
        let bytes = self.buffer.read()?;
        self.dtype.unpack(&bytes, 0, dense.write()?.elements_mut()?);
        Ok(dense)
    }

    /// Returns the tensor as it is printed: `SubbyteTensor dtype = i4, shape = [2], values = [-8, 7]`. Of more
    /// than 16 elements the first 16 are shown.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if somebody is writing the bytes.
    pub fn to_text(&self) -> Result<String, Error> {
        let bytes = self.buffer.read()?;
        let mut numbers = vec![0.0; self.n_elements().min(MAX_PRINTED)];
        self.dtype.unpack(&bytes, 0, &mut numbers);
        let (name, shape) = (self.dtype.name(), &self.shape);
        let mut line = format!("CompactTensor dtype = {name}, shape = {shape}, values = [");
        for (index, number) in numbers.iter().enumerate() {
            line.push_str(if index > 0 { ", " } else { "" });
            match self.dtype {
                integer if integer.is_integer() => write!(line, "{number}"),
                _ => text::exponential((*number).into(), &mut line),
            }
            .expect("a string takes all");
        }
        let is_all = numbers.len() == self.n_elements();
        line.push_str(if is_all { "]" } else { ", ... ]" });
        Ok(line)
    }
}

#[cfg(test)]
mod tests;
