//! Tests of the memory of models: two shapes under a limit, outputs that belong to their callers, no clearing of
//! memory that is written, no page fault in later calls.

use std::alloc::Layout;
use std::fs;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use tfrt_async::SystemAllocator;
use tfrt_host::{Contents, HostAllocator, Limits};

use super::*;

const MIB: usize = 1 << 20;

const SIGMOID: &str = r#"
  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %a = "onnx.Add"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %b = "onnx.Sigmoid"(%a) : (tensor<?xf32>) -> tensor<?xf32>
    tfrt.return %b : tensor<?xf32>
  }"#;

/// A model of attention that nothing fuses: a product, a softmax over the first axis but one, a product, a
/// transposition.
const SCORES: &str = r#"
  func.func @main(%x: tensor<2x200x300xf32>) -> tensor<200x300x2xf32> {
    %t = "onnx.Transpose"(%x) {perm = [0 : i64, 2 : i64, 1 : i64]} : (tensor<2x200x300xf32>) -> tensor<2x300x200xf32>
    %s = "onnx.MatMul"(%t, %x) : (tensor<2x300x200xf32>, tensor<2x200x300xf32>) -> tensor<2x300x300xf32>
    %p = "onnx.Softmax"(%s) {axis = -1 : si64} : (tensor<2x300x300xf32>) -> tensor<2x300x300xf32>
    %c = "onnx.CumSum"(%p, %axis) : (tensor<2x300x300xf32>, tensor<i64>) -> tensor<2x300x300xf32>
    %y = "onnx.MatMul"(%x, %c) : (tensor<2x200x300xf32>, tensor<2x300x300xf32>) -> tensor<2x200x300xf32>
    %z = "onnx.Transpose"(%y) {perm = [1 : i64, 2 : i64, 0 : i64]} : (tensor<2x200x300xf32>) -> tensor<200x300x2xf32>
    tfrt.return %z : tensor<200x300x2xf32>
  }"#;

fn open_with(
    body: &str,
    n_workers: usize,
    change: impl FnOnce(HostContextBuilder) -> HostContextBuilder,
) -> Opened {
    let queue: Arc<dyn ConcurrentWorkQueue> = match n_workers {
        0 => Arc::new(SingleThreadedWorkQueue::new()),
        n => Arc::new(MultiThreadedWorkQueue::new(n, 0).unwrap()),
    };
    open_changed(body, true, |builder| change(builder.queue(queue)))
}

impl Opened {
    /// Calls the model with zeros, and returns its only result.
    fn result(&self, shape: &[usize]) -> DenseHostTensor {
        let elements = vec![0.0_f32; shape.iter().product()];
        let x = DenseHostTensor::from_slice(self.host.allocator(), shape, &elements).unwrap();
        let mut arguments = vec![AnyAsyncValue::new(Tensor::from(x))];
        arguments.extend(self.constants.iter().cloned());
        let mut results = self.call("main", arguments);
        let result = results.remove(0);
        result.get::<Tensor>().unwrap().as_dense().unwrap().clone()
    }
}

#[test]
fn two_shapes_fit_where_each_does() {
    let limited = |builder: HostContextBuilder| {
        builder.limits(Limits {
            max_memory: Some(72 * MIB),
            ..Limits::default()
        })
    };
    let opened = open_with(SIGMOID, 0, limited);
    for mib in [16, 32, 1, 32, 16] {
        let n = mib * MIB / size_of::<f32>();
        let result = opened.result(&[n]);
        assert_eq!(
            result.read().unwrap().elements::<f32>().unwrap()[n - 1],
            0.5
        );
    }
    assert_eq!(opened.host.memory_refusals(), 0);
}

