//! `inline`: puts copies of functions where `tfrt.call` calls them.
//!
//! Functions are visited callees first, so that what is copied has its own calls
//! inlined already. A function that can reach itself is not copied. Copied
//! operations are at the place `callsite(CALLEE at CALLER)`. A private function
//! that was copied and that nothing names any longer is removed.
//!
//! A call waits for all its operands; copied operations wait for their own only.
//! So effects must be ordered by the chains inside of the function, as those that
//! `sequence-effects` leaves are: there, each effect waits for the function's
//! chain, directly or not, and nobody relies on other operands or results.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Attribute, BlockId, Diagnostics, Location, Module, Name, OpId, OpState, ValueId};

use super::scope;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "inline",
    summary: "Puts functions where tfrt.call calls them; removes private ones that are left over",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::Plain(run),
};

/// The most operations that one run adds; further calls stay calls.
const MAX_ADDED: usize = 1 << 20;

fn run(module: &mut Module, _: &mut Diagnostics) {
    let graph = CallGraph::new(module);
    let mut copied = HashSet::new();
    let mut left = MAX_ADDED;
    for &function in &graph.callees_first {
        let mut open = scope::region_blocks(module, function);
        while let Some(block) = open.pop() {
            inline_into(module, &graph, block, &mut copied, &mut left);
            for &op in module.block(block).operations() {
                open.extend(scope::region_blocks(module, op));
            }
        }
    }
    remove_unused(module, &copied);
}

/// The call graph, by `tfrt.call` alone.
struct CallGraph {
    functions: HashMap<Name, OpId>,
    /// Functions, each after its callees; recursion aside.
    callees_first: Vec<OpId>,
    /// Functions that can reach themselves.
    recursive: HashSet<OpId>,
}

impl CallGraph {
    fn new(module: &Module) -> CallGraph {
        let all = scope::functions(module);
        let mut functions = HashMap::new();
        for &function in &all {
            if let Some(name) = module.symbol_name(function) {
                functions.entry(Name::from(name)).or_insert(function);
            }
        }
        let mut graph = CallGraph {
            functions,
            callees_first: Vec::new(),
            recursive: HashSet::new(),
        };
        let mut callees: HashMap<OpId, Vec<OpId>> = HashMap::new();
        for &function in &all {
            let mut called = Vec::new();
            module.walk_pre_order(function, &mut |op| {
                called.extend(graph.callee(module, op));
            });
            callees.insert(function, called);
        }
        graph.order(&all, &callees);
        graph
    }

    fn callee(&self, module: &Module, op: OpId) -> Option<OpId> {
        let data = module.op(op);
        if *data.name() != "tfrt.call" {
            return None;
        }
        let name = data.attribute("callee")?.as_flat_symbol()?;
        self.functions.get(name).copied()
    }

    /// Orders functions by Tarjan's algorithm for strongly connected components, with a stack of its own.
    fn order(&mut self, all: &[OpId], callees: &HashMap<OpId, Vec<OpId>>) {
        let mut numbers: HashMap<OpId, usize> = HashMap::new();
        let mut lowest: HashMap<OpId, usize> = HashMap::new();
        let mut component: Vec<OpId> = Vec::new();
        let mut in_component: HashSet<OpId> = HashSet::new();
        for &root in all {
            let mut open = vec![(root, 0)];
            while let Some(&(function, next)) = open.last() {
                if next == 0 {
                    if numbers.contains_key(&function) {
                        open.pop();
                        continue;
                    }
                    let number = numbers.len();
                    numbers.insert(function, number);
                    lowest.insert(function, number);
                    component.push(function);
                    in_component.insert(function);
                }
                if let Some(&callee) = callees[&function].get(next) {
                    if let Some(last) = open.last_mut() {
                        last.1 += 1;
                    }
                    if callee == function {
                        self.recursive.insert(function);
                    } else if !numbers.contains_key(&callee) {
                        open.push((callee, 0));
                        // A callee that calls nothing is done in one step.
                    } else if in_component.contains(&callee) {
                        let low = lowest[&function].min(numbers[&callee]);
                        lowest.insert(function, low);
                    }
                    continue;
                }
                self.close(
                    function,
                    &mut component,
                    &mut in_component,
                    &numbers,
                    &lowest,
                );
                open.pop();
                if let Some(&(caller, _)) = open.last() {
                    let low = lowest[&caller].min(lowest[&function]);
                    lowest.insert(caller, low);
                }
            }
        }
    }

