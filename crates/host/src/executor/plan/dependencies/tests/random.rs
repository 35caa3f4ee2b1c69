//! Shapes and sequences say of random graphs what the wirings say.

use std::collections::{BTreeSet, HashMap};

use super::super::super::dataflow::DataflowPlan;
use super::super::super::inline::InlinePlan;
use super::super::Dependencies;
use super::{Graph, Kernel, plain};
use crate::executor::registers::{MARKED, ReadyStack};

/// Random numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }

    fn words(&mut self, end: usize) -> Vec<u32> {
        let n = self.below(end);
        (0..n).map(|_| self.below(1000) as u32).collect()
    }
}

/// A graph; `is_shuffled` says that its kernels need not stand in an order in which they can run.
fn graph(numbers: &mut Numbers, is_shuffled: bool) -> Graph {
    let mut graph = Graph {
        n_arguments: numbers.below(4),
        root_stream: numbers.below(2) as u32,
        ..Graph::default()
    };
    let (n_kernels, n_streams) = (numbers.below(9), 1 + numbers.below(3));
    let has_marks = numbers.below(3) == 0;
    graph.n_registers = graph.n_arguments;
    for _ in 0..n_kernels {
        let n_operands = match graph.n_registers {
            0 => 0,
            _ => numbers.below(4),
        };
        let operands = (0..n_operands).map(|_| numbers.below(graph.n_registers) as u32);
        let operands = operands.collect();
        let n_results = numbers.below(3);
        let results = graph.n_registers..graph.n_registers + n_results;
        graph.n_registers += n_results;
        graph.kernels.push(Kernel {
            operands,
            results: results.map(|register| register as u32).collect(),
            attributes: numbers.words(3),
            functions: numbers.words(3),
            stream: numbers.below(n_streams) as u32,
            is_marked: has_marks && n_operands > 0 && numbers.below(2) == 0,
            users: Vec::new(),
        });
    }
    for place in 1..n_kernels {
        if is_shuffled {
            graph.kernels.swap(place, numbers.below(place + 1));
        }
    }
    if graph.n_registers > 0 {
        let n_results = numbers.below(5);
        let result = |_| numbers.below(graph.n_registers) as u32;
        graph.results = (0..n_results).map(result).collect();
    }
    if numbers.below(2) == 0 {
        for kernel in 0..n_kernels as u32 {
            for register in graph.kernels[kernel as usize].operands.clone() {
                if numbers.below(2) == 0 {
                    graph.handles.insert((kernel, register));
                }
            }
        }
    }
    graph.find_users();
    graph
}

/// Every register of the graph under the name that it has in the shape.
fn names(graph: &Graph, shape: &DataflowPlan) -> HashMap<u32, u32> {
    let mut names: HashMap<u32, u32> = (0..graph.n_arguments as u32).map(|r| (r, r)).collect();
    for kernel in 0..shape.n_kernels() as u32 {
        let results = &graph.kernels[shape.number_in_file(kernel) as usize].results;
        for (register, output) in results.iter().zip(shape.record(kernel).outputs()) {
            assert_eq!(names.insert(*register, output.register), None);
        }
    }
    let fresh: BTreeSet<u32> = names.values().copied().collect();
    assert!(fresh.into_iter().eq(0..graph.n_registers as u32));
    names
}

