//! Products of tensors along any dimensions.

use tfrt_ir::{OpId, Type, ValueId};

use super::attributes::check_axes;
use super::build::{is_bool, is_small_float, is_unsigned, width};
use super::sizes::dims_of;
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.dot", dot),
    ("stablehlo.dot_general", dot_general),
];

/// The dimensions of a product.
struct Axes {
    batch: [Vec<usize>; 2],
    contracted: [Vec<usize>; 2],
}

fn dot(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (x, y) = (l.bound(op, 0)?, l.bound(op, 1)?);
    let rank = match &x {
        Bound::Tensor(x) | Bound::Complex(x, _) => l.rank(*x),
        _ => 0,
    };
    if rank == 0 {
        return Err("takes a number, expected a vector or a matrix".to_owned());
    }
    let axes = Axes {
        batch: [Vec::new(), Vec::new()],
        contracted: [vec![rank - 1], vec![0]],
    };
    product_of(l, op, x, y, &axes)
}

fn dot_general(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (x, y) = (l.bound(op, 0)?, l.bound(op, 1)?);
    let names = [
        "lhs_batching_dimensions",
        "rhs_batching_dimensions",
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
    ];
    let lists = l.lists(op, "dot_dimension_numbers", names)?;
    let ranks = [&x, &y].map(|value| match value {
        Bound::Tensor(value) | Bound::Complex(value, _) => l.rank(*value),
        _ => 0,
    });
    let mut checked = Vec::new();
    for (index, list) in lists.iter().enumerate() {
        checked.push(check_axes(list, ranks[index % 2])?);
    }
    for side in 0..2 {
        let all: Vec<i64> = lists[side]
            .iter()
            .chain(&lists[side + 2])
            .copied()
            .collect();
        check_axes(&all, ranks[side])?;
    }
    let [a, b, c, d] = <[Vec<usize>; 4]>::try_from(checked).map_err(|_| "has no dimensions")?;
    let axes = Axes {
        batch: [a, b],
        contracted: [c, d],
    };
    product_of(l, op, x, y, &axes)
}

fn product_of(l: &mut Lowering<'_>, op: OpId, x: Bound, y: Bound, axes: &Axes) -> Lowered {
    let (_, element) = l.stated(op, 0)?;
    Ok(vec![match (x, y, element) {
        (Bound::Complex(a, b), Bound::Complex(c, d), Type::Complex(part)) => {
            let [ac, bd, ad, bc] =
                [(a, c), (b, d), (a, d), (b, c)].map(|(x, y)| l.contracted(x, y, axes, &part));
            let (real, imaginary) = (l.binary("sub", ac?, bd?), l.binary("add", ad?, bc?));
            Bound::Complex(real, imaginary)
        }
        (Bound::Tensor(x), Bound::Tensor(y), element) => {
            Bound::Tensor(l.contracted(x, y, axes, &element)?)
        }
        _ => return Err("multiplies tensors of different types".to_owned()),
    }])
}

/// Returns the type that a product is summed in, for elements of another.
fn sum_type(element: &Type) -> Type {
    match element {
        element if is_bool(element) => Type::I32,
        element if is_small_float(element) => Type::F32,
        Type::Float(_) => element.clone(),
        element if width(element) > 32 => element.clone(),
        element if is_unsigned(element) => Type::UI32,
        _ => Type::I32,
    }
}

impl Lowering<'_> {
    /// Multiplies tensors and sums along dimensions.
    fn contracted(
        &mut self,
        x: ValueId,
        y: ValueId,
        axes: &Axes,
        element: &Type,
    ) -> Result<ValueId, String> {
        let dims = [self.dims(x), self.dims(y)];
        let sides = [0, 1];
        let free = sides.map(|side| -> Vec<usize> {
            (0..dims[side].len())
                .filter(|axis| {
                    !axes.batch[side].contains(axis) && !axes.contracted[side].contains(axis)
                })
                .collect()
        });
        for (what, pair) in [("batch", &axes.batch), ("contracting", &axes.contracted)] {
            if pair[0].len() != pair[1].len() {
                return Err(format!(
                    "has {} and {} {what} dimensions",
                    pair[0].len(),
                    pair[1].len()
                ));
            }
            for (left, right) in pair[0].iter().zip(&pair[1]) {
                let (left, right) = (dims[0][*left], dims[1][*right]);
                if left != right && left >= 0 && right >= 0 {
                    return Err(format!(
                        "has {what} dimensions of {left} and {right} elements"
                    ));
                }
            }
        }
        let by = sum_type(element);
        let [x, y] = [x, y].map(|value| self.cast(value, &by));
        let of = |side: usize, axes: &[usize]| -> Vec<i64> {
            axes.iter().map(|axis| dims[side][*axis]).collect()
        };
        let batch = of(0, &axes.batch[0]);
        let (rows, columns) = (of(0, &free[0]), of(1, &free[1]));
        // Matrices stand behind the batch: rows by what is summed, and that by columns.
        let left: Vec<usize> = [&axes.batch[0][..], &free[0], &axes.contracted[0]].concat();
        let right: Vec<usize> = [&axes.batch[1][..], &axes.contracted[1], &free[1]].concat();
        let mut left = self.transposed(x, &left);
        let mut right = self.transposed(y, &right);
        let result: Vec<i64> = [&batch[..], &rows, &columns].concat();
        // One matrix for all rows of a tensor.
        let is_plain = axes.contracted[0].len() == 1 && columns.len() == 1;
        if is_plain && (rows.len() == 1 || (batch.is_empty() && !rows.is_empty())) {
            let value = self.add("dot", &[left, right], &[], &result, &by);
            return Ok(self.truth(value, element));
        }
        let (left_sizes, right_sizes) = (self.sizes(left), self.sizes(right));
        let (n_batch, n_rows) = (batch.len(), rows.len());
        let (row_sizes, summed) = left_sizes[n_batch..].split_at(n_rows);
        let column_sizes = &right_sizes[n_batch + axes.contracted[1].len()..];
        let n_columns = self.size_product(column_sizes)?;
        let summed = self.size_product(summed)?;
        // One matrix is for all rows, whose dimensions stay as they are; each matrix of a batch has its rows in one dimension.
        let kept = match batch.is_empty() && !rows.is_empty() {
            true => row_sizes.to_vec(),
            false => vec![self.size_product(row_sizes)?],
        };
        let batch = &left_sizes[..n_batch];
        let from = [batch, &kept, &[summed]].concat();
        let into = [batch, &kept, &[n_columns]].concat();
        let all = [batch, row_sizes, column_sizes].concat();
        let (is_whole, is_line) = (n_rows == kept.len(), columns.len() == 1);
        let is_single = axes.contracted[0].len() == 1;
        if !is_whole || !is_single {
            left = self.resized(left, &from);
        }
        if !is_line || !is_single {
            right = self.resized(right, &[batch, &[summed, n_columns]].concat());
        }
        let mut value = self.add("dot", &[left, right], &[], &dims_of(&into), &by);
        if !is_whole || !is_line {
            value = self.resized(value, &all);
        }
        Ok(self.truth(value, element))
    }

    fn truth(&mut self, value: ValueId, element: &Type) -> ValueId {
        self.cast(value, element)
    }
}
