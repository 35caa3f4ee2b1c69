//! [`Fact`]: the type, the extents and perhaps the elements of a value that is not yet calculated.

use smallvec::SmallVec;
use tfrt_bef::DType;

use crate::dim::{Dim, Dims};

/// The most elements of an integer tensor whose values are followed one by one.
pub const MOST_VALUES: usize = 256;

/// The facts of several values, by position.
pub type Facts = SmallVec<[Fact; 2]>;

/// The static facts of a tensor: type, extents, elements as far as they are known before it is calculated. For a
/// value that is no tensor (a sequence, a map) all are unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// The type of the elements.
    pub dtype: Option<DType>,
    /// The extents, if the rank is known.
    pub dims: Option<Dims>,
    /// The elements of a small integer tensor, mostly a shape, in row-major order.
    pub values: Option<Vec<Dim>>,
    /// The elements of a small floating-point constant, mostly the scales of an image.
    pub floats: Option<Vec<f64>>,
}

impl Fact {
    /// The fact of a value of which nothing is known.
    pub const UNKNOWN: Fact = Fact {
        dtype: None,
        dims: None,
        values: None,
        floats: None,
    };

    /// Makes a fact of a type and extents, each if it is known.
    pub fn new(dtype: Option<DType>, dims: Option<Dims>) -> Fact {
        Fact {
            dtype,
            dims,
            values: None,
            floats: None,
        }
    }

    /// Makes a fact of a tensor whose rank alone is known.
    pub fn of_rank(dtype: Option<DType>, rank: usize) -> Fact {
        Fact::new(dtype, Some(unknown_dims(rank)))
    }

    /// Returns the number of dimensions, if it is known.
    pub fn rank(&self) -> Option<usize> {
        self.dims.as_ref().map(SmallVec::len)
    }

    /// Returns the extent of a dimension: unknown if it is not known, or if there is no such dimension.
    pub fn dim(&self, axis: usize) -> Dim {
        let dims = self.dims.as_ref();
        dims.and_then(|dims| dims.get(axis))
            .cloned()
            .unwrap_or_default()
    }

    /// Returns the number of elements.
    pub fn n_elements(&self) -> Dim {
        self.dims.as_deref().map_or(Dim::Unknown, product)
    }

    /// Returns the elements, if each is a number.
    pub fn numbers(&self) -> Option<Vec<i64>> {
        self.values.as_ref()?.iter().map(Dim::value).collect()
    }

    /// Returns the only element, if there is one and it is a number.
    pub fn number(&self) -> Option<i64> {
        match self.values.as_deref()? {
            [one] => one.value(),
            _ => None,
        }
    }

    /// Completes a fact by another source, mostly by the types that a file states. Where both know a number, that of
    /// `self` stays.
    #[must_use]
    pub fn or(mut self, other: &Fact) -> Fact {
        self.dtype = self.dtype.or(other.dtype);
        self.dims = match (self.dims, &other.dims) {
            (Some(mut own), Some(others)) if own.len() == others.len() => {
                for (own, other) in own.iter_mut().zip(others) {
                    if own.value().is_none() && !other.is_unknown() {
                        own.clone_from(other);
                    }
                }
                Some(own)
            }
            (own, others) => own.or_else(|| others.clone()),
        };
        self
    }

    /// Returns the facts that hold of both values, as for the result of a branch or a loop.
    #[must_use]
    pub fn join(mut self, other: &Fact) -> Fact {
        self.dtype = self.dtype.filter(|dtype| other.dtype == Some(*dtype));
        self.dims = match (self.dims, &other.dims) {
            (Some(mut own), Some(others)) if own.len() == others.len() => {
                for (own, other) in own.iter_mut().zip(others) {
                    if own != other {
                        *own = Dim::Unknown;
                    }
                }
                Some(own)
            }
            _ => None,
        };
        self.values = self
            .values
            .filter(|values| Some(values) == other.values.as_ref());
        self.floats = self
            .floats
            .filter(|floats| Some(floats) == other.floats.as_ref());
        self
    }
}

/// Returns unknown extents of a known rank.
pub fn unknown_dims(rank: usize) -> Dims {
    SmallVec::from_elem(Dim::Unknown, rank)
}

/// Returns the product of extents.
pub fn product(dims: &[Dim]) -> Dim {
    let mut product = Dim::Known(1);
    for dim in dims {
        product = &product * dim;
    }
    product
}
