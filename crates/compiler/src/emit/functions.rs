//! Writes functions: registers, kernels, and users of results.
//!
//! Registers are numbered block by block: arguments first, then results as they come
//! in the text. Kernels are the operations of the block but for its `tfrt.return`,
//! from 1; 0 is the pseudo kernel, which defines the arguments and starts the kernels
//! without operands.

use tfrt_bef::{
    BefWriter, BodyWriter, FunctionEntry, KernelHead,
    layout::{PSEUDO_KERNEL_CODE, PSEUDO_KERNEL_LOCATION},
};
use tfrt_ir::{BlockId, OpId, ValueId};

use crate::{
    NONSTRICT,
    emit::{Function, Walk, locations::LocationEmitter, streams},
};

/// Writes all functions, given the offsets of names and attributes.
pub(super) fn write(walk: &Walk<'_>, writer: &mut BefWriter, names: &[u32], attributes: &[u32]) {
    let mut emitter = FunctionEmitter {
        walk,
        writer,
        names,
        attributes,
        locations: LocationEmitter::new(),
        registers: vec![0; walk.module.n_values()],
        positions: vec![NO_KERNEL; walk.module.n_ops()],
    };
    for function in &walk.functions {
        let entry = emitter.function(function);
        emitter.writer.functions.push(entry);
    }
}

/// The position in place of an operation that is no kernel.
const NO_KERNEL: u32 = u32::MAX;

/// A writer of functions, with the registers and kernels of the current one.
struct FunctionEmitter<'e, 'm> {
    walk: &'e Walk<'m>,
    writer: &'e mut BefWriter,
    names: &'e [u32],
    attributes: &'e [u32],
    locations: LocationEmitter,
    /// The register of each value in its function.
    registers: Vec<u32>,
    /// The index of each kernel in its function.
    positions: Vec<u32>,
}

impl FunctionEmitter<'_, '_> {
    fn function(&mut self, function: &Function) -> FunctionEntry {
        let module = self.walk.module;
        let name = self.names[function.name as usize];
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
        let types = |values: &[ValueId]| values.iter().map(|value| self.type_of(*value)).collect();
        let arguments = types(module.block(block).arguments());
        let results = types(self.returned(block));
        let body = self.body(function.op, block);
        FunctionEntry {
            kind: function.kind,
            name,
            arguments,
            results,
            body: Some(body.into()),
        }
    }

    fn native_signature(&self, op: OpId) -> (Vec<u32>, Vec<u32>) {
        let types = &self.walk.types.indexes;
        let signature = self.walk.module.op(op).attribute("function_type");
        let signature = signature.and_then(|ty| ty.as_type()?.as_function());
        signature.map_or_else(Default::default, |signature| {
            let indexes = |list: &[_]| list.iter().map(|ty| types[ty]).collect();
            (indexes(&signature.inputs), indexes(&signature.results))
        })
    }

    fn type_of(&self, value: ValueId) -> u32 {
        self.walk.value_types[value.index()]
    }

    fn register_of(&self, value: &ValueId) -> u32 {
        self.registers[value.index()]
    }

    /// Returns the values that a block returns.
    fn returned(&self, block: BlockId) -> &[ValueId] {
        let module = self.walk.module;
        let last = module.block(block).last().map(|op| module.op(op));
        let return_op = last.filter(|op| *op.name() == "tfrt.return");
        return_op.map_or(&[], |op| op.operands())
    }

    fn body(&mut self, owner: OpId, block: BlockId) -> BodyWriter {
        let module = self.walk.module;
        let operations = module.block(block).operations();
        let kernels = &operations[..streams::n_kernels(module, block)];
        let mut body = BodyWriter::default();
        self.number(block, kernels, &mut body);
        let streams = streams::of_block(module, owner, block);
        body.location = self
            .locations
            .emit(self.writer, module.op(owner).location());
        self.pseudo_kernel(block, kernels, streams[0], &mut body);
        for (op, stream) in kernels.iter().zip(&streams[1..]) {
            self.kernel(*op, *stream, &mut body);
        }
        let returned = self.returned(block).iter();
        body.results = returned.map(|value| self.register_of(value)).collect();
        body
    }

