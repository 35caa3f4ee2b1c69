//! Tensors, the values that programs calculate with.
//!
//! | To | Look at |
//! | --- | --- |
//! | say how large a tensor is, and of what | [`TensorShape`], [`TensorMetadata`], [`DType`] |
//! | hold one, of whatever format | [`Tensor`] |
//! | hold numbers in a row | [`DenseHostTensor`]; [`ScalarHostTensor`] if all are equal, [`CooHostTensor`] if most are 0 |
//! | hold numbers to which more are appended | [`GrowableTensor`] |
//! | hold strings | [`StringHostTensor`] |
//! | hold several, or perhaps none | [`Sequence`], [`Optional`] |
//! | hold what is no number | [`ObjectTensor`] |
//! | hold what changes, for several at once | [`resource`] |
//! | read and write elements | [`DenseHostTensor::read`], [`DenseHostTensor::write`], [`TensorView`] |
//! | go from format to format | [`convert`] |
//! | store numbers in 8 bits or 4 | [`subbyte`] |
//! | do something for whatever type elements are of | [`with_element!`], [`with_number!`], [`with_real!`], [`with_floating!`], [`with_integer!`] |
//! | compare | [`compare`] |
//! | calculate | [`math`] |
//! | take elements as an attribute of a kernel | [`attribute`] |
//! | read and write files | [`btf`], [`npy`], [`npz`], [`safetensors`] |
//!
//! # Memory
//!
//! A dense tensor is metadata and a [`HostBuffer`](tfrt_host::memory::HostBuffer), which others may
//! share: reshaped tensors, slices, whoever fills it in place. Elements are lent for as long as somebody
//! looks at them; who would write what another reads is refused. So a program whose chains don't order
//! its writes gets an error, and never a torn value.
//!
//! # Errors
//!
//! `InvalidArgument` for shapes, types and indexes that don't fit, `ResourceExhausted` where memory is
//! missing, `FailedPrecondition` for a buffer in use.

#![deny(unsafe_code)]

pub mod attribute;
pub mod btf;
pub mod codec;
pub mod compare;
pub mod convert;
mod coo;
mod dense;
mod device;
#[allow(unsafe_code, reason = "a listed module")]
mod element;
mod fixed;
mod growable;
pub mod math;
mod metadata;
pub mod npy;
pub mod npz;
mod object;
pub mod op;
pub mod resource;
pub mod safetensors;
mod scalar;
mod shape;
mod strings;
pub mod subbyte;
mod tensor;
mod text;
mod transfer;
mod values;
mod view;

pub use coo::CooHostTensor;
pub use dense::{DenseHostTensor, DenseReading, DenseWriting};
pub use device::DeviceTensor;
pub use element::{
    Bool, Element, F4E2M1, F6E2M3, F6E3M2, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ,
    F8E5M2, F8E5M2FNUZ, F8E8M0, I2, I4, Quantized, Small, Ui2, Ui4, from_bytes, from_bytes_mut,
    to_bytes, to_bytes_mut,
};
pub use fixed::FixedRankShape;
pub use growable::GrowableTensor;
pub use metadata::TensorMetadata;
pub use object::{Object, ObjectTensor};
pub use scalar::ScalarHostTensor;
pub use shape::{Dims, MAX_RANK, PartialTensorShape, TensorShape};
pub use strings::StringHostTensor;
pub use tensor::{Tensor, TensorFormat};
pub use tfrt_host::DType;
pub use tfrt_host::kernel::{BF16, Complex, F16};
pub use transfer::{allocate_on, default_format, device_of, transfer};
pub use values::{Map, Maps, NoValue, Optional, Sequence};
pub use view::{TensorView, TensorViewMut};
