//! Graphs on two threads: kernels of a microsecond, which should take half the time, and trivial
//! ones, which should not take longer.
//!
//! The time is what passes, from the call to the answer. Ours runs on the calling thread alone, on
//! it and a worker, and on two workers while the caller waits. Goals are ratios to the first: 0.53
//! where kernels take a microsecond; 1.1 where they are trivial, 0.67 of `tree`. What two threads
//! can do depends on how far their processors are from each other, so the time of a hand-off stands
//! beside each number.

#![forbid(unsafe_code)]

use tfrt_benches::cases::{Case, graph};
use tfrt_benches::compare::{Contender, Subject};
use tfrt_benches::graph::{Graph, Kernels};
use tfrt_benches::measure::Clock;
use tfrt_benches::ours::{Order, Ours, Threads};
use tfrt_benches::peers::native::{ONE_TBB, Program, TASKFLOW};
use tfrt_benches::peers::shared::Body;
use tfrt_benches::peers::{self, spawning};
use tfrt_benches::table::{Bench, skip};

fn main() {
    let bench = Bench::from_environment();
    bench.begin("graphs on two threads; time that passes");
    let native: Vec<Program> = [TASKFLOW, ONE_TBB]
        .into_iter()
        .filter_map(|library| library.build().map_err(|why| skip(&why)).ok())
        .collect();
    for (name, of) in [("slow_wave", "wave"), ("slow_random", "random")] {
        if bench.is_wanted(name) {
            let graph = graph(of).expect("it is a graph's name");
            let case = Case::of_graph(name, graph.clone(), &Kernels::SLOW);
            let mut contenders = ours(&case);
            contenders.extend(peers(&graph, Body::Slow, &native));
            run(&bench, &case, contenders);
        }
    }
    for name in ["chain", "fan", "wave", "tree", "random", "lanes"] {
        if bench.is_wanted(name) {
            let case = Case::find(name).expect("it is a case's name");
            let graph = graph(name).expect("it is a graph's name");
            let mut contenders = ours(&case);
            contenders.extend(peers(&graph, Body::Add, &native));
            run(&bench, &case, contenders);
        }
    }
    for (name, of) in [("async_chain", "chain"), ("async_fan", "fan")] {
        if bench.is_wanted(name) {
            let case = Case::find(name).expect("it is a case's name");
            let graph = graph(of).expect("it is a graph's name");
            let mut contenders = ours(&case);
            contenders.extend([
                spawning::rayon(&graph, Body::Add, 2),
                spawning::tokio(&graph, Body::Add, Some(2)),
                spawning::async_executor(&graph, Body::Add, 2),
            ]);
            run(&bench, &case, contenders);
        }
    }
}

/// Returns our contenders: on one thread, and on two in both orders.
fn ours(case: &Case) -> Vec<Contender> {
    let threads = [Threads::Caller, Threads::CallerAnd(1), Threads::Workers(2)];
    let ours = threads.map(|threads| Ours::contender(case, Order::Static, threads, Clock::Wall));
    Vec::from(ours)
}

fn peers(graph: &Graph, body: Body, native: &[Program]) -> Vec<Contender> {
    let mut peers = peers::on_two_threads(graph, body);
    peers.extend(native.iter().map(|program| program.start(graph, body, 2)));
    peers
}

fn run(bench: &Bench, case: &Case, mut contenders: Vec<Contender>) {
    let subject = Subject {
        name: case.name,
        unit: case.unit,
        n_units: case.n_units,
        answer: case.answer,
    };
    bench.compare_on_two(subject, &mut contenders);
}
