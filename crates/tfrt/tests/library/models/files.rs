//! Files of users that the command takes: outputs to compare with, sound, named tensors, texts, and folders.

use std::fmt::Write;

use serde_json::{Value as Json, json};

use super::command::Folder;

const GIVEN: &str = "run two.onnx --input x=x.json --input y=y.json";

/// Returns a model that gives back its input, of a type as text and with dimensions.
fn identity(kind: &str, dims: &str) -> String {
    named("x", kind, dims)
}

fn named(name: &str, kind: &str, dims: &str) -> String {
    format!(
        "module attributes {{onnx.opset = 17 : i64}} {{
  func.func @main(%x: tensor<{kind}>) -> tensor<{kind}> attributes {{model.input_names = [\"{name}\"],
      model.output_names = [\"y\"], model.input_dims = [{dims}], model.output_dims = [{dims}]}} {{
    %y = \"onnx.Identity\"(%x) : (tensor<{kind}>) -> tensor<{kind}>
    func.return %y : tensor<{kind}>
  }}
}}"
    )
}

#[test]
fn outputs_are_compared_with_files() {
    let folder = Folder::new("expected");
    folder.write("near.json", "[[1, 2.500244140625, 0]]");
    let equal = folder.printed(&format!("{GIVEN} --expect sum=near.json"));
    assert_eq!(
        equal,
        "sum: f32 [1, 3] as 'near.json' has it, of 3 elements the worst at [0, 1]: expected 2.5002441, found 2.5, \
         difference 0.000244141\n"
    );
    for form in ["npy", "pb", "json", "safetensors"] {
        folder.printed(&format!("{GIVEN} --output sum.{form}"));
        let line = format!("{GIVEN} --expect sum.{form} --tolerance 0");
        let expected = format!("sum: f32 [1, 3] as 'sum.{form}' has it\n");
        assert_eq!(folder.printed(&line), expected);
    }
    folder.write("far.json", "[[1, 3, 0.5]]");
    folder.write("wide.json", "[[1, 2.5, 0], [1, 1, 1]]");
    folder.write("doubles.npy", super::command::doubles());
    for (flags, status, expected) in [
        (
            "--expect far.json",
            1,
            "error: output 'sum' is not as 'far.json' has it: 2 of 3 elements are off by more than \
             0.0001 + 0.0001 * |expected|; the worst is at [0, 2]: expected 0.5, found 0, difference 0.5",
        ),
        (
            "--expect far.json --tolerance 0.3",
            1,
            "1 of 3 elements is off by more than 0.3 + 0.3 * |expected|",
        ),
        (
            "--expect wide.json",
            1,
            "expected f32 [2, 3], found f32 [1, 3]",
        ),
        (
            "--expect doubles.npy",
            1,
            "expected f64 [1, 3], found f32 [1, 3]",
        ),
        (
            "--expect sum=missing.npy",
            1,
            "cannot read what output 'sum' is expected to be from 'missing.npy': No such file",
        ),
        (
            "--expect two.onnx",
            1,
            "from 'two.onnx': it is no .npy, .npz, .safetensors, .pb or .json file",
        ),
        ("--expect z=far.json", 2, "the model has no output 'z'"),
        (
            "--expect far.json --expect far.json",
            2,
            "output 'sum' is expected twice",
        ),
        ("--expect -", 2, "--expect takes a file"),
        ("--tolerance 1", 2, "--expect <NAME=FILE>"),
        ("--expect far.json --tolerance=-1", 2, "--tolerance"),
        (
            "--expect far.json --tolerance nan",
            2,
            "expected a number of 0 or more",
        ),
        (
            "--expect far.json --output ./far.json",
            2,
            "which would be lost",
        ),
    ] {
        let said = folder.refused(&format!("{GIVEN} {flags}"), status);
        assert!(said.contains(expected), "{flags}\n{said}");
    }
    let line = format!("{GIVEN} --expect far.json --json");
    let (status, document, _) = folder.run(&line);
    let document: Json = serde_json::from_str(&document).unwrap();
    assert_eq!((status, &document["exit_status"]), (1, &json!(1)));
    assert_eq!(
        document["expected"],
        json!([{
            "name": "sum", "file": "far.json", "is_equal": false, "tolerance": 1e-4, "n_elements": 3, "n_differing": 2,
            "worst": {"index": [0, 2], "expected": 0.5, "found": 0.0, "difference": 0.5},
        }])
    );
}

