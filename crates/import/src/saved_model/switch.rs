//! Conditions of TensorFlow 1: `Switch` sends a value to one of two sides, `Merge` takes it from the side that got one.
//!
//! A merge becomes `graph.if` by the condition of the nearest switches; what stands between is in its regions. What does not
//! depend on a switch may stand there, too: it is as good as outside.

use std::collections::HashSet;

use super::graph::{Bound, Frame, Importer, InputRef, OutputRef};
use super::node::missing;
use super::proto::Node;
use crate::codes;
use crate::onnx::problem::Problem;

/// Returns whether a node takes the value of one of two sides.
pub(super) fn is_merge(node: &Node) -> bool {
    matches!(node.op.as_str(), "Merge" | "RefMerge")
}

fn is_switch(node: &Node) -> bool {
    matches!(node.op.as_str(), "Switch" | "RefSwitch")
}

impl<'m> Importer<'m> {
    /// Expands a merge.
    pub(super) fn merge(
        &mut self,
        frame: &mut Frame<'m>,
        node: &'m Node,
    ) -> Result<Vec<Bound>, Problem> {
        let path = self.path(frame, node);
        let inputs = node.input.iter().filter(|input| !input.starts_with('^'));
        let inputs: Vec<&'m String> = inputs.collect();
        let [first, second] = inputs[..] else {
            let message = format!("takes {} values, expected those of two sides", inputs.len());
            return Err(Problem::new(codes::MODEL_OPERATOR, message));
        };
        let sides = [frame.reference(first)?, frame.reference(second)?];
        let found = [side(frame, sides[0])?, side(frame, sides[1])?];
        let (condition, is_true) = match found {
            [Some((condition, is_true)), Some((other, is_other))]
                if condition == other && is_true != is_other =>
            {
                (condition, is_true)
            }
            [Some((condition, is_true)), None] => (condition, is_true),
            [None, Some((condition, is_other))] => (condition, !is_other),
            _ => {
                let message =
                    "takes values of two sides that no switch of one condition tells apart";
                return Err(Problem::new(codes::MODEL_OPERATOR, message));
            }
        };
        let (then, otherwise) = match is_true {
            true => (sides[0], sides[1]),
            false => (sides[1], sides[0]),
        };
        self.expect_shallow()?;
        let condition = self.input(frame, condition)?;
        if condition == Bound::Failed {
            return Ok(vec![Bound::Failed]);
        }
        let condition = Importer::value(&condition)?;
        let mut made = Vec::with_capacity(2);
        for reference in [then, otherwise] {
            // Results inside are not seen outside.
            let outside = frame.made.clone();
            self.open.push("");
            let filled = self.region(|importer| Ok(vec![importer.input(frame, reference)?]));
            self.open.pop();
            frame.made = outside;
            made.push(filled?);
        }
        let (Some(otherwise), Some(then)) = (made.pop(), made.pop()) else {
            return Err(missing("inputs"));
        };
        self.choose(condition, then, otherwise, &path)
    }
}

/// Returns the condition of the nearest switches before a value, and which side it is of.
fn side<'m>(
    frame: &Frame<'m>,
    start: InputRef<'m>,
) -> Result<Option<(InputRef<'m>, bool)>, Problem> {
    let (mut open, mut seen) = (vec![(start, 0_usize)], HashSet::new());
    while let Some((reference, depth)) = open.pop() {
        let (InputRef::Node(index, _) | InputRef::Control(index)) = reference else {
            continue;
        };
        let node = &frame.nodes[index];
        let mut inner = depth;
        if is_switch(node) {
            let output = match reference {
                InputRef::Node(_, OutputRef::At(at)) => Some(at),
                InputRef::Node(_, OutputRef::Named(name, _)) => {
                    Some(usize::from(name == "output_true"))
                }
                _ => None,
            };
            match (depth, output) {
                (0, Some(output)) => {
                    let condition = node.input.get(1).ok_or_else(|| missing("pred"))?;
                    return Ok(Some((frame.reference(condition)?, output == 1)));
                }
                _ => inner = depth.saturating_sub(1),
            }
        }
        if is_merge(node) {
            inner += 1;
        }
        if !seen.insert((index, inner)) {
            continue;
        }
        for input in &node.input {
            open.push((frame.reference(input)?, inner));
        }
    }
    Ok(None)
}
