//! Allocators for calls and buffers, beside the system's: profiled, leak-checked, of fixed size,
//! and limited.

mod allocators;
mod block;

pub use allocators::{
    AllocationLog, FixedSizeAllocator, LimitedAllocator, Profile, ProfiledAllocator,
};
pub use block::Block;
