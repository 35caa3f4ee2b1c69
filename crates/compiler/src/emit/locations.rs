//! Writes location records, and numbers locations that have none.

use tfrt_bef::{
    BefWriter,
    layout::{FIRST_VIRTUAL_LOCATION, LOCATION_PART_BYTES, MAX_LOCATION_BYTES, MAX_LOCATION_DEPTH},
};
use tfrt_ir::{Location, Name};

/// A writer of locations, one for each function and kernel; none is shared.
pub(super) struct LocationEmitter {
    /// The number for the next location without a record, counting down.
    next_virtual: u32,
    /// The file that was named last, with the offset of its name.
    last_file: Option<(Name, u32)>,
}

impl LocationEmitter {
    pub(super) fn new() -> LocationEmitter {
        LocationEmitter {
            next_virtual: FIRST_VIRTUAL_LOCATION,
            last_file: None,
        }
    }

    /// Writes a location, and returns the offset by which functions and kernels refer to it.
    pub(super) fn emit(&mut self, writer: &mut BefWriter, location: &Location) -> u32 {
        let mut left = MAX_LOCATION_BYTES;
        if !is_supported(location, 0) || !fits(location, 0, &mut left) {
            let number = self.next_virtual;
            self.next_virtual -= 1;
            return number;
        }
        let offset = writer.locations.offset();
        match location {
            Location::FileLineCol { file, line, column } => {
                let file = self.file(writer, file);
                writer.locations.file_line_col(file, *line, *column);
            }
            _ => record(writer, location, 0),
        }
        offset
    }

    /// Returns the offset of a file's name; most locations name the same file.
    fn file(&mut self, writer: &mut BefWriter, file: &Name) -> u32 {
        if let Some((last, offset)) = &self.last_file
            && last == file
        {
            return *offset;
        }
        let offset = writer.location_strings.insert(file);
        self.last_file = Some((file.clone(), offset));
        offset
    }
}

/// Returns whether a location has a record.
fn is_supported(location: &Location, depth: usize) -> bool {
    if depth > MAX_LOCATION_DEPTH {
        return false;
    }
    match location {
        Location::Unknown | Location::FileLineCol { .. } => true,
        // What is inside a name is left out if need be.
        Location::Name(_) => depth < MAX_LOCATION_DEPTH,
        Location::CallSite(site) => {
            is_supported(&site.callee, depth + 1) && is_supported(&site.caller, depth + 1)
        }
        Location::Fused(fused) => fused
            .locations
            .iter()
            .any(|member| is_supported(member, depth + 1)),
        Location::Opaque(_) => false,
    }
}

/// Returns whether the record of a supported location takes no more than so many bytes.
fn fits(location: &Location, depth: usize, left: &mut usize) -> bool {
    let name_bytes = match location {
        Location::FileLineCol { file, .. } => file.len(),
        Location::Name(named) => named.name.len(),
        _ => 0,
    };
    let Some(rest) = left.checked_sub(LOCATION_PART_BYTES + name_bytes) else {
        return false;
    };
    *left = rest;
    match location {
        Location::Unknown | Location::Opaque(_) | Location::FileLineCol { .. } => true,
        Location::Name(named) if is_supported(&named.child, depth + 1) => {
            fits(&named.child, depth + 1, left)
        }
        Location::Name(_) => fits(&Location::Unknown, depth + 1, left),
        Location::CallSite(site) => {
            fits(&site.callee, depth + 1, left) && fits(&site.caller, depth + 1, left)
        }
        Location::Fused(fused) => fused
            .locations
            .iter()
            .filter(|member| is_supported(member, depth + 1))
            .all(|member| fits(member, depth + 1, left)),
    }
}

/// Writes the record of a supported location.
fn record(writer: &mut BefWriter, location: &Location, depth: usize) {
    match location {
        Location::Unknown | Location::Opaque(_) => writer.locations.unknown(),
        Location::FileLineCol { file, line, column } => {
            let file = writer.location_strings.insert(file);
            writer.locations.file_line_col(file, *line, *column);
        }
        Location::Name(named) => {
            let name = writer.location_strings.insert(&named.name);
            writer.locations.name(name);
            match is_supported(&named.child, depth + 1) {
                true => record(writer, &named.child, depth + 1),
                false => writer.locations.unknown(),
            }
        }
        Location::CallSite(site) => {
            writer.locations.call_site();
            record(writer, &site.callee, depth + 1);
            record(writer, &site.caller, depth + 1);
        }
        Location::Fused(fused) => {
            let members = || {
                fused
                    .locations
                    .iter()
                    .filter(|member| is_supported(member, depth + 1))
            };
            writer.locations.fused(members().count());
            members().for_each(|member| record(writer, member, depth + 1));
        }
    }
}
