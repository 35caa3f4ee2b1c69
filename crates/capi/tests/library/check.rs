//! Checks of libraries that are not run.

use std::fs;

use expect_test::expect_file;
use tfrt_capi::check::{Reason, check};

use crate::plugins::{build, folder, load};

#[test]
fn library_that_loads_is_told_with_its_functions() {
    let source = r#"
#include "tfrt_capi.h"
int TF_Unknown(void);
void TF_InitKernel(void) { TF_DeleteStatus(TF_NewStatus()); TF_Unknown(); }
"#;
    let Some(library) = build("checked", source, &[]) else {
        return;
    };
    let report = check(&library);
    assert!(report.loads(), "{report:?}");
    assert_eq!(report.entry_points, ["TF_InitKernel"]);
    assert_eq!(report.provided, ["TF_DeleteStatus", "TF_NewStatus"]);
    assert_eq!(report.unprovided, ["TF_Unknown"]);
    let error = load(&library).unwrap_err();
    assert!(
        error
            .message
            .ends_with("TF_Unknown is not provided by this host"),
        "{error}"
    );
}

#[test]
fn libraries_that_do_not_load_are_told_why() {
    let reason = |name: &str| {
        let report = check(&folder().join(name));
        report
            .reasons
            .first()
            .map(ToString::to_string)
            .unwrap_or_default()
    };
    fs::write(folder().join("text.so"), "no library").unwrap();
    assert_eq!(
        reason("text.so"),
        "it is no ELF library: its first bytes are others"
    );
    fs::write(folder().join("short.so"), b"\x7fELF\x02\x01\x01").unwrap();
    assert!(
        reason("short.so").starts_with("it is damaged"),
        "{}",
        reason("short.so")
    );
    assert_eq!(
        reason("nowhere.so"),
        "it can't be read: No such file or directory (os error 2)"
    );
    assert_eq!(reason("."), "it is no file");
    let source = r#"// C++
namespace tensorflow { void Odd(int); }
extern "C" void TF_InitKernel(void) { tensorflow::Odd(3); }
"#;
    let Some(library) = build("cpp", source, &[]) else {
        return;
    };
    let report = check(&library);
    assert_eq!(
        report.reasons,
        [Reason::CppSymbols(vec!["_ZN10tensorflow3OddEi".to_owned()])]
    );
    let error = load(&library).unwrap_err();
    assert_eq!(error.code, "TF1402");
    assert!(
        error
            .message
            .contains("1 symbols of TensorFlow's C++ classes"),
        "{error}"
    );
    let mut bytes = fs::read(&library).unwrap();
    bytes[18] = 183;
    fs::write(folder().join("other.so"), &bytes).unwrap();
    assert_eq!(
        reason("other.so"),
        "it is for another machine: expected x86-64, found aarch64"
    );
    let Some(library) = build(
        "missing",
        "int odd(void);\nint TF_InitKernel(void) { return odd(); }",
        &[],
    ) else {
        return;
    };
    assert_eq!(
        check(&library).reasons,
        [Reason::MissingSymbols(vec!["odd".to_owned()])]
    );
}

#[test]
fn library_without_entry_point_is_no_plugin() {
    let Some(library) = build("plain", "int three(void) { return 3; }", &[]) else {
        return;
    };
    let report = check(&library);
    assert_eq!(report.reasons, [Reason::NoPlugin]);
    assert_eq!(
        report.reasons[0].to_string(),
        "it is no plugin: it has no entry point (TF_InitKernel), and asks for no function of TensorFlow's C API"
    );
    assert_eq!(load(&library).unwrap_err().code, "TF1408");
    // It registers when it is opened.
    let source = r#"
#include "tfrt_capi.h"
__attribute__((constructor)) static void begin(void) { TF_DeleteStatus(TF_NewStatus()); }
"#;
    let library = build("begins", source, &[]).unwrap();
    assert!(check(&library).loads());
    assert!(load(&library).is_ok());
}

#[test]
fn damaged_libraries_are_refused_without_a_crash() {
    let Some(library) = build("whole", "void TF_InitKernel(void) {}", &[]) else {
        return;
    };
    let bytes = fs::read(&library).unwrap();
    let path = folder().join("damaged.so");
    for at in (0..bytes.len()).step_by(97) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        damaged.truncate(bytes.len() - at / 2);
        fs::write(&path, &damaged).unwrap();
        let _said = check(&path);
    }
}

#[test]
fn page_lists_the_functions_of_the_table() {
    let mut text = String::from(
        "# Functions\n\nThe functions of TensorFlow's C API that plugins find here, by header: made of the table in \
         `crates/capi/src/functions.rs`.\n",
    );
    let mut header = "";
    for function in tfrt_capi::functions::FUNCTIONS {
        if function.header != header {
            header = function.header;
            text += &format!("\n## `{header}`\n\n| Function | |\n| --- | --- |\n");
        }
        text += &format!("| `{}` | {} |\n", function.name, function.summary);
    }
    expect_file!["../../../../docs/plugins/functions.md"].assert_eq(&text);
}
