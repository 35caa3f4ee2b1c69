//! Plain graphs, alike for us and for those we compare with.
//!
//! A node has predecessors and a value: the wrapping sum of theirs, and the step where a node has
//! fewer than two. As text a node is a kernel: `tfrt.add.i32` of two, `bench.sum3` and
//! `bench.sum4`, and `tfrt_test.sum` of more. Start and step are the function's arguments, so that
//! nothing can be folded. The last node is the result, and depends on every other one.

use std::fmt::Write as _;

use crate::programs::Numbers;

/// A graph whose nodes are numbered in an order that they can run in.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The predecessors of all nodes, one node after the other.
    predecessors: Vec<u32>,
    /// The start of each node's predecessors; one entry more than there are nodes.
    begins: Vec<u32>,
}

/// Lists of numbers, one for each node.
#[derive(Clone, Debug)]
pub struct Lists {
    numbers: Vec<u32>,
    begins: Vec<u32>,
}

impl Lists {
    /// Returns the list of a node.
    #[inline]
    pub fn of(&self, node: u32) -> &[u32] {
        let begin = self.begins[node as usize] as usize;
        let end = self.begins[node as usize + 1] as usize;
        &self.numbers[begin..end]
    }
}

/// A builder of a graph, node by node.
struct Builder(Graph);

impl Builder {
    fn new() -> Builder {
        Builder(Graph {
            predecessors: Vec::new(),
            begins: vec![0],
        })
    }

    /// Adds a node, and returns its number.
    fn node(&mut self, predecessors: &[u32]) -> u32 {
        let index = self.0.n_nodes() as u32;
        assert!(predecessors.iter().all(|before| *before < index));
        self.0.predecessors.extend_from_slice(predecessors);
        self.0.begins.push(self.0.predecessors.len() as u32);
        index
    }

    /// Adds nodes of two predecessors each until one node is left.
    fn tree(&mut self, mut level: Vec<u32>) {
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| {
                    if pair.len() == 2 {
                        self.node(pair)
                    } else {
                        pair[0]
                    }
                })
                .collect();
        }
    }
}

impl Graph {
    /// Returns nodes one after the other.
    pub fn chain(n_nodes: u32) -> Graph {
        let mut builder = Builder::new();
        let mut last = builder.node(&[]);
        for _ in 1..n_nodes {
            last = builder.node(&[last]);
        }
        builder.0
    }

    /// Returns one node, `width` that follow it, and a tree of sums of two.
    pub fn fan(width: u32) -> Graph {
        let mut builder = Builder::new();
        let first = builder.node(&[]);
        let level = (0..width).map(|_| builder.node(&[first])).collect();
        builder.tree(level);
        builder.0
    }

    /// Returns one node, `width` that follow it, and one sum of all.
    pub fn merge(width: u32) -> Graph {
        let mut builder = Builder::new();
        let first = builder.node(&[]);
        let level: Vec<u32> = (0..width).map(|_| builder.node(&[first])).collect();
        builder.node(&level);
        builder.0
    }

    /// Returns a square in which each node follows its neighbours above and to the left.
    pub fn wave(side: u32) -> Graph {
        let mut builder = Builder::new();
        for row in 0..side {
            for column in 0..side {
                let index = row * side + column;
                let above = (row > 0).then(|| index - side);
                let left = (column > 0).then(|| index - 1);
                let both: Vec<u32> = above.into_iter().chain(left).collect();
                builder.node(&both);
            }
        }
        builder.0
    }

    /// Returns a tree of sums of two over `n_leaves` nodes without predecessors.
    pub fn tree(n_leaves: u32) -> Graph {
        let mut builder = Builder::new();
        let leaves = (0..n_leaves).map(|_| builder.node(&[])).collect();
        builder.tree(leaves);
        builder.0
    }

    /// Returns nodes of one to four predecessors among the `window` before them, and one sum of all
    /// nodes that nothing follows.
    pub fn random(n_nodes: u32, window: u32) -> Graph {
        let mut builder = Builder::new();
        let mut numbers = Numbers::new(3);
        let mut is_used = vec![false; n_nodes as usize];
        builder.node(&[]);
        for index in 1..n_nodes {
            let reach = window.min(index);
            let n_picks = 1 + numbers.below(4);
            let mut picks: Vec<u32> = (0..n_picks)
                .map(|_| index - 1 - numbers.below(reach as usize) as u32)
                .collect();
            picks.sort_unstable();
            picks.dedup();
            picks.iter().for_each(|pick| is_used[*pick as usize] = true);
            builder.node(&picks);
        }
        let unused: Vec<u32> = (0..n_nodes)
            .filter(|index| !is_used[*index as usize])
            .collect();
        builder.node(&unused);
        builder.0
    }

    /// Returns chains side by side, and one sum of their ends.
    pub fn lanes(n_lanes: u32, n_nodes: u32) -> Graph {
        let mut builder = Builder::new();
        let mut ends: Vec<u32> = (0..n_lanes).map(|_| builder.node(&[])).collect();
        for _ in 1..n_nodes {
            for end in &mut ends {
                *end = builder.node(&[*end]);
            }
        }
        builder.node(&ends);
        builder.0
    }

