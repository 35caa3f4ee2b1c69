//! The constants of the format: magic, versions, section ids, alignments.
//!
//! The other modules spell no constant of the format themselves.

/// First two bytes of every file.
pub const MAGIC: [u8; 2] = [0x0B, 0xEF];

/// The version byte that follows the magic.
pub const VERSION: u8 = 0;

/// The byte that fills every gap that alignment leaves.
pub const PADDING: u8 = 0xCC;

/// Alignment of a file in memory. Only sections with elements of models ask for more.
pub const FILE_ALIGNMENT: usize = 8;

/// Alignment of kernel records within the file.
pub const KERNEL_ALIGNMENT: usize = 4;

/// Number of fixed words at the start of a kernel record.
pub const KERNEL_HEADER_WORDS: usize = 6;

/// Kernel code of the pseudo kernel that stands for a function's entry.
pub const PSEUDO_KERNEL_CODE: u32 = 0xABAB_ABAB;

/// Location of the pseudo kernel.
pub const PSEUDO_KERNEL_LOCATION: u32 = 0xCDCD_CDCD;

/// First location offset given to a record that could not be encoded; the next one is one less.
pub const FIRST_VIRTUAL_LOCATION: u32 = 0xFFFF_FFFE;

/// Bytes in the header of shapes, dense elements and aggregates.
pub const ATTRIBUTE_HEADER_BYTES: usize = 8;

/// Bytes before the dimensions of a shape.
pub const SHAPE_PREFIX_BYTES: usize = 12;

/// Bytes before the dimensions of dense elements.
pub const DENSE_PREFIX_BYTES: usize = 20;

/// Bytes before the offsets of an aggregate.
pub const AGGREGATE_PREFIX_BYTES: usize = 12;

/// The most levels of aggregates in one another.
pub const MAX_ATTRIBUTE_DEPTH: usize = 64;

/// The most levels of locations in one another.
pub const MAX_LOCATION_DEPTH: usize = 256;

/// The most bytes of a location's text: the names in it, as often as they occur, and
/// [`LOCATION_PART_BYTES`] for each record in it. Many locations may share one long name.
pub const MAX_LOCATION_BYTES: usize = 1 << 16;

/// The bytes that each record in a location counts for, beside the name that it may have.
pub const LOCATION_PART_BYTES: usize = 16;

/// The most levels of kernels' regions in one another.
pub const MAX_REGION_DEPTH: usize = 64;

/// The id of a section, by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SectionId {
    /// NUL-terminated strings, addressed by byte offset.
    Strings = 0,
    /// Constants, addressed by byte offset.
    Attributes = 1,
    /// The kernel names in use.
    Kernels = 2,
    /// The type names in use.
    Types = 3,
    /// Kind, name and signature of each function.
    FunctionIndex = 4,
    /// Function bodies, addressed by byte offset.
    Functions = 5,
    /// Strings of the Locations section.
    LocationStrings = 6,
    /// Location records, addressed by byte offset.
    Locations = 7,
    /// Offset and type of each attribute. Optional.
    AttributeTypes = 8,
    /// Name of each attribute of each kernel. Optional.
    AttributeNames = 9,
    /// Type of each register. Optional.
    RegisterTypes = 10,
    /// Kernels that start when any one operand is there. Ours; optional.
    NonStrict = 0x40,
    /// The function that is a model, and names for its inputs and outputs. Ours; optional.
    Model = 0x45,
}

impl SectionId {
    /// Every section this crate knows, in the order in which they are written.
    pub const ALL: [SectionId; 13] = [
        SectionId::Strings,
        SectionId::Attributes,
        SectionId::Kernels,
        SectionId::Types,
        SectionId::FunctionIndex,
        SectionId::Functions,
        SectionId::LocationStrings,
        SectionId::Locations,
        SectionId::AttributeTypes,
        SectionId::AttributeNames,
        SectionId::RegisterTypes,
        SectionId::NonStrict,
        SectionId::Model,
    ];

    /// Returns the section with this id, if it is one of ours or the original's.
    pub fn from_byte(byte: u8) -> Option<SectionId> {
        SectionId::ALL.into_iter().find(|id| *id as u8 == byte)
    }

    /// Returns the name used in messages and dumps.
    pub fn name(self) -> &'static str {
        match self {
            SectionId::Strings => "Strings",
            SectionId::Attributes => "Attributes",
            SectionId::Kernels => "Kernels",
            SectionId::Types => "Types",
            SectionId::FunctionIndex => "FunctionIndex",
            SectionId::Functions => "Functions",
            SectionId::LocationStrings => "LocationStrings",
            SectionId::Locations => "Locations",
            SectionId::AttributeTypes => "AttributeTypes",
            SectionId::AttributeNames => "AttributeNames",
            SectionId::RegisterTypes => "RegisterTypes",
            SectionId::NonStrict => "NonStrict",
            SectionId::Model => "Model",
        }
    }
}

/// The kind of a function: how it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FunctionKind {
    /// A dataflow graph.
    Async = 0,
    /// A function of the host, found by its name; it has no body in the file.
    Native = 1,
    /// A list of kernels run in order by the interpreter.
    Sync = 2,
}

impl FunctionKind {
    /// Returns the kind that `byte` stands for.
    pub fn from_byte(byte: u8) -> Option<FunctionKind> {
        match byte {
            0 => Some(FunctionKind::Async),
            1 => Some(FunctionKind::Native),
            2 => Some(FunctionKind::Sync),
            _ => None,
        }
    }
}

/// The kind of a location record: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LocationKind {
    /// An unknown location.
    Unknown = 0,
    /// File, line and column.
    FileLineCol = 1,
    /// A name, and where that is.
    Name = 2,
    /// A callee and its caller.
    CallSite = 3,
    /// Several locations.
    Fused = 4,
}

impl LocationKind {
    /// Returns the kind that `byte` stands for.
    pub fn from_byte(byte: u8) -> Option<LocationKind> {
        match byte {
            0 => Some(LocationKind::Unknown),
            1 => Some(LocationKind::FileLineCol),
            2 => Some(LocationKind::Name),
            3 => Some(LocationKind::CallSite),
            4 => Some(LocationKind::Fused),
            _ => None,
        }
    }
}

/// Defines an index that is not to be mixed up with another.
macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the index as a `usize`.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index! {
    /// Position of a function in the file.
    FunctionIndex
}
index! {
    /// Position of a kernel in its function; 0 is the pseudo kernel.
    KernelIndex
}
index! {
    /// Position of a kernel name in the file.
    KernelCode
}
index! {
    /// Position of a register in its function.
    RegisterIndex
}
index! {
    /// Position of a type name in the file.
    TypeIndex
}
index! {
    /// Byte offset of an attribute in the Attributes section.
    AttributeOffset
}
index! {
    /// Byte offset of a record in the Locations section, or a number past its end.
    LocationOffset
}
