//! Arithmetic on the workers of a queue: the same bits on any number of threads, refusals, cancellation.

use std::sync::Arc;

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_host::DType;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    AsyncValue, Chain, Error, ErrorCode, ExecutionContext, HostContext, RequestContext,
};
use tfrt_tensor::math::conv::{self, Convolution, Method, PackedFilter, TensorConvEpilogue};
use tfrt_tensor::math::matmul::{PackedRhs, Scale, matmul_into, matmul_packed_into};
use tfrt_tensor::math::packed_gemm::{Activation, InstructionSet, TensorAddend, TensorEpilogue};
use tfrt_tensor::math::pointwise::{
    BinaryFunction, OperandOrder, PointwiseProgram, Step, UnaryFunction, binary_in_place,
    binary_into, unary_in_place, unary_into,
};
use tfrt_tensor::math::pool::{Pooling, pool_into};
use tfrt_tensor::math::reduce::{Reduction, reduce_into};
use tfrt_tensor::math::softmax::{SoftmaxKind, softmax_into};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{DenseHostTensor, TensorMetadata, TensorShape};

mod images;
mod layout_copy;
mod various;

/// A request on a host of its own with so many workers; 0 is the queue of one thread.
struct TestBed {
    host: HostContext,
    execution: ExecutionContext,
}

impl TestBed {
    fn new(n_workers: usize) -> TestBed {
        let queue: Arc<dyn ConcurrentWorkQueue> = match n_workers {
            0 => Arc::new(SingleThreadedWorkQueue::new()),
            n => Arc::new(MultiThreadedWorkQueue::new(n, 0).unwrap()),
        };
        let host = HostContext::builder(KernelRegistry::new())
            .queue(queue)
            .build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        TestBed { host, execution }
    }

    /// Returns numbers that look random, the same each time.
    fn random(&self, extents: &[usize], seed: u32) -> DenseHostTensor {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).unwrap()) / 65_536.0 - 0.5
        };
        let elements: Vec<f32> = (0..extents.iter().product()).map(|_| next()).collect();
        DenseHostTensor::from_slice(self.host.allocator(), extents, &elements).unwrap()
    }

    fn zeros(&self, extents: &[usize]) -> DenseHostTensor {
        let metadata = TensorMetadata::new(DType::F32, TensorShape::new(extents).unwrap());
        DenseHostTensor::zeroed(self.host.allocator(), metadata).unwrap()
    }

    /// Waits, and returns the bits.
    fn bits(&self, done: Result<AsyncValue<Chain>, Error>, out: &DenseHostTensor) -> Vec<u32> {
        let done = done.unwrap();
        self.host
            .queue()
            .await_all(&[done.clone().into_any()])
            .unwrap();
        assert!(done.error().is_none(), "{:?}", done.error());
        // What was lent is given back when the result settles.
        drop(out.write().unwrap());
        let reading = out.read().unwrap();
        reading
            .elements::<f32>()
            .unwrap()
            .iter()
            .map(|x| x.to_bits())
            .collect()
    }

    /// Returns the bits of something of everything.
    fn all(&self) -> Vec<Vec<u32>> {
        let e = &self.execution;
        let (x, y) = (self.random(&[300, 500], 1), self.random(&[500], 2));
        let out = self.zeros(&[300, 500]);
        let mut all = vec![
            self.bits(binary_into(e, BinaryFunction::Add, &x, &y, &out), &out),
            self.bits(unary_into(e, UnaryFunction::Exp, &x, &out), &out),
            self.bits(
                binary_in_place(
                    e,
                    BinaryFunction::Multiply,
                    OperandOrder::TargetFirst,
                    &out,
                    &y,
                ),
                &out,
            ),
            self.bits(unary_in_place(e, UnaryFunction::Exp, &out), &out),
            self.bits(softmax_into(e, SoftmaxKind::LogSoftmax, &x, &out), &out),
        ];
        for (dimensions, extents) in [(&[0][..], &[500][..]), (&[1], &[300]), (&[0, 1], &[])] {
            let out = self.zeros(extents);
            all.push(self.bits(reduce_into(e, Reduction::Sum, &x, dimensions, &out), &out));
        }
        let (a, b) = (self.random(&[130, 200], 3), self.random(&[90, 200], 4));
        let out = self.zeros(&[130, 90]);
        let product = matmul_into(e, Scale::default(), [&a, &b], [false, true], &out);
        all.push(self.bits(product, &out));
        let convolution = Convolution::new(&[Window::new(3, 1, Padding::Same); 2]);
        let (input, filter) = (
            self.random(&[3, 20, 21, 8], 5),
            self.random(&[3, 3, 8, 16], 6),
        );
        let out = self.zeros(&[3, 20, 21, 16]);
        let epilogue = TensorConvEpilogue {
            relu: true,
            ..TensorConvEpilogue::default()
        };
        let done = conv::convolve_into(e, &convolution, [&input, &filter], epilogue, &out);
        all.push(self.bits(done, &out));
        all.extend(self.packed());
        let (dx, dw) = (self.zeros(&[3, 20, 21, 8]), self.zeros(&[3, 3, 8, 16]));
        let done = conv::input_gradient_into(e, &convolution, &out, &filter, &dx);
        all.push(self.bits(done, &dx));
        let done = conv::filter_gradient_into(e, &convolution, &input, &out, &dw);
        all.push(self.bits(done, &dw));
        let pooled = self.zeros(&[3, 10, 10, 8]);
        let windows = [Window::new(2, 2, Padding::Valid); 2];
        let done = pool_into(e, Pooling::Maximum, &input, &windows, &pooled);
        all.push(self.bits(done, &pooled));
        all.extend(layout_copy::all(self));
        all.extend(various::all(self));
        all
    }

    /// Returns the bits of what is multiplied by packed weights: in blocks of rows, and of columns, too.
    fn packed(&self) -> Vec<Vec<u32>> {
        let (e, allocator) = (&self.execution, self.host.allocator());
        let window = Convolution::new(&[Window::new(3, 1, Padding::Same); 2]);
        let mut all = Vec::new();
        for (method, spatial, channels, filters) in [
            (Method::Direct, 33, 64, 24),
            (Method::Direct, 7, 64, 512),
            (Method::Direct, 75, 3, 40),
            (Method::Winograd4, 33, 64, 24),
            (Method::Winograd2, 7, 64, 512),
        ] {
            let input = self.random(&[1, spatial, spatial, channels], 7);
            let filter = self.random(&[3, 3, channels, filters], 8);
            let reading = filter.read().unwrap();
            let (set, view) = (InstructionSet::best(), reading.view().unwrap());
            let filter = PackedFilter::pack_for(allocator, set, method, &view, 1).unwrap();
            let out = self.random(&[1, spatial, spatial, filters], 9);
            for added in [
                TensorAddend::Result,
                TensorAddend::Tensor(self.random(&[1, spatial, spatial, filters], 10)),
            ] {
                let after = TensorEpilogue {
                    shift: Some(self.random(&[filters], 11)),
                    added,
                    activation: Activation::Relu,
                    ..TensorEpilogue::default()
                };
                let done = conv::convolve_packed_into(e, &window, &input, &filter, after, &out);
                all.push(self.bits(done, &out));
            }
        }
        for [m, k, n] in [
            [230, 200, 190],
            [1, 700, 520],
            [3, 300, 1030],
            [9, 512, 260],
        ] {
            let (a, b) = (self.random(&[m, k], 12), self.random(&[k, n], 13));
            let reading = b.read().unwrap();
            let right = PackedRhs::pack(allocator, &reading.view().unwrap()).unwrap();
            let out = self.random(&[m, n], 14);
            let gelu: Step = "gelu a0".parse().unwrap();
            let gelu = Arc::new(PointwiseProgram::new(1, &[gelu]).unwrap());
            for (activation, added, then) in [
                (Activation::None, TensorAddend::Nothing, None),
                (Activation::None, TensorAddend::Nothing, Some(gelu)),
                (Activation::Relu, TensorAddend::Result, None),
                (
                    Activation::Relu,
                    TensorAddend::Tensor(self.random(&[m, n], 15)),
                    None,
                ),
            ] {
                let after = TensorEpilogue {
                    shift: Some(self.random(&[n], 16)),
                    added,
                    activation,
                    then,
                    ..TensorEpilogue::default()
                };
                let done = matmul_packed_into(e, &a, &right, after, &out);
                all.push(self.bits(done, &out));
            }
        }
        all
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let wanted = TestBed::new(0).all();
    for n_workers in [1, 2, 4] {
        assert_eq!(TestBed::new(n_workers).all(), wanted, "{n_workers} workers");
    }
}

