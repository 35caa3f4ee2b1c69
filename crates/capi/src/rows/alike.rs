//! [`OpCalls`]: what was found out about calls of an operation, for those to come that are alike.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use smallvec::SmallVec;
use tfrt_corert::{Call, FrozenOpAttrs, OpAttrsRef, ResultMetadata};
use tfrt_host::Error;
use tfrt_tensor::TensorMetadata;

use super::attributes::{Kept, node_attrs};
use crate::dtype;
use crate::functions::construction::Node;
use crate::node::{Resolved, resolve};
use crate::registry::KernelDef;
use crate::run::{BoundKernel, Instance};
use crate::spec::OpSpec;

/// The most kinds of calls that are known. Further ones are looked at each time.
const MAX_KNOWN: usize = 8;

/// Calls with equal attributes and types of inputs.
pub(super) struct Alike {
    /// The attributes; none for calls of a node, which are the same each time.
    attrs: FrozenOpAttrs,
    codes: SmallVec<[Option<i32>; 4]>,
    /// Attributes, inputs and outputs of such a call.
    pub(super) resolved: Arc<Resolved>,
    /// Whether there are references to variables among the inputs.
    pub(super) has_references: bool,
    kernel: OnceLock<Arc<KernelDef>>,
    bound: OnceLock<Arc<BoundKernel>>,
    /// Held while the kernel's state is made.
    making: Mutex<()>,
    /// Shapes of the last call, and those of its results.
    shapes: Mutex<Option<(SmallVec<[TensorMetadata; 4]>, ResultMetadata)>>,
}

/// Calls of a kind, which are known, or were looked at for one call.
pub(super) enum Found<'c> {
    Known(&'c Arc<Alike>),
    New(Arc<Alike>),
}

impl Deref for Found<'_> {
    type Target = Alike;

    fn deref(&self) -> &Alike {
        match self {
            Found::Known(alike) => alike,
            Found::New(alike) => alike,
        }
    }
}

/// Calls of one operation.
pub(super) struct OpCalls {
    /// The definition of the operation.
    pub(super) spec: Arc<OpSpec>,
    /// Kinds of calls, in the order in which they came. They are found without a lock.
    known: [OnceLock<Arc<Alike>>; MAX_KNOWN],
    /// Held while a kind is added, so that each is there once.
    adding: Mutex<()>,
    /// Whether all calls are of one node: then they have the same attributes, and states of kernels of their own.
    is_node: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpCalls {
    /// Returns the calls of an operation: those of one node of a program, or all others of a runtime.
    pub(super) fn new(spec: &Arc<OpSpec>, is_node: bool) -> OpCalls {
        OpCalls {
            spec: spec.clone(),
            known: [const { OnceLock::new() }; MAX_KNOWN],
            adding: Mutex::default(),
            is_node,
        }
    }

    /// Returns whether there is room for further kinds of calls, with some to spare: threads may come at the same time.
    pub(super) fn has_room(&self) -> bool {
        self.known[MAX_KNOWN / 2].get().is_none()
    }

    fn known(&self, attrs: OpAttrsRef<'_>, codes: &[Option<i32>]) -> Option<&Arc<Alike>> {
        let mut known = self.known.iter().map_while(OnceLock::get);
        // Element by element: there are few.
        known.find(|one| {
            one.codes.iter().eq(codes) && (self.is_node || one.attrs.as_ref().is(attrs))
        })
    }

    /// Returns what is known of a call whose inputs are there.
    #[inline]
    pub(super) fn known_of(&self, call: &Call<'_>) -> Option<Found<'_>> {
        let is_alike = |one: &&Arc<Alike>| {
            let code_of = |index: usize| {
                let tensor = call.tensor(index).ok()?;
                dtype::code(tensor.metadata().dtype)
            };
            let mut codes = one.codes.iter().enumerate();
            one.codes.len() == call.n_inputs()
                && codes.all(|(index, code)| *code == code_of(index))
                && (self.is_node || one.attrs.as_ref().is(call.attrs()))
        };
        let mut known = self.known.iter().map_while(OnceLock::get);
        known.find(is_alike).map(Found::Known)
    }

    /// Returns what is known of a call, which is resolved if it is the first of its kind.
    ///
    /// # Errors
    ///
    /// Those of [`resolve`], which are not kept.
    pub(super) fn find(
        &self,
        attrs: OpAttrsRef<'_>,
        codes: &[Option<i32>],
    ) -> Result<Found<'_>, Error> {
        match self.known(attrs, codes) {
            Some(known) => Ok(Found::Known(known)),
            None => self.add(attrs, codes),
        }
    }

    #[cold]
    fn add(&self, attrs: OpAttrsRef<'_>, codes: &[Option<i32>]) -> Result<Found<'_>, Error> {
        let _one_at_a_time = lock(&self.adding);
        if let Some(known) = self.known(attrs, codes) {
            return Ok(Found::Known(known));
        }
        let kept = match self.is_node {
            true => Kept::ByProgram,
            false => Kept::ByRuntime,
        };
        let resolved = resolve(&self.spec, &node_attrs(attrs, kept)?, codes)?;
        let alike = Arc::new(Alike {
            attrs: match self.is_node {
                true => FrozenOpAttrs::default(),
                false => attrs.freeze(),
            },
            codes: codes.into(),
            has_references: !resolved.references.is_empty(),
            resolved: Arc::new(resolved),
            kernel: OnceLock::new(),
            bound: OnceLock::new(),
            making: Mutex::default(),
            shapes: Mutex::default(),
        });
        // Attributes that can't be compared would never be found again.
        let free = match self.is_node || attrs.is_plain() {
            true => self.known.iter().find(|place| place.get().is_none()),
            false => None,
        };
        Ok(match free {
            Some(place) => Found::Known(place.get_or_init(|| alike)),
            None => Found::New(alike),
        })
    }

    /// Returns what calls of a kind have in common, the kernel's state among it. A node has a state of its own, as long
    /// as its kinds are kept; for others `shared` finds or makes it.
    ///
    /// # Errors
    ///
    /// Those of the plugin; the next call tries again.
    #[inline]
    pub(super) fn bound<'c>(
        &self,
        call: &'c Found<'_>,
        kernel: &Arc<KernelDef>,
        shared: impl FnOnce() -> Result<Arc<Instance>, Error>,
    ) -> Result<&'c Arc<BoundKernel>, Error> {
        match call.bound.get() {
            Some(bound) => Ok(bound),
            None => self.bind(call, kernel, shared),
        }
    }

