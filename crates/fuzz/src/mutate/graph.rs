//! Mutations of the program in a file: its kernels, registers and functions.
//!
//! The file is read by its views, changed, and written again by the writer, which
//! finds use counts, users and wait counts anew. So most of what comes out passes the
//! gate, and what stands behind it has to deal with programs that no compiler writes.

use tfrt_bef::{
    BefBuffer, BefFile, BefWriter, Body, FunctionBody, FunctionEntry, FunctionKind, KernelEntry,
    Payload, RegisterIndex, SectionId, assemble,
};
use tfrt_oracle::random::Random;

/// A function before the writer has derived what follows from the rest.
struct Function {
    entry: FunctionEntry,
    n_registers: u32,
    kernels: Vec<KernelEntry>,
    results: Vec<u32>,
    types: Vec<u32>,
    location: u32,
}

/// Changes the program of a file; gives nothing for bytes that are none, or have no kernel.
pub fn graph(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let file = BefFile::open(BefBuffer::from_vec(bytes.to_vec())).ok()?;
    let mut writer = BefWriter::new();
    let mut functions = functions(&file, &mut writer);
    for _ in 0..1 + random.below(4) {
        let n_functions = functions.len();
        if n_functions == 0 {
            return None;
        }
        let at = random.below(n_functions);
        change(&mut functions[at], &file, n_functions, random);
    }
    writer.functions = functions.into_iter().map(finished).collect();
    let mut sections = writer.sections();
    keep(&mut sections, &file);
    Some(assemble(&sections))
}

/// Adds the sections that stay as they are.
fn keep(sections: &mut Vec<(u8, Payload)>, file: &BefFile) {
    let kept = [
        (SectionId::Attributes, 8),
        (SectionId::LocationStrings, 1),
        (SectionId::Locations, 1),
        (SectionId::AttributeTypes, 1),
    ];
    let optional = [SectionId::AttributeNames, SectionId::RegisterTypes];
    for id in optional {
        if file.section(id as u8).is_none_or(<[u8]>::is_empty) {
            sections.retain(|(other, _)| *other != id as u8);
        }
    }
    for (id, alignment) in kept {
        sections.retain(|(other, _)| *other != id as u8);
        if let Some(bytes) = file.section(id as u8) {
            let at = sections.partition_point(|(other, _)| *other < id as u8);
            let payload = Payload::from_bytes(bytes.to_vec(), alignment);
            sections.insert(at, (id as u8, payload));
        }
    }
}

fn functions(file: &BefFile, writer: &mut BefWriter) -> Vec<Function> {
    writer.kernels = file
        .kernel_names()
        .map(|name| writer.strings.insert(name))
        .collect();
    writer.types = (0..)
        .take(file.n_types())
        .map(|index| {
            let name = file.type_name(tfrt_bef::TypeIndex(index));
            writer.strings.insert(name)
        })
        .collect();
    let mut functions = Vec::new();
    for view in file.functions() {
        let entry = FunctionEntry {
            kind: view.kind(),
            name: writer.strings.insert(view.name()),
            arguments: view.argument_types().map(|ty| ty.0).collect(),
            results: view.result_types().map(|ty| ty.0).collect(),
            body: None,
        };
        let body = view.body();
        let registers = || (0..).map(RegisterIndex);
        functions.push(Function {
            entry,
            n_registers: body.map_or(0, |body| u32::try_from(body.n_registers()).unwrap_or(0)),
            kernels: body.map_or_else(Vec::new, |body| kernels(&body, writer)),
            results: body.map_or_else(Vec::new, |body| body.result_registers().to_vec()),
            types: body.map_or_else(Vec::new, |body| {
                let type_of = |register| body.register_type_index(register).map_or(0, |ty| ty.0);
                registers().take(body.n_registers()).map(type_of).collect()
            }),
            location: body.map_or(0, |body| body.location().0),
        });
    }
    functions
}

fn kernels(body: &Body<'_>, writer: &mut BefWriter) -> Vec<KernelEntry> {
    let mut kernels = Vec::new();
    for kernel in body.kernels() {
        let names = (0..kernel.attributes().len()).map(|position| {
            let name = kernel.attribute_name(position).unwrap_or_default();
            writer.strings.insert(name)
        });
        kernels.push(KernelEntry {
            attribute_names: names.collect(),
            code: kernel.code().0,
            location: kernel.location().0,
            stream: kernel.stream(),
            operands: kernel.operands().to_vec(),
            attributes: kernel.attributes().to_vec(),
            functions: kernel.functions().to_vec(),
            results: kernel.results().to_vec(),
            nonstrict: kernel.nonstrict(),
            ..KernelEntry::default()
        });
    }
    kernels
}

