//! Wrong uses of the C API, each an error of its call; exceptions, and plugins that fail when they are loaded.

use tfrt_capi::rows::PluginOps;
use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::ErrorCode;

use crate::plugins::{Bed, FAULTS, basic, build, collect_faults, load};

#[test]
fn wrong_uses_fail_their_call_with_function_argument_and_kernel() {
    let Some(plugin) = basic() else { return };
    let bed = Bed::new(PluginOps::new([&plugin]));
    let expected = [
        "TF_Dim: dimension 9 of a tensor of rank 1",
        "TF_NumDims: argument 'tensor': expected a TF_Tensor, found one that was deleted",
        "TF_DeleteTensor: argument 'tensor': expected a TF_Tensor, found one that was deleted",
        "TF_NumDims: argument 'tensor': expected a TF_Tensor, found a TF_Status",
        "TF_TensorData: argument 'tensor': expected a TF_Tensor, found 0x7fff12345678, which the host has not given out",
        "TF_NumDims: argument 'tensor': expected a TF_Tensor, found a null pointer",
        "TF_InputDatatype: input 7 of a kernel that has 1",
        "TF_ExpectedOutputDataType: output -1 of a kernel that has 1",
        "TF_AllocateTemp: argument 'dims': expected extents of a tensor, found [-2]",
        "TF_GetInput: argument 'tensor': expected a place for a tensor, found a null pointer",
        "TF_SetStatus: argument 'status': expected a TF_Status, found a TF_OpKernelContext",
        "TF_NewKernelBuilder: argument 'op_name': expected a text, found a null pointer",
        "TF_GetInputByName: argument 'inputName': expected a text, found a null pointer",
        "TF_AllocateTemp: argument 'dims': expected a length, found -3",
        "TF_DeleteBuffer: argument 'buffer': expected a TF_Buffer, found one that was deleted or is not of the host",
        "TF_GetInput: input index out of range: found index 5 of 1 input",
        "TF_SetShape: argument 'dims': expected extents of a tensor, found [-2]",
        "TF_RunAsyncOpKernelDoneCallback: argument 'done': expected a TF_AsyncOpKernelDoneCallback, found a TF_Tensor",
        "TF_GetRendezvous: the host has no rendezvous",
        "TF_RegisterKernelBuilder: kernel 'X': a plugin registers while it is loaded, and not later",
    ];
    for (code, expected) in (0_i32..).zip(expected) {
        let mut attrs = OpAttrs::new();
        attrs.set("code", code).unwrap();
        let error = bed
            .text("tf.TestWrong", vec![bed.floats(&[2], &[1.0, 2.0])], &attrs)
            .unwrap_err();
        let expected = format!("{expected}, in kernel 'TestWrong' of libbasic.so");
        assert_eq!(
            (error.code(), error.message()),
            (ErrorCode::InvalidArgument, expected.as_str()),
            "{code}"
        );
    }
    let mut attrs = OpAttrs::new();
    attrs.set("code", 1000).unwrap();
    bed.text("tf.TestWrong", vec![bed.floats(&[2], &[1.0, 2.0])], &attrs)
        .unwrap();
}

#[test]
fn failures_that_a_plugin_passes_on_name_the_function_that_has_told_them() {
    let Some(plugin) = basic() else { return };
    let bed = Bed::new(PluginOps::new([&plugin]));
    let expected = [
        (
            100,
            "input index out of range",
            "TF_GetInput: found index -5 of 1 input",
        ),
        (
            101,
            "output index out of range",
            "TF_SetOutput: found index 7 of 1 output",
        ),
    ];
    for (code, message, note) in expected {
        let mut attrs = OpAttrs::new();
        attrs.set("code", code).unwrap();
        let inputs = vec![bed.floats(&[2], &[1.0, 2.0])];
        let error = bed.text("tf.TestWrong", inputs, &attrs).unwrap_err();
        let note = format!("{note}, in kernel 'TestWrong' of libbasic.so");
        assert_eq!(
            (error.code(), error.message()),
            (ErrorCode::OutOfRange, message)
        );
        assert!(error.notes().iter().any(|own| **own == *note), "{error:?}");
    }
}

