//! [`Dim`]: the extent of one dimension, or one integer of a shape: a number, a polynomial of symbols, or unknown.

use std::{collections::BTreeMap, fmt, sync::Arc};

use smallvec::SmallVec;

/// The most terms of a sum. A sum of more terms is unknown.
const MOST_TERMS: usize = 32;

/// The most symbols of a product. A product of more is unknown.
const MOST_FACTORS: usize = 8;

/// The most letters in the name of a quotient. Names grow with each layer; a quotient of a longer one is unknown.
const MOST_LETTERS: usize = 256;

/// The extents of a tensor, the outermost first.
pub type Dims = SmallVec<[Dim; 6]>;

/// An extent, or an integer that a model calculates from extents.
///
/// ```
/// use tfrt_ops::Dim;
///
/// let batch = Dim::symbol("N");
/// assert_eq!((&batch * &Dim::Known(3)).to_string(), "3*N");
/// assert_eq!(Dim::Known(7).floor_div(2), Dim::Known(3));
/// assert_eq!(&batch + &Dim::Unknown, Dim::Unknown);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dim {
    /// An unknown number.
    #[default]
    Unknown,
    /// A number. Extents are not negative; integers that are calculated may be.
    Known(i64),
    /// An expression of the symbols of a call's inputs.
    Symbolic(Arc<Polynomial>),
}

/// A sum of products of symbols with whole coefficients; at least one term has a symbol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Polynomial {
    /// Coefficients by sorted factors. Invariant: none is 0, and some term has a factor.
    terms: BTreeMap<Vec<Arc<str>>, i64>,
}

type Terms = BTreeMap<Vec<Arc<str>>, i64>;

impl Dim {
    /// Makes the symbol of this name. Two symbols of one name are the same number in each call.
    pub fn symbol(name: impl Into<Arc<str>>) -> Dim {
        Dim::of(Terms::from([(vec![name.into()], 1)]))
    }

    fn of(terms: Terms) -> Dim {
        let mut list = terms.iter();
        match (list.next(), list.next()) {
            (None, _) => Dim::Known(0),
            (Some((factors, value)), None) if factors.is_empty() => Dim::Known(*value),
            _ if terms.len() > MOST_TERMS => Dim::Unknown,
            _ => Dim::Symbolic(Arc::new(Polynomial { terms })),
        }
    }

    fn terms(&self) -> Option<Terms> {
        match self {
            Dim::Unknown => None,
            Dim::Known(0) => Some(Terms::new()),
            Dim::Known(value) => Some(Terms::from([(Vec::new(), *value)])),
            Dim::Symbolic(polynomial) => Some(polynomial.terms.clone()),
        }
    }

