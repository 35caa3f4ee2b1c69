//! Sections of models that are captured and launched as graphs.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tfrt::gpu::driver::GpuErrorKind;
use tfrt::gpu::driver::sim::{Policy, Sim, SimOptions};
use tfrt::gpu::{self, GraphCounts, KERNELS};
use tfrt::input::Input;
use tfrt::ir::Source;
use tfrt::model::ModelCall;
use tfrt::{Context, Model, OpenOptions, Runtime, Tensor};

use super::simulated;

/// Returns a model of four layers: a product, a bias, an activation, a norm. The second result is on the way.
pub(super) fn layers() -> Input {
    let mut body = String::new();
    let (square, row) = ("tensor<4x4xf32>", "tensor<4xf32>");
    let rows = "tensor<?x4xf32>";
    for layer in 0..4 {
        let x = match layer {
            0 => "%x".to_owned(),
            _ => format!("%n{}", layer - 1),
        };
        body += &format!(
            r#"
  %p{layer} = "graph.dot"({x}, %w) : ({rows}, {square}) -> {rows}
  %b{layer} = "graph.add"(%p{layer}, %b) : ({rows}, {row}) -> {rows}
  %a{layer} = "graph.relu"(%b{layer}) : ({rows}) -> {rows}
  %n{layer} = "graph.norm"(%a{layer}, %b) {{kind = "layer"}} : ({rows}, {row}) -> {rows}"#
        );
    }
    let text = format!(
        r#"func.func @main(%x: {rows}) -> ({rows}, {rows}) attributes {{
    model.input_names = ["x"], model.output_names = ["y", "z"], model.input_dims = [["N", 4]]}} {{
  %w = "onnx.Constant"() {{value = dense<[[0.5, -1.0, 1.5, 0.25], [2.0, 0.25, -0.5, 1.0], [-0.75, 1.0, 0.5, -0.25], [0.125, 0.5, 1.0, -1.0]]> : {square}}} : () -> {square}
  %b = "onnx.Constant"() {{value = dense<[0.125, -0.5, 0.75, 1.5]> : {row}}} : () -> {row}{body}
  tfrt.return %n3, %b1 : {rows}, {rows}
}}"#
    );
    Input::Text(Source::new("layers.mlir", text))
}

pub(super) fn opened(runtime: &Runtime) -> Model {
    let options = OpenOptions::new().device("GPU:0").strict_device(true);
    runtime.load_model_with(&layers(), &options).unwrap()
}

/// Begins a call of a model with numbers that a seed gives.
pub(super) fn begin(context: &Context, model: &Model, n_rows: usize, seed: usize) -> ModelCall {
    let x = (0..4 * n_rows).map(|at| ((at + seed) * 37 % 101) as f32 / 25.0 - 2.0);
    let x = Tensor::from_vec(&[n_rows, 4], x.collect::<Vec<f32>>()).unwrap();
    model.call(context, [("x", x)])
}

/// Calls a model with numbers that a seed gives; returns the bits of its results.
pub(super) fn call(
    runtime: &Runtime,
    model: &Model,
    n_rows: usize,
    seed: usize,
) -> Result<Vec<u32>, String> {
    let outputs = begin(&runtime.context(), model, n_rows, seed).wait();
    let outputs = outputs.map_err(|error| error.to_string())?;
    let both = ["y", "z"].map(|name| outputs.tensor(name).unwrap().to_vec::<f32>().unwrap());
    Ok(both.iter().flatten().map(|x| x.to_bits()).collect())
}

/// Checks that a simulated GPU has found nothing, and has all back when those who used it are gone.
pub(super) fn expect_clean(sim: &Sim, what: &str) {
    let begin = Instant::now();
    while !sim.leaks().is_empty() && begin.elapsed() < Duration::from_secs(5) {
        thread::yield_now();
    }
    assert_eq!(sim.findings(), [], "{what}");
    assert_eq!(sim.leaks(), [""; 0], "{what}");
}

fn counts(n_captured: u64, n_launched: u64) -> GraphCounts {
    GraphCounts {
        n_captured,
        n_launched,
    }
}

