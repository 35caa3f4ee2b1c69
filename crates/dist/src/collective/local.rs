//! Collectives among threads of one process, over channels; and tensors in vectors, on which a driver does its actions.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tfrt_async::{ClusterTask, Error};
use tfrt_tensor::math::number::Real;

use super::arithmetic::{self, Value};
use super::{
    Action, Call, Collectives, Key, Limits, Memory, Message, Operation, Payload, Source, Span,
};

/// Elements that several hold.
#[derive(Clone, Debug)]
pub struct Elements<T>(Arc<Vec<T>>);

impl<T> Elements<T> {
    /// Returns the elements.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }
}

impl<T: Clone> Payload for Elements<T> {
    fn len_bytes(&self) -> usize {
        self.0.len() * size_of::<T>()
    }
}

/// The tensors of a collective, in vectors.
#[derive(Debug)]
pub struct Tensors<T> {
    inputs: Vec<Vec<T>>,
    scratch: Vec<Vec<T>>,
    result: Vec<T>,
    extents: Vec<usize>,
    /// Whether the result is the first input, too, which then lies nowhere else.
    is_in_place: bool,
}

impl<T: Real> Tensors<T> {
    /// Makes them of a member's inputs and the result; of a broadcast's sender the result holds what it sends.
    pub fn new(inputs: Vec<Vec<T>>, result: Vec<T>, extents: Vec<usize>) -> Tensors<T> {
        Tensors {
            inputs,
            scratch: Vec::new(),
            result,
            extents,
            is_in_place: false,
        }
    }

    /// Makes them of a member that reduces one leaf, over which the result is written.
    pub fn in_place(leaf: Vec<T>, extents: Vec<usize>) -> Tensors<T> {
        Tensors {
            is_in_place: true,
            ..Tensors::new(Vec::new(), leaf, extents)
        }
    }

    /// Returns the result and its extents.
    pub fn into_result(self) -> (Vec<T>, Vec<usize>) {
        (self.result, self.extents)
    }

    /// Returns elements as they are sent.
    pub fn gather(&self, spans: &[Span]) -> Elements<T> {
        let spans = spans.iter().map(|span| self.span(span));
        let parts: Vec<&[T]> = spans.collect();
        Elements(Arc::new(parts.concat()))
    }

    /// Does an action that concerns memory alone.
    ///
    /// # Panics
    ///
    /// If the action reads or writes past the tensors' ends.
    pub fn act(&mut self, action: Action<Elements<T>>) {
        match action {
            Action::Allocate { extents } => {
                self.result = vec![T::ZERO; extents.iter().product()];
                self.extents = extents;
            }
            Action::Reduce {
                into,
                values,
                steps,
                function,
                n_terms,
            } => {
                let mut target = self.take(&into);
                let is_over = |value: &Source<Elements<T>>| match value {
                    Source::Span(span) => {
                        let is_same = self.is_in_place && span.memory == Memory::Input(0);
                        let is_result = is_same || span.memory == Memory::Result;
                        is_result && into.memory == Memory::Result
                    }
                    Source::Arrived(..) => false,
                };
                let values = values.iter().map(|value| match is_over(value) {
                    true => Value::Result,
                    false => Value::Elements(self.read(value)),
                });
                let values: Vec<Value<'_, T>> = values.collect();
                let result = &mut target[into.elements.clone()];
                arithmetic::reduce(function, &steps, &values, result, n_terms);
                match into.memory {
                    Memory::Scratch(index) => self.scratch[index] = target,
                    _ => self.result = target,
                }
            }
            Action::Place {
                from,
                n_blocks,
                block_len,
                offset,
                stride,
            } => {
                let mut result = std::mem::take(&mut self.result);
                let elements = self.read(&from);
                for block in 0..n_blocks {
                    let (at, source) = (offset + block * stride, block * block_len);
                    let source = &elements[source..source + block_len];
                    result[at..at + block_len].copy_from_slice(source);
                }
                self.result = result;
            }
            Action::Send { .. } | Action::Done | Action::Failed(_) => (),
        }
    }