fn check_shape(graph: &Graph, shape: &DataflowPlan) {
    assert_eq!(shape.n_kernels(), graph.kernels.len());
    assert_eq!(shape.n_registers(), graph.n_registers);
    assert_eq!(shape.root_stream(), graph.root_stream);
    let marks = graph.kernels.iter().any(|kernel| kernel.is_marked);
    assert_eq!(shape.has_marks(), marks);
    let mut streams = graph.kernels.iter().map(|kernel| kernel.stream);
    let is_one = graph.is_textual || streams.all(|stream| stream == graph.root_stream);
    assert_eq!(shape.has_one_stream(), is_one);
    let n_kernels = graph.kernels.len() as u32;
    let numbers: Vec<u32> = (0..n_kernels).map(|k| shape.number_in_file(k)).collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..n_kernels));
    let position = |number: u32| numbers.iter().position(|n| *n == number).unwrap() as u32;
    let names = names(graph, shape);
    let renamed = |registers: &[u32]| -> Vec<u32> { registers.iter().map(|r| names[r]).collect() };
    let mut walk = shape.walk();
    for kernel in 0..n_kernels {
        let number = shape.number_in_file(kernel);
        let (wired, record) = (&graph.kernels[number as usize], shape.record(kernel));
        // SAFETY: there is a record of that number.
        let walked = unsafe { walk.go_to(kernel) }.record();
        assert_eq!(record.entrance(), 2 * number + 100);
        assert_eq!(walked.entrance(), record.entrance());
        assert_eq!(record.code(), number + 50);
        assert_eq!(record.n_operands() as usize, wired.operands.len());
        assert_eq!(record.n_results() as usize, wired.results.len());
        assert_eq!(record.operands(), renamed(&wired.operands));
        assert_eq!(record.attributes(), wired.attributes);
        assert_eq!(record.functions(), wired.functions);
        let wait = match wired.is_marked {
            true => MARKED | 1,
            false => wired.operands.len().max(1) as u32,
        };
        assert_eq!(shape.waits()[kernel as usize], wait);
        if !is_one {
            assert_eq!(shape.stream(kernel), wired.stream);
        }
    }
    let arguments = shape.arguments().outputs().iter();
    assert!(
        arguments
            .map(|output| output.register)
            .eq(0..graph.n_arguments as u32)
    );
    for (register, name) in &names {
        check_definition(graph, shape, *register, *name, &position);
    }
    let entry: Vec<u32> = graph.entry_users.iter().map(|n| position(n - 1)).collect();
    assert_eq!(shape.entry_users(), entry);
    assert_eq!(shape.result_registers(), renamed(&graph.results));
    let mut returned: Vec<(u32, u32)> = Vec::new();
    for name in renamed(&graph.results)
        .into_iter()
        .collect::<BTreeSet<u32>>()
    {
        let n = renamed(&graph.results)
            .iter()
            .filter(|r| **r == name)
            .count();
        returned.push((name, n as u32));
    }
    assert_eq!(shape.returned(), returned);
    let marked = graph.kernels.iter().filter(|kernel| kernel.is_marked);
    let read: BTreeSet<u32> = marked
        .flat_map(|kernel| renamed(&kernel.operands))
        .collect();
    assert!(shape.read_by_marked().iter().copied().eq(read));
    check_begun(shape);
}

/// Holds one register against all operands and results of the graph.
fn check_definition(
    graph: &Graph,
    shape: &DataflowPlan,
    register: u32,
    name: u32,
    position: &dyn Fn(u32) -> u32,
) {
    let (output, users) = shape.definition(name);
    let producer = graph
        .kernels
        .iter()
        .position(|k| k.results.contains(&register));
    assert_eq!(
        shape.producer(name),
        producer.map(|number| position(number as u32))
    );
    let readers = graph.readers(register);
    let is_marked = |number: &u32| graph.kernels[*number as usize - 1].is_marked;
    let n_returns = graph.results.iter().filter(|r| **r == register).count();
    let n_references = readers.iter().filter(|number| !is_marked(number)).count() + n_returns;
    assert_eq!(output.register, name);
    assert_eq!(output.n_references() as usize, n_references);
    assert_eq!(output.is_returned(), n_returns > 0);
    let may_be_forwarded = n_returns > 0 || readers.iter().any(is_marked);
    assert_eq!(output.may_be_forwarded(), may_be_forwarded);
    let (early, late): (Vec<u32>, Vec<u32>) = readers
        .iter()
        .map(|number| number - 1)
        .partition(|kernel| graph.takes_handle(*kernel, register));
    assert_eq!(users.has_early(), !early.is_empty());
    let all = early.iter().chain(&late).map(|number| position(*number));
    assert!(users.all().eq(all));
    assert!(
        users
            .early()
            .eq(early.iter().map(|number| position(*number)))
    );
    assert!(users.late().eq(late.iter().map(|number| position(*number))));
}

/// Counts the entry and the arguments down once more.
fn check_begun(shape: &DataflowPlan) {
    let Some(begun) = shape.begun() else {
        assert!(shape.has_marks());
        return;
    };
    assert!(!shape.has_marks());
    let mut waits = shape.waits().to_vec();
    let mut ready = Vec::new();
    let mut users = shape.entry_users().to_vec();
    for output in shape.arguments().outputs() {
        users.extend(shape.definition(output.register).1.all());
    }
    for user in users {
        waits[user as usize] -= 1;
        if waits[user as usize] == 0 {
            ready.push(user);
        }
    }
    let mut top = begun.top;
    while let Some(kernel) = ready.pop() {
        assert_eq!(top, kernel);
        // Those that are ready say which is below.
        top = begun.words[kernel as usize];
        waits[kernel as usize] = top;
    }
    assert_eq!(top, ReadyStack::BOTTOM);
    assert_eq!(*begun.words, *waits);
}

