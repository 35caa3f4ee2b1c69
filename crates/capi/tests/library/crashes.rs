//! Crashes of a plugin's code, each in a process of its own.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use tfrt_capi::crash;
use tfrt_capi::rows::PluginOps;
use tfrt_corert::OpAttrs;

use crate::plugins::{Bed, build, load};

/// The variables that tell the process that crashes the library, and how.
const LIBRARY: &str = "TFRT_TEST_CRASH_LIBRARY";
const WAY: &str = "TFRT_TEST_CRASH_WAY";

#[test]
fn crash_of_a_kernel_tells_the_kernel_before_the_process_dies() {
    let Some(library) = build("crash", include_str!("plugins/crash.c"), &["-O0"]) else {
        return;
    };
    let ways = [
        (Some(libc::SIGSEGV), "crashed, by SIGSEGV"),
        (Some(libc::SIGABRT), "crashed, by SIGABRT"),
        (Some(libc::SIGFPE), "crashed, by SIGFPE"),
        (None, "ended the process, by exit"),
    ];
    for (way, (signal, done)) in ways.into_iter().enumerate() {
        let crashed = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "crashes::crash_here"])
            // What is alive when it dies is not counted.
            .env_remove("TFRT_ACCOUNTING")
            .env(LIBRARY, &library)
            .env(WAY, way.to_string())
            .output()
            .unwrap();
        assert_eq!(crashed.status.signal(), signal, "{crashed:?}");
        let errors = String::from_utf8_lossy(&crashed.stderr);
        let expected =
            format!("error: the plugin has {done}, in kernel 'TestCrash' of libcrash.so\n");
        assert!(errors.contains(&expected), "{errors}");
    }
}

/// Crashes where the test above has started a process for it, and does nothing elsewhere.
#[test]
fn crash_here() {
    let (Ok(library), Ok(way)) = (std::env::var(LIBRARY), std::env::var(WAY)) else {
        return;
    };
    crash::tell();
    let plugin = load(Path::new(&library)).unwrap();
    let bed = Bed::new(PluginOps::new([&plugin]));
    let mut attrs = OpAttrs::new();
    attrs.set("way", way.parse::<i32>().unwrap()).unwrap();
    let outcome = bed.call("tf.TestCrash", vec![], &attrs);
    panic!("it has not crashed: {outcome:?}");
}
