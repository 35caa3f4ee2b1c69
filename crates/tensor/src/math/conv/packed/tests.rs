use std::sync::Arc;

use proptest::prelude::*;
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;

use super::super::tests::{Case, cases, products};
use super::*;
use crate::math::packed_gemm::{Activation, Addend};
use crate::math::window::{Padding, Window};

fn allocator() -> Arc<dyn HostAllocator> {
    let host = HostContext::builder(KernelRegistry::new()).build();
    host.allocator().clone()
}

/// Returns the sums of a case, by the definition.
fn sums(case: &Case, output: &[usize], x: &[f32], w: &[f32]) -> Vec<f64> {
    let mut sums = vec![0.0; output.iter().product()];
    for [out, input, filter] in products(case, output) {
        sums[out] += f64::from(x[input]) * f64::from(w[filter]);
    }
    sums
}

/// Convolves on all instruction sets, with all epilogues, and compares with what is `wanted` of each sum.
fn check(case: &Case, output: &[usize], x: &[f32], w: &[f32], tolerance: f64) {
    let (filters, n_out) = (*output.last().unwrap(), output.iter().product::<usize>());
    let numbers = |n: usize, least: i32| -> Vec<f32> {
        (0..n).map(|i| ((i % 5) as i32 + least) as f32).collect()
    };
    let (scale, shift, other) = (
        numbers(filters, -2),
        numbers(filters, -1),
        numbers(n_out, -3),
    );
    let sums = sums(case, output, x, w);
    for set in InstructionSet::all_precisions().filter(|set| set.is_available()) {
        let view = TensorView::new(w, &case.filter).unwrap();
        let groups = case.convolution.groups;
        let filter =
            PackedFilter::pack_for(&allocator(), set, Method::Direct, &view, groups).unwrap();
        let again = filter.elements().clone();
        let filter = PackedFilter::from_elements(set, filter.extents(), groups, again).unwrap();
        for (added, factor) in [
            (Addend::Nothing, 0.0),
            (Addend::Elements(&other), 1.0),
            (Addend::Result(2.0), 2.0),
        ] {
            for (activation, least, greatest) in [
                (Activation::None, f64::NEG_INFINITY, f64::INFINITY),
                (Activation::Relu, 0.0, f64::INFINITY),
                (Activation::Relu6, 0.0, 6.0),
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
                convolve_packed(
                    &case.convolution,
                    &TensorView::new(x, &case.input).unwrap(),
                    &filter,
                    epilogue,
                    &mut TensorViewMut::new(&mut out, output).unwrap(),
                )
                .unwrap();
                for (index, (found, sum)) in out.iter().zip(&sums).enumerate() {
                    let of = |list: &[f32]| f64::from(list[index % filters]);
                    let wanted = sum * of(&scale) + of(&shift) + factor * f64::from(other[index]);
                    let wanted = wanted.max(least).min(greatest);
                    let off = (f64::from(*found) - wanted).abs();
                    assert!(
                        off <= tolerance,
                        "{set:?} {index}: {found}, wanted {wanted}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn packed_convolutions_are_those_of_the_definition(case in cases()) {
        let Ok(output) = case.convolution.output_extents(&case.input, &case.filter) else { return Ok(()) };
        let n = |extents: &[usize]| extents.iter().product::<usize>();
        let [n_in, n_filter, n_out] = [n(&case.input), n(&case.filter), n(&output)];
        prop_assume!(n_in <= 2000 && n_filter <= 1000 && n_out <= 1500);
        let float = |values: &[i32]| values.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let (x, w) = (float(&case.values[..n_in]), float(&case.values[n_in..n_in + n_filter]));
        check(&case, &output, &x, &w, 0.0);
    }
}

#[test]
fn wide_channels_are_read_tap_by_tap() {
    let window = |extent, stride, dilation, padding| Window {
        extent,
        stride,
        dilation,
        padding,
    };
    // Channels, filters, windows, the input's extents.
    for (channels, filters, windows, spatial) in [
        (24, 33, [window(3, 1, 1, Padding::Same); 2], [6, 7]),
        (
            30,
            70,
            [window(3, 2, 2, Padding::Explicit(1, 3)); 2],
            [9, 8],
        ),
        (1024, 5, [window(1, 1, 1, Padding::Valid); 2], [4, 5]),
        (512, 40, [window(1, 2, 1, Padding::Same); 2], [5, 4]),
        (
            256,
            16,
            [window(1, 4, 1, Padding::Explicit(2, 3)); 2],
            [5, 6],
        ),
        (5, 9, [window(4, 3, 1, Padding::Explicit(5, 5)); 2], [3, 4]),
        (30, 9, [window(1, 2, usize::MAX, Padding::Valid); 2], [3, 4]),
        (
            30,
            9,
            [window(2, 9, 20, Padding::Explicit(18, 2)); 2],
            [3, 4],
        ),
    ] {
        check_shapes([channels, filters, 1], &windows, spatial);
    }
}

#[test]
fn few_channels_are_taken_apart() {
    let window = |extent, stride, padding| Window::new(extent, stride, padding);
    // Channels, filters and groups, windows, the input's extents.
    for (channels, windows, spatial) in [
        (
            [1, 6, 1],
            [window(5, 1, Padding::Explicit(2, 2)); 2],
            [28, 28],
        ),
        ([6, 16, 1], [window(5, 1, Padding::Valid); 2], [14, 14]),
        (
            [3, 40, 1],
            [window(7, 2, Padding::Explicit(3, 3)); 2],
            [20, 33],
        ),
        ([3, 33, 1], [window(3, 3, Padding::Same); 2], [17, 19]),
        (
            [7, 5, 1],
            [window(3, 1, Padding::Explicit(9, 2)); 2],
            [4, 6],
        ),
        (
            [4, 20, 2],
            [window(3, 2, Padding::Explicit(0, 1)); 2],
            [9, 13],
        ),
        // More lines than are copied at a time, and lines longer than that.
        ([3, 2, 1], [window(3, 1, Padding::Same); 2], [30, 150]),
        ([8, 2, 1], [window(2, 2, Padding::Valid); 2], [4, 1200]),
        // What is looked at lies in the padding, more or less.
        (
            [2, 3, 1],
            [window(4, 4, Padding::Explicit(9, 17)); 2],
            [3, 5],
        ),
        (
            [2, 3, 1],
            [window(2, 1, Padding::Explicit(3, 3)); 2],
            [2, 0],
        ),
        (
            [2, 3, 1],
            [
                window(1, 1, Padding::Explicit(2, 0)),
                window(3, 2, Padding::Valid),
            ],
            [3, 12],
        ),
    ] {
        check_shapes(channels, &windows, spatial);
    }
    let line = [window(4, 2, Padding::Explicit(1, 1))];
    check_shapes([2, 7, 1], &line, [21]);
}

/// Checks a convolution of two images, of these channels, filters and groups.
fn check_shapes<const N: usize>(
    [channels, filters, groups]: [usize; 3],
    windows: &[Window; N],
    spatial: [usize; N],
) {
    let extents: Vec<usize> = windows.iter().map(|window| window.extent).collect();
    let case = Case {
        convolution: Convolution {
            groups,
            ..Convolution::new(windows)
        },
        input: [&[2], &spatial[..], &[channels]].concat(),
        filter: [&extents[..], &[channels / groups, filters]].concat(),
        values: Vec::new(),
    };
    let output = case.convolution.output_extents(&case.input, &case.filter);
    let random = |n: usize, factor: usize| -> Vec<f32> {
        (0..n)
            .map(|i| ((i * factor + i / 7) % 9) as f32 - 4.0)
            .collect()
    };
    let x = random(case.input.iter().product(), 5);
    let w = random(case.filter.iter().product(), 11);
    check(&case, &output.unwrap(), &x, &w, 0.0);
}

#[test]
fn groups_of_any_number_of_filters_fill_their_panels() {
    for (groups, own, each) in [
        (4, 34, 34),
        (3, 6, 28),
        (2, 5, 24),
        (2, 40, 17),
        (3, 2, 9),
        (5, 7, 3),
        (2, 3, 72),
    ] {
        let window = Window::new(1, 1, Padding::Valid);
        check_shapes([groups * own, groups * each, groups], &[window; 2], [3, 7]);
    }
}

#[test]
fn what_is_no_number_stays_that() {
    let convolution = Convolution::new(&[Window::new(1, 1, Padding::Valid)]);
    let filter = TensorView::new(&[1.0; 40], &[1, 1, 40]).unwrap();
    for set in InstructionSet::all_precisions().filter(|set| set.is_available()) {
        let filter = PackedFilter::pack_for(&allocator(), set, Method::Direct, &filter, 1).unwrap();
        let mut out = [0.0; 120];
        let epilogue = Epilogue {
            activation: Activation::Relu6,
            ..Epilogue::default()
        };
        let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let x = TensorView::new(&x, &[1, 3, 1]).unwrap();
        let mut view = TensorViewMut::new(&mut out, &[1, 3, 40]).unwrap();
        convolve_packed(&convolution, &x, &filter, epilogue, &mut view).unwrap();
        assert!(out[..40].iter().all(|x| x.is_nan()));
        assert_eq!(out[40..], [[6.0; 40], [0.0; 40]].concat());
    }
}

#[test]
fn filters_that_do_not_fit_are_told() {
    let elements = [0.0; 12];
    let view = |extents: &[usize]| TensorView::new(&elements, extents).unwrap();
    let message = |filter: &TensorView<'_, f32>, groups| {
        PackedFilter::pack(&allocator(), filter, groups)
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert!(message(&view(&[12]), 1).contains("[window.., channels / groups, filters]"));
    assert!(message(&view(&[1, 4, 3]), 2).contains("3 filters can't be divided into 2 groups"));
    let packed = PackedFilter::pack(&allocator(), &view(&[1, 2, 6]), 2).unwrap();
    let input = TensorView::new(&elements, &[1, 3, 4]).unwrap();
    let mut out = [0.0; 18];
    let mut convolve = |convolution: &Convolution, epilogue: Epilogue<'_>| {
        let mut out = TensorViewMut::new(&mut out, &[1, 3, 6]).unwrap();
        convolve_packed(convolution, &input, &packed, epilogue, &mut out)
            .map_err(|error| error.message().to_owned())
    };
    let mut convolution = Convolution::new(&[Window::new(1, 1, Padding::Valid)]);
    let wrong = convolve(&convolution, Epilogue::default()).unwrap_err();
    assert_eq!(wrong, "expected a filter packed for 1 groups, found 2");
    convolution.groups = 2;
    let epilogue = Epilogue {
        shift: Some(&[0.0; 3]),
        ..Epilogue::default()
    };
    let wrong = convolve(&convolution, epilogue).unwrap_err();
    assert_eq!(wrong, "expected an element for each of 6 columns, found 3");
    let epilogue = Epilogue {
        added: Addend::Elements(&[0.0; 3]),
        ..Epilogue::default()
    };
    let wrong = convolve(&convolution, epilogue).unwrap_err();
    assert_eq!(wrong, "expected to add 18 elements, found 3");
    assert_eq!(convolve(&convolution, Epilogue::default()), Ok(()));
    let set = packed.instruction_set();
    let again = PackedFilter::from_elements(set, &[9, 9, 9], 1, packed.elements().clone());
    assert!(again.unwrap_err().message().contains("elements, found"));
}

/// Convolves on all instruction sets, and returns the result of each.
fn outs(convolution: &Convolution, input: &[usize], filter: &[usize], x: &[f32]) -> Vec<Vec<f32>> {
    let extents = convolution.output_extents(input, filter).unwrap();
    let n = |extents: &[usize]| extents.iter().product::<usize>();
    let (x, shift) = (&x[..n(input)], vec![1.0; filter[filter.len() - 1]]);
    let weights = vec![2.0; n(filter)];
    let sets = InstructionSet::ALL.into_iter();
    sets.filter(|set| set.is_available())
        .map(|set| {
            let filter = TensorView::new(&weights, filter).unwrap();
            let groups = convolution.groups;
            let filter =
                PackedFilter::pack_for(&allocator(), set, Method::Direct, &filter, groups).unwrap();
            let mut out = vec![f32::NAN; n(&extents)];
            let epilogue = Epilogue {
                shift: Some(&shift),
                ..Epilogue::default()
            };
            let x = TensorView::new(x, input).unwrap();
            let mut view = TensorViewMut::new(&mut out, &extents).unwrap();
            convolve_packed(convolution, &x, &filter, epilogue, &mut view).unwrap();
            out
        })
        .collect()
}

#[test]
fn without_channels_there_is_what_follows() {
    for (input, filter) in [
        (&[2, 5, 0][..], &[3, 0, 4][..]),
        (&[1, 3, 4, 0], &[1, 1, 0, 2]),
        (&[1, 3, 4, 0], &[3, 2, 0, 40]),
    ] {
        let windows: Vec<Window> = filter[..filter.len() - 2]
            .iter()
            .map(|extent| Window::new(*extent, 1, Padding::Same))
            .collect();
        for out in outs(&Convolution::new(&windows), input, filter, &[]) {
            assert!(!out.is_empty() && out.iter().all(|x| *x == 1.0), "{out:?}");
        }
    }
}

#[test]
fn taps_may_lie_far_outside() {
    for dilation in [1 << 30, 1 << 61, (1 << 62) - 1] {
        let window = Window {
            extent: 3,
            stride: 1,
            dilation,
            padding: Padding::Same,
        };
        let x: Vec<f32> = (0..60).map(|i| i as f32).collect();
        for (rank, channels) in [(1, 5), (2, 5), (3, 7), (1, 30), (2, 15)] {
            let convolution = Convolution::new(&vec![window; rank]);
            let input = [&[1][..], &vec![2; rank], &[channels]].concat();
            let filter = [&vec![3; rank][..], &[channels, 1]].concat();
            for out in outs(&convolution, &input, &filter, &x) {
                for (out, x) in out.iter().zip(x.chunks(channels)) {
                    assert_eq!(*out, 2.0 * x.iter().sum::<f32>() + 1.0);
                }
            }
        }
    }
}

#[test]
fn without_filters_there_may_be_any_number_of_images() {
    const HUGE: usize = 1 << 40;
    let convolution = Convolution::new(&[Window::new(1, 1, Padding::Valid)]);
    let filter = TensorView::new(&[], &[1, 0, 0]).unwrap();
    let filter = PackedFilter::pack(&allocator(), &filter, 1).unwrap();
    let plan = filter.plan(&convolution, &[HUGE, HUGE, 0]).unwrap();
    filter.grid(&plan);
}

proptest! {
    #[test]
    fn elements_that_are_laid_out_again_are_those_of_the_other_instruction_set(
        own in 0..40_usize, each in 0..40_usize, groups in 1..4_usize, method in 0..3_usize,
    ) {
        let method = Method::ALL[method];
        let groups = if method == Method::Direct { groups } else { 1 };
        let extents = [3, 3, own, each * groups];
        let n = extents.iter().product::<usize>();
        let weights: Vec<f32> = (0..n).map(|i| ((i * 7 + i / 5) % 11) as f32 - 5.0).collect();
        let view = TensorView::new(&weights, &extents).unwrap();
        let available = InstructionSet::ALL.into_iter().filter(|set| set.is_available());
        let packed: Vec<PackedFilter> = available
            .map(|set| PackedFilter::pack_for(&allocator(), set, method, &view, groups).unwrap())
            .collect();
        let elements = |filter: &PackedFilter| {
            filter.elements().read().unwrap().elements::<f32>().unwrap().to_vec()
        };
        for (from, to) in packed.iter().flat_map(|from| packed.iter().map(move |to| (from, to))) {
            let sets = [from, to].map(PackedFilter::instruction_set);
            let laid = from.elements_for(&allocator(), sets[1]).unwrap();
            let reading = laid.read().unwrap();
            prop_assert_eq!(reading.elements::<f32>().unwrap(), &elements(to)[..]);
            let filter = (&extents[..], groups);
            let again =
                PackedFilter::restore(&allocator(), sets, method, filter, from.elements().clone());
            prop_assert_eq!(elements(&again.unwrap()), elements(to));
        }
    }
}

#[test]
fn elements_that_are_no_packed_filter_are_refused() {
    let elements = |n: usize| {
        let shape = TensorShape::new(&[n]).unwrap();
        DenseHostTensor::zeroed(&allocator(), TensorMetadata::new(DType::F32, shape)).unwrap()
    };
    let restore = |from, method, extents: &[usize], groups, n| {
        let sets = [from, InstructionSet::Plain];
        let made =
            PackedFilter::restore(&allocator(), sets, method, (extents, groups), elements(n));
        made.map(drop)
            .map_err(|error| error.message().to_owned())
            .unwrap_err()
    };
    let (plain, wide) = (InstructionSet::Plain, InstructionSet::Avx512);
    for from in [plain, wide] {
        let wrong = restore(from, Method::Direct, &[3, 3, 2, 4], 1, 5);
        assert!(wrong.contains('5'), "{wrong}");
        let wrong = restore(from, Method::Direct, &[3, 3, 2, 4], 0, 72);
        assert!(wrong.contains("0 groups"), "{wrong}");
        let wrong = restore(from, Method::Winograd2, &[3, 2, 2, 4], 1, 5);
        assert!(wrong.contains("3x3"), "{wrong}");
        let wrong = restore(from, Method::Direct, &[4], 1, 5);
        assert!(wrong.contains("expected a filter of shape"), "{wrong}");
        let many = usize::MAX / 4;
        let wrong = restore(from, Method::Direct, &[many, many, 1, 1], 1, 5);
        assert!(wrong.contains("fit any memory"), "{wrong}");
        let wrong = restore(from, Method::Direct, &[1, 1, 1, many], many, 5);
        assert!(
            wrong.contains("any memory") || wrong.contains('5'),
            "{wrong}"
        );
    }
}
