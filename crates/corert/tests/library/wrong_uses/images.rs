//! Convolutions, pools and normalisation.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_tensor::{Bool, F16};

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
    let mut rows = vec![
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
            convolution(attrs!["padding" => "SAME", "data_format" => "CHWN"]),
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
    ];
    rows.extend(of_elements(&user));
    rows.extend(of_what_follows(&user));
    rows
}

/// Returns elements that images don't have.
fn of_elements(user: &User) -> Vec<Row> {
    let truths = |extents: &[usize]| {
        let n = extents.iter().product::<usize>();
        user.dense(extents, &vec![Bool::from(true); n])
    };
    let same = || attrs!["padding" => "SAME"];
    let half = user.dense(&[1, 1], &[F16(0x3c00)]);
    let list = user.dense(&[1], &[F16(0x3c00)]);
    let (x, filter) = (truths(&[1, 4, 4, 2]), truths(&[3, 3, 2, 2]));
    let wide = |extents: &[usize]| user.dense(extents, &vec![1.0_f64; extents.iter().product()]);
    let (wide_x, wide_filter) = (wide(&[1, 4, 4, 2]), wide(&[3, 3, 2, 2]));
    vec![
        row(
            "A convolution of truth values",
            user.refusal("tf.Conv2D", [&x, &filter], &same()),
        ),
        row(
            "One of each channel",
            user.refusal("tf.DepthwiseConv2dNative", [&x, &filter], &same()),
        ),
        row(
            "One of doubles, with what follows it",
            user.refusal(
                "tf._FusedConv2D",
                [&wide_x, &wide_filter, &wide(&[2])],
                &with(same(), ["BiasAdd"]),
            ),
        ),
        row(
            "The largest of truth values",
            user.refusal(
                "tf.MaxPool",
                [&x],
                &attrs!["padding" => "SAME", "ksize" => [2_i64]],
            ),
        ),
        row(
            "The mean of truth values",
            user.refusal(
                "tf.AvgPool",
                [&x],
                &attrs!["padding" => "SAME", "ksize" => [2_i64]],
            ),
        ),
        row(
            "A normalisation of halves",
            user.refusal(
                "tf.FusedBatchNormV3",
                [&half, &list, &list, &list, &list],
                &none(),
            ),
        ),
        row(
            "Zeros like strings",
            user.late_refusal("tf.ZerosLike", [&user.strings(&["one"])], &none()),
        ),
    ]
}

fn with<const N: usize>(mut attrs: OpAttrs, fused: [&'static str; N]) -> OpAttrs {
    attrs.set("fused_ops", fused).unwrap();
    attrs
}

/// Epilogues that can't follow a convolution.
fn of_what_follows(user: &User) -> Vec<Row> {
    let x = user.ones(&[1, 4, 4, 2]);
    let filter = user.ones(&[3, 3, 2, 2]);
    let packed = user
        .runtime
        .op("tfrt.pack_conv2d", &user.runtime.cpu())
        .unwrap();
    let packed = packed.call_one(&user.context, [&filter], &none()).unwrap();
    let (two, three) = (user.ones(&[2]), user.ones(&[3]));
    let plain = || attrs!["padding" => "SAME"];
    let fused = |attrs: OpAttrs, bias: &TensorHandle| {
        user.refusal("tf._FusedConv2D", [&x, &filter, bias], &attrs)
    };
    let own = || attrs!["padding" => "SAME", "filter" => [3_i64, 3, 2, 2]];
    let by_packed = |attrs: OpAttrs, bias: &TensorHandle| {
        user.refusal("tfrt.conv2d", [&x, &packed, bias], &attrs)
    };
    vec![
        row(
            "A function that is not fused",
            fused(with(plain(), ["Elu"]), &two),
        ),
        row(
            "A bias for other filters",
            fused(with(plain(), ["BiasAdd"]), &three),
        ),
        row(
            "A summand of another shape",
            fused(with(plain(), ["Add"]), &two),
        ),
        row(
            "Less inputs than are fused",
            fused(with(plain(), ["BiasAdd", "Add"]), &two),
        ),
        row(
            "A function that is not fused, and a packed filter",
            by_packed(with(own(), ["Elu"]), &two),
        ),
        row(
            "A normalisation by a packed filter",
            by_packed(with(own(), ["FusedBatchNorm"]), &two),
        ),
        row(
            "A bias for other filters that are packed",
            by_packed(with(own(), ["BiasAdd"]), &three),
        ),
        row(
            "A normalisation of other filters, folded",
            user.refusal(
                "tfrt.fold_batch_norm",
                [&filter, &two, &two, &three, &two],
                &none(),
            ),
        ),
    ]
}