    /// Returns the number, if the extent is one.
    pub fn value(&self) -> Option<i64> {
        match self {
            Dim::Known(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns whether the extent is unknown.
    pub fn is_unknown(&self) -> bool {
        *self == Dim::Unknown
    }

    /// Returns whether the value is 0 or more for all symbols that are extents.
    pub fn is_never_negative(&self) -> bool {
        match self {
            Dim::Unknown => false,
            Dim::Known(value) => *value >= 0,
            // A quotient that was rounded down may have been of anything.
            Dim::Symbolic(polynomial) => polynomial.terms.iter().all(|(factors, coefficient)| {
                *coefficient > 0 && !factors.iter().any(|factor| factor.starts_with("floor("))
            }),
        }
    }

    /// Returns the quotient if it is whole for all values of the symbols but 0; else unknown.
    pub fn exact_div(&self, other: &Dim) -> Dim {
        self.exactly(other).unwrap_or_default()
    }

    fn exactly(&self, other: &Dim) -> Option<Dim> {
        if let (Dim::Known(a), Dim::Known(b)) = (self, other) {
            let is_exact = a.checked_rem(*b)? == 0;
            return is_exact.then(|| a.checked_div(*b).map(Dim::Known))?;
        }
        let (all, divisor) = (self.terms()?, other.terms()?);
        if self == other {
            return Some(Dim::Known(1));
        }
        let (by, divided_by) = match divisor.iter().next() {
            Some(term) if divisor.len() == 1 => term,
            _ => return None,
        };
        let mut quotient = Terms::new();
        for (factors, coefficient) in &all {
            let mut left = factors.clone();
            for factor in by {
                let at = left.iter().position(|other| other == factor)?;
                left.remove(at);
            }
            if coefficient.checked_rem(*divided_by)? != 0 {
                return None;
            }
            quotient.insert(left, coefficient.checked_div(*divided_by)?);
        }
        Some(Dim::of(quotient))
    }

    /// Returns the quotient, rounded down; unknown for divisors that are not positive.
    pub fn floor_div(&self, divisor: i64) -> Dim {
        if divisor <= 0 || self.is_unknown() {
            return Dim::Unknown;
        }
        if let Dim::Known(value) = self {
            return Dim::Known(value.div_euclid(divisor));
        }
        match self.exact_div(&Dim::Known(divisor)) {
            Dim::Unknown => {
                let text = format!("floor(({self})/{divisor})");
                if text.len() < MOST_LETTERS {
                    Dim::symbol(text)
                } else {
                    Dim::Unknown
                }
            }
            quotient => quotient,
        }
    }

    fn plus(&self, other: &Dim) -> Option<Dim> {
        if let (Dim::Known(a), Dim::Known(b)) = (self, other) {
            return a.checked_add(*b).map(Dim::Known);
        }
        let mut sum = self.terms()?;
        for (factors, coefficient) in other.terms()? {
            add(&mut sum, factors, coefficient)?;
        }
        Some(Dim::of(sum))
    }

    fn times(&self, other: &Dim) -> Option<Dim> {
        if let (Dim::Known(a), Dim::Known(b)) = (self, other) {
            return a.checked_mul(*b).map(Dim::Known);
        }
        let (left, right) = (self.terms()?, other.terms()?);
        let mut product = Terms::new();
        for (own, a) in &left {
            for (others, b) in &right {
                let mut factors = own.clone();
                factors.extend(others.iter().cloned());
                if factors.len() > MOST_FACTORS {
                    return None;
                }
                factors.sort();
                add(&mut product, factors, a.checked_mul(*b)?)?;
            }
        }
        Some(Dim::of(product))
    }
}

/// Adds a term to a sum.
fn add(sum: &mut Terms, factors: Vec<Arc<str>>, coefficient: i64) -> Option<()> {
    let own = sum.get(&factors).copied().unwrap_or(0);
    match own.checked_add(coefficient)? {
        0 => drop(sum.remove(&factors)),
        total => drop(sum.insert(factors, total)),
    }
    Some(())
}

impl From<i64> for Dim {
    fn from(value: i64) -> Dim {
        Dim::Known(value)
    }
}

impl From<usize> for Dim {
    fn from(value: usize) -> Dim {
        i64::try_from(value).map_or(Dim::Unknown, Dim::Known)
    }
}

impl std::ops::Add for &Dim {
    type Output = Dim;

    fn add(self, other: &Dim) -> Dim {
        self.plus(other).unwrap_or_default()
    }
}

impl std::ops::Sub for &Dim {
    type Output = Dim;

    fn sub(self, other: &Dim) -> Dim {
        let negated = other.times(&Dim::Known(-1));
        negated
            .and_then(|negated| self.plus(&negated))
            .unwrap_or_default()
    }
}

impl std::ops::Mul for &Dim {
    type Output = Dim;

    fn mul(self, other: &Dim) -> Dim {
        self.times(other).unwrap_or_default()
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let polynomial = match self {
            Dim::Unknown => return f.write_str("?"),
            Dim::Known(value) => return write!(f, "{value}"),
            Dim::Symbolic(polynomial) => polynomial,
        };
        // The longest product first, as one writes polynomials.
        for (index, (factors, coefficient)) in polynomial.terms.iter().rev().enumerate() {
            match (index, *coefficient < 0) {
                (0, false) => {}
                (_, true) => f.write_str("-")?,
                (_, false) => f.write_str("+")?,
            }
            let size = coefficient.unsigned_abs();
            if size != 1 || factors.is_empty() {
                write!(f, "{size}")?;
                if !factors.is_empty() {
                    f.write_str("*")?;
                }
            }
            f.write_str(&factors.join("*"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_are_those_of_polynomials() {
        let (n, m) = (Dim::symbol("N"), Dim::symbol("M"));
        let sum = &n + &Dim::Known(2);
        let product = &sum * &(&m - &Dim::Known(1));
        assert_eq!(product.to_string(), "-N+M*N+2*M-2");
        assert_eq!(&sum - &sum, Dim::Known(0));
        assert!(sum.is_never_negative() && !product.is_never_negative());
        let twice = &(&n * &Dim::Known(12)) * &m;
        let quotient = twice.exact_div(&(&m * &Dim::Known(4)));
        assert_eq!(quotient.to_string(), "3*N");
        assert_eq!(twice.exact_div(&Dim::symbol("K")), Dim::Unknown);
        assert_eq!(sum.exact_div(&sum), Dim::Known(1));
    }

    #[test]
    fn rounded_quotients_are_symbols() {
        let n = &Dim::symbol("N") + &Dim::Known(1);
        let half = n.floor_div(2);
        assert_eq!(half.to_string(), "floor((N+1)/2)");
        assert_eq!(half, n.floor_div(2));
        assert_eq!(Dim::Known(7).floor_div(2), Dim::Known(3));
        let max = Dim::Known(i64::MAX);
        assert_eq!(&max + &Dim::Known(1), Dim::Unknown);
        assert_eq!(&max * &max, Dim::Unknown);
    }
}
