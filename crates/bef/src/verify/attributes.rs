//! The sections that list something for attributes, registers and kernels.

use crate::{
    attribute::AttributeView,
    codes,
    cursor::{Cursor, Offsets, reserve, reserved},
    dtype::AttributeType,
    error::BefError,
    file::{BodyRecord, FunctionRecord, Span, words_of},
    kernel::RecordLayout,
    layout::{FunctionKind, SectionId},
    verify::{Gate, sections::Strings},
};

/// Starts reading an optional section; one without bytes counts as absent.
fn optional<'a>(gate: &Gate<'a>, id: SectionId, context: &'static str) -> Option<Cursor<'a>> {
    let cursor = gate.cursor(id, context);
    (!cursor.is_at_end()).then_some(cursor)
}

/// Reads the AttributeTypes section and decodes every attribute that it lists.
///
/// Attributes must not overlap, so that decoding is linear in their section.
pub(super) fn attribute_types(gate: &mut Gate<'_>) -> Result<(), BefError> {
    const CONTEXT: &str = "invalid AttributeTypes section in BEF file";
    const ENTRY_BYTES: usize = 2;
    let Some(mut cursor) = optional(gate, SectionId::AttributeTypes, CONTEXT) else {
        return Ok(());
    };
    let section = gate.section_range(SectionId::Attributes);
    let bytes = &gate.bytes[..section.end];
    let n_types = cursor.count(ENTRY_BYTES)?;
    let mut types = reserved(n_types, cursor.position())?;
    let mut listed = Offsets::new(section.len(), cursor.position())?;
    let mut least = section.start;
    for _ in 0..n_types {
        let position = cursor.position();
        let offset = cursor.varint32()?;
        let byte = cursor.varint()?;
        let kind = u8::try_from(byte).ok().and_then(AttributeType::from_byte);
        let Some(kind) = kind else {
            return Err(cursor.error_at(
                codes::ATTRIBUTE,
                position,
                &format!("unknown attribute type {byte}"),
            ));
        };
        let start = section.start.saturating_add(offset as usize);
        if start < least {
            let message = format!("the attribute at {offset} starts inside the one before it");
            return Err(cursor.error_at(codes::ATTRIBUTE, position, &message));
        }
        let view = AttributeView::new(bytes, section.start, start, None);
        let Some(end) = view.end_as(kind) else {
            let message =
                format!("the bytes at {offset} of the Attributes section do not decode as {kind}");
            return Err(BefError::new(
                codes::ATTRIBUTE,
                start.min(section.end),
                message,
            ));
        };
        least = end;
        if (offset as usize) < section.len() {
            listed.insert(offset as usize)?;
        }
        types.push((offset, kind));
    }
    cursor.finish()?;
    gate.listed_attributes = Some(listed);
    gate.index.attribute_types = types;
    gate.index.has_attribute_types = true;
    Ok(())
}

/// Reads the number of functions that starts a section, and checks it.
fn n_functions(gate: &Gate<'_>, cursor: &mut Cursor<'_>) -> Result<(), BefError> {
    let position = cursor.position();
    let found = cursor.varint()?;
    let expected = gate.index.functions.len();
    if found == expected as u64 {
        return Ok(());
    }
    Err(cursor.error_at(
        codes::ENTRY_COUNT,
        position,
        &format!("{found} functions, but the file has {expected}"),
    ))
}

/// Reads a number of entries for one function, and checks it.
fn n_entries(
    gate: &Gate<'_>,
    cursor: &mut Cursor<'_>,
    function: usize,
    what: &str,
    expected: usize,
) -> Result<(), BefError> {
    let position = cursor.position();
    let found = cursor.varint()?;
    if found == expected as u64 {
        return Ok(());
    }
    let message = format!(
        "{found} {what}, but {} has {expected}",
        gate.name_of(function)
    );
    Err(cursor.error_at(codes::ENTRY_COUNT, position, &message))
}

