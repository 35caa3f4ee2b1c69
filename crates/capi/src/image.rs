//! The library that plugins ask for, written at run time as an ELF shared object.
//!
//! A plugin wants the functions of the C API from `libtensorflow_framework.so.2`. The host makes a library of that name:
//! an entry of 16 bytes for each function, which jumps through a table that the host fills. So no file lies beside the
//! host, and nothing need be exported by the program that it is part of.

use std::ffi::c_void;

/// Name of the symbol of the table, an address for each entry.
pub const TABLE: &str = "tfrt_capi_table";

const ENTRY: usize = 16;
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const N_PROGRAM_HEADERS: usize = 5;
const SYMBOL: usize = 24;

/// A processor that libraries are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// The processor that this program runs on; plugins are refused on others before a library is written.
    const OWN: Machine = match cfg!(target_arch = "aarch64") {
        true => Machine::Aarch64,
        false => Machine::X86_64,
    };

    /// Returns its number in the ELF format.
    fn number(self) -> u16 {
        match self {
            Machine::X86_64 => 62,
            Machine::Aarch64 => 183,
        }
    }

    /// Returns the largest page that its kernels have: what begins one of these begins a page of any size.
    fn page(self) -> usize {
        match self {
            Machine::X86_64 => 1 << 12,
            Machine::Aarch64 => 1 << 16,
        }
    }
}

/// An entry of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The symbol's name.
    pub name: String,
    /// Whether the host has the function. Others call the function of the table's last place, with their name.
    pub is_provided: bool,
}

/// Returns the bytes of a library with a name, and a function for each entry. Entry `i` jumps to the address at place `i`
/// of the table; the table's last place, behind all entries, is that of functions that are not provided.
pub fn library(soname: &str, entries: &[Entry]) -> Vec<u8> {
    library_for(Machine::OWN, soname, entries)
}

fn library_for(machine: Machine, soname: &str, entries: &[Entry]) -> Vec<u8> {
    let layout = Layout::new(machine, soname, entries);
    layout.bytes(soname, entries)
}

/// Places of the parts, which are addresses too: the library is laid out in memory as in the file.
struct Layout {
    machine: Machine,
    symbols: usize,
    hash: usize,
    names: usize,
    names_len: usize,
    code: usize,
    code_len: usize,
    dynamic: usize,
    table: usize,
    len: usize,
}

const N_DYNAMIC: usize = 7;

fn aligned(at: usize, to: usize) -> usize {
    at.next_multiple_of(to)
}

impl Layout {
    fn new(machine: Machine, soname: &str, entries: &[Entry]) -> Layout {
        let page = machine.page();
        // The null symbol, the entries, the table.
        let n_symbols = entries.len() + 2;
        let symbols = aligned(HEADER + N_PROGRAM_HEADERS * PROGRAM_HEADER, 8);
        let hash = symbols + n_symbols * SYMBOL;
        let names = hash + 4 * (2 + n_buckets(n_symbols) + n_symbols);
        let all: usize = entries.iter().map(|entry| entry.name.len() + 1).sum();
        let names_len = 1 + all + TABLE.len() + 1 + soname.len() + 1;
        let code = aligned(names + names_len, page);
        let code_len = entries.len() * ENTRY;
        // The dynamic section has a page of its own, so that the table's can be made read-only.
        let dynamic = aligned(code + code_len, page);
        let table = aligned(dynamic + N_DYNAMIC * 16, page);
        Layout {
            machine,
            symbols,
            hash,
            names,
            names_len,
            code,
            code_len,
            dynamic,
            table,
            len: table + (entries.len() + 1) * 8,
        }
    }

