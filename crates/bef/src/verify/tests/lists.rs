//! Broken lists beside the bodies: attributes, names, types, locations, marks.

use super::*;

#[test]
fn listed_attributes_must_decode() {
    let list = |types: &[(u32, AttributeType)]| {
        let types = types.to_vec();
        move |writer: &mut BefWriter| writer.attribute_types = types
    };
    let i32_type = AttributeType::Scalar(DType::I32);
    let string = AttributeType::Scalar(DType::String);
    check(
        list(&[(0, i32_type), (0, i32_type)]),
        expect![
            "byte 0x23b: invalid AttributeTypes section in BEF file: the attribute at 0 starts inside the one before it [TF0622]"
        ],
    );
    check(
        list(&[(4, string), (0, i32_type)]),
        expect![
            "byte 0x23b: invalid AttributeTypes section in BEF file: the attribute at 0 starts inside the one before it [TF0622]"
        ],
    );
    check(
        list(&[(0, string), (4, string)]),
        expect![
            "byte 0x23b: invalid AttributeTypes section in BEF file: the attribute at 4 starts inside the one before it [TF0622]"
        ],
    );
    check(
        list(&[(2, i32_type)]),
        expect![
            "byte 0x42: the bytes at 2 of the Attributes section do not decode as i32 [TF0622]"
        ],
    );
    check(
        list(&[(12, i32_type)]),
        expect![
            "byte 0x4c: the bytes at 12 of the Attributes section do not decode as i32 [TF0622]"
        ],
    );
    check(
        list(&[(0, AttributeType::Scalar(DType::I64)), (4, string)]),
        expect![
            "byte 0x23b: invalid AttributeTypes section in BEF file: the attribute at 4 starts inside the one before it [TF0622]"
        ],
    );
    check(
        list(&[(0, AttributeType::Scalar(DType::I1)), (4, string)]),
        expect!["byte 0x40: the bytes at 0 of the Attributes section do not decode as i1 [TF0622]"],
    );
    check(
        list(&[(0, AttributeType::Aggregate), (4, string)]),
        expect![
            "byte 0x40: the bytes at 0 of the Attributes section do not decode as aggregate [TF0622]"
        ],
    );
    check(
        list(&[(0, AttributeType::Dense), (4, string)]),
        expect![
            "byte 0x40: the bytes at 0 of the Attributes section do not decode as dense elements [TF0622]"
        ],
    );
    check(
        list(&[(0, AttributeType::Shape), (4, string)]),
        expect![
            "byte 0x40: the bytes at 0 of the Attributes section do not decode as shape [TF0622]"
        ],
    );
    check(
        list(&[(0, AttributeType::Symbol), (4, string)]),
        expect![
            "byte 0x40: the bytes at 0 of the Attributes section do not decode as symbol [TF0622]"
        ],
    );
    check(
        list(&[(0, AttributeType::TypeArray), (4, string)]),
        expect![
            "byte 0x40: the bytes at 0 of the Attributes section do not decode as array of types [TF0622]"
        ],
    );
    check(
        list(&[(0, AttributeType::Scalar(DType::Variant)), (4, string)]),
        expect![
            "byte 0x40: the bytes at 0 of the Attributes section do not decode as variant [TF0622]"
        ],
    );
    check_section(
        SectionId::AttributeTypes,
        b"\x02\0\x08\x04\x20",
        expect![
            "byte 0x23b: invalid AttributeTypes section in BEF file: unknown attribute type 32 [TF0622]"
        ],
    );
    check_section(
        SectionId::AttributeTypes,
        b"\x02\0\x08\x04\x10\0",
        expect![
            "byte 0x23d: invalid AttributeTypes section in BEF file: 1 bytes are left over [TF0606]"
        ],
    );
}

