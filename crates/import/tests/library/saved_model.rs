//! SavedModels that these tests write byte by byte, as the crate imports or refuses them.

use std::sync::Arc;

use tfrt_import::{
    ExternalData, FRONT_ENDS, FileHead, FileProvider, ModelBytes, Part, ReadLimits, SharedBytes,
    Source,
};

use super::wire::{self, Wire};
use files::*;

mod damaged;
pub mod files;
mod variables;

fn import_part(files: Files, part: Part<'_>) -> Result<String, String> {
    let give = move |name: &str| {
        files
            .get(name)
            .map(|bytes| Arc::new(bytes.clone()) as SharedBytes)
    };
    let external_data = ExternalData::Provider(FileProvider::new(give));
    let source = Source {
        name: "model",
        bytes: ModelBytes::default(),
        path: None,
        part,
        external_data: &external_data,
    };
    let format = FRONT_ENDS
        .iter()
        .find(|format| format.name == "SavedModel")
        .unwrap();
    match (format.import)(&source, &ReadLimits::default()) {
        Ok(imported) => {
            tfrt_ir::verify(&imported.module).unwrap();
            Ok(imported.module.to_string())
        }
        Err(errors) => Err(errors
            .iter()
            .map(|error| error.message().to_owned())
            .collect::<Vec<_>>()
            .join("\n")),
    }
}

/// Imports the bytes of a `saved_model.pb` that has no path, as on standard input.
fn import_bytes(bytes: Vec<u8>) -> Result<String, tfrt_ir::Diagnostics> {
    let head = FileHead {
        bytes: &bytes,
        path: None,
        is_folder: false,
    };
    let format = FRONT_ENDS.iter().find(|format| (format.recognises)(&head));
    let source = Source {
        name: "-",
        bytes: ModelBytes::from(bytes.clone()),
        path: None,
        part: Part::default(),
        external_data: &ExternalData::Unknown,
    };
    let imported = (format.unwrap().import)(&source, &ReadLimits::default())?;
    Ok(imported.module.to_string())
}

fn signature_of(name: &str) -> Part<'_> {
    Part {
        signature: Some(name),
        tags: None,
    }
}

fn import(files: Files) -> Result<String, String> {
    import_part(files, Part::default())
}

fn frozen(graph: Wire) -> Result<String, String> {
    let source = Source {
        name: "graph.pb",
        bytes: ModelBytes::from(graph.0),
        path: None,
        part: Part::default(),
        external_data: &ExternalData::Unknown,
    };
    let imported = (FRONT_ENDS[1].import)(&source, &ReadLimits::default());
    let told = |errors: tfrt_ir::Diagnostics| errors.iter().next().unwrap().message().to_owned();
    Ok(imported.map_err(told)?.module.to_string())
}

fn refusal(change: impl FnOnce(&mut Files)) -> String {
    let mut files = files();
    change(&mut files);
    import(files).unwrap_err()
}

#[test]
fn functions_are_expanded_and_variables_are_constants() {
    let text = import(files()).unwrap();
    let expected = [
        r#"model.input_names = ["x"]"#,
        r#"model.input_dims = [["x.0", 2]]"#,
        "dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>",
        r#""tf.AddV2"(%arg0, %0)"#,
    ];
    for part in expected {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Nothing of the function that restores.
    assert!(!text.contains("RestoreV2"), "{text}");
}

#[test]
fn conditions_and_loops_become_regions() {
    let branch = |name: &str, op: &str| {
        let nodes = vec![node("out", op, &["a"], &[])];
        function(name, &["a"], &[("b", "out:y:0")], nodes)
    };
    let loops = vec![
        node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
        node("most", "Const", &[], &[("value", number(9.0))]),
        node(
            "loop",
            "While",
            &["given", "most"],
            &[("cond", call("goes_on")), ("body", call("turn"))],
        ),
        node("goes", "Any", &["loop:0"], &[]),
        node(
            "called",
            "If",
            &["goes", "loop"],
            &[
                ("Tcond", ty(10)),
                ("then_branch", call("then")),
                ("else_branch", call("otherwise")),
            ],
        ),
    ];
    let functions = vec![
        function(
            "goes_on",
            &["a", "m"],
            &[("b", "less:z:0")],
            vec![node("less", "Less", &["a", "m"], &[])],
        ),
        function(
            "turn",
            &["a", "m"],
            &[("b", "double:z:0"), ("n", "m")],
            vec![node("double", "AddV2", &["a", "a"], &[])],
        ),
        branch("then", "Neg"),
        branch("otherwise", "Abs"),
    ];
    let text = import(Files::from([(
        "saved_model.pb",
        saved_model(loops, functions, "serving_default"),
    )]))
    .unwrap();
    // What no turn changes is no value of the loop.
    assert!(text.contains(r#""graph.while"(%arg0) ({"#), "{text}");
    assert!(
        text.contains(r#""graph.if""#) && text.contains(r#""tf.Neg""#),
        "{text}"
    );
}

#[test]
fn switches_and_merges_become_conditions() {
    let graph = Wire::new().messages(
        1,
        [
            node("x", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node("p", "Placeholder", &[], &[("dtype", ty(10))]),
            node("s", "Switch", &["x", "p"], &[]),
            node("no", "Neg", &["s:0"], &[]),
            node("yes", "Abs", &["s:1"], &[]),
            node("m", "Merge", &["no", "yes"], &[]),
        ],
    );
    let text = frozen(graph).unwrap();
    let (then, otherwise) = text.split_once("graph.yield").unwrap();
    assert!(
        then.contains("tf.Abs") && otherwise.contains("tf.Neg"),
        "{text}"
    );
}

#[test]
fn loop_frames_are_named_and_refused() {
    let graph = Wire::new().messages(
        1,
        [
            node("x", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node(
                "e",
                "Enter",
                &["x"],
                &[("frame_name", Wire::new().text(2, "w"))],
            ),
            node("y", "Neg", &["e"], &[]),
        ],
    );
    assert_eq!(
        frozen(graph).unwrap_err(),
        "node 'e' (Enter): is part of the loop 'w' of TensorFlow 1, expected the operation While"
    );
}

#[test]
fn the_only_signature_is_taken_and_others_are_listed() {
    let nodes = || {
        vec![
            node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node("called", "Neg", &["given"], &[]),
        ]
    };
    let files = || {
        Files::from([(
            "saved_model.pb",
            saved_model(nodes(), Vec::new(), "predict"),
        )])
    };
    assert!(import(files()).unwrap().contains("tf.Neg"));
    assert!(import_part(files(), signature_of("predict")).is_ok());
    assert_eq!(
        import_part(files(), signature_of("train")).unwrap_err(),
        "expected a signature 'train', found 'predict'"
    );
}
