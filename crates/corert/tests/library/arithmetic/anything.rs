//! Anything may be given to any operation: it gives results, or says what is wrong.

use std::sync::Arc;

use tfrt_corert::{
    AttrKind, IntoAttr, OpAttrs, OpDefinition, ResultCount, RowOpHandler, TensorHandle,
};
use tfrt_host::{DType, DeviceId, ErrorCode};
use tfrt_ops::Types;
use tfrt_tensor::resource::array::ArrayOptions;
use tfrt_tensor::resource::queue::QueueKind;
use tfrt_tensor::resource::table::TableKind;
use tfrt_tensor::resource::{FifoQueue, HashTable, Slot, TensorArray, TensorList, Variable};
use tfrt_tensor::{
    CooHostTensor, DenseHostTensor, Element, PartialTensorShape, ScalarHostTensor,
    StringHostTensor, TensorMetadata, TensorShape, with_element,
};

use super::{Drawn, TestBed};
use crate::calls::gate;

const TYPES: [DType; 18] = [
    DType::F32,
    DType::F32,
    DType::F32,
    DType::I32,
    DType::I32,
    DType::I64,
    DType::F64,
    DType::F16,
    DType::Bf16,
    DType::Ui8,
    DType::I8,
    DType::Ui16,
    DType::Ui64,
    DType::I1,
    DType::Complex64,
    DType::Complex128,
    DType::Qint8,
    DType::F8E5M2,
];

/// Returns extents that are likely to fit others, or not.
fn extents(drawn: &mut Drawn, usual: &[usize]) -> Vec<usize> {
    match drawn.below(8) {
        0..4 => usual.to_vec(),
        4 => usual[usual.len().min(1)..].to_vec(),
        5 => usual.iter().map(|extent| extent.min(&1)).copied().collect(),
        _ => (0..drawn.below(6)).map(|_| drawn.below(4)).collect(),
    }
}

fn tensor(bed: &TestBed, drawn: &mut Drawn, usual: (DType, &[usize])) -> TensorHandle {
    let dtype = match drawn.below(6) {
        0 => TYPES[drawn.below(TYPES.len())],
        _ => usual.0,
    };
    let shape = TensorShape::new(&extents(drawn, usual.1)).unwrap();
    let n = shape.n_elements().unwrap();
    let allocator = bed.runtime.host().allocator();
    match drawn.below(12) {
        form if form == 0 || dtype == DType::String => {
            let strings = vec![b"text".to_vec(); n];
            return bed
                .runtime
                .handle(StringHostTensor::new(shape, strings).unwrap());
        }
        1 => {
            return with_element!(dtype, T => {
                bed.runtime.handle(ScalarHostTensor::new(shape, <T as Element>::ZERO))
            }, else unreachable!("it has elements"));
        }
        2 => {
            let indices = bed.dense::<i64>(&[0, shape.rank()], &[]);
            let indices = indices
                .tensor()
                .unwrap()
                .unwrap()
                .as_dense()
                .unwrap()
                .clone();
            let metadata = TensorMetadata::new(dtype, TensorShape::new(&[0]).unwrap());
            let values = DenseHostTensor::zeroed(allocator, metadata).unwrap();
            return bed
                .runtime
                .handle(CooHostTensor::new(shape, indices, values).unwrap());
        }
        _ => (),
    }
    let metadata = TensorMetadata::new(dtype, shape);
    let dense = DenseHostTensor::zeroed(allocator, metadata).unwrap();
    // Small numbers: classes, indices, extents, and what is none.
    for byte in dense.write().unwrap().bytes_mut() {
        *byte = match drawn.below(16) {
            0 => 255,
            1..5 => u8::try_from(drawn.below(4)).unwrap(),
            _ => 0,
        };
    }
    bed.runtime.handle(dense)
}

