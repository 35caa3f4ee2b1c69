//! Convolutions of any dimensions, and normalisation of batches.

use tfrt_ir::{OpId, Type, ValueId};

use super::build::{int, is_float, is_unsigned, list, width};
use super::shapes::{checked, known_dims};
use super::sizes::{Size, known_sizes};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.batch_norm_grad", batch_norm_grad),
    ("stablehlo.batch_norm_inference", batch_norm_inference),
    ("stablehlo.batch_norm_training", batch_norm_training),
    ("stablehlo.convolution", convolution),
    ("stablehlo.dynamic_conv", convolution),
];

/// The places of dimensions in a tensor: two with a name, and the spatial ones in order.
struct Layout {
    first: usize,
    second: usize,
    spatial: Vec<usize>,
}

impl Layout {
    /// Reads a list such as `b, 0, 1, f`, whose named dimensions are `names`.
    fn read(text: &str, names: [&str; 2]) -> Option<Layout> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let place = |word: &str| words.iter().position(|own| *own == word);
        let spatial = (0..words.len().checked_sub(2)?).map(|axis| place(&axis.to_string()));
        Some(Layout {
            first: place(names[0])?,
            second: place(names[1])?,
            spatial: spatial.collect::<Option<_>>()?,
        })
    }

    /// Returns the order in which the named dimensions come first.
    fn order(&self) -> Vec<usize> {
        [self.first, self.second]
            .into_iter()
            .chain(self.spatial.iter().copied())
            .collect()
    }

    fn back(&self) -> Vec<usize> {
        let order = self.order();
        let place = |axis| order.iter().position(|own| *own == axis).unwrap_or(axis);
        (0..order.len()).map(place).collect()
    }
}

/// Reads `[b, 0, f]x[0, i, o]->[b, 0, f]`, or the same in words.
fn layouts(text: &str) -> Option<[Layout; 3]> {
    let inner = text.strip_prefix("#stablehlo.conv<")?.strip_suffix('>')?;
    if let Some((operands, result)) = inner.split_once("->") {
        let plain = |text: &str| -> Option<String> {
            let text = text.trim().strip_prefix('[')?.strip_suffix(']')?;
            Some(text.to_owned())
        };
        let (input, filter) = operands
            .split_once("]x[")
            .or_else(|| operands.split_once("] x ["))?;
        let input = plain(&format!("{input}]"))?;
        let filter = plain(&format!("[{filter}"))?;
        return Some([
            Layout::read(&input, ["b", "f"])?,
            Layout::read(&filter, ["o", "i"])?,
            Layout::read(&plain(result)?, ["b", "f"])?,
        ]);
    }
    // `#stablehlo.conv<raw input_batch_dimension = 0, ..>`.
    let number = |name: &str| -> Option<usize> {
        let after = inner
            .split_once(name)?
            .1
            .trim_start()
            .strip_prefix('=')?
            .trim_start();
        let end = after
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(after.len());
        after[..end].parse().ok()
    };
    let numbers = |name: &str| -> Option<Vec<usize>> {
        let after = inner
            .split_once(name)?
            .1
            .trim_start()
            .strip_prefix('=')?
            .trim_start();
        let (inner, _) = after.strip_prefix('[')?.split_once(']')?;
        let all = inner
            .split(',')
            .map(str::trim)
            .filter(|number| !number.is_empty());
        all.map(|number| number.parse().ok()).collect()
    };
    let layout = |first: &str, second: &str, spatial: &str| {
        Some(Layout {
            first: number(first)?,
            second: number(second)?,
            spatial: numbers(spatial)?,
        })
    };
    Some([
        layout(
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
        )?,
        layout(
            "kernel_output_feature_dimension",
            "kernel_input_feature_dimension",
            "kernel_spatial_dimensions",
        )?,
        layout(
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
        )?,
    ])
}

