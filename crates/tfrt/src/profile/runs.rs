//! The kernels that ran, over all threads, in the order of their beginnings.

use tfrt_host::record::{EventKind, FunctionId, Recording};

use super::{Activity, Profile, Slice};

/// A kernel that ran. Runs are numbered in the order of their beginnings.
pub struct Run {
    pub begin_ns: u64,
    pub end_ns: u64,
    pub function: FunctionId,
    pub kernel: u32,
    pub call: u64,
    pub thread: usize,
    pub slice: usize,
    pub is_critical: bool,
}

/// All runs of kernels that the profile knows.
pub fn runs(profile: &Profile, recording: &Recording) -> Vec<Run> {
    let mut runs = Vec::new();
    for (thread, (named, recorded)) in profile.threads.iter().zip(&recording.threads).enumerate() {
        let mut slices = named.slices.iter().enumerate().peekable();
        for event in &recorded.events {
            // Kernels of other programs have an event, but no slice.
            let is_same =
                |slice: &Slice| (slice.begin_ns, slice.end_ns) == (event.begin_ns, event.end_ns);
            let Some((index, slice)) = slices.next_if(|(_, slice)| is_same(slice)) else {
                continue;
            };
            if let (EventKind::Kernel { function, call, .. }, Activity::Kernel(kernel)) =
                (event.kind, slice.activity)
            {
                runs.push(Run {
                    begin_ns: slice.begin_ns,
                    end_ns: slice.end_ns,
                    function,
                    kernel: profile.kernels[kernel].number,
                    call,
                    thread,
                    slice: index,
                    is_critical: slice.critical_path.is_some(),
                });
            }
        }
    }
    runs.sort_by_key(|run| (run.begin_ns, run.end_ns));
    runs
}
