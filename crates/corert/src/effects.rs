//! [`ResourceOrder`]: the order of calls that read or change resources, for each resource by itself.
//!
//! A call that changes a resource begins when all earlier calls on that resource are done, one that reads it when the
//! earlier changes are: of all contexts of the runtime. Calls that say so change a resource beside such calls of other
//! contexts ([`Op::shares_resources`](crate::Op::shares_resources)). Calls on different resources are not ordered, so that the steps
//! of a hundred variables run side by side. A call that fails later fails its own results alone: what comes after it
//! finds the resource as it is. The first such failure of a context is told by
//! [`Context::effects`](crate::Context::effects).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, DType, Error, when_all};
use tfrt_tensor::Tensor;
use tfrt_tensor::resource::Slot;

use crate::inputs::Inputs;

/// How a call's effects are ordered among those of other calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectOrder {
    /// After those of all earlier calls of this kind.
    OfContext,
    /// After those of earlier calls on the same resources.
    OfResources {
        /// Whether the call may change the resources that it is given.
        writes: bool,
        /// Whether the call may take a place in the resource, where it waits for other calls. It is ordered among the
        /// calls of its context alone, and later ones begin when it has its place.
        waits: bool,
    },
}

/// The use that a call makes of its resources.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceUse {
    /// It reads them.
    Reads,
    /// It changes them, and nobody else uses them meanwhile.
    Changes,
    /// It changes them, beside such calls of other contexts. The context, by a number.
    Shares(usize),
}

impl ResourceUse {
    /// Returns whether a call waits for an earlier one.
    fn comes_after(self, earlier: ResourceUse) -> bool {
        match (self, earlier) {
            (ResourceUse::Reads, ResourceUse::Reads) => false,
            (ResourceUse::Shares(own), ResourceUse::Shares(other)) => own == other,
            _ => true,
        }
    }
}

/// The order of the calls of a runtime on resources.
#[derive(Default)]
pub(crate) struct ResourceOrder(Mutex<State>);

#[derive(Default)]
struct State {
    /// The calls on a resource that are not known to be done, by the number of its slot.
    of: HashMap<u64, Vec<Pending>>,
    /// Calls on resources that were not known when the calls were made: all later calls wait for them.
    of_any: Vec<Pending>,
    /// The number of resources from which on those are forgotten whose calls are done.
    n_many: usize,
}

/// A call that may not be done.
struct Pending {
    done: AsyncValue<Chain>,
    how: ResourceUse,
}

/// The resources of a call; `None` if a handle is to come.
type Slots = Option<SmallVec<[u64; 4]>>;

/// The place of a call in the order.
pub(crate) enum Place {
    /// Nothing is in the way, and all inputs are there.
    Free(SmallVec<[u64; 4]>),
    /// After this chain, which does not fail. The promise is kept when the call is done.
    After(AsyncValue<Chain>, tfrt_host::Promise<Chain>),
}

impl ResourceOrder {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the place of a call among the others. `begin` is called as it is taken.
    ///
    /// Calls that others make while a call runs that somebody observes come after it.
    pub(crate) fn place(
        &self,
        inputs: &Inputs<'_>,
        how: ResourceUse,
        is_observed: bool,
        begin: impl FnOnce(),
    ) -> Place {
        let slots = slots_of(inputs);
        let is_there = inputs
            .iter()
            .all(|input| matches!(input.tensor(), Some(Ok(_))));
        let mut state = self.lock();
        begin();
        let mut before: SmallVec<[AsyncValue<Chain>; 4]> = SmallVec::new();
        state.collect(slots.as_deref(), how, &mut before);
        if let Some(slots) = &slots
            && before.is_empty()
            && is_there
            && !is_observed
        {
            return Place::Free(slots.clone());
        }
        let (promise, done) = AsyncValue::pending();
        state.put(slots.as_deref(), &done, how);
        drop(state);
        let before = match &before[..] {
            [] => AsyncValue::available(Chain),
            [one] => one.clone(),
            all => when_all(
                &all.iter()
                    .map(|one| one.as_any().clone())
                    .collect::<Vec<_>>(),
            ),
        };
        Place::After(before, promise)
    }

    /// Notes that a call goes on that had nothing in its way. `done` does not fail.
    pub(crate) fn go_on(&self, slots: &[u64], done: &AsyncValue<Chain>, how: ResourceUse) {
        let mut state = self.lock();
        state.forget();
        // Others may have come meanwhile: these are before it, or after.
        for slot in slots {
            let done = done.clone();
            let all = state.of.entry(*slot).or_default();
            all.push(Pending { done, how });
        }
    }
}

/// The calls of a context on resources that are not known to be done. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct PendingEffects(Arc<Mutex<Effects>>);

