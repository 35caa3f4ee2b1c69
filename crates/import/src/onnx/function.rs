//! Functions of a model, which are expanded where they are called.

use std::{collections::HashMap, rc::Rc};

use tfrt_ir::{Diagnostics, Location, ValueId};

use super::{
    attributes::BoundAttribute,
    graph::{Context, DeclaredTypes, Frame, Importer, MAX_DEPTH, ModelPos},
    model::{Opsets, domain},
    problem::{Problem, shown},
    proto::{Function, Node},
};
use crate::codes;

/// The most nodes that all calls of functions become. A short chain of functions, each of which calls the next twice,
/// would become astronomically many.
const MAX_EXPANDED: usize = 200_000;

/// The key of a function: domain, name and overload.
type Key<'m> = (&'m str, &'m str, &'m str);

/// The functions of a model.
#[derive(Default)]
pub(super) struct Functions<'m> {
    by_name: HashMap<Key<'m>, usize>,
    all: Vec<FunctionInfo<'m>>,
}

/// A function, with the size of an expanded call.
pub(super) struct FunctionInfo<'m> {
    function: &'m Function,
    extent: ExpandedSize<'m>,
    /// The versions of operator sets, once they were read.
    opsets: Option<Rc<Opsets<'m>>>,
}

/// The size of a call of a function when it is expanded.
#[derive(Clone, Copy)]
enum ExpandedSize<'m> {
    /// So many nodes, and calls nested so deep.
    Finite { n_nodes: usize, depth: usize },
    /// No end: the call leads to a function of this name that calls itself.
    Endless(&'m str),
}

impl<'m> Functions<'m> {
    /// Lists functions, and finds the size of a call of each; reports functions that are defined twice.
    pub(super) fn of(
        functions: &'m [Function],
        place: &Location,
        errors: &mut Diagnostics,
    ) -> Functions<'m> {
        let mut by_name = HashMap::new();
        for (index, function) in functions.iter().enumerate() {
            let name = function.name.as_deref().unwrap_or("");
            let key = (
                domain(function.domain.as_deref()),
                name,
                function.overload.as_deref().unwrap_or(""),
            );
            if by_name.insert(key, index).is_some() {
                let message = format!("the model has the function '{}' twice", shown(name));
                errors.push(Problem::new(codes::MODEL_FUNCTION, message).at(place.clone()));
            }
        }
        let extents = extents(functions, &by_name);
        let all = functions.iter().zip(extents);
        let all = all.map(|(function, extent)| FunctionInfo {
            function,
            extent,
            opsets: None,
        });
        Functions {
            all: all.collect(),
            by_name,
        }
    }

    /// Returns the index of the function that a node calls.
    pub(super) fn called(&self, node: &Node) -> Option<usize> {
        match self.by_name.is_empty() {
            true => None,
            false => self.by_name.get(&key(node)).copied(),
        }
    }
}

fn key(node: &Node) -> Key<'_> {
    (
        domain(node.domain.as_deref()),
        node.op_type.as_deref().unwrap_or(""),
        node.overload.as_deref().unwrap_or(""),
    )
}

/// Finds the size of a call of each function, callees first, on a stack of our own, since chains of calls may be
/// long.
fn extents<'m>(
    functions: &'m [Function],
    by_name: &HashMap<Key<'m>, usize>,
) -> Vec<ExpandedSize<'m>> {
    let calls: Vec<(usize, Vec<usize>)> = functions
        .iter()
        .map(|function| {
            let (mut n_nodes, mut callees) = (0, Vec::new());
            count(&function.node, by_name, &mut n_nodes, &mut callees);
            (n_nodes, callees)
        })
        .collect();
    let mut extents: Vec<Option<ExpandedSize<'m>>> = vec![None; functions.len()];
    let mut is_open = vec![false; functions.len()];
    for start in 0..functions.len() {
        let mut stack = vec![start];
        while let Some(&at) = stack.last() {
            let (n_nodes, callees) = &calls[at];
            if extents[at].is_some() {
                stack.pop();
                continue;
            }
            if !is_open[at] {
                is_open[at] = true;
                stack.extend(callees.iter().filter(|&&callee| extents[callee].is_none()));
                // One that is open calls itself by way of this.
                continue;
            }
            let mut extent = ExpandedSize::Finite {
                n_nodes: *n_nodes,
                depth: 1,
            };
            for &callee in callees {
                let own_name = functions[callee].name.as_deref().unwrap_or("");
                let inner = extents[callee].unwrap_or(ExpandedSize::Endless(own_name));
                extent = match (extent, inner) {
                    (
                        ExpandedSize::Finite { n_nodes, depth },
                        ExpandedSize::Finite {
                            n_nodes: n,
                            depth: d,
                        },
                    ) => ExpandedSize::Finite {
                        n_nodes: n_nodes.saturating_add(n),
                        depth: depth.max(d + 1),
                    },
                    (ExpandedSize::Endless(name), _) | (_, ExpandedSize::Endless(name)) => {
                        ExpandedSize::Endless(name)
                    }
                };
            }
            extents[at] = Some(extent);
            stack.pop();
        }
    }
    extents
        .into_iter()
        .map(|extent| extent.expect("each was found"))
        .collect()
}

