//! Joining a collective: a member waits for its operands, and tells the others at once if they will not come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_async::{ClusterTask, HostAllocator, Promise};
use tfrt_host::{
    AnyAsyncValue, AsyncValue, CancellationHook, Error, ExecutionContext, RequestContext,
};
use tfrt_tensor::{DType, Tensor};

use crate::collective::memory::Tensors;
use crate::collective::{Call, Key, Operation};
use crate::context::ContextRef;

/// The operands that say which collective it is, and who its members are.
pub(super) struct Names {
    pub context: AsyncValue<ContextRef>,
    pub group: AsyncValue<String>,
    pub instance: AsyncValue<String>,
}

/// A member's part in a collective.
pub(super) struct Part {
    pub operation: Operation,
    pub extents: Vec<usize>,
    pub result_extents: Option<Vec<usize>>,
    pub tensors: Tensors,
}

/// The surroundings in which a part is made, once all operands are there.
#[derive(Clone, Copy)]
pub(super) struct Ready<'r> {
    pub context: &'r ContextRef,
    pub group: &'r str,
    pub members: &'r [ClusterTask],
    pub allocator: &'r Arc<dyn HostAllocator>,
}

type MakePart = Box<dyn FnOnce(Ready<'_>) -> Result<Part, Error> + Send>;

/// Joins a collective when all operands are there; `part` then makes this member's part of them. If one fails before, or
/// the request is stopped, the collective fails on all members, with that error and this task's name. What is wrong with
/// the part fails it on all, too.
pub(super) fn join(
    names: Names,
    operands: Vec<AnyAsyncValue>,
    dtype: DType,
    part: impl FnOnce(Ready<'_>) -> Result<Part, Error> + Send + 'static,
    execution: &ExecutionContext,
) -> AsyncValue<Tensor> {
    // No promise of the request's: one whose operands never come is to be found stuck.
    let (promise, result) = AsyncValue::pending();
    let named = [
        names.context.as_any().clone(),
        names.group.as_any().clone(),
        names.instance.as_any().clone(),
    ];
    let awaited: Vec<AnyAsyncValue> = named.into_iter().chain(operands.iter().cloned()).collect();
    let joining = Arc::new(Joining {
        names,
        operands,
        request: execution.request().clone(),
        state: Mutex::new(State {
            waiting: Some(Waiting {
                part: Box::new(part),
                dtype,
                promise,
            }),
            hook: None,
        }),
    });
    let weak = Arc::downgrade(&joining);
    let hook = execution.request().on_cancel(move |reason| {
        if let Some(joining) = weak.upgrade() {
            joining.stop(reason);
        }
    });
    joining.lock().hook = Some(hook);
    for value in awaited.iter().filter(|value| !value.is_settled()) {
        let joining = joining.clone();
        value.and_then(move || joining.look());
    }
    joining.look();
    result
}

/// A member that waits for its operands, or has joined.
struct Joining {
    names: Names,
    operands: Vec<AnyAsyncValue>,
    request: Arc<RequestContext>,
    state: Mutex<State>,
}

struct State {
    /// The work that is left; it is taken once.
    waiting: Option<Waiting>,
    /// Hears that the request is stopped.
    hook: Option<CancellationHook>,
}

struct Waiting {
    part: MakePart,
    dtype: DType,
    promise: Promise<Tensor>,
}

/// The collective, by its operands.
struct Named<'n> {
    context: &'n ContextRef,
    group: &'n String,
    instance: &'n String,
}

impl Joining {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on if all operands are there, or one has failed and it is known whom to tell.
    fn look(self: &Arc<Self>) {
        let names = [
            self.names.context.as_any(),
            self.names.group.as_any(),
            self.names.instance.as_any(),
        ];
        if let Some(error) = names.iter().find_map(|name| name.error()) {
            // Nobody knows who the others are.
            return self.end(Err(error.clone()));
        }
        let Some(named) = self.named() else { return };
        let failed = self.operands.iter().find_map(AnyAsyncValue::error);
        let is_complete = self.operands.iter().all(AnyAsyncValue::is_settled);
        if failed.is_none() && !is_complete {
            return;
        }
        let Some(waiting) = self.take() else { return };
        self.begin(&named, waiting, failed.cloned());
    }

    /// Returns the names, if all are there.
    fn named(&self) -> Option<Named<'_>> {
        Some(Named {
            context: self.names.context.get()?.ok()?,
            group: self.names.group.get()?.ok()?,
            instance: self.names.instance.get()?.ok()?,
        })
    }

    fn take(&self) -> Option<Waiting> {
        self.lock().waiting.take()
    }

    /// Hears that the request is stopped.
    fn stop(self: &Arc<Self>, reason: &Error) {
        match (self.take(), self.named()) {
            (Some(waiting), Some(named)) => self.begin(&named, waiting, Some(reason.clone())),
            (Some(waiting), None) => waiting.promise.fail(reason.clone()),
            (None, Some(named)) => {
                let collectives = named.context.collectives();
                collectives.cancel(named.key(), reason.clone());
            }
            (None, None) => (),
        }
    }

    /// Ends without having joined, if it has not.
    fn end(&self, outcome: Result<Tensor, Error>) {
        let Some(waiting) = self.take() else { return };
        let hook = self.lock().hook.take();
        drop(hook);
        waiting.promise.complete(outcome);
    }

    /// Joins the collective, or fails it on all members for a reason.
    fn begin(self: &Arc<Self>, named: &Named<'_>, waiting: Waiting, failed: Option<Error>) {
        let context = named.context;
        let members = context.group(named.group).and_then(|members| {
            let names = members.into_iter();
            let names = names.map(|member| context.task_name(member).cloned());
            names.collect::<Result<Vec<ClusterTask>, Error>>()
        });
        let Waiting {
            part,
            dtype,
            promise,
        } = waiting;
        let members = match members {
            Ok(members) => members,
            Err(error) => {
                let hook = self.lock().hook.take();
                drop(hook);
                return promise.fail(failed.unwrap_or(error));
            }
        };
        let ready = Ready {
            context,
            group: named.group,
            members: &members,
            allocator: context.host().allocator(),
        };
        let part = match failed {
            Some(error) => Err(error),
            None => part(ready),
        };
        let collectives = context.collectives();
        // The others bring it forward.
        let guard = self.request.external();
        let done = match part {
            Ok(part) => {
                let call = Call {
                    key: named.key(),
                    members,
                    operation: part.operation,
                    dtype,
                    extents: part.extents,
                    result_extents: part.result_extents,
                    deadline: collectives.deadline(self.request.deadline()),
                };
                collectives.call(call, part.tensors)
            }
            Err(error) => collectives.refuse(named.key(), members, error),
        };
        if let Some(reason) = self.request.cancellation() {
            // Whoever stopped it may have found nothing to cancel yet.
            collectives.cancel(named.key(), reason.clone());
        }
        // The context is held, which keeps its servers alive, and whoever hears of the request's end.
        let held = self.clone();
        done.when_settled(move |done| {
            let hook = held.lock().hook.take();
            drop(hook);
            promise.forward(done);
            drop((guard, held));
        });
    }
}

impl Named<'_> {
    fn key(&self) -> Key {
        Key {
            group: self.group.clone(),
            instance: self.instance.clone(),
        }
    }
}
