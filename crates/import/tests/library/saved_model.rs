//! SavedModels that these tests write byte by byte, as the crate imports or refuses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tfrt_import::{
    ExternalData, FRONT_ENDS, FileProvider, ModelBytes, ReadLimits, SharedBytes, Source,
};

use super::wire::Wire;

mod variables;

const FLOAT: i64 = 1;
const STRING: i64 = 7;

/// The files of a directory.
type Files = BTreeMap<&'static str, Vec<u8>>;

fn import_signature(files: Files, signature: Option<&str>) -> Result<String, String> {
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
        signature,
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

fn import(files: Files) -> Result<String, String> {
    import_signature(files, None)
}

fn frozen(graph: Wire) -> Result<String, String> {
    let source = Source {
        name: "graph.pb",
        bytes: ModelBytes::from(graph.0),
        path: None,
        signature: None,
        external_data: &ExternalData::Unknown,
    };
    let imported = (FRONT_ENDS[1].import)(&source, &ReadLimits::default());
    let told = |errors: tfrt_ir::Diagnostics| errors.iter().next().unwrap().message().to_owned();
    Ok(imported.map_err(told)?.module.to_string())
}

// Graphs.

fn node(name: &str, op: &str, inputs: &[&str], attrs: &[(&str, Wire)]) -> Wire {
    let attrs = attrs
        .iter()
        .map(|(name, value)| Wire::new().text(1, name).message(2, value.clone()));
    Wire::new()
        .text(1, name)
        .text(2, op)
        .texts(3, inputs)
        .messages(5, attrs)
}

fn ty(number: i64) -> Wire {
    Wire::new().int(6, number)
}

fn call(name: &str) -> Wire {
    Wire::new().message(10, Wire::new().text(1, name))
}

fn shape(extents: &[i64]) -> Wire {
    Wire::new().messages(2, extents.iter().map(|size| Wire::new().int(1, *size)))
}

fn texts(all: &[&str]) -> Wire {
    let tensor = Wire::new()
        .int(1, STRING)
        .message(2, shape(&[all.len() as i64]))
        .texts(8, all);
    Wire::new().message(8, tensor)
}

fn number(value: f32) -> Wire {
    let tensor = Wire::new()
        .int(1, FLOAT)
        .message(2, shape(&[]))
        .float(5, value);
    Wire::new().message(8, tensor)
}

fn info(name: &str, extents: &[i64]) -> Wire {
    Wire::new()
        .text(1, name)
        .int(2, FLOAT)
        .message(3, shape(extents))
}

fn entry(name: &str, value: Wire) -> Wire {
    Wire::new().text(1, name).message(2, value)
}

/// A function, with its arguments and the values of its outputs.
fn function(name: &str, inputs: &[&str], outputs: &[(&str, &str)], nodes: Vec<Wire>) -> Wire {
    let arg = |name: &&str| Wire::new().text(1, name);
    let signature = Wire::new()
        .text(1, name)
        .messages(2, inputs.iter().map(arg))
        .messages(3, outputs.iter().map(|(name, _)| arg(name)));
    let rets = outputs
        .iter()
        .map(|(name, value)| Wire::new().text(1, name).text(2, value));
    Wire::new()
        .message(1, signature)
        .messages(3, nodes)
        .messages(4, rets)
}

fn signature(output: &str) -> Wire {
    Wire::new()
        .message(1, entry("x", info("given:0", &[-1, 2])))
        .message(2, entry("y", info(output, &[-1, 2])))
}

fn saved_model(nodes: Vec<Wire>, functions: Vec<Wire>, name: &str) -> Vec<u8> {
    let graph = Wire::new()
        .messages(1, nodes)
        .message(2, Wire::new().messages(1, functions));
    let meta = Wire::new()
        .message(1, Wire::new().text(4, "serve").text(5, "2.18.1"))
        .message(2, graph)
        .message(3, Wire::new().text(3, "restored"))
        .message(5, entry(name, signature("called:0")));
    Wire::new().int(1, 1).message(2, meta).0
}

/// The function that restores the variable.
fn restore() -> Wire {
    function(
        "restore",
        &["path", "resource"],
        &[("done", "path")],
        vec![
            node(
                "names",
                "Const",
                &[],
                &[("value", texts(&["other", "variables/0/value"]))],
            ),
            node("slices", "Const", &[], &[("value", texts(&["", ""]))]),
            node(
                "read",
                "RestoreV2",
                &["path", "names:output:0", "slices:output:0"],
                &[],
            ),
            node("same", "Identity", &["read:tensors:1"], &[]),
            node(
                "put",
                "AssignVariableOp",
                &["resource", "same:output:0"],
                &[],
            ),
        ],
    )
}

/// A model that adds its only variable to its input, in a function.
fn model_file(body: Vec<Wire>) -> Vec<u8> {
    saved_model(
        vec![
            node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node(
                "v",
                "VarHandleOp",
                &[],
                &[("dtype", ty(FLOAT)), ("shape", Wire::new())],
            ),
            node(
                "called",
                "StatefulPartitionedCall",
                &["given", "v"],
                &[("f", call("outer"))],
            ),
            node("path", "Const", &[], &[("value", texts(&["p"]))]),
            node(
                "restored",
                "StatefulPartitionedCall",
                &["path", "v"],
                &[("f", call("restore"))],
            ),
        ],
        vec![
            function(
                "outer",
                &["a", "r"],
                &[("b", "c:output:0")],
                vec![node(
                    "c",
                    "StatefulPartitionedCall",
                    &["a", "r"],
                    &[("f", call("inner"))],
                )],
            ),
            function("inner", &["a", "r"], &[("b", "out:output:0")], body),
            restore(),
        ],
        "serving_default",
    )
}

fn sum() -> Vec<Wire> {
    vec![
        node("value", "ReadVariableOp", &["r"], &[("dtype", ty(FLOAT))]),
        node("sum", "AddV2", &["a", "value:value:0"], &[("T", ty(FLOAT))]),
        node("out", "Identity", &["sum:z:0"], &[]),
    ]
}

// Checkpoints.

fn masked(crc: u32) -> [u8; 4] {
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn varint(mut value: usize, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Writes a table of LevelDB with one block.
fn table(entries: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |entries: &[(&[u8], Vec<u8>)]| {
        let start = file.len();
        for (key, value) in entries {
            file.push(0);
            varint(key.len(), &mut file);
            varint(value.len(), &mut file);
            file.extend_from_slice(key);
            file.extend_from_slice(value);
        }
        file.extend([0_u32, 1].map(u32::to_le_bytes).concat());
        let size = file.len() - start;
        file.push(0);
        let crc = masked(crc32c::crc32c(&file[start..]));
        file.extend(crc);
        let mut handle = Vec::new();
        varint(start, &mut handle);
        varint(size, &mut handle);
        handle
    };
    let data = block(entries);
    let meta = block(&[]);
    let index = block(&[(b"z", data)]);
    let mut footer = [meta, index].concat();
    footer.resize(40, 0);
    footer.extend(0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    file.extend(footer);
    file
}

const ELEMENTS: [f32; 2] = [1.5, -2.0];

fn data() -> Vec<u8> {
    let elements = ELEMENTS.iter().flat_map(|one| one.to_le_bytes());
    [0; 4].into_iter().chain(elements).collect()
}

/// The index of a checkpoint; `change` is of the entry and the header.
fn index(change: impl Fn(Wire, Wire) -> (Wire, Wire)) -> Vec<u8> {
    let crc = u32::from_le_bytes(masked(crc32c::crc32c(&data()[4..])));
    let entry = Wire::new()
        .int(1, FLOAT)
        .message(2, shape(&[2]))
        .int(4, 4)
        .int(5, 8);
    let mut entry = entry;
    entry.0.push(6 << 3 | 5);
    entry.0.extend(crc.to_le_bytes());
    let (entry, header) = change(entry, Wire::new().int(1, 1));
    table(&[(b"", header.0), (KEY.as_bytes(), entry.0)])
}

const KEY: &str = "variables/0/value";

/// Writes an entry of so many bytes of the shard.
fn part(extents: &[i64], at: usize) -> Vec<u8> {
    let size = extents.iter().product::<i64>() * 4;
    let bytes = &data()[at..at + usize::try_from(size).unwrap()];
    let mut entry = Wire::new()
        .int(1, FLOAT)
        .message(2, shape(extents))
        .int(4, at as i64)
        .int(5, size);
    entry.0.push(6 << 3 | 5);
    entry.0.extend(masked(crc32c::crc32c(bytes)));
    entry.0
}

const SHARD: &str = "variables/variables.data-00000-of-00001";

fn files() -> Files {
    Files::from([
        ("saved_model.pb", model_file(sum())),
        (
            "variables/variables.index",
            index(|entry, header| (entry, header)),
        ),
        (SHARD, data()),
    ])
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
    assert!(import_signature(files(), Some("predict")).is_ok());
    assert_eq!(
        import_signature(files(), Some("train")).unwrap_err(),
        "expected a signature 'train', found 'predict'"
    );
}

#[test]
fn damaged_checkpoints_are_refused_with_what_is_wrong() {
    let variable = "node 'called/c/value' (ReadVariableOp): variable 'v': tensor 'variables/0/value' of the checkpoint: ";
    let flipped = refusal(|files| files.get_mut(SHARD).unwrap()[6] ^= 1);
    assert_eq!(
        flipped,
        format!("{variable}has a wrong checksum: the file is damaged")
    );
    let flipped = refusal(|files| files.get_mut("variables/variables.index").unwrap()[7] ^= 1);
    assert!(
        flipped.contains("has a block at byte 0 whose checksum is wrong"),
        "{flipped}"
    );
    let missing = refusal(|files| drop(files.remove(SHARD)));
    assert!(
        missing.contains("'variables/variables.data-00000-of-00001', which is not given"),
        "{missing}"
    );
    let short = refusal(|files| files.get_mut(SHARD).unwrap().truncate(8));
    assert_eq!(
        short,
        format!("{variable}takes 8 bytes from byte 4 of '{SHARD}', which has 8")
    );
    let set =
        |index: Vec<u8>| refusal(|files| drop(files.insert("variables/variables.index", index)));
    let big = set(index(|entry, header| (entry, header.int(2, 1))));
    assert!(big.contains("is of a big-endian machine"), "{big}");
    let elsewhere = set(index(|entry, header| (entry.int(3, 7), header)));
    assert!(elsewhere.contains("lies in shard 7 of 1"), "{elsewhere}");
    let wide = set(index(|entry, header| {
        (entry.message(2, shape(&[9])), header)
    }));
    assert!(
        wide.contains("expected 72 for 18 of type float") || wide.contains("has 8 bytes, expected"),
        "{wide}"
    );
    let parts = set(index(|entry, header| {
        (entry.message(7, Wire::new()), header)
    }));
    assert!(
        parts.contains("lacks a part that its entry lists"),
        "{parts}"
    );
    let none = set(Vec::new());
    assert!(
        none.contains("'variables/variables.index' has 0 bytes, expected 48 or more"),
        "{none}"
    );
}

#[test]
fn each_prefix_of_an_index_is_refused() {
    let whole = index(|entry, header| (entry, header));
    for len in 0..whole.len() {
        let cut = whole[..len].to_vec();
        refusal(|files| drop(files.insert("variables/variables.index", cut)));
    }
}

#[test]
fn graphs_that_make_no_sense_are_refused_with_their_place() {
    let of =
        |body: Vec<Wire>| refusal(|files| drop(files.insert("saved_model.pb", model_file(body))));
    let twice = of(vec![
        node("out", "Neg", &["a"], &[]),
        node("out", "Neg", &["a"], &[]),
    ]);
    assert!(
        twice.contains(
            "node 'called/c' (StatefulPartitionedCall): has two nodes with the name 'out'"
        ),
        "{twice}"
    );
    let nothing = of(vec![node("out", "Neg", &["b:y:0"], &[])]);
    assert_eq!(
        nothing,
        "node 'called/c/out' (Neg): takes 'b:y:0', which nothing here makes"
    );
    let cycle = of(vec![
        node("out", "Neg", &["m:y:0"], &[]),
        node("m", "Abs", &["out:y:0"], &[]),
    ]);
    assert!(cycle.contains("is in a cycle of nodes"), "{cycle}");
    let calls = of(vec![node(
        "out",
        "PartitionedCall",
        &["a", "r"],
        &[("f", call("outer"))],
    )]);
    assert!(
        calls.contains("calls the function 'outer', which calls itself"),
        "{calls}"
    );
    let writes = of(vec![
        node("write", "ResourceApplyAddSign", &["r", "a"], &[]),
        node("out", "Identity", &["a", "^write"], &[]),
    ]);
    assert!(
        writes.contains(
            "changes the variable 'v' in a way that nothing here runs: 'ResourceApplyAddSign'"
        ),
        "{writes}"
    );
    let unnamed = of(vec![node(
        "out",
        "PartitionedCall",
        &["a"],
        &[("f", call("gone"))],
    )]);
    assert!(
        unnamed.contains("calls the function 'gone', which the model does not have"),
        "{unnamed}"
    );
}

#[test]
fn variables_without_values_are_refused() {
    let text = refusal(|files| {
        let nodes = vec![
            node("given", "Placeholder", &[], &[("dtype", ty(FLOAT))]),
            node("w", "VarHandleOp", &[], &[]),
            node("called", "ReadVariableOp", &["w"], &[]),
        ];
        files.insert(
            "saved_model.pb",
            saved_model(nodes, Vec::new(), "serving_default"),
        );
    });
    assert_eq!(
        text,
        "node 'called' (ReadVariableOp): reads the variable 'w', for which the model has no value: nothing restores it"
    );
}
