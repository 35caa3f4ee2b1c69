//! Hash tables: values by keys, changed or filled once.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::ErrorCode;
use tfrt_tensor::{DType, StringHostTensor, Tensor, TensorShape};

use super::Caller;

impl Caller {
    fn table(&self, op: &str, name: &str, [keys, values]: [DType; 2]) -> TensorHandle {
        self.call(op, &[], &of_table(name, [keys, values]))
            .unwrap()
            .remove(0)
    }

    fn strings(&self, list: &[&str]) -> TensorHandle {
        let shape = TensorShape::new(&[list.len()]).unwrap();
        let strings = list.iter().map(|text| text.as_bytes().to_vec()).collect();
        self.runtime
            .handle(StringHostTensor::new(shape, strings).unwrap())
    }

    fn texts(&self, handle: &TensorHandle) -> Vec<String> {
        let Some(Ok(Tensor::String(strings))) = handle.tensor() else {
            panic!("they are strings: {handle}");
        };
        let strings = strings.strings().iter();
        strings
            .map(|text| String::from_utf8(text.clone()).unwrap())
            .collect()
    }
}

fn of_table(name: &str, [keys, values]: [DType; 2]) -> OpAttrs {
    let mut attrs = OpAttrs::new();
    attrs.set("shared_name", name).unwrap();
    attrs.set("key_dtype", keys).unwrap();
    attrs.set("value_dtype", values).unwrap();
    attrs
}

#[test]
fn tables_are_filled_asked_and_listed() {
    let caller = Caller::new();
    let words = [DType::String, DType::I64];
    let table = caller.table("tf.MutableHashTableV2", "words", words);
    let keys = caller.strings(&["b", "a", "c"]);
    caller.run(
        "tf.LookupTableInsertV2",
        &[&table, &keys, &caller.tensor(&[3], &[2_i64, 1, 3])],
    );
    // Another handle, by the name.
    let again = caller.table("tf.MutableHashTableV2", "words", words);
    let none = caller.tensor(&[], &[-1_i64]);
    let found = caller.one(
        "tf.LookupTableFindV2",
        &[&again, &caller.strings(&["a", "x", "b"]), &none],
    );
    assert_eq!(caller.elements::<i64>(&found), [1, -1, 2]);
    let others = caller.tensor(&[2], &[10_i64, 20]);
    let found = caller.one(
        "tf.LookupTableFindV2",
        &[&table, &caller.strings(&["x", "y"]), &others],
    );
    assert_eq!(caller.elements::<i64>(&found), [10, 20]);
    caller.run(
        "tf.LookupTableRemoveV2",
        &[&table, &caller.strings(&["a", "unknown"])],
    );
    caller.run(
        "tf.LookupTableInsertV2",
        &[
            &table,
            &caller.strings(&["b"]),
            &caller.tensor(&[1], &[7_i64]),
        ],
    );
    let size = caller.one("tf.LookupTableSizeV2", &[&table]);
    assert_eq!(caller.elements::<i64>(&size), [2]);
    let mut all = caller
        .call("tf.LookupTableExportV2", &[&table], &OpAttrs::new())
        .unwrap();
    assert_eq!(caller.elements::<i64>(&all.pop().unwrap()), [7, 3]);
    assert_eq!(caller.texts(&all.pop().unwrap()), ["b", "c"]);
    caller.run(
        "tf.LookupTableImportV2",
        &[
            &table,
            &caller.strings(&["z"]),
            &caller.tensor(&[1], &[26_i64]),
        ],
    );
    assert_eq!(
        caller.elements::<i64>(&caller.one("tf.LookupTableSizeV2", &[&again])),
        [1]
    );
    // Values may be tensors, and strings.
    let mut attrs = of_table("", [DType::I32, DType::F32]);
    attrs.set("value_shape", &[2_i64][..]).unwrap();
    let vectors = caller
        .call("tf.MutableHashTableOfTensorsV2", &[], &attrs)
        .unwrap()
        .remove(0);
    let keys = caller.tensor(&[2], &[5, 6]);
    caller.run(
        "tf.LookupTableInsertV2",
        &[
            &vectors,
            &keys,
            &caller.tensor(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]),
        ],
    );
    let found = caller.one(
        "tf.LookupTableFindV2",
        &[
            &vectors,
            &caller.tensor(&[2], &[6, 7]),
            &caller.tensor(&[2], &[0.0_f32; 2]),
        ],
    );
    assert_eq!(caller.elements::<f32>(&found), [3.0, 4.0, 0.0, 0.0]);
    // Values without elements.
    let mut attrs = of_table("", [DType::I32, DType::String]);
    attrs.set("value_shape", &[0_i64][..]).unwrap();
    let hollow = caller
        .call("tf.MutableHashTableOfTensorsV2", &[], &attrs)
        .unwrap()
        .remove(0);
    let nothing = |extents: &[usize]| {
        let shape = TensorShape::new(extents).unwrap();
        caller
            .runtime
            .handle(StringHostTensor::new(shape, Vec::new()).unwrap())
    };
    caller.run(
        "tf.LookupTableInsertV2",
        &[&hollow, &keys, &nothing(&[2, 0])],
    );
    assert_eq!(
        caller.elements::<i64>(&caller.one("tf.LookupTableSizeV2", &[&hollow])),
        [2]
    );
    let found = caller.one(
        "tf.LookupTableFindV2",
        &[&hollow, &caller.tensor(&[2], &[6, 7]), &nothing(&[0])],
    );
    assert_eq!(found.metadata().unwrap().to_string(), "str [2, 0]");
    let names = caller.table("tf.MutableHashTableV2", "", [DType::I64, DType::String]);
    caller.run(
        "tf.LookupTableInsertV2",
        &[
            &names,
            &caller.tensor(&[1], &[1_i64]),
            &caller.strings(&["one"]),
        ],
    );
    let unknown = caller
        .runtime
        .handle(StringHostTensor::new(TensorShape::SCALAR, vec![b"?".to_vec()]).unwrap());
    let found = caller.one(
        "tf.LookupTableFindV2",
        &[&names, &caller.tensor(&[2], &[1_i64, 2]), &unknown],
    );
    assert_eq!(caller.texts(&found), ["one", "?"]);
}

