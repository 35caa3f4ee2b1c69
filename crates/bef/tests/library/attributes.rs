//! Tests of attributes' layouts, as written and as read.

use tfrt_bef::{
    AttributeOffset, AttributeType, AttributeView, AttributeWriter, BefFile, BefWriter, DType,
    DenseView, ShapeView, SymbolView,
};

/// Opens a file of these attributes.
fn open(attributes: AttributeWriter, types: &[(u32, AttributeType)], strip: bool) -> BefFile {
    let mut writer = BefWriter::new();
    writer.attributes = attributes;
    writer.attribute_types = types.to_vec();
    writer.strip = strip;
    BefFile::open(writer.finish()).unwrap()
}

/// Runs `check` on the attributes of a file that lists their types, and of one that does not.
fn with_and_without_types(
    attributes: &AttributeWriter,
    types: &[(u32, AttributeType)],
    check: impl Fn(&BefFile),
) {
    check(&open(attributes.clone(), types, false));
    check(&open(attributes.clone(), types, true));
}

#[test]
fn data_is_aligned_not_headers() {
    let mut writer = AttributeWriter::default();
    let array = writer.array(1, 2, &[1, 2]);
    let dense = writer.dense(DType::I16, &[3], &[1, 0, 2, 0, 3, 0]);
    let shape = writer.shape(Some(&[1, -1, 3]));
    let bits = writer.dense(DType::I1, &[2], &[1, 1]);
    let unranked = writer.shape(None);
    assert_eq!([array, dense, shape, bits, unranked], [0, 12, 52, 92, 124]);
    let mut expected: Vec<u8> = Vec::new();
    expected.extend([2, 0, 0, 0, 1, 2, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc]);
    expected.extend([
        8, 7, 0x1c, 0, 0x22, 0, 0, 0, 0x1c, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0,
    ]);
    expected.extend([3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0]);
    expected.extend([0xcc; 6]);
    expected.extend([
        8, 0, 0x0c, 0, 0x24, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    ]);
    expected.extend([0xff; 8]);
    expected.extend([3, 0, 0, 0, 0, 0, 0, 0, 0xcc, 0xcc, 0xcc, 0xcc]);
    expected.extend([
        8, 5, 0x1c, 0, 0x1e, 0, 0, 0, 0x1c, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0,
    ]);
    expected.extend([2, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0xcc, 0xcc, 0, 0, 0, 0]);
    assert_eq!(writer.payload().as_bytes(), expected);

    let types = [
        (array, AttributeType::Array(DType::Ui8)),
        (dense, AttributeType::Dense),
        (shape, AttributeType::Shape),
        (bits, AttributeType::Dense),
        (unranked, AttributeType::Shape),
    ];
    with_and_without_types(&writer, &types, |file| {
        let at = |offset| file.attribute(AttributeOffset(offset));
        assert_eq!(at(array).array::<u8>(), Some(&[1, 2][..]));
        let expected = DenseView {
            dtype: DType::I16,
            shape: &[3],
            bytes: &[1, 0, 2, 0, 3, 0],
        };
        assert_eq!(at(dense).dense(), Some(expected));
        assert_eq!(at(shape).shape(), Some(ShapeView::Ranked(&[1, -1, 3])));
        assert_eq!(at(bits).dense().map(|dense| dense.bytes), Some(&[1, 1][..]));
        assert_eq!(at(unranked).shape(), Some(ShapeView::Unranked));
    });
}

