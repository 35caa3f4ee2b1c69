//! The least that computes a graph's values, and ready counts added to it.

use crate::compare::Contender;
use crate::graph::{Graph, value};
use crate::kernels;
use crate::measure::Clock;
use crate::peers::shared::Body;

/// Returns one pass over the nodes in an order that was found before: the limit, and the yardstick
/// for the machine's own speed.
pub fn plain_loop(graph: &Graph, body: Body, clock: Clock) -> Contender {
    let graph = graph.clone();
    let n_nodes = graph.n_nodes();
    let mut values = vec![0i32; n_nodes];
    Contender::new("plain loop", clock, move || {
        let (start, step) = body.operands();
        for node in 0..n_nodes as u32 {
            let before = graph.predecessors(node);
            if body.is_slow() && before.len() <= 4 {
                kernels::spin();
            }
            values[node as usize] = value(before, start, step, |before| values[before as usize]);
        }
        values[n_nodes - 1]
    })
}

/// Returns a stack of ready nodes, and a plain count of what each still waits for.
pub fn ready_counts(graph: &Graph) -> Contender {
    let graph = graph.clone();
    let successors = graph.successors();
    let n_nodes = graph.n_nodes();
    let counts = graph.counts();
    let roots: Vec<u32> = (0..n_nodes as u32)
        .filter(|node| counts[*node as usize] == 0)
        .collect();
    let mut missing = counts.clone();
    let mut values = vec![0i32; n_nodes];
    let mut ready: Vec<u32> = Vec::with_capacity(n_nodes);
    Contender::new("ready counts", Clock::Process, move || {
        let (start, step) = Body::Add.operands();
        missing.copy_from_slice(&counts);
        ready.extend_from_slice(&roots);
        while let Some(node) = ready.pop() {
            let before = graph.predecessors(node);
            values[node as usize] = value(before, start, step, |before| values[before as usize]);
            for after in successors.of(node) {
                let count = &mut missing[*after as usize];
                *count -= 1;
                if *count == 0 {
                    ready.push(*after);
                }
            }
        }
        values[n_nodes - 1]
    })
}