    /// Numbers registers and kernels, and reserves room in the file.
    fn number(&mut self, block: BlockId, kernels: &[OpId], body: &mut BodyWriter) {
        let module = self.walk.module;
        let operations = module.block(block).operations();
        let results = operations.iter().flat_map(|op| module.op(*op).results());
        let mut n_operands = 0;
        for value in module.block(block).arguments().iter().chain(results) {
            // A module has fewer values than its text has bytes, which are below 4 GiB.
            self.registers[value.index()] = body.use_counts.len() as u32;
            let n_users = module.users(*value).count();
            n_operands += n_users;
            body.use_counts.push(n_users as u32);
            body.register_types.push(self.type_of(*value));
        }
        for (position, op) in (1..).zip(kernels) {
            self.positions[op.index()] = position;
        }
        // Each kernel has a head, each operand is listed by reader and maker, each result has
        // a count of users. Attributes and functions are few.
        const HEAD_WORDS: usize = 6;
        let n_words = HEAD_WORDS * (kernels.len() + 1) + 2 * (n_operands + body.use_counts.len());
        body.reserve(kernels.len() + 1, n_words);
    }

    /// Returns the kernels that read a value, the latest first.
    fn users(&self, value: ValueId) -> impl Iterator<Item = u32> {
        let users = self.walk.module.users(value);
        users
            .map(|user| self.positions[user.op.index()])
            .filter(|position| *position != NO_KERNEL)
    }

    fn pseudo_kernel(&self, block: BlockId, kernels: &[OpId], stream: u32, body: &mut BodyWriter) {
        let module = self.walk.module;
        let arguments = module.block(block).arguments();
        let n_registers = body.use_counts.len() as u32;
        let head = KernelHead {
            code: PSEUDO_KERNEL_CODE,
            location: PSEUDO_KERNEL_LOCATION,
            stream,
            ..KernelHead::default()
        };
        let mut record = body.kernel(head, arguments.len() + 1);
        for _ in ["operands", "attributes", "functions"] {
            record.list([]);
        }
        let registers = arguments.iter().map(|argument| self.register_of(argument));
        record.list(std::iter::once(n_registers).chain(registers));
        let starts = (1..).zip(kernels);
        let starts = starts.filter(|(_, op)| module.op(**op).operands().is_empty());
        record.list(starts.map(|(position, _)| position));
        for argument in arguments {
            record.list(self.users(*argument));
        }
    }

    fn kernel(&mut self, op: OpId, stream: u32, body: &mut BodyWriter) {
        let walk = self.walk;
        let operation = walk.module.op(op);
        let kernel = walk.kernels[op.index()];
        let constants = &walk.constants[kernel.constants.range()];
        let names = constants.iter().filter_map(|constant| constant.name);
        let names = names.map(|name| self.names[name as usize]);
        body.attribute_names.extend(names);

        let (operands, results) = (operation.operands(), operation.results());
        let head = KernelHead {
            code: kernel.code,
            location: self.locations.emit(self.writer, operation.location()),
            wait_count: operands.len() as u32,
            stream,
            nonstrict: operation.attribute(NONSTRICT).is_some_and(|mark| {
                // `bef.nonstrict = false` says that it is not.
                mark.as_bool() != Some(false)
            }),
        };
        let mut record = body.kernel(head, results.len());
        record.list(operands.iter().map(|operand| self.register_of(operand)));
        let values = constants.iter().map(|constant| constant.value);
        record.list(values.map(|value| self.attributes[value as usize]));
        // The functions that it names, then its regions.
        let named = walk.references[kernel.references.range()].iter();
        let named = named.map(|(_, name)| walk.named[name]);
        let regions = operation.regions().iter();
        record.list(named.chain(regions.map(|region| walk.regions[region.index()])));
        record.list(results.iter().map(|result| self.register_of(result)));
        for result in results {
            record.list(self.users(*result));
        }
    }
}
