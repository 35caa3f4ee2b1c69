//! Kernels of a plugin, called one by one.

use tfrt_capi::rows::PluginOps;
use tfrt_corert::OpAttrs;
use tfrt_host::ErrorCode;
use tfrt_tensor::{StringHostTensor, TensorShape};

use crate::plugins::{Bed, basic};

fn bed() -> Option<Bed> {
    Some(Bed::new(PluginOps::new([&basic()?])))
}

#[test]
fn kernel_reads_inputs_and_attributes_and_writes_outputs() {
    let Some(bed) = bed() else { return };
    let inputs = || {
        vec![
            bed.floats(&[3], &[1.0, 2.0, 3.0]),
            bed.floats(&[3], &[10.0, 20.0, 30.0]),
        ]
    };
    let text = bed.text("tf.TestAxpy", inputs(), &OpAttrs::new()).unwrap();
    assert_eq!(
        text,
        "DenseHostTensor dtype = f32, shape = [3], values = [1.200000e+01, 2.400000e+01, 3.600000e+01]; \
         DenseHostTensor dtype = i32, shape = [], values = [-2]"
    );
    let mut attrs = OpAttrs::new();
    attrs
        .set("alpha", 3_i32)
        .unwrap()
        .set("forward", true)
        .unwrap();
    // The memory of the first input, which is given for good, becomes the output's.
    let text = bed.text("tf.TestAxpy", inputs(), &attrs).unwrap();
    assert!(
        text.contains("1.300000e+01") && text.ends_with("values = [0]"),
        "{text}"
    );
    let kept = inputs();
    let text = bed.text("tf.TestAxpy", kept.clone(), &attrs).unwrap();
    assert!(text.ends_with("values = [-1]"), "{text}");
    assert!(
        kept[0].to_string().contains("[1.000000e+00, 2"),
        "{}",
        kept[0]
    );
}

#[test]
fn views_that_a_kernel_keeps_outlive_its_call() {
    let Some(bed) = bed() else { return };
    for (x, expected) in [
        (1.0, "1.000000e+00"),
        (5.0, "1.600000e+01"),
        (0.0, "1.650000e+02"),
        (-1.0, "1.649000e+03"),
    ] {
        let inputs = vec![bed.floats(&[1], &[x])];
        let text = bed.text("tf.TestKeep", inputs, &OpAttrs::new()).unwrap();
        assert!(text.ends_with(&format!("values = [{expected}]")), "{text}");
        // Memory that was given back is used again.
        let others: Vec<_> = (0..8).map(|_| bed.floats(&[1], &[7.0])).collect();
        drop(others);
    }
}

#[test]
fn parts_of_tensors_are_aligned_as_kernels_expect() {
    let Some(bed) = bed() else { return };
    let whole = bed.floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let part = whole
        .tensor()
        .unwrap()
        .unwrap()
        .as_dense()
        .unwrap()
        .chip(&[1]);
    let part = bed.runtime.handle(part.unwrap());
    let text = bed.text("tf.TestAxpy", vec![part.clone(), part], &OpAttrs::new());
    let expected = "[1.200000e+01, 1.500000e+01, 1.800000e+01]";
    assert!(text.as_ref().unwrap().contains(expected), "{text:?}");
}

