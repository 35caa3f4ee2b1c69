//! The differences between two modules.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use serde::Serialize;
use tfrt::ir::{Attribute, BlockId, Def, Module, Name, OpId, RegionId, ValueId, visible};

use super::align::align;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The function, and the operation if the difference is inside of one.
    place: String,
    /// The property that differs.
    what: &'static str,
    /// The old program's value of it, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<String>,
    /// The new program's value of it, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", visible::name(&self.place), self.what)?;
        if let Some(old) = &self.old {
            write!(f, "\n  - {}", visible::name(old))?;
        }
        if let Some(new) = &self.new {
            write!(f, "\n  + {}", visible::name(new))?;
        }
        Ok(())
    }
}

/// Attributes that tell the compiler how to treat an operation, and not what the operation does.
const NOT_COMPARED: [&str; 2] = ["_tfrt_streams", "_tfrt_cost"];

/// The attribute that says that one operand is enough; a flag of the kernel in files.
const NONSTRICT: &str = "bef.nonstrict";

/// The level of detail that both programs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything that files can hold.
    Full,
    /// The rest that a stripped file has: of attributes and results only how many there are, but
    /// for the functions that are referred to.
    Stripped,
}

/// The operation of functions. All of its attributes are parts of the function.
const FUNCTION: &str = "func.func";

/// Compares two modules.
pub fn modules(old: &Module, new: &Module, detail: Detail) -> Vec<Difference> {
    let mut comparison = Comparison {
        detail,
        old,
        new,
        differences: Vec::new(),
        hash: RandomState::new(),
        same_values: HashMap::new(),
    };
    comparison.run();
    comparison.differences
}

struct Comparison<'c> {
    detail: Detail,
    old: &'c Module,
    new: &'c Module,
    differences: Vec<Difference>,
    hash: RandomState,
    /// The values of the new program, by those of the old one that they correspond to.
    same_values: HashMap<ValueId, ValueId>,
}

