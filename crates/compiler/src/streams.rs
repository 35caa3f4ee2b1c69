//! Stream analysis: groups operations to streams by their costs.
//!
//! A stream is a group of kernels meant for one thread: the executor runs the ready
//! kernels of its own stream at once and hands the others to the work queue. The
//! analysis sees one block at a time and knows nothing of nested regions.
//!
//! 1. Forward: each operation finds its *parent*, the definition among its operands
//!    that is farthest from the function's entry by cost. So operations form a tree
//!    whose root stands for the entry.
//! 2. Backward: each operation joins the most expensive stream among its children in
//!    that tree; its other children's streams hang off it. Siblings cheaper than the
//!    threshold are merged, neighbours first.
//!
//! Files hold nothing but the ids, which are positions in the list of all streams that
//! ever were: they have gaps. Their order decides in which order a single-threaded
//! queue runs kernels, so it is exactly the original's.

use std::collections::{BTreeSet, HashMap, HashSet};

use tfrt_ir::{Attribute, BlockId, Def, Module, OpId};

/// Options of the analysis, by attributes of a function or module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// `tfrt.cost_threshold`: streams cheaper than this are worth merging, and an
    /// operation of unknown cost costs this. At least 1.
    pub cost_threshold: i64,
    /// `tfrt.upper_cost_threshold`: an operation joins no stream that costs this or more.
    pub upper_cost_threshold: Option<i64>,
    /// `tfrt.merge_inter_dependent_streams`: whether siblings that depend on each other
    /// are merged first.
    pub merge_inter_dependent: bool,
}

impl StreamOptions {
    /// Reads the options of a block: those of its function, else those of the module.
    pub fn of_block(module: &Module, block: BlockId) -> StreamOptions {
        let owner = module.block_parent_op(block);
        let function = owner.filter(|op| *module.op(*op).name() == "func.func");
        let enclosing = owner.and_then(|op| module.nearest_symbol_table(op));
        let places = [function, enclosing];
        let find = |name: &str, admits: fn(&Attribute) -> bool| {
            let mut found = places
                .iter()
                .flatten()
                .filter_map(|op| module.op(*op).attribute(name));
            found.find(|attribute| admits(attribute))
        };
        let integer = |name| {
            let is_integer = |attribute: &Attribute| {
                matches!(attribute, Attribute::Integer(_)) && attribute.as_bool().is_none()
            };
            find(name, is_integer).and_then(Attribute::as_i64)
        };
        let is_bool = |attribute: &Attribute| attribute.as_bool().is_some();
        StreamOptions {
            cost_threshold: integer("tfrt.cost_threshold").unwrap_or(1).max(1),
            upper_cost_threshold: integer("tfrt.upper_cost_threshold").filter(|most| *most >= 0),
            merge_inter_dependent: find("tfrt.merge_inter_dependent_streams", is_bool)
                .and_then(Attribute::as_bool)
                .unwrap_or(false),
        }
    }
}

/// A stream: a group of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The stream's number; not every number is in use.
    pub id: u32,
    /// The cost of its operations.
    pub cost: i64,
    /// The stream with the operation that starts this one; `None` for the root.
    pub parent: Option<u32>,
}

/// The streams of one block.
#[derive(Clone, Debug)]
pub struct StreamAnalysis {
    root: Stream,
    operations: Vec<Stream>,
}

impl StreamAnalysis {
    /// Analyzes a block.
    pub fn new(module: &Module, block: BlockId) -> StreamAnalysis {
        let options = StreamOptions::of_block(module, block);
        let nodes = Nodes::new(module, block, options.cost_threshold);
        Builder::new(options, nodes).run()
    }

    /// Returns the stream in which the function starts.
    pub fn root(&self) -> Stream {
        self.root
    }

    /// Returns the stream of the operation at a position in its block.
    ///
    /// # Panics
    ///
    /// If there is no such operation.
    pub fn stream(&self, position: usize) -> Stream {
        self.operations[position]
    }
}

