//! Files of bytes that no compiler would write, each broken in one place.
//!
//! They stand in `tests/broken/` so that they can be tried; here is how they are made.

use std::fs;
use std::path::Path;

use libtest_mimic::Failed;
use tfrt::bef::layout::PSEUDO_KERNEL_CODE;
use tfrt::bef::{
    AttributeType, BefWriter, DType, FunctionBody, FunctionEntry, FunctionKind, KernelEntry,
    Payload, SectionId, assemble,
};

/// Functions of [`whole`].
const REGION: usize = 0;
const MAIN: usize = 1;
const QUICK: usize = 2;

/// Writes all files.
pub fn write_all(folder: &Path) {
    for (name, bytes) in all() {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("names have a folder")).expect("it can be made");
        fs::write(path, bytes).expect("it can be written");
    }
}

/// Compares all files with what is made here.
pub fn check_all(folder: &Path) -> Result<(), Failed> {
    for (name, bytes) in all() {
        if fs::read(folder.join(name)).ok() != Some(bytes) {
            return Err(format!("{name} is not what is made").into());
        }
    }
    Ok(())
}

/// Returns a program in which everything occurs that the gate looks at.
///
/// ```text
/// region 0:   %0 = one
/// main(%0):   %1 = one, %2 = two(%0, %1, %1), %3 = three(%2) region 0; returns %3
/// quick(%0):  %1 = two(%0), %2 = two(%1); returns %2; synchronous
/// ```
fn whole() -> BefWriter {
    let mut writer = BefWriter::new();
    let strings = &mut writer.strings;
    let empty = strings.insert("");
    let [main, quick, value] = ["main", "quick", "value"].map(|name| strings.insert(name));
    writer.kernels = ["one", "two", "three"]
        .map(|name| strings.insert(name))
        .to_vec();
    writer.types = ["i32", "!tfrt.chain"]
        .map(|name| strings.insert(name))
        .to_vec();
    let seven = writer.attributes.scalar(&7u32.to_le_bytes());
    writer.attribute_types = vec![(seven, AttributeType::Scalar(DType::I32))];
    let file = writer.location_strings.insert("program.mlir");
    writer.locations.file_line_col(file, 1, 1);

    let mut one = kernel(0, &[], &[0]);
    one.attributes = vec![seven];
    one.attribute_names = vec![value];
    let region = FunctionBody::new(1, 0, vec![one.clone()], vec![0]);
    one.results = vec![1];
    let mut three = kernel(2, &[2], &[3]);
    three.functions = vec![REGION as u32];
    let kernels = vec![one, kernel(1, &[0, 1, 1], &[2]), three];
    let body = FunctionBody::new(4, 1, kernels, vec![3]);
    let two = vec![kernel(1, &[0], &[1]), kernel(1, &[1], &[2])];
    let synchronous = FunctionBody::new(3, 1, two, vec![2]);
    for (kind, name, n_arguments, body) in [
        (FunctionKind::Async, empty, 0, region),
        (FunctionKind::Async, main, 1, body),
        (FunctionKind::Sync, quick, 1, synchronous),
    ] {
        writer.functions.push(FunctionEntry {
            kind,
            name,
            arguments: vec![0; n_arguments],
            results: vec![0],
            body: Some(body.into()),
        });
    }
    writer
}

fn kernel(code: u32, operands: &[u32], results: &[u32]) -> KernelEntry {
    KernelEntry {
        code,
        operands: operands.to_vec(),
        results: results.to_vec(),
        ..KernelEntry::default()
    }
}

/// Returns the program after a change of what is written.
fn changed(change: impl FnOnce(&mut BefWriter)) -> Vec<u8> {
    let mut writer = whole();
    change(&mut writer);
    writer.finish().as_bytes().to_vec()
}

/// Returns the program after a change of a body.
fn body(function: usize, change: impl FnOnce(&mut FunctionBody)) -> Vec<u8> {
    changed(|writer| {
        let body = writer.functions[function].body.as_mut();
        change(
            body.and_then(|body| body.as_lists_mut())
                .expect("it has one"),
        );
    })
}

