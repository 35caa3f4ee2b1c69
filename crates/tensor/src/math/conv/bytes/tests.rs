//! Tests of convolutions of bytes: sums and requantised results are those of the definition.

use proptest::prelude::*;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{HostContext, RequestContext};

use super::super::tests::{Case, cases, products};
use super::*;
use crate::{Element, TensorMetadata, TensorShape};

fn tensor(host: &HostContext, dtype: DType, extents: &[usize], bytes: &[u8]) -> DenseHostTensor {
    let metadata = TensorMetadata::new(dtype, TensorShape::new(extents).unwrap());
    DenseHostTensor::from_bytes(host.allocator(), metadata, bytes).unwrap()
}

fn number(dtype: DType, byte: u8) -> i32 {
    match dtype {
        DType::I8 => i32::from(byte.cast_signed()),
        _ => i32::from(byte),
    }
}

/// The zero points of filters: none, one for all, or one for each.
#[derive(Clone, Copy, Debug)]
enum Zeros {
    None,
    One,
    Each,
}

/// Sums of a convolution, the same as quantised images by two epilogues, and what definitions say of these three.
struct Made {
    found: [Vec<i32>; 3],
    wanted: [Vec<i32>; 3],
}

fn made(
    set: ByteInstructions,
    case: &Case,
    [x_type, w_type]: [DType; 2],
    of_filters: Zeros,
) -> Option<Made> {
    let output = case
        .convolution
        .output_extents(&case.input, &case.filter)
        .ok()?;
    let n = |extents: &[usize]| extents.iter().product::<usize>();
    let [n_in, n_filter, n_out] = [n(&case.input), n(&case.filter), n(&output)];
    let is_small = n_in <= 2000 && n_filter <= 1000 && n_out <= 1500;
    is_small.then(|| {
        let triples = products(case, &output);
        made_of_any_size(set, (case, &triples), [x_type, w_type], of_filters)
    })
}

