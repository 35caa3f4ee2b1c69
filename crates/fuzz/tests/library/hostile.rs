//! Tests with files cut at every byte, with every bit flipped, with numbers out of all proportion.
//!
//! Whatever the bytes, opening answers, and whatever is accepted can be read through
//! every view without a panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use tfrt_bef::{
    AttributeOffset, AttributeType, BefBuffer, BefFile, BefWriter, DType, FunctionBody,
    FunctionEntry, FunctionKind, KernelEntry, LocationOffset, Payload, SectionId, assemble,
};
use tfrt_fuzz::walk::{read_all, read_attribute};

/// Copies bytes to a box of just their size, so that reading past it is noticed.
fn exact(bytes: &[u8]) -> BefBuffer {
    BefBuffer::from_vec(Vec::from(bytes.to_vec().into_boxed_slice()))
}

fn kernel(operands: &[u32], results: &[u32]) -> KernelEntry {
    KernelEntry {
        operands: operands.to_vec(),
        results: results.to_vec(),
        ..Default::default()
    }
}

/// Returns a small file with everything in it.
fn everything() -> BefWriter {
    let mut writer = BefWriter::new();
    let names = ["", "k", "i32", "main", "native", "sync"].map(|name| writer.strings.insert(name));
    writer.kernels = vec![names[1]];
    writer.types = vec![names[2]];
    let attributes = &mut writer.attributes;
    let mut listed = vec![
        (attributes.scalar(&[1]), AttributeType::Scalar(DType::I1)),
        (
            attributes.scalar(&[0; 8]),
            AttributeType::Scalar(DType::F64),
        ),
        (
            attributes.string("text".as_bytes()),
            AttributeType::Scalar(DType::String),
        ),
        (
            attributes.array(8, 1, &[7; 8]),
            AttributeType::Array(DType::I64),
        ),
        (attributes.shape(Some(&[1, -1])), AttributeType::Shape),
        (
            attributes.dense(DType::I16, &[3], &[1, 0, 2, 0, 3, 0]),
            AttributeType::Dense,
        ),
        (attributes.empty_array(), AttributeType::EMPTY_ARRAY),
        (
            attributes.symbol(0, "m", &["f"], "module"),
            AttributeType::Symbol,
        ),
        (attributes.array(1, 2, &[8, 10]), AttributeType::TypeArray),
    ];
    let aggregate = attributes.aggregate(4, 2, |attributes, position| {
        Ok::<_, ()>(match position {
            0 => (
                AttributeType::Scalar(DType::String),
                attributes.string(b"s"),
            ),
            _ => (
                AttributeType::Scalar(DType::I32),
                attributes.scalar(&[9, 0, 0, 0]),
            ),
        })
    });
    listed.push((aggregate.unwrap(), AttributeType::Aggregate));
    let file_name = writer.location_strings.insert("f");
    writer.locations.call_site();
    writer.locations.name(file_name);
    writer.locations.unknown();
    writer.locations.fused(2);
    writer.locations.file_line_col(file_name, 1, 2);
    writer.locations.unknown();

    let region = FunctionBody::new(1, 0, vec![kernel(&[], &[0])], vec![0]);
    let mut many = kernel(&[0, 1], &[2, 3]);
    many.attributes = listed.iter().map(|(offset, _)| *offset).collect();
    many.attribute_names = vec![names[1]; listed.len()];
    many.functions = vec![2, 0];
    many.nonstrict = true;
    let main = FunctionBody::new(4, 1, vec![kernel(&[], &[1]), many], vec![3, 0]);
    let sync = FunctionBody::new(2, 1, vec![kernel(&[0], &[1])], vec![1]);
    writer.attribute_types = listed;
    let mut add = |kind, name, n_arguments, n_results, body| {
        writer.functions.push(FunctionEntry {
            kind,
            name,
            arguments: vec![0; n_arguments],
            results: vec![0; n_results],
            body,
        });
    };
    add(FunctionKind::Async, names[0], 0, 1, Some(region.into()));
    add(FunctionKind::Async, names[3], 1, 2, Some(main.into()));
    add(FunctionKind::Native, names[4], 1, 1, None);
    add(FunctionKind::Sync, names[5], 1, 1, Some(sync.into()));
    writer
}

