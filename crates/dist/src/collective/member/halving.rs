//! All-reduces of many members, by halving and doubling ([`halving`](crate::collective::halving) has the order).

use super::exchange::unit_number;
use super::tree::{ALL_LEAVES, singles};
use super::*;
use crate::collective::halving::{self, Direction, Round};

/// The state of halving and doubling: each unit goes its way by itself.
pub(super) struct Halving<P> {
    units: Vec<Unit<P>>,
}

/// The rounds of a unit.
struct Unit<P> {
    rounds: Vec<Round>,
    /// The round whose elements are awaited.
    next: usize,
    /// The elements that have come, by its sender, of those that reduce and of results.
    arrived: BTreeMap<(usize, bool), P>,
    /// Whether what this member has is in the result, no longer in its input alone.
    is_reduced: bool,
}

impl<P: Payload> Halving<P> {
    pub fn new() -> Halving<P> {
        Halving { units: Vec::new() }
    }

    pub fn forget(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.arrived.clear());
    }
}

impl<P: Payload> Member<P> {
    pub(super) fn begin_halving(&mut self, actions: &mut Vec<Action<P>>) {
        let n_members = self.call.members.len();
        let units = self.plan.units.iter().map(|unit| Unit {
            rounds: halving::rounds(self.me, n_members, &unit.elements),
            next: 0,
            arrived: BTreeMap::new(),
            is_reduced: false,
        });
        self.halving.units = units.collect();
        for index in 0..self.halving.units.len() {
            if self.leaves.own.len() > 1 {
                self.reduce_own(index, actions);
            }
            self.send_round(index, actions);
            self.turn_unit(index, actions);
        }
    }

    pub(super) fn halving_is_done(&self) -> bool {
        let is_done = |unit: &Unit<P>| unit.next == unit.rounds.len();
        self.halving.units.iter().all(is_done)
    }

    /// Returns whether a member has still to send elements that this one waits for.
    pub(super) fn owes_halving(&self, member: usize) -> bool {
        self.halving.units.iter().any(|unit| {
            let round = unit.rounds.get(unit.next);
            round.is_some_and(|round| {
                let is_down = round.direction == Direction::Down;
                let is_from = |(from, _): &(usize, Range<usize>)| *from == member;
                round.receives.iter().any(is_from) && !unit.arrived.contains_key(&(member, is_down))
            })
        })
    }

    /// Returns the number of elements of a piece, if a member sends it to this one.
    pub(super) fn expected_by_halving(&self, from: usize, piece: Piece) -> Option<usize> {
        let (number, is_down) = match piece {
            Piece::Part(number) => (number, false),
            Piece::Result(number) => (number, true),
        };
        let elements = &self.plan.units.get(number as usize)?.elements;
        // Before all agree there are no rounds yet.
        let made;
        let rounds = match self.halving.units.get(number as usize) {
            Some(unit) => &unit.rounds,
            None => {
                made = halving::rounds(self.me, self.call.members.len(), elements);
                &made
            }
        };
        let meant = rounds
            .iter()
            .filter(|round| (round.direction == Direction::Down) == is_down);
        let mut received = meant.flat_map(|round| &round.receives);
        let run = received.find(|(sender, _)| *sender == from);
        run.map(|(_, run)| run.len())
    }

    /// Reduces the leaves of this member, where it has several.
    fn reduce_own(&mut self, index: usize, actions: &mut Vec<Action<P>>) {
        let elements = self.plan.units[index].elements.clone();
        let own = self.leaves.own.clone();
        let values = self.own_leaves(&own, &elements);
        let steps = reduction::steps(&own, &singles(&own)).expect(ALL_LEAVES);
        let memory = Memory::Result;
        actions.push(self.reduction(Span { memory, elements }, values, steps, false));
        self.halving.units[index].is_reduced = true;
    }

    /// Returns where this member has elements of a unit.
    fn own_part(&self, index: usize, elements: Range<usize>) -> Span {
        let memory = match self.halving.units[index].is_reduced {
            true => Memory::Result,
            false => Memory::Input(0),
        };
        Span { memory, elements }
    }

    fn send_round(&self, index: usize, actions: &mut Vec<Action<P>>) {
        let unit = &self.halving.units[index];
        let Some(round) = unit.rounds.get(unit.next) else {
            return;
        };
        let number = unit_number(index);
        for (to, run) in &round.sends {
            let (piece, span) = match round.direction {
                Direction::Up { .. } => (Piece::Part(number), self.own_part(index, run.clone())),
                Direction::Down => {
                    let (memory, elements) = (Memory::Result, run.clone());
                    (Piece::Result(number), Span { memory, elements })
                }
            };
            self.send_piece(*to, piece, vec![span], actions);
        }
    }

    /// Takes what arrived for a unit, and goes on with it.
    pub(super) fn take_halving(
        &mut self,
        from: usize,
        piece: Piece,
        data: P,
        actions: &mut Vec<Action<P>>,
    ) {
        let (number, is_down) = match piece {
            Piece::Part(number) => (number as usize, false),
            Piece::Result(number) => (number as usize, true),
        };
        let unit = &mut self.halving.units[number];
        let is_from = |(sender, _): &(usize, Range<usize>)| *sender == from;
        let is_awaited = unit.rounds[unit.next..].iter().any(|round| {
            (round.direction == Direction::Down) == is_down && round.receives.iter().any(is_from)
        });
        if !is_awaited {
            return;
        }
        unit.arrived.entry((from, is_down)).or_insert(data);
        self.turn_unit(number, actions);
    }

    /// Does the rounds of a unit whose elements are there.
    fn turn_unit(&mut self, index: usize, actions: &mut Vec<Action<P>>) {
        loop {
            let unit = &mut self.halving.units[index];
            let Some(round) = unit.rounds.get(unit.next) else {
                return;
            };
            let is_down = round.direction == Direction::Down;
            let is_there =
                |(from, _): &(usize, Range<usize>)| unit.arrived.contains_key(&(*from, is_down));
            if !round.receives.iter().all(is_there) {
                return;
            }
            let round = round.clone();
            unit.next += 1;
            for (from, run) in round.receives {
                let data = self.halving.units[index].arrived.remove(&(from, is_down));
                let data = data.expect("it was there above");
                self.take_run(index, (from, round.direction), run, data, actions);
            }
            self.send_round(index, actions);
        }
    }

    /// Reduces a run of elements with what this member has of it, or places it as a part of the result.
    fn take_run(
        &mut self,
        index: usize,
        (from, direction): (usize, Direction),
        run: Range<usize>,
        data: P,
        actions: &mut Vec<Action<P>>,
    ) {
        let arrived = Source::Arrived(data, 0..run.len());
        let Direction::Up { is_last } = direction else {
            actions.push(Action::Place {
                from: arrived,
                n_blocks: 1,
                block_len: run.len(),
                offset: run.start,
                stride: 0,
            });
            return;
        };
        let own = Source::Span(self.own_part(index, run.clone()));
        let values = match from < self.me {
            true => vec![arrived, own],
            false => vec![own, arrived],
        };
        let steps = vec![Step::Term(0), Step::Term(1), Step::Combine];
        let (memory, elements) = (Memory::Result, run);
        actions.push(self.reduction(Span { memory, elements }, values, steps, is_last));
        self.halving.units[index].is_reduced = true;
    }
}
