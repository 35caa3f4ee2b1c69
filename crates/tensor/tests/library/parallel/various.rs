//! Functions of whole rows, pictures and dimensions, on a queue's workers.

use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::attention::{
    Attention, TensorMask, attention_into, attention_merged_heads_into,
};
use tfrt_tensor::math::conv::{Convolution, TensorConvEpilogue, channels_first};
use tfrt_tensor::math::conv::{TransposedConvolution, convolve_transposed_into};
use tfrt_tensor::math::cumulative::{Cumulation, ScanOrder, cumulative_into};
use tfrt_tensor::math::gradient;
use tfrt_tensor::math::groups::{Groups, groups_into};
use tfrt_tensor::math::layout_copy::gather_elements_into;
use tfrt_tensor::math::pointwise::{
    BinaryFunction, Operand, PointwiseProgram, Step, UnaryFunction,
};
use tfrt_tensor::math::pool::{self, Pooling};
use tfrt_tensor::math::resize::{Interpolation, Resize};
use tfrt_tensor::math::softmax::SoftmaxKind;
use tfrt_tensor::math::top_k::{TopKOrder, top_k_positions_into};

use super::{Padding, TestBed, Window};

/// Returns the bits of something of everything.
pub fn all(bed: &TestBed) -> Vec<Vec<u32>> {
    let e = &bed.execution;
    let mut all = Vec::new();
    let x = bed.random(&[5, 120, 130], 20);
    let out = bed.zeros(&[5, 120, 130]);
    for dimension in [1, 2] {
        let done = cumulative_into(
            e,
            Cumulation::Sum,
            &x,
            dimension,
            ScanOrder::default(),
            &out,
        );
        all.push(bed.bits(done, &out));
    }
    let zeros = vec![0_i64; 5 * 7 * 130];
    let allocator = bed.host.allocator();
    let positions = DenseHostTensor::from_slice(allocator, &[5, 7, 130], &zeros).unwrap();
    let done = top_k_positions_into(e, TopKOrder::Largest, &x, 1, &positions).unwrap();
    bed.host.queue().await_all(&[done.into_any()]).unwrap();
    let out = bed.zeros(&[5, 7, 130]);
    let done = gather_elements_into(e, &x, 1, &positions, &out);
    all.push(bed.bits(done, &out));
    let resize = Resize::new(Interpolation::CUBIC, &[5, 120, 130], &[5, 77, 260]).unwrap();
    let out = bed.zeros(&[5, 77, 260]);
    all.push(bed.bits(resize.run_into(e, &x, &out), &out));
    let groups = Groups {
        dimension: 2,
        n_groups: 13,
        epsilon: 1e-3,
    };
    let (list, out) = (bed.random(&[130], 21), bed.zeros(&[5, 120, 130]));
    let done = groups_into(e, &x, &groups, [Some(&list), None], &out);
    all.push(bed.bits(done, &out));
    let g = bed.random(&[5, 120, 130], 22);
    let done = gradient::softmax_into::<f32>(e, SoftmaxKind::Softmax, &x, &g, &out);
    all.push(bed.bits(done, &out));
    let windows = [Window::new(3, 2, Padding::Valid)];
    let (g, out) = (bed.random(&[5, 59, 130], 23), bed.zeros(&[5, 120, 130]));
    for pooling in [Pooling::Maximum, Pooling::Mean] {
        let done = pool::gradient_into::<f32>(e, pooling, &x, &g, &windows, &out);
        all.push(bed.bits(done, &out));
    }
    let q = bed.random(&[2, 200, 80], 41);
    let out = bed.zeros(&[2, 200, 80]);
    let options = Attention::default();
    let done = attention_merged_heads_into(e, &options, 4, [&q; 3], TensorMask::None, &out);
    all.push(bed.bits(done, &out));
    let (q, k) = (
        bed.random(&[2, 4, 150, 20], 24),
        bed.random(&[2, 2, 200, 20], 25),
    );
    let (v, mask) = (
        bed.random(&[2, 2, 200, 30], 26),
        bed.random(&[150, 200], 27),
    );
    let (out, options) = (
        bed.zeros(&[2, 4, 150, 30]),
        Attention {
            scale: None,
            causal: Some(50),
            lens: None,
        },
    );
    let mask = TensorMask::Additive(mask);
    let done = attention_into(e, &options, [&q, &k, &v], mask, &out);
    all.push(bed.bits(done, &out));
    let steps = [
        Step::Binary(
            BinaryFunction::Multiply,
            [Operand::Input(0), Operand::Input(1)],
        ),
        Step::Unary(UnaryFunction::Gelu, Operand::Step(0)),
    ];
    let (program, out) = (
        PointwiseProgram::new(2, &steps).unwrap(),
        bed.zeros(&[5, 120, 130]),
    );
    let done = program.run_into(e, &[&x, &list], &out);
    all.push(bed.bits(done, &out));
    let windows = [Window::new(3, 2, Padding::Explicit(1, 0)); 2];
    let (input, filter) = (
        bed.random(&[5, 30, 31, 6], 28),
        bed.random(&[3, 3, 4, 6], 29),
    );
    let (transposed, out) = (
        TransposedConvolution::new(&windows),
        bed.zeros(&[5, 60, 62, 4]),
    );
    let epilogue = TensorConvEpilogue::default();
    let done =
        convolve_transposed_into::<f32>(e, &transposed, [&input, &filter], epilogue.clone(), &out);
    all.push(bed.bits(done, &out));
    let (input, filter) = (
        bed.random(&[5, 6, 30, 31], 30),
        bed.random(&[8, 6, 3, 3], 31),
    );
    let (convolution, out) = (Convolution::new(&windows), bed.zeros(&[5, 8, 15, 15]));
    let done = channels_first::convolve_into(e, &convolution, [&input, &filter], epilogue, &out);
    all.push(bed.bits(done, &out));
    let out = bed.zeros(&[5, 6, 15, 15]);
    let pooling = Pooling::Maximum;
    let done = pool::pool_channels_first_into(e, pooling, &input, &windows, &out);
    all.push(bed.bits(done, &out));
    all
}