fn convolution(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let text = l.opaque(op, "dimension_numbers")?;
    let found = layouts(text);
    let all = found.ok_or_else(|| {
        format!("attribute 'dimension_numbers': expected dimensions, found {text}")
    })?;
    let (_, element) = l.stated(op, 0)?;
    let operands = [l.bound(op, 0)?, l.bound(op, 1)?];
    let n_spatial = all[0].spatial.len();
    for layout in &all {
        let mut order = layout.order();
        order.sort_unstable();
        if order != (0..n_spatial + 2).collect::<Vec<_>>() {
            return Err(
                "attribute 'dimension_numbers': names a dimension twice, or one that is not there"
                    .to_owned(),
            );
        }
    }
    let strides = l.ints_or(op, "window_strides", n_spatial, 1)?;
    let pads = match l.module.op(op).operands().len() {
        3 => l.sizes_of(op, 2, 2 * n_spatial)?,
        _ => known_sizes(&l.ints_or(op, "padding", 2 * n_spatial, 0)?),
    };
    let spread = l.ints_or(op, "lhs_dilation", n_spatial, 1)?;
    let dilations = l.ints_or(op, "rhs_dilation", n_spatial, 1)?;
    let reversal = l.ints_or(op, "window_reversal", n_spatial, 0)?;
    let groups = l.int(op, "feature_group_count").unwrap_or(1);
    let batch_groups = l.int(op, "batch_group_count").unwrap_or(1);
    if groups < 1 || batch_groups < 1 || (groups > 1 && batch_groups > 1) {
        return Err(format!(
            "has {groups} groups of features and {batch_groups} of the batch"
        ));
    }
    if pads.len() != 2 * n_spatial
        || strides
            .iter()
            .chain(&spread)
            .chain(&dilations)
            .any(|size| *size < 1)
    {
        return Err("has strides or dilations below 1, or too few pads".to_owned());
    }
    let conv = Convolution {
        layouts: all,
        strides,
        low: pads.iter().copied().step_by(2).collect(),
        high: pads.iter().copied().skip(1).step_by(2).collect(),
        spread,
        dilations,
        reversal,
        groups,
        batch_groups,
    };
    Ok(vec![match operands {
        [Bound::Tensor(x), Bound::Tensor(filter)] => {
            Bound::Tensor(l.convolved(&conv, x, filter, &element)?)
        }
        [Bound::Complex(a, b), Bound::Complex(c, d)] => {
            let Type::Complex(part) = element else {
                return Err("gives real numbers of complex ones".to_owned());
            };
            let mut all = Vec::with_capacity(4);
            for (x, filter) in [(a, c), (b, d), (a, d), (b, c)] {
                all.push(l.convolved(&conv, x, filter, &part)?);
            }
            Bound::Complex(
                l.binary("sub", all[0], all[1]),
                l.binary("add", all[2], all[3]),
            )
        }
        _ => return Err("takes operands of different types".to_owned()),
    }])
}

struct Convolution {
    layouts: [Layout; 3],
    strides: Vec<i64>,
    low: Vec<Size>,
    high: Vec<Size>,
    /// How far elements of the operand are apart.
    spread: Vec<i64>,
    dilations: Vec<i64>,
    reversal: Vec<i64>,
    groups: i64,
    batch_groups: i64,
}

