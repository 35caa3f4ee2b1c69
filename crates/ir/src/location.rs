//! Locations: where operations come from, as a position in a file, a name, a call, or several of
//! these.

use std::{fmt, sync::Arc};

use crate::{attributes::Attribute, name::Name, printer};

/// The origin of an operation or a block argument.
///
/// `Display` writes it as MLIR does between the parentheses of `loc(...)`.
///
/// # Examples
///
/// ```
/// use tfrt_ir::Location;
///
/// let inner = Location::FileLineCol { file: "a.py".into(), line: 3, column: 7 };
/// let named = Location::named("matmul", Some(inner));
/// assert_eq!(named.to_string(), r#""matmul"("a.py":3:7)"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Location {
    /// An unknown location.
    #[default]
    Unknown,
    /// A position in a file; lines and columns start at 1.
    FileLineCol {
        /// Name of the file.
        file: Name,
        /// Line, from 1; 0 if unknown.
        line: u32,
        /// Column in bytes, from 1; 0 if unknown.
        column: u32,
    },
    /// A name, and maybe the location of the named thing.
    Name(Arc<NameLocation>),
    /// A callee and the place that calls it.
    CallSite(Arc<CallSiteLocation>),
    /// Several locations of something that was made of several things.
    Fused(Arc<FusedLocation>),
    /// A location that only its dialect understands, as written.
    Opaque(Name),
}

/// The parts of [`Location::Name`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NameLocation {
    /// The name.
    pub name: Name,
    /// The location of the named thing; `Unknown` if the text does not say.
    pub child: Location,
}

/// The parts of [`Location::CallSite`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallSiteLocation {
    /// The location in the callee.
    pub callee: Location,
    /// The location of the call.
    pub caller: Location,
}

/// The parts of [`Location::Fused`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FusedLocation {
    /// The members: none is `Unknown`, none occurs twice.
    pub locations: Vec<Location>,
    /// The meaning of the fusion, if the text says it.
    pub metadata: Option<Attribute>,
}

impl Location {
    /// Makes a name location.
    pub fn named(name: impl Into<Name>, child: Option<Location>) -> Location {
        let child = child.unwrap_or_default();
        Location::Name(Arc::new(NameLocation {
            name: name.into(),
            child,
        }))
    }

    /// Makes a call-site location.
    pub fn call_site(callee: Location, caller: Location) -> Location {
        Location::CallSite(Arc::new(CallSiteLocation { callee, caller }))
    }

    /// Fuses locations as MLIR does: nested fusions with the same metadata are
    /// flattened, unknown and repeated members are dropped, and what remains
    /// of a single member without metadata is that member.
    pub fn fused(locations: Vec<Location>, metadata: Option<Attribute>) -> Location {
        let mut members: Vec<Location> = Vec::with_capacity(locations.len());
        let mut seen = std::collections::HashSet::new();
        let mut add = |location: &Location| {
            if *location != Location::Unknown && seen.insert(location.clone()) {
                members.push(location.clone());
            }
        };
        for location in &locations {
            match location {
                Location::Fused(inner) if inner.metadata == metadata => {
                    inner.locations.iter().for_each(&mut add);
                }
                other => add(other),
            }
        }
        if metadata.is_none() && members.len() < 2 {
            return members.pop().unwrap_or_default();
        }
        Location::Fused(Arc::new(FusedLocation {
            locations: members,
            metadata,
        }))
    }

    /// Returns the first file position in the location, if there is one.
    pub fn file_line_col(&self) -> Option<(&Name, u32, u32)> {
        match self {
            Location::FileLineCol { file, line, column } => Some((file, *line, *column)),
            Location::Name(inner) => inner.child.file_line_col(),
            Location::CallSite(inner) => inner
                .callee
                .file_line_col()
                .or_else(|| inner.caller.file_line_col()),
            Location::Fused(inner) => inner.locations.iter().find_map(Location::file_line_col),
            Location::Unknown | Location::Opaque(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Unknown => f.write_str("unknown"),
            Location::FileLineCol { file, line, column } => {
                printer::write_quoted(f, file.as_bytes())?;
                write!(f, ":{line}:{column}")
            }
            Location::Name(inner) => {
                printer::write_quoted(f, inner.name.as_bytes())?;
                match &inner.child {
                    Location::Unknown => Ok(()),
                    child => write!(f, "({child})"),
                }
            }
            Location::CallSite(inner) => {
                write!(f, "callsite({} at {})", inner.callee, inner.caller)
            }
            Location::Fused(inner) => {
                f.write_str("fused")?;
                if let Some(metadata) = &inner.metadata {
                    write!(f, "<{metadata}>")?;
                }
                f.write_str("[")?;
                printer::write_list(f, &inner.locations)?;
                f.write_str("]")
            }
            Location::Opaque(text) => f.write_str(text),
        }
    }
}
