//! What readers of attributes make of bytes that are nearly what they read.

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

/// The word that a shape, dense elements or an aggregate start with.
fn head(alignment: u32, dtype: u32, prefix_bytes: u32) -> u32 {
    alignment | dtype << 8 | prefix_bytes << 16
}

const FIRST: AttributeOffset = AttributeOffset(0);
/// What data that is aligned by 8 asks of the header in front of it.
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
fn elements_of_arrays_are_aligned() {
    let numbers = AttributeType::Array(DType::F64);
    assert!(open(&bytes_of(&[0, 1, 0, 0]), &[(4, numbers)]).is_ok());
    assert!(open(&bytes_of(&[1, 0, 0]), &[(0, numbers)]).is_err());
    // None of them is misplaced.
    assert!(open(&bytes_of(&[0, 0, 0]), &[(0, numbers)]).is_ok());
}

#[test]
fn what_has_no_content_ends_behind_its_word() {
    let byte = AttributeType::Scalar(DType::I8);
    let kinds = [
        AttributeType::Shape,
        AttributeType::Aggregate,
        AttributeType::TypeArray,
        AttributeType::EMPTY_ARRAY,
        AttributeType::Scalar(DType::String),
    ];
    for kind in kinds {
        for (next, is_accepted) in [(7, false), (8, true)] {
            let opened = open(&[0; 12], &[(4, kind), (next, byte)]);
            assert_eq!(opened.is_ok(), is_accepted, "{kind}, then at {next}");
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
