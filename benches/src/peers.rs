//! Others who can run a [`Graph`](crate::graph::Graph): loops, deques, executors, libraries.
//!
//! | Module | What it adds |
//! | --- | --- |
//! | [`loops`] | nothing, then ready counts: what any executor is measured against |
//! | [`shared`] | what those have in common that several threads can run |
//! | `deques` | a deque for each thread, to steal from: `st3`, `crossbeam-deque` |
//! | `spawning` | a task for each node: tokio, rayon, `async-executor` |
//! | [`native`] | taskflow and oneTBB, in programs of their own |
//!
//! Everybody computes the value of each node, and none of them can fail, be cancelled, or say where
//! a node came from.

#[cfg(feature = "peers")]
pub mod deques;
pub mod loops;
pub mod native;
pub mod shared;
#[cfg(feature = "peers")]
pub mod spawning;

#[cfg(all(test, feature = "peers"))]
mod tests {
    use super::shared::Body;
    use super::{deques, loops, native, spawning};
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
                let mut contenders = vec![loops::plain_loop(&graph, body)];
                contenders.push(loops::ready_counts(&graph));
                for n_threads in [1, 2] {
                    contenders.extend([
                        deques::st3(&graph, body, n_threads),
                        deques::crossbeam(&graph, body, n_threads),
                        spawning::rayon(&graph, body, n_threads),
                        spawning::tokio(&graph, body, Some(n_threads)),
                        spawning::async_executor(&graph, body, n_threads),
                    ]);
                    let built = native.iter().flatten();
                    contenders.extend(built.map(|one| one.start(&graph, body, n_threads)));
                }
                contenders.push(spawning::tokio(&graph, body, None));
                let answer = graph.result(START, STEP);
                for mut contender in contenders {
                    let given = (contender.work)(3).answer;
                    assert_eq!(given, answer, "{}", contender.name);
                }
            }
        }
    }
}
