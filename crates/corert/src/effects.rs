//! [`ResourceOrder`]: the order of calls that read or change resources, for each resource by itself.
//!
//! A call that changes a resource begins when all earlier calls of its context on that resource are done, one that reads
//! it when the earlier changes are. Calls on different resources are not ordered, so that the steps of a hundred
//! variables run side by side. A call that fails later fails its own results alone: what comes after it finds the
//! resource as it is. The first such failure is told by [`Context::effects`](crate::Context::effects).

use std::collections::HashMap;
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
    /// After those of earlier calls on the same resources; the call only reads them, or may change them.
    OfResources {
        /// Whether the call may change the resources that it is given.
        writes: bool,
    },
}

/// The order of the calls of one context on resources. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ResourceOrder(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The calls on a resource that are not known to be done, by the number of its slot.
    of: HashMap<u64, Vec<Pending>>,
    /// Calls on resources that were not known when the calls were made: all later calls wait for them.
    of_any: Vec<Pending>,
    /// The first failure of a call that was made before.
    failed: Option<Error>,
}

/// A call that may not be done.
struct Pending {
    done: AsyncValue<Chain>,
    writes: bool,
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
    pub(crate) fn place(&self, inputs: &Inputs<'_>, writes: bool, begin: impl FnOnce()) -> Place {
        let slots = slots_of(inputs);
        let is_there = inputs.iter().all(|input| matches!(input.tensor(), Some(Ok(_))));
        let mut state = self.lock();
        begin();
        let mut before: SmallVec<[AsyncValue<Chain>; 4]> = SmallVec::new();
        state.collect(slots.as_deref(), writes, &mut before);
        if let Some(slots) = &slots
            && before.is_empty()
            && is_there
        {
            return Place::Free(slots.clone());
        }
        let (promise, done) = AsyncValue::pending();
        state.put(slots.as_deref(), &done, writes);
        drop(state);
        let before = match &before[..] {
            [] => AsyncValue::available(Chain),
            [one] => one.clone(),
            all => when_all(&all.iter().map(|one| one.as_any().clone()).collect::<Vec<_>>()),
        };
        Place::After(before, promise)
    }

    /// Notes the end of a call that had nothing in its way.
    #[inline]
    pub(crate) fn end_free(&self, slots: &[u64], done: &AsyncValue<Chain>, writes: bool) {
        if !done.is_settled() {
            let after = self.watched(done.clone());
            let mut state = self.lock();
            // Others may have come meanwhile: these are before it, or after.
            for slot in slots {
                let done = after.clone();
                state.of.entry(*slot).or_default().push(Pending { done, writes });
            }
        }
    }

    /// Notes the end of a call that waited.
    pub(crate) fn end(&self, promise: tfrt_host::Promise<Chain>, done: AsyncValue<Chain>) {
        promise.forward(self.watched(done));
    }

    /// Returns a chain that resolves when another settles, whose failure is kept.
    fn watched(&self, done: AsyncValue<Chain>) -> AsyncValue<Chain> {
        let (promise, after) = AsyncValue::pending();
        let order = self.clone();
        done.when_settled(move |done| {
            if let Some(error) = done.error() {
                order.lock().failed.get_or_insert_with(|| error.clone());
            }
            promise.resolve(Chain);
        });
        after
    }

    /// Returns a chain that resolves when all calls so far are done; it fails with the first that failed.
    pub(crate) fn effects(&self) -> AsyncValue<Chain> {
        let mut state = self.lock();
        let mut before = SmallVec::new();
        state.collect(None, true, &mut before);
        if before.is_empty() {
            return match &state.failed {
                Some(error) => AsyncValue::from_error(error.clone()),
                None => AsyncValue::available(Chain),
            };
        }
        drop(state);
        let all: Vec<_> = before.iter().map(|one| one.as_any().clone()).collect();
        let order = self.clone();
        when_all(&all).and_then_value(move |_| match &order.lock().failed {
            Some(error) => AsyncValue::from_error(error.clone()),
            None => AsyncValue::available(Chain),
        })
    }
}

impl State {
    /// Adds what a call waits for, and forgets what is done. Without slots a call waits for all.
    fn collect(
        &mut self,
        slots: Option<&[u64]>,
        writes: bool,
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
                    look(all, &|one| writes || one.writes);
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

    /// Adds a call. It stands for those that it waits for.
    fn put(&mut self, slots: Option<&[u64]>, done: &AsyncValue<Chain>, writes: bool) {
        let pending = || Pending {
            done: done.clone(),
            writes,
        };
        match slots {
            Some(slots) => {
                for slot in slots {
                    let all = self.of.entry(*slot).or_default();
                    if writes {
                        all.clear();
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
