//! Boxes in pictures, and non-maximum suppression: boxes that overlap a better one are dropped.

/// Options of non-maximum suppression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NonMaxSuppression {
    /// Maximum number of boxes that are kept.
    pub most: usize,
    /// Intersection over union above which the worse of two boxes is dropped.
    pub overlap: f64,
    /// The score that a box has to exceed, if any.
    pub score: Option<f64>,
}

/// A box, given by its sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingBox {
    /// The sides along the first and the second dimension, the smaller first.
    pub sides: [(f64, f64); 2],
}

impl BoundingBox {
    /// Returns the box between two corners, each the first dimension first.
    pub fn of_corners([a, b, c, d]: [f64; 4]) -> BoundingBox {
        BoundingBox {
            sides: [(a.min(c), a.max(c)), (b.min(d), b.max(d))],
        }
    }

    /// Returns the box about a middle `[x, y]` of a width and a height.
    pub fn of_middle([x, y, width, height]: [f64; 4]) -> BoundingBox {
        let around = |middle: f64, extent: f64| (middle - extent / 2.0, middle + extent / 2.0);
        BoundingBox {
            sides: [around(y, height), around(x, width)],
        }
    }

    fn area(&self) -> f64 {
        self.sides
            .iter()
            .map(|(least, largest)| largest - least)
            .product()
    }

    /// Returns the intersection over union of two boxes; 0 for boxes without area.
    pub fn overlap(&self, other: &BoundingBox) -> f64 {
        let mut common = 1.0;
        for (own, other) in self.sides.iter().zip(&other.sides) {
            let extent = own.1.min(other.1) - own.0.max(other.0);
            if extent <= 0.0 {
                return 0.0;
            }
            common *= extent;
        }
        let (own, other) = (self.area(), other.area());
        let all = own + other - common;
        if own <= 0.0 || other <= 0.0 || all <= 0.0 {
            0.0
        } else {
            common / all
        }
    }
}

/// Returns the boxes that are kept, the best first; of equally good ones the earlier first.
pub fn suppress(
    suppression: &NonMaxSuppression,
    boxes: &[BoundingBox],
    scores: &[f64],
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..boxes.len().min(scores.len()))
        .filter(|index| suppression.score.is_none_or(|least| scores[*index] > least))
        .collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    let mut kept: Vec<usize> = Vec::new();
    for index in order {
        if kept.len() >= suppression.most {
            break;
        }
        let is_new = kept
            .iter()
            .all(|other| boxes[index].overlap(&boxes[*other]) <= suppression.overlap);
        if is_new {
            kept.push(index);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_a_better_box_is_dropped() {
        let boxes = [
            [0.0, 0.0, 1.0, 1.0],
            [0.0, 0.1, 1.0, 1.1],
            [0.0, 10.0, 1.0, 11.0],
        ]
        .map(BoundingBox::of_corners);
        let all = NonMaxSuppression {
            most: 9,
            overlap: 0.5,
            score: None,
        };
        assert_eq!(suppress(&all, &boxes, &[0.9, 0.95, 0.1]), [1, 2]);
        assert_eq!(
            suppress(
                &NonMaxSuppression {
                    score: Some(0.5),
                    ..all
                },
                &boxes,
                &[0.9, 0.95, 0.1]
            ),
            [1]
        );
        assert!(
            suppress(
                &NonMaxSuppression { most: 0, ..all },
                &boxes,
                &[0.9, 0.95, 0.1]
            )
            .is_empty()
        );
        assert_eq!(
            BoundingBox::of_middle([0.5, 1.0, 1.0, 2.0]),
            BoundingBox::of_corners([0.0, 0.0, 2.0, 1.0])
        );
        let nothing = BoundingBox::of_corners([0.0; 4]);
        assert_eq!(nothing.overlap(&nothing), 0.0);
    }
}
