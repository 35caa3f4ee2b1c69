//! Decompiles location records, as locations that compile to the same records.

use std::sync::Arc;

use tfrt_bef::{BefFile, LocationOffset, LocationRecord};
use tfrt_ir::{
    Attribute, Location,
    location::{CallSiteLocation, FusedLocation, NameLocation},
};

use super::names::Names;

/// The text of a location that has no record: a fused location of nothing has none either.
const NO_RECORD: &str = "no record";

/// The metadata that keeps the text of a fused location from being simplified. The format has no place for metadata,
/// so that it costs nothing.
const AS_IT_IS: &str = "as it is";

/// Returns the location of a function or kernel, by its `offset`.
pub(super) fn location(file: &BefFile, names: &mut Names, offset: LocationOffset) -> Location {
    match file.location_record(offset) {
        Some(record) => of_record(&record, names),
        None => fused(Vec::new(), Some(NO_RECORD)),
    }
}

/// Decompiles a record. Recursion is bounded by the gate's limit on nesting.
fn of_record(record: &LocationRecord, names: &mut Names) -> Location {
    match record {
        LocationRecord::Unknown => Location::Unknown,
        LocationRecord::FileLineCol { file, line, column } => Location::FileLineCol {
            file: names.copied(file),
            line: *line,
            column: *column,
        },
        LocationRecord::Name { name, child } => Location::Name(Arc::new(NameLocation {
            name: names.copied(name),
            child: of_record(child, names),
        })),
        LocationRecord::CallSite { callee, caller } => {
            Location::CallSite(Arc::new(CallSiteLocation {
                callee: of_record(callee, names),
                caller: of_record(caller, names),
            }))
        }
        LocationRecord::Fused(members) => {
            let members = members.iter();
            let members: Vec<Location> = members.map(|member| of_record(member, names)).collect();
            let is_plain = |member: &Location| !matches!(member, Location::Fused(inner) if inner.metadata.is_none());
            let survives = members.len() > 1 && members.iter().all(is_plain);
            fused(members, (!survives).then_some(AS_IT_IS))
        }
    }
}

/// Fuses locations without the simplification of [`Location::fused`].
fn fused(locations: Vec<Location>, metadata: Option<&str>) -> Location {
    Location::Fused(Arc::new(FusedLocation {
        locations,
        metadata: metadata.map(Attribute::string),
    }))
}
