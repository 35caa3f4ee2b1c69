//! [`Fact`]: what is known of a value before it is calculated.

use smallvec::SmallVec;
use tfrt_bef::DType;

use crate::dim::{Dim, Dims};

/// The most elements of an integer tensor that are followed one by one.
pub const MOST_VALUES: usize = 256;

/// What is known of several values, by position.
pub type Facts = SmallVec<[Fact; 2]>;

/// What is known of a tensor before it is calculated. Of a value that is no tensor (a sequence, a map) nothing is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// The type of its elements.
    pub dtype: Option<DType>,
    /// Its extents, if its rank is known.
    pub dims: Option<Dims>,
    /// Its elements in row-major order, of small integer tensors, mostly shapes.
    pub values: Option<Vec<Dim>>,
    /// Its elements, of small constants of floating-point numbers: scales of images, mostly.
    pub floats: Option<Vec<f64>>,
}

impl Fact {
    /// Nothing is known.
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

    /// Returns one extent; unknown if it is, or if there is no such dimension.
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

    /// Adds what another source knows: what is stated in a file, mostly. Where both know a number, this one is kept.
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

    /// Keeps what holds for this value and for another one: for what a branch or a loop may give.
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

/// Returns extents of which nothing is known but their number.
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
