//! [`NodeState`]: what a kernel keeps for a node of a program from run to run.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use super::frame::{KernelFrame, Mismatch};
use super::param::{KernelParam, kinds::Itself};
use super::signature::Part;

/// The place of a kernel's state for one node, which is a kernel in a function of a loaded program. All runs share it,
/// also those of several threads at once; it goes with the program.
///
/// Invariant: the value holds neither the program nor the host, which hold this place: none of them would ever go.
#[derive(Default)]
pub(crate) struct Place(OnceLock<Box<dyn Any + Send + Sync>>);

/// The state that a kernel keeps for the node that runs, as a parameter: attributes that were read, what was looked up
/// for them.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicI32, Ordering};
/// use tfrt_host::kernel::{KernelRegistry, NodeState};
///
/// /// `%n = my.count`: how often this node has run.
/// fn count(state: NodeState) -> i32 {
///     let n = state.get_or_init(AtomicI32::default);
///     n.map_or(0, |n| n.fetch_add(1, Ordering::Relaxed) + 1)
/// }
///
/// let mut registry = KernelRegistry::new();
/// registry.add("my.count", count);
/// assert_eq!(registry.get("my.count").unwrap().signature().to_string(), "() -> i32");
/// ```
#[derive(Clone, Copy)]
pub struct NodeState<'p>(&'p Place);

impl<'p> NodeState<'p> {
    pub(super) fn of(place: &'p Place) -> NodeState<'p> {
        NodeState(place)
    }

    /// Returns the state, if there is one of this type.
    #[inline]
    pub fn get<T: Send + Sync + 'static>(self) -> Option<&'p T> {
        self.0.0.get()?.downcast_ref()
    }

    /// Returns the state, made by the first run that asks; `None` if a state of another type is there. It must hold neither
    /// the program nor the host: neither would ever go.
    #[inline]
    pub fn get_or_init<T: Send + Sync + 'static>(self, make: impl FnOnce() -> T) -> Option<&'p T> {
        self.0.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl fmt::Debug for NodeState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_set = self.0.0.get().is_some();
        f.debug_tuple("NodeState").field(&is_set).finish()
    }
}

impl KernelParam<Itself> for NodeState<'_> {
    type Guard<'f> = NodeState<'f>;
    type Item<'a> = NodeState<'a>;

    const PART: &'static Part = &Part::Surroundings;

    #[inline]
    fn take<'f>(frame: &mut KernelFrame<'f, '_>) -> Result<NodeState<'f>, Mismatch> {
        Ok(frame.node_state())
    }

    #[inline]
    fn item<'a>(guard: &'a mut NodeState<'_>) -> NodeState<'a> {
        *guard
    }
}