#[test]
fn integers_are_compared_by_the_absolute_part() {
    let folder = Folder::new("indices");
    folder.write("same.mlir", identity("?xi64", "[\"N\"]"));
    folder.write("found.json", "[50000, 7]");
    folder.write("wanted.json", "[50001, 7]");
    let line = "run same.mlir --input found.json --expect wanted.json";
    let said = folder.refused(line, 1);
    let expected = "1 of 2 elements is off by more than 0.0001; the worst is at [0]: expected 50001, found 50000";
    assert!(said.contains(expected), "{said}");
    folder.printed(&format!("{line} --tolerance 1"));
}

#[test]
fn named_tensors_go_in_and_come_out() {
    let folder = Folder::new("named");
    folder.printed(&format!(
        "{GIVEN} --output-dir out --output-format safetensors"
    ));
    let again = "run two.onnx --input x=out/sum.safetensors:sum --input y=y.json";
    let expected = "sum: f32 [1, 3] = [[1, 2.5, 0]]\n";
    assert_eq!(folder.printed(again), expected);
    for (file, expected) in [
        (
            "out/sum.safetensors:x",
            "the file has no tensor 'x', but sum; name one by FILE.safetensors:KEY",
        ),
        ("cut.safetensors", "not a readable safetensors file"),
        ("long.safetensors", "not a readable safetensors file"),
    ] {
        folder.write("cut.safetensors", b"\x40\0\0\0\0\0\0\0{\"x\":");
        folder.write("long.safetensors", b"\0\0\0\x05\0\0\0\0{\"x\":");
        let said = folder.refused(&format!("run two.onnx --input x={file} --random"), 1);
        assert!(said.contains(expected), "{file}: {said}");
    }
    for (kind, text) in [
        ("2xf8E4M3FN", "[448, 0.5]"),
        ("3xbf16", "[1, 2, 3]"),
        ("2xi1", "[true, false]"),
    ] {
        let dims = &kind[..1];
        folder.write("same.mlir", identity(kind, &format!("[{dims} : i64]")));
        folder.write("in.json", text);
        folder.printed("run same.mlir --input in.json --output small.safetensors");
        let line = "run same.mlir --input small.safetensors --expect in.json --tolerance 0";
        assert!(
            folder.printed(line).contains("as 'in.json' has it"),
            "{kind}"
        );
    }
    folder.write("same.mlir", identity("1x!onnx.string", "[1 : i64]"));
    folder.write("in.json", "[\"a\"]");
    let said = folder.refused("run same.mlir --input in.json --output a.safetensors", 1);
    assert!(
        said.contains("the format has no type of elements for str"),
        "{said}"
    );
}

/// A WAV file, of whose header any part may be another.
struct Wav {
    tag: u16,
    n_channels: u16,
    rate: u32,
    n_bits: u16,
    n_bytes: Option<u32>,
}

const MONO: Wav = Wav {
    tag: 1,
    n_channels: 1,
    rate: 8_000,
    n_bits: 16,
    n_bytes: None,
};

