//! Decompiles functions: registers become values, kernels operations, functions without a name regions.

use std::collections::HashSet;

use tfrt_bef::{
    Body, FunctionIndex, FunctionKind, FunctionView, KernelView, LocationOffset, RegisterIndex,
};
use tfrt_ir::{
    Attribute, BlockId, Location, Name, OpState, RegionId, Type, ValueId,
    attributes::DenseArrayAttribute,
    dialect::{self, AttributeKind},
};

use super::{Decompiler, locations};
use crate::{COST, NONSTRICT, STREAMS, streams::StreamAnalysis};

/// The cost of an operation that must state one, where the file does not have it.
const SOME_COST: i32 = 1;

impl Decompiler<'_> {
    /// Decompiles a function of the module.
    pub(super) fn function(&mut self, function: FunctionView<'_>) {
        let mut state =
            OpState::new("func.func").attribute("sym_name", self.names.string(function.name()));
        let inputs = function.argument_types();
        let inputs: Vec<Type> = inputs.map(|index| self.types.get(index)).collect();
        let region = self.module.create_region();
        let results = match function.body() {
            None => {
                state = state
                    .attribute("sym_visibility", Attribute::string("private"))
                    .attribute("tfrt.native", Attribute::Unit);
                let results = function.result_types();
                let results: Vec<Type> = results.map(|index| self.types.get(index)).collect();
                inputs
                    .iter()
                    .chain(&results)
                    .for_each(|ty| self.types.meet(ty));
                results
            }
            Some(body) => {
                let (results, streams) = self.body(function, &body, region);
                inputs.iter().for_each(|ty| self.types.meet(ty));
                if function.kind() == FunctionKind::Sync {
                    state = state.attribute("tfrt.sync", Attribute::Unit);
                }
                if let Some(streams) = streams {
                    state = state.attribute(STREAMS, Attribute::array(vec![streams]));
                }
                state = state.location(self.location(body.location()));
                results
            }
        };
        if let Some(model) = self.file.model().filter(|m| m.function == function.index()) {
            let ty = |text: &str| tfrt_ir::parse_type(text).unwrap_or(Type::None);
            for (name, value) in crate::model::attributes(model, ty) {
                state = state.attribute(name, value);
            }
        }
        let signature = Attribute::Type(Type::function(inputs, results));
        let state = state.attribute("function_type", signature).region(region);
        let op = self.module.create(state);
        self.module.append(self.module.body(), op);
    }

    /// Fills a region; returns the types that it returns, and its streams unless analysis finds the same.
    ///
    /// Recursion is bounded by the gate's limit on regions.
    fn body(
        &mut self,
        function: FunctionView<'_>,
        body: &Body<'_>,
        region: RegionId,
    ) -> (Vec<Type>, Option<Attribute>) {
        let block = self.module.create_block(region);
        let mut registers: Vec<Option<ValueId>> = vec![None; body.n_registers()];
        for (register, index) in registers.iter_mut().zip(function.argument_types()) {
            let ty = self.types.get(index);
            *register = Some(self.module.add_argument(block, ty, Location::Unknown));
        }
        let kernels = in_order(body);
        for kernel in &kernels {
            self.kernel(body, kernel, block, &mut registers);
        }
        let returned = body.result_registers().iter();
        // The gate has seen a writer for each register.
        let returned: Vec<ValueId> = returned
            .filter_map(|register| registers[*register as usize])
            .collect();
        let results = returned.iter().map(|value| self.module.value_type(*value));
        let results: Vec<Type> = results.cloned().collect();
        let state = OpState::new("tfrt.return")
            .operands(returned)
            .location(self.location(body.location()));
        let op = self.module.create(state);
        self.module.append(block, op);
        let analysis = StreamAnalysis::new(&self.module, block);
        let found = (0..kernels.len()).map(|position| analysis.stream(position).id);
        let same = analysis.root().id == body.root_stream()
            && found.eq(kernels.iter().map(KernelView::stream));
        (results, (!same).then(|| streams(body, &kernels)))
    }

    fn kernel(
        &mut self,
        body: &Body<'_>,
        kernel: &KernelView<'_>,
        block: BlockId,
        registers: &mut [Option<ValueId>],
    ) {
        let file = self.file;
        let mut regions = Vec::new();
        let mut streams = Vec::new();
        let mut are_streams_told = false;
        for index in kernel.functions() {
            let function = file.function(FunctionIndex(*index));
            if !function.name().is_empty() {
                continue;
            }
            self.n_regions += 1;
            let region = self.module.create_region();
            regions.push((function, region));
            let Some(body) = function.body() else {
                streams.push(no_streams());
                continue;
            };
            let (_, told) = self.body(function, &body, region);
            are_streams_told |= told.is_some();
            streams.push(told.unwrap_or_else(no_streams));
        }
        let operands = kernel.operands().iter();
        let operands = operands.filter_map(|register| registers[*register as usize]);
        let results: Vec<Type> = kernel
            .results()
            .iter()
            .map(|register| {
                let index = body.register_type_index(RegisterIndex(*register));
                index.map_or(Type::None, |index| self.types.get(index))
            })
            .collect();
        results.iter().for_each(|ty| self.types.meet(ty));
        let mut state = OpState::new(self.name(kernel))
            .operands(operands)
            .results(results)
            .location(self.location(kernel.location()));
        for (name, value) in self.attributes(kernel) {
            state = state.attribute(name, value);
        }
        if are_streams_told {
            state = state.attribute(STREAMS, Attribute::array(streams));
        }
        for (function, region) in regions {
            for index in function.argument_types() {
                self.types.meet(&self.types.get(index));
            }
            state = state.region(region);
        }
        let op = self.module.create(state);
        self.module.append(block, op);
        let results = self.module.op(op).results();
        for (register, value) in kernel.results().iter().zip(results) {
            registers[*register as usize] = Some(*value);
        }
    }

    /// Returns the name of a kernel, each made once.
    fn name(&self, kernel: &KernelView<'_>) -> Name {
        self.kernel_names[kernel.code().index()].clone()
    }

    fn location(&mut self, offset: LocationOffset) -> Location {
        // Kernels may share a long one.
        if let Some(known) = self.locations.get(&offset) {
            return known.clone();
        }
        let location = locations::location(self.file, &mut self.names, offset);
        self.locations.insert(offset, location.clone());
        location
    }

    fn attributes(&mut self, kernel: &KernelView<'_>) -> Vec<(Name, Attribute)> {
        let offsets = kernel.attributes();
        let mut found: Vec<(Name, Attribute)> = Vec::with_capacity(offsets.len());
        let mut taken: HashSet<Name> = HashSet::new();
        // Constants that have names are signed, if the file has met such types at all: kernels have their attributes in the
        // order of names.
        let definition = dialect::lookup(kernel.name());
        let declared = definition.map_or(&[][..], |definition| definition.attribute_defs());
        let mut declared: Vec<_> = declared.iter().collect();
        declared.sort_by_key(|attribute| attribute.name);
        let is_keyword =
            |kind| matches!(kind, AttributeKind::Keyword(keywords) if !keywords.is_wide);
        let keywords: Vec<(&str, bool)> = declared
            .iter()
            .map(|one| (one.name, is_keyword(one.kind)))
            .collect();
        let has_signed = self.types.has_signed();
        let width = offsets.len().saturating_sub(1).to_string().len();
        for (position, offset) in offsets.iter().enumerate() {
            let keyword = match kernel.attribute_name(position) {
                Some(name) => keywords.iter().find(|(own, _)| *own == name),
                None => keywords.get(position),
            };
            let is_signed = has_signed && keyword.is_some_and(|(_, is_keyword)| *is_keyword);
            let (file, types) = (self.file, &mut self.types);
            let value = self.attributes.get(file, types, *offset, is_signed);
            let mut name = match kernel.attribute_name(position) {
                Some(name) => self.names.get(name),
                // Zeros keep them in order.
                None => format!("attr{position:0width$}").into(),
            };
            while !taken.insert(name.clone()) {
                name = format!("attr{position:0width$}_{}", taken.len()).into();
            }
            found.push((name, value));
        }
        let Decompiler {
            file,
            references,
            names,
            ..
        } = self;
        let is_taken = |name: &str| taken.contains(name);
        found.extend(references.of_kernel(file, kernel, names, &is_taken));
        if kernel.nonstrict() {
            found.push((self.names.copied(NONSTRICT), Attribute::Unit));
        }
        let definition = dialect::lookup(kernel.name());
        let attributes = definition.map_or(&[][..], |definition| definition.attribute_defs());
        if attributes.iter().any(|attribute| attribute.name == COST) && !taken.contains(COST) {
            let cost = Attribute::integer(SOME_COST, Type::I64);
            found.push((self.names.copied(COST), cost));
        }
        found
    }
}