fn attribute(bed: &TestBed, drawn: &mut Drawn, kind: AttrKind) -> tfrt_corert::AttrValue {
    let kinds = [
        AttrKind::Bool,
        AttrKind::Integer,
        AttrKind::Float,
        AttrKind::Integers,
        AttrKind::Text,
        AttrKind::Texts,
        AttrKind::Type,
        AttrKind::Types,
        AttrKind::Shapes,
        AttrKind::Shape,
        AttrKind::Dense,
    ];
    let kind = if drawn.below(10) == 0 {
        kinds[drawn.below(kinds.len())]
    } else {
        kind
    };
    let integer = |drawn: &mut Drawn| match drawn.below(12) {
        0 => i64::MAX,
        1 => i64::MIN,
        2 => 1 << 40,
        n => i64::try_from(n).unwrap() - 5,
    };
    let text = |drawn: &mut Drawn| {
        [
            "NHWC", "NCHW", "SAME", "VALID", "EXPLICIT", "f32", "BiasAdd", "Relu", "",
        ][drawn.below(9)]
    };
    match kind {
        AttrKind::Bool => (drawn.below(2) == 1).into_attr(),
        AttrKind::Integer | AttrKind::Number => integer(drawn).into_attr(),
        AttrKind::Float => [0.5_f32, f32::NAN, -1.0][drawn.below(3)].into_attr(),
        AttrKind::Integers | AttrKind::Numbers | AttrKind::Shape => {
            let list: Vec<i64> = (0..drawn.below(5)).map(|_| integer(drawn)).collect();
            let small: Vec<i64> = list.iter().map(|extent| extent.rem_euclid(4)).collect();
            if drawn.below(3) == 0 {
                &list[..]
            } else {
                &small[..]
            }
            .into_attr()
        }
        AttrKind::Text => text(drawn).into_attr(),
        AttrKind::Texts => [text(drawn), text(drawn)].into_attr(),
        AttrKind::Type => TYPES[drawn.below(TYPES.len())].into_attr(),
        AttrKind::Types => [TYPES[drawn.below(TYPES.len())], DType::F32].into_attr(),
        AttrKind::Shapes => {
            let shape = TensorShape::new(&[drawn.below(3)]).unwrap();
            [&shape, &TensorShape::SCALAR].into_attr()
        }
        AttrKind::Dense => {
            let handle = bed.dense(&[2], &[1_i32, 2]);
            let dense = handle
                .tensor()
                .unwrap()
                .unwrap()
                .as_dense()
                .unwrap()
                .clone();
            dense.into_attr()
        }
    }
}

fn attributes(bed: &TestBed, drawn: &mut Drawn, definition: &OpDefinition) -> OpAttrs {
    let mut set = OpAttrs::new();
    for attribute_of in definition.attributes().unwrap_or_default() {
        if drawn.below(5) > 0 {
            let value = attribute(bed, drawn, attribute_of.kind);
            set.set(attribute_of.name, value).unwrap();
        }
    }
    set
}

/// Returns the seed of what is drawn, and how many times as many calls are tried: `TFRT_RANDOM=SEED` or `SEED:TIMES`.
fn random() -> (u64, usize) {
    let text = std::env::var("TFRT_RANDOM").unwrap_or_default();
    let (seed, times) = text.split_once(':').unwrap_or((&text, ""));
    (seed.parse().unwrap_or(0), times.parse().unwrap_or(1))
}

#[test]
fn operations_take_anything_without_a_panic() {
    let (seed, times) = random();
    // Shown if the test fails.
    println!("TFRT_RANDOM={seed}:{times}");
    // Extents that are drawn may be large.
    let (bed, mut drawn) = (TestBed::within(1 << 28), Drawn(seed.wrapping_add(9)));
    let rows = RowOpHandler::new(tfrt_kernels::rows::find, DeviceId::HOST, None);
    let all = tfrt_corert::names().filter_map(|name| rows.definition(&name));
    let all: Vec<Arc<OpDefinition>> = all.collect();
    let mut n_made = 0;
    let mut never: Vec<&str> = Vec::new();
    for definition in &all {
        let mut was_made = false;
        // Of ONNX's rows little that is drawn fits, and the kernels have tests of their own.
        let is_own = definition.name().starts_with("tf");
        for _ in 0..times * if is_own { 400 } else { 40 } {
            was_made |= try_once(&bed, &mut drawn, definition);
        }
        n_made += usize::from(was_made && is_own);
        if !was_made && is_own {
            never.push(definition.name());
        }
    }
    // Most of what is drawn fits some time.
    let n_own = all
        .iter()
        .filter(|definition| definition.name().starts_with("tf"))
        .count();
    println!("{n_made} of {n_own}");
    assert!(n_made * 4 > n_own * 3, "{never:?}");
}

