//! Recognises normalisations that are written as a factor and a summand, or as a factor alone, over the last dimension.
//!
//! | Is | As |
//! | --- | --- |
//! | `x i + (shift - mean i)`, `i = scale / √(variance + ε)` | `graph.norm` of kind `layer` |
//! | `(x - mean) i + shift` | the same |
//! | the same, the variance `max(0, mean(x²) - mean(x)²)` | the same, of the exact variance |
//! | `x i`, `i = scale / √(mean(x²) + ε)` | `graph.norm` of kind `rms` |
//!
//! TensorFlow and JAX write them so: with `rsqrt`, and with scales and shifts of as many dimensions as `x`. Both may be left
//! out. [`layer_norm`](super::layer_norm) has the form with a square root and a quotient.

use tfrt_ir::attributes::DenseAttribute;
use tfrt_ir::{Attribute, BlockId, Module, OpId, OpState, Type, ValueId};

use super::super::node;
use super::super::rewrite::Rewrite;
use super::row_mean;

/// Replaces the operations of a normalisation by one.
pub(super) fn recognise(module: &mut Module, block: BlockId) {
    let (mut rewrite, old) = Rewrite::new(module, block);
    for &op in &old {
        let found = match Form::of(rewrite.module, op) {
            Some(form) => form.norm(op),
            None => None,
        };
        match found {
            None => rewrite.keep(op),
            Some(found) => replace(&mut rewrite, op, &found),
        }
    }
    rewrite.finish(&old);
}

/// A normalisation that was recognised.
struct Norm {
    kind: &'static str,
    x: ValueId,
    scale: Option<ValueId>,
    shift: Option<ValueId>,
    epsilon: f64,
}

fn replace(rewrite: &mut Rewrite<'_>, op: OpId, found: &Norm) {
    let mut state = OpState::new("graph.norm").operand(rewrite.mapped(found.x));
    let scale = match (found.scale, found.shift) {
        (None, Some(_)) => {
            let none = OpState::new(super::super::NO_VALUE).result(Type::None);
            Some(rewrite.add(none, op))
        }
        (scale, _) => scale.map(|scale| column(rewrite, scale, op)),
    };
    let shift = found.shift.map(|shift| column(rewrite, shift, op));
    state = state.operands(scale.into_iter().chain(shift));
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it was a number of this type"
    )]
    let epsilon = found.epsilon as f32;
    let state = state
        .attribute("kind", Attribute::string(found.kind))
        .attribute("axis", Attribute::integer(-1, Type::I64))
        .attribute("epsilon", Attribute::f32(epsilon));
    super::replace(rewrite, op, state);
}

/// Returns a constant with an element for each column, as a list.
fn column(rewrite: &mut Rewrite<'_>, value: ValueId, like: OpId) -> ValueId {
    let Some(dense) = node::constant(rewrite.module, value) else {
        return rewrite.mapped(value);
    };
    let shape = dense.shape();
    match shape[..] {
        [] | [_] => rewrite.mapped(value),
        [.., width] => {
            let ty = Type::tensor(vec![width], dense.element_type().clone());
            let dense = DenseAttribute {
                ty,
                ..dense.clone()
            };
            rewrite.constant(dense, like)
        }
    }
}

/// The shape of the result of an operation that may end a normalisation.
struct Form<'m> {
    module: &'m Module,
    rank: usize,
    width: i64,
}

