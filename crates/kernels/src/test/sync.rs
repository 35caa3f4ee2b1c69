//! Kernels for functions marked synchronous, and kernels that run such functions.

use tfrt_host::kernel::{Function, KernelRegistry, RestAttributes};
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext, RequestContext};

use super::{errors, inspection};
use crate::operands;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_test.fail_s", errors::fail)
        .add("tfrt_test.error_s", errors::fail)
        .add("tfrt_test.sync_sum", inspection::sum)
        .add("tfrt_test.sync_sum2", inspection::sum)
        .add("tfrt_test.sync_sum_attributes", sum_attributes)
        .add("tfrt_test.invoke_sync_function.i32_i32.i32", invoke_for_one)
        .add(
            "tfrt_test.invoke_sync_function.i32_i32.i32_i32",
            invoke_for_two,
        )
        .add("tfrt_test.sync_function_runner.i32_i32.i32", run_for_one)
        .add(
            "tfrt_test.sync_function_runner.i32_i32.i32_i32",
            run_for_two,
        );
}

/// `%s = "tfrt_test.sync_sum_attributes"() {a = 1 : i32, b = 2 : i32}`
fn sum_attributes(attributes: RestAttributes<'_>) -> Result<i32, Error> {
    let mut sum = 0i32;
    for (index, attribute) in attributes.0.iter().enumerate() {
        let number = attribute.as_i32().ok_or_else(|| {
            Error::invalid_argument(format!("attribute {index} can't be read as i32"))
        })?;
        sum = sum.wrapping_add(number);
    }
    Ok(sum)
}

/// `%c = "tfrt_test.invoke_sync_function.i32_i32.i32"(%a, %b) {fn = @f}`
fn invoke_for_one(
    a: i32,
    b: i32,
    function: Function,
    context: &ExecutionContext,
) -> Result<i32, Error> {
    let [result] = run(a, b, &function, context)?;
    Ok(result)
}

/// `%c, %d = "tfrt_test.invoke_sync_function.i32_i32.i32_i32"(%a, %b) {fn = @f}`
fn invoke_for_two(
    a: i32,
    b: i32,
    function: Function,
    context: &ExecutionContext,
) -> Result<(i32, i32), Error> {
    let [first, second] = run(a, b, &function, context)?;
    Ok((first, second))
}

/// `%c = "tfrt_test.sync_function_runner.i32_i32.i32"(%a, %b) {fn = @f}`: in a request of its own.
fn run_for_one(
    a: i32,
    b: i32,
    function: Function,
    context: &ExecutionContext,
) -> Result<i32, Error> {
    let [result] = run(a, b, &function, &runner(context))?;
    Ok(result)
}

/// `%c, %d = "tfrt_test.sync_function_runner.i32_i32.i32_i32"(%a, %b) {fn = @f}`
fn run_for_two(
    a: i32,
    b: i32,
    function: Function,
    context: &ExecutionContext,
) -> Result<(i32, i32), Error> {
    let [first, second] = run(a, b, &function, &runner(context))?;
    Ok((first, second))
}

/// Makes a request that shares resources with that of `context`, and nothing else.
fn runner(context: &ExecutionContext) -> ExecutionContext {
    let mut builder = RequestContext::builder(context.host());
    if let Some(resources) = context.request().resources() {
        builder = builder.resources(resources.clone());
    }
    ExecutionContext::new(&builder.build())
}

fn run<const N: usize>(
    a: i32,
    b: i32,
    function: &Function,
    context: &ExecutionContext,
) -> Result<[i32; N], Error> {
    let arguments = [AnyAsyncValue::new(a), AnyAsyncValue::new(b)];
    let results = function.run_synchronously(context, &arguments)?;
    let n_results = results.len();
    operands::copies::<i32>(&results)?
        .try_into()
        .map_err(|_| Error::invalid_argument(format!("expected {N} results, found {n_results}")))
}
