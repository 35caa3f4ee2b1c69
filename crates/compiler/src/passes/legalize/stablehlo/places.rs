//! Places of slices in tensors whose extents are known only when a model runs: the row `stablehlo.places`.

use tfrt_ir::{Attribute, Type, ValueId};

use super::Lowering;
use super::build::{int, is_unsigned, list};
use super::gather::{Places, Rows};
use super::sizes::Size;

impl Lowering<'_> {
    /// Calculates the places of rows in a tensor `x` as `rows` does, when the model runs. `result` is the rank of the
    /// result.
    pub(super) fn rows_when_run(
        &mut self,
        x: ValueId,
        indices: ValueId,
        places: &Places,
        sizes: &[Size],
        result: usize,
        clamps: bool,
    ) -> Result<Rows, String> {
        let (dims, index_dims) = (self.dims(x), self.dims(indices));
        let rank = dims.len();
        let window = places.window(rank);
        let n_outer = index_dims.len() - usize::from(places.vector < index_dims.len());
        let fits = window.len() == places.offsets.len()
            && sizes.len() == rank
            && n_outer + window.len() == result
            && places.batch[0].len() == places.batch[1].len()
            && !places.batch[1].contains(&places.vector);
        if !fits {
            return Err("has dimensions of slices that do not fit the operand".to_owned());
        }
        let mut n_leading = rank;
        while n_leading > 0 {
            let axis = n_leading - 1;
            let at = window.iter().position(|own| *own == axis);
            let is_last = at.is_some_and(|at| places.offsets[at] == result - (rank - axis));
            let is_whole = dims[axis] >= 0 && sizes[axis] == Size::Known(dims[axis]);
            if !is_whole || places.starts.contains(&axis) || !is_last {
                break;
            }
            n_leading -= 1;
        }
        let shown = result - (rank - n_leading);
        let by = match is_unsigned(&self.element(indices)) {
            true => Type::UI64,
            false => Type::I64,
        };
        let numbers = self.cast(indices, &by);
        let numbers = self.cast(numbers, &Type::I64);
        let leading = self.sizes(x)[..n_leading].to_vec();
        let (extents, taken) = (
            self.sizes_list(&leading),
            self.sizes_list(&sizes[..n_leading]),
        );
        let with_offsets = || window.iter().zip(&places.offsets);
        let inner: Vec<(usize, usize)> = with_offsets()
            .filter(|(axis, _)| **axis < n_leading)
            .map(|(axis, offset)| (*axis, *offset))
            .collect();
        let axes = |all: &mut dyn Iterator<Item = usize>| -> Attribute {
            let all: Vec<i64> = all.filter_map(|axis| i64::try_from(axis).ok()).collect();
            list(&all)
        };
        let attributes = [
            ("rank", int(i64::try_from(shown).unwrap_or(0))),
            ("window", axes(&mut inner.iter().map(|(axis, _)| *axis))),
            (
                "offsets",
                axes(&mut inner.iter().map(|(_, offset)| *offset)),
            ),
            ("batch", axes(&mut places.batch[0].iter().copied())),
            ("index_batch", axes(&mut places.batch[1].iter().copied())),
            ("starts", axes(&mut places.starts.iter().copied())),
            ("vector", int(i64::try_from(places.vector).unwrap_or(0))),
            ("clamp", int(i64::from(clamps))),
        ];
        let mut outer = (0..index_dims.len()).filter(|axis| *axis != places.vector);
        let extents_of_places: Vec<i64> = (0..shown)
            .map(
                |axis| match places.offsets.iter().position(|own| *own == axis) {
                    Some(index) => sizes[window[index]].dim(),
                    None => outer.next().map_or(-1, |axis| index_dims[axis]),
                },
            )
            .collect();
        let operands = [extents, numbers, taken];
        let at = self.add(
            "stablehlo.places",
            &operands,
            &attributes,
            &extents_of_places,
            &Type::I64,
        );
        if clamps {
            return Ok(Rows {
                n_leading,
                at,
                within: None,
            });
        }
        let count = self.size_product(&leading)?;
        let outside = self.size_number(count);
        let within = self.compare("lt", at, outside);
        let one = self.integers_of(&[], &[1]);
        let last = self.binary("sub", outside, one);
        Ok(Rows {
            n_leading,
            at: self.binary("min", at, last),
            within: Some(within),
        })
    }
}