impl<'m> Form<'m> {
    fn of(module: &'m Module, op: OpId) -> Option<Form<'m>> {
        if !["add", "sub", "mul"].contains(&node::name(module, op)) {
            return None;
        }
        let result = *module.op(op).results().first()?;
        let shape = node::shape(module, result)?;
        let width = *shape.last()?;
        let rank = shape.len();
        (node::is_f32(module, result) && width > 0).then_some(Form {
            module,
            rank,
            width,
        })
    }

    /// Returns whether a value is a constant with an element for each column.
    fn is_column(&self, value: ValueId) -> bool {
        node::constant(self.module, value).is_some_and(|dense| {
            let shape = dense.shape();
            let is_list = shape.split_last().is_some_and(|(last, rest)| {
                *last == self.width && rest.iter().all(|size| *size == 1)
            });
            *dense.element_type() == Type::F32 && is_list && shape.len() <= self.rank
        })
    }

    fn norm(&self, op: OpId) -> Option<Norm> {
        let module = self.module;
        let &[a, b] = module.op(op).operands() else {
            return None;
        };
        match node::name(module, op) {
            "mul" if !self.is_shifted(op) => self.factors(op),
            "sub" => self.folded(a, &Summand::of_difference(self, None, b)?),
            "add" => [(a, b), (b, a)].into_iter().find_map(|(product, rest)| {
                if self.is_column(rest) {
                    let product = node::single_use_op(module, product, "mul")?;
                    let found = self
                        .factors(product)
                        .filter(|found| found.kind == "layer")?;
                    let shift = Some(rest);
                    return Some(Norm { shift, ..found });
                }
                self.folded(product, &Summand::of(self, rest)?)
            }),
            _ => None,
        }
    }

    /// Returns whether the only user of a product adds a constant for each column, and takes it all.
    fn is_shifted(&self, op: OpId) -> bool {
        let mut users = self.module.users(self.module.op(op).results()[0]);
        let only = users.next().filter(|_| users.next().is_none());
        only.is_some_and(|user| {
            let mut operands = self.module.op(user.op).operands().iter();
            node::name(self.module, user.op) == "add"
                && operands.any(|value| self.is_column(*value))
        })
    }

    /// Matches `x i`, and `(x - mean) i`.
    fn factors(&self, op: OpId) -> Option<Norm> {
        let module = self.module;
        let product = node::product(module, op, self.rank)?;
        let (columns, others): (Vec<ValueId>, Vec<ValueId>) = product
            .values
            .into_iter()
            .partition(|value| self.is_column(*value));
        let (scale, &[a, b]) = (columns.first().copied(), &others[..]) else {
            return None;
        };
        if product.factor != 1.0 || columns.len() > 1 {
            return None;
        }
        [(a, b), (b, a)].into_iter().find_map(|(x, root)| {
            let (variance, epsilon) = self.root(root)?;
            let centred = module
                .defining_op(x)
                .filter(|op| node::name(module, *op) == "sub")
                .and_then(|op| {
                    let &[x, mean] = module.op(op).operands() else {
                        return None;
                    };
                    let fits = self.mean(mean) == Some(x) && self.is_variance(variance, x, mean);
                    fits.then_some(x)
                });
            let (kind, x) = match centred {
                Some(x) => ("layer", x),
                None if self
                    .mean(variance)
                    .is_some_and(|squares| self.is_square(squares, x)) =>
                {
                    ("rms", x)
                }
                None => return None,
            };
            self.fits(x).then_some(Norm {
                kind,
                x,
                scale,
                shift: None,
                epsilon,
            })
        })
    }

    /// Matches `x i` and the summand of the same mean and factor.
    fn folded(&self, product: ValueId, summand: &Summand) -> Option<Norm> {
        let module = self.module;
        let product = node::single_use_op(module, product, "mul")?;
        let x = node::pairs(module, product)
            .into_iter()
            .flatten()
            .find_map(|(x, factor)| {
                let fits = factor == summand.factor && self.mean(summand.mean) == Some(x);
                fits.then_some(x)
            })?;
        // The factor is taken by both, and by nobody else.
        if module.users(summand.factor).take(3).count() != 2 {
            return None;
        }
        let (root, scale) = match module
            .defining_op(summand.factor)
            .filter(|op| node::name(module, *op) == "mul")
        {
            None => (summand.factor, None),
            Some(op) => node::pairs(module, op)
                .into_iter()
                .flatten()
                .find(|(_, scale)| self.is_column(*scale))
                .map(|(root, scale)| (root, Some(scale)))?,
        };
        let (variance, epsilon) = self.root(root)?;
        let fits = self.fits(x) && self.is_variance(variance, x, summand.mean);
        fits.then_some(Norm {
            kind: "layer",
            x,
            scale,
            shift: summand.shift,
            epsilon,
        })
    }

    fn fits(&self, x: ValueId) -> bool {
        let shape = node::shape(self.module, x);
        node::is_f32(self.module, x)
            && shape
                .is_some_and(|shape| shape.len() == self.rank && shape.last() == Some(&self.width))
    }

    /// Matches a mean over the last dimension, which is kept; returns the operand.
    fn mean(&self, value: ValueId) -> Option<ValueId> {
        row_mean::of_rows(self.module, value, self.rank, self.width)
    }

    /// Matches `1 / √(variance + ε)`; returns the variance and ε.
    fn root(&self, value: ValueId) -> Option<(ValueId, f64)> {
        let module = self.module;
        let root = module.defining_op(value)?;
        if node::name(module, root) != "rsqrt" {
            return None;
        }
        let sum = node::single_use_op(module, node::operand(module, root, 0)?, "add")?;
        node::pairs(module, sum)
            .into_iter()
            .flatten()
            .find_map(|(variance, epsilon)| {
                let epsilon = node::number(module, epsilon, self.rank)?;
                (epsilon >= 0.0).then_some((variance, epsilon))
            })
    }

    /// Returns whether a value is the square of another one.
    fn is_square(&self, value: ValueId, of: ValueId) -> bool {
        row_mean::squared(self.module, value, self.rank) == Some(of)
    }

    /// Returns whether a value is the mean of squares of the difference of a value and its mean, or that of squares without
    /// the square of the mean.
    fn is_variance(&self, variance: ValueId, x: ValueId, mean: ValueId) -> bool {
        if row_mean::fast_variance(self.module, variance, self.rank, self.width) == Some(x) {
            return true;
        }
        let squares = self.mean(variance);
        squares.is_some_and(|squares| self.is_deviation(squares, x, mean))
    }

    /// Returns whether a value is the square of the difference of a value and its mean.
    fn is_deviation(&self, squares: ValueId, x: ValueId, mean: ValueId) -> bool {
        let module = self.module;
        let Some(op) = module.defining_op(squares) else {
            return false;
        };
        let operands = module.op(op).operands();
        if node::name(module, op) == "squared_difference" {
            return operands == [x, mean] || operands == [mean, x];
        }
        let Some(&centred) = operands.first() else {
            return false;
        };
        let is_difference = module.defining_op(centred).is_some_and(|op| {
            node::name(module, op) == "sub" && module.op(op).operands() == [x, mean]
        });
        is_difference && self.is_square(squares, centred)
    }
}

/// A summand of columns: `shift - mean * factor`.
struct Summand {
    mean: ValueId,
    factor: ValueId,
    shift: Option<ValueId>,
}

impl Summand {
    /// Matches a summand as it is added.
    fn of(form: &Form<'_>, value: ValueId) -> Option<Summand> {
        let module = form.module;
        if let Some(op) = node::single_use_op(module, value, "sub") {
            let &[shift, product] = module.op(op).operands() else {
                return None;
            };
            return Summand::of_difference(form, Some(shift), product)
                .filter(|_| form.is_column(shift));
        }
        let Some(op) = node::single_use_op(module, value, "add") else {
            return Summand::negative(form, value, None);
        };
        node::pairs(module, op)
            .into_iter()
            .flatten()
            .find_map(|(product, shift)| {
                let shift = form.is_column(shift).then_some(shift)?;
                Summand::negative(form, product, Some(shift))
            })
    }

    /// Matches `mean * factor`, which is subtracted.
    fn of_difference(form: &Form<'_>, shift: Option<ValueId>, product: ValueId) -> Option<Summand> {
        let op = node::single_use_op(form.module, product, "mul")?;
        node::pairs(form.module, op)
            .into_iter()
            .flatten()
            .find(|(mean, _)| form.mean(*mean).is_some())
            .map(|(mean, factor)| Summand {
                mean,
                factor,
                shift,
            })
    }

    /// Matches `-mean * factor`.
    fn negative(form: &Form<'_>, product: ValueId, shift: Option<ValueId>) -> Option<Summand> {
        let module = form.module;
        let op = node::single_use_op(module, product, "mul")?;
        node::pairs(module, op)
            .into_iter()
            .flatten()
            .find_map(|(negative, factor)| {
                let negative = node::single_use_op(module, negative, "neg")?;
                let mean = node::operand(module, negative, 0)?;
                Some(Summand {
                    mean,
                    factor,
                    shift,
                })
            })
    }
}