fn samples() -> Vec<Vec<u8>> {
    let mut stripped = everything();
    stripped.strip = true;
    vec![
        everything().finish().as_bytes().to_vec(),
        stripped.finish().as_bytes().to_vec(),
        include_bytes!("../../../bef/tests/golden/constant.bef").to_vec(),
        include_bytes!("../../../bef/tests/golden/arguments.bef").to_vec(),
    ]
}

#[test]
fn everything_can_be_read() {
    for sample in samples() {
        read_all(&BefFile::open(exact(&sample)).unwrap());
    }
}

#[test]
fn files_cut_at_every_byte_answer() {
    for sample in samples() {
        for len in 0..sample.len() {
            match BefFile::open(exact(&sample[..len])) {
                Ok(file) => read_all(&file),
                Err(error) => assert!(error.offset() <= len, "{error} of {len}"),
            }
        }
    }
}

#[test]
fn files_with_a_flipped_bit_answer() {
    for sample in samples() {
        for bit in 0..sample.len() * 8 {
            let mut bytes = sample.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match BefFile::open(exact(&bytes)) {
                Ok(file) => read_all(&file),
                Err(error) => assert!(error.offset() <= bytes.len(), "{error} at bit {bit}"),
            }
        }
    }
}

#[test]
fn files_with_a_byte_at_its_extremes_answer() {
    for sample in samples() {
        for position in 0..sample.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = sample.clone();
                bytes[position] = byte;
                if let Ok(file) = BefFile::open(exact(&bytes)) {
                    read_all(&file);
                }
            }
        }
    }
}

#[test]
fn every_offset_can_be_asked_for() {
    let file = BefFile::open(everything().finish()).unwrap();
    let stripped = {
        let mut writer = everything();
        writer.strip = true;
        BefFile::open(writer.finish()).unwrap()
    };
    for offset in (0..300).chain([u32::MAX - 1, u32::MAX]) {
        for file in [&file, &stripped] {
            read_attribute(file.attribute(AttributeOffset(offset)), 0);
            file.location(LocationOffset(offset));
            file.debug_name(LocationOffset(offset));
        }
    }
}

proptest! {
    #[test]
    fn random_sections_answer(payloads in proptest::collection::vec(any::<Vec<u8>>(), 12)) {
        let ids = SectionId::ALL.iter().map(|id| *id as u8);
        let payloads = payloads.into_iter().map(|bytes| Payload::from_bytes(bytes, 8));
        let sections: Vec<_> = ids.zip(payloads).collect();
        if let Ok(file) = BefFile::open(exact(&assemble(&sections))) {
            read_all(&file);
        }
    }

    #[test]
    fn several_changes_answer(
        which in 0usize..4,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = samples().swap_remove(which);
        for (position, byte) in changes {
            let at = position.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(file) = BefFile::open(exact(&bytes)) {
            read_all(&file);
        }
    }
}

/// Fails if opening takes longer than any linear pass could.
fn open_quickly(bytes: Vec<u8>) -> Result<BefFile, tfrt_bef::BefError> {
    let buffer = BefBuffer::from_vec(bytes);
    let start = Instant::now();
    let result = BefFile::open(buffer);
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "opening took {:?}",
        start.elapsed()
    );
    result
}

fn bytes_of(writer: &BefWriter) -> Vec<u8> {
    writer.clone().finish().as_bytes().to_vec()
}

