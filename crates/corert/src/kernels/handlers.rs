//! Kernels that make and find handlers.

use std::sync::Arc;

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Chain, DeviceId, Error, ExecutionContext};

use super::runtime;
use crate::handler::{LoggingOpHandler, NullOpHandler, OpHandlerRef};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("corert.create_null_op_handler", null)
        .add("corert.create_cpu_op_handler", cpu)
        .add(
            "corert.create_cpu_op_handler_with_ordinal",
            cpu_with_ordinal,
        )
        .add("corert.create_logging_op_handler", logging)
        .add("corert.register_op_handler", enter)
        .add("corert.get_op_handler", get)
        .add("corert_sync.register_op_handler", enter_synchronously)
        .add("corert_sync.get_op_handler", get_synchronously);
}

/// `%h = "corert.create_null_op_handler"()`
fn null() -> OpHandlerRef {
    OpHandlerRef(Arc::new(NullOpHandler::new(DeviceId::HOST)))
}

/// `%h = "corert.create_cpu_op_handler"(%fallback)`
fn cpu(fallback: &OpHandlerRef, execution: &ExecutionContext) -> OpHandlerRef {
    OpHandlerRef(runtime(execution).rows(DeviceId::HOST, Some(fallback.0.clone())))
}

/// `%h = "corert.create_cpu_op_handler_with_ordinal"(%fallback, %n)`: the host gets the device `CPU:n`.
fn cpu_with_ordinal(
    fallback: &OpHandlerRef,
    ordinal: i32,
    execution: &ExecutionContext,
) -> Result<OpHandlerRef, Error> {
    if ordinal < 0 {
        let message = format!("expected the number of a device, found {ordinal}");
        return Err(Error::invalid_argument(message));
    }
    let devices = execution.host().devices();
    devices.add_host(&format!("CPU:{ordinal}"))?;
    Ok(cpu(fallback, execution))
}

/// `%h = "corert.create_logging_op_handler"(%next) {sync_log_results = true}`
fn logging(
    next: &OpHandlerRef,
    sync_log_results: Attr<tfrt_host::kernel::AttributeView<'_>>,
    execution: &ExecutionContext,
) -> Result<OpHandlerRef, Error> {
    let view = *sync_log_results;
    let integer = || view.as_i32().map(i64::from).or(view.as_i64());
    let with_results = view
        .as_bool()
        .or_else(|| integer().map(|number| number != 0));
    let with_results = with_results.ok_or_else(|| {
        Error::invalid_argument("expected a truth value or an integer as sync_log_results")
    })?;
    let output = execution.host().output().clone();
    Ok(OpHandlerRef(Arc::new(LoggingOpHandler::new(
        next.0.clone(),
        with_results,
        output,
    ))))
}

/// `%c = corert.register_op_handler %h "cpu"`: the first one of a name keeps it.
fn enter(
    handler: &OpHandlerRef,
    op_handler_name: Attr<&str>,
    execution: &ExecutionContext,
) -> Chain {
    let _present = runtime(execution).register(*op_handler_name, handler.0.clone());
    Chain
}

/// `%h = corert.get_op_handler %c "cpu"`
fn get(
    _: Chain,
    op_handler_name: Attr<&str>,
    execution: &ExecutionContext,
) -> Result<OpHandlerRef, Error> {
    runtime(execution)
        .handler(*op_handler_name)
        .map(OpHandlerRef)
}

fn enter_synchronously(
    handler: &OpHandlerRef,
    op_handler_name: Attr<&str>,
    execution: &ExecutionContext,
) {
    let _chain = enter(handler, op_handler_name, execution);
}

fn get_synchronously(
    op_handler_name: Attr<&str>,
    execution: &ExecutionContext,
) -> Result<OpHandlerRef, Error> {
    get(Chain, op_handler_name, execution)
}