    fn take(&mut self, into: &Span) -> Vec<T> {
        let Memory::Scratch(index) = into.memory else {
            return std::mem::take(&mut self.result);
        };
        if self.scratch.len() <= index {
            self.scratch.resize(index + 1, Vec::new());
        }
        let mut scratch = std::mem::take(&mut self.scratch[index]);
        scratch.resize(scratch.len().max(into.elements.end), T::ZERO);
        scratch
    }

    fn read<'t>(&'t self, source: &'t Source<Elements<T>>) -> &'t [T] {
        match source {
            Source::Arrived(elements, range) => &elements.0[range.clone()],
            Source::Span(span) => self.span(span),
        }
    }

    fn span(&self, span: &Span) -> &[T] {
        let memory = match span.memory {
            Memory::Input(0) if self.is_in_place => &self.result,
            Memory::Input(index) => &self.inputs[index],
            Memory::Scratch(index) => &self.scratch[index],
            Memory::Result => &self.result,
        };
        &memory[span.elements.clone()]
    }
}

/// A message on the way to a thread.
type Mail<T> = (ClusterTask, Letter<T>);

enum Letter<T> {
    Message(Key, Message<Elements<T>>),
    /// The sender takes part in nothing any more.
    Gone,
}

/// A member of a group of threads, which calls collectives one at a time and waits for each.
///
/// One that is dropped, for instance since its thread panics, is lost to the others: what they call then fails.
pub struct Communicator<T: Real> {
    members: Vec<ClusterTask>,
    me: usize,
    collectives: Collectives<Elements<T>>,
    inbox: Receiver<Mail<T>>,
    outboxes: Vec<Sender<Mail<T>>>,
    begin: Instant,
    n_calls: u64,
    timeout: Duration,
}

/// Makes a group of threads, a communicator for each; `timeout` bounds each of their calls.
pub fn group<T: Real>(n_members: usize, timeout: Duration) -> Vec<Communicator<T>> {
    let task = |task| ClusterTask {
        job: "thread".to_owned(),
        task,
    };
    let members: Vec<ClusterTask> = (0..).take(n_members).map(task).collect();
    let (outboxes, inboxes): (Vec<_>, Vec<_>) = members.iter().map(|_| channel()).unzip();
    let begin = Instant::now();
    let inboxes = inboxes.into_iter().enumerate();
    let communicators = inboxes.map(|(me, inbox)| Communicator {
        collectives: Collectives::new(members[me].clone(), Limits::default()),
        members: members.clone(),
        me,
        inbox,
        outboxes: outboxes.clone(),
        begin,
        n_calls: 0,
        timeout,
    });
    communicators.collect()
}

impl<T: Real> Communicator<T> {
    /// Returns the number of this member.
    pub fn rank(&self) -> usize {
        self.me
    }

    /// Returns the number of members.
    pub fn n_members(&self) -> usize {
        self.members.len()
    }

