use proptest::prelude::*;

use super::*;
use crate::math::testing::{coordinates, layout_of};

fn ways() -> impl Strategy<Value = CoordinateMode> {
    prop::sample::select(vec![
        CoordinateMode::HalfPixel,
        CoordinateMode::PytorchHalfPixel,
        CoordinateMode::AlignCorners,
        CoordinateMode::Asymmetric,
    ])
}

/// Returns the place in the input by ONNX's definition.
fn place(way: CoordinateMode, index: usize, from: usize, to: usize) -> f64 {
    let (x, from, to) = (index as f64, from as f64, to as f64);
    let scale = to / from;
    match way {
        CoordinateMode::HalfPixel => (x + 0.5) / scale - 0.5,
        CoordinateMode::PytorchHalfPixel => {
            if to > 1.0 {
                (x + 0.5) / scale - 0.5
            } else {
                0.0
            }
        }
        CoordinateMode::AlignCorners => {
            if to == 1.0 {
                0.0
            } else {
                x * (from - 1.0) / (to - 1.0)
            }
        }
        CoordinateMode::Asymmetric => x / scale,
    }
}

/// Returns the value at a place of a line, by a sum over all that the kernel reaches.
fn at(
    line: &dyn Fn(usize) -> f64,
    n: usize,
    x: f64,
    scale: f64,
    kernel: ResizeKernel,
    outside: bool,
) -> f64 {
    let reach = if kernel == ResizeKernel::Linear {
        1.0
    } else {
        2.0
    };
    let (least, most) = (
        (x - reach / scale).floor() as i64 - 1,
        (x + reach / scale).ceil() as i64 + 1,
    );
    let (mut sum, mut weights) = (0.0, 0.0);
    for element in least..=most {
        let d = ((element as f64 - x) * scale).abs();
        let weight = match kernel {
            ResizeKernel::Linear => {
                if d < 1.0 {
                    1.0 - d
                } else {
                    0.0
                }
            }
            ResizeKernel::Cubic(a) => {
                if d <= 1.0 {
                    (a + 2.0) * d.powi(3) - (a + 3.0) * d.powi(2) + 1.0
                } else if d < 2.0 {
                    a * d.powi(3) - 5.0 * a * d.powi(2) + 8.0 * a * d - 4.0 * a
                } else {
                    0.0
                }
            }
        };
        let own = element.clamp(0, n as i64 - 1);
        if own != element && outside {
            continue;
        }
        sum += weight * line(own as usize);
        weights += weight;
    }
    sum / weights
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn pictures_are_those_of_the_definition(
        (layout, output) in (prop::collection::vec((1..7_usize, 0..9_usize), 1..4)).prop_flat_map(|extents| {
            let (input, output): (Vec<usize>, Vec<usize>) = extents.into_iter().unzip();
            (layout_of(input), Just(output))
        }),
        same in prop::collection::vec(any::<bool>(), 3),
        way in ways(),
        (is_cubic, antialias, exclude_outside) in (any::<bool>(), any::<bool>(), any::<bool>()),
        values in prop::collection::vec(-10.0..10.0_f64, 1024),
    ) {
        prop_assume!(layout.len <= values.len());
        let output: Vec<usize> = output.iter().zip(&layout.extents).zip(&same)
            .map(|((to, from), same)| if *same { *from } else { *to }).collect();
        let kernel = if is_cubic { ResizeKernel::Cubic(-0.5) } else { ResizeKernel::Linear };
        let interpolation = Interpolation { kernel, coordinates: way, antialias, exclude_outside };
        let x = layout.view(&values);
        let resize = Resize::new(interpolation, &layout.extents, &output).unwrap();
        let mut out = vec![0.0; output.iter().product()];
        resize.run(&x, &mut TensorViewMut::new(&mut out, &output).unwrap()).unwrap();
        // One dimension after the other, by the definition.
        fn value(
            x: &TensorView<'_, f64>, wanted: &[usize], output: &[usize], own: &Interpolation, before: &[usize],
        ) -> f64 {
            let dimension = before.len();
            if dimension == output.len() {
                return x.get(before).unwrap();
            }
            let (from, to) = (x.extents()[dimension], output[dimension]);
            let line = |index: usize| {
                let mut place = before.to_vec();
                place.push(index);
                value(x, wanted, output, own, &place)
            };
            if from == to {
                return line(wanted[dimension]);
            }
            let position = place(own.coordinates, wanted[dimension], from, to);
            let scale = if own.antialias { (to as f64 / from as f64).min(1.0) } else { 1.0 };
            at(&line, from, position, scale, own.kernel, own.exclude_outside)
        }
        for (index, found) in out.iter().enumerate() {
            let wanted = value(&x, &coordinates(index, &output), &output, &interpolation, &[]);
            prop_assert!((found - wanted).abs() < 1e-9, "{} {}", found, wanted);
        }
        let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        let mut near = vec![0.0_f32; out.len()];
        resize.run(&layout.view(&single), &mut TensorViewMut::new(&mut near, &output).unwrap()).unwrap();
        for (near, exact) in near.iter().zip(&out) {
            prop_assert!((f64::from(*near) - exact).abs() < 1e-4);
        }
    }

    #[test]
    fn nearest_elements_are_near(
        (layout, output) in prop::collection::vec((1..7_usize, 0..9_usize), 1..4).prop_flat_map(|extents| {
            let (input, output): (Vec<usize>, Vec<usize>) = extents.into_iter().unzip();
            (layout_of(input), Just(output))
        }),
        way in ways(),
        rounding in prop::sample::select(vec![NearestMode::HalfDown, NearestMode::HalfUp, NearestMode::Floor, NearestMode::Ceil]),
    ) {
        let all = crate::math::testing::elements::<u16>(layout.len);
        let x = layout.view(&all);
        let copy = nearest(&layout.extents, &output, way, rounding).unwrap();
        let mut out = vec![0; output.iter().product()];
        copy.run(&x, &mut TensorViewMut::new(&mut out, &output).unwrap()).unwrap();
        for (index, found) in out.iter().enumerate() {
            let from: Vec<usize> = coordinates(index, &output).iter().zip(&layout.extents).zip(&output).map(|((own, from), to)| {
                let x = place(way, *own, *from, *to);
                let near = match rounding {
                    NearestMode::Floor => x.floor(),
                    NearestMode::Ceil => x.ceil(),
                    NearestMode::HalfDown => if x - x.floor() <= 0.5 { x.floor() } else { x.ceil() },
                    NearestMode::HalfUp => if x - x.floor() < 0.5 { x.floor() } else { x.ceil() },
                };
                near.clamp(0.0, *from as f64 - 1.0) as usize
            }).collect();
            prop_assert_eq!(*found, x.get(&from).unwrap());
        }
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let linear = Interpolation::LINEAR;
    assert!(Resize::new(linear, &[2, 2], &[2]).is_err());
    assert!(Resize::new(linear, &[0], &[2]).is_err());
    let cubic = Interpolation {
        kernel: ResizeKernel::Cubic(f64::NAN),
        ..linear
    };
    assert!(Resize::new(cubic, &[2], &[3]).is_err());
    assert!(nearest(&[0], &[1], CoordinateMode::HalfPixel, NearestMode::Floor).is_err());
    let large = [0, 1 << 40];
    let resize = Resize::new(linear, &[0, 3], &large).unwrap();
    let x = TensorView::<f32>::new(&[], &[0, 3]).unwrap();
    resize
        .run(&x, &mut TensorViewMut::new(&mut [], &large).unwrap())
        .unwrap();
    assert!(
        resize
            .run(&x, &mut TensorViewMut::new(&mut [], &[0]).unwrap())
            .is_err()
    );
    let scalar = Resize::new(linear, &[], &[]).unwrap();
    let mut out = [0.0_f32];
    let x = TensorView::new(&[3.0_f32], &[]).unwrap();
    scalar
        .run(&x, &mut TensorViewMut::new(&mut out, &[]).unwrap())
        .unwrap();
    assert_eq!(out, [3.0]);
    let copy = nearest(
        &[0, 3],
        &large,
        CoordinateMode::HalfPixel,
        NearestMode::Floor,
    )
    .unwrap();
    let x = TensorView::<u8>::new(&[], &[0, 3]).unwrap();
    copy.run(&x, &mut TensorViewMut::new(&mut [], &large).unwrap())
        .unwrap();
}

#[test]
fn places_that_fit_no_memory_are_refused() {
    let code = |error: Error| error.code();
    let exhausted = tfrt_host::ErrorCode::ResourceExhausted;
    let wide = [1 << 50];
    let found = nearest(&[1], &wide, CoordinateMode::HalfPixel, NearestMode::Floor);
    assert_eq!(found.map(|_| ()).map_err(code), Err(exhausted));
    let found = Resize::new(Interpolation::LINEAR, &[1], &wide);
    assert_eq!(found.map(|_| ()).map_err(code), Err(exhausted));
    let of_many = Interpolation {
        antialias: true,
        ..Interpolation::CUBIC
    };
    for from in [1 << 50, 1 << 62, usize::MAX] {
        let found = Resize::new(of_many, &[from], &[1]);
        assert_eq!(found.map(|_| ()).map_err(code), Err(exhausted));
    }
}
