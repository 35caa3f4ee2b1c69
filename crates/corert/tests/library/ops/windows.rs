//! `tf.Conv2D` and its like: compared with their definitions.

use std::sync::Arc;

use tfrt_async::queue::MultiThreadedWorkQueue;
use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_tensor::DType;

use super::{Caller, address, attrs, elements, none, settled, shape};

/// Windows over one dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Over {
    pub stride: usize,
    dilation: usize,
    pub padding: &'static str,
    explicit: [usize; 2],
}

impl Over {
    /// Returns the extent of the output, and the padding before.
    fn output(self, input: usize, extent: usize) -> (usize, usize) {
        let covered = (extent - 1) * self.dilation + 1;
        match self.padding {
            "SAME" => {
                let output = input.div_ceil(self.stride);
                let needed = ((output - 1) * self.stride + covered).saturating_sub(input);
                (output, needed / 2)
            }
            "VALID" => ((input - covered) / self.stride + 1, 0),
            _ => {
                let padded = input + self.explicit[0] + self.explicit[1];
                ((padded - covered) / self.stride + 1, self.explicit[0])
            }
        }
    }
}

/// Returns, for each output, pairs `(tap, input)` along one dimension.
pub(super) fn places(over: Over, input: usize, extent: usize) -> Vec<Vec<(usize, usize)>> {
    let (output, before) = over.output(input, extent);
    let of = |output: usize| {
        let taps = (0..extent).filter_map(|tap| {
            let place = (output * over.stride + tap * over.dilation).checked_sub(before)?;
            (place < input).then_some((tap, place))
        });
        taps.collect()
    };
    (0..output).map(of).collect()
}