    fn bytes(&self, soname: &str, entries: &[Entry]) -> Vec<u8> {
        let mut out = Bytes(vec![0; self.len]);
        out.header(self.machine);
        let segments = [
            // Kind, flags (execute 1, write 2, read 4), begin, length.
            (1, 4, 0, self.names + self.names_len),
            (1, 5, self.code, self.code_len),
            (1, 6, self.dynamic, self.len - self.dynamic),
            (2, 6, self.dynamic, N_DYNAMIC * 16),
            (0x6474_e551, 6, 0, 0),
        ];
        for (index, segment) in segments.into_iter().enumerate() {
            out.program_header(index, segment, self.machine.page());
        }
        let mut name = self.names + 1;
        let mut put_name = |out: &mut Bytes, text: &str| {
            let at = name;
            out.put(at, text.as_bytes());
            name += text.len() + 1;
            at
        };
        let mut hashes = vec![0_u32];
        for (index, entry) in entries.iter().enumerate() {
            let text = put_name(&mut out, &entry.name);
            let code = self.code + index * ENTRY;
            out.symbol(
                self.symbols,
                index + 1,
                (text - self.names, 2, 2),
                (code, ENTRY),
            );
            hashes.push(elf_hash(&entry.name));
            let place = match entry.is_provided {
                true => self.table + index * 8,
                false => self.table + entries.len() * 8,
            };
            let name = (!entry.is_provided).then_some(text);
            match self.machine {
                Machine::X86_64 => out.x86_64_code(code, place, name),
                Machine::Aarch64 => out.aarch64_code(code, place, name),
            }
        }
        let text = put_name(&mut out, TABLE);
        let size = (entries.len() + 1) * 8;
        let symbol = (text - self.names, 1, 3);
        out.symbol(self.symbols, entries.len() + 1, symbol, (self.table, size));
        hashes.push(elf_hash(TABLE));
        let soname = put_name(&mut out, soname);
        out.hash_table(self.hash, &hashes);
        // Hash table, strings, symbols, length of strings, size of a symbol, name of the library, end.
        let dynamic = [
            (4, self.hash),
            (5, self.names),
            (6, self.symbols),
            (10, self.names_len),
            (11, SYMBOL),
            (14, soname - self.names),
            (0, 0),
        ];
        for (index, (tag, value)) in dynamic.into_iter().enumerate() {
            out.u64(self.dynamic + index * 16, tag);
            out.u64(self.dynamic + index * 16 + 8, value as u64);
        }
        out.0
    }
}

/// Bytes that are filled by place.
struct Bytes(Vec<u8>);

impl Bytes {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn u16(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    fn u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }

    fn header(&mut self, machine: Machine) {
        self.put(0, b"\x7fELF\x02\x01\x01");
        // A shared object, for the processor.
        self.u16(16, 3);
        self.u16(18, machine.number());
        self.u32(20, 1);
        // Program headers follow; there are no sections.
        self.u64(32, HEADER as u64);
        self.u16(52, HEADER as u16);
        self.u16(54, PROGRAM_HEADER as u16);
        self.u16(56, N_PROGRAM_HEADERS as u16);
        self.u16(58, 64);
    }

    fn program_header(
        &mut self,
        index: usize,
        (kind, flags, at, len): (u32, u32, usize, usize),
        page: usize,
    ) {
        let header = HEADER + index * PROGRAM_HEADER;
        self.u32(header, kind);
        self.u32(header + 4, flags);
        // Place in the file, address, physical address; lengths in the file and in memory; alignment.
        for (field, value) in [at, at, at, len, len].into_iter().enumerate() {
            self.u64(header + 8 + field * 8, value as u64);
        }
        self.u64(header + 48, if kind == 1 { page as u64 } else { 8 });
    }

    /// Writes a global symbol: name, kind (data 1, function 2), section (any but 0: it is defined).
    fn symbol(
        &mut self,
        symbols: usize,
        index: usize,
        (name, kind, section): (usize, u8, u16),
        (address, size): (usize, usize),
    ) {
        let at = symbols + index * SYMBOL;
        self.u32(at, name as u32);
        self.put(at + 4, &[1 << 4 | kind, 0]);
        self.u16(at + 6, section);
        self.u64(at + 8, address as u64);
        self.u64(at + 16, size as u64);
    }

