use proptest::prelude::*;

use super::*;
use crate::math::window::Padding;

/// A convolution and its tensors, of small whole numbers.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub convolution: Convolution,
    pub input: Vec<usize>,
    pub filter: Vec<usize>,
    pub values: Vec<i32>,
}

fn window() -> impl Strategy<Value = Window> {
    let padding = prop_oneof![
        Just(Padding::Valid),
        Just(Padding::Same),
        (0..3_usize, 0..3_usize).prop_map(|(before, behind)| Padding::Explicit(before, behind)),
    ];
    (1..4_usize, 1..3_usize, 1..3_usize, padding).prop_map(|(extent, stride, dilation, padding)| {
        Window {
            extent,
            stride,
            dilation,
            padding,
        }
    })
}

pub(super) fn cases() -> impl Strategy<Value = Case> {
    let dimensions = prop::collection::vec((window(), 0..7_usize), 1..4);
    let channels = (1..4_usize, 1..4_usize, 1..4_usize, any::<bool>());
    let values = prop::collection::vec(-4..5_i32, 5000);
    (dimensions, 0..3_usize, channels, values).prop_map(|(dimensions, batch, channels, values)| {
        let (windows, spatial): (SmallVec<[Window; 3]>, Vec<usize>) =
            dimensions.into_iter().unzip();
        let (groups, own_channels, own_filters, is_depthwise) = channels;
        let (own_channels, own_filters) = if is_depthwise {
            (1, 1)
        } else {
            (own_channels, own_filters)
        };
        let input = [&[batch][..], &spatial, &[own_channels * groups]].concat();
        let mut filter: Vec<usize> = windows.iter().map(|window| window.extent).collect();
        filter.extend([own_channels, own_filters * groups]);
        Case {
            convolution: Convolution { windows, groups },
            input,
            filter,
            values,
        }
    })
}

fn coordinates(mut index: usize, extents: &[usize]) -> Vec<usize> {
    let mut list = vec![0; extents.len()];
    for (to, extent) in list.iter_mut().zip(extents).rev() {
        *to = index % extent;
        index /= extent;
    }
    list
}

fn number(place: &[usize], extents: &[usize]) -> usize {
    place
        .iter()
        .zip(extents)
        .fold(0, |number, (coordinate, extent)| {
            number * extent + coordinate
        })
}

