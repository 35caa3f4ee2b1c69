//! Runs calls of operations that a file lists, and prints bits of their results: so scripts compare a plugin here with the
//! same plugin in TensorFlow (`benches/peers/capi_intel.py`).
//!
//! ```console
//! $ cargo run -p tfrt-capi --example calls -- libfoo.so             # definitions of its operations, as JSON
//! $ cargo run -p tfrt-capi --example calls -- libfoo.so calls.json
//! ```
//!
//! The file has `values` (type, extents, elements in hexadecimal digits, repeated until there are enough), calls of `setup` and of `step`, which is run
//! `times` times; after each step, the values that `fetch` names are printed. With `tries`, each of its calls is tried by
//! itself, and the line says whether it ran. A call with `repeat` is made so often, for scripts that measure its cost.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use tfrt_capi::rows::PluginOps;
use tfrt_capi::{ArgTypes, OpSpec, Plugin};
use tfrt_corert::{AttrValue, Context, CoreRuntime, IntoAttr, OpAttrs, TensorHandle};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{DType, HostContext};
use tfrt_tensor::{DenseHostTensor, PartialTensorShape, Tensor, TensorMetadata, TensorShape};

type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [library] => load(library).map(|plugin| println!("{}", definitions(&plugin))),
        [library, file] => load(library).and_then(|plugin| calls(&plugin, file)),
        _ => Err("expected LIBRARY [CALLS]".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(unsafe_code, reason = "loading runs foreign code")]
fn load(library: &str) -> Outcome<Plugin> {
    // SAFETY: the caller has named the library, and trusts it.
    unsafe { Plugin::load(library) }.map_err(|error| error.message)
}

/// Returns the operations that have kernels on the processor: inputs and attributes.
fn definitions(plugin: &Plugin) -> Json {
    let mut names: Vec<&str> = plugin.kernels().map(|kernel| kernel.op()).collect();
    names.sort_unstable();
    names.dedup();
    let specs = names.iter().filter_map(|name| tfrt_capi::spec(name));
    let specs: Vec<Json> = specs.map(|spec| definition(&spec)).collect();
    json!({
        "n_ops": plugin.ops().count(),
        "n_kernels": plugin.kernels().count(),
        "n_ops_with_kernels": names.len(),
        "ops": specs,
    })
}

fn definition(spec: &OpSpec) -> Json {
    let inputs = spec.inputs.iter().map(|arg| {
        let (kind, of) = match &arg.types {
            ArgTypes::Fixed(code) => ("fixed", json!(code)),
            ArgTypes::Attr(name) => ("attr", json!(name)),
            ArgTypes::List(name) => ("list", json!(name)),
        };
        json!({"name": arg.name, "kind": kind, "of": of, "count": arg.count, "ref": arg.is_reference})
    });
    let attrs = spec.attrs.iter().map(|attr| {
        json!({
            "name": attr.name,
            "kind": attr.kind_name(),
            "default": attr.default.is_some(),
            "minimum": attr.minimum,
            "types": attr.allowed_types,
            "texts": attr.allowed_texts,
        })
    });
    json!({
        "name": spec.name,
        "inputs": inputs.collect::<Vec<_>>(),
        "attrs": attrs.collect::<Vec<_>>(),
        "outputs": spec.outputs.len(),
    })
}

/// A runtime with the plugin's operations, and values by name.
struct Bed {
    runtime: CoreRuntime,
    context: Context,
    values: HashMap<String, TensorHandle>,
}

