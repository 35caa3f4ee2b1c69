//! States of kernels: one for each node of a program, a bounded number for calls without one.

use tfrt_bef::BefFile;
use tfrt_capi::Plugin;
use tfrt_capi::rows::PluginOps;
use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::{AnyAsyncValue, Chain, ExecutionContext, Program, RequestContext};

use crate::plugins::{Bed, build, load};

const PROGRAM: &str = "
func.func @main(%c0: !tfrt.chain, %x: !corert.tensorhandle) -> (!corert.tensorhandle, !corert.tensorhandle, !corert.tensorhandle) {
  %cpu = corert.get_op_handler %c0 \"cpu\"
  %a = corert.executeop(%cpu) \"tf.TestNode\"(%x) {n = 1 : i32} : 1
  %b = corert.executeop(%cpu) \"tf.TestNode\"(%x) {n = 1 : i32} : 1
  %t = corert.executeop(%cpu) \"tf.TestNode\"(%x) {table = dense<[1.0, 2.0]> : tensor<2xf32>} : 1
  tfrt.return %a, %b, %t : !corert.tensorhandle, !corert.tensorhandle, !corert.tensorhandle
}
";

/// Returns calls on a state, and how many states were made and deleted, as an operation has told.
fn counts(handle: &TensorHandle) -> [i32; 3] {
    let tensor = handle.tensor().unwrap().unwrap();
    let read = tensor.as_dense().unwrap().read().unwrap();
    read.elements::<i32>().unwrap().try_into().unwrap()
}

/// Runs the program, and returns what its three nodes tell.
fn run(bed: &Bed, program: &Program) -> [[i32; 3]; 3] {
    let host = bed.runtime.host();
    let execution: ExecutionContext = RequestContext::new(host).into();
    let x = AnyAsyncValue::new(bed.floats(&[1], &[1.0]));
    let main = program.function("main").unwrap();
    let results = main.execute(&execution, vec![AnyAsyncValue::new(Chain), x]);
    host.queue().await_all(&results).unwrap();
    let handle = |value: &AnyAsyncValue| {
        let error = value.error();
        assert!(error.is_none(), "{error:?}");
        counts(value.get::<TensorHandle>().unwrap())
    };
    [0, 1, 2].map(|index: usize| handle(&results[index]))
}

fn plugin() -> Option<Plugin> {
    let library = build("nodes", include_str!("plugins/nodes.c"), &[])?;
    Some(load(&library).unwrap())
}

/// One test, since it counts what the whole process has made.
#[test]
fn nodes_have_states_of_their_own_and_other_calls_share_a_bounded_number() {
    let Some(plugin) = plugin() else { return };
    let bed = Bed::new(PluginOps::new([&plugin]));
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("nodes.mlir", PROGRAM)).unwrap();
    let bytes = tfrt_compiler::compile(&module, &tfrt_compiler::CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), bed.runtime.host()).unwrap();
    assert_eq!(run(&bed, &program).map(|of_node| of_node[0]), [1, 1, 1]);
    assert_eq!(run(&bed, &program), [[2, 3, 0]; 3]);
    // Threads that run a node share its state.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    run(&bed, &program);
                }
            });
        }
    });
    assert_eq!(run(&bed, &program), [[203, 3, 0]; 3]);
    drop(program);
    // Threads let go of the last call after its results are there.
    while bed.runtime.host().n_open_calls() > 0 {
        std::thread::yield_now();
    }
    // A call without a node has another state, and the program's are gone with it.
    let call = |attrs: &OpAttrs| {
        let x = bed.floats(&[1], &[1.0]);
        counts(&bed.call("tf.TestNode", vec![x], attrs).unwrap()[0])
    };
    let (mut n_calls, mut found) = (1, call(&OpAttrs::new()));
    while found[2] < 3 {
        // The thread that has let go of the program last is deleting them.
        assert_eq!(found[..2], [n_calls, 4]);
        std::thread::yield_now();
        (n_calls, found) = (n_calls + 1, call(&OpAttrs::new()));
    }
    assert_eq!(found, [n_calls, 4, 3]);
    assert_eq!(call(&OpAttrs::new()), [n_calls + 1, 4, 3]);
    // Calls of more kinds than are kept let states go: those that were used longest ago.
    let with = |n: i32| {
        let mut attrs = OpAttrs::new();
        attrs.set("n", n).unwrap();
        attrs
    };
    for n in 1..1100 {
        assert_eq!(call(&with(n))[0], 1, "{n}");
    }
    let [_, n_created, n_deleted] = call(&with(1099));
    assert_eq!(n_created, 4 + 1099);
    assert!((50..=80).contains(&(n_deleted - 3)), "{n_deleted}");
    drop(bed);
}