#[test]
fn asynchronous_kernel_that_is_done_twice_is_told() {
    let Some(plugin) = basic() else { return };
    collect_faults();
    let bed = Bed::new(PluginOps::new([&plugin]));
    let mut attrs = OpAttrs::new();
    attrs.set("code", 1).unwrap();
    let text = bed.text("tf.TestAsync", vec![bed.floats(&[1], &[4.0])], &attrs);
    assert!(text.unwrap().ends_with("values = [8.000000e+00]"));
    let expected = "TF_RunAsyncOpKernelDoneCallback: argument 'done': expected a TF_AsyncOpKernelDoneCallback, \
                    found one that was deleted, in kernel 'TestAsync' of libbasic.so";
    let faults = FAULTS.lock().unwrap();
    assert!(faults.iter().any(|fault| fault == expected), "{faults:?}");
}

#[test]
fn kernel_that_is_not_done_keeps_nobody_else_from_it_and_its_context_ends_with_it() {
    let Some(plugin) = basic() else { return };
    let bed = Bed::new(PluginOps::new([&plugin]));
    let op = bed.runtime.op("tf.TestAsync", &bed.runtime.cpu()).unwrap();
    let attrs = |code: i32| {
        let mut attrs = OpAttrs::new();
        attrs.set("code", code).unwrap();
        attrs
    };
    let one = || vec![bed.floats(&[1], &[4.0])];
    let open = op.call(&bed.context, one(), &attrs(2)).unwrap();
    let twice = "values = [8.000000e+00]";
    let text = bed.text("tf.TestAsync", one(), &attrs(0)).unwrap();
    assert!(text.ends_with(twice), "{text}");
    assert!(open[0].tensor().is_none(), "it is not done");
    // Another call says that it is.
    let text = bed.text("tf.TestAsync", one(), &attrs(3)).unwrap();
    assert!(text.ends_with(twice), "{text}");
    assert!(open[0].to_string().ends_with(twice), "{}", open[0]);
    let error = bed.text("tf.TestAsync", one(), &attrs(4)).unwrap_err();
    let expected = "TF_NumInputs: argument 'ctx': expected a TF_OpKernelContext, found one that was deleted, in kernel \
                    'TestAsync' of libbasic.so";
    assert_eq!(error.message(), expected);
}

#[test]
fn missing_output_is_an_error() {
    let Some(plugin) = basic() else { return };
    let bed = Bed::new(PluginOps::new([&plugin]));
    let error = bed
        .text(
            "tf.TestNothing",
            vec![bed.floats(&[], &[1.0])],
            &OpAttrs::new(),
        )
        .unwrap_err();
    assert_eq!(
        error.message(),
        "kernel 'TestNothing' of libbasic.so has not set output 0"
    );
}

#[test]
fn missing_output_is_an_error_of_those_who_use_it() {
    let Some(plugin) = basic() else { return };
    let bed = Bed::new(PluginOps::new([&plugin]));
    let none = OpAttrs::new();
    let half = bed.runtime.op("tf.TestHalf", &bed.runtime.cpu()).unwrap();
    let results = half.call(&bed.context, vec![bed.floats(&[1], &[7.0])], &none);
    let results: Vec<TensorHandle> = results.unwrap().into_iter().collect();
    let [y, z] = &results[..] else { panic!() };
    let sum = |x: &TensorHandle| bed.text("tf.AddV2", vec![x.clone(), x.clone()], &none);
    assert!(sum(y).unwrap().ends_with("[1.400000e+01]"));
    let left_out = "kernel 'TestHalf' of libbasic.so has not set output 1";
    assert_eq!(z.error().unwrap().message(), left_out);
    assert_eq!(sum(z).unwrap_err().message(), left_out);
}

const THROWS: &str = r#"// C++
#include <stdexcept>
#include <string>
#include "tfrt_capi.h"

static void* create(TF_OpKernelConstruction* c) {
    TF_Status* s = TF_NewStatus();
    int32_t where = 0;
    TF_OpKernelConstruction_GetAttrInt32(c, "where", &where, s);
    TF_DeleteStatus(s);
    if (where == 0) throw std::runtime_error("create");
    return (void*)(intptr_t)where;
}

struct Odd { std::string text; };

static void compute(void* state, TF_OpKernelContext* ctx) {
    switch ((intptr_t)state) {
    case 1: {
        TF_Status* s = TF_NewStatus();
        TF_SetStatus(s, (TF_Code)3, "told before");
        TF_OpKernelContext_Failure(ctx, s);
        TF_DeleteStatus(s);
        throw std::logic_error("compute");
    }
    case 2: throw Odd{"a text that is freed"};
    default: throw 3;
    }
}