/// Counts nodes, those of subgraphs included, and lists the functions that they call.
fn count(
    nodes: &[Node],
    by_name: &HashMap<Key<'_>, usize>,
    n_nodes: &mut usize,
    callees: &mut Vec<usize>,
) {
    *n_nodes += nodes.len();
    for node in nodes {
        callees.extend(by_name.get(&key(node)));
        for attribute in &node.attribute {
            let graphs = attribute.g.as_deref().into_iter().chain(&attribute.graphs);
            graphs.for_each(|graph| count(&graph.node, by_name, n_nodes, callees));
        }
    }
}

impl<'m> Importer<'m> {
    /// Reads the versions of operator sets that functions are written for.
    pub(super) fn function_versions(
        &mut self,
        functions: &'m [Function],
        model: &Opsets<'m>,
        place: &Location,
    ) {
        for (index, function) in functions.iter().enumerate() {
            let name = shown(function.name.as_deref().unwrap_or(""));
            let who = format!("function '{name}'");
            let mut all = self.opsets(&who, &function.opset_import, place);
            for (&domain, &version) in &all {
                if !model.contains_key(domain) {
                    self.state_version(domain, version);
                }
            }
            for (&domain, &version) in model {
                all.entry(domain).or_insert(version);
            }
            self.functions.all[index].opsets = Some(Rc::new(all));
        }
    }

    /// Expands a call, and returns the function's results.
    pub(super) fn call(
        &mut self,
        function: usize,
        node: &'m Node,
        operands: &[Option<ValueId>],
        stated: &DeclaredTypes<'m>,
        at: Context<'_>,
        place: &ModelPos,
    ) -> Vec<Option<ValueId>> {
        let known = &self.functions.all[function];
        let (function, extent, opsets) = (known.function, known.extent, known.opsets.clone());
        if let Some(problem) = self.refuse_call(function, extent, node, at) {
            self.errors
                .push(problem.of(&place.label).at(place.location.clone()));
            return Vec::new();
        }
        if let (true, ExpandedSize::Finite { n_nodes, .. }) =
            (self.frames[at.frame].caller.is_none(), extent)
        {
            self.n_expanded += n_nodes;
        }
        let attributes = self.bind(function, node, at);
        let own = opsets.unwrap_or_else(|| self.frames[at.frame].opsets.clone());
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
        self.frames.push(Frame {
            opsets: own,
            attributes,
            caller: Some(place.location.clone()),
        });
        let inside = Context {
            frame: self.frames.len() - 1,
            scope,
            block: at.block,
            path: &place.path,
            depth: at.depth + 1,
        };
        // What is said of the call's results holds for what gives them.
        let results = function.output.iter().zip(&node.output);
        let of_call =
            results.filter_map(|(own, name)| Some((own.as_str(), *stated.get(name.as_str())?)));
        let stated = of_call
            .chain(super::graph::declared(&function.value_info))
            .collect();
        self.nodes(&function.node, &stated, inside);
        let results = function.output.iter();
        let results = results
            .map(|name| self.result(name, inside, place))
            .collect();
        self.frames.truncate(inside.frame);
        self.scopes.truncate(scope);
        results
    }

    fn result(&mut self, name: &'m str, inside: Context<'_>, place: &ModelPos) -> Option<ValueId> {
        let found = self.find(name, inside.scope);
        if found.is_none() {
            let message = format!("its function makes no value '{}'", shown(name));
            let problem = Problem::new(codes::MODEL_VALUE, message).of(&place.label);
            self.errors.push(problem.at(place.location.clone()));
        }
        found
    }

    /// Returns the reason why a call can't be expanded, if there is one.
    fn refuse_call(
        &self,
        function: &'m Function,
        extent: ExpandedSize<'m>,
        node: &'m Node,
        at: Context<'_>,
    ) -> Option<Problem> {
        let error = |message: String| Some(Problem::new(codes::MODEL_FUNCTION, message));
        let (n_nodes, depth) = match extent {
            ExpandedSize::Finite { n_nodes, depth } => (n_nodes, depth),
            ExpandedSize::Endless(name) => {
                return error(format!(
                    "leads to the function '{}', which calls itself",
                    shown(name)
                ));
            }
        };
        let max_depth = MAX_DEPTH.min(self.limits.depth);
        if at.depth + depth > max_depth {
            let message = format!(
                "leads to functions that call each other {depth} deep, expected at most {max_depth}"
            );
            return Some(Problem::new(codes::MODEL_TOO_DEEP, message));
        }
        // Inside a call it was counted with the call.
        let is_outermost = self.frames[at.frame].caller.is_none();
        if is_outermost && self.n_expanded.saturating_add(n_nodes) > MAX_EXPANDED {
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

    /// Returns the attributes that are visible in a function: those of the node, or the defaults.
    fn bind(
        &self,
        function: &'m Function,
        node: &'m Node,
        at: Context<'_>,
    ) -> HashMap<&'m str, BoundAttribute<'m>> {
        let mut bound = HashMap::new();
        for default in &function.attribute_proto {
            let name = default.name.as_deref().unwrap_or("");
            bound.insert(
                name,
                BoundAttribute {
                    attribute: default,
                    frame: at.frame,
                    scope: at.scope,
                },
            );
        }
        for attribute in &node.attribute {
            let name = attribute.name.as_deref().unwrap_or("");
            let stated = BoundAttribute {
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
