//! Groups of devices that exchange data: who belongs to one, and what each was given to do.
//!
//! A member's operations are queued when all members have asked for theirs, so that nobody waits on a thread for others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext, KernelPromise, Value};

use super::buffers::Buffer;
use super::count;
use super::objects::{Context, Stream};
use crate::driver::library::{Exchange, Member, Number, Reduction};

/// A group, by which its members know it.
#[derive(Clone, Default)]
pub(super) struct Group(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    members: Vec<Joining>,
    waiting: Vec<Asking>,
    n_ranks: Option<usize>,
}

/// A member that waits for the others to join.
struct Joining {
    rank: usize,
    // Taken when all have joined.
    resolve: Option<Box<dyn FnOnce(Group) + Send>>,
}

/// A member that waits for the others to ask.
struct Asking {
    rank: usize,
    stream: Stream,
    operations: Vec<Operation>,
    promise: KernelPromise<Chain>,
}

/// A member of a group, and what it was given to do.
#[derive(Clone)]
pub(super) struct Rank {
    group: Group,
    rank: usize,
    n_ranks: usize,
    context: Context,
    operations: Arc<Mutex<Vec<Operation>>>,
}

/// An operation that a member was given.
#[derive(Clone)]
pub(super) struct Operation {
    pub(super) kind: OperationKind,
    pub(super) input: Option<Buffer>,
    pub(super) output: Option<Buffer>,
    pub(super) number: Number,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    Reduce(Reduction),
    Scatter(Reduction),
    Gather,
    All,
    Send(i32),
    Receive(i32),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Group {
    /// Joins as a rank of so many; the member is there when all are.
    pub(super) fn join<V: Value>(
        &self,
        context: &Context,
        (rank, n_ranks): (i32, i32),
        execution: &ExecutionContext,
        name: fn(Rank) -> V,
    ) -> Result<AsyncValue<V>, Error> {
        let n = count("a number of ranks", i64::from(n_ranks))?;
        let mut state = lock(&self.0);
        let wanted = *state.n_ranks.get_or_insert(n);
        if wanted != n {
            let message = format!("expected a group of {wanted} ranks, found {n}");
            return Err(Error::invalid_argument(message));
        }
        let is_free = |rank: &usize| *rank < n && state.members.iter().all(|one| one.rank != *rank);
        let found = usize::try_from(rank).ok().filter(is_free);
        let rank = found.ok_or_else(|| {
            Error::invalid_argument(format!(
                "expected rank {rank} of {n} to be free and in range"
            ))
        })?;
        let (promise, value) = execution.promise();
        let context = context.clone();
        let resolve = move |group: Group| {
            promise.resolve(name(Rank {
                group,
                rank,
                n_ranks: n,
                context,
                operations: Arc::default(),
            }));
        };
        state.members.push(Joining {
            rank,
            resolve: Some(Box::new(resolve)),
        });
        if state.members.len() < n {
            return Ok(value);
        }
        let all: Vec<_> = state
            .members
            .iter_mut()
            .filter_map(|one| one.resolve.take())
            .collect();
        drop(state);
        for resolve in all {
            resolve(self.clone());
        }
        Ok(value)
    }
}

impl Rank {
    /// Takes an operation to be done later.
    pub(super) fn add(&self, operation: Operation) -> Chain {
        lock(&self.operations).push(operation);
        Chain
    }

