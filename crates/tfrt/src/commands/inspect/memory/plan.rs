//! A plan of one arena for all tensors of a call, for kernels that run in the order of the program.
//!
//! Values are placed by size, the largest first: each where it leaves the least room between those that are there
//! at the same time. That is what a compiler could do that knows all extents. The runtime does without: tensors
//! are counted, and given back by whoever uses them last, so that what two values share is never in use twice,
//! in whatever order kernels run on several threads, and buffers that are free are taken again by later ones.
//! So the plan is the mark that a call's memory is measured by: the least that can be is `most_bytes`.

use serde::Serialize;
use tfrt::ops::Traits;

use super::observe::{CallTensor, CallTensors};

/// The alignment of tensors in an arena.
const ALIGNMENT: u64 = 64;

/// Returns whether a kernel could write its result over an operand that nobody uses later.
fn is_in_place(kernel: &str) -> bool {
    let row = kernel
        .strip_prefix("cpu.graph.")
        .or(kernel.strip_prefix("cpu."));
    let row = row.and_then(tfrt::ops::find);
    kernel == "cpu.fused.elementwise" || row.is_some_and(|row| row.is(Traits::IN_PLACE))
}

/// The layout of an arena: the offset and the lifetime of each tensor.
#[derive(Debug, Serialize)]
pub(super) struct MemoryPlan {
    operations: usize,
    /// The bytes of all values together.
    pub(super) total_bytes: u64,
    /// The most bytes that are alive at once in the order of the program: no plan takes less.
    pub(super) most_bytes: u64,
    /// The operation at which most bytes are alive.
    most_at: usize,
    /// The bytes of the arena.
    pub(super) arena_bytes: u64,
    values: Vec<Value>,
}

#[derive(Debug, Serialize)]
struct Value {
    operation: String,
    place: String,
    #[serde(rename = "type")]
    kind: String,
    bytes: u64,
    /// The operation that makes it, and the last that uses it, those of aliases included.
    first: usize,
    last: usize,
    /// The offset in the arena; none of an alias, or of a tensor without elements.
    offset: Option<u64>,
    /// The value, or the argument, whose memory it lies in.
    alias_of: Option<Owner>,
    /// The operand that the value could be written over.
    in_place_of: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Owner {
    Value(usize),
    Argument,
}

impl MemoryPlan {
    pub(super) fn new(observed: &CallTensors) -> MemoryPlan {
        let mut values: Vec<Value> = observed.tensors.iter().map(Value::new).collect();
        find_aliases(observed, &mut values);
        find_in_place(observed, &mut values);
        let is_own = |value: &Value| value.alias_of.is_none() && value.bytes > 0;
        let own: Vec<usize> = (0..values.len())
            .filter(|at| is_own(&values[*at]))
            .collect();
        let arena_bytes = place_all(&mut values, &own);
        let live = |at: usize| {
            let there = own.iter().map(|index| &values[*index]);
            let there = there.filter(|value| (value.first..=value.last).contains(&at));
            there.map(|value| value.bytes).sum::<u64>()
        };
        let most = (0..=observed.n_operations).map(|at| (live(at), at));
        let (most_bytes, most_at) = most
            .max_by_key(|(bytes, at)| (*bytes, std::cmp::Reverse(*at)))
            .unwrap_or_default();
        MemoryPlan {
            operations: observed.n_operations,
            total_bytes: own.iter().map(|index| values[*index].bytes).sum(),
            most_bytes,
            most_at,
            arena_bytes,
            values,
        }
    }

