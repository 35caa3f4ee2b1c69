//! `tfrt plugin`, and `tfrt run --plugin`, with a plugin in C that is built here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;

const SOURCE: &str = r#"
#include "tfrt_capi.h"
#include <stdlib.h>
_Static_assert(TF_UINT8 == 4 && TF_HALF == 19 && TF_OK == 0 && TF_NOT_FOUND == 5 && TF_OUT_OF_RANGE == 11, "names");
static void twice(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor* x = NULL;
    TF_GetInput(ctx, 0, &x, s);
    int64_t n = TF_TensorElementCount(x), dims[] = {n};
    TF_Tensor* y = TF_AllocateOutput(ctx, 0, TF_FLOAT, dims, 1, 0, s);
    for (int64_t i = 0; i < n; i++) ((float*)TF_TensorData(y))[i] = 2 * ((float*)TF_TensorData(x))[i];
    TF_DeleteTensor(x);
    TF_DeleteTensor(y);
    TF_DeleteStatus(s);
}
void TF_InitKernel(void) {
    if (getenv("TFRT_TEST_ABORT")) abort();
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("CommandTwice");
    TF_OpDefinitionBuilderAddInput(op, "x: float");
    TF_OpDefinitionBuilderAddOutput(op, "y: float");
    TF_RegisterOpDefinition(op, s);
    if (getenv("TFRT_TEST_AGAIN")) TF_RegisterOpDefinition(TF_NewOpDefinitionBuilder("CommandTwice"), s);
    TF_RegisterKernelBuilder("CommandTwice", TF_NewKernelBuilder("CommandTwice", "CPU", NULL, twice, NULL), s);
    TF_RegisterKernelBuilder("Abs", TF_NewKernelBuilder("Abs", "CPU", NULL, twice, NULL), s);
    TF_RegisterKernelBuilder("Nowhere", TF_NewKernelBuilder("CommandNowhere", "CPU", NULL, twice, NULL), s);
    TF_DeleteStatus(s);
}
"#;

const PROGRAM: &str = r#"func.func @main() {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %x = corert.const_dense_tensor dense<[1.0, -2.0]> : tensor<2xf32>
  %y = corert.executeop(%cpu) "tf.CommandTwice"(%x) : 1
  %z = corert.executeop(%cpu) "tf.Neg"(%y) : 1
  %c1 = "corert.print_tensorhandle"(%z, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return
}
"#;

fn tfrt(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tfrt"));
    command.args(arguments);
    command
}

fn output(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// Builds the plugin beside a program that calls it; `None` if there is no compiler.
fn built(name: &str) -> Option<(PathBuf, PathBuf)> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let (status, header, _) = output(&mut tfrt(&["plugin", "functions", "--header"]));
    assert_eq!(status, 0);
    fs::write(folder.join("tfrt_capi.h"), header).unwrap();
    fs::write(folder.join("twice.c"), SOURCE).unwrap();
    let (library, program) = (folder.join("libtwice.so"), folder.join("twice.mlir"));
    fs::write(&program, PROGRAM).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(folder.join("twice.c"))
        .status();
    match compiled {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            eprintln!("SKIPPED: there is no cc: {error}");
            return None;
        }
    }
    Some((library, program))
}

#[test]
fn plugin_is_checked_without_and_with_loading_it() {
    let Some((library, _)) = built("plugin_check") else {
        return;
    };
    let library = library.to_str().unwrap();
    let (status, text, errors) = output(&mut tfrt(&["plugin", "check", library]));
    assert_eq!((status, errors.as_str()), (0, ""));
    let expected = "x86-64, needs nothing of TensorFlow; entry points: TF_InitKernel\n  \
                    13 functions of TensorFlow's C API: 13 provided\n  loads: yes\n";
    assert_eq!(text, format!("{library}: {expected}"));
    let (status, text, _) = output(&mut tfrt(&["plugin", "check", "--load", "--json", library]));
    let document: Json = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &document["loads"]), (0, &Json::Bool(true)));
    assert_eq!(document["registered"]["kernels"][0]["op"], "CommandTwice");
    let (_, text, _) = output(&mut tfrt(&["plugin", "check", "--load", library]));
    let told = "registers 1 operation and 3 kernels\n  the kernels are of 3 operations\n  \
                1 of them is not defined, and its kernels are not called: CommandNowhere\n";
    assert!(text.ends_with(told), "{text}");
    // A library that ends the process ends one of its own.
    let mut aborting = tfrt(&["plugin", "check", "--load", library]);
    let (status, text, _) = output(aborting.env("TFRT_TEST_ABORT", "1"));
    assert_eq!(status, 1);
    assert!(text.contains("it ends the process: signal: 6"), "{text}");
    // One that is refused says why.
    let mut again = tfrt(&["plugin", "check", "--load", library]);
    let (status, text, _) = output(again.env("TFRT_TEST_AGAIN", "1"));
    assert_eq!(status, 1);
    let why = "operation 'CommandTwice': the library has defined it before";
    assert!(text.contains(why), "{text}");
}

