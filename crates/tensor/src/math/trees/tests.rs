use super::*;

fn node(question: Question<f32>, yes: Branch, no: Branch) -> Node<f32> {
    Node {
        feature: 0,
        question,
        missing_is_yes: false,
        yes,
        no,
    }
}

fn leaves(votes: &[&[(usize, f32)]]) -> Leaves<f32> {
    let mut leaves = Leaves::new();
    for votes in votes {
        let votes = votes.iter();
        leaves.push(votes.map(|(target, weight)| Vote {
            target: *target,
            weight: *weight,
        }));
    }
    leaves
}

fn three() -> Leaves<f32> {
    leaves(&[&[(0, 1.0)], &[(1, 2.0)], &[(1, -4.0)]])
}

fn results(aggregate: Aggregate, x: f32) -> [f32; 2] {
    let nodes = vec![
        node(Question::AtMost(0.5), Branch::Leaf(0), Branch::Node(1)),
        node(
            Question::OneOf(vec![2.0, 3.0]),
            Branch::Leaf(1),
            Branch::Leaf(2),
        ),
    ];
    let roots = vec![Branch::Node(0), Branch::Node(1)];
    let trees = Trees::new(nodes, three(), roots, 2, aggregate).unwrap();
    let mut out = [9.0; 2];
    trees.run(&[x], 1, &mut out, &mut [false; 2]);
    out
}

#[test]
fn rows_find_their_leaves() {
    assert_eq!(results(Aggregate::Sum, 0.5), [1.0, -4.0]);
    assert_eq!(results(Aggregate::Sum, 3.0), [0.0, 4.0]);
    assert_eq!(results(Aggregate::Average, 3.0), [0.0, 2.0]);
    assert_eq!(results(Aggregate::Least, 9.0), [0.0, -4.0]);
    assert_eq!(results(Aggregate::Greatest, f32::NAN), [0.0, -4.0]);
}

#[test]
fn paths_that_do_not_end_are_refused() {
    let nodes = |last| {
        vec![
            node(Question::Less(0.0), Branch::Node(1), Branch::Leaf(0)),
            node(Question::Less(0.0), last, Branch::Leaf(0)),
        ]
    };
    let of = |last| {
        let roots = vec![Branch::Node(0)];
        Trees::new(nodes(last), three(), roots, 2, Aggregate::Sum).map(|_| ())
    };
    assert!(of(Branch::Leaf(2)).is_ok());
    let message = |last| of(last).unwrap_err().message().to_owned();
    assert_eq!(
        message(Branch::Node(0)),
        "a path from node 0 leads back to it"
    );
    assert!(message(Branch::Leaf(3)).starts_with("a branch leads to Leaf(3)"));
}

#[test]
fn what_all_paths_lead_to_is_there_once() {
    // As many paths as 2^200.
    let next = |index| match index {
        199 => Branch::Leaf(0),
        _ => Branch::Node(index + 1),
    };
    let nodes = (0..200).map(|index| node(Question::Less(0.0), next(index), next(index)));
    let roots = vec![Branch::Node(0)];
    let leaves = leaves(&[&[(0, 1.0)]]);
    let trees = Trees::new(nodes.collect(), leaves, roots, 1, Aggregate::Sum).unwrap();
    let mut out = [0.0];
    trees.run(&[1.0], 1, &mut out, &mut [false]);
    assert_eq!(out, [1.0]);
}

#[test]
fn deep_trees_are_followed_to_their_ends() {
    const DEPTH: usize = 10_000;
    let next = |index| match index + 1 < DEPTH {
        true => Branch::Node(index + 1),
        false => Branch::Leaf(1),
    };
    let question = |index: usize| Question::AtMost(index as f32);
    let nodes = (0..DEPTH).map(|index| node(question(index), Branch::Leaf(0), next(index)));
    let roots = vec![Branch::Node(0)];
    let leaves = leaves(&[&[(0, 1.0)], &[(0, 2.0)]]);
    let trees = Trees::new(nodes.collect(), leaves, roots, 1, Aggregate::Sum).unwrap();
    let mut out = [0.0; 2];
    trees.run(&[9_999.0, 9_999.5], 1, &mut out, &mut [false; 2]);
    assert_eq!(out, [1.0, 2.0]);
}

/// Pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695);
        usize::try_from(self.0 >> 40).unwrap() % end
    }

    fn of(&mut self, list: &[f32]) -> f32 {
        list[self.below(list.len())]
    }
}

