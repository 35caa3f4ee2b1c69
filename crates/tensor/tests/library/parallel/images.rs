//! Images with their channels last, made pixel by pixel: as the definitions say, on any number of threads.

use tfrt_host::{AsyncValue, Chain, Error};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::conv::{self, ConvEpilogue, Convolution, PackedFilter};
use tfrt_tensor::math::layout_copy::{concat_into, shuffle_into};
use tfrt_tensor::math::lrn::{Lrn, lrn_channels_last_into};
use tfrt_tensor::math::normalize::concat_affine_into;
use tfrt_tensor::math::packed_gemm::{Activation, TensorAddend, TensorEpilogue};
use tfrt_tensor::math::pool::{Pooling, output_extents, pool_f32_into, pool_into};
use tfrt_tensor::math::window::{Padding, Window};

use super::TestBed;

impl TestBed {
    fn floats(&self, done: Result<AsyncValue<Chain>, Error>, out: &DenseHostTensor) -> Vec<f32> {
        self.bits(done, out)
            .into_iter()
            .map(f32::from_bits)
            .collect()
    }

    /// Everything that is made of images of so many rows, columns and channels.
    fn images(&self, [h, w, c]: [usize; 3]) -> Vec<Vec<u32>> {
        let e = &self.execution;
        let x = self.random(&[2, h, w, c], 1);
        let elements = list(&x);
        let mut all = Vec::new();
        for (extent, stride) in [(3, 1), (3, 2), (2, 2)] {
            let windows = [Window::new(extent, stride, Padding::Explicit(1, 1)); 2];
            let convolution = Convolution {
                groups: c,
                ..Convolution::new(&windows)
            };
            let filter = self.random(&[extent, extent, 1, c], 2);
            let shift = self.random(&[c], 3);
            let extents = convolution.output_extents(&[2, h, w, c], &[extent, extent, 1, c]);
            let extents = extents.unwrap();
            let out = self.zeros(&extents);
            let added = self.random(&extents, 4);
            let after = TensorEpilogue {
                scale: None,
                shift: Some(shift.clone()),
                added: TensorAddend::Tensor(added.clone()),
                activation: Activation::Relu6,
                then: None,
            };
            let done = conv::convolve_depthwise_into(e, &convolution, [&x, &filter], after, &out);
            let found = self.floats(done, &out);
            let mut wanted = vec![0.0; found.len()];
            let (xs, filters, shifts) = (x.read().unwrap(), filter.read().unwrap(), list(&shift));
            let epilogue = ConvEpilogue {
                shift: Some(&shifts[..]),
                ..ConvEpilogue::default()
            };
            let mut view = tfrt_tensor::TensorViewMut::new(&mut wanted, &extents).unwrap();
            let (xs, filters) = (xs.view().unwrap(), filters.view().unwrap());
            conv::convolve::<f32>(&convolution, &xs, &filters, epilogue, &mut view).unwrap();
            for (wanted, added) in wanted.iter_mut().zip(list(&added)) {
                *wanted = (*wanted + added).clamp(0.0, 6.0);
            }
            assert_near(&found, &wanted);
            all.push(bits(&found));
            for pooling in [Pooling::Maximum, Pooling::Mean, Pooling::MeanWithPadding] {
                let extents = output_extents(&[2, h, w, c], &windows).unwrap();
                let (out, other) = (self.zeros(&extents), self.zeros(&extents));
                let found = self.floats(pool_f32_into(e, pooling, &x, &windows, &out), &out);
                let wanted = pool_into(e, pooling, &x, &windows, &other);
                assert_near(&found, &self.floats(wanted, &other));
                all.push(bits(&found));
            }
        }
        let neighbours = Lrn {
            size: 5,
            alpha: 0.5,
            beta: 0.75,
            bias: 1.0,
        };
        let out = self.zeros(&[2, h, w, c]);
        let found = self.floats(lrn_channels_last_into(e, neighbours, &x, &out), &out);
        let wanted: Vec<f32> = (0..elements.len())
            .map(|index| {
                let (start, own) = (index / c * c, index % c);
                let around = own.saturating_sub(2)..(own + 3).min(c);
                let squares = around.map(|c| f64::from(elements[start + c]).powi(2));
                let divisor = (1.0 + 0.1 * squares.sum::<f64>()).powf(0.75);
                (f64::from(elements[index]) / divisor) as f32
            })
            .collect();
        assert_near(&found, &wanted);
        all.push(bits(&found));
        for groups in [1, 2, 3, 4, 5, 8]
            .into_iter()
            .filter(|groups| c % groups == 0)
        {
            let out = self.zeros(&[2, h, w, c]);
            let found = self.floats(shuffle_into(e, groups, &x, &out), &out);
            for (index, found) in found.iter().enumerate() {
                let (start, own) = (index / c * c, index % c);
                let from = own % groups * (c / groups) + own / groups;
                assert_eq!(*found, elements[start + from]);
            }
            all.push(bits(&found));
        }
        all.extend(self.joined([h, w, c], &x));
        all
    }

