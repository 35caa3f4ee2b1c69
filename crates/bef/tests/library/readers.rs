//! Tests of readers of attributes on bytes that are nearly what they read.

use tfrt_bef::{
    AttributeOffset, AttributeType, BefBuffer, BefError, BefFile, BefWriter, DType, DenseView,
    Payload, SectionId, ShapeView, assemble,
};

/// Opens a file whose Attributes section, aligned by 8, has these bytes.
fn open(bytes: &[u8], types: &[(u32, AttributeType)]) -> Result<BefFile, BefError> {
    let mut writer = BefWriter::new();
    writer.attribute_types = types.to_vec();
    let mut sections = writer.sections();
    sections[SectionId::Attributes as usize].1 = Payload::from_bytes(bytes.to_vec(), 8);
    BefFile::open(BefBuffer::from_vec(assemble(&sections)))
}

/// Opens a file of these words, whose types are not listed.
fn unlisted(words: &[u32]) -> BefFile {
    open(&bytes_of(words), &[]).unwrap()
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the word that a shape, dense elements or an aggregate start with.
fn head(alignment: u32, dtype: u32, prefix_bytes: u32) -> u32 {
    alignment | dtype << 8 | prefix_bytes << 16
}

const FIRST: AttributeOffset = AttributeOffset(0);
/// The alignment word of data that is aligned by 8.
const SECOND: AttributeOffset = AttributeOffset(4);

#[test]
fn view_knows_where_it_is() {
    let file = unlisted(&[7, 8]);
    assert_eq!(file.attribute(FIRST).offset(), 0);
    assert_eq!(file.attribute(SECOND).offset(), 4);
}

#[test]
fn truth_has_two_values() {
    let file = open(&[0, 1, 2], &[]).unwrap();
    let read = |offset| file.attribute(AttributeOffset(offset)).as_bool();
    assert_eq!(
        [0, 1, 2, 3].map(read),
        [Some(false), Some(true), None, None]
    );

    let bits = AttributeType::Array(DType::I1);
    assert!(open(&[2, 0, 0, 0, 0, 1], &[(0, bits)]).is_ok());
    assert!(open(&[2, 0, 0, 0, 0, 2], &[(0, bits)]).is_err());
    let numbers = AttributeType::Array(DType::Ui8);
    assert!(open(&[2, 0, 0, 0, 0, 2], &[(0, numbers)]).is_ok());

    let dense = |bit| bytes_of(&[0, head(8, DType::I1 as u32, 28), 29, 28, 1, 1, 1, 0, bit]);
    assert!(open(&dense(1), &[(4, AttributeType::Dense)]).is_ok());
    assert!(open(&dense(2), &[(4, AttributeType::Dense)]).is_err());
}

#[test]
fn scalar_is_read_wherever_it_fits() {
    let file = unlisted(&[7, 8]);
    let section = file.attribute_section();
    let read = |offset| file.scalar::<u32>(&section, AttributeOffset(offset));
    assert_eq!(
        [0, 1, 4, 5, 8, u32::MAX].map(read),
        [Some(7), Some(8 << 24), Some(8), None, None, None]
    );
}

#[test]
fn shape_agrees_with_its_header() {
    let read = |change: &dyn Fn(&mut [u32])| {
        let mut words = [0, head(8, 0, 12), 28, 2, 5, 0, u32::MAX, u32::MAX];
        change(&mut words);
        let file = unlisted(&words);
        let shape = file.attribute(SECOND).shape();
        shape.map(|shape| match shape {
            ShapeView::Ranked(extents) => extents.to_vec(),
            ShapeView::Unranked => panic!("it has a rank"),
        })
    };
    assert_eq!(read(&|_| ()), Some(vec![5, -1]));
    // One dimension less, with the length of it and without.
    assert_eq!(
        read(&|words| words[2..4].copy_from_slice(&[20, 1])),
        Some(vec![5])
    );
    let wrong: [(usize, u32); 8] = [
        (1, head(3, 0, 12)),
        (1, head(8, 0, 20)),
        (2, 27),
        (2, 29),
        (3, 1),
        (3, 3),
        // An extent of -2.
        (6, u32::MAX - 1),
        (7, 1 << 31),
    ];
    for (at, word) in wrong {
        assert_eq!(read(&|words| words[at] = word), None, "{at}: {word:#x}");
    }
}

#[test]
fn dense_elements_agree_with_their_header() {
    const I32: u32 = DType::I32 as u32;
    let words = [0, head(8, I32, 28), 32, 28, 1, 1, 1, 0, 9];
    let file = unlisted(&words);
    let expected = DenseView {
        dtype: DType::I32,
        shape: &[1],
        bytes: &[9, 0, 0, 0],
    };
    assert_eq!(file.attribute(SECOND).dense(), Some(expected));
    let wrong: [(usize, u32); 11] = [
        (1, head(3, I32, 28)),
        (1, head(8, DType::String as u32, 28)),
        (1, head(8, I32, 20)),
        (1, head(8, I32, 32)),
        (2, 31),
        (2, 33),
        (3, 20),
        (3, 32),
        (4, 0),
        (4, 2),
        (6, 0),
    ];
    for (at, word) in wrong {
        let mut words = words;
        words[at] = word;
        let file = unlisted(&words);
        assert_eq!(file.attribute(SECOND).dense(), None, "{at}: {word:#x}");
    }
}

#[test]
fn aggregate_agrees_with_its_header() {
    const I8: u8 = DType::I8 as u8;
    let elements = u32::from_le_bytes([I8, 11, I8, 12]);
    let words = [head(4, 0, 20), 24, 2, 21, 23, elements];
    let read = |words: &[u32]| {
        let file = unlisted(words);
        let aggregate = file.attribute(FIRST).aggregate()?;
        let numbers = aggregate.iter().map(|(_, element)| element.as_i8());
        Some(numbers.collect::<Vec<_>>())
    };
    assert_eq!(read(&words), Some(vec![Some(11), Some(12)]));
    let wrong: [(usize, u32); 11] = [
        (0, head(3, 0, 20)),
        (0, head(4, 0, 16)),
        (0, head(4, 0, 24)),
        // The last element would lie behind the end, or the end behind the section.
        (1, 22),
        (1, 25),
        (1, u32::MAX),
        (2, 1),
        (2, 3),
        // There is no byte for a type.
        (3, 20),
        (4, 21),
        (4, 25),
    ];
    for (at, word) in wrong {
        let mut words = words;
        words[at] = word;
        assert_eq!(read(&words), None, "{at}: {word:#x}");
    }
}

#[test]
fn elements_of_arrays_are_aligned() {
    let numbers = AttributeType::Array(DType::F64);
    assert!(open(&bytes_of(&[0, 1, 0, 0]), &[(4, numbers)]).is_ok());
    assert!(open(&bytes_of(&[1, 0, 0]), &[(0, numbers)]).is_err());
    // None of them is misplaced.
    assert!(open(&bytes_of(&[0, 0, 0]), &[(0, numbers)]).is_ok());
}

#[test]
fn next_attribute_may_begin_where_one_ends() {
    const I8: AttributeType = AttributeType::Scalar(DType::I8);
    let elements = u32::from_le_bytes([I8.byte(), 11, I8.byte(), 12]);
    let text = [3, 0, 0, 0, b'a', b'b', b'c'].to_vec();
    let kinds = [
        (AttributeType::Scalar(DType::I1), vec![1]),
        (AttributeType::Scalar(DType::I16), vec![1, 0]),
        (AttributeType::Scalar(DType::String), vec![0; 4]),
        (AttributeType::Scalar(DType::String), text.clone()),
        (AttributeType::FunctionName, text),
        (AttributeType::Type, vec![DType::I32.byte()]),
        (AttributeType::TypeArray, vec![0; 4]),
        (
            AttributeType::TypeArray,
            vec![1, 0, 0, 0, DType::I32.byte()],
        ),
        (AttributeType::EMPTY_ARRAY, vec![0; 4]),
        (AttributeType::Array(DType::I16), vec![1, 0, 0, 0, 7, 0]),
        (AttributeType::Shape, vec![0; 4]),
        (
            AttributeType::Shape,
            bytes_of(&[head(8, 0, 12), 20, 1, 5, 0]),
        ),
        (
            AttributeType::Dense,
            bytes_of(&[head(8, DType::I32 as u32, 28), 32, 28, 1, 1, 1, 0, 9]),
        ),
        (AttributeType::Aggregate, vec![0; 4]),
        (
            AttributeType::Aggregate,
            bytes_of(&[head(4, 0, 20), 24, 2, 21, 23, elements]),
        ),
        (
            AttributeType::Symbol,
            [5, 1, 1, 1, 1, b'r', b'n', b'm', 0].to_vec(),
        ),
    ];
    for (kind, bytes) in kinds {
        let end = 4 + bytes.len() as u32;
        let bytes = [&[0; 4][..], &bytes, &[0; 4]].concat();
        for (next, is_accepted) in [(end - 1, false), (end, true)] {
            let opened = open(&bytes, &[(4, kind), (next, I8)]);
            assert_eq!(opened.is_ok(), is_accepted, "{kind} to {end}, then {next}");
        }
    }
}

#[test]
fn numbers_are_not_types() {
    let listed = (0, AttributeType::EMPTY_ARRAY);
    let bytes = [bytes_of(&[1]), vec![DType::I32.byte(), 0, 0, 0]].concat();
    let file = open(&bytes, &[]).unwrap();
    assert_eq!(file.attribute(FIRST).dtypes(), Some(vec![DType::I32]));
    let file = open(&bytes, &[listed]).unwrap();
    assert_eq!(file.attribute(FIRST).dtypes(), None);
}

#[test]
fn numbers_are_not_attributes() {
    // Behind so many offsets 2^16 bytes have passed, of which the field of 16 bits says 0.
    const N_ELEMENTS: u32 = (1 << 14) - 3;
    const LEN_BYTES: u32 = 2 << 16;
    // One number, the length; then the offsets, each of what has a byte, and its type in front.
    let first = 1 << 16;
    let offsets = (1..=N_ELEMENTS).map(|index| first + 2 * index);
    let words: Vec<u32> = [1, LEN_BYTES, N_ELEMENTS]
        .into_iter()
        .chain(offsets)
        .collect();
    let mut bytes = bytes_of(&words);
    bytes.resize(LEN_BYTES as usize, 1);
    let n_elements = |file: BefFile| Some(file.attribute(FIRST).aggregate()?.len());
    let is_read = n_elements(open(&bytes, &[]).unwrap());
    assert_eq!(is_read, Some(N_ELEMENTS as usize));
    let listed = (0, AttributeType::EMPTY_ARRAY);
    assert_eq!(n_elements(open(&bytes, &[listed]).unwrap()), None);
}