/// Runs a sequence, where each value is the register that it stands for.
fn check_sequence(graph: &Graph, sequence: &InlinePlan) {
    assert_eq!(sequence.n_kernels(), graph.kernels.len());
    assert_eq!(sequence.n_arguments(), graph.n_arguments);
    let n_uses = |register: u32| {
        let returned = graph.results.iter().filter(|result| **result == register);
        graph.readers(register).len() + returned.count()
    };
    let mut lying: Vec<Option<(u32, usize)>> = vec![None; sequence.n_slots()];
    let put = |lying: &mut Vec<Option<(u32, usize)>>, slot: u32, register: u32| {
        let place = &mut lying[slot as usize];
        assert!(place.is_none(), "another value lies there");
        *place = Some((register, n_uses(register)));
    };
    let take = |lying: &mut Vec<Option<(u32, usize)>>, slot: u32, register: u32| {
        let place = &mut lying[slot as usize];
        let (lies, n_left) = place.expect("a value lies there");
        assert_eq!(lies, register);
        *place = (n_left > 1).then_some((register, n_left - 1));
    };
    let free = |lying: &mut Vec<Option<(u32, usize)>>| {
        for place in lying.iter_mut() {
            *place = place.filter(|(_, n_left)| *n_left > 0);
        }
    };
    for (argument, output) in (0..).zip(sequence.arguments().outputs()) {
        assert_eq!(output.n_references() as usize, n_uses(argument));
        put(&mut lying, output.register, argument);
    }
    let n_lying = |lying: &[Option<_>]| lying.iter().flatten().count();
    let mut most = n_lying(&lying);
    free(&mut lying);
    let mut seen = BTreeSet::new();
    for kernel in 0..sequence.n_kernels() as u32 {
        let number = sequence.number_in_file(kernel);
        assert!(seen.insert(number), "each kernel runs once");
        check_left(sequence, kernel, &lying);
        let (wired, record) = (&graph.kernels[number as usize], sequence.record(kernel));
        let listed = sequence.records().get(kernel as usize).unwrap();
        assert_eq!(listed.entrance(), record.entrance());
        assert_eq!(record.entrance(), 2 * number + 100);
        assert_eq!(record.attributes(), wired.attributes);
        assert_eq!(record.functions(), wired.functions);
        assert_eq!(record.operands().len(), wired.operands.len());
        assert_eq!(record.outputs().len(), wired.results.len());
        // Outputs are kept apart from operands.
        for (output, register) in record.outputs().iter().zip(&wired.results) {
            assert_eq!(output.n_references() as usize, n_uses(*register));
            put(&mut lying, output.register, *register);
        }
        most = most.max(n_lying(&lying));
        for (slot, register) in record.operands().iter().zip(&wired.operands) {
            take(&mut lying, *slot, *register);
        }
        free(&mut lying);
    }
    assert_eq!(sequence.n_slots(), most, "no more than lie there at once");
    assert!(sequence.records().get(sequence.n_kernels()).is_none());
    check_left(sequence, sequence.n_kernels() as u32, &lying);
    for (slot, register) in sequence.results().iter().zip(&graph.results) {
        take(&mut lying, *slot, *register);
    }
    assert_eq!(sequence.results().len(), graph.results.len());
    assert!(lying.iter().all(Option::is_none), "nothing is left");
}

/// Checks that the values in slots before a kernel runs are those that later kernels take.
fn check_left(sequence: &InlinePlan, kernel: u32, lying: &[Option<(u32, usize)>]) {
    let mut left = sequence.left_at(kernel);
    left.sort_unstable();
    let takes = |(slot, place): (usize, &Option<(u32, usize)>)| {
        vec![slot as u32; place.map_or(0, |(_, n_left)| n_left)]
    };
    let expected: Vec<u32> = lying.iter().enumerate().flat_map(takes).collect();
    assert_eq!(left, expected);
}

#[test]
fn shapes_say_what_wirings_say() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for round in 0..2000 {
        let mut graph = graph(&mut numbers, round % 2 == 0);
        graph.is_textual = round % 8 == 1;
        check_shape(&graph, &DataflowPlan::new(&graph).unwrap());
    }
}

#[test]
fn sequences_bring_every_value_to_its_readers() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for round in 0..2000 {
        let mut graph = graph(&mut numbers, round % 2 == 0);
        let is_marked = graph.kernels.iter().any(|kernel| kernel.is_marked);
        graph.is_textual = round % 8 == 1 && !is_marked;
        let sequence = InlinePlan::new(&graph).unwrap();
        assert_eq!(sequence.is_none(), is_marked);
        if let Some(sequence) = sequence {
            check_sequence(&graph, &sequence);
        }
    }
}

#[test]
fn kernels_that_wait_for_each_other_have_no_sequence() {
    let mut graph = plain();
    graph.kernels[0].operands[0] = 3;
    graph.find_users();
    assert!(InlinePlan::new(&graph).unwrap().is_none());
    let shape = DataflowPlan::new(&graph).unwrap();
    check_shape(&graph, &shape);
}
