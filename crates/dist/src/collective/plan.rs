//! Plans: into which units a collective's elements are cut, and who is responsible for each.

use std::ops::Range;

use tfrt_async::Error;

use super::{Announcement, Call, EAGER_BYTES, Operation, Order};
use crate::reduction::ReductionTree;

/// The most bytes of a unit: while one is reduced the next arrives.
const UNIT_BYTES: usize = 1 << 20;

/// The most members of a reduction in which each member is sent its part of the elements by all others; more halve and
/// double.
const MAX_DIRECT: usize = 16;

/// The most bytes of a unit that is halved: its first message is half of it.
const HALVED_BYTES: usize = 2 << 20;

/// The most leaves of a reduction.
const MAX_LEAVES: usize = 1 << 16;

/// The cut of a collective, the same for all members once they agree.
#[derive(Debug)]
pub(super) struct Plan {
    /// The size of an element.
    pub element_bytes: usize,
    /// The number of elements of the result, or of each member's tensor where members gather.
    pub n_elements: usize,
    /// Whether the elements travel with the announcements.
    pub is_eager: bool,
    /// Whether members halve and double, where each has as many leaves as any other, all of one subtree.
    pub is_halving: bool,
    /// The units, in order.
    pub units: Vec<Unit>,
}

/// A run of elements that travel together.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub elements: Range<usize>,
    /// The member that reduces the elements or passes them on; nobody where each member does all by itself.
    pub owner: Option<usize>,
}

impl Plan {
    /// Makes the plan of a call that makes no sense.
    pub fn of_nothing() -> Plan {
        Plan {
            element_bytes: 1,
            n_elements: 0,
            is_eager: false,
            is_halving: false,
            units: Vec::new(),
        }
    }

    /// Makes the plan of a call.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the call makes no sense by itself.
    pub fn of_call(call: &Call) -> Result<Plan, Error> {
        let refused = |message: String| Err(Error::invalid_argument(message));
        let n_members = call.members.len();
        let Some(element_bytes) = call.dtype.size_bytes() else {
            return refused(format!(
                "expected elements of one size, found {}",
                call.dtype
            ));
        };
        let n_elements = n_elements(&call.extents, element_bytes)?;
        let is_eager = n_elements * element_bytes <= EAGER_BYTES;
        let mut is_halving = false;
        let units = match &call.operation {
            Operation::AllReduce { leaves, order, .. } => {
                use tfrt_tensor::math::Family;
                if !Family::Reals.has(call.dtype) {
                    return refused(format!(
                        "expected real numbers to reduce, found {}",
                        call.dtype
                    ));
                }
                if !(1..=MAX_LEAVES).contains(leaves) {
                    return refused(format!(
                        "expected from 1 to {MAX_LEAVES} leaves, found {leaves}"
                    ));
                }
                if *order == Order::Ring && *leaves < n_members {
                    return refused(format!(
                        "a ring needs a leaf for each member: expected at least {n_members}, found {leaves}"
                    ));
                }
                match order {
                    _ if n_members == 1 => whole(n_elements),
                    Order::Ring => splits(n_elements, n_members),
                    Order::Tree if is_eager => whole(n_elements),
                    Order::Tree if n_members > MAX_DIRECT && is_even(*leaves, n_members) => {
                        is_halving = true;
                        runs(0..n_elements, HALVED_BYTES / element_bytes, None).collect()
                    }
                    Order::Tree => units(n_elements, n_members, element_bytes),
                }
            }
            Operation::Broadcast { sender } => {
                if *sender >= n_members {
                    return refused(format!(
                        "expected a sender among the {n_members} members, found number {sender}"
                    ));
                }
                match is_eager {
                    true => whole(n_elements),
                    false => units(n_elements, n_members, element_bytes),
                }
            }
            Operation::AllGather { axis, any_shape } => {
                check_gather(call, *axis, *any_shape)?;
                Vec::new()
            }
        };
        // A ring's elements go from neighbour to neighbour, and those of a gathering are of any size.
        let is_eager = is_eager && !is_ring(call);
        Ok(Plan {
            element_bytes,
            n_elements,
            is_eager,
            is_halving,
            units,
        })
    }
}

/// Returns whether a call is a reduction by a ring; of one member it is the same as by a tree.
pub(super) fn is_ring(call: &Call) -> bool {
    let is_ring = matches!(
        call.operation,
        Operation::AllReduce {
            order: Order::Ring,
            ..
        }
    );
    is_ring && call.members.len() > 1
}

/// Returns the number of elements of a shape, of which the bytes can be counted.
pub(super) fn n_elements(extents: &[usize], element_bytes: usize) -> Result<usize, Error> {
    let n = extents
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    let n = n.filter(|n| {
        n.checked_mul(element_bytes)
            .is_some_and(|n| isize::try_from(n).is_ok())
    });
    n.ok_or_else(|| {
        Error::invalid_argument(format!(
            "expected a tensor that fits into memory, found extents {extents:?}"
        ))
    })
}

