//! The graphs of kernels of functions, as the files of programs have them.

use std::collections::{HashMap, HashSet};

use tfrt_bef::FunctionIndex;
use tfrt_host::record::FunctionId;

use super::runs::Run;
use crate::program::Program;

/// A function as a graph of its kernels.
#[derive(Default)]
pub struct Graph {
    producers: Vec<Vec<u32>>,
    callees: Vec<Vec<FunctionId>>,
    /// All kernels that call the function.
    pub callers: Vec<(FunctionId, u32)>,
    /// The kernels that give the function's results.
    pub last: Vec<u32>,
    /// The kernels that give the function's results, in order.
    last_sorted: Vec<u32>,
}

impl Graph {
    pub fn producers(&self, kernel: u32) -> &[u32] {
        self.producers
            .get(kernel as usize)
            .map_or(&[], Vec::as_slice)
    }

    /// Returns whether a kernel gives a result of the function.
    pub fn gives_result(&self, kernel: u32) -> bool {
        self.last_sorted.binary_search(&kernel).is_ok()
    }

    /// Returns the number of kernels. They are numbered in the order of the file.
    pub fn n_kernels(&self) -> usize {
        self.producers.len()
    }

    pub fn callees(&self, kernel: u32) -> &[FunctionId] {
        self.callees.get(kernel as usize).map_or(&[], Vec::as_slice)
    }
}

/// The functions of all programs that have run.
pub struct Graphs(HashMap<FunctionId, Graph>);

impl Graphs {
    pub fn new(runs: &[Run], programs: &[Program]) -> Graphs {
        let mut graphs = Graphs(HashMap::new());
        for program in programs.iter().map(Program::as_host_program) {
            if let Some(first) = program.first_recorded_function() {
                graphs.add(program, first);
            }
        }
        // Functions that did not run need no place.
        let ran: HashSet<FunctionId> = runs.iter().map(|run| run.function).collect();
        graphs.0.retain(|function, _| ran.contains(function));
        graphs
    }

    pub fn of(&self, function: FunctionId) -> Option<&Graph> {
        self.0.get(&function)
    }

    fn add(&mut self, program: &tfrt_host::Program, first: FunctionId) {
        let file = program.file();
        for index in 0..file.n_functions() as u32 {
            let function = first.offset(index);
            let Some(body) = file.function(FunctionIndex(index)).body() else {
                continue;
            };
            let mut producer_of = vec![None; body.n_registers()];
            for (kernel, view) in (0..).zip(body.kernels()) {
                for register in view.results() {
                    producer_of[*register as usize] = Some(kernel);
                }
            }
            let producers = |registers: &[u32]| -> Vec<u32> {
                let all = registers.iter();
                all.filter_map(|register| producer_of[*register as usize])
                    .collect()
            };
            let mut calls = Vec::new();
            let graph = self.0.entry(function).or_default();
            graph.last = producers(body.result_registers());
            graph.last_sorted.clone_from(&graph.last);
            graph.last_sorted.sort_unstable();
            for (kernel, view) in (0..).zip(body.kernels()) {
                graph.producers.push(producers(view.operands()));
                let callees = view.functions().iter();
                let callees: Vec<_> = callees.map(|callee| first.offset(*callee)).collect();
                calls.extend(callees.iter().map(|callee| (*callee, kernel)));
                graph.callees.push(callees);
            }
            for (callee, kernel) in calls {
                let graph = self.0.entry(callee).or_default();
                graph.callers.push((function, kernel));
            }
        }
    }
}
