//! Tests that a listing has every byte of a file once.

use expect_test::expect;
use tfrt_bef::{
    AttributeType, AttributeWriter, BefBuffer, BefFile, BefWriter, DType, FunctionBody,
    FunctionEntry, FunctionKind, KernelEntry, LocationWriter, Payload, SectionId, assemble,
    layout::MAX_LOCATION_DEPTH,
    listing::{self, Piece, PieceKind},
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
    let bytes = include_bytes!("../golden/constant.bef");
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

/// Returns the pieces of a section, but for its head, with their places in it.
fn section(bytes: &[u8], id: u8) -> String {
    let pieces = pieces(bytes);
    let is_inside = |piece: &&Piece| piece.section == Some(id) && piece.kind != PieceKind::Head;
    let inside: Vec<&Piece> = pieces.iter().filter(is_inside).collect();
    // Padding may stand in front.
    let is_payload = |piece: &&&Piece| piece.kind == PieceKind::Payload;
    let base = inside
        .iter()
        .find(is_payload)
        .map_or(0, |piece| piece.start);
    let lines = inside
        .iter()
        .filter(|piece| piece.start >= base)
        .map(|piece| {
            let (start, end) = (piece.start - base, piece.end - base);
            format!("{start}..{end} {}", piece.text)
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a native function of two arguments, and one with a kernel that reads its two arguments; no types of
/// attributes, empty sections, and one that nobody knows.
fn sparse() -> Vec<u8> {
    let mut writer = BefWriter::new();
    let strings = &mut writer.strings;
    let [native, main, kernel] = ["native", "main", "kernel"].map(|name| strings.insert(name));
    writer.kernels = vec![kernel];
    writer.types = ["i32", "f32"].map(|name| strings.insert(name)).to_vec();
    let byte = writer.attributes.scalar(&[1]);
    let long = writer.attributes.scalar(&[2; 8]);
    let reader = KernelEntry {
        operands: vec![1, 0, 1],
        attributes: vec![long, byte, long],
        results: vec![2],
        nonstrict: true,
        ..KernelEntry::default()
    };
    let body = FunctionBody::new(3, 2, vec![reader], vec![2, 2]);
    for (kind, name, body) in [
        (FunctionKind::Native, native, None),
        (FunctionKind::Async, main, Some(body.into())),
    ] {
        writer.functions.push(FunctionEntry {
            kind,
            name,
            arguments: vec![0, 1],
            results: vec![1, 0],
            body,
        });
    }
    let mut sections = writer.sections();
    for (id, payload) in &mut sections {
        let optional = [
            SectionId::AttributeTypes,
            SectionId::AttributeNames,
            SectionId::RegisterTypes,
        ];
        if optional.map(|id| id as u8).contains(id) {
            *payload = Payload::default();
        }
    }
    sections.push((0x70, Payload::from_bytes(vec![1, 2, 3], 1)));
    assemble(&sections)
}

#[test]
fn signatures_are_lists_of_types() {
    expect![[r#"
        0..1 2 functions
        1..4 function 0 'native' (+0): native, body at +0
        4..7 2 arguments: i32, f32
        7..10 2 results: f32, i32
        10..13 function 1 'main' (+7): async, body at +0
        13..16 2 arguments: i32, f32
        16..19 2 results: f32, i32"#]]
    .assert_eq(&section(&sparse(), SectionId::FunctionIndex as u8));
}

#[test]
fn attributes_of_unlisted_types_end_where_the_next_begins() {
    expect![[r#"
        0..8 attribute +0: of unlisted type
        8..16 attribute +8: of unlisted type"#]]
    .assert_eq(&section(&sparse(), SectionId::Attributes as u8));
}

#[test]
fn bodies_say_who_reads_arguments() {
    expect![[r#"
        0..1 function 1 'main' at 0x0, where no record is
        1..2 3 registers
        2..3 r0: used 1
        3..4 r1: used 2
        4..5 r2: used 2
        5..6 2 kernels
        6..9 k0: record at +0, waits for 0, stream 0
        9..12 k1: record at +60, waits for 3, stream 0
        12..13 returns r2
        13..14 returns r2
        14..16 padding
        16..20 k0: entry
        20..24   no location
        24..40   0 operands, 0 attributes, 0 functions, 3 results
        40..44   r3 has 0 users
        44..48   r0 has 1 users
        48..52   r1 has 2 users
        52..56   writes r3
        56..60   writes r0
        60..64   writes r1
        64..68   users of r0: [1]
        68..76   users of r1: [1, 1]
        76..80 k1: 0 kernel
        80..84   at 0x0, where no record is
        84..100   3 operands, 3 attributes, 0 functions, 1 results
        100..104   r2 has 0 users
        104..108   reads r1
        108..112   reads r0
        112..116   reads r1
        116..120   attribute ? at +8
        120..124   attribute ? at +0
        124..128   attribute ? at +8
        128..132   writes r2"#]]
    .assert_eq(&section(&sparse(), SectionId::Functions as u8));
}

#[test]
fn sections_that_are_empty_or_unknown_say_nothing() {
    let texts = pieces(&sparse());
    let texts: Vec<&str> = texts.iter().map(|piece| piece.text.as_str()).collect();
    let at = texts.iter().position(|text| text.starts_with("section 8 "));
    expect![[r#"
        section 8 AttributeTypes: 0 bytes
        section 9 AttributeNames: 0 bytes
        section 10 RegisterTypes: 0 bytes
        section 64 NonStrict: 3 bytes
        1 non-strict kernels
        function 1 'main': k1
        section 112 unknown: 3 bytes
        unused"#]]
    .assert_eq(&texts[at.unwrap()..].join("\n"));
}

#[test]
fn gaps_between_bodies_and_records_are_padding() {
    let mut writer = BefWriter::new();
    let strings = &mut writer.strings;
    let names = ["first", "second"].map(|name| strings.insert(name));
    writer.kernels = vec![strings.insert("kernel")];
    writer.types = vec![strings.insert("i32")];
    for name in names {
        let kernel = KernelEntry {
            results: vec![0],
            ..KernelEntry::default()
        };
        writer.functions.push(FunctionEntry {
            kind: FunctionKind::Async,
            name,
            arguments: vec![],
            results: vec![0],
            body: Some(FunctionBody::new(1, 0, vec![kernel], vec![0]).into()),
        });
    }
    writer.strip = true;
    let mut sections = writer.sections();
    let bytes = sections[SectionId::Functions as usize].1.as_bytes();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    // The second record of the first body, which starts at 36 behind the table, moves on by a word, and the second body
    // by three.
    let mut bodies = first.to_vec();
    assert_eq!((bodies.len(), bodies[7]), (80, 36));
    bodies[7] += 4;
    bodies.splice(12 + 36..12 + 36, [0xcc; 4]);
    bodies.extend([0xcc; 8]);
    let start = bodies.len() as u8;
    bodies.extend(second);
    sections[SectionId::Functions as usize].1 = Payload::from_bytes(bodies, 4);
    let mut index = sections[SectionId::FunctionIndex as usize]
        .1
        .as_bytes()
        .to_vec();
    // Behind the count, an entry of six bytes, and a kind.
    assert_eq!(index[1 + 6 + 1], 80);
    index[1 + 6 + 1] = start;
    sections[SectionId::FunctionIndex as usize].1 = Payload::from_bytes(index, 1);
    expect![[r#"
        0..1 function 0 'first' at 0x0, where no record is
        1..2 1 registers
        2..3 r0: used 1
        3..4 2 kernels
        4..7 k0: record at +0, waits for 0, stream 0
        7..10 k1: record at +40, waits for 0, stream 0
        10..11 returns r0
        11..12 padding
        12..16 k0: entry
        16..20   no location
        20..36   0 operands, 0 attributes, 0 functions, 1 results
        36..40   r1 has 1 users
        40..44   writes r1
        44..48   users of r1: [1]
        48..52 padding
        52..56 k1: 0 kernel
        56..60   at 0x0, where no record is
        60..76   0 operands, 0 attributes, 0 functions, 1 results
        76..80   r0 has 0 users
        80..84   writes r0
        84..92 padding
        92..93 function 1 'second' at 0x0, where no record is
        93..94 1 registers
        94..95 r0: used 1
        95..96 2 kernels
        96..99 k0: record at +0, waits for 0, stream 0
        99..102 k1: record at +36, waits for 0, stream 0
        102..103 returns r0
        103..104 padding
        104..108 k0: entry
        108..112   no location
        112..128   0 operands, 0 attributes, 0 functions, 1 results
        128..132   r1 has 1 users
        132..136   writes r1
        136..140   users of r1: [1]
        140..144 k1: 0 kernel
        144..148   at 0x0, where no record is
        148..164   0 operands, 0 attributes, 0 functions, 1 results
        164..168   r0 has 0 users
        168..172   writes r0"#]]
    .assert_eq(&section(&assemble(&sections), SectionId::Functions as u8));
}

#[test]
fn text_is_no_longer_than_eight_bytes_for_each_of_the_piece_or_256() {
    let long = "x".repeat(200);
    for (n_arguments, len_bytes) in [(2, 256), (50, 51 * 8)] {
        let mut writer = BefWriter::new();
        writer.types = vec![writer.strings.insert(&long)];
        let name = writer.strings.insert("native");
        writer.functions.push(FunctionEntry {
            kind: FunctionKind::Native,
            name,
            arguments: vec![0; n_arguments],
            results: vec![],
            body: None,
        });
        let pieces = pieces(writer.finish().as_bytes());
        let is_signature = |piece: &&Piece| piece.text.contains(" arguments: x");
        let text = &pieces.iter().find(is_signature).unwrap().text;
        assert_eq!(text.len(), len_bytes + " ..".len());
        assert!(text.ends_with("x .."), "{text}");
    }
}

#[test]
fn kinds_have_names() {
    let kinds = [PieceKind::Head, PieceKind::Padding, PieceKind::Payload];
    assert_eq!(kinds.map(PieceKind::name), ["head", "padding", "payload"]);
}
