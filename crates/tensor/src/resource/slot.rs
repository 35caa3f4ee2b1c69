//! [`Slot`]: the place of a resource, which handles hold and names lead to.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tfrt_host::{DType, Error};

use crate::{Object, ObjectTensor, Tensor};

/// An object that several calls share and change, held by a slot: a variable, a table, an object of a plugin.
pub trait Resource: Any + fmt::Debug + Send + Sync {
    /// Returns the name of its type: `Var`.
    fn type_name(&self) -> &str;

    /// Lets go of what it holds, so that all handles lead to nothing; returns whether there was anything.
    fn destroy(&self) -> bool;
}

/// The place of a resource: interned by container, type and name in [`Resources`](super::Resources), or without a name
/// and held by its handles alone. The resource never leaves its place: a variable that is destroyed is one without a
/// tensor, and may be assigned again.
pub struct Slot {
    number: u64,
    container: String,
    // Empty for a resource without a name.
    name: String,
    resource: Box<dyn Resource>,
}

/// The number of the next slot. They are never used again.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl Slot {
    /// Makes a slot without a name, which dies with its last handle.
    pub fn anonymous(resource: impl Resource) -> Arc<Slot> {
        Slot::named("", "", Box::new(resource))
    }

    pub(super) fn named(container: &str, name: &str, resource: Box<dyn Resource>) -> Arc<Slot> {
        Arc::new(Slot {
            // Ordering: a statistic.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            container: container.to_owned(),
            name: name.to_owned(),
            resource,
        })
    }

    /// Returns the number of the slot, which no other slot of the process has or had.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the container; empty for a resource without a name.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// Returns the name; empty if there is none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name for messages: a number for a resource without a name.
    pub fn label(&self) -> String {
        match self.name.is_empty() {
            true => format!("anonymous_{}", self.number),
            false => self.name.clone(),
        }
    }

    /// Returns the name of the resource's type.
    pub fn resource_type(&self) -> &str {
        self.resource.type_name()
    }

    /// Returns the resource, which is a `T`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another type.
    #[inline]
    pub fn get<T: Resource>(&self) -> Result<&T, Error> {
        match (&*self.resource as &dyn Any).downcast_ref::<T>() {
            Some(found) => Ok(found),
            None => Err(self.is_no(std::any::type_name::<T>())),
        }
    }

    #[cold]
    fn is_no(&self, wanted: &str) -> Error {
        let wanted = wanted.rsplit("::").next().unwrap_or(wanted);
        let (name, found) = (self.label(), self.resource_type());
        Error::invalid_argument(format!(
            "Trying to access a handle's resource using the wrong type. The handle points to a resource (name '{name}') of \
             type '{found}' but you are trying to access the resource as type '{wanted}'"
        ))
    }

    /// Lets go of what the resource holds; returns whether there was anything.
    pub fn destroy(&self) -> bool {
        self.resource.destroy()
    }

    /// Returns a tensor without dimensions that refers to the resource.
    pub fn handle(self: &Arc<Self>) -> Tensor {
        let tensor = ObjectTensor::scalar(DType::Resource, self.clone());
        tensor.expect("resource is a type of objects").into()
    }

    /// Returns the slot that a tensor refers to.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the tensor is no handle of a resource.
    #[inline]
    pub fn of(tensor: &Tensor) -> Result<&Slot, Error> {
        match tensor {
            Tensor::Object(object) => object.only::<Slot>(),
            other => Err(Error::invalid_argument(format!(
                "expected a handle of a resource, found a tensor of {}",
                other.metadata()
            ))),
        }
    }

    /// Returns the counted slot that a tensor refers to.
    ///
    /// # Errors
    ///
    /// Those of [`of`](Self::of).
    pub fn counted(tensor: &Tensor) -> Result<Arc<Slot>, Error> {
        Slot::of(tensor)?;
        let cell = tensor.as_object()?.cells()[0].clone() as Arc<dyn Any + Send + Sync>;
        cell.downcast()
            .map_err(|_| Error::internal("a slot is a slot"))
    }
}

impl Object for Slot {
    fn type_name(&self) -> &str {
        "handle of a resource"
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.resource_type(), self.label())
    }
}
