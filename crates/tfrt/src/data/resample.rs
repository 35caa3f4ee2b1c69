//! Resampling of sound, by a sinc function in a Kaiser window.
//!
//! Frequencies above half of the lower rate are damped by 90 dB, those below nine tenths of that half are kept. The
//! filter is tabulated once, and interpolated linearly between the entries of the table.

use std::f64::consts::PI;

/// The number of zeros of the sinc function on each side.
const N_ZEROS: usize = 64;
/// The number of entries of the table for each zero.
const N_PLACES: usize = 512;
/// The form of the Kaiser window: 90 dB.
const BETA: f64 = 9.0;
/// The part of half the lower rate at which the filter falls to a half.
const ROLL_OFF: f64 = 0.95;

/// Returns the number of samples of a sound at another rate; `None` if they can't be counted.
pub fn n_resampled(n_samples: usize, from: u32, to: u32) -> Option<usize> {
    let n = u128::try_from(n_samples).ok()? * u128::from(to);
    usize::try_from(n.div_ceil(u128::from(from))).ok()
}

/// Resamples a channel from one rate, in samples a second, to another; the result has [`n_resampled`] samples, written
/// behind what is there. Before its begin and behind its end the sound is silent.
pub fn resample(samples: &[f32], from: u32, to: u32, out: &mut Vec<f32>) {
    let Some(n_out) = n_resampled(samples.len(), from, to) else {
        return;
    };
    let scale = (f64::from(to) / f64::from(from)).min(1.0) * ROLL_OFF;
    let table = table();
    let n_beside = reach(scale, samples.len());
    let (from, to) = (u128::from(from), u128::from(to));
    out.extend((0..n_out as u128).map(|index| {
        // The place among the samples, whole and in parts.
        let at = index * from;
        let whole = usize::try_from(at / to).unwrap_or(samples.len());
        let part = ratio(at % to, to);
        let first = whole.saturating_sub(n_beside);
        let last = samples.len().min(whole.saturating_add(n_beside + 2));
        let around = samples.get(first..last).unwrap_or_default();
        let mut distance = ratio((whole - first) as u128, 1) + part;
        let mut sum = 0.0;
        for sample in around {
            sum += f64::from(*sample) * weight(&table, distance.abs() * scale);
            distance -= 1.0;
        }
        narrow(sum * scale)
    }));
}

/// Returns how many samples on each side the filter takes in, of so many that there are.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is positive, and saturates"
)]
fn reach(scale: f64, n_samples: usize) -> usize {
    let n = (ratio(N_ZEROS as u128, 1) / scale).ceil() as usize;
    n.min(n_samples)
}

#[allow(clippy::cast_precision_loss, reason = "a place in time")]
fn ratio(a: u128, b: u128) -> f64 {
    a as f64 / b as f64
}

#[allow(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn narrow(number: f64) -> f32 {
    number as f32
}

/// Returns the weight at a distance in zeros of the sinc function.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "it is positive and small"
)]
fn weight(table: &[f64], distance: f64) -> f64 {
    let place = distance * N_PLACES as f64;
    let index = place as usize;
    match table.get(index..index.saturating_add(2)) {
        Some(&[a, b]) => a + (b - a) * (place - index as f64),
        _ => 0.0,
    }
}

/// Returns one side of the windowed sinc function, from the middle on.
fn table() -> Vec<f64> {
    let window = bessel(BETA);
    let all = 0..=N_ZEROS * N_PLACES;
    all.map(|index| {
        let x = ratio(index as u128, N_PLACES as u128);
        let along = x / ratio(N_ZEROS as u128, 1);
        let sinc = if index == 0 {
            1.0
        } else {
            (PI * x).sin() / (PI * x)
        };
        sinc * bessel(BETA * (1.0 - along * along).max(0.0).sqrt()) / window
    })
    .collect()
}

/// The modified Bessel function of the first kind and order 0, by its series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-17 {
        term *= (x / (2.0 * k)) * (x / (2.0 * k));
        sum += term;
        k += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::cast_precision_loss)]
    fn tone(n: usize, rate: u32, hertz: f64) -> Vec<f32> {
        let at = |index: usize| (2.0 * PI * hertz * index as f64 / f64::from(rate)).sin();
        (0..n).map(|index| narrow(at(index))).collect()
    }

    fn resampled(samples: &[f32], from: u32, to: u32) -> Vec<f32> {
        let mut out = Vec::new();
        resample(samples, from, to, &mut out);
        out
    }

    /// The largest deviation, away from the ends.
    fn deviation(found: &[f32], expected: &[f32]) -> f32 {
        assert_eq!(found.len(), expected.len());
        let inner = 500..found.len() - 500;
        let pairs = found[inner.clone()].iter().zip(&expected[inner]);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn tones_stay_what_they_are_at_another_rate() {
        for (from, to) in [
            (44_100, 16_000),
            (8_000, 16_000),
            (48_000, 44_100),
            (16_000, 15_999),
        ] {
            let n = from as usize / 4;
            let n_out = n_resampled(n, from, to).unwrap();
            let found = resampled(&tone(n, from, 1_000.0), from, to);
            let deviation = deviation(&found, &tone(n_out, to, 1_000.0));
            assert!(deviation < 1e-4, "{from} {to}: {deviation}");
        }
    }

    #[test]
    fn tones_above_half_the_rate_are_gone() {
        let found = resampled(&tone(44_100, 44_100, 8_500.0), 44_100, 16_000);
        let loudest = deviation(&found, &vec![0.0; found.len()]);
        assert!(loudest < 1e-4, "{loudest}");
    }

    #[test]
    fn short_sounds_and_odd_rates_are_resampled() {
        assert!(resampled(&[], 8_000, 16_000).is_empty());
        assert_eq!(resampled(&[1.0], 1, 5).len(), 5);
        assert_eq!(resampled(&[1.0; 10], u32::MAX, 1).len(), 1);
        assert_eq!(n_resampled(usize::MAX, 1, 2), None);
    }
}