#[test]
fn memory_that_was_made_in_parts_is_not_divided() {
    let bed = TestBed::new(2);
    let (x, out) = (bed.random(&[300, 5_000], 1), bed.zeros(&[300, 5_000]));
    let e = &bed.execution;
    bed.bits(unary_into(e, UnaryFunction::Exp, &x, &out), &out);
    assert!(!out.buffer().is_divided());
    bed.bits(softmax_into(e, SoftmaxKind::LogSoftmax, &x, &out), &out);
    assert!(!out.buffer().is_divided());
}

#[test]
fn a_tensor_in_use_is_refused() {
    let bed = TestBed::new(0);
    let (small, large) = (bed.zeros(&[4]), bed.zeros(&[1 << 20]));
    for tensor in [small, large] {
        let reading = tensor.read().unwrap();
        let result = unary_in_place(&bed.execution, UnaryFunction::Exp, &tensor);
        let error = match result {
            Err(error) => error,
            Ok(done) => {
                bed.host
                    .queue()
                    .await_all(&[done.clone().into_any()])
                    .unwrap();
                done.error().expect("somebody reads it").clone()
            }
        };
        assert_eq!(error.code(), ErrorCode::FailedPrecondition);
        drop(reading);
    }
}

#[test]
fn a_cancelled_request_stops_between_chunks() {
    let bed = TestBed::new(0);
    let tensor = bed.zeros(&[1 << 20]);
    bed.execution.request().cancel();
    let done = unary_in_place(&bed.execution, UnaryFunction::Exp, &tensor).unwrap();
    bed.host
        .queue()
        .await_all(&[done.clone().into_any()])
        .unwrap();
    assert_eq!(done.error().map(Error::code), Some(ErrorCode::Cancelled));
    let reading = tensor.read().unwrap();
    assert!(reading.elements::<f32>().unwrap().iter().all(|x| *x == 0.0));
}

#[test]
fn who_sees_a_result_settle_holds_it_alone() {
    let bed = TestBed::new(4);
    for _ in 0..200 {
        let (mut x, mut out) = (bed.random(&[200_000], 1), bed.zeros(&[200_000]));
        let done = unary_into(&bed.execution, UnaryFunction::Relu, &x, &out).unwrap();
        bed.host.queue().await_all(&[done.into_any()]).unwrap();
        assert!(x.is_sole() && out.is_sole());
    }
}
