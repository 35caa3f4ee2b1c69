//! Allocators for calls and buffers, beside the system's: profiled, leak-checked, of fixed size,
//! and limited; [`HostBuffer`], the bytes of tensors.

mod allocators;
mod block;
mod buffer;
mod owned;
mod reservation;

pub use allocators::{
    AllocationLog, FixedSizeAllocator, LimitedAllocator, Profile, ProfiledAllocator,
    RecordedAllocator,
};
pub use block::Block;
pub use buffer::{BUFFER_ALIGNMENT, HostBuffer, Reading, UninitBuffer, Writing};
pub use owned::{OwnedReading, OwnedWriting};
pub use reservation::MemoryReservation;