impl Wav {
    fn bytes(&self, data: &[u8]) -> Vec<u8> {
        let frame = self.n_bits / 8 * self.n_channels;
        let n_bytes = self.n_bytes.unwrap_or(u32::try_from(data.len()).unwrap());
        let mut bytes = b"RIFF\xff\xff\xff\x00WAVEfmt \x10\0\0\0".to_vec();
        bytes.extend(self.tag.to_le_bytes());
        bytes.extend(self.n_channels.to_le_bytes());
        bytes.extend(self.rate.to_le_bytes());
        bytes.extend((self.rate.wrapping_mul(frame.into())).to_le_bytes());
        bytes.extend(frame.to_le_bytes());
        bytes.extend(self.n_bits.to_le_bytes());
        bytes.extend(b"data");
        bytes.extend(n_bytes.to_le_bytes());
        bytes.extend(data);
        bytes
    }
}

fn shorts(samples: &[i16]) -> Vec<u8> {
    samples
        .iter()
        .flat_map(|sample| sample.to_le_bytes())
        .collect()
}

#[test]
fn sound_is_mixed_scaled_and_laid_out() {
    let folder = Folder::new("sound");
    let stereo = Wav {
        n_channels: 2,
        ..MONO
    };
    folder.write("mono.wav", MONO.bytes(&shorts(&[0, 16_384, -32_768])));
    folder.write(
        "stereo.wav",
        stereo.bytes(&shorts(&[0, 16_384, -32_768, 16_384])),
    );
    folder.write("bytes.wav", Wav { n_bits: 8, ..MONO }.bytes(&[128, 192, 0]));
    folder.write(
        "three.wav",
        Wav { n_bits: 24, ..MONO }.bytes(&[0, 0, 0x40, 0, 0, 0x80]),
    );
    folder.write(
        "long.wav",
        Wav { n_bits: 32, ..MONO }.bytes(&[0, 0, 0, 0x40]),
    );
    let floats: Vec<u8> = [0.25_f32, -2.0]
        .iter()
        .flat_map(|float| float.to_le_bytes())
        .collect();
    folder.write(
        "floats.wav",
        Wav {
            tag: 3,
            n_bits: 32,
            ..MONO
        }
        .bytes(&floats),
    );
    for (kind, dims, file, expected) in [
        ("?xf32", "[\"N\"]", "mono", "f32 [3] = [0, 0.5, -1]"),
        ("?xf32", "[\"N\"]", "stereo", "f32 [2] = [0.25, -0.25]"),
        (
            "1x?xf32",
            "[1 : i64, \"N\"]",
            "stereo",
            "f32 [1, 2] = [[0.25, -0.25]]",
        ),
        (
            "?x?xf32",
            "[\"B\", \"N\"]",
            "stereo",
            "f32 [1, 2] = [[0.25, -0.25]]",
        ),
        (
            "2x?xf32",
            "[2 : i64, \"N\"]",
            "stereo",
            "f32 [2, 2] = [[0, -1], [0.5, 0.5]]",
        ),
        (
            "2x?xf32",
            "[2 : i64, \"N\"]",
            "bytes",
            "f32 [2, 3] = [[0, 0.5, -1], [0, 0.5, -1]]",
        ),
        (
            "1x?x2xf32",
            "[1 : i64, \"N\", 2 : i64]",
            "stereo",
            "f32 [1, 2, 2] = [[[0, 0.5], [-1, 0.5]]]",
        ),
        (
            "1x1x?xf16",
            "[1 : i64, 1 : i64, \"N\"]",
            "three",
            "f16 [1, 1, 2] = [[[0.5, -1]]]",
        ),
        ("?xf64", "[\"N\"]", "long", "f64 [1] = [0.5]"),
        ("?xf32", "[\"N\"]", "floats", "f32 [2] = [0.25, -2]"),
        ("?xi16", "[\"N\"]", "mono", "i16 [3] = [0, 16384, -32768]"),
    ] {
        folder.write("same.mlir", identity(kind, dims));
        let shown = folder.printed(&format!("run same.mlir --input {file}.wav"));
        let shown: Vec<&str> = shown.lines().map(str::trim).collect();
        let shown = shown.join(" ").replace("y: ", "");
        assert_eq!(shown, expected, "{kind} {file}");
    }
    // Of a second half a second at half the rate.
    folder.write("same.mlir", identity("?xf32", "[\"N\"]"));
    folder.write("second.wav", MONO.bytes(&shorts(&[8_192; 8_000])));
    let document = folder.printed("run same.mlir --input second.wav --rate 4000 --json");
    let document: Json = serde_json::from_str(&document).unwrap();
    let values = document["outputs"][0]["value"].as_array().unwrap();
    assert_eq!(values.len(), 4_000);
    let middle = &values[1_000..3_000];
    assert!(
        middle
            .iter()
            .all(|value| (value.as_f64().unwrap() - 0.25).abs() < 1e-4)
    );
}

