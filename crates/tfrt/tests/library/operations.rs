//! Entries of the operation tables against the kernels that are registered: whatever
//! one says, the other says too. Entries without a kernel and kernels without an
//! entry are told apart.

use std::collections::BTreeSet;

use tfrt::ir::dialect::{
    self, AttributeDef, AttributeKind, Execution, OpDef, Results, Traits, ValueDef, ValueKind,
};
use tfrt::kernel::{Completion, KernelEntry, KernelRegistry, Signature};

fn registry() -> KernelRegistry {
    let mut registry = KernelRegistry::new();
    tfrt::kernels::register_all(&mut registry);
    tfrt::corert::kernels::register(&mut registry);
    #[cfg(feature = "dist")]
    tfrt::dist::kernels::register(&mut registry);
    #[cfg(feature = "gpu")]
    tfrt::gpu::register(&mut registry);
    registry
}

fn has_kernel(entry: &OpDef) -> bool {
    let is_there = cfg!(feature = "dist") || entry.dialect() != "tfrt_dist";
    let is_elsewhere = matches!(
        entry.execution_kind(),
        Execution::Structure | Execution::Elsewhere
    );
    let is_for_gpus =
        GPU_DIALECTS.contains(&entry.dialect()) || entry.name() == "corert.create_gpu_op_handler";
    let is_optional = !cfg!(feature = "gpu") && is_for_gpus;
    is_there && !is_elsewhere && !is_optional
}

/// Dialects whose kernels are there with the feature `gpu`.
const GPU_DIALECTS: [&str; 3] = ["tfrt_cuda", "tfrt_cuda_test", "tfrt_gpu"];

/// One property of an entry and of a kernel's signature, side by side.
struct Comparison {
    differences: Vec<String>,
    name: String,
}

impl Comparison {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, entry: &T, kernel: &T) {
        if entry != kernel {
            let name = &self.name;
            let line = format!("{name}: {what}: the entry has {entry:?}, the kernel {kernel:?}");
            self.differences.push(line);
        }
    }
}

/// Returns the type that a kernel would have for a value.
fn type_name(value: &ValueDef) -> Option<String> {
    value.kind.ty().map(|ty| ty.to_string())
}

fn compare(entry: &OpDef, kernel: &KernelEntry) -> Vec<String> {
    let signature = kernel.signature();
    let mut comparison = Comparison {
        differences: Vec::new(),
        name: entry.name().to_owned(),
    };
    compare_operands(&mut comparison, entry, signature);
    compare_attributes(&mut comparison, entry, signature);
    compare_results(&mut comparison, entry, signature);
    let functions = (signature.n_functions, signature.more_functions);
    comparison.same("functions", &entry.n_functions(), &functions);
    let completion = match entry.execution_kind() {
        Execution::Asynchronous => Completion::Asynchronous,
        Execution::Calls => Completion::Calls,
        _ => Completion::Synchronous,
    };
    comparison.same("completion", &completion, &signature.completion);
    comparison.differences
}

fn compare_operands(comparison: &mut Comparison, entry: &OpDef, signature: &Signature) {
    let mut declared: Vec<Option<String>> = entry.operand_defs().iter().map(type_name).collect();
    let has_more = entry.rest_def().is_some();
    comparison.same("further operands", &has_more, &signature.more_operands);
    // A chain that a kernel does not look at is left to the executor.
    let last_is_chain = entry.operand_defs().last().map(|last| last.kind) == Some(ValueKind::Chain);
    if last_is_chain && signature.has_trailing_chain(declared.len()) {
        declared.pop();
    }
    let operands = signature.operands.iter();
    let operands: Vec<_> = operands
        .map(|operand| operand.type_name.map(str::to_owned))
        .collect();
    comparison.same("operands", &declared, &operands);
    let strict = signature.operands.iter().all(|operand| operand.strict);
    // Collectives begin before their operands are there: they tell the other members of one that fails.
    let is_collective = entry.name().starts_with("tfrt_dist.cpu.");
    comparison.same("strict operands", &!is_collective, &strict);
    let trailing = signature.has_trailing_chain(entry.operand_defs().len() + 1);
    if entry.is(Traits::KERNEL_ONLY) {
        comparison.same("a chain more", &entry.takes_trailing_chain(), &trailing);
    }
}