#[test]
fn a_few_elements_are_those_of_the_definition() {
    let bed = TestBed::new(0);
    let steps = [
        Step::Binary(
            BinaryFunction::Multiply,
            [Operand::Input(0), Operand::Input(1)],
        ),
        Step::Binary(BinaryFunction::Add, [Operand::Step(0), Operand::Input(2)]),
        Step::Unary(UnaryFunction::Relu, Operand::Step(1)),
        Step::Binary(
            BinaryFunction::Subtract,
            [Operand::Step(2), Operand::Step(0)],
        ),
    ];
    let program = PointwiseProgram::new(3, &steps).unwrap();
    let out = [2, 3, 4];
    for (shapes, extents) in [
        ([&out[..], &out, &out], &out[..]),
        ([&out, &[], &[1, 1, 1]], &out),
        ([&[1], &out, &[1, 1]], &out),
        // None has the shape of the result.
        ([&[2, 1, 1], &[3, 1], &[4]], &out),
        ([&[1], &[1, 1], &[]], &[1, 1]),
        ([&[2, 0, 4], &[1], &[4]], &[2, 0, 4]),
        ([&[5, 6], &[1, 6], &[5, 6]], &[5, 6]),
    ] {
        let inputs = [0, 1, 2].map(|index| bed.random(shapes[index], 40 + index as u32));
        let result = bed.zeros(extents);
        let done = program.run_into(&bed.execution, &inputs.each_ref(), &result);
        let found = bed.bits(done, &result);
        let readings = inputs.each_ref().map(|input| input.read().unwrap());
        let views = readings.each_ref().map(|reading| reading.view().unwrap());
        let spread = views.map(|view| view.broadcast(extents).unwrap());
        let at = |index: usize| {
            let mut rest = index;
            let mut place = vec![0; extents.len()];
            for (to, extent) in place.iter_mut().zip(extents).rev() {
                (*to, rest) = (rest % extent, rest / extent);
            }
            let [a, b, c]: [f32; 3] = spread.each_ref().map(|view| view.get(&place).unwrap());
            let product = a * b;
            ((product + c).max(0.0) - product).to_bits()
        };
        let wanted: Vec<u32> = (0..found.len()).map(at).collect();
        assert_eq!(found, wanted, "{shapes:?}");
    }
    for (shapes, extents) in [
        ([&out[..], &out, &[5]], &out[..]),
        ([&out, &out, &out], &[2, 3]),
        ([&[4], &[4], &[1, 1]], &[4]),
    ] {
        let inputs = shapes.map(|shape| bed.zeros(shape));
        let result = bed.zeros(extents);
        let done = program.run_into(&bed.execution, &inputs.each_ref(), &result);
        assert!(done.is_err(), "{shapes:?}");
    }
}
