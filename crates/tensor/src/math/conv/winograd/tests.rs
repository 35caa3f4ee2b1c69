use std::sync::Arc;

use proptest::prelude::*;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{HostAllocator, HostContext};

use super::super::tests::{Case, products};
use super::super::{Convolution, PackedFilter, convolve_packed};
use super::*;
use crate::math::packed_gemm::{Activation, Addend, Epilogue};
use crate::math::window::{Padding, Window};
use crate::{TensorView, TensorViewMut};

fn allocator() -> Arc<dyn HostAllocator> {
    let host = HostContext::builder(KernelRegistry::new()).build();
    host.allocator().clone()
}

/// Returns numbers that look random, between -1 and 1.
fn random(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn packed(set: InstructionSet, method: Method, case: &Case, w: &[f32]) -> PackedFilter {
    let view = TensorView::new(w, &case.filter).unwrap();
    let filter = PackedFilter::pack_for(&allocator(), set, method, &view, 1).unwrap();
    let again = filter.elements().clone();
    let again = PackedFilter::from_elements(set, &case.filter, 1, again).unwrap();
    assert_eq!(again.method(), filter.method());
    again
}

fn convolved(
    case: &Case,
    filter: &PackedFilter,
    x: &[f32],
    epilogue: Epilogue<'_>,
    out: &mut [f32],
) {
    let output = case.convolution.output_extents(&case.input, &case.filter);
    let x = TensorView::new(x, &case.input).unwrap();
    let mut out = TensorViewMut::new(out, &output.unwrap()).unwrap();
    convolve_packed(&case.convolution, &x, filter, epilogue, &mut out).unwrap();
}

fn sets() -> impl Iterator<Item = InstructionSet> {
    let all = InstructionSet::ALL.into_iter();
    all.filter(|set| set.is_available())
}

const METHODS: [Method; 2] = [Method::Winograd2, Method::Winograd4];

/// Compares with the definition, on all instruction sets, with all that can follow.
fn check(case: &Case) {
    let output = case.convolution.output_extents(&case.input, &case.filter);
    let output = output.unwrap();
    let n = |extents: &[usize]| extents.iter().product::<usize>();
    let (n_out, filters) = (n(&output), *output.last().unwrap());
    let (x, w) = (random(n(&case.input), 1), random(n(&case.filter), 2));
    let (scale, shift, other) = (random(filters, 3), random(filters, 4), random(n_out, 5));
    let (mut sums, mut sizes) = (vec![0.0; n_out], vec![0.0; n_out]);
    for [out, input, filter] in products(case, &output) {
        let product = f64::from(x[input]) * f64::from(w[filter]);
        sums[out] += product;
        sizes[out] += product.abs();
    }
    let largest = sizes
        .iter()
        .fold(1.0_f64, |largest, size| largest.max(*size));
    for (set, method) in sets().flat_map(|set| METHODS.map(|method| (set, method))) {
        let filter = packed(set, method, case, &w);
        for (added, factor, activation) in [
            (Addend::Nothing, 0.0, Activation::None),
            (Addend::Elements(&other), 1.0, Activation::Relu),
            (Addend::Result(2.0), 2.0, Activation::Relu6),
        ] {
            let epilogue = Epilogue {
                scale: Some(&scale),
                shift: Some(&shift),
                added,
                activation,
                then: None,
            };
            let mut out = match added {
                Addend::Result(_) => other.clone(),
                _ => vec![f32::NAN; n_out],
            };
            convolved(case, &filter, &x, epilogue, &mut out);
            for (index, found) in out.iter().enumerate() {
                let of = |list: &[f32]| f64::from(list[index % filters]);
                let wanted =
                    sums[index] * of(&scale) + of(&shift) + factor * f64::from(other[index]);
                let wanted = match activation {
                    Activation::None => wanted,
                    Activation::Relu => wanted.max(0.0),
                    Activation::Relu6 => wanted.clamp(0.0, 6.0),
                };
                let off = (f64::from(*found) - wanted).abs();
                assert!(
                    off <= 2e-6 * largest,
                    "{set:?} {method:?} {index}: {found}, wanted {wanted}"
                );
            }
        }
    }
}

fn case(batch: usize, [height, width]: [usize; 2], channels: [usize; 2], padding: Padding) -> Case {
    Case {
        convolution: Convolution::new(&[Window::new(3, 1, padding); 2]),
        input: vec![batch, height, width, channels[0]],
        filter: vec![3, 3, channels[0], channels[1]],
        values: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn squares_are_those_of_the_definition(
        batch in 0..3_usize, extents in [0..12_usize, 0..12_usize],
        channels in [1..40_usize, 1..40_usize],
        padding in prop_oneof![
            Just(Padding::Valid), Just(Padding::Same),
            (0..5_usize, 0..4_usize).prop_map(|(before, behind)| Padding::Explicit(before, behind)),
        ],
    ) {
        let case = case(batch, extents, channels, padding);
        prop_assume!(case.convolution.output_extents(&case.input, &case.filter).is_ok());
        check(&case);
    }
}

#[test]
fn many_channels_and_squares_are_summed() {
    check(&case(1, [9, 17], [40, 70], Padding::Same));
    check(&case(3, [5, 5], [64, 70], Padding::Same));
    check(&case(1, [4, 5], [1030, 8], Padding::Valid));
}

#[test]
fn what_is_not_finite_is_seen_by_its_windows_alone() {
    let case = case(2, [13, 11], [35, 40], Padding::Same);
    let n = case.input.iter().product();
    let w: Vec<f32> = random(9 * 35 * 40, 2);
    let finite = random(n, 1);
    let mut x = finite.clone();
    let places = [
        (0, f32::NAN),
        (35 * 50 + 3, f32::INFINITY),
        (35 * 190 + 34, f32::MAX),
    ];
    for (place, value) in places {
        x[place] = value;
    }
    for (set, method) in sets().flat_map(|set| METHODS.map(|method| (set, method))) {
        let n_out = n / 35 * 40;
        let of = |method: Method, x: &[f32]| {
            let mut out = vec![1.0; n_out];
            let epilogue = Epilogue {
                added: Addend::Result(1.0),
                ..Epilogue::default()
            };
            convolved(
                &case,
                &packed(set, method, &case, &w),
                x,
                epilogue,
                &mut out,
            );
            out
        };
        let (wanted, found) = (of(Method::Direct, &x), of(method, &x));
        assert!(wanted.iter().any(|x| x.is_nan()) && wanted.iter().any(|x| x.is_infinite()));
        for (index, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            // Beside what is large the filter's error is that of its largest tap.
            let scale = if wanted.abs() > 1e30 { f32::MAX } else { 100.0 };
            let is_near = (found - wanted).abs() <= 1e-6 * scale;
            let is_same = found == wanted || (found.is_nan() && wanted.is_nan());
            assert!(
                is_near || is_same,
                "{set:?} {method:?} {index}: {found}, wanted {wanted}"
            );
        }
    }
}

#[test]
fn filters_that_are_not_finite_are_packed_for_the_definition() {
    let case = case(1, [4, 4], [2, 3], Padding::Same);
    for wild in [f32::NAN, f32::NEG_INFINITY, 1e30] {
        let mut w = random(54, 1);
        w[7] = wild;
        let filter = packed(InstructionSet::best(), Method::Winograd4, &case, &w);
        assert_eq!(filter.method(), Method::Direct);
    }
}

#[test]
fn without_filters_there_may_be_any_number_of_images() {
    let mut case = case(1, [4, 4], [1, 0], Padding::Same);
    case.input = vec![usize::MAX / 200, 1, 200, 1];
    let plan = case.convolution.plan(&case.input, &case.filter).unwrap();
    let layout = layout(InstructionSet::best(), 1, 0).unwrap();
    let tiling = Tiling::new(&plan, Method::Winograd2, layout);
    assert!(tiling.len() > 0);
}

#[test]
fn methods_fit_their_windows() {
    let dense = Convolution::new(&[Window::new(3, 1, Padding::Same); 2]);
    let wide = Convolution::new(&[Window::new(3, 2, Padding::Same); 2]);
    assert_eq!(Method::best(&dense, &[3, 3, 64, 64]), Method::Winograd4);
    assert_eq!(Method::best(&dense, &[3, 3, 512, 512]), Method::Winograd2);
    for (convolution, filter) in [
        (&wide, &[3, 3, 64, 64][..]),
        (&dense, &[3, 3, 8, 64]),
        (&dense, &[3, 64, 64]),
        (&dense, &[1, 1, 64, 64]),
    ] {
        assert_eq!(Method::best(convolution, filter), Method::Direct);
    }
    let pack = |extents: &[usize], groups| {
        let elements = vec![0.0; extents.iter().product()];
        let view = TensorView::new(&elements, extents).unwrap();
        let (allocator, set) = (allocator(), InstructionSet::best());
        PackedFilter::pack_for(&allocator, set, Method::Winograd2, &view, groups)
    };
    assert!(pack(&[3, 2, 4, 4], 1).is_err());
    assert!(pack(&[3, 3, 4, 4], 2).is_err());
    let filter = pack(&[3, 3, 4, 4], 1).unwrap();
    let x = TensorView::new(&[0.0; 100], &[1, 5, 5, 4]).unwrap();
    let mut out = [0.0; 36];
    let mut out = TensorViewMut::new(&mut out, &[1, 3, 3, 4]).unwrap();
    let error = convolve_packed(&wide, &x, &filter, Epilogue::default(), &mut out).unwrap_err();
    assert!(error.message().contains("stride 1"));
}
