//! Many tasks: what [`tfrt_dist`] needs of the front crate, which is the compiler of the programs that tasks send.

use std::sync::Arc;

use tfrt_bef::BefFile;
use tfrt_compiler::CompileOptions;
use tfrt_dist::functions::{CompilerPass, CompilerPasses, DEFAULT_PASS};
use tfrt_host::{Error, HostContext, Program};
use tfrt_ir::{Diagnostics, Module, Source};

/// The dialects of which a program of another task has no kernels: they look at files.
const REFUSED_DIALECTS: &[&str] = &["btf"];

/// Kernels of other dialects that look at files.
const REFUSED_KERNELS: &[&str] = &["tfrt_test.read_string_from_file"];

/// Registers the compiler with a host.
pub(crate) fn register(host: &HostContext) {
    CompilerPasses::of(host).register(DEFAULT_PASS, Arc::new(TextPass));
}

/// A compiler pass of MLIR text, which goes through the whole gate.
struct TextPass;

impl CompilerPass for TextPass {
    fn load(&self, name: &str, program: &str, host: &HostContext) -> Result<Program, Error> {
        let source = Source::new(name, program);
        let module = tfrt_ir::parse(&source).map_err(|all| refused(&all))?;
        tfrt_ir::verify(&module).map_err(|all| refused(&all))?;
        check(&module)?;
        let bytes = tfrt_compiler::compile(&module, &CompileOptions::default());
        let bytes = bytes.map_err(|all| refused(&all))?;
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
