use std::ops::Range;

use super::*;

/// Rows of so many elements.
struct Whole<'a>(&'a [f32], usize);

impl Left for Whole<'_> {
    fn parts(&self) -> (usize, usize) {
        (1, self.1)
    }

    fn row_stride(&self) -> usize {
        self.1
    }

    fn copy(&self, _: Range<usize>, _: &mut Vec<f32>) {}

    fn lay<'s>(
        &'s self,
        rows: Range<usize>,
        _: &'s [f32],
        _: &mut usize,
        parts: &mut Vec<&'s [f32]>,
    ) {
        parts.extend(
            self.0
                .chunks_exact(self.1)
                .skip(rows.start)
                .take(rows.len()),
        );
    }
}

fn numbers(n: usize, factor: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * factor + i / 7) % 9) as f32 - 4.0)
        .collect()
}

/// Makes a product with what follows it by blocks of so many panels, and compares it with the definition.
fn check(set: InstructionSet, n: usize, each: usize, residual: Residual<'_>) {
    let (n_rows, depth) = (9, 5);
    let (left, right) = (numbers(n_rows * depth, 5), numbers(depth * n, 7));
    let layout = Layout {
        set,
        depth,
        n_columns: n,
    };
    let mut packed = vec![f32::NAN; layout.n_elements().unwrap()];
    pack(layout, &right, 0, [n, 1], &mut packed);
    let panels = Panels {
        layout,
        elements: &packed,
    };
    let (scale, shift, before) = (numbers(n, 2), numbers(n, 3), numbers(n_rows * n, 4));
    let finishing = Finishing {
        scale: Some(&scale),
        shift: Some(&shift),
        residual,
        least: -30.0,
        greatest: 40.0,
    };
    let n_panels = layout.n_panels();
    for first in (0..n_panels).step_by(each) {
        let block = Block {
            rows: 0..n_rows,
            panels: first..n_panels.min(first + each),
        };
        let columns = layout.columns_of(&block.panels);
        let rows = before.chunks_exact(n);
        let mut made: Vec<f32> = rows.flat_map(|row| row[columns.clone()].to_vec()).collect();
        let stride = columns.len();
        multiply(
            &Whole(&left, depth),
            panels,
            &block,
            &finishing,
            &mut made,
            stride,
        );
        for (index, found) in made.into_iter().enumerate() {
            let (row, column) = (index / stride, columns.start + index % stride);
            let sum: f32 = (0..depth)
                .map(|at| left[row * depth + at] * right[at * n + column])
                .sum();
            let added = match residual {
                Residual::None => 0.0,
                Residual::Result(factor) => before[row * n + column] * factor,
                Residual::Rows(rows, apart) => rows[row * apart + column],
            };
            let wanted = (sum * scale[column] + shift[column] + added).clamp(-30.0, 40.0);
            assert_eq!(found, wanted, "{set:?} of {n} columns: {row}, {column}");
        }
    }
}

#[test]
fn blocks_of_any_panels_are_those_of_the_product() {
    let added = numbers(9 * 80, 8);
    for set in InstructionSet::ALL
        .into_iter()
        .filter(|set| set.is_available())
    {
        for (n, each) in (1..80).flat_map(|n| [(n, 1), (n, 2), (n, 99)]) {
            check(set, n, each, Residual::None);
            check(set, n, each, Residual::Result(2.0));
            check(set, n, each, Residual::Rows(&added, 80));
        }
    }
}