#[test]
fn failures_are_the_plugins_own() {
    let Some(bed) = bed() else { return };
    let inputs = vec![
        bed.floats(&[2], &[1.0, 2.0]),
        bed.floats(&[3], &[1.0, 2.0, 3.0]),
    ];
    let error = bed
        .text("tf.TestAxpy", inputs.clone(), &OpAttrs::new())
        .unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (ErrorCode::InvalidArgument, "x and y differ in size")
    );
    assert_eq!(error.notes()[0], "in kernel 'TestAxpy' of libbasic.so");
    let mut attrs = OpAttrs::new();
    attrs.set("alpha", -1.0_f32).unwrap();
    let error = bed.text("tf.TestAxpy", inputs, &attrs).unwrap_err();
    assert_eq!(error.message(), "alpha is below 0");
    for (code, expected) in [
        (5, ErrorCode::NotFound),
        (16, ErrorCode::Unauthenticated),
        (99, ErrorCode::Unknown),
    ] {
        let mut attrs = OpAttrs::new();
        attrs.set("code", code).unwrap();
        let error = bed
            .text("tf.TestFail", vec![bed.floats(&[], &[1.0])], &attrs)
            .unwrap_err();
        assert_eq!((error.code(), error.message()), (expected, "boom"));
        assert_eq!(error.notes()[0], "capi/key: capi-value");
    }
}

#[test]
fn state_is_made_once_for_calls_that_are_alike_and_deleted_in_the_end() {
    let Some(bed) = bed() else { return };
    let counts = |bed: &Bed| -> Vec<i32> {
        let results = bed.call("tf.TestCounts", vec![], &OpAttrs::new()).unwrap();
        let tensor = results[0].tensor().unwrap().unwrap();
        let read = tensor.as_dense().unwrap().read().unwrap();
        read.elements::<i32>().unwrap().to_vec()
    };
    let own = Bed::new(PluginOps::new([&basic().unwrap()]));
    let mut attrs = OpAttrs::new();
    attrs.set("alpha", 123.0_f32).unwrap();
    let call = || {
        let inputs = vec![own.floats(&[1], &[1.0]), own.floats(&[1], &[1.0])];
        own.text("tf.TestAxpy", inputs, &attrs).unwrap()
    };
    let before = counts(&bed);
    call();
    let after = counts(&bed);
    assert!(after[0] > before[0], "{before:?} {after:?}");
    // Other tests make states meanwhile: of these calls nothing can be told but that they work.
    assert_eq!(call(), call());
}

#[test]
fn strings_cross_in_cells() {
    let Some(bed) = bed() else { return };
    let strings = vec![
        b"abc".to_vec(),
        b"a string of more than twenty-two bytes".to_vec(),
        Vec::new(),
    ];
    let tensor = StringHostTensor::new(TensorShape::new(&[3]).unwrap(), strings.clone()).unwrap();
    let results = bed
        .call(
            "tf.TestStrings",
            vec![bed.runtime.handle(tensor)],
            &OpAttrs::new(),
        )
        .unwrap();
    let tensor = results[0].tensor().unwrap().unwrap();
    let twice: Vec<Vec<u8>> = strings.iter().map(|string| string.repeat(2)).collect();
    assert_eq!(tensor.as_strings().unwrap().strings(), twice);
}

#[test]
fn asynchronous_kernel_says_when_it_is_done() {
    let Some(bed) = bed() else { return };
    let text = bed
        .text(
            "tf.TestAsync",
            vec![bed.floats(&[2], &[1.0, 2.0])],
            &OpAttrs::new(),
        )
        .unwrap();
    assert!(
        text.ends_with("values = [2.000000e+00, 4.000000e+00]"),
        "{text}"
    );
}

#[test]
fn memory_of_the_plugin_becomes_a_tensor_and_is_freed_once() {
    let Some(bed) = bed() else { return };
    for n_freed in 0..3 {
        let text = bed.text("tf.TestAdopt", vec![], &OpAttrs::new()).unwrap();
        let expected = format!("values = [7.000000e+00, {n_freed}.000000e+00]");
        assert!(text.ends_with(&expected), "{text}");
    }
}