#[test]
fn elements_begin_where_they_are_asked_to() {
    for alignment in [1, 8, 16, 64] {
        let mut writer = AttributeWriter::default();
        writer.scalar(&[1]);
        let dense = |writer: &mut AttributeWriter, dimensions: &[i64], bytes: &[u8]| {
            let offset = writer.dense_at(alignment, DType::I8, dimensions, bytes);
            assert_eq!(writer.payload().len() % alignment.max(8), bytes.len());
            offset
        };
        let offsets = [
            dense(&mut writer, &[1, 1], &[7]),
            dense(&mut writer, &[2], &[8, 9]),
        ];
        // In front of the elements are twenty bytes, and eight for each dimension.
        let first = (36usize + 1).next_multiple_of(alignment.max(8));
        let second = (first + 1 + 28).next_multiple_of(alignment.max(8));
        assert_eq!(
            offsets,
            [first as u32 - 36, second as u32 - 28],
            "{alignment}"
        );
        let types = offsets.map(|offset| (offset, AttributeType::Dense));
        with_and_without_types(&writer, &types, |file| {
            let read = |offset| file.attribute(AttributeOffset(offset)).dense().unwrap();
            let [first, second] = offsets.map(read);
            assert_eq!((first.shape, first.bytes), (&[1, 1][..], &[7][..]));
            assert_eq!((second.shape, second.bytes), (&[2][..], &[8, 9][..]));
            let is_aligned = |bytes: &[u8]| bytes.as_ptr().addr().is_multiple_of(alignment);
            assert!(is_aligned(first.bytes) && is_aligned(second.bytes));
        });
    }
}

#[test]
fn aggregates_say_what_their_elements_are() {
    let mut writer = AttributeWriter::default();
    // The layout depends on where it starts.
    (0..8).for_each(|_| {
        writer.scalar(&[0; 4]);
    });
    let aggregate = writer
        .aggregate(4, 3, |writer, position| {
            Ok::<_, ()>(match position {
                0 => (
                    AttributeType::Scalar(DType::I32),
                    writer.scalar(&[1, 0, 0, 0]),
                ),
                1 => (
                    AttributeType::Scalar(DType::F32),
                    writer.scalar(&2.5f32.to_le_bytes()),
                ),
                _ => (AttributeType::Scalar(DType::String), writer.string(b"s")),
            })
        })
        .unwrap();
    assert_eq!(aggregate, 32);
    let expected = [
        0x04, 0x00, 0x18, 0x00, 0x31, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x1c, 0x00, 0x00,
        0x00, 0x24, 0x00, 0x00, 0x00, 0x2c, 0x00, 0x00, 0x00, 0xcc, 0xcc, 0xcc, 0x08, 0x01, 0x00,
        0x00, 0x00, 0xcc, 0xcc, 0xcc, 0x0a, 0x00, 0x00, 0x20, 0x40, 0xcc, 0xcc, 0xcc, 0x10, 0x01,
        0x00, 0x00, 0x00, 0x73,
    ];
    assert_eq!(writer.payload().as_bytes()[32..], expected);
    with_and_without_types(&writer, &[(aggregate, AttributeType::Aggregate)], |file| {
        let view = file
            .attribute(AttributeOffset(aggregate))
            .aggregate()
            .unwrap();
        assert_eq!((view.len(), view.is_empty()), (3, false));
        assert_eq!(view.get(0).unwrap().as_i32(), Some(1));
        assert_eq!(view.get(0).unwrap().as_f32(), None);
        assert_eq!(view.get(1).unwrap().as_f32(), Some(2.5));
        assert_eq!(view.get(2).unwrap().as_str(), Some("s"));
        assert!(view.get(3).is_none());
        assert_eq!(
            view.element_type(2),
            Some(AttributeType::Scalar(DType::String))
        );
        assert_eq!(view.iter().count(), 3);
    });
}

#[test]
fn elements_of_an_aggregate_must_not_run_into_the_next() {
    // What the first says of its own length, with one byte of text behind it.
    for (len, is_accepted) in [(1, true), (2, false), (3, false)] {
        let mut attributes = AttributeWriter::default();
        let aggregate = attributes
            .aggregate(1, 2, |writer, position| {
                Ok::<_, ()>(match position {
                    0 => (
                        AttributeType::Scalar(DType::String),
                        writer.array(1, len, b"s"),
                    ),
                    _ => (AttributeType::Scalar(DType::I8), writer.scalar(&[7])),
                })
            })
            .unwrap();
        let mut writer = BefWriter::new();
        writer.attributes = attributes;
        writer.attribute_types = vec![(aggregate, AttributeType::Aggregate)];
        let opened = BefFile::open(writer.finish());
        assert_eq!(opened.is_ok(), is_accepted, "{len}");
        if let Err(error) = opened {
            let message = error.to_string();
            assert!(message.contains("do not decode as"), "{message}");
        }
    }
}