    /// Ends a component if the function is its first.
    fn close(
        &mut self,
        function: OpId,
        component: &mut Vec<OpId>,
        in_component: &mut HashSet<OpId>,
        numbers: &HashMap<OpId, usize>,
        lowest: &HashMap<OpId, usize>,
    ) {
        if lowest[&function] != numbers[&function] {
            return;
        }
        let first = component.iter().rposition(|&member| member == function);
        let members = component.split_off(first.unwrap_or(component.len()));
        if members.len() > 1 {
            self.recursive.extend(members.iter().copied());
        }
        for member in members {
            in_component.remove(&member);
            self.callees_first.push(member);
        }
    }
}

/// Inlines the calls in a block.
fn inline_into(
    module: &mut Module,
    graph: &CallGraph,
    block: BlockId,
    copied: &mut HashSet<OpId>,
    left: &mut usize,
) {
    let mut operations = Vec::new();
    let mut gone = Vec::new();
    for op in module.block(block).operations().to_vec() {
        let callee = graph.callee(module, op);
        let callee = callee.filter(|callee| !graph.recursive.contains(callee));
        let body = callee.and_then(|callee| Some((callee, body(module, op, callee)?)));
        let Some((callee, body)) = body else {
            operations.push(op);
            continue;
        };
        let size = module.n_ops();
        let n_body = n_operations(module, body);
        if n_body > *left {
            operations.push(op);
            continue;
        }
        let results = copy_body(module, body, op, &mut operations);
        *left -= module.n_ops() - size;
        scope::replace(module, op, &results);
        copied.insert(callee);
        gone.push(op);
    }
    if gone.is_empty() {
        return;
    }
    module.set_operations(block, operations);
    for op in gone {
        module.erase(op);
    }
}

/// Returns the number of operations in a block, those in regions included.
fn n_operations(module: &Module, block: BlockId) -> usize {
    let mut n = 0;
    for &op in module.block(block).operations() {
        module.walk_pre_order(op, &mut |_| n += 1);
    }
    n
}

/// Returns the body of a function if it can replace a call.
fn body(module: &Module, call: OpId, callee: OpId) -> Option<BlockId> {
    let (call, function) = (module.op(call), module.op(callee));
    let marked = ["tfrt.native", "tfrt.sync"];
    if marked.iter().any(|mark| function.attribute(mark).is_some())
        || call.attribute("bef.nonstrict").is_some()
    {
        return None;
    }
    let &[block] = module.region(*function.regions().first()?).blocks() else {
        return None;
    };
    let end = module.op(module.block(block).last()?);
    let types = |values: &[ValueId]| -> Vec<_> {
        let types = values.iter().map(|&value| module.value_type(value).clone());
        types.collect()
    };
    let fits = *end.name() == "tfrt.return"
        && types(module.block(block).arguments()) == types(call.operands())
        && types(end.operands()) == types(call.results());
    fits.then_some(block)
}

/// Copies a function's operations behind others; returns the values that it returns.
fn copy_body(
    module: &mut Module,
    body: BlockId,
    call: OpId,
    operations: &mut Vec<OpId>,
) -> Vec<ValueId> {
    let place = module.op(call).location().clone();
    let arguments = module.block(body).arguments().iter().copied();
    let mut values: HashMap<ValueId, ValueId> = arguments
        .zip(module.op(call).operands().iter().copied())
        .collect();
    let source = module.block(body).operations().to_vec();
    let Some((&end, source)) = source.split_last() else {
        return Vec::new();
    };
    for &op in source {
        operations.push(copy(module, op, &place, &mut values));
    }
    let given = module.op(end).operands().iter();
    given
        .map(|value| *values.get(value).unwrap_or(value))
        .collect()
}