/// Reads the AttributeNames section.
pub(super) fn attribute_names(gate: &mut Gate<'_>, strings: &Strings) -> Result<(), BefError> {
    const CONTEXT: &str = "invalid AttributeNames section in BEF file";
    let Some(mut cursor) = optional(gate, SectionId::AttributeNames, CONTEXT) else {
        return Ok(());
    };
    n_functions(gate, &mut cursor)?;
    let section = gate.section_range(SectionId::Functions);
    let words = words_of(&gate.bytes[section]).unwrap_or_default();
    let mut names = Vec::new();
    for function in 0..gate.index.functions.len() {
        let Some(BodyRecord { kernels, .. }) = gate.index.functions[function].body else {
            continue;
        };
        n_entries(gate, &mut cursor, function, "kernels", kernels.len())?;
        for kernel in &mut gate.index.kernels[kernels.range()] {
            kernel.first_name = names.len() as u32;
            let shape = RecordLayout::read(words, kernel.word as usize);
            for _ in shape.map_or(0..0, |shape| shape.attributes()) {
                let position = cursor.position();
                reserve(&mut names, 1, position)?;
                let name = strings.read_span(&mut cursor)?;
                if name.len() == 0 {
                    let message = "an attribute has no name";
                    return Err(cursor.error_at(codes::STRING, position, message));
                }
                names.push(name);
            }
        }
    }
    cursor.finish()?;
    gate.index.attribute_names = names;
    gate.index.has_attribute_names = true;
    Ok(())
}

/// Reads the RegisterTypes section.
pub(super) fn register_types(gate: &mut Gate<'_>) -> Result<(), BefError> {
    const CONTEXT: &str = "invalid RegisterTypes section in BEF file";
    let Some(mut cursor) = optional(gate, SectionId::RegisterTypes, CONTEXT) else {
        return Ok(());
    };
    n_functions(gate, &mut cursor)?;
    let mut types = reserved(gate.index.use_counts.len(), cursor.position())?;
    let limit = gate.index.type_names.len();
    for (function, record) in gate.index.functions.iter().enumerate() {
        let FunctionRecord {
            body: Some(body), ..
        } = record
        else {
            continue;
        };
        n_entries(
            gate,
            &mut cursor,
            function,
            "registers",
            body.registers.len(),
        )?;
        for _ in body.registers.range() {
            let position = cursor.position();
            let index = cursor.varint32()?;
            if index as usize >= limit {
                let message = format!("type {index}, but the file has {limit}");
                return Err(cursor.error_at(codes::TYPE_INDEX, position, &message));
            }
            types.push(index);
        }
        signature(gate, &cursor, function, record, body, &types)?;
    }
    cursor.finish()?;
    gate.index.register_types = types;
    gate.index.has_register_types = true;
    Ok(())
}

/// Checks that the registers of arguments and results have the function's types.
fn signature(
    gate: &Gate<'_>,
    cursor: &Cursor<'_>,
    function: usize,
    record: &FunctionRecord,
    body: &BodyRecord,
    types: &[u32],
) -> Result<(), BefError> {
    let own = &types[body.registers.range()];
    let declared = |span: Span| gate.index.signature_types[span.range()].iter().copied();
    let results = &gate.index.result_registers[body.results.range()];
    let arguments = (0u32..).zip(declared(record.arguments));
    let pairs = arguments.chain(results.iter().copied().zip(declared(record.results)));
    for (register, expected) in pairs {
        let found = own[register as usize];
        if found != expected {
            let message = format!(
                "register {register} of {} has type {found}, but the function's signature says \
                 {expected}",
                gate.name_of(function)
            );
            return Err(cursor.error(codes::REGISTER_TYPE, &message));
        }
    }
    Ok(())
}

/// Reads the section of non-strict marks.
pub(super) fn nonstrict(gate: &mut Gate<'_>) -> Result<(), BefError> {
    const CONTEXT: &str = "invalid NonStrict section in BEF file";
    const ENTRY_BYTES: usize = 2;
    let Some(mut cursor) = optional(gate, SectionId::NonStrict, CONTEXT) else {
        return Ok(());
    };
    let mut last = None;
    for _ in 0..cursor.count(ENTRY_BYTES)? {
        let position = cursor.position();
        let mark = (cursor.varint32()?, cursor.varint32()?);
        if last >= Some(mark) {
            return Err(cursor.error_at(
                codes::NONSTRICT,
                position,
                "marks are not in ascending order",
            ));
        }
        last = Some(mark);
        let (function, kernel) = (mark.0 as usize, mark.1 as usize);
        let record = gate.index.functions.get(function);
        let body = record.filter(|record| record.kind != FunctionKind::Native);
        let Some(body) = body.and_then(|record| record.body) else {
            let message = format!("function {function} has no body to mark a kernel of");
            return Err(cursor.error_at(codes::NONSTRICT, position, &message));
        };
        if kernel == 0 || kernel >= body.kernels.len() {
            let message = format!(
                "kernel {kernel} of {} is marked, but its last kernel is {}",
                gate.name_of(function),
                body.kernels.len() - 1
            );
            return Err(cursor.error_at(codes::NONSTRICT, position, &message));
        }
        gate.index.kernels[body.kernels.range()][kernel].nonstrict = true;
    }
    cursor.finish()
}
