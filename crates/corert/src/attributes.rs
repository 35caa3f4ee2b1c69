//! [`OpAttrs`]: attributes of a call of an operation, by name.
//!
//! A set is written once, on the stack: up to six entries whose texts and lists are short take no memory from
//! anywhere. What outlives the call that it was made for, because inputs are still to come, is a counted copy
//! ([`FrozenOpAttrs`]), made at most once for each state of a set.

use std::fmt;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use tfrt_host::{DType, Error};
use tfrt_tensor::{DenseHostTensor, Element, PartialTensorShape, TensorShape};

mod numbers;
mod text;
mod value;

pub use numbers::Numbers;
pub use value::{AttrValue, IntoAttr, Text};

/// Number of entries that a set holds in place.
const INLINE_ENTRIES: usize = 6;

type Entries = SmallVec<[Entry; INLINE_ENTRIES]>;

/// Name and value of an attribute.
#[derive(Clone, Debug)]
struct Entry {
    name: Name,
    value: AttrValue,
}

/// Name of an attribute: a literal of the code, or a counted text.
#[derive(Clone, Debug)]
enum Name {
    Static(&'static str),
    Shared(Arc<str>),
}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Name::Static(name) => name,
            Name::Shared(name) => name,
        }
    }
}

/// A set of attributes by name, built by a caller.
///
/// # Examples
///
/// ```
/// use tfrt_corert::OpAttrs;
///
/// let mut attrs = OpAttrs::new();
/// attrs.set("axis", 1_i32)?.set("shape", [2_i64, 3])?.set("type", "f32")?;
/// assert_eq!(attrs.get::<i32>("axis")?, Some(1));
/// assert_eq!(attrs.list::<i64>("shape")?, Some(&[2, 3][..]));
/// assert_eq!(attrs.text("type")?, Some("f32"));
/// let error = attrs.get::<f32>("axis").unwrap_err();
/// assert_eq!(error.message(), "attribute 'axis': expected f32, found i32 1");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Default)]
pub struct OpAttrs {
    entries: Entries,
    /// Frozen copy of the entries, made when one is first asked for.
    frozen: OnceLock<FrozenOpAttrs>,
}

/// An immutable, counted set of attributes.
#[derive(Clone, Default)]
pub struct FrozenOpAttrs(Option<Arc<Entries>>);

/// A borrowed view of attributes, whether their set may change or is frozen.
#[derive(Clone, Copy)]
pub struct OpAttrsRef<'a> {
    entries: &'a [Entry],
    source: Source<'a>,
}

/// Owner of the entries, from which a counted copy is made.
#[derive(Clone, Copy)]
enum Source<'a> {
    Nothing,
    Changing(&'a OpAttrs),
    Frozen(&'a FrozenOpAttrs),
}

impl OpAttrs {
    /// Returns a set without entries.
    pub fn new() -> OpAttrs {
        OpAttrs::default()
    }

    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the name is taken.
    #[inline]
    pub fn set(&mut self, name: &'static str, value: impl IntoAttr) -> Result<&mut Self, Error> {
        self.insert(Name::Static(name), value.into_attr())
    }

    /// Adds an entry whose name is only known at run time.
    ///
    /// # Errors
    ///
    /// See [`set`](Self::set).
    pub fn set_named(&mut self, name: &str, value: AttrValue) -> Result<&mut Self, Error> {
        self.insert(Name::Shared(name.into()), value)
    }

    fn insert(&mut self, name: Name, value: AttrValue) -> Result<&mut Self, Error> {
        if let Some(present) = find(&self.entries, name.as_str()) {
            let name = name.as_str().escape_debug();
            let message = format!("attribute '{name}' is there already: {present}");
            return Err(Error::already_exists(message));
        }
        self.entries.push(Entry { name, value });
        self.frozen = OnceLock::new();
        Ok(self)
    }

    /// Returns a counted copy, the same one until an entry is added. Without entries it takes no memory.
    pub fn freeze(&self) -> FrozenOpAttrs {
        if self.entries.is_empty() {
            return FrozenOpAttrs(None);
        }
        let make = || FrozenOpAttrs(Some(Arc::new(self.entries.clone())));
        self.frozen.get_or_init(make).clone()
    }

    /// Returns the attributes, to be read.
    #[inline]
    pub fn as_ref(&self) -> OpAttrsRef<'_> {
        OpAttrsRef {
            entries: &self.entries,
            source: Source::Changing(self),
        }
    }
}

impl FrozenOpAttrs {
    /// Returns the attributes, to be read.
    #[inline]
    pub fn as_ref(&self) -> OpAttrsRef<'_> {
        OpAttrsRef {
            entries: self.0.as_deref().map_or(&[], |entries| entries.as_slice()),
            source: Source::Frozen(self),
        }
    }
}

