//! Discrete Fourier transforms of any length: by halves if the length is a power of two, else as a convolution of
//! such a length (Bluestein, 1970).

use std::f64::consts::PI;

use tfrt_host::Error;

/// A complex number.
pub type Pair = (f64, f64);

fn times((a, b): Pair, (c, d): Pair) -> Pair {
    (a * c - b * d, a * d + b * c)
}

/// Returns e^(sign · 2πi · turns / n).
#[allow(clippy::cast_precision_loss, reason = "lengths are far below 2^53")]
fn unit(turns: usize, n: usize, sign: f64) -> Pair {
    let angle = sign * 2.0 * PI * (turns % n) as f64 / n as f64;
    (angle.cos(), angle.sin())
}

/// Transforms in place: the sum over all `x[j] e^(-2πi jk / n)` for each `k`; with `is_inverse` the other sign, and
/// divided by `n`.
///
/// # Errors
///
/// `ResourceExhausted` if there is no memory for a few times as many numbers.
///
/// # Examples
///
/// ```
/// use tfrt_tensor::math::fourier::transform;
///
/// let mut x = [(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)];
/// transform(&mut x, false)?;
/// assert!((x[0].0 - 6.0).abs() < 1e-12);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn transform(x: &mut [Pair], is_inverse: bool) -> Result<(), Error> {
    let n = x.len();
    if n < 2 {
        return Ok(());
    }
    let sign = if is_inverse { 1.0 } else { -1.0 };
    match n.is_power_of_two() {
        true => by_halves(x, sign),
        false => by_convolution(x, sign)?,
    }
    if is_inverse {
        #[allow(clippy::cast_precision_loss, reason = "lengths are far below 2^53")]
        let factor = 1.0 / n as f64;
        x.iter_mut()
            .for_each(|one| *one = (one.0 * factor, one.1 * factor));
    }
    Ok(())
}

/// Returns the maximum bytes that [`transform`] allocates for `n` numbers: factors, or at least two lists of twice as
/// many, of a power of two.
pub fn scratch_bytes(n: usize) -> usize {
    let n_of_two = match n.is_power_of_two() {
        true => n / 2,
        false => (n.saturating_mul(2).checked_next_power_of_two())
            .map_or(usize::MAX, |len| len.saturating_mul(3)),
    };
    n_of_two.saturating_mul(size_of::<Pair>())
}

fn by_halves(x: &mut [Pair], sign: f64) {
    let n = x.len();
    let n_bits = n.trailing_zeros();
    for index in 0..n {
        let other = index.reverse_bits() >> (usize::BITS - n_bits);
        if index < other {
            x.swap(index, other);
        }
    }
    let mut len = 2;
    while len <= n {
        let factors: Vec<Pair> = (0..len / 2).map(|index| unit(index, len, sign)).collect();
        for block in x.chunks_exact_mut(len) {
            let (lower, upper) = block.split_at_mut(len / 2);
            for ((a, b), factor) in lower.iter_mut().zip(upper).zip(&factors) {
                let turned = times(*b, *factor);
                *b = (a.0 - turned.0, a.1 - turned.1);
                *a = (a.0 + turned.0, a.1 + turned.1);
            }
        }
        len *= 2;
    }
}

fn by_convolution(x: &mut [Pair], sign: f64) -> Result<(), Error> {
    let n = x.len();
    let too_large =
        || Error::resource_exhausted(format!("there is no memory for a transform of {n} numbers"));
    let len = n
        .checked_mul(2)
        .and_then(usize::checked_next_power_of_two)
        .ok_or_else(too_large)?;
    let zeros = || -> Result<Vec<Pair>, Error> {
        let mut list = Vec::new();
        list.try_reserve_exact(len).map_err(|_| too_large())?;
        list.resize(len, (0.0, 0.0));
        Ok(list)
    };
    // e^(±πi j² / n): squares repeat after 2n.
    let chirp = |index: usize| {
        let square = (index as u128 * index as u128) % (2 * n as u128);
        unit(usize::try_from(square).unwrap_or(0), 2 * n, sign)
    };
    let (mut a, mut b) = (zeros()?, zeros()?);
    for index in 0..n {
        let (real, imaginary) = chirp(index);
        a[index] = times(x[index], (real, imaginary));
        b[index] = (real, -imaginary);
        if index > 0 {
            b[len - index] = b[index];
        }
    }
    by_halves(&mut a, -1.0);
    by_halves(&mut b, -1.0);
    a.iter_mut().zip(&b).for_each(|(a, b)| *a = times(*a, *b));
    by_halves(&mut a, 1.0);
    #[allow(clippy::cast_precision_loss, reason = "lengths are far below 2^53")]
    let factor = 1.0 / len as f64;
    for (index, x) in x.iter_mut().enumerate() {
        let (real, imaginary) = times(a[index], chirp(index));
        *x = (real * factor, imaginary * factor);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_are_the_sums_of_the_definition() {
        for n in [1, 2, 3, 5, 8, 12, 17, 64] {
            let x: Vec<Pair> = (0..n)
                .map(|index| (f64::from(index % 7) - 3.0, f64::from(index % 5)))
                .collect();
            let n = x.len();
            let mut found = x.clone();
            transform(&mut found, false).unwrap();
            for (k, found) in found.iter().enumerate() {
                let terms = x
                    .iter()
                    .enumerate()
                    .map(|(j, x)| times(*x, unit(j * k, n, -1.0)));
                let wanted = terms.fold((0.0, 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1));
                assert!(
                    (found.0 - wanted.0).abs() + (found.1 - wanted.1).abs() < 1e-9,
                    "{n} {k}"
                );
            }
            transform(&mut found, true).unwrap();
            for (found, x) in found.iter().zip(&x) {
                assert!((found.0 - x.0).abs() + (found.1 - x.1).abs() < 1e-12);
            }
        }
    }
}
