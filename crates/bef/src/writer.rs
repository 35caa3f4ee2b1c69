//! [`BefWriter`]: writes a file's sections and records.
//!
//! The writer knows the format and nothing else: it checks no index, so that tests
//! can also write what no compiler would. [`FunctionBody::new`] derives what
//! follows from operands and results: use counts, users, wait counts.
//!
//! Sections come in the order of their ids. The alignment flag of a section is
//! written only where the payload would not be aligned without it.

mod attributes;
mod body;

use std::collections::HashMap;

use zerocopy::IntoBytes;

pub use attributes::AttributeWriter;
pub use body::{BodyWriter, KernelHead, ListWriter};

use crate::{
    buffer::BefBuffer,
    dtype::AttributeType,
    layout::{
        FunctionKind, LocationKind, MAGIC, PADDING, PSEUDO_KERNEL_CODE, PSEUDO_KERNEL_LOCATION,
        SectionId, VERSION,
    },
    model::Model,
    varint,
};

/// The bytes of one section, and the alignment that they ask for.
#[derive(Clone, Debug)]
pub struct Payload {
    bytes: Vec<u8>,
    alignment: usize,
}

impl Default for Payload {
    fn default() -> Payload {
        Payload {
            bytes: Vec::new(),
            alignment: 1,
        }
    }
}

impl Payload {
    /// Returns a payload of these bytes.
    pub fn from_bytes(bytes: Vec<u8>, alignment: usize) -> Payload {
        Payload { bytes, alignment }
    }

    /// Returns the bytes written so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns how many bytes were written, which is where the next one goes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Appends a byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a variable-length integer.
    pub fn varint(&mut self, value: impl Into<u64>) {
        varint::write(&mut self.bytes, value.into());
    }

    /// Appends a count or a length.
    pub fn count(&mut self, count: usize) {
        varint::write(&mut self.bytes, count as u64);
    }

    /// Appends words; the caller has aligned them.
    pub fn words(&mut self, words: &[u32]) {
        self.bytes(words.as_bytes());
    }

    /// Pads so that what comes `ahead` bytes from here starts at a multiple of `alignment`.
    pub fn align_ahead(&mut self, alignment: usize, ahead: usize) {
        self.alignment = self.alignment.max(alignment);
        while !(self.bytes.len() + ahead).is_multiple_of(alignment) {
            self.bytes.push(PADDING);
        }
    }

    /// Pads to a multiple of `alignment`.
    pub fn align(&mut self, alignment: usize) {
        self.align_ahead(alignment, 0);
    }
}

/// A table of NUL-terminated strings, each written once.
#[derive(Clone, Debug, Default)]
pub struct StringTable {
    payload: Payload,
    offsets: HashMap<String, u32>,
}

impl StringTable {
    /// Returns the offset of `text`, which is appended if it is new.
    pub fn insert(&mut self, text: &str) -> u32 {
        if let Some(offset) = self.offsets.get(text) {
            return *offset;
        }
        let offset = self.payload.len() as u32;
        self.payload.bytes(text.as_bytes());
        self.payload.byte(0);
        self.offsets.insert(text.to_owned(), offset);
        offset
    }

    /// Returns the offset of `text`, if the table has it.
    pub fn get(&self, text: &str) -> Option<u32> {
        self.offsets.get(text).copied()
    }

    /// Returns the bytes.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }
}

/// A kernel to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelEntry {
    /// The position of the kernel's name in [`BefWriter::kernels`].
    pub code: u32,
    /// Offset in [`BefWriter::locations`].
    pub location: u32,
    /// The number of operands to wait for.
    pub wait_count: u32,
    /// The stream that the kernel runs in.
    pub stream: u32,
    /// The registers that the kernel reads.
    pub operands: Vec<u32>,
    /// Offsets in [`BefWriter::attributes`].
    pub attributes: Vec<u32>,
    /// Offsets of the attributes' names in [`BefWriter::strings`].
    pub attribute_names: Vec<u32>,
    /// The functions that the kernel may call.
    pub functions: Vec<u32>,
    /// The registers that the kernel writes.
    pub results: Vec<u32>,
    /// The kernels that read each result.
    pub users: Vec<Vec<u32>>,
    /// Whether the kernel starts when any one operand is there.
    pub nonstrict: bool,
}

