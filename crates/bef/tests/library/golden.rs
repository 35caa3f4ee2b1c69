//! Tests with files of version 0: the reader sees their content, the writer reproduces them.

use tfrt_bef::{
    AttributeOffset, AttributeType, BefBuffer, BefFile, BefWriter, DType, FunctionBody,
    FunctionEntry, FunctionIndex, FunctionKind, KernelCode, KernelEntry, Location, LocationOffset,
    RegisterIndex,
};

const CONSTANT: &[u8] = include_bytes!("../golden/constant.bef");
const ARGUMENTS: &[u8] = include_bytes!("../golden/arguments.bef");

fn open(bytes: &[u8]) -> BefFile {
    BefFile::open(BefBuffer::copy_from(bytes)).unwrap()
}

#[test]
fn smallest_useful_file_is_read() {
    let file = open(CONSTANT);
    assert!(file.has_optional_sections());
    assert_eq!(
        file.kernel_names().collect::<Vec<_>>(),
        ["tfrt.constant.i32"]
    );
    let function = file.function(file.find_function("f").unwrap());
    assert_eq!(
        (function.name(), function.kind()),
        ("f", FunctionKind::Async)
    );
    assert_eq!(function.argument_types().count(), 0);
    let result_types: Vec<_> = function
        .result_types()
        .map(|ty| file.type_name(ty))
        .collect();
    assert_eq!(result_types, ["i32"]);

    let body = function.body().unwrap();
    assert_eq!(
        (body.n_registers(), body.n_arguments(), body.n_kernels()),
        (1, 0, 1)
    );
    assert_eq!(body.use_count(RegisterIndex(0)), 1);
    assert_eq!(body.register_type(RegisterIndex(0)), Some("i32"));
    assert_eq!(body.entry_users(), [1]);
    assert_eq!(body.result_registers(), [0]);

    let kernel = body.kernels().next().unwrap();
    assert_eq!(
        (kernel.code(), kernel.name()),
        (KernelCode(0), "tfrt.constant.i32")
    );
    assert_eq!(kernel.operands(), []);
    assert_eq!(kernel.results(), [0]);
    assert_eq!(kernel.users(0), []);
    assert_eq!(kernel.attribute_name(0), Some("value"));
    let attribute = file.attribute(AttributeOffset(kernel.attributes()[0]));
    assert_eq!(
        attribute.listed_type(),
        Some(AttributeType::Scalar(DType::I32))
    );
    assert_eq!(attribute.as_i32(), Some(42));
    assert_eq!(attribute.as_f32(), None);
    let location = |line, column| {
        Some(Location::FileLineCol {
            file: "f.mlir".to_owned(),
            line,
            column,
        })
    };
    assert_eq!(file.location(body.location()), location(1, 1));
    assert_eq!(file.location(kernel.location()), location(2, 8));
    assert_eq!(file.location(LocationOffset(0xffff_fffe)), None);
}

#[test]
fn arguments_and_users_are_read() {
    let file = open(ARGUMENTS);
    let body = file.function(FunctionIndex(0)).body().unwrap();
    assert_eq!(body.use_counts(), [0, 3, 1, 2]);
    assert_eq!(body.entry_users(), []);
    assert_eq!(body.argument_users(0), []);
    assert_eq!(body.argument_users(1), [2, 1, 1]);
    assert_eq!(body.result_registers(), [3, 3]);
    let kernels: Vec<_> = body.kernels().collect();
    assert_eq!(
        (kernels[0].operands(), kernels[0].users(0)),
        (&[1, 1][..], &[2][..])
    );
    assert_eq!(
        (kernels[1].operands(), kernels[1].users(0)),
        (&[2, 1][..], &[][..])
    );
    assert_eq!(kernels[1].attribute_name(0), Some("tag"));
    assert_eq!(kernels[1].attribute_name(1), Some("w"));
    let attributes = kernels[1].attributes();
    assert_eq!(
        file.attribute(AttributeOffset(attributes[0])).as_str(),
        Some("hi")
    );
    assert_eq!(
        file.attribute(AttributeOffset(attributes[1])).as_f64(),
        Some(2.0)
    );
    let types: Vec<_> = (0..4)
        .map(|r| body.register_type(RegisterIndex(r)).unwrap())
        .collect();
    assert_eq!(types, ["!tfrt.chain", "i32", "i32", "i32"]);
}

