//! [`Extent`]: a dimension as a polynomial of named symbols.

use std::{collections::BTreeMap, fmt};

/// Terms of larger polynomials are not followed: what they say becomes unknown.
const MOST_TERMS: usize = 32;

/// Factors of larger terms are not followed either.
const MOST_FACTORS: usize = 8;

/// A sum of products of symbols with whole coefficients.
///
/// What is no polynomial, such as a quotient that is rounded, is a symbol whose name says how it is made:
/// two that are made alike are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Extent {
    /// Coefficients by sorted factors. Invariant: none is 0.
    terms: BTreeMap<Vec<String>, i64>,
}

impl Extent {
    pub(crate) fn known(value: i64) -> Extent {
        Extent::term(Vec::new(), value)
    }

    pub(crate) fn symbol(name: impl Into<String>) -> Extent {
        Extent::term(vec![name.into()], 1)
    }

    fn term(factors: Vec<String>, coefficient: i64) -> Extent {
        let mut terms = BTreeMap::new();
        if coefficient != 0 {
            terms.insert(factors, coefficient);
        }
        Extent { terms }
    }

    /// Returns the number, if it is one.
    pub(crate) fn value(&self) -> Option<i64> {
        let mut terms = self.terms.iter();
        match (terms.next(), terms.next()) {
            (None, _) => Some(0),
            (Some((factors, value)), None) if factors.is_empty() => Some(*value),
            _ => None,
        }
    }

    /// Returns whether it is 0 or more whatever the symbols are, if these are extents or made of extents by sums
    /// and products.
    pub(crate) fn is_never_negative(&self) -> bool {
        let mut terms = self.terms.iter();
        terms.all(|(factors, coefficient)| {
            // What was rounded down may have been anything.
            *coefficient > 0 && factors.iter().all(|factor| !factor.starts_with("floor("))
        })
    }

    pub(crate) fn plus(&self, other: &Extent) -> Option<Extent> {
        let mut terms = self.terms.clone();
        for (factors, coefficient) in &other.terms {
            let sum = terms.get(factors).copied().unwrap_or(0);
            match sum.checked_add(*coefficient)? {
                0 => terms.remove(factors),
                sum => terms.insert(factors.clone(), sum),
            };
        }
        (terms.len() <= MOST_TERMS).then_some(Extent { terms })
    }

    pub(crate) fn minus(&self, other: &Extent) -> Option<Extent> {
        self.plus(&other.times(&Extent::known(-1))?)
    }

    pub(crate) fn times(&self, other: &Extent) -> Option<Extent> {
        let mut product = Extent::default();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let mut factors = left.clone();
                factors.extend(right.iter().cloned());
                if factors.len() > MOST_FACTORS {
                    return None;
                }
                factors.sort();
                product = product.plus(&Extent::term(factors, a.checked_mul(*b)?))?;
            }
        }
        Some(product)
    }

    /// Returns the quotient, if there is no remainder whatever the symbols are (0 aside).
    pub(crate) fn exactly_by(&self, other: &Extent) -> Option<Extent> {
        let (divisor, divided_by) = match other.terms.iter().next() {
            Some(term) if other.terms.len() == 1 => term,
            _ if self == other && other.value() != Some(0) => return Some(Extent::known(1)),
            _ => return None,
        };
        let mut quotient = Extent::default();
        for (factors, coefficient) in &self.terms {
            let mut left = factors.clone();
            for factor in divisor {
                let at = left.iter().position(|other| other == factor)?;
                left.remove(at);
            }
            if coefficient.checked_rem(*divided_by)? != 0 {
                return None;
            }
            quotient = quotient.plus(&Extent::term(left, coefficient.checked_div(*divided_by)?))?;
        }
        Some(quotient)
    }

    /// Returns the quotient, rounded down.
    pub(crate) fn divided_by(&self, divisor: i64) -> Option<Extent> {
        if divisor <= 0 {
            return None;
        }
        if let Some(value) = self.value() {
            return Some(Extent::known(value.div_euclid(divisor)));
        }
        match self.exactly_by(&Extent::known(divisor)) {
            Some(quotient) => Some(quotient),
            None => {
                let text = format!("floor(({self})/{divisor})");
                // Names that grow with each layer are of no use.
                (text.len() < 256).then(|| Extent::symbol(text))
            }
        }
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        // The longest product first, as one writes polynomials.
        for (position, (factors, coefficient)) in self.terms.iter().rev().enumerate() {
            match (position, *coefficient < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str("+")?,
                (_, true) => f.write_str("-")?,
            }
            let size = coefficient.unsigned_abs();
            match (size, factors.is_empty()) {
                (_, true) => write!(f, "{size}")?,
                (1, false) => f.write_str(&factors.join("*"))?,
                (_, false) => write!(f, "{size}*{}", factors.join("*"))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_are_those_of_polynomials() {
        let (n, m) = (Extent::symbol("N"), Extent::symbol("M"));
        let sum = n.plus(&Extent::known(2)).unwrap();
        let product = sum.times(&m.minus(&Extent::known(1)).unwrap()).unwrap();
        assert_eq!(product.to_string(), "-N+M*N+2*M-2");
        assert_eq!(sum.minus(&sum).unwrap().value(), Some(0));
        assert!(sum.is_never_negative() && !product.is_never_negative());
        let twice = n.times(&Extent::known(12)).unwrap().times(&m).unwrap();
        let quotient = twice.exactly_by(&m.times(&Extent::known(4)).unwrap());
        assert_eq!(quotient.unwrap().to_string(), "3*N");
        assert_eq!(twice.exactly_by(&Extent::symbol("K")), None);
        assert_eq!(sum.exactly_by(&sum), Some(Extent::known(1)));
    }

    #[test]
    fn rounded_quotients_are_symbols() {
        let n = Extent::symbol("N").plus(&Extent::known(1)).unwrap();
        let half = n.divided_by(2).unwrap();
        assert_eq!(half.to_string(), "floor((N+1)/2)");
        assert_eq!(half, n.divided_by(2).unwrap());
        assert_eq!(Extent::known(7).divided_by(2).unwrap().value(), Some(3));
        let max = Extent::known(i64::MAX);
        assert_eq!(max.plus(&Extent::known(1)), None);
        assert_eq!(max.times(&max), None);
    }
}
