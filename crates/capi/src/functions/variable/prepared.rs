//! [`Prepared`]: a variable's tensor that plugins change in place.
//!
//! Calls that have a variable locked for readers only, side by side, change one memory: the first makes it ready, and the
//! last gives it back. So none is lost when one of them swaps the tensor for a copy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::{HostAllocator, LockMode};
use tfrt_tensor::resource::{Slot, Variable};

use super::{Ctx, Refusal, Result, called, enter, missing, of};
use crate::guard::Callback;
use crate::handle::Handle;
use crate::value::{Storage, Tensor, is_aligned};

/// A call's use of a variable's tensor, which it changes in place.
pub struct Prepared {
    /// Invariant: there until this is dropped.
    ready: Option<Arc<Ready>>,
    /// Where calls find it that change it as well.
    place: Option<Place>,
}

impl Prepared {
    /// Returns the plugin's view.
    pub fn tensor(&self) -> &Tensor {
        let ready = self
            .ready
            .as_ref()
            .expect("it is there until this is dropped");
        &ready.tensor
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        let Some(place) = &self.place else { return };
        // The right ends under the lock: whoever comes next finds the memory free, or this.
        let mut users = place.lock().unwrap_or_else(PoisonError::into_inner);
        self.ready = None;
        users.n -= 1;
        if users.n == 0 {
            users.ready = None;
        }
    }
}

/// A variable's tensor that is ready to be changed in place. The right to that ends when this is dropped.
struct Ready {
    tensor: Tensor,
    /// The variable, if what the plugin has written is to be put there: strings.
    written_to: Option<(Arc<Slot>, Arc<dyn HostAllocator>)>,
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.tensor.release();
        if let Some((slot, allocator)) = &self.written_to
            && let (Ok(variable), Ok(strings)) = (
                slot.get::<Variable>(),
                self.tensor.clone().into_host(allocator),
            )
            && variable.is_initialized()
        {
            variable.replace(strings);
        }
    }
}

/// Marks all variables as those for which a function of the plugin is running.
const ALL: u64 = u64::MAX;

/// Returns the tensor of a variable, which the plugin changes in place: the same one for the time of the call.
pub(in crate::functions) fn prepare(
    ctx: Ctx,
    slot: &Arc<Slot>,
    sparse: bool,
    copy: Callback,
    argument: &'static str,
) -> Result<Tensor> {
    let number = slot.number();
    let begun = enter(ctx, |own| {
        if let Some(found) = own.prepared(number) {
            return Ok(Err(found));
        }
        if own.variables().busy.contains(&number) || own.variables().busy.contains(&ALL) {
            let reason = "expected a variable that is not being copied, found one that is: this is called by the function \
                          that copies it";
            return Err(Refusal::wrong(argument, reason));
        }
        let is_shared = own.variables().locks.mode() == LockMode::Read;
        own.variables()
            .busy
            .push(if is_shared { ALL } else { number });
        Ok(Ok(is_shared))
    })?;
    let is_shared = match begun {
        Ok(is_shared) => is_shared,
        Err(found) => {
            if sparse {
                of(argument, slot.get::<Variable>())?.enable_copy_on_read();
            }
            return Ok(found);
        }
    };
    let make = || ready(ctx, slot, sparse, copy, argument).map(Arc::new);
    let made = match is_shared {
        true => shared(number, make),
        false => make().map(|ready| Prepared {
            ready: Some(ready),
            place: None,
        }),
    };
    enter(ctx, |own| {
        own.variables().busy.pop();
        let made = made?;
        let tensor = made.tensor().clone();
        own.prepare(number, made);
        Ok(tensor)
    })
}

/// The place of a variable's tensor while calls change it side by side.
type Place = Arc<Mutex<Users>>;

#[derive(Default)]
struct Users {
    /// The number of calls that change it.
    n: usize,
    /// Invariant: there while there are such calls.
    ready: Option<Arc<Ready>>,
}

/// Places of variables, by their numbers.
static SHARED: Mutex<BTreeMap<u64, Place>> = Mutex::new(BTreeMap::new());

