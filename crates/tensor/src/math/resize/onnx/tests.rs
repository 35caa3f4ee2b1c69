use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{HostContext, RequestContext};

use super::*;

const LINEAR: OnnxResizeOptions = OnnxResizeOptions {
    blend: OnnxResizeKernel::Linear,
    places: OnnxCoordinates::HalfPixel,
    antialias: false,
    exclude_outside: false,
    extrapolation: 0.0,
};

fn along(input: usize, output: usize, scale: f64) -> OnnxResizeAxis {
    OnnxResizeAxis {
        input,
        output,
        scale,
        part: (0.0, 1.0),
    }
}

fn of_place(
    scaling: &OnnxResizeOptions,
    along: &OnnxResizeAxis,
    place: usize,
) -> Vec<(usize, f64)> {
    let mut list = Vec::new();
    append(scaling, along, place, &mut list).unwrap();
    list
}

#[test]
fn places_are_made_of_their_neighbours() {
    let of = |scaling: &OnnxResizeOptions, place| of_place(scaling, &along(4, 8, 2.0), place);
    assert_eq!(of(&LINEAR, 0), [(0, 0.25), (0, 0.75)]);
    assert_eq!(of(&LINEAR, 1), [(0, 0.75), (1, 0.25)]);
    let nearest = OnnxResizeOptions {
        blend: OnnxResizeKernel::Nearest(NearestMode::Floor),
        places: OnnxCoordinates::Asymmetric,
        ..LINEAR
    };
    assert_eq!(of(&nearest, 3), [(1, 1.0)]);
    assert_eq!(of(&nearest, 4), [(2, 1.0)]);
    let crop = OnnxResizeOptions {
        places: OnnxCoordinates::CropAndResize,
        ..LINEAR
    };
    let part = OnnxResizeAxis {
        part: (0.5, 1.5),
        ..along(3, 3, 1.0)
    };
    assert_eq!(of_place(&crop, &part, 0), [(1, 1.0)]);
    assert!(of_place(&crop, &part, 2).is_empty());
    assert!(OnnxResize::new(&LINEAR, &[along(0, 2, 1.0)]).is_err());
    assert!(OnnxResize::new(&LINEAR, &[along(2, 2, f64::NAN)]).is_err());
}

#[test]
fn what_becomes_smaller_is_made_of_more() {
    let smooth = OnnxResizeOptions {
        antialias: true,
        ..LINEAR
    };
    let list = of_place(&smooth, &along(8, 2, 0.25), 0);
    let total: f64 = list.iter().map(|(_, weight)| weight).sum();
    assert!(list.len() > 4 && (total - 1.0).abs() < 1e-12);
}

/// Resizes a tensor of `T`s whose elements are 0, 7, 14 and so on, modulo 23.
fn resized<T: crate::math::number::Real>(
    scaling: &OnnxResizeOptions,
    dimensions: &[OnnxResizeAxis],
) -> (Vec<T>, Vec<T>) {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let execution = ExecutionContext::new(&RequestContext::new(&host));
    let allocator = host.allocator();
    let input: Vec<usize> = dimensions.iter().map(|along| along.input).collect();
    let output: Vec<usize> = dimensions.iter().map(|along| along.output).collect();
    let (n, n_out) = (input.iter().product(), output.iter().product());
    let x: Vec<T> = (0..n)
        .map(|index| T::from_f64(float(index * 7 % 23)))
        .collect();
    let tensor = DenseHostTensor::from_slice(allocator, &input, &x).unwrap();
    let out = DenseHostTensor::from_slice(allocator, &output, &vec![T::ZERO; n_out]).unwrap();
    let resize = OnnxResize::new(scaling, dimensions).unwrap();
    let chain = resize.run_into(&execution, &tensor, &out).unwrap();
    host.queue().await_all(&[chain.into_any()]).unwrap();
    let reading = out.read().unwrap();
    (x, reading.elements::<T>().unwrap().to_vec())
}

/// Returns an element of the result, by the definition: a sum over all dimensions.
fn defined<T: crate::math::number::Real>(
    scaling: &OnnxResizeOptions,
    dimensions: &[OnnxResizeAxis],
    x: &[T],
    index: usize,
) -> f64 {
    let mut terms = vec![(0, 1.0)];
    let (mut rest, mut stride) = (index, 1);
    for along in dimensions.iter().rev() {
        let list = of_place(scaling, along, rest % along.output);
        rest /= along.output;
        terms = terms
            .iter()
            .flat_map(|(start, weight)| {
                list.iter()
                    .map(move |(at, own)| (start + at * stride, weight * own))
            })
            .collect();
        stride *= along.input;
    }
    if terms.is_empty() {
        return scaling.extrapolation;
    }
    let term = |(at, weight): &(usize, f64)| x[*at].to_f64() * weight;
    terms.iter().map(term).sum()
}

