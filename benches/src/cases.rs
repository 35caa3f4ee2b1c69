//! The defended cases: each is a program, its arguments, and the result that it must return.
//!
//! | Case | Program | Unit |
//! | --- | --- | --- |
//! | `chain` | 10,000 additions, one after the other | kernel |
//! | `fan` | one, 10,000 that follow it, a tree of 9,999 sums | kernel |
//! | `merge` | one, 10,000 that follow it, one sum of all | kernel |
//! | `wave` | 100 by 100, each after its neighbours above and to the left | kernel |
//! | `tree` | sums of two over 2^14 leaves | kernel |
//! | `random` | 10,000 of one to four predecessors among the 1,000 before | kernel |
//! | `lanes` | 100 chains of 100, one sum of their ends | kernel |
//! | `synchronous` | `chain` in a function marked synchronous | kernel |
//! | `async_chain`, `async_fan` | the same graphs of `tfrt_test.async_add.i32` | kernel |
//! | `empty` | a function that returns its argument | call |
//! | `call` | 1,000 calls of a function of one addition, one after the other | call |
//! | `fib` | the 20th Fibonacci number by `tfrt.call` and `tfrt.if` | kernel |
//! | `while` | 1,000 turns of `tfrt.while` with five kernels | turn |
//! | `repeat` | 1,000 turns of `tfrt.repeat.i32` with one kernel | turn |

use std::fmt::Write as _;

use crate::graph::{Graph, Kernels};

/// A program, its arguments, its answer, and how much work it is.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the case.
    pub name: &'static str,
    /// The unit of work: kernels, calls, or turns of a loop.
    pub unit: &'static str,
    /// The number of units that a call runs.
    pub n_units: usize,
    /// The program; its function is `main`.
    pub text: String,
    /// The arguments of `main`.
    pub arguments: Vec<i32>,
    /// The result of `main`.
    pub answer: i32,
    /// The graph, where the program is one that is ordered while it runs or before.
    pub graph: Option<Graph>,
}

/// The names of all cases.
pub const NAMES: [&str; 15] = [
    "chain",
    "fan",
    "merge",
    "wave",
    "tree",
    "random",
    "lanes",
    "synchronous",
    "async_chain",
    "async_fan",
    "empty",
    "call",
    "fib",
    "while",
    "repeat",
];

/// The goals: the nanoseconds that a unit may cost on one thread, where the plain loop over `chain`
/// takes [`REFERENCE_NS`] for a node: the case, the goal in static order, and that with ready
/// counts.
const GOALS: [(&str, f64, Option<f64>); 18] = [
    ("chain", 4.0, Some(6.0)),
    ("fan", 4.0, Some(8.0)),
    ("merge", 4.0, Some(8.0)),
    ("wave", 4.0, Some(8.0)),
    ("tree", 4.0, Some(6.0)),
    ("random", 8.0, Some(16.0)),
    ("lanes", 4.0, Some(6.0)),
    ("synchronous", 2.0, None),
    ("async_chain", 40.0, None),
    ("async_fan", 40.0, None),
    ("empty", 30.0, None),
    ("fib", 12.0, None),
    ("while", 25.0, None),
    ("repeat", 25.0, None),
    ("available", 2.0, None),
    ("future", 20.0, None),
    ("await", 150.0, None),
    ("task_chain", 10.0, None),
];

/// The nanoseconds for a node of the plain loop on the machine that goals are meant for.
pub const REFERENCE_NS: f64 = 1.4;

/// Returns the goal for a case, if `who` is one of ours by the name that tables have for it.
pub fn goal(case: &str, who: &str) -> Option<f64> {
    let (_, ordered, dynamic) = GOALS.iter().find(|(name, ..)| *name == case)?;
    match who {
        "tfrt, ordered" | "tfrt" => Some(*ordered),
        "tfrt, dynamic" => *dynamic,
        _ => None,
    }
}

/// The value that programs of graphs begin from.
pub const START: i32 = 17;
/// The value that programs of graphs add.
pub const STEP: i32 = 3;

/// Returns the graph called so.
pub fn graph(name: &str) -> Option<Graph> {
    Some(match name {
        "chain" => Graph::chain(10_000),
        "fan" => Graph::fan(10_000),
        "merge" => Graph::merge(10_000),
        "wave" => Graph::wave(100),
        "tree" => Graph::tree(1 << 14),
        "random" => Graph::random(10_000, 1_000),
        "lanes" => Graph::lanes(100, 100),
        _ => return None,
    })
}

impl Case {
    /// Returns the case called so.
    pub fn find(name: &str) -> Option<Case> {
        let name = NAMES.into_iter().find(|known| *known == name)?;
        if let Some(graph) = graph(name) {
            return Some(Case::of_graph(name, graph, &Kernels::PLAIN));
        }
        Some(match name {
            "synchronous" => Case::closed(name, "chain", &Kernels::SYNCHRONOUS),
            "async_chain" => Case::closed(name, "chain", &Kernels::ASYNCHRONOUS),
            "async_fan" => Case::closed(name, "fan", &Kernels::ASYNCHRONOUS),
            "empty" => Case::plain(name, "call", 1, EMPTY, 5, 5),
            "call" => Case::plain(name, "call", 1_000, &calls(1_000), 5, 1_005),
            "fib" => Case::plain(name, "kernel", n_kernels_of_fib(20), FIB, 20, 6_765),
            "while" => Case::plain(name, "turn", 1_000, WHILE, 1_000, 500_500),
            "repeat" => Case::plain(name, "turn", 1_000, REPEAT, 1_000, 2_000),
            _ => unreachable!("each name has a case"),
        })
    }

