//! A format whose operations have effects: `.tally`, where counters are made, counted and read.
//!
//! ```text
//! # tally
//! input x f32[1]
//! counter c x       # begins with the sum of x
//! count c x 10.0    # multiplies it by 10, then adds the sum of x
//! read n c
//! output n
//! ```
//!
//! A counter is a resource: each call makes its own, and what happens to it does so in the order of the lines. To say so the
//! front end puts chains in: each operation on a counter takes the chain of the one before, and gives one for the next.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tfrt::import::{Imported, ReadLimits, Source};
use tfrt::ir::{Diagnostics, OpState, Type, ValueId};
use tfrt::kernel::{Attr, KernelRegistry};
use tfrt::ops::{AttrDef, Fact, Infer, InferCall, InferError, OpDef, Traits, ValueDef};
use tfrt::tensor::{DType, DenseHostTensor, Tensor};
use tfrt::{Chain, Error, ExecutionContext, Format, Heap, Value};

use crate::{attribute, is_end, read, wrong};

/// The format.
pub const FORMAT: Format = Format::new("tally", import)
    .suffixes(&["tally"])
    .recognises(|head| head.bytes.starts_with(b"# tally"))
    .rows(ROWS)
    .kernels(kernels);

const COUNTER: ValueDef = ValueDef::object("counter");
const CHAIN: ValueDef = ValueDef::object("chain");

const ROWS: &[OpDef] = &[
    // Two of them are two counters, though they begin with the same: it is not pure.
    OpDef::new(
        "tally.counter",
        "Makes a counter that begins with the sum of `start`.",
    )
    .inputs(&[ValueDef::any("start")])
    .results(&[COUNTER, CHAIN])
    .infer(Infer::By(nothing))
    .impure(),
    OpDef::new(
        "tally.count",
        "Multiplies a counter by `scale`, then adds the sum of `amount`.",
    )
    .inputs(&[COUNTER, ValueDef::any("amount"), CHAIN])
    .results(&[CHAIN])
    .attrs(&[AttrDef::float("scale", 1.0)])
    .infer(Infer::By(nothing))
    .traits(Traits::READS.with(Traits::WRITES)),
    OpDef::new("tally.read", "What a counter is.")
        .inputs(&[COUNTER, CHAIN])
        .results(&[ValueDef::any("y"), CHAIN])
        .infer(Infer::By(number))
        .traits(Traits::READS),
];

fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

fn number(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let scalar = std::iter::empty().collect();
    call.set(0, Fact::new(Some(DType::F32), Some(scalar)));
    Ok(())
}

/// A number that operations change in their order.
struct Counter(Mutex<f32>);

impl Value for Counter {
    const NAME: &'static str = "!tally.counter";
    type Storage = Heap;
}

impl Counter {
    fn value(&self) -> MutexGuard<'_, f32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kernels(registry: &mut KernelRegistry) {
    registry
        .add("cpu.tally.counter", counter)
        .add("cpu.tally.count", count)
        .add("cpu.tally.read", value);
}

fn sum(x: &Tensor) -> Result<f32, Error> {
    Ok(x.as_dense()?.read()?.elements::<f32>()?.iter().sum())
}

fn counter(start: &Tensor) -> Result<(Counter, Chain), Error> {
    Ok((Counter(Mutex::new(sum(start)?)), Chain))
}

fn count(counter: &Counter, amount: &Tensor, _: Chain, scale: Attr<f32>) -> Result<Chain, Error> {
    let amount = sum(amount)?;
    let mut value = counter.value();
    *value = *value * *scale + amount;
    Ok(Chain)
}

fn value(
    counter: &Counter,
    _: Chain,
    execution: &ExecutionContext,
) -> Result<(Tensor, Chain), Error> {
    let value = *counter.value();
    let tensor = DenseHostTensor::scalar(execution.host().allocator(), value)?;
    Ok((tensor.into(), Chain))
}

fn import(source: &Source<'_>, limits: &ReadLimits) -> Result<Imported, Diagnostics> {
    let text = source.text()?;
    // The chain of each counter: what the last operation on it gave.
    let mut chains: HashMap<&str, ValueId> = HashMap::new();
    let [resource, chain] = [Counter::NAME, Chain::NAME].map(Type::dialect);
    read(&text, limits, |graph, line| {
        if is_end(graph, &text, line)? {
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // The operation, the counter, what has a name from now on, the operand, the factor.
        let (operation, counter, named, amount, scale) = match words[..] {
            ["counter", name, start] => ("counter", name, Some(name), Some(start), None),
            ["count", counter, amount] => ("count", counter, None, Some(amount), None),
            ["count", counter, amount, scale] => {
                ("count", counter, None, Some(amount), Some(scale))
            }
            ["read", name, counter] => ("read", counter, Some(name), None, None),
            _ => return Err(wrong(line, "expected 'counter', 'count' or 'read'")),
        };
        let mut state = OpState::new(format!("tally.{operation}"));
        let before = chains.get(counter).copied();
        if operation != "counter" {
            let value = graph.value(counter).map_err(|error| (counter, error))?;
            before.ok_or_else(|| wrong(counter, "expected a counter"))?;
            state = state.operand(value);
        }
        if let Some(amount) = amount {
            state = state.operand(graph.value(amount).map_err(|error| (amount, error))?);
        }
        if operation != "counter" {
            state = state.operands(before);
        }
        if let Some(scale) = scale {
            state = state.attribute("scale", attribute(scale)?);
        }
        let tensor = Type::unranked(Type::F32);
        state = state.results(match operation {
            "counter" => vec![resource.clone(), chain.clone()],
            "count" => vec![chain.clone()],
            _ => vec![tensor, chain.clone()],
        });
        let state = state.location(text.location_of(words[0]));
        let results = graph.add(state).map_err(|error| (line, error))?;
        let (first, last) = (results[0], results[results.len() - 1]);
        if let Some(name) = named {
            graph.name(name, first);
        }
        chains.insert(counter, last);
        Ok(())
    })
}
