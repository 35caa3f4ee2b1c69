//! [`AlikeCalls`]: what was found out about calls of an operation, for those to come that are alike.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use smallvec::SmallVec;
use tfrt_corert::{FrozenOpAttrs, OpAttrsRef, ResultMetadata};
use tfrt_host::Error;
use tfrt_tensor::TensorMetadata;

use super::node_attrs;
use crate::functions::construction::Node;
use crate::node::{Resolved, resolve};
use crate::registry::KernelDef;
use crate::run::Instance;
use crate::spec::OpSpec;

/// The most kinds of calls of an operation that are known. Further ones are looked at each time.
const MAX_KNOWN: usize = 8;

/// Calls with equal attributes and types of inputs.
pub(super) struct Alike {
    attrs: FrozenOpAttrs,
    codes: SmallVec<[Option<i32>; 4]>,
    /// Attributes, inputs and outputs of such a call.
    pub(super) resolved: Arc<Resolved>,
    kernel: OnceLock<Arc<KernelDef>>,
    instance: OnceLock<Arc<Instance>>,
    /// Shapes of the last call, and those of its results.
    shapes: Mutex<Option<(SmallVec<[TensorMetadata; 4]>, ResultMetadata)>>,
}

/// Kinds of calls of an operation, in the order in which they came. They are found without a lock.
#[derive(Default)]
pub(super) struct AlikeCalls([OnceLock<Arc<Alike>>; MAX_KNOWN]);

impl AlikeCalls {
    /// Returns what is known of a call, which is resolved if it is the first of its kind.
    ///
    /// # Errors
    ///
    /// Those of [`resolve`], which are not kept.
    pub(super) fn find(
        &self,
        spec: &OpSpec,
        attrs: OpAttrsRef<'_>,
        codes: &[Option<i32>],
    ) -> Result<Arc<Alike>, Error> {
        let known = self.0.iter().map_while(OnceLock::get);
        let mut known = known.filter(|one| one.codes[..] == *codes && one.attrs.as_ref().is(attrs));
        if let Some(found) = known.next() {
            return Ok(found.clone());
        }
        let resolved = resolve(spec, &node_attrs(attrs)?, codes)?;
        let alike = Arc::new(Alike {
            attrs: attrs.freeze(),
            codes: codes.into(),
            resolved: Arc::new(resolved),
            kernel: OnceLock::new(),
            instance: OnceLock::new(),
            shapes: Mutex::default(),
        });
        // Attributes that can't be compared would never be found again.
        if attrs.is_plain() {
            let _kept = self.0.iter().any(|place| place.set(alike.clone()).is_ok());
        }
        Ok(alike)
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

    /// Returns the kernel's state, which `make` makes once.
    ///
    /// # Errors
    ///
    /// Those of `make`; the next call tries again.
    pub(super) fn instance(
        &self,
        make: impl FnOnce() -> Result<Arc<Instance>, Error>,
    ) -> Result<Arc<Instance>, Error> {
        if let Some(instance) = self.instance.get() {
            return Ok(instance.clone());
        }
        let made = make()?;
        Ok(self.instance.get_or_init(|| made).clone())
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
        let last = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, results)) = &*last
            && of.iter().eq(inputs.iter().copied())
        {
            return Ok(results.clone());
        }
        drop(last);
        let results = infer()?;
        let of = inputs.iter().map(|metadata| (*metadata).clone());
        let mut last = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((of.collect(), results.clone()));
        Ok(results)
    }
}
