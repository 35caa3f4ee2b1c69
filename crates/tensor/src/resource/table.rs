//! [`HashTable`]: values by keys, as a resource.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tfrt_host::{DType, Error, HostAllocator};

use super::Resource;
use crate::{DenseHostTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape};

/// Values by keys, as a resource: words of a text as numbers, say. Keys are integers or strings, values numbers, truth
/// values or strings, or several of these of one shape.
pub struct HashTable {
    kind: TableKind,
    entries: RwLock<Entries>,
}

/// Fixed properties of a [`HashTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableKind {
    /// The type of keys: `I32`, `I64` or `String`.
    pub keys: DType,
    /// The type of the elements of values.
    pub values: DType,
    /// The shape of each value.
    pub shape: TensorShape,
    /// Whether entries may be changed after the first ones were put in.
    pub is_mutable: bool,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Value>,
    /// The next number of an entry.
    next: u64,
    was_filled: bool,
}

/// The bytes of a string, or of an integer of 64 bits.
type Key = Box<[u8]>;

/// A key with its value.
type Pair = (Key, Parts);

/// The elements of a value, and the number of its entry, by which tables are listed.
struct Value {
    elements: Parts,
    number: u64,
}

/// Elements: bytes that lie in a row, or strings.
#[derive(Clone, PartialEq, Eq)]
enum Parts {
    Bytes(Box<[u8]>),
    Strings(Box<[Vec<u8>]>),
}

impl HashTable {
    /// Makes a table without entries.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for types that keys or values can't be of.
    pub fn new(kind: TableKind) -> Result<HashTable, Error> {
        if !matches!(kind.keys, DType::I32 | DType::I64 | DType::String) {
            let found = kind.keys;
            return Err(Error::invalid_argument(format!(
                "keys of a table are i32, i64 or strings, found {found}"
            )));
        }
        if kind.values != DType::String && kind.values.size_bytes().is_none() {
            let found = kind.values;
            return Err(Error::invalid_argument(format!(
                "values of a table are numbers or strings, found {found}"
            )));
        }
        Ok(HashTable {
            kind,
            entries: RwLock::default(),
        })
    }

