//! Conditions and loops: functions that are called by conditions, and in turns, become regions.

use std::collections::BTreeMap;

use tfrt_ir::{Attribute, BlockId, Location, OpState, RegionId, Type, ValueId};

use super::graph::{Bound, Frame, Importer, InputRef};
use super::node::{missing, unknown};
use super::proto::{Node, Value};
use crate::codes;
use crate::onnx::problem::{Problem, shown};

/// A region that was filled.
pub(super) struct Branch {
    region: RegionId,
    block: BlockId,
    results: Vec<Bound>,
    /// The values of variables that are changed, at the region's end.
    state: BTreeMap<String, ValueId>,
}

/// The number of the type of truth values.
const BOOL: i32 = 10;

/// Returns the function that an attribute names.
fn function<'m>(node: &'m Node, name: &str) -> Result<&'m str, Problem> {
    match node.attr.get(name).and_then(|attr| attr.value.as_ref()) {
        Some(Value::Func(function)) => Ok(&function.name),
        _ => Err(missing(name)),
    }
}

impl<'m> Importer<'m> {
    /// Expands a condition.
    pub(super) fn branches(
        &mut self,
        node: &'m Node,
        inputs: &[Bound],
        path: &str,
    ) -> Result<Vec<Bound>, Problem> {
        let (first, rest) = inputs.split_first().ok_or_else(|| missing("cond"))?;
        let condition = Importer::value(first)?;
        let stated = node.attr.get("Tcond").and_then(|attr| attr.value.as_ref());
        let condition = match stated {
            Some(Value::Type(number)) if *number != BOOL => {
                let state = OpState::new("tf.Cast")
                    .operand(condition)
                    .attribute("DstT", Attribute::Type(Type::I1))
                    .result(unknown())
                    .location(self.location(path));
                self.add(state)?[0]
            }
            _ => condition,
        };
        let branches = [
            function(node, "then_branch")?,
            function(node, "else_branch")?,
        ];
        let made =
            branches.map(|name| self.region(|importer| importer.call(name, rest.to_vec(), path)));
        let [then, otherwise] = made;
        self.choose(condition, then?, otherwise?, path)
    }

