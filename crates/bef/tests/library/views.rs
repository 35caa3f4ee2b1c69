//! Tests of views: a file's functions, bodies and kernels.

use tfrt_bef::{
    AttributeType, BefFile, BefWriter, DType, FunctionBody, FunctionEntry, FunctionIndex,
    FunctionKind, KernelCode, KernelEntry, KernelIndex, LocationOffset, RegisterIndex, SectionId,
    TypeIndex,
};

/// A file of the functions
///
/// ```text
/// region:         k1: %0 = make; returns %0
/// beta(%0, %1):   k1: %2 = use(%0) region 0, non-strict; k2: %3, %4 = use(%2, %1, %2); returns %4, %2, %4
/// alpha:          no body
/// beta(%0) again: returns %0
/// ```
fn file() -> BefFile {
    let mut writer = BefWriter::new();
    let strings = &mut writer.strings;
    let [empty, alpha, beta, tag] = ["", "alpha", "beta", "tag"].map(|name| strings.insert(name));
    writer.kernels = ["make", "use"].map(|name| strings.insert(name)).to_vec();
    writer.types = ["i32", "!tfrt.chain", "f32"]
        .map(|name| strings.insert(name))
        .to_vec();
    let text = writer.attributes.string(b"text");
    let number = writer.attributes.scalar(&[7, 0, 0, 0]);
    writer.attribute_types = vec![
        (text, AttributeType::Scalar(DType::String)),
        (number, AttributeType::Scalar(DType::I32)),
    ];
    let source = writer.location_strings.insert("f.mlir");
    let called = writer.location_strings.insert("called");
    writer.locations.unknown();
    let of_body = writer.locations.offset();
    writer.locations.name(called);
    writer.locations.file_line_col(source, 1, 2);
    let of_kernel = writer.locations.offset();
    writer.locations.file_line_col(source, 3, 4);

    let make = KernelEntry {
        results: vec![0],
        ..KernelEntry::default()
    };
    let first = KernelEntry {
        code: 1,
        operands: vec![0],
        functions: vec![0],
        results: vec![2],
        stream: 3,
        nonstrict: true,
        ..KernelEntry::default()
    };
    let second = KernelEntry {
        code: 1,
        location: of_kernel,
        operands: vec![2, 1, 2],
        attributes: vec![number, text, number],
        attribute_names: vec![tag, alpha, beta],
        results: vec![3, 4],
        ..KernelEntry::default()
    };
    let mut body = FunctionBody {
        location: of_body,
        register_types: vec![0, 1, 2, 2, 1],
        ..FunctionBody::new(5, 2, vec![first, second], vec![4, 2, 4])
    };
    body.kernels[0].stream = 4;
    let mut add = |kind, name, arguments: &[u32], results: &[u32], body: Option<FunctionBody>| {
        writer.functions.push(FunctionEntry {
            kind,
            name,
            arguments: arguments.to_vec(),
            results: results.to_vec(),
            body: body.map(Into::into),
        });
    };
    let region = FunctionBody::new(1, 0, vec![make], vec![0]);
    add(FunctionKind::Async, empty, &[], &[0], Some(region));
    add(FunctionKind::Async, beta, &[0, 1], &[1, 2, 1], Some(body));
    add(FunctionKind::Native, alpha, &[2], &[], None);
    let again = FunctionBody::new(1, 1, vec![], vec![0]);
    add(FunctionKind::Async, beta, &[0], &[0], Some(again));
    BefFile::open(writer.finish()).unwrap()
}

const BETA: FunctionIndex = FunctionIndex(1);

#[test]
fn file_counts_what_it_lists() {
    let file = file();
    assert_eq!((file.n_functions(), file.functions().len()), (4, 4));
    assert_eq!((file.n_kernel_codes(), file.n_types()), (2, 3));
    assert_eq!(file.kernel_name(KernelCode(1)), "use");
    assert_eq!(file.type_name(TypeIndex(2)), "f32");
    assert_eq!(file.attribute_types().len(), 2);
}

#[test]
fn functions_are_found_by_name_the_last_of_those_that_share_it() {
    let file = file();
    let found = |name| file.find_function(name).map(|index| index.0);
    assert_eq!(found("alpha"), Some(2));
    assert_eq!(found("beta"), Some(3));
    for absent in ["", "a", "alph", "alphas", "b", "betas", "z"] {
        assert_eq!(found(absent), None, "{absent}");
    }
}

