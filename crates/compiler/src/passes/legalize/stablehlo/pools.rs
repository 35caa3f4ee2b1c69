//! Windows of images, as pools: the largest elements, and means.
//!
//! A mean is a sum of windows that is divided by how many elements they have: by one number, or by sums of ones, which leave
//! out what is padded. So a sum is put together of slices first; where a mean takes its place, nothing uses it any more.

use tfrt_ir::{Attribute, Type, ValueId};

use super::Lowering;
use super::build::{int, list};
use super::reduce::Kind;
use super::sizes::Size;
use super::stated_windows::Windows;

/// The number of dimensions of images and their windows, of which two are pooled.
const RANK: usize = 4;

/// A pool of an operand, whose windows have four dimensions: those that the operand has not come first, of one element.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    x: ValueId,
    windows: Windows,
    /// The extents of the operand, in four dimensions.
    dims: Vec<i64>,
    /// The dimensions that are pooled, in order.
    spatial: [usize; 2],
}

impl Lowering<'_> {
    /// Returns the pool that a reduction in windows is, if it is one: largest elements, or sums, of `f32` in at most two
    /// dimensions of four.
    pub(super) fn pool(
        &self,
        windows: &Windows,
        kind: Kind,
        x: ValueId,
        init: ValueId,
    ) -> Option<Pool> {
        let is_pooled = matches!(kind, Kind::Max | Kind::Sum)
            && self.element(x) == Type::F32
            && self
                .known_number(init)
                .is_some_and(|number| kind.is_neutral(number, &Type::F32));
        let own = self.dims(x);
        let n_more = RANK.checked_sub(own.len()).filter(|_| is_pooled)?;
        let dims = [&vec![1; n_more], &own[..]].concat();
        let windows = windows.behind(n_more);
        let mut spatial: Vec<usize> = (0..RANK).filter(|axis| windows.sizes[*axis] > 1).collect();
        let others_stay = (0..RANK).all(|axis| {
            spatial.contains(&axis)
                || (windows.strides[axis] == 1 && windows.low[axis] == 0 && windows.high[axis] == 0)
        });
        // Each window has an element of the operand's.
        let has_elements = spatial.iter().all(|&axis| {
            let (low, high, dilation) = (
                windows.low[axis],
                windows.high[axis],
                windows.dilations[axis],
            );
            let reach = (windows.sizes[axis] - 1) * dilation + 1;
            let is_dense = dilation == 1 || (low == 0 && high == 0);
            (0..reach).contains(&low)
                && (0..reach).contains(&high)
                && is_dense
                && dims[axis] + low + high >= reach
        });
        let is_plain = windows.interior.iter().all(|size| *size == 0)
            && matches!(spatial.len(), 1 | 2)
            && !dims.contains(&0);
        if !is_plain || !others_stay || !has_elements {
            return None;
        }
        // With one dimension that is pooled, another one that stays is beside it.
        if spatial.len() == 1 {
            let other = (1..RANK).find(|axis| !spatial.contains(axis))?;
            spatial.push(other);
            spatial.sort_unstable();
        }
        Some(Pool {
            x,
            windows,
            dims,
            spatial: spatial.try_into().ok()?,
        })
    }

    /// Appends a pool; images have the dimensions of windows last.
    pub(super) fn pooled(
        &mut self,
        pool: &Pool,
        kind: &str,
        counts_padding: bool,
    ) -> Result<ValueId, String> {
        let Pool {
            x,
            windows,
            spatial,
            ..
        } = pool;
        let mut order: Vec<usize> = (0..RANK).filter(|axis| !spatial.contains(axis)).collect();
        order.extend(spatial);
        let back: Vec<usize> = (0..RANK)
            .map(|axis| order.iter().position(|own| *own == axis).unwrap_or(axis))
            .collect();
        let own = self.sizes(*x);
        let n_more = RANK - own.len();
        let image = match n_more {
            0 => *x,
            n => self.resized(*x, &[&vec![Size::Known(1); n], &own[..]].concat()),
        };
        let image = self.transposed(image, &order);
        let image_dims = self.dims(image);
        let extents: Vec<i64> = image_dims
            .iter()
            .zip(&order)
            .map(|(size, &axis)| match size {
                -1 => -1,
                size => windows.count(axis, size + windows.low[axis] + windows.high[axis]),
            })
            .collect();
        let of = |all: &[i64]| -> Vec<i64> { spatial.iter().map(|axis| all[*axis]).collect() };
        let mut attributes = vec![
            ("kind", Attribute::string(kind)),
            ("kernel_shape", list(&of(&windows.sizes))),
            ("strides", list(&of(&windows.strides))),
            ("dilations", list(&of(&windows.dilations))),
            (
                "pads",
                list(&[of(&windows.low), of(&windows.high)].concat()),
            ),
        ];
        if counts_padding {
            attributes.push(("count_include_pad", int(1)));
        }
        let element = self.element(*x);
        let made = self.add("pool", &[image], &attributes, &extents, &element);
        let made = self.transposed(made, &back);
        if n_more == 0 {
            return Ok(made);
        }
        let sizes = self.sizes(made);
        Ok(self.resized(made, &sizes[n_more..]))
    }

    /// Returns the mean of windows, if a sum of windows is divided by the number of elements that they have.
    pub(super) fn mean_of_windows(
        &mut self,
        sum: ValueId,
        n: ValueId,
    ) -> Result<Option<ValueId>, String> {
        let Some(pool) = self.sums.get(&sum).cloned() else {
            return Ok(None);
        };
        let n = self.narrow.get(&n).copied().unwrap_or(n);
        let counts_padding = if let Some(number) = self.known_number(n) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number that is not equal is not taken"
            )]
            let n_elements = pool
                .windows
                .sizes
                .iter()
                .map(|size| *size as f64)
                .product::<f64>();
            #[expect(clippy::float_cmp, reason = "numbers of elements are exact")]
            let is_number = number == n_elements;
            is_number.then_some(true)
        } else {
            let ones = self.sums.get(&n);
            let are_ones = ones.is_some_and(|ones| {
                let has_extent = |axis: &usize| ones.dims[*axis] == pool.dims[*axis];
                self.known_number(ones.x) == Some(1.0)
                    && ones.windows == pool.windows
                    && pool.spatial.iter().all(has_extent)
            });
            are_ones.then_some(false)
        };
        match counts_padding {
            Some(counts_padding) => self.pooled(&pool, "mean", counts_padding).map(Some),
            None => Ok(None),
        }
    }
}
