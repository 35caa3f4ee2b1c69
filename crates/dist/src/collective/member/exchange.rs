//! The elements of a collective: which go where, and what is done with those that arrive.

use super::*;
use crate::collective::{Operation, plan};

impl<P: Payload> Member<P> {
    /// Tells all others what was called, with the elements if they are few.
    pub(super) fn announce(&mut self, actions: &mut Vec<Action<P>>) {
        let own = Announcement::of_call(&self.call);
        let first = match self.plan.is_eager {
            true => self.first_piece(actions),
            false => None,
        };
        for other in self.others() {
            let message = match &first {
                None => Message::Announce(own.clone()),
                Some((piece, data)) => Message::Piece {
                    announcement: Some(own.clone()),
                    piece: *piece,
                    data: data.clone(),
                },
            };
            self.send(other, message, actions);
        }
        self.announcements[self.me] = Some(own);
        self.run_if_all_announced(actions);
    }

    /// Returns what this member sends to all others at once, if it has elements.
    fn first_piece(&self, actions: &mut Vec<Action<P>>) -> Option<(Piece, Vec<Span>)> {
        let elements = 0..self.plan.n_elements;
        if elements.is_empty() {
            return None;
        }
        let whole = |memory| {
            let elements = elements.clone();
            Some((Piece::Result(0), vec![Span { memory, elements }]))
        };
        match self.call.operation {
            Operation::AllReduce { .. } => {
                let roots = self.own_roots(&elements, actions);
                (!roots.is_empty()).then_some((Piece::Part(0), roots))
            }
            Operation::Broadcast { sender } if sender == self.me => whole(Memory::Result),
            Operation::Broadcast { .. } => None,
            Operation::AllGather { .. } => whole(Memory::Input(0)),
        }
    }

    pub(super) fn send_piece(
        &self,
        to: usize,
        piece: Piece,
        data: Vec<Span>,
        actions: &mut Vec<Action<P>>,
    ) {
        let message = Message::Piece {
            announcement: None,
            piece,
            data,
        };
        self.send(to, message, actions);
    }

    /// Begins to exchange elements, since all agree.
    pub(super) fn run(&mut self, all: &[Announcement], actions: &mut Vec<Action<P>>) {
        self.stage = Stage::Running;
        self.results = vec![false; self.plan.units.len()];
        match self.call.operation {
            Operation::AllReduce { .. } if plan::is_ring(&self.call) => self.begin_ring(actions),
            Operation::AllReduce { .. } if self.plan.is_halving => self.begin_halving(actions),
            Operation::AllReduce { .. } => self.begin_tree(actions),
            Operation::Broadcast { sender } => self.begin_broadcast(sender, actions),
            Operation::AllGather { axis, any_shape } => {
                if let Err(error) = self.begin_gather(all, axis, any_shape, actions) {
                    return self.fail(error, actions);
                }
            }
        }
        for ((from, piece), data) in std::mem::take(&mut self.waiting) {
            if self.stage == Stage::Running {
                self.use_piece(from, piece, data, actions);
            }
        }
        self.confirm_if_complete(actions);
    }

    fn begin_broadcast(&mut self, sender: usize, actions: &mut Vec<Action<P>>) {
        if sender != self.me {
            return;
        }
        for index in 0..self.plan.units.len() {
            let plan::Unit { elements, owner } = self.plan.units[index].clone();
            match owner.filter(|owner| *owner != self.me) {
                Some(owner) => {
                    let memory = Memory::Result;
                    let data = vec![Span { memory, elements }];
                    self.send_piece(owner, Piece::Part(unit_number(index)), data, actions);
                    self.results[index] = true;
                }
                // Few elements went with the announcement.
                None => self.pass_on(index, None, actions),
            }
        }
    }

