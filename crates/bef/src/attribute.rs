//! [`AttributeView`]: scalars, strings, arrays, dense, shapes, aggregates, in place.
//!
//! The format stores no type beside an attribute, and a file without optional
//! sections lists none. So a view is an offset, and each typed reader checks all
//! it relies on: alignment, bounds, counts. A reader returns `None` where the
//! bytes are not what it reads, or where the file lists another type. None of
//! them can panic, whatever the offset.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::{
    dtype::{AttributeType, DType},
    layout::{
        AGGREGATE_PREFIX_BYTES, ATTRIBUTE_HEADER_BYTES, DENSE_PREFIX_BYTES, MAX_ATTRIBUTE_DEPTH,
        SHAPE_PREFIX_BYTES,
    },
    varint,
};

/// An attribute at some offset, to be read as the type that the reader expects.
#[derive(Clone, Copy, Debug)]
pub struct AttributeView<'a> {
    /// The file from its first byte to where this attribute must end.
    bytes: &'a [u8],
    /// The offset of the Attributes section from the start of the file.
    section: usize,
    /// The offset of the attribute from the start of the file.
    start: usize,
    /// The type that the file lists for the attribute.
    listed: Option<AttributeType>,
    /// The number of aggregates that the attribute lies in.
    depth: usize,
}

/// A type whose values arrays hold in place.
pub trait Element: FromBytes + Immutable + KnownLayout + Copy {
    /// The element types that have this layout.
    const DTYPES: &'static [DType];
}

/// Implements [`Element`], as in `impl Element for i32 { const DTYPES = &[DType::I32, ...] }`.
macro_rules! element {
    ($($type:ty: $($dtype:ident)+;)+) => {
        $(impl Element for $type {
            const DTYPES: &'static [DType] = &[$(DType::$dtype),+];
        })+
    };
}

element! {
    u8: Ui8 I1 I8 Quint8 Qint8 I4 Ui4 I2 Ui2 F8E4M3FN F8E4M3FNUZ F8E5M2 F8E5M2FNUZ F8E8M0 F4E2M1 F8E3M4 F8E4M3
        F8E4M3B11FNUZ F6E2M3 F6E3M2;
    i8: I8 Ui8 Qint8 Quint8;
    u16: Ui16 I16 F16 Bf16 Quint16 Qint16;
    i16: I16 Ui16 Qint16 Quint16;
    u32: Ui32 I32 Qint32;
    i32: I32 Ui32 Qint32;
    u64: Ui64 I64;
    i64: I64 Ui64;
    f32: F32;
    f64: F64;
    [f32; 2]: Complex64;
    [f64; 2]: Complex128;
}

/// A tensor constant: dense elements of one type, with their shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseView<'a> {
    /// The type of the elements.
    pub dtype: DType,
    /// The extent of each dimension; none is negative.
    pub shape: &'a [i64],
    /// The elements in row-major order, on an eight-byte boundary.
    pub bytes: &'a [u8],
}

/// A shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeView<'a> {
    /// A shape whose number of dimensions is unknown.
    Unranked,
    /// The extent of each dimension; -1 if it is unknown.
    Ranked(&'a [i64]),
}

/// A symbol of a compiled module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolView<'a> {
    /// The number of the symbol in the file.
    pub id: u64,
    /// The first part of the reference.
    pub root: &'a str,
    /// The other parts of the reference.
    pub nested: Vec<&'a str>,
    /// The module that defines it, as text.
    pub module: &'a str,
}

/// A list of attributes of different types.
#[derive(Clone, Copy, Debug)]
pub struct AggregateView<'a> {
    whole: AttributeView<'a>,
    /// Invariant: ascending, and each but the first leaves a byte for a type before it.
    offsets: &'a [u32],
    /// The end of the last element, at most, from the start of the file.
    end: usize,
}