#[test]
fn function_has_a_signature() {
    let file = file();
    let signature = |index| {
        let function = file.function(FunctionIndex(index));
        assert_eq!(function.index(), FunctionIndex(index));
        let arguments: Vec<u32> = function.argument_types().map(|ty| ty.0).collect();
        let results: Vec<u32> = function.result_types().map(|ty| ty.0).collect();
        assert_eq!(function.n_arguments(), arguments.len());
        assert_eq!(function.n_results(), results.len());
        (function.name(), function.kind(), arguments, results)
    };
    assert_eq!(signature(0), ("", FunctionKind::Async, vec![], vec![0]));
    assert_eq!(
        signature(1),
        ("beta", FunctionKind::Async, vec![0, 1], vec![1, 2, 1])
    );
    assert_eq!(
        signature(2),
        ("alpha", FunctionKind::Native, vec![2], vec![])
    );
    let has_body = file.functions().map(|function| function.body().is_some());
    assert_eq!(has_body.collect::<Vec<_>>(), [true, true, false, true]);
}

#[test]
fn body_has_registers_and_kernels() {
    let file = file();
    let body = file.function(BETA).body().unwrap();
    assert_eq!(
        (body.n_registers(), body.n_arguments(), body.n_kernels()),
        (5, 2, 2)
    );
    assert_eq!(body.use_counts(), [1, 1, 3, 0, 2]);
    assert_eq!(body.use_count(RegisterIndex(2)), 3);
    assert_eq!(body.result_registers(), [4, 2, 4]);
    assert_eq!(
        (body.argument_users(0), body.argument_users(1)),
        (&[1][..], &[2][..])
    );
    assert_eq!(body.entry_users(), []);
    let types = (0..5).map(|register| body.register_type_index(RegisterIndex(register)));
    let expected = [0, 1, 2, 2, 1].map(|ty| Some(TypeIndex(ty)));
    assert_eq!(types.collect::<Vec<_>>(), expected);
    assert_eq!(body.register_type(RegisterIndex(1)), Some("!tfrt.chain"));
    assert_eq!(body.location(), LocationOffset(1));
    assert_eq!(body.root_stream(), 4);
    let region = file.function(FunctionIndex(0)).body().unwrap();
    assert_eq!((region.entry_users(), region.n_kernels()), (&[1][..], 1));
}

#[test]
fn kernels_have_what_was_written() {
    let file = file();
    let body = file.function(BETA).body().unwrap();
    let kernels: Vec<_> = body.kernels().collect();
    let [first, second] = kernels[..] else {
        panic!("{} kernels", kernels.len());
    };
    assert_eq!(
        (first.index(), second.index()),
        (KernelIndex(1), KernelIndex(2))
    );
    assert_eq!((first.code(), first.name()), (KernelCode(1), "use"));
    assert_eq!((first.operands(), first.results()), (&[0][..], &[2][..]));
    assert_eq!((first.functions(), second.functions()), (&[0][..], &[][..]));
    assert_eq!(first.users(0), [2, 2]);
    assert_eq!((first.stream(), second.stream()), (3, 0));
    assert_eq!((first.nonstrict(), second.nonstrict()), (true, false));
    assert_eq!(
        (second.operands(), second.results()),
        (&[2, 1, 2][..], &[3, 4][..])
    );
    assert_eq!((second.users(0), second.users(1)), (&[][..], &[][..]));
    assert_eq!(second.attributes(), [8, 0, 8]);
    let names = [0, 1, 2].map(|attribute| second.attribute_name(attribute));
    assert_eq!(names, [Some("tag"), Some("alpha"), Some("beta")]);
    let places = [&first, &second].map(|kernel| file.location(kernel.location()));
    let places = places.map(|place| place.map(|place| place.to_string()));
    assert_eq!(
        places,
        [Some("(unknown)".to_owned()), Some("f.mlir:3:4".to_owned())]
    );
}

#[test]
fn kernels_that_need_not_wait_for_all_are_marked() {
    let file = file();
    let is_marked = |function, kernel| file.nonstrict(FunctionIndex(function), KernelIndex(kernel));
    assert!(is_marked(1, 1));
    // The pseudo kernel, another, and those that are not there.
    for (function, kernel) in [(1, 0), (1, 2), (1, 3), (0, 1), (2, 1), (3, 1)] {
        assert!(!is_marked(function, kernel), "{function}, {kernel}");
    }
}

#[test]
fn locations_give_names_to_kernels() {
    let file = file();
    let name = |offset| file.debug_name(LocationOffset(offset));
    assert_eq!(
        [0, 1, 99].map(name),
        [None, Some("called".to_owned()), None]
    );
}

#[test]
fn sections_are_found_by_their_ids() {
    let file = file();
    assert_eq!(
        file.section(SectionId::Types as u8).map(<[u8]>::len),
        Some(4)
    );
    assert_eq!(
        file.section(SectionId::NonStrict as u8),
        Some(&[1, 1, 1][..])
    );
    assert_eq!(file.section(SectionId::Model as u8), None);
}
