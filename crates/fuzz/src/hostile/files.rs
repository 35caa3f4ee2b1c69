//! Hostile files.

use std::convert::Infallible;

use tfrt_bef::{
    AttributeType, AttributeWriter, BefWriter, BodyEntry, DType, FunctionBody, FunctionEntry,
    FunctionKind, KernelEntry, Payload, SectionId, assemble,
};

use super::Hostile;

pub(super) const ALL: &[Hostile] = &[
    Hostile {
        name: "counts that no memory holds",
        make: counts,
    },
    Hostile {
        name: "counts that just fit",
        make: fitting,
    },
    Hostile {
        name: "integers without an end",
        make: endless,
    },
    Hostile {
        name: "sections of unknown ids",
        make: unknown,
    },
    Hostile {
        name: "strings of nothing",
        make: strings,
    },
    Hostile {
        name: "names that share one long string",
        make: names,
    },
    Hostile {
        name: "functions that share one body",
        make: shared_body,
    },
    Hostile {
        name: "functions of no kernels",
        make: small_functions,
    },
    Hostile {
        name: "attributes that lie in each other",
        make: overlapping,
    },
    Hostile {
        name: "attributes nested",
        make: aggregates,
    },
    Hostile {
        name: "attributes that share their elements",
        make: sharing,
    },
    Hostile {
        name: "kernels that share one long attribute",
        make: shared_attribute,
    },
    Hostile {
        name: "kernels that share one long location",
        make: shared_location,
    },
    Hostile {
        name: "a location that repeats one long name",
        make: long_location,
    },
    Hostile {
        name: "locations nested",
        make: locations,
    },
    Hostile {
        name: "regions nested",
        make: regions,
    },
    Hostile {
        name: "a cycle of kernels",
        make: cycle,
    },
    Hostile {
        name: "kernels that use themselves",
        make: themselves,
    },
    Hostile {
        name: "registers that nobody writes",
        make: registers,
    },
    Hostile {
        name: "a register that all read",
        make: one_register,
    },
    Hostile {
        name: "a kernel that reads all",
        make: one_kernel,
    },
    Hostile {
        name: "a kernel that reads one register again and again",
        make: one_edge,
    },
    Hostile {
        name: "users that say they are many",
        make: users,
    },
    Hostile {
        name: "a stream for each kernel",
        make: streams,
    },
    Hostile {
        name: "results of a kernel and of its function",
        make: results,
    },
    Hostile {
        name: "a chain of kernels",
        make: chain,
    },
    Hostile {
        name: "kernels that call what calls them",
        make: calls,
    },
    Hostile {
        name: "marks on kernels",
        make: marks,
    },
];