/// Returns a pending copy of a tensor: its type and shape are known later than those of a finished one.
fn to_come(bed: &TestBed, handle: &TensorHandle) -> TensorHandle {
    let noop = bed.runtime.op("tfrt_test.async.noop", &bed.runtime.cpu());
    let later = noop
        .unwrap()
        .call_one(&bed.context, [handle], &OpAttrs::new());
    later.unwrap_or_else(|_| handle.clone())
}

/// Returns whether a row is one of resources or lists.
fn is_of_objects(row: Option<&'static tfrt_ops::OpDef>) -> bool {
    let is_object =
        |types| types == Types::Set(&[DType::Resource]) || types == Types::Set(&[DType::Variant]);
    row.is_some_and(|row| row.inputs.iter().any(|input| is_object(input.types)))
}

/// Returns a handle of a resource, or a list: with what was drawn in it, or nothing.
fn object(
    bed: &TestBed,
    drawn: &mut Drawn,
    (of, op): (DType, &str),
    usual: (DType, &[usize]),
) -> TensorHandle {
    let allocator = bed.runtime.host().allocator();
    let drawn_tensor = |drawn: &mut Drawn| {
        let found = tensor(bed, drawn, usual);
        found.tensor().unwrap().unwrap().clone()
    };
    if of == DType::Variant {
        let mut list = TensorList::new(usual.0, PartialTensorShape::UNRANKED);
        for _ in 0..drawn.below(4) {
            let item = drawn_tensor(drawn);
            let fits = item.metadata().dtype == usual.0;
            list.elements.push(Some(item).filter(|_| fits));
        }
        return bed.runtime.handle(list.into_tensor());
    }
    if op.starts_with("tf.TensorArray") == (drawn.below(10) > 0) {
        let options = ArrayOptions {
            dtype: usual.0,
            shape: PartialTensorShape::UNRANKED,
            is_dynamic: drawn.below(2) == 0,
            clears_after_read: drawn.below(2) == 0,
            has_identical_shapes: drawn.below(2) == 0,
        };
        let array = TensorArray::new("a", 3, options);
        for index in 0..3 {
            let item = drawn_tensor(drawn);
            let _refused = array.write(index, item, |_, new| Ok(new.clone()));
        }
        return bed.runtime.handle(Slot::anonymous(array).handle());
    }
    if op.contains("Table") {
        let kind = TableKind {
            keys: [DType::I32, DType::I64, DType::String][drawn.below(3)],
            values: usual.0,
            shape: TensorShape::SCALAR,
            is_mutable: drawn.below(4) > 0,
        };
        if let Ok(table) = HashTable::new(kind) {
            let (keys, values) = (drawn_tensor(drawn), drawn_tensor(drawn));
            let _refused = table.insert(&keys, &values);
            return bed.runtime.handle(Slot::anonymous(table).handle());
        }
    }
    if op.starts_with("tf.Queue") == (drawn.below(10) > 0) {
        let kind = QueueKind {
            types: vec![usual.0],
            shapes: Vec::new(),
            capacity: Some(drawn.below(4)),
        };
        let queue = Slot::anonymous(FifoQueue::new("q", kind).unwrap());
        return bed.runtime.handle(queue.handle());
    }
    let variable = Variable::new();
    if drawn.below(10) > 0 {
        variable.assign(drawn_tensor(drawn), allocator).unwrap();
    }
    bed.runtime.handle(Slot::anonymous(variable).handle())
}