/// Returns the program after a change of the bytes of a section.
fn section(id: SectionId, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut sections = whole().sections();
    let found = sections
        .iter_mut()
        .find(|(section, _)| *section == id as u8);
    let payload = &mut found.expect("the program has the section").1;
    let mut bytes = payload.as_bytes().to_vec();
    change(&mut bytes);
    *payload = Payload::from_bytes(bytes, 4);
    assemble(&sections)
}

/// Returns the program with further sections.
fn more_sections(more: &[(u8, &[u8])]) -> Vec<u8> {
    let mut sections = whole().sections();
    let payload = |bytes: &[u8]| Payload::from_bytes(bytes.to_vec(), 1);
    sections.extend(more.iter().map(|(id, bytes)| (*id, payload(bytes))));
    assemble(&sections)
}

/// Returns a program with an attribute that only the binary format has, or whose text is broken.
fn with_attribute(write: impl FnOnce(&mut BefWriter) -> (u32, AttributeType)) -> Vec<u8> {
    changed(|writer| {
        let (offset, kind) = write(writer);
        writer.attribute_types.push((offset, kind));
        let body = writer.functions[MAIN].body.as_mut();
        let body = body
            .and_then(|body| body.as_lists_mut())
            .expect("it has one");
        body.kernels[1].attributes = vec![offset];
    })
}

/// Returns a program with a symbol of a module that has this text.
fn with_symbol(root: &str, nested: &[&str], text: &str) -> Vec<u8> {
    with_attribute(|writer| {
        let offset = writer.attributes.symbol(0, root, nested, text);
        (offset, AttributeType::Symbol)
    })
}

/// Returns a program of one kernel with one result and nothing else.
fn single(name: &str) -> Vec<u8> {
    let mut writer = BefWriter::new();
    let names = ["", "i32", "main", name].map(|name| writer.strings.insert(name));
    writer.types = vec![names[1]];
    writer.kernels = vec![names[3]];
    let body = FunctionBody::new(1, 0, vec![kernel(0, &[], &[0])], vec![0]);
    writer.functions.push(FunctionEntry {
        kind: FunctionKind::Async,
        name: names[2],
        arguments: Vec::new(),
        results: vec![0],
        body: Some(body.into()),
    });
    writer.finish().as_bytes().to_vec()
}

/// Returns the magic, the version and noise.
fn noise() -> Vec<u8> {
    let noise = (0_u32..400).map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]);
    [0x0b, 0xef, 0].into_iter().chain(noise).collect()
}

