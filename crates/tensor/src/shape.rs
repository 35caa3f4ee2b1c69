//! [`TensorShape`]: the extents of a tensor, in 16 bytes; [`PartialTensorShape`], where some are unknown.

use std::fmt;
use std::hash::{Hash, Hasher};

use smallvec::SmallVec;
use tfrt_host::{Error, Heap, Value};

use crate::text;

/// The most dimensions that a tensor has.
pub const MAX_RANK: usize = 255;

/// Extents or strides, in a list that seldom allocates.
pub type Dims = SmallVec<[usize; 6]>;

/// The extents of a tensor, from the outermost dimension to the innermost.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::TensorShape;
///
/// let shape = TensorShape::new(&[2, 3, 4])?;
/// assert_eq!(shape.n_elements(), Some(24));
/// assert_eq!(shape.strides().as_slice(), [12, 4, 1]);
/// assert_eq!(shape.to_string(), "[2, 3, 4]");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone)]
pub struct TensorShape(Extents);

/// Storage of extents: always the first that can hold them, so that equal shapes are of one kind.
#[derive(Clone)]
enum Extents {
    /// Up to seven, each below 2^16.
    Small { rank: u8, extents: [u16; 7] },
    /// Up to four, the first three below 2^32, the last below 2^16.
    Medium {
        rank: u8,
        last: u16,
        extents: [u32; 3],
    },
    /// All others.
    #[expect(clippy::box_collection, reason = "one word: a list takes three")]
    Large(Box<Vec<u64>>),
}

const _: () = assert!(size_of::<TensorShape>() == 16);

impl TensorShape {
    /// The shape of a scalar: no dimensions, one element.
    pub const SCALAR: TensorShape = TensorShape(Extents::Small {
        rank: 0,
        extents: [0; 7],
    });

    /// Returns the shape with these extents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are more than [`MAX_RANK`], or if one does not fit 63 bits.
    pub fn new(extents: &[usize]) -> Result<TensorShape, Error> {
        Self::from_extents(extents.len(), extents.iter().map(|extent| *extent as u64))
    }

    /// Returns the shape with these extents, as attributes and files have them.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are more than [`MAX_RANK`], or if one is negative.
    #[inline]
    pub fn from_i64(extents: &[i64]) -> Result<TensorShape, Error> {
        let few = extents.iter().map(|extent| *extent as u64);
        match (u8::try_from(extents.len()), small(extents.len(), few)) {
            (Ok(rank), Some(extents)) => Ok(TensorShape(Extents::Small { rank, extents })),
            _ => Self::from_any_i64(extents),
        }
    }

    #[cold]
    fn from_any_i64(extents: &[i64]) -> Result<TensorShape, Error> {
        if let Some(index) = extents.iter().position(|extent| *extent < 0) {
            let message = format!(
                "the extent of dimension {index} is {}: expected 0 or more",
                extents[index]
            );
            return Err(Error::invalid_argument(message));
        }
        Self::from_extents(
            extents.len(),
            extents.iter().map(|extent| extent.unsigned_abs()),
        )
    }

    fn from_extents(
        rank: usize,
        extents: impl Iterator<Item = u64> + Clone,
    ) -> Result<TensorShape, Error> {
        let Some(rank_byte) = u8::try_from(rank).ok() else {
            let message = format!("a shape has {MAX_RANK} dimensions at most, found {rank}");
            return Err(Error::invalid_argument(message));
        };
        if let Some(extents) = small(rank, extents.clone()) {
            return Ok(TensorShape(Extents::Small {
                rank: rank_byte,
                extents,
            }));
        }
        if extents.clone().any(|extent| i64::try_from(extent).is_err()) {
            let message = "an extent exceeds the largest 64-bit integer";
            return Err(Error::invalid_argument(message));
        }
        let fits = |max: u64| move |extent: u64| extent <= max;
        let last = extents.clone().nth(3).unwrap_or(0);
        let is_medium = rank <= 4 && extents.clone().take(3).all(fits(u32::MAX.into()));
        if let (true, Ok(last)) = (is_medium, u16::try_from(last)) {
            let mut medium = [0; 3];
            for (to, extent) in medium.iter_mut().zip(extents) {
                *to = u32::try_from(extent).expect("it was looked at");
            }
            return Ok(TensorShape(Extents::Medium {
                rank: rank_byte,
                last,
                extents: medium,
            }));
        }
        Ok(TensorShape(Extents::Large(Box::new(extents.collect()))))
    }