fn try_once(bed: &TestBed, drawn: &mut Drawn, definition: &Arc<OpDefinition>) -> bool {
    let range = definition.input_range();
    let most = (*range.end()).min(*range.start() + 3);
    let n_inputs = range.start() + drawn.below(most - range.start() + 1);
    let dtype = TYPES[drawn.below(TYPES.len())];
    let usual: Vec<usize> = match drawn.below(3) {
        0 => vec![2, 2],
        _ => (0..drawn.below(5)).map(|_| drawn.below(4)).collect(),
    };
    let row = tfrt_ops::find(definition.name());
    let inputs: Vec<TensorHandle> = (0..n_inputs)
        .map(|index| {
            let types = row.and_then(|row| Some(row.inputs.get(index)?.types));
            match types {
                Some(Types::Set(&[of @ (DType::Resource | DType::Variant)]))
                    if drawn.below(20) > 0 =>
                {
                    object(bed, drawn, (of, definition.name()), (dtype, &usual))
                }
                // Of a type that the operation takes, mostly; with resources scalars: rates, positions.
                Some(Types::Set(types)) if drawn.below(4) > 0 => {
                    let dtype = match types[drawn.below(types.len())] {
                        DType::Resource | DType::Variant => dtype,
                        dtype => dtype,
                    };
                    let extents = if is_of_objects(row) { &[][..] } else { &usual };
                    tensor(bed, drawn, (dtype, extents))
                }
                _ => tensor(bed, drawn, (dtype, &usual)),
            }
        })
        .collect();
    let described: Vec<String> = inputs
        .iter()
        .map(|input| format!("{:?}", input.metadata()))
        .collect();
    let attrs = attributes(bed, drawn, definition);
    let inputs: Vec<TensorHandle> = match drawn.below(3) {
        0 => inputs.iter().map(|input| to_come(bed, input)).collect(),
        _ => inputs,
    };
    let name = definition.name();
    let results = match drawn.below(2) {
        0 => bed.all(name, &inputs[..], &attrs),
        _ => bed.all(name, inputs, &attrs),
    };
    match results {
        Ok(results) => {
            if let ResultCount::Always(n) = definition.n_results() {
                assert_eq!(results.len(), n, "{name}");
            }
            for result in results {
                // What was said of it is what it is.
                let tensor = result.tensor().unwrap().unwrap();
                assert_eq!(
                    result.metadata(),
                    Some(tensor.metadata()),
                    "{name} {described:?} {attrs:?}"
                );
            }
            true
        }
        Err(error) => {
            let (code, message) = (error.code(), error.message());
            // TensorFlow's code for a variable without a value.
            let is_meant = message == "Invalid variable reference.";
            assert!(
                (code != ErrorCode::Internal || is_meant) && message.len() > 8,
                "{name} {described:?} {attrs:?}: {code:?} {message}"
            );
            false
        }
    }
}

/// Blocks and padding whose elements come later are held against the shapes that are known: a scalar has no dimension
/// to cut up.
#[test]
fn blocks_of_scalars_are_refused_before_their_sizes_are_known() {
    let bed = TestBed::new();
    let (gate, promises) = gate(&bed.runtime, true);
    let x = bed.dense(&[], &[1.0_f32]);
    let (sizes, pairs) = (bed.dense(&[2], &[2_i32, 2]), bed.dense::<i32>(&[0, 2], &[]));
    for name in ["tf.SpaceToBatchND", "tf.BatchToSpaceND"] {
        let later = [&sizes, &pairs].map(|operand| {
            let call = gate.call_one(&bed.context, [operand], &OpAttrs::new());
            (call.unwrap(), promises.recv().unwrap())
        });
        let op = bed.runtime.op(name, &bed.runtime.cpu()).unwrap();
        let operands = [&x, &later[0].0, &later[1].0];
        let found = op.call(&bed.context, operands, &OpAttrs::new());
        for ((_, promise), operand) in later.into_iter().zip([&sizes, &pairs]) {
            promise.resolve(operand.tensor().unwrap().unwrap().clone());
        }
        let message = match found {
            Err(error) => error.to_string(),
            Ok(results) => {
                bed.wait(&results[0]);
                format!("{:?}", results[0].error())
            }
        };
        assert!(
            message.contains("a pair of integers for each size"),
            "{name}: {message}"
        );
    }
}