/// Every file with its name.
fn all() -> Vec<(&'static str, Vec<u8>)> {
    let finished = || changed(|_| {});
    let cut = |len: usize| {
        let mut bytes = finished();
        bytes.truncate(len);
        bytes
    };
    let half = finished().len() / 2;
    vec![
        ("bytes/magic-alone.bef", cut(2)),
        ("bytes/header-alone.bef", cut(3)),
        (
            "bytes/version.bef",
            [&finished()[..2], &[9], &finished()[3..]].concat(),
        ),
        ("bytes/half.bef", cut(half)),
        ("bytes/last-byte-missing.bef", cut(finished().len() - 1)),
        ("bytes/file-twice.bef", [finished(), finished()].concat()),
        (
            "bytes/noise-behind.bef",
            [&finished()[..], &[7; 100]].concat(),
        ),
        (
            "bytes/section-of-2-to-the-60-bytes.bef",
            [
                &finished()[..3],
                &[1, 0x90, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0],
            ]
            .concat(),
        ),
        (
            "bytes/alignment.bef",
            [&finished()[..3], &[1, 3, 6, 0, 0]].concat(),
        ),
        (
            "bytes/section-twice.bef",
            more_sections(&[(SectionId::Kernels as u8, &[0])]),
        ),
        (
            "bytes/strings-not-utf8.bef",
            section(SectionId::Strings, |bytes| bytes[0] = 0xff),
        ),
        (
            "bytes/strings-without-end.bef",
            section(SectionId::Strings, |bytes| {
                bytes.pop();
            }),
        ),
        (
            "bytes/no-such-string.bef",
            section(SectionId::Kernels, |bytes| bytes[1] += 1),
        ),
        (
            "bytes/cut.bef",
            section(SectionId::Types, |bytes| {
                bytes.pop();
            }),
        ),
        (
            "bytes/2-to-the-40-functions.bef",
            section(SectionId::FunctionIndex, |bytes| {
                bytes.splice(..1, [0xa0, 0x80, 0x80, 0x80, 0x80, 0]);
            }),
        ),
        (
            "bytes/number.bef",
            section(SectionId::Types, |bytes| bytes.insert(0, 0x80)),
        ),
        (
            "bytes/number-of-70-bits.bef",
            section(SectionId::Types, |bytes| {
                bytes.splice(..1, [0xff; 10]);
            }),
        ),
        (
            "bytes/left-over.bef",
            section(SectionId::Types, |bytes| bytes.push(0)),
        ),
        (
            "bytes/function-kind.bef",
            section(SectionId::FunctionIndex, |bytes| bytes[1] = 9),
        ),
        (
            "bytes/body-outside.bef",
            section(SectionId::FunctionIndex, |bytes| bytes[2] = 0x7f),
        ),
        (
            "bytes/type-index.bef",
            changed(|writer| writer.functions[MAIN].results = vec![9]),
        ),
        (
            "bytes/overlap.bef",
            section(SectionId::Functions, |bytes| {
                bytes.truncate(bytes.len() - 4);
            }),
        ),
        (
            "bytes/pseudo-kernel.bef",
            section(SectionId::Functions, |bytes| {
                let code = PSEUDO_KERNEL_CODE.to_le_bytes();
                let at = bytes.windows(4).position(|word| word == code);
                bytes[at.expect("each body has one")] ^= 1;
            }),
        ),
        (
            "bytes/kernel-code.bef",
            body(MAIN, |body| body.kernels[1].code = 9),
        ),
        (
            "bytes/kernel-function.bef",
            body(MAIN, |body| body.kernels[3].functions = vec![9]),
        ),
        (
            "bytes/kernel-attribute.bef",
            body(MAIN, |body| body.kernels[1].attributes = vec![999]),
        ),
        (
            "bytes/register-index.bef",
            section(SectionId::Functions, |bytes| {
                // The operands 0, 1, 1 of kernel 2 of 'main'.
                let operands = [0, 1, 1].map(u32::to_le_bytes).concat();
                let at = bytes.windows(12).position(|words| words == operands);
                bytes[at.expect("it has these operands")] = 9;
            }),
        ),
        (
            "bytes/result-index.bef",
            body(MAIN, |body| body.results = vec![9]),
        ),
        (
            "bytes/written-twice.bef",
            body(MAIN, |body| body.kernels[3].results = vec![1]),
        ),
        (
            "bytes/never-written.bef",
            body(MAIN, |body| {
                body.kernels[1].results.clear();
                body.kernels[1].users.clear();
            }),
        ),
        (
            "bytes/use-count.bef",
            body(MAIN, |body| body.use_counts[1] = 7),
        ),
        (
            "bytes/wait-count.bef",
            body(MAIN, |body| body.kernels[2].wait_count = 7),
        ),
        (
            "bytes/users.bef",
            body(MAIN, |body| body.kernels[1].users[0] = vec![2, 3]),
        ),
        (
            "bytes/cycle.bef",
            changed(|writer| {
                let kernels = vec![kernel(1, &[1], &[0]), kernel(1, &[0], &[1])];
                let body = FunctionBody::new(2, 0, kernels, vec![0]);
                writer.functions[REGION].body = Some(body.into());
            }),
        ),
        (
            "bytes/own-result.bef",
            changed(|writer| {
                let body = FunctionBody::new(1, 0, vec![kernel(1, &[0], &[0])], vec![0]);
                writer.functions[REGION].body = Some(body.into());
            }),
        ),
        (
            "bytes/sync-order.bef",
            changed(|writer| {
                let kernels = vec![kernel(1, &[2], &[1]), kernel(1, &[0], &[2])];
                let body = FunctionBody::new(3, 1, kernels, vec![1]);
                writer.functions[QUICK].body = Some(body.into());
            }),
        ),
        (
            "bytes/sync-results.bef",
            changed(|writer| {
                let body = FunctionBody::new(1, 1, Vec::new(), vec![0]);
                writer.functions[QUICK].body = Some(body.into());
            }),
        ),
        (
            "bytes/shared-region.bef",
            body(MAIN, |body| body.kernels[2].functions = vec![0]),
        ),
        (
            "bytes/region-in-itself.bef",
            body(REGION, |body| body.kernels[1].functions = vec![0]),
        ),
        (
            "bytes/location.bef",
            section(SectionId::Locations, |bytes| bytes[0] = 9),
        ),
        (
            "bytes/kernel-location.bef",
            body(MAIN, |body| body.kernels[1].location = 1),
        ),
        (
            "bytes/attribute.bef",
            changed(|writer| {
                writer.attribute_types[0].1 = AttributeType::Scalar(DType::String);
            }),
        ),
        (
            "bytes/entry-count.bef",
            section(SectionId::RegisterTypes, |bytes| bytes[0] = 7),
        ),
        (
            "bytes/register-type.bef",
            body(MAIN, |body| body.register_types[0] = 1),
        ),
        (
            "bytes/nonstrict.bef",
            more_sections(&[(SectionId::NonStrict as u8, &[1, 1, 9])]),
        ),
        (
            "bytes/model.bef",
            more_sections(&[(SectionId::Model as u8, &[9, 0, 0, 0])]),
        ),
        (
            "bytes/wrong-magic.bef",
            [&[0x0b, 0xee], &finished()[2..]].concat(),
        ),
        ("bytes/noise.bef", noise()),
        (
            "bytes/endless-integer.bef",
            [&finished()[..4], &[0xff; 12]].concat(),
        ),
        (
            "bytes/2-to-the-40-kernels.bef",
            section(SectionId::Kernels, |bytes| {
                bytes.splice(..1, [0xa0, 0x80, 0x80, 0x80, 0x80, 0]);
            }),
        ),
        (
            "bytes/2-to-the-40-types.bef",
            section(SectionId::Types, |bytes| {
                bytes.splice(..1, [0xa0, 0x80, 0x80, 0x80, 0x80, 0]);
            }),
        ),
        ("load/bytes.bef", finished()),
        ("load/bytes-without-operands.bef", single("tfrt.add.i32")),
        (
            "load/bytes-without-attribute.bef",
            single("tfrt.constant.i32"),
        ),
        ("load/bytes-without-function.bef", single("tfrt.call")),
        ("opt/bytes.bef", finished()),
        (
            "decompile/stripped.bef",
            changed(|writer| writer.strip = true),
        ),
        (
            "decompile/type.bef",
            changed(|writer| {
                let name = writer.strings.insert("no type");
                writer.types.push(name);
            }),
        ),
        (
            "decompile/attribute.bef",
            with_attribute(|writer| {
                (
                    writer.attributes.scalar(&[0; 8]),
                    AttributeType::Scalar(DType::Complex64),
                )
            }),
        ),
        (
            "decompile/lost.bef",
            body(MAIN, |body| body.kernels[3].functions.clear()),
        ),
        ("decompile/symbol.bef", with_symbol("f", &[], "")),
        (
            "decompile/module.bef",
            with_symbol("m", &["f"], "module @n {\n}\n"),
        ),
        (
            "decompile/unit.bef",
            with_symbol("m", &["f"], "module @m {\n"),
        ),
    ]
}
