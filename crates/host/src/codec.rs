//! [`ValueCodec`]: the serialization of values of one type to bytes, to be kept in a file or sent.
//!
//! A codec is found by its type's name and its version. It gives a *head*, a few bytes that it writes field by
//! field, and *parts*, large runs of bytes that stay where they are: handles of [`HostBuffer`]s. Both together
//! are an [`EncodedValue`], which has two forms:
//!
//! | Form | Is for | How |
//! | --- | --- | --- |
//! | one buffer | files, mappings, receive buffers | [`EncodedValue::to_buffer`], [`EncodedValue::from_buffer`] |
//! | pieces | vectored writes | [`EncodedValue::read`], then [`EncodedReading::pieces`] |
//!
//! Nothing is copied on either side but the head: parts begin at multiples of [`PART_ALIGNMENT`], so that a
//! value may keep its part of a mapped file.
//!
//! # Invariants
//!
//! * Bytes that are decoded may be anything. A decoder fails, and never panics; what it allocates is bounded by the
//!   bytes that it was given, or comes from the allocator of the [`DecodeContext`].
//! * There is one way to write a value: what decodes gives the same bytes again.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tfrt_async::{AnyAsyncValue, Error, HostAllocator, Value};

use crate::HostContext;
use crate::kernel::KernelRegistry;
use crate::memory::HostBuffer;

mod decoder;
mod encoder;
mod form;
mod plain;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use form::{EncodedReading, PART_ALIGNMENT};
pub(crate) use plain::CODECS as PLAIN;

/// A function that writes a value, which is there and of the codec's type, to an encoder.
pub type EncodeFn = fn(&AnyAsyncValue, &mut Encoder) -> Result<(), Error>;

/// A function that reads a value of the codec's type, from bytes that may be anything.
pub type DecodeFn = fn(&mut Decoder<'_>, &DecodeContext<'_>) -> Result<AnyAsyncValue, Error>;

/// A codec of one type's values: it writes them as bytes, and reads them.
///
/// # Examples
///
/// ```
/// use tfrt_host::codec::{DecodeContext, Decoder, Encoder, ValueCodec, expect};
/// use tfrt_host::{AnyAsyncValue, Error, Heap, HostContext, Value, kernel::KernelRegistry};
///
/// struct Celsius(f64);
///
/// impl Value for Celsius {
///     const NAME: &'static str = "!my.celsius";
///     type Storage = Heap;
/// }
///
/// fn encode(value: &AnyAsyncValue, encoder: &mut Encoder) -> Result<(), Error> {
///     encoder.bytes(&expect::<Celsius>(value)?.0.to_le_bytes());
///     Ok(())
/// }
///
/// fn decode(decoder: &mut Decoder<'_>, _: &DecodeContext<'_>) -> Result<AnyAsyncValue, Error> {
///     Ok(AnyAsyncValue::new(Celsius(f64::from_le_bytes(decoder.array()?))))
/// }
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// host.codecs().add(&[ValueCodec { type_name: Celsius::NAME, version: 1, encode, decode }])?;
///
/// let encoded = host.codecs().encode(&AnyAsyncValue::new(Celsius(20.0)), host.allocator())?;
/// let file = encoded.to_buffer(host.allocator())?;
/// let again = host.codecs().decode_buffer(&file, &DecodeContext::new(&host))?;
/// assert_eq!(again.get::<Celsius>().unwrap().0, 20.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct ValueCodec {
    /// The name of the type, [`Value::NAME`].
    pub type_name: &'static str,
    /// The version of the encoding. A host may have codecs of several versions of a type: it writes the newest, and
    /// reads all.
    pub version: u32,
    /// The function that writes a value.
    pub encode: EncodeFn,
    /// The function that reads a value.
    pub decode: DecodeFn,
}

/// Writes `!t.tensor, version 1`.
impl fmt::Display for ValueCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, version {}", self.type_name, self.version)
    }
}

impl fmt::Debug for ValueCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueCodec({self})")
    }
}

