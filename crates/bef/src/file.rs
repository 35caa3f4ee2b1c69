//! [`BefFile`]: bytes that passed the gate, and the tables found on the way.

use std::{fmt, ops::Range, sync::Arc};

use zerocopy::FromBytes;

use crate::{
    attribute::AttributeView,
    buffer::BefBuffer,
    dtype::AttributeType,
    error::BefError,
    function::FunctionView,
    layout::{
        AttributeOffset, FunctionIndex, FunctionKind, KernelCode, KernelIndex, LocationOffset,
        SectionId, TypeIndex,
    },
    location::{self, Location, LocationRecord},
    model::Model,
    verify,
};

/// A file that passed the gate.
///
/// Cloning counts; it copies nothing. Views borrow from the file and return slices of it.
///
/// # Examples
///
/// ```
/// use tfrt_bef::{BefFile, BefWriter};
///
/// let file = BefFile::open(BefWriter::new().finish())?;
/// assert_eq!(file.n_functions(), 0);
/// # Ok::<(), tfrt_bef::BefError>(())
/// ```
#[derive(Clone)]
pub struct BefFile {
    buffer: BefBuffer,
    index: Arc<Index>,
}

/// Positions of an entry's parts in one of the flat tables of [`Index`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(crate) fn len(self) -> usize {
        self.range().len()
    }
}

/// The tables of a file that the gate made while it checked the bytes. Memory: proportional to the
/// file.
///
/// Invariant: every number in it was checked by `verify`.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) sections: Vec<Section>,
    /// The names of kernels: spans of the Strings section.
    pub(crate) kernel_names: Vec<Span>,
    /// The names of types: spans of the Strings section.
    pub(crate) type_names: Vec<Span>,
    pub(crate) functions: Vec<FunctionRecord>,
    /// Argument and result types of all functions.
    pub(crate) signature_types: Vec<u32>,
    /// Use counts of the registers of all bodies.
    pub(crate) use_counts: Vec<u32>,
    /// The start of each register's list of users, in words of the Functions section.
    pub(crate) users: Vec<u32>,
    /// Types of the registers of all bodies, or nothing if the file has none.
    pub(crate) register_types: Vec<u32>,
    /// Kernels of all bodies, pseudo kernels included.
    pub(crate) kernels: Vec<KernelRecord>,
    /// Result registers of all bodies.
    pub(crate) result_registers: Vec<u32>,
    /// The names of attributes: spans of the Strings section; empty if the file has no names.
    pub(crate) attribute_names: Vec<Span>,
    /// Offset and type of each listed attribute, by ascending offset.
    pub(crate) attribute_types: Vec<(u32, AttributeType)>,
    pub(crate) has_attribute_types: bool,
    pub(crate) has_attribute_names: bool,
    pub(crate) has_register_types: bool,
    /// Named functions, by name; of two with one name the later comes first.
    pub(crate) by_name: Vec<u32>,
    pub(crate) model: Option<Model>,
}