fn check_gather(call: &Call, axis: usize, any_shape: bool) -> Result<(), Error> {
    let Some(extent) = call.extents.get(axis) else {
        let rank = call.extents.len();
        return Err(Error::invalid_argument(format!(
            "expected an axis below the rank of the input, {rank}, found {axis}"
        )));
    };
    let Some(result) = call.result_extents.as_ref().filter(|_| !any_shape) else {
        return Ok(());
    };
    let mut expected = call.extents.clone();
    expected[axis] = extent.saturating_mul(call.members.len());
    if *result != expected {
        return Err(Error::invalid_argument(format!(
            "Incorrect output dimension. All dimensions in the output must be equal except the axis.: expected {expected:?}, found {result:?}"
        )));
    }
    Ok(())
}

fn whole(n_elements: usize) -> Vec<Unit> {
    let unit = Unit {
        elements: 0..n_elements,
        owner: None,
    };
    if n_elements == 0 {
        Vec::new()
    } else {
        vec![unit]
    }
}

/// Cuts elements into a split for each member: the first ones have one element more where they do not come out even.
fn splits(n_elements: usize, n_members: usize) -> Vec<Unit> {
    let (len, n_longer) = (n_elements / n_members, n_elements % n_members);
    let begin = |member: usize| member * len + member.min(n_longer);
    let split = |member| Unit {
        elements: begin(member)..begin(member + 1),
        owner: Some(member),
    };
    (0..n_members).map(split).collect()
}

/// Cuts the split of each member into units.
fn units(n_elements: usize, n_members: usize, element_bytes: usize) -> Vec<Unit> {
    let cut = |split: Unit| runs(split.elements, UNIT_BYTES / element_bytes, split.owner);
    splits(n_elements, n_members)
        .into_iter()
        .flat_map(cut)
        .collect()
}

/// Cuts elements into units of a length, all of one owner.
fn runs(elements: Range<usize>, len: usize, owner: Option<usize>) -> impl Iterator<Item = Unit> {
    let len = len.max(1);
    let begins = elements.clone().step_by(len);
    begins.map(move |begin| Unit {
        elements: begin..(begin + len).min(elements.end),
        owner,
    })
}

/// Returns whether each member has one subtree, all of one size: then the tree over leaves is one over members.
fn is_even(leaves: usize, n_members: usize) -> bool {
    leaves.is_multiple_of(n_members) && (leaves / n_members).is_power_of_two()
}

/// The shares of members in a reduction: their leaves, and the roots of the whole subtrees among them.
#[derive(Debug)]
pub(super) struct Leaves {
    pub n_leaves: usize,
    /// For each member, the roots that it hands on, by their leaves.
    pub roots: Vec<Vec<Range<usize>>>,
    /// The leaves of this member.
    pub own: Range<usize>,
}

impl Leaves {
    pub fn none() -> Leaves {
        Leaves {
            n_leaves: 0,
            roots: Vec::new(),
            own: 0..0,
        }
    }

    pub fn of_call(call: &Call, me: usize) -> Leaves {
        let Operation::AllReduce { leaves, .. } = call.operation else {
            return Leaves::none();
        };
        let (tree, n_members) = (ReductionTree::new(leaves), call.members.len());
        let leaves_of = |member| tree.leaves_of(member, n_members);
        Leaves {
            n_leaves: leaves,
            roots: (0..n_members)
                .map(|member| tree.subtrees(leaves_of(member)))
                .collect(),
            own: leaves_of(me),
        }
    }
}

/// The place of a member's tensor in what is gathered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub n_elements: usize,
    pub n_blocks: usize,
    pub block_len: usize,
    pub offset: usize,
    pub stride: usize,
}

/// Returns the extents of what members gather, and the place of each one's tensor.
pub(super) fn gathered(
    announcements: &[Announcement],
    axis: usize,
    element_bytes: usize,
) -> Result<(Vec<usize>, Vec<Blocks>), Error> {
    let mut extents = announcements[0].extents.clone();
    let along = |one: &Announcement| one.extents[axis];
    let total = announcements
        .iter()
        .map(along)
        .try_fold(0_usize, |n, m| n.checked_add(m));
    extents[axis] = total.unwrap_or(usize::MAX);
    n_elements(&extents, element_bytes)?;
    let n_blocks: usize = extents[..axis].iter().product();
    let inner: usize = extents[axis + 1..].iter().product();
    let stride = extents[axis] * inner;
    let mut offset = 0;
    let blocks = announcements.iter().map(|one| {
        let block_len = along(one) * inner;
        let blocks = Blocks {
            n_elements: n_blocks * block_len,
            n_blocks,
            block_len,
            offset,
            stride,
        };
        offset += block_len;
        blocks
    });
    let blocks = blocks.collect();
    Ok((extents, blocks))
}
