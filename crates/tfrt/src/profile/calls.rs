//! The tree of calls: the calls of functions that runs of kernels belong to, as a tree, and what they add up to by
//! kernel, by line and by scope.
//!
//! # Finding calls
//!
//! A recording tells calls of a function apart only while they are in progress. But a kernel runs
//! once in a call: where it runs again under the same number, another call has begun. A call was made
//! by the last kernel before it that calls its function, if there is one on its thread. That is so
//! wherever a callee runs at once, which is the rule; where it is handed to another thread, and
//! other callers run meanwhile, it is a guess.
//!
//! # Scopes
//!
//! A scope is all calls of a function that were made by the same kernel in the same scope: turns of
//! a loop are one. A function that calls itself, at whatever distance, is one scope, too. Where there
//! would be too many, the calls of a function from wherever share one.

use std::collections::{BTreeMap, HashMap};

use tfrt_host::record::FunctionId;

use super::graphs::Graphs;
use super::runs::Run;

/// The number of rows of scopes that are kept, one for each kernel of a scope.
const MAX_ROWS: usize = 200_000;
/// The deepest nesting of scopes.
const MAX_DEPTH: usize = 64;
/// The number of functions called by one kernel that are followed.
const MAX_CALLEES: usize = 256;

/// Totals of runs of kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub n_runs: u64,
    /// The time of the kernels themselves.
    pub own_ns: u64,
    pub longest_ns: u64,
    /// The part of `own_ns` that lies on a critical path.
    pub critical_ns: u64,
}

impl Totals {
    fn add(&mut self, run: &Run) {
        let took_ns = run.took_ns();
        self.n_runs += 1;
        self.own_ns += took_ns;
        self.longest_ns = self.longest_ns.max(took_ns);
        if run.is_critical {
            self.critical_ns += took_ns;
        }
    }
}

/// A line of a source, or another place where kernels stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineTime {
    pub own: Totals,
    /// The time of its kernels and of all that ran in the calls that they made.
    pub total_ns: u64,
}

/// Calls of a function from one place.
#[derive(Debug)]
pub struct Scope {
    /// An index into [`Calls::functions`].
    pub function: usize,
    /// The scope and the kernel in it that made the calls; `None` if nobody knows, or for several.
    pub parent: Option<(usize, u32)>,
    pub n_calls: u64,
    /// The totals of each kernel.
    pub rows: BTreeMap<u32, Totals>,
}

/// Totals of runs of kernels by function, kernel, line and scope.
#[derive(Debug)]
pub struct Calls {
    /// The functions that ran.
    pub functions: Vec<FunctionId>,
    /// The totals of each kernel of each function.
    pub kernels: Vec<BTreeMap<u32, Totals>>,
    /// The times of lines, by number.
    pub lines: Vec<LineTime>,
    /// The scopes; each comes behind its parent.
    pub scopes: Vec<Scope>,
    /// Whether calls share scopes, since there would be too many.
    pub scopes_are_shared: bool,
}

impl Calls {
    /// Adds up `runs`. Calls from outside began at `begins_ns`, in their order; `line_of` numbers the
    /// lines of kernels from 0.
    pub fn new(
        runs: &[Run],
        graphs: &Graphs,
        begins_ns: &[u64],
        line_of: impl Fn(FunctionId, u32) -> Option<usize>,
    ) -> Calls {
        let mut functions: Vec<FunctionId> = runs.iter().map(|run| run.function).collect();
        functions.sort_unstable();
        functions.dedup();
        let mut kernels = vec![BTreeMap::<u32, Totals>::new(); functions.len()];
        for run in runs {
            let function = functions.partition_point(|function| *function < run.function);
            kernels[function].entry(run.kernel).or_default().add(run);
        }
        let tree = CallTree::new(runs, graphs, begins_ns);
        let line_of_run = |run: usize| line_of(runs[run].function, runs[run].kernel);
        let mut scopes = Scopes::new(graphs);
        scopes.fill(runs, &tree, &functions);
        Calls {
            lines: line_times(runs, &tree, line_of_run),
            functions,
            kernels,
            scopes: scopes.all,
            scopes_are_shared: scopes.are_shared,
        }
    }
}