/// Returns the writer of the smallest useful file.
fn constant(strip: bool) -> BefWriter {
    let mut writer = BefWriter::new();
    writer.strip = strip;
    let name = writer.strings.insert("f");
    writer.types.push(writer.strings.insert("i32"));
    writer
        .kernels
        .push(writer.strings.insert("tfrt.constant.i32"));
    let value = writer.attributes.scalar(&42i32.to_le_bytes());
    let mut kernel = KernelEntry {
        results: vec![0],
        attributes: vec![value],
        ..Default::default()
    };
    if !strip {
        kernel.attribute_names.push(writer.strings.insert("value"));
        writer
            .attribute_types
            .push((value, AttributeType::Scalar(DType::I32)));
    }
    let source = writer.location_strings.insert("f.mlir");
    writer.locations.file_line_col(source, 1, 1);
    kernel.location = writer.locations.offset();
    writer.locations.file_line_col(source, 2, 8);
    writer.functions.push(FunctionEntry {
        kind: FunctionKind::Async,
        name,
        arguments: vec![],
        results: vec![0],
        body: Some(FunctionBody::new(1, 0, vec![kernel], vec![0]).into()),
    });
    writer
}

#[test]
fn smallest_useful_file_is_written() {
    assert_eq!(constant(false).finish().as_bytes(), CONSTANT);
}

#[test]
fn strings_are_found_where_they_were_put() {
    let mut strings = BefWriter::new().strings;
    let (first, second) = (strings.insert("one"), strings.insert("two"));
    assert_eq!(strings.insert("one"), first);
    assert_eq!(
        [strings.get("one"), strings.get("two")],
        [Some(first), Some(second)]
    );
    assert_eq!(strings.get("three"), None);
    assert_eq!(strings.payload().as_bytes(), b"one\0two\0");
}

#[test]
fn alignment_flag_is_written_only_where_it_is_needed() {
    let stripped = constant(true).finish();
    // Without the attribute's name its section starts elsewhere.
    assert_eq!(
        stripped.as_bytes()[0x1d..0x24],
        [0x01, 0x09, 0x04, 42, 0, 0, 0]
    );
    let file = BefFile::open(stripped).unwrap();
    assert!(!file.has_optional_sections());
    let body = file.function(FunctionIndex(0)).body().unwrap();
    let kernel = body.kernels().next().unwrap();
    assert_eq!(kernel.attribute_name(0), None);
    assert_eq!(body.register_type(RegisterIndex(0)), None);
    assert_eq!(
        file.attribute(AttributeOffset(kernel.attributes()[0]))
            .as_i32(),
        Some(42)
    );
}

#[test]
fn arguments_are_written() {
    let mut writer = BefWriter::new();
    let strings = &mut writer.strings;
    let [chain, f64_name, g, i32_name, tag, add, k, w] = [
        "!tfrt.chain",
        "f64",
        "g",
        "i32",
        "tag",
        "tfrt.add.i32",
        "tfrt_test.k",
        "w",
    ]
    .map(|name| strings.insert(name));
    writer.kernels = vec![add, k];
    writer.types = vec![i32_name, f64_name, chain];
    let hi = writer.attributes.string(b"hi");
    let two = writer.attributes.scalar(&2.0f64.to_le_bytes());
    writer.attribute_types = vec![
        (hi, AttributeType::Scalar(DType::String)),
        (two, AttributeType::Scalar(DType::F64)),
    ];
    let source = writer.location_strings.insert("g.mlir");
    writer.locations.file_line_col(source, 1, 1);
    let first = writer.locations.offset();
    writer.locations.file_line_col(source, 2, 8);
    let second = writer.locations.offset();
    writer.locations.file_line_col(source, 3, 8);
    let kernels = vec![
        KernelEntry {
            location: first,
            operands: vec![1, 1],
            results: vec![2],
            ..Default::default()
        },
        KernelEntry {
            code: 1,
            location: second,
            operands: vec![2, 1],
            attributes: vec![hi, two],
            attribute_names: vec![tag, w],
            results: vec![3],
            ..Default::default()
        },
    ];
    let body = FunctionBody {
        register_types: vec![2, 0, 0, 0],
        ..FunctionBody::new(4, 2, kernels, vec![3, 3])
    };
    writer.functions.push(FunctionEntry {
        kind: FunctionKind::Async,
        name: g,
        arguments: vec![2, 0],
        results: vec![0, 0],
        body: Some(body.into()),
    });
    assert_eq!(writer.finish().as_bytes(), ARGUMENTS);
}

#[test]
fn empty_module_has_every_section_but_locations() {
    let expected = [
        0x0b, 0xef, 0x00, // header
        0x00, 0x00, 0x01, 0x00, 0x02, 0x02, 0x00, 0x03, 0x02, 0x00, 0x04, 0x02, 0x00, 0x05, 0x00,
        0x08, 0x02, 0x00, 0x09, 0x02, 0x00, 0x0a, 0x02, 0x00,
    ];
    assert_eq!(BefWriter::new().finish().as_bytes(), expected);
    open(&expected);
}