const INTERESTING: [f32; 9] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    1.000_000_1,
    -3.5,
    7.0,
];

/// Returns the answer as it is written down.
fn answer(node: &Node<f32>, x: f32) -> bool {
    let is_it = match &node.question {
        Question::AtMost(limit) => x <= *limit,
        Question::Less(limit) => x < *limit,
        Question::AtLeast(limit) => x >= *limit,
        Question::Greater(limit) => x > *limit,
        Question::Equal(limit) => x == *limit,
        Question::NotEqual(limit) => x != *limit,
        Question::OneOf(list) => list.contains(&x),
    };
    is_it || (x.is_nan() && node.missing_is_yes)
}

/// Returns the sums of votes, path by path.
fn slowly(nodes: &[Node<f32>], leaves: &Leaves<f32>, roots: &[Branch], row: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; 3];
    for root in roots {
        let mut branch = *root;
        while let Branch::Node(index) = branch {
            let node = &nodes[index];
            let is_yes = answer(node, row[node.feature]);
            branch = if is_yes { node.yes } else { node.no };
        }
        if let Branch::Leaf(leaf) = branch {
            leaves
                .of(leaf)
                .iter()
                .for_each(|vote| out[vote.target] += vote.weight);
        }
    }
    out
}

#[test]
fn walks_side_by_side_end_where_single_ones_do() {
    let mut numbers = Numbers(7);
    // Questions of one kind alone are asked by loops of their own.
    for kinds in [0..1, 1..2, 2..3, 3..4, 0..4, 0..7] {
        for n_rows in [1, 3, 8, 13] {
            let kinds: Vec<usize> = kinds.clone().collect();
            let (n_nodes, n_leaves) = (40, 12);
            let nodes: Vec<Node<f32>> = (0..n_nodes)
                .map(|index| {
                    let mut branch = || match index + 1 + numbers.below(8) {
                        after if after < n_nodes && numbers.below(4) > 0 => Branch::Node(after),
                        _ => Branch::Leaf(numbers.below(n_leaves)),
                    };
                    let (yes, no) = (branch(), branch());
                    let limit = numbers.of(&INTERESTING);
                    Node {
                        feature: numbers.below(4),
                        question: match kinds[numbers.below(kinds.len())] {
                            0 => Question::AtMost(limit),
                            1 => Question::Less(limit),
                            2 => Question::AtLeast(limit),
                            3 => Question::Greater(limit),
                            4 => Question::Equal(limit),
                            5 => Question::NotEqual(limit),
                            _ => Question::OneOf(vec![limit, 7.0]),
                        },
                        missing_is_yes: numbers.below(3) == 0,
                        yes,
                        no,
                    }
                })
                .collect();
            let mut leaves = Leaves::new();
            for _ in 0..n_leaves {
                let n_votes = numbers.below(3);
                leaves.push((0..n_votes).map(|_| Vote {
                    target: numbers.below(3),
                    weight: numbers.of(&[0.1, 0.7, -1.3]),
                }));
            }
            let roots: Vec<Branch> = (0..19)
                .map(|_| match numbers.below(10) {
                    0 => Branch::Leaf(numbers.below(n_leaves)),
                    _ => Branch::Node(numbers.below(n_nodes)),
                })
                .collect();
            let rows: Vec<f32> = (0..n_rows * 5).map(|_| numbers.of(&INTERESTING)).collect();
            let wanted: Vec<f32> = rows
                .chunks(5)
                .flat_map(|row| slowly(&nodes, &leaves, &roots, row))
                .collect();
            let trees = Trees::new(nodes, leaves, roots, 3, Aggregate::Sum).unwrap();
            let mut out = vec![9.0; n_rows * 3];
            let mut said = vec![false; out.len()];
            trees.run(&rows, 5, &mut out, &mut said);
            assert_eq!(out, wanted, "{kinds:?} {n_rows}");
            // The same trees with wider numbers: exact, but for sums.
            let mut wide = vec![0.0_f64; out.len()];
            let rows: Vec<f64> = rows.iter().copied().map(f64::from).collect();
            trees.map(f64::from).run(&rows, 5, &mut wide, &mut said);
            let is_near = |(a, b): (&f32, &f64)| (f64::from(*a) - b).abs() < 1e-4;
            assert!(out.iter().zip(&wide).all(is_near), "{kinds:?} {n_rows}");
        }
    }
}