impl Comparison<'_> {
    fn run(&mut self) {
        let (old, new) = (self.old, self.new);
        let (olds, news) = (old.symbol_table(old.top()), new.symbol_table(new.top()));
        for op in old.children(old.top()) {
            let name = old.symbol_name(op).unwrap_or_default();
            let place = format!("@{name}");
            match news.get(name) {
                None => self.tell(&place, "is gone", None, None),
                Some(other) => self.operation(&place, op, *other),
            }
        }
        for op in new.children(new.top()) {
            let name = new.symbol_name(op).unwrap_or_default();
            if !olds.contains_key(name) {
                self.tell(&format!("@{name}"), "is new", None, None);
            }
        }
    }

    fn tell(&mut self, place: &str, what: &'static str, old: Option<String>, new: Option<String>) {
        self.differences.push(Difference {
            place: place.to_owned(),
            what,
            old,
            new,
        });
    }

    /// Compares two operations that correspond, but for their operands.
    ///
    /// Recursion is bounded by the formats' limits on nesting.
    fn operation(&mut self, place: &str, old: OpId, new: OpId) {
        let (data, other) = (self.old.op(old), self.new.op(new));
        if data.name() != other.name() {
            let names = [data, other].map(|op| Some(op.name().to_string()));
            let [before, after] = names;
            return self.tell(place, "is another operation", before, after);
        }
        self.attributes(place, old, new);
        let (before, after) = (functions(self.old, old), functions(self.new, new));
        if before != after {
            self.tell(
                place,
                "refers to other functions",
                Some(before),
                Some(after),
            );
        }
        let before = results(self.old, old, self.detail);
        let after = results(self.new, new, self.detail);
        if before != after {
            self.tell(place, "has other results", Some(before), Some(after));
        }
        let results = data.results().iter().copied();
        self.same_values
            .extend(results.zip(other.results().iter().copied()));
        let (before, after) = (data.regions(), other.regions());
        if before.len() != after.len() {
            let numbers = [before.len(), after.len()].map(|n| Some(n.to_string()));
            let [before, after] = numbers;
            return self.tell(place, "has another number of regions", before, after);
        }
        for (position, (before, after)) in before.iter().zip(after).enumerate() {
            let inner = match data.regions().len() {
                1 => place.to_owned(),
                _ => format!("{place} region {position}"),
            };
            self.region(&inner, *before, *after);
        }
    }

    fn attributes(&mut self, place: &str, old: OpId, new: OpId) {
        let (data, other) = (self.old.op(old), self.new.op(new));
        let is_known = |name: &Name| match self.detail {
            Detail::Full => true,
            Detail::Stripped => is_left(self.old, old, name) && is_left(self.new, new, name),
        };
        let mut names: Vec<&Name> = data.attributes().iter().map(|(name, _)| name).collect();
        names.extend(other.attributes().iter().map(|(name, _)| name));
        names.sort();
        names.dedup();
        names.retain(|name| is_known(name));
        for name in names {
            let (before, after) = (data.attribute(name), other.attribute(name));
            let is_compared = |value: Option<&Attribute>| {
                !NOT_COMPARED.contains(&name.as_str()) && value.is_none_or(|v| callees(v).is_none())
            };
            if before != after && is_compared(before) && is_compared(after) {
                let show = |value: Option<&Attribute>| {
                    value.map(|value| format!("{name} = {}", shortened(value.to_string())))
                };
                self.tell(place, "has another attribute", show(before), show(after));
            }
        }
        if self.detail == Detail::Stripped {
            let numbers = [n_values(self.old, old), n_values(self.new, new)];
            if numbers[0] != numbers[1] {
                let [before, after] = numbers.map(|n| Some(n.to_string()));
                self.tell(place, "has another number of attributes", before, after);
            }
        }
    }

    fn region(&mut self, place: &str, old: RegionId, new: RegionId) {
        let blocks = self.old.region(old).blocks().iter();
        let others = self.new.region(new).blocks();
        if blocks.len() != others.len() {
            let numbers = [blocks.len(), others.len()].map(|n| Some(n.to_string()));
            let [before, after] = numbers;
            return self.tell(place, "has another number of blocks", before, after);
        }
        for (block, other) in blocks.zip(others) {
            self.block(place, *block, *other);
        }
    }

    fn block(&mut self, place: &str, old: BlockId, new: BlockId) {
        let (data, other) = (self.old.block(old), self.new.block(new));
        let types = |module: &Module, values: &[ValueId]| types(module, values);
        let before = types(self.old, data.arguments());
        let after = types(self.new, other.arguments());
        if before != after {
            self.tell(place, "has other arguments", Some(before), Some(after));
        }
        let arguments = data.arguments().iter().copied();
        self.same_values
            .extend(arguments.zip(other.arguments().iter().copied()));
        let (olds, news) = (data.operations(), other.operations());
        let pairs = self.pairs(olds, news);
        let mut partner_of_new = vec![false; news.len()];
        let mut partner_of_old: Vec<Option<usize>> = vec![None; olds.len()];
        for (a, b) in pairs {
            partner_of_old[a] = Some(b);
            partner_of_new[b] = true;
        }
        let mut next_new = 0;
        for (a, op) in olds.iter().enumerate() {
            match partner_of_old[a] {
                None => {
                    let text = line(self.old, *op, self.detail);
                    self.tell(place, "lacks an operation", Some(text), None);
                }
                Some(b) => {
                    self.added(place, &news[next_new..b], &partner_of_new[next_new..b]);
                    next_new = b + 1;
                    let inner = format!("{place} {} {}", self.old.op(*op).name(), a + 1);
                    self.operation(&inner, *op, news[b]);
                    self.edges(&inner, *op, news[b]);
                }
            }
        }
        self.added(place, &news[next_new..], &partner_of_new[next_new..]);
    }

    fn added(&mut self, place: &str, ops: &[OpId], has_partner: &[bool]) {
        for (op, _) in ops.iter().zip(has_partner).filter(|(_, has)| !**has) {
            let text = line(self.new, *op, self.detail);
            self.tell(place, "has one more operation", None, Some(text));
        }
    }

    /// Pairs the operations of two blocks: those that are the same in all but operands and
    /// regions, then of those that are left between two pairs those with the same name.
    fn pairs(&self, olds: &[OpId], news: &[OpId]) -> Vec<(usize, usize)> {
        let keys = |module: &Module, ops: &[OpId], key: fn(&Module, OpId, Detail) -> String| {
            let hashes = ops
                .iter()
                .map(|op| self.hash.hash_one(key(module, *op, self.detail)));
            hashes.collect::<Vec<u64>>()
        };
        let exact = align(
            &keys(self.old, olds, signature),
            &keys(self.new, news, signature),
        );
        let name = |module: &Module, op: OpId, _| module.op(op).name().to_string();
        let (old_names, new_names) = (keys(self.old, olds, name), keys(self.new, news, name));
        let mut pairs = Vec::with_capacity(exact.len());
        let (mut a, mut b) = (0, 0);
        for (next_a, next_b) in exact.into_iter().chain([(olds.len(), news.len())]) {
            let between = align(&old_names[a..next_a], &new_names[b..next_b]);
            pairs.extend(between.into_iter().map(|(i, j)| (a + i, b + j)));
            if next_a < olds.len() {
                pairs.push((next_a, next_b));
            }
            (a, b) = (next_a + 1, next_b + 1);
        }
        pairs
    }

    /// Compares where the operands of two operations come from.
    fn edges(&mut self, place: &str, old: OpId, new: OpId) {
        let (before, after) = (self.old.op(old).operands(), self.new.op(new).operands());
        if before.len() != after.len() {
            let before = known_types(self.old, before, self.detail);
            let after = known_types(self.new, after, self.detail);
            return self.tell(place, "has other operands", Some(before), Some(after));
        }
        for (position, (value, other)) in before.iter().zip(after).enumerate() {
            if self.same_values.get(value) != Some(other) {
                let old = format!(
                    "operand {position} is {}",
                    origin(self.old, *value, self.detail)
                );
                let new = format!(
                    "operand {position} is {}",
                    origin(self.new, *other, self.detail)
                );
                self.tell(place, "reads another value", Some(old), Some(new));
            }
        }
    }
}