    /// Writes a table by which the loader finds symbols: chains of those whose hashes fall into one bucket.
    fn hash_table(&mut self, at: usize, hashes: &[u32]) {
        let n_buckets = n_buckets(hashes.len());
        self.u32(at, n_buckets as u32);
        self.u32(at + 4, hashes.len() as u32);
        let (buckets, chains) = (at + 8, at + 8 + 4 * n_buckets);
        let mut first = vec![0_u32; n_buckets];
        for (index, hash) in hashes.iter().enumerate().skip(1) {
            let bucket = *hash as usize % n_buckets;
            self.u32(chains + 4 * index, first[bucket]);
            first[bucket] = index as u32;
        }
        for (bucket, first) in first.into_iter().enumerate() {
            self.u32(buckets + 4 * bucket, first);
        }
    }

    /// Writes an entry: `jmp *[place]`; before it, of a function that is not provided, `lea rdi, [name]`.
    fn x86_64_code(&mut self, at: usize, place: usize, name: Option<usize>) {
        let mut next = at;
        if let Some(name) = name {
            self.put(next, &[0x48, 0x8d, 0x3d]);
            self.put(next + 3, &relative(name, next + 7));
            next += 7;
        }
        self.put(next, &[0xff, 0x25]);
        self.put(next + 2, &relative(place, next + 6));
        next += 6;
        self.0[next..at + ENTRY].fill(0xcc);
    }

    /// Writes an entry: `adrp x16, place; ldr x16, [x16, place]; br x16`; before it, of a function that is not provided,
    /// `adr x0, name`. A name too far away for that, as those of tens of thousands of entries are, is null.
    fn aarch64_code(&mut self, at: usize, place: usize, name: Option<usize>) {
        // `brk`, where nothing jumps to.
        let mut code = [0xd420_0000_u32; 4];
        let first = usize::from(name.is_some());
        if let Some(name) = name {
            let distance = name as i64 - at as i64;
            code[0] = match (-(1 << 20)..1 << 20).contains(&distance) {
                true => 0x1000_0000 | split(distance),
                // `mov x0, xzr`
                false => 0xaa1f_03e0,
            };
        }
        let from = at + 4 * first;
        let pages = (place >> 12) as i64 - (from >> 12) as i64;
        let offset = ((place & 0xfff) / 8) as u32;
        code[first] = 0x9000_0010 | split(pages);
        code[first + 1] = 0xf940_0210 | offset << 10;
        code[first + 2] = 0xd61f_0200;
        for (index, word) in code.into_iter().enumerate() {
            self.u32(at + 4 * index, word);
        }
    }
}

/// Returns a number of 21 bits as `adr` and `adrp` have it: the lower two apart.
fn split(distance: i64) -> u32 {
    let bits = distance as u32;
    (bits & 3) << 29 | (bits >> 2 & 0x7_ffff) << 5
}

fn relative(to: usize, from: usize) -> [u8; 4] {
    ((to as i64 - from as i64) as i32).to_le_bytes()
}

fn n_buckets(n_symbols: usize) -> usize {
    (n_symbols / 2).max(1)
}

/// The hash of a symbol's name that the ELF format lays down.
fn elf_hash(name: &str) -> u32 {
    name.bytes().fold(0_u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// Writes the addresses of the functions into the table of a library that is loaded, and makes the table read-only.
///
/// # Safety
///
/// `table` is the address of [`TABLE`] in a library that [`library`] has made, with as many entries as there are
/// addresses, the last one aside.
///
/// # Errors
///
/// The system's, if memory can't be made read-only.
pub unsafe fn fill(table: *mut c_void, addresses: &[usize]) -> Result<(), rustix::io::Errno> {
    let places = table.cast::<usize>();
    for (index, address) in addresses.iter().enumerate() {
        // SAFETY: the table has a place for each address.
        let place = unsafe { places.add(index) };
        // SAFETY: as above; nobody has called the library yet.
        unsafe { place.write(*address) };
    }
    // The system rounds it up to whole pages.
    let len_bytes = size_of_val(addresses);
    let flags = rustix::mm::MprotectFlags::READ;
    // SAFETY: the table begins a page and ends its segment, so that nothing else lies in these pages.
    unsafe { rustix::mm::mprotect(table, len_bytes, flags) }
}

#[cfg(test)]
mod tests;