#[test]
fn scalars_are_read_as_what_they_are() {
    let mut writer = AttributeWriter::default();
    let truth = writer.scalar(&[1]);
    let byte = writer.scalar(&[0xfe]);
    let half = writer.scalar(&0x3c00u16.to_le_bytes());
    let int = writer.scalar(&(-5i32).to_le_bytes());
    let long = writer.scalar(&u64::MAX.to_le_bytes());
    let kind = writer.dtype(DType::Complex64);
    let types = [
        (truth, AttributeType::Scalar(DType::I1)),
        (byte, AttributeType::Scalar(DType::I8)),
        (half, AttributeType::Scalar(DType::F16)),
        (int, AttributeType::Scalar(DType::I32)),
        (long, AttributeType::Scalar(DType::Ui64)),
        (kind, AttributeType::Type),
    ];
    with_and_without_types(&writer, &types, |file| {
        let at = |offset| file.attribute(AttributeOffset(offset));
        assert_eq!(at(truth).as_bool(), Some(true));
        assert_eq!(at(byte).as_bool(), None);
        assert_eq!(at(byte).as_i8(), Some(-2));
        assert_eq!(at(half).as_f16_bits(), Some(0x3c00));
        assert_eq!(at(int).as_i32(), Some(-5));
        assert_eq!(at(int + 1).as_i32(), None);
        assert_eq!(at(long).as_u64(), Some(u64::MAX));
        assert_eq!(at(kind).as_dtype(), Some(DType::Complex64));
    });
    let file = open(writer, &types, false);
    let at = |offset| file.attribute(AttributeOffset(offset));
    // Listed as something else.
    assert_eq!(at(half).as_bf16_bits(), None);
    assert_eq!(at(int).as_f32(), None);
    assert_eq!(at(long).as_f64(), None);
    assert_eq!(at(kind).as_u8(), None);
}

/// Returns the answers of all readers of numbers to an attribute, but for those that see nothing.
fn readers(view: AttributeView<'_>) -> Vec<(DType, i64)> {
    let all = [
        (DType::I1, view.as_bool().map(i64::from)),
        (DType::I8, view.as_i8().map(i64::from)),
        (DType::I16, view.as_i16().map(i64::from)),
        (DType::I32, view.as_i32().map(i64::from)),
        (DType::I64, view.as_i64()),
        (DType::Ui8, view.as_u8().map(i64::from)),
        (DType::Ui16, view.as_u16().map(i64::from)),
        (DType::Ui32, view.as_u32().map(i64::from)),
        (DType::Ui64, view.as_u64().map(|bits| bits as i64)),
        (DType::F16, view.as_f16_bits().map(i64::from)),
        (DType::Bf16, view.as_bf16_bits().map(i64::from)),
        (DType::F32, view.as_f32().map(|x| i64::from(x.to_bits()))),
        (DType::F64, view.as_f64().map(|x| x.to_bits() as i64)),
    ];
    let seen = all
        .into_iter()
        .filter_map(|(dtype, number)| Some((dtype, number?)));
    seen.collect()
}

