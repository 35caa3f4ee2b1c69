//! Comparison of an output with what was expected of it.
//!
//! Floats may differ by [`Tolerance::absolute`] and, of the expected number, [`Tolerance::relative`], as in
//! `numpy.allclose`; what is no number equals what is none. Integers may differ by the absolute part alone, so that
//! indices are not taken for one another for being large. Truth values and strings are equal.

use serde::Serialize;
use serde_json::Value as Json;
use tfrt::Error;
use tfrt::model::Datum;
use tfrt::tensor::{Optional, Tensor};

use super::numbers;
use super::scalars::{Scalar, scalars};

/// The number of elements that are compared at once.
const CHUNK: usize = 1 << 16;

/// The bound on differences: `absolute + relative * |expected|`.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    pub absolute: f64,
    pub relative: f64,
}

/// The result of a comparison of values that have the same type and shape.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    pub n_elements: usize,
    /// The number of elements that differ by more than the tolerance.
    pub n_differing: usize,
    /// The element that is farthest beyond the tolerance; the one that differs most if none is.
    pub worst: Option<WorstElement>,
}

/// An element beside the expected one.
#[derive(Clone, Debug)]
pub struct WorstElement {
    /// The index of the tensor, in a sequence.
    pub tensor: Option<usize>,
    pub index: Vec<usize>,
    pub expected: Scalar,
    pub found: Scalar,
    /// The difference of numbers; infinite where one is no number, and of what is no number at all.
    pub difference: f64,
    /// The difference less what is allowed, if it is more, and the difference.
    rank: (f64, f64),
}

/// A [`WorstElement`] as documents show it.
#[derive(Serialize)]
pub struct WorstReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    tensor: Option<usize>,
    index: Vec<usize>,
    expected: Json,
    found: Json,
    difference: Json,
}

impl From<&WorstElement> for WorstReport {
    fn from(worst: &WorstElement) -> WorstReport {
        WorstReport {
            tensor: worst.tensor,
            index: worst.index.clone(),
            expected: worst.expected.to_json(),
            found: worst.found.to_json(),
            difference: Scalar::Double(worst.difference).to_json(),
        }
    }
}

/// The reason why two values have no differences of elements to tell of.
#[derive(Debug)]
pub enum Misfit {
    /// Types or shapes differ, which the text says.
    Kind(String),
    /// A tensor can't be read.
    Unreadable(Error),
}

impl From<Error> for Misfit {
    fn from(error: Error) -> Misfit {
        Misfit::Unreadable(error)
    }
}

/// Compares a value with the expected one.
///
/// # Errors
///
/// If type or shape differ, or somebody writes a tensor.
pub fn compare(
    found: &Datum,
    expected: &Datum,
    tolerance: Tolerance,
) -> Result<Differences, Misfit> {
    let misfit = || {
        Misfit::Kind(format!(
            "expected {}, found {}",
            expected.kind(),
            found.kind()
        ))
    };
    let pairs: Vec<(&Tensor, &Tensor)> = match (found, expected) {
        (
            Datum::Sequence(found) | Datum::Optional(Optional::Sequence(found)),
            Datum::Sequence(expected) | Datum::Optional(Optional::Sequence(expected)),
        ) => {
            let (found, expected) = (found.tensors(), expected.tensors());
            if found.len() != expected.len() {
                return Err(Misfit::Kind(format!(
                    "expected a sequence of {} tensors, found {}",
                    expected.len(),
                    found.len()
                )));
            }
            found.iter().zip(expected).collect()
        }
        (Datum::Optional(Optional::Nothing), Datum::Optional(Optional::Nothing)) => Vec::new(),
        (found, expected) => match (found.as_matrix(), expected.as_matrix()) {
            (Some(found), Some(expected)) => vec![(found, expected)],
            _ => return Err(misfit()),
        },
    };
    let is_sequence = matches!(
        found,
        Datum::Sequence(_) | Datum::Optional(Optional::Sequence(_))
    );
    let mut differences = Differences::default();
    for (index, (found, expected)) in pairs.into_iter().enumerate() {
        let of = is_sequence.then_some(index);
        differences.add(of, found, expected, tolerance)?;
    }
    Ok(differences)
}

