//! Models whose weights were packed when they were compiled, for this processor and for others.

use tfrt::bef::{BefBuffer, BefFile};
use tfrt::compiler::{self, CompileOptions};
use tfrt::host::codec::{DecodeContext, EncodedValue};
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::tensor::DenseHostTensor;
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{Model, OpenError, OpenOptions, Program, Runtime};

/// Convolutions of all kinds, and products, by weights that are anything.
fn text() -> String {
    let mut text = String::from(
        r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<1x40x9x9xf32>) -> tensor<1x7xf32>
      attributes {model.input_names = ["x"], model.output_names = ["y"]} {
"#,
    );
    let mut seed = 1_u32;
    let mut weights = |name: &str, shape: &[usize]| {
        let n = shape.iter().product::<usize>();
        let bytes: String = (0..n)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let number = f32::from((seed >> 20) as u16) / 4096.0 - 0.5;
                let bytes = number.to_le_bytes();
                bytes
                    .iter()
                    .map(|byte| format!("{byte:02X}"))
                    .collect::<String>()
            })
            .collect();
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        let ty = format!("tensor<{}xf32>", shape.join("x"));
        format!(
            "    %{name} = \"onnx.Constant\"() {{value = dense<\"0x{bytes}\"> : {ty}}} : () -> {ty}\n"
        )
    };
    let image = "tensor<1x40x9x9xf32>";
    let mut last = "x".to_owned();
    // Small and large squares, groups, channels that don't mix, windows of one element.
    let kinds = [
        (40, 40, 1, 3),
        (40, 10, 4, 3),
        (40, 1, 40, 3),
        (40, 40, 1, 1),
        (40, 40, 1, 5),
    ];
    for (index, (filters, own, groups, side)) in kinds.into_iter().enumerate() {
        text += &weights(&format!("w{index}"), &[filters, own, side, side]);
        text += &weights(&format!("b{index}"), &[filters]);
        let pad = side / 2;
        text += &format!(
            "    %c{index} = \"onnx.Conv\"(%{last}, %w{index}, %b{index}) {{group = {groups} : i64, \
             pads = [{pad}, {pad}, {pad}, {pad}]}} : ({image}, tensor<{filters}x{own}x{side}x{side}xf32>, \
             tensor<{filters}xf32>) -> {image}\n"
        );
        last = format!("c{index}");
    }
    text += &format!(
        "    %p = \"onnx.GlobalAveragePool\"(%{last}) : ({image}) -> tensor<1x40x1x1xf32>
    %f = \"onnx.Flatten\"(%p) : (tensor<1x40x1x1xf32>) -> tensor<1x40xf32>\n"
    );
    text += &weights("m", &[40, 7]);
    text += &weights("n", &[7]);
    text +=
        "    %q = \"onnx.MatMul\"(%f, %m) : (tensor<1x40xf32>, tensor<40x7xf32>) -> tensor<1x7xf32>
    %y = \"onnx.Add\"(%q, %n) : (tensor<1x7xf32>, tensor<7xf32>) -> tensor<1x7xf32>
    func.return %y : tensor<1x7xf32>
  }
}
";
    text
}

pub(super) fn input() -> Input {
    Input::Text(Source::new("stored.mlir", text()))
}

fn compiled(set: InstructionSet) -> BefBuffer {
    input()
        .compile_for(&CompileOptions::default(), set, &OpenOptions::new())
        .unwrap()
}

pub(super) fn open(runtime: &Runtime, bytes: BefBuffer) -> Result<Model, OpenError> {
    let program = Program::from_file(BefFile::open(bytes).unwrap(), runtime)?;
    Model::from_program(program, runtime)
}