/// A function's body as lists, which can be changed before they are written.
///
/// A compiler, which does not look back, uses a [`BodyWriter`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionBody {
    /// Offset in [`BefWriter::locations`].
    pub location: u32,
    /// The number of reads of each register.
    pub use_counts: Vec<u32>,
    /// Type of each register.
    pub register_types: Vec<u32>,
    /// The kernels, the pseudo kernel first.
    pub kernels: Vec<KernelEntry>,
    /// Registers that the function returns.
    pub results: Vec<u32>,
}

impl FunctionBody {
    /// Makes a body of kernels, the pseudo kernel not among them.
    ///
    /// Use counts, users, wait counts and the pseudo kernel follow from operands and
    /// results. The registers are numbered from 0, arguments first; those that do not
    /// exist are left out of the counts.
    pub fn new(
        n_registers: u32,
        n_arguments: u32,
        kernels: Vec<KernelEntry>,
        results: Vec<u32>,
    ) -> FunctionBody {
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); n_registers as usize];
        let mut entry_users = Vec::new();
        for (position, kernel) in kernels.iter().enumerate() {
            let index = position as u32 + 1;
            if kernel.operands.is_empty() {
                entry_users.push(index);
            }
            for operand in &kernel.operands {
                if let Some(users) = users.get_mut(*operand as usize) {
                    users.push(index);
                }
            }
        }
        let mut use_counts: Vec<u32> = users.iter().map(|users| users.len() as u32).collect();
        for result in &results {
            if let Some(count) = use_counts.get_mut(*result as usize) {
                *count += 1;
            }
        }
        // The original lists the latest reader first.
        users.iter_mut().for_each(|users| users.reverse());
        let users_of = |registers: &[u32]| {
            registers
                .iter()
                .map(|r| users[*r as usize].clone())
                .collect()
        };

        let mut all = Vec::with_capacity(kernels.len() + 1);
        let mut pseudo = KernelEntry {
            code: PSEUDO_KERNEL_CODE,
            location: PSEUDO_KERNEL_LOCATION,
            results: (0..n_arguments).collect(),
            ..KernelEntry::default()
        };
        pseudo.users = users_of(&pseudo.results);
        pseudo.results.insert(0, n_registers);
        pseudo.users.insert(0, entry_users);
        all.push(pseudo);
        all.extend(kernels.into_iter().map(|mut kernel| {
            kernel.wait_count = kernel.operands.len() as u32;
            kernel.users = users_of(&kernel.results);
            kernel
        }));
        FunctionBody {
            location: 0,
            use_counts,
            register_types: vec![0; n_registers as usize],
            kernels: all,
            results,
        }
    }

    /// Writes the kernels one by one.
    fn write(&self) -> BodyWriter {
        let mut body = BodyWriter::default();
        body.location = self.location;
        body.use_counts.clone_from(&self.use_counts);
        body.register_types.clone_from(&self.register_types);
        body.results.clone_from(&self.results);
        for kernel in &self.kernels {
            let head = KernelHead {
                code: kernel.code,
                location: kernel.location,
                wait_count: kernel.wait_count,
                stream: kernel.stream,
                nonstrict: kernel.nonstrict,
            };
            let mut record = body.kernel(head, kernel.users.len());
            let fixed = [
                &kernel.operands,
                &kernel.attributes,
                &kernel.functions,
                &kernel.results,
            ];
            for entries in fixed.into_iter().chain(&kernel.users) {
                record.list(entries.iter().copied());
            }
            let names = &kernel.attribute_names;
            body.attribute_names.extend_from_slice(names);
        }
        body
    }
}

/// A function to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionEntry {
    /// The kind of the function.
    pub kind: FunctionKind,
    /// The offset of the function's name in [`BefWriter::strings`].
    pub name: u32,
    /// The types of the arguments.
    pub arguments: Vec<u32>,
    /// The types of the results.
    pub results: Vec<u32>,
    /// The body; a native function has none.
    pub body: Option<BodyEntry>,
}

/// A function's body, as lists or written already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEntry {
    /// A body as lists, which can still be changed.
    Lists(FunctionBody),
    /// A body that is written already.
    Written(BodyWriter),
}

impl BodyEntry {
    /// Returns the lists of a body that is not written yet.
    pub fn as_lists_mut(&mut self) -> Option<&mut FunctionBody> {
        match self {
            BodyEntry::Lists(body) => Some(body),
            BodyEntry::Written(_) => None,
        }
    }

