//! Halving and doubling: who sends which elements to whom where a group has many members.
//!
//! The tree stands over the members. In a node whose two halves are equal, each member exchanges with the one opposite
//! half of the elements that it has, and keeps the sum of the other half; so a node of 2^k members leaves each with one
//! part in 2^k of its sum. Where the left half is larger, the right one's members send their parts to those of the left,
//! who then have the node's sum. From the root the result goes back by the same ways.
//!
//! ```text
//! members  0 1 2 3   4     in the root's left half each member has a quarter of the sum, of 4 members; member 4 sends
//!          \_/ \_/   |     each its quarter of what it has, and is sent the result's quarters by them
//!            \_/     |
//!              \____/
//! ```
//!
//! Neighbours are reduced first, so the bits are those of [`reduction`](crate::reduction). A member sends less than twice
//! the elements each way, in a number of rounds that grows with the logarithm of the number of members. Two members send
//! each other at most one run of elements up, and one down.

use std::ops::Range;

/// A step of a member: it sends at once, and goes on when all that it is to receive has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Round {
    pub direction: Direction,
    /// The receivers, and the elements for each. None of them is empty.
    pub sends: Vec<(usize, Range<usize>)>,
    /// The senders, and the elements of each. None of them is empty.
    pub receives: Vec<(usize, Range<usize>)>,
}

/// The way that elements go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// They are to be reduced. `is_last` where the sum is that of all members.
    Up { is_last: bool },
    /// They are the result.
    Down,
}

/// Returns the rounds of a member for a run of elements.
pub(super) fn rounds(me: usize, n_members: usize, elements: &Range<usize>) -> Vec<Round> {
    let mut up = Vec::new();
    let mut down = Vec::new();
    let mut node = 0..n_members;
    // From the root to the member.
    while node.len() > 1 {
        let half = node.len().next_power_of_two() / 2;
        let (left, right) = (node.start..node.start + half, node.start + half..node.end);
        let exchanged = match left.len() == right.len() {
            true => exchange(me, &left, &right, elements),
            false => gather_left(me, &left, &right, elements),
        };
        let (sends, receives) = exchanged;
        let is_last = node.len() == n_members;
        let sends_down = receives_to_sends(me, &node, &receives, elements);
        let receives_down = sends.clone();
        push(&mut up, Direction::Up { is_last }, sends, receives);
        push(&mut down, Direction::Down, sends_down, receives_down);
        node = if left.contains(&me) { left } else { right };
    }
    up.reverse();
    up.extend(down);
    up
}

type Runs = Vec<(usize, Range<usize>)>;

fn push(rounds: &mut Vec<Round>, direction: Direction, mut sends: Runs, mut receives: Runs) {
    sends.retain(|(_, elements)| !elements.is_empty());
    receives.retain(|(_, elements)| !elements.is_empty());
    if !sends.is_empty() || !receives.is_empty() {
        rounds.push(Round {
            direction,
            sends,
            receives,
        });
    }
}

/// Returns what a member sends and receives on the way up in a node of two equal halves.
fn exchange(
    me: usize,
    left: &Range<usize>,
    right: &Range<usize>,
    elements: &Range<usize>,
) -> (Runs, Runs) {
    let half = left.len();
    let (opposite, begin) = match left.contains(&me) {
        true => (me + half, left.start),
        false => (me - half, right.start),
    };
    let has = part(me - begin, half, elements);
    let (lower, upper) = halves(&has);
    let (kept, sent) = match left.contains(&me) {
        true => (lower, upper),
        false => (upper, lower),
    };
    (vec![(opposite, sent)], vec![(opposite, kept)])
}

/// Returns what a member sends and receives on the way up in a node whose right half has fewer members.
fn gather_left(
    me: usize,
    left: &Range<usize>,
    right: &Range<usize>,
    elements: &Range<usize>,
) -> (Runs, Runs) {
    let n_holders = holders(right.len());
    if left.contains(&me) {
        let index = me - left.start;
        let from = right.start + index % n_holders;
        return (Vec::new(), vec![(from, part(index, left.len(), elements))]);
    }
    let own = me - right.start;
    if own >= n_holders {
        return (Vec::new(), Vec::new());
    }
    let receivers = (own..left.len()).step_by(n_holders);
    let sends = receivers.map(|index| (left.start + index, part(index, left.len(), elements)));
    (sends.collect(), Vec::new())
}

/// Returns what a member sends on the way down in a node where it has received this on the way up.
fn receives_to_sends(
    me: usize,
    node: &Range<usize>,
    receives: &Runs,
    elements: &Range<usize>,
) -> Runs {
    let half = node.len().next_power_of_two() / 2;
    let is_equal = half * 2 == node.len();
    let own = |to: usize| {
        // Of a whole node each half has the part that it has kept, of another the left half has all of its parts.
        let index = me - node.start;
        let parts = if is_equal { node.len() } else { half };
        (to, part(index, parts, elements))
    };
    receives.iter().map(|(from, _)| own(*from)).collect()
}

