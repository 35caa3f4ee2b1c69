//! Kernels that make dense tensors of ragged rows.

use smallvec::{SmallVec, smallvec};
use tfrt_host::Error;
use tfrt_tensor::Dims;
use tfrt_tensor::op::{Formats, Outputs, TensorCall, TensorKernel};

use super::rearrange::{ElementSource, copied_from, list_of, product};
use super::tensors::{extents, integers};

pub(super) const KERNELS: &[TensorKernel] =
    &[TensorKernel::new("tf.RaggedTensorToTensor", to_tensor).formats(Formats::STRING)];

/// The lengths of the rows of one dimension.
type Lengths = Vec<usize>;

/// Returns the number of rows, and the lengths of rows of each ragged dimension.
fn partitions(call: &TensorCall<'_>) -> Result<(usize, Vec<Lengths>), Error> {
    let types = match call.attrs.get("row_partition_types") {
        Some(tfrt_ops::AttrValue::Strings(list)) => list,
        _ => Vec::new(),
    };
    let found = call.n_inputs().saturating_sub(3);
    if types.len() != found {
        let n = types.len();
        return Err(call.error(format_args!(
            "expected {n} tensors of partitions, found {found}"
        )));
    }
    let (mut first, mut all) = (None, Vec::<Lengths>::new());
    for (index, kind) in types.iter().enumerate() {
        let list = integers(call, 3 + index)?;
        let sizes = list.iter().map(|size| usize::try_from(*size).ok());
        let wrong = || {
            let kind = String::from_utf8_lossy(kind);
            call.error(format_args!(
                "operand {}: it is no {}: {:?}",
                3 + index,
                kind.escape_debug(),
                &list[..list.len().min(16)]
            ))
        };
        let sizes: Vec<usize> = sizes.collect::<Option<_>>().ok_or_else(wrong)?;
        // Of a dimension there are as many rows as values of the one before.
        let n_rows = match all.last() {
            Some(lengths) => Some(lengths.iter().sum()),
            None => first,
        };
        match &kind[..] {
            b"FIRST_DIM_SIZE" if index == 0 && sizes.len() == 1 => first = Some(sizes[0]),
            b"ROW_SPLITS" if sizes.first() == Some(&0) && sizes.is_sorted() => {
                let lengths: Lengths = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
                if n_rows.is_some_and(|n| n != lengths.len()) {
                    return Err(wrong());
                }
                first.get_or_insert(lengths.len());
                all.push(lengths);
            }
            b"VALUE_ROWIDS" if sizes.is_sorted() => {
                let n_rows = n_rows.ok_or_else(wrong)?;
                if sizes.last().is_some_and(|last| *last >= n_rows) {
                    return Err(wrong());
                }
                let mut lengths = list_of(call, n_rows)?;
                lengths.resize(n_rows, 0);
                sizes.iter().for_each(|row| lengths[*row] += 1);
                all.push(lengths);
            }
            _ => return Err(wrong()),
        }
    }
    match (first, all.is_empty()) {
        (Some(first), false) => Ok((first, all)),
        _ => Err(call.error(format_args!(
            "expected a ragged dimension or more, found none"
        ))),
    }
}

fn to_tensor(call: &mut TensorCall<'_>) -> Result<Outputs, Error> {
    let (values, default) = (call.tensor(1)?, call.tensor(2)?);
    let (n_first, all) = partitions(call)?;
    let own = extents(values);
    let n_values: usize = all.last().map_or(0, |lengths| lengths.iter().sum());
    if own.first() != Some(&n_values) {
        return Err(call.error(format_args!("expected {n_values} values, found {own:?}")));
    }
    let n_ragged = all.len() + 1;
    // -1 is as many as it takes.
    let stated = match call.dense(0)?.shape().rank() {
        0 => SmallVec::new(),
        _ => integers(call, 0)?,
    };
    let wanted = n_ragged + own.len() - 1;
    if !stated.is_empty() && stated.len() != wanted {
        let found = stated.len();
        return Err(call.error(format_args!(
            "expected {wanted} extents in a shape, found {found}"
        )));
    }
    let longest = all
        .iter()
        .map(|lengths| lengths.iter().max().copied().unwrap_or(0));
    let natural = [n_first]
        .into_iter()
        .chain(longest)
        .chain(own[1..].iter().copied());
    let mut result = Dims::new();
    for (index, natural) in natural.enumerate() {
        let extent = match stated.get(index) {
            None | Some(-1) => natural,
            Some(extent) => usize::try_from(*extent).map_err(|_| {
                call.error(format_args!(
                    "expected extents of 0 or more or -1, found {extent}"
                ))
            })?,
        };
        if index >= n_ragged && extent != natural {
            return Err(call.error(format_args!(
                "expected values of extents {own:?} to end as the shape, found {:?}",
                &stated[..]
            )));
        }
        result.push(extent);
    }
    // Where each value goes among the rows of the result, if it is not cut off.
    let mut places: Vec<Option<usize>> = list_of(call, n_first)?;
    places.extend((0..n_first).map(|row| Some(row).filter(|row| *row < result[0])));
    for (lengths, extent) in all.iter().zip(&result[1..]) {
        let rows = lengths.iter().zip(&places);
        let next = rows.flat_map(|(length, place)| {
            (0..*length).map(move |at| match place {
                Some(place) if at < *extent => place.checked_mul(*extent)?.checked_add(at),
                _ => None,
            })
        });
        let mut all = list_of(call, lengths.iter().sum())?;
        all.extend(next);
        places = all;
    }
    let n_rows = product(&result[..n_ragged]);
    tfrt_tensor::TensorShape::new(&result)?;
    let mut sources = list_of(call, n_rows)?;
    sources.resize(n_rows, None);
    for (value, place) in places.iter().enumerate() {
        if let Some(place) = place {
            sources[*place] = Some(value);
        }
    }
    let (inner, filler) = (&own[1..], extents(default));
    let fits = |(own, wanted): (&usize, &usize)| *own == 1 || own == wanted;
    let is_broadcast =
        filler.len() <= inner.len() && filler.iter().rev().zip(inner.iter().rev()).all(fits);
    if !is_broadcast {
        return Err(call.error(format_args!(
            "expected a default that is broadcast to {inner:?}, found {filler:?}"
        )));
    }
    let found = copied_from(call, [values, default], &result, |at| {
        let (row, cell) = at.split_at(n_ragged);
        let row = row
            .iter()
            .zip(&result)
            .fold(0, |row, (at, extent)| row * extent + at);
        let offset = |extents: &[usize], cell: &[usize]| {
            let all = cell.iter().zip(extents);
            all.fold(0, |offset, (at, extent)| {
                offset * extent + at.min(&(extent - 1))
            })
        };
        match sources[row] {
            Some(value) => {
                let n_each = product(inner);
                ElementSource::First(value * n_each + offset(inner, cell))
            }
            None => ElementSource::Second(offset(&filler, &cell[cell.len() - filler.len()..])),
        }
    })?;
    Ok(smallvec![found])
}
