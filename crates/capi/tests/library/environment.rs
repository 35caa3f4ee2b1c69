//! Functions of `env.h` and `logging.h`, called by a plugin.

use std::sync::{Mutex, OnceLock};

use tfrt_capi::Plugin;
use tfrt_capi::functions::logging::{self, Level};
use tfrt_capi::rows::PluginOps;
use tfrt_corert::OpAttrs;
use tfrt_host::Error;

use crate::plugins::{Bed, build, folder, load};

static LINES: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

/// The plugin; `None` if there is no compiler.
fn plugin() -> Option<Plugin> {
    static PLUGIN: OnceLock<Option<Plugin>> = OnceLock::new();
    let make = || {
        let library = build("env", include_str!("plugins/env.c"), &[])?;
        Some(load(&library).unwrap())
    };
    PLUGIN.get_or_init(make).clone()
}

/// Calls the operation of the plugin in a mode; `None` if there is no compiler.
fn report(mode: i32) -> Option<Result<String, Error>> {
    let bed = Bed::new(PluginOps::new([&plugin()?]));
    let own = folder().join(format!("env-{}-{mode}", std::process::id()));
    std::fs::create_dir_all(&own).unwrap();
    let mut attrs = OpAttrs::new();
    attrs.set("mode", mode).unwrap();
    attrs.set("folder", own.to_str().unwrap()).unwrap();
    let results = bed.call("tf.TestEnv", vec![], &attrs);
    std::fs::remove_dir_all(own).unwrap();
    Some(results.map(|results| {
        let tensor = results[0].tensor().unwrap().unwrap();
        let read = tensor.as_dense().unwrap().read().unwrap();
        String::from_utf8_lossy(read.bytes()).into_owned()
    }))
}

#[test]
fn files_and_folders_are_made_and_deleted() {
    let Some(report) = report(0) else { return };
    let expected = "\
create 0, again 6
flushed: 11 bytes, folder 0, recent 1
closed 0
folder 1
has x.txt
behind the last: null
not empty: 9
deleted: 0, left 0 0
again: 5, left 0 1
gone: 5
no folder: 5 0
";
    assert_eq!(report.unwrap(), expected);
}

#[test]
fn threads_run_libraries_open_and_lines_are_formatted() {
    logging::set_handler(|level, line| LINES.lock().unwrap().push((level, line.to_owned())));
    let Some(report) = report(1) else { return };
    let expected = "\
folder for a while: 1
file for a while: .txt 0
clock: 1
thread: 42, node -1
library: 0, cos(0) = 1.0, no symbol: 1 5, no library: 1 5
";
    assert_eq!(report.unwrap(), expected);
    let lines = LINES.lock().unwrap();
    let expected = [
        (Level::Warning, "plain".to_owned()),
        (Level::Error, "1 two 3 4 5 6 seven 8.0 9.25 x".to_owned()),
        (Level::Info, "1 2 3 4 5 6 7 8 9 10 11".to_owned()),
        (Level::Info, format!("{:>2000}.", 7)),
        (Level::Info, "details 0".to_owned()),
    ];
    assert_eq!(*lines, expected);
}

#[test]
fn wrong_uses_of_files_lines_and_libraries_fail_the_call() {
    for (mode, expected) in [
        (
            2,
            "TF_AppendWritableFile: argument 'handle': expected a TF_WritableFileHandle, found one that was deleted",
        ),
        (3, "TF_Log: a fatal mistake: out of luck"),
        (
            4,
            "TF_Log: argument 'fmt': expected a text, found a null pointer",
        ),
        (
            5,
            "TF_GetSymbolFromLibrary: argument 'handle': expected a library, found a TF_Status",
        ),
        (
            6,
            "TF_StartThread: argument 'work_func': expected a function, found a null pointer",
        ),
        (7, "TF_Log: argument 'level': expected 0 to 3, found 9"),
    ] {
        let Some(report) = report(mode) else { return };
        let message = report.unwrap_err().message().to_owned();
        assert_eq!(
            message,
            format!("{expected}, in kernel 'TestEnv' of libenv.so")
        );
    }
}
