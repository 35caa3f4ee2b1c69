//! Directories of SavedModels, written byte by byte: a model that adds its only variable to its input.

use std::collections::BTreeMap;

use super::wire::Wire;

pub const FLOAT: i64 = 1;
pub const STRING: i64 = 7;

/// The files of a directory.
pub type Files = BTreeMap<&'static str, Vec<u8>>;

// Graphs.

pub fn node(name: &str, op: &str, inputs: &[&str], attrs: &[(&str, Wire)]) -> Wire {
    let attrs = attrs
        .iter()
        .map(|(name, value)| Wire::new().text(1, name).message(2, value.clone()));
    Wire::new()
        .text(1, name)
        .text(2, op)
        .texts(3, inputs)
        .messages(5, attrs)
}

pub fn ty(number: i64) -> Wire {
    Wire::new().int(6, number)
}

pub fn call(name: &str) -> Wire {
    Wire::new().message(10, Wire::new().text(1, name))
}

pub fn shape(extents: &[i64]) -> Wire {
    Wire::new().messages(2, extents.iter().map(|size| Wire::new().int(1, *size)))
}

pub fn texts(all: &[&str]) -> Wire {
    let tensor = Wire::new()
        .int(1, STRING)
        .message(2, shape(&[all.len() as i64]))
        .texts(8, all);
    Wire::new().message(8, tensor)
}

pub fn number(value: f32) -> Wire {
    let tensor = Wire::new()
        .int(1, FLOAT)
        .message(2, shape(&[]))
        .float(5, value);
    Wire::new().message(8, tensor)
}

pub fn info(name: &str, extents: &[i64]) -> Wire {
    Wire::new()
        .text(1, name)
        .int(2, FLOAT)
        .message(3, shape(extents))
}

pub fn entry(name: &str, value: Wire) -> Wire {
    Wire::new().text(1, name).message(2, value)
}

/// A function, with its arguments and the values of its outputs.
pub fn function(name: &str, inputs: &[&str], outputs: &[(&str, &str)], nodes: Vec<Wire>) -> Wire {
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

pub fn signature(output: &str) -> Wire {
    Wire::new()
        .message(1, entry("x", info("given:0", &[-1, 2])))
        .message(2, entry("y", info(output, &[-1, 2])))
}

pub fn saved_model(nodes: Vec<Wire>, functions: Vec<Wire>, name: &str) -> Vec<u8> {
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
pub fn restore() -> Wire {
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
pub fn model_file(body: Vec<Wire>) -> Vec<u8> {
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

pub fn sum() -> Vec<Wire> {
    vec![
        node("value", "ReadVariableOp", &["r"], &[("dtype", ty(FLOAT))]),
        node("sum", "AddV2", &["a", "value:value:0"], &[("T", ty(FLOAT))]),
        node("out", "Identity", &["sum:z:0"], &[]),
    ]
}

// Checkpoints.

/// Returns the CRC-32C of bytes, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _: u32| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold(!0, byte)
}

pub fn masked(crc: u32) -> [u8; 4] {
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

pub fn varint(mut value: usize, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Writes a table of LevelDB with one block.
pub fn table(entries: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
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
        let crc = masked(crc32c(&file[start..]));
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

pub const ELEMENTS: [f32; 2] = [1.5, -2.0];

pub fn data() -> Vec<u8> {
    let elements = ELEMENTS.iter().flat_map(|one| one.to_le_bytes());
    [0; 4].into_iter().chain(elements).collect()
}

/// The index of a checkpoint; `change` is of the entry and the header.
pub fn index(change: impl Fn(Wire, Wire) -> (Wire, Wire)) -> Vec<u8> {
    let crc = u32::from_le_bytes(masked(crc32c(&data()[4..])));
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

pub const KEY: &str = "variables/0/value";

/// Writes an entry of so many bytes of the shard.
pub fn part(extents: &[i64], at: usize) -> Vec<u8> {
    let size = extents.iter().product::<i64>() * 4;
    let bytes = &data()[at..at + usize::try_from(size).unwrap()];
    let mut entry = Wire::new()
        .int(1, FLOAT)
        .message(2, shape(extents))
        .int(4, at as i64)
        .int(5, size);
    entry.0.push(6 << 3 | 5);
    entry.0.extend(masked(crc32c(bytes)));
    entry.0
}

pub const SHARD: &str = "variables/variables.data-00000-of-00001";

pub fn files() -> Files {
    Files::from([
        ("saved_model.pb", model_file(sum())),
        (
            "variables/variables.index",
            index(|entry, header| (entry, header)),
        ),
        (SHARD, data()),
    ])
}