fn compare_attributes(comparison: &mut Comparison, entry: &OpDef, signature: &Signature) {
    let is_read = |attribute: &&AttributeDef| {
        let names_functions = matches!(
            attribute.kind,
            AttributeKind::FlatSymbol | AttributeKind::FlatSymbols
        );
        !names_functions && !attribute.compile_time
    };
    let mut declared: Vec<&AttributeDef> = entry.attribute_defs().iter().filter(is_read).collect();
    declared.sort_by_key(|attribute| attribute.name);
    let kinds: Vec<String> = declared
        .iter()
        .map(|attribute| attribute.kind.name())
        .collect();
    let found: Vec<String> = signature
        .attributes
        .iter()
        .map(|spec| spec.kind.to_owned())
        .collect();
    // A kernel gets attributes in the order of their names: one that may be left out is found by name.
    let by_name = declared.iter().any(|attribute| attribute.optional);
    let kinds = if by_name { Vec::new() } else { kinds };
    comparison.same("attributes", &kinds, &found);
    let has_more = entry.more_attributes_meaning().is_some() || by_name;
    comparison.same("further attributes", &has_more, &signature.more_attributes);
}

fn compare_results(comparison: &mut Comparison, entry: &OpDef, signature: &Signature) {
    let Results::Exactly(results) = entry.result_defs() else {
        comparison.same("any results", &true, &signature.any_results);
        return;
    };
    // The results of a call are what the program says; an entry may say more.
    if signature.completion == Completion::Calls {
        return;
    }
    comparison.same("any results", &false, &signature.any_results);
    let declared: Vec<_> = results.iter().map(type_name).collect();
    let found = signature.results.iter();
    let found: Vec<_> = found
        .map(|result| result.type_name.map(str::to_owned))
        .collect();
    comparison.same("results", &declared, &found);
}

