//! `tfrt check` and `tfrt run` with `--device`, on a machine that need not have a GPU.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A model of which the complementary error function has no kernel on GPUs.
const MODEL: &str = r#"
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {
    model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [[4]]} {
  %0 = "graph.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.erfc"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %y = "graph.exp"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  tfrt.return %y : tensor<4xf32>
}"#;

/// Writes the model to a file of a test.
fn model(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, MODEL).unwrap();
    path
}

fn tfrt(arguments: &[&str], path: &PathBuf) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command.args(arguments).arg(path).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[cfg(feature = "gpu")]
#[test]
fn a_check_for_a_gpu_names_what_runs_on_the_processor() {
    let path = model("devices_check.mlir");
    let checked = tfrt(&["check", "--device", "gpu:0"], &path);
    let (name, told) = (path.display().to_string(), text(&checked.stderr));
    assert_eq!(text(&checked.stdout), format!("{name}: ok\n"), "{told}");
    let expected = format!(
        "{name}: 2 of 3 nodes run on GPU:0; each call copies 2 tensors there and 2 back\n\
         on the processor, for want of a kernel on GPU:0:\n  erfc (f32)\n"
    );
    assert_eq!(told, expected);

    let json = text(&tfrt(&["check", "--device", "gpu:0", "--json"], &path).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let placement = &json["files"][0]["placement"];
    assert_eq!(placement["on_host"][0]["operation"], "erfc");
    assert_eq!(placement["n_copies_there"], 2);

    let strict = tfrt(&["check", "--device", "gpu:0", "--strict-device"], &path);
    assert_eq!(strict.status.code(), Some(1));
    let told = text(&strict.stderr);
    assert!(
        told.contains("1 node has no kernel on GPU:0: erfc (f32)"),
        "{told}"
    );
}

#[cfg(feature = "gpu")]
#[test]
fn what_needs_more_memory_of_a_gpu_than_is_allowed_fails() {
    let path = model("devices_limit.mlir");
    let run = |bytes: &str| {
        let simulated = ["run", "--device", "gpu:0", "--gpu-driver", "sim"];
        let limited = ["--random", "--max-device-memory", bytes];
        tfrt(&[&simulated[..], &limited[..]].concat(), &path)
    };
    let refused = run("1KiB");
    let told = text(&refused.stderr);
    let reason = "there are no 16 bytes on GPU:0: 0 of the 1024 that it is limited to are in use";
    assert!(told.contains(reason), "{told}");
    assert_eq!(refused.status.code(), Some(5), "{told}");
    let given = run("2MiB");
    assert_eq!(given.status.code(), Some(0), "{}", text(&given.stderr));
    let simulated = ["run", "--device", "gpu:0", "--gpu-driver", "sim"];
    let plain = tfrt(
        &[&simulated[..], &["--random", "--no-gpu-graphs"]].concat(),
        &path,
    );
    assert_eq!(text(&plain.stdout), text(&given.stdout));
}

/// Writes a model whose nodes are so many that they are captured together, and that can't become one kernel.
#[cfg(feature = "gpu")]
fn deep_model(name: &str) -> PathBuf {
    let nodes = (0..12).map(|at| {
        let from = if at == 0 {
            "%x".to_owned()
        } else {
            format!("%{}", at - 1)
        };
        format!("  %{at} = \"graph.softmax\"({from}) : (tensor<4xf32>) -> tensor<4xf32>\n")
    });
    let body: String = nodes.collect();
    let text = format!(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {{
    model.input_names = [\"x\"], model.output_names = [\"y\"], model.input_dims = [[4]]}} {{
{body}  tfrt.return %11 : tensor<4xf32>
}}"
    );
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

#[cfg(feature = "gpu")]
#[test]
fn a_measurement_tells_of_graphs() {
    let path = deep_model("devices_graphs.mlir");
    let simulated = ["bench", "--device", "gpu:0", "--gpu-driver", "sim:lazy:3"];
    let bench = |more: &[&str]| {
        // One call to warm up, and five.
        let calls = ["--runs", "5", "--warm-up", "0s"];
        tfrt(&[&simulated[..], &calls[..], more].concat(), &path)
    };
    let told = bench(&["--stats"]);
    let (said, errors) = (text(&told.stdout), text(&told.stderr));
    assert!(
        said.contains("GPUs: 1 graph captured, launched 4 times, in all calls"),
        "{said}{errors}"
    );
    assert_eq!(told.status.code(), Some(0), "{errors}");
    let json = text(&bench(&["--stats", "--json", "--no-gpu-graphs"]).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let none = serde_json::json!({ "captured": 0, "launched": 0 });
    assert_eq!(json["gpu_graphs"], none);
    let json = text(&bench(&["--json"]).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.get("gpu_graphs"), None);

    let run = [
        "run",
        "--random",
        "--stats",
        "--device",
        "gpu:0",
        "--gpu-driver",
        "sim",
    ];
    let told = text(&tfrt(&run, &path).stderr);
    assert!(
        told.contains("GPUs: 0 graphs captured, launched 0 times"),
        "{told}"
    );
}

#[cfg(feature = "gpu")]
#[test]
fn a_driver_for_a_model_on_the_processor_is_refused() {
    let path = model("devices_driver.mlir");
    for command in [&["run", "--random"][..], &["bench"]] {
        for device in [&[][..], &["--device", "cpu:0"]] {
            let words = [command, &["--gpu-driver", "sim"], device].concat();
            let refused = tfrt(&words, &path);
            let told = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{words:?}: {told}");
            assert!(
                told.contains("--gpu-driver names the driver of --device gpu:N"),
                "{told}"
            );
        }
    }
}

#[cfg(not(feature = "gpu"))]
#[test]
fn a_check_for_a_gpu_is_refused_by_a_command_without_them() {
    let path = model("devices_check.mlir");
    let checked = tfrt(&["check", "--device", "gpu:0"], &path);
    assert_eq!(checked.status.code(), Some(1));
    let told = text(&checked.stderr);
    let reason = "this command was built without the feature `gpu`";
    assert!(told.contains(reason), "{told}");
}

#[test]
fn strictness_needs_a_device() {
    let path = model("devices_strict.mlir");
    let run = tfrt(&["run", "--strict-device"], &path);
    assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
    // The processor has kernels for all.
    let run = tfrt(&["check", "--device", "cpu:0", "--strict-device"], &path);
    assert!(run.status.success(), "{}", text(&run.stderr));
}
