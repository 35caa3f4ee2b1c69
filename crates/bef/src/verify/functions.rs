//! The function index, and the frame of each body: tables before the kernel records.

use crate::{
    codes,
    cursor::{Cursor, reserve, reserved},
    error::BefError,
    file::{BodyRecord, FunctionRecord, KernelRecord, Span, words_of},
    layout::{FunctionKind, KERNEL_ALIGNMENT, SectionId},
    verify::{Gate, graph, locations::LocationTable, sections::Strings},
};

/// A part of a body, by which errors say what was being read.
///
/// The original names the part for sync functions only.
#[derive(Clone, Copy)]
enum BodyPart {
    Offset,
    Registers,
    UseCounts,
    NKernels,
    Kernels,
    Results,
    Alignment,
}

/// Returns the beginning of a message on a malformed part.
fn context(kind: FunctionKind, part: BodyPart) -> &'static str {
    /// Starts a message on a part of a sync function.
    macro_rules! sync {
        ($reason:literal) => {
            concat!(
                "invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(",
                $reason,
                ")"
            )
        };
    }
    if kind != FunctionKind::Sync {
        return "invalid Function section in BEF file";
    }
    match part {
        BodyPart::Offset => sync!("Invalid function offset"),
        BodyPart::Registers => sync!("Failed to read location_offset or num_registers"),
        BodyPart::UseCounts => sync!("Failed to read register user_count"),
        BodyPart::NKernels => sync!("Failed to read num_kernels"),
        BodyPart::Kernels => sync!("Failed to read kernel offset or num_operands"),
        BodyPart::Results => sync!("Failed to read result_reg"),
        BodyPart::Alignment => sync!("Failed to align BEF to kKernelEntryAlignment"),
    }
}

/// Reads the FunctionIndex section.
pub(super) fn function_index(gate: &mut Gate<'_>, strings: &Strings) -> Result<(), BefError> {
    const CONTEXT: &str =
        "invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section";
    const ENTRY_BYTES: usize = 5;
    let body_bytes = gate.section_range(SectionId::Functions).len();
    let mut cursor = gate.cursor(SectionId::FunctionIndex, CONTEXT);
    let n_functions = cursor.count(ENTRY_BYTES)?;
    let mut functions = reserved(n_functions, cursor.position())?;
    for _ in 0..n_functions {
        let start = cursor.position();
        let byte = cursor.byte()?;
        let Some(kind) = FunctionKind::from_byte(byte) else {
            return Err(cursor.error_at(
                codes::FUNCTION_ENTRY,
                start,
                &format!("unknown kind of function {byte}"),
            ));
        };
        let offset_position = cursor.position();
        let offset = cursor.varint()?;
        let name = strings.read_span(&mut cursor)?;
        let arguments = types(gate, &mut cursor)?;
        let results = types(gate, &mut cursor)?;
        let offset = u32::try_from(offset)
            .ok()
            .filter(|offset| kind == FunctionKind::Native || (*offset as usize) < body_bytes)
            .ok_or_else(|| invalid_offset(kind, offset_position, offset, body_bytes))?;
        functions.push(FunctionRecord {
            kind,
            name,
            arguments,
            results,
            offset,
            body: None,
        });
    }
    cursor.finish()?;
    gate.index.functions = functions;
    Ok(())
}

fn invalid_offset(kind: FunctionKind, position: usize, offset: u64, limit: usize) -> BefError {
    let function = if kind == FunctionKind::Sync {
        "SyncBEFFunction"
    } else {
        "BEFFunction"
    };
    let message = format!(
        "invalid FunctionIndex section in BEF file: Invalid offset found for {function}: \
         {offset}, but the Functions section has {limit} bytes"
    );
    BefError::new(codes::FUNCTION_ENTRY, position, message)
}

/// Reads a list of types.
fn types(gate: &mut Gate<'_>, cursor: &mut Cursor<'_>) -> Result<Span, BefError> {
    let n_types = cursor.count(1)?;
    let table = &mut gate.index.signature_types;
    reserve(table, n_types, cursor.position())?;
    let start = table.len();
    for _ in 0..n_types {
        let position = cursor.position();
        let index = cursor.varint32()?;
        let limit = gate.index.type_names.len();
        if index as usize >= limit {
            let message = format!("type {index}, but the file has {limit}");
            return Err(cursor.error_at(codes::TYPE_INDEX, position, &message));
        }
        table.push(index);
    }
    Ok(span(start, table.len()))
}

/// Returns the span of table entries. Tables are shorter than a section, so 32 bits do.
fn span(start: usize, end: usize) -> Span {
    Span {
        start: start as u32,
        end: end as u32,
    }
}

