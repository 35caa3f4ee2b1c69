//! Finds mistakes in operators of `ai.onnx.ml` that keep them from being expanded.

use std::fmt::Display;

use tfrt_ir::{Attribute, Module, OpId};

use super::{Transform, floats, unprefixed};
use crate::passes::graph::node;

/// Returns the mistake in an operator that is to be expanded and can't be.
///
/// What is read when a model is opened, and what has a kernel, says so itself.
pub(in super::super) fn find(module: &Module, op: OpId) -> Option<String> {
    let operator = Operator { module, op };
    match unprefixed(module.op(op).name())? {
        "Normalizer" => match node::text(module, op, "norm") {
            "" | "MAX" | "L1" | "L2" => None,
            other => operator.attribute("norm", named("'MAX', 'L1' or 'L2'", other)),
        },
        "Imputer" => operator.imputer(),
        "LinearRegressor" => operator.regressor(),
        "FeatureVectorizer" => operator.features(),
        _ => None,
    }
}

/// An operator of a graph.
struct Operator<'m> {
    module: &'m Module,
    op: OpId,
}

impl Operator<'_> {
    fn attribute(&self, name: &str, expected: impl Display) -> Option<String> {
        Some(format!("attribute '{name}' is expected to {expected}"))
    }

    /// Returns the length of a list; 0 if it is left out.
    fn len(&self, name: &str) -> usize {
        let value = self.module.op(self.op).attribute(name);
        value.and_then(Attribute::as_array).map_or(0, <[_]>::len)
    }

    fn imputer(&self) -> Option<String> {
        let [n_floats, n_integers] =
            ["imputed_value_floats", "imputed_value_int64s"].map(|name| self.len(name));
        let (name, n) = match (n_floats, n_integers) {
            (0, 0) => {
                return self.attribute(
                    "imputed_value_floats",
                    "have elements, or 'imputed_value_int64s'",
                );
            }
            (0, n) => ("imputed_value_int64s", n),
            (n, _) => ("imputed_value_floats", n),
        };
        let found = self.last_extent()?;
        let fits = n == 1 || i64::try_from(n) == Ok(found);
        match fits {
            true => None,
            false => self.attribute(name, format_args!("have 1 element or {found}, found {n}")),
        }
    }

    /// Returns the number of features, if it is known.
    fn last_extent(&self) -> Option<i64> {
        let x = node::operand(self.module, self.op, 0)?;
        let extent = *node::shape(self.module, x)?.last()?;
        (extent >= 0).then_some(extent)
    }

    fn regressor(&self) -> Option<String> {
        let n_targets = node::int(self.module, self.op, "targets", 1);
        let Some(n) = usize::try_from(n_targets).ok().filter(|n| *n > 0) else {
            return self.attribute("targets", format_args!("be at least 1, found {n_targets}"));
        };
        let n_coefficients =
            floats(self.module, self.op, "coefficients").map_or(0, |list| list.len());
        if n_coefficients == 0 || !n_coefficients.is_multiple_of(n) {
            let expected = format_args!(
                "have as many elements for each of {n} targets, found {n_coefficients}"
            );
            return self.attribute("coefficients", expected);
        }
        let n_intercepts = self.len("intercepts");
        if n_intercepts != 0 && n_intercepts != n {
            let expected = format_args!("have {n} elements, found {n_intercepts}");
            return self.attribute("intercepts", expected);
        }
        if Transform::of(self.module, self.op).is_none() {
            let name = "post_transform";
            return match node::text(self.module, self.op, name) {
                // They have a meaning, which no operator here stands for.
                found @ ("PROBIT" | "SOFTMAX_ZERO") => Some(format!(
                    "attribute '{name}' is '{found}', which is not supported"
                )),
                found => self.attribute(name, named("'NONE', 'LOGISTIC' or 'SOFTMAX'", found)),
            };
        }
        let x = node::operand(self.module, self.op, 0)?;
        let rank = node::shape(self.module, x)?.len();
        (rank != 2).then(|| format!("the operand is expected to have two dimensions, found {rank}"))
    }

    fn features(&self) -> Option<String> {
        let (n, n_inputs) = (
            self.len("inputdimensions"),
            self.module.op(self.op).operands().len(),
        );
        if n != 0 && n != n_inputs {
            return self.attribute(
                "inputdimensions",
                format_args!("have {n_inputs} elements, found {n}"),
            );
        }
        None
    }
}

fn named(expected: &str, found: &str) -> String {
    format!("be {expected}, found '{}'", found.escape_debug())
}
