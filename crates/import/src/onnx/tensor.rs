//! Decodes tensors: elements in any of the encodings of files become bytes of one form.

use std::sync::Arc;

use prost::bytes::Bytes;

use super::{
    element::ElementType,
    external::{self, ExternalFiles, ExternalRef},
    problem::Problem,
    proto::{Graph, TensorProto},
};
use crate::codes;

/// A tensor in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The name; may be empty.
    pub name: String,
    /// The type of its elements.
    pub element: ElementType,
    /// The extents, the slowest first; none if it is a scalar.
    pub dims: Vec<usize>,
    /// The elements in row-major order.
    ///
    /// Invariant: as many as the extents say, strings if the type says so.
    pub data: TensorData,
}

/// The elements of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorData {
    /// Little-endian, back to back, each of [`ElementType::size_bytes`]: a `bool` is 0 or 1, the
    /// sign of an `int4` fills its byte, a complex number is its real, then its imaginary part.
    Bytes(Bytes),
    /// Strings, usually UTF-8.
    Strings(Vec<Arc<[u8]>>),
}

impl Tensor {
    /// Returns the number of elements.
    pub fn n_elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns the elements' bytes; empty for strings.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            TensorData::Bytes(bytes) => bytes,
            TensorData::Strings(_) => &[],
        }
    }
}

/// Reads a tensor.
pub(super) fn decode(proto: &TensorProto, files: &mut ExternalFiles) -> Result<Tensor, Problem> {
    let element = element_type(proto.data_type)?;
    let (dims, count) = extents(&proto.dims, element)?;
    if proto.segment.is_some() {
        let message = "is stored in segments, expected it in one piece";
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    let held = held(proto);
    if held.len() > 1 {
        let message = format!("has elements in {}, expected one place", held.join(" and "));
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    let data = match held.first() {
        _ if element == ElementType::String => strings(proto, count)?,
        Some(&"another file") => {
            let packed = files.read(proto, file_len(element, count))?;
            TensorData::Bytes(unpack(packed, element, count)?)
        }
        Some(&"raw_data") => {
            let raw = proto.raw_data.clone().unwrap_or_default();
            TensorData::Bytes(unpack(raw, element, count)?)
        }
        _ => TensorData::Bytes(typed(proto, element, count)?),
    };
    Ok(Tensor {
        name: proto.name.clone().unwrap_or_default(),
        element,
        dims,
        data,
    })
}

/// A tensor whose elements stay in their file.
pub(super) struct ExternalTensor<'p> {
    pub(super) element: ElementType,
    pub(super) dims: Vec<usize>,
    pub(super) left: ExternalRef<'p>,
}

/// Decodes a tensor without its elements, if they are to stay in their file.
pub(super) fn external<'p>(
    proto: &'p TensorProto,
    files: &mut ExternalFiles,
) -> Result<Option<ExternalTensor<'p>>, Problem> {
    let is_plain = proto.segment.is_none() && held(proto) == ["another file"];
    if !is_plain {
        return Ok(None);
    }
    let element = element_type(proto.data_type)?;
    let (dims, count) = extents(&proto.dims, element)?;
    // Others are not laid out in files as they are in memory.
    if element.per_byte() != 1 || matches!(element, ElementType::Bool | ElementType::String) {
        return Ok(None);
    }
    let left = files.keep_external(proto, file_len(element, count))?;
    Ok(left.map(|left| ExternalTensor {
        element,
        dims,
        left,
    }))
}

/// Returns the bytes of external data that the initializers of a graph take.
pub(super) fn external_bytes(graph: &Graph) -> u64 {
    let all = graph.initializer.iter();
    let all = all.filter(|tensor| external::is_external(tensor));
    let len_bytes = |tensor: &TensorProto| {
        let element = element_type(tensor.data_type).ok()?;
        let (_, count) = extents(&tensor.dims, element).ok()?;
        Some(file_len(element, count) as u64)
    };
    all.filter_map(len_bytes).fold(0, u64::saturating_add)
}

/// Encodes a tensor, with its elements as raw bytes.
pub(super) fn encode(tensor: &Tensor) -> TensorProto {
    let dims = tensor.dims.iter();
    let dims = dims.map(|&size| i64::try_from(size).unwrap_or(i64::MAX));
    let mut proto = TensorProto {
        dims: dims.collect(),
        data_type: Some(tensor.element.number()),
        name: (!tensor.name.is_empty()).then(|| tensor.name.clone()),
        ..TensorProto::default()
    };
    match &tensor.data {
        TensorData::Strings(strings) => {
            let copy = |text: &Arc<[u8]>| Bytes::copy_from_slice(text);
            proto.string_data = strings.iter().map(copy).collect();
        }
        TensorData::Bytes(bytes) => proto.raw_data = Some(pack(bytes, tensor.element)),
    }
    proto
}

