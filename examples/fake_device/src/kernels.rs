//! Kernels of the device.

use tfrt::Error;
use tfrt::host::DType;
use tfrt::host::device::DeviceSlice;
use tfrt::tensor::op::{DeviceCall, OpCall, OpKernel, OpResults};

use crate::{KIND, lock, memory_of};

/// Kernels for `f32`: functions of the elements of operands of one shape, and products of two matrices.
pub const KERNELS: &[OpKernel] = &[
    kernel("add", |call| elements(call, |x| x[0] + x[1])),
    kernel("mul", |call| elements(call, |x| x[0] * x[1])),
    kernel("relu", |call| elements(call, |x| x[0].max(0.0))),
    kernel("dot", dot),
];

const fn kernel(op: &'static str, run: fn(&OpCall<'_>) -> Result<OpResults, Error>) -> OpKernel {
    OpKernel::new(op, KIND, run).types(&[DType::F32])
}

/// Enqueues the calculation of the only result from the operands' elements.
fn run(
    call: &DeviceCall<'_>,
    make: impl FnOnce(Vec<Vec<f32>>) -> Vec<f32> + Send + 'static,
) -> Result<OpResults, Error> {
    let (out, done) = call.output(0)?;
    let shared = memory_of(out.elements())?.shared.clone();
    let slices: Vec<DeviceSlice> = call
        .inputs()
        .map(|input| input.elements().clone())
        .collect();
    let to = out.elements().clone();
    shared.enqueue(&call.after(), done, move || {
        let inputs = slices.iter().map(floats).collect::<Result<_, _>>()?;
        let made: Vec<u8> = make(inputs)
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect();
        lock(&memory_of(&to)?.bytes)[to.range()].copy_from_slice(&made);
        Ok(())
    });
    Ok(call.gives([out]))
}

/// Runs a function of each element of the operands.
fn elements(call: &OpCall<'_>, function: fn(&[f32]) -> f32) -> Result<OpResults, Error> {
    let call = DeviceCall::new(call)?;
    let first = call.input(0)?.metadata();
    if call.inputs().any(|input| input.metadata() != first) {
        return Err(call.error(format_args!("expected operands of one type and shape")));
    }
    run(&call, move |lists| {
        let at = |index| lists.iter().map(|list| list[index]).collect::<Vec<f32>>();
        (0..lists[0].len())
            .map(|index| function(&at(index)))
            .collect()
    })
}

fn dot(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let call = DeviceCall::new(call)?;
    let of = |index| Ok::<_, Error>(call.input(index)?.metadata().shape.to_dims());
    let ([m, k], [_, n]) = (&of(0)?[..], &of(1)?[..]) else {
        return Err(call.error(format_args!("expected two matrices")));
    };
    let (m, k, n) = (*m, *k, *n);
    let is_set = |name: &&str| call.attrs.int(name) == Some(1);
    if ["transpose_a", "transpose_b"].iter().any(is_set) {
        return Err(call.error(format_args!("expected matrices that are not transposed")));
    }
    run(&call, move |lists| {
        let [a, b] = [&lists[0], &lists[1]];
        let term = |row, column, at| a[row * k + at] * b[at * n + column];
        let cell = |row, column| (0..k).map(|at| term(row, column, at)).sum();
        let all = (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
        all.map(|(row, column)| cell(row, column)).collect()
    })
}

fn floats(slice: &DeviceSlice) -> Result<Vec<f32>, Error> {
    let bytes = lock(&memory_of(slice)?.bytes);
    let each = bytes[slice.range()].as_chunks().0.iter();
    Ok(each.map(|four| f32::from_le_bytes(*four)).collect())
}
