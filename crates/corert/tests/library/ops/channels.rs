//! Images whose channels come first: results agree with those of images whose channels come last.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_tensor::DType;

use super::{Caller, attrs, elements, none, shape};

/// Dimensions in another order.
fn turned(caller: &Caller, x: &TensorHandle, order: &[i32]) -> TensorHandle {
    let order = caller.dense(&[order.len()], order);
    caller.call("tf.Transpose", &[x, &order], &none())
}

/// Returns numbers between -1 and 1 that are all different.
fn images(caller: &Caller, extents: &[usize]) -> TensorHandle {
    let n = extents.iter().product::<usize>();
    let list: Vec<f32> = (0..n).map(|at| (at as f32 * 1.7).sin()).collect();
    caller.dense(extents, &list)
}

/// Calls an operation with images in both orders. Operand 0 are images, and the first result.
fn check(
    caller: &Caller,
    op: &str,
    (x, others): (&TensorHandle, &[&TensorHandle]),
    last: OpAttrs,
    first: OpAttrs,
) {
    let call = |x: &TensorHandle, attrs: &OpAttrs| {
        let inputs: Vec<&TensorHandle> = [x].into_iter().chain(others.iter().copied()).collect();
        let results = caller.try_all(op, &inputs, attrs);
        results
            .unwrap_or_else(|error| panic!("{op}: {}", error.message()))
            .remove(0)
    };
    let wanted = turned(caller, &call(x, &last), &[0, 3, 1, 2]);
    let found = call(&turned(caller, x, &[0, 3, 1, 2]), &first);
    assert_eq!(shape(&found), shape(&wanted), "{op}");
    assert_eq!(elements::<f32>(&found), elements::<f32>(&wanted), "{op}");
}

#[test]
fn windows_lie_over_images_whose_channels_come_first() {
    let caller = Caller::new();
    // A few pixels, and so many that filters are packed and workers run.
    for extents in [[2, 5, 6, 4], [1, 40, 50, 16]] {
        let x = images(&caller, &extents);
        let filter = images(&caller, &[3, 2, extents[3], 8]);
        let each = images(&caller, &[3, 3, extents[3], 1]);
        for padding in ["SAME", "VALID"] {
            let last = attrs!["padding" => padding, "strides" => [1_i64, 2, 1, 1], "dilations" => [1_i64, 1, 2, 1]];
            let first = attrs![
                "padding" => padding, "strides" => [1_i64, 1, 2, 1], "dilations" => [1_i64, 1, 1, 2], "data_format" => "NCHW"
            ];
            check(&caller, "tf.Conv2D", (&x, &[&filter]), last, first);
            let last = attrs!["padding" => padding];
            let first = attrs!["padding" => padding, "data_format" => "NCHW"];
            check(
                &caller,
                "tf.DepthwiseConv2dNative",
                (&x, &[&each]),
                last,
                first,
            );
            for op in ["tf.MaxPool", "tf.AvgPool"] {
                let last = attrs!["padding" => padding, "ksize" => [1_i64, 3, 2, 1], "strides" => [1_i64, 2, 1, 1]];
                let first = attrs![
                    "padding" => padding, "ksize" => [1_i64, 1, 3, 2], "strides" => [1_i64, 1, 2, 1], "data_format" => "NCHW"
                ];
                check(&caller, op, (&x, &[]), last, first);
            }
        }
        let last =
            attrs!["padding" => "EXPLICIT", "explicit_paddings" => [0_i64, 0, 1, 2, 0, 1, 0, 0]];
        let first = attrs![
            "padding" => "EXPLICIT", "explicit_paddings" => [0_i64, 0, 0, 0, 1, 2, 0, 1], "data_format" => "NCHW"
        ];
        check(&caller, "tf.Conv2D", (&x, &[&filter]), last, first);
        let vectors = [1, 2, 3, 4].map(|seed| {
            let list: Vec<f32> = (0..extents[3])
                .map(|at| 0.5 + (at * seed % 5) as f32)
                .collect();
            caller.dense(&[extents[3]], &list)
        });
        let [scale, offset, mean, variance] = &vectors;
        let moments = [scale, offset, mean, variance];
        let training = || attrs!["is_training" => false];
        let mut first = training();
        first.set("data_format", "NCHW").unwrap();
        check(
            &caller,
            "tf.FusedBatchNormV3",
            (&x, &moments),
            training(),
            first,
        );
        let first = attrs!["data_format" => "NCHW"];
        check(&caller, "tf.BiasAdd", (&x, &[offset]), none(), first);
    }
}

