//! [`FlatTrees`]: nodes as walks like them.
//!
//! Where a node's answer is no, the walk goes on one place behind where it goes on if it is yes: the two branches of
//! a node lie side by side, and what comes next is an addition, without a jump that the processor has to guess. What
//! several branches lead to is there once for each of them, but what is behind it is not: there are as many places
//! as branches. A leaf leads to itself, so paths of different lengths are followed together until none moves.
//!
//! ```text
//! places     root | yes no | yes no | ..
//! next       1      3      itself
//! ```

use std::collections::VecDeque;

use tfrt_host::Error;

use super::super::number::Floating;
use super::{Branch, Node, Question};

/// Paths that are followed side by side.
pub(super) const LANES: usize = 8;

/// The answer if the feature is no number, in [`FlatNode::feature`].
const MISSING_IS_YES: u32 = 1 << 31;
/// First bit of the question's kind in [`FlatNode::feature`].
const KIND_SHIFT: u32 = 28;
/// The bits of the feature in [`FlatNode::feature`].
const FEATURE: u32 = (1 << KIND_SHIFT) - 1;

const AT_MOST: u32 = 0;
const LESS: u32 = 1;
const EQUAL: u32 = 2;
const NOT_EQUAL: u32 = 3;
const ONE_OF: u32 = 4;

/// Kind of questions of several kinds, which are told apart at each node.
const MIXED: u32 = u32::MAX;

/// A node or a leaf.
#[derive(Clone, Copy, Debug)]
struct FlatNode<T> {
    /// Number that the feature is compared with; NaN for a leaf, so that the answer is no.
    limit: T,
    /// The feature, the kind of the question, and the answer if the feature is no number.
    feature: u32,
    /// Index of the node behind the answer yes.
    next: u32,
}

/// Nodes of all trees in the order of walks, tree by tree.
#[derive(Clone, Debug)]
pub(super) struct FlatTrees<T> {
    // Invariant: `next` and the place behind it are places, of leaves the one before them and themselves; features
    // are less than `n_features`; no path leads back.
    places: Vec<FlatNode<T>>,
    /// The number of the leaf at a place, or of the set that a node asks for.
    numbers: Vec<u32>,
    sets: Vec<Vec<T>>,
    // Invariant: they are places.
    roots: Vec<u32>,
    n_features: usize,
    /// Kind of all questions, or [`MIXED`].
    kind: u32,
}

impl<T: Floating> FlatTrees<T> {
    /// Lays nodes out that lead to nodes that there are, and not back.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there are too many of them, or of features.
    pub(super) fn new(mut nodes: Vec<Node<T>>, roots: &[Branch]) -> Result<FlatTrees<T>, Error> {
        let n_places = nodes.len().saturating_mul(2).saturating_add(roots.len());
        // The last number is no place: the one before the first is found by counting past it.
        if n_places >= u32::MAX as usize {
            return Err(Error::resource_exhausted("there are too many nodes"));
        }
        let (mut sets, mut sets_at) = (Vec::new(), Vec::with_capacity(nodes.len()));
        for node in &mut nodes {
            sets_at.push(sets.len());
            match &mut node.question {
                Question::OneOf(set) => sets.push(std::mem::take(set)),
                // What is compared with no number has the answer no, and so has not the opposite.
                Question::AtLeast(limit) | Question::Greater(limit) if !limit.same(*limit) => {
                    node.question = Question::Less(*limit);
                }
                _ => {}
            }
        }
        let mut making = FlatBuilder {
            flat: FlatTrees {
                places: Vec::with_capacity(n_places),
                numbers: Vec::with_capacity(n_places),
                sets,
                roots: Vec::with_capacity(roots.len()),
                n_features: 1,
                kind: MIXED,
            },
            branches_at: vec![None; nodes.len()],
            sets_at,
            nodes,
            open: VecDeque::new(),
        };
        let mut kinds = making.nodes.iter().map(|node| kind_of(&node.question).0);
        let first = kinds.next().unwrap_or(AT_MOST);
        if first <= LESS && kinds.all(|kind| kind == first) {
            making.flat.kind = first;
        }
        for root in roots {
            let at = making.flat.places.len();
            making.flat.roots.push(number(at));
            making.place(*root)?;
            making.finish()?;
        }
        Ok(making.flat)
    }

    pub(super) fn n_features(&self) -> usize {
        self.n_features
    }

    pub(super) fn roots(&self) -> &[u32] {
        &self.roots
    }

    pub(super) fn map<U>(&self, mut number: impl FnMut(T) -> U) -> FlatTrees<U> {
        let places = self.places.iter().map(|place| FlatNode {
            limit: number(place.limit),
            feature: place.feature,
            next: place.next,
        });
        let places = places.collect();
        let sets = self.sets.iter();
        let sets = sets.map(|set| set.iter().copied().map(&mut number).collect());
        FlatTrees {
            places,
            sets: sets.collect(),
            numbers: self.numbers.clone(),
            roots: self.roots.clone(),
            n_features: self.n_features,
            kind: self.kind,
        }
    }

