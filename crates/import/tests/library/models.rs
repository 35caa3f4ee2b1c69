//! Tests of sound models: the module that each becomes, and that its text parses to the same module.

mod cases;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use expect_test::expect_file;
use tfrt_import::onnx::{
    ElementType, ExternalData, Folder, Options, Tensor, TensorData,
    data::{Data, Kind},
    import,
};
use tfrt_ir::{Attribute, Module, PrintOptions, Source, parse, print, verify};

use crate::wire;

/// The folder of the models, written once: rewriting it would truncate the files while parallel tests read them.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("models");
    fs::create_dir_all(folder.join("deep")).unwrap();
    fs::write(
        folder.join("deep/w.bin"),
        [0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40],
    )
    .unwrap();
    folder
});

fn imported(name: &str, bytes: Vec<u8>) -> Module {
    let options = Options {
        name: "model.onnx".to_owned(),
        external_data: ExternalData::Folder(Folder::new(FOLDER.clone())),
        ..Options::new("")
    };
    import(bytes, &options).unwrap_or_else(|errors| panic!("{name}:\n{errors}"))
}

#[test]
fn models_become_modules_that_are_read_back_as_the_same() {
    let mut text = String::new();
    for case in cases::all() {
        let module = imported(case.name, case.bytes);
        verify(&module).unwrap_or_else(|errors| panic!("{}:\n{errors}", case.name));
        for locations in [false, true] {
            for generic in [false, true] {
                let options = PrintOptions { generic, locations };
                let printed = print(&module, options);
                let again = parse(&Source::new("printed.mlir", printed.clone()))
                    .unwrap_or_else(|errors| panic!("{}:\n{errors}\n{printed}", case.name));
                verify(&again).unwrap();
                assert_eq!(print(&again, options), printed, "{}", case.name);
            }
        }
        text.push_str(&format!("== {}\n{module}", case.name));
    }
    expect_file!["./models/expected.txt"].assert_eq(&text);
}

#[test]
fn locations_lead_back_to_nodes() {
    let case = cases::all()
        .into_iter()
        .find(|case| case.name == "functions")
        .unwrap();
    let module = imported(case.name, case.bytes);
    let options = PrintOptions {
        generic: false,
        locations: true,
    };
    let text = print(&module, options);
    let inner = r#"loc(callsite("y_node/t_node/b_node"("model.onnx":0:1) at callsite("y_node/t_node"("model.onnx":0:1) at "y_node"("model.onnx":0:2))))"#;
    assert!(text.contains(inner), "{text}");
}

/// Returns the elements of the only constant of a model, which has one initializer.
fn elements(tensor: wire::Wire) -> Vec<u8> {
    let module = imported("a tensor", wire::with_initializer(tensor).0);
    let main = module.lookup_symbol("main").unwrap();
    let constant = module.children(main).next().unwrap();
    match module.op(constant).attribute("value") {
        Some(Attribute::Dense(dense)) => dense.bytes().to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_encodings_of_each_type_are_the_same_elements() {
    for &element in ElementType::ALL {
        if element == ElementType::String {
            continue;
        }
        let size = element.size_bytes();
        let number = i64::from(element.number());
        // Three elements, all bits of which are used and none of which are the same.
        let whole: Vec<u8> = match element {
            ElementType::Bool => vec![1, 0, 1],
            ElementType::I4 => vec![0xff, 7, 0xf8],
            ElementType::U4 | ElementType::F4E2M1 => vec![15, 7, 8],
            ElementType::I2 => vec![0xff, 1, 0xfe],
            ElementType::U2 => vec![3, 1, 2],
            _ => (0..3 * size).map(|at| (at * 37 + 129) as u8).collect(),
        };
        let file = Data::Tensor(Tensor {
            name: String::new(),
            element,
            dims: vec![3],
            data: TensorData::Bytes(whole.to_vec().into()),
        });
        let encoded = file.encode();
        assert_eq!(
            Data::decode(encoded.clone(), Kind::Tensor, "x.pb").unwrap(),
            file
        );
        // The raw bytes are the last field of what is written.
        let packed = match element.bits() {
            4 => 2,
            2 => 1,
            _ => whole.len(),
        };
        let raw = &encoded[encoded.len() - packed..];
        let tensor = || wire::tensor("w", number, &[3]);
        assert_eq!(
            elements(tensor().bytes(9, raw)),
            whole,
            "{element:?} as bytes"
        );
        let unit = |at: usize, len: usize| {
            let mut wide = [0; 8];
            wide[..len].copy_from_slice(&whole[at..at + len]);
            i64::from_le_bytes(wide)
        };
        let steps = |len: usize| (0..whole.len()).step_by(len).map(move |at| (at, len));
        let fields = match element {
            ElementType::F32 | ElementType::C64 => tensor().bytes(4, &whole),
            ElementType::F64 | ElementType::C128 => tensor().bytes(10, &whole),
            ElementType::I64 => steps(8).fold(tensor(), |it, (at, len)| it.int(7, unit(at, len))),
            ElementType::U32 | ElementType::U64 => {
                steps(size).fold(tensor(), |it, (at, len)| it.int(11, unit(at, len)))
            }
            ElementType::I8 | ElementType::I16 | ElementType::I32 => {
                let sign = 64 - 8 * size;
                steps(size).fold(tensor(), |it, (at, len)| {
                    it.int(5, unit(at, len) << sign >> sign)
                })
            }
            _ if element.bits() < 8 => raw
                .iter()
                .fold(tensor(), |it, &byte| it.int(5, i64::from(byte))),
            _ => steps(size).fold(tensor(), |it, (at, len)| it.int(5, unit(at, len))),
        };
        assert_eq!(elements(fields), whole, "{element:?} in its field");
    }
}

#[test]
fn values_are_written_and_read_as_they_are() {
    let tensor = |element: ElementType, bytes: &[u8]| Tensor {
        name: String::new(),
        element,
        dims: vec![bytes.len() / element.size_bytes()],
        data: TensorData::Bytes(bytes.to_vec().into()),
    };
    let strings = Tensor {
        name: "words".to_owned(),
        element: ElementType::String,
        dims: vec![1, 2],
        data: TensorData::Strings(vec![Arc::from(&b"one"[..]), Arc::from(&b"\xff"[..])]),
    };
    let ints = || Data::Tensor(tensor(ElementType::I64, &[7; 16]));
    let both = || vec![ints(), Data::Tensor(strings.clone())];
    let keys = tensor(ElementType::I16, &[1, 0, 0xff, 0xff]);
    let values = [
        (Kind::Tensor, Data::Tensor(strings.clone())),
        (Kind::Sequence, Data::Sequence(Vec::new())),
        (Kind::Sequence, Data::Sequence(both())),
        (
            Kind::Sequence,
            Data::Sequence(vec![Data::Sequence(both()), Data::Sequence(vec![])]),
        ),
        (Kind::Optional, Data::Optional(None)),
        (Kind::Optional, Data::Optional(Some(Box::new(ints())))),
        (
            Kind::Optional,
            Data::Optional(Some(Box::new(Data::Sequence(both())))),
        ),
        (Kind::Map, Data::Map(keys, both())),
    ];
    for (kind, value) in values {
        assert_eq!(Data::decode(value.encode(), kind, "x.pb").unwrap(), value);
    }
    let errors = Data::decode(&b"\x08\x02\x10\x01"[..], Kind::Tensor, "x.pb").unwrap_err();
    assert_eq!(
        errors.to_string(),
        "x.pb: error: has 0 elements, expected 2 for its shape [2] [TF1008]"
    );
}