#[test]
fn graphs_give_the_bits_of_launches_one_by_one() {
    for policy in Policy::ALL {
        let (plain, plain_sim) = simulated(policy);
        gpu::use_graphs(plain.host(), false);
        let (runtime, sim) = simulated(policy);
        let (model, plain_model) = (opened(&runtime), opened(&plain));
        for turn in 0..6 {
            for n_rows in [1, 5, 0] {
                let seed = 7 * turn + n_rows;
                let expected = call(&plain, &plain_model, n_rows, seed).unwrap();
                let found = call(&runtime, &model, n_rows, seed).unwrap();
                assert_eq!(found, expected, "{policy:?}, turn {turn}, {n_rows} rows");
            }
        }
        assert_eq!(gpu::graph_counts(runtime.host()), counts(3, 12));
        assert_eq!(gpu::graph_counts(plain.host()), counts(0, 0));
        drop((model, plain_model, runtime, plain));
        expect_clean(&sim, &format!("{policy:?}"));
        expect_clean(&plain_sim, &format!("{policy:?}, without"));
    }
}

#[test]
fn eight_shapes_have_graphs_and_that_of_the_one_used_last_goes() {
    let (runtime, sim) = simulated(Policy::Random);
    let model = opened(&runtime);
    let run = |n_rows: usize| call(&runtime, &model, n_rows, 3).unwrap();
    for n_rows in 1..=9 {
        for _ in 0..3 {
            run(n_rows);
        }
    }
    assert_eq!(gpu::graph_counts(runtime.host()), counts(9, 9));
    run(2);
    assert_eq!(gpu::graph_counts(runtime.host()), counts(9, 10));
    // It went, and is counted from the beginning.
    run(1);
    assert_eq!(gpu::graph_counts(runtime.host()), counts(9, 10));
    drop((model, runtime));
    expect_clean(&sim, "shapes");
}

#[test]
fn threads_that_call_at_once_get_their_own_results() {
    for policy in Policy::ALL {
        let (runtime, sim) = simulated(policy);
        let model = opened(&runtime);
        let expected: Vec<_> = (0..4)
            .map(|seed| {
                gpu::use_graphs(runtime.host(), false);
                call(&runtime, &model, 3, seed).unwrap()
            })
            .collect();
        gpu::use_graphs(runtime.host(), true);
        thread::scope(|scope| {
            for (seed, expected) in expected.iter().enumerate() {
                let (runtime, model) = (&runtime, &model);
                scope.spawn(move || {
                    for _ in 0..6 {
                        let found = call(runtime, model, 3, seed).unwrap();
                        assert_eq!(&found, expected, "{policy:?}, seed {seed}");
                    }
                });
            }
        });
        let found = gpu::graph_counts(runtime.host());
        assert_eq!(found.n_captured, 1, "{policy:?}");
        assert!(found.n_launched > 1, "{policy:?}: {found:?}");
        drop((model, runtime));
        expect_clean(&sim, &format!("{policy:?}"));
    }
}

#[test]
fn a_call_of_the_driver_that_fails_in_a_capture_leaves_nothing_behind() {
    for number in 1.. {
        let (runtime, sim) = simulated(Policy::Eager);
        let model = opened(&runtime);
        let run = || call(&runtime, &model, 2, 5);
        let expected = run().unwrap();
        assert_eq!(run().unwrap(), expected);
        let before = sim.n_calls();
        sim.fail_call(before + number, GpuErrorKind::Refused);
        if let Ok(found) = run() {
            assert_eq!(found, expected, "call {number}");
        }
        let is_over = sim.n_calls() < before + number;
        if !is_over {
            assert_eq!(run().unwrap(), expected, "behind call {number}");
        }
        drop((model, runtime));
        // A call that gives something back and fails leaves that, and nothing else.
        let begin = Instant::now();
        while sim.leaks().len() > 1 && begin.elapsed() < Duration::from_secs(5) {
            thread::yield_now();
        }
        assert_eq!(sim.findings(), [], "call {number}");
        let leaks = sim.leaks();
        assert!(leaks.len() <= 1, "call {number}: {leaks:?}");
        assert!(
            leaks.iter().all(|leak| leak.starts_with("1 ")),
            "call {number}: {leaks:?}"
        );
        if is_over {
            assert!(number > 30, "{number}");
            return;
        }
    }
}

#[test]
fn where_there_is_no_memory_for_a_graph_the_section_runs_without() {
    let runtime = Runtime::builder().op_kernels(KERNELS).build();
    let sim = Sim::new(SimOptions::default());
    // As much as calls take: what small blocks are cut from.
    gpu::add_limited(runtime.host(), Arc::new(sim.clone()), 0, Some(2 << 20)).unwrap();
    let model = opened(&runtime);
    let first = call(&runtime, &model, 4, 1).unwrap();
    for _ in 0..4 {
        assert_eq!(call(&runtime, &model, 4, 1).unwrap(), first);
    }
    assert_eq!(gpu::graph_counts(runtime.host()), counts(0, 0));
    drop((model, runtime));
    expect_clean(&sim, "no memory");
}