fn calls(plugin: &Plugin, file: &str) -> Outcome<()> {
    let text = std::fs::read_to_string(Path::new(file)).map_err(|error| error.to_string())?;
    let script: Json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let host = HostContext::builder(KernelRegistry::new()).build();
    let runtime = CoreRuntime::new(&host);
    runtime.set_kernels(tfrt_kernels::rows::find);
    runtime.add_ops(Arc::new(PluginOps::new([plugin]).first()));
    let context = runtime.context();
    let mut bed = Bed {
        runtime,
        context,
        values: HashMap::new(),
    };
    for (name, value) in script["values"].as_object().into_iter().flatten() {
        match bed.tensor(value) {
            Ok(tensor) => drop(bed.values.insert(name.clone(), bed.runtime.handle(tensor))),
            Err(error) => eprintln!("value '{name}': {error}"),
        }
    }
    for call in list(&script["setup"]) {
        bed.call(call)?;
    }
    for step in 0..script["times"].as_u64().unwrap_or(1) {
        for call in list(&script["step"]) {
            bed.call(call)?;
        }
        for name in list(&script["fetch"]) {
            let name = text_of(name)?;
            let handle = bed
                .values
                .get(name)
                .ok_or_else(|| format!("no value '{name}'"))?;
            println!("{step} {name} {}", bits(handle)?);
        }
    }
    for call in list(&script["tries"]) {
        let tried = bed.call(call);
        // A call that ends the process leaves the lines of those before it.
        match tried {
            Ok(()) => println!("ran"),
            Err(error) => println!("error {}", error.replace('\n', " ")),
        }
        let _flushed = std::io::stdout().flush();
    }
    Ok(())
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(json: &Json) -> Outcome<&str> {
    json.as_str()
        .ok_or_else(|| format!("expected a text, found {json}"))
}

fn dtype(json: &Json) -> Outcome<DType> {
    let name = text_of(json)?;
    let found = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
    found.ok_or_else(|| format!("no type '{name}'"))
}

fn extents(json: &Json) -> Vec<usize> {
    let all = list(json).iter().filter_map(Json::as_u64);
    all.map(|extent| extent as usize).collect()
}

impl Bed {
    fn tensor(&self, json: &Json) -> Outcome<Tensor> {
        let (dtype, digits) = (dtype(&json[0])?, text_of(&json[2])?);
        let pairs = digits.as_bytes().chunks_exact(2);
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        };
        let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
        let mut bytes = bytes.ok_or("expected hexadecimal digits")?;
        let shape = TensorShape::new(&extents(&json[1])).map_err(|error| error.to_string())?;
        let metadata = TensorMetadata { dtype, shape };
        let n_bytes = metadata.len_bytes().map_err(|error| error.to_string())?;
        if let Some(n) = n_bytes.checked_div(bytes.len()) {
            bytes = bytes.repeat(n);
        }
        let allocator = self.runtime.host().allocator();
        let made = DenseHostTensor::from_bytes(allocator, metadata, &bytes);
        made.map(Tensor::from).map_err(|error| error.to_string())
    }

    fn attr(&self, kind: &str, json: &Json) -> Outcome<AttrValue> {
        if let Some(kind) = kind.strip_prefix("list(") {
            let kind = kind.trim_end_matches(')');
            let all = list(json).iter().map(|one| self.attr(kind, one));
            return Ok(AttrValue::Aggregate(
                all.collect::<Outcome<Vec<_>>>()?.into(),
            ));
        }
        let wrong = || format!("expected an attribute of kind {kind}, found {json}");
        Ok(match kind {
            "string" | "func" => text_of(json)?.into_attr(),
            "int" => json.as_i64().ok_or_else(wrong)?.into_attr(),
            "float" => (json.as_f64().ok_or_else(wrong)? as f32).into_attr(),
            "bool" => json.as_bool().ok_or_else(wrong)?.into_attr(),
            "type" => dtype(json)?.into_attr(),
            "shape" => {
                let extents: Vec<i64> = list(json).iter().filter_map(Json::as_i64).collect();
                let shape = PartialTensorShape::from_i64(&extents);
                shape.map_err(|error| error.to_string())?.into_attr()
            }
            "tensor" => match self.tensor(json)? {
                Tensor::Dense(tensor) => tensor.into_attr(),
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        })
    }

    /// Runs a call to its end.
    fn call(&mut self, call: &Json) -> Outcome<()> {
        let name = text_of(&call["op"])?;
        let mut inputs = Vec::new();
        for input in list(&call["in"]) {
            let input = text_of(input)?;
            let found = self.values.get(input);
            inputs.push(found.ok_or_else(|| format!("no value '{input}'"))?.clone());
        }
        let mut attrs = OpAttrs::new();
        for (name, attr) in call["attrs"].as_object().into_iter().flatten() {
            let attr = self.attr(text_of(&attr[0])?, &attr[1])?;
            attrs
                .set_named(name, attr)
                .map_err(|error| error.to_string())?;
        }
        let attrs = attrs.freeze();
        let run = || {
            let op = self.runtime.op(name, &self.runtime.cpu())?;
            for _ in 1..call["repeat"].as_u64().unwrap_or(1) {
                op.call(&self.context, &inputs[..], &attrs)?;
            }
            op.call(&self.context, inputs, &attrs)
        };
        let results = run().map_err(|error| format!("{name}: {}", error.message()))?;
        let queue = self.runtime.host().queue();
        for handle in &results {
            let _settled = queue.await_all(&[handle.to_async().into_any()]);
            if let Some(error) = handle.error() {
                return Err(format!("{name}: {}", error.message()));
            }
        }
        let chain = self.context.effects();
        let _settled = queue.await_all(&[chain.into_any()]);
        for (out, result) in list(&call["out"]).iter().zip(results) {
            self.values.insert(text_of(out)?.to_owned(), result);
        }
        Ok(())
    }
}

/// Returns type, extents and elements, in hexadecimal digits.
fn bits(handle: &TensorHandle) -> Outcome<String> {
    let tensor = match handle.tensor() {
        Some(Ok(tensor)) => tensor,
        Some(Err(error)) => return Err(error.to_string()),
        None => return Err("a value is still to come".to_owned()),
    };
    let dense = tensor.as_dense().map_err(|error| error.to_string())?;
    let read = dense.read().map_err(|error| error.to_string())?;
    let extents: Vec<String> = dense
        .shape()
        .extents()
        .map(|extent| extent.to_string())
        .collect();
    let mut text = format!("{} {} ", dense.metadata().dtype.name(), extents.join(","));
    for byte in read.bytes() {
        let _never_fails = write!(text, "{byte:02x}");
    }
    Ok(text)
}
