//! A graph that several threads may run together: atomic values, and atomic counts of what each
//! node waits for.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::cases::{START, STEP};
use crate::graph::{Graph, Lists, value};
use crate::kernels;

/// The work of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Adds.
    Add,
    /// Adds, and takes a microsecond for it; sums of more than four are plain.
    Slow,
}

impl Body {
    /// Returns the start and the step of a graph's values, which the compiler can't know.
    pub fn operands(self) -> (i32, i32) {
        black_box((START, STEP))
    }

    /// Returns whether a node takes a microsecond.
    pub fn is_slow(self) -> bool {
        self == Body::Slow
    }
}

/// A graph, its values, and its counts.
pub struct Shared {
    graph: Graph,
    successors: Lists,
    counts: Vec<u32>,
    body: Body,
    /// The nodes that wait for nothing.
    pub roots: Vec<u32>,
    missing: Vec<AtomicU32>,
    values: Vec<AtomicI32>,
    is_done: AtomicBool,
}

impl Shared {
    /// Makes a graph ready to run, and keeps it for the rest of the process: nobody pays for
    /// counting who still uses it.
    pub fn leak(graph: &Graph, body: Body) -> &'static Shared {
        let n_nodes = graph.n_nodes();
        let counts = graph.counts();
        Box::leak(Box::new(Shared {
            graph: graph.clone(),
            successors: graph.successors(),
            body,
            roots: (0..n_nodes as u32)
                .filter(|node| counts[*node as usize] == 0)
                .collect(),
            missing: counts.iter().map(|count| AtomicU32::new(*count)).collect(),
            values: (0..n_nodes).map(|_| AtomicI32::new(0)).collect(),
            counts,
            is_done: AtomicBool::new(false),
        }))
    }

    /// Resets the graph to run once more. Nobody else runs it.
    pub fn reset(&self) {
        for (missing, count) in self.missing.iter().zip(&self.counts) {
            // Ordering: nodes are handed to other threads after this, by what synchronizes.
            missing.store(*count, Ordering::Relaxed);
        }
        self.is_done.store(false, Ordering::Relaxed);
    }

    /// Runs a node, and tells of those that are ready now. Returns whether it was the last.
    #[inline]
    pub fn run(&self, node: u32, mut ready: impl FnMut(u32)) -> bool {
        let (start, step) = self.body.operands();
        let before = self.graph.predecessors(node);
        if self.body.is_slow() && before.len() <= 4 {
            kernels::spin();
        }
        // Ordering: the counts order the values.
        let of = |before: u32| self.values[before as usize].load(Ordering::Relaxed);
        let value = value(before, start, step, of);
        self.values[node as usize].store(value, Ordering::Relaxed);
        let after = self.successors.of(node);
        for after in after {
            // Ordering: the last of those that a node waits for sees the values of the others.
            if self.missing[*after as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                ready(*after);
            }
        }
        if after.is_empty() {
            // Ordering: pairs with the acquire in `is_done`.
            self.is_done.store(true, Ordering::Release);
        }
        after.is_empty()
    }

    /// Returns whether the last node has run, and with it all.
    pub fn is_done(&self) -> bool {
        // Ordering: pairs with the release in `run`.
        self.is_done.load(Ordering::Acquire)
    }

    /// Returns the value of the last node.
    pub fn result(&self) -> i32 {
        // Ordering: whoever asks has seen that the graph is done.
        self.values
            .last()
            .map_or(0, |value| value.load(Ordering::Relaxed))
    }
}
