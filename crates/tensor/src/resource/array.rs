//! [`TensorArray`]: tensors at indices, each written once and read, as a resource.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_host::{DType, Error, ErrorCode};

use super::list::{fits, merged, of_shape};
use super::{Resource, Slot};
use crate::{PartialTensorShape, Tensor};

/// Tensors at indices, as a resource: loops write one in each turn. Each is written once, but those of an array of
/// gradients are added up.
pub struct TensorArray {
    options: ArrayOptions,
    name: String,
    is_gradient: bool,
    state: Mutex<State>,
}

/// The greatest number of tensors by which a write makes an array longer. More would be a mistake, which should not take
/// memory.
const MAX_STEP: usize = 1 << 20;

/// Fixed properties of a [`TensorArray`].
#[derive(Clone, Debug)]
pub struct ArrayOptions {
    /// The type of the tensors' elements.
    pub dtype: DType,
    /// Known extents of all tensors.
    pub shape: PartialTensorShape,
    /// Whether a write behind the end makes the array longer.
    pub is_dynamic: bool,
    /// Whether a tensor is let go of when it is read.
    pub clears_after_read: bool,
    /// Whether all tensors are of the extents of the first.
    pub has_identical_shapes: bool,
}

#[derive(Default)]
struct State {
    items: Vec<Item>,
    is_closed: bool,
    /// Known extents, by the tensors that were written.
    shape: Option<PartialTensorShape>,
    gradients: BTreeMap<String, Arc<Slot>>,
}

#[derive(Clone, Default)]
struct Item {
    tensor: Option<Tensor>,
    was_cleared: bool,
    was_written: bool,
}

/// An element that was asked for.
pub enum ArrayItem {
    /// It was written.
    Tensor(Tensor),
    /// It was not; it is zeros of these extents.
    Zeros(PartialTensorShape),
}

impl TensorArray {
    /// Makes an array of tensors that are not written.
    pub fn new(name: &str, n: usize, options: ArrayOptions) -> TensorArray {
        TensorArray {
            options,
            name: name.to_owned(),
            is_gradient: false,
            state: Mutex::new(State {
                items: vec![Item::default(); n],
                ..State::default()
            }),
        }
    }

