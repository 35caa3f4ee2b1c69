//! The library's bytes, read as the format and the processors have them; `loaded` has the system's loader and processors,
//! emulated ones too, take it.

mod loaded;

use object::{Architecture, Object, ObjectSegment};

use super::*;

fn word(bytes: &[u8], at: usize) -> usize {
    let long: [u8; 8] = bytes[at..at + 8].try_into().unwrap();
    u64::from_le_bytes(long) as usize
}

fn half(bytes: &[u8], at: usize) -> usize {
    word(bytes, at) & 0xffff_ffff
}

/// Finds a symbol's address as the system's loader does: by the dynamic section and the hash table.
fn find(bytes: &[u8], name: &str) -> Option<usize> {
    let dynamic = HEADER + 3 * PROGRAM_HEADER;
    assert_eq!(
        half(bytes, dynamic),
        2,
        "the fourth segment is the dynamic section"
    );
    let dynamic = word(bytes, dynamic + 8);
    let value = |tag| {
        let mut entries = (0..N_DYNAMIC).map(|index| dynamic + index * 16);
        let entry = entries.find(|entry| word(bytes, *entry) == tag);
        word(bytes, entry.unwrap() + 8)
    };
    let (hash, names, symbols) = (value(4), value(5), value(6));
    let n_buckets = half(bytes, hash);
    let bucket = elf_hash(name) as usize % n_buckets;
    let mut index = half(bytes, hash + 8 + 4 * bucket);
    while index != 0 {
        let symbol = symbols + index * SYMBOL;
        let text = &bytes[names + half(bytes, symbol)..];
        if text.starts_with(name.as_bytes()) && text[name.len()] == 0 {
            return Some(word(bytes, symbol + 8));
        }
        index = half(bytes, hash + 8 + 4 * (n_buckets + index));
    }
    None
}

/// Returns the libraries of 1, 2 and 5,000 entries for a processor; every third function is not provided.
fn libraries(machine: Machine) -> impl Iterator<Item = (Vec<Entry>, Vec<u8>)> {
    [1, 2, 5_000].into_iter().map(move |n| {
        let entry = |index: usize| Entry {
            name: format!("TF_Function{index}"),
            is_provided: !index.is_multiple_of(3),
        };
        let entries: Vec<Entry> = (0..n).map(entry).collect();
        let bytes = library_for(machine, "libtensorflow_framework.so.2", &entries);
        (entries, bytes)
    })
}

#[test]
fn symbols_of_libraries_of_any_size_are_found() {
    for machine in [Machine::X86_64, Machine::Aarch64] {
        for (entries, bytes) in libraries(machine) {
            let file = object::File::parse(&*bytes).unwrap();
            let expected = match machine {
                Machine::X86_64 => Architecture::X86_64,
                Machine::Aarch64 => Architecture::Aarch64,
            };
            assert_eq!(file.architecture(), expected);
            assert_eq!(file.kind(), object::ObjectKind::Dynamic);
            let first = find(&bytes, &entries[0].name).unwrap();
            for (index, entry) in entries.iter().enumerate() {
                assert_eq!(find(&bytes, &entry.name), Some(first + index * ENTRY));
            }
            let table = find(&bytes, TABLE).unwrap();
            assert!(
                table.is_multiple_of(machine.page()),
                "the table's page can be made read-only"
            );
            assert_eq!(find(&bytes, "TF_Nothing"), None);
            // Segments lie in the file as in memory, and none is both written and executed.
            for segment in file.segments() {
                let (at, len) = segment.file_range();
                assert_eq!((at, len), (segment.address(), segment.size()));
                assert!(at.is_multiple_of(machine.page() as u64), "{segment:?}");
                let object::SegmentFlags::Elf { p_flags } = segment.flags() else {
                    panic!("it is an ELF file");
                };
                assert_ne!(p_flags & 3, 3, "{segment:?}");
            }
        }
    }
}

/// Where an entry jumps through, and the address of the name that it loads before.
type Jump = (usize, Option<usize>);

/// Reads the instructions of an entry as an x86-64 processor does.
fn x86_64_jump(bytes: &[u8], at: usize) -> Jump {
    let target = |at: usize| {
        let distance: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
        (at + 4).wrapping_add_signed(i32::from_le_bytes(distance) as isize)
    };
    let (name, next) = match &bytes[at..at + 3] {
        [0x48, 0x8d, 0x3d] => (Some(target(at + 3)), at + 7),
        _ => (None, at),
    };
    assert_eq!(bytes[next..next + 2], [0xff, 0x25], "jmp [rip + distance]");
    (target(next + 2), name)
}

/// Reads the instructions of an entry as an aarch64 processor does.
fn aarch64_jump(bytes: &[u8], at: usize) -> Jump {
    let word = |at: usize| half(bytes, at) as u32;
    // The number of `adr` and `adrp`, with its sign.
    let distance = |word: u32| {
        let bits = word >> 29 & 3 | (word >> 5 & 0x7_ffff) << 2;
        (i64::from(bits) << 43 >> 43) as isize
    };
    let (name, next) = match word(at) {
        adr if adr & 0x9f00_001f == 0x1000_0000 => {
            (Some(at.wrapping_add_signed(distance(adr))), at + 4)
        }
        _ => (None, at),
    };
    let (adrp, ldr, br) = (word(next), word(next + 4), word(next + 8));
    assert_eq!(adrp & 0x9f00_001f, 0x9000_0010, "adrp x16, page");
    assert_eq!(ldr & 0xffc0_03ff, 0xf940_0210, "ldr x16, [x16, offset]");
    assert_eq!(br, 0xd61f_0200, "br x16");
    let page = (next & !0xfff).wrapping_add_signed(distance(adrp) << 12);
    (page + (ldr >> 10 & 0xfff) as usize * 8, name)
}

#[test]
fn entries_jump_through_their_place_of_the_table() {
    for (machine, read) in [
        (Machine::X86_64, x86_64_jump as fn(&[u8], usize) -> Jump),
        (Machine::Aarch64, aarch64_jump),
    ] {
        for (entries, bytes) in libraries(machine) {
            let table = find(&bytes, TABLE).unwrap();
            for (index, entry) in entries.iter().enumerate() {
                let (place, name) = read(&bytes, find(&bytes, &entry.name).unwrap());
                let (own, last) = (table + index * 8, table + entries.len() * 8);
                assert_eq!(place, if entry.is_provided { own } else { last });
                let name = name.map(|at| &bytes[at..at + entry.name.len() + 1]);
                let own = format!("{}\0", entry.name);
                let expected = (!entry.is_provided).then_some(own.as_bytes());
                assert_eq!(name, expected);
            }
        }
    }
}