#[test]
fn sound_has_other_chunks_of_any_length() {
    let folder = Folder::new("chunks");
    folder.write("same.mlir", identity("?xf32", "[\"N\"]"));
    let bytes = MONO.bytes(&shorts(&[16_384, -32_768]));
    let data = bytes.windows(4).position(|word| word == b"data").unwrap();
    for (len, chunk) in [(2, &b"ab"[..]), (3, b"abc\0"), (0, b"")] {
        let mut longer = bytes[..data].to_vec();
        longer.extend(b"LIST");
        longer.extend(u32::to_le_bytes(len));
        longer.extend(chunk);
        longer.extend(&bytes[data..]);
        folder.write("a.wav", longer);
        let shown = folder.printed("run same.mlir --input a.wav");
        assert_eq!(shown, "y: f32 [2] = [0.5, -1]\n", "{len}");
    }
    let mut cut = bytes[..data].to_vec();
    cut.extend(b"LIST\xf0\xff\xff\xffabc");
    folder.write("a.wav", cut);
    let said = folder.refused("run same.mlir --input a.wav", 1);
    assert!(said.contains("not a readable WAV file"), "{said}");
}

#[test]
fn sound_that_lies_is_refused() {
    let folder = Folder::new("lies");
    let data = shorts(&[1, 2, 3, 4]);
    let files: [(&str, Vec<u8>, &str); 9] = [
        (
            "cut",
            MONO.bytes(&data)[..30].to_vec(),
            "not a readable WAV file",
        ),
        (
            "short",
            Wav {
                n_bytes: Some(64),
                ..MONO
            }
            .bytes(&data),
            "not a readable WAV file",
        ),
        (
            "endless",
            Wav {
                n_bytes: Some(u32::MAX - 1),
                ..MONO
            }
            .bytes(&data),
            "its header promises 2147483647 samples",
        ),
        (
            "odd",
            Wav {
                n_bytes: Some(7),
                ..MONO
            }
            .bytes(&data),
            "not a readable WAV file",
        ),
        (
            "mute",
            Wav {
                n_channels: 0,
                ..MONO
            }
            .bytes(&data),
            "not a readable WAV file",
        ),
        (
            "still",
            Wav { rate: 0, ..MONO }.bytes(&data),
            "it has no samples a second",
        ),
        (
            "thin",
            Wav { n_bits: 0, ..MONO }.bytes(&data),
            "not a readable WAV file",
        ),
        (
            "odd-bits",
            Wav { n_bits: 12, ..MONO }.bytes(&data),
            "not a readable WAV file",
        ),
        (
            "packed",
            Wav { tag: 2, ..MONO }.bytes(&data),
            "not a readable WAV file",
        ),
    ];
    folder.write("same.mlir", identity("?xf32", "[\"N\"]"));
    for (name, bytes, expected) in files {
        folder.write("a.wav", bytes);
        let said = folder.refused("run same.mlir --input a.wav --rate 16000", 1);
        assert!(said.contains(expected), "{name}: {said}");
    }
    folder.write("a.wav", Wav { rate: 1, ..MONO }.bytes(&data));
    let said = folder.refused("run same.mlir --input a.wav --rate 4000000000", 1);
    assert!(
        said.contains(
            "a sound of 16000000000 samples is larger than the limit of 1073741824 bytes"
        ),
        "{said}"
    );
    let said = folder.refused(
        "run same.mlir --input a.wav --rate 1000000 --max-memory 1M",
        5,
    );
    assert!(
        said.contains("there is no memory for a sound of 16000000 bytes"),
        "{said}"
    );
    folder.refused("run same.mlir --input a.wav --rate 0", 2);
    for (kind, dims, expected) in [
        ("?xi64", "[\"N\"]", "a sound can't be elements of i64"),
        (
            "1x1x1x?xf32",
            "[1 : i64, 1 : i64, 1 : i64, \"N\"]",
            "a sound has from 1 to 3 dimensions",
        ),
        (
            "2x1x?xf32",
            "[2 : i64, 1 : i64, \"N\"]",
            "the model takes 2 sounds at once, found one",
        ),
        (
            "3x?xf32",
            "[3 : i64, \"N\"]",
            "the sound has 2 channels, but the model takes 3",
        ),
    ] {
        folder.write("same.mlir", identity(kind, dims));
        folder.write(
            "a.wav",
            Wav {
                n_channels: 2,
                ..MONO
            }
            .bytes(&data),
        );
        let said = folder.refused("run same.mlir --input a.wav", 1);
        assert!(said.contains(expected), "{kind}: {said}");
    }
}

