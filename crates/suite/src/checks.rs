//! Chunks of StableHLO's interpreter suite, and modules of its test data: what their checks compare is compared here.
//!
//! A file is cut at lines `// -----`. Each public function of a chunk that takes nothing is made a model that returns the
//! operands of its checks, and the constants that they are compared with; these checks are no operations of this runtime.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use tfrt::Runtime;
use tfrt::input::Input;
use tfrt::ir::{Attribute, Module, OpId, OpState, Source, Type, parse};
use tfrt::model::Datum;
use tfrt::tensor::{DType, Tensor};

use crate::compare;
use crate::probes;
use crate::verdict::{CaseEnd, Stage, Verdict};

/// The line between chunks.
const SEPARATOR: &str = "// -----";

/// The prefix of a custom call that is a check.
const CHECK: &str = "check.";

/// How two values are to agree.
#[derive(Clone, Copy, Debug)]
enum Agreement {
    Equal,
    /// As far apart as this.
    Near(f64),
    /// As many floats apart as this.
    Ulps(u64),
}

/// Returns the names of the chunks of a folder's files: `add.mlir#0`.
pub fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "mlir") {
            continue;
        }
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path)?;
        let chunks = text.split(SEPARATOR).enumerate();
        let with_code = chunks.filter(|(_, chunk)| chunk.contains("func.func"));
        names.extend(with_code.map(|(index, _)| format!("{name}#{index}")));
    }
    Ok(names)
}

/// Runs a chunk.
pub fn run(runtime: &Runtime, folder: &Path, name: &str) -> Verdict {
    let mut verdict = Verdict::of(name, CaseEnd::Passed);
    if let Err((stage, reason)) = try_run(runtime, folder, name, &mut verdict) {
        verdict.ending = CaseEnd::Failed(stage, reason);
    }
    verdict
}

type Failure = (Stage, String);

fn try_run(
    runtime: &Runtime,
    folder: &Path,
    name: &str,
    verdict: &mut Verdict,
) -> Result<(), Failure> {
    let (file, chunk) = name.split_once('#').unwrap_or((name, "0"));
    let text =
        fs::read_to_string(folder.join(file)).map_err(|error| (Stage::Read, error.to_string()))?;
    let index = chunk.parse().unwrap_or(0);
    let text = text.split(SEPARATOR).nth(index).unwrap_or_default();
    if text.contains("interpreter.run_parallel") {
        return Err((Stage::Read, "is for several devices".to_owned()));
    }
    verdict.operations = operations(text).into_iter().collect();
    let opening = |errors: tfrt::ir::Diagnostics| (Stage::Open, crate::case::first_of(&errors));
    let source = Source::new(file, text);
    let functions = functions(&parse(&source).map_err(opening)?);
    if functions.is_empty() {
        // A module with arguments states no results: it is opened.
        let input = Input::from_bytes(file, text.as_bytes().to_vec());
        let input = input.map_err(|error| (Stage::Open, error.to_string()))?;
        let opened = runtime.load_model(&input);
        return opened
            .map(drop)
            .map_err(|error| (Stage::Open, crate::case::first(&error)));
    }
    for function in functions {
        let mut module = parse(&source).map_err(opening)?;
        let agreements =
            as_model(&mut module, &function).map_err(|reason| (Stage::Read, reason))?;
        let text = module.to_string();
        let input = Input::from_bytes(file, text.into_bytes());
        let input = input.map_err(|error| (Stage::Open, error.to_string()))?;
        let model = runtime.load_model(&input);
        let model = model.map_err(|error| (Stage::Open, crate::case::first(&error)))?;
        let outputs = model.call(&runtime.context(), Vec::<Datum>::new()).wait();
        let outputs = outputs
            .map_err(|error| (Stage::Call, error.message().to_owned()))?
            .into_data();
        for (index, agreement) in agreements.iter().enumerate() {
            let (Datum::Tensor(found), Datum::Tensor(wanted)) =
                (&outputs[2 * index], &outputs[2 * index + 1])
            else {
                return Err((Stage::Compare, "expected tensors".to_owned()));
            };
            check(*agreement, wanted, found)
                .map_err(|reason| (Stage::Compare, format!("@{function}: {reason}")))?;
        }
    }
    Ok(())
}

/// Returns the operations of a text, each once.
fn operations(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    let ours = parts.filter(|word| word.starts_with("stablehlo.") || word.starts_with("chlo."));
    ours.map(str::to_owned).collect()
}

/// Returns the names of the public functions that take nothing.
fn functions(module: &Module) -> Vec<String> {
    let mut names = Vec::new();
    for op in module.children(module.top()) {
        let data = module.op(op);
        let is_private =
            data.attribute("sym_visibility").and_then(Attribute::as_str) == Some("private");
        let ty = data.attribute("function_type").and_then(Attribute::as_type);
        let takes_nothing = ty
            .and_then(Type::as_function)
            .is_some_and(|ty| ty.inputs.is_empty());
        if *data.name() == "func.func" && !is_private && takes_nothing {
            names.extend(module.symbol_name(op).map(str::to_owned));
        }
    }
    names
}

