//! Convolutions that are refused.

use tfrt_corert::OpAttrs;

use super::{Caller, attrs, none};

#[test]
fn attributes_of_windows_that_are_wrong_are_refused() {
    let caller = Caller::new();
    let x = caller.counting(&[1, 4, 4, 2]);
    let filter = caller.counting(&[3, 3, 2, 2]);
    let error = |attrs: OpAttrs| caller.error("tf.Conv2D", &[&x, &filter], &attrs);
    assert_eq!(error(none()), "tf.Conv2D must have 'padding' attribute");
    assert_eq!(
        error(attrs!["padding" => "SAME", "data_format" => "NCHW_VECT_C"]),
        "tf.Conv2D: expected attribute 'data_format' to be NHWC or NCHW, found 'NCHW_VECT_C'"
    );
    for (attrs, message) in [
        (
            attrs!["padding" => "FULL"],
            "Unknown padding type 'FULL': expected SAME, VALID or EXPLICIT",
        ),
        (
            attrs!["padding" => "VALID", "strides" => [1_i64, 0, 1, 1]],
            "expected attribute 'strides' to be above 0, found [1, 0, 1, 1]",
        ),
        (
            attrs!["padding" => "VALID", "dilations" => [1_i64, -2, 1, 1]],
            "expected attribute 'dilations' to be above 0, found [1, -2, 1, 1]",
        ),
        (
            attrs!["padding" => "VALID", "strides" => [2_i64, 1, 1, 1]],
            "expected attribute 'strides' to be 1 for images and channels, found [2, 1, 1, 1]",
        ),
        (
            attrs!["padding" => "VALID", "strides" => [1_i64, 1, 1]],
            "expected attribute 'strides' to be a list of 1, 2 or 4 numbers, found [1, 1, 1]",
        ),
        (
            attrs!["padding" => "VALID", "explicit_paddings" => [1_i64, 1, 1, 1]],
            "attribute 'explicit_paddings' is for the padding EXPLICIT, found 'VALID'",
        ),
        (
            attrs!["padding" => "EXPLICIT"],
            "expected attribute 'explicit_paddings' to have numbers before and behind height and width, 0 or more, \
             and 0 for images and channels, found []",
        ),
        (
            attrs!["padding" => "VALID", "dilations" => [3_i64]],
            "a window over 7 elements is larger than an input of 4 with 0 and 0 around it",
        ),
    ] {
        assert_eq!(error(attrs), format!("tf.Conv2D: {message}"));
    }
    assert_eq!(
        error(attrs!["padding" => "SAME", "stride" => 1_i64])
            .split(':')
            .next(),
        Some("tf.Conv2D has no attribute 'stride'")
    );
    let huge = attrs!["padding" => "EXPLICIT", "explicit_paddings" => [i64::MAX; 4]];
    let message = error(huge);
    assert!(message.contains("exceeds the largest integer"), "{message}");
    let huge = attrs!["padding" => "EXPLICIT", "explicit_paddings" => [1_i64 << 50; 4]];
    error(huge);

    let same = attrs!["padding" => "SAME"];
    let other = caller.counting(&[3, 3, 3, 2]);
    let message = caller.error("tf.Conv2D", &[&x, &other], &same);
    let start = "tf.Conv2D: Dimensions does not match: input channels is 2 and kernel depth is 3";
    assert!(message.starts_with(start), "{message}");
    let message = caller.error("tf.DepthwiseConv2dNative", &[&x, &other], &same);
    assert_eq!(
        message,
        "tf.DepthwiseConv2dNative: Dimensions does not match: input channels is 2 and kernel depth is 3"
    );
    assert_eq!(
        caller.error("tf.Conv2D", &[&x, &caller.counting(&[3])], &same),
        "tf.Conv2D: expected a filter [height, width, channels, filters], found f32 [3]"
    );
    let wide = caller.dense(&[1, 1, 2, 1], &[1.0_f64, 2.0]);
    assert_eq!(
        caller.error("tf.Conv2D", &[&x, &wide], &same),
        "tf.Conv2D: incompatible dtypes: f32 [1, 4, 4, 2] and f64 [1, 1, 2, 1]"
    );
}

#[test]
fn packed_filters_are_checked() {
    let caller = Caller::new();
    let x = caller.counting(&[1, 4, 4, 2]);
    let any = caller.counting(&[7]);
    let error = |attrs: OpAttrs| caller.error("tfrt.conv2d", &[&x, &any], &attrs);
    assert_eq!(
        error(attrs!["padding" => "SAME"]),
        "tfrt.conv2d must have 'filter' attribute"
    );
    assert_eq!(
        error(attrs!["padding" => "SAME", "filter" => [3_i64, 3]]),
        "tfrt.conv2d: expected attribute 'filter' to have 4 extents, found [3, 3]"
    );
    assert_eq!(
        error(attrs!["padding" => "SAME", "filter" => [3_i64, 3, 2, 2], "groups" => 0_i64]),
        "tfrt.conv2d: expected attribute 'groups' to be above 0, found 0"
    );
    let message = error(attrs!["padding" => "SAME", "filter" => [3_i64, 3, 2, 2]]);
    assert!(message.ends_with("elements, found 7"), "{message}");
    error(attrs!["padding" => "SAME", "filter" => [i64::MAX, i64::MAX, 2, 2]]);
    error(attrs!["padding" => "SAME", "filter" => [1_i64, 1, 2, i64::MAX]]);
    // A filter that was transformed is for windows of stride 1.
    let weights = caller.counting(&[3, 3, 16, 16]);
    let packed = caller.call("tfrt.pack_conv2d", &[&weights], &none());
    let attrs = attrs!["padding" => "SAME", "filter" => [3_i64, 3, 16, 16], "strides" => [2_i64]];
    assert_eq!(
        caller.error(
            "tfrt.conv2d",
            &[&caller.counting(&[1, 4, 4, 16]), &packed],
            &attrs
        ),
        "tfrt.conv2d: a filter packed for windows of stride 1 without dilation is used for others"
    );
}
