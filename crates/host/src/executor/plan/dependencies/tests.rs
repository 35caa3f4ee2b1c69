//! Tests of wirings: one that is no graph is refused, and kernels come in the order of one thread.

mod random;

use std::collections::BTreeSet;

use super::super::dataflow::DataflowPlan;
use super::super::inline::InlinePlan;
use super::*;

/// A kernel of a wiring that is made by hand.
#[derive(Clone, Debug, Default)]
struct Kernel {
    operands: Vec<u32>,
    results: Vec<u32>,
    attributes: Vec<u32>,
    functions: Vec<u32>,
    stream: u32,
    is_marked: bool,
    /// By result.
    users: Vec<Vec<u32>>,
}

/// A wiring that says what it is told to, whether it is a graph or not.
#[derive(Clone, Debug, Default)]
struct Graph {
    n_arguments: usize,
    n_registers: usize,
    kernels: Vec<Kernel>,
    argument_users: Vec<Vec<u32>>,
    entry_users: Vec<u32>,
    results: Vec<u32>,
    root_stream: u32,
    /// Which kernels can do with a handle to which register.
    handles: BTreeSet<(u32, u32)>,
    is_textual: bool,
    is_unseen: bool,
}

impl Dependencies for Graph {
    fn n_arguments(&self) -> usize {
        self.n_arguments
    }

    fn n_registers(&self) -> usize {
        self.n_registers
    }

    fn n_kernels(&self) -> usize {
        self.kernels.len()
    }

    fn kernel(&self, kernel: u32) -> KernelDependencies<'_> {
        let wired = &self.kernels[kernel as usize];
        KernelDependencies {
            entrance: 2 * kernel + 100,
            operands: &wired.operands,
            results: &wired.results,
            attributes: &wired.attributes,
            functions: &wired.functions,
            is_marked: wired.is_marked,
        }
    }

    fn stream(&self, kernel: u32) -> u32 {
        self.kernels[kernel as usize].stream
    }

    fn root_stream(&self) -> u32 {
        self.root_stream
    }

    fn is_unseen(&self) -> bool {
        self.is_unseen
    }

    fn takes_handle(&self, kernel: u32, register: u32) -> bool {
        self.handles.contains(&(kernel, register))
    }

    fn has_early_users(&self) -> bool {
        !self.handles.is_empty()
    }

    fn users(&self, kernel: u32, result: usize) -> &[u32] {
        &self.kernels[kernel as usize].users[result]
    }

    fn argument_users(&self, argument: usize) -> &[u32] {
        &self.argument_users[argument]
    }

    fn entry_users(&self) -> &[u32] {
        &self.entry_users
    }

    fn result_registers(&self) -> &[u32] {
        &self.results
    }

    fn is_textual(&self) -> bool {
        self.is_textual
    }
}

impl Graph {
    /// The kernels that read a register, once for each operand, as users are numbered.
    fn readers(&self, register: u32) -> Vec<u32> {
        let numbered = (1..).zip(&self.kernels);
        let reads = |(number, kernel): (u32, &Kernel)| {
            let uses = kernel.operands.iter().filter(|read| **read == register);
            vec![number; uses.count()]
        };
        numbered.flat_map(reads).collect()
    }

    /// Fills in who reads what.
    fn find_users(&mut self) {
        for index in 0..self.kernels.len() {
            let results = self.kernels[index].results.iter();
            self.kernels[index].users = results.map(|register| self.readers(*register)).collect();
        }
        let arguments = 0..self.n_arguments as u32;
        self.argument_users = arguments.map(|argument| self.readers(argument)).collect();
        let numbered = (1..).zip(&self.kernels);
        let without_operands = numbered.filter(|(_, kernel)| kernel.operands.is_empty());
        self.entry_users = without_operands.map(|(number, _)| number).collect();
    }
}

/// A graph that is one.
fn plain() -> Graph {
    let kernel = |operands: &[u32], results: &[u32]| Kernel {
        operands: operands.to_vec(),
        results: results.to_vec(),
        ..Kernel::default()
    };
    let mut graph = Graph {
        n_arguments: 2,
        n_registers: 5,
        kernels: vec![
            kernel(&[0, 1], &[2]),
            kernel(&[2, 2, 0], &[3]),
            kernel(&[], &[4]),
        ],
        results: vec![3, 0],
        ..Graph::default()
    };
    graph.find_users();
    graph
}

