//! The text form of a file, for people: offset, field, name.

use std::fmt::{self, Write};

use crate::{
    attribute::{AttributeView, Element, ShapeView},
    dtype::{AttributeType, DType},
    file::BefFile,
    function::{Body, FunctionView},
    kernel::KernelView,
    layout::{
        AttributeOffset, FunctionIndex, FunctionKind, KernelCode, LocationOffset, RegisterIndex,
        SectionId, TypeIndex,
    },
};

/// Returns everything in `file` as text, one record a line.
///
/// # Examples
///
/// ```
/// use tfrt_bef::{BefFile, BefWriter, dump};
///
/// let file = BefFile::open(BefWriter::new().finish())?;
/// assert!(dump(&file).starts_with("section 0 Strings: byte 0x5, 0 bytes\n"));
/// # Ok::<(), tfrt_bef::BefError>(())
/// ```
pub fn dump(file: &BefFile) -> String {
    let mut out = String::new();
    write_file(&mut out, file).expect("writing to a string cannot fail");
    out
}

fn write_file(out: &mut String, file: &BefFile) -> fmt::Result {
    for section in &file.index().sections {
        let name = SectionId::from_byte(section.id).map_or("unknown", SectionId::name);
        let len_bytes = section.end - section.start;
        writeln!(
            out,
            "section {} {name}: byte {:#x}, {len_bytes} bytes",
            section.id, section.start
        )?;
    }
    for (code, name) in file.kernel_names().enumerate() {
        writeln!(out, "kernel {code}: {name}")?;
    }
    for index in 0..file.n_types() as u32 {
        writeln!(out, "type {index}: {}", file.type_name(TypeIndex(index)))?;
    }
    for (offset, kind) in file.attribute_types() {
        write!(out, "attribute {}: {kind} ", offset.0)?;
        write_attribute(out, file.attribute(offset), kind)?;
        writeln!(out)?;
    }
    file.functions()
        .try_for_each(|function| write_function(out, &function))
}

fn write_function(out: &mut String, function: &FunctionView<'_>) -> fmt::Result {
    let file = function.file();
    let kind = match function.kind() {
        FunctionKind::Async => "async",
        FunctionKind::Native => "native",
        FunctionKind::Sync => "sync",
    };
    write!(
        out,
        "function {} '{}': {kind} (",
        function.index().0,
        function.name()
    )?;
    write_list(
        out,
        function.argument_types().map(|index| file.type_name(index)),
    )?;
    out.write_str(") -> (")?;
    write_list(
        out,
        function.result_types().map(|index| file.type_name(index)),
    )?;
    writeln!(out, ")")?;
    let Some(body) = function.body() else {
        return Ok(());
    };
    write_body(out, file, &body)
}

fn write_body(out: &mut String, file: &BefFile, body: &Body<'_>) -> fmt::Result {
    write!(out, "  stream {}", body.root_stream())?;
    write_location(out, file, body.location())?;
    for register in 0..body.n_registers() as u32 {
        let index = RegisterIndex(register);
        write!(
            out,
            "  register r{register}: used {}",
            body.use_count(index)
        )?;
        match body.register_type(index) {
            Some(name) => writeln!(out, " {name}")?,
            None => writeln!(out)?,
        }
    }
    writeln!(out, "  k0 entry: starts {:?}", body.entry_users())?;
    for argument in 0..body.n_arguments() {
        writeln!(
            out,
            "     argument r{argument}: users {:?}",
            body.argument_users(argument)
        )?;
    }
    for kernel in body.kernels() {
        write_kernel(out, file, &kernel)?;
    }
    out.write_str("  returns (")?;
    write_list(
        out,
        body.result_registers()
            .iter()
            .map(|register| format!("r{register}")),
    )?;
    writeln!(out, ")")
}

fn write_kernel(out: &mut String, file: &BefFile, kernel: &KernelView<'_>) -> fmt::Result {
    let KernelCode(code) = kernel.code();
    write!(out, "  k{} {code} {}(", kernel.index().0, kernel.name())?;
    write_list(
        out,
        kernel
            .operands()
            .iter()
            .map(|register| format!("r{register}")),
    )?;
    write!(out, ") stream {}", kernel.stream())?;
    if kernel.nonstrict() {
        out.write_str(" non-strict")?;
    }
    write_location(out, file, kernel.location())?;
    for (position, offset) in kernel.attributes().iter().enumerate() {
        let name = kernel.attribute_name(position).unwrap_or("?");
        write!(out, "     attribute {name} at {offset}")?;
        if let Some(kind) = file.attribute_type(AttributeOffset(*offset)) {
            out.write_str(": ")?;
            write_attribute(out, file.attribute(AttributeOffset(*offset)), kind)?;
        }
        writeln!(out)?;
    }
    for function in kernel.functions() {
        let name = file.function(FunctionIndex(*function)).name();
        writeln!(out, "     function {function} '{name}'")?;
    }
    for (position, register) in kernel.results().iter().enumerate() {
        writeln!(
            out,
            "     result r{register}: users {:?}",
            kernel.users(position)
        )?;
    }
    Ok(())
}