/// The calls of functions, with the run that made each.
pub struct CallTree {
    /// The calls in the order of their first runs, so that callers come first.
    pub calls: Vec<Call>,
    /// The call of each run.
    pub of_run: Vec<usize>,
}

/// A call of a function.
pub struct Call {
    function: FunctionId,
    pub first_run: usize,
    /// The run of the kernel that made it.
    pub maker: Option<usize>,
}

impl CallTree {
    /// Finds the calls. Those from outside began at `begins_ns`, in their order, if that is known.
    pub fn new(runs: &[Run], graphs: &Graphs, begins_ns: &[u64]) -> CallTree {
        let mut tree = CallTree {
            calls: Vec::new(),
            of_run: Vec::with_capacity(runs.len()),
        };
        let era = |at: usize| begins_ns.partition_point(|begin| *begin <= runs[at].begin_ns);
        let mut in_progress: HashMap<(FunctionId, u64), usize> = HashMap::new();
        let mut last_ran_in: HashMap<(FunctionId, u32, u64), usize> = HashMap::new();
        // The last kernel that calls a function, on each thread and on any.
        let mut on_thread: HashMap<(usize, FunctionId), usize> = HashMap::new();
        let mut anywhere: HashMap<FunctionId, usize> = HashMap::new();
        for (at, run) in runs.iter().enumerate() {
            let last = last_ran_in.entry((run.function, run.kernel, run.call));
            let known = in_progress.get(&(run.function, run.call)).copied();
            let last_call = match &last {
                std::collections::hash_map::Entry::Occupied(last) => Some(*last.get()),
                std::collections::hash_map::Entry::Vacant(_) => None,
            };
            let call = match known {
                Some(call) if last_call != Some(call) => call,
                _ => {
                    let maker = on_thread
                        .get(&(run.thread, run.function))
                        .or_else(|| anywhere.get(&run.function));
                    let maker = maker.copied().filter(|maker| era(*maker) == era(at));
                    tree.calls.push(Call {
                        function: run.function,
                        first_run: at,
                        maker,
                    });
                    tree.calls.len() - 1
                }
            };
            last.insert_entry(call);
            in_progress.insert((run.function, run.call), call);
            tree.of_run.push(call);
            let graph = graphs.of(run.function);
            let callees = graph.map_or(&[][..], |graph| graph.callees(run.kernel));
            for callee in callees.iter().take(MAX_CALLEES) {
                on_thread.insert((run.thread, *callee), at);
                anywhere.insert(*callee, at);
            }
        }
        tree
    }

    /// Returns the parent of a call, and the run in it that made the call.
    fn parent(&self, call: usize) -> Option<(usize, usize)> {
        let maker = self.calls[call].maker?;
        Some((self.of_run[maker], maker))
    }
}

/// Lists of numbers, one for each number from 0, in one allocation.
pub struct Lists {
    starts: Vec<usize>,
    members: Vec<usize>,
}

impl Lists {
    /// Puts each of `0..owners.len()` into the list of its owner, if it has one.
    pub fn new(n_lists: usize, owners: impl Iterator<Item = Option<usize>> + Clone) -> Lists {
        let mut starts = vec![0; n_lists + 1];
        for owner in owners.clone().flatten() {
            starts[owner + 1] += 1;
        }
        for list in 0..n_lists {
            starts[list + 1] += starts[list];
        }
        let (mut next, mut members) = (starts.clone(), vec![0; starts[n_lists]]);
        for (member, owner) in owners.enumerate() {
            if let Some(owner) = owner {
                members[next[owner]] = member;
                next[owner] += 1;
            }
        }
        Lists { starts, members }
    }

    pub fn of(&self, list: usize) -> &[usize] {
        &self.members[self.starts[list]..self.starts[list + 1]]
    }
}