#[test]
fn aggregates_may_nest_but_not_share_or_run_deep() {
    use crate::AttributeWriter;
    fn nest(writer: &mut AttributeWriter, depth: usize) -> (AttributeType, u32) {
        if depth == 0 {
            return (AttributeType::Type, writer.dtype(DType::I32));
        }
        let inner = |writer: &mut AttributeWriter, _| Ok::<_, ()>(nest(writer, depth - 1));
        (
            AttributeType::Aggregate,
            writer.aggregate(8, 1, inner).unwrap(),
        )
    }
    let deep = |depth| {
        move |writer: &mut BefWriter| {
            let (kind, offset) = nest(&mut writer.attributes, depth);
            writer.attribute_types.push((offset, kind));
        }
    };
    check(deep(64), expect!["accepted"]);
    check(
        deep(65),
        expect![
            "byte 0x50: the bytes at 16 of the Attributes section do not decode as aggregate [TF0622]"
        ],
    );
    check(
        |writer| {
            let mut shared = None;
            let offset = writer.attributes.aggregate(4, 2, |writer, _| {
                Ok::<_, ()>(*shared.get_or_insert_with(|| nest(writer, 1)))
            });
            writer
                .attribute_types
                .push((offset.unwrap(), AttributeType::Aggregate));
        },
        expect![
            "byte 0x4c: the bytes at 12 of the Attributes section do not decode as aggregate [TF0622]"
        ],
    );
}

#[test]
fn optional_sections_list_what_the_bodies_have() {
    check_section(
        SectionId::AttributeNames,
        b"\x03",
        expect![
            "byte 0x23f: invalid AttributeNames section in BEF file: 3 functions, but the file has 4 [TF0623]"
        ],
    );
    check_section(
        SectionId::AttributeNames,
        b"\x04\x03",
        expect![
            "byte 0x240: invalid AttributeNames section in BEF file: 3 kernels, but region function 0 has 2 [TF0623]"
        ],
    );
    check_section(
        SectionId::AttributeNames,
        b"\x04\x02\x02",
        expect![
            "byte 0x241: invalid AttributeNames section in BEF file: no string starts at 2 [TF0603]"
        ],
    );
    check_section(
        SectionId::RegisterTypes,
        b"\x05",
        expect![
            "byte 0x247: invalid RegisterTypes section in BEF file: 5 functions, but the file has 4 [TF0623]"
        ],
    );
    check_section(
        SectionId::RegisterTypes,
        b"\x04\x02",
        expect![
            "byte 0x248: invalid RegisterTypes section in BEF file: 2 registers, but region function 0 has 1 [TF0623]"
        ],
    );
    check_section(
        SectionId::RegisterTypes,
        b"\x04\x01\x02",
        expect![
            "byte 0x249: invalid RegisterTypes section in BEF file: type 2, but the file has 2 [TF0608]"
        ],
    );
    check_body(
        MAIN,
        |body| body.register_types[2] = 2,
        expect![
            "byte 0x24d: invalid RegisterTypes section in BEF file: type 2, but the file has 2 [TF0608]"
        ],
    );
    check_body(
        MAIN,
        |body| body.register_types[0] = 1,
        expect![
            "byte 0x24f: invalid RegisterTypes section in BEF file: register 0 of 'main' has type 1, but the function's signature says 0 [TF0624]"
        ],
    );
    check_body(
        MAIN,
        |body| body.register_types[3] = 1,
        expect![
            "byte 0x24f: invalid RegisterTypes section in BEF file: register 3 of 'main' has type 1, but the function's signature says 0 [TF0624]"
        ],
    );
    check_body(MAIN, |body| body.register_types[2] = 1, expect!["accepted"]);
    check_section(SectionId::RegisterTypes, b"", expect!["accepted"]);
}

#[test]
fn kernels_and_types_without_a_name_are_refused() {
    check_section(
        SectionId::Kernels,
        b"\x02\x01\x00",
        expect!["byte 0x50: invalid Kernels section in BEF file: kernel 1 has no name [TF0603]"],
    );
    check_section(
        SectionId::Types,
        b"\x01\x00",
        expect!["byte 0x55: invalid Types section in BEF file: type 0 has no name [TF0603]"],
    );
}

