//! Resources: objects that several calls share and change, found by name.
//!
//! | To | Look at |
//! | --- | --- |
//! | hold a tensor that changes | [`Variable`] |
//! | refer to a resource by a tensor | [`Slot`] |
//! | find resources by name, store and load variables | [`Resources`] |
//! | hold tensors in a row, as a value | [`TensorList`] |
//! | hold tensors at indices, as a resource | [`TensorArray`] |
//! | hold values by keys | [`HashTable`] |
//! | hand tensors from one to another | [`FifoQueue`] |
//!
//! # Who waits for whom
//!
//! A variable has a [lock](Variable::lock) for readers and writers, bound to no thread. Kernels never block on it: they
//! go on when it is theirs. Who takes the locks of several variables takes them by the [numbers](Slot::number) of
//! these, so that two can't wait for each other.

pub mod array;
pub mod list;
pub mod queue;
mod resources;
mod slot;
pub mod table;
mod variable;

pub use array::TensorArray;
pub use list::TensorList;
pub use queue::FifoQueue;
pub use resources::{DEFAULT_CONTAINER, Resources};
pub use slot::{Resource, Slot};
pub use table::HashTable;
pub use variable::{Variable, VariableHolds, is_giving_back, lock_all, try_lock_all};
