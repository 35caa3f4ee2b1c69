//! Collectives: operations on tensors that all tasks of a group call together: all-reduce, broadcast, all-gather.
//!
//! This is their protocol, without memory, sockets, clocks or threads. A driver feeds events to [`Collectives`]: a call of
//! this task, a message of another, a task that was lost, a time that has come. It is given [`Action`]s back, in order:
//! send these elements, reduce those into that. [`local`] is the driver for tasks that are threads of one process,
//! `participant` that of programs and of [`all_reduce`], over the transport of their context; [`head`] has the bytes of messages.
//!
//! # A collective's way
//!
//! ```text
//! announcing ──all agree──> running ──all elements are there──> confirmed ──all have confirmed──> done
//!     │                        │                                   │                               ▲
//!     └────────────────────────┴──> failed <──nobody was done── asking ──somebody was done─────────┘
//! ```
//!
//! Each member sends its [`Announcement`] (function, type, shape, members) to all others. Up to [`EAGER_BYTES`] the
//! elements travel with it; above, a member sends elements when all have announced, so that nobody receives much before
//! it has called. Up to 16 members each receive their part of the elements from all; more halve and double. Where
//! announcements differ, all members see the same ones, and name the same member.
//!
//! # All members fail or none
//!
//! A member that has its result confirms this to all, and is done when all have confirmed. Before it has confirmed it may
//! fail as it likes, since nobody can be done without it, and tells the others. After that somebody may be done already,
//! so it asks those who are still there: one that is done says so, and then all are; if all ask, all fail. Whoever asks is
//! deaf to confirmations, and to those that it takes for lost. This holds for members that are there; of one that was cut
//! off from the others nobody can say which it was.

use std::fmt;
use std::ops::Range;

use tfrt_async::{ClusterTask, Error};
use tfrt_tensor::DType;

use crate::reduction::Step;

mod announcement;
pub mod arithmetic;
mod call;
mod halving;
pub mod head;
pub mod local;
mod member;
pub(crate) mod memory;
pub(crate) mod participant;
mod plan;
mod table;

pub use announcement::Announcement;
pub use arithmetic::Function;
pub use call::all_reduce;
pub use table::{Collectives, Limits};

/// The most bytes of a member's elements that travel with its announcement, and that all members send to all.
pub const EAGER_BYTES: usize = 16 << 10;

/// The name of a collective: all members call it by the same, and each once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The name of the group.
    pub group: String,
    /// The name of the call in the group.
    pub instance: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' of group '{}'", self.instance, self.group)
    }
}

/// An operation of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reduces the leaves of all members; each member gets the result.
    AllReduce {
        /// The function of two values.
        function: Function,
        /// The number of values in all, which the members have in runs ([`ReductionTree::leaves_of`]).
        ///
        /// [`ReductionTree::leaves_of`]: crate::reduction::ReductionTree::leaves_of
        leaves: usize,
        /// The order in which they are reduced.
        order: Order,
    },
    /// Gives a member's tensor to all members.
    Broadcast {
        /// The member, by its number in the group.
        sender: usize,
    },
    /// Joins the tensors of all members along an axis, in the order of the members; each member gets the result.
    AllGather {
        /// The axis.
        axis: usize,
        /// Whether the tensors may differ in their extent along the axis.
        any_shape: bool,
    },
}

impl Operation {
    /// Returns the name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::AllReduce { .. } => "all-reduce",
            Operation::Broadcast { .. } => "broadcast",
            Operation::AllGather { .. } => "all-gather",
        }
    }
}

/// The order in which values are reduced, which is part of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The tree of [`reduction`](crate::reduction): any number of members gives the same bits.
    Tree,
    /// From member to member, as a ring does it: the bits depend on the number of members.
    Ring,
}

/// A call of a collective by a member.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name.
    pub key: Key,
    /// The members of the group, in their order.
    pub members: Vec<ClusterTask>,
    /// The operation.
    pub operation: Operation,
    /// The type of the elements.
    pub dtype: DType,
    /// The extents of this member's tensor; of an all-reduce those of each leaf, of a broadcast those of the result.
    pub extents: Vec<usize>,
    /// The extents of the result of a gathering of fixed shapes, which are known before.
    pub result_extents: Option<Vec<usize>>,
    /// The time until which the collective has to be done, in the driver's clock.
    pub deadline: std::time::Duration,
}