/// The codecs of a host: those of its kernels' types ([`KernelRegistry::add_codecs`]), and whatever was added since.
#[derive(Debug)]
pub struct Codecs(
    // Invariant: in the order of names, then of versions; no two have both in common.
    RwLock<Vec<ValueCodec>>,
);

impl Codecs {
    /// Lists the codecs of plain types and of a registry's.
    pub(crate) fn of(registry: &KernelRegistry) -> Codecs {
        let codecs = Codecs(RwLock::default());
        for list in std::iter::once(PLAIN).chain(registry.codecs()) {
            codecs.add(list).expect("the registry refuses duplicates");
        }
        codecs
    }

    /// Adds codecs: all, or none if one can't be.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is a codec of the same type and version.
    pub fn add(&self, more: &[ValueCodec]) -> Result<(), Error> {
        let mut codecs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = codecs.clone();
        for codec in more {
            match find(&all, codec.type_name, codec.version) {
                Ok(_) => return Err(Error::already_exists(format!("two codecs of {codec}"))),
                Err(index) => all.insert(index, *codec),
            }
        }
        *codecs = all;
        Ok(())
    }

    /// Returns the codec of a type's name and a version.
    pub fn get(&self, type_name: &str, version: u32) -> Option<ValueCodec> {
        let codecs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let index = find(&codecs, type_name, version).ok()?;
        Some(codecs[index])
    }

    /// Returns the codec that writes values of a type: that of the newest version.
    pub fn newest(&self, type_name: &str) -> Option<ValueCodec> {
        let codecs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut own = codecs.iter().rev();
        own.find(|codec| codec.type_name == type_name).copied()
    }

