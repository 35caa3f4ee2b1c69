//! `btf`: tensors from files in the binary tensor format.

use super::kernel;
use super::tfrt_dht::TENSOR;
use crate::dialect::{
    OpDef,
    ValueKind::{self, I32},
};

pub(super) fn definitions() -> Vec<OpDef> {
    let dense = DENSE.map(|name| read(name).summary("Reads a dense tensor from a file"));
    let sparse = SPARSE.map(|name| {
        read(name)
            .summary("Reads a sparse tensor from a file")
            .fails(
                "DataLoss",
                "the tensor is not correctly formatted: REASON",
                "coordinates and values are not as many, or a coordinate is out of the tensor",
            )
    });
    dense.into_iter().chain(sparse).collect()
}

fn read(name: &'static str) -> OpDef {
    kernel(name)
        .details(
            "The file is read by a blocking task, and of it only what the tensor needs. The name says \
             the type of the elements and the number of dimensions, which the file must have, too.",
        )
        .asynchronous()
        .operand("path", ValueKind::String)
        .operand("index", I32)
        .result("tensor", TENSOR)
        .fails("NotFound", "failed to open file PATH for reading", "the system refuses it; a note says why")
        .fails(
            "InvalidArgument",
            "invalid tensor index I to read tensor from path PATH which contains N tensors",
            "there are not as many; or the index is negative",
        )
        .fails(
            "DataLoss",
            "failed to read WHAT",
            "the file ends before that, which is `tensor num_tensors from path PATH`, `tensor offset \
             from PATH for tensor index I`, `tensor header from stream at offset O`, `tensor dims at \
             offset O` or `tensor data from stream at offset O`",
        )
        .fails(
            "InvalidArgument",
            "unexpected tensor dtype TYPE. Expected dtype is TYPE",
            "the elements are of another type",
        )
        .fails(
            "InvalidArgument",
            "unexpected tensor rank N. Expected rank is M",
            "the tensor has another number of dimensions",
        )
        .fails(
            "InvalidArgument",
            "unexpected tensor layout LAYOUT",
            "the tensor is sparse where a dense one is wanted, or the other way round",
        )
        .fails(
            "ResourceExhausted",
            "cannot allocate result tensor of TYPE SHAPE",
            "the host has no memory left for it",
        )
        .allocates()
        .outside()
}

const DENSE: [&str; 25] = [
    "btf.read_dense_tensor.f32.0",
    "btf.read_dense_tensor.f32.1",
    "btf.read_dense_tensor.f32.2",
    "btf.read_dense_tensor.f32.3",
    "btf.read_dense_tensor.f32.4",
    "btf.read_dense_tensor.i32.0",
    "btf.read_dense_tensor.i32.1",
    "btf.read_dense_tensor.i32.2",
    "btf.read_dense_tensor.i32.3",
    "btf.read_dense_tensor.i32.4",
    "btf.read_dense_tensor.i64.0",
    "btf.read_dense_tensor.i64.1",
    "btf.read_dense_tensor.i64.2",
    "btf.read_dense_tensor.i64.3",
    "btf.read_dense_tensor.i64.4",
    "btf.read_dense_tensor.i8.0",
    "btf.read_dense_tensor.i8.1",
    "btf.read_dense_tensor.i8.2",
    "btf.read_dense_tensor.i8.3",
    "btf.read_dense_tensor.i8.4",
    "btf.read_dense_tensor.ui8.0",
    "btf.read_dense_tensor.ui8.1",
    "btf.read_dense_tensor.ui8.2",
    "btf.read_dense_tensor.ui8.3",
    "btf.read_dense_tensor.ui8.4",
];

const SPARSE: [&str; 15] = [
    "btf.read_coo_tensor.f32.0",
    "btf.read_coo_tensor.f32.1",
    "btf.read_coo_tensor.f32.2",
    "btf.read_coo_tensor.f32.3",
    "btf.read_coo_tensor.f32.4",
    "btf.read_coo_tensor.i32.0",
    "btf.read_coo_tensor.i32.1",
    "btf.read_coo_tensor.i32.2",
    "btf.read_coo_tensor.i32.3",
    "btf.read_coo_tensor.i32.4",
    "btf.read_coo_tensor.i8.0",
    "btf.read_coo_tensor.i8.1",
    "btf.read_coo_tensor.i8.2",
    "btf.read_coo_tensor.i8.3",
    "btf.read_coo_tensor.i8.4",
];
