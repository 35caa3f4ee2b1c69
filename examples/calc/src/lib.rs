//! A format of models of one's own: `.calc`, a line for each operation.
//!
//! ```text
//! # Comments go to the end of the line.
//! input x f32[N,4]
//! y = gelu(x)
//! z = wave(y, height=2.0)
//! c = counter(x)
//! count(c, z, scale=10.0)
//! n = read(c)
//! output z
//! output n
//! ```
//!
//! Nothing of the runtime knows it. [`FORMAT`] says how a file becomes a module in the dialect `calc`, and what the names
//! in it are: rows of the table of operations, several of them (`silu`), or rows of the format's own, `wave` and those of
//! counters, whose kernels [`kernels`] adds.
//!
//! A counter is a resource: each call makes its own, and what happens to it does so in the order of the lines. To say so the
//! front end puts chains in: each operation on a counter takes the chain of the one before, and gives one for the next.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::Mutex;

use tfrt::compiler::legalize::Legalize;
use tfrt::host::kernel::{Attr, KernelRegistry};
use tfrt::import::{Extent, FrontEnd, Head, Imported, ReadLimits, Signature, Source};
use tfrt::ir::{
    Attribute, Diagnostic, Diagnostics, Location, Module, OpState, Span, Type, ValueId,
};
use tfrt::ops::names::{Name, NameAttr};
use tfrt::ops::{AttrDef, Fact, Infer, InferCall, InferError, OpDef, Traits, ValueDef};
use tfrt::tensor::{DenseHostTensor, Tensor};
use tfrt::{Chain, Error, ExecutionContext, Format, Heap, Value};

/// The format.
pub const FORMAT: Format = Format {
    front_end: FrontEnd {
        name: "calc",
        suffixes: &["calc"],
        recognises: |head: &Head<'_>| !head.is_folder && head.bytes.starts_with(b"input "),
        import,
        survey: None,
    },
    legalize: Legalize {
        dialect: "calc",
        names: &[
            Name::new("add", "add"),
            Name::new("gelu", "gelu"),
            Name::new("matmul", "dot"),
            Name::new("mul", "mul"),
            Name::new("rsqrt", "rsqrt"),
            Name::new("softmax", "softmax"),
            Name::new("sum", "reduce").attrs(&[
                NameAttr::Text("kind", "sum"),
                NameAttr::Renamed("axes", "over"),
            ]),
        ],
        expand: &[("silu", |here| {
            let x = here.operand(0)?;
            let y = here.add("graph.sigmoid", &[x], &[]);
            Ok(vec![here.add("graph.mul", &[x, y], &[])])
        })],
    },
    rows: &[
        OpDef::new(
            "calc.wave",
            "A triangle from 0 to `height` and back for each two units.",
        )
        .attrs(&[AttrDef::float("height", 1.0)]),
        // Two of them are two counters, though they begin with the same: it is not pure.
        OpDef::new(
            "calc.counter",
            "Makes a counter that begins with the sum of `start`.",
        )
        .inputs(&[ValueDef::any("start")])
        .results(&[COUNTER, CHAIN])
        .infer(Infer::By(nothing))
        .impure(),
        OpDef::new(
            "calc.count",
            "Multiplies a counter by `scale`, then adds the sum of `amount`.",
        )
        .inputs(&[COUNTER, ValueDef::any("amount"), CHAIN])
        .results(&[CHAIN])
        .attrs(&[AttrDef::float("scale", 1.0)])
        .infer(Infer::By(nothing))
        .traits(Traits::READS.with(Traits::WRITES)),
        OpDef::new("calc.read", "What a counter is.")
            .inputs(&[COUNTER, CHAIN])
            .results(&[ValueDef::any("y"), CHAIN])
            .infer(Infer::By(number))
            .traits(Traits::READS),
    ],
};

const COUNTER: ValueDef = ValueDef::object("counter");
const CHAIN: ValueDef = ValueDef::object("chain");

fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

fn number(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let scalar = std::iter::empty().collect();
    call.set(0, Fact::new(Some(tfrt::tensor::DType::F32), Some(scalar)));
    Ok(())
}

