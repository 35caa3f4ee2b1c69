//! [`Membership`]: a task among others, from the context that they have together to its leaving.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tfrt_async::{Chain, ClusterTask};
use tfrt_host::Error;

use super::awaited;
use super::meeting::{Meeting, Stopper};
use crate::context::{ContextConfig, ContextRef};
use crate::message::Payload;
use crate::server::Server;
use crate::start::close_remote_contexts;
use crate::transport::Bounds;

/// The longest time that a task which ends waits for the others to hear it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A task that has met the others: they have a context together.
pub struct Membership {
    server: Server,
    meeting: Arc<Meeting>,
    context: ContextRef,
}

impl Membership {
    pub(super) fn new(server: Server, meeting: Arc<Meeting>, context: ContextRef) -> Membership {
        Membership {
            server,
            meeting,
            context,
        }
    }

    /// Returns the context of the tasks.
    pub fn context(&self) -> &ContextRef {
        &self.context
    }

    /// Returns whether this task leads.
    pub fn is_lead(&self) -> bool {
        let config = self.context.config();
        *config.cluster.lead() == config.task
    }

    /// Returns a switch that ends [`serve`](Self::serve).
    pub fn stopper(&self) -> Stopper {
        self.meeting.stopper()
    }

    /// Answers other tasks until the lead says bye.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the lead is lost; the reason of a [`Stopper`].
    pub fn serve(&self) -> Result<(), Error> {
        let host = self.server.handle().host().clone();
        let ended = awaited(&host, &self.meeting.ended, None);
        // The lead waits for an answer to its bye.
        if matches!(ended, Some(Ok(_))) {
            let until = host.now() + LAST_WORDS;
            awaited(&host, &self.meeting.gone, Some(until));
        }
        ended.unwrap_or(Ok(Chain)).map(|_| ())
    }

    /// Leaves together with the others, where each task runs a part of one program: none goes before all have called this,
    /// which some have to do to hear how the last collective ended. Those that are lost are not waited for.
    pub fn finish(self, at_most: Duration) {
        let host = self.context.host().clone();
        let until = Some(host.now() + at_most);
        let name = |task: &ClusterTask| format!("\0finished {task}");
        let ContextConfig { cluster, task } = self.context.config();
        if self.is_lead() {
            let others = self.context.other_tasks();
            let finished = others.map(|(other, task)| self.context.receive(other, &name(task)));
            for finished in finished.collect::<Vec<_>>() {
                awaited(&host, &finished, until);
            }
        } else if let Ok(lead) = self.context.handle_of(cluster.lead()) {
            let bounds = Bounds {
                deadline: until,
                ..Bounds::default()
            };
            let told = self
                .context
                .send(lead, &name(task), Payload::default(), bounds);
            if let Some(Ok(_)) = awaited(&host, &told, until) {
                awaited(&host, &self.meeting.ended, until);
            }
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.is_lead() && !self.context.has_ended() {
            let host = self.context.host().clone();
            let until = host.now() + LAST_WORDS;
            // Those that are lost hear nothing.
            drop(awaited(
                &host,
                &close_remote_contexts(&self.context),
                Some(until),
            ));
        }
        self.server.close();
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Membership").field(&self.context).finish()
    }
}
