//! What is made of whole rows, pictures and dimensions, on a queue's workers.

use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::cumulative::{Order, cumulative_into};
use tfrt_tensor::math::movement::gather_elements_into;
use tfrt_tensor::math::reduce::Sum;
use tfrt_tensor::math::resize::{Interpolation, Resize};
use tfrt_tensor::math::top_k::{Which, top_k_positions_into};

use super::Bed;

/// The bits of something of everything.
pub fn all(bed: &Bed) -> Vec<Vec<u32>> {
    let e = &bed.execution;
    let mut all = Vec::new();
    let x = bed.random(&[5, 120, 130], 20);
    let out = bed.zeros(&[5, 120, 130]);
    for dimension in [1, 2] {
        let done = cumulative_into::<Sum, f32>(e, &x, dimension, Order::default(), &out);
        all.push(bed.bits(done, &out));
    }
    let zeros = vec![0_i64; 5 * 7 * 130];
    let allocator = bed.host.allocator();
    let positions = DenseHostTensor::from_slice(allocator, &[5, 7, 130], &zeros).unwrap();
    let done = top_k_positions_into::<f32>(e, Which::Largest, &x, 1, &positions).unwrap();
    bed.host.queue().await_all(&[done.into_any()]).unwrap();
    let out = bed.zeros(&[5, 7, 130]);
    let done = gather_elements_into::<f32, i64>(e, &x, 1, &positions, &out);
    all.push(bed.bits(done, &out));
    let resize = Resize::new(Interpolation::CUBIC, &[5, 120, 130], &[5, 77, 260]).unwrap();
    let out = bed.zeros(&[5, 77, 260]);
    all.push(bed.bits(resize.run_into::<f32>(e, &x, &out), &out));
    all
}
