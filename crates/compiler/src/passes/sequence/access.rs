//! Accesses of operations to objects: which ones, and whether they write.

use std::collections::BTreeMap;

use tfrt_ir::{Type, ValueId};

/// An object that operations read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Object {
    /// The world outside: the terminal, files, the clock.
    World,
    /// The buffers that an argument of the function refers to, by the argument's position.
    Argument(u32),
    /// The new buffer that the result of an operation refers to.
    Local(ValueId),
    /// Any buffer at all.
    Any,
}

/// The objects that a value may refer to; beyond a limit, any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Objects(Vec<Object>);

/// The most objects that are told apart.
const MAX_OBJECTS: usize = 32;

impl Objects {
    pub fn one(object: Object) -> Objects {
        Objects(vec![object])
    }

    pub fn iter(&self) -> impl Iterator<Item = Object> + '_ {
        self.0.iter().copied()
    }

    pub fn contains(&self, object: Object) -> bool {
        self.0.binary_search(&object).is_ok()
    }

    /// Adds all objects of another set; returns whether any was new.
    pub fn add(&mut self, other: &Objects) -> bool {
        let before = self.0.len();
        for object in other.iter() {
            self.insert(object);
        }
        self.0.len() != before
    }

    fn insert(&mut self, object: Object) {
        if self.contains(Object::Any) {
            return;
        }
        if object == Object::Any || self.0.len() >= MAX_OBJECTS {
            self.0 = vec![Object::Any];
        } else if let Err(index) = self.0.binary_search(&object) {
            self.0.insert(index, object);
        }
    }
}

/// The objects that are accessed, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Accesses(BTreeMap<Object, Access>);

/// The kind of an access. Writes include reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    Read,
    Write,
}

impl Accesses {
    /// Returns a write of everything.
    pub fn everything() -> Accesses {
        let mut all = Accesses::default();
        all.add(Object::Any, Access::Write);
        all.add(Object::World, Access::Write);
        all
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Object, Access)> + '_ {
        self.0.iter().map(|(&object, &access)| (object, access))
    }

    /// Adds an access; returns whether it was new.
    pub fn add(&mut self, object: Object, access: Access) -> bool {
        let old = self.0.get(&object).copied();
        if old >= Some(access) {
            return false;
        }
        self.0.insert(object, access);
        self.limit();
        self.0.get(&object).copied() != old
    }

    pub fn add_all(&mut self, objects: &Objects, access: Access) {
        for object in objects.iter() {
            self.add(object, access);
        }
    }

    pub fn merge(&mut self, other: &Accesses) {
        for (object, access) in other.iter() {
            self.add(object, access);
        }
    }

    /// Replaces buffers by any buffer if there are too many.
    fn limit(&mut self) {
        if self.0.len() <= 2 * MAX_OBJECTS {
            return;
        }
        let buffers = self
            .0
            .iter()
            .filter(|(object, _)| **object != Object::World);
        let access = buffers.map(|(_, access)| *access).max();
        let world = self.0.get(&Object::World).copied();
        self.0.clear();
        self.0.extend(access.map(|access| (Object::Any, access)));
        self.0.extend(world.map(|access| (Object::World, access)));
    }
}

/// Returns whether a value of a type may refer to a mutable object.
///
/// Numbers, chains, strings and shapes are values and nothing else. Other types of
/// dialects may be references.
pub(super) fn is_reference(ty: &Type) -> bool {
    const VALUES: [&str; 11] = [
        "!tfrt.chain",
        "!tfrt.string",
        "!tfrt.device",
        "!tfrt.tensor_type",
        "!ts.shape",
        "!ts.partial_shape",
        "!ts.fixed_rank_shape.0",
        "!ts.fixed_rank_shape.1",
        "!ts.fixed_rank_shape.2",
        "!ts.fixed_rank_shape.3",
        "!vt.value",
    ];
    ty.as_dialect().is_some_and(|name| !VALUES.contains(&name))
}