/// Makes a function the model: it returns pairs of what is checked and what it is to be. Its checks go.
fn as_model(module: &mut Module, name: &str) -> Result<Vec<Agreement>, String> {
    let all: Vec<OpId> = module.children(module.top()).collect();
    for &op in &all {
        if *module.op(op).name() == "func.func" {
            let visibility = if module.symbol_name(op) == Some(name) {
                "public"
            } else {
                "private"
            };
            let renamed = module.symbol_name(op) == Some("main") && name != "main";
            module.set_attribute(op, "sym_visibility", Attribute::string(visibility));
            if renamed {
                module.set_attribute(op, "sym_name", Attribute::string("other_main"));
            }
        }
    }
    let function = all
        .into_iter()
        .find(|op| module.symbol_name(*op) == Some(name));
    let function = function.ok_or("has no such function")?;
    let region = module.op(function).regions().first().copied();
    let block = region.and_then(|region| module.entry_block(region));
    let block = block.ok_or("has a function without a body")?;
    let (mut agreements, mut pairs, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let (mut recorded, mut in_loops) = (HashMap::new(), HashMap::new());
    for op in module.block(block).operations().to_vec() {
        let data = module.op(op).clone();
        let call = data
            .attribute("call_target_name")
            .and_then(Attribute::as_str);
        let check = match data.name().as_str() {
            "stablehlo.custom_call" => call
                .filter(|call| call.starts_with(CHECK))
                .map(str::to_owned),
            own if own.starts_with(CHECK) => Some(own.to_owned()),
            _ => None,
        };
        let Some(check) = check else {
            match data.name().as_str() {
                "stablehlo.while" => probes::of_loop(module, op, &mut in_loops),
                _ => recorded.extend(probes::take(module, op)),
            }
            kept.push(op);
            continue;
        };
        let number = |name: &str| match data.attribute(name) {
            Some(Attribute::Float(value)) => Some(value.value()),
            _ => None,
        };
        agreements.push(match check.as_str() {
            "check.eq"
            | "check.expect_eq"
            | "check.expect_eq_const"
            | "check.expect_serialized_eq" => Agreement::Equal,
            "check.expect_almost_eq" | "check.expect_almost_eq_const" => {
                Agreement::Near(number("tolerance").unwrap_or(1e-4))
            }
            "check.expect_close" => {
                let most = data
                    .attribute("max_ulp_difference")
                    .and_then(Attribute::as_i64);
                Agreement::Ulps(most.and_then(|most| u64::try_from(most).ok()).unwrap_or(3))
            }
            other => return Err(format!("has a check '{other}', which compares files")),
        });
        if check == "check.expect_serialized_eq" {
            let name = probes::name_of(&data).unwrap_or_default();
            let wanted = data.operands()[0];
            if let Some(turn) = data.attribute("iter").and_then(Attribute::as_i64) {
                let probe = in_loops.get(&name).copied();
                let found =
                    probe.and_then(|probe| probes::recorded(module, &mut kept, probe, turn));
                let [found, is_there] = found.ok_or("compares what no loop records")?;
                let yes = module.create(probes::truth());
                kept.push(yes);
                agreements.push(Agreement::Equal);
                pairs.extend([found, wanted, is_there, module.op(yes).results()[0]]);
                continue;
            }
            let found = recorded.get(&name).copied();
            pairs.extend([found.ok_or("compares what nothing records")?, wanted]);
            continue;
        }
        let found = data.operands()[0];
        let wanted = match data.attribute("value") {
            Some(value) => {
                let ty = module.value_type(found).clone();
                let constant = OpState::new("stablehlo.constant")
                    .attribute("value", value.clone())
                    .result(ty);
                let constant = module.create(constant);
                kept.push(constant);
                module.op(constant).results()[0]
            }
            None => *data.operands().get(1).ok_or("has a check of one operand")?,
        };
        pairs.extend([found, wanted]);
    }
    if agreements.is_empty() {
        // It is to run.
        return Ok(agreements);
    }
    let last = kept.pop().ok_or("has a function without operations")?;
    module.set_operands(last, &pairs);
    kept.push(last);
    module.set_operations(block, kept);
    let types: Vec<Type> = pairs
        .iter()
        .map(|value| module.value_type(*value).clone())
        .collect();
    let ty = Attribute::Type(Type::function(Vec::new(), types));
    module.set_attribute(function, "function_type", ty);
    module.remove_attribute(function, "res_attrs");
    Ok(agreements)
}

fn check(agreement: Agreement, wanted: &Tensor, found: &Tensor) -> Result<(), String> {
    if wanted.metadata() != found.metadata() {
        let (wanted, found) = (wanted.metadata(), found.metadata());
        return Err(format!("expected {wanted}, found {found}"));
    }
    let dtype = wanted.metadata().dtype;
    let pairs = [compare::numbers(wanted)?, compare::numbers(found)?];
    let [wanted, found] = pairs;
    for (index, (wanted, found)) in wanted.iter().zip(&found).enumerate() {
        let same = wanted == found || (wanted.is_nan() && found.is_nan());
        let agrees = match agreement {
            Agreement::Equal => same,
            Agreement::Near(most) => same || (wanted - found).abs() <= most,
            Agreement::Ulps(most) => same || ulps(dtype, *wanted, *found) <= most,
        };
        if !agrees {
            return Err(format!(
                "element {index}: expected {wanted:?}, found {found:?}"
            ));
        }
    }
    Ok(())
}

/// Returns how many floats of a type are between two.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of steps, of which large ones are all the same"
)]
fn ulps(dtype: DType, wanted: f64, found: f64) -> u64 {
    let (mantissa, least) = match dtype {
        DType::F16 => (10, -14),
        DType::Bf16 => (7, -126),
        DType::F64 | DType::Complex128 => (52, -1022),
        _ => (23, -126),
    };
    if !wanted.is_finite() || !found.is_finite() {
        return u64::MAX;
    }
    let size = wanted.abs().max(found.abs());
    let exponent = if size == 0.0 {
        least
    } else {
        (size.log2().floor() as i32).max(least)
    };
    let unit = f64::powi(2.0, (exponent - mantissa).max(-1074));
    ((wanted - found).abs() / unit) as u64
}
