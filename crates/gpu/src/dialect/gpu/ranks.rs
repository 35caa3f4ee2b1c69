//! Exchange of data between the devices of a group.

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext};

use super::{Buffer, Ccl, CclId, Context, Stream};
use crate::dialect::exchange::{Group, Operation, OperationKind};
use crate::dialect::linear::keyword;
use crate::driver::library::{Number, Reduction};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_gpu.ccl.unique_id", unique_id)
        .add("tfrt_gpu.ccl.create", create)
        .add("tfrt_gpu.ccl.all_gather", gather)
        .add("tfrt_gpu.ccl.all_reduce", reduce)
        .add("tfrt_gpu.ccl.reduce_scatter", scatter)
        .add("tfrt_gpu.ccl.send", send)
        .add("tfrt_gpu.ccl.recv", receive)
        .add("tfrt_gpu.ccl.all_to_all", all)
        .add("tfrt_gpu.ccl.execute", execute);
}

/// `%id = tfrt_gpu.ccl.unique_id CUDA`
fn unique_id(platform: Attr<i32>) -> Result<CclId, Error> {
    super::platform(*platform)?;
    Ok(CclId(Group::default()))
}

/// `%handle = tfrt_gpu.ccl.create %context, %rank, %count, %id`
fn create(
    context: &Context,
    rank: i32,
    count: i32,
    id: &CclId,
    execution: &ExecutionContext,
) -> Result<AsyncValue<Ccl>, Error> {
    id.join(context, (rank, count), execution, Ccl)
}

fn number(attribute: i32) -> Result<Number, Error> {
    Ok(match keyword(attribute)? {
        0 => Number::Int(1),
        1 => Number::Unsigned(1),
        2 => Number::Int(4),
        3 => Number::Unsigned(4),
        4 => Number::Int(8),
        5 => Number::Unsigned(8),
        6 => Number::F16,
        7 => Number::F32,
        8 => Number::F64,
        other => {
            let message = format!("Invalid ncclDataType value: {other}");
            return Err(Error::invalid_argument(message));
        }
    })
}

fn reduction(attribute: i32) -> Result<Reduction, Error> {
    Ok(match keyword(attribute)? {
        0 => Reduction::Sum,
        1 => Reduction::Product,
        2 => Reduction::Max,
        3 => Reduction::Min,
        other => {
            let message = format!("Invalid ncclRedOp value: {other}");
            return Err(Error::invalid_argument(message));
        }
    })
}

fn add(
    ccl: &Ccl,
    kind: OperationKind,
    (input, output): (Option<&Buffer>, Option<&Buffer>),
    data_type: i32,
) -> Result<Chain, Error> {
    let operation = Operation {
        kind,
        input: input.map(|buffer| buffer.0.clone()),
        output: output.map(|buffer| buffer.0.clone()),
        number: number(data_type)?,
    };
    Ok(ccl.add(operation))
}

/// `%c1 = tfrt_gpu.ccl.all_gather %handle, %input, %output, ncclInt32, %c0`
fn gather(
    ccl: &Ccl,
    input: &Buffer,
    output: &Buffer,
    _: Chain,
    data_type: Attr<i32>,
) -> Result<Chain, Error> {
    let buffers = (Some(input), Some(output));
    add(ccl, OperationKind::Gather, buffers, *data_type)
}

/// `%c1 = tfrt_gpu.ccl.all_reduce %handle, %input, %output, ncclInt32, ncclSum, %c0`
fn reduce(
    ccl: &Ccl,
    input: &Buffer,
    output: &Buffer,
    _: Chain,
    data_type: Attr<i32>,
    how: Attr<i32>,
) -> Result<Chain, Error> {
    let kind = OperationKind::Reduce(reduction(*how)?);
    add(ccl, kind, (Some(input), Some(output)), *data_type)
}

/// `%c1 = tfrt_gpu.ccl.reduce_scatter %handle, %input, %output, ncclInt32, ncclSum, %c0`
fn scatter(
    ccl: &Ccl,
    input: &Buffer,
    output: &Buffer,
    _: Chain,
    data_type: Attr<i32>,
    how: Attr<i32>,
) -> Result<Chain, Error> {
    let kind = OperationKind::Scatter(reduction(*how)?);
    add(ccl, kind, (Some(input), Some(output)), *data_type)
}

/// `%c1 = tfrt_gpu.ccl.send %handle, %input, %peer, ncclInt32, %c0`
fn send(
    ccl: &Ccl,
    input: &Buffer,
    peer: i32,
    _: Chain,
    data_type: Attr<i32>,
) -> Result<Chain, Error> {
    add(
        ccl,
        OperationKind::Send(peer),
        (Some(input), None),
        *data_type,
    )
}

/// `%c1 = tfrt_gpu.ccl.recv %handle, %output, %peer, ncclInt32, %c0`
fn receive(
    ccl: &Ccl,
    output: &Buffer,
    peer: i32,
    _: Chain,
    data_type: Attr<i32>,
) -> Result<Chain, Error> {
    add(
        ccl,
        OperationKind::Receive(peer),
        (None, Some(output)),
        *data_type,
    )
}

/// `%c1 = tfrt_gpu.ccl.all_to_all %handle, %input, %output, ncclInt32, %c0`
fn all(
    ccl: &Ccl,
    input: &Buffer,
    output: &Buffer,
    _: Chain,
    data_type: Attr<i32>,
) -> Result<Chain, Error> {
    add(
        ccl,
        OperationKind::All,
        (Some(input), Some(output)),
        *data_type,
    )
}

/// `%c1 = tfrt_gpu.ccl.execute %stream, %handle, %c0`
fn execute(
    stream: &Stream,
    ccl: &Ccl,
    _: Chain,
    execution: &ExecutionContext,
) -> Result<AsyncValue<Chain>, Error> {
    ccl.execute(stream, execution)
}