#[test]
fn folder_is_a_batch_whose_calls_fail_each_on_its_own() {
    let folder = Folder::new("batch");
    folder.write("in/a.json", "[[1, 2, 3]]");
    folder.write("in/b.json", "[[4, 5, 6]]");
    folder.write("in/.hidden", "no");
    let run = "run two.onnx --input y=y.json --input x=in";
    let lines =
        "in/a.json: sum: f32 [1, 3] = [[1, 2, 3]]\nin/b.json: sum: f32 [1, 3] = [[4, 5, 6]]\n";
    assert_eq!(folder.printed(run), lines);
    assert_eq!(folder.printed(&format!("{run}/*.json")), lines);
    assert_eq!(
        folder.printed("run two.onnx --input y=y.json --input x=in/a.json --input x=in/b.json"),
        lines
    );
    let top = folder.printed(&format!("{run} --top 2"));
    assert_eq!(top, "in/a.json: sum: 2 3, 1 2\nin/b.json: sum: 2 6, 1 5\n");
    // Of two inputs, in the order of names.
    let pairs = folder.printed("run two.onnx --input x=in --input y=in");
    assert!(
        pairs.ends_with("in/b.json: sum: f32 [1, 3] = [[8, 10, 12]]\n"),
        "{pairs}"
    );
    let written = folder.printed(&format!("{run} --output-dir out"));
    assert_eq!(
        written,
        "in/a.json: sum: 'out/a.sum.npy'\nin/b.json: sum: 'out/b.sum.npy'\n"
    );
    assert_eq!(
        folder.printed("run two.onnx --input y=y.json --input x=out/b.sum.npy"),
        "sum: f32 [1, 3] = [[4, 5, 6]]\n"
    );

    folder.write("in/aa.json", "[[1, 2]]");
    folder.write("in/c.txt", "none");
    let (status, stdout, stderr) = folder.run(run);
    assert_eq!((status, stdout.lines().count()), (1, 4), "{stdout}");
    assert!(
        stdout.starts_with("in/a.json: sum") && stdout.contains("\nin/aa.json: error: "),
        "{stdout}"
    );
    assert!(
        stdout.contains("\nin/b.json: sum") && stdout.contains("\nin/c.txt: error: "),
        "{stdout}"
    );
    assert!(
        stderr.ends_with("2 of 4 calls failed: in/aa.json, in/c.txt\n"),
        "{stderr}"
    );
    let (status, document, _) = folder.run(&format!("{run} --json"));
    let document: Json = serde_json::from_str(&document).unwrap();
    assert_eq!((status, &document["exit_status"]), (1, &json!(1)));
    let calls = document["calls"].as_array().unwrap();
    assert_eq!(calls[0]["inputs"], json!({"x": "in/a.json"}));
    assert_eq!(calls[0]["outputs"][0]["value"], json!([[1.0, 2.0, 3.0]]));
    assert!(
        calls[1]["error"].as_str().unwrap().contains("in/aa.json"),
        "{}",
        calls[1]
    );
    // Files that could be written are there.
    let (status, ..) = folder.run(&format!("{run} --output-dir some"));
    assert_eq!(status, 1);
    assert_eq!(
        folder.printed("run two.onnx --input y=y.json --input x=some/a.sum.npy"),
        "sum: f32 [1, 3] = [[1, 2, 3]]\n"
    );
    for (flags, status, expected) in [
        (
            "--input x=in --input y=out --random",
            2,
            "expected 4 for 'y', as for 'x', found 2",
        ),
        (
            "--input x=in --random --output a.npy",
            2,
            "--output is for one call, but inputs are given for 4",
        ),
        (
            "--input x=in --random --expect y.json",
            2,
            "--expect is for one call",
        ),
        (
            "--input x=in/*.png --random",
            1,
            "cannot read the folder 'in': it has no such files",
        ),
        (
            "--input x=nowhere/* --random",
            1,
            "cannot read the folder 'nowhere': No such file",
        ),
    ] {
        let said = folder.refused(&format!("run two.onnx {flags}"), status);
        assert!(said.contains(expected), "{flags}\n{said}");
    }
    let said = folder.refused("bench two.onnx --input x=in", 2);
    assert!(
        said.contains("input 'x' is given several files: `tfrt run` takes a batch"),
        "{said}"
    );
}