    /// Does what it was given, once all members have asked for that.
    pub(super) fn execute(
        &self,
        stream: &Stream,
        execution: &ExecutionContext,
    ) -> Result<AsyncValue<Chain>, Error> {
        stream.context.expect("a handle", self.context.inner())?;
        let operations = std::mem::take(&mut *lock(&self.operations));
        for operation in &operations {
            operation.check(self.n_ranks)?;
        }
        let (promise, value) = execution.promise();
        let mut state = lock(&self.group.0);
        state.waiting.push(Asking {
            rank: self.rank,
            stream: stream.clone(),
            operations,
            promise,
        });
        let is_first = |rank: usize| state.waiting.iter().any(|asking| asking.rank == rank);
        if !(0..self.n_ranks).all(is_first) {
            return Ok(value);
        }
        // The first that each has asked for: it may have asked again.
        let mut round = Vec::new();
        for rank in 0..self.n_ranks {
            let at = state.waiting.iter().position(|asking| asking.rank == rank);
            round.extend(at.map(|at| state.waiting.remove(at)));
        }
        drop(state);
        let result = exchange(&round);
        for asking in round {
            asking.promise.complete(result.clone());
        }
        Ok(value)
    }
}

/// Queues what all members of a group have asked for.
fn exchange(round: &[Asking]) -> Result<Chain, Error> {
    let n_ranks = round.len();
    let first = round
        .first()
        .ok_or_else(|| Error::internal("a group has members"))?;
    for other in round {
        if !fit(&first.operations, &other.operations) {
            let kinds = |asking: &Asking| -> Vec<OperationKind> {
                asking.operations.iter().map(|one| one.kind).collect()
            };
            let (rank, one, other) = (other.rank, kinds(first), kinds(other));
            return Err(Error::invalid_argument(format!(
                "the ranks of a group were given different operations: rank 0 {one:?}, rank {rank} {other:?}"
            )));
        }
    }
    let mut members = Vec::new();
    for asking in round {
        let mut exchanges = Vec::new();
        for operation in &asking.operations {
            operation.exchanges(&asking.stream, n_ranks, &mut exchanges)?;
        }
        members.push(Member {
            context: asking.stream.context.inner().raw(),
            stream: asking.stream.stream.raw(),
            exchanges,
        });
    }
    paired(&members)?;
    let queued = first.stream.context.driver().exchange(&members);
    for asking in round {
        for operation in &asking.operations {
            let buffers = operation.input.iter().chain(&operation.output);
            asking.stream.used(&buffers.collect::<Vec<_>>())?;
        }
    }
    queued?;
    Ok(Chain)
}

/// Returns whether operations of two members are the same, but for what goes from one to another.
fn fit(one: &[Operation], other: &[Operation]) -> bool {
    let of_all = |all: &[Operation]| -> Vec<(OperationKind, Number, usize)> {
        let is_of_all = |one: &&Operation| {
            !matches!(one.kind, OperationKind::Send(_) | OperationKind::Receive(_))
        };
        let key = |one: &Operation| {
            let len = one.output.as_ref().map_or(0, Buffer::len_bytes);
            (one.kind, one.number, len)
        };
        all.iter().filter(is_of_all).map(key).collect()
    };
    let n_before = |all: &[Operation]| -> Vec<usize> {
        let of_all = all.iter().enumerate().filter(|(_, one)| {
            !matches!(one.kind, OperationKind::Send(_) | OperationKind::Receive(_))
        });
        of_all.map(|(index, _)| index).collect()
    };
    of_all(one) == of_all(other) && n_before(one) == n_before(other)
}

/// Checks that each receipt has something sent of its size.
fn paired(members: &[Member]) -> Result<(), Error> {
    let lens = |of: usize, with: usize, is_sent: bool| -> Vec<usize> {
        let exchanges = members[of].exchanges.iter();
        let found = exchanges.filter_map(|exchange| match exchange {
            Exchange::Send {
                len_bytes, peer, ..
            } if is_sent && *peer == with => Some(*len_bytes),
            Exchange::Receive {
                len_bytes, peer, ..
            } if !is_sent && *peer == with => Some(*len_bytes),
            _ => None,
        });
        found.collect()
    };
    for from in 0..members.len() {
        for to in 0..members.len() {
            let (sent, received) = (lens(from, to, true), lens(to, from, false));
            if sent != received {
                return Err(Error::invalid_argument(format!(
                    "the ranks of a group were given different operations: rank {from} sends {sent:?} bytes to rank {to}, which receives {received:?}"
                )));
            }
        }
    }
    Ok(())
}

impl Operation {
    fn lens(&self) -> (usize, usize) {
        let len = |buffer: &Option<Buffer>| buffer.as_ref().map_or(0, Buffer::len_bytes);
        (len(&self.input), len(&self.output))
    }

    fn check(&self, n_ranks: usize) -> Result<(), Error> {
        let (from, to) = self.lens();
        let size = self.number.len_bytes();
        let wrong = |message: &str| Err(Error::invalid_argument(message));
        if !from.is_multiple_of(size) || !to.is_multiple_of(size) {
            return wrong("expected buffers of whole elements");
        }
        match self.kind {
            OperationKind::Reduce(_) if from != to => wrong("Input size must equal output size."),
            OperationKind::Scatter(_) if to.checked_mul(n_ranks) != Some(from) => {
                wrong("Input size must be output size times ranks.")
            }
            OperationKind::Gather if from.checked_mul(n_ranks) != Some(to) => {
                wrong("Output size must be input size times ranks.")
            }
            OperationKind::All if from != to => wrong("Input size must equal output size."),
            OperationKind::All if !(from / size).is_multiple_of(n_ranks) => {
                wrong("Total element count must be exact multiple of comm count.")
            }
            OperationKind::Send(peer) | OperationKind::Receive(peer)
                if usize::try_from(peer).is_ok_and(|peer| peer < n_ranks) =>
            {
                Ok(())
            }
            OperationKind::Send(peer) | OperationKind::Receive(peer) => {
                wrong(&format!("expected a rank below {n_ranks}, found {peer}"))
            }
            _ => Ok(()),
        }
    }

    /// Adds what the driver is to do for it.
    fn exchanges(
        &self,
        stream: &Stream,
        n_ranks: usize,
        to: &mut Vec<Exchange>,
    ) -> Result<(), Error> {
        let buffers: Vec<&Buffer> = self.input.iter().chain(&self.output).collect();
        let at = stream.pointers(&buffers)?;
        let (first, last) = match (at.first(), at.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => return Ok(()),
        };
        let (from_len, to_len) = self.lens();
        let number = self.number;
        let reduce = |reduction, is_scattered| Exchange::Reduce {
            from: first,
            to: last,
            n: to_len / number.len_bytes(),
            number,
            reduction,
            is_scattered,
        };
        match self.kind {
            OperationKind::Reduce(reduction) => to.push(reduce(reduction, false)),
            OperationKind::Scatter(reduction) => to.push(reduce(reduction, true)),
            OperationKind::Gather => to.push(Exchange::Gather {
                from: first,
                to: last,
                len_bytes: from_len,
            }),
            OperationKind::All => {
                let len_bytes = from_len / n_ranks;
                for peer in 0..n_ranks {
                    to.push(Exchange::Send {
                        from: first.offset(peer * len_bytes),
                        len_bytes,
                        peer,
                    });
                }
                for peer in 0..n_ranks {
                    to.push(Exchange::Receive {
                        to: last.offset(peer * len_bytes),
                        len_bytes,
                        peer,
                    });
                }
            }
            OperationKind::Send(peer) => to.push(Exchange::Send {
                from: first,
                len_bytes: from_len,
                peer: usize::try_from(peer).unwrap_or(0),
            }),
            OperationKind::Receive(peer) => to.push(Exchange::Receive {
                to: last,
                len_bytes: to_len,
                peer: usize::try_from(peer).unwrap_or(0),
            }),
        }
        Ok(())
    }
}