type Change = fn(&mut Graph);

#[test]
fn wirings_that_are_no_graphs_have_no_shape() {
    let the_entry = "the entry does not start the kernels without operands";
    let users_of_2 = "the users of register 2 are not its readers";
    let cases: [(&str, Change); 20] = [
        ("register 9 does not exist", |g| g.kernels[0].results[0] = 9),
        ("register 5 does not exist", |g| g.kernels[0].results[0] = 5),
        ("register 2 is defined twice", |g| {
            g.kernels[1].results[0] = 2
        }),
        ("register 1 is defined twice", |g| {
            g.kernels[1].results[0] = 1
        }),
        ("nothing defines register 5", |g| g.n_registers = 6),
        ("register 5 does not exist", |g| g.n_arguments = 6),
        ("register 5 does not exist", |g| {
            g.kernels[0].operands[0] = 5
        }),
        ("register 5 does not exist", |g| g.results[0] = 5),
        (users_of_2, |g| g.kernels[0].users[0] = vec![2]),
        (users_of_2, |g| g.kernels[0].users[0] = vec![2, 2, 2]),
        (users_of_2, |g| g.kernels[0].users[0] = vec![2, 3]),
        (users_of_2, |g| g.kernels[0].users[0] = vec![2, 0]),
        (users_of_2, |g| g.kernels[0].users[0] = vec![2, 4]),
        (users_of_2, |g| g.kernels[0].users[0] = vec![3, 3]),
        ("the users of register 1 are not its readers", |g| {
            g.argument_users[1].clear();
        }),
        ("the users of register 4 are not its readers", |g| {
            g.kernels[2].users[0].push(1);
        }),
        (the_entry, |g| g.entry_users.clear()),
        (the_entry, |g| g.entry_users = vec![2]),
        (the_entry, |g| g.entry_users.push(3)),
        (the_entry, |g| g.entry_users = vec![0]),
    ];
    assert!(DataflowPlan::new(&plain()).is_ok());
    for (message, change) in cases {
        let mut graph = plain();
        change(&mut graph);
        assert_eq!(DataflowPlan::new(&graph).unwrap_err().to_string(), message);
    }
}

#[test]
fn users_may_come_in_any_order() {
    let mut graph = plain();
    graph.argument_users[0].reverse();
    let shape = DataflowPlan::new(&graph).unwrap();
    let (_, users) = shape.definition(0);
    let in_file: Vec<u32> = users
        .all()
        .map(|kernel| shape.number_in_file(kernel))
        .collect();
    assert_eq!(in_file, [1, 0]);
}

#[test]
fn wirings_that_are_no_graphs_have_no_sequence() {
    let cases: [(&str, Change); 8] = [
        ("register 5 does not exist", |g| g.kernels[0].results[0] = 5),
        ("register 5 does not exist", |g| {
            g.kernels[0].operands[0] = 5
        }),
        ("register 5 does not exist", |g| g.results[0] = 5),
        ("register 2 is defined twice", |g| {
            g.kernels[1].results[0] = 2
        }),
        ("register 1 is defined twice", |g| {
            g.kernels[0].results[0] = 1
        }),
        ("register 3 is read too early", |g| {
            g.kernels[0].operands[0] = 3
        }),
        ("register 3 is read too early", |g| {
            g.kernels[1].results.clear()
        }),
        ("kernel 1 can't wait for less", |g| {
            g.kernels[1].is_marked = true
        }),
    ];
    let textual = || Graph {
        is_textual: true,
        ..plain()
    };
    assert!(InlinePlan::new(&textual()).unwrap().is_some());
    for (message, change) in cases {
        let mut graph = textual();
        change(&mut graph);
        assert_eq!(InlinePlan::new(&graph).unwrap_err().to_string(), message);
    }
}

#[test]
fn uses_are_counted_as_far_as_there_is_room() {
    let flags = 0b101 << 29;
    let mut references = flags | (MAX_COUNT as u32 - 1);
    assert_eq!(count(&mut references, 7), Ok(()));
    assert_eq!(references, flags | MAX_COUNT as u32);
    let full = count(&mut references, 7).unwrap_err();
    assert_eq!(full.to_string(), "register 7 has too many uses");
    assert_eq!(MAX_COUNT, 0x1fff_ffff);
}

