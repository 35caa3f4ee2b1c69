use proptest::prelude::*;

use super::*;
use crate::math::testing::{Layout, layout_of};
use crate::{BF16, F16};

#[derive(Clone, Debug)]
struct Case {
    layouts: [Layout; 3],
    mask: Option<(Layout, Kind)>,
    options: Attention,
}

/// The kinds of masks.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Additive,
    Boolean,
    Replaced(Replacement),
}

fn kinds() -> impl Strategy<Value = Kind> {
    let replaced = (prop_oneof![Just(0.5), Just(-3.0e4)], any::<bool>());
    let replaced = replaced.prop_map(|(score, weighs_nothing)| {
        Kind::Replaced(Replacement {
            score,
            weighs_nothing,
        })
    });
    prop_oneof![Just(Kind::Additive), Just(Kind::Boolean), replaced]
}

impl Kind {
    fn mask<'a, T: AttentionElement>(
        self,
        layout: &Layout,
        added: &'a [T],
        seen: &'a [Bool],
    ) -> Mask<'a, T> {
        match self {
            Kind::Additive => Mask::Additive(layout.view(added)),
            Kind::Boolean => Mask::Boolean(layout.view(seen)),
            Kind::Replaced(by) => Mask::Replaced(layout.view(seen), by),
        }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let extents = (
        0..3_usize,
        (0..3_usize, 1..3_usize),
        prop_oneof![0..4_usize, Just(70), Just(1)],
        prop_oneof![0..5_usize, Just(130)],
        (0..6_usize, 0..6_usize),
    );
    extents.prop_flat_map(
        |(batch, (key_heads, n_sharing), n_queries, n_keys, (depth, width))| {
            let heads = key_heads * n_sharing;
            let mask = (prop::collection::vec(any::<bool>(), 4), 0..5_usize, kinds())
                .prop_flat_map(move |(ones, missing, kind)| {
                    let all = [batch, heads, n_queries, n_keys];
                    let own = all
                        .iter()
                        .zip(ones)
                        .map(|(extent, one)| if one { 1 } else { *extent });
                    (layout_of(own.skip(missing).collect()), Just(kind))
                });
            let causal = prop::option::of(0..5_usize);
            let lens = prop::option::of(prop::collection::vec(0..7_usize, batch));
            let scale = prop::option::of(0.1..1.0_f64);
            (
                [
                    layout_of(vec![batch, heads, n_queries, depth]).boxed(),
                    layout_of(vec![batch, key_heads, n_keys, depth]).boxed(),
                    layout_of(vec![batch, key_heads, n_keys, width]).boxed(),
                ],
                prop::option::of(mask),
                (scale, causal, lens),
            )
                .prop_map(|(layouts, mask, (scale, causal, lens))| Case {
                    layouts,
                    mask,
                    options: Attention {
                        scale,
                        causal,
                        lens,
                    },
                })
        },
    )
}

fn value(seed: usize) -> f64 {
    ((seed * 7919 + 13) % 1009) as f64 / 200.0 - 2.5
}