/// Returns all triples (output, input, filter) of elements of a convolution: the product of the last two is added to
/// the first. With exchanged roles, the triples define the gradients.
pub(super) fn products(case: &Case, output: &[usize]) -> Vec<[usize; 3]> {
    let rank = case.convolution.windows.len();
    let n = |extents: &[usize]| extents.iter().product::<usize>();
    let (own_channels, filters) = (case.filter[rank], case.filter[rank + 1]);
    let own_filters = filters / case.convolution.groups;
    let mut all = Vec::new();
    for out in 0..n(output) {
        let place = coordinates(out, output);
        let group = place[rank + 1] / own_filters;
        for tap in 0..n(&case.filter[..rank]) {
            let taps = coordinates(tap, &case.filter[..rank]);
            let mut spatial = Vec::new();
            for dimension in 0..rank {
                let window = case.convolution.windows[dimension];
                let (_, before, _) = window.output(case.input[1 + dimension]).unwrap();
                let at = place[1 + dimension] * window.stride + taps[dimension] * window.dilation;
                spatial.extend(
                    at.checked_sub(before)
                        .filter(|at| *at < case.input[1 + dimension]),
                );
            }
            if spatial.len() < rank {
                continue;
            }
            for channel in 0..own_channels {
                let input = [&[place[0]][..], &spatial, &[group * own_channels + channel]].concat();
                let filter = [&taps[..], &[channel, place[rank + 1]]].concat();
                all.push([
                    out,
                    number(&input, &case.input),
                    number(&filter, &case.filter),
                ]);
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn convolutions_and_gradients_are_those_of_the_definition(case in cases()) {
        let Ok(output) = case.convolution.output_extents(&case.input, &case.filter) else { return Ok(()) };
        let n = |extents: &[usize]| extents.iter().product::<usize>();
        let [n_in, n_filter, n_out] = [n(&case.input), n(&case.filter), n(&output)];
        prop_assume!(n_in <= 2000 && n_filter <= 1000 && n_out <= 1500);
        let (x, rest) = case.values.split_at(n_in);
        let (w, rest) = rest.split_at(n_filter);
        let dy = &rest[..n_out];
        let products = products(&case, &output);
        let (mut y, mut dx, mut dw) = (vec![0; n_out], vec![0; n_in], vec![0; n_filter]);
        for [out, input, filter] in products {
            y[out] += x[input] * w[filter];
            dx[input] += dy[out] * w[filter];
            dw[filter] += dy[out] * x[input];
        }
        // The integers by loops, the floats by gemm.
        let view = |values, extents| TensorView::new(values, extents).unwrap();
        let mut found = vec![7; n_out];
        convolve(
            &case.convolution, &view(x, &case.input), &view(w, &case.filter), ConvEpilogue::default(),
            &mut TensorViewMut::new(&mut found, &output).unwrap(),
        ).unwrap();
        prop_assert_eq!(&found, &y);
        let float = |values: &[i32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let (x, w, dy) = (float(x), float(w), float(dy));
        let view = |values, extents| TensorView::new(values, extents).unwrap();
        let mut found = vec![f64::NAN; n_out];
        let shift: Vec<f64> = (0..*output.last().unwrap()).map(|filter| filter as f64).collect();
        let epilogue = ConvEpilogue { scale: None, shift: Some(&shift), relu: true };
        convolve(
            &case.convolution, &view(&x, &case.input), &view(&w, &case.filter), epilogue,
            &mut TensorViewMut::new(&mut found, &output).unwrap(),
        ).unwrap();
        let with_bias = float(&y).iter().enumerate().map(|(i, y)| (y + shift[i % shift.len()]).max(0.0)).collect::<Vec<f64>>();
        prop_assert_eq!(found, with_bias);
        let mut found = vec![f64::NAN; n_in];
        input_gradient(
            &case.convolution, &view(&dy, &output), &view(&w, &case.filter),
            &mut TensorViewMut::new(&mut found, &case.input).unwrap(),
        ).unwrap();
        prop_assert_eq!(found, float(&dx));
        let mut found = vec![f64::NAN; n_filter];
        filter_gradient(
            &case.convolution, &view(&x, &case.input), &view(&dy, &output),
            &mut TensorViewMut::new(&mut found, &case.filter).unwrap(),
        ).unwrap();
        prop_assert_eq!(found, float(&dw));
        // In parts, as chunks make them.
        let plan = case.convolution.plan(&case.input, &case.filter).unwrap();
        let mut parts = vec![f64::NAN; n_out];
        let filters = plan.filters;
        for (index, part) in parts.chunks_mut(3 * filters).enumerate() {
            plan.run(&x, &w, ConvEpilogue::default(), index * 3 * filters, part);
        }
        prop_assert_eq!(parts, float(&y));
        let mut parts = vec![f64::NAN; n_filter];
        let tap = plan.channels / plan.groups * filters;
        for (index, part) in parts.chunks_mut(tap).enumerate() {
            plan.filter_gradient(&x, &dy, index * tap, part);
        }
        prop_assert_eq!(parts, float(&dw));
    }
}

#[test]
fn tensors_that_do_not_fit_are_told() {
    let convolution = Convolution::new(&[Window::new(3, 1, Padding::Same); 2]);
    let error = |input: &[usize], filter: &[usize]| {
        convolution
            .output_extents(input, filter)
            .unwrap_err()
            .message()
            .to_owned()
    };
    assert!(error(&[1, 5, 3], &[3, 3, 3, 4]).contains("[batch, spatial.., channels]"));
    assert!(error(&[1, 5, 5, 3], &[3, 2, 3, 4]).contains("windows of [3, 3]"));
    assert!(
        error(&[1, 5, 5, 3], &[3, 3, 2, 4]).contains("input channels is 3 and kernel depth is 2")
    );
    let found = convolution
        .output_extents(&[2, 5, 6, 3], &[3, 3, 3, 4])
        .unwrap();
    assert_eq!(found.as_slice(), [2, 5, 6, 4]);
}

#[test]
fn extents_without_elements_may_be_of_any_size() {
    const HUGE: usize = 1 << 40;
    let convolution = Convolution::new(&[Window::new(3, 1, Padding::Same); 2]);
    assert!(
        convolution
            .output_extents(&[0, HUGE, HUGE, 1], &[3, 3, 1, 1])
            .is_err()
    );
    let wide = Convolution::new(&[Window::new(HUGE, 1, Padding::Same); 2]);
    assert!(
        wide.output_extents(&[1, 2, 2, 1], &[HUGE, HUGE, 1, 0])
            .is_err()
    );
    // A window as large as that, but no filter: nothing to add up.
    let line = Convolution::new(&[Window::new(HUGE, 1, Padding::Same)]);
    let (gradient, filter) = (
        TensorView::<f32>::new(&[], &[1, 2, 0]).unwrap(),
        TensorView::<f32>::new(&[], &[HUGE, 1, 0]).unwrap(),
    );
    let mut out = [7.0; 2];
    let mut view = TensorViewMut::new(&mut out, &[1, 2, 1]).unwrap();
    input_gradient(&line, &gradient, &filter, &mut view).unwrap();
    assert_eq!(out, [0.0; 2]);
}

#[test]
fn patches_of_large_windows_are_gathered_few_at_a_time() {
    let n = 1 << 15;
    let convolution = Convolution::new(&[Window::new(n, 1, Padding::Same)]);
    let x = vec![1; n];
    let mut out = vec![0; n];
    let plan = convolution.plan(&[1, n, 1], &[n, 1, 1]).unwrap();
    assert_eq!(plan.block_len(), MAX_PATCHES / n);
    // Only the first outputs: all of them take a second.
    plan.run(&x, &x, ConvEpilogue::default(), 0, &mut out[..40]);
    let (_, before, _) = convolution.windows[0].output(n).unwrap();
    for (index, found) in out[..40].iter().enumerate() {
        assert_eq!(*found, (n - before + index.min(before)) as i32);
    }
}
