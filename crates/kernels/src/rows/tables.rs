//! Kernels of hash tables.

use std::sync::Arc;

use smallvec::smallvec;
use tfrt_host::Error;
use tfrt_tensor::op::{Outputs, TensorCall, TensorKernel};
use tfrt_tensor::resource::table::{HashTable, TableKind};
use tfrt_tensor::resource::{Resources, Slot};
use tfrt_tensor::{DenseHostTensor, TensorShape};

use super::lists::{kernel, stated_type};

pub(super) const KERNELS: &[TensorKernel] = &[
    kernel("tf.HashTableV2", |call| {
        new(call, false, TensorShape::SCALAR)
    }),
    kernel("tf.InitializeTableV2", |call| {
        let table = table(call)?;
        table
            .get::<HashTable>()?
            .fill(call.tensor(1)?, call.tensor(2)?)?;
        Ok(Outputs::new())
    }),
    kernel("tf.LookupTableExportV2", |call| {
        let allocator = call.execution.host().allocator();
        let all = table(call)?.get::<HashTable>()?.export(allocator)?;
        Ok(all
            .into_iter()
            .take(call.n_results)
            .map(Into::into)
            .collect())
    }),
    kernel("tf.LookupTableFindV2", |call| {
        let (table, allocator) = (table(call)?, call.execution.host().allocator());
        let found = table
            .get::<HashTable>()?
            .find(call.tensor(1)?, call.tensor(2)?, allocator)?;
        Ok(smallvec![found.into()])
    }),
    kernel("tf.LookupTableImportV2", |call| {
        let table = table(call)?;
        table
            .get::<HashTable>()?
            .import(call.tensor(1)?, call.tensor(2)?)?;
        Ok(Outputs::new())
    }),
    kernel("tf.LookupTableInsertV2", |call| {
        let table = table(call)?;
        table
            .get::<HashTable>()?
            .insert(call.tensor(1)?, call.tensor(2)?)?;
        Ok(Outputs::new())
    }),
    kernel("tf.LookupTableRemoveV2", |call| {
        table(call)?.get::<HashTable>()?.remove(call.tensor(1)?)?;
        Ok(Outputs::new())
    }),
    kernel("tf.LookupTableSizeV2", |call| {
        let n = table(call)?.get::<HashTable>()?.len();
        let n = i64::try_from(n).map_err(|_| call.error(format_args!("{n} keys are too many")))?;
        let allocator = call.execution.host().allocator();
        Ok(smallvec![DenseHostTensor::scalar(allocator, n)?.into()])
    }),
    kernel("tf.MutableHashTableOfTensorsV2", |call| {
        let shape = match call.attrs.ints("value_shape") {
            Some(extents) => call.named(TensorShape::from_i64(&extents))?,
            None => TensorShape::SCALAR,
        };
        new(call, true, shape)
    }),
    kernel("tf.MutableHashTableV2", |call| {
        new(call, true, TensorShape::SCALAR)
    }),
];

fn table(call: &TensorCall<'_>) -> Result<Arc<Slot>, Error> {
    Slot::counted(call.tensor(0)?)
}

fn new(call: &TensorCall<'_>, is_mutable: bool, shape: TensorShape) -> Result<Outputs, Error> {
    let kind = TableKind {
        keys: stated_type(call, "key_dtype")?,
        values: stated_type(call, "value_dtype")?,
        shape,
        is_mutable,
    };
    let made = HashTable::new(kind.clone())?;
    let (container, name) = (call.attrs.text("container"), call.attrs.text("shared_name"));
    let slot = match name {
        "" => Slot::anonymous(made),
        name => Resources::of(call.execution.host()).slot(container, name, || made),
    };
    let found = slot.get::<HashTable>()?.kind();
    if *found != kind {
        let name = slot.label();
        return Err(call.error(format_args!(
            "Conflicting key/value dtypes {}->{} with {}->{} for table {name}",
            kind.keys, kind.values, found.keys, found.values
        )));
    }
    Ok(smallvec![slot.handle().into()])
}