impl<'a> OpAttrsRef<'a> {
    /// Returns whether two sets have equal attributes in the same order. Tensors and lists of several kinds are not
    /// compared: with one of these the answer is no.
    pub fn is(self, other: OpAttrsRef<'_>) -> bool {
        let mut pairs = self.entries.iter().zip(other.entries);
        self.entries.len() == other.entries.len()
            && pairs.all(|(own, other)| {
                own.name.as_str() == other.name.as_str() && own.value.is(&other.value)
            })
    }

    /// Returns whether there are neither tensors nor lists of several kinds.
    pub fn is_plain(self) -> bool {
        self.entries
            .iter()
            .all(|entry| entry.value.is(&entry.value))
    }

    /// No attributes.
    pub const EMPTY: OpAttrsRef<'static> = OpAttrsRef {
        entries: &[],
        source: Source::Nothing,
    };

    /// Returns the number of entries.
    #[inline]
    pub fn len(self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.entries.is_empty()
    }

    /// Returns names and values, in the order in which they were set.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a AttrValue)> {
        let entries = self.entries.iter();
        entries.map(|entry| (entry.name.as_str(), &entry.value))
    }

    /// Returns a counted copy.
    pub fn freeze(self) -> FrozenOpAttrs {
        match self.source {
            Source::Nothing => FrozenOpAttrs(None),
            Source::Changing(attrs) => attrs.freeze(),
            Source::Frozen(attrs) => attrs.clone(),
        }
    }

    /// Returns the value of this name.
    #[inline]
    pub fn value(self, name: &str) -> Option<&'a AttrValue> {
        find(self.entries, name)
    }

    /// Returns the number of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no `T`.
    pub fn get<T: Element>(self, name: &str) -> Result<Option<T>, Error> {
        self.read(name, T::DTYPE, |value| match value {
            AttrValue::Scalar(numbers) => numbers.as_slice::<T>()?.first().copied(),
            _ => None,
        })
    }

    /// Returns the truth value of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another type.
    pub fn bool(self, name: &str) -> Result<Option<bool>, Error> {
        Ok(self.get::<tfrt_tensor::Bool>(name)?.map(bool::from))
    }

    /// Returns the integer of this name, of whatever width.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no integer, or does not fit 64 bits with a sign.
    pub fn integer(self, name: &str) -> Result<Option<i64>, Error> {
        self.read(name, "an integer", |value| match value {
            AttrValue::Scalar(numbers) => numbers.integers()?.first().copied(),
            _ => None,
        })
    }

    /// Returns the numbers of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no list, or no `T`s.
    pub fn list<T: Element>(self, name: &str) -> Result<Option<&'a [T]>, Error> {
        let expected = format_args!("a list of {}", T::DTYPE);
        self.read(name, expected, |value| match value {
            AttrValue::List(numbers) => numbers.as_slice::<T>(),
            _ => None,
        })
    }

    /// Returns the integers of this name, of whatever width.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no list, no integers, or don't fit 64 bits with a sign.
    pub fn integers(self, name: &str) -> Result<Option<SmallVec<[i64; 8]>>, Error> {
        self.read(name, "a list of integers", |value| match value {
            AttrValue::List(numbers) => numbers.integers(),
            AttrValue::Aggregate(children) if children.is_empty() => Some(SmallVec::new()),
            _ => None,
        })
    }

    /// Returns the text of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is none.
    pub fn text(self, name: &str) -> Result<Option<&'a str>, Error> {
        self.read(name, "a text", |value| match value {
            AttrValue::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the texts of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no list of texts.
    pub fn texts(self, name: &str) -> Result<Option<Vec<&'a str>>, Error> {
        let text = |child: &'a AttrValue| match child {
            AttrValue::Text(text) => Some(text.as_str()),
            _ => None,
        };
        self.read(name, "a list of texts", |value| match value {
            AttrValue::Aggregate(children) => children.iter().map(text).collect(),
            AttrValue::List(numbers) if numbers.is_empty() => Some(Vec::new()),
            _ => None,
        })
    }

    /// Returns the type of elements of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is none.
    pub fn dtype(self, name: &str) -> Result<Option<DType>, Error> {
        self.read(name, "a type", |value| match value {
            AttrValue::DType(dtype) => Some(*dtype),
            _ => None,
        })
    }

    /// Returns the types of elements of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no list of types.
    pub fn dtypes(self, name: &str) -> Result<Option<Vec<DType>>, Error> {
        let dtype = |child: &AttrValue| match child {
            AttrValue::DType(dtype) => Some(*dtype),
            _ => None,
        };
        self.read(name, "a list of types", |value| match value {
            AttrValue::Aggregate(children) => children.iter().map(dtype).collect(),
            AttrValue::List(numbers) if numbers.is_empty() => Some(Vec::new()),
            _ => None,
        })
    }

    /// Returns the shapes of this name, each a shape or a list of extents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no list of shapes.
    pub fn shapes(self, name: &str) -> Result<Option<Vec<PartialTensorShape>>, Error> {
        let shape = |child: &AttrValue| match child {
            AttrValue::Shape(shape) => Some(shape.clone()),
            AttrValue::List(numbers) => PartialTensorShape::from_i64(&numbers.integers()?).ok(),
            AttrValue::Aggregate(children) if children.is_empty() => {
                PartialTensorShape::from_i64(&[]).ok()
            }
            _ => None,
        };
        self.read(name, "a list of shapes", |value| match value {
            AttrValue::Aggregate(children) => children.iter().map(shape).collect(),
            AttrValue::List(numbers) if numbers.is_empty() => Some(Vec::new()),
            _ => None,
        })
    }

    /// Returns the tensor of this name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is none.
    pub fn dense(self, name: &str) -> Result<Option<&'a DenseHostTensor>, Error> {
        self.read(name, "a dense tensor", |value| match value {
            AttrValue::Dense(tensor) => Some(tensor),
            _ => None,
        })
    }

    /// Returns the shape of this name, written as a shape or as a list of extents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is none, or if not all extents are known.
    pub fn shape(self, name: &str) -> Result<Option<TensorShape>, Error> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        let shape = match value {
            AttrValue::Shape(shape) => shape.to_shape(),
            _ => match self.integers(name) {
                Ok(Some(extents)) => TensorShape::from_i64(&extents),
                _ => return Err(mistyped(name, "a shape", value)),
            },
        };
        let place = |error: Error| {
            let name = name.escape_debug();
            Error::invalid_argument(format!("attribute '{name}': {}", error.message()))
        };
        shape.map(Some).map_err(place)
    }

    /// Returns the shape of this name, of which some extents may be unknown.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is none.
    pub fn partial_shape(self, name: &str) -> Result<Option<&'a PartialTensorShape>, Error> {
        self.read(name, "a shape", |value| match value {
            AttrValue::Shape(shape) => Some(shape),
            _ => None,
        })
    }

    #[inline]
    fn read<R>(
        self,
        name: &str,
        expected: impl fmt::Display,
        read: impl FnOnce(&'a AttrValue) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        match read(value) {
            Some(found) => Ok(Some(found)),
            None => Err(mistyped(name, expected, value)),
        }
    }
}

