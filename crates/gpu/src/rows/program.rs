//! Programs of pointwise steps (`pointwise`), which passes make of rows that are placed on a GPU.

use tfrt_host::{DType, Error};
use tfrt_ops::KernelQuery;
use tfrt_tensor::op::{OpCall, OpResults};

use super::{Collapsed, begin, broadcast_steps, dims, elements, queue};
use crate::device::memory_of;
use crate::kernels::programs::{self, Input};
use crate::programs::has_type;

/// Returns whether programs give the type that is asked for. Steps are those of rows that have kernels here, each of which is
/// one of the functions of programs.
pub(super) fn takes(query: &KernelQuery<'_>) -> bool {
    query.attrs.dtype("type").is_some_and(has_type)
}

pub(super) fn run(call: &OpCall<'_>) -> Result<OpResults, Error> {
    let text = call.attrs.text("program").to_owned();
    let (call, out, done) = begin(call)?;
    let to = dims(&out);
    let own: Vec<DType> = call.inputs().map(|input| input.metadata().dtype).collect();
    let result = elements(&out);
    let typed = memory_of(&result)?
        .shared()
        .common
        .kernels
        .programs
        .typed(&text, &own)?;
    let (gives, stated) = (typed.gives(), out.metadata().dtype);
    if gives != stated {
        return Err(call.error(format_args!(
            "expected the type of the program's result, {gives}, found {stated}"
        )));
    }
    let inputs: Vec<_> = call
        .inputs()
        .map(|input| (elements(input), broadcast_steps(&dims(input), &to)))
        .collect();
    let work = move || {
        let (all, steps): (Vec<_>, Vec<_>) = inputs.into_iter().unzip();
        let collapsed = Collapsed::new(&to, &steps);
        let dims: Vec<usize> = collapsed.dims.iter().map(|(dim, _)| *dim).collect();
        let of = |(index, elements)| Input {
            elements,
            steps: collapsed.dims.iter().map(|(_, own)| own[index]).collect(),
        };
        let inputs: Vec<Input> = all.into_iter().enumerate().map(of).collect();
        programs::run(&typed, &text, &result, &inputs, &dims)
    };
    Ok(queue(&call, out, done, work))
}