#[derive(Default)]
struct Effects {
    /// Chains that do not fail.
    pending: Vec<AsyncValue<Chain>>,
    /// The first failure of a call.
    failed: Option<Error>,
}

impl fmt::Debug for PendingEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pending", self.lock().pending.len())
    }
}

impl PendingEffects {
    fn lock(&self) -> MutexGuard<'_, Effects> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number that clones have in common, and no others.
    pub(crate) fn number(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Returns a chain that resolves when another settles, whose failure is kept.
    pub(crate) fn watch(&self, done: AsyncValue<Chain>) -> AsyncValue<Chain> {
        if let Some(outcome) = done.get() {
            if let Err(error) = outcome {
                self.lock().failed.get_or_insert_with(|| error.clone());
            }
            return AsyncValue::available(Chain);
        }
        let (promise, after) = AsyncValue::pending();
        let mut effects = self.lock();
        effects.pending.retain(|one| !one.is_settled());
        effects.pending.push(after.clone());
        drop(effects);
        let own = self.clone();
        done.when_settled(move |done| {
            if let Some(error) = done.error() {
                own.lock().failed.get_or_insert_with(|| error.clone());
            }
            promise.resolve(Chain);
        });
        after
    }

    /// Returns a chain that resolves when all calls so far are done; it fails with the first that failed.
    pub(crate) fn all(&self) -> AsyncValue<Chain> {
        let mut effects = self.lock();
        effects.pending.retain(|one| !one.is_settled());
        let pending: Vec<_> = effects
            .pending
            .iter()
            .map(|one| one.as_any().clone())
            .collect();
        let failed = |effects: &Effects| match &effects.failed {
            Some(error) => AsyncValue::from_error(error.clone()),
            None => AsyncValue::available(Chain),
        };
        if pending.is_empty() {
            return failed(&effects);
        }
        drop(effects);
        let own = self.clone();
        when_all(&pending).and_then_value(move |_| failed(&own.lock()))
    }
}

impl State {
    /// Adds what a call waits for, and forgets what is done. Without slots a call waits for all.
    fn collect(
        &mut self,
        slots: Option<&[u64]>,
        how: ResourceUse,
        before: &mut SmallVec<[AsyncValue<Chain>; 4]>,
    ) {
        let mut look = |all: &mut Vec<Pending>, is_in_the_way: &dyn Fn(&Pending) -> bool| {
            all.retain(|one| !one.done.is_settled());
            let found = all.iter().filter(|one| is_in_the_way(one));
            before.extend(found.map(|one| one.done.clone()));
        };
        if !self.of_any.is_empty() {
            look(&mut self.of_any, &|_| true);
        }
        match slots {
            _ if self.of.is_empty() => (),
            Some(slots) => {
                for slot in slots {
                    let Some(all) = self.of.get_mut(slot) else {
                        continue;
                    };
                    look(all, &|one| how.comes_after(one.how));
                    if all.is_empty() {
                        self.of.remove(slot);
                    }
                }
            }
            None => {
                self.of.values_mut().for_each(|all| look(all, &|_| true));
                self.of.retain(|_, all| !all.is_empty());
            }
        }
    }

    /// Forgets resources whose calls are done, if there are many.
    fn forget(&mut self) {
        if self.of.len() >= self.n_many {
            self.of
                .retain(|_, all| all.iter().any(|one| !one.done.is_settled()));
            self.n_many = 2 * self.of.len().max(64);
        }
    }

    /// Adds a call. It stands for those that it waits for.
    fn put(&mut self, slots: Option<&[u64]>, done: &AsyncValue<Chain>, how: ResourceUse) {
        let pending = || Pending {
            done: done.clone(),
            how,
        };
        self.forget();
        match slots {
            Some(slots) => {
                for slot in slots {
                    let all = self.of.entry(*slot).or_default();
                    match how {
                        ResourceUse::Reads => (),
                        ResourceUse::Changes => all.clear(),
                        ResourceUse::Shares(_) => all.retain(|one| !how.comes_after(one.how)),
                    }
                    all.push(pending());
                }
            }
            None => {
                self.of.clear();
                self.of_any.clear();
                self.of_any.push(pending());
            }
        }
    }
}

/// Returns the numbers of the slots among the inputs, each once.
fn slots_of(inputs: &Inputs<'_>) -> Slots {
    let mut slots = SmallVec::new();
    for input in inputs.iter() {
        match input.tensor() {
            Some(Ok(tensor @ Tensor::Object(_))) => {
                if let Ok(slot) = Slot::of(tensor)
                    && !slots.contains(&slot.number())
                {
                    slots.push(slot.number());
                }
            }
            Some(_) => (),
            None if input.is_taken() => (),
            None => match input.dtype() {
                Some(dtype) if dtype != DType::Resource => (),
                _ => return None,
            },
        }
    }
    Some(slots)
}