    /// Returns the case of a graph's program.
    pub fn of_graph(name: &'static str, graph: Graph, kernels: &Kernels) -> Case {
        Case {
            name,
            unit: "kernel",
            n_units: graph.n_nodes(),
            text: graph.text(kernels),
            arguments: vec![START, STEP],
            answer: graph.result(START, STEP),
            graph: Some(graph),
        }
    }

    /// Returns a case with a graph's program that has one order only.
    fn closed(name: &'static str, of: &str, kernels: &Kernels) -> Case {
        let graph = graph(of).expect("it is a graph's name");
        let case = Case::of_graph(name, graph, kernels);
        Case {
            graph: None,
            ..case
        }
    }

    fn plain(
        name: &'static str,
        unit: &'static str,
        n_units: usize,
        text: &str,
        argument: i32,
        answer: i32,
    ) -> Case {
        Case {
            name,
            unit,
            n_units,
            text: text.to_owned(),
            arguments: vec![argument],
            answer,
            graph: None,
        }
    }
}

const EMPTY: &str = "func.func @main(%x: i32) -> i32 {
  tfrt.return %x : i32
}
";

const FIB: &str = "func.func @main(%n: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %small = \"tfrt.lessequal.i32\"(%n, %one) : (i32, i32) -> i1
  %result = tfrt.if %small, %n, %one : (i32, i32) -> i32 {
    tfrt.return %n : i32
  } else {
    %n1 = \"tfrt.minus.i32\"(%n, %one) : (i32, i32) -> i32
    %n2 = \"tfrt.minus.i32\"(%n1, %one) : (i32, i32) -> i32
    %a = tfrt.call @main(%n1) : (i32) -> (i32)
    %b = tfrt.call @main(%n2) : (i32) -> (i32)
    %sum = tfrt.add.i32 %a, %b
    tfrt.return %sum : i32
  }
  tfrt.return %result : i32
}
";

/// Returns the number of kernels of `fib`: three for each number, five more for each that is larger
/// than one.
fn n_kernels_of_fib(n: u32) -> usize {
    if n <= 1 {
        return 3;
    }
    8 + n_kernels_of_fib(n - 1) + n_kernels_of_fib(n - 2)
}

const WHILE: &str = "func.func @main(%n: i32) -> i32 {
  %true = tfrt.constant.i1 true
  %zero = tfrt.constant.i32 0
  %i, %sum = tfrt.while %true @turn(%n, %zero) parallel_iterations(1) : (i32, i32) -> (i32, i32)
  tfrt.return %sum : i32
}
func.func @turn(%i: i32, %sum: i32) -> (i32, i32, i1) {
  %one = tfrt.constant.i32 1
  %zero = \"tfrt.minus.i32\"(%one, %one) : (i32, i32) -> i32
  %next_sum = tfrt.add.i32 %sum, %i
  %next = \"tfrt.minus.i32\"(%i, %one) : (i32, i32) -> i32
  %more = \"tfrt.lessequal.i32\"(%one, %next) : (i32, i32) -> i1
  tfrt.return %next, %next_sum, %more : i32, i32, i1
}
";

const REPEAT: &str = "func.func @main(%n: i32) -> i32 {
  %one = tfrt.constant.i32 1
  %sum, %step = tfrt.repeat.i32 %n, %n, %one : i32, i32 {
    %next = tfrt.add.i32 %n, %one
    tfrt.return %next, %one : i32, i32
  }
  tfrt.return %sum : i32
}
";

fn calls(n_calls: usize) -> String {
    let mut text = String::from("func.func @main(%v0: i32) -> i32 {\n");
    for index in 1..=n_calls {
        let before = index - 1;
        writeln!(
            text,
            "  %v{index} = tfrt.call @next(%v{before}) : (i32) -> (i32)"
        )
        .expect("a String takes all text");
    }
    write!(
        text,
        "  tfrt.return %v{n_calls} : i32\n}}\nfunc.func @next(%x: i32) -> i32 {{\n  \
         %one = tfrt.constant.i32 1\n  %y = tfrt.add.i32 %x, %one\n  tfrt.return %y : i32\n}}\n"
    )
    .expect("a String takes all text");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ours::{Order, Ours, Threads, bytes_of};

    #[test]
    fn every_case_answers_right_in_both_orders_on_one_thread_and_on_two() {
        let hosts = [
            (Order::Static, Threads::Caller),
            (Order::Static, Threads::CallerAnd(1)),
            (Order::Dynamic, Threads::Caller),
            (Order::Dynamic, Threads::Workers(2)),
        ];
        for name in NAMES {
            let case = Case::find(name).expect("each name has a case");
            assert_eq!(case.name, name);
            let bytes = bytes_of(&case.text);
            for (order, threads) in hosts {
                let ours = Ours::open(bytes.clone(), order, threads);
                let answer = ours.call(&case.arguments).ok();
                assert_eq!(answer, Some(case.answer), "{name}, {order}, {threads:?}");
            }
        }
    }
}