#[test]
fn failed_call_is_a_document_too() {
    let Some((library, _)) = built("plugin_failed") else {
        return;
    };
    let library = library.to_str().unwrap();
    let call = ["plugin", "call", "--json", library, "CommandTwice"];
    let (status, text, _) = output(&mut tfrt(&call));
    let document: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "tfrt.plugin-call/1");
    assert_eq!(document["exit_status"], status);
    assert!(document["problems"][0]["message"].is_string(), "{text}");
}

#[test]
fn check_and_kernels_know_the_operations_of_plugins() {
    let Some((library, program)) = built("plugin_known") else {
        return;
    };
    let (library, program) = (library.to_str().unwrap(), program.to_str().unwrap());
    let (status, text, errors) = output(&mut tfrt(&["check", "--plugin", library, program]));
    assert_eq!((status, errors.as_str()), (0, ""));
    assert_eq!(text, format!("{program}: ok\n"));
    let other = program.replace("twice.mlir", "thrice.mlir");
    fs::write(&other, PROGRAM.replace("CommandTwice", "CommandThrice")).unwrap();
    let (status, _, errors) = output(&mut tfrt(&["check", "--plugin", library, &other]));
    let expected = "calls 'tf.CommandThrice', which neither tfrt nor a plugin has [TF1409]";
    assert_eq!(status, 1);
    assert!(errors.contains(expected), "{errors}");
    assert!(errors.contains("thrice.mlir:5:"), "{errors}");
    let kernels = |pattern| {
        let (status, text, errors) = output(&mut tfrt(&["kernels", "--plugin", library, pattern]));
        assert_eq!((status, errors.as_str()), (0, ""));
        text
    };
    let text = kernels("tf.CommandT*");
    let expected =
        "tf.CommandTwice(x: float) -> (y: float)\n    a kernel of libtwice.so, for any types\n";
    assert_eq!(text, expected);
    let text = kernels("tf.Abs");
    assert!(
        text.contains("There is also a kernel of libtwice.so, for any types."),
        "{text}"
    );
}

#[test]
fn operations_of_plugins_are_called_one_by_one_and_in_programs() {
    let Some((library, program)) = built("plugin_run") else {
        return;
    };
    let (library, program) = (library.to_str().unwrap(), program.to_str().unwrap());
    let call = ["plugin", "call", library, "CommandTwice", "--arg"];
    let called = |argument| output(&mut tfrt(&[&call[..], &[argument]].concat()));
    let (status, text, _) = called("f32[3]=1,2,-4");
    let expected = "DenseHostTensor dtype = f32, shape = [3], values = [2.000000e+00, 4.000000e+00, -8.000000e+00]\n";
    assert_eq!((status, text.as_str()), (0, expected));
    let (status, _, errors) = called("f64[1]=1");
    assert_eq!(status, 3);
    assert!(
        errors.starts_with("tfrt: error: runtime error: CommandTwice: input 'x': expected elements of float, found double"),
        "{errors}"
    );
    let unknown = ["plugin", "call", library, "Nope"];
    let (status, _, errors) = output(&mut tfrt(&unknown));
    assert_eq!(status, 1);
    assert!(errors.contains("help: it has tf."), "{errors}");
    let (status, _, errors) = called("f32[1]=x");
    assert_eq!(status, 2);
    assert!(
        errors.contains("expected an element of f32, found 'x'"),
        "{errors}"
    );

    let bench = ["bench", "--runs", "3", "--plugin-first", "--plugin"];
    let (status, text, errors) = output(&mut tfrt(&[&bench[..], &[library, program]].concat()));
    assert_eq!((status, errors.as_str()), (0, ""));
    assert!(text.contains("3 calls"), "{text}");
    let stats = ["run", "--stats", "--plugin-first", "--plugin"];
    let (status, _, told) = output(&mut tfrt(&[&stats[..], &[library, program]].concat()));
    assert_eq!(status, 0, "{told}");
    assert!(
        told.contains("corert.executeop \"tf.CommandTwice\""),
        "{told}"
    );

    let (status, _, errors) = output(&mut tfrt(&["run", "--plugin", library, program]));
    assert_eq!(status, 1);
    assert!(
        errors.contains("[TF1407]") && errors.contains("kernel 'Abs' of libtwice.so"),
        "{errors}"
    );
    let run = ["run", "--plugin", library, "--plugin-first", program];
    let (status, text, errors) = output(&mut tfrt(&run));
    assert_eq!((status, errors.as_str()), (0, ""));
    assert!(
        text.contains("values = [-2.000000e+00, 4.000000e+00]"),
        "{text}"
    );
}
