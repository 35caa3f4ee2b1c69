//! Tests with one broken file for each condition of the gate.

mod bodies;
mod lists;

use expect_test::{Expect, expect};

use crate::{
    BefBuffer, BefFile, BefWriter, FunctionBody, FunctionEntry, FunctionKind, KernelEntry, Payload,
    SectionId, assemble,
    dtype::{AttributeType, DType},
    layout::MAX_LOCATION_DEPTH,
};

const REGION: usize = 0;
const MAIN: usize = 1;
const NATIVE: usize = 2;
const QUICK: usize = 3;

fn kernel(code: u32, operands: &[u32], results: &[u32]) -> KernelEntry {
    KernelEntry {
        code,
        operands: operands.to_vec(),
        results: results.to_vec(),
        ..KernelEntry::default()
    }
}

/// Returns a file in which everything occurs that the gate looks at.
///
/// ```text
/// region 0:  k1: %0 = one
/// main(%0):  k1: %1 = one, k2: %2 = two(%0, %1, %1), k3: %3 = three(%2) region 0; returns %3
/// native:    no body
/// quick(%0): k1: %1 = two(%0), k2: %2 = two(%1); returns %2
/// ```
fn writer() -> BefWriter {
    let mut writer = BefWriter::new();
    let strings = &mut writer.strings;
    let empty = strings.insert("");
    let names = ["main", "native", "quick", "value"].map(|name| strings.insert(name));
    writer.kernels = ["one", "two", "three"]
        .map(|name| strings.insert(name))
        .to_vec();
    writer.types = ["i32", "!tfrt.chain"]
        .map(|name| strings.insert(name))
        .to_vec();
    let value = writer.attributes.scalar(&7u32.to_le_bytes());
    let text = writer.attributes.string(b"text");
    writer.attribute_types = vec![
        (value, AttributeType::Scalar(DType::I32)),
        (text, AttributeType::Scalar(DType::String)),
    ];
    let file = writer.location_strings.insert("f.mlir");
    writer.locations.file_line_col(file, 1, 1);
    let second = writer.locations.offset();
    writer.locations.name(file);
    writer.locations.unknown();

    let mut one = kernel(0, &[], &[0]);
    one.attributes = vec![value];
    one.attribute_names = vec![names[3]];
    let region = FunctionBody::new(1, 0, vec![one.clone()], vec![0]);
    one.results = vec![1];
    let mut three = kernel(2, &[2], &[3]);
    three.functions = vec![REGION as u32];
    let main = FunctionBody {
        location: second,
        ..FunctionBody::new(4, 1, vec![one, kernel(1, &[0, 1, 1], &[2]), three], vec![3])
    };
    let quick = FunctionBody::new(
        3,
        1,
        vec![kernel(1, &[0], &[1]), kernel(1, &[1], &[2])],
        vec![2],
    );

    let mut add = |kind, name, arguments: &[u32], body| {
        let arguments = arguments.to_vec();
        writer.functions.push(FunctionEntry {
            kind,
            name,
            arguments,
            results: vec![0],
            body,
        });
    };
    add(FunctionKind::Async, empty, &[], Some(region.into()));
    add(FunctionKind::Async, names[0], &[0], Some(main.into()));
    add(FunctionKind::Native, names[1], &[0, 1], None);
    add(FunctionKind::Sync, names[2], &[0], Some(quick.into()));
    writer
}