impl Differences {
    /// Adds those of a tensor, of a sequence if it has an index.
    fn add(
        &mut self,
        tensor: Option<usize>,
        found: &Tensor,
        expected: &Tensor,
        tolerance: Tolerance,
    ) -> Result<(), Misfit> {
        let (has, wanted) = (found.metadata(), expected.metadata());
        // Files of NumPy have other elements for those that NumPy lacks.
        let is_same =
            has.dtype == wanted.dtype || numbers::of_numpy(has.dtype) == Some(wanted.dtype);
        if !is_same || has.shape != wanted.shape {
            let place = tensor.map_or_else(String::new, |index| format!("tensor {index}: "));
            return Err(Misfit::Kind(format!(
                "{place}expected {wanted}, found {has}"
            )));
        }
        let extents = has.shape.to_dims();
        let n_elements = has.shape.n_elements().unwrap_or(0);
        self.n_elements += n_elements;
        for first in (0..n_elements).step_by(CHUNK) {
            let range = first..n_elements.min(first + CHUNK);
            let pairs = scalars(found, range.clone())?;
            let pairs = pairs.into_iter().zip(scalars(expected, range)?);
            for (place, (found, expected)) in pairs.enumerate() {
                let (difference, excess) = tolerance.excess(&found, &expected);
                self.n_differing += usize::from(excess > 0.0);
                let worst = self.worst.as_ref();
                let rank = (excess.max(0.0), difference);
                if worst.is_none_or(|worst| rank > worst.rank) {
                    self.worst = Some(WorstElement {
                        tensor,
                        index: index_of(first + place, &extents),
                        expected,
                        found,
                        difference,
                        rank,
                    });
                }
            }
        }
        Ok(())
    }
}

impl Tolerance {
    /// Returns the difference of two elements, and by how much it is more than what is allowed.
    fn excess(self, found: &Scalar, expected: &Scalar) -> (f64, f64) {
        const OTHER: (f64, f64) = (f64::INFINITY, f64::INFINITY);
        let of_floats =
            |difference: f64, size: f64| match difference.is_finite() && size.is_finite() {
                true => (
                    difference,
                    difference - (self.absolute + self.relative * size),
                ),
                false => OTHER,
            };
        let is_equal = (0.0, -self.absolute);
        match (found, expected) {
            (Scalar::Integer(found), Scalar::Integer(expected)) => {
                #[allow(clippy::cast_precision_loss, reason = "it is compared with a float")]
                let difference = found.abs_diff(*expected) as f64;
                (difference, difference - self.absolute)
            }
            (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
                let are_none = [a, b].into_iter().any(|part| part.is_nan())
                    && [c, d].into_iter().any(|part| part.is_nan());
                match are_none || (a == c && b == d) {
                    true => is_equal,
                    false => of_floats((a - c).hypot(b - d), c.hypot(*d)),
                }
            }
            (found, expected) => match (found.number(), expected.number()) {
                (Some(found), Some(expected)) => {
                    match found.is_nan() && expected.is_nan() || found == expected {
                        true => (0.0, -(self.absolute + self.relative * finite(expected))),
                        false => of_floats((found - expected).abs(), expected.abs()),
                    }
                }
                _ if found == expected => is_equal,
                _ => OTHER,
            },
        }
    }
}

/// Returns the size of a number, 0 if it has none.
fn finite(number: f64) -> f64 {
    match number.is_finite() {
        true => number.abs(),
        false => 0.0,
    }
}

fn index_of(place: usize, extents: &[usize]) -> Vec<usize> {
    let mut rest = place;
    let mut index: Vec<usize> = extents
        .iter()
        .rev()
        .map(|extent| {
            let at = rest % extent.max(&1);
            rest /= extent.max(&1);
            at
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOSE: Tolerance = Tolerance {
        absolute: 0.01,
        relative: 0.01,
    };

    #[test]
    fn floats_differ_by_the_size_of_what_is_expected_and_integers_do_not() {
        let exceeds = |found, expected| LOOSE.excess(&found, &expected).1 > 0.0;
        let double = Scalar::Double;
        assert!(!exceeds(double(101.0), double(100.0)));
        assert!(exceeds(double(101.1), double(100.0)));
        assert!(exceeds(Scalar::Integer(101), Scalar::Integer(100)));
        for (one, is_equal) in [(f64::NAN, true), (f64::INFINITY, true), (1.0, true)] {
            assert_eq!(!exceeds(double(one), double(one)), is_equal);
        }
        assert!(exceeds(double(f64::INFINITY), double(f64::NEG_INFINITY)));
        assert!(exceeds(double(1.0), double(f64::INFINITY)));
        assert!(exceeds(double(f64::NAN), double(1.0)));
        assert!(exceeds(Scalar::Truth(true), Scalar::Truth(false)));
        assert!(!exceeds(
            Scalar::Complex(1.0, 1.0),
            Scalar::Complex(1.0, 1.01)
        ));
        assert!(exceeds(
            Scalar::Complex(1.0, 1.0),
            Scalar::Complex(1.0, 1.1)
        ));
    }
}