/// The node of the entry, which defines the block's arguments.
const ROOT: usize = 0;

/// The operations of a block as nodes, the root first.
///
/// Lists of all nodes stand one after the other: those of node `n` from `starts[n]` to
/// `starts[n + 1]`.
#[derive(Clone, Debug)]
struct Nodes {
    costs: Vec<i64>,
    starts: Vec<u32>,
    operands: Vec<Operand>,
}

/// An operand of a node.
#[derive(Clone, Copy, Debug)]
struct Operand {
    /// The node that defines it.
    definition: u32,
    is_chain: bool,
}

impl Nodes {
    /// Returns the root, then a node for each operation of the block.
    fn new(module: &Module, block: BlockId, threshold: i64) -> Nodes {
        let operations = module.block(block).operations();
        let numbers = Numbers::new(operations);
        let mut nodes = Nodes {
            costs: Vec::with_capacity(operations.len() + 1),
            starts: Vec::with_capacity(operations.len() + 2),
            operands: Vec::with_capacity(2 * operations.len()),
        };
        nodes.costs.push(1);
        nodes.starts.extend([0, 0]);
        for op in operations {
            nodes.costs.push(cost(module, *op, threshold));
            for value in module.op(*op).operands() {
                let definition = match module.value_def(*value) {
                    Def::Result(op, _) => numbers.node_of(op),
                    Def::Argument(..) => ROOT as u32,
                };
                let is_chain = module.value_type(*value).is_chain();
                nodes.operands.push(Operand {
                    definition,
                    is_chain,
                });
            }
            // A module has fewer operands than its text has bytes, which are below 4 GiB.
            nodes.starts.push(nodes.operands.len() as u32);
        }
        nodes
    }

    fn len(&self) -> usize {
        self.costs.len()
    }

