//! Every byte of a file is told about, once.

use expect_test::expect;
use tfrt_bef::{
    AttributeType, AttributeWriter, BefBuffer, BefFile, BefWriter, DType, LocationWriter,
    layout::MAX_LOCATION_DEPTH,
    listing::{self, Piece},
};

fn pieces(bytes: &[u8]) -> Vec<Piece> {
    let file = BefFile::open(BefBuffer::copy_from(bytes)).unwrap();
    let mut pieces = Vec::new();
    listing::list(&file, &mut |piece| pieces.push(piece));
    pieces
}

#[test]
fn pieces_follow_one_another_without_gaps() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let mut n_files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "bef") {
            continue;
        }
        n_files += 1;
        let bytes = std::fs::read(&path).unwrap();
        let mut end = 0;
        for piece in pieces(&bytes) {
            assert_eq!(piece.start, end, "{}: {piece:?}", path.display());
            assert!(piece.end > piece.start && !piece.text.is_empty());
            assert_ne!(piece.text, "unused", "{}", path.display());
            end = piece.end;
        }
        assert_eq!(end, bytes.len(), "{}", path.display());
    }
    assert!(n_files >= 2);
}

#[test]
fn pieces_say_what_their_numbers_stand_for() {
    let bytes = include_bytes!("golden/constant.bef");
    let lines: Vec<String> = pieces(bytes)
        .iter()
        .map(|piece| format!("{:#x}..{:#x} {}", piece.start, piece.end, piece.text))
        .collect();
    expect![[r#"
        0x0..0x2 magic
        0x2..0x3 version 0
        0x3..0x5 section 0 Strings: 30 bytes
        0x5..0x7 +0 "f"
        0x7..0xb +2 "i32"
        0xb..0x1d +6 "tfrt.constant.i32"
        0x1d..0x23 +24 "value"
        0x23..0x26 section 1 Attributes: 4 bytes aligned by 4
        0x26..0x28 padding
        0x28..0x2c attribute +0: i32 42
        0x2c..0x2e section 2 Kernels: 2 bytes
        0x2e..0x2f 1 kernels
        0x2f..0x30 kernel 0: +6 tfrt.constant.i32
        0x30..0x32 section 3 Types: 2 bytes
        0x32..0x33 1 types
        0x33..0x34 type 0: +2 i32
        0x34..0x36 section 4 FunctionIndex: 7 bytes
        0x36..0x37 1 functions
        0x37..0x3a function 0 'f' (+0): async, body at +0
        0x3a..0x3b 0 arguments: 
        0x3b..0x3d 1 results: i32
        0x3d..0x40 section 5 Functions: 84 bytes
        0x40..0x41 function 0 'f' at f.mlir:1:1 (+0)
        0x41..0x42 1 registers
        0x42..0x43 r0: used 1, i32
        0x43..0x44 2 kernels
        0x44..0x47 k0: record at +0, waits for 0, stream 0
        0x47..0x4a k1: record at +36, waits for 0, stream 0
        0x4a..0x4b returns r0
        0x4b..0x4c padding
        0x4c..0x50 k0: entry
        0x50..0x54   no location
        0x54..0x64   0 operands, 0 attributes, 0 functions, 1 results
        0x64..0x68   r1 has 1 users
        0x68..0x6c   writes r1
        0x6c..0x70   users of r1: [1]
        0x70..0x74 k1: 0 tfrt.constant.i32
        0x74..0x78   at f.mlir:2:8 (+4)
        0x78..0x88   0 operands, 1 attributes, 0 functions, 1 results
        0x88..0x8c   r0 has 0 users
        0x8c..0x90   attribute value at +0
        0x90..0x94   writes r0
        0x94..0x96 section 6 LocationStrings: 7 bytes
        0x96..0x9d +0 "f.mlir"
        0x9d..0x9f section 7 Locations: 8 bytes
        0x9f..0xa3 location +0: f.mlir:1:1
        0xa3..0xa7 location +4: f.mlir:2:8
        0xa7..0xa9 section 8 AttributeTypes: 3 bytes
        0xa9..0xaa 1 attributes
        0xaa..0xac attribute +0: i32
        0xac..0xae section 9 AttributeNames: 3 bytes
        0xae..0xaf 1 functions
        0xaf..0xb0 function 0 'f': 2 kernels
        0xb0..0xb1 k1: +24 value
        0xb1..0xb3 section 10 RegisterTypes: 3 bytes
        0xb3..0xb4 1 functions
        0xb4..0xb5 function 0 'f': 1 registers
        0xb5..0xb6 r0: 0 i32"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn attributes_of_every_type_end_where_the_next_begins() {
    let mut attributes = AttributeWriter::default();
    let scalar = attributes.scalar(&[7, 0, 0, 0]);
    let string = attributes.string(b"text");
    let types = [DType::I32.byte(), DType::F32.byte(), DType::I1.byte()];
    let type_array = attributes.array(1, 3, &types);
    let array = attributes.array(2, 2, &[1, 0, 2, 0]);
    let shape = attributes.shape(Some(&[2, 3]));
    let unranked = attributes.shape(None);
    let dense = attributes.dense(DType::I32, &[1], &[9, 0, 0, 0]);
    let symbol = attributes.symbol(5, "root", &["leaf"], "module");
    let last = attributes.scalar(&[1]);
    let mut writer = BefWriter::new();
    writer.attributes = attributes;
    writer.attribute_types = vec![
        (scalar, AttributeType::Scalar(DType::I32)),
        (string, AttributeType::Scalar(DType::String)),
        (type_array, AttributeType::TypeArray),
        (array, AttributeType::Array(DType::I16)),
        (shape, AttributeType::Shape),
        (unranked, AttributeType::Shape),
        (dense, AttributeType::Dense),
        (symbol, AttributeType::Symbol),
        (last, AttributeType::Scalar(DType::I1)),
    ];
    let bytes = writer.finish().as_bytes().to_vec();
    let listed: Vec<Piece> = pieces(&bytes)
        .into_iter()
        .skip_while(|piece| !piece.text.starts_with("section 1 "))
        .skip(1)
        .take_while(|piece| !piece.text.starts_with("section "))
        .collect();
    let start = listed.iter().find(|piece| piece.text != "padding");
    let start = start.unwrap().start;
    let lines: Vec<String> = listed
        .iter()
        .filter(|piece| piece.start >= start)
        .map(|piece| {
            format!(
                "{}..{} {}",
                piece.start - start,
                piece.end - start,
                piece.text
            )
        })
        .collect();
    expect![[r#"
        0..4 attribute +0: i32 7
        4..12 attribute +4: str "text"
        12..19 attribute +12: array of types i32, f32, i1
        19..20 padding
        20..28 attribute +20: array of i16 [1, 2]
        28..56 attribute +28: shape [2, 3]
        56..60 attribute +56: shape unranked
        60..92 attribute +60: dense elements i32 [1], 4 bytes
        92..112 attribute +92: symbol 5 @root ["leaf"]
        112..113 attribute +112: i1 1"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn a_location_as_deep_as_may_be_ends_where_the_next_begins() {
    let deep: [fn(&mut LocationWriter, u32); 4] = [
        |locations, name| locations.name(name),
        |locations, _| locations.call_site(),
        |locations, _| {
            locations.call_site();
            locations.unknown();
        },
        |locations, name| {
            locations.fused(2);
            locations.file_line_col(name, 1, 2);
        },
    ];
    for (case, outer) in deep.into_iter().enumerate() {
        let mut writer = BefWriter::new();
        let name = writer.location_strings.insert("n");
        let locations = &mut writer.locations;
        for _ in 0..MAX_LOCATION_DEPTH {
            outer(locations, name);
        }
        locations.unknown();
        if case == 1 {
            // The callers.
            (0..MAX_LOCATION_DEPTH).for_each(|_| locations.unknown());
        }
        let next = locations.offset();
        locations.unknown();
        let listed = pieces(writer.finish().as_bytes());
        let texts = listed.iter().map(|piece| piece.text.as_str());
        let texts: Vec<&str> = texts.filter(|text| text.contains("location +")).collect();
        assert_eq!(texts.len(), 2, "{case}: {texts:?}");
        assert!(texts[0].starts_with("location +0: "), "{case}: {texts:?}");
        assert_eq!(texts[1], format!("location +{next}: (unknown)"), "{case}");
    }
}
