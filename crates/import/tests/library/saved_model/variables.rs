//! Variables that a signature changes, that are stored in parts, and that are written again.

use std::collections::BTreeMap;
use std::path::Path;

use tfrt_import::Folder;
use tfrt_import::saved_model::{SaveError, SavedValue, save};

use super::*;

/// A model that adds its input to its variable, and gives the sum.
fn counter() -> Files {
    let mut files = files();
    let nodes = vec![
        node("write", "AssignAddVariableOp", &["r", "a"], &[]),
        node("value", "ReadVariableOp", &["r", "^write"], &[]),
        node("out", "Identity", &["value:value:0"], &[]),
    ];
    files.insert("saved_model.pb", model_file(nodes));
    files
}

#[test]
fn variables_that_are_assigned_are_inputs_and_outputs() {
    let text = import(counter()).unwrap();
    let expected = [
        r#"model.input_names = ["x", "v"]"#,
        r#"model.output_names = ["y", "v"]"#,
        "model.initial = [dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>]",
        r#"%0 = "tf.AddV2"(%arg1, %arg0)"#,
        "return %0, %0 : ",
    ];
    for part in expected {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn partitioned_variables_are_put_together() {
    // The first of two elements, and the second.
    let slice = |start: i64| Wire::new().message(1, Wire::new().int(1, start).int(2, 1));
    let key = |start: u8| {
        let mut key = vec![0];
        key.extend(KEY.bytes());
        key.extend([0, 1, 1, 1, 0x80 | start, 0x81]);
        key
    };
    let whole = Wire::new()
        .int(1, FLOAT)
        .message(2, shape(&[2]))
        .messages(7, [slice(0), slice(1)]);
    let index = |second: usize| {
        table(&[
            (b"", Wire::new().int(1, 1).0),
            (&key(0), part(&[1], 4)),
            (&key(1), part(&[1], second)),
            (KEY.as_bytes(), whole.0.clone()),
        ])
    };
    let mut files = files();
    files.insert("variables/variables.index", index(8));
    let text = import(files.clone()).unwrap();
    assert!(
        text.contains("dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>"),
        "{text}"
    );
    files.get_mut(SHARD).unwrap()[9] ^= 1;
    let text = import(files).unwrap_err();
    assert!(text.contains("has a wrong checksum"), "{text}");
}

#[test]
fn a_missing_index_is_told_once() {
    let text = refusal(|files| {
        files.remove("variables/variables.index");
        let nodes = vec![
            node("first", "ReadVariableOp", &["r"], &[]),
            node("second", "ReadVariableOp", &["r"], &[]),
            node("sum", "AddV2", &["first:value:0", "second:value:0"], &[]),
            node("out", "Identity", &["sum:z:0"], &[]),
        ];
        files.insert("saved_model.pb", model_file(nodes));
    });
    assert_eq!(text.matches("variables.index").count(), 1, "{text}");
}

/// Imports the model of a directory.
fn import_folder(path: &Path) -> Result<String, String> {
    let external_data = ExternalData::Folder(Folder::new(path));
    let source = Source {
        name: "model",
        bytes: ModelBytes::default(),
        path: Some(path),
        part: tfrt_import::Part::default(),
        external_data: &external_data,
    };
    let format = FRONT_ENDS.iter().find(|format| format.name == "SavedModel");
    match (format.unwrap().import)(&source, &ReadLimits::default()) {
        Ok(imported) => Ok(imported.module.to_string()),
        Err(errors) => Err(errors.iter().next().unwrap().message().to_owned()),
    }
}

fn value(elements: &[f32]) -> SavedValue {
    SavedValue {
        dims: vec![elements.len()],
        bytes: elements.iter().flat_map(|one| one.to_le_bytes()).collect(),
    }
}

#[test]
fn models_are_written_with_other_values_of_variables() {
    let folder = std::env::temp_dir().join(format!("tfrt-saved-{}", std::process::id()));
    let (from, to) = (folder.join("from"), folder.join("to"));
    for (name, bytes) in counter() {
        let path = from.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    std::fs::create_dir_all(from.join("assets")).unwrap();
    std::fs::write(from.join("assets/words.txt"), "one").unwrap();
    std::fs::write(from.join("fingerprint.pb"), "of the old one").unwrap();

    let values = BTreeMap::from([("v".to_owned(), value(&[7.0, 8.0]))]);
    save(&from, &to, None, &values).unwrap();
    let text = import_folder(&to).unwrap();
    assert!(
        text.contains("model.initial = [dense<[7.000000e+00, 8.000000e+00]> : tensor<2xf32>]"),
        "{text}"
    );
    assert_eq!(std::fs::read(to.join("assets/words.txt")).unwrap(), b"one");
    assert!(!to.join("fingerprint.pb").exists());

    // Never over something, and what fails leaves nothing.
    let refused = |values: &BTreeMap<String, SavedValue>, to: &Path| {
        let error = save(&from, to, None, values).unwrap_err();
        assert!(!to.exists() || matches!(error, SaveError::Exists(_)));
        error.to_string()
    };
    assert!(refused(&values, &to).contains("exists, expected a new directory"));
    let other = folder.join("other");
    let unknown = BTreeMap::from([("w".to_owned(), value(&[1.0]))]);
    assert_eq!(
        refused(&unknown, &other),
        "variable 'w': nothing restores it"
    );
    let short = BTreeMap::from([("v".to_owned(), value(&[1.0]))]);
    assert_eq!(
        refused(&short, &other),
        "variable 'v': has extents [1] and 4 bytes, expected [2] of type float"
    );
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn conditions_and_loops_carry_what_is_assigned() {
    let add = |name: &str| {
        function(
            name,
            &["a", "r"],
            &[("b", "same:output:0")],
            vec![
                node("write", "AssignAddVariableOp", &["r", "a"], &[]),
                node("same", "Identity", &["a", "^write"], &[]),
            ],
        )
    };
    let keep = function(
        "keep",
        &["a", "r"],
        &[("b", "same:output:0")],
        vec![node("same", "Identity", &["a"], &[])],
    );
    let nodes = vec![
        node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
        node("v", "VarHandleOp", &[], &[]),
        node("truth", "Const", &[], &[("value", number(1.0))]),
        node(
            "called",
            "If",
            &["truth", "given", "v"],
            &[("then_branch", call("add")), ("else_branch", call("keep"))],
        ),
        node("path", "Const", &[], &[("value", texts(&["p"]))]),
        node(
            "restored",
            "StatefulPartitionedCall",
            &["path", "v"],
            &[("f", call("restore"))],
        ),
    ];
    let mut files = files();
    let functions = vec![add("add"), keep, restore()];
    files.insert(
        "saved_model.pb",
        saved_model(nodes, functions, "serving_default"),
    );
    let text = import(files).unwrap();
    let expected = [
        r#"model.output_names = ["y", "v"]"#,
        r#""graph.yield"(%arg0, %2)"#,
        r#""graph.yield"(%arg0, %arg1)"#,
        "return %1#0, %1#1 : ",
    ];
    for part in expected {
        assert!(text.contains(part), "{part} in {text}");
    }
}