impl Lowering<'_> {
    fn convolved(
        &mut self,
        conv: &Convolution,
        x: ValueId,
        filter: ValueId,
        element: &Type,
    ) -> Result<ValueId, String> {
        let n_spatial = conv.strides.len();
        if self.rank(x) != n_spatial + 2 || self.rank(filter) != n_spatial + 2 {
            return Err(format!("expected tensors of rank {}", n_spatial + 2));
        }
        let by = match element {
            element if is_float(element) && width(element) >= 16 => element.clone(),
            _ => Type::F64,
        };
        let [x, filter] = [x, filter].map(|value| self.cast(value, &by));
        let mut x = self.transposed(x, &conv.layouts[0].order());
        let mut filter = self.transposed(filter, &conv.layouts[1].order());
        let reversed: Vec<i64> = (0..n_spatial)
            .filter(|axis| conv.reversal[*axis] != 0)
            .filter_map(|axis| i64::try_from(axis + 2).ok())
            .collect();
        filter = self.reversed(filter, &reversed);
        let mut groups = conv.groups;
        if conv.batch_groups > 1 {
            // Each part of the batch has filters of its own: it becomes a group of features.
            let sizes = self.sizes(x);
            let n = conv.batch_groups;
            if let Size::Known(batch) = sizes[0]
                && batch % n != 0
            {
                return Err(format!("divides a batch of {batch} into {n} groups"));
            }
            let part = self.size_quotient(sizes[0], Size::Known(n))?;
            let features = self.size_product(&[Size::Known(n), sizes[1]])?;
            let apart = [&[Size::Known(n), part], &sizes[1..]].concat();
            x = self.resized(x, &apart);
            let order: Vec<usize> = [1, 0].into_iter().chain(2..apart.len()).collect();
            x = self.transposed(x, &order);
            let together = [&[part, features], &sizes[2..]].concat();
            x = self.resized(x, &together);
            groups = n;
        }
        let dims = self.dims(x);
        let filter_dims = self.dims(filter);
        if groups > 0
            && dims[1] >= 0
            && !filter_dims[..2].contains(&-1)
            && (dims[1] != filter_dims[1] * groups || filter_dims[0] % groups != 0)
        {
            return Err(format!(
                "has {} features, and filters of {} in {groups} groups",
                dims[1], filter_dims[1]
            ));
        }
        // What a kernel does not pad is padded before.
        let pads = [&conv.low[..], &conv.high].concat();
        let mut pads: Vec<i64> = pads.into_iter().map(Size::dim).collect();
        let is_plain =
            conv.spread.iter().all(|size| *size == 1) && pads.iter().all(|size| *size >= 0);
        if !is_plain || n_spatial == 0 {
            let with = |sizes: &[Size]| [&[Size::Known(0); 2], sizes].concat();
            let between: Vec<Size> = conv
                .spread
                .iter()
                .map(|size| Size::Known(size - 1))
                .collect();
            let zero = self.number(&by, 0.0);
            let lists = [with(&conv.low), with(&conv.high), with(&between)];
            x = self.padded_by(x, zero, [&lists[0], &lists[1], &lists[2]])?;
            pads = vec![0; 2 * n_spatial];
        }
        let dims = self.dims(x);
        let mut extents = vec![dims[0], filter_dims[0]];
        for axis in 0..n_spatial {
            let reach = (filter_dims[axis + 2] - 1) * conv.dilations[axis] + 1;
            let size = checked(dims[axis + 2].max(0), |size| {
                size.checked_add(pads[axis])?
                    .checked_add(pads[axis + n_spatial])
            })?;
            extents.push(match (dims[axis + 2], filter_dims[axis + 2]) {
                (-1, _) | (_, -1) => -1,
                _ if size < reach => 0,
                _ => (size - reach) / conv.strides[axis] + 1,
            });
        }
        let is_empty = extents.contains(&0) || filter_dims.contains(&0) || dims.contains(&0);
        let made = if is_empty {
            let zero = self.number(&by, 0.0);
            self.broadcast_to(zero, &extents)
        } else if n_spatial == 0 {
            known_dims(&filter_dims)?;
            self.of_points(x, filter, groups, &by)
        } else {
            let mut attributes = vec![
                ("strides", list(&conv.strides)),
                ("dilations", list(&conv.dilations)),
                ("pads", list(&pads)),
                ("groups", int(groups)),
            ];
            if known_dims(&filter_dims[2..]).is_ok() {
                attributes.push(("kernel_shape", list(&filter_dims[2..])));
            }
            self.add("conv", &[x, filter], &attributes, &extents, &by)
        };
        let made = self.transposed(made, &conv.layouts[2].back());
        if by == *element {
            return Ok(made);
        }
        // Sums of integers are exact, and wrap around.
        let whole = if is_unsigned(element) {
            Type::UI64
        } else {
            Type::I64
        };
        let made = match is_float(element) {
            true => made,
            false => self.cast(made, &whole),
        };
        Ok(self.cast(made, element))
    }

    /// A convolution without spatial dimensions: products of features.
    fn of_points(&mut self, x: ValueId, filter: ValueId, groups: i64, by: &Type) -> ValueId {
        let (dims, filter_dims) = (self.dims(x), self.dims(filter));
        let (n, per_group, outputs) = (dims[0], filter_dims[1], filter_dims[0] / groups);
        let x = self.reshaped(x, &[n, groups, per_group]);
        let x = self.transposed(x, &[1, 0, 2]);
        let filter = self.reshaped(filter, &[groups, outputs, per_group]);
        let filter = self.transposed(filter, &[0, 2, 1]);
        let made = self.add("dot", &[x, filter], &[], &[groups, n, outputs], by);
        let made = self.transposed(made, &[1, 0, 2]);
        self.reshaped(made, &[n, groups * outputs])
    }

    /// Returns the attributes of an operation on batches: the axis of features, and epsilon.
    fn batch_attributes(&self, op: OpId, rank: usize) -> Result<(usize, f64), String> {
        let axis = self.int(op, "feature_index")?;
        let axis = super::attributes::check_axes(&[axis], rank)?[0];
        match self.attribute(op, "epsilon") {
            Some(tfrt_ir::Attribute::Float(epsilon)) => Ok((axis, epsilon.value())),
            _ => Err("requires attribute 'epsilon', a float".to_owned()),
        }
    }

    fn mean_of(&mut self, x: ValueId, axis: usize) -> Result<ValueId, String> {
        let n = self.n_per_feature(x, axis)?;
        let axes: Vec<usize> = (0..self.rank(x)).filter(|own| *own != axis).collect();
        let sum = self
            .reduced(super::reduce::Kind::Sum, x, &axes)
            .ok_or("sums truth values")?;
        Ok(self.binary("div", sum, n))
    }

    /// Returns the number of elements that each feature has, as a number of the tensor's type.
    fn n_per_feature(&mut self, x: ValueId, axis: usize) -> Result<ValueId, String> {
        let mut sizes = self.sizes(x);
        sizes.remove(axis);
        let n = self.size_product(&sizes)?;
        let (n, element) = (self.size_number(n), self.element(x));
        Ok(self.cast(n, &element))
    }

    /// Spreads a value of each feature over a tensor like another one.
    fn per_feature(
        &mut self,
        value: ValueId,
        like: ValueId,
        axis: usize,
    ) -> Result<ValueId, String> {
        let sizes = self.sizes(like);
        self.spread_over(value, &[axis], &sizes)
    }
}