    /// Writes the plan as text.
    pub(super) fn write(&self, text: &mut String) -> std::fmt::Result {
        use std::fmt::Write as _;

        use tfrt::ir::visible;

        use super::super::weights::size;

        let aliases = self.values.iter().filter(|value| value.alias_of.is_some());
        let in_place = self
            .values
            .iter()
            .filter(|value| value.in_place_of.is_some());
        let place_of = |at: usize| {
            let made = self.values.iter().find(|value| value.first == at);
            made.map_or("the end", |value| &value.place)
        };
        writeln!(
            text,
            "\n{} operations make {} values of {}; {} lie in others, {} could be written over what they are made of",
            self.operations,
            self.values.len(),
            size(self.total_bytes),
            aliases.count(),
            in_place.count()
        )?;
        let most_at = visible::name(place_of(self.most_at));
        writeln!(
            text,
            "  {:<12} {:>12} at {most_at}",
            "most at once",
            size(self.most_bytes)
        )?;
        writeln!(
            text,
            "  {:<12} {:>12}",
            "as an arena",
            size(self.arena_bytes)
        )?;
        writeln!(
            text,
            "\n  {:>10} {:>12}  {:<11} value",
            "bytes", "offset", "from, to"
        )?;
        let mut order: Vec<&Value> = self.values.iter().collect();
        order.sort_by_key(|value| std::cmp::Reverse(value.bytes));
        for value in order.iter().take(MOST_LINES) {
            let offset = match (value.offset, value.alias_of) {
                (Some(offset), _) => offset.to_string(),
                (None, Some(Owner::Argument)) => "argument's".to_owned(),
                (None, Some(Owner::Value(_))) => "another's".to_owned(),
                (None, None) => "none".to_owned(),
            };
            let life = format!("{}, {}", value.first, value.last);
            let mark = if value.most_at(self.most_at) {
                "*"
            } else {
                " "
            };
            writeln!(
                text,
                "{mark} {:>10} {offset:>12}  {life:<11} {} {}: {}",
                size(value.bytes),
                visible::name(&value.operation),
                visible::name(&value.place),
                value.kind
            )?;
        }
        if order.len() > MOST_LINES {
            writeln!(text, "  and {} more", order.len() - MOST_LINES)?;
        }
        writeln!(text, "  * is there when the most is")
    }
}

/// The number of values that are shown as text.
const MOST_LINES: usize = 30;

impl Value {
    fn new(made: &CallTensor) -> Value {
        Value {
            operation: made.operation.clone(),
            place: made.place.clone(),
            kind: made.kind.clone(),
            bytes: made.memory.len() as u64,
            first: made.life[0],
            last: made.life[1],
            offset: None,
            alias_of: None,
            in_place_of: None,
        }
    }

    fn most_at(&self, at: usize) -> bool {
        self.alias_of.is_none() && (self.first..=self.last).contains(&at)
    }