    fn written(self) -> BodyWriter {
        match self {
            BodyEntry::Lists(body) => body.write(),
            BodyEntry::Written(body) => body,
        }
    }
}

impl From<FunctionBody> for BodyEntry {
    fn from(body: FunctionBody) -> BodyEntry {
        BodyEntry::Lists(body)
    }
}

impl From<BodyWriter> for BodyEntry {
    fn from(body: BodyWriter) -> BodyEntry {
        BodyEntry::Written(body)
    }
}

/// A writer of a file, with the tables of its sections.
///
/// # Examples
///
/// A function that returns its argument:
///
/// ```
/// use tfrt_bef::{BefFile, BefWriter, FunctionBody, FunctionEntry, FunctionKind};
///
/// let mut writer = BefWriter::new();
/// let i32_name = writer.strings.insert("i32");
/// writer.types.push(i32_name);
/// let name = writer.strings.insert("identity");
/// writer.functions.push(FunctionEntry {
///     kind: FunctionKind::Async,
///     name,
///     arguments: vec![0],
///     results: vec![0],
///     body: Some(FunctionBody::new(1, 1, vec![], vec![0]).into()),
/// });
/// let file = BefFile::open(writer.finish())?;
/// assert!(file.find_function("identity").is_some());
/// # Ok::<(), tfrt_bef::BefError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct BefWriter {
    /// Names of kernels, types, functions and attributes.
    pub strings: StringTable,
    /// The constants.
    pub attributes: AttributeWriter,
    /// Offset and type of each constant, for the optional section.
    pub attribute_types: Vec<(u32, AttributeType)>,
    /// Offset of each kernel name.
    pub kernels: Vec<u32>,
    /// Offset of each type name.
    pub types: Vec<u32>,
    /// The functions.
    pub functions: Vec<FunctionEntry>,
    /// Names in locations.
    pub location_strings: StringTable,
    /// Location records.
    pub locations: LocationWriter,
    /// The description of the model, if a function is one.
    pub model: Option<Model>,
    /// Whether to leave the optional sections out.
    pub strip: bool,
}

impl BefWriter {
    /// Starts an empty file.
    pub fn new() -> BefWriter {
        BefWriter::default()
    }

    /// Returns the file.
    pub fn finish(self) -> BefBuffer {
        BefBuffer::from_vec(assemble(&self.sections()))
    }

    /// Returns about how many bytes the bodies take that are written already.
    fn bodies_len_bytes(&self) -> usize {
        let bodies = self.functions.iter().map(|function| match &function.body {
            Some(BodyEntry::Written(body)) => body.len_bytes(),
            _ => 0,
        });
        bodies.sum()
    }

    /// Returns the sections in order, for [`assemble`].
    pub fn sections(self) -> Vec<(u8, Payload)> {
        let mut functions = Payload::default();
        functions.bytes.reserve(self.bodies_len_bytes());
        let mut index = Payload::default();
        let mut optional = OptionalSections::new(self.functions.len());
        index.count(self.functions.len());
        for (position, function) in self.functions.into_iter().enumerate() {
            let mut offset = functions.len();
            if let Some(body) = function.body {
                let body = body.written();
                offset = body.write(&mut functions);
                optional.body(position, &body);
            }
            index.byte(function.kind as u8);
            index.count(offset);
            index.varint(function.name);
            for types in [&function.arguments, &function.results] {
                list(&mut index, types);
            }
        }
        let mut sections = vec![
            (SectionId::Strings, self.strings.payload),
            (SectionId::Attributes, self.attributes.into_payload()),
            (SectionId::Kernels, listed(&self.kernels)),
            (SectionId::Types, listed(&self.types)),
            (SectionId::FunctionIndex, index),
            (SectionId::Functions, functions),
        ];
        if !self.locations.payload.is_empty() {
            sections.push((SectionId::LocationStrings, self.location_strings.payload));
            sections.push((SectionId::Locations, self.locations.payload));
        }
        if !self.strip {
            let types = attribute_types_payload(&self.attribute_types);
            sections.push((SectionId::AttributeTypes, types));
            sections.push((SectionId::AttributeNames, optional.attribute_names));
            sections.push((SectionId::RegisterTypes, optional.register_types));
        }
        if !optional.marks.is_empty() {
            let mut nonstrict = Payload::default();
            nonstrict.count(optional.marks.len());
            for (function, kernel) in optional.marks {
                nonstrict.count(function);
                nonstrict.varint(kernel);
            }
            sections.push((SectionId::NonStrict, nonstrict));
        }
        if let Some(model) = &self.model {
            sections.push((SectionId::Model, model.payload()));
        }
        sections
            .into_iter()
            .map(|(id, payload)| (id as u8, payload))
            .collect()
    }
}