/// Reads all bodies.
pub(super) fn bodies(gate: &mut Gate<'_>, locations: &LocationTable) -> Result<(), BefError> {
    let section = gate.section_range(SectionId::Functions);
    let has_body = |function: &FunctionRecord| function.kind != FunctionKind::Native;
    if !gate.index.functions.iter().any(has_body) {
        return Ok(());
    }
    let Some(words) = words_of(&gate.bytes[section.clone()]) else {
        let message = "invalid Function section in BEF file: the section is not aligned by 4";
        return Err(BefError::new(codes::LAYOUT, section.start, message));
    };
    let mut least = 0;
    // Used for one function after the other, so that small ones take no memory of their own.
    let (mut wait_counts, mut registers) = (Vec::new(), Vec::new());
    for function in 0..gate.index.functions.len() {
        let FunctionRecord { kind, offset, .. } = gate.index.functions[function];
        if kind == FunctionKind::Native {
            continue;
        }
        if (offset as usize) < least {
            let message = format!(
                "{}: the body of {} starts inside another",
                context(kind, BodyPart::Offset),
                gate.name_of(function)
            );
            return Err(BefError::new(
                codes::LAYOUT,
                section.start + offset as usize,
                message,
            ));
        }
        frame(gate, function, &mut wait_counts)?;
        let place = graph::FunctionWords { function, words };
        let end = graph::records(gate, place, &wait_counts, &mut registers, locations)?;
        least = end * size_of::<u32>();
    }
    Ok(())
}

/// Reads a body up to its kernel records, and the kernels' wait counts.
fn frame(gate: &mut Gate<'_>, function: usize, wait_counts: &mut Vec<u32>) -> Result<(), BefError> {
    const KERNEL_BYTES: usize = 3;
    let FunctionRecord {
        kind,
        offset,
        results,
        ..
    } = gate.index.functions[function];
    let section = gate.section_range(SectionId::Functions);
    let mut cursor = gate.cursor(SectionId::Functions, context(kind, BodyPart::Registers));
    cursor.take(offset as usize)?;
    let location = cursor.varint32()?;
    let n_registers = cursor.count(1)?;

    cursor.set_context(context(kind, BodyPart::UseCounts));
    let use_counts = &mut gate.index.use_counts;
    reserve(use_counts, n_registers, cursor.position())?;
    let first_register = use_counts.len();
    for _ in 0..n_registers {
        use_counts.push(cursor.varint32()?);
    }
    let registers = span(first_register, use_counts.len());

    cursor.set_context(context(kind, BodyPart::NKernels));
    let n_kernels = cursor.count(KERNEL_BYTES)?;
    if n_kernels == 0 {
        return Err(cursor.error(codes::PSEUDO_KERNEL, "there is no pseudo kernel"));
    }
    cursor.set_context(context(kind, BodyPart::Kernels));
    let kernels = &mut gate.index.kernels;
    reserve(kernels, n_kernels, cursor.position())?;
    let first_kernel = kernels.len();
    wait_counts.clear();
    reserve(wait_counts, n_kernels, cursor.position())?;
    for _ in 0..n_kernels {
        let position = cursor.position();
        let offset = cursor.varint32()?;
        if !(offset as usize).is_multiple_of(KERNEL_ALIGNMENT) {
            let message = format!("kernel record at {offset} is not aligned by 4");
            return Err(cursor.error_at(codes::LAYOUT, position, &message));
        }
        wait_counts.push(cursor.varint32()?);
        let stream = cursor.varint32()?;
        let word = offset / size_of::<u32>() as u32;
        kernels.push(KernelRecord {
            word,
            stream,
            first_name: 0,
            nonstrict: false,
        });
    }
    let kernel_span = span(first_kernel, kernels.len());

    cursor.set_context(context(kind, BodyPart::Results));
    let result_registers = &mut gate.index.result_registers;
    reserve(result_registers, results.len(), cursor.position())?;
    let first_result = result_registers.len();
    for _ in 0..results.len() {
        result_registers.push(cursor.varint32()?);
    }
    let results = span(first_result, result_registers.len());

    cursor.set_context(context(kind, BodyPart::Alignment));
    cursor.align(KERNEL_ALIGNMENT)?;
    // Offsets count from the first record; from here on they count from the section's start.
    let first_word = (cursor.position() - section.start) / size_of::<u32>();
    for kernel in &mut gate.index.kernels[kernel_span.range()] {
        let word = kernel.word as usize + first_word;
        kernel.word = u32::try_from(word).unwrap_or(u32::MAX);
    }
    gate.index.functions[function].body = Some(BodyRecord {
        location,
        registers,
        kernels: kernel_span,
        results,
    });
    Ok(())
}