/// Elements as they arrive: a handle of bytes, in the driver's memory.
pub trait Payload: Clone {
    /// Returns the number of bytes.
    fn len_bytes(&self) -> usize;
}

/// A message from a member to another; `D` is what it holds of elements: where they are to be found when it is sent, a
/// [`Payload`] when it arrives.
#[derive(Clone, Debug)]
pub enum Message<D> {
    /// A member has called; its elements come later.
    Announce(Announcement),
    /// Elements.
    Piece {
        /// The announcement, where it travels with the elements.
        announcement: Option<Announcement>,
        /// Which elements.
        piece: Piece,
        /// The elements.
        data: D,
    },
    /// The sender has its result.
    Confirm,
    /// The sender wants to fail: was anybody done?
    Ask {
        /// The members that the sender takes for lost.
        lost: Vec<ClusterTask>,
        /// Why it wants to fail.
        error: Error,
    },
    /// The collective has failed, and nobody is done.
    Failed(Error),
    /// The sender is done, so all members have their results.
    Completed,
}

/// The name of elements within a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Piece {
    /// A member's share of a unit, still to be reduced; of a ring, what has been reduced so far.
    Part(u32),
    /// A unit of the result.
    Result(u32),
}

/// Memory of a member's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The tensor of this number that the caller gave: an all-reduce has one for each leaf of this member, an all-gather
    /// one, a broadcast none.
    Input(usize),
    /// Memory of the driver for this collective, as large as the result, of this number.
    Scratch(usize),
    /// The result; of a broadcast's sender, it holds the elements from the beginning.
    Result,
}

/// A run of elements in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The memory.
    pub memory: Memory,
    /// The elements.
    pub elements: Range<usize>,
}

/// Elements that are read.
#[derive(Clone, Debug)]
pub enum Source<P> {
    /// Elements in memory.
    Span(Span),
    /// Elements that have arrived: a run of those of the payload.
    Arrived(P, Range<usize>),
}

/// Work for the driver.
#[derive(Clone, Debug)]
pub enum Action<P> {
    /// Send a message, and with it these elements, one run behind the other.
    ///
    /// A driver copies elements of up to [`EAGER_BYTES`]. Longer ones it may lend: the member does not write over them before
    /// the receiver has read them.
    Send {
        /// The receiver.
        to: ClusterTask,
        /// The message.
        message: Message<Vec<Span>>,
    },
    /// Make memory for the result, of these extents: of all-gathers of any shape alone.
    Allocate {
        /// The extents.
        extents: Vec<usize>,
    },
    /// Reduce values into memory ([`arithmetic::reduce`]).
    Reduce {
        /// The memory of the result.
        into: Span,
        /// The values.
        values: Vec<Source<P>>,
        /// The order.
        steps: Vec<Step>,
        /// The function.
        function: Function,
        /// The number of leaves in all, in the last reduction of the elements.
        n_terms: Option<usize>,
    },
    /// Copy elements into the result: `n_blocks` blocks of `block_len` elements, of which the first goes to `offset`, and
    /// each other `stride` elements behind the one before.
    Place {
        /// The elements.
        from: Source<P>,
        /// The number of blocks.
        n_blocks: usize,
        /// The elements of a block.
        block_len: usize,
        /// The place of the first block.
        offset: usize,
        /// The distance of blocks.
        stride: usize,
    },
    /// The collective is done: the result holds what it should. The last action.
    Done,
    /// The collective has failed on all members; what the result holds is unspecified. The last action.
    Failed(Error),
}

impl<D> Message<D> {
    /// Returns the message with other elements.
    pub fn map<E>(self, elements: impl FnOnce(D) -> E) -> Message<E> {
        match self {
            Message::Announce(announcement) => Message::Announce(announcement),
            Message::Piece {
                announcement,
                piece,
                data,
            } => Message::Piece {
                announcement,
                piece,
                data: elements(data),
            },
            Message::Confirm => Message::Confirm,
            Message::Ask { lost, error } => Message::Ask { lost, error },
            Message::Failed(error) => Message::Failed(error),
            Message::Completed => Message::Completed,
        }
    }
}