    /// Returns the number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        match &self.0 {
            Extents::Small { rank, .. } | Extents::Medium { rank, .. } => usize::from(*rank),
            Extents::Large(extents) => extents.len(),
        }
    }

    /// Returns the extent of a dimension, if the shape has it.
    #[inline]
    pub fn extent(&self, dimension: usize) -> Option<usize> {
        if dimension >= self.rank() {
            return None;
        }
        let extent = match &self.0 {
            Extents::Small { extents, .. } => extents[dimension].into(),
            Extents::Medium { last, .. } if dimension == 3 => (*last).into(),
            Extents::Medium { extents, .. } => extents[dimension].into(),
            Extents::Large(extents) => extents[dimension],
        };
        // Sizes of memory have 64 bits where this runs; elsewhere such a shape has no tensor.
        Some(usize::try_from(extent).unwrap_or(usize::MAX))
    }

    /// Returns the rank, and the extents with zeros behind them, if these are up to seven, each below 2^16, as nearly always.
    #[inline]
    pub fn as_small(&self) -> Option<(u8, [u16; 7])> {
        match &self.0 {
            Extents::Small { rank, extents } => Some((*rank, *extents)),
            _ => None,
        }
    }

    /// Returns the extents, outermost first.
    pub fn extents(
        &self,
    ) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone + '_ {
        (0..self.rank()).map(|dimension| self.extent(dimension).unwrap_or(0))
    }

    /// Returns the extents in a list.
    #[inline]
    pub fn to_dims(&self) -> Dims {
        match &self.0 {
            // All seven are copied at once, whatever the rank is.
            Extents::Small { rank, extents } if *rank <= 6 => {
                let [a, b, c, d, e, f, _] = extents.map(usize::from);
                Dims::from_buf_and_len([a, b, c, d, e, f], usize::from(*rank))
            }
            _ => self.extents().collect(),
        }
    }

    /// Returns the number of elements of a tensor of this shape; `None` if they fit the memory of no machine.
    pub fn n_elements(&self) -> Option<usize> {
        let max = usize::MAX / 2;
        if let Extents::Small { rank, extents } = &self.0
            && *rank <= 3
        {
            // The product of three of 16 bits fits 64.
            let used = extents[..usize::from(*rank)].iter();
            let product: u64 = used.map(|extent| u64::from(*extent)).product();
            return usize::try_from(product).ok().filter(|n| *n <= max);
        }
        if self.extents().any(|extent| extent == 0) {
            return Some(0);
        }
        let product = self
            .extents()
            .try_fold(1_usize, |product, extent| product.checked_mul(extent))?;
        (product <= max).then_some(product)
    }

    /// Returns the row-major strides in elements. A stride that does not fit is the largest number.
    pub fn strides(&self) -> Dims {
        let mut strides: Dims = self.to_dims();
        let mut stride = 1_usize;
        for entry in strides.iter_mut().rev() {
            let extent = *entry;
            *entry = stride;
            stride = stride.saturating_mul(extent);
        }
        strides
    }

    /// Returns the shape with `rank` dimensions, at least one: the leading ones are merged, or ones are put in front.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if `rank` is 0, or if the product of what is swallowed does not fit 63 bits.
    pub fn flatten_outer(&self, rank: usize) -> Result<TensorShape, Error> {
        let Some(n_others) = rank.checked_sub(1) else {
            let message = "a shape can't be flattened to no dimensions";
            return Err(Error::invalid_argument(message));
        };
        let n_kept = n_others.min(self.rank());
        let n_swallowed = self.rank() - n_kept;
        let product = self
            .extents()
            .take(n_swallowed)
            .try_fold(1_usize, |product, extent| product.checked_mul(extent))
            .ok_or_else(|| Error::invalid_argument(format!("{self} has too many elements")))?;
        let mut extents = Dims::from_elem(1, n_others - n_kept);
        extents.insert(extents.len(), product);
        extents.extend(self.extents().skip(n_swallowed));
        TensorShape::new(&extents)
    }
}