/// One section of the file, known or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub(crate) id: u8,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionRecord {
    pub(crate) kind: FunctionKind,
    pub(crate) name: Span,
    pub(crate) arguments: Span,
    pub(crate) results: Span,
    /// The offset of the body in the Functions section.
    pub(crate) offset: u32,
    pub(crate) body: Option<BodyRecord>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyRecord {
    pub(crate) location: u32,
    /// Spans `use_counts`, `users` and, if there are any, `register_types`.
    pub(crate) registers: Span,
    pub(crate) kernels: Span,
    pub(crate) results: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelRecord {
    /// The start of the record, in words of the Functions section.
    pub(crate) word: u32,
    pub(crate) stream: u32,
    /// The first of the attributes' names in `attribute_names`.
    pub(crate) first_name: u32,
    pub(crate) nonstrict: bool,
}

/// The range of a file's attributes, for [`BefFile::scalar`].
#[derive(Clone, Debug)]
pub struct AttributeSection(Range<usize>);

impl BefFile {
    /// Opens `buffer` as a file: checks all of it once, so that nothing that reads it later can
    /// fail.
    ///
    /// # Errors
    ///
    /// Returns the first violated condition with the offset, in bytes from the
    /// start of the file, of what violates it.
    pub fn open(buffer: BefBuffer) -> Result<BefFile, BefError> {
        let index = verify::verify(buffer.as_bytes())?;
        Ok(BefFile {
            buffer,
            index: Arc::new(index),
        })
    }

    /// Returns the bytes.
    pub fn buffer(&self) -> &BefBuffer {
        &self.buffer
    }

    /// Returns how many kernel names the file lists.
    pub fn n_kernel_codes(&self) -> usize {
        self.index.kernel_names.len()
    }

    /// Returns the name of a kernel.
    ///
    /// # Panics
    ///
    /// If `code` is not below [`BefFile::n_kernel_codes`].
    pub fn kernel_name(&self, code: KernelCode) -> &str {
        self.text(self.index.kernel_names[code.index()])
    }

    /// Returns the names of all kernels, by code.
    pub fn kernel_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.index.kernel_names.iter().map(|span| self.text(*span))
    }

    /// Returns how many type names the file lists.
    pub fn n_types(&self) -> usize {
        self.index.type_names.len()
    }

    /// Returns the name of a type, as programs spell it.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`BefFile::n_types`].
    pub fn type_name(&self, index: TypeIndex) -> &str {
        self.text(self.index.type_names[index.index()])
    }

    /// Returns how many functions the file has, those without a name included.
    pub fn n_functions(&self) -> usize {
        self.index.functions.len()
    }

    /// Returns a function.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`BefFile::n_functions`].
    pub fn function(&self, index: FunctionIndex) -> FunctionView<'_> {
        FunctionView::new(self, index)
    }

    /// Returns all functions, in the order of the file.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = FunctionView<'_>> {
        (0..self.index.functions.len() as u32).map(|index| self.function(FunctionIndex(index)))
    }

    /// Returns the function called `name`; the last one if there are several.
    pub fn find_function(&self, name: &str) -> Option<FunctionIndex> {
        let by_name = &self.index.by_name;
        let name_of = |index: u32| self.text(self.index.functions[index as usize].name);
        let first = by_name.partition_point(|index| name_of(*index) < name);
        let index = *by_name.get(first)?;
        (name_of(index) == name).then_some(FunctionIndex(index))
    }

    /// Returns the description of the model that the file holds, if it holds one.
    pub fn model(&self) -> Option<&Model> {
        self.index.model.as_ref()
    }

    /// Returns the attribute at `offset`. Its typed readers say whether there is one.
    pub fn attribute(&self, offset: AttributeOffset) -> AttributeView<'_> {
        let section = self.section_range(SectionId::Attributes);
        let start = section.start.saturating_add(offset.index());
        AttributeView::new(
            &self.buffer.as_bytes()[..section.end],
            section.start,
            start,
            self.attribute_type(offset),
        )
    }

    /// Returns where attributes lie, for [`BefFile::scalar`].
    pub fn attribute_section(&self) -> AttributeSection {
        AttributeSection(self.section_range(SectionId::Attributes))
    }

    /// Returns the scalar at `offset`, whatever its type is said to be; `None` if it would not lie inside
    /// of the section. What [`BefFile::attribute`] does beside this is to check the type.
    #[inline]
    pub fn scalar<T: crate::Element>(
        &self,
        section: &AttributeSection,
        offset: AttributeOffset,
    ) -> Option<T> {
        let section = self.buffer.as_bytes().get(section.0.clone())?;
        let bytes = section.get(offset.index()..)?;
        T::read_from_prefix(bytes).ok().map(|(value, _)| value)
    }

    /// Returns the type of the attribute at `offset`, if the file lists it.
    pub fn attribute_type(&self, offset: AttributeOffset) -> Option<AttributeType> {
        let types = &self.index.attribute_types;
        let found = types
            .binary_search_by_key(&offset.0, |(listed, _)| *listed)
            .ok()?;
        Some(types[found].1)
    }

    /// Returns the offset and type of each attribute that the file lists, in ascending order.
    pub fn attribute_types(
        &self,
    ) -> impl ExactSizeIterator<Item = (AttributeOffset, AttributeType)> {
        self.index
            .attribute_types
            .iter()
            .map(|(offset, kind)| (AttributeOffset(*offset), *kind))
    }

    /// Returns the source position at `offset`, or `None` past the section's end.
    pub fn location(&self, offset: LocationOffset) -> Option<Location> {
        self.location_record(offset).map(Location::from)
    }

    /// Returns the name that the location at `offset` gives to a kernel.
    pub fn debug_name(&self, offset: LocationOffset) -> Option<String> {
        self.location_record(offset)?
            .debug_name()
            .map(str::to_owned)
    }

    /// Returns the location at `offset` with all its parts, or `None` past the section's end.
    pub fn location_record(&self, offset: LocationOffset) -> Option<LocationRecord> {
        location::decode(
            self.buffer.as_bytes(),
            self.section_range(SectionId::Locations),
            self.section_range(SectionId::LocationStrings),
            offset,
        )
    }

    /// Returns whether attribute types, attribute names and register types are all there.
    pub fn has_optional_sections(&self) -> bool {
        self.index.has_attribute_types
            && self.index.has_attribute_names
            && self.index.has_register_types
    }

    /// Returns the payload of the section with this id, if the file has it.
    pub fn section(&self, id: u8) -> Option<&[u8]> {
        let section = self
            .index
            .sections
            .iter()
            .find(|section| section.id == id)?;
        Some(&self.buffer.as_bytes()[section.start..section.end])
    }

    /// Returns whether a kernel starts when any one operand is there.
    ///
    /// # Panics
    ///
    /// If there is no such function.
    pub fn nonstrict(&self, function: FunctionIndex, kernel: KernelIndex) -> bool {
        let Some(body) = self.index.functions[function.index()].body else {
            return false;
        };
        let kernels = &self.index.kernels[body.kernels.range()];
        kernels
            .get(kernel.index())
            .is_some_and(|record| record.nonstrict)
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Returns where the section lies in the file; empty if the file lacks it.
    pub(crate) fn section_range(&self, id: SectionId) -> Range<usize> {
        let mut sections = self.index.sections.iter();
        sections
            .find(|section| section.id == id as u8)
            .map_or(0..0, |s| s.start..s.end)
    }

    /// Returns a string of the Strings section.
    pub(crate) fn text(&self, span: Span) -> &str {
        let start = self.section_range(SectionId::Strings).start;
        let range = span.range();
        let bytes = &self.buffer.as_bytes()[start + range.start..start + range.end];
        std::str::from_utf8(bytes).expect("open() checked that strings are UTF-8")
    }

    /// Returns the whole words of the Functions section.
    pub(crate) fn function_words(&self) -> &[u32] {
        words_of(&self.buffer.as_bytes()[self.section_range(SectionId::Functions)])
            .expect("open() checked the section's alignment")
    }
}

/// Returns the whole words at the start of `bytes`, if those are aligned.
pub(crate) fn words_of(bytes: &[u8]) -> Option<&[u32]> {
    let n_words = bytes.len() / size_of::<u32>();
    let (words, _) = <[u32]>::ref_from_prefix_with_elems(bytes, n_words).ok()?;
    Some(words)
}

impl fmt::Debug for BefFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BefFile")
            .field("buffer", &self.buffer)
            .field("n_functions", &self.n_functions())
            .finish_non_exhaustive()
    }
}
