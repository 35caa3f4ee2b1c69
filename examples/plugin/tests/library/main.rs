//! The plugin, loaded by tfrt.

use std::path::PathBuf;

use tfrt::{Plugin, PluginOps, Runtime};

mod adam;
mod calls;

/// The library beside this test, which cargo has built before it.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a file");
    let folder = test.parent().expect("it lies in a folder");
    let name = "libtfrt_example_plugin.so";
    let paths = [folder.join(name), folder.with_file_name(name)];
    let found = paths.into_iter().find(|path| path.exists());
    found.expect("cargo builds the library before its tests")
}

/// The plugin, and a runtime with its operations.
fn runtime() -> (Plugin, Runtime) {
    // SAFETY: the library is the example.
    let plugin = unsafe { Plugin::load(library()) }.expect("it loads");
    let runtime = Runtime::builder().plugins(PluginOps::new([&plugin]));
    (plugin, runtime.build())
}