    fn operands(&self, node: usize) -> &[Operand] {
        &self.operands[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// The indices of nodes by operation.
struct Numbers {
    first: usize,
    /// A table for ids close to the first one, as those in one block usually are.
    near: Vec<u32>,
    far: HashMap<OpId, u32>,
}

impl Numbers {
    fn new(operations: &[OpId]) -> Numbers {
        let mut numbers = Numbers {
            first: operations.first().map_or(0, |op| op.index()),
            near: vec![ROOT as u32; operations.len()],
            far: HashMap::new(),
        };
        for (node, op) in (1..).zip(operations) {
            let distance = op.index().checked_sub(numbers.first);
            match distance.and_then(|at| numbers.near.get_mut(at)) {
                Some(near) => *near = node,
                None => {
                    numbers.far.insert(*op, node);
                }
            }
        }
        numbers
    }

    fn node_of(&self, op: OpId) -> u32 {
        let distance = op.index().checked_sub(self.first);
        let near = distance.and_then(|at| self.near.get(at));
        let found = near.or_else(|| self.far.get(&op));
        found.copied().unwrap_or(ROOT as u32)
    }
}

/// Returns the cost of an operation.
fn cost(module: &Module, op: OpId, threshold: i64) -> i64 {
    let op = module.op(op);
    match op.name().as_str() {
        "tfrt.return" | "tfrt.merge.chains" => 1,
        "tfrt_test.test_cost" => {
            let stated = op.attribute("_tfrt_cost").and_then(Attribute::as_i64);
            stated.filter(|cost| *cost > 0).unwrap_or(threshold)
        }
        _ => threshold,
    }
}

/// A stream under construction.
#[derive(Clone, Debug, Default)]
struct Draft {
    cost: i64,
    /// The node that starts it.
    parent: Option<usize>,
    merged_into: Option<usize>,
    /// Nodes that its operations read from, some of which may have joined it since; kept only if dependent streams
    /// are merged.
    dependencies: BTreeSet<usize>,
}

/// The index in place of no node or no stream.
const NONE: u32 = u32::MAX;

/// The state of the backward pass.
struct Builder {
    options: StreamOptions,
    nodes: Nodes,
    /// The parent of each node in the tree of the forward pass.
    parents: Vec<u32>,
    /// The first child of each node, and the next sibling, in textual order.
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    /// The stream that each node joined; unset until the node is visited.
    joined: Vec<u32>,
    drafts: Vec<Draft>,
}

impl Builder {
    fn new(options: StreamOptions, nodes: Nodes) -> Builder {
        let none = vec![NONE; nodes.len()];
        Builder {
            options,
            nodes,
            parents: none.clone(),
            first_child: none.clone(),
            next_sibling: none.clone(),
            joined: none,
            drafts: Vec::new(),
        }
    }

    fn run(mut self) -> StreamAnalysis {
        self.find_parents();
        let mut children = Vec::new();
        for node in (ROOT..self.nodes.len()).rev() {
            self.build(node, &mut children);
        }
        let root = self.resolve(ROOT);
        let streams: Vec<Stream> = (ROOT..self.nodes.len())
            .map(|node| {
                let id = self.resolve(node);
                let parent = self.drafts[id]
                    .parent
                    .map(|parent| self.resolve(parent) as u32);
                let parent = parent.filter(|_| id != root);
                Stream {
                    id: id as u32,
                    cost: self.drafts[id].cost,
                    parent,
                }
            })
            .collect();
        StreamAnalysis {
            root: streams[ROOT],
            operations: streams[ROOT + 1..].to_vec(),
        }
    }

    /// Finds the parent of each node, in a forward pass.
    fn find_parents(&mut self) {
        let mut from_root = vec![0i64; self.nodes.len()];
        from_root[ROOT] = self.nodes.costs[ROOT];
        for node in ROOT + 1..self.nodes.len() {
            let (mut parent, mut best) = (ROOT as u32, 0);
            for operand in self.nodes.operands(node) {
                let cost = from_root[operand.definition as usize];
                if cost > best {
                    (parent, best) = (operand.definition, cost);
                }
            }
            from_root[node] = self.nodes.costs[node].saturating_add(best);
            self.parents[node] = parent;
        }
        // From the last to the first, so that each list comes to be in textual order.
        for node in (ROOT + 1..self.nodes.len()).rev() {
            let first = &mut self.first_child[self.parents[node] as usize];
            // A module has fewer operations than its text has bytes, which are below 4 GiB.
            self.next_sibling[node] = std::mem::replace(first, node as u32);
        }
    }

    /// Returns the streams of a node's children, which were visited before.
    fn streams_of_children(&self, node: usize, streams: &mut Vec<usize>) {
        streams.clear();
        let mut child = self.first_child[node];
        while child != NONE {
            streams.push(self.joined[child as usize] as usize);
            child = self.next_sibling[child as usize];
        }
    }

    /// Puts a node into a stream, all its children being in one. `children` is scratch space.
    fn build(&mut self, node: usize, children: &mut Vec<usize>) {
        self.streams_of_children(node, children);
        if children.is_empty() {
            let stream = self.new_stream();
            return self.assign(node, stream);
        }
        for stream in children.iter() {
            self.drafts[*stream].parent = Some(node);
        }
        if self.options.merge_inter_dependent {
            self.merge_dependents(node, children);
        }
        let mut candidate = Candidate {
            limit: self.options.upper_cost_threshold,
            best: None,
        };
        let mut last_merged: Option<usize> = None;
        for stream in children.iter().copied() {
            if self.is_worth_a_thread(stream) {
                candidate.consider(stream, self.drafts[stream].cost);
                continue;
            }
            match last_merged.filter(|last| !self.is_worth_a_thread(*last)) {
                Some(last) => self.merge(stream, last),
                None => last_merged = Some(stream),
            }
            let last = last_merged.expect("it was just set");
            candidate.consider(last, self.drafts[last].cost);
        }
        let Some((stream, _)) = candidate.best else {
            let stream = self.new_stream();
            return self.assign(node, stream);
        };
        self.drafts[stream].parent = None;
        self.assign(node, stream);
        let leftover = last_merged.filter(|last| !self.is_worth_a_thread(*last));
        if let Some(last) = leftover.filter(|last| *last != stream) {
            self.merge(last, stream);
        }
    }

    fn is_worth_a_thread(&self, stream: usize) -> bool {
        self.drafts[stream].cost >= self.options.cost_threshold
    }

    fn new_stream(&mut self) -> usize {
        self.drafts.push(Draft::default());
        self.drafts.len() - 1
    }

    fn assign(&mut self, node: usize, stream: usize) {
        // There are no more streams than nodes.
        self.joined[node] = stream as u32;
        let draft = &mut self.drafts[stream];
        draft.cost = draft.cost.saturating_add(self.nodes.costs[node]);
        if self.options.merge_inter_dependent {
            let parent = self.parents[node];
            let data = self.nodes.operands(node).iter();
            let data = data.filter(|operand| !operand.is_chain && operand.definition != parent);
            draft.dependencies.remove(&node);
            let definitions = data.map(|operand| operand.definition as usize);
            draft.dependencies.extend(definitions);
        }
    }

    fn merge(&mut self, from: usize, to: usize) {
        let mut smaller = std::mem::take(&mut self.drafts[from].dependencies);
        let kept = &mut self.drafts[to].dependencies;
        if smaller.len() > kept.len() {
            std::mem::swap(&mut smaller, kept);
        }
        kept.extend(smaller);
        self.drafts[to].cost = self.drafts[to].cost.saturating_add(self.drafts[from].cost);
        self.drafts[from].merged_into = Some(to);
    }

    /// Merges children of a node into those that depend on them; removes merged ones.
    fn merge_dependents(&mut self, node: usize, children: &mut Vec<usize>) {
        if children.len() < 2 {
            return;
        }
        let pool: HashSet<usize> = children.iter().copied().collect();
        let mut gone = HashSet::new();
        for stream in children.iter().copied() {
            if gone.contains(&stream) {
                continue;
            }
            for other in self.cheap_dependencies(node, stream, &pool) {
                self.merge(other, stream);
                gone.insert(other);
                if self.is_worth_a_thread(stream) {
                    break;
                }
            }
        }
        children.retain(|stream| !gone.contains(stream));
    }

    /// Returns the cheap streams in `pool` that a stream depends on, in textual order.
    fn cheap_dependencies(
        &mut self,
        node: usize,
        stream: usize,
        pool: &HashSet<usize>,
    ) -> Vec<usize> {
        // Nodes before this one have not had their turn.
        let later = self.drafts[stream].dependencies.range(node + 1..);
        let later: Vec<usize> = later.copied().collect();
        let (mut cheap, mut seen) = (Vec::new(), HashSet::new());
        for dependency in later {
            let other = self.resolve(dependency);
            if other == stream {
                self.drafts[stream].dependencies.remove(&dependency);
                continue;
            }
            if pool.contains(&other) && !self.is_worth_a_thread(other) && seen.insert(other) {
                cheap.push(other);
            }
        }
        cheap
    }

    /// Returns the stream that a node is in after merges.
    fn resolve(&mut self, node: usize) -> usize {
        let joined = self.joined[node] as usize;
        let mut at = joined;
        while let Some(next) = self.drafts[at].merged_into {
            at = next;
        }
        // Shortens the way for those who come later.
        let mut passed = joined;
        while let Some(next) = self.drafts[passed].merged_into {
            self.drafts[passed].merged_into = Some(at);
            passed = next;
        }
        at
    }
}

/// The most expensive stream below a limit; the first of several.
struct Candidate {
    limit: Option<i64>,
    best: Option<(usize, i64)>,
}

impl Candidate {
    fn consider(&mut self, stream: usize, cost: i64) {
        let admitted = self.limit.is_none_or(|limit| cost < limit);
        if admitted && self.best.is_none_or(|(_, best)| cost > best) {
            self.best = Some((stream, cost));
        }
    }
}

#[cfg(test)]
mod tests;