/// The number of places from which on those are forgotten that nobody uses.
const MANY: usize = 64;

/// Returns the tensor that other calls change, or one that is made.
fn shared(number: u64, make: impl FnOnce() -> Result<Arc<Ready>>) -> Result<Prepared> {
    let place = {
        let mut all = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MANY {
            all.retain(|_, place| {
                // Who uses it, or is about to, holds it.
                Arc::strong_count(place) > 1
            });
        }
        all.entry(number).or_default().clone()
    };
    let mut users = place.lock().unwrap_or_else(PoisonError::into_inner);
    let ready = match &users.ready {
        Some(found) => found.clone(),
        None => make()?,
    };
    users.ready = Some(ready.clone());
    users.n += 1;
    drop(users);
    Ok(Prepared {
        ready: Some(ready),
        place: Some(place),
    })
}

/// Makes a variable's memory ready: held by nobody else, and beginning where kernels expect it.
fn ready(
    ctx: Ctx,
    slot: &Arc<Slot>,
    sparse: bool,
    copy: Callback,
    argument: &'static str,
) -> Result<Ready> {
    let allocator = enter(ctx, |own| Ok(own.allocator().clone()))?;
    let variable = of(argument, slot.get::<Variable>())?;
    let look = || of(argument, variable.look().ok_or_else(|| missing(slot)));
    match look()? {
        // Nothing in these can be changed: they are shared.
        found @ tfrt_tensor::Tensor::Object(_) => {
            return Ok(Ready {
                tensor: of(argument, Tensor::of_host(&found, &allocator))?,
                written_to: None,
            });
        }
        found @ tfrt_tensor::Tensor::String(_) => {
            return Ok(Ready {
                tensor: of(argument, Tensor::of_host(&found, &allocator))?,
                written_to: Some((slot.clone(), allocator)),
            });
        }
        _ => (),
    }
    let before = variable.shared();
    let is_dense = matches!(before, None | Some(tfrt_tensor::Tensor::Dense(_)));
    if let Some(before) = before
        && is_dense
        && !copy.is_null()
    {
        let copy = copied(ctx, copy, &before, argument)?;
        variable.replace(copy);
    }
    let sole = || {
        let found = match sparse {
            true => variable.prepare_rows(&allocator),
            false => variable.prepare_to_update(&allocator),
        };
        of(argument, found)?.ok_or_else(|| Refusal::Failed(argument, missing(slot)))
    };
    let mut found = sole()?;
    if !is_aligned(found.buffer()) {
        let moved = of(argument, found.deep_copy(&allocator))?;
        drop(found);
        variable.replace(moved.into());
        found = sole()?;
    }
    Ok(Ready {
        tensor: of(argument, Tensor::of_variable(found))?,
        written_to: None,
    })
}

/// Returns a copy of a tensor, which a function of the plugin makes if it is one of numbers.
pub(in crate::functions) fn copied(
    ctx: Ctx,
    copy: Callback,
    from: &tfrt_tensor::Tensor,
    argument: &'static str,
) -> Result<tfrt_tensor::Tensor> {
    let allocator = enter(ctx, |own| Ok(own.allocator().clone()))?;
    let source = of(argument, Tensor::of_host(from, &allocator))?;
    if copy.is_null() || !matches!(source.storage, Storage::Host(_) | Storage::Buffer(_)) {
        // Strings and objects are shared: nobody changes them.
        return match from {
            tfrt_tensor::Tensor::Dense(dense) => {
                of(argument, dense.deep_copy(&allocator)).map(Into::into)
            }
            other => Ok(other.clone()),
        };
    }
    let target = of(
        argument,
        Tensor::zeroed(&allocator, source.code, source.shape.clone()),
    )?;
    // The function deletes both.
    let (from, to) = (Handle::new(source.clone()), Handle::new(target.clone()));
    let outcome = called(ctx, copy, &[ctx.bits(), from.bits(), to.bits()], "copyFunc");
    source.release();
    target.release();
    outcome?;
    of(argument, target.into_host(&allocator))
}