#[test]
fn number_is_read_by_the_reader_of_its_type_and_none_of_another_width() {
    let dtypes = [
        DType::I1,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::Ui8,
        DType::Ui16,
        DType::Ui32,
        DType::Ui64,
        DType::F16,
        DType::Bf16,
        DType::F32,
        DType::F64,
    ];
    let mut writer = AttributeWriter::default();
    let written = dtypes.map(|dtype| {
        let mut bytes = vec![0; dtype.size_bytes().unwrap()];
        bytes[0] = 1;
        (writer.scalar(&bytes), AttributeType::Scalar(dtype))
    });
    let at = |file: &BefFile, offset| readers(file.attribute(AttributeOffset(offset)));
    let file = open(writer.clone(), &written, false);
    for ((offset, _), dtype) in written.into_iter().zip(dtypes) {
        let seen = at(&file, offset);
        assert!(seen.contains(&(dtype, 1)), "{dtype:?}");
        let is_as_wide = |other: DType| other.size_bytes() == dtype.size_bytes();
        assert!(
            seen.iter().all(|(other, _)| is_as_wide(*other)),
            "{dtype:?}: {seen:?}"
        );
    }
    // Where types are not listed, whoever reads has to know.
    let file = open(writer, &written, true);
    for ((offset, _), dtype) in written.into_iter().zip(dtypes) {
        assert!(at(&file, offset).contains(&(dtype, 1)), "{dtype:?}");
    }
}

#[test]
fn list_of_no_numbers_has_no_elements_to_align() {
    // Behind a byte, aligned for the count alone.
    for (n_before, alignment) in [(0, 4), (1, 4), (2, 4)] {
        let mut writer = AttributeWriter::default();
        let mut types: Vec<(u32, AttributeType)> = Vec::new();
        for _ in 0..n_before {
            types.push((writer.scalar(&[0; 4]), AttributeType::Scalar(DType::I32)));
        }
        let offset = writer.array(alignment, 0, &[]);
        types.push((offset, AttributeType::Array(DType::F64)));
        with_and_without_types(&writer, &types, |file| {
            let attribute = file.attribute(AttributeOffset(offset));
            assert_eq!(attribute.array::<f64>(), Some(&[][..]), "{n_before}");
        });
    }
}

#[test]
fn types_are_an_array_of_bytes_and_of_nothing_wider() {
    let mut writer = AttributeWriter::default();
    let types = [DType::I32.byte(), DType::F32.byte()];
    let offset = writer.array(4, 2, &types);
    let file = open(writer, &[(offset, AttributeType::TypeArray)], false);
    let attribute = file.attribute(AttributeOffset(offset));
    assert_eq!(attribute.dtypes(), Some(vec![DType::I32, DType::F32]));
    assert_eq!(attribute.array::<u8>(), Some(&types[..]));
    assert_eq!(attribute.array::<u16>(), None);
}

#[test]
fn symbols_carry_the_text_of_their_module() {
    let mut writer = AttributeWriter::default();
    let offset = writer.symbol(3, "kernels", &["gpu", "main"], "module {}");
    with_and_without_types(&writer, &[(offset, AttributeType::Symbol)], |file| {
        let expected = SymbolView {
            id: 3,
            root: "kernels",
            nested: vec!["gpu", "main"],
            module: "module {}",
        };
        assert_eq!(
            file.attribute(AttributeOffset(offset)).symbol(),
            Some(expected)
        );
    });
}

#[test]
fn empty_array_is_an_array_of_anything() {
    let mut writer = AttributeWriter::default();
    let offset = writer.empty_array();
    with_and_without_types(&writer, &[(offset, AttributeType::EMPTY_ARRAY)], |file| {
        let attribute = file.attribute(AttributeOffset(offset));
        assert_eq!(attribute.array::<f64>(), Some(&[][..]));
        assert_eq!(attribute.dtypes(), Some(vec![]));
        let aggregate = attribute.aggregate().unwrap();
        assert_eq!((aggregate.len(), aggregate.is_empty()), (0, true));
    });
}

#[test]
fn dense_elements_must_agree_with_their_shape() {
    let broken = |dimensions: &[i64], elements: &[u8]| {
        let mut writer = AttributeWriter::default();
        let offset = writer.dense(DType::I32, dimensions, elements);
        let file = open(writer, &[], true);
        assert_eq!(file.attribute(AttributeOffset(offset)).dense(), None);
    };
    broken(&[2], &[0; 4]);
    broken(&[-1], &[0; 4]);
    broken(&[1 << 62, 4, 1 << 62], &[0; 4]);
    broken(&[0, 3], &[0; 4]);
}
