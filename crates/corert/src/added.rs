//! [`AddedOps`]: operations that libraries add to a runtime at run time, on the processor.
//!
//! The handler of the processor finds them beside its rows. Where both have an operation, each call goes to the added one
//! if that takes the types of the inputs, else to the row.

use std::sync::{Arc, PoisonError, RwLock};

use smallvec::SmallVec;
use tfrt_host::{DType, DeviceId, Error};

use crate::attributes::OpAttrsRef;
use crate::definition::OpDefinition;
use crate::dispatch::RegisteredOp;
use crate::effects::EffectOrder;
use crate::op::{FastPath, Handles, Op, OpCall};

/// Operations of libraries, by name.
pub trait AddedOps: Send + Sync + 'static {
    /// Returns the definition of an operation, if there is one.
    fn find(&self, op: &str) -> Option<Arc<OpDefinition>>;

    /// Returns whether a call goes to the added operation although the runtime has one of this name. Types that are to come
    /// are `None`.
    fn takes(&self, op: &str, types: &[Option<DType>], attrs: OpAttrsRef<'_>) -> bool;
}

/// The operations that were added to a runtime; those of the first source come first.
#[derive(Clone, Default)]
pub(crate) struct AddedSources(Arc<RwLock<Vec<Arc<dyn AddedOps>>>>);

impl AddedSources {
    pub(crate) fn add(&self, source: Arc<dyn AddedOps>) {
        let mut sources = self.0.write().unwrap_or_else(PoisonError::into_inner);
        sources.push(source);
    }

    fn find(&self, op: &str) -> Option<(Arc<dyn AddedOps>, Arc<OpDefinition>)> {
        let sources = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = sources
            .iter()
            .filter_map(|source| Some((source.clone(), source.find(op)?)));
        found.next()
    }

    /// Returns an operation that was added, before the one that `built_in` finds.
    pub(crate) fn op(
        &self,
        op: &str,
        device: DeviceId,
        built_in: impl FnOnce() -> Result<Arc<dyn Op>, Error>,
    ) -> Result<Arc<dyn Op>, Error> {
        let Some((source, definition)) = self.find(op) else {
            return built_in();
        };
        let added = Arc::new(RegisteredOp { definition, device });
        Ok(match built_in() {
            Err(_) => added,
            Ok(built_in) => Arc::new(SelectedOp {
                name: op.to_owned(),
                source,
                added,
                built_in,
            }),
        })
    }
}

/// An operation that a library and the runtime have: each call goes to one of both, by the types of its inputs.
struct SelectedOp {
    name: String,
    source: Arc<dyn AddedOps>,
    added: Arc<RegisteredOp>,
    built_in: Arc<dyn Op>,
}

impl SelectedOp {
    fn is_added(&self, call: &OpCall<'_>) -> bool {
        let types = call.inputs.iter().map(|handle| handle.dtype());
        let types: SmallVec<[Option<DType>; 4]> = types.collect();
        self.source.takes(&self.name, &types, call.attrs)
    }
}

impl Op for SelectedOp {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_pure(&self) -> bool {
        self.added.is_pure() && self.built_in.is_pure()
    }

    fn needs_chain(&self) -> bool {
        self.added.needs_chain() && self.built_in.needs_chain()
    }

    /// The stricter order of both: which of them a call goes to is not known when it takes its place.
    fn effect_order(&self) -> EffectOrder {
        let orders = [self.added.effect_order(), self.built_in.effect_order()];
        match (self.added.is_pure(), self.built_in.is_pure(), orders) {
            (true, _, [_, order]) | (_, true, [order, _]) => order,
            (
                false,
                false,
                [
                    EffectOrder::OfResources { writes, waits },
                    EffectOrder::OfResources {
                        writes: built_in_writes,
                        waits: built_in_waits,
                    },
                ],
            ) => EffectOrder::OfResources {
                writes: writes || built_in_writes,
                // Calls of other contexts that one waits for must not come after it.
                waits: waits || built_in_waits,
            },
            _ => EffectOrder::OfContext,
        }
    }

    fn shares_resources(&self, attrs: OpAttrsRef<'_>) -> bool {
        self.added.shares_resources(attrs)
    }

    fn n_results(&self) -> Option<usize> {
        let n_results = self.built_in.n_results();
        n_results.filter(|n| self.added.n_results() == Some(*n))
    }

    fn for_node(&self) -> Option<Arc<dyn Op>> {
        let definition = self.added.definition.for_node()?;
        let device = self.added.device;
        Some(Arc::new(SelectedOp {
            name: self.name.clone(),
            source: self.source.clone(),
            added: Arc::new(RegisteredOp { definition, device }),
            built_in: self.built_in.for_node()?,
        }))
    }

    fn try_fast(&self, call: &mut OpCall<'_>) -> FastPath {
        match self.is_added(call) {
            true => Err(None),
            false => self.built_in.try_fast(call),
        }
    }

    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        match self.is_added(&call) {
            true => self.added.call(call),
            false => self.built_in.call(call),
        }
    }
}
