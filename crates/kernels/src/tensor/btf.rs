//! `btf`: tensors from files in the binary tensor format.

#![allow(
    clippy::ptr_arg,
    reason = "an operand is borrowed as the type that stands in the register"
)]

use std::fs::{self, File};
use std::sync::Arc;

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, Error, ExecutionContext, HostAllocator};
use tfrt_tensor::btf::BtfReader;
use tfrt_tensor::{Element, Tensor};

pub(super) fn register(registry: &mut KernelRegistry) {
    type Read = fn(&String, i32, &ExecutionContext) -> AsyncValue<Tensor>;
    add_all! { registry, Read,
        "btf.read_dense_tensor.f32.0" => read_dense::<f32, 0>;
        "btf.read_dense_tensor.f32.1" => read_dense::<f32, 1>;
        "btf.read_dense_tensor.f32.2" => read_dense::<f32, 2>;
        "btf.read_dense_tensor.f32.3" => read_dense::<f32, 3>;
        "btf.read_dense_tensor.f32.4" => read_dense::<f32, 4>;
        "btf.read_dense_tensor.i32.0" => read_dense::<i32, 0>;
        "btf.read_dense_tensor.i32.1" => read_dense::<i32, 1>;
        "btf.read_dense_tensor.i32.2" => read_dense::<i32, 2>;
        "btf.read_dense_tensor.i32.3" => read_dense::<i32, 3>;
        "btf.read_dense_tensor.i32.4" => read_dense::<i32, 4>;
        "btf.read_dense_tensor.i64.0" => read_dense::<i64, 0>;
        "btf.read_dense_tensor.i64.1" => read_dense::<i64, 1>;
        "btf.read_dense_tensor.i64.2" => read_dense::<i64, 2>;
        "btf.read_dense_tensor.i64.3" => read_dense::<i64, 3>;
        "btf.read_dense_tensor.i64.4" => read_dense::<i64, 4>;
        "btf.read_dense_tensor.i8.0" => read_dense::<i8, 0>;
        "btf.read_dense_tensor.i8.1" => read_dense::<i8, 1>;
        "btf.read_dense_tensor.i8.2" => read_dense::<i8, 2>;
        "btf.read_dense_tensor.i8.3" => read_dense::<i8, 3>;
        "btf.read_dense_tensor.i8.4" => read_dense::<i8, 4>;
        "btf.read_dense_tensor.ui8.0" => read_dense::<u8, 0>;
        "btf.read_dense_tensor.ui8.1" => read_dense::<u8, 1>;
        "btf.read_dense_tensor.ui8.2" => read_dense::<u8, 2>;
        "btf.read_dense_tensor.ui8.3" => read_dense::<u8, 3>;
        "btf.read_dense_tensor.ui8.4" => read_dense::<u8, 4>;
        "btf.read_coo_tensor.f32.0" => read_coo::<f32, 0>;
        "btf.read_coo_tensor.f32.1" => read_coo::<f32, 1>;
        "btf.read_coo_tensor.f32.2" => read_coo::<f32, 2>;
        "btf.read_coo_tensor.f32.3" => read_coo::<f32, 3>;
        "btf.read_coo_tensor.f32.4" => read_coo::<f32, 4>;
        "btf.read_coo_tensor.i32.0" => read_coo::<i32, 0>;
        "btf.read_coo_tensor.i32.1" => read_coo::<i32, 1>;
        "btf.read_coo_tensor.i32.2" => read_coo::<i32, 2>;
        "btf.read_coo_tensor.i32.3" => read_coo::<i32, 3>;
        "btf.read_coo_tensor.i32.4" => read_coo::<i32, 4>;
        "btf.read_coo_tensor.i8.0" => read_coo::<i8, 0>;
        "btf.read_coo_tensor.i8.1" => read_coo::<i8, 1>;
        "btf.read_coo_tensor.i8.2" => read_coo::<i8, 2>;
        "btf.read_coo_tensor.i8.3" => read_coo::<i8, 3>;
        "btf.read_coo_tensor.i8.4" => read_coo::<i8, 4>;
    }
}

/// `%t = "btf.read_dense_tensor.<t>.<r>"(%path, %index)`
fn read_dense<T: Element, const RANK: usize>(
    path: &String,
    index: i32,
    context: &ExecutionContext,
) -> AsyncValue<Tensor> {
    read(path, index, context, |reader, index, allocator| {
        Ok(reader.read_dense(index, T::DTYPE, RANK, allocator)?.into())
    })
}

/// `%t = "btf.read_coo_tensor.<t>.<r>"(%path, %index)`
fn read_coo<T: Element, const RANK: usize>(
    path: &String,
    index: i32,
    context: &ExecutionContext,
) -> AsyncValue<Tensor> {
    read(path, index, context, |reader, index, allocator| {
        Ok(reader.read_coo(index, T::DTYPE, RANK, allocator)?.into())
    })
}

/// A function that reads a tensor of an open file.
type Reading = fn(&mut BtfReader<File>, u64, &Arc<dyn HostAllocator>) -> Result<Tensor, Error>;

/// Opens a file in a blocking task and reads of it.
fn read(
    path: &str,
    index: i32,
    context: &ExecutionContext,
    reading: Reading,
) -> AsyncValue<Tensor> {
    let path = path.to_owned();
    let allocator = context.host().allocator().clone();
    context.enqueue_blocking(move || {
        let file = open(&path)?;
        let mut reader = BtfReader::new(path, file)?;
        match u64::try_from(index) {
            Ok(index) => reading(&mut reader, index, &allocator),
            Err(_) => Err(reader.no_tensor(index)),
        }
    })
}

fn open(path: &str) -> Result<File, Error> {
    let failed = |reason: String| {
        Error::not_found(format!("failed to open file {path} for reading")).with_note(reason)
    };
    let metadata = fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    if !metadata.is_file() {
        // A pipe might never be opened.
        return Err(failed("it is not a regular file".to_owned()));
    }
    File::open(path).map_err(|error| failed(error.to_string()))
}