static void remove(void* state) {
    if (!state) throw std::runtime_error("delete");
}

extern "C" void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder("TestThrow");
    TF_OpDefinitionBuilderAddAttr(b, "where: int");
    TF_OpDefinitionBuilderAddOutput(b, "z: float");
    TF_RegisterOpDefinition(b, s);
    TF_RegisterKernelBuilder("TestThrow", TF_NewKernelBuilder("TestThrow", "CPU", create, compute, remove), s);
    TF_DeleteStatus(s);
}
"#;

#[test]
fn exceptions_fail_their_call() {
    let Some(library) = build("throws", THROWS, &[]) else {
        return;
    };
    // `delete` throws as well, which is told to nobody's call.
    collect_faults();
    let plugin = load(&library).unwrap();
    let bed = Bed::new(PluginOps::new([&plugin]));
    for (place, thrown) in [
        (0, "std::runtime_error"),
        (1, "std::logic_error"),
        (2, "Odd"),
        (3, "int"),
    ] {
        for _ in 0..100 {
            let mut attrs = OpAttrs::new();
            attrs.set("where", place).unwrap();
            let error = bed.text("tf.TestThrow", vec![], &attrs).unwrap_err();
            let expected = format!("kernel 'TestThrow' of libthrows.so threw {thrown}");
            assert_eq!(
                (error.code(), error.message()),
                (ErrorCode::Internal, expected.as_str())
            );
            let told = place == 1;
            assert_eq!(
                error
                    .notes()
                    .contains(&"before, it told: told before".to_owned()),
                told
            );
        }
    }
}

#[test]
fn registrations_that_are_refused_fail_the_load() {
    let source = r#"
#include "tfrt_capi.h"
void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder("lower");
    TF_RegisterOpDefinition(b, s);
    b = TF_NewOpDefinitionBuilder("MatMul");
    TF_OpDefinitionBuilderAddOutput(b, "z: float");
    TF_RegisterOpDefinition(b, s);
    TF_DeleteStatus(s);
}
"#;
    let Some(library) = build("refused", source, &[]) else {
        return;
    };
    let error = load(&library).unwrap_err();
    let message = error.message.rsplit("': ").next().unwrap();
    assert_eq!(message, "Invalid name: lower (Did you use CamelCase?)");
    assert_eq!(
        error.notes,
        ["operation 'MatMul': tfrt has one of this name"]
    );
    let again = load(&library).unwrap_err();
    assert!(
        again
            .message
            .ends_with("it failed when it was loaded before, and can't be loaded again")
    );
}

#[test]
fn functions_that_the_host_does_not_have_answer_by_their_name() {
    let source = r#"
#include "tfrt_capi.h"
int TF_NoSuchFunction(int);
static void compute(void* state, TF_OpKernelContext* ctx) {
    (void)state;
    TF_Status* s = TF_NewStatus();
    TF_Tensor* z = TF_AllocateOutput(ctx, 0, 1, NULL, 0, 4, s);
    *(float*)TF_TensorData(z) = TF_NoSuchFunction(3);
    TF_DeleteTensor(z);
    TF_DeleteStatus(s);
}
void TF_InitKernel(void) {
    TF_Status* s = TF_NewStatus();
    TF_OpDefinitionBuilder* b = TF_NewOpDefinitionBuilder("TestUnprovided");
    TF_OpDefinitionBuilderAddOutput(b, "z: float");
    TF_RegisterOpDefinition(b, s);
    TF_RegisterKernelBuilder("k", TF_NewKernelBuilder("TestUnprovided", "CPU", NULL, compute, NULL), s);
    TF_DeleteStatus(s);
}
"#;
    let Some(library) = build("unprovided", source, &[]) else {
        return;
    };
    let bed = Bed::new(PluginOps::new([&load(&library).unwrap()]));
    let error = bed
        .text("tf.TestUnprovided", vec![], &OpAttrs::new())
        .unwrap_err();
    assert_eq!(
        error.message(),
        "TF_NoSuchFunction is not provided by this host, in kernel 'TestUnprovided' of libunprovided.so"
    );
}