    /// Returns all codecs, in the order of names, then of versions.
    pub fn list(&self) -> Vec<ValueCodec> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Encodes a value. Memory that a codec makes for it comes from the allocator.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` for a value that is still to come, `InvalidArgument` for one whose type has no codec; the
    /// error of a value that failed; and those of the codec.
    pub fn encode(
        &self,
        value: &AnyAsyncValue,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<EncodedValue, Error> {
        self.encode_with(value, Encoder::new(allocator))
    }

    /// Encodes a value with an encoder that was made for it; see [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// Those of [`encode`](Self::encode).
    pub fn encode_with(
        &self,
        value: &AnyAsyncValue,
        mut encoder: Encoder,
    ) -> Result<EncodedValue, Error> {
        if let Some(error) = value.error() {
            return Err(error.clone());
        }
        if !value.is_settled() {
            let message = "a value that is still to come can't be encoded: wait for it first";
            return Err(Error::failed_precondition(message));
        }
        let name = value.type_name().unwrap_or("(unknown)");
        let codec = self.newest(name).ok_or_else(|| {
            Error::invalid_argument(format!(
                "a {name} can't be stored or sent: its type has no codec"
            ))
        })?;
        (codec.encode)(value, &mut encoder)?;
        let (head, parts) = encoder.finish();
        Ok(EncodedValue {
            type_name: name.into(),
            version: codec.version,
            head,
            parts,
        })
    }

    /// Decodes a value, which may keep parts of the encoded one.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no codec of the value's type and version, or the bytes are not as it writes them;
    /// `ResourceExhausted` if the allocator has no memory; and those of the codec.
    pub fn decode(
        &self,
        encoded: &EncodedValue,
        context: &DecodeContext<'_>,
    ) -> Result<AnyAsyncValue, Error> {
        let (name, version) = (&*encoded.type_name, encoded.version);
        let codec = self.get(name, version).ok_or_else(|| {
            let shown = name.escape_debug();
            Error::invalid_argument(match self.newest(name) {
                Some(known) => format!(
                    "an encoded {shown} of version {version}: expected version {} or one before it that is known",
                    known.version
                ),
                None => format!("an encoded {shown}: no codec of this type is known"),
            })
        })?;
        let mut decoder = Decoder::new(codec.type_name, &encoded.head, &encoded.parts);
        let value = (codec.decode)(&mut decoder, context)?;
        decoder.finish()?;
        Ok(value)
    }

    /// Decodes a value from a buffer; see [`EncodedValue::from_buffer`] and [`decode`](Self::decode).
    ///
    /// # Errors
    ///
    /// Those of [`EncodedValue::from_buffer`] and [`decode`](Self::decode).
    pub fn decode_buffer(
        &self,
        buffer: &HostBuffer,
        context: &DecodeContext<'_>,
    ) -> Result<AnyAsyncValue, Error> {
        self.decode(&EncodedValue::from_buffer(buffer, context)?, context)
    }
}

/// Returns the index of a codec, or the index at which it belongs.
pub(crate) fn find(codecs: &[ValueCodec], type_name: &str, version: u32) -> Result<usize, usize> {
    codecs.binary_search_by(|codec| {
        let by_name = codec.type_name.cmp(type_name);
        by_name.then(codec.version.cmp(&version))
    })
}

/// An encoded value: its type, a head, and large parts. Clones share the parts.
///
/// Parts are handles of the memory that the value itself has: they hold no copy, so a value that is written
/// afterwards changes what was encoded, until the bytes are read.
#[derive(Clone, Debug)]
pub struct EncodedValue {
    type_name: Box<str>,
    version: u32,
    head: Vec<u8>,
    parts: Vec<HostBuffer>,
}

impl EncodedValue {
    /// Returns an encoded value of its pieces, which were kept or sent apart.
    pub fn new(
        type_name: &str,
        version: u32,
        head: Vec<u8>,
        parts: Vec<HostBuffer>,
    ) -> EncodedValue {
        EncodedValue {
            type_name: type_name.into(),
            version,
            head,
            parts,
        }
    }

    /// Returns the name of the value's type.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Returns the version of the codec that wrote it.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the head: the bytes that the codec wrote itself.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the large runs of bytes.
    pub fn parts(&self) -> &[HostBuffer] {
        &self.parts
    }
}

/// The environment of a decoder: the host that the value is for, an allocator, limits.
#[derive(Clone)]
pub struct DecodeContext<'h> {
    host: &'h HostContext,
    allocator: Arc<dyn HostAllocator>,
    limits: DecodeLimits,
}

/// Limits on the size of an encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// The most bytes of a head, which is copied.
    pub max_head_bytes: usize,
    /// The most parts.
    pub max_parts: usize,
}

impl Default for DecodeLimits {
    /// Returns the default limits: 64 MiB of head, a million parts.
    fn default() -> DecodeLimits {
        DecodeLimits {
            max_head_bytes: 64 << 20,
            max_parts: 1 << 20,
        }
    }
}

impl<'h> DecodeContext<'h> {
    /// Returns the environment of a host, with its allocator and the default limits.
    pub fn new(host: &'h HostContext) -> DecodeContext<'h> {
        DecodeContext {
            host,
            allocator: host.allocator().clone(),
            limits: DecodeLimits::default(),
        }
    }

    /// Takes memory from another allocator than the host's: a request's, say.
    pub fn with_allocator(mut self, allocator: Arc<dyn HostAllocator>) -> Self {
        self.allocator = allocator;
        self
    }

    /// Sets the limits.
    pub fn with_limits(mut self, limits: DecodeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the host that the value is for.
    pub fn host(&self) -> &'h HostContext {
        self.host
    }

    /// Returns the allocator.
    pub fn allocator(&self) -> &Arc<dyn HostAllocator> {
        &self.allocator
    }

    /// Returns the limits.
    pub fn limits(&self) -> DecodeLimits {
        self.limits
    }
}

impl fmt::Debug for DecodeContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodeContext")
            .field("allocator", &self.allocator.name())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Returns the `T` that a codec was handed.
///
/// # Errors
///
/// `InvalidArgument` if it is none: a codec is listed under the name of another type.
pub fn expect<T: Value>(value: &AnyAsyncValue) -> Result<&T, Error> {
    value.get::<T>().ok_or_else(|| {
        let (wanted, found) = (T::NAME, value.type_name().unwrap_or("(unknown)"));
        Error::invalid_argument(format!("a codec expected a {wanted}, found a {found}"))
    })
}

#[cfg(test)]
mod tests;