    fn meets(&self, other: &Value) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Finds values in the memory of others, which then live as long as these.
fn find_aliases(observed: &CallTensors, values: &mut [Value]) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    // Of values at one address the longest is first, then the one that was made first.
    let memory = |at: usize| &observed.tensors[at].memory;
    order.sort_by_key(|at| (memory(*at).start, std::cmp::Reverse(memory(*at).end), *at));
    let mut arguments: Vec<_> = observed
        .arguments
        .iter()
        .filter(|range| !range.is_empty())
        .collect();
    arguments.sort_by_key(|range| range.start);
    let mut owner: Option<usize> = None;
    for at in order {
        let range = memory(at);
        if range.is_empty() {
            continue;
        }
        let before = arguments.partition_point(|argument| argument.start <= range.start);
        if before
            .checked_sub(1)
            .is_some_and(|index| range.end <= arguments[index].end)
        {
            values[at].alias_of = Some(Owner::Argument);
            continue;
        }
        match owner.filter(|owner| range.end <= memory(*owner).end) {
            Some(owner) => {
                values[at].alias_of = Some(Owner::Value(owner));
                values[owner].first = values[owner].first.min(values[at].first);
                values[owner].last = values[owner].last.max(values[at].last);
            }
            None => owner = Some(at),
        }
    }
}

/// Finds values that could be written over one of their operands.
fn find_in_place(observed: &CallTensors, values: &mut [Value]) {
    for at in 0..values.len() {
        let made = &observed.tensors[at];
        if !is_in_place(&made.operation) || values[at].alias_of.is_some() {
            continue;
        }
        let fits = |operand: &&usize| {
            let operand = &values[**operand];
            let dies = operand.last == made.life[0] && operand.alias_of.is_none();
            dies && operand.bytes == values[at].bytes && operand.bytes > 0
        };
        values[at].in_place_of = made.operands.iter().find(fits).copied();
    }
}

/// Gives each of some values an offset; returns the size of the arena.
fn place_all(values: &mut [Value], own: &[usize]) -> u64 {
    let mut order = own.to_vec();
    order.sort_by_key(|at| (std::cmp::Reverse(values[*at].bytes), values[*at].first, *at));
    let mut placed: Vec<usize> = Vec::new();
    let mut arena_bytes = 0;
    for at in order {
        let value = &values[at];
        let mut there: Vec<[u64; 2]> = Vec::new();
        for other in placed.iter().map(|other| &values[*other]) {
            if let (true, Some(offset)) = (value.meets(other), other.offset) {
                there.push([offset, offset + other.bytes]);
            }
        }
        there.sort_unstable();
        let offset = best_gap(&there, value.bytes);
        arena_bytes = arena_bytes.max(offset + value.bytes);
        values[at].offset = Some(offset);
        placed.push(at);
    }
    arena_bytes
}

/// Returns the offset at which so many bytes leave the least room between ranges in order, or behind them all.
fn best_gap(there: &[[u64; 2]], bytes: u64) -> u64 {
    let mut free = 0_u64;
    let mut best: Option<(u64, u64)> = None;
    for [start, end] in there {
        if let Some(room) = start.checked_sub(free)
            && room >= bytes
            && best.is_none_or(|(least, _)| room < least)
        {
            best = Some((room, free));
        }
        free = free.max(end.next_multiple_of(ALIGNMENT));
    }
    best.map_or(free, |(_, offset)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(operation: &str, memory: std::ops::Range<usize>, life: [usize; 2]) -> CallTensor {
        CallTensor {
            operation: operation.to_owned(),
            place: String::new(),
            kind: String::new(),
            memory,
            life,
            operands: Vec::new(),
        }
    }

    fn plan(made: Vec<CallTensor>) -> MemoryPlan {
        MemoryPlan::new(&CallTensors {
            n_operations: 4,
            tensors: made,
            arguments: std::iter::once(0..50).collect(),
        })
    }

    #[test]
    fn values_that_are_not_there_together_lie_in_one_place() {
        let plan = plan(vec![
            made("a", 1000..1100, [0, 1]),
            made("b", 2000..2050, [1, 2]),
            made("c", 3000..3100, [2, 3]),
        ]);
        let offsets: Vec<_> = plan.values.iter().map(|value| value.offset).collect();
        assert_eq!(offsets, [Some(0), Some(128), Some(0)]);
        assert_eq!(
            (plan.most_bytes, plan.arena_bytes, plan.total_bytes),
            (150, 178, 250)
        );
    }

    #[test]
    fn values_in_the_memory_of_others_take_none() {
        let plan = plan(vec![
            made("a", 1000..1100, [0, 1]),
            made("b", 1000..1100, [1, 3]),
            made("c", 1050..1100, [1, 2]),
            made("d", 10..20, [1, 2]),
            made("e", 2000..2100, [2, 3]),
        ]);
        let aliases: Vec<_> = plan.values.iter().map(|value| value.alias_of).collect();
        let (of_first, argument) = (Some(Owner::Value(0)), Some(Owner::Argument));
        assert_eq!(aliases, [None, of_first, of_first, argument, None]);
        assert_eq!(plan.values[0].last, 3);
        assert_eq!((plan.most_bytes, plan.arena_bytes), (200, 228));
    }

    #[test]
    fn elementwise_functions_may_write_over_what_nobody_else_uses() {
        let over = |last| {
            let mut values = vec![
                made("a", 1000..1100, [0, last]),
                made("cpu.graph.relu", 2000..2100, [1, 2]),
            ];
            values[1].operands = vec![0];
            plan(values).values[1].in_place_of
        };
        assert_eq!((over(1), over(2)), (Some(0), None));
    }
}
