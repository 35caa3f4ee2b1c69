//! BEF files that no compiler would write.

use tfrt::bef::{
    BefWriter, FunctionBody, FunctionEntry, FunctionKind, KernelEntry, Payload, SectionId,
};
use tfrt::compiler::CompileOptions;
use tfrt::ir::Source;

use super::{Case, rejected};

pub fn cases() -> Vec<Case> {
    let whole = compiled();
    let changed = |place: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[place] = byte;
        bytes
    };
    vec![
        rejected(
            "BEF: only the magic",
            &whole[..2],
            "tfrt: error: input.mlir: byte 0x2: Unknown BEF format version detected: the file ends here",
        ),
        rejected("BEF: cut in half", &whole[..whole.len() / 2], "byte "),
        rejected(
            "BEF: the last byte missing",
            &whole[..whole.len() - 1],
            "byte ",
        ),
        rejected(
            "BEF: wrong magic",
            changed(1, 0xee),
            "expected UTF-8 text, found the byte 0xee",
        ),
        rejected("BEF: version of the future", changed(2, 9), "byte "),
        rejected("BEF: garbage after the magic", garbage(), "byte "),
        rejected(
            "BEF: garbage after the end",
            [&whole[..], &[7; 100]].concat(),
            "byte ",
        ),
        rejected(
            "BEF: file twice",
            [&whole[..], &whole[..]].concat(),
            "byte ",
        ),
        rejected(
            "BEF: section of 2^60 bytes",
            [
                &whole[..3],
                &[1, 0x90, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0],
            ]
            .concat(),
            "byte ",
        ),
        rejected(
            "BEF: 2^40 functions",
            bomb(SectionId::FunctionIndex),
            "byte ",
        ),
        rejected("BEF: 2^40 kernel names", bomb(SectionId::Kernels), "byte "),
        rejected("BEF: 2^40 types", bomb(SectionId::Types), "byte "),
        rejected(
            "BEF: kernel that reads its own result",
            program(vec![("tfrt.add.i32", &[0, 0], &[0])], 1, &[0]),
            "byte ",
        ),
        rejected(
            "BEF: kernels in a circle",
            program(
                vec![
                    ("tfrt.add.i32", &[1, 1], &[0]),
                    ("tfrt.add.i32", &[0, 0], &[1]),
                ],
                2,
                &[0],
            ),
            "byte ",
        ),
        rejected(
            "BEF: register out of range",
            program(vec![("tfrt.add.i32", &[7, 7], &[0])], 1, &[0]),
            "byte ",
        ),
        rejected(
            "BEF: result register out of range",
            program(vec![("tfrt_test.fail", &[], &[0])], 1, &[9]),
            "byte ",
        ),
        rejected(
            "BEF: register that is written twice",
            program(
                vec![("tfrt_test.fail", &[], &[0]), ("tfrt_test.fail", &[], &[0])],
                1,
                &[0],
            ),
            "byte ",
        ),
        rejected(
            "BEF: register that is never written",
            program(vec![("tfrt_test.fail", &[], &[0])], 2, &[1]),
            "byte ",
        ),
        rejected(
            "BEF: unknown kernel",
            program(vec![("tfrt_test.fial", &[], &[0])], 1, &[0]),
            "unknown kernel name 'tfrt_test.fial'",
        ),
        rejected(
            "BEF: kernel with too few operands",
            program(vec![("tfrt.add.i32", &[], &[0])], 1, &[0]),
            "kernel 'tfrt.add.i32' takes 2 operands, but is given 0",
        ),
        rejected(
            "BEF: kernel without its attribute",
            program(vec![("tfrt.constant.i32", &[], &[0])], 1, &[0]),
            "kernel 'tfrt.constant.i32' takes 1 attributes, but is given 0",
        ),
        rejected(
            "BEF: kernel without its function",
            program(vec![("tfrt.call", &[], &[0])], 1, &[0]),
            "kernel 'tfrt.call' takes 1 functions, but is given 0",
        ),
    ]
}

/// What our compiler makes of a small program.
fn compiled() -> Vec<u8> {
    let text = "func.func @main() -> i32 {
      %x = tfrt.constant.i32 42
      %y = tfrt.add.i32 %x, %x
      tfrt.return %y : i32
    }";
    tfrt::input::compile(&Source::new("fine.mlir", text), &CompileOptions::default())
        .expect("the program is fine")
        .as_bytes()
        .to_vec()
}

/// The magic, the version and noise.
fn garbage() -> Vec<u8> {
    let noise = (0_u32..4096).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8);
    [0x0b, 0xef, 0].into_iter().chain(noise).collect()
}

/// A file in which a section claims to list 2^40 things.
fn bomb(section: SectionId) -> Vec<u8> {
    let mut sections = writer(vec![("tfrt_test.fail", &[], &[0])], 1, &[0]).sections();
    for (found, payload) in &mut sections {
        if *found == section as u8 {
            *payload = Payload::default();
            payload.varint(1_u64 << 40);
            payload.bytes(&[0; 64]);
        }
    }
    tfrt::bef::assemble(&sections)
}

type Kernel = (&'static str, &'static [u32], &'static [u32]);

fn program(kernels: Vec<Kernel>, n_registers: u32, results: &[u32]) -> Vec<u8> {
    writer(kernels, n_registers, results)
        .finish()
        .as_bytes()
        .to_vec()
}

/// A function `main` of these kernels: names, operands, results.
fn writer(kernels: Vec<Kernel>, n_registers: u32, results: &[u32]) -> BefWriter {
    let mut writer = BefWriter::new();
    writer.strings.insert("");
    let ty = writer.strings.insert("i32");
    writer.types = vec![ty];
    let mut entries = Vec::new();
    for (name, operands, results) in kernels {
        let name = writer.strings.insert(name);
        let code = writer.kernels.iter().position(|known| *known == name);
        let code = code.unwrap_or_else(|| {
            writer.kernels.push(name);
            writer.kernels.len() - 1
        });
        entries.push(KernelEntry {
            code: code as u32,
            operands: operands.to_vec(),
            results: results.to_vec(),
            ..KernelEntry::default()
        });
    }
    let name = writer.strings.insert("main");
    writer.functions.push(FunctionEntry {
        kind: FunctionKind::Async,
        name,
        arguments: Vec::new(),
        results: vec![0; results.len()],
        body: Some(FunctionBody::new(n_registers, 0, entries, results.to_vec()).into()),
    });
    writer
}
