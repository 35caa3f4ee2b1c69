//! Reading of libraries without running them: what they need, what they define, what they ask for.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, Sym, VersionTable};
use object::{Endianness, ReadCache, ReadRef};

/// A library as its file says.
#[derive(Debug)]
pub struct Library {
    /// The file.
    pub path: PathBuf,
    /// Name by which others ask for it.
    pub soname: Option<String>,
    /// Libraries that it asks for.
    pub needed: Vec<String>,
    /// Folders where those are looked for first.
    pub run_path: Vec<PathBuf>,
    /// Symbols that it asks for, and does without where they are missing if the flag is set.
    pub undefined: Vec<Undefined>,
    /// Symbols that it has.
    pub defined: BTreeSet<String>,
}

/// A symbol that a library asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The name.
    pub name: String,
    /// The version that it must have, with the library that is to have it.
    pub version: Option<(String, String)>,
    /// Whether the library does without it.
    pub is_weak: bool,
}

/// The machine that libraries must be for.
pub const MACHINE: (u16, &str) = match cfg!(target_arch = "aarch64") {
    true => (elf::EM_AARCH64, "aarch64"),
    false => (elf::EM_X86_64, "x86-64"),
};

impl Library {
    /// Reads the file of a library. Code and data are not read.
    ///
    /// # Errors
    ///
    /// Why it is no library for this machine.
    pub fn read(path: &Path) -> Result<Library, String> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| format!("it can't be read: {error}"))?;
        if !metadata.is_file() {
            return Err("it is no file".to_owned());
        }
        if metadata.len() == 0 {
            return Err("the file is empty".to_owned());
        }
        let cache = ReadCache::new(file);
        let data = &cache;
        let magic = data.read_bytes_at(0, 6).unwrap_or_default();
        match magic {
            [0x7f, b'E', b'L', b'F', 2, 1] => (),
            [0x7f, b'E', b'L', b'F', ..] => {
                return Err("it is a library of 32 bits, or of another order of bytes".to_owned());
            }
            _ => return Err("it is no ELF library: its first bytes are others".to_owned()),
        }
        Library::parse(path, data).map_err(|error| match error {
            Refusal::Text(text) => text,
            Refusal::Damaged(error) => format!("it is damaged: {error}"),
        })
    }

    fn parse<'d, R: ReadRef<'d>>(path: &Path, data: R) -> Result<Library, Refusal> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let machine = header.e_machine(endian);
        let (wanted, name) = MACHINE;
        if machine != wanted {
            let found = machine_name(machine);
            return Err(Refusal::Text(format!(
                "it is for another machine: expected {name}, found {found}"
            )));
        }
        if header.e_type(endian) != elf::ET_DYN {
            return Err(Refusal::Text("it is no shared library".to_owned()));
        }
        let file = ElfFile64::<Endianness, R>::parse(data)?;
        let mut library = Library {
            path: path.to_owned(),
            soname: None,
            needed: Vec::new(),
            run_path: Vec::new(),
            undefined: Vec::new(),
            defined: BTreeSet::new(),
        };
        let names = library.read_dynamic(header, endian, data)?;
        let sections = file.elf_section_table();
        let versions = sections.versions(endian, data)?;
        let symbols = file.elf_dynamic_symbol_table();
        for (index, symbol) in symbols.enumerate() {
            // All names are read at once.
            let Some(name) = text_at(names, symbol.st_name(endian).into()) else {
                continue;
            };
            if name.is_empty() || symbol.st_bind() == elf::STB_LOCAL {
                continue;
            }
            if symbol.is_undefined(endian) {
                library.undefined.push(Undefined {
                    name,
                    version: version(&versions, endian, index),
                    is_weak: symbol.st_bind() == elf::STB_WEAK,
                });
            } else {
                library.defined.insert(name);
            }
        }
        Ok(library)
    }

    fn read_dynamic<'d, R: ReadRef<'d>>(
        &mut self,
        header: &FileHeader64<Endianness>,
        endian: Endianness,
        data: R,
    ) -> Result<&'d [u8], Refusal> {
        let segments = header.program_headers(endian, data)?;
        let mut entries = &[][..];
        for segment in segments {
            if let Some(found) = segment.dynamic(endian, data)? {
                entries = found;
            }
        }
        let value = |tag: u32| {
            let found = entries
                .iter()
                .find(|entry| entry.tag32(endian) == Some(tag));
            found.map(|entry| entry.d_val(endian))
        };
        let (Some(strings), Some(len)) = (value(elf::DT_STRTAB), value(elf::DT_STRSZ)) else {
            return Err(Refusal::Text(
                "it is no shared library: it has no names".to_owned(),
            ));
        };
        let mut names: &'d [u8] = &[];
        for segment in segments {
            if let Ok(Some(bytes)) = segment.data_range(endian, data, strings, len) {
                names = bytes;
            }
        }
        let text = |offset| text_at(names, offset);
        for entry in entries {
            let Some(tag) = entry.tag32(endian) else {
                continue;
            };
            let value = entry.d_val(endian);
            match tag {
                elf::DT_NEEDED => self.needed.extend(text(value)),
                elf::DT_SONAME => self.soname = text(value),
                elf::DT_RPATH | elf::DT_RUNPATH => {
                    let folder = self.path.parent().unwrap_or(Path::new("."));
                    let folder = folder.to_string_lossy().into_owned();
                    let paths = text(value).unwrap_or_default();
                    let paths = paths.split(':').filter(|path| !path.is_empty());
                    self.run_path.extend(paths.map(|path| {
                        let path = path.replace("${ORIGIN}", &folder);
                        PathBuf::from(path.replace("$ORIGIN", &folder))
                    }));
                }
                _ => (),
            }
        }
        Ok(names)
    }
}