    #[cold]
    fn bind<'c>(
        &self,
        call: &'c Found<'_>,
        kernel: &Arc<KernelDef>,
        shared: impl FnOnce() -> Result<Arc<Instance>, Error>,
    ) -> Result<&'c Arc<BoundKernel>, Error> {
        let is_own = self.is_node && matches!(call, Found::Known(_));
        let _one_at_a_time = lock(&call.making);
        if let Some(bound) = call.bound.get() {
            return Ok(bound);
        }
        let instance = match is_own {
            true => Arc::new(Instance::new(kernel, &call.resolved.node)?),
            false => shared()?,
        };
        let may_be_variable = |code: &Option<i32>| code.is_none_or(|code| code == dtype::RESOURCE);
        let may_have_variables = call.codes.iter().any(may_be_variable) || call.has_references;
        let made = BoundKernel::new(instance, call.resolved.clone(), may_have_variables);
        Ok(call.bound.get_or_init(|| Arc::new(made)))
    }
}

impl Alike {
    /// Returns the kernel, which `select` finds once.
    ///
    /// # Errors
    ///
    /// Those of `select`.
    pub(super) fn kernel(
        &self,
        select: impl FnOnce(&Node) -> Result<Arc<KernelDef>, Error>,
    ) -> Result<&Arc<KernelDef>, Error> {
        if let Some(kernel) = self.kernel.get() {
            return Ok(kernel);
        }
        let selected = select(&self.resolved.node)?;
        Ok(self.kernel.get_or_init(|| selected))
    }

    /// Returns types and shapes of the results for those of the inputs; `infer` is asked where they are not those of the
    /// last call. Shape functions are pure.
    ///
    /// # Errors
    ///
    /// Those of `infer`.
    pub(super) fn shapes(
        &self,
        inputs: &[&TensorMetadata],
        infer: impl FnOnce() -> Result<ResultMetadata, Error>,
    ) -> Result<ResultMetadata, Error> {
        let last = lock(&self.shapes);
        if let Some((of, results)) = &*last
            && of.iter().eq(inputs.iter().copied())
        {
            return Ok(results.clone());
        }
        drop(last);
        let results = infer()?;
        let of = inputs.iter().map(|metadata| (*metadata).clone());
        *lock(&self.shapes) = Some((of.collect(), results.clone()));
        Ok(results)
    }
}