#[test]
fn a_kernel_has_so_many_attributes_and_functions_and_no_more() {
    const MOST: usize = 0xffff;
    for (n_attributes, n_functions, fits) in [
        (MOST, MOST, true),
        (MOST + 1, 0, false),
        (0, MOST + 1, false),
        (0, 3 * MOST, false),
    ] {
        let mut graph = plain();
        graph.is_textual = true;
        graph.kernels[1].attributes = vec![7; n_attributes];
        graph.kernels[1].functions = vec![9; n_functions];
        if fits {
            let shape = DataflowPlan::new(&graph).unwrap();
            let record = shape.record(1);
            assert_eq!(record.attributes().len(), n_attributes);
            assert_eq!(record.functions().len(), n_functions);
            assert!(record.attributes().iter().all(|attribute| *attribute == 7));
            assert!(record.functions().iter().all(|function| *function == 9));
        } else {
            assert_eq!(DataflowPlan::new(&graph).unwrap_err(), too_large());
        }
        assert_eq!(InlinePlan::new(&graph).is_ok(), fits);
    }
}

/// A kernel without operands for each of these streams.
fn side_by_side(streams: &[u32], results: &[u32]) -> Graph {
    let kernels = (0..).zip(streams).map(|(register, stream)| Kernel {
        results: vec![register],
        stream: *stream,
        ..Kernel::default()
    });
    let mut graph = Graph {
        n_registers: streams.len(),
        kernels: kernels.collect(),
        results: results.to_vec(),
        ..Graph::default()
    };
    graph.find_users();
    graph
}

fn order_of(graph: &Graph) -> (Vec<u32>, u32) {
    let sequence = InlinePlan::new(graph).unwrap().unwrap();
    let kernels = 0..sequence.n_kernels() as u32;
    let order = kernels.map(|kernel| sequence.number_in_file(kernel));
    (order.collect(), sequence.n_prompt())
}

#[test]
fn kernels_run_by_streams_the_last_that_was_ready_first() {
    // What stands in the root stream runs at once, from the last on; then a task for each other stream.
    let streams = [2, 0, 1, 0, 2, 1];
    let order = vec![3, 1, 5, 2, 4, 0];
    for (results, n_prompt) in [
        (&[][..], 2),
        (&[1], 2),
        (&[3, 1], 2),
        (&[5], 4),
        (&[2, 3], 4),
        (&[4], 6),
        (&[0, 1], 6),
    ] {
        let graph = side_by_side(&streams, results);
        assert_eq!(order_of(&graph), (order.clone(), n_prompt));
    }
    // Nothing stands in the root stream: the first that is ready says which takes its place.
    let graph = side_by_side(&[2, 1, 2], &[]);
    assert_eq!(order_of(&graph), (vec![2, 0, 1], 2));
    // With one stream all run at once.
    let graph = side_by_side(&[0, 0, 0], &[]);
    assert_eq!(order_of(&graph), (vec![2, 1, 0], 3));
    // So they do where nobody can tell.
    let mut graph = side_by_side(&streams, &[]);
    graph.is_unseen = true;
    assert_eq!(order_of(&graph), (vec![5, 4, 3, 2, 1, 0], 6));
}

#[test]
fn those_that_can_do_with_a_handle_are_ready_before_the_others() {
    let reader = Kernel {
        operands: vec![0],
        ..Kernel::default()
    };
    let mut graph = Graph {
        n_arguments: 1,
        n_registers: 1,
        kernels: vec![reader; 3],
        ..Graph::default()
    };
    graph.find_users();
    // The last that was ready runs first.
    assert_eq!(order_of(&graph).0, [2, 1, 0]);
    graph.handles = BTreeSet::from([(1, 0), (2, 0)]);
    assert_eq!(order_of(&graph).0, [0, 2, 1]);
}

#[test]
fn users_that_do_not_exist_start_nothing() {
    let mut graph = plain();
    graph.argument_users[1] = vec![4];
    assert!(InlinePlan::new(&graph).unwrap().is_none());
}
