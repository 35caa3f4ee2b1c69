//! Library rows of TensorFlow's hash tables: values by keys, as resources.

use tfrt_bef::DType;

use super::variables::RESOURCE;
use crate::def::{AttrDef, AttrKind, Cost, OpDef, Traits, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};

const TABLE: ValueDef = ValueDef::set("table_handle", RESOURCE);
const KEYS: ValueDef = ValueDef::any("keys");
const VALUES: ValueDef = ValueDef::any("values");
const TIN: AttrDef = AttrDef::new("Tin", AttrKind::Type);
const TOUT: AttrDef = AttrDef::new("Tout", AttrKind::Type);
const BOTH: Traits = Traits::READS.with(Traits::WRITES);

/// `table!("tf.LookupTableSizeV2", "A number.", [operands], [results], [attributes], traits, infer)` makes a row.
macro_rules! table {
    ($name:literal, $summary:literal, [$($input:expr),*], [$($result:expr),*], $traits:expr, $infer:ident) => {
        OpDef::new($name, $summary)
            .inputs(&[$($input),*])
            .results(&[$($result),*])
            .attrs(&[TIN, TOUT])
            .traits($traits)
            .infer(Infer::By($infer))
            .cost(Cost::PerElement(16))
    };
}

/// `new!("tf.HashTableV2", "A handle.", [attributes])` makes a row whose result is the handle of a table.
macro_rules! new {
    ($name:literal, $summary:literal, [$($attr:expr),*]) => {
        OpDef::new($name, $summary)
            .inputs(&[])
            .results(&[TABLE])
            .attrs(&[
                AttrDef::text("container", ""),
                AttrDef::text("shared_name", ""),
                AttrDef::int("use_node_name_sharing", 0),
                AttrDef::new("key_dtype", AttrKind::Type).required(),
                AttrDef::new("value_dtype", AttrKind::Type).required(),
                $($attr),*
            ])
            .impure()
            .infer(Infer::By(handle))
            .cost(Cost::PerElement(0))
    };
}

pub(crate) const OPS: &[OpDef] = &[
    new!(
        "tf.HashTableV2",
        "A handle of the table of this name that is filled once; without a name a new table, which dies with its last handle.",
        []
    ),
    table!(
        "tf.InitializeTableV2",
        "Fills a table that is filled once. A table that is filled stays as it is.",
        [TABLE, KEYS, VALUES],
        [],
        BOTH,
        nothing
    ),
    table!(
        "tf.LookupTableExportV2",
        "All keys and values of a table, in the order in which the keys were put in.",
        [TABLE],
        [KEYS.data_dependent(), VALUES.data_dependent()],
        Traits::READS,
        exported
    ),
    table!(
        "tf.LookupTableFindV2",
        "The value of each key in a table, or the default.",
        [TABLE, KEYS, ValueDef::any("default_value")],
        [VALUES.data_dependent()],
        Traits::READS,
        found
    ),
    table!(
        "tf.LookupTableImportV2",
        "Puts values in a table by their keys, in the place of all that are there.",
        [TABLE, KEYS, VALUES],
        [],
        BOTH,
        nothing
    ),
    table!(
        "tf.LookupTableInsertV2",
        "Puts values in a table by their keys.",
        [TABLE, KEYS, VALUES],
        [],
        BOTH,
        nothing
    ),
    table!(
        "tf.LookupTableRemoveV2",
        "Removes keys and their values from a table.",
        [TABLE, KEYS],
        [],
        BOTH,
        nothing
    ),
    table!(
        "tf.LookupTableSizeV2",
        "The number of keys in a table.",
        [TABLE],
        [ValueDef::set("size", &[DType::I64])],
        Traits::READS,
        size
    ),
    new!(
        "tf.MutableHashTableOfTensorsV2",
        "A handle of the table of this name whose values are tensors of one shape; without a name a new table, which dies with its last handle.",
        [AttrDef::new("value_shape", AttrKind::Ints)]
    ),
    new!(
        "tf.MutableHashTableV2",
        "A handle of the table of this name; without a name a new table, which dies with its last handle.",
        []
    ),
];

fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

fn handle(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::Resource), Some(Dims::new()));
    Ok(())
}

fn size(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, Some(DType::I64), Some(Dims::new()));
    Ok(())
}

fn found(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = call.input(2).dtype;
    call.give(0, dtype, None);
    Ok(())
}

fn exported(call: &mut InferCall<'_>) -> Result<(), InferError> {
    call.give(0, None, Some([Dim::Unknown].into_iter().collect()));
    Ok(())
}