/// Adds the kernels of the format's own rows.
pub fn kernels(registry: &mut KernelRegistry) {
    registry
        .add("cpu.calc.wave", wave)
        .add("cpu.calc.counter", counter)
        .add("cpu.calc.count", count)
        .add("cpu.calc.read", read);
}

/// A number that operations change in their order.
struct Counter(Mutex<f32>);

impl Value for Counter {
    const NAME: &'static str = "!calc.counter";
    type Storage = Heap;
}

impl Counter {
    fn value(&self) -> std::sync::MutexGuard<'_, f32> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
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

fn read(
    counter: &Counter,
    _: Chain,
    execution: &ExecutionContext,
) -> Result<(Tensor, Chain), Error> {
    let value = *counter.value();
    let tensor = DenseHostTensor::scalar(execution.host().allocator(), value)?;
    Ok((tensor.into(), Chain))
}

/// Gets all attributes that the row has, those that a file leaves out as well.
fn wave(x: &Tensor, height: Attr<f32>, execution: &ExecutionContext) -> Result<Tensor, Error> {
    let (x, height) = (x.as_dense()?, *height);
    let one = |x: &f32| height * (1.0 - (x.rem_euclid(2.0) - 1.0).abs());
    let y: Vec<f32> = x.read()?.elements::<f32>()?.iter().map(one).collect();
    let allocator = execution.host().allocator();
    Ok(DenseHostTensor::from_slice(allocator, &x.shape().to_dims(), &y)?.into())
}

/// The code of all mistakes in a file.
const CODE: &str = "CALC1";

/// What is known while a file is read.
struct Reader<'s> {
    text: &'s tfrt::ir::Source,
    module: Module,
    block: tfrt::ir::BlockId,
    values: HashMap<&'s str, ValueId>,
    /// The chain of each counter: what the last operation on it gave.
    chains: HashMap<ValueId, ValueId>,
    signature: Signature,
    outputs: Vec<ValueId>,
}

fn import(source: &Source<'_>, limits: &ReadLimits) -> Result<Imported, Diagnostics> {
    let text = tfrt::ir::Source::from_bytes(source.name, source.bytes.as_ref().to_vec())?;
    let mut module = Module::new();
    let region = module.create_region();
    let block = module.create_block(region);
    let mut reader = Reader {
        text: &text,
        module,
        block,
        values: HashMap::new(),
        chains: HashMap::new(),
        signature: Signature::default(),
        outputs: Vec::new(),
    };
    let mut errors = Diagnostics::default();
    let mut wrong = |part: &str, message: String| {
        let span = span_of(&text, part);
        errors.push(Diagnostic::error(CODE, message).at(&text, span));
    };
    for (number, line) in text.text().lines().enumerate() {
        if number == limits.nodes {
            wrong(line, format!("expected at most {number} lines"));
            break;
        }
        let code = line.split('#').next().unwrap_or_default().trim();
        if let Err((part, message)) = reader.line(code) {
            wrong(part, message);
        }
    }
    errors.into_result()?;
    let Reader {
        mut module,
        signature,
        outputs,
        ..
    } = reader;
    let last = module.create(OpState::new("tfrt.return").operands(outputs));
    module.append(block, last);
    signature.function(&mut module, region, Location::Unknown);
    Ok(module.into())
}

/// Returns where a part of a text is.
fn span_of(text: &tfrt::ir::Source, part: &str) -> Span {
    let start = part.as_ptr().addr() - text.text().as_ptr().addr();
    Span::new(start, start + part.len())
}

/// What is wrong with a part of the text.
type Wrong<'s> = (&'s str, String);

impl<'s> Reader<'s> {
    fn line(&mut self, line: &'s str) -> Result<(), Wrong<'s>> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix("input ") {
            return match rest.trim().split_once(' ') {
                Some((name, ty)) => self.input(name, ty.trim()),
                None => Err((rest, "expected a name and a type".to_owned())),
            };
        }
        if let Some(name) = line.strip_prefix("output ") {
            let value = self.value(name.trim())?;
            self.signature.output(name.trim(), None);
            self.outputs.push(value);
            return Ok(());
        }
        let call = line.strip_suffix(')').and_then(|line| line.split_once('('));
        let parts = call.and_then(|(head, operands)| match head.split_once('=') {
            Some((name, operation)) => Some((Some(name.trim()), operation.trim(), operands)),
            None => (head == "count").then_some((None, head, operands)),
        });
        let Some((name, operation, operands)) = parts else {
            let message = "expected 'input', 'output' or NAME = OPERATION(..)";
            return Err((line, message.to_owned()));
        };
        let value = self.operation(operation, operands)?;
        if let Some(name) = name {
            self.values.insert(name, value);
        }
        Ok(())
    }