    /// Calls a collective as all members do, each the same ones in the same order, and waits for it. Returns the result
    /// and its extents.
    ///
    /// `result` has the elements that a broadcast sends; else it is memory, as large as the result.
    ///
    /// # Errors
    ///
    /// Those that the members have together: `InvalidArgument` if they do not agree, `Unavailable` if one is lost,
    /// `DeadlineExceeded`. And `InvalidArgument` if the inputs are not as many or as large as the call says.
    pub fn call(
        &mut self,
        operation: Operation,
        extents: &[usize],
        inputs: Vec<Vec<T>>,
        result: Vec<T>,
    ) -> Result<(Vec<T>, Vec<usize>), Error> {
        self.n_calls += 1;
        let wrong = self.check(&operation, extents, &inputs, &result).err();
        let mut result_extents = extents.to_vec();
        if let Operation::AllGather { axis, .. } = operation
            && let Some(extent) = result_extents.get_mut(axis)
        {
            *extent *= self.members.len();
        }
        let key = Key {
            group: "all".to_owned(),
            instance: self.n_calls.to_string(),
        };
        let begun = self.collectives.begin(Call {
            key: key.clone(),
            members: self.members.clone(),
            operation,
            dtype: T::DTYPE,
            extents: extents.to_vec(),
            result_extents: Some(result_extents.clone()),
            deadline: self.begin.elapsed() + self.timeout,
        })?;
        let mut tensors = Tensors::new(inputs, result, result_extents);
        let mut actions = match wrong {
            None => begun,
            // The others fail, too; elements that are not there are not sent.
            Some(error) => {
                let actions = self.collectives.cancel(&key, &error);
                self.act(&key, actions, &mut tensors);
                return Err(error);
            }
        };
        loop {
            if let Some(ended) = self.act(&key, actions, &mut tensors) {
                return ended.map(|()| tensors.into_result());
            }
            let now = self.begin.elapsed();
            let deadline = self.collectives.next_deadline().unwrap_or(now);
            actions = match self.inbox.recv_timeout(deadline.saturating_sub(now)) {
                Ok((from, Letter::Message(key, message))) => {
                    self.collectives.arrived(&from, &key, message)
                }
                Ok((from, Letter::Gone)) => {
                    let reason = Error::unavailable(format!("task {from} is lost"));
                    self.collectives.lost(&from, &reason)
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.collectives.expire(self.begin.elapsed())
                }
            };
        }
    }

    /// Checks what the protocol takes for granted.
    fn check(
        &self,
        operation: &Operation,
        extents: &[usize],
        inputs: &[Vec<T>],
        result: &[T],
    ) -> Result<(), Error> {
        let n_elements: usize = extents.iter().product();
        let n_inputs = match operation {
            Operation::AllReduce { leaves, .. } => {
                let tree = crate::reduction::ReductionTree::new(*leaves);
                tree.leaves_of(self.me, self.members.len()).len()
            }
            Operation::Broadcast { .. } => 0,
            Operation::AllGather { .. } => 1,
        };
        let n_result = match operation {
            Operation::AllGather { any_shape, .. } if *any_shape => result.len(),
            Operation::AllGather { .. } => n_elements * self.members.len(),
            _ => n_elements,
        };
        let wrong = inputs.iter().find(|input| input.len() != n_elements);
        let (found, expected) = match wrong {
            Some(input) => (input.len(), n_elements),
            None if inputs.len() != n_inputs => (inputs.len(), n_inputs),
            None => (result.len(), n_result),
        };
        if found == expected {
            return Ok(());
        }
        let what = match wrong {
            Some(_) => "elements of each input",
            None if inputs.len() != n_inputs => "inputs",
            None => "elements of the result",
        };
        Err(Error::invalid_argument(format!(
            "expected {expected} {what}, found {found}"
        )))
    }

    /// Does actions; returns how the collective has ended, if it has.
    fn act(
        &self,
        key: &Key,
        actions: Vec<(Key, Action<Elements<T>>)>,
        tensors: &mut Tensors<T>,
    ) -> Option<Result<(), Error>> {
        let mut ended = None;
        for (of, action) in actions {
            match action {
                Action::Send { to, message } => {
                    let message = message.map(|spans| tensors.gather(&spans));
                    let to = self.members.iter().position(|member| *member == to);
                    let from = self.members[self.me].clone();
                    if let Some(to) = to {
                        // Who is gone has said so.
                        let _ = self.outboxes[to].send((from, Letter::Message(of, message)));
                    }
                }
                Action::Done if of == *key => ended = Some(Ok(())),
                Action::Failed(error) if of == *key => ended = Some(Err(error)),
                action => tensors.act(action),
            }
        }
        ended
    }
}

impl<T: Real> Drop for Communicator<T> {
    fn drop(&mut self) {
        for outbox in &self.outboxes {
            // Who is gone does not need to know.
            let _ = outbox.send((self.members[self.me].clone(), Letter::Gone));
        }
    }
}
