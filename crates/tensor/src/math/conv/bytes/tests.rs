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

/// Returns the sums of a convolution and what its definition says, and both again as quantised images.
fn made(case: &Case, [x_type, w_type]: [DType; 2], per_filter: bool) -> Option<[Vec<i32>; 4]> {
    let output = case
        .convolution
        .output_extents(&case.input, &case.filter)
        .ok()?;
    let n = |extents: &[usize]| extents.iter().product::<usize>();
    let [n_in, n_filter, n_out] = [n(&case.input), n(&case.filter), n(&output)];
    let is_small = n_in <= 2000 && n_filter <= 1000 && n_out <= 1500;
    if !is_small {
        return None;
    }
    let byte = |index: usize| (case.values[index] * 37 + index as i32 * 11) as u8;
    let x: Vec<u8> = (0..n_in).map(byte).collect();
    let w: Vec<u8> = (0..n_filter).map(|index| byte(n_in + index)).collect();
    let (rank, filters) = (case.convolution.windows.len(), *output.last()?);
    let zero = |dtype, seed: usize| number(dtype, byte(seed));
    let x_zero = zero(x_type, 4000);
    let w_zeros: Vec<i32> = match per_filter {
        true => (0..filters)
            .map(|filter| zero(w_type, 4100 + filter))
            .collect(),
        false => vec![zero(w_type, 4001)],
    };
    let mut wanted = vec![0_i32; n_out];
    for [out, input, filter] in products(case, &output) {
        let w_zero = w_zeros.get(filter % filters).unwrap_or(&w_zeros[0]);
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
    let packed = PackedByteFilter::new(&filter, &w_zeros, case.convolution.groups).unwrap();
    let x = tensor(&host, x_type, &case.input, &x);
    let sums = DenseHostTensor::from_slice(host.allocator(), &output, &vec![7_i32; n_out]);
    let sums = sums.unwrap();
    let images = (&x, x_zero);
    let packed = Arc::new(packed);
    let chain = convolve_bytes_into(&execution, &case.convolution, images, packed, &sums);
    done(chain.unwrap());
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
    let (least, largest) = range(x_type).unwrap();
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
    Some([found, wanted, quantised, as_wanted])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn sums_are_those_of_the_definition(
        case in cases(), x_signed in any::<bool>(), w_signed in any::<bool>(), per_filter in any::<bool>(),
    ) {
        let of = |is_signed| if is_signed { i8::DTYPE } else { u8::DTYPE };
        let Some([found, wanted, quantised, as_wanted]) = made(&case, [of(x_signed), of(w_signed)], per_filter)
        else { return Ok(()) };
        prop_assert_eq!(found, wanted);
        prop_assert_eq!(quantised, as_wanted);
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