impl<'a> AttributeView<'a> {
    pub(crate) fn new(
        bytes: &'a [u8],
        section: usize,
        start: usize,
        listed: Option<AttributeType>,
    ) -> AttributeView<'a> {
        AttributeView {
            bytes,
            section,
            start,
            listed,
            depth: 0,
        }
    }

    /// Returns the type that the file lists for the attribute.
    pub fn listed_type(&self) -> Option<AttributeType> {
        self.listed
    }

    /// Returns the distance from the start of the Attributes section.
    pub fn offset(&self) -> usize {
        self.start - self.section
    }

    /// Returns a truth value.
    pub fn as_bool(&self) -> Option<bool> {
        self.admits(AttributeType::Scalar(DType::I1))?;
        match self.value::<u8>()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Returns an integer of 8 bits.
    pub fn as_i8(&self) -> Option<i8> {
        self.scalar()
    }

    /// Returns an integer of 16 bits.
    pub fn as_i16(&self) -> Option<i16> {
        self.scalar()
    }

    /// Returns an integer of 32 bits.
    pub fn as_i32(&self) -> Option<i32> {
        self.scalar()
    }

    /// Returns an integer of 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        self.scalar()
    }

    /// Returns an unsigned integer of 8 bits.
    pub fn as_u8(&self) -> Option<u8> {
        self.scalar()
    }

    /// Returns an unsigned integer of 16 bits.
    pub fn as_u16(&self) -> Option<u16> {
        self.scalar()
    }

    /// Returns an unsigned integer of 32 bits.
    pub fn as_u32(&self) -> Option<u32> {
        self.scalar()
    }

    /// Returns an unsigned integer of 64 bits.
    pub fn as_u64(&self) -> Option<u64> {
        self.scalar()
    }

    /// Returns a float of 32 bits.
    pub fn as_f32(&self) -> Option<f32> {
        self.scalar()
    }

    /// Returns a float of 64 bits.
    pub fn as_f64(&self) -> Option<f64> {
        self.scalar()
    }

    /// Returns the bits of an IEEE half-precision float.
    pub fn as_f16_bits(&self) -> Option<u16> {
        self.admits(AttributeType::Scalar(DType::F16))?;
        self.value()
    }

    /// Returns the bits of a brain float.
    pub fn as_bf16_bits(&self) -> Option<u16> {
        self.admits(AttributeType::Scalar(DType::Bf16))?;
        self.value()
    }

    /// Returns a type.
    pub fn as_dtype(&self) -> Option<DType> {
        self.admits(AttributeType::Type)?;
        DType::from_byte(self.value()?)
    }

    /// Returns a string that is UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }

    /// Returns the bytes of a string, which need not be UTF-8.
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        match self.listed {
            None | Some(AttributeType::FunctionName | AttributeType::Scalar(DType::String)) => {}
            Some(_) => return None,
        }
        self.elements(self.start)
    }

    /// Returns a scalar of any type that has the layout of `T`.
    pub fn scalar<T: Element>(&self) -> Option<T> {
        if let Some(listed) = self.listed {
            let AttributeType::Scalar(dtype) = listed else {
                return None;
            };
            T::DTYPES.contains(&dtype).then_some(())?;
        }
        self.value()
    }

    /// Returns the elements of an array.
    ///
    /// # Examples
    ///
    /// ```
    /// # use tfrt_bef::{AttributeOffset, BefFile, BefWriter};
    /// let mut writer = BefWriter::new();
    /// let offset = writer.attributes.array(4, 2, &[1, 0, 0, 0, 2, 0, 0, 0]);
    /// let file = BefFile::open(writer.finish())?;
    /// let attribute = file.attribute(AttributeOffset(offset));
    /// assert_eq!(attribute.array::<i32>(), Some(&[1, 2][..]));
    /// # Ok::<(), tfrt_bef::BefError>(())
    /// ```
    pub fn array<T: Element>(&self) -> Option<&'a [T]> {
        let listed_empty = self.listed == Some(AttributeType::EMPTY_ARRAY);
        if let Some(listed) = self.listed {
            let fits = match listed {
                AttributeType::Array(dtype) => listed_empty || T::DTYPES.contains(&dtype),
                AttributeType::TypeArray => size_of::<T>() == 1,
                _ => false,
            };
            fits.then_some(())?;
        }
        let elements: &[T] = self.elements(self.start)?;
        let is_i32 = T::DTYPES.contains(&DType::I32);
        (elements.is_empty() || !listed_empty || is_i32).then_some(elements)
    }

    /// Returns the elements of an array of types.
    pub fn dtypes(&self) -> Option<Vec<DType>> {
        match self.listed {
            None | Some(AttributeType::TypeArray) => {}
            Some(AttributeType::EMPTY_ARRAY) if self.elements::<u32>(self.start)?.is_empty() => {}
            Some(_) => return None,
        }
        let bytes: &[u8] = self.elements(self.start)?;
        bytes.iter().map(|byte| DType::from_byte(*byte)).collect()
    }

    /// Returns a shape.
    pub fn shape(&self) -> Option<ShapeView<'a>> {
        self.admits(AttributeType::Shape)?;
        let Some(header) = self.header(SHAPE_PREFIX_BYTES)? else {
            return Some(ShapeView::Unranked);
        };
        let rank = self.word(self.start + ATTRIBUTE_HEADER_BYTES)? as usize;
        if header.prefix_bytes != SHAPE_PREFIX_BYTES {
            return None;
        }
        let dimensions = self.slice::<i64>(self.start + SHAPE_PREFIX_BYTES, rank)?;
        let fits = header.len_bytes == SHAPE_PREFIX_BYTES + size_of_val(dimensions);
        let known = dimensions.iter().all(|extent| *extent >= -1);
        (fits && known).then_some(ShapeView::Ranked(dimensions))
    }

    /// Returns dense elements.
    pub fn dense(&self) -> Option<DenseView<'a>> {
        self.admits(AttributeType::Dense)?;
        let header = self.header(DENSE_PREFIX_BYTES)??;
        let dtype = DType::from_byte(header.element_type)?;
        let element_offset = self.word(self.start + 8)? as usize;
        let n_elements = self.word(self.start + 12)? as usize;
        let rank = self.word(self.start + 16)? as usize;
        let shape = self.slice::<i64>(self.start + DENSE_PREFIX_BYTES, rank)?;
        let data = DENSE_PREFIX_BYTES + size_of_val(shape);
        if element_offset != data || header.prefix_bytes != data {
            return None;
        }
        let product = shape.iter().try_fold(1usize, |product, extent| {
            product.checked_mul(usize::try_from(*extent).ok()?)
        })?;
        let len_bytes = n_elements.checked_mul(dtype.size_bytes()?)?;
        let bytes = self.slice::<u8>(self.start + data, len_bytes)?;
        let fits = product == n_elements && header.len_bytes == data + len_bytes;
        fits.then_some(DenseView {
            dtype,
            shape,
            bytes,
        })
    }

    /// Returns an aggregate.
    pub fn aggregate(&self) -> Option<AggregateView<'a>> {
        if self.depth >= MAX_ATTRIBUTE_DEPTH {
            return None;
        }
        match self.listed {
            None | Some(AttributeType::Aggregate) => {}
            Some(AttributeType::EMPTY_ARRAY) if self.elements::<u32>(self.start)?.is_empty() => {}
            Some(_) => return None,
        }
        let Some(header) = self.header(AGGREGATE_PREFIX_BYTES)? else {
            return Some(AggregateView {
                whole: *self,
                offsets: &[],
                end: self.start + 4,
            });
        };
        let count = self.word(self.start + ATTRIBUTE_HEADER_BYTES)? as usize;
        let offsets = self.slice::<u32>(self.start + AGGREGATE_PREFIX_BYTES, count)?;
        let prefix_bytes = AGGREGATE_PREFIX_BYTES + size_of_val(offsets);
        // The field has 16 bits, so that it cannot say the truth for long aggregates.
        if header.prefix_bytes != prefix_bytes & 0xffff {
            return None;
        }
        let mut least = prefix_bytes;
        for offset in offsets {
            if (*offset as usize) <= least {
                return None;
            }
            least = *offset as usize;
        }
        let end = self.start.checked_add(header.len_bytes)?;
        let inside = end <= self.bytes.len() && self.start + least <= end;
        inside.then_some(AggregateView {
            whole: *self,
            offsets,
            end,
        })
    }

    /// Returns a symbol of a compiled module.
    pub fn symbol(&self) -> Option<SymbolView<'a>> {
        self.admits(AttributeType::Symbol)?;
        self.read_symbol().map(|(symbol, _)| symbol)
    }

    /// Returns a symbol and where it ends.
    fn read_symbol(&self) -> Option<(SymbolView<'a>, usize)> {
        let mut position = self.start;
        let mut varint = || {
            let (value, len) = varint::read(self.bytes.get(position..)?).ok()?;
            position += len;
            Some(value)
        };
        let id = varint()?;
        let root_len = usize::try_from(varint()?).ok()?;
        let n_nested = usize::try_from(varint()?).ok()?;
        let mut nested_lens = Vec::new();
        for _ in 0..n_nested {
            nested_lens.push(usize::try_from(varint()?).ok()?);
        }
        let module_len = usize::try_from(varint()?).ok()?;
        let mut text = |len: usize| {
            let bytes = self.slice::<u8>(position, len)?;
            position += len;
            std::str::from_utf8(bytes).ok()
        };
        let root = text(root_len)?;
        let nested = nested_lens
            .into_iter()
            .map(&mut text)
            .collect::<Option<_>>()?;
        let module = text(module_len)?;
        (text(1)? == "\0").then_some(())?;
        Some((
            SymbolView {
                id,
                root,
                nested,
                module,
            },
            position,
        ))
    }

    /// Reads the attribute, which is not listed as anything but `kind`, and returns where it ends, from the start of
    /// the file.
    pub(crate) fn end_as(&self, kind: AttributeType) -> Option<usize> {
        match kind {
            AttributeType::Scalar(DType::String) | AttributeType::FunctionName => {
                Some(self.start + 4 + self.as_bytes()?.len())
            }
            AttributeType::Scalar(DType::I1) => self.as_bool().map(|_| self.start + 1),
            AttributeType::Scalar(dtype) => {
                let aligned = self.start.is_multiple_of(dtype.alignment_bytes()?);
                aligned.then_some(())?;
                self.slice::<u8>(self.start, dtype.size_bytes()?)?;
                Some(self.start + dtype.size_bytes()?)
            }
            AttributeType::Type => self.as_dtype().map(|_| self.start + 1),
            AttributeType::Shape => match self.shape()? {
                ShapeView::Unranked => Some(self.start + 4),
                ShapeView::Ranked(extents) => {
                    Some(self.start + SHAPE_PREFIX_BYTES + size_of_val(extents))
                }
            },
            AttributeType::Dense => {
                let dense = self.dense()?;
                let shape_bytes = size_of_val(dense.shape);
                let end = self.start + DENSE_PREFIX_BYTES + shape_bytes + dense.bytes.len();
                are_of(dense.dtype, dense.bytes).then_some(end)
            }
            AttributeType::Symbol => self.read_symbol().map(|(_, end)| end),
            AttributeType::Aggregate => {
                let aggregate = self.aggregate()?;
                for index in 0..aggregate.len() {
                    aggregate
                        .get(index)?
                        .end_as(aggregate.element_type(index)?)?;
                }
                Some(aggregate.end)
            }
            AttributeType::TypeArray => Some(self.start + 4 + self.dtypes()?.len()),
            AttributeType::Array(dtype) => {
                let count = self.word(self.start)? as usize;
                let first = self.start.checked_add(4)?;
                if count > 0 && !first.is_multiple_of(dtype.alignment_bytes()?) {
                    return None;
                }
                let len_bytes = count.checked_mul(dtype.size_bytes()?)?;
                let bytes = self.slice::<u8>(first, len_bytes)?;
                are_of(dtype, bytes).then_some(first + len_bytes)
            }
        }
    }

    /// Returns `None` if the file says that the attribute is something else.
    fn admits(&self, kind: AttributeType) -> Option<()> {
        self.listed
            .is_none_or(|listed| listed == kind)
            .then_some(())
    }

    fn value<T: Element>(&self) -> Option<T> {
        self.slice::<T>(self.start, 1).map(|slice| slice[0])
    }

    fn word(&self, position: usize) -> Option<u32> {
        self.slice::<u32>(position, 1).map(|slice| slice[0])
    }

    /// Returns the elements behind the count at `position`.
    fn elements<T: FromBytes + Immutable + KnownLayout>(&self, position: usize) -> Option<&'a [T]> {
        let count = self.word(position)? as usize;
        if count == 0 {
            return Some(&[]);
        }
        self.slice(position.checked_add(4)?, count)
    }

    /// Returns `count` elements at `position`, if they are inside and aligned.
    fn slice<T: FromBytes + Immutable + KnownLayout>(
        &self,
        position: usize,
        count: usize,
    ) -> Option<&'a [T]> {
        let bytes = self.bytes.get(position..)?;
        let (elements, _) = <[T]>::ref_from_prefix_with_elems(bytes, count).ok()?;
        Some(elements)
    }

    /// Reads the header that shapes, dense elements and aggregates start with.
    ///
    /// The outer `None` stands for bytes that are no header, the inner one for the
    /// form without content.
    fn header(&self, least_bytes: usize) -> Option<Option<Header>> {
        let first = self.word(self.start)?;
        if first & 0xff == 0 {
            return (first == 0).then_some(None);
        }
        let [alignment, element_type, low, high] = first.to_le_bytes();
        let header = Header {
            element_type,
            prefix_bytes: usize::from(u16::from_le_bytes([low, high])),
            len_bytes: self.word(self.start + 4)? as usize,
        };
        let valid = alignment.is_power_of_two() && header.len_bytes >= least_bytes;
        valid.then_some(Some(header))
    }
}