/// Computes the times of lines. In a total, a line that calls itself counts what it makes others do once, and what it
/// does itself not again.
fn line_times(
    runs: &[Run],
    tree: &CallTree,
    line_of_run: impl Fn(usize) -> Option<usize>,
) -> Vec<LineTime> {
    let n_lines = (0..runs.len()).filter_map(&line_of_run).max();
    let mut lines = vec![LineTime::default(); n_lines.map_or(0, |last| last + 1)];
    let n_calls = tree.calls.len();
    let runs_of = Lists::new(n_calls, tree.of_run.iter().map(|call| Some(*call)));
    let parents = (0..n_calls).map(|call| tree.parent(call).map(|(parent, _)| parent));
    let children_of = Lists::new(n_calls, parents);
    // All time so far, and what of it was a line's own, when the line that is counted began to call.
    let mut all_ns = 0;
    let mut calling: Vec<Option<(u64, u64)>> = vec![None; lines.len()];
    enum Visit {
        Begin(usize),
        /// A call has ended which this line has made, and no other call around it.
        End(usize),
    }
    let roots = (0..n_calls).filter(|call| tree.parent(*call).is_none());
    let mut visits: Vec<Visit> = roots.map(Visit::Begin).collect();
    while let Some(visit) = visits.pop() {
        let call = match visit {
            Visit::Begin(call) => call,
            Visit::End(line) => {
                if let Some((all_before_ns, own_before_ns)) = calling[line].take() {
                    let own_ns = lines[line].own.own_ns - own_before_ns;
                    lines[line].total_ns += all_ns - all_before_ns - own_ns;
                }
                continue;
            }
        };
        let maker = tree.parent(call).and_then(|(_, run)| line_of_run(run));
        if let Some(line) = maker.filter(|line| calling[*line].is_none()) {
            calling[line] = Some((all_ns, lines[line].own.own_ns));
            visits.push(Visit::End(line));
        }
        for run in runs_of.of(call) {
            all_ns += runs[*run].took_ns();
            if let Some(line) = line_of_run(*run) {
                lines[line].own.add(&runs[*run]);
            }
        }
        visits.extend(children_of.of(call).iter().copied().map(Visit::Begin));
    }
    for line in &mut lines {
        line.total_ns += line.own.own_ns;
    }
    lines
}

/// The scopes under construction.
struct Scopes<'g> {
    all: Vec<Scope>,
    graphs: &'g Graphs,
    known: HashMap<(Option<(usize, u32)>, FunctionId), usize>,
    depths: Vec<usize>,
    n_rows_left: usize,
    are_shared: bool,
}

impl<'g> Scopes<'g> {
    fn new(graphs: &'g Graphs) -> Self {
        Scopes {
            all: Vec::new(),
            graphs,
            known: HashMap::new(),
            depths: Vec::new(),
            n_rows_left: MAX_ROWS,
            are_shared: false,
        }
    }

    fn fill(&mut self, runs: &[Run], tree: &CallTree, functions: &[FunctionId]) {
        let number = |id: FunctionId| functions.partition_point(|function| *function < id);
        let mut scope_of_call = Vec::with_capacity(tree.calls.len());
        for (call, made) in tree.calls.iter().enumerate() {
            let parent = tree.parent(call);
            let parent = parent.map(|(parent, run)| (scope_of_call[parent], runs[run].kernel));
            let scope = self.find(made.function, number(made.function), parent);
            self.all[scope].n_calls += 1;
            scope_of_call.push(scope);
        }
        for (run, call) in runs.iter().zip(&tree.of_run) {
            let rows = &mut self.all[scope_of_call[*call]].rows;
            rows.entry(run.kernel).or_default().add(run);
        }
    }

    fn find(&mut self, function: FunctionId, number: usize, parent: Option<(usize, u32)>) -> usize {
        if let Some(known) = self.known.get(&(parent, function)) {
            return *known;
        }
        let mut around = parent.map(|(scope, _)| scope);
        while let Some(scope) = around {
            if self.all[scope].function == number {
                self.known.insert((parent, function), scope);
                return scope;
            }
            around = self.all[scope].parent.map(|(scope, _)| scope);
        }
        let depth = parent.map_or(0, |(scope, _)| self.depths[scope] + 1);
        let n_rows = self
            .graphs
            .of(function)
            .map_or(0, |graph| graph.n_kernels());
        if parent.is_some() && (depth >= MAX_DEPTH || n_rows > self.n_rows_left) {
            self.are_shared = true;
            let shared = self.find(function, number, None);
            self.known.insert((parent, function), shared);
            return shared;
        }
        self.n_rows_left = self.n_rows_left.saturating_sub(n_rows);
        self.all.push(Scope {
            function: number,
            parent,
            n_calls: 0,
            rows: BTreeMap::new(),
        });
        self.depths.push(depth);
        self.known.insert((parent, function), self.all.len() - 1);
        self.all.len() - 1
    }
}
