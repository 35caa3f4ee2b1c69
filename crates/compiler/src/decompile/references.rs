//! Attributes of kernels that refer to functions, whose names the format does not keep.
//!
//! Three things tell what is left to tell. The operation's definition names its attributes. The
//! name of an attribute that lists functions is a string that nothing else in the file refers
//! to. And functions are in the order of their attributes' names. What remains is `callee`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};

use tfrt_bef::{BefFile, FunctionIndex, KernelCode, KernelView, SectionId, TypeIndex};
use tfrt_ir::{
    Attribute, Name,
    dialect::{self, AttributeKind},
};

use super::names::Names;

/// The name of an attribute that refers to functions, where no definition gives one.
const CALLEE: &str = "callee";

/// The names of such attributes, by kernel.
pub(super) struct References {
    /// The names of attributes that list functions, for kernels without a definition.
    lists: HashMap<u32, Vec<String>>,
}

impl References {
    pub(super) fn new(file: &BefFile) -> References {
        let mut names = unused_strings(file);
        // Kernels whose functions need names, and the most functions that one has.
        let mut kernels: Vec<(KernelCode, usize)> = Vec::new();
        let mut positions = HashMap::new();
        for kernel in all_kernels(file) {
            let n_functions = named(file, &kernel).count();
            let code = kernel.code();
            let slots = slots(kernel.name());
            if !slots.is_empty() || n_functions == 0 {
                slots.iter().filter(|slot| slot.is_list).for_each(|slot| {
                    names.remove(slot.name);
                });
                continue;
            }
            let position = *positions.entry(code).or_insert(kernels.len());
            match kernels.get_mut(position) {
                Some((_, most)) => *most = n_functions.max(*most),
                None => kernels.push((code, n_functions)),
            }
        }
        // Those with the most functions are the likeliest to have a list.
        kernels.sort_by_key(|(_, most)| Reverse(*most));
        let mut lists: HashMap<u32, Vec<String>> = HashMap::new();
        let mut room = VecDeque::from(kernels);
        for name in names {
            let Some((code, left)) = room.pop_front() else {
                break;
            };
            lists.entry(code.0).or_default().push(name);
            if left > 1 {
                room.push_back((code, left - 1));
            }
        }
        lists.values_mut().for_each(|names| names.sort());
        References { lists }
    }

    /// Returns the attributes of a kernel that refer to functions, under names that are not `taken`.
    pub(super) fn of_kernel(
        &self,
        file: &BefFile,
        kernel: &KernelView<'_>,
        known: &mut Names,
        taken: &dyn Fn(&str) -> bool,
    ) -> Vec<(Name, Attribute)> {
        let functions = named(file, kernel).map(|name| Attribute::symbol(known.get(name)));
        let functions: Vec<Attribute> = functions.collect();
        let mut left = &functions[..];
        let mut found = Vec::new();
        let mut put = |name: &str, value| found.push((Name::from(name), value));
        if let Some(names) = self.lists.get(&kernel.code().0) {
            for (position, name) in names.iter().enumerate() {
                if left.is_empty() {
                    break;
                }
                if taken(name) {
                    continue;
                }
                let is_last = position + 1 == names.len();
                let n_taken = if is_last { left.len() } else { 1 };
                let (list, rest) = left.split_at(n_taken);
                put(name, Attribute::array(list.to_vec()));
                left = rest;
            }
        }
        let slots = slots(kernel.name());
        for (position, slot) in slots.iter().enumerate() {
            if left.is_empty() || taken(slot.name) {
                break;
            }
            let n_behind = slots.len() - position - 1;
            let n_taken = match slot.is_list {
                true => left.len().saturating_sub(n_behind).max(1),
                false => 1,
            };
            let (own, rest) = left.split_at(n_taken);
            put(
                slot.name,
                match slot.is_list {
                    true => Attribute::array(own.to_vec()),
                    false => own[0].clone(),
                },
            );
            left = rest;
        }
        // What follows sorts behind the names given so far.
        let last = found.last().map(|(name, _)| name.to_string());
        let mut base = last.unwrap_or_else(|| CALLEE.to_owned());
        let is_alone = left.len() == 1 && found.is_empty();
        let width = left.len().saturating_sub(1).to_string().len();
        let name = |base: &str, position: usize| match is_alone {
            true => base.to_owned(),
            false => format!("{base}{position:0width$}"),
        };
        while (0..left.len()).any(|position| taken(&name(&base, position))) {
            base.push('_');
        }
        for (position, function) in left.iter().enumerate() {
            found.push((name(&base, position).into(), function.clone()));
        }
        found
    }
}

/// An attribute of an operation that refers to functions, in its definition.
struct Slot {
    name: &'static str,
    is_list: bool,
}

/// Returns the attributes in the definition of an operation that refer to functions, in the order of the names.
fn slots(operation: &str) -> Vec<Slot> {
    let definition = dialect::lookup(operation);
    let attributes = definition.map_or(&[][..], |definition| definition.attribute_defs());
    let slots = attributes.iter().filter_map(|attribute| {
        let is_list = match attribute.kind {
            AttributeKind::FlatSymbol => false,
            AttributeKind::FlatSymbols => true,
            _ => return None,
        };
        Some(Slot {
            name: attribute.name,
            is_list,
        })
    });
    let mut slots: Vec<Slot> = slots.collect();
    slots.sort_by_key(|slot| slot.name);
    slots
}

/// Returns the names of the functions that a kernel refers to.
fn named<'f>(file: &'f BefFile, kernel: &KernelView<'f>) -> impl Iterator<Item = &'f str> {
    let functions = kernel.functions().iter();
    let names = functions.map(|index| file.function(FunctionIndex(*index)).name());
    names.filter(|name| !name.is_empty())
}

fn all_kernels(file: &BefFile) -> impl Iterator<Item = KernelView<'_>> {
    let bodies = file.functions().filter_map(|function| function.body());
    bodies.flat_map(|body| body.kernels())
}

/// Returns the strings that nothing in the file refers to.
fn unused_strings(file: &BefFile) -> BTreeSet<String> {
    if !file.has_optional_sections() {
        return BTreeSet::new();
    }
    let section = file.section(SectionId::Strings as u8).unwrap_or_default();
    let strings = section.split(|byte| *byte == 0);
    let strings = strings.filter_map(|string| std::str::from_utf8(string).ok());
    let mut unused: BTreeSet<&str> = strings.filter(|string| !string.is_empty()).collect();
    for name in file.kernel_names() {
        unused.remove(name);
    }
    for index in 0..file.n_types() as u32 {
        unused.remove(file.type_name(TypeIndex(index)));
    }
    for function in file.functions() {
        unused.remove(function.name());
    }
    for kernel in all_kernels(file) {
        for position in 0..kernel.attributes().len() {
            if let Some(name) = kernel.attribute_name(position) {
                unused.remove(name);
            }
        }
    }
    unused.into_iter().map(str::to_owned).collect()
}
