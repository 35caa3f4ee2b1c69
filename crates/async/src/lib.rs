//! Asynchronous values, which may not exist yet, and the work queues that run tasks.
//!
//! An [`AsyncValue`] is a value, a failure, or a handle to a cell that a [`Promise`] will settle
//! with one of these. Whoever may resolve holds the promise, once; readers hold values, as many
//! as they like. Nobody blocks: a reader looks, or leaves a continuation that the resolving
//! thread runs.
//!
//! | To                                   | Use                                                |
//! |--------------------------------------|----------------------------------------------------|
//! | make a value that is there           | [`AsyncValue::available`], [`AnyAsyncValue::new`]   |
//! | make one that is to come             | [`AsyncValue::pending`], [`AnyAsyncValue::pending`] |
//! | settle it                            | [`Promise::resolve`], [`Promise::fail`], [`Promise::forward`] |
//! | look                                 | [`AsyncValue::get`], [`AnyAsyncValue::get`]         |
//! | go on when it is there               | [`AsyncValue::and_then`], [`AsyncValue::map`], `.await` |
//! | go on when several are               | [`when_all`], [`run_when_settled`]                  |
//! | let a type of one's own be a value   | [`Value`]                                           |
//! | know what happened when              | [`record`]                                          |
//! | share bytes that somebody may write  | [`SharedBlock`], [`RangeLock`]                      |
//! | let readers and writers wait for each other | [`RwQueueLock`]                               |
//!
//! What is settled costs nothing: an `i32` lies in the 24 bytes of its [`AnyAsyncValue`], without
//! a cell, a count or an atomic. `docs/async-value.md` specifies the protocol of those that do
//! have a cell.
//!
//! # Where things are
//!
//! `state` holds the atomic words and every transition by name; `cell` the shared cells; `repr`
//! the 24 bytes; `waiter` the continuations and their bounded depth; `memory` the free lists.
//! These have `unsafe`; everything else is safe code above them.

#![deny(unsafe_code)]

#[cfg(debug_assertions)]
mod accounting;
mod any;
#[allow(unsafe_code)]
mod cell;
mod chain;
mod combine;
mod counters;
mod error;
mod future;
#[cfg(all(test, loom))]
mod loom;
#[allow(unsafe_code)]
mod memory;
mod producer;
mod promise;
pub mod queue;
mod range_lock;
pub mod record;
#[allow(unsafe_code)]
mod repr;
mod rw_queue_lock;
mod state;
mod storage;
pub mod sync;
mod value;
#[allow(unsafe_code)]
mod waiter;

pub use any::AnyAsyncValue;
pub use chain::Chain;
pub use combine::{Nested, first_error, run_when_settled, when_all};
pub use counters::{Counters, counters};
pub use error::{ClusterTask, Error, ErrorCode, SourceLocation};
pub use future::{AnyAsyncValueFuture, AsyncValueFuture, ValueRef};
pub use memory::{
    AllocatorStats, Contents, HostAllocator, MemoryStats, SharedBlock, SystemAllocator,
    memory_stats, sweep_memory, trim_memory,
};
#[cfg(not(loom))]
pub use memory::{MemoryUser, register_memory_user};
pub use producer::{Producer, ProducerInfo};
pub use promise::{AnyPromise, Promise};
pub use range_lock::{Hold, RangeLock};
pub use rw_queue_lock::{LockMode, RwHold, RwQueueLock};
pub use storage::{Heap, InPlace, Record, Storage, Value};
pub use value::AsyncValue;