#[inline]
fn find<'a>(entries: &'a [Entry], name: &str) -> Option<&'a AttrValue> {
    let mut entries = entries.iter();
    let entry = entries.find(|entry| entry.name.as_str() == name)?;
    Some(&entry.value)
}

#[cold]
fn mistyped(name: &str, expected: impl fmt::Display, found: &AttrValue) -> Error {
    let name = name.escape_debug();
    Error::invalid_argument(format!(
        "attribute '{name}': expected {expected}, found {found}"
    ))
}

/// Returns the error for a required attribute that is missing.
#[cold]
pub(crate) fn missing(op: &str, name: &str) -> Error {
    Error::invalid_argument(format!("{op} must have '{name}' attribute"))
}

impl<'a> From<&'a OpAttrs> for OpAttrsRef<'a> {
    #[inline]
    fn from(attrs: &'a OpAttrs) -> Self {
        attrs.as_ref()
    }
}

impl<'a> From<&'a FrozenOpAttrs> for OpAttrsRef<'a> {
    #[inline]
    fn from(attrs: &'a FrozenOpAttrs) -> Self {
        attrs.as_ref()
    }
}

/// `readers!` declares the readers of [`OpAttrs`], which are those of [`OpAttrsRef`].
macro_rules! readers {
    ($($name:ident $(<$t:ident: $bound:ident>)? -> $result:ty;)*) => {$(
        #[doc = concat!("See [`OpAttrsRef::", stringify!($name), "`].")]
        ///
        /// # Errors
        ///
        /// `InvalidArgument` if the attribute is of another type.
        pub fn $name$(<$t: $bound>)?(&self, name: &str) -> Result<Option<$result>, Error> {
            self.as_ref().$name$(::<$t>)?(name)
        }
    )*};
}

impl OpAttrs {
    readers! {
        get<T: Element> -> T;
        bool -> bool;
        integer -> i64;
        list<T: Element> -> &[T];
        integers -> SmallVec<[i64; 8]>;
        text -> &str;
        dtype -> DType;
        dense -> &DenseHostTensor;
        shape -> TensorShape;
    }
}

impl fmt::Debug for OpAttrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for FrozenOpAttrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.as_ref(), f)
    }
}

impl fmt::Debug for OpAttrsRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
