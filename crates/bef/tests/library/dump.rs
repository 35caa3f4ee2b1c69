//! Tests of the text form of files.

use expect_test::expect;
use tfrt_bef::{AttributeType, AttributeWriter, BefBuffer, BefFile, BefWriter, DType, dump};

#[test]
fn arguments_and_attributes_are_shown() {
    let buffer = BefBuffer::copy_from(include_bytes!("../golden/arguments.bef"));
    expect![[r#"
        section 0 Strings: byte 0x5, 53 bytes
        section 1 Attributes: byte 0x40, 16 bytes
        section 2 Kernels: byte 0x52, 3 bytes
        section 3 Types: byte 0x57, 4 bytes
        section 4 FunctionIndex: byte 0x5d, 10 bytes
        section 5 Functions: byte 0x6c, 172 bytes
        section 6 LocationStrings: byte 0x11a, 7 bytes
        section 7 Locations: byte 0x123, 12 bytes
        section 8 AttributeTypes: byte 0x131, 5 bytes
        section 9 AttributeNames: byte 0x138, 4 bytes
        section 10 RegisterTypes: byte 0x13e, 6 bytes
        kernel 0: tfrt.add.i32
        kernel 1: tfrt_test.k
        type 0: i32
        type 1: f64
        type 2: !tfrt.chain
        attribute 0: str "hi"
        attribute 8: f64 2.0
        function 0 'g': async (!tfrt.chain, i32) -> (i32, i32)
          stream 0 at g.mlir:1:1
          register r0: used 0 !tfrt.chain
          register r1: used 3 i32
          register r2: used 1 i32
          register r3: used 2 i32
          k0 entry: starts []
             argument r0: users []
             argument r1: users [2, 1, 1]
          k1 0 tfrt.add.i32(r1, r1) stream 0 at g.mlir:2:8
             result r2: users [2]
          k2 1 tfrt_test.k(r2, r1) stream 0 at g.mlir:3:8
             attribute tag at 0: "hi"
             attribute w at 8: 2.0
             result r3: users []
          returns (r3, r3)
    "#]]
    .assert_eq(&dump(&BefFile::open(buffer).unwrap()));
}

/// Returns the text form of attributes.
fn shown(attributes: AttributeWriter, types: Vec<(u32, AttributeType)>) -> String {
    let mut writer = BefWriter::new();
    writer.attributes = attributes;
    writer.attribute_types = types;
    let text = dump(&BefFile::open(writer.finish()).unwrap());
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("attribute "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn numbers_of_every_type_are_shown() {
    let mut attributes = AttributeWriter::default();
    let mut types = Vec::new();
    for dtype in DType::ALL {
        let Some(size_bytes) = dtype.size_bytes() else {
            continue;
        };
        let element = match dtype {
            DType::I1 => vec![1],
            DType::F32 => 1.5_f32.to_le_bytes().to_vec(),
            DType::F64 => 2.5_f64.to_le_bytes().to_vec(),
            DType::Complex64 => [1.5_f32, -1.5].map(f32::to_le_bytes).concat(),
            DType::Complex128 => [2.5_f64, -2.5].map(f64::to_le_bytes).concat(),
            _ => vec![0xff; size_bytes],
        };
        types.push((attributes.scalar(&element), AttributeType::Scalar(dtype)));
        let array = attributes.array(dtype.alignment_bytes().unwrap(), 2, &element.repeat(2));
        types.push((array, AttributeType::Array(dtype)));
    }
    expect![[r#"
        0: u8 255
        4: array of u8 [255, 255]
        10: u16 65535
        12: array of u16 [65535, 65535]
        20: u32 4294967295
        24: array of u32 [4294967295, 4294967295]
        40: u64 18446744073709551615
        52: array of u64 [18446744073709551615, 18446744073709551615]
        72: i1 1
        76: array of i1 [1, 1]
        82: i8 -1
        84: array of i8 [-1, -1]
        90: i16 -1
        92: array of i16 [-1, -1]
        100: i32 -1
        104: array of i32 [-1, -1]
        120: i64 -1
        132: array of i64 [-1, -1]
        152: f32 1.5
        156: array of f32 [1.5, 1.5]
        168: f64 2.5
        180: array of f64 [2.5, 2.5]
        200: complex64 [1.5, -1.5]
        208: array of complex64 [[1.5, -1.5], [1.5, -1.5]]
        240: complex128 [2.5, -2.5]
        260: array of complex128 [[2.5, -2.5], [2.5, -2.5]]
        296: f16 bits 65535
        300: array of f16 bits [65535, 65535]
        308: bf16 bits 65535
        312: array of bf16 bits [65535, 65535]
        320: qu8 255
        324: array of qu8 [255, 255]
        330: qu16 65535
        332: array of qu16 [65535, 65535]
        340: qi8 -1
        344: array of qi8 [-1, -1]
        350: qi16 -1
        352: array of qi16 [-1, -1]
        360: qi32 -1
        364: array of qi32 [-1, -1]
        376: i4 bits 255
        380: array of i4 bits [255, 255]
        386: u4 bits 255
        388: array of u4 bits [255, 255]
        394: i2 bits 255
        396: array of i2 bits [255, 255]
        402: u2 bits 255
        404: array of u2 bits [255, 255]
        410: f8e4m3fn bits 255
        412: array of f8e4m3fn bits [255, 255]
        418: f8e4m3fnuz bits 255
        420: array of f8e4m3fnuz bits [255, 255]
        426: f8e5m2 bits 255
        428: array of f8e5m2 bits [255, 255]
        434: f8e5m2fnuz bits 255
        436: array of f8e5m2fnuz bits [255, 255]
        442: f8e8m0 bits 255
        444: array of f8e8m0 bits [255, 255]
        450: f4e2m1 bits 255
        452: array of f4e2m1 bits [255, 255]
        458: f8e3m4 bits 255
        460: array of f8e3m4 bits [255, 255]
        466: f8e4m3 bits 255
        468: array of f8e4m3 bits [255, 255]
        474: f8e4m3b11fnuz bits 255
        476: array of f8e4m3b11fnuz bits [255, 255]
        482: f6e2m3 bits 255
        484: array of f6e2m3 bits [255, 255]
        490: f6e3m2 bits 255
        492: array of f6e3m2 bits [255, 255]"#]]
    .assert_eq(&shown(attributes, types));
}

#[test]
fn attributes_that_are_no_numbers_are_shown() {
    let mut attributes = AttributeWriter::default();
    let kind = attributes.dtype(DType::Complex64);
    let name = attributes.string(b"main");
    let text = attributes.string(b"\xff\"");
    let list = attributes.array(1, 2, &[DType::I32.byte(), DType::String.byte()]);
    let shape = attributes.shape(Some(&[2, -1]));
    let unranked = attributes.shape(None);
    let dense = attributes.dense(DType::F16, &[1, 2], &[0; 4]);
    let symbol = attributes.symbol(5, "root", &["inner", "leaf"], "module");
    let aggregate = attributes
        .aggregate(4, 2, |attributes, position| {
            Ok::<_, ()>(match position {
                0 => (
                    AttributeType::Scalar(DType::String),
                    attributes.string(b"s"),
                ),
                _ => (
                    AttributeType::Scalar(DType::I32),
                    attributes.scalar(&[7, 0, 0, 0]),
                ),
            })
        })
        .unwrap();
    let types = vec![
        (kind, AttributeType::Type),
        (name, AttributeType::FunctionName),
        (text, AttributeType::Scalar(DType::String)),
        (list, AttributeType::TypeArray),
        (shape, AttributeType::Shape),
        (unranked, AttributeType::Shape),
        (dense, AttributeType::Dense),
        (symbol, AttributeType::Symbol),
        (aggregate, AttributeType::Aggregate),
    ];
    expect![[r#"
        0: type complex64
        4: function name "main"
        12: str "�\""
        20: array of types i32, str
        28: shape [2, -1]
        56: shape unranked
        60: dense elements f16 [1, 2], 4 bytes
        100: symbol 5 @root ["inner", "leaf"]
        128: aggregate ["s", 7]"#]]
    .assert_eq(&shown(attributes, types));
}