    /// Appends an operation; returns its first result.
    fn operation(&mut self, operation: &'s str, operands: &'s str) -> Result<ValueId, Wrong<'s>> {
        let mut state =
            OpState::new(format!("calc.{operation}")).location(self.location(operation));
        let mut first = None;
        for operand in operands.split(',').map(str::trim) {
            state = match operand.split_once('=') {
                Some((key, number)) => state.attribute(key.trim(), attribute(number.trim())?),
                None => {
                    let value = self.value(operand)?;
                    first = first.or(Some(value));
                    state.operand(value)
                }
            };
        }
        let chain = Type::dialect(Chain::NAME);
        let types = match operation {
            "counter" => vec![Type::dialect(Counter::NAME), chain],
            "count" => vec![chain],
            "read" => vec![tensor(None), chain],
            _ => vec![tensor(None)],
        };
        let is_on_counter = ["count", "read"].contains(&operation);
        if is_on_counter {
            let before = first.and_then(|counter| self.chains.get(&counter).copied());
            let before = before.ok_or((operands, "expected a counter first".to_owned()))?;
            state = state.operand(before);
        }
        let op = self.module.create(state.results(types));
        self.module.append(self.block, op);
        let results = self.module.op(op).results();
        let (value, last) = (results[0], results[results.len() - 1]);
        match first.filter(|_| is_on_counter) {
            Some(counter) => drop(self.chains.insert(counter, last)),
            None if operation == "counter" => drop(self.chains.insert(value, last)),
            None => {}
        }
        Ok(value)
    }

    /// `x f32[N,4]`
    fn input(&mut self, name: &'s str, ty: &'s str) -> Result<(), Wrong<'s>> {
        let extents = ty
            .strip_prefix("f32[")
            .and_then(|rest| rest.strip_suffix(']'));
        let extents =
            extents.ok_or_else(|| (ty, format!("expected f32[EXTENT, ..], found '{ty}'")))?;
        let extents: Vec<Extent<'_>> = extents
            .split(',')
            .map(str::trim)
            .map(|extent| match extent.parse::<u32>() {
                Ok(size) => Extent::Known(size.into()),
                Err(_) => Extent::Named(extent),
            })
            .collect();
        let location = self.location(name);
        let value = self
            .module
            .add_argument(self.block, tensor(Some(&extents)), location);
        self.signature.input(name, Some(&extents));
        self.values.insert(name, value);
        Ok(())
    }

    fn value(&self, name: &'s str) -> Result<ValueId, Wrong<'s>> {
        let message = || format!("expected a value of a line before, found '{name}'");
        let value = self.values.get(name).copied();
        value.ok_or_else(|| (name, message()))
    }

    fn location(&self, part: &str) -> Location {
        self.text.location(span_of(self.text, part).range().start)
    }
}

fn attribute(number: &str) -> Result<Attribute, Wrong<'_>> {
    if let Ok(integer) = number.parse::<i64>() {
        return Ok(Attribute::integer(integer, Type::I64));
    }
    let float = number
        .parse::<f32>()
        .map_err(|_| (number, format!("expected a number, found '{number}'")))?;
    Ok(Attribute::f32(float))
}

fn tensor(extents: Option<&[Extent<'_>]>) -> Type {
    let size = |extent: &Extent<'_>| match extent {
        Extent::Known(size) => *size,
        _ => tfrt::ir::types::DYNAMIC,
    };
    let shape = extents.map(|extents| extents.iter().map(size).collect());
    Type::Tensor(std::sync::Arc::new(tfrt::ir::types::TensorType {
        shape,
        element: Type::F32,
        encoding: None,
    }))
}