/// Returns how many members have parts of the sum of a node of so many: those in its largest part of a power of two.
fn holders(n_members: usize) -> usize {
    match n_members.is_power_of_two() {
        true => n_members,
        false => n_members.next_power_of_two() / 2,
    }
}

/// Returns the elements that member `index` of a node of `n_parts`, a power of two, has of its sum.
fn part(index: usize, n_parts: usize, elements: &Range<usize>) -> Range<usize> {
    let mut part = elements.clone();
    for level in 0..n_parts.trailing_zeros() {
        let (lower, upper) = halves(&part);
        part = if index >> level & 1 == 0 {
            lower
        } else {
            upper
        };
    }
    part
}

fn halves(elements: &Range<usize>) -> (Range<usize>, Range<usize>) {
    let middle = elements.start + elements.len().div_ceil(2);
    (elements.start..middle, middle..elements.end)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::reduction::ReductionTree;

    /// The messages on their way, by its sender, its receiver, and whether it goes down.
    type Mail = BTreeMap<(usize, usize, bool), (Range<usize>, Vec<String>)>;

    /// Sums as texts, so that the order shows.
    fn text(left: &str, right: &str) -> String {
        format!("({left} {right})")
    }

    /// Runs the rounds of all members, and returns each one's elements and how many each has sent.
    fn run(n_members: usize, n_elements: usize) -> (Vec<Vec<String>>, Vec<usize>) {
        let elements = 0..n_elements;
        let mut have: Vec<Vec<String>> = (0..n_members)
            .map(|member| vec![member.to_string(); n_elements])
            .collect();
        let all: Vec<Vec<Round>> = (0..n_members)
            .map(|me| rounds(me, n_members, &elements))
            .collect();
        let (mut next, mut sent) = (vec![0; n_members], vec![0; n_members]);
        let mut has_sent = vec![false; n_members];
        let mut mail = Mail::new();
        let mut is_going = true;
        while std::mem::take(&mut is_going) {
            for me in 0..n_members {
                let Some(round) = all[me].get(next[me]) else {
                    continue;
                };
                let is_down = round.direction == Direction::Down;
                if !std::mem::replace(&mut has_sent[me], true) {
                    is_going = true;
                    for (to, run) in &round.sends {
                        sent[me] += run.len();
                        let data = have[me][run.clone()].to_vec();
                        let before = mail.insert((me, *to, is_down), (run.clone(), data));
                        assert!(before.is_none(), "{me} sends {to} a second run");
                    }
                }
                let is_there = |from: &usize| mail.contains_key(&(*from, me, is_down));
                if !round.receives.iter().all(|(from, _)| is_there(from)) {
                    continue;
                }
                for (from, run) in &round.receives {
                    let (sent, data) = mail.remove(&(*from, me, is_down)).unwrap();
                    assert_eq!(&sent, run);
                    for (at, arrived) in run.clone().zip(data) {
                        have[me][at] = match (is_down, from < &me) {
                            (true, _) => arrived,
                            (_, true) => text(&arrived, &have[me][at]),
                            (_, false) => text(&have[me][at], &arrived),
                        };
                    }
                }
                (is_going, has_sent[me]) = (true, false);
                next[me] += 1;
            }
        }
        assert!(mail.is_empty());
        assert!((0..n_members).all(|me| next[me] == all[me].len()));
        (have, sent)
    }

    #[test]
    fn all_members_have_the_sum_in_the_order_of_the_tree() {
        for n_members in 1..70 {
            let tree = ReductionTree::new(n_members);
            let leaves = (0..n_members).map(|leaf| (leaf..leaf + 1, leaf.to_string()));
            let expected = tree.reduce(leaves.collect(), |left, right| text(&left, &right));
            let expected = expected.unwrap();
            for n_elements in [1, 2, 7, 64, 129] {
                let (have, sent) = run(n_members, n_elements);
                let is_right = |element: &String| *element == expected;
                assert!(have.iter().flatten().all(is_right), "{n_members}");
                // Up and down each less than twice what there is, but for what halves leave over.
                assert!(
                    sent.iter().all(|sent| *sent < 4 * n_elements + 16),
                    "{sent:?}"
                );
            }
        }
    }

    #[test]
    fn a_power_of_two_sends_as_much_as_a_ring() {
        for n_members in [2, 4, 16, 32, 64] {
            let (_, sent) = run(n_members, 128);
            let of_a_ring = 2 * 128 * (n_members - 1) / n_members;
            assert!(sent.iter().all(|sent| *sent == of_a_ring), "{sent:?}");
        }
    }
}
