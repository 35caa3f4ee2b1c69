//! A test that no chain edge of `sequence-effects` is superfluous: small programs, all orders.
//!
//! The programs are straight lines of reads, writes and prints. Their runs are
//! enumerated: every order of the effects that data and chains allow. What a run
//! shows is what it prints, what it reads, and what buffers hold at the end. Writes
//! are taken for what the tables say of them, which is that they change a buffer, not
//! that they add to it: what they leave depends on what they found. No two operations
//! print or write the same.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use tfrt_compiler::pipeline::Pipeline;
use tfrt_ir::{Module, OpId, Source, ValueId, parse};

/// The most effects in a program; more have too many orders.
const MAX_EFFECTS: usize = 6;

#[test]
fn every_run_shows_the_same_and_no_edge_can_be_spared() {
    let mut n_edges = 0;
    for seed in 0..2_000 {
        let text = program(seed);
        let mut module = parse(&Source::new("small.mlir", text.clone())).unwrap();
        let pipeline = Pipeline::parse("sequence-effects").unwrap();
        pipeline.run(&mut module).unwrap();
        let graph = Graph::new(&module);
        let shown = graph.runs(None);
        let in_order = graph.show(&graph.effects);
        assert_eq!(shown, BTreeSet::from([in_order]), "{text}\n{module}");
        for edge in graph.chain_edges() {
            let shown = graph.runs(Some(edge));
            assert!(shown.len() > 1, "{edge:?} can be spared:\n{text}\n{module}");
            n_edges += 1;
        }
    }
    assert!(n_edges > 2_000, "{n_edges} edges are too few to tell");
}

/// Makes a small program of a seed.
fn program(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % 1_000).unwrap() % n
    };
    let mut text = String::from(
        "func.func @main() {
           %b0 = \"tfrt_test.atomic.create.i32\"() : () -> !test.atomic.i32
           %b1 = \"tfrt_test.atomic.create.i32\"() : () -> !test.atomic.i32
           %n0 = tfrt.constant.i32 1\n",
    );
    let mut numbers = 1;
    for _ in 0..2 + below(MAX_EFFECTS - 1) {
        let (buffer, number) = (below(2), below(numbers));
        text += &match below(6) {
            0 | 1 => format!("tfrt.print.i32 %n{number}\n"),
            2 | 3 => {
                numbers += 1;
                format!(
                    "%n{} = \"tfrt_test.atomic.get.i32\"(%b{buffer}) : (!test.atomic.i32) -> i32\n",
                    numbers - 1
                )
            }
            _ => format!(
                "\"tfrt_test.atomic.add.i32\"(%b{buffer}, %n{number}) : (!test.atomic.i32, i32) -> ()\n"
            ),
        };
        if below(4) == 0 {
            text += &format!(
                "%n{numbers} = \"tfrt_test.async_copy.i32\"(%n{}) : (i32) -> i32\n",
                below(numbers)
            );
            numbers += 1;
        }
    }
    text + "tfrt.return\n}"
}

/// An edge: an operand of an operation.
type Edge = (OpId, usize);

/// The operations of a program, and the edges between them.
struct Graph<'m> {
    module: &'m Module,
    operations: Vec<OpId>,
    effects: Vec<OpId>,
}

impl<'m> Graph<'m> {
    fn new(module: &'m Module) -> Graph<'m> {
        let main = module.lookup_symbol("main").unwrap();
        let block = module.entry_block(module.op(main).regions()[0]).unwrap();
        let operations = module.block(block).operations().to_vec();
        let is_effect = |op: &OpId| {
            let name = module.op(*op).name();
            [
                "tfrt.print.i32",
                "tfrt_test.atomic.get.i32",
                "tfrt_test.atomic.add.i32",
            ]
            .contains(&name.as_str())
        };
        let effects = operations.iter().copied().filter(is_effect).collect();
        Graph {
            module,
            operations,
            effects,
        }
    }

    /// Returns the chain operands, but those of the return and those that are new chains.
    fn chain_edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for &op in &self.operations {
            let data = self.module.op(op);
            for (index, &operand) in data.operands().iter().enumerate() {
                let from = self.module.defining_op(operand).unwrap();
                let is_new = *self.module.op(from).name() == "tfrt.new.chain";
                let is_chain = self.module.value_type(operand).is_chain();
                // What the function gives waits for effects that nobody else waits for.
                let is_read = *data.name() != "tfrt.return" && self.leads_to_an_effect(op);
                if is_chain && !is_new && is_read {
                    edges.push((op, index));
                }
            }
        }
        edges
    }

