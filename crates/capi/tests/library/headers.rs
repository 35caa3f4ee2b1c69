//! The declarations of the table beside TensorFlow's own: C allows a function to be declared again only with a type that
//! agrees, so that a compiler compares them.

use std::path::Path;
use std::process::Command;

use tfrt_capi::functions::{FUNCTIONS, declarations};

use crate::plugins::{folder, unpacked};

/// The headers that declare the functions of the table. In C, `ops.h` uses names of types that it does not make.
const HEADERS: &str = r#"
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct TF_ShapeHandle TF_ShapeHandle;
typedef struct TF_DimensionHandle TF_DimensionHandle;
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/kernels_experimental.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/experimental/next_pluggable_device/c_api.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/env.h"
#if __has_include("tensorflow/c/logging.h")
#include "tensorflow/c/logging.h"
#else // 2.21 has none.
typedef int TF_LogLevel;
#endif
#include "tensorflow/core/platform/ctstring.h"
"#;

/// Sizes of the public structures, and places of their fields.
const SIZES: &str = r#"
#include <stddef.h>
_Static_assert(sizeof(TF_TString) == 24, "a cell of a string");
_Static_assert(sizeof(TF_Buffer) == 24, "a buffer");
_Static_assert(sizeof(TF_StringView) == 16, "a view");
_Static_assert(sizeof(TF_InputRange_Args) == 32, "a range of inputs");
_Static_assert(sizeof(TF_AllocatorAttributes) == 16, "attributes of an allocator");
_Static_assert(offsetof(TF_AllocatorAttributes, on_host) == 8, "their field");
_Static_assert(sizeof(TF_RendezvousThunk) == 32, "a rendezvous");
_Static_assert(sizeof(TF_FileStatistics) == 24, "statistics of a file");
_Static_assert(sizeof(TF_ThreadOptions) == 24, "options of a thread");
_Static_assert(TF_STRING == 7 && TF_HALF == 19 && TF_UINT4 == 30, "types of elements");
_Static_assert(TF_INTERNAL == 13 && TF_DATA_LOSS == 15, "codes");
"#;

#[test]
fn declarations_agree_with_tensorflows() {
    // 2.18 and 2.21: folders of headers, by package.
    for folder in ["tensorflow", "tensorflow-2.21"] {
        if let Some(include) = unpacked(&format!("{folder}/tensorflow/include")) {
            check(folder, &include);
        }
    }
}

fn check(package: &str, include: &Path) {
    // One of the headers asks for a header of C++, of which it needs what C has.
    let of_cpp = folder().join("of_cpp");
    std::fs::create_dir_all(&of_cpp).unwrap();
    std::fs::write(of_cpp.join("cstdint"), "#include <stdint.h>\n").unwrap();
    let file = folder().join(format!("redeclared-{package}.c"));
    std::fs::write(&file, format!("{HEADERS}{SIZES}{}", declarations())).unwrap();
    let checked = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-I"])
        .arg(include)
        .arg("-I")
        .arg(of_cpp)
        .arg(&file)
        .output();
    let Ok(checked) = checked else {
        eprintln!("SKIPPED: there is no cc");
        return;
    };
    let text = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{package}: {text}");
    println!("{package}: {} declarations agree", FUNCTIONS.len());
}
