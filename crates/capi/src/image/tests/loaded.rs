//! Libraries that C programs load by the system's loader, on this processor and on emulated ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Machine, libraries};

/// The name that plugins ask for.
const SONAME: &str = "libtensorflow_framework.so.2";

/// Tools that build and run programs of a processor.
struct Tools {
    machine: Machine,
    compiler: &'static str,
    /// The command before a program and its arguments, which runs it.
    runner: &'static [&'static str],
}

const TOOLS: [Tools; 2] = [
    Tools {
        machine: Machine::OWN,
        compiler: "cc",
        runner: &[],
    },
    Tools {
        machine: Machine::Aarch64,
        compiler: "aarch64-linux-gnu-gcc",
        runner: &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"],
    },
];

/// Runs a program to its end, and returns what it prints; `None` if there is no such program.
fn output(words: &[&str]) -> Option<String> {
    let ran = Command::new(words[0]).args(&words[1..]).output().ok()?;
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{words:?}: {}: {errors}", ran.status);
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("tfrt-image-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.0.join(name), bytes).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

impl Tools {
    /// Builds the program that loads libraries, and plugins that want the first function and the second.
    fn build(&self, folder: &Folder) -> Option<(String, [String; 2])> {
        let host = folder.path("host");
        let source = folder.write("host.c", include_str!("host.c").as_bytes());
        let flags = ["-O1", "-Wall", "-Werror"];
        let built = [
            &[self.compiler][..],
            &flags,
            &[&source, "-o", &host, "-ldl"],
        ]
        .concat();
        output(&built)?;
        let source = folder.write("plugin.c", include_str!("plugin.c").as_bytes());
        let plugins = [0, 1].map(|index| {
            let plugin = folder.path(&format!("libplugin{index}.so"));
            let function = format!("-DFUNCTION=TF_Function{index}");
            let shared = [self.compiler, "-shared", "-fPIC", "-o"];
            // The linker reads the name from a library that is gone when the plugin is loaded.
            let empty = folder.write("empty.c", b"");
            let named = folder.path(SONAME);
            let soname = format!("-Wl,-soname,{SONAME}");
            output(&[&shared[..], &[&named, &empty, &soname]].concat());
            let needed = [&*plugin, &source, &function, "-Wl,--no-as-needed", &named];
            output(&[&shared[..], &needed].concat());
            fs::remove_file(Path::new(&named)).unwrap();
            plugin
        });
        Some((host, plugins))
    }

    fn run(&self, folder: &Folder) {
        let Some((host, plugins)) = self.build(folder) else {
            return eprintln!("SKIPPED: there is no {}", self.compiler);
        };
        for (entries, bytes) in libraries(self.machine) {
            let library = folder.write("library.so", &bytes);
            let n = entries.len().to_string();
            let plugin = &plugins[usize::from(entries.len() > 1)];
            let words = [self.runner, &[&host, &library, plugin, &n]].concat();
            match output(&words) {
                Some(text) => assert_eq!(text, format!("{n} functions\n")),
                None => return eprintln!("SKIPPED: there is no {}", self.runner[0]),
            }
        }
    }
}

#[test]
fn the_systems_loader_takes_libraries_and_their_functions_are_called() {
    for tools in TOOLS {
        tools.run(&Folder::new(tools.compiler));
    }
}