/// Returns attention by its definition: all scores, softmax, and the sum of values.
fn composed(case: &Case, [q, k, v]: [&TensorView<'_, f64>; 3], mask: &Mask<'_, f64>) -> Vec<f64> {
    let (shape, width) = (q.extents(), v.extents()[3]);
    let [n_keys, depth] = [k.extents()[2], shape[3]];
    let scale = case
        .options
        .scale
        .unwrap_or(1.0 / (depth.max(1) as f64).sqrt());
    let mut out = Vec::new();
    for (b, h, i) in (0..shape[0])
        .flat_map(|b| (0..shape[1]).map(move |h| (b, h)))
        .flat_map(|(b, h)| (0..shape[2]).map(move |i| (b, h, i)))
    {
        let own = h * k.extents()[1] / shape[1];
        let all = [shape[0], shape[1], shape[2], n_keys];
        let is_seen = |j: usize| match mask {
            Mask::Boolean(view) | Mask::Replaced(view, _) => {
                let view = view.broadcast(&all).unwrap();
                bool::from(view.get(&[b, h, i, j]).unwrap())
            }
            _ => true,
        };
        let scores: Vec<f64> = (0..n_keys)
            .map(|j| {
                let product: f64 = (0..depth)
                    .map(|d| q.get(&[b, h, i, d]).unwrap() * k.get(&[b, own, j, d]).unwrap())
                    .sum();
                let score = match mask {
                    Mask::Additive(view) => {
                        let view = view.broadcast(&all).unwrap();
                        product * scale + view.get(&[b, h, i, j]).unwrap()
                    }
                    Mask::Boolean(_) if !is_seen(j) => f64::NEG_INFINITY,
                    Mask::Replaced(_, by) if !is_seen(j) => by.score,
                    _ => product * scale,
                };
                let is_ahead = case.options.causal.is_some_and(|before| j > before + i);
                let lens = case.options.lens.as_ref();
                let is_ahead = is_ahead || lens.is_some_and(|lens| j >= lens[b]);
                if is_ahead { f64::NEG_INFINITY } else { score }
            })
            .collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores
            .iter()
            .map(|x| {
                if largest == f64::NEG_INFINITY {
                    0.0
                } else {
                    (x - largest).exp()
                }
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        out.extend((0..width).map(|w| {
            let total: f64 = weights
                .iter()
                .enumerate()
                .filter(|(j, _)| match mask {
                    Mask::Replaced(_, by) => is_seen(*j) || !by.weighs_nothing,
                    _ => true,
                })
                .map(|(j, weight)| weight * v.get(&[b, own, j, w]).unwrap())
                .sum();
            if sum == 0.0 { 0.0 } else { total / sum }
        }));
    }
    out
}

/// Returns the result of attention for elements of a type.
fn fused<T: AttentionElement>(case: &Case, lists: &[Vec<f64>; 4], seen: &[Bool]) -> Vec<f64> {
    let lists: Vec<Vec<T>> = lists
        .iter()
        .map(|list| list.iter().map(|x| T::from_f64(*x)).collect())
        .collect();
    let [q, k, v] = [0, 1, 2].map(|index: usize| case.layouts[index].view(&lists[index]));
    let mask = match &case.mask {
        None => Mask::None,
        Some((layout, kind)) => kind.mask(layout, &lists[3], seen),
    };
    let shape = [
        q.extents()[0],
        q.extents()[1],
        q.extents()[2],
        v.extents()[3],
    ];
    let mut out = vec![T::ONE; shape.iter().product()];
    attention(
        &case.options,
        [&q, &k, &v],
        &mask,
        &mut TensorViewMut::new(&mut out, &shape).unwrap(),
    )
    .unwrap();
    out.iter().map(|x| x.to_f64()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn attention_is_what_its_parts_give(case in cases(), seed in 0..1000_usize) {
        let mut lists: [Vec<f64>; 4] = std::array::from_fn(|which| {
            let len = match which {
                3 => case.mask.as_ref().map_or(0, |(layout, _)| layout.len),
                _ => case.layouts[which].len,
            };
            // Numbers that all types have.
            (0..len).map(|i| (value(i + seed * (which + 1)) * 8.0).round() / 8.0).collect()
        });
        for (index, x) in lists[3].iter_mut().enumerate() {
            if (index + seed) % 3 == 0 {
                *x = f64::NEG_INFINITY;
            }
        }
        let seen: Vec<Bool> = (0..lists[3].len()).map(|index| ((index + seed) % 3 != 0).into()).collect();
        let [q, k, v] = [0, 1, 2].map(|index: usize| case.layouts[index].view(&lists[index]));
        let mask = match &case.mask {
            None => Mask::None,
            Some((layout, kind)) => kind.mask(layout, &lists[3], &seen),
        };
        let wanted = composed(&case, [&q, &k, &v], &mask);
        let found = [
            (fused::<f64>(&case, &lists, &seen), 1e-9),
            (fused::<f32>(&case, &lists, &seen), 1e-4),
            (fused::<F16>(&case, &lists, &seen), 2e-3),
            (fused::<BF16>(&case, &lists, &seen), 2e-2),
        ];
        for (found, tolerance) in found {
            prop_assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(&wanted) {
                prop_assert!((found - wanted).abs() <= tolerance * (1.0 + wanted.abs()), "{} {}", found, wanted);
            }
        }
    }
}

#[test]
fn what_is_no_number_stays_so_for_its_query() {
    let q = TensorView::new(&[1.0_f32, f32::NAN], &[1, 1, 2, 1]).unwrap();
    let k = TensorView::new(&[1.0, 2.0, 3.0], &[1, 1, 3, 1]).unwrap();
    let mut out = [0.0; 2];
    let mut view = TensorViewMut::new(&mut out, &[1, 1, 2, 1]).unwrap();
    attention(&Attention::default(), [&q, &k, &k], &Mask::None, &mut view).unwrap();
    assert!(out[0] > 1.0 && out[1].is_nan());
}

#[test]
fn a_query_gets_the_same_bits_among_others() {
    let (n_queries, n_keys, depth, width) = (70, 150, 20, 36);
    let list = |seed: usize, n: usize| -> Vec<f32> {
        (0..n).map(|i| value(i + seed) as f32 / 4.0).collect()
    };
    let (q, k, v) = (
        list(1, 4 * n_queries * depth),
        list(2, 2 * n_keys * depth),
        list(3, 2 * n_keys * width),
    );
    let k = TensorView::new(&k, &[1, 2, n_keys, depth]).unwrap();
    let v = TensorView::new(&v, &[1, 2, n_keys, width]).unwrap();
    let all = TensorView::new(&q, &[1, 4, n_queries, depth]).unwrap();
    let of = |before: usize, q: &TensorView<'_, f32>| {
        let options = Attention {
            causal: Some(80 + before),
            ..Attention::default()
        };
        let extents = [1, 4, q.extents()[2], width];
        let mut out = vec![0.0; extents.iter().product()];
        let mut view = TensorViewMut::new(&mut out, &extents).unwrap();
        attention(&options, [q, &k, &v], &Mask::None, &mut view).unwrap();
        out
    };
    let together = of(0, &all);
    for query in 0..n_queries {
        let own: Vec<f32> = (0..4)
            .flat_map(|head| q[(head * n_queries + query) * depth..][..depth].to_vec())
            .collect();
        let alone = of(query, &TensorView::new(&own, &[1, 4, 1, depth]).unwrap());
        for head in 0..4 {
            let found = &together[(head * n_queries + query) * width..][..width];
            let wanted = &alone[head * width..][..width];
            assert_eq!(bits(found), bits(wanted), "{query} of head {head}");
        }
    }
}

fn bits(list: &[f32]) -> Vec<u32> {
    list.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn shapes_that_do_not_fit_are_told() {
    let list = [0.0_f32; 64];
    let view =
        |extents: &[usize]| TensorView::new(&list[..extents.iter().product()], extents).unwrap();
    let of = |q: &[usize], k: &[usize], v: &[usize], mask: Mask<'_, f32>, out: &[usize]| {
        let mut list = [0.0; 64];
        let mut out = TensorViewMut::new(&mut list[..out.iter().product()], out).unwrap();
        attention(
            &Attention::default(),
            [&view(q), &view(k), &view(v)],
            &mask,
            &mut out,
        )
    };
    let fits = [1, 2, 3, 4];
    assert!(of(&fits, &fits, &fits, Mask::None, &fits).is_ok());
    assert!(of(&fits, &[1, 2, 3, 5], &fits, Mask::None, &fits).is_err());
    assert!(of(&fits, &[1, 2, 4, 4], &fits, Mask::None, &fits).is_err());
    assert!(of(&[1, 3, 3, 4], &fits, &fits, Mask::None, &[1, 3, 3, 4]).is_err());
    assert!(of(&fits, &[1, 0, 3, 4], &[1, 0, 3, 4], Mask::None, &fits).is_err());
    assert!(of(&fits, &fits, &fits, Mask::None, &[1, 2, 3, 5]).is_err());
    assert!(of(&fits[1..], &fits, &fits, Mask::None, &fits).is_err());
    assert!(of(&fits, &fits, &fits, Mask::Additive(view(&[2, 3])), &fits).is_err());
    assert!(of(&fits, &fits, &fits, Mask::Additive(view(&[3, 3])), &fits).is_ok());
    let large = [1 << 40, 0, 1 << 40, 1 << 40];
    let empty = TensorView::<f32>::new(&[], &large).unwrap();
    let mut out = TensorViewMut::new(&mut [], &large).unwrap();
    let causal = Attention {
        scale: None,
        causal: Some(usize::MAX),
        lens: None,
    };
    attention(&causal, [&empty, &empty, &empty], &Mask::None, &mut out).unwrap();
}

#[test]
fn heads_side_by_side_are_those_behind_each_other() {
    for [batch, n_queries, n_keys, heads, depth, width] in [
        [1, 1, 1, 1, 1, 1],
        [2, 3, 5, 2, 4, 3],
        [2, 70, 130, 3, 8, 8],
        [1, 4, 0, 2, 2, 2],
        [0, 3, 3, 2, 2, 2],
    ] {
        let list = |seed: usize, n: usize| -> Vec<f32> {
            (0..n).map(|i| value(i + seed) as f32 / 4.0).collect()
        };
        let (q, k) = (
            list(1, batch * n_queries * heads * depth),
            list(2, batch * n_keys * heads * depth),
        );
        let v = list(3, batch * n_keys * heads * width);
        let added = list(4, batch * n_keys);
        let mask = Mask::Additive(TensorView::new(&added, &[batch, 1, 1, n_keys]).unwrap());
        let lists = [
            (&q, n_queries, depth),
            (&k, n_keys, depth),
            (&v, n_keys, width),
        ];
        let beside = lists
            .map(|(list, rows, own)| TensorView::new(list, &[batch, rows, heads * own]).unwrap());
        let apart = lists.map(|(list, rows, own)| {
            let view = TensorView::new(list, &[batch, rows, heads, own]).unwrap();
            view.permute(&[0, 2, 1, 3]).unwrap()
        });
        let n = batch * n_queries * heads * width;
        let (mut found, mut wanted) = (vec![1.0; n], vec![1.0; n]);
        let options = Attention {
            scale: None,
            causal: Some(2),
            lens: None,
        };
        let mut out = TensorViewMut::new(&mut found, &[batch, n_queries, heads * width]).unwrap();
        attention_merged_heads(&options, heads, beside.each_ref(), &mask, &mut out).unwrap();
        let mut out = TensorViewMut::new(&mut wanted, &[batch, heads, n_queries, width]).unwrap();
        attention(&options, apart.each_ref(), &mask, &mut out).unwrap();
        for (index, found) in found.iter().enumerate() {
            let (row, column) = (index / width / heads, index % width);
            let head = index / width % heads;
            let (b, query) = (row / n_queries, row % n_queries);
            let wanted = wanted[((b * heads + head) * n_queries + query) * width + column];
            assert!((found - wanted).abs() <= 1e-5, "{found} {wanted}");
        }
    }
    let view = TensorView::new(&[0.0_f32; 6], &[1, 2, 3]).unwrap();
    let mut out = [0.0; 6];
    let mut out = TensorViewMut::new(&mut out, &[1, 2, 3]).unwrap();
    for heads in [0, 2] {
        let inputs = [&view; 3];
        let wrong =
            attention_merged_heads(&Attention::default(), heads, inputs, &Mask::None, &mut out);
        assert!(wrong.unwrap_err().message().contains("heads side by side"));
    }
}

#[test]
fn keys_and_values_that_grow_are_read_where_they_lie() {
    use std::sync::Arc;

    use tfrt_host::kernel::KernelRegistry;
    use tfrt_host::{HostContext, RequestContext};

    use crate::math::number::Real;

    let host = HostContext::builder(KernelRegistry::new()).build();
    let execution = tfrt_host::ExecutionContext::new(&RequestContext::new(&host));
    let allocator: &Arc<_> = host.allocator();
    let of = |extents: &[usize], seed: usize| {
        let n: usize = extents.iter().product();
        let list: Vec<F16> = (0..n).map(|i| F16::from_f64(value(i + seed))).collect();
        DenseHostTensor::from_slice(allocator, extents, &list).unwrap()
    };
    let queries = of(&[2, 4, 3, 8], 1);
    let (mut cache, mut whole) = (Vec::new(), Vec::new());
    for width in [8, 5] {
        let first = of(&[2, 2, 140, width], width);
        let more = of(&[2, 2, 3, width], width + 1);
        let tensor = GrowableTensor::new(allocator, &first, 2, 200, "the cache").unwrap();
        cache.push(tensor.appended(allocator, &[&more]).unwrap());
        whole.push(cache[cache.len() - 1].to_dense(allocator).unwrap());
    }
    let mask = of(&[3, 143], 9);
    let options = Attention {
        scale: None,
        causal: Some(140),
        lens: None,
    };
    let result = || of(&[2, 4, 3, 5], 0);
    let bits = |out: &DenseHostTensor| out.read().unwrap().bytes().to_vec();
    for mask in [TensorMask::None, TensorMask::Additive(mask)] {
        let (found, wanted) = (result(), result());
        let caches = [&cache[0], &cache[1]];
        let done =
            attention_over_cache_into(&execution, &options, &queries, caches, mask.clone(), &found);
        host.queue().await_all(&[done.unwrap().into_any()]).unwrap();
        let inputs = [&queries, &whole[0], &whole[1]];
        let done = attention_into(&execution, &options, inputs, mask, &wanted);
        host.queue().await_all(&[done.unwrap().into_any()]).unwrap();
        assert_eq!(bits(&found), bits(&wanted));
    }
    let other = GrowableTensor::new(allocator, &whole[0], 1, 9, "the cache").unwrap();
    let caches = [&other, &other];
    let wrong = attention_over_cache_into(
        &execution,
        &options,
        &queries,
        caches,
        TensorMask::None,
        &result(),
    );
    assert!(
        wrong
            .unwrap_err()
            .message()
            .contains("third dimension of four")
    );
}