fn word(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn bytes_of(writer: BefWriter) -> Vec<u8> {
    writer.finish().as_bytes().to_vec()
}

fn kernel(operands: Vec<u32>, results: Vec<u32>) -> KernelEntry {
    KernelEntry {
        operands,
        results,
        ..KernelEntry::default()
    }
}

/// Returns a file with one name for a kernel, one for a type, and functions.
fn file(functions: Vec<(&str, FunctionBody)>) -> BefWriter {
    let mut writer = BefWriter::new();
    writer.kernels = vec![writer.strings.insert("k")];
    writer.types = vec![writer.strings.insert("t")];
    for (name, body) in functions {
        let results = vec![0; body.results.len()];
        let arguments = vec![0; body.kernels[0].results.len() - 1];
        let name = writer.strings.insert(name);
        let kind = FunctionKind::Async;
        writer.functions.push(FunctionEntry {
            kind,
            name,
            arguments,
            results,
            body: Some(body.into()),
        });
    }
    writer
}

/// Returns the kernels of a body that is not written yet, but for the first, which is none.
fn lists(body: &mut Option<BodyEntry>) -> impl Iterator<Item = &mut KernelEntry> {
    let lists = body.iter_mut().filter_map(BodyEntry::as_lists_mut);
    lists.flat_map(|body| body.kernels.iter_mut().skip(1))
}

fn body(n_registers: usize, kernels: Vec<KernelEntry>, results: Vec<u32>) -> FunctionBody {
    FunctionBody::new(word(n_registers), 0, kernels, results)
}

fn one(n_registers: usize, kernels: Vec<KernelEntry>, results: Vec<u32>) -> Vec<u8> {
    bytes_of(file(vec![("f", body(n_registers, kernels, results))]))
}

/// Replaces a section of a writer's file.
fn with(writer: BefWriter, id: SectionId, payload: Payload) -> Vec<u8> {
    let mut sections = writer.sections();
    match sections.iter_mut().find(|(other, _)| *other == id as u8) {
        Some((_, old)) => *old = payload,
        None => sections.push((id as u8, payload)),
    }
    assemble(&sections)
}

/// Makes a file whose tables say that they are longer than memory; `n` bytes follow.
fn counts(n: usize) -> Vec<u8> {
    let mut sections = Vec::new();
    for id in SectionId::ALL {
        let mut payload = Payload::default();
        payload.varint(u64::MAX >> (id as u8 % 32));
        payload.bytes(&vec![0; n]);
        sections.push((id as u8, payload));
    }
    // Strings may be anything; the table of kernels is looked at next.
    sections[0].1 = Payload::from_bytes(vec![0], 1);
    assemble(&sections)
}

/// Makes a function that claims as many registers as there are bytes left.
fn fitting(n: usize) -> Vec<u8> {
    let writer = file(vec![("f", body(0, vec![], vec![]))]);
    let mut functions = Payload::default();
    functions.align(4);
    functions.byte(0);
    functions.count(n);
    functions.bytes(&vec![0; n]);
    functions.byte(1);
    with(writer, SectionId::Functions, functions)
}

fn endless(n: usize) -> Vec<u8> {
    let mut payload = Payload::default();
    payload.bytes(&[0x81]);
    payload.bytes(&vec![0x80; n]);
    with(file(vec![]), SectionId::FunctionIndex, payload)
}

fn unknown(n: usize) -> Vec<u8> {
    let mut sections = file(vec![]).sections();
    for id in 0x41..=0xff {
        sections.push((id, Payload::from_bytes(vec![id; n / 0xbf], 8)));
    }
    assemble(&sections)
}

fn strings(n: usize) -> Vec<u8> {
    with(
        file(vec![]),
        SectionId::Strings,
        Payload::from_bytes(vec![0; n], 1),
    )
}

fn names(n: usize) -> Vec<u8> {
    let mut writer = BefWriter::new();
    let name = writer.strings.insert(&"a".repeat(n));
    let other = writer.strings.insert(&"a".repeat(n + 1));
    writer.kernels = vec![name; n / 4];
    writer.types = vec![other; n / 4];
    for position in 0..n / 8 {
        writer.functions.push(FunctionEntry {
            kind: FunctionKind::Native,
            name: if position % 2 == 0 { name } else { other },
            arguments: vec![],
            results: vec![],
            body: None,
        });
    }
    bytes_of(writer)
}

fn shared_body(n: usize) -> Vec<u8> {
    let writer = file(vec![(
        "f",
        body(0, vec![kernel(vec![], vec![]); n / 8], vec![]),
    )]);
    let mut index = Payload::default();
    index.count(n / 4);
    for _ in 0..n / 4 {
        index.bytes(&[0, 0, 0, 0, 0]);
    }
    with(writer, SectionId::FunctionIndex, index)
}

fn small_functions(n: usize) -> Vec<u8> {
    bytes_of(file(vec![("", body(0, vec![], vec![])); n / 48]))
}

/// Makes a file that lists an attribute at each byte.
fn overlapping(n: usize) -> Vec<u8> {
    let mut types = Payload::default();
    types.count(n);
    for offset in 0..n {
        types.count(offset);
        types.varint(AttributeType::Aggregate.byte());
    }
    let mut writer = file(vec![]);
    writer.attributes.string(&vec![1; n]);
    with(writer, SectionId::AttributeTypes, types)
}

/// Makes aggregates as deep as they may be, one after the other.
fn aggregates(n: usize) -> Vec<u8> {
    let mut writer = file(vec![]);
    for _ in 0..n / 1_000 {
        let offset = deeper(&mut writer.attributes, 60);
        let listed = (offset, AttributeType::Aggregate);
        writer.attribute_types.push(listed);
    }
    bytes_of(writer)
}

fn deeper(attributes: &mut AttributeWriter, depth: usize) -> u32 {
    let made = attributes.aggregate(4, 1, |attributes, _| {
        Ok::<_, Infallible>(match depth {
            0 => (
                AttributeType::Scalar(DType::I32),
                attributes.scalar(&[7; 4]),
            ),
            _ => (AttributeType::Aggregate, deeper(attributes, depth - 1)),
        })
    });
    match made {
        Ok(offset) => offset,
        Err(impossible) => match impossible {},
    }
}

/// Makes aggregates each of which holds the next one twice.
fn sharing(n: usize) -> Vec<u8> {
    let mut attributes = Payload::default();
    for _ in 0..n / 24 {
        attributes.words(&[0x0014_0004u32, 0x1000, 2, 21, 21, 0xcccc_1ecc]);
    }
    listed(attributes)
}

/// Returns a file whose only listed attribute is an aggregate at the start.
fn listed(attributes: Payload) -> Vec<u8> {
    let mut types = Payload::default();
    types.bytes(&[1, 0]);
    types.varint(AttributeType::Aggregate.byte());
    let mut sections = file(vec![]).sections();
    for (id, payload) in &mut sections {
        if *id == SectionId::Attributes as u8 {
            *payload = Payload::from_bytes(attributes.as_bytes().to_vec(), 4);
        }
        if *id == SectionId::AttributeTypes as u8 {
            *payload = types.clone();
        }
    }
    assemble(&sections)
}

fn shared_attribute(n: usize) -> Vec<u8> {
    let mut kernels = vec![kernel(vec![], vec![]); n / 40];
    for kernel in &mut kernels {
        kernel.attribute_names = vec![0];
        kernel.attributes = vec![0];
    }
    let mut writer = file(vec![("f", body(0, kernels, vec![]))]);
    let offset = writer.attributes.string(&vec![b'x'; n]);
    let kind = AttributeType::Scalar(DType::String);
    writer.attribute_types = vec![(offset, kind)];
    for function in &mut writer.functions {
        for kernel in lists(&mut function.body) {
            kernel.attributes = vec![offset];
        }
    }
    bytes_of(writer)
}

/// Makes a location with as much text as one may have.
fn shared_location(n: usize) -> Vec<u8> {
    located(n, 1_000, 30)
}

/// Returns a location whose names are one long name.
fn long_location(n: usize) -> Vec<u8> {
    located(n, n / 4, n / 4)
}

/// Makes kernels at one location that fuses so many names of such a length.
fn located(n: usize, n_names: usize, len: usize) -> Vec<u8> {
    let kernels = vec![kernel(vec![], vec![]); n / 32];
    let mut writer = file(vec![("f", body(0, kernels, vec![]))]);
    let name = writer.location_strings.insert(&"x".repeat(len));
    writer.locations.fused(n_names);
    for _ in 0..n_names {
        writer.locations.name(name);
        writer.locations.unknown();
    }
    bytes_of(writer)
}

fn locations(n: usize) -> Vec<u8> {
    let mut writer = file(vec![]);
    let name = writer.location_strings.insert("x");
    // The deepest that are accepted, and then some that are not.
    while word(n) > writer.locations.offset() {
        for _ in 0..250 {
            writer.locations.name(name);
        }
        writer.locations.unknown();
    }
    for _ in 0..300 {
        writer.locations.call_site();
    }
    bytes_of(writer)
}

fn regions(n: usize) -> Vec<u8> {
    let n_functions = n / 80 + 2;
    let functions = (1..=n_functions).map(|next| {
        let mut holder = kernel(vec![], vec![]);
        if next < n_functions {
            holder.functions = vec![word(next)];
        }
        ("", body(0, vec![holder], vec![]))
    });
    bytes_of(file(functions.collect()))
}

fn cycle(n: usize) -> Vec<u8> {
    let n = n / 48 + 2;
    let kernels = (0..n).map(|k| kernel(vec![word((k + 1) % n)], vec![word(k)]));
    one(n, kernels.collect(), vec![])
}

fn themselves(n: usize) -> Vec<u8> {
    let n = n / 48 + 2;
    let kernels = (0..n).map(|k| kernel(vec![word(k)], vec![word(k)]));
    one(n, kernels.collect(), vec![])
}

fn registers(n: usize) -> Vec<u8> {
    one(n, vec![], vec![])
}

fn one_register(n: usize) -> Vec<u8> {
    let n = n / 48 + 2;
    let mut kernels = vec![kernel(vec![], vec![0])];
    kernels.extend((1..n).map(|k| kernel(vec![0, 0, word(k - 1), 0], vec![word(k)])));
    one(n, kernels, vec![])
}

fn one_kernel(n: usize) -> Vec<u8> {
    let n = n / 48 + 2;
    let mut kernels: Vec<_> = (0..n).map(|k| kernel(vec![], vec![word(k)])).collect();
    kernels.push(kernel((0..word(n)).collect(), vec![word(n)]));
    one(n + 1, kernels, vec![word(n)])
}

fn one_edge(n: usize) -> Vec<u8> {
    let kernels = vec![kernel(vec![], vec![0]), kernel(vec![0; n / 8], vec![])];
    one(1, kernels, vec![0; n / 8])
}

/// Makes kernels each of which lists all kernels as users of its result.
fn users(n: usize) -> Vec<u8> {
    let n = n / 48 + 2;
    let mut kernels: Vec<_> = (0..n).map(|k| kernel(vec![], vec![word(k)])).collect();
    kernels.push(kernel(vec![0], vec![]));
    let mut body = body(n, kernels, vec![]);
    for kernel in body.kernels.iter_mut().skip(1).take(n) {
        kernel.users = vec![vec![word(n); 2]];
    }
    bytes_of(file(vec![("f", body)]))
}

fn streams(n: usize) -> Vec<u8> {
    let kernels = (0..n / 32).map(|k| KernelEntry {
        stream: word(k) << 7,
        ..KernelEntry::default()
    });
    let kernels: Vec<_> = kernels.collect();
    let streams: Vec<_> = kernels.iter().map(|kernel| kernel.stream).collect();
    let mut body = body(0, kernels, vec![]);
    for (kernel, stream) in body.kernels.iter_mut().skip(1).zip(streams) {
        kernel.stream = stream;
    }
    bytes_of(file(vec![("f", body)]))
}

fn results(n: usize) -> Vec<u8> {
    let all: Vec<u32> = (0..word(n / 16)).collect();
    one(all.len(), vec![kernel(vec![], all.clone())], all)
}

fn chain(n: usize) -> Vec<u8> {
    let n = n / 48 + 2;
    let mut kernels = vec![kernel(vec![], vec![0])];
    kernels.extend((1..n).map(|k| kernel(vec![word(k - 1)], vec![word(k)])));
    one(n, kernels, vec![word(n - 1)])
}

/// Makes kernels each of which calls all functions; these have names.
fn calls(n: usize) -> Vec<u8> {
    let n_functions = n.isqrt() / 4 + 1;
    let all: Vec<u32> = (0..word(n_functions)).collect();
    let call = KernelEntry {
        functions: all,
        ..KernelEntry::default()
    };
    let functions = (0..n_functions).map(|_| ("f", body(0, vec![call.clone(); 2], vec![])));
    bytes_of(file(functions.collect()))
}

fn marks(n: usize) -> Vec<u8> {
    let marked = KernelEntry {
        nonstrict: true,
        ..KernelEntry::default()
    };
    one(0, vec![marked; n / 40], vec![])
}
