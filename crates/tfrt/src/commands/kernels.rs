//! `tfrt kernels`: what is registered, with signatures.

use std::io::Write;

use serde::Serialize;
use tfrt::kernel::{Completion, KernelEntry, KernelRegistry};

use super::print_json;
use crate::failure::{ExitStatus, Failure};
use crate::options::KernelsOptions;

/// Lists the kernels that match the pattern.
pub fn kernels(options: &KernelsOptions) -> Result<ExitStatus, Failure> {
    let mut registry = KernelRegistry::new();
    tfrt::kernels::register_all(&mut registry);
    let pattern = options.pattern.as_deref().unwrap_or("*");
    let chosen: Vec<Listed> = registry
        .kernels()
        .map(|entry| Listed::new(entry, false))
        .chain(registry.natives().map(|entry| Listed::new(entry, true)))
        .filter(|kernel| matches(pattern, &kernel.name))
        .collect();
    if options.json {
        print_json(&Document {
            schema: "tfrt.kernels/1",
            kernels: &chosen,
        })?;
    } else {
        let mut out = std::io::stdout().lock();
        for kernel in &chosen {
            let native = if kernel.native { " (native)" } else { "" };
            writeln!(out, "{}{}{native}", kernel.name, kernel.signature)?;
        }
        out.flush()?;
    }
    match options.pattern.as_deref() {
        Some(pattern) if chosen.is_empty() => Err(Failure::Rejected(
            None,
            format!("no kernel has a name like '{pattern}'"),
        )),
        _ => Ok(ExitStatus::Fine),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    kernels: &'a [Listed],
}

#[derive(Serialize)]
struct Listed {
    name: String,
    signature: String,
    operands: Vec<Operand>,
    more_operands: bool,
    attributes: Vec<&'static str>,
    more_attributes: bool,
    functions: usize,
    more_functions: bool,
    results: Vec<Option<&'static str>>,
    any_results: bool,
    completion: &'static str,
    native: bool,
}

#[derive(Serialize)]
struct Operand {
    /// The MLIR name; absent if any type will do.
    #[serde(rename = "type")]
    type_name: Option<&'static str>,
    strict: bool,
}

impl Listed {
    fn new(entry: &KernelEntry, native: bool) -> Listed {
        let signature = entry.signature();
        let operands = signature.operands.iter().map(|operand| Operand {
            type_name: operand.type_name,
            strict: operand.strict,
        });
        let results = signature.results.iter().map(|result| result.type_name);
        Listed {
            name: entry.name().to_owned(),
            signature: signature.to_string(),
            operands: operands.collect(),
            more_operands: signature.more_operands,
            attributes: signature.attributes.iter().map(|spec| spec.kind).collect(),
            more_attributes: signature.more_attributes,
            functions: signature.n_functions,
            more_functions: signature.more_functions,
            results: results.collect(),
            any_results: signature.any_results,
            completion: match signature.completion {
                Completion::Synchronous => "synchronous",
                Completion::Asynchronous => "asynchronous",
                Completion::Calls => "calls",
            },
            native,
        }
    }
}

/// Tells whether a name matches: as a whole if the pattern has `*` or `?`, else in some part.
fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return name.contains(pattern);
    }
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // Where to go back to: behind the last star, and the first byte it does not cover.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            Some(b'?') => (p, n) = (p + 1, n + 1),
            Some(byte) if *byte == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((behind, covered)) => {
                    star = Some((behind, covered + 1));
                    (p, n) = (behind, covered + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_wholly_or_in_part() {
        for (pattern, name) in [
            ("print", "tfrt.print.i32"),
            ("tfrt.*.i32", "tfrt.print.i32"),
            ("*", "x"),
            ("*i32", "tfrt.add.i32.i32"),
            ("tfrt.add.i??", "tfrt.add.i64"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("prints", "tfrt.print"),
            ("print*", "tfrt.print"),
            ("?", "ab"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