    /// Returns the number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.begins.len() - 1
    }

    /// Returns the predecessors of a node.
    #[inline]
    pub fn predecessors(&self, node: u32) -> &[u32] {
        let begin = self.begins[node as usize] as usize;
        let end = self.begins[node as usize + 1] as usize;
        &self.predecessors[begin..end]
    }

    /// Returns the nodes that follow each node.
    pub fn successors(&self) -> Lists {
        let n_nodes = self.n_nodes();
        let mut begins = vec![0u32; n_nodes + 1];
        for before in &self.predecessors {
            begins[*before as usize + 1] += 1;
        }
        for index in 0..n_nodes {
            begins[index + 1] += begins[index];
        }
        let mut next = begins.clone();
        let mut numbers = vec![0u32; self.predecessors.len()];
        for node in 0..n_nodes as u32 {
            for before in self.predecessors(node) {
                let place = &mut next[*before as usize];
                numbers[*place as usize] = node;
                *place += 1;
            }
        }
        Lists { numbers, begins }
    }

    /// Returns how many predecessors each node has.
    pub fn counts(&self) -> Vec<u32> {
        self.begins
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    }

    /// Returns the value of the last node.
    pub fn result(&self, start: i32, step: i32) -> i32 {
        let mut values = vec![0; self.n_nodes()];
        for node in 0..self.n_nodes() as u32 {
            let before = self.predecessors(node);
            values[node as usize] = value(before, start, step, |before| values[before as usize]);
        }
        values.last().copied().unwrap_or_default()
    }

    /// Returns the graph as a function `main` of start and step, by `kernels`.
    pub fn text(&self, kernels: &Kernels) -> String {
        self.write(kernels).expect("a String takes all text")
    }

    fn write(&self, kernels: &Kernels) -> Result<String, std::fmt::Error> {
        let mut text = String::from("func.func @main(%start: i32, %step: i32) -> i32");
        text.push_str(if kernels.synchronous {
            " attributes {tfrt.sync} {\n"
        } else {
            " {\n"
        });
        let n_nodes = self.n_nodes() as u32;
        for node in 0..n_nodes {
            let before = self.predecessors(node);
            let kernel = match &kernels.at {
                Some((at, kernel)) if *at == node => kernel,
                _ => kernels.of(before.len()),
            };
            let operands: Vec<String> = match *before {
                [] => vec!["%start".to_owned(), "%step".to_owned()],
                [one] => vec![format!("%v{one}"), "%step".to_owned()],
                _ => before.iter().map(|before| format!("%v{before}")).collect(),
            };
            let types = vec!["i32"; operands.len()].join(", ");
            let operands = operands.join(", ");
            writeln!(
                text,
                "  %v{node} = \"{kernel}\"({operands}) : ({types}) -> i32"
            )?;
        }
        write!(text, "  tfrt.return %v{} : i32\n}}\n", n_nodes - 1)?;
        Ok(text)
    }
}

/// Returns the value of a node, which every implementation computes.
#[inline]
pub fn value(before: &[u32], start: i32, step: i32, of: impl Fn(u32) -> i32) -> i32 {
    match *before {
        [] => start.wrapping_add(step),
        [one] => of(one).wrapping_add(step),
        [one, two] => of(one).wrapping_add(of(two)),
        _ => before
            .iter()
            .fold(0, |sum, node| sum.wrapping_add(of(*node))),
    }
}

/// The kernels that nodes are written with.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// The kernel of nodes of two operands, and of fewer.
    pub two: &'static str,
    /// The kernels of nodes of three, of four, and of more operands.
    pub more: [&'static str; 3],
    /// Whether the function is marked synchronous.
    pub synchronous: bool,
    /// One node that is another kernel.
    pub at: Option<(u32, &'static str)>,
}

impl Kernels {
    /// Kernels that add at once.
    pub const PLAIN: Kernels = Kernels {
        two: "tfrt.add.i32",
        more: ["bench.sum3", "bench.sum4", "tfrt_test.sum"],
        synchronous: false,
        at: None,
    };

    /// Kernels that add at once, in a function that is marked synchronous.
    pub const SYNCHRONOUS: Kernels = Kernels {
        two: "tfrt.add_s.i32",
        more: ["bench.sum3", "bench.sum4", "tfrt_test.sync_sum"],
        synchronous: true,
        at: None,
    };

    /// Kernels that add in a task; sums of more than two are plain.
    pub const ASYNCHRONOUS: Kernels = Kernels {
        two: "tfrt_test.async_add.i32",
        ..Kernels::PLAIN
    };

    /// Kernels that take a microsecond.
    pub const SLOW: Kernels = Kernels {
        two: "bench.slow_sum2",
        more: ["bench.slow_sum3", "bench.slow_sum4", "tfrt_test.sum"],
        synchronous: false,
        at: None,
    };

    fn of(&self, n_operands: usize) -> &'static str {
        match n_operands {
            0..=2 => self.two,
            3 => self.more[0],
            4 => self.more[1],
            _ => self.more[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_have_the_nodes_that_they_say() {
        let sizes = [
            Graph::chain(10).n_nodes(),
            Graph::fan(8).n_nodes(),
            Graph::merge(8).n_nodes(),
            Graph::wave(5).n_nodes(),
            Graph::tree(8).n_nodes(),
            Graph::random(50, 10).n_nodes(),
            Graph::lanes(3, 4).n_nodes(),
        ];
        assert_eq!(sizes, [10, 16, 10, 25, 15, 51, 13]);
    }

    #[test]
    fn successors_are_predecessors_the_other_way() {
        let graph = Graph::random(200, 20);
        let successors = graph.successors();
        let n_edges: usize = (0..201).map(|node| successors.of(node).len()).sum();
        assert_eq!(n_edges as u32, graph.counts().iter().sum::<u32>());
        for node in 0..201 {
            let follows = |after: &u32| graph.predecessors(*after).contains(&node);
            assert!(successors.of(node).iter().all(follows));
            // Only the last node has no successor.
            assert_eq!(successors.of(node).is_empty(), node == 200);
        }
    }

    #[test]
    fn result_of_a_chain_is_the_sum_of_its_steps() {
        assert_eq!(Graph::chain(10).result(5, 3), 35);
        assert_eq!(Graph::merge(4).result(5, 3), 44);
    }
}