/// Returns the element type of a number.
pub(super) fn element_type(number: Option<i32>) -> Result<ElementType, Problem> {
    let number = number.unwrap_or(0);
    ElementType::from_number(number).ok_or_else(|| {
        let most = ElementType::ALL.len();
        let message = match number {
            0 => "has no element type".to_owned(),
            _ => format!("has the element type {number}, expected 1 to {most}"),
        };
        Problem::new(codes::MODEL_ELEMENT_TYPE, message)
    })
}

/// Checks extents, and returns them with the number of elements, whose bytes do not overflow.
pub(crate) fn extents(dims: &[i64], element: ElementType) -> Result<(Vec<usize>, usize), Problem> {
    let mut extents = Vec::with_capacity(dims.len());
    for (index, &size) in dims.iter().enumerate() {
        let Ok(size) = usize::try_from(size) else {
            let message = format!("has {size} elements in dimension {index}");
            return Err(Problem::new(codes::MODEL_DIMENSION, message));
        };
        extents.push(size);
    }
    let count = match extents.contains(&0) {
        true => Some(0),
        false => extents
            .iter()
            .try_fold(1_usize, |n, &size| n.checked_mul(size)),
    };
    let size = element.size_bytes().max(1);
    let fits = |&count: &usize| {
        let bytes = count.checked_mul(size);
        bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok())
    };
    match count.filter(fits) {
        Some(count) => Ok((extents, count)),
        None => {
            let message = format!("has more elements than can be counted: {}", list(dims));
            Err(Problem::new(codes::MODEL_DIMENSION, message))
        }
    }
}

/// Writes extents as `2x3`; of many dimensions only the first.
pub(super) fn list(dims: &[i64]) -> String {
    const MAX_SHOWN: usize = 12;
    let shown = dims.iter().take(MAX_SHOWN);
    let mut parts: Vec<String> = shown.map(i64::to_string).collect();
    if dims.len() > MAX_SHOWN {
        parts.push("..".to_owned());
    }
    parts.join("x")
}

/// Returns the names of the fields that hold elements.
fn held(proto: &TensorProto) -> Vec<&'static str> {
    let fields = [
        ("another file", external::is_external(proto)),
        ("raw_data", proto.raw_data.is_some()),
        ("float_data", !proto.float_data.is_empty()),
        ("int32_data", !proto.int32_data.is_empty()),
        ("int64_data", !proto.int64_data.is_empty()),
        ("double_data", !proto.double_data.is_empty()),
        ("uint64_data", !proto.uint64_data.is_empty()),
        ("string_data", !proto.string_data.is_empty()),
    ];
    let mut held: Vec<&str> = fields
        .iter()
        .filter(|field| field.1)
        .map(|field| field.0)
        .collect();
    // Some writers leave an empty field beside the one that is used.
    if held.len() > 1 && proto.raw_data.as_ref().is_some_and(Bytes::is_empty) {
        held.retain(|&field| field != "raw_data");
    }
    held
}

/// Returns the bytes that elements take in a file.
fn file_len(element: ElementType, count: usize) -> usize {
    match element.per_byte() {
        1 => count * element.size_bytes(),
        n => count.div_ceil(n),
    }
}