/// Returns extents that are few and below 2^16.
#[inline]
fn small(rank: usize, extents: impl Iterator<Item = u64>) -> Option<[u16; 7]> {
    let mut small = [0; 7];
    if rank > small.len() {
        return None;
    }
    for (to, extent) in small.iter_mut().zip(extents) {
        *to = u16::try_from(extent).ok()?;
    }
    Some(small)
}

impl Default for TensorShape {
    fn default() -> Self {
        TensorShape::SCALAR
    }
}

impl PartialEq for TensorShape {
    #[inline]
    fn eq(&self, other: &TensorShape) -> bool {
        match (&self.0, &other.0) {
            (
                Extents::Small { rank, extents },
                Extents::Small {
                    rank: other_rank,
                    extents: other_extents,
                },
            ) => rank == other_rank && extents == other_extents,
            _ => self.rank() == other.rank() && self.extents().eq(other.extents()),
        }
    }
}

impl Eq for TensorShape {}

impl Hash for TensorShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        self.extents().for_each(|extent| extent.hash(state));
    }
}

/// `[2, 3]`, or `[]` for a scalar.
impl fmt::Display for TensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::list(self.extents(), f)
    }
}

impl fmt::Debug for TensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Value for TensorShape {
    const NAME: &'static str = "!ts.shape";
    type Storage = Heap;
}

/// Extents some of which, or even their number, are unknown.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::PartialTensorShape;
///
/// let shape = PartialTensorShape::from_i64(&[-1, 4])?;
/// assert_eq!(shape.to_string(), "[-1, 4]");
/// let error = shape.to_shape().unwrap_err();
/// assert_eq!(error.message(), "Unknown dimensions at following indices = [0]");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialTensorShape {
    /// `None` in place of the list if the rank is unknown, in place of an extent if that is.
    extents: Option<SmallVec<[Option<u64>; 4]>>,
}

impl PartialTensorShape {
    /// The extent that stands for an unknown one in attributes and text.
    pub const UNKNOWN: i64 = -1;

    /// A shape of which nothing is known, not even the number of dimensions.
    pub const UNRANKED: PartialTensorShape = PartialTensorShape { extents: None };

    /// Returns the shape with these extents; [`UNKNOWN`](Self::UNKNOWN) stands for an unknown one.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are more than [`MAX_RANK`], or if another is negative.
    pub fn from_i64(extents: &[i64]) -> Result<PartialTensorShape, Error> {
        if extents.len() > MAX_RANK {
            let message = format!(
                "a shape has {MAX_RANK} dimensions at most, found {}",
                extents.len()
            );
            return Err(Error::invalid_argument(message));
        }
        let known = |(index, extent): (usize, &i64)| match *extent {
            Self::UNKNOWN => Ok(None),
            extent if extent < 0 => Err(Error::invalid_argument(format!(
                "the extent of dimension {index} is {extent}: expected 0 or more, or -1 for one that \
                 is unknown"
            ))),
            extent => Ok(Some(extent.unsigned_abs())),
        };
        let extents = extents
            .iter()
            .enumerate()
            .map(known)
            .collect::<Result<_, _>>()?;
        Ok(PartialTensorShape {
            extents: Some(extents),
        })
    }

    /// Returns the number of dimensions, if it is known.
    pub fn rank(&self) -> Option<usize> {
        self.extents.as_ref().map(SmallVec::len)
    }

    /// Returns the extents, `None` where one is unknown; `None` if their number is unknown.
    pub fn extents(&self) -> Option<impl ExactSizeIterator<Item = Option<u64>> + '_> {
        Some(self.extents.as_ref()?.iter().copied())
    }

    /// Returns the shape if all of it is known.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`, which lists the dimensions that are unknown.
    pub fn to_shape(&self) -> Result<TensorShape, Error> {
        let Some(extents) = &self.extents else {
            return Err(Error::invalid_argument("Unknown rank"));
        };
        let is_unknown = |(index, extent): (usize, &Option<u64>)| extent.is_none().then_some(index);
        let unknown: Vec<usize> = extents.iter().enumerate().filter_map(is_unknown).collect();
        if !unknown.is_empty() {
            let message = format!("Unknown dimensions at following indices = {unknown:?}");
            return Err(Error::invalid_argument(message));
        }
        TensorShape::from_extents(extents.len(), extents.iter().flatten().copied())
    }
}