pub(super) fn call(runtime: &Runtime, model: &Model) -> Vec<f32> {
    let elements: Vec<f32> = (0..40 * 81).map(|n| (n % 13) as f32 / 4.0 - 1.5).collect();
    let x = DenseHostTensor::from_slice(runtime.host().allocator(), &[1, 40, 9, 9], &elements);
    let outputs = model
        .call(&runtime.context(), [("x", x.unwrap())])
        .wait()
        .unwrap();
    outputs.tensor("y").unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn weights_that_were_packed_for_any_processor_give_the_same_bits() {
    let runtime = Runtime::new();
    let expected = call(&runtime, &runtime.load_model(&input()).unwrap());
    assert!(expected.iter().all(|element| element.is_finite()));
    for set in InstructionSet::ALL {
        let bytes = compiled(set);
        let text = String::from_utf8_lossy(bytes.as_bytes()).into_owned();
        assert!(text.contains("cpu.stored.value"));
        assert!(text.contains("!graph.prepared") && !text.contains("cpu.graph.prepare"));
        let runtime = Runtime::new();
        let model = open(&runtime, bytes).unwrap();
        assert_eq!(call(&runtime, &model), expected, "{set:?}");
        let repacked = tfrt::kernels::graph::stored::repacked(runtime.host());
        let is_ours = set == InstructionSet::best();
        assert_eq!(repacked, if is_ours { vec![] } else { vec![set.name()] });
    }
}

#[test]
fn weights_lie_at_lines_of_the_caches() {
    let bytes = compiled(InstructionSet::best());
    let file = BefFile::open(bytes).unwrap();
    let runtime = Runtime::new();
    let program = Program::from_file(file, &runtime).unwrap();
    let constants = program.function("main.constants").unwrap();
    let made = constants.call(&runtime.context(), ()).wait().unwrap();
    let host = runtime.host();
    for value in made.into_inner() {
        let best = InstructionSet::best();
        let Some(kept) = tfrt::kernels::graph::stored::store(&value, host, best) else {
            continue;
        };
        for part in kept.unwrap().parts() {
            assert!(part.len_bytes() < 64 || part.address().is_multiple_of(64));
        }
    }
}

#[test]
fn what_was_packed_compiles_to_the_same_bytes_again() {
    let bytes = compiled(InstructionSet::best());
    let restored = compiler::decompile(&BefFile::open(bytes.clone()).unwrap()).unwrap();
    let again = compiler::compile(&restored.module, &CompileOptions::default()).unwrap();
    assert_eq!(again.as_bytes(), bytes.as_bytes());
}

#[test]
fn mapped_weights_are_not_copied() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("stored-mapped");
    std::fs::create_dir_all(&folder).unwrap();
    let ty = "tensor<1536x1536xf32>";
    let text = format!(
        "module attributes {{onnx.opset = 17 : i64}} {{
  func.func @main(%x: tensor<?x1536xf32>) -> tensor<?x1536xf32>
      attributes {{model.input_names = [\"x\"], model.output_names = [\"y\"]}} {{
    %w = \"onnx.Constant\"() {{value = dense<0.5> : {ty}}} : () -> {ty}
    %y = \"onnx.MatMul\"(%x, %w) : (tensor<?x1536xf32>, {ty}) -> tensor<?x1536xf32>
    func.return %y : tensor<?x1536xf32>
  }}
}}
"
    );
    std::fs::write(folder.join("wide.mlir"), text).unwrap();
    let tfrt = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tfrt"));
        let output = command
            .args(arguments)
            .current_dir(&folder)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        String::from_utf8(output.stdout).unwrap()
    };
    tfrt(&["compile", "wide.mlir"]);
    let seen = tfrt(&["inspect", "memory", "wide.bef", "--mmap", "--json"]);
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
    let weights_bytes = 1536.0 * 1536.0 * 4.0;
    assert!(seen["file_bytes"].as_f64().unwrap() > weights_bytes);
    let open = &seen["stages"][0];
    assert_eq!(open["name"], "open");
    println!("ready in {} ms", open["elapsed_ms"]);
    assert!(
        open["most_bytes"].as_f64().unwrap() < weights_bytes / 20.0,
        "{open}"
    );
    // The weights are in nobody's own memory; where the system tells, and no sanitizer keeps books of all memory.
    if let Some(private) = open["private_bytes"].as_f64()
        && !cfg!(tfrt_no_free_lists)
    {
        assert!(private < weights_bytes / 20.0, "{open}");
    }
    let plan = &seen["plan"];
    assert_eq!(plan["most_bytes"], plan["arena_bytes"]);
}

/// Opens a file whose stored values are told otherwise; returns what is said.
fn refused(change: impl Fn(&str) -> String) -> String {
    let restored = compiler::decompile(&BefFile::open(compiled(InstructionSet::best())).unwrap());
    let text = restored.unwrap().module.to_string();
    let changed = change(&text);
    assert_ne!(changed, text);
    let runtime = Runtime::new();
    let changed = Input::Text(Source::new("changed.mlir", changed));
    match runtime.load_model(&changed) {
        Ok(_) => "it was taken".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn records_that_tell_something_else_are_refused() {
    for (from, to) in [
        ("version = 1", "version = 2"),
        ("version = 1", "version = -1"),
        ("version = 1", "version = \"two\""),
        ("type = \"!graph.prepared\"", "type = \"!t.tensor\""),
        ("type = \"!graph.prepared\"", "type = \"!graph.unheard\""),
        ("type = \"!graph.prepared\"", "type = 4 : i64"),
        ("part001 = ", "part002 = \"\", part001 = "),
        ("part001 = ", "part001 = \"\", part002 = "),
        (
            "part001 = ",
            "part001 = dense<1> : tensor<3xui8>, part002 = ",
        ),
        ("head = ", "head = dense<1> : tensor<3xui8>, other = "),
    ] {
        let said = refused(|text| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        assert!(!said.contains("it was taken"), "{from} -> {to}");
    }
}

/// Every byte of the head says something: what is packed, and how. Other bytes may be other weights, but nothing that
/// is used wrongly.
#[test]
fn heads_that_tell_something_else_are_refused() {
    let runtime = Runtime::new();
    let host = runtime.host();
    let program = BefFile::open(compiled(InstructionSet::best())).unwrap();
    let program = Program::from_file(program, &runtime).unwrap();
    let constants = program.function("main.constants").unwrap();
    let made = constants.call(&runtime.context(), ()).wait().unwrap();
    let mut n_values = 0;
    for value in made.into_inner() {
        let best = InstructionSet::best();
        let Some(kept) = tfrt::kernels::graph::stored::store(&value, host, best) else {
            continue;
        };
        let kept = kept.unwrap();
        n_values += 1;
        for at in 0..kept.head().len() {
            for change in [1, 0x80] {
                let mut head = kept.head().to_vec();
                head[at] ^= change;
                let changed = EncodedValue::new(
                    kept.type_name(),
                    kept.version(),
                    head,
                    kept.parts().to_vec(),
                );
                let decoded = host.codecs().decode(&changed, &DecodeContext::new(host));
                let Ok(decoded) = decoded else { continue };
                let again = host.codecs().encode(&decoded, host.allocator()).unwrap();
                assert_eq!(again.head(), changed.head(), "byte {at}");
            }
        }
    }
    assert!(n_values > 5);
}