#[test]
fn entries_are_as_the_kernels_are() {
    let registry = registry();
    let mut differences = Vec::new();
    let mut compared = 0;
    let pairs = [
        (
            dialect::definitions(),
            registry.kernels().collect::<Vec<_>>(),
        ),
        (
            dialect::natives().iter().collect(),
            registry.natives().collect(),
        ),
    ];
    for (entries, kernels) in pairs {
        let with_kernel = entries.iter().filter(|entry| has_kernel(entry));
        let entry_names: BTreeSet<&str> = with_kernel.map(|entry| entry.name()).collect();
        // What these take and give is a model's business, and checked when they are called.
        let dialects = [
            "cpu.onnx.",
            "cpu.graph.",
            "cpu.fused.",
            "cpu.stored.",
            "cpu.tf.",
            "cpu.stablehlo.",
            "cuda.graph.",
        ];
        let is_of_models = |name: &&str| dialects.iter().any(|dialect| name.starts_with(dialect));
        let kernel_names = kernels.iter().map(|kernel| kernel.name());
        let kernel_names: BTreeSet<&str> =
            kernel_names.filter(|name| !is_of_models(name)).collect();
        for name in kernel_names.difference(&entry_names) {
            differences.push(format!("{name}: the kernel has no entry"));
        }
        for name in entry_names.difference(&kernel_names) {
            differences.push(format!("{name}: the entry has no kernel"));
        }
        for kernel in kernels {
            let entry = entries.iter().find(|entry| entry.name() == kernel.name());
            if let Some(entry) = entry {
                differences.extend(compare(entry, kernel));
                compared += 1;
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > 150, "only {compared} kernels");
}

/// Pure operations that take or give chains: those that chains are made of.
const PURE_WITH_CHAINS: [&str; 3] = ["tfrt.new.chain", "tfrt.merge.chains", "tfrt.alias.value"];

#[test]
fn effects_are_plausible() {
    let all = dialect::definitions().into_iter().chain(dialect::natives());
    let mut complaints = Vec::new();
    let mut complain = |entry: &OpDef, what: &str| {
        complaints.push(format!("{}: {what}", entry.name()));
    };
    for entry in all {
        let effects = entry.effects();
        let touches = !effects.is_none();
        let has_chain = entry.chain_operand().is_some() || entry.chain_result().is_some();
        if entry.is(Traits::PURE) {
            if has_chain && !PURE_WITH_CHAINS.contains(&entry.name()) {
                complain(entry, "is pure, but takes or gives a chain");
            }
            if entry.execution_kind() == Execution::Calls || entry.n_functions().0 > 0 {
                complain(entry, "is pure, but has functions called");
            }
        } else if !effects.is_stated() {
            complain(entry, "does not say what it affects");
        }
        let n_declared = entry.operand_defs().len();
        for &operand in effects.reads().iter().chain(effects.writes()) {
            let kind = entry
                .operand_defs()
                .get(operand)
                .map(|operand| operand.kind);
            if !matches!(kind, Some(ValueKind::Dialect(_))) {
                complain(entry, &format!("operand {operand} refers to nothing"));
            }
            if operand >= n_declared {
                complain(entry, &format!("there is no operand {operand}"));
            }
        }
        let is_own = !effects.is_nested() && !effects.is_unknown();
        if entry.execution_kind() == Execution::Calls && is_own {
            complain(entry, "has functions called whose effects are not its own");
        }
        if effects.is_nested() && entry.n_functions() == (0, false) {
            complain(entry, "has effects of functions, but names none");
        }
        let prints = entry.summary_text().starts_with("Prints");
        if prints && !effects.is_outside() {
            complain(entry, "prints, which can be seen from outside");
        }
        let gives_something_new = entry
            .result_defs()
            .declared()
            .iter()
            .any(|result| matches!(result.kind, ValueKind::Dialect(_)));
        if effects.allocates() && !gives_something_new {
            complain(
                entry,
                "makes something new, but gives nothing that refers to it",
            );
        }
        if effects.is_unknown() && touches && entry.n_functions() == (0, false) {
            complain(entry, "may affect everything, though it calls nothing");
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn planted_differences_are_found() {
    let registry = registry();
    for (entry, kernel) in [
        ("tfrt.add.i32", "tfrt.add.i64"),
        ("tfrt.add.i32", "tfrt.div.i32"),
        ("tfrt.add.i32", "tfrt_test.async_add.i32"),
        ("tfrt_test.sum", "tfrt.add.i32"),
        ("tfrt.constant.f32", "tfrt.constant.f16"),
        ("tfrt.call", "tfrt.cond"),
        ("tfrt.print.i32", "tfrt_test.atomic.inc.i32"),
        ("tfrt_test.sync_sum_attributes", "tfrt_test.fail"),
    ] {
        let entry = dialect::describe(entry).expect("it has an entry");
        let kernel = registry.get(kernel).expect("it is registered");
        assert!(!compare(entry, kernel).is_empty(), "{kernel:?}");
    }
}

/// Types whose values stay in their process, and why.
const LOCAL: &[(&str, &str)] = &[
    ("!tfrt.device", "a device of this host"),
    ("!corert.ophandler", "it leads to code"),
    ("!corert.op", "it leads to code"),
    ("!corert.opattrs", "it is being put together"),
    ("!corert.opattrs_ref", "a view of what is put together"),
    (
        "!corert.tensorhandle",
        "it belongs to a runtime; its tensor has a codec",
    ),
    ("!tfrt.tensor_type", "a word of a program"),
    ("!cpu.filter", "packed for this processor"),
    ("!cpu.matrix", "packed for this processor"),
    ("!proto.example", "a parser of this process"),
    ("!vt.value", "for tests"),
    ("!tfrt.test.resource", "for tests"),
    ("!test.atomic.i32", "for tests"),
    ("!my.coordinate", "for tests"),
    #[cfg(feature = "dist")]
    ("!tfrt_dist.dist_context", "a part of this process"),
    #[cfg(feature = "dist")]
    ("!tfrt_dist.payload", "it is what is sent"),
    #[cfg(feature = "dist")]
    (
        "!tfrt_dist.remote_chain_manager",
        "it is written by programs",
    ),
    #[cfg(feature = "dist")]
    (
        "!tfrt_dist.remote_execute_spec",
        "names of devices of one context",
    ),
    #[cfg(feature = "dist")]
    (
        "!tfrt_dist.remote_object_id",
        "it is the right to an object; its name travels in requests",
    ),
    #[cfg(feature = "dist")]
    ("!tfrt_dist.task_handle", "a number of one context"),
];

#[test]
fn every_type_of_a_kernel_has_a_codec_or_is_local() {
    let registry = registry();
    let mut types = BTreeSet::new();
    for kernel in registry.kernels().chain(registry.natives()) {
        let signature = kernel.signature();
        types.extend(
            signature
                .operands
                .iter()
                .filter_map(|operand| operand.type_name),
        );
        types.extend(
            signature
                .results
                .iter()
                .filter_map(|result| result.type_name),
        );
    }
    let host = tfrt::host::HostContext::builder(registry).build();
    let has_codec = |name: &&str| host.codecs().newest(name).is_some();
    let local: BTreeSet<&str> = LOCAL.iter().map(|(name, _)| *name).collect();
    // What belongs to a device stays with it.
    types.retain(|name| !name.starts_with("!tfrt_cuda.") && !name.starts_with("!tfrt_gpu."));
    let neither: Vec<&&str> = types
        .iter()
        .filter(|name| !has_codec(name) && !local.contains(*name))
        .collect();
    assert!(neither.is_empty(), "without codec: {neither:?}");
    let both: Vec<&&str> = local.iter().filter(|name| has_codec(name)).collect();
    assert!(both.is_empty(), "local, but with a codec: {both:?}");
    let unknown: Vec<_> = local.difference(&types).collect();
    assert!(unknown.is_empty(), "local, but no kernel's: {unknown:?}");
}
