//! Sorts the nodes of a graph.
//!
//! A model should list each node behind those whose results it takes. One that does not is put
//! in order; nodes that wait for each other are refused.

use std::collections::HashMap;

use super::proto::Node;

/// Returns an order of nodes in which operands come before their users; `None` if the nodes are sorted already.
///
/// # Errors
///
/// Nodes each of which takes a result of the one before, and the first of the last one.
pub(super) fn sorted(nodes: &[Node]) -> Result<Option<Vec<usize>>, Vec<usize>> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        for output in node.output.iter().filter(|name| !name.is_empty()) {
            makers.entry(output).or_insert(index);
        }
    }
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    let mut in_order = true;
    for (index, node) in nodes.iter().enumerate() {
        let mut list = Vec::new();
        used(node, &mut |name| {
            if let Some(&maker) = makers.get(name) {
                in_order &= maker < index;
                list.push(maker);
            }
        });
        needs.push(list);
    }
    if in_order {
        return Ok(None);
    }
    // Depth first, on a stack of our own: a node is taken when all that it needs was.
    let mut state = vec![State::New; nodes.len()];
    let mut order = Vec::with_capacity(nodes.len());
    for start in 0..nodes.len() {
        if state[start] != State::New {
            continue;
        }
        let mut stack = vec![(start, 0)];
        state[start] = State::Open;
        while let Some((node, next)) = stack.last_mut() {
            let node = *node;
            let Some(&need) = needs[node].get(*next) else {
                state[node] = State::Taken;
                order.push(node);
                stack.pop();
                continue;
            };
            *next += 1;
            match state[need] {
                State::Taken => {}
                State::New => {
                    state[need] = State::Open;
                    stack.push((need, 0));
                }
                State::Open => {
                    let open = stack.iter().map(|&(node, _)| node);
                    return Err(open.skip_while(|&node| node != need).collect());
                }
            }
        }
    }
    Ok(Some(order))
}

/// The state of a node in the search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Taken,
}

/// Calls `each` with the names of a node's operands, those of its subgraphs included. The gate has bounded how deep
/// these are.
fn used<'m>(node: &'m Node, each: &mut dyn FnMut(&'m str)) {
    node.input.iter().for_each(|name| each(name));
    for attribute in &node.attribute {
        for graph in attribute.g.as_deref().into_iter().chain(&attribute.graphs) {
            // Names that the subgraph makes itself hide those outside.
            let mut own: std::collections::HashSet<&str> = std::collections::HashSet::new();
            own.extend(graph.input.iter().filter_map(|input| input.name.as_deref()));
            own.extend(
                graph
                    .initializer
                    .iter()
                    .filter_map(|one| one.name.as_deref()),
            );
            for node in &graph.node {
                own.extend(node.output.iter().map(String::as_str));
            }
            let mut outer = |name: &'m str| {
                if !own.contains(name) {
                    each(name);
                }
            };
            graph.node.iter().for_each(|node| used(node, &mut outer));
            let outputs = graph
                .output
                .iter()
                .filter_map(|output| output.name.as_deref());
            outputs.for_each(outer);
        }
    }
}