impl From<&TensorShape> for PartialTensorShape {
    fn from(shape: &TensorShape) -> PartialTensorShape {
        let extents = shape.extents().map(|extent| Some(extent as u64)).collect();
        PartialTensorShape {
            extents: Some(extents),
        }
    }
}

/// `[2, -1]`, or `Unknown rank`.
impl fmt::Display for PartialTensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(extents) = &self.extents else {
            return f.write_str("Unknown rank");
        };
        let extents = extents
            .iter()
            .map(|extent| extent.map_or(i128::from(Self::UNKNOWN), i128::from));
        text::list(extents, f)
    }
}

impl Value for PartialTensorShape {
    const NAME: &'static str = "!ts.partial_shape";
    type Storage = Heap;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_every_size_are_kept() {
        let max = usize::try_from(i64::MAX).unwrap();
        let cases: &[&[usize]] = &[
            &[],
            &[0],
            &[65_535; 7],
            &[1; 8],
            &[1, 2, 3, 65_535],
            &[4_294_967_295, 4_294_967_295, 4_294_967_295, 65_535],
            &[1, 2, 3, 65_536],
            &[65_536, 1, 1, 1, 1],
            &[max],
            &[3; 255],
        ];
        for (index, extents) in cases.iter().enumerate() {
            let shape = TensorShape::new(extents).unwrap();
            assert_eq!(shape.to_dims().as_slice(), *extents);
            assert_eq!(shape.rank(), extents.len());
            for (other_index, other) in cases.iter().enumerate() {
                let is_equal = shape == TensorShape::new(other).unwrap();
                assert_eq!(is_equal, index == other_index, "{extents:?} {other:?}");
            }
        }
        assert!(TensorShape::new(&[1; 256]).is_err());
        assert!(TensorShape::new(&[max + 1]).is_err());
        assert!(TensorShape::from_i64(&[1, -1]).is_err());
    }

    #[test]
    fn elements_are_counted_or_too_many() {
        let count = |extents: &[usize]| TensorShape::new(extents).unwrap().n_elements();
        assert_eq!(count(&[]), Some(1));
        assert_eq!(count(&[16, 15, 14]), Some(3360));
        assert_eq!(count(&[1 << 32, 1 << 32, 0]), Some(0));
        assert_eq!(count(&[1 << 32, 1 << 32]), None);
        let strides = |extents: &[usize]| TensorShape::new(extents).unwrap().strides();
        assert_eq!(strides(&[16, 15, 14]).as_slice(), [210, 14, 1]);
        assert_eq!(strides(&[5, 0, 3]).as_slice(), [0, 3, 1]);
    }

    #[test]
    fn leading_dimensions_are_swallowed() {
        let flatten = |extents: &[usize], rank| {
            let shape = TensorShape::new(extents).unwrap();
            shape.flatten_outer(rank).unwrap().to_string()
        };
        assert_eq!(flatten(&[2, 3, 4], 2), "[6, 4]");
        assert_eq!(flatten(&[2, 3, 4], 1), "[24]");
        assert_eq!(flatten(&[2, 3], 3), "[1, 2, 3]");
        assert_eq!(flatten(&[], 1), "[1]");
        assert!(TensorShape::SCALAR.flatten_outer(0).is_err());
    }

    #[test]
    fn partial_shapes_say_what_is_unknown() {
        let partial = PartialTensorShape::from_i64(&[-1, 2, -1]).unwrap();
        assert_eq!(partial.to_string(), "[-1, 2, -1]");
        let error = partial.to_shape().unwrap_err();
        assert_eq!(
            error.message(),
            "Unknown dimensions at following indices = [0, 2]"
        );
        let unranked = PartialTensorShape::UNRANKED;
        assert_eq!(unranked.to_string(), "Unknown rank");
        assert_eq!(unranked.to_shape().unwrap_err().message(), "Unknown rank");
        let shape = TensorShape::new(&[7, 0]).unwrap();
        assert_eq!(PartialTensorShape::from(&shape).to_shape().unwrap(), shape);
        assert!(PartialTensorShape::from_i64(&[-2]).is_err());
    }
}
