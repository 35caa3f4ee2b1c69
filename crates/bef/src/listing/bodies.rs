//! Listings of the function index, and of the bodies of functions.

use crate::{
    function::Body,
    kernel::KernelView,
    layout::{
        FunctionIndex, FunctionKind, KERNEL_ALIGNMENT, KERNEL_HEADER_WORDS, KernelIndex,
        LocationOffset, RegisterIndex, TypeIndex,
    },
    listing::{Lister, Names, PIECE_TEXT_BYTES, shortened},
};

impl<'f> Lister<'f, '_> {
    pub(super) fn function_index(&mut self) {
        let file = self.file;
        let n_functions = self.number();
        self.payload(format_args!("{n_functions} functions"));
        for function in file.functions() {
            let kind = match function.kind() {
                FunctionKind::Async => "async",
                FunctionKind::Native => "native",
                FunctionKind::Sync => "sync",
            };
            self.at += 1;
            let offset = self.number();
            let name_offset = self.number();
            let (index, name) = (function.index().0, function.name());
            self.payload(format_args!(
                "function {index} '{name}' (+{name_offset}): {kind}, body at +{offset}"
            ));
            let arguments: Vec<TypeIndex> = function.argument_types().collect();
            self.signature("arguments", &arguments);
            let results: Vec<TypeIndex> = function.result_types().collect();
            self.signature("results", &results);
        }
    }

    fn signature(&mut self, what: &str, types: &[TypeIndex]) {
        self.skip(1 + types.len());
        let names = types.iter().map(|index| self.file.type_name(*index));
        let names = Names(names.collect());
        self.payload(format_args!("{} {what}: {names}", types.len()));
    }

    pub(super) fn bodies(&mut self) {
        let file = self.file;
        let section = self.at;
        let records = (0u32..).zip(&file.index().functions);
        let with_body = records.filter(|(_, record)| record.body.is_some());
        let mut starts: Vec<(u32, u32)> = with_body
            .map(|(index, record)| (record.offset, index))
            .collect();
        starts.sort_unstable();
        for (offset, index) in starts {
            let function = file.function(FunctionIndex(index));
            self.padding(section + offset as usize);
            if let Some(body) = function.body() {
                self.body(&format!("function {index} '{}'", function.name()), &body);
            }
        }
    }

    fn body(&mut self, title: &str, body: &Body<'f>) {
        self.number();
        let location = self.location(body.location());
        self.payload(format_args!("{title}{location}"));
        let n_registers = self.index();
        self.payload(format_args!("{n_registers} registers"));
        for register in 0..n_registers {
            let count = self.number();
            match body.register_type(RegisterIndex(register)) {
                Some(name) => self.payload(format_args!("r{register}: used {count}, {name}")),
                None => self.payload(format_args!("r{register}: used {count}")),
            }
        }
        let n_kernels = self.index();
        self.payload(format_args!("{n_kernels} kernels"));
        let mut offsets = Vec::new();
        for kernel in 0..n_kernels {
            let (offset, wait_count, stream) = (self.number(), self.number(), self.number());
            // The section is below 4 GiB.
            offsets.push(offset as usize);
            self.payload(format_args!(
                "k{kernel}: record at +{offset}, waits for {wait_count}, stream {stream}"
            ));
        }
        for register in body.result_registers() {
            self.number();
            self.payload(format_args!("returns r{register}"));
        }
        self.padding(self.at.next_multiple_of(KERNEL_ALIGNMENT));
        let records = self.at;
        for (kernel, offset) in (0..n_kernels).zip(offsets) {
            self.padding(records + offset);
            self.record(&body.kernel(KernelIndex(kernel)));
        }
    }

    fn record(&mut self, kernel: &KernelView<'f>) {
        let file = self.file;
        let index = kernel.index().0;
        let is_entry = index == 0;
        self.words(1);
        match is_entry {
            true => self.payload("k0: entry"),
            false => self.payload(format_args!(
                "k{index}: {} {}",
                kernel.code().0,
                kernel.name()
            )),
        }
        self.words(1);
        match is_entry {
            true => self.payload("  no location"),
            false => {
                let location = self.location(kernel.location());
                self.payload(format_args!(" {location}"));
            }
        }
        let (operands, attributes) = (kernel.operands(), kernel.attributes());
        let (functions, results) = (kernel.functions(), kernel.results());
        self.words(KERNEL_HEADER_WORDS - 2);
        self.payload(format_args!(
            "  {} operands, {} attributes, {} functions, {} results",
            operands.len(),
            attributes.len(),
            functions.len(),
            results.len()
        ));
        let mut users = Vec::new();
        for (position, register) in results.iter().enumerate() {
            users.push(match is_entry && position == 0 {
                true => kernel.entry_users(),
                false => kernel.users(position),
            });
            self.words(1);
            let n_users = users[position].len();
            self.payload(format_args!("  r{register} has {n_users} users"));
        }
        for register in operands {
            self.words(1);
            self.payload(format_args!("  reads r{register}"));
        }
        for (position, offset) in attributes.iter().enumerate() {
            self.words(1);
            let name = kernel.attribute_name(position).unwrap_or("?");
            self.payload(format_args!("  attribute {name} at +{offset}"));
        }
        for function in functions {
            self.words(1);
            let name = file.function(FunctionIndex(*function)).name();
            self.payload(format_args!("  function {function} '{name}'"));
        }
        for register in results {
            self.words(1);
            self.payload(format_args!("  writes r{register}"));
        }
        for (register, users) in results.iter().zip(users) {
            self.words(users.len());
            self.payload(format_args!("  users of r{register}: {users:?}"));
        }
    }

    fn words(&mut self, n_words: usize) {
        self.at += size_of::<u32>() * n_words;
    }

    /// Returns ` at FILE:LINE:COLUMN`, or the number that stands for a location without a record.
    fn location(&mut self, offset: LocationOffset) -> String {
        if let Some(known) = self.locations.get(&offset) {
            return known.clone();
        }
        let text = match self.file.location(offset) {
            Some(location) => shortened(location, PIECE_TEXT_BYTES),
            None => return format!(" at {:#x}, where no record is", offset.0),
        };
        let text = format!(" at {text} (+{})", offset.0);
        self.locations.insert(offset, text.clone());
        text
    }
}
