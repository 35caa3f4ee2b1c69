//! Kernels on boxes in images: non-maximum suppression, and crops.

use smallvec::smallvec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::Family;
use tfrt_tensor::math::boxes::{BoundingBox, NonMaxSuppression, suppress};
use tfrt_tensor::math::number::Real;
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel, unsupported};
use tfrt_tensor::with_real;

use super::segments::indices;
use super::tensors::integers;

pub(super) const KERNELS: &[TensorKernel] = &[
    TensorKernel::new("tf.CropAndResize", |call| {
        let dtype = call.dense(0)?.dtype();
        with_real!(dtype, T => crops::<T>(call), else Err(unsupported(call.name, dtype)))
    })
    .of(Family::Reals),
    TensorKernel::new("tf.NonMaxSuppressionV3", |call| {
        let kept = kept(call)?;
        Ok(smallvec![indices(call, DType::I32, &[kept.len()], &kept)?])
    }),
    TensorKernel::new("tf.NonMaxSuppressionV4", |call| {
        let mut kept = kept(call)?;
        let n = kept.len();
        if call.attrs.flag("pad_to_max_output_size") {
            let most = integers(call, 2)?.first().copied().unwrap_or(0);
            let most = usize::try_from(most).unwrap_or(0);
            kept.try_reserve_exact(most.saturating_sub(n))
                .map_err(|_| {
                    Error::resource_exhausted(format!(
                        "{}: there is no memory for {most} boxes",
                        call.name
                    ))
                })?;
            kept.resize(most, 0);
        }
        Ok(smallvec![
            indices(call, DType::I32, &[kept.len()], &kept)?,
            indices(call, DType::I32, &[], &[n])?
        ])
    }),
];

/// Returns the numbers of an operand.
fn floats(call: &TensorCall<'_>, index: usize) -> Result<Vec<f32>, Error> {
    Ok(call.dense(index)?.read()?.elements::<f32>()?.to_vec())
}

/// Returns the boxes that are kept, the best first.
fn kept(call: &TensorCall<'_>) -> Result<Vec<usize>, Error> {
    let (boxes, scores) = (floats(call, 0)?, floats(call, 1)?);
    if boxes.len() != scores.len().saturating_mul(4) {
        let (found, n) = (call.dense(0)?.shape(), scores.len());
        return Err(call.error(format_args!(
            "expected {n} boxes of 4 numbers, found {found}"
        )));
    }
    let number = |index: usize| match floats(call, index)?[..] {
        [one] => Ok(f64::from(one)),
        _ => Err(call.error(format_args!("operand {index}: expected one number"))),
    };
    let overlap = number(3)?;
    if !(0.0..=1.0).contains(&overlap) {
        return Err(call.error(format_args!(
            "operand 3: expected a part from 0 to 1, found {overlap}"
        )));
    }
    let most = integers(call, 2)?.first().copied().unwrap_or(0);
    let suppression = NonMaxSuppression {
        most: usize::try_from(most).unwrap_or(0),
        overlap,
        score: match call.operands.get(4) {
            Some(_) => Some(number(4)?),
            None => None,
        },
    };
    let sides = boxes
        .chunks_exact(4)
        .map(|one| BoundingBox::of_corners([one[0], one[1], one[2], one[3]].map(f64::from)));
    let sides: Vec<BoundingBox> = sides.collect();
    let scores: Vec<f64> = scores.iter().map(|score| f64::from(*score)).collect();
    Ok(suppress(&suppression, &sides, &scores))
}

/// A sample of an image between two elements of a dimension: their indices, and the weight of the second.
#[derive(Clone, Copy)]
struct Interpolation {
    elements: [usize; 2],
    part: f32,
}

/// Returns the sample of an element of a crop along a dimension of so many elements, if it is inside.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "it is inside, and extents of images are small"
)]
fn interpolation(
    [start, end]: [f32; 2],
    extent: usize,
    (at, n): (usize, usize),
) -> Option<Interpolation> {
    let last = extent as f32 - 1.0;
    let place = match n {
        0 | 1 => 0.5 * (start + end) * last,
        _ => start * last + at as f32 * ((end - start) * last / (n - 1) as f32),
    };
    let is_inside = place >= 0.0 && place <= last;
    is_inside.then(|| Interpolation {
        elements: [place.floor() as usize, place.ceil() as usize],
        part: place - place.floor(),
    })
}

impl Interpolation {
    /// Returns the index of the nearer element.
    fn nearest(self) -> usize {
        self.elements[usize::from(self.part >= 0.5)]
    }
}

fn crops<T: Real>(call: &TensorCall<'_>) -> Result<Outputs, Error> {
    let (x, boxes, images) = (call.dense(0)?, floats(call, 1)?, integers(call, 2)?);
    let &[n, height, width, channels] = &x.shape().to_dims()[..] else {
        let found = x.shape();
        return Err(call.error(format_args!("expected images, found {found}")));
    };
    if let Some(found) = images
        .iter()
        .find(|image| !usize::try_from(**image).is_ok_and(|at| at < n))
    {
        return Err(call.error(format_args!("there is no image {found} of {n}")));
    }
    let outside = match call.attrs.get("extrapolation_value") {
        Some(tfrt_ops::AttrValue::Float(value)) => f32::from_f64(value),
        _ => 0.0,
    };
    let is_nearest = call.attrs.text("method") == "nearest";
    let out = call.output(0)?;
    let &[n_crops, rows, columns, _] = &out.shape().to_dims()[..] else {
        return Err(call.error(format_args!("expected a height and a width of crops")));
    };
    if images.len() != n_crops || (n_crops > 0 && (height == 0 || width == 0)) {
        return Err(call.error(format_args!("expected an image with elements for each box")));
    }
    {
        let (reading, mut writing) = (x.read()?, out.write()?);
        let elements = reading.elements::<T>()?;
        let pixels = writing
            .elements_mut::<f32>()?
            .chunks_exact_mut(channels.max(1));
        for (index, pixel) in pixels.enumerate() {
            let (at, row, column) = (
                index / columns / rows,
                index / columns % rows,
                index % columns,
            );
            let one = &boxes[4 * at..][..4];
            let places = (
                interpolation([one[0], one[2]], height, (row, rows)),
                interpolation([one[1], one[3]], width, (column, columns)),
            );
            let (Some(y), Some(x)) = places else {
                pixel.fill(outside);
                continue;
            };
            let image = usize::try_from(images[at]).unwrap_or(0);
            for (channel, to) in pixel.iter_mut().enumerate() {
                let of = |row: usize, column: usize| {
                    let place = ((image * height + row) * width + column) * channels + channel;
                    f32::from_f64(elements[place].to_f64())
                };
                if is_nearest {
                    *to = of(y.nearest(), x.nearest());
                    continue;
                }
                let along = |row: usize| {
                    let [left, right] = x.elements.map(|column| of(row, column));
                    left + (right - left) * x.part
                };
                let [top, bottom] = y.elements.map(along);
                *to = top + (bottom - top) * y.part;
            }
        }
    }
    Ok(smallvec![out.into()])
}
