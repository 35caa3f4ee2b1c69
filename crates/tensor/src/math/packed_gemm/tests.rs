use std::ops::Range;

use super::*;

/// Rows of a number of elements.
struct Whole<'a>(&'a [f32], usize);

impl Lhs for Whole<'_> {
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

/// Makes a product with its epilogue in blocks of `each` panels, and compares it with the definition.
fn check(set: InstructionSet, [n_rows, n]: [usize; 2], each: usize, residual: Residual<'_>) {
    let depth = 5;
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
    let block_epilogue = BlockEpilogue {
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
            &block_epilogue,
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
            check(set, [9, n], each, Residual::None);
            check(set, [9, n], each, Residual::Result(2.0));
            check(set, [9, n], each, Residual::Rows(&added, 80));
        }
    }
}

#[test]
fn few_rows_are_multiplied_by_several_panels_at_once() {
    let added = numbers(4 * 300, 8);
    for set in InstructionSet::ALL
        .into_iter()
        .filter(|set| set.is_available())
    {
        for n_rows in 1..5 {
            for n in [
                1, 8, 31, 33, 64, 90, 100, 127, 128, 129, 140, 160, 200, 257, 300,
            ] {
                for each in [1, 3, 4, 99] {
                    check(set, [n_rows, n], each, Residual::None);
                    check(set, [n_rows, n], each, Residual::Result(2.0));
                    check(set, [n_rows, n], each, Residual::Rows(&added, 300));
                }
            }
        }
    }
}

#[test]
fn few_rows_have_the_bits_of_many() {
    let (depth, n) = (37, 150);
    let of = |n: usize, factor: f32| -> Vec<f32> {
        (0..n)
            .map(|i| ((i * 7 % 23) as f32 - 11.3) * factor)
            .collect()
    };
    let (left, right) = (of(9 * depth, 0.37), of(depth * n, 0.0123));
    for set in InstructionSet::ALL
        .into_iter()
        .filter(|set| set.is_available())
    {
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
        let made = |n_rows: usize| {
            let block = Block {
                rows: 0..n_rows,
                panels: 0..layout.n_panels(),
            };
            let mut out = vec![0.0; n_rows * n];
            let left = Whole(&left, depth);
            multiply(
                &left,
                panels,
                &block,
                &BlockEpilogue::default(),
                &mut out,
                n,
            );
            out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        let wanted = made(9);
        for n_rows in 1..9 {
            assert_eq!(made(n_rows), wanted[..n_rows * n], "{set:?}: {n_rows} rows");
        }
    }
}

#[test]
fn two_threads_get_the_same_share() {
    for (n_rows, depth, n_columns) in [
        (49, 4608, 512),
        (49, 2048, 1000),
        // An image of 7 by 7, of a right side that the second cache keeps, and of one that it does not.
        (49, 160, 960),
        (49, 320, 1280),
        (32, 784, 512),
        (20, 3000, 3000),
        (100, 512, 512),
        (1, 784, 512),
        (3, 1000, 700),
        (2000, 64, 64),
    ] {
        let set = InstructionSet::Avx512;
        let layout = Layout {
            set,
            depth,
            n_columns,
        };
        let grid = BlockGrid::new(n_rows, layout, depth);
        assert!(grid.len() > 1 && grid.len().is_multiple_of(2), "{grid:?}");
        let share = |indexes: Range<usize>| {
            let of_block = |index| {
                let Block { rows, panels } = grid.block(index);
                rows.len() * panels.len()
            };
            indexes.map(of_block).sum::<usize>()
        };
        let (first, second) = (share(0..grid.len() / 2), share(grid.len() / 2..grid.len()));
        let unit = grid
            .n_rows
            .div_ceil(grid.n_row_blocks)
            .max(layout.n_panels());
        assert!(
            first.abs_diff(second) <= unit,
            "{grid:?}: {first}, {second}"
        );
    }
}

#[test]
fn few_rows_are_cut_by_columns() {
    let set = InstructionSet::Avx512;
    for (n_rows, depth, n_columns) in [(1, 784, 512), (3, 512, 512), (14, 300, 1000), (1, 9, 9)] {
        let layout = Layout {
            set,
            depth,
            n_columns,
        };
        let grid = BlockGrid::new(n_rows, layout, depth);
        let is_much = n_rows * depth * n_columns > 1 << 17;
        assert_eq!(grid.len() > 1, is_much, "{layout:?}");
        let mut next = 0;
        for index in 0..grid.len() {
            let block = grid.block(index);
            assert_eq!(block.rows, 0..n_rows);
            assert_eq!(block.panels.start, next);
            next = block.panels.end;
        }
        assert_eq!(next, layout.n_panels());
    }
}

#[test]
fn right_side_from_memory_takes_its_time() {
    let grid = |n_rows, depth, n_columns| {
        let set = InstructionSet::Avx512;
        let layout = Layout {
            set,
            depth,
            n_columns,
        };
        BlockGrid::new(n_rows, layout, depth)
    };
    // A row of 512 by 512 comes from the second cache; one of 1280 by 1000, five times as large, does not.
    let [near, far] = [grid(1, 512, 512), grid(1, 1280, 1000)].map(|grid| grid.cost_ns());
    assert!(far > 10 * near, "{near} ns, {far} ns");
    // Of many rows the products take longer.
    assert!(grid(300, 1280, 1000).cost_ns() > 20 * far);
}

#[test]
fn a_matrix_is_packed_alike_by_rows_and_by_columns() {
    for (depth, n_columns) in [
        (1, 1),
        (15, 7),
        (16, 64),
        (17, 65),
        (50, 130),
        (3, 200),
        (0, 5),
    ] {
        for set in [
            InstructionSet::Plain,
            InstructionSet::Avx2,
            InstructionSet::Avx512,
        ] {
            let layout = Layout {
                set,
                depth,
                n_columns,
            };
            let by_rows = numbers(depth * n_columns, 5);
            let by_columns: Vec<f32> = (0..n_columns * depth)
                .map(|i| by_rows[i % depth * n_columns + i / depth])
                .collect();
            let len = layout.n_elements().unwrap();
            let [mut wanted, mut found] = [vec![1.0; len], vec![2.0; len]];
            pack(layout, &by_rows, 0, [n_columns, 1], &mut wanted);
            pack(layout, &by_columns, 0, [1, depth], &mut found);
            assert_eq!(found, wanted, "{layout:?}");
        }
    }
}