    /// Takes a unit of the result for there, and sends it to all others if it is this member's to send.
    pub(super) fn pass_on(
        &mut self,
        unit: usize,
        but: Option<usize>,
        actions: &mut Vec<Action<P>>,
    ) {
        self.results[unit] = true;
        let plan::Unit { elements, owner } = self.plan.units[unit].clone();
        if owner != Some(self.me) {
            return;
        }
        let memory = Memory::Result;
        let data = vec![Span { memory, elements }];
        for other in self.others().filter(|other| Some(*other) != but) {
            let piece = Piece::Result(unit_number(unit));
            self.send_piece(other, piece, data.clone(), actions);
        }
    }

    fn begin_gather(
        &mut self,
        all: &[Announcement],
        axis: usize,
        any_shape: bool,
        actions: &mut Vec<Action<P>>,
    ) -> Result<(), Error> {
        let (extents, blocks) = plan::gathered(all, axis, self.plan.element_bytes)?;
        self.results = blocks.iter().map(|blocks| blocks.n_elements == 0).collect();
        self.blocks = blocks;
        if any_shape {
            actions.push(Action::Allocate { extents });
        }
        let elements = 0..self.plan.n_elements;
        if elements.is_empty() {
            return Ok(());
        }
        let memory = Memory::Input(0);
        let own = Span { memory, elements };
        if !self.plan.is_eager {
            for other in self.others() {
                self.send_piece(other, Piece::Result(0), vec![own.clone()], actions);
            }
        }
        self.place_tensor(self.me, Source::Span(own), actions);
        Ok(())
    }

    fn place_tensor(&mut self, of: usize, from: Source<P>, actions: &mut Vec<Action<P>>) {
        let Blocks {
            n_blocks,
            block_len,
            offset,
            stride,
            ..
        } = self.blocks[of];
        actions.push(Action::Place {
            from,
            n_blocks,
            block_len,
            offset,
            stride,
        });
        self.results[of] = true;
    }

    /// Keeps elements until all agree, or uses them.
    pub(super) fn take_piece(
        &mut self,
        from: usize,
        piece: Piece,
        data: P,
        actions: &mut Vec<Action<P>>,
    ) {
        match self.stage {
            Stage::Announcing => {
                // Where it is none that this member expects, the members don't agree, and their announcements will say so.
                let is_gather = matches!(self.call.operation, Operation::AllGather { .. });
                let is_meant = match self.expected(from, piece) {
                    Some(len) => len * self.plan.element_bytes == data.len_bytes(),
                    None => is_gather && piece == Piece::Result(0),
                };
                if is_meant {
                    self.waiting.entry((from, piece)).or_insert(data);
                }
            }
            Stage::Running => {
                self.use_piece(from, piece, data, actions);
                self.confirm_if_complete(actions);
            }
            _ => (),
        }
    }

    /// Returns the number of elements of a piece that a member sends to this one; `None` if it sends no such piece.
    fn expected(&self, from: usize, piece: Piece) -> Option<usize> {
        let (Piece::Part(number) | Piece::Result(number)) = piece;
        let unit = || self.plan.units.get(number as usize);
        match (&self.call.operation, piece) {
            (Operation::AllReduce { .. }, _) if plan::is_ring(&self.call) => {
                self.expected_by_ring(from, piece)
            }
            (Operation::AllReduce { .. }, _) if self.plan.is_halving => {
                self.expected_by_halving(from, piece)
            }
            (Operation::AllReduce { .. }, Piece::Part(_)) => {
                let (unit, n_roots) = (unit()?, self.leaves.roots[from].len());
                let is_own = unit.owner.is_none_or(|owner| owner == self.me);
                (is_own && n_roots > 0).then_some(unit.elements.len() * n_roots)
            }
            (Operation::AllReduce { .. }, Piece::Result(_)) => {
                let unit = unit()?;
                (unit.owner == Some(from)).then_some(unit.elements.len())
            }
            (Operation::Broadcast { sender }, Piece::Part(_)) => {
                let unit = unit()?;
                let is_meant = from == *sender && unit.owner == Some(self.me);
                is_meant.then_some(unit.elements.len())
            }
            (Operation::Broadcast { sender }, Piece::Result(_)) => {
                let unit = unit()?;
                let is_meant = unit.owner.unwrap_or(*sender) == from && self.me != *sender;
                is_meant.then_some(unit.elements.len())
            }
            (Operation::AllGather { .. }, Piece::Result(0)) => {
                self.blocks.get(from).map(|blocks| blocks.n_elements)
            }
            (Operation::AllGather { .. }, _) => None,
        }
    }