/// Copies an operation and all within it.
///
/// Recursion is bounded by the parser's limit on nesting.
fn copy(
    module: &mut Module,
    op: OpId,
    place: &Location,
    values: &mut HashMap<ValueId, ValueId>,
) -> OpId {
    let data = module.op(op).clone();
    let operands = data.operands().iter();
    let result_types = data.results().iter();
    let mut state = OpState::new(data.name().clone())
        .operands(operands.map(|value| *values.get(value).unwrap_or(value)))
        .results(result_types.map(|&value| module.value_type(value).clone()))
        .location(Location::call_site(data.location().clone(), place.clone()));
    for (name, value) in data.attributes() {
        state = state.attribute(name.clone(), value.clone());
    }
    for &region in data.regions() {
        let target = module.create_region();
        state = state.region(target);
        for block in module.region(region).blocks().to_vec() {
            let to = module.create_block(target);
            for (index, argument) in module
                .block(block)
                .arguments()
                .to_vec()
                .into_iter()
                .enumerate()
            {
                let ty = module.value_type(argument).clone();
                let location = module.block(block).argument_location(index);
                let new = module.add_argument(to, ty, location);
                values.insert(argument, new);
            }
            for inner in module.block(block).operations().to_vec() {
                let inner = copy(module, inner, place, values);
                module.append(to, inner);
            }
        }
    }
    let new = module.create(state);
    let results = module.op(new).results().to_vec();
    values.extend(data.results().iter().copied().zip(results));
    new
}

/// Removes private functions of a set without references, and then those that only they referred to.
fn remove_unused(module: &mut Module, candidates: &HashSet<OpId>) {
    let mut uses: HashMap<Name, usize> = HashMap::new();
    let top = module.top();
    module.walk_pre_order(top, &mut |op| {
        names(module, op, &mut |name| {
            *uses.entry(name.clone()).or_default() += 1;
        })
    });
    let is_unused = |module: &Module, uses: &HashMap<Name, usize>, function: OpId| {
        let visibility = module.op(function).attribute("sym_visibility");
        let is_private = visibility.and_then(Attribute::as_str) == Some("private");
        let name = module.symbol_name(function);
        is_private && name.is_some_and(|name| uses.get(name).copied().unwrap_or(0) == 0)
    };
    let mut gone = HashSet::new();
    let mut open: Vec<OpId> = candidates.iter().copied().collect();
    while let Some(function) = open.pop() {
        if !is_unused(module, &uses, function) || !gone.insert(function) {
            continue;
        }
        module.walk_pre_order(function, &mut |op| {
            names(module, op, &mut |name| {
                if let Some(n) = uses.get_mut(name) {
                    *n -= 1;
                    let named = (*n == 0).then(|| module.lookup_symbol(name)).flatten();
                    open.extend(named.filter(|named| candidates.contains(named)));
                }
            })
        });
    }
    scope::retain(module, module.body(), |op| !gone.contains(&op));
}