/// Completes a function: derives the lists that follow from operands and results.
fn finished(function: Function) -> FunctionEntry {
    let mut entry = function.entry;
    if entry.kind == FunctionKind::Native {
        return entry;
    }
    let n_arguments = u32::try_from(entry.arguments.len()).unwrap_or(u32::MAX);
    // Registers that do not exist have no place in the tables.
    let n_registers = function.n_registers.max(n_arguments);
    let mut kernels = function.kernels;
    for kernel in &mut kernels {
        kernel.results.retain(|register| *register < n_registers);
    }
    let streams: Vec<u32> = kernels.iter().map(|kernel| kernel.stream).collect();
    let mut body = FunctionBody::new(n_registers, n_arguments, kernels, function.results);
    for (kernel, stream) in body.kernels.iter_mut().skip(1).zip(streams) {
        kernel.stream = stream;
    }
    body.location = function.location;
    body.register_types = function.types;
    body.register_types.resize(body.use_counts.len(), 0);
    entry.body = Some(body.into());
    entry
}

/// Changes one thing of a function.
fn change(function: &mut Function, file: &BefFile, n_functions: usize, random: &mut Random) {
    let number = |random: &mut Random, below: usize| {
        u32::try_from(random.below(below.max(1))).unwrap_or(u32::MAX)
    };
    let n_registers = usize::try_from(function.n_registers).unwrap_or(usize::MAX);
    let n_kernels = function.kernels.len();
    let which = random.below(n_kernels.max(1));
    let register = number(random, n_registers);
    let Some(kernel) = function.kernels.get_mut(which) else {
        return function_itself(function, file, register, random);
    };
    match random.below(20) {
        0..4 => match kernel.operands.len() {
            0 => kernel.operands.push(register),
            n => kernel.operands[random.below(n)] = register,
        },
        4 => kernel.operands.push(register),
        5 => drop(kernel.operands.pop()),
        6 => kernel.code = number(random, file.n_kernel_codes()),
        7 => match kernel.functions.len() {
            0 => kernel.functions.push(number(random, n_functions)),
            n => kernel.functions[random.below(n)] = number(random, n_functions),
        },
        8 => drop(kernel.functions.pop()),
        9 => kernel.nonstrict = !kernel.nonstrict,
        10 => kernel.stream = number(random, 5),
        11 => match kernel.attributes.len() {
            0 => {}
            n => kernel.attributes[random.below(n)] = number(random, 64) & !3,
        },
        12 => {
            // The same kernel once more, with results of its own.
            let mut again = kernel.clone();
            for result in &mut again.results {
                *result = function.n_registers;
                function.n_registers += 1;
            }
            function.types.resize(function.n_registers as usize, 0);
            function.kernels.push(again);
        }
        13 => {
            let other = random.below(n_kernels);
            function.kernels.swap(which, other);
        }
        14 => {
            // One result more, which nobody reads yet.
            kernel.results.push(function.n_registers);
            function.n_registers += 1;
            function.types.push(number(random, file.n_types()));
        }
        15 if n_kernels > 0 => {
            // A kernel less: its results are taken from it, not from the function.
            let gone = function.kernels.remove(which);
            let mut kept = function.kernels.iter_mut();
            match kept.next() {
                Some(first) => first.results.extend(gone.results),
                None => function.kernels.push(gone),
            }
        }
        _ => function_itself(function, file, register, random),
    }
}

/// Changes a function without looking at its kernels.
fn function_itself(function: &mut Function, file: &BefFile, register: u32, random: &mut Random) {
    let ty = u32::try_from(random.below(file.n_types().max(1))).unwrap_or(0);
    match random.below(6) {
        0 | 1 => match function.results.len() {
            0 => {}
            n => function.results[random.below(n)] = register,
        },
        2 if file.n_types() > 0 => {
            function.results.push(register);
            let ty = function.types.get(register as usize).copied().unwrap_or(ty);
            function.entry.results.push(ty);
        }
        3 => {
            function.results.pop();
            function.entry.results.pop();
        }
        4 => {
            let kinds = [FunctionKind::Async, FunctionKind::Sync];
            if function.entry.kind != FunctionKind::Native {
                function.entry.kind = *random.pick(&kinds);
            }
        }
        _ => match function.types.len() {
            0 => {}
            n => function.types[random.below(n)] = ty,
        },
    }
}
