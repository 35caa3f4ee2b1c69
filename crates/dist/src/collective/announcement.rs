//! Announcements: what members say of their calls, and how they are compared.

use tfrt_async::{ClusterTask, Error};
use tfrt_tensor::DType;

use super::{Call, Operation, Order};

/// A member's statement of what it has called, by which members find out whether they mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The number of members.
    pub n_members: u32,
    /// A hash of their names in order (`digest`).
    pub members: u64,
    /// The operation.
    pub operation: Operation,
    /// The type of the elements.
    pub dtype: DType,
    /// The extents of the member's tensor.
    pub extents: Vec<usize>,
}

impl Announcement {
    /// Makes that of a call.
    pub(super) fn of_call(call: &Call) -> Announcement {
        Announcement {
            n_members: u32::try_from(call.members.len()).unwrap_or(u32::MAX),
            members: digest(&call.members),
            operation: call.operation.clone(),
            dtype: call.dtype,
            extents: call.extents.clone(),
        }
    }

    /// Returns the announcement without what may differ among members.
    fn common(&self) -> Announcement {
        let mut common = self.clone();
        if let Operation::AllGather {
            axis,
            any_shape: true,
        } = self.operation
            && let Some(extent) = common.extents.get_mut(axis)
        {
            *extent = 0;
        }
        common
    }

    fn shape(&self) -> String {
        let extents: Vec<String> = self.extents.iter().map(usize::to_string).collect();
        format!("{}[{}]", self.dtype, extents.join("x"))
    }

    /// Returns the first thing that differs from another announcement, of both.
    fn difference(&self, other: &Announcement) -> (String, String) {
        let both = |what: fn(&Announcement) -> String| (what(self), what(other));
        let parts: [fn(&Announcement) -> String; 4] = [
            |it| format!("a group of {} members", it.n_members),
            |it| format!("the operation {}", it.operation.name()),
            |it| match &it.operation {
                Operation::AllReduce {
                    function,
                    leaves,
                    order,
                } => {
                    let order = if *order == Order::Ring {
                        "ring"
                    } else {
                        "tree"
                    };
                    let name = function.name();
                    format!("the function {name} of {leaves} leaves in the order of a {order}")
                }
                Operation::Broadcast { sender } => format!("the sender {sender}"),
                Operation::AllGather { axis, .. } => format!("the axis {axis}"),
            },
            Announcement::shape,
        ];
        let differs = |what: &fn(&Announcement) -> String| what(self) != what(other);
        match parts.into_iter().find(|what| differs(what)) {
            Some(what) => both(what),
            None if self.members != other.members => {
                ("other members in the group".to_owned(), "these".to_owned())
            }
            None => ("another form of gathering".to_owned(), "this".to_owned()),
        }
    }
}

/// Returns a hash of the names of members, in their order: FNV-1a of 64 bits.
pub(super) fn digest(members: &[ClusterTask]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for member in members {
        for byte in member.to_string().bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// Checks that the announcements of all members agree.
///
/// # Errors
///
/// `InvalidArgument`, the same on each member. It names the first member that says something else than most; where as many
/// say one thing as another, those count that agree with the first member.
pub(super) fn check(members: &[ClusterTask], announcements: &[Announcement]) -> Result<(), Error> {
    let common: Vec<Announcement> = announcements.iter().map(Announcement::common).collect();
    let Some(first) = common.first() else {
        return Ok(());
    };
    if common.iter().all(|other| other == first) {
        return Ok(());
    }
    let n_alike = |one: &Announcement| common.iter().filter(|other| *other == one).count();
    let mut most = 0;
    let mut n_most = n_alike(first);
    // Few are different in practice, and this ends the collective.
    for (at, one) in common.iter().enumerate() {
        let n = n_alike(one);
        if n > n_most {
            (most, n_most) = (at, n);
        }
    }
    let odd = common.iter().position(|one| *one != common[most]);
    let odd = odd.expect("not all are alike");
    Err(disagreement(members, announcements, odd, most))
}

fn disagreement(
    members: &[ClusterTask],
    announcements: &[Announcement],
    odd: usize,
    most: usize,
) -> Error {
    let (one, other) = (&announcements[odd], &announcements[most]);
    let (found, expected) = one.common().difference(&other.common());
    let (odd_task, most_task) = (&members[odd], &members[most]);
    let any_shape = matches!(
        one.operation,
        Operation::AllGather {
            any_shape: true,
            ..
        }
    );
    let message = match any_shape && one.operation == other.operation && one.dtype == other.dtype {
        true => {
            let rule = match one.extents.len() == other.extents.len() {
                true => "All dimensions in the input must be equal except the axis",
                false => "All workers must have tensors of the same rank.",
            };
            let (found, expected) = (one.shape(), other.shape());
            format!("{rule}: {odd_task} has {found}, and {most_task} {expected}")
        }
        false => format!(
            "the members of the group do not agree: {odd_task} has {found}, and {most_task} {expected}"
        ),
    };
    Error::invalid_argument(message).with_task(odd_task.clone())
}