    /// Returns what is fixed.
    pub fn kind(&self) -> &TableKind {
        &self.kind
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.read().by_key.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of each key, and a default for those without one: that, or that of the key's position.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for other types, or a default of another shape; `FailedPrecondition` for a table that is filled
    /// once, and is not.
    pub fn find(
        &self,
        keys: &Tensor,
        default: &Tensor,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Tensor, Error> {
        let own = self.keys_of(keys)?;
        let shape = self.values_shape(&keys.metadata().shape)?;
        self.expect_values(default, None)?;
        let is_one = default.metadata().shape == self.kind.shape;
        if !is_one && default.metadata().shape != shape {
            let found = &default.metadata().shape;
            return Err(Error::invalid_argument(format!(
                "Expected shape {} or {shape} for default value, got {found}",
                self.kind.shape
            )));
        }
        let n = self.n_elements();
        let defaults = values_of(default, n, if is_one { 1 } else { own.len() })?;
        let entries = self.read();
        if !self.kind.is_mutable && !entries.was_filled {
            return Err(Error::failed_precondition("Table not initialized."));
        }
        let found = own.iter().enumerate().map(|(at, key)| {
            let value = entries.by_key.get(key);
            let default = if is_one { 0 } else { at };
            value.map_or_else(|| &defaults[default], |value| &value.elements)
        });
        joined(found, (self.kind.values, shape), allocator)
    }

    /// Puts in values, which take the place of those that are there.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for other types or shapes, `FailedPrecondition` for a table that is filled once.
    pub fn insert(&self, keys: &Tensor, values: &Tensor) -> Result<(), Error> {
        let pairs = self.pairs(keys, values)?;
        if !self.kind.is_mutable {
            return Err(Error::failed_precondition(
                "the table is filled once: it can't be changed",
            ));
        }
        self.write().extend(pairs);
        Ok(())
    }

    /// Puts in values in the place of all that are there.
    ///
    /// # Errors
    ///
    /// See [`insert`](Self::insert).
    pub fn import(&self, keys: &Tensor, values: &Tensor) -> Result<(), Error> {
        let pairs = self.pairs(keys, values)?;
        if !self.kind.is_mutable {
            return Err(Error::failed_precondition(
                "the table is filled once: it can't be changed",
            ));
        }
        let mut entries = self.write();
        entries.by_key.clear();
        entries.extend(pairs);
        Ok(())
    }

    /// Fills a table that is filled once. A table that is filled stays as it is.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for other types or shapes, and for a key with two values.
    pub fn fill(&self, keys: &Tensor, values: &Tensor) -> Result<(), Error> {
        let pairs = self.pairs(keys, values)?;
        let mut by_key: HashMap<&[u8], &Parts> = HashMap::new();
        for (key, value) in &pairs {
            if *by_key.entry(key).or_insert(value) != value {
                let key = match self.kind.keys {
                    DType::String => String::from_utf8_lossy(key).escape_debug().to_string(),
                    _ => i64_of(key).to_string(),
                };
                return Err(Error::invalid_argument(format!(
                    "HashTable has different value for same key. Key {key} is there twice"
                )));
            }
        }
        let mut entries = self.write();
        if !entries.was_filled {
            entries.extend(pairs);
            entries.was_filled = true;
        }
        Ok(())
    }

    /// Removes entries.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for keys of another type, `FailedPrecondition` for a table that is filled once.
    pub fn remove(&self, keys: &Tensor) -> Result<(), Error> {
        let keys = self.keys_of(keys)?;
        if !self.kind.is_mutable {
            return Err(Error::failed_precondition(
                "the table is filled once: it can't be changed",
            ));
        }
        let mut entries = self.write();
        for key in keys {
            entries.by_key.remove(&key);
        }
        Ok(())
    }

    /// Returns all keys and values, in the order in which the keys were put in.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory.
    pub fn export(&self, allocator: &Arc<dyn HostAllocator>) -> Result<[Tensor; 2], Error> {
        let entries = self.read();
        let mut all: Vec<_> = entries.by_key.iter().collect();
        all.sort_by_key(|(_, value)| value.number);
        let n = TensorShape::new(&[all.len()])?;
        let keys = match self.kind.keys {
            DType::String => {
                let strings = all.iter().map(|(key, _)| key.to_vec()).collect();
                StringHostTensor::new(n.clone(), strings)?.into()
            }
            DType::I32 => {
                let list: Result<Vec<i32>, _> = all
                    .iter()
                    .map(|(key, _)| i32::try_from(i64_of(key)))
                    .collect();
                let list = list.map_err(|_| Error::internal("a key was an i32"))?;
                DenseHostTensor::from_slice(allocator, &[list.len()], &list)?.into()
            }
            _ => {
                let list: Vec<i64> = all.iter().map(|(key, _)| i64_of(key)).collect();
                DenseHostTensor::from_slice(allocator, &[list.len()], &list)?.into()
            }
        };
        let shape = self.values_shape(&n)?;
        let values = all.iter().map(|(_, value)| &value.elements);
        let values = joined(values, (self.kind.values, shape), allocator)?;
        Ok([keys, values])
    }

    fn n_elements(&self) -> usize {
        self.kind.shape.n_elements().unwrap_or(usize::MAX)
    }

    /// Returns the shape of the values of keys of a shape.
    fn values_shape(&self, keys: &TensorShape) -> Result<TensorShape, Error> {
        let extents: Vec<usize> = keys.extents().chain(self.kind.shape.extents()).collect();
        TensorShape::new(&extents)
    }

    fn keys_of(&self, keys: &Tensor) -> Result<Vec<Key>, Error> {
        let found = keys.metadata();
        if found.dtype != self.kind.keys {
            return Err(Error::invalid_argument(format!(
                "Key must be type {} but got {}",
                self.kind.keys, found.dtype
            )));
        }
        if let Tensor::String(strings) = keys {
            let strings = strings.strings().iter();
            return Ok(strings.map(|one| one.as_slice().into()).collect());
        }
        let reading = keys.as_dense()?.read()?;
        let bytes = |number: i64| number.to_le_bytes().into();
        Ok(match found.dtype {
            DType::I32 => {
                let list = reading.elements::<i32>()?.iter();
                list.map(|one| bytes(i64::from(*one))).collect()
            }
            _ => reading
                .elements::<i64>()?
                .iter()
                .map(|one| bytes(*one))
                .collect(),
        })
    }

    fn expect_values(&self, values: &Tensor, shape: Option<&TensorShape>) -> Result<(), Error> {
        let found = values.metadata();
        if found.dtype != self.kind.values {
            return Err(Error::invalid_argument(format!(
                "Expected value type {} got {}",
                self.kind.values, found.dtype
            )));
        }
        match shape {
            Some(shape) if *shape != found.shape => Err(Error::invalid_argument(format!(
                "Expected shape {shape} got {}",
                found.shape
            ))),
            _ => Ok(()),
        }
    }

    fn pairs(&self, keys: &Tensor, values: &Tensor) -> Result<Vec<Pair>, Error> {
        let own = self.keys_of(keys)?;
        let shape = self.values_shape(&keys.metadata().shape)?;
        self.expect_values(values, Some(&shape))?;
        let values = values_of(values, self.n_elements(), own.len())?;
        Ok(own.into_iter().zip(values).collect())
    }
}

impl Entries {
    fn extend(&mut self, pairs: Vec<Pair>) {
        for (key, elements) in pairs {
            match self.by_key.entry(key) {
                Entry::Occupied(mut found) => found.get_mut().elements = elements,
                Entry::Vacant(place) => {
                    let number = self.next;
                    self.next += 1;
                    place.insert(Value { elements, number });
                }
            }
        }
    }
}

fn i64_of(key: &[u8]) -> i64 {
    key.try_into().map_or(0, i64::from_le_bytes)
}

/// Returns the elements of a tensor as `n_parts` parts of `n`.
fn values_of(tensor: &Tensor, n: usize, n_parts: usize) -> Result<Vec<Parts>, Error> {
    if n == 0 {
        return Ok(vec![Parts::Bytes([].into()); n_parts]);
    }
    if let Tensor::String(strings) = tensor {
        let parts = strings.strings().chunks(n);
        return Ok(parts.map(|part| Parts::Strings(part.into())).collect());
    }
    let dense = tensor.as_dense()?;
    let reading = dense.read()?;
    let size = dense.dtype().size_bytes().unwrap_or(1);
    let parts = reading.bytes().chunks(n.saturating_mul(size));
    Ok(parts.map(|part| Parts::Bytes(part.into())).collect())
}

fn joined<'p>(
    parts: impl Iterator<Item = &'p Parts>,
    (dtype, shape): (DType, TensorShape),
    allocator: &Arc<dyn HostAllocator>,
) -> Result<Tensor, Error> {
    let (mut bytes, mut strings) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Parts::Bytes(part) => bytes.extend_from_slice(part),
            Parts::Strings(part) => strings.extend_from_slice(part),
        }
    }
    match dtype {
        DType::String => Ok(StringHostTensor::new(shape, strings)?.into()),
        _ => {
            let metadata = TensorMetadata::new(dtype, shape);
            Ok(DenseHostTensor::from_bytes(allocator, metadata, &bytes)?.into())
        }
    }
}

impl Resource for HashTable {
    fn type_name(&self) -> &str {
        "HashTable"
    }

    fn destroy(&self) -> bool {
        let mut entries = self.write();
        let had = !entries.by_key.is_empty();
        *entries = Entries::default();
        had
    }
}

impl fmt::Debug for HashTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, TableKind { keys, values, .. }) = (self.len(), &self.kind);
        write!(f, "HashTable({n} of {keys} to {values})")
    }
}