/// Returns whether the bytes of elements may stand for values of their type: truth has two.
fn are_of(dtype: DType, bytes: &[u8]) -> bool {
    dtype != DType::I1 || bytes.iter().all(|byte| *byte <= 1)
}

struct Header {
    element_type: u8,
    prefix_bytes: usize,
    len_bytes: usize,
}

impl<'a> AggregateView<'a> {
    /// Returns how many elements there are.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns whether the aggregate is empty.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns an element.
    pub fn get(&self, index: usize) -> Option<AttributeView<'a>> {
        let offset = *self.offsets.get(index)? as usize;
        let end = match self.offsets.get(index + 1) {
            // The byte before an element is its type.
            Some(next) => self.whole.start + *next as usize - 1,
            None => self.end,
        };
        Some(AttributeView {
            bytes: &self.whole.bytes[..end],
            section: self.whole.section,
            start: self.whole.start + offset,
            listed: self.element_type(index),
            depth: self.whole.depth + 1,
        })
    }

    /// Returns the type of an element.
    pub fn element_type(&self, index: usize) -> Option<AttributeType> {
        let offset = *self.offsets.get(index)? as usize;
        AttributeType::from_byte(self.whole.bytes[self.whole.start + offset - 1])
    }

    /// Returns all elements, up to the first that has no known type.
    pub fn iter(&self) -> impl Iterator<Item = (AttributeType, AttributeView<'a>)> {
        let aggregate = *self;
        (0..self.len())
            .map_while(move |index| Some((aggregate.element_type(index)?, aggregate.get(index)?)))
    }
}