/// Sorts kernels: each comes behind those whose results it reads, otherwise the order of the file stays.
fn in_order<'f>(body: &Body<'f>) -> Vec<KernelView<'f>> {
    let kernels: Vec<KernelView<'f>> = body.kernels().collect();
    const ARGUMENT: usize = usize::MAX;
    let mut writers = vec![ARGUMENT; body.n_registers()];
    for (position, kernel) in kernels.iter().enumerate() {
        for register in kernel.results() {
            writers[*register as usize] = position;
        }
    }
    let is_behind = |position: usize, register: &u32| {
        let writer = writers[*register as usize];
        writer == ARGUMENT || writer < position
    };
    let mut all = kernels.iter().enumerate();
    if all.all(|(position, kernel)| kernel.operands().iter().all(|r| is_behind(position, r))) {
        return kernels;
    }
    // The gate has seen that there are no cycles.
    let mut order = Vec::with_capacity(kernels.len());
    let mut is_placed = vec![false; kernels.len()];
    for start in 0..kernels.len() {
        let mut path = vec![(start, 0)];
        while let Some((at, next)) = path.pop() {
            if is_placed[at] {
                continue;
            }
            match kernels[at].operands().get(next) {
                None => {
                    is_placed[at] = true;
                    order.push(kernels[at]);
                }
                Some(register) => {
                    path.push((at, next + 1));
                    let writer = writers[*register as usize];
                    if writer != ARGUMENT && !is_placed[writer] {
                        path.push((writer, 0));
                    }
                }
            }
        }
    }
    order
}

/// Returns the streams of a body as an attribute: the stream of the entry, then those of the kernels.
fn streams(body: &Body<'_>, kernels: &[KernelView<'_>]) -> Attribute {
    let all = std::iter::once(body.root_stream()).chain(kernels.iter().map(KernelView::stream));
    number_list(all)
}

/// Returns the attribute for a region whose streams are those that analysis finds.
fn no_streams() -> Attribute {
    number_list(std::iter::empty())
}

fn number_list(numbers: impl Iterator<Item = u32>) -> Attribute {
    let bytes: Vec<u8> = numbers
        .flat_map(|number| i64::from(number).to_le_bytes())
        .collect();
    Attribute::DenseArray(std::sync::Arc::new(DenseArrayAttribute {
        element: Type::I64,
        bytes: bytes.into(),
    }))
}