#[test]
fn objects_that_calls_leave_behind_are_counted_by_kernel() {
    let Some(bed) = bed() else { return };
    let plugin = basic().unwrap();
    let mut kernels = plugin.kernels();
    let kernel = kernels.find(|kernel| kernel.op() == "TestLeave").unwrap();
    assert_eq!(kernel.n_left(), 0);
    for n in 1..4 {
        let x = bed.floats(&[1], &[1.0]);
        bed.call("tf.TestLeave", vec![x], &OpAttrs::new()).unwrap();
        // The status of each call, and the tensor of the last.
        assert_eq!(kernel.n_left(), n + 1);
    }
    let left = tfrt_capi::left_behind();
    let expected = ("kernel 'TestLeave' of libbasic.so".to_owned(), 4);
    assert!(left.contains(&expected), "{left:?}");
}

#[test]
fn memory_is_freed_when_its_tensor_is_not_in_use() {
    let Some(bed) = bed() else { return };
    let text = bed.text("tf.TestRecast", vec![], &OpAttrs::new()).unwrap();
    assert!(text.ends_with("values = [2]"), "{text}");
}

#[test]
fn shapes_are_known_before_the_kernel_has_run() {
    let Some(bed) = bed() else { return };
    let op = bed.runtime.op("tf.TestSeven", &bed.runtime.cpu()).unwrap();
    let results = op
        .call(
            &bed.context,
            [bed.floats(&[2, 3], &[0.0; 6])],
            &OpAttrs::new(),
        )
        .unwrap();
    assert_eq!(results[0].metadata().unwrap().to_string(), "f32 [7, 3]");
    let error = op
        .call(&bed.context, [bed.floats(&[], &[0.0])], &OpAttrs::new())
        .unwrap_err();
    assert_eq!(
        error.message(),
        "Shape must be at least rank 1 but is rank 0"
    );
    assert_eq!(
        error.notes()[0],
        "in the shape function of 'TestSeven' of libbasic.so"
    );
}

#[test]
fn types_decide_between_a_plugins_kernel_and_the_runtimes() {
    let Some(plugin) = basic() else { return };
    // The plugin's kernel of AddV2 for double has priority -1: it loses.
    let bed = Bed::new(PluginOps::new([&plugin]));
    let pair = || vec![bed.floats(&[1], &[1.0]), bed.floats(&[1], &[10.0])];
    let text = bed.text("tf.AddV2", pair(), &OpAttrs::new()).unwrap();
    assert!(text.ends_with("values = [1.100000e+01]"), "{text}");
    let renamed = Bed::new(PluginOps::new([&plugin]).renamed("tf.Sub", "tf.TestAxpy"));
    let text = renamed.call(
        "tf.Sub",
        vec![renamed.floats(&[1], &[1.0]), renamed.floats(&[1], &[10.0])],
        &OpAttrs::new(),
    );
    assert!(
        text.unwrap()[0]
            .to_string()
            .ends_with("values = [1.200000e+01]")
    );
    assert!(
        PluginOps::new([&plugin])
            .clashes(|_| true)
            .iter()
            .all(|text| !text.contains("AddV2"))
    );
    assert_eq!(PluginOps::new([&plugin]).names()[0], "tf.AddV2");
}

#[test]
fn calls_that_no_kernel_takes_say_what_the_kernels_take() {
    let Some(bed) = bed() else { return };
    let doubles = || bed.runtime.dense(&[1], &[1.0_f64]).unwrap();
    let error = bed
        .text("tf.TestAxpy", vec![doubles(), doubles()], &OpAttrs::new())
        .unwrap_err();
    assert_eq!(
        error.message(),
        "no kernel of a plugin runs 'TestAxpy' on the processor with T = double"
    );
    assert_eq!(
        error.notes()[0],
        "kernel 'TestAxpy' of libbasic.so takes T = float"
    );
    let mut attrs = OpAttrs::new();
    attrs.set("beta", 1.0_f32).unwrap();
    let pair = vec![bed.floats(&[1], &[1.0]), bed.floats(&[1], &[1.0])];
    let error = bed.text("tf.TestAxpy", pair, &attrs).unwrap_err();
    assert_eq!(
        error.message(),
        "TestAxpy: it has no attribute 'beta': it takes T, alpha, forward"
    );
}