#[test]
fn outputs_are_their_callers_alone() {
    for n_workers in [0, 2] {
        let opened = open_with(SIGMOID, n_workers, |builder| builder);
        for n_bytes in [1 << 10, 1 << 14, 1 << 17, MIB, 8 * MIB, 64 * MIB] {
            let n = n_bytes / size_of::<f32>();
            let mut result = opened.result(&[n]);
            // The worker that has made it lets go of it right after that.
            opened.host.queue().quiesce().unwrap();
            assert!(result.is_sole(), "{n_bytes} bytes");
            let elements = result.elements_mut::<f32>().unwrap().unwrap();
            assert_eq!((elements[0], elements.len()), (0.5, n));
            elements.fill(1.0);
            assert!(!result.buffer().is_divided());
        }
    }
}

/// An allocator that counts blocks of zeros, and fills all others with bytes that no kernel would write.
#[derive(Default)]
struct Poisoned {
    system: SystemAllocator,
    n_cleared: AtomicU64,
    n_large: AtomicU64,
}

// SAFETY: the blocks are the system allocator's, which makes the same promise; bytes that are written here are.
unsafe impl HostAllocator for Poisoned {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.system.allocate(layout)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.system.deallocate(block, layout) }
    }

    fn allocate_initialised(&self, layout: Layout, contents: Contents) -> Option<NonNull<u8>> {
        let block = self.system.allocate_initialised(layout, contents)?;
        self.n_large.fetch_add(1, Ordering::Relaxed);
        match contents {
            Contents::Zeros => _ = self.n_cleared.fetch_add(1, Ordering::Relaxed),
            // SAFETY: the block has so many bytes.
            Contents::Unspecified => unsafe { block.write_bytes(0xff, layout.size()) },
        }
        Some(block)
    }

    unsafe fn deallocate_initialised(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.system.deallocate_initialised(block, layout) }
    }

    fn name(&self) -> &'static str {
        "poisoned"
    }
}

#[test]
fn nothing_is_cleared_that_is_written() {
    for n_workers in [0, 2] {
        let plain = open_with(&scores(), n_workers, |builder| builder);
        let wanted = plain.result(&[2, 200, 300]);
        let allocator = Arc::new(Poisoned::default());
        let given = allocator.clone();
        let opened = open_with(&scores(), n_workers, |builder| builder.allocator(given));
        allocator.n_cleared.store(0, Ordering::Relaxed);
        let found = opened.result(&[2, 200, 300]);
        let elements = |tensor: &DenseHostTensor| {
            let reading = tensor.read().unwrap();
            reading.elements::<f32>().unwrap().to_vec()
        };
        assert_eq!(elements(&found), elements(&wanted));
        let n_large = allocator.n_large.load(Ordering::Relaxed);
        let n_cleared = allocator.n_cleared.load(Ordering::Relaxed);
        assert!(n_large >= 4 && n_cleared == 0, "{n_cleared} of {n_large}");
    }
}

/// Returns the model, with the axis of its sums.
fn scores() -> String {
    let axis =
        "    %axis = \"onnx.Constant\"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>\n";
    SCORES.replacen("    %t", &format!("{axis}    %t"), 1)
}

/// Returns the number of page faults of this thread; `None` where it can't be known.
fn n_faults() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/stat").ok()?;
    // Behind the name, which may be anything in parentheses: state, five numbers, flags, faults.
    text.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(7)?
        .parse()
        .ok()
}

#[test]
fn later_calls_of_a_static_model_take_no_page_fault() {
    let opened = open_with(&scores(), 0, |builder| builder);
    let elements = vec![0.5_f32; 2 * 200 * 300];
    let x = DenseHostTensor::from_slice(opened.host.allocator(), &[2, 200, 300], &elements);
    let mut arguments = vec![AnyAsyncValue::new(Tensor::from(x.unwrap()))];
    arguments.extend(opened.constants.iter().cloned());
    let faults_of_a_call = || {
        let before = n_faults()?;
        drop(opened.call("main", arguments.clone()));
        Some(n_faults()? - before)
    };
    let Some(first) = faults_of_a_call() else {
        return;
    };
    // On a machine with much else to do a call may come so late that what was idle has been given back.
    let later: Vec<u64> = (0..20).map_while(|_| faults_of_a_call()).collect();
    assert!(later.contains(&0), "first {first}, then {later:?}");
}