/// Returns an operation as text, without operands and regions.
fn signature(module: &Module, op: OpId, detail: Detail) -> String {
    let data = module.op(op);
    let mut text = format!("{} {}", data.name(), results(module, op, detail));
    let functions = functions(module, op);
    if !functions.is_empty() {
        text.push_str(&format!(" functions {functions}"));
    }
    if detail == Detail::Stripped {
        text.push_str(&format!(" attributes: {}", n_values(module, op)));
        return text;
    }
    for (name, value) in data.attributes() {
        if !NOT_COMPARED.contains(&name.as_str()) && callees(value).is_none() {
            text.push_str(&format!(" {name} = {value}"));
        }
    }
    text
}

/// Returns the functions that an attribute names. The names of such attributes are not in
/// files; only the order of the functions is.
fn callees(value: &Attribute) -> Option<Vec<&Name>> {
    match value.as_array() {
        Some([]) | None => Some(vec![value.as_flat_symbol()?]),
        Some(list) => list.iter().map(Attribute::as_flat_symbol).collect(),
    }
}

/// Returns the functions that an operation names, in order.
fn functions(module: &Module, op: OpId) -> String {
    let attributes = module.op(op).attributes().iter();
    let names = attributes.filter_map(|(_, value)| callees(value)).flatten();
    let names: Vec<String> = names.map(|name| format!("@{name}")).collect();
    names.join(", ")
}

/// Returns an operation as one line for people.
fn line(module: &Module, op: OpId, detail: Detail) -> String {
    shortened(signature(module, op, detail))
}

/// Returns the types of the results, or how many there are.
fn results(module: &Module, op: OpId, detail: Detail) -> String {
    known_types(module, module.op(op).results(), detail)
}

fn known_types(module: &Module, values: &[ValueId], detail: Detail) -> String {
    match detail {
        Detail::Full => types(module, values),
        Detail::Stripped => format!("({})", values.len()),
    }
}

/// Returns whether a stripped file has an attribute, by name and value.
fn is_left(module: &Module, op: OpId, name: &Name) -> bool {
    let data = module.op(op);
    if data.name().as_str() != FUNCTION {
        return name.as_str() == NONSTRICT;
    }
    // The types of what a function returns are those of its registers.
    let mut regions = data.regions().iter();
    name.as_str() != "function_type"
        || regions.all(|region| module.region(*region).blocks().is_empty())
}

/// Counts the attributes that are known by number only.
fn n_values(module: &Module, op: OpId) -> usize {
    let data = module.op(op);
    if data.name().as_str() == FUNCTION {
        return 0;
    }
    let attributes = data.attributes().iter();
    let values = attributes.filter(|(name, value)| {
        let name = name.as_str();
        !NOT_COMPARED.contains(&name) && name != NONSTRICT && callees(value).is_none()
    });
    values.count()
}

fn types(module: &Module, values: &[ValueId]) -> String {
    let types = values
        .iter()
        .map(|value| module.value_type(*value).to_string());
    format!("({})", types.collect::<Vec<_>>().join(", "))
}

/// Returns the producer of a value, as text.
fn origin(module: &Module, value: ValueId, detail: Detail) -> String {
    match module.value_def(value) {
        Def::Argument(_, index) => format!("argument {index}"),
        Def::Result(op, index) => format!("result {index} of {}", line(module, op, detail)),
    }
}

/// Cuts text that is too long to be read.
fn shortened(text: String) -> String {
    const MAX_CHARACTERS: usize = 120;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
