//! Threads of queues that only begin count as nothing in the counters of a process.

use std::time::Duration;

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, Task, TimerQueue};
use tfrt_async::{counters, memory_stats};

use crate::own_process::in_own_process;

#[test]
fn threads_that_begin_change_no_count() {
    in_own_process(
        "quiet_start::threads_that_begin_change_no_count",
        begin_many_threads,
    );
}

fn begin_many_threads() {
    let before = (counters().live_cells, memory_stats().live_blocks);
    for _ in 0..50 {
        let queue = MultiThreadedWorkQueue::new(4, 1).unwrap();
        let timers = TimerQueue::new();
        timers.schedule_after(Duration::ZERO, || ());
        let task = queue.add_blocking_task(Task::new(|| ()), true);
        assert!(task.is_ok());
        for _ in 0..2_000 {
            let now = (counters().live_cells, memory_stats().live_blocks);
            assert_eq!(now, before);
        }
    }
}