    /// Returns what is fixed.
    pub fn options(&self) -> &ArrayOptions {
        &self.options
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, Error> {
        let state = self.lock();
        match state.is_closed {
            false => Ok(state),
            true => Err(self.error(format_args!("TensorArray has already been closed."))),
        }
    }

    #[cold]
    fn error(&self, message: fmt::Arguments<'_>) -> Error {
        Error::invalid_argument(format!("TensorArray {}: {message}", self.name))
    }

    /// Returns the number of tensors, written or not.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is closed.
    pub fn n_tensors(&self) -> Result<usize, Error> {
        Ok(self.open()?.items.len())
    }

    /// Writes a tensor. Of an array of gradients, which was written there, `add` gives the sum of what is there and that.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the array is closed or too short, if it was written there, or if the tensor is of another type
    /// or of extents that don't fit.
    pub fn write(
        &self,
        index: i64,
        tensor: Tensor,
        add: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor, Error>,
    ) -> Result<(), Error> {
        let mut state = self.open()?;
        let n = state.items.len();
        let (dtype, shape) = (tensor.metadata().dtype, &tensor.metadata().shape);
        let at = usize::try_from(index).ok();
        let at = at.filter(|at| *at < n || self.options.is_dynamic && *at < n + MAX_STEP);
        let Some(at) = at else {
            return Err(match index < 0 || self.options.is_dynamic {
                true => self.error(format_args!("Tried to write to index {index}")),
                false => self.error(format_args!(
                    "Tried to write to index {index} but array is not resizeable and size is: {n}"
                )),
            });
        };
        if dtype != self.options.dtype {
            return Err(self.error(format_args!(
                "Could not write to TensorArray index {index} because the value dtype is {dtype} but TensorArray dtype \
                 is {}.",
                self.options.dtype
            )));
        }
        let known = state.shape.as_ref().unwrap_or(&self.options.shape);
        if !fits(known, shape) {
            return Err(self.error(format_args!(
                "Could not write to TensorArray index {index} because the value shape is {shape} which is incompatible \
                 with the TensorArray's inferred element shape: {known} (consider setting infer_shape=False)."
            )));
        }
        let known = match self.options.has_identical_shapes {
            true => Some(of_shape(shape)?),
            false => None,
        };
        let before = state.items.get(at).cloned().unwrap_or_default();
        if before.was_cleared {
            return Err(self.error(format_args!(
                "Could not write to TensorArray index {index} because it has already been read."
            )));
        }
        let tensor = match &before.tensor {
            None => tensor,
            Some(before) if self.is_gradient => {
                if before.metadata() != tensor.metadata() {
                    let (own, other) = (before.metadata(), tensor.metadata());
                    return Err(self.error(format_args!(
                        "Could not aggregate to TensorArray index {index} because the existing shape is {own} but the \
                         new input shape is {other}."
                    )));
                }
                add(before, &tensor)?
            }
            Some(_) => {
                return Err(self.error(format_args!(
                    "Could not write to TensorArray index {index} because it has already been written to."
                )));
            }
        };
        if at >= n {
            state.items.resize(at + 1, Item::default());
        }
        state.items[at] = Item {
            tensor: Some(tensor),
            was_cleared: false,
            was_written: true,
        };
        state.shape = known.or_else(|| state.shape.take());
        Ok(())
    }

    /// Reads a tensor, and lets go of it if the array clears what was read.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the array is closed or too short, if it was let go of, or if it was not written and its extents
    /// are not known.
    pub fn read(&self, index: i64) -> Result<ArrayItem, Error> {
        let mut state = self.open()?;
        let n = state.items.len();
        let at = usize::try_from(index).ok().filter(|at| *at < n);
        let at = at.ok_or_else(|| {
            self.error(format_args!(
                "Tried to read from index {index} but array size is: {n}"
            ))
        })?;
        let shape = state
            .shape
            .clone()
            .unwrap_or_else(|| self.options.shape.clone());
        let item = &mut state.items[at];
        if item.was_cleared {
            return Err(self.error(format_args!(
                "Could not read index {index} twice because it was cleared after a previous read (perhaps try setting \
                 clear_after_read = false?)."
            )));
        }
        let clears = self.options.clears_after_read;
        let found = match clears {
            true => item.tensor.take(),
            false => item.tensor.clone(),
        };
        match found {
            Some(tensor) => {
                item.was_cleared = clears;
                Ok(ArrayItem::Tensor(tensor))
            }
            None if shape.to_shape().is_ok() => Ok(ArrayItem::Zeros(shape)),
            None => Err(self.error(format_args!(
                "Could not read from TensorArray index {index}. Furthermore, the element shape is not fully defined: \
                 {shape}. It is possible you are working with a resizeable TensorArray and stop_gradients is not \
                 allowing the gradients to be written. If you set the full element_shape property on the forward \
                 TensorArray, the proper all-zeros tensor will be returned instead of incurring this error."
            ))),
        }
    }

    /// Adds what an operation says about the extents of all tensors.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it contradicts what is known.
    pub fn state_shape(&self, stated: &PartialTensorShape) -> Result<(), Error> {
        let mut state = self.open()?;
        let known = state.shape.as_ref().unwrap_or(&self.options.shape);
        let merged = merged(known, stated)
            .map_err(|error| self.error(format_args!("{}", error.message())))?;
        state.shape = Some(merged);
        Ok(())
    }

    /// Returns what is known of the extents of all tensors.
    pub fn known_shape(&self) -> PartialTensorShape {
        let state = self.lock();
        state
            .shape
            .clone()
            .unwrap_or_else(|| self.options.shape.clone())
    }

    /// Returns the array of gradients of this one for a source, which is made if it is not there.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the array is closed, or one of gradients.
    pub fn gradient(&self, source: &str) -> Result<Arc<Slot>, Error> {
        let mut state = self.open()?;
        if self.is_gradient {
            return Err(self.error(format_args!(
                "Creating a gradients TensorArray for a gradients TensorArray is not supported."
            )));
        }
        if let Some(found) = state.gradients.get(source) {
            return Ok(found.clone());
        }
        if state.items.iter().any(|item| item.was_cleared) {
            return Err(self.error(format_args!(
                "Cannot create a gradients TensorArray whose forward values were cleared: set clear_after_read = false"
            )));
        }
        let made = Slot::anonymous(TensorArray {
            options: ArrayOptions {
                is_dynamic: false,
                clears_after_read: self.options.clears_after_read,
                ..self.options.clone()
            },
            name: format!("{}@{source}", self.name),
            is_gradient: true,
            state: Mutex::new(State {
                items: vec![Item::default(); state.items.len()],
                shape: state.shape.clone(),
                ..State::default()
            }),
        });
        state.gradients.insert(source.to_owned(), made.clone());
        Ok(made)
    }

    /// Returns whether a tensor was written at some index.
    pub fn was_written(&self) -> bool {
        self.lock().items.iter().any(|item| item.was_written)
    }

    /// Lets go of all tensors; later calls fail.
    pub fn close(&self) {
        let before = {
            let mut state = self.lock();
            state.is_closed = true;
            (
                std::mem::take(&mut state.items),
                std::mem::take(&mut state.gradients),
            )
        };
        drop(before);
    }

    /// Returns the error for a split into more parts than the array has.
    #[cold]
    pub fn too_short(&self, n: usize, found: usize) -> Error {
        Error::new(
            ErrorCode::InvalidArgument,
            format!(
                "TensorArray {}: expected {n} parts at most, as the array is not resizeable, found {found}",
                self.name
            ),
        )
    }
}

impl Resource for TensorArray {
    fn type_name(&self) -> &str {
        "TensorArray"
    }

    fn destroy(&self) -> bool {
        let was_open = !self.lock().is_closed;
        self.close();
        was_open
    }
}

impl fmt::Debug for TensorArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.lock().items.len();
        write!(
            f,
            "TensorArray({n} of {} {})",
            self.options.dtype,
            self.known_shape()
        )
    }
}