#[test]
fn gradients_are_of_images_whose_channels_come_first() {
    let caller = Caller::new();
    let (x, filter) = (
        images(&caller, &[2, 4, 5, 3]),
        images(&caller, &[2, 2, 3, 4]),
    );
    let gradient = images(&caller, &[2, 3, 4, 4]);
    let to_first = |x: &TensorHandle| turned(&caller, x, &[0, 3, 1, 2]);
    let last = attrs!["padding" => "VALID"];
    let first = attrs!["padding" => "VALID", "data_format" => "NCHW"];
    let sizes = |list: [i32; 4]| caller.dense(&[4], &list);
    let op = "tf.Conv2DBackpropInput";
    let wanted = caller.call(op, &[&sizes([2, 4, 5, 3]), &filter, &gradient], &last);
    let found = caller.call(
        op,
        &[&sizes([2, 3, 4, 5]), &filter, &to_first(&gradient)],
        &first,
    );
    assert_eq!(shape(&found), [2, 3, 4, 5]);
    assert_eq!(elements::<f32>(&found), elements::<f32>(&to_first(&wanted)));
    let op = "tf.Conv2DBackpropFilter";
    let extents = sizes([2, 2, 3, 4]);
    let wanted = caller.call(op, &[&x, &extents, &gradient], &last);
    let found = caller.call(op, &[&to_first(&x), &extents, &to_first(&gradient)], &first);
    assert_eq!(elements::<f32>(&found), elements::<f32>(&wanted));
}

#[test]
fn blocks_are_of_images_whose_channels_come_first() {
    let caller = Caller::new();
    let x = images(&caller, &[1, 4, 6, 8]);
    for op in ["tf.DepthToSpace", "tf.SpaceToDepth"] {
        let last = attrs!["block_size" => 2_i64];
        let first = attrs!["block_size" => 2_i64, "data_format" => "NCHW"];
        check(&caller, op, (&x, &[]), last, first);
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let caller = Caller::new();
    let x = images(&caller, &[1, 2, 4, 5]);
    let filter = images(&caller, &[2, 2, 3, 4]);
    let error = |op: &str, inputs: &[&TensorHandle], mut attrs: OpAttrs| {
        attrs.set("data_format", "NCHW").unwrap();
        attrs.set("T", DType::F32).unwrap();
        caller.error(op, inputs, &attrs)
    };
    let message = error("tf.Conv2D", &[&x, &filter], attrs!["padding" => "SAME"]);
    let start = "tf.Conv2D: Dimensions does not match: input channels is 2 and kernel depth is 3";
    assert!(message.starts_with(start), "{message}");
    let flat = images(&caller, &[4, 5]);
    assert_eq!(
        error(
            "tf.MaxPool",
            &[&flat],
            attrs!["padding" => "SAME", "ksize" => [1_i64, 1, 2, 2]]
        ),
        "tf.MaxPool: expected images [batch, channels, height, width], found f32 [4, 5]"
    );
    assert_eq!(
        error(
            "tf.MaxPool",
            &[&x],
            attrs!["padding" => "SAME", "ksize" => [1_i64, 2, 2, 1]]
        ),
        "tf.MaxPool: expected attribute 'ksize' to be 1 for images and channels, found [1, 2, 2, 1]"
    );
    let bias = images(&caller, &[3]);
    assert_eq!(
        error("tf.BiasAdd", &[&x, &bias], none()),
        "tf.BiasAdd: the number of bias elements must match the second dimension: found 3 for 2"
    );
}