    /// Follows paths from nodes, each with the features from an element of `rows` on; returns the leaves.
    pub(super) fn walk(
        &self,
        at: [u32; LANES],
        rows: &[T],
        bases: [usize; LANES],
    ) -> [usize; LANES] {
        let ends = match self.kind {
            AT_MOST => self.walk_of::<AT_MOST>(at, rows, bases),
            LESS => self.walk_of::<LESS>(at, rows, bases),
            _ => self.walk_of::<MIXED>(at, rows, bases),
        };
        ends.map(|end| self.numbers[end as usize] as usize)
    }

    #[inline(always)]
    fn walk_of<const KIND: u32>(
        &self,
        mut at: [u32; LANES],
        rows: &[T],
        bases: [usize; LANES],
    ) -> [u32; LANES] {
        loop {
            let mut moved = 0;
            for lane in 0..LANES {
                let place = &self.places[at[lane] as usize];
                let x = rows[bases[lane] + (place.feature & FEATURE) as usize];
                let is_yes = match KIND {
                    AT_MOST => x.less(place.limit) || x.same(place.limit),
                    LESS => x.less(place.limit),
                    _ => self.ask(at[lane], x),
                };
                let is_yes = is_yes | (!x.same(x) & (place.feature & MISSING_IS_YES != 0));
                let next = place.next.wrapping_add(u32::from(!is_yes));
                moved |= next ^ at[lane];
                at[lane] = next;
            }
            if moved == 0 {
                return at;
            }
        }
    }

    fn ask(&self, at: u32, x: T) -> bool {
        let place = &self.places[at as usize];
        match (place.feature & !MISSING_IS_YES) >> KIND_SHIFT {
            AT_MOST => x.less(place.limit) || x.same(place.limit),
            LESS => x.less(place.limit),
            EQUAL => x.same(place.limit),
            NOT_EQUAL => !x.same(place.limit),
            _ => {
                let set = &self.sets[self.numbers[at as usize] as usize];
                set.iter().any(|value| x.same(*value))
            }
        }
    }
}

/// Returns the kind of a question, and whether it is its opposite that is asked.
fn kind_of<T: Floating>(question: &Question<T>) -> (u32, bool) {
    match question {
        Question::AtMost(_) => (AT_MOST, false),
        Question::Less(_) => (LESS, false),
        Question::Greater(_) => (AT_MOST, true),
        Question::AtLeast(_) => (LESS, true),
        Question::Equal(_) => (EQUAL, false),
        Question::NotEqual(_) => (NOT_EQUAL, false),
        Question::OneOf(_) => (ONE_OF, false),
    }
}

/// Returns a number that was checked to fit.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

struct FlatBuilder<T> {
    flat: FlatTrees<T>,
    nodes: Vec<Node<T>>,
    /// Number of each node's set, if its question has one.
    sets_at: Vec<usize>,
    /// Index of each node's branches, once they have one.
    branches_at: Vec<Option<u32>>,
    /// Nodes whose branches are not placed yet, with their original numbers.
    open: VecDeque<(usize, usize)>,
}

impl<T: Floating> FlatBuilder<T> {
    /// Appends the node that a branch leads to.
    fn place(&mut self, branch: Branch) -> Result<(), Error> {
        let at = self.flat.places.len();
        let nothing = T::from_f64(f64::NAN);
        let (place, extra) = match branch {
            Branch::Leaf(leaf) => {
                let place = FlatNode {
                    limit: nothing,
                    feature: 0,
                    next: number(at).wrapping_sub(1),
                };
                (place, leaf)
            }
            Branch::Node(index) => {
                self.open.push_back((at, index));
                let node = &self.nodes[index];
                let feature = u32::try_from(node.feature).ok();
                let Some(feature) = feature.filter(|feature| *feature < FEATURE) else {
                    let message = format!("there are too many features: {}", node.feature);
                    return Err(Error::resource_exhausted(message));
                };
                self.flat.n_features = self.flat.n_features.max(node.feature + 1);
                let (kind, is_opposite) = kind_of(&node.question);
                let limit = match &node.question {
                    Question::AtMost(limit)
                    | Question::Less(limit)
                    | Question::AtLeast(limit)
                    | Question::Greater(limit)
                    | Question::Equal(limit)
                    | Question::NotEqual(limit) => *limit,
                    Question::OneOf(_) => nothing,
                };
                let missing = match node.missing_is_yes ^ is_opposite {
                    true => MISSING_IS_YES,
                    false => 0,
                };
                let place = FlatNode {
                    limit,
                    feature: feature | kind << KIND_SHIFT | missing,
                    next: 0,
                };
                (place, self.sets_at[index])
            }
        };
        self.flat.places.push(place);
        self.flat.numbers.push(number(extra));
        Ok(())
    }

    /// Appends the nodes that all open branches lead to.
    fn finish(&mut self) -> Result<(), Error> {
        while let Some((at, index)) = self.open.pop_front() {
            let next = match self.branches_at[index] {
                Some(next) => next,
                None => {
                    let next = number(self.flat.places.len());
                    self.branches_at[index] = Some(next);
                    let Node { yes, no, .. } = self.nodes[index];
                    let opposite = kind_of(&self.nodes[index].question).1;
                    let (first, second) = if opposite { (no, yes) } else { (yes, no) };
                    self.place(first)?;
                    self.place(second)?;
                    next
                }
            };
            self.flat.places[at].next = next;
        }
        Ok(())
    }
}