/// Calls `tell` with every symbol in the attributes of an operation.
fn names(module: &Module, op: OpId, tell: &mut dyn FnMut(&Name)) {
    let attributes = module.op(op).attributes().iter();
    let mut open: Vec<&Attribute> = attributes.map(|(_, value)| value).collect();
    while let Some(attribute) = open.pop() {
        match attribute {
            Attribute::Symbol(symbol) => tell(&symbol.root),
            Attribute::Array(elements) => open.extend(elements.iter()),
            Attribute::Dictionary(entries) => {
                open.extend(entries.entries().iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::passes::testing::check;

    #[test]
    fn callees_of_callees_are_inlined_and_private_ones_go() {
        check(
            "inline",
            r#"func.func private @twice(%x: i32) -> i32 {
                 %y = tfrt.add.i32 %x, %x
                 tfrt.return %y : i32
               }
               func.func private @four(%x: i32) -> i32 {
                 %y = tfrt.call @twice(%x) : (i32) -> i32
                 %z = tfrt.call @twice(%y) : (i32) -> i32
                 tfrt.return %z : i32
               }
               func.func @main(%x: i32, %p: i1) -> i32 {
                 %r = tfrt.if %p, %x : (i32) -> (i32) {
                   %y = tfrt.call @four(%x) : (i32) -> i32
                   tfrt.return %y : i32
                 } else {
                   tfrt.return %x : i32
                 }
                 tfrt.return %r : i32
               }"#,
            expect![[r#"
                func.func @main(%arg0: i32, %arg1: i1) -> i32 {
                  %0 = tfrt.if %arg1, %arg0 : (i32) -> (i32)  {
                    %1 = tfrt.add.i32 %arg0, %arg0
                    %2 = tfrt.add.i32 %1, %1
                    tfrt.return %2 : i32
                  } else  {
                    tfrt.return %arg0 : i32
                  }
                  tfrt.return %0 : i32
                }
            "#]],
        );
    }

    #[test]
    fn recursion_is_left_alone() {
        check(
            "inline",
            r#"func.func private @even(%p: i1, %x: i32) -> i32 {
                 %r = tfrt.call @odd(%p, %x) : (i1, i32) -> i32
                 tfrt.return %r : i32
               }
               func.func private @odd(%p: i1, %x: i32) -> i32 {
                 %r = tfrt.cond %p @even @odd (%p, %x) : (i1, i32) -> (i32)
                 %s = tfrt.call @even(%p, %r) : (i1, i32) -> i32
                 tfrt.return %s : i32
               }
               func.func private @self(%x: i32) -> i32 {
                 %r = tfrt.call @self(%x) : (i32) -> i32
                 tfrt.return %r : i32
               }
               func.func @main(%p: i1, %x: i32) -> i32 {
                 %r = tfrt.call @even(%p, %x) : (i1, i32) -> i32
                 %s = tfrt.call @self(%r) : (i32) -> i32
                 tfrt.return %s : i32
               }"#,
            expect![[r#"
                func.func private @even(%arg0: i1, %arg1: i32) -> i32 {
                  %0 = tfrt.call @odd(%arg0, %arg1) : (i1, i32) -> i32
                  tfrt.return %0 : i32
                }
                func.func private @odd(%arg0: i1, %arg1: i32) -> i32 {
                  %0 = tfrt.cond %arg0 @even @odd (%arg0, %arg1) : (i1, i32) -> (i32)
                  %1 = tfrt.call @even(%arg0, %0) : (i1, i32) -> i32
                  tfrt.return %1 : i32
                }
                func.func private @self(%arg0: i32) -> i32 {
                  %0 = tfrt.call @self(%arg0) : (i32) -> i32
                  tfrt.return %0 : i32
                }
                func.func @main(%arg0: i1, %arg1: i32) -> i32 {
                  %0 = tfrt.call @even(%arg0, %arg1) : (i1, i32) -> i32
                  %1 = tfrt.call @self(%0) : (i32) -> i32
                  tfrt.return %1 : i32
                }
            "#]],
        );
    }

    #[test]
    fn functions_that_are_named_elsewhere_or_native_stay() {
        check(
            "inline",
            r#"func.func private @native_add(i32, i32) -> i32 attributes {tfrt.native}
               func.func private @one(%x: i32) -> i32 {
                 tfrt.return %x : i32
               }
               func.func @main(%x: i32) -> i32 {
                 %r = tfrt.call @one(%x) : (i32) -> i32
                 %s = tfrt.call @native_add(%r, %x) : (i32, i32) -> i32
                 %t = tfrt.once @one(%s) : (i32) -> (i32)
                 tfrt.return %t : i32
               }"#,
            expect![[r#"
                func.func private @native_add(i32, i32) -> i32 attributes {tfrt.native}
                func.func private @one(%arg0: i32) -> i32 {
                  tfrt.return %arg0 : i32
                }
                func.func @main(%arg0: i32) -> i32 {
                  %0 = tfrt.call @native_add(%arg0, %arg0) : (i32, i32) -> i32
                  %1 = tfrt.once @one(%0) : (i32) -> (i32)
                  tfrt.return %1 : i32
                }
            "#]],
        );
    }
}