    /// Uses elements that are as they should be, and that did not come before.
    fn use_piece(&mut self, from: usize, piece: Piece, data: P, actions: &mut Vec<Action<P>>) {
        let Some(len) = self.expected(from, piece) else {
            let what = format!("elements that nobody expects of it, {piece:?}");
            return self.fail_by(from, &what, actions);
        };
        let (found, expected) = (data.len_bytes(), len * self.plan.element_bytes);
        if found != expected {
            let what = format!("{found} bytes of {piece:?}, where {expected} were expected");
            return self.fail_by(from, &what, actions);
        }
        let (Piece::Part(number) | Piece::Result(number)) = piece;
        match (&self.call.operation, piece) {
            (Operation::AllReduce { .. }, _) if plan::is_ring(&self.call) => {
                self.turn_ring(number, data, actions);
            }
            (Operation::AllReduce { .. }, _) if self.plan.is_halving => {
                self.take_halving(from, piece, data, actions);
            }
            (Operation::AllReduce { .. }, Piece::Part(_)) => {
                let Some(parts) = self.parts.get_mut(&number) else {
                    return;
                };
                if parts.arrived[from].is_none() {
                    parts.arrived[from] = Some(data);
                    parts.n_missing -= 1;
                    self.reduce_if_complete(number, actions);
                }
            }
            (Operation::AllGather { .. }, _) => {
                if !self.results[from] {
                    self.place_tensor(from, Source::Arrived(data, 0..len), actions);
                }
            }
            (operation, _) => {
                let unit = number as usize;
                if self.results[unit] {
                    return;
                }
                let but = match operation {
                    Operation::Broadcast { sender } => Some(*sender),
                    _ => None,
                };
                actions.push(Action::Place {
                    from: Source::Arrived(data, 0..len),
                    n_blocks: 1,
                    block_len: len,
                    offset: self.plan.units[unit].elements.start,
                    stride: 0,
                });
                self.pass_on(unit, but, actions);
            }
        }
    }

    fn confirm_if_complete(&mut self, actions: &mut Vec<Action<P>>) {
        let is_complete = match plan::is_ring(&self.call) {
            true => self.ring_is_done(),
            false if self.plan.is_halving => self.halving_is_done(),
            false => self.results.iter().all(|there| *there),
        };
        if self.stage == Stage::Running && is_complete {
            self.confirm(actions);
        }
    }

    /// Returns whether a member has not sent all elements that it has to send to this one.
    pub(super) fn owes(&self, member: usize) -> bool {
        let units = || self.plan.units.iter().zip(&self.results);
        match &self.call.operation {
            Operation::AllReduce { .. } if plan::is_ring(&self.call) => self.is_left(member),
            Operation::AllReduce { .. } if self.plan.is_halving => self.owes_halving(member),
            Operation::AllReduce { .. } => {
                let has_leaves = !self.leaves.roots[member].is_empty();
                let lacks = |parts: &Parts<P>| has_leaves && parts.arrived[member].is_none();
                let owes_part = self.parts.values().any(lacks);
                owes_part || units().any(|(unit, there)| !there && unit.owner == Some(member))
            }
            Operation::Broadcast { sender } => units().any(|(unit, there)| {
                let from = unit.owner.filter(|owner| *owner != self.me);
                !there && from.unwrap_or(*sender) == member
            }),
            Operation::AllGather { .. } => !self.results[member],
        }
    }
}

/// Returns the number of a unit in messages.
pub(super) fn unit_number(index: usize) -> u32 {
    u32::try_from(index).expect("units of memory are fewer than 2^32")
}