/// Returns the text at an offset of a table of texts.
fn text_at(names: &[u8], offset: u64) -> Option<String> {
    let rest = names.get(usize::try_from(offset).ok()?..)?;
    let text = rest.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

fn version(
    versions: &Option<VersionTable<'_, FileHeader64<Endianness>>>,
    endian: Endianness,
    index: object::SymbolIndex,
) -> Option<(String, String)> {
    let versions = versions.as_ref()?;
    let index = versions.version_index(endian, index);
    let version = versions.version(index).ok()??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((
        text(version.name()),
        version.file().map(text).unwrap_or_default(),
    ))
}

/// Why a file can't be read as a library.
enum Refusal {
    Text(String),
    Damaged(object::Error),
}

impl From<object::Error> for Refusal {
    fn from(error: object::Error) -> Refusal {
        Refusal::Damaged(error)
    }
}

fn machine_name(machine: u16) -> String {
    let name = match machine {
        elf::EM_386 => "i386",
        elf::EM_ARM => "arm",
        elf::EM_AARCH64 => "aarch64",
        elf::EM_X86_64 => "x86-64",
        elf::EM_RISCV => "riscv",
        elf::EM_PPC64 => "powerpc64",
        elf::EM_S390 => "s390",
        other => return format!("machine {other}"),
    };
    name.to_owned()
}

/// Folders where the system's loader looks last.
const SYSTEM_FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// Returns the file of a library that another one asks for, as the system's loader finds it.
pub fn find(needed: &str, by: &Library) -> Option<PathBuf> {
    if needed.contains('/') {
        return Some(PathBuf::from(needed)).filter(|path| path.is_file());
    }
    let variable = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let own = by.run_path.iter().cloned();
    let paths = own.chain(std::env::split_paths(&variable));
    let paths = paths.chain(SYSTEM_FOLDERS.iter().map(PathBuf::from));
    let mut files = paths.map(|folder| folder.join(needed));
    files.find(|path| path.is_file())
}
