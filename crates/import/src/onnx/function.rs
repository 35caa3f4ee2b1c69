//! Functions of a model's own, which are expanded where they are called.

use std::collections::HashMap;

use tfrt_ir::{Diagnostics, Location, ValueId};

use super::{
    attributes::Bound,
    graph::{Context, Frame, Importer, Place},
    model::{Opsets, domain},
    problem::{Problem, shown},
    proto::{Function, Node},
};
use crate::codes;

/// Nodes that functions may become, all together: a short chain of functions of which each calls
/// the next twice would else become as many as there are atoms.
const MAX_EXPANDED: usize = 500_000;

/// Domain, name and overload.
type Key<'m> = (&'m str, &'m str, &'m str);

/// The functions of a model.
#[derive(Default)]
pub(super) struct Functions<'m> {
    by_name: HashMap<Key<'m>, &'m Function>,
}

impl<'m> Functions<'m> {
    /// Lists functions; reports those that are there twice.
    pub(super) fn of(
        functions: &'m [Function],
        place: &Location,
        errors: &mut Diagnostics,
    ) -> Functions<'m> {
        let mut by_name = HashMap::new();
        for function in functions {
            let name = function.name.as_deref().unwrap_or("");
            let key = (
                domain(function.domain.as_deref()),
                name,
                function.overload.as_deref().unwrap_or(""),
            );
            if by_name.insert(key, function).is_some() {
                let message = format!("has the function '{}' twice", shown(name));
                errors.push(Problem::new(codes::MODEL_FUNCTION, message).at(place.clone()));
            }
        }
        Functions { by_name }
    }

    /// Finds the function that a node calls.
    pub(super) fn called(&self, node: &Node) -> Option<&'m Function> {
        if self.by_name.is_empty() {
            return None;
        }
        let key = (
            domain(node.domain.as_deref()),
            node.op_type.as_deref().unwrap_or(""),
            node.overload.as_deref().unwrap_or(""),
        );
        self.by_name.get(&key).copied()
    }
}

impl<'m> Importer<'m> {
    /// Checks that functions ask for versions of operator sets that go with the model's.
    pub(super) fn check_versions(
        &mut self,
        functions: &'m [Function],
        model: &Opsets<'m>,
        place: &Location,
    ) {
        for function in functions {
            let own = self.opsets(&function.opset_import, place);
            for (domain, version) in own {
                let Some(&other) = model.get(domain).filter(|&&other| other != version) else {
                    continue;
                };
                let set = if domain.is_empty() {
                    "ai.onnx"
                } else {
                    shown(domain)
                };
                let name = shown(function.name.as_deref().unwrap_or(""));
                let message = format!(
                    "function '{name}' asks for version {version} of the operator set '{set}', \
                     expected {other} as the model does"
                );
                let problem = Problem::new(codes::OPSET, message);
                self.errors.push(problem.at(place.clone()));
            }
        }
    }

    /// Expands a call; returns the values of the function's results.
    pub(super) fn call(
        &mut self,
        function: &'m Function,
        node: &'m Node,
        operands: &[Option<ValueId>],
        at: Context<'_>,
        place: &Place,
    ) -> Vec<Option<ValueId>> {
        if let Some(problem) = self.refuse_call(function, node, at) {
            self.errors
                .push(problem.of(&place.label).at(place.location.clone()));
            return Vec::new();
        }
        self.n_expanded += function.node.len();
        let attributes = self.bind(function, node, at);
        let opsets = self.frames[at.frame].opsets.clone();
        let scope = self.new_scope(None);
        let parameters = function.input.iter().zip(operands);
        for (name, value) in parameters {
            if let Some(value) = value {
                self.scopes[scope].values.insert(name, *value);
            }
        }
        let left_out = function.input.iter().enumerate();
        let left_out =
            left_out.filter(|(index, _)| operands.get(*index).is_none_or(|it| it.is_none()));
        let left_out = left_out.map(|(_, name)| name.as_str()).collect();
        self.scopes[scope].left_out = left_out;
        let mut expanding = self.frames[at.frame].expanding.clone();
        expanding.push(function);
        self.frames.push(Frame {
            opsets,
            attributes,
            caller: Some(place.location.clone()),
            expanding,
        });
        let inside = Context {
            frame: self.frames.len() - 1,
            scope,
            block: at.block,
            path: &place.path,
            level: at.level + 1,
        };
        self.nodes(&function.node, &function.value_info, &[], inside);
        let results = function.output.iter();
        let results = results
            .map(|name| self.result(name, inside, place))
            .collect();
        self.frames.truncate(inside.frame);
        self.scopes.truncate(scope);
        results
    }

