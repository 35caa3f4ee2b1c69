//! Runs the original's own programs for GPUs on simulated ones, if there is a folder with them: `cargo xtask gpu-sim`
//! puts one there, and sets `TFRT_GPU_UPSTREAM` to it. Nothing of them is kept here.
//!
//! A program passes if it prints what its comments ask for, reports the errors that they announce and no others, and
//! nothing is found or left on the simulated GPU, for each order of commands and each seed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

use super::filecheck;

/// Orders in which the commands of a simulated GPU run.
const ORDERS: [&str; 5] = ["eager", "lazy", "random", "longest-first", "starving"];

/// Returns a test for each program, none without the folder.
pub fn trials() -> Vec<Trial> {
    let Some(folder) = std::env::var_os("TFRT_GPU_UPSTREAM") else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    collect(Path::new(&folder), &mut paths);
    paths.sort();
    let trial = |path: PathBuf| {
        let name = path
            .strip_prefix(&folder)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        Trial::test(format!("upstream/{name}"), move || check(&path))
    };
    let is_run = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_default();
        // One is switched off by its author.
        let is_off = text.lines().any(|line| line.trim() == "// RUN: true");
        let init = init_of(&runs_of(&text));
        !is_off && !functions(&text, init.as_deref()).is_empty()
    };
    paths.into_iter().filter(is_run).map(trial).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "mlir")
        {
            paths.push(path);
        }
    }
}

/// Programs that use a GPU wrongly themselves, and the error that says so: descriptors of images of 10 by 10 for buffers of
/// 3 by 3, beyond whose ends a GPU reads and writes.
const WRONG: [(&str, &str); 2] = [
    (
        "2021-02/cuda/dnn.mlir",
        "the image takes 1600 bytes, the buffer has 144",
    ),
    (
        "2022-06/cuda/dnn.mlir",
        "the image takes 1600 bytes, the buffer has 144",
    ),
];

/// Lines that a program expects and that are not looked for, and why.
const UNEXPECTED: [(&str, &str, &str); 4] = [
    (
        "core_runtime/tensor_conversion.mlir",
        "CHECK: Error TensorHandle",
        "the function ends with the error, which is looked for, instead of printing it",
    ),
    (
        "core_runtime/tf_softmax.mlir",
        "0.0072{{.*}}, 0.0120",
        "the sum over all rows is 1 there, that over each row here, as TensorFlow defines it",
    ),
    (
        "2021-02/core_runtime/tf_pad.mlir",
        "3.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 4.000000e+00",
        "tensors were printed whole in 2021",
    ),
    (
        "2021-02/core_runtime/tf_conv2d.mlir",
        "values = [3.600000e+01",
        "as above, where there are more than 16",
    ),
];

/// Lines that a program prints in any order, since it gives both prints one chain: which tensor is there first depends on
/// the machine.
const UNORDERED: [(&str, &str); 2] = [
    ("core_runtime/test_ops.mlir", "CHECK: DenseGpuTensor<"),
    ("core_runtime/test_ops.mlir", "values = [1, 2, 3, 4, 5]"),
];

/// Returns the functions of a program that are measurements: their shapes take a simulated GPU hours.
fn measurements(text: &str) -> usize {
    text.matches(" @BM_").count()
}

/// Returns the command lines of a program.
fn runs_of(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter(|line| line.contains("// RUN:")).collect()
}

/// Returns the function that a program's command line begins with.
fn init_of(runs: &[&str]) -> Option<String> {
    let mut words = runs.iter().flat_map(|run| run.split_whitespace());
    words.find_map(|word| {
        let name = word.strip_prefix("--test_init_function=")?;
        Some(name.to_owned())
    })
}

/// Returns the functions without arguments that are no measurements, but the first one that is called.
fn functions(text: &str, init: Option<&str>) -> Vec<String> {
    let heads = text.lines().filter(|line| line.starts_with("func"));
    let names = heads.filter_map(|line| {
        let (_, rest) = line.split_once('@')?;
        rest.split_once("()").map(|(name, _)| name.to_owned())
    });
    names
        .filter(|name| !name.starts_with("BM_") && Some(name.as_str()) != init)
        .collect()
}

/// Returns a function that calls the entry point of a program as the original's executor does: with a chain, a stream and
/// buffers of the sizes that its first lines say.
fn entry_of(text: &str) -> Option<String> {
    let (_, options) = text.split_once("-tfrt-set-entry-point='")?;
    let (options, _) = options.split_once('\'')?;
    let value = |name: &str| {
        let mut words = options.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let function = value("function_name").unwrap_or("main");
    let sizes = value("buffer_sizes").unwrap_or_default().split(',');
    let mut body = String::new();
    let (mut values, mut types) = (String::new(), String::new());
    for (index, size) in sizes.filter(|size| !size.is_empty()).enumerate() {
        body += &format!(
            "  %size{index} = tfrt.constant.i64 {size}\n  %buffer{index} = tfrt_gpu.mem.allocate %allocator, %stream, %size{index}, %chain\n"
        );
        values += &format!(", %buffer{index}");
        types += ", !tfrt_gpu.buffer";
    }
    Some(format!(
        "func.func @executor() {{
  %ordinal = tfrt.constant.i32 0
  %device = tfrt_gpu.device.get CUDA, %ordinal
  %context = tfrt_gpu.context.primary %device
  %stream = tfrt_gpu.stream.create %context
  %allocator = tfrt_gpu.allocator.create %context
  %chain = tfrt.new.chain
{body}  %called = tfrt.call @{function}(%chain, %stream{values}) : (!tfrt.chain, !tfrt_gpu.stream{types}) -> (!tfrt.chain)
  %done = tfrt_gpu.stream.synchronize %stream, %called
  tfrt.return
}}
"
    ))
}