/// Returns a tokenizer of whole words, whose numbers are their places, 0 for a word that is not known.
fn tokenizer(words: &[&str]) -> String {
    let vocabulary: serde_json::Map<String, Json> = words
        .iter()
        .enumerate()
        .map(|(id, word)| ((*word).to_owned(), json!(id)))
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
    })
    .to_string()
}

/// Returns a model that takes tokens and what goes along with them.
fn bert() -> String {
    let mut text = "module attributes {onnx.opset = 17 : i64} {
  func.func @main(%a: tensor<1x?xi64>, %b: tensor<1x?xi64>, %c: tensor<1x?xi32>) -> (tensor<1x?xi64>, tensor<1x?xi64>, tensor<1x?xi32>)
      attributes {model.input_names = [\"input_ids\", \"attention_mask\", \"token_type_ids\"],
      model.output_names = [\"a\", \"b\", \"c\"]} {\n"
        .to_owned();
    for (value, kind) in [("a", "i64"), ("b", "i64"), ("c", "i32")] {
        writeln!(
            text,
            "%{value}1 = \"onnx.Identity\"(%{value}) : (tensor<1x?x{kind}>) -> tensor<1x?x{kind}>"
        )
        .unwrap();
    }
    text + "func.return %a1, %b1, %c1 : tensor<1x?xi64>, tensor<1x?xi64>, tensor<1x?xi32>\n  }\n}"
}

#[cfg(feature = "tokenizer")]
#[test]
fn text_is_the_numbers_of_its_tokens() {
    let folder = Folder::new("text");
    folder.write("tokenizer.json", tokenizer(&["?", "one", "two", "[PAD]"]));
    folder.write("bert.mlir", bert());
    folder.write("text.txt", "two one three\n");
    let expected =
        "a: i64 [1, 3] = [[2, 1, 0]]\nb: i64 [1, 3] = [[1, 1, 1]]\nc: i32 [1, 3] = [[0, 0, 0]]\n";
    let with = "--tokenizer tokenizer.json";
    let run = format!("run bert.mlir {with} --input input_ids=text.txt");
    assert_eq!(folder.printed(&run), expected);
    folder.write("mask.json", "[[1, 1, 0]]");
    let masked = folder.printed(&format!("{run} --input attention_mask=mask.json"));
    assert!(masked.contains("b: i64 [1, 3] = [[1, 1, 0]]"), "{masked}");
    folder.write("same.mlir", named("ids", "1x4xi64", "[1 : i64, 4 : i64]"));
    let one = folder.printed(&format!("run same.mlir {with} --input ids=one"));
    assert_eq!(one, "y: i64 [1, 4] = [[1, 3, 3, 3]]\n");
    let batch = format!("run same.mlir {with} --input ids=one --input ids=two,one");
    assert_eq!(
        folder.printed(&batch),
        "one: y: i64 [1, 4] = [[1, 3, 3, 3]]\ntwo,one: y: i64 [1, 4] = [[2, 0, 1, 3]]\n"
    );
    folder.write("long.txt", "one one one one one");
    folder.write("bytes.txt", b"one \xff");
    folder.write("cut.json", &tokenizer(&["?", "one"])[..60]);
    folder.write("odd.json", tokenizer(&["one"]));
    let mut filling: Json = serde_json::from_str(&tokenizer(&["?", "one"])).unwrap();
    let fill = |padding: &mut Json, length: u64| {
        *padding = json!({
            "strategy": {"Fixed": length}, "direction": "Left", "pad_to_multiple_of": 3, "pad_id": 7, "pad_type_id": 5,
            "pad_token": "[PAD]",
        });
    };
    fill(&mut filling["padding"], 2);
    folder.write("filling.json", filling.to_string());
    let line = "run bert.mlir --tokenizer filling.json --input input_ids=one";
    assert_eq!(
        folder.printed(line),
        "a: i64 [1, 3] = [[7, 7, 1]]\nb: i64 [1, 3] = [[0, 0, 1]]\nc: i32 [1, 3] = [[5, 5, 0]]\n"
    );
    fill(&mut filling["padding"], 1 << 40);
    folder.write("endless.json", filling.to_string());
    for (flags, status, expected) in [
        (
            format!("{with} --input ids=long.txt"),
            1,
            "the text has 5 tokens, but the model takes 4",
        ),
        (
            format!("{with} --input ids=bytes.txt"),
            1,
            "expected text in UTF-8, found another byte at 4",
        ),
        (format!("{with} --input ids=missing.txt"), 1, "No such file"),
        (
            "--tokenizer cut.json --input ids=one".to_owned(),
            1,
            "cannot read the tokenizer from 'cut.json': it is none: ",
        ),
        (
            "--tokenizer same.mlir --input ids=one".to_owned(),
            1,
            "cannot read the tokenizer from 'same.mlir': it is none: ",
        ),
        (
            "--tokenizer missing --input ids=one".to_owned(),
            1,
            "cannot read the tokenizer from 'missing': No such file",
        ),
        (
            "--tokenizer endless.json --input ids=one".to_owned(),
            1,
            "the tokenizer fills texts with more than 1048576 tokens",
        ),
        (
            "--tokenizer odd.json --input ids=none".to_owned(),
            1,
            "the tokenizer fails: ",
        ),
        (
            format!("{with} --input ids=x.json"),
            2,
            "--tokenizer is for text",
        ),
    ] {
        let said = folder.refused(&format!("run same.mlir {flags}"), status);
        assert!(said.contains(expected), "{flags}\n{said}");
    }
}

#[cfg(not(feature = "tokenizer"))]
#[test]
fn text_needs_a_feature() {
    let folder = Folder::new("no-text");
    folder.write("tokenizer.json", tokenizer(&["?", "one"]));
    folder.write("bert.mlir", bert());
    let line = "run bert.mlir --tokenizer tokenizer.json --input input_ids=one";
    let said = folder.refused(line, 2);
    assert!(
        said.contains("this tfrt was built without --tokenizer"),
        "{said}"
    );
}
