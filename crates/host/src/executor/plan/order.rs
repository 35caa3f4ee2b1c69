//! The order in which one thread would run the kernels of a function whose kernels all end when
//! they return, and whose arguments are all there; or, of one that is only tried, would run them if
//! all results were there.
//!
//! It is found by doing what the executor does, with [`ReadyQueue`] and a queue of tasks, but for
//! running kernels. The order is topological, and effects that no chain orders come out as they
//! do when ready kernels are counted. Where nobody can tell the order, streams do not matter: then
//! a kernel follows those that gave it its operands.

use std::collections::VecDeque;

use super::dependencies::{Dependencies, KernelDependencies};
use crate::executor::ready::{Group, ReadyQueue};

pub(crate) struct Simulated {
    /// Kernels by the numbers of the file; those that would never run come last.
    pub(crate) order: Vec<u32>,
    /// Every kernel would run.
    pub(crate) is_complete: bool,
    /// How many kernels have run when the call pauses, and after each task.
    pub(crate) ends: Vec<usize>,
}

/// How many counts start a kernel.
pub(crate) fn n_waits(wired: &KernelDependencies<'_>) -> u32 {
    match wired.is_marked {
        true => 1,
        false => wired.operands.len().max(1) as u32,
    }
}

/// Finds the order. `waits` are the counts that start each kernel; `visit` is shown each as it would run.
pub(crate) fn simulate(
    wiring: &dyn Dependencies,
    waits: Vec<u32>,
    has_one_stream: bool,
    visit: &mut dyn FnMut(u32, &KernelDependencies<'_>),
) -> Simulated {
    let n_kernels = waits.len();
    let mut simulation = Simulation {
        wiring,
        visit,
        is_one: has_one_stream || wiring.is_unseen(),
        waits,
        order: Vec::with_capacity(n_kernels),
        tasks: VecDeque::new(),
    };
    let mut queue = ReadyQueue::new(wiring.root_stream());
    simulation.count_down(&mut queue, wiring.entry_users(), None);
    for argument in 0..wiring.n_arguments() {
        let users = wiring.argument_users(argument);
        simulation.publish(&mut queue, users, argument as u32);
    }
    simulation.drive(queue);
    let mut ends = vec![simulation.order.len()];
    while let Some(group) = simulation.tasks.pop_front() {
        simulation.drive(ReadyQueue::of_group(group));
        ends.push(simulation.order.len());
    }
    let Simulation {
        waits, mut order, ..
    } = simulation;
    let is_complete = order.len() == n_kernels;
    if !is_complete {
        let waits_for_ever = (0..).zip(&waits).filter(|(_, wait)| **wait > 0);
        order.extend(waits_for_ever.map(|(kernel, _): (u32, _)| kernel));
    }
    Simulated {
        order,
        is_complete,
        ends,
    }
}

struct Simulation<'w> {
    wiring: &'w dyn Dependencies,
    visit: &'w mut dyn FnMut(u32, &KernelDependencies<'_>),
    /// All kernels are taken for those of one stream.
    is_one: bool,
    waits: Vec<u32>,
    order: Vec<u32>,
    tasks: VecDeque<Group<u32>>,
}

impl Simulation<'_> {
    /// Runs what is ready in one call of the executor.
    fn drive(&mut self, mut queue: ReadyQueue<u32>) {
        loop {
            self.tasks.extend(queue.turn());
            let Some(kernel) = queue.pop() else { return };
            self.order.push(kernel);
            let wired = self.wiring.kernel(kernel);
            (self.visit)(kernel, &wired);
            for (index, register) in wired.results.iter().enumerate() {
                let users = self.wiring.users(kernel, index);
                self.publish(&mut queue, users, *register);
            }
        }
    }

    /// A register is filled: those users come first that can do with a handle.
    fn publish(&mut self, queue: &mut ReadyQueue<u32>, users: &[u32], register: u32) {
        if self.wiring.has_early_users() {
            self.count_down(queue, users, Some((register, true)));
            self.count_down(queue, users, Some((register, false)));
        } else {
            self.count_down(queue, users, None);
        }
    }

    /// Counts down the users, all or only those that can (or can't) do with a handle.
    fn count_down(
        &mut self,
        queue: &mut ReadyQueue<u32>,
        users: &[u32],
        only: Option<(u32, bool)>,
    ) {
        for user in users {
            let Some(kernel) = user
                .checked_sub(1)
                .filter(|k| (*k as usize) < self.waits.len())
            else {
                // Whoever has given this wiring is told when it is checked.
                continue;
            };
            let wanted = only.is_none_or(|(register, early)| {
                self.wiring.takes_handle(kernel, register) == early
            });
            let wait = &mut self.waits[kernel as usize];
            // A marked kernel has started with its first operand.
            if wanted && *wait > 0 {
                *wait -= 1;
                if *wait == 0 {
                    match self.is_one {
                        true => queue.push_here(kernel),
                        false => queue.push(self.wiring.stream(kernel), kernel),
                    }
                }
            }
        }
    }
}
