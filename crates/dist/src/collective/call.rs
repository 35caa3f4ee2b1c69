//! Collectives that a program of Rust calls on a context: [`all_reduce`].

use std::time::Instant;

use tfrt_async::{AsyncValue, ClusterTask, Error};
use tfrt_tensor::{DenseHostTensor, Tensor};

use super::memory::Tensors;
use super::{Call, Function, Key, Operation, Order};
use crate::context::DistributedContext;
use crate::reduction::ReductionTree;

/// Reduces `n_leaves` tensors, of which each member of a group has a run ([`ReductionTree::leaves_of`]), in the order of one
/// tree: so any number of members gives the same bits. The result is written into `result`, of all members. Leaves are not
/// to be written before it is there. Without a deadline it has ten minutes.
///
/// # Errors
///
/// All members fail, or none: as the module says. Calls that concern nobody else fail alone: `NotFound` if there is no such
/// group; `InvalidArgument` for another number of leaves than this member has, or if this task is none of the members.
pub fn all_reduce(
    context: &DistributedContext,
    key: Key,
    function: Function,
    n_leaves: usize,
    leaves: &[DenseHostTensor],
    result: &DenseHostTensor,
    deadline: Option<Instant>,
) -> AsyncValue<Tensor> {
    let collectives = context.collectives();
    let begin = || {
        let members = context.group(&key.group)?.into_iter();
        let members = members.map(|member| context.task_name(member).cloned());
        let members = members.collect::<Result<Vec<ClusterTask>, Error>>()?;
        let own = &context.config().task;
        let me = members.iter().position(|member| member == own);
        let me = me.ok_or_else(|| {
            Error::invalid_argument(format!(
                "The current task {own} is not part of the collective group {}",
                key.group
            ))
        })?;
        let expected = ReductionTree::new(n_leaves)
            .leaves_of(me, members.len())
            .len();
        if leaves.len() != expected {
            let found = leaves.len();
            return Err(Error::invalid_argument(format!(
                "expected {expected} of {n_leaves} leaves from {own}, found {found}"
            )));
        }
        let differs = leaves
            .iter()
            .find(|leaf| leaf.metadata() != result.metadata());
        if let Some(leaf) = differs {
            let (expected, found) = (result.metadata(), leaf.metadata());
            return Err(Error::invalid_argument(format!(
                "expected leaves of the type and shape of the result, {expected}, found {found}"
            )));
        }
        let tensors = Tensors::of_leaves(context.host().allocator(), leaves, result)?;
        let call = Call {
            key: key.clone(),
            members,
            operation: Operation::AllReduce {
                function,
                leaves: n_leaves,
                order: Order::Tree,
            },
            dtype: result.dtype(),
            extents: result.shape().to_dims().to_vec(),
            result_extents: None,
            deadline: collectives.deadline(deadline),
        };
        Ok((call, tensors))
    };
    match begin() {
        Ok((call, tensors)) => collectives.call(call, tensors),
        Err(error) => AsyncValue::from_error(error),
    }
}
