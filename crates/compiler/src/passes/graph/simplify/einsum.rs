//! Products of matrices that equations of einsum mean.
//!
//! Of two operands the labels of both that the result has are a batch, those of both that it lacks are summed over, and the
//! others are rows and columns. Operands are transposed so that these follow each other, and several labels become one
//! dimension: one `dot` is left. Equations whose extents don't allow that stay, as do those of more operands.

use std::slice;

use tfrt_ir::types::FloatKind;
use tfrt_ir::{Attribute, OpId, OpState, Type, ValueId};
use tfrt_ops::einsum::{Equation, Label};
use tfrt_ops::{Dim, Dims};

use super::super::node;
use super::super::rewrite::list;
use super::{ShapeList, Simplify};

/// Rewrites an einsum.
pub(super) fn product(simplify: &mut Simplify<'_>, op: OpId) -> Option<ValueId> {
    let module = &*simplify.rewrite.module;
    if node::name(module, op) != "onnx.Einsum" {
        return None;
    }
    let result = module.op(op).results()[0];
    let element = node::element(module.value_type(result)).filter(has_products)?;
    let operands = module.op(op).operands().to_vec();
    let mut terms = Vec::with_capacity(operands.len());
    for value in operands {
        let dims = simplify.dims.get(&value)?.to_vec();
        let labels = Vec::new();
        let value = simplify.rewrite.mapped(value);
        terms.push(Term {
            value,
            labels,
            dims,
        });
    }
    let ranks: Vec<usize> = terms.iter().map(|term| term.dims.len()).collect();
    let equation = Equation::parse(node::text(module, op, "equation"), &ranks).ok()?;
    for (term, labels) in terms.iter_mut().zip(equation.operands) {
        term.labels = labels;
    }
    let has_all = |label: &Label| terms.iter().any(|term| term.labels.contains(label));
    if !equation.result.iter().all(has_all) {
        return None;
    }
    let mut make = Make {
        simplify,
        op,
        element,
    };
    match <[Term; 2]>::try_from(terms) {
        Ok(terms) => make.two(terms, &equation.result),
        Err(terms) => {
            let [term] = <[Term; 1]>::try_from(terms).ok()?;
            term.is_plain().then_some(())?;
            let term = make.summed(term, &|label| equation.result.contains(&label));
            Some(make.transposed(&term, &equation.result))
        }
    }
}

/// Returns whether there are products of matrices of these elements.
fn has_products(element: &Type) -> bool {
    match element {
        Type::Float(kind) => [
            FloatKind::F32,
            FloatKind::F64,
            FloatKind::F16,
            FloatKind::BF16,
        ]
        .contains(kind),
        element => [Type::I32, Type::I64].contains(element),
    }
}

/// An operand with the labels of its dimensions.
struct Term {
    value: ValueId,
    labels: Vec<Label>,
    dims: Vec<Dim>,
}

impl Term {
    fn dim(&self, label: Label) -> Dim {
        let at = self.labels.iter().position(|own| *own == label);
        at.map_or(Dim::Unknown, |at| self.dims[at].clone())
    }

    /// Returns whether no label stands twice, which would be a diagonal.
    fn is_plain(&self) -> bool {
        let mut all = self.labels.iter().enumerate();
        all.all(|(at, label)| !self.labels[..at].contains(label))
    }

    fn dims_of(&self, labels: &[Label]) -> Dims {
        labels.iter().map(|label| self.dim(*label)).collect()
    }
}

/// Labels by their part in a product, each in the order of the result, or of the left operand.
struct Parts {
    batch: Vec<Label>,
    rows: Vec<Label>,
    summed: Vec<Label>,
    columns: Vec<Label>,
}

impl Parts {
    fn new(left: &Term, right: &Term, result: &[Label]) -> Parts {
        let of = |in_left: bool, in_right: bool| {
            let fits = |label: &Label| {
                left.labels.contains(label) == in_left && right.labels.contains(label) == in_right
            };
            result.iter().copied().filter(fits).collect()
        };
        let is_summed = |label: &Label| right.labels.contains(label) && !result.contains(label);
        Parts {
            batch: of(true, true),
            rows: of(true, false),
            summed: left.labels.iter().copied().filter(is_summed).collect(),
            columns: of(false, true),
        }
    }
}

/// The operations that are made of an einsum.
struct Make<'s, 'm> {
    simplify: &'s mut Simplify<'m>,
    op: OpId,
    element: Type,
}