/// The optional sections on bodies, while these are written.
struct OptionalSections {
    attribute_names: Payload,
    register_types: Payload,
    /// Non-strict kernels, with their functions.
    marks: Vec<(usize, u32)>,
}

impl OptionalSections {
    fn new(n_functions: usize) -> OptionalSections {
        let mut counted = Payload::default();
        counted.count(n_functions);
        OptionalSections {
            attribute_names: counted.clone(),
            register_types: counted,
            marks: Vec::new(),
        }
    }

    fn body(&mut self, function: usize, body: &BodyWriter) {
        self.attribute_names.count(body.n_kernels as usize);
        for name in &body.attribute_names {
            self.attribute_names.varint(*name);
        }
        list(&mut self.register_types, &body.register_types);
        let marks = body.nonstrict.iter().map(|kernel| (function, *kernel));
        self.marks.extend(marks);
    }
}

fn attribute_types_payload(types: &[(u32, AttributeType)]) -> Payload {
    let mut payload = Payload::default();
    payload.count(types.len());
    for (offset, kind) in types {
        payload.varint(*offset);
        payload.varint(kind.byte());
    }
    payload
}

/// Appends a count and that many integers.
fn list(payload: &mut Payload, entries: &[u32]) {
    payload.count(entries.len());
    for entry in entries {
        payload.varint(*entry);
    }
}

fn listed(entries: &[u32]) -> Payload {
    let mut payload = Payload::default();
    list(&mut payload, entries);
    payload
}

/// Puts sections behind the file's header.
pub fn assemble(sections: &[(u8, Payload)]) -> Vec<u8> {
    // More than a header takes, with its alignment.
    const HEADER_BYTES: usize = 64;
    let bytes = sections
        .iter()
        .map(|(_, payload)| payload.len() + HEADER_BYTES);
    let mut out = Vec::with_capacity(MAGIC.len() + 1 + bytes.sum::<usize>());
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    for (id, payload) in sections {
        out.push(*id);
        let head = (payload.len() as u64) << 1;
        let start = out.len() + varint::len_bytes(head);
        if start.is_multiple_of(payload.alignment) {
            varint::write(&mut out, head);
        } else {
            varint::write(&mut out, head | 1);
            // An alignment is a small power of two: it fits.
            out.push(payload.alignment as u8);
            out.resize(out.len().next_multiple_of(payload.alignment), PADDING);
        }
        out.extend_from_slice(payload.as_bytes());
    }
    out.shrink_to_fit();
    out
}

/// A writer of location records, one behind the other.
///
/// Each record is written parent first: a name is followed by its child, a call site
/// by callee and caller, a fused location by its members.
#[derive(Clone, Debug, Default)]
pub struct LocationWriter {
    payload: Payload,
}

impl LocationWriter {
    /// Returns where the next record starts.
    pub fn offset(&self) -> u32 {
        self.payload.len() as u32
    }

    /// Writes the record that knows nothing.
    pub fn unknown(&mut self) {
        self.payload.byte(LocationKind::Unknown as u8);
    }

    /// Writes a position in a file, whose name is a location string.
    pub fn file_line_col(&mut self, file: u32, line: u32, column: u32) {
        self.payload.byte(LocationKind::FileLineCol as u8);
        self.payload.varint(file);
        self.payload.varint(line);
        self.payload.varint(column);
    }

    /// Writes the start of a name; its child comes next.
    pub fn name(&mut self, name: u32) {
        self.payload.byte(LocationKind::Name as u8);
        self.payload.varint(name);
    }

    /// Writes the start of a call site; callee and caller come next.
    pub fn call_site(&mut self) {
        self.payload.byte(LocationKind::CallSite as u8);
    }

    /// Writes the start of a fused location; its members come next.
    pub fn fused(&mut self, n_members: usize) {
        self.payload.byte(LocationKind::Fused as u8);
        self.payload.count(n_members);
    }
}
