//! Passes: how the steps of a reduction become loops over up to eight inputs.

use crate::reduction::Step;

/// An input of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The value of this number.
    Term(usize),
    /// The result of an earlier pass, in scratch memory of this number.
    Scratch(usize),
}

/// A loop that reduces 1, 2, 4 or 8 inputs, pairs of neighbours first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pass {
    pub inputs: Vec<Entry>,
    /// The scratch that it writes, which is none of its inputs; the last pass writes the result instead.
    pub target: usize,
}

/// A reduction as a tree: nodes that come later have those before as parts.
enum Node {
    Term(usize),
    Pair(usize, usize),
}

/// Returns the passes of steps, the last one last.
///
/// # Panics
///
/// If the steps do not reduce to one value.
pub(super) fn of_steps(steps: &[Step]) -> Vec<Pass> {
    let (mut nodes, mut stack): (Vec<Node>, Vec<usize>) = (Vec::new(), Vec::new());
    for step in steps {
        let node = match *step {
            Step::Term(term) => Node::Term(term),
            Step::Combine => {
                let right = stack.pop().expect(INVARIANT);
                Node::Pair(stack.pop().expect(INVARIANT), right)
            }
        };
        nodes.push(node);
        stack.push(nodes.len() - 1);
    }
    assert!(stack.len() == 1, "{INVARIANT}");
    let mut passes = Vec::new();
    add(&nodes, stack[0], 0, &mut passes);
    passes
}

const INVARIANT: &str = "the steps reduce to one value";

/// Adds the pass that makes a node, behind those that it needs; it writes the scratch `target`, and these ones behind it.
fn add(nodes: &[Node], node: usize, target: usize, passes: &mut Vec<Pass>) {
    let mut parts = vec![node];
    // Of a high tree the top is the small part, so that terms are in passes of eight.
    let n_levels = match height(nodes, node) % 3 {
        0 => 3,
        n_levels => n_levels,
    };
    for _ in 0..n_levels {
        let Some(below) = halves(nodes, &parts) else {
            break;
        };
        parts = below;
    }
    let mut next = target + 1;
    let inputs = parts.into_iter().map(|part| match nodes[part] {
        Node::Term(term) => Entry::Term(term),
        Node::Pair(..) => {
            add(nodes, part, next, passes);
            next += 1;
            Entry::Scratch(next - 1)
        }
    });
    let inputs = inputs.collect();
    passes.push(Pass { inputs, target });
}

/// Returns the height of a node, whose left part is the higher one.
fn height(nodes: &[Node], mut node: usize) -> usize {
    let mut height = 0;
    while let Node::Pair(left, _) = nodes[node] {
        (node, height) = (left, height + 1);
    }
    height
}

/// Returns the parts of all nodes, if each has two.
fn halves(nodes: &[Node], parts: &[usize]) -> Option<Vec<usize>> {
    let mut below = Vec::new();
    for part in parts {
        let Node::Pair(left, right) = nodes[*part] else {
            return None;
        };
        below.extend([left, right]);
    }
    Some(below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::steps;

    fn passes(n_leaves: usize) -> Vec<(usize, usize)> {
        let single: Vec<_> = (0..n_leaves).map(|leaf| leaf..leaf + 1).collect();
        let passes = of_steps(&steps(&(0..n_leaves), &single).unwrap());
        let told = passes.iter().map(|pass| (pass.inputs.len(), pass.target));
        told.collect()
    }

    #[test]
    fn whole_parts_of_a_tree_are_one_pass() {
        assert_eq!(passes(1), [(1, 0)]);
        assert_eq!(passes(2), [(2, 0)]);
        assert_eq!(passes(4), [(4, 0)]);
        assert_eq!(passes(8), [(8, 0)]);
        // Four leaves and two; the last pass takes both.
        assert_eq!(passes(3), [(2, 1), (2, 0)]);
        assert_eq!(passes(6), [(2, 1), (2, 2), (4, 0)]);
        // Of sixteen leaves eight and eight.
        assert_eq!(passes(16), [(8, 1), (8, 2), (2, 0)]);
    }

    #[test]
    fn no_pass_writes_what_it_or_a_later_one_reads() {
        for n_leaves in 1..200 {
            let single: Vec<_> = (0..n_leaves).map(|leaf| leaf..leaf + 1).collect();
            let mut there = Vec::new();
            for pass in of_steps(&steps(&(0..n_leaves), &single).unwrap()) {
                for input in &pass.inputs {
                    let Entry::Scratch(index) = input else {
                        continue;
                    };
                    let made = there.iter().position(|made| made == index);
                    there.remove(made.expect("it was made, and read once"));
                }
                assert!(!there.contains(&pass.target), "{n_leaves}");
                there.push(pass.target);
            }
            assert_eq!(there, [0]);
        }
    }
}