    /// Expands a choice among several functions, as conditions in one another. An index that is none means the last.
    pub(super) fn cases(
        &mut self,
        node: &'m Node,
        inputs: &[Bound],
        path: &str,
    ) -> Result<Vec<Bound>, Problem> {
        let (first, rest) = inputs
            .split_first()
            .ok_or_else(|| missing("branch_index"))?;
        let index = Importer::value(first)?;
        let branches = match node
            .attr
            .get("branches")
            .and_then(|attr| attr.value.as_ref())
        {
            Some(Value::List(list)) if !list.func.is_empty() => &list.func,
            _ => return Err(missing("branches")),
        };
        // The innermost comes first.
        let (last, others) = branches.split_last().ok_or_else(|| missing("branches"))?;
        let mut otherwise =
            self.region(|importer| importer.call(&last.name, rest.to_vec(), path))?;
        for (number, branch) in others.iter().enumerate().rev() {
            let then = self.region(|importer| importer.call(&branch.name, rest.to_vec(), path))?;
            let inner = |importer: &mut Importer<'m>| {
                let number = i32::try_from(number).unwrap_or(i32::MAX);
                let number = importer.number(number, path)?;
                let state = OpState::new("tf.Equal")
                    .operands([index, number])
                    .result(unknown())
                    .location(importer.location(path));
                let condition = importer.add(state)?[0];
                importer.choose(condition, then, otherwise, path)
            };
            if number == 0 {
                return inner(self);
            }
            otherwise = self.region(inner)?;
        }
        // There is one alone.
        for op in self.module.block(otherwise.block).operations().to_vec() {
            self.module.remove_from_block(op);
            self.module.append(self.block, op);
        }
        self.state.values = otherwise.state;
        Ok(otherwise.results)
    }

    pub(super) fn number(&mut self, number: i32, path: &str) -> Result<ValueId, Problem> {
        let tensor = crate::onnx::Tensor {
            name: String::new(),
            element: crate::onnx::ElementType::I32,
            dims: Vec::new(),
            data: crate::onnx::TensorData::Bytes(number.to_le_bytes().to_vec().into()),
        };
        self.constant(super::resources::dense(&tensor), path)
    }

    /// Fills a new region by a function, which returns what the region gives. Outside, variables are as they were.
    pub(super) fn region(
        &mut self,
        fill: impl FnOnce(&mut Importer<'m>) -> Result<Vec<Bound>, Problem>,
    ) -> Result<Branch, Problem> {
        let region = self.module.create_region();
        let block = self.module.create_block(region);
        let outer = std::mem::replace(&mut self.block, block);
        let before = self.state.values.clone();
        let filled = fill(self);
        self.block = outer;
        let state = std::mem::replace(&mut self.state.values, before);
        Ok(Branch {
            region,
            block,
            results: filled?,
            state,
        })
    }

    /// Ends a block with what it gives.
    fn give(&mut self, block: BlockId, values: Vec<ValueId>, path: &str) {
        let last = OpState::new("graph.yield").operands(values);
        let last = self.module.create(last.location(self.location(path)));
        self.module.append(block, last);
    }

    /// Appends a condition of two regions. Resources that both give pass by it.
    pub(super) fn choose(
        &mut self,
        condition: ValueId,
        then: Branch,
        otherwise: Branch,
        path: &str,
    ) -> Result<Vec<Bound>, Problem> {
        let (found, expected) = (otherwise.results.len(), then.results.len());
        if found != expected {
            let message = format!("has branches with {expected} and {found} results");
            return Err(Problem::new(codes::MODEL_FUNCTION, message));
        }
        let mut results = Vec::with_capacity(expected);
        let (mut thens, mut others) = (Vec::new(), Vec::new());
        for (own, other) in then.results.iter().zip(&otherwise.results) {
            match (own, other) {
                (Bound::Value(own), Bound::Value(other)) => {
                    thens.push(*own);
                    others.push(*other);
                    results.push(None);
                }
                (Bound::Failed, _) | (_, Bound::Failed) => return Ok(vec![Bound::Failed]),
                (own, other) if own == other => results.push(Some(own.clone())),
                _ => {
                    let message = "has branches that give different resources";
                    return Err(Problem::new(codes::MODEL_TYPE, message));
                }
            }
        }
        // What either assigns.
        let mut changed = Vec::new();
        for (name, before) in &self.state.values {
            let sides = [&then, &otherwise].map(|branch| branch.state.get(name).copied());
            let [own, other] = sides.map(|value| value.unwrap_or(*before));
            if own != *before || other != *before {
                changed.push(name.clone());
                thens.push(own);
                others.push(other);
            }
        }
        let n = thens.len();
        self.give(then.block, thens, path);
        self.give(otherwise.block, others, path);
        let state = OpState::new("graph.if")
            .operand(condition)
            .results((0..n).map(|_| unknown()))
            .region(then.region)
            .region(otherwise.region)
            .location(self.location(path));
        let mut values = self.add(state)?;
        let last = values.split_off(n - changed.len());
        self.state.values.extend(changed.into_iter().zip(last));
        let mut values = values.into_iter();
        let bound = |known: Option<Bound>| match known {
            Some(resource) => Some(resource),
            None => values.next().map(Bound::Value),
        };
        Ok(results.into_iter().map_while(bound).collect())
    }

    /// Expands a loop. What no turn changes, resources above all, is seen from inside and does not go from turn to turn.
    pub(super) fn turns(
        &mut self,
        node: &'m Node,
        inputs: &[Bound],
        path: &str,
    ) -> Result<Vec<Bound>, Problem> {
        let (condition, body) = (function(node, "cond")?, function(node, "body")?);
        let kept = self.unchanged(body, inputs.len())?;
        let mut start = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            if !kept[index] {
                start.push(Importer::value(input)?);
            }
        }
        // Each turn sees the variables as the one before left them.
        let state: Vec<String> = self.state.values.keys().cloned().collect();
        let before = self.state.values.clone();
        start.extend(before.values());
        let mut made = Vec::with_capacity(2);
        for (name, is_body) in [(condition, false), (body, true)] {
            let region = self.module.create_region();
            let block = self.module.create_block(region);
            let mut arguments = Vec::with_capacity(inputs.len());
            for (index, input) in inputs.iter().enumerate() {
                arguments.push(match kept[index] {
                    true => input.clone(),
                    false => {
                        let value = self
                            .module
                            .add_argument(block, unknown(), Location::Unknown);
                        Bound::Value(value)
                    }
                });
            }
            for name in &state {
                let value = self
                    .module
                    .add_argument(block, unknown(), Location::Unknown);
                self.state.values.insert(name.clone(), value);
            }
            let outer = std::mem::replace(&mut self.block, block);
            let given = self.call(name, arguments, path);
            self.block = outer;
            let after = std::mem::replace(&mut self.state.values, before.clone());
            let given = given?;
            if given.contains(&Bound::Failed) {
                return Ok(vec![Bound::Failed]);
            }
            let expected = if is_body { inputs.len() } else { 1 };
            if given.len() != expected {
                let found = given.len();
                let message = format!(
                    "has a function '{}' with {found} results, expected {expected}",
                    shown(name)
                );
                return Err(Problem::new(codes::MODEL_FUNCTION, message));
            }
            let mut values = Vec::new();
            for (index, bound) in given.iter().enumerate() {
                if !(is_body && kept[index]) {
                    values.push(Importer::value(bound)?);
                }
            }
            if is_body {
                values.extend(after.values());
            }
            self.give(block, values, path);
            made.push(region);
        }
        let n = start.len();
        let mut operation = OpState::new("graph.while")
            .operands(start)
            .results((0..n).map(|_| unknown()))
            .location(self.location(path));
        for region in made {
            operation = operation.region(region);
        }
        let mut values = self.add(operation)?;
        let last = values.split_off(n - state.len());
        self.state.values = state.into_iter().zip(last).collect();
        let mut values = values.into_iter();
        let all = inputs.iter().zip(kept);
        let bound = |(input, is_kept): (&Bound, bool)| match is_kept {
            true => Some(input.clone()),
            false => values.next().map(Bound::Value),
        };
        Ok(all.map_while(bound).collect())
    }

    /// Returns which inputs the body of a loop gives as it takes them.
    fn unchanged(&self, body: &str, n: usize) -> Result<Vec<bool>, Problem> {
        let found = self.functions.get(body).copied();
        let found = found.and_then(|function| Some((function, function.signature.as_deref()?)));
        let Some((function, signature)) = found else {
            let message = format!(
                "calls the function '{}', which the model does not have",
                shown(body)
            );
            return Err(Problem::new(codes::MODEL_FUNCTION, message));
        };
        let (takes, gives) = (signature.input.len(), signature.output.len());
        if takes != n || gives != n {
            let message =
                format!("has {n} inputs, and a body that takes {takes} and gives {gives}");
            return Err(Problem::new(codes::MODEL_FUNCTION, message));
        }
        let arguments = signature.input.iter();
        let arguments = arguments
            .map(|own| (own.name.as_str(), Bound::Failed))
            .collect();
        let frame = Frame::new(&function.node, arguments, true, String::new())?;
        let is_kept = |index: usize| {
            let mut value = function.ret.get(&signature.output[index].name)?;
            for _ in 0..=function.node.len() {
                match frame.reference(value).ok()? {
                    InputRef::Argument(name) => return Some(name == signature.input[index].name),
                    InputRef::Node(at, _) => {
                        let node = &frame.nodes[at];
                        if node.op != "Identity" {
                            return None;
                        }
                        value = node.input.first()?;
                    }
                    InputRef::Control(_) => return None,
                }
            }
            None
        };
        Ok((0..n).map(|index| is_kept(index) == Some(true)).collect())
    }
}