    /// Returns the bits of functions that join images.
    fn joined(&self, [h, w, c]: [usize; 3], x: &DenseHostTensor) -> Vec<Vec<u32>> {
        let e = &self.execution;
        let (y, z) = (self.random(&[2, h, w, c], 5), self.random(&[2, h, w, 7], 6));
        let whole = self.zeros(&[2, h, w, 2 * c]);
        let joined = self.floats(concat_into(e, &[x, &y], 3, &whole), &whole);
        let filter = self.random(&[1, 1, 2 * c, 20], 7);
        let filter = filter.read().unwrap();
        let filter = filter.view().unwrap();
        let packed = PackedFilter::pack(self.host.allocator(), &filter, 1).unwrap();
        let after = TensorEpilogue {
            shift: Some(self.random(&[20], 8)),
            activation: Activation::Relu,
            ..TensorEpilogue::default()
        };
        let (out, other) = (self.zeros(&[2, h, w, 20]), self.zeros(&[2, h, w, 20]));
        let done = conv::convolve_concat_into(e, &[x, &y], &packed, after.clone(), &out);
        let found = self.bits(done, &out);
        let window = Convolution::new(&[Window::new(1, 1, Padding::Valid); 2]);
        let wanted = conv::convolve_packed_into(e, &window, &whole, &packed, after, &other);
        assert_eq!(found, self.bits(wanted, &other));

        let n = 2 * c + 7;
        let (factors, summands) = (self.random(&[n], 9), self.random(&[n], 10));
        let out = self.zeros(&[2, h, w, n]);
        let lists = [&factors, &summands];
        let done = concat_affine_into(e, &[x, &y, &z], lists, Activation::Relu, &out);
        let scaled = self.floats(done, &out);
        let (last, factors, summands) = (list(&z), list(&factors), list(&summands));
        let of = |index: usize| {
            let (row, own) = (index / n, index % n);
            let x = match own < 2 * c {
                true => joined[row * 2 * c + own],
                false => last[row * 7 + own - 2 * c],
            };
            (x * factors[own] + summands[own]).max(0.0)
        };
        assert_near(&scaled, &(0..scaled.len()).map(of).collect::<Vec<f32>>());
        vec![found, bits(&scaled)]
    }
}

fn list(tensor: &DenseHostTensor) -> Vec<f32> {
    tensor.read().unwrap().elements::<f32>().unwrap().to_vec()
}

fn bits(list: &[f32]) -> Vec<u32> {
    list.iter().map(|x| x.to_bits()).collect()
}

fn assert_near(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(
            (found - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()),
            "{found} {wanted}"
        );
    }
}

#[test]
fn images_are_those_of_the_definitions_on_any_number_of_threads() {
    for extents in [
        [1, 1, 1],
        [3, 2, 5],
        [5, 4, 16],
        [6, 7, 70],
        [40, 40, 24],
        [50, 60, 6],
    ] {
        let wanted = TestBed::new(0).images(extents);
        for n_workers in [1, 2, 4] {
            assert_eq!(
                TestBed::new(n_workers).images(extents),
                wanted,
                "{extents:?}"
            );
        }
    }
}

#[test]
fn the_largest_of_what_is_no_number_is_none() {
    let bed = TestBed::new(0);
    let windows = [
        Window::new(1, 1, Padding::Valid),
        Window::new(3, 1, Padding::Valid),
    ];
    let (width, n_outputs) = (12, 10);
    for (at, c) in (0..width).flat_map(|at| [(at, 20), (at, 5)]) {
        let mut elements = vec![1.0_f32; 2 * width * c];
        for line in elements.chunks_exact_mut(width * c) {
            line[at * c..(at + 1) * c].fill(f32::NAN);
        }
        let x = DenseHostTensor::from_slice(bed.host.allocator(), &[1, 2, width, c], &elements);
        let out = bed.zeros(&[1, 2, n_outputs, c]);
        let done = pool_f32_into(
            &bed.execution,
            Pooling::Maximum,
            &x.unwrap(),
            &windows,
            &out,
        );
        for (index, x) in bed.floats(done, &out).iter().enumerate() {
            let first = index / c % n_outputs;
            assert_eq!(x.is_nan(), (first..first + 3).contains(&at));
        }
    }
}

#[test]
fn pools_of_few_channels_are_those_of_the_definition() {
    let (bed, window) = (TestBed::new(0), Window::new);
    let apart = Window {
        dilation: 2,
        ..window(3, 1, Padding::Explicit(3, 2))
    };
    for windows in [
        &[window(2, 2, Padding::Valid)][..],
        &[window(2, 2, Padding::Valid), window(3, 1, Padding::Same)],
        &[window(4, 3, Padding::Explicit(2, 5)), apart],
        // Some look at padding alone, and none lies in the input.
        &[window(2, 1, Padding::Explicit(4, 4)), apart],
        &[window(9, 2, Padding::Explicit(8, 8)), apart],
        &[
            window(2, 1, Padding::Explicit(1, 0)),
            window(2, 2, Padding::Explicit(0, 1)),
            window(3, 2, Padding::Same),
        ],
    ] {
        for c in [1, 3, 7, 15] {
            let input = [&[2][..], &[6, 9, 5][..windows.len()], &[c]].concat();
            let (x, extents) = (bed.random(&input, 3), output_extents(&input, windows));
            let extents = extents.unwrap();
            for pooling in [Pooling::Maximum, Pooling::Mean, Pooling::MeanWithPadding] {
                let (out, other) = (bed.zeros(&extents), bed.zeros(&extents));
                let e = &bed.execution;
                let found = bed.floats(pool_f32_into(e, pooling, &x, windows, &out), &out);
                let wanted = pool_into(e, pooling, &x, windows, &other);
                let wanted = bed.floats(wanted, &other);
                if pooling != Pooling::Maximum {
                    assert_near(&found, &wanted);
                    continue;
                }
                // Of padding alone nothing is the largest.
                let mut pairs = found.iter().zip(&wanted);
                let is_same = |(found, wanted): (&f32, &f32)| {
                    found == wanted || (*found == f32::NEG_INFINITY && *wanted <= f32::MIN)
                };
                assert!(pairs.all(is_same), "{windows:?} {c}");
            }
        }
    }
}
