//! Statistics of samples: percentiles, and a mean with its confidence interval.

/// Groups that the confidence interval is computed from, at most.
const MAX_GROUPS: usize = 30;

/// Statistics of samples, in the unit of the samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The samples, in ascending order.
    sorted: Vec<f64>,
    pub mean: f64,
    /// Half the width of the interval that holds the true mean in 95 of 100 measurements; `None` if
    /// there are too few samples to tell.
    pub confidence: Option<f64>,
    /// The number of groups that the interval was computed from.
    pub n_groups: usize,
}

impl Statistics {
    /// Sums up samples, in the order in which they were taken; at least one.
    ///
    /// Samples that follow each other are alike, so that they count for less than as many that know
    /// nothing of each other. So they are taken in groups, each in a row, whose means are more
    /// nearly independent and normal: the interval is that of Student's distribution over these.
    pub fn new(samples: Vec<f64>) -> Statistics {
        let n_groups = samples.len().min(MAX_GROUPS);
        let (mean, confidence) = match n_groups {
            0 => (0.0, None),
            _ => {
                let bounds = |group: usize| group * samples.len() / n_groups;
                let groups = (0..n_groups)
                    .map(|group| mean(&samples[bounds(group)..bounds(group + 1)]))
                    .collect::<Vec<f64>>();
                (mean(&samples), half_width(&groups))
            }
        };
        let mut sorted = samples;
        sorted.sort_by(f64::total_cmp);
        Statistics {
            sorted,
            mean,
            confidence,
            n_groups,
        }
    }

    /// Returns the smallest sample that at least so many percent of the samples do not exceed.
    pub fn percentile(&self, percent: f64) -> f64 {
        let n_below = (percent / 100.0 * self.sorted.len() as f64).ceil() as usize;
        let index = n_below.clamp(1, self.sorted.len().max(1)) - 1;
        self.sorted.get(index).copied().unwrap_or(0.0)
    }
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

fn half_width(groups: &[f64]) -> Option<f64> {
    let quantile = student(groups.len().checked_sub(1)?)?;
    let center = mean(groups);
    let squares: f64 = groups.iter().map(|group| (group - center).powi(2)).sum();
    let variance = squares / (groups.len() - 1) as f64;
    Some(quantile * (variance / groups.len() as f64).sqrt())
}

/// Returns the 97.5th percentile of Student's distribution, by degrees of freedom from 1 to 29.
fn student(degrees: usize) -> Option<f64> {
    const QUANTILES: [f64; MAX_GROUPS - 1] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045,
    ];
    QUANTILES.get(degrees.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let statistics = Statistics::new((1..=100).rev().map(f64::from).collect());
        let percentiles = [0.0, 50.0, 90.0, 99.0, 100.0].map(|p| statistics.percentile(p));
        assert_eq!(percentiles, [1.0, 50.0, 90.0, 99.0, 100.0]);
        assert_eq!(Statistics::new(vec![7.0]).percentile(50.0), 7.0);
    }

    #[test]
    fn interval_is_that_of_the_groups() {
        // Five samples are five groups, with a mean of 3 and a variance of 2.5.
        let statistics = Statistics::new(vec![1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((statistics.mean, statistics.n_groups), (3.0, 5));
        let expected = 2.776 * (2.5_f64 / 5.0).sqrt();
        assert!((statistics.confidence.unwrap() - expected).abs() < 1e-12);
        assert_eq!(Statistics::new(vec![1.0]).confidence, None);
    }

    #[test]
    fn samples_that_are_alike_in_a_row_do_not_make_it_narrow() {
        // Slow for the second half: many samples, but little is known.
        let half = |value: f64| std::iter::repeat_n(value, 3_000);
        let drifting = Statistics::new(half(1.0).chain(half(2.0)).collect());
        assert_eq!(drifting.n_groups, 30);
        assert!(drifting.confidence.unwrap() > 0.15);
        let alternating = (0..6_000).map(|index| f64::from(1 + index % 2)).collect();
        assert!(Statistics::new(alternating).confidence.unwrap() < 1e-9);
    }
}