    fn leads_to_an_effect(&self, op: OpId) -> bool {
        let mut results = self.module.op(op).results().iter();
        self.effects.contains(&op)
            || results.any(|&result| {
                let mut users = self.module.users(result);
                users.any(|user| self.leads_to_an_effect(user.op))
            })
    }

    /// Returns the effects that each effect waits for, one edge being cut.
    fn waits(&self, cut: Option<Edge>) -> BTreeMap<OpId, BTreeSet<OpId>> {
        let mut waits: BTreeMap<OpId, BTreeSet<OpId>> = BTreeMap::new();
        for &op in &self.operations {
            let mut found = BTreeSet::new();
            for (index, &operand) in self.module.op(op).operands().iter().enumerate() {
                if cut == Some((op, index)) {
                    continue;
                }
                let from = self.module.defining_op(operand).unwrap();
                found.extend(waits[&from].iter().copied());
                if self.effects.contains(&from) {
                    found.insert(from);
                }
            }
            waits.insert(op, found);
        }
        waits
    }

    /// Returns all observations that runs can make.
    fn runs(&self, cut: Option<Edge>) -> BTreeSet<u64> {
        let waits = self.waits(cut);
        let mut shown = BTreeSet::new();
        self.extend(&waits, &mut Vec::new(), &mut shown);
        shown
    }

    fn extend(
        &self,
        waits: &BTreeMap<OpId, BTreeSet<OpId>>,
        done: &mut Vec<OpId>,
        shown: &mut BTreeSet<u64>,
    ) {
        if done.len() == self.effects.len() {
            shown.insert(self.show(done));
            return;
        }
        for &op in &self.effects {
            if !done.contains(&op) && waits[&op].iter().all(|other| done.contains(other)) {
                done.push(op);
                self.extend(waits, done, shown);
                done.pop();
            }
        }
    }

    /// Returns the observation of a run.
    fn show(&self, order: &[OpId]) -> u64 {
        let mut values: BTreeMap<ValueId, u64> = BTreeMap::new();
        let mut buffers: BTreeMap<ValueId, u64> = BTreeMap::new();
        let mut printed: Vec<(usize, u64)> = Vec::new();
        for &op in order {
            let data = self.module.op(op);
            let first = data.operands()[0];
            match data.name().as_str() {
                "tfrt.print.i32" => printed.push((op.index(), self.value(first, &values))),
                "tfrt_test.atomic.get.i32" => {
                    values.insert(data.results()[0], buffers.get(&first).copied().unwrap_or(0));
                }
                _ => {
                    let added = self.value(data.operands()[1], &values);
                    let old = buffers.get(&first).copied().unwrap_or(0);
                    buffers.insert(first, hash(&(op.index(), old, added)));
                }
            }
        }
        hash(&(printed, values, buffers))
    }

    fn value(&self, value: ValueId, read: &BTreeMap<ValueId, u64>) -> u64 {
        if let Some(&value) = read.get(&value) {
            return value;
        }
        let op = self.module.defining_op(value).unwrap();
        let operands = self.module.op(op).operands().iter();
        let operands: Vec<u64> = operands.map(|&operand| self.value(operand, read)).collect();
        hash(&(value.index(), operands))
    }
}

fn hash(thing: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    thing.hash(&mut hasher);
    hasher.finish()
}