/// Returns the definition of a convolution in groups, which become channels of the output one behind the other.
fn convolution(
    (x, [n, h, w, c]): (&[f32], [usize; 4]),
    (filter, [kh, kw, own, f]): (&[f32], [usize; 4]),
    over: Over,
) -> (Vec<usize>, Vec<f32>) {
    let (rows, columns) = (places(over, h, kh), places(over, w, kw));
    let per_group = f / (c / own);
    let mut out = Vec::new();
    for image in 0..n {
        for row in &rows {
            for column in &columns {
                for filter_index in 0..f {
                    let first = filter_index / per_group * own;
                    let mut sum = 0.0_f32;
                    for (i, y) in row {
                        for (j, z) in column {
                            for channel in 0..own {
                                sum += x[((image * h + y) * w + z) * c + first + channel]
                                    * filter[((i * kw + j) * own + channel) * f + filter_index];
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
    }
    (vec![n, rows.len(), columns.len(), f], out)
}

/// Small whole numbers, so that sums are exact in any order.
pub(super) fn whole(n: usize, seed: usize) -> Vec<f32> {
    let number = |index: usize| (index * 7 + seed * 5 + index / 11) % 9;
    (0..n).map(|index| number(index) as f32 - 4.0).collect()
}

fn attributes(over: Over) -> OpAttrs {
    let Over {
        stride,
        dilation,
        padding,
        explicit,
    } = over;
    let (stride, dilation) = (stride as i64, dilation as i64);
    let mut attrs = attrs![
        "strides" => [1, stride, stride, 1], "dilations" => [1, dilation, dilation, 1], "padding" => padding
    ];
    if padding == "EXPLICIT" {
        let [before, behind] = explicit.map(|size| size as i64);
        attrs
            .set(
                "explicit_paddings",
                [0, 0, before, behind, before, behind, 0, 0],
            )
            .unwrap();
    }
    attrs
}

pub(super) const OVERS: [Over; 6] = [
    Over {
        stride: 1,
        dilation: 1,
        padding: "SAME",
        explicit: [0, 0],
    },
    Over {
        stride: 1,
        dilation: 1,
        padding: "VALID",
        explicit: [0, 0],
    },
    Over {
        stride: 2,
        dilation: 1,
        padding: "SAME",
        explicit: [0, 0],
    },
    Over {
        stride: 2,
        dilation: 1,
        padding: "EXPLICIT",
        explicit: [1, 2],
    },
    Over {
        stride: 1,
        dilation: 2,
        padding: "SAME",
        explicit: [0, 0],
    },
    Over {
        stride: 3,
        dilation: 2,
        padding: "EXPLICIT",
        explicit: [3, 0],
    },
];

#[test]
fn convolutions_are_those_of_the_definition() {
    let caller = Caller::new();
    for (index, over) in OVERS.into_iter().enumerate() {
        for (input, filter) in [
            ([2, 7, 6, 3], [3, 3, 3, 5]),
            ([1, 9, 5, 16], [3, 3, 16, 16]),
            ([1, 6, 6, 2], [1, 1, 2, 3]),
            ([3, 5, 8, 1], [3, 2, 1, 4]),
        ] {
            let (x, weights) = (
                whole(input.iter().product(), index),
                whole(filter.iter().product(), 3),
            );
            let (extents, wanted) = convolution((&x, input), (&weights, filter), over);
            let (x, weights) = (caller.dense(&input, &x), caller.dense(&filter, &weights));
            let attrs = attributes(over);
            let y = caller.call("tf.Conv2D", &[&x, &weights], &attrs);
            assert_eq!(
                (shape(&y), elements::<f32>(&y)),
                (extents.clone(), wanted.clone()),
                "{over:?} {filter:?}"
            );
            // And of other types.
            let [x64, weights64] = [(&x, &input), (&weights, &filter)].map(|(tensor, extents)| {
                let list: Vec<f64> = elements::<f32>(tensor).into_iter().map(f64::from).collect();
                caller.dense(extents, &list)
            });
            let y = caller.call("tf.Conv2D", &[&x64, &weights64], &attrs);
            let wide: Vec<f64> = wanted.iter().copied().map(f64::from).collect();
            assert_eq!((shape(&y), elements::<f64>(&y)), (extents.clone(), wide));
            let packed = packed(&caller, &weights, over, 1);
            let mut attrs = attributes(over);
            attrs
                .set("filter", filter.map(|extent| extent as i64))
                .unwrap();
            let y = caller.call("tfrt.conv2d", &[&x, &packed], &attrs);
            assert_eq!(shape(&y), extents);
            for (found, wanted) in elements::<f32>(&y).iter().zip(&wanted) {
                // Filters of 3x3 are transformed, which rounds.
                assert!(
                    (found - wanted).abs() < 1e-2,
                    "{over:?} {filter:?}: {found} {wanted}"
                );
            }
        }
    }
}

fn packed(caller: &Caller, filter: &TensorHandle, over: Over, groups: i64) -> TensorHandle {
    let (stride, dilation) = (over.stride as i64, over.dilation as i64);
    let attrs =
        attrs!["strides" => [stride, stride], "dilations" => [dilation], "groups" => groups];
    caller.call("tfrt.pack_conv2d", &[filter], &attrs)
}

#[test]
fn channels_that_do_not_mix_are_those_of_the_definition() {
    let caller = Caller::new();
    for (index, over) in OVERS.into_iter().enumerate() {
        for (channels, each) in [(5, 1), (3, 2), (1, 3), (1, 1), (17, 1)] {
            let (input, filter) = ([2, 7, 6, channels], [3, 3, channels, each]);
            let (x, weights) = (
                whole(input.iter().product(), index),
                whole(filter.iter().product(), 3),
            );
            let grouped = [3, 3, 1, channels * each];
            let (extents, wanted) = convolution((&x, input), (&weights, grouped), over);
            let x = caller.dense(&input, &x);
            let attrs = attributes(over);
            let y = caller.call(
                "tf.DepthwiseConv2dNative",
                &[&x, &caller.dense(&filter, &weights)],
                &attrs,
            );
            assert_eq!(
                (shape(&y), elements::<f32>(&y)),
                (extents.clone(), wanted.clone()),
                "{over:?} {filter:?}"
            );
            // The same in groups of a packed filter.
            let packed = packed(
                &caller,
                &caller.dense(&grouped, &weights),
                over,
                channels as i64,
            );
            let mut attrs = attributes(over);
            attrs
                .set("filter", grouped.map(|extent| extent as i64))
                .unwrap();
            attrs.set("groups", channels as i64).unwrap();
            let y = caller.call("tfrt.conv2d", &[&x, &packed], &attrs);
            assert_eq!(
                (shape(&y), elements::<f32>(&y)),
                (extents, wanted),
                "{over:?} {filter:?}"
            );
        }
    }
}

#[test]
fn filters_for_a_part_of_the_channels_are_those_of_groups() {
    let caller = Caller::new();
    for (index, over) in OVERS.into_iter().enumerate() {
        for (groups, own, filters) in [(2, 3, 4), (4, 1, 4), (3, 2, 9), (2, 1, 6)] {
            // Few pixels and many are convolved in other ways.
            for extent in [7, 20] {
                let (input, filter) = ([1, extent, extent, groups * own], [3, 3, own, filters]);
                let (x, weights) = (
                    whole(input.iter().product(), index),
                    whole(filter.iter().product(), 3),
                );
                let wanted = convolution((&x, input), (&weights, filter), over);
                let inputs = [caller.dense(&input, &x), caller.dense(&filter, &weights)];
                let y = caller.call("tf.Conv2D", &[&inputs[0], &inputs[1]], &attributes(over));
                let found = (shape(&y), elements::<f32>(&y));
                assert_eq!(found, wanted, "{over:?} {input:?} {filter:?}");
            }
        }
    }
}

/// The programs that come with the original.
#[test]
fn ones_are_counted() {
    let caller = Caller::new();
    let x = caller.all(&[4, 4, 4, 4], 1.0_f32);
    let filter = caller.all(&[3, 3, 4, 4], 1.0_f32);
    let cases: [(&str, i64, [usize; 4], &[f32]); 4] = [
        ("VALID", 1, [4, 2, 2, 4], &[36.0; 16]),
        ("VALID", 2, [4, 1, 1, 4], &[36.0; 4]),
        (
            "SAME",
            1,
            [4, 4, 4, 4],
            &[16.0, 16.0, 16.0, 16.0, 24.0, 24.0, 24.0, 24.0, 24.0],
        ),
        (
            "SAME",
            2,
            [4, 2, 2, 4],
            &[36.0, 36.0, 36.0, 36.0, 24.0, 24.0],
        ),
    ];
    for (padding, stride, extents, start) in cases {
        let attrs = attrs![
            "T" => DType::F32, "data_format" => "NHWC", "dilations" => [1_i64, 1, 1, 1],
            "explicit_paddings" => [0_i64; 0], "padding" => padding, "strides" => [1, stride, stride, 1],
            "use_cudnn_on_gpu" => false
        ];
        let y = caller.call("tf.Conv2D", &[&x, &filter], &attrs);
        assert_eq!(shape(&y), extents);
        assert_eq!(elements::<f32>(&y)[..start.len()], *start);
    }
}

#[test]
fn what_follows_a_convolution_is_done_with_it() {
    let caller = Caller::new();
    let over = OVERS[0];
    let (input, filter) = ([1, 5, 5, 3], [3, 3, 3, 4]);
    let (x, weights) = (whole(75, 1), whole(108, 2));
    let (extents, sums) = convolution((&x, input), (&weights, filter), over);
    let n = sums.len();
    let (bias, summand) = (whole(4, 5), whole(n, 6));
    let wanted = |index: usize, ops: &[&str]| {
        let mut value = sums[index];
        for op in ops {
            value = match *op {
                "BiasAdd" => value + bias[index % 4],
                "Add" => value + summand[index],
                "Relu" => value.max(0.0),
                _ => value.clamp(0.0, 6.0),
            };
        }
        value
    };
    let [x, weights, bias, summand] = [
        caller.dense(&input, &x),
        caller.dense(&filter, &weights),
        caller.dense(&[4], &bias),
        caller.dense(&extents, &summand),
    ];
    let packed = packed(&caller, &weights, over, 1);
    let with = |ops: &[&'static str], attrs: &mut OpAttrs| match *ops {
        [a] => drop(attrs.set("fused_ops", [a]).unwrap()),
        [a, b] => drop(attrs.set("fused_ops", [a, b]).unwrap()),
        [a, b, c] => drop(attrs.set("fused_ops", [a, b, c]).unwrap()),
        _ => (),
    };
    let cases: [&[&'static str]; 7] = [
        &["BiasAdd"],
        &["BiasAdd", "Relu"],
        &["BiasAdd", "Relu6"],
        &["BiasAdd", "Add"],
        &["BiasAdd", "Add", "Relu"],
        &["Add", "Relu6"],
        &[],
    ];
    for ops in cases {
        let mut others = Vec::new();
        others.extend(ops.contains(&"BiasAdd").then_some(&bias));
        others.extend(ops.contains(&"Add").then_some(&summand));
        let list: Vec<f32> = (0..n).map(|index| wanted(index, ops)).collect();
        let mut attrs = attributes(over);
        with(ops, &mut attrs);
        if !ops.is_empty() {
            let inputs = [&[&x, &weights], &others[..]].concat();
            let y = caller.call("tf._FusedConv2D", &inputs, &attrs);
            assert_eq!(
                (shape(&y), elements::<f32>(&y)),
                (extents.clone(), list.clone()),
                "{ops:?}"
            );
        }
        attrs.set("filter", [3_i64, 3, 3, 4]).unwrap();
        let inputs = [&[&x, &packed], &others[..]].concat();
        let y = caller.call("tfrt.conv2d", &inputs, &attrs);
        assert_eq!(
            (shape(&y), elements::<f32>(&y)),
            (extents.clone(), list),
            "{ops:?}"
        );
    }
    // What is added is written over if nobody else holds it.
    let mut attrs = attrs!["padding" => "SAME", "filter" => [3_i64, 3, 3, 4]];
    with(&["Add"], &mut attrs);
    let op = caller
        .runtime
        .op("tfrt.conv2d", &caller.runtime.cpu())
        .unwrap();
    let before = address(&summand);
    let y = op
        .call_one(
            &caller.context,
            [x.clone(), packed.clone(), summand],
            &attrs,
        )
        .unwrap();
    settled(&y);
    assert_eq!(address(&y), before);
    let list: Vec<f32> = (0..n).map(|index| wanted(index, &["Add"])).collect();
    assert_eq!(elements::<f32>(&y), list);

    assert_eq!(
        caller.error("tfrt.conv2d", &[&x, &packed, &bias], &attrs),
        "tfrt.conv2d: expected to add a tensor of f32 [1, 5, 5, 4], found f32 [4]"
    );
    let wrong: [&[&'static str]; 4] = [
        &["Relu", "BiasAdd"],
        &["BiasAdd", "FusedBatchNorm"],
        &["Relu", "Relu6"],
        &["Elu"],
    ];
    for ops in wrong {
        let mut attrs = attributes(over);
        with(ops, &mut attrs);
        assert_eq!(
            caller.error("tf._FusedConv2D", &[&x, &weights, &bias], &attrs),
            format!(
                "tf._FusedConv2D: Unsupported fusion type: expected BiasAdd or FusedBatchNorm, then Add, then Relu or \
                 Relu6, found {ops:?}"
            )
        );
    }
    let mut attrs = attributes(over);
    with(&["BiasAdd", "Add"], &mut attrs);
    assert_eq!(
        caller.error("tf._FusedConv2D", &[&x, &weights, &bias], &attrs),
        "tf._FusedConv2D: expected 4 inputs by attribute 'fused_ops', found 3"
    );
}

#[test]
fn normalisation_is_fused_or_folded_into_the_filter() {
    let caller = Caller::new();
    let (input, filter) = ([1, 4, 4, 2], [3, 3, 2, 3]);
    let (x, weights) = (whole(32, 1), whole(54, 2));
    let (_, sums) = convolution((&x, input), (&weights, filter), OVERS[0]);
    let (scale, offset) = ([1.0_f32, 2.0, -0.5], [0.5_f32, -3.0, 1.0]);
    let (mean, variance) = ([1.0_f32, -2.0, 4.0], [4.0_f32, 1.0, 9.0]);
    let list = |numbers: [f32; 3]| caller.dense(&[3], &numbers);
    let lists = [list(scale), list(offset), list(mean), list(variance)];
    let (x, weights) = (caller.dense(&input, &x), caller.dense(&filter, &weights));
    let mut attrs = attrs!["padding" => "SAME", "epsilon" => 0.01_f32];
    attrs.set("fused_ops", ["FusedBatchNorm", "Relu"]).unwrap();
    let inputs = [&x, &weights, &lists[0], &lists[1], &lists[2], &lists[3]];
    let fused = elements::<f32>(&caller.call("tf._FusedConv2D", &inputs, &attrs));

    let op = [&weights, &lists[0], &lists[1], &lists[2], &lists[3]];
    let folded = caller
        .try_all("tfrt.fold_batch_norm", &op, &attrs!["epsilon" => 0.01_f32])
        .unwrap();
    let packed = caller.call("tfrt.pack_conv2d", &[&folded[0]], &none());
    let mut attrs = attrs!["padding" => "SAME", "filter" => [3_i64, 3, 2, 3]];
    attrs.set("fused_ops", ["BiasAdd", "Relu"]).unwrap();
    let y = caller.call("tfrt.conv2d", &[&x, &packed, &folded[1]], &attrs);
    let folded = elements::<f32>(&y);
    for (index, sum) in sums.iter().enumerate() {
        let c = index % 3;
        let wanted = (sum - mean[c]) / (variance[c] + 0.01).sqrt() * scale[c] + offset[c];
        for found in [fused[index], folded[index]] {
            assert!(
                (found - wanted.max(0.0)).abs() < 1e-4,
                "{index}: {found} {wanted}"
            );
        }
    }
    let two = caller.dense(&[2], &[1.0_f32, 1.0]);
    let wrong = [&weights, &two, &two, &two, &two];
    assert_eq!(
        caller.error("tfrt.fold_batch_norm", &wrong, &none()),
        "tfrt.fold_batch_norm: expected an element of f32 for each of 3 filters, found f32 [2]"
    );
}

#[test]
fn images_without_elements_are_convolved() {
    let caller = Caller::new();
    let same = attrs!["padding" => "SAME"];
    for (input, filter, output) in [
        ([0, 4, 4, 2], [3, 3, 2, 5], [0, 4, 4, 5]),
        ([1, 4, 4, 0], [3, 3, 0, 5], [1, 4, 4, 5]),
        ([1, 4, 4, 2], [3, 3, 2, 0], [1, 4, 4, 0]),
        ([1, 0, 4, 2], [3, 3, 2, 5], [1, 0, 4, 5]),
    ] {
        let (x, filter) = (caller.counting(&input), caller.counting(&filter));
        let y = caller.call("tf.Conv2D", &[&x, &filter], &same);
        assert_eq!(shape(&y), output);
        assert!(elements::<f32>(&y).iter().all(|element| *element == 0.0));
    }
    let (x, filter) = (
        caller.counting(&[1, 4, 4, 0]),
        caller.counting(&[3, 3, 0, 1]),
    );
    let y = caller.call("tf.DepthwiseConv2dNative", &[&x, &filter], &same);
    assert_eq!(shape(&y), [1, 4, 4, 0]);
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let run = |caller: &Caller| -> Vec<Vec<f32>> {
        let numbers = |extents: &[usize]| {
            let n = extents.iter().product::<usize>();
            let list: Vec<f32> = (0..n).map(|index| (index as f32 * 0.37).sin()).collect();
            caller.dense(extents, &list)
        };
        let (x, filter) = (numbers(&[2, 41, 37, 32]), numbers(&[3, 3, 32, 48]));
        let same = attrs!["padding" => "SAME"];
        let y = caller.call("tf.Conv2D", &[&x, &filter], &same);
        let packed = packed(caller, &filter, OVERS[0], 1);
        let attrs = attrs!["padding" => "SAME", "filter" => [3_i64, 3, 32, 48]];
        let z = caller.call("tfrt.conv2d", &[&x, &packed], &attrs);
        let depthwise = numbers(&[3, 3, 32, 1]);
        let d = caller.call("tf.DepthwiseConv2dNative", &[&x, &depthwise], &same);
        let attrs = attrs!["padding" => "SAME", "ksize" => [3_i64, 3], "strides" => [2_i64, 2]];
        let largest = caller.call("tf.MaxPool", &[&y], &attrs);
        let means = caller.call("tf.AvgPool", &[&z], &attrs);
        let three = caller.dense(&[], &[3_i32]);
        let joined = caller.call("tf.ConcatV2", &[&y, &d, &z, &three], &none());
        let lists = [0.5_f32, -0.5, 0.25, 2.0].map(|value| caller.all(&[128], value));
        let inputs = [&joined, &lists[0], &lists[1], &lists[2], &lists[3]];
        let normal = caller
            .try_all("tf.FusedBatchNormV3", &inputs, &none())
            .unwrap();
        let mean = caller.call(
            "tf.Mean",
            &[&normal[0], &caller.dense(&[2], &[1_i32, 2])],
            &none(),
        );
        let turned = caller.call(
            "tf.Transpose",
            &[&joined, &caller.dense(&[4], &[0_i32, 3, 1, 2])],
            &none(),
        );
        let all = [
            &y, &z, &d, &largest, &means, &joined, &normal[0], &mean, &turned,
        ];
        all.into_iter().map(elements::<f32>).collect()
    };
    let wanted = run(&Caller::new());
    for n_workers in [1, 3] {
        let queue = MultiThreadedWorkQueue::new(n_workers, 1).unwrap();
        let host = HostContext::builder(KernelRegistry::new()).queue(Arc::new(queue));
        let found = run(&Caller::on(host));
        assert!(found == wanted, "{n_workers} workers");
    }
}