fn strings(proto: &TensorProto, count: usize) -> Result<TensorData, Problem> {
    if let Some(&other) = held(proto).iter().find(|&&field| field != "string_data") {
        let message = format!("has strings in {other}, expected them in string_data");
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    let found = proto.string_data.len();
    if found != count {
        return Err(wrong_count(found, count, &proto.dims));
    }
    let strings = proto.string_data.iter().map(|text| Arc::from(&**text));
    Ok(TensorData::Strings(strings.collect()))
}

fn wrong_count(found: usize, count: usize, dims: &[i64]) -> Problem {
    let message = format!(
        "has {found} elements, expected {count} for its shape [{}]",
        list(dims)
    );
    Problem::new(codes::MODEL_TENSOR, message)
}

/// Decodes elements from the form that files have. Where that is the form of [`TensorData::Bytes`], the bytes are shared.
fn unpack(raw: Bytes, element: ElementType, count: usize) -> Result<Bytes, Problem> {
    let expected = file_len(element, count);
    if raw.len() != expected {
        let message = format!(
            "has {} bytes of elements, expected {expected} for {count} of type {}",
            raw.len(),
            element.name()
        );
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    Ok(match element.per_byte() {
        1 if element == ElementType::Bool => raw.iter().map(|&byte| u8::from(byte != 0)).collect(),
        1 => raw,
        _ => spread(&raw, element, count),
    })
}

/// Unpacks elements of less than a byte into a byte each; the first are in the low bits.
fn spread(raw: &[u8], element: ElementType, count: usize) -> Bytes {
    let (bits, per_byte) = (element.bits(), element.per_byte());
    let unused = 8 - bits;
    let one = |index: usize| {
        let above = raw[index / per_byte] >> (index % per_byte * bits) << unused;
        match element.is_small_signed() {
            true => (above.cast_signed() >> unused).cast_unsigned(),
            false => above >> unused,
        }
    };
    (0..count).map(one).collect()
}

/// Encodes elements in the form that files have.
fn pack(bytes: &Bytes, element: ElementType) -> Bytes {
    let per_byte = element.per_byte();
    if per_byte == 1 {
        return bytes.clone();
    }
    let bits = element.bits();
    let mask = u8::MAX >> (8 - bits);
    let together = |chunk: &[u8]| {
        let parts = chunk.iter().enumerate();
        parts.fold(0, |byte, (index, &part)| {
            byte | (part & mask) << (index * bits)
        })
    };
    bytes
        .chunks(per_byte)
        .map(together)
        .collect::<Vec<u8>>()
        .into()
}

/// Decodes elements from the field of their type.
fn typed(proto: &TensorProto, element: ElementType, count: usize) -> Result<Bytes, Problem> {
    use ElementType as E;
    let field = match element {
        E::F32 | E::C64 => "float_data",
        E::F64 | E::C128 => "double_data",
        E::I64 => "int64_data",
        E::U32 | E::U64 => "uint64_data",
        _ => "int32_data",
    };
    if let Some(&other) = held(proto).iter().find(|&&other| other != field) {
        let name = element.name();
        let message = format!("has elements of type {name} in {other}, expected {field}");
        return Err(Problem::new(codes::MODEL_TENSOR, message));
    }
    // Numbers that an element is made of.
    let parts = if matches!(element, E::C64 | E::C128) {
        2
    } else {
        1
    };
    let (found, expected) = match field {
        "float_data" => (proto.float_data.len(), count * parts),
        "double_data" => (proto.double_data.len(), count * parts),
        "int64_data" => (proto.int64_data.len(), count),
        "uint64_data" => (proto.uint64_data.len(), count),
        _ => (proto.int32_data.len(), count.div_ceil(element.per_byte())),
    };
    if found != expected {
        return Err(wrong_count(
            found / parts * element.per_byte(),
            count,
            &proto.dims,
        ));
    }
    let bytes: Vec<u8> = match field {
        "float_data" => proto
            .float_data
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect(),
        "double_data" => proto
            .double_data
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect(),
        "int64_data" => proto
            .int64_data
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect(),
        "uint64_data" => narrow(&proto.uint64_data, element, 0..=unsigned_most(element))?,
        _ => narrow(&proto.int32_data, element, int32_range(element))?,
    };
    match element.per_byte() {
        1 => Ok(bytes.into()),
        _ => unpack(bytes.into(), element, count),
    }
}

fn unsigned_most(element: ElementType) -> i128 {
    match element {
        ElementType::U32 => u32::MAX.into(),
        _ => u64::MAX.into(),
    }
}

/// Returns the numbers that are valid for a small type in the field `int32_data`.
fn int32_range(element: ElementType) -> std::ops::RangeInclusive<i128> {
    match element {
        ElementType::I32 => i32::MIN.into()..=i32::MAX.into(),
        ElementType::I16 => i16::MIN.into()..=i16::MAX.into(),
        ElementType::I8 => i8::MIN.into()..=i8::MAX.into(),
        // Any number but 0 is true.
        ElementType::Bool => i32::MIN.into()..=i32::MAX.into(),
        _ if element.size_bytes() == 2 => 0..=u16::MAX.into(),
        // Codes of a byte, and bytes that several elements share.
        _ => 0..=u8::MAX.into(),
    }
}

/// Narrows numbers to the size of an element.
fn narrow<N: Copy + Into<i128>>(
    numbers: &[N],
    element: ElementType,
    range: std::ops::RangeInclusive<i128>,
) -> Result<Vec<u8>, Problem> {
    let size = element.size_bytes();
    let mut bytes = Vec::with_capacity(numbers.len() * size);
    for (index, &number) in numbers.iter().enumerate() {
        let number: i128 = number.into();
        if !range.contains(&number) {
            let message = format!(
                "has the number {number} for element {index}, expected {} to {} for type {}",
                range.start(),
                range.end(),
                element.name()
            );
            return Err(Problem::new(codes::MODEL_TENSOR, message));
        }
        let number = match element {
            ElementType::Bool => (number != 0).into(),
            _ => number,
        };
        bytes.extend_from_slice(&number.to_le_bytes()[..size]);
    }
    Ok(bytes)
}
