//! Regions: functions without a name, each inside one kernel of another function.

use crate::{
    codes,
    cursor::filled,
    error::BefError,
    file::words_of,
    kernel::RecordLayout,
    layout::{MAX_REGION_DEPTH, SectionId},
    verify::Gate,
};

/// The parent of a function that no kernel refers to.
const NONE: u32 = u32::MAX;

/// Checks that regions form trees of bounded depth.
pub(super) fn regions(gate: &Gate<'_>) -> Result<(), BefError> {
    let functions = &gate.index.functions;
    if functions.iter().all(|function| function.name.len() > 0) {
        return Ok(());
    }
    let section = gate.section_range(SectionId::Functions);
    let words = words_of(&gate.bytes[section.clone()]).unwrap_or_default();
    let mut parents = filled(NONE, functions.len(), section.start)?;
    for (parent, function) in (0u32..).zip(functions) {
        let Some(body) = function.body else { continue };
        for (position, kernel) in gate.index.kernels[body.kernels.range()].iter().enumerate() {
            let word = kernel.word as usize;
            let Some(shape) = RecordLayout::read(words, word) else {
                continue;
            };
            for at in shape.functions() {
                let region = words[at] as usize;
                if functions[region].name.len() > 0 {
                    continue;
                }
                if parents[region] != NONE {
                    let message = format!(
                        "kernel {position} of {} holds {}, which another kernel holds",
                        gate.name_of(parent as usize),
                        gate.name_of(region)
                    );
                    return Err(BefError::new(
                        codes::REGIONS,
                        section.start + 4 * at,
                        message,
                    ));
                }
                parents[region] = parent;
            }
        }
    }
    depths(gate, &parents)
}

/// Follows each function to the function around it, once.
fn depths(gate: &Gate<'_>, parents: &[u32]) -> Result<(), BefError> {
    const UNKNOWN: u8 = 0xff;
    const ON_PATH: u8 = 0xfe;
    let section = gate.section_range(SectionId::Functions);
    let mut depths = filled(UNKNOWN, parents.len(), section.start)?;
    let mut path = Vec::new();
    for start in 0..parents.len() {
        let mut at = start;
        while depths[at] == UNKNOWN {
            depths[at] = ON_PATH;
            path.push(at);
            if parents[at] == NONE {
                break;
            }
            at = parents[at] as usize;
        }
        let offset =
            |function: usize| section.start + gate.index.functions[function].offset as usize;
        if parents[at] != NONE && depths[at] == ON_PATH {
            let message = format!("{} holds itself", gate.name_of(at));
            return Err(BefError::new(codes::REGIONS, offset(at), message));
        }
        let mut depth = if depths[at] == ON_PATH {
            0
        } else {
            depths[at] + 1
        };
        while let Some(function) = path.pop() {
            if usize::from(depth) > MAX_REGION_DEPTH {
                let message = format!(
                    "{} lies in more than {MAX_REGION_DEPTH} regions",
                    gate.name_of(function)
                );
                return Err(BefError::new(codes::REGIONS, offset(function), message));
            }
            depths[function] = depth;
            depth += 1;
        }
    }
    Ok(())
}
