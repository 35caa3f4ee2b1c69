//! [`State`]: variables that a signature changes, as values that go from one operation to the next.
//!
//! A graph is expanded in an order in which what a node waits for comes first, so a variable has one value at each point: the
//! initial one, an input of the model, until something is assigned. Branches and turns of loops give what they assign as
//! further results. The last values are outputs of the model, in the order of the inputs.

use std::collections::{BTreeMap, BTreeSet};

use tfrt_ir::{Attribute, OpState, Type, ValueId};

use super::element;
use super::graph::{Bound, Importer, operation_name};
use super::node::{missing, unknown};
use super::proto::{Node, Value};
use crate::codes;
use crate::onnx::problem::{Problem, shown};

/// The variables that are changed.
#[derive(Default)]
pub(super) struct State {
    /// The variables that are values, since something changes them.
    pub names: BTreeSet<String>,
    /// The values at the point that is expanded, by variable. Variables that nothing changes are constants.
    pub values: BTreeMap<String, ValueId>,
    /// The variables that were assigned so far.
    pub assigned: BTreeSet<String>,
}

/// Operations of optimizers, with the number of variables that they change: the first operands.
const OPTIMIZERS: &[(&str, usize)] = &[
    ("ResourceApplyAdagrad", 2),
    ("ResourceApplyAdagradV2", 2),
    ("ResourceApplyAdam", 3),
    ("ResourceApplyGradientDescent", 1),
    ("ResourceApplyKerasMomentum", 2),
    ("ResourceApplyMomentum", 2),
    ("ResourceApplyRMSProp", 3),
];

/// Operations that calculate with a variable and a value, and those that do so with two values.
const ASSIGNMENTS: &[(&str, &str)] = &[
    ("AssignAddVariableOp", "AddV2"),
    ("AssignSubVariableOp", "Sub"),
    ("ResourceScatterAdd", "TensorScatterAdd"),
    ("ResourceScatterMax", "TensorScatterMax"),
    ("ResourceScatterMin", "TensorScatterMin"),
    ("ResourceScatterNdAdd", "TensorScatterAdd"),
    ("ResourceScatterNdSub", "TensorScatterSub"),
    ("ResourceScatterNdUpdate", "TensorScatterUpdate"),
    ("ResourceScatterSub", "TensorScatterSub"),
    ("ResourceScatterUpdate", "TensorScatterUpdate"),
];

impl<'m> Importer<'m> {
    /// Expands an operation that changes variables, if it is one.
    pub(super) fn assignment(
        &mut self,
        node: &'m Node,
        inputs: &[Bound],
        path: &str,
    ) -> Result<Option<Vec<Bound>>, Problem> {
        let op = node.op.as_str();
        if let Some((_, n_variables)) = OPTIMIZERS.iter().find(|(name, _)| *name == op) {
            self.optimizer(node, *n_variables, inputs, path)?;
            return Ok(Some(Vec::new()));
        }
        let by = ASSIGNMENTS.iter().find(|(name, _)| *name == op);
        if by.is_none() && op != "AssignVariableOp" {
            return Ok(None);
        }
        let (Some(Bound::Variable(name)), Some(last)) = (inputs.first(), inputs.last()) else {
            return Err(missing("resource"));
        };
        let mut value = Importer::value(last)?;
        if let Some((_, by)) = by {
            let Some(before) = self.variable(name)? else {
                return Ok(Some(vec![Bound::Failed]));
            };
            let mut operands = vec![before];
            for input in &inputs[1..] {
                operands.push(Importer::value(input)?);
            }
            if op.starts_with("ResourceScatter") && !op.starts_with("ResourceScatterNd") {
                operands[1] = self.positions(operands[1], path)?;
            }
            value = self.plain(by, operands, path)?;
        }
        self.assign(name, value);
        Ok(Some(Vec::new()))
    }

    /// Appends an operation without attributes.
    fn plain(&mut self, op: &str, operands: Vec<ValueId>, path: &str) -> Result<ValueId, Problem> {
        let state = OpState::new(operation_name(op)?)
            .operands(operands)
            .result(unknown())
            .location(self.location(path));
        Ok(self.add(state)?[0])
    }

    /// Returns positions along the first dimension as lists of one index.
    fn positions(&mut self, indices: ValueId, path: &str) -> Result<ValueId, Problem> {
        let axis = self.number(-1, path)?;
        self.plain("ExpandDims", vec![indices, axis], path)
    }

    /// Appends the step of an optimizer, on values: `tf.ApplyAdam` takes and gives what `ResourceApplyAdam` changes.
    fn optimizer(
        &mut self,
        node: &'m Node,
        n_variables: usize,
        inputs: &[Bound],
        path: &str,
    ) -> Result<(), Problem> {
        let (mut names, mut operands) = (Vec::new(), Vec::with_capacity(inputs.len()));
        for (index, input) in inputs.iter().enumerate() {
            operands.push(match input {
                Bound::Variable(name) if index < n_variables => {
                    names.push(name.clone());
                    let Some(before) = self.variable(name)? else {
                        return Ok(());
                    };
                    before
                }
                input => Importer::value(input)?,
            });
        }
        if names.len() != n_variables {
            let message = format!("changes {} variables, expected {n_variables}", names.len());
            return Err(Problem::new(codes::MODEL_TYPE, message));
        }
        let name = node.op.trim_start_matches("Resource");
        let mut state = OpState::new(operation_name(name)?)
            .operands(operands)
            .results((0..n_variables).map(|_| unknown()))
            .location(self.location(path));
        for (name, value) in &node.attr {
            let value = match &value.value {
                Some(Value::Bool(value)) => Attribute::integer(i64::from(*value), Type::I64),
                Some(Value::Type(number)) => element::type_attribute(*number)?,
                _ => continue,
            };
            state = state.attribute(shown(name).into_owned(), value);
        }
        let values = self.add(state)?;
        for (name, value) in names.iter().zip(values) {
            self.assign(name, value);
        }
        Ok(())
    }

    fn assign(&mut self, name: &str, value: ValueId) {
        self.state.assigned.insert(name.to_owned());
        if let Some(known) = self.state.values.get_mut(name) {
            *known = value;
        }
    }
}