fn open(bytes: Vec<u8>) -> String {
    match BefFile::open(BefBuffer::from_vec(bytes)) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Breaks the file by changing what is written.
fn check(change: impl FnOnce(&mut BefWriter), expect: Expect) {
    let mut writer = writer();
    change(&mut writer);
    expect.assert_eq(&open(writer.finish().as_bytes().to_vec()));
}

/// Breaks the file by changing a body.
fn check_body(function: usize, change: impl FnOnce(&mut FunctionBody), expect: Expect) {
    check(
        |writer| {
            change(
                writer.functions[function]
                    .body
                    .as_mut()
                    .unwrap()
                    .as_lists_mut()
                    .unwrap(),
            )
        },
        expect,
    );
}

/// Breaks the file by replacing the bytes of a section.
fn check_section(id: SectionId, bytes: &[u8], expect: Expect) {
    let mut sections = writer().sections();
    let found = sections
        .iter_mut()
        .find(|(section, _)| *section == id as u8);
    found.unwrap().1 = Payload::from_bytes(bytes.to_vec(), 1);
    expect.assert_eq(&open(assemble(&sections)));
}

/// Breaks the file by changing the list of sections.
fn check_sections(change: impl FnOnce(&mut Vec<(u8, Payload)>), expect: Expect) {
    let mut sections = writer().sections();
    change(&mut sections);
    expect.assert_eq(&open(assemble(&sections)));
}

fn check_bytes(bytes: &[u8], expect: Expect) {
    expect.assert_eq(&open(bytes.to_vec()));
}

#[test]
fn the_file_is_accepted_as_it_is() {
    check(|_| {}, expect!["accepted"]);
    check(|writer| writer.strip = true, expect!["accepted"]);
}

#[test]
fn header_is_checked() {
    check_bytes(
        b"",
        expect!["byte 0x0: invalid BEF file header detected [TF0601]"],
    );
    check_bytes(
        b"\x0b",
        expect!["byte 0x0: invalid BEF file header detected [TF0601]"],
    );
    check_bytes(
        b"\x0c\xef\0",
        expect!["byte 0x0: invalid BEF file header detected [TF0601]"],
    );
    check_bytes(
        b"\x0b\xef",
        expect!["byte 0x2: Unknown BEF format version detected: the file ends here [TF0601]"],
    );
    check_bytes(
        b"\x0b\xef\x01",
        expect!["byte 0x2: Unknown BEF format version detected: 1 [TF0601]"],
    );
}

#[test]
fn section_headers_are_checked() {
    check_bytes(
        b"\x0b\xef\0\x00",
        expect!["byte 0x4: BEF file section header corrupted: integer runs past the end [TF0604]"],
    );
    check_bytes(
        b"\x0b\xef\0\x00\x0a\0",
        expect![
            "byte 0x4: BEF file section header corrupted: section 0 has 5 bytes, but the file has 1 more [TF0602]"
        ],
    );
    check_bytes(
        b"\x0b\xef\0\x01\x01",
        expect!["byte 0x5: BEF file section header corrupted: no byte is left [TF0604]"],
    );
    check_bytes(
        b"\x0b\xef\0\x01\x01\x00",
        expect![
            "byte 0x5: BEF file section header corrupted: alignment 0 is no power of two [TF0602]"
        ],
    );
    check_bytes(
        b"\x0b\xef\0\x01\x01\x03",
        expect![
            "byte 0x5: BEF file section header corrupted: alignment 3 is no power of two [TF0602]"
        ],
    );
    check_bytes(
        b"\x0b\xef\0\x01\x01\x08",
        expect!["byte 0x6: BEF file section header corrupted: 2 bytes expected, 0 left [TF0604]"],
    );
    check_bytes(
        b"\x0b\xef\0\x00\x80\x01\0",
        expect![
            "byte 0x4: BEF file section header corrupted: integer is not in its shortest form [TF0605]"
        ],
    );
    check_bytes(
        b"\x0b\xef\0\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        expect!["byte 0x4: BEF file section header corrupted: integer exceeds 64 bits [TF0605]"],
    );
    check_bytes(
        b"\x0b\xef\0\x00\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        expect!["byte 0xd: BEF file section header corrupted: no byte is left [TF0604]"],
    );
}

#[test]
fn a_section_may_be_there_once() {
    check_sections(
        |sections| sections.push((2, Payload::default())),
        expect!["byte 0x253: BEF file section header corrupted: section 2 is there twice [TF0602]"],
    );
    check_sections(
        |sections| sections.push((0x70, Payload::default())),
        expect!["accepted"],
    );
    check_sections(
        |sections| {
            sections.push((0x70, Payload::default()));
            sections.push((0x70, Payload::default()));
        },
        expect![
            "byte 0x255: BEF file section header corrupted: section 112 is there twice [TF0602]"
        ],
    );
}

#[test]
fn order_of_sections_does_not_matter() {
    check_sections(|sections| sections.reverse(), expect!["accepted"]);
}

#[test]
fn mandatory_sections_must_be_there() {
    let drop = |id: SectionId| {
        move |sections: &mut Vec<(u8, Payload)>| {
            sections.retain(|(section, _)| *section != id as u8)
        }
    };
    check_sections(
        drop(SectionId::Strings),
        expect!["byte 0x17: invalid Kernels section in BEF file: no string starts at 25 [TF0603]"],
    );
    check_sections(
        drop(SectionId::Attributes),
        expect![
            "byte 0x243: the bytes at 0 of the Attributes section do not decode as i32 [TF0622]"
        ],
    );
    check_sections(
        drop(SectionId::Kernels),
        expect![
            "byte 0x24f: invalid Kernels section in BEF file: integer runs past the end [TF0604]"
        ],
    );
    check_sections(
        drop(SectionId::Types),
        expect![
            "byte 0x24f: invalid Types section in BEF file: integer runs past the end [TF0604]"
        ],
    );
    check_sections(
        drop(SectionId::FunctionIndex),
        expect![
            "byte 0x233: invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section: integer runs past the end [TF0604]"
        ],
    );
    check_sections(
        drop(SectionId::Functions),
        expect![
            "byte 0x5b: invalid FunctionIndex section in BEF file: Invalid offset found for BEFFunction: 0, but the Functions section has 0 bytes [TF0607]"
        ],
    );
    check_sections(drop(SectionId::Locations), expect!["accepted"]);
    check_sections(
        drop(SectionId::LocationStrings),
        expect![
            "byte 0x227: invalid Locations section in BEF file: no string starts at 0 [TF0603]"
        ],
    );
    check_sections(drop(SectionId::AttributeTypes), expect!["accepted"]);
    check_sections(drop(SectionId::AttributeNames), expect!["accepted"]);
    check_sections(drop(SectionId::RegisterTypes), expect!["accepted"]);
}

#[test]
fn strings_are_utf8_and_end_in_a_nul() {
    check_section(
        SectionId::Strings,
        b"one\0two",
        expect![
            "byte 0xb: invalid Strings section in BEF file: the last string has no NUL [TF0603]"
        ],
    );
    check_section(
        SectionId::Strings,
        b"one\0\xff\0",
        expect!["byte 0x9: invalid Strings section in BEF file: text is not UTF-8 [TF0603]"],
    );
    check_section(
        SectionId::LocationStrings,
        b"f.mlir",
        expect![
            "byte 0x22b: invalid LocationStrings section in BEF file: the last string has no NUL [TF0603]"
        ],
    );
    check_section(
        SectionId::LocationStrings,
        b"f.ml\xffr\0",
        expect![
            "byte 0x22a: invalid LocationStrings section in BEF file: text is not UTF-8 [TF0603]"
        ],
    );
}

#[test]
fn names_are_found_in_long_sections() {
    let mut writer = BefWriter::new();
    let names: Vec<String> = (0..1_000)
        .map(|number| format!("kernel.{number}"))
        .collect();
    writer.kernels = names
        .iter()
        .map(|name| writer.strings.insert(name))
        .collect();
    // Some more than once.
    writer.kernels.extend_from_within(500..502);
    let file = BefFile::open(writer.finish()).unwrap();
    let expected = names.iter().chain(&names[500..502]);
    assert!(file.kernel_names().eq(expected));
}

#[test]
fn tables_of_names_hold_starts_of_strings() {
    check_section(
        SectionId::Kernels,
        b"",
        expect![
            "byte 0x4e: invalid Kernels section in BEF file: integer runs past the end [TF0604]"
        ],
    );
    check_section(
        SectionId::Kernels,
        b"\x05\0",
        expect![
            "byte 0x4e: invalid Kernels section in BEF file: count of 5, but the bytes that are left hold at most 1 [TF0604]"
        ],
    );
    check_section(
        SectionId::Kernels,
        b"\x01\x7f",
        expect!["byte 0x4f: invalid Kernels section in BEF file: no string starts at 127 [TF0603]"],
    );
    check_section(
        SectionId::Kernels,
        b"\x01\x02",
        expect!["byte 0x4f: invalid Kernels section in BEF file: no string starts at 2 [TF0603]"],
    );
    check_section(
        SectionId::Kernels,
        b"\x03\x01\x01\x01\0",
        expect!["byte 0x52: invalid Kernels section in BEF file: 1 bytes are left over [TF0606]"],
    );
    check_section(
        SectionId::Types,
        b"\x01",
        expect![
            "byte 0x54: invalid Types section in BEF file: count of 1, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
    check_section(
        SectionId::Types,
        b"\x01\x83",
        expect!["byte 0x55: invalid Types section in BEF file: integer runs past the end [TF0604]"],
    );
}

#[test]
fn counts_larger_than_the_file_are_refused_before_memory_is_taken() {
    let huge = b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
    check_section(
        SectionId::Kernels,
        huge,
        expect![
            "byte 0x4e: invalid Kernels section in BEF file: count of 18446744073709551615, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
    check_section(
        SectionId::Types,
        huge,
        expect![
            "byte 0x54: invalid Types section in BEF file: count of 18446744073709551615, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        huge,
        expect![
            "byte 0x59: invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section: count of 18446744073709551615, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
    check_section(
        SectionId::AttributeTypes,
        huge,
        expect![
            "byte 0x238: invalid AttributeTypes section in BEF file: count of 18446744073709551615, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
    check_section(
        SectionId::AttributeNames,
        huge,
        expect![
            "byte 0x23f: invalid AttributeNames section in BEF file: 18446744073709551615 functions, but the file has 4 [TF0623]"
        ],
    );
    check_section(
        SectionId::RegisterTypes,
        huge,
        expect![
            "byte 0x247: invalid RegisterTypes section in BEF file: 18446744073709551615 functions, but the file has 4 [TF0623]"
        ],
    );
    check_section(
        SectionId::Functions,
        &[&[0], &huge[..]].concat(),
        expect![
            "byte 0x61: invalid FunctionIndex section in BEF file: Invalid offset found for BEFFunction: 84, but the Functions section has 11 bytes [TF0607]"
        ],
    );
    check_section(
        SectionId::Locations,
        &[&[4], &huge[..]].concat(),
        expect![
            "byte 0x230: invalid Locations section in BEF file: count of 18446744073709551615, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
    check_sections(
        |sections| {
            sections.push((
                SectionId::NonStrict as u8,
                Payload::from_bytes(huge.to_vec(), 1),
            ));
        },
        expect![
            "byte 0x255: invalid NonStrict section in BEF file: count of 18446744073709551615, but the bytes that are left hold at most 0 [TF0604]"
        ],
    );
}

#[test]
fn function_index_is_checked() {
    check_section(
        SectionId::FunctionIndex,
        b"",
        expect![
            "byte 0x59: invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section: integer runs past the end [TF0604]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\x01\x03\0\0\0\0",
        expect![
            "byte 0x5a: invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section: unknown kind of function 3 [TF0607]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\x01\0\0\x02\0\0",
        expect![
            "byte 0x5c: invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section: no string starts at 2 [TF0603]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\x01\0\0\0\x01\x02",
        expect![
            "byte 0x5e: invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section: type 2, but the file has 2 [TF0608]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\x01\0\0\0\x05\0",
        expect![
            "byte 0x5d: invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section: count of 5, but the bytes that are left hold at most 1 [TF0604]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\x01\0\xff\x7f\0\0\0",
        expect![
            "byte 0x5b: invalid FunctionIndex section in BEF file: Invalid offset found for BEFFunction: 16383, but the Functions section has 424 bytes [TF0607]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\x01\x02\xff\x7f\0\0\0",
        expect![
            "byte 0x5b: invalid FunctionIndex section in BEF file: Invalid offset found for SyncBEFFunction: 16383, but the Functions section has 424 bytes [TF0607]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\x01\x01\xff\x7f\0\0\0",
        expect![
            "byte 0x227: invalid AttributeNames section in BEF file: 4 functions, but the file has 1 [TF0623]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\0\0",
        expect![
            "byte 0x5a: invalid FunctionIndex section in BEF file: Failed to read the FunctionIndex section: 1 bytes are left over [TF0606]"
        ],
    );
    check_section(
        SectionId::FunctionIndex,
        b"\x02\0\0\0\0\0\0\0\0\0\0",
        expect![
            "byte 0x74: register 0 of region function 0 has a use count of 1, but 0 reads [TF0614]"
        ],
    );
}

#[test]
fn errors_say_where_they_are() {
    let error = BefFile::open(BefBuffer::from_vec(b"\x0b\xef\x01".to_vec())).unwrap_err();
    assert_eq!((error.code(), error.offset()), ("TF0601", 2));
    assert_eq!(error.message(), "Unknown BEF format version detected: 1");
}

#[test]
fn optional_sections_are_all_there_or_not() {
    let with = |absent: Option<SectionId>| {
        let mut sections = writer().sections();
        sections.retain(|(id, _)| absent.is_none_or(|absent| *id != absent as u8));
        let file = BefFile::open(BefBuffer::from_vec(assemble(&sections))).unwrap();
        file.has_optional_sections()
    };
    assert!(with(None));
    assert!(!with(Some(SectionId::AttributeTypes)));
    assert!(!with(Some(SectionId::AttributeNames)));
    assert!(!with(Some(SectionId::RegisterTypes)));
}

#[test]
fn locations_nest_to_a_limit_whatever_they_are() {
    let nested = |n: usize, outer: &[u8], behind: &[u8]| {
        let mut sections = writer().sections();
        let locations = sections
            .iter_mut()
            .find(|(section, _)| *section == SectionId::Locations as u8);
        let bytes = [outer.repeat(n), vec![0], behind.repeat(n)].concat();
        locations.unwrap().1 = Payload::from_bytes(bytes, 1);
        open(assemble(&sections))
    };
    // A name, the callee of a call, its caller, and the one member of a fusion.
    for (outer, behind) in [
        (&[2, 0][..], &[][..]),
        (&[3], &[0]),
        (&[3, 0], &[]),
        (&[4, 1], &[]),
    ] {
        let within = nested(MAX_LOCATION_DEPTH, outer, behind);
        assert!(!within.contains("nest"), "{within}");
        let deeper = nested(MAX_LOCATION_DEPTH + 1, outer, behind);
        assert!(deeper.contains("nest"), "{deeper}");
    }
}
