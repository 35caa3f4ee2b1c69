//! `GatherBlockQuantized`: rows of a table of small integers, with a scale for each block of them.
//!
//! Rows, scales and zero points are gathered before they become floats. Bytes that hold several integers are unpacked then,
//! the first of them in the low bits.

use tfrt_ir::types::IntegerType;
use tfrt_ir::{Attribute, Type, ValueId};

use super::expansion::integer;
use super::{Expansion, Made, Refusal, node, wrong};

pub(super) fn gather(here: &mut Expansion<'_>) -> Made {
    let (data, places) = (here.needed(0, "data")?, here.needed(1, "indices")?);
    let (scales, zeros) = (here.needed(2, "scales")?, here.input(3));
    let (rank, n_places) = (
        here.known_rank(data, "data")?,
        here.known_rank(places, "indices")?,
    );
    let [rank, n_places] = [rank, n_places].map(|rank| i64::try_from(rank).unwrap_or(i64::MAX));
    let [along, blocked] = [("gather_axis", 0), ("quantize_axis", 1)].map(|(name, default)| {
        let axis = here.int(name, default);
        if axis < 0 { axis + rank } else { axis }
    });
    if ![along, blocked].iter().all(|axis| (0..rank).contains(axis)) {
        return Err(wrong(format!(
            "expected axes of {}, found {along} to gather along and {blocked} of blocks",
            here.shown(data)
        )));
    }
    let block = here.int("block_size", 128);
    if block < 16 || block & (block - 1) != 0 {
        return Err(wrong(format!(
            "attribute 'block_size' is expected to be a power of 2, at least 16, found {block}"
        )));
    }
    let bits = here.int("bits", 4);
    let is_packed = is_byte(here, data) && bits < 8;
    if ![2, 4, 8].contains(&bits) || (is_packed && (along != 0 || blocked != rank - 1)) {
        return Err(wrong(format!(
            "expected 2, 4 or 8 bits, in bytes along the last axis of rows, found {bits} along {blocked} of {}",
            here.shown(data)
        )));
    }
    fits(
        here,
        [data, scales],
        blocked,
        if is_packed { 8 / bits } else { 1 },
        block,
    )?;
    let axis = [("axis", integer(along))];
    let mut rows = here.add("Gather", &[data, places], &axis);
    let factors = here.add("Gather", &[scales, places], &axis);
    let mut offsets = zeros.map(|zeros| here.add("Gather", &[zeros, places], &axis));
    if is_packed {
        rows = unpacked(here, rows, bits);
        offsets = offsets.map(|offsets| {
            let (offsets, first) = (unpacked(here, offsets, bits), here.integers(&[0]));
            // A last byte may be filled up.
            let n = here.add("Shape", &[factors], &[("start", integer(-1))]);
            here.sliced(offsets, -1, first, n)
        });
    }
    if offsets.is_none() && is_byte(here, data) {
        let middle = here.constant(super::super::integers(Vec::new(), &[1 << (bits - 1)]));
        let extents = here.add("Shape", &[factors], &[]);
        let middle = here.add("CastLike", &[middle, data], &[]);
        offsets = Some(here.add("Expand", &[middle, extents], &[]));
    }
    let blocked = if along < blocked {
        blocked + n_places - 1
    } else {
        blocked
    };
    let operands: Vec<ValueId> = [rows, factors].into_iter().chain(offsets).collect();
    let attributes = [("axis", integer(blocked)), ("block_size", integer(block))];
    Ok(vec![Some(here.add(
        "DequantizeLinear",
        &operands,
        &attributes,
    ))])
}

fn is_byte(here: &Expansion<'_>, value: ValueId) -> bool {
    let element = node::element(here.module.value_type(value));
    matches!(element, Some(Type::Integer(IntegerType { width: 8, .. })))
}

/// Says what is wrong if there is not a scale for each block.
fn fits(
    here: &Expansion<'_>,
    [data, scales]: [ValueId; 2],
    axis: i64,
    per_byte: i64,
    block: i64,
) -> Result<(), Refusal> {
    let axis = usize::try_from(axis).map_err(|_| wrong("expected axes of 'data'"))?;
    let (Some(bytes), Some(found)) = (here.extent(data, axis), here.extent(scales, axis)) else {
        return Ok(());
    };
    let wanted = bytes.saturating_mul(per_byte).saturating_add(block - 1) / block;
    match wanted == found {
        true => Ok(()),
        false => Err(wrong(format!(
            "expected {wanted} blocks of {block} elements along axis {axis} of {}, found scales {}",
            here.shown(data),
            here.shown(scales)
        ))),
    }
}

/// Appends the integers that bytes hold along the last axis.
fn unpacked(here: &mut Expansion<'_>, bytes: ValueId, bits: i64) -> ValueId {
    let number = |here: &mut Expansion<'_>, number: i64| {
        let number = here.constant(super::super::integers(Vec::new(), &[number]));
        here.add("CastLike", &[number, bytes], &[])
    };
    let mask = number(here, (1 << bits) - 1);
    let parts: Vec<ValueId> = (0..8 / bits)
        .map(|index| {
            let shift = number(here, index * bits);
            let right = [("direction", Attribute::string("RIGHT"))];
            let part = here.add("BitShift", &[bytes, shift], &right);
            let part = here.add("BitwiseAnd", &[part, mask], &[]);
            here.unsqueezed(part, &[-1])
        })
        .collect();
    let parts = here.add("Concat", &parts, &[("axis", integer(-1))]);
    let outer = here.add("Shape", &[bytes], &[("end", integer(-1))]);
    let rest = here.integers(&[-1]);
    let extents = here.list(&[outer, rest]);
    here.add("Reshape", &[parts, extents], &[])
}
