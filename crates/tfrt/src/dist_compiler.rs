//! Many tasks: what [`tfrt_dist`] needs of the front crate, which is the compiler of the programs that tasks send.

use std::sync::Arc;

use tfrt_bef::BefFile;
use tfrt_compiler::CompileOptions;
use tfrt_dist::functions::{CompilerPass, CompilerPasses, DEFAULT_PASS};
use tfrt_dist::security::Trust;
use tfrt_host::{Error, HostContext, Program};
use tfrt_ir::{Diagnostics, Module, Source};

use crate::untrusted::{Untrusted, is_refused};

/// The dialects of which a program of another task has no kernels, whether it is trusted or not: they look at files.
const REFUSED_DIALECTS: &[&str] = &["btf"];

/// Kernels of other dialects that look at files.
const REFUSED_KERNELS: &[&str] = &["tfrt_test.read_string_from_file"];

/// Registers the compiler with a host.
pub(crate) fn register(host: &HostContext) {
    CompilerPasses::of(host).register(DEFAULT_PASS, Arc::new(TextPass));
}

/// The dialect that lets programs reach other tasks, but for its kernels for tests: who sends programs is one.
const DISTRIBUTED: &str = "tfrt_dist.";

/// The beginning of the names of its kernels for tests, which open ports and hold requests back.
const DISTRIBUTED_TESTS: &str = "tfrt_dist.test_";

/// Kernels for tests that strangers have as well: names of values and groups are strings, which nothing else makes.
const GRANTED_KERNELS: &[&str] = &["tfrt_test.get_string"];

/// A compiler pass of MLIR text, which goes through the whole gate.
struct TextPass;

impl CompilerPass for TextPass {
    fn load(
        &self,
        name: &str,
        program: &str,
        trust: Trust,
        host: &HostContext,
    ) -> Result<Program, Error> {
        let source = Source::new(name, program);
        let module = tfrt_ir::parse(&source).map_err(|all| refused(&all))?;
        tfrt_ir::verify(&module).map_err(|all| refused(&all))?;
        check(&module)?;
        let bytes = tfrt_compiler::compile(&module, &CompileOptions::default());
        let bytes = bytes.map_err(|all| refused(&all))?;
        if trust == Trust::Untrusted {
            check_untrusted(&module, bytes.as_bytes().len())?;
        }
        let file = BefFile::open(bytes).map_err(|_| {
            Error::invalid_argument(format!("Failed to open lowered BEF for function {name}."))
        })?;
        Program::load(file, host).map_err(|reason| {
            let mut problems = reason
                .problems()
                .iter()
                .map(|problem| problem.message.clone());
            let first = problems.next().unwrap_or_default();
            problems.fold(Error::invalid_argument(first), Error::with_note)
        })
    }
}

/// Refuses what no stranger's program has: kernels for tests and GPUs, native functions, files of more bytes.
fn check_untrusted(module: &Module, len_bytes: usize) -> Result<(), Error> {
    let max_bytes = Untrusted::default().max_file_bytes;
    if len_bytes as u64 > max_bytes {
        return Err(Error::resource_exhausted(format!(
            "expected a program of {max_bytes} bytes at most, found {len_bytes}"
        )));
    }
    let mut found = None;
    module.walk_pre_order(module.top(), &mut |op| {
        let name = module.op(op).name().as_str();
        let is_distributed = name.starts_with(DISTRIBUTED) && !name.starts_with(DISTRIBUTED_TESTS);
        // Operations without a dialect are those of modules and functions themselves.
        let is_kernel = name.contains('.') && !name.starts_with("func.");
        let is_granted = is_distributed || GRANTED_KERNELS.contains(&name);
        if is_kernel && !is_granted && is_refused(name) {
            found.get_or_insert_with(|| name.to_string());
        }
    });
    match found {
        None => Ok(()),
        Some(name) => Err(Error::new(
            tfrt_host::ErrorCode::PermissionDenied,
            format!(
                "{name} is a kernel that programs of other tasks have only where these are trusted"
            ),
        )),
    }
}

/// Returns the first complaint as an error of one line, with the others as notes.
fn refused(all: &Diagnostics) -> Error {
    let mut lines = all
        .iter()
        .map(|one| one.render_short(false).trim_end().to_owned());
    let first = lines.next().unwrap_or_default();
    lines.fold(Error::invalid_argument(first), Error::with_note)
}

/// Refuses operations whose kernels look at files.
fn check(module: &Module) -> Result<(), Error> {
    let mut refused = None;
    module.walk_pre_order(module.top(), &mut |op| {
        let name = module.op(op).name().as_str();
        let dialect = name.split('.').next().unwrap_or_default();
        if REFUSED_DIALECTS.contains(&dialect) || REFUSED_KERNELS.contains(&name) {
            refused.get_or_insert_with(|| name.to_string());
        }
    });
    match refused {
        None => Ok(()),
        Some(name) => Err(Error::new(
            tfrt_host::ErrorCode::PermissionDenied,
            format!("{name} looks at files, which programs of other tasks may not"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    fn load(kernel: &str, trust: Trust) -> Result<Program, Error> {
        let text = format!(
            "func.func @f() {{\n  %us = tfrt.constant.i32 1\n  {kernel}\n  tfrt.return\n}}\n"
        );
        TextPass.load("f", &text, trust, Runtime::new().host())
    }

    #[test]
    fn programs_of_tasks_that_are_not_trusted_have_the_kernels_of_strangers() {
        let plain = "%x = tfrt.constant.i32 1";
        let distributed = "%t = tfrt_dist.test_create_configurations : 1";
        let string = "%x = tfrt_test.get_string {value = \"s\"}";
        let test = "\"tfrt_test.usleep\"(%us) : (i32) -> ()";
        for trust in [Trust::Trusted, Trust::Untrusted] {
            load(plain, trust).unwrap();
            load(string, trust).unwrap();
        }
        for (kernel, name) in [
            (test, "tfrt_test.usleep"),
            (distributed, "tfrt_dist.test_create_configurations"),
        ] {
            if let Err(error) = load(kernel, Trust::Trusted) {
                panic!("{kernel}: {error}");
            }
            let error = load(kernel, Trust::Untrusted).unwrap_err();
            assert_eq!(error.code(), tfrt_host::ErrorCode::PermissionDenied);
            let expected =
                "is a kernel that programs of other tasks have only where these are trusted";
            assert_eq!(error.message(), format!("{name} {expected}"));
        }
    }
}