fn write_location(out: &mut String, file: &BefFile, offset: LocationOffset) -> fmt::Result {
    match file.location(offset) {
        Some(location) => writeln!(out, " at {location}"),
        None => writeln!(out, " at location {:#x}", offset.0),
    }
}

fn write_list(out: &mut String, entries: impl Iterator<Item = impl fmt::Display>) -> fmt::Result {
    for (position, entry) in entries.enumerate() {
        let separator = if position == 0 { "" } else { ", " };
        write!(out, "{separator}{entry}")?;
    }
    Ok(())
}

/// Writes the value of an attribute that the gate has seen to decode.
pub(crate) fn write_attribute(
    out: &mut String,
    attribute: AttributeView<'_>,
    kind: AttributeType,
) -> fmt::Result {
    match kind {
        AttributeType::Aggregate => {
            out.write_str("[")?;
            for (position, (kind, element)) in attribute
                .aggregate()
                .iter()
                .flat_map(|aggregate| aggregate.iter())
                .enumerate()
            {
                out.write_str(if position == 0 { "" } else { ", " })?;
                write_attribute(out, element, kind)?;
            }
            out.write_str("]")
        }
        AttributeType::Shape => match attribute.shape() {
            Some(ShapeView::Ranked(extents)) => write!(out, "{extents:?}"),
            _ => out.write_str("unranked"),
        },
        AttributeType::Dense => match attribute.dense() {
            Some(dense) => {
                let len_bytes = dense.bytes.len();
                write!(out, "{} {:?}, {len_bytes} bytes", dense.dtype, dense.shape)
            }
            None => Ok(()),
        },
        AttributeType::Symbol => match attribute.symbol() {
            Some(symbol) => write!(out, "{} @{} {:?}", symbol.id, symbol.root, symbol.nested),
            None => Ok(()),
        },
        AttributeType::Type => write!(out, "{}", attribute.as_dtype().map_or("?", |t| t.name())),
        AttributeType::TypeArray => {
            write_list(out, attribute.dtypes().unwrap_or_default().into_iter())
        }
        AttributeType::FunctionName | AttributeType::Scalar(DType::String) => {
            write!(
                out,
                "{:?}",
                String::from_utf8_lossy(attribute.as_bytes().unwrap_or_default())
            )
        }
        AttributeType::Scalar(dtype) | AttributeType::Array(dtype) => {
            write_numbers(out, attribute, dtype)
        }
    }
}

/// Writes a number, or an array of them.
fn write_numbers(out: &mut String, attribute: AttributeView<'_>, dtype: DType) -> fmt::Result {
    match dtype {
        DType::Ui8 | DType::Quint8 | DType::I1 => write_elements::<u8>(out, attribute),
        DType::Ui16 | DType::Quint16 => write_elements::<u16>(out, attribute),
        DType::Ui32 => write_elements::<u32>(out, attribute),
        DType::Ui64 => write_elements::<u64>(out, attribute),
        DType::I8 | DType::Qint8 => write_elements::<i8>(out, attribute),
        DType::I16 | DType::Qint16 => write_elements::<i16>(out, attribute),
        DType::I32 | DType::Qint32 => write_elements::<i32>(out, attribute),
        DType::I64 => write_elements::<i64>(out, attribute),
        DType::F32 => write_elements::<f32>(out, attribute),
        DType::F64 => write_elements::<f64>(out, attribute),
        DType::Complex64 => write_elements::<[f32; 2]>(out, attribute),
        DType::Complex128 => write_elements::<[f64; 2]>(out, attribute),
        // There is no type for these; their bits must do.
        DType::F16 | DType::Bf16 => {
            out.write_str("bits ")?;
            write_elements::<u16>(out, attribute)
        }
        // Small types: others, whose elements have no size, do not pass the gate.
        _ => {
            out.write_str("bits ")?;
            write_elements::<u8>(out, attribute)
        }
    }
}

fn write_elements<T: Element + fmt::Debug>(
    out: &mut String,
    attribute: AttributeView<'_>,
) -> fmt::Result {
    match (attribute.scalar::<T>(), attribute.array::<T>()) {
        (Some(value), _) => write!(out, "{value:?}"),
        (None, Some(values)) => write!(out, "{values:?}"),
        (None, None) => out.write_str("?"),
    }
}