#[test]
fn names_that_share_one_long_string_are_opened_in_linear_time() {
    let mut writer = BefWriter::new();
    let name = writer.strings.insert(&"a".repeat(1 << 20));
    let other = writer.strings.insert(&"a".repeat((1 << 20) + 1));
    writer.kernels = vec![name; 1 << 17];
    writer.types = vec![other; 1 << 17];
    for position in 0..1 << 17 {
        writer.functions.push(FunctionEntry {
            kind: FunctionKind::Native,
            name: if position % 2 == 0 { name } else { other },
            arguments: vec![],
            results: vec![],
            body: None,
        });
    }
    let file = open_quickly(bytes_of(&writer)).unwrap();
    assert!(file.find_function(&"a".repeat(1 << 20)).is_some());
}

#[test]
fn a_register_read_a_million_times_is_opened_in_linear_time() {
    let mut writer = BefWriter::new();
    writer.kernels = vec![writer.strings.insert("k")];
    let n_kernels = 1 << 18;
    let mut kernels = vec![kernel(&[], &[0])];
    kernels.extend((1..n_kernels).map(|k| kernel(&[0, 0, k - 1, 0], &[k])));
    writer.functions.push(FunctionEntry {
        kind: FunctionKind::Async,
        name: writer.strings.insert("f"),
        arguments: vec![],
        results: vec![],
        body: Some(FunctionBody::new(n_kernels, 0, kernels, vec![]).into()),
    });
    writer.types = vec![writer.strings.insert("t")];
    open_quickly(bytes_of(&writer)).unwrap();
}

#[test]
fn a_long_cycle_is_named_in_linear_time() {
    let mut writer = BefWriter::new();
    writer.kernels = vec![writer.strings.insert("k")];
    writer.types = vec![writer.strings.insert("t")];
    let n_kernels = 1 << 18;
    let kernels = (0..n_kernels)
        .map(|k| kernel(&[(k + 1) % n_kernels], &[k]))
        .collect();
    writer.functions.push(FunctionEntry {
        kind: FunctionKind::Async,
        name: writer.strings.insert("f"),
        arguments: vec![],
        results: vec![],
        body: Some(FunctionBody::new(n_kernels, 0, kernels, vec![]).into()),
    });
    let error = open_quickly(bytes_of(&writer)).unwrap_err();
    assert!(
        error
            .message()
            .starts_with("kernels of 'f' wait for each other"),
        "{error}"
    );
}

#[test]
fn many_functions_with_one_body_are_refused() {
    let mut sections = everything().sections();
    let n_functions = 1u64 << 16;
    let mut index = Payload::default();
    index.varint(n_functions);
    for _ in 0..n_functions {
        index.bytes(&[0, 0, 0, 0, 1, 0]);
    }
    sections[4].1 = index;
    let error = open_quickly(assemble(&sections)).unwrap_err();
    assert!(error.message().contains("starts inside another"), "{error}");
}

#[test]
fn attributes_that_share_are_refused() {
    // Two elements in each of sixty levels, both the next level: 2^60 in appearance.
    let mut attributes = Payload::default();
    for _ in 0..60 {
        for word in [0x0014_0004u32, 0x1000, 2, 21, 21, 0xcccc_1ecc] {
            attributes.words(&[word]);
        }
    }
    let mut types = Payload::default();
    types.bytes(&[1, 0, 30]);
    let mut sections = BefWriter::new().sections();
    sections[1].1 = Payload::from_bytes(attributes.as_bytes().to_vec(), 4);
    let listed = sections
        .iter_mut()
        .find(|(id, _)| *id == SectionId::AttributeTypes as u8);
    listed.unwrap().1 = types;
    let error = open_quickly(assemble(&sections)).unwrap_err();
    assert!(
        error.message().contains("do not decode as aggregate"),
        "{error}"
    );
    // Nor can they be read where no section lists them.
    sections.retain(|(id, _)| *id < SectionId::AttributeTypes as u8);
    let file = open_quickly(assemble(&sections)).unwrap();
    assert!(file.attribute(AttributeOffset(0)).aggregate().is_none());
}