fn batch_norm_inference(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let all = l.tensors(op)?;
    let [x, scale, offset, mean, variance] = all[..] else {
        return Err(format!("expected 5 operands, found {}", all.len()));
    };
    let (axis, epsilon) = l.batch_attributes(op, l.rank(x))?;
    Ok(vec![Bound::Tensor(l.normalised(
        x,
        [scale, offset, mean, variance],
        axis,
        epsilon,
    )?)])
}

impl Lowering<'_> {
    fn normalised(
        &mut self,
        x: ValueId,
        [scale, offset, mean, variance]: [ValueId; 4],
        axis: usize,
        epsilon: f64,
    ) -> Result<ValueId, String> {
        let variance = self.with_number("add", variance, epsilon);
        let deviation = self.unary("sqrt", variance);
        let [scale, offset, mean, deviation] = [
            self.per_feature(scale, x, axis)?,
            self.per_feature(offset, x, axis)?,
            self.per_feature(mean, x, axis)?,
            self.per_feature(deviation, x, axis)?,
        ];
        let centred = self.binary("sub", x, mean);
        let normal = self.binary("div", centred, deviation);
        let scaled = self.binary("mul", scale, normal);
        Ok(self.binary("add", scaled, offset))
    }
}

fn batch_norm_training(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let all = l.tensors(op)?;
    let [x, scale, offset] = all[..] else {
        return Err(format!("expected 3 operands, found {}", all.len()));
    };
    let (axis, epsilon) = l.batch_attributes(op, l.rank(x))?;
    let mean = l.mean_of(x, axis)?;
    let wide = l.per_feature(mean, x, axis)?;
    let centred = l.binary("sub", x, wide);
    let squares = l.binary("mul", centred, centred);
    let variance = l.mean_of(squares, axis)?;
    let made = l.normalised(x, [scale, offset, mean, variance], axis, epsilon)?;
    Ok(vec![
        Bound::Tensor(made),
        Bound::Tensor(mean),
        Bound::Tensor(variance),
    ])
}

fn batch_norm_grad(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let all = l.tensors(op)?;
    let [x, scale, mean, variance, grad] = all[..] else {
        return Err(format!("expected 5 operands, found {}", all.len()));
    };
    let (axis, epsilon) = l.batch_attributes(op, l.rank(x))?;
    let axes: Vec<usize> = (0..l.rank(x)).filter(|own| *own != axis).collect();
    let n = l.n_per_feature(x, axis)?;
    let variance = l.with_number("add", variance, epsilon);
    let (scale_wide, mean, variance) = (
        l.per_feature(scale, x, axis)?,
        l.per_feature(mean, x, axis)?,
        l.per_feature(variance, x, axis)?,
    );
    let centred = l.binary("sub", x, mean);
    let deviation = l.unary("sqrt", variance);
    let sum = |l: &mut Lowering<'_>, x| {
        l.reduced(super::reduce::Kind::Sum, x, &axes)
            .ok_or("sums truth values".to_owned())
    };
    let weighted = l.binary("mul", grad, centred);
    let weighted_sum = sum(l, weighted)?;
    let offset_grad = sum(l, grad)?;
    let normal = l.binary("div", centred, deviation);
    let of_scale = l.binary("mul", grad, normal);
    let scale_grad = sum(l, of_scale)?;
    let (weighted_sum, grad_sum) = (
        l.per_feature(weighted_sum, x, axis)?,
        l.per_feature(offset_grad, x, axis)?,
    );
    let first = l.binary("mul", grad, n);
    let first = l.binary("sub", first, grad_sum);
    let second = l.binary("mul", weighted_sum, centred);
    let second = l.binary("div", second, variance);
    let inner = l.binary("sub", first, second);
    let outer = l.binary("div", scale_wide, deviation);
    let outer = l.binary("div", outer, n);
    let operand_grad = l.binary("mul", outer, inner);
    Ok([operand_grad, scale_grad, offset_grad]
        .map(Bound::Tensor)
        .to_vec())
}
