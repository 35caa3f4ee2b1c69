//! [`Stuck`]: the policy of a host for requests that nothing can bring forward.

use std::time::Duration;

/// The time between two looks of a host that only reports.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// The policy for a request that awaits a kernel's result when there is no task, no timer, no thread inside the
/// executor and no promise of a context ([`ExecutionContext::promise`](crate::ExecutionContext::promise)) that could
/// bring it, and nothing has moved between two looks at the host.
///
/// From here a promise that somebody keeps and forgot looks like one that somebody keeps and works on, unless it came
/// from the context. The kernels that come with tfrt take all of theirs from there, or leave them to the work queue. So
/// [`Stuck::FAIL`] is the default of a host that has no others
/// ([`KernelRegistry::is_built_in`](crate::kernel::KernelRegistry::is_built_in)), and [`Stuck::Report`] of one that has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Reports to the diagnostic handler after a second, with the names of the kernels: once for each request, which
    /// goes on waiting.
    Report,
    /// Fails what is awaited with code `Internal`, and the names of the kernels. The host is looked at this often.
    Fail(Duration),
}

impl Stuck {
    /// Fails, and looks every 20 ms.
    pub const FAIL: Stuck = Stuck::Fail(Duration::from_millis(20));

    /// Returns how often the host is looked at.
    pub(crate) fn period(self) -> Duration {
        match self {
            Stuck::Report => REPORT_PERIOD,
            Stuck::Fail(period) => period,
        }
    }
}