/// Makes a convolution of a case, of which the products are known.
fn made_of_any_size(
    set: ByteInstructions,
    (case, triples): (&Case, &[[usize; 3]]),
    [x_type, w_type]: [DType; 2],
    of_filters: Zeros,
) -> Made {
    let convolution = &case.convolution;
    let output = convolution
        .output_extents(&case.input, &case.filter)
        .unwrap();
    let n = |extents: &[usize]| extents.iter().product::<usize>();
    let [n_in, n_filter, n_out] = [n(&case.input), n(&case.filter), n(&output)];
    let byte = |index: usize| (case.values[index] * 37 + index as i32 * 11) as u8;
    let x: Vec<u8> = (0..n_in).map(byte).collect();
    let w: Vec<u8> = (0..n_filter).map(|index| byte(n_in + index)).collect();
    let (rank, filters) = (
        case.convolution.windows.len(),
        case.filter[case.filter.len() - 1],
    );
    let zero = |dtype, seed: usize| number(dtype, byte(seed));
    let x_zero = zero(x_type, 4000);
    let w_zeros: Vec<i32> = match of_filters {
        Zeros::None => Vec::new(),
        Zeros::One => vec![zero(w_type, 4001)],
        Zeros::Each => (0..filters)
            .map(|filter| zero(w_type, 4100 + filter))
            .collect(),
    };
    let mut wanted = vec![0_i32; n_out];
    for [out, input, filter] in triples.iter().copied() {
        let w_zero = w_zeros.get(filter % filters).or(w_zeros.first());
        let w_zero = w_zero.copied().unwrap_or(0);
        let x = number(x_type, x[input]) - x_zero;
        wanted[out] += x * (number(w_type, w[filter]) - w_zero);
    }
    let host = HostContext::builder(KernelRegistry::new()).build();
    let execution = ExecutionContext::new(&RequestContext::new(&host));
    let done = |chain: AsyncValue<Chain>| host.queue().await_all(&[chain.into_any()]).unwrap();
    // In ONNX's order.
    let given: Vec<usize> = [filters, case.filter[rank]]
        .into_iter()
        .chain(case.filter[..rank].iter().copied())
        .collect();
    let n_taps: usize = case.filter[..rank].iter().product();
    let mut first = Vec::with_capacity(n_filter);
    for filter in 0..filters {
        for channel in 0..case.filter[rank] {
            let at = |tap| w[(tap * case.filter[rank] + channel) * filters + filter];
            first.extend((0..n_taps).map(at));
        }
    }
    let filter = tensor(&host, w_type, &given, &first);
    let groups = case.convolution.groups;
    let packed = PackedByteFilter::pack_for(set, &filter, &w_zeros, groups).unwrap();
    let x = tensor(&host, x_type, &case.input, &x);
    let sums = DenseHostTensor::from_slice(host.allocator(), &output, &vec![7_i32; n_out]);
    let sums = sums.unwrap();
    let images = (&x, x_zero);
    let packed = Arc::new(packed);
    let chain = convolve_bytes_into(&execution, &case.convolution, images, packed.clone(), &sums);
    done(chain.unwrap());
    let factors: Vec<f32> = (0..filters)
        .map(|filter| 0.01 + filter as f32 * 0.003)
        .collect();
    let summands: Vec<i32> = (0..filters as i32)
        .map(|filter| filter * 77 - 300)
        .collect();
    let by = ByteEpilogue::new(factors.clone(), summands.clone(), (x_type, 3)).unwrap();
    let bytes = tensor(&host, x_type, &output, &vec![9; n_out]);
    done(
        convolve_requantized_into(&execution, convolution, images, packed, by.into(), &bytes)
            .unwrap(),
    );
    let found = sums.read().unwrap().elements::<i32>().unwrap().to_vec();
    let by = Requantize {
        scales: (0..filters).map(|filter| 90.5 + filter as f64).collect(),
        bias: (0..filters)
            .map(|filter| filter as f64 * 100.0 - 50.0)
            .collect(),
        zero: 3.0,
    };
    let extents = channels_first::channels_first(&output);
    let quantised = tensor(&host, x_type, &extents, &vec![9; n_out]);
    let (scales, bias) = (by.scales.clone(), by.bias.clone());
    done(requantize_into(&execution, by, &sums, &quantised).unwrap());
    let reading = quantised.read().unwrap();
    let quantised = reading
        .bytes()
        .iter()
        .map(|byte| number(x_type, *byte))
        .collect();
    let n_places: usize = output[1..=rank].iter().product();
    let (least, largest) = byte_gemm::range(x_type).unwrap();
    let of = |index: usize| {
        let (image, filter, place) = (
            index / n_places / filters,
            index / n_places % filters,
            index % n_places,
        );
        let sum = f64::from(wanted[(image * n_places + place) * filters + filter]);
        let quotient = ((sum + bias[filter]) / scales[filter]).round_ties_even() + 3.0;
        quotient.clamp(least, largest) as i32
    };
    let as_wanted = (0..n_out).map(of).collect();
    let near = |index: usize| {
        let filter = index % filters;
        let value = (wanted[index] + summands[filter]) as f32 * factors[filter];
        (f64::from(value.round_ties_even()) + 3.0).clamp(least, largest) as i32
    };
    let nearly = (0..n_out).map(near).collect();
    let reading = bytes.read().unwrap();
    let bytes = reading.bytes().iter().map(|byte| number(x_type, *byte));
    Made {
        found: [found, quantised, bytes.collect()],
        wanted: [wanted, as_wanted, nearly],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sums_are_those_of_the_definition(
        case in cases(), x_signed in any::<bool>(), w_signed in any::<bool>(), zeros in 0..3_usize,
    ) {
        let of = |is_signed| if is_signed { i8::DTYPE } else { u8::DTYPE };
        let zeros = [Zeros::None, Zeros::One, Zeros::Each][zeros];
        for set in ByteInstructions::ALL {
            if !set.is_available() {
                continue;
            }
            let Some(made) = made(set, &case, [of(x_signed), of(w_signed)], zeros)
            else { return Ok(()) };
            prop_assert_eq!(made.found, made.wanted, "{:?}", set);
        }
    }
}

#[test]
fn filters_and_zero_points_that_do_not_fit_are_told() {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let filter = tensor(&host, DType::I8, &[4, 2, 3], &[0; 24]);
    let refused = |zeros: &[i32], groups| {
        let error = PackedByteFilter::new(&filter, zeros, groups).unwrap_err();
        error.message().to_owned()
    };
    assert_eq!(
        refused(&[], 3),
        "4 filters don't fit 3 groups and 0 zero points"
    );
    assert_eq!(
        refused(&[1, 2], 2),
        "4 filters don't fit 2 groups and 2 zero points"
    );
    assert!(refused(&[300], 1).contains("with a zero point for each column"));
    let packed = Arc::new(PackedByteFilter::new(&filter, &[], 1).unwrap());
    let execution = ExecutionContext::new(&RequestContext::new(&host));
    let x = tensor(&host, DType::Ui8, &[1, 5, 2], &[0; 10]);
    let sums = DenseHostTensor::from_slice(host.allocator(), &[1, 3, 4], &[0_i32; 12]).unwrap();
    let window = crate::math::window::Window::new(3, 1, crate::math::window::Padding::Valid);
    let convolution = Convolution::new(&[window]);
    let error = convolve_bytes_into(&execution, &convolution, (&x, -1), packed, &sums);
    let message = "the zero point -1 is no u8, as images are";
    assert_eq!(error.unwrap_err().message(), message);
}

/// Checks a convolution of one image, as all instructions make it.
fn check(input: [usize; 3], filter: [usize; 4], [stride, dilation, groups]: [usize; 3]) {
    use crate::math::window::{Padding, Window};

    let windows = [filter[0], filter[1]].map(|extent| Window {
        extent,
        stride,
        dilation,
        padding: Padding::Explicit(extent / 2, extent / 2),
    });
    let mut convolution = Convolution::new(&windows);
    convolution.groups = groups;
    let [height, width, channels] = input;
    let n = input.iter().product::<usize>() + filter.iter().product::<usize>();
    let case = Case {
        convolution,
        input: vec![1, height, width, channels],
        filter: filter.to_vec(),
        values: (0..n.max(5000) as i32)
            .map(|index| index * index % 251)
            .collect(),
    };
    let output = case.convolution.output_extents(&case.input, &case.filter);
    let triples = products(&case, &output.unwrap());
    for set in ByteInstructions::ALL {
        if !set.is_available() {
            continue;
        }
        for [x_type, w_type] in [
            [DType::Ui8, DType::I8],
            [DType::I8, DType::I8],
            [DType::I8, DType::Ui8],
        ] {
            for zeros in [Zeros::None, Zeros::Each] {
                let Made { found, wanted } =
                    made_of_any_size(set, (&case, &triples), [x_type, w_type], zeros);
                assert!(found == wanted, "{set:?}, {input:?}, {filter:?}, {zeros:?}");
            }
        }
    }
}

#[test]
fn layers_of_networks_are_those_of_the_definition() {
    check([9, 7, 3], [7, 7, 3, 20], [2, 1, 1]);
    check([6, 5, 64], [3, 3, 64, 18], [1, 1, 1]);
    check([5, 12, 64], [3, 3, 64, 18], [1, 1, 1]);
    check([6, 9, 128], [1, 2, 64, 6], [1, 1, 2]);
    check([7, 20, 64], [3, 3, 64, 3], [1, 2, 1]);
    check([5, 5, 96], [3, 3, 96, 16], [2, 1, 1]);
    check([6, 6, 80], [1, 1, 80, 35], [1, 1, 1]);
    check([5, 5, 40], [3, 3, 20, 36], [1, 1, 2]);
    check([6, 5, 100], [3, 3, 1, 100], [1, 1, 100]);
    check([7, 6, 64], [5, 5, 1, 64], [2, 1, 64]);
    check([7, 6, 33], [3, 3, 1, 33], [1, 2, 33]);
}
