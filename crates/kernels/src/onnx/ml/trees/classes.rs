//! [`Classes`]: labels and scores of classes by the votes of trees.
//!
//! What two classes get depends on more than is written down in the operator's definition: whether trees vote for one
//! of them alone, whether all votes are positive, and how many base values there are. It is here as ONNX Runtime has
//! it, which those who write models compare with. Where that leaves a score unwritten, it is 0.

use std::collections::HashSet;

use tfrt_host::Error;
use tfrt_tensor::math::number::Floating;

use super::super::super::NodeCall;
use super::super::labels::Labels;
use super::super::transform::{Transform, logistic, probit};
use super::by_id;

/// The labels of classes, and the way from votes to scores.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) labels: Labels,
    /// A base value for each class, none, or one for two classes.
    base: Vec<f64>,
    transform: Transform,
    /// Whether there are two classes, and votes for one of them alone.
    is_binary: bool,
    all_positive: bool,
}

/// The second score of two classes that have votes for one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecondScore {
    /// There is none.
    Nothing,
    /// 1 minus the first score.
    Rest,
    /// The negated first score.
    Opposite,
}

impl Classes {
    pub(super) fn new(
        node: &NodeCall<'_>,
        labels: Labels,
        base: Vec<f64>,
        transform: Transform,
    ) -> Result<Classes, Error> {
        let classes = node.attributes.integers("class_ids")?.unwrap_or(&[]);
        let classes: HashSet<i64> = classes.iter().copied().collect();
        let (weights, _) = by_id::numbers(node, "class_weights")?;
        Ok(Classes {
            is_binary: labels.len() == 2 && classes.len() == 1,
            all_positive: weights.iter().all(|weight| *weight >= 0.0),
            labels,
            base,
            transform,
        })
    }

    /// Turns the sums of votes into scores; returns the token of the label.
    pub(super) fn finish<T: Floating>(&self, row: &mut [T], said: &mut [bool]) -> i64 {
        if let [score] = row {
            if let Some(base) = self.base.first() {
                *score = score.plus(T::from_f64(*base));
            }
            let token = i64::from(score.to_f64() > 0.0);
            if self.transform == Transform::Probit {
                self.transform.apply(row);
            }
            return token;
        }
        if let ([first, second], &mut [said_first, said_second]) = (&mut *row, &mut *said) {
            return self.finish_two([first, second], [said_first, said_second]);
        }
        for ((score, said), base) in row.iter_mut().zip(&mut *said).zip(&self.base) {
            *score = score.plus(T::from_f64(*base));
            *said = true;
        }
        let mut best: Option<usize> = None;
        for (class, _) in said.iter().enumerate().filter(|(_, said)| **said) {
            if best.is_none_or(|best| row[best].less(row[class])) {
                best = Some(class);
            }
        }
        self.transform.apply(row);
        self.labels.token(best.unwrap_or(0))
    }

    fn finish_two<T: Floating>(&self, [first, second]: [&mut T; 2], said: [bool; 2]) -> i64 {
        let base = |index: usize| T::from_f64(self.base.get(index).copied().unwrap_or(0.0));
        let mut other = SecondScore::Nothing;
        let mut is_single = !said[1];
        match self.base.len() {
            0 => other = SecondScore::Opposite,
            1 => *first = first.plus(base(0)),
            _ if said[1] => {
                *second = base(1).plus(*first);
                *first = second.negated();
            }
            _ => {
                *first = first.plus(base(0));
                is_single = false;
            }
        }
        let deciding = match said {
            [_, true] => second.to_f64(),
            [true, false] => first.to_f64(),
            [false, false] => 0.0,
        };
        let token = if self.is_binary {
            let (limit, of_binary) = match self.all_positive {
                true => (0.5, SecondScore::Rest),
                false => (0.0, SecondScore::Opposite),
            };
            other = of_binary;
            self.labels.token(usize::from(deciding > limit))
        } else {
            i64::from(deciding > 0.0)
        };
        let silent = |score: T, said: bool| if said { score } else { T::ZERO };
        let scores = [silent(*first, said[0]), silent(*second, said[1])];
        let scores = match is_single {
            true => self.two_of_one(scores[0], other),
            false => {
                let mut scores = scores;
                self.transform.apply(&mut scores);
                scores
            }
        };
        [*first, *second] = scores;
        token
    }

    fn two_of_one<T: Floating>(&self, score: T, other: SecondScore) -> [T; 2] {
        let x = score.to_f64();
        match (self.transform, other) {
            (Transform::Probit, _) => [T::from_f64(probit(x)), T::ZERO],
            (_, SecondScore::Rest) => [T::ONE.minus(score), score],
            (Transform::Logistic, SecondScore::Opposite) => {
                [T::from_f64(logistic(-x)), T::from_f64(logistic(x))]
            }
            (_, SecondScore::Opposite) => [score.negated(), score],
            (_, SecondScore::Nothing) => [score, T::ZERO],
        }
    }
}
