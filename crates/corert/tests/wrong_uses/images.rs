//! Convolutions, pools and normalisation.

use tfrt_corert::OpAttrs;

use super::{Row, User, attrs, none, row};

pub(super) fn rows() -> Vec<Row> {
    let user = User::new();
    let x = user.ones(&[1, 4, 4, 2]);
    let filter = user.ones(&[3, 3, 2, 2]);
    let convolution = |attrs: OpAttrs| user.refusal("tf.Conv2D", [&x, &filter], &attrs);
    let by = |extents: &[usize]| {
        let filter = user.ones(extents);
        user.refusal("tf.Conv2D", [&x, &filter], &attrs!["padding" => "SAME"])
    };
    let pool = |attrs: OpAttrs| user.refusal("tf.MaxPool", [&x], &attrs);
    let explicit = |paddings: [i64; 4]| {
        convolution(attrs!["padding" => "EXPLICIT", "explicit_paddings" => paddings])
    };
    vec![
        row("Windows without padding", convolution(none())),
        row(
            "A padding that is unknown",
            convolution(attrs!["padding" => "FULL"]),
        ),
        row("Paddings that are negative", explicit([-1, 0, 0, 0])),
        row(
            "Paddings that no memory holds",
            explicit([i64::MAX, i64::MAX, 0, 0]),
        ),
        row(
            "Paddings beside another way to pad",
            convolution(attrs!["padding" => "SAME", "explicit_paddings" => [1_i64, 1, 1, 1]]),
        ),
        row(
            "Channels in another order",
            convolution(attrs!["padding" => "SAME", "data_format" => "NCHW"]),
        ),
        row(
            "Strides of 0",
            convolution(attrs!["padding" => "SAME", "strides" => [1_i64, 0, 1, 1]]),
        ),
        row(
            "Strides for three dimensions",
            convolution(attrs!["padding" => "SAME", "strides" => [1_i64, 1, 1]]),
        ),
        row(
            "Strides over images",
            convolution(attrs!["padding" => "SAME", "strides" => [2_i64, 1, 1, 1]]),
        ),
        row(
            "A window that is larger than the images",
            convolution(attrs!["padding" => "VALID", "dilations" => [3_i64]]),
        ),
        row("A filter of another depth", by(&[3, 3, 3, 2])),
        row("A filter that is no filter", by(&[3])),
        row(
            "Images that are none",
            user.refusal(
                "tf.Conv2D",
                [&user.ones(&[4]), &filter],
                &attrs!["padding" => "SAME"],
            ),
        ),
        row("A pool without windows", pool(attrs!["padding" => "SAME"])),
        row(
            "A pool of windows of extent 0",
            pool(attrs!["padding" => "SAME", "ksize" => [0_i64]]),
        ),
        row(
            "A normalisation of other channels",
            user.refusal(
                "tf.FusedBatchNormV3",
                [
                    &x,
                    &user.ones(&[2]),
                    &user.ones(&[2]),
                    &user.ones(&[3]),
                    &user.ones(&[2]),
                ],
                &none(),
            ),
        ),
        row(
            "A normalisation that learns",
            user.refusal(
                "tf.FusedBatchNormV3",
                [
                    &x,
                    &user.ones(&[2]),
                    &user.ones(&[2]),
                    &user.ones(&[2]),
                    &user.ones(&[2]),
                ],
                &attrs!["is_training" => true],
            ),
        ),
    ]
}
