//! Values, queues and memory as other crates use them, in one program of tests. Tests that look at what belongs to the
//! whole process run in one of their own.

#[cfg(not(shuttle))]
mod abort;
#[cfg(all(not(shuttle), debug_assertions, not(tfrt_no_free_lists)))]
mod accounting;
#[cfg(not(shuttle))]
mod allocation;
#[cfg(not(shuttle))]
mod large;
#[cfg(not(shuttle))]
mod leaks;
#[cfg(not(shuttle))]
mod own_process;
#[cfg(not(shuttle))]
mod quiet_start;
#[cfg(shuttle)]
mod shuttle;