    fn result(&mut self, name: &'m str, inside: Context<'_>, place: &Place) -> Option<ValueId> {
        let found = self.find(name, inside.scope);
        if found.is_none() {
            let message = format!("its function makes no value '{}'", shown(name));
            let problem = Problem::new(codes::MODEL_VALUE, message).of(&place.label);
            self.errors.push(problem.at(place.location.clone()));
        }
        found
    }

    /// Returns why a call can't be expanded.
    fn refuse_call(
        &self,
        function: &'m Function,
        node: &'m Node,
        at: Context<'_>,
    ) -> Option<Problem> {
        let error = |message: String| Some(Problem::new(codes::MODEL_FUNCTION, message));
        let open = &self.frames[at.frame].expanding;
        if open.iter().any(|&other| std::ptr::eq(other, function)) {
            return error("calls itself".to_owned());
        }
        if at.level >= super::graph::MAX_LEVELS {
            let message = format!("functions call each other more than {} deep", at.level);
            return Some(Problem::new(codes::MODEL_TOO_DEEP, message));
        }
        if self.n_expanded + function.node.len() > MAX_EXPANDED {
            let message = format!("functions expand to more than {MAX_EXPANDED} nodes");
            return Some(Problem::new(codes::MODEL_TOO_LARGE, message));
        }
        if node.input.len() > function.input.len() {
            let (found, most) = (node.input.len(), function.input.len());
            return error(format!("has {found} inputs, expected at most {most}"));
        }
        if node.output.len() > function.output.len() {
            let (found, most) = (node.output.len(), function.output.len());
            return error(format!("has {found} outputs, expected at most {most}"));
        }
        let known = |name: &str| {
            function.attribute.iter().any(|other| other == name)
                || function
                    .attribute_proto
                    .iter()
                    .any(|it| it.name.as_deref() == Some(name))
        };
        for attribute in &node.attribute {
            let name = attribute.name.as_deref().unwrap_or("");
            if !known(name) {
                return error(format!(
                    "has the attribute '{}', which its function lacks",
                    shown(name)
                ));
            }
        }
        None
    }

    /// Returns what attributes mean inside a function: what the node says, else the default.
    fn bind(
        &self,
        function: &'m Function,
        node: &'m Node,
        at: Context<'_>,
    ) -> HashMap<&'m str, Bound<'m>> {
        let mut bound = HashMap::new();
        for default in &function.attribute_proto {
            let name = default.name.as_deref().unwrap_or("");
            bound.insert(
                name,
                Bound {
                    attribute: default,
                    frame: at.frame,
                    scope: at.scope,
                },
            );
        }
        for attribute in &node.attribute {
            let name = attribute.name.as_deref().unwrap_or("");
            let stated = Bound {
                attribute,
                frame: at.frame,
                scope: at.scope,
            };
            match attribute.ref_attr_name.as_deref() {
                None | Some("") => {
                    bound.insert(name, stated);
                }
                // What the function around was called with; its default if with nothing.
                Some(reference) => {
                    if let Some(outer) = self.frames[at.frame].attributes.get(reference) {
                        bound.insert(name, *outer);
                    }
                }
            }
        }
        bound
    }
}
