//! [`AttributeWriter`]: writes constants in their layouts.
//!
//! Where alignment 8 is asked for, it is the data that is aligned, not the header:
//! counts of such arrays and headers of shapes and dense elements lie at 8k + 4.

use crate::{
    dtype::{AttributeType, DType},
    layout::{
        AGGREGATE_PREFIX_BYTES, ATTRIBUTE_HEADER_BYTES, DENSE_PREFIX_BYTES, FILE_ALIGNMENT,
        PADDING, SHAPE_PREFIX_BYTES,
    },
    writer::Payload,
};

const WORD_BYTES: usize = size_of::<u32>();

/// A writer of constants. Each method returns the offset to refer to.
#[derive(Clone, Debug, Default)]
pub struct AttributeWriter {
    payload: Payload,
}

impl AttributeWriter {
    /// Returns the bytes written so far.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    pub(super) fn into_payload(self) -> Payload {
        self.payload
    }

    /// Writes a scalar of 1, 2, 4 or 8 bytes, in the order of the machine.
    pub fn scalar(&mut self, bytes: &[u8]) -> u32 {
        self.payload.align(bytes.len());
        self.append(bytes)
    }

    /// Writes a type.
    pub fn dtype(&mut self, dtype: DType) -> u32 {
        self.append(&[dtype.byte()])
    }

    /// Writes a string, or the name of a function.
    pub fn string(&mut self, text: &[u8]) -> u32 {
        self.array(1, text.len(), text)
    }

    /// Writes an array of `count` elements with this alignment.
    pub fn array(&mut self, alignment: usize, count: usize, elements: &[u8]) -> u32 {
        if alignment <= WORD_BYTES {
            self.payload.align(WORD_BYTES);
        } else {
            self.payload.align_ahead(alignment, WORD_BYTES);
        }
        let offset = self.append(&word(count));
        self.payload.bytes(elements);
        offset
    }

    /// Writes the array, or aggregate, without elements.
    pub fn empty_array(&mut self) -> u32 {
        self.array(1, 0, &[])
    }

    /// Writes a shape; `None` is the one of unknown rank.
    pub fn shape(&mut self, dimensions: Option<&[i64]>) -> u32 {
        let Some(dimensions) = dimensions else {
            return self.empty_array();
        };
        let len_bytes = SHAPE_PREFIX_BYTES + size_of_val(dimensions);
        let offset = self.header(FILE_ALIGNMENT, 0, SHAPE_PREFIX_BYTES, len_bytes);
        self.payload.bytes(&word(dimensions.len()));
        self.dimensions(dimensions);
        offset
    }

    /// Writes dense elements so that they begin at a multiple of `alignment`, a power of two, wherever the
    /// section does.
    pub fn dense_at(
        &mut self,
        alignment: usize,
        dtype: DType,
        dimensions: &[i64],
        elements: &[u8],
    ) -> u32 {
        let prefix_bytes = DENSE_PREFIX_BYTES + size_of_val(dimensions);
        self.payload
            .align_ahead(alignment.max(FILE_ALIGNMENT), prefix_bytes);
        self.dense(dtype, dimensions, elements)
    }

    /// Writes dense elements.
    pub fn dense(&mut self, dtype: DType, dimensions: &[i64], elements: &[u8]) -> u32 {
        let prefix_bytes = DENSE_PREFIX_BYTES + size_of_val(dimensions);
        let count = elements.len() / dtype.size_bytes().unwrap_or(1);
        let len_bytes = prefix_bytes + elements.len();
        let offset = self.header(FILE_ALIGNMENT, dtype.byte(), prefix_bytes, len_bytes);
        self.payload.bytes(&word(prefix_bytes));
        self.payload.bytes(&word(count));
        self.payload.bytes(&word(dimensions.len()));
        self.dimensions(dimensions);
        self.payload.bytes(elements);
        offset
    }

    /// Writes an aggregate of `count` elements, at least one.
    ///
    /// `alignment` is the largest that an element asks for. `element` writes the
    /// element with the given position and returns its type and offset.
    pub fn aggregate<E>(
        &mut self,
        alignment: usize,
        count: usize,
        mut element: impl FnMut(&mut AttributeWriter, usize) -> Result<(AttributeType, u32), E>,
    ) -> Result<u32, E> {
        let alignment = alignment.max(WORD_BYTES);
        let prefix_bytes = AGGREGATE_PREFIX_BYTES + WORD_BYTES * count;
        let offset = self.header(alignment, 0, prefix_bytes, 0);
        self.payload.bytes(&word(count));
        let offsets = self.payload.len();
        self.payload.bytes(&vec![0; WORD_BYTES * count]);
        for position in 0..count {
            self.payload.byte(PADDING);
            let (kind, start) = element(self, position)?;
            self.payload.bytes[start as usize - 1] = kind.byte();
            self.patch(offsets + WORD_BYTES * position, start - offset);
        }
        let len_bytes = self.payload.len() - offset as usize;
        self.patch(offset as usize + WORD_BYTES, len_bytes as u32);
        Ok(offset)
    }

    /// Writes a symbol of a compiled module.
    pub fn symbol(&mut self, id: u64, root: &str, nested: &[&str], module: &str) -> u32 {
        let offset = self.payload.len() as u32;
        self.payload.varint(id);
        self.payload.count(root.len());
        self.payload.count(nested.len());
        for name in nested {
            self.payload.count(name.len());
        }
        self.payload.count(module.len());
        self.payload.bytes(root.as_bytes());
        for name in nested {
            self.payload.bytes(name.as_bytes());
        }
        self.payload.bytes(module.as_bytes());
        self.payload.byte(0);
        offset
    }

    /// Writes the header of a shape, dense elements or an aggregate.
    fn header(
        &mut self,
        alignment: usize,
        element_type: u8,
        prefix_bytes: usize,
        len_bytes: usize,
    ) -> u32 {
        debug_assert!(prefix_bytes > ATTRIBUTE_HEADER_BYTES);
        self.payload.align(WORD_BYTES);
        self.payload.align_ahead(alignment, prefix_bytes);
        // Both are defined to be cut to 16 and 8 bits; readers rely on the count instead.
        let [low, high, ..] = word(prefix_bytes);
        let offset = self.append(&[alignment as u8, element_type, low, high]);
        self.payload.bytes(&word(len_bytes));
        offset
    }

    fn dimensions(&mut self, dimensions: &[i64]) {
        for extent in dimensions {
            self.payload.bytes(&extent.to_le_bytes());
        }
    }

    /// Appends bytes and returns where they start.
    fn append(&mut self, bytes: &[u8]) -> u32 {
        let offset = self.payload.len() as u32;
        self.payload.bytes(bytes);
        offset
    }

    fn patch(&mut self, position: usize, value: u32) {
        self.payload.bytes[position..position + WORD_BYTES].copy_from_slice(&value.to_le_bytes());
    }
}

/// Returns a count or length as the format stores it. The compiler keeps sections below 4 GiB.
fn word(value: usize) -> [u8; WORD_BYTES] {
    (value as u32).to_le_bytes()
}