#[test]
fn all_layouts_and_kernels_are_as_defined() {
    let same = |n| along(n, n, 1.0);
    let shapes: &[&[OnnxResizeAxis]] = &[
        &[],
        &[along(5, 12, 2.4)],
        &[same(2), same(3), along(4, 8, 2.0), along(5, 10, 2.0)],
        &[same(2), same(3), along(4, 9, 2.25), along(5, 15, 3.0)],
        &[same(2), same(3), along(9, 4, 0.44), along(15, 7, 0.5)],
        &[same(1), along(5, 7, 1.4), along(6, 4, 0.7), same(3)],
        &[same(2), along(5, 10, 2.0), along(6, 3, 0.5), same(19)],
        &[same(2), along(5, 10, 2.0), same(6), same(4)],
        &[
            same(1),
            along(3, 6, 2.0),
            along(4, 3, 0.8),
            along(5, 25, 5.0),
        ],
        &[
            along(2, 5, 2.5),
            same(3),
            along(3, 5, 1.7),
            same(2),
            along(4, 6, 1.5),
        ],
        // Several parts.
        &[same(2), same(2), along(40, 80, 2.0), along(40, 83, 2.08)],
    ];
    let kernels = [
        OnnxResizeKernel::Nearest(NearestMode::HalfDown),
        OnnxResizeKernel::Linear,
        OnnxResizeKernel::Cubic(-0.75),
    ];
    let places = [
        OnnxCoordinates::HalfPixel,
        OnnxCoordinates::AlignCorners,
        OnnxCoordinates::CropAndResize,
    ];
    for (dimensions, blend) in shapes
        .iter()
        .flat_map(|one| kernels.map(|blend| (one, blend)))
    {
        let options = places.iter().flat_map(|places| {
            [(false, false), (true, false), (false, true)].map(|flags| (*places, flags))
        });
        for (places, (antialias, exclude_outside)) in options {
            let scaling = OnnxResizeOptions {
                blend,
                places,
                antialias,
                exclude_outside,
                extrapolation: 9.0,
            };
            let mut dimensions = dimensions.to_vec();
            if places == OnnxCoordinates::CropAndResize {
                dimensions
                    .iter_mut()
                    .for_each(|along| along.part = (0.2, 1.1));
            }
            let (x, out) = resized::<f32>(&scaling, &dimensions);
            let (_, exact) = resized::<f64>(&scaling, &dimensions);
            for (index, (out, exact)) in out.iter().zip(&exact).enumerate() {
                let wanted = defined(&scaling, &dimensions, &x, index);
                assert!(
                    (f64::from(*out) - wanted).abs() <= 6e-6,
                    "{scaling:?} {dimensions:?} {index}: {out}, not {wanted}"
                );
                assert!(
                    (exact - wanted).abs() <= 1e-12,
                    "{scaling:?} {dimensions:?} {index}: {exact}, not {wanted}"
                );
            }
            let (x, out) = resized::<u8>(&scaling, &dimensions);
            for (index, out) in out.iter().enumerate() {
                let wanted = defined(&scaling, &dimensions, &x, index);
                let off = f64::from(*out) - wanted.clamp(0.0, 255.0);
                assert!(
                    (-1.0 - 1e-9..=1e-9).contains(&off),
                    "{scaling:?} {dimensions:?} {out} {wanted}"
                );
            }
        }
    }
}

#[test]
fn infinities_stay_where_they_are() {
    let scaling = OnnxResizeOptions {
        places: OnnxCoordinates::Asymmetric,
        ..LINEAR
    };
    let host = HostContext::builder(KernelRegistry::new()).build();
    let execution = ExecutionContext::new(&RequestContext::new(&host));
    let x = DenseHostTensor::from_slice(host.allocator(), &[3], &[1.0, f32::INFINITY, 2.0]);
    let out = DenseHostTensor::from_slice(host.allocator(), &[6], &[0.0_f32; 6]).unwrap();
    let resize = OnnxResize::new(&scaling, &[along(3, 6, 2.0)]).unwrap();
    let chain = resize.run_into(&execution, &x.unwrap(), &out).unwrap();
    host.queue().await_all(&[chain.into_any()]).unwrap();
    let infinity = f32::INFINITY;
    let wanted = [1.0, infinity, infinity, infinity, 2.0, 2.0];
    assert_eq!(out.read().unwrap().elements::<f32>().unwrap(), wanted);
}

#[test]
fn nearest_places_are_those_of_single_precision() {
    let nearest = OnnxResizeOptions {
        blend: OnnxResizeKernel::Nearest(NearestMode::Floor),
        places: OnnxCoordinates::Asymmetric,
        ..LINEAR
    };
    // 4 / 0.8 is 5, though the `f32` nearest to 0.8 is larger.
    let axis = along(10, 8, f64::from(0.8_f32));
    let of = |place| of_place(&nearest, &axis, place)[0].0;
    let list: Vec<usize> = (0..8).map(of).collect();
    assert_eq!(list, [0, 1, 2, 3, 5, 6, 7, 8]);
    // So it is by extents.
    let axis = along(10, 8, 0.8);
    assert_eq!(of_place(&nearest, &axis, 4), [(5, 1.0)]);
}