impl Make<'_, '_> {
    fn add(&mut self, state: OpState, dims: Dims) -> ValueId {
        self.simplify.add(state, dims, &self.element, self.op)
    }

    /// Sums a term over the labels that nobody needs.
    fn summed(&mut self, term: Term, is_needed: &dyn Fn(Label) -> bool) -> Term {
        let (mut axes, mut labels, mut dims) = (Vec::new(), Vec::new(), Vec::new());
        for (at, label) in term.labels.iter().enumerate() {
            if is_needed(*label) {
                labels.push(*label);
                dims.push(term.dims[at].clone());
            } else {
                axes.push(i64::try_from(at).unwrap_or(i64::MAX));
            }
        }
        if axes.is_empty() {
            return term;
        }
        let axes = self.simplify.rewrite.integers(&axes, self.op);
        let state = OpState::new("graph.reduce")
            .operands([term.value, axes])
            .attribute("kind", Attribute::string("sum"))
            .attribute("keep", Attribute::integer(0, Type::I64));
        let value = self.add(state, dims.iter().cloned().collect());
        Term {
            value,
            labels,
            dims,
        }
    }

    /// Transposes a term to labels in this order.
    fn transposed(&mut self, term: &Term, order: &[Label]) -> ValueId {
        if term.labels == order {
            return term.value;
        }
        let at = |label: &Label| {
            let at = term.labels.iter().position(|own| own == label);
            i64::try_from(at.unwrap_or(0)).unwrap_or(0)
        };
        let order_of: Vec<i64> = order.iter().map(at).collect();
        let state = OpState::new("graph.transpose")
            .operand(term.value)
            .attribute("perm", list(&order_of));
        self.add(state, term.dims_of(order))
    }

    fn two(&mut self, [left, right]: [Term; 2], result: &[Label]) -> Option<ValueId> {
        if !left.is_plain() || !right.is_plain() {
            return None;
        }
        let parts = Parts::new(&left, &right, result);
        // Extents of 1 would be repeated, which products don't do with what they sum over.
        let is_one = |label: &Label| {
            let dim = left.dim(*label);
            !dim.is_unknown() && dim == right.dim(*label)
        };
        if !parts.summed.iter().all(is_one) {
            return None;
        }
        if parts.summed.is_empty() {
            return Some(self.multiplied([left, right], result));
        }
        let is_constant = |term: &Term| {
            let module = &*self.simplify.rewrite.module;
            node::constant(module, term.value).is_some()
        };
        let [has_left, has_right] = [&left, &right].map(is_constant);
        // Constants are packed on the right; else the result should need no transposition of its last dimension.
        let ends_with_row = result.last().is_some_and(|last| parts.rows.contains(last));
        let is_turned = match (has_left, has_right) {
            (true, false) => parts.batch.is_empty(),
            (false, false) => ends_with_row,
            _ => false,
        };
        let [left, right] = if is_turned {
            [right, left]
        } else {
            [left, right]
        };
        let is_needed = |other: &Term| {
            let labels = other.labels.clone();
            move |label| result.contains(&label) || labels.contains(&label)
        };
        let needed = [is_needed(&right), is_needed(&left)];
        let plan = Plan::new(&left, &right, result)?;
        let left = self.summed(left, &needed[0]);
        let right = self.summed(right, &needed[1]);
        self.dot(&left, &right, &plan, result)
    }

    /// Multiplies terms that are summed over nothing together.
    fn multiplied(&mut self, terms: [Term; 2], result: &[Label]) -> ValueId {
        let [left, right] = terms.map(|term| {
            let term = self.summed(term, &|label| result.contains(&label));
            let is_own = |label: &&Label| term.labels.contains(label);
            let own: Vec<Label> = result.iter().filter(is_own).copied().collect();
            let value = self.transposed(&term, &own);
            let missing = result.iter().enumerate();
            let missing = missing.filter(|(_, label)| !term.labels.contains(label));
            let axes: Vec<i64> = missing
                .map(|(at, _)| i64::try_from(at).unwrap_or(i64::MAX))
                .collect();
            let dims = result
                .iter()
                .map(|label| match term.labels.contains(label) {
                    true => term.dim(*label),
                    false => Dim::Known(1),
                });
            let dims: Dims = dims.collect();
            if axes.is_empty() {
                return (value, dims);
            }
            let axes = self.simplify.rewrite.integers(&axes, self.op);
            let state = OpState::new("onnx.Unsqueeze").operands([value, axes]);
            (self.add(state, dims.clone()), dims)
        });
        let dims = left.1.iter().zip(&right.1);
        let dims = dims.map(|(left, right)| broadcast(left, right)).collect();
        let state = OpState::new("graph.mul").operands([left.0, right.0]);
        self.add(state, dims)
    }

