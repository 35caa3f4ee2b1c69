//! Registers, kernels, users.
//!
//! Registers are numbered block by block: arguments first, then results as they come
//! in the text. Kernels are the operations of the block but for its `tfrt.return`,
//! from 1; 0 is the pseudo kernel, which defines the arguments and starts the kernels
//! without operands.

use tfrt_bef::{
    BefWriter, FunctionBody, FunctionEntry, KernelEntry,
    layout::{PSEUDO_KERNEL_CODE, PSEUDO_KERNEL_LOCATION},
};
use tfrt_ir::{BlockId, OpId, ValueId};

use crate::{
    NONSTRICT,
    emit::{
        Function, Walk, attributes::function_array, is_for_compiler, locations::LocationEmitter,
        streams,
    },
};

/// Writes all functions, given the offsets of the attributes.
pub(super) fn write(walk: &Walk<'_>, writer: &mut BefWriter, attributes: &[u32]) {
    let mut emitter = FunctionEmitter {
        walk,
        writer,
        attributes,
        locations: LocationEmitter::new(),
        registers: vec![0; walk.module.n_values()],
        kernels: vec![0; walk.module.n_ops()],
    };
    for function in &walk.functions {
        let entry = emitter.function(function);
        emitter.writer.functions.push(entry);
    }
}

struct FunctionEmitter<'e, 'm> {
    walk: &'e Walk<'m>,
    writer: &'e mut BefWriter,
    attributes: &'e [u32],
    locations: LocationEmitter,
    /// Register of each value in its function.
    registers: Vec<u32>,
    /// Index of each operation in its function.
    kernels: Vec<u32>,
}

impl FunctionEmitter<'_, '_> {
    fn function(&mut self, function: &Function) -> FunctionEntry {
        let module = self.walk.module;
        let name = self
            .writer
            .strings
            .get(&function.name)
            .expect("the walk noted the name");
        let Some(block) = function.block else {
            let (arguments, results) = self.native_signature(function.op);
            return FunctionEntry {
                kind: function.kind,
                name,
                arguments,
                results,
                body: None,
            };
        };
        let arguments = self.types(module.block(block).arguments());
        let results = self.types(self.returned(block));
        let body = Some(self.body(function.op, block));
        FunctionEntry {
            kind: function.kind,
            name,
            arguments,
            results,
            body,
        }
    }

    fn native_signature(&self, op: OpId) -> (Vec<u32>, Vec<u32>) {
        let types = &self.walk.types;
        let signature = self.walk.module.op(op).attribute("function_type");
        let signature = signature.and_then(|ty| ty.as_type()?.as_function());
        signature.map_or_else(Default::default, |signature| {
            let indexes = |list: &[_]| list.iter().map(|ty| types.index(ty)).collect();
            (indexes(&signature.inputs), indexes(&signature.results))
        })
    }

    /// Returns the types of values.
    fn types(&self, values: &[ValueId]) -> Vec<u32> {
        let types = &self.walk.types;
        values
            .iter()
            .map(|value| types.index(self.walk.module.value_type(*value)))
            .collect()
    }

    /// Returns what a block returns.
    fn returned(&self, block: BlockId) -> &[ValueId] {
        let module = self.walk.module;
        let last = module.block(block).last().map(|op| module.op(op));
        let return_op = last.filter(|op| *op.name() == "tfrt.return");
        return_op.map_or(&[], |op| op.operands())
    }

    fn body(&mut self, owner: OpId, block: BlockId) -> FunctionBody {
        let module = self.walk.module;
        let operations = module.block(block).operations();
        let is_return = |op: &OpId| *module.op(*op).name() == "tfrt.return";
        let n_kernels = operations.iter().filter(|op| !is_return(op)).count();
        let values: Vec<ValueId> = module
            .block(block)
            .arguments()
            .iter()
            .chain(operations.iter().flat_map(|op| module.op(*op).results()))
            .copied()
            .collect();
        for (register, value) in (0u32..).zip(&values) {
            self.registers[value.index()] = register;
        }
        for (position, op) in (1u32..).zip(&operations[..n_kernels]) {
            self.kernels[op.index()] = position;
        }
        let streams = streams::of_block(module, owner, block);
        let location = self
            .locations
            .emit(self.writer, module.op(owner).location());
        let mut kernels = Vec::with_capacity(n_kernels + 1);
        kernels.push(self.pseudo_kernel(block, values.len(), streams[0], n_kernels));
        for (position, op) in operations[..n_kernels].iter().enumerate() {
            kernels.push(self.kernel(*op, streams[position + 1]));
        }
        FunctionBody {
            location,
            use_counts: values
                .iter()
                .map(|v| module.users(*v).count() as u32)
                .collect(),
            register_types: self.types(&values),
            kernels,
            results: self.registers_of(self.returned(block)),
        }
    }

    fn registers_of(&self, values: &[ValueId]) -> Vec<u32> {
        values
            .iter()
            .map(|value| self.registers[value.index()])
            .collect()
    }

    /// Returns the kernels that read a value, the latest first.
    fn users(&self, value: ValueId) -> Vec<u32> {
        let module = self.walk.module;
        let users = module.users(value).map(|user| user.op);
        let kernels = users.filter(|op| *module.op(*op).name() != "tfrt.return");
        kernels.map(|op| self.kernels[op.index()]).collect()
    }

    fn pseudo_kernel(
        &self,
        block: BlockId,
        n_registers: usize,
        stream: u32,
        n_kernels: usize,
    ) -> KernelEntry {
        let module = self.walk.module;
        let block = module.block(block);
        let kernels = (1u32..).zip(&block.operations()[..n_kernels]);
        let entry = kernels.filter(|(_, op)| module.op(**op).operands().is_empty());
        let mut users = vec![entry.map(|(index, _)| index).collect()];
        users.extend(
            block
                .arguments()
                .iter()
                .map(|argument| self.users(*argument)),
        );
        let mut results = vec![n_registers as u32];
        results.extend(self.registers_of(block.arguments()));
        KernelEntry {
            code: PSEUDO_KERNEL_CODE,
            location: PSEUDO_KERNEL_LOCATION,
            stream,
            results,
            users,
            ..KernelEntry::default()
        }
    }

    fn kernel(&mut self, op: OpId, stream: u32) -> KernelEntry {
        let walk = self.walk;
        let operation = walk.module.op(op);
        let mut entry = KernelEntry {
            code: walk.kernels.index(operation.name()),
            location: self.locations.emit(self.writer, operation.location()),
            wait_count: operation.operands().len() as u32,
            stream,
            operands: self.registers_of(operation.operands()),
            results: self.registers_of(operation.results()),
            users: operation
                .results()
                .iter()
                .map(|result| self.users(*result))
                .collect(),
            nonstrict: operation.attribute(NONSTRICT).is_some_and(|mark| {
                // `bef.nonstrict = false` says that it is not.
                mark.as_bool() != Some(false)
            }),
            ..KernelEntry::default()
        };
        for (name, value) in operation.attributes() {
            if is_for_compiler(name) {
                continue;
            }
            if let Some(attribute) = walk.attributes.get(value) {
                entry.attributes.push(self.attributes[attribute as usize]);
                entry.attribute_names.extend(self.writer.strings.get(name));
                continue;
            }
            let functions = function_array(value).unwrap_or(std::slice::from_ref(value));
            let names = functions
                .iter()
                .filter_map(|function| function.as_flat_symbol());
            entry.functions.extend(names.map(|name| walk.named[name]));
        }
        entry.functions.extend(
            operation
                .regions()
                .iter()
                .map(|region| walk.regions[region]),
        );
        entry
    }
}
