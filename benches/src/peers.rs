//! Peers that can run a [`Graph`]: loops, deques, executors, libraries.
//!
//! | Module | What it adds |
//! | --- | --- |
//! | [`loops`] | nothing, then ready counts: what any executor is measured against |
//! | [`shared`] | what those have in common that several threads can run |
//! | `deques` | a deque for each thread, to steal from: `st3`, `crossbeam-deque` |
//! | `spawning` | a task for each node: tokio, rayon, `async-executor` |
//! | [`process`] | ONNX Runtime and oneDNN, for convolutions |
//! | [`native`] | taskflow and oneTBB, in programs of their own |
//!
//! Everybody computes the value of each node, and none of them can fail, be cancelled, or say where
//! a node came from.

use crate::compare::Contender;
use crate::graph::Graph;
use crate::measure::Clock;
use shared::Body;

#[cfg(feature = "peers")]
pub mod deques;
pub mod loops;
pub mod native;
pub mod process;
pub mod shared;
#[cfg(feature = "peers")]
pub mod spawning;

/// Returns the peers in this process, on one thread, with nodes that add.
pub fn on_one_thread(graph: &Graph) -> Vec<Contender> {
    let loops = [
        loops::plain_loop(graph, Body::Add, Clock::Process),
        loops::ready_counts(graph),
    ];
    let libraries = libraries(graph, Body::Add, 1);
    loops.into_iter().chain(libraries).collect()
}

/// Returns the peers on two threads, but for the loop, which has one, and without ready counts.
pub fn on_two_threads(graph: &Graph, body: Body) -> Vec<Contender> {
    let libraries = libraries(graph, body, 2);
    let plain_loop = loops::plain_loop(graph, body, Clock::Wall);
    std::iter::once(plain_loop).chain(libraries).collect()
}

#[cfg(feature = "peers")]
fn libraries(graph: &Graph, body: Body, n_threads: usize) -> Vec<Contender> {
    let mut libraries = vec![
        deques::st3(graph, body, n_threads),
        deques::crossbeam(graph, body, n_threads),
        spawning::rayon(graph, body, n_threads),
        spawning::tokio(graph, body, Some(n_threads)),
        spawning::async_executor(graph, body, n_threads),
    ];
    if n_threads == 1 {
        libraries.push(spawning::tokio(graph, body, None));
    }
    libraries
}

#[cfg(not(feature = "peers"))]
fn libraries(_: &Graph, _: Body, _: usize) -> Vec<Contender> {
    Vec::new()
}

#[cfg(all(test, feature = "peers"))]
mod tests {
    use super::shared::Body;
    use super::{loops, native};
    use crate::cases::{START, STEP};
    use crate::graph::Graph;

    #[test]
    fn everybody_computes_the_same() {
        let native = [native::TASKFLOW, native::ONE_TBB].map(native::Library::build);
        for graph in [
            Graph::fan(100),
            Graph::wave(10),
            Graph::random(300, 40),
            Graph::lanes(10, 10),
        ] {
            for body in [Body::Add, Body::Slow] {
                let mut contenders = super::on_two_threads(&graph, body);
                contenders.extend(super::libraries(&graph, body, 1));
                contenders.push(loops::ready_counts(&graph));
                for n_threads in [1, 2] {
                    let built = native.iter().flatten();
                    contenders.extend(built.map(|one| one.start(&graph, body, n_threads)));
                }
                let answer = graph.result(START, STEP);
                for mut contender in contenders {
                    let given = (contender.work)(3).answer;
                    assert_eq!(given, answer, "{}", contender.name);
                }
            }
        }
    }
}
