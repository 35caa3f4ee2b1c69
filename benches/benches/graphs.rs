//! Graphs of trivial kernels on one thread: nanoseconds for a kernel, ours beside our peers.
//!
//! Each graph is the same for all, and so are its values. Ours are kernels of the library, with
//! errors, places and cancellation; `ordered` is what anybody gets, `dynamic` counts what each
//! kernel waits for though it could be known before. `cargo bench --bench graphs -- chain` measures
//! what has the word in its name.

#![forbid(unsafe_code)]

use tfrt_benches::cases::{Case, NAMES};
use tfrt_benches::compare::Subject;
use tfrt_benches::measure::Clock;
use tfrt_benches::ours::{Order, Ours, Threads};
use tfrt_benches::peers;
use tfrt_benches::peers::native::{ONE_TBB, TASKFLOW};
use tfrt_benches::peers::shared::Body;
use tfrt_benches::table::{Bench, skip};

fn main() {
    let bench = Bench::from_environment();
    bench.begin("graphs on one thread; processor time");
    let native: Vec<_> = [TASKFLOW, ONE_TBB]
        .into_iter()
        .filter_map(|library| library.build().map_err(|why| skip(&why)).ok())
        .collect();
    for name in NAMES.into_iter().filter(|name| bench.is_wanted(name)) {
        let case = Case::find(name).expect("each name has a case");
        let Some(graph) = &case.graph else { continue };
        let ours =
            Order::BOTH.map(|order| Ours::contender(&case, order, Threads::Caller, Clock::Process));
        let mut contenders = Vec::from(ours);
        contenders.extend(peers::on_one_thread(graph));
        let started = native
            .iter()
            .map(|program| program.start(graph, Body::Add, 1));
        contenders.extend(started);
        let subject = Subject {
            name,
            unit: case.unit,
            n_units: case.n_units,
            answer: case.answer,
        };
        bench.compare(subject, &mut contenders);
    }
}