#[test]
fn locations_are_checked() {
    check_section(
        SectionId::Locations,
        b"\x05",
        expect![
            "byte 0x22f: invalid Locations section in BEF file: unknown kind of location 5 [TF0621]"
        ],
    );
    check_section(
        SectionId::Locations,
        b"\x01\x01\x01\x01",
        expect![
            "byte 0x230: invalid Locations section in BEF file: no string starts at 1 [TF0603]"
        ],
    );
    check_section(
        SectionId::Locations,
        b"\x01\0\x01",
        expect![
            "byte 0x232: invalid Locations section in BEF file: integer runs past the end [TF0604]"
        ],
    );
    check_section(
        SectionId::Locations,
        b"\x02\0",
        expect!["byte 0x231: invalid Locations section in BEF file: no byte is left [TF0604]"],
    );
    check_section(
        SectionId::Locations,
        b"\x03\0",
        expect!["byte 0x231: invalid Locations section in BEF file: no byte is left [TF0604]"],
    );
    check_section(
        SectionId::Locations,
        b"\x04\x02\0",
        expect![
            "byte 0x230: invalid Locations section in BEF file: count of 2, but the bytes that are left hold at most 1 [TF0604]"
        ],
    );
    check_section(
        SectionId::Locations,
        b"\x04\x02\0\0\x02\0\0",
        expect!["accepted"],
    );
    check_section(
        SectionId::Locations,
        &[3; 300],
        expect![
            "byte 0x331: invalid Locations section in BEF file: locations nest more than 256 deep [TF0621]"
        ],
    );
    // A fused location of 4,096 that are unknown.
    let mut long = vec![4, 0xa0, 0];
    long.resize(3 + 4_096, 0);
    check_section(
        SectionId::Locations,
        &long,
        expect![
            "byte 0x1232: invalid Locations section in BEF file: a location says more than 65536 bytes [TF0621]"
        ],
    );
}

#[test]
fn nonstrict_marks_are_checked() {
    check_body(
        MAIN,
        |body| body.kernels[2].nonstrict = true,
        expect!["accepted"],
    );
    check_body(
        MAIN,
        |body| body.kernels[0].nonstrict = true,
        expect![
            "byte 0x256: invalid NonStrict section in BEF file: kernel 0 of 'main' is marked, but its last kernel is 3 [TF0625]"
        ],
    );
    let section = |bytes: &'static [u8]| {
        move |sections: &mut Vec<(u8, Payload)>| {
            sections.push((
                SectionId::NonStrict as u8,
                Payload::from_bytes(bytes.to_vec(), 1),
            ));
        }
    };
    check_sections(section(b"\x02\x01\x02\x03\x01"), expect!["accepted"]);
    check_sections(
        section(b"\x02\x01\x02\x01\x02"),
        expect![
            "byte 0x258: invalid NonStrict section in BEF file: marks are not in ascending order [TF0625]"
        ],
    );
    check_sections(
        section(b"\x01\x01\x04"),
        expect![
            "byte 0x256: invalid NonStrict section in BEF file: kernel 4 of 'main' is marked, but its last kernel is 3 [TF0625]"
        ],
    );
    check_sections(
        section(b"\x01\x02\x01"),
        expect![
            "byte 0x256: invalid NonStrict section in BEF file: function 2 has no body to mark a kernel of [TF0625]"
        ],
    );
    check_sections(
        section(b"\x01\x04\x01"),
        expect![
            "byte 0x256: invalid NonStrict section in BEF file: function 4 has no body to mark a kernel of [TF0625]"
        ],
    );
    check_sections(
        section(b"\x01\x01\x01\x01"),
        expect![
            "byte 0x258: invalid NonStrict section in BEF file: 1 bytes are left over [TF0606]"
        ],
    );
}
