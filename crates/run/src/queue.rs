//! [`QueueOption`]: the work queue that a command line asks for.

use std::str::FromStr;
use std::sync::Arc;

use tfrt_async::Error;
use tfrt_async::queue::{
    ConcurrentWorkQueue, MultiThreadedWorkQueue, PoolOptions, SingleThreadedWorkQueue,
    available_parallelism,
};
use tfrt_async::record::Recorder;
use tfrt_host::DEFAULT_BLOCKING_THREADS;

/// The work queue of a command line: `single`, or `multi[:THREADS[:BLOCKING]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOption {
    /// The thread that waits runs all kernels, always in the same order.
    Single,
    /// Workers, and threads for kernels that block.
    Multi {
        /// Workers; by default one for each processor.
        threads: Option<usize>,
        /// Threads for kernels that block, at most.
        blocking: Option<usize>,
    },
}

impl QueueOption {
    /// The queue if nothing is asked for.
    pub const DEFAULT: QueueOption = QueueOption::Multi {
        threads: None,
        blocking: None,
    };

    /// Starts the queue, whose workers record events if there is a recorder.
    ///
    /// # Errors
    ///
    /// If a thread can't be started.
    pub fn start(
        self,
        recorder: Option<Arc<Recorder>>,
    ) -> Result<Arc<dyn ConcurrentWorkQueue>, Error> {
        let QueueOption::Multi { threads, blocking } = self else {
            return Ok(Arc::new(SingleThreadedWorkQueue::new()));
        };
        let options = PoolOptions::new(
            threads.unwrap_or_else(available_parallelism),
            blocking.unwrap_or(DEFAULT_BLOCKING_THREADS),
        );
        let options = PoolOptions {
            recorder,
            ..options
        };
        Ok(Arc::new(MultiThreadedWorkQueue::with_options(options)?))
    }
}

/// The most threads: more than any machine has use for, and few enough to be started.
const MAX_THREADS: usize = 4096;

impl FromStr for QueueOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let kind = parts.next().unwrap_or_default();
        let mut number = |least: usize| match parts.next() {
            None => Ok(None),
            Some(digits) => match digits.parse() {
                Ok(n) if (least..=MAX_THREADS).contains(&n) => Ok(Some(n)),
                _ => Err(format!(
                    "expected a number from {least} to {MAX_THREADS}, found '{digits}'"
                )),
            },
        };
        let queue = match kind {
            "single" => QueueOption::Single,
            "multi" => QueueOption::Multi {
                threads: number(1)?,
                blocking: number(0)?,
            },
            _ => return Err("expected `single` or `multi[:THREADS[:BLOCKING]]`".to_owned()),
        };
        match parts.next() {
            None => Ok(queue),
            Some(rest) => Err(format!("nothing was expected where ':{rest}' stands")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read() {
        let multi = |threads, blocking| QueueOption::Multi { threads, blocking };
        let cases = [
            ("single", QueueOption::Single),
            ("multi", QueueOption::DEFAULT),
            ("multi:4", multi(Some(4), None)),
            ("multi:4:16", multi(Some(4), Some(16))),
        ];
        for (text, queue) in cases {
            assert_eq!(text.parse(), Ok(queue));
        }
        for text in [
            "",
            "mulit",
            "single:1",
            "multi:",
            "multi:0",
            "multi:1:2:3",
            "multi:99999",
        ] {
            text.parse::<QueueOption>().unwrap_err();
        }
    }
}
