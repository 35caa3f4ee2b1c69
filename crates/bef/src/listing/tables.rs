//! Listings of sections that are tables: strings, names, types, attributes, locations.

use std::fmt::Write;

use crate::{
    dump::write_attribute,
    layout::{AttributeOffset, FunctionIndex, KernelCode, LocationKind, LocationOffset, TypeIndex},
    listing::Lister,
};

impl Lister<'_, '_> {
    pub(super) fn strings(&mut self, end: usize) {
        let section = self.at;
        while self.at < end {
            let start = self.at;
            let mut strings = self.bytes[start..end].split(|byte| *byte == 0);
            let string = strings.next().unwrap_or_default();
            self.at = (start + string.len() + 1).min(end);
            let text = String::from_utf8_lossy(string);
            self.payload(format_args!("+{} {text:?}", start - section));
        }
    }

    pub(super) fn kernels(&mut self) {
        let n_kernels = self.index();
        self.payload(format_args!("{n_kernels} kernels"));
        for code in 0..n_kernels {
            let offset = self.number();
            let name = self.file.kernel_name(KernelCode(code));
            self.payload(format_args!("kernel {code}: +{offset} {name}"));
        }
    }

    pub(super) fn types(&mut self) {
        let n_types = self.index();
        self.payload(format_args!("{n_types} types"));
        for index in 0..n_types {
            let offset = self.number();
            let name = self.file.type_name(TypeIndex(index));
            self.payload(format_args!("type {index}: +{offset} {name}"));
        }
    }

    pub(super) fn attributes(&mut self, end: usize) {
        let section = self.at;
        let file = self.file;
        for (offset, kind) in file.attribute_types() {
            self.padding(section + offset.index());
            let attribute = file.attribute(offset);
            let mut text = format!("attribute +{}: {kind} ", offset.0);
            write_attribute(&mut text, attribute, kind).expect("strings take any text");
            // The gate has read it in the same way.
            self.at = attribute.end_as(kind).unwrap_or(self.at);
            self.payload(text);
        }
        if file.attribute_types().len() == 0 {
            self.unlisted_attributes(section, end);
        }
    }

    /// Passes over attributes of which nothing is known but where they start.
    fn unlisted_attributes(&mut self, section: usize, end: usize) {
        let bodies = self.file.functions().filter_map(|function| function.body());
        let kernels = bodies.flat_map(|body| body.kernels());
        let mut offsets: Vec<u32> = kernels
            .flat_map(|kernel| kernel.attributes())
            .copied()
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        for (position, offset) in offsets.iter().enumerate() {
            let start = section.saturating_add(AttributeOffset(*offset).index());
            self.padding(start.min(end));
            let next = offsets.get(position + 1).map_or(end, |next| {
                section.saturating_add(AttributeOffset(*next).index())
            });
            self.at = next.clamp(self.at, end);
            self.payload(format_args!("attribute +{offset}: of unlisted type"));
        }
    }

    pub(super) fn attribute_types(&mut self) {
        let n_attributes = self.index();
        self.payload(format_args!("{n_attributes} attributes"));
        for _ in 0..n_attributes {
            let offset = self.index();
            self.number();
            match self.file.attribute_type(AttributeOffset(offset)) {
                Some(kind) => self.payload(format_args!("attribute +{offset}: {kind}")),
                None => self.payload(format_args!("attribute +{offset}")),
            }
        }
    }

    pub(super) fn attribute_names(&mut self) {
        let file = self.file;
        let n_functions = self.number();
        self.payload(format_args!("{n_functions} functions"));
        for function in file.functions() {
            let Some(body) = function.body() else {
                continue;
            };
            let (index, name) = (function.index().0, function.name());
            let n_kernels = self.number();
            self.payload(format_args!(
                "function {index} '{name}': {n_kernels} kernels"
            ));
            for kernel in body.kernels() {
                for position in 0..kernel.attributes().len() {
                    let offset = self.number();
                    let name = kernel.attribute_name(position).unwrap_or_default();
                    let kernel = kernel.index().0;
                    self.payload(format_args!("k{kernel}: +{offset} {name}"));
                }
            }
        }
    }

    pub(super) fn register_types(&mut self) {
        let file = self.file;
        let n_functions = self.number();
        self.payload(format_args!("{n_functions} functions"));
        for function in file.functions() {
            if function.body().is_none() {
                continue;
            }
            let (index, name) = (function.index().0, function.name());
            let n_registers = self.index();
            self.payload(format_args!(
                "function {index} '{name}': {n_registers} registers"
            ));
            for register in 0..n_registers {
                let ty = self.index();
                let name = file.type_name(TypeIndex(ty));
                self.payload(format_args!("r{register}: {ty} {name}"));
            }
        }
    }

    pub(super) fn nonstrict(&mut self) {
        let n_kernels = self.index();
        self.payload(format_args!("{n_kernels} non-strict kernels"));
        for _ in 0..n_kernels {
            let (function, kernel) = (self.index(), self.index());
            let name = self.file.function(FunctionIndex(function)).name();
            self.payload(format_args!("function {function} '{name}': k{kernel}"));
        }
    }

    pub(super) fn model(&mut self) {
        let function = self.index();
        let name = self.file.function(FunctionIndex(function)).name();
        self.payload(format_args!("model: function {function} '{name}'"));
        for what in ["inputs", "outputs"] {
            let n_values = self.number();
            self.payload(format_args!("{n_values} {what}"));
            for _ in 0..n_values {
                self.model_value();
            }
        }
        let n_properties = self.number();
        self.payload(format_args!("{n_properties} properties"));
        for _ in 0..n_properties {
            let (name, text) = (self.model_text(), self.model_text());
            self.payload(format_args!("{name}: {text}"));
        }
    }

    fn model_value(&mut self) {
        let (name, ty) = (self.model_text(), self.model_text());
        let rank = self.number();
        let mut text = format!("'{name}': {ty}");
        for position in 1..rank {
            text.push_str(if position == 1 {
                ", dimensions "
            } else {
                " x "
            });
            let kind = self.bytes[self.at];
            self.at += 1;
            match kind {
                0 => text.push('?'),
                1 => text.push_str(&self.number().to_string()),
                _ => text.push_str(&self.model_text()),
            }
        }
        self.payload(text);
    }

    /// Reads a text that the gate has seen.
    fn model_text(&mut self) -> String {
        let len = self.index() as usize;
        let bytes = &self.bytes[self.at..self.at + len];
        self.at += len;
        String::from_utf8_lossy(bytes).into_owned()
    }

    pub(super) fn locations(&mut self, end: usize) {
        let section = self.at;
        while self.at < end {
            // The section is below 4 GiB.
            let offset = (self.at - section) as u32;
            self.pass_location(end);
            let mut text = format!("location +{offset}");
            if let Some(location) = self.file.location(LocationOffset(offset)) {
                write!(text, ": {location}").expect("strings take any text");
            }
            self.payload(text);
        }
    }

    /// Passes over a record. The gate has seen where it ends, and bounds the recursion.
    fn pass_location(&mut self, end: usize) {
        let kind = LocationKind::from_byte(self.bytes[self.at]);
        self.at += 1;
        match kind {
            None => self.at = end,
            Some(LocationKind::Unknown) => {}
            Some(LocationKind::FileLineCol) => self.skip(3),
            Some(LocationKind::Name) => {
                self.number();
                self.pass_location(end);
            }
            Some(LocationKind::CallSite) => (0..2).for_each(|_| self.pass_location(end)),
            Some(LocationKind::Fused) => {
                let n_members = self.number();
                (0..n_members).for_each(|_| self.pass_location(end));
            }
        }
    }
}