    fn dot(&mut self, left: &Term, right: &Term, plan: &Plan, result: &[Label]) -> Option<ValueId> {
        let mut values = Vec::with_capacity(2);
        for (term, side) in [(left, &plan.left), (right, &plan.right)] {
            let value = self.transposed(term, &side.order);
            values.push(match &side.shape {
                None => value,
                Some((shape, dims)) => {
                    self.simplify.reshape(value, shape, dims.clone(), self.op)?
                }
            });
        }
        let state = OpState::new("graph.dot").operands(values);
        let mut value = self.add(state, plan.product.clone());
        if let Some(shape) = &plan.shape {
            value = self
                .simplify
                .reshape(value, shape, plan.dims.clone(), self.op)?;
        }
        let made = Term {
            value,
            labels: plan.labels.clone(),
            dims: plan.dims.to_vec(),
        };
        Some(self.transposed(&made, result))
    }
}

/// Returns the extent of a dimension of two operands.
fn broadcast(left: &Dim, right: &Dim) -> Dim {
    match (left, right) {
        (left, right) if left == right => left.clone(),
        (Dim::Known(1), other) | (other, Dim::Known(1)) => other.clone(),
        _ => Dim::Unknown,
    }
}

/// The shapes on the way to a product and behind it.
struct Plan {
    left: Side,
    right: Side,
    /// The extents that the product has, before it is reshaped.
    product: Dims,
    /// The shape that gives each label a dimension of its own again.
    shape: Option<ShapeList>,
    labels: Vec<Label>,
    dims: Dims,
}

/// The order of labels of an operand, and the shape in which several are one.
struct Side {
    order: Vec<Label>,
    shape: Option<(ShapeList, Dims)>,
}

impl Side {
    fn new(term: &Term, groups: [&[Label]; 2], batch: &[Label]) -> Option<Side> {
        let order = [batch, groups[0], groups[1]].concat();
        let from = term.dims_of(&order);
        if groups.iter().all(|group| group.len() == 1) {
            let shape = None;
            return Some(Side { order, shape });
        }
        let mut to = term.dims_of(batch);
        to.extend(groups.iter().map(|group| merged(term, group)));
        let n_kept = batch.len() + usize::from(groups[0].len() == 1);
        let shape = Some((ShapeList::new(&from, &to, n_kept)?, to));
        Some(Side { order, shape })
    }
}

fn merged(term: &Term, labels: &[Label]) -> Dim {
    let dims = labels.iter().map(|label| term.dim(*label));
    dims.fold(Dim::Known(1), |product, dim| &product * &dim)
}

impl Plan {
    fn new(left: &Term, right: &Term, result: &[Label]) -> Option<Plan> {
        let parts = Parts::new(left, right, result);
        let Parts {
            batch,
            rows,
            summed,
            columns,
        } = &parts;
        // One matrix for all rows of a tensor: they need not be one dimension.
        let is_one_matrix = batch.is_empty() && rows.len() > 1;
        let left_side = match rows.split_last() {
            Some((last, others)) if is_one_matrix => {
                Side::new(left, [slice::from_ref(last), summed], others)?
            }
            _ => Side::new(left, [rows, summed], batch)?,
        };
        let right_side = Side::new(right, [summed, columns], batch)?;
        let mut product: Dims = batch
            .iter()
            .map(|label| broadcast(&left.dim(*label), &right.dim(*label)))
            .collect();
        let mut dims = product.clone();
        match is_one_matrix {
            true => product.extend(left.dims_of(rows)),
            false => product.push(merged(left, rows)),
        }
        product.push(merged(right, columns));
        dims.extend(left.dims_of(rows));
        dims.extend(right.dims_of(columns));
        let is_done = (is_one_matrix || rows.len() == 1) && columns.len() == 1;
        let shape = match is_done {
            true => None,
            false => {
                let n_rows = if is_one_matrix || rows.len() == 1 {
                    rows.len()
                } else {
                    0
                };
                Some(ShapeList::new(&product, &dims, batch.len() + n_rows)?)
            }
        };
        Some(Plan {
            left: left_side,
            right: right_side,
            product,
            shape,
            labels: [&batch[..], rows, columns].concat(),
            dims,
        })
    }
}