#[test]
fn tables_that_are_filled_once_stay_as_they_are() {
    let caller = Caller::new();
    let table = caller.table("tf.HashTableV2", "", [DType::I64, DType::I64]);
    let (keys, values) = (
        caller.tensor(&[2], &[1_i64, 2]),
        caller.tensor(&[2], &[10_i64, 20]),
    );
    let none = caller.tensor(&[], &[0_i64]);
    let told = caller.fails(
        "tf.LookupTableFindV2",
        &[&table, &keys, &none],
        &OpAttrs::new(),
    );
    assert_eq!(
        told,
        (
            ErrorCode::FailedPrecondition,
            "Table not initialized.".into()
        )
    );
    let twice = caller.tensor(&[2], &[1_i64, 1]);
    let told = caller.fails(
        "tf.InitializeTableV2",
        &[&table, &twice, &values],
        &OpAttrs::new(),
    );
    assert_eq!(
        told.1,
        "HashTable has different value for same key. Key 1 is there twice"
    );
    caller.run("tf.InitializeTableV2", &[&table, &keys, &values]);
    caller.run("tf.InitializeTableV2", &[&table, &keys, &keys]);
    let found = caller.one("tf.LookupTableFindV2", &[&table, &keys, &none]);
    assert_eq!(caller.elements::<i64>(&found), [10, 20]);
    let told = caller.fails(
        "tf.LookupTableInsertV2",
        &[&table, &keys, &values],
        &OpAttrs::new(),
    );
    assert_eq!(told.0, ErrorCode::FailedPrecondition);
}

#[test]
fn wrong_uses_of_tables_are_told() {
    let caller = Caller::new();
    let none = OpAttrs::new();
    let table = caller.table("tf.MutableHashTableV2", "t", [DType::I64, DType::F32]);
    let (keys, values) = (
        caller.tensor(&[2], &[1_i64, 2]),
        caller.tensor(&[2], &[1.0_f32, 2.0]),
    );
    let fails = |name: &str, inputs: &[&TensorHandle]| {
        let (code, message) = caller.fails(name, inputs, &none);
        assert_eq!(code, ErrorCode::InvalidArgument, "{message}");
        message
    };
    let told = fails("tf.LookupTableInsertV2", &[&table, &values, &values]);
    assert_eq!(told, "Key must be type i64 but got f32");
    let told = fails("tf.LookupTableInsertV2", &[&table, &keys, &keys]);
    assert_eq!(told, "Expected value type f32 got i64");
    let told = fails(
        "tf.LookupTableInsertV2",
        &[&table, &keys, &caller.tensor(&[1], &[1.0_f32])],
    );
    assert_eq!(told, "Expected shape [2] got [1]");
    let told = fails(
        "tf.LookupTableFindV2",
        &[&table, &keys, &caller.tensor(&[3], &[0.0_f32; 3])],
    );
    assert_eq!(told, "Expected shape [] or [2] for default value, got [3]");
    let w = caller.with(&[1], &[1.0_f32]);
    let told = fails("tf.LookupTableSizeV2", &[&w]);
    assert!(told.contains("as type 'HashTable'"), "{told}");
    let (code, told) = caller.fails(
        "tf.MutableHashTableV2",
        &[],
        &of_table("t", [DType::I64, DType::I64]),
    );
    assert_eq!(code, ErrorCode::InvalidArgument);
    assert!(
        told.ends_with("Conflicting key/value dtypes i64->i64 with i64->f32 for table t"),
        "{told}"
    );
    let (_, told) = caller.fails(
        "tf.MutableHashTableV2",
        &[],
        &of_table("", [DType::F32, DType::I64]),
    );
    assert_eq!(told, "keys of a table are i32, i64 or strings, found f32");
}