/// Returns the number in an environment variable.
fn number(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(otherwise)
}

fn check(path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let runs = runs_of(&text);
    // Programs of 2021 were checked when types were printed in capitals.
    let mut expectations = text.clone();
    for dtype in ["f32", "f64", "i32", "i64"] {
        let upper = dtype.to_uppercase();
        let is_core = path.to_string_lossy().contains("core_runtime");
        for before in ["dtype = ", "dtype="].iter().take(1 + usize::from(is_core)) {
            expectations =
                expectations.replace(&format!("{before}{upper}"), &format!("{before}{dtype}"));
        }
    }
    let mut kept = Vec::new();
    for line in expectations.lines() {
        if line.contains("Running 'BM_") {
            break;
        }
        let is_left_out = |(name, part, _): &(&str, &str, &str)| {
            path.to_string_lossy().ends_with(name) && line.contains(part)
        };
        let is_unordered = |(name, part): &(&str, &str)| {
            path.to_string_lossy().ends_with(name) && line.contains(part)
        };
        if UNORDERED.iter().any(is_unordered) {
            kept.push(line.replace("CHECK:", "CHECK-DAG:"));
        } else if !UNEXPECTED.iter().any(is_left_out) {
            kept.push(line.to_owned());
        }
    }
    let expectations = kept.join("\n");
    let init = init_of(&runs);
    let mut arguments: Vec<String> = Vec::new();
    if let Some(init) = &init {
        arguments.extend(["--init".to_owned(), init.clone()]);
    }
    if measurements(&text) > 0 {
        for name in functions(&text, init.as_deref()) {
            arguments.extend(["--function".to_owned(), name]);
        }
    }
    let is_merged = runs.iter().any(|run| run.contains("2>&1"));
    let checks_output = runs.iter().any(|run| run.contains("FileCheck"));
    // What the original's executor does, a function does here that is added to the program.
    let entry = runs.iter().find(|run| run.contains("tfrt_gpu_opt"));
    let entry = entry.and_then(|_| entry_of(&text));
    let is_executed = entry.is_some();
    let file = match entry {
        None => path.to_owned(),
        Some(entry) => {
            let name = path.to_string_lossy().replace(['/', '.'], "_");
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name + ".mlir");
            fs::write(&file, format!("{text}\n{entry}"))?;
            file
        }
    };
    let wrong = WRONG.iter().find(|(name, _)| path.ends_with(name));
    let queue = match runs.iter().any(|run| run.contains("mstd")) {
        true => "multi:2",
        false => "single",
    };
    let (n_seeds, n_orders) = (number("TFRT_GPU_SEEDS", 2), number("TFRT_GPU_ORDERS", 2));
    for order in ORDERS
        .iter()
        .cycle()
        .skip(1)
        .take(usize::try_from(n_orders)?.min(ORDERS.len()))
    {
        for seed in 0..n_seeds {
            let driver = format!("sim:{order}:{seed}");
            let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
            command
                .args(["run", "--queue", queue, "--gpu-driver", &driver])
                .args(&arguments)
                .arg(&file);
            let (status, stdout, stderr) = outcome(command, is_merged)?;
            let failed = |what: &str| -> Failed {
                format!("{driver}: {what}\n{stdout}\n{stderr:.4000}").into()
            };
            for sign in [
                "found on the simulated GPU",
                "not given back to the simulated GPU",
            ] {
                if stderr.contains(sign) {
                    return Err(failed("it uses the GPU wrongly"));
                }
            }
            let mut announced: Vec<&str> = text.lines().filter_map(announced).collect();
            announced.extend(wrong.map(|(_, error)| *error));
            let n_reported = stderr.matches("error: runtime error").count();
            if n_reported > announced.len() * (1 + usize::from(is_executed)) {
                return Err(failed("it reports errors that were not announced"));
            }
            if let Some(missing) = announced.iter().find(|text| !stderr.contains(**text)) {
                return Err(failed(&format!("it does not report: {missing}")));
            }
            // An error that no result of a function has leaves the status as it is.
            if status != Some(0) && (announced.is_empty() || status != Some(3)) {
                return Err(failed(&format!("it ends with {status:?}")));
            }
            if checks_output
                && wrong.is_none()
                && let Err(mismatch) = filecheck::check(&expectations, "CHECK", &stdout)
            {
                return Err(failed(&mismatch.to_string()));
            }
        }
    }
    Ok(())
}

/// Runs a command; returns its status and what it writes to both streams, which may be one.
fn outcome(mut command: Command, is_merged: bool) -> Result<(Option<i32>, String, String), Failed> {
    if !is_merged {
        let output = command.output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        return Ok((
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        ));
    }
    let (mut reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // It holds the other end, too.
    drop(command);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut reader, &mut text)?;
    Ok((child.wait()?.code(), text.clone(), text))
}

/// Returns the error that a comment announces.
fn announced(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("expected-error")?;
    let (_, rest) = rest.split_once("{{")?;
    rest.rsplit_once("}}").map(|(text, _)| text)
}
