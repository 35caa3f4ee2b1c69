//! The order of reductions: the same bits from any number of tasks.

use std::ops::Range;

use tfrt_dist::reduction::ReductionTree;

/// Numbers of mixed magnitudes, whose sums depend on their order.
fn numbers(n: usize) -> Vec<f32> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let number = |_| {
        let (fraction, magnitude) = (next() % 20_001, next() % 9);
        (fraction as f32 - 10_000.0) * 10_f32.powi(i32::try_from(magnitude).unwrap() - 6)
    };
    (0..n).map(number).collect()
}

/// Reduces as so many tasks do: each its subtrees, and the roots together.
fn reduced(tree: ReductionTree, leaves: &[f32], n_tasks: usize) -> Option<f32> {
    let of_task = |task: usize| tree.subtrees(tree.leaves_of(task, n_tasks));
    // A subtree is a tree of its own, whose leaves are numbered from 0.
    let value = |node: Range<usize>| {
        let own = leaves[node.clone()].iter().enumerate();
        let own = own.map(|(leaf, value)| (leaf..leaf + 1, *value));
        let root = ReductionTree::new(node.len()).reduce(own.collect(), |a, b| a + b);
        (node, root.unwrap())
    };
    let roots = (0..n_tasks).flat_map(of_task).map(value);
    tree.reduce(roots.collect(), |a, b| a + b)
}

#[test]
fn sums_have_the_same_bits_for_any_number_of_tasks() {
    for n_leaves in [1, 2, 3, 5, 6, 7, 8, 12, 16, 31] {
        let tree = ReductionTree::new(n_leaves);
        let (mut n_sums, mut n_others) = (0, 0);
        for part in numbers(n_leaves * 300).chunks_exact(n_leaves) {
            let one = reduced(tree, part, 1).unwrap();
            for n_tasks in 1..=n_leaves {
                let found = reduced(tree, part, n_tasks).unwrap();
                assert_eq!(found.to_bits(), one.to_bits(), "{n_leaves} {n_tasks}");
            }
            n_sums += 1;
            n_others += usize::from(part.iter().sum::<f32>().to_bits() != one.to_bits());
        }
        // The order matters for these numbers.
        assert!(
            n_leaves < 5 || n_others * 10 > n_sums,
            "{n_others} of {n_sums}"
        );
    }
}

#[test]
fn tasks_have_runs_of_leaves_and_few_roots() {
    let tree = ReductionTree::new(8);
    let lens = |n_tasks: usize| {
        let lens = (0..n_tasks).map(|task| tree.leaves_of(task, n_tasks).len());
        lens.collect::<Vec<_>>()
    };
    let n_roots = |n_tasks: usize| {
        let roots = (0..n_tasks).map(|task| tree.subtrees(tree.leaves_of(task, n_tasks)).len());
        roots.sum::<usize>()
    };
    assert_eq!(lens(3), [3, 3, 2]);
    assert_eq!(lens(5), [2, 2, 1, 2, 1]);
    assert_eq!(lens(6), [2, 1, 1, 2, 1, 1]);
    assert_eq!(lens(9), [1, 1, 1, 1, 1, 1, 1, 1, 0]);
    let all: Vec<usize> = (1..=8).map(n_roots).collect();
    assert_eq!(all, [1, 2, 5, 4, 6, 6, 7, 8]);
}

#[test]
fn what_does_not_cover_the_leaves_has_no_sum() {
    let tree = ReductionTree::new(4);
    let sum = |values: &[(Range<usize>, i32)]| tree.reduce(values.to_vec(), |a, b| a + b);
    assert_eq!(sum(&[(2..4, 1), (0..1, 2), (1..2, 3)]), Some(6));
    assert_eq!(sum(&[(0..2, 1)]), None);
    assert_eq!(sum(&[(0..2, 1), (2..4, 1), (2..4, 1)]), None);
    assert_eq!(sum(&[(0..1, 1), (1..3, 1), (3..4, 1)]), None);
    assert_eq!(sum(&[(0..4, 1), (4..8, 1)]), None);
    assert_eq!(
        ReductionTree::new(0).reduce(Vec::<(Range<usize>, i32)>::new(), |a, _| a),
        None
    );
}
