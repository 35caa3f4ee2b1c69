//! `--random`: elements from a seed, the same on every machine.
//!
//! Floats are equally likely from -1 to 1. Integers of 8 bits and less are any; larger ones are 0 or
//! 1, since they tend to be indexes or masks, of which these are always some. Strings are letters.

use std::sync::Arc;

use tfrt::HostAllocator;
use tfrt::host::memory::Block;
use tfrt::kernels::tensor::strings::MAX_STRINGS;
use tfrt::model::{Datum, Dim, TensorType, ValueInfo, ValueType};
use tfrt::tensor::{DType, Sequence, StringHostTensor, TensorShape};

use super::json::some;
use super::numbers::{self, Kind};
use super::scalars::Scalar;

/// The most elements of a tensor that is generated.
const MAX_ELEMENTS: usize = 1 << 30;

/// The bytes of a string of one letter, with its block on the heap.
const BYTES_PER_STRING: usize = size_of::<Vec<u8>>() + 32;

/// Generates a value for an input, whose extents without a number are those of `extent_of`, or 1.
///
/// # Errors
///
/// Why there can't be one.
pub fn generate(
    input: &ValueInfo,
    seed: u64,
    extent_of: &dyn Fn(&str) -> Option<usize>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Datum, String> {
    // By the name, so that an input has the same elements whatever else a model takes.
    let begin = Generator(seed).next();
    let named = input.name.bytes().fold(begin, |state, byte| {
        Generator(state ^ u64::from(byte)).next()
    });
    of_type(&input.kind, &mut Generator(named), extent_of, allocator)
}

fn of_type(
    kind: &ValueType,
    generator: &mut Generator,
    extent_of: &dyn Fn(&str) -> Option<usize>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Datum, String> {
    match kind {
        ValueType::Tensor(tensor) => of_tensor(tensor, generator, extent_of, allocator),
        ValueType::Sequence(inner) => {
            let Datum::Tensor(one) = of_type(inner, generator, extent_of, allocator)? else {
                return Err(format!("{kind} can't be generated"));
            };
            Ok(Sequence::from(vec![one]).into())
        }
        ValueType::Map(..) => Err(format!("{kind} can't be generated: give one with --input")),
        ValueType::Optional(inner) => Ok(some(of_type(inner, generator, extent_of, allocator)?)),
    }
}

fn of_tensor(
    tensor: &TensorType,
    generator: &mut Generator,
    extent_of: &dyn Fn(&str) -> Option<usize>,
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Datum, String> {
    let Some(dims) = &tensor.dims else {
        let element = tensor.element.map(|element| format!(" of {element}"));
        let element = element.unwrap_or_default();
        return Err(format!(
            "a tensor{element} of unknown rank can't be generated: give one with --input"
        ));
    };
    let element = tensor.element.unwrap_or(DType::F32);
    let extents = dims.iter().map(|dim| match dim {
        Dim::Fixed(extent) => *extent,
        Dim::Symbol(name) => extent_of(name).unwrap_or(1),
        Dim::Unknown => 1,
    });
    let extents: Vec<usize> = extents.collect();
    let n_elements = extents
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    let Some(n_elements) = n_elements.filter(|n| *n <= MAX_ELEMENTS) else {
        return Err(format!(
            "a tensor of shape {extents:?} has more than {MAX_ELEMENTS} elements"
        ));
    };
    let told = |error: tfrt::Error| error.message().to_owned();
    let shape = TensorShape::new(&extents).map_err(told)?;
    // What is made goes to the heap first: whoever limits memory is asked before it is taken.
    let no_memory = || format!("there is no memory for a tensor of {element} {extents:?}");
    let set_aside = |n_each: usize| {
        let n_bytes = n_elements.checked_mul(n_each).ok_or_else(no_memory)?;
        Block::reserve(allocator, n_bytes).ok_or_else(no_memory)
    };
    if element == DType::String {
        if n_elements > MAX_STRINGS {
            return Err(no_memory());
        }
        let _aside = set_aside(BYTES_PER_STRING)?;
        let letter = |_| vec![b'a' + u8::try_from(generator.below(26)).unwrap_or(0)];
        let strings = (0..n_elements).map(letter).collect();
        return Ok(StringHostTensor::new(shape, strings).map_err(told)?.into());
    }
    let aside = set_aside(element.size_bytes().unwrap_or(1))?;
    let mut bytes = Vec::new();
    for _ in 0..n_elements {
        numbers::push(&mut bytes, element, &cell(element, generator))?;
    }
    drop(aside);
    Ok(numbers::dense(element, shape, &bytes, allocator)?.into())
}

fn cell(element: DType, generator: &mut Generator) -> Scalar {
    match numbers::kind(element) {
        Kind::Float => Scalar::Double(generator.signed_unit()),
        Kind::Complex => Scalar::Complex(generator.signed_unit(), generator.signed_unit()),
        Kind::Truth => Scalar::Truth(generator.below(2) == 1),
        Kind::Text => Scalar::Text(Vec::new()),
        Kind::Integer => {
            let (first, n) = numbers::small_range(element).unwrap_or((0, 2));
            Scalar::Integer(first + i128::from(generator.below(n)))
        }
    }
}

/// A generator of random numbers: SplitMix64, by Guy Steele, Doug Lea and Christine Flood (OOPSLA 2014).
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `n`, which is small.
    fn below(&mut self, n: u64) -> u64 {
        ((self.next() >> 32) * n) >> 32
    }

    /// Returns a number from -1 to 1.
    #[allow(clippy::cast_precision_loss, reason = "53 bits are a float's")]
    fn signed_unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (2.0 / (1_u64 << 53) as f64) - 1.0
    }
}
