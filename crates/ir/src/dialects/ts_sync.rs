//! `ts_sync`: the operations of `ts` for functions marked synchronous.

use super::tfrt_dht::SHAPE;
use super::ts::{PARTIAL, build, build_partial, to_partial};
use crate::dialect::{OpDef, Traits, ValueKind::I64};
use crate::dialects::OPERANDS;

pub(super) fn definitions() -> Vec<OpDef> {
    let all = [
        build(OpDef::new("ts_sync.build_shape")),
        build_partial(OpDef::new("ts_sync.build_partial_shape")),
        to_partial(
            OpDef::new("ts_sync.to_partial_shape"),
            "ts_sync.build_shape",
        ),
        OpDef::new("ts_sync.get_num_elements")
            .summary("The number of elements of a tensor of a shape")
            .operand("shape", SHAPE)
            .result("n", I64)
            .pure()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain
%shape = ts_sync.build_shape [2 : i64, 3 : i64]
%n = ts_sync.get_num_elements %shape
%done = tfrt.print.i64 %n, %chain",
            )
            .prints("int64 = 6"),
        OpDef::new("ts_sync.to_shape")
            .summary("The shape, if all of it is known")
            .details("It fails as `ts.to_shape` does.")
            .operand("partial", PARTIAL)
            .result("shape", SHAPE)
            .pure()
            .format(OPERANDS)
            .example(
                "%chain = tfrt.new.chain
%partial = ts_sync.build_partial_shape [2 : i64]
%shape = ts_sync.to_shape %partial
%done = ts.print_shape %shape, %chain",
            )
            .prints("shape = [2]"),
    ];
    all.into_iter()
        .map(|definition| definition.traits(&[Traits::SYNC]))
        .collect()
}
